#include "server/http/page_response.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "server/http/page_send.h"
#include "server/rules/negotiate.h"

#define INFLATE_BLOCK 65536u /* bytes of a page inflated in one call */
#define INFLATE_GZIP  (15 + 16)

/* What hangs on a snapshot. The responses point into its buffer and hold no reference to it: who
 * queues them does, until the request is completed (snapshot.h). */
struct page_responses {
    struct page_response_options *options; /* borrowed */
    /* By representation; that of identity is for HEAD only: it has no bytes. */
    struct MHD_Response *whole[REPRESENTATIONS], *not_modified[REPRESENTATIONS];
    char last_modified[30];
    struct page_held held;
};

/* One uncompressed page on its way out. */
struct inflation {
    struct page_response_options *options;
    z_stream stream;
};

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

/* What a 304 has (RFC 9110 15.4.5), and all others too. */
static bool add_validators(struct MHD_Response *response, const struct page_responses *p,
                           const struct snapshot *s, enum representation represent)
{
    const char *etag = represent == REPRESENT_FILE   ? s->etag_file
                       : represent == REPRESENT_GZIP ? s->etag_gzip
                                                     : s->etag_identity;
    bool ok = add(response, "ETag", etag) && add(response, "Last-Modified", p->last_modified);

    if (represent != REPRESENT_FILE) /* one URL, two representations: RFC 9110 12.5.5 */
        ok = ok && add(response, "Vary", "Accept-Encoding");
    return ok && add(response, "Cache-Control", p->options->cache_control);
}

static bool add_type(struct MHD_Response *response, enum representation represent)
{
    if (represent == REPRESENT_FILE)
        return add(response, "Content-Type", "application/gzip");
    return add(response, "Content-Type", "application/xml; charset=utf-8") &&
           (represent != REPRESENT_GZIP || add(response, "Content-Encoding", "gzip"));
}

/* What to do with the content that comes along. */
static bool add_advice(struct MHD_Response *response)
{
    return add(response, "X-Content-Type-Options", "nosniff") &&
           add(response, "X-Robots-Tag", "noindex") && add(response, "Accept-Ranges", "none");
}

/* Takes a response that was made, or NULL. */
static struct MHD_Response *with_headers(struct MHD_Response *response,
                                         const struct page_responses *p, const struct snapshot *s,
                                         enum representation represent, bool with_content)
{
    if (response == NULL ||
        ((!with_content || add_type(response, represent)) &&
         add_validators(response, p, s, represent) && (!with_content || add_advice(response))))
        return response;
    MHD_destroy_response(response);
    return NULL;
}

static struct MHD_Response *make_gzip(const struct snapshot *s)
{
    return MHD_create_response_from_buffer(s->gzip_len, (void *)s->gzip, MHD_RESPMEM_PERSISTENT);
}

/* HEAD and 304 have the length of a body but never ask for one. */
static ssize_t no_bytes(void *cls, uint64_t position, char *buffer, size_t max)
{
    (void)cls;
    (void)position;
    (void)buffer;
    (void)max;
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

static ssize_t inflate_bytes(void *cls, uint64_t position, char *buffer, size_t max)
{
    struct inflation *inflation = cls;
    z_stream *z = &inflation->stream;

    (void)position; /* it only ever asks for what comes next */
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
    struct inflation *inflation = cls;

    inflateEnd(&inflation->stream);
    atomic_fetch_sub(&inflation->options->inflating, 1);
    free(inflation);
}

/* The length without the bytes. */
static struct MHD_Response *make_identity(const struct snapshot *s)
{
    return MHD_create_response_from_callback(s->raw_len, 1, no_bytes, NULL, NULL);
}

/* A response that inflates the page as it is sent. `*busy`: there are too many of them. */
static struct MHD_Response *make_inflating(const struct page_responses *p, const struct snapshot *s,
                                           bool *busy)
{
    struct page_response_options *options = p->options;

    *busy = atomic_fetch_add(&options->inflating, 1) >= options->max_identity;
    struct inflation *inflation = *busy ? NULL : calloc(1, sizeof *inflation);
    if (inflation == NULL || inflateInit2(&inflation->stream, INFLATE_GZIP) != Z_OK) {
        atomic_fetch_sub(&options->inflating, 1);
        free(inflation);
        return NULL;
    }
    inflation->options = options;
    inflation->stream.next_in = (z_const Bytef *)s->gzip;
    inflation->stream.avail_in = (uInt)s->gzip_len; /* a page is 52,428,800 bytes at most */
    struct MHD_Response *response = MHD_create_response_from_callback(
        s->raw_len, INFLATE_BLOCK, inflate_bytes, inflation, inflation_free);
    if (response == NULL)
        inflation_free(inflation);
    return with_headers(response, p, s, REPRESENT_IDENTITY, true);
}

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

/* A 304 may tell a length, but no other than that of the 200 (RFC 9110 8.6); the library always
 * sends one, of what the response has. */
static bool make_responses(struct page_responses *p, const struct snapshot *s)
{
    for (unsigned i = 0; i < REPRESENTATIONS; i++) {
        enum representation represent = i;
        for (int with_content = 0; with_content <= 1; with_content++) {
            struct MHD_Response *response =
                represent == REPRESENT_IDENTITY ? make_identity(s) : make_gzip(s);
            response = with_headers(response, p, s, represent, with_content);
            if (response == NULL)
                return false;
            *(with_content ? &p->whole[i] : &p->not_modified[i]) = response;
        }
    }
    return true;
}

bool page_response_attach(void *context, struct snapshot *s)
{
    struct page_responses *p = calloc(1, sizeof *p);
    if (p == NULL)
        return false;
    p->options = context;
    p->held.snapshot = s;
    /* RFC 9110 8.8.2.1: never later than the message itself. */
    int64_t now = (int64_t)time(NULL);
    http_date_format(s->changed_at < now ? s->changed_at : now, p->last_modified);
    if (!make_responses(p, s)) {
        responses_free(p);
        return false;
    }
    s->attachment = p;
    s->attachment_free = responses_free;
    return true;
}

enum page_send page_send_queue(struct MHD_Connection *mhd, struct snapshot *s,
                               enum representation represent, unsigned status, bool head,
                               struct page_reader *reader, int fd, uint64_t *bytes)
{
    struct page_responses *p = s->attachment;
    bool with_body = status != 304 && !head;
    struct MHD_Response *own = NULL;
    struct MHD_Response *response =
        status == 304 ? p->not_modified[represent] : p->whole[represent];

    if (represent == REPRESENT_IDENTITY && with_body) {
        bool busy;
        own = make_inflating(p, s, &busy);
        if (own == NULL)
            return busy ? PAGE_BUSY : PAGE_FAILED;
        response = own;
    }
    *bytes = !with_body ? 0 : represent == REPRESENT_IDENTITY ? s->raw_len : s->gzip_len;
    enum MHD_Result result = MHD_queue_response(mhd, status, response);
    if (own != NULL)
        MHD_destroy_response(own);
    if (result != MHD_YES)
        return PAGE_FAILED;
    if (*bytes > PAGE_READERS_MIN_BYTES)
        page_readers_enter(&p->options->readers, reader, &p->held, fd);
    return PAGE_SENT;
}

void page_response_cut(void *context, uint64_t bytes)
{
    struct page_response_options *options = context;

    page_readers_cut(&options->readers, bytes);
}
