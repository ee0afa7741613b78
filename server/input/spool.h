/* A spool: entries kept in a bounded, nameless file until their transaction takes them, so that a
 * slow sender never holds the write lock and a bulk of any size has bounded memory. */
#ifndef SITEMAPD_INPUT_SPOOL_H
#define SITEMAPD_INPUT_SPOOL_H

#include <stdint.h>

#include "server/rules/entry.h"

enum spool_status {
    SPOOL_OK,
    SPOOL_FULL,    /* the list is larger than any may be */
    SPOOL_CROWDED, /* it would fit if there were not the others' */
    SPOOL_NO_SPACE,
    SPOOL_FAILED,
    SPOOL_NO_MEMORY
};

/* Sites whose ids differ by a multiple of it share one part of the room. */
#define SPOOL_SITES 256u

/* What the files of several spools may take together, and those of one site: half of it, so that
 * who keeps lists open leaves room for others. Starts with what is used 0; thread safe. */
struct spool_room {
    _Atomic uint64_t max_bytes, used_bytes;
    _Atomic uint64_t used_by[SPOOL_SITES];
};

struct spool;

#define SPOOL_MEMORY_BYTES 65536u /* a list that fits stays in memory and makes no file */

/* `folder` is the database's (the file is O_TMPFILE there, or unlinked at once); `max_bytes`
 * bounds it. NULL when out of memory. */
struct spool *spool_new(const char *folder, uint64_t max_bytes);
/* Its file shares `room`, which outlives it, with others. `site_id`: the one site that its sender's
 * token is for, or 0. Before the first spool_add. */
void spool_share(struct spool *s, struct spool_room *room, int64_t site_id);
/* Appends a copy of `entry`. */
enum spool_status spool_add(struct spool *s, const struct entry *entry);
uint64_t spool_count(const struct spool *s);
/* The entries as a stream, after the last spool_add; valid until spool_free. Reading and adding
 * may be on different threads, one after the other. */
struct entry_stream spool_stream(struct spool *s);
void spool_free(struct spool *s);

#endif
