/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The configuration: where memory runs out it is reported or the function says no, and all is
 * freed. */
#include "tests/unit/alloc/alloc.h"

#include "config/config.h"
#include "tests/unit/lib/scratch.h"

struct mistake_list {
    unsigned count;
    bool show;
};

static void report_mistake(void *context, const char *file, unsigned line, const char *message)
{
    struct mistake_list *mistakes = context;
    mistakes->count++;
    if (mistakes->show)
        print_message("%s:%u: %s\n", file != NULL ? file : "-", line, message);
}

static const char text[] =
    "[server]\nlisten = 127.0.0.1:0\n"
    "[admin]\nallowed_hosts = one.example two.example\n"
    "[catalogue]\ndatabase = /tmp/x.db\n"
    "[site \"shop\"]\norigin = https://shop.example.org\nindex = /a.xml\nindex = /b.xml\n"
    "cross_host = cdn.example.org\nalias = /sitemap.xml -> /a.xml\n"
    "[source \"files\"]\ndirectory = /tmp\nurl = https://shop.example.org/\npattern = *.xml *.gz\n";

static bool read_all(void *context)
{
    const char *path = context;
    struct mistake_list mistakes = {.show = getenv("SHOW") != NULL};
    struct config *c = config_new();
    bool good = c != NULL;
    if (good) {
        good = config_read_file(c, path, report_mistake, &mistakes);
        good = config_read_environment(c, report_mistake, &mistakes) && good;
        good = config_set(c, "server.site", "https://c.example", report_mistake, &mistakes) && good;
        good = config_set(c, "server.site", "https://d.example", report_mistake, &mistakes) && good;
        if (good)
            good = config_validate(c, report_mistake, &mistakes);
        /* What could not be read was reported: nobody serves with half a configuration. */
        assert_int_equal(good, mistakes.count == 0);
        if (good) {
            assert_int_equal(c->site_count, 1);
            assert_string_equal(c->database, "/tmp/x.db");
        }
    }
    config_unref(c);
    return good;
}

static void test_config(void **state)
{
    char path[SCRATCH_MAX_BYTES];
    int fd = scratch_file(path, "sitemapd-alloc");
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    close(fd);
    setenv("SITEMAPD_TOKEN", "0123456789012345678901234567890123456789", 1);
    setenv("SITEMAPD_ADMIN_LISTEN", "127.0.0.1:0", 1);
    alloc_sweep("config", read_all, path);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_config)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
