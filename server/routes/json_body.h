/* The body of a call as a small JSON object; what is wrong with it becomes the reply. Internal to
 * server/routes/. */
#ifndef SITEMAPD_ROUTES_JSON_BODY_H
#define SITEMAPD_ROUTES_JSON_BODY_H

#include "server/http/request.h"
#include "server/ingest/json_fields.h"

/* Reads request->body, an object with these fields and no others. NULL where the reply is filled
 * instead: 413, 400 for what is no JSON object, 422 for a field. The values live until
 * json_fields_free. */
struct json_fields *json_body_read(struct request *request, uint64_t max_bytes,
                                   struct json_field *fields, size_t count);

#endif
