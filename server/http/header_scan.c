#include "server/http/header_scan.h"

#include <string.h>
#include <strings.h>

#include "server/rules/ascii.h"

/* Each with its first letter. */
#define KNOWN_HEADERS(X)                                                                           \
    X(HEADER_HOST, 'h', "Host")                                                                    \
    X(HEADER_CONTENT_LENGTH, 'c', "Content-Length")                                                \
    X(HEADER_TRANSFER_ENCODING, 't', "Transfer-Encoding")                                          \
    X(HEADER_ACCEPT_ENCODING, 'a', "Accept-Encoding")                                              \
    X(HEADER_IF_NONE_MATCH, 'i', "If-None-Match")                                                  \
    X(HEADER_IF_MODIFIED_SINCE, 'i', "If-Modified-Since")                                          \
    X(HEADER_CONTENT_TYPE, 'c', "Content-Type")                                                    \
    X(HEADER_AUTHORIZATION, 'a', "Authorization")                                                  \
    X(HEADER_EXPECT, 'e', "Expect")                                                                \
    X(HEADER_X_FORWARDED_HOST, 'x', "X-Forwarded-Host")                                            \
    X(HEADER_X_FORWARDED_FOR, 'x', "X-Forwarded-For")                                              \
    X(HEADER_X_REQUEST_ID, 'x', "X-Request-Id")                                                    \
    X(HEADER_REFERER, 'r', "Referer")                                                              \
    X(HEADER_USER_AGENT, 'u', "User-Agent")

/* First letter and length tell them apart: two in one slot do not compile (-Woverride-init). */
#define SLOTS             32u
#define SLOT(letter, len) ((unsigned)((unsigned char)(letter) + (len)) % SLOTS)

static const struct {
    const char *name; /* NULL: a free slot */
    size_t len;
    enum known_header which;
} slots[SLOTS] = {
#define KNOWN(header, letter, text)                                                                \
    [SLOT(letter, sizeof text - 1)] = {text, sizeof text - 1, header},
    KNOWN_HEADERS(KNOWN)
#undef KNOWN
};

enum known_header header_known(const char *name, size_t len)
{
    size_t at = SLOT(name[0] | 0x20, len);

    /* Nearly all write it as the standards do. */
    if (slots[at].len == len && slots[at].name != NULL &&
        (memcmp(slots[at].name, name, len) == 0 || strncasecmp(slots[at].name, name, len) == 0))
        return slots[at].which;
    return HEADER_COUNT;
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

static void add_to_list(struct str *list, const char *first, const char *value)
{
    if (list->len == 0)
        str_append_text(list, first);
    str_append_text(list, ", ");
    str_append_text(list, value);
}

void header_scan_add(struct header_scan *scan, const char *name, size_t name_len, const char *value,
                     size_t value_len)
{
    if (value == NULL)
        value = "";
    /* A CR alone: some take it for a line's end (RFC 9112 2.2). */
    if (strlen(value) != value_len || memchr(value, '\r', value_len) != NULL) {
        scan->malformed = true;
        return;
    }
    enum known_header which = header_known(name, name_len);
    if (which == HEADER_COUNT) {
        if (!is_token(name, name_len) || hides_framing(name, name_len))
            scan->malformed = true;
        return;
    }
    if (scan->lines[which]++ == 0)
        scan->value[which] = value;
    else if (which < HEADER_LISTS)
        add_to_list(&scan->joined[which], scan->value[which], value);
    else if (which == HEADER_X_FORWARDED_HOST)
        scan->value[which] = value; /* the nearest proxy's is the last */
}

void header_scan_done(struct header_scan *scan)
{
    for (size_t i = 0; i < HEADER_LISTS; i++)
        str_done(&scan->joined[i]);
}
