/* A migration of a shared catalogue is a record like any other: one node runs it and tells what it
 * did. Internal to db/shared. */
#ifndef SITEMAPD_DB_SHARED_MIGRATION_H
#define SITEMAPD_DB_SHARED_MIGRATION_H

#include <sqlite3.h>

#include "db/shared/effects.h"
#include "db/status.h"

/* What brings a file of this version to the next; tests put theirs here. */
extern const char *(*migration_step)(int version);

/* Brings the file from version `from` to this release's, statement by statement, each recorded as
 * what it is: what makes tables is run by every node, what fills them is told by its rows, and of a
 * table that is a node's own (local_) each does all. In a transaction of the caller's, between
 * effects_begin and effects_end. */
enum catalogue_status migration_run(sqlite3 *db, struct effects *effects, int from);

#endif
