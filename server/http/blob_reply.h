/* Answers a request with a served file: which representation, whether the client has it already,
 * and which part of it (RFC 9110 12.5.3, 13.2.2, 14.2). No microhttpd here. */
#ifndef SITEMAPD_HTTP_BLOB_REPLY_H
#define SITEMAPD_HTTP_BLOB_REPLY_H

#include "server/http/request.h"

/* Fills request->reply for GET or HEAD: 200, 206, 304 or 416. Takes over the caller's reference to
 * `b`. `cache_control` is borrowed and lives longer than the listener. */
void blob_reply(struct request *request, struct blob *b, const char *cache_control);

#endif
