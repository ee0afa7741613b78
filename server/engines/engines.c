/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The schedule of each engine is in the catalogue: when each site was last requested, and when it
 * is due. A visit takes the most overdue site, requests its sitemaps, submits the indexes that the
 * engine does not list, and writes the result. So a restart sends no early requests, and the number
 * a day is bounded: four for each site, and one more for each submission.
 *
 * If an engine refuses the credentials or asks to wait, no site is visited until that is over. In a
 * shared catalogue, one node sends the requests. */
#include "server/engines/engines.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/address_range.h"
#include "server/base/clock.h"
#include "server/base/thread.h"
#include "server/client/client.h"
#include "server/client/loop.h"
#include "server/engines/engine.h"
#include "server/engines/report/engine_report.h"
#include "server/log/log.h"
#include "server/rules/entry.h"

#define LEAD         "engines"
#define LOOK_MS      1000
#define PACE_MS      1000 /* between two requests to an engine */
#define TIMEOUT_MS   30000
#define ANSWER_BYTES (16u << 20)
/* lowest average for a response: a sitemap has about 25 for each value */
#define VALUE_BYTES      16u
#define ASK_SECONDS      (6 * 3600)
#define SENT_SECONDS     3600  /* sooner after a submission */
#define REFUSED_SECONDS  900   /* or until somebody has replaced the key */
#define REJECTED_SECONDS 3600  /* or added the account to the property */
#define AGAIN_SECONDS    86400 /* when to submit again if it is still not listed */
#define BUSY_MIN_MS      60000
#define FAILED_MIN_MS    (15 * 60 * 1000)
#define CHILDREN_MOST    200u /* with errors or warnings, of an index */
/* Further requests of one visit: a site must not delay the others for long. */
#define SUBMIT_MOST   20u
#define DETAIL_MOST   20u
#define EMPTY_SECONDS 60  /* how soon the first entries of a site are noticed */
#define LOST_SECONDS  900 /* pause if results cannot be written */

enum { WRITE_ASKED, WRITE_DONE, WRITE_FAILED };

struct engines {
    struct config *config; /* a reference */
    struct catalogue *catalogue;
    struct engine_counts *counts; /* by engine_place */
    struct address_guard guard;
    struct fetch_loop *loop;
    struct thread thread;
    size_t count;
    struct engine engines[ENGINE_COUNT];
    /* The current transfer. */
    bool transferred;
    enum fetch_status status;
    struct fetch_reply *reply;
    /* The current write; the writer's thread sets the result. Under the lock, so that it has woken
     * the loop before the result is seen, after which the loop may be freed. */
    pthread_mutex_t lock;
    int written;
};

static int64_t unix_now(void)
{
    return clock_unix_ms() / 1000;
}

/* ---- a request ---- */

enum engine_state engine_fail(struct engine *e, enum engine_state state, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->why, sizeof e->why, format, args);
    va_end(args);
    return state;
}

static bool is_stopping(const struct engines *all)
{
    return thread_stops(&all->thread);
}

/* Waits; false: the server stops. */
static bool wait_until(struct engine *e, int64_t ready_ms)
{
    int64_t now = clock_now_ms();
    while (now < ready_ms && !is_stopping(e->all)) {
        fetch_loop_poll(e->all->loop, (int)(ready_ms - now));
        now = clock_now_ms();
    }
    return !is_stopping(e->all);
}

static void on_transferred(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct engines *all = ((struct engine *)context)->all;
    all->transferred = true;
    all->status = status;
    *all->reply = *reply;
    *reply = (struct fetch_reply){.status = 0}; /* the contents were moved out */
}

/* Whether the URL may be requested: plain HTTP only to an address in allow_address. */
static bool engine_may_request(struct engine *e, const struct url *url)
{
    char host[64];
    if (url->https)
        return true;
    snprintf(host, sizeof host, "%.*s", url->host_len, url->text + url->host_at);
    return address_ranges_hold(e->all->guard.allow, e->all->guard.allow_count, host);
}

