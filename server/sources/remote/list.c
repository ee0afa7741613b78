/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Polls the list of a source: submits it as a scan, and keeps its state. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "server/base/clock.h"
#include "server/base/text.h"
#include "server/base/thread.h"
#include "server/rules/http/freshness.h"
#include "server/rules/http/negotiate.h"
#include "server/sources/remote/run.h"

#define FULL_EVERY_S    (7 * 86400)
#define REFUSED_EVERY_S 3600 /* where members are refused */
#define LIST_FRESH_S    3600u

/* Answers all requests in the list with a result or a failure. */
static void answer_requests(struct remote_ask **asks, const struct change_result *result,
                            const char *failure)
{
    while (*asks != NULL) {
        struct remote_ask *ask = *asks;
        *asks = ask->next;
        ask->scanned(ask->context, result, failure);
        remote_request_free(ask);
    }
}

void list_fail_requests(struct poll *p, const char *failure)
{
    answer_requests(&p->asks, NULL, failure);
    answer_requests(&p->dry_asks, NULL, failure);
    answer_requests(&p->source->asks, NULL, failure);
    answer_requests(&p->source->dry_asks, NULL, failure);
}

/* Takes the waiting requests; later ones need another poll. */
static void collect_requests(struct poll *p)
{
    struct remote_source *s = p->source;
    p->dry_asks = s->dry_asks;
    s->dry_asks = NULL;
    if (p->dry_run)
        return;
    p->asks = s->asks;
    s->asks = NULL;
}

/* Replaces *to by a copy. */
static void list_keep(char **to, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    free(*to);
    *to = copy;
}

/* Writes the state of the list, for the next start: without validators if the next poll reads the
 * whole list. */
static void write_list(struct poll *p, unsigned http_status)
{
    struct remote_source *s = p->source;
    struct check_write write = {
        .kind = CHECK_RESULT,
        .full_from = s->full_from,
        .record = {.id = s->list_id,
                   .loc = s->settings->upstream,
                   .list = true,
                   .state = s->problem != NULL ? CHECK_UNREACHABLE : CHECK_GOOD,
                   .status = http_status,
                   .marks = s->claims_are_now ? CHECK_CLAIMS_ARE_NOW : 0,
                   .next_at = s->next_at,
                   .interval_s = s->settings->poll_ms / 1000,
                   .failures = s->failures,
                   .checked_at = p->now,
                   .good_at = s->good_at,
                   .urls = (uint64_t)s->mapped_at,
                   .hash = {s->digest[0], s->digest[1]},
                   .changed_at = s->answered,
                   .full_at = s->full_at,
                   .since = s->since,
                   .etag = s->whole ? NULL : s->etag,
                   .last_modified = s->whole ? NULL : s->modified,
                   .problem = s->problem,
                   .detail = s->status.failure}};
    if (s->list_id == 0 || !run_write(p->remote, &write))
        s->whole = true;
}

/* Shows the failure in the status, and logs it once. */
static void show_failure(struct remote *r, struct remote_source *s, const char *code,
                         const char *why)
{
    bool news = s->problem == NULL || strcmp(s->problem, code) != 0;
    list_keep(&s->problem, code);
    pthread_mutex_lock(&r->lock);
    s->status.failing = true;
    s->status.failed_at = s->since;
    snprintf(s->status.failure_code, sizeof s->status.failure_code, "%s",
             s->problem != NULL ? s->problem : "");
    snprintf(s->status.failure, sizeof s->status.failure, "%s", why);
    pthread_mutex_unlock(&r->lock);
    if (news)
        remote_report(r, 1, "source-scan-failed", s->settings->name,
                      "%s: %s; its entries stay as they are", code, why);
}

static void fail_list(struct poll *p, const char *code, const char *why)
{
    struct remote *r = p->remote;
    struct remote_source *s = p->source;
    p->end.problem = code;
    p->end.failed = true;
    s->failures++;
    if (s->failures == 1)
        s->since = p->now;
    show_failure(r, s, code, why);
    answer_requests(&p->asks, NULL, why);
    answer_requests(&p->dry_asks, NULL, why);
}

static void list_works(struct poll *p)
{
    struct remote_source *s = p->source;
    bool failed = s->problem != NULL;
    list_keep(&s->problem, NULL);
    s->failures = 0;
    s->good_at = p->now;
    pthread_mutex_lock(&p->remote->lock);
    s->status.failing = false;
    s->status.failed_at = 0;
    s->status.failure_code[0] = s->status.failure[0] = '\0';
    pthread_mutex_unlock(&p->remote->lock);
    if (failed) /* from before */
        remote_report(p->remote, 2, "source-scan-works", s->settings->name,
                      "the upstream's index can be read again");
}

