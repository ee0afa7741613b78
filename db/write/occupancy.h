/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The occupancy: how full pages and segments are and which positions are taken, for the lists
 * (indexes and urlsets) that the writer touched lately; and what the running transaction has
 * changed of it, written in one go before COMMIT. Internal to db/; one thread, the writer's.
 *
 * True only for the revision that the writer knows (tx.h); dropped whole otherwise, and after a
 * rollback. Pages are loaded with their index, segments with the first change in their page, taken
 * positions with the first search in their segment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/limits.h"

/* Kept between transactions at most; more is dropped, and one transaction may hold more while it
 * runs: OCCUPANCY_PAGE_BYTES for each page it changes. 64 MiB are some 9,000 pages. */
#define OCCUPANCY_MAX_BYTES (64u << 20)

#define OCCUPANCY_WORDS ((SEGMENT_POSITIONS + 63) / 64)

struct tx;
struct occupancy;

struct occupancy_segments {
    uint16_t entries[PAGE_SEGMENTS];
    uint32_t first_open;               /* all before it are full */
    uint64_t known[PAGE_SEGMENT_BITS]; /* bit S: taken[S] is loaded */
    uint64_t dirty[PAGE_SEGMENT_BITS]; /* bit S: changed by this transaction */
    uint64_t taken[PAGE_SEGMENTS]
                  [OCCUPANCY_WORDS]; /* bit P: position P of the segment has an entry */
};

struct occupancy_page {
    uint32_t number; /* from 1 */
    uint32_t entries;
    uint64_t bytes;
    int64_t changed_at; /* 0: it has no row yet */
    /* Whether changed_at is its content's alone: 0 it is, 1 it is not, more: the clock went back,
     * and no date up to this one is. */
    int64_t same_second;
    struct occupancy_index *of;
    bool dirty;                          /* changed by this transaction, and on its list */
    bool unsettled;                      /* of a urlset: changed by the change at hand */
    bool had_content;                    /* while dirty: it had entries before */
    struct occupancy_segments *segments; /* NULL: not loaded */
    struct occupancy_page *next_dirty, *next_unsettled;
};

#define OCCUPANCY_PAGE_BYTES (sizeof(struct occupancy_page) + sizeof(struct occupancy_segments))

struct occupancy_site {
    int64_t id;
    uint32_t pages_used; /* pages with entries, over all its indexes */
    struct occupancy_site *next;
};

struct occupancy_index {
    int64_t id;
    enum list_kind kind;
    uint32_t frame_bytes;           /* of an empty page */
    uint32_t page_rows, page_bytes; /* that a page may have */
    struct occupancy_site *site;
    struct occupancy_page **pages; /* by number - 1; each not NULL */
    uint32_t page_count;
    uint32_t page_capacity;
    uint32_t first_open; /* no page before this number has room for anything */
    uint64_t entries;
    /* While dirty: for the peak (guard.h). */
    bool dirty;
    bool buried;      /* being removed: every page with entries becomes a tombstone */
    bool touched;     /* entries changed in what no page shows */
    bool peak_reset;  /* a removal was approved: the peak starts again from here */
    uint64_t high;    /* the most entries it had at the seams of this transaction's changes */
    uint64_t singles; /* entries that single changes took away */
    uint64_t moved;   /* entries that a set took to other indexes */
    struct occupancy_page *dirty_pages;
    struct occupancy_index *next_dirty;
    struct occupancy_index *next;
};

struct occupancy {
    struct occupancy_index *indexes;
    struct occupancy_index *dirty;
    struct occupancy_site *sites;
    struct occupancy_page *unsettled; /* see urlset_settle */
    size_t bytes;
};

struct occupancy *occupancy_new(void);
void occupancy_free(struct occupancy *occupancy);
/* Forgets everything. */
void occupancy_drop(struct occupancy *occupancy);
/* After COMMIT: nothing is dirty any more; forgets buried indexes, or all where it has grown past
 * OCCUPANCY_MAX_BYTES. */
void occupancy_settle(struct occupancy *occupancy);

/* What a page of it may have is another now: pages that had room for nothing may have some. */
void occupancy_relimit(struct occupancy_index *index, uint32_t page_rows, uint32_t page_bytes);
/* The index, loaded where it must be. Borrowed until the cache is dropped. */
enum catalogue_status occupancy_index(struct tx *tx, int64_t site_id, int64_t index_id,
                                      struct occupancy_index **out);

