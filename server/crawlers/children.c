/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The last fetch of each crawler for sitemaps that are served here, in a table of fixed size. */
#include "server/crawlers/ledger.h"

#include <pthread.h>
#include <stdlib.h>

/* One table of fixed size, hashed by site, sitemap and crawler, with chains; one lock. The rows of
 * a site are in a list by their last visit. A site that may take no more room (by the rule of
 * ledger.c) gives up the row with its oldest visit. So it always keeps its latest visits, and no
 * site displaces the rows of another.
 *
 * The catalogue stores a row under its place in the table (db/crawler.h). The next row in that
 * place replaces it there too, which bounds the stored rows. */

#define ROWS    CRAWLERS_MAX_CHILDREN
#define BUCKETS 32768u
#define SHARE   3u

struct row {
    struct crawler_child is;
    uint32_t next;         /* in its bucket */
    uint32_t newer, older; /* in its share */
    bool used, taken;      /* collected, and not changed since */
};

struct children {
    pthread_mutex_t lock;
    uint32_t count, cursor; /* where the search for a free place continues */
    uint32_t top;           /* the last place ever used: memory beyond it is not touched */
    uint32_t buckets[BUCKETS];
    struct {
        uint32_t newest, oldest, count;
    } shares[CRAWLERS_SHARES];
    struct row rows[ROWS + 1]; /* place 0 is unused */
};

struct children *children_new(void)
{
    struct children *c = calloc(1, sizeof *c);
    if (c != NULL)
        pthread_mutex_init(&c->lock, NULL);
    return c;
}

