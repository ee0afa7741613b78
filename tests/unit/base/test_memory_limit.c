/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "server/base/memory_limit.h"

#define MIB (1024ull * 1024)

static char folder[] = "/tmp/memory_limit.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static uint64_t limit_of(const char *groups)
{
    char list[64];

    put("list", groups);
    snprintf(list, sizeof list, "%s/list", folder);
    return memory_limit(list, folder);
}

static void test_limits(void **state)
{
    put("system.slice/a.service/memory.max", "max\n");
    put("system.slice/a.service/memory.high", "max\n");
    assert_int_equal(limit_of("0::/system.slice/a.service\n"), 0);
    put("system.slice/memory.max", "1073741824\n");
    assert_int_equal(limit_of("0::/system.slice/a.service\n"), 1024 * MIB);
    put("system.slice/a.service/memory.high", "536870912\n");
    assert_int_equal(limit_of("0::/system.slice/a.service\n"), 512 * MIB);
    put("system.slice/a.service/memory.max", "2147483648\n");
    assert_int_equal(limit_of("0::/system.slice/a.service\n"), 512 * MIB);
    /* A container: the group is the mount's own, or one that is not there. */
    put("memory.max", "268435456\n");
    assert_int_equal(limit_of("0::/\n"), 256 * MIB);
    assert_int_equal(limit_of("0::/of/the/host\n"), 256 * MIB);
    put("memory.max", "a text\n");
    assert_int_equal(limit_of("0::/\n"), 0);
    /* The first hierarchy; other controllers do not count. */
    put("memory/docker/memory.limit_in_bytes", "134217728\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(limit_of("5:cpu:/docker\n4:memory:/docker\n0::/\n"), 128 * MIB);
    assert_int_equal(limit_of("4:memory:/\n"), 0);
    assert_int_equal(limit_of("5:cpu:/docker\nwithout colons\n"), 0);
    assert_int_equal(memory_limit("/does/not/exist", folder), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_limits)};
    char command[64];

    assert_non_null(mkdtemp(folder));
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? failed : 1;
}
