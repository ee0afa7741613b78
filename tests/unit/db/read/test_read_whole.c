/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The read side under the real writer: what it writes is found sound, watched, and survives a
 * restore while everything runs. */
#include "tests/unit/db/read/read_fixture.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

#include <pthread.h>
#include <stdatomic.h>

#define S1 "https://www.example.com"

static void put(struct catalogue *c, const char *name, const char *index)
{
    char loc[256];

    snprintf(loc, sizeof loc, S1 "%s", name);
    fixture_apply(
        c, &(struct change){.kind = CHANGE_ENTRY_PUT,
                            .source = "tests",
                            .entry = {.loc = loc, .index = index, .position = POSITION_NONE}});
}

static uint64_t entries_now(struct catalogue *c)
{
    return fixture_revisions(c).entries;
}

struct whole {
    char folder[64], path[96], backup[96];
    struct catalogue *c;
};

static void open_whole(struct whole *w)
{
    scratch_make(w->folder, "sitemapd-whole");
    snprintf(w->path, sizeof w->path, "%s/c.db", w->folder);
    snprintf(w->backup, sizeof w->backup, "%s/backup.db", w->folder);
    struct catalogue_options options = fixture_options(w->path);
    options.server = true;
    w->c = fixture_catalogue(&options);
    fixture_add_site(w->c, S1, "/sitemap_index.xml");
    fixture_apply(
        w->c, &(struct change){.kind = CHANGE_INDEX_ADD, .index_add = {.url = S1 "/shop/i.xml"}});
}

static void close_whole(struct whole *w)
{
    catalogue_close(w->c);
    scratch_remove(w->folder);
}

static void what_the_writer_wrote_is_sound(void **state)
{
    struct whole w;
    char name[64];

    open_whole(&w);
    fixture_assert_sound(w.c);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "/shop/%d&%d", i % 30, i % 30);
        put(w.c, name, i % 3 == 0 ? S1 "/sitemap_index.xml" : NULL);
    }
    for (int i = 0; i < 30; i += 4) {
        snprintf(name, sizeof name, S1 "/shop/%d&%d", i, i);
        fixture_apply(w.c,
                      &(struct change){.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = name}});
    }
    assert_int_equal(entries_now(w.c), 22);
    fixture_assert_sound(w.c);
    fixture_apply(w.c, &(struct change){.kind = CHANGE_INDEX_REMOVE,
                                        .index_remove = {.index_id = 2},
                                        .max_removed = 100});
    fixture_assert_sound(w.c);
    for (int i = 0; i < 30 && entries_now(w.c) > 0; i++) {
        snprintf(name, sizeof name, S1 "/shop/%d&%d", i, i);
        struct change_result result;
        catalogue_apply(
            w.c, &(struct change){.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = name}},
            &result);
        entry_record_done(&result.entry);
    }
    assert_int_equal(entries_now(w.c), 0);
    fixture_assert_sound(w.c);
    fixture_apply(w.c, &(struct change){.kind = CHANGE_SITE_REMOVE,
                                        .site_remove = {.site_id = 1},
                                        .max_removed = 100});
    fixture_assert_sound(w.c);
    close_whole(&w);
}

struct watcher {
    struct catalogue *c;
    atomic_bool stop;
    atomic_uint changed, lost, reopened;
};

static void *watch(void *context)
{
    struct watcher *watcher = context;

    while (!atomic_load(&watcher->stop)) {
        switch (catalogue_wait(watcher->c, 1000)) {
        case CATALOGUE_WAIT_TIMEOUT:
            break;
        case CATALOGUE_WAIT_CHANGED:
            atomic_fetch_add(&watcher->changed, 1);
            break;
        case CATALOGUE_WAIT_LOST:
            atomic_fetch_add(&watcher->lost, 1);
            break;
        case CATALOGUE_WAIT_REOPENED:
            atomic_fetch_add(&watcher->reopened, 1);
            break;
        }
    }
    return NULL;
}

static void reach(atomic_uint *counter, unsigned value)
{
    for (int i = 0; i < 12000 && atomic_load(counter) < value; i++)
        usleep(10000);
    assert_true(atomic_load(counter) >= value);
}

static bool is_writable(struct catalogue *c)
{
    struct change_result result;
    enum catalogue_status status =
        catalogue_apply(c,
                        &(struct change){.kind = CHANGE_ENTRY_PUT,
                                         .source = "tests",
                                         .entry = {.loc = S1 "/after", .position = POSITION_NONE}},
                        &result);

    entry_record_done(&result.entry);
    assert_true(status == CATALOGUE_OK || status == CATALOGUE_UNAVAILABLE);
    return status == CATALOGUE_OK;
}

/* Nobody waits here: the writer notices by itself, and acknowledges nothing. */
static void a_file_that_is_gone_takes_no_writes(void **state)
{
    struct whole w;

    open_whole(&w);
    assert_true(is_writable(w.c));
    assert_int_equal(rename(w.path, w.backup), 0);
    assert_false(is_writable(w.c));
    assert_int_equal(rename(w.backup, w.path), 0);
    close_whole(&w);
}

static void a_backup_is_restored_while_it_runs(void **state)
{
    struct watcher watcher = {0};
    struct whole w;
    pthread_t thread;
    char why[256];

    open_whole(&w);
    put(w.c, "/a", NULL);
    watcher.c = w.c;
    assert_int_equal(pthread_create(&thread, NULL, watch, &watcher), 0);
    for (unsigned round = 1; round <= 3; round++) {
        unsigned changed = atomic_load(&watcher.changed);
        assert_int_equal(catalogue_backup(w.c, w.backup, NULL, NULL, why, sizeof why),
                         CATALOGUE_OK);
        uint64_t backed_up = entries_now(w.c);
        /* What is committed after the backup is in the log, and is not to come back. */
        put(w.c, "/b", NULL);
        put(w.c, "/c", NULL);
        reach(&watcher.changed, changed + 1);
        assert_int_equal(rename(w.backup, w.path), 0);
        reach(&watcher.lost, round);
        reach(&watcher.reopened, round);
        assert_int_equal(entries_now(w.c), backed_up);
        fixture_assert_sound(w.c);
        for (int i = 0; i < 12000 && !is_writable(w.c); i++)
            usleep(10000);
        assert_true(is_writable(w.c));
        fixture_assert_sound(w.c);
    }
    atomic_store(&watcher.stop, true);
    catalogue_wake(w.c);
    pthread_join(thread, NULL);
    close_whole(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_writer_wrote_is_sound),
        cmocka_unit_test(a_file_that_is_gone_takes_no_writes),
        cmocka_unit_test(a_backup_is_restored_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
