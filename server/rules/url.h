/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* URLs: parse, check and normalise once, at the door (RFC 3986 6.2).
 * Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"

/* White space and format characters of Unicode beyond ASCII, which do not show and come along when
 * a URL is copied from a page or a table: U+00A0, U+2003, U+200B, U+FEFF and their like. Around a
 * URL of a list they are dropped with a remark, within one they are refused by name. Pure
 * functions, thread safe. */

/* What is wrong with a URL that has this character, which is UTF-8 of `char_len` bytes, to stand
 * behind the URL; static. NULL: it is not one of them. */
const char *hidden_sentence(const char *text, size_t char_len);

/* The bytes of the one that `text` begins, or ends with; 0: none. */
size_t hidden_front(const char *text, size_t len);
size_t hidden_back(const char *text, size_t len);

/* A normalised absolute http(s) URL: scheme and host in lower case, default port dropped, path
 * never empty, dot segments removed, percent-encoded unreserved characters decoded, other
 * percent-encodings in upper case, non-ASCII percent-encoded. What is stored is what is served. */
struct url {
    char text[LOC_MAX_CHARS + 1]; /* NUL-terminated */
    uint16_t len;
    uint16_t host_at, host_len; /* "www.example.com" within text, without port */
    uint16_t port;              /* effective: 80 or 443 where none is written */
    uint16_t origin_len;        /* text[0..origin_len) is "https://www.example.com[:8443]" */
    uint16_t path_len;          /* the path begins at origin_len; a query, if any, follows it */
    bool https;
};

/* Reads `len` bytes (UTF-8 or not, NUL or not) as a loc. Trims nothing: padding is the caller's
 * matter. On RULE_OK `*out` is whole; otherwise it is untouched. `*remarks` (may be NULL) gets
 * RULE_LOC_NORMALISED where the result differs from the input and RULE_LOC_LONG, or'ed in.
 * The length limits apply to the normalised form (an IRI grows when encoded). */
enum rule_code url_parse(const char *text, size_t len, struct url *out, rule_set *remarks);

/* Takes a text apart that url_parse wrote (an entry's loc, as it is handed on and stored): the same
 * `*out` for little work. What is checked there is not checked again; false, and `*out`
 * undefined, where the text has not even the outline of a normalised URL. */
bool url_split(const char *text, size_t len, struct url *out);

/* Reads `scheme://host[:port]`, a slash behind it allowed, as a site's origin. The length minimum
 * of a loc does not apply; `out->text` is the bare origin (no slash), path_len 0.
 * RULE_ORIGIN or a RULE_LOC_… reason otherwise. */
enum rule_code url_parse_origin(const char *text, size_t len, struct url *out);

/* Reads `host` or `host:port` and writes its normal form (lower case; without the root's dot, which
 * a loc may not have; the port kept as written unless it is empty) to `out`, a buffer of
 * HOST_MAX_CHARS + 7 bytes. RULE_HOST otherwise. */
enum rule_code url_parse_host(const char *text, size_t len, char *out);

/* For a loc refused with RULE_LOC_HOST_IDN: writes the host's punycode form for the hint into
 * `out` (NUL-terminated, `size` bytes). False where there is none (then out is ""). */
bool url_punycode_hint(const char *text, size_t len, char *out, size_t size);

/* Same scheme, host and port (RFC 6454 5). */
bool url_same_origin(const struct url *a, const struct url *b);
/* Same host and effective port, whatever the scheme. */
bool url_same_host(const struct url *a, const struct url *b);
/* Same host, at the same port or each at the usual one of its scheme: http leads to https. */
bool url_same_server(const struct url *a, const struct url *b);
