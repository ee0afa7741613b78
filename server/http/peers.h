/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* How many connections, or what else, each client address holds. An IPv6 client has a whole /64 to
 * itself, so that is what is counted there. Not thread safe: its owner's lock covers it. */
#pragma once

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
/* How many `peer` holds. */
uint32_t peer_count(const struct peer *peer);
/* Takes NULL. */
void peers_leave(struct peers *p, struct peer *peer);
