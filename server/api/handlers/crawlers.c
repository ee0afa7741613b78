/* /v1/crawlers: which version of each page every crawler holds. From the ledger in memory; the
 * catalogue is asked for its registry alone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/crawlers/crawlers.h"
#include "server/crawlers/summary.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

#define DAY_SECONDS 86400

/* The site that the query names, by origin or id, or that the token is for; NULL: every site.
 * False, with the reply filled, where there is none. */
static bool find_site(struct call *call, const struct registry *registry,
                      const struct registry_site **out)
{
    const char *name = call_parameter(call, "site");
    const struct grant *grant = &call->request->grant;
    struct url origin;

    *out = grant->site_id != 0 ? registry_site_by_id(registry, grant->site_id) : NULL;
    if (name != NULL) {
        if (url_parse_origin(name, strlen(name), &origin) == RULE_OK)
            *out = registry_site_by_origin(registry, origin.text);
        else
            *out = registry_site_by_id(registry, call_id(name));
    }
    if ((name == NULL && grant->site_id == 0) ||
        (*out != NULL && grant_has_site(grant, (*out)->id)))
        return true;
    reply_problem(&call->request->reply, 404, rule_code_word(RULE_SITE_UNKNOWN), "site",
                  "is not a site of this catalogue");
    return false;
}

/* ---- GET /v1/crawlers ---------------------------------------------------------------------- */

static void append_days(struct str *out, int32_t today, const struct crawler_summary *summary)
{
    bool some = false;

    str_append_text(out, ",\"days\":[");
    for (int32_t i = 0; i < CRAWLERS_KEEP_DAYS; i++) {
        const struct crawler_day_sum *day = &summary->days[i];
        time_t at = (time_t)(today - (CRAWLERS_KEEP_DAYS - 1 - i)) * DAY_SECONDS;
        char text[16];
        struct tm utc;

        if (day->ok + day->not_modified + day->other + day->impostors == 0)
            continue;
        strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&at, &utc));
        str_append_format(out,
                          "%s{\"day\":\"%s\",\"ok\":%" PRIu64 ",\"not_modified\":%" PRIu64
                          ",\"other\":%" PRIu64 ",\"impostors\":%" PRIu64 "}",
                          some ? "," : "", text, day->ok, day->not_modified, day->other,
                          day->impostors);
        some = true;
    }
    str_append_char(out, ']');
}

static void append_summary(struct str *out, struct crawlers *crawlers,
                           const struct crawlers_summary *s, size_t at, int64_t now)
{
    const struct crawler_summary *summary = &s->of[at];
    const struct crawler_lags *lags = &summary->lags;
    bool lagged = crawler_lags_count(lags) > 0;

    str_append_text(out, "{\"name\":");
    str_append_json_text(out, crawlers_name(crawlers, at));
    str_append_format(out, ",\"verified\":%s",
                      crawlers_is_verified(crawlers, at) ? "true" : "null");
    json_append_time_member(out, "last_fetch_at", summary->last_fetch_at);
    json_append_time_member(out, "seen_up_to", crawler_seen_up_to(summary, now));
    str_append_format(out,
                      ",\"pages\":%" PRIu64 ",\"current\":%" PRIu64 ",\"stale\":%" PRIu64
                      ",\"never\":%" PRIu64,
                      summary->pages, summary->current, summary->stale, summary->never);
    json_append_time_member(out, "stale_since", summary->stale_since);
    if (lagged)
        str_append_format(out,
                          ",\"lag\":{\"p50_s\":%" PRIu32 ",\"p90_s\":%" PRIu32 ",\"max_s\":%" PRIu32
                          ",\"changes\":%" PRIu64 "}",
                          crawler_lags_percentile(lags, 50), crawler_lags_percentile(lags, 90),
                          lags->max_s, crawler_lags_count(lags));
    else
        str_append_text(out,
                        ",\"lag\":{\"p50_s\":null,\"p90_s\":null,\"max_s\":null,\"changes\":0}");
    append_days(out, (int32_t)(now / DAY_SECONDS), summary);
    str_append_char(out, '}');
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

    (void)view;
    if (!find_site(call, registry, &only))
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

/* A place in the list: behind this page of this index. */
struct behind {
    struct url index; /* len 0: from the first on */
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

/* "12:https://www.example.com/sitemap_index.xml" */
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
            url_parse(colon + 1, strlen(colon + 1), &l->behind.index, NULL) == RULE_OK)
            return true;
    }
    reply_problem(&l->call->request->reply, 400, "malformed-cursor", "after",
                  "is not the `next` of an earlier list");
    return false;
}

