/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/sites, /v1/indexes, /v1/changes. */
#include "tests/unit/api/world.h"

static void test_sites(void **state)
{
    struct world *w = *state;
    char path[80];
    struct answer made = ask(w, HTTP_POST, "/v1/sites",
                             "{\"origin\":\"https://Shop.Example.org:443/\",\"cross_hosts\":"
                             "[\"cdn.example.net\"],\"max_indexes\":7}");

    snprintf(path, sizeof path, "%s", made.location);
    expect(made, 201,
           "\"origin\":\"https://shop.example.org\",\"cross_hosts\":[\"cdn.example.net\"],"
           "\"host_aliases\":[],\"max_indexes\":7,\"managed\":false,\"frozen\":false,"
           "\"frozen_by\":null,\"check\":false,\"indexes\":1,\"robots\":null}");
    expect(ask(w, HTTP_POST, "/v1/sites", "{\"origin\":\"https://shop.example.org\"}"), 409,
           "\"site-exists\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "{\"origin\":\"https://b.example\",\"index\":false}"),
           201, "\"indexes\":0,\"robots\":null}");
    expect(
        ask(w, HTTP_POST, "/v1/sites", "{\"origin\":\"https://c.example\",\"index\":\"/x.html\"}"),
        422, "\"index-path\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "{\"origin\":\"https://c.example/path\"}"), 422,
           "\"field\":\"origin\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "{\"origin\":7}"), 422, "\"wrong-type\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "{}"), 422, "\"missing-field\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "{\"orign\":\"x\"}"), 422, "\"unknown-field\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "[]"), 400, "\"malformed-json\"");
    expect(ask(w, HTTP_POST, "/v1/sites", "{\"origin\":\"x\",\"origin\":\"y\"}"), 400,
           "\"malformed-json\"");

    expect(ask(w, HTTP_PATCH, path, "{\"host_aliases\":[\"SHOP.example.net\"]}"), 200,
           "\"cross_hosts\":[\"cdn.example.net\"],\"host_aliases\":[\"shop.example.net\"]");
    expect(ask(w, HTTP_PATCH, path, "{\"cross_hosts\":[]}"), 200, "\"cross_hosts\":[]");
    expect(ask(w, HTTP_PATCH, path, "{\"cross_hosts\":[\"a b\"]}"), 422, "\"host-malformed\"");
    expect(ask(w, HTTP_PATCH, path, "{\"origin\":\"https://d.example\"}"), 422, "unknown-field");
    expect(ask(w, HTTP_PATCH, "/v1/sites/999", "{\"cross_hosts\":[]}"), 404, "\"not-found\"");
    expect(ask(w, HTTP_GET, path, NO_BODY), 200, "shop.example.net");
    expect(ask(w, HTTP_GET, "/v1/sites/0", NO_BODY), 404, "\"not-found\"");
    expect(ask(w, HTTP_GET, "/v1/sites/x", NO_BODY), 404, "\"not-found\"");

    struct answer first = ask(w, HTTP_GET, "/v1/sites?limit=2", NO_BODY);
    assert_int_equal(occurrences(&first, "\"origin\""), 2);
    expect(first, 200, "\"next\":\"https://shop.example.org\"");
    expect(ask(w, HTTP_GET, "/v1/sites?limit=2&after=https://shop.example.org", NO_BODY), 200,
           "\"next\":null");
    expect(ask(w, HTTP_DELETE, path, NO_BODY), 200, "{\"removed\":0,\"indexes\":1,");
    expect(ask(w, HTTP_DELETE, path, NO_BODY), 404, "\"not-found\"");
}

static void test_indexes(void **state)
{
    struct world *w = *state;
    char path[80];
    struct answer made = ask(w, HTTP_POST, "/v1/indexes", "{\"url\":\"/shop/index.xml\"}");

    snprintf(path, sizeof path, "%s", made.location);
    expect(made, 201,
           "\"url\":\"" ORIGIN "/shop/index.xml\",\"site\":\"" ORIGIN
           "\",\"page_pattern\":\"{stem}-{n}{suffix}\",\"frozen\":false,\"frozen_by\":null,"
           "\"entries\":0,\"bytes\":0,\"changed_at\":null,\"state\":null,\"pages\":[]}");
    expect(ask(w, HTTP_POST, "/v1/indexes", "{\"url\":\"" ORIGIN "/shop/index.xml\"}"), 409,
           "\"index-exists\"");
    expect(ask(w, HTTP_POST, "/v1/indexes", "{\"url\":\"" ORIGIN "/robots.txt\"}"), 422, NULL);
    expect(ask(w, HTTP_POST, "/v1/indexes", "{\"url\":\"https://x.example/i.xml\"}"), 422,
           "\"site-unknown\"");
    expect(ask(w, HTTP_POST, "/v1/indexes", "{\"url\":\"/i.xml\",\"page_pattern\":\"{n}\"}"), 422,
           "\"index-pattern\"");

    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/shop/a.xml\"}"), 201,
           "/shop/index.xml");
    expect(ask(w, HTTP_GET, path, NO_BODY), 200,
           "\"pages\":[{\"number\":1,\"url\":\"" ORIGIN "/shop/index.xml\",\"entries\":1,");
    expect(ask(w, HTTP_GET, "/v1/indexes?limit=1", NO_BODY), 200,
           "\"next\":\"" ORIGIN "/shop/index.xml\"");
    expect(ask(w, HTTP_GET, "/v1/indexes?limit=1&after=" ORIGIN "/shop/index.xml", NO_BODY), 200,
           INDEX);
    expect(ask(w, HTTP_GET, "/v1/indexes?site=1", NO_BODY), 200, INDEX);
    expect(ask(w, HTTP_GET, "/v1/indexes?site=2", NO_BODY), 404, "\"site-unknown\"");
    expect(ask(w, HTTP_GET, "/v1/indexes?after=x", NO_BODY), 400, "\"malformed-cursor\"");

    expect(ask(w, HTTP_DELETE, path, NO_BODY), 409, "\"would_remove\":1");
    char forced[128];
    snprintf(forced, sizeof forced, "%s?max_removed=1", path);
    expect(ask(w, HTTP_DELETE, forced, NO_BODY), 200, "{\"removed\":1,\"indexes\":1,");
    expect(ask(w, HTTP_GET, path, NO_BODY), 404, "\"not-found\"");
    expect(ask(w, HTTP_DELETE, path, NO_BODY), 404, "\"not-found\"");
}

