/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Replacing an index, or part of it, and the shrink guard. */
#include "tests/unit/db/write/write_stream.h"

static const struct change whole = {
    .kind = CHANGE_REPLACE, .index_name = ORIGIN INDEX, .max_removed = MAX_REMOVED_GUARDED};

static struct change_result replace_numbered(struct write_fixture *f, struct change change,
                                             const char *folder, uint64_t count)
{
    struct test_stream s = {.make = make_numbered, .context = (void *)folder, .count = count};
    return apply_stream(f, change, &s);
}

static void touches_only_what_differs(void **state)
{
    struct write_fixture *f = *state;
    static const struct line before[] = {{ORIGIN "/a.xml", "2026-01-01", 0, NULL},
                                         {ORIGIN "/b.xml", "2026-01-01", 0, NULL},
                                         {ORIGIN "/c.xml", "2026-01-01", 0, NULL},
                                         {ORIGIN "/d.xml", "2026-01-01", 0, NULL}};
    static const struct line after[] = {{ORIGIN "/e.xml", NULL, 0, NULL},
                                        {ORIGIN "/d.xml", NULL, 0, NULL},
                                        {ORIGIN "/c.xml", "2026-02-02", 0, NULL},
                                        {ORIGIN "/a.xml", "2026-01-01", 0, NULL}};
    assert_int_equal(apply_lines(f, whole, LINES(before)).created, 4);
    int64_t revision = revision_of(f);
    struct change_result r = apply_lines(f, whole, LINES(after));
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.unchanged, 2);
    assert_int_equal(r.removed, 1);
    assert_int_equal(revision_of(f), revision + 1);
    assert_int_equal(position_of(f, ORIGIN "/a.xml"), 0);
    assert_int_equal(position_of(f, ORIGIN "/e.xml"), 1); /* what b left */
    assert_int_equal(position_of(f, ORIGIN "/d.xml"), 3);
    r = apply_lines(f, whole, LINES(after));
    assert_int_equal(r.unchanged, 4);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision + 1);
}

static void never_touches_anothers(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/hand.xml", NULL); /* of "tests" */
    put_plain(f, ORIGIN "/hand-2.xml", NULL);
    struct change change = whole;
    change.replace.source = "robot";
    change.max_findings = 64;
    static const struct line first[] = {{ORIGIN "/r1.xml", NULL, 0, NULL},
                                        {ORIGIN "/r2.xml", NULL, 0, NULL},
                                        {ORIGIN "/hand.xml", "2026-01-01", 0, NULL},
                                        {ORIGIN "/hand-2.xml", NULL, 0, NULL}};
    /* All or nothing: what another owns, and would be changed, is refused and says whose it is. */
    struct change_result r = apply_lines(f, change, LINES(first));
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_OWNED_BY_ANOTHER);
    assert_int_equal(r.rejected, 1);
    assert_int_equal(r.findings.items[0].line, 3);
    assert_string_equal(r.findings.items[0].detail,
                        "is owned by \"tests\", in " ORIGIN INDEX "; it was not changed");
    change_result_done(&r);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 2);
    change.skip = true;
    r = apply_lines(f, change, LINES(first));
    assert_int_equal(r.created, 2);
    assert_int_equal(r.unchanged, 1); /* as the list has it */
    assert_int_equal(r.rejected, 1);
    assert_int_equal(r.spared, 2);
    assert_int_equal(r.removed, 0);
    change_result_done(&r);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE lastmod IS NULL"), 4);
    /* The index keeps three of four, but the share of the source only one of two. */
    assert_int_equal(apply_lines(f, change, first, 1).code, RULE_SHRINK_GUARD);
    change.max_removed = 1;
    r = apply_lines(f, change, first, 1);
    assert_int_equal(r.removed, 1);
    assert_int_equal(position_of(f, ORIGIN "/hand-2.xml"), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap JOIN source ON source.id ="
                                  " source WHERE name = 'robot'"),
                     1);
}

static void acts_below_a_prefix(void **state)
{
    struct write_fixture *f = *state;
    bulk_numbered(f, "shop", 3);
    bulk_numbered(f, "blog", 3);
    struct change change = whole;
    change.replace.prefix = ORIGIN "/shop/";
    static const struct line lines[] = {{ORIGIN "/shop/0.xml", NULL, 0, NULL},
                                        {ORIGIN "/shop/9.xml", NULL, 0, NULL}};
    assert_int_equal(apply_lines(f, change, LINES(lines)).would_remove, 2);
    change.max_removed = 2;
    struct change_result r = apply_lines(f, change, LINES(lines));
    assert_int_equal(r.created, 1);
    assert_int_equal(r.removed, 2);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 5);
    static const struct line outside[] = {{ORIGIN "/shop/0.xml", NULL, 0, NULL},
                                          {ORIGIN "/blog/0.xml", NULL, 0, NULL}};
    change.max_findings = 64;
    r = apply_lines(f, change, LINES(outside));
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.findings.items[0].line, 2);
    change_result_done(&r);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 5);
}

