/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The writes that wait for the writer: bounded, each with a deadline, after which it is taken out
 * and can no more be applied. Two lines: small changes, which share transactions, and those that
 * need one alone. Internal to db/. Thread safe unless it says otherwise. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/shared/log.h"
#include "db/tx/tx.h"

/* Waiting writes where catalogue_options.max_queued is 0. */
#define QUEUE_MAX_DEFAULT 10000u
/* Changes of one group commit: bounds how long the first waits for the last. */
#define QUEUE_BATCH_MAX 512

struct write_request {
    struct change change; /* what it points to is in `block`, its rows are its own */
    change_done *done;
    void *done_context;
    struct change_result result;
    int64_t deadline_ms;  /* by clock_now_ms */
    bool begun;           /* of its steps some are applied: it waits as long as it takes */
    enum tx_turn turn;    /* what the writer does with it */
    bool wrote;           /* a rehearsal wrote something */
    int64_t clock_offset; /* for a rehearsal: of the writer's transaction */
    struct write_request *next;
    char *block[]; /* aligned for pointers */
};

struct request_line {
    struct write_request *first;
    struct write_request **last;
};

/* What the tokens of one site group (log.h) have of the queue. */
struct queue_group {
    uint64_t turn;  /* when it last had the writer for itself */
    size_t waiting; /* of those in the queue */
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct request_line small, alone; /* the lock guards these and what follows */
    pthread_cond_t dated;             /* an earlier deadline came, or it is over */
    size_t depth, max;
    uint64_t turns;
    struct queue_group groups[SITE_GROUPS];
    bool closed;
    bool poked;
    bool over; /* for who waits for deadlines */
};

enum queue_answer { QUEUE_ACCEPTED, QUEUE_FULL, QUEUE_CLOSED };

/* Whose turn it is: small changes', one's that goes alone, or of these a dry run's. */
enum queue_turn { QUEUE_SMALL, QUEUE_ALONE, QUEUE_DRY };

void queue_init(struct queue *q, size_t max);
void queue_done(struct queue *q);
/* Takes ownership where it answers QUEUE_ACCEPTED. */
enum queue_answer queue_push(struct queue *q, struct write_request *request);
/* No more pushes; what waits may still be taken. */
void queue_close(struct queue *q);
/* Wakes queue_wait though nothing arrived. */
void queue_poke(struct queue *q);
/* Waits until something is queued, it was poked or closed, or the time is over. */
void queue_wait(struct queue *q, int timeout_ms);
/* The same for small changes alone. */
void queue_wait_small(struct queue *q, int timeout_ms);
bool queue_is_closed(struct queue *q);
size_t queue_depth(struct queue *q);
/* True where there is a small change, or one that goes alone. */
bool queue_has(struct queue *q, bool alone);
/* Up to QUEUE_BATCH_MAX small changes in order of arrival, or one that goes alone: of the site (by
 * its token) that has had none for longest, so that nobody's lists, however many, hold up another's
 * for longer than one of them takes. NULL where none waits. The caller owns the list. */
struct write_request *queue_pop(struct queue *q, enum queue_turn turn);
/* True where the next one that goes alone is a dry run. */
bool queue_next_is_dry(struct queue *q);
/* The first that writes only what is the node's own; NULL where none waits. */
struct write_request *queue_pop_own(struct queue *q);
/* The site group whose turn it is to go alone; NO_SITE_GROUP: none waits. */
int queue_next_group(struct queue *q);
/* It has its turn elsewhere: here others come first. */
void queue_skip_group(struct queue *q, int site_group);
/* All whose deadline has passed. */
struct write_request *queue_pop_expired(struct queue *q, int64_t now_ms);
/* Restores what was taken last, before all that came since: it waits as if it had stayed. */
void queue_return(struct queue *q, bool alone, struct write_request *list);
/* Puts what goes alone, and is not done, behind all that wait. */
void queue_requeue(struct queue *q, struct write_request *request);
/* True where a write waits that came by another token than one of this site, with no more time than
 * until then. */
bool queue_presses(struct queue *q, int64_t site_id, int64_t until_ms);
/* Waits until a deadline has passed. False once queue_end_expiry was called. */
bool queue_wait_expired(struct queue *q);
void queue_end_expiry(struct queue *q);
