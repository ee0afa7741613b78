/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/db/read/read_fixture.h"

#include <pthread.h>
#include <time.h>

#include "db/read/registry_store.h"

static struct registry *load(sqlite3 *db)
{
    struct registry *r = NULL;

    assert_int_equal(registry_load(db, NULL, &r), CATALOGUE_OK);
    assert_non_null(r);
    return r;
}

static void an_empty_catalogue_has_an_empty_registry(void **state)
{
    struct fixture f;

    fixture_open(&f);
    struct registry *r = load(f.db);
    assert_int_equal(strlen(r->epoch), 32);
    assert_int_equal(r->revision, 0);
    assert_int_equal(r->site_count, 0);
    assert_null(registry_site_by_host(r, "example.com"));
    assert_null(registry_site_by_origin(r, "https://example.com"));
    assert_null(registry_site_by_id(r, 1));
    assert_null(registry_index_by_id(r, 1));
    assert_null(registry_index_by_name(r, "/sitemap_index.xml", NULL));
    assert_null(registry_index_by_name(r, "", NULL));
    registry_unref(r);
    fixture_close(&f);
}

static void everything_is_read_and_ordered(void **state)
{
    struct fixture f;

    fixture_open(&f);
    fixture_site(f.db, 1, "https://www.example.com");
    fixture_site(f.db, 2, "http://a.example:8080");
    fixture_site(f.db, 3, "https://gone.example");
    fixture_sql(f.db, "UPDATE site SET removed = 1 WHERE id = 3;"
                      "UPDATE site SET managed = 1, max_pages = 7 WHERE id = 2");
    fixture_index(f.db, 1, 1, "/sitemap_index.xml");
    fixture_index(f.db, 2, 1, "/shop/index.xml");
    fixture_index(f.db, 3, 3, "/sitemap_index.xml");
    fixture_index(f.db, 4, 1, "/old.xml");
    fixture_index(f.db, 5, 2, "/z.xml");
    fixture_sql(f.db, "UPDATE sitemap_index SET removed = 1 WHERE id = 4;"
                      "UPDATE sitemap_index SET page_pattern = '{stem}_{n}{suffix}' WHERE id = 2");
    fixture_host(f.db, 1, "cross", "cdn.example.net");
    fixture_host(f.db, 1, "cross", "a.example.net");
    fixture_host(f.db, 1, "alias", "example.com");
    fixture_host(f.db, 3, "alias", "gone.alias");
    for (int i = 0; i < 32; i++)
        fixture_sql(f.db,
                    "INSERT OR REPLACE INTO token(id, name, sha256, site, created_at)"
                    " VALUES(9, 't9', x'%064x', 1, 77)",
                    i);
    fixture_sql(f.db, "INSERT INTO token(id, name, sha256, created_at)"
                      " VALUES(3, 'a', zeroblob(32), 5)");
    fixture_sql(f.db, "INSERT INTO page VALUES(1,1,5,9,1,0,1,7),(1,3,1,9,1,0,1,7),"
                      "(1,2,0,0,1,0,1,7),(4,1,3,9,1,0,1,7),(5,2,1,9,1,0,1,7);"
                      "UPDATE catalogue SET revision = 12, registry_revision = 10");

    struct registry *r = load(f.db);
    assert_int_equal(r->revision, 12);
    assert_int_equal(r->registry_revision, 10);
    assert_int_equal(r->site_count, 2);
    assert_string_equal(r->sites[0].origin, "http://a.example:8080");
    assert_true(r->sites[0].managed);
    assert_int_equal(r->sites[0].max_pages, 7);
    assert_int_equal(r->sites[0].origin_url.port, 8080);
    const struct registry_site *site = &r->sites[1];
    assert_ptr_equal(registry_site_by_id(r, 1), site);
    assert_ptr_equal(registry_site_by_origin(r, "https://www.example.com"), site);
    assert_null(registry_site_by_id(r, 3));
    assert_int_equal(site->index_count, 2);
    assert_string_equal(site->indexes[0].path, "/shop/index.xml");
    assert_string_equal(site->indexes[0].page_pattern, "{stem}_{n}{suffix}");
    assert_int_equal(site->indexes[0].page_count, 0);
    assert_string_equal(site->indexes[1].path, "/sitemap_index.xml");
    assert_int_equal(site->indexes[1].page_count, 2);
    assert_int_equal(site->indexes[1].pages[0], 1);
    assert_int_equal(site->indexes[1].pages[1], 3);
    assert_int_equal(r->sites[0].indexes[0].pages[0], 2);
    assert_int_equal(site->cross_host_count, 2);
    assert_string_equal(site->cross_hosts[0], "a.example.net");
    assert_int_equal(site->alias_host_count, 1);
    assert_string_equal(site->alias_hosts[0], "example.com");
    assert_ptr_equal(registry_index_by_id(r, 2), &site->indexes[0]);
    assert_null(registry_index_by_id(r, 3));
    assert_null(registry_index_by_id(r, 4));
    assert_int_equal(r->token_count, 2);
    assert_string_equal(r->tokens[0].grant.name, "a");
    assert_int_equal(r->tokens[0].grant.site_id, 0);
    assert_int_equal(r->tokens[1].grant.site_id, 1);
    assert_int_equal(r->tokens[1].created_at, 77);
    assert_int_equal(r->tokens[1].sha256[31], 31);
    registry_unref(r);
    fixture_close(&f);
}

