/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/base/clock.h"
#include "tests/unit/http/live.h"

#include <dirent.h>
#include <sys/resource.h>

/* Who is let in where there are too many: each test fills a listener with one kind of them. */

#define SMALL "GET /small HTTP/1.1\r\nHost: a\r\n\r\n"

static enum handled large(void *context, struct request *request)
{
    (void)context;
    return live_large(request, 20000000);
}

static atomic_bool released;

static void *resume_when_released(void *context)
{
    struct request *request = context;

    while (!atomic_load(&released))
        usleep(5000);
    live_small(NULL, request);
    request_resume(request);
    return NULL;
}

static enum handled later(void *context, struct request *request)
{
    (void)context;
    return live_later(request, resume_when_released);
}

static const struct route routes[] = {
    {.methods = HTTP_GET,
     .path = "/small",
     .label = "small",
     .asks_to_wait = true,
     .finish = live_small},
    {.methods = HTTP_GET, .path = "/large", .label = "large", .finish = large},
    {.methods = HTTP_GET, .path = "/later", .label = "later", .finish = later},
    {.methods = HTTP_POST,
     .path = "/body",
     .label = "body",
     .finish = live_small,
     .max_body_bytes = 1000},
};

static struct listener_options options_of_this(uint32_t max_connections)
{
    struct listener_options options = live_options(routes, sizeof routes / sizeof routes[0]);
    options.max_connections = max_connections;
    return options;
}

/* The status that a request gets on a connection of its own from 127.0.0.`last`; 0: none. Kept
 * open in `*kept` where that is not NULL. */
static unsigned ask_from(const struct listener *l, unsigned last, int *kept)
{
    int fd = live_connect_from(l, last);
    struct answer a;

    live_text(fd, SMALL);
    live_read(fd, false, &a);
    answer_done(&a);
    if (kept != NULL)
        *kept = fd;
    else
        close(fd);
    return a.status;
}

/* Fills `l` with `count` connections that each sent `text`. */
static void fill(const struct listener *l, int *fds, unsigned count, const char *text)
{
    for (unsigned i = 0; i < count; i++) {
        fds[i] = live_connect(l);
        live_text(fds[i], text);
    }
    live_await_load(l, count, -1);
}

static void close_all(int *fds, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(fds[i]);
}

#define FULL 40u

/* A client that fills the listener with `text` does not keep others out. */
static void require_let_in_beside(unsigned count, const char *text)
{
    struct listener_options options = options_of_this(count);
    options.body_timeout_ms = 600000; /* not what ends it */
    struct listener *l = live_start(&options);
    int fds[FULL];

    fill(l, fds, count, text);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask_from(l, 2, NULL), 200);
    close_all(fds, count);
    listener_stop(l, 1000);
}

static void test_silent_ones_make_room(void **state)
{
    require_let_in_beside(FULL, "");
}

static void test_half_headers_make_room(void **state)
{
    require_let_in_beside(FULL, "GET /small HTTP/1.1\r\nX: ");
}

static void test_idle_ones_make_room(void **state)
{
    require_let_in_beside(FULL, SMALL);
}

static void test_bodies_nobody_wants_make_room(void **state)
{
    require_let_in_beside(FULL, "GET /small HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx");
}

static void test_bodies_that_stall_make_room(void **state)
{
    require_let_in_beside(8, "POST /body HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx");
}

static void test_slow_readers_make_room(void **state)
{
    require_let_in_beside(8, "GET /large HTTP/1.1\r\nHost: a\r\n\r\n");
}

/* Who waits for an answer of ours is never ended for another. */
static void test_waiting_ones_stay(void **state)
{
    struct listener_options options = options_of_this(4);
    options.max_suspended = 4;
    struct listener *l = live_start(&options);
    int fds[4], fifth;
    struct answer a;

    atomic_store(&released, false);
    fill(l, fds, 4, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    usleep(100000);
    fifth = live_connect(l);
    live_text(fifth, SMALL);
    assert_false(live_ends(fifth, 400));
    atomic_store(&released, true);
    for (int i = 0; i < 4; i++) {
        live_read(fds[i], false, &a);
        assert_int_equal(a.status, 200);
        answer_done(&a);
    }
    live_read(fifth, false, &a); /* now one of them is idle */
    assert_int_equal(a.status, 200);
    answer_done(&a);
    close(fifth);
    close_all(fds, 4);
    listener_stop(l, 1000);
}

static void test_limit_of_an_address_is_its_own(void **state)
{
    struct listener_options options = options_of_this(100);
    options.max_connections_per_address = 3;
    struct listener *l = live_start(&options);
    int held[3], other[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_from(l, 2, &held[i]), 200);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_from(l, 2, NULL), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_from(l, 3, &other[i]), 200);
    close(held[0]);
    live_await_load(l, 5, -1);
    assert_int_equal(ask_from(l, 2, &held[0]), 200);
    close_all(held, 3);
    close_all(other, 3);
    listener_stop(l, 1000);
}

static void test_a_proxy_has_no_limit(void **state)
{
    static const char *const proxies[] = {"127.0.0.4/30"};
    struct listener_options options = options_of_this(100);
    options.max_connections_per_address = 1;
    options.trusted_proxies = proxies;
    options.trusted_proxy_count = 1;
    struct listener *l = live_start(&options);
    int held[10];

    for (int i = 0; i < 10; i++)
        assert_int_equal(ask_from(l, 5, &held[i]), 200);
    close_all(held, 10);
    listener_stop(l, 1000);
}

