/* One poll: the request and its redirects, what the answer says, and what is written of it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"
#include "server/rules/http/freshness.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/lastmod.h"
#include "server/sources/remote/claim.h"
#include "server/sources/remote/run.h"

#define TIMEOUT_MS      120000u
#define STALL_S         30u
#define STALL_BYTES     100u
#define BODY_MAX_BYTES  (51u << 20) /* as sent */
#define OTHER_MAX_BYTES 4096u       /* of what is no 2xx */
#define FULL_EVERY_S    (7 * 86400)
#define LIST_FRESH_S    3600u
#define LIARS_LEAST_S   21600u
#define WRITTEN_SLACK_S 60
#define AGAIN_S         5

static const char *const lost = "out of memory";

/* ---- the request -------------------------------------------------------------------------- */

static bool is_own_origin(const struct poll *p, const struct url *url)
{
    return p->source && url_same_origin(&p->source->upstream, url);
}

static bool is_host_of(const struct registry_site *site, const struct url *url)
{
    const char *hosts[2] = {url->text + url->host_at, NULL};
    size_t with_port = url->origin_len - url->host_at;
    if (site == NULL)
        return false;
    if (url_same_origin(&site->origin_url, url))
        return true;
    for (size_t list = 0; list < 2; list++) {
        size_t count = list == 0 ? site->alias_host_count : site->cross_host_count;
        const char *const *all = list == 0 ? site->alias_hosts : site->cross_hosts;
        for (size_t i = 0; i < count; i++) {
            size_t len = strlen(all[i]);
            if ((len == with_port || len == url->host_len) && memcmp(all[i], hosts[0], len) == 0)
                return true;
        }
    }
    return false;
}

/* Origins of the site, its other hosts, the upstream. */
static bool may_ask(void *context, const struct url *to)
{
    const struct poll *p = context;
    bool of_site = is_host_of(p->site, to);
    /* A list is of no site; what it names says which. */
    for (size_t i = 0; p->list && !of_site && i < p->registry->site_count; i++)
        of_site = is_host_of(&p->registry->sites[i], to) &&
                  is_host_of(&p->registry->sites[i], &p->source->upstream);
    return of_site || is_own_origin(p, to);
}

static bool ends_with(const struct url *url, const char *end)
{
    size_t len = strlen(end), path_end = (size_t)url->origin_len + url->path_len;
    return url->path_len >= len && memcmp(url->text + path_end - len, end, len) == 0;
}

static void add_header(struct poll *p, const char *name, const char *value)
{
    size_t used = strlen(p->headers), room = sizeof p->headers - used;
    if (value == NULL)
        return;
    if ((size_t)snprintf(p->headers + used, room, "%s: %s\r\n", name, value) >= room)
        p->headers[used] = '\0';
}

static void make_headers(struct poll *p, const char *etag, const char *modified)
{
    char loop[64];
    p->headers[0] = '\0';
    /* What is packed as it lies would be packed twice by some. */
    add_header(p, "Accept-Encoding", ends_with(&p->url, ".gz") ? "identity" : "gzip");
    snprintf(loop, sizeof loop, "sitemapd-%s", p->registry->epoch);
    add_header(p, "CDN-Loop", loop);
    p->conditional = etag != NULL || modified != NULL;
    add_header(p, "If-None-Match", etag);
    add_header(p, "If-Modified-Since", modified);
}

static bool take_body(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct poll *p = context;
    if (reply->status != 200)
        return true;
    if (p->list ? upstream_feed(p->upstream, bytes, len)
                : sitemap_verifier_feed(p->verifier, bytes, len))
        return true;
    p->decided = true;
    return false;
}

static bool make_reader(struct poll *p)
{
    const struct sitemap_expect expect = {
        .now = p->now,
        .url = &p->url,
        .hosts = p->hosts,
        .host_count = p->site ? 1 + p->site->alias_host_count + p->site->cross_host_count : 0,
        .packing = SITEMAP_PACKING_ANY,
    };
    upstream_free(p->upstream);
    sitemap_verifier_free(p->verifier);
    p->upstream = NULL;
    p->verifier = NULL;
    p->decided = false;
    if (p->list)
        return (p->upstream = upstream_new(p->now)) != NULL;
    return (p->verifier = sitemap_verifier_new(&expect)) != NULL;
}

static void on_done(void *context, enum fetch_status status, struct fetch_reply *reply);

static bool ask(struct poll *p)
{
    struct remote *r = p->remote;
    bool own = is_own_origin(p, &p->url);
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
        .timeout_ms = TIMEOUT_MS,
        .stall_s = STALL_S,
        .stall_bytes = STALL_BYTES,
        .max_bytes = OTHER_MAX_BYTES,
        .connect = own ? p->source->settings->connect : NULL,
        .guard = &r->plan->guard,
        .ca_more = own ? p->source->settings->ca_file : NULL,
        .credentials = own && p->url.https ? p->source->settings->credentials : NULL,
        .take = take_body,
        .take_bytes = BODY_MAX_BYTES,
        .context = p,
    };
    p->transfer = fetch_loop_add(r->loop, &p->request, on_done);
    return p->transfer != NULL;
}

