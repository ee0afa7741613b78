/* Whether a path lies on a network filesystem. WAL keeps its index in memory that all processes
 * share, which no network filesystem has (https://www.sqlite.org/wal.html, "Disadvantages"): two
 * hosts would corrupt the file without a word, and locks are not to be trusted on many of them.
 * Internal to db/. Thread safe. */
#ifndef SITEMAPD_DB_FILE_FILESYSTEM_H
#define SITEMAPD_DB_FILE_FILESYSTEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The filesystem's name where `path` (which exists) lies on one, else NULL. Static. */
const char *network_filesystem(const char *path);

/* The parts of it, for its tests. By statfs's f_type; by the type of a mount (fuse.sshfs). */
const char *network_name_of_type(unsigned long type);
const char *network_name_of_mount(const char *mount_type);
/* Writes the type of the mount of `device` to `out`, reading proc_pid_mountinfo(5). */
bool network_find_mount(FILE *mountinfo, dev_t device, char *out, size_t size);

/* Which file a path names. Of no use once nobody has that file open: its number may be given anew.
 * Internal to db/. */
struct file_identity {
    dev_t device;
    ino_t inode;
};
/* False where the path names no file. */
bool file_identity_read(const char *path, struct file_identity *out);
bool file_identity_equal(const struct file_identity *a, const struct file_identity *b);

/* A file without a name in `folder`, so that no crash leaves it behind: its descriptor, or -1 and
 * errno. Internal to db/. */
int nameless_open(const char *folder);

/* How large the catalogue is on its disk, and what is left there. Internal to db/. */

#define SPACE_LOOK_MS 1000

/* All zero: not looked at yet. Written by one thread, read by any. */
struct space {
    atomic_uint_fast64_t file_bytes, wal_bytes, disk_bytes, free_bytes;
    int64_t looked_ms; /* the writing thread's */
};

/* Looks, at most once in SPACE_LOOK_MS; may wait for the file system. `now_ms`: monotonic. */
void space_look(struct space *s, const char *path, int64_t now_ms);

#endif
