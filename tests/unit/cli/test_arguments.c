/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How words become a command with its options. */
#include "tests/unit/cli/check.h"

#include "server/cli/arguments.h"

static int run(struct cli *cli)
{
    (void)cli;
    return 0;
}

static const struct cli_option list_options[] = {
    {"--json", NULL, "as JSON"},
    {"--index", "URL", "only this"},
    {0},
};

static const struct cli_option add_options[] = {
    {"--cross-host", "HOST", "repeatable"},
    {"--lastmod", "T", "a date"},
    {0},
};

static const struct cli_command commands[] = {
    {"list", "", "lists", "help", list_options, 0, 0, .run = run},
    {"import", "FILE|-", "imports", "help", NULL, 1, 1, .run = run},
    {"add", "LOC", "adds", "help", add_options, 1, 1, .run = run},
    {"site add", "ORIGIN", "adds a site", "help", add_options, 1, 1, .run = run},
    {"site list", "", "lists sites", "help", list_options, 0, 0, .run = run},
    {0},
};

#define MAX_WORDS 12

/* A command line, split at blanks; `''` is an empty word. */
struct line {
    char text[256];
    char *argv[MAX_WORDS + 2];
    int argc;
    struct arguments arguments;
    char why[256];
};

static bool parse(struct line *l, const char *words)
{
    char *rest;

    memset(l, 0, sizeof *l);
    snprintf(l->text, sizeof l->text, "%s", words);
    l->argv[l->argc++] = strdup("sitemapd");
    for (char *w = strtok_r(l->text, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        assert_true(l->argc <= MAX_WORDS);
        l->argv[l->argc++] = strcmp(w, "''") == 0 ? w + 2 : w;
    }
    return arguments_parse(l->argc, l->argv, commands, &l->arguments, l->why, sizeof l->why);
}

static void done(struct line *l)
{
    arguments_done(&l->arguments);
    free(l->argv[0]);
}

static void test_taken(void **state)
{
    static const struct {
        const char *line, *command, *word, *index, *lastmod;
        bool json;
    } rows[] = {
        {"list", "list", NULL, NULL, NULL, false},
        {"list --json", "list", NULL, NULL, NULL, true},
        {"--json list", "list", NULL, NULL, NULL, true},
        {"--index /x.xml list", "list", NULL, "/x.xml", NULL, false},
        {"list --index=/x.xml --json", "list", NULL, "/x.xml", NULL, true},
        {"list --index=", "list", NULL, "", NULL, false},
        {"list --index ''", "list", NULL, "", NULL, false},
        {"list --index a --index b", "list", NULL, "b", NULL, false},
        {"list --index -", "list", NULL, "-", NULL, false},
        {"list --index=--json", "list", NULL, "--json", NULL, false},
        {"import -", "import", "-", NULL, NULL, false},
        {"import -- --file", "import", "--file", NULL, NULL, false},
        {"-- import x", "import", "x", NULL, NULL, false},
        {"add --lastmod 2026 https://a/b", "add", "https://a/b", NULL, "2026", false},
        {"add https://a/b --lastmod 2026", "add", "https://a/b", NULL, "2026", false},
        {"site add https://a", "site add", "https://a", NULL, NULL, false},
        {"site --lastmod T add https://a", "site add", "https://a", NULL, "T", false},
        {"--config /c --database /d site list", "site list", NULL, NULL, NULL, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct line l;
        const char *index, *lastmod;

        if (!parse(&l, rows[i].line))
            fail_msg("%s: %s", rows[i].line, l.why);
        index = arguments_value(&l.arguments, "--index");
        lastmod = arguments_value(&l.arguments, "--lastmod");
        assert_string_equal(l.arguments.command->name, rows[i].command);
        assert_int_equal(l.arguments.word_count, rows[i].word != NULL);
        if (rows[i].word != NULL)
            assert_string_equal(l.arguments.words[0], rows[i].word);
        assert_int_equal(arguments_has(&l.arguments, "--json"), rows[i].json);
        assert_string_equal(index != NULL ? index : "(none)",
                            rows[i].index != NULL ? rows[i].index : "(none)");
        assert_string_equal(lastmod != NULL ? lastmod : "(none)",
                            rows[i].lastmod != NULL ? rows[i].lastmod : "(none)");
        done(&l);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *line, *why;
    } rows[] = {
        {"", "the command is missing; sitemapd --help lists them"},
        {"--json", "the command is missing; sitemapd --help lists them"},
        {"lsit", "lsit: unknown command; did you mean list?"},
        {"imprt x", "imprt: unknown command; did you mean import?"},
        {"sites list", "sites: unknown command; did you mean site?"},
        {"frobnicate", "frobnicate: unknown command; sitemapd --help lists them"},
        {"site", "site: the command is missing: give one of add, list"},
        {"site ad", "site ad: unknown command; did you mean site add?"},
        {"site frobnicate", "site: the command is missing: give one of add, list"},
        {"list --jsn", "list: unknown option --jsn; did you mean --json?"},
        {"list --databse x", "list: unknown option --databse; did you mean --database?"},
        {"list --frobnicate", "list: unknown option --frobnicate; sitemapd list --help lists them"},
        {"list -j", "list: unknown option -j; sitemapd list --help lists them"},
        {"list --lastmod 2026", "list: unknown option --lastmod; sitemapd list --help lists them"},
        {"list --json=yes", "--json: the option takes no value"},
        {"list --index", "--index: the value is missing: --index URL"},
        {"list --index --json", "--index: the value is missing: --index URL"},
        {"list a", "list: unexpected argument a: sitemapd list"},
        {"import", "import: an argument is missing: sitemapd import FILE|-"},
        {"import a b", "import: unexpected argument b: sitemapd import FILE|-"},
        {"site add", "site add: an argument is missing: sitemapd site add ORIGIN"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct line l;

        if (parse(&l, rows[i].line))
            fail_msg("taken: %s", rows[i].line);
        if (strcmp(l.why, rows[i].why) != 0)
            fail_msg("%s: \"%s\", want \"%s\"", rows[i].line, l.why, rows[i].why);
        done(&l);
    }
}

static void test_help_and_version(void **state)
{
    static const struct {
        const char *line, *command, *group;
        bool help, version;
    } rows[] = {
        {"--help", NULL, NULL, true, false},
        {"-h", NULL, NULL, true, false},
        {"help", NULL, NULL, true, false},
        {"list --help", "list", NULL, true, false},
        {"help list", "list", NULL, true, false},
        {"import --help", "import", NULL, true, false}, /* words may lack */
        {"list a b --help --frobnicate", "list", NULL, true, false},
        {"site --help", NULL, "site", true, false},
        {"help site add", "site add", NULL, true, false},
        {"--version", NULL, NULL, false, true},
        {"list --version", NULL, NULL, false, true},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct line l;

        if (!parse(&l, rows[i].line))
            fail_msg("%s: %s", rows[i].line, l.why);
        assert_int_equal(l.arguments.help, rows[i].help);
        assert_int_equal(l.arguments.version, rows[i].version);
        if (rows[i].command == NULL)
            assert_null(l.arguments.command);
        else
            assert_string_equal(l.arguments.command->name, rows[i].command);
        if (rows[i].group != NULL)
            assert_string_equal(l.arguments.group, rows[i].group);
        done(&l);
    }
}

static void test_repeated_options(void **state)
{
    struct line l;
    const char **hosts;

    assert_true(parse(&l, "site add https://a --cross-host x --lastmod T --cross-host=y"));
    hosts = arguments_values(&l.arguments, "--cross-host");
    assert_string_equal(hosts[0], "x");
    assert_string_equal(hosts[1], "y");
    assert_null(hosts[2]);
    free((void *)hosts);
    done(&l);
}

static void test_a_password_is_not_for_all_to_read(void **state)
{
    struct line l;

    assert_true(parse(&l, "list --index postgresql://me:pass:w@db/name?x=a:b@c"));
    assert_string_equal(arguments_value(&l.arguments, "--index"),
                        "postgresql://me:pass:w@db/name?x=a:b@c");
    assert_string_equal(l.argv[3], "postgresql://me:******@db/name?x=a:b@c");
    done(&l);
    assert_true(parse(&l, "list --index=postgresql://me:word@db"));
    assert_string_equal(arguments_value(&l.arguments, "--index"), "postgresql://me:word@db");
    assert_string_equal(l.argv[2], "--index=postgresql://me:****@db");
    done(&l);
    assert_true(parse(&l, "list --index postgresql://me@db:5432/a:b@c"));
    assert_string_equal(l.argv[3], "postgresql://me@db:5432/a:b@c");
    done(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_help_and_version),
        cmocka_unit_test(test_repeated_options),
        cmocka_unit_test(test_a_password_is_not_for_all_to_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
