/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Idempotency-Key: a write that may be sent twice, because its answer was lost, is applied once
 * (draft-ietf-httpapi-idempotency-key-header). Within a day, the same key with the same method,
 * target and body gets the answer of the first request; with another method, target or body it is
 * rejected with 422.
 *
 * The answer is made while the change is applied, and stored in the same transaction, so that no
 * crash can separate the two. So `answer` of a call with a key runs on the writer's thread, while
 * no other thread uses the request; it reads sites and indexes only through call_registry. */
#include "server/api/call.h"

#include <stdlib.h>
#include <string.h>

#include "server/api/errors.h"
#include "server/crypto/token.h"

#define KEY_MAX_CHARS 255u

/* A stored answer: the status and these headers, each on its own line, then the body. */
static const char *const kept_headers[] = {"ETag", "Location"};
#define KEPT_HEADERS (sizeof kept_headers / sizeof *kept_headers)

/* ---- the request --------------------------------------------------------------------------- */

static bool is_key(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (text[i] < 0x21 || text[i] > 0x7e)
            return false;
    return len > 0 && len <= KEY_MAX_CHARS;
}

static void add(struct repeat *repeat, const void *bytes, size_t len)
{
    if (len > 0 && repeat->digest != NULL && !token_digest_add(repeat->digest, bytes, len)) {
        token_digest_end(repeat->digest, NULL);
        repeat->digest = NULL;
    }
}

/* Adds a text with its NUL, so that different targets and bodies cannot give the same bytes. */
static void add_text(struct repeat *repeat, const char *text)
{
    add(repeat, text, strlen(text) + 1);
}

bool repeat_begin(struct call *call)
{
    struct request *request = call->request;
    const char *key = request_header(request, HEADER_IDEMPOTENCY_KEY);

    if (key == NULL || (request->method & (HTTP_GET | HTTP_HEAD)) != 0)
        return true;
    if (!is_key(key) || request->header->lines[HEADER_IDEMPOTENCY_KEY] > 1) {
        reply_problem(&request->reply, 400, "malformed-idempotency-key", "Idempotency-Key",
                      "must be one key of 1 to 255 visible ASCII characters");
        return false;
    }
    call->repeat.key = key;
    call->repeat.digest = token_digest_new();
    add_text(&call->repeat, method_name(request->method));
    add_text(&call->repeat, request->path);
    add_text(&call->repeat, request->query != NULL ? request->query : "");
    return true;
}

void repeat_body(struct call *call, const void *bytes, size_t len)
{
    if (call->repeat.key != NULL)
        add(&call->repeat, bytes, len);
}

bool repeat_refuse(struct call *call)
{
    if (call->repeat.key == NULL)
        return true;
    reply_problem(&call->request->reply, 400, "idempotency-key-not-supported", "Idempotency-Key",
                  "this call does not support Idempotency-Key; nothing was done; retry without it");
    return false;
}

/* ---- the first answer ---------------------------------------------------------------------- */

static const char *header_of(const struct reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return "";
}

static void pack(const struct reply *reply, struct str *out)
{
    str_clear(out);
    str_append_format(out, "%u\n", reply->status);
    for (size_t i = 0; i < KEPT_HEADERS; i++)
        str_append_format(out, "%s\n", header_of(reply, kept_headers[i]));
    str_append(out, str_text(&reply->body), reply->body.len);
    out->failed = out->failed || reply->body.failed;
}

/* Makes the answer again for storage, without its unbounded parts and with a remark about that. The
 * client still gets the first answer. */
static void pack_brief(struct call *call, struct str *out)
{
    struct reply *reply = &call->request->reply, whole = *reply;

    reply_init(reply);
    call->repeat.brief = true;
    call->answer(call);
    call->repeat.brief = false;
    errors_add_member(reply, "shortened", "true");
    pack(reply, out);
    reply_done(reply);
    *reply = whole; /* restored at the same address: pointers into it are valid again */
}

/* On the writer's thread: the request waits, and no other thread uses it. */
static bool make_outcome(void *context, struct change_result *result,
                         const struct registry *registry, struct str *out)
{
    struct call *call = context;
    struct reply *reply = &call->request->reply;

    call->result = *result;
    call->repeat.registry = registry;
    call->repeat.answered = true;
    call->answer(call);
    if (reply->status < 300)
        pack(reply, out);
    if (out->len > OUTCOME_MAX_BYTES)
        pack_brief(call, out);
    call->repeat.registry = NULL;
    *result = call->result;
    memset(&call->result, 0, sizeof call->result);
    return !out->failed;
}

void repeat_submit(struct call *call)
{
    struct repeat *repeat = &call->repeat;

    if (repeat->key == NULL)
        return;
    add(repeat, str_text(&call->request->body), call->request->body.len);
    call->change.key = repeat->key;
    call->change.key_sha256 = repeat->digest != NULL ? repeat->sha256 : NULL;
    token_digest_end(repeat->digest, repeat->sha256);
    repeat->digest = NULL;
    call->change.outcome = make_outcome;
}

bool repeat_notes_audit(struct call *call, const char *action, const char *subject)
{
    struct repeat *repeat = &call->repeat;

    if (repeat->registry == NULL)
        return false;
    free(repeat->subject);
    repeat->action = action;
    repeat->subject = strdup(subject);
    return true;
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void report_audit(struct call *call)
{
    if (call->repeat.action != NULL)
        call_audit(call, call->repeat.action,
                   call->repeat.subject != NULL ? call->repeat.subject : "");
}

/* Removes the first line. */
static const char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');

    if (end == NULL)
        return "";
    *end = '\0';
    *at = end + 1;
    return line;
}

static void reply_kept(struct call *call)
{
    struct reply *reply = &call->request->reply;
    struct str *kept = &call->result.outcome;
    char *at = kept->data;
    unsigned status = (unsigned)strtoul(next_line(&at), NULL, 10);
    const char *headers[KEPT_HEADERS];

    for (size_t i = 0; i < KEPT_HEADERS; i++)
        headers[i] = next_line(&at);
    str_append_text(&reply->body, at);
    if (reply->body.len > 0) {
        reply_json(reply, status);
    } else {
        reply->status = status;
        reply_header(reply, "Cache-Control", "no-store");
    }
    for (size_t i = 0; i < KEPT_HEADERS; i++)
        if (*headers[i] != '\0')
            reply_header(reply, kept_headers[i], headers[i]);
    reply_header(reply, "Idempotency-Replayed", "true");
}

bool repeat_answer(struct call *call)
{
    struct reply *reply = &call->request->reply;
    bool applied = call->result.status == CATALOGUE_OK;

    if (call->result.key_reused) {
        reply_problem(reply, 422, "idempotency-key-reused", "Idempotency-Key", call->result.detail);
        return true;
    }
    if (applied && call->result.repeated) {
        reply_kept(call);
        return true;
    }
    if (applied && call->repeat.answered) {
        report_audit(call);
        return true;
    }
    if (call->repeat.answered) { /* the change was rolled back, and the stored answer with it */
        reply_done(reply);
        reply_init(reply);
    }
    return false;
}

void repeat_done(struct call *call)
{
    token_digest_end(call->repeat.digest, NULL);
    free(call->repeat.subject);
}
