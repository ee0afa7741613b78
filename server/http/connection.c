/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Connections, from their start to their end. Four concepts share the list under connections_lock:
 *
 * - how many each address has (address.h), for max_connections_per_address;
 * - deadlines: a connection's thread sets one for each thing it does, and one thread of
 *   the listener checks all of them a few times a second (scan);
 * - room: a full listener ends the connections that it has waited for longest
 *   (connections_make_room);
 * - a stop ends connections without a request under way (connections_end_idle).
 *
 * Each of them ends a connection in one way: shutdown(2). Its thread then sees the end of the
 * stream, and libmicrohttpd frees it (connection_notify, CLOSED). */
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "server/base/clock.h"
#include "server/base/thread.h"
#include "server/http/internal.h"

/* libmicrohttpd's own timeout counts idleness only: a client that drips a byte a second is never
 * idle. So one thread checks all connections a few times a second and shuts down the sockets of
 * those past their deadline; their threads then see the end of the stream and clean up. */
#define SCAN_MS 250
/* Interval between checks for waiting clients while the listener is full. */
#define FULL_MS 5
/* Longest sleep without a connection; the first one wakes the thread. */
#define DOZE_MS 10000
/* Maximum number of connections ended in one scan, since new ones wait for the lock meanwhile. The
 * next scan follows after CUT_SOON_MS. */
#define CUT_MOST    128u
#define CUT_SOON_MS 2
/* How long a header or body may continue to arrive once the listener stops. */
#define STOP_BODY_MS 3000

/* A pipelined request follows its predecessor at once: a connection idle for this long has none. */
#define IDLE_LOOK_MS 200
/* Interval between checks of a header or body that is arriving: the library does not report every
 * byte. */
#define BUSY_LOOK_MS 2000

/* After a crowd has left, its memory is returned to the system: the allocator would keep about 1
 * MiB for each hundred connections. */
#define CROWD_LEAST  1024u
#define CROWD_PART   4u    /* a crowd has left if less than a quarter remains */
#define TRIM_EACH_MS 10000 /* a trim blocks allocations for some milliseconds */

#define RATE_BYTES 1048576u /* for each of these, one timeout is added to a deadline */

static void set_from(struct connection *c, int64_t start_ms, uint32_t timeout_ms, uint64_t bytes)
{
    int64_t deadline = 0;

    if (timeout_ms > 0)
        deadline = start_ms + (int64_t)timeout_ms * (int64_t)(1 + bytes / RATE_BYTES);
    atomic_store_explicit(&c->deadline_ms, deadline, memory_order_relaxed);
}

void deadline_set_body(struct connection *c, int64_t start_ms, uint32_t timeout_ms, uint64_t bytes)
{
    set_from(c, start_ms, timeout_ms, bytes);
    atomic_store_explicit(&c->in_body, true, memory_order_relaxed);
}

void deadline_set(struct connection *c, uint32_t timeout_ms, uint64_t bytes)
{
    int64_t now = clock_coarse_ms();

    atomic_store_explicit(&c->reply_since_ms, now, memory_order_relaxed);
    atomic_store_explicit(&c->in_body, false, memory_order_relaxed);
    set_from(c, now, timeout_ms, bytes);
}

void deadline_clear(struct connection *c)
{
    atomic_store_explicit(&c->in_body, false, memory_order_relaxed);
    atomic_store_explicit(&c->deadline_ms, 0, memory_order_relaxed);
}

/* Whether the client has closed its side. If it does so together with its last request, or with
 * half of a request or body, libmicrohttpd gets one event for both, reads the request, and waits
 * for an event for the end, which never comes. It would keep the connection, and the waiting
 * client, until the deadline. So each connection is checked once after it has become idle, and
 * periodically while no more of a request arrives. Unread bytes are read first: then it is checked
 * again. */
static bool is_left(struct connection *c, int64_t now)
{
    int_fast64_t since = atomic_load_explicit(&c->idle_since_ms, memory_order_relaxed);
    struct pollfd peer = {.fd = c->fd, .events = POLLRDHUP};

    int unread = 0;

    if (since == 0 || since + IDLE_LOOK_MS > now)
        return false;
    bool ended = poll(&peer, 1, 0) == 1;
    if (ended && ioctl(c->fd, FIONREAD, &unread) == 0 && unread > 0)
        return false;
    bool busy = atomic_load_explicit(&c->busy, memory_order_relaxed);
    int_fast64_t next = busy && !ended ? now + BUSY_LOOK_MS - IDLE_LOOK_MS : 0;
    return atomic_compare_exchange_strong(&c->idle_since_ms, &since, next) && ended;
}

/* A stop does not give clients all the time that they may take otherwise. A client that is still
 * sending has a short grace, since nothing of its request was applied; one that reads a reply a
 * longer one. Requests that wait for an answer have no deadline: the stop waits for them. */
