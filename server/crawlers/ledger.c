/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How it works. A page's record has the currently published version, and a list of rows, one for
 * each crawler that ever requested the page. So a change finds every crawler that it concerns, and
 * a completed fetch finds out whether its version is still the current one. A crawler that
 * completes an old snapshot after the page has changed is thus not considered current:
 *
 *   publisher: page is S2  |  reader of S1 completes  |  its row
 *   -----------------------+--------------------------+------------------------------------------
 *   before                 |  after                   |  holds S1, stale since S2's change
 *   after                  |  before                  |  holds S1; the change then makes it stale
 *   between                                           |  one lock: one of the two
 *
 * A reader can also be ahead: a page that is built on demand may be newer than the last report. Its
 * revision shows that, and the next report recognises the version of the row.
 *
 * Versions are compared by their stamps, which survive a restored copy; revisions only decide which
 * of two is newer.
 *
 * Records and rows are in two arrays of fixed size, linked by their places there (0: none). Pages
 * are hashed into buckets; one of STRIPES locks guards a bucket, its pages and their rows. The free
 * lists have a lock of their own, taken within a stripe's, and only to add or drop a record or row.
 *
 * A site may take a place while it has fewer than SHARE times the free ones: alone it gets three
 * quarters, each of two sites three sevenths, and so on. So another site always finds free ones,
 * however many indexes and urlsets a site has. */
#include "server/crawlers/ledger.h"

#include <pthread.h>
#include <stdlib.h>

#define STRIPES 64u
#define BUCKETS 32768u /* a multiple of STRIPES */
#define SHARE   3u

struct page {
    struct ledger_page is;
    uint32_t next; /* in its bucket, or in the free list */
    uint32_t rows;
    uint32_t share; /* in which the page and its rows are counted, for its life */
};

struct row {
    struct crawler_row is; /* use stale() for its stale_since */
    uint64_t held_stamp;
    uint32_t next; /* of its page, or in the free list */
    bool taken;    /* collected, and not changed since */
};

struct ledger {
    pthread_mutex_t stripes[STRIPES];
    uint32_t buckets[BUCKETS];
    pthread_mutex_t free_lock;
    /* free_lock. Places beyond `used_` were never used: their memory is not touched. */
    uint32_t free_pages, free_rows, used_pages, used_rows, page_count, row_count;
    uint32_t pages_of[CRAWLERS_SHARES], rows_of[CRAWLERS_SHARES];
    struct page pages[CRAWLERS_MAX_PAGES + 1];
    struct row rows[CRAWLERS_MAX_ROWS + 1];
};

struct ledger *ledger_new(void)
{
    struct ledger *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    pthread_mutex_init(&l->free_lock, NULL);
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_init(&l->stripes[i], NULL);
    return l;
}

void ledger_free(struct ledger *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&l->stripes[i]);
    pthread_mutex_destroy(&l->free_lock);
    free(l);
}

/* ---- places -------------------------------------------------------------------------------- */

static uint32_t bucket_of(int64_t index_id, uint32_t number)
{
    uint64_t h = ((uint64_t)index_id * 0x9e3779b97f4a7c15u) ^ ((uint64_t)number << 32 | number);
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    h ^= h >> 32;
    return (uint32_t)(h % BUCKETS);
}

static pthread_mutex_t *lock_bucket(struct ledger *l, uint32_t bucket)
{
    pthread_mutex_t *lock = &l->stripes[bucket % STRIPES];
    pthread_mutex_lock(lock);
    return lock;
}

/* Static functions below: under the bucket's lock. NULL: the page has no record. */
static struct page *find_page_record(struct ledger *l, uint32_t bucket, int64_t index_id,
                                     uint32_t number)
{
    for (uint32_t at = l->buckets[bucket]; at != 0; at = l->pages[at].next)
        if (l->pages[at].is.index_id == index_id && l->pages[at].is.number == number)
            return &l->pages[at];
    return NULL;
}

/* Under free_lock: whether a site that has `own` of all `taken` places may take another. */
static bool may_allocate(uint32_t own, uint32_t taken, uint32_t all)
{
    return own < SHARE * (all - taken);
}

static struct page *page_new(struct ledger *l, uint32_t bucket, int64_t site_id)
{
    uint32_t at = 0, share = (uint32_t)((uint64_t)site_id % CRAWLERS_SHARES);

