/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of settings: its defaults, its file, and who overrides whom. */
#include "tests/unit/config/fixture.h"

static void clear_environment(void)
{
    for (size_t i = 0; i < config_settings_count; i++)
        unsetenv(config_settings[i].environment);
}

/* ---- the table ------------------------------------------------------------------------- */

static void test_the_table_is_sound(void **state)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];

        assert_ptr_equal(setting_find(s->section, s->key), s);
        assert_non_null(s->environment);
        assert_int_equal(strncmp(s->environment, "SITEMAPD_", 9), 0);
        assert_true(s->doc != NULL && *s->doc != '\0');
        assert_int_equal(s->kind == SETTING_CHOICE, s->choices != NULL);
        assert_true(s->kind != SETTING_ALIAS); /* config_compare knows lists of texts */
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(s->environment, config_settings[j].environment);
        if (!is_number(s))
            continue;
        assert_true(s->min <= s->max);
        assert_true(s->width == 8 || (s->width == 4 && s->max <= UINT32_MAX));
    }
    for (size_t t = 0; t < config_sections_count; t++) {
        const struct section_table *table = &config_sections[t];

        assert_ptr_equal(section_find(table->section, strlen(table->section)), table);
        for (size_t i = 0; i < table->setting_count; i++) {
            const struct setting *s = &table->settings[i];

            assert_ptr_equal(section_setting(table, s->key), s);
            assert_string_equal(s->section, table->section);
            assert_true(!is_number(s) || (s->width == 4 && s->max <= UINT32_MAX));
            assert_true(s->doc != NULL && *s->doc != '\0');
        }
    }
}

static void test_defaults(void **state)
{
    struct config *c;

    assert_non_null(c = config_new());
    assert_null(c->file);
    assert_string_equal(c->listen, "0.0.0.0:8080");
    assert_string_equal(c->admin_listen, "127.0.0.1:8081");
    assert_int_equal(c->max_connections, 10000);
    assert_int_equal(c->header_timeout_ms, 10000);
    assert_int_equal(c->body_timeout_ms, 30000);
    assert_int_equal(c->reply_timeout_ms, 60000);
    assert_int_equal(c->idle_timeout_ms, 75000);
    assert_string_equal(c->cache_control, "public, max-age=300, s-maxage=3600, "
                                          "stale-while-revalidate=86400, stale-if-error=604800");
    assert_int_equal(c->write_timeout_ms, 10000);
    assert_int_equal(c->shrink_guard_percent, 30);
    assert_true(c->snapshot_budget_bytes == 0);
    assert_true(c->page_store_bytes == 256u << 20);
    assert_int_equal(c->compression_level, 7);
    assert_true(c->max_body_bytes == 1ull << 20);
    assert_true(c->max_bulk_bytes == 2ull << 30);
    assert_true(c->max_bulk_entries == 1000000);
    assert_true(c->max_spool_bytes == 8ull << 30);
    assert_int_equal(c->max_header_bytes, 8192);
    assert_int_equal(c->max_rejections, 100);
    assert_string_equal(c->log_level, "info");
    assert_string_equal(c->log_format, "text");
    assert_null(c->access_log);
    assert_null(c->token);
    assert_false(c->strict_host);
    assert_int_equal(c->site_count, 0);
    assert_true(config_validate(c, NULL, NULL));
    config_unref(c);
    config_unref(NULL);
}

static void check_database(const char *want)
{
    struct config *c;

    assert_non_null(c = config_new());
    assert_string_equal(c->database, want);
    config_unref(c);
}

static void test_the_database_is_in_the_state_folder(void **state)
{
    setenv("STATE_DIRECTORY", "/run/state:/run/other", 1);
    check_database("/run/state/catalogue.db");
    unsetenv("STATE_DIRECTORY");
    if (geteuid() == 0) {
        check_database("/var/lib/sitemapd/catalogue.db");
        return;
    }
    setenv("XDG_STATE_HOME", "/home/x/state", 1);
    check_database("/home/x/state/sitemapd/catalogue.db");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/x", 1);
    check_database("/home/x/.local/state/sitemapd/catalogue.db");
}

/* ---- precedence ------------------------------------------------------------------------ */

static void test_flag_over_environment_over_file(void **state)
{
    static const char text[] = "[server]\nlisten = 127.0.0.1:1\nthreads = 1\nstrict_host = yes\n";
    struct config *c;
    struct mistake_list mistakes;

    setenv("SITEMAPD_LISTEN", "127.0.0.1:2", 1);
    setenv("SITEMAPD_SERVER_THREADS", "2", 1);
    for (int order = 0; order < 2; order++) { /* a weaker one that comes later changes nothing */
        assert_non_null(c = config_new());
        memset(&mistakes, 0, sizeof mistakes);
        if (order == 1)
            assert_true(config_set(c, "server.listen", "127.0.0.1:3", report_mistake, &mistakes));
        if (order == 1)
            assert_true(config_read_environment(c, report_mistake, &mistakes));
        assert_true(read_text(c, text, &mistakes));
        if (order == 0)
            assert_true(config_read_environment(c, report_mistake, &mistakes));
        if (order == 0)
            assert_true(config_set(c, "server.listen", "127.0.0.1:3", report_mistake, &mistakes));
        assert_string_equal(c->listen, "127.0.0.1:3");
        assert_int_equal(c->threads, 2);
        assert_true(c->strict_host);
        config_unref(c);
    }
    clear_environment();
}

