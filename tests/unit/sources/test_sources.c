/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sources as they run: settling, subfolders, requests, failures, the end. */
#include "server/base/clock.h"
#include "server/sources/source.h"
#include "tests/unit/sources/running.h"

static bool has_scanned(struct running *r)
{
    struct source_report report;
    assert_true(report_first(r, &report));
    bool done = report.state.scanned_at != 0 && !report.scanning;
    source_report_done(&report);
    return done;
}

/* Waits until there are so many entries. */
static void await_entries(struct running *r, uint64_t count)
{
    char none[1];
    uint64_t found = 0;
    for (int64_t end = clock_now_ms() + LONG_MS; clock_now_ms() < end; usleep(5000)) {
        found = world_list(&r->w, none, sizeof none);
        if (found == count && has_scanned(r))
            return;
    }
    fail_msg("%" PRIu64 " entries, not %" PRIu64 "; %s", found, count, r->events);
}

static void await_revision(struct running *r, uint64_t revision)
{
    for (int64_t end = clock_now_ms() + LONG_MS; clock_now_ms() < end; usleep(5000))
        if (world_revision(&r->w) >= revision)
            return;
    fail_msg("revision %" PRIu64 "; %s", world_revision(&r->w), r->events);
}

static void await_event(struct running *r, const char *event)
{
    for (int64_t end = clock_now_ms() + LONG_MS; clock_now_ms() < end; usleep(5000))
        if (count_events(r, event) > 0)
            return;
    fail_msg("no %s: %s", event, r->events);
}

static void make_files(struct running *r, unsigned count, const char *what)
{
    folder_do(&r->w.folder,
              "for i in $(seq %u); do echo \"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap"
              "/0.9'><url><loc>https://www.example.com/%s$i</loc></url></urlset>\" > f$i.xml;"
              " done",
              count, what);
}

/* Rewrites all files in place, twice, and adds one. How long the folder may have been at rest. */
static int64_t rewrite(struct running *r, unsigned night)
{
    folder_do(
        &r->w.folder,
        "for n in 1 2; do mkdir -p $OUT/$n && cp *.xml $OUT/$n/ && cp f1.xml $OUT/$n/g.xml && "
        "sed -i s,com/,com/%u-$n-, $OUT/$n/*.xml || exit 1; done",
        night);
    int64_t began = clock_now_ms();
    folder_do(&r->w.folder, "cp $OUT/1/*.xml . && cp $OUT/2/*.xml .");
    return clock_now_ms() - began;
}

static void a_nightly_rewrite_is_one_revision(void **state)
{
    struct running *r = *state;
    unsigned night = 0;
    uint64_t revision;
    r->w.settings.settle_ms = 4000; /* a busy machine takes longer than one to rewrite them */
    make_files(r, 300, "a");
    folder_do(&r->w.folder, "touch -d '1 hour ago' *.xml"); /* no second look at what is new */
    start(r);
    await_entries(r, 300);
    for (revision = world_revision(&r->w); rewrite(r, ++night) >= r->w.settings.settle_ms;
         revision = world_revision(&r->w)) {
        /* This program was kept from running for so long: it has shown nothing. */
        assert_in_range(night, 1, 20);
        usleep(8000000);
    }
    await_revision(r, revision + 1);
    await_entries(r, 301);
    assert_int_equal(world_revision(&r->w), revision + 1);
    usleep(5200000);
    assert_int_equal(world_revision(&r->w), revision + 1);
}

/* A rescan comes due while the source's thread is kept from running, and beside it a file is
 * written: what counts is that the folder is not at rest. */
static void nothing_goes_before_the_rest(void **state)
{
    struct running *r = *state;
    r->w.settings.settle_ms = 800;
    r->w.settings.rescan_ms = 100;
    atomic_store(&r->hold, true);
    start(r);
    await_applied(r, 1);
    usleep(200000);
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    int64_t released = clock_now_ms();
    atomic_store(&r->hold, false);
    await_applied(r, 2);
    assert_true(atomic_load(&r->applied_at) - released >= 800);
    assert_entries(&r->w, "/s/a.xml\n");
}

