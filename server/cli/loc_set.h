/* The locs of a list, as 64-bit hashes: tells which stand more than once, in 16 bytes or so for
 * each. Two that share a hash count as one, which at a million locs is one chance in 30 million.
 * Internal to server/cli/. */
#ifndef SITEMAPD_CLI_LOC_SET_H
#define SITEMAPD_CLI_LOC_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loc_set {
    uint64_t *slots; /* owned; 0: free */
    size_t capacity; /* a power of two */
    size_t count;
};

/* Adds `loc`. True where it was there already. Past 50 million, or out of memory, it takes no new
 * ones. */
bool loc_set_add(struct loc_set *s, const char *loc);
void loc_set_done(struct loc_set *s);

#endif
