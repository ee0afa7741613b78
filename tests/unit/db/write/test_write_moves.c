/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What an index loses to another: by a list and a replace it is held to the shrink guard, whatever
 * caller owns it; by a single registration it is a single removal. */
#include "tests/unit/db/write/write_stream.h"

#define SHOP ORIGIN "/shop/index.xml"

/* `count` entries in the index of the shop; owned by `source`. */
static void fill_shop(struct write_fixture *f, uint64_t count, const char *source)
{
    add_index(f, SHOP);
    struct test_stream s = {.make = make_numbered, .context = "shop", .count = count};
    struct change change = {.kind = CHANGE_BULK, .source = source, .index_name = SHOP};
    assert_int_equal(apply_stream(f, change, &s).created, count);
}

static struct change_result take(struct write_fixture *f, enum change_kind kind, uint64_t count,
                                 int64_t max_removed)
{
    struct test_stream s = {.make = make_numbered, .context = "shop", .count = count};
    struct change change = {
        .kind = kind, .source = "other", .index_name = ORIGIN INDEX, .max_removed = max_removed};
    return apply_stream(f, change, &s);
}

static int64_t in_shop(struct write_fixture *f)
{
    return number_of(f, "SELECT sum(entries) FROM page AS p JOIN sitemap_index AS i"
                        " ON i.id = p.index_id WHERE i.path = '/shop/index.xml'");
}

static void lists_are_held(void **state)
{
    struct write_fixture *f = *state;
    fill_shop(f, 10, "owner");
    static const enum change_kind kinds[] = {CHANGE_BULK, CHANGE_REPLACE};
    for (size_t i = 0; i < 2; i++) {
        int64_t revision = revision_of(f);
        struct change_result r = take(f, kinds[i], 10, MAX_REMOVED_GUARDED);
        assert_int_equal(r.status, CATALOGUE_REFUSED);
        assert_int_equal(r.code, RULE_SHRINK_GUARD);
        assert_int_equal(r.would_remove, 10);
        assert_non_null(strstr(r.detail, "10 entries out of /shop/index.xml"));
        assert_int_equal(r.moved, 0);
        assert_int_equal(take(f, kinds[i], 10, 9).code, RULE_SHRINK_GUARD);
        assert_int_equal(take(f, kinds[i], 4, MAX_REMOVED_GUARDED).code, RULE_SHRINK_GUARD);
        assert_int_equal(revision_of(f), revision);
        assert_int_equal(in_shop(f), 10);
    }
    struct change_result r = take(f, CHANGE_BULK, 3, MAX_REMOVED_GUARDED);
    assert_int_equal(r.moved, 3);
    assert_int_equal(r.updated, 3);
    assert_int_equal(r.removed, 0);
    /* What it lost still counts: bit by bit does not avoid the guard. */
    assert_int_equal(take(f, CHANGE_BULK, 5, MAX_REMOVED_GUARDED).code, RULE_SHRINK_GUARD);
    assert_int_equal(in_shop(f), 7);
    /* Approved, the peak begins again. */
    r = take(f, CHANGE_BULK, 5, 2);
    assert_int_equal(r.moved, 2);
    assert_int_equal(r.unchanged, 3);
    assert_int_equal(take(f, CHANGE_BULK, 6, MAX_REMOVED_GUARDED).moved, 1);
    assert_int_equal(take(f, CHANGE_BULK, 10, 4).moved, 4);
    assert_int_equal(in_shop(f), 0);
}

/* One number approves all that a replace takes, here and elsewhere. */
static void a_replace_counts_both(void **state)
{
    struct write_fixture *f = *state;
    bulk_numbered(f, "root", 10);
    fill_shop(f, 10, "tests");
    struct change_result r = take(f, CHANGE_REPLACE, 10, 19);
    assert_int_equal(r.code, RULE_SHRINK_GUARD);
    assert_int_equal(r.would_remove, 20);
    r = take(f, CHANGE_REPLACE, 10, 20);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.moved, 10);
    assert_int_equal(r.removed, 10);
    assert_int_equal(in_shop(f), 0);
}

static void a_single_move_is_a_single_removal(void **state)
{
    struct write_fixture *f = *state;
    fill_shop(f, 10, "owner");
    for (int i = 0; i < 10; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/shop/%d.xml", i);
        struct change change = put_change(loc, NULL);
        change.entry.index = ORIGIN INDEX;
        struct line line = {.loc = loc, .index = ORIGIN INDEX};
        /* One way or the other: never refused, to the last. */
        struct change_result r =
            i % 2 ? apply_plain(f, &change)
                  : apply_lines(
                        f, (struct change){.kind = CHANGE_BULK, .max_removed = MAX_REMOVED_GUARDED},
                        &line, 1);
        assert_int_equal(r.status, CATALOGUE_OK);
        assert_int_equal(r.moved, 1);
        assert_int_equal(in_shop(f), 9 - i);
        assert_int_equal(number_of(f, "SELECT max(p.entries) FROM index_peak AS p JOIN"
                                      " sitemap_index AS i ON i.id = p.index_id"
                                      " WHERE i.path = '/shop/index.xml'"),
                         9 - i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(lists_are_held),
        TEST(a_replace_counts_both),
        TEST(a_single_move_is_a_single_removal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
