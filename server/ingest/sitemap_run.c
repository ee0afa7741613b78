#include "server/ingest/sitemap_run.h"

#include <string.h>

#include "server/ingest/detect.h"

bool sitemap_run_append(struct sitemap_run *run, const char *bytes, size_t len, size_t *at)
{
    size_t skip = run->len == 0 ? detect_space(bytes, len) : 0;
    size_t room = sizeof run->data - run->len;
    size_t part = len - skip < room ? len - skip : room;
    if (part > 0)
        memcpy(run->data + run->len, bytes + skip, part);
    run->len += part;
    *at = skip + part;
    *at += detect_space(bytes + *at, len - *at);
    return *at == len;
}

size_t sitemap_run_end(const struct sitemap_run *run)
{
    size_t end = run->len;
    while (end > 0 && detect_space(run->data + end - 1, 1) == 1)
        end--;
    return end;
}
