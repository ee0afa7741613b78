/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The ledger and the sums, with a clock of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "server/crawlers/crawlers.h"

#define T0     1700000000 /* 2023-11-14T22:13:20Z */
#define GOOGLE "Googlebot/2.1"

static struct crawlers *make_with(const struct crawler_rule *rules, size_t count)
{
    const char *which;
    char why[512];
    struct crawler_names *names = crawler_names_new(rules, count, &which, why, sizeof why);
    assert_non_null(names);
    struct crawlers *c = crawlers_new(names, T0);
    assert_non_null(c);
    crawlers_catalogue_is(c, "an-epoch");
    return c;
}

static int setup(void **state)
{
    *state = make_with(NULL, 0);
    return 0;
}

static int teardown(void **state)
{
    crawlers_free(*state);
    return 0;
}

/* Page 1 of index 7 at version `v`, which is its revision and its stamp. */
static struct crawler_fetch fetch_of(unsigned v, unsigned status)
{
    return (struct crawler_fetch){.user_agent = GOOGLE,
                                  .address = "192.0.2.1",
                                  .status = status,
                                  .whole = true,
                                  .bytes = 100,
                                  .site_id = 3,
                                  .index_id = 7,
                                  .page = 1,
                                  .revision = v,
                                  .stamp = 1000 + v,
                                  .changed_at = T0 + v};
}

static void page_is(struct crawlers *c, unsigned v)
{
    crawlers_page_is(c, 3, 7, 1, v, 1000 + v, T0 + v);
}

static void fetch(struct crawlers *c, unsigned v, unsigned status, int64_t now)
{
    const struct crawler_fetch f = fetch_of(v, status);
    crawlers_fetched(c, &f, T0 + now);
}

static bool row_of(struct crawlers *c, const char *name, struct crawler_row *out)
{
    struct crawler_row rows[CRAWLERS_MAX];
    int64_t changed_at;
    size_t count = crawlers_page(c, 7, 1, &changed_at, rows);
    for (size_t i = 0; i < count; i++)
        if (strcmp(crawlers_name(c, rows[i].crawler), name) == 0) {
            *out = rows[i];
            return true;
        }
    return false;
}

static void check_row(struct crawlers *c, unsigned held, int64_t stale_since)
{
    struct crawler_row row;
    assert_true(row_of(c, "googlebot", &row));
    assert_int_equal(row.held, held != 0);
    if (held != 0)
        assert_int_equal(row.held_changed_at - T0, held);
    assert_int_equal(row.stale_since == 0 ? 0 : row.stale_since - T0, stale_since);
}

static struct crawler_counts counts_of(struct crawlers *c, const char *name)
{
    struct crawlers_totals totals;
    crawlers_totals(c, &totals);
    return totals.of[crawlers_find(c, name)];
}

static void test_a_change_is_lacked_until_it_is_fetched(void **state)
{
    struct crawlers *c = *state;
    page_is(c, 1);
    fetch(c, 1, 200, 10);
    check_row(c, 1, 0);
    fetch(c, 1, 304, 20);
    check_row(c, 1, 0);
    page_is(c, 100);
    check_row(c, 1, 100);
    page_is(c, 200);
    check_row(c, 1, 100); /* since the first change that it has not seen */
    struct crawler_counts counts = counts_of(c, "googlebot");
    assert_int_equal(counts.stale_pages, 1);
    assert_int_equal(counts.oldest_stale, T0 + 100);
    fetch(c, 200, 200, 500);
    check_row(c, 200, 0);
    counts = counts_of(c, "googlebot");
    assert_int_equal(counts.stale_pages, 0);
    assert_int_equal(counts.ok, 2);
    assert_int_equal(counts.not_modified, 1);
    assert_int_equal(counts.last_fetch_at, T0 + 500);
    assert_int_equal(histogram_count(&counts.lag), 1);
    assert_int_equal(counts.lag.sum, 400);
}

static void test_a_304_holds_what_it_stands_for(void **state)
{
    struct crawlers *c = *state;
    page_is(c, 1);
    fetch(c, 1, 200, 10);
    page_is(c, 100);
    /* Undone: other stamp, same tags. */
    page_is(c, 150);
    fetch(c, 150, 304, 200);
    check_row(c, 150, 0);
}

