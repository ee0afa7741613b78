/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A listener: one libmicrohttpd daemon with its threads, limits and deadlines, that turns
 * connections into requests, finds their routes, and sends replies. The only users of
 * microhttpd.h are server/http/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/crypto/tls.h"
#include "server/http/counts.h"
#include "server/http/request.h"

struct listener;
struct readers;

/* An answered request, for the logs. All borrowed for the call; texts are NULL if the request has
 * none. */
struct completion {
    const struct request *request;
    const char *listener, *route; /* their names in metrics */
    const char *method, *version; /* as received */
    const char *path, *query;     /* likewise */
    const char *referer, *user_agent;
    unsigned status;
    bool whole; /* the complete reply was sent */
    uint64_t body_bytes;
    uint64_t micros;
};

/* A socket to listen on. */
struct listener_socket {
    int fd;
    bool given; /* it listens already, and the process that passed it keeps it, so connections that
                   are not accepted remain for the next process */
};

struct listener_options {
    const char *name;    /* "public" or "admin": metrics label, problem texts */
    const char *address; /* "0.0.0.0:8080", "[::]:8080", "127.0.0.1:0" */
    /* A socket that is already bound; the listener takes it over when it starts. NULL: it opens
     * `address`. */
    const struct listener_socket *socket;
    unsigned threads; /* 0: one for each core */
    uint32_t max_connections;
    uint32_t max_connections_per_address; /* 0: no limit */
    uint32_t header_timeout_ms, body_timeout_ms, reply_timeout_ms, idle_timeout_ms;
    uint32_t max_header_bytes;
    /* For short requests: its threads get short time slices, so that they run soon after they wake
     * (listening.c). */
    bool short_slices;
    bool tls; /* serves https, with the pair of tls_use */
    enum tls_side tls_side;
    uint32_t max_suspended;
    bool problem_json; /* errors as problem+json (admin) or short text (public) */
    bool request_ids;  /* each request has an id (X-Request-Id), sent back in the reply: the
                        * client's if it is well-formed, else a generated one */
    bool check_host;   /* admin: Host must be an IP address, localhost, its own or one of
                          `allowed_hosts` (against DNS rebinding) */
    size_t allowed_host_count;
    const char *const *allowed_hosts;
    const char *own_host; /* with its port; NULL: none */
    size_t trusted_proxy_count;
    const char *const *trusted_proxies;
    size_t route_count;
    const struct route *routes; /* borrowed; fixed paths */
    /* The catch-all for paths without a fixed route (public pages). NULL: 404. */
    const struct route *fallback;
    struct readers *readers; /* shared by all listeners; borrowed; NULL: none */
    void *context;           /* for every hook of every route */
    /* Checks `Authorization` for routes with a `role`: fills token_name and grant, or fills a reply
     * (401, 429) and returns false. Must not block. */
    bool (*authorise)(void *context, struct request *request);
    /* With `tls`: a client sent plain HTTP, got 400, and was closed. On the accepting thread; may
     * be NULL. Must not block. */
    void (*spoke_plain)(void *context, const char *peer);
    /* One call per completed request, on the HTTP thread; for logs; may be NULL. Must not block. */
    void (*completed)(void *context, const struct completion *completion);
};

/* Starts to listen. On failure `*out` is NULL and `why` holds a sentence. */
bool listener_start(const struct listener_options *options, struct listener **out, char *why,
                    size_t why_size);
/* Applies the timeouts and max_connections_per_address of `options` to deadlines and connections
 * from now on. Any thread. */
void listener_retune(struct listener *l, const struct listener_options *options);
/* "127.0.0.1:34567", with the real port. Borrowed. */
const char *listener_address(const struct listener *l);
/* How long a reply may still be sent after its listener stops: a client that reads nothing delays
 * the stop by at most this. */
#define LISTENER_STOP_REPLY_MS 5000
/* Stops accepting; after another 1.5 seconds, handlers that would wait answer 503. */
void listener_quiesce(struct listener *l);
/* Waits until no request is active (at most `timeout_ms`), then stops the daemon. All suspended
 * requests must have been resumed by then. Accepts NULL. */
void listener_stop(struct listener *l, uint32_t timeout_ms);

/* Requests answered, for metrics: calls `each` for every (route label, status) seen. */
void listener_counts(const struct listener *l,
                     void (*each)(void *context, const char *route, unsigned status,
                                  uint64_t count),
                     void *context);
/* The same for the durations of requests by route label, by histogram_times: from the end of the
 * header until the last byte of the reply was passed to the kernel. */
void listener_times(const struct listener *l,
                    void (*each)(void *context, const char *route,
                                 const struct histogram_values *took),
                    void *context);
/* For a watchdog: milliseconds since the deadlines were last checked, which is done a few times a
 * second and needs connections_lock. 0 while there is no connection. Any thread. */
int64_t listener_stale_ms(const struct listener *l);
/* Connections now open, and suspended. */
void listener_load(const struct listener *l, uint32_t *connections, uint32_t *suspended);

/* What a connection was doing too slowly when it was cut. */
enum listener_wait {
    LISTENER_WAIT_HEADER, /* the next request: idle, or its header came too slowly */
    LISTENER_WAIT_BODY,
    LISTENER_WAIT_REPLY, /* the client read too slowly */
    LISTENER_WAITS,
};

struct listener_totals {
    struct counts_sums sums;
    uint64_t aborted; /* requests that ended before their reply was sent: the client disconnected or
                         was cut off */
    uint64_t accepted;
    uint64_t failed; /* could not be accepted or given to a thread: descriptors, memory */
    uint64_t full;   /* times that clients had to wait in the kernel's queue, since all places were
                        taken */
    uint64_t over_limit; /* ended at once: too many connections from one address */
    uint64_t evicted; /* ended to make room for others: those that were idle or slow for longest */
    uint64_t late[LISTENER_WAITS];
    uint32_t max_connections, max_suspended;
};
/* Any thread; no I/O. */
void listener_totals(const struct listener *l, struct listener_totals *out);
