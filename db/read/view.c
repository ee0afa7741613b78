#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "db/file/statements.h"
#include "db/read/registry_store.h"
#include "db/read/row.h"
#include "db/read/view_pool.h"
#include "db/source.h"
#include "server/rules/limits.h"
#include "server/rules/scope.h"

/* Directory sources: their files, how they stand, and what the file of an entry holds. */

#define FILE_COLUMNS                                                                               \
    "f.path, f.loc, f.state, f.refused, f.device, f.inode, f.size, f.mtime_ns, f.hash, f.lastmod," \
    " f.urls, f.bytes, f.newest_lastmod, f.one_lastmod, f.future, f.problem, f.detail, f.line,"    \
    " f.\"column\", f.problem_since, f.remarks, f.claim, EXISTS (SELECT 1 FROM sitemap AS e "      \
    "WHERE e.site "                                                                                \
    "= f.site"                                                                                     \
    " AND e.loc = f.loc AND e.source = f.source AND " ENTRY_ROW_LIVE ")"
#define FILE_OF_SOURCE_BY(index)                                                                   \
    "SELECT " FILE_COLUMNS " FROM source_file AS f" index                                          \
    " WHERE f.source = (SELECT id FROM source WHERE name = ?1)"
#define FILE_OF_SOURCE FILE_OF_SOURCE_BY("")
/* Named, or the engine reads all rows of the source by their key. */
#define BY_REMARKED " INDEXED BY source_file_remarked"
#define BY_REFUSED  " INDEXED BY source_file_refused"

static const char *text_of(sqlite3_stmt *row, int column)
{
    return (const char *)sqlite3_column_text(row, column);
}

