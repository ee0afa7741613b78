/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sites, indexes and tokens: made and changed. How they go: test_write_remove.c. */
#include "tests/unit/db/write/write_stream.h"

static void a_site_is_made_once(void **state)
{
    struct write_fixture *f = *state;
    struct change change = {.kind = CHANGE_SITE_ADD,
                            .site_add = {.origin = "HTTPS://Second.Example:443/"}};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_true(r.id > f->site);
    assert_int_equal(number_of(f, "SELECT max_pages FROM site WHERE origin ="
                                  " 'https://second.example'"),
                     LIMIT_SITE_PAGES);
    int64_t id = r.id, revision = revision_of(f);
    r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_CONFLICT);
    assert_int_equal(r.id, id);
    assert_int_equal(revision_of(f), revision);

    static const struct {
        const char *origin;
        const char *hosts[2];
    } bad[] = {{"https://x.example/path", {NULL}},
               {"x.example", {NULL}},
               {NULL, {NULL}},
               {"https://x.example", {"bad host", NULL}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        change.site_add.origin = bad[i].origin;
        change.site_add.fields.alias_hosts = bad[i].hosts;
        r = apply(f, &change);
        assert_int_equal(r.status, CATALOGUE_REFUSED);
        assert_non_null(r.field);
    }
    assert_int_equal(revision_of(f), revision);
}

static void a_site_and_its_first_index_are_one_change(void **state)
{
    struct write_fixture *f = *state;
    int64_t revision = revision_of(f);
    static const char *const bad[] = {"https://n.example/a.html",  "https://n.example",
                                      "https://n.examplex.xml",    "https://o.example/a.xml",
                                      "https://n.example/a.xml?b", "/a.xml"};
    struct change change = {.kind = CHANGE_SITE_ADD, .site_add = {.origin = "https://n.example"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        change.site_add.index_url = bad[i];
        struct change_result r = apply(f, &change);
        assert_int_equal(r.status, CATALOGUE_REFUSED);
        assert_int_equal(r.code, RULE_INDEX_PATH);
        assert_string_equal(r.field, "index");
    }
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE origin = 'https://n.example'"),
                     0);
    assert_int_equal(revision_of(f), revision);

    change.site_add.index_url = "HTTPS://N.Example:443/a/../sitemap_index.xml";
    struct change_result r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, 1);
    assert_int_equal(revision_of(f), revision + 1);
    assert_int_equal(number_of(f, "SELECT i.site FROM sitemap_index AS i JOIN site AS s ON"
                                  " s.id = i.site WHERE i.path = '/sitemap_index.xml'"
                                  " AND s.origin = 'https://n.example'"),
                     r.id);
}

static void a_site_is_changed_where_it_differs(void **state)
{
    struct write_fixture *f = *state;
    static const char *const hosts[] = {"b.example", "A.example", "b.example", NULL};
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_CROSS_HOSTS | SITE_SET_ALIAS_HOSTS,
                                   .cross_hosts = hosts,
                                   .alias_hosts = hosts}}};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.updated, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site_host"), 4);
    int64_t revision = revision_of(f);
    static const char *const same[] = {"a.example", "b.example", NULL};
    change.site_update.fields.cross_hosts = same;
    r = apply(f, &change);
    assert_int_equal(r.unchanged, 1);
    assert_int_equal(revision_of(f), revision);
    change.site_update.fields = (struct site_fields){.set = SITE_SET_ALIAS_HOSTS};
    assert_int_equal(apply(f, &change).updated, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site_host WHERE kind = 'cross'"), 2);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site_host WHERE kind = 'alias'"), 0);
    change.site_update.site_id = 99;
    assert_int_equal(apply(f, &change).status, CATALOGUE_NOT_FOUND);
    change.site_update.site_id = f->site;
    change.site_update.fields =
        (struct site_fields){.set = SITE_SET_MAX_PAGES, .max_pages = UINT32_MAX};
    assert_int_equal(apply(f, &change).status, CATALOGUE_FULL);
}