/* The version that it was sent was replaced while it was on its way. */
static void test_an_old_snapshot_that_ends_late_stays_stale(void **state)
{
    struct crawlers *c = *state;
    page_is(c, 1);
    page_is(c, 100);
    fetch(c, 1, 200, 120);
    check_row(c, 1, 100);
    fetch(c, 1, 200, 130);
    check_row(c, 1, 100);
    struct crawler_counts counts = counts_of(c, "googlebot");
    assert_int_equal(histogram_count(&counts.lag), 0);
    /* Also where it held an older one still. */
    page_is(c, 200);
    fetch(c, 100, 200, 250);
    check_row(c, 100, 100);
    fetch(c, 200, 200, 300);
    check_row(c, 200, 0);
}

/* Built when it was asked for, the page was newer than what was reported. */
static void test_a_reader_may_be_ahead(void **state)
{
    struct crawlers *c = *state;
    page_is(c, 1);
    fetch(c, 100, 200, 101);
    page_is(c, 100);
    check_row(c, 100, 0);
    /* One that had been stale is now current. */
    page_is(c, 200);
    check_row(c, 100, 200);
    fetch(c, 300, 200, 301);
    page_is(c, 300);
    check_row(c, 300, 0);
}

static void test_what_is_not_whole_moves_nothing(void **state)
{
    struct crawlers *c = *state;
    struct crawler_fetch broken = fetch_of(100, 200);
    page_is(c, 1);
    broken.whole = false; /* HEAD, or broken off */
    crawlers_fetched(c, &broken, T0 + 5);
    check_row(c, 0, 0);
    fetch(c, 1, 200, 10);
    page_is(c, 100);
    crawlers_fetched(c, &broken, T0 + 110);
    check_row(c, 1, 100);
    fetch(c, 100, 500, 120);
    check_row(c, 1, 100);
    struct crawler_row row;
    assert_true(row_of(c, "googlebot", &row));
    assert_int_equal(row.status, 500);
    assert_int_equal(row.fetched_at, T0 + 120);
    assert_int_equal(row.ok, 1);
    assert_int_equal(row.other, 3);
    assert_int_equal(counts_of(c, "googlebot").other, 3);
}

static void test_clients_without_a_name_are_counted_only(void **state)
{
    struct crawlers *c = *state;
    struct crawler_fetch f = fetch_of(1, 200);
    struct crawler_row row;
    page_is(c, 1);
    f.user_agent = "curl/8";
    crawlers_fetched(c, &f, T0 + 5);
    f.user_agent = NULL;
    crawlers_fetched(c, &f, T0 + 5);
    assert_false(row_of(c, "other", &row));
    assert_int_equal(counts_of(c, "other").ok, 2);
    assert_int_equal(crawlers_find(c, "nobody"), 0);
}

static void test_a_page_that_goes_and_another_catalogue(void **state)
{
    struct crawlers *c = *state;
    struct crawler_row row;
    struct crawlers_totals totals;
    page_is(c, 1);
    fetch(c, 1, 200, 10);
    crawlers_page_removed(c, 7, 1);
    crawlers_page_removed(c, 7, 2);
    assert_false(row_of(c, "googlebot", &row));
    fetch(c, 1, 200, 11); /* it was on its way */
    crawlers_totals(c, &totals);
    assert_int_equal(totals.rows, 0);
    assert_int_equal(totals.untracked, 1);
    page_is(c, 2);
    fetch(c, 2, 200, 12);
    crawlers_catalogue_is(c, "an-epoch");
    check_row(c, 2, 0);
    crawlers_catalogue_is(c, "another-epoch");
    assert_false(row_of(c, "googlebot", &row));
    assert_int_equal(counts_of(c, "googlebot").ok, 3);
}

/* More pages and rows than there is room for: one site leaves a quarter to others, which find it;
 * all of it comes back when the pages go. */
