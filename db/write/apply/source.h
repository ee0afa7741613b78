/* Sources that API or command line make: made, changed, removed, each judged against the registry.
 * Internal to db/; the writer's thread. */
#ifndef SITEMAPD_DB_WRITE_APPLY_SOURCE_H
#define SITEMAPD_DB_WRITE_APPLY_SOURCE_H

#include "db/write/tx.h"

enum catalogue_status apply_source_put(struct tx *tx, const struct change *change,
                                       struct change_result *result);
enum catalogue_status apply_source_remove(struct tx *tx, const struct change *change,
                                          struct change_result *result);

#endif
