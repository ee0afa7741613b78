/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A node's part in a shared catalogue: connects the writer's transactions to the log (log.h), so
 * that only one node writes at a time. Internal to db/.
 *
 * A write takes the lock in the log ("there") and applies newer records to the file ("here"). Then
 * it runs as usual, while its effects (effects.h) are recorded and sent. Between the stamp and
 * COMMIT they are committed there, and only then here:
 *
 *     committed there   here
 *     no                rolled back, answered as not applied
 *     yes               committed; after a kill before that, the record is applied from the log
 *     unknown           rolled back, and looked up by its id; if it is there it is applied from
 *                       the log, and answered as applied
 *
 * So the file is always exactly the log up to local_shared.seq, which each record's local
 * transaction writes. Records of other nodes are applied in the same way, by the writer's thread.
 * The member's own thread (the lookout) only waits for news and fetches. If it fetched a snapshot,
 * the writer replaces the whole content of the file by it, in one transaction, so that readers keep
 * their views.
 *
 * A migration is a record: one node runs it and sends its statements and rows. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/shared/followed.h"
#include "db/shared/join.h"
#include "db/shared/log.h"
#include "db/shared/standing.h"
#include "db/tx/tx.h"
#include "server/base/thread.h"

/* The lookout: a node's thread that waits for notifications of other nodes' records, and looks for
 * records periodically. If the file is empty or has diverged, it fetches a copy of the catalogue
 * and brings it to the log's head. It passes records and copies to the writer. A follower's log is
 * another node's (followed.h): it can always copy that node's file again, since it never writes.
 * Internal to db/shared. */

struct catalogue;

struct lookout {
    struct catalogue *catalogue; /* borrowed, as `standing` */
    struct standing *standing;
    struct shared_log *log; /* owned; the thread's from the start on */
    struct thread thread;
    /* For the lookout's thread alone. */
    bool follows;
    unsigned failures; /* unusable copies in a row */
    unsigned retries;  /* since the log was last read: sets the pause, see RETRY_MS */
    bool has_copy;     /* a snapshot was fetched, and catches up with the head */
    bool distrusts_peers;
    int64_t looked_at_ms, probe_at_ms;
    char copy_epoch[JOIN_EPOCH_SIZE];
    atomic_bool behind; /* there are records for the writer, which clears it */
    pthread_mutex_t lock;
    struct shared_news *news; /* guarded by it: for the writer, in order; owned */
};

struct member;

/* Opens a log; tests replace the function before any catalogue is opened. */
extern struct shared_log *(*member_open_log)(const struct shared_log_options *options, char *why,
                                             size_t why_size);

/* For a catalogue whose options are set. NULL: out of memory. */
struct member *member_new(struct catalogue *c);
/* After the writer's connection was detached. Accepts NULL. */
void member_free(struct member *m);
/* Starts the lookout, which pokes the writer of the catalogue. */
bool member_start(struct member *m);
/* Ends all waits: an incomplete record is rolled back, the result of a write stays unknown. Any
 * thread. */
void member_abandon(struct member *m);
/* Ends the thread. Accepts NULL. */
void member_stop(struct member *m);

/* ---- the writer's thread */

/* Call it once the writer's connection is open and `tx` was made, before any use. The first call
 * prepares the handles of the log, without connecting. */
enum catalogue_status member_attach(struct member *m, struct tx *tx, char *why, size_t why_size);
/* Before tx_done. */
void member_detach(struct member *m);
/* Before tx_begin: takes the lock and applies newer records. `site_group`: as for begin in log.h.
 * OK: call tx_commit or tx_rollback, or member_leave if tx_begin failed. BUSY: another node has the
 * lock, or its list comes first. Else see SHARED_… in db/status.h. `*moved`: records were applied,
 * so cached state is stale. */
enum catalogue_status member_enter(struct member *m, int site_group, int64_t deadline_ms,
                                   bool *moved);
/* After BUSY: whether another node's list has the group's turn. */
bool member_group_is_elsewhere(const struct member *m);
/* Before a tx_begin whose transaction will be rolled back: applies newer records, without the lock.
 * BUSY: there were too many for the time. */
enum catalogue_status member_catch_up(struct member *m, int64_t deadline_ms, bool *moved);
void member_leave(struct member *m);
/* Once no write waits here for the end of a list: lets other nodes' lists begin. `waits`: there are
 * lists here. True if a list of another node waits. Cheap if there was no list. */
bool member_pass(struct member *m, bool waits);
/* With the lock: how long another node has been waiting for it. Without: how long a record of
 * another node has waited to be applied here. 0: none. */
int64_t member_awaited_ms(struct member *m);
/* After OUTCOME_UNKNOWN of tx_commit: queries the outcome until the deadline, then applies the
 * record. OK: it was applied, also here. SHARED_AWAY: it never will be. */
enum catalogue_status member_settle(struct member *m, int64_t deadline_ms);
/* The id of the record that tx_commit sent last. */
const char *member_last_id(const struct member *m);
/* True if member_follow has something to do. Any thread, cheap. */
bool member_is_behind(const struct member *m);
/* Applies records of other nodes, or replaces the file's content by a fetched snapshot. `*moved` as
 * above. */
enum catalogue_status member_follow(struct member *m, bool *moved);
/* Appends the migration to this release's schema, if it is due and not left to the operator. */
enum catalogue_status member_upgrade(struct member *m, bool *moved);
bool member_upgrade_is_due(const struct member *m);

/* The node's state, for any thread. */
struct standing *member_standing(struct member *m);
/* The followed node; NULL: not a follower. */
struct followed *member_followed(struct member *m);
/* Number of nodes between this one and PostgreSQL. */
unsigned member_hops(struct member *m);
