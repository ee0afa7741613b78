/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads files that an operator named, within a limit. */
#include "server/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* True, with errno, if a file of this type is not accepted. */
static bool is_unwanted(mode_t mode, enum file_wanted wanted)
{
    bool pipe = S_ISFIFO(mode) || S_ISSOCK(mode);
    errno = wanted == FILE_PLAIN ? EINVAL : ESPIPE;
    return wanted == FILE_PLAIN ? !S_ISREG(mode) : wanted == FILE_NO_PIPE && pipe;
}

static char *read_open(int fd, size_t most, size_t *len)
{
    char *text = malloc(most + 1);
    ssize_t got = 1;

    for (*len = 0; text != NULL && *len < most && got != 0;) {
        got = read(fd, text + *len, most - *len);
        if (got > 0) {
            *len += (size_t)got;
        } else if (got < 0 && errno != EINTR) {
            int why = errno;
            free(text);
            text = NULL;
            errno = why;
        }
    }
    if (text != NULL)
        text[*len] = '\0';
    return text;
}

char *file_read(const char *path, enum file_wanted wanted, size_t most, size_t *len, mode_t *mode)
{
    struct stat found;
    char *text = NULL;
    int wait = wanted == FILE_ANY ? 0 : O_NONBLOCK;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | wait);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &found) == 0 && !is_unwanted(found.st_mode, wanted))
        text = read_open(fd, most, len);
    if (text != NULL && mode != NULL)
        *mode = found.st_mode;
    int why = errno;
    close(fd);
    errno = why;
    return text;
}

bool file_write(int fd, const void *bytes, size_t len)
{
    for (const char *at = bytes; len > 0;) {
        ssize_t put = write(fd, at, len);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        len -= (size_t)put;
    }
    return true;
}

int file_open_nameless(const char *folder)
{
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd >= 0)
        return fd;
    /* Not every file system has O_TMPFILE (overlay, NFS): EOPNOTSUPP, EISDIR, EINVAL. */
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s/.sitemapd-spool-XXXXXX", folder);
    sigset_t all, before;

    if (len < 0 || (size_t)len >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    sigfillset(&all); /* no signal may end the process while the file has a name */
    pthread_sigmask(SIG_BLOCK, &all, &before);
    fd = mkostemp(path, O_CLOEXEC); /* makes it 0600 */
    if (fd >= 0)
        unlink(path);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return fd;
}

#define RESERVE_PART  16u /* of the disk */
#define RESERVE_BYTES (256ull << 20)

uint64_t file_reserve_of(uint64_t disk_bytes)
{
    uint64_t part = disk_bytes / RESERVE_PART;

    return part < RESERVE_BYTES ? part : RESERVE_BYTES;
}

bool file_has_reserve(int fd)
{
    struct statvfs disk;

    return fstatvfs(fd, &disk) != 0 || (uint64_t)disk.f_bavail * disk.f_frsize >=
                                           file_reserve_of((uint64_t)disk.f_blocks * disk.f_frsize);
}

bool file_sync(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return synced;
}
