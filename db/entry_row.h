/* The columns that make an entry record, and reading them. Internal to db/, the read side. */
#ifndef SITEMAPD_DB_ENTRY_ROW_H
#define SITEMAPD_DB_ENTRY_ROW_H

#include <sqlite3.h>

#include "db/view_pool.h"

/* Of `sitemap AS e`. */
#define ENTRY_ROW_COLUMNS                                                                          \
    "e.address, e.site, e.loc, e.lastmod, e.digest,"                                               \
    " (SELECT name FROM source WHERE id = e.source), e.serial, e.registered_at, e.changed_at,"     \
    " e.source"
/* True for rows of an index and site that were not removed: what is being purged never shows. */
#define ENTRY_ROW_LIVE                                                                             \
    "(SELECT i.removed = 0 AND s.removed = 0 FROM sitemap_index AS i"                              \
    " JOIN site AS s ON s.id = i.site WHERE i.id = e.address >> 32)"

/* Fills `*out` with strings that are the row's: valid until its next step or reset, not to be
 * freed. False where the row is damaged or memory ran out (sqlite3_errcode tells). What its file
 * holds is looked up by the next. */
bool entry_row_borrow(sqlite3_stmt *row, struct entry_record *out);
/* The owner of the entry that the row is. */
int64_t entry_row_source(sqlite3_stmt *row);
/* Adds what the entry's file holds, by the statement `which`; the string is valid as long as that
 * stands on its row. Costs a lookup where its source has files, next to nothing where it has not. A
 * result code of the engine. */
int entry_row_borrow_file(struct catalogue_view *v, enum view_statement which, int64_t source,
                          struct entry_record *record);

#endif
