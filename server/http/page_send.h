/* How the listener sends a snapshot. Internal to server/http/. */
#ifndef SITEMAPD_HTTP_PAGE_SEND_H
#define SITEMAPD_HTTP_PAGE_SEND_H

#include <microhttpd.h>

#include "server/http/page_readers.h"
#include "server/http/request.h"

enum page_send {
    PAGE_SENT,
    PAGE_BUSY,   /* too many identity replies are being inflated */
    PAGE_FAILED, /* no memory, or the library took it not */
};

/* Queues a representation with status 200 or 304. The caller holds its reference to `s` until the
 * request is completed: the bytes are sent from its buffer. `*bytes`: the body's. Where PAGE_SENT,
 * `reader` may have entered with `fd`, the connection's: the caller has it leave before that. */
enum page_send page_send_queue(struct MHD_Connection *mhd, struct snapshot *s,
                               enum representation represent, unsigned status, bool head,
                               struct page_reader *reader, int fd, uint64_t *bytes);

#endif
