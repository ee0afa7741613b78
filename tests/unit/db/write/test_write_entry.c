/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Registering, updating, moving and removing single entries. */
#include "tests/unit/db/write/write_fixture.h"

static void creates_once(void **state)
{
    struct write_fixture *f = *state;
    struct change_result r = put(f, ORIGIN "/a.xml", "2026-01-02");
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_true(r.changed);
    assert_string_equal(r.entry.loc, ORIGIN "/a.xml");
    assert_string_equal(r.entry.lastmod, "2026-01-02");
    assert_null(r.entry.digest);
    assert_string_equal(r.entry.source, "tests");
    assert_int_equal(r.entry.index_id, f->index);
    assert_int_equal(r.entry.site_id, f->site);
    assert_int_equal(r.entry.position, 0);
    assert_int_equal(r.entry.page, 1);
    assert_true(r.remarks & RULE_BIT(RULE_LASTMOD_DATE_ONLY));
    assert_int_equal(r.revision, revision_of(f));
    char id[ENTRY_ID_SIZE];
    strcpy(id, r.entry.id);
    entry_record_done(&r.entry);

    uint64_t revision = r.revision;
    r = put(f, ORIGIN "/a.xml", "2026-01-02");
    assert_int_equal(r.unchanged, 1);
    assert_false(r.changed);
    assert_int_equal(r.revision, revision);
    assert_int_equal(revision_of(f), revision);
    assert_string_equal(r.entry.id, id);
    entry_record_done(&r.entry);

    r = put(f, ORIGIN "/a.xml", "2026-01-03");
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.revision, revision + 1);
    assert_string_equal(r.entry.id, id);
    assert_string_equal(r.entry.lastmod, "2026-01-03");
    entry_record_done(&r.entry);
}

static void absent_keeps_null_clears(void **state)
{
    struct write_fixture *f = *state;
    struct change change = put_change(ORIGIN "/a.xml", "2026-01-02");
    change.entry.digest = "d1";
    change.entry.digest_state = FIELD_SET;
    apply_plain(f, &change);

    change = put_change(ORIGIN "/a.xml", NULL);
    struct change_result r = apply(f, &change);
    assert_int_equal(r.unchanged, 1);
    assert_string_equal(r.entry.lastmod, "2026-01-02");
    assert_string_equal(r.entry.digest, "d1");
    entry_record_done(&r.entry);

    change.entry.lastmod_state = FIELD_NULL;
    change.entry.digest_state = FIELD_NULL;
    r = apply(f, &change);
    assert_int_equal(r.updated, 1);
    assert_null(r.entry.lastmod);
    assert_null(r.entry.digest);
    entry_record_done(&r.entry);
}

static void lastmod_moves_with_the_digest_only(void **state)
{
    struct write_fixture *f = *state;
    static const struct {
        const char *lastmod, *digest;
        const char *stored;
        bool changes;
    } steps[] = {
        {"2026-01-01", "d1", "2026-01-01", true},
        {"2026-02-02", "d1", "2026-01-01", false}, /* the file did not move, nor does its date */
        {"2026-03-03", "d2", "2026-03-03", true},
        {"2026-04-04", NULL, "2026-04-04", true}, /* no digest said: the date is trusted */
        {"2026-05-05", "d2", "2026-04-04", false},
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct change change = put_change(ORIGIN "/a.xml", steps[i].lastmod);
        change.entry.digest = steps[i].digest;
        change.entry.digest_state = steps[i].digest ? FIELD_SET : FIELD_ABSENT;
        struct change_result r = apply(f, &change);
        assert_int_equal(r.status, CATALOGUE_OK);
        assert_int_equal(r.changed, steps[i].changes);
        assert_string_equal(r.entry.lastmod, steps[i].stored);
        entry_record_done(&r.entry);
    }
}

static void a_digest_alone_leaves_the_page(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/a.xml", "2026-01-02");
    int64_t page = number_of(f, "SELECT revision FROM page");
    int64_t segment = number_of(f, "SELECT revision FROM segment");
    struct change change = put_change(ORIGIN "/a.xml", NULL);
    change.entry.digest = "d1";
    change.entry.digest_state = FIELD_SET;
    struct change_result r = apply_plain(f, &change);
    assert_int_equal(r.updated, 1);
    assert_int_equal(number_of(f, "SELECT revision FROM page"), page);
    assert_int_equal(number_of(f, "SELECT revision FROM segment"), segment);
    /* Nor does a date that is not served. */
    put_plain(f, ORIGIN "/b.xml", "2026");
    page = number_of(f, "SELECT revision FROM page");
    r = put_plain(f, ORIGIN "/b.xml", "2025-01");
    assert_int_equal(r.updated, 1);
    assert_int_equal(number_of(f, "SELECT revision FROM page"), page);
}

