/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/db/read/read_fixture.h"

#include "db/read/registry_store.h"

/* Sites: 1 https://www.example.com (indexes /sitemap_index.xml 1, /shop/i.xml 2, /shop/b.xml 3,
 * /public/deep/x.xml 4 with another pattern, max_pages 500; urlset /shop/p.xml 7; cross:
 * cdn.example.net, www.example.com, port.example.net:8443, two.example; alias: example.com), 2
 * https://two.example (/a/i.xml 5, cross: cdn.example.net), 3 https://bare.example (no index), 4
 * http://127.0.0.1:8080 (/sitemap_index.xml 6, max_pages 3, cross: cdn2.example). */
#define S1 "https://www.example.com"

static const struct {
    const char *loc;
    const char *index; /* named, or NULL */
    enum rule_code code;
    int site, index_id;
    bool cross;
} cases[] = {
    /* the deepest directory of its own site */
    {S1 "/a.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/", NULL, RULE_OK, 1, 1, false},
    {S1 "/shop", NULL, RULE_OK, 1, 1, false},
    {S1 "/shopping/a.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/shop/", NULL, RULE_OK, 1, 2, false},
    {S1 "/shop/a.xml", NULL, RULE_OK, 1, 2, false},
    {S1 "/shop/x/y/z.xml", NULL, RULE_OK, 1, 2, false},
    {S1 "/shop/../a.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/public/a.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/public/deep/a.xml", NULL, RULE_OK, 1, 4, false},
    {S1 "/?q=/shop/a.xml", NULL, RULE_OK, 1, 1, false},
    {"HTTPS://WWW.EXAMPLE.com:443/shop/%61.xml", NULL, RULE_OK, 1, 2, false},
    {"http://127.0.0.1:8080/x", NULL, RULE_OK, 4, 6, false},
    /* no index holds it */
    {"https://two.example/b/a.xml", NULL, RULE_OUTSIDE_DIRECTORY, 2, 0, false},
    {"https://two.example/a", NULL, RULE_OUTSIDE_DIRECTORY, 2, 0, false},
    {"https://bare.example/a.xml", NULL, RULE_OUTSIDE_DIRECTORY, 3, 0, false},
    /* no site */
    {"https://nobody.example/a.xml", NULL, RULE_SITE_UNKNOWN, 0, 0, false},
    {"https://nobody.example/a.xml", S1 "/shop/i.xml", RULE_OUTSIDE_SITE, 1, 0, false},
    {"https://example.com/a.xml", NULL, RULE_SITE_UNKNOWN, 0, 0, false},
    {"http://two.example:81/a.xml", NULL, RULE_INDEX_NEEDED, 1, 0, false},
    {"https://cdn.example.net/a.xml", NULL, RULE_INDEX_NEEDED, 1, 0, false},
    {"https://cdn.example.net:99/a.xml", NULL, RULE_INDEX_NEEDED, 1, 0, false},
    {"https://port.example.net:8443/a.xml", NULL, RULE_INDEX_NEEDED, 1, 0, false},
    {"https://port.example.net/a.xml", NULL, RULE_SITE_UNKNOWN, 0, 0, false},
    {"http://www.example.com/a.xml", NULL, RULE_INDEX_NEEDED, 1, 0, false},
    {"http://bare.example/a.xml", NULL, RULE_OUTSIDE_SITE, 3, 0, false},
    {"https://bare.example:444/a.xml", NULL, RULE_OUTSIDE_SITE, 3, 0, false},
    {"https://127.0.0.1:8080/x.xml", NULL, RULE_OUTSIDE_SITE, 4, 0, false},
    /* an index named */
    {S1 "/shop/a.xml", S1 "/sitemap_index.xml", RULE_OK, 1, 1, false},
    {S1 "/shop/a.xml", S1 "/shop/b.xml", RULE_OK, 1, 3, false},
    {S1 "/a.xml", S1 "/shop/i.xml", RULE_OUTSIDE_DIRECTORY, 1, 0, false},
    {S1 "/a.xml", S1 "/nothing.xml", RULE_INDEX_UNKNOWN, 0, 0, false},
    {S1 "/a.xml", "/shop/i.xml", RULE_INDEX_UNKNOWN, 0, 0, false}, /* four sites */
    {S1 "/a.xml", "https://two.example/a/i.xml", RULE_OUTSIDE_SITE, 2, 0, false},
    {"http://bare.example/a.xml", S1 "/shop/i.xml", RULE_OUTSIDE_SITE, 1, 0, false},
    /* cross hosts: exempt from the directory */
    {"https://cdn.example.net/a.xml", S1 "/shop/i.xml", RULE_OK, 1, 2, true},
    {"http://cdn.example.net:99/a.xml", "https://two.example/a/i.xml", RULE_OK, 2, 5, true},
    {"https://cdn.example.net/a.xml", "http://127.0.0.1:8080/sitemap_index.xml", RULE_OUTSIDE_SITE,
     4, 0, false},
    {"https://port.example.net:8443/a.xml", S1 "/shop/i.xml", RULE_OK, 1, 2, true},
    {"https://port.example.net/a.xml", S1 "/shop/i.xml", RULE_OUTSIDE_SITE, 1, 0, false},
    {"http://www.example.com/a.xml", S1 "/shop/i.xml", RULE_OK, 1, 2, true},
    {"https://two.example/zzz.xml", S1 "/shop/i.xml", RULE_OK, 1, 2, true},
    {"https://cdn.example.net/sitemap_index.xml", S1 "/shop/i.xml", RULE_OK, 1, 2, true},
    /* pages, present or possible */
    {S1 "/sitemap_index.xml", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/sitemap_index.xml.gz", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/sitemap_index-2.xml", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/sitemap_index-500.xml.gz", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/sitemap_index-501.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/sitemap_index-02.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/sitemap_index-1.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/sitemap_index.xml?page=1", NULL, RULE_OK, 1, 1, false},
    {S1 "/sitemap_index.xml/", NULL, RULE_OK, 1, 1, false},
    {S1 "/sitemap-2.xml", NULL, RULE_OK, 1, 1, false},
    {S1 "/x/../sitemap_index.xml", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/shop/i-7.xml", S1 "/sitemap_index.xml", RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/shop/b.xml", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/shop/sitemap_index.xml", NULL, RULE_OK, 1, 2, false},
    {S1 "/public/deep/x_p3.xml", NULL, RULE_LOC_IS_PAGE, 1, 0, false},
    {S1 "/public/deep/x-3.xml", NULL, RULE_OK, 1, 4, false},
    {"http://127.0.0.1:8080/sitemap_index-3.xml", NULL, RULE_LOC_IS_PAGE, 4, 0, false},
    {"http://127.0.0.1:8080/sitemap_index-4.xml", NULL, RULE_OK, 4, 6, false},
    /* a urlset's page: with the index of an ordinary loc */
    {S1 "/shop/p.xml", NULL, RULE_OF_URLSET, 1, 2, false},
    {S1 "/shop/p-2.xml.gz", S1 "/sitemap_index.xml", RULE_OF_URLSET, 1, 1, false},
    {S1 "/shop/p.xml", "https://two.example/a/i.xml", RULE_OUTSIDE_SITE, 2, 0, false},
    /* the same pages by another name */
    {"http://www.example.com/sitemap_index.xml", S1 "/shop/i.xml", RULE_LOC_IS_PAGE, 1, 0, true},
    {"https://two.example/a/i-2.xml", S1 "/shop/i.xml", RULE_LOC_IS_PAGE, 1, 0, true},
};

static struct registry *make_registry(struct fixture *f)
{
    struct registry *r;

    fixture_open(f);
    fixture_site(f->db, 1, S1);
    fixture_site(f->db, 2, "https://two.example");
    fixture_site(f->db, 3, "https://bare.example");
    fixture_site(f->db, 4, "http://127.0.0.1:8080");
    fixture_sql(f->db, "UPDATE site SET max_pages = 3 WHERE id = 4");
    fixture_index(f->db, 1, 1, "/sitemap_index.xml");
    fixture_index(f->db, 2, 1, "/shop/i.xml");
    fixture_index(f->db, 3, 1, "/shop/b.xml");
    fixture_index(f->db, 4, 1, "/public/deep/x.xml");
    fixture_sql(f->db, "UPDATE sitemap_index SET page_pattern = '{stem}_p{n}{suffix}' WHERE id=4");
    fixture_index(f->db, 5, 2, "/a/i.xml");
    fixture_index(f->db, 6, 4, "/sitemap_index.xml");
    fixture_index(f->db, 7, 1, "/shop/p.xml");
    fixture_sql(f->db, "UPDATE sitemap_index SET kind = 1, of_index = 1 WHERE id = 7");
    fixture_host(f->db, 1, "cross", "cdn.example.net");
    fixture_host(f->db, 1, "cross", "www.example.com");
    fixture_host(f->db, 1, "cross", "port.example.net:8443");
    fixture_host(f->db, 1, "cross", "two.example");
    fixture_host(f->db, 1, "alias", "example.com");
    fixture_host(f->db, 2, "cross", "cdn.example.net");
    fixture_host(f->db, 4, "cross", "cdn2.example");
    assert_int_equal(registry_load(f->db, NULL, &r), CATALOGUE_OK);
    return r;
}

static void every_rule_of_placement(void **state)
{
    struct fixture f;
    struct registry *r = make_registry(&f);
    size_t wrong = 0;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct placement p;
        struct url loc;
        assert_int_equal(url_parse(cases[i].loc, strlen(cases[i].loc), &loc, NULL), RULE_OK);
        enum rule_code code = registry_place(r, &loc, cases[i].index, &p);
        int64_t site = p.site != NULL ? p.site->id : 0;
        int64_t index = p.index != NULL ? p.index->id : 0;
        if (code == cases[i].code && site == cases[i].site && index == cases[i].index_id &&
            p.cross == cases[i].cross)
            continue;
        print_error("%s in %s: %s, site %d, index %d, cross %d\n", cases[i].loc,
                    cases[i].index != NULL ? cases[i].index : "-", rule_code_word(code), (int)site,
                    (int)index, p.cross);
        wrong++;
    }
    assert_int_equal(wrong, 0);
    registry_unref(r);
    fixture_close(&f);
}

