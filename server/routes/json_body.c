#include "server/routes/json_body.h"

#include "server/routes/errors.h"

struct json_fields *json_body_read(struct request *request, uint64_t max_bytes,
                                   struct json_field *fields, size_t count)
{
    struct json_fields_error error;
    struct json_fields *object = NULL;
    struct reply *reply = &request->reply;

    if (request->body.len > max_bytes) {
        reply_problem(reply, 413, "body-too-large", NULL,
                      "the body is larger than this server takes (max_body_bytes)");
        return NULL;
    }
    switch (json_fields_read(str_text(&request->body), request->body.len, fields, count, &object,
                             &error)) {
    case JSON_FIELDS_OK:
        break;
    case JSON_FIELDS_MALFORMED:
        errors_reply_rule(reply, RULE_JSON, NULL, error.detail);
        break;
    case JSON_FIELDS_UNKNOWN:
        errors_reply_rule(reply, RULE_FIELD_UNKNOWN, error.field, NULL);
        break;
    case JSON_FIELDS_WRONG_TYPE:
        errors_reply_rule(reply, RULE_FIELD_TYPE, error.field, error.detail);
        break;
    case JSON_FIELDS_MISSING:
        reply_problem(reply, 422, "missing-field", error.field, "this field is needed");
        break;
    case JSON_FIELDS_NO_MEMORY:
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
        break;
    }
    return object;
}
