/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The lock file of a server: fcntl(2) locks, the process id of the owner, and the state that was
 * served last. */
#include "db/file/server_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/file/connection.h"

static bool is_held(const struct server_lock *lock, const char *name)
{
    struct stat held, there;

    return lock->fd > 0 && fstat(lock->fd, &held) == 0 && stat(name, &there) == 0 &&
           held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

/* BUSY, with `*owner`, or another failure with errno. */
static enum catalogue_status lock_file(int fd, struct flock *owner)
{
    for (;;) {
        struct flock mine = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

        *owner = mine;
        if (fcntl(fd, F_SETLK, &mine) == 0)
            return CATALOGUE_OK;
        if ((errno != EAGAIN && errno != EACCES) || fcntl(fd, F_GETLK, owner) != 0)
            return CATALOGUE_UNAVAILABLE;
        if (owner->l_type != F_UNLCK) /* else the owner has just ended */
            return CATALOGUE_BUSY;
    }
}

static void explain_lock(enum catalogue_status status, const struct flock *owner, const char *path,
                         char *why, size_t why_size)
{
    if (status == CATALOGUE_UNAVAILABLE)
        snprintf(why, why_size, "%s.lock: cannot be locked: %s", path, strerror(errno));
    else if (owner->l_pid > 0)
        snprintf(why, why_size,
                 "%s: locked: process %ld already serves it; a catalogue has one server: stop that "
                 "one first",
                 path, (long)owner->l_pid);
    else /* the kernel reports 0 for a process in another pid namespace */
        snprintf(why, why_size,
                 "%s: locked: another process, in another container, already serves it; a "
                 "catalogue has one server: stop that one first",
                 path);
}

enum catalogue_status server_lock_hold(struct server_lock *lock, const char *path, char *why,
                                       size_t why_size)
{
    enum catalogue_status status = CATALOGUE_OK;
    char *real = realpath(path, NULL), *name = NULL;
    struct flock owner;
    int fd = -1;

    if (real == NULL || asprintf(&name, "%s.lock", real) < 0) {
        status = errno == ENOMEM ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        free(real);
        return status;
    }
    if (is_held(lock, name))
        goto done;
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0) {
        snprintf(
            why, why_size,
            "%s.lock: cannot be opened: %s; this user needs write permission for it and its folder",
            path, strerror(errno));
        status = errno == ENOSPC ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE;
        goto done;
    }
    connection_hand_over(name, fd);
    status = lock_file(fd, &owner);
    if (status != CATALOGUE_OK) {
        explain_lock(status, &owner, path, why, why_size);
        close(fd);
        goto done;
    }
    server_lock_done(lock);
    lock->fd = fd;
    lock->noted = false;
done:
    free(name);
    free(real);
    return status;
}

/* All lines have the same length: a new one overwrites the old one. */
#define LINE_FORMAT "inode %20ju epoch %32.32s revision %20ju stamp %16.16s\n"
#define LINE_BYTES  119

static void read_served(int fd, struct served *out)
{
    char line[LINE_BYTES + 1] = "";

    out->stamp[0] = '\0'; /* earlier versions wrote none */
    if (pread(fd, line, LINE_BYTES, 0) <= 0 ||
        sscanf(line, "inode %ju epoch %32[0-9a-f] revision %ju stamp %16[0-9a-f]", &out->inode,
               out->epoch, &out->revision, out->stamp) < 3)
        out->epoch[0] = '\0';
}

static bool is_of_line(const struct served *last, const struct served *now, const char *lineage)
{
    return last->stamp[0] == '\0' ? last->revision <= now->revision
                                  : strstr(lineage, last->stamp) != NULL;
}

static struct served last_served(const struct server_lock *lock)
{
    struct served last = lock->served;

    if (last.epoch[0] == '\0')
        read_served(lock->fd, &last);
    return last;
}

bool server_lock_last_served(const struct server_lock *lock, struct served *out)
{
    *out = last_served(lock);
    return out->epoch[0] != '\0';
}

bool server_lock_knows(const struct server_lock *lock, const struct served *now,
                       const char *lineage)
{
    struct served last = last_served(lock);

    return last.epoch[0] == '\0' ||
           (last.inode == now->inode && strcmp(last.epoch, now->epoch) == 0 &&
            is_of_line(&last, now, lineage));
}

void server_lock_record(struct server_lock *lock, const struct served *now)
{
    char line[LINE_BYTES + 1];
    int len;

    if (lock->noted && lock->served.inode == now->inode && lock->served.revision == now->revision &&
        strcmp(lock->served.epoch, now->epoch) == 0 && strcmp(lock->served.stamp, now->stamp) == 0)
        return; /* an idle server writes nothing */
    lock->served = *now;
    len =
        snprintf(line, sizeof line, LINE_FORMAT, now->inode, now->epoch, now->revision, now->stamp);
    /* If the write fails, the file has an earlier state, or none. */
    lock->noted = lock->fd > 0 && pwrite(lock->fd, line, (size_t)len, 0) == len;
}

/* Opens the lock file of the database at `path` for reading; -1: none. */
static int open_beside(const char *path)
{
    char *real = realpath(path, NULL), *name = NULL;
    int fd = -1;

    if (real != NULL && asprintf(&name, "%s.lock", real) >= 0) {
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        free(name);
    }
    free(real);
    return fd;
}

bool server_lock_peek(const char *path, struct served *out)
{
    int fd = open_beside(path);

    out->epoch[0] = '\0';
    if (fd >= 0) {
        read_served(fd, out);
        close(fd);
    }
    return out->epoch[0] != '\0';
}

bool server_lock_is_held(const char *path)
{
    struct flock owner = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int fd = open_beside(path);
    bool held = fd >= 0 && fcntl(fd, F_GETLK, &owner) == 0 && owner.l_type != F_UNLCK;

    if (fd >= 0)
        close(fd);
    return held;
}

void server_lock_done(struct server_lock *lock)
{
    if (lock->fd > 0)
        close(lock->fd);
    lock->fd = 0;
}