static void test_the_bound(void **state)
{
    struct crawlers *c = *state;
    struct crawlers_totals totals;
    static const char *const agents[] = {GOOGLE, "bingbot/2.0", "YandexBot/3.0"};
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t page = 1; page <= 40000; page++)
            crawlers_page_is(c, 3, 7, page, 1, 1, T0);
        for (uint32_t page = 1; page <= 20000; page++)
            for (int i = 0; i < 2; i++) {
                struct crawler_fetch f = fetch_of(1, 200);
                f.user_agent = agents[i];
                f.page = page;
                f.stamp = 1;
                crawlers_fetched(c, &f, T0);
            }
        crawlers_totals(c, &totals);
        assert_int_equal(totals.rows, 24576); /* of 32,768 */
        assert_int_equal(totals.untracked, (uint64_t)(turn + 1) * (40000 - 24576));
        for (uint32_t page = 1; page <= 500; page++) {
            struct crawler_fetch f = fetch_of(1, 200);
            f.index_id = 8;
            f.page = page;
            f.stamp = 1;
            crawlers_page_is(c, 4, 8, page, 1, 1, T0);
            crawlers_fetched(c, &f, T0);
        }
        crawlers_totals(c, &totals);
        assert_int_equal(totals.rows, 24576 + 500);
        for (uint32_t page = 1; page <= 40000; page++) {
            crawlers_page_removed(c, 7, page);
            crawlers_page_removed(c, 8, page);
        }
        crawlers_totals(c, &totals);
        assert_int_equal(totals.rows, 0);
    }
}

/* A site of many lists leaves as much to another that comes later as one of a single list. */
static void test_sites_share_by_site_and_not_by_list(void **state)
{
    struct crawlers *c = *state;
    struct crawlers_totals totals;
    struct crawler_fetch f = fetch_of(1, 200);
    f.stamp = 1;
    for (f.index_id = 100; f.index_id < 400; f.index_id++)
        for (f.page = 1; f.page <= 200; f.page++) {
            crawlers_page_is(c, 3, f.index_id, f.page, 1, 1, T0);
            crawlers_fetched(c, &f, T0);
        }
    crawlers_totals(c, &totals);
    assert_int_equal(totals.rows, 24576); /* of 32,768 */
    assert_int_equal(totals.untracked, 300 * 200 - 24576);
    f.site_id = 4;
    f.index_id = 400;
    for (f.page = 1; f.page <= 6000; f.page++) {
        crawlers_page_is(c, 4, 400, f.page, 1, 1, T0);
        crawlers_fetched(c, &f, T0);
    }
    crawlers_totals(c, &totals);
    assert_int_equal(totals.rows, 24576 + 6000);
    /* Reported again, it stays where it is counted. */
    crawlers_page_is(c, 5, 400, 1, 2, 2, T0);
    for (uint32_t page = 1; page <= 200; page++)
        for (int64_t list = 100; list <= 400; list++)
            crawlers_page_removed(c, list, page);
    for (uint32_t page = 201; page <= 6000; page++)
        crawlers_page_removed(c, 400, page);
    crawlers_totals(c, &totals);
    assert_int_equal(totals.rows, 0);
}

static void find_day(void *context, const struct crawler_day *day)
{
    struct crawler_day *wanted = context;
    if (day->crawler == wanted->crawler && day->day == wanted->day &&
        day->site_id == wanted->site_id)
        *wanted = *day;
}

static struct crawler_day day_of(struct crawlers *c, const char *name, int64_t site, int64_t now)
{
    struct crawler_day day = {.crawler = (uint8_t)crawlers_find(c, name),
                              .day = (int32_t)((T0 + now) / 86400),
                              .site_id = site};
    crawlers_each_day(c, find_day, &day);
    return day;
}

static void test_the_sums_of_days(void **state)
{
    struct crawlers *c = *state;
    const int64_t day = 86400;
    page_is(c, 1);
    fetch(c, 1, 200, 0);
    fetch(c, 1, 304, 10);
    fetch(c, 1, 404, 20);
    page_is(c, 50);
    fetch(c, 50, 200, day);
    struct crawler_day sum = day_of(c, "googlebot", 3, 0);
    assert_int_equal(sum.ok, 1);
    assert_int_equal(sum.not_modified, 1);
    assert_int_equal(sum.other, 1);
    assert_int_equal(sum.bytes, 300);
    sum = day_of(c, "googlebot", 3, day);
    assert_int_equal(sum.ok, 1);
    assert_int_equal(crawler_lags_count(&sum.lags), 1);
    assert_int_equal(sum.lags.max_s, day - 50);
    assert_int_equal(crawler_lags_percentile(&sum.lags, 50), day - 50);
    assert_int_equal(day_of(c, "googlebot", 4, 0).ok, 0);
    /* Ninety days later the first is gone. */
    fetch(c, 50, 304, (DAYS_KEPT - 1) * day);
    assert_int_equal(day_of(c, "googlebot", 3, 0).ok, 1);
    fetch(c, 50, 304, DAYS_KEPT * day);
    assert_int_equal(day_of(c, "googlebot", 3, 0).ok, 0);
    assert_int_equal(day_of(c, "googlebot", 3, day).ok, 1);
    assert_int_equal(day_of(c, "googlebot", 3, DAYS_KEPT * day).not_modified, 1);
}

