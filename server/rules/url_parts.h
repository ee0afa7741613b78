/* The parts that url.c is made of; no other module includes this. Pure functions, thread safe. */
#ifndef SITEMAPD_RULES_URL_PARTS_H
#define SITEMAPD_RULES_URL_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"

/* The normal form may be shorter than what is given (`%41` is `A`, dot segments vanish), so that
 * the work is done in a buffer that any loc of LOC_MAX_CHARS fits into fully encoded. What is
 * longer still is RULE_LOC_TOO_LONG without a closer look. */
#define URL_WORK_SIZE 8192

struct url_authority {
    char host[HOST_MAX_CHARS + 1]; /* normalised, NUL-terminated, brackets included */
    size_t host_len;
    uint16_t port; /* 0 where none is written */
};

/* Reads `host[:port]`. `rooted` allows a dot behind a host name, and drops it. RULE_OK,
 * RULE_LOC_CREDENTIALS, RULE_LOC_HOST, RULE_LOC_HOST_IDN or RULE_LOC_PORT; then `*out` is
 * undefined. */
enum rule_code url_read_authority(const char *text, size_t len, bool rooted,
                                  struct url_authority *out);

/* Looks at each byte of a URL reference: RULE_OK, RULE_LOC_CONTROL, RULE_LOC_SPACE, RULE_LOC_UTF8
 * or RULE_LOC_MALFORMED, whichever fault comes first. */
enum rule_code url_check_bytes(const char *text, size_t len);

/* Writes path and query in normal form to `out`, `size` bytes, without a NUL: the path begins with
 * a slash, whether one is given or not. `text` has passed url_check_bytes and has no fragment.
 * RULE_OK, RULE_LOC_PERCENT, RULE_LOC_MALFORMED or RULE_LOC_TOO_LONG (`out` is full). */
enum rule_code url_write_path(const char *text, size_t len, char *out, size_t size,
                              size_t *path_len, size_t *total_len);

#endif
