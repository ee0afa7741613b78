#include <zlib.h>

#include "server/http/page_response.h"
#include "tests/unit/http/live.h"

/* The prebuilt responses of a snapshot, as they go over the wire. */

static struct page_response_options pages = {.cache_control = "public, max-age=300",
                                             .max_identity = 1};
static struct snapshot *current;
static atomic_size_t released;

static void count_released(void *context, size_t bytes)
{
    (void)context;
    atomic_fetch_add(&released, bytes);
}

static char *make_xml(size_t size)
{
    char *xml = malloc(size + 1);
    uint32_t x = 7;

    assert_non_null(xml);
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        xml[i] = (char)(' ' + (x >> 24) % 90);
    }
    xml[size] = '\0';
    return xml;
}

static struct snapshot *make(const char *xml, size_t size, int64_t changed_at)
{
    struct snapshot *s = snapshot_new();
    uLong bound = compressBound(size) + 100;
    uint8_t *gzip = malloc(bound);
    z_stream z = {.next_in = (z_const Bytef *)xml,
                  .avail_in = (uInt)size,
                  .next_out = gzip,
                  .avail_out = (uInt)bound};

    assert_non_null(s);
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    s->gzip = gzip;
    s->gzip_len = z.total_out;
    deflateEnd(&z);
    s->raw_len = size;
    s->entries = 1;
    s->changed_at = changed_at;
    strcpy(s->etag_gzip, "\"gz\"");
    strcpy(s->etag_identity, "\"id\"");
    strcpy(s->etag_file, "\"file\"");
    s->released = count_released;
    assert_true(page_response_attach(&pages, s));
    return s;
}

static enum handled serve(void *context, struct request *request)
{
    static const char *const names[] = {"/identity", "/gzip", "/file"};

    (void)context;
    snapshot_ref(current);
    request->reply.snapshot = current;
    request->reply.status = request_header(request, "If-None-Match") == NULL ? 200 : 304;
    for (int i = 0; i < 3; i++)
        if (strcmp(request->path, names[i]) == 0)
            request->reply.represent = (enum representation)i;
    return HANDLED;
}

static const struct route route = {
    .methods = HTTP_GET, .label = "page", .asks_to_wait = true, .finish = serve};

static struct listener *start(void)
{
    struct listener_options options = live_options(NULL, 0);
    options.fallback = &route;
    options.problem_json = false;
    return live_start(&options);
}

static void golden(const struct answer *a, const char *headers, size_t length)
{
    char expected[1000], *date = strstr(a->head, "Date: ");
    char text[4000];

    assert_non_null(date);
    strcpy(text, a->head);
    memmove(text + (date - a->head), strchr(date, '\n') + 1, strlen(strchr(date, '\n') + 1) + 1);
    snprintf(expected, sizeof expected,
             "HTTP/1.1 %u %s\r\n%sCache-Control: public, max-age=300\r\n"
             "X-Content-Type-Options: nosniff\r\nX-Robots-Tag: noindex\r\n"
             "Accept-Ranges: none\r\nContent-Length: %zu\r\n\r\n",
             a->status, a->status == 304 ? "Not Modified" : "OK", headers, length);
    assert_string_equal(text, expected);
}

#define MODIFIED "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
static const struct {
    const char *path, *headers;
} representations[] = {
    {"/gzip", "Content-Type: application/xml; charset=utf-8\r\nContent-Encoding: gzip\r\n"
              "ETag: \"gz\"\r\n" MODIFIED "Vary: Accept-Encoding\r\n"},
    {"/file", "Content-Type: application/gzip\r\nETag: \"file\"\r\n" MODIFIED},
    {"/identity", "Content-Type: application/xml; charset=utf-8\r\n"
                  "ETag: \"id\"\r\n" MODIFIED "Vary: Accept-Encoding\r\n"},
};

static void test_exact_headers(void **state)
{
    (void)state;
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
            golden(&a, representations[i].headers, length);
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
    snapshot_unref(current);
    assert_int_equal(atomic_load(&released), gzip_len);
    assert_int_equal(atomic_load(&pages.inflating), 0);
    free(xml);
}

