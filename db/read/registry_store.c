/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the registry from the file: sites, hosts, indexes, urlsets, sources and tokens, then the
 * maps for lookups. */
#include "db/read/registry_store.h"

#include <stdlib.h>
#include <string.h>

#include "db/file/bind.h"
#include "db/file/connection.h"
#include "db/read/row.h"
#include "server/rules/page/extension.h"
#include "server/rules/scope.h"

/* ---- memory ---------------------------------------------------------------------------- */

/* calloc of 0 members may return NULL, which is not a failure here. */
static void *new_array(size_t count, size_t size, bool *failed)
{
    void *array = calloc(count > 0 ? count : 1, size);

    if (array == NULL)
        *failed = true;
    return array;
}

/* An empty store with one reference; NULL when out of memory. */
static struct registry_store *registry_store_new(const struct registry_sizes *sizes)
{
    struct registry_store *store = calloc(1, sizeof *store);
    bool failed = false;

    if (store == NULL)
        return NULL;
    atomic_init(&store->references, 1);
    store->site_capacity = sizes->sites;
    store->index_capacity = sizes->indexes;
    store->token_capacity = sizes->tokens;
    store->source_capacity = sizes->sources;
    store->page_capacity = sizes->pages;
    store->host_capacity = sizes->hosts;
    store->string_capacity = sizes->string_bytes;
    store->sites = new_array(sizes->sites, sizeof *store->sites, &failed);
    store->robots = new_array(sizes->sites, sizeof *store->robots, &failed);
    store->indexes = new_array(sizes->indexes, sizeof *store->indexes, &failed);
    store->tokens = new_array(sizes->tokens, sizeof *store->tokens, &failed);
    store->sources = new_array(sizes->sources, sizeof *store->sources, &failed);
    store->pages = new_array(sizes->pages, sizeof *store->pages, &failed);
    store->hosts = new_array(sizes->hosts, sizeof *store->hosts, &failed);
    store->strings = new_array(sizes->string_bytes, 1, &failed);
    store->sites_by_id = new_array(sizes->sites, sizeof *store->sites_by_id, &failed);
    store->indexes_by_id = new_array(sizes->indexes, sizeof *store->indexes_by_id, &failed);
    if (failed) {
        registry_store_free(store);
        return NULL;
    }
    store->pub.sites = store->sites;
    store->pub.tokens = store->tokens;
    store->pub.sources = store->sources;
    return store;
}

static void text_unref(struct shared_text *text)
{
    if (text != NULL && atomic_fetch_sub(&text->references, 1) == 1)
        free(text);
}

void registry_store_free(struct registry_store *store)
{
    if (store == NULL)
        return;
    for (size_t i = 0; store->robots != NULL && i < store->site_capacity; i++)
        text_unref(store->robots[i]);
    free(store->robots);
    free(store->sites);
    free(store->indexes);
    free(store->tokens);
    free(store->sources);
    free(store->pages);
    free((void *)store->hosts);
    free(store->strings);
    free((void *)store->sites_by_id);
    free((void *)store->indexes_by_id);
    free((void *)store->by_directory);
    free(store->directories);
    free(store->claims);
    map_done(&store->origin_map);
    map_done(&store->host_map);
    map_done(&store->directory_map);
    map_done(&store->stem_map);
    free(store);
}

/* Copies a text into the string arena; NULL if it does not fit (string_bytes was wrong). */
static const char *registry_store_text(struct registry_store *store, const char *text, size_t len)
{
    char *at = store->strings + store->string_len;

    if (store->string_capacity - store->string_len < len + 1)
        return NULL;
    memcpy(at, text, len);
    at[len] = '\0';
    store->string_len += len + 1;
    return at;
}

/* ---- order ----------------------------------------------------------------------------- */

