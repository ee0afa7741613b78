/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The thread that writes settled pages to the page store. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/thread.h"
#include "server/pages/await.h"
#include "server/pages/publisher_state.h"

#define TICK_MS 1000
/* Number of ticks between two checks while every page in memory is stored. */
#define REST_TICKS 10
#define NICE       10
/* A page is stored once it has not changed for this long; one that changes more often is stored
 * only at a stop. */
#define SETTLE_MS 5000
/* The shortest time between two writes of one page. */
#define LEAST_MS 30000
/* How long a stop continues to store pages. */
#define STOP_MS 2000
/* Bytes written at most in a second: commits wait for the same disk. */
#define TICK_BYTES (16u << 20)

struct page_store_writer {
    struct publisher *publisher;
    struct page_store *store;
    int64_t settle_ms, least_ms, tick_ms;
    struct thread thread;
    atomic_bool sweep_due;
    atomic_bool rests; /* the thread sleeps until the next page wakes it */
    bool opened_before;
};

/* ---- loading ------------------------------------------------------------------------------- */

static void key_of(const struct page_place *s, struct page_key *out)
{
    memset(out, 0, sizeof *out);
    _Static_assert(EPOCH_SIZE <= sizeof out->epoch, "an epoch fits");
    memcpy(out->epoch, s->place.key.name, strlen(s->place.key.name));
    out->index_id = s->place.key.of;
    out->number = s->place.key.number;
}

struct resource *page_store_writer_load(struct page_store_writer *k, struct builder *b,
                                        struct page_place *s, uint64_t revision,
                                        const struct page_record *page)
{
    struct page_key key;
    struct page_pieces pieces;
    if (k == NULL)
        return NULL;
    key_of(s, &key);
    key.entries = page->entries;
    key.revision = page->revision;
    key.stamp = page->stamp;
    key.changed_at = page->changed_at;
    key.same_second = page->same_second;
    enum page_store_found found = page_store_load(k->store, &key, builder_buffer(b), &pieces);
    if (found == PAGE_STORE_HIT) {
        atomic_store(&s->stored, page->stamp);
        return builder_restore(b, &pieces, revision, page);
    }
    atomic_store(&s->stored, 0);
    if (found == PAGE_STORE_MISFIT)
        atomic_store(&s->misfit, true);
    return NULL;
}

uint64_t page_store_writer_bytes(struct page_store_writer *k)
{
    return k == NULL ? 0 : page_store_bytes(k->store);
}

/* ---- storing ------------------------------------------------------------------------------- */

/* Whether to write the state with this stamp, which is in memory, now. */
static bool is_due(struct page_store_writer *k, struct page_place *s, uint64_t stamp, int64_t now,
                   bool all)
{
    if (stamp == 0 || stamp == atomic_load(&s->stored))
        return false;
    if (all)
        return true;
    atomic_store(&k->rests, false);
    if (stamp != s->watched) {
        s->watched = stamp;
        s->watched_since_ms = now;
        return false;
    }
    return now - s->watched_since_ms >= k->settle_ms &&
           (s->tried_at_ms == 0 || now - s->tried_at_ms >= k->least_ms);
}

/* The arguments of find_due, and the page that it found to write, if any. */
struct due {
    struct page_store_writer *keeper;
    int64_t now;
    bool all;
    struct resource *snapshot; /* owned reference */
};

/* Under the cache's lock. */
static bool find_due(void *context, struct place *place)
{
    struct due *due = context;
    struct page_place *s = (struct page_place *)place;
    if (place->current != NULL &&
        is_due(due->keeper, s, place->current->page_stamp, due->now, due->all)) {
        due->snapshot = place->current;
        resource_ref(due->snapshot);
    }
    return due->snapshot != NULL || atomic_load(&s->misfit);
}

static enum page_store_saved save(struct page_store_writer *k, struct page_place *s,
                                  const struct resource *snapshot, uint64_t *written)
{
    struct page_key key;
    key_of(s, &key);
    key.entries = snapshot->entries;
    key.revision = snapshot->page_revision;
    key.stamp = snapshot->page_stamp;
    key.changed_at = snapshot->changed_at;
    key.same_second = snapshot->same_second;
    enum page_store_saved saved = page_store_save(k->store, &key, snapshot, written);
    if (saved == PAGE_STORE_SAVED)
        atomic_store(&s->stored, snapshot->page_stamp);
    s->tried_at_ms = clock_now_ms();
    return saved;
}

/* Writes the pages that are due, at most `max_bytes` or until `deadline_ms`. `all`: including pages
 * that changed recently. */
