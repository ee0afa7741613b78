/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* While the writer is at something that does not end: who waits is answered in time, and a stop can
 * give it up. */
#include "server/base/clock.h"
#include "tests/unit/db/write/write_answers.h"

struct endless {
    struct write_fixture *f;
    struct answers *others; /* answered before the list goes on */
    uint64_t busy_ms;
};

static void wait_for_others(void *context, uint64_t n)
{
    struct endless *e = context;
    if (n == 0) {
        struct change change = put_change(ORIGIN "/waits.xml", NULL);
        change.context = e->others;
        catalogue_submit(e->f->c, &change, count_answer);
        answers_wait(e->others, 1); /* by whom, if not by the writer, whose thread this is? */
        struct catalogue_stats stats;
        catalogue_stats_get(e->f->c, &stats);
        e->busy_ms = stats.busy_ms;
    }
}

static void a_write_is_answered_while_the_writer_is_busy(void **state)
{
    struct write_fixture *f = *state;
    f->options.write_timeout_ms = 300;
    struct answers others;
    answers_init(&others);
    struct endless endless = {.f = f, .others = &others};
    watch_rows(f, wait_for_others, &endless);
    alarm(300); /* without an answer this never ends */
    struct change_result r;
    int late = 0; /* the machine was so busy that the list itself had no turn in time */
    while ((r = bulk_numbered(f, "s", 10)).status == CATALOGUE_BUSY)
        late++;
    alarm(0);
    assert_int_equal(r.created, 10);
    assert_int_equal(others.busy, 1);
    assert_true(endless.busy_ms >= 300);
    assert_int_equal(position_of(f, ORIGIN "/waits.xml"), -1);
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    assert_int_equal(stats.failed[CATALOGUE_BUSY], 1 + late);
    answers_done(&others);
}

static void take_long(void *context, uint64_t n)
{
    (void)context, (void)n;
    usleep(10000);
}

static void a_stop_gives_up_what_does_not_end(void **state)
{
    struct write_fixture *f = *state;
    struct test_stream s = {.make = make_numbered, .context = "endless", .count = 100000};
    struct answers answers;
    answers_init(&answers);
    watch_rows(f, take_long, NULL);
    struct change change = {.kind = CHANGE_BULK, .source = "tests", .rows = rows_of(&s)};
    change.context = &answers;
    catalogue_submit(f->c, &change, count_answer);
    struct catalogue_stats stats;
    uint64_t begun;
    catalogue_stats_get(f->c, &stats);
    begun = stats.statements;
    while (stats.statements < begun + 100)
        catalogue_stats_get(f->c, &stats);
    alarm(300);
    catalogue_abandon(f->c);
    answers_wait(&answers, 1);
    alarm(0);
    assert_int_equal(answers.cancelled, 1);
    assert_int_equal(put_plain(f, ORIGIN "/late.xml", NULL).status, CATALOGUE_CANCELLED);
    catalogue_finish(f->c);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 0);
    fixture_reopen(f);
    assert_int_equal(put_plain(f, ORIGIN "/again.xml", NULL).created, 1);
    answers_done(&answers);
}

/* ---- whose turn it is */

struct turns {
    struct write_fixture *f;
    char answered[16]; /* who, in order; the writer's thread alone writes it */
    struct answers answers;
};

struct turn {
    struct turns *all;
    char who;
};

static void record_turn(void *context, struct change_result *result)
{
    struct turn *turn = context;
    strncat(turn->all->answered, &turn->who, 1);
    count_answer(&turn->all->answers, result);
}

/* Three heavy ones of A, of which the last two come in while the first one is being applied, then
 * one list and a small change of B. */
static void let_a_crowd_in(void *context, uint64_t n)
{
    static struct turn crowd[4];
    const struct test_stream list = {.make = make_numbered, .context = "crowd", .count = 1};
    struct turns *all = context;
    for (size_t i = 0; n == 0 && i < 4; i++) {
        struct change change = {.kind = CHANGE_INDEX_ADD, .index_add = {.url = ORIGIN "/x.xml"}};
        if (i == 2)
            change =
                (struct change){.kind = CHANGE_BULK, .source = "tests", .rows = rows_of(&list)};
        if (i == 3)
            change = put_change(ORIGIN "/small.xml", NULL);
        crowd[i] = (struct turn){all, "aabb"[i]};
        change.grant.site_id = i < 2 ? 1 : 2;
        change.context = &crowd[i];
        catalogue_submit(all->f->c, &change, record_turn);
    }
}

