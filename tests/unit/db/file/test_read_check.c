/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* catalogue_check finds each kind of damage, and none in a sound file. */
#include "tests/unit/db/read/read_handle.h"

#define S1 "https://www.example.com"
#define S2 "http://two.example:8080"

struct report {
    uint64_t count;
    char text[4096];
};

static void find(void *context, const char *sentence)
{
    struct report *found = context;
    size_t len = strlen(found->text);

    snprintf(found->text + len, sizeof found->text - len, "%s\n", sentence);
}

static void check(struct fixture *f, struct report *out)
{
    struct catalogue c;
    uint64_t reported = 0;

    memset(out, 0, sizeof *out);
    handle_open(&c, f);
    assert_int_equal(catalogue_check(&c, find, out, &out->count), CATALOGUE_OK);
    assert_int_equal(catalogue_check(&c, NULL, NULL, &reported), CATALOGUE_OK);
    assert_int_equal(reported, out->count);
    handle_close(&c);
    for (const char *at = out->text; (at = strchr(at, '\n')) != NULL; at++)
        reported--;
    assert_int_equal(reported, 0); /* one sentence for each */
}

static void open_all(struct fixture *f)
{
    fixture_open(f);
    fixture_site(f->db, 1, S1);
    fixture_site(f->db, 2, S2);
    fixture_host(f->db, 1, "cross", "cdn.example.net");
    fixture_index(f->db, 1, 1, "/sitemap_index.xml");
    fixture_index(f->db, 2, 1, "/shop/i.xml");
    fixture_index(f->db, 3, 2, "/i.xml");
    fixture_index(f->db, 4, 1, "/empty.xml");
    fixture_index(f->db, 5, 1, "/removed.xml");
    fixture_entry(f->db, 1, 3, S1 "/a?b=1&c='", "2026-01-01T10:00:00Z");
    fixture_entry(f->db, 1, 249, S1 "/b", "2026");
    fixture_entry(f->db, 1, 250, S1 "/c", NULL);
    fixture_entry(f->db, 1, 149999, S1 "/d", "2999-01-01");
    fixture_entry(f->db, 2, 0, S1 "/shop/a", NULL);
    fixture_entry(f->db, 3, 50000, S2 "/a", NULL);
    fixture_entry(f->db, 5, 0, S1 "/purged/soon", NULL);
    /* A page and a segment that are empty again, a tombstone, a purge under way, a token. */
    fixture_sql(f->db,
                "INSERT INTO page VALUES(1, 2, 0, %u, 1000, 0, 2, 7);"
                "INSERT INTO segment VALUES(1, 7, 0, 1);"
                "UPDATE sitemap_index SET removed = 1 WHERE id = 5;"
                "UPDATE page SET entries = 0 WHERE index_id = 5;"
                "INSERT INTO token(name, sha256, created_at) VALUES('a', zeroblob(32), 1)",
                render_frame_bytes());
}

static void a_sound_catalogue_has_no_findings(void **state)
{
    struct report found;
    struct fixture f;

    fixture_open(&f);
    check(&f, &found);
    assert_string_equal(found.text, "");
    fixture_close(&f);

    open_all(&f);
    check(&f, &found);
    assert_string_equal(found.text, "");
    fixture_close(&f);
}

/* Each alone; the sentences that must come of it, in order, with a newline behind each. */
#define INTO_FETCH                                                                                 \
    "INSERT INTO fetch(status, marks, interval_s, failures, checked_at, good_ago, changed_at,"     \
    " full_ago, since_ago, urls, bytes, one_lastmod, line, site, source, list, loc, state, "       \
    "next_at,"                                                                                     \
    " hash) SELECT 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, * FROM ("

/* A urlset with one page URL; its page is in no index. */
#define URLSET                                                                                     \
    "INSERT INTO sitemap_index(id, site, path, page_pattern, kind, of_index)"                      \
    " VALUES(6, 1, '/u.xml', '{stem}-{n}{suffix}', 1, 1);"                                         \
    "INSERT INTO sitemap(address, site, loc, source, serial, registered_at, changed_at)"           \
    " SELECT 6 << 32, -6, '" S1 "/p', source, 1, 1, 1 FROM sitemap LIMIT 1;"                       \
    "INSERT INTO page VALUES(6, 1, 1, 212, 1, 0, 1, 7); INSERT INTO segment VALUES(6, 0, 1, 1);"

