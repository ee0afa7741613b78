#include "server/http/route_match.h"

#include <string.h>

/* True where `path` fits `pattern`; a {…} takes one segment that is not empty. */
static bool fits(const char *pattern, const char *path, const char **tail, size_t *tail_len)
{
    const char *open = strchr(pattern, '{');

    *tail = NULL;
    *tail_len = 0;
    if (open == NULL)
        return strcmp(pattern, path) == 0;
    size_t head = (size_t)(open - pattern);
    if (strncmp(pattern, path, head) != 0)
        return false;
    const char *rest = strchr(open, '}') + 1;
    size_t len = strcspn(path + head, "/");
    if (len == 0 || strcmp(path + head + len, rest) != 0)
        return false;
    *tail = path + head;
    *tail_len = len;
    return true;
}

static bool takes(const struct route *route, enum http_method method)
{
    unsigned methods = route->methods;

    if ((methods & HTTP_GET) != 0)
        methods |= HTTP_HEAD;
    return (methods & method) != 0;
}

static void consider(const struct route *route, size_t index, enum http_method method,
                     const char *tail, size_t tail_len, struct route_match *out)
{
    if (out->allowed == 0)
        out->index = index;
    out->allowed |= route->methods;
    if (out->route == NULL && takes(route, method)) {
        out->route = route;
        out->index = index;
        out->tail = tail;
        out->tail_len = tail_len;
    }
}

void route_match(const struct route *routes, size_t count, const struct route *fallback,
                 const char *path, enum http_method method, struct route_match *out)
{
    *out = (struct route_match){.index = count};
    for (int variable = 0; variable <= 1 && out->allowed == 0; variable++) {
        for (size_t i = 0; i < count; i++) {
            const char *tail;
            size_t tail_len;
            if ((strchr(routes[i].path, '{') != NULL) == (variable == 1) &&
                fits(routes[i].path, path, &tail, &tail_len))
                consider(&routes[i], i, method, tail, tail_len, out);
        }
    }
    if (out->allowed == 0 && fallback != NULL)
        consider(fallback, count, method, NULL, 0, out);
}
