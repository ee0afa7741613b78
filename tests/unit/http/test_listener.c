#include <microhttpd.h>

#include "tests/unit/http/live.h"

/* Every answer that the listener gives by itself, over loopback. */

static enum handled hello(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    request->reply.content_type = "text/plain";
    str_append_format(&request->reply.body, "path=%s query=%s tail=%s host=%s peer=%s body=%s",
                      request->path, request->query == NULL ? "-" : request->query,
                      request->path_tail == NULL ? "-" : request->path_tail,
                      request->host == NULL ? "-" : request->host, request->peer,
                      str_text(&request->body));
    return HANDLED;
}

static const char *const json_only[] = {"application/json", NULL};
static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/hello", .label = "hello", .finish = hello},
    {.methods = HTTP_POST,
     .path = "/take",
     .label = "take",
     .max_body_bytes = 1000,
     .content_types = json_only,
     .finish = hello},
    {.methods = HTTP_GET | HTTP_DELETE, .path = "/v1/x/{id}", .label = "x", .finish = hello},
    {.methods = HTTP_GET, .path = "/secret", .label = "x", .authorised = true, .finish = hello},
};
#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static bool refuse_all(void *context, struct request *request)
{
    (void)context;
    reply_problem(&request->reply, 401, "unauthorised", NULL, "no");
    reply_header(&request->reply, "WWW-Authenticate", "Bearer");
    return false;
}

static struct listener *admin(void)
{
    struct listener_options options = live_options(routes, ROUTE_COUNT);
    options.check_host = true;
    options.authorise = refuse_all;
    return live_start(&options);
}

#define HOST "Host: 127.0.0.1:1\r\n"

/* From 1.0 on libmicrohttpd refuses some things itself, with a page of its own. */
#define PAGE_1_0 "<html>"
#if MHD_VERSION >= 0x01000000
#define OURS_OR_1_0(text) PAGE_1_0
#else
#define OURS_OR_1_0(text) text
#endif

struct expectation {
    const char *request;
    unsigned status;
    bool ends;
    const char *contains; /* in head or body; NULL: anything */
};

static void check(const struct listener *l, const struct expectation *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct answer a;
        bool ended;
        live_ask(l, all[i].request, &a, &ended);
        if (a.status != all[i].status || ended != all[i].ends ||
            (all[i].contains != NULL && strstr(a.head, all[i].contains) == NULL &&
             strstr(a.body == NULL ? "" : a.body, all[i].contains) == NULL))
            fail_msg("%s\nanswered (ended %d)\n%s%s", all[i].request, ended, a.head,
                     a.body == NULL ? "" : a.body);
        char cache[512];
        if (a.status >= 400 && (all[i].contains == NULL || strcmp(all[i].contains, PAGE_1_0) != 0))
            assert_string_equal(answer_header(&a, "Cache-Control", cache), "no-store");
        answer_done(&a);
    }
}
#define CHECK(l, all) check(l, all, sizeof(all) / sizeof(all)[0])

