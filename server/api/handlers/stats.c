/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* GET /v1/stats: counts of each day (sizes, engines, crawlers), for the console's charts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/api/call.h"
#include "server/api/handlers/handlers.h"
#include "server/crawlers/crawlers.h"
#include "server/engines/report/engine_report.h"
#include "server/rules/lastmod.h"

/* Days from `from` to `to`, both included, in steps of `step` days. */
struct range {
    int32_t from, to, step;
};

static size_t step_of(const struct range *r, int32_t day)
{
    return (size_t)((day - r->from) / r->step);
}

static size_t step_count(const struct range *r)
{
    return step_of(r, r->to) + 1;
}

static bool is_in(const struct range *r, int32_t day)
{
    return day >= r->from && day <= r->to;
}

/* ---- parameters ---- */

static bool refuse(struct call *call, const char *name, const char *detail)
{
    reply_problem(&call->request->reply, 400, "malformed-parameter", name, detail);
    return false;
}

static bool read_day(struct call *call, const char *name, int32_t *out)
{
    const char *text = call_parameter(call, name);
    struct lastmod time;
    if (text == NULL)
        return true;
    if (strlen(text) != strlen("2026-11-21") ||
        lastmod_parse(text, strlen(text), INT64_MAX / 2, &time, NULL) != RULE_OK)
        return refuse(call, name, "must be a date such as 2026-11-21");
    *out = (int32_t)(time.unix_seconds / CALENDAR_SECONDS_PER_DAY);
    return true;
}

static bool read_step(struct call *call, int32_t *out)
{
    const char *text = call_parameter(call, "step");
    char *end;
    if (text == NULL)
        return true;
    long days = strtol(text, &end, 10);
    if (*text < '1' || *text > '9' || strcmp(end, "d") != 0 || days > DAYS_KEPT)
        return refuse(call, "step", "must be a number of days such as 7d, 90d at most");
    *out = (int32_t)days;
    return true;
}

/* Reads the range; days whose counts are dropped, or still to come, are left out. */
static bool read_range(struct call *call, int32_t today, struct range *out)
{
    *out = (struct range){.from = today - DAYS_KEPT + 1, .to = today, .step = 1};
    if (!read_day(call, "from", &out->from) || !read_day(call, "to", &out->to) ||
        !read_step(call, &out->step))
        return false;
    if (out->from > out->to)
        return refuse(call, "from", "must not be after `to`");
    if (out->to > today)
        out->to = today;
    if (out->from < today - DAYS_KEPT + 1)
        out->from = today - DAYS_KEPT + 1;
    if (out->from > out->to)
        return refuse(call, "from", "must be in the last 90 days, as must `to`");
    return true;
}

/* ---- JSON ---- */

static void append_date(struct str *out, const char *lead, int32_t day)
{
    char text[11];
    lastmod_format_day(day, text);
    str_append_format(out, "%s\"%s\"", lead, text);
}

/* Begins an object of a list: `{"day":"…"`, the first day of the step. */
static void append_step(struct str *out, const struct range *r, size_t step, bool *some)
{
    append_date(out, *some ? ",{\"day\":" : "{\"day\":", r->from + (int32_t)step * r->step);
    *some = true;
}

/* ---- sizes and reports of engines: of each step the last day that is known */

struct last_of_steps {
    const struct range *range;
    struct {
        bool known;
        union {
            struct site_day site;
            struct engine_day engine;
        };
    } of[DAYS_KEPT];
};

static void add_site_day(void *context, const struct site_day *day)
{
    struct last_of_steps *l = context;
    size_t step = step_of(l->range, day->day);
    l->of[step].known = true;
    l->of[step].site = *day;
}

static void add_engine_day(void *context, const struct engine_day *day)
{
    struct last_of_steps *l = context;
    if (!is_in(l->range, day->day))
        return;
    size_t step = step_of(l->range, day->day);
    l->of[step].known = true;
    l->of[step].engine = *day;
}

/* Nothing for a token with a prefix, which must not see totals of the site; the same for
 * engines. */
static enum catalogue_status append_sizes(struct str *out, struct call *call,
                                          struct catalogue_view *view, const struct range *r,
                                          int64_t site_id)
{
    struct last_of_steps l = {.range = r};
    enum catalogue_status status = CATALOGUE_OK;
    if (grant_has_whole(&call->request->grant))
        status = catalogue_view_site_days(view, site_id, r->from, r->to, add_site_day, &l);
    bool some = false;
    str_append_text(out, ",\"days\":[");
    for (size_t i = 0; i < step_count(r); i++) {
        if (!l.of[i].known)
            continue;
        append_step(out, r, i, &some);
        str_append_format(out, ",\"entries\":%" PRIu64 ",\"urls\":%" PRIu64 "}",
                          l.of[i].site.entries, l.of[i].site.urls);
    }
    str_append_char(out, ']');
    return status;
}

static enum catalogue_status append_engine(struct str *out, struct catalogue_view *view,
                                           const struct range *r, const char *name, int64_t site_id)
{
    struct last_of_steps l = {.range = r};
    enum catalogue_status status =
        catalogue_view_engine_days(view, name, site_id, add_engine_day, &l);
    bool some = false;
    str_append_text(out, "{\"name\":");
    str_append_json_text(out, name);
    str_append_text(out, ",\"days\":[");
    for (size_t i = 0; i < step_count(r); i++) {
        const struct engine_day *day = &l.of[i].engine;
        if (!l.of[i].known)
            continue;
        append_step(out, r, i, &some);
        str_append_format(out,
                          ",\"sitemaps\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"warnings\":%" PRIu64
                          ",\"urls\":%" PRIu64 "}",
                          day->sitemaps, day->errors, day->warnings, day->urls);
    }
    str_append_text(out, "]}");
    return status;
}

