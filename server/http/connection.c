#include <stdlib.h>

#include "server/http/internal.h"

static bool is_trusted(const struct listener *l, const char *peer)
{
    for (size_t i = 0; i < l->options.trusted_proxy_count; i++)
        if (address_range_holds(&l->trusted[i], peer))
            return true;
    return false;
}

static struct connection *connection_new(struct listener *l, struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct connection *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->listener = l;
    c->fd = fd->connect_fd;
    address_peer(address->client_addr, c->peer);
    c->trusted_proxy = is_trusted(l, c->peer);
    c->exchange.connection = c;
    c->exchange.mhd = mhd;
    atomic_init(&c->exchange.wait, WAIT_NONE);
    atomic_init(&c->deadline_ms, 0);
    atomic_init(&c->idle_since_ms, 0);
    atomic_init(&c->in_body, false);
    deadline_set_body(c, deadline_now_ms(), l->options.header_timeout_ms, 0);
    return c;
}

static void connection_enter(struct connection *c)
{
    struct listener *l = c->listener;

    pthread_mutex_lock(&l->connections_lock);
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
    pthread_mutex_unlock(&l->connections_lock);
}

void connection_notify(void *cls, struct MHD_Connection *mhd, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct connection *c = connection_new(cls, mhd);
        if (c != NULL) /* else every request of it is refused: exchange_target finds no context */
            connection_enter(c);
        *socket_context = c;
        return;
    }
    struct connection *c = *socket_context;
    if (c == NULL)
        return;
    *socket_context = NULL;
    connection_leave(c);
    free(c);
}
