/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How it works. A fetch belongs to the crawler that its User-Agent names (names.c). If address
 * ranges are configured for that crawler, its address must be in them. It is counted in the totals,
 * in the day's sum (days.c), and in the record of the page (ledger.c) or other sitemap (children.c)
 * that was sent.
 *
 * A reload brings a new table, where names have other places. So counts are kept by *slot*: a name
 * gets a slot when it is first configured and keeps it for the life of the process. */
#include "server/crawlers/crawlers.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "server/crawlers/ledger.h"
#include "server/crawlers/names.h"

const struct histogram_bounds crawler_lag_bounds = {
    .count = 13,
    .upper = {60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 4 * 86400,
              7 * 86400, 14 * 86400, 30 * 86400},
};

struct slot {
    char name[CRAWLER_NAME_MAX + 1]; /* written once, before slot_count counts it */
    atomic_bool verified;
    atomic_uint_fast64_t ok, not_modified, other, impostors;
    atomic_uint_fast64_t offered[CRAWLERS_CODINGS];
    atomic_int_fast64_t last_fetch_at;
    struct histogram lag;
};

struct crawlers {
    pthread_rwlock_t names_lock;
    struct crawler_names *names; /* owned; names_lock */
    atomic_size_t slot_count;
    struct slot slots[CRAWLERS_MAX];
    struct ledger *ledger;
    struct days *days;
    struct children *children;
    atomic_uint_fast64_t untracked;
    atomic_int_fast64_t since;
    pthread_mutex_t others_lock; /* held from crawlers_others_begin to _end */
    struct days *others_next;    /* others_lock; NULL: none */
    int64_t others_times;        /* others_lock */
    pthread_rwlock_t days_lock;
    struct days *others; /* days_lock; NULL: none exist */
    pthread_mutex_t epoch_lock;
    char epoch[CRAWLERS_EPOCH_SIZE]; /* epoch_lock */
};

/* ---- names --------------------------------------------------------------------------------- */

static size_t find_slot(const struct crawlers *c, const char *name)
{
    size_t count = atomic_load(&c->slot_count), i = 0;
    while (i < count && strcmp(c->slots[i].name, name) != 0)
        i++;
    return i;
}

/* Under names_lock, or before `c` is shared. */
static bool assign_slots(struct crawlers *c, struct crawler_names *names)
{
    size_t count = atomic_load(&c->slot_count), wanted = count;

    for (size_t i = 0; i < names_count(names); i++)
        wanted += find_slot(c, names_at(names, i)->text) == count;
    if (wanted > CRAWLERS_MAX)
        return false;
    for (size_t i = 0; i < count; i++)
        atomic_store(&c->slots[i].verified, false);
    for (size_t i = 0; i < names_count(names); i++) {
        struct crawler_name *name = names_at(names, i);
        size_t slot = find_slot(c, name->text);
        if (slot == atomic_load(&c->slot_count)) {
            memcpy(c->slots[slot].name, name->text, sizeof name->text);
            atomic_store(&c->slot_count, slot + 1);
        }
        name->slot = (uint8_t)slot;
        atomic_store(&c->slots[slot].verified, name->has_ranges);
    }
    return true;
}

struct crawlers *crawlers_new(struct crawler_names *names, int64_t now)
{
    struct crawlers *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    pthread_rwlock_init(&c->names_lock, NULL);
    pthread_mutex_init(&c->epoch_lock, NULL);
    pthread_mutex_init(&c->others_lock, NULL);
    pthread_rwlock_init(&c->days_lock, NULL);
    atomic_store(&c->since, now);
    c->ledger = ledger_new();
    c->days = days_new();
    c->children = children_new();
    if (c->ledger == NULL || c->days == NULL || c->children == NULL || !assign_slots(c, names)) {
        crawlers_free(c);
        return NULL;
    }
    c->names = names;
    return c;
}

bool crawlers_use(struct crawlers *c, struct crawler_names *names)
{
    struct crawler_names *old = NULL;

    pthread_rwlock_wrlock(&c->names_lock);
    bool good = assign_slots(c, names);
    if (good) {
        old = c->names;
        c->names = names;
    }
    pthread_rwlock_unlock(&c->names_lock);
    crawler_names_free(old);
    return good;
}

