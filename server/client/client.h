/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The HTTP/1.1 client of all modules, on libcurl: plain or TLS, bounded in time and bytes. It
 * returns responses as they were sent, with their content codings, follows no redirect by itself,
 * and reads nothing from the environment: no proxy, no .netrc. Bodies stream both ways. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/base/str.h"
#include "server/client/address.h"
#include "server/rules/url.h"

#define FETCH_MAX_HEAD    65536u
#define FETCH_MAX_HEADERS 128u

enum fetch_status {
    FETCH_OK,      /* a response of any status */
    FETCH_RESOLVE, /* the host has no address */
    FETCH_ADDRESS, /* the guard allows no address of the host */
    FETCH_CONNECT, /* refused, reset, no route */
    FETCH_TLS,     /* the handshake failed, or the certificate is not trusted */
    FETCH_TIMEOUT,
    FETCH_PROTOCOL, /* the response is not HTTP/1.1 */
    FETCH_STOPPED,  /* `give` or `take` stopped it, or the body exceeds take_bytes */
    FETCH_NO_MEMORY,
};

struct fetch_reply;

/* Writes up to `size` bytes of the request body to `bytes`. Returns how many; 0 at the end, -1 to
 * stop. */
typedef ssize_t fetch_give(void *context, char *bytes, size_t size);
/* Receives a piece of the body of a 2xx response, whose status and headers are in `reply`. False:
 * stop. */
typedef bool fetch_take(void *context, const struct fetch_reply *reply, const char *bytes,
                        size_t len);
typedef bool fetch_waits(void *context);

struct fetch_request {
    const struct url *url;
    /* Path and query to request in place of those of the URL; may be longer than struct url allows.
     * NULL: those of the URL. */
    const char *target;
    const char *method;  /* "GET", "HEAD", "POST", … */
    const char *agent;   /* User-Agent */
    const char *headers; /* further lines, each ends in CRLF; NULL: none */
    uint32_t timeout_ms; /* from the connection to the last byte; 0: only `stall_s` limits it */
    /* Aborts if fewer than `stall_bytes` (0: 1) a second are transferred for `stall_s` seconds; 0:
     * no limit. */
    uint32_t stall_s, stall_bytes;
    uint64_t max_bytes; /* of the body to keep, before decoding */
    /* "host:port" to connect to instead of the URL's host; NULL: the URL's host. Host, SNI and
     * certificate check still use the URL. If it is an address, the guard allows it. */
    const char *connect;
    /* Checks the address of the connection, also of a connection that is used again; NULL: any
     * address is allowed. */
    const struct address_guard *guard;
    const char *ca_file; /* PEM, replaces the system's authorities; NULL: those */
    const char *ca_more; /* PEM, besides the system's authorities; NULL: none. Not with ca_file */
    /* "basic USER:PASS" or "bearer TOKEN", for the URL's host; NULL: none. A request with
     * credentials over plain HTTP fails with FETCH_TLS. */
    const char *credentials;
    /* Accepts any certificate. Only if the request has no secret and no certificate could be valid
     * for the host (loopback). */
    bool any_certificate;
    /* The request must not be sent twice: if a connection that is used again breaks, libcurl would
     * retry, and does not. reply->sent then says whether any of it was sent. */
    bool once;
    /* The request body, `give_bytes` long: in memory, which must stay until the end, or from a
     * function. Both NULL: there is no body. */
    const char *body;
    fetch_give *give;
    uint64_t give_bytes;
    /* Receives the body of a 2xx response in place of reply->body; may be NULL. The body of any
     * other response is kept in reply->body. */
    fetch_take *take;
    uint64_t take_bytes; /* limit for `take`, before decoding; 0: no limit */
    /* In a loop: called before each piece for `take`. True: pass the piece on later, and call this
     * again some milliseconds later. NULL: never wait. */
    fetch_waits *waits;
    void *context; /* of all these functions */
    /* Keeps the connection for further requests; NULL: the connection is for this request alone,
     * and the request says so (Connection: close). */
    struct fetch_session *session;
    bool looped; /* set by fetch_loop_add: the loop keeps the connections */
};

struct fetch_header {
    const char *name, *value; /* value trimmed */
};

struct fetch_reply {
    unsigned status; /* 0: there is no complete response */
    size_t header_count;
    struct fetch_header headers[FETCH_MAX_HEADERS];
    struct str head;                /* the text that the headers point to */
    struct str body;                /* not decoded; without chunk framing */
    bool cut;                       /* the body exceeds max_bytes */
    bool sent;                      /* with `once`: part of the request may have arrived */
    struct str redirect;            /* the Location header as an absolute URL; "": none exists */
    char address[INET6_ADDRSTRLEN]; /* of the server; "": there was no connection */
    uint32_t took_ms;               /* from the beginning to the last byte */
    uint64_t got_bytes;             /* of the body, before decoding */
    char protocol[16];              /* "TLS1.3"; "": plain HTTP */
    int64_t certificate_ends;       /* Unix seconds; 0: plain HTTP */
    bool untrusted;                 /* FETCH_TLS, because the certificate is not trusted */
    char why[256];                  /* a sentence if the status is not FETCH_OK */
};

