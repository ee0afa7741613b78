/* A sitemap as a text list: one URL a line. Internal to ingest. */
#ifndef SITEMAPD_INGEST_SITEMAP_LIST_H
#define SITEMAPD_INGEST_SITEMAP_LIST_H

#include "server/ingest/sitemap_pages.h"

struct sitemap_list;

/* `line` is the number of the first line, which begins as a URL does. NULL when out of memory. */
struct sitemap_list *sitemap_list_new(struct sitemap_work *work, uint64_t line);
/* False: stop, the work's core knows why. */
bool sitemap_list_feed(struct sitemap_list *l, const char *bytes, size_t len);
bool sitemap_list_finish(struct sitemap_list *l);
void sitemap_list_free(struct sitemap_list *l);

#endif