static void nobodys_heavy_changes_hold_up_anothers(void **state)
{
    struct write_fixture *f = *state;
    struct turns all = {.f = f};
    answers_init(&all.answers);
    struct test_stream s = {.make = make_numbered, .context = "first", .count = 2};
    watch_rows(f, let_a_crowd_in, &all);
    apply_stream(f, (struct change){.kind = CHANGE_BULK, .grant.site_id = 1}, &s);
    alarm(300);
    answers_wait(&all.answers, 4);
    alarm(0);
    /* The small one first, since small and heavy ones take turns; then B's list before A's. */
    assert_string_equal(all.answered, "bbaa");
    answers_done(&all.answers);
}

/* ---- what a site's list may take from others */

struct slow_list {
    struct write_fixture *f;
    struct answers *other;
    int64_t other_site;
};

/* Takes more than half of write_timeout, while somebody's write waits from the beginning on. */
static void be_slow(void *context, uint64_t n)
{
    struct slow_list *l = context;
    if (n == 0) {
        struct change change = put_change(ORIGIN "/waits.xml", NULL);
        change.grant.site_id = l->other_site;
        change.context = l->other;
        catalogue_submit(l->f->c, &change, count_answer);
    } else if (n == 1) {
        usleep(1100000);
    }
}

static void a_sites_list_ends_where_another_waits(void **state)
{
    struct write_fixture *f = *state;
    static const struct {
        const char *what;
        enum change_kind kind;
        int64_t site, other_site; /* of the tokens, 1: the fixture's site */
        bool ends, dry_run;
    } cases[] = {
        {"another site waits", CHANGE_BULK, 1, 2, true, false},
        {"a token for all sites waits", CHANGE_BULK, 1, 0, true, false},
        {"a dry run, which goes on beside the writer", CHANGE_BULK, 1, 2, false, true},
        {"a replace", CHANGE_REPLACE, 1, 2, true, false},
        {"the site's own waits", CHANGE_BULK, 1, 1, false, false},
        {"a list of all sites", CHANGE_BULK, 0, 1, false, false},
    };
    unsigned tries = 0;
    f->options.write_timeout_ms = 2000;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0];) {
        struct answers other;
        answers_init(&other);
        struct slow_list list = {f, &other, cases[i].other_site};
        char folder[16], second[80];
        snprintf(folder, sizeof folder, "slow-%u", tries++);
        snprintf(second, sizeof second, ORIGIN "/%s/1.xml", folder);
        struct test_stream s = {.make = make_numbered, .context = folder, .count = 17};
        struct change change = {.kind = cases[i].kind,
                                .grant.site_id = cases[i].site,
                                .index_name = ORIGIN INDEX,
                                .max_removed = MAX_REMOVED_GUARDED,
                                .dry_run = cases[i].dry_run};
        watch_rows(f, be_slow, &list);
        int64_t began_ms = clock_now_ms();
        struct change_result r = apply_stream(f, change, &s);
        answers_wait(&other, 1);
        answers_done(&other);
        if (clock_now_ms() - began_ms >= 2000 && tries < 60)
            continue; /* the machine was busy: it says nothing of whose time ended */
        if ((r.code == RULE_LIST_TOO_LONG) != cases[i].ends || other.busy != 0)
            fail_msg("%s: %s, %zu busy", cases[i].what, r.detail, other.busy);
        assert_int_equal(r.status, cases[i].ends ? CATALOGUE_REFUSED : CATALOGUE_OK);
        assert_int_equal(r.created > 0 || r.unchanged > 0, !cases[i].ends);
        assert_int_equal(position_of(f, second) >= 0, !cases[i].ends && !cases[i].dry_run);
        i++;
    }
}

