/* `sitemapd completion SHELL`: scripts by which shells complete commands and options, written from
 * the table of commands, so that they hold no word that the program does not. Internal to
 * server/cli/. */
#ifndef SITEMAPD_CLI_COMPLETION_H
#define SITEMAPD_CLI_COMPLETION_H

#include "server/cli/arguments.h"

/* What may stand where help says FILE, DIR, …. Sites and indexes are those of the catalogue that
 * the line names, or the configured one: the program itself is asked, and where there is none,
 * nothing is offered. */
enum completion_kind {
    COMPLETION_NOTHING,
    COMPLETION_FILE,
    COMPLETION_FOLDER,
    COMPLETION_SHELL,
    COMPLETION_SITE,
    COMPLETION_INDEX,
    COMPLETION_KINDS,
};

#define COMPLETION_SHELLS "bash zsh fish"

/* What a command's word is; and an option's value, NOTHING also where it takes none. */
enum completion_kind completion_of_word(const struct cli_command *c);
enum completion_kind completion_of_value(const struct cli_option *o);
/* How the names of a kind are asked for: the command that lists them, and the member of its JSON.
 */
#define COMPLETION_SITE_LIST  "site origin"
#define COMPLETION_INDEX_LIST "index url"
/* The group of a command ("site add": "site"), printed to `out` of 32 bytes; "" without. */
void completion_group(const struct cli_command *c, char out[32]);
/* The word behind the group, or the whole name. */
const char *completion_word(const struct cli_command *c);
/* True for the first command of its group. */
bool completion_is_first(const struct cli_command *commands, const struct cli_command *c);
/* True where `option` stands in the table before command `c`, or in the common options. */
bool completion_seen(const struct cli_command *commands, const struct cli_command *c,
                     const struct cli_option *option);
/* Prints `text` in single quotes, as the shell reads it. */
void completion_quote(const char *text);

void completion_bash(const struct cli_command *commands);
void completion_zsh(const struct cli_command *commands);
void completion_fish(const struct cli_command *commands);

#endif
