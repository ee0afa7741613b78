#include "server/publish/publisher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/publish/state.h"
#include "server/rules/render.h"

/* How long the thread sleeps at most: deadlines of long polls are kept this closely. */
#define TICK_MS 100u

void publisher_note(struct publisher *p, const char *event, const char *detail)
{
    if (p->options.event != NULL)
        p->options.event(p->options.event_context, event, detail);
}

void publisher_set_readable(struct publisher *p, bool readable, const char *why)
{
    pthread_mutex_lock(&p->trouble_lock);
    bool moved = p->readable != readable;
    p->readable = readable;
    snprintf(p->trouble, sizeof p->trouble, "%s", readable ? "" : why);
    pthread_mutex_unlock(&p->trouble_lock);
    if (moved)
        publisher_note(p, readable ? "catalogue-readable" : "catalogue-unreadable", why);
}

static void handle(struct publisher *p, enum catalogue_wait_result result, bool *retry)
{
    if (result == CATALOGUE_WAIT_LOST) {
        publisher_set_readable(p, false, "the file is gone or was replaced");
        await_list_fail(&p->awaits);
        return;
    }
    if (result == CATALOGUE_WAIT_REOPENED) {
        pthread_mutex_lock(&p->pass_lock);
        pass_reset(p);
        pthread_mutex_unlock(&p->pass_lock);
    }
    if (result == CATALOGUE_WAIT_TIMEOUT && !*retry) {
        if (p->readable) /* else it is lost, and not back yet */
            atomic_store(&p->fresh_ns, measure_now_ns());
        return;
    }
    enum catalogue_status status = pass_run(p);
    *retry = status != CATALOGUE_OK;
    publisher_set_readable(p, status == CATALOGUE_OK, catalogue_status_word(status));
}

static void *publish(void *context)
{
    struct publisher *p = context;
    bool retry = false;
    while (!atomic_load(&p->stopping)) {
        handle(p, catalogue_wait(p->catalogue, TICK_MS), &retry);
        await_list_expire(&p->awaits, await_now_ms());
    }
    return NULL;
}

static void publisher_free(struct publisher *p)
{
    workers_free(p->builds); /* runs what is queued, so every page's waiter is answered */
    page_keeper_stop(p->keeper);
    slot_table_clear(&p->slots);
    publisher_routing_done(p->routing);
    for (unsigned i = 0; i < p->idle_builder_count; i++)
        builder_free(p->idle_builders[i]);
    builder_free(p->builder);
    routing_policies_done(&p->policies);
    await_list_done(&p->awaits);
    pthread_mutex_destroy(&p->trouble_lock);
    pthread_mutex_destroy(&p->builders_lock);
    pthread_mutex_destroy(&p->pass_lock);
    pthread_mutex_destroy(&p->table_lock);
    pthread_rwlock_destroy(&p->routing_lock);
    free(p);
}

enum catalogue_status publisher_start(const struct publisher_options *options,
                                      struct publisher **out)
{
    *out = NULL;
    struct publisher *p = calloc(1, sizeof *p);
    if (p == NULL)
        return CATALOGUE_NO_MEMORY;
    p->options = *options;
    p->catalogue = options->catalogue;
    p->readable = true;
    atomic_init(&p->budget_bytes, options->snapshot_budget_bytes);
    pthread_rwlock_init(&p->routing_lock, NULL);
    pthread_mutex_init(&p->table_lock, NULL);
    pthread_mutex_init(&p->pass_lock, NULL);
    pthread_mutex_init(&p->builders_lock, NULL);
    pthread_mutex_init(&p->trouble_lock, NULL);
    await_list_init(&p->awaits);

    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    unsigned threads = options->build_threads == 0 ? 1 : options->build_threads;
    if (threads > BUILD_MAX_THREADS)
        threads = BUILD_MAX_THREADS;
    p->builder = builder_new(options->compression_level);
    p->builds = workers_new(threads, COLD_MAX_QUEUED);
    if (!routing_policies_init(&p->policies, options) || p->builder == NULL || p->builds == NULL)
        goto failed;
    status = pass_run(p);
    if (status != CATALOGUE_OK)
        goto failed;
    /* Without it all goes on, slower after a restart. */
    p->keeper = page_keeper_start(p);
    if (pthread_create(&p->thread, NULL, publish, p) != 0) {
        status = CATALOGUE_NO_MEMORY;
        goto failed;
    }
    p->thread_started = true;
    *out = p;
    return CATALOGUE_OK;

failed:
    publisher_free(p);
    return status;
}

bool publisher_reconfigure(struct publisher *p, bool strict_host, size_t site_count,
                           const struct publish_site *sites, uint64_t snapshot_budget_bytes)
{
    struct publisher_options options = {
        .strict_host = strict_host, .site_count = site_count, .sites = sites};
    struct routing_policies policies = {.count = 0};
    bool done = routing_policies_init(&policies, &options) &&
                pass_swap_policies(p, &policies) == CATALOGUE_OK;
    routing_policies_done(&policies);
    if (done)
        atomic_store(&p->budget_bytes, snapshot_budget_bytes);
    return done;
}

