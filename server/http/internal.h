/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the files of the listener share: the listener, its connections, and the exchange (one
 * request and its reply) that each connection holds, one after another. Internal to server/http/.
 *
 * Invariants:
 * 1. Only the connection's thread uses its exchange, except `wait`; between HANDLE_LATER and
 *    request_resume only the thread that will resume it.
 * 2. MHD_suspend_connection is called before `wait` becomes WAIT_SUSPENDED, and only the thread
 *    that moves `wait` away from WAIT_SUSPENDED calls MHD_resume_connection: once, and never too
 *    early.
 * 3. A connection is in the list from STARTED to CLOSED, and its descriptor is used by other
 *    threads only under `connections_lock`: CLOSED comes before close(2), so it is never another
 *    connection's. But the thread that will resume a request may use it: it stays open while the
 *    request waits.
 * 4. An exchange counts as active from its request line to its completion. */
#pragma once

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "server/base/site_table.h"
#include "server/base/thread.h"
#include "server/http/address.h"
#include "server/http/counts.h"
#include "server/http/headers.h"
#include "server/http/listener.h"
#include "server/http/slow_readers.h"

/* The library's memory for a connection beside max_header_bytes: for parsed fields (64 bytes each,
 * FIELDS_MAX of them) and the reply's header. The library clears all of it for each request, half
 * of it twice: more memory makes every request slower. */
#define POOL_BESIDE_HEADER 8192u

#define TARGET_INLINE 512u /* longer targets are allocated */

enum wait_state {
    WAIT_NONE,      /* the hook runs, or nothing waits */
    WAIT_SUSPENDED, /* suspended; request_resume has to wake it */
    WAIT_RESUMED,   /* request_resume was called */
};

struct exchange {
    struct connection *connection;
    struct MHD_Connection *mhd;
    struct header_scan headers; /* the members from here on are cleared between requests */
    const char *method, *version;
    uint64_t started_ns; /* monotonic clock: when its header was complete */

    /* The list of the thread's exchanges whose header is still arriving. `at_head` NULL: not in it.
     */
    struct exchange *next_head, **at_head;
    char *target; /* inline, or owned, or NULL: too long or out of memory */
    bool target_too_long;
    struct str tail; /* of request.path_tail */

    size_t row; /* of the counts */
    uint64_t body_seen;
    int64_t body_start_ms; /* later by the time that the request waited */
    int64_t wait_start_ms; /* 0: it was not suspended */
    size_t piece_done; /* bytes of the current piece that the hook has consumed or is consuming */
    bool begun;        /* the first handler call was made */
    bool has_body, takes_body, expects_continue;
    bool hooks_ran; /* so `done` must be called */
    bool finish_ran;
    bool later;           /* HANDLE_LATER was answered and is not settled yet */
    bool reserved;        /* it has one of the places for waiting requests, */
    int64_t reserved_of;  /* counted for this site; 0: for none */
    bool replied;         /* the reply is filled, and the rest of the request is dropped */
    bool lingering;       /* the reply was sent without libmicrohttpd; further bytes are dropped */
    unsigned status_sent; /* 0: none yet */
    uint64_t bytes_sent;
    struct reader reader;          /* of request.reply.resource, while it is sent; or of its own */
    atomic_int wait;               /* enum wait_state */
    struct request request;        /* cleared between requests, except its reply's headers */
    char own_id[REQUEST_ID_SIZE];  /* a generated id, if the request has none */
    char client[INET6_ADDRSTRLEN]; /* text of request.peer, if a trusted proxy sent it */
    char target_inline[TARGET_INLINE];
};

struct connection {
    struct worker *worker;
    struct listener *listener; /* the worker's */
    struct connection *previous, *next;
    int fd;
    /* Milliseconds of the monotonic clock; 0: none. Set by the connection's thread, read by the
     * deadlines' thread. */
    atomic_int_fast64_t deadline_ms;
    /* The same clock; since when the rest of a request is awaited; 0: it is complete, or a hook has
     * the last piece, or is_left has checked since. */
    atomic_int_fast64_t idle_since_ms;
    /* The same clock; since when a header, or a body that is dropped, is awaited; 0: the request is
     * complete, or its body is read. */
    atomic_int_fast64_t header_since_ms;
    /* The same clock; since when a reply is being sent. Only valid with a deadline and without
     * in_body. */
    atomic_int_fast64_t reply_since_ms;
    atomic_bool in_body;  /* the deadline is that of a header or body which is arriving */
    atomic_bool busy;     /* a request has begun and is not completed */
    atomic_bool served;   /* one was completed */
    bool cut;             /* under connections_lock */
    bool awaited_in_vain; /* likewise: nothing was unread in the socket when the header was late */
    bool ended;           /* likewise: a stop has shut it for further requests */
    bool trusted_proxy;
    struct peer *counted; /* under connections_lock; NULL: not counted */
    char peer[INET6_ADDRSTRLEN];
    struct exchange exchange;
};

/* One thread with the connections that it accepted. Other threads use only `thread`, `wake_fd` and
 * `load`. */
struct worker {
    struct listener *listener;
    struct MHD_Daemon *daemon;
    struct thread thread;
    int listen_fd; /* the listener's */
    int wake_fd;   /* an eventfd: wakes the thread to check what has changed */
    int epoll_fd;  /* has the library's epoll set, wake_fd and, while it `listens`, listen_fd */
    bool listens;
    bool quiesced;           /* it does not accept any more */
    int64_t paused_until_ms; /* time before which it does not accept; 0: it accepts */
    uint32_t added;          /* connections given to the library and not STARTED (1.0 queues) */
    uint32_t limit;          /* of its connections */
    atomic_uint load;        /* its connections, from STARTED to CLOSED */
};

