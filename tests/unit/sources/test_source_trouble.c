/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Broken, half-written, unreadable, refused and vanished: what was good stays, and recovers. */
#include "tests/unit/sources/world.h"

#include <pthread.h>
#include <sys/wait.h>

#define HALF "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>https://www"

/* The linker has all calls of file_has_reserve come here. */
static bool is_reserved;

bool __wrap_file_has_reserve(int fd);
bool __wrap_file_has_reserve(int fd)
{
    (void)fd;
    return !is_reserved;
}

static void broken_keeps_its_entry_and_recovers(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 9 * DAY);
    world_scan(w, "new a.xml\n");
    uint64_t revision = world_revision(w);
    folder_write(&w->folder, "a.xml", HALF);
    folder_date(&w->folder, "a.xml", 8 * DAY);
    folder_write(&w->folder, "b.xml", "<urlset><url></urlset>");
    folder_date(&w->folder, "b.xml", 8 * DAY);
    world_scan(w, "problem a.xml truncated\nproblem b.xml malformed-xml\n");
    assert_problem(w, "a.xml", "truncated", true);
    assert_problem(w, "b.xml", "malformed-xml", false);
    assert_entries(w, "/s/a.xml\n");
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
    assert_string_equal(w->still, "a.xml truncated\nb.xml malformed-xml\n");
    assert_int_equal(w->out.counts.problems, 0);
    folder_date(&w->folder, "b.xml", 7 * DAY);
    world_scan(w, "");
    assert_string_equal(w->still,
                        "b.xml malformed-xml\na.xml truncated\n"); /* what was read first */
    w->dry_run = true;
    world_scan(w, "");
    assert_string_equal(w->still, "a.xml truncated\nb.xml malformed-xml\n");
    w->dry_run = false;
    folder_sitemap(&w->folder, "a.xml", "a", "", 7 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", 7 * DAY);
    world_scan(w, "recovered a.xml\nrecovered b.xml\n");
    assert_problem(w, "a.xml", NULL, true);
    assert_age(w, "a.xml", 9 * DAY); /* it says what it said before */
    assert_age(w, "b.xml", 7 * DAY);
    assert_int_equal(world_revision(w), revision + 1);
}

static void half_written_is_left_for_once(void **state)
{
    struct world *w = *state;
    w->settings.settle_ms = 600000;
    folder_write(&w->folder, "a.xml", HALF);
    folder_write(&w->folder, "b.xml", HALF);
    world_scan(w, "");
    assert_true(w->out.again_ms > 0);
    folder_sitemap(&w->folder, "a.xml", "a", "", 100);
    world_scan(w, "new a.xml\nproblem b.xml truncated\n");
    folder_sitemap(&w->folder, "b.xml", "b", "", 100);
    world_scan(w, "recovered b.xml\n");
    /* The command line does not come back. */
    w->alone = true;
    folder_write(&w->folder, "c.xml", "");
    world_scan(w, "problem c.xml empty-file\n");
}

