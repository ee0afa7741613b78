/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Paths that no page has: files of sources, or 404. */
#include "tests/unit/api/world.h"

#include <errno.h>

#include "server/pages/served_file.h"

static int open_file(void *context, size_t source, const char *path, uint64_t *from)
{
    (void)from;
    struct world *w = context;
    char name[200];

    if (source != 3) {
        errno = EIO;
        return -1;
    }
    snprintf(name, sizeof name, "%s/%s", w->folder, path);
    FILE *f = fopen(name, "r");
    int fd = f == NULL ? -1 : dup(fileno(f));
    if (f != NULL)
        fclose(f);
    return fd;
}

/* Source 3 has /maps/, source 4 is in trouble. */
static bool match(struct sources *s, const char *origin, const char *url_path, size_t *at,
                  char *path)
{
    (void)s;
    if (strcmp(origin, ORIGIN) != 0)
        return false;
    *at = strncmp(url_path, "/broken/", 8) == 0 ? 4 : 3;
    if (*at == 3 && strncmp(url_path, "/maps/", 6) != 0 && strcmp(url_path, "/robots.txt") != 0 &&
        strcmp(url_path, "/sitemap_index.xml") != 0)
        return false;
    strcpy(path, strrchr(url_path, '/') + 1);
    return true;
}

static int setup(void **state)
{
    if (world_with_site(state) != 0)
        return -1;
    struct world *w = *state;
    const struct served_files_options options = {.cache = w->cache,
                                                 .compression_level = 6,
                                                 .threads = 1,
                                                 .fresh_ms = 60000,
                                                 .open = open_file,
                                                 .context = w};
    static const char *const names[] = {"a.xml", "robots.txt", "sitemap_index.xml"};
    for (size_t i = 0; i < 3; i++) {
        char name[200];
        snprintf(name, sizeof name, "%s/%s", w->folder, names[i]);
        FILE *f = fopen(name, "w");
        assert_non_null(f);
        fputs("a file", f);
        fclose(f);
    }
    w->app.cache_fields.cache_control = "public";
    w->app.files = served_files_new(&options);
    w->app.files_match = match;
    return w->app.files == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    served_files_free(((struct world *)*state)->app.files);
    return world_teardown(state);
}

/* Asks the public listener's route; true where the answer came at once. The caller ends the
 * reply. */
static bool get(struct world *w, const char *path, const char *query, struct exchange_of_test *x)
{
    *x = (struct exchange_of_test){.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .resumed_cond = PTHREAD_COND_INITIALIZER};
    x->request = (struct request){.method = HTTP_GET,
                                  .path = path,
                                  .query = query,
                                  .host = "www.example.com",
                                  .now = time(NULL),
                                  .route = &routes_public,
                                  .resume = resumed};
    reply_init(&x->request.reply);
    enum handled handled = routes_public.finish(&w->app, &x->request);
    wait_if_later(x, handled);
    return handled == HANDLED;
}

static void expect_status(struct world *w, const char *path, const char *query, unsigned status)
{
    struct exchange_of_test x;

    get(w, path, query, &x);
    if (x.request.reply.status != status)
        fail_msg("%s: %u", path, x.request.reply.status);
    assert_null(x.request.reply.resource);
    assert_false(x.request.reply.body.failed);
    reply_done(&x.request.reply);
}

static void test_file(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 2; i++) {
        struct exchange_of_test x;
        struct reply *reply = &x.request.reply;
        assert_int_equal(get(w, "/maps/a.xml", NULL, &x), i == 1); /* from memory the second time */
        assert_int_equal(reply->status, 200);
        assert_non_null(reply->resource);
        assert_int_equal(reply->len, 6);
        assert_memory_equal(reply->resource->bytes, "a file", 6);
        assert_string_equal(reply->cache->cache_control, "public");
        reply_done(reply);
    }
}

static void test_no_file(void **state)
{
    struct world *w = *state;
    expect_status(w, "/maps/a.xml", "", 404);
    expect_status(w, "/maps/a.xml", "page=1", 404);
    expect_status(w, "/maps/b.xml", NULL, 404);
    expect_status(w, "/elsewhere/a.xml", NULL, 404);
    expect_status(w, "/broken/a.xml", NULL, 503);
}

/* What the site has itself comes first. */
static void test_pages_come_first(void **state)
{
    struct world *w = *state;
    struct exchange_of_test x;
    expect(ask(w, HTTP_POST, "/v1/sitemaps", "{\"loc\":\"" ORIGIN "/a.xml\"}"), 201, NULL);
    get(w, "/sitemap_index.xml", NULL, &x);
    assert_non_null(x.request.reply.resource);
    assert_int_equal(x.request.reply.resource->held.kind, HELD_PAGE);
    reply_done(&x.request.reply);
    get(w, "/robots.txt", NULL, &x);
    const struct resource *robots = x.request.reply.resource;
    assert_non_null(robots);
    assert_string_equal(robots->content_type, "text/plain; charset=utf-8");
    assert_true(robots->raw_len > 9);
    assert_memory_equal(robots->bytes, "Sitemap: ", 9);
    reply_done(&x.request.reply);
}

static void test_without_sources(void **state)
{
    struct world *w = *state;
    struct served_files *files = w->app.files;
    w->app.files = NULL;
    expect_status(w, "/maps/a.xml", NULL, 404);
    w->app.files = files;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_file, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pages_come_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_sources, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
