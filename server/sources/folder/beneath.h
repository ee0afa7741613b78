/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Opens what lies below a folder, and nothing else: no symlink, dot segment or race leads out of
 * it. With openat2(2) the kernel sees to that in one step (RESOLVE_BENEATH); where it has none
 * (before Linux 5.6, or a sandbox refuses the call) no symlink is followed at all.
 * All functions: -1 with errno on failure; thread safe. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

/* The folder that the others are relative to, for listing. */
int beneath_open_top(const char *directory);

/* `path`: names joined by single slashes, none "." or ".." (EINVAL). `flags` as for open(2);
 * O_CLOEXEC, O_NOCTTY and O_NONBLOCK are added. EXDEV: it leads out of the folder. ELOOP: a
 * symlink that is not followed. */
int beneath_open(int top, const char *path, int flags);

/* A regular file, for reading. ENXIO: it is not one (a folder, a FIFO, a device). */
int beneath_open_file(int top, const char *path, struct stat *out);

/* An errno that is about this process or machine, not the file. */
static inline bool beneath_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* What beneath_open does without openat2; for tests. */
int beneath_open_by_steps(int top, const char *path, int flags);
