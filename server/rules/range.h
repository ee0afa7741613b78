/* Byte ranges of HTTP, on header text alone (RFC 9110 14.1.2, 14.2, 13.1.5). Pure functions, thread
 * safe; inputs are NUL-terminated header values or NULL where absent. */
#ifndef SITEMAPD_RULES_RANGE_H
#define SITEMAPD_RULES_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum range_kind {
    RANGE_WHOLE,         /* 200: no range, several, or nothing that is one */
    RANGE_PART,          /* 206 */
    RANGE_UNSATISFIABLE, /* 416 */
};

/* What Range asks of a representation of `size` bytes. PART: `*first` and `*len` tell which, at
 * least one byte and all of them there; otherwise they are 0 and `size`. */
enum range_kind range_parse(const char *range, uint64_t size, uint64_t *first, uint64_t *len);

/* True where Range counts: If-Range is absent, or names exactly the representation at hand, by its
 * strong tag, or by its date where that stands for one version alone (`modified_at` 0: it has none;
 * `same_second` as for negotiate_not_modified). */
bool range_applies(const char *if_range, const char *etag, int64_t modified_at, bool same_second,
                   int64_t now);

#endif
