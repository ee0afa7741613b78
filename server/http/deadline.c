#include <malloc.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include "server/http/internal.h"

/* libmicrohttpd's own timeout counts idleness only: a client that drips a byte a second is never
 * idle. So one thread looks at all connections a few times a second and ends the sockets of those
 * that are past their deadline; their threads then see an end of stream and clean up. */
#define SCAN_MS 250
/* Ended in a row, under the lock that whoever connects waits for; then others have their turn. */
#define CUT_MOST    128u
#define CUT_SOON_MS 2
/* How long a header or body may go on arriving once the listener stops, and a reply leaving. */
#define STOP_BODY_MS  3000
#define STOP_REPLY_MS 8000

/* A request that is pipelined follows its predecessor at once: who is idle for so long has none. */
#define IDLE_LOOK_MS 200
/* Not every byte of a header or body is told to us: how soon it is looked at again. */
#define BUSY_LOOK_MS 2000

/* A crowd that has left gives its memory back: the allocator keeps it for the next one, as many MiB
 * as there were hundreds of connections. */
#define CROWD_LEAST  1024u
#define CROWD_PART   4u    /* gone where there are less than one in so many left */
#define TRIM_EACH_MS 10000 /* it holds up who allocates for some milliseconds */

int64_t deadline_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

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
    int64_t now = deadline_now_ms();

    atomic_store_explicit(&c->reply_since_ms, now, memory_order_relaxed);
    atomic_store_explicit(&c->in_body, false, memory_order_relaxed);
    set_from(c, now, timeout_ms, bytes);
}

void deadline_clear(struct connection *c)
{
    atomic_store_explicit(&c->in_body, false, memory_order_relaxed);
    atomic_store_explicit(&c->deadline_ms, 0, memory_order_relaxed);
}

/* A client that ends its side together with its last request, or with half of one or of its body:
 * libmicrohttpd, told once of both, has read the request and waits to be told of the end, which
 * nobody does again. It would keep the connection, and the client waiting for our end, until the
 * deadline. So each is looked at once when it has become idle, and now and then while no more of a
 * request comes; again only where there is something to be read first. */
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

/* A stop does not wait for clients as long as they may take: who is still sending has a grace,
 * since nothing of it was applied, and who reads a reply a longer one. Requests that wait for an
 * answer have no deadline, and are waited for. */
static int64_t deadline_of(const struct connection *c, int64_t quiesced)
{
    int64_t deadline = atomic_load_explicit(&c->deadline_ms, memory_order_relaxed);
    bool in_body = atomic_load_explicit(&c->in_body, memory_order_relaxed);
    int64_t stop_at = quiesced + (in_body ? STOP_BODY_MS : STOP_REPLY_MS);

    return deadline != 0 && quiesced != 0 && stop_at < deadline ? stop_at : deadline;
}

static enum listener_wait wait_of(const struct connection *c)
{
    if (atomic_load_explicit(&c->header_since_ms, memory_order_relaxed) != 0)
        return LISTENER_WAIT_HEADER;
    return atomic_load_explicit(&c->in_body, memory_order_relaxed) ? LISTENER_WAIT_BODY
                                                                   : LISTENER_WAIT_REPLY;
}

/* True where there are more. */
static bool scan(struct listener *l, int64_t now)
{
    int64_t quiesced = atomic_load(&l->quiesced_ms);
    unsigned ended = 0;

    for (struct connection *c = l->connections; c != NULL; c = c->next) {
        int64_t deadline = deadline_of(c, quiesced);
        bool late = deadline != 0 && deadline <= now;
        if (c->cut || (!late && !is_left(c, now)))
            continue;
        if (late) {
            l->late[wait_of(c)]++;
            c->cut = true;
            shutdown(c->fd, SHUT_RDWR);
        } else {
            /* Its end is told once more, and no more than that: should its thread have taken the
             * last of a request just now, there is a reply to send. */
            shutdown(c->fd, SHUT_RD);
        }
        if (++ended == CUT_MOST)
            return true;
    }
    return false;
}

/* `crowd`: the most connections there have been since memory was given back. Called under the lock,
 * which it lets go of meanwhile. */
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

static void *run(void *context)
{
    struct listener *l = context;
    bool more = false;
    uint32_t crowd = 0;
    int64_t given_ms = 0;

    pthread_mutex_lock(&l->connections_lock);
    while (!l->deadline_stop) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += (more ? CUT_SOON_MS : SCAN_MS) * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        pthread_cond_timedwait(&l->deadline_wake, &l->connections_lock, &until);
        int64_t now = deadline_now_ms();
        more = scan(l, now);
        give_back(l, &crowd, &given_ms, now);
        atomic_store(&l->scanned_ms, now);
    }
    pthread_mutex_unlock(&l->connections_lock);
    return NULL;
}

bool deadline_start(struct listener *l)
{
    atomic_store(&l->scanned_ms, deadline_now_ms());
    l->deadline_started = pthread_create(&l->deadline_thread, NULL, run, l) == 0;
    return l->deadline_started;
}

void deadline_end(struct listener *l)
{
    if (!l->deadline_started)
        return;
    pthread_mutex_lock(&l->connections_lock);
    l->deadline_stop = true;
    pthread_cond_signal(&l->deadline_wake);
    pthread_mutex_unlock(&l->connections_lock);
    pthread_join(l->deadline_thread, NULL);
    l->deadline_started = false;
}

void deadline_cut_all(struct listener *l)
{
    pthread_mutex_lock(&l->connections_lock);
    for (struct connection *c = l->connections; c != NULL; c = c->next)
        shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&l->connections_lock);
}
