/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Socket addresses: where to listen, who is asking, whom to trust. No microhttpd here. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "server/base/address_range.h"

#define ADDRESS_TEXT_SIZE (INET6_ADDRSTRLEN + 8) /* "[…]:65535" */

/* Opens a listening socket at "A:P", "[A]:P" or ":P" (every address); port 0 picks a free one.
 * `text` gets the address with the real port. Returns the descriptor, not blocking, closed on exec;
 * or -1, and a sentence in `why`. */
int address_listen(const char *address, char text[ADDRESS_TEXT_SIZE], char *why, size_t why_size);

/* The same without listening yet: that is refused until address_listen_on. */
int address_bind(const char *address, char *why, size_t why_size);
/* Begins to listen on a bound socket. False with errno. */
bool address_listen_on(int fd);
/* What an operator can do about an errno of the above, to be put behind it: begins
 * with "; ", or is empty. Static. */
const char *address_advice(int error);
/* Whether a socket that was handed over is one that listens, of an internet family; `why` gets a
 * sentence. */
bool address_check_given(int fd, char *why, size_t why_size);
/* The address that a socket is bound to. */
void address_describe(int fd, char text[ADDRESS_TEXT_SIZE]);

/* The address of a peer as text, IPv4 also where it came mapped into IPv6; "" for others. */
void address_peer(const struct sockaddr *address, char text[INET6_ADDRSTRLEN]);

/* How many connections, or what else, each client address holds. An IPv6 client has a whole /64 to
 * itself, so that is what is counted there. Not thread safe: its owner's lock covers it. */

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
