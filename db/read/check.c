/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads results of polls and of scans: single results, lists by state, and files and entries that
 * nothing polls. */
#include "db/check.h"

#include <string.h>

#include "db/read/row.h"
#include "db/read/view_pool.h"
#include "db/source.h"

static const char *const words[CHECK_STATES] = {
    "new", "good", "empty", "gone", "not-a-sitemap", "broken", "refused", "unreachable"};

const char *check_state_word(enum check_state state)
{
    return words[state];
}

bool check_state_read(const char *word, enum check_state *out)
{
    for (unsigned i = 0; i < CHECK_STATES; i++)
        if (strcmp(words[i], word) == 0) {
            *out = (enum check_state)i;
            return true;
        }
    return false;
}

const char *check_remark_word(enum check_remark remark)
{
    switch (remark) { /* without a default: the compiler reports one that has no word */
    case CHECK_REDIRECTED:
        return "redirected";
    case CHECK_CLAIMS_ARE_NOW:
        return "claims-are-now";
    case CHECK_VALIDATORS_LIE:
        return "validators-lie";
    case CHECK_LASTMOD_UNFOUNDED:
        return "lastmod-unfounded";
    case CHECK_DROPPED:
        return "dropped";
    case CHECK_DATE_STALE:
        return "date-stale";
    case CHECK_SPLIT:
        return "split";
    case CHECK_REMARKS_END:
        break;
    }
    return "";
}

#define CHECK_COLUMNS                                                                              \
    "k.id, k.site, coalesce((SELECT name FROM source WHERE id = k.source), ''), "                  \
    "k.list, " CHECK_LOC(                                                                          \
        "k") ", k.state, k.status, k.marks, k.next_at, k.interval_s, k.failures, "                 \
             "k.checked_at, k.checked_at - k.good_ago, k.changed_at, k.checked_at - k.full_ago, "  \
             "k.checked_at - k.since_ago, k.etag, k.last_modified, k.hash, coalesce(k.dateless, "  \
             "k.hash), "                                                                           \
             "k.urls, k.bytes, k.newest_lastmod, k.one_lastmod, k.remarks, k.problem, k.detail, "  \
             "k.line"
#define CHECKS "SELECT " CHECK_COLUMNS " FROM fetch AS k"
#define BY_LOC                                                                                     \
    " WHERE k.list = 0 AND k.site = ?1 AND k.source IN (SELECT 0 UNION ALL SELECT source"          \
    " FROM fetch WHERE list = 1) AND " CHECK_AT(                                                   \
        "k", "?2") " ORDER BY k.source = (SELECT source FROM sitemap WHERE site = ?1 AND loc = "   \
                   "?2) DESC LIMIT 1"
#define NAMED "(SELECT id FROM source WHERE name = ?1)"

/* A state of a later version is read as CHECK_NEW. */
static enum check_state read_state(sqlite3_stmt *row, int column)
{
    unsigned state = (unsigned)sqlite3_column_int(row, column);
    return state < CHECK_STATES ? (enum check_state)state : CHECK_NEW;
}

static void read_check(sqlite3_stmt *row, struct check_record *out)
{
    memset(out, 0, sizeof *out);
    out->id = sqlite3_column_int64(row, 0);
    out->site_id = sqlite3_column_int64(row, 1);
    out->source = row_text(row, 2);
    out->list = sqlite3_column_int(row, 3) != 0;
    out->loc = row_text(row, 4);
    out->state = read_state(row, 5);
    out->status = (unsigned)sqlite3_column_int(row, 6);
    out->marks = (unsigned)sqlite3_column_int(row, 7);
    out->next_at = sqlite3_column_int64(row, 8);
    out->interval_s = (uint32_t)sqlite3_column_int64(row, 9);
    out->failures = (uint32_t)sqlite3_column_int64(row, 10);
    out->checked_at = sqlite3_column_int64(row, 11);
    out->good_at = sqlite3_column_int64(row, 12);
    out->changed_at = sqlite3_column_int64(row, 13);
    out->full_at = sqlite3_column_int64(row, 14);
    out->since = sqlite3_column_int64(row, 15);
    out->etag = row_text(row, 16);
    out->last_modified = row_text(row, 17);
    row_hash(row, 18, out->hash);
    row_hash(row, 19, out->dateless);
    out->urls = (uint64_t)sqlite3_column_int64(row, 20);
    out->bytes = (uint64_t)sqlite3_column_int64(row, 21);
    out->newest_lastmod = row_text(row, 22);
    out->one_lastmod = sqlite3_column_int(row, 23) != 0;
    out->remarks = row_text(row, 24);
    out->problem = row_text(row, 25);
    out->detail = row_text(row, 26);
    out->line = (uint64_t)sqlite3_column_int64(row, 27);
}

