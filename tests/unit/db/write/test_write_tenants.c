/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What one site may do to others: which hosts it may name, and how much its settings cost others'
 * writes. Costs are counted in statements, which do not depend on time or load. */
#include "tests/unit/db/write/write_stream.h"

#define B "https://b.example"

/* The site of ORIGIN is A's; a change with `.grant.site_id = f->site` is by a token for it. */
static struct change_result set_hosts(struct write_fixture *f, int64_t site, int64_t token,
                                      unsigned which, const char *host)
{
    const char *const hosts[] = {host, NULL}, *const none[] = {NULL};
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .grant.site_id = token,
        .site_update = {.site_id = site,
                        .fields = {.set = which,
                                   .cross_hosts = which & SITE_SET_CROSS_HOSTS ? hosts : none,
                                   .alias_hosts = which & SITE_SET_ALIAS_HOSTS ? hosts : none}}};
    return apply(f, &change);
}

static int64_t index_of(struct write_fixture *f, const char *loc)
{
    return number_of(f, "SELECT coalesce(max(address >> 32), 0) FROM sitemap WHERE loc = %Q", loc);
}

static void a_token_names_no_host_of_another_site(void **state)
{
    struct write_fixture *f = *state;
    add_site(f, B, 0);
    add_site(f, "https://port.example:8443", 0);
    static const char *const taken[] = {"b.example", "B.EXAMPLE:81", "port.example",
                                        "port.example:8443"};
    for (unsigned which = SITE_SET_CROSS_HOSTS; which <= SITE_SET_ALIAS_HOSTS; which *= 2) {
        const char *field = which == SITE_SET_CROSS_HOSTS ? "cross_hosts" : "alias_hosts";
        for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
            struct change_result r = set_hosts(f, f->site, f->site, which, taken[i]);
            assert_int_equal(r.status, CATALOGUE_REFUSED);
            assert_int_equal(r.code, RULE_HOST_TAKEN);
            assert_string_equal(r.field, field);
            assert_non_null(strstr(r.detail, "another site"));
        }
        /* Its own, under another scheme; nobody's; another port than that of the other's origin. */
        static const char *const free_for_it[] = {"www.example.com", "cdn.example",
                                                  "port.example:9443"};
        for (size_t i = 0; i < sizeof free_for_it / sizeof *free_for_it; i++)
            assert_int_equal(set_hosts(f, f->site, f->site, which, free_for_it[i]).status,
                             CATALOGUE_OK);
        /* Who may touch every site may say so; then A's token may leave it as it is. */
        assert_int_equal(set_hosts(f, f->site, 0, which, "b.example").updated, 1);
        assert_int_equal(set_hosts(f, f->site, f->site, which, "b.example").unchanged, 1);
    }
}

/* Whatever the order and the caller: what belongs to an origin goes to its site. */
static void a_claim_never_beats_the_origin(void **state)
{
    struct write_fixture *f = *state;
    unsigned both = SITE_SET_CROSS_HOSTS | SITE_SET_ALIAS_HOSTS;
    assert_int_equal(set_hosts(f, f->site, f->site, both, "b.example").updated, 1);
    struct change claimed = put_change(B "/1.xml", NULL);
    claimed.entry.index = ORIGIN INDEX;
    assert_int_equal(apply_plain(f, &claimed).created, 1);
    assert_int_equal(index_of(f, B "/1.xml"), f->index);
    /* An index of A that has the name of what B will have. */
    add_index(f, ORIGIN "/products.xml");

    int64_t b = add_site(f, B, 0), b_index = add_index(f, B INDEX);
    assert_int_equal(put_plain(f, B "/1.xml", NULL).created, 1);
    assert_int_equal(index_of(f, B "/1.xml"), b_index);
    assert_int_equal(put_plain(f, B "/products.xml", NULL).created, 1);
    assert_int_equal(index_of(f, B "/products.xml"), b_index);
    static const struct line list[] = {{.loc = B "/1.xml"}, {.loc = B "/2.xml"}};
    struct change_result r =
        apply_lines(f, (struct change){.kind = CHANGE_BULK, .grant.site_id = b}, LINES(list));
    assert_int_equal(r.created, 1);
    assert_int_equal(r.unchanged, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE address >> 32 = %lld",
                               (long long)f->index),
                     1);
    /* What A has it may still take out, and its token touches nothing of B's. */
    struct change drop_it = {
        .kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = B "/1.xml"}, .grant.site_id = f->site};
    assert_int_equal(apply_plain(f, &drop_it).removed, 1);
    assert_int_equal(apply_plain(f, &drop_it).status, CATALOGUE_NOT_FOUND);
    assert_int_equal(index_of(f, B "/1.xml"), b_index);
}