static const struct {
    const char *damage, *found;
} cases[] = {
    {"UPDATE page SET entries = 4 WHERE index_id = 1 AND number = 1",
     "page 1 of " S1 "/sitemap_index.xml: counts 4 entries, but has 3\n"},
    {"UPDATE page SET entries = 1 WHERE index_id = 1 AND number = 2",
     "page 2 of " S1 "/sitemap_index.xml: counts 1 entry, but has 0\n"},
    {"UPDATE page SET bytes = bytes + 1 WHERE index_id = 2",
     "page 1 of " S1 "/shop/i.xml: counts 238 bytes, but has 237\n"},
    {"UPDATE page SET revision = 99 WHERE index_id = 2",
     "page 1 of " S1 "/shop/i.xml: has a later revision than the catalogue\n"},
    {"DELETE FROM page WHERE index_id = 3",
     "segment 200 of " S2 "/i.xml: has a later revision than its page\n"
     "page 2 of " S2 "/i.xml: has 1 entry, but its own row is missing\n"},
    {"INSERT INTO page VALUES(4, 0, 0, (SELECT bytes FROM page WHERE entries = 0), 1, 0, 1, 7)",
     "page 0 of " S1 "/empty.xml: the number is out of range\n"},
    {"INSERT INTO page VALUES(4, 9, 2, (SELECT bytes FROM page WHERE entries = 0), 1, 0, 1, 7)",
     "page 9 of " S1 "/empty.xml: counts 2 entries, but has 0\n"},
    {"UPDATE segment SET entries = 1 WHERE index_id = 1 AND number = 0",
     "segment 0 of " S1 "/sitemap_index.xml: counts 1 entry, but has 2\n"},
    {"DELETE FROM segment WHERE index_id = 1 AND number = 599",
     "segment 599 of " S1 "/sitemap_index.xml: has 1 entry, but its own row is missing\n"},
    {"UPDATE segment SET revision = 7 WHERE index_id = 1 AND number = 1",
     "segment 1 of " S1 "/sitemap_index.xml: has a later revision than its page\n"},
    {"UPDATE segment SET revision = 70 WHERE index_id = 2; UPDATE page SET revision = 70"
     " WHERE index_id = 2",
     "page 1 of " S1 "/shop/i.xml: has a later revision than the catalogue\n"
     "segment 0 of " S1 "/shop/i.xml: has a later revision than the catalogue\n"},
    {"DELETE FROM sitemap WHERE address = 1 << 32 | 3",
     "segment 0 of " S1 "/sitemap_index.xml: counts 2 entries, but has 1\n"
     "page 1 of " S1 "/sitemap_index.xml: counts 3 entries, but has 2\n"
     "page 1 of " S1 "/sitemap_index.xml: counts 469 bytes, but has 342\n"},
    {"UPDATE sitemap SET address = 77 << 32 WHERE address = 2 << 32",
     "index 77: does not exist, but has entries\n"
     "page 1 of " S1 "/shop/i.xml: counts 1 entry, but has 0\n"
     "page 1 of " S1 "/shop/i.xml: counts 237 bytes, but has 122\n"
     "segment 0 of " S1 "/shop/i.xml: counts 1 entry, but has 0\n"},
    {"UPDATE sitemap SET address = -5 WHERE address = 2 << 32",
     "index -1: does not exist, but has entries\n"
     "page 1 of " S1 "/shop/i.xml: counts 1 entry, but has 0\n"
     "page 1 of " S1 "/shop/i.xml: counts 237 bytes, but has 122\n"
     "segment 0 of " S1 "/shop/i.xml: counts 1 entry, but has 0\n"},
    {"UPDATE sitemap_index SET purged = 1 WHERE id = 5",
     "index 5: does not exist, but has entries\n"},
    {"UPDATE sitemap_index SET purged = 1 WHERE id = 4",
     "index " S1 "/empty.xml: was purged, but not removed\n"},
    {"UPDATE sitemap SET site = 2 WHERE address = 2 << 32",
     "entry at position 0 of " S1
     "/shop/i.xml: belongs to site 2, but its index belongs to site 1\n"},
    {"UPDATE sitemap SET serial = 99 WHERE address = 2 << 32",
     "entry at position 0 of " S1 "/shop/i.xml: its serial 99 was never assigned\n"},
    {"UPDATE sitemap SET serial = 0 WHERE address = 2 << 32",
     "entry at position 0 of " S1 "/shop/i.xml: its serial 0 was never assigned\n"},
    {"UPDATE sitemap SET source = 9 WHERE address = 2 << 32",
     "entry at position 0 of " S1 "/shop/i.xml: its source does not exist\n"},
    {"UPDATE sitemap SET loc = 'https://WWW.example.com/a' WHERE address = 1 << 32 | 250",
     "entry at position 250 of " S1
     "/sitemap_index.xml: \"https://WWW.example.com/a\" is not a normalised loc\n"},
    {"UPDATE sitemap SET lastmod = '2026-02-30' WHERE address = 2 << 32",
     "entry at position 0 of " S1 "/shop/i.xml: \"2026-02-30\" is not a normalised lastmod\n"},
    {"UPDATE site SET origin = 'https://www.example.com/' WHERE id = 1",
     "site 1: \"https://www.example.com/\" is not a normalised origin\n"},
    {"UPDATE site SET max_pages = 0 WHERE id = 2",
     "site " S2 ": its limit of index files is below 1\n"},
    {"INSERT INTO site_host VALUES(2, 'UPPER.example', 'alias')",
     "site " S2 ": \"UPPER.example\" is not a normalised host\n"},
    {"UPDATE sitemap_index SET path = '/x.html' WHERE id = 4",
     "index " S1 "/x.html: \"/x.html\" is not the path of an index\n"},
    {"UPDATE sitemap_index SET page_pattern = '{n}' WHERE id = 4",
     "index " S1 "/empty.xml: \"{n}\" is not a page pattern\n"},
    {"UPDATE sitemap_index SET kind = 2 WHERE id = 4",
     "index " S1 "/empty.xml: has the unknown kind 2\n"},
    {"UPDATE sitemap_index SET kind = 1 WHERE id = 4",
     "urlset " S1 "/empty.xml: its index does not exist\n"},
    {URLSET, "page 1 of " S1 "/u.xml: is not an entry of its index\n"},
    {URLSET "UPDATE sitemap SET source = -6, loc = '" S1 "/shop/u' WHERE address = 2 << 32",
     "entry at position 0 of " S1 "/shop/i.xml: belongs to urlset " S1
     "/u.xml, which does not have this page\n"
     "page 1 of " S1 "/u.xml: is not an entry of its index\n"},
    {"UPDATE site SET removed = 1 WHERE id = 2",
     "index " S2 "/i.xml: its site was removed, but the index was not\n"},
    {"UPDATE token SET sha256 = x'00'", "token a: its hash has 1 bytes instead of 32\n"},
    {"UPDATE catalogue SET registry_revision = 8",
     "the catalogue: registry revision 8 is later than revision 7\n"},
    {"UPDATE catalogue SET epoch = ''", "the catalogue: its epoch does not have 32 digits\n"
                                        "the registry: cannot be read\n"},
    {"PRAGMA foreign_keys = OFF; INSERT INTO segment VALUES(88, 0, 0, 0), (88, 1, 0, 0), (89, 0, "
     "0, 0)",
     "table segment: 2 rows have index_id 88, which does not exist in table sitemap_index\n"
     "table segment: 1 row has index_id 89, which does not exist in table sitemap_index\n"},
    {"PRAGMA foreign_keys = OFF; UPDATE token SET site = 77",
     "table token: 1 row has site 77, which does not exist in table site\n"},
    {INTO_FETCH "VALUES(1, 77, 1, 'x', 9, -1, NULL))",
     "poll of x: belongs to neither an upstream's index nor a sitemap of a site\npoll of x: its "
     "source does "
     "not exist\npoll of x: has an unknown state\npoll of x: has a time or a count below 0\n"},
    {INTO_FETCH "VALUES(1, 0, 0, 'https://WWW.example.com/a', 1, 5, x'00'))",
     "poll of https://WWW.example.com/a: has an invalid hash\n"
     "poll of https://WWW.example.com/a: is not a normalised loc\n"},
    {INTO_FETCH "VALUES(1, 0, 0, 'https://www.example.com/a', 1, 5, NULL))", ""},
    /* What could run SQL of its own: nothing else of the file is asked. */
    {"CREATE TRIGGER mine AFTER INSERT ON sitemap BEGIN UPDATE token SET expires_at = 0; END",
     "the schema: mine is not part of this version\n"},
    {"CREATE TABLE mine(x)", "the schema: mine is not part of this version\n"},
    {"CREATE INDEX mine ON sitemap(abs(serial))", "the schema: mine is not part of this version\n"},
    {"CREATE VIEW mine AS WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i FROM n) SELECT i"
     " FROM n",
     "the schema: mine is not part of this version\n"},
    {"DROP VIEW source_file; CREATE VIEW source_file AS SELECT * FROM source_file_row",
     "the schema: source_file is not as sitemapd created it\n"},
    {"DROP TABLE indexnow; CREATE VIEW indexnow AS SELECT 1 AS site, 1 AS revision, 1 AS parts",
     "the schema: indexnow is not as sitemapd created it\n"},
    {"ANALYZE", ""},
    {"DROP INDEX page_revision", "the schema: page_revision is missing\n"},
    {"DROP INDEX page_revision; CREATE INDEX page_revision ON page(number)",
     "the schema: page_revision is not as sitemapd created it\n"},
    {"DROP INDEX sitemap_loc; CREATE INDEX sitemap_loc ON sitemap(site, loc);"
     "UPDATE sitemap SET loc = 'https://www.example.com/c' WHERE address = 1 << 32 | 249",
     "the schema: sitemap_loc is not as sitemapd created it\n"
     "entry https://www.example.com/c: occurs 2 times in its site\n"},
};

