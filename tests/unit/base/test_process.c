/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the kernel says of this process, against what the process does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/base/process.h"

#define MANY 10

static void test_descriptors(void **state)
{
    struct process_usage before, during, after;
    struct rlimit limit;
    int fds[MANY];

    assert_true(process_usage_read(&before));
    for (int i = 0; i < MANY; i++)
        assert_true((fds[i] = open("/dev/null", O_RDONLY)) >= 0);
    assert_true(process_usage_read(&during));
    for (int i = 0; i < MANY; i++)
        close(fds[i]);
    assert_true(process_usage_read(&after));
    assert_int_equal(during.open_fds, before.open_fds + MANY);
    assert_int_equal(after.open_fds, before.open_fds);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(during.max_fds, limit.rlim_cur);
}

static void test_memory(void **state)
{
    const size_t size = 32u << 20;
    struct process_usage before, during;

    assert_true(process_usage_read(&before));
    char *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(block, MAP_FAILED);
    memset(block, 1, size);
    assert_true(process_usage_read(&during));
    assert_true(during.resident_bytes > before.resident_bytes + size / 2);
    assert_true(during.virtual_bytes >= before.virtual_bytes + size);
    assert_true(during.virtual_bytes >= during.resident_bytes);
    munmap(block, size);
}

static uint64_t count_tasks(void)
{
    DIR *tasks = opendir("/proc/self/task");
    uint64_t count = 0;

    assert_non_null(tasks);
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks))
        count += task->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void *wait_for(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

static void test_threads_and_times(void **state)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct process_usage before, during, later;
    pthread_t thread;

    assert_true(process_usage_read(&before));
    pthread_mutex_lock(&lock);
    assert_int_equal(pthread_create(&thread, NULL, wait_for, &lock), 0);
    assert_true(process_usage_read(&during));
    uint64_t listed = count_tasks();
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    assert_true(during.threads > before.threads); /* a sanitizer may add one of its own */
    assert_int_equal(during.threads, listed);

    /* Started no later than now, and not before this machine. */
    uint64_t now_ms = (uint64_t)time(NULL) * 1000;
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    assert_in_range(before.started_ms, now_ms - (uint64_t)up.tv_sec * 1000 - 2000, now_ms + 1000);

    do
        assert_true(process_usage_read(&later)); /* burns time, which must show */
    while (later.cpu_ms < before.cpu_ms + 50);
}

/* The name of a process may hold what ends a name. */
static void test_a_name_with_parentheses(void **state)
{
    struct process_usage usage;

    assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b", 0, 0, 0), 0);
    assert_true(process_usage_read(&usage));
    assert_true(usage.resident_bytes > 0 && usage.threads >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_threads_and_times),
        cmocka_unit_test(test_a_name_with_parentheses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
