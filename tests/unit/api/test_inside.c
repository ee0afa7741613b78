/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The API without a listener, as the command line runs it: on a catalogue that no server has
 * opened. */
#include "tests/unit/api/ask.h"
#include "tests/unit/lib/catalogue_fixture.h"

#include "db/source.h"
#include "server/api/inside.h"
#include "server/crawlers/crawlers.h"

struct inside_world {
    char folder[64], path[96];
    struct catalogue *catalogue;
    struct inside *inside;
    unsigned ledgers;
};

static struct crawlers *refuse_ledger(void *context)
{
    ((struct inside_world *)context)->ledgers++;
    return NULL;
}

static int setup(void **state)
{
    static const struct source_settings configured = {
        .name = "maps", .directory = "/nowhere/maps", .url = ORIGIN "/"};
    struct inside_world *w = calloc(1, sizeof *w);

    scratch_make(w->folder, "sitemapd-inside");
    snprintf(w->path, sizeof w->path, "%s/catalogue.db", w->folder);
    struct catalogue_options options = fixture_options(w->path);
    options.default_max_pages = 500;
    options.history_keep_ms = 86400000;
    options.history_max_bytes = 1u << 26;
    w->catalogue = fixture_catalogue(&options);
    w->inside = inside_new(&(struct inside_options){.catalogue = w->catalogue,
                                                    .database = w->path,
                                                    .user = "alice",
                                                    .sources = &configured,
                                                    .source_count = 1,
                                                    .ledger = refuse_ledger,
                                                    .context = w});
    assert_non_null(w->inside);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct inside_world *w = *state;

    inside_free(w->inside);
    catalogue_close(w->catalogue);
    scratch_remove(w->folder);
    free(w);
    return 0;
}

#define wanted(status_, text_, method_, target_, body_)                                            \
    wanted_at(*state, status_, text_, method_, target_, body_, __LINE__)
static void wanted_at(struct inside_world *w, unsigned status, const char *text, const char *method,
                      const char *target, const char *body, int line)
{
    const struct inside_call question = {.method = method, .target = target, .body = body};
    struct str answer;
    unsigned got = inside_request(w->inside, &question, &answer);

    if (got != status || strstr(str_text(&answer), text) == NULL)
        fail_msg("line %d: wanted %u with %s, got %u: %.500s", line, status, text, got,
                 str_text(&answer));
    str_done(&answer);
}

static void test_a_write_is_seen_by_the_next_read_and_names_the_user(void **state)
{
    wanted(201, ORIGIN, "POST", "/v1/sites", "{\"origin\":\"" ORIGIN "\",\"index\":\"/i.xml\"}");
    wanted(201, "\"created\":1", "POST", "/v1/sitemaps?source=cli",
           "{\"loc\":\"" ORIGIN "/a.xml\"}");
    wanted(200, "\"entries\":1", "GET", "/v1/indexes", NULL);
    /* Who made it is the user, through the command line; a note would only repeat that. */
    wanted(200, "\"by\":\"alice\",\"kind\":\"registration\",\"via\":\"cli\"", "GET",
           "/v1/history?limit=1", NULL);
    wanted(200, "\"note\":null", "GET", "/v1/history?limit=1", NULL);
    wanted(409, "site-exists", "POST", "/v1/sites", "{\"origin\":\"" ORIGIN "\"}");
}

static bool take(void *context, const char *bytes, size_t len)
{
    str_append(context, bytes, len);
    return true;
}

static void test_a_stream_is_taken_and_a_refusal_kept(void **state)
{
    struct inside_world *w = *state;
    struct str taken = STR_INIT, body;
    struct inside_call question = {
        .method = "GET", .target = "/v1/render?index=/i.xml", .take = take, .context = &taken};

    wanted(201, ORIGIN, "POST", "/v1/sites", "{\"origin\":\"" ORIGIN "\",\"index\":\"/i.xml\"}");
    wanted(201, "\"created\":1", "POST", "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}");
    assert_int_equal(inside_request(w->inside, &question, &body), 200);
    assert_non_null(strstr(str_text(&taken), "<loc>" ORIGIN "/a.xml</loc>"));
    assert_int_equal(body.len, 0);
    str_clear(&taken);
    question.target = "/v1/render?index=/none.xml";
    assert_int_equal(inside_request(w->inside, &question, &body), 404);
    assert_int_equal(taken.len, 0);
    assert_non_null(strstr(str_text(&body), "index-unknown"));
    str_done(&body);
    str_done(&taken);
}

static void test_what_is_not_there(void **state)
{
    wanted(404, "not-found", "GET", "/v1/nothing", NULL);
    wanted(404, "not-found", "POST", "/v1/history", NULL);
    wanted(400, "unknown-parameter", "GET", "/v1/sites?colour=red", NULL);
    wanted(404, "token", "DELETE", "/v1/tokens/a%20b", NULL);
}

/* Of sources nothing runs: what the configuration says, and that its folder is missing. */
static void test_sources_at_rest(void **state)
{
    wanted(200, "\"name\":\"maps\",\"kind\":\"folder\",\"managed\":true", "GET", "/v1/sources",
           NULL);
    wanted(200, "\"failure\":\"/nowhere/maps: No such file or directory\"", "GET",
           "/v1/sources/maps", NULL);
    wanted(200, "source-failing", "GET", "/readyz", NULL);
    wanted(404, "not-found", "GET", "/v1/sources/other", NULL);
    wanted(409, "managed-by-config", "DELETE", "/v1/sources/maps", NULL);
}

/* No empty list where the ledger could not be made; and other questions do not wait for one. */
static void test_without_a_ledger_no_question_about_crawlers(void **state)
{
    struct inside_world *w = *state;

    wanted(200, "\"sites\":[]", "GET", "/v1/sites", NULL);
    assert_int_equal(w->ledgers, 0);
    wanted(0, "", "GET", "/v1/crawlers", NULL);
    assert_int_equal(w->ledgers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_write_is_seen_by_the_next_read_and_names_the_user,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stream_is_taken_and_a_refusal_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_there, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sources_at_rest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_ledger_no_question_about_crawlers, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