static enum catalogue_status append_engines(struct str *out, struct call *call,
                                            struct catalogue_view *view, const struct range *r,
                                            int64_t site_id)
{
    enum catalogue_status status = CATALOGUE_OK;
    bool some = false;
    str_append_text(out, ",\"engines\":[");
    for (size_t i = 0; i < ENGINE_COUNT && status == CATALOGUE_OK; i++) {
        if (!engine_is_shown(call, i))
            continue;
        str_append_text(out, some ? "," : "");
        some = true;
        status = append_engine(out, view, r, engine_names[i], site_id);
    }
    str_append_char(out, ']');
    return status;
}

/* ---- crawlers: the sum of a step ---- */

struct fetches {
    uint64_t ok, not_modified, other, impostors;
    struct crawler_lags lags;
};

/* About 1.5 MB: too large for the stack. */
struct summing {
    const struct range *range;
    const struct registry *registry;
    const struct registry_site *only; /* NULL: every site */
    struct fetches of[CRAWLERS_MAX][DAYS_KEPT];
};

static void add_day(void *context, const struct crawler_day *day)
{
    struct summing *s = context;
    if (!is_in(s->range, day->day) ||
        (s->only != NULL ? s->only->id != day->site_id
                         : registry_site_by_id(s->registry, day->site_id) == NULL))
        return;
    struct fetches *to = &s->of[day->crawler][step_of(s->range, day->day)];
    to->ok += day->ok;
    to->not_modified += day->not_modified;
    to->other += day->other;
    to->impostors += day->impostors;
    crawler_lags_add(&to->lags, &day->lags);
}

static void append_fetches(struct str *out, const struct fetches *f)
{
    uint64_t changes = crawler_lags_count(&f->lags);
    str_append_format(out,
                      ",\"ok\":%" PRIu64 ",\"not_modified\":%" PRIu64 ",\"other\":%" PRIu64
                      ",\"impostors\":%" PRIu64,
                      f->ok, f->not_modified, f->other, f->impostors);
    if (changes == 0)
        str_append_text(out, ",\"lag\":null}");
    else
        str_append_format(
            out, ",\"lag\":{\"p50_s\":%" PRIu32 ",\"p90_s\":%" PRIu32 ",\"changes\":%" PRIu64 "}}",
            crawler_lags_percentile(&f->lags, 50), crawler_lags_percentile(&f->lags, 90), changes);
}

static void append_crawler(struct str *out, const struct summing *s, const char *name, size_t at,
                           bool *some)
{
    bool some_step = false;
    for (size_t i = 0; i < step_count(s->range); i++) {
        const struct fetches *f = &s->of[at][i];
        if (f->ok + f->not_modified + f->other + f->impostors == 0)
            continue;
        if (!some_step) {
            str_append_text(out, *some ? ",{\"name\":" : "{\"name\":");
            str_append_json_text(out, name);
            str_append_text(out, ",\"days\":[");
            *some = true;
        }
        append_step(out, s->range, i, &some_step);
        append_fetches(out, f);
    }
    str_append_text(out, some_step ? "]}" : "");
}

static enum catalogue_status append_crawlers(struct str *out, struct crawlers *crawlers,
                                             const struct range *r, const struct registry *registry,
                                             const struct registry_site *only)
{
    struct summing *s = calloc(1, sizeof *s);
    bool some = false;
    if (s == NULL)
        return CATALOGUE_NO_MEMORY;
    s->range = r;
    s->registry = registry;
    s->only = only;
    str_append_text(out, ",\"crawlers\":[");
    if (crawlers != NULL) {
        crawlers_each_day(crawlers, add_day, s);
        for (size_t i = 1; i < crawlers_count(crawlers); i++)
            append_crawler(out, s, crawlers_name(crawlers, i), i, &some);
    }
    str_append_char(out, ']');
    free(s);
    return CATALOGUE_OK;
}

static enum catalogue_status stats_work(struct call *call, struct catalogue_view *view,
                                        const struct registry *registry)
{
    struct str *out = &call->request->reply.body;
    const struct registry_site *only;
    struct range range;

    if (!call_site(call, registry, &only) ||
        !read_range(call, (int32_t)(time(NULL) / CALENDAR_SECONDS_PER_DAY), &range))
        return CATALOGUE_OK;
    int64_t site_id = only != NULL ? only->id : 0;
    crawlers_learn_others(call, view);
    str_append_text(out, "{\"site\":");
    str_append_json_text(out, only != NULL ? only->origin : NULL);
    append_date(out, ",\"from\":", range.from);
    append_date(out, ",\"to\":", range.to);
    str_append_format(out, ",\"step\":\"%" PRId32 "d\"", range.step);
    enum catalogue_status status = append_sizes(out, call, view, &range, site_id);
    if (status == CATALOGUE_OK)
        status = append_crawlers(out, call->app->crawlers, &range, registry, only);
    if (status == CATALOGUE_OK)
        status = append_engines(out, call, view, &range, site_id);
    str_append_text(out, "}\n");
    if (status == CATALOGUE_OK)
        reply_json(&call->request->reply, 200);
    return status;
}

enum handled stats_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, stats_work);
}