enum { SHARING_SITES = 12, SHARING_CRAWLERS = 20 };
struct shares {
    unsigned all, of[SHARING_SITES + 3], of_today[SHARING_SITES + 3];
};

static void count_share(void *context, const struct crawler_day *day)
{
    struct shares *shares = context;
    shares->all++;
    shares->of[day->site_id]++;
    shares->of_today[day->site_id] += day->day == T0 / 86400;
}

static void put_days(struct crawlers *c, int64_t site, size_t crawlers)
{
    for (int32_t day = T0 / 86400 - DAYS_KEPT + 1; day <= T0 / 86400; day++)
        for (size_t i = 1; i <= crawlers; i++) {
            const struct crawler_day sum = {.site_id = site, .day = day, .ok = 1};
            crawlers_restore_day(c, crawlers_name(c, i), &sum, T0);
        }
}

/* The one with the most gives its oldest days: each of the large ones has as many, the newest ones,
 * and who has fewer loses none. */
static void test_sites_share_the_sums_of_days(void **state)
{
    const int64_t small = SHARING_SITES + 1, new = SHARING_SITES + 2;
    struct crawlers *c = *state;
    struct crawlers_totals totals;
    struct shares shares = {0};
    assert_true(crawlers_count(c) > SHARING_CRAWLERS);
    put_days(c, small, 2);
    for (int64_t site = 1; site <= SHARING_SITES; site++) /* of each 1,800 */
        put_days(c, site, SHARING_CRAWLERS);
    struct crawler_fetch f = fetch_of(1, 200);
    f.index_id = 0;
    f.site_id = new;
    crawlers_fetched(c, &f, T0);
    put_days(c, 1, SHARING_CRAWLERS); /* it comes again */
    crawlers_each_day(c, count_share, &shares);
    assert_int_equal(shares.all, CRAWLERS_MAX_DAY_ROWS);
    assert_int_equal(shares.of[small], 180);
    assert_int_equal(shares.of[new], 1);
    for (int site = 1; site <= SHARING_SITES; site++) {
        assert_in_range(shares.of[site], 1350, 1351); /* 16,203 for twelve */
        assert_int_equal(shares.of_today[site], SHARING_CRAWLERS);
    }
    crawlers_totals(c, &totals);
    assert_int_equal(totals.untracked, 0);
    /* All is free again a day after the last that is kept. */
    crawlers_fetched(c, &f, T0 + DAYS_KEPT * 86400);
    memset(&shares, 0, sizeof shares);
    crawlers_each_day(c, count_share, &shares);
    assert_int_equal(shares.all, 1);
}

static void test_todays_sums_stay(void **state)
{
    struct crawlers *c = *state;
    struct crawlers_totals totals;
    struct crawler_day sum = {.day = T0 / 86400, .ok = 1};
    for (sum.site_id = 1; sum.site_id <= 820; sum.site_id++) /* 16,400 */
        for (size_t i = 1; i <= SHARING_CRAWLERS; i++)
            crawlers_restore_day(c, crawlers_name(c, i), &sum, T0);
    struct crawler_fetch f = fetch_of(1, 200);
    f.index_id = 0;
    f.site_id = 900;
    crawlers_fetched(c, &f, T0);
    crawlers_totals(c, &totals);
    assert_int_equal(totals.untracked, 1);
    for (int64_t site = 1; site <= 819; site++)
        assert_int_equal(day_of(c, crawlers_name(c, SHARING_CRAWLERS), site, 0).ok, 1);
    /* Tomorrow these are yesterday's. */
    crawlers_fetched(c, &f, T0 + 86400);
    assert_int_equal(day_of(c, "googlebot", 900, 86400).ok, 1);
}

