/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/crawlers: which version of each page each crawler has, from the ledger in memory. The
 * registry, and reports of other nodes since the last request, are read from the catalogue. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/crawlers/crawlers.h"
#include "server/crawlers/kept.h"
#include "server/crawlers/summary.h"
#include "server/rules/lastmod.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

void crawlers_learn_others(struct call *call, struct catalogue_view *view)
{
    struct shared_state state;

    if (call->app->crawlers != NULL && catalogue_shared_state(call->app->catalogue, &state))
        crawlers_learn(call->app->crawlers, view, state.node, false);
}

/* ---- GET /v1/crawlers ---------------------------------------------------------------------- */

/* The data for the members of a crawler. */
struct shown_crawler {
    const struct crawler_summary *summary;
    int32_t today;
};

static void write_days(struct str *out, const void *context)
{
    const struct shown_crawler *of = context;
    const char *comma = "";

    for (int32_t i = 0; i < DAYS_KEPT; i++) {
        const struct crawler_day_sum *day = &of->summary->days[i];
        char text[11];
        struct json_crawler_day shown = {text,
                                         {day->ok, day->not_modified, day->other, day->impostors}};

        if (day->ok + day->not_modified + day->other + day->impostors == 0)
            continue;
        lastmod_format_day(of->today - (DAYS_KEPT - 1 - i), text);
        str_append_text(out, comma);
        json_append_object(out, &json_crawler_day, &shown);
        comma = ",";
    }
}

static void write_lag(struct str *out, const void *context)
{
    const struct crawler_lags *lags = &((const struct shown_crawler *)context)->summary->lags;
    uint64_t changes = crawler_lags_count(lags);
    struct json_lag shown = {JSON_NONE, JSON_NONE, JSON_NONE, changes};

    if (changes > 0) {
        shown.p50_s = crawler_lags_percentile(lags, 50);
        shown.p90_s = crawler_lags_percentile(lags, 90);
        shown.max_s = lags->max_s;
    }
    json_append_object(out, &json_lag, &shown);
}

static void append_summary(struct str *out, struct crawlers *crawlers,
                           const struct crawlers_summary *s, size_t at, int64_t now)
{
    const struct crawler_summary *summary = &s->of[at];
    const struct shown_crawler of = {summary, (int32_t)(now / DAY_SECONDS)};
    struct json_crawler shown = {.name = crawlers_name(crawlers, at),
                                 .verified = crawlers_is_verified(crawlers, at),
                                 .last_fetch_at = summary->last_fetch_at,
                                 .seen_up_to = crawler_seen_up_to(summary, now),
                                 .pages = summary->pages,
                                 .current = summary->current,
                                 .stale = summary->stale,
                                 .never = summary->never,
                                 .stale_since = summary->stale_since,
                                 .lag = {write_lag, &of},
                                 .days = {write_days, &of}};

    json_append_object(out, &json_crawler, &shown);
}

static void append_all(struct str *out, struct crawlers *crawlers, const struct crawlers_summary *s,
                       int64_t now)
{
    bool some = false;

    for (size_t i = 1; i < crawlers_count(crawlers); i++) {
        if (!s->of[i].met)
            continue;
        if (some)
            str_append_char(out, ',');
        append_summary(out, crawlers, s, i, now);
        some = true;
    }
}

static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct crawlers *crawlers = call->app->crawlers;
    struct str *out = &call->request->reply.body;
    const struct registry_site *only;
    int64_t now = (int64_t)time(NULL);

    crawlers_learn_others(call, view);
    if (!call_site(call, registry, &only))
        return CATALOGUE_OK;
    struct crawlers_summary *s = malloc(sizeof *s);
    if (s == NULL)
        return CATALOGUE_NO_MEMORY;
    str_append_text(out, "{\"observed\":\"origin\"");
    json_append_time_member(out, "since", crawlers != NULL ? crawlers_since(crawlers) : 0);
    str_append_text(out, ",\"crawlers\":[");
    if (crawlers != NULL) {
        crawlers_sum_up(crawlers, registry, only, now, s);
        append_all(out, crawlers, s, now);
    }
    str_append_text(out, "]}\n");
    free(s);
    reply_json(&call->request->reply, 200);
    return CATALOGUE_OK;
}

enum handled crawlers_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

/* ---- GET /v1/crawlers/{name}/pages --------------------------------------------------------- */

/* A cursor: the list continues after this page of this index or urlset. */
struct behind {
    struct url list; /* len 0: from the first page on */
    uint64_t page;
};

struct listing {
    struct call *call;
    struct crawlers *crawlers;
    size_t crawler;
    bool stale_only, more;
    uint64_t limit, count;
    struct behind behind;
    struct str next;
};

/* Reads a cursor: "12:https://www.example.com/sitemap_index.xml" */
static bool read_cursor(struct listing *l)
{
    const char *text = call_parameter(l->call, "after"), *colon;
    char digits[12];

    if (text == NULL)
        return true;
    colon = strchr(text, ':');
    if (colon != NULL && colon - text < (int)sizeof digits) {
        memcpy(digits, text, (size_t)(colon - text));
        digits[colon - text] = '\0';
        if (query_number(digits, UINT32_MAX, &l->behind.page) &&
            url_parse(colon + 1, strlen(colon + 1), &l->behind.list, NULL) == RULE_OK)
            return true;
    }
    reply_problem(&l->call->request->reply, 400, "malformed-cursor", "after",
                  "is not the `next` of an earlier list");
    return false;
}

