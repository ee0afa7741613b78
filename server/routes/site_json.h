/* The site object of the API. Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_SITE_JSON_H
#define SITEMAPD_ROUTES_SITE_JSON_H

#include "db/registry.h"
#include "server/rules/str.h"

/* Appends the object. Out of memory shows in `out->failed`. */
void site_json_append(struct str *out, const struct registry_site *site);

#endif
