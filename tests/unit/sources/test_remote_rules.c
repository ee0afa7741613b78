/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What remote sources decide without looking at anything: intervals, the pace of a host, which is
 * due, which hosts are kept, and honest dates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/base/clock.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/host.h"
#include "server/sources/remote/run.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

static const struct interval_bounds bounds = {900, 86400};

static void intervals(void **state)
{
    static const struct {
        uint32_t from;
        bool changed;
        uint32_t to;
    } good[] = {{21600, true, 7200},   {21600, false, 27000}, {1200, true, 900},
                {80000, false, 86400}, {0, false, 27000},     {86400, false, 86400}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(interval_next(good[i].from, good[i].changed, bounds), good[i].to);
    static const struct {
        enum check_state state;
        uint32_t failures, to;
    } bad[] = {{CHECK_UNREACHABLE, 1, 300},    {CHECK_UNREACHABLE, 3, 1200},
               {CHECK_UNREACHABLE, 99, 86400}, {CHECK_BROKEN, 1, 900},
               {CHECK_BROKEN, 2, 1800},        {CHECK_REFUSED, 1, 3600},
               {CHECK_REFUSED, 2, 7200},       {CHECK_GONE, 1, 3600},
               {CHECK_EMPTY, 2, 4500},         {CHECK_NOT_A_SITEMAP, 3, 5625}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(interval_trouble(bad[i].state, bad[i].failures, bounds), bad[i].to);
    for (uint32_t chance = 0; chance < 1000; chance++) {
        uint32_t with = interval_jitter(1000, chance);
        assert_true(with >= 900 && with <= 1100);
    }
    assert_int_equal(interval_jitter(5, 7), 5);
    /* Neither the first interval nor a liar's is longer than max_interval, or shorter than min. */
    static const struct interval_bounds hour = {60, 3600}, day = {86400, 604800};
    assert_int_equal(interval_first(bounds), 21600);
    assert_int_equal(interval_first(hour), 3600);
    assert_int_equal(interval_first(day), 86400);
    assert_int_equal(interval_liar(900, bounds), 21600);
    assert_int_equal(interval_liar(50000, bounds), 50000);
    assert_int_equal(interval_liar(900, hour), 3600);
    /* What waits long is polled together; what is urgent is not kept waiting. */
    assert_int_equal(interval_together(1000001, 3600), 1000010);
    assert_int_equal(interval_together(1000010, 86400), 1000010);
    assert_int_equal(interval_together(1000001, 3599), 1000001);
    assert_false(interval_drops(2, 0, 900000, 259200));
    assert_false(interval_drops(3, 0, 259199, 259200));
    assert_true(interval_drops(3, 0, 259200, 259200));
    assert_false(interval_drops(9, 0, 900000, 0));
}

/* A page where a sitemap was is an accident, until it has stayed for 14 days; where none was, it is
 * what the list names. */
static void a_page_where_a_sitemap_was(void **state)
{
    enum { DAY = 86400, NOW = 1800000000 };
    static const struct {
        enum check_state before;
        int64_t good_at, since;
        enum check_state found;
    } rows[] = {
        {CHECK_NEW, 0, 0, CHECK_NOT_A_SITEMAP},
        {CHECK_BROKEN, 0, NOW - DAY, CHECK_NOT_A_SITEMAP},
        {CHECK_GOOD, NOW - 30 * DAY, NOW - 90 * DAY, CHECK_BROKEN},
        {CHECK_GONE, NOW - 30 * DAY, NOW - 29 * DAY, CHECK_BROKEN},
        {CHECK_BROKEN, NOW - 15 * DAY, NOW - 14 * DAY + 1, CHECK_BROKEN},
        {CHECK_BROKEN, NOW - 15 * DAY, NOW - 14 * DAY, CHECK_NOT_A_SITEMAP},
        {CHECK_REFUSED, NOW - 40 * DAY, NOW - 39 * DAY, CHECK_NOT_A_SITEMAP},
        {CHECK_NOT_A_SITEMAP, NOW - 15 * DAY, NOW, CHECK_NOT_A_SITEMAP},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sitemap_file file = {.kind = i % 2 ? SITEMAP_FILE_OTHER : SITEMAP_FILE_PAGE,
                                          .code = "not-a-sitemap"};
        const struct check_record before = {
            .state = rows[i].before, .good_at = rows[i].good_at, .since = rows[i].since};
        struct fetch_reply reply = {.status = 200};
        const struct child_answer answer = {
            .reply = &reply, .hop = HOP_END, .file = &file, .before = &before, .now = NOW};
        struct child_verdict verdict;
        child_check(&answer, &verdict);
        if (verdict.state != rows[i].found)
            fail_msg("%zu: %s", i, check_state_word(verdict.state));
    }
}

/* However often it is asked for: no look begins while the one before is to be rested from (it would
 * ask the catalogue, and none exists here). */
static void looks_rest(void **state)
{
    struct remote r = {.look = {.rests_ms = 1000, .next_ms = 3000}};
    assert_int_equal(interval_rest_ms(0), 0);
    assert_int_equal(interval_rest_ms(7), 140);
    assert_int_equal(interval_rest_ms(3000), 60000);
    assert_int_equal(interval_rest_ms(3600000), 60000);
    assert_int_equal(interval_pass_rest_ms(7, 100), 140);
    assert_int_equal(interval_pass_rest_ms(7, 500), 500);
    assert_int_equal(interval_pass_rest_ms(-1, 3600000), 60000);
    watch_step(&r, 2999);
    atomic_store(&r.look_soon, true);
    watch_step(&r, 999);
    assert_true(atomic_load(&r.look_soon));
    assert_int_equal(r.look.next_ms, 3000);
}

/* Whatever else took long on a slow machine. */
static void let_others_begin(struct remote *r, const struct look_part *but)
{
    for (struct look_part *part = NULL; (part = site_table_next(&r->look.parts, part)) != NULL;)
        if (part != but)
            part->rests_ms = 0;
}

static bool was_looked_at(const struct remote *r, int64_t site_id)
{
    const struct look_part *part = site_table_find(&r->look.parts, site_id);
    return part != NULL && part->took_ns > 0;
}

/* A site that takes long is skipped until its own pause is over, which delays no other. */
static void a_slow_site_rests_by_itself(void **state)
{
    static const char *const none[] = {NULL};
    char folder[64], path[96];
    scratch_make(folder, "test_remote_rules");
    snprintf(path, sizeof path, "%s/catalogue.db", folder);
    struct catalogue_options options = fixture_options(path);
    options.server = true;
    struct catalogue *c = fixture_catalogue(&options);
    enum { SITES = 257 }; /* the ids of the first and the last one differ by 256 */
    static char origins[SITES][32];
    static struct site_declaration sites[SITES];
    for (size_t i = 0; i < SITES; i++) {
        snprintf(origins[i], sizeof origins[i], "https://s%03zu.example", i);
        sites[i] = (struct site_declaration){.origin = origins[i],
                                             .index_paths = none,
                                             .cross_hosts = none,
                                             .alias_hosts = none,
                                             .managed = true,
                                             .max_pages = 500,
                                             .check = i == 0 || i == SITES - 1};
    }
    struct change change = {.kind = CHANGE_CONFIGURE,
                            .configure = {.sites = sites, .site_count = SITES}};
    fixture_apply(c, &change);

    struct remote_plan plan = {.count = 0};
    struct remote r = {.catalogue = c, .plan = &plan};
    const int64_t now = clock_now_ms(), later = now + 60000;
    watch_step(&r, now);
    assert_int_equal(r.look.phase, LOOK_LEFT);
    const int64_t one = r.registry->sites[0].id, other = r.registry->sites[SITES - 1].id;
    assert_int_equal(other - one, 256);
    struct look_part *a = site_table_find(&r.look.parts, one);
    assert_non_null(a);
    assert_true(a->took_ns > 0 && was_looked_at(&r, other));
    a->took_ns = 3600000000000;
    watch_step(&r, now);
    assert_int_equal(r.look.phase, LOOK_REST);
    assert_true(a->rests_ms >= later && r.look.rests_ms < later);

    int64_t rests_ms = a->rests_ms;
    let_others_begin(&r, a);
    r.look.rests_ms = 0;
    atomic_store(&r.look_soon, true);
    watch_step(&r, now);
    assert_true(a->took_ns == 0 && was_looked_at(&r, other));
    assert_int_equal(r.look.due_ms, rests_ms);
    while (r.look.phase != LOOK_REST)
        watch_step(&r, now);
    let_others_begin(&r, a);
    r.look.next_ms = 0;
    watch_step(&r, rests_ms); /* though nothing has changed */
    assert_true(was_looked_at(&r, one));
    assert_int_equal(r.look.due_ms, 0);

    site_table_done(&r.look.parts);
    registry_unref(r.registry);
    catalogue_close(c);
    scratch_remove(folder);
}

static void a_host_is_asked_at_its_pace(void **state)
{
    struct host_pace h = {0};
    assert_int_equal(host_ready_at(&h, 2), 0);
    host_begin(&h, 1000, 8);
    assert_in_range(host_ready_at(&h, 2), 0, 1000);
    host_begin(&h, 1000, 8);
    assert_true(host_ready_at(&h, 2) == INT64_MAX);
    /* Who takes a second is asked a second later. */
    host_end(&h, 2000, HOST_ANSWERED, 1000, -1);
    assert_int_equal(host_ready_at(&h, 2), 3000);
    host_end(&h, 2000, HOST_DROPPED, 1000, -1);
    assert_int_equal(h.running, 0);
    /* Eight in a second, wherever in it they begin; in a minute no more than eight times sixty. */
    h = (struct host_pace){0};
    for (int64_t begun = 0, now = 5000; begun < 480; begun++) {
        int64_t ready = host_ready_at(&h, 2);
        now = ready > now ? ready : now;
        assert_int_equal(now, 5000 + begun / 8 * 1000);
        host_begin(&h, now, 8);
        host_end(&h, now, HOST_ANSWERED, 0, -1);
    }
    /* A rate that is not a whole number, after a rest. */
    h = (struct host_pace){.slow = 1.1 / 8};
    host_begin(&h, 1000, 8);
    host_begin(&h, 1900, 8);
    h.running = 0;
    assert_in_range(host_ready_at(&h, 2), 2817, 2819);
}

static void a_host_rests_as_it_asks(void **state)
{
    static const struct {
        int64_t retry_after_s, rest_s;
    } rows[] = {{-1, 60}, {0, 60}, {5, 60}, {120, 120}, {999999, 86400}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct host_pace h = {0};
        host_begin(&h, 0, 8);
        host_end(&h, 0, HOST_LIMITED, 5, rows[i].retry_after_s);
        assert_int_equal(host_ready_at(&h, 2), rows[i].rest_s * 1000);
        assert_true(host_rests(&h, rows[i].rest_s * 1000 - 1));
        assert_false(host_rests(&h, rows[i].rest_s * 1000));
        assert_true(host_rate(&h, 8) == 4);
    }
    /* Twice as long each time that it does not say, to an hour; half as fast; then faster again. */
    struct host_pace h = {0};
    int64_t now = 0;
    static const int64_t rests[] = {60, 120, 240, 480, 960, 1920, 3600, 3600};
    for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
        host_begin(&h, now, 8);
        host_end(&h, now, HOST_LIMITED, 1, -1);
        assert_int_equal(host_ready_at(&h, 2), now + rests[i] * 1000);
        now += rests[i] * 1000;
    }
    assert_true(host_rate(&h, 8) == 8.0 / 64);
    for (unsigned i = 0; i < 100; i++)
        host_end(&h, now, HOST_ANSWERED, 1, -1);
    assert_true(host_rate(&h, 8) > 8.0 / 64 && host_rate(&h, 8) < 8.0 / 50);
    for (unsigned i = 0; i < 10000; i++)
        host_end(&h, now, HOST_ANSWERED, 1, -1);
    assert_true(host_rate(&h, 8) == 8);
}

static void a_dead_host_is_probed(void **state)
{
    struct host_pace h = {0};
    for (unsigned i = 0; i < 4; i++)
        host_end(&h, 0, HOST_FAILED, 10000, -1);
    assert_false(host_rests(&h, 1));
    host_end(&h, 0, HOST_FAILED, 10000, -1);
    assert_int_equal(host_ready_at(&h, 2), 300000);
    h.running = 1; /* one probe, not two */
    assert_true(host_ready_at(&h, 2) == INT64_MAX);
    host_end(&h, 300000, HOST_FAILED, 10000, -1);
    assert_int_equal(host_ready_at(&h, 2), 900000);
    /* Thirty a day at most. */
    int64_t now = 900000;
    unsigned probes = 0;
    for (; now < 86400000; now = host_ready_at(&h, 2), probes++)
        host_end(&h, now, HOST_FAILED, 10000, -1);
    assert_in_range(probes, 20, 30);
    host_end(&h, now, HOST_ANSWERED, 10, -1);
    host_end(&h, now, HOST_FAILED, 10, -1);
    assert_false(host_rests(&h, now + 1));
}

static void the_first_is_taken_first(void **state)
{
    struct due_heap h = {0};
    uint32_t seed = 1;
    for (int64_t id = 1; id <= 1000; id++) {
        seed = seed * 1103515245u + 12345u;
        assert_true(due_add(&h, (struct due){id, 1000000 + (seed >> 8) % 5000, 100}));
    }
    assert_true(h.load > 9.99 && h.load < 10.01);
    static const int64_t gone[] = {3, 500, 2000}, now[] = {7, 999};
    assert_int_equal(due_move(&h, gone, 3, 0), 2);
    assert_int_equal(due_move(&h, now, 2, 5), 2);
    assert_int_equal(h.count, 998);
    due_shift(&h, 100);
    uint32_t before = 0;
    for (size_t i = 0; h.count > 0; i++) {
        struct due due = due_pop(&h);
        assert_true(due.at >= before);
        assert_true(due.id != 3 && due.id != 500);
        assert_true(i > 1 || due.id == 7 || due.id == 999);
        before = due.at;
    }
    assert_true(h.load == 0);
    due_done(&h);
    /* What is asked for is not to be more than nine tenths of what a host bears. */
    struct host_pace pace = {0};
    assert_true(host_pressure(&pace, 7.2, 8) == 1);
    assert_true(host_pressure(&pace, 72, 8) == 10);
}

#define DAY  86400
#define NOW  1767225600 /* 2026-01-01T00:00:00Z */
#define T(x) "2025-12-" x "T00:00:00Z"

static void dates(void **state)
{
    static const struct {
        const char *name;
        struct claim_content before, now;
        struct claim_dates dates;
        bool changed;
        const char *lastmod;
    } rows[] = {
        {"as it was, whatever is claimed",
         {{1, 1}, {5, 5}, false, false},
         {{1, 1}, {5, 5}, false, false},
         {T("30"), T("30"), NOW - 100, T("01")},
         false,
         ""},
        {"a stamp on all pages moved",
         {{1, 1}, {5, 5}, true, true},
         {{2, 2}, {5, 5}, true, true},
         {T("30"), T("30"), 0, T("01")},
         false,
         ""},
        {"one page's date moved",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {5, 5}, false, false},
         {NULL, T("30"), 0, T("01")},
         true,
         T("30")},
        {"the claim comes first",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {T("20"), T("30"), NOW - 100, T("01")},
         true,
         T("20")},
        {"a claim that is not later is passed over",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {T("01"), T("30"), 0, T("01")},
         true,
         T("30")},
        {"and a page's date that fell: now",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {T("01"), "2025-11-30T00:00:00Z", 0, T("10")},
         true,
         "2026-01-01T00:00:00Z"},
        {"two pages that were saved in the same second",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, true, false},
         {NULL, T("30"), NOW - 7200, T("01")},
         true,
         T("30")},
        {"a stamp dates nothing; Last-Modified does",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, true, true},
         {NULL, T("31"), NOW - 7200, T("01")},
         true,
         "2025-12-31T22:00:00Z"},
        {"a claim ahead of the clock does not count",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {"2026-01-01T09:00:00Z", NULL, 0, T("01")},
         true,
         "2026-01-01T00:00:00Z"},
        {"never back",
         {{1, 1}, {5, 5}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {NULL, NULL, 0, "2026-01-01T06:00:00Z"},
         true,
         ""},
        {"a first read without a claim takes the pages' date",
         {{0, 0}, {0, 0}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {NULL, T("30"), NOW - 100000, NULL},
         false,
         T("30")},
        {"with one it stays",
         {{0, 0}, {0, 0}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {T("20"), T("30"), 0, T("20")},
         false,
         ""},
        {"then Last-Modified, and never now",
         {{0, 0}, {0, 0}, false, false},
         {{2, 2}, {6, 6}, true, true},
         {NULL, T("30"), NOW - 3 * DAY, NULL},
         false,
         "2025-12-29T00:00:00Z"},
        {"and else none",
         {{0, 0}, {0, 0}, false, false},
         {{2, 2}, {6, 6}, false, false},
         {NULL, NULL, 0, NULL},
         false,
         ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct claim_verdict v;
        claim_check(&rows[i].before, &rows[i].now, &rows[i].dates, NOW, &v);
        if (v.changed != rows[i].changed || strcmp(v.lastmod, rows[i].lastmod) != 0)
            fail_msg("%s: changed %d, \"%s\"", rows[i].name, v.changed, v.lastmod);
    }
    assert_true(claim_is_now("2025-12-31T23:59:30Z", NOW, "2026-01-01T00:15:20Z", NOW + 900));
    assert_false(claim_is_now("2026-01-01T00:00:00Z", NOW, "2026-01-01T00:00:00Z", NOW + 30));
    assert_false(claim_is_now(T("20"), NOW, "2026-01-01T00:15:20Z", NOW + 900));
    assert_false(claim_is_now("2025-12-31", NOW, "2026-01-01", NOW + 900));
}

/* A list may name another port of its host with each answer. */
static void hosts_that_nothing_is_polled_of_are_forgotten(void **state)
{
    static struct remote r;
    struct remote_host *kept[3];
    char loc[64];
    struct url url;
    for (unsigned round = 0; round < 20; round++)
        for (unsigned i = 0; i < 1000; i++) {
            bool first = round == 0 && i < 3;
            snprintf(loc, sizeof loc, "https://www.example.com:%u/a.xml", 1 + round * 1000 + i);
            assert_true(url_split(loc, strlen(loc), &url));
            run_sweep_hosts(&r);
            struct remote_host *host = run_host(&r, &url);
            assert_non_null(host);
            if (first)
                kept[i] = host;
            if (first && i == 0)
                run_enqueue(&r, host, 1, (struct due){1, 1, 900});
            host->pace.running = first && i == 1;
            if (round > 0 || i >= 2)
                kept[2]->has_list = true;
        }
    assert_in_range(r.host_count, 3, 64);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(loc, sizeof loc, "https://www.example.com:%u/a.xml", 1 + i);
        assert_true(url_split(loc, strlen(loc), &url));
        assert_ptr_equal(run_host(&r, &url), kept[i]);
    }
    run_part(kept[0], 1)->heap.count = 0;
    kept[1]->pace.running = 0;
    for (unsigned i = 0; i < 2; i++) { /* has_list is taken back once, and not set again */
        r.sweep_at = 0;
        run_sweep_hosts(&r);
    }
    assert_int_equal(r.host_count, 0);
    map_done(&r.host_map);
    free(r.hosts);
}

enum { GREEDY = 1, OTHER = GREEDY + 256, THIRD = 3 };

/* One that has more on a host than it bears makes its own intervals longer. */
static void a_host_is_shared_by_sites(void **state)
{
    static struct remote_plan plan = {.bounds = {.rate = 8}};
    static struct remote r = {.plan = &plan};
    struct url url;
    const char loc[] = "https://cdn.example/a.xml";
    assert_true(url_split(loc, strlen(loc), &url));
    struct remote_host *host = run_host(&r, &url);
    assert_non_null(host);
    assert_true(run_stretch(&r, host, OTHER) == 1);
    for (int64_t i = 0; i < 1440; i++) /* 72 polls a second */
        run_enqueue(&r, host, GREEDY, (struct due){i, 1, 20});
    assert_in_range((uint64_t)(run_stretch(&r, host, GREEDY) * 1000), 9999, 10001);
    run_enqueue(&r, host, OTHER, (struct due){5000, 1, 20});
    assert_in_range((uint64_t)(run_stretch(&r, host, GREEDY) * 1000), 10000, 10010);
    assert_true(run_stretch(&r, host, OTHER) == 1);
    for (int64_t i = 0; i < 1439; i++) /* as many: no site has more than the other */
        run_enqueue(&r, host, OTHER, (struct due){6000 + i, 1, 20});
    assert_in_range((uint64_t)(run_stretch(&r, host, OTHER) * 1000), 19999, 20001);
    assert_int_equal(host->parts.count, 2);
    const int64_t all[] = {5000};
    run_move_due(&r, all, 1, 0);
    assert_int_equal(run_part(host, OTHER)->heap.count, 1439);
    run_part(host, GREEDY)->heap.count = run_part(host, OTHER)->heap.count = 0;
    run_sweep_hosts(&r);
    assert_int_equal(r.host_count, 0);
    map_done(&r.host_map);
    free(r.hosts);
}

/* Of sites that wait the one that had least goes first, and who has it for long releases it. */
static void a_place_is_shared_by_sites(void **state)
{
    struct shares s = {0};
    int64_t now = 5000000;
    assert_true(shares_is_turn(&s, GREEDY, now));
    assert_int_equal(shares_hurry_after_s(&s, GREEDY, now), 0);
    assert_false(shares_must_release(&s, GREEDY, 3600000, now)); /* nobody waits */
    shares_wait(&s, OTHER, now);
    assert_true(shares_is_turn(&s, GREEDY, now)); /* they had as much: nothing */
    assert_false(shares_must_release(&s, GREEDY, 599000, now));
    assert_true(shares_must_release(&s, GREEDY, 600000, now));
    shares_charge(&s, GREEDY, 601000, 1000, now);
    assert_false(shares_is_turn(&s, GREEDY, now));
    assert_true(shares_is_turn(&s, GREEDY, now + 60000)); /* who waits says so again */
    shares_wait(&s, OTHER, now += 60000);
    assert_false(shares_is_turn(&s, GREEDY, now));
    assert_true(shares_is_turn(&s, OTHER, now));
    shares_wait(&s, GREEDY, now);
    assert_false(shares_must_release(&s, OTHER, 590000, now));
    assert_true(
        shares_must_release(&s, OTHER, 602000, now)); /* more than who waits, who paid 6 s back */
    shares_charge(&s, OTHER, 100000, 0, now);
    assert_true(shares_is_turn(&s, OTHER, now)); /* it had less still */
    shares_charge(&s, OTHER, 600000, 0, now);
    assert_false(shares_is_turn(&s, OTHER, now));
    shares_done(&s);
}

/* What is fetched out of its turn is a tenth of the time, or 22 GB a day. */
static void who_asks_gets_a_share(void **state)
{
    struct shares s = {0};
    int64_t now = 1;
    const uint64_t five_gb = 5ull << 30; /* 2,048 s of debt */
    shares_charge(&s, GREEDY, 10000, five_gb, now);
    assert_int_equal(shares_hurry_after_s(&s, GREEDY, now), 14481);
    assert_int_equal(shares_hurry_after_s(&s, OTHER, now), 0);
    assert_int_equal(shares_hurry_after_s(&s, GREEDY, now + 14480000), 0);
    for (unsigned i = 0; i < 100; i++) /* two hours at most */
        shares_charge(&s, GREEDY, 3600000, 0, now);
    assert_int_equal(shares_hurry_after_s(&s, GREEDY, now), 66001);
    /* Of whom nothing is to be known any more makes room. */
    for (int64_t site = THIRD; site < 1000; site++)
        shares_charge(&s, site, 1000, 0, now += 10001);
    assert_in_range(s.of.count, 1, 4);
    shares_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals),
        cmocka_unit_test(a_page_where_a_sitemap_was),
        cmocka_unit_test(looks_rest),
        cmocka_unit_test(a_slow_site_rests_by_itself),
        cmocka_unit_test(a_host_is_asked_at_its_pace),
        cmocka_unit_test(a_host_rests_as_it_asks),
        cmocka_unit_test(a_dead_host_is_probed),
        cmocka_unit_test(the_first_is_taken_first),
        cmocka_unit_test(hosts_that_nothing_is_polled_of_are_forgotten),
        cmocka_unit_test(dates),
        cmocka_unit_test(a_host_is_shared_by_sites),
        cmocka_unit_test(a_place_is_shared_by_sites),
        cmocka_unit_test(who_asks_gets_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
