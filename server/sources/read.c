#include "server/sources/read.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "server/sources/beneath.h"

#define READ_BYTES (64u << 10)

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           read_mtime_ns(a) == read_mtime_ns(b);
}

static enum read_status failure(void)
{
    return errno == ENOENT || errno == ENOTDIR ? READ_GONE
           : beneath_is_shortage(errno)        ? READ_SHORTAGE
                                               : READ_UNREADABLE;
}

static enum read_status feed(int fd, struct sitemap_verifier *v, const atomic_bool *stop)
{
    char bytes[READ_BYTES];
    for (;;) {
        if (stop && atomic_load_explicit(stop, memory_order_relaxed))
            return READ_STOPPED;
        ssize_t len = read(fd, bytes, sizeof bytes);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return READ_UNREADABLE;
        if (len == 0 || !sitemap_verifier_feed(v, bytes, (size_t)len))
            return READ_DONE;
    }
}

/* Whether the path still names the bytes that were read. */
static enum read_status check(int top, const char *path, int fd, const struct stat *before,
                              struct stat *st)
{
    struct stat open_now, named_now;
    if (fstat(fd, &open_now) != 0)
        return READ_UNREADABLE;
    int named = beneath_open(top, path, O_PATH);
    if (named < 0)
        return failure();
    bool told = fstat(named, &named_now) == 0;
    close(named);
    *st = told ? named_now : open_now;
    return told && same_file(before, &open_now) && same_file(before, &named_now) ? READ_DONE
                                                                                 : READ_CHANGING;
}

enum read_status read_file(int top, const char *path, int64_t now, const atomic_bool *stop,
                           struct stat *st, struct sitemap_file *out)
{
    struct stat before;
    int fd = beneath_open_file(top, path, &before);
    if (fd < 0)
        return failure();
    *st = before;
    struct sitemap_verifier *v = sitemap_verifier_new(now);
    enum read_status status = v ? feed(fd, v, stop) : READ_SHORTAGE;
    if (status == READ_DONE && !sitemap_verifier_finish(v, out))
        status = READ_SHORTAGE;
    sitemap_verifier_free(v);
    if (status == READ_DONE)
        status = check(top, path, fd, &before, st);
    int kept = errno;
    close(fd);
    errno = kept;
    return status;
}