static void test_every_setting_has_a_variable(void **state)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        const char *value = s->fallback != NULL           ? s->fallback
                            : s->kind == SETTING_ORIGIN   ? "https://a.example"
                            : s->kind == SETTING_URL      ? "https://a.example/"
                            : s->kind == SETTING_SIZE     ? "1G"
                            : s->kind == SETTING_IP_RANGE ? "10.0.0.0/8"
                            : s->kind == SETTING_POSTGRES ? "postgresql://a/b"
                            : s->kind == SETTING_HOST     ? "a.example"
                                                          : "value";
        struct config *c;
        struct mistake_list mistakes = {0};

        setenv(s->environment, value, 1);
        assert_non_null(c = config_new());
        config_read_environment(c, report_mistake, &mistakes);
        check_mistakes(s->environment, &mistakes, "");
        assert_int_equal(c->set_by[i].level, LEVEL_ENVIRONMENT);
        config_unref(c);

        setenv(s->environment, "\x01 bad", 1);
        assert_non_null(c = config_new());
        config_read_environment(c, report_mistake, &mistakes);
        if (s->kind != SETTING_PATH && s->kind != SETTING_OFF_OR_PATH && mistakes.count == 0)
            fail_msg("%s took nonsense", s->environment);
        config_unref(c);
        unsetenv(s->environment);
    }
}

static void test_lists_of_the_environment(void **state)
{
    static const char text[] = "[server]\ntrusted_proxies = 10.0.0.1 10.0.0.2\n"
                               "trusted_proxies = fd00::1\n";
    struct config *c;
    struct mistake_list mistakes;

    assert_non_null(c = config_new());
    assert_true(read_text(c, text, &mistakes));
    assert_int_equal(c->trusted_proxy_count, 3);
    setenv("SITEMAPD_SITE", " https://a.example  https://b.example\n", 1);
    setenv("SITEMAPD_SERVER_TRUSTED_PROXIES", "10.9.9.9", 1);
    assert_true(config_read_environment(c, report_mistake, &mistakes));
    assert_int_equal(c->origin_count, 2);
    assert_string_equal(c->origins[1], "https://b.example");
    assert_int_equal(c->trusted_proxy_count, 1);
    assert_string_equal(c->trusted_proxies[0], "10.9.9.9");
    assert_true(config_set(c, "server.site", "https://c.example", report_mistake, &mistakes));
    assert_true(config_set(c, "server.site", "https://d.example", report_mistake, &mistakes));
    assert_int_equal(c->origin_count, 2);
    assert_string_equal(c->origins[0], "https://c.example");
    config_unref(c);
    clear_environment();
}

static void test_environment_mistakes(void **state)
{
    struct config *c;
    struct mistake_list mistakes = {0};

    setenv("SITEMAPD_LISTEN", "here", 1);
    setenv("SITEMAPD_LOG_LEVEL", "", 1);          /* empty: as if absent */
    setenv("SITEMAPD_TOKEN", "se cret", 1);       /* is not shown */
    setenv("SITEMAPD_LOG_LEVL", "debug", 1);      /* mistyped */
    setenv("SITEMAPD_TRUSTED_PROXIES", "::1", 1); /* without its section */
    setenv("SITEMAPD_PORT", "tcp://1.2.3.4", 1);  /* of Kubernetes */
    setenv("SITEMAPD_SERVICE_HOST", "1.2.3.4", 1);
    setenv("SITEMAPD_CONFIG", "/x", 1);
    setenv("SITEMAPD_SERVER", "https://x", 1); /* of commands, like the next one */
    setenv("SITEMAPD_CA_FILE", "/x", 1);
    assert_non_null(c = config_new());
    assert_false(config_read_environment(c, report_mistake, &mistakes));
    check_mistakes(
        "environment", &mistakes,
        "- SITEMAPD_LISTEN: \"here\" must be an IP address and a port, such as "
        "127.0.0.1:8080 or [::1]:8080\n- SITEMAPD_TOKEN: must be visible ASCII characters "
        "without spaces\n- SITEMAPD_LOG_LEVL: unknown setting; did you mean "
        "SITEMAPD_LOG_LEVEL?\n- SITEMAPD_TRUSTED_PROXIES: unknown setting; did you mean "
        "SITEMAPD_SERVER_TRUSTED_PROXIES?\n");
    assert_string_equal(c->listen, "0.0.0.0:8080");
    config_unref(c);
    unsetenv("SITEMAPD_LOG_LEVL");
    unsetenv("SITEMAPD_TRUSTED_PROXIES");
    unsetenv("SITEMAPD_PORT");
    unsetenv("SITEMAPD_SERVICE_HOST");
    unsetenv("SITEMAPD_CONFIG");
    unsetenv("SITEMAPD_SERVER");
    unsetenv("SITEMAPD_CA_FILE");
    clear_environment();
}

