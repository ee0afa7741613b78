/* CHANGE_CHECK and the views of its rows: what is watched, and dates by compare and set. */
#include "tests/unit/db/write/scan_fixture.h"

static struct change_result check(struct write_fixture *f, const struct check_write *writes,
                                  size_t count)
{
    return apply(f, &(struct change){.kind = CHANGE_CHECK, .checks = writes, .check_count = count});
}

struct seen {
    size_t count;
    char loc[64];
    int64_t id, site;
};

static bool see(void *context, int64_t site, const char *loc)
{
    struct seen *s = context;
    s->count++;
    s->site = site;
    snprintf(s->loc, sizeof s->loc, "%s", loc);
    return true;
}

static bool see_left(void *context, const struct check_named *row)
{
    struct seen *s = context;
    if (row->named)
        return true;
    s->count++;
    s->id = row->id;
    return true;
}

static struct check_record row_of(struct write_fixture *f, int64_t site, const char *loc)
{
    struct catalogue_view *v;
    struct check_record record;
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_check_by_loc(v, site, loc, &record), CATALOGUE_OK);
    record.loc = record.source = NULL;
    catalogue_view_end(v);
    return record;
}

/* What the source's list names and has no row yet. */
static struct seen unwatched(struct write_fixture *f, bool files, int64_t site)
{
    struct catalogue_view *v;
    struct seen s = {0};
    char last[LOC_MAX_CHARS + 1];
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    if (files)
        assert_int_equal(catalogue_view_unwatched_files(v, SOURCE, NULL, 100, last, see, &s),
                         CATALOGUE_OK);
    else
        assert_int_equal(catalogue_view_unwatched_entries(v, site, NULL, 100, last, see, &s),
                         CATALOGUE_OK);
    catalogue_view_end(v);
    return s;
}

static struct seen left(struct write_fixture *f)
{
    struct catalogue_view *v;
    struct seen s = {0};
    int64_t last;
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_checks_named(v, 0, 100, &last, see_left, &s), CATALOGUE_OK);
    catalogue_view_end(v);
    return s;
}

static void watch(struct write_fixture *f, int64_t site, const char *source, const char *loc)
{
    struct check_write add = {
        .kind = CHECK_ADD,
        .record = {
            .loc = loc, .source = source, .site_id = site, .next_at = 500, .interval_s = 21600}};
    struct change_result r = check(f, &add, 1);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_false(r.changed);
}

static void a_watched_file_is_dated_where_it_is_as_it_was(void **state)
{
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2020-01-01",
             .claim = "2020-01-01");
    struct seen s = unwatched(f, true, 0);
    assert_int_equal(s.count, 1);
    assert_string_equal(s.loc, ROOT "a.xml");
    watch(f, s.site, SOURCE, ROOT "a.xml");
    assert_int_equal(unwatched(f, true, 0).count, 0);
    struct check_record row = row_of(f, s.site, ROOT "a.xml");
    assert_int_equal(row.state, CHECK_NEW);
    assert_int_equal(row.next_at, 500);

    /* Nothing moved: no revision. */
    struct check_write result = {.kind = CHECK_RESULT, .record = row};
    result.record.state = CHECK_GOOD;
    result.record.etag = "\"x\"";
    result.record.hash[0] = 9;
    result.record.urls = 3;
    struct change_result r = check(f, &result, 1);
    uint64_t revision = r.revision;
    assert_false(r.changed);
    assert_int_equal(row_of(f, s.site, ROOT "a.xml").hash[0], 9);
    assert_int_equal(kept(f, ROOT "a.xml").file.hash[0], 9);

    result.lastmod_from = "2020-01-01";
    result.lastmod_to = "2021-01-01";
    r = check(f, &result, 1);
    assert_true(r.changed);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.revision, revision + 1);
    assert_lastmod(f, ROOT "a.xml", "2021-01-01");
    assert_string_equal(kept(f, ROOT "a.xml").lastmod, "2021-01-01");

    /* It is not what was read any more. */
    result.lastmod_to = "2022-01-01";
    assert_false(check(f, &result, 1).changed);
    assert_lastmod(f, ROOT "a.xml", "2021-01-01");

    /* In a frozen index the date waits, and the content is to be found anew. */
    run_sql(f, "UPDATE sitemap_index SET frozen = 1");
    run_sql(f, "UPDATE catalogue SET registry_revision = registry_revision + 1,"
               " revision = revision + 1");
    result.lastmod_from = "2021-01-01";
    r = check(f, &result, 1);
    assert_int_equal(r.frozen, 1);
    assert_lastmod(f, ROOT "a.xml", "2021-01-01");
    assert_int_equal(row_of(f, s.site, ROOT "a.xml").hash[0], 0);
}

static void what_nothing_names_is_left(void **state)
{
    struct write_fixture *f = *state;
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml");
    struct seen s = unwatched(f, true, 0);
    watch(f, s.site, SOURCE, ROOT "a.xml");
    assert_int_equal(left(f).count, 0);
    struct change change = scan_change;
    change.max_removed = 1;
    apply_files(f, change,
                &(struct scan_files){&(struct source_file){.path = ROOT "a.xml",
                                                           .loc = ROOT "a.xml",
                                                           .state = SOURCE_FILE_GONE},
                                     1});
    struct seen gone = left(f);
    assert_int_equal(gone.count, 1);
    struct check_write drop_it = {.kind = CHECK_REMOVE, .record = {.id = gone.id}};
    assert_false(check(f, &drop_it, 1).changed);
    assert_int_equal(left(f).count, 0);
}

