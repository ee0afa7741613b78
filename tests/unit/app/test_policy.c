/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a robots_file may be once the configuration was checked (configured.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/configured.h"
#include "tests/unit/lib/scratch.h"

static struct publish_policies *policy_of(char *robots_file)
{
    static struct config_site site;

    site = (struct config_site){
        .origin = (char *)"https://www.example.com", .robots = true, .robots_file = robots_file};
    static struct config config;

    config = (struct config){.references = 1, .sites = &site, .site_count = 1};
    return configured_policies(&config);
}

static void test_robots_files(void **state)
{
    char folder[SCRATCH_MAX_BYTES], path[SCRATCH_MAX_BYTES + 10];

    scratch_make(folder, "policy");
    snprintf(path, sizeof path, "%s/robots", folder);
    assert_null(policy_of(path)); /* gone */
    assert_null(policy_of(folder));
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(policy_of(path)); /* nobody ever writes into it */
    assert_int_equal(unlink(path), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("User-agent: *\n", file);
    fclose(file);
    struct publish_policies *p = policy_of(path);
    assert_non_null(p);
    assert_string_equal(p->sites[0].robots_prefix, "User-agent: *\n");
    p->free(p);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("<!DOCTYPE html>\n", file);
    fclose(file);
    assert_null(policy_of(path)); /* what a site without one answered */
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_robots_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