static void test_percentiles_of_lags(void **state)
{
    struct crawlers *c = *state;
    struct crawler_day sum;
    page_is(c, 1);
    fetch(c, 1, 200, 1);
    /* Lags of 1 to 100 s. */
    for (unsigned i = 1; i <= 100; i++) {
        page_is(c, 200 * i);
        fetch(c, 200 * i, 200, 200 * (int64_t)i + i);
    }
    memset(&sum, 0, sizeof sum);
    for (int64_t at = 0; at <= 86400; at += 86400) {
        struct crawler_day day = day_of(c, "googlebot", 3, at);
        crawler_lags_add(&sum.lags, &day.lags);
    }
    assert_int_equal(crawler_lags_count(&sum.lags), 100);
    assert_int_equal(sum.lags.max_s, 100);
    assert_int_equal(crawler_lags_percentile(&sum.lags, 50), 63);   /* of 48 to 63 */
    assert_int_equal(crawler_lags_percentile(&sum.lags, 90), 95);   /* of 64 to 95 */
    assert_int_equal(crawler_lags_percentile(&sum.lags, 100), 100); /* and not 127 */
}

/* ---- names --------------------------------------------------------------------------------- */

static void test_impostors_move_nothing(void **state)
{
    char path[] = "/tmp/sitemapd-ranges-XXXXXX";
    int fd = mkstemp(path);
    const char *files[] = {path};
    const struct crawler_rule rule = {
        .name = "googlebot", .range_file_count = 1, .range_files = files};
    struct crawler_fetch f = fetch_of(1, 200);
    struct crawler_row row;
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs("192.0.2.0/24\n", file);
    fclose(file);
    struct crawlers *c = make_with(&rule, 1);
    remove(path);
    assert_true(crawlers_is_verified(c, crawlers_find(c, "googlebot")));
    assert_false(crawlers_is_verified(c, crawlers_find(c, "bingbot")));
    page_is(c, 1);
    f.address = "198.51.100.1";
    crawlers_fetched(c, &f, T0);
    f.address = NULL;
    crawlers_fetched(c, &f, T0);
    assert_false(row_of(c, "googlebot", &row));
    struct crawler_counts counts = counts_of(c, "googlebot");
    assert_int_equal(counts.impostors, 2);
    assert_int_equal(counts.ok, 0);
    assert_int_equal(counts.last_fetch_at, 0);
    assert_int_equal(day_of(c, "googlebot", 3, 0).impostors, 2);
    fetch(c, 1, 200, 5);
    check_row(c, 1, 0);
    crawlers_free(c);
}

static void test_other_names_keep_what_is_counted(void **state)
{
    struct crawlers *c = *state;
    static const char *const match[] = {"ourbot"};
    char text[CRAWLERS_MAX][8], why[512];
    struct crawler_rule rules[40];
    const char *which;
    page_is(c, 1);
    fetch(c, 1, 200, 10);
    rules[0] = (struct crawler_rule){.name = "ours", .match_count = 1, .match = match};
    struct crawler_names *names = crawler_names_new(rules, 1, &which, why, sizeof why);
    assert_true(crawlers_use(c, names));
    check_row(c, 1, 0);
    fetch(c, 1, 304, 20);
    assert_int_equal(counts_of(c, "googlebot").ok + counts_of(c, "googlebot").not_modified, 2);
    struct crawler_fetch f = fetch_of(1, 200);
    f.user_agent = "OurBot/1";
    crawlers_fetched(c, &f, T0 + 30);
    struct crawler_row row;
    assert_true(row_of(c, "ours", &row));
    /* Names without end are refused, and all is as before. */
    bool refused = false;
    for (unsigned turn = 0; turn < 3 && !refused; turn++) {
        for (size_t i = 0; i < 40; i++) {
            snprintf(text[i], sizeof text[i], "n%u-%zu", turn, i);
            rules[i] = (struct crawler_rule){.name = text[i], .match_count = 1, .match = match};
        }
        names = crawler_names_new(rules, 40, &which, why, sizeof why);
        assert_non_null(names);
        refused = !crawlers_use(c, names);
        if (refused)
            crawler_names_free(names);
    }
    assert_true(refused);
    assert_true(row_of(c, "ours", &row));
    check_row(c, 1, 0);
}

/* ---- a day, beside a model ------------------------------------------------------------------ */

enum { DAY_PAGES = 30, DAY_CRAWLERS = 6, DAY_STEPS = 20000 };
static const char *const day_agents[DAY_CRAWLERS] = {"Googlebot/2.1", "bingbot/2.0", "YandexBot/3",
                                                     "Applebot/0.1",  "GPTBot/1",    "SeznamBot/4"};

