/* A list of entries on its way in: the body of POST and PUT /v1/sitemaps is read as it arrives,
 * judged, and spooled until its transaction takes it. A small body is read at its end on the HTTP
 * thread; a large or compressed one piece by piece on the workers, while the sender waits, so that
 * neither memory nor a thread is held by a slow one. Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_UPLOAD_H
#define SITEMAPD_ROUTES_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "server/ingest/reader.h"
#include "server/ingest/spool.h"
#include "server/routes/call.h"
#include "server/routes/findings.h"
#include "server/rules/url.h"

#define UPLOAD_INLINE_BYTES 65536u /* up to here a body is read on the HTTP thread */
#define UPLOAD_MAX_RATIO    200u   /* decoded : encoded of a gzip body */

struct upload {
    struct call call; /* first */
    bool skip;        /* on_error=skip */
    bool gzip;        /* Content-Encoding: gzip */
    bool ndjson;
    struct str held;   /* came and is not read yet: all of a small body, else one piece */
    bool streaming;    /* pieces go to the workers */
    uint64_t received; /* encoded bytes */

    struct reader *reader;
    struct spool *spool;
    enum spool_status spooled;
    bool over; /* it failed: what still comes is read and dropped, so that the
                  sender gets to read the answer */
    struct findings rejections, warnings;
    struct rejection first; /* the first of the rejections; loc is NULL, field
                               points to first_field */
    char first_field[64];
    struct entry_stream stream; /* what is submitted */
    struct url prefix;          /* PUT: normalised */
    /* Called once the body was read without error, on an HTTP thread or a worker: submits. The
     * request is answered later in any case. */
    void (*submit)(struct upload *upload);
};

/* `begin`: makes the call and judges the headers. NULL where the reply is filled. */
struct upload *upload_new(void *context, struct request *request, const char *const *known,
                          void (*submit)(struct upload *));
/* The routes' `body` and `finish` hooks. */
enum handled upload_body(void *context, struct request *request, const void *bytes, size_t len);
enum handled upload_finish(void *context, struct request *request);

#endif