static void make_scattered(void *context, uint64_t n, struct entry *out, char *text)
{
    (void)context;
    sprintf(text, ORIGIN "/p/%llu", (unsigned long long)n);
    *out = (struct entry){.loc = text, .position = (uint32_t)n * LIMIT_PAGE_ENTRIES};
}

/* Nothing of a urlset's pages is kept then: they stay where they were. */
static void a_urlset_of_many_pages_ends_where_another_waits(void **state)
{
    struct write_fixture *f = *state;
    static const char urlset[] = ORIGIN "/pages.xml", other_index[] = ORIGIN "/other.xml";
    int64_t other = add_index(f, other_index);
    struct change add = {.kind = CHANGE_URLSET_ADD,
                         .urlset_add = {.url = urlset, .fields = {.index = ORIGIN INDEX}}};
    int64_t id = apply_plain(f, &add).id;
    struct test_stream s = {.make = make_scattered, .count = 300};
    struct change rows = {.kind = CHANGE_BULK, .list = LIST_URLSET, .index_name = urlset};
    assert_int_equal(apply_stream(f, rows, &s).created, 300);
    f->options.write_timeout_ms = 2000;
    struct change move = {
        .kind = CHANGE_URLSET_UPDATE,
        .urlset_update = {.index_id = id,
                          .fields = {.set = URLSET_SET_INDEX, .index = other_index}}};
    for (unsigned tries = 0, ended = 0; ended == 0 && tries < 60; tries++) {
        struct answers waits;
        answers_init(&waits);
        struct slow_list list = {f, &waits, 0};
        move.grant.site_id = f->site;
        watch_rows(f, be_slow, &list);
        int64_t began_ms = clock_now_ms();
        struct change_result r = apply_plain(f, &move);
        answers_wait(&waits, 1);
        answers_done(&waits);
        if (clock_now_ms() - began_ms >= 2000)
            continue; /* the machine was busy */
        assert_int_equal(r.code, RULE_LIST_TOO_LONG);
        assert_non_null(strstr(r.detail, "pages"));
        assert_int_equal(
            number_of(f, "SELECT count(*) FROM sitemap WHERE source < 0 AND address >> 32 = %lld",
                      (long long)f->index),
            300);
        ended = 1;
    }
    on_row = NULL;
    move.grant.site_id = 0;
    apply_plain(f, &move);
    assert_int_equal(
        number_of(f, "SELECT count(*) FROM sitemap WHERE source < 0 AND address >> 32 = %lld",
                  (long long)other),
        300);
}

struct round {
    struct write_fixture *f;
    struct answers *answers;
};

/* Three of one site, then three for all, into a queue of four, while the writer is at this. */
static void fill_the_queue(void *context, uint64_t n)
{
    struct round *round = context;
    for (int i = 0; n == 0 && i < 6; i++) {
        struct change change = put_change(ORIGIN "/full.xml", NULL);
        change.grant.site_id = i < 3 ? 1 : 0;
        change.context = round->answers;
        catalogue_submit(round->f->c, &change, count_answer);
        assert_int_equal(round->answers->busy, i < 2 ? 0 : i < 5 ? 1 : 2);
    }
}

static void one_site_has_half_of_the_queue(void **state)
{
    struct write_fixture *f = *state;
    f->options.max_queued = 4;
    for (int i = 0; i < 2; i++) { /* what was taken out leaves its place */
        struct answers answers;
        answers_init(&answers);
        struct round round = {f, &answers};
        if (i == 0)
            watch_rows(f, fill_the_queue, &round);
        on_row_count = 0;
        on_row_context = &round;
        bulk_numbered(f, i == 0 ? "one" : "two", 1);
        answers_wait(&answers, 6);
        assert_int_equal(answers.ok, 4);
        answers_done(&answers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(a_write_is_answered_while_the_writer_is_busy),
        TEST(a_stop_gives_up_what_does_not_end),
        TEST(nobodys_heavy_changes_hold_up_anothers),
        TEST(a_sites_list_ends_where_another_waits),
        TEST(a_urlset_of_many_pages_ends_where_another_waits),
        TEST(one_site_has_half_of_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
