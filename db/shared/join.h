/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How a node joins a shared catalogue, and returns to it where its past is not the log's: a
 * snapshot is fetched into a file beside the catalogue's and made this node's. The log's newer
 * records are applied to it there. Only then does it replace all that the catalogue's file holds:
 * until that moment the old pages are served, and none of the states in between ever is. Internal
 * to db/shared. */
#pragma once

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/shared.h"
#include "db/shared/log.h"
#include "db/status.h"

#define JOIN_EPOCH_SIZE 33 /* of the catalogue */

struct join_node {
    const char *name;
    const char *epoch; /* of the log that the file belongs to; "": of none yet */
};

/* Reads who the file says it is. `node`, of SHARED_NODE_SIZE: left alone where it is set; "" where
 * neither it nor the file names one: the host's name and 8 hex digits. `epoch`, of
 * SHARED_EPOCH_SIZE: "" where the file has nothing of a log. */
enum catalogue_status join_know(sqlite3 *db, char *node, char *epoch);
/* Makes the file (no transaction open, nobody else's) that of the one node of a new shared
 * catalogue, at the log's start. */
enum catalogue_status join_found(sqlite3 *db, const struct join_node *node,
                                 const struct shared_position *start);
/* The other way round: a catalogue of its own, as a copy elsewhere is. In the caller's transaction.
 */
enum catalogue_status join_leave(sqlite3 *db);
/* Where a node's file is in the log. NOT_FOUND: it has nothing of one. */
enum catalogue_status join_position(sqlite3 *db, struct shared_position *out);
/* Whose files are tried before the log's snapshot. */
struct join_peers {
    const struct shared_peers *calls; /* NULL: nobody's */
    bool (*stops)(void *context);
    void *context;
    bool used; /* set: the file is a peer's */
};
/* Fetches a snapshot, a peer's or the newest of the log, and makes it the node's; on the log's
 * thread. YES: it lies ready, and where it says that it is in the log, it is. NO: no snapshot
 * helps. */
enum shared_outcome join_fetch(struct shared_log *log, const char *path,
                               const struct join_node *node, struct join_peers *peers, char *why,
                               size_t why_size);
/* How a fetched file is brought to the log's head. */
struct join_catching_up {
    const struct join_node *node;
    /* The log lost records that the file at the path has: the revisions that it answered with are
     * given to other changes now. The catalogue then gets another epoch, in a record of its own,
     * so that no If-Match and no cursor of before counts. */
    bool renews;
    char *fetched; /* of JOIN_EPOCH_SIZE, "" before the first call: the snapshot's epoch */
    bool (*stops)(void *context); /* whether to break off: STOPPED */
    void (*moved)(void *context, uint64_t seq, uint64_t head);
    void *context;
};
/* Applies to the fetched file what is newer in the log; on the log's thread. YES: it was at the
 * head a moment ago. AWAY, BUSY, STOPPED: to be called again, it goes on from where it is. All
 * else: it is of no use, and a snapshot is to be fetched again. */
enum shared_outcome join_catch_up(struct shared_log *log, const char *path,
                                  const struct join_catching_up *how, char *why, size_t why_size);
/* Puts it in the place of what `db` (the catalogue at `path`, no transaction open) holds: in one
 * transaction, so that readers keep what they see. It is gone then. */
enum catalogue_status join_replace(const char *path, sqlite3 *db, char *why, size_t why_size);
