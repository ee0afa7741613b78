/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How it works. One thread waits for commits and runs passes; a pool of threads loads pages for the
 * cache; HTTP threads only take references and wait. A pass raises `wanted` of each page that moved
 * before the change is announced, then renders what is in memory. The race of a commit against a
 * build is explained in cache.c.
 *
 * Locks, the outer first: pass_lock, page_map_lock; the cache's are taken within either. None is
 * held over rendering, compression or a callback. */
#include "server/pages/publisher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/pages/page_map.h"
#include "server/pages/publisher_state.h"
#include "server/rules/lastmod.h"
#include "server/rules/page/render.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* A page with more changed segments, or bytes in them, than this (a bulk) is dropped, not rebuilt:
 * the next reader builds it on another thread, and acknowledgements do not wait for it. A segment
 * of an index has 25 KB, one of page URLs with extensions up to a whole page. */
#define PASS_MAX_SEGMENTS 50u
#define PASS_MAX_BYTES    (4u << 20)
/* What one pass renders at most; pages beyond it are dropped, too. */
#define PASS_MAX_TOTAL_SEGMENTS 800u
#define PASS_MAX_TOTAL_BYTES    (16u << 20)
/* How long the answer to a write waits to be visible: far longer than a pass takes. A revision that
 * a shared catalogue lost may never come. */
#define AWAIT_REVISION_MS 60000u
/* Pages that may wait for a build thread. */
#define COLD_MAX_QUEUED 4096u

static void publisher_record(struct publisher *p, const char *event, const char *detail)
{
    if (p->options.event != NULL)
        p->options.event(p->options.event_context, event, detail);
}

/* ---- policies ------------------------------------------------------------------------------ */

static bool is_styled(const struct publish_policies *policies)
{
    return policies != NULL && policies->page_style;
}

static void policies_free(struct publish_policies *policies)
{
    if (policies != NULL)
        policies->free(policies);
}

/* ---- cold pages ---------------------------------------------------------------------------- */

/* Counts a new snapshot and attaches its responses. False: out of memory; the snapshot is released.
 */
static bool admit(struct publisher *p, struct resource *s)
{
    /* From here on, the last unref subtracts the snapshot from the count. */
    cache_count(p->options.cache, s);
    if (p->options.attach == NULL || p->options.attach(p->options.attach_context, s))
        return true;
    resource_unref(s);
    return false;
}

/* Tests stop a build between its read and its installation. */
static void pause_build(struct publisher *p, int64_t index_id, uint32_t number, uint64_t revision)
{
    if (p->options.build_pause != NULL)
        p->options.build_pause(p->options.build_pause_context, index_id, number, revision);
}

