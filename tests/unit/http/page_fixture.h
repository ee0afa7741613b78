/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Pages of any bytes and a listener that serves the current one, for the tests of prebuilt pages.
 */
#pragma once

#include <zlib.h>

#include "server/http/reply.h"
#include "tests/unit/http/held_world.h"

static struct readers readers;
#define CACHE_CONTROL "public, max-age=300"
static const struct cache_fields cache_fields = {.cache_control = CACHE_CONTROL};
static struct resource *current;

static inline char *make_xml(size_t size)
{
    char *xml = malloc(size + 1);
    uint32_t x = 7;

    assert_non_null(xml);
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        xml[i] = (char)(' ' + (x >> 24) % 90);
    }
    xml[size] = '\0';
    return xml;
}

static inline struct resource *make(const char *xml, size_t size, int64_t changed_at)
{
    struct resource *s = resource_new(HELD_PAGE);
    uLong bound = compressBound(size) + 100;
    uint8_t *gzip = malloc(bound);
    z_stream z = {.next_in = (z_const Bytef *)xml,
                  .avail_in = (uInt)size,
                  .next_out = gzip,
                  .avail_out = (uInt)bound};

    assert_non_null(s);
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    s->gzip = gzip;
    s->gzip_len = z.total_out;
    deflateEnd(&z);
    s->raw_len = size;
    s->entries = 1;
    s->changed_at = changed_at;
    strcpy(s->etag_gzip, "\"gz\"");
    strcpy(s->etag_identity, "\"id\"");
    strcpy(s->etag_file, "\"file\"");
    resource_count(s, count_released, NULL);
    assert_true(page_response_attach((void *)&cache_fields, s));
    return s;
}

static inline enum handled serve(void *context, struct request *request)
{
    static const char *const names[] = {"/identity", "/gzip", "/file"};

    (void)context;
    resource_ref(current);
    request->reply.resource = current;
    request->reply.cache = &cache_fields;
    request->reply.status = request_header(request, HEADER_IF_NONE_MATCH) == NULL ? 200 : 304;
    for (int i = 0; i < 3; i++)
        if (strcmp(request->path, names[i]) == 0)
            request->reply.represent = (enum representation)i;
    request->reply.len =
        request->reply.represent == REPRESENT_IDENTITY ? current->raw_len : current->gzip_len;
    return HANDLED;
}

static const struct route route = {
    .methods = HTTP_GET, .label = "page", .asks_to_wait = true, .finish = serve};

static inline struct listener *start(void)
{
    return start_with(&route, &readers);
}
