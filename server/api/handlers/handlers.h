/* What the admin listener's table (call.c) names, by the noun's file. Internal to server/api/. */
#ifndef SITEMAPD_API_HANDLERS_HANDLERS_H
#define SITEMAPD_API_HANDLERS_HANDLERS_H

#include <stddef.h>

#include "server/api/routes.h"
#include "server/http/request.h"

typedef enum handled route_hook(void *context, struct request *request);

/* health.c, metrics.c, openapi.c: answered at once */
route_hook health_alive, health_ready, metrics_get, openapi_get;
/* sitemaps.c; the body of POST and PUT is upload.c's */
route_hook sitemaps_list, sitemap_get, sitemap_delete, sitemaps_delete;
route_hook sitemaps_post_begin, sitemaps_put_begin;
/* sites.c, indexes.c */
route_hook sites_list, site_get, sites_post, site_patch, site_delete;
route_hook indexes_list, index_get, indexes_post, index_patch, index_delete, render_get;
/* tokens.c */
route_hook token_get, tokens_list, token_delete;
/* crawlers.c */
route_hook crawlers_list, crawler_pages;
/* sources.c, source_changes.c, checks.c, changes.c, copy.c */
route_hook sources_list, source_scan, sources_post, source_patch, source_delete;
route_hook checks_list, check_poll, changes_get, backup_get;
/* history.c */
route_hook history_list, history_get, history_undo, diff_get, restore_post;

/* console.c: answered at once */
route_hook console_redirect, console_get;

/* The calls that are more than a struct call: route.call_size. */
extern const size_t upload_size, removal_size, site_write_size, index_write_size;
extern const size_t source_write_size, check_call_size, scan_call_size, changes_size, copy_size;

/* A file that the build puts into the program (embed.cmake). `etag` with its quotes. */
struct embedded_file {
    const char *name;
    const unsigned char *bytes;
    size_t len;
    const char *etag;
};
extern const struct embedded_file openapi_files[]; /* openapi.json alone */
extern const struct embedded_file console_files[]; /* server/console/ */
extern const size_t console_files_count;

#endif
