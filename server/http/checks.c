#include "server/http/checks.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/rules/ascii.h"

const char *check_framing(const struct header_scan *scan, const char *version)
{
    const uint8_t *lines = scan->lines;

    if (scan->malformed)
        return "a header field is malformed";
    if (lines[HEADER_HOST] > 1)
        return "more than one Host";
    if (lines[HEADER_CONTENT_LENGTH] > 1)
        return "more than one Content-Length";
    /* libmicrohttpd takes 2^64-1, its mark for a length that it does not know. */
    uint64_t length;
    if (lines[HEADER_CONTENT_LENGTH] > 0 && !check_content_length(scan, &length))
        return "Content-Length is no length";
    if (lines[HEADER_TRANSFER_ENCODING] == 0)
        return NULL;
    if (lines[HEADER_CONTENT_LENGTH] > 0)
        return "Content-Length beside Transfer-Encoding";
    if (lines[HEADER_TRANSFER_ENCODING] > 1 ||
        strcasecmp(scan->value[HEADER_TRANSFER_ENCODING], "chunked") != 0)
        return "a Transfer-Encoding other than chunked";
    if (strcmp(version, "HTTP/1.0") == 0)
        return "Transfer-Encoding with HTTP/1.0"; /* RFC 9112 6.1 */
    return NULL;
}

bool check_content_length(const struct header_scan *scan, uint64_t *out)
{
    const char *text = scan->value[HEADER_CONTENT_LENGTH];
    uint64_t value = 0;

    if (text == NULL || *text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit = (uint64_t)(unsigned char)*text - '0';
        if (digit > 9 || value > (INT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

bool check_expects_continue(const struct header_scan *scan, const char *version)
{
    const char *expect = scan->value[HEADER_EXPECT];
    return expect != NULL && strcasecmp(expect, "100-continue") == 0 &&
           strcmp(version, "HTTP/1.0") != 0;
}

static bool is_port(const char *text)
{
    size_t len = strspn(text, "0123456789");
    return len <= 5 && text[len] == '\0';
}

/* RFC 3986 3.2.2: a name's characters beside letters and digits, and those of an IP literal. */
#define HOST_NAME_CHARS    "-._~%!$&'()*+,;="
#define HOST_LITERAL_CHARS HOST_NAME_CHARS ":"

static size_t host_span(const char *text, const char *chars)
{
    size_t len = 0;

    while (text[len] != '\0' &&
           (ascii_is_alnum(text[len]) || text[len] == '.' || strchr(chars, text[len]) != NULL))
        len++;
    return len;
}

bool check_host(const char *host)
{
    const char *end;

    if (host[0] == '[') {
        size_t len = host_span(host + 1, HOST_LITERAL_CHARS);
        if (len == 0 || host[1 + len] != ']')
            return false;
        end = host + 1 + len + 1;
    } else {
        end = host + host_span(host, HOST_NAME_CHARS);
    }
    return *end == '\0' || (*end == ':' && is_port(end + 1));
}

bool check_host_is_local(const char *host)
{
    char name[64];
    unsigned char address[16];
    bool bracketed = host[0] == '[';
    const char *start = bracketed ? host + 1 : host;
    size_t len = strcspn(start, bracketed ? "]" : ":");

    if (len >= sizeof name)
        return false;
    memcpy(name, start, len);
    name[len] = '\0';
    const char *rest = start + len;
    if (bracketed && *rest++ != ']')
        return false;
    if (*rest != '\0' && (*rest != ':' || !is_port(rest + 1)))
        return false;
    if (bracketed)
        return inet_pton(AF_INET6, name, address) == 1;
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1;
}

static void split_query(char *target, const char **query)
{
    char *mark = strchr(target, '?');

    *query = NULL;
    if (mark != NULL) {
        *mark = '\0';
        *query = mark + 1;
    }
}

enum target_status check_target(char *target, const char *host, const char **path,
                                const char **query, const char **authority)
{
    *path = target;
    *query = NULL;
    *authority = NULL;
    for (const unsigned char *p = (const unsigned char *)target; *p != '\0'; p++)
        if (*p <= 0x20 || *p == 0x7f)
            return TARGET_MALFORMED;
    if (target[0] == '/') {
        split_query(target, query);
        return TARGET_OK;
    }
    if (strcmp(target, "*") == 0)
        return TARGET_ASTERISK;

    char *start;
    if (strncasecmp(target, "http://", 7) == 0)
        start = target + 7;
    else if (strncasecmp(target, "https://", 8) == 0)
        start = target + 8;
    else
        return TARGET_MALFORMED;
    split_query(start, query);
    size_t len = strcspn(start, "/");
    if (len == 0)
        return TARGET_MALFORMED;
    *path = start[len] == '/' ? start + len : "/";
    if (host != NULL)
        return strlen(host) == len && strncasecmp(host, start, len) == 0 ? TARGET_OK
                                                                         : TARGET_OTHER_HOST;
    /* HTTP/1.0 without Host. Moved one byte down, over the second slash, to make room for its NUL
     * beside a path that stays where it is. */
    memmove(start - 1, start, len);
    start[len - 1] = '\0';
    *authority = start - 1;
    return TARGET_OK;
}

bool check_content_type(const char *content_type, const char *const *allowed)
{
    if (content_type == NULL)
        return false;
    size_t len = strcspn(content_type, "; \t");
    for (; *allowed != NULL; allowed++)
        if (strlen(*allowed) == len && strncasecmp(*allowed, content_type, len) == 0)
            return true;
    return false;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

bool check_decode_segment(const char *text, size_t len, struct str *out)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex(text[i + 1]) : -1;
            int low = high >= 0 ? hex(text[i + 2]) : -1;
            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        str_append_char(out, c);
    }
    return !out->failed;
}

bool check_host_is_listed(const char *host, const char *const *allowed, size_t count)
{
    size_t len = strcspn(host, ":");

    if (host[len] == ':' && !is_port(host + len + 1))
        return false;
    for (size_t i = 0; i < count; i++) {
        size_t name_len = strcspn(allowed[i], ":");
        /* A name written with a port is that port's alone. */
        bool with_port = allowed[i][name_len] == ':';
        if (with_port ? strcasecmp(allowed[i], host) == 0
                      : name_len == len && strncasecmp(allowed[i], host, len) == 0)
            return true;
    }
    return false;
}