    pthread_mutex_lock(&l->free_lock);
    if (may_allocate(l->pages_of[share], l->page_count, CRAWLERS_MAX_PAGES)) {
        at = l->free_pages;
        l->free_pages = l->pages[at].next; /* place 0 is unused, and its `next` is 0 */
        if (at == 0)
            at = ++l->used_pages;
        l->page_count++;
        l->pages_of[share]++;
    }
    pthread_mutex_unlock(&l->free_lock);
    if (at == 0)
        return NULL;
    l->pages[at] = (struct page){.next = l->buckets[bucket], .share = share};
    l->buckets[bucket] = at;
    return &l->pages[at];
}

static struct row *row_new(struct ledger *l, struct page *page, uint8_t crawler)
{
    uint32_t at = 0;

    pthread_mutex_lock(&l->free_lock);
    if (may_allocate(l->rows_of[page->share], l->row_count, CRAWLERS_MAX_ROWS)) {
        at = l->free_rows;
        l->free_rows = l->rows[at].next;
        if (at == 0)
            at = ++l->used_rows;
        l->row_count++;
        l->rows_of[page->share]++;
    }
    pthread_mutex_unlock(&l->free_lock);
    if (at == 0)
        return NULL;
    l->rows[at] = (struct row){.is.crawler = crawler, .next = page->rows};
    page->rows = at;
    return &l->rows[at];
}

static struct row *find_row(struct ledger *l, const struct page *page, uint8_t crawler)
{
    for (uint32_t at = page->rows; at != 0; at = l->rows[at].next)
        if (l->rows[at].is.crawler == crawler)
            return &l->rows[at];
    return NULL;
}

/* `*link`: the place of the page to free. */
static void page_free(struct ledger *l, uint32_t *link)
{
    uint32_t at = *link;
    struct page *page = &l->pages[at];

    *link = page->next;
    pthread_mutex_lock(&l->free_lock);
    while (page->rows != 0) {
        uint32_t row = page->rows;
        page->rows = l->rows[row].next;
        l->rows[row].next = l->free_rows;
        l->free_rows = row;
        l->row_count--;
        l->rows_of[page->share]--;
    }
    l->page_count--;
    l->pages_of[page->share]--;
    page->next = l->free_pages;
    l->free_pages = at;
    pthread_mutex_unlock(&l->free_lock);
}

/* Since when the crawler of the row lacks the current version; 0: it has that version, or never had
 * any. */
static int64_t stale(const struct page *page, const struct row *row)
{
    if (!row->is.held || row->held_stamp == page->is.stamp)
        return 0;
    return row->is.stale_since != 0 ? row->is.stale_since : page->is.changed_at;
}

/* ---- fetches and changes
 * -------------------------------------------------------------------------- */

void ledger_clear(struct ledger *l)
{
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        pthread_mutex_t *lock = lock_bucket(l, bucket);
        while (l->buckets[bucket] != 0)
            page_free(l, &l->buckets[bucket]);
        pthread_mutex_unlock(lock);
    }
}

bool ledger_page_is(struct ledger *l, int64_t site_id, const struct ledger_page *is)
{
    uint32_t bucket = bucket_of(is->index_id, is->number);
    pthread_mutex_t *lock = lock_bucket(l, bucket);
    struct page *page = find_page_record(l, bucket, is->index_id, is->number);

    if (page == NULL)
        page = page_new(l, bucket, site_id);
    if (page != NULL) {
        page->is = *is;
        for (uint32_t at = page->rows; at != 0; at = l->rows[at].next) {
            struct row *row = &l->rows[at];
            int64_t before = row->is.stale_since;
            if (row->held_stamp == is->stamp)
                row->is.stale_since = 0;
            else if (row->is.held && before == 0)
                row->is.stale_since = is->changed_at;
            row->taken &= row->is.stale_since == before;
        }
    }
    pthread_mutex_unlock(lock);
    return page != NULL;
}

void ledger_page_removed(struct ledger *l, int64_t index_id, uint32_t number)
{
    uint32_t bucket = bucket_of(index_id, number);
    pthread_mutex_t *lock = lock_bucket(l, bucket);
    uint32_t *link = &l->buckets[bucket];

    while (*link != 0 &&
           (l->pages[*link].is.index_id != index_id || l->pages[*link].is.number != number))
        link = &l->pages[*link].next;
    if (*link != 0)
        page_free(l, link);
    pthread_mutex_unlock(lock);
}

/* Records that the crawler has the version `sent` from now on. Returns the lag that this ends; -1:
 * none. */
