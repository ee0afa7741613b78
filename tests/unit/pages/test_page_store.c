/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The folder of stored pages: what it takes, what it gives back, what it throws away. */
#include "tests/unit/pages/store_world.h"

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
    /* A size that no page has, or not this one, is not made room for. */
    put(f, "5-1.page", "", 0);
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    assert_int_equal(truncate(path, PAGE_FILE_MAX_BYTES), 0);
    assert_int_equal(load(f), PAGE_STORE_MISFIT);
    assert_int_equal(rename(target, path), 0);
    assert_int_equal(truncate(path, PAGE_FILE_MAX_BYTES), 0);
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
    resource_unref(f->page);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(what_was_saved_is_loaded),
        TEST(a_page_without_a_stamp_is_never_loaded),
        TEST(what_is_no_file_of_ours_is_not_read),
        TEST(a_full_store_takes_no_more),
        TEST(a_sweep_leaves_the_pages_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