static void a_folder_without_rest_is_scanned_all_the_same(void **state)
{
    struct running *r = *state;
    r->w.settings.settle_ms = 100;
    start(r);
    await_entries(r, 0);
    uint64_t before = world_revision(&r->w);
    for (int64_t end = clock_now_ms() + LONG_MS;
         clock_now_ms() < end && world_revision(&r->w) == before; usleep(20000))
        folder_sitemap(&r->w.folder, "a.xml", "a", "", 100);
    assert_true(world_revision(&r->w) > before);
}

static void new_trees_are_followed(void **state)
{
    struct running *r = *state;
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    start(r);
    await_entries(r, 1);
    folder_do(&r->w.folder, "mkdir -p n/e/w");
    usleep(150000);
    folder_sitemap(&r->w.folder, "n/e/w/b.xml", "b", "", DAY);
    await_entries(r, 2);
    folder_do(&r->w.folder, "mkdir $OUT/t; cp -a a.xml $OUT/t/; mv $OUT/t t");
    await_entries(r, 3);
    folder_sitemap(&r->w.folder, "t/c.xml", "c", "", DAY);
    await_entries(r, 4);
    folder_do(&r->w.folder, "mv t $OUT/t; touch $OUT/t/x.xml");
    await_event(r, "source-removals-held");
    folder_do(&r->w.folder, "mv $OUT/t t");
    await_entries(r, 4);
}

static void on_scanned(void *context, const struct change_result *result, const char *failure)
{
    struct running *r = context;
    pthread_mutex_lock(&r->lock);
    r->scanned++;
    r->succeeded = result != NULL;
    snprintf(r->failure, sizeof r->failure, "%s", failure);
    pthread_mutex_unlock(&r->lock);
}

static unsigned scanned(struct running *r)
{
    pthread_mutex_lock(&r->lock);
    unsigned count = r->scanned;
    pthread_mutex_unlock(&r->lock);
    return count;
}

static void a_scan_is_made_on_request(void **state)
{
    struct running *r = *state;
    r->w.settings.watch = false;
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    start(r);
    await_entries(r, 1);
    folder_sitemap(&r->w.folder, "b.xml", "b", "", DAY);
    folder_do(&r->w.folder, "rm a.xml");
    sources_scan(r->s, 1, MAX_REMOVED_GUARDED, false, on_scanned, r);
    sources_scan(r->s, 1, 1, false, on_scanned, r);
    await_entries(r, 1);
    for (int64_t end = clock_now_ms() + LONG_MS; scanned(r) < 2 && clock_now_ms() < end;)
        usleep(5000);
    assert_int_equal(scanned(r), 2);
    assert_true(r->succeeded);
    assert_entries(&r->w, "/s/b.xml\n");
    struct source_report report;
    assert_true(report_first(r, &report));
    assert_int_equal(report.watching, SOURCE_RESCANS_ONLY);
    source_report_done(&report);
}

/* The health at the moment of an event, which a scan brings. */
static struct source_health seen_at(struct running *r, const char *event, bool scans)
{
    unsigned before = scanned(r), events = count_events(r, event);
    int64_t end = clock_now_ms() + LONG_MS;
    if (scans)
        sources_scan(r->s, 1, MAX_REMOVED_GUARDED, false, on_scanned, r);
    while ((count_events(r, event) == events || scanned(r) < before + scans) &&
           clock_now_ms() < end)
        usleep(5000);
    pthread_mutex_lock(&r->lock);
    struct source_health seen = r->seen;
    pthread_mutex_unlock(&r->lock);
    return seen;
}

