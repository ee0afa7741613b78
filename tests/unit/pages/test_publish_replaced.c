/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The publisher where another catalogue takes the place of its own: a reader who found a page of
 * the old one gets the new one's page of the same URL, and never another page that has its id. */
#include "tests/unit/lib/scratch.h"
#include "tests/unit/pages/publish_world.h"

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

/* The file that comes has one index, `theirs`; the one before has /a.xml. */
static void replace(const char *theirs, enum await_result expected)
{
    char folder[SCRATCH_MAX_BYTES], path[96], other[96];
    struct publisher *p;
    struct site_target found;
    scratch_make(folder, "test_replaced");
    snprintf(path, sizeof path, "%s/catalogue.db", folder);
    snprintf(other, sizeof other, "%s/other.db", folder);
    char index[64];
    snprintf(index, sizeof index, ORIGIN "%s", theirs);
    catalogue_close(make_catalogue(other, index, "theirs"));
    struct catalogue *c = make_catalogue(path, ORIGIN "/a.xml", "mine");
    struct cache *cache = make_cache(1u << 20);
    struct publisher_options options = {
        .catalogue = c,
        .cache = cache,
        .compression_level = 6,
        .build_threads = 1,
    };
    assert_int_equal(publisher_start(&options, &p), CATALOGUE_OK);
    const struct page_map *old = publisher_page_map(p);
    page_map_find(old, "any", "/a.xml", &found);
    assert_int_equal(found.kind, ROUTE_PAGE);

    assert_int_equal(rename(other, path), 0);
    const struct page_map *now = publisher_page_map(p);
    while (now == old) {
        publisher_page_map_done(now);
        usleep(5000);
        now = publisher_page_map(p);
    }
    /* Both files call their index number 1. */
    assert_int_equal(await_and_drop(found.page), expected);
    assert_null(place_resource(found.page));
    page_map_find(now, "any", "/a.xml", &found);
    assert_true((found.kind == ROUTE_PAGE) == (strcmp(theirs, "/a.xml") == 0));
    page_map_find(now, "any", theirs, &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    assert_int_equal(await_and_drop(found.page), AWAIT_DONE);

    publisher_page_map_done(now);
    publisher_page_map_done(old);
    publisher_stop(p);
    cache_free(cache);
    catalogue_close(c);
    scratch_remove(folder);
}

static void an_old_page_is_not_filled_from_another_index(void **state)
{
    replace("/b.xml", AWAIT_UNAVAILABLE);
}

static void an_old_page_is_answered_from_the_same_index(void **state)
{
    replace("/a.xml", AWAIT_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_page_is_not_filled_from_another_index),
        cmocka_unit_test(an_old_page_is_answered_from_the_same_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
