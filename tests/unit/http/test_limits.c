/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/base/clock.h"
#include "tests/unit/http/live.h"

/* Who is slow, or many. */

static enum handled large(void *context, struct request *request)
{
    (void)context;
    return live_large(request, 40000000);
}

static void *resume_later(void *context)
{
    struct request *request = context;
    usleep(2500000);
    live_small(NULL, request);
    request_resume(request);
    return NULL;
}

static enum handled later(void *context, struct request *request)
{
    (void)context;
    return live_later(request, resume_later);
}

/* A piece of a body that is worked on for a while. */
static void *take_later(void *context)
{
    usleep(700000);
    request_resume(context);
    return NULL;
}

static enum handled take(void *context, struct request *request, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return live_later(request, take_later);
}

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/small", .label = "small", .finish = live_small},
    {.methods = HTTP_GET, .path = "/large", .label = "large", .finish = large},
    {.methods = HTTP_GET, .path = "/later", .label = "later", .finish = later},
    {.methods = HTTP_POST,
     .path = "/take",
     .label = "take",
     .max_body_bytes = 100000,
     .finish = live_small},
    {.methods = HTTP_POST,
     .path = "/slow",
     .label = "slow",
     .max_body_bytes = 100000,
     .body = take,
     .finish = live_small},
};

static struct listener_options options_of_this(void)
{
    return live_options(routes, sizeof routes / sizeof routes[0]);
}

/* Sends `text` a byte each 50 ms. Returns how many milliseconds after `start` the server hung up.
 */
static int64_t drip(int fd, const char *text, int64_t start)
{
    size_t len = strlen(text);
    for (size_t i = 0; clock_now_ms() - start < LIVE_PATIENCE_MS; i++) {
        live_send(fd, text + i % len, 1);
        if (live_ends(fd, 50))
            break;
    }
    return clock_now_ms() - start;
}

static void test_slow_header(void **state)
{
    struct listener_options options = options_of_this();
    options.header_timeout_ms = 500;
    struct listener *l = live_start(&options);
    int64_t start = clock_now_ms();
    int fd = live_connect(l);
    live_text(fd, "GET /small HTTP/1.1\r\nHost: a\r\nX: ");
    assert_in_range(drip(fd, "a", start), 400, LIVE_PATIENCE_MS - 1);
    close(fd);
    fd = live_connect(l); /* and one that says nothing at all */
    assert_true(live_ends(fd, LIVE_PATIENCE_MS));
    close(fd);
    listener_stop(l, 1000);
}

static void test_slow_body(void **state)
{
    struct listener_options options = options_of_this();
    options.body_timeout_ms = 500;
    struct listener *l = live_start(&options);
    int64_t start = clock_now_ms();
    int fd = live_connect(l);
    live_text(fd, "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n");
    struct pollfd answered = {.fd = fd, .events = POLLIN};
    do
        live_send(fd, "b", 1);
    while (poll(&answered, 1, 50) == 0 && clock_now_ms() - start < LIVE_PATIENCE_MS);
    assert_in_range(clock_now_ms() - start, 400, LIVE_PATIENCE_MS - 1);
    struct answer a; /* RFC 9110 15.5.9 */
    char value[512];
    live_read(fd, false, &a);
    assert_int_equal(a.status, 408);
    assert_string_equal(answer_header(&a, "Connection", value), "close");
    assert_non_null(strstr(a.body, "body_timeout"));
    assert_true(live_ends(fd, LIVE_PATIENCE_MS));
    answer_done(&a);
    close(fd);
    listener_stop(l, 1000);
}

/* Who ends its side within a request has left, whether or not the end came alone. */
static void test_half_of_a_request(void **state)
{
    static const char *const halves[] = {
        "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
        "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf",
        "POST /take HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "POST /take HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
        "GET /small HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", /* nobody wants it */
        "GET /small HTTP/1.1\r\nHost: a\r\nHalf",
        "GET /sma",
    };
    struct listener_options options = options_of_this();
    options.body_timeout_ms = options.header_timeout_ms = 60000;
    struct listener *l = live_start(&options);
    int fds[2 * sizeof halves / sizeof halves[0]];
    size_t count = 0;
    for (unsigned pause_ms = 0; pause_ms <= 50; pause_ms += 50) {
        for (size_t i = 0; i < sizeof halves / sizeof halves[0]; i++) {
            fds[count] = live_connect(l);
            live_text(fds[count], halves[i]);
            usleep((useconds_t)pause_ms * 1000);
            shutdown(fds[count++], SHUT_WR);
        }
    }
    /* What comes long after the rest, together with the end, unnoticed. */
    static const char *const late[][2] = {
        {"POST /take HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
         "5\r\n"},
        {"GET /small HTTP/1.1\r\nHost: a\r\n", "Half"},
    };
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        int fd = live_connect(l);
        live_text(fd, late[i][0]);
        usleep(700000);
        live_text(fd, late[i][1]);
        shutdown(fd, SHUT_WR);
        if (!live_ends(fd, LIVE_PATIENCE_MS))
            fail_msg("kept: the late one %zu", i);
        close(fd);
    }
    for (size_t i = 0; i < count; i++) {
        if (!live_ends(fds[i], LIVE_PATIENCE_MS))
            fail_msg("kept: %zu", i);
        close(fds[i]);
    }
    listener_stop(l, 1000);
}

