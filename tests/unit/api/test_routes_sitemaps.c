/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/sitemaps: one entry. */
#include "server/rules/lastmod.h"
#include "tests/unit/api/world.h"

static void test_one_entry_lives_and_goes(void **state)
{
    struct world *w = *state;
    struct answer made = ask(w, HTTP_POST, "/v1/sitemaps",
                             "{\"loc\":\"" ORIGIN "/a.xml\",\"lastmod\":\"2026-01-31T10:20Z\"}");
    char id[64], path[96];

    assert_int_equal(made.status, 201);
    member(&made, "id", id, sizeof id);
    snprintf(path, sizeof path, "/v1/sitemaps/%s", id);
    assert_string_equal(made.location, path);
    assert_true(made.etag[0] == '"');
    for (const char **text =
             (const char *[]){"{\"created\":1,\"updated\":0,\"unchanged\":0,\"removed\":0,",
                              "\"rejected\":[]", "\"lastmod\":\"2026-01-31T10:20:00Z\"",
                              "\"digest\":null", "\"source\":\"environment\"",
                              "\"index\":\"" INDEX "\"", "\"page\":1", "\"warnings\":[]", NULL};
         *text != NULL; text++)
        if (strstr(str_text(&made.body), *text) == NULL)
            fail_msg("%s is not in %s", *text, str_text(&made.body));

    struct answer one = ask(w, HTTP_GET, path, NO_BODY);
    assert_int_equal(one.status, 200);
    assert_string_equal(one.etag, made.etag);
    expect(
        ask_whole(
            w, &(struct question){.method = HTTP_GET, .target = path, .if_none_match = one.etag}),
        304, NULL);
    expect(ask(w, HTTP_DELETE, path, NO_BODY), 204, NULL);
    expect(ask(w, HTTP_DELETE, path, NO_BODY), 404, "\"not-found\"");
    expect(ask(w, HTTP_GET, path, NO_BODY), 404, "\"not-found\"");
    answer_done(&made);
    answer_done(&one);
}

static void test_upsert(void **state)
{
    struct world *w = *state;

    expect(ask(w, HTTP_POST, "/v1/sitemaps",
               "{\"loc\":\"" ORIGIN "/a.xml\",\"lastmod\":\"2026-01-31\",\"digest\":\"x\"}"),
           201, "\"warnings\":[\"lastmod-date-only\"]");
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}"), 200,
           "\"unchanged\":1");
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\",\"lastmod\":null}"),
           200, "\"updated\":1");
    expect(ask(w, HTTP_POST, "/v1/sitemaps",
               "{\"loc\":\"" ORIGIN "/a.xml\",\"index\":\"/sitemap_index.xml\"}"),
           200, "\"lastmod\":null");
}

static void test_preconditions(void **state)
{
    struct world *w = *state;
    const char *body = "{\"loc\":\"" ORIGIN "/a.xml\",\"digest\":\"2\"}";
    struct answer made = ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}");

    assert_int_equal(made.status, 201);
    expect(ask_whole(w, &(struct question){.method = HTTP_POST,
                                           .target = "/v1/sitemaps",
                                           .body = body,
                                           .if_match = "\"other\""}),
           412, "\"precondition-failed\"");
    expect(ask_whole(w, &(struct question){.method = HTTP_POST,
                                           .target = "/v1/sitemaps",
                                           .body = body,
                                           .if_match = made.etag}),
           200, "\"updated\":1");
    expect(ask_whole(w, &(struct question){.method = HTTP_DELETE,
                                           .target = made.location,
                                           .if_match = made.etag}),
           412, "\"precondition-failed\"");
    expect(
        ask_whole(
            w, &(struct question){.method = HTTP_DELETE, .target = made.location, .if_match = "*"}),
        204, NULL);
    expect(ask_whole(w, &(struct question){.method = HTTP_POST,
                                           .target = "/v1/sitemaps",
                                           .body = "[]",
                                           .if_match = "*"}),
           400, "\"precondition-on-list\"");
    answer_done(&made);
}

static void test_refusals(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *body;
        unsigned status;
        const char *code, *field;
    } cases[] = {
        {"", 400, NULL, NULL},
        {"{", 400, "malformed-json", NULL},
        {"null", 400, NULL, NULL},
        {"{\"loc\":\"" ORIGIN "/a.xml\"} x", 400, "malformed-json", NULL},
        {"{}", 422, "loc-missing", "loc"},
        {"{\"loc\":7}", 422, "wrong-type", "loc"},
        {"{\"loc\":\"a\"}", 422, "loc-relative", "loc"},
        {"{\"loc\":\"" ORIGIN "/a.xml\",\"priority\":1}", 422, "unknown-field", "priority"},
        {"{\"loc\":\"" ORIGIN "/a.xml\",\"lastmod\":\"x\"}", 422, "lastmod-invalid", "lastmod"},
        {"{\"loc\":\"https://other.example.org/a.xml\"}", 422, "site-unknown", "loc"},
        {"{\"loc\":\"" INDEX "\"}", 422, "loc-is-index-page", "loc"},
        {"{\"loc\":\"" ORIGIN "/a.xml\",\"index\":\"/none.xml\"}", 422, "index-unknown", "index"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answer answer = ask(w, HTTP_POST, "/v1/sitemaps", cases[i].body);
        char text[64];

        if (cases[i].field != NULL) {
            snprintf(text, sizeof text, "\"field\":\"%s\"", cases[i].field);
            if (strstr(str_text(&answer.body), text) == NULL)
                fail_msg("%s: %s", cases[i].body, str_text(&answer.body));
        }
        expect(answer, cases[i].status, cases[i].code);
    }
    expect(ask(w, HTTP_GET, "/v1/sitemaps", NO_BODY), 200, "{\"sitemaps\":[],\"next\":null}");
}

