/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The request as handlers see it, and their replies. */
#include "server/http/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "server/base/text.h"

/* ---- its header */

/* Each with its first and last letter, in lower case. HEADER_COUNT: nothing here needs the field,
 * but most requests have it, and its name need not be checked byte by byte. */
#define KNOWN_HEADERS(X)                                                                           \
    X(HEADER_HOST, 'h', 't', "Host")                                                               \
    X(HEADER_CONTENT_LENGTH, 'c', 'h', "Content-Length")                                           \
    X(HEADER_TRANSFER_ENCODING, 't', 'g', "Transfer-Encoding")                                     \
    X(HEADER_ACCEPT_ENCODING, 'a', 'g', "Accept-Encoding")                                         \
    X(HEADER_IF_NONE_MATCH, 'i', 'h', "If-None-Match")                                             \
    X(HEADER_IF_MODIFIED_SINCE, 'i', 'e', "If-Modified-Since")                                     \
    X(HEADER_IF_UNMODIFIED_SINCE, 'i', 'e', "If-Unmodified-Since")                                 \
    X(HEADER_IF_MATCH, 'i', 'h', "If-Match")                                                       \
    X(HEADER_IF_RANGE, 'i', 'e', "If-Range")                                                       \
    X(HEADER_RANGE, 'r', 'e', "Range")                                                             \
    X(HEADER_CONTENT_ENCODING, 'c', 'g', "Content-Encoding")                                       \
    X(HEADER_CONTENT_TYPE, 'c', 'e', "Content-Type")                                               \
    X(HEADER_AUTHORIZATION, 'a', 'n', "Authorization")                                             \
    X(HEADER_EXPECT, 'e', 't', "Expect")                                                           \
    X(HEADER_X_FORWARDED_HOST, 'x', 't', "X-Forwarded-Host")                                       \
    X(HEADER_X_FORWARDED_FOR, 'x', 'r', "X-Forwarded-For")                                         \
    X(HEADER_X_REQUEST_ID, 'x', 'd', "X-Request-Id")                                               \
    X(HEADER_SITEMAPD_VIA, 's', 'a', "Sitemapd-Via")                                               \
    X(HEADER_REFERER, 'r', 'r', "Referer")                                                         \
    X(HEADER_USER_AGENT, 'u', 't', "User-Agent")                                                   \
    X(HEADER_IDEMPOTENCY_KEY, 'i', 'y', "Idempotency-Key")                                         \
    X(HEADER_TRACEPARENT, 't', 't', "Traceparent")                                                 \
    X(HEADER_ACCEPT, 'a', 't', "Accept")                                                           \
    X(HEADER_CDN_LOOP, 'c', 'p', "CDN-Loop")                                                       \
    X(HEADER_SITEMAPD_FORWARDED_BY, 's', 'y', "Sitemapd-Forwarded-By")                             \
    X(HEADER_COUNT, 'a', 'e', "Accept-Language")                                                   \
    X(HEADER_COUNT, 'c', 'n', "Connection")                                                        \
    X(HEADER_COUNT, 'c', 'l', "Cache-Control")                                                     \
    X(HEADER_COUNT, 'f', 'm', "From")

/* Length, first and last letter distinguish them: two in one slot do not compile (-Woverride-init).
 */
#define SLOTS                  64u
#define SLOT(first, last, len) ((2u * (len) + (first) + 7u * (last)) % SLOTS)

struct known {
    const char *name; /* NULL: a free slot */
    size_t len;
    enum known_header which;
};

static const struct known slots[SLOTS] = {
#define KNOWN(header, first, last, text)                                                           \
    [SLOT(first, last, sizeof text - 1)] = {text, sizeof text - 1, header},
    KNOWN_HEADERS(KNOWN)
#undef KNOWN
};

/* NULL for any other. */
static const struct known *find(const char *name, size_t len)
{
    if (len == 0)
        return NULL;
    unsigned first = (unsigned char)(name[0] | 0x20), last = (unsigned char)(name[len - 1] | 0x20);
    const struct known *known = &slots[SLOT(first, last, len)];

    /* Nearly all clients write the name as the standards do. */
    if (known->name != NULL && known->len == len &&
        (memcmp(known->name, name, len) == 0 || strncasecmp(known->name, name, len) == 0))
        return known;
    return NULL;
}

/* A space before the colon, which libmicrohttpd 0.9.75 keeps in the name, would hide a
 * Content-Length that the next server sees. */
static bool is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!ascii_is_token(text[i]))
            return false;
    return len > 0;
}

/* libmicrohttpd 0.9.75 appends a folded line to the name of the previous field: what the next
 * server reads as a length is the name Content-Length5 here, and hides the body. */
static bool hides_framing(const char *name, size_t len)
{
    static const char *const framing[] = {"Content-Length", "Transfer-Encoding"};

    for (size_t i = 0; i < sizeof framing / sizeof framing[0]; i++) {
        size_t framing_len = strlen(framing[i]);
        if (len > framing_len && strncasecmp(name, framing[i], framing_len) == 0)
            return true;
    }
    return false;
}

static void add_to_list(struct header_scan *scan, enum known_header which, const char *value)
{
    if (scan->joined == NULL)
        scan->joined = calloc(HEADER_LISTS, sizeof *scan->joined);
    if (scan->joined == NULL) {
        scan->failed = true;
        return;
    }
    struct str *list = &scan->joined[which];
    if (list->len == 0)
        str_append_text(list, scan->value[which]);
    str_append_text(list, ", ");
    str_append_text(list, value);
    scan->failed |= list->failed;
}

static void add_line(struct header_scan *scan, enum known_header which, const char *value)
{
    bool first = scan->lines[which] == 0;

    if (scan->lines[which] < UINT8_MAX)
        scan->lines[which]++;
    if (first)
        scan->value[which] = value;
    else if (which < HEADER_LISTS)
        add_to_list(scan, which, value);
    else if (which == HEADER_X_FORWARDED_HOST)
        scan->value[which] = value; /* the nearest proxy's is the last */
}

void header_scan_add(struct header_scan *scan, const char *name, size_t name_len, const char *value,
                     size_t value_len)
{
    scan->fields++;
    if (value == NULL)
        value = "";
    /* A CR alone: some servers read it as the end of a line (RFC 9112 2.2). */
    if (strchrnul(value, '\r') != value + value_len) {
        scan->malformed = true;
        return;
    }
    const struct known *known = find(name, name_len);
    if (known == NULL)
        scan->malformed |= !is_token(name, name_len) || hides_framing(name, name_len);
    else if (known->which != HEADER_COUNT)
        add_line(scan, known->which, value);
}

void header_scan_done(struct header_scan *scan)
{
    for (size_t i = 0; scan->joined != NULL && i < HEADER_LISTS; i++)
        str_done(&scan->joined[i]);
    free(scan->joined);
    scan->joined = NULL;
}

/* ---- names of statuses and methods */

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

/* ---- the reply */

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

void reply_move(struct reply *to, struct reply *from)
{
    *to = *from;
    for (size_t i = 0; i < to->header_count; i++)
        if (is_within(from, from->headers[i].value))
            to->headers[i].value = to->text + (from->headers[i].value - from->text);
    reply_init(from);
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

/* Drops the answer that a handler began. The challenge of a 401 is added after this. */
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
