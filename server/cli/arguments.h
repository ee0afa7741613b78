/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands, their options, and the parsed command line. Internal to server/cli/ and its tests.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

struct cli_option {
    const char *name;  /* "--index"; NULL ends a list */
    const char *value; /* the name of its value in help; NULL: a switch without one */
    const char *doc;
};

struct cli_example {
    const char *why;  /* a sentence that ends in a colon; NULL ends a list */
    const char *line; /* the command; may have several lines */
};

/* What a command's word names, if it must exist: shells then offer the existing ones. */
enum cli_named {
    CLI_NAMES_NOTHING,
    CLI_NAMES_SITE,
    CLI_NAMES_INDEX,
    CLI_NAMES_URLSET,
    CLI_NAMES_SOURCE
};

struct cli_command {
    const char *name;     /* one word, or a group and a word: "site add" */
    const char *synopsis; /* the words after it: "ORIGIN", "FILE|-" */
    const char *summary;  /* one line for the list of commands */
    const char *help;     /* paragraphs, unwrapped; one that begins with a space is preformatted */
    const struct cli_option *options;
    unsigned min_words, max_words; /* after the name */
    int (*run)(struct cli *cli);
    const struct cli_example *examples;
    /* the heading above it in the list of commands; NULL: that of the one before */
    const char *topic;
    enum cli_named names;
    bool pages; /* it also works for page URLs and urlsets */
};

struct given_option {
    const char *name;
    const char *value; /* NULL for a switch */
    char *hidden;      /* the value, if it was hidden in argv; owned */
};

struct arguments {
    const struct cli_command *command; /* NULL: only --help or --version */
    const char *group;                 /* `site --help`: help for all of its commands */
    size_t word_count;
    const char **words; /* after the command's name; borrowed from argv */
    size_t given_count;
    struct given_option *given;
    bool help, version;
};

/* All commands with their options and examples (commands.def); ends with a NULL name. */
extern const struct cli_command cli_commands[];
/* Options that every command takes. */
extern const struct cli_option common_options[];

/* Parses argv from argv[1] on; `commands` ends with a NULL name. Options may be anywhere, `--` ends
 * them, `-` is a word. False: wrong usage, and `why` has a sentence `what: why`. Call
 * arguments_done in any case. */
bool arguments_parse(int argc, char **argv, const struct cli_command *commands,
                     struct arguments *out, char *why, size_t why_size);
void arguments_done(struct arguments *a);

bool arguments_has(const struct arguments *a, const char *name);
/* The last value given for `name`; NULL: none. */
const char *arguments_value(const struct arguments *a, const char *name);
/* All values given for `name`, NULL-terminated; NULL when out of memory. The caller frees the
 * array. */
const char **arguments_values(const struct arguments *a, const char *name);

/* Prints `sitemapd --help`, or the help of the given command or group. */
void help_print(const struct arguments *a, const struct cli_command *commands);
