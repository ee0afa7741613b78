/* One pass over the header of a request: its known fields, and whether all of it is well-formed
 * (RFC 9110 5.1, 5.5). Pure, thread safe for each scan; no microhttpd here. */
#ifndef SITEMAPD_HTTP_HEADER_SCAN_H
#define SITEMAPD_HTTP_HEADER_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "server/rules/str.h"

/* The header fields that the listener, a cached page or a log needs: found in one pass. */
enum known_header {
    /* Lists: given on several lines they are one (RFC 9110 5.3). */
    HEADER_ACCEPT_ENCODING,
    HEADER_IF_NONE_MATCH,
    HEADER_X_FORWARDED_FOR,
    HEADER_LISTS, /* so many */
    HEADER_HOST = HEADER_LISTS,
    HEADER_CONTENT_LENGTH,
    HEADER_TRANSFER_ENCODING,
    HEADER_IF_MODIFIED_SINCE,
    HEADER_CONTENT_TYPE,
    HEADER_AUTHORIZATION,
    HEADER_EXPECT,
    HEADER_X_FORWARDED_HOST,
    HEADER_X_REQUEST_ID,
    HEADER_REFERER,
    HEADER_USER_AGENT,
    HEADER_COUNT, /* none of them */
};

struct header_scan {
    const char *value[HEADER_COUNT]; /* of the first line; borrowed; NULL: absent */
    unsigned lines[HEADER_COUNT];
    bool malformed;                  /* a name is no token, or a value holds a NUL */
    struct str joined[HEADER_LISTS]; /* of a list on several lines; owned, empty mostly */
};

/* Adds one header line; lengths are the parser's, and the text ends with a NUL behind them. `value`
 * may be NULL: empty. Texts are borrowed until header_scan_done. */
void header_scan_add(struct header_scan *scan, const char *name, size_t name_len, const char *value,
                     size_t value_len);
/* Frees the lists; the scan is to be cleared before it is used again. */
void header_scan_done(struct header_scan *scan);
/* HEADER_COUNT where it is none of them. */
enum known_header header_known(const char *name, size_t len);

/* What a known field says: a list whole, of others the value above. Borrowed. NULL: it is absent,
 * or there was no memory to join its lines. */
static inline const char *header_scan_value(const struct header_scan *scan, enum known_header which)
{
    if (which >= HEADER_LISTS || scan->lines[which] < 2)
        return scan->value[which];
    return scan->joined[which].failed ? NULL : scan->joined[which].data;
}

#endif
