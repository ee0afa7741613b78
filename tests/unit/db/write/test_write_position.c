/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Positions, the limits of a page, the cap of a site. */
#include "tests/unit/db/write/write_stream.h"

static void free_positions_are_taken_lowest_first(void **state)
{
    struct write_fixture *f = *state;
    assert_int_equal(bulk_numbered(f, "s", 1200).created, 1200);
    static const int gone[] = {700, 3, 1100, 249, 250};
    static const int order[] = {3, 249, 250, 700, 1100, 1200};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/s/%d.xml", gone[i]);
        assert_int_equal(drop(f, loc).removed, 1);
    }
    /* From memory, and as read again from the file. */
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        char loc[64];
        if (i == 2)
            fixture_reopen(f);
        snprintf(loc, sizeof loc, ORIGIN "/new/%zu.xml", i);
        struct change_result r = put(f, loc, NULL);
        assert_int_equal(r.entry.position, order[i]);
        entry_record_done(&r.entry);
    }
    /* The others have not moved. */
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE loc LIKE '%%/s/%%'"
                                  " AND loc <> '" ORIGIN "/s/' || (address & 4294967295)"
                                  " || '.xml'"),
                     0);
}

static void a_page_holds_50000(void **state)
{
    struct write_fixture *f = *state;
    assert_int_equal(bulk_numbered(f, "s", 50001).created, 50001);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE number = 1"), 50000);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE number = 2"), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM segment"), 201);
    /* One registration touches one page and one segment. */
    put_plain(f, ORIGIN "/s/77.xml", "2026-01-02");
    assert_int_equal(
        number_of(f, "SELECT count(*) FROM page WHERE revision = %lld", revision_of(f)), 1);
    assert_int_equal(
        number_of(f, "SELECT number FROM segment WHERE revision = %lld", revision_of(f)), 0);
    /* A place on page 1 is taken before one on page 2. */
    drop(f, ORIGIN "/s/40000.xml");
    put_plain(f, ORIGIN "/new.xml", NULL);
    assert_int_equal(position_of(f, ORIGIN "/new.xml"), 40000);
}

/* Locs of the greatest length, and with what is longest escaped. */
static void make_long(void *context, uint64_t n, struct entry *out, char *text)
{
    (void)context;
    int len = snprintf(text, LOC_MAX_CHARS + 1, ORIGIN "/%06" PRIu64 "?", n);
    for (; len < (int)LOC_MAX_CHARS; len++)
        text[len] = len % 2 ? '&' : 'a';
    text[len] = '\0';
    out->loc = text;
}

static void a_page_holds_its_bytes(void **state)
{
    struct write_fixture *f = *state;
    struct test_stream s = {.make = make_long, .count = 10000};
    struct change_result r = apply_stream(f, (struct change){.kind = CHANGE_BULK}, &s);
    assert_int_equal(r.created, 10000);
    char text[LOC_MAX_CHARS + 1];
    struct entry last;
    make_long(NULL, 9999, &last, text);
    uint32_t weight = render_entry_bytes(text, strlen(text));
    int64_t fits = (LIMIT_PAGE_BYTES - render_frame_bytes()) / weight;
    assert_true(fits < 10000);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE number = 1"), fits);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE number = 2"), 10000 - fits);
    /* What is shorter still finds room on page 1. */
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(position_of(f, ORIGIN "/a.xml"), fits);
}

static void the_cap_counts_pages_of_all_indexes(void **state)
{
    struct write_fixture *f = *state;
    int64_t small = add_site(f, "https://small.example", 2);
    add_index(f, "https://small.example/a/index.xml");
    add_index(f, "https://small.example/b/index.xml");
    add_index(f, "https://small.example/c/index.xml");
    struct change_result r = put_plain(f, "https://small.example/a/1.xml", NULL);
    assert_int_equal(r.created, 1);
    r = put_plain(f, "https://small.example/b/1.xml", NULL);
    assert_true(r.remarks & RULE_BIT(RULE_SITE_NEARLY_FULL));
    int64_t revision = revision_of(f);
    r = put_plain(f, "https://small.example/c/1.xml", NULL);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_SITE_FULL);
    assert_int_equal(revision_of(f), revision);
    /* There is room on the pages it has. */
    assert_int_equal(put_plain(f, "https://small.example/b/2.xml", NULL).created, 1);
    /* Room may come from elsewhere. */
    drop(f, "https://small.example/a/1.xml");
    assert_int_equal(put_plain(f, "https://small.example/c/1.xml", NULL).created, 1);
    assert_int_equal(put_plain(f, "https://small.example/a/1.xml", NULL).code, RULE_SITE_FULL);
    /* Other sites are not concerned, and a higher cap gives room. */
    assert_int_equal(put_plain(f, ORIGIN "/1.xml", NULL).created, 1);
    struct change update = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = small, .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 3}}};
    assert_int_equal(apply(f, &update).updated, 1);
    assert_int_equal(put_plain(f, "https://small.example/a/1.xml", NULL).created, 1);
}

static void a_move_may_use_the_page_it_leaves(void **state)
{
    struct write_fixture *f = *state;
    add_site(f, "https://small.example", 1);
    add_index(f, "https://small.example/index.xml");
    add_index(f, "https://small.example/a/index.xml");
    struct change change = put_change("https://small.example/a/1.xml", NULL);
    change.entry.index = "https://small.example/index.xml";
    assert_int_equal(apply_plain(f, &change).created, 1);
    change.entry.index = "https://small.example/a/index.xml";
    assert_int_equal(apply_plain(f, &change).updated, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page WHERE entries > 0"), 1);
    /* Not so where others stay behind. */
    change = put_change("https://small.example/a/2.xml", NULL);
    assert_int_equal(apply_plain(f, &change).created, 1);
    change.entry.index = "https://small.example/index.xml";
    assert_int_equal(apply_plain(f, &change).code, RULE_SITE_FULL);
}

static void a_page_that_empties_keeps_its_place(void **state)
{
    struct write_fixture *f = *state;
    static const struct line lines[] = {{ORIGIN "/1.xml", NULL, 0 + 1, NULL},
                                        {ORIGIN "/2.xml", NULL, 50000 + 1, NULL},
                                        {ORIGIN "/3.xml", NULL, 100000 + 1, NULL}};
    apply_lines(f, (struct change){.kind = CHANGE_BULK}, LINES(lines));
    drop(f, ORIGIN "/2.xml");
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE number = 2"), 0);
    assert_int_equal(number_of(f, "SELECT bytes FROM page WHERE number = 2"), render_frame_bytes());
    assert_int_equal(position_of(f, ORIGIN "/3.xml"), 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(free_positions_are_taken_lowest_first),
        TEST(a_page_holds_50000),
        TEST(a_page_holds_its_bytes),
        TEST(the_cap_counts_pages_of_all_indexes),
        TEST(a_move_may_use_the_page_it_leaves),
        TEST(a_page_that_empties_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
