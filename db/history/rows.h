/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The rows of a change: what each entry that it touched was before and is after it. A part is a few
 * thousand of them, in the order in which they were written, packed into one blob beside a Bloom
 * filter of their locs. Internal to db/; no engine here. One thread for one part.
 *
 * Packed: a byte for the form (0 plain, 1 deflated), in the latter case the plain length
 * in four bytes, then the rows. A row: a byte of flags; what is a number as a variable-length one;
 * of a loc how many bytes it shares with the one before, and the rest; of an image what differs
 * from the one before it, a lastmod of the usual form as a number. Most rows of a list are so made
 * of some twenty bytes, which deflating would cost more than writing; longer and shorter ones are
 * deflated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/map.h"
#include "server/base/str.h"

/* A part is written once it has so many rows, or texts of so many bytes. */
#define HISTORY_PART_ROWS 1000u
#define HISTORY_PART_TEXT (256u << 10)
/* So few are kept in the change's own row, without a filter. */
#define HISTORY_INLINE_ROWS 8u

/* A text in the part's `text`; at UINT32_MAX: none. */
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
    struct str text; /* what the texts are places in */
    struct map by_loc;
    bool failed; /* memory ran out: it is not whole */
};

/* Of a loc, as filters and maps have it. */
uint64_t history_loc_hash(const char *loc, size_t len);

void history_part_clear(struct history_part *part);
void history_part_done(struct history_part *part);
static inline const char *history_text_of(const struct history_part *part, struct history_text text)
{
    return text.at == UINT32_MAX ? NULL : part->text.data + text.at;
}
/* Keeps a copy, ended by a NUL; NULL: none. */
struct history_text history_part_keep(struct history_part *part, const char *text, size_t len);
/* The row of this entry, made where the part has none; `*fresh` says so. NULL: out of memory. */
struct history_row *history_part_row(struct history_part *part, int64_t site, const char *loc,
                                     size_t len, bool *fresh);
/* True where the entry is after the change what it was before: it went away and came back. */
bool history_row_is_idle(const struct history_part *part, const struct history_row *row);

/* Appends the packed rows but the idle ones. False: out of memory. */
bool history_part_pack(const struct history_part *part, struct str *out);
/* Appends the filter of the locs of a part that was made here, not unpacked. False: out of memory.
 */
bool history_part_filter(const struct history_part *part, struct str *out);
/* Reads what history_part_pack wrote, into an empty part. False, with `failed` set where memory ran
 * out: else the bytes are no part. */
bool history_part_unpack(struct history_part *part, const void *bytes, size_t len);
/* False where no row of the filter's part is of this loc; true: one may be. */
bool history_filter_has(const void *filter, size_t filter_len, const char *loc, size_t len);
