/* Queues a reply with a blob. Internal to server/http/. */
#ifndef SITEMAPD_HTTP_BLOB_SEND_H
#define SITEMAPD_HTTP_BLOB_SEND_H

#include <microhttpd.h>

#include "server/http/request.h"

/* Queues what blob_reply filled. The bytes are sent from the blob's buffers: the reply holds its
 * reference until the request is completed. `close`: say that the connection ends behind it.
 * `*bytes`: the body's. */
enum MHD_Result blob_send_queue(struct MHD_Connection *mhd, const struct request *request,
                                bool close, uint64_t *bytes);

#endif