static void what_is_logged_is_seen(void **state)
{
    struct running *r = *state;
    r->w.settings.watch = false;
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    folder_sitemap(&r->w.folder, "b.xml", "b", "", DAY);
    start(r);
    await_entries(r, 2);
    atomic_store(&r->looked_for, "source-file-problem");
    folder_write(&r->w.folder, "c.xml", "<urlset>\n<url></urlset>");
    folder_date(&r->w.folder, "c.xml", DAY);
    assert_int_equal(seen_at(r, "source-file-problem", true).state.quarantined, 1);
    atomic_store(&r->looked_for, "source-removals-held");
    folder_do(&r->w.folder, "rm a.xml b.xml");
    assert_int_equal(seen_at(r, "source-removals-held", true).state.held, 2);
    atomic_store(&r->looked_for, "source-scan-failed");
    folder_do(&r->w.folder, "mv $PWD $OUT/away");
    struct source_health seen = seen_at(r, "source-scan-failed", true);
    assert_true(seen.failing);
    assert_non_null(strstr(seen.failure, "No such file"));
    atomic_store(&r->looked_for, "source-scan-works");
    assert_int_equal(mkdir(r->w.folder.path, 0700), 0);
    seen = seen_at(r, "source-scan-works", false); /* it tries again by itself */
    assert_false(seen.failing);
    assert_string_equal(seen.failure, "");
    atomic_store(&r->looked_for, NULL);
}

static void rescans_find_what_is_not_watched(void **state)
{
    struct running *r = *state;
    r->w.settings.watch = false;
    r->w.settings.rescan_ms = 50;
    start(r);
    await_entries(r, 0);
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    await_entries(r, 1);
}

static void a_missing_folder_is_waited_for(void **state)
{
    struct running *r = *state;
    struct source_report report;
    folder_do(&r->w.folder, "rmdir $PWD");
    start(r);
    await_event(r, "source-scan-failed");
    assert_true(report_first(r, &report));
    assert_int_not_equal(report.failed_at, 0);
    assert_non_null(strstr(report.failure, "No such file"));
    source_report_done(&report);
    assert_int_equal(mkdir(r->w.folder.path, 0700), 0);
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    await_entries(r, 1);
    assert_int_equal(count_events(r, "source-scan-failed"), 1);
    await_event(r, "source-scan-works");
    /* Now it is watched. */
    folder_sitemap(&r->w.folder, "b.xml", "b", "", DAY);
    await_entries(r, 2);
}

static void a_replaced_folder_is_noticed(void **state)
{
    struct running *r = *state;
    char link[128];
    snprintf(link, sizeof link, "%s/current", r->w.folder.path);
    folder_do(&r->w.folder, "mkdir 1 2; ln -s 1 current");
    folder_sitemap(&r->w.folder, "1/a.xml", "a", "", DAY);
    folder_sitemap(&r->w.folder, "2/a.xml", "a", "", DAY);
    folder_sitemap(&r->w.folder, "2/b.xml", "b", "", DAY);
    r->w.settings.directory = link;
    start(r);
    await_entries(r, 1);
    folder_do(&r->w.folder, "ln -s 2 next; mv -T next current");
    await_entries(r, 2);
}

static void problems_are_reported(void **state)
{
    struct running *r = *state;
    struct source_report report;
    for (unsigned i = 0; i < SOURCE_MAX_PROBLEMS + 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%03u.xml", i);
        folder_write(&r->w.folder, name, "<urlset>\n<url></urlset>");
        folder_date(&r->w.folder, name, DAY);
    }
    folder_sitemap(&r->w.folder, "good.xml", "a", "", DAY);
    start(r);
    await_entries(r, 1);
    await_applied(r, 1); /* which is reported a moment after it is written */
    assert_true(report_first(r, &report));
    assert_int_equal(report.state.quarantined, SOURCE_MAX_PROBLEMS + 20);
    assert_int_equal(report.problems_listed, SOURCE_MAX_PROBLEMS);
    assert_string_equal(report.problems[0].path, "f000.xml");
    assert_string_equal(report.problems[0].code, "malformed-xml");
    assert_int_equal(report.problems[0].line, 2);
    assert_int_not_equal(report.problems[0].since, 0);
    assert_int_equal(report.state.files, SOURCE_MAX_PROBLEMS + 21);
    assert_int_equal(report.watching, SOURCE_WATCHES);
    assert_string_equal(report.name, "products");
    source_report_done(&report);
}