static struct builder *borrow_builder(struct publisher *p)
{
    struct builder *b = NULL;
    pthread_mutex_lock(&p->builders_lock);
    if (p->idle_builder_count > 0)
        b = p->idle_builders[--p->idle_builder_count];
    pthread_mutex_unlock(&p->builders_lock);
    if (b == NULL)
        b = builder_new(p->options.compression_level);
    if (b != NULL)
        builder_style(b, atomic_load(&p->styled));
    return b;
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

/* Whether the catalogue that is at the path now has the list of the place under the same id, as
 * copies of one catalogue do, though their epochs differ. */
static bool is_same_list(struct catalogue_view *v, const struct page_place *s)
{
    struct registry *now;
    if (catalogue_view_registry(v, &now) != CATALOGUE_OK)
        return false;
    const struct registry_index *list = registry_list_by_id(now, s->place.key.of);
    bool same = list != NULL && page_map_list_hash(now, list) == atomic_load(&s->list);
    registry_unref(now);
    return same;
}

/* Reads the page at the newest revision and builds it from `base`, or loads it from the page store.
 * `*out` stays NULL if the page has no entries. `*passing`: another file is at the path. */
static enum catalogue_status build_page(struct publisher *p, struct builder *b,
                                        struct page_place *s, const struct resource *base,
                                        uint64_t *revision, bool *loaded, bool *passing,
                                        struct resource **out)
{
    const struct place_key *key = &s->place.key;
    struct catalogue_view *v;
    struct catalogue_revisions revisions;
    struct page_record page;
    struct page_changes changes;
    uint32_t rendered = 0;
    enum catalogue_status status = catalogue_view_begin(p->catalogue, &v);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_revisions(v, &revisions);
    if (status != CATALOGUE_OK)
        goto end;
    *revision = revisions.revision;
    /* Another file is at the path, where this id may be another index: the page map that led here
     * is about to be replaced. */
    *passing = strcmp(revisions.epoch, key->name) != 0;
    if (*passing && !is_same_list(v, s)) {
        status = CATALOGUE_UNAVAILABLE;
        goto end;
    }
    status = catalogue_view_page(v, key->of, key->number, &page);
    if (status == CATALOGUE_NOT_FOUND || (status == CATALOGUE_OK && page.removed)) {
        status = CATALOGUE_OK;
        goto end;
    }
    if (status == CATALOGUE_OK && base == NULL && !*passing)
        *out = page_store_writer_load(p->keeper, b, s, revisions.revision, &page);
    *loaded = *out != NULL;
    if (status == CATALOGUE_OK && *out == NULL)
        status = builder_changes(v, &page, *passing ? NULL : base, &changes);
    if (status == CATALOGUE_OK && *out == NULL)
        status = builder_page(b, v, revisions.revision, &page, &changes, out, &rendered);
end:
    catalogue_view_end(v);
    atomic_fetch_add(&p->segments_rendered, rendered);
    if (*out != NULL)
        pause_build(p, key->of, key->number, *revision);
    return status;
}

/* The cache's loader. */
static void load_page(void *context, struct place *place, struct load *l)
{
    struct publisher *p = context;
    struct resource *snapshot = NULL;
    uint64_t began_ns = clock_now_ns();
    bool loaded = false;
    struct builder *b = borrow_builder(p);
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    if (b != NULL)
        status = build_page(p, b, (struct page_place *)place, l->resource, &l->version, &loaded,
                            &l->passing, &snapshot);
    return_builder(p, b);
    if (status == CATALOGUE_OK && snapshot != NULL && !admit(p, snapshot))
        status = CATALOGUE_NO_MEMORY;
    resource_unref(l->resource);
    l->resource = status == CATALOGUE_OK ? snapshot : NULL;
    l->result = l->resource != NULL ? AWAIT_DONE : AWAIT_NONE;
    if (status != CATALOGUE_OK) {
        l->result = AWAIT_UNAVAILABLE;
        l->version = UINT64_MAX; /* no other attempt */
        atomic_fetch_add(&p->publish_failures, 1);
        publisher_record(p, "page-not-built", catalogue_status_word(status));
    } else if (loaded) {
        atomic_fetch_add(&p->pages_loaded, 1);
    } else if (snapshot != NULL) {
        atomic_fetch_add(&p->pages_built_cold, 1);
        histogram_add(&p->build_ns, &histogram_times, clock_now_ns() - began_ns);
        page_store_writer_page_made(p->keeper);
    }
}

/* ---- the pass ------------------------------------------------------------------------------ */

/* A pass finds every change, whatever its cause. In one read transaction and under `pass_lock` it
 * reads the registry if that changed, and raises `wanted` of every changed page, before anything is
 * acknowledged. Then, without the lock, it rebuilds pages in memory and resumes waiting
 * requests. */

struct moved_page {
    struct page_record page;
    struct place *place; /* owned reference; NULL: no request can reach it */
};

struct page_list {
    struct moved_page *pages; /* owned */
    size_t count, capacity;
    bool failed;
};

static bool collect_page(void *context, const struct page_record *page, const char *url)
{
    struct page_list *l = context;
    (void)url;
    if (l->count == l->capacity) {
        size_t capacity = l->capacity == 0 ? 16 : l->capacity * 2;
        struct moved_page *pages = realloc(l->pages, capacity * sizeof *pages);
        if (pages == NULL) {
            l->failed = true;
            return false;
        }
        l->pages = pages;
        l->capacity = capacity;
    }
    l->pages[l->count++] = (struct moved_page){.page = *page};
    return true;
}

static bool is_in_registry(void *context, struct place *place)
{
    const uint64_t *mark = context;
    return atomic_load(&((struct page_place *)place)->mark) == *mark;
}

/* Replaces the page map; the old one is freed after its last request. `new_era`: the map is of
 * another catalogue, or pages are framed differently, so all pages get new places. If the new map
 * cannot be made, the old one stays. */
static enum catalogue_status refresh_routing(struct publisher *p, struct catalogue_view *v,
                                             const char *epoch, bool new_era)
{
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(v, &registry);
    if (status != CATALOGUE_OK)
        return status;
    p->era += new_era;
    p->mark++;
    struct page_map_of of = {registry, epoch, p->era, p->mark, p->policies_number};
    struct page_map *fresh = page_map_new(&of, p->policies, p->options.cache, p->routing);
    registry_unref(registry);
    if (fresh == NULL)
        return CATALOGUE_NO_MEMORY;
    pthread_rwlock_wrlock(&p->page_map_lock);
    const struct page_map *old = p->routing;
    p->routing = fresh;
    if (p->map_moved != NULL)
        p->map_moved(p->map_moved_context);
    pthread_rwlock_unlock(&p->page_map_lock);
    if (old != NULL && !page_map_keeps(fresh, old))
        atomic_store(&p->moved_at, (int64_t)time(NULL));
    publisher_page_map_done(old);
    cache_sweep(p->options.cache, HELD_PAGE, is_in_registry, &p->mark);
    page_store_writer_pages_moved(p->keeper);
    return CATALOGUE_OK;
}

/* What a pass may still render; the last page may exceed the bytes, by PASS_MAX_BYTES. */
struct pass_budget {
    uint32_t segments;
    uint64_t bytes;
};

/* Renders what changed since `base` and installs the result. False: the page must be dropped. */
static bool republish(struct publisher *p, struct catalogue_view *v, uint64_t revision,
                      const struct page_record *page, struct place *place,
                      const struct resource *base, struct pass_budget *budget)
{
    struct page_changes changes;
    uint32_t rendered;
    struct resource *fresh;
    if (builder_changes(v, page, base, &changes) != CATALOGUE_OK)
        return false;
    /* The bytes of the record are at least those of the page. */
    if (changes.count > PASS_MAX_SEGMENTS || changes.count > budget->segments ||
        page->bytes > changes.kept + PASS_MAX_BYTES || budget->bytes == 0)
        return false;
    budget->segments -= changes.count;
    builder_style(p->builder, atomic_load(&p->styled));
    bool built =
        builder_page(p->builder, v, revision, page, &changes, &fresh, &rendered) == CATALOGUE_OK;
    if (built) {
        uint64_t bytes = fresh->raw_len - changes.kept;
        budget->bytes -= bytes < budget->bytes ? bytes : budget->bytes;
        atomic_fetch_add(&p->segments_rendered, rendered);
        pause_build(p, page->index_id, page->number, revision);
    }
    if (!built || !admit(p, fresh)) {
        atomic_fetch_add(&p->publish_failures, 1);
        return false;
    }
    enum cache_install installed = cache_install(place, fresh, revision);
    if (installed == CACHE_INSTALLED) {
        atomic_fetch_add(&p->pages_published, 1);
        cache_enforce(p->options.cache, place);
        page_store_writer_page_made(p->keeper);
        return true;
    }
    resource_unref(fresh);
    /* Superseded: a cold build was quicker, with as new a view. It cannot be outdated: only passes
     * raise `wanted`, and this is one. */
    return installed == CACHE_SUPERSEDED;
}

/* Records when a page last changed. A time in the future is of a clock that was ahead: it would
 * hide every later one. Only passes call it. */
static void record_changed(struct publisher *p, const struct page_record *page)
{
    if (page->changed_at > atomic_load(&p->changed_at) && page->changed_at <= (int64_t)time(NULL))
        atomic_store(&p->changed_at, page->changed_at);
}

/* Keeps a page whose last change is in the future on a list until it changes again. */
static void record_ahead(struct publisher *p, const struct page_record *page, int64_t now)
{
    bool is = !page->removed && page->changed_at > now + CLOCK_SLACK_SECONDS;
    for (unsigned i = 0; i < p->ahead_count; i++)
        if (p->ahead[i].index_id == page->index_id && p->ahead[i].number == page->number) {
            p->ahead[i] = p->ahead[--p->ahead_count];
            break;
        }
    if (is && p->ahead_count == AHEAD_MOST)
        p->ahead_more = true;
    else if (is)
        p->ahead[p->ahead_count++] =
            (struct page_ahead){page->index_id, page->changed_at, page->number};
}

/* Finds the place of a page of the map's catalogue, with a reference; NULL if there is no such
 * page. */
static struct place *find_page(struct publisher *p, const struct page_map *routing,
                               int64_t index_id, uint32_t number)
{
    struct place_key key = page_map_key(routing, index_id, number);
    return cache_find(p->options.cache, &key);
}

static void report_page(struct publisher *p, const char *epoch, const struct page_record *page)
{
    if (p->options.page_is != NULL)
        p->options.page_is(p->options.page_is_context, epoch, page);
}

/* Raises `wanted` of the place of each page. */
static void want_pages(struct publisher *p, struct page_list *list)
{
    int64_t now = (int64_t)time(NULL);
    for (size_t i = 0; i < list->count; i++) {
        const struct page_record *page = &list->pages[i].page;
        struct place *place = find_page(p, p->routing, page->index_id, page->number);
        record_changed(p, page);
        record_ahead(p, page, now);
        report_page(p, p->epoch, page);
        if (place == NULL)
            continue;
        list->pages[i].place = place;
        cache_want(place, page->revision);
        atomic_store(&((struct page_place *)place)->entries, page->removed ? 0 : page->entries);
    }
}

/* Rebuilds the pages that are in memory, or drops them. Releases the references to places. */
static void publish_pages(struct publisher *p, struct catalogue_view *v, uint64_t revision,
                          const struct page_list *list)
{
    struct pass_budget budget = {PASS_MAX_TOTAL_SEGMENTS, PASS_MAX_TOTAL_BYTES};
    for (size_t i = 0; i < list->count; i++) {
        const struct page_record *page = &list->pages[i].page;
        struct place *place = list->pages[i].place;
        if (place == NULL)
            continue;
        struct resource *base = place_peek(place);
        /* A page that is cold or being built is skipped: its build meets `wanted`. */
        if (base != NULL && base->revision < page->revision &&
            (page->removed || !republish(p, v, revision, page, place, base, &budget)))
            cache_drop(place);
        resource_unref(base);
        place_unref(place);
    }
}

/* ---- pages with a query */

/* Maximum number of lookups and rows for one site in a pass, a few microseconds each; pages beyond
 * that do not answer requests with a query. */
#define QUERY_LOOKUPS 2000u

static bool is_there(void *context, const struct entry_record *record)
{
    (void)record;
    *(bool *)context = true;
    return false;
}

/* Whether a loc is the path with a query. Rows of removed indexes are looked at, too: they may be
 * many, so the lookup ends with the budget. */
static enum catalogue_status find_query(struct catalogue_view *v, const struct registry_site *site,
                                        const char *path, uint32_t *budget, bool *found)
{
    char prefix[LOC_MAX_CHARS + 1];
    struct entry_search one = {.list = {.site_id = site->id, .prefix = prefix, .limit = 1},
                               .effort = *budget};
    struct entry_searched searched;
    int len = snprintf(prefix, sizeof prefix, "%s%s?", site->origin, path);
    if (len < 0 || (size_t)len >= sizeof prefix)
        return CATALOGUE_OK;
    enum catalogue_status status = catalogue_view_search(v, &one, is_there, found, &searched);
    *found = *found || searched.more;
    *budget -= searched.looked_at < *budget ? (uint32_t)searched.looked_at : *budget;
    *budget -= *budget > 0;
    return status;
}

static enum catalogue_status record_query(struct publisher *p, struct catalogue_view *v,
                                          const struct registry_site *site,
                                          const struct registry_index *list, uint32_t number,
                                          uint32_t *budget)
{
    char path[PAGE_PATH_SIZE];
    bool found = false;
    enum catalogue_status status = CATALOGUE_OK;
    struct place *place = find_page(p, p->routing, list->id, number);
    if (place == NULL)
        return CATALOGUE_OK;
    for (int gz = 0; gz < 2 && status == CATALOGUE_OK && !found; gz++) {
        scope_page_path(list->path, list->page_pattern, number, gz == 1, path);
        found = *budget == 0;
        if (!found)
            status = find_query(v, site, path, budget, &found);
    }
    if (status == CATALOGUE_OK)
        atomic_store(&((struct page_place *)place)->takes_query, !found);
    place_unref(place);
    return status;
}

/* Sets `touched` to the sites of the registry with pages in `list` (NULL: all of them). False when
 * out of memory. */
static bool find_touched(struct publisher *p, const struct registry *registry,
                         const struct page_list *list)
{
    if (p->touched_room < registry->site_count) {
        bool *grown = reallocarray(p->touched, registry->site_count, sizeof *grown);
        if (grown == NULL)
            return false;
        p->touched = grown;
        p->touched_room = registry->site_count;
    }
    if (registry->site_count > 0)
        memset(p->touched, list == NULL, registry->site_count);
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        const struct registry_site *site =
            registry_site_by_id(registry, list->pages[i].page.site_id);
        if (site != NULL)
            p->touched[site - registry->sites] = true;
    }
    return true;
}

