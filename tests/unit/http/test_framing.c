/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/http/answers_world.h"

/* Where a request and its body end, and that nobody may see it otherwise. */

/* 1.0.1 counts the line of a chunk with an extension one byte short, so that no such chunk ends
 * where it should. */
#if MHD_VERSION >= 0x01000000 && MHD_VERSION < 0x01000200
#define EXTENDED_CHUNK 400
#else
#define EXTENDED_CHUNK 200
#endif

static void test_bodies(void **state)
{
    static const struct expectation all[] = {
        {"POST /take HTTP/1.1\r\n" HOST
         "Content-Type: application/json; charset=utf-8\r\nContent-Length: 5\r\n\r\nhello",
         200, false, "body=hello"},
        {"POST /take HTTP/1.1\r\n" HOST "Content-Type: Application/JSON\r\n"
         "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
         200, false, "body=hello"},
        {"POST /take HTTP/1.1\r\n" HOST "Content-Type: Application/JSON\r\n"
         "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n",
         EXTENDED_CHUNK, EXTENDED_CHUNK != 200, OURS_OR_1_0(NULL)},
        {"POST /take HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n\r\n", 411, false,
         "length-required"},
        {"POST /take HTTP/1.1\r\n" HOST
         "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
         415, true, "Content-Type must be application/json"},
        {"POST /take HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 415, false, NULL},
        /* Announced: refused before a byte of it has come. */
        {"POST /take HTTP/1.1\r\n" HOST
         "Content-Type: application/json\r\nContent-Length: 1001\r\n\r\n",
         413, true, "body-too-large"},
        /* Not announced: refused while it comes. */
        {"POST /take HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
         "Transfer-Encoding: chunked\r\n\r\n3e9\r\n"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
         "012345678901234567890123456789012\r\n",
         413, true, "body-too-large"},
        /* Who waits for 100 gets the refusal instead. */
        {"POST /take HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
         "Expect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
         413, true, NULL},
        {"GET /hello HTTP/1.1\r\n" HOST "W:\r\nX: \r\nY:\t\r\nZ:  z \r\n\r\n", 200, false, NULL},
        {"GET /hello HTTP/1.1\r\n" HOST "X:\r\n\r\n", 200, false, NULL},
        {"\r\nGET /hello HTTP/1.1\r\n" HOST "X: \t \r\n\r\n", 200, false, NULL},
        /* A body where none belongs: dropped, or refused where it is large. */
        {"GET /hello HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 200, false, "body="},
        {"GET /hello HTTP/1.1\r\n" HOST "Content-Length: 8193\r\n\r\n", 413, true, NULL},
    };
    struct listener *l = admin();
    CHECK(l, all);
    int fd = live_connect(l);
    struct answer a;
    live_text(fd, "POST /take HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
                  "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    live_read(fd, false, &a);
    assert_int_equal(a.status, 100);
    answer_done(&a);
    live_text(fd, "hello");
    live_read(fd, false, &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    close(fd);
    listener_stop(l, 1000);
}

/* RFC 9112 11.2. What libmicrohttpd lets through of it is in docs/security.md. */
static void test_smuggling(void **state)
{
#define POST "POST /take HTTP/1.1\r\nContent-Type: application/json\r\n"
    static const struct expectation all[] = {
        {POST HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400, true, NULL},
        {POST HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400, true, NULL},
        {POST HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, true,
         OURS_OR_1_0(NULL)},
        {POST HOST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         400, true, OURS_OR_1_0(NULL)},
        {POST HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400, true,
         OURS_OR_1_0(NULL)},
        {POST HOST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400, true, OURS_OR_1_0(NULL)},
        {POST HOST "Content-Length : 5\r\n\r\nhello", 400, true, OURS_OR_1_0(NULL)},
        {POST HOST " Content-Length: 5\r\n\r\nhello", 400, true, OURS_OR_1_0(NULL)},
        {"GET /hello HTTP/1.1\r\n" HOST HOST "\r\n", 400, true, NULL},
        {"GET /hello HTTP/1.1\r\n\r\n", 400, true, OURS_OR_1_0("host-missing")},
        {"GET http://other/hello HTTP/1.1\r\n" HOST "\r\n", 400, true, NULL},
        {"POST /take HTTP/1.0\r\nContent-Type: application/json\r\n"
         "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         400, true, NULL},
        {POST HOST "Content-Length:\r\n 5\r\n\r\nhello", 400, true, OURS_OR_1_0(NULL)},
        {POST HOST "Transfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n", 400, true,
         OURS_OR_1_0(NULL)},
        {"GET /hello HTTP/1.1\r\n" HOST "X: y\r\n z\r\n\r\n", 400, true,
         OURS_OR_1_0("malformed-request")},
        {"GET /hello HTTP/1.1\r\n" HOST "X:\r\n\tz\r\nY: z\r\n\r\n", 400, true, OURS_OR_1_0(NULL)},
        {"GET /hello HTTP/1.1\r\n" HOST "If-None: *\r\n -Match\r\n\r\n", 400, true,
         OURS_OR_1_0(NULL)},
        {"GET /hello HTTP/1.1\r\n" HOST ": x\r\nGET: /x HTTP/1.1\r\n" HOST "\r\n", 400, true,
         OURS_OR_1_0("malformed-request")},
        {"GET /hello HTTP/1.1\r\n" HOST ":\r\nX: y\r\n\r\n", 400, true, OURS_OR_1_0(NULL)},
        {"GET /hello HTTP/1.1\r\n" HOST ": x\r\n\r\n", 400, true, OURS_OR_1_0(NULL)},
        {"GET /hello HTTP/1.0\r\n: x\r\n\r\n", 400, true, OURS_OR_1_0(NULL)},
        {POST HOST ": x\r\nContent-Length: 5\r\n\r\nhello", 400, true, OURS_OR_1_0(NULL)},
        {POST HOST "X: y\rContent-Length: 5\r\n\r\nhello", 400, true, OURS_OR_1_0(NULL)},
        {"GET hello HTTP/1.1\r\n" HOST "\r\n", 400, true, NULL},
        {"GET /he\tllo HTTP/1.1\r\n" HOST "\r\n", 400, true, NULL},
    };
    struct listener *l = admin();
    CHECK(l, all);
    listener_stop(l, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_smuggling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
