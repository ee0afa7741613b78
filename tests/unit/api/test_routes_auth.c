/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who may call: tokens, their sites, and the bound on wrong ones. */
#include "tests/unit/api/world.h"

#include <sched.h>

#define SHOP "https://shop.example.org"

static struct question get(const char *target, const char *token)
{
    return (struct question){.method = HTTP_GET, .target = target, .token = token};
}

static void test_a_token_is_needed(void **state)
{
    struct world *w = *state;
    struct question q = get("/v1/sitemaps", "");
    struct answer none = ask_whole(w, &q);

    assert_string_equal(none.authenticate, "Bearer realm=\"sitemapd\"");
    expect(none, 401, "\"unauthorized\"");
    q.token = TOKEN "x";
    expect(ask_whole(w, &q), 401, "\"unauthorized\"");
    q.token = TOKEN " x";
    expect(ask_whole(w, &q), 401, "\"unauthorized\"");
    q.token = TOKEN;
    expect(ask_whole(w, &q), 200, NULL);
    expect(ask_whole(w, &(struct question){.method = HTTP_GET, .target = "/healthz", .token = ""}),
           200, "{\"status\":\"ok\"}");
}

/* Wrong tokens are slowed down; the right one, of the same address, is let in all the same. */
static void test_wrong_tokens_are_bounded(void **state)
{
    struct world *w = *state;
    struct question wrong = get("/v1/sitemaps", "wrong"), right = get("/v1/sitemaps", TOKEN);

    for (unsigned i = 0; i < AUTH_MAX_FAILURES; i++)
        expect(ask_whole(w, &wrong), 401, NULL);
    struct answer held = ask_whole(w, &wrong);
    assert_string_equal(held.retry_after, "60");
    expect(held, 429, "\"too-many-failures\"");
    expect(ask_whole(w, &right), 200, NULL);
    wrong.peer = "2001:db8::1";
    expect(ask_whole(w, &wrong), 401, NULL);
}

static void test_the_table_of_failures(void **state)
{
    struct auth *auth = auth_new();
    bool report;
    char peer[48];

    assert_non_null(auth);
    assert_int_equal(auth_failed(auth, "a", 1000, &report), 0);
    assert_true(report);
    for (unsigned i = 1; i < AUTH_MAX_FAILURES; i++) {
        assert_int_equal(auth_failed(auth, "a", 1000, &report), 0);
        assert_false(report);
    }
    assert_int_equal(auth_failed(auth, "a", 1010, &report), AUTH_WINDOW_SECONDS - 10);
    assert_true(report);
    assert_int_equal(auth_failed(auth, "a", 1059, &report), 1);
    assert_false(report);
    assert_int_equal(auth_failed(auth, "a", 1060, &report), 0);
    assert_true(report);
    /* A clock set back begins again. */
    assert_int_equal(auth_failed(auth, "a", 900, &report), 0);
    /* Many addresses need no more room, and none is held for another's failures. */
    unsigned reports = 0;
    for (int i = 0; i < 100000; i++) {
        snprintf(peer, sizeof peer, "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
        assert_int_equal(auth_failed(auth, peer, 2000, &report), 0);
        reports += report;
    }
    assert_int_equal(auth_failed(auth, NULL, 2000, &report), 0);
    /* Nor is the log filled. */
    assert_int_equal(reports, AUTH_MAX_REPORTS);
    assert_int_equal(auth_failed(auth, "b", 2060, &report), 0);
    assert_true(report);
    auth_free(auth);
    auth_free(NULL);
}

static bool is_known(struct world *w, const char *name)
{
    const struct page_map *routing = publisher_page_map(w->app.publisher);
    const struct registry *registry = page_map_registry(routing);
    bool known = false;

    for (size_t i = 0; i < registry->token_count; i++)
        known = known || strcmp(registry->tokens[i].grant.name, name) == 0;
    publisher_page_map_done(routing);
    return known;
}

static void add_token(struct world *w, const char *name, const char *text, int64_t site_id)
{
    uint8_t sha256[32];
    struct change_result result;

    assert_true(token_sha256(text, strlen(text), sha256));
    const struct change change = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = name, .role = GRANT_ADMIN, .site_id = site_id},
                      .sha256 = sha256}};
    assert_int_equal(catalogue_apply(w->app.catalogue, &change, &result), CATALOGUE_OK);
    entry_record_done(&result.entry);
    /* As after a command beside the server: calls know the token once the publisher has seen it. */
    while (!is_known(w, name))
        sched_yield();
}

