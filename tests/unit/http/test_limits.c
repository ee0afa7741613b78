#include "tests/unit/http/live.h"

/* Who is slow, or many. */

static enum handled small(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    str_append_text(&request->reply.body, "ok");
    return HANDLED;
}

static enum handled large(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    if (str_reserve(&request->reply.body, 40000000)) {
        memset(request->reply.body.data, 'x', 40000000);
        request->reply.body.len = 40000000;
    }
    return HANDLED;
}

static void *resume_later(void *context)
{
    struct request *request = context;
    live_sleep_ms(1200);
    small(NULL, request);
    request_resume(request);
    return NULL;
}

static enum handled later(void *context, struct request *request)
{
    pthread_t thread;
    (void)context;
    assert_int_equal(pthread_create(&thread, NULL, resume_later, request), 0);
    pthread_detach(thread);
    return HANDLE_LATER;
}

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/small", .label = "small", .finish = small},
    {.methods = HTTP_GET, .path = "/large", .label = "large", .finish = large},
    {.methods = HTTP_GET, .path = "/later", .label = "later", .finish = later},
    {.methods = HTTP_POST,
     .path = "/take",
     .label = "take",
     .max_body_bytes = 100000,
     .finish = small},
};

static struct listener_options options_of_this(void)
{
    return live_options(routes, sizeof routes / sizeof routes[0]);
}

/* Sends `text` a byte each 50 ms. Returns after how many milliseconds the server hung up. */
static int64_t drip(int fd, const char *text)
{
    int64_t start = live_now_ms();
    size_t len = strlen(text);
    for (size_t i = 0; live_now_ms() - start < LIVE_PATIENCE_MS; i++) {
        live_send(fd, text + i % len, 1);
        if (live_ends(fd, 50))
            break;
    }
    return live_now_ms() - start;
}

static void test_slow_header(void **state)
{
    (void)state;
    struct listener_options options = options_of_this();
    options.header_timeout_ms = 500;
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    live_text(fd, "GET /small HTTP/1.1\r\nHost: a\r\nX: ");
    assert_in_range(drip(fd, "a"), 400, 3000);
    close(fd);
    fd = live_connect(l); /* and one that says nothing at all */
    assert_true(live_ends(fd, 3000));
    close(fd);
    listener_stop(l, 1000);
}

static void test_slow_body(void **state)
{
    (void)state;
    struct listener_options options = options_of_this();
    options.body_timeout_ms = 500;
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    live_text(fd, "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n");
    int64_t took = drip(fd, "b");
    assert_in_range(took, 400, 3000);
    close(fd);
    listener_stop(l, 1000);
}

static void test_idle(void **state)
{
    (void)state;
    struct listener_options options = options_of_this();
    options.idle_timeout_ms = 300;
    options.header_timeout_ms = 300;
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    struct answer a;
    for (int i = 0; i < 8; i++) { /* 1.6 s, but never idle for long */
        live_text(fd, "GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
        live_read(fd, false, &a);
        assert_int_equal(a.status, 200);
        answer_done(&a);
        live_sleep_ms(200);
    }
    assert_true(live_ends(fd, 3000));
    close(fd);
    listener_stop(l, 1000);
}

static void test_slow_reader(void **state)
{
    (void)state;
    struct listener_options options = options_of_this();
    options.reply_timeout_ms = 20; /* 40 MB: 39 times that */
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    live_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    uint32_t connections = 1, suspended;
    int64_t start = live_now_ms();
    char byte;
    while (connections > 0 && live_now_ms() - start < LIVE_PATIENCE_MS) {
        live_byte(fd, &byte, 20);
        live_sleep_ms(20);
        listener_load(l, &connections, &suspended);
    }
    assert_in_range(live_now_ms() - start, 500, 5000);
    close(fd);
    listener_stop(l, 1000);
}

static void test_waiting_is_not_slow(void **state)
{
    (void)state;
    struct listener_options options = options_of_this();
    options.header_timeout_ms = options.body_timeout_ms = options.idle_timeout_ms = 200;
    struct listener *l = live_start(&options);
    struct answer a;
    live_ask(l, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    listener_stop(l, 1000);
}

static void test_per_address(void **state)
{
    (void)state;
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
    (void)state;
    struct listener_options options = options_of_this();
    struct listener *l = live_start(&options);
    int fd = live_connect(l);
    live_text(fd, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
    char byte;
    assert_true(live_byte(fd, &byte, 5000));
    int64_t start = live_now_ms();
    listener_stop(l, 300);
    assert_in_range(live_now_ms() - start, 250, 5000);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_header),
        cmocka_unit_test(test_slow_body),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_waiting_is_not_slow),
        cmocka_unit_test(test_per_address),
        cmocka_unit_test(test_stop_cuts_slow_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
