/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads files that an operator named, which may be anything. Only FILE_ANY waits for a pipe: a
 * reload, which must not wait, uses the others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What is accepted: a regular file (else EINVAL), all but a pipe (else ESPIPE), or anything. */
enum file_wanted { FILE_PLAIN, FILE_NO_PIPE, FILE_ANY };

/* The first `most` bytes of what is there and a NUL; the caller frees them. NULL with errno.
 * `mode`: NULL, or gets what stat has. Thread safe. */
char *file_read(const char *path, enum file_wanted wanted, size_t most, size_t *len, mode_t *mode);

/* Writes all of it. False with errno. Thread safe. */
bool file_write(int fd, const void *bytes, size_t len);

/* Opens a file without a name in `folder`, so that no signal or crash leaves it behind: its
 * descriptor, or -1 and errno. Only this process can read it. Thread safe. */
int file_open_nameless(const char *folder);

/* What is reserved for the catalogue on a disk of so many bytes: a sixteenth, at most 256 MiB. */
uint64_t file_reserve_of(uint64_t disk_bytes);
/* Whether the disk of an open file has more free space than that. Dispensable files (a copy, a list
 * that is being received) are written only then. Thread safe. */
bool file_has_reserve(int fd);
