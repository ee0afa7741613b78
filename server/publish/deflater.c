#include "server/publish/deflater.h"

#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

/* A flush writes at most a pending bit block and the empty stored block behind it. */
#define FLUSH_ROOM 16

struct deflater {
    z_stream z;
};

struct deflater *deflater_new(int level)
{
    struct deflater *d = calloc(1, sizeof *d);
    if (d == NULL)
        return NULL;
    if (deflateInit2(&d->z, level, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(d);
        return NULL;
    }
    return d;
}

void deflater_piece(struct deflater *d, const void *raw, size_t len, struct str *out)
{
    /* A piece is at most a segment of some hundred entries, far below what zlib's counters hold. */
    if (len > UINT_MAX / 2) {
        out->failed = true;
        return;
    }
    if (deflateReset(&d->z) != Z_OK) {
        out->failed = true;
        return;
    }
    if (!str_reserve(out, deflateBound(&d->z, len) + FLUSH_ROOM))
        return;
    d->z.next_in = (z_const Bytef *)raw;
    d->z.avail_in = (uInt)len;
    do {
        if (!str_reserve(out, FLUSH_ROOM))
            return;
        size_t room = out->capacity - out->len - 1;
        if (room > UINT_MAX)
            room = UINT_MAX;
        d->z.next_out = (Bytef *)out->data + out->len;
        d->z.avail_out = (uInt)room;
        int result = deflate(&d->z, Z_SYNC_FLUSH);
        out->len += room - d->z.avail_out;
        if (result != Z_OK && result != Z_BUF_ERROR) {
            out->failed = true;
            return;
        }
    } while (d->z.avail_out == 0);
}

void deflater_free(struct deflater *d)
{
    if (d == NULL)
        return;
    deflateEnd(&d->z);
    free(d);
}
