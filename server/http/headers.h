/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a request must not be: shapes by which two servers in a row see different requests
 * (RFC 9112 11.2), hosts by which a browser is led to the admin listener (DNS rebinding), targets
 * that are none. Pure and thread safe, but for what takes a header over. */
#pragma once

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/http/address.h"
#include "server/http/request.h"

/* Why the framing cannot be trusted: a sentence, or NULL where it can. `version` is HTTP/1.x. */
const char *check_framing(const struct header_scan *scan, const char *version);
/* The announced length. False where there is none, or it is not a number up to INT64_MAX. */
bool check_content_length(const struct header_scan *scan, uint64_t *out);
/* True where Expect asks for 100 (RFC 9110 10.1.1). */
bool check_expects_continue(const struct header_scan *scan, const char *version);

/* A Host header's value: a name or IP literal, with or without a port; empty for a target that has
 * none (RFC 9110 7.2). */
bool check_host(const char *host);
/* A host that no DNS answer can be made to mean: an IP literal or "localhost", with or without a
 * port. */
bool check_host_is_local(const char *host);
/* True where `host`, a Host header, is one of `allowed` (names, with or without a port; any case).
 */
bool check_host_is_listed(const char *host, const char *const *allowed, size_t count);

enum target_status { TARGET_OK, TARGET_ASTERISK, TARGET_MALFORMED, TARGET_OTHER_HOST };
/* Splits a request target (RFC 9112 3.2) in place into `*path`, raw, and `*query`, NULL where there
 * is no '?'. In absolute form its authority must be `host` (any case); where that is NULL it is put
 * into `*authority`, which is NULL otherwise. */
enum target_status check_target(char *target, const char *host, const char **path,
                                const char **query, const char **authority);

/* True where the media type of `content_type` (parameters aside) is one of `allowed`. */
bool check_content_type(const char *content_type, const char *const *allowed);

/* Decodes percent-encoding of one segment. False if malformed or out of memory (then out->failed is
 * set); NUL is malformed. */
bool check_decode_segment(const char *text, size_t len, struct str *out);

/* Whether libmicrohttpd of this version, "1.0.1", refuses such headers itself, once: from 0.9.77.1
 * on. Older ones read them wrongly, as headers.c says, and answer some of them twice (exchange.c).
 * Pure. */
bool parser_version_is_strict(const char *version);
/* The same of the one that runs. It need not be the one that this was built with, since both have
 * one soname. Thread safe. */
bool parser_is_strict(void);

/* Takes a request's header over from libmicrohttpd, and notices where the library read it otherwise
 * than the next server would: such a header is malformed. On the connection's thread. */

/* In the call that passes the target, which is copied already: keeps the library from parsing
 * cookies and the query. Nothing here needs them, and each part takes so much of its memory that 4
 * kB of them are not answered, or answered twice. It has no option for either. */
void header_read_prepare(struct MHD_Connection *mhd, const char *target);
/* Once the header is whole. Fills a cleared `scan`, which borrows the texts for the request's life.
 * `method` and `version` are those of the first handler call; without a `method` (NULL), what ends
 * the header early is not looked for. */
void header_read(struct MHD_Connection *mhd, const char *method, const char *version,
                 struct header_scan *scan);

/* What a listed proxy says about the client that it forwards for. */

/* The client's address out of an X-Forwarded-For list, "client, proxy, proxy": the last that is not
 * of a trusted range, since what stands before it anyone may have written; where all are, the
 * first. An address may have a port, "192.0.2.1:80" or "[2001:db8::1]:80". An element that is no
 * address ends the reading: the one behind it counts. False, and `out` is untouched, where there is
 * none. */
bool forwarded_client(const char *list, const struct address_range *trusted, size_t count,
                      char out[INET6_ADDRSTRLEN]);

/* Ids of requests: what a client, a reply and the logs have in common. Pure but for where ids
 * start; thread safe. */

#define REQUEST_ID_MAX  128 /* bytes of one that a client brings */
#define REQUEST_ID_SIZE 17  /* of one of ours, its NUL included */

/* True for 1 to REQUEST_ID_MAX letters, digits and . _ ~ : + / = @ -, which holds for UUIDs, ULIDs
 * and trace ids. Others could not be searched for, or would need escapes. */
bool request_id_check(const char *text);
/* Makes one: 16 hexadecimal digits, no other of this process's; likely no other of any. They are no
 * secrets. Returns `out`. */
const char *request_id_make(char out[REQUEST_ID_SIZE]);

/* Which route a path and a method lead to. Pure, thread safe. */

struct route_match {
    const struct route *route; /* NULL: `allowed` 0: no such path; else: not with this method */
    size_t index;              /* of the route, or of one with that path; `count`: the fallback */
    unsigned allowed;          /* methods of all routes with that path */
    const char *tail;          /* what {…} matched, in `path`; NULL: the route has none */
    size_t tail_len;
};

/* A route without {…} goes before one with it. `fallback` (may be NULL) takes the rest. */
void route_match(const struct route *routes, size_t count, const struct route *fallback,
                 const char *path, enum http_method method, struct route_match *out);
