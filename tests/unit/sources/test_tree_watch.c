/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* inotify over a folder: what is news, what is released, and where the limit is. */
#include "tests/unit/sources/folder.h"

#include <sched.h>
#include <sys/wait.h>

#include "server/sources/folder/beneath.h"
#include "server/sources/folder/folder.h"
#include "server/sources/folder/walk.h"

struct scene {
    struct temp_folder folder;
    struct tree_watch *watch;
    int top;
    bool limit;
    char appeared[256];
};

static bool name_folder(void *context, int fd, const char *path)
{
    struct scene *s = context;
    s->limit |= !tree_watch_folder(s->watch, fd, path);
    return true;
}

static void walk(struct scene *s, const char *start)
{
    static const struct match match;
    struct walk_visit visit = {.folder = name_folder, .context = s};
    struct walk_result result;
    if (*start == '\0')
        tree_watch_walk_begins(s->watch);
    assert_int_equal(walk_folder(s->top, start, &match, &visit, &result), WALK_DONE);
    if (*start == '\0')
        tree_watch_walk_ends(s->watch);
}

static void on_appeared(void *context, const char *path)
{
    struct scene *s = context;
    size_t len = strlen(s->appeared);
    snprintf(s->appeared + len, sizeof s->appeared - len, "%s ", path);
    walk(s, path);
}

static struct tree_watch_news news(struct scene *s)
{
    static const struct match match;
    struct tree_watch_news out;
    s->appeared[0] = '\0';
    tree_watch_read(s->watch, &match, on_appeared, s, &out);
    return out;
}

#define NEWS(s)                                                                                    \
    do {                                                                                           \
        assert_true(news(s).changed);                                                              \
        assert_false(news(s).changed);                                                             \
    } while (0)
#define NO_NEWS(s) assert_false(news(s).changed)

static void what_concerns_the_source_is_news(void **state)
{
    struct scene *s = *state;
    struct temp_folder *f = &s->folder;
    folder_do(f, "mkdir a .hidden; touch a.xml a/b.xml b.html");
    walk(s, "");
    NO_NEWS(s);
    folder_do(f, "echo x >> a.xml");
    NEWS(s);
    folder_do(f, "touch a/b.xml");
    NEWS(s);
    folder_do(f, "ln a.xml a/linked.xml");
    NEWS(s);
    folder_do(f, "chmod 600 a.xml");
    NEWS(s);
    folder_do(f, "rm a/b.xml");
    NEWS(s);
    folder_do(f, "echo x > upload.tmp; echo x >> b.html; cat a.xml > $OUT/copy; ls -R > $OUT/list; "
                 "touch .hidden/x.xml");
    NO_NEWS(s);
    folder_do(f, "mv upload.tmp c.xml");
    NEWS(s);
    folder_do(f, "mv c.xml c.bak");
    NEWS(s);
    folder_do(f, "ln -s c.bak current"); /* may lead anywhere */
    NEWS(s);
}

static void folders_come_and_go(void **state)
{
    struct scene *s = *state;
    struct temp_folder *f = &s->folder;
    walk(s, "");
    folder_do(f, "mkdir -p n/e/w");
    assert_true(news(s).changed);
    assert_string_equal(s->appeared, "n ");
    NO_NEWS(s);
    folder_do(f, "touch n/e/w/a.xml");
    NEWS(s);
    folder_do(f, "mkdir -p $OUT/tree/deep; mv $OUT/tree in");
    assert_true(news(s).changed);
    assert_string_equal(s->appeared, "in ");
    folder_do(f, "touch in/deep/a.xml");
    NEWS(s);
    folder_do(f, "mv in $OUT/back");
    assert_true(news(s).changed);
    walk(s, ""); /* the scan that follows releases it */
    folder_do(f, "touch $OUT/back/deep/b.xml");
    NO_NEWS(s);
    folder_do(f, "mv n m");
    assert_true(news(s).changed);
    assert_string_equal(s->appeared, "m ");
    folder_do(f, "touch m/e/w/b.xml");
    NEWS(s);
    folder_do(f, "rm -r m");
    assert_true(news(s).changed);
    close(s->top); /* an open folder lives on */
    folder_do(f, "rmdir $PWD");
    assert_true(news(s).changed);
    s->top = open("/", O_RDONLY);
    assert_int_equal(mkdir(f->path, 0700), 0);
}