static struct change_result set_aliases(struct write_fixture *f, int64_t site_id, bool managed,
                                        const char *first, const char *second)
{
    const char *const hosts[] = {first, second, NULL};
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = site_id,
                        .fields = {.set = SITE_SET_ALIAS_HOSTS | (managed ? SITE_SET_MANAGED : 0),
                                   .alias_hosts = hosts,
                                   .managed = managed}},
        .override_managed = managed};
    return apply(f, &change);
}

static int64_t asked(struct write_fixture *f, const char *host)
{
    struct catalogue_view *view;
    struct registry *registry;
    assert_int_equal(catalogue_view_begin(f->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_registry(view, &registry), CATALOGUE_OK);
    catalogue_view_end(view);
    const struct registry_site *site = registry_site_by_host(registry, host);
    int64_t id = site != NULL ? site->id : 0;
    registry_unref(registry);
    return id;
}

/* Else a token for one site could take the requests of another. */
static void an_alias_belongs_to_one_site(void **state)
{
    struct write_fixture *f = *state;
    int64_t last = apply(f, &(struct change){.kind = CHANGE_SITE_ADD,
                                             .site_add = {.origin = "https://zz.example"}})
                       .id;
    assert_int_equal(set_aliases(f, f->site, false, "a.example", "b.example:8443").updated, 1);
    assert_int_equal(asked(f, "a.example"), f->site);
    static const char *const taken[] = {"a.example", "A.EXAMPLE", "a.example:8443",
                                        "b.example:8443", "b.example"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct change_result r = set_aliases(f, last, false, "new.example", taken[i]);
        assert_int_equal(r.status, CATALOGUE_CONFLICT);
        assert_string_equal(r.field, "alias_hosts");
        const char *const hosts[] = {taken[i], NULL};
        r = apply(f, &(struct change){.kind = CHANGE_SITE_ADD,
                                      .site_add = {.origin = "https://zzz.example",
                                                   .fields = {.set = SITE_SET_ALIAS_HOSTS,
                                                              .alias_hosts = hosts}}});
        assert_int_equal(r.status, CATALOGUE_CONFLICT);
    }
    assert_int_equal(asked(f, "new.example"), 0);
    assert_int_equal(set_aliases(f, last, false, "b.example:9443", NULL).updated, 1);
    assert_int_equal(asked(f, "b.example:9443"), last);
    /* Its own it may name again, and what it gives up is free. */
    assert_int_equal(set_aliases(f, f->site, false, "a.example", NULL).updated, 1);
    assert_int_equal(set_aliases(f, last, false, "b.example:9443", "b.example").updated, 1);
    /* The configuration decides, whatever came first. */
    assert_int_equal(set_aliases(f, last, false, "c.example", NULL).updated, 1);
    assert_int_equal(set_aliases(f, f->site, true, "c.example", NULL).updated, 1);
    assert_int_equal(asked(f, "c.example"), f->site);
}

static void hosts_are_bounded(void **state)
{
    enum { MOST = 1000 };
    struct write_fixture *f = *state;
    static char names[MOST + 1][24];
    const char *hosts[MOST + 2] = {NULL};
    for (int i = 0; i <= MOST; i++) {
        snprintf(names[i], sizeof names[i], "h%d.example", i);
        hosts[i] = names[i];
    }
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_CROSS_HOSTS | SITE_SET_ALIAS_HOSTS}}};
    change.site_update.fields.cross_hosts = hosts;
    struct change_result r = apply(f, &change);
    assert_int_equal(r.status, CATALOGUE_FULL);
    assert_string_equal(r.field, "cross_hosts");
    hosts[MOST] = NULL;
    assert_int_equal(apply(f, &change).updated, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site_host"), MOST);
}

