/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Whether a path lies on a network filesystem. WAL keeps its index in memory that all processes
 * share, which no network filesystem has (https://www.sqlite.org/wal.html, "Disadvantages"): two
 * hosts would corrupt the file silently, and locks are unreliable on many of them. Internal to db/.
 * Thread safe. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The filesystem's name if `path` (which exists) is on a network filesystem, else NULL. Static. */
const char *network_filesystem(const char *path);

/* The same, for tests, by the kernel's answers: f_type of statfs(2) and, for FUSE, the mount of
 * `device` in proc_pid_mountinfo(5) (NULL: unreadable). */
const char *network_name(unsigned long type, dev_t device, FILE *mountinfo);

/* Identifies the file that a path names, as long as some process has it open: afterwards its inode
 * number may be reused. Internal to db/. */
struct file_identity {
    dev_t device;
    ino_t inode;
};
/* False if the path names no file. */
bool file_identity_read(const char *path, struct file_identity *out);
/* Whether the path still names that file, and the file is not empty: a catalogue in use is empty
 * only if somebody truncated it. */
bool file_identity_holds(const char *path, const struct file_identity *identity);
/* Whether the path names an empty file. */
bool file_is_empty(const char *path);
/* Whether the path is on a file system that is mounted read-only. */
bool filesystem_is_read_only(const char *path);
bool file_identity_equal(const struct file_identity *a, const struct file_identity *b);

/* The size of the catalogue and the free space of its disk. Internal to db/. */

#define SPACE_LOOK_MS 1000
/* No list, not even at the time limit of writes, fills a disk with more free space than this. */
#define SPACE_PLENTY_BYTES (16ull << 30)

/* All zero: unknown. Written by one thread, read by any. */
struct space {
    atomic_uint_fast64_t file_bytes, wal_bytes, disk_bytes, free_bytes;
    int64_t looked_ms; /* for the writing thread alone */
};

/* Updates `s` at most once in SPACE_LOOK_MS; may wait for the file system. `now_ms`: monotonic. */
void space_refresh(struct space *s, const char *path, int64_t now_ms);
/* Whether the disk is too full for changes by tokens for one site that add rows, if the log still
 * grows by `log_bytes` and the file to `file_bytes`. The rest, half of file_reserve_of, is for
 * tokens for all sites: on a disk that is full to the last byte nobody could remove what filled it.
 */
bool space_is_short(const char *path, uint64_t file_bytes, uint64_t log_bytes);
