/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Ranges of addresses, such as "10.0.0.7" and "fd00::/8". An IPv6 range contains no IPv4 address,
 * not even ::/0, unless it lies within ::ffff:0:0/96. Pure functions, thread safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
    uint8_t bytes[16]; /* IPv4 mapped */
    unsigned bits;
};

/* Parses an address; an IPv4 address becomes ::ffff:a.b.c.d. False: it is invalid. */
bool address_bytes(const char *text, uint8_t out[16]);
bool address_bytes_are_v4(const uint8_t bytes[16]);

/* False: the text is malformed. */
bool address_range_parse(const char *text, struct address_range *out);
bool address_range_holds(const struct address_range *range, const uint8_t bytes[16]);
/* Whether one of the ranges contains the address `peer` (text). */
bool address_ranges_hold(const struct address_range *ranges, size_t count, const char *peer);
