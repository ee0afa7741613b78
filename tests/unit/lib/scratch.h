/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files and folders of a unit test, in TMPDIR or in /tmp. Commits wait for a disk, so tests/run
 * gives the builds with sanitizers a TMPDIR in memory; those of the plain build stay on the disk.
 */
#pragma once

/* Room for a path that is made here. */
#define SCRATCH_MAX_BYTES 64

/* A folder that can be written to, of a length that leaves 40 bytes for names; static. */
const char *scratch_folder(void);

/* Makes an empty folder. `path` has SCRATCH_MAX_BYTES, `name` 31 characters at most. Fails the test
 * where that is not possible; scratch_remove() removes the folder. */
void scratch_make(char *path, const char *name);

/* The same for an empty file: a descriptor that the caller closes. */
int scratch_file(char *path, const char *name);

/* Removes a folder or a file with all that is in it, as far as it exists. */
void scratch_remove(const char *path);

/* The running test's own file, for tests that start it again as another process; static. (To
 * execute /proc/self/exe itself would start valgrind's program under it.) */
const char *own_program(void);