static int compare_site_ids(const void *a, const void *b)
{
    const struct registry_site *const *x = a, *const *y = b;

    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

static int compare_index_ids(const void *a, const void *b)
{
    const struct registry_index *const *x = a, *const *y = b;

    return ((*x)->id > (*y)->id) - ((*x)->id < (*y)->id);
}

/* Sorts the sites by id; called once all sites are loaded, before registry_site_by_id. */
static void registry_store_sort_sites(struct registry_store *store)
{
    for (size_t i = 0; i < store->pub.site_count; i++)
        store->sites_by_id[i] = &store->sites[i];
    qsort((void *)store->sites_by_id, store->pub.site_count, sizeof *store->sites_by_id,
          compare_site_ids);
}

/* The same for indexes. */
static void registry_store_sort_indexes(struct registry_store *store)
{
    for (size_t i = 0; i < store->index_count; i++)
        store->indexes_by_id[i] = &store->indexes[i];
    qsort((void *)store->indexes_by_id, store->index_count, sizeof *store->indexes_by_id,
          compare_index_ids);
}

static int compare_bytes(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int order = memcmp(a, b, a_len < b_len ? a_len : b_len);

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

static int compare_claims(const void *a, const void *b)
{
    const struct host_claim *x = a, *y = b;
    int order = compare_bytes(x->host, x->host_len, y->host, y->host_len);

    if (order == 0)
        order = (x->kind > y->kind) - (x->kind < y->kind);
    if (order == 0)
        order = (int)y->managed - (int)x->managed;
    /* Descending: ordinals follow the origins, so http comes before https, and requests for a host
     * with both mostly use https. */
    if (order == 0)
        order = (x->site < y->site) - (x->site > y->site);
    return order;
}

/* ---- maps ------------------------------------------------------------------------------ */

static bool build_origins(struct registry_store *store)
{
    if (!map_reserve(&store->origin_map, store->pub.site_count))
        return false;
    for (size_t i = 0; i < store->pub.site_count; i++) {
        const struct registry_site *site = &store->sites[i];
        map_add(&store->origin_map, map_hash(MAP_HASH_BASIS, site->origin, strlen(site->origin)),
                (uint32_t)i);
    }
    return true;
}

size_t store_split_host(const char *host, uint16_t *port)
{
    const char *bracket = strrchr(host, ']');
    const char *colon = strrchr(bracket != NULL ? bracket : host, ':');

    *port = colon != NULL ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
    return colon != NULL ? (size_t)(colon - host) : strlen(host);
}

static void claim(struct registry_store *store, enum claim_kind kind, size_t site, const char *host)
{
    struct host_claim *out = &store->claims[store->claim_count++];

    out->host = host;
    out->host_len = (uint32_t)store_split_host(host, &out->port);
    out->kind = kind;
    out->site = (uint32_t)site;
    out->managed = kind == CLAIM_ALIAS && store->sites[site].managed;
}

static bool build_claims(struct registry_store *store)
{
    bool failed = false;
    size_t most = store->pub.site_count + store->host_count;

    store->claims = new_array(most, sizeof *store->claims, &failed);
    if (failed || !map_reserve(&store->host_map, most))
        return false;
    for (size_t s = 0; s < store->pub.site_count; s++) {
        const struct registry_site *site = &store->sites[s];
        /* What follows the scheme of an origin is "host[:port]". */
        claim(store, CLAIM_ORIGIN, s, site->origin + site->origin_url.host_at);
        for (size_t i = 0; i < site->alias_host_count; i++)
            claim(store, CLAIM_ALIAS, s, site->alias_hosts[i]);
        for (size_t i = 0; i < site->cross_host_count; i++)
            claim(store, CLAIM_CROSS, s, site->cross_hosts[i]);
    }
    qsort(store->claims, store->claim_count, sizeof *store->claims, compare_claims);
    for (size_t i = 0, first = 0; i < store->claim_count; i++) {
        const struct host_claim *c = &store->claims[i];
        if (i == 0 || compare_bytes(c->host, c->host_len, c[-1].host, c[-1].host_len) != 0) {
            map_add(&store->host_map, map_hash(MAP_HASH_BASIS, c->host, c->host_len), (uint32_t)i);
            first = i;
        }
        store->claims[first].same_host++;
    }
    return true;
}

static int compare_directories(const void *a, const void *b)
{
    const struct registry_index *x = *(const struct registry_index *const *)a;
    const struct registry_index *y = *(const struct registry_index *const *)b;
    int order = (x->site_id > y->site_id) - (x->site_id < y->site_id);

    if (order == 0)
        order = compare_bytes(x->path, scope_directory_len(x->path, strlen(x->path)), y->path,
                              scope_directory_len(y->path, strlen(y->path)));
    if (order == 0) /* a urlset lists nothing by scope */
        order = (x->kind == LIST_URLSET) - (y->kind == LIST_URLSET);
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

/* Groups the lists by site and directory. The index that contains a loc, and the list that could
 * have a page with its name, are then found by the loc's directories, however many lists there are.
 */
static bool build_directories(struct registry_store *store)
{
    bool failed = false;

    store->by_directory = new_array(store->index_count, sizeof *store->by_directory, &failed);
    store->directories = new_array(store->index_count, sizeof *store->directories, &failed);
    if (failed || !map_reserve(&store->directory_map, store->index_count))
        return false;
    size_t count = store->index_count;
    for (size_t i = 0; i < count; i++)
        store->by_directory[i] = &store->indexes[i];
    qsort((void *)store->by_directory, count, sizeof *store->by_directory, compare_directories);

    for (size_t i = 0; i < count; i++) {
        const struct registry_index *index = store->by_directory[i];
        const struct registry_site *site = registry_site_by_id(&store->pub, index->site_id);
        size_t len = scope_directory_len(index->path, strlen(index->path));
        struct directory *last = &store->directories[store->directory_count];
        uint32_t ordinal = (uint32_t)(site - store->sites);

        if (store->directory_count > 0 && last[-1].site == ordinal &&
            compare_bytes(last[-1].path, last[-1].path_len, index->path, len) == 0) {
            last[-1].count++;
            continue;
        }
        *last = (struct directory){index->path, (uint32_t)len, ordinal, (uint32_t)i, 1};
        map_add(&store->directory_map, map_hash(store_path_basis(ordinal), index->path, len),
                (uint32_t)store->directory_count++);
    }
    return true;
}

static uint32_t ordinal_of(const struct registry_store *store, const struct registry_index *index)
{
    return (uint32_t)(registry_site_by_id(&store->pub, index->site_id) - store->sites);
}

static bool build_stems(struct registry_store *store)
{
    if (!map_reserve(&store->stem_map, store->index_count))
        return false;
    for (size_t i = 0; i < store->index_count; i++) {
        const struct registry_index *index = &store->indexes[i];
        map_add(&store->stem_map,
                map_hash(store_path_basis(ordinal_of(store, index)), index->path,
                         store_stem_len(index)),
                (uint32_t)i);
    }
    return true;
}

/* Builds the lookup tables once all is loaded. False when out of memory. */
static bool registry_store_seal(struct registry_store *store)
{
    return build_origins(store) && build_claims(store) && build_directories(store) &&
           build_stems(store);
}

/* One pass over each table, in an order in which neighbours are joined without a lookup. Sizes are
 * read first, so that each array is allocated once. */
static const char sql_catalogue[] =
    "SELECT epoch, revision, registry_revision FROM catalogue WHERE one = 1";
/* Most bytes of a source's texts, each with its NUL. */
#define SOURCE_ROOM(bit, kind, c, member, option, column, ...) " || coalesce(" column ", '') || '.'"
/* Most lines of a source's lists, each list with its NULL. */
#define SOURCE_LINES(bit, kind, c, member, option, column, ...)                                    \
    " + coalesce(length(" column ") - length(replace(" column ", char(10), '')) + 2, 0)"
static const char sql_sizes[] =
    "SELECT s.n, i.n, t.n, h.n, (SELECT count(*) FROM page WHERE entries > 0),"
    " s.bytes + i.bytes + t.bytes + h.bytes + m.bytes, m.n,"
    " m.lines FROM"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(origin AS BLOB)) + 1), 0) AS bytes"
    "  FROM site WHERE removed = 0) AS s,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(path AS BLOB)) +"
    "  length(CAST(page_pattern AS BLOB)) + 2), 0) AS bytes"
    "  FROM sitemap_index WHERE removed = 0) AS i,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(name AS BLOB)) +"
    "  coalesce(length(CAST(prefix AS BLOB)), 0) + 2), 0) AS bytes FROM token) AS t,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(host AS BLOB)) + 1), 0) AS bytes"
    "  FROM site_host) AS h,"
    " (SELECT count(*) AS n, coalesce(sum(length(CAST(name || '.'" SOURCE_SETTINGS(
        SOURCE_ROOM) " AS BLOB))), 0) AS bytes"
                     ", coalesce(sum(0" SOURCE_SETTINGS(
                         SOURCE_LINES) "), 0) AS lines"
                                       "  FROM source_made WHERE removed = 0) AS m";
