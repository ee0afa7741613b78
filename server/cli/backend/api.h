/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How a command asks: a call of the API, by method, path, query and body, whose JSON answer it
 * prints. There are two ways to the same handlers: over HTTP to the server that --server names
 * (over_http.c), and in this process on the catalogue's file (in_process.c). What goes wrong is
 * reported here, once. One thread at a time. Internal to server/cli/. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "db/catalogue.h"
#include "server/base/str.h"
#include "server/cli/backend/session.h"
#include "server/input/reader.h"
#include "server/rules/entry.h"
#include "server/rules/url.h"

#define COMMAND_SOURCE "cli" /* who owns entries that commands make in a file */

struct configured_sources;
struct fetch_session;
struct inside;

/* What commands work on. */
struct backend {
    struct cli *cli;
    const char *name; /* how it is called in messages: the file, or the server's URL; borrowed */
    struct catalogue *catalogue;           /* for what needs the machine; NULL: it is a server's */
    struct inside *inside;                 /* the handlers on it */
    struct configured_sources *configured; /* that these know */
    char user[SESSION_USER_SIZE];          /* who runs the command, for the history */
    struct url origin;                     /* of a server, as what follows */
    char *headers;                         /* owned: Authorization */
    struct fetch_session *session;
    unsigned status;          /* of the last answer; 0: there was none */
    char why[512];            /* what went wrong with the last call: a sentence */
    uint64_t received;        /* bytes of answers that were kept */
    json_t *sites, *lists[2]; /* as reported last; NULL: not asked since the last write */
    struct str owner;         /* the token's name; empty: not asked yet */
};

/* Opens the catalogue of cli->config; `create`: makes a missing one. EXIT_DONE and `*out`,
 * or reported why not. */
int backend_open_file(struct cli *cli, bool create, struct backend **out);
/* Makes ready what asks the server at `url`, by the token of the environment or (not NULL) of the
 * file's first line. It is asked nothing yet. EXIT_DONE and `*out`, or reported why not. */
int backend_open_server(struct cli *cli, const char *url, const char *token_file,
                        struct backend **out);
void backend_close(struct backend *b); /* takes NULL */

/* ---- one call -------------------------------------------------------------------------- */

/* Appends `?name=value` or `&name=value`, percent-encoded; nothing where the value is NULL. */
void target_add(struct str *target, const char *name, const char *value);
void target_add_number(struct str *target, const char *name, int64_t value);
/* The same of a path segment: "/{value}". */
void target_segment(struct str *target, const char *value);

/* Asks; `body` (NULL: none) is sent as JSON. The answer's JSON (NULL: it has none), which the
 * caller owns, and b->status; false where there was no answer: b->why says. */
bool api_call(struct backend *b, const char *method, const char *target, const json_t *body,
              json_t **out);
/* Whether the last answer was a 2xx. */
static inline bool api_is_good(const struct backend *b)
{
    return b->status / 100 == 2;
}
/* GET; the target is done with. The answer, or NULL, with the error reported, if it is not a 2xx.
 */
json_t *api_get(struct backend *b, struct str *target);
/* The same of a path without a query, whose answer has an array of this name: that, the caller's.
 */
json_t *api_get_array(struct backend *b, const char *path, const char *member);
/* All pages of a list, joined into one array, the caller's. NULL, with the error reported, where
 * that fails.
 */
json_t *api_get_all(struct backend *b, const char *path, const char *member);
/* Reports why a read failed; `answer` is dropped. EXIT_COULD_NOT. */
int api_report(const struct backend *b, json_t *answer);
/* GET whose 2xx answer goes to `take`; what another status says is `*out`. */
typedef bool api_take(void *context, const char *bytes, size_t len);
bool api_stream(struct backend *b, const char *target, const char *accept, api_take *take,
                void *context, json_t **out);
/* GET whose 2xx answer is NDJSON: `each` gets the lines; true where it wants no more or all
 * were given. False where another status came, or a line is not JSON or rejected by `each`: b->why.
 */
enum line_verdict { LINE_ACCEPTED, LINE_ENOUGH, LINE_BROKEN };
typedef enum line_verdict api_line(void *context, const json_t *line);
bool api_lines(struct backend *b, const char *target, api_line *each, void *context, json_t **out);

