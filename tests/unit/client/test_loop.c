/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The loop against a server on the loopback that answers as the path says. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/client/loop.h"
#include "server/client/transfer.h"

#define HANG_MS 60000

static int listening = -1;
static unsigned port;
static pthread_t server_thread;

#define MANY 100u

/* Of requests for /together: answered once MANY more of them are here. */
static pthread_mutex_t together_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t together_grown = PTHREAD_COND_INITIALIZER;
static unsigned together;
static atomic_uint accepted;

static void wait_for_many(void)
{
    pthread_mutex_lock(&together_lock);
    unsigned enough = together++ / MANY * MANY + MANY;
    pthread_cond_broadcast(&together_grown);
    while (together < enough)
        pthread_cond_wait(&together_grown, &together_lock);
    pthread_mutex_unlock(&together_lock);
}

static const char *answer_for(const char *asked)
{
    if (strstr(asked, "GET /together") == asked)
        wait_for_many();
    if (strstr(asked, "PATCH /good") == asked && strstr(asked, "\r\n\r\nbody") == NULL)
        return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\napart";
    if (strstr(asked, "GET /together") == asked || strstr(asked, "PATCH /good") == asked)
        return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    if (strstr(asked, "GET /good") == asked)
        return "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    if (strstr(asked, "GET /away") == asked)
        return "HTTP/1.1 302 Found\r\nLocation: ../other?x=1\r\nContent-Length: 0\r\n\r\n";
    if (strstr(asked, "GET /short") == asked)
        return "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello";
    return NULL; /* says nothing */
}

#define CHUNKED   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define TINY_MANY (4 * TRANSFER_PIECES)

static void serve_trailers(int fd)
{
    static const char head[] = CHUNKED "0\r\n", line[] = "A: b\r\n";
    ssize_t n = write(fd, head, sizeof head - 1);

    while (n > 0)
        n = send(fd, line, sizeof line - 1, MSG_NOSIGNAL);
}

/* One write, as large as libcurl reads at once: all of them are there when it looks. */
static void serve_tiny_chunks(int fd)
{
    struct str all = STR_INIT;

    str_append_text(&all, CHUNKED);
    for (unsigned i = 0; i < TINY_MANY; i++)
        str_append_text(&all, "1\r\n \r\n");
    str_append_text(&all, "0\r\n\r\n");
    (void)!write(fd, all.data, all.len);
    str_done(&all);
}

static void serve_one(int fd)
{
    char asked[4096];
    size_t len = 0;

    for (;;) {
        ssize_t n = read(fd, asked + len, sizeof asked - 1 - len);
        const char *answer;

        if (n <= 0)
            break;
        len += (size_t)n;
        asked[len] = '\0';
        if (strstr(asked, "\r\n\r\n") == NULL)
            continue;
        if (strstr(asked, "GET /trailers") == asked) {
            serve_trailers(fd);
            break;
        }
        if (strstr(asked, "GET /tiny") == asked) {
            serve_tiny_chunks(fd);
            break;
        }
        answer = answer_for(asked);
        if (answer == NULL) {
            while (read(fd, asked, sizeof asked) > 0) /* until the client has enough */
                ;
            break;
        }
        if (write(fd, answer, strlen(answer)) < 0 || strstr(asked, "/short") != NULL)
            break;
        len = 0;
    }
    close(fd);
}

static void *serve_thread(void *context)
{
    serve_one((int)(intptr_t)context);
    return NULL;
}

