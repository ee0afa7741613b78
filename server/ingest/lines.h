/* Splits bytes into lines as they arrive, with a bound on what is kept of one. Internal to
 * ingest. */
#ifndef SITEMAPD_INGEST_LINES_H
#define SITEMAPD_INGEST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/ingest/reader.h"

struct line {
    const char *text; /* without the newline; borrowed for the call */
    size_t len;
    uint64_t number; /* 1-based */
    bool cut;        /* longer than READER_MAX_ITEM_BYTES: this is its beginning */
};

/* False stops the splitting. */
typedef bool lines_take(void *context, const struct line *line);

struct lines {
    uint64_t number; /* of the line being read */
    size_t len;
    bool pending; /* the line being read has bytes */
    bool cut;
    char buffer[READER_MAX_ITEM_BYTES];
};

/* `number` is that of the first line. */
void lines_init(struct lines *l, uint64_t number);
bool lines_feed(struct lines *l, const char *bytes, size_t len, lines_take *take, void *context);
/* The last line needs no newline. */
bool lines_finish(struct lines *l, lines_take *take, void *context);

#endif