static int64_t deadline_of(const struct connection *c, int64_t quiesced)
{
    int64_t deadline = atomic_load_explicit(&c->deadline_ms, memory_order_relaxed);
    bool in_body = atomic_load_explicit(&c->in_body, memory_order_relaxed);
    int64_t stop_at = quiesced + (in_body ? STOP_BODY_MS : LISTENER_STOP_REPLY_MS);

    return deadline != 0 && quiesced != 0 && stop_at < deadline ? stop_at : deadline;
}

static enum listener_wait wait_of(const struct connection *c)
{
    if (atomic_load_explicit(&c->header_since_ms, memory_order_relaxed) != 0)
        return LISTENER_WAIT_HEADER;
    return atomic_load_explicit(&c->in_body, memory_order_relaxed) ? LISTENER_WAIT_BODY
                                                                   : LISTENER_WAIT_REPLY;
}

/* A header that is unread in the socket is not late: on a busy machine, the server has not read it
 * yet. To exclude one that its thread is just reading, nothing may have been unread at the previous
 * scan either. A client that sends very slowly gets at most the same time again. */
static bool is_late(struct connection *c, int64_t quiesced, int64_t now)
{
    int64_t deadline = deadline_of(c, quiesced);
    int unread = 0;

    if (deadline == 0 || deadline > now) {
        c->awaited_in_vain = false;
        return false;
    }
    if (quiesced != 0 || wait_of(c) != LISTENER_WAIT_HEADER ||
        deadline + c->listener->header_timeout_ms <= now)
        return true;
    bool before = c->awaited_in_vain;
    c->awaited_in_vain = ioctl(c->fd, FIONREAD, &unread) != 0 || unread == 0;
    return before && c->awaited_in_vain;
}

/* Ends connections that are past their deadline or left by their client, at most CUT_MOST. True if
 * there may be more. */
static bool scan(struct listener *l, int64_t now)
{
    int64_t quiesced = atomic_load(&l->quiesced_ms);
    unsigned ended = 0;

    for (struct connection *c = l->connections; c != NULL; c = c->next) {
        bool late = is_late(c, quiesced, now);
        if (c->cut || (!late && !is_left(c, now)))
            continue;
        if (late) {
            l->late[wait_of(c)]++;
            c->cut = true;
            /* Nothing was answered yet while a body arrives (RFC 9110 15.5.9). */
            if (quiesced == 0 && !l->options.tls && wait_of(c) == LISTENER_WAIT_BODY)
                listener_send_error(l, c->fd, 408, "request-timeout",
                                    "the body stalled or arrived too slowly (body_timeout)");
            shutdown(c->fd, SHUT_RDWR);
        } else {
            /* The library gets an event for the end again. Only this side is shut: if the thread
             * has just read the last of a request, there is a reply to send. */
            shutdown(c->fd, SHUT_RD);
        }
        if (++ended == CUT_MOST)
            return true;
    }
    return false;
}

/* Returns memory to the system after a crowd has left. `crowd`: the most connections since that was
 * last done. Called under the lock, which it releases meanwhile. */
static void give_back(struct listener *l, uint32_t *crowd, int64_t *given_ms, int64_t now)
{
    if (l->connection_count > *crowd)
        *crowd = l->connection_count;
    if (*crowd < CROWD_LEAST || l->connection_count >= *crowd / CROWD_PART ||
        now - *given_ms < TRIM_EACH_MS)
        return;
    *crowd = l->connection_count;
    *given_ms = now;
    pthread_mutex_unlock(&l->connections_lock);
    malloc_trim(0);
    pthread_mutex_lock(&l->connections_lock);
}

static void deadline_run(void *context)
{
    struct listener *l = context;
    bool more = false, full = false, doze = false;
    uint32_t crowd = 0;
    int64_t given_ms = 0;

    while (thread_wait(&l->deadline_thread, more   ? CUT_SOON_MS
                                            : full ? FULL_MS
                                            : doze ? DOZE_MS
                                                   : SCAN_MS)) {
        int64_t now = clock_coarse_ms();
        full = listener_look(l);
        if (!more && full && now < atomic_load(&l->scanned_ms) + SCAN_MS)
            continue;
        pthread_mutex_lock(&l->connections_lock);
        more = scan(l, now);
        give_back(l, &crowd, &given_ms, now);
        doze = l->dozes = !full && l->connection_count == 0;
        atomic_store(&l->scanned_ms, doze ? 0 : now);
        pthread_mutex_unlock(&l->connections_lock);
    }
}

bool deadline_start(struct listener *l)
{
    atomic_store(&l->scanned_ms, clock_coarse_ms());
    return thread_start(&l->deadline_thread, "deadlines", deadline_run, l);
}