static void *serve(void *context)
{
    (void)context;
    for (;;) {
        int fd = accept(listening, NULL, NULL);
        pthread_t thread;

        if (fd < 0)
            return NULL;
        accepted++;
        if (pthread_create(&thread, NULL, serve_thread, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

static int begin_server(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;

    listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) != 0 || listen(listening, MANY) != 0 ||
        getsockname(listening, (struct sockaddr *)&at, &size) != 0)
        return -1;
    port = ntohs(at.sin_port);
    return pthread_create(&server_thread, NULL, serve, NULL);
}

static int end_server(void **state)
{
    shutdown(listening, SHUT_RDWR);
    pthread_join(server_thread, NULL);
    close(listening);
    return 0;
}

static struct address_range loopback;
static const struct address_guard closed, open_to_loopback = {&loopback, 1};

struct asked {
    struct url url;
    struct fetch_request request;
    enum fetch_status status;
    unsigned done, answered, pieces;
    uint64_t taken, enough;
    unsigned waits; /* so often it is not taken yet */
    char body[32], redirect[128], why[256], address[64];
};
static unsigned under_way;

static void on_done(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct asked *a = context;

    under_way--;
    a->done++;
    a->status = status;
    a->answered = reply->status;
    snprintf(a->body, sizeof a->body, "%.*s", (int)reply->body.len,
             reply->body.data != NULL ? reply->body.data : "");
    snprintf(a->redirect, sizeof a->redirect, "%.*s", (int)reply->redirect.len,
             reply->redirect.data != NULL ? reply->redirect.data : "");
    snprintf(a->why, sizeof a->why, "%s", reply->why);
    snprintf(a->address, sizeof a->address, "%s", reply->address);
}

static void prepare(struct asked *a, const char *host, const char *path,
                    const struct address_guard *guard)
{
    char text[128];

    memset(a, 0, sizeof *a);
    snprintf(text, sizeof text, "http://%s:%u%s", host, port, path);
    assert_int_equal(url_parse(text, strlen(text), &a->url, NULL), RULE_OK);
    a->request = (struct fetch_request){.url = &a->url,
                                        .method = "GET",
                                        .agent = "test",
                                        .timeout_ms = HANG_MS,
                                        .max_bytes = 1000,
                                        .guard = guard,
                                        .context = a};
}

static void ask(struct fetch_loop *loop, struct asked *a, fetch_done *done)
{
    assert_non_null(fetch_loop_add(loop, &a->request, done));
    under_way++;
}

static void run(struct fetch_loop *loop)
{
    while (under_way > 0)
        assert_true(fetch_loop_poll(loop, HANG_MS));
}

static void test_many(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    static struct asked all[20], away, cut;

    for (size_t i = 0; i < 20; i++) {
        prepare(&all[i], "127.0.0.1", "/good", &open_to_loopback);
        ask(loop, &all[i], on_done);
    }
    prepare(&away, "127.0.0.1", "/away/from", &open_to_loopback);
    prepare(&cut, "127.0.0.1", "/short", NULL);
    ask(loop, &away, on_done);
    ask(loop, &cut, on_done);
    run(loop);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(all[i].done, 1);
        assert_int_equal(all[i].status, FETCH_OK);
        assert_int_equal(all[i].answered, 200);
        assert_string_equal(all[i].body, "hello");
        assert_string_equal(all[i].redirect, "");
        assert_string_equal(all[i].address, "127.0.0.1");
    }
    char there[64];
    snprintf(there, sizeof there, "http://127.0.0.1:%u/other?x=1", port);
    assert_int_equal(away.answered, 302);
    assert_string_equal(away.redirect, there);
    assert_int_equal(cut.status, FETCH_PROTOCOL);
    assert_int_equal(cut.answered, 0);
    assert_string_equal(cut.why, "truncated response: the body is shorter than Content-Length");
    fetch_loop_free(loop);
}

static void test_connections_are_used_again(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    static struct asked all[MANY];

    fetch_loop_keep(loop, MANY);
    accepted = 0;
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < MANY; i++) {
            prepare(&all[i], "127.0.0.1", "/together", NULL);
            ask(loop, &all[i], on_done);
        }
        run(loop);
        for (size_t i = 0; i < MANY; i++)
            assert_string_equal(all[i].body, "hello");
        assert_int_equal(accepted, MANY);
    }
    fetch_loop_free(loop);
}

/* One packet wakes the other side once. */
static void test_small_body_comes_with_the_head(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked a;

    prepare(&a, "127.0.0.1", "/good", NULL);
    a.request.method = "PATCH";
    a.request.body = "body";
    a.request.give_bytes = 4;
    ask(loop, &a, on_done);
    run(loop);
    assert_string_equal(a.body, "hello");
    fetch_loop_free(loop);
}

