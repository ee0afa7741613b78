/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Saves the crawlers' ledger in the catalogue: loads it at the start; a thread writes news once a
 * minute, and the stop writes the rest. */
#pragma once

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

struct crawler_keeper;
/* Loads the saved ledger and starts the thread. Call it when the pages are known and before
 * anything is served. Borrows both. NULL, with the error reported: nothing will be saved. */
struct crawler_keeper *crawler_keeper_start(struct catalogue *catalogue, struct crawlers *crawlers);
/* Ends the thread and writes the news. Call it when nothing is served any more and the catalogue
 * still accepts writes. Accepts NULL. */
void crawler_keeper_stop(struct crawler_keeper *k);

/* Saves the size of each site on each day in the catalogue: every few minutes if anything has
 * changed, and at the stop. */

#define DAY_KEEPER_MS (5 * 60 * 1000)

struct day_keeper;
/* Starts the thread, which checks for changes every `ms` milliseconds; borrows the catalogue. NULL,
 * logged: that failed, and no sizes will be saved. */
struct day_keeper *day_keeper_start(struct catalogue *catalogue, int64_t ms);
/* Ends the thread and writes the last sizes. Call it while the catalogue still accepts writes.
 * Accepts NULL. */
void day_keeper_stop(struct day_keeper *k);
