/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The one HTTP/1.1 client of the house, on libcurl: plain or TLS, bounded in time and bytes. It
 * shows an answer as it came, encodings included, follows no redirect, and takes nothing from the
 * environment: no proxy, no .netrc. Bodies stream both ways. */
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
    FETCH_OK,      /* an answer, whatever its status */
    FETCH_RESOLVE, /* the host has no address */
    FETCH_ADDRESS, /* the guard lets nobody connect to any address of the host */
    FETCH_CONNECT, /* refused, reset, no route */
    FETCH_TLS,     /* no handshake, or a certificate that is not to be trusted */
    FETCH_TIMEOUT,
    FETCH_PROTOCOL, /* an answer that is not HTTP/1.1 */
    FETCH_STOPPED,  /* `give` or `take` had enough, or there is more than take_bytes */
    FETCH_NO_MEMORY,
};

struct fetch_reply;

/* Fills up to `size` bytes of what is sent: how many, 0 at the end, -1 to stop. */
typedef ssize_t fetch_give(void *context, char *bytes, size_t size);
/* Takes a piece of a 2xx answer's body; the reply's status and headers are there. False: stop. */
typedef bool fetch_take(void *context, const struct fetch_reply *reply, const char *bytes,
                        size_t len);
typedef bool fetch_waits(void *context);

struct fetch_request {
    const struct url *url;
    /* Path and query to ask for in place of the URL's, which may be longer than a URL is here;
     * NULL: the URL's. */
    const char *target;
    const char *method;  /* "GET", "HEAD", "POST", … */
    const char *agent;   /* User-Agent */
    const char *headers; /* further lines, each ends in CRLF; NULL: none */
    uint32_t timeout_ms; /* from the connection to the last byte; 0: as long as `stall_s` lets it */
    /* Given up where fewer than `stall_bytes` (0: 1) a second came or went for so long; 0: no
     * bound. */
    uint32_t stall_s, stall_bytes;
    uint64_t max_bytes; /* of the body that is kept, as sent */
    /* "host:port" to connect to where that is not where the URL's name points; NULL: it is. Host,
     * SNI and certificate stay the URL's. An address there is allowed by itself. */
    const char *connect;
    /* Checks the very address that is connected to, also where the connection was kept; NULL: any
     * may be. */
    const struct address_guard *guard;
    const char *ca_file; /* PEM, in place of the system's trust; NULL: that */
    const char *ca_more; /* PEM, beside the system's trust; NULL: none. Not with ca_file */
    /* "basic USER:PASS" or "bearer TOKEN", which go to the URL's host; NULL: none. Over plain HTTP
     * nothing is asked with them: FETCH_TLS. */
    const char *credentials;
    /* Whatever certificate it shows: where nothing secret is sent, and the name that is asked is
     * none that a certificate could bear (the loopback's). */
    bool any_certificate;
    /* What must not be asked twice: where a kept connection breaks, libcurl would ask again, and
     * does not. reply->sent then says whether any of it was sent. */
    bool once;
    /* The body to send, of `give_bytes` bytes: from memory that stays until the end, or by a
     * function. Both NULL: the request has no body. */
    const char *body;
    fetch_give *give;
    uint64_t give_bytes;
    /* Where the body of a 2xx answer goes in place of reply->body; NULL: nowhere else. What any
     * other status says is kept in reply->body. */
    fetch_take *take;
    uint64_t take_bytes; /* more than so many end it, as sent; 0: no bound */
    /* Of a loop's: asked before each piece for `take`. True: others go first, and it is asked again
     * some milliseconds later. NULL: it is taken at once. */
    fetch_waits *waits;
    void *context; /* of all of them */
    /* Whose connections are used again; NULL: one for this request alone, which says so to the
     * server (Connection: close). */
    struct fetch_session *session;
    bool looped; /* set by fetch_loop_add: connections are the loop's, and kept */
};

struct fetch_header {
    const char *name, *value; /* value trimmed */
};

struct fetch_reply {
    unsigned status; /* 0 where there is no whole answer */
    size_t header_count;
    struct fetch_header headers[FETCH_MAX_HEADERS];
    struct str head;                /* what the headers point into */
    struct str body;                /* as sent; without the framing of chunks */
    bool cut;                       /* there is more than max_bytes */
    bool sent;                      /* of a request with `once`: some of it may have arrived */
    struct str redirect;            /* where Location leads, absolute; "" where there is none */
    char address[INET6_ADDRSTRLEN]; /* that was connected to; "" where none was */
    uint32_t took_ms;               /* from the beginning to the last byte */
    uint64_t got_bytes;             /* of the body, as sent */
    char protocol[16];              /* "TLS1.3"; "" where plain */
    int64_t certificate_ends;       /* Unix seconds; 0 where plain */
    bool untrusted;                 /* FETCH_TLS, because the certificate is not trusted */
    char why[256];                  /* a sentence, where the status is not FETCH_OK */
};

