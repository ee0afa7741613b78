/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads and checks a request's header, in this order: takes it over from the library (header_read)
 * and detects fields that libmicrohttpd 0.9.75 has folded, hidden or cut; finds the client behind a
 * trusted proxy (forwarded_client), the request's id and its route (route_match); and rejects
 * (check_…) framing that two servers read differently, and an invalid Host or target. Only
 * header_read uses the library. */
#include "server/http/headers.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "server/base/scan.h"
#include "server/base/text.h"

/* The library reads only the first Cookie field: this one, which is empty. */
static const char no_cookie[] = "Cookie";

bool parser_version_is_strict(const char *version)
{
    unsigned part[4] = {0};

    sscanf(version, "%u.%u.%u.%u", &part[0], &part[1], &part[2], &part[3]);
    static const unsigned first[4] = {0, 9, 77, 1};
    for (size_t i = 0; i < 4; i++)
        if (part[i] != first[i])
            return part[i] > first[i];
    return true;
}

bool parser_is_strict(void)
{
    static atomic_int known; /* 0: not yet, 1: no, 2: yes */
    int is = atomic_load_explicit(&known, memory_order_relaxed);

    if (is == 0) {
        is = parser_version_is_strict(MHD_get_version()) ? 2 : 1;
        atomic_store_explicit(&known, is, memory_order_relaxed);
    }
    return is == 2;
}

struct reading {
    struct header_scan *scan;
    const char *end; /* end of the last text that arrived: of a value, or of the request line */
};

/* Whether the library appended a folded line (RFC 9112 5.2) to the name of the previous field. It
 * moves that name, away from its value or over it. A request that came in one piece with this one
 * may then be answered for a wrong target. */
static bool is_folded(const char *name, size_t name_len, const char *value)
{
    return !parser_is_strict() && value != NULL && (uintptr_t)value <= (uintptr_t)name + name_len;
}

/* Whether only line ends, at most `most` bytes, are between two texts: they are NULs at this point,
 * two for CR LF. The part of a value that a NUL hides (RFC 9110 5.5) would be there, too. */
static bool only_line_ends(const char *from, uintptr_t to, unsigned most)
{
    uintptr_t len = to - (uintptr_t)from;

    if (parser_is_strict())
        return true;
    for (uintptr_t i = 0; i < len && len <= 2 * most; i++)
        if (from[i] != '\0')
            return false;
    return len <= 2 * most;
}

static enum MHD_Result add_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    struct reading *reading = cls;

    (void)kind;
    if (name == no_cookie)
        return MHD_YES;
    reading->scan->malformed |=
        is_folded(name, name_len, value) || !only_line_ends(reading->end, (uintptr_t)name, 1);
    header_scan_add(reading->scan, name, name_len, value, value_len);
    if (value != NULL)
        reading->end = value + value_len;
    return MHD_YES;
}

void header_read_prepare(struct MHD_Connection *mhd, const char *target)
{
    char *mark = strchr(target, '?'); /* in the library's own buffer, where it ends the path */

    if (mark != NULL && mark[1] != '\0')
        mark[1] = '\0';
    /* If there is no room for this, the library reads the cookies, but has no room to store any. */
    MHD_set_connection_value(mhd, MHD_HEADER_KIND, no_cookie, "");
}

/* Whether the library ended the header early: it does so at a field with an empty name and at a
 * line that begins with NUL, and reads the fields after it as the next request. Not detected: such
 * a line without other text that ends in LF alone, which looks like an empty line. */
static bool ends_early(struct MHD_Connection *mhd, const char *method, const char *end)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return size != NULL && !only_line_ends(end, (uintptr_t)method + size->header_size, 2);
}

void header_read(struct MHD_Connection *mhd, const char *method, const char *version,
                 struct header_scan *scan)
{
    struct reading reading = {scan, version + strlen(version)};

    MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, add_header, &reading);
    scan->malformed |= method != NULL && ends_early(mhd, method, reading.end);
}

/* The host of "host" or "host:port", without brackets; false if it is too long for an address. */
static bool cut_port(const struct scan *element, char host[INET6_ADDRSTRLEN])
{
    const char *start = element->at, *end = element->end;
    const char *colon = memchr(start, ':', (size_t)(end - start));

    if (start < end && *start == '[') {
        end = memchr(start, ']', (size_t)(end - start));
        if (end == NULL || (end + 1 != element->end && end[1] != ':'))
            return false;
        start++;
    } else if (colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) == NULL) {
        end = colon;
    }
    if (end - start >= INET6_ADDRSTRLEN)
        return false;
    memcpy(host, start, (size_t)(end - start));
    host[end - start] = '\0';
    return true;
}

