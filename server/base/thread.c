/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* In glibc and musl, PTHREAD_MUTEX_INITIALIZER and PTHREAD_COND_INITIALIZER are all zero, and
 * objects that are initialised so need no destruction. Each wait names its clock
 * (pthread_cond_clockwait), so the condition variable needs no attributes. */
#include "server/base/thread.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/base/clock.h"

static void *thread_begin(void *context)
{
    struct thread *t = context;

    pthread_setname_np(pthread_self(), t->name);
    t->work(t->context);
    return NULL;
}

bool thread_start(struct thread *t, const char *name, void (*work)(void *context), void *context)
{
    t->name = name;
    t->work = work;
    t->context = context;
    atomic_store(&t->stops, false);
    int error = pthread_create(&t->id, NULL, thread_begin, t);
    t->runs = error == 0;
    if (error != 0)
        errno = error;
    return t->runs;
}

bool thread_runs(const struct thread *t)
{
    return t->runs;
}

bool thread_wait(struct thread *t, int64_t ms)
{
    struct timespec until = clock_after_ms(ms);

    pthread_mutex_lock(&t->lock);
    while (!t->woken && !thread_stops(t) &&
           pthread_cond_clockwait(&t->wakes, &t->lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    t->woken = false;
    pthread_mutex_unlock(&t->lock);
    return !thread_stops(t);
}

void thread_wake(struct thread *t)
{
    pthread_mutex_lock(&t->lock);
    t->woken = true;
    pthread_cond_signal(&t->wakes);
    pthread_mutex_unlock(&t->lock);
}

void thread_end(struct thread *t)
{
    atomic_store(&t->stops, true);
    thread_wake(t);
}

bool thread_stops(const struct thread *t)
{
    return atomic_load(&t->stops);
}

void thread_join(struct thread *t)
{
    if (t->runs)
        pthread_join(t->id, NULL);
    t->runs = false;
}

void thread_stop(struct thread *t)
{
    thread_end(t);
    thread_join(t);
}

#define SLICE_NS 100000u /* the least that the kernel grants */

/* The first version of the kernel's struct sched_attr, which not every C library declares. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* 0: the kernel's default. */
static bool set_slice(uint64_t ns)
{
    struct attributes own = {.size = sizeof own};

    if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != SCHED_OTHER)
        return false;
    own.runtime = ns;
    return syscall(SYS_sched_setattr, 0, &own, 0) == 0;
}

bool slice_shorten(void)
{
    return set_slice(SLICE_NS);
}

void slice_restore(void)
{
    set_slice(0);
}