static enum engine_state classify_status(struct engine *e)
{
    unsigned status = e->reply.status;
    int64_t now = unix_now();
    if (status >= 200 && status < 300)
        return ENGINE_OK;
    if (status == 401)
        return engine_fail(e, ENGINE_REFUSED, "the credentials were rejected (401)");
    if (status == 403 || status == 404)
        return engine_fail(e, ENGINE_FORBIDDEN, "access denied or not found: HTTP status %u",
                           status);
    if (status == 429 || (status == 503 && fetch_retry_after(&e->reply, now) > 0))
        return engine_fail(e, ENGINE_BUSY, "its rate limit is exceeded (%u)", status);
    return engine_fail(e, ENGINE_FAILED, "HTTP status %u", status);
}

/* Sends a request and waits for the response. False: the server stops, or out of memory. */
static bool transfer(struct engine *e, const struct fetch_request *request)
{
    struct engines *all = e->all;
    all->transferred = false;
    all->reply = &e->reply;
    struct fetch_transfer *t = fetch_loop_add(all->loop, request, on_transferred);
    while (t != NULL && !all->transferred && !is_stopping(all))
        fetch_loop_poll(all->loop, LOOK_MS);
    if (t != NULL && !all->transferred)
        fetch_loop_remove(all->loop, t);
    return all->transferred;
}

enum engine_state engine_send(struct engine *e, const struct engine_request *request)
{
    struct str headers = STR_INIT, target = STR_INIT;
    const struct url *url = request->url != NULL ? request->url : &e->endpoint;
    fetch_reply_done(&e->reply);
    e->reply = (struct fetch_reply){.status = 0};
    if (!engine_may_request(e, url))
        return engine_fail(
            e, ENGINE_FAILED,
            "%.*s is plain http, and [fetch] allow_address does not contain its address",
            url->origin_len, url->text);
    if (!wait_until(e, e->ready_ms))
        return ENGINE_WAITING;
    str_append_text(&headers, request->headers != NULL ? request->headers : "");
    if (request->type != NULL)
        str_append_format(&headers, "Content-Type: %s\r\n", request->type);
    /* append to the endpoint's path, with or without a slash at its end */
    if (request->target != NULL)
        str_append_format(&target, "%.*s%s",
                          url->path_len - (url->text[url->origin_len + url->path_len - 1] == '/'),
                          url->text + url->origin_len, request->target);
    const char *body = request->body;
    if (body == NULL && strcmp(request->method, "PUT") == 0)
        body = ""; /* an empty body with Content-Length: 0 */
    const struct fetch_request fetch = {
        .url = url,
        .target = target.len > 0 ? target.data : NULL,
        .method = request->method,
        .agent = "sitemapd/" SITEMAPD_VERSION,
        .headers = headers.len > 0 ? headers.data : NULL,
        .timeout_ms = TIMEOUT_MS,
        .max_bytes = ANSWER_BYTES,
        .guard = &e->all->guard,
        .body = body,
        .give_bytes = body != NULL ? strlen(body) : 0,
        .context = e,
    };
    bool answered = !headers.failed && !target.failed && transfer(e, &fetch);
    e->ready_ms = clock_now_ms() + PACE_MS;
    if (headers.data != NULL)
        explicit_bzero(headers.data, headers.len);
    if (target.data != NULL)
        explicit_bzero(target.data, target.len);
    str_done(&headers);
    str_done(&target);
    if (!answered)
        return is_stopping(e->all) ? ENGINE_WAITING
                                   : engine_fail(e, ENGINE_FAILED, "out of memory");
    return e->all->status == FETCH_OK ? classify_status(e)
                                      : engine_fail(e, ENGINE_FAILED, "%s", e->reply.why);
}

/* Rejects a response of empty values, which would need a hundred times its size in memory. */
static bool is_dense(const struct str *body)
{
    size_t values = 0;
    for (size_t i = 0; i < body->len; i++)
        values += body->data[i] == '{' || body->data[i] == '[' || body->data[i] == ',';
    return values > 1000 + body->len / VALUE_BYTES;
}

json_t *engine_answer(struct engine *e)
{
    json_t *answer =
        e->reply.cut || is_dense(&e->reply.body)
            ? NULL
            : json_loadb(str_text(&e->reply.body), e->reply.body.len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(answer))
        return answer;
    json_decref(answer);
    engine_fail(e, ENGINE_FAILED, "the answer (%u) is not a JSON object", e->reply.status);
    return NULL;
}

/* ---- storage ---- */

struct kept {
    int64_t site_id;
    struct engine_site site; /* without `why` */
    struct engine_list list;
    bool found;
};

