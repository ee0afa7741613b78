/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The listener's own: a header whose lines cannot be joined, and the replies of a page. */
#include "server/http/reply.h"
#include "server/http/request.h"
#include "tests/unit/alloc/alloc.h"

static const char *join(struct header_scan *scan)
{
    header_scan_add(scan, "If-Match", 8, "\"a\"", 3);
    header_scan_add(scan, "If-Match", 8, "\"b\"", 3);
    header_scan_add(scan, "if-match", 8, "\"c\"", 3);
    return header_scan_value(scan, HEADER_IF_MATCH);
}

/* A list of which a part is lost would let a write through that its client wanted stopped. */
static bool join_once(void *context)
{
    struct header_scan scan = {.failed = false};
    const char *list = join(&scan);

    (void)context;
    if (scan.failed)
        assert_null(list);
    else
        assert_string_equal(list, "\"a\", \"b\", \"c\"");
    assert_false(scan.malformed);
    bool good = !scan.failed;
    header_scan_done(&scan);
    return good;
}

static void test_header_lines(void **state)
{
    alloc_sweep("header lines", join_once, NULL);
}

static bool attach_once(void *context)
{
    struct resource *s = resource_new(HELD_PAGE);

    if (s == NULL)
        return false;
    s->gzip = malloc(100);
    s->gzip_len = s->gzip == NULL ? 0 : 100;
    s->raw_len = 1000;
    strcpy(s->etag_gzip, "\"gz\"");
    strcpy(s->etag_identity, "\"id\"");
    strcpy(s->etag_file, "\"file\"");
    bool good = s->gzip != NULL && page_response_attach(context, s);
    assert_true(good || s->attachment == NULL);
    resource_unref(s);
    return good;
}

static void test_replies_of_a_page(void **state)
{
    struct cache_fields cache = {
        .cache_control = "public", .cdn_cache_control = "max-age=60", .tag = "Cache-Tag"};
    alloc_sweep("replies of a page", attach_once, &cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_lines),
        cmocka_unit_test(test_replies_of_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