/* Any site may name any host that is nobody's origin: that must not take others' locs there. */
static void an_alias_elsewhere_makes_no_page(void **state)
{
    struct write_fixture *f = *state;
    int64_t b = add_site(f, B, 0);
    add_index(f, B "/products.xml");
    set_hosts(f, f->site, f->site, SITE_SET_CROSS_HOSTS, "cdn.example");
    assert_int_equal(set_hosts(f, b, b, SITE_SET_ALIAS_HOSTS, "cdn.example").updated, 1);
    struct change put_it = put_change("https://cdn.example/products.xml", NULL);
    put_it.entry.index = ORIGIN INDEX;
    assert_int_equal(apply_plain(f, &put_it).created, 1);
    /* Its own is another matter. */
    set_hosts(f, b, b, SITE_SET_ALIAS_HOSTS | SITE_SET_CROSS_HOSTS, "alias.example");
    put_it = put_change("https://alias.example/products.xml", NULL);
    put_it.entry.index = B "/products.xml";
    assert_int_equal(apply_plain(f, &put_it).code, RULE_LOC_IS_PAGE);
}

/* Two sites may list the same CDN; each token hears of its own site. */
static void a_shared_cross_host_tells_each_of_its_own(void **state)
{
    struct write_fixture *f = *state;
    int64_t b = add_site(f, B, 0);
    set_hosts(f, f->site, 0, SITE_SET_CROSS_HOSTS, "cdn.example");
    set_hosts(f, b, 0, SITE_SET_CROSS_HOSTS, "cdn.example");
    int64_t tokens[] = {f->site, b};
    for (size_t i = 0; i < 2; i++) {
        struct change change = put_change("https://cdn.example/a.xml", NULL);
        change.grant.site_id = tokens[i];
        struct change_result r = apply_plain(f, &change);
        assert_int_equal(r.code, RULE_INDEX_NEEDED);
        assert_false(r.forbidden);
    }
}

static struct change_result remove_from(struct write_fixture *f, const char *index)
{
    struct change change = {.kind = CHANGE_ENTRY_REMOVE,
                            .index_name = index,
                            .entry_remove = {.loc = "https://cdn.example/a.xml"}};
    return apply_plain(f, &change);
}

