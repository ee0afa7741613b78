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
/* How many `address` holds. */
uint32_t peers_count(const struct peers *p, const struct sockaddr *address);
/* How many `peer` holds. */
uint32_t peer_count(const struct peer *peer);
/* Takes NULL. */
void peers_leave(struct peers *p, struct peer *peer);

/* How long the kernel's scheduler lets a thread run at a time. */

/* The calling thread, and those that it starts from now on, ask for short slices: woken, they run
 * before threads of this process or another that compute for long (a bulk's reading and inserting),
 * for as long as they keep to little work at a time. Their share of a busy processor stays what it
 * is. From Linux 6.12 on; before that, with a policy other than the usual one, or where it is
 * forbidden, nothing changes and false is returned. Each thread for itself. */
bool slice_shorten(void);
/* Takes it back for the calling thread and those that it starts from now on. */
void slice_restore(void);
