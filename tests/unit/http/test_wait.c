#include "tests/unit/http/live.h"

/* Suspend and resume: nothing waits on a thread of the listener, and no order of events loses a
 * request or ends one twice. */

static atomic_uint resumers, done_count, in_hook;

static void *resume_soon(void *context)
{
    struct request *request = context;
    const char *query = request->query;

    live_sleep_ms(query == NULL ? 0 : atoi(query));
    if (request->reply.status == 0 && request->route->body == NULL) {
        request->reply.status = 200;
        str_append_text(&request->reply.body, "late");
    }
    request_resume(request);
    atomic_fetch_sub(&resumers, 1);
    return NULL;
}

static void hand_over(struct request *request)
{
    pthread_t thread;

    atomic_fetch_add(&resumers, 1);
    assert_int_equal(pthread_create(&thread, NULL, resume_soon, request), 0);
    pthread_detach(thread);
}

static enum handled later(void *context, struct request *request)
{
    (void)context;
    hand_over(request);
    return HANDLE_LATER;
}

/* Gives the other thread time to resume before the hook returns. */
static enum handled slowly(void *context, struct request *request)
{
    (void)context;
    hand_over(request);
    live_sleep_ms(30);
    return HANDLE_LATER;
}

static enum handled at_once(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 200;
    str_append_text(&request->reply.body, "now");
    request_resume(request);
    return HANDLE_LATER;
}

static enum handled ask(void *context, struct request *request)
{
    if (request_header(request, "X-Wait") == NULL) {
        request->reply.status = 200;
        return HANDLED;
    }
    if (!request_may_wait(request)) {
        reply_text(&request->reply, 503, "no");
        return HANDLED;
    }
    return later(context, request);
}

static enum handled begin(void *context, struct request *request)
{
    (void)context;
    request->state = calloc(1, sizeof(struct str));
    return HANDLE_CONTINUE;
}

static enum handled piece(void *context, struct request *request, const void *bytes, size_t len)
{
    assert_int_equal(atomic_exchange(&in_hook, 1), 0);
    str_append(request->state, bytes, len);
    atomic_store(&in_hook, 0);
    if (memchr(bytes, '!', len) != NULL) {
        reply_problem(&request->reply, 422, "bad", NULL, "no exclamation marks");
        return HANDLED;
    }
    return request->query == NULL ? HANDLE_CONTINUE : later(context, request);
}

static enum handled whole(void *context, struct request *request)
{
    struct str *all = request->state;
    uint32_t sum = 0;

    (void)context;
    for (size_t i = 0; i < all->len; i++)
        sum = sum * 31 + (unsigned char)all->data[i];
    request->reply.status = 200;
    str_append_format(&request->reply.body, "%zu %u", all->len, sum);
    return HANDLED;
}

static void done(void *context, struct request *request)
{
    (void)context;
    if (request->state != NULL)
        str_done(request->state);
    free(request->state);
    atomic_fetch_add(&done_count, 1);
}

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/later", .label = "later", .finish = later, .done = done},
    {.methods = HTTP_GET, .path = "/slowly", .label = "later", .finish = slowly},
    {.methods = HTTP_GET, .path = "/at-once", .label = "later", .finish = at_once},
    {.methods = HTTP_GET, .path = "/ask", .label = "ask", .asks_to_wait = true, .finish = ask},
    {.methods = HTTP_POST,
     .path = "/upload",
     .label = "upload",
     .max_body_bytes = 10000000,
     .begin = begin,
     .body = piece,
     .finish = whole,
     .done = done},
};

static struct listener *start(uint32_t max_suspended)
{
    struct listener_options options = live_options(routes, sizeof routes / sizeof routes[0]);
    options.max_suspended = max_suspended;
    atomic_store(&done_count, 0);
    return live_start(&options);
}

static void settle(void)
{
    int64_t end = live_now_ms() + LIVE_PATIENCE_MS;
    while (atomic_load(&resumers) > 0 && live_now_ms() < end)
        live_sleep_ms(1);
    assert_int_equal(atomic_load(&resumers), 0);
}

static void wait_for_suspended(struct listener *l, uint32_t count)
{
    uint32_t connections, suspended = 0;
    int64_t end = live_now_ms() + LIVE_PATIENCE_MS;
    do {
        listener_load(l, &connections, &suspended);
        live_sleep_ms(1);
    } while (suspended != count && live_now_ms() < end);
    assert_int_equal(suspended, count);
}