/* `robots IS NOT NULL` would read the whole text; its type is at the beginning of the row. */
static const char sql_sites[] =
    "SELECT id, origin, managed, max_pages, robots_off, robots_revision, robots_changed_at,"
    " typeof(robots) = 'text', frozen, checked FROM site WHERE removed = 0 ORDER BY origin";
static const char sql_robots[] = "SELECT robots FROM site WHERE id = ?1";
static const char sql_indexes[] =
    "SELECT id, site, path, page_pattern, frozen, kind, of_index, extensions" URLSET_SETTINGS(
        URLSET_COLUMN) " FROM sitemap_index WHERE removed = 0 ORDER BY site, kind, path";
static const char sql_hosts[] = "SELECT site, kind, host FROM site_host ORDER BY site, kind, host";
static const char sql_pages[] =
    "SELECT index_id, number FROM page WHERE entries > 0 ORDER BY index_id, number";
static const char sql_tokens[] =
    "SELECT id, name, sha256, site, created_at, role, own, prefix, expires_at, managed"
    " FROM token ORDER BY name";

static const char sql_sources[] = "SELECT name, site" SOURCE_SETTINGS(
    SOURCE_COLUMN) ", by_site FROM source_made WHERE removed = 0 ORDER BY name";

/* Loads one row. CATALOGUE_CORRUPT: the row is invalid. */
typedef enum catalogue_status load_row(struct registry_store *store, sqlite3_stmt *row);

