#include "server/http/blob_reply.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/http/status.h"
#include "server/rules/negotiate.h"
#include "server/rules/range.h"

static bool is_not_modified(const struct request *request, const struct blob *b, const char *etag)
{
    /* An unknown time is later than any date, so that only the tag counts. */
    return negotiate_not_modified(request_header(request, HEADER_IF_NONE_MATCH),
                                  request_header(request, HEADER_IF_MODIFIED_SINCE), etag,
                                  b->modified_at > 0 ? b->modified_at : INT64_MAX,
                                  atomic_load(&b->same_second), request->now);
}

/* Of GET alone (RFC 9110 14.2), and only of what the client has the rest of. */
static enum range_kind choose_part(const struct request *request, const struct blob *b,
                                   const char *etag, uint64_t size, uint64_t *first, uint64_t *len)
{
    const char *range = request_header(request, HEADER_RANGE);
    if (request->method != HTTP_GET ||
        (range != NULL &&
         !range_applies(request_header(request, HEADER_IF_RANGE), etag, b->modified_at,
                        atomic_load(&b->same_second), request->now)))
        range = NULL;
    return range_parse(range, size, first, len);
}

static void refuse_part(struct reply *reply, uint64_t size)
{
    char text[40];
    reply_text(reply, 416, status_reason(416));
    snprintf(text, sizeof text, "bytes */%" PRIu64, size);
    reply_header(reply, "Content-Range", text);
    reply_header(reply, "Accept-Ranges", "bytes");
}

void blob_reply(struct request *request, struct blob *b, const char *cache_control)
{
    struct reply *reply = &request->reply;
    bool gzip = b->gzip != NULL && negotiate_gzip(request_header(request, HEADER_ACCEPT_ENCODING));
    const char *etag = gzip ? b->etag_gzip : b->etag;
    size_t size = gzip ? b->gzip_len : b->len;
    uint64_t first = 0, len = size;

    reply->status = 200;
    if (is_not_modified(request, b, etag)) {
        reply->status = 304;
    } else {
        switch (choose_part(request, b, etag, size, &first, &len)) {
        case RANGE_WHOLE:
            break;
        case RANGE_PART:
            reply->status = 206;
            break;
        case RANGE_UNSATISFIABLE:
            blob_unref(b);
            refuse_part(reply, size);
            return;
        }
    }
    reply->blob = b;
    reply->represent = gzip ? REPRESENT_GZIP : REPRESENT_IDENTITY;
    reply->blob_first = (size_t)first;
    reply->blob_len = (size_t)len;
    reply->cache_control = cache_control;
}