static void an_error_page_does_not_cost_the_entry(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 9 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", 9 * DAY);
    world_scan(w, "new a.xml\nnew b.xml\n");
    folder_write(&w->folder, "a.xml", "<html><h1>502 Bad Gateway</h1></html>");
    folder_write(&w->folder, "b.xml",
                 "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"/>");
    folder_date(&w->folder, "a.xml", 8 * DAY);
    folder_date(&w->folder, "b.xml", 8 * DAY);
    world_scan(w, "problem a.xml not-a-sitemap\nproblem b.xml nested-index\n");
    assert_entries(w, "/s/a.xml\n/s/b.xml\n");
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
}

static void unreadable_keeps_its_entry(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 9 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", 9 * DAY);
    world_scan(w, "new a.xml\nnew b.xml\n");
    folder_do(&w->folder, "rm a.xml && mkfifo a.xml");
    world_scan(w, "problem a.xml unreadable\n");
    assert_entries(w, "/s/a.xml\n/s/b.xml\n");
    world_scan(w, "");
    folder_do(&w->folder, "rm a.xml && ln -s $OUT/c.db a.xml");
    world_scan(w, "");
    assert_problem(w, "a.xml", "unreadable", true);
    folder_sitemap(&w->folder, "x.xml", "a", "", 9 * DAY);
    folder_do(&w->folder, "mv x.xml a.xml");
    world_scan(w, "recovered a.xml\n");
}

/* Root may read all: the rest is done as somebody else. */
static void no_permission(struct world *w)
{
    folder_do(&w->folder, "touch -d '3 days ago' a.xml; chmod 000 a.xml sub");
    world_scan(w, "problem a.xml unreadable\nproblem sub unreadable\n");
    assert_entries(w, "/s/a.xml\n/s/sub/b.xml\n/s/sub/deep/c.xml\n");
    world_scan(w, "");
    folder_do(&w->folder, "chmod 700 a.xml sub");
    world_scan(w, "recovered a.xml\ngone sub\n");
    assert_entries(w, "/s/a.xml\n/s/sub/b.xml\n/s/sub/deep/c.xml\n");
    folder_do(&w->folder, "chmod 000 .");
    world_try(w);
    assert_false(w->out.applied);
    assert_non_null(strstr(w->out.failure, "Permission denied"));
    chmod(w->folder.path, 0700);
    assert_entries(w, "/s/a.xml\n/s/sub/b.xml\n/s/sub/deep/c.xml\n");
}

static void no_permission_keeps_what_is_below(void **state)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct world w;
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(77);
        world_open(&w, 30);
        folder_do(&w.folder, "mkdir -p sub/deep");
        folder_sitemap(&w.folder, "a.xml", "a", "", 9 * DAY);
        folder_sitemap(&w.folder, "sub/b.xml", "b", "", 9 * DAY);
        folder_sitemap(&w.folder, "sub/deep/c.xml", "c", "", 9 * DAY);
        world_scan(&w, "new a.xml\nnew sub/b.xml\nnew sub/deep/c.xml\n");
        no_permission(&w);
        world_close(&w);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_folder_that_is_gone_empties_nothing(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 9 * DAY);
    world_scan(w, "new a.xml\n");
    folder_do(&w->folder, "mv ../$(basename $PWD) $OUT/away");
    world_try(w);
    assert_false(w->out.applied);
    assert_int_equal(w->out.status, CATALOGUE_UNAVAILABLE);
    assert_non_null(strstr(w->out.failure, "No such file"));
    assert_entries(w, "/s/a.xml\n");
    assert_int_equal(mkdir(w->folder.path, 0700), 0);
    world_scan(w, ""); /* there, and empty: the shrink guard holds */
    assert_int_equal(w->out.result.would_remove, 1);
    assert_entries(w, "/s/a.xml\n");
    w->max_removed = 1;
    world_scan(w, "gone a.xml\n");
    assert_entries(w, "");
}

static void removals_are_held_and_approved(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d.xml", i);
        folder_sitemap(&w->folder, name, name, "", 5 * DAY);
    }
    world_try(w);
    folder_do(&w->folder, "rm a0.xml a1.xml a2.xml a3.xml");
    folder_sitemap(&w->folder, "a9.xml", "other", "", 4 * DAY);
    world_scan(w, "changed a9.xml\n");
    assert_int_equal(w->out.result.would_remove, 4);
    char text[4096];
    assert_int_equal(world_list(w, text, sizeof text), 10);
    world_scan(w, "");
    assert_int_equal(w->out.result.would_remove, 4);
    folder_sitemap(&w->folder, "a0.xml", "a0.xml", "", 5 * DAY); /* one is back: 3 of 10 may go */
    world_scan(w, "gone a1.xml\ngone a2.xml\ngone a3.xml\n");
    assert_int_equal(world_list(w, text, sizeof text), 7);
}