/* Notes for each page of the sites with pages in `list` (NULL: of all sites) whether it answers
 * with a query. A child that is registered or removed changes a page of its site. */
static enum catalogue_status record_queries(struct publisher *p, struct catalogue_view *v,
                                            const struct page_list *list)
{
    const struct registry *registry = page_map_registry(p->routing);
    const struct registry_index *of;
    enum catalogue_status status =
        find_touched(p, registry, list) ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
    for (size_t s = 0; s < registry->site_count && status == CATALOGUE_OK; s++) {
        const struct registry_site *site = &registry->sites[s];
        uint32_t budget = QUERY_LOOKUPS;
        if (!p->touched[s])
            continue;
        for (size_t i = 0; (of = registry_site_list(site, i)) != NULL; i++)
            for (size_t n = 0; n < of->page_count && status == CATALOGUE_OK; n++)
                status = record_query(p, v, site, of, of->pages[n], &budget);
    }
    return status;
}

bool publisher_accepts_query(const struct place *page)
{
    return atomic_load(&((const struct page_place *)page)->takes_query);
}

/* Counts the entries of a page when the publisher starts; later passes add and subtract changes. */
static bool count_entries(void *context, const struct page_record *page, const char *url)
{
    struct publisher *p = context;
    struct place *place = find_page(p, p->routing, page->index_id, page->number);
    (void)url;
    report_page(p, p->epoch, page);
    record_ahead(p, page, (int64_t)time(NULL));
    if (place == NULL)
        return true;
    atomic_store(&((struct page_place *)place)->entries, page->removed ? 0 : page->entries);
    record_changed(p, page);
    place_unref(place);
    return true;
}

