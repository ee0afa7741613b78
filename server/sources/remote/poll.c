/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One poll, of a list (list.c) or of a watched sitemap (check.c): its request and redirects, its
 * life, and its response. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/sources/child_store.h"
#include "server/sources/remote/run.h"

/* ---- the request -------------------------------------------------------------------------- */

static bool is_own_origin(const struct poll *p, const struct url *url)
{
    return p->source != NULL && url_same_origin(&p->source->upstream, url);
}

static bool may_request(void *context, const struct url *to)
{
    const struct poll *p = context;
    return remote_may_request(p->registry, p->site, p->source != NULL ? p->source->settings : NULL,
                              p->source != NULL ? &p->source->upstream : NULL, to);
}

static bool ends_with(const struct url *url, const char *end)
{
    size_t len = strlen(end), path_end = (size_t)url->origin_len + url->path_len;
    return url->path_len >= len && strncasecmp(url->text + path_end - len, end, len) == 0;
}

static void add_header(struct poll *p, const char *name, const char *value)
{
    size_t used = strlen(p->headers), room = sizeof p->headers - used;
    if (value == NULL)
        return;
    if ((size_t)snprintf(p->headers + used, room, "%s: %s\r\n", name, value) >= room)
        p->headers[used] = '\0';
}

void poll_begin_span(struct poll *p, const struct remote_ask *cause)
{
    trace_begin(p->remote->options.trace, cause != NULL ? &cause->cause : NULL, &p->span);
    p->end.name = p->list ? "poll list" : "poll sitemap";
    p->end.failed = true; /* until there is a response */
    p->end.site_id = !p->list ? p->record.site_id : p->source->settings->site_id;
}

static void end_span(struct poll *p)
{
    const struct registry_site *site =
        p->registry != NULL ? registry_site_by_id(p->registry, p->end.site_id) : NULL;
    p->end.site = site != NULL ? site->origin : NULL;
    p->end.source = p->source != NULL ? p->source->settings->name : NULL;
    trace_end(p->remote->options.trace, &p->span, &p->end);
}

void poll_headers(struct poll *p, const char *etag, const char *modified)
{
    char loop[64];
    p->headers[0] = '\0';
    /* Some servers would compress a .gz file again. */
    add_header(p, "Accept-Encoding", ends_with(&p->url, ".gz") ? "identity" : "gzip");
    snprintf(loop, sizeof loop, "sitemapd-%s", p->registry->epoch);
    /* a public look must get the response that crawlers get, also from this server */
    if (p->look == NULL)
        add_header(p, "CDN-Loop", loop);
    if (p->look == NULL && traceparent_is_set(&p->span.context))
        add_header(p, "traceparent", p->span.context.text);
    p->conditional = etag != NULL || modified != NULL;
    add_header(p, "If-None-Match", etag);
    add_header(p, "If-Modified-Since", modified);
}

void poll_read_head(struct poll *p, const struct fetch_reply *reply)
{
    char codings[CODINGS_TEXT];
    const char *coding = fetch_header_joined(reply, "Content-Encoding", codings, sizeof codings);
    if (p->headed)
        return;
    p->headed = true;
    if (p->list)
        upstream_content_encoding(p->upstream, coding);
    else
        sitemap_verifier_head(p->verifier, coding, fetch_header(reply, "Content-Type"));
}

/* A piece of 16 KiB may unpack to 16 MB, and must not take the thread from other sites. After a
 * piece that took long, its site pauses for one round of the loop, and as long again for each other
 * site with polls under way. */
#define LONG_NS       5000000u
#define REST_LEAST_NS 1000000u

int64_t poll_site_id(const struct poll *p)
{
    return p->list ? p->source->site_id : p->record.site_id;
}

static unsigned count_other_sites(const struct poll *p)
{
    unsigned others = 0;

    for (const struct poll *at = p->remote->polls; at != NULL; at = at->next) {
        bool seen = poll_site_id(at) == poll_site_id(p);
        for (const struct poll *older = p->remote->polls; older != at && !seen; older = older->next)
            seen = poll_site_id(older) == poll_site_id(at);
        others += !seen;
    }
    return others;
}

static bool site_rests(const struct remote *r, int64_t site_id)
{
    const struct site_rest *rest = site_table_find(&r->rests, site_id);
    return rest != NULL && rest->until_ns > clock_now_ns();
}

