/* A call of the API: what a handler keeps between its hooks, and the two ways in which it is
 * answered later: a read on a worker thread, a write by the catalogue's writer. No HTTP thread ever
 * waits for either. Internal to server/routes/.
 *
 * 1. request->state is the call from the route's `begin` on; call_done, the route's `done`, frees
 *    it. The listener runs `done` once and never while an answer is pending, so whether the client
 *    is still there changes nothing.
 * 2. After request_resume neither the call nor the request is touched. */
#ifndef SITEMAPD_ROUTES_CALL_H
#define SITEMAPD_ROUTES_CALL_H

/* Of a line in the log: its sentence, its request's id (REQUEST_ID_MAX). */
#define CALL_AUDIT_BYTES 1536
#define CALL_ID_BYTES    129

#include <stddef.h>

#include "db/catalogue.h"
#include "server/routes/routes.h"
#include "server/rules/query.h"

struct call {
    struct app_context *app;
    struct request *request;
    struct query query;
    struct call_audit *audit;           /* while `answer` runs */
    void (*cleanup)(struct call *call); /* frees what a larger struct added; may be NULL */

    /* A read: fills the reply. Runs on a worker. */
    void (*work)(struct call *call, struct catalogue_view *view);

    /* A write. `judge` (may be NULL) runs on the writer's thread with the result and may submit a
     * further change (true: the call goes on). `answer` fills the reply of a write that was
     * applied and is visible to GETs; `refuse` (NULL: errors_reply_result) of one that was not. */
    struct change change;
    struct change_result result; /* owned copy */
    bool (*judge)(struct call *call);
    void (*answer)(struct call *call);
    void (*refuse)(struct call *call);
};

/* Makes the call of a request: `size` bytes that begin with a struct call, the rest zero. Reads the
 * query and refuses names that are not in `known` (NULL-terminated; NULL: none is). NULL where the
 * reply is already filled; the handler then answers HANDLED. */
void *call_new(void *context, struct request *request, size_t size, const char *const *known);
/* The `done` hook of every route that made a call. */
void call_done(void *context, struct request *request);

/* Runs `work` with a view on a worker, then resumes the request. */
enum handled call_read(struct call *call, void (*work)(struct call *, struct catalogue_view *));
/* Submits call->change; `source` and `token_site_id` are filled where they are empty. HANDLE_LATER
 * always. Any thread. */
enum handled call_write(struct call *call, void (*answer)(struct call *));
/* Submits call->change again, from `judge`. */
void call_write_more(struct call *call);

/* The value of a query parameter or NULL where it is absent or empty. */
const char *call_parameter(const struct call *call, const char *name);
/* Reads a number parameter. Absent: `fallback`. False, with the reply filled (400), where it is no
 * decimal from `min` to `max`. */
bool call_number(struct call *call, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                 uint64_t *out);
/* Reads `max_removed` into call->change; absent: the guard decides. */
bool call_max_removed(struct call *call);
/* Reads the URL of a parameter, normalised, into `out`. False, with the reply filled (422), where
 * it is none. */
struct url;
bool call_url(struct call *call, const char *name, const char *text, struct url *out);
/* Reads a site's or index's id; 0 where the text is none. */
int64_t call_id(const char *text);

/* Ends a read: a strong ETag made of the body, 304 where If-None-Match names it, else 200. */
void call_reply_tagged(struct call *call);
/* The same with a tag that is known (quotes included). */
void call_reply_with_tag(struct call *call, const char *etag);

/* One line in the log for a write that changed something: who, what. For `answer`; it is written
 * when the request was resumed, so that no acknowledgement waits for it. `action` is static. */
void call_audit(struct call *call, const char *action, const char *subject);

#endif
