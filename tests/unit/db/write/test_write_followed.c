/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A server's catalogue file that another takes the place of, while it serves and while nobody does:
 * the writer makes it its own before anybody reads it. */
#include "tests/unit/db/write/write_fixture.h"

struct seen {
    char epoch[33];
    uint64_t revision;
};

static struct seen look(struct catalogue *c)
{
    struct catalogue_revisions now;
    struct catalogue_view *v;
    struct seen seen;
    assert_int_equal(catalogue_view_begin(c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_revisions(v, &now), CATALOGUE_OK);
    catalogue_view_end(v);
    seen.revision = now.revision;
    memcpy(seen.epoch, now.epoch, sizeof seen.epoch);
    return seen;
}

static void copy(struct write_fixture *f, const char *to)
{
    run_sql(f, "VACUUM INTO '%q'", to);
}

static void serve(struct write_fixture *f)
{
    f->options.server = true;
    fixture_reopen(f);
}

/* The fixture's own reader, on what the path names now. */
static void read_anew(struct write_fixture *f)
{
    sqlite3_close(f->db);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    sqlite3_busy_timeout(f->db, 10000);
}

static void put_at(struct write_fixture *f, int64_t clock, const char *loc)
{
    fixture_clock = clock;
    assert_int_equal(put_plain(f, loc, NULL).status, CATALOGUE_OK);
}

static void nobody_reads_it_under_the_epoch_that_it_came_with(void **state)
{
    struct write_fixture *f = *state;
    char other[128];
    serve(f);
    snprintf(other, sizeof other, "%s/other.db", f->folder);
    for (int round = 0; round < 20; round++) {
        struct seen before = look(f->c);
        copy(f, other);
        assert_int_equal(rename(other, f->path), 0);
        while (catalogue_wait(f->c, 10000) != CATALOGUE_WAIT_REOPENED)
            continue;
        struct seen first = look(f->c);
        assert_string_not_equal(first.epoch, before.epoch);
        /* What is written is written into it, and nothing of it is taken back. */
        read_anew(f);
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/%d.xml", round);
        assert_int_equal(put_plain(f, loc, NULL).status, CATALOGUE_OK);
        assert_string_equal(look(f->c).epoch, first.epoch);
        assert_int_equal(position_of(f, loc), round);
    }
}

static void a_date_of_the_replaced_file_gives_no_304(void **state)
{
    struct write_fixture *f = *state;
    char other[128];
    serve(f);
    put_at(f, 1700000000, ORIGIN "/a.xml");
    put_at(f, 1700000001, ORIGIN "/b.xml");
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
    snprintf(other, sizeof other, "%s/other.db", f->folder);
    copy(f, other);
    put_at(f, 1700000001, ORIGIN "/c.xml"); /* in the second that the copy has */
    catalogue_close(f->c);
    f->c = NULL;

    assert_int_equal(rename(other, f->path), 0);
    fixture_reopen(f);
    read_anew(f);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 1);
    put_at(f, 1700000005, ORIGIN "/d.xml");
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
}

static void the_same_file_keeps_its_epoch_and_dates(void **state)
{
    struct write_fixture *f = *state;
    serve(f);
    put_at(f, 1700000000, ORIGIN "/a.xml");
    put_at(f, 1700000001, ORIGIN "/b.xml");
    struct seen before = look(f->c);
    fixture_reopen(f);
    assert_string_equal(look(f->c).epoch, before.epoch);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(nobody_reads_it_under_the_epoch_that_it_came_with),
        TEST(a_date_of_the_replaced_file_gives_no_304),
        TEST(the_same_file_keeps_its_epoch_and_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