static int compare_ids(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Polls the sitemaps now whose dates in the list have changed. */
static void poll_claimed(struct poll *p)
{
    size_t count, found = 0;
    struct catalogue_view *view;
    const char *const *locs = upstream_claimed(p->upstream, &count);
    int64_t *ids = count > 0 ? malloc(count * sizeof *ids) : NULL;
    if (ids != NULL && catalogue_view_begin(p->remote->catalogue, &view) == CATALOGUE_OK) {
        for (size_t i = 0; i < count; i++) {
            struct check_record record;
            /* a split is too large to poll early */
            if (!remote_splits(p->source->settings, locs[i]) &&
                catalogue_view_check_of(view, p->source->settings->name, locs[i], &record) ==
                    CATALOGUE_OK)
                ids[found++] = record.id;
        }
        catalogue_view_end(view);
    }
    if (found > 0) {
        qsort(ids, found, sizeof *ids, compare_ids);
        run_move_due(p->remote, ids, found, (uint32_t)p->now);
    }
    free(ids);
}

/* The number of refused members of the list in the catalogue. */
static uint64_t count_refused(struct poll *p)
{
    struct catalogue_view *view;
    struct source_state state = {.quarantined = p->source->status.refused};
    if (catalogue_view_begin(p->remote->catalogue, &view) != CATALOGUE_OK)
        return state.quarantined;
    if (catalogue_view_source_state(view, p->source->settings->name, &state) != CATALOGUE_OK)
        state.quarantined = p->source->status.refused;
    catalogue_view_end(view);
    return state.quarantined;
}

static void record_scan(struct poll *p, const struct scan_outcome *out)
{
    struct remote_source *s = p->source;
    bool held = out->result.would_remove != s->status.held && out->result.would_remove > 0;
    uint64_t refused = count_refused(p);
    bool more_refused = refused > s->status.refused;
    pthread_mutex_lock(&p->remote->lock);
    s->status.refused = refused;
    s->status.members = upstream_count(p->upstream).members;
    s->status.held = out->result.would_remove;
    pthread_mutex_unlock(&p->remote->lock);
    if (held)
        remote_report(p->remote, 1, "source-removals-held", s->settings->name,
                      "%" PRIu64
                      " removals are held back by the shrink guard: the upstream no longer lists "
                      "these sitemaps; scan with max_removed to remove them",
                      out->result.would_remove);
    if (more_refused)
        remote_report(p->remote, 1, "source-file-problem", s->settings->name,
                      "%" PRIu64 " %s; GET /v1/sources/%s shows which and why", refused,
                      plural(refused, "sitemap of the upstream's index is rejected",
                             "sitemaps of the upstream's index are rejected"),
                      s->settings->name);
    if (out->result.changed)
        remote_report(p->remote, 2, "source-scanned", s->settings->name,
                      "%zu listed: %" PRIu64 " new, %" PRIu64 " changed, %" PRIu64 " gone, %" PRIu64
                      " rejected",
                      upstream_count(p->upstream).members, out->counts.added, out->counts.changed,
                      out->counts.gone, refused);
}

static int64_t list_most_removed(const struct remote_ask *asks)
{
    int64_t most = MAX_REMOVED_GUARDED;
    for (const struct remote_ask *a = asks; a != NULL; a = a->next)
        most = a->max_removed > most ? a->max_removed : most;
    return most;
}

static int64_t list_answered(const struct poll *p, const struct fetch_reply *reply)
{
    int64_t answered = p->now;
    const char *date = fetch_header(reply, "Date");
    if (date != NULL)
        http_date_parse(date, p->now, &answered);
    return answered;
}

static void on_scan(struct poll *p, const struct list_found *found)
{
    struct remote *r = p->remote;
    struct remote_source *s = p->source;
    const struct scan_outcome *out = &found->out;
    s->registry_seen = p->registry->registry_revision;
    if (!out->applied) {
        fail_list(p, "catalogue", out->failure);
        return;
    }
    if (found->claims_are_now && !s->claims_are_now)
        remote_report(r, 1, "claims-are-now", s->settings->name,
                      "the upstream's index dates its sitemaps with the time of each response: "
                      "these dates are ignored");
    p->end.revision = out->result.changed ? out->result.revision : 0;
    s->claims_are_now = found->claims_are_now;
    s->answered = found->answered;
    s->full_at = p->now;
    list_works(p);
    record_scan(p, out);
    s->frozen = out->result.frozen > 0;
    /* If entries are frozen or held, read the whole list again next time. */
    s->whole = out->result.frozen > 0 || out->result.would_remove > 0 || out->again_ms > 0;
    list_keep(&s->etag, poll_kept_header(&found->reply, "ETag", CHECK_ETAG_MAX_BYTES));
    list_keep(&s->modified,
              poll_kept_header(&found->reply, "Last-Modified", CHECK_MODIFIED_MAX_BYTES));
    poll_claimed(p);
    if (p->asks != NULL)
        split_admit(r, s, p->now, list_most_removed(p->asks));
    atomic_store(&r->look_soon, true);
    answer_requests(&p->asks, &out->result, "");
}

/* Ends a poll that only dry runs requested; nothing else changes. */
static void end_dry(struct poll *p)
{
    pthread_mutex_lock(&p->remote->lock);
    p->source->status.polling = false;
    pthread_mutex_unlock(&p->remote->lock);
}

/* Reports and keeps the result of a poll, and schedules the next one. */
static void end(struct poll *p, const struct child_verdict *v, const struct fetch_reply *reply)
{
    struct remote_source *s = p->source;
    struct remote *r = p->remote;
    int64_t fresh =
        freshness_remaining(fetch_header(reply, "Cache-Control"), fetch_header(reply, "Age"));
    fresh = fresh > LIST_FRESH_S ? LIST_FRESH_S : fresh;
    uint32_t poll_s = s->settings->poll_ms / 1000;
    uint32_t wait = fresh > (int64_t)poll_s ? (uint32_t)fresh : poll_s;
    s->next_at = p->now + interval_jitter(wait, run_chance(r));
    if (s->problem != NULL) { /* sooner at first */
        struct interval_bounds bounds = {1, poll_s};
        s->next_at = p->now + interval_trouble(CHECK_UNREACHABLE, s->failures, bounds);
    }
    pthread_mutex_lock(&r->lock);
    s->status.polling = false;
    s->status.polls++;
    s->status.polled_at = p->now;
    s->status.next_poll_at = s->next_at;
    s->status.http_status = reply->status;
    pthread_mutex_unlock(&r->lock);
    poll_count(r, child_result(v, s->failures == 0 && p->failures == 0), reply->got_bytes,
               clock_now_ms() - p->began_ms);
    write_list(p, reply->status);
}

bool list_settle(struct poll *p, const struct child_verdict *v, struct fetch_reply *reply)
{
    char why[256];
    const char *code = v->problem, *failure = v->detail;
    /* requests that came meanwhile wait for the next poll */
    if (v->state == CHECK_GOOD && v->same) {
        list_works(p);
        end(p, v, reply);
        return false;
    }
    collect_requests(p);
    if (v->state == CHECK_GOOD) {
        code = upstream_finish(p->upstream, why, sizeof why);
        if (code == NULL)
            code = upstream_check_single(
                p->upstream, p->remote->catalogue, p->source->settings->name,
                list_most_removed(p->dry_run ? p->dry_asks : p->asks), why, sizeof why);
        if (code == NULL && list_scan_begin(p, v, reply))
            return true;
        failure = code != NULL ? why : "out of memory";
        code = code != NULL ? code : "catalogue";
    } else if (reply->status == 508) {
        code = "upstream-is-this-server";
        failure = "loop: the upstream's host name now points to this server; set connect to the "
                  "address of the old server";
    }
    if (p->dry_run) {
        answer_requests(&p->dry_asks, NULL, failure);
        end_dry(p);
        return false;
    }
    fail_list(p, code, failure);
    end(p, v, reply);
    return false;
}

static void list_scanned(struct poll *p, const struct list_found *found)
{
    const struct scan_outcome *dry = &found->dry;
    answer_requests(&p->dry_asks, dry->applied ? &dry->result : NULL, dry->failure);
    if (p->dry_run) {
        end_dry(p);
        return;
    }
    on_scan(p, found);
    end(p, &found->verdict, &found->reply);
}

/* ---- into memory ---------------------------------------------------------------------------- */

static const char *site_connect(const struct remote *r, const struct remote_source *s)
{
    const struct remote_bounds *bounds = &r->plan->bounds;
    for (size_t i = 0; s->settings->managed && i < bounds->site_count; i++)
        if (strlen(bounds->sites[i].origin) == s->upstream.origin_len &&
            memcmp(bounds->sites[i].origin, s->upstream.text, s->upstream.origin_len) == 0)
            return bounds->sites[i].connect;
    return NULL;
}

/* The first half is of the host map alone. All zero: no such setting. */
static void digest_settings(const struct remote *r, struct remote_source *s)
{
    const struct source_settings *settings = s->settings;
    const char *const texts[] = {settings->index, settings->connect, settings->ca_file,
                                 site_connect(r, s)};
    XXH128_hash_t hash = {0, 0};
    if (settings->map != NULL)
        hash = XXH3_128bits(settings->map, strlen(settings->map));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i] != NULL)
            hash.low64 = XXH3_64bits_withSeed(texts[i], strlen(texts[i]), hash.low64 + i + 1);
    s->digest[0] = hash.high64;
    s->digest[1] = hash.low64;
}