struct listener {
    struct listener_options options; /* strings and arrays owned */
    char *name;
    struct address_range *trusted;
    char address[ADDRESS_TEXT_SIZE];
    struct worker *workers;
    unsigned worker_count;
    /* listener_retune changes these; `options` has the values of the start. */
    atomic_uint header_timeout_ms, body_timeout_ms, reply_timeout_ms, idle_timeout_ms;
    atomic_uint max_connections_per_address;
    struct counts *counts;
    size_t *rows; /* of the counts, by route: one for all routes of a label */

    atomic_bool quiescing;
    atomic_int_fast64_t quiesced_ms; /* since when; 0: it is not */
    struct site_uses waiting;        /* places taken by waiting requests */
    atomic_uint resuming;            /* threads inside request_resume */

    bool given;     /* as in struct listener_socket */
    sem_t quiesced; /* posted by each worker that no longer accepts */
    pthread_mutex_t accept_lock;
    int listen_fd;
    bool accepting;      /* under accept_lock: it has started, and is not quiesced */
    bool was_full;       /* likewise: at the last check all workers were full, and clients waited */
    atomic_bool starved; /* a worker found no descriptor or memory for a client */

    atomic_uint_fast64_t aborted; /* requests that ended before their reply was sent */
    atomic_uint_fast64_t accepted, failed, full; /* see struct listener_totals */

    pthread_mutex_t connections_lock;
    struct connection *connections, *oldest; /* its ends: the newest, the oldest */
    uint32_t connection_count;
    int64_t room_ms; /* under connections_lock; when keep_reserve last made room */
    struct peers peers;
    uint64_t over_limit, evicted, late[LISTENER_WAITS]; /* under connections_lock */

    struct thread deadline_thread;
    bool dozes; /* under connections_lock: the thread sleeps, since its last scan found no
                   connection */
    atomic_int_fast64_t scanned_ms; /* when it last checked all of them; 0: it sleeps */
};

/* exchange.c: libmicrohttpd's callbacks. */
void *exchange_target(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result exchange_handle(void *cls, struct MHD_Connection *mhd, const char *url,
                                const char *method, const char *version, const char *upload,
                                size_t *upload_size, void **req_cls);
/* MHD_OPTION_EXTERNAL_LOGGER: nothing is logged; see exchange.c. */
void exchange_read_log(void *cls, const char *format, va_list arguments);
void exchange_completed(void *cls, struct MHD_Connection *mhd, void **req_cls,
                        enum MHD_RequestTerminationCode toe);

/* send.c. Fills an error reply in the form of this listener. */
void exchange_error(struct exchange *e, unsigned status, const char *code, const char *detail);
/* Reports how many bytes of memory only this request and its reply keep. */
void exchange_keep(struct exchange *e, uint64_t bytes);
/* Queues request.reply. */
enum MHD_Result exchange_queue(struct exchange *e);
/* Sends request.reply without the library, and drops the rest of the request. MHD_NO: nothing was
 * sent. */
enum MHD_Result exchange_send_early(struct exchange *e);

/* send.c. Answers with an error on a socket that the library does not write to, as far as the
 * socket accepts it at once; the caller closes it. Any thread. */
void listener_send_error(const struct listener *l, int fd, unsigned status, const char *code,
                         const char *detail);

/* listening.c. Makes room for clients that wait in the kernel's queue, if all workers are full or
 * the process is out of descriptors. True: check again soon. Only for the deadlines' thread. */
bool listener_look(struct listener *l);
/* listening.c. Wakes the worker's thread, which then checks what has changed. Any thread. */
void worker_wake(struct worker *w);
/* listening.c: what metrics call a row of the counts. */
const char *listener_row_label(const struct listener *l, size_t row);

/* connection.c: deadlines */
bool deadline_start(struct listener *l);
/* For a body: `timeout_ms` from `start_ms` and again for each RATE_BYTES of `bytes`; `timeout_ms`
 * 0: none. A stop cuts it short. */
void deadline_set_body(struct connection *c, int64_t start_ms, uint32_t timeout_ms, uint64_t bytes);
/* The same from now on, for a reply. */
void deadline_set(struct connection *c, uint32_t timeout_ms, uint64_t bytes);
void deadline_clear(struct connection *c);
/* Ends every connection's socket now; suspended ones notice when resumed. */
void deadline_cut_all(struct listener *l);

/* connection.c. True if `peer` is a trusted proxy of the options. */
bool connection_is_trusted(const struct listener *l, const char *peer);
/* Ends up to `count` connections that were accepted before `now`: those that have kept the server
 * waiting longest for a header or for data that will be dropped; without such connections, those
 * that have been sending a body or reading a reply longest. */
void connections_make_room(struct listener *l, uint32_t count, int64_t now);
/* For a stop: shuts the reading side of connections without any part of a request, so that the
 * library closes them. Connections with a buffered request are left to answer it, new ones to send
 * theirs. True if no connection is left. */
bool connections_end_idle(struct listener *l);
/* Whether new requests are refused: the listener has been quiescing for longer than an accepted
 * connection may take to send its first request. */
bool listener_refuses(const struct listener *l);
/* NOTIFY_CONNECTION, for a worker. */
void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                       enum MHD_ConnectionNotificationCode code);