static void each_damage_is_found(void **state)
{
    size_t wrong = 0;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct report found;
        struct fixture f;
        open_all(&f);
        fixture_sql(f.db, "%s", cases[i].damage);
        check(&f, &found);
        if (strcmp(found.text, cases[i].found) != 0) {
            print_error("%s\nfound: %s\n", cases[i].damage, found.text);
            wrong++;
        }
        fixture_close(&f);
    }
    assert_int_equal(wrong, 0);
}

/* A byte of the file itself: the engine reports it, and the check goes on as far as it can. */
static void a_damaged_file_is_reported(void **state)
{
    struct report found;
    struct fixture f;

    open_all(&f);
    int64_t root =
        fixture_number(f.db, "SELECT rootpage FROM sqlite_schema WHERE name = 'segment'");
    int64_t size = fixture_number(f.db, "PRAGMA page_size");
    fixture_sql(f.db, "PRAGMA wal_checkpoint(TRUNCATE)");
    connection_close(f.db);
    FILE *file = fopen(f.path, "r+");
    assert_int_equal(fseek(file, (long)((root - 1) * size), SEEK_SET), 0);
    for (int i = 0; i < 64; i++)
        fputc(0xa5, file);
    fclose(file);
    f.db = NULL;
    check(&f, &found);
    assert_true(found.count >= 2);
    assert_non_null(strstr(found.text, "the file: "));
    assert_non_null(strstr(found.text, "segment: cannot be read: "));
    fixture_close(&f);
}

static void a_file_that_is_gone_cannot_be_checked(void **state)
{
    struct catalogue c;
    struct fixture f;
    uint64_t count;

    open_all(&f);
    handle_open(&c, &f);
    unlink(f.path);
    assert_int_equal(catalogue_check(&c, NULL, NULL, &count), CATALOGUE_UNAVAILABLE);
    handle_close(&c);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_catalogue_has_no_findings),
        cmocka_unit_test(each_damage_is_found),
        cmocka_unit_test(a_damaged_file_is_reported),
        cmocka_unit_test(a_file_that_is_gone_cannot_be_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