static void hosts_select_their_site(void **state)
{
    static const struct {
        const char *host;
        int site;
    } cases[] = {
        {"www.example.com", 1},
        {"WWW.Example.COM", 1},
        {"www.example.com:443", 1},
        {"www.example.com:", 1},
        {"www.example.com:81", 1},
        {"www.example.com.", 1},
        {"example.com", 1},
        {"example.com:9", 1},
        {"m.example.com:81", 1},
        {"m.example.com", 0},
        {"m.example.com:82", 0},
        {"a.example:8080", 2},
        {"a.example", 0},
        {"a.example:80", 0},
        {"cdn.example.net", 0},
        {"[::1]:8080", 3},
        {"[::1]", 0},
        {"[0:0::1]:8080", 3},
        {"both.example", 5},
        {"both.example:80", 5},
        {"both.example:8443", 6},
        {"", 0},
        {"bad host", 0},
        {"nobody.example", 0},
    };
    struct fixture f;

    fixture_open(&f);
    fixture_site(f.db, 1, "https://www.example.com");
    fixture_site(f.db, 2, "http://a.example:8080");
    fixture_site(f.db, 3, "http://[::1]:8080");
    fixture_site(f.db, 4, "http://both.example");
    fixture_site(f.db, 5, "https://both.example");
    fixture_site(f.db, 6, "https://both.example:8443");
    fixture_host(f.db, 1, "alias", "example.com");
    fixture_host(f.db, 1, "alias", "m.example.com:81");
    fixture_host(f.db, 2, "alias", "www.example.com"); /* an origin goes before an alias */
    fixture_host(f.db, 1, "cross", "cdn.example.net");
    struct registry *r = load(f.db);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct registry_site *site = registry_site_by_host(r, cases[i].host);
        if ((site != NULL ? site->id : 0) != cases[i].site)
            fail_msg("%s: site %d", cases[i].host, site != NULL ? (int)site->id : 0);
    }
    registry_unref(r);
    fixture_close(&f);
}

