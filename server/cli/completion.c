#include "server/cli/completion.h"

#include <stdio.h>
#include <string.h>

#include "config/suggest.h"
#include "server/cli/commands.h"
#include "server/cli/table.h"

static enum completion_kind by_placeholder(const char *placeholder)
{
    if (strstr(placeholder, "FILE") != NULL)
        return COMPLETION_FILE;
    if (strstr(placeholder, "DIR") != NULL)
        return COMPLETION_FOLDER;
    return strstr(placeholder, "SHELL") != NULL ? COMPLETION_SHELL : COMPLETION_NOTHING;
}

enum completion_kind completion_of_word(const struct cli_command *c)
{
    switch (c->names) {
    case CLI_NAMES_SITE:
        return COMPLETION_SITE;
    case CLI_NAMES_INDEX:
        return COMPLETION_INDEX;
    case CLI_NAMES_NOTHING:
        break;
    }
    return by_placeholder(c->synopsis);
}

enum completion_kind completion_of_value(const struct cli_option *o)
{
    if (o->value == NULL)
        return COMPLETION_NOTHING;
    if (strcmp(o->name, "--index") == 0)
        return COMPLETION_INDEX;
    return strcmp(o->value, "ORIGIN") == 0 ? COMPLETION_SITE : by_placeholder(o->value);
}

void completion_group(const struct cli_command *c, char out[32])
{
    const char *space = strchr(c->name, ' ');

    snprintf(out, 32, "%.*s", space != NULL ? (int)(space - c->name) : 0, c->name);
}

const char *completion_word(const struct cli_command *c)
{
    const char *space = strchr(c->name, ' ');

    return space != NULL ? space + 1 : c->name;
}

bool completion_is_first(const struct cli_command *commands, const struct cli_command *c)
{
    char group[32], other[32];

    completion_group(c, group);
    for (const struct cli_command *before = commands; *group != '\0' && before != c; before++) {
        completion_group(before, other);
        if (strcmp(group, other) == 0)
            return false;
    }
    return true;
}

bool completion_seen(const struct cli_command *commands, const struct cli_command *c,
                     const struct cli_option *option)
{
    for (const struct cli_option *o = common_options; o->name != NULL; o++)
        if (strcmp(o->name, option->name) == 0)
            return true;
    for (const struct cli_command *before = commands; before != c; before++)
        for (const struct cli_option *o = before->options; o != NULL && o->name != NULL; o++)
            if (strcmp(o->name, option->name) == 0)
                return true;
    return false;
}

void completion_quote(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
    putchar('\'');
}

int command_completion(struct cli *cli)
{
    static const struct {
        const char *name;
        void (*print)(const struct cli_command *commands);
    } shells[] = {{"bash", completion_bash}, {"zsh", completion_zsh}, {"fish", completion_fish}};
    const char *name = cli->arguments.words[0];
    struct suggestion near = {0};

    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(name, shells[i].name) == 0) {
            shells[i].print(cli_commands);
            return EXIT_DONE;
        }
        suggest_consider(&near, name, shells[i].name);
    }
    return cli_misuse("completion", "\"%s\" is no shell known here (%s)%s%s%s", name,
                      COMPLETION_SHELLS, near.word != NULL ? "; did you mean " : "",
                      near.word != NULL ? near.word : "", near.word != NULL ? "?" : "");
}
