/* The admin listener's table: every route, as docs/api.md tells of them. */
#include "server/api/copy.h"
#include "server/api/handlers/handlers.h"
#include "server/api/upload.h"

/* Documents that describe a site or an index; app->max_body_bytes may be less. */
#define DOCUMENT_BYTES (1u << 20)
/* Lists: upload.c holds them to max_bulk_bytes, which is configured. */
#define LIST_BYTES UINT64_MAX

static const char *const json[] = {"application/json", NULL};
static const char *const lists[] = {"application/json", "application/x-ndjson", NULL};

#define PARAMETERS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Answered from memory, for any caller that asks. */
#define PLAIN(path_, label_, finish_)                                                              \
    {                                                                                              \
        .methods = HTTP_GET, .path = (path_), .label = (label_), .asks_to_wait = true,             \
        .finish = (finish_)                                                                        \
    }
/* A file of the console. */
#define PAGE(path_, finish_)                                                                       \
    {                                                                                              \
        .methods = HTTP_GET, .path = (path_), .label = "console", .finish = (finish_)              \
    }
/* For who has a token of this role; a body's rows add its size and types. */
#define CALL(role_, method_, path_, label_, finish_, ...)                                          \
    {                                                                                              \
        .methods = (method_), .path = (path_), .label = (label_), .role = GRANT_##role_,           \
        .begin = call_begin, .finish = (finish_), .done = call_done, __VA_ARGS__                   \
    }
#define DOCUMENT .max_body_bytes = DOCUMENT_BYTES, .content_types = json
/* A list of entries, or one: read as it comes. */
#define UPLOAD(method_, path_, label_, begin_, ...)                                                \
    {                                                                                              \
        .methods = (method_), .path = (path_), .label = (label_), .role = GRANT_WRITE,             \
        .max_body_bytes = LIST_BYTES, .content_types = lists, .call_size = &upload_size,           \
        .begin = (begin_), .body = upload_body, .finish = upload_finish, .done = call_done,        \
        __VA_ARGS__                                                                                \
    }

