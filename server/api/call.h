/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A call of the API: what a handler keeps between its hooks, and the two ways to answer it later: a
 * read on a worker thread, a write by the catalogue's writer. No HTTP thread ever waits for either.
 * Internal to server/api/.
 *
 * 1. request->state is the call from call_begin on; call_done frees it. The listener runs `done`
 *    once and never while an answer is pending, so a client that has
 *    gone changes nothing.
 * 2. After request_resume neither the call nor the request is touched. */
#pragma once

#include <stddef.h>

#include "db/catalogue.h"
#include "server/api/routes.h"
#include "server/input/json_fields.h"
#include "server/rules/http/query.h"
#include "server/trace/trace.h"

struct call;
struct token_digest;

/* The noun of a call, with its names in parameters, members and URLs: entries and their indexes, or
 * page URLs and their urlsets. */
struct noun {
    enum list_kind kind;
    const char *one, *many, *path;         /* "sitemap", "sitemaps", "/v1/sitemaps/" */
    const char *list, *lists, *lists_path; /* "index", "indexes", "/v1/indexes/" */
    enum rule_code list_unknown;
    const char *audit_put, *audit_puts, *audit_replace, *audit_remove; /* the log's words */
};

/* The work of a call with a view of the catalogue, on a worker; the token is valid in that view. It
 * fills the reply, or returns a status for which a reply is made. */
typedef enum catalogue_status call_work(struct call *call, struct catalogue_view *view,
                                        const struct registry *registry);

/* The state of a call's Idempotency-Key (repeat.c); all zero without one. */
struct repeat {
    const char *key;             /* borrowed from the request */
    struct token_digest *digest; /* owned: of method, target and body so far */
    uint8_t sha256[32];          /* of them all */
    const struct registry
        *registry;      /* the registry as the change in progress sees it; NULL: none */
    bool brief;         /* `answer` must omit lists and texts, for which there is no room */
    bool answered;      /* the reply is made, and sent once the change is durable */
    const char *action; /* of call_audit, logged at that time */
    char *subject;      /* owned */
};

/* The first member of what a route keeps of a request (route.call_size). */
struct call {
    struct app_context *app;
    struct request *request;
    struct query query;
    struct json_fields *body;           /* owned: what call_body read */
    void (*cleanup)(struct call *call); /* frees what a larger struct added; may be NULL */

    call_work *work; /* of call_read */

    /* A write. `answer` fills the reply if the write was applied and is visible to GETs; `refuse`
     * (NULL: errors_reply_result) if it was not applied; both on the listener's thread, so that
     * neither writer nor publisher formats anything. (Of a call with an Idempotency-Key the writer
     * runs `answer`, see repeat.c.) */
    struct change change;
    struct change_result result;    /* owned copy */
    const struct page_map *routing; /* of call_registry; NULL: not requested yet */
    void (*answer)(struct call *call);
    void (*refuse)(struct call *call);
    /* Answer the write only when the sources run with the settings that it made. */
    bool settles_sources;
    struct trace_span span; /* of a request that may write */
    struct repeat repeat;   /* state of the Idempotency-Key, see repeat.c */
};

/* The routes' `begin`: makes the call of a request and reads the query. HANDLED, with the reply
 * filled, if its parameters are not those of its row in calls.def, or it has a condition that would
 * be ignored. */
enum handled call_begin(void *context, struct request *request);

/* The routes' `done`: frees the call. */
void call_done(void *context, struct request *request);

/* Runs `job` with the call on a worker, which resumes the request; 503 if all workers are busy. */
enum handled call_run(struct call *call, void (*job)(void *call));
/* Runs `work` with a view on a worker, then resumes the request. */
enum handled call_read(struct call *call, call_work *work);
/* The same for work that takes tens of milliseconds: one at a time, without delaying other
 * calls. */
