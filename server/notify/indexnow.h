/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* [site] indexnow_key: notifies search engines that take part (indexnow.org) which page URLs came,
 * changed or went: of urlsets, and of mirrored sitemaps that this server serves. One thread, which
 * reads the history's rows of urlsets from where it ended (db/indexnow.h), sends them in batches by
 * the one client under the guard of addresses, and keeps how far it came: at least once. Part of
 * the assembly. */
#pragma once

#include "config/config.h"
#include "db/catalogue.h"
#include "server/api/routes.h"

struct indexnow;

struct child_store;
struct trace;
/* NULL where no site has a key, or, with the error reported, where it cannot. Catalogue, counts,
 * store (NULL: no sitemap is mirrored) and trace live longer. */
struct indexnow *indexnow_start(struct config *config, struct catalogue *catalogue,
                                struct child_store *store, struct trace *trace,
                                struct indexnow_counts *counts);
/* Whether the two are notified alike. */
bool indexnow_is_same(const struct config *a, const struct config *b);
/* Ends the thread at once; what is under way is sent again by the next start. Takes NULL. */
void indexnow_stop(struct indexnow *n);
