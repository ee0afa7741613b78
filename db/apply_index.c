#include <stdio.h>
#include <string.h>

#include "db/apply.h"
#include "db/guard.h"
#include "db/id.h"
#include "server/rules/scope.h"

/* ---- names that are taken */

#define NAME_SIZE (LOC_MAX_CHARS + 1 + PAGE_PATH_SIZE)

static enum catalogue_status is_registered(struct tx *tx, const struct registry *r, int64_t site_id,
                                           const char *loc, bool *yes)
{
    struct put_row row;
    enum catalogue_status status = put_find(tx, site_id, loc, &row);
    *yes = status == CATALOGUE_OK && row.found &&
           registry_index_by_id(r, id_address_index(row.address)) != NULL;
    return status;
}

/* Writes the N-th base under which the site's pages are found: its origin, then, as any scheme and
 * alias host serves them too, the others. False past the last. Only locs of cross hosts can lie
 * under those. */
static bool name_base(const struct registry_site *site, size_t n, char *out)
{
    const struct url *origin = &site->origin_url;
    if (n == 0) {
        snprintf(out, NAME_SIZE, "%s", site->origin);
        return true;
    }
    if (site->cross_host_count == 0)
        return false;
    const char *scheme = n % 2 == 0 ? "https" : "http";
    size_t host = (n - 1) / 2;
    if (host == 0)
        snprintf(out, NAME_SIZE, "%s://%.*s", scheme, (int)(origin->origin_len - origin->host_at),
                 origin->text + origin->host_at);
    else if (host <= site->alias_host_count)
        snprintf(out, NAME_SIZE, "%s://%s", scheme, site->alias_hosts[host - 1]);
    else
        return false;
    return true;
}

static bool names_page_of_another(const struct registry_site *site, const char *path,
                                  const char *name, uint32_t max_pages)
{
    for (size_t i = 0; i < site->index_count; i++) {
        const struct registry_index *other = &site->indexes[i];
        if (strcmp(other->path, path) != 0 &&
            scope_page_number(other->path, other->page_pattern, max_pages, name, strlen(name)) != 0)
            return true;
    }
    return false;
}

static enum catalogue_status check_name(struct tx *tx, const struct registry *r,
                                        const struct registry_site *site, const char *name,
                                        struct change_result *result)
{
    char url[NAME_SIZE];
    for (size_t n = 0; name_base(site, n, url); n++) {
        size_t len = strlen(url);
        snprintf(url + len, sizeof url - len, "%s", name);
        bool taken;
        enum catalogue_status status = is_registered(tx, r, site->id, url, &taken);
        if (status != CATALOGUE_OK)
            return status;
        if (taken) {
            result_refuse(result, RULE_INDEX_COVERS_LOC, "page_pattern");
            snprintf(result->detail, sizeof result->detail,
                     "its page name %.180s is a registered loc; choose another page pattern", name);
            return CATALOGUE_OK;
        }
    }
    return CATALOGUE_OK;
}

enum catalogue_status index_check_names(struct tx *tx, const struct registry *r,
                                        const struct registry_site *site, const char *path,
                                        const char *pattern, uint32_t first, uint32_t last,
                                        struct change_result *result)
{
    char name[PAGE_PATH_SIZE];
    uint32_t max_pages = last > site->max_pages ? last : site->max_pages;
    for (uint32_t number = first; number <= last; number++) {
        for (int gz = 0; gz < 2; gz++) {
            scope_page_path(path, pattern, number, gz == 1, name);
            if (names_page_of_another(site, path, name, max_pages)) {
                result_refuse(result, RULE_INDEX_COVERS_INDEX, "page_pattern");
                snprintf(result->detail, sizeof result->detail,
                         "its page name %.180s is one of another index of this site", name);
                return CATALOGUE_OK;
            }
            enum catalogue_status status = check_name(tx, r, site, name, result);
            if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
                return status;
        }
    }
    return CATALOGUE_OK;
}

/* ---- making one */

/* Splits the URL, or with one site the path, into site and path. Refuses where it is none. */
static const struct registry_site *locate(const struct registry *r, const char *url,
                                          char path[INDEX_PATH_MAX_CHARS + 1],
                                          struct change_result *result)
{
    struct url parsed;
    char whole[LOC_MAX_CHARS + 1];
    const char *text = url ? url : "";
    if (text[0] == '/' && r->site_count == 1) {
        /* Normalised like any URL. */
        int len = snprintf(whole, sizeof whole, "%s%s", r->sites[0].origin, text);
        text = len > 0 && (size_t)len < sizeof whole ? whole : "";
    }
    enum rule_code code = url_parse(text, strlen(text), &parsed, NULL);
    if (code != RULE_OK) {
        result_refuse(result, code, "url");
        return NULL;
    }
    char origin[LOC_MAX_CHARS + 1];
    memcpy(origin, parsed.text, parsed.origin_len);
    origin[parsed.origin_len] = '\0';
    const struct registry_site *site = registry_site_by_origin(r, origin);
    size_t path_len = (size_t)parsed.len - parsed.origin_len; /* with a query, if there is one */
    if (!site)
        result_refuse(result, RULE_SITE_UNKNOWN, "url");
    else if (path_len > INDEX_PATH_MAX_CHARS)
        result_refuse(result, RULE_INDEX_PATH, "url");
    else
        memcpy(path, parsed.text + parsed.origin_len, path_len + 1);
    return site;
}