static void an_index_is_checked(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/shop/sitemap-7.xml", NULL);
    static const struct {
        const char *url, *pattern;
        enum catalogue_status status;
        enum rule_code code;
    } cases[] = {
        {ORIGIN "/sitemap_index.xml", NULL, CATALOGUE_CONFLICT, RULE_OK},
        {"/sitemap_index.xml", NULL, CATALOGUE_CONFLICT, RULE_OK},
        {ORIGIN "/sitemap_index-3.xml", NULL, CATALOGUE_REFUSED, RULE_INDEX_COVERS_INDEX},
        {ORIGIN "/shop/sitemap-7.xml", NULL, CATALOGUE_REFUSED, RULE_INDEX_COVERS_LOC},
        {ORIGIN "/shop/sitemap.xml", NULL, CATALOGUE_REFUSED, RULE_INDEX_COVERS_LOC},
        {ORIGIN "/shop/sitemap.xml", "{stem}_p{n}{suffix}", CATALOGUE_OK, RULE_OK},
        {"/blog/index.xml", NULL, CATALOGUE_OK, RULE_OK},
        {ORIGIN "/x.html", NULL, CATALOGUE_REFUSED, RULE_INDEX_PATH},
        {ORIGIN "/x.xml?a=b", NULL, CATALOGUE_REFUSED, RULE_INDEX_PATH},
        {ORIGIN "/x.xml", "{n}", CATALOGUE_REFUSED, RULE_INDEX_PATTERN},
        {"https://none.example/x.xml", NULL, CATALOGUE_REFUSED, RULE_SITE_UNKNOWN},
        {NULL, NULL, CATALOGUE_REFUSED, RULE_LOC_RELATIVE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct change change = {
            .kind = CHANGE_INDEX_ADD,
            .index_add = {.url = cases[i].url, .page_pattern = cases[i].pattern}};
        struct change_result r = apply(f, &change);
        if (r.status != cases[i].status || (cases[i].url && r.code != cases[i].code))
            fail_msg("%s: %s %s", cases[i].url, catalogue_status_word(r.status),
                     rule_code_word(r.code));
        if (r.status != CATALOGUE_REFUSED)
            assert_true(r.id > 0);
    }
}

static void a_higher_cap_must_not_cover_a_loc(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/sitemap_index-501.xml", NULL);
    struct change change = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 501}}};
    struct change_result r = apply(f, &change);
    assert_int_equal(r.code, RULE_INDEX_COVERS_LOC);
    drop(f, ORIGIN "/sitemap_index-501.xml");
    assert_int_equal(apply(f, &change).updated, 1);
}

static void the_configurations_sites_are_its_own(void **state)
{
    struct write_fixture *f = *state;
    struct change add = {.kind = CHANGE_SITE_ADD,
                         .override_managed = true,
                         .site_add = {.fields = {.set = SITE_SET_MANAGED, .managed = true},
                                      .origin = "https://managed.example"}};
    int64_t id = apply(f, &add).id;
    struct change changes[] = {
        {.kind = CHANGE_INDEX_ADD, .index_add = {.url = "https://managed.example/i.xml"}},
        {.kind = CHANGE_SITE_UPDATE,
         .site_update = {.site_id = id, .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 3}}},
        {.kind = CHANGE_INDEX_REMOVE, .max_removed = 9},
        {.kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = id}, .max_removed = 9},
    };
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (i == 2) {
            changes[i].index_remove.index_id = number_of(f, "SELECT max(id) FROM sitemap_index");
            /* Entries are everyone's. */
            put_plain(f, "https://managed.example/a.xml", NULL);
        }
        struct change_result r = apply(f, &changes[i]);
        assert_int_equal(r.status, CATALOGUE_CONFLICT);
        assert_true(r.managed);
        changes[i].override_managed = true;
        assert_int_equal(apply(f, &changes[i]).status, CATALOGUE_OK);
    }
}

static void tokens_have_names(void **state)
{
    struct write_fixture *f = *state;
    uint8_t hash[32] = {7};
    struct change add = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = "deploy", .role = GRANT_ADMIN}, .sha256 = hash}};
    struct change_result r = apply(f, &add);
    assert_int_equal(r.created, 1);
    int64_t id = r.id;
    r = apply(f, &add);
    assert_int_equal(r.status, CATALOGUE_CONFLICT);
    assert_int_equal(r.id, id);
    assert_int_equal(number_of(f, "SELECT site IS NULL FROM token"), 1);
    add.token_add.grant.name = "not valid";
    assert_int_equal(apply(f, &add).code, RULE_NAME);
    add.token_add.grant.name = "other";
    add.token_add.grant.site_id = 77;
    assert_int_equal(apply(f, &add).status, CATALOGUE_NOT_FOUND);
    struct change used = {.kind = CHANGE_TOKEN_USED, .token_used = {.token_id = id}},
                  revoke = {.kind = CHANGE_TOKEN_REVOKE, .token_revoke = {.name = "deploy"}};
    int64_t revision = revision_of(f);
    assert_int_equal(apply(f, &used).status, CATALOGUE_OK);
    assert_int_equal(number_of(f, "SELECT count(*) FROM local_token_use"), 1);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(apply(f, &revoke).removed, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM local_token_use"), 0);
    assert_int_equal(apply(f, &revoke).status, CATALOGUE_NOT_FOUND);
}

