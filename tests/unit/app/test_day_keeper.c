/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The sums of a day are written while the server runs, not at its stop alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/keepers.h"
#include "server/rules/limits.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN "https://www.example.com"

static void take(void *context, const struct site_day *row)
{
    *(struct site_day *)context = *row;
}

/* Waits until the sum of all sites is this; the test has a time limit of its own. */
static void wait_for(struct catalogue *c, uint64_t entries)
{
    struct site_day last = {.day = -1};
    while (last.day < 0 || last.entries != entries) {
        struct catalogue_view *view;
        assert_int_equal(catalogue_view_begin(c, &view), CATALOGUE_OK);
        assert_int_equal(catalogue_view_site_days(view, 0, 0, INT32_MAX, take, &last),
                         CATALOGUE_OK);
        catalogue_view_end(view);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

static void each_change_is_seen_at_a_later_look(void **state)
{
    char folder[SCRATCH_MAX_BYTES], path[SCRATCH_MAX_BYTES + 16];
    scratch_make(folder, "days");
    snprintf(path, sizeof path, "%s/c.db", folder);
    const struct catalogue_options options = fixture_options(path);
    struct catalogue *c = fixture_catalogue(&options);
    fixture_add_site(c, ORIGIN, "/sitemap_index.xml");
    struct day_keeper *keeper = day_keeper_start(c, 20);
    assert_non_null(keeper);
    wait_for(c, 0);
    fixture_apply(c,
                  &(struct change){.kind = CHANGE_ENTRY_PUT,
                                   .source = "tests",
                                   .entry = {.loc = ORIGIN "/a.xml", .position = POSITION_NONE}});
    wait_for(c, 1);
    day_keeper_stop(keeper);
    catalogue_close(c);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_change_is_seen_at_a_later_look)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
