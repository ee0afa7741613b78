/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Checks of a request: framing that two servers in a row may read differently (request smuggling,
 * RFC 9112 11.2), hosts that could lead a browser to the admin listener (DNS rebinding), invalid
 * targets. Below: taking a header over from libmicrohttpd, clients behind a proxy, request ids,
 * routes. Pure and thread safe, but for header_read and header_read_prepare. */
#pragma once

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/http/address.h"
#include "server/http/request.h"

/* Why the framing cannot be trusted, a sentence; NULL: it can. `version` is HTTP/1.x. */
const char *check_framing(const struct header_scan *scan, const char *version);
/* The announced length. False: it is missing, or not a number up to INT64_MAX. */
bool check_content_length(const struct header_scan *scan, uint64_t *out);
/* True if Expect asks for 100 (RFC 9110 10.1.1). */
bool check_expects_continue(const struct header_scan *scan, const char *version);

/* A Host header's value: a name or IP literal, with or without a port; empty for a target that has
 * none (RFC 9110 7.2). */
bool check_host(const char *host);
/* A host that no DNS answer can redirect: an IP literal or "localhost", with or without a port. */
bool check_host_is_local(const char *host);
/* True if `host`, a Host header, is one of `allowed` (names, with or without a port; any case). */
bool check_host_is_listed(const char *host, const char *const *allowed, size_t count);

enum target_status { TARGET_OK, TARGET_ASTERISK, TARGET_MALFORMED, TARGET_OTHER_HOST };
/* Splits a request target (RFC 9112 3.2) in place into `*path`, raw, and `*query`, NULL without a
 * '?'. In absolute form its authority must be `host` (any case); if `host` is NULL, `*authority`
 * gets the authority, which is NULL otherwise. */
enum target_status check_target(char *target, const char *host, const char **path,
                                const char **query, const char **authority);

/* True if the media type of `content_type`, without parameters, is one of `allowed`. */
bool check_content_type(const char *content_type, const char *const *allowed);

/* Decodes percent-encoding of one segment. False if malformed or out of memory (then out->failed is
 * set); NUL is malformed. */
bool check_decode_segment(const char *text, size_t len, struct str *out);

/* Whether libmicrohttpd of this version, "1.0.1", refuses malformed headers itself, with one reply:
 * from 0.9.77.1 on. Older versions read them wrongly (headers.c), and answer some of them twice
 * (exchange.c). Pure. */
bool parser_version_is_strict(const char *version);
/* The same of the version that is running, which may differ from that of the build: both have one
 * soname. Thread safe. */
bool parser_is_strict(void);

/* Takes a request's header over from libmicrohttpd, and detects a header that the library reads
 * differently from the next server: it is malformed. On the connection's thread. */

/* Keeps the library from parsing cookies and the query, for which it has no option. Nothing here
 * needs them, and each part takes so much of its memory that a request with 4 kB of them would get
 * no reply, or two. Call it when the library passes the target, after copying that. */
void header_read_prepare(struct MHD_Connection *mhd, const char *target);
/* Once the header is whole. Fills a cleared `scan`, which borrows the texts for the request's life.
 * `method` and `version` are those of the first handler call; without a `method` (NULL), an early
 * end of the header is not detected. */
void header_read(struct MHD_Connection *mhd, const char *method, const char *version,
                 struct header_scan *scan);

/* The client that a trusted proxy reports. */

/* Finds the client's address in an X-Forwarded-For list, "client, proxy, proxy": the last address
 * outside the trusted ranges, since anyone may have written those before it; if all are trusted,
 * the first. An address may have a port, "192.0.2.1:80" or "[2001:db8::1]:80". If an element is not
 * an address, the one after it is the result. False, and `out` is untouched, if none exists. */
bool forwarded_client(const char *list, const struct address_range *trusted, size_t count,
                      char out[INET6_ADDRSTRLEN]);

/* Ids of requests, by which to find a request of a client in the logs. Pure but for the start of
 * the ids; thread safe. */

#define REQUEST_ID_MAX  128 /* bytes of an id that a client sends */
#define REQUEST_ID_SIZE 17  /* of a generated id, its NUL included */

/* True for 1 to REQUEST_ID_MAX letters, digits and . _ ~ : + / = @ -, which holds for UUIDs, ULIDs
 * and trace ids. Others could not be searched for, or would need escapes. */
bool request_id_check(const char *text);
/* Generates an id: 16 hexadecimal digits, unique in this process and very likely among all. It is
 * not a secret. Returns `out`. */
const char *request_id_make(char out[REQUEST_ID_SIZE]);

/* Finds the route for a path and a method. Pure, thread safe. */

struct route_match {
    const struct route *route; /* NULL: `allowed` 0: no such path; else: not with this method */
    size_t index;              /* of the route, or of one with that path; `count`: the fallback */
    unsigned allowed;          /* methods of all routes with that path */
    const char *tail;          /* what {…} matched, in `path`; NULL: the route has none */
    size_t tail_len;
};

/* A route without {…} takes precedence over one with it. `fallback` (may be NULL) matches all other
 * paths. */
void route_match(const struct route *routes, size_t count, const struct route *fallback,
                 const char *path, enum http_method method, struct route_match *out);
