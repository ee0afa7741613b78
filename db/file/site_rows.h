/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The rows of one site, from one catalogue's file to another's: which they are, and what of them is
 * another thing there. Internal to db/.
 *
 * A copy of a site is itself a catalogue's file, with one site in it: catalogue_check checks it,
 * and `sitemapd restore` takes it. Ids are the file's own, so rows get new ones on their way in: of
 * the site, its lists and its sources, of which a map says what they become, and with them
 * addresses, serials, revisions and stamps. What crawlers have seen stays: positions, dates, texts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct site_rows {
    struct sqlite3 *from, *to; /* borrowed */
    int64_t site;              /* in `from` */
    /* What becomes of ids; NULL: they stay. 0 where there is no memory, or none of that id. */
    int64_t (*map)(void *context, char what, int64_t id);
    /* Called after each row; false stops. NULL: nobody is asked. */
    bool (*each)(void *context);
    void *context;
    uint64_t entries;          /* copied so far */
    size_t table;              /* that is next, and what reads it: where it stopped */
    struct sqlite3_stmt *read; /* owned: site_rows_done */
};

/* What `map` is asked for: 'S' the site, 'L' a list, 'C' a source; and, whatever was there before,
 * 'N' the serial of an entry, 'R' a revision, 'X' a stamp, 'F' who froze the site, 'H' whether the
 * site and its lists are hidden, as removed ones are, and 'P' from when on such a list is purged.
 */

/* Which rows: those that nobody sees while their site and its lists are hidden, or all. */
enum site_part { SITE_ROWS_HIDDEN, SITE_ROWS_ALL };

/* Copies rows of the site, from where it stopped: the site first, then its lists, what they hold,
 * its tokens and sources. Within a transaction of `to`, and one of `from` or a file that nobody
 * changes. Returns the engine's status; SQLITE_ABORT where `each` or `map` stopped it: after `each`
 * it may go on in another transaction of `to`. */
int site_rows_copy(struct site_rows *rows, enum site_part upto);
/* Ends what it stopped in. */
void site_rows_done(struct site_rows *rows);
