/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The publisher on a real catalogue: an acknowledged write is in the next read, memory is kept to
 * its budget, and what is served equals a plain render. What races it: test_publisher_races.c. */
#include "tests/unit/pages/gate_world.h"

static void an_index_never_filled_is_not_there(void **state)
{
    struct fixture *f = *state;
    assert_null(get_page(f->publisher, PAGE));
}

static void an_acknowledged_write_is_in_the_next_read(void **state)
{
    struct fixture *f = *state;
    char name[32];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "child-%d", i);
        await_revision(f->publisher, put(f->catalogue, name, "2026-01-02"));
        assert_true(page_holds(f, name));
    }
    assert_equals_plain_render(f);
}

static void one_change_renders_one_segment(void **state)
{
    struct fixture *f = *state;
    char name[32];
    uint64_t revision = 0;
    for (int i = 0; i < 1200; i++) {
        snprintf(name, sizeof name, "child-%d", i);
        revision = put(f->catalogue, name, NULL);
    }
    await_revision(f->publisher, revision);
    struct resource *before = get_page(f->publisher, PAGE);
    uint64_t rendered = stats_of(f->publisher).segments_rendered;
    await_revision(f->publisher, put(f->catalogue, "child-600", "2026-01-02"));
    assert_int_equal(stats_of(f->publisher).segments_rendered, rendered + 1);
    assert_true(page_holds(f, "2026-01-02"));
    struct resource *after = get_page(f->publisher, PAGE);
    assert_string_not_equal(before->etag_gzip, after->etag_gzip);
    assert_memory_equal(&before->segments[0].hash, &after->segments[0].hash, 16);
    assert_memory_equal(&before->segments[3].hash, &after->segments[3].hash, 16);
    resource_unref(before);
    resource_unref(after);
    assert_equals_plain_render(f);
}

static void another_handle_is_seen(void **state)
{
    struct fixture *f = *state;
    await_revision(f->publisher, put(f->catalogue, "mine", NULL));
    assert_true(page_holds(f, "mine"));
    struct catalogue *other = open_catalogue(f->path, false);
    uint64_t revision = put(other, "theirs", NULL);
    await_revision(f->publisher, revision);
    assert_true(page_holds(f, "theirs"));
    catalogue_close(other);
}

static void an_emptied_page_is_gone_and_an_undone_change_has_its_tag_back(void **state)
{
    struct fixture *f = *state;
    await_revision(f->publisher, put(f->catalogue, "one", "2026-01-02"));
    struct resource *first = get_page(f->publisher, PAGE);
    await_revision(f->publisher, put(f->catalogue, "one", "2026-01-03"));
    struct resource *changed = get_page(f->publisher, PAGE);
    assert_string_not_equal(first->etag_identity, changed->etag_identity);
    await_revision(f->publisher, drop(f->catalogue, "one"));
    assert_null(get_page(f->publisher, PAGE));
    assert_equals_plain_render(f);
    await_revision(f->publisher, put(f->catalogue, "one", "2026-01-02"));
    struct resource *again = get_page(f->publisher, PAGE);
    assert_string_equal(first->etag_identity, again->etag_identity);
    assert_string_equal(first->etag_gzip, again->etag_gzip);
    resource_unref(first);
    resource_unref(changed);
    resource_unref(again);
}

/* Rule 5: what is too much for a pass is dropped, and the next reader builds it. */
static void a_bulk_drops_the_page(void **state)
{
    struct fixture *f = *state;
    struct spool *rows = catalogue_spool(f->catalogue, UINT64_MAX);
    for (unsigned i = 0; i < 80 * SEGMENT_POSITIONS; i++) {
        char loc[80];
        snprintf(loc, sizeof loc, ORIGIN "/child-%u.xml", i);
        spool_add(rows, &(struct entry){.loc = loc, .position = POSITION_NONE});
    }
    await_revision(f->publisher, put(f->catalogue, "one", NULL));
    resource_unref(get_page(f->publisher, PAGE));
    uint64_t published = stats_of(f->publisher).pages_published;
    await_revision(
        f->publisher,
        apply(f->catalogue, &(struct change){.kind = CHANGE_BULK, .source = "test", .rows = rows}));
    assert_int_equal(stats_of(f->publisher).pages_published, published);
    assert_int_equal(stats_of(f->publisher).snapshots, 0);
    assert_true(page_holds(f, "child-19999.xml"));
    assert_equals_plain_render(f);
}