/* `number` of its table. */
static void require_answered(int fd, size_t number)
{
    struct answer a;

    live_read(fd, false, &a);
    if (a.status != 200)
        fail_msg("%zu: %u", number, a.status);
    answer_done(&a);
    close(fd);
}

/* A client that ends its side behind a whole body gets its answer, also where each piece takes its
 * time. */
static void test_an_end_behind_a_body(void **state)
{
    static const char *const wholes[] = {
        "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole",
        "GET /small HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole",
        "GET /small HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole",
        "POST /take HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nwhole\r\n1\r\n!\r\n0\r\n\r\n",
    };
    struct listener_options options = options_of_this();
    struct listener *l = live_start(&options);
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        int fd = live_connect(l);
        live_text(fd, wholes[i]);
        shutdown(fd, SHUT_WR);
        require_answered(fd, i);
    }
    listener_stop(l, 1000);
}

/* Likewise where the end comes while the request waits, beside other connections. */
static void test_an_end_while_a_request_waits(void **state)
{
    static const char *const waiting[] = {
        "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole",
        "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nwhole\r\n1\r\n!\r\n0\r\n\r\n",
        "GET /later HTTP/1.1\r\nHost: a\r\n\r\n",
    };
    struct listener_options options = options_of_this();
    options.threads = 1;
    struct listener *l = live_start(&options);
    int other = live_connect(l);
    live_await_load(l, 1, -1);
    for (size_t i = 0; i < sizeof waiting / sizeof waiting[0]; i++) {
        int fd = live_connect(l);
        live_text(fd, waiting[i]);
        live_await_load(l, 2, 1);
        shutdown(fd, SHUT_WR);
        require_answered(fd, i);
        live_await_load(l, 1, 0);
    }
    close(other);
    listener_stop(l, 1000);
}

static void test_idle(void **state)
{
    struct listener_options options = options_of_this();
    options.idle_timeout_ms = 5000;
    options.header_timeout_ms = 5000;
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    struct answer a;
    for (int i = 0; i < 8; i++) { /* 5.6 s, but never idle for long */
        live_text(fd, "GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
        live_read(fd, false, &a);
        assert_int_equal(a.status, 200);
        answer_done(&a);
        usleep(700000);
    }
    assert_true(live_ends(fd, LIVE_PATIENCE_MS));
    close(fd);
    listener_stop(l, 1000);
}

static void test_slow_reader(void **state)
{
    struct listener_options options = options_of_this();
    options.reply_timeout_ms = 20; /* 40 MB: 39 times that */
    struct listener *l = live_start(&options);
    int64_t start = clock_now_ms();
    int fd = live_connect(l);
    live_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    uint32_t connections = 1, suspended;
    char byte;
    assert_true(live_byte(fd, &byte));
    while (connections > 0 && clock_now_ms() - start < LIVE_PATIENCE_MS) {
        recv(fd, &byte, 1, MSG_DONTWAIT);
        usleep(20000);
        listener_load(l, &connections, &suspended);
    }
    assert_in_range(clock_now_ms() - start, 500, LIVE_PATIENCE_MS - 1);
    close(fd);
    listener_stop(l, 1000);
}

static void test_waiting_is_not_slow(void **state)
{
    struct listener_options options = options_of_this();
    options.header_timeout_ms = options.body_timeout_ms = options.idle_timeout_ms = 1500;
    struct listener *l = live_start(&options);
    struct answer a;
    live_ask(l, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    listener_stop(l, 1000);
}

static void test_per_address(void **state)
{
    struct listener_options options = options_of_this();
    options.max_connections_per_address = 3;
    struct listener *l = live_start(&options);
    int fds[5];
    unsigned served = 0;
    for (int i = 0; i < 5; i++) {
        struct answer a;
        fds[i] = live_connect(l);
        live_text(fds[i], "GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
        live_read(fds[i], false, &a);
        served += a.status == 200;
        answer_done(&a);
    }
    assert_int_equal(served, 3);
    for (int i = 0; i < 5; i++)
        close(fds[i]);
    listener_stop(l, 1000);
}

/* A reader that never reads does not hold up a stop. */
static void test_stop_cuts_slow_readers(void **state)
{
    struct listener_options options = options_of_this();
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    live_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    char byte;
    assert_true(live_byte(fd, &byte));
    int64_t start = clock_now_ms();
    listener_stop(l, 300);
    assert_in_range(clock_now_ms() - start, 250, LIVE_PATIENCE_MS);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_header),
        cmocka_unit_test(test_slow_body),
        cmocka_unit_test(test_half_of_a_request),
        cmocka_unit_test(test_an_end_behind_a_body),
        cmocka_unit_test(test_an_end_while_a_request_waits),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_waiting_is_not_slow),
        cmocka_unit_test(test_per_address),
        cmocka_unit_test(test_stop_cuts_slow_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
