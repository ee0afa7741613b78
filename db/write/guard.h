/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The shrink guard, one rule for whatever acts on sets of entries: what would leave an index with
 * too little of its peak of the last days, or with nothing, is refused unless that many removals
 * were approved. A single removal is never refused; it lowers the peak instead, and an approved
 * set starts it again. What an index loses to another by a move is lost to it all the same: the
 * only move of a registration, a list or a replace is a single removal, several are a set. Internal
 * to db/; one thread, the writer's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/write/occupancy.h"

struct tx;

/* What a set would do to one index, to all of a site together, or to the share of an index that a
 * replace acts on. */
struct guard_case {
    uint64_t peak;    /* occupancy_peak */
    uint64_t before;  /* entries now */
    uint64_t after;   /* entries then */
    uint64_t removed; /* how many of those now would be gone */
    int64_t max_removed;
    bool of_urlset; /* they are page URLs */
    bool of_share;  /* what a replace acts on: .peak is .before, and a share that has entries is
                       never  emptied without an approval, whatever the guard is set to */
};

/* True where it is let through. Otherwise `result` becomes REFUSED, RULE_SHRINK_GUARD. */
bool guard_check(const struct tx *tx, const struct guard_case *c, struct change_result *result);
/* True where it passes only because max_removed approves it: then set index->peak_reset. */
bool guard_approved(const struct tx *tx, const struct guard_case *c);
/* Holds a list to the guard for what it moved out of indexes (occupancy_index.moved), at its end:
 * what max_removed approves is all that it removed and moved. False where `result` became REFUSED.
 */
bool guard_moves(struct tx *tx, const struct change *change, struct change_result *result,
                 enum catalogue_status *status);