/* Of `pages` pages in memory, `left` still are once a change has put `rows` long rows on each. */
static void rows_leave(struct fixture *f, unsigned pages, unsigned rows, unsigned left)
{
    struct spool *spool = catalogue_spool(f->catalogue, UINT64_MAX);
    char text[64], url[128], loc[2100], fill[1950];
    memset(fill, 'x', sizeof fill - 1);
    fill[sizeof fill - 1] = '\0';
    for (unsigned i = 0; i < pages; i++) {
        snprintf(url, sizeof url, ORIGIN "/%u-%u/i.xml", rows, i);
        add_index(f->catalogue, url);
        snprintf(text, sizeof text, "%u-%u/child", rows, i);
        await_revision(f->publisher, put(f->catalogue, text, NULL));
        resource_unref(get_page(f->publisher, url + strlen(ORIGIN)));
        for (unsigned n = 0; n < rows; n++) {
            snprintf(loc, sizeof loc, ORIGIN "/%u-%u/%s%04u", rows, i, fill, n);
            spool_add(spool, &(struct entry){.loc = loc, .position = POSITION_NONE});
        }
    }
    struct publisher_stats before = stats_of(f->publisher);
    struct change bulk = {.kind = CHANGE_BULK, .source = "test", .rows = spool};
    await_revision(f->publisher, apply(f->catalogue, &bulk));
    struct publisher_stats after = stats_of(f->publisher);
    assert_int_equal(after.pages_published - before.pages_published, left);
    assert_int_equal(before.snapshots - after.snapshots, pages - left);
}

/* Few segments may be long: so a page, and a pass, are limited in bytes, too. */
static void much_of_few_segments_drops_the_page(void **state)
{
    rows_leave(*state, 1, 2500, 0);
    rows_leave(*state, 6, 1750, 5);
}

/* Of what nobody reads, the least used; what is read stays, since nothing is won by its going. */
static void the_budget_evicts(void **state)
{
    struct fixture *f = *state;
    struct resource *read = NULL;
    stop_publisher(f);
    char url[128], loc[100];
    uint64_t revision = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(url, sizeof url, ORIGIN "/d%d/sitemap_index.xml", i);
        add_index(f->catalogue, url);
        snprintf(loc, sizeof loc, "d%d/child", i);
        revision = put(f->catalogue, loc, NULL);
    }
    start_publisher(f, 2000);
    await_revision(f->publisher, revision);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 20; i++) {
            char path[64];
            snprintf(path, sizeof path, "/d%d/sitemap_index.xml", i);
            struct resource *s = get_page(f->publisher, path);
            assert_non_null(s);
            if (read == NULL)
                read = s; /* until the end of the first round */
            else
                resource_unref(s);
            if (round == 0 && i == 19) {
                assert_true(stats_of(f->publisher).evictions > 0);
                assert_false(atomic_load(&read->held.retired));
                resource_unref(read);
            }
        }
    /* The last build's eviction may still be under way. */
    for (int i = 0; stats_of(f->publisher).snapshot_bytes > 2000 && i < 12000; i++)
        usleep(10000);
    assert_in_range(stats_of(f->publisher).snapshot_bytes, 1, 2000);
}

/* Every other page goes before a reader is cut off, and as much is asked for as is too much. */
static void slow_readers_are_cut_last(void **state)
{
    enum { READERS = 6 };
    struct fixture *f = *state;
    struct resource *held[READERS];
    stop_publisher(f);
    add_index(f->catalogue, ORIGIN "/d/sitemap_index.xml");
    put(f->catalogue, "d/child", NULL);
    uint64_t revision = put(f->catalogue, "child-0", NULL);
    start_publisher(f, 1000); /* some two or three pages */
    await_revision(f->publisher, revision);
    struct resource *other = get_page(f->publisher, "/d/sitemap_index.xml");
    resource_unref(other);
    for (int i = 0; i < READERS; i++) {
        char name[16];
        held[i] = get_page(f->publisher, PAGE);
        assert_non_null(held[i]);
        if (atomic_load(&f->cuts) > 0)
            assert_true(stats_of(f->publisher).evictions > 0);
        snprintf(name, sizeof name, "child-%d", i + 1);
        await_revision(f->publisher, put(f->catalogue, name, NULL));
        assert_true(atomic_load(&held[i]->held.retired));
    }
    assert_true(stats_of(f->publisher).evictions > 0);
    assert_true(atomic_load(&f->cuts) > 0);
    assert_int_equal(atomic_load(&f->cut_bytes), stats_of(f->publisher).snapshot_bytes - 1000);
    for (int i = 0; i < READERS; i++)
        resource_unref(held[i]);
    await_revision(f->publisher, put(f->catalogue, "child-0", "2026-01-01"));
    assert_in_range(stats_of(f->publisher).snapshot_bytes, 1, 1000);
}

