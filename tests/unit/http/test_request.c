/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/http/headers.h"
#include "server/http/request.h"

static void test_problem(void **state)
{
    struct reply reply;
    reply_init(&reply);
    reply_header(&reply, "X-Before", "dropped");
    str_append_text(&reply.body, "dropped");
    reply_problem(&reply, 422, "loc-too-short", "loc", "say \"more\"\n");
    assert_int_equal(reply.status, 422);
    assert_string_equal(reply.content_type, "application/problem+json");
    assert_string_equal(reply.body.data,
                        "{\"type\":\"about:blank\",\"title\":\"Unprocessable Content\","
                        "\"status\":422,\"detail\":\"say \\\"more\\\"\\n\","
                        "\"code\":\"loc-too-short\",\"field\":\"loc\"}\n");
    assert_int_equal(reply.header_count, 1);
    assert_string_equal(reply.headers[0].name, "Cache-Control");
    assert_string_equal(reply.headers[0].value, "no-store");
    reply_problem(&reply, 404, "not-found", NULL, "gone");
    assert_null(strstr(reply.body.data, "field"));
    reply_done(&reply);
    reply_done(&reply);
}

static void test_headers(void **state)
{
    struct reply reply;
    reply_init(&reply);
    reply_header(&reply, "Location", "/a\tb");
    assert_false(reply.body.failed);
    reply_header(&reply, "Location", "/a\r\nSet-Cookie: x");
    assert_true(reply.body.failed);
    assert_int_equal(reply.header_count, 1);
    reply_done(&reply);
    for (int i = 0; i < REPLY_MAX_HEADERS; i++)
        reply_header(&reply, "X", "y");
    assert_false(reply.body.failed);
    reply_header(&reply, "X", "y");
    assert_true(reply.body.failed);
    reply_done(&reply);
}

static void test_methods(void **state)
{
    char allow[METHOD_ALLOW_SIZE];
    assert_int_equal(method_parse("GET"), HTTP_GET);
    assert_int_equal(method_parse("Get"), HTTP_OTHER);
    assert_int_equal(method_parse("CONNECT"), HTTP_OTHER);
    assert_string_equal(method_name(HTTP_PATCH), "PATCH");
    method_allow(0xff, allow);
    assert_string_equal(allow, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    method_allow(HTTP_GET, allow);
    assert_string_equal(allow, "GET, HEAD, OPTIONS");
}

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/v1/x"},
    {.methods = HTTP_POST | HTTP_PUT, .path = "/v1/x"},
    {.methods = HTTP_GET, .path = "/v1/x/{id}"},
    {.methods = HTTP_DELETE, .path = "/v1/x/{id}"},
    {.methods = HTTP_POST, .path = "/v1/s/{name}/scan"},
    {.methods = HTTP_GET, .path = "/v1/x/fixed"},
};
static const struct route fallback = {.methods = HTTP_GET};

static void test_route_match(void **state)
{
    static const struct {
        const char *path;
        enum http_method method;
        int route; /* -1: none */
        unsigned allowed;
        const char *tail;
    } all[] = {
        {"/v1/x", HTTP_GET, 0, HTTP_GET | HTTP_POST | HTTP_PUT, NULL},
        {"/v1/x", HTTP_HEAD, 0, HTTP_GET | HTTP_POST | HTTP_PUT, NULL},
        {"/v1/x", HTTP_PUT, 1, HTTP_GET | HTTP_POST | HTTP_PUT, NULL},
        {"/v1/x", HTTP_PATCH, -1, HTTP_GET | HTTP_POST | HTTP_PUT, NULL},
        {"/v1/x/7", HTTP_DELETE, 3, HTTP_GET | HTTP_DELETE, "7"},
        {"/v1/x/fixed", HTTP_GET, 5, HTTP_GET, NULL},
        {"/v1/x/fixed", HTTP_DELETE, -1, HTTP_GET, NULL},
        {"/v1/x/", HTTP_GET, -1, 0, NULL},
        {"/v1/x/7/", HTTP_GET, -1, 0, NULL},
        {"/v1/x/7/8", HTTP_GET, -1, 0, NULL},
        {"/v1/s/a%20b/scan", HTTP_POST, 4, HTTP_POST, "a%20b"},
        {"/v1/s//scan", HTTP_POST, -1, 0, NULL},
        {"/v1/s/a/scans", HTTP_POST, -1, 0, NULL},
        {"/V1/x", HTTP_GET, -1, 0, NULL},
        {"", HTTP_GET, -1, 0, NULL},
    };
    struct route_match match;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        route_match(routes, 6, NULL, all[i].path, all[i].method, &match);
        assert_ptr_equal(match.route, all[i].route < 0 ? NULL : &routes[all[i].route]);
        assert_int_equal(match.allowed, all[i].allowed);
        assert_int_equal(match.tail == NULL, all[i].tail == NULL);
        if (all[i].tail != NULL)
            assert_memory_equal(match.tail, all[i].tail, strlen(all[i].tail));
    }
    route_match(routes, 6, &fallback, "/any", HTTP_HEAD, &match);
    assert_ptr_equal(match.route, &fallback);
    assert_int_equal(match.index, 6);
    route_match(routes, 6, &fallback, "/any", HTTP_POST, &match);
    assert_null(match.route);
    assert_int_equal(match.allowed, HTTP_GET);
    route_match(routes, 6, &fallback, "/v1/x", HTTP_DELETE, &match);
    assert_null(match.route);
    assert_int_equal(match.index, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_problem),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_route_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
