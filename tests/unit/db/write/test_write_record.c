/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a write leaves in the records of its page and of the registry. */
#include "tests/unit/db/write/write_fixture.h"

static void remembers_a_second_version_in_one_second(void **state)
{
    struct write_fixture *f = *state;
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
    assert_int_equal(number_of(f, "SELECT changed_at FROM page"), 4000000000);
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 1);
    drop(f, ORIGIN "/a.xml");
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 1);
    fixture_clock = 4000000001;
    put_plain(f, ORIGIN "/b.xml", NULL);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
    assert_int_equal(number_of(f, "SELECT changed_at FROM page"), 4000000001);
}

static void remove_index(struct write_fixture *f)
{
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE,
        .index_remove = {.index_id = number_of(f, "SELECT max(id) FROM sitemap_index")},
        .max_removed = 99};
    assert_int_equal(apply(f, &change).status, CATALOGUE_OK);
}

/* Another index at the address of one that was removed: its page may have borne the same date. */
static void remembers_what_was_there_in_that_second(void **state)
{
    struct write_fixture *f = *state;
    const char *last = "SELECT same_second FROM page ORDER BY revision DESC LIMIT 1";
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", NULL);
    remove_index(f);
    add_index(f, ORIGIN "/sitemap_index.xml");
    put_plain(f, ORIGIN "/b.xml", NULL);
    assert_int_equal(number_of(f, last), 1);
    fixture_clock = 4000000001;
    put_plain(f, ORIGIN "/c.xml", NULL);
    assert_int_equal(number_of(f, last), 0);
    remove_index(f);
    fixture_clock = 4000000002;
    add_index(f, ORIGIN "/sitemap_index.xml");
    put_plain(f, ORIGIN "/d.xml", NULL);
    assert_int_equal(number_of(f, last), 0);
    assert_int_equal(number_of(f, "SELECT max(changed_at) FROM page"), 4000000002);
}

/* A host that another site answered for, by an alias or because it was alone, gets a site of its
 * own: what was reported there may have borne the same date. */
static void remembers_what_other_pages_reported_in_that_second(void **state)
{
    struct write_fixture *f = *state;
    const char *last = "SELECT same_second FROM page ORDER BY revision DESC LIMIT 1";
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(number_of(f, last), 0);
    add_site(f, "https://shop.example.com", 0);
    add_index(f, "https://shop.example.com/sitemap_index.xml");
    put_plain(f, "https://shop.example.com/a.xml", NULL);
    assert_int_equal(number_of(f, last), 1);
    fixture_clock = 4000000001;
    put_plain(f, "https://shop.example.com/b.xml", NULL);
    assert_int_equal(number_of(f, last), 0);
}

/* A clock that was set back goes through seconds that were reported already. */
static void remembers_a_date_from_before_the_clock_went_back(void **state)
{
    struct write_fixture *f = *state;
    const char *flag = "SELECT same_second FROM page";
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", NULL);
    fixture_clock = 4000000002;
    put_plain(f, ORIGIN "/a.xml", "2026-01-01");
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    assert_int_equal(number_of(f, "SELECT changed_at FROM page"), 4000000000);
    assert_int_equal(number_of(f, flag), 4000000002);
    fixture_clock = 4000000002;
    put_plain(f, ORIGIN "/a.xml", "2026-01-03");
    assert_int_equal(number_of(f, flag), 4000000002);
    fixture_clock = 4000000003;
    put_plain(f, ORIGIN "/a.xml", "2026-01-04");
    assert_int_equal(number_of(f, flag), 0);
}

/* A clock that was ahead leaves nothing behind that would have to wait for it. */
static void times_come_back_to_the_clock(void **state)
{
    struct write_fixture *f = *state;
    char peak[96];
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", NULL);
    put_plain(f, ORIGIN "/b.xml", NULL);
    fixture_clock = 2000000000;
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    assert_int_equal(number_of(f, "SELECT changed_at FROM catalogue"), 2000000000);
    assert_int_equal(number_of(f, "SELECT changed_at FROM page"), 2000000000);
    assert_int_equal(number_of(f, "SELECT changed_at FROM sitemap WHERE loc LIKE '%%a.xml'"),
                     2000000000);
    assert_int_equal(catalogue_changed_at(f->c), 2000000000);
    /* What the guard measures by is of today, and ages from now on. */
    assert_int_equal(number_of(f, "SELECT count(*) FROM index_peak"), 1);
    snprintf(peak, sizeof peak, "SELECT entries FROM index_peak WHERE day = %d",
             2000000000 / 86400);
    assert_int_equal(number_of(f, peak), 2);
}

/* A copy that was restored goes through the same revisions again, a clock that stands through the
 * same times: two states of a page never share a stamp. */
static void each_state_of_a_page_has_its_stamp(void **state)
{
    struct write_fixture *f = *state;
    fixture_clock = 4000000000;
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    put_plain(f, ORIGIN "/a.xml", "2026-01-03");
    run_sql(f, "CREATE TABLE old AS SELECT * FROM page");
    int64_t revision = revision_of(f);
    put_plain(f, ORIGIN "/a.xml", "2026-01-03"); /* nothing new */
    assert_int_equal(number_of(f, "SELECT count(*) FROM page JOIN old USING (stamp)"), 1);
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    run_sql(f, "UPDATE page SET revision = %lld", (long long)revision);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page JOIN old USING (index_id, number,"
                                  " entries, bytes, changed_at, same_second, revision)"),
                     1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page JOIN old USING (stamp)"), 0);
    run_sql(f, "DROP TABLE old; UPDATE page SET revision = %lld", (long long)revision + 1);
}

static void steps_the_registry_revision(void **state)
{
    struct write_fixture *f = *state;
    const char *sql = "SELECT registry_revision FROM catalogue";
    int64_t before = number_of(f, sql);
    put_plain(f, ORIGIN "/a.xml", NULL); /* a page comes to have entries */
    assert_int_equal(number_of(f, sql), before + 1);
    put_plain(f, ORIGIN "/b.xml", NULL);
    drop(f, ORIGIN "/a.xml");
    assert_int_equal(number_of(f, sql), before + 1);
    drop(f, ORIGIN "/b.xml"); /* and ceases to */
    assert_int_equal(number_of(f, sql), before + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(remembers_a_second_version_in_one_second),
        TEST(remembers_what_was_there_in_that_second),
        TEST(remembers_what_other_pages_reported_in_that_second),
        TEST(remembers_a_date_from_before_the_clock_went_back),
        TEST(times_come_back_to_the_clock),
        TEST(each_state_of_a_page_has_its_stamp),
        TEST(steps_the_registry_revision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
