/* The pass: how every change is found, whatever its cause (ARCHITECTURE.md, "How the data flows").
 * One read transaction; the registry if it moved; `wanted` raised in every slot whose page moved,
 * before anything is acknowledged; hot pages rebuilt; then whoever waited is resumed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/publish/state.h"

struct page_list {
    struct page_record *pages; /* owned */
    size_t count, capacity;
    bool failed;
};

static bool collect_page(void *context, const struct page_record *page, const char *url)
{
    struct page_list *l = context;
    (void)url;
    if (l->count == l->capacity) {
        size_t capacity = l->capacity == 0 ? 16 : l->capacity * 2;
        struct page_record *pages = realloc(l->pages, capacity * sizeof *pages);
        if (pages == NULL) {
            l->failed = true;
            return false;
        }
        l->pages = pages;
        l->capacity = capacity;
    }
    l->pages[l->count++] = *page;
    return true;
}

/* Replaces the routing table; the old one lives until its last request is done. `anew`: it is of
 * another catalogue than before, so the slots are others too. What is served until then stays if
 * the new one cannot be read. */
static enum catalogue_status refresh_routing(struct publisher *p, struct catalogue_view *v,
                                             const char *epoch, bool anew)
{
    struct registry *registry;
    struct slot_table other = {.count = 0};
    enum catalogue_status status = catalogue_view_registry(v, &registry);
    if (status != CATALOGUE_OK)
        return status;
    snprintf(other.epoch, sizeof other.epoch, "%s", epoch);
    pthread_mutex_lock(&p->table_lock);
    struct routing *fresh = routing_new(registry, &p->policies, anew ? &other : &p->slots);
    if (fresh != NULL && anew) {
        struct slot_table old = p->slots;
        p->slots = other;
        other = old;
    }
    if (fresh != NULL)
        slot_table_sweep(&p->slots);
    pthread_mutex_unlock(&p->table_lock);
    registry_unref(registry);
    if (fresh != NULL) {
        pthread_rwlock_wrlock(&p->routing_lock);
        const struct routing *old = p->routing;
        p->routing = fresh;
        pthread_rwlock_unlock(&p->routing_lock);
        publisher_routing_done(old);
    }
    slot_table_clear(&other);
    page_keeper_pages_moved(p->keeper);
    return fresh != NULL ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

static struct slot *find_slot(struct publisher *p, const struct page_record *page)
{
    pthread_mutex_lock(&p->table_lock);
    struct slot *s = slot_table_find(&p->slots, page->index_id, page->number);
    pthread_mutex_unlock(&p->table_lock);
    return s; /* stays: only a pass removes slots */
}

/* Renders what changed since `base` and installs the result. False: the page must be dropped. */
static bool republish(struct publisher *p, struct catalogue_view *v, uint64_t revision,
                      const struct page_record *page, struct slot *s, struct snapshot *base,
                      uint32_t *budget)
{
    uint32_t changed, rendered;
    struct snapshot *fresh;
    if (builder_changed(v, page, base, &changed) != CATALOGUE_OK)
        return false;
    if (changed > PASS_MAX_SEGMENTS || changed > *budget)
        return false;
    *budget -= changed;
    if (builder_page(p->builder, v, revision, page, base, &fresh, &rendered) != CATALOGUE_OK) {
        atomic_fetch_add(&p->publish_failures, 1);
        return false;
    }
    atomic_fetch_add(&p->segments_rendered, rendered);
    if (p->options.build_pause != NULL)
        p->options.build_pause(p->options.build_pause_context, page->index_id, page->number,
                               revision);
    if (!budget_admit(p, fresh)) {
        atomic_fetch_add(&p->publish_failures, 1);
        snapshot_unref(fresh);
        return false;
    }
    switch (slot_install(s, fresh)) {
    case SLOT_INSTALLED:
        atomic_fetch_add(&p->pages_published, 1);
        budget_enforce(p, s);
        return true;
    case SLOT_SUPERSEDED: /* a cold build was quicker, with as new a view */
        snapshot_unref(fresh);
        return true;
    case SLOT_OUTDATED: /* cannot be: only passes raise `wanted`, and this is one */
        break;
    }
    snapshot_unref(fresh);
    return false;
}

static void publish_pages(struct publisher *p, struct catalogue_view *v, uint64_t revision,
                          const struct page_list *list)
{
    uint32_t budget = PASS_MAX_TOTAL_SEGMENTS;
    for (size_t i = 0; i < list->count; i++) {
        struct slot *s = find_slot(p, &list->pages[i]);
        if (s == NULL)
            continue;
        slot_want(s, list->pages[i].revision);
        atomic_store(&s->entries, list->pages[i].removed ? 0 : list->pages[i].entries);
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct page_record *page = &list->pages[i];
        struct slot *s = find_slot(p, page);
        if (s == NULL)
            continue;
        pthread_mutex_lock(&s->lock);
        struct snapshot *base = s->current;
        if (base != NULL)
            snapshot_ref(base);
        pthread_mutex_unlock(&s->lock);
        if (base == NULL)
            continue; /* cold, or being built: the build meets `wanted` */
        if (base->revision < page->revision &&
            (page->removed || !republish(p, v, revision, page, s, base, &budget)))
            slot_drop(s);
        snapshot_unref(base);
    }
}

/* What the pages hold when the publisher starts; later passes follow what changes. */
static enum catalogue_status count_entries(struct publisher *p, struct catalogue_view *v)
{
    for (size_t i = 0; i < p->slots.capacity; i++) {
        struct slot *s = p->slots.buckets[i];
        struct page_record page;
        if (s == NULL)
            continue;
        enum catalogue_status status = catalogue_view_page(v, s->index_id, s->number, &page);
        if (status == CATALOGUE_OK)
            atomic_store(&s->entries, page.removed ? 0 : page.entries);
        else if (status != CATALOGUE_NOT_FOUND)
            return status;
    }
    return CATALOGUE_OK;
}

static enum catalogue_status pass_in_view(struct publisher *p, struct catalogue_view *v,
                                          uint64_t began_ns)
{
    struct catalogue_revisions now;
    struct page_list list = {NULL, 0, 0, false};
    enum catalogue_status status = catalogue_view_revisions(v, &now);
    if (status != CATALOGUE_OK)
        return status;
    bool first = p->epoch[0] == '\0';
    uint64_t seen = atomic_load(&p->seen);
    if (!first && strcmp(p->epoch, now.epoch) == 0 && now.revision == seen)
        return CATALOGUE_OK;
    if (!first && (strcmp(p->epoch, now.epoch) != 0 || now.revision < seen)) {
        pass_reset(p); /* another catalogue, or an older copy, has taken the place */
        first = true;
    }
    if (first || p->registry_revision != now.registry_revision) {
        status = refresh_routing(p, v, now.epoch, first);
        if (status != CATALOGUE_OK)
            return status;
        p->registry_revision = now.registry_revision;
    }
    if (first) {
        status = count_entries(p, v);
        if (status != CATALOGUE_OK)
            return status;
    } else {
        status = catalogue_view_pages_since(v, seen, 0, collect_page, &list);
        if (status == CATALOGUE_OK && list.failed)
            status = CATALOGUE_NO_MEMORY;
        if (status == CATALOGUE_OK)
            publish_pages(p, v, now.revision, &list);
        free(list.pages);
        if (status != CATALOGUE_OK)
            return status;
    }
    memcpy(p->epoch, now.epoch, sizeof p->epoch);
    atomic_store(&p->entries, now.entries);
    if (!first) /* before anyone can know of it: who was answered finds it counted */
        histogram_add(&p->publish_ns, &histogram_times, measure_now_ns() - began_ns);
    atomic_store(&p->seen, now.revision);
    await_list_publish(&p->awaits, now.revision);
    return CATALOGUE_OK;
}

enum catalogue_status pass_run(struct publisher *p)
{
    struct catalogue_view *v;
    pthread_mutex_lock(&p->pass_lock);
    uint64_t began_ns = measure_now_ns();
    enum catalogue_status status = catalogue_view_begin(p->catalogue, &v);
    if (status == CATALOGUE_OK) {
        status = pass_in_view(p, v, began_ns);
        catalogue_view_end(v);
    }
    if (status == CATALOGUE_OK)
        atomic_store(&p->fresh_ns, began_ns);
    pthread_mutex_unlock(&p->pass_lock);
    return status;
}

enum catalogue_status pass_swap_policies(struct publisher *p, struct routing_policies *policies)
{
    struct catalogue_view *v;
    struct catalogue_revisions now;
    pthread_mutex_lock(&p->pass_lock);
    struct routing_policies old = p->policies;
    enum catalogue_status status = catalogue_view_begin(p->catalogue, &v);
    if (status == CATALOGUE_OK) {
        p->policies = *policies;
        status = catalogue_view_revisions(v, &now);
        /* A registry newer than what was seen does no harm: the next pass makes the table again.
         * Where another catalogue has taken the place, it makes it of that. */
        if (status == CATALOGUE_OK && strcmp(now.epoch, p->epoch) == 0)
            status = refresh_routing(p, v, now.epoch, false);
        catalogue_view_end(v);
        if (status == CATALOGUE_OK)
            *policies = old;
        else
            p->policies = old;
    }
    pthread_mutex_unlock(&p->pass_lock);
    return status;
}

void pass_reset(struct publisher *p)
{
    p->epoch[0] = '\0';
    atomic_store(&p->seen, 0);
    await_list_reset(&p->awaits);
}