/* Steps to the only row. Its strings are valid until the next call uses the statement again. */
static enum catalogue_status find_row(struct catalogue_view *v, sqlite3_stmt *row, int rc)
{
    if (!sql_next(row, &rc) && rc == SQLITE_DONE) {
        sqlite3_reset(row);
        return CATALOGUE_NOT_FOUND;
    }
    return view_status(v, rc);
}

static enum catalogue_status load_check(struct catalogue_view *v, sqlite3_stmt *row, int rc,
                                        struct check_record *out)
{
    enum catalogue_status status = find_row(v, row, rc);
    if (status != CATALOGUE_OK)
        return status;
    read_check(row, out);
    return out->loc != NULL && out->source != NULL ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

enum catalogue_status catalogue_view_check(struct catalogue_view *v, int64_t id,
                                           struct check_record *out)
{
    sqlite3_stmt *row = view_statement(v, CHECKS " WHERE k.id = ?1");

    return load_check(v, row, sql_bind(row, id), out);
}

enum catalogue_status catalogue_view_check_by_loc(struct catalogue_view *v, int64_t site_id,
                                                  const char *loc, struct check_record *out)
{
    sqlite3_stmt *row = view_statement(v, CHECKS BY_LOC);

    return load_check(v, row, sql_bind(row, site_id, loc), out);
}

/* The state of a file as a state of polls. A split file has URLs, and its urlset serves it. */
static enum check_state state_of_file(enum source_file_state state, bool split)
{
    switch (state) {
    case SOURCE_FILE_LISTED:
        return CHECK_GOOD;
    case SOURCE_FILE_EMPTY:
        return CHECK_EMPTY;
    case SOURCE_FILE_IGNORED:
        return split ? CHECK_GOOD : CHECK_NOT_A_SITEMAP;
    case SOURCE_FILE_QUARANTINED:
        return CHECK_BROKEN;
    case SOURCE_FILE_GONE:
        break;
    }
    return CHECK_GONE;
}

static enum catalogue_status check_of_file(struct catalogue_view *v, int64_t site_id,
                                           const char *source, const char *loc,
                                           struct check_record *out)
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT f.loc, f.state, f.urls, f.bytes, f.problem, f.detail, f.line, f.problem_since,"
           " (SELECT held FROM source_state WHERE source = f.source) FROM source_file_row AS f "
           "WHERE +f.source = " NAMED " AND f.site = ?2 AND f.loc = ?3 AND f.loc <> f.path");
    enum catalogue_status status = find_row(v, row, sql_bind(row, source, site_id, loc));

    if (status != CATALOGUE_OK)
        return status;
    *out = (struct check_record){
        .loc = row_text(row, 0),
        .source = source,
        .site_id = site_id,
        .urls = (uint64_t)sqlite3_column_int64(row, 2),
        .bytes = (uint64_t)sqlite3_column_int64(row, 3),
        .problem = row_text(row, 4),
        .detail = row_text(row, 5),
        .line = (uint64_t)sqlite3_column_int64(row, 6),
        .since = sqlite3_column_int64(row, 7),
    };
    out->state = state_of_file((enum source_file_state)sqlite3_column_int(row, 1), out->urls > 0);
    if (out->problem != NULL) /* such as "not-a-sitemap", a state in itself */
        check_state_read(out->problem, &out->state);
    if (out->loc == NULL)
        return CATALOGUE_NO_MEMORY;
    /* The shrink guard keeps entries whose files are gone, and no row marks them. */
    bool unsure = out->state == CHECK_GOOD && sqlite3_column_int64(row, 8) > 0;
    return unsure ? CATALOGUE_NOT_FOUND : CATALOGUE_OK;
}

