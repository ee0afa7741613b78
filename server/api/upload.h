/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Entries being uploaded: the body of POST and PUT /v1/sitemaps and /v1/urls. A small body that is
 * one valid entry is used as it is. Any other is read as it arrives, validated, and spooled until
 * its transaction reads it: a small one at its end on the HTTP thread, a large or compressed one
 * piece by piece on the workers, while the sender waits, so that a slow sender holds neither memory
 * nor a thread. Internal to server/api/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/api/call.h"
#include "server/base/str.h"
#include "server/input/reader.h"
#include "server/rules/url.h"

struct upload {
    struct call call; /* first */
    bool skip;        /* on_error=skip */
    bool gzip;        /* Content-Encoding: gzip */
    bool ndjson;
    struct str held;   /* came and is not read yet: all of a small body, else one piece */
    bool streaming;    /* pieces go to the workers */
    uint64_t received; /* encoded bytes */

    struct json_entry single; /* storage not NULL: the body was this entry */
    struct reader *reader;    /* else: made with the spool, once it is needed */
    struct spool *spool;
    enum spool_status spooled;
    bool over;                /* it failed: what still comes is read and dropped, so that the
                                 sender gets to read the answer */
    struct findings findings; /* the reader's, then the catalogue's too */
    rule_set reported_once;   /* what was, of that which is named once */
    struct url prefix;        /* PUT: normalised */
    /* Called once the body was read without error, on an HTTP thread or a worker: submits. The
     * request is answered later in any case. */
    void (*submit)(struct upload *upload);
};

/* For the routes' `begin`: makes the call and checks the headers. HANDLED: the reply is filled. */
enum handled upload_begin(void *context, struct request *request, void (*submit)(struct upload *));
/* Whether the body was one object and no list. Once it was read. */
bool upload_is_single(const struct upload *upload);
/* The routes' `body` and `finish` hooks. */
enum handled upload_body(void *context, struct request *request, const void *bytes, size_t len);
enum handled upload_finish(void *context, struct request *request);
