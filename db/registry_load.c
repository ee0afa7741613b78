#include "db/registry_load.h"

#include <string.h>

#include "db/connection.h"
#include "db/registry_store.h"
#include "server/rules/scope.h"

/* One pass over each table, in an order that lets neighbours be joined without a lookup. Sizes are
 * asked for first, so that each kind of thing is allocated once. */
static const char sql_catalogue[] =
    "SELECT epoch, revision, registry_revision FROM catalogue WHERE one = 1";
static const char sql_sizes[] =
    "SELECT s.n, i.n, t.n, h.n, (SELECT count(*) FROM page WHERE entries > 0),"
    " s.bytes + i.bytes + t.bytes + h.bytes FROM"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(origin AS BLOB)) + 1), 0) AS bytes"
    "  FROM site WHERE removed = 0) AS s,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(path AS BLOB)) +"
    "  length(CAST(page_pattern AS BLOB)) + 2), 0) AS bytes"
    "  FROM sitemap_index WHERE removed = 0) AS i,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(name AS BLOB)) + 1), 0) AS bytes"
    "  FROM token) AS t,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(host AS BLOB)) + 1), 0) AS bytes"
    "  FROM site_host) AS h";
static const char sql_sites[] =
    "SELECT id, origin, managed, max_pages FROM site WHERE removed = 0 ORDER BY origin";
static const char sql_indexes[] =
    "SELECT id, site, path, page_pattern FROM sitemap_index WHERE removed = 0"
    " ORDER BY site, path";
static const char sql_hosts[] = "SELECT site, kind, host FROM site_host ORDER BY site, kind, host";
static const char sql_pages[] =
    "SELECT index_id, number FROM page WHERE entries > 0 ORDER BY index_id, number";
static const char sql_tokens[] =
    "SELECT id, name, sha256, site, created_at FROM token ORDER BY name";

/* Takes one row. CATALOGUE_CORRUPT where it cannot be. */
typedef enum catalogue_status take_row(struct registry_store *store, sqlite3_stmt *row);

static const char *column_text(struct registry_store *store, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    if (text == NULL)
        return NULL;
    return registry_store_text(store, text, (size_t)sqlite3_column_bytes(row, column));
}

static enum catalogue_status take_site(struct registry_store *store, sqlite3_stmt *row)
{
    struct registry_site *site = &store->sites[store->pub.site_count];

    if (store->pub.site_count == store->site_capacity)
        return CATALOGUE_CORRUPT;
    site->id = sqlite3_column_int64(row, 0);
    site->origin = column_text(store, row, 1);
    site->managed = sqlite3_column_int(row, 2) != 0;
    site->max_pages = (uint32_t)sqlite3_column_int64(row, 3);
    /* Stored as normalised; what is not would be found under another name than its own. */
    if (site->origin == NULL ||
        url_parse_origin(site->origin, strlen(site->origin), &site->origin_url) != RULE_OK ||
        strcmp(site->origin, site->origin_url.text) != 0)
        return CATALOGUE_CORRUPT;
    store->pub.site_count++;
    return CATALOGUE_OK;
}

static struct registry_site *find_site(struct registry_store *store, int64_t id)
{
    const struct registry_site *site = registry_site_by_id(&store->pub, id);

    return site != NULL ? &store->sites[site - store->sites] : NULL;
}

static enum catalogue_status take_index(struct registry_store *store, sqlite3_stmt *row)
{
    struct registry_index *index = &store->indexes[store->index_count];
    struct registry_site *site = find_site(store, sqlite3_column_int64(row, 1));
    const char *pattern = (const char *)sqlite3_column_text(row, 3);

    if (site == NULL)
        return CATALOGUE_OK; /* of a removed site */
    if (store->index_count == store->index_capacity || pattern == NULL)
        return CATALOGUE_CORRUPT;
    index->id = sqlite3_column_int64(row, 0);
    index->site_id = site->id;
    index->path = column_text(store, row, 2);
    index->page_pattern = strcmp(pattern, PAGE_PATTERN_DEFAULT) == 0 ? PAGE_PATTERN_DEFAULT
                                                                     : column_text(store, row, 3);
    index->pages = store->pages;
    /* Page names are made of both without further checks. */
    if (index->path == NULL || index->page_pattern == NULL ||
        scope_check_index_path(index->path) != RULE_OK ||
        scope_check_pattern(index->page_pattern) != RULE_OK)
        return CATALOGUE_CORRUPT;
    if (site->index_count++ == 0)
        site->indexes = index;
    store->index_count++;
    return CATALOGUE_OK;
}

/* Aliases stand before cross hosts: "alias" < "cross". */
static enum catalogue_status take_host(struct registry_store *store, sqlite3_stmt *row)
{
    struct registry_site *site = find_site(store, sqlite3_column_int64(row, 0));
    const char *kind = (const char *)sqlite3_column_text(row, 1);
    const char **host = &store->hosts[store->host_count];

    if (site == NULL)
        return CATALOGUE_OK;
    if (store->host_count == store->host_capacity || kind == NULL)
        return CATALOGUE_CORRUPT;
    *host = column_text(store, row, 2);
    if (*host == NULL)
        return CATALOGUE_CORRUPT;
    if (strcmp(kind, "alias") == 0) {
        if (site->alias_host_count++ == 0)
            site->alias_hosts = host;
    } else if (site->cross_host_count++ == 0) {
        site->cross_hosts = host;
    }
    store->host_count++;
    return CATALOGUE_OK;
}