static bool same_settings(const struct check_record *k, const struct remote_source *s)
{
    return strcmp(k->loc, s->settings->upstream) == 0 &&
           memcmp(k->hash, s->digest, sizeof k->hash) == 0;
}

/* Polls the list again with the new settings, which may cure a failure. The sitemaps are read again
 * if the host map changed; the state of another upstream is dropped. */
static void reset_list(struct remote *r, const struct remote_source *s,
                       const struct check_record *k)
{
    bool is_new = k->next_at == 0, same_upstream = strcmp(k->loc, s->settings->upstream) == 0;
    struct check_record none = {.id = k->id,
                                .list = true,
                                .loc = s->settings->upstream,
                                .interval_s = s->settings->poll_ms / 1000};
    struct check_write reset = {
        .kind = CHECK_RESULT, .full_from = k->full_at, .record = same_upstream ? *k : none};
    reset.record.etag = reset.record.last_modified = NULL;
    reset.record.next_at = run_now(r);
    reset.record.urls = is_new || k->hash[0] == s->digest[0] ? k->urls : (uint64_t)run_now(r);
    memcpy(reset.record.hash, s->digest, sizeof reset.record.hash);
    run_write(r, &reset);
}

static void show_list(struct remote *r, struct remote_source *s, const struct check_record *k,
                      struct catalogue_view *view)
{
    struct source_state state;
    struct remote_status known = {.failing = k->problem != NULL,
                                  .failed_at = k->problem != NULL ? k->since : 0,
                                  .polled_at = k->checked_at,
                                  .next_poll_at = s->next_at,
                                  .http_status = k->status};
    snprintf(known.failure_code, sizeof known.failure_code, "%s",
             k->problem != NULL ? k->problem : "");
    snprintf(known.failure, sizeof known.failure, "%s", k->detail != NULL ? k->detail : "");
    if (catalogue_view_source_state(view, s->settings->name, &state) == CATALOGUE_OK) {
        known.members = state.files;
        known.held = state.held;
        known.refused = state.quarantined;
        s->whole = s->whole || state.held > 0;
    }
    pthread_mutex_lock(&r->lock);
    s->status = known;
    pthread_mutex_unlock(&r->lock);
}