/* What a row weighs in the page of such a list. */
uint32_t occupancy_weight(enum list_kind kind, const char *loc, size_t loc_len,
                          size_t extensions_len);

/* ---- positions */

/* What the caps allow a search. */
struct occupancy_room {
    uint32_t weight;    /* occupancy_weight of the row */
    uint32_t max_pages; /* of the site, or of the urlset */
    uint32_t spare;     /* pages that the same change will have emptied before */
    uint32_t wanted;    /* position, taken if it is free and there is room; or POSITION_NONE */
};
/* Finds `wanted` or the lowest free position of the lowest page with room. Reads only, so
 * that who needs places in several indexes finds them all before it takes one. Sets `*position` to
 * POSITION_NONE where the site is full. */
enum catalogue_status occupancy_find(struct tx *tx, struct occupancy_index *index,
                                     const struct occupancy_room *room, uint32_t *position);
/* An entry of `weight` comes to, leaves, or differs as rendered at `position`. */
enum catalogue_status occupancy_reserve(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t weight);
enum catalogue_status occupancy_release(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t weight);
enum catalogue_status occupancy_touch(struct tx *tx, struct occupancy_index *index,
                                      uint32_t position);
/* The row at `position` weighs so much more now than before, and its page has room for it
 * (occupancy_may_grow); it is touched as well. */
enum catalogue_status occupancy_reweigh(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t before, uint32_t after);
bool occupancy_may_grow(const struct occupancy_index *index, uint32_t position, uint32_t before,
                        uint32_t after);
/* Whether the page has no row: it is not a page yet, or none any more. */
bool occupancy_is_empty(const struct occupancy_index *index, uint32_t position);
/* An entry differs in what is not rendered: its page stays as it is, the index's state does not. */
void occupancy_touch_unseen(struct tx *tx, struct occupancy_index *index);
/* The state of the index's entries, as it is once the change under way, alone in its transaction,
 * is committed; or, where it is not `kept`, as it was before. */
enum catalogue_status occupancy_state(struct tx *tx, const struct occupancy_index *index, bool kept,
                                      char out[INDEX_STATE_SIZE]);
/* True from 90 % of the cap on: the same share of a settable one that 450 is of 500. */
static inline bool occupancy_nearly_full(const struct occupancy_site *site, uint32_t max_pages)
{
    return (uint64_t)site->pages_used * LIMIT_SITE_PAGES >=
           (uint64_t)max_pages * LIMIT_SITE_PAGES_WARN;
}
/* True where taking one entry out of `position`'s page leaves it empty. */
bool occupancy_would_empty(const struct occupancy_index *index, uint32_t position);
/* The index is being removed. */
void occupancy_bury(struct tx *tx, struct occupancy_index *index);
/* The removal of the index is undone: loaded while it is still marked as removed. */
void occupancy_unbury(struct tx *tx, struct occupancy_index *index);
/* The index is about to change: notes what its peak must remember. */
void occupancy_index_dirty(struct tx *tx, struct occupancy_index *index);

/* ---- peaks */

#define PEAK_DAYS 7

/* The most entries the index had within PEAK_DAYS, as lowered by single removals. Call it before
 * the set is applied. */
enum catalogue_status occupancy_peak(struct tx *tx, const struct occupancy_index *index,
                                     uint64_t *peak);
/* A single change has just taken an entry out of the index (occupancy_release was called). */
void occupancy_single_removal(struct occupancy_index *index);
/* ---- the end of a transaction */

/* Writes every dirty page, segment and peak with this revision and time. `*pages_differ` is set
 * where a page came to or ceased to have entries, or was buried. */
enum catalogue_status occupancy_write(struct tx *tx, uint64_t revision, int64_t changed_at,
                                      bool *pages_differ);

/* Loads the counts of the page's segments. */
enum catalogue_status occupancy_load_segments(struct tx *tx, const struct occupancy_index *index,
                                              struct occupancy_page *page);
/* Writes the day's peak of a dirty index; for occupancy_write. */
enum catalogue_status occupancy_write_peak(struct tx *tx, const struct occupancy_index *index,
                                           int64_t changed_at);