static uint64_t set_robots(struct catalogue *c, const char *origin, const char *text)
{
    struct registry *registry;
    struct catalogue_view *view;
    assert_int_equal(catalogue_view_begin(c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_registry(view, &registry), CATALOGUE_OK);
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = registry_site_by_origin(registry, origin)->id,
                        .fields = {.set = SITE_SET_ROBOTS, .robots = text}}};
    uint64_t revision = apply(c, &change);
    registry_unref(registry);
    catalogue_view_end(view);
    return revision;
}

/* With a reference. */
static struct resource *get_robots(struct publisher *p, const char *host)
{
    struct site_target found;
    const struct page_map *routing = publisher_page_map(p);
    page_map_find(routing, host, "/robots.txt", &found);
    assert_int_equal(found.kind, ROUTE_ROBOTS);
    resource_ref(found.robots);
    publisher_page_map_done(routing);
    return found.robots;
}

/* As large as 16 MiB are all of them: one site's change must not render and hash the others'. */
static void a_change_makes_no_other_sites_robots_txt_anew(void **state)
{
    struct fixture *f = *state;
    const char *other = "https://b.example";
    apply(f->catalogue, &(struct change){.kind = CHANGE_SITE_ADD, .site_add = {.origin = other}});
    set_robots(f->catalogue, other, "User-agent: b\n");
    await_revision(f->publisher, set_robots(f->catalogue, ORIGIN, "User-agent: a\n"));
    struct resource *theirs = get_robots(f->publisher, "b.example");
    struct resource *mine = get_robots(f->publisher, "www.example.com");
    await_revision(f->publisher, set_robots(f->catalogue, ORIGIN, "User-agent: c\n"));
    struct resource *after = get_robots(f->publisher, "b.example");
    struct resource *changed = get_robots(f->publisher, "www.example.com");
    assert_ptr_equal(after, theirs);
    assert_ptr_not_equal(changed, mine);
    assert_memory_equal(changed->bytes, "User-agent: c\n", strlen("User-agent: c\n"));
    resource_unref(after);
    /* Its own page has come: it is named there. */
    await_revision(f->publisher, put(f->catalogue, "first", NULL));
    after = get_robots(f->publisher, "www.example.com");
    assert_ptr_not_equal(after, changed);
    resource_unref(after);
    after = get_robots(f->publisher, "b.example");
    assert_ptr_equal(after, theirs);
    resource_unref(after);
    resource_unref(changed);
    resource_unref(mine);
    resource_unref(theirs);
}

static void random_changes_equal_a_plain_render(void **state)
{
    struct fixture *f = *state;
    struct catalogue *other = open_catalogue(f->path, false);
    unsigned seed = 20261121;
    char name[32], lastmod[32];
    for (int i = 0; i < 400; i++) {
        struct catalogue *c = rand_r(&seed) % 3 == 0 ? other : f->catalogue;
        snprintf(name, sizeof name, "child-%d", rand_r(&seed) % 60);
        snprintf(lastmod, sizeof lastmod, "2026-01-%02d", 1 + rand_r(&seed) % 28);
        if (rand_r(&seed) % 4 == 0) {
            char loc[160];
            struct change_result result;
            snprintf(loc, sizeof loc, ORIGIN "/%s.xml", name);
            catalogue_apply(
                c, &(struct change){.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = loc}},
                &result);
            entry_record_done(&result.entry);
            await_revision(f->publisher, result.revision);
        } else {
            await_revision(f->publisher, put(c, name, lastmod));
        }
        if (i % 5 == 0)
            assert_equals_plain_render(f);
    }
    assert_equals_plain_render(f);
    catalogue_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_index_never_filled_is_not_there),
        TEST(an_acknowledged_write_is_in_the_next_read),
        TEST(one_change_renders_one_segment),
        TEST(another_handle_is_seen),
        TEST(an_emptied_page_is_gone_and_an_undone_change_has_its_tag_back),
        TEST(a_bulk_drops_the_page),
        TEST(much_of_few_segments_drops_the_page),
        TEST(the_budget_evicts),
        TEST(slow_readers_are_cut_last),
        TEST(a_change_makes_no_other_sites_robots_txt_anew),
        TEST(random_changes_equal_a_plain_render),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
