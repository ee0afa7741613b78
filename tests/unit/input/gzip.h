/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Gzip as input. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <cmocka.h>

#include "server/base/str.h"

/* Appends one gzip member that holds `text`. */
static inline void append_gzip(struct str *out, const char *text, size_t len, int level)
{
    z_stream z = {.next_in = (z_const Bytef *)text, .avail_in = (uInt)len};
    assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_true(str_reserve(out, deflateBound(&z, len) + 64));
    z.next_out = (Bytef *)out->data + out->len;
    z.avail_out = (uInt)(out->capacity - out->len);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->len += z.total_out;
    deflateEnd(&z);
}
