/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What engines reported, as JSON for the API and the command line. */
#include "server/engines/report/engine_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/rules/lastmod.h"

const char *const engine_names[ENGINE_COUNT] = {"google", "bing"};

size_t engine_place(const char *name)
{
    size_t i = 0;
    while (i < ENGINE_COUNT && strcmp(engine_names[i], name) != 0)
        i++;
    return i;
}

const char *engine_state_word(enum engine_state state)
{
    static const char *const words[ENGINE_STATES] = {
        [ENGINE_WAITING] = "waiting",     [ENGINE_OK] = "ok",     [ENGINE_REFUSED] = "refused",
        [ENGINE_FORBIDDEN] = "forbidden", [ENGINE_BUSY] = "busy", [ENGINE_FAILED] = "failed",
    };
    return (unsigned)state < ENGINE_STATES ? words[state] : words[ENGINE_WAITING];
}

/* ---- sums ---- */

struct summing {
    struct engine_sums *sums;
    const struct registry_site *only;
    size_t worst; /* rank of the state of `why` */
};

static const enum engine_state worst_first[] = {ENGINE_REFUSED, ENGINE_FAILED, ENGINE_FORBIDDEN,
                                                ENGINE_BUSY,    ENGINE_OK,     ENGINE_WAITING};

static size_t rank_of(enum engine_state state)
{
    size_t rank = 0;
    while (rank + 1 < ENGINE_STATES && worst_first[rank] != state)
        rank++;
    return rank;
}

/* The first of REFUSED, FAILED, FORBIDDEN, BUSY, OK, WAITING that a site has. */
static enum engine_state engine_sums_state(const struct engine_sums *sums)
{
    for (size_t i = 0; i < ENGINE_STATES; i++)
        if (sums->states[worst_first[i]] > 0)
            return worst_first[i];
    return ENGINE_WAITING;
}

static void add_site(void *context, const struct engine_site *site)
{
    struct summing *s = context;
    if (s->only != NULL && s->only->id != site->site_id)
        return;
    size_t rank = rank_of(site->state);
    s->sums->states[worst_first[rank]]++;
    if (site->asked_at > s->sums->asked_at)
        s->sums->asked_at = site->asked_at;
    if (*site->why != '\0' && rank < s->worst) {
        s->worst = rank;
        snprintf(s->sums->why, sizeof s->sums->why, "%s", site->why);
    }
}

enum catalogue_status engine_sums_read(struct catalogue_view *view, const char *engine,
                                       const struct registry_site *only, struct engine_sums *out)
{
    struct summing s = {.sums = out, .only = only, .worst = ENGINE_STATES};
    *out = (struct engine_sums){.asked_at = 0};
    enum catalogue_status status = catalogue_view_engine_sites(view, engine, add_site, &s);
    return status == CATALOGUE_OK
               ? catalogue_view_engine_sum(view, engine, only != NULL ? only->id : 0, &out->sum)
               : status;
}

/* ---- JSON ---- */

static void append_time(struct str *out, const char *name, int64_t at)
{
    char text[21];
    if (at == 0) {
        str_append_format(out, ",\"%s\":null", name);
        return;
    }
    lastmod_format_utc(at, text);
    str_append_format(out, ",\"%s\":\"%s\"", name, text);
}

/* Appends `,"state":"…","reason":…`. */
static void append_state(struct str *out, enum engine_state state, const char *why)
{
    str_append_format(out, ",\"state\":\"%s\",\"reason\":", engine_state_word(state));
    str_append_json_text(out, *why != '\0' ? why : NULL);
}

static void append_numbers(struct str *out, uint64_t errors, uint64_t warnings, uint64_t urls)
{
    str_append_format(out, ",\"errors\":%" PRIu64 ",\"warnings\":%" PRIu64 ",\"urls\":%" PRIu64,
                      errors, warnings, urls);
}

