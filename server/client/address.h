/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which addresses a request may connect to if its URL does not come from the operator: public ones,
 * and those that the operator allows. The check applies to the address of the connection itself, so
 * that neither an unusual spelling of a private address nor a host name that resolves differently
 * later evades it. Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "server/base/address_range.h"

/* The addresses that are allowed besides public ones. */
struct address_guard {
    const struct address_range *allow;
    size_t allow_count;
};

/* Allows the ranges of a NULL-terminated list ([fetch] allow_address); NULL: none. Skips invalid
 * ranges. False: out of memory. */
bool address_guard_init(struct address_guard *guard, const char *const *allow);
void address_guard_done(struct address_guard *guard);

/* Whether the address is public: IPv4 and 2000::/3 without the special-purpose addresses of IANA's
 * registries (RFC 6890). For an IPv6 address that contains an IPv4 address (mapped ::ffff:0:0/96,
 * NAT64 64:ff9b::/96, 6to4 2002::/16), the IPv4 address decides. */
bool address_is_public(const uint8_t bytes[16]);

/* Whether the guard allows a connection to the address. `literal` (the host of `connect`) may be an
 * address as text ("10.0.0.5", "fd00::5", brackets allowed), which this request may connect to as
 * well; NULL or any other text allows nothing. Addresses that are neither IPv4 nor IPv6 are
 * refused. */
bool address_allowed(const struct address_guard *guard, const char *literal, size_t literal_len,
                     const struct sockaddr *address);