void deadline_cut_all(struct listener *l)
{
    pthread_mutex_lock(&l->connections_lock);
    for (struct connection *c = l->connections; c != NULL; c = c->next)
        shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&l->connections_lock);
}

/* Only the LOOK_MOST oldest connections are checked if one of them has kept the server waiting for
 * WAITING_MS. */
#define LOOK_MOST    1024
#define WAITING_MS   500
#define RESERVE_PART 64
#define READING_MS   2000 /* a body or reply that takes longer may have to make room */

bool connection_is_trusted(const struct listener *l, const char *peer)
{
    return address_ranges_hold(l->trusted, l->options.trusted_proxy_count, peer);
}

static const struct sockaddr *address_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

static int fd_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static struct connection *connection_new(struct worker *w, struct MHD_Connection *mhd)
{
    struct listener *l = w->listener;
    struct connection *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->worker = w;
    c->listener = l;
    c->fd = fd_of(mhd);
    address_peer(address_of(mhd), c->peer);
    c->trusted_proxy = connection_is_trusted(l, c->peer);
    c->exchange.connection = c;
    c->exchange.mhd = mhd;
    atomic_init(&c->exchange.wait, WAIT_NONE);
    atomic_init(&c->deadline_ms, 0);
    atomic_init(&c->idle_since_ms, clock_coarse_ms());
    atomic_init(&c->reply_since_ms, 0);
    atomic_init(&c->in_body, false);
    atomic_init(&c->busy, false);
    atomic_init(&c->served, false);
    atomic_init(&c->header_since_ms, clock_coarse_ms());
    deadline_set_body(c, clock_coarse_ms(), l->header_timeout_ms, 0);
    return c;
}

static void connection_leave(struct connection *c)
{
    struct listener *l = c->listener;

    pthread_mutex_lock(&l->connections_lock);
    if (c->previous != NULL)
        c->previous->next = c->next;
    else
        l->connections = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    else
        l->oldest = c->previous;
    l->connection_count--;
    peers_leave(&l->peers, c->counted);
    pthread_mutex_unlock(&l->connections_lock);
}

/* Since when the server waits for a header, or for a body that will be dropped; 0: neither. */
static int64_t awaits_since(const struct connection *c)
{
    return atomic_load_explicit(&c->header_since_ms, memory_order_relaxed);
}

/* Since when a reply is being sent, or a wanted body arrives; a body is allowed the time for the
 * bytes that have come. 0: neither. A request that waits for an answer has no deadline and is not
 * ended here: such requests have a limit of their own. */
static int64_t moves_since(const struct connection *c)
{
    int64_t deadline = atomic_load_explicit(&c->deadline_ms, memory_order_relaxed);

    if (deadline == 0 || awaits_since(c) != 0)
        return 0;
    return atomic_load_explicit(&c->in_body, memory_order_relaxed)
               ? deadline - c->listener->body_timeout_ms
               : atomic_load_explicit(&c->reply_since_ms, memory_order_relaxed);
}

/* Whether the socket has unread bytes or the end of the stream, which the server has not read
 * yet. */
static bool has_come(const struct connection *c)
{
    struct pollfd peer = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

    return poll(&peer, 1, 0) == 1;
}

/* Ends up to `count` connections, of the `most` oldest, that have taken longest by `since_of`, and
 * since before `before`. In two passes and without memory: one that has taken nearly as long as the
 * longest is as good. Returns how many were ended. Under connections_lock. */
static uint32_t end_longest(struct listener *l, uint32_t count, uint32_t most,
                            int64_t (*since_of)(const struct connection *), int64_t before)
{
    int64_t oldest = before;
    uint32_t ended = 0, left = most;

    for (struct connection *c = l->oldest; c != NULL && left > 0; c = c->previous, left--) {
        int64_t since = c->cut ? 0 : since_of(c);
        if (since != 0 && since < oldest)
            oldest = since;
    }
    int64_t until = oldest + (before - oldest) / 4;
    left = most;
    for (struct connection *c = l->oldest; c != NULL && left > 0 && ended < count;
         c = c->previous, left--) {
        int64_t since = c->cut ? 0 : since_of(c);
        if (since != 0 && since <= until && since < before &&
            !((since_of == awaits_since ||
               atomic_load_explicit(&c->in_body, memory_order_relaxed)) &&
              has_come(c))) {
            c->cut = true;
            shutdown(c->fd, SHUT_RDWR);
            l->evicted++;
            ended++;
        }
    }
    return ended;
}

