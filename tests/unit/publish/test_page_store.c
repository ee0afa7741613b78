/* The folder of stored pages: what it takes, what it gives back, what it throws away, and that a
 * disk in trouble only turns it off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/publish/page_store.h"
#include "tests/unit/publish/page_world.h"

struct fixture {
    char top[64], folder[96];
    struct page_store *store;
    struct snapshot *page;
    struct page_key key;
    struct str buffer;
    char events[512];
};

static void hear(void *context, const char *event, const char *detail)
{
    struct fixture *f = context;
    assert_non_null(strstr(detail, f->folder));
    strcat(f->events, event);
    strcat(f->events, " ");
}

static struct page_store *open_store(struct fixture *f, uint64_t budget)
{
    struct page_store_options options = {f->folder, budget, {1, 2}, hear, f};
    struct page_store *store = page_store_new(&options);
    assert_non_null(store);
    return store;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->top, "/tmp/test_page_store.XXXXXX");
    assert_non_null(mkdtemp(f->top));
    snprintf(f->folder, sizeof f->folder, "%s/catalogue.db.pages", f->top);
    f->page = page_world_snapshot(6, 5);
    page_world_key(f->page, &f->key);
    f->store = open_store(f, 1 << 20);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    page_store_free(f->store);
    snapshot_unref(f->page);
    str_done(&f->buffer);
    snprintf(command, sizeof command, "rm -rf %s", f->top);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static enum page_store_saved save(struct fixture *f)
{
    bool fresh;
    uint64_t written;
    if (!page_store_ready(f->store, &fresh))
        return PAGE_STORE_FAILED;
    return page_store_save(f->store, &f->key, f->page, &written);
}

static enum page_store_found load(struct fixture *f)
{
    struct page_pieces pieces;
    return page_store_load(f->store, &f->key, &f->buffer, &pieces);
}

static void path_of(const struct fixture *f, const char *name, char out[160])
{
    snprintf(out, 160, "%s/%s", f->folder, name);
}

static bool has(const struct fixture *f, const char *name)
{
    char path[160];
    struct stat found;
    path_of(f, name, path);
    return lstat(path, &found) == 0;
}

static void put(const struct fixture *f, const char *name, const void *bytes, size_t len)
{
    char path[160];
    path_of(f, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    close(fd);
}

static off_t size_of(const struct fixture *f, const char *name)
{
    char path[160];
    struct stat found;
    path_of(f, name, path);
    assert_int_equal(lstat(path, &found), 0);
    return found.st_size;
}

static void what_was_saved_is_loaded(void **state)
{
    struct fixture *f = *state;
    struct page_pieces pieces;
    struct stat found;
    assert_int_equal(load(f), PAGE_STORE_NONE);
    assert_int_equal(stat(f->folder, &found), -1); /* reading makes no folder */
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(stat(f->folder, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0700);
    char path[160];
    path_of(f, "5-1.page", path);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
    assert_int_equal(page_store_bytes(f->store), found.st_size);
    assert_false(has(f, "writing.tmp"));
    assert_int_equal(page_store_load(f->store, &f->key, &f->buffer, &pieces), PAGE_STORE_HIT);
    assert_int_equal(pieces.count, 5);
    assert_memory_equal(pieces.bytes, f->page->gzip + f->page->segments[0].offset, pieces.len);

    /* Of another state it is of no use. */
    f->key.stamp++;
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_int_equal(page_store_bytes(f->store), found.st_size); /* in the place of the old one */
    page_store_remove(f->store, 5, 1);
    assert_int_equal(page_store_bytes(f->store), 0);
    assert_int_equal(load(f), PAGE_STORE_NONE);
    assert_string_equal(f->events, "");
}

static void a_page_without_a_stamp_is_never_loaded(void **state)
{
    struct fixture *f = *state;
    f->key.stamp = 0;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(load(f), PAGE_STORE_NONE);
}

static void what_is_no_file_of_ours_is_not_read(void **state)
{
    struct fixture *f = *state;
    char path[160], target[160];
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    path_of(f, "5-1.page", path);
    path_of(f, "elsewhere", target);
    assert_int_equal(rename(path, target), 0);
    assert_int_equal(symlink("elsewhere", path), 0);
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes: reading it would wait */
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    rmdir(path);
    /* A size that no page has is not made room for. */
    put(f, "5-1.page", "", 0);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    assert_true(f->buffer.capacity < 1 << 20);
    put(f, "5-1.page", "", 0);
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
}

static void a_full_store_takes_no_more(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    uint64_t size = page_store_bytes(f->store);
    page_store_free(f->store);
    f->store = open_store(f, size);
    bool fresh;
    assert_true(page_store_ready(f->store, &fresh));
    assert_true(fresh);
    /* As it stands, and in the place of the old one, it has room; beside it another has not. */
    f->key.stamp++;
    page_store_free(f->store);
    f->store = open_store(f, size);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    f->key.number = 2;
    assert_int_equal(save(f), PAGE_STORE_FULL);
    assert_false(has(f, "5-2.page"));
    assert_true(has(f, "5-1.page"));
    /* A page that has grown out of it leaves nothing old behind. */
    f->key.number = 1;
    snapshot_unref(f->page);
    f->page = page_world_snapshot(6, 9);
    f->key.entries = f->page->entries;
    assert_int_equal(save(f), PAGE_STORE_FULL);
    assert_false(has(f, "5-1.page"));
    assert_int_equal(page_store_bytes(f->store), 0);
    assert_string_equal(f->events, "");
}

static bool keep_5_1(void *context, int64_t index_id, uint32_t number)
{
    (void)context;
    return index_id == 5 && number == 1;
}

static void a_sweep_leaves_the_pages_there_are(void **state)
{
    static const char *const strangers[] = {
        "5-2.page",          "05-1.page",   "0-1.page", "5-0.page", "99999999999999999999-1.page",
        "5-4294967297.page", "writing.tmp",
    };
    static const char *const others[] = {"notes.txt", "5-1.page.bak", "-1.page", "5-.page",
                                         "5.page"};
    struct fixture *f = *state;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    off_t size = size_of(f, "5-1.page");
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        put(f, strangers[i], "x", 1);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        put(f, others[i], "x", 1);
    page_store_sweep(f->store, PAGE_WORLD_EPOCH, keep_5_1, NULL);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        if (has(f, strangers[i]))
            fail_msg("left: %s", strangers[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(has(f, others[i]));
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_int_equal(page_store_bytes(f->store), size);

    page_store_sweep(f->store, "another epoch", keep_5_1, NULL);
    assert_false(has(f, "5-1.page"));
    assert_int_equal(page_store_bytes(f->store), 0);
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
    char command[256];
    bool fresh;
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_true(page_store_ready(f->store, &fresh));
    assert_false(fresh);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    assert_int_equal(load(f), PAGE_STORE_NONE);
    assert_true(page_store_ready(f->store, &fresh));
    assert_true(fresh);
    assert_int_equal(save(f), PAGE_STORE_SAVED);
    assert_int_equal(load(f), PAGE_STORE_HIT);
    assert_string_equal(f->events, "");
}

/* What stands in the way fails as a disk does, for root too. Told once, and reading goes on. */
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
        TEST(what_was_saved_is_loaded),
        TEST(a_page_without_a_stamp_is_never_loaded),
        TEST(what_is_no_file_of_ours_is_not_read),
        TEST(a_full_store_takes_no_more),
        TEST(a_sweep_leaves_the_pages_there_are),
        TEST(one_process_writes),
        TEST(the_folder_may_go_at_any_time),
        TEST(trouble_turns_it_off),
        TEST(no_folder_can_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
