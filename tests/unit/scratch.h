/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Where unit tests put their files: in TMPDIR, or in /tmp. Commits wait for a disk, so tests/run
 * gives the builds with sanitizers a TMPDIR in memory; the plain build's stay on the disk. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What the fixtures' paths have room for. */
#define SCRATCH_MAX_BYTES 64

/* A folder that can be written to, of a length that leaves 40 bytes for names. */
static inline const char *scratch_folder(void)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] != '/' || strlen(folder) > SCRATCH_MAX_BYTES - 40 ||
        access(folder, W_OK | X_OK) != 0)
        return "/tmp";
    return folder;
}

/* Puts a template for mkdtemp() or mkstemp() into `path`, which has SCRATCH_MAX_BYTES. `name` has
 * 31 characters at most. */
static inline void scratch_name(char *path, const char *name)
{
    snprintf(path, SCRATCH_MAX_BYTES, "%s/%s-XXXXXX", scratch_folder(), name);
}
