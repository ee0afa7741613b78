/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Random delays around calls (LD_PRELOAD), for code and tests that rely on what usually happens
 * first: after a lock is given back, around what is sent, received, written and accepted, and
 * before other threads are woken. $FAULT_DELAYS is the seed. */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ONE_IN  300u   /* calls are late */
#define MOST_US 20000u /* by that at most … */
#define LONG_IN 40u    /* … or, one in so many of them, ten times that */
#define FREE_US 50000  /* a thread may be late by this and half of its life */

static atomic_uint thread_count;

struct delays {
    bool inside;
    uint64_t random;
    int64_t began_us, slept_us;
};
static _Thread_local struct delays own;

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static void seed(void)
{
    const char *text = getenv("FAULT_DELAYS");
    uint64_t number = text != NULL ? strtoull(text, NULL, 10) : 0;

    own.random = (number + 1) * UINT64_C(0x9E3779B97F4A7C15) +
                 atomic_fetch_add(&thread_count, 1) * UINT64_C(0xD1B54A32D192ED03);
    own.random |= 1;
    own.began_us = now_us();
}

static uint64_t next_random(void)
{
    if (own.random == 0)
        seed();
    own.random ^= own.random << 13;
    own.random ^= own.random >> 7;
    own.random ^= own.random << 17;
    return own.random;
}

static void be_late(void)
{
    if (own.inside)
        return;
    own.inside = true;
    uint64_t random = next_random();
    if (random % ONE_IN == 0 && own.slept_us * 2 < now_us() - own.began_us + FREE_US) {
        int64_t us = (int64_t)((random >> 20) % MOST_US);
        if ((random >> 50) % LONG_IN == 0)
            us *= 10;
        own.slept_us += us;
        nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
    }
    own.inside = false;
}

/* The function of that name, with delays before and behind the one that this is in front of. */
#define LATE(type, name, parameters, arguments)                                                    \
    type name parameters                                                                           \
    {                                                                                              \
        static __typeof__(name) *_Atomic real;                                                     \
        if (real == NULL)                                                                          \
            real = dlsym(RTLD_NEXT, #name);                                                        \
        be_late();                                                                                 \
        type result = real arguments;                                                              \
        be_late();                                                                                 \
        return result;                                                                             \
    }

LATE(ssize_t, send, (int fd, const void *bytes, size_t len, int flags), (fd, bytes, len, flags))
LATE(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
LATE(ssize_t, sendfile, (int to, int from, off_t *at, size_t len), (to, from, at, len))
LATE(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t len), (to, from, at, len))
LATE(ssize_t, recv, (int fd, void *bytes, size_t len, int flags), (fd, bytes, len, flags))
LATE(ssize_t, write, (int fd, const void *bytes, size_t len), (fd, bytes, len))
LATE(ssize_t, pwrite64, (int fd, const void *bytes, size_t len, off64_t at), (fd, bytes, len, at))
LATE(int, fsync, (int fd), (fd))
LATE(int, fdatasync, (int fd), (fd))
LATE(int, rename, (const char *from, const char *to), (from, to))
LATE(int, epoll_wait, (int fd, struct epoll_event *events, int most, int ms),
     (fd, events, most, ms))
LATE(int, accept4, (int fd, struct sockaddr *peer, socklen_t *size, int flags),
     (fd, peer, size, flags))
LATE(int, sem_post, (sem_t * semaphore), (semaphore))
LATE(int, pthread_mutex_unlock, (pthread_mutex_t * mutex), (mutex))
