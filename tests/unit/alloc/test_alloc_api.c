/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The handlers: where memory runs out the client gets an error (503, or the listener's own 500),
 * and a 503 means that nothing was applied. */
#include "tests/unit/alloc/alloc.h"
#include "tests/unit/api/world.h"

#include <sqlite3.h>

struct call {
    struct world *world;
    struct question question;
    unsigned good; /* the status */
};

static void relent(void)
{
    alloc_disarm(); /* what is acknowledged late waits for memory */
}

static bool ask_once(void *context)
{
    struct call *call = context;
    call->question.may_fail = true;
    call->question.late = relent;
    struct answer answer = ask_whole(call->world, &call->question);
    bool good = !answer.failed && answer.status == call->good;
    if (!good && !answer.failed && answer.status != 503)
        fail_msg("%s: %u: %s", call->question.target, answer.status, str_text(&answer.body));
    if (good)
        assert_true(answer.body.len > 0);
    answer_done(&answer);
    return good;
}

#define URL(name) ORIGIN "/" name ".xml"

static void test_reads_and_writes(void **state)
{
    struct world *w = *state;
    static const struct {
        enum http_method method;
        const char *target, *type, *body;
        unsigned status;
    } rows[] = {
        {HTTP_POST, "/v1/sitemaps", NULL, "{\"loc\":\"" URL("one") "\"}", 200},
        {HTTP_POST, "/v1/sitemaps", NULL,
         "[{\"loc\":\"" URL("a") "\"},{\"loc\":\"" URL("b") "\",\"lastmod\":\"2026-01-01\"}]", 200},
        {HTTP_POST, "/v1/sitemaps", NDJSON,
         "{\"loc\":\"" URL("c") "\"}\n{\"loc\":\"" URL("d") "\"}\n", 200},
        {HTTP_PUT, "/v1/sitemaps?index=/sitemap_index.xml&prefix=" ORIGIN "/x/", NDJSON,
         "{\"loc\":\"" URL("x/c") "\"}\n", 200},
        {HTTP_GET, "/v1/sitemaps?limit=3", NULL, NULL, 200},
        {HTTP_GET, "/v1/sites", NULL, NULL, 200},
        {HTTP_GET, "/v1/indexes", NULL, NULL, 200},
        {HTTP_GET, "/v1/changes?since=0", NULL, NULL, 200},
        {HTTP_GET, "/metrics", NULL, NULL, 200},
        {HTTP_GET, "/readyz", NULL, NULL, 200},
        {HTTP_POST, "/v1/sites", NULL, "{\"origin\":\"ftp://no\",\"cross_hosts\":[\"a.example\"]}",
         422},
    };
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" URL("one") "\"}"), 201, "one");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call call = {.world = w,
                            .question = {.method = rows[i].method,
                                         .target = rows[i].target,
                                         .type = rows[i].type,
                                         .body = rows[i].body},
                            .good = rows[i].status};
        alloc_sweep(rows[i].target, ask_once, &call);
    }
}

/* 503 and it is there, or 201 and it is not, would be a lie. */
static void test_a_503_applied_nothing(void **state)
{
    struct world *w = *state;
    unsigned refused = 0, done = 0;
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" URL("one") "\"}"), 201, "one");
    for (uint64_t at = 1; at < 150; at++) {
        char body[120], target[120];
        snprintf(body, sizeof body, "{\"loc\":\"" ORIGIN "/n%u.xml\"}", (unsigned)at);
        snprintf(target, sizeof target, "/v1/sitemaps?prefix=" ORIGIN "/n%u.xml", (unsigned)at);
        const struct question question = {.method = HTTP_POST,
                                          .target = "/v1/sitemaps",
                                          .body = body,
                                          .may_fail = true,
                                          .late = relent};
        /* After a failure the writer reads again what it caches. */
        expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" URL("one") "\"}"), 200, "one");
        alloc_arm(at, at % 2 == 0);
        struct answer answer = ask_whole(w, &question);
        alloc_disarm();
        struct answer list = ask(w, HTTP_GET, target, NULL);
        bool there = occurrences(&list, "\"loc\":") == 1;
        if (!answer.failed && (answer.status == 503) == there)
            fail_msg("%u at %u, there: %d", answer.status, (unsigned)at, there);
        refused += !there;
        done += there;
        answer_done(&answer);
        answer_done(&list);
    }
    if (refused < 3 || done < 50)
        fail_msg("%u refused, %u done", refused, done);
}

/* ---- how many a registration takes -------------------------------------------------------- */

#define MOST 12u /* of ours, and of libc's on our behalf */

static sqlite3_mem_methods of_sqlite;
static bool sqlite_passes; /* its own do not count */

static void *sqlite_malloc(int size)
{
    alloc_pass(sqlite_passes);
    void *memory = of_sqlite.xMalloc(size);
    alloc_pass(false);
    return memory;
}

static void *sqlite_realloc(void *old, int size)
{
    alloc_pass(sqlite_passes);
    void *memory = of_sqlite.xRealloc(old, size);
    alloc_pass(false);
    return memory;
}

static void take_sqlite(void)
{
    sqlite3_mem_methods ours;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &of_sqlite), SQLITE_OK);
    ours = of_sqlite;
    ours.xMalloc = sqlite_malloc;
    ours.xRealloc = sqlite_realloc;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
}

/* The fewest of some: threads that look around now and then count as well. */
static void test_what_a_registration_takes(void **state)
{
    uint64_t fewest = UINT64_MAX;
    sqlite_passes = true;
    for (unsigned i = 0; i < 20; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"loc\":\"" ORIGIN "/n%u.xml\",\"lastmod\":\"2026-01-01\",\"digest\":\"d\"}", i);
        alloc_arm(UINT64_MAX, false);
        struct answer answer = ask(*state, HTTP_POST, "/v1/sitemaps", body);
        alloc_disarm();
        if (alloc_counted() < fewest)
            fewest = alloc_counted();
        expect(answer, 201, "\"created\":1");
    }
    sqlite_passes = false;
    print_message("a registration: %u allocations\n", (unsigned)fewest - 1);
    assert_in_range(fewest - 1, 4, MOST); /* the body's copy is the test's */
}

int main(void)
{
    take_sqlite();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reads_and_writes, world_with_site, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_503_applied_nothing, world_with_site,
                                        world_teardown),
        cmocka_unit_test_setup_teardown(test_what_a_registration_takes, world_with_site,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
