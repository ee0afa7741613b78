/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Keeps in the catalogue how large each site was on each day: looked at now and then where anything
 * has changed, and at the stop. */
#pragma once

#include "db/catalogue.h"

#define DAY_KEEPER_MS (5 * 60 * 1000)

struct day_keeper;
/* Starts the thread, which looks each `ms` milliseconds; the catalogue is borrowed. NULL, logged,
 * where it cannot: then no sums are kept. */
struct day_keeper *day_keeper_start(struct catalogue *catalogue, int64_t ms);
/* Ends the thread and writes the last sums, while the catalogue still takes writes. Takes NULL. */
void day_keeper_stop(struct day_keeper *k);
