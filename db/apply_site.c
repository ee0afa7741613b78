#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/apply.h"
#include "db/guard.h"

/* ---- lists of hosts */

#define HOST_SIZE (HOST_MAX_CHARS + 7)
/* Of each list. Every host is in the registry that each write and each request looks at. */
#define SITE_HOSTS_MAX 1000u

struct hosts {
    char (*name)[HOST_SIZE]; /* owned; normalised, by bytes, each once */
    size_t count;
};

static int compare_hosts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Normalises a NULL-terminated list (NULL: empty). Refuses with `field` what is no host, and lists
 * that are too long. */
static enum catalogue_status read_hosts(const char *const *given, const char *field,
                                        struct hosts *out, struct change_result *result)
{
    size_t count = 0;
    while (given && given[count])
        count++;
    *out = (struct hosts){NULL, 0};
    if (count > SITE_HOSTS_MAX) {
        result_decline(result, CATALOGUE_FULL, "");
        snprintf(result->detail, sizeof result->detail, "a site can have at most %u such hosts",
                 SITE_HOSTS_MAX);
        result->field = field;
        return CATALOGUE_OK;
    }
    *out = (struct hosts){calloc(count + 1, HOST_SIZE), 0};
    if (!out->name)
        return CATALOGUE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        enum rule_code code = url_parse_host(given[i], strlen(given[i]), out->name[i]);
        if (code != RULE_OK) {
            result_refuse(result, code, field);
            return CATALOGUE_OK;
        }
    }
    qsort(out->name, count, HOST_SIZE, compare_hosts);
    for (size_t i = 0; i < count; i++) {
        if (out->count > 0 && strcmp(out->name[i], out->name[out->count - 1]) == 0)
            continue;
        memmove(out->name[out->count++], out->name[i], HOST_SIZE);
    }
    return CATALOGUE_OK;
}

static bool same_hosts(const struct hosts *a, const char *const *b, size_t b_count)
{
    if (a->count != b_count)
        return false;
    for (size_t i = 0; i < b_count; i++)
        if (strcmp(a->name[i], b[i]) != 0)
            return false;
    return true;
}

/* "host" takes every port of it, "host:8443" that one. */
static bool hosts_overlap(const char *a, const char *b)
{
    size_t a_len = strcspn(a, ":"), b_len = strcspn(b, ":");
    if (a_len != b_len || memcmp(a, b, a_len) != 0)
        return false;
    return a[a_len] == '\0' || b[b_len] == '\0' || strcmp(a + a_len, b + b_len) == 0;
}