/* Forgets the catalogue: another file is at the path. `file`: as for await_list_reset. */
static void pass_reset(struct publisher *p, uint64_t file)
{
    p->epoch[0] = '\0';
    atomic_store(&p->seen, 0);
    atomic_store(&p->changed_at, 0);
    p->ahead_count = 0;
    p->ahead_more = false;
    await_list_reset(&p->awaits, file);
}

/* Under pass_lock: finds the pages that changed since `seen`, and raises their `wanted`. `*news`:
 * anything changed; `*first`: this is the first pass over this catalogue, so there is nothing to
 * rebuild. On failure the publisher is as before, and the next pass finds the same. */
static enum catalogue_status find_news(struct publisher *p, struct catalogue_view *v,
                                       struct catalogue_revisions *now, bool *news, bool *first,
                                       struct page_list *list)
{
    enum catalogue_status status = catalogue_view_revisions(v, now);
    if (status != CATALOGUE_OK)
        return status;
    uint64_t seen = atomic_load(&p->seen);
    bool same = strcmp(p->epoch, now->epoch) == 0;
    *first = p->epoch[0] == '\0';
    *news = !same || now->revision != seen;
    if (!*news)
        return CATALOGUE_OK;
    if (!*first && (!same || now->revision < seen)) {
        pass_reset(p, 0); /* another catalogue, or an older copy, is at the path */
        *first = true;
    }
    bool rerouted = *first || p->registry_revision != now->registry_revision;
    if (rerouted) {
        status = refresh_routing(p, v, now->epoch, *first);
        if (status != CATALOGUE_OK)
            return status;
        p->registry_revision = now->registry_revision;
    }
    if (*first) {
        report_page(p, now->epoch, NULL);
        status = catalogue_view_pages_since(v, 0, 0, count_entries, p);
    } else {
        status = catalogue_view_pages_since(v, seen, 0, collect_page, list);
        if (status == CATALOGUE_OK && list->failed)
            status = CATALOGUE_NO_MEMORY;
    }
    if (status == CATALOGUE_OK)
        status = record_queries(p, v, rerouted ? NULL : list);
    if (status != CATALOGUE_OK)
        return status;
    want_pages(p, list); /* last: it takes references, which only publish_pages releases */
    memcpy(p->epoch, now->epoch, sizeof p->epoch);
    return CATALOGUE_OK;
}