/* What it says by itself: a version is a number that grows, 0 means unknown. */
struct day_model {
    unsigned version[DAY_PAGES];
    int64_t changed_at[DAY_PAGES];
    unsigned held[DAY_CRAWLERS][DAY_PAGES];
    int64_t stale_since[DAY_CRAWLERS][DAY_PAGES];
    unsigned ok[DAY_CRAWLERS], not_modified[DAY_CRAWLERS], other[DAY_CRAWLERS];
    unsigned lags[DAY_CRAWLERS], longest[DAY_CRAWLERS];
};

static unsigned draw(uint64_t *seed, unsigned below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*seed >> 33) % below;
}

static void day_changes(struct day_model *m, struct crawlers *c, unsigned page, int64_t now)
{
    m->version[page]++;
    m->changed_at[page] = now;
    for (unsigned i = 0; i < DAY_CRAWLERS; i++)
        if (m->held[i][page] != 0 && m->stale_since[i][page] == 0)
            m->stale_since[i][page] = now;
    crawlers_page_is(c, 3, 7, page + 1, m->version[page], m->version[page] * 100u + page, now);
}

/* `late`: the version before the present one, whose last byte leaves only now. */
static void day_fetches(struct day_model *m, struct crawlers *c, unsigned crawler, unsigned page,
                        unsigned how, int64_t now)
{
    bool late = how == 3 && m->version[page] > 1, counts = how < 4;
    unsigned version = m->version[page] - late, status = how == 5 ? 503 : how == 1 ? 304 : 200;
    const struct crawler_fetch f = {.user_agent = day_agents[crawler],
                                    .status = status,
                                    .whole = how != 4,
                                    .bytes = 1,
                                    .site_id = 3,
                                    .index_id = 7,
                                    .page = page + 1,
                                    .revision = version,
                                    .stamp = version * 100u + page,
                                    .changed_at = m->changed_at[page] - late};
    int64_t *since = &m->stale_since[crawler][page];

    crawlers_fetched(c, &f, now);
    m->ok[crawler] += counts && status == 200;
    m->not_modified[crawler] += counts && status == 304;
    m->other[crawler] += !counts;
    if (!counts)
        return;
    m->held[crawler][page] = version;
    if (late && *since == 0)
        *since = m->changed_at[page];
    if (late || *since == 0)
        return;
    m->lags[crawler]++;
    if (now - *since > m->longest[crawler])
        m->longest[crawler] = (unsigned)(now - *since);
    *since = 0;
}

static void check_day(const struct crawler_day *day, const struct day_model *m, unsigned crawler)
{
    assert_int_equal(day->ok, m->ok[crawler]);
    assert_int_equal(day->not_modified, m->not_modified[crawler]);
    assert_int_equal(day->other, m->other[crawler]);
    assert_int_equal(crawler_lags_count(&day->lags), m->lags[crawler]);
    assert_int_equal(day->lags.max_s, m->longest[crawler]);
}

struct day_seen {
    struct crawlers *c;
    const struct day_model *m;
    unsigned count;
};

static void see_day(void *context, const struct crawler_day *day)
{
    struct day_seen *seen = context;

    for (unsigned i = 0; i < DAY_CRAWLERS; i++) {
        char name[CRAWLER_NAME_MAX + 1];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(day_agents[i], "/"), day_agents[i]);
        if (strcasecmp(name, crawlers_name(seen->c, day->crawler)) == 0) {
            check_day(day, seen->m, i);
            seen->count++;
        }
    }
}

static void check_pages(struct crawlers *c, const struct day_model *m)
{
    for (unsigned page = 0; page < DAY_PAGES; page++) {
        struct crawler_row rows[CRAWLERS_MAX];
        int64_t changed_at;
        size_t count = crawlers_page(c, 7, page + 1, &changed_at, rows);

        assert_int_equal(changed_at, m->changed_at[page]);
        for (unsigned i = 0; i < DAY_CRAWLERS; i++) {
            char name[CRAWLER_NAME_MAX + 1];
            size_t at = 0;
            snprintf(name, sizeof name, "%.*s", (int)strcspn(day_agents[i], "/"), day_agents[i]);
            while (at < count && strcasecmp(crawlers_name(c, rows[at].crawler), name) != 0)
                at++;
            assert_int_equal(at < count && rows[at].held, m->held[i][page] != 0);
            if (m->held[i][page] != 0)
                assert_int_equal(rows[at].stale_since, m->stale_since[i][page]);
        }
    }
}