static void since(struct answer *answer, char *target, size_t size, const char *more)
{
    char next[96];

    member(answer, "next", next, sizeof next);
    snprintf(target, size, "/v1/changes?since=%s%s", next, more);
    answer_done(answer);
}

static void test_changes(void **state)
{
    struct world *w = *state;
    char target[160];
    struct answer answer = ask(w, HTTP_GET, "/v1/changes", NO_BODY);

    since(&answer, target, sizeof target, "");
    expect(ask(w, HTTP_GET, target, NO_BODY), 200, "\"pages\":[]}");
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}"), 201, NULL);
    answer = ask(w, HTTP_GET, target, NO_BODY);
    assert_int_equal(occurrences(&answer, "\"url\""), 3);
    assert_non_null(strstr(str_text(&answer.body), "{\"url\":\"" INDEX "\""));
    assert_non_null(strstr(str_text(&answer.body), "{\"url\":\"" INDEX ".gz\""));
    assert_non_null(strstr(str_text(&answer.body), "{\"url\":\"" ORIGIN "/robots.txt\""));
    since(&answer, target, sizeof target, "");

    /* The same set of pages: robots.txt stays as it is. */
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/b.xml\"}"), 201, NULL);
    answer = ask(w, HTTP_GET, target, NO_BODY);
    assert_int_equal(occurrences(&answer, "\"url\""), 2);
    since(&answer, target, sizeof target, "&wait=1");
    expect(ask(w, HTTP_GET, target, NO_BODY), 200, "\"pages\":[]}");

    expect(ask(w, HTTP_DELETE, "/v1/indexes/1?max_removed=2", NO_BODY), 200, NULL);
    expect(ask(w, HTTP_GET, target, NO_BODY), 200, "\"removed\":true");
}

static void test_revisions_unknown(void **state)
{
    struct world *w = *state;
    char target[160], next[96];
    struct answer answer = ask(w, HTTP_GET, "/v1/changes?since=0", NO_BODY);

    expect(ask(w, HTTP_GET, "/v1/changes?since=0123456789abcdef-1", NO_BODY), 410,
           "\"revision-unknown\"");
    expect(ask(w, HTTP_GET, "/v1/changes?since=5", NO_BODY), 410, "\"revision-unknown\"");
    expect(ask(w, HTTP_GET, "/v1/changes?since=x", NO_BODY), 400, "\"malformed-parameter\"");
    expect(ask(w, HTTP_GET, "/v1/changes?since=-1", NO_BODY), 400, "\"malformed-parameter\"");
    expect(ask(w, HTTP_GET, "/v1/changes?wait=61", NO_BODY), 400, "\"malformed-parameter\"");
    member(&answer, "next", next, sizeof next);
    snprintf(target, sizeof target, "/v1/changes?since=%.*s-999", (int)strcspn(next, "-"), next);
    expect(ask(w, HTTP_GET, target, NO_BODY), 410, "\"revision-unknown\"");
    answer_done(&answer);
}

struct waiting {
    struct world *world;
    const char *target;
    struct answer answer;
};

static void *wait_for_change(void *context)
{
    struct waiting *waiting = context;

    waiting->answer = ask(waiting->world, HTTP_GET, waiting->target, NO_BODY);
    return NULL;
}

static void test_a_long_poll_hears_a_change(void **state)
{
    struct world *w = *state;
    char target[160];
    struct answer answer = ask(w, HTTP_GET, "/v1/changes", NO_BODY);
    struct waiting waiting[40];
    pthread_t threads[40];

    since(&answer, target, sizeof target, "&wait=30");
    for (size_t i = 0; i < 40; i++) {
        waiting[i] = (struct waiting){.world = w, .target = target};
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_change, &waiting[i]), 0);
    }
    usleep(200000);
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}"), 201, NULL);
    for (size_t i = 0; i < 40; i++) {
        pthread_join(threads[i], NULL);
        expect(waiting[i].answer, 200, "{\"url\":\"" INDEX "\"");
    }
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, world_with_site, world_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_sites),
        CASE(test_indexes),
        CASE(test_changes),
        CASE(test_revisions_unknown),
        CASE(test_a_long_poll_hears_a_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
