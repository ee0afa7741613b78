/* One pass over the header of a request: its known fields, and whether all of it is well-formed
 * (RFC 9110 5.1, 5.5). Pure, thread safe for each scan; no microhttpd here. */
#ifndef SITEMAPD_HTTP_HEADER_SCAN_H
#define SITEMAPD_HTTP_HEADER_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"

/* The header fields that the listener, a handler or a log needs: found in one pass. */
enum known_header {
    /* Lists: given on several lines they are one (RFC 9110 5.3). */
    HEADER_ACCEPT_ENCODING,
    HEADER_ACCEPT,
    HEADER_IF_NONE_MATCH,
    HEADER_IF_MATCH,
    HEADER_CONTENT_ENCODING,
    HEADER_X_FORWARDED_FOR,
    HEADER_CDN_LOOP, /* through whom the request came (RFC 8586) */
    HEADER_LISTS,    /* so many */
    HEADER_HOST = HEADER_LISTS,
    HEADER_CONTENT_LENGTH,
    HEADER_TRANSFER_ENCODING,
    HEADER_IF_MODIFIED_SINCE,
    HEADER_IF_UNMODIFIED_SINCE,
    HEADER_RANGE,
    HEADER_IF_RANGE,
    HEADER_CONTENT_TYPE,
    HEADER_AUTHORIZATION,
    HEADER_EXPECT,
    HEADER_X_FORWARDED_HOST,
    HEADER_X_REQUEST_ID,
    HEADER_SITEMAPD_VIA, /* which door a client says it is, and who: "cli; user=NAME" */
    HEADER_REFERER,
    HEADER_USER_AGENT,
    HEADER_IDEMPOTENCY_KEY,
    HEADER_COUNT, /* none of them */
};

/* All zero at first; small, since it is cleared for each request. */
struct header_scan {
    const char *value[HEADER_COUNT]; /* of the first line; borrowed; NULL: absent */
    uint8_t lines[HEADER_COUNT];     /* 255: or more */
    uint32_t fields;                 /* lines of any name */
    bool malformed;                  /* a name is no token, or a value holds a NUL */
    bool failed;                     /* no memory to join a list: what it says is not known */
    struct str *joined; /* [HEADER_LISTS], of those on several lines; owned, mostly NULL */
};

/* Adds one header line; lengths are the parser's, and the text ends with a NUL behind them. `value`
 * may be NULL: empty. Texts are borrowed until header_scan_done. */
void header_scan_add(struct header_scan *scan, const char *name, size_t name_len, const char *value,
                     size_t value_len);
/* Frees the lists; the scan is to be cleared before it is used again. */
void header_scan_done(struct header_scan *scan);
/* What a known field says: a list whole, of others the value above. Borrowed. NULL: it is absent
 * (or the scan failed). */
static inline const char *header_scan_value(const struct header_scan *scan, enum known_header which)
{
    if (which >= HEADER_LISTS || scan->lines[which] < 2)
        return scan->value[which];
    return scan->failed ? NULL : scan->joined[which].data;
}

#endif