void children_free(struct children *c)
{
    if (c == NULL)
        return;
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* The static functions below are called under the lock. */

static uint32_t bucket_of(int64_t site_id, uint64_t child)
{
    uint64_t h = child ^ ((uint64_t)site_id * 0x9e3779b97f4a7c15u);
    return (uint32_t)((h ^ h >> 32) % BUCKETS);
}

static uint32_t share_of(int64_t site_id)
{
    return (uint32_t)((uint64_t)site_id % CRAWLERS_SHARES);
}

static uint32_t find_child(const struct children *c, int64_t site_id, uint64_t child,
                           uint8_t crawler)
{
    uint32_t at = c->buckets[bucket_of(site_id, child)];
    while (at != 0 && (c->rows[at].is.child != child || c->rows[at].is.site_id != site_id ||
                       c->rows[at].is.crawler != crawler))
        at = c->rows[at].next;
    return at;
}

static void release_share(struct children *c, uint32_t at)
{
    struct row *row = &c->rows[at];
    uint32_t share = share_of(row->is.site_id);
    *(row->newer != 0 ? &c->rows[row->newer].older : &c->shares[share].newest) = row->older;
    *(row->older != 0 ? &c->rows[row->older].newer : &c->shares[share].oldest) = row->newer;
    c->shares[share].count--;
}

static void join_share(struct children *c, uint32_t at)
{
    struct row *row = &c->rows[at];
    uint32_t share = share_of(row->is.site_id);
    row->newer = 0;
    row->older = c->shares[share].newest;
    *(row->older != 0 ? &c->rows[row->older].newer : &c->shares[share].oldest) = at;
    c->shares[share].newest = at;
    c->shares[share].count++;
}

static void remove_child(struct children *c, uint32_t at)
{
    struct row *row = &c->rows[at];
    uint32_t *link = &c->buckets[bucket_of(row->is.site_id, row->is.child)];
    while (*link != at)
        link = &c->rows[*link].next;
    *link = row->next;
    release_share(c, at);
    *row = (struct row){.used = false};
    c->count--;
}

static void insert_child(struct children *c, uint32_t at, const struct crawler_child *is)
{
    uint32_t *bucket = &c->buckets[bucket_of(is->site_id, is->child)];
    c->rows[at] = (struct row){.is = *is, .next = *bucket, .used = true};
    c->rows[at].is.place = at;
    *bucket = at;
    c->count++;
    if (at > c->top)
        c->top = at;
    join_share(c, at);
}

/* A place for a new row of the site; 0: no room. */
static uint32_t make_place(struct children *c, int64_t site_id)
{
    uint32_t share = share_of(site_id), at = c->shares[share].oldest;
    if (c->shares[share].count < SHARE * (ROWS - c->count)) {
        do {
            c->cursor = c->cursor % ROWS + 1;
        } while (c->rows[c->cursor].used);
        return c->cursor;
    }
    if (at != 0)
        remove_child(c, at);
    return at;
}

void children_clear(struct children *c)
{
    pthread_mutex_lock(&c->lock);
    for (uint32_t at = 1; at <= c->top; at++)
        if (c->rows[at].used)
            remove_child(c, at);
    pthread_mutex_unlock(&c->lock);
}

/* Finds or makes the row of a visit and makes it the newest of its site. Returns its place; 0: no
 * room. */
static uint32_t visited(struct children *c, int64_t site_id, uint64_t child, uint8_t crawler)
{
    uint32_t at = find_child(c, site_id, child, crawler);
    if (at != 0) {
        release_share(c, at);
        join_share(c, at);
        return at;
    }
    at = make_place(c, site_id);
    if (at != 0)
        insert_child(
            c, at, &(struct crawler_child){.site_id = site_id, .child = child, .crawler = crawler});
    return at;
}

bool children_visit(struct children *c, int64_t site_id, uint64_t child, uint8_t crawler,
                    enum ledger_visit kind, uint16_t status, int64_t now)
{
    pthread_mutex_lock(&c->lock);
    uint32_t at = visited(c, site_id, child, crawler);
    if (at != 0) {
        struct row *row = &c->rows[at];
        row->taken = false;
        row->is.fetched_at = now;
        row->is.status = status;
        row->is.ok += kind == VISIT_OK;
        row->is.not_modified += kind == VISIT_NOT_MODIFIED;
        row->is.other += kind == VISIT_OTHER;
        if (kind != VISIT_OTHER)
            row->is.good_at = now;
    }
    pthread_mutex_unlock(&c->lock);
    return at != 0;
}

bool children_import(struct children *c, const struct crawler_visits *visits, uint8_t crawler)
{
    pthread_mutex_lock(&c->lock);
    uint32_t at = visited(c, visits->site_id, visits->child, crawler);
    if (at != 0) {
        struct row *row = &c->rows[at];
        row->taken = false;
        row->is.ok += visits->ok;
        row->is.not_modified += visits->not_modified;
        row->is.other += visits->other;
        if (visits->fetched_at > row->is.fetched_at) {
            row->is.fetched_at = visits->fetched_at;
            row->is.status = visits->status;
        }
        if (visits->held_at > row->is.good_at)
            row->is.good_at = visits->held_at;
    }
    pthread_mutex_unlock(&c->lock);
    return at != 0;
}

size_t children_rows_of(struct children *c, int64_t site_id, uint64_t child,
                        struct crawler_child rows[CRAWLERS_MAX])
{
    size_t count = 0;
    pthread_mutex_lock(&c->lock);
    for (uint32_t at = c->buckets[bucket_of(site_id, child)]; at != 0 && count < CRAWLERS_MAX;
         at = c->rows[at].next)
        if (c->rows[at].is.child == child && c->rows[at].is.site_id == site_id)
            rows[count++] = c->rows[at].is;
    pthread_mutex_unlock(&c->lock);
    return count;
}

size_t children_collect(struct children *c, size_t *at, struct crawler_child out[], size_t max)
{
    size_t count = 0;
    pthread_mutex_lock(&c->lock);
    for (; *at < c->top && count < max; (*at)++) {
        struct row *row = &c->rows[*at + 1];
        if (!row->used || row->taken)
            continue;
        row->taken = true;
        out[count++] = row->is;
    }
    pthread_mutex_unlock(&c->lock);
    return count;
}

void children_retry(struct children *c)
{
    pthread_mutex_lock(&c->lock);
    for (uint32_t at = 1; at <= c->top; at++)
        c->rows[at].taken = false;
    pthread_mutex_unlock(&c->lock);
}

void children_restore(struct children *c, const struct crawler_child *row)
{
    pthread_mutex_lock(&c->lock);
    if (row->place > 0 && row->place <= ROWS && !c->rows[row->place].used &&
        find_child(c, row->site_id, row->child, row->crawler) == 0) {
        insert_child(c, row->place, row);
        c->rows[row->place].taken = true;
    }
    pthread_mutex_unlock(&c->lock);
}