static void find_kept_site(void *context, const struct engine_site *site)
{
    struct kept *k = context;
    if (site->site_id != k->site_id)
        return;
    k->site = *site;
    k->found = true;
}

static void add_kept(void *context, const struct engine_sitemap *sitemap)
{
    struct kept *k = context;
    engine_list_add(&k->list, sitemap);
}

static const struct engine_sitemap *find_loc(const struct engine_list *list, const char *loc)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].loc, loc) == 0)
            return &list->at[i];
    return NULL;
}

static void on_written(void *context, struct change_result *result)
{
    struct engines *all = context;
    pthread_mutex_lock(&all->lock);
    all->written = result->status == CATALOGUE_OK ? WRITE_DONE : WRITE_FAILED;
    fetch_loop_wake(all->loop);
    pthread_mutex_unlock(&all->lock);
}

static int write_state(struct engines *all)
{
    pthread_mutex_lock(&all->lock);
    int written = all->written;
    pthread_mutex_unlock(&all->lock);
    return written;
}

/* Waits even if the server stops, since the writer uses `all`. After a failure (false), visits
 * pause, or the same request would be repeated at once. */
static bool write_result(struct engine *e, const struct change_engine *write)
{
    struct engines *all = e->all;
    const struct change change = {.kind = CHANGE_ENGINE, .engine = *write, .context = all};
    all->written = WRITE_ASKED;
    catalogue_submit(all->catalogue, &change, on_written);
    int written;
    while ((written = write_state(all)) == WRITE_ASKED)
        fetch_loop_poll(all->loop, LOOK_MS);
    if (written == WRITE_DONE)
        return true;
    e->paused_until = unix_now() + LOST_SECONDS;
    log_event(LOG_LEVEL_WARNING, "engine-not-kept",
              "%s: its results cannot be stored in the catalogue; the next query is in %d minutes",
              e->name, LOST_SECONDS / 60);
    return false;
}

/* Sums for metrics and /readyz, which do not read the catalogue. */
static void count_states(struct engine *e)
{
    struct engine_counts *c = &e->all->counts[engine_place(e->name)];
    struct catalogue_view *view;
    struct engine_sums sums;
    if (catalogue_view_begin(e->all->catalogue, &view) != CATALOGUE_OK)
        return;
    enum catalogue_status status = engine_sums_read(view, e->name, NULL, &sums);
    catalogue_view_end(view);
    if (status != CATALOGUE_OK)
        return;
    atomic_store(&c->errors, sums.sum.errors);
    atomic_store(&c->warnings, sums.sum.warnings);
    atomic_store(&c->read_at, sums.sum.read_at);
    atomic_store(&c->refused, sums.states[ENGINE_REFUSED] > 0);
    atomic_store(&c->up, sums.states[ENGINE_OK] + sums.states[ENGINE_FORBIDDEN] > 0 &&
                             sums.states[ENGINE_REFUSED] + sums.states[ENGINE_FAILED] == 0);
    for (size_t i = 0; i < ENGINE_STATES; i++)
        atomic_store(&c->sites[i], sums.states[i]);
}

/* ---- a site ---- */

/* The engine's name for the site: the property that is configured for its host or origin. */
static void property_of(const struct engine *e, const struct registry_site *site, struct str *out)
{
    const struct url *origin = &site->origin_url;
    const char *host = origin->text + origin->host_at;
    for (size_t i = 0; i < e->config->property_count; i++) {
        const char *property = e->config->properties[i];
        bool domain = strncmp(property, "sc-domain:", 10) == 0;
        const char *name = domain ? property + 10 : property;
        size_t len = strlen(name), host_len = origin->host_len;
        size_t origin_len = strlen(site->origin);
        bool fits = domain ? host_len >= len && memcmp(host + host_len - len, name, len) == 0 &&
                                 (host_len == len || host[host_len - len - 1] == '.')
                           : strncmp(name, site->origin, origin_len) == 0 &&
                                 (name[origin_len] == '\0' || strcmp(name + origin_len, "/") == 0);
        if (fits) {
            str_append_text(out, property);
            str_append_text(out, domain || name[len - 1] == '/' ? "" : "/");
            return;
        }
    }
    str_append_format(out, "%s/", site->origin);
}

struct visit {
    struct engine *e;
    const struct registry_site *site;
    struct str property;
    struct kept kept;
    struct engine_list list; /* the result to write */
    bool listed; /* the engine returned its list, which is written even if a later step fails */
    unsigned sent, detailed;
    int64_t now;
};

