/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens only files and folders below a folder: no symlink, dot segment or race leads out of it.
 * With openat2(2) the kernel guarantees that in one step (RESOLVE_BENEATH). Without it (before
 * Linux 5.6, or if a sandbox refuses the call) no symlink is followed at all. All functions: -1
 * with errno on failure; thread safe. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Opens the folder that the other paths are relative to, for listing. */
int beneath_open_top(const char *directory);

/* Opens `path`: names joined by single slashes, none of them "." or ".." (EINVAL). `flags` as for
 * open(2); O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added. EXDEV: it leads out of the folder. ELOOP:
 * a symlink that is not followed. */
int beneath_open(int top, const char *path, int flags);

/* Opens a regular file for reading. ENXIO: it is not a regular file. */
int beneath_open_file(int top, const char *path, struct stat *out);

/* Whether an errno is about this process or machine, not about the file. */
static inline bool beneath_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* beneath_open without openat2: follows no symlink (ELOOP). */
int beneath_open_by_steps(int top, const char *path, int flags);