/* ---- its life ------------------------------------------------------------------------------ */

static void unlink_poll(struct poll *p)
{
    struct poll **at = &p->remote->polls;
    while (*at && *at != p)
        at = &(*at)->next;
    if (*at == p) {
        *at = p->next;
        p->remote->polling--;
    }
}

static void poll_free(struct poll *p)
{
    unlink_poll(p);
    if (p->source && p->source->polling == p)
        p->source->polling = NULL;
    upstream_free(p->upstream);
    sitemap_verifier_free(p->verifier);
    registry_unref(p->registry);
    remote_plan_free(p->plan);
    record_list_done(&p->texts);
    free(p->hosts);
    free(p);
}

static struct poll *poll_new(struct remote *r, struct remote_host *host)
{
    struct poll *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->remote = r;
    p->host = host;
    p->now = run_now();
    p->began_ms = clock_now_ms();
    p->next = r->polls;
    r->polls = p;
    r->polling++;
    return p;
}

/* Answers all of them: with a result, or a failure. */
static void answer_asks(struct remote_ask **asks, const struct change_result *result,
                        const char *failure)
{
    while (*asks) {
        struct remote_ask *ask = *asks;
        *asks = ask->next;
        ask->scanned(ask->context, result, failure);
        remote_ask_free(ask);
    }
}

static void fail_asks(struct remote_source *source, const char *failure)
{
    answer_asks(&source->asks, NULL, failure);
    answer_asks(&source->dry_asks, NULL, failure);
}

void poll_cancel(struct poll *p, const char *failure)
{
    struct remote *r = p->remote;
    if (p->transfer)
        fetch_loop_remove(r->loop, p->transfer);
    host_end(&p->host->pace, clock_now_ms(), HOST_DROPPED, 0, -1);
    if (p->ask)
        remote_ask_fail(p->ask, failure);
    if (p->list)
        fail_asks(p->source, failure);
    else
        run_put(r, p->host,
                (struct due){p->record.id, (uint32_t)p->record.next_at, p->record.interval_s});
    poll_free(p);
}

/* ---- what is written ----------------------------------------------------------------------- */

static const char *kept_header(const struct fetch_reply *reply, const char *name, size_t most)
{
    const char *value = fetch_header(reply, name);
    return value && *value && strlen(value) < most ? value : NULL;
}

static void keep_validators(struct check_record *record, const struct fetch_reply *reply)
{
    const char *etag = kept_header(reply, "ETag", CHECK_ETAG_MAX_BYTES);
    const char *modified = kept_header(reply, "Last-Modified", CHECK_MODIFIED_MAX_BYTES);
    if (reply->status == 200 || etag)
        record->etag = etag;
    if (reply->status == 200 || modified)
        record->last_modified = modified;
}

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* What was read would have been answered 304, and is another. */
static bool validators_lie(const struct poll *p, const struct fetch_reply *reply)
{
    const char *etag = fetch_header(reply, "ETag");
    if (p->record.etag || etag)
        return same_text(p->record.etag, etag);
    return same_text(p->record.last_modified, fetch_header(reply, "Last-Modified"));
}

static void set_mark(struct check_record *record, unsigned mark, bool set)
{
    record->marks = set ? record->marks | mark : record->marks & ~mark;
}

struct settled {
    struct check_write write;
    struct claim_verdict dates;
    char remarks[SITEMAP_REMARKS_TEXT];
};

/* A whole good answer. */
static void take_content(struct poll *p, const struct fetch_reply *reply,
                         const struct sitemap_file *file, struct settled *s)
{
    struct check_record *record = &s->write.record;
    struct claim_content before = {.one_lastmod = record->one_lastmod};
    struct claim_content content = {.one_lastmod = file->one_lastmod};
    struct claim_dates dates = {
        .claim = p->source && p->source->claims_are_now ? NULL : p->claim,
        .newest = *file->newest_lastmod ? file->newest_lastmod : NULL,
        .served = p->served,
    };
    memcpy(before.hash, record->hash, sizeof before.hash);
    memcpy(before.dateless, record->dateless, sizeof before.dateless);
    memcpy(content.hash, file->hash, sizeof content.hash);
    memcpy(content.dateless, file->dateless, sizeof content.dateless);
    freshness_modified_at(fetch_header(reply, "Last-Modified"), fetch_header(reply, "Date"), p->now,
                          &dates.modified_at);
    claim_judge(&before, &content, &dates, p->now, &s->dates);
    bool moved = s->dates.changed;
    if (moved && !p->conditional && validators_lie(p, reply))
        set_mark(record, CHECK_VALIDATORS_LIE, true);
    memcpy(record->hash, file->hash, sizeof record->hash);
    memcpy(record->dateless, file->dateless, sizeof record->dateless);
    record->urls = file->urls;
    record->bytes = file->bytes;
    record->one_lastmod = file->one_lastmod;
    record->newest_lastmod = dates.newest;
    record->full_at = p->now;
    record->changed_at = moved ? p->now : record->changed_at;
    sitemap_remarks_write(&file->remarks, s->remarks);
    record->remarks = *s->remarks ? s->remarks : NULL;
    /* What somebody registered is theirs until its content moves. */
    if (*s->dates.lastmod && !p->has_digest && (p->source || moved)) {
        s->write.lastmod_from = p->served;
        s->write.lastmod_to = s->dates.lastmod;
    }
}

