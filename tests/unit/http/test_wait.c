/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/http/wait_world.h"

/* Suspend and resume: nothing waits on a thread of the listener, and no order of events loses a
 * request or ends one twice. In the middle of a body: test_wait_body.c. */

static void test_every_order(void **state)
{
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
    struct listener *l = start(2);
    struct answer a;
    char text[512];
    int first = live_connect(l), second = live_connect(l);
    live_text(first, "GET /later?held" HEAD);
    live_text(second, "GET /later?held" HEAD);
    live_await_load(l, -1, 2);
    live_ask(l, "GET /later" HEAD, &a, NULL);
    assert_int_equal(a.status, 503);
    assert_non_null(answer_header(&a, "Retry-After", text));
    assert_non_null(strstr(a.body, "too-many-waiting"));
    answer_done(&a);
    /* What need not wait is served all the same. */
    live_ask(l, "GET /ask" HEAD, &a, NULL);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    live_ask(l, "GET /ask HTTP/1.1\r\nHost: a\r\nReferer: wait\r\n\r\n", &a, NULL);
    assert_int_equal(a.status, 503);
    answer_done(&a);
    atomic_store(&released, true);
    live_read(first, false, &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    live_read(second, false, &a);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    live_await_load(l, -1, 0);
    live_ask(l, "GET /ask?1 HTTP/1.1\r\nHost: a\r\nReferer: wait\r\n\r\n", &a, NULL);
    assert_string_equal(a.body, "late");
    answer_done(&a);
    close(first);
    close(second);
    settle();
    listener_stop(l, 5000);
}

#define OWN(site, query) "GET /own" query " HTTP/1.1\r\nHost: a\r\nAuthorization: " site "\r\n\r\n"

static void test_sites_leave_others_half_of_the_free_places(void **state)
{
    struct listener *l = start(4);
    static const char *const held[] = {OWN("7", "?held"), OWN("7", "?held"), OWN("8", "?held")};
    struct answer a;
    int fds[3];
    for (size_t i = 0; i < 3; i++) {
        fds[i] = live_connect(l);
        live_text(fds[i], held[i]);
        live_await_load(l, -1, (int)i + 1);
    }
    live_ask(l, OWN("7", ""), &a, NULL);
    assert_int_equal(a.status, 503);
    answer_done(&a);
    live_ask(l, OWN("8", ""), &a, NULL);
    assert_int_equal(a.status, 503);
    answer_done(&a);
    live_ask(l, OWN("9", ""), &a, NULL);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    live_ask(l, OWN("0", ""), &a, NULL);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    atomic_store(&released, true);
    for (size_t i = 0; i < 3; i++) {
        live_read(fds[i], false, &a);
        assert_int_equal(a.status, 200);
        answer_done(&a);
        close(fds[i]);
    }
    live_await_load(l, -1, 0);
    for (size_t i = 0; i < 8; i++) { /* each gives its place back */
        live_ask(l, OWN("7", ""), &a, NULL);
        assert_int_equal(a.status, 200);
        answer_done(&a);
    }
    settle();
    listener_stop(l, 5000);
}

static void test_client_gone(void **state)
{
    struct listener *l = start(16);
    for (int i = 0; i < 8; i++) {
        int fd = live_connect(l);
        struct linger reset = {.l_onoff = 1, .l_linger = 0};
        live_text(fd,
                  i % 4 < 2
                      ? "GET /later?held" HEAD
                      : "POST /upload?held HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
        live_await_load(l, -1, i + 1);
        if (i % 2 == 0)
            setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    atomic_store(&released, true);
    settle();
    live_await_load(l, -1, 0);
    listener_stop(l, 5000);
    assert_int_equal(atomic_load(&done_count), 8);
}

static void test_stop_with_waiters(void **state)
{
    struct listener *l = start(16);
    struct answer a;
    int waiting[6], idle = live_connect(l);
    live_text(idle, "GET /ask" HEAD);
    live_read(idle, false, &a);
    answer_done(&a);
    live_await_quiet(l); /* a connection whose request ends in a stop ends with it */
    for (int i = 0; i < 6; i++) {
        waiting[i] = live_connect(l);
        live_text(waiting[i],
                  i < 3 ? "GET /later?held" HEAD "GET /later" HEAD : "GET /later?held" HEAD);
    }
    live_await_load(l, -1, 6);
    listener_quiesce(l);
    /* A connection that is open may ask; after a while (STOP_IDLE_MS) it may no longer wait. */
    usleep(1600000);
    live_text(idle, "GET /later" HEAD);
    live_read(idle, false, &a);
    assert_int_equal(a.status, 503);
    assert_non_null(strstr(a.body, "stopping"));
    answer_done(&a);
    assert_true(live_ends(idle, LIVE_PATIENCE_MS));
    atomic_store(&released, true);
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
    struct listener *l = start(1);
    struct sockaddr_in to = live_address(l);
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
        cmocka_unit_test(test_sites_leave_others_half_of_the_free_places),
        cmocka_unit_test(test_client_gone),
        cmocka_unit_test(test_stop_with_waiters),
        cmocka_unit_test(test_nobody_gets_in_after_quiesce),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
