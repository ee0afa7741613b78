/* Reads a registry from the file. Internal to db/: views and the writer use it. */
#ifndef SITEMAPD_DB_REGISTRY_LOAD_H
#define SITEMAPD_DB_REGISTRY_LOAD_H

#include <sqlite3.h>

#include "db/catalogue.h"

/* Reads inside the caller's transaction, so that all of it is of one revision (the writer's own
 * uncommitted changes included). Removed sites and indexes are left out. The caller owns the one
 * reference; on failure `*out` is NULL. */
enum catalogue_status registry_load(sqlite3 *db, struct registry **out);

#endif
