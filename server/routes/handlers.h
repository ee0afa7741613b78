/* The hooks that the admin listener's table (table.c) names, by file. Internal to
 * server/routes/. */
#ifndef SITEMAPD_ROUTES_HANDLERS_H
#define SITEMAPD_ROUTES_HANDLERS_H

#include "server/http/request.h"

typedef enum handled route_hook(void *context, struct request *request);

/* health.c, metrics.c, openapi.c: answered at once */
route_hook health_alive, health_ready, metrics_get, openapi_get;

/* sitemaps_read.c */
route_hook sitemaps_list_begin, sitemaps_list, sitemap_get_begin, sitemap_get;

/* sitemaps_write.c (POST, PUT: the body is in upload.c) */
route_hook sitemaps_post_begin, sitemaps_put_begin;
route_hook sitemap_delete_begin, sitemap_delete, sitemaps_delete_begin, sitemaps_delete;

/* sites_read.c */
route_hook sites_list_begin, sites_list, site_get_begin, site_get;

/* sites_write.c */
route_hook sites_post_begin, sites_post, site_patch_begin, site_patch;
route_hook site_delete_begin, site_delete;

/* indexes.c */
route_hook indexes_list_begin, indexes_list, indexes_post_begin, indexes_post;
route_hook index_get_begin, index_get, index_delete_begin, index_delete;

/* sources.c */
route_hook sources_list_begin, sources_list, source_scan_begin, source_scan;

/* changes.c */
route_hook changes_begin, changes_get;

#endif
