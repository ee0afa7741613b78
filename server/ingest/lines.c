#include "server/ingest/lines.h"

#include <string.h>

void lines_init(struct lines *l, uint64_t number)
{
    l->number = number;
    l->len = 0;
    l->pending = false;
    l->cut = false;
}

static void keep(struct lines *l, const char *bytes, size_t len)
{
    size_t room = sizeof l->buffer - l->len;
    if (len > room) {
        l->cut = true;
        len = room;
    }
    if (len > 0)
        memcpy(l->buffer + l->len, bytes, len);
    l->len += len;
    l->pending = true;
}

static bool end_line(struct lines *l, lines_take *take, void *context)
{
    struct line line = {l->buffer, l->len, l->number, l->cut};
    lines_init(l, l->number + 1);
    return take(context, &line);
}

bool lines_feed(struct lines *l, const char *bytes, size_t len, lines_take *take, void *context)
{
    while (len > 0) {
        const char *newline = memchr(bytes, '\n', len);
        size_t part = newline ? (size_t)(newline - bytes) : len;
        if (!newline) {
            keep(l, bytes, part);
            return true;
        }
        if (!l->pending && part <= sizeof l->buffer) {
            /* Whole within this chunk: no copy. */
            struct line line = {bytes, part, l->number, false};
            l->number++;
            if (!take(context, &line))
                return false;
        } else {
            keep(l, bytes, part);
            if (!end_line(l, take, context))
                return false;
        }
        bytes += part + 1;
        len -= part + 1;
    }
    return true;
}

bool lines_finish(struct lines *l, lines_take *take, void *context)
{
    return l->pending ? end_line(l, take, context) : true;
}