/* One pass: everything committed is found and published. */
static enum catalogue_status pass_run(struct publisher *p)
{
    struct catalogue_view *v = NULL;
    struct catalogue_revisions now;
    struct page_list list = {NULL, 0, 0, false};
    bool news = false, first = false;
    pthread_mutex_lock(&p->pass_lock);
    uint64_t began_ns = clock_now_ns(), file = catalogue_files(p->catalogue);
    enum catalogue_status status = catalogue_view_begin(p->catalogue, &v);
    if (status == CATALOGUE_OK)
        status = find_news(p, v, &now, &news, &first, &list);
    pthread_mutex_unlock(&p->pass_lock);
    if (status == CATALOGUE_OK)
        publish_pages(p, v, now.revision, &list);
    free(list.pages);
    catalogue_view_end(v);
    if (status != CATALOGUE_OK)
        return status;
    if (news) {
        atomic_store(&p->entries, now.entries);
        if (!first) /* before the write is answered: then its client finds it counted */
            histogram_add(&p->publish_ns, &histogram_times, clock_now_ns() - began_ns);
        atomic_store(&p->seen, now.revision);
        await_list_publish(&p->awaits, file, now.revision);
    }
    atomic_store(&p->fresh_ns, began_ns);
    return CATALOGUE_OK;
}

bool publisher_page_style(struct publisher *p)
{
    return atomic_load(&p->styled);
}

