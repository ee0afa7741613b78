/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Connections of each address, in a search tree. */
#include "server/http/peers.h"

#include <netinet/in.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define IPV6_CLIENT_BYTES 8 /* of 16: RFC 6177 gives a site at least a /64 */

struct peer {
    uint8_t address[16]; /* first: IPv4 as ::ffff:a.b.c.d */
    uint32_t count;
};

static int compare(const void *a, const void *b)
{
    return memcmp(((const struct peer *)a)->address, ((const struct peer *)b)->address,
                  sizeof((const struct peer *)a)->address);
}

static void read_address(const struct sockaddr *address, struct peer *out)
{
    memset(out, 0, sizeof *out);
    if (address == NULL)
        return;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        out->address[10] = out->address[11] = 0xff;
        memcpy(out->address + 12, &in->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
        bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        memcpy(out->address, &in6->sin6_addr, mapped ? 16 : IPV6_CLIENT_BYTES);
    }
}

struct peer *peers_enter(struct peers *p, const struct sockaddr *address, uint32_t most)
{
    struct peer wanted;

    read_address(address, &wanted);
    struct peer *const *found = tfind(&wanted, &p->tree, compare);
    if (found != NULL) {
        if ((*found)->count >= most)
            return NULL;
        (*found)->count++;
        return *found;
    }
    struct peer *made = malloc(sizeof *made);
    if (made == NULL)
        return NULL;
    *made = wanted;
    made->count = 1;
    if (most == 0 || tsearch(made, &p->tree, compare) == NULL) {
        free(made);
        return NULL;
    }
    return made;
}

uint32_t peer_count(const struct peer *peer)
{
    return peer->count;
}

void peers_leave(struct peers *p, struct peer *peer)
{
    if (peer == NULL || --peer->count > 0)
        return;
    tdelete(peer, &p->tree, compare);
    free(peer);
}