/* In the form of peers' addresses (address_peer). */
static bool read_address(const struct scan *element, char out[INET6_ADDRSTRLEN])
{
    char host[INET6_ADDRSTRLEN];
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    if (!cut_port(element, host))
        return false;
    if (inet_pton(AF_INET, host, &in.sin_addr) == 1)
        address_peer((const struct sockaddr *)&in, out);
    else if (inet_pton(AF_INET6, host, &in6.sin6_addr) == 1)
        address_peer((const struct sockaddr *)&in6, out);
    else
        return false;
    return true;
}

/* Removes the last element from the list, and returns it without the blanks around it. */
static struct scan last_element(struct scan *list)
{
    struct scan element = *list;

    while (element.at < element.end && element.end[-1] != ',')
        element.end--;
    struct scan last = {.at = element.end, .end = list->end};
    list->end = element.end > list->at ? element.end - 1 : list->at;
    scan_skip_blanks(&last);
    while (last.end > last.at && (last.end[-1] == ' ' || last.end[-1] == '\t'))
        last.end--;
    return last;
}

bool forwarded_client(const char *list, const struct address_range *trusted, size_t count,
                      char out[INET6_ADDRSTRLEN])
{
    struct scan left = {.at = list, .end = list + strlen(list)};
    char address[INET6_ADDRSTRLEN];
    bool found = false;

    while (left.at < left.end) {
        struct scan element = last_element(&left);
        if (element.at == element.end)
            continue; /* empty elements are ignored (RFC 9110 5.6.1.2) */
        if (!read_address(&element, address))
            break;
        strcpy(out, address);
        found = true;
        if (!address_ranges_hold(trusted, count, address))
            break;
    }
    return found;
}

static atomic_uint_least64_t next;

/* The ids of this process start at a random number. */
static void choose_start(void)
{
    uint64_t start;

    if (getrandom(&start, sizeof start, GRND_NONBLOCK) != (ssize_t)sizeof start)
        start = (uint64_t)time(NULL) << 32 ^ (uint64_t)getpid();
    atomic_store(&next, start);
}

bool request_id_check(const char *text)
{
    static const char others[] = "._~:+/=@-";
    size_t len = 0;

    for (; text[len] != '\0'; len++) {
        char c = text[len];
        bool alphanumeric =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (len == REQUEST_ID_MAX || (!alphanumeric && strchr(others, c) == NULL))
            return false;
    }
    return len > 0;
}

/* A permutation of all numbers (splitmix64): neighbours look different, and no two become equal. */
static uint64_t mix(uint64_t n)
{
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
    n = (n ^ n >> 27) * 0x94d049bb133111ebu;
    return n ^ n >> 31;
}

const char *request_id_make(char out[REQUEST_ID_SIZE])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose_start);
    uint64_t id = mix(atomic_fetch_add_explicit(&next, 1, memory_order_relaxed));
    for (int i = REQUEST_ID_SIZE - 2; i >= 0; i--, id >>= 4)
        out[i] = "0123456789abcdef"[id & 15];
    out[REQUEST_ID_SIZE - 1] = '\0';
    return out;
}

/* True if `path` matches `pattern`; {…} matches one segment that is not empty. */
static bool fits(const char *pattern, const char *path, const char **tail, size_t *tail_len)
{
    const char *open = strchr(pattern, '{');

    *tail = NULL;
    *tail_len = 0;
    if (open == NULL)
        return strcmp(pattern, path) == 0;
    size_t head = (size_t)(open - pattern);
    if (strncmp(pattern, path, head) != 0)
        return false;
    const char *rest = strchr(open, '}') + 1;
    size_t len = strcspn(path + head, "/");
    if (len == 0 || strcmp(path + head + len, rest) != 0)
        return false;
    *tail = path + head;
    *tail_len = len;
    return true;
}

static bool accepts_method(const struct route *route, enum http_method method)
{
    unsigned methods = route->methods;

    if ((methods & HTTP_GET) != 0)
        methods |= HTTP_HEAD;
    return (methods & method) != 0;
}

static void consider(const struct route *route, size_t index, enum http_method method,
                     const char *tail, size_t tail_len, struct route_match *out)
{
    if (out->allowed == 0)
        out->index = index;
    out->allowed |= route->methods;
    if (out->route == NULL && accepts_method(route, method)) {
        out->route = route;
        out->index = index;
        out->tail = tail;
        out->tail_len = tail_len;
    }
}