static void the_owner_stays(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/a.xml", NULL);
    struct change change = put_change(ORIGIN "/a.xml", "2026-01-02");
    change.source = "another";
    struct change_result r = apply(f, &change);
    assert_string_equal(r.entry.source, "tests");
    entry_record_done(&r.entry);
}

static void refusals_write_nothing(void **state)
{
    struct write_fixture *f = *state;
    static const struct {
        const char *loc, *index;
        enum rule_code code;
    } cases[] = {
        {"https://other.example/a.xml", NULL, RULE_SITE_UNKNOWN},
        {"https://other.example/a.xml", INDEX, RULE_OUTSIDE_SITE},
        {"http://www.example.com/a.xml", NULL, RULE_OUTSIDE_SITE},
        {ORIGIN "/sitemap_index.xml", NULL, RULE_LOC_IS_PAGE},
        {ORIGIN "/sitemap_index-2.xml.gz", NULL, RULE_LOC_IS_PAGE},
        {ORIGIN "/a.xml", "/none.xml", RULE_INDEX_UNKNOWN},
        {"/a.xml", NULL, RULE_LOC_RELATIVE},
        {NULL, NULL, RULE_LOC_MISSING},
    };
    int64_t revision = revision_of(f);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct change change = put_change(cases[i].loc, NULL);
        change.entry.index = cases[i].index;
        struct change_result r = apply(f, &change);
        assert_int_equal(r.status, CATALOGUE_REFUSED);
        assert_string_equal(rule_code_word(r.code), rule_code_word(cases[i].code));
        assert_null(r.entry.loc);
        assert_false(r.changed);
        assert_non_null(r.field);
    }
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 0);
    assert_int_equal(number_of(f, "SELECT count(*) FROM source"), 0);
}

static void removes_by_id_and_by_loc(void **state)
{
    struct write_fixture *f = *state;
    struct change_result a = put(f, ORIGIN "/a.xml", "2026-01-02");
    put_plain(f, ORIGIN "/b.xml", NULL);
    struct change by_id = {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.id = a.entry.id}};
    struct change_result r = apply(f, &by_id);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.removed, 1);
    assert_string_equal(r.entry.loc, ORIGIN "/a.xml");
    assert_string_equal(r.entry.lastmod, "2026-01-02");
    assert_string_equal(r.entry.id, a.entry.id);
    entry_record_done(&r.entry);

    /* Its id is never another's, though its position is. */
    put_plain(f, ORIGIN "/c.xml", NULL);
    assert_int_equal(position_of(f, ORIGIN "/c.xml"), 0);
    int64_t revision = revision_of(f);
    assert_int_equal(apply_plain(f, &by_id).status, CATALOGUE_NOT_FOUND);
    by_id.entry_remove.id = "no id";
    assert_int_equal(apply_plain(f, &by_id).status, CATALOGUE_NOT_FOUND);
    assert_int_equal(revision_of(f), revision);

    assert_int_equal(drop(f, ORIGIN "/none.xml").status, CATALOGUE_NOT_FOUND);
    assert_int_equal(drop(f, "HTTPS://WWW.example.com:443/x/../b.xml").removed, 1);
    assert_int_equal(drop(f, "b.xml").status, CATALOGUE_REFUSED);
    assert_int_equal(number_of(f, "SELECT entries FROM page"), 1);
    entry_record_done(&a.entry);
}

static void if_match_guards(void **state)
{
    struct write_fixture *f = *state;
    struct change_result r = put(f, ORIGIN "/a.xml", NULL);
    char etag[40], stale[40];
    catalogue_entry_etag(&r.entry, stale);
    entry_record_done(&r.entry);
    r = put(f, ORIGIN "/a.xml", "2026-01-02");
    catalogue_entry_etag(&r.entry, etag);
    entry_record_done(&r.entry);
    assert_string_not_equal(etag, stale);

    struct change change = put_change(ORIGIN "/a.xml", "2026-01-03");
    change.if_match = stale;
    r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_CONFLICT);
    assert_true(r.precondition_failed);
    change.if_match = etag;
    assert_int_equal(apply_plain(f, &change).updated, 1);

    struct change removal = {
        .kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = ORIGIN "/a.xml"}, .if_match = etag};
    r = apply_plain(f, &removal);
    assert_true(r.precondition_failed);
    removal.if_match = "*";
    assert_int_equal(apply_plain(f, &removal).removed, 1);
    /* There is nothing for it to match (RFC 9110 13.1.1). */
    change.if_match = "*";
    assert_true(apply_plain(f, &change).precondition_failed);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 0);
}