/* By origin, then path: the order of registry_next_list. */
static int compare_list(const struct registry_site *site, const struct registry_index *list,
                        const struct url *to)
{
    int order = strncmp(site->origin, to->text, to->origin_len);

    if (order == 0 && site->origin[to->origin_len] != '\0')
        order = 1;
    return order != 0 ? order : strcmp(list->path, to->text + to->origin_len);
}

static void append_page(struct listing *l, const struct registry_site *site,
                        const struct registry_index *list, uint32_t page, int64_t changed_at,
                        const struct crawler_row *row)
{
    struct str *out = &l->call->request->reply.body;
    char path[PAGE_PATH_SIZE], url[LOC_MAX_CHARS + 1];
    struct json_crawler_page shown = {.url = url, .changed_at = changed_at, .status = JSON_NONE};

    scope_page_path(list->path, list->page_pattern, page, false, path);
    snprintf(url, sizeof url, "%s%s", site->origin, path);
    if (row != NULL) {
        shown.fetched_at = row->fetched_at;
        shown.status = row->status;
        shown.held_changed_at = row->held ? row->held_changed_at : 0;
        shown.stale_since = row->stale_since;
    }
    if (l->count++ > 0)
        str_append_char(out, ',');
    json_append_object(out, &json_crawler_page, &shown);
    str_clear(&l->next);
    str_append_format(&l->next, "%" PRIu32 ":%s%s", page, site->origin, list->path);
}

static void append_list(struct listing *l, const struct registry_site *site,
                        const struct registry_index *list)
{
    struct crawler_row rows[CRAWLERS_MAX];
    int order = l->behind.list.len == 0 ? 1 : compare_list(site, list, &l->behind.list);
    int64_t changed_at;

    if (order < 0 || !crawlers_reads(l->crawlers, list, l->crawler))
        return;
    for (size_t i = 0; i < list->page_count && !l->more; i++) {
        uint32_t page = list->pages[i];
        if (order == 0 && page <= l->behind.page)
            continue;
        size_t count = crawlers_page(l->crawlers, list->id, page, &changed_at, rows);
        const struct crawler_row *row = crawler_row_of(rows, count, l->crawler);
        if (changed_at == 0 || (l->stale_only && (row == NULL || row->stale_since == 0)))
            continue;
        if (l->count == l->limit)
            l->more = true;
        else
            append_page(l, site, list, page, changed_at, row);
    }
}

/* The index or urlset that the query names, by id or URL; NULL: every one that the token may see.
 * False, with the reply filled, if it does not exist, or both are named. */
static bool find_list(struct call *call, const struct registry *registry,
                      const struct registry_index **out)
{
    const char *index = call_parameter(call, "index"), *urlset = call_parameter(call, "urlset");
    const char *name = urlset != NULL ? urlset : index;
    enum list_kind kind = urlset != NULL ? LIST_URLSET : LIST_INDEX;

    *out = NULL;
    if (name == NULL)
        return true;
    if (index != NULL && urlset != NULL) {
        reply_problem(&call->request->reply, 400, "malformed-parameter", "urlset",
                      "name an index or a urlset, not both");
        return false;
    }
    *out = registry_list_by_id(registry, call_id(name));
    if (*out == NULL || (*out)->kind != kind)
        *out = registry_list_by_name(registry, name, kind, NULL);
    if (*out != NULL && grant_has_site(&call->request->grant, (*out)->site_id))
        return true;
    errors_reply_not_found(&call->request->reply, urlset != NULL ? "urlset" : "index");
    return false;
}

static void append_pages(struct listing *l, const struct registry *registry,
                         const struct registry_index *only)
{
    struct str *out = &l->call->request->reply.body;

    str_append_text(out, "{\"pages\":[");
    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];
        if (!grant_has_site(&l->call->request->grant, site->id))
            continue;
        struct registry_list_at at = {0};
        const struct registry_index *list;
        while (!l->more && (list = registry_next_list(site, &at)) != NULL)
            if (only == NULL || only == list)
                append_list(l, site, list);
    }
    str_append_text(out, "],\"next\":");
    str_append_json_text(out, l->more ? str_text(&l->next) : NULL);
    str_append_text(out, "}\n");
}

static enum catalogue_status pages_work(struct call *call, struct catalogue_view *view,
                                        const struct registry *registry)
{
    struct listing l = {.call = call, .crawlers = call->app->crawlers, .next = STR_INIT};
    const struct registry_index *only;

    crawlers_learn_others(call, view);
    l.limit = call_number(call, "limit");
    l.stale_only = call_number(call, "stale") == 1;
    if (!read_cursor(&l))
        return CATALOGUE_OK;
    if (l.crawlers != NULL)
        l.crawler = crawlers_find(l.crawlers, call->request->path_tail);
    if (l.crawler == 0) {
        errors_reply_not_found(&call->request->reply, "crawler");
        return CATALOGUE_OK;
    }
    if (!find_list(call, registry, &only))
        return CATALOGUE_OK;
    append_pages(&l, registry, only);
    bool failed = l.next.failed;
    str_done(&l.next);
    if (failed)
        return CATALOGUE_NO_MEMORY;
    reply_json(&call->request->reply, 200);
    return CATALOGUE_OK;
}

enum handled crawler_pages(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, pages_work);
}
