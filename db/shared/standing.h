/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of a node of a shared catalogue (member.h): its phase, the positions of its file and of
 * the log, and failures. The threads of the writer and the lookout (member.c) write it, any thread
 * reads it; only standing_pause waits. Internal to db/. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/shared.h"
#include "db/shared/digest.h"
#include "db/shared/log.h"
#include "db/status.h"

#define STANDING_TRIPS 5

/* The writer's and the lookout's connection to the log: either may fail alone. */
#define STANDING_LINES 2

struct standing {
    struct standing_line {
        const struct shared_log *_Atomic log; /* the connection, once it has failed */
        _Atomic int64_t away_since_ms;        /* 0: it does not fail */
    } lines[STANDING_LINES];
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t wakes;
    bool ended;
    struct shared_state state; /* only the writer's thread writes node and epoch */
    struct shared_position at;
    int64_t behind_since_ms;
    int64_t refused_since_ms;
    int64_t lacks_since_ms; /* as `lacks` */
    char lacks[160];        /* privileges that PostgreSQL does not grant; see log.h */
    bool has_fetched;       /* a snapshot is ready, at the log's head */
    bool has_lost;          /* the log has lost records that the file has */
    uint64_t replacements;  /* how often the file was replaced by a snapshot, or created from one */
    struct digests digests;
    bool has_differed;
    int64_t trips_us[STANDING_TRIPS]; /* a ring */
    unsigned trip_count;
    void (*moved)(void *context); /* or NULL */
    void *moved_context;
};

/* `node`: or NULL, until standing_know. */
void standing_init(struct standing *s, const char *node);
void standing_done(struct standing *s);

/* ---- any thread */

/* The present state. */
struct standing_now {
    enum shared_phase phase;
    struct shared_position at;
    int64_t behind_ms; /* how long records of other nodes have waited to be applied; 0: none wait */
    uint64_t replacements;
    bool has_fetched, has_lost, has_differed, ended;
};
struct standing_now standing_now(struct standing *s);
void standing_state(struct standing *s, struct shared_state *out);
/* How long the log has been unreachable for either connection; 0: it is reachable. */
int64_t standing_away_ms(const struct standing *s);
/* As catalogue_shared_on_move. */
void standing_on_move(struct standing *s, void (*moved)(void *context), void *context);
/* The digest (digest.h) of the last record that had one; false: none was taken since the start. */
bool standing_digest(struct standing *s, uint64_t *seq, uint8_t digest[DIGEST_BYTES]);
/* As digests_compare. */
int standing_compare_digest(struct standing *s, uint64_t seq, const uint8_t digest[DIGEST_BYTES]);
/* Sets the names of the nodes whose digests differ from this node's. */
void standing_set_differs(struct standing *s, const char *nodes);
/* This node's rows differ from those of all others: it copies their state (only once). */
void standing_differs(struct standing *s);

/* ---- member and lookout */

/* Waits for `ms`, or until a phase is set or standing_end was called. */
void standing_pause(struct standing *s, int64_t ms);
void standing_end(struct standing *s);
void standing_know(struct standing *s, const char *node, const char *epoch);
void standing_set_phase(struct standing *s, enum shared_phase phase, const char *trouble);
void standing_set_trouble(struct standing *s, const char *trouble);
/* What became of the file that a copy replaces, since the node left. */
void standing_set_kept(struct standing *s, const char *kept);
/* One of the state's counters. */
void standing_count(struct standing *s, uint64_t *counter);

/* A file was opened at this position (NULL: none yet). Sets the phase. `is_older`: its schema is
 * older than this release's. */
void standing_record_file(struct standing *s, const struct shared_position *at, int schema,
                          bool is_older);
void standing_set_at(struct standing *s, const struct shared_position *at);
/* The log's head is at least this. True if the file is behind it. */
bool standing_record_head(struct standing *s, uint64_t head);
/* Records the time of a round trip to the log. */
void standing_record_trip(struct standing *s, int64_t us);
void standing_keep_digest(struct standing *s, const struct digest_of *taken);

/* Records the outcome of a call of the log, and returns its status for waiting writes. */
enum catalogue_status standing_record_outcome(struct standing *s, const struct shared_log *log,
                                              enum shared_outcome outcome);
/* The same for a `commit`. */
enum catalogue_status standing_record_commit(struct standing *s, const struct shared_log *log,
                                             enum shared_outcome outcome);
/* The log has the records again that it had lost: the node joins as it is. False: its rows differ
 * meanwhile, so it needs its copy. */
bool standing_record_found(struct standing *s);
void standing_record_away(struct standing *s, const struct shared_log *log);
void standing_record_there(struct standing *s, const struct shared_log *log);
/* The log accepts writes. */
void standing_record_accepted(struct standing *s);
/* Privileges for writes that the node's role lacks, so that the log rejects its writes until they
 * are granted; "": none. */
void standing_set_lacks(struct standing *s, const char *lacks);
/* Clears the failure of a node that has joined. */
void standing_clear_trouble(struct standing *s);

/* Records the positions of the fetched copy and of the log. */
void standing_record_copy(struct standing *s, uint64_t seq, uint64_t head);
/* Records the outcome of an attempt to fetch a copy. `why`: the failure, or NULL. */
void standing_record_fetched(struct standing *s, bool fetched, const char *why);
/* Call it right after the file's content was replaced by a fetched copy, before the phase changes.
 */
void standing_forget_head(struct standing *s);
/* Call it after that and after the phase has changed, or the copy is fetched again. `joined`: the
 * file was empty before; `why`: the failure, or NULL. */
void standing_record_replaced(struct standing *s, bool joined, const char *why);