static void what_another_owns_is_refused_until_it_is_free(void **state)
{
    struct world *w = *state;
    struct change_result result;
    struct change put = {.kind = CHANGE_ENTRY_PUT,
                         .source = "api",
                         .entry = {.loc = ORIGIN "/s/a.xml", .position = POSITION_NONE}};
    assert_int_equal(catalogue_apply(w->c, &put, &result), CATALOGUE_OK);
    entry_record_done(&result.entry);
    folder_sitemap(&w->folder, "a.xml", "a", "", 5 * DAY);
    folder_sitemap(&w->folder, "b.xml", "b", "", 5 * DAY);
    world_scan(w, "problem a.xml owned-by-another\nnew b.xml\n");
    assert_problem(w, "a.xml", "owned-by-another", false);
    world_scan(w, "");
    assert_int_equal(w->out.counts.read, 0);
    assert_string_equal(w->still, "a.xml owned-by-another\n");
    struct change drop = {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = ORIGIN "/s/a.xml"}};
    assert_int_equal(catalogue_apply(w->c, &drop, &result), CATALOGUE_OK);
    entry_record_done(&result.entry);
    world_scan(w, "recovered a.xml\n");
    assert_int_equal(w->out.counts.read, 0);
    assert_problem(w, "a.xml", NULL, true);
    assert_age(w, "a.xml", 5 * DAY);
}

static void a_place_that_is_none_is_reported_at_once(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 5 * DAY);
    w->settings.index = "/no.xml";
    world_try(w);
    assert_int_equal(w->out.status, CATALOGUE_REFUSED);
    assert_int_equal(w->out.counts.read, 0);
    assert_non_null(strstr(w->out.failure, "/no.xml"));
    w->settings.index = NULL;
    w->settings.url = "https://other.example.com/";
    world_try(w);
    assert_int_equal(w->out.status, CATALOGUE_REFUSED);
    assert_non_null(strstr(w->out.failure, "other.example.com"));
    w->settings.url = ORIGIN "/s/";
    world_scan(w, "new a.xml\n"); /* the deepest index that fits */
}

static void odd_names_are_problems(void **state)
{
    struct world *w = *state;
    folder_do(&w->folder, "touch \"$(printf 'a\\377.xml')\" \"$(printf 'b\\n.xml')\"");
    world_scan(w, "problem a\\xFF.xml bad-name\nproblem b\\x0A.xml bad-name\n");
    world_scan(w, "");
    folder_do(&w->folder, "rm *.xml");
    world_scan(w, "gone a\\xFF.xml\ngone b\\x0A.xml\n");
}

/* Long to read, so that a writer gets its turn meanwhile however few processors there are; never
 * too large, nor of too many URLs. */
#define BUSY_LEAST (20000 * 1500)
#define BUSY_MOST  (BUSY_LEAST + 500000)

struct writing {
    const struct temp_folder *folder;
    atomic_bool writes, stop;
};

