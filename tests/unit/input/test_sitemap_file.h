/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the tests of sitemap files share: each input is verified whole, byte by byte (where it is
 * short) and in pieces, with one and the same outcome. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/str.h"
#include "server/input/sitemap_file.h"
#include "tests/unit/input/gzip.h"

#define NOW    1800000000 /* 2027-01-15T08:00:00Z */
#define NS     "http://www.sitemaps.org/schemas/sitemap/0.9"
#define OPEN   "<urlset xmlns=\"" NS "\">"
#define CLOSE  "</urlset>"
#define LOC(x) "<loc>https://example.com/" x "</loc>"
#define URL(x) "<url>" LOC(x) "</url>"
#define DECL   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

/* What files are checked by; a test may change it. */
static struct sitemap_expect verify_expect = {.now = NOW};

/* Feeds pieces of `step` bytes, 0: pieces of many sizes. */
static inline struct sitemap_file verify_cut(const char *bytes, size_t len, size_t step)
{
    struct sitemap_file out;
    struct sitemap_verifier *v = sitemap_verifier_new(&verify_expect);
    unsigned state = 12345;
    assert_non_null(v);
    for (size_t at = 0; at < len;) {
        state = state * 1103515245u + 12345u;
        size_t part = step > 0 ? step : 1 + (state >> 16) % (len < 4096 ? 40 : 40000);
        if (part > len - at)
            part = len - at;
        char *piece = malloc(part); /* so that a sanitizer sees its end */
        assert_non_null(piece);
        memcpy(piece, bytes + at, part);
        bool more = sitemap_verifier_feed(v, piece, part);
        free(piece);
        if (!more)
            break;
        at += part;
    }
    assert_true(sitemap_verifier_finish(v, &out));
    sitemap_verifier_free(v);
    return out;
}

static inline void check_equal(const char *name, const struct sitemap_file *a,
                               const struct sitemap_file *b)
{
    bool same = a->kind == b->kind && a->gzip == b->gzip && a->urls == b->urls &&
                a->bytes == b->bytes && a->hash[0] == b->hash[0] && a->hash[1] == b->hash[1] &&
                strcmp(a->newest_lastmod, b->newest_lastmod) == 0 &&
                a->one_lastmod == b->one_lastmod && a->bad_urls == b->bad_urls &&
                strcmp(a->code, b->code) == 0 && a->line == b->line && a->column == b->column &&
                strcmp(a->detail, b->detail) == 0;
    char told[2][SITEMAP_REMARKS_TEXT];
    sitemap_remarks_write(&a->remarks, told[0]);
    sitemap_remarks_write(&b->remarks, told[1]);
    if (strcmp(told[0], told[1]) != 0)
        fail_msg("%s: the remarks depend on the pieces: %s; or %s", name, told[0], told[1]);
    if (!same)
        fail_msg(
            "%s: the outcome depends on the pieces: %d %s %s %lu:%lu, %lu of %lu URLs bad, %lu "
            "bytes; or %d %s %s %lu:%lu, %lu of %lu, %lu",
            name, a->kind, a->code, a->detail, (unsigned long)a->line, (unsigned long)a->column,
            (unsigned long)a->bad_urls, (unsigned long)a->urls, (unsigned long)a->bytes, b->kind,
            b->code, b->detail, (unsigned long)b->line, (unsigned long)b->column,
            (unsigned long)b->bad_urls, (unsigned long)b->urls, (unsigned long)b->bytes);
}

/* The outcome, the same in every cut. */
static inline struct sitemap_file verify(const char *name, const char *bytes, size_t len)
{
    static const size_t steps[] = {0, 7, 1000, 16384, 65536};
    struct sitemap_file whole = verify_cut(bytes, len, len > 0 ? len : 1);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (len > 4000000 && steps[i] > 0 && steps[i] < 1000)
            continue;
        struct sitemap_file other = verify_cut(bytes, len, steps[i]);
        check_equal(name, &whole, &other);
    }
    if (len < 20000) {
        struct sitemap_file other = verify_cut(bytes, len, 1);
        check_equal(name, &whole, &other);
    }
    return whole;
}

static inline struct sitemap_file verify_text(const char *text)
{
    return verify(text, text, strlen(text));
}

/* The same for what is in `s`, which is freed. */
static inline struct sitemap_file verify_str(const char *name, struct str *s)
{
    assert_false(s->failed);
    struct sitemap_file out = verify(name, str_text(s), s->len);
    str_done(s);
    return out;
}

static inline void append_repeat(struct str *out, const char *text, size_t times)
{
    size_t len = strlen(text);
    assert_true(str_reserve(out, len * times));
    for (size_t i = 0; i < times; i++)
        str_append(out, text, len);
}
