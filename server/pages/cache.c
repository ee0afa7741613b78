/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How it works. `lock` guards the table, the lists and all that is in a place; it is held for
 * pointers only, never over I/O, SQL, compression, a callback or the freeing of a resource.
 * `current` is changed under the place's own lock, too: so a GET of a page, which has the place
 * from the page map, needs only that lock. The order: `lock`, then a place's.
 *
 * The race to get right, a change against a load:
 *
 *     a load reads version 5      ->  a pass raises `wanted` to 6, and answers the write: nobody
 *                                     later requests may get 5
 *     cache_install(5)            ->  CACHE_OUTDATED: loaded again, upon what it has
 *
 * A request from before `wanted` was raised may get 5, so that a load which loses every race
 * (MAX_ATTEMPTS) still ends for the requests that wait for it. If a load that read revision 7 is
 * installed before the pass has rendered 6, the page of the pass is CACHE_SUPERSEDED. Files have no
 * revisions: each load of a file takes the next number, and so does a scan that invalidates files.
 *
 * `wanted` is only raised to what a pass has read from the file. So a load that begins after that
 * and reads a lower revision has found a catalogue that was restored to an earlier state. The
 * wanted revision may never come: all waiting requests get the present page, which is not kept, and
 * the next pass starts with new places.
 *
 * Eviction of the least used: each kind has a list of its places in memory, the newest first.
 * Eviction begins at the old end, and moves places that were used since its last pass to the new
 * end. So a GET only sets a mark, and moves nothing. */
#include "server/pages/cache.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "server/base/clock.h"
#include "server/pages/workers.h"

#define FIRST_CAPACITY 64u
/* A load that loses the race against changes this often answers only the requests from before the
 * changes. */
#define MAX_ATTEMPTS 4
#define CUT_LOOK_MS  20 /* interval between checks whether cut readers have released memory */
#define CUT_WAIT_MS  4000

struct resource_waiter {
    struct resource_waiter *next;
    resource_awaited *done;
    void *context;
    uint64_t wanted; /* the version that was wanted when the request came */
};

struct place_list {
    struct place *newest, *oldest;
    size_t count;
};

struct share {
    atomic_uint_fast64_t bytes, resources, evictions;
};

struct cache {
    struct cache_options options;
    struct share shares[HELD_KINDS];
    struct loader loaders[HELD_KINDS];
    atomic_int_fast64_t forgot_at;
    pthread_mutex_t lock;
    /* under lock: */
    struct place **table; /* open addressing, NULL: free; a power of two, at most half full */
    size_t capacity, count;
    struct place_list lists[HELD_KINDS][2]; /* not in memory; in memory */
    uint64_t reserved;                      /* bytes of files that are being loaded */
    pthread_cond_t load_ended;
};

/* ---- the table and the lists --------------------------------------------------------------- */

static uint64_t hash_of(const struct place_key *key)
{
    uint64_t seed = (uint64_t)key->of * 0x9e3779b97f4a7c15u ^
                    (uint64_t)key->number * 0xc2b2ae3d27d4eb4fu ^ key->era;
    return XXH3_64bits_withSeed(key->name, strlen(key->name), seed);
}

static bool is_key(const struct place_key *a, const struct place_key *b)
{
    return a->of == b->of && a->number == b->number && a->kind == b->kind && a->era == b->era &&
           strcmp(a->name, b->name) == 0;
}

/* The bucket of the key, or the free one where it belongs. */
static struct place **bucket_of(const struct cache *c, const struct place_key *key, uint64_t hash)
{
    size_t i = hash & (c->capacity - 1);
    while (c->table[i] != NULL && (c->table[i]->hash != hash || !is_key(&c->table[i]->key, key)))
        i = (i + 1) & (c->capacity - 1);
    return &c->table[i];
}

static bool grow_table(struct cache *c)
{
    struct place **old = c->table;
    size_t old_capacity = c->capacity;
    struct place **table = calloc(old_capacity * 2, sizeof *table);
    if (table == NULL)
        return false;
    c->table = table;
    c->capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i] != NULL)
            *bucket_of(c, &old[i]->key, old[i]->hash) = old[i];
    free(old);
    return true;
}

