#include <stdio.h>
#include <string.h>

#include "server/cli/completion.h"

/* Prints `--a|--b` of the options whose values are of `kind`. */
static void print_options_of(const struct cli_command *commands, enum completion_kind kind)
{
    bool any = false;

    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        if (o->value != NULL && completion_of_value(o) == kind) {
            printf("%s%s", any ? "|" : "", o->name);
            any = true;
        }
    for (const struct cli_command *c = commands; c->name != NULL; c++)
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++)
            if (o->value != NULL && completion_of_value(o) == kind &&
                !completion_seen(commands, c, o)) {
                printf("%s%s", any ? "|" : "", o->name);
                any = true;
            }
    if (!any)
        fputs("''", stdout);
}

/* The word before the cursor, whole, though bash splits it at colons and equals signs. */
static void print_word(void)
{
    fputs("# bash completion for sitemapd, made by `sitemapd completion bash`\n"
          "_sitemapd() {\n"
          "    local first=$COMP_CWORD word= before= command= option= at=1\n"
          "    local words= options= kind=\n"
          "    local -a catalogue=()\n"
          "    while ((first > 1)) && [[ ${COMP_WORDS[first-1]} == : || ${COMP_WORDS[first]} == : "
          "]]; do\n"
          "        ((first--))\n"
          "    done\n"
          "    for ((at = first; at <= COMP_CWORD; at++)); do word+=${COMP_WORDS[at]}; done\n"
          "    before=${COMP_WORDS[first-1]}\n"
          "    if [[ $word == = ]]; then\n"
          "        word=\n"
          "    elif [[ $before == = ]]; then\n"
          "        before=${COMP_WORDS[first-2]}\n"
          "    fi\n"
          "    COMPREPLY=()\n",
          stdout);
}

/* Finds the command among the words before the cursor, where options and their values are none, and
 * the options that say which catalogue it is. */
static void print_search(const struct cli_command *commands)
{
    fputs("    for ((at = 1; at < first; at++)); do\n"
          "        case ${COMP_WORDS[at]} in\n"
          "        ",
          stdout);
    for (int kind = COMPLETION_NOTHING; kind < COMPLETION_KINDS; kind++) {
        if (kind == COMPLETION_SHELL)
            continue; /* of no option */
        fputs(kind == COMPLETION_NOTHING ? "" : "|", stdout);
        print_options_of(commands, (enum completion_kind)kind);
    }
    fputs(")\n"
          "            option=${COMP_WORDS[at]}\n"
          "            [[ ${COMP_WORDS[at+1]} == = ]] && ((at++))\n"
          "            ((at++))\n"
          "            [[ $option == --config || $option == --database ]] &&\n"
          "                catalogue+=(\"$option\" \"${COMP_WORDS[at]/#\\~/$HOME}\") ;;\n"
          "        -*) ;;\n"
          "        *)\n"
          "            case $command in\n"
          "            ''",
          stdout);
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char group[32];

        completion_group(c, group);
        if (*group != '\0' && completion_is_first(commands, c))
            printf("|%s", group);
    }
    fputs(") command+=${command:+ }${COMP_WORDS[at]} ;;\n"
          "            esac ;;\n"
          "        esac\n"
          "    done\n"
          "    case $before in\n"
          "    ",
          stdout);
    print_options_of(commands, COMPLETION_FILE);
    fputs(") kind=file ;;\n    ", stdout);
    print_options_of(commands, COMPLETION_FOLDER);
    fputs(") kind=folder ;;\n    ", stdout);
    print_options_of(commands, COMPLETION_SITE);
    fputs(") kind='" COMPLETION_SITE_LIST "' ;;\n    ", stdout);
    print_options_of(commands, COMPLETION_INDEX);
    fputs(") kind='" COMPLETION_INDEX_LIST "' ;;\n    ", stdout);
    print_options_of(commands, COMPLETION_NOTHING);
    fputs(") return ;;\n    esac\n", stdout);
}

static void print_command(const struct cli_command *c)
{
    static const char *const kinds[] = {
        [COMPLETION_NOTHING] = "",
        [COMPLETION_FILE] = " kind=${kind:-file}",
        [COMPLETION_FOLDER] = " kind=${kind:-folder}",
        [COMPLETION_SHELL] = " words='" COMPLETION_SHELLS "'",
        [COMPLETION_SITE] = " kind=${kind:-" COMPLETION_SITE_LIST "}",
        [COMPLETION_INDEX] = " kind=${kind:-" COMPLETION_INDEX_LIST "}",
    };

    printf("    '%s') options='", c->name);
    for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++)
        printf("%s ", o->name);
    printf("'%s ;;\n", kinds[completion_of_word(c)]);
}

static void print_groups(const struct cli_command *commands)
{
    fputs("    '') words='help", stdout);
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char group[32];

        completion_group(c, group);
        if (completion_is_first(commands, c))
            printf(" %s", *group != '\0' ? group : c->name);
    }
    fputs("' options='--version ' ;;\n", stdout);
    for (const struct cli_command *c = commands; c->name != NULL; c++) {
        char group[32], other[32];

        completion_group(c, group);
        if (*group == '\0' || !completion_is_first(commands, c))
            continue;
        printf("    '%s') words='", group);
        for (const struct cli_command *d = commands; d->name != NULL; d++) {
            completion_group(d, other);
            if (strcmp(group, other) == 0)
                printf("%s ", completion_word(d));
        }
        fputs("' ;;\n", stdout);
    }
}

void completion_bash(const struct cli_command *commands)
{
    print_word();
    print_search(commands);
    fputs("    case $command in\n", stdout);
    print_groups(commands);
    for (const struct cli_command *c = commands; c->name != NULL; c++)
        print_command(c);
    fputs("    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options",
          stdout);
    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        printf("%s%s", o == common_options ? "" : " ", o->name);
    fputs("\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case $kind in\n"
          "    file|folder)\n"
          "        compopt -o filenames 2>/dev/null\n"
          "        local IFS=$'\\n'\n"
          "        [[ $kind == file ]] && COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "        [[ $kind == folder ]] && COMPREPLY=($(compgen -d -- \"$word\")) ;;\n"
          "    *)\n"
          "        [[ -n $kind ]] &&\n"
          "            words=$(\"${COMP_WORDS[0]/#\\~/$HOME}\" ${kind% *} list --json "
          "\"${catalogue[@]}\" 2>/dev/null |\n"
          "                sed -n 's/^.*\"'${kind#* }'\":\"\\([^\"]*\\)\".*$/\\1/p')\n"
          "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
          "    esac\n"
          "    # Only what stands behind the last colon is replaced.\n"
          "    [[ $COMP_WORDBREAKS != *:* ]] || "
          "COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"${word##*:}\"}\"}\")\n"
          "}\n"
          "complete -F _sitemapd sitemapd\n",
          stdout);
}
