/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A pool of threads with a queue for each site that has waiting jobs. */
#include "server/pages/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "server/base/site_table.h"
#include "server/base/thread.h"

struct job {
    struct job *next;
    void (*run)(void *context);
    void *context;
};

/* The waiting jobs of one site. It is in the ring of turns, and freed once it is empty. */
struct line {
    struct site_row row;
    struct line *next;
    struct job *first, **last;
    uint32_t queued;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct line *turn, **turn_last; /* whose turn is next */
    uint32_t queued, max_queued;
    bool ending;
    struct site_table lines;
    unsigned thread_count;
    struct thread threads[];
};

static void join_queue(struct workers *w, struct line *line)
{
    line->next = NULL;
    *w->turn_last = line;
    w->turn_last = &line->next;
}

static void enqueue(struct workers *w, struct line *line, struct job *job)
{
    if (line->first == NULL) {
        line->last = &line->first;
        join_queue(w, line);
    }
    *line->last = job;
    line->last = &job->next;
    line->queued++;
    w->queued++;
}

/* NULL: none waits. */
static struct job *dequeue(struct workers *w)
{
    struct line *line = w->turn;
    if (line == NULL)
        return NULL;
    struct job *job = line->first;
    w->turn = line->next;
    if (w->turn == NULL)
        w->turn_last = &w->turn;
    line->first = job->next;
    line->queued--;
    w->queued--;
    if (line->first != NULL)
        join_queue(w, line);
    else
        site_table_remove(&w->lines, line);
    return job;
}

static void work(void *context)
{
    struct workers *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->turn == NULL && !w->ending)
            pthread_cond_wait(&w->more, &w->lock);
        struct job *job = dequeue(w);
        if (job == NULL)
            break;
        pthread_mutex_unlock(&w->lock);
        job->run(job->context);
        free(job);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

struct workers *workers_new(unsigned threads, uint32_t max_queued)
{
    struct workers *w = calloc(1, sizeof *w + threads * sizeof w->threads[0]);
    if (w == NULL)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    w->turn_last = &w->turn;
    w->max_queued = max_queued;
    for (; w->thread_count < threads; w->thread_count++)
        if (!thread_start(&w->threads[w->thread_count], "worker", work, w)) {
            workers_free(w);
            return NULL;
        }
    return w;
}

bool workers_run(struct workers *w, int64_t site_id, void (*job)(void *context), void *context)
{
    struct job *j = malloc(sizeof *j);
    if (j == NULL)
        return false;
    *j = (struct job){NULL, job, context};
    pthread_mutex_lock(&w->lock);
    struct line *line = site_table_find(&w->lines, site_id);
    uint32_t own = site_id != 0 && line != NULL ? line->queued : 0;
    bool taken = site_has_room(own, w->queued, 1, w->max_queued) && !w->ending;
    if (taken && line == NULL)
        line = site_table_add(&w->lines, site_id, sizeof *line);
    taken = taken && line != NULL;
    if (taken) {
        enqueue(w, line, j);
        pthread_cond_signal(&w->more);
    }
    pthread_mutex_unlock(&w->lock);
    if (!taken)
        free(j);
    return taken;
}

uint32_t workers_queued(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    uint32_t queued = w->queued;
    pthread_mutex_unlock(&w->lock);
    return queued;
}

void workers_free(struct workers *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    pthread_cond_broadcast(&w->more);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->thread_count; i++)
        thread_join(&w->threads[i]);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
