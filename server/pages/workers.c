#include "server/pages/workers.h"

#include <pthread.h>
#include <stdlib.h>

struct job {
    struct job *next;
    void (*run)(void *context);
    void *context;
};

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct job *first, **last;
    uint32_t queued, max_queued;
    bool ending;
    unsigned thread_count;
    pthread_t threads[];
};

static void *work(void *context)
{
    struct workers *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->first == NULL && !w->ending)
            pthread_cond_wait(&w->more, &w->lock);
        struct job *job = w->first;
        if (job == NULL)
            break;
        w->first = job->next;
        if (w->first == NULL)
            w->last = &w->first;
        w->queued--;
        pthread_mutex_unlock(&w->lock);
        job->run(job->context);
        free(job);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct workers *workers_new(unsigned threads, uint32_t max_queued)
{
    struct workers *w = calloc(1, sizeof *w + threads * sizeof w->threads[0]);
    if (w == NULL)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    w->last = &w->first;
    w->max_queued = max_queued;
    for (; w->thread_count < threads; w->thread_count++)
        if (pthread_create(&w->threads[w->thread_count], NULL, work, w) != 0) {
            workers_free(w);
            return NULL;
        }
    return w;
}

bool workers_run(struct workers *w, void (*job)(void *context), void *context)
{
    struct job *j = malloc(sizeof *j);
    if (j == NULL)
        return false;
    *j = (struct job){NULL, job, context};
    pthread_mutex_lock(&w->lock);
    bool taken = w->queued < w->max_queued && !w->ending;
    if (taken) {
        *w->last = j;
        w->last = &j->next;
        w->queued++;
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
        pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
