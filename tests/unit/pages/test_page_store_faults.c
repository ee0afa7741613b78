/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The folder of stored pages in trouble: whatever is in it, and whatever the disk says, it is
 * only turned off for a while. */
#include "tests/unit/pages/store_world.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define RETRY_MS 60000

/* In the place of libc's: the clock stands still, but for what a test waits. */
static int64_t waited_ms;

int clock_gettime(clockid_t clock, struct timespec *out)
{
    (void)clock;
    *out = (struct timespec){.tv_sec = 1000 + waited_ms / 1000};
    return 0;
}

/* Errors of a disk. 0: none. */
static int read_error, rename_error;

ssize_t pread(int fd, void *data, size_t len, off_t offset)
{
    if (read_error == 0)
        return syscall(SYS_pread64, fd, data, len, offset);
    errno = read_error;
    return -1;
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (rename_error == 0)
        return (int)syscall(SYS_renameat, from_fd, from, to_fd, to);
    errno = rename_error;
    return -1;
}

/* What the clock says decides when the store is tried again. */
static void open_restless(struct fixture *f)
{
    struct page_store_options options = {f->folder, 1 << 20, {1, 2}, hear, f, RETRY_MS};
    page_store_free(f->store);
    f->store = page_store_new(&options);
    assert_non_null(f->store);
}

static void wait_retry(void)
{
    waited_ms += RETRY_MS;
}

/* A file may have `bytes` at most: a write fails as on a disk that is full. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Told once for all pages and tries, nothing half written is left, and the end is reported too. */
static void a_full_disk_is_reported_once_and_gone_again(void **state)
{
    struct fixture *f = *state;
    open_restless(f);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    f->key.stamp++;
    limit_files(100);
    enum page_store_saved first = save(f), second = save(f);
    wait_retry();
    enum page_store_saved third = save(f);
    limit_files(RLIM_INFINITY);
    assert_int_equal(first, PAGE_STORE_FAILED);
    assert_int_equal(second, PAGE_STORE_FAILED);
    assert_int_equal(third, PAGE_STORE_FAILED);
    assert_false(has(f, "writing.tmp"));
    assert_string_equal(f->events, "page-store-off ");
    assert_int_equal(load(f), PAGE_STORE_MISFIT); /* what is there is of the state before */
    wait_retry();
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_string_equal(f->events, "page-store-off page-store-on ");
}

static void a_rename_that_fails_leaves_the_old_file(void **state)
{
    struct fixture *f = *state;
    open_restless(f);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    uint64_t bytes = page_store_bytes(f->store);
    f->key.stamp++;
    rename_error = EIO;
    enum page_store_saved saved = save(f);
    rename_error = 0;
    assert_int_equal(saved, PAGE_STORE_FAILED);
    assert_false(has(f, "writing.tmp"));
    assert_int_equal(page_store_bytes(f->store), bytes);
    f->key.stamp--;
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_string_equal(f->events, "page-store-off ");
}

/* Not asked again for each page, and read again when its time is over. */
static void a_disk_that_cannot_be_read_is_left_alone(void **state)
{
    struct fixture *f = *state;
    open_restless(f);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    read_error = EIO;
    enum page_store_found first = load(f);
    read_error = 0;
    assert_int_equal(first, PAGE_STORE_MISFIT);
    assert_int_equal(load(f), PAGE_STORE_NONE);
    assert_string_equal(f->events, "page-store-off ");
    wait_retry();
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_string_equal(f->events, "page-store-off page-store-on ");
}

static void one_process_writes(void **state)
{
    struct fixture *f = *state;
    struct page_pieces pieces;
    bool fresh;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    struct page_store *second = open_store(f, 1 << 20);
    assert_false(page_store_ready(second, &fresh));
    assert_int_equal(page_store_load(second, &f->key, &f->buffer, &pieces), PAGE_STORE_HIT);
    page_store_free(f->store); /* the first one ends */
    f->store = second;
    assert_true(page_store_ready(second, &fresh));
    assert_true(fresh);
    assert_string_equal(f->events, "");
}

static void the_folder_may_go_at_any_time(void **state)
{
    struct fixture *f = *state;
    bool fresh;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_true(page_store_ready(f->store, &fresh));
    assert_false(fresh);
    scratch_remove(f->folder);
    assert_int_equal(load(f), PAGE_STORE_NONE);
    assert_true(page_store_ready(f->store, &fresh));
    assert_true(fresh);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_string_equal(f->events, "");
}

/* What is in the way fails as a disk does, for root too. Told once, and reading goes on. */
static void trouble_turns_it_off(void **state)
{
    struct fixture *f = *state;
    char path[160];
    bool fresh;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    path_of(f, "writing.tmp", path);
    assert_int_equal(mkdir(path, 0700), 0);
    f->key.stamp++;
    assert_int_equal(save(f), PAGE_STORE_FAILED);
    assert_string_equal(f->events, "page-store-off ");
    rmdir(path);
    assert_false(page_store_ready(f->store, &fresh)); /* left alone for a while */
    f->key.stamp--;
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_string_equal(f->events, "page-store-off ");
}

/* A pipe that nobody reads would be waited for, another name of some file overwritten. */
static void nothing_that_stands_there_is_written_into(void **state)
{
    struct fixture *f = *state;
    char path[160], other[160];
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    path_of(f, "writing.tmp", path);
    path_of(f, "precious", other);
    put(f, "precious", "12345", 5);
    alarm(300);
    f->key.stamp++;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(link(other, path), 0);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(symlink("precious", path), 0);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    alarm(0);
    assert_int_equal(size_of(f, "precious"), 5);
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_string_equal(f->events, "");
}

/* The folder behind a link is somebody else's: it keeps its mode and its files. */
static void a_link_is_no_folder(void **state)
{
    struct fixture *f = *state;
    char path[160];
    struct stat found;
    bool fresh;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    snprintf(path, sizeof path, "%s/moved", f->top);
    assert_int_equal(rename(f->folder, path), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(symlink("moved", f->folder), 0);
    assert_false(page_store_ready(f->store, &fresh));
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0755);
    assert_true(has(f, "5-1.page"));
    assert_string_equal(f->events, "page-store-off ");
}

static void no_folder_can_be_made(void **state)
{
    struct fixture *f = *state;
    bool fresh;
    int fd = open(f->folder, O_WRONLY | O_CREAT, 0600); /* a file has its name */
    close(fd);
    assert_false(page_store_ready(f->store, &fresh));
    assert_string_equal(f->events, "page-store-off ");
    assert_int_equal(load(f), PAGE_STORE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_full_disk_is_reported_once_and_gone_again),
        TEST(a_rename_that_fails_leaves_the_old_file),
        TEST(a_disk_that_cannot_be_read_is_left_alone),
        TEST(one_process_writes),
        TEST(the_folder_may_go_at_any_time),
        TEST(trouble_turns_it_off),
        TEST(nothing_that_stands_there_is_written_into),
        TEST(a_link_is_no_folder),
        TEST(no_folder_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
