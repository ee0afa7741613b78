/* A sitemap index as XML, element by element as the bytes arrive. Internal to ingest. */
#ifndef SITEMAPD_INGEST_XML_INDEX_H
#define SITEMAPD_INGEST_XML_INDEX_H

#include "server/ingest/core.h"
#include "server/ingest/detect.h"

struct xml_index;

/* `start` is where the first byte stands. NULL when out of memory. */
struct xml_index *xml_index_new(struct core *core, struct place start);
/* False: stop, the core knows why. */
bool xml_index_feed(struct xml_index *x, const char *bytes, size_t len);
bool xml_index_finish(struct xml_index *x);
void xml_index_free(struct xml_index *x);

#endif
