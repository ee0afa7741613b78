/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Clocks of a test (LD_PRELOAD). The one that people set: the system's, and the seconds that the
 * shared page $FAULT_CLOCK begins with, an int64. What counts time that nobody can set goes
 * $FAULT_CLOCK_SPEED times as fast, and so all waits are as much shorter: those by which the
 * program and its libraries wait. From the signal that stops it on it has all the time that it has
 * without this. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS INT64_C(1000000000)

static const volatile int64_t *ahead;
/* What was the time in one and the other when the speed was set. */
struct pace {
    int64_t speed, began_ns, shown_ns;
};
static struct pace fast = {.speed = 1}, slow = {.speed = 1};
static struct pace *_Atomic pace = &fast;
static int (*_Atomic real_clock_gettime)(clockid_t, struct timespec *);

/* The function of that name which this one is in front of. */
#define REAL(name)                                                                                 \
    static __typeof__(name) *_Atomic real;                                                         \
    if (real == NULL)                                                                              \
    real = dlsym(RTLD_NEXT, #name)

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec * SECOND_NS + t->tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND_NS, .tv_nsec = ns % SECOND_NS};
}

static int64_t read_real(void)
{
    struct timespec now;

    real_clock_gettime(CLOCK_MONOTONIC, &now);
    return ns_of(&now);
}

static int64_t shown(int64_t ns)
{
    const struct pace *p = pace;

    return p->shown_ns + (ns - p->began_ns) * p->speed;
}

static void read_speed(void)
{
    const char *text = getenv("FAULT_CLOCK_SPEED");

    fast.began_ns = fast.shown_ns = read_real();
    if (text != NULL && atoi(text) > 0)
        fast.speed = atoi(text);
}

/* Of one thread. */
static void slow_down(void)
{
    if (pace == &slow)
        return;
    slow.began_ns = read_real();
    slow.shown_ns = shown(slow.began_ns);
    pace = &slow;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAULT_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd >= 0 ? mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (page != MAP_FAILED)
        ahead = page;
    if (fd >= 0)
        close(fd);
    read_speed();
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    if (real_clock_gettime == NULL) /* a library begins before this one */
        real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(which, out);

    if (result == 0 && ahead != NULL && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        out->tv_sec += *ahead;
    if (result == 0 && (which == CLOCK_MONOTONIC || which == CLOCK_MONOTONIC_COARSE ||
                        which == CLOCK_MONOTONIC_RAW || which == CLOCK_BOOTTIME))
        *out = time_of(shown(ns_of(out)));
    return result;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* ---- waits --------------------------------------------------------------------------------- */

/* Rounded up: what waits a little does not turn into a busy loop. */
static int ms_of(int ms)
{
    return ms <= 0 ? ms : (int)((ms + pace->speed - 1) / pace->speed);
}

static struct timespec part_of(const struct timespec *t)
{
    return time_of((ns_of(t) + pace->speed - 1) / pace->speed);
}

static struct timespec until(clockid_t clock, const struct timespec *t)
{
    const struct pace *p = pace;

    return clock == CLOCK_MONOTONIC ? time_of(p->began_ns + (ns_of(t) - p->shown_ns) / p->speed)
                                    : *t;
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
    REAL(poll);
    return real(fds, count, ms_of(ms));
}

int epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    REAL(epoll_wait);
    return real(fd, events, most, ms_of(ms));
}

int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict err,
           struct timeval *restrict limit)
{
    REAL(select);
    struct timeval part;

    if (limit == NULL)
        return real(count, in, out, err, NULL);
    int64_t us = (limit->tv_sec * 1000000 + limit->tv_usec + pace->speed - 1) / pace->speed;
    part = (struct timeval){.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    return real(count, in, out, err, &part);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    REAL(nanosleep);
    struct timespec part = part_of(wanted);

    return real(&part, left);
}

int usleep(useconds_t us)
{
    const struct timespec wanted = time_of(us * INT64_C(1000));

    return nanosleep(&wanted, NULL);
}

unsigned sleep(unsigned seconds)
{
    const struct timespec wanted = time_of(seconds * SECOND_NS);

    return nanosleep(&wanted, NULL) == 0 ? 0 : seconds;
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *lock, clockid_t clock,
                           const struct timespec *deadline)
{
    REAL(pthread_cond_clockwait);
    struct timespec there = until(clock, deadline);

    return real(cond, lock, clock, &there);
}

int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict deadline)
{
    REAL(sem_clockwait);
    struct timespec there = until(clock, deadline);

    return real(sem, clock, &there);
}

int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                 const struct timespec *restrict limit)
{
    REAL(sigtimedwait);
    struct timespec part;

    if (limit != NULL)
        part = part_of(limit);
    int number = real(set, info, limit != NULL ? &part : NULL);
    if (number == SIGTERM || number == SIGINT)
        slow_down();
    return number;
}