enum catalogue_status engine_report_append(struct str *out, struct catalogue_view *view,
                                           const char *engine, const struct registry_site *only)
{
    struct engine_sums sums;
    enum catalogue_status status = engine_sums_read(view, engine, only, &sums);
    if (status != CATALOGUE_OK)
        return status;
    str_append_text(out, "{\"name\":");
    str_append_json_text(out, engine);
    append_state(out, engine_sums_state(&sums), sums.why);
    append_time(out, "asked_at", sums.asked_at);
    str_append_text(out, ",\"sites\":{");
    for (size_t i = 0; i < ENGINE_STATES; i++)
        str_append_format(out, "%s\"%s\":%" PRIu64, i > 0 ? "," : "",
                          engine_state_word((enum engine_state)i), sums.states[i]);
    str_append_format(out, "},\"sitemaps\":%" PRIu64, sums.sum.sitemaps);
    append_numbers(out, sums.sum.errors, sums.sum.warnings, sums.sum.urls);
    append_time(out, "read_at", sums.sum.read_at);
    str_append_char(out, '}');
    return CATALOGUE_OK;
}

struct listing {
    struct str *out;
    int64_t site_id;
    struct engine_site found;
    char why[256];
    size_t count;
};

static void find_site(void *context, const struct engine_site *site)
{
    struct listing *l = context;
    if (site->site_id != l->site_id)
        return;
    l->found = *site;
    snprintf(l->why, sizeof l->why, "%s", site->why);
}

static void append_sitemap(void *context, const struct engine_sitemap *s)
{
    struct listing *l = context;
    str_append_text(l->out, l->count++ > 0 ? ",{\"loc\":" : "{\"loc\":");
    str_append_json_text(l->out, s->loc);
    str_append_text(l->out, ",\"index\":");
    str_append_json_text(l->out, *s->parent != '\0' ? s->parent : NULL);
    str_append_format(l->out, ",\"listed\":%s,\"pending\":%s", s->listed ? "true" : "false",
                      s->pending ? "true" : "false");
    append_time(l->out, "sent_at", s->sent_at);
    append_time(l->out, "submitted_at", s->submitted_at);
    append_time(l->out, "read_at", s->read_at);
    append_numbers(l->out, s->errors, s->warnings, s->urls);
    str_append_char(l->out, '}');
}

static void append_day(void *context, const struct engine_day *day)
{
    struct listing *l = context;
    char text[11];
    lastmod_format_day(day->day, text);
    str_append_format(l->out, "%s{\"day\":\"%s\",\"sitemaps\":%" PRIu64, l->count++ > 0 ? "," : "",
                      text, day->sitemaps);
    append_numbers(l->out, day->errors, day->warnings, day->urls);
    append_time(l->out, "read_at", day->read_at);
    str_append_char(l->out, '}');
}

static enum catalogue_status append_site(struct str *out, struct catalogue_view *view,
                                         const char *engine, const struct registry_site *site)
{
    struct listing l = {.out = out, .site_id = site->id};
    enum catalogue_status status = catalogue_view_engine_sites(view, engine, find_site, &l);
    str_append_text(out, "{\"site\":");
    str_append_json_text(out, site->origin);
    append_state(out, l.found.state, l.why);
    append_time(out, "asked_at", l.found.asked_at);
    append_time(out, "next_at", l.found.next_at);
    append_time(out, "good_at", l.found.good_at);
    str_append_text(out, ",\"sitemaps\":[");
    if (status == CATALOGUE_OK)
        status = catalogue_view_engine_sitemaps(view, engine, site->id, append_sitemap, &l);
    str_append_text(out, "],\"days\":[");
    l.count = 0;
    if (status == CATALOGUE_OK)
        status = catalogue_view_engine_days(view, engine, site->id, append_day, &l);
    str_append_text(out, "]}");
    return status;
}

enum catalogue_status engine_report_sites(struct str *out, struct catalogue_view *view,
                                          const struct registry *registry, const char *engine,
                                          const struct registry_site *only, const char *after,
                                          uint64_t limit)
{
    enum catalogue_status status = CATALOGUE_OK;
    const struct registry_site *last = NULL;
    uint64_t count = 0;
    bool more = false;
    str_append_text(out, "\"sites\":[");
    for (size_t i = 0; i < registry->site_count && status == CATALOGUE_OK && !more; i++) {
        const struct registry_site *site = &registry->sites[i];
        if (only != NULL ? site->id != only->id : after != NULL && strcmp(site->origin, after) <= 0)
            continue;
        more = count == limit;
        if (more)
            break;
        str_append_text(out, count++ > 0 ? "," : "");
        status = append_site(out, view, engine, site);
        last = site;
    }
    str_append_text(out, "],\"next\":");
    str_append_json_text(out, more ? last->origin : NULL);
    return status;
}