/* Who lists the same loc gets no update that is for another; nor is its own removed instead. */
static void a_loc_of_several_sites_needs_an_index(void **state)
{
    struct write_fixture *f = *state;
    int64_t b = add_site(f, B, 0), b_index = add_index(f, B INDEX);
    set_hosts(f, f->site, 0, SITE_SET_CROSS_HOSTS, "cdn.example");
    set_hosts(f, b, 0, SITE_SET_CROSS_HOSTS, "cdn.example");
    struct change put_b = put_change("https://cdn.example/a.xml", NULL);
    put_b.entry.index = B INDEX;
    assert_int_equal(apply_plain(f, &put_b).created, 1);
    assert_int_equal(put_plain(f, "https://cdn.example/a.xml", "2020-01-01").updated, 1);
    struct change put_a = put_change("https://cdn.example/a.xml", NULL);
    put_a.entry.index = ORIGIN INDEX;
    put_a.grant.site_id = f->site;
    assert_int_equal(apply_plain(f, &put_a).created, 1);

    struct change_result r = put_plain(f, "https://cdn.example/a.xml", "2021-01-01");
    assert_int_equal(r.code, RULE_INDEX_NEEDED);
    assert_string_equal(r.field, "index");
    static const struct line list[] = {
        {.loc = "https://cdn.example/a.xml", .lastmod = "2021-01-01"}};
    r = apply_lines(f, (struct change){.kind = CHANGE_BULK}, LINES(list));
    assert_int_equal(r.updated, 0);
    put_a.entry.index = NULL;
    assert_int_equal(apply_plain(f, &put_a).unchanged, 1);

    r = remove_from(f, NULL);
    assert_int_equal(r.code, RULE_INDEX_NEEDED);
    assert_string_equal(r.field, "index");
    assert_int_equal(remove_from(f, ORIGIN "/none.xml").code, RULE_INDEX_UNKNOWN);
    assert_int_equal(remove_from(f, ORIGIN INDEX).removed, 1);
    assert_int_equal(remove_from(f, ORIGIN INDEX).status, CATALOGUE_NOT_FOUND);
    assert_int_equal(index_of(f, "https://cdn.example/a.xml"), b_index);
    assert_int_equal(put_plain(f, "https://cdn.example/a.xml", "2021-01-01").updated, 1);
    assert_int_equal(remove_from(f, NULL).removed, 1);
}

/* A loc on the host that all have costs a lookup in each; so many, and no more. */
static void a_host_of_very_many_sites_needs_an_index(void **state)
{
    struct write_fixture *f = *state;
    int64_t last = 0;
    for (int i = 0; i <= 100; i++) {
        char origin[40];
        snprintf(origin, sizeof origin, "https://s%03d.example", i);
        last = add_site(f, origin, 0);
        set_hosts(f, last, 0, SITE_SET_CROSS_HOSTS, "cdn.example");
    }
    add_index(f, "https://s100.example" INDEX);
    struct change change = put_change("https://cdn.example/a.xml", NULL);
    change.entry.index = "https://s100.example" INDEX;
    assert_int_equal(apply_plain(f, &change).created, 1);
    assert_int_equal(apply_plain(f, &change).unchanged, 1);
    change.entry.index = NULL;
    assert_int_equal(apply_plain(f, &change).code, RULE_INDEX_NEEDED);
    change.grant.site_id = last;
    assert_int_equal(apply_plain(f, &change).unchanged, 1);
}

static void http_and_https_are_one_site(void **state)
{
    struct write_fixture *f = *state;
    static const char *const second[] = {"http://www.example.com", "HTTP://WWW.example.com:80/",
                                         "http://www.example.com:443",
                                         "https://www.example.com:80"};
    for (size_t i = 0; i < sizeof second / sizeof *second; i++) {
        struct change_result r =
            apply(f, &(struct change){.kind = CHANGE_SITE_ADD, .site_add = {.origin = second[i]}});
        assert_int_equal(r.status, CATALOGUE_REFUSED);
        assert_int_equal(r.code, RULE_HOST_TAKEN);
        assert_string_equal(r.field, "origin");
        assert_non_null(strstr(r.detail, ORIGIN));
    }
    /* Another port is another server. */
    add_site(f, "http://www.example.com:8080", 0);
    assert_int_equal(
        apply(f, &(struct change){.kind = CHANGE_SITE_ADD,
                                  .site_add = {.origin = "https://www.example.com:8080"}})
            .code,
        RULE_HOST_TAKEN);
    /* A catalogue of before has both, each with entries of its own, and goes on taking them. */
    run_sql(f, "INSERT INTO site(origin, managed, max_pages) VALUES ('http://www.example.com', 0,"
               " 500); UPDATE catalogue SET registry_revision = registry_revision + 1,"
               " revision = revision + 1");
    int64_t plain = add_index(f, "http://www.example.com/sitemap_index.xml");
    assert_int_equal(put_plain(f, "http://www.example.com/a.xml", NULL).created, 1);
    assert_int_equal(put_plain(f, ORIGIN "/a.xml", NULL).created, 1);
    assert_int_equal(index_of(f, "http://www.example.com/a.xml"), plain);
    assert_int_equal(index_of(f, ORIGIN "/a.xml"), f->index);
    fixture_reopen(f);
}

