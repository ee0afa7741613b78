#include "server/http/blob_send.h"

#include <stdio.h>

#include "server/rules/negotiate.h"

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* What a 304 has (RFC 9110 15.4.5), and all others too. */
static bool add_validators(struct MHD_Response *response, const struct request *request)
{
    const struct blob *b = request->reply.blob;
    bool gzip = request->reply.represent == REPRESENT_GZIP;
    bool ok = add(response, "ETag", gzip ? b->etag_gzip : b->etag);
    char date[30];

    if (ok && b->modified_at > 0) {
        /* RFC 9110 8.8.2.1: never later than the message itself. */
        http_date_format(b->modified_at < request->now ? b->modified_at : request->now, date);
        ok = add(response, "Last-Modified", date);
    }
    if (b->gzip != NULL) /* one URL, two representations: RFC 9110 12.5.5 */
        ok = ok && add(response, "Vary", "Accept-Encoding");
    return ok && add(response, "Cache-Control", request->reply.cache_control);
}

static bool add_range(struct MHD_Response *response, const struct reply *reply)
{
    size_t size = reply->represent == REPRESENT_GZIP ? reply->blob->gzip_len : reply->blob->len;
    char text[80];

    if (!add(response, "Accept-Ranges", "bytes"))
        return false;
    if (reply->status != 206)
        return true;
    snprintf(text, sizeof text, "bytes %zu-%zu/%zu", reply->blob_first,
             reply->blob_first + reply->blob_len - 1, size);
    return add(response, "Content-Range", text);
}

static bool add_type(struct MHD_Response *response, const struct reply *reply)
{
    return add(response, "Content-Type", reply->blob->content_type) &&
           (reply->represent != REPRESENT_GZIP || add(response, "Content-Encoding", "gzip"));
}

/* What to do with the content that comes along. */
static bool add_advice(struct MHD_Response *response, const struct reply *reply)
{
    return add(response, "X-Content-Type-Options", "nosniff") &&
           add(response, "X-Robots-Tag", "noindex") && add_range(response, reply);
}

enum MHD_Result blob_send_queue(struct MHD_Connection *mhd, const struct request *request,
                                bool close, uint64_t *bytes)
{
    const struct reply *reply = &request->reply;
    const struct blob *b = reply->blob;
    uint8_t *body = reply->represent == REPRESENT_GZIP ? b->gzip : b->bytes;
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->blob_len, body + reply->blob_first, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_NO;

    if (response == NULL)
        return MHD_NO;
    bool with_content = reply->status != 304;
    if ((!with_content || add_type(response, reply)) && add_validators(response, request) &&
        (!with_content || add_advice(response, reply)) &&
        (!close || add(response, "Connection", "close")))
        result = MHD_queue_response(mhd, reply->status, response);
    MHD_destroy_response(response);
    *bytes = request->method == HTTP_HEAD || reply->status == 304 ? 0 : reply->blob_len;
    return result;
}
