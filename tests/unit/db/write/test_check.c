/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_CHECK and the views of its rows: what is watched, and dates by compare and set. */
#include "tests/unit/db/write/scan_fixture.h"

static struct change_result check(struct write_fixture *f, const struct check_write *writes,
                                  size_t count)
{
    return apply(
        f, &(struct change){.kind = CHANGE_CHECK, .check = {.writes = writes, .count = count}});
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

/* The row of the source's list, by which its sitemaps are found by their locs. */
static void watch_list(struct write_fixture *f)
{
    struct check_write list = {.kind = CHECK_ADD,
                               .record = {.loc = ROOT "list.xml", .source = SOURCE, .list = true}};
    assert_int_equal(check(f, &list, 1).status, CATALOGUE_OK);
}

static bool has_validators(struct write_fixture *f, bool list)
{
    return number_of(f, "SELECT count(*) FROM fetch WHERE list = %d AND etag IS NOT NULL", list);
}

static void a_watched_file_is_dated_where_it_is_as_it_was(void **state)
{
    struct write_fixture *f = *state;
    watch_list(f);
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

    /* In a frozen index the date waits, and the content is to be found again. */
    run_sql(f, "UPDATE sitemap_index SET frozen = 1");
    run_sql(f, "UPDATE catalogue SET registry_revision = registry_revision + 1,"
               " revision = revision + 1");
    result.lastmod_from = "2021-01-01";
    r = check(f, &result, 1);
    assert_int_equal(r.frozen, 1);
    assert_lastmod(f, ROOT "a.xml", "2021-01-01");
    assert_int_equal(row_of(f, s.site, ROOT "a.xml").hash[0], 0);
    assert_int_equal(kept(f, ROOT "a.xml").file.hash[0], 9); /* as the date that stands */
}

/* A first read leaves the list's date. Where that was taken back meanwhile it is not from what
 * there is now: the next poll is the first. */
static void a_first_read_of_a_date_that_was_taken_back(void **state)
{
    struct write_fixture *f = *state;
    watch_list(f);
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2020-01-01",
             .claim = "2020-01-01");
    watch(f, unwatched(f, true, 0).site, SOURCE, ROOT "a.xml");
    struct check_write result = {
        .kind = CHECK_RESULT, .record = row_of(f, 1, ROOT "a.xml"), .lastmod_from = "2020-01-01"};
    result.record.state = CHECK_GOOD;
    result.record.etag = "\"x\"";
    result.record.hash[0] = 9;
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml");
    assert_int_equal(check(f, &result, 1).status, CATALOGUE_OK);
    assert_int_equal(row_of(f, 1, ROOT "a.xml").hash[0], 0);
    assert_false(has_validators(f, false));
    result.lastmod_from = NULL;
    result.lastmod_to = "2019-01-01";
    assert_true(check(f, &result, 1).changed);
    assert_int_equal(row_of(f, 1, ROOT "a.xml").hash[0], 9);
    assert_lastmod(f, ROOT "a.xml", "2019-01-01");
}

/* Rows of their own of the source's files, and of polls that describe one. */
#define assert_rows(f, own, told)                                                                  \
    do {                                                                                           \
        assert_int_equal(number_of(f, "SELECT count(*) FROM source_file_row"), own);               \
        assert_int_equal(number_of(f, "SELECT count(*) FROM fetch WHERE listed = 1"), told);       \
        assert_int_equal(number_of(f, "SELECT count(*) FROM source_file"), (own) + (told));        \
    } while (0)

