/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/http/page_fixture.h"

/* Memory that slow readers hold, and who is cut off for it. */

/* Begins to read the current page and stops behind the first byte. */
static int start_reading(struct listener *l)
{
    int fd = live_connect(l);
    char byte;

    live_text(fd, "GET /gzip HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(live_byte(fd, &byte));
    return fd;
}

/* Reads on to the end; how much came. */
static size_t read_on(int fd)
{
    static char bytes[1 << 16];
    size_t sum = 0;
    ssize_t got;

    shutdown(fd, SHUT_WR); /* the server ends too, behind the reply */
    while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0)
        sum += (size_t)got;
    close(fd);
    return sum;
}

/* Memory that slow readers hold is taken back: from retired pages only, the one that is read
 * longest first, no more than is asked for. */
static void test_slow_readers(void **state)
{
    enum { PAGES = 4, CURRENT = 3 };
    size_t size = 20000000, length[PAGES];
    char *xml = make_xml(size);
    struct listener *l = start();
    struct resource *page[PAGES];
    int fd[PAGES][2];

    atomic_store(&released, 0);
    for (int i = 0; i < PAGES; i++) {
        current = page[i] = make(xml, size, 1000000000);
        length[i] = current->gzip_len;
        for (int k = 0; k < 2; k++)
            fd[i][k] = start_reading(l);
    }
    for (int i = 0; i < PAGES; i++) {
        if (i != CURRENT)
            atomic_store(&page[i]->held.retired, true);
        resource_unref(page[i]);
    }
    resource_cut(&readers, HELD_PAGE, 0);
    assert_int_equal(readers.ending_bytes[HELD_PAGE], 0);
    resource_cut(&readers, HELD_PAGE, 1);
    await_released(length[0]);
    resource_cut(&readers, HELD_PAGE, length[1]);
    await_released(length[0] + length[1]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            assert_true(read_on(fd[i][k]) < length[i]);
    assert_true(read_on(fd[2][0]) > length[2]);
    resource_cut(&readers, HELD_PAGE, UINT64_MAX);
    assert_true(read_on(fd[2][1]) < length[2]);
    for (int k = 0; k < 2; k++)
        assert_true(read_on(fd[CURRENT][k]) > length[CURRENT]);
    await_released(length[0] + length[1] + length[2] + length[3]);
    listener_stop(l, 2000);
    assert_int_equal(readers.ending_bytes[HELD_PAGE], 0);
    assert_null(readers.first);
    assert_null(readers.last);
    free(xml);
}

/* ---- by the clock that is given ----------------------------------------------------------- */

#define MOST 100

struct world {
    struct readers r;
    struct held page, file[2];
    struct reader reader[MOST];
    int fd[MOST][2];
    unsigned count;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    readers_init(&w->r, 4);
    w->page = (struct held){.bytes = 1000};
    for (int i = 0; i < 2; i++)
        w->file[i] = (struct held){.kind = HELD_FILE, .bytes = 1000};
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    for (unsigned i = 0; i < w->count; i++) {
        uint64_t ended = readers_leave(&w->reader[i]);
        if (ended > 0)
            readers_freed(&w->r, w->reader[i].held->kind, ended);
        close(w->fd[i][0]);
        close(w->fd[i][1]);
    }
    assert_null(w->r.first);
    assert_null(w->r.last);
    assert_null(w->r.peers.tree);
    assert_null(w->r.keepers.tree);
    assert_int_equal(w->r.taken, 0);
    assert_int_equal(w->r.own_bytes, 0);
    assert_null(w->r.own_of.buckets);
    for (int i = 0; i < HELD_KINDS; i++)
        assert_int_equal(w->r.ending_bytes[i], 0);
    readers_done(&w->r);
    free(w);
    return 0;
}

static bool enter(struct world *w, struct held *held, const char *address, bool place, int64_t now)
{
    unsigned i = w->count++;

    assert_true(i < MOST);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fd[i]), 0);
    const struct reading what = {held, address, w->fd[i][0], place, now};
    return readers_enter(&w->r, &w->reader[i], &what);
}

static bool is_cut(struct world *w, unsigned i)
{
    char byte;

    return recv(w->fd[i][1], &byte, 1, MSG_DONTWAIT) == 0;
}

