/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses the command line by the table of commands, with suggestions for mistyped words. */
#include "server/cli/arguments.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/suggest.h"

const struct cli_option common_options[] = {
    {"--config", "FILE", "read this configuration ($SITEMAPD_CONFIG)"},
    {"--database", "FILE", "work on this catalogue ($SITEMAPD_DATABASE)"},
    {"--shared", "URL", "share the catalogue through PostgreSQL ($SITEMAPD_SHARED)"},
    {"--server", "URL", "use this server's API, not a file ($SITEMAPD_SERVER)"},
    {"--token-file", "FILE", "file with its token (default: $SITEMAPD_TOKEN)"},
    {"--ca-file", "FILE",
     "trust these CA certificates (PEM) instead of the system's ($SITEMAPD_CA_FILE)"},
    {"--help", NULL, "show this help"},
    {0},
};

struct parse {
    const struct cli_command *commands;
    struct arguments *out;
    char *why;
    size_t why_size;
};

static bool wrong(struct parse *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool wrong(struct parse *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->why, p->why_size, format, args);
    va_end(args);
    return false;
}

static const struct cli_option *find_option(const struct cli_option *options, const char *name,
                                            size_t len)
{
    for (; options != NULL && options->name != NULL; options++)
        if (strlen(options->name) == len && strncmp(options->name, name, len) == 0)
            return options;
    return NULL;
}

/* Finds an option of any command: while words are collected, the command is unknown, but it must be
 * known whether the next word is a value. An option takes a value in all commands or in none. */
static const struct cli_option *find_anywhere(const struct parse *p, const char *name, size_t len)
{
    const struct cli_option *found = find_option(common_options, name, len);

    for (const struct cli_command *c = p->commands; found == NULL && c->name != NULL; c++)
        found = find_option(c->options, name, len);
    return found;
}

/* ---- gathering ------------------------------------------------------------------------- */

/* All users who can list processes can read their arguments: replaces the password in a URL by
 * stars, which `ps` shows from now on. */
static void set_value(struct given_option *given, char *value)
{
    char *host = strstr(value, "://"), *end = host != NULL ? strpbrk(host + 3, "@/?#") : NULL;
    char *password =
        end != NULL && *end == '@' ? memchr(host + 3, ':', (size_t)(end - host - 3)) : NULL;

    given->value = value;
    if (password == NULL || (given->hidden = strdup(value)) == NULL)
        return;
    given->value = given->hidden;
    memset(password + 1, '*', (size_t)(end - password - 1));
}

/* Takes the option at argv[*at] and moves `*at` to its last word. */
static bool parse_option(struct parse *p, int argc, char **argv, int *at)
{
    char *word = argv[*at], *equals = strchr(word, '=');
    size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
    struct given_option *given = &p->out->given[p->out->given_count];
    const struct cli_option *option;

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        p->out->help = true;
        return true;
    }
    if (strcmp(word, "--version") == 0) {
        p->out->version = true;
        return true;
    }
    option = find_anywhere(p, word, len);
    p->out->given_count++;
    if (option == NULL) { /* the command may provide a suggestion later */
        given->name = word;
        return true;
    }
    given->name = option->name;
    if (option->value == NULL)
        return equals == NULL || wrong(p, "%s: the option takes no value", option->name);
    if (equals != NULL) {
        set_value(given, equals + 1);
        return true;
    }
    if (*at + 1 >= argc || strncmp(argv[*at + 1], "--", 2) == 0)
        return wrong(p, "%s: the value is missing: %s %s", option->name, option->name,
                     option->value);
    set_value(given, argv[++*at]);
    return true;
}

static bool gather(struct parse *p, int argc, char **argv)
{
    struct arguments *out = p->out;
    bool options = true;

    out->words = calloc((size_t)argc + 1, sizeof *out->words);
    out->given = calloc((size_t)argc + 1, sizeof *out->given);
    if (out->words == NULL || out->given == NULL)
        return wrong(p, "out of memory");
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!parse_option(p, argc, argv, &i))
                return false;
        } else {
            out->words[out->word_count++] = argv[i];
        }
    }
    return true;
}

/* ---- the command ----------------------------------------------------------------------- */

static void drop_words(struct arguments *a, size_t count)
{
    a->word_count -= count;
    memmove(a->words, a->words + count, a->word_count * sizeof *a->words);
}

/* The length of the group in a command's name ("site add": 4); 0: none. */
static size_t group_len(const struct cli_command *c)
{
    const char *space = strchr(c->name, ' ');

    return space != NULL ? (size_t)(space - c->name) : 0;
}

static bool in_group(const struct cli_command *c, const char *group)
{
    size_t len = group_len(c);

    return len > 0 && strlen(group) == len && strncmp(c->name, group, len) == 0;
}

/* The first word is a group; the second selects the command. */
static bool find_in_group(struct parse *p, const char *group)
{
    const char *word = p->out->word_count > 1 ? p->out->words[1] : NULL;
    struct suggestion near = {0};
    char all[128] = "";

    for (const struct cli_command *c = p->commands; c->name != NULL; c++) {
        const char *name = c->name + group_len(c) + 1;
        size_t len = strlen(all);

        if (!in_group(c, group))
            continue;
        if (word != NULL && strcmp(name, word) == 0) {
            p->out->command = c;
            drop_words(p->out, 2);
            return true;
        }
        if (word != NULL)
            suggest_consider(&near, word, name);
        snprintf(all + len, sizeof all - len, "%s%s", len > 0 ? ", " : "", name);
    }
    p->out->group = group;
    if (p->out->help)
        return true;
    if (near.word != NULL)
        return wrong(p, "%s %s: unknown command; did you mean %s %s?", group, word, group,
                     near.word);
    return wrong(p, "%s: the command is missing: give one of %s", group, all);
}