/* Moves the places after it forward, so that no search ends at the gap. */
static void remove_from_table(struct cache *c, const struct place *p)
{
    size_t mask = c->capacity - 1;
    size_t gap = (size_t)(bucket_of(c, &p->key, p->hash) - c->table);
    for (size_t i = (gap + 1) & mask; c->table[i] != NULL; i = (i + 1) & mask) {
        size_t home = c->table[i]->hash & mask;
        if (((i - home) & mask) >= ((i - gap) & mask)) {
            c->table[gap] = c->table[i];
            gap = i;
        }
    }
    c->table[gap] = NULL;
    c->count--;
}

static struct place_list *list_of(struct place *p)
{
    return &p->cache->lists[p->key.kind][p->current != NULL];
}

static void unlink_place(struct place *p)
{
    struct place_list *l = list_of(p);
    *(p->newer != NULL ? &p->newer->older : &l->newest) = p->older;
    *(p->older != NULL ? &p->older->newer : &l->oldest) = p->newer;
    l->count--;
}

static void link_newest(struct place *p)
{
    struct place_list *l = list_of(p);
    p->newer = NULL;
    p->older = l->newest;
    *(l->newest != NULL ? &l->newest->newer : &l->oldest) = p;
    l->newest = p;
    l->count++;
}

/* Under the cache's lock. Returns the previous resource, for `retire` outside the lock. */
static struct resource *set_current(struct place *p, struct resource *r)
{
    pthread_mutex_lock(&p->lock);
    struct resource *old = p->current;
    p->current = r;
    pthread_mutex_unlock(&p->lock);
    return old;
}

/* The same for a listed place, which moves to the new end of its list. */
static struct resource *exchange(struct place *p, struct resource *r)
{
    unlink_place(p);
    struct resource *old = set_current(p, r);
    link_newest(p);
    return old;
}

/* Outside the locks: freeing half a megabyte takes its time. */
static void retire(struct resource *r)
{
    if (r == NULL)
        return;
    atomic_store_explicit(&r->held.retired, true, memory_order_relaxed);
    resource_unref(r);
}

/* Takes a place out of table and list. The caller gets the table's reference, and drops the
 * resource. */
static void delist(struct place *p)
{
    remove_from_table(p->cache, p);
    unlink_place(p);
    p->listed = false;
}

/* Drops the resource of a place that is in no list any more, and the reference to the place. */
static void release_place(struct place *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->cache->lock);
    struct resource *r = set_current(p, NULL);
    pthread_mutex_unlock(&p->cache->lock);
    retire(r);
    place_unref(p);
}

/* If there are too many files, takes out the least used one that is not being loaded, files that
 * are not in memory first. */
static struct place *forget_one(struct cache *c)
{
    struct place_list *lists = c->lists[HELD_FILE];
    if (lists[0].count + lists[1].count < CACHE_MAX_FILES)
        return NULL;
    for (int hot = 0; hot < 2; hot++)
        for (struct place *p = lists[hot].oldest; p != NULL; p = p->newer)
            if (!p->loading) {
                if (p->version > 0)
                    atomic_store(&c->forgot_at, clock_unix_ns() / CLOCK_SECOND_NS);
                delist(p);
                return p;
            }
    return NULL;
}