static void test_flags(void **state)
{
    struct config *c;
    struct mistake_list mistakes = {0};

    assert_non_null(c = config_new());
    assert_true(config_set(c, "catalogue.database", "/x/y.db", report_mistake, &mistakes));
    assert_string_equal(c->database, "/x/y.db");
    assert_false(config_set(c, "server.listen", "x", report_mistake, &mistakes));
    assert_false(config_set(c, "server.nothing", "x", report_mistake, &mistakes));
    assert_false(config_set(c, "nothing", "x", NULL, NULL));
    assert_int_equal(mistakes.count, 2);
    assert_true(config_set(c, "log.access_log", "-", report_mistake, &mistakes));
    assert_string_equal(c->access_log, "-");
    assert_true(config_set(c, "log.access_log", "off", report_mistake, &mistakes));
    assert_null(c->access_log);
    config_unref(c);
}

struct differences {
    char text[256];
};

static void record_difference(void *context, const char *section, const char *key, bool live)
{
    struct differences *d = context;
    size_t len = strlen(d->text);
    snprintf(d->text + len, sizeof d->text - len, "%s.%s%s ", section, key, live ? " live" : "");
}

static void test_differences(void **state)
{
    struct config *a, *b;
    struct mistake_list mistakes = {0};
    struct differences d = {""};

    assert_non_null(a = config_new());
    setenv("STATE_DIRECTORY", "/elsewhere", 1);
    assert_non_null(b = config_new());
    unsetenv("STATE_DIRECTORY");
    assert_string_not_equal(a->database, b->database);
    config_compare(a, b, record_difference, &d);
    assert_string_equal(d.text, ""); /* nobody set either */
    assert_true(config_set(a, "admin.token", "first", report_mistake, &mistakes));
    assert_true(config_set(a, "log.level", "debug", report_mistake, &mistakes));
    assert_true(config_set(a, "server.threads", "2", report_mistake, &mistakes));
    assert_true(config_set(b, "server.threads", "2", report_mistake, &mistakes));
    assert_true(config_set(b, "server.strict_host", "yes", report_mistake, &mistakes));
    assert_true(config_set(a, "server.trusted_proxies", "10.0.0.1", report_mistake, &mistakes));
    assert_true(config_set(b, "server.trusted_proxies", "10.0.0.2", report_mistake, &mistakes));
    assert_true(config_set(b, "log.access_log", "/x", report_mistake, &mistakes));
    config_compare(a, b, record_difference, &d);
    assert_string_equal(d.text, "server.strict_host live server.trusted_proxies log.level live "
                                "log.access_log ");
    config_unref(a);
    config_unref(b);
}

static struct config *config_of(const char *text)
{
    struct mistake_list mistakes = {0};
    struct config *c = config_new();
    char path[] = "/tmp/sitemapd-config-XXXXXX";
    int fd = mkstemp(path);

    assert_non_null(c);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    assert_true(config_read_file(c, path, report_mistake, &mistakes));
    unlink(path);
    return c;
}

static void test_differences_of_sections(void **state)
{
    struct config *a = config_of("[site \"x\"]\norigin = https://x.example.com\n"
                                 "[site \"y\"]\norigin = https://y.example.com\n"
                                 "[engine \"google\"]\ncredentials_file = /g\n"
                                 "endpoint = https://a.example.com\n");
    struct config *b = config_of("[engine \"google\"]\ncredentials_file = /g\n"
                                 "endpoint = https://b.example.com\n"
                                 "[site \"z\"]\norigin = https://z.example.com\n"
                                 "[site \"x\"]\norigin = https://x.example.com\n"
                                 "index = /a.xml\n");
    struct differences d = {""};

    config_compare(a, a, record_difference, &d);
    assert_string_equal(d.text, "");
    config_compare(a, b, record_difference, &d);
    assert_string_equal(d.text, "site \"x\".index live site \"y\".(removed) live "
                                "site \"z\".(added) live engine \"google\".endpoint live ");
    config_unref(a);
    config_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences_of_sections),
        cmocka_unit_test(test_the_table_is_sound),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_the_database_is_in_the_state_folder),
        cmocka_unit_test(test_flag_over_environment_over_file),
        cmocka_unit_test(test_every_setting_has_a_variable),
        cmocka_unit_test(test_lists_of_the_environment),
        cmocka_unit_test(test_environment_mistakes),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_differences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
