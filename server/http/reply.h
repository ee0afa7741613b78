/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Answers with a resource: chooses the representation, 304 if the client already has it, and the
 * range (RFC 9110 12.5.3, 13.2.2, 14.2), and makes the responses that libmicrohttpd sends.
 *
 * A page has its responses made once, when it is published; all threads queue them for every 200,
 * 304 and HEAD. The response for a file, for a part, or for a page that is inflated as it is sent
 * is made for one request. */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/http/request.h"
#include "server/http/slow_readers.h"
#include "server/pages/resource.h"

/* Fills request->reply for GET or HEAD: 200, 206, 304, 412 or 416. Takes over the caller's
 * reference to `r`. `as_file`: the `.xml.gz` of a page. `cache` is borrowed and lives longer than
 * the listener. No microhttpd in it. */
void resource_reply(struct request *request, struct resource *r, bool as_file,
                    const struct cache_fields *cache);

/* The publisher's `attach` hook: makes the responses of a page. `cache` is a struct cache_fields,
 * which lives longer than every page and every listener. False: no memory. */
bool page_response_attach(void *cache, struct resource *s);
/* The cache's `cut_slow_readers` hook: `readers` is the struct readers. */
void resource_cut(void *readers, enum held_kind kind, uint64_t bytes);

/* ---- internal to server/http/ ------------------------------------------------------------- */

/* libmicrohttpd 1.0 can omit Content-Length, which makes some clients wait for a body; older
 * versions always send it. */
#define NOT_MODIFIED_HAS_LENGTH (MHD_VERSION < 0x00097701)

/* A response for 304, to which the caller adds fields; NULL: no memory. `len`: the length of the
 * 200 that it replaces, used if the library always sends one: no other value is allowed (RFC 9110
 * 8.6). */
struct MHD_Response *not_modified_new(uint64_t len);

enum resource_send {
    RESOURCE_SENT,
    RESOURCE_BUSY,   /* too many pages are being inflated, and no reader may be cut for this one */
    RESOURCE_FAILED, /* out of memory, or the library rejected it */
};

/* The client that reads the reply: entered in `readers` (NULL: none) unless the reply is small. */
struct recipient {
    struct readers *readers;
    struct reader *reader; /* the caller calls readers_leave when the request is completed */
    const char *address;   /* as in struct reading */
    int fd;
    bool close; /* a file's response announces that the connection ends after it */
};

/* Queues what resource_reply filled. The bytes are sent from the resource's buffers: the reply
 * holds its reference until the request is completed. `*bytes`: the body's. */
enum resource_send resource_send_queue(struct MHD_Connection *mhd, const struct request *request,
                                       const struct recipient *to, uint64_t *bytes);
