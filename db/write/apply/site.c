/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Creates, changes and removes sites. The writer's thread; each function decides by reads before it
 * writes.
 *
 * - Hosts that are added to a site's lists or removed from them are merged into whole lists first,
 *   which all else uses: of two clients that add at once, neither loses a host.
 * - The hosts that a site may name are checked against all sites: a host alias belongs to one. Its
 *   earlier owner leaves no trace, so pages there are never answered by date
 *   (api/handlers/public.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/catalogue.h"
#include "db/tx/tx.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/guard.h"
#include "db/write/occupancy.h"
#include "server/rules/domain.h"
#include "server/rules/robots.h"
#include "server/rules/scope.h"

struct site_edit {
    const char **cross_hosts, **alias_hosts; /* owned; the strings are not */
};

static int compare_hosts(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void refuse_host(struct change_result *result, enum rule_code code, const char *field,
                        const char *host)
{
    result_refuse(result, code, field);
    snprintf(result->detail, sizeof result->detail, "%.200s: %s", *host != '\0' ? host : "\"\"",
             rule_code_sentence(code));
}

enum catalogue_status site_hosts_read(const struct change *change, const char *const *given,
                                      const char *field, size_t has, struct site_hosts *out,
                                      struct change_result *result)
{
    size_t count = 0, max = change->grant.site_id != 0 ? SITE_HOSTS_MAX_ONE_SITE : SITE_HOSTS_MAX;
    while (given && given[count])
        count++;
    *out = (struct site_hosts){NULL, 0};
    if (count > max && count > has) {
        result_decline(result, CATALOGUE_FULL, "");
        snprintf(result->detail, sizeof result->detail,
                 "limit exceeded: a site can have at most %zu hosts in this list%s", max,
                 change->grant.site_id != 0 ? "; a token for all sites can add more" : "");
        result->field = field;
        return CATALOGUE_OK;
    }
    *out = (struct site_hosts){calloc(count + 1, SITE_HOST_SIZE), 0};
    if (!out->name)
        return CATALOGUE_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        enum rule_code code = url_parse_host(given[i], strlen(given[i]), out->name[i]);
        if (code != RULE_OK) {
            refuse_host(result, code, field, given[i]);
            return CATALOGUE_OK;
        }
    }
    qsort(out->name, count, SITE_HOST_SIZE, compare_hosts);
    for (size_t i = 0; i < count; i++) {
        if (out->count > 0 && strcmp(out->name[i], out->name[out->count - 1]) == 0)
            continue;
        memmove(out->name[out->count++], out->name[i], SITE_HOST_SIZE);
    }
    return CATALOGUE_OK;
}

bool site_hosts_equal(const struct site_hosts *a, const char *const *b, size_t b_count)
{
    if (a->count != b_count)
        return false;
    for (size_t i = 0; i < b_count; i++)
        if (strcmp(a->name[i], b[i]) != 0)
            return false;
    return true;
}

static bool has_host(const char *const *hosts, size_t count, const char *host)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(hosts[i], host) == 0)
            return true;
    return false;
}

static void refuse_used_host(struct change_result *result, const char *field, const char *host,
                             const char *owner)
{
    result_refuse(result, RULE_HOST_TAKEN, field);
    snprintf(result->detail, sizeof result->detail,
             "conflict: %.100s is the host of another site, %.100s", host, owner);
}

static struct domain_name own_name(const struct registry_site *site)
{
    return (struct domain_name){site->origin_url.text + site->origin_url.host_at,
                                site->origin_url.host_len};
}

/* Whether another site's domain is closer to the host than the site's own. Does not return which
 * site, since a token for one site must not learn that by a request for a host such as "net". An
 * alias claims the names below it only if the configuration set it: otherwise a token for one site
 * could claim all names below "co.uk". */
static bool belongs_to_another(const struct registry *r, const char *host,
                               const struct registry_site *site)
{
    const struct domain_name name = domain_name(host), own = own_name(site);
    for (size_t i = 0; i < r->site_count; i++) {
        const struct registry_site *other = &r->sites[i];
        bool nearer = other != site && domain_is_nearer(name, own_name(other), own);
        for (size_t k = 0; other != site && k < other->alias_host_count && !nearer; k++) {
            const struct domain_name alias = domain_name(other->alias_hosts[k]);
            nearer = other->managed ? domain_is_nearer(name, alias, own)
                                    : domain_is_above(name, alias, own);
        }
        if (nearer)
            return true;
    }
    return false;
}

