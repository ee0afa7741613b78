/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a command works with: its arguments, the configuration, the catalogue; and how it reports
 * errors. Internal to server/cli/. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "config/config.h"
#include "db/catalogue.h"
#include "server/cli/arguments.h"
#include "server/cli/cli.h"

/* Read where neither --config nor SITEMAPD_CONFIG names another, if it is there. */
#define SESSION_DEFAULT_CONFIG "/etc/sitemapd/sitemapd.conf"

struct backend;
struct json_t;
struct str;

struct cli {
    struct arguments arguments;
    struct config *config; /* NULL until read; owned reference */
    cli_serve *serve;
    struct backend *backend; /* NULL until opened */
    bool no_pipe;            /* the configuration must be a file: it is read more than once */
};

/* One line on stderr, `sitemapd: what: why`, control characters escaped. Returns
 * EXIT_COULD_NOT. */
int cli_fail(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for what is not a failure: a warning, an empty list. */
void cli_warn(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for wrong usage: returns EXIT_USAGE. */
int cli_misuse(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same where `sentence` is `what: why` already; without a colon it is about the usage. */
int cli_misuse_sentence(const char *sentence);
/* Reports a message of the catalogue about a file, which may begin with the file's name as well.
 * Returns EXIT_COULD_NOT. */
int cli_fail_file(const char *file, const char *why);
/* Prints text of unknown origin, control characters escaped. */
void cli_print_escaped(FILE *to, const char *text);

/* The system's name of who runs this, or the number where it has none (a container), or one that is
 * no name here. */
#define SESSION_USER_SIZE 64
void session_user(char *out, size_t size);

/* Reads `config` from file, environment and the options that every command accepts. Returns
 * EXIT_DONE, or reports every mistake and returns another. `report` NULL: on stderr. */
int session_read_config(struct cli *cli, config_report *report, void *context);
/* Opens what the command works on (server/cli/backend/api.h): the server that --server or
 * SITEMAPD_SERVER names, else the catalogue of the configuration, which is read; `create`: creates
 * a missing one. Returns EXIT_DONE, or reports why not. */
int session_open(struct cli *cli, bool create);
/* The file of certificates to trust that the line or the environment names; NULL: the system's.
 * Borrowed. */
const char *session_ca_file(const struct cli *cli);
/* EXIT_DONE, or reports that the command cannot be used with a server, where one is named. */
int session_needs_machine(const struct cli *cli);
/* The same of a command that has nothing to do with a catalogue: only --server is wrong, since the
 * environment may name a server for other commands. */
int session_refuse_server(const struct cli *cli);
/* Whether there is a site to register anything for; true also where the catalogue cannot be read,
 * which is reported. */
bool session_has_sites(struct cli *cli);
/* Frees all. */
void session_done(struct cli *cli);

/* Asks for a write (api_write) after which nothing else is to be said than `what: done`. */
int session_do(struct cli *cli, const char *method, struct str *target, struct json_t *body,
               const char *what, const char *done);
/* Reports why a change was not applied to `what`. `loc`: what was to be registered; NULL: nothing
 * was. Returns EXIT_COULD_NOT. */
int session_report(struct cli *cli, const char *loc, const char *what,
                   const struct change_result *result);
/* Reads --max-removed into `*out` (MAX_REMOVED_GUARDED without it). Returns EXIT_DONE or
 * EXIT_USAGE, with the error reported. */
int session_max_removed(const struct cli *cli, int64_t *out);
/* The same into the query of a request, and --dry-run. */
int session_add_set_options(const struct cli *cli, struct str *target);
