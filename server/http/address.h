/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Socket addresses: listening sockets, clients' addresses as text, and counts for each client
 * address. Without libmicrohttpd. */
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

/* The same without listening: connections are refused until address_listen_on. */
int address_bind(const char *address, char *why, size_t why_size);
/* Begins to listen on a bound socket. False with errno. */
bool address_listen_on(int fd);
/* Advice for an operator about an errno of the above, to be appended to its text: begins with "; ",
 * or is empty. Static. */
const char *address_advice(int error);
/* Whether a socket that was handed over is a listening TCP socket of IPv4 or IPv6; if not, `why`
 * gets a sentence. */
bool address_check_given(int fd, char *why, size_t why_size);
/* The address that a socket is bound to. */
void address_describe(int fd, char text[ADDRESS_TEXT_SIZE]);

/* The address of a peer as text; IPv4 mapped into IPv6 as IPv4; "" for other families. */
void address_peer(const struct sockaddr *address, char text[INET6_ADDRSTRLEN]);

/* How many connections, or other things, each client address holds. IPv6 is counted by /64, since a
 * client has a whole one. Not thread safe: the owner's lock guards it. */

struct peer; /* one address that holds connections */
struct peers {
    void *tree;
};

/* Counts one more for `address`. Returns its peer, for peers_leave; NULL if the address already
 * holds `most`, or out of memory. Addresses of other families have a peer, too. */
struct peer *peers_enter(struct peers *p, const struct sockaddr *address, uint32_t most);
/* How many `peer` holds. */
uint32_t peer_count(const struct peer *peer);
/* Accepts NULL. */
void peers_leave(struct peers *p, struct peer *peer);
