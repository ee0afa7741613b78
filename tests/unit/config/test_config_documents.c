/* The documents of the settings: config/sitemapd.conf, and the table of docs/operations.md. */
#include "tests/unit/config/fixture.h"

#include "config/settings.h"

static void *field(struct config *c, const struct setting *s)
{
    return (char *)c + s->offset;
}

static void check_same(struct config *a, struct config *b)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];

        if (s->kind == SETTING_BOOL || is_number(s)) {
            if (memcmp(field(a, s), field(b, s), s->width) != 0)
                fail_msg("%s.%s differs", s->section, s->key);
        } else if (s->count_offset == 0) {
            const char *left = *(char **)field(a, s), *right = *(char **)field(b, s);

            if ((left == NULL) != (right == NULL) || (left != NULL && strcmp(left, right) != 0))
                fail_msg("%s.%s differs", s->section, s->key);
        } else {
            assert_null(*(void **)field(a, s));
        }
    }
    assert_int_equal(a->site_count, b->site_count);
}

static void test_the_file_is_the_defaults(void **state)
{
    struct config *defaults, *read;
    struct told told = {0};

    (void)state;
    assert_non_null(defaults = config_new());
    assert_non_null(read = config_new());
    config_read_file(read, CONFIG_FILE, tell, &told);
    check_told("sitemapd.conf", &told, "");
    check_same(defaults, read);
    config_unref(defaults);
    config_unref(read);
}

/* The file as one string, line breaks within comments made blanks. */
static char *read_flat(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = NULL, *at;
    size_t size = 0;

    assert_non_null(f);
    assert_true(getdelim(&text, &size, '\0', f) > 0);
    fclose(f);
    while ((at = strstr(text, "\n; ")) != NULL)
        memmove(at + 1, at + 3, strlen(at + 3) + 1), *at = ' ';
    return text;
}

static void check_documented(const char *text, const struct setting *s)
{
    char line[256];

    if (strstr(text, s->doc) == NULL)
        fail_msg("%s.%s: \"%s\" is missing", s->section, s->key, s->doc);
    snprintf(line, sizeof line, "\n%s = %s\n", s->key, s->fallback != NULL ? s->fallback : "?");
    if (strstr(text, line) != NULL)
        return;
    snprintf(line, sizeof line, "\n;%s = ", s->key);
    if (strstr(text, line) == NULL)
        fail_msg("%s.%s has no line", s->section, s->key);
}

static void test_the_file_documents_every_setting(void **state)
{
    char *text = read_flat(CONFIG_FILE);

    (void)state;
    for (size_t i = 0; i < config_settings_count; i++)
        if (config_settings[i].in_file)
            check_documented(text, &config_settings[i]);
        else
            assert_non_null(strstr(text, config_settings[i].environment));
    for (size_t t = 0; t < config_sections_count; t++)
        for (size_t i = 0; i < config_sections[t].setting_count; i++)
            check_documented(text, &config_sections[t].settings[i]);
    free(text);
}

/* What is commented out must be right as well: people take the ; away. */
static void test_the_examples_of_the_file_are_good(void **state)
{
    FILE *f = fopen(CONFIG_FILE, "r");
    struct config *c;
    struct told told;
    char line[512], text[32768] = "";

    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL)
        strcat(text, line[0] == ';' && line[1] != ' ' && line[1] != '\n' ? line + 1 : line);
    fclose(f);
    assert_non_null(c = config_new());
    read_text(c, text, &told);
    check_told("examples", &told, "");
    assert_int_equal(c->site_count, 1);
    assert_int_equal(c->sites[0].alias_count, 1);
    assert_int_equal(c->trusted_proxy_count, 2);
    config_unref(c);
}

/* The table of docs/operations.md names what a reload changes, and nothing else. */
static void test_what_is_live_is_documented(void **state)
{
    char *text = read_flat(OPERATIONS_FILE);
    char *begin = strstr(text, "## Reloading the configuration");
    (void)state;
    assert_non_null(begin);
    char *end = strstr(begin + 3, "| everything else |");
    assert_non_null(end);
    *end = '\0';
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        char key[64];
        snprintf(key, sizeof key, "`%s`", s->key);
        if (s->live && strstr(begin, key) == NULL)
            fail_msg("%s.%s changes at a reload; docs/operations.md does not say so", s->section,
                     s->key);
        /* `listen` and the like stand in no cell; keys of sections have their own. */
        if (!s->live && s->in_file && strstr(begin, key) != NULL)
            fail_msg("%s.%s needs a restart; docs/operations.md says otherwise", s->section,
                     s->key);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_file_is_the_defaults),
        cmocka_unit_test(test_the_file_documents_every_setting),
        cmocka_unit_test(test_the_examples_of_the_file_are_good),
        cmocka_unit_test(test_what_is_live_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
