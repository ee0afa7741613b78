/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Where a request may connect to, where the URL is not the operator's own word: the public
 * internet, and what the operator allows besides. Checked is the very address that is connected to,
 * so that no spelling of a private one and no name that changes its mind gets by. Pure functions,
 * thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "server/base/address_range.h"

/* Allowed besides the public internet. */
struct address_guard {
    const struct address_range *allow;
    size_t allow_count;
};

/* Allows these ranges, as [fetch] allow_address has them, which ends in NULL; NULL: none. What is
 * no range counts for nothing. False: out of memory. */
bool address_guard_init(struct address_guard *guard, const char *const *allow);
void address_guard_done(struct address_guard *guard);

/* Whether anybody on the internet may be met there: IPv4 and 2000::/3 without what IANA's
 * registries of special-purpose addresses (RFC 6890) keep for other ends. What carries an IPv4
 * address (mapped
 * ::ffff:0:0/96, NAT64 64:ff9b::/96, 6to4 2002::/16) is checked by that. */
bool address_is_public(const uint8_t bytes[16]);

/* Whether the guard lets a connection go there. `literal`: an address as text that the request
 * itself may connect to ("10.0.0.5", "fd00::5", brackets allowed; the host of `connect`), any
 * other text or NULL counts for nothing. An address of no internet family is refused. */
bool address_allowed(const struct address_guard *guard, const char *literal, size_t literal_len,
                     const struct sockaddr *address);
