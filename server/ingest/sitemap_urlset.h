/* A sitemap as XML, tag by tag as the bytes arrive. Internal to ingest. */
#ifndef SITEMAPD_INGEST_SITEMAP_URLSET_H
#define SITEMAPD_INGEST_SITEMAP_URLSET_H

#include "server/ingest/sitemap_pages.h"
#include "server/ingest/sitemap_prolog.h"

/* What expat is given at once; it finds what is wrong at the end of such a piece at the latest. */
#define URLSET_FEED_BYTES 16384u

struct sitemap_urlset;

/* `place` is where the first byte stands, a byte order mark of UTF-8 and white space passed. NULL
 * when out of memory. */
struct sitemap_urlset *sitemap_urlset_new(struct sitemap_work *work, struct place place,
                                          enum sitemap_start start);
/* At most URLSET_FEED_BYTES. False: stop, the work's core knows why. */
bool sitemap_urlset_feed(struct sitemap_urlset *u, const char *bytes, size_t len);
bool sitemap_urlset_finish(struct sitemap_urlset *u);
void sitemap_urlset_free(struct sitemap_urlset *u);

#endif
