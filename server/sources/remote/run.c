/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The polling thread: begins due polls, writes results, and waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/shared.h"
#include "server/base/clock.h"
#include "server/rules/host_map.h"
#include "server/sources/child_store.h"
#include "server/sources/remote/run.h"

#define TICK_MS  1000  /* longest wait: the clock may have been set */
#define REST_MS  10000 /* the same if nothing is watched */
#define BATCH_MS 10000
#define QUIET_BATCH_MS                                                                             \
    60000 /* for results without news: after a crash these polls are repeated                      \
           */
#define RETRY_MS        5000
#define RETRY_DOUBLED   4u /* at most 80 s between tries to store results */
#define CLOCK_SLACK_S   60
#define LOOKED_MOST     64   /* sitemaps of a host in one step */
#define SITE_REMOVED_S  3600 /* until a sitemap of a removed site is checked again */
#define END_LANDING_MS  500
#define ASK_MS          20 /* while a caller waits for a poll */
#define ASKS_OF_SITE    8  /* requested polls that may wait; each reads the catalogue */
#define SCANS_OF_SOURCE 4  /* requested scans that may wait; each keeps a connection waiting */
#define HOSTS_LEAST     64 /* fewer hosts, or parts of one, are not worth a sweep */

int64_t run_now(const struct remote *r)
{
    return catalogue_now(r->catalogue);
}

uint32_t run_chance(struct remote *r)
{
    r->chance = r->chance * 1664525u + 1013904223u; /* need not be secure */
    return r->chance >> 8;
}

struct remote_host *run_host(struct remote *r, const struct url *url)
{
    uint32_t hash = map_hash(MAP_HASH_BASIS, url->text, url->origin_len), at;
    for (struct map_probe p = map_probe(&r->host_map, hash); map_next(&p, &at);) {
        const char *origin = r->hosts[at]->origin;
        if (strncmp(origin, url->text, url->origin_len) == 0 && origin[url->origin_len] == '\0')
            return r->hosts[at];
    }
    if (r->host_count == r->host_capacity) {
        size_t capacity = r->host_capacity ? r->host_capacity * 2 : 16;
        struct remote_host **hosts = realloc(r->hosts, capacity * sizeof *hosts);
        if (hosts == NULL)
            return NULL;
        r->hosts = hosts;
        r->host_capacity = capacity;
    }
    struct remote_host *host = calloc(1, sizeof *host);
    if (host != NULL)
        host->origin = strndup(url->text, url->origin_len);
    if (host == NULL || host->origin == NULL ||
        !map_add(&r->host_map, hash, (uint32_t)r->host_count)) {
        if (host != NULL)
            free(host->origin);
        free(host);
        return NULL;
    }
    r->hosts[r->host_count++] = host;
    return host;
}

struct host_part *run_part(struct remote_host *host, int64_t site_id)
{
    struct host_part *part = site_table_find(&host->parts, site_id);
    if (part == NULL && (part = site_table_add(&host->parts, site_id, sizeof *part)) != NULL)
        part->turn = host->turns;
    return part;
}

static struct host_part *part_after(const struct remote_host *host, const struct host_part *part)
{
    return site_table_next(&host->parts, part);
}

static bool has_due(const struct remote_host *host)
{
    for (struct host_part *part = NULL; (part = part_after(host, part)) != NULL;)
        if (part->heap.count > 0)
            return true;
    return false;
}

static double load_of(const struct remote_host *host)
{
    double load = 0;
    for (struct host_part *part = NULL; (part = part_after(host, part)) != NULL;)
        load += part->heap.load;
    return load;
}

static void host_free(struct remote_host *host)
{
    for (struct host_part *part = NULL; (part = part_after(host, part)) != NULL;)
        due_done(&part->heap);
    site_table_done(&host->parts);
    free(host->origin);
    free(host);
}

static void sweep_parts(const struct remote *r, struct remote_host *host)
{
    if (host->parts.count < host->sweep_at || r->registry == NULL)
        return;
    for (struct host_part *part = part_after(host, NULL), *next; part != NULL; part = next) {
        next = part_after(host, part);
        if (part->heap.count > 0 || part->pace.running > 0 || part->row.site_id == 0 ||
            registry_site_by_id(r->registry, part->row.site_id) != NULL)
            continue;
        due_done(&part->heap);
        site_table_remove(&host->parts, part);
    }
    host->sweep_at = host->parts.count * 2 > HOSTS_LEAST ? host->parts.count * 2 : HOSTS_LEAST;
}

void run_sweep_hosts(struct remote *r)
{
    struct map left = {0};
    size_t count = 0;
    for (size_t i = 0; i < r->host_count; i++)
        sweep_parts(r, r->hosts[i]);
    if (r->host_count < r->sweep_at || !map_reserve(&left, r->host_count))
        return;
    for (size_t i = 0; i < r->host_count; i++) {
        struct remote_host *host = r->hosts[i];
        if (!has_due(host) && host->pace.running == 0 && host->apart == 0 && !host->has_list) {
            host_free(host);
            continue;
        }
        host->has_list = false; /* begin_lists sets it again */
        map_add(&left, map_hash(MAP_HASH_BASIS, host->origin, strlen(host->origin)),
                (uint32_t)count);
        r->hosts[count++] = host;
    }
    map_done(&r->host_map);
    r->host_map = left;
    r->host_count = count;
    r->sweep_at = count * 2 > HOSTS_LEAST ? count * 2 : HOSTS_LEAST;
}

