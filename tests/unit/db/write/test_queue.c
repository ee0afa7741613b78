/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The places and the turns of sites in the queue of writes, whatever their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "db/write/queue.h"

enum { A = 3, B = A + 256, C = A + 512, MOST = 64 };

struct world {
    struct queue q;
    struct write_request *request[2 * MOST];
    unsigned count;
};

static int setup(void **state)
{
    static struct world w;
    w = (struct world){.count = 0};
    queue_init(&w.q, MOST);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    while (queue_pop(&w->q, QUEUE_SMALL) != NULL)
        continue;
    while (queue_pop(&w->q, QUEUE_ALONE) != NULL)
        continue;
    assert_int_equal(queue_depth(&w->q), 0);
    assert_null(w->q.sites.buckets);
    queue_done(&w->q);
    for (unsigned i = 0; i < w->count; i++)
        free(w->request[i]);
    return 0;
}

static enum queue_answer push(struct world *w, int64_t site_id, enum change_kind kind)
{
    struct write_request *request = calloc(1, sizeof *request);
    assert_non_null(request);
    w->request[w->count++] = request;
    request->change.kind = kind;
    request->change.grant.site_id = site_id;
    request->deadline_ms = INT64_MAX;
    return queue_push(&w->q, request);
}

static void list(struct world *w, int64_t site_id)
{
    assert_int_equal(push(w, site_id, CHANGE_BULK), QUEUE_ACCEPTED);
}

/* The site whose list has the next turn; -1: none waits. */
static int64_t turn(struct world *w)
{
    int64_t next = queue_next_site(&w->q);
    const struct write_request *request = queue_pop(&w->q, QUEUE_ALONE);
    assert_int_equal(next, request != NULL ? request->change.grant.site_id : QUEUE_NO_SITE);
    return next;
}

static void sites_have_shares_of_the_places(void **state)
{
    struct world *w = *state;
    static const struct {
        int64_t site_id;
        unsigned gets;
    } rows[] = {{A, 32}, {B, 16}, {256, 8}, {0, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned k = 0; k < rows[i].gets; k++)
            assert_int_equal(push(w, rows[i].site_id, CHANGE_ENTRY_PUT), QUEUE_ACCEPTED);
        assert_int_equal(push(w, rows[i].site_id, CHANGE_ENTRY_PUT), QUEUE_FULL);
    }
}

/* A site's list waits for at most one list of each other site. */
static void sites_have_turns(void **state)
{
    struct world *w = *state;
    static const int64_t lists[] = {A, A, A, B, C, B, 0}, expected[] = {A, B, C, 0, A, B, A};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        list(w, lists[i]);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(turn(w), expected[i]);
    assert_int_equal(turn(w), QUEUE_NO_SITE);
}

/* One that comes again at once, though nothing of it waited, is behind those that wait. */
static void who_comes_again_waits_for_the_others(void **state)
{
    struct world *w = *state;
    list(w, A);
    assert_int_equal(turn(w), A);
    list(w, A);
    list(w, B);
    list(w, C);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(turn(w), B);
        list(w, B);
        assert_int_equal(turn(w), C);
        list(w, C);
        assert_int_equal(turn(w), A);
        list(w, A);
    }
}

/* So does a list with further steps, and one that was returned. */
static void steps_are_turns(void **state)
{
    struct world *w = *state;
    list(w, A);
    list(w, B);
    struct write_request *first = queue_pop(&w->q, QUEUE_ALONE);
    assert_int_equal(first->change.grant.site_id, A);
    queue_requeue(&w->q, first);
    assert_int_equal(turn(w), B);
    list(w, B);
    first = queue_pop(&w->q, QUEUE_ALONE);
    assert_int_equal(first->change.grant.site_id, A);
    queue_return(&w->q, true, first);
    assert_int_equal(turn(w), B);
    assert_int_equal(turn(w), A);
}

static void a_site_with_its_turn_elsewhere_is_skipped(void **state)
{
    struct world *w = *state;
    list(w, A);
    list(w, B);
    queue_skip_site(&w->q, A);
    queue_skip_site(&w->q, C); /* it has nothing here */
    assert_int_equal(turn(w), B);
    assert_int_equal(turn(w), A);
}

static void small(struct world *w, int64_t site_id)
{
    assert_int_equal(push(w, site_id, CHANGE_INDEX_FREEZE), QUEUE_ACCEPTED);
}

/* Checks the sites of a batch, and returns it. */
static struct write_request *batch(struct world *w, const int64_t sites[], size_t count)
{
    struct write_request *first = queue_pop(&w->q, QUEUE_SMALL), *request = first;
    for (size_t i = 0; i < count; i++, request = request->next) {
        assert_non_null(request);
        assert_int_equal(request->change.grant.site_id, sites[i]);
    }
    assert_null(request);
    return first;
}

#define BATCH(w, ...)                                                                              \
    batch((w), (const int64_t[]){__VA_ARGS__},                                                     \
          sizeof(const int64_t[]){__VA_ARGS__} / sizeof(int64_t))

/* A small change waits for one of each other site, however many those have queued. */
static void small_changes_come_in_rounds(void **state)
{
    struct world *w = *state;
    static const int64_t sites[] = {A, A, A, B, 0, A, B, C};
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        small(w, sites[i]);
    struct write_request *request = BATCH(w, A, B, 0, C, A, B, A, A);
    for (unsigned order[4] = {0}, i; request != NULL; request = request->next) {
        for (i = 0; w->request[i] != request; i++)
            continue;
        unsigned *last = &order[(request->change.grant.site_id + 253) / 256];
        assert_true(i >= *last); /* those of a site in order of arrival */
        *last = i;
    }
    small(w, A);
    small(w, B);
    BATCH(w, A, B);
}

/* The writer returns what a batch had no time for: changes that came meanwhile are not behind it.
 */
static void returned_small_changes_keep_their_rounds(void **state)
{
    struct world *w = *state;
    for (unsigned i = 0; i < 5; i++)
        small(w, A);
    struct write_request *first = BATCH(w, A, A, A, A, A);
    small(w, B);
    queue_return(&w->q, false, first->next);
    small(w, C);
    small(w, A);
    first = BATCH(w, A, B, C, A, A, A, A);
    queue_return(&w->q, false, first->next);
    small(w, B);
    BATCH(w, B, C, A, B, A, A, A);
}

/* A site whose changes come one by one, again at once, does not keep another's waiting either. */
static void sites_alternate(void **state)
{
    struct world *w = *state;
    unsigned done[2] = {0};
    for (unsigned i = 0; i < 8; i++)
        small(w, A);
    for (unsigned i = 0; i < 16; i++) {
        struct write_request *first = queue_pop(&w->q, QUEUE_SMALL);
        done[first->change.grant.site_id == B]++;
        queue_return(&w->q, false, first->next);
        if (done[1] < 8)
            small(w, B);
        assert_true(done[0] <= done[1] + 2 && done[1] <= done[0] + 1);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sites_have_shares_of_the_places),           TEST(sites_have_turns),
        TEST(who_comes_again_waits_for_the_others),      TEST(steps_are_turns),
        TEST(a_site_with_its_turn_elsewhere_is_skipped), TEST(small_changes_come_in_rounds),
        TEST(returned_small_changes_keep_their_rounds),  TEST(sites_alternate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
