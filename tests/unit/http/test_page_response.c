/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <pthread.h>

#include "server/http/reply.h"
#include "tests/unit/http/page_fixture.h"

/* The prebuilt responses of a snapshot, as they go over the wire. */

#define ADVICE "X-Content-Type-Options: nosniff\r\nX-Robots-Tag: noindex\r\nAccept-Ranges: none\r\n"

/* A 304 has the validators alone (RFC 9110 15.4.5). */
static void golden(const struct answer *a, const char *type, const char *validators, size_t length)
{
    bool whole = a->status != 304;
    char expected[1000], text[HEAD_SIZE], told[50];

    head_without_date(a, text);
    snprintf(told, sizeof told, "Content-Length: %zu\r\n", length);
    snprintf(expected, sizeof expected,
             "HTTP/1.1 %u %s\r\n%s%sCache-Control: public, max-age=300\r\n%s%s\r\n", a->status,
             whole ? "OK" : "Not Modified", whole ? type : "", validators, whole ? ADVICE : "",
             whole || NOT_MODIFIED_HAS_LENGTH ? told : "");
    assert_string_equal(text, expected);
}

#define MODIFIED "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
static const struct {
    const char *path, *type, *validators;
} representations[] = {
    {"/gzip", "Content-Type: application/xml; charset=utf-8\r\nContent-Encoding: gzip\r\n",
     "ETag: \"gz\"\r\n" MODIFIED "Vary: Accept-Encoding\r\n"},
    {"/file", "Content-Type: application/gzip\r\n", "ETag: \"file\"\r\n" MODIFIED},
    {"/identity", "Content-Type: application/xml; charset=utf-8\r\n",
     "ETag: \"id\"\r\n" MODIFIED "Vary: Accept-Encoding\r\n"},
};

static void test_exact_headers(void **state)
{
    size_t size = 200000;
    char *xml = make_xml(size);
    current = make(xml, size, 1000000000);
    struct listener *l = start();
    int fd = live_connect(l); /* one connection: each reply ends where it says */
    for (size_t i = 0; i < 3; i++) {
        size_t length = i == 2 ? size : current->gzip_len;
        const char *bytes = i == 2 ? xml : (const char *)current->gzip;
        for (size_t k = 0; k < 4; k++) {
            char text[200];
            struct answer a;
            snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: a\r\n%s\r\n",
                     k % 2 == 0 ? "GET" : "HEAD", representations[i].path,
                     k < 2 ? "" : "If-None-Match: *\r\n");
            live_text(fd, text);
            live_read(fd, k % 2 == 1, &a);
            assert_int_equal(a.status, k < 2 ? 200 : 304);
            golden(&a, representations[i].type, representations[i].validators, length);
            if (k == 0) {
                assert_int_equal(a.len, length);
                assert_memory_equal(a.body, bytes, length);
            }
            answer_done(&a);
        }
    }
    close(fd);
    listener_stop(l, 2000);
    size_t gzip_len = current->gzip_len;
    atomic_store(&released, 0);
    resource_unref(current);
    assert_int_equal(atomic_load(&released), gzip_len);
    assert_int_equal(readers.taken, 0);
    free(xml);
}

/* Clock set back, or a page stamped ahead: never later than the reply (RFC 9110 8.8.2.1). */
static void test_modified_in_the_future(void **state)
{
    int64_t now = (int64_t)time(NULL);
    current = make("<x/>", 4, now + 100000);
    struct listener *l = start();
    struct answer a;
    char text[512];
    struct tm tm = {0};
    live_ask(l, "GET /gzip HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
    assert_non_null(strptime(answer_header(&a, "Last-Modified", text), "%a, %d %b %Y %T", &tm));
    assert_in_range(timegm(&tm), now, time(NULL));
    answer_done(&a);
    char request[1024];
    snprintf(request, sizeof request,
             "GET /gzip HTTP/1.1\r\nHost: a\r\nIf-Unmodified-Since: %s\r\n\r\n", text);
    live_ask(l, request, &a, NULL);
    assert_int_equal(a.status, 200); /* what was reported holds */
    answer_done(&a);
    listener_stop(l, 2000);
    resource_unref(current);
}

/* The snapshot is dropped by its publisher while a slow reader has half of it: it lives until the
 * last byte has left. And inflating ones are limited. */
static void test_retired_while_read(void **state)
{
    size_t size = 30000000;
    char *xml = make_xml(size);
    struct listener *l = start();
    for (int identity = 0; identity <= 1; identity++) {
        current = make(xml, size, 1000000000);
        atomic_store(&released, 0);
        size_t gzip_len = current->gzip_len;
        uint8_t *copy = malloc(gzip_len);
        memcpy(copy, current->gzip, gzip_len);
        int fd = live_connect(l);
        struct answer a;
        char byte;
        live_text(fd, identity ? "GET /identity HTTP/1.1\r\nHost: a\r\n\r\n"
                               : "GET /gzip HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_true(live_byte(fd, &byte)); /* the H */
        if (identity) {
            pthread_mutex_lock(&readers.lock);
            readers.first->since_ms = INT64_MAX; /* however long this takes, it is not slow */
            pthread_mutex_unlock(&readers.lock);
            live_ask(l, "GET /identity HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
            assert_int_equal(a.status, 503);
            char text[512];
            assert_non_null(answer_header(&a, "Retry-After", text));
            answer_done(&a);
            live_ask(l, "HEAD /identity HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
            assert_int_equal(a.status, 200);
            answer_done(&a);
        }
        resource_unref(current);
        assert_int_equal(atomic_load(&released), 0);
        size_t n = 1;
        a = (struct answer){.head = "H"};
        while (n < sizeof a.head - 1 && strstr(a.head, "\r\n\r\n") == NULL &&
               live_byte(fd, a.head + n))
            a.head[++n] = '\0';
        size_t want = identity ? size : gzip_len;
        char *body = malloc(want);
        for (size_t got = 0; got < want;) {
            ssize_t k = recv(fd, body + got, want - got, 0);
            assert_true(k > 0);
            got += (size_t)k;
        }
        assert_memory_equal(body, identity ? xml : (const char *)copy, want);
        await_released(gzip_len);
        close(fd);
        free(body);
        free(copy);
    }
    listener_stop(l, 2000);
    free(xml);
}

/* A page that cannot be inflated ends the connection instead of lying about its length. */
static void test_broken_page(void **state)
{
    size_t size = 100000;
    char *xml = make_xml(size);
    current = make(xml, size, 1000000000);
    current->gzip_len /= 2;
    struct listener *l = start();
    int fd = live_connect(l);
    struct answer a;
    live_text(fd, "GET /identity HTTP/1.1\r\nHost: a\r\n\r\n");
    live_read(fd, false, &a);
    assert_true(a.len < size);
    assert_true(live_ends(fd, LIVE_PATIENCE_MS));
    answer_done(&a);
    close(fd);
    listener_stop(l, 2000);
    resource_unref(current);
    assert_int_equal(readers.taken, 0);
    free(xml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_headers),
        cmocka_unit_test(test_modified_in_the_future),
        cmocka_unit_test(test_retired_while_read),
        cmocka_unit_test(test_broken_page),
    };
    readers_init(&readers, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
