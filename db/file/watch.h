/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The watch: what says whether there is something newer, and its connection to the file. Internal
 * to the watch: watch.c waits, opens the file and finds it again. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/file/connection.h"
#include "db/file/handle.h"

struct watch {
    struct catalogue *catalogue; /* constant */
    int wake_fd;                 /* an eventfd: anybody's */

    /* The waiting thread's alone. */
    sqlite3 *db; /* kept while lost: its open file keeps the inode's number from being reused */
    sqlite3_stmt *data_version;
    int64_t version; /* the last data_version read */
    struct log_index index;
    struct file_identity file; /* of `db` */
    struct file_identity log;  /* of its write-ahead log */
    bool log_known;
    bool lost;        /* LOST was returned, REOPENED not yet */
    int files_fd;     /* inotify of the file and its log; -1: none */
    int64_t moved_ms; /* when it last reported something, or a look found something */
};
