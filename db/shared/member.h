/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A node's part in a shared catalogue: what ties the writer's transactions to the log (log.h), so
 * that SQLite's write lock reaches over all machines. Internal to db/.
 *
 * A write takes the lock there and applies here what is newer, then goes its usual way, its effects
 * (effects.h) recorded and sent as it runs; between the stamp and COMMIT they are committed there,
 * and only then here:
 *
 *     committed there   here
 *     no                rolled back, answered as not applied
 *     yes               committed. Killed before it: the record comes back as anyone's
 *     unknown           rolled back, and asked for by its id; where it is there it is applied from
 *                       the log, and answered as what it was
 *
 * So the file is always the log up to local_shared.seq, which is written in each record's own local
 * transaction, and nothing else. What others wrote is followed in the same way, by the writer's
 * thread. A thread of the member's only waits and looks. A snapshot that it fetched the
 * writer puts in the place of all that the file holds, in one transaction: readers keep what they
 * see until they look again.
 *
 * A migration is a record: one node runs it and sends what it did, statements and rows. */
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

/* The thread by which a node of a shared catalogue looks out: it waits to be notified of what
 * others wrote, and looks for it now and then. Where the file is empty or its past is not the log's
 * it fetches a copy of the catalogue and brings it to the log's head. It passes what it finds or
 * fetched to the writer. Internal to db/shared. A follower's log is another node's (followed.h): it
 * takes that node's file again whatever was lost, since nothing was ever written here. */

struct catalogue;

struct lookout {
    struct catalogue *catalogue; /* borrowed, as `standing` */
    struct standing *standing;
    struct shared_log *log; /* owned; the thread's from the start on */
    struct thread thread;
    /* The thread's. */
    bool follows;
    unsigned failures; /* copies that were of no use, one after the other */
    unsigned retries;  /* since it could be read last: bounds the pause, see RETRY_MS */
    bool has_copy;     /* a snapshot was fetched, and is being brought to the head */
    bool distrusts_peers;
    int64_t looked_at_ms, probe_at_ms;
    char copy_epoch[JOIN_EPOCH_SIZE];
    atomic_bool behind; /* there is something for the writer; which clears it */
    pthread_mutex_t lock;
    struct shared_news *news; /* under it: for the writer, in order; owned */
};

bool lookout_start(struct lookout *l);
/* Ends the standing, then the thread; nothing where none was started. */
void lookout_stop(struct lookout *l);

struct member;

/* How a log is opened; tests put theirs here, before any catalogue is opened. */
extern struct shared_log *(*member_open_log)(const struct shared_log_options *options, char *why,
                                             size_t why_size);

/* For a catalogue whose options are set. NULL: out of memory. */
struct member *member_new(struct catalogue *c);
/* After the writer's connection was detached. Takes NULL. */
void member_free(struct member *m);
/* The thread; it pokes the writer of the catalogue. */
bool member_start(struct member *m);
/* Nothing is waited for any more: what is being applied is broken off, the result of a write stays
 * unknown. Any thread. */
void member_abandon(struct member *m);
/* Ends the thread. Takes NULL. */
void member_stop(struct member *m);

/* ---- the writer's thread */

/* The writer's connection is open, `tx` made on it and nothing done with it yet. The first time it
 * makes ready to reach the log; connects to nobody yet. */
enum catalogue_status member_attach(struct member *m, struct tx *tx, char *why, size_t why_size);
/* Before tx_done. */
void member_detach(struct member *m);
/* Before tx_begin: the lock, and what is newer is applied. `site_group`: as begin of log.h. OK:
 * tx_commit or tx_rollback follows, or member_leave where tx_begin failed. BUSY: another node has
 * the lock, or a list of one goes first. Else see SHARED_… in db/status.h. `*moved` where anything
 * was applied: what was read before is no longer so. */
enum catalogue_status member_enter(struct member *m, int site_group, int64_t deadline_ms,
                                   bool *moved);
/* If the outcome is BUSY: the group's turn is a list's on another node. */
bool member_group_is_elsewhere(const struct member *m);
/* Before a tx_begin whose transaction is rolled back: what is newer is applied, without the lock.
 * BUSY: there was more than the time was enough for. */
enum catalogue_status member_catch_up(struct member *m, int64_t deadline_ms, bool *moved);
void member_leave(struct member *m);
/* What waited behind a list was written, or there is none: other nodes' lists go on. `waits`: there
 * are lists here. True where a list waits elsewhere, too. Cheap where there was no list. */
bool member_pass(struct member *m, bool waits);
/* Since it was entered: for how long another node has been seen to wait for the lock; without the
 * lock, for how long what another wrote has waited to be applied here. 0: none. */
int64_t member_awaited_ms(struct member *m);
/* After OUTCOME_UNKNOWN of tx_commit: asks until the deadline, then applies what is there. OK: it
 * was applied, and is here. SHARED_AWAY: it never will be. */
enum catalogue_status member_settle(struct member *m, int64_t deadline_ms);
/* The id of the record that tx_commit sent last. */
const char *member_last_id(const struct member *m);
/* True where there is something for member_follow. Any thread, cheap. */
bool member_is_behind(const struct member *m);
/* Applies what others wrote, or puts a snapshot in the place of what is here. `*moved` as above. */
enum catalogue_status member_follow(struct member *m, bool *moved);
/* Appends the migration to this release's schema, where it is due and the operator does not do it.
 */
enum catalogue_status member_upgrade(struct member *m, bool *moved);
bool member_upgrade_is_due(const struct member *m);

/* What any thread may ask and say of it. */
struct standing *member_standing(struct member *m);
/* The member's; NULL: it follows no node. */
struct followed *member_followed(struct member *m);
/* How many nodes are between it and PostgreSQL. */
unsigned member_hops(struct member *m);