static void reports_every_duplicate(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/old.xml", NULL);
    static const struct line lines[] = {
        {ORIGIN "/old.xml", NULL, 0, NULL}, {ORIGIN "/new.xml", NULL, 0, NULL},
        {ORIGIN "/new.xml", NULL, 0, NULL}, {ORIGIN "/old.xml", "2026-01-01", 0, NULL},
        {ORIGIN "/x.xml", NULL, 0, NULL},   {ORIGIN "/x.xml", NULL, 0, NULL},
    };
    for (int skip = 0; skip < 2; skip++) {
        struct change change = whole;
        change.max_findings = 64;
        change.skip = skip == 1;
        struct change_result r = apply_lines(f, change, LINES(lines));
        assert_int_equal(r.status, skip ? CATALOGUE_OK : CATALOGUE_REFUSED);
        assert_int_equal(r.findings.count, 3);
        uint64_t lines_reported = 0;
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(r.findings.items[i].code, RULE_DUPLICATE);
            lines_reported += r.findings.items[i].line;
        }
        change_result_done(&r);
        assert_int_equal(lines_reported, 3 + 4 + 6);
        assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), skip ? 3 : 1);
    }
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE lastmod IS NULL"), 3);
}

static void room_that_comes_free_is_used(void **state)
{
    struct write_fixture *f = *state;
    add_site(f, "https://small.example", 1);
    add_index(f, "https://small.example/index.xml");
    struct change change = whole;
    change.index_name = "https://small.example/index.xml";
    struct line *lines = calloc(50001, sizeof *lines);
    char(*locs)[48] = calloc(50001, sizeof *locs);
    for (int i = 0; i < 50001; i++) {
        snprintf(locs[i], sizeof locs[i], "https://small.example/%d.xml", i);
        lines[i].loc = locs[i];
    }
    assert_int_equal(apply_lines(f, change, lines, 50000).created, 50000);
    /* One more than fits; then another 50,000, one of which is new. */
    assert_int_equal(apply_lines(f, change, lines, 50001).code, RULE_SITE_FULL);
    struct change_result r = apply_lines(f, change, lines + 1, 50000);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.unchanged, 49999);
    assert_int_equal(position_of(f, "https://small.example/50000.xml"), 0);
    free(lines);
    free(locs);
}

static void takes_over_from_another_index(void **state)
{
    struct write_fixture *f = *state;
    int64_t shop = add_index(f, ORIGIN "/shop/index.xml");
    put_plain(f, ORIGIN "/shop/a.xml", "2026-01-01");
    struct change change = whole;
    static const struct line lines[] = {{ORIGIN "/shop/a.xml", NULL, 0, NULL},
                                        {ORIGIN "/b.xml", NULL, 0, NULL}};
    struct change_result r = apply_lines(f, change, LINES(lines));
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.created, 1);
    assert_int_equal(number_of(f,
                               "SELECT count(*) FROM sitemap WHERE address >> 32 = %lld"
                               " AND lastmod = '2026-01-01'",
                               f->index),
                     1);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE index_id = %lld", shop), 0);
}

static void restores_the_positions_of_an_export(void **state)
{
    struct write_fixture *f = *state;
    bulk_numbered(f, "s", 4);
    static const struct line lines[] = {
        {ORIGIN "/s/3.xml", NULL, 0 + 1, NULL}, /* swapped with 0 */
        {ORIGIN "/s/1.xml", NULL, 1 + 1, NULL}, /* where it is */
        {ORIGIN "/new.xml", NULL, 2 + 1, NULL}, /* where 2 was */
        {ORIGIN "/s/0.xml", NULL, 3 + 1, NULL}, {ORIGIN "/s/2.xml", NULL, 777 + 1, NULL},
    };
    struct change_result r = apply_lines(f, whole, LINES(lines));
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.updated, 3);
    assert_int_equal(r.unchanged, 1);
    assert_int_equal(r.created, 1);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(position_of(f, lines[i].loc), lines[i].at - 1);
    r = apply_lines(f, whole, LINES(lines));
    assert_int_equal(r.unchanged, 5);
    assert_false(r.changed);
}