/* What is about to be free, its readers being cut and not yet gone, is not asked for again. */
static void test_what_is_ending_counts(void **state)
{
    struct world *w = *state;
    struct held other = w->page;
    uint64_t for_memory, for_others, for_own;

    atomic_store(&w->page.retired, true);
    atomic_store(&other.retired, true);
    assert_true(enter(w, &w->page, "192.0.2.1", false, 0));
    assert_true(enter(w, &other, "192.0.2.1", false, 0));
    readers_cut(&w->r, HELD_PAGE, 1, 0);
    readers_cut(&w->r, HELD_PAGE, 1000, 0);
    assert_true(is_cut(w, 0) && !is_cut(w, 1));
    /* It has left, and its snapshot is not free yet. */
    assert_int_equal(readers_leave(&w->reader[0]), 1000);
    readers_cut(&w->r, HELD_PAGE, 1000, 0);
    assert_false(is_cut(w, 1));
    readers_freed(&w->r, HELD_PAGE, 1000);
    readers_cut(&w->r, HELD_PAGE, 1000, 0);
    assert_true(is_cut(w, 1));
    readers_count_cut(&w->r, &for_memory, &for_others, &for_own);
    assert_int_equal(for_memory, 2);
    assert_int_equal(for_others, 0);
    assert_int_equal(readers_leave(&w->reader[1]), 1000);
    readers_freed(&w->r, HELD_PAGE, 1000);
}

/* Of files those that are read slowly, the longest first, with all that read the same; pages and
 * files each for themselves. */
static void test_files(void **state)
{
    struct world *w = *state;

    assert_true(enter(w, &w->file[0], "192.0.2.1", false, 0));
    assert_true(enter(w, &w->page, "192.0.2.1", false, 0));
    assert_true(enter(w, &w->file[1], NULL, false, 1000));
    assert_true(enter(w, &w->file[0], "192.0.2.2", false, 1999));
    readers_cut(&w->r, HELD_FILE, 1000, 1999);
    assert_false(is_cut(w, 0));
    readers_cut(&w->r, HELD_PAGE, 1000, 5000);
    readers_cut(&w->r, HELD_FILE, 1000, 2000);
    assert_true(is_cut(w, 0) && is_cut(w, 3));
    assert_true(!is_cut(w, 1) && !is_cut(w, 2));
    readers_cut(&w->r, HELD_FILE, 2000, 3000);
    assert_true(is_cut(w, 2) && !is_cut(w, 1));
    assert_int_equal(readers_leave(&w->reader[0]), 0);
    assert_int_equal(readers_leave(&w->reader[3]), 1000);
    readers_freed(&w->r, HELD_FILE, 1000);
}

/* Four places: beyond two an address has what is free, but once one of its own is slow that goes.
 */
static void test_places_of_an_address(void **state)
{
    struct world *w = *state;

    assert_true(enter(w, &w->page, "192.0.2.1", true, 0));
    assert_true(enter(w, &w->page, "192.0.2.1", true, 1));
    assert_true(enter(w, &w->page, "192.0.2.1", true, 2));
    assert_int_equal(w->r.taken, 3);
    assert_true(enter(w, &w->page, "192.0.2.1", true, 2000));
    assert_true(is_cut(w, 0) && !is_cut(w, 1));
    assert_int_equal(w->r.taken, 3);
    assert_true(enter(w, &w->page, "192.0.2.2", true, 2000));
    assert_int_equal(w->r.taken, 4);
    readers_leave(&w->reader[1]);
    assert_true(enter(w, &w->page, "192.0.2.1", true, 2001));
    /* All are taken, none of its own is slow, and nobody keeps more. */
    assert_false(enter(w, &w->page, "192.0.2.1", true, 2001));
    assert_false(enter(w, &w->page, "::ffff:192.0.2.1", true, 2001));
    assert_true(enter(w, &w->page, "192.0.2.1", false, 2001)); /* needs none */
    /* An IPv6 client has a /64. */
    assert_true(enter(w, &w->page, "2001:db8::1", true, 2001));
    assert_true(is_cut(w, 2));
    assert_int_equal(w->r.taken, 4);
    assert_false(enter(w, &w->page, "2001:db8::2", true, 2001));
}

/* All are in use: a client that keeps more than the new one gives one up at once; of those that
 * keep as many, the longest, once it is slow. */