static void load_list(struct remote *r, struct remote_source *s, const struct check_record *k,
                      struct catalogue_view *view)
{
    s->list_id = k->id;
    s->next_at = run_now(r);
    s->mapped_at = (int64_t)k->urls;
    s->whole = k->good_at == 0;
    if (k->checked_at == 0)
        return;
    s->answered = k->changed_at;
    s->full_at = k->full_at;
    s->good_at = k->good_at;
    s->since = k->since;
    s->failures = k->failures;
    s->claims_are_now = (k->marks & CHECK_CLAIMS_ARE_NOW) != 0;
    list_keep(&s->etag, k->etag);
    list_keep(&s->modified, k->last_modified);
    list_keep(&s->problem, k->problem);
    if (!s->fresh && k->next_at <= s->next_at + (int64_t)(s->settings->poll_ms / 1000) * 2)
        s->next_at = k->next_at;
    show_list(r, s, k, view);
}

void list_load_all(struct remote *r)
{
    struct catalogue_view *view;
    struct registry *registry;
    bool whole = true;
    for (size_t i = 0; i < r->plan->count; i++)
        whole = whole && r->sources[i].list_id != 0;
    if (whole)
        return;
    if (catalogue_view_begin(r->catalogue, &view) != CATALOGUE_OK) {
        r->load = true;
        return;
    }
    if (catalogue_view_registry(view, &registry) != CATALOGUE_OK) {
        catalogue_view_end(view);
        r->load = true;
        return;
    }
    for (size_t i = 0; i < r->plan->count; i++) {
        struct remote_source *s = &r->sources[i];
        struct check_record k;
        if (s->list_id != 0)
            continue;
        const struct registry_site *site = remote_site_of(registry, s->settings);
        s->site_id = site != NULL ? site->id : 0;
        digest_settings(r, s);
        if (catalogue_view_check_list(view, s->settings->name, &k) != CATALOGUE_OK) {
            struct check_write add = {.kind = CHECK_ADD,
                                      .record = {.loc = s->settings->upstream,
                                                 .source = s->settings->name,
                                                 .list = true,
                                                 .interval_s = s->settings->poll_ms / 1000}};
            run_write(r, &add);
        } else if (!same_settings(&k, s)) {
            reset_list(r, s, &k);
        } else {
            load_list(r, s, &k, view);
        }
    }
    registry_unref(registry);
    catalogue_view_end(view);
}

