/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The rows of a change: each entry that it touched, before and after. A part is about a thousand of
 * them, in the order in which they were written, packed into one blob beside a Bloom filter of
 * their locs. Internal to db/; does not use SQLite. One thread for one part.
 *
 * The packed form: a byte (0 plain, 1 deflated), if deflated the plain length in four bytes, then
 * the rows. A row has a byte of flags; numbers have a variable length; a loc is the length of the
 * prefix that it shares with the loc before, and the rest; an image has only the fields that differ
 * from the image before, and a lastmod of the usual form is a number. Most rows of a list take
 * about twenty bytes, and are not deflated; shorter and longer ones are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/map.h"
#include "server/base/str.h"

/* A part is written once it has this many rows, or texts of this size. */
#define HISTORY_PART_ROWS 1000u
#define HISTORY_PART_TEXT (256u << 10)
/* Up to this many rows are stored in the change's row of `history`, without a filter. */
#define HISTORY_INLINE_ROWS 8u

/* A text in the part's `text`; `at` UINT32_MAX: none. */
struct history_text {
    uint32_t at, len;
};
#define HISTORY_NO_TEXT                                                                            \
    (struct history_text)                                                                          \
    {                                                                                              \
        UINT32_MAX, 0                                                                              \
    }

/* The columns of an entry that can differ. */
struct history_image {
    int64_t address, source, serial, registered_at, changed_at;
    struct history_text lastmod, digest, extensions;
};

struct history_row {
    int64_t site;
    struct history_text loc;
    uint64_t hash; /* of the loc, for the filter; 0 in a part that was unpacked */
    bool has_before, has_after;
    struct history_image before, after;
};

/* All zero is an empty part. */
struct history_part {
    struct history_row *rows; /* owned */
    uint32_t count, capacity;
    struct str text; /* all texts of the part */
    struct map by_loc;
    bool failed; /* out of memory: the part is incomplete */
};

/* The hash of a loc in filters and maps. */
uint64_t history_loc_hash(const char *loc, size_t len);

void history_part_clear(struct history_part *part);
void history_part_done(struct history_part *part);
static inline const char *history_text_of(const struct history_part *part, struct history_text text)
{
    return text.at == UINT32_MAX ? NULL : part->text.data + text.at;
}
/* Stores a copy, ended by a NUL; NULL: none. */
struct history_text history_part_keep(struct history_part *part, const char *text, size_t len);
/* The row of this entry; `*fresh`: it was made. NULL: out of memory. */
struct history_row *history_part_row(struct history_part *part, int64_t site, const char *loc,
                                     size_t len, bool *fresh);
/* True if the entry is the same before and after the change: it was removed and restored. */
bool history_row_is_idle(const struct history_part *part, const struct history_row *row);
/* Whether the entry was, or is, in this list. */
bool history_row_touches(const struct history_row *row, int64_t list_id);

/* Appends the packed rows, without idle ones. False: out of memory. */
bool history_part_pack(const struct history_part *part, struct str *out);
/* Appends the filter of the locs of a part that was not unpacked. False: out of memory. */
bool history_part_filter(const struct history_part *part, struct str *out);
/* Unpacks bytes of history_part_pack into an empty part. False: out of memory (`failed` is set), or
 * malformed bytes. */
bool history_part_unpack(struct history_part *part, const void *bytes, size_t len);
/* False: no row of the filter's part has this loc. True: one may have it. */
bool history_filter_has(const void *filter, size_t filter_len, const char *loc, size_t len);
