/* Joins deflated pieces into one gzip member (RFC 1952) in one buffer, and derives the page's
 * etags from the hashes of its segments. Internal to publish. */
#ifndef SITEMAPD_PUBLISH_SEAL_H
#define SITEMAPD_PUBLISH_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/publish/deflater.h"
#include "server/publish/snapshot.h"
#include "server/rules/str.h"

/* The constant pieces of every page. */
struct seal_frame {
    struct str head, tail; /* deflated */
    uint32_t head_crc, tail_crc, tail_crc_shift;
};

bool seal_frame_init(struct seal_frame *frame, struct deflater *d);
void seal_frame_done(struct seal_frame *frame);

struct seal_input {
    const struct seal_frame *frame;
    int level; /* part of gzip's etags */
    const struct snapshot_segment *segments;
    const bool *fresh; /* its piece is in `pieces`, else in `old` */
    uint32_t count;    /* segments, up to the last with entries */
    const uint8_t *pieces;
    const uint8_t *old; /* buffer of the base snapshot, or NULL */
};

/* A new snapshot with buffer, lengths, entries, segments and etags set; the caller owns its one
 * reference. NULL when out of memory. */
struct snapshot *seal_snapshot(const struct seal_input *input);

#endif
