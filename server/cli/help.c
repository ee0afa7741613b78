#include <stdio.h>
#include <string.h>

#include "server/cli/arguments.h"

#define COLUMN 30

/* One line of two columns; what is too wide for the first puts the second below it. */
static void print_row(const char *left, const char *right)
{
    if (strlen(left) > COLUMN - 4)
        printf("  %s\n%*s%s\n", left, COLUMN, "", right);
    else
        printf("  %-*s%s\n", COLUMN - 2, left, right);
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

static void print_commands(const struct cli_command *commands, const char *group)
{
    char left[64];

    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        if (group != NULL &&
            (strncmp(c->name, group, strlen(group)) != 0 || c->name[strlen(group)] != ' '))
            continue;
        snprintf(left, sizeof left, "%s %s", c->name, c->synopsis);
        print_row(left, c->summary);
    }
}

static void print_command(const struct cli_command *c)
{
    bool takes_options = c->options != NULL && c->options->name != NULL;

    printf("usage: sitemapd %s%s%s%s\n\n%s\n", c->name, takes_options ? " [options]" : "",
           *c->synopsis != '\0' ? " " : "", c->synopsis, c->help);
    if (takes_options) {
        printf("\noptions:\n");
        print_options(c->options);
    }
    printf("\noptions of every command:\n");
    print_options(common_options);
}

void help_print(const struct arguments *a, const struct cli_command *commands)
{
    if (a->command != NULL) {
        print_command(a->command);
        return;
    }
    if (a->group != NULL) {
        printf("usage: sitemapd %s COMMAND [options]\n\ncommands:\n", a->group);
        print_commands(commands, a->group);
        return;
    }
    printf("usage: sitemapd COMMAND [options]\n\n"
           "Keeps a catalogue of a site's sitemap files and serves crawlers a sitemap index of\n"
           "them. Commands work on the catalogue's file, whether or not a server runs on it.\n\n"
           "commands:\n");
    print_commands(commands, NULL);
    printf("\noptions of every command:\n");
    print_options(common_options);
    print_row("--version", "show the version");
    printf("\nA first try:\n"
           "  sitemapd site add https://www.example.com\n"
           "  sitemapd add https://www.example.com/sitemap-products.xml\n"
           "  sitemapd serve\n\n"
           "`sitemapd COMMAND --help` tells more and shows examples.\n"
           "Exit status: 0 done, 1 could not, 2 wrong usage.\n");
}
