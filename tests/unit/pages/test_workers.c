/* The pool runs what it took, in order with one thread, and refuses what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
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

static void note_order(void *context)
{
    gate.order[atomic_fetch_add(&gate.done, 1)] = (int)(intptr_t)context;
}

static void jobs_run_in_order(void **state)
{
    (void)state;
    struct workers *w = workers_new(1, 8);
    atomic_store(&gate.done, 0);
    for (int i = 0; i < 8; i++)
        while (!workers_run(w, note_order, (void *)(intptr_t)(i + 1)))
            ;
    workers_free(w);
    assert_int_equal(atomic_load(&gate.done), 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(gate.order[i], i + 1);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    struct workers *w = workers_new(1, 2);
    int taken = 0;
    atomic_store(&gate.done, 0);
    pthread_mutex_lock(&gate.lock);
    for (int i = 0; i < 100; i++)
        taken += workers_run(w, wait_at_gate, NULL);
    pthread_mutex_unlock(&gate.lock);
    assert_in_range(taken, 2, 3); /* two wait, and one may have been taken up */
    workers_free(w);
    assert_int_equal(atomic_load(&gate.done), taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_in_order),
        cmocka_unit_test(a_full_queue_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
