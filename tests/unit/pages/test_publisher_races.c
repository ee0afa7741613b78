/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The publisher while builds are under way: whatever commits and asks meanwhile, an acknowledged
 * write is in the next read (publisher.h, invariants 1 to 5). */
#include "tests/unit/pages/gate_world.h"

/* Invariants 1 and 3: a build that read before the commit must not be installed after it. */
static void a_commit_during_a_cold_build_is_not_hidden(void **state)
{
    struct fixture *f = *state;
    await_revision(f->publisher, put(f->catalogue, "old", NULL));

    const struct page_map *routing = publisher_page_map(f->publisher);
    struct site_target found;
    struct heard early;
    heard_init(&early);
    page_map_find(routing, NULL, PAGE, &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    close_gate(f);
    cache_await(found.page, 1, hear_page, &early);
    wait_arrived(f, 1); /* the build has read the page without "new" */

    await_revision(f->publisher, put(f->catalogue, "new", NULL)); /* acknowledged */
    let_through(f, 1);
    wait_arrived(f, 2); /* overtaken, it builds again: what it had must not have been installed */
    assert_null(place_resource(found.page));
    open_gate(f);
    wait_heard(&early);
    assert_int_equal(early.result, AWAIT_DONE);
    resource_unref(early.snapshot);
    assert_true(page_holds(f, "new"));
    assert_true(page_holds(f, "old"));
    publisher_page_map_done(routing);
}

/* A reader that comes after the acknowledgement, while the old build is still at it. */
static void a_reader_after_the_acknowledgement_gets_the_new_page(void **state)
{
    struct fixture *f = *state;
    await_revision(f->publisher, put(f->catalogue, "old", NULL));
    const struct page_map *routing = publisher_page_map(f->publisher);
    struct site_target found;
    struct heard early, late;
    heard_init(&early);
    heard_init(&late);
    page_map_find(routing, NULL, PAGE, &found);
    close_gate(f);
    cache_await(found.page, 1, hear_page, &early);
    wait_arrived(f, 1);
    await_revision(f->publisher, put(f->catalogue, "new", NULL));
    cache_await(found.page, 1, hear_page, &late);
    open_gate(f);
    wait_heard(&early);
    wait_heard(&late);
    assert_ptr_equal(early.snapshot, late.snapshot); /* invariant 5 */
    char *text = gunzip(late.snapshot);
    assert_non_null(strstr(text, "/new.xml"));
    free(text);
    resource_unref(early.snapshot);
    resource_unref(late.snapshot);
    publisher_page_map_done(routing);
}

/* The same race on a hot page: the pass is paused, and a second commit arrives meanwhile. */
static void a_commit_during_a_pass_is_not_hidden(void **state)
{
    struct fixture *f = *state;
    await_revision(f->publisher, put(f->catalogue, "one", NULL));
    resource_unref(get_page(f->publisher, PAGE));
    close_gate(f);
    uint64_t second = put(f->catalogue, "two", NULL);
    wait_arrived(f, 1);
    uint64_t third = put(f->catalogue, "three", NULL);
    open_gate(f);
    await_revision(f->publisher, second);
    assert_true(page_holds(f, "two"));
    await_revision(f->publisher, third);
    assert_true(page_holds(f, "three"));
    assert_equals_plain_render(f);
}

static void keep_policies(struct publish_policies *policies)
{
    (void)policies;
}

/* A reload waits for no page that is being made. */
static void policies_change_during_a_pass(void **state)
{
    struct fixture *f = *state;
    static struct publish_policies strict = {.strict_host = true, .free = keep_policies};
    await_revision(f->publisher, put(f->catalogue, "one", NULL));
    resource_unref(get_page(f->publisher, PAGE));
    close_gate(f);
    uint64_t second = put(f->catalogue, "two", NULL);
    wait_arrived(f, 1);
    assert_true(publisher_reconfigure(f->publisher, &strict));
    open_gate(f);
    await_revision(f->publisher, second);
    assert_true(page_holds(f, "two") == false); /* no host but the site's own */
}

/* Other policies may be at the address of those that the page map was made of. */
static void policies_at_a_reused_address_change_robots_txt(void **state)
{
    struct fixture *f = *state;
    struct publish_site site = {.origin = ORIGIN, .robots_prefix = "User-agent: a\n"};
    struct publish_policies policies = {.sites = &site, .count = 1, .free = keep_policies};
    struct site_target found;
    for (int i = 0; i < 2; i++) {
        assert_true(publisher_reconfigure(f->publisher, &policies));
        const struct page_map *routing = publisher_page_map(f->publisher);
        page_map_find(routing, "www.example.com", "/robots.txt", &found);
        assert_int_equal(found.kind, ROUTE_ROBOTS);
        assert_memory_equal(found.robots->bytes, site.robots_prefix, strlen(site.robots_prefix));
        publisher_page_map_done(routing);
        site.robots_prefix = "User-agent: b\n";
    }
    assert_true(publisher_reconfigure(f->publisher, NULL));
}

/* Commits that overtake every attempt: the last one answers who asked before it. */
static void a_cold_build_ends_under_a_stream_of_commits(void **state)
{
    struct fixture *f = *state;
    await_revision(f->publisher, put(f->catalogue, "old", NULL));
    const struct page_map *routing = publisher_page_map(f->publisher);
    struct site_target found;
    struct heard early;
    char name[32], *text;
    heard_init(&early);
    page_map_find(routing, NULL, PAGE, &found);
    close_gate(f);
    cache_await(found.page, 1, hear_page, &early);
    for (int attempt = 1; attempt <= 3; attempt++) {
        wait_arrived(f, attempt);
        snprintf(name, sizeof name, "new-%d", attempt);
        await_revision(f->publisher, put(f->catalogue, name, NULL));
        let_through(f, attempt);
    }
    wait_arrived(f, 4);
    /* Nor does it delay writers, or readers behind it. */
    await_revision(f->publisher, put(f->catalogue, "new-4", NULL));
    struct heard late;
    heard_init(&late);
    cache_await(found.page, 1, hear_page, &late);
    open_gate(f);
    wait_heard(&late);
    text = gunzip(late.snapshot);
    assert_non_null(strstr(text, "/new-4.xml"));
    free(text);
    resource_unref(late.snapshot);
    wait_heard(&early);
    text = gunzip(early.snapshot);
    assert_non_null(strstr(text, "/new-3.xml"));
    free(text);
    resource_unref(early.snapshot);
    assert_true(page_holds(f, "new-4"));
    assert_equals_plain_render(f);
    publisher_page_map_done(routing);
}

static void a_cold_page_is_built_once(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 40 };
    struct heard heard[MANY];
    await_revision(f->publisher, put(f->catalogue, "one", NULL));
    const struct page_map *routing = publisher_page_map(f->publisher);
    struct site_target found;
    page_map_find(routing, NULL, PAGE, &found);
    atomic_store(&f->builds, 0);
    close_gate(f);
    for (int i = 0; i < MANY; i++) {
        heard_init(&heard[i]);
        cache_await(found.page, 1, hear_page, &heard[i]);
    }
    wait_arrived(f, 1);
    open_gate(f);
    for (int i = 0; i < MANY; i++) {
        wait_heard(&heard[i]);
        assert_int_equal(heard[i].calls, 1);
        assert_ptr_equal(heard[i].snapshot, heard[0].snapshot);
    }
    for (int i = 0; i < MANY; i++)
        resource_unref(heard[i].snapshot);
    assert_int_equal(atomic_load(&f->builds), 1);
    publisher_page_map_done(routing);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_commit_during_a_cold_build_is_not_hidden),
        TEST(a_reader_after_the_acknowledgement_gets_the_new_page),
        TEST(a_commit_during_a_pass_is_not_hidden),
        TEST(policies_change_during_a_pass),
        TEST(policies_at_a_reused_address_change_robots_txt),
        TEST(a_cold_build_ends_under_a_stream_of_commits),
        TEST(a_cold_page_is_built_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
