/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A clock that a test sets (LD_PRELOAD), for tests/fault alone: the system's, and the seconds that
 * the shared page $FAULT_CLOCK begins with, an int64. What counts time that nobody can set goes on
 * as it is. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAULT_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = fd >= 0 ? mmap(NULL, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    real_clock_gettime = (__typeof__(real_clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    if (page != MAP_FAILED)
        ahead = page;
    if (fd >= 0)
        close(fd);
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    if (real_clock_gettime == NULL) /* a library begins before this one */
        real_clock_gettime = (__typeof__(real_clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real_clock_gettime(which, out);

    if (result == 0 && ahead != NULL && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
        out->tv_sec += *ahead;
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
