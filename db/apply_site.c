#include <stdio.h>
#include <string.h>

#include "db/apply.h"
#include "db/guard.h"
#include "db/site_hosts.h"

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
                                         const struct site_hosts *cross,
                                         const struct site_hosts *alias,
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
    status = site_hosts_write(tx, result->id, "cross", cross);
    if (status == CATALOGUE_OK)
        status = site_hosts_write(tx, result->id, "alias", alias);
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
    struct site_hosts cross = {0}, alias = {0};
    if (result->status == CATALOGUE_OK)
        status = site_hosts_read(fields->cross_hosts, "cross_hosts", &cross, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = site_hosts_read(fields->alias_hosts, "alias_hosts", &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        site_hosts_check_free(r, change, NULL, &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = insert_site(tx, change, origin.text, max_pages, &cross, &alias, result);
    site_hosts_done(&cross);
    site_hosts_done(&alias);
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
                                               const struct site_hosts *cross,
                                               const struct site_hosts *alias,
                                               struct change_result *result)
{
    const struct site_fields *fields = &change->site;
    bool managed = fields->set & SITE_SET_MANAGED ? fields->managed : site->managed;
    bool cross_differ = fields->set & SITE_SET_CROSS_HOSTS &&
                        !site_hosts_equal(cross, site->cross_hosts, site->cross_host_count);
    bool alias_differ = fields->set & SITE_SET_ALIAS_HOSTS &&
                        !site_hosts_equal(alias, site->alias_hosts, site->alias_host_count);
    enum catalogue_status status = CATALOGUE_OK;
    result->id = site->id;
    if (managed == site->managed && max_pages == site->max_pages && !cross_differ &&
        !alias_differ) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    status = write_site(tx, site, managed, max_pages);
    if (status == CATALOGUE_OK && cross_differ)
        status = site_hosts_write(tx, site->id, "cross", cross);
    if (status == CATALOGUE_OK && alias_differ)
        status = site_hosts_write(tx, site->id, "alias", alias);
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
    struct site_hosts cross = {0}, alias = {0};
    if (result->status == CATALOGUE_OK)
        status = site_hosts_read(fields->cross_hosts, "cross_hosts", &cross, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = site_hosts_read(fields->alias_hosts, "alias_hosts", &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        site_hosts_check_free(r, change, site, &alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && max_pages > site->max_pages)
        status = check_more_names(tx, r, site, max_pages, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = write_differences(tx, change, site, max_pages, &cross, &alias, result);
    site_hosts_done(&cross);
    site_hosts_done(&alias);
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
