/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Fills the ledger from the rows stored in a catalogue (db/crawler.h). */
#pragma once

#include "db/catalogue.h"
#include "server/crawlers/crawlers.h"

/* Loads the saved counts, once the pages are known and before anything is fetched. Rows in the file
 * of another node than `node` (NULL: any) are skipped. */
enum catalogue_status crawlers_restore(struct crawlers *c, struct catalogue_view *view,
                                       const char *node);
/* Loads the reports of the nodes of a shared catalogue; `node` is this one. Reports that were
 * loaded before are loaded again only with `again`, for new pages and names. Thread safe. */
enum catalogue_status crawlers_learn(struct crawlers *c, struct catalogue_view *view,
                                     const char *node, bool again);
/* The same for a command on a file: the node is the file's. */
enum catalogue_status crawlers_learn_all(struct crawlers *c, struct catalogue_view *view);
/* Imports the visits of logs; `*last`: id of the last one (struct change_crawlers,
 * visits_taken). */
enum catalogue_status crawlers_merge_imported(struct crawlers *c, struct catalogue_view *view,
                                              int64_t *last);
