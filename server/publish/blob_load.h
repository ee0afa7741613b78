/* From a file to a blob: read whole, hashed, compressed once. Internal to publish; on workers'
 * threads only, since it waits for the disk. No state. */
#ifndef SITEMAPD_PUBLISH_BLOB_LOAD_H
#define SITEMAPD_PUBLISH_BLOB_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "server/publish/blob.h"

/* Which file it is, and which state of it: what is the same here has the same bytes, unless it was
 * changed within the file system's resolution of time (blob_file_settled). The change time tells
 * what rsync -t and touch -d hide from the modification time. */
struct blob_file {
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
};

enum blob_load_status {
    BLOB_LOADED,
    BLOB_LOAD_GONE,     /* no regular file, or too large: there is nothing to serve */
    BLOB_LOAD_CHANGING, /* it is being written right now: try again */
    BLOB_LOAD_FAILED,   /* the disk */
    BLOB_LOAD_NO_MEMORY,
};

/* What `errno` of an attempt to open a file means. */
enum blob_load_status blob_load_error(int error);

enum blob_load_status blob_file_stat(int fd, struct blob_file *out);
bool blob_file_same(const struct blob_file *a, const struct blob_file *b);
/* True where the file was last changed so long before `now_ns`, when it was read, that another
 * change since would show. */
bool blob_file_settled(const struct blob_file *file, int64_t now_ns);

/* Reads `file->size` bytes of `fd` into a new blob with its tag. CHANGING where the file is another
 * one afterwards. The caller owns the blob. */
enum blob_load_status blob_read(int fd, const struct blob_file *file, struct blob **out);
/* Sets the content type by `path` and, for what is not compressed as it is, makes the gzip form if
 * it is worth it. False: out of memory. */
bool blob_finish(struct blob *b, const char *path, int level);

#endif
