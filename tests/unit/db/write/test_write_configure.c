/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a configuration declares is one change: whole, or nothing of it. */
#include "tests/unit/db/write/write_stream.h"

static const char *const none[] = {NULL};
static const char *const one_index[] = {"/sitemap_index.xml", NULL};

#define SITE_A "https://a.example"
#define SITE_B "https://b.example"

static struct site_declaration declaration(const char *origin)
{
    return (struct site_declaration){.origin = origin,
                                     .index_paths = one_index,
                                     .managed = true,
                                     .cross_hosts = none,
                                     .alias_hosts = none,
                                     .max_pages = 7};
}

static struct change_result declare(struct write_fixture *f, const struct site_declaration *d,
                                    size_t count)
{
    struct change change = {.kind = CHANGE_CONFIGURE,
                            .configure = {.sites = d, .site_count = count}};
    return apply(f, &change);
}

static bool is_declared(struct write_fixture *f, const struct site_declaration *d, size_t count)
{
    struct catalogue_view *view;
    struct registry *registry;
    assert_int_equal(catalogue_view_begin(f->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_registry(view, &registry), CATALOGUE_OK);
    bool is = registry_is_declared(registry, d, count, NULL, 0);
    registry_unref(registry);
    catalogue_view_end(view);
    return is;
}

static void all_sites_in_one_revision(void **state)
{
    struct write_fixture *f = *state;
    static const char *const alias[] = {"www.a.example", NULL};
    static const char *const two[] = {"/sitemap_index.xml", "/shop/index.xml", NULL};
    struct site_declaration d[] = {declaration("HTTPS://A.example/"), declaration(SITE_B)};
    d[0].alias_hosts = alias;
    d[1].index_paths = two;
    int64_t revision = revision_of(f);
    assert_false(is_declared(f, d, 2));
    struct change_result r = declare(f, d, 2);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(revision_of(f), revision + 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE managed AND max_pages = 7"), 2);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site_host"), 1);
    assert_true(is_declared(f, d, 2));

    r = declare(f, d, 2);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision + 1);
}

/* What is not named stays managed: another node may have declared it since the registry was read.
 */
static void a_site_is_released_by_name(void **state)
{
    struct write_fixture *f = *state;
    struct site_declaration d[] = {declaration(SITE_A), declaration(SITE_B)};
    assert_int_equal(declare(f, d, 2).status, CATALOGUE_OK);
    assert_true(is_declared(f, d, 1));
    assert_false(declare(f, d, 1).changed);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE managed"), 2);

    d[1] = (struct site_declaration){.origin = SITE_B,
                                     .released = true,
                                     .index_paths = none,
                                     .cross_hosts = none,
                                     .alias_hosts = none};
    assert_false(is_declared(f, d, 2));
    assert_true(declare(f, d, 2).changed);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE managed AND max_pages = 7"), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE origin = '" SITE_B "'"), 1);
    assert_true(is_declared(f, d, 2));
    d[1].origin = "https://never.example";
    assert_true(is_declared(f, d, 2)); /* one that is not there is not made */
    assert_false(declare(f, d, 2).changed);
}

static void a_refusal_leaves_nothing(void **state)
{
    struct write_fixture *f = *state;
    static const char *const no_index[] = {"/no-index", NULL};
    struct site_declaration d[] = {declaration(SITE_A), declaration(SITE_B)};
    d[1].index_paths = no_index;
    int64_t revision = revision_of(f), sites = number_of(f, "SELECT count(*) FROM site");
    struct change_result r = declare(f, d, 2);
    assert_int_equal(r.status, CATALOGUE_REFUSED);
    assert_int_equal(r.refused_at, 1);
    assert_int_equal(r.refused_index, 1);
    assert_false(r.changed);
    assert_int_equal(revision_of(f), revision);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site"), sites);
    d[1].index_paths = one_index;
    assert_int_equal(declare(f, d, 2).status, CATALOGUE_OK);
}

static void a_host_moves_whatever_the_order(void **state)
{
    struct write_fixture *f = *state;
    static const char *const alias[] = {"www.example.net", NULL};
    struct site_declaration d[] = {declaration(SITE_A), declaration(SITE_B)};
    d[0].alias_hosts = alias;
    assert_int_equal(declare(f, d, 2).status, CATALOGUE_OK);
    for (int turn = 0; turn < 2; turn++) { /* to the one behind, to the one before */
        d[turn].alias_hosts = none;
        d[1 - turn].alias_hosts = alias;
        assert_int_equal(declare(f, d, 2).status, CATALOGUE_OK);
        assert_int_equal(number_of(f, "SELECT count(*) FROM site_host"), 1);
        assert_true(is_declared(f, d, 2));
    }
}

static void an_ordinary_site_is_only_made_sure_of(void **state)
{
    struct write_fixture *f = *state;
    struct site_declaration d = {.origin = SITE_A, .index_paths = one_index};
    assert_int_equal(declare(f, &d, 1).status, CATALOGUE_OK);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE managed"), 0);
    assert_true(is_declared(f, &d, 1));
    run_sql(f, "UPDATE site SET max_pages = 9 WHERE origin = '" SITE_A "'");
    run_sql(f, "UPDATE catalogue SET revision = revision + 1,"
               " registry_revision = registry_revision + 1");
    assert_true(is_declared(f, &d, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_sites_in_one_revision, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_site_is_released_by_name, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_refusal_leaves_nothing, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_host_moves_whatever_the_order, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(an_ordinary_site_is_only_made_sure_of, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
