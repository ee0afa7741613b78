/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/http/live.h"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "server/base/thread.h"

/* How long slices are is Linux 6.12's to keep. */
static bool kernel_has_slices(void)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    return uname(&name) == 0 && sscanf(name.release, "%u.%u", &major, &minor) == 2 &&
           major * 1000 + minor >= 6012 && sched_getscheduler(0) == SCHED_OTHER;
}

static uint64_t slice_of(int thread)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } is = {0};
    return syscall(SYS_sched_getattr, thread, &is, sizeof is, 0) == 0 ? is.runtime : 0;
}

/* Threads of this process with slices of `most_ns` or less. */
static unsigned count_short(uint64_t most_ns)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        if (atoi(entry->d_name) > 0 && slice_of(atoi(entry->d_name)) <= most_ns)
            count++;
    closedir(tasks);
    return count;
}

struct measured {
    int thread;
    uint64_t slice;
};

static void *measure(void *context)
{
    *(struct measured *)context = (struct measured){gettid(), slice_of(0)};
    return NULL;
}

/* The kernel knows of a thread for a moment longer than who joined it: until it is not counted any
 * more. */
static uint64_t of_a_new_thread(void)
{
    pthread_t thread;
    struct measured one = {0, 0};
    assert_int_equal(pthread_create(&thread, NULL, measure, &one), 0);
    pthread_join(thread, NULL);
    for (int i = 0; i < LIVE_PATIENCE_MS && slice_of(one.thread) != 0; i++)
        usleep(1000);
    return one.slice;
}

static void threads_inherit_it_until_it_is_taken_back(void **state)
{
    if (!kernel_has_slices())
        skip();
    uint64_t before = slice_of(0);
    assert_true(slice_shorten());
    assert_int_equal(of_a_new_thread(), 100000);
    slice_restore();
    assert_int_equal(of_a_new_thread(), before);
    assert_int_equal(slice_of(0), before);
}

static void another_policy_is_left_alone(void **state)
{
    const struct sched_param none = {0};
    if (!kernel_has_slices())
        skip();
    uint64_t before = slice_of(0);
    assert_int_equal(sched_setscheduler(0, SCHED_BATCH, &none), 0);
    assert_false(slice_shorten());
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
    assert_int_equal(slice_of(0), before);
}

static enum handled nothing(void *context, struct request *request)
{
    (void)context;
    request->reply.status = 204;
    return HANDLED;
}

static const struct route routes[] = {
    {.methods = HTTP_GET, .path = "/", .label = "all", .finish = nothing}};

/* Three workers; not the thread that keeps deadlines. */
static void a_listener_asks_it_for_who_answers(void **state)
{
    if (!kernel_has_slices())
        skip();
    unsigned others = count_short(100000); /* a sanitizer's thread may have inherited it above */
    for (int shortened = 0; shortened < 2; shortened++) {
        struct listener_options options = live_options(routes, 1);
        struct listener *l;
        char why[256];
        options.threads = 3;
        options.short_slices = shortened;
        assert_true(listener_start(&options, &l, why, sizeof why));
        assert_int_equal(count_short(100000) - others, shortened ? 3 : 0);
        listener_quiesce(l);
        listener_stop(l, 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_inherit_it_until_it_is_taken_back),
        cmocka_unit_test(another_policy_is_left_alone),
        cmocka_unit_test(a_listener_asks_it_for_who_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