/* Merges the engine's list with the times of this server's submissions. */
static void merge_list(struct visit *v, const struct engine_list *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        struct engine_sitemap sitemap = answer->at[i];
        const struct engine_sitemap *before = find_loc(&v->kept.list, sitemap.loc);
        if (find_loc(&v->list, sitemap.loc) != NULL)
            continue;
        sitemap.sent_at = before != NULL ? before->sent_at : 0;
        engine_list_add(&v->list, &sitemap);
    }
}

/* Adds the sitemaps of this index that have errors or warnings. */
static void merge_children(struct visit *v, const char *parent, const struct engine_list *from)
{
    size_t added = 0;
    for (size_t i = 0; i < from->count && added < CHILDREN_MOST; i++) {
        const struct engine_sitemap *child = &from->at[i];
        if (child->errors + child->warnings == 0 || strcmp(child->parent, parent) != 0 ||
            find_loc(&v->list, child->loc) != NULL)
            continue;
        engine_list_add(&v->list, child);
        added++;
    }
}

/* Finds the broken sitemaps of an index, if it has any. Without a response, the former ones stay;
 * only if the engine refuses or asks to wait does the visit end. */
static enum engine_state add_children(struct visit *v, const char *parent)
{
    struct engine_list answer = {.bad_only = true};
    enum engine_state state = v->e->kind->list(v->e, str_text(&v->property), parent, &answer);
    v->detailed++;
    merge_children(v, parent, state == ENGINE_OK ? &answer : &v->kept.list);
    engine_list_done(&answer);
    return state == ENGINE_FAILED || state == ENGINE_FORBIDDEN ? ENGINE_OK : state;
}

/* Whether to submit the index: once, and again only if the engine no longer lists it, or has not
 * listed it for a day. */
static bool is_to_be_sent(const struct visit *v, const char *loc)
{
    const struct engine_sitemap *before = find_loc(&v->kept.list, loc);
    return before == NULL || before->listed || before->sent_at == 0 || before->sent_at > v->now ||
           v->now - before->sent_at >= AGAIN_SECONDS;
}

/* Does not submit an empty index, which is an error to engines. */
static enum engine_state submit_index(struct visit *v, const struct registry_index *index,
                                      const char *loc)
{
    struct engine_sitemap sitemap = {.loc = loc, .parent = "", .pending = true, .sent_at = v->now};
    const struct engine_sitemap *before = find_loc(&v->kept.list, loc);
    enum engine_state state = ENGINE_OK;
    if (find_loc(&v->list, loc) != NULL || index->page_count == 0 ||
        v->list.count == ENGINE_SITEMAPS_MAX) /* no room to record the submission */
        return state;
    if (is_to_be_sent(v, loc) && v->sent == SUBMIT_MOST)
        return state; /* left to the next visit */
    if (is_to_be_sent(v, loc)) {
        state = v->e->kind->submit(v->e, str_text(&v->property), loc);
        v->sent += state == ENGINE_OK;
        if (state == ENGINE_OK)
            log_event(LOG_LEVEL_INFO, "engine-submitted", "%s: %s", v->e->name, loc);
    } else if (before != NULL) {
        sitemap.sent_at = before->sent_at;
    }
    if (state == ENGINE_OK)
        engine_list_add(&v->list, &sitemap);
    return state;
}

/* After a failed submission, keeps the record of an earlier one. */
static void keep_submitted(struct visit *v, const char *loc)
{
    const struct engine_sitemap *before = find_loc(&v->kept.list, loc);
    if (before != NULL && before->sent_at != 0 && find_loc(&v->list, loc) == NULL) {
        struct engine_sitemap sitemap = {
            .loc = loc, .parent = "", .pending = true, .sent_at = before->sent_at};
        engine_list_add(&v->list, &sitemap);
    }
}

static bool is_index(const struct visit *v, const char *loc)
{
    const char *path = loc + strlen(v->site->origin);
    for (size_t i = 0; i < v->site->index_count; i++)
        if (strcmp(v->site->indexes[i].path, path) == 0)
            return true;
    return false;
}