static void a_poll_reports_what_is_listed(void **state)
{
    struct write_fixture *f = *state;
    watch_list(f);
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2020-01-01",
             .claim = "2020-01-01");
    assert_rows(f, 1, 0);
    int64_t site = unwatched(f, true, 0).site;
    watch(f, site, SOURCE, ROOT "a.xml");
    assert_rows(f, 0, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM fetch WHERE loc = '/s/a.xml'"), 1);
    assert_string_equal(kept(f, ROOT "a.xml").loc, ROOT "a.xml");

    struct check_write good = {.kind = CHECK_RESULT,
                               .record = row_of(f, site, ROOT "a.xml"),
                               .lastmod_from = "2020-01-01",
                               .lastmod_to = "2021-01-01"};
    good.record.state = CHECK_GOOD;
    good.record.hash[0] = good.record.dateless[0] = 9;
    good.record.urls = 3;
    check(f, &good, 1);
    assert_rows(f, 0, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM fetch WHERE dateless IS NOT NULL"), 0);
    assert_int_equal(row_of(f, site, ROOT "a.xml").dateless[0], 9);
    struct kept_file k = kept(f, ROOT "a.xml");
    assert_string_equal(k.lastmod, "2021-01-01");
    assert_int_equal(k.file.hash[0], 9);
    assert_int_equal(k.file.urls, 3);

    /* Another claim is written where it is. */
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2021-01-01",
             .claim = "2022-01-01", .hash = {9}, .urls = 3);
    assert_rows(f, 0, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source_file WHERE claim = '2022-01-01'"
                                  " AND lastmod = '2021-01-01'"),
                     1);

    /* Trouble has a row of its own, which says what was known; then they are alike again. */
    SCAN_ONE(f, .path = ROOT "a.xml", .state = SOURCE_FILE_QUARANTINED, .problem = "frozen");
    assert_rows(f, 1, 0);
    assert_int_equal(kept(f, ROOT "a.xml").file.hash[0], 9);
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2021-01-01",
             .claim = "2022-01-01", .hash = {9}, .urls = 3);
    assert_rows(f, 1, 0);
    good.lastmod_to = NULL;
    check(f, &good, 1);
    assert_rows(f, 0, 1);

    /* What is polled no more is known still. */
    struct check_write stop = {.kind = CHECK_REMOVE, .record = {.id = good.record.id}};
    check(f, &stop, 1);
    assert_rows(f, 1, 0);
    k = kept(f, ROOT "a.xml");
    assert_int_equal(k.file.hash[0], 9);
    assert_string_equal(k.lastmod, "2021-01-01");
    assert_string_equal(k.loc, ROOT "a.xml");
    watch(f, site, SOURCE, ROOT "a.xml");
    assert_int_equal(row_of(f, site, ROOT "a.xml").hash[0], 0);
    assert_rows(f, 1, 0); /* until it was read again */
    good.record.id = row_of(f, site, ROOT "a.xml").id;
    check(f, &good, 1);
    assert_rows(f, 0, 1);

    struct change change = scan_change;
    change.max_removed = 1;
    apply_files(f, change,
                &(struct scan_files){
                    &(struct source_file){.path = ROOT "a.xml", .state = SOURCE_FILE_GONE}, 1});
    assert_rows(f, 0, 0);
    assert_int_equal(left(f).count, 1);
}

/* In whatever form a date is kept, it comes out as it went in, and so do times that a clock which
 * was set back left in any order. */
