/* Takes a request's header over from libmicrohttpd, and notices where the library read it otherwise
 * than the next server would: such a header is malformed. On the connection's thread. */
#ifndef SITEMAPD_HTTP_HEADER_READ_H
#define SITEMAPD_HTTP_HEADER_READ_H

#include <microhttpd.h>

#include "server/http/header_scan.h"

/* In the first handler call, with that call's `method` and `version`. Fills a cleared `scan`, which
 * borrows the texts for the request's life. */
void header_read(struct MHD_Connection *mhd, const char *method, const char *version,
                 struct header_scan *scan);

#endif
