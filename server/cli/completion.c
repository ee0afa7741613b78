/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Completion of command lines. One command knows what may come next: `sitemapd complete -- WORD…`
 * gets the words typed so far, the last one (maybe empty) up to the cursor, and prints a line for
 * each completion: the whole word, a tab, its meaning. A line `:file` or `:folder` leaves the
 * completion to the shell, which can quote paths. The three scripts that `sitemapd completion
 * SHELL` prints only call it, so that they contain no words of the program and need no upgrade. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/suggest.h"
#include "server/cli/backend/api.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"

/* What may come where help says FILE, DIR, … */
enum offer {
    OFFER_NOTHING,
    OFFER_FILE,
    OFFER_FOLDER,
    OFFER_SHELL,
    OFFER_SITE,
    OFFER_INDEX,
    OFFER_URLSET,
    OFFER_SOURCE
};

static const struct {
    const char *name;
    const char *script;
} shells[] = {
    {"bash",
     "# bash completion for sitemapd, made by `sitemapd completion bash`\n"
     "_sitemapd() {\n"
     "    local IFS=$'\\n' at typed last before each\n"
     "    local -a words=() found=()\n"
     "    # Bash splits words at colons and equals signs: they are joined, and of what is found "
     "only\n"
     "    # what it would replace is given back.\n"
     "    for ((at = 1; at <= COMP_CWORD; at++)); do\n"
     "        if ((at > 1)) && [[ ${COMP_WORDS[at]} == [:=]* || ${COMP_WORDS[at-1]} == *[:=] ]]; "
     "then\n"
     "            words[${#words[@]}-1]+=${COMP_WORDS[at]}\n"
     "        else\n"
     "            words+=(\"${COMP_WORDS[at]}\")\n"
     "        fi\n"
     "    done\n"
     "    last=${COMP_WORDS[COMP_CWORD]}\n"
     "    [[ $last == [:=] ]] && last=\n"
     "    typed=${words[${#words[@]}-1]} before=${typed%\"$last\"}\n"
     "    # The program gets the words as it would when the line runs: without quotes.\n"
     "    words=(\"${words[@]//[\\\\\\\"\\']/}\") before=${before//[\\\\\\\"\\']/}\n"
     "    mapfile -t found < <(\"${COMP_WORDS[0]/#\\~/$HOME}\" complete -- \"${words[@]}\" "
     "2>/dev/null)\n"
     "    COMPREPLY=()\n"
     "    case ${found[0]} in\n"
     "    :file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$last\")) ;;\n"
     "    :folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$last\")) ;;\n"
     "    *)\n"
     "        # The owner of an index chooses its URL: what is inserted is quoted. In quotes "
     "that "
     "are\n"
     "        # open already, only what means nothing to a shell is offered.\n"
     "        for each in \"${found[@]%%$'\\t'*}\"; do\n"
     "            each=${each#\"$before\"}\n"
     "            if [[ ${typed//\\\\?/} != *[\\\"\\']* ]]; then\n"
     "                printf -v each %q \"$each\"\n"
     "            elif [[ $each == *[^A-Za-z0-9:/._~%=?\\&+,@-]* ]]; then\n"
     "                continue\n"
     "            fi\n"
     "            COMPREPLY+=(\"$each\")\n"
     "        done ;;\n"
     "    esac\n"
     "}\n"
     "complete -F _sitemapd sitemapd\n"},
    {"zsh", "#compdef sitemapd\n"
            "# zsh completion for sitemapd, made by `sitemapd completion zsh`\n"
            "_sitemapd() {\n"
            "    local -a found names lines\n"
            "    local line\n"
            "    found=(\"${(@f)$(${(Q)~words[1]} complete -- \"${(@Q)words[2,CURRENT-1]}\" "
            "\"${(Q)PREFIX}\" "
            "2>/dev/null)}\")\n"
            "    case $found[1] in\n"
            "    :file) compset -P '--*='; _files ;;\n"
            "    :folder) compset -P '--*='; _files -/ ;;\n"
            "    ?*)\n"
            "        for line in $found; do\n"
            "            names+=(\"${line%%$'\\t'*}\")\n"
            "            lines+=(\"${line/$'\\t'/  }\")\n"
            "        done\n"
            "        compadd -l -d lines -a names ;;\n"
            "    esac\n"
            "}\n"
            "if [[ $funcstack[1] == _sitemapd ]]; then\n"
            "    _sitemapd \"$@\"\n"
            "elif (( $+functions[compdef] )); then\n"
            "    compdef _sitemapd sitemapd\n"
            "fi\n"},
    {"fish",
     "# fish completion for sitemapd, made by `sitemapd completion fish`\n"
     "function __sitemapd_complete\n"
     "    set -l words (commandline -xpc 2>/dev/null; or commandline -opc)\n"
     "    set -l typed (commandline -ct)\n"
     "    set -l found (command $words[1] complete -- $words[2..-1] \"$typed\" 2>/dev/null)\n"
     "    switch \"$found[1]\"\n"
     "        case ':file'\n"
     "            __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- \"$typed\")\n"
     "        case ':folder'\n"
     "            __fish_complete_directories (string replace -r '^--[a-z-]+=' '' -- \"$typed\") "
     "''\n"
     "        case '*'\n"
     "            test (count $found) -gt 0; and printf '%s\\n' $found\n"
     "    end\n"
     "end\n"
     "complete -c sitemapd -f -a '(__sitemapd_complete)'\n"},
};
#define SHELLS (sizeof shells / sizeof *shells)

