/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads files that an operator named, of whatever type they are. Only FILE_ANY waits for a pipe; a
 * reload must not wait and uses the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Accepted types: a regular file (else EINVAL), anything but a pipe (else ESPIPE), or any file. */
enum file_wanted { FILE_PLAIN, FILE_NO_PIPE, FILE_ANY };

/* Reads the first `most` bytes of a file and appends a NUL; the caller frees them. NULL with errno.
 * `mode` (may be NULL) gets st_mode. Thread safe. */
char *file_read(const char *path, enum file_wanted wanted, size_t most, size_t *len, mode_t *mode);

/* Writes all of it. False with errno. Thread safe. */
bool file_write(int fd, const void *bytes, size_t len);

/* Creates a file without a name in `folder`, so that no signal or crash leaves it behind. Returns
 * its descriptor, or -1 with errno. Only this process can read it. Thread safe. */
int file_open_nameless(const char *folder);

/* What is reserved for the catalogue on a disk of so many bytes: a sixteenth, at most 256 MiB. */
uint64_t file_reserve_of(uint64_t disk_bytes);
/* Whether the disk of an open file has more free space than that. Dispensable files (a copy, a list
 * that is being received) are written only then. Thread safe. */
bool file_has_reserve(int fd);
/* Opens with these flags, syncs and closes. False: see errno. */
bool file_sync(const char *path, int flags);