static enum catalogue_status take_page(struct registry_store *store, sqlite3_stmt *row)
{
    const struct registry_index *found =
        registry_index_by_id(&store->pub, sqlite3_column_int64(row, 0));
    struct registry_index *index;

    if (found == NULL)
        return CATALOGUE_OK; /* of a removed index: a tombstone */
    if (store->page_count == store->page_capacity)
        return CATALOGUE_CORRUPT;
    index = &store->indexes[found - store->indexes];
    if (index->page_count++ == 0)
        index->pages = &store->pages[store->page_count];
    store->pages[store->page_count++] = (uint32_t)sqlite3_column_int64(row, 1);
    return CATALOGUE_OK;
}

static enum catalogue_status take_token(struct registry_store *store, sqlite3_stmt *row)
{
    struct registry_token *token = &store->tokens[store->pub.token_count];

    if (store->pub.token_count == store->token_capacity ||
        sqlite3_column_bytes(row, 2) != (int)sizeof token->sha256)
        return CATALOGUE_CORRUPT;
    token->id = sqlite3_column_int64(row, 0);
    token->name = column_text(store, row, 1);
    memcpy(token->sha256, sqlite3_column_blob(row, 2), sizeof token->sha256);
    token->site_id = sqlite3_column_int64(row, 3); /* NULL: 0 */
    token->created_at = sqlite3_column_int64(row, 4);
    if (token->name == NULL)
        return CATALOGUE_CORRUPT;
    store->pub.token_count++;
    return CATALOGUE_OK;
}

static enum catalogue_status take_catalogue(struct registry_store *store, sqlite3_stmt *row)
{
    const char *epoch = (const char *)sqlite3_column_text(row, 0);

    if (epoch == NULL || strlen(epoch) >= sizeof store->pub.epoch)
        return CATALOGUE_CORRUPT;
    memcpy(store->pub.epoch, epoch, strlen(epoch) + 1);
    store->pub.revision = (uint64_t)sqlite3_column_int64(row, 1);
    store->pub.registry_revision = (uint64_t)sqlite3_column_int64(row, 2);
    return CATALOGUE_OK;
}

static enum catalogue_status take_all(sqlite3 *db, const char *sql, take_row *take,
                                      struct registry_store *store)
{
    sqlite3_stmt *row = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    int rc = sqlite3_prepare_v2(db, sql, -1, &row, NULL);

    while (rc == SQLITE_OK && status == CATALOGUE_OK) {
        int step = sqlite3_step(row);
        if (step == SQLITE_ROW)
            status = take(store, row);
        else
            rc = step;
    }
    sqlite3_finalize(row);
    return status != CATALOGUE_OK ? status : connection_status(rc);
}

static enum catalogue_status read_sizes(sqlite3 *db, struct registry_sizes *out)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, sql_sizes, -1, &row, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(row);
    if (rc == SQLITE_ROW) {
        out->sites = (size_t)sqlite3_column_int64(row, 0);
        out->indexes = (size_t)sqlite3_column_int64(row, 1);
        out->tokens = (size_t)sqlite3_column_int64(row, 2);
        out->hosts = (size_t)sqlite3_column_int64(row, 3);
        out->pages = (size_t)sqlite3_column_int64(row, 4);
        out->string_bytes = (size_t)sqlite3_column_int64(row, 5);
    }
    sqlite3_finalize(row);
    return connection_status(rc);
}

static enum catalogue_status fill(sqlite3 *db, struct registry_store *store)
{
    enum catalogue_status status = take_all(db, sql_catalogue, take_catalogue, store);

    if (status == CATALOGUE_OK && store->pub.epoch[0] == '\0')
        status = CATALOGUE_CORRUPT; /* its one row is missing */
    if (status == CATALOGUE_OK)
        status = take_all(db, sql_sites, take_site, store);
    registry_store_sort_sites(store);
    if (status == CATALOGUE_OK)
        status = take_all(db, sql_indexes, take_index, store);
    registry_store_sort_indexes(store);
    if (status == CATALOGUE_OK)
        status = take_all(db, sql_hosts, take_host, store);
    if (status == CATALOGUE_OK)
        status = take_all(db, sql_pages, take_page, store);
    if (status == CATALOGUE_OK)
        status = take_all(db, sql_tokens, take_token, store);
    if (status == CATALOGUE_OK && !registry_store_seal(store))
        status = CATALOGUE_NO_MEMORY;
    return status;
}

enum catalogue_status registry_load(sqlite3 *db, struct registry **out)
{
    struct registry_sizes sizes;
    struct registry_store *store;
    enum catalogue_status status = read_sizes(db, &sizes);

    *out = NULL;
    if (status != CATALOGUE_OK)
        return status;
    store = registry_store_new(&sizes);
    if (store == NULL)
        return CATALOGUE_NO_MEMORY;
    status = fill(db, store);
    if (status != CATALOGUE_OK) {
        registry_store_free(store);
        return status;
    }
    *out = &store->pub;
    return CATALOGUE_OK;
}
