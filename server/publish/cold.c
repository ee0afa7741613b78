/* Cold pages: built on a pool of threads, once however many ask, and never installed where a
 * commit has overtaken them (publisher.h, invariants 1, 3 and 5). */
#include <stdlib.h>
#include <string.h>

#include "server/publish/state.h"

struct cold_job {
    struct publisher *publisher;
    struct slot *slot; /* owned reference */
};

static struct builder *borrow_builder(struct publisher *p)
{
    struct builder *b = NULL;
    pthread_mutex_lock(&p->builders_lock);
    if (p->idle_builder_count > 0)
        b = p->idle_builders[--p->idle_builder_count];
    pthread_mutex_unlock(&p->builders_lock);
    return b != NULL ? b : builder_new(p->options.compression_level);
}

static void return_builder(struct publisher *p, struct builder *b)
{
    pthread_mutex_lock(&p->builders_lock);
    if (b != NULL && p->idle_builder_count < BUILD_MAX_THREADS) {
        p->idle_builders[p->idle_builder_count++] = b;
        b = NULL;
    }
    pthread_mutex_unlock(&p->builders_lock);
    builder_free(b);
}

/* Resumes the waiters; each gets a reference of its own. */
static void answer(struct page_waiter *waiters, enum await_result result, struct snapshot *snapshot)
{
    while (waiters != NULL) {
        struct page_waiter *w = waiters;
        waiters = w->next;
        if (snapshot != NULL)
            snapshot_ref(snapshot);
        w->done(w->context, result, snapshot);
        free(w);
    }
}

/* Reads the page at the newest revision and builds it upon `base`, or loads it where it is stored.
 * `*out` stays NULL where the page has no entries. */
static enum catalogue_status build(struct publisher *p, struct builder *b, struct slot *s,
                                   const struct snapshot *base, uint64_t *revision, bool *loaded,
                                   struct snapshot **out)
{
    struct catalogue_view *v;
    struct catalogue_revisions revisions;
    struct page_record page;
    uint32_t rendered = 0;
    *out = NULL;
    *loaded = false;
    *revision = 0;
    enum catalogue_status status = catalogue_view_begin(p->catalogue, &v);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_revisions(v, &revisions);
    if (status != CATALOGUE_OK)
        goto end;
    *revision = revisions.revision;
    /* Another file stands at the path, where this id may be another index: the routing table that
     * led here is about to go. */
    if (strcmp(revisions.epoch, s->epoch) != 0) {
        status = CATALOGUE_UNAVAILABLE;
        goto end;
    }
    status = catalogue_view_page(v, s->index_id, s->number, &page);
    if (status == CATALOGUE_NOT_FOUND || (status == CATALOGUE_OK && page.removed)) {
        status = CATALOGUE_OK;
        goto end;
    }
    if (status == CATALOGUE_OK && base == NULL)
        *out = page_keeper_load(p->keeper, b, s, revisions.revision, &page);
    *loaded = *out != NULL;
    if (status == CATALOGUE_OK && *out == NULL)
        status = builder_page(b, v, revisions.revision, &page, base, out, &rendered);
end:
    catalogue_view_end(v);
    atomic_fetch_add(&p->segments_rendered, rendered);
    if (*out != NULL && p->options.build_pause != NULL)
        p->options.build_pause(p->options.build_pause_context, s->index_id, s->number, *revision);
    return status;
}

/* Builds until what was built may be installed; the last attempt holds passes off, so that nothing
 * more can be wanted meanwhile. */
static enum catalogue_status build_and_install(struct publisher *p, struct builder *b,
                                               struct slot *s, struct page_waiter **waiters,
                                               bool *loaded, struct snapshot **out)
{
    struct snapshot *base = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    *out = NULL;
    for (int attempt = 1;; attempt++) {
        bool last = attempt >= COLD_MAX_ATTEMPTS;
        bool again = false;
        uint64_t revision;
        struct snapshot *snapshot;
        if (last)
            pthread_mutex_lock(&p->pass_lock);
        status = build(p, b, s, base, &revision, loaded, &snapshot);
        if (status == CATALOGUE_OK && snapshot != NULL && !budget_admit(p, snapshot))
            status = CATALOGUE_NO_MEMORY;
        if (status == CATALOGUE_OK && snapshot != NULL) {
            snapshot_ref(snapshot); /* one for the slot, one for the waiters */
            if (slot_install(s, snapshot) != SLOT_INSTALLED)
                snapshot_unref(snapshot);
        }
        if (status == CATALOGUE_OK)
            *waiters = slot_finish(s, revision, last, &again);
        if (last)
            pthread_mutex_unlock(&p->pass_lock);
        snapshot_unref(base);
        base = NULL;
        if (status != CATALOGUE_OK) {
            snapshot_unref(snapshot);
            return status;
        }
        if (!again) {
            *out = snapshot;
            return CATALOGUE_OK;
        }
        base = snapshot;
    }
}

static void cold_run(void *context)
{
    struct cold_job *job = context;
    struct publisher *p = job->publisher;
    struct slot *s = job->slot;
    struct page_waiter *waiters = NULL;
    struct snapshot *snapshot = NULL;
    uint64_t began_ns = measure_now_ns();
    bool loaded = false;
    free(job);

    struct builder *b = borrow_builder(p);
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    if (b != NULL)
        status = build_and_install(p, b, s, &waiters, &loaded, &snapshot);
    return_builder(p, b);
    if (status != CATALOGUE_OK) {
        bool again;
        waiters = slot_finish(s, 0, true, &again);
        atomic_fetch_add(&p->publish_failures, 1);
        publisher_note(p, "page-not-built", catalogue_status_word(status));
        answer(waiters, AWAIT_UNAVAILABLE, NULL);
    } else {
        if (snapshot != NULL && loaded) {
            atomic_fetch_add(&p->pages_loaded, 1);
        } else if (snapshot != NULL) {
            atomic_fetch_add(&p->pages_built_cold, 1);
            histogram_add(&p->build_ns, &histogram_times, measure_now_ns() - began_ns);
        }
        answer(waiters, AWAIT_DONE, snapshot);
        budget_enforce(p, s);
    }
    snapshot_unref(snapshot);
    slot_unref(s);
}

void cold_start(struct publisher *p, struct slot *s)
{
    struct cold_job *job = malloc(sizeof *job);
    if (job != NULL) {
        slot_ref(s);
        *job = (struct cold_job){p, s};
        if (workers_run(p->builds, cold_run, job))
            return;
        slot_unref(s);
        free(job);
    }
    bool again;
    answer(slot_finish(s, 0, true, &again), AWAIT_UNAVAILABLE, NULL);
}
