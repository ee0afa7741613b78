/* A JSON body, one object or one array of them, split into its elements as the bytes arrive:
 * only one element is held. Internal to ingest. */
#ifndef SITEMAPD_INGEST_JSON_STREAM_H
#define SITEMAPD_INGEST_JSON_STREAM_H

#include "server/ingest/core.h"
#include "server/ingest/detect.h"

struct json_stream;

/* `start` is where the first byte stands. NULL when out of memory. */
struct json_stream *json_stream_new(struct core *core, struct place start);
/* False: stop, the core knows why. What is no JSON makes the whole body malformed. */
bool json_stream_feed(struct json_stream *s, const char *bytes, size_t len);
bool json_stream_finish(struct json_stream *s);
/* True once the body turned out to be a single object. */
bool json_stream_single(const struct json_stream *s);
void json_stream_free(struct json_stream *s);

#endif
