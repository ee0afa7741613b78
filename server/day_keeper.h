/* Keeps in the catalogue how large each site was on each day: looked at every five minutes where
 * anything has changed, and at the stop. */
#pragma once

#include "db/catalogue.h"

struct day_keeper;
/* Starts the thread; the catalogue is borrowed. NULL, logged, where it cannot: then no sums are
 * kept. */
struct day_keeper *day_keeper_start(struct catalogue *catalogue);
/* Ends the thread and writes the last sums, while the catalogue still takes writes. Takes NULL. */
void day_keeper_stop(struct day_keeper *k);