/* Sends one request and follows no redirect. Overwrites `*reply`; call fetch_reply_done whatever it
 * returns. Blocks. Thread safe, except that requests of one session run one after the other. The
 * first call in the process initialises libcurl, so that commands without requests do not pay for
 * it. */
enum fetch_status fetch(const struct fetch_request *request, struct fetch_reply *reply);
void fetch_reply_done(struct fetch_reply *reply);

/* Keeps connections between requests. NULL when out of memory. One thread at a time. */
struct fetch_session *fetch_session_new(void);
void fetch_session_free(struct fetch_session *session);

/* The value of the first header of this name; NULL: none exists. Borrowed. */
const char *fetch_header(const struct fetch_reply *reply, const char *name);
/* The seconds to wait by Retry-After, counted from the response's Date, or from `now` (Unix
 * seconds) if it has none; -1: there is no Retry-After. */
int64_t fetch_retry_after(const struct fetch_reply *reply, int64_t now);
#define CODINGS_TEXT 128u /* bytes, enough for any Content-Encoding that can be decoded */
/* Writes the values of all fields of this name, joined with commas, to `out`, cut if they do not
 * fit. Returns `out`, or NULL if none exists. */
const char *fetch_header_joined(const struct fetch_reply *reply, const char *name, char *out,
                                size_t size);
/* True if the headers show that the response is the challenge of a bot wall, whatever its status
 * and body. */
bool fetch_is_wall(const struct fetch_reply *reply);
/* True if a list header contains `word`, ignoring case and parameters. */
bool fetch_header_lists(const struct fetch_reply *reply, const char *name, const char *word);

/* When to send a notification again that was not accepted. */

struct fetch_reply;

/* Milliseconds to wait: as Retry-After asks, at least `first_ms` and at most a day; without it
 * `first_ms`, doubled for each of the `tries` before, at most an hour. `now`: Unix seconds. Pure,
 * thread safe. */
int64_t again_wait_ms(unsigned tries, int64_t first_ms, const struct fetch_reply *reply,
                      int64_t now);

/* Redirects: each hop is a new request, and none may go where the first could not have gone.
 * hop_next decides about one response; it is pure and thread safe. fetch_follow does the whole for
 * callers with one request at a time. */

#define HOP_MAX 3u

enum hop_verdict {
    HOP_END,      /* not a redirect: the response is final */
    HOP_FOLLOW,   /* request `*to` next */
    HOP_TOO_MANY, /* it is the fourth redirect */
    HOP_NOWHERE,  /* a redirect without a Location, or to something that is not an http URL */
    HOP_PLAIN,    /* from https to http */
    HOP_FOREIGN,  /* to an origin that is not allowed */
};

/* Whether a redirect to the URL's origin may be followed. */
typedef bool hop_allowed(void *context, const struct url *to);

/* Decides what follows a response of `status` to a request for `from`. `location` is absolute
 * (reply->redirect); its fragment is dropped (RFC 9110 10.2.2); NULL or "": none. `hops`: redirects
 * that were followed before. 300 and 304 are not redirects. `*to` is untouched unless HOP_FOLLOW.
 * Credentials and `connect` belong to one origin: use them only if url_same_origin holds for the
 * first URL and `*to`. */
enum hop_verdict hop_next(unsigned status, const char *location, const struct url *from,
                          unsigned hops, hop_allowed *allowed, void *context, struct url *to);
/* Why the redirect is not followed, without a full stop; "" for HOP_END and HOP_FOLLOW. Static. */
const char *hop_sentence(enum hop_verdict verdict);

/* One request and its redirects, on the calling thread: for commands. */
struct follow {
    /* The first request. Each hop is made like it, except that `credentials` and `connect` are only
     * for its URL's origin, and `ca_more` only for its host, by http or https. */
    const struct fetch_request *request;
    hop_allowed *allowed;
    /* Called for each response, including the last one; may be NULL. */
    void (*each)(void *context, const struct url *url, enum fetch_status status,
                 const struct fetch_reply *reply, enum hop_verdict verdict);
    void *context; /* of both functions */
    /* The result. */
    struct url last; /* that was requested */
    unsigned hops;
    enum hop_verdict verdict; /* HOP_END, or why the redirect in the reply is not followed */
};

/* As fetch, for the last request; call fetch_reply_done. */
enum fetch_status fetch_follow(struct follow *f, struct fetch_reply *reply);