/* Pages change, crawlers come, some late, some broken off, some with errors, from a midnight to the
 * next: the ledger is what a simple model says, all the time. */
static void test_a_day_of_crawlers(void **state)
{
    struct crawlers *c = *state;
    struct day_model m = {.version = {0}};
    struct day_seen seen = {.c = c, .m = &m};
    int64_t now = T0 - T0 % 86400;
    uint64_t seed = 1;

    for (unsigned page = 0; page < DAY_PAGES; page++)
        day_changes(&m, c, page, now);
    for (unsigned step = 0; step < DAY_STEPS; step++) {
        now += draw(&seed, 8);
        if (draw(&seed, 10) == 0)
            day_changes(&m, c, draw(&seed, DAY_PAGES), now);
        else
            day_fetches(&m, c, draw(&seed, DAY_CRAWLERS), draw(&seed, DAY_PAGES), draw(&seed, 6),
                        now);
        if (step % 500 == 0)
            check_pages(c, &m);
    }
    assert_true(now < T0 - T0 % 86400 + 86400);
    check_pages(c, &m);
    crawlers_each_day(c, see_day, &seen);
    assert_int_equal(seen.count, DAY_CRAWLERS);
}

/* ---- other nodes ---------------------------------------------------------------------------- */

/* Page 1 of index 7 as another node reports it: version `v`, 0: none. */
static void told(struct crawlers *c, unsigned v, int64_t fetched_at, int64_t stale_since)
{
    const struct crawler_held held = {
        .row = {.held = v != 0,
                .status = v != 0 ? 200 : 503,
                .fetched_at = T0 + fetched_at,
                .held_changed_at = v != 0 ? T0 + v : 0,
                .stale_since = stale_since != 0 ? T0 + stale_since : 0},
        .index_id = 7,
        .page = 1,
        .held_stamp = v != 0 ? 1000 + v : 0,
    };
    crawlers_restore_page(c, "googlebot", &held);
}

static size_t news(struct crawlers *c)
{
    struct crawler_held out[8];
    size_t at = 0;
    return crawlers_collect_pages(c, &at, out, 8);
}

static void test_what_is_newer_is_learned(void **state)
{
    struct crawlers *c = *state;
    struct crawler_row row;
    page_is(c, 100);
    told(c, 100, 150, 0); /* who never came here holds the present version */
    check_row(c, 100, 0);
    assert_int_equal(news(c), 0); /* and the sender need not hear of it */
    page_is(c, 200);
    check_row(c, 100, 200);
    assert_int_equal(news(c), 1); /* which that node, if it is gone, will not send */
    told(c, 100, 150, 0);
    check_row(c, 100, 200);
    assert_int_equal(news(c), 0);
    told(c, 100, 150, 180); /* another node saw an earlier change */
    check_row(c, 100, 180);
    fetch(c, 200, 200, 250);
    check_row(c, 200, 0);
    assert_int_equal(news(c), 1);
    told(c, 100, 300, 180); /* a node that lagged sent the old one */
    check_row(c, 200, 0);
    assert_true(row_of(c, "googlebot", &row));
    assert_int_equal(row.fetched_at, T0 + 300);
    told(c, 0, 400, 0); /* a visit that brought nothing */
    check_row(c, 200, 0);
    assert_true(row_of(c, "googlebot", &row));
    assert_int_equal(row.status, 503);
    assert_int_equal(row.ok, 1); /* its own */
    told(c, 300, 350, 0);        /* before this node's publisher has seen the change */
    page_is(c, 300);
    check_row(c, 300, 0);
    assert_int_equal(news(c), 0);
    assert_int_equal(counts_of(c, "googlebot").stale_pages, 0);
    assert_int_equal(counts_of(c, "googlebot").ok, 1);
}

static void test_two_versions_of_one_second(void **state)
{
    struct crawlers *c = *state;
    const struct crawler_held second = {
        .row = {.held = true, .status = 200, .fetched_at = T0 + 100, .held_changed_at = T0 + 100},
        .index_id = 7,
        .page = 1,
        .held_stamp = 7777,
    };
    page_is(c, 100);
    fetch(c, 100, 200, 100);
    crawlers_restore_page(c, "googlebot",
                          &second); /* not served here yet: it may be the earlier one */
    check_row(c, 100, 0);
    crawlers_page_is(c, 3, 7, 1, 101, 7777, T0 + 100);
    check_row(c, 100, 100);
    crawlers_restore_page(c, "googlebot", &second);
    check_row(c, 100, 0);
    told(c, 100, 100, 100); /* a node that has not heard of it */
    check_row(c, 100, 0);
}

