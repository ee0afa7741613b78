/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of a command: its arguments, the configuration, the backend; and functions that report
 * errors. Internal to server/cli/. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/cli/arguments.h"
#include "server/cli/cli.h"

/* Read if neither --config nor SITEMAPD_CONFIG is set, and it exists. */
#define SESSION_DEFAULT_CONFIG "/etc/sitemapd/sitemapd.conf"

struct backend;
struct json_t;
struct str;

struct cli {
    struct arguments arguments;
    struct config *config; /* NULL until read; owned reference */
    cli_serve *serve;
    struct backend *backend; /* NULL until opened */
    bool other_file;         /* --database names another file than the configuration */
    bool no_pipe;            /* the configuration must not be a pipe: it is read more than once */
};

/* One line on stderr, `sitemapd: what: why`, control characters escaped. Returns
 * EXIT_COULD_NOT. */
int cli_fail(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what is not a failure: a warning, an empty list. */
void cli_warn(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for wrong usage: returns EXIT_USAGE. */
int cli_misuse(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same with a complete `sentence` (`what: why`); one without a colon is about the usage. */
int cli_misuse_sentence(const char *sentence);
/* Reports a message of the catalogue about a file, which may begin with the file's name as well.
 * Returns EXIT_COULD_NOT. */
int cli_fail_file(const char *file, const char *why);
/* Prints text of unknown origin, control characters escaped. */
void cli_print_escaped(FILE *to, const char *text);

/* The name of the user, or the number if there is no valid name (a container). */
#define SESSION_USER_SIZE 64
void session_user(char *out, size_t size);

/* Reads `config` from file, environment and the options that every command accepts. Returns
 * EXIT_DONE, or reports every mistake and returns another. `report` NULL: on stderr. */
int session_read_config(struct cli *cli, config_report *report, void *context);
/* Opens what the command works on (server/cli/backend/api.h): the server that --server or
 * SITEMAPD_SERVER names, else the catalogue of the configuration, which is read; `create`: creates
 * a missing one. Returns EXIT_DONE, or reports why not. */
int session_open(struct cli *cli, bool create);
/* The file of trusted certificates from the command line or the environment; NULL: the system's.
 * Borrowed. */
const char *session_ca_file(const struct cli *cli);
/* EXIT_DONE, or reports that the command cannot be used with a server if one is named. */
int session_needs_machine(const struct cli *cli);
/* The same for a command that needs no catalogue: only --server is an error, since the environment
 * may name a server for other commands. */
int session_refuse_server(const struct cli *cli);
/* Whether the catalogue has any site; true, with the error reported, if it cannot be read. */
bool session_has_sites(struct cli *cli);
/* Frees all. */
void session_done(struct cli *cli);

/* Sends a write (api_write) and prints only `what: done`. */
int session_do(struct cli *cli, const char *method, struct str *target, struct json_t *body,
               const char *what, const char *done);
/* Reports why a change was not applied to `what`. `loc`: the loc to register; may be NULL. Returns
 * EXIT_COULD_NOT. */
int session_report(struct cli *cli, const char *loc, const char *what,
                   const struct change_result *result);
/* Reads --max-removed into `*out` (MAX_REMOVED_GUARDED without it). Returns EXIT_DONE or
 * EXIT_USAGE, with the error reported. */
int session_max_removed(const struct cli *cli, int64_t *out);
/* Adds --max-removed and --dry-run to the query of a request. */
int session_add_set_options(const struct cli *cli, struct str *target);