static void dates_come_out_as_they_were(void **state)
{
    static const struct {
        const char *lastmod, *claim;
        bool lastmod_is_short, claim_is_short; /* kept as numbers */
    } rows[] = {
        {"2026-10-01T08:09:10Z", "2026-10-01T08:09:10Z", false, true}, /* '' */
        {"2026-10-02T08:09:10Z", "2026-10-01T08:09:10+00:00", true, true},
        {"2026-10-02T08:09:10+00:00", "2026-10-01T08:09:10+02:00", true, false},
        {"2026-10-02", "2026-10-01T08:09:10.5Z", false, false},
        {"1970-01-01T00:00:00Z", "1971-01-01T00:00:00Z", false, true},
    };
    struct write_fixture *f = *state;
    watch_list(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char loc[64], sql[128];
        snprintf(loc, sizeof loc, ROOT "%zu.xml", i);
        SCAN_ONE(f, .path = loc, .loc = loc, .lastmod = rows[i].lastmod, .claim = rows[i].claim);
        snprintf(sql, sizeof sql, "SELECT claim = '' FROM source_file_row WHERE path = '%s'", loc);
        assert_int_equal(number_of(f, sql), i == 0);
        watch(f, unwatched(f, true, 0).site, SOURCE, loc);
        snprintf(sql, sizeof sql,
                 "SELECT 2 * (typeof(lastmod) = 'integer') + (typeof(claim) = 'integer')"
                 " FROM fetch WHERE id = %zu",
                 i + 2);
        assert_int_equal(number_of(f, sql), 2 * rows[i].lastmod_is_short + rows[i].claim_is_short);
        assert_string_equal(kept(f, loc).lastmod, rows[i].lastmod);
        char *told = sqlite3_mprintf("SELECT count(*) FROM source_file WHERE path = %Q AND lastmod"
                                     " = %Q AND claim = %Q",
                                     loc, rows[i].lastmod, rows[i].claim);
        assert_int_equal(number_of(f, told), 1);
        sqlite3_free(told);
    }
    struct check_write good = {.kind = CHECK_RESULT,
                               .record = row_of(f, 1, ROOT "0.xml"),
                               .lastmod_from = rows[0].lastmod,
                               .lastmod_to = "2027-01-01T00:00:00Z"};
    good.record.state = CHECK_GOOD;
    good.record.hash[0] = 9;
    good.record.checked_at = 1000;
    good.record.good_at = 1000;
    good.record.full_at = 1600;
    good.record.since = 400;
    assert_true(check(f, &good, 1).changed);
    struct check_record row = row_of(f, 1, ROOT "0.xml");
    assert_int_equal(row.checked_at, 1000);
    assert_int_equal(row.good_at, 1000);
    assert_int_equal(row.full_at, 1600);
    assert_int_equal(row.since, 400);
    assert_string_equal(kept(f, ROOT "0.xml").lastmod, "2027-01-01T00:00:00Z");
    assert_int_equal(number_of(f, "SELECT typeof(lastmod) = 'integer' FROM fetch WHERE id = 2"), 1);
    good.record.checked_at = 2000;
    good.record.good_at = 0;
    good.full_from = 1600;
    good.lastmod_from = good.lastmod_to = NULL;
    check(f, &good, 1);
    row = row_of(f, 1, ROOT "0.xml");
    assert_int_equal(row.good_at, 0);
    assert_int_equal(row.full_at, 1600);
}

/* What a poll found, of a row that it began with. */
static void lands(struct write_fixture *f, const struct check_record *began, int64_t at)
{
    struct check_write result = {
        .kind = CHECK_RESULT, .record = *began, .full_from = began->full_at};
    result.record.state = CHECK_GOOD;
    result.record.etag = "\"x\"";
    result.record.loc = ROOT "list.xml"; /* a list's */
    result.record.hash[0] = 9;
    result.record.checked_at = result.record.full_at = at;
    assert_int_equal(check(f, &result, 1).status, CATALOGUE_OK);
}

static struct check_record list_of(struct write_fixture *f)
{
    struct catalogue_view *v;
    struct check_record record;
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_check_list(v, SOURCE, &record), CATALOGUE_OK);
    record.loc = record.source = record.etag = NULL;
    catalogue_view_end(v);
    return record;
}

static void freeze(struct write_fixture *f, int frozen)
{
    run_sql(f, "UPDATE sitemap_index SET frozen = %d", frozen);
    run_sql(f, "UPDATE catalogue SET registry_revision = registry_revision + 1,"
               " revision = revision + 1");
}

/* What an undo forgot stays forgotten, whatever a poll lands that was under way then: the first
 * one of all, and one that found nothing new. The next one is as any. */