static void too_many_events_are_reported(void **state)
{
    struct scene *s = *state;
    FILE *most = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    long count = 0;
    if (most == NULL || fscanf(most, "%ld", &count) != 1 || count > 100000)
        count = 0;
    if (most)
        fclose(most);
    if (count == 0)
        skip();
    walk(s, "");
    folder_do(&s->folder, "for i in $(seq %ld); do echo > $i.xml; done", count / 2 + 10);
    struct tree_watch_news out = news(s);
    assert_true(out.changed);
    assert_true(out.overflow);
    folder_do(&s->folder, "touch a.xml");
    out = news(s);
    assert_true(out.changed);
    assert_false(out.overflow);
}

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

/* A user namespace has a limit of its own. */
static void limit_to_three(struct scene *s)
{
    char map[32];
    snprintf(map, sizeof map, "0 %u 1", (unsigned)geteuid());
    if (unshare(CLONE_NEWUSER) != 0 || !put("/proc/self/uid_map", map) ||
        !put("/proc/sys/user/max_inotify_watches", "3"))
        _exit(77);
    s->watch = tree_watch_new(s->folder.path, 0);
    walk(s, "");
    _exit(s->limit ? 0 : 1);
}

static void the_limit_is_reported(void **state)
{
    struct scene *s = *state;
    int status;
    folder_do(&s->folder, "mkdir a b c d");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        limit_to_three(s);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

static size_t watched(struct scene *s, char last)
{
    size_t count = 0;
    for (char name = 'a'; name <= last; name++) {
        folder_do(&s->folder, "touch %c/x.xml", name);
        count += news(s).changed;
    }
    return count;
}

/* One site gets at most half of the watches, and keeps those that it has when it gets no more. */
static void sites_have_shares_of_the_watches(void **state)
{
    struct scene *s = *state, other = *s;
    folder_do(&s->folder, "mkdir a b c d e");
    tree_watch_free(s->watch);
    tree_watch_share(6);
    s->watch = tree_watch_new(s->folder.path, 1);
    other.watch = tree_watch_new(s->folder.path, 1 + 256);
    for (unsigned i = 0; i < 2; i++) {
        s->limit = false;
        walk(s, "");
        assert_true(s->limit);
        assert_int_equal(watched(s, 'e'), 2); /* and the top */
    }
    walk(&other, "");
    assert_true(other.limit);
    assert_int_equal(watched(&other, 'e'), 1);
    /* The sources of the configuration have no share, but theirs are counted. */
    struct scene fixed = *s;
    fixed.limit = false;
    fixed.watch = tree_watch_new(s->folder.path, 0);
    walk(&fixed, "");
    assert_false(fixed.limit);
    tree_watch_free(fixed.watch);
    /* What is released is free again. */
    tree_watch_free(s->watch);
    s->watch = NULL;
    other.limit = false;
    walk(&other, "");
    assert_true(other.limit);
    assert_int_equal(watched(&other, 'e'), 2);
    tree_watch_free(other.watch);
    tree_watch_share(UINT64_MAX);
}

static int setup(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    folder_make(&s->folder);
    s->top = beneath_open_top(s->folder.path);
    s->watch = tree_watch_new(s->folder.path, 0);
    assert_non_null(s->watch);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct scene *s = *state;
    tree_watch_free(s->watch);
    close(s->top);
    folder_remove(&s->folder);
    free(s);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_concerns_the_source_is_news), TEST(folders_come_and_go),
        TEST(too_many_events_are_reported),     TEST(the_limit_is_reported),
        TEST(sites_have_shares_of_the_watches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