void route_match(const struct route *routes, size_t count, const struct route *fallback,
                 const char *path, enum http_method method, struct route_match *out)
{
    *out = (struct route_match){.index = count};
    for (int variable = 0; variable <= 1 && out->allowed == 0; variable++) {
        for (size_t i = 0; i < count; i++) {
            const char *tail;
            size_t tail_len;
            if ((strchr(routes[i].path, '{') != NULL) == (variable == 1) &&
                fits(routes[i].path, path, &tail, &tail_len))
                consider(&routes[i], i, method, tail, tail_len, out);
        }
    }
    if (out->allowed == 0 && fallback != NULL)
        consider(fallback, count, method, NULL, 0, out);
}

const char *check_framing(const struct header_scan *scan, const char *version)
{
    const uint8_t *lines = scan->lines;

    if (scan->malformed)
        return "a header field is malformed";
    if (lines[HEADER_HOST] > 1)
        return "more than one Host header";
    if (lines[HEADER_CONTENT_LENGTH] > 1)
        return "more than one Content-Length header";
    /* libmicrohttpd accepts 2^64-1, its mark for an unknown length. */
    uint64_t length;
    if (lines[HEADER_CONTENT_LENGTH] > 0 && !check_content_length(scan, &length))
        return "Content-Length is not a number";
    if (lines[HEADER_TRANSFER_ENCODING] == 0)
        return NULL;
    if (lines[HEADER_CONTENT_LENGTH] > 0)
        return "both Content-Length and Transfer-Encoding";
    if (lines[HEADER_TRANSFER_ENCODING] > 1 ||
        strcasecmp(scan->value[HEADER_TRANSFER_ENCODING], "chunked") != 0)
        return "unsupported Transfer-Encoding: not chunked";
    if (strcmp(version, "HTTP/1.0") == 0)
        return "Transfer-Encoding in an HTTP/1.0 request"; /* RFC 9112 6.1 */
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
    return len <= 5 && text[len] == '\0' && strtoul(text, NULL, 10) <= UINT16_MAX;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* RFC 3986 3.2.2: a name's characters beside letters, digits and percent-encoded bytes. */
#define HOST_CHARS "-._~!$&'()*+,;="

/* How many bytes at the start of `text` a host's name may have. */
static size_t host_span(const char *text)
{
    size_t len = 0;

    for (;;) {
        if (text[len] == '%' && hex(text[len + 1]) >= 0 && hex(text[len + 2]) >= 0)
            len += 3;
        else if (text[len] != '\0' &&
                 (ascii_is_alnum(text[len]) || strchr(HOST_CHARS, text[len]) != NULL))
            len++;
        else
            return len;
    }
}

/* The length of the IPv6 address in brackets at the start of `text`; 0: none. Not accepted:
 * literals of later versions (IPvFuture), which have no meaning yet, and zones, which only the
 * sender knows. */
static size_t literal_span(const char *text)
{
    char address[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];
    size_t len = strcspn(text + 1, "]");

    if (len >= sizeof address || text[1 + len] != ']')
        return 0;
    memcpy(address, text + 1, len);
    address[len] = '\0';
    return inet_pton(AF_INET6, address, bytes) == 1 ? len + 2 : 0;
}

bool check_host(const char *host)
{
    size_t len = host[0] == '[' ? literal_span(host) : host_span(host);

    if (host[len] == '\0')
        return len > 0 || host[0] == '\0';
    /* No http URL has a port without a host (RFC 9110 4.2.1). */
    return len > 0 && host[len] == ':' && is_port(host + len + 1);
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
        if (*p <= 0x20 || *p == 0x7f || *p == '#') /* no form has a fragment */
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
    /* HTTP/1.0 without Host. Moves the authority one byte down, over the second slash, to make room
     * for its NUL before the path, which stays in place. */
    memmove(start - 1, start, len);
    start[len - 1] = '\0';
    *authority = start - 1;
    return check_host(*authority) ? TARGET_OK : TARGET_MALFORMED;
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
        /* A name with a port allows only that port. */
        bool with_port = allowed[i][name_len] == ':';
        if (with_port ? strcasecmp(allowed[i], host) == 0
                      : name_len == len && strncasecmp(allowed[i], host, len) == 0)
            return true;
    }
    return false;
}
