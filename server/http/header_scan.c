#include "server/http/header_scan.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/text.h"

/* Each with its first letter and its last, in lower case. HEADER_COUNT: nobody here asks for it,
 * but most requests have it, and its name need not be read byte by byte. */
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
    X(HEADER_ACCEPT, 'a', 't', "Accept")                                                           \
    X(HEADER_CDN_LOOP, 'c', 'p', "CDN-Loop")                                                       \
    X(HEADER_COUNT, 'a', 'e', "Accept-Language")                                                   \
    X(HEADER_COUNT, 'c', 'n', "Connection")                                                        \
    X(HEADER_COUNT, 'c', 'l', "Cache-Control")                                                     \
    X(HEADER_COUNT, 'f', 'm', "From")

/* Length, first and last letter tell them apart: two in one slot do not compile (-Woverride-init).
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

/* NULL where it is none of them. */
static const struct known *find(const char *name, size_t len)
{
    if (len == 0)
        return NULL;
    unsigned first = (unsigned char)(name[0] | 0x20), last = (unsigned char)(name[len - 1] | 0x20);
    const struct known *known = &slots[SLOT(first, last, len)];

    /* Nearly all write it as the standards do. */
    if (known->name != NULL && known->len == len &&
        (memcmp(known->name, name, len) == 0 || strncasecmp(known->name, name, len) == 0))
        return known;
    return NULL;
}

/* A space before the colon, which libmicrohttpd 0.9.75 keeps in the name, would hide a
 * Content-Length from us that the next server sees. */
static bool is_token(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!ascii_is_token(text[i]))
            return false;
    return len > 0;
}

/* libmicrohttpd 0.9.75 puts a folded line behind the name of the field before: what the next server
 * reads as a length stands here as Content-Length5, and hides the body. */
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
    /* A CR alone: some take it for a line's end (RFC 9112 2.2). */
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