static void what_the_api_registered_keeps_its_digests_date(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ROOT "b.xml", "2020-01-01");
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml");
    int64_t site = unwatched(f, true, 0).site;
    struct seen s = unwatched(f, false, site);
    assert_int_equal(s.count, 1); /* the source reads a.xml itself */
    assert_string_equal(s.loc, ROOT "b.xml");
    watch(f, site, "", ROOT "b.xml");
    assert_int_equal(unwatched(f, false, site).count, 0);
    struct check_write result = {.kind = CHECK_RESULT,
                                 .record = row_of(f, site, ROOT "b.xml"),
                                 .lastmod_from = "2020-01-01",
                                 .lastmod_to = "2021-01-01"};
    run_sql(f, "UPDATE sitemap SET digest = 'v1'");
    assert_false(check(f, &result, 1).changed);
    run_sql(f, "UPDATE sitemap SET digest = NULL");
    assert_true(check(f, &result, 1).changed);
    assert_lastmod(f, ROOT "b.xml", "2021-01-01");
    drop(f, ROOT "b.xml");
    assert_int_equal(left(f).count, 1);
}

static bool count_record(void *context, const struct check_record *record)
{
    int64_t *last = context;
    *last = record->id;
    return true;
}

static void rows_are_listed_and_counted_by_state(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_view *v;
    uint64_t counts[CHECK_STATES];
    int64_t last = 0;
    for (char n = 'a'; n < 'e'; n++) {
        char path[8] = {n, '.', 'x', 'm', 'l', 0}, loc[64];
        snprintf(loc, sizeof loc, ROOT "%s", path);
        SCAN_ONE(f, .path = loc, .loc = loc);
        watch(f, unwatched(f, true, 0).site, SOURCE, loc);
    }
    run_sql(f, "UPDATE fetch SET state = 3, marks = 16 WHERE id = 2");
    struct check_write list = {.kind = CHECK_ADD,
                               .record = {.loc = ROOT "list.xml", .source = SOURCE, .list = true}};
    check(f, &list, 1);
    check(f, &list, 1);
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_check_counts(v, 0, SOURCE, counts), CATALOGUE_OK);
    assert_int_equal(counts[CHECK_NEW], 3);
    assert_int_equal(counts[CHECK_GONE], 1);
    assert_int_equal(catalogue_view_check_counts(v, 0, "", counts), CATALOGUE_OK);
    assert_int_equal(counts[CHECK_NEW], 0);
    static const struct {
        struct check_filter filter;
        int64_t last;
    } rows[] = {
        {{.state = -1}, 4},
        {{.state = -1, .limit = 1}, 1},
        {{.state = -1, .after = 1, .limit = 2}, 3},
        {{.state = CHECK_GONE}, 2},
        {{.state = CHECK_GONE, .source = SOURCE}, 2},
        {{.state = CHECK_GONE, .source = "other"}, 0},
        {{.state = CHECK_GOOD}, 0},
        {{.dropped = true, .source = SOURCE}, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        last = 0;
        assert_int_equal(catalogue_view_checks(v, &rows[i].filter, count_record, &last),
                         CATALOGUE_OK);
        assert_int_equal(last, rows[i].last);
    }
    struct check_record record;
    assert_int_equal(catalogue_view_check_list(v, SOURCE, &record), CATALOGUE_OK);
    assert_true(record.list);
    assert_string_equal(record.loc, ROOT "list.xml");
    assert_int_equal(catalogue_view_check(v, 2, &record), CATALOGUE_OK);
    assert_string_equal(check_state_word(record.state), "gone");
    assert_int_equal(catalogue_view_check(v, 99, &record), CATALOGUE_NOT_FOUND);
    catalogue_view_end(v);
}

/* What the API says of them: a number may never mean another word. */
static void remarks_and_states_have_words(void **state)
{
    (void)state;
    static const char *const remarks[] = {"redirected",        "claims-are-now", "validators-lie",
                                          "lastmod-unfounded", "dropped",        "date-stale"};
    static const char *const states[] = {"new",           "good",   "empty",   "gone",
                                         "not-a-sitemap", "broken", "refused", "unreachable"};
    assert_int_equal(CHECK_REMARKS_END, 1u << sizeof remarks / sizeof *remarks);
    for (unsigned i = 0; i < sizeof remarks / sizeof *remarks; i++)
        assert_string_equal(check_remark_word(1u << i), remarks[i]);
    assert_int_equal(CHECK_STATES, sizeof states / sizeof *states);
    for (unsigned i = 0; i < CHECK_STATES; i++) {
        enum check_state found = CHECK_STATES;
        assert_string_equal(check_state_word(i), states[i]);
        assert_true(check_state_read(states[i], &found) && found == i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_watched_file_is_dated_where_it_is_as_it_was),
        TEST(what_nothing_names_is_left),
        TEST(what_the_api_registered_keeps_its_digests_date),
        TEST(rows_are_listed_and_counted_by_state),
        TEST(remarks_and_states_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
