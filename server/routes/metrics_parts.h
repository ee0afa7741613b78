/* The parts of /metrics, by file. All of it comes from memory: no disk, no catalogue read on the
 * HTTP thread. Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_METRICS_PARTS_H
#define SITEMAPD_ROUTES_METRICS_PARTS_H

#include "server/routes/routes.h"
#include "server/rules/str.h"

/* So many indexes and sources have series of their own, the first in their order (origin and path;
 * the configuration's); what is beyond is added up under the name "other". */
#define METRICS_MAX_INDEXES 200u
#define METRICS_MAX_SOURCES 200u

/* metrics_http.c */
void metrics_append_listeners(struct str *out, const struct app_context *app);
/* metrics_index.c */
void metrics_append_indexes(struct str *out, struct publisher *publisher);
/* metrics_source.c */
void metrics_append_sources(struct str *out, struct sources *sources);
/* metrics_config.c */
void metrics_append_config(struct str *out, const struct app_context *app);
/* metrics_process.c */
void metrics_append_process(struct str *out);

#endif