/* Asks once and follows nothing. `*reply` is filled again; fetch_reply_done is due whatever is
 * returned. Blocks. Thread safe, but for one session's requests, which come one after the other.
 * The first call of the process sets libcurl up, no earlier: a command that asks nobody pays
 * nothing for it. */
enum fetch_status fetch(const struct fetch_request *request, struct fetch_reply *reply);
void fetch_reply_done(struct fetch_reply *reply);

/* Keeps connections between requests. NULL when out of memory. One thread at a time. */
struct fetch_session *fetch_session_new(void);
void fetch_session_free(struct fetch_session *session);

/* The header's value; of several the first; NULL where there is none. Borrowed. */
const char *fetch_header(const struct fetch_reply *reply, const char *name);
/* How many seconds the answer asks to wait before one asks again (Retry-After), counted from its
 * own Date, or from `now` (Unix seconds) where it has none; -1 where it does not say. */
int64_t fetch_retry_after(const struct fetch_reply *reply, int64_t now);
#define CODINGS_TEXT 128u /* bytes that hold any Content-Encoding that is of use */
/* Writes the values of all fields of this name, joined with commas, to `out`; cut where they do not
 * fit. NULL where there is none, else `out`. */
const char *fetch_header_joined(const struct fetch_reply *reply, const char *name, char *out,
                                size_t size);
/* True if the answer's header says that it is a challenge that separates people from bots, whatever
 * its status and body. */
bool fetch_is_wall(const struct fetch_reply *reply);
/* True where the list header names `word`, whatever its case, parameters aside. */
bool fetch_header_lists(const struct fetch_reply *reply, const char *name, const char *word);

/* When a notification that was not accepted is sent again. */

struct fetch_reply;

/* How many milliseconds from now on: as the answer asks (Retry-After), `first_ms` at least and a
 * day at most; else `first_ms`, which the `tries` before doubled, an hour at most. `now`: Unix
 * seconds. Pure, thread safe. */
int64_t again_wait_ms(unsigned tries, int64_t first_ms, const struct fetch_reply *reply,
                      int64_t now);

/* Redirects, followed by hand: each hop is a new request, and none leads where the first could not
 * have gone. What an answer asks for is a pure function, thread safe; a caller with one request at
 * a time has it done by fetch_follow. */

#define HOP_MAX 3u

enum hop_verdict {
    HOP_END,      /* no redirect: the answer is final */
    HOP_FOLLOW,   /* `*to` is to be asked */
    HOP_TOO_MANY, /* the fourth */
    HOP_NOWHERE,  /* a redirect without a Location, or to something that is not an http URL */
    HOP_PLAIN,    /* from https to http */
    HOP_FOREIGN,  /* to an origin that is not allowed */
};

/* Whether requests may go to the URL's origin. */
typedef bool hop_allowed(void *context, const struct url *to);

/* What an answer of `status` to a request for `from` asks for. `location` is absolute
 * (reply->redirect), its fragment is dropped (RFC 9110 10.2.2); NULL or "": none. `hops`: how many
 * were followed before. 300 and 304 are no redirects. `*to` is untouched unless HOP_FOLLOW.
 * What belongs to one origin alone (credentials, `connect`) goes along only where url_same_origin
 * holds between the first URL and `*to`. */
enum hop_verdict hop_next(unsigned status, const char *location, const struct url *from,
                          unsigned hops, hop_allowed *allowed, void *context, struct url *to);
/* Why the redirect is not followed, a sentence without its end; "" for HOP_END and HOP_FOLLOW.
 * Static. */
const char *hop_sentence(enum hop_verdict verdict);

/* One request and the redirects behind it, on the thread that asks: for commands. */
struct follow {
    /* Of the first request; each hop is made as it, but that `credentials` and `connect` stay
     * with its URL's origin, and `ca_more` with its host, by http or https. */
    const struct fetch_request *request;
    hop_allowed *allowed;
    /* Called with each answer, the last one included, with its result; NULL: nobody. */
    void (*each)(void *context, const struct url *url, enum fetch_status status,
                 const struct fetch_reply *reply, enum hop_verdict verdict);
    void *context; /* of both */
    /* The result. */
    struct url last; /* that was asked */
    unsigned hops;
    enum hop_verdict verdict; /* HOP_END, or why the redirect in the reply is not followed */
};

/* As fetch. The reply is the last one's; fetch_reply_done is due. */
enum fetch_status fetch_follow(struct follow *f, struct fetch_reply *reply);
