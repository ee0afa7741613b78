#include "server/routes/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/log/log.h"
#include "server/routes/errors.h"
#include "server/rules/negotiate.h"
#include "server/rules/url.h"
#include "server/token/token.h"

static bool read_query(struct request *request, struct query *query, const char *const *known)
{
    static const char *const none[] = {NULL};
    const char *unknown;

    switch (query_parse(request->query, query)) {
    case QUERY_OK:
        break;
    case QUERY_MALFORMED:
        reply_problem(&request->reply, 400, "malformed-query", NULL,
                      "the query is not valid percent-encoded UTF-8");
        return false;
    case QUERY_TOO_MANY:
        reply_problem(&request->reply, 400, "malformed-query", NULL,
                      "the query has too many parameters");
        return false;
    case QUERY_REPEATED:
        reply_problem(&request->reply, 400, "repeated-parameter", NULL,
                      "a query parameter is given twice");
        return false;
    case QUERY_NO_MEMORY:
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    unknown = query_unknown(query, known != NULL ? known : none);
    if (unknown == NULL)
        return true;
    reply_problem(&request->reply, 400, "unknown-parameter", unknown,
                  "this call knows no such query parameter");
    query_done(query);
    return false;
}

void *call_new(void *context, struct request *request, size_t size, const char *const *known)
{
    struct query query;
    struct call *call;

    if (!read_query(request, &query, known))
        return NULL;
    call = calloc(1, size);
    if (call == NULL) {
        query_done(&query);
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return NULL;
    }
    call->app = context;
    call->request = request;
    call->query = query;
    call->change.max_removed = MAX_REMOVED_GUARDED;
    request->state = call;
    return call;
}

void call_done(void *context, struct request *request)
{
    struct call *call = request->state;

    (void)context;
    if (call == NULL)
        return;
    request->state = NULL;
    if (call->cleanup != NULL)
        call->cleanup(call);
    entry_record_done(&call->result.entry);
    query_done(&call->query);
    free(call);
}

/* ---- reads ------------------------------------------------------------------------------- */

static void run_read(void *context)
{
    struct call *call = context;
    struct request *request = call->request;
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(call->app->catalogue, &view);

    if (status == CATALOGUE_OK) {
        call->work(call, view);
        catalogue_view_end(view);
    } else {
        errors_reply_status(&request->reply, status);
    }
    request_resume(request);
}

enum handled call_read(struct call *call, void (*work)(struct call *, struct catalogue_view *))
{
    call->work = work;
    if (workers_run(call->app->readers, run_read, call))
        return HANDLE_LATER;
    errors_reply_status(&call->request->reply, CATALOGUE_BUSY);
    return HANDLED;
}

/* ---- writes ------------------------------------------------------------------------------ */

/* What the log will say, kept beyond the request. */
struct call_audit {
    const char *action; /* NULL: nothing */
    char request_id[CALL_ID_BYTES];
    char text[CALL_AUDIT_BYTES];
};

/* Whatever became of the wait, the write is durable: 503 would say "not applied". */
static void write_visible(void *context, enum await_result result)
{
    struct call *call = context;
    struct request *request = call->request;
    struct call_audit audit;

    (void)result;
    audit.action = NULL;
    call->audit = &audit;
    call->answer(call);
    request_resume(request);
    if (audit.action != NULL)
        log_request(LOG_LEVEL_INFO, audit.action,
                    audit.request_id[0] != '\0' ? audit.request_id : NULL, "%s", audit.text);
}

static void write_done(void *context, struct change_result *result)
{
    struct call *call = context;
    struct request *request = call->request;

    entry_record_done(&call->result.entry);
    call->result = *result;
    memset(&result->entry, 0, sizeof result->entry);

    if (call->judge != NULL && call->judge(call))
        return;
    if (call->result.status == CATALOGUE_OK) {
        publisher_await_revision(call->app->publisher, call->result.revision, write_visible, call);
        return;
    }
    if (call->refuse != NULL)
        call->refuse(call);
    else
        errors_reply_result(&request->reply, &call->result);
    request_resume(request);
}

void call_write_more(struct call *call)
{
    call->change.context = call;
    if (call->change.source == NULL)
        call->change.source = call->request->token_name;
    call->change.token_site_id = call->request->token_site_id;
    catalogue_submit(call->app->catalogue, &call->change, write_done);
}

enum handled call_write(struct call *call, void (*answer)(struct call *))
{
    call->answer = answer;
    call_write_more(call);
    return HANDLE_LATER;
}

/* ---- parameters -------------------------------------------------------------------------- */

const char *call_parameter(const struct call *call, const char *name)
{
    const char *value = query_value(&call->query, name);

    return value != NULL && *value != '\0' ? value : NULL;
}

bool call_number(struct call *call, const char *name, uint64_t min, uint64_t max, uint64_t fallback,
                 uint64_t *out)
{
    const char *text = query_value(&call->query, name);
    char detail[96];

    if (text == NULL) {
        *out = fallback;
        return true;
    }
    if (query_number(text, max, out) && *out >= min)
        return true;
    snprintf(detail, sizeof detail, "must be a number from %" PRIu64 " to %" PRIu64, min, max);
    reply_problem(&call->request->reply, 400, "malformed-parameter", name, detail);
    return false;
}

bool call_max_removed(struct call *call)
{
    uint64_t value;

    if (query_value(&call->query, "max_removed") == NULL)
        return true;
    if (!call_number(call, "max_removed", 0, INT64_MAX, 0, &value))
        return false;
    call->change.max_removed = (int64_t)value;
    return true;
}

bool call_url(struct call *call, const char *name, const char *text, struct url *out)
{
    enum rule_code code = url_parse(text, strlen(text), out, NULL);

    if (code == RULE_OK)
        return true;
    errors_reply_rule(&call->request->reply, code, name, NULL);
    return false;
}

int64_t call_id(const char *text)
{
    uint64_t id;

    /* One spelling of each id, as for entries: no leading zero. */
    if (text == NULL || *text == '0' || !query_number(text, INT64_MAX, &id))
        return 0;
    return (int64_t)id;
}

/* ---- replies ----------------------------------------------------------------------------- */

void call_reply_with_tag(struct call *call, const char *etag)
{
    struct reply *reply = &call->request->reply;

    if (negotiate_none_match(request_header(call->request, HEADER_IF_NONE_MATCH), etag, false)) {
        str_clear(&reply->body);
        reply->status = 304;
        reply_header(reply, "Cache-Control", "no-store");
    } else {
        reply_json(reply, 200);
    }
    reply_header(reply, "ETag", etag);
}

/* The tag covers the body itself: two tokens see different lists at one URL, and an index's pages
 * have etags only while they are in memory, so a tag made of revisions would lie. */
void call_reply_tagged(struct call *call)
{
    struct reply *reply = &call->request->reply;
    uint8_t hash[32];
    char etag[40];
    size_t at = 0;

    if (reply->body.failed || !token_sha256(str_text(&reply->body), reply->body.len, hash)) {
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
        return;
    }
    etag[at++] = '"';
    for (size_t i = 0; i < 16; i++, at += 2)
        snprintf(etag + at, 3, "%02x", hash[i]);
    etag[at++] = '"';
    etag[at] = '\0';
    call_reply_with_tag(call, etag);
}

void call_audit(struct call *call, const char *action, const char *subject)
{
    const struct change_result *result = &call->result;
    const struct request *request = call->request;
    struct call_audit *audit = call->audit;

    if (!result->changed || audit == NULL)
        return;
    audit->action = action;
    snprintf(audit->request_id, sizeof audit->request_id, "%s",
             request->id != NULL ? request->id : "");
    snprintf(audit->text, sizeof audit->text,
             "%.1200s by token %s: %" PRIu64 " created, %" PRIu64 " updated, %" PRIu64
             " removed, revision %" PRIu64,
             subject, request->token_name != NULL ? request->token_name : "-", result->created,
             result->updated, result->removed, result->revision);
}
