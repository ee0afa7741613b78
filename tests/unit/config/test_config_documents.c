/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The documented default configuration, which is made of the table of settings. */
#include "tests/unit/config/fixture.h"

#include "config/settings.h"
#include "server/base/str.h"

/* config/sitemapd.conf is kept in the tree for people to read. */
static void test_the_file_is_what_is_generated(void **state)
{
    struct str made = STR_INIT;
    char *text = NULL;
    size_t size = 0;
    FILE *f = fopen(CONFIG_FILE, "r");

    assert_non_null(f);
    assert_true(getdelim(&text, &size, '\0', f) > 0);
    fclose(f);
    config_document(&made);
    if (strcmp(text, str_text(&made)) != 0)
        fail_msg("run: sitemapd check-config --defaults >config/sitemapd.conf");
    free(text);
    str_done(&made);
}

static void test_the_file_changes_nothing(void **state)
{
    struct config *read = config_new();
    struct mistake_list mistakes = {0};

    assert_non_null(read);
    config_read_file(read, CONFIG_FILE, report_mistake, &mistakes);
    check_mistakes("sitemapd.conf", &mistakes, "");
    for (size_t i = 0; i < config_settings_count; i++)
        assert_int_equal(read->set_by[i].level, LEVEL_DEFAULT);
    assert_int_equal(read->site_count + read->source_count + read->token_count, 0);
    config_unref(read);
}

static void test_every_setting_has_a_value_to_show(void **state)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        if (s->in_file && s->fallback == NULL && s->example == NULL)
            fail_msg("%s.%s has neither a default nor an example", s->section, s->key);
    }
    for (size_t t = 0; t < config_sections_count; t++)
        for (size_t i = 0; i < config_sections[t].setting_count; i++) {
            const struct setting *s = &config_sections[t].settings[i];
            if (s->fallback == NULL && s->example == NULL)
                fail_msg("%s.%s has neither a default nor an example", s->section, s->key);
        }
}

/* What is commented out must be right as well: people take the ; away. */
static void test_the_examples_of_the_file_are_good(void **state)
{
    FILE *f = fopen(CONFIG_FILE, "r");
    struct config *c;
    struct mistake_list mistakes;
    char line[512], text[32768] = "";

    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        strcat(text, line[0] == ';' && line[1] != ' ' && line[1] != '\n' ? line + 1 : line);
    fclose(f);
    assert_non_null(c = config_new());
    read_text(c, text, &mistakes);
    check_mistakes("examples", &mistakes, "");
    assert_int_equal(c->site_count, 1);
    assert_int_equal(c->sites[0].alias_count, 1);
    assert_int_equal(c->trusted_proxy_count, 2);
    config_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file_is_what_is_generated),
        cmocka_unit_test(test_the_file_changes_nothing),
        cmocka_unit_test(test_every_setting_has_a_value_to_show),
        cmocka_unit_test(test_the_examples_of_the_file_are_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