static enum engine_state query_site(struct visit *v)
{
    struct engine_list answer = {.origin = v->site->origin};
    struct str loc = STR_INIT;
    enum engine_state state = v->e->kind->list(v->e, str_text(&v->property), NULL, &answer);
    v->listed = state == ENGINE_OK;
    if (v->listed)
        merge_list(v, &answer);
    size_t listed = v->list.count;
    for (size_t i = 0; i < v->site->index_count && v->listed; i++) {
        str_clear(&loc);
        str_append_format(&loc, "%s%s", v->site->origin, v->site->indexes[i].path);
        if (state == ENGINE_OK)
            state = submit_index(v, &v->site->indexes[i], str_text(&loc));
        if (state != ENGINE_OK)
            keep_submitted(v, str_text(&loc));
    }
    for (size_t i = 0; i < listed && state == ENGINE_OK && v->detailed < DETAIL_MOST; i++)
        if (v->list.at[i].errors + v->list.at[i].warnings > 0 && is_index(v, v->list.at[i].loc))
            state = add_children(v, v->list.at[i].loc);
    bool failed = answer.failed || v->list.failed || v->property.failed || loc.failed;
    engine_list_done(&answer);
    str_done(&loc);
    v->listed &= !failed;
    return failed ? engine_fail(v->e, ENGINE_FAILED, "out of memory") : state;
}

static struct engine_day day_of(const struct visit *v)
{
    struct engine_day day = {.day = (int32_t)(v->now / DAY_SECONDS)};
    for (size_t i = 0; i < v->list.count; i++) {
        const struct engine_sitemap *s = &v->list.at[i];
        if (*s->parent != '\0' || !s->listed)
            continue;
        day.sitemaps++;
        day.errors += s->errors;
        day.warnings += s->warnings;
        day.urls += s->urls;
        if (s->read_at != 0 && (day.read_at == 0 || s->read_at < day.read_at))
            day.read_at = s->read_at;
    }
    return day;
}

/* Seconds until the next visit of the site. If the engine refuses or asks to wait, all sites wait.
 */
static int64_t wait_of(struct visit *v, enum engine_state state, uint32_t failures)
{
    struct engine *e = v->e;
    int64_t wait = v->sent > 0 ? SENT_SECONDS : ASK_SECONDS;
    e->busy = state == ENGINE_BUSY ? e->busy + 1 : 0;
    if (state == ENGINE_REFUSED)
        wait = REFUSED_SECONDS;
    if (state == ENGINE_FORBIDDEN)
        wait = REJECTED_SECONDS;
    if (state == ENGINE_BUSY)
        wait = again_wait_ms(e->busy - 1, BUSY_MIN_MS, &e->reply, v->now) / 1000;
    if (state == ENGINE_FAILED)
        wait = again_wait_ms(failures, FAILED_MIN_MS, &e->reply, v->now) / 1000;
    if (state == ENGINE_REFUSED || state == ENGINE_BUSY)
        e->paused_until = v->now + wait;
    return wait;
}

static void log_state(const struct visit *v, enum engine_state state)
{
    bool was_good = !v->kept.found || v->kept.site.state == ENGINE_OK;
    if (state != ENGINE_OK && (was_good || v->kept.site.state != state))
        log_event(LOG_LEVEL_WARNING, "engine-failed", "%s: %s: %s", v->e->name, v->site->origin,
                  v->e->why);
    else if (state == ENGINE_OK && !was_good)
        log_event(LOG_LEVEL_INFO, "engine-recovered", "%s: %s", v->e->name, v->site->origin);
}

/* Sums up all sites, with this visit's result for its own; and finds a removed site, if any. */
static void read_others(struct visit *v, struct engine_day *all, int64_t *gone)
{
    struct catalogue_view *view;
    struct engine_day own = {.day = 0}, found = day_of(v);
    *all = (struct engine_day){.day = 0};
    *gone = 0;
    if (catalogue_view_begin(v->e->all->catalogue, &view) != CATALOGUE_OK)
        return;
    if (catalogue_view_engine_sum(view, v->e->name, 0, all) == CATALOGUE_OK &&
        catalogue_view_engine_sum(view, v->e->name, v->site->id, &own) == CATALOGUE_OK &&
        catalogue_view_engine_removed(view, v->e->name, gone) == CATALOGUE_OK) {
        all->day = found.day;
        all->sitemaps += found.sitemaps - own.sitemaps;
        all->errors += found.errors - own.errors;
        all->warnings += found.warnings - own.warnings;
        all->urls += found.urls - own.urls;
    }
    catalogue_view_end(view);
}