static bool same_host(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static bool has_alias(const struct registry_site *site, const char *host,
                      bool (*equal)(const char *a, const char *b))
{
    for (size_t i = 0; site && i < site->alias_host_count; i++)
        if (equal(site->alias_hosts[i], host))
            return true;
    return false;
}

/* A host alias belongs to one site: with a token for one, nobody takes requests from another.
 * `site` (NULL: a new one) keeps what it has. The configuration's word counts before all others',
 * also at request time. */
static void check_aliases_free(const struct registry *r, const struct change *change,
                               const struct registry_site *site, const struct hosts *alias,
                               struct change_result *result)
{
    for (size_t i = 0; !change->override_managed && i < alias->count; i++) {
        const char *host = alias->name[i];
        if (has_alias(site, host, same_host))
            continue;
        for (size_t k = 0; k < r->site_count; k++) {
            if (&r->sites[k] == site || !has_alias(&r->sites[k], host, hosts_overlap))
                continue;
            result_decline(result, CATALOGUE_CONFLICT, "");
            snprintf(result->detail, sizeof result->detail, "%s is another site's host alias",
                     host);
            result->field = "alias_hosts";
            return;
        }
    }
}

static enum catalogue_status write_hosts(struct tx *tx, int64_t site_id, const char *kind,
                                         const struct hosts *hosts)
{
    sqlite3_stmt *clear = tx_statement(tx, ST_HOSTS_CLEAR);
    if (!clear)
        return tx_failure(tx);
    sqlite3_bind_int64(clear, 1, site_id);
    statement_bind_text(clear, 2, kind);
    enum catalogue_status status = statement_run(clear);
    for (size_t i = 0; status == CATALOGUE_OK && i < hosts->count; i++) {
        sqlite3_stmt *add = tx_statement(tx, ST_HOST_ADD);
        if (!add)
            return tx_failure(tx);
        sqlite3_bind_int64(add, 1, site_id);
        statement_bind_text(add, 2, hosts->name[i]);
        statement_bind_text(add, 3, kind);
        status = statement_run(add);
    }
    return status;
}

/* The cap asked for, or the default. Declines what positions cannot number. */
static uint32_t read_max_pages(const struct tx *tx, const struct site_fields *fields,
                               struct change_result *result)
{
    uint32_t pages = fields->set & SITE_SET_MAX_PAGES ? fields->max_pages : 0;
    if (pages == 0)
        pages = tx->options->default_max_pages;
    if (pages == 0)
        pages = LIMIT_SITE_PAGES;
    if (pages > SITE_PAGES_MAX) {
        result_decline(result, CATALOGUE_FULL, "");
        snprintf(result->detail, sizeof result->detail, "a site can have at most %u index files",
                 SITE_PAGES_MAX);
    }
    return pages;
}

/* ---- making one */

static enum catalogue_status insert_site(struct tx *tx, const struct change *change,
                                         const char *origin, uint32_t max_pages,
                                         const struct hosts *cross, const struct hosts *alias,
                                         struct change_result *result)
{
    const struct site_fields *fields = &change->site;
    sqlite3_stmt *row = tx_statement(tx, ST_SITE_ADD);
    if (!row)
        return tx_failure(tx);
    statement_bind_text(row, 1, origin);
    sqlite3_bind_int(row, 2, fields->set & SITE_SET_MANAGED && fields->managed);
    sqlite3_bind_int64(row, 3, max_pages);
    enum catalogue_status status = statement_run(row);
    if (status != CATALOGUE_OK)
        return status;
    result->id = sqlite3_last_insert_rowid(tx->db);
    result->created = 1;
    result->changed = true;
    tx_registry_touch(tx);
    status = write_hosts(tx, result->id, "cross", cross);
    if (status == CATALOGUE_OK)
        status = write_hosts(tx, result->id, "alias", alias);
    return status;
}

enum catalogue_status apply_site_add(struct tx *tx, const struct change *change,
                                     struct change_result *result)
{
    const struct site_fields *fields = &change->site;
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    if (change->token_site_id != 0) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    struct url origin;
    const char *text = fields->origin ? fields->origin : "";
    enum rule_code code = url_parse_origin(text, strlen(text), &origin);
    if (code != RULE_OK) {
        result_refuse(result, code, "origin");
        return CATALOGUE_OK;
    }
    const struct registry_site *existing = registry_site_by_origin(r, origin.text);
    if (existing) {
        result_decline(result, CATALOGUE_CONFLICT, "there is a site of this origin");
        result->id = existing->id;
        return CATALOGUE_OK;
    }
    uint32_t max_pages = read_max_pages(tx, fields, result);
    struct hosts cross = {0}, alias = {0};
    if (result->status == CATALOGUE_OK)
        status = read_hosts(fields->cross_hosts, "cross_hosts", &cross, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = read_hosts(fields->alias_hosts, "alias_hosts", &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        check_aliases_free(r, change, NULL, &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = insert_site(tx, change, origin.text, max_pages, &cross, &alias, result);
    free(cross.name);
    free(alias.name);
    return status;
}

/* ---- changing one */

/* More pages mean more names that must not be taken. */
static enum catalogue_status check_more_names(struct tx *tx, const struct registry *r,
                                              const struct registry_site *site, uint32_t max_pages,
                                              struct change_result *result)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < site->index_count; i++) {
        const struct registry_index *index = &site->indexes[i];
        status = index_check_names(tx, r, site, index->path, index->page_pattern,
                                   site->max_pages + 1, max_pages, result);
        if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
            break;
    }
    return status;
}

static enum catalogue_status write_site(struct tx *tx, const struct registry_site *site,
                                        bool managed, uint32_t max_pages)
{
    sqlite3_stmt *row = tx_statement(tx, ST_SITE_WRITE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, site->id);
    sqlite3_bind_int(row, 2, managed);
    sqlite3_bind_int64(row, 3, max_pages);
    return statement_run(row);
}

/* The new values beside the old ones. */
static enum catalogue_status write_differences(struct tx *tx, const struct change *change,
                                               const struct registry_site *site, uint32_t max_pages,
                                               const struct hosts *cross, const struct hosts *alias,
                                               struct change_result *result)
{
    const struct site_fields *fields = &change->site;
    bool managed = fields->set & SITE_SET_MANAGED ? fields->managed : site->managed;
    bool cross_differ = fields->set & SITE_SET_CROSS_HOSTS &&
                        !same_hosts(cross, site->cross_hosts, site->cross_host_count);
    bool alias_differ = fields->set & SITE_SET_ALIAS_HOSTS &&
                        !same_hosts(alias, site->alias_hosts, site->alias_host_count);
    enum catalogue_status status = CATALOGUE_OK;
    result->id = site->id;
    if (managed == site->managed && max_pages == site->max_pages && !cross_differ &&
        !alias_differ) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    status = write_site(tx, site, managed, max_pages);
    if (status == CATALOGUE_OK && cross_differ)
        status = write_hosts(tx, site->id, "cross", cross);
    if (status == CATALOGUE_OK && alias_differ)
        status = write_hosts(tx, site->id, "alias", alias);
    result->updated = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}

enum catalogue_status apply_site_update(struct tx *tx, const struct change *change,
                                        struct change_result *result)
{
    const struct site_fields *fields = &change->site;
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_site *site = registry_site_by_id(r, change->site_id);
    if (!site) {
        result_decline(result, CATALOGUE_NOT_FOUND, "there is no such site");
        return CATALOGUE_OK;
    }
    if (change->token_site_id != 0 && change->token_site_id != site->id) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (result_managed(result, change, site))
        return CATALOGUE_OK;
    uint32_t max_pages = site->max_pages;
    if (fields->set & SITE_SET_MAX_PAGES)
        max_pages = read_max_pages(tx, fields, result);
    struct hosts cross = {0}, alias = {0};
    if (result->status == CATALOGUE_OK)
        status = read_hosts(fields->cross_hosts, "cross_hosts", &cross, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = read_hosts(fields->alias_hosts, "alias_hosts", &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        check_aliases_free(r, change, site, &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && max_pages > site->max_pages)
        status = check_more_names(tx, r, site, max_pages, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = write_differences(tx, change, site, max_pages, &cross, &alias, result);
    free(cross.name);
    free(alias.name);
    return status;
}

/* ---- removing one */

static enum catalogue_status run_on_site(struct tx *tx, enum statement which, int64_t site_id)
{
    sqlite3_stmt *row = tx_statement(tx, which);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, site_id);
    return statement_run(row);
}

enum catalogue_status apply_site_remove(struct tx *tx, const struct change *change,
                                        struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_site *site = registry_site_by_id(r, change->site_id);
    if (!site) {
        result_decline(result, CATALOGUE_NOT_FOUND, "there is no such site");
        return CATALOGUE_OK;
    }
    if (change->token_site_id != 0) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (result_managed(result, change, site))
        return CATALOGUE_OK;
    struct guard_case guard = {.max_removed = change->max_removed};
    for (size_t i = 0; i < site->index_count; i++) {
        struct fill_index *fill;
        uint64_t peak;
        status = fill_index(tx, site->id, site->indexes[i].id, &fill);
        if (status == CATALOGUE_OK)
            status = guard_peak(tx, fill, &peak);
        if (status != CATALOGUE_OK)
            return status;
        guard.peak += peak;
        guard.before += fill->entries;
    }
    guard.removed = guard.before;
    if (!guard_judge(tx, &guard, result))
        return CATALOGUE_OK;

    for (size_t i = 0; status == CATALOGUE_OK && i < site->index_count; i++)
        status = index_bury(tx, &site->indexes[i]);
    if (status == CATALOGUE_OK)
        status = run_on_site(tx, ST_SITE_REMOVE, site->id);
    /* A token of this site alone can do nothing any more, and would keep its name taken. */
    if (status == CATALOGUE_OK)
        status = run_on_site(tx, ST_SITE_TOKENS_DROP, site->id);
    result->id = site->id;
    result->removed = guard.removed;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}