/* A name that can be no site's own: an address, or without a dot, as "localhost" and "com". */
static bool is_of_nobody(struct domain_name host)
{
    const char *dot = memrchr(host.text, '.', host.len);
    size_t rest = dot != NULL ? (size_t)(host.text + host.len - dot) - 1 : 0;
    return *host.text == '[' || dot == NULL || strspn(dot + 1, "0123456789") == rest;
}

/* Rejects hosts that belong to another site, with HOST_TAKEN. A host alias belongs to one site, and
 * the host of an origin to the site of that origin. Only a token for all sites may make such a host
 * an alias or a cross host of another site, where it takes effect once the first site is removed.
 * The same holds for an alias in another site's domain, such as www.example.com for the site
 * example.com. `site` (NULL: a new one) keeps the hosts that it has. The configuration's hosts come
 * first, also when requests are routed. */
static void site_hosts_check_free(const struct registry *r, const struct change *change,
                                  const struct registry_site *site, const struct site_hosts *cross,
                                  const struct site_hosts *alias, struct change_result *result)
{
    const struct registry_site *other;
    bool all_sites = change->grant.site_id == 0;
    for (size_t i = 0; !change->override_managed && i < alias->count; i++) {
        const char *host = alias->name[i];
        if (site && has_host(site->alias_hosts, site->alias_host_count, host))
            continue;
        if (registry_site_of_alias(r, host, site) != NULL) {
            result_decline(result, CATALOGUE_CONFLICT, "");
            snprintf(result->detail, sizeof result->detail,
                     "conflict: %s is a host alias of another site", host);
            result->field = "alias_hosts";
            return;
        }
        if (!all_sites && (other = registry_site_of_host(r, host, site)) != NULL) {
            refuse_used_host(result, "alias_hosts", host, other->origin);
            return;
        }
        if (!all_sites && is_of_nobody(domain_name(host))) {
            refuse_host(result, RULE_ALL_SITES, "alias_hosts", host);
            return;
        }
        if (!all_sites && site && belongs_to_another(r, host, site)) {
            result_refuse(result, RULE_HOST_TAKEN, "alias_hosts");
            snprintf(result->detail, sizeof result->detail,
                     "%.150s is in the domain of another site; a token for all sites can add it",
                     host);
            return;
        }
    }
    for (size_t i = 0; !all_sites && i < cross->count; i++) {
        const char *host = cross->name[i];
        if (site && has_host(site->cross_hosts, site->cross_host_count, host))
            continue;
        if ((other = registry_site_of_host(r, host, site)) != NULL) {
            refuse_used_host(result, "cross_hosts", host, other->origin);
            return;
        }
    }
}

/* Replaces the site's list; `kind` is "cross" or "alias". */
static enum catalogue_status site_hosts_write(struct tx *tx, int64_t site_id, const char *kind,
                                              const struct site_hosts *hosts)
{
    enum catalogue_status status = tx_run(tx, ST_HOSTS_CLEAR, site_id, kind);
    for (size_t i = 0; status == CATALOGUE_OK && i < hosts->count; i++)
        status = tx_run(tx, ST_HOST_ADD, site_id, hosts->name[i], kind);
    return status;
}

void site_hosts_done(struct site_hosts *hosts)
{
    free(hosts->name);
}

static size_t count_of(const char *const *list)
{
    size_t count = 0;
    while (list && list[count])
        count++;
    return count;
}

/* Removes `host` from the list. Reports an invalid or missing host. */
static void remove_hosts(const char **list, const char *host, const char *field,
                         struct change_result *result)
{
    char name[HOST_MAX_CHARS + 7];
    enum rule_code code = url_parse_host(host, strlen(host), name);
    if (code != RULE_OK) {
        refuse_host(result, code, field, host);
        return;
    }
    size_t i = 0;
    while (list[i] && strcmp(list[i], name) != 0)
        i++;
    if (!list[i]) {
        result_decline(result, CATALOGUE_NOT_FOUND, "");
        snprintf(result->detail, sizeof result->detail, "the site has no %s %.200s",
                 strcmp(field, "cross_hosts") == 0 ? "cross host" : "host alias", name);
        result->field = field;
    }
    for (; list[i]; i++)
        list[i] = list[i + 1];
}