void publisher_quiesce(struct publisher *p)
{
    await_list_quiesce(&p->awaits);
}

void publisher_stop(struct publisher *p)
{
    if (p == NULL)
        return;
    atomic_store(&p->stopping, true);
    catalogue_wake(p->catalogue);
    if (p->thread_started)
        pthread_join(p->thread, NULL);
    await_list_stop(&p->awaits);
    publisher_free(p);
}

const struct routing *publisher_routing(struct publisher *p)
{
    pthread_rwlock_rdlock(&p->routing_lock);
    const struct routing *r = p->routing;
    routing_ref(r);
    pthread_rwlock_unlock(&p->routing_lock);
    return r;
}

void publisher_await_page(struct publisher *p, struct slot *s, await_page_done *done, void *context)
{
    struct page_waiter *waiter = malloc(sizeof *waiter);
    if (waiter == NULL) {
        done(context, AWAIT_UNAVAILABLE, NULL);
        return;
    }
    *waiter = (struct page_waiter){NULL, done, context};
    bool start;
    struct snapshot *snapshot = slot_wait(s, waiter, &start);
    if (snapshot != NULL) {
        free(waiter);
        done(context, AWAIT_DONE, snapshot);
    } else if (start) {
        cold_start(p, s);
    }
}

void publisher_await_revision(struct publisher *p, uint64_t revision, await_revision_done *done,
                              void *context)
{
    await_list_add(&p->awaits, AWAIT_REVISION, revision, 0, done, context);
}

void publisher_await_newer(struct publisher *p, uint64_t since, uint32_t timeout_ms,
                           await_revision_done *done, void *context)
{
    await_list_add(&p->awaits, AWAIT_NEWER, since, timeout_ms, done, context);
}

bool publisher_page_etag(struct publisher *p, int64_t index_id, uint32_t number, bool gz,
                         char out[SNAPSHOT_ETAG_SIZE])
{
    bool hot = false;
    pthread_mutex_lock(&p->table_lock);
    struct slot *s = slot_table_find(&p->slots, index_id, number);
    if (s != NULL) {
        pthread_mutex_lock(&s->lock);
        hot = s->current != NULL;
        if (hot)
            memcpy(out, gz ? s->current->etag_file : s->current->etag_gzip, SNAPSHOT_ETAG_SIZE);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&p->table_lock);
    return hot;
}

void publisher_each_index(struct publisher *p,
                          void (*each)(void *context, const char *origin, const char *path,
                                       uint64_t pages, uint64_t entries),
                          void *context)
{
    const struct routing *routing = publisher_routing(p);
    const struct registry *registry = routing_registry(routing);
    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];
        for (size_t k = 0; k < site->index_count; k++) {
            const struct registry_index *index = &site->indexes[k];
            uint64_t entries = 0;
            pthread_mutex_lock(&p->table_lock);
            for (size_t n = 0; n < index->page_count; n++) {
                struct slot *s = slot_table_find(&p->slots, index->id, index->pages[n]);
                entries += s == NULL ? 0 : atomic_load(&s->entries);
            }
            pthread_mutex_unlock(&p->table_lock);
            each(context, site->origin, index->path, index->page_count, entries);
        }
    }
    publisher_routing_done(routing);
}

void publisher_stats_get(struct publisher *p, struct publisher_stats *out)
{
    uint64_t fresh_ns = atomic_load(&p->fresh_ns), now_ns = measure_now_ns();
    *out = (struct publisher_stats){
        .segments_rendered = atomic_load(&p->segments_rendered),
        .pages_published = atomic_load(&p->pages_published),
        .pages_built_cold = atomic_load(&p->pages_built_cold),
        .snapshots = atomic_load(&p->snapshots),
        .snapshot_bytes = atomic_load(&p->snapshot_bytes),
        .seen_revision = atomic_load(&p->seen),
        .pages_loaded = atomic_load(&p->pages_loaded),
        .page_store_bytes = page_keeper_bytes(p->keeper),
        .evictions = atomic_load(&p->evictions),
        .publish_failures = atomic_load(&p->publish_failures),
        .entries = atomic_load(&p->entries),
        .age_ms = now_ns > fresh_ns ? (now_ns - fresh_ns) / 1000000 : 0,
        .builds_queued = workers_queued(p->builds),
    };
    histogram_collect(&p->publish_ns, &out->publish_ns);
    histogram_collect(&p->build_ns, &out->build_ns);
    pthread_mutex_lock(&p->trouble_lock);
    out->readable = p->readable;
    memcpy(out->trouble, p->trouble, sizeof out->trouble);
    pthread_mutex_unlock(&p->trouble_lock);
}
