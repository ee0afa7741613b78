/* The watch: what tells whether there is something newer, and its connection to the file. Internal
 * to the watch: watch.c waits, watch_file.c opens the file and finds it again. */
#ifndef SITEMAPD_DB_WATCH_H
#define SITEMAPD_DB_WATCH_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/connection.h"
#include "db/handle.h"
#include "db/view_pool.h"

struct watch {
    struct catalogue *catalogue; /* constant */
    pthread_mutex_t lock;        /* guards `woken` */
    pthread_cond_t wakes;
    bool woken;

    /* The waiting thread's alone. */
    sqlite3 *db; /* kept while lost: its open file keeps the inode's number from being given anew */
    sqlite3_stmt *data_version;
    int64_t version;           /* the last data_version read */
    struct file_identity file; /* of `db` */
    struct file_identity log;  /* of its write-ahead log */
    bool log_known;
    bool lost; /* LOST was returned, REOPENED not yet */
};

/* All of these are the waiting thread's. */

/* Reads data_version, in a transaction that ends with it. SQLITE_OK, or the engine's result. */
int watch_read_version(sqlite3_stmt *data_version, int64_t *out);
/* Remembers which file the write-ahead log is. It exists from the first read on (once the file is
 * in WAL mode, which a copy made elsewhere may not be), and stays as long as a connection is open.
 */
void watch_find_log(struct watch *w);
/* Opens the path, provided that it names `file` before and after. NULL: see `*status`, `why`. */
sqlite3 *watch_open_path(struct watch *w, const struct file_identity *file,
                         enum connection_mode mode, enum catalogue_status *status, char *why,
                         size_t why_size);
/* Takes over an open connection. A result other than SQLITE_OK leaves it to the caller, and the
 * watch as it was; the connection itself may have forgotten it. */
int watch_adopt(struct watch *w, sqlite3 *db, const struct file_identity *file);
/* Opens what the path names now, migrating it where it is of an earlier version. False: there is
 * no catalogue there (yet), and the watch is as it was. */
bool watch_reopen(struct watch *w);

#endif
