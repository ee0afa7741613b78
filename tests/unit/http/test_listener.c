/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/http/answers_world.h"

#include <netinet/tcp.h>

#include "server/http/address.h"

/* Every answer that the listener gives by itself, over loopback. Where a request ends:
 * test_framing.c. */

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
    assert_true(live_ends(fd, LIVE_PATIENCE_MS));
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

/* A crowd waits in the kernel's queue and is not turned away, as far as the kernel goes along. */
static void test_the_queue_is_long(void **state)
{
    char text[ADDRESS_TEXT_SIZE], why[200];
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    unsigned most = 0;

    FILE *file = fopen("/proc/sys/net/core/somaxconn", "re");
    if (file == NULL || fscanf(file, "%u", &most) != 1)
        skip();
    fclose(file);
    int fd = address_listen("127.0.0.1:0", text, why, sizeof why);
    assert_true(fd >= 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    /* Of a listening socket: the queue's length. */
    assert_int_equal(info.tcpi_sacked, most < 4096 ? most : 4096);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_public_errors_are_text),
        cmocka_unit_test(test_pipelining_and_counts),
        cmocka_unit_test(test_start_refusals),
        cmocka_unit_test(test_the_queue_is_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
