/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The read connections of a handle, and the struct of a view. Internal to db/, the read side.
 *
 * Invariants:
 * 1. A view belongs to one thread from view_begin to view_end; the pool's lock guards `lent`, the
 *    identity and the caches. SQLite is never called under it.
 * 2. A connection is opened when it is first needed, and again after the file was replaced: its
 *    `generation` is the pool's at its opening. It is used only while the two agree.
 * 3. Connections are opened only to the file that the watch has identified. After a file was
 *    replaced, the old file's write-ahead log is still beside the path, and SQLite would apply
 *    it to the new file; the watch moves it away first (read/watch.c). */
#pragma once

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "db/catalogue.h"
#include "db/file/bind.h"
#include "db/file/filesystem.h"

/* Most statements that a view keeps prepared: twice as many as db/ has; one more would fail. */
#define VIEW_STATEMENTS 128

struct catalogue_view {
    struct view_pool *pool; /* constant */
    bool lent;              /* guarded by the pool's lock */
    sqlite3 *db;            /* NULL: not open */
    struct {
        const char *sql; /* NULL: unused */
        sqlite3_stmt *prepared;
    } statements[VIEW_STATEMENTS]; /* by the address of their text, which is a literal */
    uint64_t generation;
    bool broken; /* SQLite failed: view_end closes the connection */
    /* As read at view_begin. */
    char epoch[33];
    uint64_t revision, registry_revision;
};

struct view_pool {
    struct catalogue *catalogue;
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct catalogue_view views[CATALOGUE_VIEWS];
    struct file_identity identity; /* the file that may be opened */
    uint64_t generation;
    bool lost; /* the path does not name that file: new views fail */
    /* The newest one that was read: most views need the same. */
    struct registry *registry; /* a reference, or NULL */
    bool entries_known;
    uint64_t entries_revision, entries, urls;
};

/* New views return UNAVAILABLE from now on. Open ones continue to read the old file. */
void view_pool_lose(struct view_pool *pool);
/* The path now names `identity`: views open that file. */
void view_pool_renew(struct view_pool *pool, const struct file_identity *identity);

/* Opens a reading connection for the caller, for long work (a backup, a check), to the file that
 * the pool's views read. `why` gets a sentence on failure. */
enum catalogue_status view_pool_connect(struct view_pool *pool, sqlite3 **out, char *why,
                                        size_t why_size);

/* The statement of `sql`, a literal, reset and unbound; prepared at its first use. NULL on failure:
 * then view_status(v, SQLITE_ERROR) says so. A statement serves one caller at a time, so no `each`
 * may call a function that has the same text. */
sqlite3_stmt *view_statement(struct catalogue_view *v, const char *sql);
/* The first column of the first row, 0 without a row; resets. `rc` is the result of binding. */
enum catalogue_status view_number(struct catalogue_view *v, sqlite3_stmt *row, int rc,
                                  int64_t *out);
/* Maps a result code, and marks the connection as broken if it must not be used again. */
enum catalogue_status view_status(struct catalogue_view *v, int sqlite_result);
/* Resets a statement (NULL: it could not be prepared) whose last step returned `rc`. */
enum catalogue_status view_end_statement(struct catalogue_view *v, sqlite3_stmt *row, int rc);
