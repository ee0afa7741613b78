/* The sources of a running server: the folders' threads, and the cache of the files that are
 * served. Two steps end it: the threads first, so that nobody waits for a scan; the rest once no
 * request can ask for a file any more. */
#ifndef SITEMAPD_SOURCE_SET_H
#define SITEMAPD_SOURCE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "db/catalogue.h"

struct blob_cache;
struct source_set;
struct sources;

/* What of the snapshot budget is the pages': all of it, unless files are served, whose cache takes
 * its share. */
uint64_t source_set_page_budget(const struct config *config);
/* Starts what the configuration names; with no source at all `*out` is NULL and all is well. False,
 * told as a failed start, where it cannot. `config` must outlive it. */
bool source_set_start(const struct config *config, struct catalogue *c, struct source_set **out);
/* Both may be NULL. Borrowed. */
struct sources *source_set_sources(const struct source_set *set);
struct blob_cache *source_set_files(const struct source_set *set);
/* Ends the folders' threads; whoever waits for a scan is answered. Takes NULL. */
void source_set_end(struct source_set *set);
/* After the listeners have stopped. Takes NULL. */
void source_set_free(struct source_set *set);

#endif