/* The writer authorises the caller when it applies: by id, hash and scope, never by name. */
static void a_revoked_token_writes_nothing(void **state)
{
    struct write_fixture *f = *state;
    uint8_t hash[32] = {7}, other_hash[32] = {8};
    struct change add = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = "deploy", .role = GRANT_ADMIN}, .sha256 = hash}};
    int64_t id = apply(f, &add).id;
    struct change write = {.kind = CHANGE_SITE_ADD,
                           .site_add = {.origin = "https://late.example"},
                           .grant = {.role = GRANT_ADMIN},
                           .bearer_id = id,
                           .bearer_sha256 = other_hash};
    struct change_result r = apply(f, &write);
    assert_int_equal(r.status, CATALOGUE_CONFLICT);
    assert_true(r.revoked);
    assert_false(r.changed);
    write.bearer_sha256 = hash;
    write.bearer_id = id + 1;
    assert_true(apply(f, &write).revoked);
    write.bearer_id = id;
    write.grant.site_id = 1; /* it is for all sites */
    assert_true(apply(f, &write).revoked);
    write.grant.site_id = 0;
    struct change revoke = {.kind = CHANGE_TOKEN_REVOKE, .token_revoke = {.name = "deploy"}};
    apply(f, &revoke);
    add.token_add.sha256 = other_hash;
    apply(f, &add);
    assert_true(apply(f, &write).revoked);
    write.bearer_id = apply(f, &add).id; /* CONFLICT returns the existing id */
    write.bearer_sha256 = other_hash;
    assert_int_equal(apply(f, &write).status, CATALOGUE_OK);
}

/* From the second on in which it expires, also where it was good when the request began. */
static void an_expired_token_writes_nothing(void **state)
{
    struct write_fixture *f = *state;
    uint8_t hash[32] = {9};
    fixture_clock = 1000000;
    struct change add = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = "short", .role = GRANT_WRITE, .expires_at = 1000010},
                      .sha256 = hash}};
    struct change write = put_change(ORIGIN "/short.xml", NULL);
    write.bearer_id = apply(f, &add).id;
    write.bearer_sha256 = hash;
    write.grant = add.token_add.grant;
    struct change_result r = apply(f, &write);
    assert_int_equal(r.status, CATALOGUE_OK);
    change_result_done(&r);
    write.grant.role = GRANT_ADMIN; /* not what its row says */
    assert_true(apply(f, &write).revoked);
    write.grant = add.token_add.grant;
    write.grant.expires_at = 0;
    assert_true(apply(f, &write).revoked);
    write.grant = add.token_add.grant;
    struct change site = {.kind = CHANGE_SITE_ADD,
                          .site_add = {.origin = "https://role.example"},
                          .bearer_id = write.bearer_id,
                          .bearer_sha256 = hash,
                          .grant = add.token_add.grant};
    r = apply(f, &site);
    assert_true(r.forbidden && r.code == RULE_OUTSIDE_TOKEN);
    fixture_clock = 1000010;
    r = apply(f, &write);
    assert_true(r.revoked && strstr(r.detail, "expired") != NULL);
    assert_false(r.changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(a_site_is_made_once),
        TEST(a_site_and_its_first_index_are_one_change),
        TEST(a_site_is_changed_where_it_differs),
        TEST(an_alias_belongs_to_one_site),
        TEST(hosts_are_bounded),
        TEST(an_index_is_checked),
        TEST(a_higher_cap_must_not_cover_a_loc),
        TEST(the_configurations_sites_are_its_own),
        TEST(tokens_have_names),
        TEST(a_revoked_token_writes_nothing),
        TEST(an_expired_token_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
