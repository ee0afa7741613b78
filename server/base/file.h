/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files that an operator named, which may be anything: what lies behind a pipe is waited for with
 * FILE_ANY alone, since a reload reads them too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What will do: a file alone (else EINVAL), all but a pipe (else ESPIPE), or anything. */
enum file_wanted { FILE_PLAIN, FILE_NO_PIPE, FILE_ANY };

/* The first `most` bytes of what is there and a NUL; the caller frees them. NULL with errno.
 * `mode`: NULL, or gets what stat has. Thread safe. */
char *file_read(const char *path, enum file_wanted wanted, size_t most, size_t *len, mode_t *mode);

/* Writes all of it. False with errno. Thread safe. */
bool file_write(int fd, const void *bytes, size_t len);

/* Opens a file without a name in `folder`, so that no signal or crash leaves it behind: its
 * descriptor, or -1 and errno. Only this process can read it. Thread safe. */
int file_open_nameless(const char *folder);

/* Whether the disk of an open file has more free space than is left to the catalogue: a sixteenth
 * of it, or 256 MiB. What can be done without (a copy, a list of somebody's) is written only then.
 * Thread safe. */
bool file_has_reserve(int fd);