const struct route routes_admin[] = {
    PLAIN("/healthz", "healthz", health_alive),
    PLAIN("/readyz", "readyz", health_ready),
    PLAIN("/metrics", "metrics", metrics_get),
    PLAIN("/openapi.json", "openapi", openapi_get),

    CALL(READ, HTTP_GET, "/v1/sitemaps", "sitemaps", sitemaps_list, .call_size = &copy_size,
         .parameters = PARAMETERS("index", "prefix", "after", "limit", "source", "loc", "contains",
                                  "warned", "checks")),
    UPLOAD(HTTP_POST, "/v1/sitemaps", "sitemaps", sitemaps_post_begin, .heeds_if_match = true,
           .parameters = PARAMETERS("on_error", "index", "source", "max_removed", "dry_run")),
    UPLOAD(HTTP_PUT, "/v1/sitemaps", "sitemaps", sitemaps_put_begin, .heeds_if_match = true,
           .parameters =
               PARAMETERS("on_error", "index", "source", "prefix", "max_removed", "dry_run")),
    CALL(WRITE, HTTP_DELETE, "/v1/sitemaps", "sitemaps", sitemaps_delete, .heeds_if_match = true,
         .call_size = &removal_size, .parameters = PARAMETERS("loc")),
    CALL(READ, HTTP_GET, "/v1/sitemaps/{id}", "sitemap", sitemap_get, .parameters = NULL),
    CALL(WRITE, HTTP_DELETE, "/v1/sitemaps/{id}", "sitemap", sitemap_delete,
         .heeds_if_match = true),

    CALL(READ, HTTP_GET, "/v1/urls", "urls", sitemaps_list, .pages = true, .call_size = &copy_size,
         .parameters = PARAMETERS("urlset", "prefix", "after", "limit", "source", "loc", "contains",
                                  "warned")),
    UPLOAD(HTTP_POST, "/v1/urls", "urls", sitemaps_post_begin, .pages = true,
           .heeds_if_match = true,
           .parameters = PARAMETERS("on_error", "urlset", "source", "max_removed", "dry_run")),
    UPLOAD(HTTP_PUT, "/v1/urls", "urls", sitemaps_put_begin, .pages = true, .heeds_if_match = true,
           .parameters =
               PARAMETERS("on_error", "urlset", "source", "prefix", "max_removed", "dry_run")),
    CALL(WRITE, HTTP_DELETE, "/v1/urls", "urls", sitemaps_delete, .pages = true,
         .heeds_if_match = true, .call_size = &removal_size,
         .parameters = PARAMETERS("loc", "urlset")),
    CALL(READ, HTTP_GET, "/v1/urls/{id}", "url", sitemap_get, .pages = true, .parameters = NULL),
    CALL(WRITE, HTTP_DELETE, "/v1/urls/{id}", "url", sitemap_delete, .pages = true,
         .heeds_if_match = true),

    CALL(READ, HTTP_GET, "/v1/sites", "sites", sites_list,
         .parameters = PARAMETERS("after", "limit")),
    CALL(ADMIN, HTTP_POST, "/v1/sites", "sites", sites_post, DOCUMENT,
         .call_size = &site_write_size),
    CALL(READ, HTTP_GET, "/v1/sites/{id}", "site", site_get, .parameters = NULL),
    CALL(ADMIN, HTTP_PATCH, "/v1/sites/{id}", "site", site_patch, DOCUMENT,
         .call_size = &site_write_size),
    CALL(ADMIN, HTTP_DELETE, "/v1/sites/{id}", "site", site_delete, .call_size = &site_write_size,
         .parameters = PARAMETERS("max_removed", "dry_run")),

    CALL(READ, HTTP_GET, "/v1/indexes", "indexes", indexes_list,
         .parameters = PARAMETERS("site", "after", "limit")),
    CALL(ADMIN, HTTP_POST, "/v1/indexes", "indexes", indexes_post, DOCUMENT,
         .call_size = &index_write_size),
    CALL(READ, HTTP_GET, "/v1/indexes/{id}", "index", index_get, .parameters = NULL),
    CALL(ADMIN, HTTP_PATCH, "/v1/indexes/{id}", "index", index_patch, DOCUMENT,
         .call_size = &index_write_size),
    CALL(ADMIN, HTTP_DELETE, "/v1/indexes/{id}", "index", index_delete,
         .call_size = &index_write_size, .parameters = PARAMETERS("max_removed", "dry_run")),

    CALL(READ, HTTP_GET, "/v1/urlsets", "urlsets", indexes_list, .pages = true,
         .parameters = PARAMETERS("site", "after", "limit")),
    CALL(ADMIN, HTTP_POST, "/v1/urlsets", "urlsets", indexes_post, DOCUMENT, .pages = true,
         .call_size = &index_write_size),
    CALL(READ, HTTP_GET, "/v1/urlsets/{id}", "urlset", index_get, .pages = true,
         .parameters = NULL),
    CALL(ADMIN, HTTP_PATCH, "/v1/urlsets/{id}", "urlset", index_patch, DOCUMENT, .pages = true,
         .call_size = &index_write_size, .parameters = PARAMETERS("max_removed", "dry_run")),
    CALL(ADMIN, HTTP_DELETE, "/v1/urlsets/{id}", "urlset", index_delete, .pages = true,
         .call_size = &index_write_size, .parameters = PARAMETERS("max_removed", "dry_run")),

    CALL(READ, HTTP_GET, "/v1/render", "render", render_get, .call_size = &copy_size,
         .parameters = PARAMETERS("index", "urlset", "page")),
    CALL(ADMIN, HTTP_GET, "/v1/backup", "backup", backup_get, .call_size = &copy_size,
         .parameters = NULL),

    CALL(READ, HTTP_GET, "/v1/sources", "sources", sources_list, .parameters = NULL),
    CALL(ADMIN, HTTP_POST, "/v1/sources", "sources", sources_post, DOCUMENT,
         .call_size = &source_write_size),
    CALL(READ, HTTP_GET, "/v1/sources/{name}", "source", sources_list, .parameters = NULL),
    CALL(ADMIN, HTTP_PATCH, "/v1/sources/{name}", "source", source_patch, DOCUMENT,
         .call_size = &source_write_size),
    CALL(ADMIN, HTTP_DELETE, "/v1/sources/{name}", "source", source_delete,
         .call_size = &source_write_size),
    CALL(WRITE, HTTP_POST, "/v1/sources/{name}/scan", "source-scan", source_scan,
         .call_size = &scan_call_size, .parameters = PARAMETERS("max_removed", "dry_run")),

    CALL(READ, HTTP_GET, "/v1/checks", "checks", checks_list,
         .parameters = PARAMETERS("state", "site", "source", "after", "limit")),
    CALL(WRITE, HTTP_POST, "/v1/checks", "checks", check_poll, .call_size = &check_call_size,
         .parameters = PARAMETERS("loc")),

    CALL(READ, HTTP_GET, "/v1/crawlers", "crawlers", crawlers_list,
         .parameters = PARAMETERS("site")),
    CALL(READ, HTTP_GET, "/v1/crawlers/{name}/pages", "crawler-pages", crawler_pages,
         .parameters = PARAMETERS("index", "urlset", "stale", "after", "limit")),

    CALL(READ, HTTP_GET, "/v1/engines", "engines", engines_list, .parameters = PARAMETERS("site")),
    CALL(READ, HTTP_GET, "/v1/engines/{name}/sitemaps", "engine-sitemaps", engine_sitemaps,
         .parameters = PARAMETERS("site", "after", "limit")),

    CALL(READ, HTTP_GET, "/v1/stats", "stats", stats_get,
         .parameters = PARAMETERS("site", "from", "to", "step")),

    CALL(READ, HTTP_GET, "/v1/token", "token", token_get, .parameters = NULL),
    CALL(ADMIN, HTTP_GET, "/v1/tokens", "tokens", tokens_list,
         .parameters = PARAMETERS("after", "limit")),
    CALL(ADMIN, HTTP_DELETE, "/v1/tokens/{name}", "token-revoke", token_delete, .parameters = NULL),

    CALL(READ, HTTP_GET, "/v1/history", "history", history_list,
         .parameters =
             PARAMETERS("site", "index", "by", "loc", "since", "until", "kind", "after", "limit")),
    CALL(READ, HTTP_GET, "/v1/history/{revision}", "history-change", history_get,
         .call_size = &copy_size, .parameters = PARAMETERS("after")),
    CALL(WRITE, HTTP_POST, "/v1/history/{revision}/undo", "history-undo", history_undo,
         .parameters = PARAMETERS("on_conflict", "dry_run", "max_removed")),
    CALL(READ, HTTP_GET, "/v1/diff", "diff", diff_get, .call_size = &copy_size,
         .parameters = PARAMETERS("from", "to", "index")),
    CALL(WRITE, HTTP_POST, "/v1/restore", "restore", restore_post,
         .parameters = PARAMETERS("index", "to", "on_conflict", "dry_run", "max_removed")),

    CALL(READ, HTTP_GET, "/v1/changes", "changes", changes_get, .call_size = &changes_size,
         .parameters = PARAMETERS("since", "wait")),

    PAGE("/", console_redirect),
    PAGE("/console", console_redirect),
    PAGE("/console/", console_get),
    PAGE("/console/{file}", console_get),
};
const size_t routes_admin_count = sizeof routes_admin / sizeof routes_admin[0];
const size_t routes_api_count = sizeof routes_admin / sizeof routes_admin[0] - 4;
