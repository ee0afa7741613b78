/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds replies: prebuilt ones of pages, small ones of the API, files, ranges. */
#include "server/http/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "server/base/clock.h"
#include "server/http/internal.h"
#include "server/http/request.h"
#include "server/rules/http/negotiate.h"

/* ---- what is answered --------------------------------------------------------------------- */

struct variant {
    const uint8_t *bytes; /* NULL: inflated as they are sent */
    size_t len;
    const char *etag;
};

static struct variant variant_of(const struct resource *r, enum representation represent)
{
    switch (represent) {
    case REPRESENT_GZIP:
        return (struct variant){r->gzip, r->gzip_len, r->etag_gzip};
    case REPRESENT_FILE:
        return (struct variant){r->gzip, r->gzip_len, r->etag_file};
    case REPRESENT_IDENTITY:
    case REPRESENTATIONS:
        break;
    }
    return (struct variant){r->bytes, r->raw_len, r->etag_identity};
}

static bool is_page(const struct resource *r)
{
    return r->held.kind == HELD_PAGE;
}

/* The part to send: only for GET (RFC 9110 14.2), and not if If-Range names another version. */
static enum range_kind choose_part(const struct request *request, const struct validators *own,
                                   uint64_t size, uint64_t *first, uint64_t *len)
{
    const char *range = request_header(request, HEADER_RANGE);
    if (request->method != HTTP_GET ||
        (range != NULL &&
         !range_applies(request_header(request, HEADER_IF_RANGE), own, request->now)))
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

void resource_reply(struct request *request, struct resource *r, bool as_file,
                    const struct cache_fields *cache)
{
    struct reply *reply = &request->reply;
    bool gzip = r->gzip != NULL &&
                negotiate_coding(request_header(request, HEADER_ACCEPT_ENCODING), &reply->offered);
    enum representation represent = as_file ? REPRESENT_FILE
                                    : gzip  ? REPRESENT_GZIP
                                            : REPRESENT_IDENTITY;
    struct variant v = variant_of(r, represent);
    struct conditions conditions = request_conditions(request);
    /* A page dated in the future is sent with the time of its reply: its own date must not be
     * compared. */
    bool dated = !is_page(r) || r->dated_at == r->changed_at;
    struct validators own = {v.etag, dated ? r->changed_at : 0,
                             atomic_load(&r->same_second) || request->undated};
    enum range_kind part = RANGE_WHOLE;
    uint64_t first = 0, len = v.len;

    reply->status = 200;
    switch (negotiate_conditions(&conditions, &own, request->now)) {
    case CONDITION_FAILED:
        resource_unref(r);
        reply_text(reply, 412, status_reason(412));
        return;
    case CONDITION_NOT_MODIFIED:
        reply->status = 304;
        break;
    case CONDITION_NONE:
        if (!is_page(r))
            part = choose_part(request, &own, v.len, &first, &len);
        break;
    }
    if (part == RANGE_UNSATISFIABLE) {
        resource_unref(r);
        refuse_part(reply, v.len);
        return;
    }
    if (part == RANGE_PART)
        reply->status = 206;
    reply->resource = r;
    reply->represent = represent;
    reply->first = (size_t)first;
    reply->len = (size_t)len;
    reply->cache = cache;
    reply->site_id = request->site_id;
}

/* ---- a response --------------------------------------------------------------------------- */

/* The reader for HEAD and 304, which announce the length of a body but never send it. */
static ssize_t no_bytes(void *cls, uint64_t position, char *buffer, size_t max)
{
    (void)cls;
    (void)position;
    (void)buffer;
    (void)max;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static struct MHD_Response *length_alone(uint64_t len)
{
    return MHD_create_response_from_callback(len, 1, no_bytes, NULL, NULL);
}

struct MHD_Response *not_modified_new(uint64_t len)
{
#if NOT_MODIFIED_HAS_LENGTH
    return length_alone(len);
#else
    struct MHD_Response *response = MHD_create_response_from_buffer_static(0, "");

    (void)len;
    if (response != NULL &&
        MHD_set_response_options(response, MHD_RF_HEAD_ONLY_RESPONSE, MHD_RO_END) != MHD_YES) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
#endif
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Adds the cache tags: that of the site, and for a page that of its index. */
static bool add_tags(struct MHD_Response *response, const struct reply *reply)
{
    const char *separator = strcmp(reply->cache->tag, "Surrogate-Key") == 0 ? " " : ",";
    char tags[96];
    int len = snprintf(tags, sizeof tags, "sitemap-site-%" PRId64, reply->site_id);
    if (is_page(reply->resource))
        snprintf(tags + len, sizeof tags - (size_t)len, "%ssitemap-index-%" PRId64, separator,
                 reply->resource->index_id);
    return reply->site_id == 0 || add(response, reply->cache->tag, tags);
}

static bool add_cache_fields(struct MHD_Response *response, const struct reply *reply)
{
    const struct cache_fields *cache = reply->cache;
    return add(response, "Cache-Control", cache->cache_control) &&
           (cache->cdn_cache_control == NULL ||
            add(response, "CDN-Cache-Control", cache->cdn_cache_control)) &&
           (cache->tag == NULL || add_tags(response, reply));
}

/* Adds the fields of a 304 (RFC 9110 15.4.5), which all others have too. `now`: the date of the
 * message. */
static bool add_validators(struct MHD_Response *response, const struct reply *reply, int64_t now)
{
    const struct resource *r = reply->resource;
    bool ok = add(response, "ETag", variant_of(r, reply->represent).etag);

    if (ok && (is_page(r) || r->changed_at > 0)) {
        char date[30];
        /* RFC 9110 8.8.2.1: never later than the message itself. */
        http_date_format(r->changed_at < now ? r->changed_at : now, date);
        ok = add(response, "Last-Modified", date);
    }
    /* One URL, two representations: RFC 9110 12.5.5. */
    if (r->gzip != NULL && reply->represent != REPRESENT_FILE)
        ok = ok && add(response, "Vary", "Accept-Encoding");
    return ok && add_cache_fields(response, reply);
}

static bool add_type(struct MHD_Response *response, const struct reply *reply)
{
    if (reply->represent == REPRESENT_FILE)
        return add(response, "Content-Type", "application/gzip");
    return add(response, "Content-Type", reply->resource->content_type) &&
           (reply->represent != REPRESENT_GZIP || add(response, "Content-Encoding", "gzip"));
}

/* Adds fields that say how to treat the content. */
static bool add_advice(struct MHD_Response *response, const struct reply *reply)
{
    size_t size = variant_of(reply->resource, reply->represent).len;
    char range[80];

    if (!add(response, "X-Content-Type-Options", "nosniff") ||
        !add(response, "X-Robots-Tag", "noindex") ||
        !add(response, "Accept-Ranges", is_page(reply->resource) ? "none" : "bytes"))
        return false;
    /* XML of other authors is served at the site's origin: XHTML in it must not run scripts
     * there. */
    if (!is_page(reply->resource) && !add(response, "Content-Security-Policy", "script-src 'none'"))
        return false;
    if (reply->status != 206)
        return true;
    snprintf(range, sizeof range, "bytes %zu-%zu/%zu", reply->first, reply->first + reply->len - 1,
             size);
    return add(response, "Content-Range", range);
}

/* Adds the fields to a response that was just made; NULL if that is NULL or out of memory. */
static struct MHD_Response *with_fields(struct MHD_Response *response, const struct reply *reply,
                                        int64_t now)
{
    bool content = reply->status != 304;

    if (response == NULL ||
        ((!content || add_type(response, reply)) && add_validators(response, reply, now) &&
         (!content || add_advice(response, reply))))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

/* A response with bytes in memory, or with a length alone. */
static struct MHD_Response *make_response(const struct reply *reply, int64_t now)
{
    struct variant v = variant_of(reply->resource, reply->represent);
    struct MHD_Response *response =
        reply->status == 304 ? not_modified_new(reply->len)
        : v.bytes == NULL
            ? length_alone(reply->len)
            : MHD_create_response_from_buffer(reply->len, (void *)(v.bytes + reply->first),
                                              MHD_RESPMEM_PERSISTENT);

    return with_fields(response, reply, now);
}

/* ---- a page uncompressed ------------------------------------------------------------------ */

#define INFLATE_BLOCK 65536u /* bytes of a page inflated in one call */
#define INFLATE_GZIP  (15 + 16)

static ssize_t inflate_bytes(void *cls, uint64_t position, char *buffer, size_t max)
{
    z_stream *z = cls;

    (void)position; /* the library only ever asks for the next bytes */
    z->next_out = (Bytef *)buffer;
    z->avail_out = max > INFLATE_BLOCK ? INFLATE_BLOCK : (uInt)max;
    uInt asked = z->avail_out;
    int status = inflate(z, Z_NO_FLUSH);
    ssize_t got = (ssize_t)(asked - z->avail_out);
    if ((status != Z_OK && status != Z_STREAM_END) || got == 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    return got;
}

static void inflation_free(void *cls)
{
    inflateEnd(cls);
    free(cls);
}

/* A response with the whole page, which is small. */
static struct MHD_Response *make_inflated(const struct resource *s)
{
    size_t size = s->raw_len;
    uint8_t *xml = malloc(size);
    z_stream z = {.next_in = (z_const Bytef *)s->gzip,
                  .avail_in = (uInt)s->gzip_len,
                  .next_out = xml,
                  .avail_out = (uInt)size};

    if (xml == NULL || inflateInit2(&z, INFLATE_GZIP) != Z_OK) {
        free(xml);
        return NULL;
    }
    bool whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == size;
    inflateEnd(&z);
    struct MHD_Response *response =
        whole ? MHD_create_response_from_buffer(size, xml, MHD_RESPMEM_MUST_FREE) : NULL;
    if (response == NULL)
        free(xml);
    return response;
}

/* A response that inflates the page as it is sent. */
static struct MHD_Response *make_inflating(const struct resource *s)
{
    z_stream *z = calloc(1, sizeof *z);

    if (z == NULL || inflateInit2(z, INFLATE_GZIP) != Z_OK) {
        free(z);
        return NULL;
    }
    z->next_in = (z_const Bytef *)s->gzip;
    z->avail_in = (uInt)s->gzip_len; /* a page is 52,428,800 bytes at most */
    struct MHD_Response *response = MHD_create_response_from_callback(
        s->raw_len, INFLATE_BLOCK, inflate_bytes, z, inflation_free);
    if (response == NULL)
        inflation_free(z);
    return response;
}

/* ---- a page's prebuilt ones --------------------------------------------------------------- */

/* The attachment of a page. The responses point into its buffer without a reference to it: the
 * request that queues one has it, until it is completed (resource.h). */
struct page_responses {
    /* By representation; the one of identity is only for HEAD, since it has no bytes. */
    struct MHD_Response *whole[REPRESENTATIONS], *not_modified[REPRESENTATIONS];
};

static void responses_free(void *attachment)
{
    struct page_responses *p = attachment;

    for (size_t i = 0; i < REPRESENTATIONS; i++) {
        if (p->whole[i] != NULL)
            MHD_destroy_response(p->whole[i]);
        if (p->not_modified[i] != NULL)
            MHD_destroy_response(p->not_modified[i]);
    }
    free(p);
}

bool page_response_attach(void *cache, struct resource *s)
{
    struct page_responses *p = calloc(1, sizeof *p);
    struct reply reply = {.resource = s, .cache = cache, .site_id = s->site_id};
    int64_t now = (int64_t)time(NULL);

    if (p == NULL)
        return false;
    s->dated_at = s->changed_at < now ? s->changed_at : now;
    for (unsigned i = 0; i < REPRESENTATIONS; i++) {
        reply.represent = i;
        reply.len = variant_of(s, i).len;
        reply.status = 200;
        p->whole[i] = make_response(&reply, now);
        reply.status = 304;
        p->not_modified[i] = make_response(&reply, now);
        if (p->whole[i] == NULL || p->not_modified[i] == NULL) {
            responses_free(p);
            return false;
        }
    }
    s->attachment = p;
    s->attachment_free = responses_free;
    return true;
}

/* ---- on its way out ----------------------------------------------------------------------- */

/* Enters the reader even if only a small part is sent, since the whole resource is held for it. */
static bool enter(const struct recipient *to, struct resource *r, uint64_t bytes, bool inflate)
{
    if (to->readers == NULL || bytes == 0 ||
        (bytes <= READERS_MIN_BYTES && r->held.bytes <= READERS_MIN_BYTES))
        return true;
    const struct reading what = {
        .held = &r->held,
        .address = to->address,
        .fd = to->fd,
        .place = inflate && bytes > READERS_MIN_BYTES,
        .now_ms = clock_coarse_ms(),
    };
    return readers_enter(to->readers, to->reader, &what);
}

enum resource_send resource_send_queue(struct MHD_Connection *mhd, const struct request *request,
                                       const struct recipient *to, uint64_t *bytes)
{
    const struct reply *reply = &request->reply;
    struct resource *r = reply->resource;
    const struct page_responses *made = r->attachment;
    bool body = reply->status != 304 && request->method != HTTP_HEAD;
    bool inflate = body && variant_of(r, reply->represent).bytes == NULL;
    struct MHD_Response *own = NULL, *response = NULL;

    *bytes = body ? reply->len : 0;
    if (!enter(to, r, *bytes, inflate))
        return RESOURCE_BUSY;
    if (made != NULL && !inflate) {
        response = reply->status == 304 ? made->not_modified[reply->represent]
                                        : made->whole[reply->represent];
    } else {
        own = !inflate                     ? make_response(reply, request->now)
              : *bytes > READERS_MIN_BYTES ? make_inflating(r)
                                           : make_inflated(r);
        if (inflate)
            own = with_fields(own, reply, request->now);
        response = own;
    }
    enum MHD_Result result = MHD_NO;
    /* The prebuilt response of a page never has it, so at a stop pipelined requests are still
     * answered. */
    bool close = to->close && own != NULL && !inflate;
    if (response != NULL && (!close || add(own, "Connection", "close")))
        result = MHD_queue_response(mhd, reply->status, response);
    if (own != NULL)
        MHD_destroy_response(own);
    return result == MHD_YES ? RESOURCE_SENT : RESOURCE_FAILED;
}

void resource_cut(void *readers, enum held_kind kind, uint64_t bytes)
{
    readers_cut(readers, kind, bytes, clock_coarse_ms());
}
