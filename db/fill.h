/* The fill cache: how full pages and segments are and which positions are taken, for the indexes
 * that the writer touched lately; and what the running transaction has changed of it, written in
 * one go before COMMIT. Internal to db/; one thread, the writer's.
 *
 * True only for the revision that the writer knows (tx.h); dropped whole otherwise, and after a
 * rollback. Pages are loaded with their index, segments with the first change in their page, taken
 * positions with the first search in their segment. */
#ifndef SITEMAPD_DB_FILL_H
#define SITEMAPD_DB_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/limits.h"

/* Kept between transactions at most; more is dropped, and one transaction may hold more while it
 * runs: FILL_PAGE_BYTES for each page it changes. 64 MiB are some 9,000 pages. */
#define FILL_MAX_BYTES (64u << 20)

#define FILL_WORDS ((SEGMENT_POSITIONS + 63) / 64)

struct tx;
struct fill;

struct fill_segments {
    uint16_t entries[PAGE_SEGMENTS];
    uint32_t first_open;                       /* all before it are full */
    uint64_t known[PAGE_SEGMENT_BITS];         /* bit S: taken[S] is loaded */
    uint64_t dirty[PAGE_SEGMENT_BITS];         /* bit S: changed by this transaction */
    uint64_t taken[PAGE_SEGMENTS][FILL_WORDS]; /* bit P: position P of the segment has an entry */
};

struct fill_page {
    uint32_t number; /* from 1 */
    uint32_t entries;
    uint64_t bytes;
    int64_t changed_at; /* 0: it has no row yet */
    bool same_second;
    bool dirty;                     /* changed by this transaction, and on its list */
    bool had_content;               /* while dirty: it had entries before */
    struct fill_segments *segments; /* NULL: not loaded */
    struct fill_page *next_dirty;
};

#define FILL_PAGE_BYTES (sizeof(struct fill_page) + sizeof(struct fill_segments))

struct fill_site {
    int64_t id;
    uint32_t pages_used; /* pages with entries, over all its indexes */
    struct fill_site *next;
};

struct fill_index {
    int64_t id;
    struct fill_site *site;
    struct fill_page **pages; /* by number - 1; each not NULL */
    uint32_t page_count;
    uint32_t page_capacity;
    uint32_t first_open; /* no page before this number has room for anything */
    uint64_t entries;
    /* While dirty: for the peak (guard.h). */
    bool dirty;
    bool buried;      /* being removed: every page with entries becomes a tombstone */
    bool peak_reset;  /* a removal was approved: the peak starts again from here */
    uint64_t high;    /* the most entries it had at the seams of this transaction's changes */
    uint64_t singles; /* entries that single changes took away */
    struct fill_page *dirty_pages;
    struct fill_index *next_dirty;
    struct fill_index *next;
};

struct fill {
    struct fill_index *indexes;
    struct fill_index *dirty;
    struct fill_site *sites;
    size_t bytes;
};

struct fill *fill_new(void);
void fill_free(struct fill *fill);
/* Forgets everything. */
void fill_drop(struct fill *fill);
/* After COMMIT: nothing is dirty any more; forgets buried indexes, or all where it has grown past
 * FILL_MAX_BYTES. */
void fill_settle(struct fill *fill);

/* The index, loaded where it must be. Borrowed until the cache is dropped. */
enum catalogue_status fill_index(struct tx *tx, int64_t site_id, int64_t index_id,
                                 struct fill_index **out);

/* ---- positions (fill_place.c) */

/* What the caps allow a search. */
struct fill_room {
    uint32_t weight;    /* render_entry_bytes of the loc */
    uint32_t max_pages; /* of the site */
    uint32_t spare;     /* pages that the same change will have emptied before */
    uint32_t wanted;    /* position, taken if it is free and there is room; or POSITION_NONE */
};
/* Finds `wanted` or the lowest free position of the lowest page with room. Reads only. Sets
 * `*position` to POSITION_NONE where the site is full. */
enum catalogue_status fill_find(struct tx *tx, struct fill_index *index,
                                const struct fill_room *room, uint32_t *position);
/* An entry of `weight` comes to, leaves, or differs as rendered at `position`. */
enum catalogue_status fill_take(struct tx *tx, struct fill_index *index, uint32_t position,
                                uint32_t weight);
enum catalogue_status fill_release(struct tx *tx, struct fill_index *index, uint32_t position,
                                   uint32_t weight);
enum catalogue_status fill_touch(struct tx *tx, struct fill_index *index, uint32_t position);
/* True from 90 % of the cap on: the same share of a settable one that 450 is of 500. */
static inline bool fill_nearly_full(const struct fill_site *site, uint32_t max_pages)
{
    return (uint64_t)site->pages_used * LIMIT_SITE_PAGES >=
           (uint64_t)max_pages * LIMIT_SITE_PAGES_WARN;
}
/* True where taking one entry out of `position`'s page leaves it empty. */
bool fill_would_empty(const struct fill_index *index, uint32_t position);
/* The index is being removed. */
void fill_bury(struct tx *tx, struct fill_index *index);
/* The index is about to change: notes what its peak must remember. */
void fill_index_dirty(struct tx *tx, struct fill_index *index);

/* ---- the end of a transaction (fill_write.c) */

/* Writes every dirty page, segment and peak with this revision and time. `*pages_differ` is set
 * where a page came to or ceased to have entries, or was buried. */
enum catalogue_status fill_write(struct tx *tx, uint64_t revision, int64_t changed_at,
                                 bool *pages_differ);

/* ---- inner parts, shared by the three files */

/* The page, made (with no row yet) where the index has not got so many. NULL: no memory. */
struct fill_page *fill_page(struct tx *tx, struct fill_index *index, uint32_t number);
/* Loads the counts of the page's segments. */
enum catalogue_status fill_load_segments(struct tx *tx, const struct fill_index *index,
                                         struct fill_page *page);
/* Loads which positions of segment `s` (0 to 99) are taken. */
enum catalogue_status fill_load_taken(struct tx *tx, const struct fill_index *index,
                                      struct fill_page *page, uint32_t s);

static inline bool fill_bit(const uint64_t words[], uint32_t bit)
{
    return (words[bit / 64] >> (bit % 64) & 1) != 0;
}
static inline void fill_set(uint64_t words[], uint32_t bit)
{
    words[bit / 64] |= (uint64_t)1 << (bit % 64);
}
static inline void fill_unset(uint64_t words[], uint32_t bit)
{
    words[bit / 64] &= ~((uint64_t)1 << (bit % 64));
}

#endif
