/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of crawlers' names, with the product tokens that identify a crawler and the address
 * ranges that verify it (ranges_hold, called by crawlers_who). A table is immutable once made (but
 * for its cache, which is atomic); any thread may use it. Internal to server/crawlers/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/crawlers/crawlers.h"

/* The addresses of a crawler: ranges read from files, found by binary search. One thread fills a
 * set; from ranges_seal on it is immutable, and any thread may use it. */

#define RANGES_MAX            20000u   /* of all crawlers together */
#define RANGES_MAX_FILE_BYTES 4194304u /* of one file */

/* IPv4 addresses as ::ffff:a.b.c.d; both ends belong to it. */
struct range {
    uint8_t first[16], last[16];
};

/* All zero is an empty set. */
struct ranges {
    size_t count, room;
    struct range *of; /* owned */
};

/* Adds what a file holds: the JSON that search engines publish, {"prefixes": [{"ipv4Prefix":
 * "192.0.2.0/24"}, {"ipv6Prefix": "2001:db8::/32"}]}, or one address or range on each line, #
 * before a comment. At most `most` ranges. False, with a sentence in `why` (without the path), if
 * anything in the file is invalid, or it has no range. */
bool ranges_read(struct ranges *r, const char *path, size_t most, char *why, size_t why_size);
/* The same from memory. */
bool ranges_parse(struct ranges *r, const char *text, size_t len, size_t most, char *why,
                  size_t why_size);
/* Sorts and merges the ranges, before the first ranges_hold. */
void ranges_seal(struct ranges *r);
/* Whether the address (text, IPv4 or IPv6 without brackets) is in one of the ranges. No allocation.
 */
bool ranges_hold(const struct ranges *r, const char *address);
void ranges_done(struct ranges *r);

struct crawler_name {
    char text[CRAWLER_NAME_MAX + 1];
    bool has_ranges;
    struct ranges ranges;
    uint8_t slot; /* of the counts and of the ledger, see counting.c */
};

/* `of[0]` is "other": every client that has no name. */
size_t names_count(const struct crawler_names *names);
struct crawler_name *names_at(struct crawler_names *names, size_t at);
/* The place in the table of the crawler that a User-Agent names; NULL: 0. */
size_t names_classify(struct crawler_names *names, const char *user_agent);
