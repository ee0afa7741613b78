/* /openapi.json: the document that stands beside this file, embedded by the build (embed.cmake). */
#include "server/api/handlers/handlers.h"

#include "server/api/call.h"

enum handled openapi_get(void *context, struct request *request)
{
    (void)context;
    str_append(&request->reply.body, openapi_files[0].bytes, openapi_files[0].len);
    reply_json(&request->reply, 200);
    return HANDLED;
}