static void indexes_are_found_by_name(void **state)
{
    const struct registry_site *site = NULL;
    struct fixture f;

    fixture_open(&f);
    fixture_site(f.db, 1, "https://www.example.com");
    fixture_index(f.db, 1, 1, "/sitemap_index.xml");
    fixture_index(f.db, 2, 1, "/shop/i.xml");
    struct registry *r = load(f.db);
    assert_int_equal(registry_index_by_name(r, "/shop/i.xml", &site)->id, 2);
    assert_int_equal(site->id, 1);
    assert_int_equal(registry_index_by_name(r, "/x/../shop/%69.xml", NULL)->id, 2);
    assert_int_equal(
        registry_index_by_name(r, "https://www.example.com/sitemap_index.xml", &site)->id, 1);
    assert_int_equal(
        registry_index_by_name(r, "HTTPS://WWW.example.com:443/./sitemap_index.xml", &site)->id, 1);
    assert_null(registry_index_by_name(r, "http://www.example.com/sitemap_index.xml", NULL));
    assert_null(registry_index_by_name(r, "https://www.example.com/sitemap_index.xml?a", NULL));
    assert_null(registry_index_by_name(r, "https://www.example.com", NULL));
    assert_null(registry_index_by_name(r, "sitemap_index.xml", NULL));
    registry_unref(r);

    /* A path names nothing once there are two sites. */
    fixture_site(f.db, 2, "https://two.example");
    r = load(f.db);
    assert_null(registry_index_by_name(r, "/shop/i.xml", &site));
    assert_int_equal(registry_index_by_name(r, "https://www.example.com/shop/i.xml", NULL)->id, 2);
    registry_unref(r);
    fixture_close(&f);
}

static void damaged_rows_are_reported(void **state)
{
    static const char *const damage[] = {
        "UPDATE site SET origin = 'https://EXAMPLE.com'",
        "UPDATE site SET origin = ''",
        "UPDATE sitemap_index SET path = 'x'",
        "UPDATE sitemap_index SET path = ''",
        "UPDATE sitemap_index SET page_pattern = 'x'",
        "UPDATE sitemap_index SET kind = 2",
        "INSERT INTO token(id, name, sha256, created_at) VALUES(1, 'a', x'00', 1)",
        "INSERT INTO token(id, name, sha256, created_at, role)"
        " VALUES(1, 'a', zeroblob(32), 1, 7)",
        "DELETE FROM catalogue",
    };
    struct fixture f;

    fixture_open(&f);
    fixture_site(f.db, 1, "https://www.example.com");
    fixture_index(f.db, 1, 1, "/sitemap_index.xml");
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        struct registry *r = NULL;
        fixture_sql(f.db, "BEGIN; %s", damage[i]);
        assert_int_equal(registry_load(f.db, NULL, &r), CATALOGUE_CORRUPT);
        assert_null(r);
        fixture_sql(f.db, "ROLLBACK");
    }
    fixture_close(&f);
}

static void *ref_and_unref(void *context)
{
    for (int i = 0; i < 10000; i++) {
        struct registry *r = registry_ref(context);
        assert_int_equal(r->site_count, 1);
        registry_unref(r);
    }
    registry_unref(context);
    return NULL;
}

static void references_are_shared_between_threads(void **state)
{
    struct fixture f;
    pthread_t thread[4];

    fixture_open(&f);
    fixture_site(f.db, 1, "https://www.example.com");
    struct registry *r = load(f.db);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ref_and_unref, registry_ref(r)), 0);
    registry_unref(r);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_null(registry_ref(NULL));
    registry_unref(NULL);
    fixture_close(&f);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void many_sites_load_quickly(void **state)
{
    struct fixture f;

    fixture_open(&f);
    fixture_sql(f.db,
                "BEGIN;"
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
                " INSERT INTO site(id, origin, managed, max_pages)"
                " SELECT i, 'https://s' || i || '.example.com', 0, 500 FROM n;"
                "INSERT INTO sitemap_index(id, site, path, page_pattern)"
                " SELECT id, id, '/sitemap_index.xml', '{stem}-{n}{suffix}' FROM site;"
                "INSERT INTO site_host SELECT id, 'cdn.example.net', 'cross' FROM site;"
                "INSERT INTO page SELECT id, 1, 1, 1, 1, 0, 1, 7 FROM sitemap_index;"
                "COMMIT");
    double began = seconds();
    struct registry *r = load(f.db);
    double took = seconds() - began;
    assert_int_equal(r->site_count, 10000);
    assert_int_equal(registry_site_by_host(r, "s777.example.com")->id, 777);
    assert_int_equal(registry_index_by_id(r, 9999)->page_count, 1);
    print_message("10,000 sites loaded in %.1f ms\n", took * 1e3);
    assert_true(took < 20.0); /* 50 ms as measured; what grows with the square takes minutes */

    struct placement p;
    struct url loc;
    static const char text[] = "https://cdn.example.net/x/a.xml";
    assert_int_equal(url_parse(text, sizeof text - 1, &loc, NULL), RULE_OK);
    began = seconds();
    for (int i = 0; i < 100000; i++)
        assert_int_equal(registry_place(r, &loc, "https://s5000.example.com/sitemap_index.xml", &p),
                         RULE_OK);
    took = seconds() - began;
    print_message("100,000 placements on a host of 10,000 sites in %.1f ms\n", took * 1e3);
    assert_true(took < 40.0);
    registry_unref(r);
    fixture_close(&f);
}

