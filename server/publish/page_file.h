/* A page as a file: what the page store keeps of a snapshot, to bytes and back. Holds the deflated
 * segments alone; frame, checksum and etags are made anew by seal_snapshot, so that none of them
 * can disagree with the segments. In the byte order of the machine, and says so. Internal to
 * publish; pure, thread safe. */
#ifndef SITEMAPD_PUBLISH_PAGE_FILE_H
#define SITEMAPD_PUBLISH_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/publish/snapshot.h"
#include "server/rules/limits.h"
#include "server/rules/str.h"

/* Steps with any change of the layout. */
#define PAGE_FILE_VERSION 1
/* No file is larger, none that says so is read: a page of LIMIT_PAGE_BYTES that does not compress,
 * with room to spare. */
#define PAGE_FILE_MAX_BYTES  (LIMIT_PAGE_BYTES + (8u << 20))
#define PAGE_FILE_EPOCH_SIZE 40

/* Which state of which page. Revisions repeat where an older copy of the catalogue is put back,
 * and times where the clock stands: `stamp` tells two states apart (page_record). */
struct page_key {
    char epoch[PAGE_FILE_EPOCH_SIZE]; /* of the catalogue; NULs behind the text */
    int64_t index_id;
    uint32_t number;
    uint32_t entries;
    uint64_t revision, stamp; /* of the page's record */
    int64_t changed_at;
    bool same_second;
};

/* The segments of a page apart from each other. */
struct page_pieces {
    struct snapshot_segment segments[PAGE_SEGMENTS]; /* offsets are within `bytes` */
    uint32_t count;
    const uint8_t *bytes; /* borrowed from what was decoded or encoded */
    size_t len;
};

/* Appends to `head` all of the file that stands before the pieces, and points `out` to these in
 * `s`. `made_by` is the program's (builder_made_by). False when out of memory. */
bool page_file_encode(const struct page_key *key, const uint64_t made_by[2],
                      const struct snapshot *s, struct str *head, struct page_pieces *out);
#define PAGE_FILE_HEAD_BYTES 144
/* True where a file of `file_bytes` that begins with these PAGE_FILE_HEAD_BYTES may be this state
 * of this page: to be asked before room is made for the rest. */
bool page_file_fits(const uint8_t *bytes, uint64_t file_bytes, const struct page_key *key,
                    const uint64_t made_by[2]);
/* True where the bytes are whole and are this state of this page, made by a program that makes the
 * same ones; `*out` points into them. False leaves `*out` undefined. */
bool page_file_decode(const uint8_t *bytes, size_t len, const struct page_key *key,
                      const uint64_t made_by[2], struct page_pieces *out);

/* The first bytes of a file, enough for page_file_belongs. */
#define PAGE_FILE_PEEK_BYTES 96
/* True where a file with these first bytes may be one of this catalogue and program. */
bool page_file_belongs(const uint8_t *bytes, size_t len, const char *epoch,
                       const uint64_t made_by[2]);

#endif