static void test_queries(void **state)
{
    struct world *w = *state;

    expect(ask(w, HTTP_GET, "/v1/sitemaps?nonsense=1", NO_BODY), 400, "\"unknown-parameter\"");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?limit=1&limit=2", NO_BODY), 400, "repeated-parameter");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?limit=1001", NO_BODY), 400, "malformed-parameter");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?limit=0", NO_BODY), 400, "malformed-parameter");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?prefix=%zz", NO_BODY), 400, "malformed-query");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?after=x", NO_BODY), 400, "malformed-cursor");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?index=/none.xml", NO_BODY), 404, "index-unknown");
    expect(ask(w, HTTP_DELETE, "/v1/sitemaps", NO_BODY), 400, "missing-parameter");
    expect(ask(w, HTTP_DELETE, "/v1/sitemaps?loc=relative", NO_BODY), 422, "loc-relative");
    expect(ask(w, HTTP_DELETE, "/v1/sitemaps?loc=" ORIGIN "/a.xml", NO_BODY), 404, "not-found");
    expect(ask(w, HTTP_POST, "/v1/sitemaps?on_error=x", "[]"), 400, "malformed-parameter");
    expect(ask(w, HTTP_POST, "/v1/sitemaps?source=a+b", "[]"), 422, "name-malformed");
    expect(ask(w, HTTP_PUT, "/v1/sitemaps", "[]"), 400, "missing-parameter");
}

static void test_lists(void **state)
{
    struct world *w = *state;
    char cursor[256], target[400];
    struct str body = STR_INIT;

    for (int i = 0; i < 25; i++)
        str_append_format(&body, "{\"loc\":\"" ORIGIN "/%c/%02d.xml\"}\n", i % 2 ? 'b' : 'a', i);
    expect(ask_whole(w, &(struct question){.method = HTTP_POST,
                                           .target = "/v1/sitemaps",
                                           .type = NDJSON,
                                           .body = str_text(&body)}),
           200, "\"created\":25");
    str_done(&body);

    struct answer first = ask(w, HTTP_GET, "/v1/sitemaps?limit=20", NO_BODY);
    assert_int_equal(occurrences(&first, "\"loc\":"), 20);
    member(&first, "next", cursor, sizeof cursor);
    snprintf(target, sizeof target, "/v1/sitemaps?limit=20&after=%s", cursor);
    struct answer second = ask(w, HTTP_GET, target, NO_BODY);
    assert_int_equal(occurrences(&second, "\"loc\":"), 5);
    expect(second, 200, "\"next\":null");
    /* Exactly as many as there are: no further page. */
    expect(ask(w, HTTP_GET, "/v1/sitemaps?limit=25", NO_BODY), 200, "\"next\":null");
    struct answer b = ask(w, HTTP_GET, "/v1/sitemaps?prefix=" ORIGIN "/b/", NO_BODY);
    assert_int_equal(occurrences(&b, "\"loc\":"), 12);
    expect(ask(w, HTTP_GET, "/v1/sitemaps?loc=" ORIGIN "/a/02.xml", NO_BODY), 200, "/a/02.xml");
    expect(ask(w, HTTP_GET, "/v1/sitemaps?source=nobody", NO_BODY), 200, "{\"sitemaps\":[],");
    expect(ask_whole(w, &(struct question){.method = HTTP_GET,
                                           .target = "/v1/sitemaps?limit=20",
                                           .if_none_match = first.etag}),
           304, NULL);
    answer_done(&first);
    answer_done(&b);
}

/* Of a shared catalogue it is that of the log: a node whose clock is behind drops no date. */
static void test_dates_in_the_future_are_found_by_the_catalogues_clock(void **state)
{
    struct world *w = *state;
    char body[128], date[21];

    lastmod_format_utc((int64_t)time(NULL) + 39 * 86400, date);
    snprintf(body, sizeof body, "{\"loc\":\"" ORIGIN "/a.xml\",\"lastmod\":\"%s\"}", date);
    expect(ask(w, HTTP_POST, "/v1/sitemaps", body), 201, "\"warnings\":[\"lastmod-in-future\"]");
    world_ahead_s = 40 * 86400;
    expect(ask(w, HTTP_POST, "/v1/sitemaps", body), 200, "\"warnings\":[]");
    world_ahead_s = 0;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, world_with_site, world_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_one_entry_lives_and_goes),
        CASE(test_upsert),
        CASE(test_dates_in_the_future_are_found_by_the_catalogues_clock),
        CASE(test_preconditions),
        CASE(test_refusals),
        CASE(test_queries),
        CASE(test_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
