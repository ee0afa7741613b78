/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a client that accepts gzip reads. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

#include "server/pages/resource.h"

/* Inflates the whole gzip member: header; zlib checks checksum and length. The caller frees it. */
static inline char *gunzip(const struct resource *s)
{
    z_stream z = {.next_in = (z_const Bytef *)s->gzip, .avail_in = (uInt)s->gzip_len};
    char *out = malloc(s->raw_len + 2);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)s->raw_len + 1;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, s->raw_len);
    out[z.total_out] = '\0';
    inflateEnd(&z);
    return out;
}
