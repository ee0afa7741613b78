/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Where an entry finds its place: asked for, nothing is written, in however many indexes. So what
 * comes with another entry is placed before either is written, and refused with it. */
#include "db/write/occupancy.h"

#include "db/write/commit.h"
#include "tests/unit/db/read/read_fixture.h"

#define ORIGIN  "https://www.example.com"
#define WEIGHT  100u
#define PAGE(n) (((n)-1) * LIMIT_PAGE_ENTRIES)

static const struct catalogue_options options = {
    .write_timeout_ms = 10000, .shrink_percent = 30, .default_max_pages = LIMIT_SITE_PAGES};

/* Index 1 has an entry at position 0, index 2 at 0 and 2; index 3 has none. */
struct world {
    struct fixture f;
    struct tx tx;
    struct occupancy_index *index[4]; /* by id */
};

static int begin(void **state)
{
    static struct world w;
    memset(&w, 0, sizeof w);
    fixture_open(&w.f);
    fixture_site(w.f.db, 1, ORIGIN);
    fixture_index(w.f.db, 1, 1, "/one.xml");
    fixture_index(w.f.db, 2, 1, "/two.xml");
    fixture_index(w.f.db, 3, 1, "/three.xml");
    fixture_entry(w.f.db, 1, 0, ORIGIN "/a.xml", NULL);
    fixture_entry(w.f.db, 2, 0, ORIGIN "/b.xml", NULL);
    fixture_entry(w.f.db, 2, 2, ORIGIN "/c.xml", NULL);
    assert_true(tx_init(&w.tx, &options, w.f.db));
    assert_int_equal(tx_begin(&w.tx), CATALOGUE_OK);
    for (int id = 1; id <= 3; id++)
        assert_int_equal(occupancy_index(&w.tx, 1, id, &w.index[id]), CATALOGUE_OK);
    *state = &w;
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    tx_done(&w->tx);
    fixture_close(&w->f);
    return 0;
}

static uint32_t find(struct world *w, int id, uint32_t max_pages, uint32_t wanted)
{
    struct occupancy_room room = {.weight = WEIGHT, .max_pages = max_pages, .wanted = wanted};
    uint32_t position;
    assert_int_equal(occupancy_find(&w->tx, w->index[id], &room, &position), CATALOGUE_OK);
    return position;
}

static void commit(struct world *w)
{
    tx_end_change(&w->tx);
    assert_int_equal(tx_commit(&w->tx), CATALOGUE_OK);
}

static void places_are_found_in_several_indexes_before_any_is_taken(void **state)
{
    struct world *w = *state;
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(find(w, 1, 500, POSITION_NONE), 1);
        assert_int_equal(find(w, 2, 500, POSITION_NONE), 1);
        assert_int_equal(find(w, 2, 500, PAGE(3) + 7), PAGE(3) + 7);
        assert_int_equal(find(w, 3, 500, POSITION_NONE), 0);
    }
    assert_int_equal(occupancy_reserve(&w->tx, w->index[1], 1, WEIGHT), CATALOGUE_OK);
    assert_int_equal(occupancy_reserve(&w->tx, w->index[3], 0, WEIGHT), CATALOGUE_OK);
    assert_int_equal(find(w, 1, 500, POSITION_NONE), 2);
    assert_int_equal(find(w, 3, 500, POSITION_NONE), 1);
    commit(w);
    assert_int_equal(fixture_number(w->f.db, "SELECT revision FROM catalogue"), 4);
    assert_int_equal(fixture_number(w->f.db, "SELECT count(*) FROM page WHERE revision = 4"), 2);
    assert_int_equal(fixture_number(w->f.db, "SELECT entries FROM page WHERE index_id = 3"), 1);
}

/* The site has its two pages: where one index has room and the other has none, nothing came to
 * either, not even pages that were looked at. */
static void a_place_that_is_not_there_leaves_the_others_alone(void **state)
{
    struct world *w = *state;
    assert_int_equal(find(w, 1, 2, POSITION_NONE), 1);
    assert_int_equal(find(w, 1, 2, PAGE(2)), 1);
    assert_int_equal(find(w, 3, 2, POSITION_NONE), POSITION_NONE);
    assert_false(w->tx.changed);
    commit(w);
    assert_int_equal(fixture_number(w->f.db, "SELECT revision FROM catalogue"), 3);
    assert_int_equal(fixture_number(w->f.db, "SELECT count(*) FROM page"), 2);
}

/* A page that the same change will have emptied is room for another. */
static void a_page_that_goes_makes_room(void **state)
{
    struct world *w = *state;
    struct occupancy_room room = {
        .weight = WEIGHT, .max_pages = 2, .spare = 1, .wanted = POSITION_NONE};
    uint32_t position;
    assert_true(occupancy_would_empty(w->index[1], 0));
    assert_false(occupancy_would_empty(w->index[2], 0));
    assert_int_equal(occupancy_find(&w->tx, w->index[3], &room, &position), CATALOGUE_OK);
    assert_int_equal(position, 0);
    commit(w);
}

/* After a commit what is known stays known, up to a bound, so that the next write reads nothing. */
static void what_is_known_is_kept_up_to_a_bound(void **state)
{
    struct world *w = *state;
    commit(w);
    assert_ptr_equal(w->tx.occupancy->indexes, w->index[3]);
    w->tx.occupancy->bytes = OCCUPANCY_MAX_BYTES;
    occupancy_settle(w->tx.occupancy);
    assert_non_null(w->tx.occupancy->indexes);
    w->tx.occupancy->bytes++;
    occupancy_settle(w->tx.occupancy);
    assert_null(w->tx.occupancy->indexes);
    assert_int_equal(w->tx.occupancy->bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(places_are_found_in_several_indexes_before_any_is_taken),
        TEST(a_place_that_is_not_there_leaves_the_others_alone),
        TEST(a_page_that_goes_makes_room),
        TEST(what_is_known_is_kept_up_to_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
