/* NDJSON: one object a line. Internal to ingest. */
#ifndef SITEMAPD_INGEST_NDJSON_H
#define SITEMAPD_INGEST_NDJSON_H

#include "server/ingest/core.h"

struct ndjson;

/* `line` is the number of the first line. NULL when out of memory. */
struct ndjson *ndjson_new(struct core *core, uint64_t line);
/* False: stop, the core knows why. A line that is no JSON costs only itself. */
bool ndjson_feed(struct ndjson *n, const char *bytes, size_t len);
bool ndjson_finish(struct ndjson *n);
void ndjson_free(struct ndjson *n);

#endif
