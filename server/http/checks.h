/* What a request must not be: shapes by which two servers in a row see different requests
 * (RFC 9112 11.2), hosts by which a browser is led to the admin listener (DNS rebinding), targets
 * that are none. Pure, thread safe; no microhttpd here. */
#ifndef SITEMAPD_HTTP_CHECKS_H
#define SITEMAPD_HTTP_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/http/header_scan.h"

/* Why the framing cannot be trusted: a sentence, or NULL where it can. `version` is HTTP/1.x. */
const char *check_framing(const struct header_scan *scan, const char *version);
/* The announced length. False where there is none, or it is no number up to INT64_MAX. */
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

/* Decodes percent-encoding of one segment. False where malformed or out of memory
 * (out->failed tells); NUL is malformed. */
bool check_decode_segment(const char *text, size_t len, struct str *out);

#endif
