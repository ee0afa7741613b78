/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies a configuration as one change: all of its sites and tokens, or none. It consists of the
 * changes that create and update one site or index, each of which decides before it writes. */
#include <stdio.h>
#include <string.h>

#include "db/write/apply/apply.h"

/* ---- declared and stored sites and tokens */

static const struct registry_site *find_site(const struct registry *r, const char *origin)
{
    struct url url;
    return url_parse_origin(origin, strlen(origin), &url) == RULE_OK
               ? registry_site_by_origin(r, url.text)
               : NULL;
}

static bool has_index(const struct registry_site *site, const char *path)
{
    for (size_t i = 0; i < site->index_count; i++)
        if (strcmp(site->indexes[i].path, path) == 0)
            return true;
    return false;
}

static bool hosts_are(const char *const *declared, const char *const *names, size_t count)
{
    const struct change none = {0};
    struct change_result result = {.status = CATALOGUE_OK};
    struct site_hosts hosts = {0};
    bool same = site_hosts_read(&none, declared, "hosts", count, &hosts, &result) == CATALOGUE_OK &&
                result.status == CATALOGUE_OK && site_hosts_equal(&hosts, names, count);
    site_hosts_done(&hosts);
    return same;
}

static bool is_managed_so(const struct registry_site *site, const struct site_declaration *d)
{
    return site->managed && site->max_pages == d->max_pages && site->check == d->check &&
           site->robots == NULL && !site->robots_off &&
           hosts_are(d->cross_hosts, site->cross_hosts, site->cross_host_count) &&
           hosts_are(d->alias_hosts, site->alias_hosts, site->alias_host_count);
}

static bool is_declared(const struct registry *r, const struct site_declaration *d)
{
    const struct registry_site *site = find_site(r, d->origin);
    if (d->released)
        return site == NULL || !site->managed;
    if (site == NULL || (d->managed && !is_managed_so(site, d)))
        return false;
    for (const char *const *path = d->index_paths; *path != NULL; path++)
        if (!has_index(site, *path))
            return false;
    return true;
}

bool registry_is_declared(const struct registry *r, const struct site_declaration *declared,
                          size_t count, const struct token_declaration *tokens, size_t token_count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_declared(r, &declared[i]))
            return false;
    for (size_t i = 0; i < token_count; i++)
        if (!token_is_declared(r, &tokens[i]))
            return false;
    return true;
}

/* ---- making it so: sites first, since tokens name them */

static const struct change by_configuration = {.override_managed = true};

static enum catalogue_status make_site(struct tx *tx, const struct site_declaration *d,
                                       struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_site *site = find_site(r, d->origin);
    struct site_fields fields = {.managed = d->managed,
                                 .max_pages = d->max_pages,
                                 .check = d->check,
                                 .cross_hosts = d->cross_hosts,
                                 .alias_hosts = d->alias_hosts};
    if (d->released)
        fields.set = SITE_SET_MANAGED;
    if (d->managed)
        fields.set = SITE_SET_MANAGED | SITE_SET_CROSS_HOSTS | SITE_SET_ALIAS_HOSTS |
                     SITE_SET_MAX_PAGES | SITE_SET_ROBOTS | SITE_SET_CHECK;
    if (site == NULL) {
        const struct change_site_add add = {.origin = d->origin, .fields = fields};
        return apply_site_add(tx, &by_configuration, &add, result);
    }
    const struct change_site_update update = {.site_id = site->id, .fields = fields};
    return d->managed || d->released ? apply_site_update(tx, &by_configuration, &update, result)
                                     : CATALOGUE_OK;
}

static enum catalogue_status make_index(struct tx *tx, const struct site_declaration *d,
                                        const char *path, struct change_result *result)
{
    struct url origin;
    char url[LOC_MAX_CHARS + 1];
    const struct change_index_add add = {.url = url, .page_pattern = d->page_pattern};
    if (url_parse_origin(d->origin, strlen(d->origin), &origin) != RULE_OK ||
        (size_t)snprintf(url, sizeof url, "%s%s", origin.text, path) >= sizeof url) {
        result_refuse(result, RULE_INDEX_PATH, "index");
        return CATALOGUE_OK;
    }
    return apply_index_add(tx, &by_configuration, &add, result);
}

static enum catalogue_status declare(struct tx *tx, const struct site_declaration *d,
                                     struct change_result *result)
{
    enum catalogue_status status = make_site(tx, d, result);
    for (size_t i = 0;
         status == CATALOGUE_OK && result->status == CATALOGUE_OK && d->index_paths[i] != NULL;
         i++) {
        const struct registry *r;
        status = tx_registry(tx, &r);
        if (status != CATALOGUE_OK || has_index(find_site(r, d->origin), d->index_paths[i]))
            continue;
        status = make_index(tx, d, d->index_paths[i], result);
        result->refused_index = i + 1;
    }
    return status;
}

enum catalogue_status apply_configure(struct tx *tx, const struct change_configure *declared,
                                      struct change_result *result, bool *keep)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0;
         status == CATALOGUE_OK && result->status == CATALOGUE_OK && i < declared->site_count;
         i++) {
        const struct registry *r;
        status = tx_registry(tx, &r);
        if (status != CATALOGUE_OK || is_declared(r, &declared->sites[i]))
            continue;
        result->refused_at = i;
        status = declare(tx, &declared->sites[i], result);
    }
    for (size_t i = 0;
         status == CATALOGUE_OK && result->status == CATALOGUE_OK && i < declared->token_count;
         i++) {
        status = token_declare(tx, &declared->tokens[i], result);
        if (result->status != CATALOGUE_OK)
            result->refused_token = i + 1;
    }
    *keep = result->status == CATALOGUE_OK;
    result->changed = *keep && tx->changed;
    return status;
}
