/* The sources of a running server: the folders' threads, and the files that are
 * served. Two steps end it: the threads first, so that nobody waits for a scan; the rest once no
 * request can ask for a file any more. */
#ifndef SITEMAPD_SOURCE_SET_H
#define SITEMAPD_SOURCE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "db/catalogue.h"

struct cache;
struct served_files;
struct source_set;
struct sources;

/* Starts what the configuration names. `cache` is borrowed, for the files that are served. False,
 * told as a failed start, where it cannot. */
bool source_set_start(const struct config *config, struct catalogue *c, struct cache *cache,
                      struct source_set **out);
/* Whether source_set_reconfigure can take `config`; changes nothing. False is told. */
bool source_set_check(const struct source_set *set, const struct config *config);
/* Makes the sources those of `config`: what is the same goes on, what is not named any more ends,
 * and its entries stay. False, told, where some could not be begun. */
bool source_set_reconfigure(struct source_set *set, const struct config *config);
/* Borrowed; there are no files (NULL) until a source serves its own. */
struct sources *source_set_sources(const struct source_set *set);
struct served_files *source_set_files(const struct source_set *set);
/* Ends the folders' threads; whoever waits for a scan is answered. Takes NULL. */
void source_set_end(struct source_set *set);
/* After the listeners have stopped. Takes NULL. */
void source_set_free(struct source_set *set);

#endif