/* NULL: no memory. */
static const char **edit(const char *const *own, size_t own_count, const char *const *added,
                         const char *const *removed, const char *field,
                         struct change_result *result)
{
    size_t added_count = count_of(added);
    const char **list = calloc(own_count + added_count + 1, sizeof *list);
    for (size_t i = 0; list && i < own_count; i++)
        list[i] = own[i];
    for (; list && removed && *removed && result->status == CATALOGUE_OK; removed++)
        remove_hosts(list, *removed, field, result);
    for (size_t i = 0, at = list ? count_of(list) : 0; list && i < added_count; i++)
        list[at++] = added[i];
    return list;
}

/* Computes the new lists of hosts: those of `site` with the added hosts and without the removed
 * ones. `fields` then borrows them from `out`. Declines if a removed host is missing. The caller
 * ends `out` with site_edit_done in any case. */
static enum catalogue_status site_edit_resolve(const struct registry_site *site,
                                               struct site_fields *fields, struct site_edit *out,
                                               struct change_result *result)
{
    *out = (struct site_edit){NULL, NULL};
    if (count_of(fields->cross_added) + count_of(fields->cross_removed) > 0) {
        out->cross_hosts = edit(site->cross_hosts, site->cross_host_count, fields->cross_added,
                                fields->cross_removed, "cross_hosts", result);
        fields->cross_hosts = out->cross_hosts;
        fields->set |= SITE_SET_CROSS_HOSTS;
        if (!out->cross_hosts)
            return CATALOGUE_NO_MEMORY;
    }
    if (count_of(fields->alias_added) + count_of(fields->alias_removed) > 0) {
        out->alias_hosts = edit(site->alias_hosts, site->alias_host_count, fields->alias_added,
                                fields->alias_removed, "alias_hosts", result);
        fields->alias_hosts = out->alias_hosts;
        fields->set |= SITE_SET_ALIAS_HOSTS;
        if (!out->alias_hosts)
            return CATALOGUE_NO_MEMORY;
    }
    return CATALOGUE_OK;
}

static void site_edit_done(struct site_edit *edit)
{
    free(edit->cross_hosts);
    free(edit->alias_hosts);
}

/* Rejects an invalid robots.txt, and one that exceeds the limit for all sites together. `site` is
 * the one that is changed, NULL: a new one. */
static void site_robots_validate(const struct registry *r, const struct site_fields *fields,
                                 const struct registry_site *site, struct change_result *result)
{
    if (!(fields->set & SITE_SET_ROBOTS) || !fields->robots)
        return;
    size_t len = strlen(fields->robots), total = len;
    const char *fault = robots_fault(fields->robots, len);
    if (fault) {
        result_refuse(result, RULE_ROBOTS, "robots");
        snprintf(result->detail, sizeof result->detail, "%s", fault);
        return;
    }
    for (size_t i = 0; i < r->site_count; i++)
        if (&r->sites[i] != site)
            total += r->sites[i].robots_len;
    if (total > SITE_ROBOTS_TOTAL_BYTES) {
        result_decline(result, CATALOGUE_FULL,
                       "limit exceeded: the robots.txt of all sites together would exceed 16 MiB");
        result->field = "robots";
    }
}

/* True if the fields have another text, or another value of robots_off. */
static bool site_robots_differ(const struct site_fields *fields, const struct registry_site *site)
{
    if (!(fields->set & SITE_SET_ROBOTS))
        return false;
    if (fields->robots_off != site->robots_off || !fields->robots != !site->robots)
        return true;
    return fields->robots && strcmp(fields->robots, site->robots) != 0;
}

static enum catalogue_status site_robots_write(struct tx *tx, int64_t site_id,
                                               const struct site_fields *fields)
{
    return tx_run(tx, ST_SITE_ROBOTS, site_id, fields->robots, fields->robots_off, tx->revision + 1,
                  tx->now);
}

/* The requested limit of pages, or the default. Declines more pages than positions can number. */
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
        snprintf(result->detail, sizeof result->detail,
                 "limit exceeded: a site can have at most %u index files", SITE_PAGES_MAX);
    }
    return pages;
}

/* The new settings of a site. */
struct settings {
    uint32_t max_pages;
    struct site_hosts cross, alias;
};

