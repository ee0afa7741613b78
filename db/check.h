/* A check of the catalogue under way. Internal to db/: check.c asks the engine and looks at the
 * small tables, check_scan.c walks over all entries, check_source.c over the files of sources. */
#ifndef SITEMAPD_DB_CHECK_H
#define SITEMAPD_DB_CHECK_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"

struct check {
    sqlite3 *db; /* inside one read transaction */
    void (*problem)(void *context, const char *sentence);
    void *context;
    uint64_t count;
    enum catalogue_status failure; /* not OK: the check itself could not go on */
    /* As the catalogue's row says. */
    int64_t revision, serial, changed_at;
};

void check_report(struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Judges the result that ended a statement (anything but ROW): damage is a finding, anything else
 * a failure of the check. `what` says what was being read. */
void check_result(struct check *check, int sqlite_result, const char *what);
/* Prepares; reports and gives NULL where it cannot be. */
sqlite3_stmt *check_prepare(struct check *check, const char *sql, const char *what);

/* Judges each entry, and counts what pages and segments say of them. One pass along the clustered
 * addresses; the memory it takes does not depend on their number. */
void check_scan(struct check *check);

/* What directory sources keep of their files. */
void check_sources(struct check *check);
/* Runs `sql` and calls `each` for every row. */
void check_for_rows(struct check *check, const char *sql, const char *what,
                    void (*each)(struct check *check, sqlite3_stmt *row));

#endif