/* One that was made under another guard is not a way around this one. */
static void test_guard_of_kept(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked open, shut;

    prepare(&open, "127.0.0.1", "/good", &open_to_loopback);
    ask(loop, &open, on_done);
    run(loop);
    assert_int_equal(open.status, FETCH_OK);
    prepare(&shut, "127.0.0.1", "/good", &closed);
    ask(loop, &shut, on_done);
    run(loop);
    assert_int_equal(shut.status, FETCH_ADDRESS);
    assert_string_equal(shut.body, "");
    assert_string_equal(shut.why, "127.0.0.1 is not a public internet address; only [fetch] "
                                  "allow_address of the configuration can allow it");
    fetch_loop_free(loop);
}

/* What getaddrinfo makes of a spelling is what is checked. */
static void test_guard(void **state)
{
    static const char *const spellings[] = {"127.0.0.1", "localhost", "2130706433", "0x7f.1",
                                            "0177.1",    "127.1",     "0"};
    struct fetch_loop *loop = fetch_loop_new();
    struct asked a;
    char connect[64];

    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        prepare(&a, "www.example.com", "/good", &closed);
        snprintf(connect, sizeof connect, "%s:%u", spellings[i], port);
        a.request.connect = connect;
        ask(loop, &a, on_done);
        run(loop);
        if (i == 0) { /* an address in `connect` is the operator's own word */
            assert_int_equal(a.status, FETCH_OK);
            continue;
        }
        if (a.status != FETCH_ADDRESS)
            fail_msg("%s: %d, %s", spellings[i], (int)a.status, a.why);
        assert_non_null(strstr(a.why, "not a public internet address"));
    }
    prepare(&a, "127.0.0.1", "/good", &closed);
    ask(loop, &a, on_done);
    run(loop);
    assert_int_equal(a.status, FETCH_ADDRESS);
    fetch_loop_free(loop);
}

static bool take(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct asked *a = context;

    (void)bytes;
    assert_int_equal(reply->status, 200);
    a->taken += len;
    a->pieces++;
    return a->enough == 0 || a->taken < a->enough;
}

static void test_take(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked whole, large, stopped;

    prepare(&whole, "127.0.0.1", "/good", &open_to_loopback);
    whole.request.take = take;
    whole.request.take_bytes = 5;
    prepare(&large, "127.0.0.1", "/good", &open_to_loopback);
    large.request.take = take;
    large.request.take_bytes = 4;
    prepare(&stopped, "127.0.0.1", "/good", &open_to_loopback);
    stopped.request.take = take;
    stopped.enough = 1;
    ask(loop, &whole, on_done);
    ask(loop, &large, on_done);
    ask(loop, &stopped, on_done);
    run(loop);
    assert_int_equal(whole.status, FETCH_OK);
    assert_int_equal(whole.taken, 5);
    assert_int_equal(large.status, FETCH_STOPPED);
    assert_string_equal(large.why, "the body is too large");
    assert_int_equal(stopped.status, FETCH_STOPPED);
    assert_string_equal(stopped.why, "cancelled");
    fetch_loop_free(loop);
}

static bool waits(void *context)
{
    struct asked *a = context;

    assert_int_equal(a->taken, 0);
    return a->waits > 0 && a->waits-- > 0;
}

static void test_waits(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked whole, stopped, cut;
    struct asked *all[] = {&whole, &stopped, &cut};

    prepare(&whole, "127.0.0.1", "/good", &open_to_loopback);
    prepare(&stopped, "127.0.0.1", "/good", &open_to_loopback);
    prepare(&cut, "127.0.0.1", "/short", &open_to_loopback);
    stopped.enough = 1;
    for (size_t i = 0; i < 3; i++) {
        all[i]->request.take = take;
        all[i]->request.waits = waits;
        all[i]->waits = 3;
        ask(loop, all[i], on_done);
    }
    run(loop);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all[i]->done, 1);
        assert_int_equal(all[i]->waits, 0);
        assert_int_equal(all[i]->taken, 5);
    }
    assert_int_equal(whole.status, FETCH_OK);
    assert_int_equal(stopped.status, FETCH_STOPPED);
    assert_string_equal(stopped.why, "cancelled");
    assert_int_not_equal(cut.status, FETCH_OK);
    fetch_loop_free(loop);
}

