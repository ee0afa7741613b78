/* What a robots_file may be once the configuration was judged (policy.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/policy.h"
#include "tests/unit/scratch.h"

static struct policy *policy_of(char *robots_file)
{
    struct config_site site = {
        .origin = (char *)"https://www.example.com", .robots = true, .robots_file = robots_file};
    struct config config = {.sites = &site, .site_count = 1};

    return policy_new(&config);
}

static void test_robots_files(void **state)
{
    char folder[SCRATCH_MAX_BYTES], path[SCRATCH_MAX_BYTES + 10];
    (void)state;

    scratch_name(folder, "policy");
    assert_non_null(mkdtemp(folder));
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
    struct policy *p = policy_of(path);
    assert_non_null(p);
    assert_string_equal(policy_sites(p)->robots_prefix, "User-agent: *\n");
    policy_free(p);
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
