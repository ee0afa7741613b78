/* The index object of the API, with its pages. Internal to server/routes/. */
#ifndef SITEMAPD_ROUTES_INDEX_JSON_H
#define SITEMAPD_ROUTES_INDEX_JSON_H

#include "server/routes/call.h"

/* Appends the object to the reply's body. `view` NULL: an index just made, which has no pages. On a
 * status that is not OK the body is not to be used. */
enum catalogue_status index_json_append(struct call *call, struct catalogue_view *view,
                                        const struct registry_site *site,
                                        const struct registry_index *index);

/* Appends the JSON string of a URL. */
void index_json_append_url(struct str *out, const char *origin, const char *path);

#endif