static struct place *place_new(struct cache *c, const struct place_key *key, size_t size)
{
    size_t name_size = strlen(key->name) + 1;
    struct place *p = calloc(1, size + name_size);
    if (p == NULL)
        return NULL;
    p->key = *key;
    p->key.name = memcpy((char *)p + size, key->name, name_size);
    p->cache = c;
    atomic_init(&p->references, 1);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void place_ref(struct place *p)
{
    atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
}

void place_unref(struct place *p)
{
    if (p == NULL || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static struct place *find_place(const struct cache *c, const struct place_key *key)
{
    return *bucket_of(c, key, hash_of(key));
}

struct place *cache_find(struct cache *c, const struct place_key *key)
{
    pthread_mutex_lock(&c->lock);
    struct place *p = find_place(c, key);
    if (p != NULL)
        place_ref(p);
    pthread_mutex_unlock(&c->lock);
    return p;
}

struct place *cache_place(struct cache *c, const struct place_key *key, size_t size)
{
    struct place *forgotten = NULL;
    pthread_mutex_lock(&c->lock);
    struct place *p = find_place(c, key);
    if (p == NULL && ((c->count + 1) * 2 <= c->capacity || grow_table(c)))
        p = place_new(c, key, size);
    if (p != NULL)
        place_ref(p);
    if (p != NULL && !p->listed) {
        if (key->kind == HELD_FILE)
            forgotten = forget_one(c);
        p->hash = hash_of(key);
        p->listed = true;
        *bucket_of(c, key, p->hash) = p;
        c->count++;
        link_newest(p);
    }
    pthread_mutex_unlock(&c->lock);
    release_place(forgotten);
    return p;
}

struct place *cache_next(struct cache *c, enum held_kind kind, size_t *at,
                         bool (*is)(void *context, struct place *p), void *context)
{
    struct place *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (; found == NULL && *at < c->capacity; ++*at) {
        struct place *p = c->table[*at];
        if (p != NULL && p->key.kind == kind && is(context, p))
            found = p;
    }
    if (found != NULL)
        place_ref(found);
    pthread_mutex_unlock(&c->lock);
    return found;
}

void cache_sweep(struct cache *c, enum held_kind kind, bool (*keep)(void *context, struct place *p),
                 void *context)
{
    struct place *gone = NULL;
    pthread_mutex_lock(&c->lock);
    for (int hot = 0; hot < 2; hot++)
        for (struct place *p = c->lists[kind][hot].oldest, *next; p != NULL; p = next) {
            next = p->newer;
            if (keep(context, p))
                continue;
            delist(p);
            p->older = gone;
            gone = p;
        }
    pthread_mutex_unlock(&c->lock);
    while (gone != NULL) {
        struct place *p = gone;
        gone = p->older;
        release_place(p);
    }
}

/* ---- contents of a place -------------------------------------------------------------------- */

static void mark_used(struct place *p)
{
    /* Mostly it is set already: skipping the store keeps the cache line valid elsewhere. */
    if (!atomic_load_explicit(&p->used, memory_order_relaxed))
        atomic_store_explicit(&p->used, true, memory_order_relaxed);
}

struct resource *place_peek(struct place *p)
{
    pthread_mutex_lock(&p->lock);
    struct resource *r = p->current;
    if (r != NULL)
        resource_ref(r);
    pthread_mutex_unlock(&p->lock);
    return r;
}

struct resource *place_resource(struct place *p)
{
    mark_used(p);
    return place_peek(p);
}

/* The resource if it is fresh, with a reference. Under the lock. A page in memory is always fresh,
 * since one that is too old is dropped. */
static struct resource *fresh(struct place *p)
{
    if (p == NULL || p->current == NULL ||
        (p->key.kind == HELD_FILE && clock_now_ms() >= p->fresh_until_ms))
        return NULL;
    mark_used(p);
    resource_ref(p->current);
    return p->current;
}

struct resource *cache_fresh(struct cache *c, const struct place_key *key)
{
    uint64_t hash = hash_of(key);
    pthread_mutex_lock(&c->lock);
    struct resource *r = fresh(*bucket_of(c, key, hash));
    pthread_mutex_unlock(&c->lock);
    return r;
}

void cache_want(struct place *p, uint64_t version)
{
    pthread_mutex_lock(&p->cache->lock);
    if (p->wanted < version)
        p->wanted = version;
    pthread_mutex_unlock(&p->cache->lock);
}

/* Under the lock; `*old` as of exchange. */
static enum cache_install install_resource(struct place *p, struct resource *r, uint64_t version,
                                           struct resource **old)
{
    if (version < p->wanted)
        return CACHE_OUTDATED;
    if (!p->listed || (p->current != NULL && version <= p->version))
        return CACHE_SUPERSEDED;
    p->version = version;
    *old = exchange(p, r);
    return CACHE_INSTALLED;
}

enum cache_install cache_install(struct place *p, struct resource *r, uint64_t version)
{
    struct resource *old = NULL;
    pthread_mutex_lock(&p->cache->lock);
    enum cache_install result = install_resource(p, r, version, &old);
    pthread_mutex_unlock(&p->cache->lock);
    retire(old);
    return result;
}

void cache_drop(struct place *p)
{
    pthread_mutex_lock(&p->cache->lock);
    struct resource *old = p->current != NULL && p->listed ? exchange(p, NULL) : NULL;
    pthread_mutex_unlock(&p->cache->lock);
    retire(old);
}

void cache_invalidate(struct cache *c, int64_t source)
{
    pthread_mutex_lock(&c->lock);
    for (int hot = 0; hot < 2; hot++)
        for (struct place *p = c->lists[HELD_FILE][hot].oldest; p != NULL; p = p->newer)
            if (p->key.of == source) {
                p->fresh_until_ms = 0;
                p->wanted++;
            }
    pthread_mutex_unlock(&c->lock);
}

int64_t cache_forgot_at(struct cache *c)
{
    return atomic_load(&c->forgot_at);
}

/* ---- the budget ---------------------------------------------------------------------------- */

static void released(void *context, size_t bytes)
{
    struct share *share = context;
    atomic_fetch_sub(&share->bytes, bytes);
    atomic_fetch_sub(&share->resources, 1);
}

void cache_count(struct cache *c, struct resource *r)
{
    struct share *share = &c->shares[r->held.kind];
    resource_count(r, released, share);
    atomic_fetch_add(&share->bytes, r->held.bytes);
    atomic_fetch_add(&share->resources, 1);
}

/* The least used place of the kind, except `keep`. Only a place whose resource nobody reads, so
 * that its bytes become free; with `read`, any. Under the lock. A GET may take the page at this
 * moment: then it is retired and still counts, like a page that was replaced. */
static struct place *least_used(struct cache *c, enum held_kind kind, const struct place *keep,
                                bool read)
{
    struct place_list *l = &c->lists[kind][1];
    struct place *marked = NULL;
    /* Two rounds: the first may only remove the marks. */
    for (size_t left = 2 * l->count; left > 0; left--) {
        struct place *p = l->oldest;
        if (p != keep && (read || atomic_load(&p->current->references) == 1)) {
            if (!atomic_exchange(&p->used, false))
                return p;
            marked = p; /* under a storm of GETs all are marked again */
        }
        unlink_place(p);
        link_newest(p);
    }
    return marked;
}

static uint64_t bytes_of(struct cache *c)
{
    return atomic_load(&c->shares[HELD_PAGE].bytes) + atomic_load(&c->shares[HELD_FILE].bytes);
}

/* Evicts one of the kind; false if none exists. */
static bool evict_place(struct cache *c, enum held_kind kind, const struct place *keep, bool read)
{
    pthread_mutex_lock(&c->lock);
    struct place *p = least_used(c, kind, keep, read);
    struct resource *old = p == NULL ? NULL : exchange(p, NULL);
    pthread_mutex_unlock(&c->lock);
    if (old != NULL)
        atomic_fetch_add(&c->shares[kind].evictions, 1);
    retire(old);
    return old != NULL;
}

static void cut_slowest_readers(struct cache *c, enum held_kind kind, uint64_t bytes)
{
    if (c->options.cut_slow_readers != NULL)
        c->options.cut_slow_readers(c->options.cut_context, kind, bytes);
}

/* Evicts a file, or if none exists a page, that nobody reads. */
static bool evict_any(struct cache *c, const struct place *keep)
{
    return evict_place(c, HELD_FILE, keep, false) || evict_place(c, HELD_PAGE, keep, false);
}

void cache_enforce(struct cache *c, const struct place *keep)
{
    uint64_t budget = c->options.budget_bytes, bytes;
    while ((bytes = bytes_of(c)) > budget) {
        /* Evicting a page that is being read makes it retired, so that its readers may be cut. */
        if (evict_any(c, keep) || evict_place(c, HELD_PAGE, keep, true))
            continue;
        /* Only `keep` is left, and what slow readers hold. */
        cut_slowest_readers(c, HELD_PAGE, bytes - budget);
        return;
    }
}

bool cache_reserve(struct cache *c, uint64_t bytes, bool cut_readers)
{
    struct share *files = &c->shares[HELD_FILE];
    uint64_t share = c->options.budget_bytes / CACHE_FILES_SHARE;
    int64_t until =
        cut_readers && c->options.cut_slow_readers != NULL ? clock_now_ms() + CUT_WAIT_MS : 0;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        uint64_t held = atomic_load(&files->bytes);
        if (held == 0 || held + bytes <= share) {
            c->reserved += bytes;
            atomic_fetch_add(&files->bytes, bytes);
            pthread_mutex_unlock(&c->lock);
            break;
        }
        pthread_mutex_unlock(&c->lock);
        if (evict_place(c, HELD_FILE, NULL, false))
            continue;
        pthread_mutex_lock(&c->lock);
        bool loading = c->reserved > 0;
        if (loading)
            pthread_cond_wait(&c->load_ended, &c->lock);
        pthread_mutex_unlock(&c->lock);
        if (loading)
            continue;
        if (clock_now_ms() >= until)
            return false;
        cut_slowest_readers(c, HELD_FILE, bytes < share ? held + bytes - share : held);
        nanosleep(&(struct timespec){.tv_nsec = CUT_LOOK_MS * 1000000L}, NULL);
    }
    /* No page that is being read is evicted for a file. */
    while (bytes_of(c) > c->options.budget_bytes && evict_any(c, NULL))
        ;
    return true;
}

void cache_settle(struct cache *c, uint64_t bytes)
{
    pthread_mutex_lock(&c->lock);
    c->reserved -= bytes;
    atomic_fetch_sub(&c->shares[HELD_FILE].bytes, bytes);
    pthread_cond_broadcast(&c->load_ended);
    pthread_mutex_unlock(&c->lock);
}

/* ---- loading ------------------------------------------------------------------------------- */

/* Calls and frees all waiters. Takes over the reference to `r` (NULL: `result` says why) and passes
 * it to the last waiter, so that no reference outlives the answers and counts against the budget.
 */
static void resume_waiters(struct resource_waiter *waiters, enum await_result result,
                           struct resource *r)
{
    if (waiters == NULL)
        resource_unref(r);
    while (waiters != NULL) {
        struct resource_waiter *w = waiters;
        waiters = w->next;
        if (r != NULL && waiters != NULL)
            resource_ref(r);
        w->done(w->context, result, r);
        free(w);
    }
}

/* Under the lock. Ends an attempt that found `version` (`last`: there will be no other), and moves
 * the waiters that it satisfies to `*taken`. True if that leaves no waiter and nothing to do: the
 * load has ended. */
static bool finish_load(struct place *p, uint64_t version, bool last,
                        struct resource_waiter **taken)
{
    *taken = NULL;
    if (!last && version < p->wanted)
        return false;
    struct resource_waiter **at = &p->waiters;
    /* The newest waiters come first, and may want a later version than older ones. */
    while (*at != NULL && (*at)->wanted > version)
        at = &(*at)->next;
    *taken = *at;
    *at = NULL;
    p->loading = p->waiters != NULL;
    return !p->loading;
}

static void begin_load(struct place *p, struct load *l)
{
    pthread_mutex_lock(&p->cache->lock);
    /* A file's next number; a page's loader has the revision that it reads. */
    l->version = p->key.kind == HELD_FILE ? ++p->wanted : p->wanted;
    if (l->resource == NULL && p->current != NULL) {
        l->resource = p->current;
        resource_ref(l->resource);
    }
    pthread_mutex_unlock(&p->cache->lock);
}

/* Takes over what an attempt found, and ends the load or leaves it to another attempt. */
static bool end_load(struct place *p, const struct load *l, bool last,
                     struct resource_waiter **waiters)
{
    struct resource *old = NULL;
    pthread_mutex_lock(&p->cache->lock);
    if (l->passing) {
        /* For the waiters alone. */
    } else if (l->resource != NULL && p->current == l->resource) {
        p->version = l->version;
    } else if (l->resource != NULL) {
        resource_ref(l->resource); /* one reference for the place, one for the waiters */
        if (install_resource(p, l->resource, l->version, &old) != CACHE_INSTALLED)
            resource_unref(l->resource);
    } else if (l->result == AWAIT_NONE && l->version >= p->wanted && p->current != NULL &&
               p->listed) {
        old = exchange(p, NULL);
    }
    p->fresh_until_ms = l->version < p->wanted ? 0 : l->fresh_until_ms;
    bool done = finish_load(p, l->version, last, waiters);
    bool forget = done && l->forget && p->listed && p->current == NULL;
    if (forget)
        delist(p);
    pthread_mutex_unlock(&p->cache->lock);
    retire(old);
    if (forget)
        release_place(p);
    return done;
}

static void start_load(struct place *p);

/* The attempt found a file of another catalogue or a replaced file, which is not kept and may be
 * older than the wanted version. */
static void pass_on(struct load *l)
{
    if (l->resource == NULL)
        l->result = AWAIT_UNAVAILABLE;
    l->passing = true;
    l->version = UINT64_MAX; /* no other attempt */
}

/* The job of a loader's thread: attempts until the result may be installed. Has a reference. */
static void run_load(void *place)
{
    struct place *p = place;
    struct cache *c = p->cache;
    const struct loader *loader = &c->loaders[p->key.kind];
    struct load l = {.resource = NULL};
    struct resource_waiter *waiters = NULL;
    bool done = false;
    for (int attempt = 1; !done && attempt <= MAX_ATTEMPTS; attempt++) {
        begin_load(p, &l);
        uint64_t wanted = l.version;
        loader->load(loader->context, p, &l);
        if (l.version < wanted || l.passing)
            pass_on(&l);
        done = end_load(p, &l, attempt == MAX_ATTEMPTS, &waiters);
    }
    resume_waiters(waiters, l.result, l.resource);
    if (p->key.kind == HELD_PAGE) /* room for a file was reserved before */
        cache_enforce(c, p);
    if (!done) /* after the other waiting jobs */
        start_load(p);
    else
        place_unref(p);
}

/* Hands a place whose `loading` is set, and a reference to it, to a thread. If none takes it,
 * waiting requests get AWAIT_UNAVAILABLE. */
static void start_load(struct place *p)
{
    struct cache *c = p->cache;
    struct resource_waiter *waiters;
    if (workers_run(c->loaders[p->key.kind].workers, p->load_of, run_load, p))
        return;
    pthread_mutex_lock(&c->lock);
    finish_load(p, UINT64_MAX, true, &waiters);
    pthread_mutex_unlock(&c->lock);
    resume_waiters(waiters, AWAIT_UNAVAILABLE, NULL);
    place_unref(p);
}

void cache_await(struct place *p, int64_t site_id, resource_awaited *done, void *context)
{
    struct resource_waiter *w = malloc(sizeof *w);
    if (w == NULL) {
        done(context, AWAIT_UNAVAILABLE, NULL);
        return;
    }
    pthread_mutex_lock(&p->cache->lock);
    struct resource *r = fresh(p);
    bool begins = r == NULL && !p->loading;
    if (r == NULL) {
        *w = (struct resource_waiter){p->waiters, done, context, p->wanted};
        p->waiters = w;
        p->loading = true;
    }
    if (begins) {
        place_ref(p);
        p->load_of = site_id;
    }
    pthread_mutex_unlock(&p->cache->lock);
    if (r != NULL) {
        free(w);
        done(context, AWAIT_DONE, r);
    } else if (begins) {
        start_load(p);
    }
}

/* ---- life ---------------------------------------------------------------------------------- */

struct cache *cache_new(const struct cache_options *options)
{
    struct cache *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->table = calloc(FIRST_CAPACITY, sizeof(struct place *));
    if (c->table == NULL) {
        free(c);
        return NULL;
    }
    c->capacity = FIRST_CAPACITY;
    c->options = *options;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->load_ended, NULL);
    return c;
}

void cache_free(struct cache *c)
{
    if (c == NULL)
        return;
    pthread_cond_destroy(&c->load_ended);
    pthread_mutex_destroy(&c->lock);
    free(c->table);
    free(c);
}

void cache_set_loader(struct cache *c, enum held_kind kind, const struct loader *loader)
{
    c->loaders[kind] = *loader;
}

void cache_stats_get(struct cache *c, enum held_kind kind, struct cache_stats *out)
{
    const struct share *share = &c->shares[kind];
    *out = (struct cache_stats){
        .resources = atomic_load(&share->resources),
        .bytes = atomic_load(&share->bytes),
        .evictions = atomic_load(&share->evictions),
    };
}
