/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lets a node join a shared catalogue, or join it again after it has diverged: fetches a snapshot
 * into a file beside the catalogue's, gives it this node's identity and applies the log's newer
 * records to it. Only then it replaces the content of the catalogue's file: until that moment the
 * old pages are served, and never a state in between. Internal to db/shared. */
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
    const char *epoch; /* of the file's log; "": none yet */
};

/* Reads the identity in the file. `node` (SHARED_NODE_SIZE) stays if it is set; else it becomes the
 * file's, else the host's name and 8 hex digits. `epoch` (SHARED_EPOCH_SIZE) is "" if the file is
 * of no log. */
enum catalogue_status join_know(sqlite3 *db, char *node, char *epoch);
/* Makes the file, which no other process uses, that of the first node of a new shared catalogue, at
 * the log's start. Without an open transaction. */
enum catalogue_status join_found(sqlite3 *db, const struct join_node *node,
                                 const struct shared_position *start);
/* Makes the file a catalogue that is not shared. In the caller's transaction. */
enum catalogue_status join_leave(sqlite3 *db);
/* The position of a node's file in the log. NOT_FOUND: it is of no log. */
enum catalogue_status join_position(sqlite3 *db, struct shared_position *out);
/* The nodes whose files are tried before the log's snapshot. */
struct join_peers {
    const struct shared_peers *calls; /* NULL: none */
    bool (*stops)(void *context);
    void *context;
    bool used; /* output: the file is a peer's */
};
/* Fetches a snapshot, a peer's or the newest of the log, and gives it this node's identity; on the
 * log's thread. YES: it is ready, and its position is in the log. NO: no snapshot is usable. */
enum shared_outcome join_fetch(struct shared_log *log, const char *path,
                               const struct join_node *node, struct join_peers *peers, char *why,
                               size_t why_size);
/* How a fetched file is brought to the log's head. */
struct join_catching_up {
    const struct join_node *node;
    /* The log lost records that the file at the path has, so their revisions are used again. The
     * catalogue then gets another epoch, in a record of its own, so that no earlier If-Match or
     * cursor is accepted. */
    bool renews;
    char *fetched; /* of JOIN_EPOCH_SIZE, "" before the first call: the snapshot's epoch */
    bool (*stops)(void *context); /* true: ends with STOPPED */
    void (*moved)(void *context, uint64_t seq, uint64_t head);
    void *context;
};
/* Applies the log's newer records to the fetched file; on the log's thread. YES: it has reached the
 * head. AWAY, BUSY, STOPPED: call it again to continue. Other outcomes: the file is unusable; fetch
 * a snapshot again. */
enum shared_outcome join_catch_up(struct shared_log *log, const char *path,
                                  const struct join_catching_up *how, char *why, size_t why_size);
struct catalogue;
struct standing;

/* If the node left since the log lacks records of its file, or since its rows differ: keeps a copy
 * as the file "….diverged" beside the catalogue, once, since it may be the newest state that is
 * left anywhere. A copy that is younger than a day stays instead: the first of several mistakes has
 * the most. Nothing is written if the disk would be short of room then. The standing gets the
 * result. Call it before the fetched file is reported; it may take minutes. */
void join_keep_diverged(struct catalogue *c, struct standing *s, bool (*ends)(void *context),
                        void *context);
/* Replaces the content of `db` (the catalogue at `path`, no transaction open) by the fetched file,
 * in one transaction, so that readers keep their view. Removes the fetched file. */
enum catalogue_status join_replace(const char *path, sqlite3 *db, char *why, size_t why_size);
