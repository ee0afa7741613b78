/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Health, metrics, the API's description, and how errors become HTTP. */
#include <dirent.h>

#include "server/api/errors.h"
#include "tests/unit/api/world.h"

static void test_health(void **state)
{
    struct world *w = *state;

    expect(ask(w, HTTP_GET, "/healthz", NO_BODY), 200, "{\"status\":\"ok\"}");
    expect(ask(w, HTTP_GET, "/readyz", NO_BODY), 200, "{\"status\":\"ok\",\"reasons\":[]}");
}

/* Each sample belongs to a family that was announced with HELP and TYPE, once. */
static void test_metrics(void **state)
{
    struct world *w = *state;

    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}"), 201, NULL);
    struct answer answer = ask(w, HTTP_GET, "/metrics", NO_BODY);
    char family[80] = "";
    char *rest = answer.body.data, *line;

    assert_non_null(strstr(rest, "\nsitemapd_entries 1\n"));
    while ((line = strsep(&rest, "\n")) != NULL && rest != NULL) {
        if (strncmp(line, "# HELP ", 7) == 0)
            continue;
        if (strncmp(line, "# TYPE ", 7) == 0)
            snprintf(family, sizeof family, "%.*s", (int)strcspn(line + 7, " "), line + 7);
        else if (strncmp(line, family, strlen(family)) != 0 || family[0] == '\0')
            fail_msg("%s has no family", line);
    }
    answer_done(&answer);
}

/* Every call of the table is described, and nothing else is. */
static void test_the_description_is_true(void **state)
{
    struct world *w = *state;
    struct answer answer = ask(w, HTTP_GET, "/openapi.json", NO_BODY);
    const char *text = str_text(&answer.body);

    assert_int_equal(answer.status, 200);
    for (size_t i = 0; i < routes_api_count; i++) {
        char key[80];

        snprintf(key, sizeof key, "\n\"%s\": {", routes_admin[i].path);
        if (strstr(text, key) == NULL)
            fail_msg("%s is not described", routes_admin[i].path);
    }
    assert_int_equal(occurrences(&answer, "\"operationId\""), routes_api_count);
    assert_null(strstr(text, "{version}"));
    answer_done(&answer);
}

static int with_copiers(void **state)
{
    if (world_with_site(state) != 0)
        return -1;
    struct world *w = *state;
    char database[96];
    snprintf(database, sizeof database, "%s/catalogue.db", w->folder);
    w->app.database = strdup(database);
    w->app.copiers = workers_new(1, 4);
    return w->app.database != NULL && w->app.copiers != NULL ? 0 : -1;
}

static int without_copiers(void **state)
{
    struct world *w = *state;
    workers_free(w->app.copiers);
    free((char *)w->app.database);
    return world_teardown(state);
}

static void expect_no_copy_is_left(const struct world *w)
{
    DIR *folder = opendir(w->folder);
    assert_non_null(folder);
    for (struct dirent *file; (file = readdir(folder)) != NULL;)
        if (strstr(file->d_name, "-copy-") != NULL)
            fail_msg("%s is left", file->d_name);
    closedir(folder);
}

static void test_a_stop_ends_copies(void **state)
{
    struct world *w = *state;
    static const char *const targets[] = {"/v1/backup", "/v1/sites/1/copy"};

    for (int stops = 0; stops < 2; stops++) {
        atomic_store(&w->app.stopping, stops == 1);
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
            struct answer answer = ask(w, HTTP_GET, targets[i], NO_BODY);
            expect(answer, stops ? 503 : 200, stops ? "\"cancelled\"" : NULL);
            expect_no_copy_is_left(w);
        }
    }
}

/* Without a token; what a browser has already is not sent again. */
static void test_the_console(void **state)
{
    struct world *w = *state;
    struct question question = {.method = HTTP_GET, .target = "/console/", .token = ""};
    struct answer page = ask_whole(w, &question), again;
    char etag[sizeof page.etag];

    assert_int_equal(page.status, 200);
    assert_non_null(strstr(page.body.data, "<title>sitemapd</title>"));
    assert_null(strstr(page.body.data, "{version}"));
    assert_int_equal(strlen(page.etag), 34);
    snprintf(etag, sizeof etag, "%s", page.etag);
    answer_done(&page);
    question.if_none_match = etag;
    again = ask_whole(w, &question);
    assert_int_equal(again.status, 304);
    assert_int_equal(again.body.len, 0);
    answer_done(&again);
    question.if_none_match = NULL;
    question.target = "/";
    again = ask_whole(w, &question);
    assert_int_equal(again.status, 308);
    assert_string_equal(again.location, "/console/");
    answer_done(&again);
    expect(ask(w, HTTP_GET, "/console/none.js", NO_BODY), 404, "\"not-found\"");
}

static void expect_problem(struct reply *reply, unsigned status, const char *code)
{
    assert_int_equal(reply->status, status);
    if (strstr(str_text(&reply->body), code) == NULL)
        fail_msg("%s is not in %s", code, str_text(&reply->body));
    reply_done(reply);
    reply_init(reply);
}

static void test_errors(void **state)
{
    struct reply reply;
    static const struct {
        enum catalogue_status status;
        unsigned http;
    } statuses[] = {
        {CATALOGUE_NOT_FOUND, 404}, {CATALOGUE_CONFLICT, 409},    {CATALOGUE_FULL, 409},
        {CATALOGUE_BUSY, 503},      {CATALOGUE_UNAVAILABLE, 503}, {CATALOGUE_NEWER, 503},
        {CATALOGUE_NO_SPACE, 503},  {CATALOGUE_CORRUPT, 503},     {CATALOGUE_NO_MEMORY, 503},
        {CATALOGUE_CANCELLED, 503},
    };

    reply_init(&reply);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        errors_reply_status(&reply, statuses[i].status);
        assert_int_equal(reply.header_count > 0 &&
                             strcmp(reply.headers[reply.header_count - 1].name, "Retry-After") == 0,
                         statuses[i].http == 503);
        expect_problem(&reply, statuses[i].http, catalogue_status_word(statuses[i].status));
    }
    errors_reply_result(&reply,
                        &(struct change_result){.status = CATALOGUE_CONFLICT, .managed = true});
    expect_problem(&reply, 409, "\"managed-by-config\"");
    errors_reply_result(
        &reply, &(struct change_result){.status = CATALOGUE_REFUSED, .code = RULE_SITE_FULL});
    expect_problem(&reply, 422, "\"too-many-pages\"");
    errors_reply_result(&reply, &(struct change_result){.status = CATALOGUE_REFUSED,
                                                        .code = RULE_SHRINK_GUARD,
                                                        .would_remove = 18446744073709551615u});
    expect_problem(&reply, 409, "\"would_remove\":18446744073709551615}");
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++) {
        errors_reply_rule(&reply, (enum rule_code)code, NULL, "");
        assert_in_range(reply.status, 400, 422);
        expect_problem(&reply, reply.status, rule_code_word((enum rule_code)code));
    }
    reply_done(&reply);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, world_with_site, world_teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_health),
        CASE(test_metrics),
        CASE(test_the_description_is_true),
        CASE(test_the_console),
        cmocka_unit_test_setup_teardown(test_a_stop_ends_copies, with_copiers, without_copiers),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
