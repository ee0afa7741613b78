/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A thread that belongs to an object: it starts with a name, sleeps until it is woken or a time has
 * passed, and ends on request. Times are of CLOCK_MONOTONIC.
 *
 * `struct thread` is part of its object and begins as zeros; nothing needs to be freed. It must not
 * move while the thread runs. Only the owner starts and joins it, one call at a time. Any thread
 * may call the other functions, also before the start. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread {
    atomic_bool stops; /* what thread_stops returns, for code that polls a flag */
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
 * errno if the system cannot create a thread. May be called again after a join. */
bool thread_start(struct thread *t, const char *name, void (*work)(void *context), void *context);
/* True if it was started and not joined. Only for the owner. */
bool thread_runs(const struct thread *t);
/* Called by the thread: sleeps until it is woken or `ms` have passed; a wake since the last sleep,
 * or before the start, counts. False once the thread is to stop. */
bool thread_wait(struct thread *t, int64_t ms);
void thread_wake(struct thread *t);
/* Asks the thread to stop and wakes it from thread_wait; the owner ends any other wait. */
void thread_end(struct thread *t);
/* True once the thread was asked to stop. */
bool thread_stops(const struct thread *t);
/* Waits until the thread has ended; does nothing if none runs. */
void thread_join(struct thread *t);
/* thread_end and thread_join. */
void thread_stop(struct thread *t);

/* Requests short time slices for the calling thread and the threads that it starts from now on.
 * When woken, they run before threads that compute for long, such as those that read and insert a
 * bulk, as long as they do little work at a time. Their share of a busy processor does not change.
 * Needs Linux 6.12; on older kernels, with an unusual scheduling policy, or if it is forbidden,
 * nothing changes and it returns false. */
bool slice_shorten(void);
/* Undoes that for the calling thread and the threads that it starts from now on. */
void slice_restore(void);