/* First drops pauses that have ended. If out of memory, the site does not pause. */
static void rest_site(struct remote *r, int64_t site_id, uint64_t now_ns, uint64_t until_ns)
{
    for (struct site_rest *rest = site_table_next(&r->rests, NULL), *next; rest != NULL;
         rest = next) {
        next = site_table_next(&r->rests, rest);
        if (rest->until_ns <= now_ns)
            site_table_remove(&r->rests, rest);
    }
    struct site_rest *rest = site_table_add(&r->rests, site_id, sizeof *rest);
    if (rest != NULL)
        rest->until_ns = until_ns;
}

/* A large list needs twice its size in memory, so large lists are read one after another. If one
 * takes too long the others continue, so that a slow origin cannot block them. */
#define LARGE_LIST_BYTES   (8u << 20)
#define LARGE_LIST_MOST_MS 45000

static bool waits_for_list(struct poll *p)
{
    if (!p->list || p->large_at_ms != 0 || upstream_count(p->upstream).bytes < LARGE_LIST_BYTES)
        return false;
    int64_t now_ms = clock_now_ms();
    if (p->waits_since_ms == 0)
        p->waits_since_ms = now_ms;
    for (const struct poll *at = p->remote->polls; at != NULL; at = at->next)
        if (at->large_at_ms != 0 && now_ms - at->large_at_ms < LARGE_LIST_MOST_MS &&
            now_ms - p->waits_since_ms < LARGE_LIST_MOST_MS)
            return true;
    p->large_at_ms = now_ms;
    return false;
}

static bool waits_for_others(void *context)
{
    struct poll *p = context;
    return site_rests(p->remote, poll_site_id(p)) || waits_for_list(p);
}

static bool read_piece(struct poll *p, const char *bytes, size_t len)
{
    uint64_t began_ns = clock_now_ns();
    bool good = p->list ? upstream_feed(p->upstream, bytes, len)
                        : sitemap_verifier_feed(p->verifier, bytes, len);
    uint64_t now_ns = clock_now_ns(), took_ns = now_ns - began_ns;
    if (took_ns >= LONG_NS)
        rest_site(p->remote, poll_site_id(p), now_ns,
                  now_ns + REST_LEAST_NS + took_ns * count_other_sites(p));
    return good;
}

static bool feed_body(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct poll *p = context;
    if (reply->status != 200)
        return true;
    poll_read_head(p, reply);
    if (read_piece(p, bytes, len))
        return true;
    p->decided = true;
    return false;
}

/* Whether to compress a copy that begins with this byte: its name says .gz, and a content coding or
 * the host map has unpacked it. */
static bool is_packed(const struct poll *p, char first)
{
    struct url url;
    return first != '\x1f' && url_split(p->record.loc, strlen(p->record.loc), &url) &&
           ends_with(&url, ".gz");
}

static void store_copy(void *context, const char *bytes, size_t len)
{
    struct poll *p = context;
    if (!p->copy_begun && len > 0) { /* once: a copy that begins later lacks a part */
        p->copy_begun = true;
        p->copy = child_copy_begin(p->remote->options.store, p->record.site_id, p->record.loc,
                                   is_packed(p, *bytes));
    }
    if (p->copy != NULL)
        child_copy_write(p->copy, bytes, len);
}

static bool make_reader(struct poll *p)
{
    const struct host_map *map = p->source != NULL ? p->source->settings->host_map : NULL;
    host_map_url(map, &p->url, &p->served_at);
    const struct sitemap_expect expect = {
        .now = p->now,
        .url = &p->served_at,
        .hosts = p->hosts,
        .host_count =
            p->site != NULL ? 1 + p->site->alias_host_count + p->site->cross_host_count : 0,
        .packing = sitemap_packing_of(p->url.text, (size_t)p->url.origin_len + p->url.path_len),
        .map = map,
    };
    upstream_free(p->upstream);
    sitemap_verifier_free(p->verifier);
    p->upstream = NULL;
    p->verifier = NULL;
    p->decided = p->headed = false;
    if (p->look == NULL) { /* drop the copy of a redirect's response; a public look makes none */
        child_copy_drop(p->copy);
        p->copy = NULL;
        p->copy_begun = false;
    }
    if (p->list)
        return (p->upstream = upstream_new(p->now, &p->source->upstream, map)) != NULL;
    p->verifier = sitemap_verifier_new(&expect);
    if (p->verifier != NULL && p->look == NULL && check_serves(p))
        sitemap_verifier_copy(p->verifier, store_copy, p);
    return p->verifier != NULL;
}

