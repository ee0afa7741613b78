/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Copies the rows of one site from one catalogue's file to another's. Internal to db/.
 *
 * A copy of a site is itself a catalogue's file with one site: catalogue_check checks it, and
 * `sitemapd restore` accepts it. Ids are valid in one file only, so imported rows get new ones: a
 * map gives the new ids of the site, its lists and its sources, and addresses, serials, revisions
 * and stamps follow. What crawlers have seen stays: positions, dates, texts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

struct site_rows {
    struct sqlite3 *from, *to; /* borrowed */
    int64_t site;              /* in `from` */
    /* Returns the new id; NULL: ids stay. 0: out of memory, or unknown id. */
    int64_t (*map)(void *context, char what, int64_t id);
    /* Called after each row; false stops. May be NULL. */
    bool (*each)(void *context);
    void *context;
    uint64_t entries;          /* copied so far */
    size_t table;              /* the current table; `read` reads its rows */
    struct sqlite3_stmt *read; /* owned: site_rows_done */
};

/* `what` of `map`: 'S' the site, 'L' a list, 'C' a source; and, without regard to the old value:
 * 'N' the serial of an entry, 'R' a revision, 'X' a stamp, 'F' who froze the site, 'H' whether the
 * site and its lists are hidden like removed ones, and 'P' when a hidden list is purged. */

/* Which rows to copy: those without effect while their site and its lists are hidden, or all. */
enum site_part { SITE_ROWS_HIDDEN, SITE_ROWS_ALL };

/* Copies rows of the site, from where the last call stopped: the site, its lists, their rows, its
 * tokens and sources. Call it in a transaction of `to`, and in one of `from` unless nobody changes
 * that file. Returns SQLite's result code; SQLITE_ABORT if `each` or `map` stopped it. After
 * `each` did, call it again in another transaction of `to`. */
int site_rows_copy(struct site_rows *rows, enum site_part upto);
/* Frees the statement of an unfinished table. */
void site_rows_done(struct site_rows *rows);
