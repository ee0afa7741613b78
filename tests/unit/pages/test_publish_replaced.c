/* The publisher where another catalogue takes the place of its own: what a reader asked for under
 * the old one's ids is never answered with the new one's entries. */
#include "tests/unit/pages/publish_world.h"
#include "tests/unit/scratch.h"

static struct catalogue *make_catalogue(const char *path, const char *index, const char *name)
{
    struct catalogue *c = open_catalogue(path, true);
    add_site(c, index);
    put(c, name, NULL);
    return c;
}

static enum await_result await_and_drop(struct place *page)
{
    struct resource *snapshot;
    enum await_result result = await_page(page, &snapshot);
    resource_unref(snapshot);
    return result;
}

static void an_old_page_is_not_filled_from_the_new_file(void **state)
{
    char folder[SCRATCH_MAX_BYTES], path[96], other[96], command[128];
    struct publisher *p;
    struct site_target found;
    (void)state;
    scratch_name(folder, "test_replaced");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/catalogue.db", folder);
    snprintf(other, sizeof other, "%s/other.db", folder);
    catalogue_close(make_catalogue(other, ORIGIN "/b.xml", "theirs"));
    struct catalogue *c = make_catalogue(path, ORIGIN "/a.xml", "mine");
    struct cache *cache = make_cache(1u << 20);
    struct publisher_options options = {
        .catalogue = c,
        .cache = cache,
        .compression_level = 6,
        .build_threads = 1,
    };
    assert_int_equal(publisher_start(&options, &p), CATALOGUE_OK);
    const struct site_map *old = publisher_site_map(p);
    site_map_find(old, "any", "/a.xml", &found);
    assert_int_equal(found.kind, ROUTE_PAGE);

    assert_int_equal(rename(other, path), 0);
    const struct site_map *now = publisher_site_map(p);
    while (now == old) {
        publisher_site_map_done(now);
        sleep_ms(5);
        now = publisher_site_map(p);
    }
    /* Both files call their index number 1. */
    assert_int_equal(await_and_drop(found.page), AWAIT_UNAVAILABLE);
    assert_null(place_resource(found.page));
    site_map_find(now, "any", "/a.xml", &found);
    assert_int_not_equal(found.kind, ROUTE_PAGE);
    site_map_find(now, "any", "/b.xml", &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    assert_int_equal(await_and_drop(found.page), AWAIT_DONE);

    publisher_site_map_done(now);
    publisher_site_map_done(old);
    publisher_stop(p);
    cache_free(cache);
    catalogue_close(c);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_page_is_not_filled_from_the_new_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
