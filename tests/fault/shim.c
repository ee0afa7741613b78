/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The calls that the shim replaces. */
#include "tests/fault/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Descriptors above are not seen; the catalogue's are opened early. */
#define MAX_FILES 1024

/* What an open file is, by descriptor. Written before the number is known to anyone but its
 * opener, so plain reads will do. */
static struct file {
    bool open, folder;
    ino_t inode;
    char path[512];
} files[MAX_FILES];

#define REAL(name) ((__typeof__(&name))real_call(#name))

static void *real_call(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static struct file *file_of(int fd)
{
    return fd >= 0 && fd < MAX_FILES && files[fd].open ? &files[fd] : NULL;
}

static bool fails(enum fault_op op, const char *path)
{
    struct fault_rule *rule = shim_rule(op, path);

    if (rule == NULL || rule->error == FAULT_SHORT)
        return false;
    if (rule->error == FAULT_HANG) {
        while (__atomic_load_n(&rule->op, __ATOMIC_ACQUIRE) != FAULT_NONE)
            usleep(10000);
        return false;
    }
    errno = rule->error;
    return true;
}

/* ---- open and close --------------------------------------------------------------------- */

static void remember(int fd, const char *path, bool made)
{
    struct stat st;

    if (fd < 0 || fd >= MAX_FILES || fstat(fd, &st) != 0)
        return;
    struct file *file = &files[fd];
    file->folder = S_ISDIR(st.st_mode);
    file->inode = st.st_ino;
    snprintf(file->path, sizeof file->path, "%.511s", path);
    file->open = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
    if (made && shim_recording())
        shim_record(SHIM_MAKE, st.st_ino, 0, path, strlen(path));
}

static int open_seen(int folder, const char *path, int flags, mode_t mode)
{
    char absolute[PATH_MAX];
    struct stat st;

    if ((flags & O_TMPFILE) == O_TMPFILE || (folder != AT_FDCWD && path[0] != '/') ||
        !shim_watches(path, absolute, sizeof absolute))
        return REAL(openat)(folder, path, flags, mode);
    if (fails(FAULT_OPEN, absolute))
        return -1;
    shim_lock();
    bool made = (flags & O_CREAT) != 0 && stat(absolute, &st) != 0;
    int fd = REAL(openat)(folder, path, flags, mode);
    if (fd >= 0)
        remember(fd, absolute, made);
    if (fd >= 0 && !made && (flags & O_TRUNC) != 0 && shim_recording())
        shim_record(SHIM_CUT, files[fd % MAX_FILES].inode, 0, NULL, 0);
    shim_unlock();
    return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t)
                                                                      : 0;
}

#define OPEN_LIKE(name)                                                                            \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_of(flags, arguments);                                                   \
        va_end(arguments);                                                                         \
        return open_seen(AT_FDCWD, path, flags, mode);                                             \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)

int close(int fd)
{
    struct file *file = file_of(fd);

    if (file != NULL)
        file->open = false;
    return REAL(close)(fd);
}

/* ---- read and write --------------------------------------------------------------------- */

static ssize_t read_seen(int fd, void *data, size_t len, off_t offset)
{
    struct file *file = file_of(fd);

    if (file != NULL && fails(FAULT_READ, file->path))
        return -1;
    return REAL(pread)(fd, data, len, offset);
}

ssize_t pread(int fd, void *data, size_t len, off_t offset)
{
    return read_seen(fd, data, len, offset);
}

ssize_t pread64(int fd, void *data, size_t len, off_t offset)
{
    return read_seen(fd, data, len, offset);
}

