/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The pool runs what it took, in order with one thread and by turns of the sites, and refuses what
 * does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "server/pages/workers.h"

struct gate {
    pthread_mutex_t lock;
    atomic_int done;
    int order[8];
};

static struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wait_at_gate(void *context)
{
    (void)context;
    pthread_mutex_lock(&gate.lock);
    pthread_mutex_unlock(&gate.lock);
    atomic_fetch_add(&gate.done, 1);
}

static void record_order(void *context)
{
    gate.order[atomic_fetch_add(&gate.done, 1)] = (int)(intptr_t)context;
}

static void jobs_run_in_order(void **state)
{
    struct workers *w = workers_new(1, 8);
    atomic_store(&gate.done, 0);
    for (int i = 0; i < 8; i++)
        while (!workers_run(w, 0, record_order, (void *)(intptr_t)(i + 1)))
            ;
    workers_free(w);
    assert_int_equal(atomic_load(&gate.done), 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(gate.order[i], i + 1);
}

static void a_full_queue_refuses(void **state)
{
    struct workers *w = workers_new(1, 2);
    int taken = 0;
    atomic_store(&gate.done, 0);
    pthread_mutex_lock(&gate.lock);
    for (int i = 0; i < 100; i++)
        taken += workers_run(w, 0, wait_at_gate, NULL);
    pthread_mutex_unlock(&gate.lock);
    assert_in_range(taken, 2, 3); /* two wait, and one may have been taken up */
    workers_free(w);
    assert_int_equal(atomic_load(&gate.done), taken);
}

/* What one site asks for, however much, holds up another's for one job. */
static void sites_have_turns(void **state)
{
    static const struct {
        int64_t site_id;
        int job;
    } asked[] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1 + 256, 5}, {0, 6}, {1 + 256, 7}};
    static const int expected[] = {1, 5, 6, 2, 7, 3, 4};
    struct workers *w = workers_new(1, 16);
    atomic_store(&gate.done, 0);
    pthread_mutex_lock(&gate.lock);
    assert_true(workers_run(w, 0, wait_at_gate, NULL));
    while (workers_queued(w) > 0)
        sched_yield();
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        assert_true(workers_run(w, asked[i].site_id, record_order, (void *)(intptr_t)asked[i].job));
    pthread_mutex_unlock(&gate.lock);
    workers_free(w);
    assert_int_equal(atomic_load(&gate.done), 8);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_int_equal(gate.order[i + 1], expected[i]);
}

static void a_site_leaves_others_half_of_the_places(void **state)
{
    struct workers *w = workers_new(1, 8);
    atomic_store(&gate.done, 0);
    pthread_mutex_lock(&gate.lock);
    assert_true(workers_run(w, 0, wait_at_gate, NULL));
    while (workers_queued(w) > 0)
        sched_yield();
    for (int i = 0; i < 8; i++)
        assert_int_equal(workers_run(w, 256, wait_at_gate, NULL), i < 4);
    assert_true(workers_run(w, 512, wait_at_gate, NULL));
    for (int i = 0; i < 4; i++) /* who may do all has all that is left */
        assert_int_equal(workers_run(w, 0, wait_at_gate, NULL), i < 3);
    pthread_mutex_unlock(&gate.lock);
    workers_free(w);
    assert_int_equal(atomic_load(&gate.done), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_in_order),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(sites_have_turns),
        cmocka_unit_test(a_site_leaves_others_half_of_the_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
