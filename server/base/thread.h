/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A thread of an object: it starts with a name, sleeps until it is woken or a time is over, and
 * ends when it is asked to. Times are of CLOCK_MONOTONIC.
 *
 * `struct thread` is part of its object and begins as zeros; nothing needs to be freed. It must not
 * move while the thread runs. Start and join are the owner's, one at a time; the rest may be called
 * by any thread, also before the start. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread {
    atomic_bool stops; /* as thread_stops; for code that polls a flag */
    /* Internal. */
    bool runs, woken;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    pthread_t id;
    const char *name;
    void (*work)(void *context);
    void *context;
};

/* Runs `work` in a thread of this name (static, at most 15 bytes; `ps -L` shows it). False with
 * errno where the system has no thread to give. May be called again after a join. */
bool thread_start(struct thread *t, const char *name, void (*work)(void *context), void *context);
/* True where it was started and not joined. The owner's. */
bool thread_runs(const struct thread *t);
/* For the thread: sleeps until it is woken or so much time is over; a wake that came since the last
 * sleep counts. False once it is to stop. */
bool thread_wait(struct thread *t, int64_t ms);
void thread_wake(struct thread *t);
/* Asks the thread to stop and wakes it. What else it waits for, the owner wakes. */
void thread_end(struct thread *t);
/* True once it was asked to. */
bool thread_stops(const struct thread *t);
/* Waits for the end of a thread that ends by itself. Nothing where none runs. */
void thread_join(struct thread *t);
/* thread_end and thread_join. */
void thread_stop(struct thread *t);

/* The calling thread, and those that it starts from now on, ask for short slices: woken, they run
 * before threads of this process or another that compute for long (a bulk's reading and inserting),
 * for as long as they keep to little work at a time. Their share of a busy processor stays what it
 * is. From Linux 6.12 on; before that, with a policy other than the usual one, or where it is
 * forbidden, nothing changes and false is returned. Each thread for itself. */
bool slice_shorten(void);
/* Takes it back for the calling thread and those that it starts from now on. */
void slice_restore(void);