static int64_t hold_version(const struct page *page, struct row *row,
                            const struct ledger_page *sent, int64_t now)
{
    bool present = sent->stamp == page->is.stamp, ahead = sent->revision > page->is.revision;
    int64_t since = row->is.stale_since;

    row->is.held = true;
    row->held_stamp = sent->stamp;
    row->is.held_changed_at = sent->changed_at;
    if (present || ahead) {
        row->is.stale_since = 0;
        return since == 0 ? -1 : now > since ? now - since : 0;
    }
    if (since == 0)
        row->is.stale_since = page->is.changed_at;
    return -1;
}

bool ledger_visit(struct ledger *l, const struct ledger_page *sent, uint8_t crawler,
                  enum ledger_visit kind, uint16_t status, int64_t now, int64_t *lag_s)
{
    uint32_t bucket = bucket_of(sent->index_id, sent->number);
    pthread_mutex_t *lock = lock_bucket(l, bucket);
    struct page *page = find_page_record(l, bucket, sent->index_id, sent->number);
    struct row *row = page == NULL ? NULL : find_row(l, page, crawler);

    *lag_s = -1;
    if (page != NULL && row == NULL)
        row = row_new(l, page, crawler);
    if (row != NULL) {
        row->taken = false;
        row->is.fetched_at = now;
        row->is.status = status;
        row->is.ok += kind == VISIT_OK;
        row->is.not_modified += kind == VISIT_NOT_MODIFIED;
        row->is.other += kind == VISIT_OTHER;
        if (kind != VISIT_OTHER)
            *lag_s = hold_version(page, row, sent, now);
    }
    pthread_mutex_unlock(lock);
    return row != NULL;
}

bool ledger_import(struct ledger *l, const struct ledger_page *from, uint8_t crawler,
                   const struct crawler_visits *visits, int64_t *lag_s)
{
    uint32_t bucket = bucket_of(from->index_id, from->number);
    pthread_mutex_t *lock = lock_bucket(l, bucket);
    struct page *page = find_page_record(l, bucket, from->index_id, from->number);
    struct row *row = page == NULL ? NULL : find_row(l, page, crawler);

    *lag_s = -1;
    if (page != NULL && row == NULL)
        row = row_new(l, page, crawler);
    if (row != NULL) {
        row->taken = false;
        row->is.ok += visits->ok;
        row->is.not_modified += visits->not_modified;
        row->is.other += visits->other;
        if (visits->fetched_at > row->is.fetched_at) {
            row->is.fetched_at = visits->fetched_at;
            row->is.status = visits->status;
        }
        /* A log never replaces a newer version that the server itself saw the crawler fetch. */
        if (visits->held_at != 0 && (!row->is.held || row->is.held_changed_at <= from->changed_at))
            *lag_s = hold_version(page, row, from, visits->held_at);
    }
    pthread_mutex_unlock(lock);
    return row != NULL;
}

/* ---- saving and restoring
 * ------------------------------------------------------------------------------- */

/* Collects the changed rows of a bucket, at most `max`. */
static size_t collect_bucket(struct ledger *l, uint32_t bucket, struct crawler_held out[],
                             size_t max)
{
    size_t count = 0;

    for (uint32_t p = l->buckets[bucket]; p != 0; p = l->pages[p].next) {
        const struct page *page = &l->pages[p];
        for (uint32_t r = page->rows; r != 0 && count < max; r = l->rows[r].next) {
            struct row *row = &l->rows[r];
            if (row->taken)
                continue;
            row->taken = true;
            out[count++] = (struct crawler_held){.row = row->is,
                                                 .index_id = page->is.index_id,
                                                 .page = page->is.number,
                                                 .held_stamp = row->held_stamp};
        }
    }
    return count;
}

size_t ledger_collect(struct ledger *l, size_t *at, struct crawler_held out[], size_t max)
{
    size_t count = 0;

    /* A bucket that may have more rows than there was room for is visited again. */
    for (; *at < BUCKETS; (*at)++) {
        pthread_mutex_t *lock = lock_bucket(l, (uint32_t)*at);
        count += collect_bucket(l, (uint32_t)*at, out + count, max - count);
        pthread_mutex_unlock(lock);
        if (count == max)
            break;
    }
    return count;
}

