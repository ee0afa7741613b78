/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses, validates and normalises URLs, once when they arrive (RFC 3986 6.2). Pure functions,
 * thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/rules/code.h"
#include "server/rules/limits.h"

/* Invisible characters: white space and format characters of Unicode beyond ASCII, which come along
 * when a URL is copied from a page or table, such as U+00A0, U+2003, U+200B and U+FEFF. Around a
 * URL in a list they are dropped with a remark; within a URL they are refused by name. Pure
 * functions, thread safe. */

/* The sentence about a URL with this invisible character (UTF-8 of `char_len` bytes); it follows
 * the URL; static. NULL: the character is not invisible. */
const char *hidden_sentence(const char *text, size_t char_len);

/* The bytes of the invisible character at the beginning, or the end, of `text`; 0: none. */
size_t hidden_front(const char *text, size_t len);
size_t hidden_back(const char *text, size_t len);

/* A normalised absolute http(s) URL: scheme and host in lower case, default port dropped, path
 * never empty, dot segments removed, percent-encoded unreserved characters decoded, other
 * percent-encodings in upper case, non-ASCII percent-encoded. What is stored is what is served. */
struct url {
    char text[LOC_MAX_CHARS + 1]; /* NUL-terminated */
    uint16_t len;
    uint16_t host_at, host_len; /* "www.example.com" within text, without port */
    uint16_t port;              /* effective: 80 or 443 if none is written */
    uint16_t origin_len;        /* text[0..origin_len) is "https://www.example.com[:8443]" */
    uint16_t path_len;          /* the path begins at origin_len; a query, if any, follows it */
    bool https;
};

/* Reads `len` bytes (UTF-8 or not, NUL or not) as a loc. Trims nothing: the caller removes padding.
 * On RULE_OK `*out` is filled; otherwise it is untouched. Adds RULE_LOC_NORMALISED (if the result
 * differs from the input) and RULE_LOC_LONG to `*remarks` (may be NULL). The length limits apply to
 * the normalised form (an IRI grows when encoded). */
enum rule_code url_parse(const char *text, size_t len, struct url *out, rule_set *remarks);

/* Parses a text that url_parse wrote (the stored loc of an entry), with the same `*out` and less
 * work, since it does not validate again. False, and `*out` undefined: the text does not look like
 * a normalised URL. */
bool url_split(const char *text, size_t len, struct url *out);

/* Parses `scheme://host[:port]`, with an optional slash at the end, as a site's origin. The length
 * minimum of a loc does not apply; `out->text` is the bare origin (no slash), path_len 0.
 * RULE_ORIGIN or a RULE_LOC_… reason otherwise. */
enum rule_code url_parse_origin(const char *text, size_t len, struct url *out);

/* Reads `host` or `host:port` and writes its normal form (lower case; without the root's dot, which
 * a loc may not have; the port kept as written unless it is empty) to `out`, a buffer of
 * HOST_MAX_CHARS + 7 bytes. RULE_HOST otherwise. */
enum rule_code url_parse_host(const char *text, size_t len, char *out);

/* For a loc refused with RULE_LOC_HOST_IDN: writes the host's punycode form for the hint into `out`
 * (NUL-terminated, `size` bytes). False, and `out` is "": none exists. */
bool url_punycode_hint(const char *text, size_t len, char *out, size_t size);

/* Same scheme, host and port (RFC 6454 5). */
bool url_same_origin(const struct url *a, const struct url *b);
/* Same host and effective port, whatever the scheme. */
bool url_same_host(const struct url *a, const struct url *b);
/* Same host, at the same port or each at the usual one of its scheme: http leads to https. */
bool url_same_server(const struct url *a, const struct url *b);
