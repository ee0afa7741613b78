/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/http/wait_world.h"

/* Suspend and resume in the middle of a body. */

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
        assert_true(live_ends(fd, LIVE_PATIENCE_MS));
        close(fd);
    }
    settle();
    listener_stop(l, 5000);
    assert_int_equal(atomic_load(&done_count), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_mid_body),
        cmocka_unit_test(test_early_reply_in_mid_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
