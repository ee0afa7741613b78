/* Gunzips as the bytes arrive: concatenated members (RFC 1952 2.2), a bound on how far a little
 * input may grow. Internal to ingest. */
#ifndef SITEMAPD_INGEST_GUNZIP_H
#define SITEMAPD_INGEST_GUNZIP_H

#include "server/ingest/core.h"

struct gunzip;

/* Takes decoded bytes. False stops; the core knows why. */
typedef bool gunzip_take(void *context, const char *bytes, size_t len);

/* NULL when out of memory. */
struct gunzip *gunzip_new(struct core *core, gunzip_take *take, void *context);
bool gunzip_feed(struct gunzip *g, const void *bytes, size_t len);
/* False where the stream is incomplete. */
bool gunzip_finish(struct gunzip *g);
void gunzip_free(struct gunzip *g);

#endif