static void a_token_of_one_site_raises_no_cap(void **state)
{
    struct write_fixture *f = *state;
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .grant.site_id = f->site,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 501}}};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.code, RULE_ALL_SITES);
    assert_string_equal(r.field, "max_indexes");
    change.site_update.fields.max_pages = 400;
    assert_int_equal(apply(f, &change).updated, 1);
    change.site_update.fields.max_pages = 401;
    assert_int_equal(apply(f, &change).code, RULE_ALL_SITES);
    change.grant.site_id = 0;
    assert_int_equal(apply(f, &change).updated, 1);
}

static char names[1001][32];
static const char *host_list[1002];

static const char *const *hosts_of(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "h%zu.example", i);
        host_list[i] = names[i];
    }
    host_list[count] = NULL;
    return host_list;
}

static void what_a_site_may_have_is_bounded(void **state)
{
    struct write_fixture *f = *state;
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .grant.site_id = f->site,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_ALIAS_HOSTS, .alias_hosts = hosts_of(101)}}};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_FULL);
    assert_string_equal(r.field, "alias_hosts");
    change.grant.site_id = 0;
    assert_int_equal(apply(f, &change).updated, 1);
    /* What it has it may keep, and have less of. */
    change.grant.site_id = f->site;
    change.site_update.fields.alias_hosts = hosts_of(100);
    assert_int_equal(apply(f, &change).updated, 1);

    for (int i = 1; i < 500; i++) {
        char url[64];
        snprintf(url, sizeof url, ORIGIN "/%d/i.xml", i);
        add_index(f, url);
    }
    r = apply(f,
              &(struct change){.kind = CHANGE_INDEX_ADD, .index_add = {.url = ORIGIN "/x/i.xml"}});
    assert_int_equal(r.status, CATALOGUE_FULL);
    assert_string_equal(r.field, "url");
    /* More of them, of before, are served and can go. */
    run_sql(f,
            "INSERT INTO sitemap_index(site, path, page_pattern) VALUES (%lld, '/y/i.xml',"
            " '{stem}-{n}{suffix}'); UPDATE catalogue SET"
            " registry_revision = registry_revision + 1, revision = revision + 1",
            (long long)f->site);
    assert_int_equal(put_plain(f, ORIGIN "/y/a.xml", NULL).created, 1);
}

static uint64_t statements(struct write_fixture *f)
{
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    return stats.statements;
}

static void make_near(void *context, uint64_t n, struct entry *out, char *text)
{
    (void)context; /* begins like a page's name, but is not one */
    snprintf(text, LOC_MAX_CHARS + 1, ORIGIN "/x/i-%" PRIu64 "x.xml", n + 2);
    out->loc = text;
}

/* The lookups follow from the locs that begin as the names do: 500 pages and 1,000 aliases, twice
 * each by scheme and gzip, are some 2,000,000 names. */
