/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The queue of writes: bounded; each write has a deadline, after which it is removed and never
 * applied. Two lines: small changes, which share transactions, and changes that need a transaction
 * alone. Internal to db/. Thread safe unless stated otherwise. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/tx/tx.h"
#include "server/base/site_table.h"

/* Most waiting writes if catalogue_options.max_queued is 0. */
#define QUEUE_MAX_DEFAULT 10000u
/* Most changes in one group commit: bounds how long the first one waits for the last. */
#define QUEUE_BATCH_MAX 512

struct write_request {
    struct change change; /* its pointers lead into `block`; it owns its rows */
    change_done *done;
    void *done_context;
    struct change_result result;
    int64_t deadline_ms;        /* by clock_now_ms */
    uint64_t round;             /* of a small change: its place in the line */
    bool begun;                 /* some of its steps were applied: no deadline */
    enum tx_turn turn;          /* how the writer applies it */
    struct queue_site *of_site; /* counts there in the queue; NULL: not queued, or not counted */
    bool wrote;                 /* a rehearsal wrote something */
    int64_t clock_offset;       /* for a rehearsal: the one of the writer's transaction */
    struct write_request *next;
    char *block[]; /* aligned for pointers */
};

struct request_line {
    struct write_request *first;
    struct write_request **last;
    uint64_t last_round; /* of the last one, if there is one */
};

/* What a site's tokens (0: those for all sites) have in the queue. */
struct queue_site {
    struct site_row row;
    uint64_t turn;  /* its last turn with a transaction alone; if later, the one when it came */
    uint64_t round; /* of its next small change, unless the queue's is higher */
    size_t waiting; /* its writes in the queue */
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct request_line small, alone; /* the lock guards these and all members below */
    pthread_cond_t dated;             /* signalled for an earlier deadline, and at the end */
    size_t depth, max;
    uint64_t turns;
    uint64_t round;              /* of small changes that come now: see push_small */
    int64_t last_site;           /* that had the last turn */
    struct queue_site all_sites; /* of tokens for all sites */
    struct site_table sites;     /* the others with writes in the queue */
    bool closed;
    bool poked;
    bool over; /* queue_end_expiry was called */
};

enum queue_answer { QUEUE_ACCEPTED, QUEUE_FULL, QUEUE_CLOSED, QUEUE_NO_MEMORY };

/* Whose turn it is: small changes, a change alone, or a dry run alone. */
enum queue_turn { QUEUE_SMALL, QUEUE_ALONE, QUEUE_DRY };

void queue_init(struct queue *q, size_t max);
void queue_done(struct queue *q);
/* Takes ownership if it returns QUEUE_ACCEPTED. */
enum queue_answer queue_push(struct queue *q, struct write_request *request);
/* Rejects further pushes; waiting writes can still be popped. */
void queue_close(struct queue *q);
/* Wakes queue_wait. */
void queue_poke(struct queue *q);
/* Waits until a write is queued, queue_poke or queue_close was called, or the timeout. */
void queue_wait(struct queue *q, int timeout_ms);
/* The same for small changes alone. */
void queue_wait_small(struct queue *q, int timeout_ms);
bool queue_is_closed(struct queue *q);
size_t queue_depth(struct queue *q);
/* True if a small change waits, or (`alone`) a change that needs a transaction alone. */
bool queue_has(struct queue *q, bool alone);
/* Pops up to QUEUE_BATCH_MAX small changes, or one change to be applied alone, of the site (by its
 * token) that has not had a turn for longest: so a site's list waits for at most one list of each
 * other site. Small changes come in rounds of one of each site, those of a site in order of
 * arrival: some, such as a freeze, take milliseconds each. NULL: none waits. The caller owns the
 * list. */
struct write_request *queue_pop(struct queue *q, enum queue_turn turn);
/* True if the next change to be applied alone is a dry run. */
bool queue_next_is_dry(struct queue *q);
/* Pops the first change that writes only the node's own tables; NULL: none waits. */
struct write_request *queue_pop_own(struct queue *q);
/* The site that has the next turn alone; QUEUE_NO_SITE: none waits. */
#define QUEUE_NO_SITE (-1)
int64_t queue_next_site(struct queue *q);
/* The site has its turn on another node: here other sites come first. */
void queue_skip_site(struct queue *q, int64_t site_id);
/* Pops all writes whose deadline has passed. */
struct write_request *queue_pop_expired(struct queue *q, int64_t now_ms);
/* Puts the writes that were popped last at the front again, small ones at the front of their
 * rounds. */
void queue_return(struct queue *q, bool alone, struct write_request *list);
/* Queues a change that has further steps after all that wait. */
void queue_requeue(struct queue *q, struct write_request *request);
/* True if a write of a token of another site waits with a deadline up to `until_ms`. */
bool queue_presses(struct queue *q, int64_t site_id, int64_t until_ms);
/* Waits until a deadline has passed. False once queue_end_expiry was called. */
bool queue_wait_expired(struct queue *q);
void queue_end_expiry(struct queue *q);
