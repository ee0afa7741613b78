/* An HTTP/1.1 client for one request: plain or TLS, bounded in time and bytes. It shows an answer
 * as it came, encodings included, for the commands that judge one (doctor, healthcheck). */
#ifndef SITEMAPD_CLIENT_CLIENT_H
#define SITEMAPD_CLIENT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/str.h"
#include "server/rules/url.h"

#define FETCH_MAX_HEAD    65536u
#define FETCH_MAX_HEADERS 128u

enum fetch_status {
    FETCH_OK,      /* an answer, whatever its status */
    FETCH_RESOLVE, /* the host has no address */
    FETCH_CONNECT, /* refused, reset, no route */
    FETCH_TLS,     /* no handshake, or a certificate that is not to be trusted */
    FETCH_TIMEOUT,
    FETCH_PROTOCOL, /* an answer that is no HTTP/1.1 */
    FETCH_NO_MEMORY,
};

struct fetch_request {
    const struct url *url;
    const char *method;  /* "GET" or "HEAD" */
    const char *agent;   /* User-Agent */
    const char *headers; /* further lines, each ends in CRLF; NULL: none */
    uint32_t timeout_ms; /* from the connection to the last byte */
    uint64_t max_bytes;  /* of the body, as sent */
    /* "host:port" to connect to where that is not where the URL's name points; NULL: it is. */
    const char *connect;
    const char *ca_file; /* PEM; NULL: the system's trust */
};

struct fetch_header {
    const char *name, *value; /* value trimmed */
};

struct fetch_reply {
    unsigned status; /* 0 where there is no whole answer */
    size_t header_count;
    struct fetch_header headers[FETCH_MAX_HEADERS];
    struct str head;          /* what the headers point into */
    struct str body;          /* as sent; without the framing of chunks */
    bool cut;                 /* there is more than max_bytes */
    char protocol[16];        /* "TLS1.3"; "" where plain */
    int64_t certificate_ends; /* Unix seconds; 0 where plain */
    char why[256];            /* a sentence, where the status is not FETCH_OK */
};

/* Asks once and follows nothing. `*reply` is filled anew; fetch_reply_done is due whatever is
 * returned. Thread safe. */
enum fetch_status fetch(const struct fetch_request *request, struct fetch_reply *reply);
void fetch_reply_done(struct fetch_reply *reply);

/* The header's value; of several the first; NULL where there is none. Borrowed. */
const char *fetch_header(const struct fetch_reply *reply, const char *name);
/* True where the list header names `word`, whatever its case, parameters aside. */
bool fetch_header_lists(const struct fetch_reply *reply, const char *name, const char *word);

#endif