/* The table of directories must agree with the one rule of scope. */
static void agrees_with_a_plain_search(void **state)
{
    static const char *const parts[] = {"", "/a", "/b", "/a.xml", "/ab", "/%20"};
    struct registry *r;
    struct fixture f;
    int id = 0;

    fixture_open(&f);
    fixture_site(f.db, 1, S1);
    for (int i = 0; i < 216; i += 5) {
        char path[64];
        snprintf(path, sizeof path, "%s%s%s/i.xml", parts[i % 6], parts[i / 6 % 6], parts[i / 36]);
        fixture_sql(f.db,
                    "INSERT OR IGNORE INTO sitemap_index(id, site, path, page_pattern)"
                    " VALUES(%d, 1, %Q, %Q)",
                    ++id, path, PAGE_PATTERN_DEFAULT);
    }
    assert_int_equal(registry_load(f.db, NULL, &r), CATALOGUE_OK);
    for (int i = 0; i < 1296; i++) {
        char text[96];
        struct placement p;
        struct url loc;
        const struct registry_index *best = NULL;
        size_t best_len = 0;
        snprintf(text, sizeof text, S1 "%s%s%s%s/x", parts[i % 6], parts[i / 6 % 6],
                 parts[i / 36 % 6], parts[i / 216]);
        assert_int_equal(url_parse(text, strlen(text), &loc, NULL), RULE_OK);
        for (size_t k = 0; k < r->sites[0].index_count; k++) {
            const struct registry_index *index = &r->sites[0].indexes[k];
            size_t len = scope_directory_len(index->path, strlen(index->path));
            if (scope_holds(index->path, &loc) && len > best_len) {
                best = index;
                best_len = len;
            }
        }
        registry_place(r, &loc, NULL, &p);
        if (p.index != best)
            fail_msg("%s: %s", text, p.index != NULL ? p.index->path : "none");
    }
    registry_unref(r);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_of_placement),
        cmocka_unit_test(agrees_with_a_plain_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
