/* The files of sources with `serve = yes`, on the public listener. */
#ifndef SITEMAPD_ROUTES_FILES_H
#define SITEMAPD_ROUTES_FILES_H

#include "server/routes/routes.h"

/* Answers a path that nothing else of the site has: with a file of a source, or 404. `origin` is
 * the site's, borrowed for the call. */
enum handled files_get(struct app_context *app, struct request *request, const char *origin);

#endif