/* By origin, then path: the order of the registry. */
static int compare_index(const struct registry_site *site, const struct registry_index *index,
                         const struct url *to)
{
    int order = strncmp(site->origin, to->text, to->origin_len);

    if (order == 0 && site->origin[to->origin_len] != '\0')
        order = 1;
    return order != 0 ? order : strcmp(index->path, to->text + to->origin_len);
}

static void append_page(struct listing *l, const struct registry_site *site,
                        const struct registry_index *index, uint32_t page, int64_t changed_at,
                        const struct crawler_row *row)
{
    struct str *out = &l->call->request->reply.body;
    char path[PAGE_PATH_SIZE];

    scope_page_path(index->path, index->page_pattern, page, false, path);
    str_append_text(out, l->count > 0 ? ",{\"url\":" : "{\"url\":");
    json_append_url(out, site->origin, path);
    json_append_time_member(out, "fetched_at", row != NULL ? row->fetched_at : 0);
    if (row != NULL)
        str_append_format(out, ",\"status\":%u", (unsigned)row->status);
    else
        str_append_text(out, ",\"status\":null");
    json_append_time_member(out, "held_changed_at",
                            row != NULL && row->held ? row->held_changed_at : 0);
    json_append_time_member(out, "changed_at", changed_at);
    json_append_time_member(out, "stale_since", row != NULL ? row->stale_since : 0);
    str_append_char(out, '}');
    l->count++;
    str_clear(&l->next);
    str_append_format(&l->next, "%" PRIu32 ":%s%s", page, site->origin, index->path);
}

static void append_index(struct listing *l, const struct registry_site *site,
                         const struct registry_index *index)
{
    struct crawler_row rows[CRAWLERS_MAX];
    int order = l->behind.index.len == 0 ? 1 : compare_index(site, index, &l->behind.index);
    int64_t changed_at;

    if (order < 0 || !crawlers_reads(l->crawlers, index, l->crawler))
        return;
    for (size_t i = 0; i < index->page_count && !l->more; i++) {
        uint32_t page = index->pages[i];
        if (order == 0 && page <= l->behind.page)
            continue;
        size_t count = crawlers_page(l->crawlers, index->id, page, &changed_at, rows);
        const struct crawler_row *row = crawler_row_of(rows, count, l->crawler);
        if (l->stale_only && (row == NULL || row->stale_since == 0))
            continue;
        if (l->count == l->limit)
            l->more = true;
        else
            append_page(l, site, index, page, changed_at, row);
    }
}

/* The index that the query names, by id or URL; NULL: every one that the token may see. False, with
 * the reply filled, where there is none. */
static bool find_index(struct call *call, const struct registry *registry,
                       const struct registry_index **out)
{
    const char *name = call_parameter(call, "index");

    *out = NULL;
    if (name == NULL)
        return true;
    *out = registry_index_by_id(registry, call_id(name));
    if (*out == NULL)
        *out = registry_index_by_name(registry, name, NULL);
    if (*out != NULL && grant_has_site(&call->request->grant, (*out)->site_id))
        return true;
    errors_reply_not_found(&call->request->reply, "index");
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
        for (size_t k = 0; k < site->index_count && !l->more; k++)
            if (only == NULL || only == &site->indexes[k])
                append_index(l, site, &site->indexes[k]);
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
    uint64_t stale;

    (void)view;
    if (!call_limit(call, &l.limit) || !call_number(call, "stale", 0, 1, 0, &stale) ||
        !read_cursor(&l))
        return CATALOGUE_OK;
    l.stale_only = stale == 1;
    if (l.crawlers != NULL)
        l.crawler = crawlers_find(l.crawlers, call->request->path_tail);
    if (l.crawler == 0) {
        errors_reply_not_found(&call->request->reply, "crawler");
        return CATALOGUE_OK;
    }
    if (!find_index(call, registry, &only))
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
