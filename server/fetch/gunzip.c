#include <string.h>
#include <zlib.h>

#include "server/fetch/fetch.h"

#define PIECE 65536u

static enum fetch_gunzip_status inflate_all(z_stream *z, uint64_t max, struct str *out)
{
    uint64_t total = 0;
    int result = Z_OK;

    while (result == Z_OK) {
        size_t got;

        if (!str_reserve(out, PIECE))
            return FETCH_GUNZIP_NO_MEMORY;
        z->next_out = (Bytef *)out->data + out->len;
        z->avail_out = PIECE;
        result = inflate(z, Z_NO_FLUSH);
        got = PIECE - z->avail_out;
        out->len += got;
        total += got;
        if (total > max)
            return FETCH_GUNZIP_TOO_LARGE;
        if (result == Z_STREAM_END && z->avail_in > 0)
            result = inflateReset(z); /* another member (RFC 1952 2.2) */
    }
    out->data[out->len] = '\0';
    return result == Z_STREAM_END ? FETCH_GUNZIP_OK : FETCH_GUNZIP_MALFORMED;
}

enum fetch_gunzip_status fetch_gunzip(const void *bytes, size_t len, uint64_t max, struct str *out)
{
    z_stream z = {.next_in = (z_const Bytef *)bytes, .avail_in = (uInt)len};
    enum fetch_gunzip_status status;

    if (len > UINT32_MAX)
        return FETCH_GUNZIP_TOO_LARGE;
    if (inflateInit2(&z, 16 + MAX_WBITS) != Z_OK)
        return FETCH_GUNZIP_NO_MEMORY;
    status = inflate_all(&z, max, out);
    inflateEnd(&z);
    return status;
}
