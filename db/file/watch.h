/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of the watch, which notices commits and replaced files. Internal to read/watch.c. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/file/connection.h"
#include "db/file/handle.h"

struct watch {
    struct catalogue *catalogue; /* constant */
    int wake_fd;                 /* an eventfd; any thread writes to it */

    /* For the waiting thread alone. */
    sqlite3 *db; /* stays open while lost, so that the inode number is not reused */
    sqlite3_stmt *data_version;
    int64_t version; /* the last data_version */
    struct log_index index;
    struct file_identity file; /* of `db` */
    struct file_identity log;  /* of its write-ahead log */
    bool log_known;
    bool lost;        /* LOST was returned, REOPENED not yet */
    int files_fd;     /* inotify of the file and its log; -1: none */
    int64_t moved_ms; /* the last event of inotify, or the last look that found a change */
};