static void settings_done(struct settings *s)
{
    site_hosts_done(&s->cross);
    site_hosts_done(&s->alias);
}

/* `site`: NULL for a new one. The caller ends the settings in any case. */
static enum catalogue_status settings_read(struct tx *tx, const struct registry *r,
                                           const struct change *change,
                                           const struct site_fields *fields,
                                           const struct registry_site *site, struct settings *out,
                                           struct change_result *result)
{
    *out = (struct settings){.max_pages = site ? site->max_pages : 0};
    if (!site || fields->set & SITE_SET_MAX_PAGES)
        out->max_pages = read_max_pages(tx, fields, result);
    if (site && out->max_pages > site->max_pages && change->grant.site_id != 0)
        result_refuse(result, RULE_ALL_SITES, "max_indexes");
    if (result->status != CATALOGUE_OK)
        return CATALOGUE_OK;
    enum catalogue_status status =
        site_hosts_read(change, fields->cross_hosts, "cross_hosts",
                        site ? site->cross_host_count : 0, &out->cross, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = site_hosts_read(change, fields->alias_hosts, "alias_hosts",
                                 site ? site->alias_host_count : 0, &out->alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        site_hosts_check_free(r, change, site, &out->cross, &out->alias, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        site_robots_validate(r, fields, site, result);
    return status;
}

/* ---- making one */

static bool is_standard(uint16_t port)
{
    return port == 80 || port == 443;
}

/* A host belongs to one site: with two sites, http and https of it would serve each other's pages,
 * since a Host field need not contain the standard ports. An older catalogue may have both, and
 * serves both. */
bool site_refuse_second_scheme(const struct registry *r, const struct url *origin,
                               struct change_result *result)
{
    for (size_t i = 0; i < r->site_count; i++) {
        const struct url *other = &r->sites[i].origin_url;
        bool same_port =
            other->port == origin->port || (is_standard(other->port) && is_standard(origin->port));
        if (!same_port || other->host_len != origin->host_len ||
            memcmp(other->text + other->host_at, origin->text + origin->host_at,
                   origin->host_len) != 0)
            continue;
        result_refuse(result, RULE_HOST_TAKEN, "origin");
        snprintf(result->detail, sizeof result->detail,
                 "its host is that of the site %.120s; http and https of a host are one site: "
                 "docs/migration.md has the steps from one to the other",
                 r->sites[i].origin);
        return true;
    }
    return false;
}

static enum catalogue_status insert_site(struct tx *tx, const struct site_fields *fields,
                                         const char *origin, const struct settings *settings,
                                         const char *index_path, struct change_result *result)
{
    enum catalogue_status status =
        tx_run(tx, ST_SITE_ADD, origin, fields->set & SITE_SET_MANAGED && fields->managed,
               settings->max_pages, fields->set & SITE_SET_CHECK && fields->check);
    if (status != CATALOGUE_OK)
        return status;
    int64_t id = sqlite3_last_insert_rowid(tx->db);
    tx_registry_touch(tx);
    status = site_hosts_write(tx, id, "cross", &settings->cross);
    if (status == CATALOGUE_OK)
        status = site_hosts_write(tx, id, "alias", &settings->alias);
    if (status == CATALOGUE_OK && fields->set & SITE_SET_ROBOTS)
        status = site_robots_write(tx, id, fields);
    if (status == CATALOGUE_OK && index_path)
        status = index_insert(tx, id, index_path, PAGE_PATTERN_DEFAULT, result);
    result->id = id;
    result->created = 1;
    result->changed = true;
    return status;
}

enum catalogue_status apply_site_add(struct tx *tx, const struct change *change,
                                     const struct change_site_add *add,
                                     struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    if (change->grant.site_id != 0) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    struct url origin;
    const char *text = add->origin ? add->origin : "";
    enum rule_code code = url_parse_origin(text, strlen(text), &origin);
    if (code != RULE_OK) {
        result_refuse(result, code, "origin");
        return CATALOGUE_OK;
    }
    const struct registry_site *existing = registry_site_by_origin(r, origin.text);
    if (existing) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "conflict: a site with this origin already exists");
        result->id = existing->id;
        return CATALOGUE_OK;
    }
    if (site_refuse_second_scheme(r, &origin, result))
        return CATALOGUE_OK;
    struct settings settings;
    status = settings_read(tx, r, change, &add->fields, NULL, &settings, result);
    char index_path[INDEX_PATH_MAX_CHARS + 1];
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && add->index_url)
        status = index_check_first(tx, &origin, add->index_url, index_path, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = insert_site(tx, &add->fields, origin.text, &settings,
                             add->index_url ? index_path : NULL, result);
    settings_done(&settings);
    return status;
}

/* ---- changing one */

/* Writes the values that differ. */
static enum catalogue_status write_differences(struct tx *tx, const struct site_fields *fields,
                                               const struct registry_site *site,
                                               const struct settings *to,
                                               struct change_result *result)
{
    bool managed = fields->set & SITE_SET_MANAGED ? fields->managed : site->managed;
    bool cross_differ = fields->set & SITE_SET_CROSS_HOSTS &&
                        !site_hosts_equal(&to->cross, site->cross_hosts, site->cross_host_count);
    bool alias_differ = fields->set & SITE_SET_ALIAS_HOSTS &&
                        !site_hosts_equal(&to->alias, site->alias_hosts, site->alias_host_count);
    bool robots_differ = site_robots_differ(fields, site);
    bool check = fields->set & SITE_SET_CHECK ? fields->check : site->check;
    enum catalogue_status status = CATALOGUE_OK;
    result->id = site->id;
    if (managed == site->managed && to->max_pages == site->max_pages && check == site->check &&
        !cross_differ && !alias_differ && !robots_differ) {
        result->unchanged = 1;
        return CATALOGUE_OK;
    }
    status = tx_run(tx, ST_SITE_WRITE, site->id, managed, to->max_pages, check);
    if (status == CATALOGUE_OK && cross_differ)
        status = site_hosts_write(tx, site->id, "cross", &to->cross);
    if (status == CATALOGUE_OK && alias_differ)
        status = site_hosts_write(tx, site->id, "alias", &to->alias);
    if (status == CATALOGUE_OK && robots_differ)
        status = site_robots_write(tx, site->id, fields);
    result->updated = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}

/* A freeze is state, not configuration: it is allowed for managed sites, and no reload undoes it.
 */
static enum catalogue_status freeze_site(struct tx *tx, int64_t site_id, enum freeze was,
                                         const struct grant *grant,
                                         const struct site_fields *fields,
                                         struct change_result *result)
{
    bool on = fields->frozen;
    enum freeze to = !on ? FREEZE_NONE : fields->leaves ? FREEZE_LEAVING : freeze_of(grant);
    if (!(fields->set & SITE_SET_FROZEN) || (on ? was >= to : was == FREEZE_NONE))
        return CATALOGUE_OK;
    enum catalogue_status status = tx_run(tx, ST_SITE_FREEZE, site_id, (int64_t)to);
    result->updated = 1;
    result->unchanged = 0;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}

static enum catalogue_status update_site(struct tx *tx, const struct registry *r,
                                         const struct registry_site *site,
                                         const struct change *change,
                                         const struct site_fields *fields,
                                         struct change_result *result)
{
    struct settings to;
    enum catalogue_status status = settings_read(tx, r, change, fields, site, &to, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && to.max_pages > site->max_pages)
        status = index_names_check(tx, r, site, site->indexes, site->index_count,
                                   site->max_pages + 1, to.max_pages, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = write_differences(tx, fields, site, &to, result);
    settings_done(&to);
    return status;
}

/* The site that a change names. NULL, with the result filled, if it does not exist or the caller
 * may not see it. */
static enum catalogue_status find_requested(struct tx *tx, const struct change *change,
                                            int64_t site_id, struct change_result *result,
                                            const struct registry **r,
                                            const struct registry_site **out)
{
    enum catalogue_status status = tx_registry(tx, r);
    *out = NULL;
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_site *site = registry_site_by_id(*r, site_id);
    if (!site)
        result_missing(result, &change->grant, "site not found");
    else if (!grant_has_site(&change->grant, site->id))
        result_forbid(result);
    else
        *out = site;
    return CATALOGUE_OK;
}

enum catalogue_status apply_site_update(struct tx *tx, const struct change *change,
                                        const struct change_site_update *update,
                                        struct change_result *result)
{
    const struct registry *r;
    const struct registry_site *site;
    struct site_fields fields = update->fields;
    enum catalogue_status status = find_requested(tx, change, update->site_id, result, &r, &site);
    if (status != CATALOGUE_OK || !site)
        return status;
    unsigned policy = fields.set & ~(SITE_SET_FROZEN | SITE_SET_MANAGED);
    bool edits =
        fields.cross_added || fields.cross_removed || fields.alias_added || fields.alias_removed;
    bool thaws = (fields.set & SITE_SET_FROZEN) && !fields.frozen;
    if (thaws && result_freeze_holds(result, change, site->frozen))
        return CATALOGUE_OK;
    if (fields.leaves && change->grant.site_id != 0) {
        result_refuse(result, RULE_ALL_SITES, "leaving");
        return CATALOGUE_OK;
    }
    enum freeze stays_frozen = thaws ? FREEZE_NONE : site->frozen;
    if ((policy != 0 || edits || fields.set == 0) &&
        (result_managed(result, change, site) ||
         (!change->override_managed && result_frozen(result, change, stays_frozen))))
        return CATALOGUE_OK;
    struct site_edit edit;
    status = site_edit_resolve(site, &fields, &edit, result);
    int64_t id = site->id;
    enum freeze site_frozen = site->frozen; /* `site` is about to be freed */
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = update_site(tx, r, site, change, &fields, result);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = freeze_site(tx, id, site_frozen, &change->grant, &fields, result);
    site_edit_done(&edit);
    return status;
}

/* ---- removing one */

/* Drops the sources of a site that moved away: the other catalogue has them now, and they would
 * prevent the site's return. */
static enum catalogue_status drop_sources(struct tx *tx, int64_t site_id)
{
    static const enum statement drops[] = {ST_MOVED_FILES_DROP, ST_MOVED_FETCHES_DROP,
                                           ST_MOVED_STATES_DROP, ST_MOVED_SOURCES_DROP};
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < sizeof drops / sizeof *drops && status == CATALOGUE_OK; i++)
        status = tx_run(tx, drops[i], site_id);
    return status;
}

enum catalogue_status apply_site_remove(struct tx *tx, const struct change *change,
                                        const struct change_site_remove *removal,
                                        struct change_result *result)
{
    const struct registry *r;
    const struct registry_site *site;
    const struct registry_index *list;
    enum catalogue_status status = find_requested(tx, change, removal->site_id, result, &r, &site);
    if (status != CATALOGUE_OK || !site)
        return status;
    if (change->grant.site_id != 0) { /* not even its own site */
        result_forbid(result);
        return CATALOGUE_OK;
    }
    enum freeze frozen = site->frozen;
    bool moves = freeze_moves(frozen);
    for (size_t i = 0; (list = registry_site_list(site, i)) != NULL; i++)
        if (list->frozen > frozen)
            frozen = list->frozen;
    /* A site that moves is frozen, and may be removed. */
    if (result_managed(result, change, site) || (!moves && result_frozen(result, change, frozen)))
        return CATALOGUE_OK;
    struct guard_case guard = {.max_removed = change->max_removed};
    for (size_t i = 0; (list = registry_site_list(site, i)) != NULL; i++) {
        struct occupancy_index *occupancy;
        uint64_t peak;
        status = occupancy_index(tx, site->id, list->id, &occupancy);
        if (status == CATALOGUE_OK)
            status = occupancy_peak(tx, occupancy, &peak);
        if (status != CATALOGUE_OK)
            return status;
        guard.peak += peak;
        guard.before += occupancy->entries;
    }
    guard.removed = guard.before;
    if (!guard_check(tx, &guard, result))
        return CATALOGUE_OK;

    for (size_t i = 0; status == CATALOGUE_OK && (list = registry_site_list(site, i)) != NULL; i++)
        status = index_bury(tx, list);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_SITE_REMOVE, site->id, tx->recorder && site->index_count > 0);
    if (status == CATALOGUE_OK)
        status = sources_touch(tx, site->id);
    /* A token of this site alone has no rights any more, and would keep its name in use. */
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_SITE_TOKENS_DROP, site->id);
    if (status == CATALOGUE_OK)
        status = token_forget_uses(tx);
    if (status == CATALOGUE_OK && moves)
        status = drop_sources(tx, site->id);
    result->id = site->id;
    result->removed = guard.removed;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}
