/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Privileges: the folder that root makes for another user (privileges.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/privileges.h"
#include "tests/unit/lib/scratch.h"

static const char *link_to; /* where not NULL: what is in the new folder's place at once */

/* Instead of the C library's. */
int mkdir(const char *path, mode_t mode)
{
    int made = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);

    if (made == 0 && link_to != NULL && (rmdir(path) != 0 || symlink(link_to, path) != 0))
        return -1;
    return made;
}

static bool become_nobody(const char *database)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0)
        _exit(privileges_drop("nobody", database) ? 0 : 1);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status == 0;
}

static uid_t owner_of(const char *path)
{
    struct stat st;

    assert_int_equal(lstat(path, &st), 0);
    return st.st_uid;
}

static void the_folder_alone_changes_hands(void **state)
{
    const struct passwd *nobody = getpwnam("nobody");
    char top[SCRATCH_MAX_BYTES], folder[128], database[160], other[128];

    if (geteuid() != 0 || nobody == NULL)
        skip();
    scratch_make(top, "sitemapd-privileges");
    snprintf(other, sizeof other, "%s/other", top);
    assert_int_equal(mkdir(other, 0700), 0);

    snprintf(folder, sizeof folder, "%s/made", top);
    snprintf(database, sizeof database, "%s/catalogue.db", folder);
    assert_true(become_nobody(database));
    assert_int_equal(owner_of(folder), nobody->pw_uid);
    assert_int_equal(rmdir(folder), 0);

    /* Somebody puts a link there between its making and its handing over. */
    link_to = other;
    assert_true(become_nobody(database));
    link_to = NULL;
    assert_int_equal(owner_of(other), 0);

    unlink(folder);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(rmdir(top), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_alone_changes_hands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