static void the_end_is_quick(void **state)
{
    struct running *r = *state;
    make_files(r, 3000, "a");
    start(r);
    usleep(10000);
    sources_scan(r->s, 1, MAX_REMOVED_GUARDED, false, on_scanned, r);
    int64_t began = clock_now_ms();
    sources_stop(r->s);
    r->s = NULL;
    assert_true(clock_now_ms() - began < 20000);
    assert_int_equal(r->scanned, 1);
    if (!r->succeeded)
        assert_true(strlen(r->failure) > 5);
}

static void what_flips_does_not_fill_the_log(void **state)
{
    struct running *r = *state;
    r->w.settings.watch = false;
    r->w.settings.settle_ms = 0;
    start(r);
    await_applied(r, 1);
    int64_t end = clock_now_ms() + LONG_MS;
    for (unsigned round = 1; count_events(r, "the rest is not logged") == 0; round++) {
        assert_true(clock_now_ms() < end);
        for (char name = 'a'; name < 'u'; name++) {
            char path[] = {name, '.', 'x', 'm', 'l', '\0'};
            if (round % 2 == 0)
                folder_sitemap(&r->w.folder, path, path, "", 9 * DAY);
            else
                folder_write(&r->w.folder, path, "<urlset><url></urlset>");
        }
        sources_scan(r->s, 1, MAX_REMOVED_GUARDED, false, on_scanned, r);
        while (scanned(r) < round && clock_now_ms() < end)
            usleep(1000);
    }
}

static void folders_of_one_site_are_scanned_one_at_a_time(void **state)
{
    struct running *r = *state;
    struct source first = {.settings.site_id = 1}, second = first;
    struct source other = {.settings.site_id = 2}, fixed[2] = {0}; /* of the configuration */
    folder_sitemap(&r->w.folder, "a.xml", "a", "", 100);
    r->w.settings.site_id = 1;
    assert_true(source_try_turn(&first));
    assert_true(source_try_turn(&other));
    assert_true(source_try_turn(&fixed[0]));
    assert_true(source_try_turn(&fixed[1]));
    assert_false(source_try_turn(&second));
    start(r);
    source_end_turn(&other);
    source_end_turn(&fixed[0]);
    source_end_turn(&fixed[1]);
    assert_int_equal(count_events(r, "source-scan-failed"), 0);
    source_end_turn(&first);
    /* Nobody has made it with the API, so the catalogue rejects its scan. */
    for (int64_t end = clock_now_ms() + LONG_MS; count_events(r, "source-scan-failed") == 0;) {
        assert_true(clock_now_ms() < end);
        usleep(1000);
    }
    /* One that waits for its turn ends all the same. */
    for (int64_t end = clock_now_ms() + LONG_MS; !source_try_turn(&first);) {
        assert_true(clock_now_ms() < end);
        usleep(1000);
    }
    sources_scan(r->s, 1, MAX_REMOVED_GUARDED, false, on_scanned, r);
    sources_stop(r->s);
    r->s = NULL;
    source_end_turn(&first);
    assert_string_equal(r->failure, "the source is being stopped");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_nightly_rewrite_is_one_revision),
        TEST(nothing_goes_before_the_rest),
        TEST(a_folder_without_rest_is_scanned_all_the_same),
        TEST(new_trees_are_followed),
        TEST(a_scan_is_made_on_request),
        TEST(what_is_logged_is_seen),
        TEST(rescans_find_what_is_not_watched),
        TEST(a_missing_folder_is_waited_for),
        TEST(a_replaced_folder_is_noticed),
        TEST(problems_are_reported),
        TEST(the_end_is_quick),
        TEST(what_flips_does_not_fill_the_log),
        TEST(folders_of_one_site_are_scanned_one_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
