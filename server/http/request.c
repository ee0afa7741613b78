#include "server/http/request.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
};

const char *status_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

static const struct {
    enum http_method method;
    const char *name;
} methods[] = {
    {HTTP_GET, "GET"},     {HTTP_HEAD, "HEAD"},     {HTTP_POST, "POST"},       {HTTP_PUT, "PUT"},
    {HTTP_PATCH, "PATCH"}, {HTTP_DELETE, "DELETE"}, {HTTP_OPTIONS, "OPTIONS"},
};
#define METHOD_COUNT (sizeof methods / sizeof methods[0])

enum http_method method_parse(const char *text)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(methods[i].name, text) == 0)
            return methods[i].method;
    return HTTP_OTHER;
}

const char *method_name(enum http_method method)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "-";
}

void method_allow(unsigned set, char out[METHOD_ALLOW_SIZE])
{
    char *end = out;

    if ((set & HTTP_GET) != 0)
        set |= HTTP_HEAD;
    set |= HTTP_OPTIONS;
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if ((set & methods[i].method) == 0)
            continue;
        if (end != out)
            end = stpcpy(end, ", ");
        end = stpcpy(end, methods[i].name);
    }
}

void reply_init(struct reply *reply)
{
    memset(reply, 0, offsetof(struct reply, headers));
}

static bool is_within(const struct reply *reply, const char *value)
{
    return value >= reply->text && value < reply->text + sizeof reply->text;
}

void reply_file(struct reply *reply, int fd, uint64_t bytes)
{
    reply->from_file = true;
    reply->file = fd;
    reply->file_bytes = bytes;
}

void reply_done(struct reply *reply)
{
    if (reply->from_file)
        close(reply->file);
    for (size_t i = 0; i < reply->header_count; i++)
        if (!is_within(reply, reply->headers[i].value))
            free(reply->headers[i].value);
    str_done(&reply->body);
    resource_unref(reply->resource);
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
    size_t size = strlen(value) + 1;
    char *copy = NULL;

    if (reply->header_count < REPLY_MAX_HEADERS && is_header_value(value)) {
        if (size <= sizeof reply->text - reply->text_len) {
            copy = memcpy(reply->text + reply->text_len, value, size);
            reply->text_len += size;
        } else {
            copy = strdup(value);
        }
    }
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
    str_append_json_text(body, detail);
    str_append_text(body, ",\"code\":");
    str_append_json_text(body, code);
    if (field != NULL) {
        str_append_text(body, ",\"field\":");
        str_append_json_text(body, field);
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
