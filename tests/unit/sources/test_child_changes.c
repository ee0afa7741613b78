/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Changes of served sitemaps: each is found once, whatever polls and IndexNow do at the same time.
 */
#include "tests/unit/sources/folder.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/base/clock.h"
#include "server/sources/child_changes.h"

#define SITE     7
#define VERSIONS 300
#define LOC      "https://example.com/a.xml"

struct world {
    struct temp_folder folder;
    char store[80];
    struct child_store *s;
    unsigned events;
    atomic_bool ended;
};

static void on_changed(void *context, int64_t site_id)
{
    (void)context;
    (void)site_id;
}

static void on_event(void *context, int level, const char *event, const char *detail)
{
    struct world *w = context;
    (void)level;
    (void)detail;
    w->events += strcmp(event, "child-store-recovered") != 0;
}

static int make_world(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    folder_make(&w->folder);
    snprintf(w->store, sizeof w->store, "%s/children", w->folder.path);
    const struct child_store_options options = {.folder = w->store,
                                                .max_bytes = UINT64_MAX,
                                                .changed = on_changed,
                                                .event = on_event,
                                                .context = w};
    w->s = child_store_new(&options);
    assert_non_null(w->s);
    *state = w;
    return 0;
}

static int free_world(void **state)
{
    struct world *w = *state;
    child_store_free(w->s);
    folder_remove(&w->folder);
    free(w);
    return 0;
}

/* A copy of one page URL, the version. */
static void keep(struct world *w, const char *loc, unsigned version)
{
    char text[512];
    const uint64_t hash[2] = {version, version};
    int len = snprintf(text, sizeof text,
                       "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url>"
                       "<loc>https://example.com/%u</loc></url></urlset>",
                       version);
    struct child_copy *copy = child_copy_begin(w->s, SITE, loc, false);
    assert_non_null(copy);
    child_copy_write(copy, text, (size_t)len);
    assert_true(child_copy_keep(copy, hash, 1700000000));
}

struct highest {
    unsigned version;
};

static bool take_version(void *context, const char *loc)
{
    struct highest *h = context;
    unsigned version = (unsigned)strtoul(strrchr(loc, '/') + 1, NULL, 10);
    h->version = version > h->version ? version : h->version;
    return true;
}

/* Sends what there is. False: nothing. */
static bool send(struct world *w, struct highest *h)
{
    struct child_changes_counts counts;
    struct child_changes *changes = child_changes_open(w->s, SITE, clock_now_ms() + 1000, &counts);
    if (changes == NULL)
        return false;
    assert_int_equal(child_changes_read(changes, 0, take_version, h), counts.changed);
    assert_true(child_changes_close(changes, true));
    return true;
}

static void *send_until_ended(void *context)
{
    struct world *w = context;
    struct highest *h = calloc(1, sizeof *h);
    while (!atomic_load(&w->ended))
        send(w, h);
    while (send(w, h)) {
    }
    return h;
}

static void none_is_lost_that_comes_while_others_are_sent(void **state)
{
    struct world *w = *state;
    pthread_t sender;
    struct highest *h;
    keep(w, LOC, 1);
    child_store_want_changes(w->s, SITE);
    assert_int_equal(pthread_create(&sender, NULL, send_until_ended, w), 0);
    for (unsigned version = 2; version <= VERSIONS; version++) {
        keep(w, LOC, version);
        usleep(version % 7 * 300);
    }
    atomic_store(&w->ended, true);
    pthread_join(sender, (void **)&h);
    assert_int_equal(h->version, VERSIONS);
    assert_int_equal(w->events, 0);
    free(h);
}

static void one_that_cannot_be_read_leaves_its_turn_to_others(void **state)
{
    struct world *w = *state;
    struct highest h = {0};
    struct child_changes_counts counts;
    char path[512];
    keep(w, LOC, 1);
    keep(w, "https://example.com/b.xml", 1);
    child_store_want_changes(w->s, SITE);
    keep(w, LOC, 2);
    keep(w, "https://example.com/b.xml", 3);
    /* Whichever is read first: a replaced copy is a link that leads nowhere else. */
    snprintf(path, sizeof path, "%s/%d/changed", w->store, SITE);
    DIR *files = opendir(path);
    const struct dirent *file;
    while ((file = readdir(files)) != NULL && strlen(file->d_name) != CHILD_HASH_CHARS) {
    }
    assert_non_null(file);
    snprintf(path, sizeof path, "%s/%d/changed/%s", w->store, SITE, file->d_name);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    closedir(files);
    struct child_changes *changes = child_changes_open(w->s, SITE, 0, &counts);
    assert_non_null(changes);
    assert_int_equal(child_changes_read(changes, 0, take_version, &h), 2);
    assert_true(child_changes_close(changes, true));
    assert_null(child_changes_open(w->s, SITE, 0, &counts));
    assert_int_equal(lstat(path, &(struct stat){0}), 0); /* it waits until it can be read */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(none_is_lost_that_comes_while_others_are_sent, make_world,
                                        free_world),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_read_leaves_its_turn_to_others,
                                        make_world, free_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
