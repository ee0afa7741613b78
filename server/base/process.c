/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses /proc/self. */
#include "server/base/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/clock.h"

/* Reads a short file with one call; false if that fails. */
static bool read_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len;

    if (fd < 0)
        return false;
    len = read(fd, out, size - 1);
    close(fd);
    if (len <= 0)
        return false;
    out[len] = '\0';
    return true;
}

/* Parses the fields of proc(5) after the name in parentheses; the name may contain anything. */
static bool read_stat(struct process_usage *out)
{
    unsigned long long user, system, started, threads, virtual_bytes;
    long long pages;
    char text[1024];

    if (!read_text("/proc/self/stat", text, sizeof text))
        return false;
    const char *behind = strrchr(text, ')');
    if (behind == NULL ||
        sscanf(behind + 1,
               " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %llu %*d "
               "%llu %llu %lld",
               &user, &system, &threads, &started, &virtual_bytes, &pages) != 6)
        return false;
    uint64_t tick_ms = 1000u / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t up_ms = (uint64_t)(clock_read_ns(CLOCK_BOOTTIME) / CLOCK_MS_NS);
    out->cpu_ms = (user + system) * tick_ms;
    out->started_ms = (uint64_t)clock_unix_ms() - up_ms + started * tick_ms;
    out->threads = threads;
    out->virtual_bytes = virtual_bytes;
    out->resident_bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}

static uint64_t count_fds(void)
{
    struct stat folder;
    uint64_t count = 0;
    DIR *d;

    /* Since Linux 6.2 the size of the folder is the number of descriptors. */
    if (stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0)
        return (uint64_t)folder.st_size;
    d = opendir("/proc/self/fd");
    if (d == NULL)
        return 0;
    for (const struct dirent *each = readdir(d); each != NULL; each = readdir(d))
        count += each->d_name[0] != '.';
    closedir(d);
    return count - 1; /* without the descriptor of the folder itself */
}

bool process_usage_read(struct process_usage *out)
{
    struct rlimit limit;

    memset(out, 0, sizeof *out);
    if (!read_stat(out))
        return false;
    out->open_fds = count_fds();
    out->max_fds = UINT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        out->max_fds = limit.rlim_cur;
    return true;
}

const struct passwd *process_find_user(const char *user)
{
    bool number = user[strspn(user, "0123456789")] == '\0';

    errno = 0;
    return number ? getpwuid((uid_t)strtoul(user, NULL, 10)) : getpwnam(user);
}
