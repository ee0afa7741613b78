/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The shrink guard, one rule for all changes of several entries: a change is rejected if it would
 * leave an index empty, or with too little of its peak of the last days, unless that many removals
 * were approved. A single removal is never rejected; it lowers the peak instead. An approved change
 * sets the peak to what it leaves. A move to another index counts as a removal, and the only move
 * of a change as a single removal. Internal to db/; one thread, the writer's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/write/occupancy.h"

struct tx;

/* The effect of a change on one index, on a whole site, or on the share of an index that is
 * replaced. */
struct guard_case {
    uint64_t peak;    /* occupancy_peak */
    uint64_t before;  /* entries now */
    uint64_t after;   /* entries then */
    uint64_t removed; /* how many of `before` would be removed */
    int64_t max_removed;
    bool of_urlset; /* they are page URLs */
    bool of_share;  /* a replace of a share: .peak is .before, and emptying the share needs an
                       approval, even if the guard is off */
};

/* True: the change is allowed. Otherwise `result` becomes REFUSED, RULE_SHRINK_GUARD. */
bool guard_check(const struct tx *tx, const struct guard_case *c, struct change_result *result);
/* True if the change is allowed only by max_removed: then set index->peak_reset. */
bool guard_approved(const struct tx *tx, const struct guard_case *c);
/* Checks, at the end of a list, the entries that it moved out of other indexes
 * (occupancy_index.moved); max_removed approves removals and moves together. False: `result` became
 * REFUSED. */
bool guard_moves(struct tx *tx, const struct change *change, struct change_result *result,
                 enum catalogue_status *status);