/* A robots.txt is 500 KiB at most, and all sites' are 16 MiB: no change reads those of others. */
static void an_unchanged_robots_txt_is_shared(void **state)
{
    struct fixture f;
    struct registry *first, *second, *other;

    fixture_open(&f);
    fixture_site(f.db, 1, "https://a.example");
    fixture_site(f.db, 2, "https://b.example");
    fixture_sql(f.db, "UPDATE site SET robots = 'text of ' || id, robots_revision = id");
    assert_int_equal(registry_load(f.db, NULL, &first), CATALOGUE_OK);
    assert_string_equal(first->sites[0].robots, "text of 1");
    fixture_site(f.db, 3, "https://0.example"); /* before them */
    fixture_sql(f.db, "UPDATE site SET robots = 'another', robots_revision = 3 WHERE id = 2");
    assert_int_equal(registry_load(f.db, first, &second), CATALOGUE_OK);
    assert_null(second->sites[0].robots);
    assert_ptr_equal(second->sites[1].robots, first->sites[0].robots);
    assert_string_equal(second->sites[2].robots, "another");
    /* Each lives as long as somebody has it. */
    registry_unref(first);
    assert_string_equal(second->sites[1].robots, "text of 1");
    /* Another file's are its own, whatever their revisions. */
    fixture_sql(f.db, "UPDATE catalogue SET epoch = lower(hex(randomblob(16)))");
    fixture_sql(f.db, "UPDATE site SET robots = 'theirs' WHERE id = 1");
    assert_int_equal(registry_load(f.db, second, &other), CATALOGUE_OK);
    assert_string_equal(other->sites[1].robots, "theirs");
    registry_unref(second);
    registry_unref(other);
    fixture_close(&f);
}

static int pages_looked_at(sqlite3 *db)
{
    int hits = 0, misses = 0, most;

    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_HIT, &hits, &most, 1);
    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_MISS, &misses, &most, 1);
    return hits + misses;
}

/* Neither one's own where it has not changed, nor for what else the rows hold. */
static void no_unchanged_robots_txt_is_read(void **state)
{
    struct fixture f;
    struct registry *first, *second;

    fixture_open(&f);
    fixture_site(f.db, 1, "https://a.example");
    fixture_site(f.db, 2, "https://b.example");
    fixture_sql(f.db,
                "UPDATE site SET robots = printf('%%.*c', 500000, 'x'), robots_revision = id");
    assert_int_equal(registry_load(f.db, NULL, &first), CATALOGUE_OK);
    assert_int_equal(first->sites[1].robots_len, 500000);
    assert_in_range(pages_looked_at(f.db), 2 * 500000 / 65536, 1000000);
    fixture_site(f.db, 3, "https://c.example");
    pages_looked_at(f.db);
    assert_int_equal(registry_load(f.db, first, &second), CATALOGUE_OK);
    assert_int_equal(second->sites[1].robots_len, 500000);
    assert_in_range(pages_looked_at(f.db), 1, 60);
    registry_unref(first);
    registry_unref(second);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_unchanged_robots_txt_is_read),
        cmocka_unit_test(an_unchanged_robots_txt_is_shared),
        cmocka_unit_test(an_empty_catalogue_has_an_empty_registry),
        cmocka_unit_test(everything_is_read_and_ordered),
        cmocka_unit_test(hosts_select_their_site),
        cmocka_unit_test(indexes_are_found_by_name),
        cmocka_unit_test(damaged_rows_are_reported),
        cmocka_unit_test(references_are_shared_between_threads),
        cmocka_unit_test(many_sites_load_quickly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
