/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/sitemaps: lists, replaces, and bodies of every size and shape. */
#include "tests/unit/api/world.h"

static struct question post(const char *target, const char *body)
{
    return (struct question){.method = HTTP_POST, .target = target, .type = NDJSON, .body = body};
}

static struct question put(const char *target, const char *body)
{
    return (struct question){.method = HTTP_PUT, .target = target, .type = NDJSON, .body = body};
}

static void append_lines(struct str *body, int first, int count)
{
    for (int i = first; i < first + count; i++)
        str_append_format(body, "{\"loc\":\"" ORIGIN "/s/%06d.xml\"}\n", i);
}

/* By the program: zlib belongs to other parts of the tree. */
static void gzip_text(const struct world *w, const struct str *text, struct str *out)
{
    char path[96], command[160], bytes[4096];
    FILE *file, *pipe;
    size_t n;

    snprintf(path, sizeof path, "%s/plain", w->folder);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text->data, 1, text->len, file), text->len);
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "gzip -c '%s'", path);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    while ((n = fread(bytes, 1, sizeof bytes, pipe)) > 0)
        str_append(out, bytes, n);
    assert_int_equal(pclose(pipe), 0);
}

static void test_all_or_nothing(void **state)
{
    struct world *w = *state;
    const char *body = "{\"loc\":\"" ORIGIN "/0.xml\"}\n"
                       "{\"loc\":\"https://other.example.org/1.xml\"}\n"
                       "{\"loc\":\"relative\"}\n"
                       "{\"loc\":\"" ORIGIN "/3.xml\",\"lastmod\":\"never\"}\n";
    struct question q = post("/v1/sitemaps", body);
    struct answer answer = ask_whole(w, &q);
    const char *text = str_text(&answer.body);

    assert_int_equal(answer.status, 422);
    assert_non_null(strstr(text, "\"entries-refused\""));
    assert_non_null(strstr(text, "\"rejected_total\":3"));
    /* Those of the form and those of the place alike, by line. */
    assert_true(strstr(text, "{\"line\":2,") < strstr(text, "{\"line\":3,"));
    assert_true(strstr(text, "{\"line\":3,") < strstr(text, "{\"line\":4,"));
    answer_done(&answer);
    expect(ask(w, HTTP_GET, "/v1/sitemaps", NO_BODY), 200, "{\"sitemaps\":[],");

    q.target = "/v1/sitemaps?on_error=skip";
    answer = ask_whole(w, &q);
    assert_non_null(strstr(str_text(&answer.body), "\"rejected_total\":2"));
    assert_non_null(strstr(str_text(&answer.body), "\"codes\":[\"lastmod-invalid\"]"));
    expect(answer, 200, "\"created\":2");
}

static void test_rejections_are_bounded(void **state)
{
    struct world *w = *state;
    struct str body = STR_INIT;
    struct question q;

    for (int i = 0; i < 50; i++)
        str_append_text(&body, "{\"loc\":\"relative\"}\n");
    q = post("/v1/sitemaps", str_text(&body));
    struct answer answer = ask_whole(w, &q);
    assert_int_equal(occurrences(&answer, "loc-relative"), 5);
    expect(answer, 422, "\"rejected_total\":50");
    str_done(&body);
}

static void test_large_bodies_go_through_workers(void **state)
{
    struct world *w = *state;
    struct str body = STR_INIT, gzip = STR_INIT;
    struct question q;

    append_lines(&body, 0, 5000);
    assert_true(body.len > 65536);
    q = post("/v1/sitemaps", str_text(&body));
    for (size_t piece = 4099; piece < 80000; piece *= 4) {
        q.piece = piece;
        expect(ask_whole(w, &q), 200, piece == 4099 ? "\"created\":5000" : "\"unchanged\":5000");
    }
    gzip_text(w, &body, &gzip);
    q.body = gzip.data;
    q.body_len = gzip.len;
    q.encoding = "gzip";
    q.piece = 1000;
    expect(ask_whole(w, &q), 200, "\"unchanged\":5000");
    q.encoding = NULL;
    expect(ask_whole(w, &q), 400, NULL);
    q.encoding = "br";
    expect(ask_whole(w, &q), 415, "\"unsupported-encoding\"");
    q.encoding = "gzip";
    q.body_len = gzip.len / 2;
    expect(ask_whole(w, &q), 400, NULL);
    q = post("/v1/sitemaps", str_text(&body));
    q.encoding = "gzip";
    expect(ask_whole(w, &q), 400, "\"malformed-gzip\"");
    str_done(&body);
    str_done(&gzip);
}