/* libcurl would keep all of them. */
static void test_trailers(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked a;

    prepare(&a, "127.0.0.1", "/trailers", &open_to_loopback);
    ask(loop, &a, on_done);
    run(loop);
    assert_int_equal(a.status, FETCH_PROTOCOL);
    assert_string_equal(a.why, "malformed response: the trailers are too large");
    fetch_loop_free(loop);
}

/* However many chunks have come, a bounded number is taken before the loop comes round. */
static void test_tiny_chunks(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked a;

    prepare(&a, "127.0.0.1", "/tiny", &open_to_loopback);
    a.request.take = take;
    ask(loop, &a, on_done);
    while (under_way > 0) {
        unsigned pieces = a.pieces;
        assert_true(fetch_loop_poll(loop, HANG_MS));
        assert_in_range(a.pieces - pieces, 0, TRANSFER_PIECES + 1);
    }
    assert_int_equal(a.status, FETCH_OK);
    assert_int_equal(a.taken, TINY_MANY);
    fetch_loop_free(loop);
}

static void *wake(void *context)
{
    fetch_loop_wake(context);
    return NULL;
}

static void test_wake_and_remove(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked a, b;
    struct fetch_transfer *transfer;
    pthread_t thread;

    prepare(&a, "127.0.0.1", "/silence", &open_to_loopback);
    prepare(&b, "127.0.0.1", "/silence", &open_to_loopback);
    transfer = fetch_loop_add(loop, &a.request, on_done);
    assert_non_null(transfer);
    assert_int_equal(pthread_create(&thread, NULL, wake, loop), 0);
    assert_true(fetch_loop_poll(loop, HANG_MS)); /* hangs where it does not wake */
    pthread_join(thread, NULL);
    fetch_loop_remove(loop, transfer);
    assert_non_null(fetch_loop_add(loop, &b.request, on_done));
    assert_true(fetch_loop_poll(loop, 0));
    fetch_loop_free(loop); /* with one under way */
    assert_int_equal(a.done + b.done, 0);
}

/* What cannot be fetched is reported like what was. */
static void test_unmade(void **state)
{
    struct fetch_loop *loop = fetch_loop_new();
    struct asked secret, other;
    struct url https;
    char text[64];

    prepare(&secret, "127.0.0.1", "/silence", &open_to_loopback);
    secret.request.credentials = "basic a:b";
    prepare(&other, "127.0.0.1", "/silence", &open_to_loopback);
    snprintf(text, sizeof text, "https://127.0.0.1:%u/", port);
    assert_int_equal(url_parse(text, strlen(text), &https, NULL), RULE_OK);
    other.request.url = &https;
    other.request.ca_more = "/nowhere/ca.pem";
    ask(loop, &secret, on_done);
    ask(loop, &other, on_done);
    run(loop);
    assert_int_equal(secret.status, FETCH_TLS);
    assert_string_equal(secret.why, "credentials are only sent over https");
    assert_int_equal(other.status, FETCH_TLS);
    assert_string_equal(other.why, "cannot read the file of trusted certificates (ca_file)");
    fetch_loop_free(loop);
}

static struct fetch_loop *chained;

static void add_next(void *context, enum fetch_status status, struct fetch_reply *reply)
{
    struct asked *a = context;

    assert_int_equal(status, FETCH_OK);
    assert_int_equal(reply->status, 200);
    under_way--;
    if (++a->done < 3)
        ask(chained, a, add_next);
}

static void test_add_in_done(void **state)
{
    struct asked a;

    chained = fetch_loop_new();
    prepare(&a, "127.0.0.1", "/good", &open_to_loopback);
    ask(chained, &a, add_next);
    run(chained);
    assert_int_equal(a.done, 3);
    fetch_loop_free(chained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_connections_are_used_again),
        cmocka_unit_test(test_small_body_comes_with_the_head),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_guard_of_kept),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_wake_and_remove),
        cmocka_unit_test(test_unmade),
        cmocka_unit_test(test_add_in_done),
        cmocka_unit_test(test_trailers),
        cmocka_unit_test(test_tiny_chunks),
    };

    if (!address_range_parse("127.0.0.0/8", &loopback))
        return 1;
    return cmocka_run_group_tests(tests, begin_server, end_server);
}