/* The registered date moved since the last poll, and the content did not. */
static bool is_unfounded(const struct poll *p, const struct check_record *before, bool changed)
{
    return !p->source && !changed && p->served && !p->has_digest && before->good_at > 0 &&
           p->entry_changed_at > before->checked_at + WRITTEN_SLACK_S;
}

/* Whether the entry was written since the last poll, by another: beside a digest, and while it is
 * stale, polls do not write it; else the last one's date may have come a little later. */
static bool is_written(const struct poll *p, const struct check_record *before)
{
    bool polls_write = !p->has_digest && !(before->marks & CHECK_DATE_STALE);
    return p->entry_changed_at >= before->checked_at + (polls_write ? WRITTEN_SLACK_S : 0);
}

/* From a change of the content that its date cannot follow, until a poll dates it or it is written
 * by whose it is. */
static void mark_stale(const struct poll *p, const struct check_record *before, struct settled *s)
{
    bool moves = s->write.lastmod_to && !p->held;
    bool wanted = s->dates.changed && *s->dates.lastmod && p->held;
    if (p->served == NULL || moves || is_written(p, before))
        set_mark(&s->write.record, CHECK_DATE_STALE, false);
    else if (wanted)
        set_mark(&s->write.record, CHECK_DATE_STALE, true);
}

static void settle_good(struct poll *p, const struct child_verdict *v,
                        const struct fetch_reply *reply, const struct sitemap_file *file,
                        struct settled *s)
{
    struct check_record *record = &s->write.record;
    const struct check_record before = p->record;
    struct interval_bounds bounds = {p->remote->plan->bounds.min_interval_s,
                                     p->remote->plan->bounds.max_interval_s};
    if (!v->same)
        take_content(p, reply, file, s);
    keep_validators(record, reply);
    bool changed = s->dates.changed;
    if (is_unfounded(p, &before, changed))
        set_mark(record, CHECK_LASTMOD_UNFOUNDED, true);
    else if (changed)
        set_mark(record, CHECK_LASTMOD_UNFOUNDED, false);
    mark_stale(p, &before, s);
    set_mark(record, CHECK_CLAIMS_ARE_NOW, p->source && p->source->claims_are_now);
    set_mark(record, CHECK_REDIRECTED, p->hops > 0);
    if (record->marks & CHECK_DROPPED) {
        set_mark(record, CHECK_DROPPED, false);
        if (p->source) {
            p->source->whole = true;
            p->source->next_at = p->now;
        }
    }
    record->good_at = p->now;
    record->failures = 0;
    record->problem = record->detail = NULL;
    record->line = 0;
    record->interval_s =
        s->dates.first ? INTERVAL_FIRST_S : interval_next(record->interval_s, changed, bounds);
    int64_t fresh =
        freshness_left(fetch_header(reply, "Cache-Control"), fetch_header(reply, "Age"));
    if (fresh > (int64_t)bounds.max_s)
        fresh = bounds.max_s;
    if (fresh > (int64_t)record->interval_s)
        record->interval_s = (uint32_t)fresh;
    if ((record->marks & CHECK_VALIDATORS_LIE) && record->interval_s < LIARS_LEAST_S)
        record->interval_s = LIARS_LEAST_S;
}

static bool is_same_trouble(enum check_state a, enum check_state b)
{
    return a == b || (interval_is_none(a) && interval_is_none(b));
}

static uint32_t settle_bad(struct poll *p, const struct child_verdict *v,
                           struct check_record *record)
{
    struct interval_bounds bounds = {p->remote->plan->bounds.min_interval_s,
                                     p->remote->plan->bounds.max_interval_s};
    record->failures = is_same_trouble(p->record.state, v->state) ? record->failures + 1 : 1;
    record->problem = v->problem;
    record->detail = *v->detail ? v->detail : NULL;
    record->line = v->line;
    int64_t since = record->failures == 1 ? p->now : record->since;
    if (p->source && interval_is_none(v->state) && !(record->marks & CHECK_DROPPED) &&
        interval_drops(record->failures, since, p->now, p->source->settings->drop_after_s)) {
        set_mark(record, CHECK_DROPPED, true);
        p->source->whole = true;
        p->source->next_at = p->now;
    }
    return interval_trouble(v->state, record->failures, bounds);
}