/* Under connections_lock. */
static void make_room(struct listener *l, uint32_t count, int64_t now)
{
    /* All connections of a full listener are checked only if necessary, since new ones wait for the
     * lock meanwhile. */
    if (end_longest(l, count, LOOK_MOST, awaits_since, now - WAITING_MS) == 0 &&
        end_longest(l, count, UINT32_MAX, awaits_since, now) == 0)
        end_longest(l, count, UINT32_MAX, moves_since, now - READING_MS);
}

void connections_make_room(struct listener *l, uint32_t count, int64_t now)
{
    pthread_mutex_lock(&l->connections_lock);
    make_room(l, count, now);
    pthread_mutex_unlock(&l->connections_lock);
}

/* One place in RESERVE_PART is kept free for new clients: without a free place a client waits in
 * the kernel's queue, perhaps behind many others, until the threads have ended other connections.
 * Under connections_lock. */
static void keep_reserve(struct listener *l)
{
    uint32_t most = l->options.max_connections - l->options.max_connections / RESERVE_PART;
    int64_t now = clock_coarse_ms();

    if (l->connection_count >= l->options.max_connections)
        thread_wake(&l->deadline_thread); /* listener_look */
    if (l->connection_count <= most || l->room_ms + FULL_MS > now)
        return;
    l->room_ms = now;
    make_room(l, l->connection_count - most, now);
}

/* A connection beyond the limit of its address is listed like any other, and ended at once. Those
 * of a trusted proxy are not counted: they are of many clients. */
static void connection_enter(struct connection *c, const struct sockaddr *address)
{
    struct listener *l = c->listener;
    uint32_t most = l->max_connections_per_address;

    pthread_mutex_lock(&l->connections_lock);
    if (most > 0 && !c->trusted_proxy) {
        c->counted = peers_enter(&l->peers, address, most);
        if (c->counted == NULL) {
            l->over_limit++;
            c->cut = true;
            shutdown(c->fd, SHUT_RDWR);
        }
    }
    c->next = l->connections;
    if (c->next != NULL)
        c->next->previous = c;
    else
        l->oldest = c;
    l->connections = c;
    l->connection_count++;
    if (l->dozes) {
        atomic_store(&l->scanned_ms, clock_coarse_ms());
        thread_wake(&l->deadline_thread);
    }
    l->dozes = false;
    keep_reserve(l);
    pthread_mutex_unlock(&l->connections_lock);
}

/* The first request of a connection this young may still be arriving. */
#define STOP_FRESH_MS 1000

static bool is_idle(const struct connection *c, int64_t now)
{
    int64_t since = awaits_since(c);

    return since != 0 && !c->cut && !c->ended && !atomic_load(&c->busy) &&
           (atomic_load(&c->served) || now - since >= STOP_FRESH_MS) && !has_come(c);
}

bool connections_end_idle(struct listener *l)
{
    int64_t now = clock_coarse_ms();

    pthread_mutex_lock(&l->connections_lock);
    for (struct connection *c = l->connections; c != NULL; c = c->next) {
        if (!is_idle(c, now))
            continue;
        c->ended = true;
        /* Bytes that arrive in between are still read (tcp(7) keeps them), before the end of the
         * stream. */
        shutdown(c->fd, SHUT_RD);
    }
    bool none = l->connection_count == 0;
    pthread_mutex_unlock(&l->connections_lock);
    return none;
}

/* A TLS listener gets a connection once its first bytes are there (TCP_DEFER_ACCEPT): a handshake
 * does not begin with a letter, a request of plain HTTP does. */
static bool is_plain(const struct connection *c)
{
    char first;

    return c->listener->options.tls && recv(c->fd, &first, 1, MSG_PEEK) == 1 && first >= 'A' &&
           first <= 'Z';
}

static void turn_away_plain(struct connection *c)
{
    struct listener *l = c->listener;
    char rest[4096];

    /* A socket that is closed with unread bytes is reset, and the answer lost. */
    for (int i = 0; i < 4 && recv(c->fd, rest, sizeof rest, 0) == sizeof rest; i++)
        continue;
    listener_send_error(l, c->fd, 400, "plain-http",
                        "this port speaks https: begin the URL with https://");
    shutdown(c->fd, SHUT_RDWR);
    if (l->options.spoke_plain != NULL)
        l->options.spoke_plain(l->options.context, c->peer);
}

void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct worker *w = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = connection_new(w, mhd);
        atomic_fetch_add(&w->load, 1);
        w->added--;
        if (c != NULL) { /* otherwise each of its requests is refused, since exchange_target finds
                            no context */
            connection_enter(c, address_of(mhd));
            if (is_plain(c))
                turn_away_plain(c);
        }
        *socket_context = c;
        return;
    }
    atomic_fetch_sub(&w->load, 1);
    struct connection *c = *socket_context;
    if (c == NULL)
        return;
    *socket_context = NULL;
    connection_leave(c);
    free(c);
}
