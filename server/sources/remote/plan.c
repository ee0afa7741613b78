/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The settings of remote sources, and plans: the settings of all sources with their common bounds.
 */
#include "server/sources/remote/remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/str.h"
#include "server/rules/host_map.h"
#include "server/rules/url.h"
#include "server/sources/remote/run.h"

const char *remote_result_word(enum remote_result result)
{
    static const char *const words[REMOTE_RESULTS] = {"changed", "same",    "not_modified",
                                                      "bad",     "refused", "unreachable"};
    return words[result];
}

void remote_report(struct remote *r, int level, const char *event, const char *source,
                   const char *format, ...)
{
    char detail[LOC_MAX_CHARS + 512];
    va_list arguments;
    if (r->options.event == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    r->options.event(r->options.event_context, level, event, source, detail);
}

/* ---- settings ------------------------------------------------------------------------------- */

bool remote_settings_check(const struct source_settings *settings, char *why, size_t why_size)
{
    struct url url;
    const char *credentials = settings->credentials;
    char wrong[128];
    struct host_map *map =
        settings->map != NULL ? host_map_new(settings->map, wrong, sizeof wrong) : NULL;
    host_map_free(map);
    if (settings->map != NULL && map == NULL) {
        snprintf(why, why_size, "map %s", wrong);
        return false;
    }
    if (url_parse(settings->upstream, strlen(settings->upstream), &url, NULL) != RULE_OK) {
        snprintf(why, why_size, "upstream is not a URL: %.200s", settings->upstream);
        return false;
    }
    if (credentials != NULL && !url.https) {
        snprintf(why, why_size, "credentials are only sent over https");
        return false;
    }
    if (credentials != NULL && strncasecmp(credentials, "basic ", 6) != 0 &&
        strncasecmp(credentials, "bearer ", 7) != 0) {
        snprintf(why, why_size, "credentials must be basic USER:PASS or bearer TOKEN");
        return false;
    }
    return true;
}

bool remote_splits(const struct source_settings *settings, const char *loc)
{
    for (const char *const *at = settings->split; at != NULL && *at != NULL; at++)
        if (strcmp(*at, loc) == 0)
            return true;
    return false;
}

static void free_text(const char *text)
{
    free((char *)(uintptr_t)text);
}

void remote_plan_free(struct remote_plan *plan)
{
    if (plan == NULL || --plan->held > 0)
        return;
    for (size_t i = 0; plan->settings != NULL && i < plan->count; i++)
        source_settings_done(&plan->settings[i]);
    free(plan->settings);
    address_guard_done(&plan->guard);
    for (size_t i = 0; i < plan->bounds.site_count; i++) {
        free_text(plan->sites[i].origin);
        free_text(plan->sites[i].connect);
    }
    free(plan->sites);
    free_text(plan->bounds.agent);
    free(plan);
}

bool remote_plan_same_bounds(const struct remote_plan *a, const struct remote_plan *b)
{
    const struct address_range *x = a->guard.allow, *y = b->guard.allow;
    bool same = a->guard.allow_count == b->guard.allow_count &&
                text_equal(a->bounds.agent, b->bounds.agent) && a->bounds.rate == b->bounds.rate &&
                a->bounds.per_host == b->bounds.per_host &&
                a->bounds.min_interval_s == b->bounds.min_interval_s &&
                a->bounds.max_interval_s == b->bounds.max_interval_s;
    for (size_t i = 0; same && i < a->guard.allow_count; i++)
        same = memcmp(x[i].bytes, y[i].bytes, sizeof x[i].bytes) == 0 && x[i].bits == y[i].bits;
    same = same && a->bounds.site_count == b->bounds.site_count;
    for (size_t i = 0; same && i < a->bounds.site_count; i++)
        same = text_equal(a->sites[i].origin, b->sites[i].origin) &&
               text_equal(a->sites[i].connect, b->sites[i].connect) &&
               a->sites[i].public_check == b->sites[i].public_check;
    return same;
}

bool remote_plan_equal(const struct remote_plan *a, const struct remote_plan *b)
{
    bool same = a->count == b->count && remote_plan_same_bounds(a, b);
    for (size_t i = 0; same && i < a->count; i++)
        same = source_settings_equal(&a->settings[i], &b->settings[i]);
    return same;
}

const struct address_guard *remote_guard(const struct remote_plan *plan,
                                         const struct source_settings *source,
                                         const struct registry_site *site)
{
    static const struct address_guard public_alone = {0};
    bool configured = (source != NULL && source->managed) || (site != NULL && site->managed);
    return configured ? &plan->guard : &public_alone;
}

static bool is_host_of(const struct registry_site *site, const struct url *url)
{
    const char *host = url->text + url->host_at;
    size_t with_port = url->origin_len - url->host_at;
    if (site == NULL)
        return false;
    if (url_same_server(&site->origin_url, url))
        return true;
    for (size_t list = 0; list < 2; list++) {
        size_t count = list == 0 ? site->alias_host_count : site->cross_host_count;
        const char *const *all = list == 0 ? site->alias_hosts : site->cross_hosts;
        for (size_t i = 0; i < count; i++) {
            size_t len = strlen(all[i]);
            if ((len == with_port || len == url->host_len) && memcmp(all[i], host, len) == 0)
                return true;
        }
    }
    return false;
}

const struct registry_site *remote_site_of(const struct registry *registry,
                                           const struct source_settings *source)
{
    const struct registry_site *site = NULL;
    if (source->site_id != 0)
        return registry_site_by_id(registry, source->site_id);
    if (source->index != NULL)
        registry_index_by_name(registry, source->index, &site);
    else if (registry->site_count == 1)
        site = &registry->sites[0];
    return site;
}

static bool has_frozen_list(const struct registry *registry, const struct registry_site *site)
{
    struct registry_list_at at = {0};
    const struct registry_index *list = registry_next_list(site, &at);
    while (list != NULL && !registry_is_frozen(registry, list))
        list = registry_next_list(site, &at);
    return list != NULL;
}

bool remote_is_frozen(const struct registry *registry, const struct source_settings *source)
{
    const struct registry_site *site = remote_site_of(registry, source);
    if (site != NULL)
        return has_frozen_list(registry, site);
    for (size_t i = 0; i < registry->site_count; i++)
        if (has_frozen_list(registry, &registry->sites[i]))
            return true;
    return false;
}

bool remote_may_request(const struct registry *registry, const struct registry_site *site,
                        const struct source_settings *source, const struct url *upstream,
                        const struct url *to)
{
    bool of_list = site == NULL && source != NULL;
    if (upstream != NULL && url_same_server(upstream, to))
        return true;
    if (of_list)
        site = remote_site_of(registry, source);
    bool allowed = is_host_of(site, to);
    /* It may register for any site: those that have the upstream's host. */
    for (size_t i = 0; of_list && site == NULL && !allowed && i < registry->site_count; i++)
        allowed = is_host_of(&registry->sites[i], to) && is_host_of(&registry->sites[i], upstream);
    return allowed;
}

static bool copy_sites(struct remote_plan *plan, const struct remote_bounds *from)
{
    bool failed = false;
    plan->bounds.site_count = 0;
    plan->sites = calloc(from->site_count + 1, sizeof *plan->sites);
    for (size_t i = 0; plan->sites != NULL && i < from->site_count; i++) {
        plan->sites[i] = from->sites[i];
        plan->sites[i].origin = text_copy(from->sites[i].origin, &failed);
        plan->sites[i].connect = text_copy(from->sites[i].connect, &failed);
        plan->bounds.site_count++;
    }
    plan->bounds.sites = plan->sites;
    return plan->sites != NULL && !failed;
}

static bool copy_sources(struct remote_plan *plan, size_t count,
                         const struct source_settings *settings, bool *failed, char *why,
                         size_t why_size)
{
    plan->settings = calloc(count + 1, sizeof *plan->settings);
    *failed = *failed || plan->settings == NULL;
    for (size_t i = 0; !*failed && i < count; i++) {
        const struct source_settings *from = &settings[i];
        if (!remote_settings_check(from, why, why_size))
            return false;
        *failed = !source_settings_copy(from, &plan->settings[plan->count++]);
    }
    return true;
}

struct remote_plan *remote_plan_new(const struct remote_bounds *bounds, size_t count,
                                    const struct source_settings *settings, char *why,
                                    size_t why_size)
{
    bool failed = false;
    struct remote_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    plan->held = 1;
    plan->bounds = *bounds;
    plan->bounds.allow_addresses = NULL;
    plan->bounds.agent = text_copy(bounds->agent, &failed);
    failed |= !address_guard_init(&plan->guard, bounds->allow_addresses);
    failed |= !copy_sites(plan, bounds);
    bool good = copy_sources(plan, count, settings, &failed, why, why_size);
    if (failed)
        snprintf(why, why_size, "out of memory");
    if (good && !failed)
        return plan;
    remote_plan_free(plan);
    return NULL;
}