static struct crawler_day reported_day(uint32_t ok, uint32_t not_modified)
{
    struct crawler_day day = {.day = (int32_t)(T0 / 86400),
                              .site_id = 3,
                              .ok = ok,
                              .not_modified = not_modified,
                              .bytes = 100 * ok,
                              .last_fetch_at = T0 + 60};
    day.lags.cells[3] = ok;
    day.lags.max_s = 5;
    return day;
}

static void add_up(void *context, const struct crawler_day *day)
{
    struct crawler_day *to = context;
    to->ok += day->ok;
    to->not_modified += day->not_modified;
    to->bytes += day->bytes;
    crawler_lags_add(&to->lags, &day->lags);
}

static void check_days(struct crawlers *c, uint32_t ok, uint32_t not_modified, uint64_t lags)
{
    struct crawler_day sum = {0};
    crawlers_each_day(c, add_up, &sum);
    assert_int_equal(sum.ok, ok);
    assert_int_equal(sum.not_modified, not_modified);
    assert_int_equal(sum.bytes, 100 * (ok + not_modified));
    assert_int_equal(crawler_lags_count(&sum.lags), lags);
}

static void learn_days(struct crawlers *c, int64_t times, size_t count, const uint32_t ok[])
{
    assert_true(crawlers_others_begin(c, times));
    for (size_t i = 0; i < count; i++) {
        const struct crawler_day day = reported_day(ok[i], 0);
        crawlers_others_day(c, "googlebot", &day, T0);
        crawlers_others_day(c, "nobody-here", &day, T0);
    }
    crawlers_others_end(c, times);
}

static void test_days_of_all_nodes_are_summed(void **state)
{
    struct crawlers *c = *state;
    page_is(c, 1);
    fetch(c, 1, 200, 10);
    fetch(c, 1, 304, 20);
    learn_days(c, 1, 2, (const uint32_t[]){5, 7}); /* of two nodes */
    check_days(c, 13, 1, 12);
    assert_false(crawlers_others_begin(c, 1)); /* known */
    learn_days(c, 2, 2, (const uint32_t[]){6, 7});
    check_days(c, 14, 1, 13); /* in the place of what was reported before */
    assert_true(crawlers_others_begin(c, 3));
    crawlers_others_end(c, 0); /* it could not be read */
    check_days(c, 14, 1, 13);
    assert_false(crawlers_others_begin(c, 2));
    /* What it told itself, and no longer knows: once. */
    struct crawler_day own = reported_day(9, 2);
    own.bytes = 1100;
    for (int i = 0; i < 2; i++)
        crawlers_restore_day(c, "googlebot", &own, T0);
    check_days(c, 22, 2, 22);
    own = reported_day(3, 0);
    crawlers_restore_day(c, "googlebot", &own, T0); /* before that */
    check_days(c, 22, 2, 22);
    fetch(c, 1, 304, 30);
    check_days(c, 22, 3, 22);
    crawlers_catalogue_is(c, "another-epoch");
    check_days(c, 0, 0, 0);
    learn_days(c, 2, 1, (const uint32_t[]){4});
    check_days(c, 4, 0, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(test_a_change_is_lacked_until_it_is_fetched),
        TEST(test_a_304_holds_what_it_stands_for),
        TEST(test_an_old_snapshot_that_ends_late_stays_stale),
        TEST(test_a_reader_may_be_ahead),
        TEST(test_what_is_not_whole_moves_nothing),
        TEST(test_clients_without_a_name_are_counted_only),
        TEST(test_a_page_that_goes_and_another_catalogue),
        TEST(test_the_bound),
        TEST(test_sites_share_by_site_and_not_by_list),
        TEST(test_the_sums_of_days),
        TEST(test_sites_share_the_sums_of_days),
        TEST(test_todays_sums_stay),
        TEST(test_percentiles_of_lags),
        cmocka_unit_test(test_impostors_move_nothing),
        TEST(test_a_day_of_crawlers),
        TEST(test_other_names_keep_what_is_counted),
        TEST(test_what_is_newer_is_learned),
        TEST(test_two_versions_of_one_second),
        TEST(test_days_of_all_nodes_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