static void refuses_to_shrink(void **state)
{
    struct write_fixture *f = *state;
    replace_numbered(f, whole, "s", 100);
    int64_t revision = revision_of(f);
    /* 30 of 100 may go, 31 may not. */
    struct change_result r = replace_numbered(f, whole, "s", 69);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_SHRINK_GUARD);
    assert_int_equal(r.would_remove, 31);
    assert_int_equal(r.removed, 0);
    assert_int_equal(revision_of(f), revision);
    r = replace_numbered(f, whole, "s", 70);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, 30);
    /* The peak is what counts, not what is there now. */
    r = replace_numbered(f, whole, "s", 69);
    assert_int_equal(r.code, RULE_SHRINK_GUARD);
    assert_int_equal(r.would_remove, 1);
    /* Nothing lost: never held, even below. */
    assert_int_equal(replace_numbered(f, whole, "s", 70).status, CATALOGUE_OK);
    struct change approved = whole;
    approved.max_removed = 0;
    assert_int_equal(replace_numbered(f, approved, "s", 69).code, RULE_SHRINK_GUARD);
    approved.max_removed = 1;
    r = replace_numbered(f, approved, "s", 69);
    assert_int_equal(r.removed, 1);
    /* From there the peak starts again. */
    r = replace_numbered(f, whole, "s", 60);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(replace_numbered(f, whole, "s", 0).code, RULE_SHRINK_GUARD);
}

static void holds_for_a_week(void **state)
{
    struct write_fixture *f = *state;
    replace_numbered(f, whole, "s", 100);
    replace_numbered(f, whole, "s", 75);
    run_sql(f, "UPDATE index_peak SET day = day - 7; UPDATE catalogue SET revision = revision + 1");
    assert_int_equal(replace_numbered(f, whole, "s", 60).code, RULE_SHRINK_GUARD);
    run_sql(f, "UPDATE index_peak SET day = day - 1; UPDATE catalogue SET revision = revision + 1");
    assert_int_equal(replace_numbered(f, whole, "s", 60).removed, 15);
    assert_int_equal(number_of(f, "SELECT count(*) FROM index_peak"), 1);
    assert_int_equal(number_of(f, "SELECT entries FROM index_peak"), 75);
}

static void single_removals_lower_the_peak(void **state)
{
    struct write_fixture *f = *state;
    replace_numbered(f, whole, "s", 10);
    for (int i = 0; i < 8; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/s/%d.xml", 9 - i);
        assert_int_equal(drop(f, loc).removed, 1);
    }
    assert_int_equal(number_of(f, "SELECT entries FROM index_peak"), 2);
    /* Even the last one is never refused. */
    drop(f, ORIGIN "/s/0.xml");
    drop(f, ORIGIN "/s/1.xml");
    assert_int_equal(number_of(f, "SELECT entries FROM index_peak"), 0);
    assert_int_equal(replace_numbered(f, whole, "s", 0).status, CATALOGUE_OK);
}

static void refuses_the_last_entry(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(replace_numbered(f, whole, "s", 0).code, RULE_SHRINK_GUARD);
    struct change dry = whole;
    dry.dry_run = true;
    assert_int_equal(replace_numbered(f, dry, "s", 0).code, RULE_SHRINK_GUARD);
    f->options.shrink_percent = 0;
    fixture_reopen(f);
    /* Off, it lets every list pass but one that names nothing: a failed export's. */
    bulk_numbered(f, "s", 3);
    assert_int_equal(replace_numbered(f, whole, "s", 1).removed, 3);
    assert_int_equal(replace_numbered(f, whole, "s", 0).code, RULE_SHRINK_GUARD);
    struct change approved = whole;
    approved.max_removed = 1;
    assert_int_equal(replace_numbered(f, approved, "s", 0).removed, 1);
}

static void needs_a_known_index(void **state)
{
    struct write_fixture *f = *state;
    struct change change = whole;
    change.index_name = "/none.xml";
    assert_int_equal(replace_numbered(f, change, "s", 1).code, RULE_INDEX_UNKNOWN);
    change = whole;
    change.grant.site_id = f->site + 7;
    assert_true(replace_numbered(f, change, "s", 1).forbidden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(touches_only_what_differs),
        TEST(never_touches_anothers),
        TEST(acts_below_a_prefix),
        TEST(reports_every_duplicate),
        TEST(room_that_comes_free_is_used),
        TEST(takes_over_from_another_index),
        TEST(restores_the_positions_of_an_export),
        TEST(refuses_to_shrink),
        TEST(holds_for_a_week),
        TEST(single_removals_lower_the_peak),
        TEST(refuses_the_last_entry),
        TEST(needs_a_known_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