static void record(struct visit *v, enum engine_state state)
{
    const struct engine_site *before = &v->kept.site;
    uint32_t failures = state == ENGINE_OK ? 0 : before->failures + 1;
    struct change_engine write = {
        .engine = v->e->name,
        .site = {.site_id = v->site->id,
                 .state = state,
                 .why = state == ENGINE_OK ? "" : v->e->why,
                 .asked_at = v->now,
                 .next_at = v->now + wait_of(v, state, before->failures),
                 .good_at = state == ENGINE_OK ? v->now : before->good_at,
                 .failures = failures},
        .replaces = v->listed,
        .count = v->list.count,
        .sitemaps = v->list.at,
        .day = day_of(v),
    };
    if (v->listed)
        read_others(v, &write.all, &write.gone);
    bool written = write_result(v->e, &write);
    count_states(v->e);
    if (written)
        log_state(v, state); /* after the API and the metrics show it */
}

/* Visits a site. False: without result; it stays due. */
static bool visit(struct engine *e, const struct registry_site *site)
{
    struct visit v = {.e = e, .site = site, .kept = {.site_id = site->id}, .now = unix_now()};
    struct catalogue_view *view;
    if (catalogue_view_begin(e->all->catalogue, &view) != CATALOGUE_OK)
        return false;
    enum catalogue_status status =
        catalogue_view_engine_sites(view, e->name, find_kept_site, &v.kept);
    if (status == CATALOGUE_OK)
        status = catalogue_view_engine_sitemaps(view, e->name, site->id, add_kept, &v.kept);
    catalogue_view_end(view);
    e->why[0] = '\0';
    property_of(e, site, &v.property);
    enum engine_state state =
        status == CATALOGUE_OK && !v.kept.list.failed ? query_site(&v) : ENGINE_WAITING;
    if (state != ENGINE_WAITING) /* ENGINE_WAITING: the server stops */
        record(&v, state);
    engine_list_done(&v.kept.list);
    engine_list_done(&v.list);
    str_done(&v.property);
    return state != ENGINE_WAITING;
}

/* ---- the schedule ---- */

struct due {
    const struct registry *registry;
    int64_t now, *next; /* by site; 0: never visited */
};

static void record_next(void *context, const struct engine_site *site)
{
    struct due *due = context;
    const struct registry_site *found = registry_site_by_id(due->registry, site->site_id);
    /* If the clock was set back, the site must not wait for long. */
    if (found != NULL)
        due->next[found - due->registry->sites] =
            site->next_at > due->now + DAY_SECONDS ? due->now : site->next_at;
}

static bool has_entries(const struct registry_site *site)
{
    for (size_t i = 0; i < site->index_count; i++)
        if (site->indexes[i].page_count > 0)
            return true;
    return false;
}

/* The most overdue site; NULL: none is due until `*idle_until`. */
static const struct registry_site *find_due(struct engine *e, struct catalogue_view *view,
                                            const struct registry *registry, int64_t *idle_until)
{
    const struct registry_site *found = NULL;
    struct due due = {registry, unix_now(), calloc(registry->site_count + 1, sizeof(int64_t))};
    int64_t first = due.now + ASK_SECONDS;
    bool empty = false; /* a site has no entries yet */
    bool known = due.next != NULL &&
                 catalogue_view_engine_sites(view, e->name, record_next, &due) == CATALOGUE_OK;
    if (!known)
        first = due.now + EMPTY_SECONDS;
    if (known)
        for (size_t i = 0; i < registry->site_count; i++) {
            if (due.next[i] == 0 && !has_entries(&registry->sites[i])) {
                empty = true;
            } else if (due.next[i] < first) {
                first = due.next[i];
                found = &registry->sites[i];
            }
        }
    free(due.next);
    *idle_until = empty && first > due.now + EMPTY_SECONDS ? due.now + EMPTY_SECONDS : first;
    return first <= due.now ? found : NULL;
}

