/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Calls of the API by commands: method, path, query and body; commands print the JSON responses.
 * There are two ways to the same handlers: over HTTP to the server that --server names
 * (over_http.c), and in this process on the catalogue's file (in_process.c). Errors are reported
 * here, once. One thread at a time. Internal to server/cli/. */
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

#define COMMAND_SOURCE "cli" /* the owner of entries that commands create in a file */

struct configured_sources;
struct fetch_session;
struct inside;

/* The catalogue or server that a command works on. */
struct backend {
    struct cli *cli;
    const char *name;            /* its name in messages: the file, or the server's URL; borrowed */
    struct catalogue *catalogue; /* for commands that need the file; NULL: a server */
    struct inside *inside;       /* the handlers on the catalogue */
    struct configured_sources *configured; /* the sources that the handlers know */
    char user[SESSION_USER_SIZE];          /* who runs the command, for the history */
    struct url origin;                     /* this and the following: for a server */
    char *headers;                         /* owned: Authorization */
    struct fetch_session *session;
    unsigned status;          /* of the last response; 0: there was none */
    char why[512];            /* the failure of the last call, a sentence */
    uint64_t received;        /* bytes of responses kept so far */
    json_t *sites, *lists[2]; /* cached; NULL: not requested since the last write */
    struct str owner;         /* the token's name; empty: not requested yet */
};

/* Opens the catalogue of cli->config; `create`: creates a missing one. EXIT_DONE and `*out`, or an
 * exit status with the error reported. */
int backend_open_file(struct cli *cli, bool create, struct backend **out);
/* Prepares requests to the server at `url`, with the token of the environment, or the first line of
 * `token_file` (may be NULL). Sends nothing yet. EXIT_DONE and `*out`, or an exit status with the
 * error reported. */
int backend_open_server(struct cli *cli, const char *url, const char *token_file,
                        struct backend **out);
void backend_close(struct backend *b); /* accepts NULL */

/* ---- one call -------------------------------------------------------------------------- */

/* Appends `?name=value` or `&name=value`, percent-encoded; nothing if the value is NULL. */
void target_add(struct str *target, const char *name, const char *value);
void target_add_number(struct str *target, const char *name, int64_t value);
/* Appends a path segment, "/{value}", percent-encoded. */
void target_segment(struct str *target, const char *value);

/* Sends a request; `body` (may be NULL) is sent as JSON. Sets b->status and `*out`, the JSON of the
 * response (NULL: none), which the caller owns. False: no response, the reason is in b->why. */
bool api_call(struct backend *b, const char *method, const char *target, const json_t *body,
              json_t **out);
/* Whether the last response was a 2xx. */
static inline bool api_is_good(const struct backend *b)
{
    return b->status / 100 == 2;
}
/* GET; frees the target. Returns the response, or NULL, with the error reported, if it is not a
 * 2xx. */
json_t *api_get(struct backend *b, struct str *target);
/* The same for a path without query; returns the array of this name in the response, for the caller
 * to free. */
json_t *api_get_array(struct backend *b, const char *path, const char *member);
/* Gets all pages of a list, joined into one array for the caller to free. NULL, with the error
 * reported, if that fails. */
json_t *api_get_all(struct backend *b, const char *path, const char *member);
/* Reports why a read failed, and frees `answer`. Returns EXIT_COULD_NOT. */
int api_report(const struct backend *b, json_t *answer);
/* GET; passes the body of a 2xx response to `take`. `*out` gets the JSON of any other response. */
typedef bool api_take(void *context, const char *bytes, size_t len);
bool api_stream(struct backend *b, const char *target, const char *accept, api_take *take,
                void *context, json_t **out);
/* GET of NDJSON: passes each line of a 2xx response to `each`. True: all lines were passed, or
 * `each` wants no more. False, with the reason in b->why: another status, a line that is not JSON,
 * or one that `each` rejects. */
enum line_verdict { LINE_ACCEPTED, LINE_ENOUGH, LINE_BROKEN };
typedef enum line_verdict api_line(void *context, const json_t *line);
bool api_lines(struct backend *b, const char *target, api_line *each, void *context, json_t **out);

