/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a source has to do before it runs, and the files that it serves. */
#include "tests/unit/sources/running.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "server/sources/source.h"

static void files_are_found_and_opened(void **state)
{
    struct running *r = *state;
    char path[SOURCE_MAX_PATH_BYTES + 1];
    size_t at = 99;
    r->w.settings.serve = true;
    folder_do(&r->w.folder, "mkdir b; echo x > $OUT/x; ln -s $OUT/x out.xml");
    folder_sitemap(&r->w.folder, "b/a b.xml", "a", "", DAY);
    start(r);
    struct source_list *list = sources_hold(r->s);
    assert_int_equal(sources_count(list), 1);
    assert_int_equal(sources_find(list, "products"), 0);
    assert_true(sources_find(list, "none") == SIZE_MAX);
    assert_string_equal(sources_url(list, 0), ORIGIN "/s/");
    size_t number = sources_number(list, 0);
    sources_release(list);
    assert_true(sources_match(r->s, ORIGIN, "/s/b/a%20b.xml", &at, path));
    assert_int_equal(at, number);
    assert_string_equal(path, "b/a b.xml");
    int fd = sources_open_file(r->s, number, path);
    assert_true(fd >= 0);
    close(fd);
    assert_true(sources_match(r->s, ORIGIN, "/s/out.xml", &at, path));
    assert_int_equal(sources_open_file(r->s, number, path), -1);
    assert_int_equal(sources_open_file(r->s, number, "../x"), -1);
    assert_int_equal(sources_open_file(r->s, number, "b"), -1);
    assert_false(sources_match(r->s, ORIGIN, "/s/b/a.html", &at, path));
    assert_false(sources_match(r->s, ORIGIN, "/b/a.xml", &at, path));
    assert_false(sources_match(r->s, "https://other.example.com", "/s/b/a.xml", &at, path));
}

/* Its files may be there again in a moment: they are not gone. */
static void a_missing_folder_says_nothing_of_its_files(void **state)
{
    struct running *r = *state;
    char aside[PATH_MAX];
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    start(r);
    struct source_list *list = sources_hold(r->s);
    size_t number = sources_number(list, 0);
    sources_release(list);
    snprintf(aside, sizeof aside, "%s.aside", r->w.settings.directory);
    assert_int_equal(rename(r->w.settings.directory, aside), 0);
    int missing = sources_open_file(r->s, number, "a.xml"), error = errno;
    assert_int_equal(rename(aside, r->w.settings.directory), 0);
    assert_int_equal(missing, -1);
    assert_int_equal(error, EIO);
    assert_int_equal(sources_open_file(r->s, number, "none.xml"), -1);
    assert_int_equal(errno, ENOENT);
    int fd = sources_open_file(r->s, number, "a.xml");
    assert_true(fd >= 0);
    close(fd);
}

static void settings_are_checked(void **state)
{
    struct running *r = *state;
    char why[256];
    struct sources_options options = {.catalogue = r->w.c, .count = 1, .settings = &r->w.settings};
    r->w.settings.url = ORIGIN "/s";
    r->w.settings.managed = true;
    assert_false(sources_start(&options, &r->s, why, sizeof why));
    assert_null(r->s);
    assert_non_null(strstr(why, "products"));
}

static void one_that_was_made_elsewhere_starts_and_fails(void **state)
{
    struct running *r = *state;
    struct source_health health = {0};
    size_t number;
    char path[SOURCE_MAX_PATH_BYTES + 1];
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    r->w.settings.url = ORIGIN "/s";
    r->w.settings.serve = true;
    start(r);
    while (!health.failing) {
        struct source_list *list = sources_hold(r->s);
        sources_health(list, 0, &health);
        assert_string_equal(sources_url(list, 0), ORIGIN "/s");
        sources_release(list);
    }
    assert_non_null(strstr(health.failure, "url must end in a slash"));
    assert_false(sources_match(r->s, ORIGIN, "/s/a.xml", &number, path));
}

static void what_the_last_run_found_is_known_before_the_first_scan(void **state)
{
    struct running *r = *state;
    char why[256];
    folder_do(&r->w.folder, "echo '<urlset' > broken.xml; touch -d 2020-01-01 broken.xml");
    folder_sitemap(&r->w.folder, "a.xml", "a", "", DAY);
    start(r);
    await_applied(r, 1);
    const struct sources_options options = {.catalogue = r->w.c};
    struct source *next = source_new(&r->w.settings, &options, why, sizeof why);
    assert_non_null(next);
    source_recall(next);
    assert_int_equal(next->state.quarantined, 1);
    assert_int_equal(next->state.listed, 1);
    source_release(next);
    source_unref(next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_are_found_and_opened),
        TEST(a_missing_folder_says_nothing_of_its_files),
        TEST(settings_are_checked),
        TEST(one_that_was_made_elsewhere_starts_and_fails),
        TEST(what_the_last_run_found_is_known_before_the_first_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
