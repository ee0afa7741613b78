/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads of one revision, mainly for the publisher. */
#include <stdio.h>
#include <string.h>

#include "db/read/registry_store.h"
#include "db/read/row.h"
#include "db/read/view_pool.h"
#include "server/rules/limits.h"
#include "server/rules/scope.h"

/* ---- the catalogue as a whole ---------------------------------------------------------- */

static enum catalogue_status count_rows(struct catalogue_view *v, struct catalogue_revisions *out)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT coalesce(sum(iif(i.kind = 0, p.entries, 0)), 0),"
                          " coalesce(sum(iif(i.kind = 0, 0, p.entries)), 0)"
                          " FROM page AS p CROSS JOIN sitemap_index AS i ON i.id = p.index_id"
                          " CROSS JOIN site AS s ON s.id = i.site"
                          " WHERE p.entries > 0 AND i.removed = 0 AND s.removed = 0");
    int rc = sql_bind(row);

    if (sql_next(row, &rc)) {
        out->entries = row_number(row, 0);
        out->urls = row_number(row, 1);
    }
    return view_end_statement(v, row, rc);
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

/* The pool's registry, if it has the view's registry revision. */
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

/* The pool's registry of the view's file, at any revision; a reference, or NULL. */
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
    " p.stamp, i.removed OR s.removed OR p.entries = 0, i.kind, i.extensions, i.site"
/* CROSS JOIN keeps the order of the tables: pages are few among many, indexes are looked up. */
#define PAGE_TABLES                                                                                \
    " FROM page AS p CROSS JOIN sitemap_index AS i ON i.id = p.index_id"                           \
    " CROSS JOIN site AS s ON s.id = i.site"

static void load_page(sqlite3_stmt *row, struct page_record *out)
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
    out->site_id = sqlite3_column_int64(row, 11);
}

/* Columns 12 to 14: origin, path, pattern. False if they make no valid URL. */
static bool page_url(sqlite3_stmt *row, uint32_t number, char *out, size_t size)
{
    const char *origin = (const char *)sqlite3_column_text(row, 12);
    const char *path = (const char *)sqlite3_column_text(row, 13);
    const char *pattern = (const char *)sqlite3_column_text(row, 14);
    char page_path[PAGE_PATH_SIZE];

    if (origin == NULL || path == NULL || pattern == NULL ||
        scope_check_index_path(path) != RULE_OK || scope_check_pattern(pattern) != RULE_OK)
        return false;
    scope_page_path(path, pattern, number, false, page_path);
    return snprintf(out, size, "%s%s", origin, page_path) < (int)size;
}

