/* One entry as JSON: `{"loc", "lastmod"?, "digest"?, "index"?}` and nothing else. */
#ifndef SITEMAPD_INGEST_JSON_ENTRY_H
#define SITEMAPD_INGEST_JSON_ENTRY_H

#include "server/ingest/reader.h"

/* Owned copies of an entry's strings behind `entry`. */
struct json_entry {
    struct entry entry;
    char *storage; /* owned */
};

/* Judges one JSON text (an object). On RULE_OK `out` is filled and the caller frees it with
 * json_entry_done; otherwise `rejection` says why (its loc, where there was one, points into
 * `out->storage`, so json_entry_done is due then too). `line` goes into both. Thread safe. */
enum rule_code json_entry_parse(const char *text, size_t len, uint64_t line,
                                const struct reader_options *options, struct json_entry *out,
                                struct rejection *rejection);
void json_entry_done(struct json_entry *e);

#endif