static const struct registry_index *index_at(const struct registry_site *site, const char *path)
{
    for (size_t i = 0; i < site->index_count; i++)
        if (strcmp(site->indexes[i].path, path) == 0)
            return &site->indexes[i];
    return NULL;
}

static enum catalogue_status insert_index(struct tx *tx, int64_t site_id, const char *path,
                                          const char *pattern, struct change_result *result)
{
    sqlite3_stmt *row = tx_statement(tx, ST_INDEX_ADD);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, site_id);
    statement_bind_text(row, 2, path);
    statement_bind_text(row, 3, pattern);
    enum catalogue_status status = statement_run(row);
    if (status != CATALOGUE_OK)
        return status;
    result->id = sqlite3_last_insert_rowid(tx->db);
    result->created = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return CATALOGUE_OK;
}

enum catalogue_status apply_index_add(struct tx *tx, const struct change *change,
                                      struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    char path[INDEX_PATH_MAX_CHARS + 1];
    const char *pattern = change->page_pattern ? change->page_pattern : PAGE_PATTERN_DEFAULT;
    const struct registry_site *site = locate(r, change->index_url, path, result);
    if (result->status != CATALOGUE_OK)
        return CATALOGUE_OK;
    if (change->token_site_id != 0 && site->id != change->token_site_id) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    const struct registry_index *existing = index_at(site, path);
    if (existing) {
        result_decline(result, CATALOGUE_CONFLICT, "there is an index of this URL");
        result->id = existing->id;
        return CATALOGUE_OK;
    }
    if (result_managed(result, change, site))
        return CATALOGUE_OK;
    if (scope_check_index_path(path) != RULE_OK) {
        result_refuse(result, scope_check_index_path(path), "url");
        return CATALOGUE_OK;
    }
    if (scope_check_pattern(pattern) != RULE_OK) {
        result_refuse(result, scope_check_pattern(pattern), "page_pattern");
        return CATALOGUE_OK;
    }
    sqlite3_stmt *last = tx_statement(tx, ST_INDEX_LAST);
    if (!last)
        return tx_failure(tx);
    int64_t last_id;
    status = statement_number(last, 0, &last_id);
    if (status != CATALOGUE_OK)
        return status;
    if (last_id >= ID_MAX_INDEX) {
        result_decline(result, CATALOGUE_FULL, "the catalogue can number no more indexes");
        return CATALOGUE_OK;
    }
    status = index_check_names(tx, r, site, path, pattern, 1, site->max_pages, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    return insert_index(tx, site->id, path, pattern, result);
}

/* ---- removing one */

enum catalogue_status index_bury(struct tx *tx, const struct registry_index *index)
{
    struct fill_index *fill;
    enum catalogue_status status = fill_index(tx, index->site_id, index->id, &fill);
    if (status != CATALOGUE_OK)
        return status;
    sqlite3_stmt *row = tx_statement(tx, ST_INDEX_REMOVE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, index->id);
    status = statement_run(row);
    if (status == CATALOGUE_OK)
        fill_bury(tx, fill);
    return status;
}

enum catalogue_status apply_index_remove(struct tx *tx, const struct change *change,
                                         struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_index *index = registry_index_by_id(r, change->index_id);
    if (!index) {
        result_decline(result, CATALOGUE_NOT_FOUND, "there is no such index");
        return CATALOGUE_OK;
    }
    if (change->token_site_id != 0 && change->token_site_id != index->site_id) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (result_managed(result, change, registry_site_by_id(r, index->site_id)))
        return CATALOGUE_OK;
    struct fill_index *fill;
    status = fill_index(tx, index->site_id, index->id, &fill);
    if (status != CATALOGUE_OK)
        return status;
    struct guard_case guard = {
        .before = fill->entries, .removed = fill->entries, .max_removed = change->max_removed};
    status = guard_peak(tx, fill, &guard.peak);
    if (status != CATALOGUE_OK || !guard_judge(tx, &guard, result))
        return status;
    result->id = index->id;
    result->removed = guard.removed;
    result->changed = true;
    status = index_bury(tx, index);
    tx_registry_touch(tx);
    return status;
}
