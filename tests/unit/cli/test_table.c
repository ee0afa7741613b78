/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of commands holds what the parser and the help build upon. */
#include "tests/unit/cli/check.h"

#include "server/cli/arguments.h"

static void test_every_command_teaches(void **state)
{
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        char example[64];

        snprintf(example, sizeof example, "sitemapd %s", c->name);
        if (c->examples == NULL || c->examples->why == NULL)
            fail_msg("%s: its help has no example", c->name);
        for (const struct cli_example *e = c->examples; e->why != NULL; e++) {
            assert_int_equal(e->why[strlen(e->why) - 1], ':');
            if (strstr(e->line, example) == NULL)
                fail_msg("%s: an example of something else: %s", c->name, e->line);
        }
        assert_true(c->run != NULL && c->min_words <= c->max_words);
        assert_int_equal(c->max_words > 0, *c->synopsis != '\0');
        assert_true(strlen(c->summary) > 0 && strlen(c->summary) < 60);
    }
}

/* Words are gathered before the command is known: an option must take a value everywhere or
 * nowhere. */
static void test_options_mean_the_same_everywhere(void **state)
{
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++)
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++) {
            assert_int_equal(strncmp(o->name, "--", 2), 0);
            for (const struct cli_command *d = cli_commands; d->name != NULL; d++)
                for (const struct cli_option *p = d->options; p != NULL && p->name != NULL; p++)
                    if (strcmp(o->name, p->name) == 0 && (o->value == NULL) != (p->value == NULL))
                        fail_msg("%s: %s and %s differ", o->name, c->name, d->name);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_command_teaches),
        cmocka_unit_test(test_options_mean_the_same_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
