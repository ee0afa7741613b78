/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/lib/catalogue_fixture.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* cmocka.h needs the first of these. */
#include <cmocka.h>

struct catalogue_options fixture_options(const char *path)
{
    return (struct catalogue_options){.path = path,
                                      .write_timeout_ms = 300000,
                                      .max_queued = 1000,
                                      .shrink_percent = 30,
                                      .default_max_pages = LIMIT_SITE_PAGES};
}

struct catalogue *fixture_catalogue(const struct catalogue_options *options)
{
    struct catalogue *c = NULL;
    char why[256] = "";
    if (catalogue_open(options, &c, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    return c;
}

uint64_t fixture_apply(struct catalogue *c, const struct change *change)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(c, change, &result);
    if (status != CATALOGUE_OK)
        fail_msg("%s: %s: %s", catalogue_status_word(status), rule_code_word(result.code),
                 result.detail);
    change_result_done(&result);
    return result.revision;
}

void fixture_add_site(struct catalogue *c, const char *origin, const char *path)
{
    char url[256];
    snprintf(url, sizeof url, "%s%s", origin, path);
    fixture_apply(c, &(struct change){.kind = CHANGE_SITE_ADD, .site_add = {.origin = origin}});
    fixture_apply(c, &(struct change){.kind = CHANGE_INDEX_ADD, .index_add = {.url = url}});
}

struct catalogue_revisions fixture_revisions(struct catalogue *c)
{
    struct catalogue_revisions now = {.entries = 0};
    struct catalogue_view *v;
    assert_int_equal(catalogue_view_begin(c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_revisions(v, &now), CATALOGUE_OK);
    catalogue_view_end(v);
    return now;
}

static void print_problem(void *context, const char *sentence)
{
    (void)context;
    print_error("check: %s\n", sentence);
}

void fixture_assert_sound(struct catalogue *c)
{
    uint64_t problems = 1;
    assert_int_equal(catalogue_check(c, print_problem, NULL, &problems), CATALOGUE_OK);
    assert_int_equal(problems, 0);
}
