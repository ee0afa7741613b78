/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The occupancy: a cache of counts and taken positions of pages and segments, for the lists
 * (indexes and urlsets) that the writer touched last. The changes of the current transaction are
 * written together before COMMIT. Internal to db/; one thread, the writer's.
 *
 * Valid only for the revision that the writer knows (tx.h); dropped for any other revision, and
 * after a rollback. Pages are loaded with their index, segments with the first change in their
 * page, taken positions with the first search in their segment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/limits.h"

/* Most memory between transactions. A transaction may use more while it runs: OCCUPANCY_PAGE_BYTES
 * for each page that it changes. 64 MiB are about 9,000 pages. */
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
    /* 0: changed_at belongs to this content alone; 1: other content may have had it; else, after
     * the clock went back: other content may have had any date up to this one. */
    int64_t same_second;
    struct occupancy_index *of;
    bool dirty;                          /* changed by this transaction, and on its list */
    bool unsettled;                      /* of a urlset: changed by the current change */
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
    uint32_t page_rows, page_bytes; /* limits of a page */
    struct occupancy_site *site;
    struct occupancy_page **pages; /* by number - 1; each not NULL */
    uint32_t page_count;
    uint32_t page_capacity;
    uint32_t first_open; /* no page before this number has room for anything */
    uint64_t entries;
    /* While dirty: for the peak (guard.h). */
    bool dirty;
    bool buried;      /* being removed: every page with entries becomes a tombstone */
    bool touched;     /* entries changed in a field that no page shows */
    bool peak_reset;  /* a removal was approved: the peak starts again from here */
    uint64_t high;    /* the most entries it had between two changes of this transaction */
    uint64_t singles; /* entries that single changes removed */
    uint64_t moved;   /* entries that a set of changes moved to other indexes */
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
/* After COMMIT: marks all as clean; forgets buried indexes, or everything if it exceeds
 * OCCUPANCY_MAX_BYTES. */
void occupancy_settle(struct occupancy *occupancy);

/* The limits of its pages have changed: full pages may have room now. */
void occupancy_relimit(struct occupancy_index *index, uint32_t page_rows, uint32_t page_bytes);
/* The index, loaded if needed. Borrowed until the cache is dropped. */
enum catalogue_status occupancy_index(struct tx *tx, int64_t site_id, int64_t index_id,
                                      struct occupancy_index **out);

/* The bytes of a row in a page of such a list. */
uint32_t occupancy_weight(enum list_kind kind, const char *loc, size_t loc_len,
                          size_t extensions_len);

/* ---- positions */

/* The requirements of a search for a position. */
struct occupancy_room {
    uint32_t weight;    /* occupancy_weight of the row */
    uint32_t max_pages; /* of the site, or of the urlset */
    uint32_t spare;     /* pages that the same change will have emptied before */
    uint32_t wanted;    /* position to use if it is free and has room; or POSITION_NONE */
};
/* Finds `wanted` or the lowest free position of the lowest page with room. Reads only, so that a
 * caller that needs positions in several indexes can find all of them first. `*position` is
 * POSITION_NONE if the site is full. */
enum catalogue_status occupancy_find(struct tx *tx, struct occupancy_index *index,
                                     const struct occupancy_room *room, uint32_t *position);
/* An entry of `weight` is added to, removed from, or rendered differently at `position`. */
enum catalogue_status occupancy_reserve(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t weight);
enum catalogue_status occupancy_release(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t weight);
enum catalogue_status occupancy_touch(struct tx *tx, struct occupancy_index *index,
                                      uint32_t position);
/* The row at `position` has grown, and its page has room for it (occupancy_may_grow); touches it,
 * too. */
enum catalogue_status occupancy_reweigh(struct tx *tx, struct occupancy_index *index,
                                        uint32_t position, uint32_t before, uint32_t after);
bool occupancy_may_grow(const struct occupancy_index *index, uint32_t position, uint32_t before,
                        uint32_t after);
/* Whether the page has no rows. */
bool occupancy_is_empty(const struct occupancy_index *index, uint32_t position);
/* An entry changed in a field that is not rendered: changes the index's state, not the page. */
void occupancy_touch_unseen(struct tx *tx, struct occupancy_index *index);
/* The state of the index's entries after the commit of the current change, which is alone in its
 * transaction; or, if the change is not `kept`, before it. */
enum catalogue_status occupancy_state(struct tx *tx, const struct occupancy_index *index, bool kept,
                                      char out[INDEX_STATE_SIZE]);
/* True from 90 % of the limit on. */
static inline bool occupancy_nearly_full(const struct occupancy_site *site, uint32_t max_pages)
{
    return (uint64_t)site->pages_used * LIMIT_SITE_PAGES >=
           (uint64_t)max_pages * LIMIT_SITE_PAGES_WARN;
}
/* True if removing the entry at `position` empties its page. */
bool occupancy_would_empty(const struct occupancy_index *index, uint32_t position);
/* The index is being removed. */
void occupancy_bury(struct tx *tx, struct occupancy_index *index);
/* The removal of the index is undone: loaded while it is still marked as removed. */
void occupancy_unbury(struct tx *tx, struct occupancy_index *index);
/* Call before the index changes: records its count for the peak. */
void occupancy_index_dirty(struct tx *tx, struct occupancy_index *index);

/* ---- peaks */

#define PEAK_DAYS 7

/* The most entries that the index had within PEAK_DAYS, lowered by single removals. Call it before
 * a set of changes is applied. */
enum catalogue_status occupancy_peak(struct tx *tx, const struct occupancy_index *index,
                                     uint64_t *peak);
/* A single change has just removed an entry from the index (occupancy_release was called). */
void occupancy_single_removal(struct occupancy_index *index);
/* ---- the end of a transaction */

/* Writes every dirty page, segment and peak with this revision and time. Sets `*pages_differ` if a
 * page got its first entry, lost its last one or was buried. */
enum catalogue_status occupancy_write(struct tx *tx, uint64_t revision, int64_t changed_at,
                                      bool *pages_differ);

/* Loads the counts of the page's segments. */
enum catalogue_status occupancy_load_segments(struct tx *tx, const struct occupancy_index *index,
                                              struct occupancy_page *page);
/* Writes the day's peak of a dirty index; for occupancy_write. */
enum catalogue_status occupancy_write_peak(struct tx *tx, const struct occupancy_index *index,
                                           int64_t changed_at);