/* The text of a member; "": none. Borrowed. */
const char *member_text(const json_t *object, const char *name);
/* The same; NULL if the member is null or not a text. */
const char *member_text_or_null(const json_t *object, const char *name);
/* The number of a member; 0 if it is invalid. */
uint64_t member_number(const json_t *object, const char *name);
bool member_is(const json_t *object, const char *name);
/* member_entry parses an entry or page URL in a response; the result borrows from `entry` and
 * `kept`. Call shown_entry_done in any case. False: it is not an entry. */
struct shown_entry {
    char origin[LOC_MAX_CHARS + 1];
    struct json_entry page; /* of a page URL, for its extensions */
};
bool member_entry(const json_t *entry, struct entry_shown *out, struct shown_entry *kept);
void shown_entry_done(struct shown_entry *kept);

/* ---- reads --------------------------------------------------------------------------------- */

/* The sites, and the lists of a kind, ordered by origin, then path. Borrowed until the next write.
 * NULL, with the error reported, if they cannot be read. */
const json_t *api_sites(struct backend *b);
const json_t *api_lists(struct backend *b, enum list_kind kind);
/* The owner of entries that a command creates without --source: on a server the token, so that all
 * entries of a token have the same owner, whichever client sent them. Borrowed; NULL, with the
 * error reported, if the server cannot be reached. */
const char *api_owner(struct backend *b);

/* Called for each entry of a list; strings are valid for the call. False ends it. */
typedef bool api_entry(void *context, const struct entry_shown *entry);
struct entry_wanted {
    const json_t *list; /* an index or urlset; NULL: all indexes */
    const char *prefix; /* NULL: any */
    const char *source; /* the owner; NULL: any */
    struct entry_filter filter;
};
/* Passes each entry, all of one revision, to `each`, in the order of the pages, or by loc with a
 * prefix. Returns an exit status. Rows of a file are passed without JSON, since there may be
 * millions. */
int api_entries(struct backend *b, const struct entry_wanted *wanted, api_entry *each,
                void *context);

/* ---- writes -------------------------------------------------------------------------------- */

/* Reports why `what` was not changed, and frees `answer`. `loc`: the loc to register; may be NULL.
 * Returns EXIT_COULD_NOT. */
int api_refused(struct backend *b, const char *loc, const char *what, json_t *answer);
/* Sends a write; frees target and body (may be NULL). EXIT_DONE and the response (`answer` NULL:
 * not wanted), for the caller to free, or an exit status, having reported why `what` was not
 * changed. */
int api_write(struct backend *b, const char *method, struct str *target, json_t *body,
              const char *what, json_t **answer);

/* Applies a change without JSON, for lists of entries, and for changes that need the file. As
 * catalogue_apply_with_progress: the result has the outcome, and gives the rows back. */
typedef void api_progress(void *context, uint64_t rows_done);
enum catalogue_status api_apply(struct backend *b, const struct change *change,
                                api_progress *progress, void *context,
                                struct change_result *result);
/* A spool for the rows of a change. NULL: out of memory. */
struct spool *api_spool(struct backend *b, uint64_t max_bytes);
/* The registry, for code that finds the index of many entries. NULL, with the error reported, if it
 * cannot be read. */
struct registry *api_registry(struct backend *b);

/* ---- the two ways, for api.c ------------------------------------------------------------------
 */

struct api_request {
    const char *method, *target;
    const char *accept, *if_match; /* NULL: none */
    const char *body;              /* JSON; NULL: none */
    FILE *lines;                   /* NDJSON, the whole file; may be NULL. Only for a server */
    const char *type;              /* the type of `lines`, if it is not NDJSON */
    api_take *take;                /* receives the body of a 2xx response; NULL: it is kept */
    void *context;
};
/* Sends a request and fills b->status, b->why and `body`, which the caller frees. False: no
 * response. */
bool over_http(struct backend *b, const struct api_request *request, struct str *body);
bool in_process(struct backend *b, const struct api_request *request, struct str *body);
void over_http_close(struct backend *b);
void in_process_close(struct backend *b);
/* The rule for a word of the API; RULE_OK if none exists. */
enum rule_code api_rule(const char *word);
/* Fills the result of a change that was not applied. */
void api_refuse(struct backend *b, const json_t *answer, struct change_result *result);
/* Sends a request by either way, and parses the response. */
bool api_send(struct backend *b, const struct api_request *request, json_t **out);
/* The change of a list, sent as NDJSON (server_lists.c). */
void server_apply_list(struct backend *b, const struct change *change,
                       struct change_result *result);
