/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Fills the ledger from what a catalogue keeps of it (db/crawler.h). */
#pragma once

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

/* Puts all that is kept here, once the pages are known and before anything is fetched. What another
 * node than `node` (NULL: any) left in the file is passed over. */
enum catalogue_status crawlers_restore(struct crawlers *c, struct catalogue_view *view,
                                       const char *node);
/* Learns what the nodes of a shared catalogue reported, of which `node` is this one; where that is
 * known already only if `again`, which finds pages and names that came since. Thread safe. */
enum catalogue_status crawlers_learn(struct crawlers *c, struct catalogue_view *view,
                                     const char *node, bool again);
/* The same of a file that nobody serves from here: this node is the one that the file is of. */
enum catalogue_status crawlers_learn_all(struct crawlers *c, struct catalogue_view *view);
/* Imports what logs report; `*last`: up to where (struct change_crawlers, visits_taken). */
enum catalogue_status crawlers_merge_imported(struct crawlers *c, struct catalogue_view *view,
                                              int64_t *last);
