/* What a write leaves in the records of its page and of the registry. */
#include "tests/unit/db/write_fixture.h"

static void remembers_a_second_version_in_one_second(void **state)
{
    struct write_fixture *f = *state;
    /* The clock of the catalogue never runs backwards: set it ahead, and all is in one second. */
    run_sql(f, "UPDATE catalogue SET changed_at = 4000000000, revision = revision + 1");
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
    assert_int_equal(number_of(f, "SELECT changed_at FROM page"), 4000000000);
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 1);
    drop(f, ORIGIN "/a.xml");
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 1);
    run_sql(f, "UPDATE catalogue SET changed_at = 4000000001, revision = revision + 1");
    put_plain(f, ORIGIN "/b.xml", NULL);
    assert_int_equal(number_of(f, "SELECT same_second FROM page"), 0);
    assert_int_equal(number_of(f, "SELECT changed_at FROM page"), 4000000001);
}

/* A copy that was put back goes through the same revisions again, a clock that stands through the
 * same times: two states of a page never share a stamp. */
static void each_state_of_a_page_has_its_stamp(void **state)
{
    struct write_fixture *f = *state;
    run_sql(f, "UPDATE catalogue SET changed_at = 4000000000, revision = revision + 1");
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
        TEST(each_state_of_a_page_has_its_stamp),
        TEST(steps_the_registry_revision),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