static void test_a_token_of_one_site(void **state)
{
    struct world *w = *state;
    char own[96], other[96], own_site[96], other_site[96], id[32];
    struct answer made = ask(w, HTTP_POST, "/v1/sites", "{\"origin\":\"" SHOP "\"}");

    assert_int_equal(made.status, 201);
    member(&made, "id", id, sizeof id);
    snprintf(own_site, sizeof own_site, "%s", made.location);
    answer_done(&made);
    snprintf(other_site, sizeof other_site, "/v1/sites/1");
    add_token(w, "shop", "the-shops-token", strtoll(id, NULL, 10));

    made = ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}");
    assert_int_equal(made.status, 201);
    snprintf(other, sizeof other, "%s", made.location);
    answer_done(&made);

    struct question q = {.method = HTTP_POST,
                         .target = "/v1/sitemaps",
                         .token = "the-shops-token",
                         .body = "{\"loc\":\"" SHOP "/a.xml\"}"};
    made = ask_whole(w, &q);
    snprintf(own, sizeof own, "%s", made.location);
    expect(made, 201, "\"source\":\"shop\"");
    q.body = "{\"loc\":\"" ORIGIN "/b.xml\"}";
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");
    q.target = "/v1/sitemaps?index=" INDEX;
    q.method = HTTP_PUT;
    q.body = "[]";
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");
    q.method = HTTP_POST;
    q.target = "/v1/sites";
    q.body = "{\"origin\":\"https://third.example\"}";
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");
    q.target = "/v1/indexes";
    q.body = "{\"url\":\"" ORIGIN "/more.xml\"}";
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");
    q.method = HTTP_PATCH;
    q.target = other_site;
    q.body = "{\"max_indexes\":3}";
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");
    q.method = HTTP_DELETE;
    q.target = other;
    q.body = NULL;
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");
    q.target = other_site;
    expect(ask_whole(w, &q), 403, "\"token-of-another-site\"");

    q.method = HTTP_GET;
    q.target = own;
    expect(ask_whole(w, &q), 200, NULL);
    q.target = other;
    expect(ask_whole(w, &q), 404, "\"not-found\"");
    q.target = own_site;
    expect(ask_whole(w, &q), 200, SHOP);
    q.target = other_site;
    expect(ask_whole(w, &q), 404, "\"not-found\"");
    for (const char **list =
             (const char *[]){"/v1/sitemaps", "/v1/sites", "/v1/indexes", "/v1/changes", NULL};
         *list != NULL; list++) {
        q.target = *list;
        struct answer answer = ask_whole(w, &q);
        assert_int_equal(occurrences(&answer, ORIGIN), 0);
        expect(answer, 200, SHOP);
    }
    q.target = "/v1/sitemaps?index=" INDEX;
    expect(ask_whole(w, &q), 404, "\"index-unknown\"");
    q.target = "/v1/indexes?site=" ORIGIN;
    expect(ask_whole(w, &q), 404, "\"site-unknown\"");
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static bool gate_closed;
static atomic_uint at_gate;

static void wait_at_gate(void *context)
{
    (void)context;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    atomic_fetch_sub(&at_gate, 1);
}

static bool send_to_gate(struct workers *pool, int64_t site_id)
{
    atomic_fetch_add(&at_gate, 1);
    bool taken = workers_run(pool, site_id, wait_at_gate, NULL);
    if (!taken)
        atomic_fetch_sub(&at_gate, 1);
    return taken;
}

static void open_gate(void)
{
    if (gate_closed)
        pthread_mutex_unlock(&gate);
    gate_closed = false;
}

/* A failed assertion leaves the gate closed, and no thread behind it would end. */
static int gate_teardown(void **state)
{
    open_gate();
    return world_teardown(state);
}

static void fill(struct workers *pool, unsigned threads, int64_t site_id)
{
    while (atomic_load(&at_gate) > 0) /* those of before */
        sched_yield();
    pthread_mutex_lock(&gate);
    gate_closed = true;
    for (unsigned i = 0; i < threads; i++)
        assert_true(send_to_gate(pool, 0));
    while (workers_queued(pool) > 0)
        sched_yield();
    while (send_to_gate(pool, site_id))
        continue;
}

/* What a token of one site reads counts for its site, and has its turns among others'. */
static void test_reads_are_their_sites(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *target;
        bool searches;
    } reads[] = {{"/v1/sitemaps", false},
                 {"/v1/history", false},
                 {"/v1/changes", false},
                 {"/v1/sitemaps?index=" INDEX "&contains=abc", true}};

    add_token(w, "own", "a-token-of-the-site", 1);
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        struct question q = get(reads[i].target, "a-token-of-the-site");

        fill(reads[i].searches ? w->app.searchers : w->app.readers, reads[i].searches ? 1 : 2, 1);
        expect(ask_whole(w, &q), 503, "\"busy\"");
        q.token = TOKEN;
        q.late = open_gate;
        expect(ask_whole(w, &q), 200, NULL);
    }
}

/* However many wait, a stop does not. */
static void test_what_waited_is_not_read_at_a_stop(void **state)
{
    struct world *w = *state;
    struct question q = get("/v1/sitemaps", TOKEN);

    atomic_store(&w->app.stopping, true);
    struct answer answer = ask_whole(w, &q);
    assert_string_not_equal(answer.retry_after, "");
    expect(answer, 503, "\"cancelled\"");
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, world_with_site, world_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_a_token_is_needed),
        CASE(test_wrong_tokens_are_bounded),
        cmocka_unit_test(test_the_table_of_failures),
        CASE(test_a_token_of_one_site),
        cmocka_unit_test_setup_teardown(test_reads_are_their_sites, world_with_site, gate_teardown),
        CASE(test_what_waited_is_not_read_at_a_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
