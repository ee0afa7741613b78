/* The `check` of a sitemap that is read where it is, as the API tells it (checks.c). Internal to
 * server/api/. */
#ifndef SITEMAPD_API_HANDLERS_CHECK_JSON_H
#define SITEMAPD_API_HANDLERS_CHECK_JSON_H

#include "db/check.h"
#include "server/base/str.h"

void check_json_append(struct str *out, const struct check_record *record);

#endif
