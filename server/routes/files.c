#include "server/routes/files.h"

#include <string.h>

#include "server/http/blob_reply.h"
#include "server/publish/blob_cache.h"
#include "server/sources/sources.h"

/* What is served is what lies in the folder, whether its source holds it for a good sitemap or not:
 * crawlers see what the operator put there. Pages, robots.txt and aliases come first, so a file can
 * never take an index's place. */

#define RETRY_AFTER_SECONDS "5"

static void reply_busy(struct reply *reply)
{
    reply_text(reply, 503, "Service Unavailable");
    reply_header(reply, "Retry-After", RETRY_AFTER_SECONDS);
}

static void file_arrived(void *context, enum blob_result result, struct blob *blob)
{
    struct request *request = context;
    const struct app_context *app = request->state;

    request->state = NULL;
    switch (result) {
    case BLOB_FOUND:
        blob_reply(request, blob, app->cache_control);
        break;
    case BLOB_NONE:
        reply_text(&request->reply, 404, "Not Found");
        break;
    case BLOB_BUSY:
        reply_busy(&request->reply);
        break;
    }
    request_resume(request);
}

/* With a query it is no file: children such as /sitemap.xml?page=1 are made by a program. Nor is
 * robots.txt, which would answer 503 here at times: crawlers take that for "disallow everything".
 */
static bool is_file(const struct app_context *app, const struct request *request,
                    const char *origin, size_t *source, char *path)
{
    return app->files != NULL && origin != NULL && request->query == NULL &&
           strcmp(request->path, "/robots.txt") != 0 &&
           app->files_match(app->sources, origin, request->path, source, path);
}

enum handled files_get(struct app_context *app, struct request *request, const char *origin)
{
    char path[SOURCE_MAX_PATH_BYTES + 1];
    size_t source;

    if (!is_file(app, request, origin, &source, path)) {
        reply_text(&request->reply, 404, "Not Found");
        return HANDLED;
    }
    struct blob *blob = blob_cache_get(app->files, source, path);
    if (blob != NULL) {
        blob_reply(request, blob, app->cache_control);
        return HANDLED;
    }
    if (!request_may_wait(request)) {
        reply_busy(&request->reply);
        return HANDLED;
    }
    request->state = app;
    blob_cache_await(app->files, source, path, file_arrived, request);
    return HANDLE_LATER;
}