/* The parsed words before the cursor. */
struct line {
    char name[32];                     /* of the command, as far as it was typed */
    const struct cli_command *command; /* NULL: not complete yet */
    bool has_argument;                 /* it already has an argument */
    const struct cli_option *awaited;  /* its value is at the cursor */
};

/* ---- the table ------------------------------------------------------------------------- */

/* The value of an option may differ between commands (--source of serve is a folder, of import a
 * name), so the command's own option comes first. Without a command only matters whether a value
 * follows, which is the same in all commands. */
static const struct cli_option *find_option(const struct cli_command *own, const char *word,
                                            size_t len)
{
    for (const struct cli_option *o = own != NULL ? own->options : NULL;
         o != NULL && o->name != NULL; o++)
        if (strlen(o->name) == len && strncmp(o->name, word, len) == 0)
            return o;
    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        if (strlen(o->name) == len && strncmp(o->name, word, len) == 0)
            return o;
    for (const struct cli_command *c = cli_commands; c->name != NULL; c++)
        for (const struct cli_option *o = c->options; o != NULL && o->name != NULL; o++)
            if (strlen(o->name) == len && strncmp(o->name, word, len) == 0)
                return o;
    return NULL;
}

static enum offer by_placeholder(const char *placeholder)
{
    if (strstr(placeholder, "FILE") != NULL)
        return OFFER_FILE;
    if (strstr(placeholder, "DIR") != NULL)
        return OFFER_FOLDER;
    return strstr(placeholder, "SHELL") != NULL ? OFFER_SHELL : OFFER_NOTHING;
}

static enum offer offer_for_word(const struct cli_command *c)
{
    switch (c->names) {
    case CLI_NAMES_SITE:
        return OFFER_SITE;
    case CLI_NAMES_INDEX:
        return OFFER_INDEX;
    case CLI_NAMES_URLSET:
        return OFFER_URLSET;
    case CLI_NAMES_SOURCE:
        return OFFER_SOURCE;
    case CLI_NAMES_NOTHING:
        break;
    }
    return by_placeholder(c->synopsis);
}

static enum offer offer_for_value(const struct cli_option *o)
{
    if (o->value == NULL)
        return OFFER_NOTHING;
    if (strcmp(o->name, "--index") == 0)
        return OFFER_INDEX;
    if (strcmp(o->name, "--urlset") == 0)
        return OFFER_URLSET;
    return strcmp(o->value, "ORIGIN") == 0 ? OFFER_SITE : by_placeholder(o->value);
}