static void store_pages(struct page_store_writer *k, bool all, uint64_t max_bytes,
                        int64_t deadline_ms)
{
    uint64_t bytes = 0;
    size_t at = 0;
    bool on = true;
    while (on && bytes < max_bytes && clock_now_ms() < deadline_ms) {
        struct due due = {k, clock_now_ms(), all, NULL};
        struct place *place =
            cache_next(k->publisher->options.cache, HELD_PAGE, &at, find_due, &due);
        if (place == NULL)
            break;
        struct page_place *s = (struct page_place *)place;
        uint64_t written = 0;
        if (atomic_exchange(&s->misfit, false))
            page_store_remove(k->store, place->key.of, place->key.number);
        if (due.snapshot != NULL)
            on = save(k, s, due.snapshot, &written) != PAGE_STORE_FAILED;
        bytes += written;
        resource_unref(due.snapshot);
        place_unref(place);
    }
}

struct swept {
    struct cache *cache;
    const struct page_map *routing;
};

static bool is_page(void *context, int64_t index_id, uint32_t number)
{
    const struct swept *swept = context;
    struct place_key key = page_map_key(swept->routing, index_id, number);
    struct place *place = cache_find(swept->cache, &key);
    place_unref(place);
    return place != NULL;
}

static void sweep(struct page_store_writer *k)
{
    struct swept swept = {k->publisher->options.cache, publisher_page_map(k->publisher)};
    const char *epoch = page_map_key(swept.routing, 0, 0).name;
    page_store_sweep(k->store, epoch, is_page, &swept);
    publisher_page_map_done(swept.routing);
}

static bool forget_stored(void *context, struct place *place)
{
    (void)context;
    atomic_store(&((struct page_place *)place)->stored, 0);
    return false;
}

static bool make_ready(struct page_store_writer *k)
{
    bool fresh;
    if (!page_store_ready(k->store, &fresh))
        return false;
    size_t at = 0;
    if (fresh && k->opened_before) /* a new folder: it does not have the stored pages */
        cache_next(k->publisher->options.cache, HELD_PAGE, &at, forget_stored, NULL);
    k->opened_before = true;
    if (atomic_exchange(&k->sweep_due, false) || fresh)
        sweep(k);
    return true;
}

static void page_store_run(void *context)
{
    struct page_store_writer *k = context;
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    do {
        atomic_store(&k->rests, true);
        if (make_ready(k))
            store_pages(k, false, TICK_BYTES, INT64_MAX);
    } while (
        thread_wait(&k->thread, atomic_load(&k->rests) ? REST_TICKS * k->tick_ms : k->tick_ms));
}

/* ---- start and stop ------------------------------------------------------------------------ */

static struct page_store *make_store(const struct publisher *p)
{
    struct page_store_options options = {
        .folder = p->options.page_store_folder,
        .budget_bytes = p->options.page_store_bytes,
        .event = p->options.event,
        .event_context = p->options.event_context,
    };
    struct builder *b = builder_new(p->options.compression_level);
    bool known = b != NULL && builder_version(b, options.made_by);
    builder_free(b);
    return known ? page_store_new(&options) : NULL;
}

static int64_t or_default(uint32_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

struct page_store_writer *page_store_writer_start(struct publisher *p)
{
    if (p->options.page_store_folder == NULL || p->options.page_store_bytes == 0)
        return NULL;
    struct page_store_writer *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->publisher = p;
    k->settle_ms = or_default(p->options.page_store_settle_ms, SETTLE_MS);
    k->least_ms = or_default(p->options.page_store_least_ms, LEAST_MS);
    k->tick_ms = k->settle_ms < TICK_MS ? k->settle_ms : TICK_MS;
    k->store = make_store(p);
    if (k->store != NULL && thread_start(&k->thread, "page store", page_store_run, k))
        return k;
    page_store_free(k->store);
    free(k);
    return NULL;
}

void page_store_writer_page_made(struct page_store_writer *k)
{
    if (k != NULL && atomic_exchange(&k->rests, false))
        thread_wake(&k->thread);
}

void page_store_writer_pages_moved(struct page_store_writer *k)
{
    if (k == NULL)
        return;
    atomic_store(&k->sweep_due, true);
    page_store_writer_page_made(k);
}

void page_store_writer_stop(struct page_store_writer *k)
{
    if (k == NULL)
        return;
    thread_stop(&k->thread);
    /* STOP_MS begins here, after the thread of low priority has ended. */
    if (make_ready(k))
        store_pages(k, true, UINT64_MAX, clock_now_ms() + STOP_MS);
    page_store_free(k->store);
    free(k);
}