static const char *column_text(struct registry_store *store, sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    if (text == NULL)
        return NULL;
    return registry_store_text(store, text, (size_t)sqlite3_column_bytes(row, column));
}

static enum catalogue_status load_site(struct registry_store *store, sqlite3_stmt *row)
{
    struct registry_site *site = &store->sites[store->pub.site_count];

    if (store->pub.site_count == store->site_capacity)
        return CATALOGUE_CORRUPT;
    site->id = sqlite3_column_int64(row, 0);
    site->origin = column_text(store, row, 1);
    site->managed = sqlite3_column_int(row, 2) != 0;
    site->max_pages = (uint32_t)sqlite3_column_int64(row, 3);
    site->robots_off = sqlite3_column_int(row, 4) != 0;
    site->robots_revision = (uint64_t)sqlite3_column_int64(row, 5);
    site->robots_changed_at = sqlite3_column_int64(row, 6);
    site->robots = sqlite3_column_int(row, 7) != 0 ? "" : NULL; /* fill_robots sets the text */
    site->frozen = freeze_read(sqlite3_column_int64(row, 8));
    site->check = sqlite3_column_int(row, 9) != 0;
    /* Origins are stored in normal form; another form would not be found. */
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

static enum catalogue_status load_index(struct registry_store *store, sqlite3_stmt *row)
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
    index->frozen = freeze_read(sqlite3_column_int64(row, 4));
    index->kind = (enum list_kind)sqlite3_column_int(row, 5);
    index->of_index = sqlite3_column_int64(row, 6);
    index->with = (unsigned)sqlite3_column_int64(row, 7);
    int at = 8;
    const unsigned with = index->with;
#define X(kind, bit, c, name, option, least, most, counts, ...)                                    \
    {                                                                                              \
        const URLSET_TYPE_##kind asked = (URLSET_TYPE_##kind)sqlite3_column_int64(row, at++);      \
        index->c = counts;                                                                         \
    }
    URLSET_SETTINGS(X)
#undef X
    /* Checked here, since page names are made of path and pattern without further checks. A list of
     * an unknown kind is not served as one of another kind. */
    if (index->kind > LIST_URLSET || index->path == NULL || index->page_pattern == NULL ||
        scope_check_index_path(index->path) != RULE_OK ||
        scope_check_pattern(index->page_pattern) != RULE_OK)
        return CATALOGUE_CORRUPT;
    if (index->kind == LIST_URLSET && site->urlset_count++ == 0)
        site->urlsets = index;
    else if (index->kind == LIST_INDEX && site->index_count++ == 0)
        site->indexes = index;
    store->index_count++;
    return CATALOGUE_OK;
}