/* Writes the command or group nearest to the first word to `out`; "": none is near. */
static void find_nearest(const struct parse *p, const char *word, char *out, size_t size)
{
    size_t nearest = SIZE_MAX;
    char name[32];

    *out = '\0';
    for (const struct cli_command *c = p->commands; c->name != NULL; c++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(c->name, " "), c->name);
        if (!suggest_is_close(word, name) || suggest_distance(word, name) >= nearest)
            continue;
        nearest = suggest_distance(word, name);
        snprintf(out, size, "%s", name);
    }
}

static bool find_command(struct parse *p)
{
    const char *word = p->out->words[0];
    char nearest[32];

    assert(word != NULL);
    /* "crawlers import", though `crawlers` alone is a command too. */
    for (const struct cli_command *c = p->commands; c->name != NULL; c++) {
        if (!in_group(c, word) || p->out->word_count < 2 ||
            strcmp(c->name + group_len(c) + 1, p->out->words[1]) != 0)
            continue;
        p->out->command = c;
        drop_words(p->out, 2);
        return true;
    }
    for (const struct cli_command *c = p->commands; c->name != NULL; c++) {
        if (strcmp(c->name, word) == 0) {
            p->out->command = c;
            drop_words(p->out, 1);
            return true;
        }
        if (in_group(c, word))
            return find_in_group(p, word);
    }
    find_nearest(p, word, nearest, sizeof nearest);
    if (*nearest != '\0')
        return wrong(p, "%s: unknown command; did you mean %s?", word, nearest);
    return wrong(p, "%s: unknown command; sitemapd --help lists them", word);
}

/* ---- validation ------------------------------------------------------------------------ */

static bool check_options(struct parse *p)
{
    const struct cli_command *command = p->out->command;

    for (size_t i = 0; i < p->out->given_count; i++) {
        const char *name = p->out->given[i].name;
        size_t len = strlen(name);
        struct suggestion near = {0};

        if (find_option(common_options, name, len) != NULL ||
            find_option(command->options, name, len) != NULL)
            continue;
        for (const struct cli_option *o = command->options; o != NULL && o->name != NULL; o++)
            suggest_consider(&near, name, o->name);
        for (const struct cli_option *o = common_options; o->name != NULL; o++)
            suggest_consider(&near, name, o->name);
        if (near.word != NULL)
            return wrong(p, "%s: unknown option %s; did you mean %s?", command->name, name,
                         near.word);
        return wrong(p, "%s: unknown option %s; sitemapd %s --help lists them", command->name, name,
                     command->name);
    }
    return true;
}

static bool check_words(struct parse *p)
{
    const struct cli_command *c = p->out->command;

    if (p->out->word_count < c->min_words)
        return wrong(p, "%s: an argument is missing: sitemapd %s %s", c->name, c->name,
                     c->synopsis);
    if (p->out->word_count > c->max_words)
        return wrong(p, "%s: unexpected argument %s: sitemapd %s%s%s", c->name,
                     p->out->words[c->max_words], c->name, *c->synopsis != '\0' ? " " : "",
                     c->synopsis);
    return true;
}

bool arguments_parse(int argc, char **argv, const struct cli_command *commands,
                     struct arguments *out, char *why, size_t why_size)
{
    struct parse p = {.commands = commands, .out = out, .why = why, .why_size = why_size};

    memset(out, 0, sizeof *out);
    if (!gather(&p, argc, argv))
        return false;
    if (out->words[0] != NULL && strcmp(out->words[0], "help") == 0) {
        out->help = true;
        drop_words(out, 1);
    }
    if (out->version)
        return true;
    if (out->word_count == 0) {
        if (!out->help)
            return wrong(&p, "the command is missing; sitemapd --help lists them");
        return true;
    }
    if (!find_command(&p))
        return false;
    return out->help || (check_options(&p) && check_words(&p));
}

void arguments_done(struct arguments *a)
{
    free(a->words);
    for (size_t i = 0; i < a->given_count; i++)
        free(a->given[i].hidden);
    free(a->given);
    memset(a, 0, sizeof *a);
}

/* ---- reading --------------------------------------------------------------------------- */

bool arguments_has(const struct arguments *a, const char *name)
{
    for (size_t i = 0; i < a->given_count; i++)
        if (strcmp(a->given[i].name, name) == 0)
            return true;
    return false;
}

const char *arguments_value(const struct arguments *a, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < a->given_count; i++)
        if (strcmp(a->given[i].name, name) == 0)
            value = a->given[i].value;
    return value;
}

const char **arguments_values(const struct arguments *a, const char *name)
{
    const char **values = calloc(a->given_count + 1, sizeof *values);
    size_t count = 0;

    for (size_t i = 0; values != NULL && i < a->given_count; i++)
        if (strcmp(a->given[i].name, name) == 0)
            values[count++] = a->given[i].value;
    return values;
}