void list_show_all(struct remote *r)
{
    struct catalogue_view *view;
    if (catalogue_view_begin(r->catalogue, &view) != CATALOGUE_OK)
        return;
    for (size_t i = 0; i < r->plan->count; i++) {
        struct remote_source *s = &r->sources[i];
        struct check_record k;
        if (s->polling == NULL && s->asks == NULL && s->dry_asks == NULL && s->list_id != 0 &&
            catalogue_view_check_list(view, s->settings->name, &k) == CATALOGUE_OK) {
            s->next_at = k.next_at;
            show_list(r, s, &k, view);
        }
    }
    catalogue_view_end(view);
}

/* ---- beginning ------------------------------------------------------------------------------ */

static void refuse_list(struct remote *r, struct remote_source *source, const char *failure)
{
    source->next_at = run_now(r) + 60;
    pthread_mutex_lock(&r->lock);
    source->status.polling = false;
    pthread_mutex_unlock(&r->lock);
    answer_requests(&source->asks, NULL, failure);
    answer_requests(&source->dry_asks, NULL, failure);
}

void list_wait(struct remote *r, struct remote_source *source, int64_t now)
{
    if (source->good_at != 0 || source->problem != NULL)
        return;
    source->since = now;
    show_failure(r, source, "host-resting",
                 "the upstream's index was never read: its host is resting after 429, 503 or a "
                 "failed connection");
}

/* Whether its stored row has no validators any more, as after an undo of its entries. */
static bool is_forgotten(struct remote *r, struct remote_source *source)
{
    struct catalogue_view *view;
    struct check_record k;
    bool forgotten = false;
    if (catalogue_view_begin(r->catalogue, &view) != CATALOGUE_OK)
        return false;
    if (catalogue_view_check_list(view, source->settings->name, &k) == CATALOGUE_OK) {
        source->full_from = k.full_at;
        forgotten = k.etag == NULL && k.last_modified == NULL;
    }
    catalogue_view_end(view);
    return forgotten;
}

bool list_begin(struct remote *r, struct remote_source *source)
{
    struct remote_host *host = run_host(r, &source->upstream);
    struct poll *p = host != NULL ? poll_new(r, host) : NULL;
    enum catalogue_status status =
        p != NULL ? catalogue_registry(r->catalogue, &p->registry) : CATALOGUE_NO_MEMORY;
    if (status != CATALOGUE_OK) {
        if (p != NULL)
            poll_free(p);
        refuse_list(r, source, catalogue_status_word(status));
        return false;
    }
    p->list = true;
    p->source = source;
    p->failures = source->failures;
    p->url = source->upstream;
    source->polling = p;
    p->dry_run = source->dry_asks != NULL && source->asks == NULL && p->now < source->next_at;
    bool whole = is_forgotten(r, source) || source->whole || source->asks != NULL ||
                 source->dry_asks != NULL || p->now - source->full_at >= FULL_EVERY_S ||
                 p->now < source->full_at || source->problem != NULL ||
                 (source->status.refused > 0 && p->now - source->full_at >= REFUSED_EVERY_S);
    poll_begin_span(p, source->asks != NULL ? source->asks : source->dry_asks);
    poll_headers(p, whole ? NULL : source->etag, whole ? NULL : source->modified);
    pthread_mutex_lock(&r->lock);
    source->status.polling = true;
    pthread_mutex_unlock(&r->lock);
    if (!poll_request(p)) {
        poll_free(p);
        refuse_list(r, source, "out of memory");
        return false;
    }
    poll_enter_host(p);
    return true;
}

