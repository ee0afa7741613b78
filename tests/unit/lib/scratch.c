/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/lib/scratch.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* cmocka.h needs the first of these. */
#include <cmocka.h>

const char *scratch_folder(void)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || folder[0] != '/' || strlen(folder) > SCRATCH_MAX_BYTES - 40 ||
        access(folder, W_OK | X_OK) != 0)
        return "/tmp";
    return folder;
}

static void make_template(char *path, const char *name)
{
    snprintf(path, SCRATCH_MAX_BYTES, "%s/%s-XXXXXX", scratch_folder(), name);
}

void scratch_make(char *path, const char *name)
{
    make_template(path, name);
    assert_non_null(mkdtemp(path));
}

int scratch_file(char *path, const char *name)
{
    make_template(path, name);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    return fd;
}

void scratch_remove(const char *path)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

const char *own_program(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

    path[len < 0 ? 0 : len] = '\0';
    return path;
}