enum catalogue_status catalogue_view_check_of_entry(struct catalogue_view *v, int64_t site_id,
                                                    const char *source, const char *loc,
                                                    struct check_record *out)
{
    enum catalogue_status status = catalogue_view_check_by_loc(v, site_id, loc, out);

    return status == CATALOGUE_NOT_FOUND ? check_of_file(v, site_id, source, loc, out) : status;
}

enum catalogue_status catalogue_view_check_of(struct catalogue_view *v, const char *source,
                                              const char *loc, struct check_record *out)
{
    sqlite3_stmt *row = view_statement(v, CHECKS " WHERE k.list = 0 AND k.source = " NAMED
                                                 " AND " CHECK_AT("k", "?2"));

    return load_check(v, row, sql_bind(row, source, loc), out);
}

enum catalogue_status catalogue_view_check_list(struct catalogue_view *v, const char *source,
                                                struct check_record *out)
{
    sqlite3_stmt *row = view_statement(v, CHECKS " WHERE k.source = " NAMED " AND k.list = 1");

    return load_check(v, row, sql_bind(row, source), out);
}

/* Rows in the order of their ids, each with whether it matches: so the rows between two matches are
 * bounded, too. ?1: source, ?2: after, ?3: site, ?4: state, ?5: prefix of the loc. */
#define CANDIDATES(index, where)                                                                   \
    "SELECT k.id, CASE WHEN k.list = 0 AND (?1 IS NULL OR k.source = coalesce(" NAMED              \
    ", 0)) AND iif(?4 = -2, k.state > 1, ?4 < 0 OR k.state = ?4) THEN ?5 IS NULL OR "              \
    "substr(" CHECK_LOC("k") ", 1, length(?5)) = ?5 ELSE 0 END FROM fetch AS k" index              \
                             " WHERE k.id > ?2 AND " where
#define OF_STATE(state)     CANDIDATES(" INDEXED BY fetch_state", "k.state > 1 AND k.state = " state)
#define AND_OF_STATE(state) " UNION ALL " OF_STATE(state)

static sqlite3_stmt *candidates(struct catalogue_view *v, const struct check_filter *f)
{
    if (f->dropped)
        return view_statement(v, CANDIDATES(" INDEXED BY fetch_dropped",
                                            "k.source = " NAMED
                                            " AND k.marks >= 16 AND k.marks & 16 ORDER BY k.id"));
    if (f->site_id != 0) /* no rows of other sites are read */
        return view_statement(
            v, CANDIDATES(" INDEXED BY fetch_site", "k.site = ?3 AND k.list = 0 ORDER BY k.id"));
    /* Nearly all rows are good or new, and not in the index of states. */
    if (f->state > CHECK_GOOD)
        return view_statement(v, OF_STATE("?4") " ORDER BY k.id");
    if (f->state == CHECK_ANY_BAD)
        return view_statement(v, OF_STATE("2") AND_OF_STATE("3") AND_OF_STATE("4") AND_OF_STATE("5")
                                     AND_OF_STATE("6") AND_OF_STATE("7") " ORDER BY 1");
    return view_statement(v, CANDIDATES("", "1 ORDER BY k.id"));
}
_Static_assert(CHECK_STATES == 8, "all bad states are in candidates()");

enum catalogue_status catalogue_view_checks(struct catalogue_view *v,
                                            const struct check_filter *filter, check_each *each,
                                            void *context, int64_t *next)
{
    sqlite3_stmt *row = candidates(v, filter);
    int state = filter->dropped ? -1 : filter->state;
    int rc = sql_bind(row, filter->source, filter->after, filter->site_id, state, filter->prefix);
    enum catalogue_status status = CATALOGUE_OK;
    size_t looked = 0, found = 0;
    int64_t last_found = 0;

    *next = 0;
    while (status == CATALOGUE_OK && sql_next(row, &rc)) {
        int64_t id = sqlite3_column_int64(row, 0);
        bool matches = sqlite3_column_int(row, 1) != 0;
        if (matches && filter->limit > 0 && found == filter->limit) {
            *next = last_found;
            break;
        }
        struct check_record record;
        if (matches && (status = catalogue_view_check(v, id, &record)) == CATALOGUE_OK) {
            each(context, &record);
            found++;
            last_found = id;
        }
        if (filter->limit > 0 && ++looked == CHECK_LOOK_MAX) {
            *next = id;
            break;
        }
    }
    sqlite3_reset(row);
    return status == CATALOGUE_OK ? view_status(v, rc) : status;
}