/* Aliases come before cross hosts: "alias" < "cross". */
static enum catalogue_status load_host(struct registry_store *store, sqlite3_stmt *row)
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

static enum catalogue_status load_page(struct registry_store *store, sqlite3_stmt *row)
{
    const struct registry_index *found =
        registry_list_by_id(&store->pub, sqlite3_column_int64(row, 0));
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

static enum catalogue_status load_token(struct registry_store *store, sqlite3_stmt *row)
{
    struct registry_token *token = &store->tokens[store->pub.token_count];

    if (store->pub.token_count == store->token_capacity ||
        sqlite3_column_bytes(row, 2) != (int)sizeof token->sha256)
        return CATALOGUE_CORRUPT;
    token->id = sqlite3_column_int64(row, 0);
    token->grant.name = column_text(store, row, 1);
    memcpy(token->sha256, sqlite3_column_blob(row, 2), sizeof token->sha256);
    token->grant.site_id = sqlite3_column_int64(row, 3); /* NULL: 0 */
    token->created_at = sqlite3_column_int64(row, 4);
    token->grant.role = (enum grant_role)sqlite3_column_int(row, 5);
    token->grant.own = sqlite3_column_int(row, 6) != 0;
    token->grant.prefix =
        sqlite3_column_type(row, 7) == SQLITE_NULL ? NULL : column_text(store, row, 7);
    token->grant.expires_at = sqlite3_column_int64(row, 8);
    token->managed = sqlite3_column_int(row, 9) != 0;
    /* An unknown role must not count as a role with more rights. */
    if (token->grant.name == NULL || token->grant.role < GRANT_READ ||
        token->grant.role > GRANT_ADMIN)
        return CATALOGUE_CORRUPT;
    store->pub.token_count++;
    return CATALOGUE_OK;
}

/* False: a text could not be stored. */
static bool load_text(struct registry_store *store, sqlite3_stmt *row, int column, const char **out)
{
    if (sqlite3_column_type(row, column) != SQLITE_NULL)
        *out = column_text(store, row, column);
    return sqlite3_column_type(row, column) == SQLITE_NULL || *out != NULL;
}

/* A NULL-terminated list of the text's lines. */
static bool load_lines(struct registry_store *store, sqlite3_stmt *row, int column,
                       const char *const **out)
{
    const char *text = NULL;
    if (!load_text(store, row, column, &text))
        return false;
    char *rest = text != NULL ? store->strings + (text - store->strings) : NULL;
    *out = text != NULL ? &store->hosts[store->host_count] : NULL;
    while (rest != NULL && store->host_count < store->host_capacity)
        store->hosts[store->host_count++] = strsep(&rest, "\n");
    if (rest != NULL || (text != NULL && store->host_count == store->host_capacity))
        return false;
    if (text != NULL)
        store->hosts[store->host_count++] = NULL;
    return true;
}

static bool load_yes_no(struct registry_store *store, sqlite3_stmt *row, int column, bool *out)
{
    (void)store;
    *out = sqlite3_column_int(row, column) != 0;
    return true;
}

static bool load_span(struct registry_store *store, sqlite3_stmt *row, int column, uint32_t *out)
{
    (void)store;
    *out = (uint32_t)sqlite3_column_int64(row, column);
    return true;
}

/* clang-format off */
#define LOAD(at) _Generic((at), const char **: load_text, const char *const **: load_lines, \
    bool *: load_yes_no, uint32_t *: load_span)