/* The text of a member, "" where it has none. Borrowed. */
const char *member_text(const json_t *object, const char *name);
/* NULL where the member is null or no text. Borrowed. */
const char *member_text_or_null(const json_t *object, const char *name);
/* The number of a member; 0 if it is invalid. */
uint64_t member_number(const json_t *object, const char *name);
bool member_is(const json_t *object, const char *name);
/* The Unix time of an RFC 3339 member; 0 if it is invalid. */
int64_t member_time(const json_t *object, const char *name);
/* An entry or page URL in the API's answer, borrowed from `entry` and `kept`, whose end
 * (shown_entry_done) is due in any case. False: it is not one. */
struct shown_entry {
    char origin[LOC_MAX_CHARS + 1];
    struct json_entry page; /* of a page URL, for its extensions */
};
bool member_entry(const json_t *entry, struct entry_shown *out, struct shown_entry *kept);
void shown_entry_done(struct shown_entry *kept);

/* ---- what there is ------------------------------------------------------------------------- */

/* The sites, and the lists of a kind, from the API; by origin, then path. Borrowed until something
 * is written. NULL, and reported, if they cannot be read. */
const json_t *api_sites(struct backend *b);
const json_t *api_lists(struct backend *b, enum list_kind kind);
/* Who owns what a command makes where its --source names nobody: on a server the token, so that
 * one token's work is one owner's, whichever client did it. Borrowed; NULL, with the error
 * reported, where that cannot be asked. */
const char *api_owner(struct backend *b);

/* Called for each entry of a list; strings are valid for the call. False ends it. */
typedef bool api_entry(void *context, const struct entry_shown *entry);
struct entry_wanted {
    const json_t *list; /* an index or urlset; NULL: all indexes */
    const char *prefix; /* NULL: any */
    const char *source; /* the owner; NULL: any */
    struct entry_filter filter;
};
/* Passes on each entry, of one revision, in the order of the pages, or by loc with a prefix. An
 * exit status. Rows of a file are handed over as they are: a million of them pass through no JSON.
 */
int api_entries(struct backend *b, const struct entry_wanted *wanted, api_entry *each,
                void *context);

/* ---- writes -------------------------------------------------------------------------------- */

/* Asks for a write; target and body (may be NULL) are done with. EXIT_DONE and the answer (NULL:
 * not wanted), which is the caller's, or reported why `what` was not changed. */
/* Reports why `what` was not changed; `answer` is dropped. `loc`: what was to be registered; NULL:
 * nothing was. EXIT_COULD_NOT. */
int api_refused(struct backend *b, const char *loc, const char *what, json_t *answer);
int api_write(struct backend *b, const char *method, struct str *target, json_t *body,
              const char *what, json_t **answer);

/* What has no call of its own: a list of entries, of which a file takes the rows as they are, and
 * what is for the machine alone. As catalogue_apply_with_progress: the result has the outcome and
 * the rows back. */
typedef void api_progress(void *context, uint64_t rows_done);
enum catalogue_status api_apply(struct backend *b, const struct change *change,
                                api_progress *progress, void *context,
                                struct change_result *result);
/* A spool for the rows of a change. NULL: out of memory. */
struct spool *api_spool(struct backend *b, uint64_t max_bytes);
/* The registry, for code that places many entries by it. NULL, and reported, if it cannot be read.
 */
struct registry *api_registry(struct backend *b);

/* ---- the two ways, for api.c ------------------------------------------------------------------
 */

struct api_request {
    const char *method, *target;
    const char *accept, *if_match; /* NULL: none */
    const char *body;              /* JSON; NULL: none */
    FILE *lines;                   /* NDJSON, all of the file; NULL: none. Of a server alone */
    const char *type;              /* what `lines` are, where they are not that */
    api_take *take;                /* of a 2xx answer; NULL: it is kept */
    void *context;
};
/* Fills b->status, b->why and the body, the caller's. False: there was no answer. */
bool over_http(struct backend *b, const struct api_request *request, struct str *body);
bool in_process(struct backend *b, const struct api_request *request, struct str *body);
void over_http_close(struct backend *b);
void in_process_close(struct backend *b);
/* The rule of a word of the API; RULE_OK for no word of a rule. */
enum rule_code api_rule(const char *word);
/* Fills the result of a change that was not applied. */
void api_refuse(struct backend *b, const json_t *answer, struct change_result *result);
/* Asks by either way, and reads the answer. */
bool api_send(struct backend *b, const struct api_request *request, json_t **out);
/* The change of a list, sent as NDJSON (server_lists.c). */
void server_apply_list(struct backend *b, const struct change *change,
                       struct change_result *result);
