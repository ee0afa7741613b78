#include <stdio.h>
#include <string.h>

#include "server/cli/completion.h"

static void print_doc(const char *doc)
{
    fputs(" -d ", stdout);
    completion_quote(doc);
    putchar('\n');
}

/* What is offered for a kind; "": nothing by itself. */
static const char *offers(enum completion_kind kind)
{
    switch (kind) {
    case COMPLETION_FOLDER:
        return " -a '(__fish_complete_directories)'";
    case COMPLETION_SHELL:
        return " -a '" COMPLETION_SHELLS "'";
    case COMPLETION_SITE:
        return " -a '(__sitemapd_names " COMPLETION_SITE_LIST ")'";
    case COMPLETION_INDEX:
        return " -a '(__sitemapd_names " COMPLETION_INDEX_LIST ")'";
    case COMPLETION_NOTHING:
    case COMPLETION_FILE:
    case COMPLETION_KINDS:
        break;
    }
    return "";
}

static void print_option(const char *condition, const struct cli_option *o)
{
    enum completion_kind kind = completion_of_value(o);

    printf("complete -c sitemapd%s -l %s", condition, o->name + 2);
    if (o->value != NULL)
        printf(kind == COMPLETION_FILE ? " -r -F" : " -x%s", offers(kind));
    print_doc(o->doc);
}

/* Prints the name of each option that takes a value. */
static void print_value_options(const struct cli_command *commands)
{
    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        if (o->value != NULL)
            printf(" %s", o->name);
    for (const struct cli_command *c = commands; c->name != NULL; c++)
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++)
            if (o->value != NULL && !completion_seen(commands, c, o))
                printf(" %s", o->name);
}

static void print_commands(const struct cli_command *commands)
{
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char group[32];

        completion_group(c, group);
        if (*group != '\0' && completion_is_first(commands, c))
            printf("complete -c sitemapd -n '__sitemapd_is \"\"' -a %s -d '%s ...'\n", group,
                   group);
        printf("complete -c sitemapd -n '__sitemapd_is \"%s\"' -a %s", group, completion_word(c));
        print_doc(c->summary);
    }
}

static void print_words(const struct cli_command *c)
{
    enum completion_kind kind = completion_of_word(c);

    if (kind == COMPLETION_NOTHING)
        return;
    printf("complete -c sitemapd -n '__sitemapd_is \"%s\"'%s\n", c->name,
           kind == COMPLETION_FILE ? " -F" : offers(kind));
}

void completion_fish(const struct cli_command *commands)
{
    fputs("# fish completion for sitemapd, made by `sitemapd completion fish`\n"
          "# True where the words so far are this command: options and their values are none.\n"
          "function __sitemapd_is\n"
          "    set -l words (commandline -xpc 2>/dev/null; or commandline -opc)\n"
          "    set -l command\n"
          "    set -l skip no\n"
          "    for word in $words[2..-1]\n"
          "        if test $skip = yes\n"
          "            set skip no\n"
          "        else if contains -- $word",
          stdout);
    print_value_options(commands);
    fputs("\n"
          "            set skip yes\n"
          "        else if not string match -q -- '-*' $word\n"
          "            if not contains -- \"$command\"",
          stdout);
    for (const struct cli_command *c = commands; c->name != NULL; c++)
        if (strchr(c->name, ' ') != NULL || completion_of_word(c) != COMPLETION_NOTHING)
            printf(" '%s'", c->name);
    fputs("\n"
          "                set -a command $word\n"
          "            end\n"
          "        end\n"
          "    end\n"
          "    test \"$command\" = $argv[1]\n"
          "end\n"
          "# The sites or indexes of the catalogue that the words name, or the configured one.\n"
          "function __sitemapd_names\n"
          "    set -l words (commandline -xpc 2>/dev/null; or commandline -opc)\n"
          "    set -l catalogue\n"
          "    for at in (seq 2 (count $words))\n"
          "        switch $words[$at]\n"
          "            case '--config=*' '--database=*'\n"
          "                set -a catalogue $words[$at]\n"
          "            case --config --database\n"
          "                set -a catalogue $words[$at] $words[(math $at + 1)]\n"
          "        end\n"
          "    end\n"
          "    command $words[1] $argv[1] list --json $catalogue 2>/dev/null |\n"
          "        string replace -rf '^.*\"'$argv[2]'\":\"([^\"]*)\".*$' '$1'\n"
          "end\n"
          "complete -c sitemapd -f\n",
          stdout);
    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        print_option("", o);
    fputs("complete -c sitemapd -n '__sitemapd_is \"\"' -l version -d 'show the version'\n",
          stdout);
    print_commands(commands);
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char condition[96];

        snprintf(condition, sizeof condition, " -n '__sitemapd_is \"%s\"'", c->name);
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++)
            print_option(condition, o);
        print_words(c);
    }
}
