/* How many connections each client address holds. An IPv6 client has a whole /64 to itself, so that
 * is what is counted there. Not thread safe: the listener's lock covers it. */
#ifndef SITEMAPD_HTTP_PEERS_H
#define SITEMAPD_HTTP_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct peer; /* one address that holds connections */
struct peers {
    void *tree;
};

/* Counts one more of `address`: its peer, to be given back with peers_leave, or NULL: the address
 * holds `most` already, or memory is short. An address of no internet family has a peer too. */
struct peer *peers_enter(struct peers *p, const struct sockaddr *address, uint32_t most);
/* How many `address` holds. */
uint32_t peers_count(const struct peers *p, const struct sockaddr *address);
/* Takes NULL. */
void peers_leave(struct peers *p, struct peer *peer);

#endif
