/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The publisher with pages on disk: a restart serves the same bytes without rendering, and nothing
 * but the very state that the catalogue has now is ever served. */
#include "tests/unit/pages/keeper_world.h"

/* In the place of libc's: the catalogue's clock stands still, so that no date distinguishes two
 * states of a page apart. */
time_t time(time_t *out)
{
    if (out != NULL)
        *out = 1767225600;
    return 1767225600;
}

static void a_restart_renders_nothing(void **state)
{
    struct fixture *f = *state;
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
    assert_true(is_stored(f, "1-1.page"));
    while (stats_of(f->publisher).page_store_bytes == 0) /* counted by the keeper's thread */
        usleep(5000);
    /* What was loaded is spliced as what was built is. */
    put_entry(f, "two", NULL);
    await_revision(f->publisher, f->last);
    assert_int_equal(stats_of(f->publisher).segments_rendered, 1);
    struct resource *s = get(f);
    assert_as_rendered(f, s);
    resource_unref(s);
    restart(f);
    assert_true(loads(f));
}

static void a_page_that_changed_meanwhile_is_built(void **state)
{
    struct fixture *f = *state;
    assert_false(loads(f));
    stop(f);
    f->catalogue = open_catalogue(f->path, false); /* as a command does */
    put_entry(f, "one", "2026-01-02");
    catalogue_close(f->catalogue);
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
}

/* The file goes back to an older state, and then, within the same second, through as many revisions
 * as before, with as many entries and bytes: nothing but the stamp differs. */
static void an_older_copy_with_another_future_is_not_taken_for_the_first(void **state)
{
    struct fixture *f = *state;
    char command[512];
    stop(f);
    snprintf(command, sizeof command, "cp %s %s.backup", f->path, f->path);
    shell(command);
    start(f);
    uint64_t revision = put_entry(f, "one", "2026-01-02");
    await_revision(f->publisher, revision);
    struct resource *s = get(f);
    struct {
        uint64_t page_revision;
        int64_t changed_at;
        bool same_second;
        uint32_t entries;
        char etag_gzip[RESOURCE_ETAG_SIZE];
    } first = {s->page_revision, s->changed_at, s->same_second, s->entries, ""};
    strcpy(first.etag_gzip, s->etag_gzip);
    resource_unref(s);
    stop(f);
    assert_true(is_stored(f, "1-1.page"));
    snprintf(command, sizeof command, "rm -f %s-*; cp %s.backup %s", f->path, f->path, f->path);
    shell(command);
    start(f);
    assert_int_equal(put_entry(f, "one", "2026-01-03"), revision);
    await_revision(f->publisher, revision);
    assert_false(loads(f));
    struct resource *second = get(f);
    assert_int_equal(second->page_revision, first.page_revision);
    assert_int_equal(second->changed_at, first.changed_at);
    assert_int_equal(second->same_second, first.same_second);
    assert_int_equal(second->entries, first.entries);
    assert_string_not_equal(second->etag_gzip, first.etag_gzip);
    resource_unref(second);
    restart(f);
    assert_true(loads(f));
}

/* Restored, and nothing written since: the older state's page is not in the store any more. */
static void an_older_copy_is_served_as_it_is(void **state)
{
    struct fixture *f = *state;
    char command[512];
    assert_false(loads(f));
    stop(f);
    snprintf(command, sizeof command, "cp %s %s.backup", f->path, f->path);
    shell(command);
    start(f);
    await_revision(f->publisher, put_entry(f, "two", "2026-01-02"));
    assert_false(loads(f));
    stop(f);
    snprintf(command, sizeof command, "rm -f %s-*; cp %s.backup %s", f->path, f->path, f->path);
    shell(command);
    f->last = 0;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
}

static void another_level_builds_anew(void **state)
{
    struct fixture *f = *state;
    assert_false(loads(f));
    stop(f);
    f->level = 1;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
}

static void a_torn_file_is_built_anew(void **state)
{
    struct fixture *f = *state;
    char path[160];
    snprintf(path, sizeof path, "%s/1-1.page", f->pages);
    assert_false(loads(f));
    static const off_t lens[] = {0, 1, 100, 150, 200};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        stop(f);
        assert_int_equal(truncate(path, lens[i]), 0);
        start(f);
        assert_false(loads(f));
    }
    restart(f); /* each was replaced */
    assert_true(loads(f));
}

static void off_stores_nothing(void **state)
{
    struct fixture *f = *state;
    struct stat found;
    char command[160];
    stop(f);
    snprintf(command, sizeof command, "rm -r %s", f->pages);
    shell(command);
    f->store_bytes = 0;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_false(loads(f));
    assert_int_equal(stat(f->pages, &found), -1);
}

static void a_store_without_room_serves_on(void **state)
{
    struct fixture *f = *state;
    stop(f);
    f->store_bytes = 100;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_false(loads(f));
    assert_int_equal(stats_of(f->publisher).page_store_bytes, 0);
}

static void a_folder_that_cannot_be_made_serves_on(void **state)
{
    struct fixture *f = *state;
    char command[256];
    stop(f);
    snprintf(command, sizeof command, "rm -rf %s; touch %s", f->pages, f->pages);
    shell(command);
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_false(loads(f));
}

static void a_page_that_stood_is_stored(void **state)
{
    struct fixture *f = *state;
    stop(f);
    f->settle_ms = f->least_ms = 20;
    start(f);
    assert_false(loads(f));
    wait_stored(f, "1-1.page", true);
    while (stats_of(f->publisher).page_store_bytes == 0)
        usleep(5000);

    /* A page that goes takes its file with it. */
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = 1}, .max_removed = 1};
    await_revision(f->publisher, apply(f->catalogue, &change));
    wait_stored(f, "1-1.page", false);
    while (stats_of(f->publisher).page_store_bytes > 0)
        usleep(5000);
}

static void an_evicted_page_comes_back_from_the_store(void **state)
{
    struct fixture *f = *state;
    add_index(f->catalogue, ORIGIN "/b/b.xml");
    put_entry(f, "b/two", NULL);
    stop(f);
    f->settle_ms = f->least_ms = 20;
    f->budget = 1; /* one page at a time */
    start(f);
    resource_unref(get(f));
    wait_stored(f, "1-1.page", true);
    resource_unref(get_path(f, "/b/b.xml"));
    while (stats_of(f->publisher).evictions == 0) /* after the reply */
        usleep(5000);
    wait_stored(f, "2-1.page", true);
    assert_int_equal(stats_of(f->publisher).pages_built_cold, 2);
    assert_true(loads(f));
    assert_int_equal(stats_of(f->publisher).segments_rendered, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_restart_renders_nothing),
        TEST(a_page_that_changed_meanwhile_is_built),
        TEST(an_older_copy_with_another_future_is_not_taken_for_the_first),
        TEST(an_older_copy_is_served_as_it_is),
        TEST(another_level_builds_anew),
        TEST(a_torn_file_is_built_anew),
        TEST(off_stores_nothing),
        TEST(a_store_without_room_serves_on),
        TEST(a_folder_that_cannot_be_made_serves_on),
        TEST(a_page_that_stood_is_stored),
        TEST(an_evicted_page_comes_back_from_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