/* What a token may have created is requested like by anyone else: a source, or an entry on a host
 * that its own site declared. */
static bool may_use(const struct poll *p, const struct remote_site *site)
{
    if (p->source != NULL)
        return p->source->settings->managed;
    return p->site != NULL && strcmp(p->site->origin, site->origin) == 0;
}

const char *poll_connect(const struct poll *p, const struct url *url, bool *looks)
{
    const struct remote_bounds *bounds = &p->remote->plan->bounds;
    *looks = p->source != NULL && p->source->settings->public_check;
    if (is_own_origin(p, url) && p->source->settings->connect != NULL)
        return p->source->settings->connect;
    for (size_t i = 0; i < bounds->site_count; i++) {
        const struct remote_site *site = &bounds->sites[i];
        if (strlen(site->origin) == url->origin_len &&
            memcmp(site->origin, url->text, url->origin_len) == 0 && may_use(p, site)) {
            *looks = site->public_check;
            return site->connect;
        }
    }
    return NULL;
}

bool poll_request(struct poll *p)
{
    bool looks;
    struct remote *r = p->remote;
    /* crawlers have neither credentials nor `connect` */
    bool own = is_own_origin(p, &p->url) && p->look == NULL;
    bool own_server =
        p->source != NULL && p->look == NULL && url_same_server(&p->source->upstream, &p->url);
    /* A list belongs to no site, except if API or command line created its source for one. */
    const struct registry_site *site =
        p->list ? registry_site_by_id(p->registry, p->source->settings->site_id) : p->site;
    if (!make_reader(p))
        return false;
    r->plan->held++;
    remote_plan_free(p->plan);
    p->plan = r->plan;
    p->request = (struct fetch_request){
        .url = &p->url,
        .method = "GET",
        .agent = r->plan->bounds.agent,
        .headers = p->headers,
        .timeout_ms = POLL_TIMEOUT_MS,
        .stall_s = POLL_STALL_S,
        .stall_bytes = POLL_STALL_BYTES,
        .max_bytes = POLL_OTHER_MAX_BYTES,
        .connect = p->look != NULL ? NULL : poll_connect(p, &p->url, &looks),
        .guard = remote_guard(r->plan, p->source != NULL ? p->source->settings : NULL, site),
        .ca_more = own_server ? p->source->settings->ca_file : NULL,
        .credentials = own && p->url.https ? p->source->settings->credentials : NULL,
        .take = feed_body,
        .take_bytes = POLL_BODY_MAX_BYTES,
        .waits = waits_for_others,
        .context = p,
    };
    if (p->splits)
        return split_begin(p);
    p->transfer = fetch_loop_add(r->loop, &p->request, poll_done);
    return p->transfer != NULL;
}

/* ---- its life ------------------------------------------------------------------------------ */

static void unlink_poll(struct poll *p)
{
    struct poll **at = &p->remote->polls;
    while (*at != NULL && *at != p)
        at = &(*at)->next;
    if (*at == p) {
        *at = p->next;
        p->remote->polling--;
    }
}

void poll_free(struct poll *p)
{
    end_span(p);
    unlink_poll(p);
    if (p->source != NULL && p->source->polling == p)
        p->source->polling = NULL;
    upstream_free(p->upstream);
    sitemap_verifier_free(p->verifier);
    child_copy_drop(p->copy);
    split_end_free(p->ended);
    public_check_free(p->look);
    registry_unref(p->registry);
    remote_plan_free(p->plan);
    record_list_done(&p->texts);
    free(p->hosts);
    free(p);
}

struct poll *poll_new(struct remote *r, struct remote_host *host)
{
    struct poll *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->remote = r;
    p->host = host;
    p->now = run_now(r);
    p->began_ms = clock_now_ms();
    p->next = r->polls;
    r->polls = p;
    r->polling++;
    return p;
}

/* What a response says about the host counts for its own site: a tenant must not make a host rest
 * that other sites use. */
void poll_release_host(struct poll *p, enum host_outcome outcome, int64_t took_ms,
                       int64_t retry_after_s)
{
    struct host_part *part = run_part(p->host, poll_site_id(p));
    p->host->apart -= p->splits;
    if (!p->splits)
        host_end(&p->host->pace, clock_now_ms(), HOST_DROPPED, 0, -1);
    if (part == NULL)
        return;
    part->pace.running += p->splits;
    host_end(&part->pace, clock_now_ms(), outcome, took_ms, retry_after_s);
}