/* Visits one site if any is due. True: there may be more. */
static bool query_due_site(struct engine *e)
{
    struct catalogue_view *view;
    struct catalogue_revisions now;
    struct registry *registry = NULL;
    const struct registry_site *site = NULL;
    if (unix_now() < e->paused_until && e->paused_until <= unix_now() + DAY_SECONDS)
        return false;
    if (catalogue_view_begin(e->all->catalogue, &view) != CATALOGUE_OK)
        return false;
    enum catalogue_status status = catalogue_view_revisions(view, &now);
    bool idle = e->idle_registry == now.registry_revision && unix_now() < e->idle_until &&
                e->idle_until <= unix_now() + ASK_SECONDS;
    if (status == CATALOGUE_OK && !idle)
        status = catalogue_view_registry(view, &registry);
    if (status == CATALOGUE_OK && !idle) {
        site = find_due(e, view, registry, &e->idle_until);
        e->idle_registry = now.registry_revision;
    }
    catalogue_view_end(view);
    bool more = site != NULL && visit(e, site);
    registry_unref(registry);
    return more;
}

static void engines_run(void *context)
{
    struct engines *all = context;
    for (size_t i = 0; i < all->count; i++)
        count_states(&all->engines[i]);
    while (!is_stopping(all)) {
        bool more = false;
        if (catalogue_leads(all->catalogue, LEAD))
            for (size_t i = 0; i < all->count && !is_stopping(all); i++)
                more |= query_due_site(&all->engines[i]);
        if (!more)
            fetch_loop_poll(all->loop, LOOK_MS);
    }
}

/* ---- start and stop ---- */

static bool add_engine(struct engines *all, const struct config_engine *config)
{
    static const struct engine_kind *const kinds[ENGINE_COUNT] = {&engine_google, &engine_bing};
    size_t place = engine_place(config->named.name);
    struct engine *e = &all->engines[all->count];
    if (place == ENGINE_COUNT)
        return true;
    const struct engine_kind *kind = kinds[place];
    const char *endpoint = config->endpoint != NULL ? config->endpoint : kind->base;
    *e = (struct engine){.all = all, .config = config, .kind = kind, .name = engine_names[place]};
    all->count++;
    atomic_store(&all->counts[place].configured, true);
    return url_parse(endpoint, strlen(endpoint), &e->endpoint, NULL) == RULE_OK;
}

static bool add_engines(struct engines *all)
{
    bool good = address_guard_init(&all->guard, all->config->allow_addresses);
    for (size_t i = 0; i < all->config->engine_count && good; i++)
        good = add_engine(all, &all->config->engines[i]);
    all->loop = good ? fetch_loop_new() : NULL;
    return all->loop != NULL;
}

static void free_engines(struct engines *all)
{
    fetch_loop_free(all->loop);
    for (size_t i = 0; i < all->count; i++) {
        struct engine *e = &all->engines[i];
        if (e->token.data != NULL)
            explicit_bzero(e->token.data, e->token.len);
        str_done(&e->token);
        fetch_reply_done(&e->reply);
        atomic_store(&all->counts[engine_place(e->name)].configured, false);
    }
    address_guard_done(&all->guard);
    config_unref(all->config);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

struct engines *engines_start(struct config *config, struct catalogue *catalogue,
                              struct engine_counts *counts)
{
    struct engines *all = config->engine_count > 0 ? calloc(1, sizeof *all) : NULL;
    if (all == NULL)
        return NULL;
    pthread_mutex_init(&all->lock, NULL);
    all->config = config_ref(config);
    all->catalogue = catalogue;
    all->counts = counts;
    if (add_engines(all) && thread_start(&all->thread, "engines", engines_run, all))
        return all;
    free_engines(all);
    log_event(LOG_LEVEL_ERROR, "engine-failed", "search engines are not queried: out of memory");
    return NULL;
}

static bool same_engine(const struct config_engine *a, const struct config_engine *b)
{
    return text_equal(a->named.name, b->named.name) &&
           text_equal(a->credentials_file, b->credentials_file) &&
           text_equal(a->api_key_file, b->api_key_file) && text_equal(a->endpoint, b->endpoint) &&
           texts_equal(a->properties, b->properties);
}

bool engines_are_same(const struct config *a, const struct config *b)
{
    bool same =
        a->engine_count == b->engine_count && texts_equal(a->allow_addresses, b->allow_addresses);
    for (size_t i = 0; same && i < a->engine_count; i++)
        same = same_engine(&a->engines[i], &b->engines[i]);
    return same;
}

void engines_stop(struct engines *all)
{
    if (all == NULL)
        return;
    thread_end(&all->thread);
    fetch_loop_wake(all->loop);
    thread_join(&all->thread);
    catalogue_lead_end(all->catalogue, LEAD);
    free_engines(all);
}
