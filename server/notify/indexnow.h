/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* [site] indexnow_key: notifies participating search engines (indexnow.org) of added, changed and
 * removed page URLs: of urlsets, and of mirrored sitemaps that this server serves. One thread reads
 * the urlsets' rows in the history from its stored position on (db/indexnow.h), sends them in
 * batches, and stores the new position, so that each change is sent at least once. Requests obey
 * the address guard. Part of the assembly. */
#pragma once

#include "config/config.h"
#include "db/catalogue.h"
#include "server/api/routes.h"

struct indexnow;

struct child_store;
struct trace;
/* NULL: no site has a key, or (reported) it cannot start. Catalogue, counts, store (NULL: no
 * mirrored sitemaps) and trace must outlive it. */
struct indexnow *indexnow_start(struct config *config, struct catalogue *catalogue,
                                struct child_store *store, struct trace *trace,
                                struct indexnow_counts *counts);
/* Whether both configurations have the same notifications. */
bool indexnow_is_same(const struct config *a, const struct config *b);
/* Ends the thread at once; what is under way is sent again by the next start. Accepts NULL. */
void indexnow_stop(struct indexnow *n);
