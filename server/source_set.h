/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The sources of a running server: the threads of the folders, the thread of the remote sources,
 * and the served files. It ends in two steps: first the threads, so that no caller waits for a
 * scan; the rest when no request can need a file any more. */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/notify/notify.h"

struct cache;
struct child_store;
struct publisher;
struct remote;
struct roster_place;
struct served_files;
struct source_set;
struct sources;
struct trace;

/* Starts the sources of configuration and catalogue, and a thread that follows the catalogue:
 * changes of sources by API, command line or another process take effect within moments.
 * `publisher`, `cache` (for the served files) and `trace` are borrowed. False if it fails, reported
 * as a failed start. */
bool source_set_start(struct config *config, struct catalogue *c, struct publisher *publisher,
                      struct cache *cache, struct trace *trace, struct source_set **out);
/* Whether source_set_reconfigure would accept `config`; changes nothing. False is logged. */
bool source_set_check(const struct source_set *set, const struct config *config);
/* Replaces the sources by those of `config`: unchanged ones continue, others end, and their entries
 * stay. False, with the error reported: some could not be started. */
bool source_set_reconfigure(struct source_set *set, struct config *config);
/* Calls `done` once the sources match the currently published registry; at once if the set has
 * ended. Any thread; never waits. `source_set` is a struct source_set. */
void source_set_settle(void *source_set, void (*done)(void *context), void *context);
/* Whether a source that API or command line create for the site with this origin may read the
 * folder: it must be below a source_root of the site, or (`all_sites`) of [fetch]. Compares only
 * names: symlinks that lead out are rejected when the folder is opened. Any thread; never waits for
 * I/O. */
bool source_set_may_read(void *set, const char *origin, bool all_sites, const char *directory);
/* Borrowed. */
struct sources *source_set_sources(const struct source_set *set);
struct remote *source_set_remote(const struct source_set *set);
struct roster_place *source_set_roster(struct source_set *set);
/* Removed sources that still own entries; only their names are set. */
struct roster_place *source_set_orphans(struct source_set *set);
struct served_files *source_set_files(const struct source_set *set);
/* For remote sources: whether any of them serves its sitemaps; the copies of these; and a request
 * to fetch a missing copy (remote_fetch_copy). Any thread; never waits. */
bool source_set_serves_children(const void *source_set);
struct child_store *source_set_store(const struct source_set *set);
void source_set_fetch_child(void *source_set, int64_t site_id, const char *loc,
                            void (*done)(void *context), void *context);
/* Reports the state of each source, and of the registered sitemaps that are checked; from memory.
 * Not after source_set_end. `source_set` is a struct source_set. */
void source_set_look(void *source_set, notify_each *each, void *each_context);
/* Calls `listener` from now on with events of single sitemaps of remote sources, on their thread;
 * it must not wait. NULL: none. After the return the old listener is not called any more. */
void source_set_report(struct source_set *set, notify_listener *listener, void *context);
/* Ends all threads of sources; callers that wait for a scan are answered. Accepts NULL. */
void source_set_end(struct source_set *set);
/* After the listeners have stopped. Accepts NULL. */
void source_set_free(struct source_set *set);