void ledger_retry(struct ledger *l)
{
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        pthread_mutex_t *lock = lock_bucket(l, bucket);
        for (uint32_t p = l->buckets[bucket]; p != 0; p = l->pages[p].next)
            for (uint32_t r = l->pages[p].rows; r != 0; r = l->rows[r].next)
                l->rows[r].taken = false;
        pthread_mutex_unlock(lock);
    }
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Dates are whole seconds: of two versions of one second, the present one is the newer. */
static bool is_newer(const struct page *page, const struct row *row,
                     const struct crawler_held *held)
{
    if (held->row.held_changed_at != row->is.held_changed_at)
        return held->row.held_changed_at > row->is.held_changed_at;
    return held->held_stamp == page->is.stamp && row->held_stamp != page->is.stamp;
}

/* Keeps the newer of the two versions, with the earliest change known since then. Returns the
 * stale_since that was reported for the version that is kept. */
static int64_t update_held(const struct page *page, struct row *row,
                           const struct crawler_held *held)
{
    int64_t since = held->row.stale_since;

    if (held->row.held && (!row->is.held || is_newer(page, row, held))) {
        row->is.held = true;
        row->is.held_changed_at = held->row.held_changed_at;
        row->held_stamp = held->held_stamp;
        row->is.stale_since = since;
    } else if (held->row.held && held->held_stamp == row->held_stamp && since != 0 &&
               (row->is.stale_since == 0 || since < row->is.stale_since)) {
        row->is.stale_since = since;
    }
    return row->is.stale_since;
}

bool ledger_restore(struct ledger *l, const struct crawler_held *held)
{
    uint32_t bucket = bucket_of(held->index_id, held->page);
    pthread_mutex_t *lock = lock_bucket(l, bucket);
    struct page *page = find_page_record(l, bucket, held->index_id, held->page);
    struct row *row = page == NULL ? NULL : find_row(l, page, held->row.crawler);

    if (page != NULL && row == NULL) {
        row = row_new(l, page, held->row.crawler);
        if (row != NULL)
            row->taken = true;
    }
    if (row != NULL) {
        row->is.ok = larger(row->is.ok, held->row.ok);
        row->is.not_modified = larger(row->is.not_modified, held->row.not_modified);
        row->is.other = larger(row->is.other, held->row.other);
        if (held->row.fetched_at > row->is.fetched_at) {
            row->is.fetched_at = held->row.fetched_at;
            row->is.status = held->row.status;
        }
        int64_t known = update_held(page, row, held);
        /* If several changes were made while no server ran, the time of the first one is
         * unknown. */
        if (row->is.held_changed_at <=
            page->is.changed_at) /* else the page is older than the row: a report of the newer page
                                    will follow */
            row->is.stale_since = stale(page, row);
        row->taken &= row->is.stale_since == known;
    }
    pthread_mutex_unlock(lock);
    return row != NULL;
}

/* ---- reading ------------------------------------------------------------------------------- */

size_t ledger_rows_of(struct ledger *l, int64_t index_id, uint32_t number, int64_t *changed_at,
                      struct crawler_row rows[CRAWLERS_MAX])
{
    uint32_t bucket = bucket_of(index_id, number);
    pthread_mutex_t *lock = lock_bucket(l, bucket);
    const struct page *page = find_page_record(l, bucket, index_id, number);
    size_t count = 0;

    *changed_at = page == NULL ? 0 : page->is.changed_at;
    for (uint32_t at = page == NULL ? 0 : page->rows; at != 0; at = l->rows[at].next) {
        rows[count] = l->rows[at].is;
        rows[count++].stale_since = stale(page, &l->rows[at]);
    }
    pthread_mutex_unlock(lock);
    return count;
}

uint64_t ledger_row_count(struct ledger *l)
{
    pthread_mutex_lock(&l->free_lock);
    uint64_t count = l->row_count;
    pthread_mutex_unlock(&l->free_lock);
    return count;
}

static void count_page(struct ledger *l, const struct page *page, struct crawler_counts *of)
{
    for (uint32_t at = page->rows; at != 0; at = l->rows[at].next) {
        struct crawler_counts *counts = &of[l->rows[at].is.crawler];
        int64_t since = stale(page, &l->rows[at]);
        if (since == 0)
            continue;
        counts->stale_pages++;
        if (counts->oldest_stale == 0 || since < counts->oldest_stale)
            counts->oldest_stale = since;
    }
}

/* The lock is released after each bucket, so that no request waits for the whole ledger. */
void ledger_count_stale(struct ledger *l, struct crawler_counts of[CRAWLERS_MAX])
{
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++) {
        pthread_mutex_t *lock = lock_bucket(l, bucket);
        for (uint32_t at = l->buckets[bucket]; at != 0; at = l->pages[at].next)
            count_page(l, &l->pages[at], of);
        pthread_mutex_unlock(lock);
    }
}
