/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Fills the ledger from what a catalogue keeps of it (db/crawler.h). */
#pragma once

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

/* Loads the saved counts, once the pages are known and before anything is fetched. Rows in the file
 * of another node than `node` (NULL: any) are skipped. */
enum catalogue_status crawlers_restore(struct crawlers *c, struct catalogue_view *view,
                                       const char *node);
/* Loads what the nodes of a shared catalogue reported; `node` is this one. What is known already is
 * loaded only if `again`, for pages and names that are new. Thread safe. */
enum catalogue_status crawlers_learn(struct crawlers *c, struct catalogue_view *view,
                                     const char *node, bool again);
/* The same for a command on a file: the node is the file's. */
enum catalogue_status crawlers_learn_all(struct crawlers *c, struct catalogue_view *view);
/* Imports what logs report; `*last`: up to where (struct change_crawlers, visits_taken). */
enum catalogue_status crawlers_merge_imported(struct crawlers *c, struct catalogue_view *view,
                                              int64_t *last);