static void test_statuses(void **state)
{
    static const struct expectation all[] = {
        {"GET /hello?a=b%20&c+d HTTP/1.1\r\n" HOST "\r\n", 200, false,
         "path=/hello query=a=b%20&c+d tail=-"},
        {"GET /hello? HTTP/1.1\r\n" HOST "\r\n", 200, false, "query= tail"},
        {"GET /v1/x/a%2Fb HTTP/1.1\r\n" HOST "\r\n", 200, false, "tail=a/b"},
        {"GET /v1/x/a%2 HTTP/1.1\r\n" HOST "\r\n", 400, false, "malformed-request"},
        {"GET /v1/x/ HTTP/1.1\r\n" HOST "\r\n", 404, false, "\"code\":\"not-found\""},
        {"HEAD /hello HTTP/1.1\r\n" HOST "\r\n", 200, false, "Content-Length: 64"},
        {"GET /nope HTTP/1.1\r\n" HOST "\r\n", 404, false,
         "Content-Type: application/problem+json"},
        {"BREW /hello HTTP/1.1\r\n" HOST "\r\n", 501, false, "method-unknown"},
        {"get /hello HTTP/1.1\r\n" HOST "\r\n", 501, false, NULL},
        {"POST /hello HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 405, false,
         "Allow: GET, HEAD, OPTIONS\r\n"},
        {"PUT /v1/x/1 HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 405, false,
         "Allow: GET, HEAD, DELETE, OPTIONS\r\n"},
        {"OPTIONS /take HTTP/1.1\r\n" HOST "\r\n", 204, false, "Allow: POST, OPTIONS\r\n"},
        {"OPTIONS /nope HTTP/1.1\r\n" HOST "\r\n", 404, false, NULL},
        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 204, false, "Allow: GET, HEAD, POST"},
        {"GET * HTTP/1.1\r\n" HOST "\r\n", 400, true, NULL},
        {"GET /secret HTTP/1.1\r\n" HOST "\r\n", 401, false, "WWW-Authenticate: Bearer"},
        {"GET /hello HTTP/1.0\r\n\r\n", 200, true, "host=-"},
        {"GET http://127.0.0.1:1/hello?x HTTP/1.1\r\n" HOST "\r\n", 200, false,
         "path=/hello query=x"},
        {"GET http://127.0.0.1:1 HTTP/1.1\r\n" HOST "\r\n", 404, false, NULL},
        {"GET http://127.0.0.1/hello HTTP/1.0\r\n\r\n", 200, true, "host=127.0.0.1 "},
        {"GET http://evil.example/hello HTTP/1.0\r\n\r\n", 421, true, NULL},
    };
    (void)state;
    struct listener *l = admin();
    CHECK(l, all);
    listener_stop(l, 1000);
}

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
         415, true, "content-type-not-supported"},
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
        /* A body where none belongs: dropped, or refused where it is large. */
        {"GET /hello HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 200, false, "body="},
        {"GET /hello HTTP/1.1\r\n" HOST "Content-Length: 8193\r\n\r\n", 413, true, NULL},
    };
    (void)state;
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

/* RFC 9112 11.2. What libmicrohttpd lets through of it stands in docs/security.md. */
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
        {POST HOST "X: y\rContent-Length: 5\r\n\r\nhello", 400, true, OURS_OR_1_0(NULL)},
        {"GET hello HTTP/1.1\r\n" HOST "\r\n", 400, true, NULL},
        {"GET /he\tllo HTTP/1.1\r\n" HOST "\r\n", 400, true, NULL},
    };
    (void)state;
    struct listener *l = admin();
    CHECK(l, all);
    listener_stop(l, 1000);
}