/* ---- reading the line ------------------------------------------------------------------ */

/* Options that select the catalogue apply to this command, too. The shell does not expand ~ for it.
 */
static bool selects_catalogue(const char *option)
{
    static const char *const names[] = {"--config", "--database",   "--shared",
                                        "--server", "--token-file", NULL};

    for (const char *const *name = names; *name != NULL; name++)
        if (strcmp(*name, option) == 0)
            return true;
    return false;
}

static void set_value(struct cli *cli, const struct cli_option *o, const char *value)
{
    struct arguments *a = &cli->arguments;
    const char *home = getenv("HOME");
    char *path;

    if (!selects_catalogue(o->name))
        return;
    if (strncmp(value, "~/", 2) == 0 && home != NULL &&
        (path = malloc(strlen(home) + strlen(value))) != NULL) {
        sprintf(path, "%s%s", home, value + 1);
        value = path; /* lives as long as the process, like argv */
    }
    a->given[a->given_count++] = (struct given_option){.name = o->name, .value = value};
}

static void parse_word(struct line *line, const char *word)
{
    char name[sizeof line->name];
    size_t len;

    if (line->has_argument)
        return;
    len = (size_t)snprintf(name, sizeof name, "%s%s%s", line->name, *line->name != '\0' ? " " : "",
                           word);
    for (const struct cli_command *c = cli_commands; len < sizeof name && c->name != NULL; c++) {
        if (strcmp(c->name, name) == 0)
            line->command = c;
        else if (strncmp(c->name, name, len) != 0 || c->name[len] != ' ')
            continue;
        memcpy(line->name, name, len + 1);
        return;
    }
    line->has_argument = true;
    if (line->command == NULL)
        memcpy(line->name, "?", 2); /* no command begins with this: offer nothing */
}

static void read_line(struct cli *cli, struct line *line)
{
    struct arguments *a = &cli->arguments;

    for (size_t i = 0; i + 1 < a->word_count; i++) {
        const char *word = a->words[i], *equals = strchr(word, '=');

        if (line->awaited != NULL) {
            set_value(cli, line->awaited, word);
            line->awaited = NULL;
        } else if (*word != '-') {
            parse_word(line, word);
        } else {
            const struct cli_option *o = find_option(
                line->command, word, equals != NULL ? (size_t)(equals - word) : strlen(word));
            if (o != NULL && o->value != NULL && equals != NULL)
                set_value(cli, o, equals + 1);
            else if (o != NULL && o->value != NULL)
                line->awaited = o;
        }
    }
}

/* ---- offering -------------------------------------------------------------------------- */

/* `before` is the part of the word before the completed one: "--index=". */
static void offer(const char *typed, const char *before, const char *word, const char *doc)
{
    if (strncmp(word, typed, strlen(typed)) == 0)
        printf("%s%s\t%s\n", before, word, doc);
}

static void offer_options(const struct cli_option *options, const char *typed)
{
    for (; options != NULL && options->name != NULL; options++)
        offer(typed, "", options->name, options->doc);
}

static void offer_commands(const struct line *line, const char *typed)
{
    size_t len = strlen(line->name);
    char last[32] = "", word[32];

    for (const struct cli_command *c = cli_commands; c->name != NULL; c++) {
        const char *rest = c->name + (len > 0 ? len + 1 : 0);

        if (len > 0 && (strncmp(c->name, line->name, len) != 0 || c->name[len] != ' '))
            continue;
        snprintf(word, sizeof word, "%.*s", (int)strcspn(rest, " "), rest);
        if (strcmp(word, last) != 0) /* the commands of a group are neighbours */
            offer(typed, "", word, strchr(rest, ' ') != NULL ? "..." : c->summary);
        memcpy(last, word, sizeof last);
    }
    if (len == 0)
        offer(typed, "", "help", "show help");
}