/* Clock set back, or a page stamped ahead: never later than the reply (RFC 9110 8.8.2.1). */
static void test_modified_in_the_future(void **state)
{
    (void)state;
    int64_t now = (int64_t)time(NULL);
    current = make("<x/>", 4, now + 100000);
    struct listener *l = start();
    struct answer a;
    char text[512];
    struct tm tm = {0};
    live_ask(l, "GET /gzip HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
    assert_non_null(strptime(answer_header(&a, "Last-Modified", text), "%a, %d %b %Y %T", &tm));
    assert_in_range(timegm(&tm), now, now + 5);
    answer_done(&a);
    listener_stop(l, 2000);
    snapshot_unref(current);
}

/* The snapshot is dropped by its publisher while a slow reader has half of it: it lives until the
 * last byte has left. And inflating ones are limited. */
static void test_retired_while_read(void **state)
{
    (void)state;
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
        assert_true(live_byte(fd, &byte, 5000)); /* the H */
        if (identity) {
            live_ask(l, "GET /identity HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
            assert_int_equal(a.status, 503);
            char text[512];
            assert_non_null(answer_header(&a, "Retry-After", text));
            answer_done(&a);
            live_ask(l, "HEAD /identity HTTP/1.1\r\nHost: a\r\n\r\n", &a, NULL);
            assert_int_equal(a.status, 200);
            answer_done(&a);
        }
        snapshot_unref(current);
        assert_int_equal(atomic_load(&released), 0);
        size_t n = 1;
        a = (struct answer){.head = "H"};
        while (n < sizeof a.head - 1 && strstr(a.head, "\r\n\r\n") == NULL &&
               live_byte(fd, a.head + n, 5000))
            a.head[++n] = '\0';
        size_t want = identity ? size : gzip_len;
        char *body = malloc(want);
        for (size_t got = 0; got < want;) {
            ssize_t k = recv(fd, body + got, want - got, 0);
            assert_true(k > 0);
            got += (size_t)k;
        }
        assert_memory_equal(body, identity ? xml : (const char *)copy, want);
        for (int i = 0; i < 1000 && atomic_load(&released) == 0; i++)
            live_sleep_ms(5);
        assert_int_equal(atomic_load(&released), gzip_len);
        close(fd);
        free(body);
        free(copy);
    }
    listener_stop(l, 2000);
    free(xml);
}

/* Begins to read the current page and stops behind the first byte. */
static int start_reading(struct listener *l)
{
    int fd = live_connect(l);
    char byte;

    live_text(fd, "GET /gzip HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(live_byte(fd, &byte, 5000));
    return fd;
}

/* Reads on to the end; how much came. */
static size_t read_on(int fd)
{
    static char bytes[1 << 16];
    size_t sum = 0;
    ssize_t got;

    shutdown(fd, SHUT_WR); /* the server ends too, behind the reply */
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        sum += (size_t)got;
    close(fd);
    return sum;
}

static void await_released(size_t bytes)
{
    for (int i = 0; i < 1000 && atomic_load(&released) < bytes; i++)
        live_sleep_ms(5);
    assert_int_equal(atomic_load(&released), bytes);
}

/* Memory that slow readers hold is taken back: from retired pages only, the one that is read
 * longest first, no more than is asked for. */
static void test_slow_readers(void **state)
{
    (void)state;
    enum { PAGES = 4, CURRENT = 3 };
    size_t size = 20000000, length[PAGES];
    char *xml = make_xml(size);
    struct listener *l = start();
    struct snapshot *page[PAGES];
    int fd[PAGES][2];

    atomic_store(&released, 0);
    for (int i = 0; i < PAGES; i++) {
        current = page[i] = make(xml, size, 1000000000);
        length[i] = current->gzip_len;
        for (int k = 0; k < 2; k++)
            fd[i][k] = start_reading(l);
    }
    for (int i = 0; i < PAGES; i++) {
        if (i != CURRENT)
            atomic_store(&page[i]->retired, true);
        snapshot_unref(page[i]);
    }
    page_response_cut(&pages, 0);
    assert_int_equal(pages.readers.ending_bytes, 0);
    page_response_cut(&pages, 1);
    await_released(length[0]);
    page_response_cut(&pages, length[1]);
    await_released(length[0] + length[1]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            assert_true(read_on(fd[i][k]) < length[i]);
    assert_true(read_on(fd[2][0]) > length[2]);
    page_response_cut(&pages, UINT64_MAX);
    assert_true(read_on(fd[2][1]) < length[2]);
    for (int k = 0; k < 2; k++)
        assert_true(read_on(fd[CURRENT][k]) > length[CURRENT]);
    await_released(length[0] + length[1] + length[2] + length[3]);
    listener_stop(l, 2000);
    assert_int_equal(pages.readers.ending_bytes, 0);
    assert_null(pages.readers.first);
    assert_null(pages.readers.last);
    free(xml);
}

/* What is about to be free, its readers being cut and not yet gone, is not asked for again. */
static void test_what_is_ending_counts(void **state)
{
    (void)state;
    struct page_readers readers;
    struct snapshot *page[2] = {snapshot_new(), snapshot_new()};
    struct page_held held[2] = {{.snapshot = page[0]}, {.snapshot = page[1]}};
    struct page_reader reader[2];
    int fd[2][2];
    char byte;

    page_readers_init(&readers);
    for (int i = 0; i < 2; i++) {
        page[i]->gzip_len = 1000;
        atomic_store(&page[i]->retired, true);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]), 0);
        page_readers_enter(&readers, &reader[i], &held[i], fd[i][0]);
    }
    page_readers_cut(&readers, 1);
    page_readers_cut(&readers, 1000);
    assert_int_equal(readers.ending_bytes, 1000);
    assert_int_equal(page_readers_count_cut(&readers), 1);
    assert_int_equal(recv(fd[0][1], &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(recv(fd[1][1], &byte, 1, MSG_DONTWAIT), -1);
    page_readers_leave(&reader[0]);
    assert_int_equal(readers.ending_bytes, 0);
    page_readers_cut(&readers, 1000);
    assert_int_equal(recv(fd[1][1], &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(page_readers_count_cut(&readers), 2);
    page_readers_leave(&reader[1]);
    page_readers_done(&readers);
    for (int i = 0; i < 2; i++) {
        close(fd[i][0]);
        close(fd[i][1]);
        page[i]->gzip_len = 0;
        snapshot_unref(page[i]);
    }
}

/* A page that cannot be inflated ends the connection instead of lying about its length. */
static void test_broken_page(void **state)
{
    (void)state;
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
    assert_true(live_ends(fd, 2000));
    answer_done(&a);
    close(fd);
    listener_stop(l, 2000);
    snapshot_unref(current);
    assert_int_equal(atomic_load(&pages.inflating), 0);
    free(xml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_headers),         cmocka_unit_test(test_modified_in_the_future),
        cmocka_unit_test(test_retired_while_read),    cmocka_unit_test(test_slow_readers),
        cmocka_unit_test(test_what_is_ending_counts), cmocka_unit_test(test_broken_page),
    };
    page_readers_init(&pages.readers);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