static void a_poll_that_an_undo_overtook_brings_nothing_back(void **state)
{
    struct write_fixture *f = *state;
    f->options.history_keep_ms = 1u << 30;
    f->options.history_max_bytes = 1u << 30;
    fixture_reopen(f);
    watch_list(f);
    for (int known = 0; known < 2; known++) {
        char loc[64];
        snprintf(loc, sizeof loc, ROOT "%d.xml", known);
        struct change_result made =
            SCAN_ONE(f, .path = loc, .loc = loc, .lastmod = "2020-01-01", .claim = "2020-01-01");
        int64_t site = unwatched(f, true, 0).site;
        watch(f, site, SOURCE, loc);
        if (known) {
            struct check_record child = row_of(f, site, loc);
            lands(f, &child, 1000);
            assert_true(has_validators(f, false) && has_validators(f, true));
        }
        struct check_record child = row_of(f, site, loc), list = list_of(f);
        freeze(f, 1);
        struct change_result undone =
            apply_plain(f, &(struct change){.kind = CHANGE_UNDO,
                                            .undo = {.revision = made.revision},
                                            .max_removed = 9,
                                            .pass_frozen = true});
        assert_int_equal(undone.removed, 1);
        freeze(f, 0);
        int64_t undone_at = list_of(f).full_at;
        lands(f, &child, 2000);
        lands(f, &list, 2000);
        assert_false(has_validators(f, false) || has_validators(f, true));
        assert_int_equal(list_of(f).full_at, undone_at);
        assert_int_equal(row_of(f, site, loc).hash[0], 0);
        child = row_of(f, site, loc);
        list = list_of(f);
        lands(f, &child, 3000);
        lands(f, &list, 3000);
        assert_true(has_validators(f, false) && has_validators(f, true));
        struct check_write stop = {.kind = CHECK_REMOVE, .record = {.id = child.id}};
        check(f, &stop, 1);
    }
}

/* A file's own row keeps its claim where its date moves. */
static void a_claim_stays_where_the_date_moves(void **state)
{
    struct write_fixture *f = *state;
    watch_list(f);
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2026-10-01",
             .claim = "2026-10-01");
    int64_t site = unwatched(f, true, 0).site;
    watch(f, site, SOURCE, ROOT "a.xml");
    SCAN_ONE(f, .path = ROOT "a.xml", .state = SOURCE_FILE_QUARANTINED, .problem = "frozen");
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml", .lastmod = "2026-10-01",
             .claim = "2026-10-01", .urls = 7); /* else than polls know: a row of its own */
    assert_rows(f, 1, 0);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source_file_row WHERE claim = ''"), 1);
    struct check_write moved = {.kind = CHECK_RESULT,
                                .record = row_of(f, site, ROOT "a.xml"),
                                .lastmod_from = "2026-10-01",
                                .lastmod_to = "2027-01-01"};
    moved.record.state = CHECK_GOOD;
    moved.record.hash[0] = 9;
    check(f, &moved, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source_file WHERE claim = '2026-10-01'"
                                  " AND lastmod = '2027-01-01'"),
                     1);
    assert_rows(f, 0, 1);
}

