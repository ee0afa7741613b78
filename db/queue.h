/* The writes that wait for the writer: bounded, each with a deadline, after which it is taken out
 * and can no more be applied. Two lines: small changes, which share transactions, and those that
 * need one alone. Internal to db/. Thread safe unless it says otherwise. */
#ifndef SITEMAPD_DB_QUEUE_H
#define SITEMAPD_DB_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"

/* Waiting writes where catalogue_options.max_queued is 0. */
#define QUEUE_MAX_DEFAULT 10000u

struct request {
    struct change change; /* a copy; what it points to is the caller's */
    change_done *done;
    void *done_context;
    struct change_result result;
    int64_t deadline_ms; /* queue_now_ms */
    struct request *next;
};

struct request_line {
    struct request *first;
    struct request **last;
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    struct request_line small, alone; /* the lock guards these and what follows */
    size_t depth, max;
    bool closed;
    bool poked;
};

enum queue_answer { QUEUE_TAKEN, QUEUE_FULL, QUEUE_CLOSED };

/* The monotonic clock. */
int64_t queue_now_ms(void);

bool queue_init(struct queue *q, size_t max);
void queue_done(struct queue *q);

/* Takes ownership where it answers QUEUE_TAKEN. */
enum queue_answer queue_push(struct queue *q, struct request *request);
/* No more pushes; what waits may still be taken. */
void queue_close(struct queue *q);
/* Wakes queue_wait though nothing arrived. */
void queue_poke(struct queue *q);

/* Waits until something is queued, it was poked or closed, or the time is over. */
void queue_wait(struct queue *q, int timeout_ms);
bool queue_is_closed(struct queue *q);
size_t queue_depth(struct queue *q);
/* True where there is a small change, or one that goes alone. */
bool queue_has(struct queue *q, bool alone);

/* Up to `max` small changes, or one that goes alone, in order of arrival; NULL where none waits.
 * The caller owns the list. */
struct request *queue_take(struct queue *q, bool alone, size_t max);
/* All whose deadline has passed. */
struct request *queue_take_expired(struct queue *q, int64_t now_ms);

#endif