static void stays_or_moves(void **state)
{
    struct write_fixture *f = *state;
    int64_t shop = add_index(f, ORIGIN "/shop/index.xml");
    put_plain(f, ORIGIN "/shop/first.xml", NULL);
    struct change change = put_change(ORIGIN "/shop/a.xml", "2026-01-02");
    change.entry.index = INDEX;
    change.entry.digest = "d1";
    change.entry.digest_state = FIELD_SET;
    struct change_result before = apply(f, &change);
    assert_int_equal(before.entry.index_id, f->index);

    /* Without an index named it stays, though a deeper one would hold it. */
    struct change_result r = put(f, ORIGIN "/shop/a.xml", NULL);
    assert_int_equal(r.unchanged, 1);
    assert_int_equal(r.entry.index_id, f->index);
    entry_record_done(&r.entry);

    change = put_change(ORIGIN "/shop/a.xml", NULL);
    change.entry.index = ORIGIN "/shop/index.xml";
    change.source = "another";
    r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.updated, 1);
    assert_int_equal(r.entry.index_id, shop);
    assert_int_equal(r.entry.position, 1);
    assert_string_not_equal(r.entry.id, before.entry.id);
    assert_string_equal(r.entry.lastmod, "2026-01-02");
    assert_string_equal(r.entry.digest, "d1");
    assert_string_equal(r.entry.source, "tests");
    assert_int_equal(r.entry.registered_at, before.entry.registered_at);
    entry_record_done(&r.entry);
    entry_record_done(&before.entry);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 2);
    assert_int_equal(number_of(f, "SELECT entries FROM page WHERE index_id = %lld", f->index), 0);
    /* Both pages have the revision of the move. */
    assert_int_equal(
        number_of(f, "SELECT count(*) FROM page WHERE revision = %lld", revision_of(f)), 2);
}

static void cross_hosts_need_an_index(void **state)
{
    struct write_fixture *f = *state;
    static const char *const hosts[] = {"cdn.example.net", NULL};
    struct change update = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_CROSS_HOSTS, .cross_hosts = hosts}}};
    assert_int_equal(apply(f, &update).updated, 1);
    struct change change = put_change("https://cdn.example.net/a.xml", NULL);
    struct change_result r = apply(f, &change);
    assert_int_equal(r.code, RULE_INDEX_NEEDED);
    change.entry.index = INDEX;
    r = apply_plain(f, &change);
    assert_int_equal(r.created, 1);
    assert_true(r.remarks & RULE_BIT(RULE_CROSS_HOST));
    /* Once registered it is known where it belongs. */
    r = put_plain(f, "https://cdn.example.net/a.xml", "2026-01-02");
    assert_int_equal(r.updated, 1);
    assert_int_equal(drop(f, "https://cdn.example.net/a.xml").removed, 1);
}

static void tokens_of_another_site_may_not(void **state)
{
    struct write_fixture *f = *state;
    int64_t other = add_site(f, "https://other.example", 10);
    struct change_result mine = put(f, ORIGIN "/a.xml", NULL);
    struct change changes[] = {
        put_change(ORIGIN "/b.xml", NULL),
        {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.id = mine.entry.id}},
        {.kind = CHANGE_INDEX_ADD, .index_add = {.url = ORIGIN "/x/i.xml"}},
        {.kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = f->index}, .max_removed = 9},
        {.kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = f->site}, .max_removed = 9},
        {.kind = CHANGE_SITE_UPDATE, .site_update = {.site_id = f->site}},
        {.kind = CHANGE_INDEX_FREEZE, .index_freeze = {.index_id = f->index, .frozen = true}},
    };
    int64_t revision = revision_of(f);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        changes[i].grant.site_id = other;
        struct change_result r = apply(f, &changes[i]);
        assert_int_equal(r.status, CATALOGUE_REFUSED);
        assert_true(r.forbidden);
    }
    /* Another site's entries are not even found by loc. */
    struct change removal = {.kind = CHANGE_ENTRY_REMOVE,
                             .entry_remove = {.loc = ORIGIN "/a.xml"},
                             .grant.site_id = other};
    assert_int_equal(apply(f, &removal).status, CATALOGUE_NOT_FOUND);
    assert_int_equal(revision_of(f), revision);
    entry_record_done(&mine.entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(creates_once),
        TEST(absent_keeps_null_clears),
        TEST(lastmod_moves_with_the_digest_only),
        TEST(a_digest_alone_leaves_the_page),
        TEST(the_owner_stays),
        TEST(refusals_write_nothing),
        TEST(removes_by_id_and_by_loc),
        TEST(if_match_guards),
        TEST(stays_or_moves),
        TEST(cross_hosts_need_an_index),
        TEST(tokens_of_another_site_may_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
