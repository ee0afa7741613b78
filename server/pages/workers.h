/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A small pool of threads for what must not run on an HTTP thread: cold builds, API reads, parsing
 * of bodies. Sites take turns, and the jobs of one site run in order, so that a client with many
 * jobs delays only itself. Thread safe. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct workers;

/* `max_queued` bounds the jobs that wait; those of a site have a share (site_has_room).
 * NULL when out of memory or threads. */
struct workers *workers_new(unsigned threads, uint32_t max_queued);
/* False when the queue is full or out of memory: the job will not run. `site_id`: the site of the
 * token; 0: of no single site, and the job may take any place. */
bool workers_run(struct workers *w, int64_t site_id, void (*job)(void *context), void *context);
/* Number of jobs that wait for a thread. */
uint32_t workers_queued(struct workers *w);
/* Runs the queued jobs, then ends the threads. Accepts NULL. */
void workers_free(struct workers *w);