struct remote_source *run_source(struct remote *r, const char *name)
{
    for (size_t i = 0; *name != '\0' && i < r->plan->count; i++)
        if (strcmp(r->plan->settings[i].name, name) == 0)
            return &r->sources[i];
    return NULL;
}

bool run_request_url(const struct remote_source *source, const char *loc, struct url *out)
{
    struct url url;
    if (!url_split(loc, strlen(loc), &url))
        return false;
    host_map_reverse(source != NULL ? source->settings->host_map : NULL,
                     source != NULL ? &source->upstream : NULL, &url, out);
    return true;
}

void run_enqueue(struct remote *r, struct remote_host *host, int64_t site_id, struct due due)
{
    struct host_part *part = run_part(host, site_id);
    if (part == NULL || !due_add(&part->heap, due))
        r->load = true; /* loaded again from the catalogue, once there is memory */
}

void run_move_due(struct remote *r, const int64_t *ids, size_t count, uint32_t at)
{
    for (size_t i = 0; i < r->host_count; i++)
        for (struct host_part *part = NULL; (part = part_after(r->hosts[i], part)) != NULL;)
            due_move(&part->heap, ids, count, at);
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

/* At most what it would be if each part had the same share of the host's rate. */
double run_stretch(const struct remote *r, const struct remote_host *host, int64_t site_id)
{
    const struct host_part *of_site = site_table_find(&host->parts, site_id);
    double load = load_of(host), own = of_site != NULL ? of_site->heap.load : 0;
    size_t loaded = 0;
    for (struct host_part *part = NULL; (part = part_after(host, part)) != NULL;)
        loaded += part->heap.count > 0;
    if (own > 0 && own * (double)loaded < load)
        load = own * (double)loaded;
    double pressure = host_pressure(&host->pace, load, r->plan->bounds.rate);
    if (of_site != NULL)
        pressure = most(pressure, host_pressure(&of_site->pace, own, r->plan->bounds.rate));
    return most(pressure, 1);
}

struct interval_bounds run_bounds(const struct remote *r)
{
    return (struct interval_bounds){r->plan->bounds.min_interval_s, r->plan->bounds.max_interval_s};
}

/* ---- writing results ------------------------------------------------------------------------ */

bool run_write(struct remote *r, const struct check_write *write)
{
    if (r->batch_count == CHECK_WRITES_MAX)
        return false;
    struct check_write *to = &r->batch[r->batch_count];
    struct check_record *k = &to->record;
    bool failed = false;
    *to = *write;
    const char **const texts[] = {&k->loc,           &k->source,         &k->etag,    &k->remarks,
                                  &k->last_modified, &k->newest_lastmod, &k->problem, &k->detail,
                                  &to->lastmod_to,   &to->lastmod_from};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = record_keep(&r->texts, *texts[i], &failed);
    if (failed)
        return false;
    if (r->batch_count++ == 0)
        r->batch_at_ms = clock_now_ms();
    if (write->kind != CHECK_RESULT || k->list || to->lastmod_to != NULL)
        r->batch_is_news = true;
    return true;
}

static void flight_free(struct flight *f)
{
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void on_landed(void *context, struct change_result *result)
{
    struct flight *f = context;
    pthread_mutex_lock(&f->lock);
    f->landed = true;
    f->status = result->status;
    f->revision = result->changed ? result->revision : 0;
    bool orphan = f->orphan;
    if (f->loop != NULL)
        fetch_loop_wake(f->loop);
    pthread_mutex_unlock(&f->lock);
    if (orphan)
        flight_free(f);
}

/* Whether a newer row of the sitemap waits to be written. */
static bool is_unwritten(const struct remote *r, int64_t id)
{
    for (size_t i = 0; i < r->batch_count; i++)
        if (r->batch[i].record.id == id)
            return true;
    for (size_t i = 0; r->flight != NULL && i < r->flying_count; i++)
        if (r->flying[i] == id)
            return true;
    return false;
}

void run_flush(struct remote *r)
{
    if (r->flight != NULL || r->batch_count == 0)
        return;
    struct flight *f = calloc(1, sizeof *f);
    if (f == NULL)
        return; /* try again later */
    pthread_mutex_init(&f->lock, NULL);
    f->loop = r->loop;
    r->flight = f;
    r->landing = r->waiting;
    r->waiting = NULL;
    r->landing_reports = r->reports;
    r->reports = NULL;
    const struct change change = {.kind = CHANGE_CHECK,
                                  .check = {.writes = r->batch, .count = r->batch_count},
                                  .by = "check",
                                  .via = "source",
                                  .context = f};
    for (size_t i = 0; i < r->batch_count; i++)
        r->flying[i] = r->batch[i].record.id;
    r->flying_count = r->batch_count;
    catalogue_submit(r->catalogue, &change, on_landed);
    r->batch_count = 0;
    r->batch_number++;
    r->batch_is_news = false;
    record_list_done(&r->texts);
}

static bool has_landed(const struct remote *r, uint64_t batch)
{
    return batch + (r->flight != NULL) < r->batch_number;
}

/* Answers requested polls whose rows have been written. */
static void answer_polls(struct remote *r, enum catalogue_status status)
{
    struct catalogue_view *view = NULL;
    struct check_record record;
    if (r->landing != NULL && status == CATALOGUE_OK)
        status = catalogue_view_begin(r->catalogue, &view);
    while (r->landing != NULL) {
        struct remote_ask *ask = r->landing;
        r->landing = ask->next;
        enum catalogue_status found =
            view != NULL ? catalogue_view_check(view, ask->check_id, &record) : status;
        remote_request_answer(
            ask, found == CATALOGUE_OK ? &record : NULL,
            found == CATALOGUE_OK ? "" : "the catalogue rejected the result of the poll");
    }
    if (view != NULL)
        catalogue_view_end(view);
}

static void answer_all(struct remote_ask *asks, const char *failure)
{
    while (asks != NULL) {
        struct remote_ask *next = asks->next;
        remote_request_fail(asks, failure);
        asks = next;
    }
}

/* ---- into memory ---------------------------------------------------------------------------- */

static void forget(struct remote *r)
{
    for (size_t i = 0; i < r->host_count; i++)
        for (struct host_part *part = NULL; (part = part_after(r->hosts[i], part)) != NULL;) {
            part->heap.count = 0;
            part->heap.load = 0;
        }
    r->max_id = 0;
}

static void land(struct remote *r)
{
    struct flight *f = r->flight;
    if (f == NULL)
        return;
    pthread_mutex_lock(&f->lock);
    bool landed = f->landed;
    enum catalogue_status status = f->status;
    uint64_t revision = f->revision;
    pthread_mutex_unlock(&f->lock);
    if (!landed)
        return;
    flight_free(f);
    r->flight = NULL;
    /* Changes of dates by our own change cannot add sitemaps to watch. */
    if (revision == r->look.revision + 1)
        r->look.revision = revision;
    check_report_all(r, &r->landing_reports, status == CATALOGUE_OK);
    answer_polls(r, status);
    if (status == CATALOGUE_OK) {
        r->logged_not_kept = false;
        r->failed_writes = 0;
        list_load_all(r);
        watch_load(r);
        return;
    }
    /* shared_node.c reports that PostgreSQL is away. */
    if (!r->logged_not_kept && status != CATALOGUE_SHARED_AWAY) {
        r->logged_not_kept = true;
        remote_report(r, 1, "check-not-kept", NULL,
                      "results of polls could not be stored (%s); retrying",
                      catalogue_status_word(status));
    }
    /* The stored state is loaded again, and what was due then is polled again. */
    r->load = true;
    r->load_at_ms = clock_now_ms() + ((int64_t)RETRY_MS << r->failed_writes);
    if (r->failed_writes < RETRY_DOUBLED)
        r->failed_writes++;
}

static void load(struct remote *r, int64_t now_ms)
{
    if (!r->load || now_ms < r->load_at_ms || r->flight != NULL)
        return;
    if (r->batch_count > 0) { /* first write the collected results */
        run_flush(r);
        return;
    }
    r->load = r->fresh = false;
    for (size_t i = 0; i < r->plan->count; i++)
        r->sources[i].fresh = false;
    while (r->polls != NULL)
        poll_cancel(r->polls, "the poll was interrupted; retry");
    answer_all(r->waiting, "the poll was interrupted; retry");
    r->waiting = NULL;
    check_report_all(r, &r->reports, false);
    r->batch_count = 0;
    r->batch_is_news = false;
    record_list_done(&r->texts);
    forget(r);
    list_load_all(r);
    if (!watch_load(r) || r->load) {
        r->load = true;
        r->load_at_ms = now_ms + RETRY_MS;
        return;
    }
    watch_count(r);
    atomic_store(&r->look_soon, true);
    run_flush(r);
}

/* Loads new and changed sources into memory; the others stay. Reads all rows, and pauses like a
 * pass of watch.c: a client that changes sources without end must not take the thread from others.
 */
static void load_fresh(struct remote *r)
{
    if (!r->fresh || r->load || r->flight != NULL)
        return;
    if (r->batch_count > 0) {
        run_flush(r);
        return;
    }
    int64_t began_ms = clock_now_ms();
    list_load_all(r);
    if (began_ms >= r->fresh_at_ms) {
        r->fresh = false;
        if (!watch_load_fresh(r))
            r->load = true;
        watch_count(r);
        int64_t end_ms = clock_now_ms();
        r->fresh_at_ms = end_ms + interval_rest_ms(end_ms - began_ms);
        atomic_store(&r->look_soon, true);
    }
    run_flush(r);
}

static void source_done(struct remote_source *s)
{
    free(s->etag);
    free(s->modified);
    free(s->problem);
    free(s->split_let);
}

/* Takes over the requested plan, which no other thread frees from now on. NULL: none, or it is
 * unchanged. */
static struct remote_plan *collect_wanted(struct remote *r)
{
    pthread_mutex_lock(&r->lock);
    struct remote_plan *plan = r->wanted;
    r->wanted = NULL;
    pthread_mutex_unlock(&r->lock);
    if (plan == NULL || r->plan == NULL || !remote_plan_equal(plan, r->plan))
        return plan;
    remote_plan_free(plan);
    return NULL;
}

static struct remote_source *make_sources(const struct remote_plan *plan)
{
    struct remote_source *sources = calloc(plan->count + 1, sizeof *sources);
    for (size_t i = 0; sources != NULL && i < plan->count; i++) {
        sources[i].settings = &plan->settings[i];
        sources[i].mapped_at = INT64_MAX;
        url_parse(plan->settings[i].upstream, strlen(plan->settings[i].upstream),
                  &sources[i].upstream, NULL);
    }
    return sources;
}

static const char anew[] = "the configuration was reloaded; retry";

static struct remote_source *find_same(const struct remote_plan *plan,
                                       struct remote_source *sources,
                                       const struct source_settings *settings)
{
    for (size_t i = 0; i < plan->count; i++)
        if (source_settings_equal(&plan->settings[i], settings))
            return &sources[i];
    return NULL;
}

/* Cancels polls of sources that have changed or are gone. Others continue: a change by one site's
 * token must not affect other sites. */
static void cancel_polls(struct remote *r, const struct remote_plan *plan,
                         struct remote_source *sources, bool all)
{
    for (struct poll *p = r->polls, *next; p != NULL; p = next) {
        next = p->next;
        if (all || (p->source != NULL && find_same(plan, sources, p->source->settings) == NULL))
            poll_cancel(p, anew);
    }
}

/* Moves the state of an unchanged source, with its waiting requests and polls under way. */
static void move_source(struct remote *r, struct remote_source *from, struct remote_source *to)
{
    const struct source_settings *settings = to->settings;
    for (struct poll *p = r->polls; p != NULL; p = p->next)
        if (p->source == from)
            p->source = to;
    *to = *from;
    to->settings = settings;
    *from = (struct remote_source){.settings = from->settings};
}

/* Call it under `lock`. */
static void move_sources(struct remote *r, const struct remote_plan *plan,
                         struct remote_source *sources)
{
    for (size_t i = 0; i < plan->count; i++)
        sources[i].fresh = true;
    for (size_t i = 0; i < r->plan->count; i++) {
        struct remote_source *same = find_same(plan, sources, r->sources[i].settings);
        if (same != NULL)
            move_source(r, &r->sources[i], same);
    }
}

/* Applies changed settings. */
static void apply_plan(struct remote *r)
{
    struct remote_plan *plan = collect_wanted(r), *old = r->plan;
    if (plan == NULL)
        return;
    struct remote_source *sources = make_sources(plan), *ended = r->sources;
    if (sources == NULL) { /* try again later, unless there is a newer plan by then */
        pthread_mutex_lock(&r->lock);
        bool passed = r->wanted != NULL;
        r->wanted = passed ? r->wanted : plan;
        pthread_mutex_unlock(&r->lock);
        if (passed)
            remote_plan_free(plan);
        return;
    }
    bool all = old == NULL || !remote_plan_same_bounds(old, plan);
    cancel_polls(r, plan, sources, all);
    pthread_mutex_lock(&r->lock);
    if (!all)
        move_sources(r, plan, sources);
    r->plan = plan;
    r->sources = sources;
    r->status_count = plan->count;
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; old != NULL && i < old->count; i++) {
        answer_all(ended[i].asks, anew);
        answer_all(ended[i].dry_asks, anew);
        source_done(&ended[i]);
    }
    free(ended);
    remote_plan_free(old);
    r->load = r->load || all;
    r->load_at_ms = all ? 0 : r->load_at_ms;
    r->fresh = !all;
    atomic_store(&r->look_soon, true); /* removes what is no longer wanted */
}

/* ---- requests ------------------------------------------------------------------------------- */

static void request_scan(struct remote *r, struct remote_ask *ask)
{
    struct remote_source *s = run_source(r, ask->name);
    if (s == NULL) {
        remote_request_fail(ask, "source not found: no remote source has this name");
        return;
    }
    struct remote_ask **of_its_kind = ask->dry_run ? &s->dry_asks : &s->asks;
    size_t waiting = 0;
    for (const struct remote_ask *a = *of_its_kind; a != NULL; a = a->next)
        waiting++;
    if (waiting >= SCANS_OF_SOURCE) {
        remote_request_fail(ask, "busy: too many scans of this source are waiting; retry later");
        return;
    }
    ask->next = *of_its_kind;
    *of_its_kind = ask;
    if (!ask->dry_run)
        s->next_at = 0;
}

static const struct poll *find_poll(const struct remote *r, int64_t id)
{
    const struct poll *p = r->polls;
    while (p != NULL && (p->list || p->record.id != id))
        p = p->next;
    return p;
}

/* Whether the site uses all of the host's concurrent requests but one. That one is for other sites
 * with sitemaps or lists on the host, since this site's requests may be slow. */
static bool holds_host(const struct remote *r, const struct remote_host *host, int64_t site_id)
{
    uint32_t running = 0, per_host = r->plan->bounds.per_host;
    bool shared = false;
    for (const struct poll *p = r->polls; p != NULL; p = p->next) {
        bool own = poll_site_id(p) == site_id;
        shared = shared || (p->host == host && !own);
        running += p->host == host && !p->splits && !p->scans && p->look == NULL && own;
    }
    if (per_host <= 1 || running < per_host - 1)
        return false;
    for (struct host_part *part = NULL; !shared && (part = part_after(host, part)) != NULL;)
        shared = part->row.site_id != site_id &&
                 (part->heap.count > 0 || part->listed_in + 1 >= r->list_turn);
    return shared;
}

static int64_t part_ready_at(const struct remote *r, const struct remote_host *host,
                             const struct host_part *part)
{
    int64_t of_host = host_ready_at(&host->pace, r->plan->bounds.per_host);
    int64_t own = host_ready_at(&part->pace, r->plan->bounds.per_host);
    return own > of_host ? own : of_host;
}

/* Polls a sitemap before its time. False: it must wait for its host, or for polls or writes under
 * way. */
static bool request_poll(struct remote *r, struct remote_ask *ask, int64_t now_ms)
{
    struct catalogue_view *view;
    struct check_record k;
    struct url url;
    struct due due = {0};
    bool has_url = false;
    if (r->flight != NULL || r->batch_count > 0 || r->polling >= RUN_TRANSFERS) {
        run_flush(r);
        return false;
    }
    enum catalogue_status status = catalogue_view_begin(r->catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = catalogue_view_check_by_loc(view, ask->site_id, ask->loc, &k);
        if (status == CATALOGUE_OK) {
            due = (struct due){k.id, (uint32_t)k.next_at, k.interval_s};
            has_url = run_request_url(run_source(r, k.source), ask->loc, &url);
        }
        catalogue_view_end(view); /* ends the record's texts, too */
    }
    if (status == CATALOGUE_OK && ask->copied != NULL &&
        child_store_has(r->options.store, ask->site_id, ask->loc, k.hash))
        status = CATALOGUE_NOT_FOUND; /* the copy exists now */
    struct remote_host *host = status == CATALOGUE_OK && has_url ? run_host(r, &url) : NULL;
    if (host == NULL) {
        remote_request_fail(
            ask, "the sitemap is not polled: no source or site with check = yes watches it");
        return true;
    }
    struct host_part *part = run_part(host, k.site_id);
    if (part == NULL) {
        remote_request_fail(ask, "out of memory");
        return true;
    }
    if (host_rests(&part->pace, now_ms)) {
        remote_request_fail(
            ask, "its host is resting after 429, 503 or a failed connection; it is polled later");
        return true;
    }
    const struct poll *polled = find_poll(r, due.id);
    if (polled != NULL && polled->splits) {
        remote_request_fail(ask, "conflict: it is already being fetched or split; retry later");
        return true;
    }
    if (polled != NULL || part_ready_at(r, host, part) > now_ms || holds_host(r, host, k.site_id))
        return false;
    const char *why;
    due_move(&part->heap, &due.id, 1, 0);
    if (!check_begin(r, host, due, ask, &why)) {
        if (why != NULL)
            run_enqueue(r, host, k.site_id, due);
        remote_request_fail(ask, why != NULL ? why
                                             : "the sitemap is no longer polled: no source or "
                                               "site with check = yes watches it");
    }
    return true;
}

/* Whether enough requests of the site wait already: a client of a slow host must not take the
 * thread from others. */
static bool is_crowded(const struct remote_ask *kept, int64_t site_id)
{
    size_t count = 0;
    for (; kept != NULL; kept = kept->next)
        count += kept->site_id == site_id;
    return count >= ASKS_OF_SITE;
}

/* Ends the wait of requests for a copy after their time; the poll continues. */
static void end_waits(struct remote *r, int64_t now_ms)
{
    for (struct poll *p = r->polls; p != NULL; p = p->next)
        if (p->ask != NULL && p->ask->copied != NULL && now_ms > p->ask->until_ms) {
            remote_request_fail(p->ask, "");
            p->ask = NULL;
        }
}

/* Returns how long until it must be called again. */
static int64_t serve_requests(struct remote *r, int64_t now_ms)
{
    end_waits(r, now_ms);
    pthread_mutex_lock(&r->lock);
    struct remote_ask *asks = r->asks;
    if (r->wanted != NULL) { /* the new plan may have the requested source */
        pthread_mutex_unlock(&r->lock);
        return ASK_MS;
    }
    r->asks = NULL;
    r->asks_end = &r->asks;
    pthread_mutex_unlock(&r->lock);
    struct remote_ask *kept = NULL, **end = &kept;
    while (asks != NULL) {
        struct remote_ask *ask = asks;
        asks = ask->next;
        ask->next = NULL;
        if (ask->name != NULL) {
            request_scan(r, ask);
        } else if (ask->copied != NULL && now_ms > ask->until_ms) {
            remote_request_fail(ask, "");
        } else if (is_crowded(kept, ask->site_id)) {
            remote_request_fail(ask, "busy: too many polls of its site are waiting; retry later");
        } else if (!request_poll(r, ask, now_ms)) {
            *end = ask;
            end = &ask->next;
        }
    }
    if (kept == NULL)
        return TICK_MS;
    pthread_mutex_lock(&r->lock);
    *end = r->asks;
    if (r->asks == NULL)
        r->asks_end = end;
    r->asks = kept;
    pthread_mutex_unlock(&r->lock);
    return ASK_MS;
}

/* ---- what is due ---------------------------------------------------------------------------- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether there is room to write the results of all polls under way and one more. */
static bool has_room(const struct remote *r)
{
    return r->polling < RUN_TRANSFERS && r->batch_count + r->polling < CHECK_WRITES_MAX;
}

/* Whether the site has as many polls of lists under way as places are free: several sites with slow
 * hosts leave some to others. `lists`: polls of lists under way. */
static bool holds_lists(const struct remote *r, const struct remote_source *source, size_t lists)
{
    size_t count = 0;
    for (const struct poll *p = r->polls; p != NULL; p = p->next)
        count += p->list && p->source->site_id == source->site_id;
    return !site_has_room(count, lists, 1, RUN_SHARE);
}

static int64_t begin_lists(struct remote *r, int64_t now, int64_t now_ms)
{
    int64_t wait = TICK_MS;
    size_t lists = 0;
    for (const struct poll *p = r->polls; p != NULL; p = p->next)
        lists += p->list;
    r->list_turn++;
    for (size_t i = 0; i < r->plan->count; i++) {
        struct remote_source *s = &r->sources[(r->list_turn + i) % r->plan->count];
        struct remote_host *host = run_host(r, &s->upstream);
        struct host_part *part = host != NULL ? run_part(host, s->site_id) : NULL;
        if (host != NULL)
            host->has_list = true;
        if (part != NULL)
            part->listed_in = r->list_turn;
        if (s->polling != NULL || s->list_id == 0)
            continue;
        if (s->news && has_landed(r, s->news_in)) {
            s->news = false;
            s->whole = true;
            s->next_at = now;
        }
        bool asked = s->asks != NULL || s->dry_asks != NULL;
        bool due = s->next_at <= now && r->leads;
        bool rests = part != NULL && !asked && host_rests(&part->pace, now_ms);
        bool full =
            host != NULL && !asked &&
            (host->pace.running >= r->plan->bounds.per_host || holds_host(r, host, s->site_id));
        int64_t paced_ms = part != NULL ? part->pace.next_ms : 0;
        if (host != NULL && host->pace.next_ms > paced_ms)
            paced_ms = host->pace.next_ms; /* a scan on request waits, too */
        if (due && rests)
            list_wait(r, s, now);
        else if ((due || asked) && paced_ms > now_ms)
            wait = least(wait, paced_ms - now_ms);
        else if ((due || asked) && !full && has_room(r) && !holds_lists(r, s, lists))
            lists += list_begin(r, s);
        else if (s->next_at > now)
            wait = least(wait, (s->next_at - now) * 1000);
    }
    return wait;
}

/* The part that is due, does not rest and has not had a turn for longest, else the one that is
 * first; `*wait`: in so many milliseconds. NULL: all are empty, or must wait for polls under way.
 */
static struct host_part *next_part(const struct remote *r, const struct remote_host *host,
                                   int64_t now, int64_t now_ms, int64_t *wait)
{
    struct host_part *first = NULL;
    for (struct host_part *part = NULL; (part = part_after(host, part)) != NULL;) {
        int64_t ready = part_ready_at(r, host, part);
        if (part->heap.count == 0 || ready == INT64_MAX)
            continue; /* the end of a request wakes the thread */
        int64_t due_ms = ((int64_t)part->heap.at[0].at - now) * 1000;
        int64_t in_ms = greatest(0, greatest(ready - now_ms, due_ms));
        bool before = first == NULL || in_ms < *wait || (in_ms == 0 && part->turn < first->turn);
        if (before && !holds_host(r, host, part->row.site_id)) {
            first = part;
            *wait = in_ms;
        }
    }
    return first;
}

static int64_t begin_of_host(struct remote *r, struct remote_host *host, int64_t now,
                             int64_t now_ms)
{
    struct host_part *part;
    int64_t wait = 0;
    for (unsigned looked = 0; (part = next_part(r, host, now, now_ms, &wait)) != NULL; looked++) {
        if (wait > 0)
            return wait;
        if (!has_room(r))
            return TICK_MS;
        if (looked == LOOKED_MOST) /* many of them are no longer watched */
            return 0;
        const char *why;
        struct due due = due_pop(&part->heap);
        int64_t site_id = part->row.site_id;
        part->turn = ++host->turns;
        if (is_unwritten(r, due.id)) { /* the clock jumped: it is due before its row is written */
            run_flush(r);
            due.at = (uint32_t)now + 1;
            run_enqueue(r, host, site_id, due);
            continue;
        }
        bool begun = check_begin(r, host, due, NULL, &why);
        if (!begun && why == check_site_removed) { /* an undo may bring the site back */
            due.at = (uint32_t)(now + SITE_REMOVED_S);
            run_enqueue(r, host, site_id, due);
        } else if (!begun && why != NULL) {
            due.at = (uint32_t)(now + RETRY_MS / 1000);
            run_enqueue(r, host, site_id, due);
            return TICK_MS;
        }
    }
    return TICK_MS;
}

/* Hosts take turns, so that the first of many does not use all concurrent polls. */
static int64_t begin_children(struct remote *r, int64_t now, int64_t now_ms)
{
    int64_t wait = TICK_MS;
    for (size_t i = 0; r->leads && i < r->host_count; i++)
        wait = least(wait, begin_of_host(r, r->hosts[(r->turn + i) % r->host_count], now, now_ms));
    r->turn = r->host_count > 0 ? (r->turn + 1) % r->host_count : 0;
    return wait;
}

static void measure(struct remote *r, int64_t now, int64_t now_ms)
{
    uint32_t resting = 0;
    double pressure = 0;
    int64_t late = 0;
    for (size_t i = 0; i < r->host_count; i++) {
        const struct remote_host *host = r->hosts[i];
        bool rests = false;
        pressure = most(pressure, host_pressure(&host->pace, load_of(host), r->plan->bounds.rate));
        for (struct host_part *part = NULL; (part = part_after(host, part)) != NULL;) {
            const struct host_pace *pace = &part->pace;
            const struct due_heap *heap = &part->heap;
            rests = rests || host_rests(pace, now_ms);
            pressure = most(pressure, host_pressure(pace, heap->load, r->plan->bounds.rate));
            if (heap->count > 0 && now - (int64_t)heap->at[0].at > late)
                late = now - (int64_t)heap->at[0].at;
        }
        resting += rests;
    }
    pthread_mutex_lock(&r->lock);
    r->counts.hosts_resting = resting;
    r->counts.pressure = pressure;
    r->counts.lateness_s = (uint32_t)late;
    pthread_mutex_unlock(&r->lock);
}

/* If the clock was set back, shifts all due times, or nothing would be due for that long. */
static void check_clock(struct remote *r, int64_t now_ms)
{
    int64_t offset = run_now(r) * 1000 - now_ms;
    int64_t set = (offset - r->clock_offset) / 1000;
    bool known = r->clock_offset != 0;
    r->clock_offset = offset;
    if (!known || set > -CLOCK_SLACK_S)
        return;
    for (size_t i = 0; i < r->host_count; i++) {
        for (struct host_part *part = NULL; (part = part_after(r->hosts[i], part)) != NULL;) {
            due_shift(&part->heap, set);
            part->spread_at = 0;
        }
    }
    for (size_t i = 0; i < r->plan->count; i++)
        r->sources[i].next_at += set;
}

/* In a shared catalogue one node polls by schedule; the others only serve requests. A node that
 * takes over loads the current state from the catalogue. */
static void check_leadership(struct remote *r)
{
    bool led = r->leads;
    r->leads = catalogue_leads(r->catalogue, REMOTE_LEAD);
    if (r->leads && !led && r->followed) {
        r->load = true;
        for (size_t i = 0; i < r->plan->count; i++)
            r->sources[i].list_id = 0;
    }
    r->followed = !r->leads;
}

/* Answers all requests that wait for their turn. */
static void answer_requests(struct remote *r, const char *failure)
{
    pthread_mutex_lock(&r->lock);
    struct remote_ask *asks = r->asks;
    r->asks = NULL;
    r->asks_end = &r->asks;
    pthread_mutex_unlock(&r->lock);
    answer_all(asks, failure);
}

/* Nothing is watched, and nothing is under way: only a change of the registry or of the settings
 * gives work, and then remote_wake or remote_reconfigure wakes the thread. In a shared catalogue
 * leadership does, too. */
static bool is_unemployed(const struct remote *r)
{
    struct shared_state shared;
    bool watches = r->plan->count > 0 || r->host_count > 0 || r->registry == NULL ||
                   catalogue_shared_state(r->catalogue, &shared);
    for (size_t i = 0; !watches && i < r->registry->site_count; i++)
        watches = r->registry->sites[i].check;
    return !watches && !r->load && !r->fresh && r->flight == NULL && r->batch_count == 0 &&
           r->polls == NULL && r->split == NULL && r->scans == NULL && !atomic_load(&r->look_soon);
}

static int64_t step(struct remote *r)
{
    int64_t now_ms = clock_now_ms();
    apply_plan(r);
    if (r->plan == NULL) /* no memory yet */
        return TICK_MS;
    land(r);
    split_step(r);
    list_scan_step(r);
    check_leadership(r);
    check_clock(r, now_ms);
    load(r, now_ms);
    load_fresh(r);
    if (r->load) {
        if (r->failed_writes > 0 && r->flight == NULL)
            answer_requests(r, "busy: results of polls cannot be stored now; retry later");
        return TICK_MS;
    }
    run_sweep_hosts(r);
    int64_t wait = serve_requests(r, now_ms);
    int64_t now = run_now(r);
    wait = least(wait, begin_lists(r, now, now_ms));
    wait = least(wait, begin_children(r, now, now_ms));
    int64_t keeps_ms = r->batch_is_news ? BATCH_MS : QUIET_BATCH_MS;
    if (r->batch_count > 0 &&
        (r->waiting != NULL || r->batch_count + r->polling >= CHECK_WRITES_MAX ||
         now_ms - r->batch_at_ms >= keeps_ms))
        run_flush(r);
    if (r->leads)
        watch_step(r, now_ms);
    else
        watch_follow(r, now_ms);
    measure(r, now, now_ms);
    if (r->leads && r->look.phase != LOOK_REST && r->flight == NULL)
        return 0;
    if (wait == TICK_MS && is_unemployed(r))
        return REST_MS;
    return wait < 0 ? 0 : wait;
}

/* ---- beginning and end ---------------------------------------------------------------------- */

/* Writes the collected results if the catalogue accepts them soon. */
static void end_flight(struct remote *r)
{
    int64_t until = clock_now_ms() + END_LANDING_MS;
    while ((r->flight != NULL || r->batch_count > 0) && clock_now_ms() < until) {
        if (r->flight == NULL)
            run_flush(r);
        fetch_loop_poll(r->loop, 20);
        struct flight *f = r->flight;
        if (f == NULL)
            break;
        pthread_mutex_lock(&f->lock);
        bool landed = f->landed;
        enum catalogue_status status = f->status;
        pthread_mutex_unlock(&f->lock);
        if (!landed)
            continue;
        flight_free(f);
        r->flight = NULL;
        check_report_all(r, &r->landing_reports, status == CATALOGUE_OK);
        answer_polls(r, status);
        if (status != CATALOGUE_OK)
            break;
    }
    if (r->flight != NULL) {
        struct flight *f = r->flight;
        pthread_mutex_lock(&f->lock);
        bool landed = f->landed;
        f->orphan = true;
        f->loop = NULL;
        pthread_mutex_unlock(&f->lock);
        if (landed)
            flight_free(f);
        r->flight = NULL;
    }
}

static void end(struct remote *r)
{
    static const char *const stopping = "the server is stopping";
    while (r->polls != NULL)
        poll_cancel(r->polls, stopping);
    end_flight(r);
    split_stop(r);
    list_scan_stop(r);
    answer_all(r->waiting, stopping);
    answer_all(r->landing, stopping);
    r->waiting = r->landing = NULL;
    check_report_all(r, &r->reports, false);
    check_report_all(r, &r->landing_reports, false);
    pthread_mutex_lock(&r->lock);
    struct remote_ask *asks = r->asks;
    struct fetch_loop *loop = r->loop;
    r->asks = NULL;
    r->asks_end = &r->asks;
    r->loop = NULL;
    pthread_mutex_unlock(&r->lock);
    answer_all(asks, stopping);
    for (size_t i = 0; r->plan != NULL && i < r->plan->count; i++) {
        answer_all(r->sources[i].asks, stopping);
        answer_all(r->sources[i].dry_asks, stopping);
    }
    fetch_loop_free(loop);
    for (size_t i = 0; i < r->host_count; i++)
        host_free(r->hosts[i]);
    free(r->hosts);
    map_done(&r->host_map);
    r->hosts = NULL;
    r->host_count = 0;
    for (size_t i = 0; r->plan != NULL && i < r->plan->count; i++)
        source_done(&r->sources[i]);
    record_list_done(&r->texts);
    shares_done(&r->shares);
    site_table_done(&r->rests);
    site_table_done(&r->look.parts);
    registry_unref(r->registry);
    r->registry = NULL;
}

void remote_run(void *remote)
{
    struct remote *r = remote;
    struct fetch_loop *loop = NULL;
    while (!thread_stops(&r->thread) && (loop = fetch_loop_new()) == NULL)
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    pthread_mutex_lock(&r->lock);
    r->loop = loop;
    pthread_mutex_unlock(&r->lock);
    r->chance = (uint32_t)clock_unix_ns();
    while (!thread_stops(&r->thread)) {
        int64_t wait = step(r);
        if (!fetch_loop_poll(r->loop, (int)least(wait, REST_MS)))
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    end(r);
}
