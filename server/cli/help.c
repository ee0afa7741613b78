/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Prints help: the overview, a group, a command. */
#include <stdio.h>
#include <string.h>

#include "server/cli/arguments.h"
#include "server/cli/output.h"

#define COLUMN 28 /* where the second column begins */

/* ---- text ------------------------------------------------------------------------------ */

/* Prints words up to `end` in lines of the output's width; the first line begins at `column`, as
 * the cursor does, the others are indented to it. */
static void print_wrapped(const char *text, const char *end, int column)
{
    int width = ink_width(stdout) - 1, at = column;

    while (text < end) {
        int len = (int)strcspn(text, " \n");

        if (len > end - text)
            len = (int)(end - text);
        if (at > column && at + 1 + len > width) {
            printf("\n%*s", column, "");
            at = column;
        }
        at += printf("%s%.*s", at > column ? " " : "", len, text);
        text += len;
        text += text < end;
    }
    putchar('\n');
}

static void print_heading(const char *text)
{
    printf("\n%s%s:%s\n", ink_on(stdout, INK_HEADING), text, ink_off(stdout));
}

/* Paragraphs, those that begin with a space as they are. */
static void print_paragraphs(const char *text)
{
    while (*text != '\0') {
        const char *end = strstr(text, "\n\n");

        if (end == NULL)
            end = text + strlen(text);
        putchar('\n');
        if (*text == ' ')
            printf("%.*s\n", (int)(end - text), text);
        else
            print_wrapped(text, end, 0);
        text = *end != '\0' ? end + 2 : end;
    }
}

/* One row of two columns; if the first is too wide, the second begins on the next line. */
static void print_row(const char *left, const char *right)
{
    int len = (int)strlen(left);

    printf("  %s%s%s", ink_on(stdout, INK_CODE), left, ink_off(stdout));
    if (len > COLUMN - 4)
        printf("\n%*s", COLUMN, "");
    else
        printf("%*s", COLUMN - 2 - len, "");
    print_wrapped(right, right + strlen(right), COLUMN);
}

static void print_options(const struct cli_option *options)
{
    char left[64];

    for (; options != NULL && options->name != NULL; options++) {
        snprintf(left, sizeof left, "%s%s%s", options->name, options->value != NULL ? " " : "",
                 options->value != NULL ? options->value : "");
        print_row(left, options->doc);
    }
}

static void print_example(const char *why, const char *line)
{
    printf("  %s\n", why);
    while (*line != '\0') {
        int len = (int)strcspn(line, "\n");

        printf("    %s%.*s%s\n", ink_on(stdout, INK_CODE), len, line, ink_off(stdout));
        line += len;
        line += *line == '\n';
    }
}

/* ---- pages ----------------------------------------------------------------------------- */

static void print_commands(const struct cli_command *commands, const char *group)
{
    char left[64];

    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        if (group != NULL &&
            (strncmp(c->name, group, strlen(group)) != 0 || c->name[strlen(group)] != ' '))
            continue;
        if (group == NULL && c->topic != NULL)
            print_heading(c->topic);
        snprintf(left, sizeof left, "%s %s", c->name, c->synopsis);
        print_row(left, c->summary);
    }
}

static void print_usage(const char *words, bool options, const char *behind)
{
    printf("%susage:%s sitemapd %s%s%s%s\n", ink_on(stdout, INK_HEADING), ink_off(stdout), words,
           options ? " [options]" : "", *behind != '\0' ? " " : "", behind);
}

static void print_command(const struct cli_command *c)
{
    bool takes_options = c->options != NULL && c->options->name != NULL;

    print_usage(c->name, takes_options, c->synopsis);
    print_paragraphs(c->help);
    print_heading(c->examples[1].why != NULL ? "Examples" : "Example");
    for (const struct cli_example *e = c->examples; e->why != NULL; e++)
        print_example(e->why, e->line);
    if (takes_options) {
        print_heading("Options");
        print_options(c->options);
    }
    print_heading("Global options");
    print_options(common_options);
}

static void print_all(const struct cli_command *commands)
{
    print_usage("COMMAND", true, "");
    print_paragraphs("Keeps a catalogue of a site's sitemap files and serves crawlers a sitemap "
                     "index of them. Commands work on the catalogue's file, whether or not a "
                     "server runs on it.");
    print_heading("Quick start");
    print_example("A folder of sitemap files, watched, listed and served:",
                  "sitemapd serve --site https://www.example.com --source ./sitemaps");
    print_example("Or files on other servers, registered one by one or all at once:",
                  "sitemapd site add https://www.example.com\n"
                  "sitemapd add https://www.example.com/sitemap-products.xml\n"
                  "sitemapd import old/sitemap_index.xml\n"
                  "sitemapd serve");
    print_commands(commands, NULL);
    print_heading("Global options");
    print_options(common_options);
    print_row("--version", "show the version");
    print_paragraphs(
        "`sitemapd COMMAND --help` shows details and examples; so do the manual pages sitemapd(1) "
        "and sitemapd.conf(5). Exit status: 0 success, 1 failure, 2 wrong usage.");
}

void help_print(const struct arguments *a, const struct cli_command *commands)
{
    if (a->command != NULL) {
        print_command(a->command);
    } else if (a->group != NULL) {
        char words[64];

        snprintf(words, sizeof words, "%s COMMAND", a->group);
        print_usage(words, true, "");
        print_heading("Commands");
        print_commands(commands, a->group);
        printf("\n`sitemapd %s COMMAND --help` shows details and examples.\n", a->group);
    } else {
        print_all(commands);
    }
}
