/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Entries being uploaded: the body of POST and PUT /v1/sitemaps and /v1/urls. A small body that is
 * one valid entry is used directly. Any other body is validated and spooled until its transaction
 * reads it: a small one by the HTTP thread once it is complete, a large or compressed one piece by
 * piece on the workers, while the sender waits, so that a slow sender holds neither memory nor a
 * thread. Internal to server/api/. */
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
    bool replaces;    /* PUT */
    bool gzip;        /* Content-Encoding: gzip */
    bool ndjson;
    struct str held;   /* received and not parsed yet: a small body as a whole, else one piece */
    bool streaming;    /* pieces go to the workers */
    uint64_t received; /* encoded bytes */

    struct json_entry single; /* storage not NULL: the body was this entry */
    struct reader *reader;    /* else: made with the spool, once needed */
    struct spool *spool;
    enum spool_status spooled;
    bool over;                /* the upload has failed: the rest of the body is read and dropped */
    struct findings findings; /* the reader's, then the catalogue's too */
    rule_set reported_once;   /* the warnings of REPORTED_ONCE that were reported */
    struct url prefix;        /* PUT: normalised */
    /* Submits the entries, once the body was read without error; on an HTTP thread or a worker. The
     * request is answered later in any case. */
    void (*submit)(struct upload *upload);
};

/* For the `begin` hooks of routes: makes the call and checks the headers. HANDLED: the reply is
 * filled. */
enum handled upload_begin(void *context, struct request *request, void (*submit)(struct upload *));
/* Whether the body was one object and no list. Call it once the body was read. */
bool upload_is_single(const struct upload *upload);
/* The routes' `body` and `finish` hooks. */
enum handled upload_body(void *context, struct request *request, const void *bytes, size_t len);
enum handled upload_finish(void *context, struct request *request);
