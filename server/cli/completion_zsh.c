#include <stdio.h>
#include <string.h>

#include "server/cli/completion.h"

/* Text within a quoted specification: brackets and colons would end it. */
static void print_escaped(const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("[]:\\", *text) != NULL)
            printf("\\%c", *text);
        else if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
}

static const char *action(enum completion_kind kind)
{
    switch (kind) {
    case COMPLETION_FILE:
        return "_files";
    case COMPLETION_FOLDER:
        return "_files -/";
    case COMPLETION_SHELL:
        return "(" COMPLETION_SHELLS ")";
    case COMPLETION_SITE:
        return " _sitemapd_names " COMPLETION_SITE_LIST; /* the blank: called as it stands */
    case COMPLETION_INDEX:
        return " _sitemapd_names " COMPLETION_INDEX_LIST;
    case COMPLETION_NOTHING:
    case COMPLETION_KINDS:
        break;
    }
    return " ";
}

static void print_option(const struct cli_option *o)
{
    printf(" \\\n            '%s%s%s[", strstr(o->doc, "repeatable") != NULL ? "*" : "", o->name,
           o->value != NULL ? "=" : "");
    print_escaped(o->doc);
    putchar(']');
    if (o->value != NULL) {
        putchar(':');
        print_escaped(o->value);
        printf(":%s", action(completion_of_value(o)));
    }
    putchar('\'');
}

static void print_arguments(const struct cli_command *c)
{
    printf("        '%s') _arguments -s $common", c->name);
    for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++)
        print_option(o);
    if (c->max_words > 0) {
        fputs(" \\\n            '1:", stdout);
        print_escaped(c->synopsis);
        printf(":%s'", action(completion_of_word(c)));
    }
    fputs(" ;;\n", stdout);
}

/* The words of a group, or of the first level where it is "". */
static void print_words(const struct cli_command *commands, const char *group)
{
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char of[32];

        completion_group(c, of);
        if (strcmp(of, group) == 0) {
            printf(" \\\n            '%s:", completion_word(c));
            print_escaped(c->summary);
            putchar('\'');
        } else if (*group == '\0' && completion_is_first(commands, c)) {
            printf(" \\\n            '%s:%s ...'", of, of);
        }
    }
    fputs(")\n", stdout);
}

static void print_groups(const struct cli_command *commands)
{
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char group[32];

        completion_group(c, group);
        if (*group == '\0' || !completion_is_first(commands, c))
            continue;
        printf("        %s)\n        commands=(", group);
        print_words(commands, group);
        fputs("        _arguments -C $common '1: :->word' '*:: :->rest' && return\n"
              "        command+=\" $words[1]\" ;;\n",
              stdout);
    }
}

void completion_zsh(const struct cli_command *commands)
{
    fputs("#compdef sitemapd\n"
          "# zsh completion for sitemapd, made by `sitemapd completion zsh`\n"
          "# The sites or indexes of the catalogue that the words name, or the configured one.\n"
          "_sitemapd_names() {\n"
          "    local -a catalogue names\n"
          "    local at\n"
          "    for ((at = 2; at <= $#typed; at++)); do\n"
          "        case $typed[at] in\n"
          "        --config=*|--database=*) catalogue+=(${(Q)typed[at]}) ;;\n"
          "        --config|--database) catalogue+=($typed[at] ${(Q)~typed[at+1]}) ;;\n"
          "        esac\n"
          "    done\n"
          "    names=(${(f)\"$(${(Q)~typed[1]} $1 list --json $catalogue 2>/dev/null |\n"
          "        sed -n 's/^.*\"'$2'\":\"\\([^\"]*\\)\".*$/\\1/p')\"})\n"
          "    compadd -a names\n"
          "}\n"
          "_sitemapd() {\n"
          "    local -a typed=(\"${words[@]}\")\n"
          "    local context curcontext=\"$curcontext\" state state_descr line command\n"
          "    local -a common commands\n"
          "    typeset -A opt_args\n"
          "    common=(",
          stdout);
    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        print_option(o);
    fputs(")\n    commands=(", stdout);
    print_words(commands, "");
    fputs("    _arguments -C $common '--version[show the version]' '1: :->word' '*:: :->rest' && "
          "return\n"
          "    if [[ $state == rest ]]; then\n"
          "        command=$words[1]\n"
          "        case $command in\n",
          stdout);
    print_groups(commands);
    fputs("        esac\n"
          "    fi\n"
          "    if [[ $state == word ]]; then\n"
          "        _describe -t commands command commands\n"
          "        return\n"
          "    fi\n"
          "    case $command in\n",
          stdout);
    for (const struct cli_command *c = commands; c->name != NULL; c++)
        print_arguments(c);
    fputs("    esac\n"
          "}\n"
          "if [[ $funcstack[1] == _sitemapd ]]; then\n"
          "    _sitemapd \"$@\"\n"
          "else\n"
          "    compdef _sitemapd sitemapd\n"
          "fi\n",
          stdout);
}
