/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A spool: the checked rows of a change, entries or files of a source, on their way to the writer.
 * Few rows are in memory, many in a bounded, nameless file, so that a slow sender does not hold the
 * write lock and a list of any size needs bounded memory. One thread at a time. */
#pragma once

#include <stdint.h>

#include "db/source.h"
#include "server/base/site_table.h"
#include "server/rules/entry.h"

enum spool_status {
    SPOOL_OK,
    SPOOL_FULL,    /* the list exceeds the limit of a list */
    SPOOL_CROWDED, /* the lists of others leave no room for it */
    SPOOL_NO_SPACE,
    SPOOL_FAILED,
    SPOOL_NO_MEMORY
};

/* The disk that lists and long answers use together. Thread safe. */
struct spool_room {
    _Atomic uint64_t max_bytes;
    struct site_uses used; /* bytes */
};
/* Reserves bytes for a token of one site, which has a share as of site_has_room, or of all sites
 * (`site_id` 0). False: they do not fit, or memory is short; nothing is reserved. */
bool spool_room_take(struct spool_room *room, int64_t site_id, uint64_t bytes);
void spool_room_give(struct spool_room *room, int64_t site_id, uint64_t bytes);

struct spool;

#define SPOOL_MEMORY_BYTES 65536u /* rows that fit stay in memory and make no file */

/* `folder` is the database's (the file is O_TMPFILE there, or unlinked at once); `max_bytes`
 * bounds it. NULL when out of memory. */
struct spool *spool_new(const char *folder, uint64_t max_bytes);
/* Makes the spool's file count in `room`, which must outlive the spool (NULL: in none). `site_id`:
 * the one site of the sender's token, or 0; if it is not 0, the file leaves the reserve of the disk
 * free. Before the first row. */
void spool_share(struct spool *s, struct spool_room *room, int64_t site_id);
/* Append a copy of a row; all rows of a spool are of one kind. */
enum spool_status spool_add(struct spool *s, const struct entry *entry);
enum spool_status spool_add_file(struct spool *s, const struct source_file *file);

/* These accept NULL: a spool without rows. */
uint64_t spool_count(const struct spool *s);
/* Back to the first row. */
void spool_rewind(struct spool *s);
/* 1: `*out` is the next row, its strings valid until the next call; 0: no more rows; -1: read error
 * (errno). */
int spool_next(struct spool *s, struct entry *out);
int spool_next_file(struct spool *s, struct source_file *out);
void spool_free(struct spool *s);