enum catalogue_status catalogue_view_pages_since(
    struct catalogue_view *v, uint64_t since, int64_t site_id,
    bool (*each)(void *context, const struct page_record *page, const char *url), void *context)
{
    char url[sizeof "https://:65535" + HOST_MAX_CHARS + PAGE_PATH_SIZE];
    sqlite3_stmt *row =
        view_statement(v, "SELECT " PAGE_COLUMNS ", s.origin, i.path, i.page_pattern" PAGE_TABLES
                          " WHERE p.revision > ?1 AND (?2 = 0 OR s.origin = (SELECT origin"
                          " FROM site WHERE id = ?2)) ORDER BY p.revision, p.index_id, p.number");

    if (since > INT64_MAX)
        return CATALOGUE_OK;
    int rc = sql_bind(row, since, site_id);
    while (sql_next(row, &rc)) {
        struct page_record page;
        load_page(row, &page);
        rc = SQLITE_OK;
        if (!page_url(row, page.number, url, sizeof url))
            rc = SQLITE_CORRUPT;
        else if (!each(context, &page, url))
            break;
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_page(struct catalogue_view *v, int64_t index_id,
                                          uint32_t number, struct page_record *out)
{
    sqlite3_stmt *row = view_statement(v, "SELECT " PAGE_COLUMNS PAGE_TABLES
                                          " WHERE p.index_id = ?1 AND p.number = ?2");

    int rc = sql_bind(row, index_id, number);
    if (sql_next(row, &rc))
        load_page(row, out);
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? CATALOGUE_NOT_FOUND : view_status(v, rc);
}

enum catalogue_status catalogue_view_index_state(struct catalogue_view *v, int64_t index_id,
                                                 char out[INDEX_STATE_SIZE])
{
    sqlite3_stmt *row = view_statement(v, INDEX_STATE_SQL);

    int rc = sql_bind(row, index_id);
    if (sql_next(row, &rc))
        index_state_format(v->epoch, (uint64_t)sqlite3_column_int64(row, 0),
                           sqlite3_column_int64(row, 1), out);
    sqlite3_reset(row);
    return rc == SQLITE_DONE ? CATALOGUE_NOT_FOUND : view_status(v, rc);
}

/* ---- segments and entries of a page ---------------------------------------------------- */

enum catalogue_status catalogue_view_segments_since(struct catalogue_view *v, int64_t index_id,
                                                    uint32_t number, uint64_t since,
                                                    uint64_t changed[PAGE_SEGMENT_BITS])
{
    int64_t first = ((int64_t)number - 1) * PAGE_SEGMENTS;
    sqlite3_stmt *row = view_statement(v, "SELECT number - ?2 FROM segment WHERE index_id = ?1"
                                          " AND number BETWEEN ?2 AND ?3 AND revision > ?4");

    memset(changed, 0, PAGE_SEGMENT_BITS * sizeof *changed);
    if (number < 1 || since > INT64_MAX)
        return CATALOGUE_OK;
    int rc = sql_bind(row, index_id, first, first + PAGE_SEGMENTS - 1, since);
    while (sql_next(row, &rc)) {
        unsigned segment = (unsigned)sqlite3_column_int(row, 0);
        changed[segment / 64] |= (uint64_t)1 << segment % 64;
    }
    return view_end_statement(v, row, rc);
}

enum catalogue_status catalogue_view_positions(
    struct catalogue_view *v, enum list_kind kind, int64_t index_id, uint32_t first, uint32_t count,
    bool (*each)(void *context, const char *loc, size_t loc_len, const char *lastmod,
                 const char *extensions, size_t extensions_len),
    void *context)
{
    /* Every column of every row costs: entries have no extensions, and their positions show in the
     * order. CROSS JOIN: the condition on the index is evaluated once for the call. */
#define POSITIONS(columns)                                                                         \
    "SELECT " columns " FROM sitemap_index AS i CROSS JOIN site AS s CROSS JOIN sitemap AS e"      \
    " WHERE i.id = ?3 AND i.removed = 0 AND s.id = i.site AND s.removed = 0"                       \
    " AND e.address BETWEEN ?1 AND ?2 ORDER BY e.address"
    bool urlset = kind == LIST_URLSET;
    sqlite3_stmt *row = urlset ? view_statement(v, POSITIONS("e.loc, e.lastmod, e.extensions"))
                               : view_statement(v, POSITIONS("e.loc, e.lastmod"));
    uint64_t last = (uint64_t)first + count - 1;
    bool failed = false;

    if (count == 0 || index_id < 1 || index_id > ID_MAX_INDEX)
        return CATALOGUE_OK;
    if (last > UINT32_MAX)
        last = UINT32_MAX;
    int rc =
        sql_bind(row, id_address(index_id, first), id_address(index_id, (uint32_t)last), index_id);
    while (!failed && sql_next(row, &rc)) {
        const char *loc = (const char *)sqlite3_column_text(row, 0);
        const char *lastmod = (const char *)sqlite3_column_text(row, 1);
        const char *extensions = urlset ? (const char *)sqlite3_column_text(row, 2) : NULL;
        rc = loc != NULL ? SQLITE_OK : SQLITE_NOMEM;
        if (loc != NULL)
            failed = !each(context, loc, (size_t)sqlite3_column_bytes(row, 0), lastmod, extensions,
                           extensions != NULL ? (size_t)sqlite3_column_bytes(row, 2) : 0);
    }
    sqlite3_reset(row);
    return failed ? CATALOGUE_NO_MEMORY : view_status(v, rc);
}

/* ---- tokens */

enum catalogue_status catalogue_view_token_used(struct catalogue_view *v, int64_t token_id,
                                                int64_t *out)
{
    sqlite3_stmt *row =
        view_statement(v, "SELECT max(used_at, coalesce((SELECT created_at FROM token"
                          " WHERE id = local_token_use.token), 0))"
                          " FROM local_token_use WHERE token = ?1");

    return view_number(v, row, sql_bind(row, token_id), out);
}
