/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Bulk registration: all or nothing, the good ones, or for trial. */
#include "tests/unit/db/write/write_stream.h"

static const struct line mixed[] = {
    {ORIGIN "/a.xml", "2026-01-01", 0, NULL},
    {"https://other.example/b.xml", NULL, 0, NULL},
    {ORIGIN "/c.xml", NULL, 0, NULL},
    {ORIGIN "/sitemap_index-7.xml", NULL, 0, NULL},
    {ORIGIN "/a.xml", "2026-01-02", 0, NULL}, /* a later line of the same loc updates */
    {ORIGIN "/d.xml", NULL, UINT32_MAX - 1, NULL},
};

static void check_rejections(struct change_result *r)
{
    static const enum rule_code codes[] = {RULE_SITE_UNKNOWN, RULE_LOC_IS_PAGE, RULE_POSITION};
    static const uint64_t lines[] = {2, 4, 6};
    assert_int_equal(r->findings.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(r->findings.items[i].code, codes[i]);
        assert_int_equal(r->findings.items[i].line, lines[i]);
        assert_non_null(r->findings.items[i].detail);
    }
    change_result_done(r);
}

static void strict_is_all_or_nothing(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/before.xml", NULL);
    int64_t revision = revision_of(f);
    struct change change = {.kind = CHANGE_BULK, .max_findings = 64};
    struct change_result r = apply_lines(f, change, LINES(mixed));
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_SITE_UNKNOWN);
    assert_int_equal(r.rejected, 3);
    assert_int_equal(r.created, 0);
    assert_false(r.changed);
    check_rejections(&r);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(r.revision, revision);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 1);
    /* What was rolled back is forgotten: the next entry takes the lowest free position. */
    put_plain(f, ORIGIN "/after.xml", NULL);
    assert_int_equal(position_of(f, ORIGIN "/after.xml"), 1);
}

static void skip_takes_the_good_ones(void **state)
{
    struct write_fixture *f = *state;
    int64_t revision = revision_of(f);
    struct change change = {.kind = CHANGE_BULK, .skip = true, .max_findings = 64};
    struct change_result r = apply_lines(f, change, LINES(mixed));
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 2);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.rejected, 3);
    check_rejections(&r);
    assert_int_equal(revision_of(f), revision + 1);
    /* Beyond what is to be reported, it is counted. */
    change.max_findings = 1;
    r = apply_lines(f, change, LINES(mixed));
    assert_int_equal(r.created, 0);
    assert_int_equal(r.findings.refused, 3);
    assert_true(r.findings.count <= 1 + 3); /* and an example of each code */
    change_result_done(&r);
}

static void dry_run_counts_and_writes_nothing(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/c.xml", NULL);
    int64_t revision = revision_of(f);
    struct change change = {.kind = CHANGE_BULK, .skip = true, .dry_run = true};
    struct change_result r = apply_lines(f, change, LINES(mixed));
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.unchanged, 1);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.rejected, 3);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 1);
}

static void the_same_again_makes_no_revision(void **state)
{
    struct write_fixture *f = *state;
    assert_int_equal(bulk_numbered(f, "s", 2000).created, 2000);
    int64_t revision = revision_of(f);
    struct change_result r = bulk_numbered(f, "s", 2000);
    assert_int_equal(r.unchanged, 2000);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision);
}

static void an_index_named_for_all_is_a_default(void **state)
{
    struct write_fixture *f = *state;
    int64_t shop = add_index(f, ORIGIN "/shop/index.xml");
    static const struct line lines[] = {{ORIGIN "/shop/a.xml", NULL, 0, NULL},
                                        {ORIGIN "/shop/b.xml", NULL, 0, "/shop/index.xml"}};
    struct change change = {.kind = CHANGE_BULK, .index_name = ORIGIN INDEX};
    assert_int_equal(apply_lines(f, change, LINES(lines)).created, 2);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE index_id = %lld", shop), 1);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE index_id = %lld", f->index), 1);
}

static void rows_that_cannot_be_read_apply_nothing(void **state)
{
    struct write_fixture *f = *state;
    struct test_stream s = {.make = make_numbered, .context = (void *)"s", .count = 2000};
    struct change change = {.kind = CHANGE_BULK, .source = "tests", .rows = rows_of(&s)};
    cut_spools(10000);
    struct change_result r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_UNAVAILABLE);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 0);
}

static void honours_wanted_positions(void **state)
{
    struct write_fixture *f = *state;
    static const struct line lines[] = {
        {ORIGIN "/a.xml", NULL, 3 + 1, NULL},
        {ORIGIN "/b.xml", NULL, 3 + 1, NULL},      /* taken: the lowest free one */
        {ORIGIN "/c.xml", NULL, 0 + 1, NULL},      /* taken by then */
        {ORIGIN "/d.xml", NULL, 120000 + 1, NULL}, /* on page 3 */
        {ORIGIN "/e.xml", NULL, 0, NULL},
    };
    struct change change = {.kind = CHANGE_BULK};
    assert_int_equal(apply_lines(f, change, LINES(lines)).created, 5);
    assert_int_equal(position_of(f, ORIGIN "/a.xml"), 3);
    assert_int_equal(position_of(f, ORIGIN "/b.xml"), 0);
    assert_int_equal(position_of(f, ORIGIN "/c.xml"), 1);
    assert_int_equal(position_of(f, ORIGIN "/d.xml"), 120000);
    assert_int_equal(position_of(f, ORIGIN "/e.xml"), 2);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page"), 2);
}

