/* The watch: what tells whether there is something newer, and its connection to the file. Internal
 * to the watch: watch.c waits, opens the file and finds it again. */
#ifndef SITEMAPD_DB_FILE_WATCH_H
#define SITEMAPD_DB_FILE_WATCH_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/file/connection.h"
#include "db/file/handle.h"
#include "db/read/view_pool.h"

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

#endif
