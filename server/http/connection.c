#include <stdlib.h>
#include <sys/socket.h>

#include "server/http/internal.h"

static bool is_trusted(const struct listener *l, const char *peer)
{
    for (size_t i = 0; i < l->options.trusted_proxy_count; i++)
        if (address_range_holds(&l->trusted[i], peer))
            return true;
    return false;
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
    c->trusted_proxy = is_trusted(l, c->peer);
    c->exchange.connection = c;
    c->exchange.mhd = mhd;
    atomic_init(&c->exchange.wait, WAIT_NONE);
    atomic_init(&c->deadline_ms, 0);
    atomic_init(&c->idle_since_ms, 0);
    atomic_init(&c->in_body, false);
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
            c->cut = true;
            shutdown(c->fd, SHUT_RDWR);
        }
    }
    c->next = l->connections;
    if (c->next != NULL)
        c->next->previous = c;
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
    l->connection_count--;
    peers_leave(&l->peers, c->counted);
    pthread_mutex_unlock(&l->connections_lock);
}

static bool awaits_header(const struct connection *c, int64_t *since_ms)
{
    *since_ms = atomic_load_explicit(&c->header_since_ms, memory_order_relaxed);
    return *since_ms != 0 && !c->cut;
}

/* Two passes and no memory: whoever has waited nearly as long as the longest is as good. */
void connections_make_room(struct listener *l, uint32_t count)
{
    int64_t now = deadline_now_ms(), oldest = now, since;

    pthread_mutex_lock(&l->connections_lock);
    for (struct connection *c = l->connections; c != NULL; c = c->next)
        if (awaits_header(c, &since) && since < oldest)
            oldest = since;
    int64_t until = oldest + (now - oldest) / 4;
    for (struct connection *c = l->connections; c != NULL && count > 0; c = c->next) {
        if (awaits_header(c, &since) && since <= until && since < now) {
            c->cut = true;
            shutdown(c->fd, SHUT_RDWR);
            count--;
        }
    }
    pthread_mutex_unlock(&l->connections_lock);
}

void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct worker *w = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = connection_new(w, mhd);
        atomic_fetch_add(&w->connections, 1);
        atomic_fetch_sub(&w->pending, 1);
        if (c != NULL) /* else every request of it is refused: exchange_target finds no context */
            connection_enter(c, address_of(mhd));
        *socket_context = c;
        return;
    }
    atomic_fetch_sub(&w->connections, 1);
    struct connection *c = *socket_context;
    if (c == NULL)
        return;
    *socket_context = NULL;
    connection_leave(c);
    free(c);
}