enum handled call_search(struct call *call, call_work *work);
/* On a worker: runs `work` (NULL: nothing) with a view, if the token is still valid in it. If it is
 * not, or the catalogue cannot be read, or `work` failed, the reply is filled: its status is not 0.
 */
void call_look(struct call *call, call_work *work);
/* Submits call->change; fills `source` if it is empty, and the caller, for the writer to authorise.
 * HANDLE_LATER always. Any thread. */
enum handled call_write(struct call *call, void (*answer)(struct call *));

/* Reads the request's body, an object with these fields and no others, into call->body, whose
 * values `fields` then has. False, with the reply filled: 401 if the token was revoked while the
 * body arrived, 413, 400 if the body is not a JSON object, 422 for a field. */
bool call_fields(struct call *call, struct json_field *fields, size_t count);
/* The same for an object of bodies.def; `body` is its struct (objects.h). */
struct object;
bool call_body(struct call *call, const struct object *object, void *body);

/* The noun of the call, by its route. Static. */
const struct noun *call_noun(const struct call *call);

/* The value of a query parameter; NULL if it is absent or empty. */
const char *call_parameter(const struct call *call, const char *name);
/* The value of a number parameter; if absent, the default in the call's row, or 0. */
uint64_t call_number(const struct call *call, const char *name);
/* Whether the query gives this parameter this word. */
bool call_word_is(const struct call *call, const char *name, const char *word);
/* Reads `after` of a list in the order of numbers; absent: 0. False, with the reply filled (400).
 */
bool call_cursor(struct call *call, uint64_t min, uint64_t max, uint64_t *out);
/* Puts `max_removed` and `dry_run` into call->change, for changes of sets of entries. If absent,
 * the shrink guard decides, and the change is applied. */
void call_set_options(struct call *call);
/* Reads the URL of a parameter, normalised, into `out`. False, with the reply filled (422), if it
 * is invalid. */
struct url;
bool call_url(struct call *call, const char *name, const char *text, struct url *out);
/* The site that the query's `site` names, by origin or id, or that the token is for; NULL: every
 * site. False, with the reply filled (404), if none exists. */
bool call_site(struct call *call, const struct registry *registry,
               const struct registry_site **out);
/* Reads a site's or index's id; 0 if the text is invalid. */
int64_t call_id(const char *text);

/* The sites and indexes for a write's `answer`: as published, or, if the answer is made to be
 * stored, as the change in progress sees them. Valid until it returns. */
const struct registry *call_registry(struct call *call);

/* Ends a read: a strong ETag of the body, 304 if If-None-Match has it, else 200. With the `state`
 * of an index (NULL: none), which the tag has before the body's hash, the tag can be used in
 * If-Match (negotiate_match_state). */
void call_reply_tagged(struct call *call, const char *state);
/* The same with a tag that is known (quotes included). */
void call_reply_with_tag(struct call *call, const char *etag);

/* Appends the rows of a dry run to an object that is still open; nothing for other writes. */
void call_append_rows(struct call *call);

/* One line in the log for a write that changed something: who, what. For `answer`; the log takes
 * it without waiting. `action` is static. */
void call_audit(struct call *call, const char *action, const char *subject);

/* ---- repeat.c */

/* For call_begin: reads the key of a write. False, with the reply filled, if it is invalid. */
bool repeat_begin(struct call *call);
/* Call it for each piece, in order, of a body that is not collected. */
void repeat_body(struct call *call, const void *bytes, size_t len);
/* For calls whose answer is not kept. False, with the reply filled, if the request has a key, which
 * would be ignored. */
bool repeat_refuse(struct call *call);
/* For call_write: adds the key to the change. */
void repeat_submit(struct call *call);
/* On the listener's thread, once the result is known: true if the kept answer is the reply. */
bool repeat_answer(struct call *call);
/* For call_audit: true while the answer is being made to be kept; the line is written later. */
bool repeat_notes_audit(struct call *call, const char *action, const char *subject);
void repeat_done(struct call *call);
