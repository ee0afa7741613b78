/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The words of the command line: what the commands are, which options each takes, and what was
 * given. Internal to server/cli/ and its tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli;

struct cli_option {
    const char *name;  /* "--index"; NULL ends a list */
    const char *value; /* what its value is called in help; NULL: a switch without one */
    const char *doc;
};

struct cli_example {
    const char *why;  /* a sentence that ends in a colon; NULL ends a list */
    const char *line; /* as typed; may be several lines */
};

/* What a command's word names, where it must be there already: shells then offer those that are. */
enum cli_named {
    CLI_NAMES_NOTHING,
    CLI_NAMES_SITE,
    CLI_NAMES_INDEX,
    CLI_NAMES_URLSET,
    CLI_NAMES_SOURCE
};

struct cli_command {
    const char *name;     /* one word, or a group and a word: "site add" */
    const char *synopsis; /* the words behind it: "ORIGIN", "FILE|-" */
    const char *summary;  /* one line for the list of commands */
    const char *help;     /* paragraphs, unwrapped; one that begins with a space is as typed */
    const struct cli_option *options;
    unsigned min_words, max_words; /* behind the name */
    int (*run)(struct cli *cli);
    const struct cli_example *examples;
    const char *topic; /* the heading above it in the list of commands; NULL: of the one before */
    enum cli_named names;
    bool pages; /* what it does for entries and indexes, it does for page URLs and urlsets */
};

struct given_option {
    const char *name;
    const char *value; /* NULL for a switch */
    char *hidden;      /* the value, where it is no longer in argv; owned */
};

struct arguments {
    const struct cli_command *command; /* NULL: only --help or --version */
    const char *group;                 /* `site --help`: help for all of its commands */
    size_t word_count;
    const char **words; /* behind the command's name; borrowed from argv */
    size_t given_count;
    struct given_option *given;
    bool help, version;
};

/* Every command of the program, with its options and examples beside it (commands.def); ends with a
 * NULL name. */
extern const struct cli_command cli_commands[];
/* Options that every command takes. */
extern const struct cli_option common_options[];

/* Reads argv[1] and what follows; `commands` ends with a NULL name. Options may stand anywhere,
 * `--` ends them, `-` is a word. False where it is wrong: then `why` holds a sentence,
 * `what: why`, and arguments_done is due all the same. */
bool arguments_parse(int argc, char **argv, const struct cli_command *commands,
                     struct arguments *out, char *why, size_t why_size);
void arguments_done(struct arguments *a);

bool arguments_has(const struct arguments *a, const char *name);
/* The last value given for `name`; NULL where there is none. */
const char *arguments_value(const struct arguments *a, const char *name);
/* All values given for `name`, NULL-terminated; NULL when out of memory. The caller frees the
 * array. */
const char **arguments_values(const struct arguments *a, const char *name);

/* `sitemapd --help`, or with a command or group named its own. */
void help_print(const struct arguments *a, const struct cli_command *commands);
