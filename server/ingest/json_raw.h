/* One JSON text to the raw fields of an entry. The only user of jansson. Internal to ingest. */
#ifndef SITEMAPD_INGEST_JSON_RAW_H
#define SITEMAPD_INGEST_JSON_RAW_H

#include <jansson.h>

#include "server/ingest/judge.h"

#define JSON_ENTRY_MAX_DEPTH 16u /* an entry is flat; `export` nests once ("warnings": []) */

enum json_raw_status {
    JSON_RAW_OK,
    JSON_RAW_REJECTED, /* is JSON, but no entry, or a name stands twice */
    JSON_RAW_SYNTAX,   /* is no JSON */
    JSON_RAW_NO_MEMORY,
};

/* Reads `text`. On OK `raw` is filled and borrows from `text` and from `*root`, which the caller
 * then releases with json_decref (it may be NULL). Otherwise `*root` is NULL and `rejection` is
 * filled, its loc kept in `judged`. On SYNTAX `*line` and `*column` (1-based, in characters, within
 * `text`) say where. */
enum json_raw_status json_raw_read(const char *text, size_t len, uint64_t line_number,
                                   const struct reader_options *options, struct judged *judged,
                                   json_t **root, struct raw_entry *raw,
                                   struct rejection *rejection, uint64_t *line, uint64_t *column);

#endif
