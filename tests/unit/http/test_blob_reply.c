/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/http/reply.h"
#include "tests/unit/http/held_world.h"

/* Served files, as they go over the wire. */

#define SIZE     1000
#define GZ_SIZE  300
#define MODIFIED 1000000000
#define DATE     "Sun, 09 Sep 2001 01:46:40 GMT"

static struct resource *current;
/* What is in the buffers is not looked at: any bytes do. */
static struct resource *make(size_t size, size_t gzip_size)
{
    struct resource *b = resource_new(HELD_FILE);
    uint8_t *bytes = malloc(size + 1), *gzip = gzip_size > 0 ? malloc(gzip_size) : NULL;

    assert_non_null(b);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t i = 0; i < gzip_size; i++)
        gzip[i] = (uint8_t)(i * 3 + 1);
    b->bytes = bytes;
    b->raw_len = size;
    b->gzip = gzip;
    b->gzip_len = gzip_size;
    if (gzip_size == 0)
        b->content_type = "application/gzip";
    strcpy(b->etag_identity, "\"id\"");
    strcpy(b->etag_gzip, "\"gz\"");
    b->changed_at = MODIFIED;
    resource_count(b, count_released, NULL);
    return b;
}

static enum handled serve(void *context, struct request *request)
{
    (void)context;
    resource_ref(current);
    static const struct cache_fields cache = {.cache_control = "public, max-age=300"};
    resource_reply(request, current, false, &cache);
    return HANDLED;
}

static const struct route route = {
    .methods = HTTP_GET, .label = "file", .asks_to_wait = true, .finish = serve};

static void ask(const struct listener *l, const char *method, const char *headers, struct answer *a)
{
    char text[500];

    snprintf(text, sizeof text, "%s /f HTTP/1.1\r\nHost: a\r\n%s\r\n", method, headers);
    live_ask(l, text, a, NULL);
}

/* The whole head but its Date. */
static void golden(const struct answer *a, const char *expected)
{
    char text[HEAD_SIZE];

    head_without_date(a, text);
    assert_string_equal(text, expected);
}

#define TYPE "Content-Type: application/xml; charset=utf-8\r\n"
#define VALIDATORS(etag)                                                                           \
    "ETag: \"" etag "\"\r\nLast-Modified: " DATE "\r\nVary: Accept-Encoding\r\n"                   \
    "Cache-Control: public, max-age=300\r\n"
#define ADVICE                                                                                     \
    "X-Content-Type-Options: nosniff\r\nX-Robots-Tag: noindex\r\nAccept-Ranges: bytes\r\n"         \
    "Content-Security-Policy: script-src 'none'\r\n"
#define COMMON "Cache-Control: public, max-age=300\r\n" ADVICE
#define PLAIN  TYPE VALIDATORS("id") ADVICE
#define GZIP   TYPE "Content-Encoding: gzip\r\n" VALIDATORS("gz") ADVICE
#define OK     "HTTP/1.1 200 OK\r\n"
#define PART   "HTTP/1.1 206 Partial Content\r\n"
#define SAME   "HTTP/1.1 304 Not Modified\r\n"
#if NOT_MODIFIED_HAS_LENGTH
#define LENGTH(of) "Content-Length: " of "\r\n"
#else
#define LENGTH(of) ""
#endif
#define ENCODING "Accept-Encoding: gzip\r\n"

static void test_exact_headers(void **state)
{
    static const struct {
        const char *method, *headers, *expected;
    } rows[] = {
        {"GET", "", OK PLAIN "Content-Length: 1000\r\n\r\n"},
        {"HEAD", "", OK PLAIN "Content-Length: 1000\r\n\r\n"},
        {"GET", ENCODING, OK GZIP "Content-Length: 300\r\n\r\n"},
        {"HEAD", ENCODING, OK GZIP "Content-Length: 300\r\n\r\n"},
        {"GET", "Range: bytes=10-19\r\n",
         PART PLAIN "Content-Range: bytes 10-19/1000\r\nContent-Length: 10\r\n\r\n"},
        {"GET", "Range: bytes=-10\r\n" ENCODING,
         PART GZIP "Content-Range: bytes 290-299/300\r\nContent-Length: 10\r\n\r\n"},
        {"HEAD", "Range: bytes=10-19\r\n", OK PLAIN "Content-Length: 1000\r\n\r\n"},
        /* RFC 9110 15.4.5: the validators alone. */
        {"GET", "If-None-Match: \"id\"\r\n", SAME VALIDATORS("id") LENGTH("1000") "\r\n"},
        {"HEAD", "If-None-Match: \"x\", W/\"gz\"\r\n" ENCODING,
         SAME VALIDATORS("gz") LENGTH("300") "\r\n"},
        {"GET", "If-None-Match: \"id\"\r\nRange: bytes=10-19\r\n",
         SAME VALIDATORS("id") LENGTH("1000") "\r\n"},
        {"GET", "Range: bytes=1000-\r\n",
         "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Type: text/plain; charset=utf-8\r\n"
         "Cache-Control: no-store\r\nContent-Range: bytes */1000\r\nAccept-Ranges: bytes\r\n"
         "X-Content-Type-Options: nosniff\r\nContent-Length: 22\r\n\r\n"},
    };
    current = make(SIZE, GZ_SIZE);
    struct listener *l = start_with(&route, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer a;
        ask(l, rows[i].method, rows[i].headers, &a);
        golden(&a, rows[i].expected);
        answer_done(&a);
    }
    listener_stop(l, 2000);
    atomic_store(&released, 0);
    resource_unref(current);
    assert_int_equal(atomic_load(&released), SIZE + GZ_SIZE);
}