void crawlers_free(struct crawlers *c)
{
    if (c == NULL)
        return;
    crawler_names_free(c->names);
    ledger_free(c->ledger);
    days_free(c->days);
    children_free(c->children);
    days_free(c->others);
    pthread_rwlock_destroy(&c->days_lock);
    pthread_mutex_destroy(&c->others_lock);
    pthread_rwlock_destroy(&c->names_lock);
    pthread_mutex_destroy(&c->epoch_lock);
    free(c);
}

/* ---- fetches and changes
 * -------------------------------------------------------------------------- */

size_t crawlers_who(struct crawlers *c, const char *user_agent, const char *address, bool *real)
{
    pthread_rwlock_rdlock(&c->names_lock);
    const struct crawler_name *name = names_at(c->names, names_classify(c->names, user_agent));
    size_t slot = name->slot;
    *real = !name->has_ranges || (address != NULL && ranges_hold(&name->ranges, address));
    pthread_rwlock_unlock(&c->names_lock);
    return slot;
}

static void increment(atomic_uint_fast64_t *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static enum ledger_visit kind_of(const struct crawler_fetch *fetch)
{
    if (!fetch->whole)
        return VISIT_OTHER;
    return fetch->status == 200   ? VISIT_OK
           : fetch->status == 304 ? VISIT_NOT_MODIFIED
                                  : VISIT_OTHER;
}

/* Returns the lag that ended, or -1. */
static int64_t visit_page(struct crawlers *c, uint8_t slot, const struct crawler_fetch *fetch,
                          enum ledger_visit kind, int64_t now)
{
    const struct ledger_page sent = {
        .index_id = fetch->index_id,
        .number = fetch->page,
        .revision = fetch->revision,
        .stamp = fetch->stamp,
        .changed_at = fetch->changed_at,
    };
    int64_t lag_s;

    if (!ledger_visit(c->ledger, &sent, slot, kind, (uint16_t)fetch->status, now, &lag_s))
        increment(&c->untracked);
    if (lag_s >= 0)
        histogram_add(&c->slots[slot].lag, &crawler_lag_bounds, (uint64_t)lag_s);
    return lag_s;
}

void crawlers_fetched(struct crawlers *c, const struct crawler_fetch *fetch, int64_t now)
{
    static const enum day_kind day_kinds[] = {
        [VISIT_OK] = DAY_OK, [VISIT_NOT_MODIFIED] = DAY_NOT_MODIFIED, [VISIT_OTHER] = DAY_OTHER};
    bool real;
    size_t at = crawlers_who(c, fetch->user_agent, fetch->address, &real);
    struct slot *slot = &c->slots[at];
    enum ledger_visit kind = kind_of(fetch);
    int64_t lag_s = -1;

    if (!real) {
        increment(&slot->impostors);
    } else {
        increment(kind == VISIT_OK             ? &slot->ok
                  : kind == VISIT_NOT_MODIFIED ? &slot->not_modified
                                               : &slot->other);
        if (fetch->offered != 0)
            increment(&slot->offered[fetch->offered]);
        atomic_store_explicit(&slot->last_fetch_at, now, memory_order_relaxed);
    }
    if (at == 0) /* a client that is not a known crawler is only counted */
        return;
    if (real && fetch->index_id != 0)
        lag_s = visit_page(c, (uint8_t)at, fetch, kind, now);
    if (real && fetch->child != 0 && fetch->site_id != 0 &&
        !children_visit(c->children, fetch->site_id, fetch->child, (uint8_t)at, kind,
                        (uint16_t)fetch->status, now))
        increment(&c->untracked);
    if (fetch->site_id != 0 &&
        !days_count(c->days, (uint8_t)at, fetch->site_id, real ? day_kinds[kind] : DAY_IMPOSTOR,
                    fetch->bytes, lag_s, now))
        increment(&c->untracked);
}

/* Makes `others` the reported sums. Returns those that were reported before. */
static struct days *report_others(struct crawlers *c, struct days *others)
{
    pthread_rwlock_wrlock(&c->days_lock);
    struct days *old = c->others;
    c->others = others;
    pthread_rwlock_unlock(&c->days_lock);
    return old;
}

void crawlers_catalogue_is(struct crawlers *c, const char *epoch)
{
    /* Clears everything before the epoch changes: a thread that reads the new epoch finds no count
     * of the old one, and what it restores then is not cleared. */
    pthread_mutex_lock(&c->epoch_lock);
    if (strcmp(c->epoch, epoch) != 0) {
        ledger_clear(c->ledger);
        days_clear(c->days);
        children_clear(c->children);
        pthread_mutex_lock(&c->others_lock);
        days_free(report_others(c, NULL));
        c->others_times = 0;
        pthread_mutex_unlock(&c->others_lock);
        snprintf(c->epoch, sizeof c->epoch, "%s", epoch);
    }
    pthread_mutex_unlock(&c->epoch_lock);
}

void crawlers_page_is(struct crawlers *c, int64_t site_id, int64_t index_id, uint32_t page,
                      uint64_t revision, uint64_t stamp, int64_t changed_at)
{
    const struct ledger_page is = {index_id, page, revision, stamp, changed_at};
    ledger_page_is(c->ledger, site_id,
                   &is); /* if there is no room, visits of the page are not tracked */
}

void crawlers_page_removed(struct crawlers *c, int64_t index_id, uint32_t page)
{
    ledger_page_removed(c->ledger, index_id, page);
}

/* ---- reading ------------------------------------------------------------------------------- */

size_t crawlers_count(const struct crawlers *c)
{
    return atomic_load(&c->slot_count);
}

const char *crawlers_name(const struct crawlers *c, size_t at)
{
    return c->slots[at].name;
}

size_t crawlers_find(const struct crawlers *c, const char *name)
{
    size_t at = find_slot(c, name);
    return at < atomic_load(&c->slot_count) ? at : 0;
}

bool crawlers_is_verified(struct crawlers *c, size_t at)
{
    return atomic_load(&c->slots[at].verified);
}

int64_t crawlers_since(const struct crawlers *c)
{
    return atomic_load(&c->since);
}

size_t crawlers_page(struct crawlers *c, int64_t index_id, uint32_t page, int64_t *changed_at,
                     struct crawler_row rows[CRAWLERS_MAX])
{
    return ledger_rows_of(c->ledger, index_id, page, changed_at, rows);
}

uint64_t crawlers_child_of(const char *path, const char *query)
{
    size_t len = strcspn(path, "?");
    if (query == NULL && path[len] == '?')
        query = path + len + 1;
    uint64_t hash = XXH3_64bits(path, len);
    if (query != NULL)
        hash = XXH3_64bits_withSeed(query, strlen(query), hash);
    return hash != 0 ? hash : 1;
}

size_t crawlers_child(struct crawlers *c, int64_t site_id, uint64_t child,
                      struct crawler_child rows[CRAWLERS_MAX])
{
    return children_rows_of(c->children, site_id, child, rows);
}

void crawlers_each_day(struct crawlers *c,
                       void (*each)(void *context, const struct crawler_day *day), void *context)
{
    days_each(c->days, each, context);
    pthread_rwlock_rdlock(&c->days_lock);
    if (c->others != NULL)
        days_each(c->others, each, context);
    pthread_rwlock_unlock(&c->days_lock);
}

/* ---- saving and restoring
 * ------------------------------------------------------------------------------- */

void crawlers_epoch(struct crawlers *c, char out[CRAWLERS_EPOCH_SIZE])
{
    pthread_mutex_lock(&c->epoch_lock);
    memcpy(out, c->epoch, CRAWLERS_EPOCH_SIZE);
    pthread_mutex_unlock(&c->epoch_lock);
}

size_t crawlers_collect_pages(struct crawlers *c, size_t *at, struct crawler_held out[], size_t max)
{
    return ledger_collect(c->ledger, at, out, max);
}

size_t crawlers_collect_days(struct crawlers *c, size_t *at, struct crawler_day out[], size_t max)
{
    return days_collect(c->days, at, out, max);
}

size_t crawlers_collect_children(struct crawlers *c, size_t *at, struct crawler_child out[],
                                 size_t max)
{
    return children_collect(c->children, at, out, max);
}

void crawlers_retry(struct crawlers *c)
{
    ledger_retry(c->ledger);
    days_retry(c->days);
    children_retry(c->children);
}

/* The time is restored, too, so that the metrics show a crawler that made no request since the
 * start. */
static void record_last_fetch(struct crawlers *c, size_t slot, int64_t at)
{
    if (at > atomic_load(&c->slots[slot].last_fetch_at))
        atomic_store(&c->slots[slot].last_fetch_at, at);
}

void crawlers_restore_page(struct crawlers *c, const char *name, const struct crawler_held *held)
{
    size_t slot = crawlers_find(c, name);
    struct crawler_held with_slot = *held;
    if (slot == 0)
        return;
    with_slot.row.crawler = (uint8_t)slot;
    if (ledger_restore(c->ledger, &with_slot))
        record_last_fetch(c, slot, held->row.fetched_at);
}

void crawlers_restore_child(struct crawlers *c, const char *name, const struct crawler_child *child)
{
    size_t slot = crawlers_find(c, name);
    struct crawler_child with_slot = *child;
    if (slot == 0)
        return;
    with_slot.crawler = (uint8_t)slot;
    children_restore(c->children, &with_slot);
}

/* False: no crawler has this name here. */
static bool slot_day(const struct crawlers *c, const char *name, const struct crawler_day *day,
                     struct crawler_day *out)
{
    *out = *day;
    out->crawler = (uint8_t)crawlers_find(c, name);
    return out->crawler != 0;
}

void crawlers_restore_day(struct crawlers *c, const char *name, const struct crawler_day *day,
                          int64_t now)
{
    struct crawler_day with_slot;
    if (slot_day(c, name, day, &with_slot))
        days_restore(c->days, &with_slot, now);
}

void crawlers_import(struct crawlers *c, const struct crawler_visits *visits, int64_t now)
{
    const struct ledger_page page = {
        .index_id = visits->index_id,
        .number = visits->page,
        .revision = visits->revision,
        .stamp = visits->stamp,
        .changed_at = visits->changed_at,
    };
    size_t slot = crawlers_find(c, visits->crawler);
    int64_t lag_s = -1;

    if (slot == 0)
        return;
    if (visits->index_id != 0 && !ledger_import(c->ledger, &page, (uint8_t)slot, visits, &lag_s))
        increment(&c->untracked);
    if (visits->child != 0 && !children_import(c->children, visits, (uint8_t)slot))
        increment(&c->untracked);
    if (!days_import(c->days, (uint8_t)slot, visits, lag_s, now))
        increment(&c->untracked);
    record_last_fetch(c, slot, visits->fetched_at);
}

void crawlers_restore_since(struct crawlers *c, int64_t since)
{
    int_fast64_t was = atomic_load(&c->since);
    while (since < was && !atomic_compare_exchange_weak(&c->since, &was, since))
        continue;
}

/* The new sums of other nodes are built beside those in use, and then replace them. */
bool crawlers_others_begin(struct crawlers *c, int64_t times)
{
    pthread_mutex_lock(&c->others_lock);
    if (times == 0 || times != c->others_times)
        c->others_next = days_new();
    if (c->others_next != NULL)
        return true;
    pthread_mutex_unlock(&c->others_lock);
    return false;
}

void crawlers_others_day(struct crawlers *c, const char *name, const struct crawler_day *day,
                         int64_t now)
{
    struct crawler_day with_slot;
    if (slot_day(c, name, day, &with_slot))
        days_add(c->others_next, &with_slot, now);
}

void crawlers_others_end(struct crawlers *c, int64_t times)
{
    struct days *old = c->others_next;
    if (times != 0) {
        old = report_others(c, c->others_next);
        c->others_times = times;
    }
    c->others_next = NULL;
    pthread_mutex_unlock(&c->others_lock);
    days_free(old);
}

void crawlers_totals(struct crawlers *c, struct crawlers_totals *out)
{
    memset(out, 0, sizeof *out);
    out->rows = ledger_row_count(c->ledger);
    out->untracked = atomic_load(&c->untracked);
    for (size_t i = 0; i < crawlers_count(c); i++) {
        struct slot *slot = &c->slots[i];
        struct crawler_counts *counts = &out->of[i];
        counts->ok = atomic_load(&slot->ok);
        counts->not_modified = atomic_load(&slot->not_modified);
        counts->other = atomic_load(&slot->other);
        counts->impostors = atomic_load(&slot->impostors);
        for (size_t o = 0; o < CRAWLERS_CODINGS; o++)
            counts->offered[o] = atomic_load(&slot->offered[o]);
        counts->last_fetch_at = atomic_load(&slot->last_fetch_at);
        histogram_collect(&slot->lag, &counts->lag);
    }
    ledger_count_stale(c->ledger, out->of);
}