/* The scan of a list that was read runs on its own thread: it waits for its turn among the writes,
 * and polls must not wait for that. Scans run one at a time, in the order of arrival, so that only
 * one list's rows are in memory. Until a scan is over, its thread may read the poll and all that it
 * points to. The polling thread starts it, is woken at the end, and only then frees a cancelled
 * poll. */

struct list_scan {
    struct list_scan *next;
    struct poll *poll;
    struct fetch_loop *wake; /* of the polling thread */
    struct thread thread;
    bool has_dry, has_scan;
    atomic_bool over;
    struct upstream_scan dry, scan;
    struct list_found found;
};

/* ---- on its thread -------------------------------------------------------------------------- */

static void list_scan_run(void *context)
{
    struct list_scan *l = context;
    struct upstream *u = l->poll->upstream;
    bool ignored;
    if (l->has_dry)
        upstream_apply(u, &l->dry, &l->found.dry, &ignored);
    if (l->has_scan)
        upstream_apply(u, &l->scan, &l->found.out, &l->found.claims_are_now);
    atomic_store(&l->over, true);
    fetch_loop_wake(l->wake);
}

/* ---- on the thread of polls ----------------------------------------------------------------- */

static void start(struct list_scan *l)
{
    static const char failure[] = "cannot start a thread for the scan";
    if (thread_start(&l->thread, "list scan", list_scan_run, l))
        return;
    snprintf(l->found.out.failure, sizeof l->found.out.failure, "%s", failure);
    snprintf(l->found.dry.failure, sizeof l->found.dry.failure, "%s", failure);
    atomic_store(&l->over, true);
}

bool list_scan_begin(struct poll *p, const struct child_verdict *verdict, struct fetch_reply *reply)
{
    struct remote *r = p->remote;
    struct list_scan *l = calloc(1, sizeof *l), **end = &r->scans;
    if (l == NULL)
        return false;
    l->poll = p;
    l->wake = r->loop;
    l->found.verdict = *verdict;
    l->found.reply = *reply;
    l->found.answered = list_answered(p, reply);
    *reply = (struct fetch_reply){.status = 0};
    r->plan->held++; /* owns the settings; the poll may have another plan */
    remote_plan_free(p->plan);
    p->plan = r->plan;
    l->scan = (struct upstream_scan){.catalogue = r->catalogue,
                                     .settings = p->source->settings,
                                     .answered_before = p->source->answered,
                                     .answered = l->found.answered,
                                     .max_removed = list_most_removed(p->asks),
                                     .stop = &l->thread.stops};
    l->dry = l->scan;
    l->dry.dry_run = true;
    l->dry.max_removed = list_most_removed(p->dry_asks);
    l->has_dry = p->dry_asks != NULL;
    l->has_scan = !p->dry_run;
    p->host = NULL; /* the host may be forgotten meanwhile */
    p->scans = true;
    while (*end != NULL)
        end = &(*end)->next;
    *end = l;
    if (r->scans == l)
        start(l);
    return true;
}

static void scan_free(struct list_scan *l)
{
    fetch_reply_done(&l->found.reply);
    change_result_done(&l->found.dry.result);
    free(l);
}

/* Removes the first, waits for its end, and starts the next. */
static struct list_scan *collect(struct remote *r)
{
    struct list_scan *l = r->scans;
    thread_join(&l->thread);
    r->scans = l->next;
    return l;
}

void list_scan_step(struct remote *r)
{
    while (r->scans != NULL && atomic_load(&r->scans->over)) {
        struct list_scan *l = collect(r);
        if (r->scans != NULL)
            start(r->scans);
        if (!thread_stops(&l->thread))
            list_scanned(l->poll, &l->found);
        poll_free(l->poll);
        scan_free(l);
    }
}

bool list_scan_drop(struct poll *p)
{
    struct list_scan **at = &p->remote->scans, *l;
    while (*at != NULL && (*at)->poll != p)
        at = &(*at)->next;
    l = *at;
    if (l != NULL && thread_runs(&l->thread)) {
        thread_end(&l->thread);
        p->source->polling = NULL;
        p->source = NULL; /* the source may be gone by then */
        return true;
    }
    if (l != NULL) {
        *at = l->next;
        scan_free(l);
    }
    return false;
}

void list_scan_stop(struct remote *r)
{
    while (r->scans != NULL) {
        thread_end(&r->scans->thread);
        struct list_scan *l = collect(r);
        poll_free(l->poll);
        scan_free(l);
    }
}