static void tell_state(struct poll *p, const struct check_record *record)
{
    struct remote *r = p->remote;
    enum check_state before = p->record.state;
    const char *source = p->source ? p->source->settings->name : NULL;
    const struct remote_moved moved = {.record = record,
                                       .site = p->site->origin,
                                       .before = before,
                                       .was_stale = (p->record.marks & CHECK_DATE_STALE) != 0};
    bool is_stale = (record->marks & CHECK_DATE_STALE) != 0;
    if (r->options.moved && (record->state != before || is_stale != moved.was_stale))
        r->options.moved(r->options.moved_context, &moved);
    if (record->state == before)
        return;
    pthread_mutex_lock(&r->lock);
    r->counts.states[before] -= r->counts.states[before] > 0;
    r->counts.states[record->state]++;
    if (p->source) {
        uint64_t *states = p->source->status.states;
        states[before] -= states[before] > 0;
        states[record->state]++;
    }
    pthread_mutex_unlock(&r->lock);
    if (record->state == CHECK_GOOD && before != CHECK_NEW)
        remote_tell(r, 2, "check-recovered", source, "%s is good again", record->loc);
    else if (record->state != CHECK_GOOD)
        remote_tell(r, 1, "check-problem", source, "%s is %s (%s): %s", record->loc,
                    check_state_word(record->state), record->problem ? record->problem : "",
                    record->detail ? record->detail : "");
}

static void count_result(struct remote *r, enum remote_result result, uint64_t bytes,
                         int64_t took_ms)
{
    pthread_mutex_lock(&r->lock);
    r->counts.results[result]++;
    r->counts.bytes += bytes;
    pthread_mutex_unlock(&r->lock);
    histogram_add(&r->durations, &histogram_times, (uint64_t)took_ms * 1000000u);
}

/* What its entry bears, and what the list claims. */
static enum catalogue_status read_entry(struct poll *p, struct catalogue_view *view)
{
    struct entry_record entry;
    struct source_file file;
    bool found = false, failed = false;
    enum catalogue_status status =
        catalogue_view_entry_by_loc(view, p->record.site_id, p->record.loc, &entry);
    if (status == CATALOGUE_OK) {
        p->served = record_keep(&p->texts, entry.lastmod, &failed);
        p->has_digest = entry.digest != NULL;
        p->held =
            p->has_digest || (p->source && !same_text(entry.source, p->record.source)) ||
            registry_is_frozen(p->registry, registry_index_by_id(p->registry, entry.index_id));
        p->entry_changed_at = entry.changed_at;
        entry_record_done(&entry);
    } else if (status != CATALOGUE_NOT_FOUND) {
        return status;
    }
    if (p->source) {
        status = catalogue_view_source_file(view, p->record.source, p->record.loc, &file, &found);
        if (status != CATALOGUE_OK)
            return status;
        p->claim = found ? record_keep(&p->texts, file.claim, &failed) : NULL;
    }
    p->entry_read = !failed;
    return failed ? CATALOGUE_NO_MEMORY : CATALOGUE_OK;
}

/* A 304 in answer to what a source names moves nothing of its entry, which is looked up only where
 * the answer is another, unless somebody waits for it. False: it cannot be, or somebody wrote the
 * entry since the poll began, whose date a later poll is to see. */
static bool read_entry_late(struct poll *p)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(p->remote->catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = read_entry(p, view);
        catalogue_view_end(view);
    }
    return status == CATALOGUE_OK &&
           (p->entry_changed_at < p->now || p->entry_changed_at > run_now());
}

/* It is polled again soon, and nothing comes of this poll. */
static void put_again(struct poll *p)
{
    run_put(p->remote, p->host,
            (struct due){p->record.id, (uint32_t)p->now + AGAIN_S, p->record.interval_s});
}

