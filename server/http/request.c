#include "server/http/request.h"

#include <stdlib.h>
#include <string.h>

#include "server/http/status.h"

void reply_init(struct reply *reply)
{
    memset(reply, 0, offsetof(struct reply, headers));
}

void reply_done(struct reply *reply)
{
    for (size_t i = 0; i < reply->header_count; i++)
        free(reply->headers[i].value);
    str_done(&reply->body);
    snapshot_unref(reply->snapshot);
    blob_unref(reply->blob);
    reply_init(reply);
}

/* RFC 9110 5.5: a control character would let a value forge further headers. */
static bool is_header_value(const char *value)
{
    for (const unsigned char *p = (const unsigned char *)value; *p != '\0'; p++)
        if ((*p < 0x20 && *p != '\t') || *p == 0x7f)
            return false;
    return true;
}

void reply_header(struct reply *reply, const char *name, const char *value)
{
    char *copy = NULL;

    if (reply->header_count < REPLY_MAX_HEADERS && is_header_value(value))
        copy = strdup(value);
    if (copy == NULL) {
        reply->body.failed = true;
        return;
    }
    reply->headers[reply->header_count++] = (struct reply_header){name, copy};
}

/* What a handler began to answer makes room for the error; a 401's challenge is added after. */
static void start_error(struct reply *reply, unsigned status, const char *content_type)
{
    reply_done(reply);
    reply->status = status;
    reply->content_type = content_type;
    reply_header(reply, "Cache-Control", "no-store");
}

void reply_problem(struct reply *reply, unsigned status, const char *code, const char *field,
                   const char *detail)
{
    struct str *body = &reply->body;
    const char *title = status_reason(status);

    start_error(reply, status, "application/problem+json");
    reply->problem = code;
    str_append_format(body, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u", title,
                      status);
    str_append_text(body, ",\"detail\":");
    str_append_json(body, detail, strlen(detail));
    str_append_text(body, ",\"code\":");
    str_append_json(body, code, strlen(code));
    if (field != NULL) {
        str_append_text(body, ",\"field\":");
        str_append_json(body, field, strlen(field));
    }
    str_append_text(body, "}\n");
}

void reply_text(struct reply *reply, unsigned status, const char *text)
{
    start_error(reply, status, "text/plain; charset=utf-8");
    str_append_text(&reply->body, text);
    str_append_char(&reply->body, '\n');
}

void reply_json(struct reply *reply, unsigned status)
{
    reply->status = status;
    reply->content_type = "application/json";
    reply_header(reply, "Cache-Control", "no-store");
}
