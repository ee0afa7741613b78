/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of a node of a shared catalogue (member.h): what it may do, how far its file and the
 * log are, and what is wrong. The threads of the writer and the lookout (member.c) write it, any
 * thread reads it; only standing_pause waits. Internal to db/. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/shared.h"
#include "db/shared/digest.h"
#include "db/shared/log.h"
#include "db/status.h"

#define STANDING_TRIPS 9

/* The writer's connection to the log and the lookout's: either may fail alone. */
#define STANDING_LINES 2

struct standing {
    struct standing_line {
        const struct shared_log *_Atomic log; /* the connection, once it has failed */
        _Atomic int64_t away_since_ms;        /* 0: it does not fail */
    } lines[STANDING_LINES];
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wakes;
    bool ended;
    struct shared_state state; /* its node and epoch: the writer's thread alone writes them */
    struct shared_position at;
    int64_t behind_since_ms;
    int64_t refused_since_ms;
    bool has_fetched;      /* a snapshot lies ready, brought to the log's head */
    bool has_lost;         /* the log has lost records that are here */
    uint64_t replacements; /* how often the file was replaced by a snapshot, or created from one */
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

/* ---- what any thread may ask and say */

/* The present state. */
struct standing_now {
    enum shared_phase phase;
    struct shared_position at;
    int64_t behind_ms; /* how long what another wrote has waited to be applied here; 0: none does */
    uint64_t replacements;
    bool has_fetched, has_lost, has_differed, ended;
};
struct standing_now standing_now(struct standing *s);
void standing_state(struct standing *s, struct shared_state *out);
/* How long the log has been out of reach of either connection; 0: it is not. */
int64_t standing_away_ms(const struct standing *s);
/* As catalogue_shared_on_move. */
void standing_on_move(struct standing *s, void (*moved)(void *context), void *context);
/* The digest (digest.h) of the last record that had one; false: none was taken since the start. */
bool standing_digest(struct standing *s, uint64_t *seq, uint8_t digest[DIGEST_BYTES]);
/* As digests_compare. */
int standing_compare_digest(struct standing *s, uint64_t seq, const uint8_t digest[DIGEST_BYTES]);
/* This node differs from all others: it copies their state (only once). */
void standing_differs(struct standing *s);

/* ---- what member and lookout say */

/* Waits for `ms`, or until a phase is set or standing_end was called. */
void standing_pause(struct standing *s, int64_t ms);
void standing_end(struct standing *s);
void standing_know(struct standing *s, const char *node, const char *epoch);
void standing_set_phase(struct standing *s, enum shared_phase phase, const char *trouble);
void standing_set_trouble(struct standing *s, const char *trouble);
/* One of the state's counters. */
void standing_count(struct standing *s, uint64_t *counter);

/* A file was opened: its place, NULL where it has nothing of a log yet. Sets the phase. `is_older`:
 * than this release's form. */
void standing_record_file(struct standing *s, const struct shared_position *at, int schema,
                          bool is_older);
void standing_set_at(struct standing *s, const struct shared_position *at);
/* The log is at least there. True where the file is not there yet. */
bool standing_record_head(struct standing *s, uint64_t head);
/* What a question to the log took. */
void standing_record_trip(struct standing *s, int64_t us);
void standing_keep_digest(struct standing *s, const struct digest_of *taken);

/* Records the outcome of a call of the log, and what that is for the writes that wait for it. */
enum catalogue_status standing_record_outcome(struct standing *s, const struct shared_log *log,
                                              enum shared_outcome outcome);
/* The same of a `commit`. */
enum catalogue_status standing_record_commit(struct standing *s, const struct shared_log *log,
                                             enum shared_outcome outcome);
void standing_record_away(struct standing *s, const struct shared_log *log);
void standing_record_there(struct standing *s, const struct shared_log *log);
/* The log accepts what is written. */
void standing_record_accepted(struct standing *s);
/* Of a node that has joined nothing is wrong any more. */
void standing_clear_trouble(struct standing *s);

/* How far the fetched copy is, and the log. */
void standing_record_copy(struct standing *s, uint64_t seq, uint64_t head);
/* The outcome of an attempt to fetch a copy. `why`: what is wrong, or NULL. */
void standing_record_fetched(struct standing *s, bool fetched, const char *why);
/* What was fetched took the place of all that was here: before anything is made of it, and the
 * phase another. */
void standing_forget_head(struct standing *s);
/* Behind that, and behind the phase, or it is fetched again. `joined`: there was nothing before;
 * `why`: why it could not, or NULL. */
void standing_record_replaced(struct standing *s, bool joined, const char *why);
