/* Deflates one piece of a page at a time: each a fresh raw stream that ends on a byte boundary, so
 * that pieces can be joined in any order (RFC 1951 3.2.3). A reset begins and Z_SYNC_FLUSH ends it:
 * the bytes of Z_FULL_FLUSH, which would only clear once more what the reset clears. Internal to
 * publish. */
#ifndef SITEMAPD_PUBLISH_DEFLATER_H
#define SITEMAPD_PUBLISH_DEFLATER_H

#include <stddef.h>

#include "server/rules/str.h"

struct deflater;

/* `level` 1 to 9. NULL when out of memory. One thread at a time. */
struct deflater *deflater_new(int level);
/* Appends the compressed piece to `out`; out->failed tells of memory. The bytes depend on input,
 * level and zlib's version alone, never on buffer sizes or on what was compressed before. */
void deflater_piece(struct deflater *d, const void *raw, size_t len, struct str *out);
void deflater_free(struct deflater *d);

#endif