/* clang-format on */

static enum catalogue_status load_source(struct registry_store *store, sqlite3_stmt *row)
{
    struct source_settings *source = &store->sources[store->pub.source_count];
    int at = 1;

    if (find_site(store, sqlite3_column_int64(row, 1)) == NULL)
        return CATALOGUE_OK; /* of a removed site */
    if (store->pub.source_count == store->source_capacity)
        return CATALOGUE_CORRUPT;
    source->site_id = sqlite3_column_int64(row, 1);
    bool taken = load_text(store, row, 0, &source->name);
#define X(bit, kind, c, ...) taken &= LOAD(&source->c)(store, row, ++at, &source->c);
    SOURCE_SETTINGS(X)
#undef X
    source->by_site = sqlite3_column_int(row, ++at) != 0;
    bool folder = source->directory != NULL && source->url != NULL;
    if (!taken || source->name == NULL || folder == (source->upstream != NULL))
        return CATALOGUE_CORRUPT;
    store->pub.source_count++;
    return CATALOGUE_OK;
}

static enum catalogue_status load_catalogue(struct registry_store *store, sqlite3_stmt *row)
{
    const char *epoch = (const char *)sqlite3_column_text(row, 0);

    if (epoch == NULL || strlen(epoch) >= sizeof store->pub.epoch)
        return CATALOGUE_CORRUPT;
    memcpy(store->pub.epoch, epoch, strlen(epoch) + 1);
    store->pub.revision = (uint64_t)sqlite3_column_int64(row, 1);
    store->pub.registry_revision = (uint64_t)sqlite3_column_int64(row, 2);
    return CATALOGUE_OK;
}

static enum catalogue_status load_all(sqlite3 *db, const char *sql, load_row *take,
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

    if (sql_next(row, &rc)) {
        out->sites = (size_t)sqlite3_column_int64(row, 0);
        out->indexes = (size_t)sqlite3_column_int64(row, 1);
        out->tokens = (size_t)sqlite3_column_int64(row, 2);
        out->hosts = (size_t)sqlite3_column_int64(row, 3);
        out->pages = (size_t)sqlite3_column_int64(row, 4);
        out->string_bytes = (size_t)sqlite3_column_int64(row, 5);
        out->sources = (size_t)sqlite3_column_int64(row, 6);
        out->hosts += (size_t)sqlite3_column_int64(row, 7);
    }
    sqlite3_finalize(row);
    return connection_status(rc);
}

/* The text of the site in `before`, with a reference; NULL: it must be read. */
static struct shared_text *text_of_before(const struct registry *before,
                                          const struct registry_site *site)
{
    const struct registry_site *was = before != NULL ? registry_site_by_id(before, site->id) : NULL;

    if (was == NULL || was->robots_revision != site->robots_revision)
        return NULL;
    struct shared_text *text = registry_store_of(before)->robots[was - before->sites];
    if (text != NULL)
        atomic_fetch_add(&text->references, 1);
    return text;
}

