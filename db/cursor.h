/* The text that says where a list goes on. Internal to db/.
 *
 * A cursor names a place, not a row: the address or the loc that was last listed. So it stays good
 * when that entry is removed, and what is added meanwhile stands before or behind it. */
#ifndef SITEMAPD_DB_CURSOR_H
#define SITEMAPD_DB_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/limits.h"

enum cursor_kind {
    CURSOR_POSITION = 'p', /* lists by index and position */
    CURSOR_LOC = 'l',      /* lists by site and loc */
};

struct cursor {
    enum cursor_kind kind;
    int64_t owner;               /* CURSOR_POSITION: index id; CURSOR_LOC: site id */
    uint32_t position;           /* CURSOR_POSITION */
    char loc[LOC_MAX_CHARS + 1]; /* CURSOR_LOC */
};

void cursor_format(const struct cursor *cursor, char out[ENTRY_CURSOR_SIZE]);
/* Reads exactly what cursor_format writes. False, with `*out` undefined, otherwise. */
bool cursor_parse(const char *text, struct cursor *out);

#endif