static void test_hosts(void **state)
{
    static const struct expectation all[] = {
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, false, NULL},
        {"GET /hello HTTP/1.1\r\nHost: LOCALHOST:8081\r\n\r\n", 200, false, NULL},
        {"GET /hello HTTP/1.1\r\nHost: [::1]:8081\r\n\r\n", 200, false, NULL},
        {"GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, false, "host-not-allowed"},
        {"GET /hello HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 421, false, NULL},
        {"GET /hello HTTP/1.1\r\nHost: localhost:x\r\n\r\n", 400, true, "malformed-request"},
        {"GET /hello HTTP/1.1\r\nHost: \r\n\r\n", 421, false, NULL},
        /* Nobody is a proxy here. */
        {"GET /hello HTTP/1.1\r\n" HOST "X-Forwarded-Host: a.example\r\n\r\n", 200, false,
         "host=127.0.0.1:1 "},
    };
    (void)state;
    struct listener *l = admin();
    CHECK(l, all);
    listener_stop(l, 1000);

    static const char *const proxies[] = {"10.0.0.1", "127.0.0.0/8"};
    struct listener_options options = live_options(routes, ROUTE_COUNT);
    options.trusted_proxy_count = 2;
    options.trusted_proxies = proxies;
    l = live_start(&options);
    static const struct expectation proxied[] = {
        {"GET /hello HTTP/1.1\r\n" HOST "X-Forwarded-Host: forged, a.example\r\n\r\n", 200, false,
         "host=a.example peer=127.0.0.1"},
    };
    CHECK(l, proxied);
    listener_stop(l, 1000);
}

static void test_too_long(void **state)
{
    (void)state;
    struct listener *l = admin();
    const size_t sizes[] = {9000, 15000, 60000};
    for (size_t i = 0; i < 3; i++) {
        for (int header = 0; header <= 1; header++) {
            char *text = calloc(1, sizes[i] + 200), *end = text;
            struct answer a;
            end = stpcpy(end, header ? "GET /hello HTTP/1.1\r\n" HOST "X: " : "GET /");
            memset(end, 'a', sizes[i]);
            stpcpy(end + sizes[i], header ? "\r\n\r\n" : " HTTP/1.1\r\n" HOST "\r\n");
            live_ask(l, text, &a, NULL);
            assert_int_equal(a.status, !header ? 414 : sizes[i] > 16000 ? 431 : 200);
            answer_done(&a);
            free(text);
        }
    }
    listener_stop(l, 1000);
}

static void test_public_errors_are_text(void **state)
{
    (void)state;
    struct listener_options options = live_options(routes, ROUTE_COUNT);
    options.problem_json = false;
    struct listener *l = live_start(&options);
    struct answer a;
    char text[512];
    live_ask(l, "GET /nope HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
    assert_int_equal(a.status, 404);
    assert_string_equal(a.body, "Not Found\n");
    assert_string_equal(answer_header(&a, "Content-Type", text), "text/plain; charset=utf-8");
    assert_string_equal(answer_header(&a, "X-Content-Type-Options", text), "nosniff");
    answer_done(&a);
    listener_stop(l, 1000);
}

static void sum(void *context, const char *route, unsigned status, uint64_t count)
{
    char line[64];
    snprintf(line, sizeof line, "%s %u %u;", route, status, (unsigned)count);
    strcat(context, line);
}

static void test_pipelining_and_counts(void **state)
{
    (void)state;
    struct listener *l = admin();
    int fd = live_connect(l);
    struct answer a;
    live_text(fd, "GET /hello?1 HTTP/1.1\r\n" HOST "\r\n"
                  "GET /nope HTTP/1.1\r\n" HOST "\r\n"
                  "POST /take HTTP/1.1\r\n" HOST
                  "Content-Type: application/json\r\nContent-Length: 3\r\n\r\nabc"
                  "HEAD /v1/x/9 HTTP/1.1\r\n" HOST "\r\n"
                  "GET /hello?2 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    const unsigned statuses[] = {200, 404, 200, 200, 200};
    for (size_t i = 0; i < 5; i++) {
        live_read(fd, i == 3, &a);
        assert_int_equal(a.status, statuses[i]);
        answer_done(&a);
    }
    assert_true(live_ends(fd, 2000));
    close(fd);
    char text[400] = "";
    listener_counts(l, sum, text);
    assert_string_equal(text, "hello 200 2;take 200 1;x 200 1;none 404 1;");
    uint32_t open, waiting;
    listener_load(l, &open, &waiting);
    assert_int_equal(waiting, 0);
    listener_stop(l, 1000);
}

static void test_start_refusals(void **state)
{
    static const char *const addresses[] = {"127.0.0.1", "::1:80",          "nowhere.invalid:80",
                                            "x:y:z",     "127.0.0.1:99999", "203.0.113.1:80"};
    static const char *const bad[] = {"10.0.0.0/33"};
    struct listener_options options = live_options(routes, ROUTE_COUNT);
    struct listener *l;
    char why[200];

    (void)state;
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        options.address = addresses[i];
        assert_false(listener_start(&options, &l, why, sizeof why));
        assert_null(l);
    }
    options.address = "127.0.0.1:0";
    options.trusted_proxy_count = 1;
    options.trusted_proxies = bad;
    assert_false(listener_start(&options, &l, why, sizeof why));
    options.trusted_proxy_count = 0;
    l = live_start(&options);
    options.address = listener_address(l);
    struct listener *second;
    assert_false(listener_start(&options, &second, why, sizeof why));
    assert_non_null(strstr(why, "in use"));
    listener_stop(l, 1000);
    listener_stop(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_smuggling),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_public_errors_are_text),
        cmocka_unit_test(test_pipelining_and_counts),
        cmocka_unit_test(test_start_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
