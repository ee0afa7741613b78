/* A small pool of threads for what must not run on an HTTP thread: cold builds, API reads, parsing
 * of bodies. Jobs run in the order given. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct workers;

/* `max_queued` bounds the jobs that wait. NULL when out of memory or threads. */
struct workers *workers_new(unsigned threads, uint32_t max_queued);
/* False when the queue is full or out of memory: the job will not run. */
bool workers_run(struct workers *w, void (*job)(void *context), void *context);
/* Jobs that wait for a thread. */
uint32_t workers_queued(struct workers *w);
/* Runs what is queued, then ends the threads. Takes NULL. */
void workers_free(struct workers *w);