static uint64_t number_of(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

static void read_file(sqlite3_stmt *row, struct source_file *out)
{
    out->path = text_of(row, 0);
    out->loc = text_of(row, 1);
    out->state = (enum source_file_state)sqlite3_column_int(row, 2);
    out->refused = sqlite3_column_int(row, 3) != 0;
    out->device = number_of(row, 4);
    out->inode = number_of(row, 5);
    out->size = number_of(row, 6);
    out->mtime_ns = sqlite3_column_int64(row, 7);
    statement_hash(row, 8, out->hash);
    out->lastmod = text_of(row, 9);
    out->urls = number_of(row, 10);
    out->bytes = number_of(row, 11);
    out->newest_lastmod = text_of(row, 12);
    out->one_lastmod = sqlite3_column_int(row, 13) != 0;
    out->future = sqlite3_column_int(row, 14) != 0;
    out->problem = text_of(row, 15);
    out->detail = text_of(row, 16);
    out->line = number_of(row, 17);
    out->column = number_of(row, 18);
    out->problem_since = sqlite3_column_int64(row, 19);
    out->remarks = text_of(row, 20);
    out->claim = text_of(row, 21);
    out->has_entry = sqlite3_column_int(row, 22) != 0;
}

typedef bool each_file(void *context, const struct source_file *file);

static enum catalogue_status walk_files(struct catalogue_view *v, sqlite3_stmt *row,
                                        const char *source, each_file *each, void *context)
{
    bool ended = false;

    int rc = view_bind(row, "t", source);
    while (rc == SQLITE_OK && !ended && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct source_file file;
        read_file(row, &file);
        rc = file.path != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (rc == SQLITE_OK)
            ended = !each(context, &file);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_source_files(struct catalogue_view *v, const char *source,
                                                  each_file *each, void *context)
{
    return walk_files(v, view_statement(v, VIEW_SOURCE_FILES, FILE_OF_SOURCE " ORDER BY f.path"),
                      source, each, context);
}

enum catalogue_status catalogue_view_source_remarked(struct catalogue_view *v, const char *source,
                                                     each_file *each, void *context)
{
    return walk_files(
        v,
        view_statement(
            v, VIEW_SOURCE_REMARKED,
            FILE_OF_SOURCE_BY(
                BY_REMARKED) " AND f.remarks IS NOT NULL AND f.state = 0 ORDER BY f.path"),
        source, each, context);
}

enum catalogue_status catalogue_view_source_refused(struct catalogue_view *v, const char *source,
                                                    each_file *each, void *context)
{
    return walk_files(
        v,
        view_statement(v, VIEW_SOURCE_REFUSED,
                       FILE_OF_SOURCE_BY(BY_REFUSED) " AND f.state = 3 ORDER BY f.path"),
        source, each, context);
}

enum catalogue_status catalogue_view_source_file(struct catalogue_view *v, const char *source,
                                                 const char *path, struct source_file *out,
                                                 bool *found)
{
    sqlite3_stmt *row = view_statement(v, VIEW_SOURCE_FILE, FILE_OF_SOURCE " AND f.path = ?2");

    *found = false;
    int rc = view_bind(row, "tt", source, path);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    /* It stays on its row, which holds the strings, until it is used again or the view ends. */
    if (rc == SQLITE_ROW) {
        *found = true;
        read_file(row, out);
        if (out->path == NULL)
            rc = SQLITE_NOMEM;
    } else {
        sqlite3_reset(row);
    }
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_source_state(struct catalogue_view *v, const char *source,
                                                  struct source_state *out)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_SOURCE_STATE,
        "SELECT scanned_at, good_at, files, listed, quarantined, held, hosts,"
        " (SELECT count(*) FROM source_file AS f" BY_REMARKED "  WHERE f.source = s.source"
        "  AND f.remarks IS NOT NULL AND f.state = 0) FROM source_state AS s"
        " WHERE s.source = (SELECT id FROM source WHERE name = ?1)");

    memset(out, 0, sizeof *out);
    int rc = view_bind(row, "t", source);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        out->scanned_at = sqlite3_column_int64(row, 0);
        out->good_at = sqlite3_column_int64(row, 1);
        out->files = number_of(row, 2);
        out->listed = number_of(row, 3);
        out->quarantined = number_of(row, 4);
        out->held = number_of(row, 5);
        out->hosts = sqlite3_column_int64(row, 6);
        out->remarked = number_of(row, 7);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_token_used(struct catalogue_view *v, int64_t token_id,
                                                int64_t *out)
{
    sqlite3_stmt *row =
        view_statement(v, VIEW_TOKEN_USED, "SELECT used_at FROM local_token_use WHERE token = ?1");

    *out = 0;
    int rc = view_bind(row, "i", token_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        *out = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return view_status(v, rc);
}

/* ---- crawlers --------------------------------------------------------------------------- */

static void read_crawler(sqlite3_stmt *row, char out[CRAWLER_KEPT_NAME])
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    snprintf(out, CRAWLER_KEPT_NAME, "%s", name != NULL ? name : "");
}

static void read_crawler_page(sqlite3_stmt *row, struct crawler_page_kept *out)
{
    memset(out, 0, sizeof *out);
    read_crawler(row, out->crawler);
    out->index_id = sqlite3_column_int64(row, 1);
    out->page = (uint32_t)sqlite3_column_int64(row, 2);
    out->held = sqlite3_column_int(row, 3) != 0;
    out->held_stamp = (uint64_t)sqlite3_column_int64(row, 4);
    out->held_changed_at = sqlite3_column_int64(row, 5);
    out->stale_since = sqlite3_column_int64(row, 6);
    out->fetched_at = sqlite3_column_int64(row, 7);
    out->status = (uint16_t)sqlite3_column_int(row, 8);
    out->ok = (uint32_t)sqlite3_column_int64(row, 9);
    out->not_modified = (uint32_t)sqlite3_column_int64(row, 10);
    out->other = (uint32_t)sqlite3_column_int64(row, 11);
}

static void read_crawler_day(sqlite3_stmt *row, struct crawler_day_kept *out)
{
    memset(out, 0, sizeof *out);
    read_crawler(row, out->crawler);
    out->site_id = sqlite3_column_int64(row, 1);
    out->day = sqlite3_column_int(row, 2);
    out->ok = (uint32_t)sqlite3_column_int64(row, 3);
    out->not_modified = (uint32_t)sqlite3_column_int64(row, 4);
    out->other = (uint32_t)sqlite3_column_int64(row, 5);
    out->impostors = (uint32_t)sqlite3_column_int64(row, 6);
    out->bytes = (uint64_t)sqlite3_column_int64(row, 7);
    out->last_fetch_at = sqlite3_column_int64(row, 8);
    out->lag_max_s = (uint32_t)sqlite3_column_int64(row, 9);
    const void *lags = sqlite3_column_blob(row, 10);
    if (lags != NULL && sqlite3_column_bytes(row, 10) == sizeof out->lags)
        memcpy(out->lags, lags, sizeof out->lags);
    for (size_t i = 0; i < CRAWLER_KEPT_LAGS; i++)
        out->lags[i] = le32toh(out->lags[i]);
}

enum catalogue_status
catalogue_view_crawlers(struct catalogue_view *v, int64_t *since,
                        void (*page)(void *context, const struct crawler_page_kept *row),
                        void (*day)(void *context, const struct crawler_day_kept *row),
                        void *context)
{
    sqlite3_stmt *row = view_statement(v, VIEW_CRAWLERS,
                                       "SELECT c.since FROM local_crawler AS c"
                                       " JOIN catalogue AS k ON k.epoch = c.epoch"
                                       " WHERE k.one = 1 AND c.node = ''");
    struct crawler_page_kept one_page;
    struct crawler_day_kept one_day;

    *since = 0;
    int rc = row == NULL ? SQLITE_NOMEM : sqlite3_step(row);
    if (rc == SQLITE_ROW)
        *since = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    if (*since == 0)
        return view_status(v, rc);
    row = view_statement(v, VIEW_CRAWLER_PAGES,
                         "SELECT crawler, index_id, page, held, held_stamp, held_changed_at,"
                         " stale_since, fetched_at, status, ok, not_modified, other"
                         " FROM local_crawler_page WHERE node = ''");
    for (rc = SQLITE_NOMEM; row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW;) {
        read_crawler_page(row, &one_page);
        page(context, &one_page);
    }
    sqlite3_reset(row);
    if (rc != SQLITE_DONE)
        return view_status(v, rc);
    row = view_statement(v, VIEW_CRAWLER_DAYS,
                         "SELECT crawler, site, day, ok, not_modified, other, impostors, bytes,"
                         " last_fetch_at, lag_max, lags FROM local_crawler_day WHERE node = ''");
    for (rc = SQLITE_NOMEM; row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW;) {
        read_crawler_day(row, &one_day);
        day(context, &one_day);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

static void read_crawler_visits(sqlite3_stmt *row, struct crawler_visits *out)
{
    memset(out, 0, sizeof *out);
    read_crawler(row, out->crawler);
    out->site_id = sqlite3_column_int64(row, 1);
    out->day = sqlite3_column_int(row, 2);
    out->index_id = sqlite3_column_int64(row, 3);
    out->page = (uint32_t)sqlite3_column_int64(row, 4);
    out->revision = (uint64_t)sqlite3_column_int64(row, 5);
    out->stamp = (uint64_t)sqlite3_column_int64(row, 6);
    out->changed_at = sqlite3_column_int64(row, 7);
    out->held_at = sqlite3_column_int64(row, 8);
    out->fetched_at = sqlite3_column_int64(row, 9);
    out->status = (uint16_t)sqlite3_column_int(row, 10);
    out->ok = (uint32_t)sqlite3_column_int64(row, 11);
    out->not_modified = (uint32_t)sqlite3_column_int64(row, 12);
    out->other = (uint32_t)sqlite3_column_int64(row, 13);
    out->impostors = (uint32_t)sqlite3_column_int64(row, 14);
    out->bytes = (uint64_t)sqlite3_column_int64(row, 15);
}

enum catalogue_status
catalogue_view_crawler_visits(struct catalogue_view *v, int64_t *last,
                              void (*each)(void *context, const struct crawler_visits *visits),
                              void *context)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_CRAWLER_VISITS,
        "SELECT v.crawler, v.site, v.day, v.index_id, v.page, v.revision, v.stamp, v.changed_at,"
        " v.held_at, v.fetched_at, v.status, v.ok, v.not_modified, v.other, v.impostors, v.bytes,"
        " v.id FROM local_crawler_visits AS v JOIN catalogue AS k ON k.epoch = v.epoch"
        " WHERE k.one = 1 ORDER BY v.id");
    struct crawler_visits visits;
    int rc;

    *last = 0;
    for (rc = SQLITE_NOMEM; row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW;) {
        read_crawler_visits(row, &visits);
        *last = sqlite3_column_int64(row, 16);
        each(context, &visits);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_crawler_logs(struct catalogue_view *v,
                                                  void (*each)(void *context,
                                                               const struct crawler_log *log),
                                                  void *context)
{
    sqlite3_stmt *row = view_statement(
        v, VIEW_CRAWLER_LOGS, "SELECT bytes, hash, at FROM local_crawler_log ORDER BY bytes");
    int rc;

    for (rc = SQLITE_NOMEM; row != NULL && (rc = sqlite3_step(row)) == SQLITE_ROW;) {
        struct crawler_log log = {.bytes = (uint64_t)sqlite3_column_int64(row, 0),
                                  .at = sqlite3_column_int64(row, 2)};
        const void *hash = sqlite3_column_blob(row, 1);

        if (hash == NULL || sqlite3_column_bytes(row, 1) != sizeof log.hash)
            continue;
        memcpy(log.hash, hash, sizeof log.hash);
        each(context, &log);
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

/* ---- the file of an entry -------------------------------------------------------------- */

/* Whether a source has files at all; remembered, since neighbours mostly have the same owner. */
static int owner_has_files(struct catalogue_view *v, int64_t source, bool *has)
{
    sqlite3_stmt *row;
    int rc;

    *has = v->file_owner_has;
    if (v->file_owner == source)
        return SQLITE_OK;
    row = view_statement(v, VIEW_OWNER_HAS_FILES, "SELECT 1 FROM source_state WHERE source = ?1");
    rc = view_bind(row, "i", source);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    sqlite3_reset(row);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    v->file_owner = source;
    *has = v->file_owner_has = rc == SQLITE_ROW;
    return SQLITE_OK;
}

int entry_row_borrow_file(struct catalogue_view *v, enum view_statement which, int64_t source,
                          struct entry_record *record)
{
    sqlite3_stmt *row;
    bool has;
    int rc = owner_has_files(v, source, &has);

    if (rc != SQLITE_OK || !has)
        return rc;
    /* The plus keeps the engine from reading all files of the source instead. */
    row = view_statement(v, which,
                         "SELECT urls, bytes, newest_lastmod FROM source_file"
                         " WHERE +source = ?1 AND site = ?2 AND loc = ?3");
    rc = view_bind(row, "iit", source, record->site_id, record->loc);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_DONE)
        return SQLITE_OK;
    if (rc != SQLITE_ROW)
        return rc;
    record->has_file = true;
    record->file_urls = number_of(row, 0);
    record->file_bytes = number_of(row, 1);
    record->file_newest_lastmod = (char *)(uintptr_t)sqlite3_column_text(row, 2);
    return SQLITE_OK;
}

/* Views: what the publisher reads, all of one revision. */

/* ---- the catalogue as a whole ---------------------------------------------------------- */

static enum catalogue_status count_rows(struct catalogue_view *v, struct catalogue_revisions *out)
{
    sqlite3_stmt *row =
        view_statement(v, VIEW_ENTRIES,
                       "SELECT coalesce(sum(iif(i.kind = 0, p.entries, 0)), 0),"
                       " coalesce(sum(iif(i.kind = 0, 0, p.entries)), 0)"
                       " FROM page AS p CROSS JOIN sitemap_index AS i ON i.id = p.index_id"
                       " CROSS JOIN site AS s ON s.id = i.site"
                       " WHERE p.entries > 0 AND i.removed = 0 AND s.removed = 0");
    int rc = row != NULL ? sqlite3_step(row) : SQLITE_ERROR;

    if (rc != SQLITE_ROW)
        return view_status(v, rc);
    out->entries = (uint64_t)sqlite3_column_int64(row, 0);
    out->urls = (uint64_t)sqlite3_column_int64(row, 1);
    sqlite3_reset(row);
    return CATALOGUE_OK;
}

enum catalogue_status catalogue_view_revisions(struct catalogue_view *v,
                                               struct catalogue_revisions *out)
{
    struct view_pool *pool = v->pool;
    enum catalogue_status status;
    bool known;

    memcpy(out->epoch, v->epoch, sizeof out->epoch);
    out->revision = v->revision;
    out->registry_revision = v->registry_revision;

    pthread_mutex_lock(&pool->lock);
    known = pool->entries_known && pool->generation == v->generation &&
            pool->entries_revision == v->revision;
    out->entries = pool->entries;
    out->urls = pool->urls;
    pthread_mutex_unlock(&pool->lock);
    if (known)
        return CATALOGUE_OK;

    status = count_rows(v, out);
    if (status != CATALOGUE_OK)
        return status;
    pthread_mutex_lock(&pool->lock);
    if (pool->generation == v->generation &&
        !(pool->entries_known && pool->entries_revision > v->revision)) {
        pool->entries_known = true;
        pool->entries_revision = v->revision;
        pool->entries = out->entries;
        pool->urls = out->urls;
    }
    pthread_mutex_unlock(&pool->lock);
    return CATALOGUE_OK;
}

/* The pool's registry, if it is the view's: the file's registry revision says so. */
static struct registry *cached_registry(struct catalogue_view *v)
{
    struct view_pool *pool = v->pool;
    struct registry *found = NULL;

    pthread_mutex_lock(&pool->lock);
    if (pool->registry != NULL && pool->generation == v->generation &&
        pool->registry->registry_revision == v->registry_revision &&
        strcmp(pool->registry->epoch, v->epoch) == 0)
        found = registry_ref(pool->registry);
    pthread_mutex_unlock(&pool->lock);
    return found;
}

/* The pool's registry of the view's file, whatever its revision; a reference, or NULL. */
static struct registry *newest_registry(struct catalogue_view *v)
{
    struct view_pool *pool = v->pool;

    pthread_mutex_lock(&pool->lock);
    struct registry *found = pool->registry != NULL && pool->generation == v->generation
                                 ? registry_ref(pool->registry)
                                 : NULL;
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static void cache_registry(struct catalogue_view *v, const struct registry *fresh)
{
    struct view_pool *pool = v->pool;
    struct registry *stale = NULL;

    pthread_mutex_lock(&pool->lock);
    if (pool->generation == v->generation &&
        (pool->registry == NULL || pool->registry->registry_revision < fresh->registry_revision)) {
        stale = pool->registry;
        pool->registry = registry_ref(fresh);
    }
    pthread_mutex_unlock(&pool->lock);
    registry_unref(stale);
}

enum catalogue_status catalogue_view_registry(struct catalogue_view *v, struct registry **out)
{
    enum catalogue_status status;

    *out = cached_registry(v);
    if (*out != NULL)
        return CATALOGUE_OK;
    struct registry *before = newest_registry(v);
    status = registry_load(v->db, before, out);
    registry_unref(before);
    if (status != CATALOGUE_OK) {
        v->broken = status != CATALOGUE_NO_MEMORY && status != CATALOGUE_BUSY;
        return status;
    }
    cache_registry(v, *out);
    return CATALOGUE_OK;
}

enum catalogue_status catalogue_registry(struct catalogue *c, struct registry **out)
{
    struct catalogue_view *v;
    enum catalogue_status status = catalogue_view_begin(c, &v);

    *out = NULL;
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_registry(v, out);
    catalogue_view_end(v);
    if (status != CATALOGUE_OK)
        *out = NULL;
    return status;
}

/* ---- pages ----------------------------------------------------------------------------- */

#define PAGE_COLUMNS                                                                               \
    "p.index_id, p.number, p.entries, p.bytes, p.changed_at, p.same_second, p.revision,"           \
    " p.stamp, i.removed OR s.removed OR p.entries = 0, i.kind, i.extensions"
/* CROSS JOIN keeps the order of the tables: pages are few among many, indexes are looked up. */
#define PAGE_TABLES                                                                                \
    " FROM page AS p CROSS JOIN sitemap_index AS i ON i.id = p.index_id"                           \
    " CROSS JOIN site AS s ON s.id = i.site"

static void take_page(sqlite3_stmt *row, struct page_record *out)
{
    out->index_id = sqlite3_column_int64(row, 0);
    out->number = (uint32_t)sqlite3_column_int64(row, 1);
    out->entries = (uint32_t)sqlite3_column_int64(row, 2);
    out->bytes = (uint64_t)sqlite3_column_int64(row, 3);
    out->changed_at = sqlite3_column_int64(row, 4);
    out->same_second = sqlite3_column_int(row, 5) != 0;
    out->revision = (uint64_t)sqlite3_column_int64(row, 6);
    out->stamp = (uint64_t)sqlite3_column_int64(row, 7);
    out->removed = sqlite3_column_int(row, 8) != 0;
    out->kind = (enum list_kind)sqlite3_column_int(row, 9);
    out->with = (unsigned)sqlite3_column_int64(row, 10);
}

/* Columns 11 to 13: origin, path, pattern. False where they make no URL. */
static bool page_url(sqlite3_stmt *row, uint32_t number, char *out, size_t size)
{
    const char *origin = (const char *)sqlite3_column_text(row, 11);
    const char *path = (const char *)sqlite3_column_text(row, 12);
    const char *pattern = (const char *)sqlite3_column_text(row, 13);
    char page_path[PAGE_PATH_SIZE];

    if (origin == NULL || path == NULL || pattern == NULL ||
        scope_check_index_path(path) != RULE_OK || scope_check_pattern(pattern) != RULE_OK)
        return false;
    scope_page_path(path, pattern, number, false, page_path);
    return snprintf(out, size, "%s%s", origin, page_path) < (int)size;
}

enum catalogue_status catalogue_view_pages_since(
    struct catalogue_view *v, uint64_t since, size_t limit,
    bool (*each)(void *context, const struct page_record *page, const char *url), void *context)
{
    char url[sizeof "https://:65535" + HOST_MAX_CHARS + PAGE_PATH_SIZE];
    sqlite3_stmt *row =
        view_statement(v, VIEW_PAGES_SINCE,
                       "SELECT " PAGE_COLUMNS ", s.origin, i.path, i.page_pattern" PAGE_TABLES
                       " WHERE p.revision > ?1 ORDER BY p.revision, p.index_id, p.number LIMIT ?2");

    if (since > INT64_MAX)
        return CATALOGUE_OK;
    int rc = view_bind(row, "ii", (int64_t)since, limit > 0 ? (int64_t)limit : -1);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        struct page_record page;
        take_page(row, &page);
        rc = SQLITE_OK;
        if (!page_url(row, page.number, url, sizeof url))
            rc = SQLITE_CORRUPT;
        else if (!each(context, &page, url))
            break;
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, struct page_record *out)
{
    sqlite3_stmt *row = view_statement(v, VIEW_PAGE,
                                       "SELECT " PAGE_COLUMNS PAGE_TABLES
                                       " WHERE p.index_id = ?1 AND p.number = ?2");

    int rc = view_bind(row, "ii", index_id, (int64_t)number);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        take_page(row, out);
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? CATALOGUE_NOT_FOUND : view_status(v, rc);
}

enum catalogue_status catalogue_view_index_state(struct catalogue_view *v, int64_t index_id,
                                                 char out[INDEX_STATE_SIZE])
{
    sqlite3_stmt *row = view_statement(v, VIEW_INDEX_STATE, INDEX_STATE_SQL);

    int rc = view_bind(row, "i", index_id);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW)
        index_state_format(v->epoch, number_of(row, 0), out);
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? CATALOGUE_NOT_FOUND : view_status(v, rc);
}

/* ---- segments and entries of a page ---------------------------------------------------- */

enum catalogue_status catalogue_view_segments_since(struct catalogue_view *v, int64_t index_id,
                                                    uint32_t number, uint64_t since,
                                                    uint64_t changed[PAGE_SEGMENT_BITS])
{
    int64_t first = ((int64_t)number - 1) * PAGE_SEGMENTS;
    sqlite3_stmt *row = view_statement(v, VIEW_SEGMENTS_SINCE,
                                       "SELECT number - ?2 FROM segment WHERE index_id = ?1"
                                       " AND number BETWEEN ?2 AND ?3 AND revision > ?4");

    memset(changed, 0, PAGE_SEGMENT_BITS * sizeof *changed);
    if (number < 1 || since > INT64_MAX)
        return CATALOGUE_OK;
    int rc = view_bind(row, "iiii", index_id, first, first + PAGE_SEGMENTS - 1, (int64_t)since);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        unsigned segment = (unsigned)sqlite3_column_int(row, 0);
        changed[segment / 64] |= (uint64_t)1 << segment % 64;
        rc = SQLITE_OK;
    }
    sqlite3_reset(row);
    return view_status(v, rc);
}

enum catalogue_status catalogue_view_positions(
    struct catalogue_view *v, int64_t index_id, uint32_t first, uint32_t count,
    bool (*each)(void *context, uint32_t position, const char *loc, size_t loc_len,
                 const char *lastmod, const char *extensions, size_t extensions_len),
    void *context)
{
    /* The condition on the index is asked once a call, not once a row. */
    sqlite3_stmt *row =
        view_statement(v, VIEW_POSITIONS,
                       "SELECT address, loc, lastmod, extensions FROM sitemap"
                       " WHERE address BETWEEN ?1 AND ?2"
                       " AND (SELECT i.removed = 0 AND s.removed = 0 FROM sitemap_index AS i"
                       "  JOIN site AS s ON s.id = i.site WHERE i.id = ?3)"
                       " ORDER BY address");
    uint64_t last = (uint64_t)first + count - 1;
    bool failed = false;

    if (count == 0 || index_id < 1 || index_id > ID_MAX_INDEX)
        return CATALOGUE_OK;
    if (last > UINT32_MAX)
        last = UINT32_MAX;
    int rc = view_bind(row, "iii", id_address(index_id, first),
                       id_address(index_id, (uint32_t)last), index_id);
    while (rc == SQLITE_OK && !failed && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        const char *loc = (const char *)sqlite3_column_text(row, 1);
        const char *lastmod = (const char *)sqlite3_column_text(row, 2);
        const char *extensions = (const char *)sqlite3_column_text(row, 3);
        rc = loc != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (loc != NULL)
            failed = !each(context, id_address_position(sqlite3_column_int64(row, 0)), loc,
                           (size_t)sqlite3_column_bytes(row, 1), lastmod, extensions,
                           extensions != NULL ? (size_t)sqlite3_column_bytes(row, 3) : 0);
    }
    sqlite3_reset(row);
    return failed ? CATALOGUE_NO_MEMORY : view_status(v, rc);
}