static ssize_t write_seen(int fd, const void *data, size_t len, off_t offset)
{
    struct file *file = file_of(fd);
    struct fault_rule *rule = file != NULL ? shim_rule(FAULT_WRITE, file->path) : NULL;

    if (rule != NULL && rule->error != FAULT_SHORT) {
        errno = rule->error;
        return -1;
    }
    if (rule != NULL && len > 1)
        len /= 2;
    if (file == NULL || !shim_recording())
        return REAL(pwrite)(fd, data, len, offset);
    shim_lock();
    shim_record(SHIM_WRITE, file->inode, offset, data, len);
    ssize_t wrote = REAL(pwrite)(fd, data, len, offset);
    shim_unlock();
    return wrote;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    return write_seen(fd, data, len, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t len, off_t offset)
{
    return write_seen(fd, data, len, offset);
}

ssize_t write(int fd, const void *data, size_t len)
{
    struct file *file = file_of(fd);

    if (file == NULL)
        return REAL(write)(fd, data, len);
    if (fails(FAULT_WRITE, file->path))
        return -1;
    shim_lock();
    off_t offset = lseek(fd, 0, SEEK_CUR);
    if (shim_recording() && offset >= 0)
        shim_record(SHIM_WRITE, file->inode, offset, data, len);
    ssize_t wrote = REAL(write)(fd, data, len);
    shim_unlock();
    return wrote;
}

static int cut_seen(int fd, off_t size)
{
    struct file *file = file_of(fd);

    if (file == NULL)
        return REAL(ftruncate)(fd, size);
    if (fails(FAULT_CUT, file->path))
        return -1;
    shim_lock();
    if (shim_recording())
        shim_record(SHIM_CUT, file->inode, size, NULL, 0);
    int rc = REAL(ftruncate)(fd, size);
    shim_unlock();
    return rc;
}

int ftruncate(int fd, off_t size)
{
    return cut_seen(fd, size);
}

int ftruncate64(int fd, off_t size)
{
    return cut_seen(fd, size);
}

/* ---- sync ------------------------------------------------------------------------------- */

/* What the sync covers was written before it began: nothing is written while it is recorded. */
static int sync_seen(int fd, int (*real)(int))
{
    struct file *file = file_of(fd);

    if (file == NULL)
        return real(fd);
    if (fails(FAULT_SYNC, file->path))
        return -1;
    if (!shim_recording())
        return real(fd);
    shim_pause();
    shim_lock();
    shim_record(file->folder ? SHIM_SYNC_FOLDER : SHIM_SYNC, file->inode, 0, NULL, 0);
    shim_unlock();
    return 0;
}

int fsync(int fd)
{
    return sync_seen(fd, REAL(fsync));
}

int fdatasync(int fd)
{
    return sync_seen(fd, REAL(fdatasync));
}

/* ---- names ------------------------------------------------------------------------------ */

int unlink(const char *path)
{
    char absolute[PATH_MAX];

    if (!shim_watches(path, absolute, sizeof absolute))
        return REAL(unlink)(path);
    if (fails(FAULT_UNLINK, absolute))
        return -1;
    shim_lock();
    int rc = REAL(unlink)(path);
    if (rc == 0 && shim_recording())
        shim_record(SHIM_UNLINK, 0, 0, absolute, strlen(absolute));
    shim_unlock();
    return rc;
}

int rename(const char *from, const char *to)
{
    char names[2 * PATH_MAX], target[PATH_MAX];

    if (!shim_watches(from, names, PATH_MAX) || !shim_watches(to, target, sizeof target))
        return REAL(rename)(from, to);
    shim_lock();
    int rc = REAL(rename)(from, to);
    if (rc == 0 && shim_recording()) {
        size_t first = strlen(names) + 1, second = strlen(target);
        memcpy(names + first, target, second);
        shim_record(SHIM_RENAME, 0, 0, names, first + second);
    }
    shim_unlock();
    return rc;
}

int statfs(const char *path, struct statfs *out)
{
    char absolute[PATH_MAX];
    int rc = REAL(statfs)(path, out);
    struct fault_rule *rule = rc == 0 && shim_watches(path, absolute, sizeof absolute)
                                  ? shim_rule(FAULT_STATFS, absolute)
                                  : NULL;

    if (rule != NULL)
        out->f_type = (__typeof__(out->f_type))(uint32_t)rule->error;
    return rc;
}