/* New lines are inserted without a look; those among them that are known must not suffer. */
static void known_locs_among_new_ones(void **state)
{
    struct write_fixture *f = *state;
    add_site(f, "https://small.example", 1);
    int64_t deep = add_index(f, "https://small.example/a/b/index.xml");
    static const struct line first[] = {{"https://small.example/a/b/known.xml", NULL, 0, NULL}};
    static const struct line lines[] = {
        {"https://small.example/a/b/new.xml", NULL, 0, NULL},
        {"https://small.example/a/b/known.xml", "2026-01-01", 0, NULL},
        {"https://small.example/a/b/newer.xml", NULL, 0, NULL},
        {"https://small.example/a/b/newer.xml", "2026-01-01", 0, NULL},
        {ORIGIN "/x.xml", NULL, 0, NULL},
        {"https://small.example/a/b/known.xml", NULL, 99999 + 1, NULL}, /* beyond the cap */
    };
    struct change change = {.kind = CHANGE_BULK};
    assert_int_equal(apply_lines(f, change, LINES(first)).created, 1);
    struct change_result r = apply_lines(f, change, LINES(lines));
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 3);
    assert_int_equal(r.updated, 2);
    assert_int_equal(r.unchanged, 1);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE index_id = %lld", deep), 3);
    assert_int_equal(number_of(f, "SELECT max(serial) = (SELECT serial FROM catalogue)"
                                  " FROM sitemap"),
                     1);
}

static _Atomic unsigned inserts; /* statements */

static int count_insert(unsigned what, void *context, void *statement, void *text)
{
    (void)what, (void)context, (void)text;
    inserts += strstr(sqlite3_sql(statement), " INTO sitemap(") != NULL;
    return 0;
}

static int trace_connection(sqlite3 *db, char **error, const void *api)
{
    (void)error, (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, count_insert, NULL);
}

static void trace_inserts(struct write_fixture *f)
{
    sqlite3_auto_extension((void (*)(void))trace_connection);
    fixture_reopen(f);
    sqlite3_cancel_auto_extension((void (*)(void))trace_connection);
    inserts = 0;
}

/* Some are registered, in the middle of what one statement inserts; every 50th is rejected. */
static void make_sparse(void *context, uint64_t n, struct entry *out, char *text)
{
    (void)context;
    snprintf(text, LOC_MAX_CHARS + 1, "%s/%04" PRIu64 ".xml",
             n % 50 == 49 ? "https://other.example" : ORIGIN, n);
    out->loc = text;
    out->lastmod = "2026-01-02";
    out->lastmod_state = FIELD_SET;
}

static void new_lines_share_statements(void **state)
{
    struct write_fixture *f = *state;
    struct test_stream s = {.make = make_sparse, .count = 1000};
    for (int n = 0; n < 1000; n += 90) { /* 0, 90, … 990: twelve, of which none is rejected */
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/%04d.xml", n);
        put_plain(f, loc, n % 180 == 0 ? "2026-01-02" : NULL);
    }
    f->options.history_keep_ms = 86400000;
    f->options.history_max_bytes = UINT64_MAX;
    trace_inserts(f);
    struct change change = {.kind = CHANGE_BULK, .skip = true, .max_findings = 64};
    struct change_result r = apply_stream(f, change, &s);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.rejected, 20);
    assert_int_equal(r.unchanged, 6);
    assert_int_equal(r.updated, 6);
    assert_int_equal(r.created, 1000 - 20 - 12);
    change_result_done(&r);
    assert_true(inserts > 0 && inserts < 100);
    /* The positions are those that one line after the other gets. */
    assert_int_equal(position_of(f, ORIGIN "/0090.xml"), 1);
    assert_int_equal(position_of(f, ORIGIN "/0001.xml"), 12);
    assert_int_equal(position_of(f, ORIGIN "/0050.xml"), 12 + 48);
    assert_int_equal(position_of(f, ORIGIN "/0998.xml"), 1000 - 20 - 1);
    assert_int_equal(number_of(f, "SELECT max(serial) - min(serial) FROM sitemap"), 979);
    assert_int_equal(number_of(f, "SELECT created FROM history ORDER BY revision DESC LIMIT 1"),
                     1000 - 20 - 12);
}

static void record_progress(void *context, uint64_t done)
{
    uint64_t *last = context;
    assert_true(done >= *last);
    *last = done;
}

static void reports_its_progress(void **state)
{
    struct write_fixture *f = *state;
    uint64_t last = 0;
    struct test_stream s = {.make = make_numbered, .context = (void *)"s", .count = 5500};
    struct change change = {.kind = CHANGE_BULK, .source = "tests", .rows = rows_of(&s)};
    struct change_result r;
    catalogue_apply_with_progress(f->c, &change, record_progress, &last, &r);
    change_result_done(&r);
    assert_int_equal(r.created, 5500);
    assert_int_equal(last, 5000); /* the last thousand that was full */
}

static void a_token_of_another_site_is_told_so(void **state)
{
    struct write_fixture *f = *state;
    struct change change = {.kind = CHANGE_BULK, .grant.site_id = f->site + 1};
    struct change_result r = apply_lines(f, change, mixed, 1);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_true(r.forbidden);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(strict_is_all_or_nothing),
        TEST(skip_takes_the_good_ones),
        TEST(dry_run_counts_and_writes_nothing),
        TEST(the_same_again_makes_no_revision),
        TEST(an_index_named_for_all_is_a_default),
        TEST(rows_that_cannot_be_read_apply_nothing),
        TEST(honours_wanted_positions),
        TEST(known_locs_among_new_ones),
        TEST(new_lines_share_statements),
        TEST(reports_its_progress),
        TEST(a_token_of_another_site_is_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
