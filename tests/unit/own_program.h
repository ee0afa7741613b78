/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The running test's own file, for tests that start it again as another process. */
#pragma once

#include <limits.h>
#include <unistd.h>

/* Its path; static. To execute /proc/self/exe itself would start valgrind's own program under it.
 */
static inline const char *own_program(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

    path[len < 0 ? 0 : len] = '\0';
    return path;
}
