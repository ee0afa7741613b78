#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "server/http/internal.h"

/* Those that were first are looked at first, and end it where enough of them have waited so long.
 */
#define LOOK_MOST  1024
#define WAITING_MS 500
#define READING_MS 2000 /* who has been reading a reply for so long may have to make room */

bool connection_is_trusted(const struct listener *l, const char *peer)
{
    return address_ranges_hold(l->trusted, l->options.trusted_proxy_count, peer);
}

static const struct sockaddr *address_of(struct MHD_Connection *mhd)
{
    return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
}

static struct connection *connection_new(struct worker *w, struct MHD_Connection *mhd)
{
    struct listener *l = w->listener;
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->worker = w;
    c->listener = l;
    c->fd = fd->connect_fd;
    address_peer(address_of(mhd), c->peer);
    c->trusted_proxy = connection_is_trusted(l, c->peer);
    c->exchange.connection = c;
    c->exchange.mhd = mhd;
    atomic_init(&c->exchange.wait, WAIT_NONE);
    atomic_init(&c->deadline_ms, 0);
    atomic_init(&c->idle_since_ms, deadline_now_ms());
    atomic_init(&c->reply_since_ms, 0);
    atomic_init(&c->in_body, false);
    atomic_init(&c->busy, false);
    atomic_init(&c->served, false);
    atomic_init(&c->header_since_ms, deadline_now_ms());
    deadline_set_body(c, deadline_now_ms(), l->header_timeout_ms, 0);
    return c;
}

/* One too many of its address is listed like any other, and ended at once. A proxy brings the
 * connections of many: it is not counted. */
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
    pthread_mutex_unlock(&l->connections_lock);
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

/* Since when a header is awaited, or arrives, or what else we would only drop; 0: it is not. */
static int64_t awaits_since(const struct connection *c)
{
    return atomic_load_explicit(&c->header_since_ms, memory_order_relaxed);
}

/* Since when a reply leaves; 0: none does. A request that waits for an answer has no deadline, and
 * is never in the way: they have a limit of their own. */
static int64_t replies_since(const struct connection *c)
{
    if (atomic_load_explicit(&c->deadline_ms, memory_order_relaxed) == 0 || awaits_since(c) != 0 ||
        atomic_load_explicit(&c->in_body, memory_order_relaxed))
        return 0;
    return atomic_load_explicit(&c->reply_since_ms, memory_order_relaxed);
}

/* What is awaited is there, or its end: it is we who have not looked yet. */
static bool has_come(const struct connection *c)
{
    struct pollfd peer = {.fd = c->fd, .events = POLLIN | POLLRDHUP};

    return poll(&peer, 1, 0) == 1;
}

/* Two passes and no memory over the `most` oldest connections: whoever has been at it nearly as
 * long as the longest is as good. Returns how many were ended. Under connections_lock. */
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
            !(since_of == awaits_since && has_come(c))) {
            c->cut = true;
            shutdown(c->fd, SHUT_RDWR);
            l->evicted++;
            ended++;
        }
    }
    return ended;
}

void connections_make_room(struct listener *l, uint32_t count)
{
    int64_t now = deadline_now_ms();

    pthread_mutex_lock(&l->connections_lock);
    /* All of a full listener are looked at only where that is of use: newcomers wait for the lock.
     */
    if (end_longest(l, count, LOOK_MOST, awaits_since, now - WAITING_MS) == 0 &&
        end_longest(l, count, UINT32_MAX, awaits_since, now) == 0)
        end_longest(l, count, UINT32_MAX, replies_since, now - READING_MS);
    pthread_mutex_unlock(&l->connections_lock);
}

/* Who came so lately may have its first request on the way. */
#define STOP_FRESH_MS 1000

static bool is_idle(const struct connection *c, int64_t now)
{
    int64_t since = awaits_since(c);

    return since != 0 && !c->cut && !c->ended && !atomic_load(&c->busy) &&
           (atomic_load(&c->served) || now - since >= STOP_FRESH_MS) && !has_come(c);
}

bool connections_end_idle(struct listener *l)
{
    int64_t now = deadline_now_ms();

    pthread_mutex_lock(&l->connections_lock);
    for (struct connection *c = l->connections; c != NULL; c = c->next) {
        if (!is_idle(c, now))
            continue;
        c->ended = true;
        /* What comes in between is still read (tcp(7) keeps it), and only then the end. */
        shutdown(c->fd, SHUT_RD);
    }
    bool none = l->connection_count == 0;
    pthread_mutex_unlock(&l->connections_lock);
    for (unsigned i = 0; none && i < l->worker_count; i++)
        none = (atomic_load(&l->workers[i].load) & LOAD_PENDING) == 0;
    return none;
}

/* It may have been pending for so long that it was forgotten. */
static void started(struct worker *w)
{
    uint64_t load = atomic_load(&w->load), next;

    do
        next = load + LOAD_STARTED - ((load & LOAD_PENDING) != 0);
    while (!atomic_compare_exchange_weak(&w->load, &load, next));
}

void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct worker *w = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = connection_new(w, mhd);
        started(w);
        if (c != NULL) /* else every request of it is refused: exchange_target finds no context */
            connection_enter(c, address_of(mhd));
        *socket_context = c;
        return;
    }
    atomic_fetch_sub(&w->load, LOAD_STARTED);
    struct connection *c = *socket_context;
    if (c == NULL)
        return;
    *socket_context = NULL;
    connection_leave(c);
    free(c);
}