static enum catalogue_status read_text(sqlite3_stmt *row, int64_t site_id, struct shared_text **out)
{
    sqlite3_bind_int64(row, 1, site_id);
    int rc = sqlite3_step(row);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(row, 0) : NULL;
    size_t size = text != NULL ? strlen(text) + 1 : 0;

    *out = text != NULL ? malloc(sizeof **out + size) : NULL;
    if (*out != NULL) {
        atomic_init(&(*out)->references, 1);
        (*out)->len = size - 1;
        memcpy((*out)->text, text, size);
    }
    sqlite3_reset(row);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? CATALOGUE_CORRUPT : connection_status(rc);
    return *out != NULL ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

static enum catalogue_status fill_robots(sqlite3 *db, const struct registry *before,
                                         struct registry_store *store)
{
    enum catalogue_status status = CATALOGUE_OK;
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db, sql_robots, -1, &row, NULL);

    if (rc != SQLITE_OK)
        return connection_status(rc);
    if (before != NULL && strcmp(before->epoch, store->pub.epoch) != 0)
        before = NULL;
    for (size_t i = 0; status == CATALOGUE_OK && i < store->pub.site_count; i++) {
        struct registry_site *site = &store->sites[i];
        if (site->robots == NULL)
            continue;
        store->robots[i] = text_of_before(before, site);
        if (store->robots[i] == NULL)
            status = read_text(row, site->id, &store->robots[i]);
        if (status == CATALOGUE_OK) {
            site->robots = store->robots[i]->text;
            site->robots_len = store->robots[i]->len;
        }
    }
    sqlite3_finalize(row);
    return status;
}

static enum catalogue_status fill_store(sqlite3 *db, const struct registry *before,
                                        struct registry_store *store)
{
    enum catalogue_status status = load_all(db, sql_catalogue, load_catalogue, store);

    if (status == CATALOGUE_OK && store->pub.epoch[0] == '\0')
        status = CATALOGUE_CORRUPT; /* its one row is missing */
    if (status == CATALOGUE_OK)
        status = load_all(db, sql_sites, load_site, store);
    registry_store_sort_sites(store);
    if (status == CATALOGUE_OK)
        status = fill_robots(db, before, store);
    if (status == CATALOGUE_OK)
        status = load_all(db, sql_indexes, load_index, store);
    registry_store_sort_indexes(store);
    if (status == CATALOGUE_OK)
        status = load_all(db, sql_hosts, load_host, store);
    if (status == CATALOGUE_OK)
        status = load_all(db, sql_pages, load_page, store);
    if (status == CATALOGUE_OK)
        status = load_all(db, sql_tokens, load_token, store);
    if (status == CATALOGUE_OK)
        status = load_all(db, sql_sources, load_source, store);
    if (status == CATALOGUE_OK && !registry_store_seal(store))
        status = CATALOGUE_NO_MEMORY;
    return status;
}

enum catalogue_status registry_load(sqlite3 *db, const struct registry *before,
                                    struct registry **out)
{
    struct registry_sizes sizes = {0};
    struct registry_store *store;
    enum catalogue_status status = read_sizes(db, &sizes);

    *out = NULL;
    if (status != CATALOGUE_OK)
        return status;
    store = registry_store_new(&sizes);
    if (store == NULL)
        return CATALOGUE_NO_MEMORY;
    status = fill_store(db, before, store);
    if (status != CATALOGUE_OK) {
        registry_store_free(store);
        return status;
    }
    *out = &store->pub;
    return CATALOGUE_OK;
}

/* ---- copies ---------------------------------------------------------------------------- */

static void add_list(struct registry_sizes *sizes, const struct registry_index *list)
{
    sizes->pages += list->page_count;
    sizes->string_bytes += strlen(list->path) + strlen(list->page_pattern) + 2;
}

static struct registry_sizes sizes_of(const struct registry *plain)
{
    struct registry_sizes sizes = {.sites = plain->site_count};