/* The time limit of a completion, whatever the server does. */
#define OFFER_SECONDS 3

static void give_up(int signal)
{
    (void)signal;
    _exit(EXIT_DONE);
}

/* Offers the sites, lists or sources of the catalogue that the line selects, or of the configured
 * one; nothing without a catalogue. */
static void offer_names(struct cli *cli, enum offer kind, const char *typed, const char *before)
{
    const json_t *all = NULL, *one;
    size_t i;

    signal(SIGALRM, give_up);
    alarm(OFFER_SECONDS);
    if (session_open(cli, false) == EXIT_DONE)
        all = kind == OFFER_SITE ? api_sites(cli->backend)
              : kind == OFFER_SOURCE
                  ? api_get_array(cli->backend, "/v1/sources", "sources")
                  : api_lists(cli->backend, kind == OFFER_URLSET ? LIST_URLSET : LIST_INDEX);
    json_array_foreach(all, i, one) offer(typed, before,
                                          member_text(one, kind == OFFER_SITE     ? "origin"
                                                           : kind == OFFER_SOURCE ? "name"
                                                                                  : "url"),
                                          kind == OFFER_SITE     ? "site"
                                          : kind == OFFER_SOURCE ? "source"
                                          : kind == OFFER_URLSET ? "urlset"
                                                                 : "index");
}

static void offer_kind(struct cli *cli, enum offer kind, const char *typed, const char *before)
{
    switch (kind) {
    case OFFER_NOTHING:
        break;
    case OFFER_FILE:
        puts(":file");
        break;
    case OFFER_FOLDER:
        puts(":folder");
        break;
    case OFFER_SHELL:
        for (size_t i = 0; i < SHELLS; i++)
            offer(typed, before, shells[i].name, "shell");
        break;
    case OFFER_SITE:
    case OFFER_INDEX:
    case OFFER_URLSET:
    case OFFER_SOURCE:
        offer_names(cli, kind, typed, before);
        break;
    }
}

int command_complete(struct cli *cli)
{
    struct arguments *a = &cli->arguments;
    const char *typed = a->word_count > 0 ? a->words[a->word_count - 1] : "";
    const char *equals = strchr(typed, '=');
    const struct cli_option *option = NULL;
    struct line line = {0};

    read_line(cli, &line);
    if (equals != NULL && *typed == '-')
        option = find_option(line.command, typed, (size_t)(equals - typed));
    if (line.awaited != NULL) {
        offer_kind(cli, offer_for_value(line.awaited), typed, "");
    } else if (option != NULL) {
        char before[64];

        snprintf(before, sizeof before, "%s=", option->name);
        offer_kind(cli, offer_for_value(option), equals + 1, before);
    } else if (*typed == '-') {
        offer_options(common_options, typed);
        if (line.command != NULL)
            offer_options(line.command->options, typed);
        else if (*line.name == '\0')
            offer(typed, "", "--version", "show the version");
    } else if (line.command == NULL) {
        offer_commands(&line, typed);
    } else {
        if (!line.has_argument) /* `crawlers` alone is a command, and `crawlers import` */
            offer_commands(&line, typed);
        offer_kind(cli, offer_for_word(line.command), typed, "");
    }
    return EXIT_DONE;
}

int command_completion(struct cli *cli)
{
    const char *name = cli->arguments.words[0];
    struct suggestion near = {0};
    int status = session_refuse_server(cli);

    if (status != EXIT_DONE)
        return status;
    for (size_t i = 0; i < SHELLS; i++) {
        if (strcmp(name, shells[i].name) == 0) {
            fputs(shells[i].script, stdout);
            return EXIT_DONE;
        }
        suggest_consider(&near, name, shells[i].name);
    }
    return cli_misuse("completion",
                      "unknown shell \"%s\"; completions exist for bash, zsh and fish%s%s%s", name,
                      near.word != NULL ? "; did you mean " : "",
                      near.word != NULL ? near.word : "", near.word != NULL ? "?" : "");
}
