/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Indexes and sites go at once, and their rows by and by. */
#include "db/tx/statements.h"
#include "tests/unit/db/write/write_stream.h"

static void an_index_goes_at_once_and_its_rows_later(void **state)
{
    struct write_fixture *f = *state;
    int64_t shop = add_index(f, ORIGIN "/shop/index.xml");
    bulk_numbered(f, "shop", 4500);
    bulk_numbered(f, "blog", 10);
    struct change change = {.kind = CHANGE_INDEX_REMOVE,
                            .index_remove = {.index_id = shop},
                            .max_removed = MAX_REMOVED_GUARDED};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.code, RULE_SHRINK_GUARD);
    assert_int_equal(r.would_remove, 4500);
    change.max_removed = 4499;
    assert_int_equal(apply(f, &change).code, RULE_SHRINK_GUARD);
    change.max_removed = 4500;
    r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, 4500);
    assert_int_equal(apply(f, &change).status, CATALOGUE_NOT_FOUND);
    /* The page is reported as changed, with what it had. */
    assert_int_equal(number_of(f, "SELECT revision FROM page WHERE index_id = %lld", shop),
                     revision_of(f));
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 4510);

    /* A loc of it is free at once, and its id gone. */
    assert_int_equal(drop(f, ORIGIN "/shop/1.xml").status, CATALOGUE_NOT_FOUND);
    r = put(f, ORIGIN "/shop/1.xml", NULL);
    assert_int_equal(r.created, 1);
    assert_int_equal(r.entry.index_id, f->index);
    entry_record_done(&r.entry);

    /* The same path may be an index again. */
    int64_t again = add_index(f, ORIGIN "/shop/index.xml");
    assert_true(again > shop);
    int64_t revision = revision_of(f);
    struct change purge = {.kind = CHANGE_PURGE};
    uint64_t purged = 0;
    for (int i = 0; i < 5; i++) {
        r = apply(f, &purge);
        assert_int_equal(r.status, CATALOGUE_OK);
        assert_true(r.removed <= 2000);
        purged += r.removed;
        put_plain(f, i % 2 ? ORIGIN "/p.xml" : ORIGIN "/q.xml", NULL);
        if (i == 0)
            revision = revision_of(f);
    }
    assert_int_equal(purged, 4499);
    assert_int_equal(revision_of(f), revision + 1); /* of the puts */
    assert_int_equal(number_of(f, "SELECT purged FROM sitemap_index WHERE id = %lld", shop), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM segment WHERE index_id = %lld", shop), 0);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page WHERE index_id = %lld", shop), 1);
}

static void a_site_goes_with_all_it_has(void **state)
{
    struct write_fixture *f = *state;
    uint8_t hash[32] = {1};
    int64_t second = add_site(f, "https://second.example", 10);
    add_index(f, "https://second.example/a/index.xml");
    add_index(f, "https://second.example/b/index.xml");
    put_plain(f, "https://second.example/a/1.xml", NULL);
    put_plain(f, "https://second.example/b/1.xml", NULL);
    put_plain(f, ORIGIN "/1.xml", NULL);
    struct change token = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = "second", .role = GRANT_ADMIN, .site_id = second},
                      .sha256 = hash}};
    assert_int_equal(apply(f, &token).status, CATALOGUE_OK);
    struct change change = {.kind = CHANGE_SITE_REMOVE,
                            .site_remove = {.site_id = second},
                            .max_removed = MAX_REMOVED_GUARDED};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.code, RULE_SHRINK_GUARD);
    assert_int_equal(r.would_remove, 2);
    change.max_removed = 2;
    assert_int_equal(apply(f, &change).removed, 2);
    assert_int_equal(put_plain(f, "https://second.example/a/2.xml", NULL).code, RULE_SITE_UNKNOWN);
    assert_int_equal(number_of(f, "SELECT count(*) FROM token"), 0);
    /* It may come again, as another. */
    int64_t again = add_site(f, "https://second.example", 10);
    assert_true(again > second);
    add_index(f, "https://second.example/a/index.xml");
    assert_int_equal(put_plain(f, "https://second.example/a/1.xml", NULL).created, 1);
}

static void the_server_purges_by_itself(void **state)
{
    struct write_fixture *f = *state;
    f->options.server = true;
    fixture_reopen(f);
    int64_t shop = add_index(f, ORIGIN "/shop/index.xml");
    bulk_numbered(f, "shop", 5000);
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = shop}, .max_removed = 5000};
    assert_int_equal(apply(f, &change).removed, 5000);
    for (int i = 0; i < 2400; i++) {
        if (number_of(f, "SELECT purged FROM sitemap_index WHERE id = %lld", shop) == 1)
            break;
        usleep(50000);
    }
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 0);
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    assert_true(stats.writable);
}

