#include "server/http/status.h"

#include <string.h>

static const struct {
    unsigned status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {304, "Not Modified"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *status_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

static const struct {
    enum http_method method;
    const char *name;
} methods[] = {
    {HTTP_GET, "GET"},     {HTTP_HEAD, "HEAD"},     {HTTP_POST, "POST"},       {HTTP_PUT, "PUT"},
    {HTTP_PATCH, "PATCH"}, {HTTP_DELETE, "DELETE"}, {HTTP_OPTIONS, "OPTIONS"},
};
#define METHOD_COUNT (sizeof methods / sizeof methods[0])

enum http_method method_parse(const char *text)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (strcmp(methods[i].name, text) == 0)
            return methods[i].method;
    return HTTP_OTHER;
}

const char *method_name(enum http_method method)
{
    for (size_t i = 0; i < METHOD_COUNT; i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "-";
}

void method_allow(unsigned set, char out[METHOD_ALLOW_SIZE])
{
    char *end = out;

    if ((set & HTTP_GET) != 0)
        set |= HTTP_HEAD;
    set |= HTTP_OPTIONS;
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if ((set & methods[i].method) == 0)
            continue;
        if (end != out)
            end = stpcpy(end, ", ");
        end = stpcpy(end, methods[i].name);
    }
}