static void *write_on(void *context)
{
    struct writing *writing = context;
    char name[128];
    static const char line[] = "https://www.example.com/x\n";
    snprintf(name, sizeof name, "%s/busy.txt", writing->folder->path);
    int fd = open(name, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    while (!atomic_load(&writing->stop)) {
        assert_int_equal(write(fd, line, sizeof line - 1), sizeof line - 1);
        atomic_store(&writing->writes, true);
        struct stat st;
        if (fstat(fd, &st) == 0 && st.st_size > BUSY_MOST)
            assert_int_equal(ftruncate(fd, BUSY_LEAST), 0);
    }
    close(fd);
    return NULL;
}

static void a_file_that_never_rests(void **state)
{
    struct world *w = *state;
    struct writing writing = {.folder = &w->folder};
    pthread_t thread;
    folder_do(&w->folder, "yes https://www.example.com/$(printf '%%01475d' 7) |"
                          " head -n 20000 > busy.txt");
    folder_sitemap(&w->folder, "z.xml", "z", "", 5 * DAY);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &writing), 0);
    while (!atomic_load(&writing.writes))
        usleep(1000);
    world_scan(w, "new z.xml\n");
    assert_true(w->out.again_ms > 0);
    world_scan(w, "problem busy.txt changing\n");
    world_scan(w, "");
    atomic_store(&writing.stop, true);
    pthread_join(thread, NULL);
    world_scan(w, "recovered busy.txt\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

/* A folder for which there is no watch does not cost the others theirs. */
static void a_limit_of_watches_leaves_those_that_exist(void **state)
{
    struct world *w = *state;
    struct tree_watch_news news;
    folder_sitemap(&w->folder, "a.xml", "a", "", 9 * DAY);
    folder_do(&w->folder, "mkdir d");
    w->settings.watch = true;
    w->settings.site_id = 1;
    world_scan(w, "new a.xml\n");
    tree_watch_share(2); /* one for the site */
    assert_false(folder_watch(&w->place));
    world_scan(w, "");
    assert_true(w->out.watch_limit);
    folder_sitemap(&w->folder, "b.xml", "b", "", 9 * DAY);
    folder_read_news(&w->place, &news);
    assert_true(news.changed);
    tree_watch_share(UINT64_MAX);
    world_scan(w, "new b.xml\n");
    assert_false(w->out.watch_limit);
}

/* With one file too many, or one name in memory, nothing changes, and what is listed stays. */
static void more_files_than_a_source_may_have(void **state)
{
    struct world *w = *state;
    folder_sitemap(&w->folder, "a.xml", "a", "", 9 * DAY);
    folder_do(&w->folder, "mkdir d; touch d/other d/one; mkfifo p.xml");
    folder_sitemap(&w->folder, "d/b.xml", "b", "", 9 * DAY);
    w->max_files = 3;
    w->max_names = 6; /* a.xml, d, p.xml; other, one, b.xml */
    world_scan(w, "new a.xml\nnew d/b.xml\nproblem p.xml unreadable\n");
    folder_do(&w->folder, "mkfifo q.xml; rm d/one");
    world_try(w);
    assert_int_equal(w->out.status, CATALOGUE_FULL);
    assert_non_null(strstr(w->out.failure, "more than 3 files match"));
    assert_entries(w, "/s/a.xml\n/s/d/b.xml\n");
    folder_do(&w->folder, "rm q.xml; touch d/one z");
    world_try(w);
    assert_int_equal(w->out.status, CATALOGUE_FULL);
    assert_non_null(strstr(w->out.failure, "a folder has too many names"));
    folder_do(&w->folder, "rm z d/one; mkdir e; touch e/1 e/2"); /* those of d count no longer */
    world_scan(w, "");
}

/* What is free is reserved: the result of a scan of a site's own source is not written. */
static void a_disk_with_its_reserve_alone(void **state)
{
    struct world *w = *state;
    w->alone = true;
    w->site_id = 1;
    folder_do(&w->folder, "for i in $(seq 600); do : >sitemap-$i.xml; done");
    is_reserved = true;
    world_try(w);
    is_reserved = false;
    assert_false(w->out.applied);
    assert_int_equal(w->out.status, CATALOGUE_NO_SPACE);
    assert_non_null(strstr(w->out.failure, "No space left on device"));
    is_reserved = true;
    w->site_id = 0;
    world_try(w);
    is_reserved = false;
    assert_true(w->out.applied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(broken_keeps_its_entry_and_recovers),
        TEST(half_written_is_left_for_once),
        TEST(an_error_page_does_not_cost_the_entry),
        TEST(unreadable_keeps_its_entry),
        cmocka_unit_test(no_permission_keeps_what_is_below),
        TEST(a_folder_that_is_gone_empties_nothing),
        TEST(removals_are_held_and_approved),
        TEST(what_another_owns_is_refused_until_it_is_free),
        TEST(a_place_that_is_none_is_reported_at_once),
        TEST(odd_names_are_problems),
        TEST(a_limit_of_watches_leaves_those_that_exist),
        TEST(more_files_than_a_source_may_have),
        TEST(a_disk_with_its_reserve_alone),
        TEST(a_file_that_never_rests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