void poll_enter_host(struct poll *p)
{
    struct host_part *part = run_part(p->host, poll_site_id(p));
    host_begin(&p->host->pace, clock_now_ms(), p->remote->plan->bounds.rate);
    p->host->pace.running -= p->splits;
    p->host->apart += p->splits;
    if (part == NULL)
        return;
    host_begin(&part->pace, clock_now_ms(), p->remote->plan->bounds.rate);
    part->pace.running -= p->splits;
}

void poll_cancel(struct poll *p, const char *failure)
{
    struct remote *r = p->remote;
    if (p->transfer != NULL)
        fetch_loop_remove(r->loop, p->transfer);
    if (!p->scans)
        poll_release_host(p, HOST_DROPPED, 0, -1);
    if (p->ask != NULL)
        remote_request_fail(p->ask, failure);
    if (p->list)
        list_fail_requests(p, failure);
    else
        run_enqueue(r, p->host, p->record.site_id,
                    (struct due){p->record.id, (uint32_t)p->record.next_at, p->record.interval_s});
    if (p->scans ? list_scan_drop(p) : split_drop(p))
        unlink_poll(p);
    else
        poll_free(p);
}

/* ---- an answer ------------------------------------------------------------------------------ */

const char *poll_kept_header(const struct fetch_reply *reply, const char *name, size_t most)
{
    const char *value = fetch_header(reply, name);
    return value != NULL && *value && strlen(value) < most ? value : NULL;
}

void poll_count(struct remote *r, enum remote_result result, uint64_t bytes, int64_t took_ms)
{
    pthread_mutex_lock(&r->lock);
    r->counts.results[result]++;
    r->counts.bytes += bytes;
    pthread_mutex_unlock(&r->lock);
    histogram_add(&r->durations, &histogram_times, (uint64_t)took_ms * 1000000u);
}

/* The verdict on the body of a 200; NULL: none exists. */
static const struct sitemap_file *find_file(struct poll *p, const struct fetch_reply *reply,
                                            enum fetch_status *status, struct sitemap_file *file)
{
    if (p->list || reply->status != 200 || (*status != FETCH_OK && !p->decided))
        return NULL;
    if (p->splits ? split_found(p, file) : sitemap_verifier_finish(p->verifier, file))
        return file;
    *status = FETCH_NO_MEMORY;
    return NULL;
}

static void settle(struct poll *p, enum fetch_status status, struct fetch_reply *reply,
                   enum hop_verdict hop)
{
    struct child_verdict verdict;
    struct sitemap_file file;
    if (p->decided && status == FETCH_STOPPED)
        reply->status = 200; /* an incomplete answer, but enough of it was read */
    const struct sitemap_file *found = find_file(p, reply, &status, &file);
    const struct child_answer answer = {.fetch = status,
                                        .reply = reply,
                                        .conditional = p->conditional,
                                        .hop = hop,
                                        .file = found,
                                        .before = p->list ? NULL : &p->record,
                                        .decided = p->decided,
                                        .now = p->now};
    child_check(&answer, &verdict);
    if (!p->list)
        split_check(p, &verdict);
    if (p->look != NULL) {
        public_check_end(p, &verdict);
        return;
    }
    p->end.status = reply->status;
    p->end.problem = verdict.problem;
    p->end.failed = verdict.state != CHECK_GOOD;
    poll_release_host(p, verdict.host, reply->took_ms, verdict.retry_after_s);
    if (public_check_begin(p, &verdict, reply, found))
        return;
    if (p->list && list_settle(p, &verdict, reply))
        return;
    if (!p->list && !split_postpone(p, reply->got_bytes))
        check_settle(p, &verdict, reply, found);
    poll_free(p);
}

void poll_done(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct poll *p = context;
    struct url to = {0}; /* clang does not see that it is set if it is used */
    enum hop_verdict hop = HOP_END;
    p->transfer = NULL;
    if (status == FETCH_OK)
        hop = hop_next(reply->status, reply->redirect.data, &p->url, p->hops, may_request, p, &to);
    if (hop == HOP_FOLLOW) {
        p->url = to;
        p->hops++;
        if (poll_request(p))
            return;
        status = FETCH_NO_MEMORY;
        hop = HOP_END;
    }
    settle(p, status, reply, hop);
}