/* Registers an entry in a new index, removes the index, and purges it. */
static int64_t make_and_purge(struct write_fixture *f)
{
    int64_t index = add_index(f, ORIGIN "/shop/index.xml");
    bulk_numbered(f, "shop", 1);
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = index}, .max_removed = 1};
    assert_int_equal(apply(f, &change).removed, 1);
    for (int i = 0; i < 10; i++)
        assert_int_equal(apply(f, &(struct change){.kind = CHANGE_PURGE}).status, CATALOGUE_OK);
    assert_int_equal(number_of(f, "SELECT purged FROM sitemap_index WHERE id = %lld", index), 1);
    return index;
}

static int64_t pages_at(struct write_fixture *f, const char *path)
{
    return number_of(f,
                     "SELECT count(*) FROM page JOIN sitemap_index AS i ON i.id = index_id"
                     " WHERE path = %Q",
                     path);
}

/* Otherwise a token that adds and removes indexes would make the catalogue larger without end. */
static void only_the_newest_removed_lists_of_a_site_are_left(void **state)
{
    struct write_fixture *f = *state;
    run_sql(f, "WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM c WHERE n < 1000)"
               " INSERT INTO sitemap_index(site, path, page_pattern, removed, purged, removed_at)"
               " SELECT 1, '/' || n, '{stem}-{n}{suffix}', 1, 1, n FROM c;"
               " INSERT INTO page(index_id, number, entries, bytes, changed_at, same_second,"
               " revision) SELECT i.id, n.value, 0, 0, 1, 0, 1 FROM sitemap_index AS i,"
               " json_each('[1,2,3]') AS n WHERE i.purged = 1");
    int64_t first = make_and_purge(f);
    assert_int_equal(pages_at(f, "/1"), 0);
    assert_int_equal(pages_at(f, "/2"), 3);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap_index WHERE path = '/1'"), 0);
    /* The history is older than the next one, and may name it. */
    run_sql(f, "INSERT INTO history_index(site, revision, index_id, created, updated, removed)"
               " VALUES (1, 1, 1, 0, 0, 0); INSERT INTO history(revision, at, who, kind, via,"
               " created, updated, unchanged, removed, rows, parts, bytes) VALUES (1, 500, '', '',"
               " '', 0, 0, 0, 0, 0, 0, 0);"
               " UPDATE sitemap_index SET removed_at = removed_at + 1000 WHERE purged = 1");
    run_sql(f, "UPDATE sitemap_index SET removed_at = 5000 WHERE path = '/shop/index.xml'");
    make_and_purge(f);
    assert_int_equal(pages_at(f, "/2"), 0);
    assert_int_equal(pages_at(f, "/3"), 3);
    assert_int_equal(number_of(f, "SELECT purged FROM sitemap_index WHERE path = '/2'"), 2);
    assert_int_equal(number_of(f, "SELECT count(*) FROM page WHERE index_id = %lld", first), 1);
}

/* A token can remove indexes without end: those of before, and those whose time has not come, are
 * not looked at for the next one. */
static void removed_ones_cost_nothing(void **state)
{
    struct write_fixture *f = *state;
    static const enum statement looks[] = {ST_PURGE_FIND, ST_INDEX_REMOVED_BY, ST_PURGE_BEGIN};
    struct statements statements;

    run_sql(f,
            "WITH RECURSIVE c(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM c WHERE n < 5000)"
            " INSERT INTO sitemap_index(site, path, page_pattern) SELECT 1, '/' || n, 'x' FROM c");
    run_sql(f, "UPDATE sitemap_index SET removed = 1, purged = id %% 2, removed_at = 5000000000,"
               " removed_by = iif(id %% 2, 0, 7 + id) WHERE page_pattern = 'x'");
    statements_init(&statements, f->db);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        sqlite3_stmt *look = statements_get(&statements, looks[i]);
        assert_non_null(look);
        sqlite3_bind_int64(look, 1, 1000);
        sqlite3_bind_int64(look, 2, 1000);
        assert_int_not_equal(sqlite3_step(look), SQLITE_ERROR);
        assert_in_range(sqlite3_stmt_status(look, SQLITE_STMTSTATUS_VM_STEP, 0), 1, 500);
    }
    statements_done(&statements);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(an_index_goes_at_once_and_its_rows_later),
        TEST(a_site_goes_with_all_it_has),
        TEST(the_server_purges_by_itself),
        TEST(only_the_newest_removed_lists_of_a_site_are_left),
        TEST(removed_ones_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