static void test_one_place_for_all(void **state)
{
    struct listener_options options = options_of_this(1);
    options.threads = 4; /* more than there are places: one does the work */
    struct listener *l = live_start(&options);
    int kept[10];

    for (int i = 0; i < 10; i++)
        assert_int_equal(ask_from(l, 2, &kept[i]), 200); /* each ends the one before */
    close_all(kept, 10);
    listener_stop(l, 1000);
}

/* One more than the highest descriptor in use. */
static rlim_t descriptors_in_use(void)
{
    DIR *folder = opendir("/proc/self/fd");
    rlim_t most = 0;

    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        rlim_t fd = strtoul(e->d_name, NULL, 10);
        if (fd + 1 > most && fd != (rlim_t)dirfd(folder))
            most = fd + 1;
    }
    closedir(folder);
    return most;
}

/* With no descriptor left, those that only wait give theirs up. */
static void test_out_of_descriptors(void **state)
{
    struct listener_options options = options_of_this(100);
    struct listener *l = live_start(&options);
    struct rlimit before, none;
    int fds[20], late;
    struct answer a;

    fill(l, fds, 20, "");
    late = live_connect(l); /* in use before the limit is set: the kernel takes it, we cannot */
    live_await_load(l, 21, -1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = descriptors_in_use();
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    none.rlim_cur = descriptors_in_use();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sockaddr_in to = live_address(l);
    assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof to), 0);
    live_text(client, SMALL);
    live_read(client, false, &a);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(a.status, 200);
    answer_done(&a);
    close(client);
    close(late);
    close_all(fds, 20);
    listener_stop(l, 1000);
}

static unsigned entries_of(const char *path)
{
    DIR *folder = opendir(path);
    unsigned count = 0;

    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* A joined thread may be listed a moment longer. */
static void until_threads_are(unsigned wanted)
{
    for (unsigned i = 0; i < 10000 && entries_of("/proc/self/task") != wanted; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(entries_of("/proc/self/task"), wanted);
}

/* Wherever a start runs out of descriptors, it leaves no thread behind. */
static void test_a_start_without_descriptors(void **state)
{
    struct rlimit before, few;
    bool started = false;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    unsigned threads = entries_of("/proc/self/task");
    for (rlim_t more = 0; !started && more < 40; more++) {
        struct listener_options options = options_of_this(100);
        struct listener *l;
        char why[256] = "";
        options.threads = 2;
        few = before;
        /* Counted each time: the library keeps some of a start that failed (1.0.1 closes them). */
        few.rlim_cur = entries_of("/proc/self/fd") - 1 + more;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        started = listener_start(&options, &l, why, sizeof why);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (started)
            listener_stop(l, 1000);
        else
            assert_true(why[0] != '\0');
        until_threads_are(threads);
    }
    assert_true(started);
}

static void test_a_stop_serves_who_has_come(void **state)
{
    struct listener_options options = options_of_this(400);
    struct listener *l = live_start(&options);
    int fds[200];
    struct answer a;

    for (int i = 0; i < 200; i++) {
        fds[i] = live_connect(l);
        live_text(fds[i], SMALL);
    }
    listener_quiesce(l); /* many are still in the kernel's queue, or handed over and not started */
    for (int i = 0; i < 200; i++) {
        live_read(fds[i], false, &a);
        assert_int_equal(a.status, 200);
        answer_done(&a);
        assert_true(live_ends(fds[i], LIVE_PATIENCE_MS));
    }
    close_all(fds, 200);
    listener_stop(l, 1000);
}

struct flood {
    struct listener *l;
    atomic_bool end;
    atomic_uint count;
};

static void *come_and_go(void *context)
{
    struct flood *flood = context;
    struct sockaddr_in to = live_address(flood->l);
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    while (!atomic_load(&flood->end)) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
            atomic_fetch_add(&flood->count, 1);
        close(fd);
    }
    return NULL;
}

/* Neither an honest client nor a stop waits for the end of a flood. */
static void test_a_flood_of_connections(void **state)
{
    struct listener_options options = options_of_this(FULL);
    struct listener *l = live_start(&options);
    struct flood flood[2] = {{.l = l}, {.l = l}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &flood[i]), 0);
    for (int i = 0; i < 2; i++)
        while (atomic_load(&flood[i].count) == 0)
            usleep(1000);
    /* The kernel's queue is full of those that come and go: it may drop an honest one, which asks
     * again. */
    for (int i = 0, lost = 0; i < 50; i++)
        while (ask_from(l, 2, NULL) != 200)
            assert_true(++lost < 50);
    int64_t start = clock_now_ms();
    listener_quiesce(l);
    assert_in_range(clock_now_ms() - start, 0, LIVE_PATIENCE_MS);
    for (int i = 0; i < 2; i++) {
        atomic_store(&flood[i].end, true);
        pthread_join(threads[i], NULL);
    }
    listener_stop(l, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_ones_make_room),
        cmocka_unit_test(test_half_headers_make_room),
        cmocka_unit_test(test_idle_ones_make_room),
        cmocka_unit_test(test_bodies_nobody_wants_make_room),
        cmocka_unit_test(test_bodies_that_stall_make_room),
        cmocka_unit_test(test_slow_readers_make_room),
        cmocka_unit_test(test_waiting_ones_stay),
        cmocka_unit_test(test_limit_of_an_address_is_its_own),
        cmocka_unit_test(test_a_proxy_has_no_limit),
        cmocka_unit_test(test_one_place_for_all),
        cmocka_unit_test(test_out_of_descriptors),
        cmocka_unit_test(test_a_start_without_descriptors),
        cmocka_unit_test(test_a_stop_serves_who_has_come),
        cmocka_unit_test(test_a_flood_of_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
