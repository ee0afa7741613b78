/* The settings of a source as the API tells them, of either kind, and whose site's it is. Internal
 * to server/api/. */
#ifndef SITEMAPD_API_HANDLERS_SOURCE_JSON_H
#define SITEMAPD_API_HANDLERS_SOURCE_JSON_H

#include "db/registry.h"
#include "server/base/str.h"

struct remote_settings;
struct source_settings;

/* The site of a folder's URL; of an upstream the one that it is held to, else that of its index,
 * else the one whose its host is. NULL: none. */
const struct registry_site *source_site_of_folder(const struct registry *registry,
                                                  const struct source_settings *settings);
const struct registry_site *source_site_of_remote(const struct registry *registry,
                                                  const struct remote_settings *settings);

/* Append the object's settings; it stays open, without a comma. Times are in seconds. */
void source_json_begin_folder(struct str *out, const struct source_settings *settings,
                              const struct registry *registry);
void source_json_begin_remote(struct str *out, const struct remote_settings *settings,
                              const struct registry *registry);
/* The same of one as the catalogue keeps it. */
void source_json_begin_made(struct str *out, const struct source_made *made,
                            const struct registry *registry);

#endif
