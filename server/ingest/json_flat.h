/* The common form of an entry's JSON, read without a tree: one flat object of plain strings.
 * Internal to ingest. */
#ifndef SITEMAPD_INGEST_JSON_FLAT_H
#define SITEMAPD_INGEST_JSON_FLAT_H

#include <stdbool.h>

#include "server/ingest/judge.h"

/* Fills `raw`, whose strings then borrow from `text`, where `text` is one object of "loc" and at
 * most one each of "lastmod", "digest" and "index", all of them strings of printable ASCII without
 * a backslash. False for all else, well formed or not, with `raw` as it was: the general reader
 * (json_raw.h) judges that, and would read what this takes in the same way. */
bool json_flat_read(const char *text, size_t len, const struct reader_options *options,
                    struct raw_entry *raw);

#endif