static void test_bombs_and_bounds(void **state)
{
    struct world *w = *state;
    struct str body = STR_INIT, gzip = STR_INIT;
    struct question q;

    w->app.max_bulk_bytes = 100000;
    append_lines(&body, 0, 5000);
    q = post("/v1/sitemaps", str_text(&body));
    q.piece = 30000;
    expect(ask_whole(w, &q), 413, "\"body-too-large\"");
    gzip_text(w, &body, &gzip);
    q.encoding = "gzip";
    q.body = gzip.data;
    q.body_len = gzip.len;
    expect(ask_whole(w, &q), 413, NULL);
    w->app.max_bulk_bytes = 1u << 24;
    w->app.max_bulk_entries = 4999;
    expect(ask_whole(w, &q), 413, "\"too-many-entries\"");
    str_done(&body);
    str_done(&gzip);
}

/* What comes behind a fault is read and dropped; the reply reports the fault. */
static void test_a_fault_in_the_middle(void **state)
{
    struct world *w = *state;
    struct str body = STR_INIT;
    struct question q;

    str_append_text(&body, "[{\"loc\":\"" ORIGIN "/a.xml\"},");
    for (int i = 0; i < 3000; i++)
        str_append_format(&body, i == 1500 ? "}" : "{\"loc\":\"" ORIGIN "/s/%06d.xml\"},", i);
    q = post("/v1/sitemaps", str_text(&body));
    q.type = JSON;
    q.piece = 10000;
    expect(ask_whole(w, &q), 400, "\"malformed-json\"");
    str_done(&body);
}

static void test_a_client_that_leaves(void **state)
{
    struct world *w = *state;
    struct str body = STR_INIT;
    struct question q;

    append_lines(&body, 0, 5000);
    q = post("/v1/sitemaps", str_text(&body));
    q.piece = 50000;
    q.leave = true;
    ask_whole(w, &q);
    q.body_len = 100;
    ask_whole(w, &q);
    str_done(&body);
    expect(ask(w, HTTP_GET, "/v1/sitemaps", NO_BODY), 200, "{\"sitemaps\":[],");
}

static void test_replace(void **state)
{
    struct world *w = *state;
    struct str body = STR_INIT;
    struct question q;

    append_lines(&body, 0, 100);
    q = put("/v1/sitemaps?index=/sitemap_index.xml", str_text(&body));
    expect(ask_whole(w, &q), 200, "\"created\":100");
    str_clear(&body);
    append_lines(&body, 10, 91);
    q.body = str_text(&body);
    expect(ask_whole(w, &q), 200, "{\"created\":1,\"updated\":0,\"unchanged\":90,\"removed\":10,");
    str_clear(&body);
    append_lines(&body, 60, 41);
    q.body = str_text(&body);
    struct answer held = ask_whole(w, &q);
    assert_non_null(strstr(str_text(&held.body), "\"would_remove\":50"));
    expect(held, 409, "\"shrink-guard\"");
    q.target = "/v1/sitemaps?index=" INDEX "&max_removed=50";
    expect(ask_whole(w, &q), 200, "\"removed\":50");
    q.body = "{\"loc\":\"relative\"}\n";
    expect(ask_whole(w, &q), 422, "\"entries-refused\"");
    q.target = "/v1/sitemaps?index=/none.xml";
    q.body = "{\"loc\":\"" ORIGIN "/x.xml\"}\n";
    expect(ask_whole(w, &q), 404, "\"index-unknown\"");
    q.target = "/v1/sitemaps?index=/sitemap_index.xml";
    q.type = JSON;
    expect(ask_whole(w, &q), 400, "\"list-needed\"");
    str_done(&body);
}

/* A replace touches its own source's entries, unless it says otherwise. */
static void test_replace_by_owner(void **state)
{
    struct world *w = *state;
    struct question q = post("/v1/sitemaps?source=other", "{\"loc\":\"" ORIGIN "/other.xml\"}\n");

    expect(ask_whole(w, &q), 200, "\"created\":1");
    q = put("/v1/sitemaps?index=/sitemap_index.xml", "{\"loc\":\"" ORIGIN "/own.xml\"}\n");
    expect(ask_whole(w, &q), 200, "\"removed\":0");
    q.target = "/v1/sitemaps?index=/sitemap_index.xml&source=*&max_removed=1";
    expect(ask_whole(w, &q), 200, "\"removed\":1");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?source=other", NO_BODY), 200, "{\"sitemaps\":[],");
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, world_with_site, world_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_all_or_nothing),
        CASE(test_rejections_are_bounded),
        CASE(test_large_bodies_go_through_workers),
        CASE(test_bombs_and_bounds),
        CASE(test_a_fault_in_the_middle),
        CASE(test_a_client_that_leaves),
        CASE(test_replace),
        CASE(test_replace_by_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
