/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Whether a path lies on a network filesystem. WAL keeps its index in memory that all processes
 * share, which no network filesystem has (https://www.sqlite.org/wal.html, "Disadvantages"): two
 * hosts would corrupt the file without a word, and locks are not to be trusted on many of them.
 * Internal to db/. Thread safe. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The filesystem's name where `path` (which exists) lies on one, else NULL. Static. */
const char *network_filesystem(const char *path);

/* The same of what the kernel says, which its tests make up: f_type of statfs(2), and where that is
 * FUSE's, the mount of `device` in proc_pid_mountinfo(5) (NULL: it cannot be read). */
const char *network_name(unsigned long type, dev_t device, FILE *mountinfo);

/* Which file a path names. Of no use once nobody has that file open: its number may be reused.
 * Internal to db/. */
struct file_identity {
    dev_t device;
    ino_t inode;
};
/* False where the path names no file. */
bool file_identity_read(const char *path, struct file_identity *out);
/* Whether the path still names that file, and the file is a catalogue's: one in use is never empty,
 * unless somebody truncated it. */
bool file_identity_holds(const char *path, const struct file_identity *identity);
/* Whether there is a file without a byte. */
bool file_is_empty(const char *path);
/* Whether what the path names lies on a file system that is mounted read-only. */
bool filesystem_is_read_only(const char *path);
bool file_identity_equal(const struct file_identity *a, const struct file_identity *b);

/* How large the catalogue is on its disk, and what is left there. Internal to db/. */

#define SPACE_LOOK_MS 1000

/* All zero: not looked at yet. Written by one thread, read by any. */
struct space {
    atomic_uint_fast64_t file_bytes, wal_bytes, disk_bytes, free_bytes;
    int64_t looked_ms; /* the writing thread's */
};

/* Looks, at most once in SPACE_LOOK_MS; may wait for the file system. `now_ms`: monotonic. */
void space_refresh(struct space *s, const char *path, int64_t now_ms);
/* Whether the disk is too full for changes by tokens for one site that add rows, if the log still
 * grows by `log_bytes` and the file to `file_bytes`. The rest, half of file_reserve_of, is for
 * tokens for all sites: on a disk that is full to the last byte nobody could remove what filled it.
 */
bool space_is_short(const char *path, uint64_t file_bytes, uint64_t log_bytes);