bool publisher_reconfigure(struct publisher *p, struct publish_policies *policies)
{
    struct catalogue_view *v;
    struct catalogue_revisions now;
    pthread_mutex_lock(&p->pass_lock);
    struct publish_policies *old = p->policies, *unused = policies;
    enum catalogue_status status = catalogue_view_begin(p->catalogue, &v);
    if (status == CATALOGUE_OK) {
        p->policies = policies;
        p->policies_number++; /* after a failure too: the next map then shares less */
        bool restyled = atomic_exchange(&p->styled, is_styled(policies)) != is_styled(policies);
        status = catalogue_view_revisions(v, &now);
        /* A registry newer than `seen` does no harm: the next pass makes the page map again. If
         * another catalogue is at the path, the next pass makes it of that one. */
        if (status == CATALOGUE_OK && strcmp(now.epoch, p->epoch) == 0)
            status = refresh_routing(p, v, now.epoch, restyled);
        catalogue_view_end(v);
        if (status == CATALOGUE_OK)
            unused = old;
        else
            p->policies = old;
        atomic_store(&p->styled, is_styled(p->policies));
    }
    pthread_mutex_unlock(&p->pass_lock);
    policies_free(unused);
    /* A source may now serve files at addresses of another. */
    atomic_store(&p->moved_at, (int64_t)time(NULL));
    return status == CATALOGUE_OK;
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* Longest sleep of the thread: the precision of long polls' deadlines, and the interval between
 * checks of the clock. */
#define TICK_MS       100u
#define QUIET_TICK_MS 1000u

/* Records whether the catalogue can be read, and reports the change. */
static void publisher_set_readable(struct publisher *p, bool readable, const char *why)
{
    pthread_mutex_lock(&p->trouble_lock);
    bool moved = p->readable != readable;
    p->readable = readable;
    snprintf(p->trouble, sizeof p->trouble, "%s", readable ? "" : why);
    pthread_mutex_unlock(&p->trouble_lock);
    if (moved)
        publisher_record(p, readable ? "catalogue-readable" : "catalogue-unreadable", why);
}

static void handle_wait_result(struct publisher *p, enum catalogue_wait_result result, bool *retry)
{
    if (result == CATALOGUE_WAIT_LOST) {
        publisher_set_readable(p, false, "the file is gone or was replaced");
        await_list_fail(&p->awaits);
        return;
    }
    if (result == CATALOGUE_WAIT_REOPENED) {
        pthread_mutex_lock(&p->pass_lock);
        pass_reset(p, catalogue_files(p->catalogue));
        pthread_mutex_unlock(&p->pass_lock);
    }
    if (result == CATALOGUE_WAIT_TIMEOUT && !*retry) {
        if (p->readable) /* else the catalogue has not been readable since */
            atomic_store(&p->fresh_ns, clock_now_ns());
        return;
    }
    enum catalogue_status status = pass_run(p);
    *retry = status != CATALOGUE_OK;
    publisher_set_readable(p, status == CATALOGUE_OK, catalogue_status_word(status));
}

static void record_clock(struct publisher *p, const char *event, int64_t seconds)
{
    char text[21];
    lastmod_format_utc(seconds, text);
    publisher_record(p, event, text);
}

static bool find_ahead(void *context, const struct page_record *page, const char *url)
{
    struct publisher *p = context;
    (void)url;
    record_ahead(p, page, (int64_t)time(NULL));
    return !p->ahead_more;
}

/* Checks all pages: the clock was set back, or not all of them fitted into the list. */
static void look_for_ahead(struct publisher *p)
{
    struct catalogue_view *v;
    if (catalogue_view_begin(p->catalogue, &v) != CATALOGUE_OK)
        return;
    p->ahead_count = 0;
    p->ahead_more = false;
    if (catalogue_view_pages_since(v, 0, 0, find_ahead, p) != CATALOGUE_OK)
        p->ahead_more = true; /* check again */
    catalogue_view_end(v);
}

int64_t publisher_newest_at(struct publisher *p)
{
    return atomic_load(&p->newest_at);
}

/* Reports, each once, a clock that was set while the server runs, and a change of the catalogue or
 * of a page that is in the clock's future. A suspend does not look like a clock that was set:
 * CLOCK_BOOTTIME counts its time, too. */
static void watch_clock(struct publisher *p)
{
    int64_t now = (int64_t)time(NULL), up = clock_read_ns(CLOCK_BOOTTIME) / 1000000000;
    int64_t moved = p->clock_offset != 0 ? now - up - p->clock_offset : 0;
    if (moved > CLOCK_SLACK_SECONDS || moved < -CLOCK_SLACK_SECONDS)
        record_clock(p, "clock-set", now);
    p->clock_offset = now - up;

    int64_t changed_at = catalogue_changed_at(p->catalogue);
    bool ahead = changed_at > now + CLOCK_SLACK_SECONDS;
    if (moved < -CLOCK_SLACK_SECONDS || (ahead && !p->clock_behind) ||
        (p->ahead_more && p->ahead_count == 0))
        look_for_ahead(p);
    for (unsigned i = p->ahead_count; i-- > 0;) {
        if (p->ahead[i].changed_at > changed_at)
            changed_at = p->ahead[i].changed_at;
        if (p->ahead[i].changed_at <= now + CLOCK_SLACK_SECONDS) /* the clock has caught up */
            p->ahead[i] = p->ahead[--p->ahead_count];
    }
    ahead = changed_at > now + CLOCK_SLACK_SECONDS;
    atomic_store(&p->newest_at, changed_at);
    if (ahead != p->clock_behind)
        record_clock(p, ahead ? "clock-behind" : "clock-agrees", ahead ? changed_at : now);
    p->clock_behind = ahead;
}

static void watch_aliases(struct publisher *p)
{
    const struct page_map *map = publisher_page_map(p);
    alias_watch_step(&p->alias_watch, map, atomic_load(&p->seen), p->catalogue);
    publisher_page_map_done(map);
}

void publisher_alias_faults(struct publisher *p, alias_fault *each, void *context)
{
    const struct alias_watch *w = &p->alias_watch;
    pthread_mutex_lock(&p->alias_watch.lock);
    if (w->last_hidden.count > 0)
        each(context, true, w->last_hidden.count, str_text(&w->last_hidden.first));
    if (w->last_nowhere.count > 0)
        each(context, false, w->last_nowhere.count, str_text(&w->last_nowhere.first));
    pthread_mutex_unlock(&p->alias_watch.lock);
}

static void publisher_run(void *context)
{
    struct publisher *p = context;
    bool retry = false;
    while (!thread_stops(&p->thread)) {
        bool quiet = !retry && await_list_is_empty(&p->awaits);
        handle_wait_result(p, catalogue_wait(p->catalogue, quiet ? QUIET_TICK_MS : TICK_MS),
                           &retry);
        watch_clock(p);
        watch_aliases(p);
        await_list_expire(&p->awaits, clock_now_ms());
    }
}

static void publisher_free(struct publisher *p)
{
    workers_free(p->builds); /* runs the queued jobs, so that all waiting requests are answered */
    page_store_writer_stop(p->keeper);
    p->mark++; /* a new mark, which no page has: removes all */
    cache_sweep(p->options.cache, HELD_PAGE, is_in_registry, &p->mark);
    publisher_page_map_done(p->routing);
    for (unsigned i = 0; i < p->idle_builder_count; i++)
        builder_free(p->idle_builders[i]);
    builder_free(p->builder);
    free(p->touched);
    alias_watch_done(&p->alias_watch);
    policies_free(p->policies);
    await_list_done(&p->awaits);
    pthread_mutex_destroy(&p->trouble_lock);
    pthread_mutex_destroy(&p->builders_lock);
    pthread_mutex_destroy(&p->pass_lock);
    pthread_rwlock_destroy(&p->page_map_lock);
    free(p);
}

enum catalogue_status publisher_start(const struct publisher_options *options,
                                      struct publisher **out)
{
    *out = NULL;
    struct publisher *p = calloc(1, sizeof *p);
    if (p == NULL) {
        policies_free(options->policies);
        return CATALOGUE_NO_MEMORY;
    }
    p->options = *options;
    p->policies = options->policies;
    atomic_init(&p->styled, is_styled(p->policies));
    p->catalogue = options->catalogue;
    p->readable = true;
    atomic_init(&p->moved_at, catalogue_was_served(p->catalogue) ? (int64_t)time(NULL) : 0);
    pthread_rwlock_init(&p->page_map_lock, NULL);
    pthread_mutex_init(&p->pass_lock, NULL);
    pthread_mutex_init(&p->builders_lock, NULL);
    pthread_mutex_init(&p->trouble_lock, NULL);
    alias_watch_init(&p->alias_watch);
    await_list_init(&p->awaits);

    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    unsigned threads = options->build_threads == 0 ? 1 : options->build_threads;
    if (threads > BUILD_MAX_THREADS)
        threads = BUILD_MAX_THREADS;
    p->builder = builder_new(options->compression_level);
    p->builds = workers_new(threads, COLD_MAX_QUEUED);
    if (p->builder == NULL || p->builds == NULL)
        goto failed;
    struct loader loader = {load_page, p, p->builds};
    cache_set_loader(p->options.cache, HELD_PAGE, &loader);
    status = pass_run(p);
    if (status != CATALOGUE_OK)
        goto failed;
    /* Without a keeper the publisher works, but a restart is slower. */
    p->keeper = page_store_writer_start(p);
    if (!thread_start(&p->thread, "publisher", publisher_run, p)) {
        status = CATALOGUE_NO_MEMORY;
        goto failed;
    }
    *out = p;
    return CATALOGUE_OK;

failed:
    publisher_free(p);
    return status;
}

void publisher_quiesce(struct publisher *p)
{
    await_list_quiesce(&p->awaits);
}

void publisher_stop(struct publisher *p)
{
    if (p == NULL)
        return;
    thread_end(&p->thread);
    catalogue_wake(p->catalogue);
    thread_join(&p->thread);
    await_list_stop(&p->awaits);
    publisher_free(p);
}

/* ---- what HTTP asks ------------------------------------------------------------------------ */

const struct page_map *publisher_page_map(struct publisher *p)
{
    pthread_rwlock_rdlock(&p->page_map_lock);
    const struct page_map *r = p->routing;
    page_map_ref(r);
    pthread_rwlock_unlock(&p->page_map_lock);
    return r;
}

void publisher_on_page_map(struct publisher *p, void (*moved)(void *context), void *context)
{
    pthread_rwlock_wrlock(&p->page_map_lock);
    p->map_moved = moved;
    p->map_moved_context = context;
    pthread_rwlock_unlock(&p->page_map_lock);
}

int64_t publisher_moved_at(struct publisher *p)
{
    return atomic_load(&p->moved_at);
}

bool publisher_forget(struct publisher *p, struct place *page)
{
    pthread_mutex_lock(&p->trouble_lock);
    bool readable = p->readable;
    pthread_mutex_unlock(&p->trouble_lock);
    if (readable)
        cache_drop(page);
    return readable;
}

void publisher_await_revision(struct publisher *p, uint64_t revision, await_revision_done *done,
                              void *context)
{
    await_list_add(&p->awaits, AWAIT_REVISION, catalogue_files(p->catalogue), revision,
                   AWAIT_REVISION_MS, done, NULL, context);
}

void publisher_await_forwarded(struct publisher *p, uint64_t revision, await_revision_done *done,
                               await_is_gone *is_gone, void *context)
{
    await_list_add(&p->awaits, AWAIT_FORWARDED, catalogue_files(p->catalogue), revision,
                   AWAIT_REVISION_MS, done, is_gone, context);
}

uint64_t publisher_revision(struct publisher *p)
{
    pthread_mutex_lock(&p->awaits.lock);
    uint64_t revision = p->awaits.published;
    pthread_mutex_unlock(&p->awaits.lock);
    return revision;
}

void publisher_await_newer(struct publisher *p, uint64_t since, uint32_t timeout_ms,
                           await_revision_done *done, await_is_gone *is_gone, void *context)
{
    await_list_add(&p->awaits, AWAIT_NEWER, 0, since, timeout_ms, done, is_gone, context);
    catalogue_nudge(p->catalogue); /* wakes the thread, which must keep the new deadline */
}

bool publisher_page_etag(struct publisher *p, int64_t index_id, uint32_t number, bool gz,
                         char out[RESOURCE_ETAG_SIZE])
{
    const struct page_map *routing = publisher_page_map(p);
    struct place *place = find_page(p, routing, index_id, number);
    struct resource *s = place == NULL ? NULL : place_peek(place);
    if (s != NULL)
        memcpy(out, gz ? s->etag_file : s->etag_gzip, RESOURCE_ETAG_SIZE);
    bool hot = s != NULL;
    resource_unref(s);
    place_unref(place);
    publisher_page_map_done(routing);
    return hot;
}

void publisher_each_index(struct publisher *p,
                          void (*each)(void *context, const char *origin, const char *path,
                                       uint64_t pages, uint64_t entries),
                          void *context)
{
    const struct page_map *routing = publisher_page_map(p);
    const struct registry *registry = page_map_registry(routing);
    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];
        for (size_t k = 0; k < site->index_count; k++) {
            const struct registry_index *index = &site->indexes[k];
            uint64_t entries = 0;
            for (size_t n = 0; n < index->page_count; n++) {
                struct place *place = find_page(p, routing, index->id, index->pages[n]);
                if (place != NULL)
                    entries += atomic_load(&((struct page_place *)place)->entries);
                place_unref(place);
            }
            each(context, site->origin, index->path, index->page_count, entries);
        }
    }
    publisher_page_map_done(routing);
}

bool publisher_serves_since(const struct publisher *p, uint64_t ns)
{
    return atomic_load(&p->fresh_ns) >= ns;
}

void publisher_stats_get(struct publisher *p, struct publisher_stats *out)
{
    uint64_t fresh_ns = atomic_load(&p->fresh_ns), now_ns = clock_now_ns();
    struct cache_stats cache;
    cache_stats_get(p->options.cache, HELD_PAGE, &cache);
    *out = (struct publisher_stats){
        .segments_rendered = atomic_load(&p->segments_rendered),
        .pages_published = atomic_load(&p->pages_published),
        .pages_built_cold = atomic_load(&p->pages_built_cold),
        .snapshots = cache.resources,
        .snapshot_bytes = cache.bytes,
        .changed_at = atomic_load(&p->changed_at),
        .seen_revision = atomic_load(&p->seen),
        .pages_loaded = atomic_load(&p->pages_loaded),
        .page_store_bytes = page_store_writer_bytes(p->keeper),
        .evictions = cache.evictions,
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
