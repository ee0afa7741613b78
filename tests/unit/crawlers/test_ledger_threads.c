/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Readers beside a publisher: for TSan, and that no row is lost or left stale. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/crawlers/crawlers.h"

#define READERS  8
#define PAGES    50u
#define VERSIONS 200u
#define T0       1700000000

static struct crawlers *c;
static atomic_uint version;
static atomic_bool ended;
static const char *const agents[READERS] = {"Googlebot/2.1", "bingbot/2.0", "YandexBot/3.0",
                                            "CCBot/2.0",     "GPTBot/1.0",  "Yeti/1.1",
                                            "Googlebot/2.1", "curl/8"};

static void fetch(const char *agent, uint32_t page, unsigned v)
{
    const struct crawler_fetch f = {.user_agent = agent,
                                    .address = "192.0.2.1",
                                    .status = 200,
                                    .whole = true,
                                    .site_id = 1,
                                    .index_id = 5,
                                    .page = page,
                                    .revision = v,
                                    .stamp = v,
                                    .changed_at = T0 + v};
    crawlers_fetched(c, &f, T0 + v);
}

static void *read_pages(void *agent)
{
    while (!atomic_load(&ended))
        for (uint32_t page = 1; page <= PAGES; page++)
            fetch(agent, page, atomic_load(&version));
    return NULL;
}

static void *look(void *context)
{
    struct crawler_row rows[CRAWLERS_MAX];
    struct crawlers_totals totals;
    int64_t changed_at;
    while (!atomic_load(&ended)) {
        crawlers_totals(c, &totals);
        crawlers_page(c, 5, 1, &changed_at, rows);
    }
    return context;
}

static struct crawler_names *make_names(void)
{
    const char *which;
    char why[256];
    struct crawler_names *names = crawler_names_new(NULL, 0, &which, why, sizeof why);
    assert_non_null(names);
    return names;
}

static void set_version(unsigned v)
{
    for (uint32_t page = 1; page <= PAGES; page++)
        crawlers_page_is(c, 3, 5, page, v, v, T0 + v);
    atomic_store(&version, v);
}

static void test_readers_beside_a_publisher(void **state)
{
    pthread_t readers[READERS], looker;
    struct crawlers_totals totals;
    c = crawlers_new(make_names(), T0);
    assert_non_null(c);
    crawlers_catalogue_is(c, "epoch");
    set_version(1);
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_pages, (void *)agents[i]), 0);
    assert_int_equal(pthread_create(&looker, NULL, look, NULL), 0);
    for (unsigned v = 2; v <= VERSIONS; v++) {
        set_version(v);
        if (v % 20 == 0) {
            assert_true(crawlers_use(c, make_names()));
            crawlers_page_removed(c, 5, v % PAGES + 1);
            crawlers_page_is(c, 3, 5, v % PAGES + 1, v, v, T0 + v);
        }
    }
    atomic_store(&ended, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    pthread_join(looker, NULL);
    for (size_t i = 0; i < READERS; i++)
        for (uint32_t page = 1; page <= PAGES; page++)
            fetch(agents[i], page, VERSIONS);
    crawlers_totals(c, &totals);
    assert_int_equal(totals.rows, 6 * PAGES); /* two share a name, and one has none */
    for (size_t i = 0; i < CRAWLERS_MAX; i++)
        assert_int_equal(totals.of[i].stale_pages, 0);
    set_version(VERSIONS + 1);
    crawlers_totals(c, &totals);
    assert_int_equal(totals.of[crawlers_find(c, "googlebot")].stale_pages, PAGES);
    crawlers_free(c);
}

static void count_day(void *context, const struct crawler_day *day)
{
    (void)day;
    ++*(unsigned *)context;
}

static void name_epoch(unsigned number, char out[CRAWLERS_EPOCH_SIZE])
{
    snprintf(out, CRAWLERS_EPOCH_SIZE, "epoch %u", number);
}

static atomic_uint looked_at, stale;

/* At each epoch, as soon as it is there. */
static void *look_at_epochs(void *context)
{
    for (unsigned number = 1; number <= VERSIONS; number++) {
        char wanted[CRAWLERS_EPOCH_SIZE], epoch[CRAWLERS_EPOCH_SIZE];
        unsigned days = 0;
        name_epoch(number, wanted);
        do
            crawlers_epoch(c, epoch);
        while (strcmp(epoch, wanted) != 0);
        crawlers_each_day(c, count_day, &days);
        atomic_fetch_add(&stale, days);
        atomic_store(&looked_at, number);
    }
    return context;
}

static void test_nothing_of_before_is_left_once_an_epoch_is_there(void **state)
{
    pthread_t looker;
    c = crawlers_new(make_names(), T0);
    assert_non_null(c);
    assert_int_equal(pthread_create(&looker, NULL, look_at_epochs, NULL), 0);
    for (unsigned number = 1; number <= VERSIONS; number++) {
        char epoch[CRAWLERS_EPOCH_SIZE];
        for (uint32_t page = 1; page <= PAGES; page++)
            fetch(agents[0], page, number);
        name_epoch(number, epoch);
        crawlers_catalogue_is(c, epoch);
        while (atomic_load(&looked_at) < number)
            sched_yield();
    }
    pthread_join(looker, NULL);
    assert_int_equal(atomic_load(&stale), 0);
    crawlers_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_beside_a_publisher),
        cmocka_unit_test(test_nothing_of_before_is_left_once_an_epoch_is_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