static void settle_child(struct poll *p, const struct child_verdict *v,
                         const struct fetch_reply *reply, const struct sitemap_file *file)
{
    struct remote *r = p->remote;
    struct settled s = {.write = {.kind = CHECK_RESULT, .record = p->record}};
    struct check_record *record = &s.write.record;
    uint32_t wait;
    if (v->state == CHECK_GOOD && !v->same && !p->entry_read && !read_entry_late(p)) {
        put_again(p);
        return;
    }
    record->state = v->state;
    record->status = reply->status;
    record->checked_at = p->now;
    if (v->state == CHECK_GOOD) {
        settle_good(p, v, reply, file, &s);
        wait = record->interval_s;
    } else {
        wait = settle_bad(p, v, record);
    }
    if (!is_same_trouble(p->record.state, v->state))
        record->since = p->now;
    double stretched = run_stretch(r, p->host) * interval_jitter(wait, run_chance(r));
    record->next_at = interval_together(p->now + (int64_t)stretched, wait);
    tell_state(p, record);
    count_result(r, child_result(v, s.dates.changed), reply->got_bytes,
                 clock_now_ms() - p->began_ms);
    r->batch_tells = r->batch_tells || record->state != CHECK_GOOD ||
                     p->record.state != CHECK_GOOD || s.dates.changed;
    if (!run_write(r, &s.write)) {
        r->load = true; /* it is polled anew, from what the catalogue keeps */
        if (p->ask)
            remote_ask_fail(p->ask, lost);
        p->ask = NULL;
    }
    if (p->ask) {
        p->ask->next = r->waiting;
        r->waiting = p->ask;
        p->ask->max_removed = record->id; /* whose row is the answer */
    }
    run_put(r, p->host, (struct due){record->id, (uint32_t)record->next_at, record->interval_s});
}

/* ---- a list --------------------------------------------------------------------------------- */

static void keep(char **to, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    free(*to);
    *to = copy;
}

/* What is kept of the list, for the next start. */
static void write_list(struct poll *p, unsigned http_status)
{
    struct remote_source *s = p->source;
    struct check_write write = {.kind = CHECK_RESULT,
                                .record = {.id = s->list_id,
                                           .loc = s->settings->upstream,
                                           .list = true,
                                           .state = s->problem ? CHECK_UNREACHABLE : CHECK_GOOD,
                                           .status = http_status,
                                           .marks = s->claims_are_now ? CHECK_CLAIMS_ARE_NOW : 0,
                                           .next_at = s->next_at,
                                           .interval_s = s->settings->poll_s,
                                           .failures = s->failures,
                                           .checked_at = p->now,
                                           .good_at = s->good_at,
                                           .changed_at = s->answered,
                                           .full_at = s->full_at,
                                           .since = s->since,
                                           .etag = s->etag,
                                           .last_modified = s->modified,
                                           .problem = s->problem,
                                           .detail = s->status.failure}};
    if (s->list_id == 0 || !run_write(p->remote, &write))
        s->whole = true;
}

static void fail_list(struct poll *p, const char *code, const char *why)
{
    struct remote *r = p->remote;
    struct remote_source *s = p->source;
    bool news = s->problem == NULL || strcmp(s->problem, code) != 0;
    keep(&s->problem, code);
    s->failures++;
    if (s->failures == 1)
        s->since = p->now;
    pthread_mutex_lock(&r->lock);
    s->status.failing = true;
    s->status.failed_at = s->since;
    snprintf(s->status.failure_code, sizeof s->status.failure_code, "%s", code);
    snprintf(s->status.failure, sizeof s->status.failure, "%s", why);
    pthread_mutex_unlock(&r->lock);
    if (news)
        remote_tell(r, 1, "source-scan-failed", s->settings->name, "%s: %s; nothing changes", code,
                    why);
    fail_asks(s, why);
}

