/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Makes a manual page of a template: copies it, and puts in what the tables of commands and
 * settings hold, so that the page has no word that the program does not. A build tool. Usage:
 * manual TEMPLATE, with lines @COMMANDS@, @COMMON@, @ENVIRONMENT@, @SETTINGS@. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config/settings.h"
#include "server/cli/arguments.h"

#define WRAP 66 /* source lines, before escapes */

/* ---- mdoc(7) --------------------------------------------------------------------------- */

static void put_literal(char c)
{
    switch (c) {
    case '\\':
        fputs("\\e", stdout);
        break;
    case '-':
        fputs("\\-", stdout);
        break;
    case '\'':
        fputs("\\(aq", stdout);
        break;
    case '`':
        fputs("\\(ga", stdout);
        break;
    case '^':
        fputs("\\(ha", stdout);
        break;
    case '~':
        fputs("\\(ti", stdout);
        break;
    default:
        putchar(c);
    }
}

static void print_literal(const char *text, const char *end)
{
    for (const char *s = text; s < end; s++) {
        if ((s == text || s[-1] == '\n') && *s == '.')
            fputs("\\&", stdout);
        put_literal(*s);
    }
}

/* Prose: each sentence begins a line, as does what has no room in one; hyphens within words are
 * hyphens. */
static void print_prose(const char *text, const char *end)
{
    size_t column = 0;

    for (const char *s = text; s < end; s++) {
        bool in_word = s > text && isalpha((unsigned char)s[-1]) && isalpha((unsigned char)s[1]);

        if (*s == ' ' && (s[-1] == '.' || column + strcspn(s + 1, " ") > WRAP)) {
            putchar('\n');
            column = 0;
            if (s[1] == '.')
                fputs("\\&", stdout);
            continue;
        }
        column++;
        if (*s == '-' && in_word)
            putchar('-');
        else
            put_literal(*s);
    }
    putchar('\n');
}

static void print_text(const char *text)
{
    print_prose(text, text + strlen(text));
}

static void print_display(const char *text, const char *end)
{
    puts(".Bd -literal -offset indent -compact");
    print_literal(text, end);
    puts("\n.Ed");
}

/* Words of a synopsis: capitals are what people put in. */
static void print_words(const char *words)
{
    if (*words != '\0')
        printf(" Ar %s", words);
}

/* ---- commands -------------------------------------------------------------------------- */

static void print_options(const struct cli_option *options)
{
    puts(".Bl -tag -width Ds");
    for (; options != NULL && options->name != NULL; options++) {
        printf(".It Fl \\-%s", options->name + 2);
        print_words(options->value != NULL ? options->value : "");
        putchar('\n');
        print_text(options->doc);
    }
    puts(".El");
}

static void print_paragraphs(const char *text)
{
    for (bool first = true; *text != '\0'; first = false) {
        const char *end = strstr(text, "\n\n");

        if (end == NULL)
            end = text + strlen(text);
        if (!first)
            puts(".Pp");
        if (*text == ' ')
            print_display(text + strspn(text, " "), end);
        else
            print_prose(text, end);
        text = *end != '\0' ? end + 2 : end;
    }
}

static void print_command(const struct cli_command *c)
{
    printf(".It Cm %s", c->name);
    if (c->options != NULL && c->options->name != NULL)
        printf(" Oo Ar options Oc");
    print_words(c->synopsis);
    putchar('\n');
    print_paragraphs(c->help);
    if (c->options != NULL && c->options->name != NULL)
        print_options(c->options);
    for (const struct cli_example *e = c->examples; e->why != NULL; e++) {
        puts(".Pp");
        print_text(e->why);
        print_display(e->line, e->line + strlen(e->line));
    }
}

static void print_commands(void)
{
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        if (c->topic != NULL)
            printf("%s.Ss %s\n.Bl -tag -width Ds\n", c != cli_commands ? ".El\n" : "", c->topic);
        print_command(c);
    }
    puts(".El");
}

/* ---- settings -------------------------------------------------------------------------- */

static void print_environment(void)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];

        if (s->environment == NULL)
            continue;
        printf(".It Ev %s\n", s->environment);
        print_text(s->doc);
    }
}

static void print_setting(const struct setting *s)
{
    printf(".It Ic %s", s->key);
    if (s->fallback != NULL && strchr(s->fallback, ' ') == NULL)
        printf(" = %s", s->fallback);
    putchar('\n');
    print_text(s->doc);
    if (setting_needs_restart(s))
        print_text("Needs a restart.");
    if (s->fallback != NULL && strchr(s->fallback, ' ') != NULL) {
        puts("The default is");
        print_display(s->fallback, s->fallback + strlen(s->fallback));
    }
    if (s->environment != NULL)
        printf("Environment:\n.Ev %s .\n", s->environment);
}

static void print_section(const char *name, bool named, const struct setting *settings,
                          size_t count)
{
    printf(".Ss [%s%s]\\&\n", name, named ? " \\(dqname\\(dq" : "");
    print_text(section_intro(name));
    puts(".Bl -tag -width Ds");
    for (size_t i = 0; i < count; i++)
        if (settings[i].in_file && strcmp(settings[i].section, name) == 0)
            print_setting(&settings[i]);
    puts(".El");
}

static void print_settings(void)
{
    const char *section = "";

    for (size_t i = 0; i < config_settings_count; i++)
        if (strcmp(config_settings[i].section, section) != 0) {
            section = config_settings[i].section;
            print_section(section, false, config_settings, config_settings_count);
        }
    for (size_t i = 0; i < config_sections_count; i++)
        print_section(config_sections[i].section, true, config_sections[i].settings,
                      config_sections[i].setting_count);
}

/* ---- the template ---------------------------------------------------------------------- */

static void print_line(const char *line)
{
    if (strcmp(line, "@COMMANDS@\n") == 0)
        print_commands();
    else if (strcmp(line, "@COMMON@\n") == 0)
        print_options(common_options);
    else if (strcmp(line, "@ENVIRONMENT@\n") == 0)
        print_environment();
    else if (strcmp(line, "@SETTINGS@\n") == 0)
        print_settings();
    else
        fputs(line, stdout);
}

int main(int argc, char **argv)
{
    FILE *template = argc == 3 ? fopen(argv[1], "r") : NULL;
    char line[512];

    if (template == NULL || freopen(argv[2], "w", stdout) == NULL) {
        fputs("usage: manual TEMPLATE OUTPUT\n", stderr);
        return 2;
    }
    while (fgets(line, sizeof line, template) != NULL)
        print_line(line);
    fclose(template);
    return fflush(stdout) != 0 || ferror(stdout) ? 1 : 0;
}
