/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens files by openat2(2) with RESOLVE_BENEATH, or name by name without following symlinks. */
#include "server/sources/folder/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Opening a FIFO would wait for its writer; a terminal could become our controlling terminal. */
#define ALWAYS_FLAGS (O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/* RESOLVE_BENEATH gives EAGAIN where a rename happened while ".." was resolved (openat2(2)). */
#define MAX_TRIES 32

static atomic_bool openat2_missing;

int beneath_open_top(const char *directory)
{
    return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
}

/* The length of the first name of a path; 0: the name is not allowed. */
static size_t name_len(const char *path)
{
    size_t len = strcspn(path, "/");
    if (len > NAME_MAX || (len <= 2 && memcmp(path, "..", len) == 0))
        return 0;
    return len;
}

static bool is_path(const char *path)
{
    for (;;) {
        size_t len = name_len(path);
        if (len == 0)
            return false;
        if (path[len] == '\0')
            return true;
        path += len + 1;
    }
}

static int open_in_kernel(int top, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned)((flags & O_PATH) ? flags | O_CLOEXEC : flags | ALWAYS_FLAGS),
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    for (int i = 0; i < MAX_TRIES; i++) {
        long fd = syscall(SYS_openat2, top, path, &how, sizeof how);
        if (fd >= 0)
            return (int)fd;
        if (errno != EAGAIN && errno != EINTR)
            break;
    }
    return -1;
}

/* An old kernel returns ENOSYS, a sandbox EPERM. To tell that from the EPERM of a file, this opens
 * the folder itself. */
static bool kernel_lacks_it(int top)
{
    if (errno == ENOSYS)
        return true;
    if (errno != EPERM)
        return false;
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    long fd = syscall(SYS_openat2, top, ".", &how, sizeof how);
    if (fd >= 0)
        close((int)fd);
    bool lacks = fd < 0 && errno == EPERM;
    errno = EPERM;
    return lacks;
}

/* Closes and keeps errno. */
static void close_quietly(int fd)
{
    int kept = errno;
    close(fd);
    errno = kept;
}

/* With O_PATH, O_NOFOLLOW opens the symlink itself. */
static int refuse_symlink(int fd)
{
    struct stat st;
    if (fd < 0 || (fstat(fd, &st) == 0 && !S_ISLNK(st.st_mode)))
        return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

/* With O_DIRECTORY a symlink is only not a folder. */
static void name_symlink(int folder, const char *name)
{
    struct stat st;
    if (errno != ENOTDIR)
        return;
    bool is_link = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
    errno = is_link ? ELOOP : ENOTDIR;
}

int beneath_open_by_steps(int top, const char *path, int flags)
{
    if (!is_path(path)) {
        errno = EINVAL;
        return -1;
    }
    int folder = top;
    for (;;) {
        char name[NAME_MAX + 1];
        size_t len = name_len(path);
        memcpy(name, path, len);
        name[len] = '\0';
        bool last = path[len] == '\0';
        int how = last ? flags : O_PATH | O_DIRECTORY;
        how |= (how & O_PATH) ? O_CLOEXEC : ALWAYS_FLAGS;
        int fd = refuse_symlink(openat(folder, name, how | O_NOFOLLOW));
        if (fd < 0)
            name_symlink(folder, name);
        if (folder != top)
            close_quietly(folder);
        if (fd < 0 || last)
            return fd;
        folder = fd;
        path += len + 1;
    }
}

int beneath_open(int top, const char *path, int flags)
{
    if (!is_path(path)) {
        errno = EINVAL;
        return -1;
    }
    if (!atomic_load_explicit(&openat2_missing, memory_order_relaxed)) {
        int fd = open_in_kernel(top, path, flags);
        if (fd >= 0 || !kernel_lacks_it(top))
            return fd;
        atomic_store_explicit(&openat2_missing, true, memory_order_relaxed);
    }
    return beneath_open_by_steps(top, path, flags);
}

int beneath_open_file(int top, const char *path, struct stat *out)
{
    int fd = beneath_open(top, path, O_RDONLY);
    if (fd < 0)
        return -1;
    if (fstat(fd, out) != 0) {
        close_quietly(fd);
        return -1;
    }
    if (!S_ISREG(out->st_mode)) {
        close(fd);
        errno = ENXIO;
        return -1;
    }
    return fd;
}
