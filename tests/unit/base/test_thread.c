/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Threads of objects: a wake that comes early counts, a stop ends every sleep, and zeros are a
 * lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/base/clock.h"
#include "server/base/thread.h"

#define LONG_MS 600000

static struct {
    struct thread thread;
    char name[16];
    atomic_int rounds;
} work;

static void work_run(void *context)
{
    pthread_getname_np(pthread_self(), work.name, sizeof work.name);
    while (thread_wait(context, LONG_MS))
        atomic_fetch_add(&work.rounds, 1);
}

static void test_zeros_are_initialised(void **state)
{
    static const struct thread zeros;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wakes = PTHREAD_COND_INITIALIZER;

    assert_memory_equal(&zeros.lock, &lock, sizeof lock);
    assert_memory_equal(&zeros.wakes, &wakes, sizeof wakes);
}

static void test_wake_and_stop(void **state)
{
    for (int turn = 1; turn <= 2; turn++) { /* again after a join */
        if (turn == 2)                      /* a wake before the start counts */
            thread_wake(&work.thread);
        assert_true(thread_start(&work.thread, "a name 15 bytes", work_run, &work.thread));
        assert_true(thread_runs(&work.thread));
        assert_false(thread_stops(&work.thread));
        if (turn == 1)
            thread_wake(&work.thread);
        while (atomic_load(&work.rounds) < turn)
            sched_yield();
        thread_stop(&work.thread);
        assert_false(thread_runs(&work.thread));
        assert_true(thread_stops(&work.thread));
        assert_string_equal(work.name, "a name 15 bytes");
        assert_int_equal(atomic_load(&work.rounds), turn);
    }
    thread_stop(&work.thread); /* nothing is left to do */
}

static void test_wait(void **state)
{
    struct thread t = {.runs = false};
    int64_t began = clock_now_ms();

    assert_true(thread_wait(&t, 20));
    assert_true(clock_now_ms() - began >= 20);
    assert_true(thread_wait(&t, 0));
    assert_true(thread_wait(&t, -1));
    thread_wake(&t);
    thread_wake(&t);
    assert_true(thread_wait(&t, LONG_MS)); /* it was woken before; twice is once */
    began = clock_now_ms();
    assert_true(thread_wait(&t, 20));
    assert_true(clock_now_ms() - began >= 20);
    thread_end(&t);
    assert_false(thread_wait(&t, LONG_MS));
    assert_false(thread_wait(&t, LONG_MS));
    thread_join(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zeros_are_initialised),
        cmocka_unit_test(test_wake_and_stop),
        cmocka_unit_test(test_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
