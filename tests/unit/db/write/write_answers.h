/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Answers by callback, counted. */
#pragma once

#include <pthread.h>
#include <time.h>

#include "tests/unit/db/write/write_stream.h"

struct answers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    size_t count, ok, refused, busy, unavailable, cancelled;
};

static inline void count_answer(void *context, struct change_result *result)
{
    struct answers *a = context;
    pthread_mutex_lock(&a->lock);
    a->count++;
    a->ok += result->status == CATALOGUE_OK;
    a->refused += result->status == CATALOGUE_REFUSED;
    a->busy += result->status == CATALOGUE_BUSY;
    a->unavailable += result->status == CATALOGUE_UNAVAILABLE;
    a->cancelled += result->status == CATALOGUE_CANCELLED;
    pthread_cond_signal(&a->more);
    pthread_mutex_unlock(&a->lock);
}

static inline void answers_init(struct answers *a)
{
    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->more, NULL);
}

static inline void answers_wait(struct answers *a, size_t count)
{
    pthread_mutex_lock(&a->lock);
    while (a->count < count)
        pthread_cond_wait(&a->more, &a->lock);
    pthread_mutex_unlock(&a->lock);
}

static inline void answers_done(struct answers *a)
{
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->more);
}