#define HEAD " HTTP/1.1\r\nHost: a\r\n\r\n"

static void test_every_order(void **state)
{
    (void)state;
    struct listener *l = start(16);
    struct answer a;
    int fd = live_connect(l);
    /* Pipelined: each waits in its own way, and none overtakes. */
    live_text(fd, "GET /later?20" HEAD "GET /at-once" HEAD "GET /slowly" HEAD "GET /slowly?60" HEAD
                  "GET /later" HEAD);
    static const char *const bodies[] = {"late", "now", "late", "late", "late"};
    for (size_t i = 0; i < 5; i++) {
        live_read(fd, false, &a);
        assert_int_equal(a.status, 200);
        assert_string_equal(a.body, bodies[i]);
        answer_done(&a);
    }
    close(fd);
    settle();
    listener_stop(l, 5000);
    assert_int_equal(atomic_load(&done_count), 2);
}

static void *client(void *context)
{
    struct answer a;
    int fd = live_connect(context);
    for (int i = 0; i < 40; i++) {
        char text[100];
        snprintf(text, sizeof text, "GET /later?%d" HEAD, i % 3);
        live_text(fd, text);
        live_read(fd, false, &a);
        assert_int_equal(a.status, 200);
        answer_done(&a);
    }
    close(fd);
    return NULL;
}

static void test_many_at_once(void **state)
{
    (void)state;
    struct listener *l = start(100);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, client, l), 0);
    for (int i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
    listener_stop(l, 5000);
    settle();
    assert_int_equal(atomic_load(&done_count), 640);
}