static void list_works(struct poll *p)
{
    struct remote_source *s = p->source;
    if (s->problem)
        remote_tell(p->remote, 2, "source-scan-works", s->settings->name, "the list is read again");
    keep(&s->problem, NULL);
    s->failures = 0;
    s->good_at = p->now;
    pthread_mutex_lock(&p->remote->lock);
    s->status.failing = false;
    s->status.failed_at = 0;
    s->status.failure_code[0] = s->status.failure[0] = '\0';
    pthread_mutex_unlock(&p->remote->lock);
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The row of a sitemap that the source lists; 0: it is not watched. One that was made for a site
 * lists in no other, so that no other is looked through for each of 50,000. */
static int64_t find_listed(const struct poll *p, struct catalogue_view *view, const char *loc)
{
    int64_t only = p->source->settings->site_id;
    struct check_record record;
    for (size_t at = 0; at < p->registry->site_count; at++) {
        int64_t site_id = p->registry->sites[at].id;
        if ((only == 0 || only == site_id) &&
            catalogue_view_check_by_loc(view, site_id, loc, &record) == CATALOGUE_OK &&
            strcmp(record.source, p->source->settings->name) == 0)
            return record.id;
    }
    return 0;
}

/* What the list dates anew is polled now. */
static void poll_claimed(struct poll *p)
{
    size_t count, found = 0;
    struct catalogue_view *view;
    const char *const *locs = upstream_claimed(p->upstream, &count);
    int64_t *ids = count > 0 ? malloc(count * sizeof *ids) : NULL;
    if (ids && catalogue_view_begin(p->remote->catalogue, &view) == CATALOGUE_OK) {
        for (size_t i = 0; i < count; i++) {
            int64_t id = find_listed(p, view, locs[i]);
            if (id != 0)
                ids[found++] = id;
        }
        catalogue_view_end(view);
    }
    if (found > 0) {
        qsort(ids, found, sizeof *ids, compare_ids);
        for (size_t i = 0; i < p->remote->host_count; i++)
            due_move(&p->remote->hosts[i]->heap, ids, found, (uint32_t)p->now);
    }
    free(ids);
}

static void note_scan(struct poll *p, const struct scan_outcome *out)
{
    struct remote_source *s = p->source;
    bool held = out->result.would_remove != s->status.held && out->result.would_remove > 0;
    pthread_mutex_lock(&p->remote->lock);
    s->status.members = upstream_count(p->upstream).members;
    s->status.held = out->result.would_remove;
    pthread_mutex_unlock(&p->remote->lock);
    if (held)
        remote_tell(p->remote, 1, "source-removals-held", s->settings->name,
                    "%" PRIu64 " entries that the list names no more are kept by the shrink guard; "
                    "scan with max_removed to let them go",
                    out->result.would_remove);
    if (out->result.changed)
        remote_tell(p->remote, 2, "source-scanned", s->settings->name,
                    "%zu named: %" PRIu64 " new, %" PRIu64 " changed, %" PRIu64 " gone, %" PRIu64
                    " refused",
                    upstream_count(p->upstream).members, out->counts.added, out->counts.changed,
                    out->counts.gone, out->counts.problems);
}

static int64_t most_removed(const struct remote_ask *asks)
{
    int64_t most = MAX_REMOVED_GUARDED;
    for (const struct remote_ask *a = asks; a; a = a->next)
        most = a->max_removed > most ? a->max_removed : most;
    return most;
}

static int64_t date_of(const struct poll *p, const struct fetch_reply *reply)
{
    int64_t answered = p->now;
    const char *date = fetch_header(reply, "Date");
    if (date)
        http_date_parse(date, p->now, &answered);
    return answered;
}

/* What the list that was read would change. */
static void answer_dry_asks(struct poll *p, const struct fetch_reply *reply)
{
    struct remote_source *s = p->source;
    struct scan_outcome out;
    bool claims = false;
    const struct upstream_scan scan = {.catalogue = p->remote->catalogue,
                                       .settings = s->settings,
                                       .answered_before = s->answered,
                                       .answered = date_of(p, reply),
                                       .max_removed = most_removed(s->dry_asks),
                                       .dry_run = true,
                                       .stop = &p->remote->stop};
    if (s->dry_asks == NULL)
        return;
    upstream_apply(p->upstream, &scan, &out, &claims);
    answer_asks(&s->dry_asks, out.applied ? &out.result : NULL, out.failure);
}

static void take_list(struct poll *p, const struct fetch_reply *reply)
{
    struct remote *r = p->remote;
    struct remote_source *s = p->source;
    struct scan_outcome out;
    bool claims = false;
    char why[256];
    int64_t answered = date_of(p, reply);
    const char *code = upstream_finish(p->upstream, why, sizeof why);
    if (code) {
        fail_list(p, code, why);
        return;
    }
    answer_dry_asks(p, reply);
    const struct upstream_scan scan = {.catalogue = r->catalogue,
                                       .settings = s->settings,
                                       .answered_before = s->answered,
                                       .answered = answered,
                                       .max_removed = most_removed(s->asks),
                                       .stop = &r->stop};
    upstream_apply(p->upstream, &scan, &out, &claims);
    if (!out.applied) {
        fail_list(p, "catalogue", out.failure);
        return;
    }
    if (claims && !s->claims_are_now)
        remote_tell(r, 1, "claims-are-now", s->settings->name,
                    "the list dates its sitemaps with the moment of each answer: its dates are "
                    "not taken");
    s->claims_are_now = claims;
    s->answered = answered;
    s->full_at = p->now;
    list_works(p);
    note_scan(p, &out);
    /* Frozen or held, all of it is to be seen again. */
    s->whole = out.result.frozen > 0 || out.result.would_remove > 0 || out.again_ms > 0;
    keep(&s->etag, kept_header(reply, "ETag", CHECK_ETAG_MAX_BYTES));
    keep(&s->modified, kept_header(reply, "Last-Modified", CHECK_MODIFIED_MAX_BYTES));
    poll_claimed(p);
    atomic_store(&r->look_soon, true);
    answer_asks(&s->asks, &out.result, "");
}

static const char own_upstream[] =
    "the upstream's name leads to this server; say with connect where it was";

/* A poll that only dry runs asked for: they are answered, and all else is as it was. */
static void settle_dry(struct poll *p, const struct child_verdict *v,
                       const struct fetch_reply *reply)
{
    struct remote *r = p->remote;
    char why[256] = "";
    pthread_mutex_lock(&r->lock);
    p->source->status.polling = false;
    pthread_mutex_unlock(&r->lock);
    if (v->state == CHECK_GOOD && upstream_finish(p->upstream, why, sizeof why) == NULL)
        answer_dry_asks(p, reply);
    else
        answer_asks(&p->source->dry_asks, NULL,
                    *why                   ? why
                    : reply->status == 508 ? own_upstream
                                           : v->detail);
}

static void settle_list(struct poll *p, const struct child_verdict *v,
                        const struct fetch_reply *reply)
{
    struct remote_source *s = p->source;
    struct remote *r = p->remote;
    uint64_t before = s->failures;
    int64_t fresh =
        freshness_left(fetch_header(reply, "Cache-Control"), fetch_header(reply, "Age"));
    fresh = fresh > LIST_FRESH_S ? LIST_FRESH_S : fresh;
    uint32_t wait = fresh > (int64_t)s->settings->poll_s ? (uint32_t)fresh : s->settings->poll_s;
    s->next_at = p->now + interval_jitter(wait, run_chance(r)); /* a scan may ask for an earlier */
    if (v->state == CHECK_GOOD && v->same)
        list_works(p);
    else if (v->state == CHECK_GOOD)
        take_list(p, reply);
    else if (reply->status == 508)
        fail_list(p, "upstream-is-this-server", own_upstream);
    else
        fail_list(p, v->problem, v->detail);
    if (s->problem) { /* sooner, while that is new */
        struct interval_bounds bounds = {1, s->settings->poll_s};
        s->next_at = p->now + interval_trouble(CHECK_UNREACHABLE, s->failures, bounds);
    }
    pthread_mutex_lock(&r->lock);
    s->status.polling = false;
    s->status.polls++;
    s->status.polled_at = p->now;
    s->status.next_poll_at = s->next_at;
    s->status.http_status = reply->status;
    pthread_mutex_unlock(&r->lock);
    count_result(r, child_result(v, s->failures == 0 && before == 0), reply->got_bytes,
                 clock_now_ms() - p->began_ms);
    write_list(p, reply->status);
}

/* ---- an answer ------------------------------------------------------------------------------ */

static void settle(struct poll *p, enum fetch_status status, struct fetch_reply *reply,
                   enum hop_verdict hop)
{
    struct child_verdict verdict;
    struct sitemap_file file;
    if (p->decided && status == FETCH_STOPPED)
        reply->status = 200; /* no whole answer, but one that was read far enough */
    bool read = !p->list && reply->status == 200 && (status == FETCH_OK || p->decided) &&
                sitemap_verifier_finish(p->verifier, &file);
    if (!p->list && reply->status == 200 && (status == FETCH_OK || p->decided) && !read)
        status = FETCH_NO_MEMORY;
    const struct child_answer answer = {.fetch = status,
                                        .reply = reply,
                                        .conditional = p->conditional,
                                        .hop = hop,
                                        .file = read ? &file : NULL,
                                        .decided = p->decided,
                                        .now = p->now};
    child_judge(&answer, &verdict);
    host_end(&p->host->pace, clock_now_ms(), verdict.host, reply->took_ms, verdict.retry_after_s);
    if (p->list && p->dry_run)
        settle_dry(p, &verdict, reply);
    else if (p->list)
        settle_list(p, &verdict, reply);
    else
        settle_child(p, &verdict, reply, read ? &file : NULL);
    poll_free(p);
}

static void on_done(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct poll *p = context;
    struct url to;
    enum hop_verdict hop = HOP_END;
    p->transfer = NULL;
    if (status == FETCH_OK)
        hop = hop_next(reply->status, reply->redirect.data, &p->url, p->hops, may_ask, p, &to);
    if (hop == HOP_FOLLOW) {
        p->url = to;
        p->hops++;
        if (ask(p))
            return;
        status = FETCH_NO_MEMORY;
        hop = HOP_END;
    }
    settle(p, status, reply, hop);
}

/* ---- beginning ------------------------------------------------------------------------------ */

static void refuse_list(struct remote *r, struct remote_source *source, const char *failure)
{
    source->next_at = run_now() + 60;
    pthread_mutex_lock(&r->lock);
    source->status.polling = false;
    pthread_mutex_unlock(&r->lock);
    fail_asks(source, failure);
}

bool poll_list(struct remote *r, struct remote_source *source)
{
    struct remote_host *host = run_host(r, &source->upstream);
    struct poll *p = host ? poll_new(r, host) : NULL;
    enum catalogue_status status =
        p ? catalogue_registry(r->catalogue, &p->registry) : CATALOGUE_NO_MEMORY;
    if (status != CATALOGUE_OK) {
        if (p)
            poll_free(p);
        refuse_list(r, source, catalogue_status_word(status));
        return false;
    }
    p->list = true;
    p->source = source;
    p->url = source->upstream;
    source->polling = p;
    p->dry_run = source->dry_asks && !source->asks && p->now < source->next_at;
    bool whole = source->whole || source->asks || source->dry_asks ||
                 p->now - source->full_at >= FULL_EVERY_S || p->now < source->full_at ||
                 source->problem;
    make_headers(p, whole ? NULL : source->etag, whole ? NULL : source->modified);
    pthread_mutex_lock(&r->lock);
    source->status.polling = true;
    pthread_mutex_unlock(&r->lock);
    if (!ask(p)) {
        poll_free(p);
        refuse_list(r, source, lost);
        return false;
    }
    host_begin(&host->pace, clock_now_ms(), r->plan->bounds.rate);
    return true;
}

static bool keep_record(struct poll *p, const struct check_record *from)
{
    bool failed = false;
    struct check_record *to = &p->record;
    *to = *from;
    const char **const texts[] = {&to->loc,     &to->source,        &to->etag,
                                  &to->remarks, &to->last_modified, &to->newest_lastmod,
                                  &to->problem, &to->detail};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = record_keep(&p->texts, *texts[i], &failed);
    return !failed;
}

/* Whose pages it may list. */
static bool take_hosts(struct poll *p)
{
    const struct registry_site *site = p->site;
    size_t count = 0;
    p->hosts = malloc((1 + site->alias_host_count + site->cross_host_count) * sizeof *p->hosts);
    if (p->hosts == NULL)
        return false;
    p->hosts[count++] = site->origin + site->origin_url.host_at;
    for (size_t i = 0; i < site->alias_host_count; i++)
        p->hosts[count++] = site->alias_hosts[i];
    for (size_t i = 0; i < site->cross_host_count; i++)
        p->hosts[count++] = site->cross_hosts[i];
    return true;
}

static size_t of_site(const struct remote *r, int64_t site_id)
{
    size_t count = 0;
    for (const struct poll *p = r->polls; p; p = p->next)
        count += !p->list && p->record.site_id == site_id;
    return count;
}

/* Whether it is asked for only as it is new: it has validators, and was read whole of late. */
static bool asks_what_is_new(const struct poll *p)
{
    const struct check_record *k = &p->record;
    return k->state == CHECK_GOOD && !(k->marks & CHECK_VALIDATORS_LIE) &&
           p->now - k->full_at < FULL_EVERY_S && p->now >= k->full_at &&
           (k->etag || k->last_modified);
}

/* NOT_FOUND: it is watched no more. BUSY: as many of its site are polled as may be. */
static enum catalogue_status read_child(struct poll *p, struct catalogue_view *view, int64_t id,
                                        bool asked)
{
    struct check_record record;
    enum catalogue_status status = catalogue_view_registry(view, &p->registry);
    if (status == CATALOGUE_OK)
        status = catalogue_view_check(view, id, &record);
    if (status != CATALOGUE_OK)
        return status;
    if (!keep_record(p, &record))
        return CATALOGUE_NO_MEMORY;
    p->site = registry_site_by_id(p->registry, p->record.site_id);
    p->source = run_source(p->remote, p->record.source);
    bool wanted = *p->record.source != '\0' ? p->source && p->source->settings->check
                                            : p->site && p->site->check;
    if (!wanted || !p->site || !url_split(p->record.loc, strlen(p->record.loc), &p->url))
        return CATALOGUE_NOT_FOUND;
    if (of_site(p->remote, p->record.site_id) > RUN_SHARE)
        return CATALOGUE_BUSY;
    if (!take_hosts(p))
        return CATALOGUE_NO_MEMORY;
    return !asked && p->source && asks_what_is_new(p) && !(p->record.marks & CHECK_DATE_STALE)
               ? CATALOGUE_OK
               : read_entry(p, view);
}

bool poll_child(struct remote *r, struct remote_host *host, struct due due,
                struct remote_ask *asked, bool *later)
{
    struct catalogue_view *view;
    struct poll *p = poll_new(r, host);
    enum catalogue_status status =
        p ? catalogue_view_begin(r->catalogue, &view) : CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK) {
        status = read_child(p, view, due.id, asked != NULL);
        catalogue_view_end(view);
    }
    *later = status != CATALOGUE_OK && status != CATALOGUE_NOT_FOUND;
    if (status == CATALOGUE_OK) {
        const struct check_record *k = &p->record;
        bool whole = !asks_what_is_new(p);
        make_headers(p, whole ? NULL : k->etag, whole ? NULL : k->last_modified);
        *later = !ask(p);
    }
    if (status != CATALOGUE_OK || *later) {
        if (p)
            poll_free(p);
        return false;
    }
    p->ask = asked;
    host_begin(&host->pace, clock_now_ms(), r->plan->bounds.rate);
    return true;
}
