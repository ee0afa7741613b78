#include "tests/unit/http/page_fixture.h"

/* Memory that slow readers hold, and who is cut off for it. */

/* Begins to read the current page and stops behind the first byte. */
static int start_reading(struct listener *l)
{
    int fd = live_connect(l);
    char byte;

    live_text(fd, "GET /gzip HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_true(live_byte(fd, &byte, 5000));
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
    (void)state;
    enum { PAGES = 4, CURRENT = 3 };
    size_t size = 20000000, length[PAGES];
    char *xml = make_xml(size);
    struct listener *l = start();
    struct snapshot *page[PAGES];
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
            atomic_store(&page[i]->retired, true);
        snapshot_unref(page[i]);
    }
    page_response_cut(&pages, 0);
    assert_int_equal(pages.readers.ending_bytes, 0);
    page_response_cut(&pages, 1);
    await_released(length[0]);
    page_response_cut(&pages, length[1]);
    await_released(length[0] + length[1]);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            assert_true(read_on(fd[i][k]) < length[i]);
    assert_true(read_on(fd[2][0]) > length[2]);
    page_response_cut(&pages, UINT64_MAX);
    assert_true(read_on(fd[2][1]) < length[2]);
    for (int k = 0; k < 2; k++)
        assert_true(read_on(fd[CURRENT][k]) > length[CURRENT]);
    await_released(length[0] + length[1] + length[2] + length[3]);
    listener_stop(l, 2000);
    assert_int_equal(pages.readers.ending_bytes, 0);
    assert_null(pages.readers.first);
    assert_null(pages.readers.last);
    free(xml);
}

/* What is about to be free, its readers being cut and not yet gone, is not asked for again. */
static void test_what_is_ending_counts(void **state)
{
    (void)state;
    struct page_readers readers;
    struct snapshot *page[2] = {snapshot_new(), snapshot_new()};
    struct page_held held[2] = {{.snapshot = page[0]}, {.snapshot = page[1]}};
    struct page_reader reader[2];
    int fd[2][2];
    char byte;

    page_readers_init(&readers);
    for (int i = 0; i < 2; i++) {
        page[i]->gzip_len = 1000;
        atomic_store(&page[i]->retired, true);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd[i]), 0);
        page_readers_enter(&readers, &reader[i], &held[i], fd[i][0]);
    }
    page_readers_cut(&readers, 1);
    page_readers_cut(&readers, 1000);
    assert_int_equal(readers.ending_bytes, 1000);
    assert_int_equal(page_readers_count_cut(&readers), 1);
    assert_int_equal(recv(fd[0][1], &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(recv(fd[1][1], &byte, 1, MSG_DONTWAIT), -1);
    /* It has left, and its snapshot is not free yet. */
    assert_int_equal(page_readers_leave(&reader[0]), 1000);
    page_readers_cut(&readers, 1000);
    assert_int_equal(recv(fd[1][1], &byte, 1, MSG_DONTWAIT), -1);
    page_readers_freed(&readers, 1000);
    assert_int_equal(readers.ending_bytes, 0);
    page_readers_cut(&readers, 1000);
    assert_int_equal(recv(fd[1][1], &byte, 1, MSG_DONTWAIT), 0);
    assert_int_equal(page_readers_count_cut(&readers), 2);
    assert_int_equal(page_readers_leave(&reader[1]), 1000);
    page_readers_done(&readers);
    for (int i = 0; i < 2; i++) {
        close(fd[i][0]);
        close(fd[i][1]);
        page[i]->gzip_len = 0;
        snapshot_unref(page[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_readers),
        cmocka_unit_test(test_what_is_ending_counts),
    };
    page_readers_init(&pages.readers);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