/* What the API registered and a source lists later goes on where its polls were. */
static void a_source_takes_over_what_is_polled(void **state)
{
    struct write_fixture *f = *state;
    watch_list(f);
    SCAN_ONE(f, .path = ROOT "b.xml", .loc = ROOT "b.xml");
    int64_t site = unwatched(f, true, 0).site;
    watch(f, site, "", ROOT "a.xml");
    int64_t id = row_of(f, site, ROOT "a.xml").id;
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml");
    watch(f, site, SOURCE, ROOT "a.xml");
    assert_int_equal(row_of(f, site, ROOT "a.xml").id, id);
    assert_rows(f, 1, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM fetch WHERE source = 0"), 0);
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

static void keep_id(void *context, const struct check_record *record)
{
    int64_t *last = context;
    *last = record->id;
}

static void keep_site(void *context, int64_t site_id, uint64_t bad)
{
    int64_t(*found)[2] = context;
    (*found)[0] = (*found)[0] * 10 + site_id;
    (*found)[1] = (*found)[1] * 10 + (int64_t)bad;
}

/* Only what the API registered, and only what is bad. */
static void bad_ones_are_counted_by_site(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_view *v;
    int64_t found[2] = {0};
    run_sql(
        f,
        "WITH n(site, source, list, loc, state) AS (VALUES (1, 0, 0, '/a', 3), (1, 0, 0, '/b', 7),"
        " (1, 0, 0, '/c', 1), (1, 0, 0, '/d', 0), (1, 5, 0, '/a', 3), (1, 5, 1, '/l', 3),"
        " (2, 0, 0, '/a', 1), (3, 0, 0, '/a', 2)) INSERT INTO fetch(site, source, list, loc,"
        " state, status, marks, next_at, interval_s, failures, checked_at, good_ago,"
        " changed_at, full_ago, since_ago, urls, bytes, one_lastmod, line)"
        " SELECT site, source, list, loc, state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n");
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_check_bad_sites(v, keep_site, &found), CATALOGUE_OK);
    catalogue_view_end(v);
    assert_int_equal(found[0], 13);
    assert_int_equal(found[1], 21);
    run_sql(f, "DELETE FROM fetch"); /* sites and sources that the catalogue does not have */
}

static void keep_counts(void *context, const char *source, const uint64_t counts[CHECK_STATES])
{
    char *text = context;
    size_t len = strlen(text);
    len += (size_t)snprintf(text + len, 256 - len, "%s:", source);
    for (unsigned i = 0; i < CHECK_STATES; i++)
        len += (size_t)snprintf(text + len, 256 - len, "%" PRIu64 "%c", counts[i],
                                i + 1 < CHECK_STATES ? ',' : ' ');
}

static void assert_counts(struct catalogue_view *v, bool bad, const char *expected)
{
    char text[256] = "";
    assert_int_equal(catalogue_view_check_counts(v, bad, keep_counts, text), CATALOGUE_OK);
    assert_string_equal(text, expected);
}

/* In one pass: all sources together may have millions of rows. */
static void all_are_counted_by_source_and_state(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_view *v;
    run_sql(
        f,
        "INSERT INTO source(id, name) VALUES (5, 'five'), (6, 'six');"
        "WITH n(site, source, list, loc, state) AS (VALUES (1, 0, 0, '/a', 3), (1, 0, 0, '/b', 7),"
        " (1, 0, 0, '/c', 1), (1, 0, 0, '/d', 0), (1, 5, 0, '/a', 3), (1, 5, 1, '/l', 3),"
        " (2, 5, 0, '/b', 9), (1, 6, 0, '/a', 1), (3, 7, 0, '/a', 2)) INSERT INTO fetch(site,"
        " source, list, loc, state, status, marks, next_at, interval_s, failures, checked_at,"
        " good_ago, changed_at, full_ago, since_ago, urls, bytes, one_lastmod, line)"
        " SELECT site, source, list, loc, state, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n");
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_counts(v, false,
                  ":1,1,0,1,0,0,0,1 five:1,0,0,1,0,0,0,0 six:0,1,0,0,0,0,0,0 ?:0,0,1,0,0,0,0,0 ");
    assert_counts(v, true, ":0,0,0,1,0,0,0,1 five:1,0,0,1,0,0,0,0 ?:0,0,1,0,0,0,0,0 ");
    catalogue_view_end(v);
    run_sql(f, "DELETE FROM fetch; DELETE FROM source WHERE id IN (5, 6)");
}

static void rows_are_listed_and_counted_by_state(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_view *v;
    int64_t last = 0, next;
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
    assert_counts(v, false, SOURCE ":3,0,0,1,0,0,0,0 ");
    assert_counts(v, true, SOURCE ":0,0,0,1,0,0,0,0 ");
    uint64_t counts[CHECK_STATES] = {7, 7, 7, 7};
    assert_int_equal(catalogue_view_check_bad_counts(v, SOURCE, counts), CATALOGUE_OK);
    assert_true(counts[CHECK_NEW] == 7 && counts[CHECK_EMPTY] == 0 && counts[CHECK_GONE] == 1);
    static const struct {
        struct check_filter filter;
        int64_t last, next;
    } rows[] = {
        {{.state = -1}, 4, 0},
        {{.state = -1, .limit = 1}, 1, 1},
        {{.state = -1, .after = 1, .limit = 2}, 3, 3},
        {{.state = -1, .limit = 4}, 4, 0},
        {{.state = -1, .prefix = ROOT "b"}, 2, 0},
        {{.state = CHECK_GONE}, 2, 0},
        {{.state = CHECK_GONE, .limit = 1}, 2, 0},
        {{.state = CHECK_GONE, .prefix = ROOT "c"}, 0, 0},
        {{.state = CHECK_GONE, .source = SOURCE}, 2, 0},
        {{.state = CHECK_GONE, .source = "other"}, 0, 0},
        {{.state = CHECK_GONE, .after = 2}, 0, 0},
        {{.state = CHECK_ANY_BAD}, 2, 0},
        {{.state = CHECK_ANY_BAD, .source = "other"}, 0, 0},
        {{.state = CHECK_ANY_BAD, .after = 2}, 0, 0},
        {{.state = CHECK_GOOD}, 0, 0},
        {{.state = CHECK_NEW}, 4, 0},
        {{.state = CHECK_NEW, .after = 1, .limit = 1}, 3, 3},
        {{.dropped = true, .source = SOURCE}, 2, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        last = 0;
        assert_int_equal(catalogue_view_checks(v, &rows[i].filter, keep_id, &last, &next),
                         CATALOGUE_OK);
        assert_int_equal(last, rows[i].last);
        assert_int_equal(next, rows[i].next);
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

/* Very many rows match no filter of a client: a call looks at a bounded part of them. */
static void a_list_looks_at_a_bounded_number_of_rows(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_view *v;
    SCAN_ONE(f, .path = ROOT "a.xml", .loc = ROOT "a.xml");
    int64_t site = unwatched(f, true, 0).site, last, next;
    watch(f, site, SOURCE, ROOT "a.xml");
    run_sql(f, "INSERT INTO fetch WITH RECURSIVE n(i) AS (VALUES(2) UNION ALL SELECT i + 1 FROM n"
               " WHERE i <= 20000) SELECT i, site, source, list, '/other/' || i, 2 + i & 7, status,"
               " marks, next_at, interval_s, failures, checked_at, good_ago, changed_at, full_ago,"
               " since_ago, etag, last_modified, hash, dateless, urls, bytes, newest_lastmod,"
               " one_lastmod, remarks, problem, detail, line, 0, claim, lastmod"
               " FROM n CROSS JOIN fetch WHERE id = 1");
    run_sql(f,
            "UPDATE fetch SET loc = '/s/mine', state = 3 WHERE id = (SELECT max(id) FROM fetch)");
    const struct check_filter filters[] = {
        {.state = -1, .site_id = site, .prefix = ROOT "mine", .limit = 1},
        {.state = -1, .prefix = ROOT "mine", .limit = 1},
        {.state = CHECK_ANY_BAD, .site_id = site, .prefix = ROOT "mine", .after = 2, .limit = 1},
        {.state = CHECK_ANY_BAD, .prefix = ROOT "mine", .after = 2, .limit = 1},
        {.state = CHECK_GONE, .prefix = ROOT "mine", .limit = 1},
    };
    assert_int_equal(CHECK_LOOK_MAX, 20000);
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        struct check_filter filter = filters[i];
        last = 0;
        assert_int_equal(catalogue_view_checks(v, &filter, keep_id, &last, &next), CATALOGUE_OK);
        if (i < 2) { /* the others have fewer rows to look at */
            assert_int_equal(last, 0);
            assert_int_equal(next, CHECK_LOOK_MAX);
            filter.after = next;
            assert_int_equal(catalogue_view_checks(v, &filter, keep_id, &last, &next),
                             CATALOGUE_OK);
        }
        assert_int_equal(last, CHECK_LOOK_MAX + 1);
        assert_int_equal(next, 0);
    }
    catalogue_view_end(v);
}

/* What the API says of them: a number may never mean another word. */
static void remarks_and_states_have_words(void **state)
{
    static const char *const remarks[] = {
        "redirected", "claims-are-now", "validators-lie", "lastmod-unfounded",
        "dropped",    "date-stale",     "split"};
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
        TEST(a_first_read_of_a_date_that_was_taken_back),
        TEST(a_poll_reports_what_is_listed),
        TEST(dates_come_out_as_they_were),
        TEST(a_poll_that_an_undo_overtook_brings_nothing_back),
        TEST(a_claim_stays_where_the_date_moves),
        TEST(a_source_takes_over_what_is_polled),
        TEST(what_nothing_names_is_left),
        TEST(what_the_api_registered_keeps_its_digests_date),
        TEST(rows_are_listed_and_counted_by_state),
        TEST(bad_ones_are_counted_by_site),
        TEST(all_are_counted_by_source_and_state),
        TEST(a_list_looks_at_a_bounded_number_of_rows),
        TEST(remarks_and_states_have_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
