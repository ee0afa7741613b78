/* How many connections each listener may have, so that there are always descriptors for the
 * catalogue: clients of one listener must starve neither the other nor the files. Thread safe but
 * for descriptors_raise. */
#ifndef SITEMAPD_SERVER_DESCRIPTORS_H
#define SITEMAPD_SERVER_DESCRIPTORS_H

#include <stdint.h>

struct descriptor_share {
    uint32_t public_connections, admin_connections;
};

/* What `max_connections` on both listeners would take, with `threads` that answer in all. */
uint64_t descriptors_wanted(uint32_t max_connections, unsigned threads);
/* Raises the soft limit of the process towards `wanted`, as far as the hard one allows. Returns
 * what the limit is then; it is never lowered. */
uint64_t descriptors_raise(uint64_t wanted);
/* Shares `limit` descriptors out: no listener gets more than `max_connections`, and none less than
 * a few, however low the limit. */
struct descriptor_share descriptors_share(uint64_t limit, uint32_t max_connections,
                                          unsigned threads);

#endif
