/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Saves the crawlers' ledger in the catalogue: it is read at the start, and written by a thread,
 * once a minute if anything is new, and at the stop. */
#pragma once

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

struct crawler_keeper;
/* Reads what is kept, once the pages are known and before anything is served; then starts the
 * thread. Both are borrowed. NULL, with the error reported: nothing is saved. */
struct crawler_keeper *crawler_keeper_start(struct catalogue *catalogue, struct crawlers *crawlers);
/* Ends the thread and writes what is new, once nothing is served and while the catalogue still
 * takes writes. Takes NULL. */
void crawler_keeper_stop(struct crawler_keeper *k);

/* Saves in the catalogue how large each site was on each day: every few minutes if anything has
 * changed, and at the stop. */

#define DAY_KEEPER_MS (5 * 60 * 1000)

struct day_keeper;
/* Starts the thread, which looks each `ms` milliseconds; the catalogue is borrowed. NULL, logged,
 * where it cannot: then no sums are kept. */
struct day_keeper *day_keeper_start(struct catalogue *catalogue, int64_t ms);
/* Ends the thread and writes the last sums, while the catalogue still takes writes. Takes NULL. */
void day_keeper_stop(struct day_keeper *k);