/* In the order of the SQL index by source; an unknown state is read as CHECK_NEW, and no source has
 * the name "?". */
#define COUNTED(index, condition)                                                                  \
    "SELECT iif(k.source = 0, '', coalesce((SELECT name FROM source WHERE id = k.source), '?')),"  \
    " sum(k.state NOT BETWEEN 1 AND 7), sum(k.state = 1), sum(k.state = 2), sum(k.state = 3),"     \
    " sum(k.state = 4), sum(k.state = 5), sum(k.state = 6), sum(k.state = 7)"                      \
    " FROM fetch AS k" index " WHERE k.list = 0" condition " GROUP BY k.source"
_Static_assert(CHECK_STATES == 8, "all states are in COUNTED");

enum catalogue_status catalogue_view_check_counts(struct catalogue_view *v, bool bad,
                                                  check_each_source *each, void *context)
{
    sqlite3_stmt *row =
        view_statement(v, bad ? COUNTED(" INDEXED BY fetch_state", " AND k.state > 1")
                              : COUNTED(" INDEXED BY fetch_loc", ""));
    int rc = row != NULL ? SQLITE_OK : SQLITE_NOMEM;

    while (sql_next(row, &rc)) {
        uint64_t counts[CHECK_STATES];
        const char *source = row_text(row, 0);
        for (int i = 0; i < CHECK_STATES; i++)
            counts[i] = row_number(row, i + 1);
        rc = source != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            each(context, source, counts);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_check_bad_counts(struct catalogue_view *v, const char *source,
                                                      uint64_t counts[CHECK_STATES])
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT state, count(*) FROM fetch AS k INDEXED BY fetch_state WHERE k.list = 0"
           " AND k.state > 1 AND k.source = coalesce(" NAMED ", 0) GROUP BY state");
    int rc = sql_bind(row, source);

    for (unsigned i = 0; i < CHECK_STATES; i++)
        counts[i] = check_is_bad((enum check_state)i) ? 0 : counts[i];
    while (sql_next(row, &rc))
        counts[read_state(row, 0)] += row_number(row, 1);
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_check_bad_sites(struct catalogue_view *v,
                                                     check_each_site *each, void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT k.site, count(*) FROM fetch AS k INDEXED BY fetch_state"
                          " WHERE k.state > 1 AND k.list = 0 AND k.source = 0 GROUP BY k.site");
    int rc = sql_bind(row);

    while (sql_next(row, &rc)) {
        each(context, sqlite3_column_int64(row, 0), row_number(row, 1));
    }
    return view_end_statement(v, row, rc);
}

/* ---- for the poller -------------------------------------------------------------------- */

enum catalogue_status
catalogue_view_checks_due(struct catalogue_view *v, int64_t after, size_t limit,
                          bool (*each)(void *context, const struct check_due *row), void *context)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT id, site, next_at, coalesce((SELECT name FROM source"
                          " WHERE id = k.source), ''), interval_s, state, " CHECK_LOC(
                              "k") " FROM fetch AS k"
                                   " WHERE id > ?1 AND list = 0 ORDER BY id LIMIT ?2");
    int rc = sql_bind(row, after, limit);
    bool ended = false;

    while (!ended && sql_next(row, &rc)) {
        struct check_due due = {.id = sqlite3_column_int64(row, 0),
                                .site_id = sqlite3_column_int64(row, 1),
                                .next_at = sqlite3_column_int64(row, 2),
                                .source = row_text(row, 3),
                                .interval_s = (uint32_t)sqlite3_column_int64(row, 4),
                                .state = read_state(row, 5),
                                .loc = row_text(row, 6)};
        rc = due.loc != NULL && due.source != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            ended = !each(context, &due);
    }
    return view_end_statement(v, row, rc);
}

/* Whether a file of its owner lists the entry `e`: then the owner is a source, which polls it or
 * not. The owner's name alone does not say so: a token, even of another site, may have the name of
 * a source. */
#define IS_OF_A_FILE                                                                               \
    "EXISTS (" FILE_ROWS_OF(                                                                       \
        "1", "e.source", "e.site",                                                                 \
        "e.loc") " UNION ALL SELECT 1 FROM fetch AS l WHERE l.list = 0 AND l.listed = 1 AND "      \
                 "l.source = e.source AND l.site = e.site AND " CHECK_AT("l", "e.loc") ")"