static void names_are_not_looked_up_one_by_one(void **state)
{
    struct write_fixture *f = *state;
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {
            .site_id = f->site,
            .fields = {.set = SITE_SET_ALIAS_HOSTS | SITE_SET_CROSS_HOSTS | SITE_SET_MAX_PAGES,
                       .alias_hosts = hosts_of(1000),
                       .cross_hosts = hosts_of(1),
                       .max_pages = 85899}}};
    assert_int_equal(apply(f, &change).updated, 1);
    uint64_t before = statements(f);
    int64_t x = add_index(f, ORIGIN "/x/i.xml");
    assert_true(statements(f) - before < 2100);
    struct change remove = {.kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = x}};
    assert_int_equal(apply(f, &remove).status, CATALOGUE_OK);

    /* Each loc in the way costs a few. */
    struct test_stream s = {.make = make_near, .count = 1000};
    assert_int_equal(apply_stream(f, (struct change){.kind = CHANGE_BULK}, &s).created, 1000);
    before = statements(f);
    x = add_index(f, ORIGIN "/x/i.xml");
    assert_true(statements(f) - before < 2100 + 6 * 1000);
    remove.index_remove.index_id = x;
    assert_int_equal(apply(f, &remove).status, CATALOGUE_OK);

    /* The last page's name is found behind all of them, and under an alias. */
    put_plain(f, ORIGIN "/x/i-85899.xml.gz", NULL);
    struct change again = {.kind = CHANGE_INDEX_ADD, .index_add = {.url = ORIGIN "/x/i.xml"}};
    struct change_result r = apply(f, &again);
    assert_int_equal(r.code, RULE_INDEX_COVERS_LOC);
    assert_non_null(strstr(r.detail, "/x/i-85899.xml.gz"));
    drop(f, ORIGIN "/x/i-85899.xml.gz");
    struct change put_it = put_change("http://h0.example/x/i-77.xml", NULL);
    put_it.entry.index = ORIGIN INDEX;
    assert_int_equal(apply_plain(f, &put_it).created, 1);
    assert_int_equal(apply(f, &again).code, RULE_INDEX_COVERS_LOC);
    drop(f, "http://h0.example/x/i-77.xml");

    /* So many that to look at all would take long: refused, and not one statement a loc more. */
    s = (struct test_stream){.make = make_near, .count = 30000};
    assert_int_equal(apply_stream(f, (struct change){.kind = CHANGE_BULK}, &s).created, 29000);
    before = statements(f);
    r = apply(f, &again);
    assert_int_equal(r.code, RULE_INDEX_COVERS_LOC);
    assert_non_null(strstr(r.detail, "too many"));
    assert_true(statements(f) - before < 50100);
}

static uint64_t cost_of_list(struct write_fixture *f, const char *folder)
{
    uint64_t before = statements(f);
    assert_int_equal(bulk_numbered(f, folder, 1000).created, 1000);
    return statements(f) - before;
}

/* Others' cross hosts are no business of a list. */
static void cross_hosts_cost_no_other_site(void **state)
{
    struct write_fixture *f = *state;
    uint64_t alone = cost_of_list(f, "one");
    for (int i = 0; i < 20; i++) {
        char origin[32];
        snprintf(origin, sizeof origin, "https://s%d.example", i);
        struct change change = {
            .kind = CHANGE_SITE_ADD,
            .site_add = {.origin = origin,
                         .fields = {.set = SITE_SET_CROSS_HOSTS, .cross_hosts = hosts_of(1000)}}};
        assert_int_equal(apply(f, &change).status, CATALOGUE_OK);
        assert_int_equal(
            set_hosts(f, apply(f, &change).id, 0, SITE_SET_CROSS_HOSTS, "www.example.com").updated,
            1);
    }
    assert_true(cost_of_list(f, "two") <= alone + 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(a_token_names_no_host_of_another_site),
        TEST(a_claim_never_beats_the_origin),
        TEST(an_alias_elsewhere_makes_no_page),
        TEST(a_shared_cross_host_tells_each_of_its_own),
        TEST(a_loc_of_several_sites_needs_an_index),
        TEST(a_host_of_very_many_sites_needs_an_index),
        TEST(http_and_https_are_one_site),
        TEST(a_token_of_one_site_raises_no_cap),
        TEST(what_a_site_may_have_is_bounded),
        TEST(names_are_not_looked_up_one_by_one),
        TEST(cross_hosts_cost_no_other_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