static void test_places_are_limited(void **state)
{
    (void)state;
    struct listener *l = start(2);
    struct answer a;
    char text[512];
    int first = live_connect(l), second = live_connect(l);
    live_text(first, "GET /later?2500" HEAD);
    live_text(second, "GET /later?2500" HEAD);
    wait_for_suspended(l, 2);
    live_ask(l, "GET /later" HEAD, &a, NULL);
    assert_int_equal(a.status, 503);
    assert_non_null(answer_header(&a, "Retry-After", text));
    assert_non_null(strstr(a.body, "too-many-waiting"));
    answer_done(&a);
    /* What need not wait is served all the same. */
    live_ask(l, "GET /ask" HEAD, &a, NULL);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    live_ask(l, "GET /ask HTTP/1.1\r\nHost: a\r\nX-Wait: 1\r\n\r\n", &a, NULL);
    assert_int_equal(a.status, 503);
    answer_done(&a);
    live_read(first, false, &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    live_read(second, false, &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    wait_for_suspended(l, 0);
    live_ask(l, "GET /ask?1 HTTP/1.1\r\nHost: a\r\nX-Wait: 1\r\n\r\n", &a, NULL);
    assert_string_equal(a.body, "late");
    answer_done(&a);
    close(first);
    close(second);
    settle();
    listener_stop(l, 5000);
}

#define UPLOAD_SIZE 300000

static void upload(struct listener *l, const char *query, bool chunked, size_t step)
{
    char *body = malloc(UPLOAD_SIZE), head[200], expected[60];
    struct answer a;
    uint32_t sum = 0;
    int fd = live_connect(l);

    for (size_t i = 0; i < UPLOAD_SIZE; i++) {
        body[i] = (char)('a' + i * i % 23);
        sum = sum * 31 + (unsigned char)body[i];
    }
    snprintf(head, sizeof head, "POST /upload%s HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n", query,
             chunked ? "Transfer-Encoding: chunked" : "Content-Length: 300000");
    live_text(fd, head);
    for (size_t at = 0; at < UPLOAD_SIZE; at += step) {
        size_t n = UPLOAD_SIZE - at < step ? UPLOAD_SIZE - at : step;
        if (chunked) {
            snprintf(head, sizeof head, "%zx\r\n", n);
            live_text(fd, head);
        }
        live_send(fd, body + at, n);
        if (chunked)
            live_text(fd, "\r\n");
    }
    live_text(fd, chunked ? "0\r\n\r\nGET /later" HEAD : "GET /later" HEAD);
    live_read(fd, false, &a);
    assert_int_equal(a.status, 200);
    snprintf(expected, sizeof expected, "%d %u", UPLOAD_SIZE, sum);
    assert_string_equal(a.body, expected);
    answer_done(&a);
    live_read(fd, false, &a); /* the one behind it */
    assert_string_equal(a.body, "late");
    answer_done(&a);
    close(fd);
    free(body);
}

static void test_in_mid_body(void **state)
{
    (void)state;
    struct listener *l = start(4);
    upload(l, "", false, 100000);
    upload(l, "?0", false, 7000);
    upload(l, "?1", false, 100000);
    upload(l, "", true, 1777);
    upload(l, "?0", true, 9000);
    upload(l, "?2", true, 60000);
    settle();
    listener_stop(l, 5000);
    assert_int_equal(atomic_load(&done_count), 12);
}

/* The reply comes although the body is still coming, and is not lost to a reset. */
static void test_early_reply_in_mid_body(void **state)
{
    (void)state;
    struct listener *l = start(4);
    for (int waiting = 0; waiting <= 1; waiting++) {
        struct answer a;
        char rest[20000];
        int fd = live_connect(l);
        memset(rest, 'x', sizeof rest);
        live_text(fd, waiting ? "POST /upload?10 HTTP/1.1\r\nHost: a\r\n"
                              : "POST /upload HTTP/1.1\r\nHost: a\r\n");
        live_text(fd, "Content-Length: 9000000\r\n\r\nwell!");
        for (int i = 0; i < 20; i++)
            live_send(fd, rest, sizeof rest);
        live_read(fd, false, &a);
        assert_int_equal(a.status, 422);
        assert_non_null(strstr(a.body, "exclamation"));
        answer_done(&a);
        assert_true(live_ends(fd, 1000));
        close(fd);
    }
    settle();
    listener_stop(l, 5000);
    assert_int_equal(atomic_load(&done_count), 2);
}

static void test_client_gone(void **state)
{
    (void)state;
    struct listener *l = start(16);
    for (int i = 0; i < 8; i++) {
        int fd = live_connect(l);
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        live_text(fd,
                  i % 4 < 2
                      ? "GET /later?2000" HEAD
                      : "POST /upload?2000 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
        wait_for_suspended(l, (uint32_t)i + 1);
        if (i % 2 == 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    settle();
    wait_for_suspended(l, 0);
    listener_stop(l, 5000);
    assert_int_equal(atomic_load(&done_count), 8);
}

static void test_stop_with_waiters(void **state)
{
    (void)state;
    struct listener *l = start(16);
    struct answer a;
    int waiting[6], idle = live_connect(l);
    live_text(idle, "GET /ask" HEAD);
    live_read(idle, false, &a);
    answer_done(&a);
    for (int i = 0; i < 6; i++) {
        waiting[i] = live_connect(l);
        live_text(waiting[i],
                  i < 3 ? "GET /later?1500" HEAD "GET /later" HEAD : "GET /later?1500" HEAD);
    }
    wait_for_suspended(l, 6);
    listener_quiesce(l);
    /* A connection that is open may ask, but not wait. */
    live_text(idle, "GET /later" HEAD);
    live_read(idle, false, &a);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body, "stopping"));
    answer_done(&a);
    assert_true(live_ends(idle, 1000));
    listener_stop(l, 5000);
    settle();
    for (int i = 0; i < 6; i++) {
        live_read(waiting[i], false, &a);
        assert_int_equal(a.status, 200);
        assert_string_equal(a.body, "late");
        answer_done(&a);
        close(waiting[i]);
    }
    close(idle);
    assert_int_equal(atomic_load(&done_count), 7); /* the refused one too */
}

static void test_nobody_gets_in_after_quiesce(void **state)
{
    (void)state;
    struct listener *l = start(1);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(listener_address(l), ':') + 1));
    listener_quiesce(l);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_not_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    close(fd);
    listener_stop(l, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_order),
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_places_are_limited),
        cmocka_unit_test(test_in_mid_body),
        cmocka_unit_test(test_early_reply_in_mid_body),
        cmocka_unit_test(test_client_gone),
        cmocka_unit_test(test_stop_with_waiters),
        cmocka_unit_test(test_nobody_gets_in_after_quiesce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