static void test_full_places(void **state)
{
    struct world *w = *state;

    assert_true(enter(w, &w->page, "192.0.2.9", true, 0));
    assert_true(enter(w, &w->page, "192.0.2.1", true, 10));
    assert_true(enter(w, &w->page, "192.0.2.1", true, 11));
    assert_true(enter(w, &w->page, "192.0.2.2", true, 12));
    assert_true(enter(w, &w->page, "192.0.2.3", true, 13));
    assert_true(is_cut(w, 1) && !is_cut(w, 0) && !is_cut(w, 2));
    assert_int_equal(w->r.taken, 4);
    assert_false(enter(w, &w->page, "192.0.2.4", true, 1999));
    assert_false(enter(w, &w->page, NULL, true, 1999));
    assert_true(enter(w, &w->page, NULL, true, 2000));
    assert_true(is_cut(w, 0) && !is_cut(w, 2));
    assert_int_equal(w->r.taken, 4);
    assert_true(enter(w, &w->page, "192.0.2.4", true, 2011));
    assert_true(is_cut(w, 2));
}

/* Slow ones of an address, whatever they read; a proxy's are not counted. */
static void test_slow_ones_of_an_address(void **state)
{
    struct world *w = *state;

    assert_true(enter(w, &w->page, NULL, false, 0));
    for (unsigned i = 0; i < READERS_PER_ADDRESS; i++)
        assert_true(enter(w, i % 2 ? &w->page : &w->file[0], "192.0.2.1", false, 0));
    assert_true(enter(w, &w->page, "192.0.2.1", false, 1999)); /* all of them are fast */
    assert_false(is_cut(w, 1));
    assert_true(enter(w, &w->page, "192.0.2.2", false, 2000));
    assert_false(is_cut(w, 1));
    assert_true(enter(w, &w->page, "192.0.2.1", false, 2000));
    assert_true(is_cut(w, 1) && !is_cut(w, 0) && !is_cut(w, 2));
    for (unsigned i = 0; i < 5; i++)
        assert_true(enter(w, &w->page, NULL, false, 9000));
    assert_false(is_cut(w, 0));
}

static void keep(struct world *w, unsigned i, int64_t site_id, uint64_t bytes)
{
    if (i == w->count) {
        assert_true(w->count++ < MOST);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fd[i]), 0);
    }
    readers_keep(&w->r, &w->reader[i], w->fd[i][0], site_id, bytes);
}

/* What requests keep for themselves: the site that keeps the most gives, the longest at it first.
 */
static void test_own_memory(void **state)
{
    enum { FIRST = 256, SECOND = 512 }; /* and 0, the tokens for all sites */
    struct world *w = *state;
    uint64_t for_memory, for_others, for_own;

    w->r.own_most = 1000;
    keep(w, 0, SECOND, 100);
    keep(w, 1, FIRST, 300);
    keep(w, 2, FIRST, 300);
    keep(w, 3, READERS_NO_TOKEN, 200);
    assert_true(enter(w, &w->page, "192.0.2.1", false, 0)); /* counts elsewhere */
    assert_int_equal(w->r.own_bytes, 900);
    keep(w, 0, SECOND, 200); /* it grew */
    assert_int_equal(w->r.own_bytes, 1000);
    keep(w, 5, SECOND, 100);
    assert_true(is_cut(w, 1) && !is_cut(w, 0) && !is_cut(w, 2) && !is_cut(w, 3) && !is_cut(w, 4));
    assert_int_equal(w->r.own_bytes, 800);
    keep(w, 1, FIRST, 5000); /* it has not noticed yet */
    assert_int_equal(w->r.own_bytes, 800);
    keep(w, 3, READERS_NO_TOKEN, 900); /* itself alone has the most: it is let be */
    assert_false(is_cut(w, 3));
    keep(w, 6, 0, 10);
    assert_true(is_cut(w, 3) && !is_cut(w, 0) && !is_cut(w, 2) && !is_cut(w, 5));
    readers_leave(&w->reader[2]);
    assert_int_equal(w->r.own_bytes, 310);
    readers_count_cut(&w->r, &for_memory, &for_others, &for_own);
    assert_int_equal(for_memory + for_others, 0);
    assert_int_equal(for_own, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_readers),
        TEST(test_what_is_ending_counts),
        TEST(test_files),
        TEST(test_places_of_an_address),
        TEST(test_full_places),
        TEST(test_slow_ones_of_an_address),
        TEST(test_own_memory),
    };
    readers_init(&readers, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
