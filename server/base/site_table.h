/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Counts how much each site uses of a bounded resource, so that each gets a share:
 *
 *     struct site_table  a row for each site about which the owner keeps something; not thread safe
 *     struct site_uses   how much each site uses of a bounded thing; thread safe
 *
 * Both are empty if zeroed, have rows only for sites that need one, and no memory without rows. So
 * their size is bounded by what sites use at a time, and no two sites share a row. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- rows ----------------------------------------------------------------------------------- */

/* The first member of the owner's row. Rows do not move. */
struct site_row {
    int64_t site_id; /* or another number of the owner's, such as 0 for all sites */
    struct site_row *next;
};

struct site_table {
    struct site_row **buckets; /* owned, as are the rows */
    size_t capacity, count;
};

/* NULL: it has none. */
void *site_table_find(const struct site_table *t, int64_t site_id);
/* The site's row; a new one has `size` bytes, zero after the struct site_row. NULL: out of memory.
 */
void *site_table_add(struct site_table *t, int64_t site_id, size_t size);
/* Frees the row. */
void site_table_remove(struct site_table *t, void *row);
/* The row after `row`, in no order; NULL: the first one; returns NULL after the last. Get the next
 * row before you remove one; do not add any meanwhile. */
void *site_table_next(const struct site_table *t, const void *row);
/* Frees all rows. */
void site_table_done(struct site_table *t);

/* ---- shares --------------------------------------------------------------------------------- */

/* A share of `most` places, of which `taken` are taken, `own` by the site: true if the site, with
 * `count` more, has no more than are free before it. One site gets half, two a third each. For what
 * belongs to no single site, `own` is 0. */
static inline bool site_has_room(uint64_t own, uint64_t taken, uint64_t count, uint64_t most)
{
    return own + taken + count <= most;
}

struct site_uses {
    pthread_mutex_t lock;
    uint64_t taken;     /* by all together */
    uint64_t all_sites; /* of these, by what belongs to no single site */
    struct site_table by_site;
};

/* Counts `count` more for the site (0: for no single site). False, with nothing counted, if that is
 * more than the site's share of `most`, or memory is short; the latter does not happen for 0. */
bool site_uses_take(struct site_uses *u, int64_t site_id, uint64_t count, uint64_t most);
/* The same, but bounds what the site uses, not its share of what all use. */
bool site_uses_take_own(struct site_uses *u, int64_t site_id, uint64_t count, uint64_t own_most);
/* Subtracts what the site took. */
void site_uses_give(struct site_uses *u, int64_t site_id, uint64_t count);
/* The total use of all sites. */
uint64_t site_uses_taken(struct site_uses *u);
