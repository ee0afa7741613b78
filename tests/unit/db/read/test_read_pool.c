/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The connections behind views: shared by many, and opened again where the file is another. */
#include "tests/unit/db/read/read_sites.h"

#include <pthread.h>

struct reader {
    struct catalogue *c;
    atomic_bool *stop;
};

static void *read_and_compare(void *context)
{
    struct reader *reader = context;
    uint64_t last = 0;

    while (!atomic_load(reader->stop)) {
        struct catalogue_revisions revisions;
        struct page_record page;
        struct catalogue_view *v = begin(reader->c);
        assert_int_equal(catalogue_view_revisions(v, &revisions), CATALOGUE_OK);
        assert_true(revisions.revision >= last);
        last = revisions.revision;
        assert_int_equal(catalogue_view_page(v, 1, 1, &page), CATALOGUE_OK);
        assert_int_equal(page.entries, revisions.revision);
        assert_int_equal(revisions.entries, revisions.revision);
        catalogue_view_end(v);
    }
    return NULL;
}

/* More threads than connections, beside a writer: each sees one revision, none goes back. */
static void many_readers_share_the_pool(void **state)
{
    enum { READERS = CATALOGUE_VIEWS + 4, WRITES = 60 };
    pthread_t thread[READERS];
    atomic_bool stop = false;
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    fixture_entry(f.db, 1, 0, S1 "/0", NULL);
    struct reader reader = {&c, &stop};
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_and_compare, &reader), 0);
    for (uint32_t i = 1; i < WRITES; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, S1 "/%u", i);
        fixture_entry(f.db, 1, i, loc, NULL);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(thread[i], NULL);
    close_all(&f, &c);
}

static void a_lost_file_has_no_views_until_renewed(void **state)
{
    struct catalogue_revisions revisions;
    struct file_identity identity;
    struct catalogue_view *v, *none;
    struct catalogue c;
    struct fixture f;
    char other[128];

    open_all(&f, &c);
    fixture_entry(f.db, 1, 0, S1 "/a", NULL);
    v = begin(&c);
    view_pool_lose(c.views);
    assert_int_equal(catalogue_view_begin(&c, &none), CATALOGUE_UNAVAILABLE);
    assert_null(none);
    assert_int_equal(catalogue_view_revisions(v, &revisions), CATALOGUE_OK); /* still reads */
    catalogue_view_end(v);

    snprintf(other, sizeof other, "%s.new", f.path);
    connection_close(fixture_make_file(other));
    connection_close(f.db);
    assert_int_equal(rename(other, f.path), 0);
    snprintf(other, sizeof other, "%s-wal", f.path);
    unlink(other); /* the watch's part: the old file's log is not the new one's */
    assert_true(file_identity_read(f.path, &identity));
    view_pool_renew(c.views, &identity);
    v = begin(&c);
    assert_int_equal(catalogue_view_revisions(v, &revisions), CATALOGUE_OK);
    assert_int_equal(revisions.revision, 0);
    catalogue_view_end(v);

    /* A connection is never opened to a file that nobody vouched for. */
    identity.inode++;
    view_pool_renew(c.views, &identity);
    assert_int_equal(catalogue_view_begin(&c, &none), CATALOGUE_UNAVAILABLE);
    handle_close(&c);
    f.db = NULL;
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_readers_share_the_pool),
        cmocka_unit_test(a_lost_file_has_no_views_until_renewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
