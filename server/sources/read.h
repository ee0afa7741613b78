/* Reads and verifies one file below a folder, and sees to it that it held still meanwhile. */
#ifndef SITEMAPD_SOURCES_READ_H
#define SITEMAPD_SOURCES_READ_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

#include "server/ingest/sitemap_file.h"

enum read_status {
    READ_DONE,       /* `*out` has the verdict, `*st` what was read */
    READ_CHANGING,   /* it was written to while it was read; `*st` as it is by now */
    READ_GONE,       /* there is no such file any more */
    READ_UNREADABLE, /* errno */
    READ_STOPPED,
    READ_SHORTAGE, /* no memory or descriptors: says nothing of the file */
};

/* `now`: Unix seconds. `stop` may be NULL. */
enum read_status read_file(int top, const char *path, int64_t now, const atomic_bool *stop,
                           struct stat *st, struct sitemap_file *out);

static inline int64_t read_mtime_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

#endif
