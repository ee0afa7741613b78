/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files that the build embeds (embed.cmake): /openapi.json, which openapi.c makes, and /console/,
 * the files of server/console/. They contain no data, so they need no token; they request data from
 * the API with the token that the user entered.
 *
 * The policy allows only scripts and styles from these files and requests to this origin, forbids
 * frames, and prevents text from becoming markup (trusted types). */
#include <string.h>

#include "server/api/handlers/handlers.h"
#include "server/rules/http/negotiate.h"

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static void add_headers(struct reply *reply)
{
    reply_header(reply, "Content-Security-Policy", policy);
    reply_header(reply, "Referrer-Policy", "no-referrer");
    reply_header(reply, "Cross-Origin-Opener-Policy", "same-origin");
    reply_header(reply, "Cross-Origin-Resource-Policy", "same-origin");
}

enum handled console_redirect(void *context, struct request *request)
{
    struct reply *reply = &request->reply;

    (void)context;
    reply->status = 308;
    reply_header(reply, "Location", "/console/");
    reply_header(reply, "Cache-Control", "no-cache");
    add_headers(reply);
    return HANDLED;
}

enum handled openapi_get(void *context, struct request *request)
{
    (void)context;
    str_append(&request->reply.body, openapi_files[0].bytes, openapi_files[0].len);
    reply_json(&request->reply, 200);
    return HANDLED;
}

static const struct embedded_file *find_file(const char *name)
{
    for (size_t i = 0; i < console_files_count; i++)
        if (strcmp(console_files[i].name, name) == 0)
            return &console_files[i];
    return NULL;
}

static const char *type_of(const char *name)
{
    const char *end = strrchr(name, '.');

    if (strcmp(end, ".js") == 0)
        return "text/javascript; charset=utf-8";
    return strcmp(end, ".css") == 0 ? "text/css; charset=utf-8" : "text/html; charset=utf-8";
}

enum handled console_get(void *context, struct request *request)
{
    const char *name = request->path_tail != NULL ? request->path_tail : "index.html";
    const struct embedded_file *file = find_file(name);
    struct reply *reply = &request->reply;

    (void)context;
    if (file == NULL) {
        reply_problem(reply, 404, "not-found", NULL, "not found: there is nothing at this path");
        return HANDLED;
    }
    if (negotiate_none_match(request_header(request, HEADER_IF_NONE_MATCH), file->etag, false)) {
        reply->status = 304;
    } else {
        reply->status = 200;
        reply->content_type = type_of(name);
        str_append(&reply->body, file->bytes, file->len);
    }
    reply_header(reply, "Cache-Control", "no-cache"); /* so that an upgrade takes effect at once */
    reply_header(reply, "ETag", file->etag);
    add_headers(reply);
    return HANDLED;
}