/* Columns: position, site, loc, whether it is to be watched; ordered by position. */
static enum catalogue_status report_unwatched(struct catalogue_view *v, sqlite3_stmt *row, int rc,
                                              char *last, unwatched_each *each, void *context)
{
    bool ended = false;

    last[0] = '\0';
    while (!ended && sql_next(row, &rc)) {
        const char *at = row_text(row, 0), *loc = row_text(row, 2);
        size_t len = at != NULL ? strnlen(at, LOC_MAX_CHARS) : 0;
        memcpy(last, at != NULL ? at : "", len);
        last[len] = '\0';
        rc = at != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK && loc != NULL && sqlite3_column_int(row, 3) != 0)
            ended = !each(context, sqlite3_column_int64(row, 1), loc);
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_unwatched_files(struct catalogue_view *v, const char *source,
                                                     const char *after, size_t looked, char *last,
                                                     unwatched_each *each, void *context)
{
    sqlite3_stmt *row = view_statement(
        v,
        "SELECT f.path, f.site, f.loc, f.site IS NOT NULL AND NOT EXISTS (SELECT 1 FROM fetch AS k"
        " WHERE k.list = 0 AND k.source = f.source AND k.site = f.site AND " CHECK_AT(
            "k", "f.loc") ")"
                          " FROM source_file_row AS f WHERE f.source = " NAMED
                          " AND f.path > ?2 ORDER BY f.path LIMIT ?3");

    return report_unwatched(v, row, sql_bind(row, source, after != NULL ? after : "", looked), last,
                            each, context);
}

enum catalogue_status catalogue_view_unwatched_entries(struct catalogue_view *v, int64_t site_id,
                                                       const char *after, size_t looked, char *last,
                                                       unwatched_each *each, void *context)
{
    sqlite3_stmt *row = view_statement(
        v,
        "SELECT e.loc, e.site, e.loc, NOT EXISTS (SELECT 1 FROM fetch AS k"
        " WHERE k.list = 0 AND k.source = 0 AND k.site = e.site AND " CHECK_AT(
            "k",
            "e.loc") ")"
                     " AND e.source >= 0 AND NOT " IS_OF_A_FILE " AND " ENTRY_ROW_LIVE
                     " FROM sitemap AS e WHERE e.site = ?1 AND e.loc > ?2 ORDER BY e.loc LIMIT ?3");

    return report_unwatched(v, row, sql_bind(row, site_id, after != NULL ? after : "", looked),
                            last, each, context);
}

enum catalogue_status
catalogue_view_checks_named(struct catalogue_view *v, int64_t after, size_t looked, int64_t *last,
                            bool (*each)(void *context, const struct check_named *row),
                            void *context)
{
    sqlite3_stmt *row = view_statement(
        v, "SELECT k.id, k.site, (SELECT name FROM source WHERE id = k.source), k.list, k.list = 1"
           " OR k.listed = 1 OR EXISTS (SELECT 1 FROM source_file_row AS f"
           " WHERE f.source = k.source AND f.path = " CHECK_LOC(
               "k") ")"
                    " OR (k.source = 0 AND EXISTS (SELECT 1 FROM sitemap AS e WHERE e.site = k.site"
                    " AND e.loc = " CHECK_LOC(
                        "k") " AND " ENTRY_ROW_LIVE " AND NOT " IS_OF_A_FILE "))"
                             " FROM fetch AS k WHERE k.id > ?1 ORDER BY k.id LIMIT ?2");
    int rc = sql_bind(row, after, looked);
    bool ended = false;

    *last = 0;
    while (!ended && sql_next(row, &rc)) {
        const char *source = (const char *)sqlite3_column_text(row, 2);
        const struct check_named named = {
            .id = sqlite3_column_int64(row, 0),
            .site_id = sqlite3_column_int64(row, 1),
            .source = source != NULL ? source : "",
            .list = sqlite3_column_int(row, 3) != 0,
            .named = sqlite3_column_int(row, 4) != 0,
        };
        *last = named.id;
        rc = SQLITE_OK;
        ended = !each(context, &named);
    }
    return view_end_statement(v, row, rc);
}
