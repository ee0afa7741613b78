/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* CHANGE_SITE_IMPORT in steps: other writes come in between, nobody sees the site before the last
 * step, and what a step leaves that was the last for another reason is purged. As in
 * test_scan_steps.c, the writer's clock has another write come at the begin of each step. */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "db/catalogue.h"
#include "db/write/apply/apply.h"
#include "tests/unit/db/write/write_fixture.h"

#define SHOP    "https://shop.example"
#define ENTRIES 1000

static struct {
    struct catalogue *_Atomic c;
    atomic_bool armed;
    _Atomic unsigned submitted, done;
    _Atomic unsigned unknown, frozen; /* what was said of the site */
    bool takes_name;                  /* the fifth write makes a site of its name */
} between;

static void record_done(void *context, struct change_result *result)
{
    (void)context;
    between.unknown += result->status == CATALOGUE_REFUSED && result->code == RULE_SITE_UNKNOWN;
    between.frozen += result->status == CATALOGUE_REFUSED && result->code == RULE_FROZEN;
    between.done++;
}

static int64_t clock_between(void)
{
    if (between.armed && between.submitted == between.done) {
        struct change change = put_change(SHOP "/between.xml", NULL);
        const struct change add = {.kind = CHANGE_SITE_ADD, .site_add = {.origin = SHOP}};
        bool adds = between.takes_name && between.submitted == 4;
        between.submitted++;
        catalogue_submit(between.c, adds ? &add : &change, record_done);
    }
    return fixture_now();
}

static void disarm(void)
{
    between.armed = false;
    while (between.submitted != between.done)
        sched_yield();
}

static struct write_fixture *open_with_clock(void **state)
{
    struct write_fixture *f = *state;
    f->options.clock = clock_between;
    f->options.history_keep_ms = UINT64_C(86400000);
    fixture_reopen(f);
    between.c = f->c;
    between.submitted = between.done = between.unknown = between.frozen = 0;
    between.armed = between.takes_name = false;
    apply_step_ms = 0;
    return f;
}

/* The copy of a shop that the catalogue no longer has. */
static void make_copy(struct write_fixture *f, char *path, size_t size)
{
    char why[256], loc[64];
    int64_t shop = add_site(f, SHOP, 0);
    add_index(f, SHOP "/s.xml");
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(loc, sizeof loc, SHOP "/%d.xml", i);
        assert_int_equal(put_plain(f, loc, NULL).status, CATALOGUE_OK);
    }
    snprintf(path, size, "%s.copy", f->path);
    unlink(path);
    assert_int_equal(catalogue_site_copy(f->c, shop, path, NULL, NULL, why, sizeof why),
                     CATALOGUE_OK);
    assert_int_equal(catalogue_site_copy_check(path, why, sizeof why), CATALOGUE_OK);
    struct change removal = {
        .kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = shop}, .max_removed = ENTRIES};
    assert_int_equal(apply_plain(f, &removal).status, CATALOGUE_OK);
}

static struct change_result import(struct write_fixture *f, const char *path)
{
    const struct change change = {.kind = CHANGE_SITE_IMPORT, .site_import = {.file = path}};
    between.armed = true;
    struct change_result result = apply_plain(f, &change);
    disarm();
    unlink(path);
    return result;
}

static void others_write_and_see_nothing_of_it(void **state)
{
    struct write_fixture *f = open_with_clock(state);
    char path[512];
    make_copy(f, path, sizeof path);
    struct change_result r = import(f, path);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.created, ENTRIES);
    int64_t steps = number_of(f, "SELECT count(*) FROM history_step");
    assert_true(steps > ENTRIES / 20); /* a step has 16 rows */
    assert_true(between.unknown >= (unsigned)steps - 2);
    assert_true(between.unknown + between.frozen == between.done);
    assert_int_equal(number_of(f, "SELECT sum(created) FROM history WHERE kind = 'site-import'"),
                     ENTRIES);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE origin = '" SHOP "'"
                                  " AND removed = 0"),
                     1);
    /* Crawlers and CDNs hear of the pages when they are there. */
    assert_int_equal(number_of(f,
                               "SELECT min(revision) = %lld FROM page AS p JOIN sitemap_index"
                               " AS i ON i.id = p.index_id WHERE i.removed = 0 AND i.site = %lld",
                               (long long)r.revision, (long long)r.id),
                     1);
    assert_int_equal(put_plain(f, SHOP "/new.xml", NULL).code, RULE_FROZEN);
}

static void a_name_that_was_taken_meanwhile_is_kept(void **state)
{
    struct write_fixture *f = open_with_clock(state);
    char path[512];
    make_copy(f, path, sizeof path);
    between.takes_name = true;
    struct change_result r = import(f, path);
    assert_int_equal(r.status, CATALOGUE_CONFLICT);
    assert_string_equal(r.detail, "conflict: a site with this origin already exists");
    assert_int_equal(number_of(f, "SELECT count(*) FROM site WHERE origin = '" SHOP "'"
                                  " AND removed = 0"),
                     1);
    /* What it left: purged in ten minutes, not in one. */
    static const char left[] = "SELECT count(*) FROM sitemap WHERE address >> 32 ="
                               " (SELECT max(id) FROM sitemap_index WHERE removed = 1)";
    const struct change purge = {.kind = CHANGE_PURGE};
    assert_true(number_of(f, left) > 0);
    int64_t now = fixture_now();
    fixture_clock = now + 60;
    assert_int_equal(apply_plain(f, &purge).status, CATALOGUE_OK);
    assert_true(number_of(f, left) > 0);
    fixture_clock = now + 660;
    for (int i = 0; i < 5; i++)
        assert_int_equal(apply_plain(f, &purge).status, CATALOGUE_OK);
    assert_int_equal(number_of(f, left), 0);
    fixture_clock = 0;
}

/* Nobody waits: one transaction, one revision. */
static void alone_it_is_one_step(void **state)
{
    struct write_fixture *f = open_with_clock(state);
    char path[512];
    make_copy(f, path, sizeof path);
    apply_step_ms = APPLY_STEP_MS;
    int64_t before = revision_of(f);
    const struct change change = {.kind = CHANGE_SITE_IMPORT, .site_import = {.file = path}};
    assert_int_equal(apply_plain(f, &change).created, ENTRIES);
    unlink(path);
    assert_int_equal(revision_of(f), before + 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM history_step"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_write_and_see_nothing_of_it, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_name_that_was_taken_meanwhile_is_kept, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(alone_it_is_one_step, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