    for (size_t i = 0; i < plain->site_count; i++) {
        const struct registry_site *site = &plain->sites[i];

        sizes.indexes += site->index_count + site->urlset_count;
        sizes.hosts += site->alias_host_count + site->cross_host_count;
        sizes.string_bytes += strlen(site->origin) + 1;
        sizes.string_bytes += site->robots != NULL ? strlen(site->robots) + 1 : 0;
        for (size_t j = 0; j < site->alias_host_count; j++)
            sizes.string_bytes += strlen(site->alias_hosts[j]) + 1;
        for (size_t j = 0; j < site->cross_host_count; j++)
            sizes.string_bytes += strlen(site->cross_hosts[j]) + 1;
        for (size_t j = 0; j < site->index_count; j++)
            add_list(&sizes, &site->indexes[j]);
        for (size_t j = 0; j < site->urlset_count; j++)
            add_list(&sizes, &site->urlsets[j]);
    }
    return sizes;
}

static const char *keep_text(struct registry_store *store, const char *text)
{
    return text != NULL ? registry_store_text(store, text, strlen(text)) : NULL;
}

static const char *const *keep_hosts(struct registry_store *store, const char *const *hosts,
                                     size_t count)
{
    const char **first = &store->hosts[store->host_count];

    for (size_t i = 0; i < count; i++)
        store->hosts[store->host_count++] = keep_text(store, hosts[i]);
    return first;
}

/* False: path or pattern is invalid. */
static bool keep_index(struct registry_store *store, const struct registry_index *plain,
                       int64_t site_id)
{
    struct registry_index *index = &store->indexes[store->index_count++];

    if (scope_check_index_path(plain->path) != RULE_OK ||
        scope_check_pattern(plain->page_pattern) != RULE_OK)
        return false;
    *index = *plain;
    index->site_id = site_id;
    index->path = keep_text(store, plain->path);
    index->page_pattern = keep_text(store, plain->page_pattern);
    index->pages = &store->pages[store->page_count];
    if (plain->page_count > 0)
        memcpy(&store->pages[store->page_count], plain->pages,
               plain->page_count * sizeof *plain->pages);
    store->page_count += plain->page_count;
    return true;
}

static bool keep_site(struct registry_store *store, const struct registry_site *plain)
{
    struct registry_site *site = &store->sites[store->pub.site_count++];
    bool good;

    *site = *plain;
    good = url_parse_origin(plain->origin, strlen(plain->origin), &site->origin_url) == RULE_OK &&
           strcmp(plain->origin, site->origin_url.text) == 0;
    site->origin = keep_text(store, plain->origin);
    site->robots = keep_text(store, plain->robots);
    site->robots_len = plain->robots != NULL ? strlen(plain->robots) : 0;
    site->alias_hosts = keep_hosts(store, plain->alias_hosts, plain->alias_host_count);
    site->cross_hosts = keep_hosts(store, plain->cross_hosts, plain->cross_host_count);
    site->indexes = &store->indexes[store->index_count];
    for (size_t i = 0; good && i < plain->index_count; i++)
        good = keep_index(store, &plain->indexes[i], plain->id);
    site->urlsets = &store->indexes[store->index_count];
    for (size_t i = 0; good && i < plain->urlset_count; i++)
        good = keep_index(store, &plain->urlsets[i], plain->id);
    return good;
}

struct registry *registry_copy(const struct registry *plain)
{
    const struct registry_sizes sizes = sizes_of(plain);
    struct registry_store *store = registry_store_new(&sizes);
    bool good = store != NULL;

    if (good) {
        memcpy(store->pub.epoch, plain->epoch, sizeof store->pub.epoch);
        store->pub.revision = plain->revision;
    }
    for (size_t i = 0; good && i < plain->site_count; i++)
        good = keep_site(store, &plain->sites[i]);
    if (good) {
        registry_store_sort_sites(store);
        registry_store_sort_indexes(store);
        good = registry_store_seal(store);
    }
    if (good)
        return &store->pub;
    registry_store_free(store);
    return NULL;
}
