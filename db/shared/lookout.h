/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The thread by which a node of a shared catalogue looks out: it waits to be notified of what
 * others wrote, and looks for it now and then. Where the file is empty or its past is not the log's
 * it fetches a copy of the catalogue and brings it to the log's head. It passes what it finds or
 * fetched to the writer. Internal to db/shared. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "db/shared/join.h"
#include "db/shared/log.h"
#include "db/shared/standing.h"
#include "server/base/thread.h"

struct catalogue;

struct lookout {
    struct catalogue *catalogue; /* borrowed, as `standing` */
    struct standing *standing;
    struct shared_log *log; /* owned; the thread's from the start on */
    struct thread thread;
    /* The thread's. */
    bool has_copy; /* a snapshot was fetched, and is being brought to the head */
    char copy_epoch[JOIN_EPOCH_SIZE];
    atomic_bool behind; /* there is something for the writer; which clears it */
};

bool lookout_start(struct lookout *l);
/* Ends the standing, then the thread; nothing where none was started. */
void lookout_stop(struct lookout *l);
