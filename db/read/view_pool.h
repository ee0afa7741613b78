/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The read connections of a handle and what a view is. Internal to db/, the read side.
 *
 * Invariants:
 * 1. A view belongs to one thread from view_begin to view_end; the pool's lock guards `lent`, the
 *    identity and the caches, and nothing of the engine is called under it.
 * 2. A connection is opened when it is first needed, and again after the file was replaced: its
 *    `generation` is the pool's at its opening. It is used only while the two agree.
 * 3. No connection is opened to a file that is not the one the watch vouched for. The path of a
 *    replaced file still has the old one's write-ahead log beside it, which the engine would read
 *    into the new file; the watch clears it away first (read/watch.c). */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "db/catalogue.h"
#include "db/file/filesystem.h"

/* Statements that a view keeps prepared: twice as many as there are in db/; more would fail. */
#define VIEW_STATEMENTS 128

struct catalogue_view {
    struct view_pool *pool; /* constant */
    bool lent;              /* the pool's lock */
    sqlite3 *db;            /* NULL: not open */
    struct {
        const char *sql; /* NULL: none is here */
        sqlite3_stmt *prepared;
    } statements[VIEW_STATEMENTS]; /* by the address of their text, which is a literal */
    uint64_t generation;
    bool broken; /* the engine failed: closed at view_end */
    /* As read at view_begin. */
    char epoch[33];
    uint64_t revision, registry_revision;
};

struct view_pool {
    struct catalogue *catalogue;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct catalogue_view views[CATALOGUE_VIEWS];
    struct file_identity identity; /* of the file that may be opened */
    uint64_t generation;
    bool lost; /* the path does not name that file: new views fail */
    /* The newest that was read; kept because most views ask for the same. */
    struct registry *registry; /* a reference, or NULL */
    bool entries_known;
    uint64_t entries_revision, entries, urls;
};

/* New views answer UNAVAILABLE from now on. Those that are open go on reading the old file. */
void view_pool_lose(struct view_pool *pool);
/* The path names `identity` now: views are reopened, on it. */
void view_pool_renew(struct view_pool *pool, const struct file_identity *identity);

/* Opens a reading connection of the caller's own, for what takes long (a backup, a check): only to
 * the file that the pool's views read. `why` gets a sentence on failure. */
enum catalogue_status view_pool_connect(struct view_pool *pool, sqlite3 **out, char *why,
                                        size_t why_size);

/* The statement of `sql`, a literal, reset and unbound; prepared at its first use. NULL on failure:
 * then view_status(v, SQLITE_ERROR) says so. A statement serves one caller at a time, so no `each`
 * may call a function that has the same text. */
sqlite3_stmt *view_statement(struct catalogue_view *v, const char *sql);
/* Binds the parameters from the first on: 'i' exactly an int64_t, 't' a text (borrowed; NULL:
 * NULL). A result code of the engine; SQLITE_ERROR where `row` is NULL. */
int view_bind(sqlite3_stmt *row, const char *types, ...);
/* The first column of the first row, 0 without a row; resets. `rc` is the result of binding. */
enum catalogue_status view_number(struct catalogue_view *v, sqlite3_stmt *row, int rc,
                                  int64_t *out);
/* Maps a result, and remembers where it means that the connection is not to be used again. */
enum catalogue_status view_status(struct catalogue_view *v, int sqlite_result);
/* Ends the use of a statement (NULL: it could not be had) whose last step returned `rc`. */
enum catalogue_status view_end_statement(struct catalogue_view *v, sqlite3_stmt *row, int rc);