/* A .gz file: no Content-Encoding, nothing to negotiate. And one without a date. */
static void test_one_representation(void **state)
{
    struct answer a;
    current = make(SIZE, 0);
    struct listener *l = start_with(&route, NULL);
    ask(l, "GET", ENCODING, &a);
    golden(&a, OK "Content-Type: application/gzip\r\nETag: \"id\"\r\nLast-Modified: " DATE
                  "\r\n" COMMON "Content-Length: 1000\r\n\r\n");
    assert_memory_equal(a.body, current->bytes, SIZE);
    answer_done(&a);
    current->changed_at = 0;
    ask(l, "GET", "If-Modified-Since: " DATE "\r\n", &a);
    golden(&a, OK "Content-Type: application/gzip\r\nETag: \"id\"\r\n" COMMON
                  "Content-Length: 1000\r\n\r\n");
    answer_done(&a);
    listener_stop(l, 2000);
    resource_unref(current);
}

static void test_parts_and_conditions(void **state)
{
    static const struct {
        const char *headers;
        unsigned status;
        size_t first, len;
    } rows[] = {
        {"", 200, 0, SIZE},
        {"Range: bytes=0-0\r\n", 206, 0, 1},
        {"Range: bytes=999-\r\n", 206, 999, 1},
        {"Range: bytes=0-\r\n", 206, 0, SIZE},
        {"Range: bytes=500-5000\r\n", 206, 500, 500},
        {"Range: bytes=-5000\r\n", 206, 0, SIZE},
        {"Range: bytes=0-1,5-6\r\n", 200, 0, SIZE},
        {"Range: bytes=6-5\r\n", 200, 0, SIZE},
        {"Range: lines=1-2\r\n", 200, 0, SIZE},
        {"Range: bytes=1-2\r\nIf-Range: \"id\"\r\n", 206, 1, 2},
        {"Range: bytes=1-2\r\nIf-Range: W/\"id\"\r\n", 200, 0, SIZE},
        {"Range: bytes=1-2\r\nIf-Range: \"gz\"\r\n", 200, 0, SIZE},
        {"Range: bytes=1-2\r\nIf-Range: " DATE "\r\n", 206, 1, 2},
        {"Range: bytes=1-2\r\nIf-Range: Sun, 09 Sep 2001 01:46:41 GMT\r\n", 200, 0, SIZE},
        {"Range: bytes=5000-\r\nIf-Range: \"old\"\r\n", 200, 0, SIZE},
        {"If-Range: \"old\"\r\n", 200, 0, SIZE},
        {"If-None-Match: \"x\"\r\nRange: bytes=1-2\r\n", 206, 1, 2},
        {"If-Modified-Since: " DATE "\r\n", 304, 0, 0},
        {"If-Modified-Since: Sun, 09 Sep 2001 01:46:39 GMT\r\n", 200, 0, SIZE},
        {"If-None-Match: \"x\"\r\nIf-Modified-Since: " DATE "\r\n", 200, 0, SIZE},
        {"Accept-Encoding: gzip;q=0\r\n", 200, 0, SIZE},
    };
    current = make(SIZE, GZ_SIZE);
    struct listener *l = start_with(&route, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer a;
        ask(l, "GET", rows[i].headers, &a);
        if (a.status != rows[i].status || a.len != rows[i].len)
            fail_msg("%s: %u, %zu bytes", rows[i].headers, a.status, a.len);
        assert_memory_equal(a.body, current->bytes + rows[i].first, rows[i].len);
        answer_done(&a);
    }
    /* Two versions bear that date: only the tag differs. */
    atomic_store(&current->same_second, true);
    struct answer a;
    ask(l, "GET", "If-Modified-Since: " DATE "\r\n", &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    ask(l, "GET", "Range: bytes=1-2\r\nIf-Range: " DATE "\r\n", &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    listener_stop(l, 2000);
    resource_unref(current);
}

static void test_empty_file(void **state)
{
    struct answer a;
    current = make(0, 0);
    struct listener *l = start_with(&route, NULL);
    ask(l, "GET", "", &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(a.len, 0);
    answer_done(&a);
    ask(l, "GET", "Range: bytes=0-\r\n", &a);
    assert_int_equal(a.status, 416);
    answer_done(&a);
    ask(l, "GET", "Range: bytes=-1\r\n", &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    listener_stop(l, 2000);
    resource_unref(current);
}

/* The cache drops the file while a slow reader has part of it. */
static void test_retired_while_read(void **state)
{
    size_t size = 30000000, got = 0;
    current = make(size, 0);
    uint8_t *copy = malloc(size), *body = malloc(size);
    memcpy(copy, current->bytes, size);
    struct listener *l = start_with(&route, NULL);
    int fd = live_connect(l);
    char head[4000] = "", byte;
    size_t n = 0;

    live_text(fd, "GET /f HTTP/1.1\r\nHost: a\r\nRange: bytes=1000000-\r\n\r\n");
    assert_true(live_byte(fd, &byte));
    atomic_store(&released, 0);
    resource_unref(current);
    assert_int_equal(atomic_load(&released), 0);
    head[n++] = byte;
    while (n + 1 < sizeof head && strstr(head, "\r\n\r\n") == NULL && live_byte(fd, head + n))
        n++;
    while (got < size - 1000000) {
        ssize_t k = recv(fd, body + got, size - got, 0);
        assert_true(k > 0);
        got += (size_t)k;
    }
    assert_int_equal(got, size - 1000000);
    assert_memory_equal(body, copy + 1000000, got);
    await_released(size);
    close(fd);
    listener_stop(l, 2000);
    free(copy);
    free(body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_headers),        cmocka_unit_test(test_one_representation),
        cmocka_unit_test(test_parts_and_conditions), cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_retired_while_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
