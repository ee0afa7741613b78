/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Nothing leads out of the folder: not a path, not a symlink, not a race. */
#include "tests/unit/sources/folder.h"

#include <pthread.h>
#include <stdatomic.h>

#include "server/sources/folder/beneath.h"
#include "server/sources/folder/folder.h"

typedef int opener(int top, const char *path, int flags);
static opener *const openers[] = {beneath_open, beneath_open_by_steps};

static void close_open(int fd)
{
    assert_true(fd >= 0);
    close(fd);
}

static void paths_do_not_lead_out(void **state)
{
    static const char *const bad[] = {"",        ".",    "..",       "../x", "a/../b.xml",
                                      "/etc",    "a//b", "a/",       "a/.",  "a/..",
                                      "./b.xml", "/",    "a/../../x"};
    struct temp_folder *f = *state;
    int top = beneath_open_top(f->path);
    folder_do(f, "mkdir a && echo x > a/b.xml && echo x > b.xml");
    for (size_t o = 0; o < 2; o++) {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            errno = 0;
            assert_int_equal(openers[o](top, bad[i], O_RDONLY), -1);
            assert_int_equal(errno, EINVAL);
        }
        close_open(openers[o](top, "a/b.xml", O_RDONLY));
        close_open(openers[o](top, "a", O_RDONLY | O_DIRECTORY));
        assert_int_equal(openers[o](top, "a/c.xml", O_RDONLY), -1);
        assert_int_equal(errno, ENOENT);
    }
    close(top);
}

static void symlinks_do_not_lead_out(void **state)
{
    struct temp_folder *f = *state;
    int top = beneath_open_top(f->path);
    struct stat st;
    folder_do(f, "echo secret > $OUT/x.xml; mkdir a; echo x > a/b.xml; ln -s a in; ln -s ../a a/up;"
                 "ln -s $OUT out; ln -s $OUT/x.xml out.xml; ln -s a/b.xml in.xml;"
                 "ln -s $PWD/a/b.xml absolute.xml; ln -s loop.xml loop.xml; ln -s / root;"
                 "ln -s /proc/self/root magic; ln -s ../$(basename $OUT)/x.xml dots.xml");
    static const struct {
        const char *path;
        int error;
    } cases[] = {{"out/x.xml", EXDEV}, {"out.xml", EXDEV},  {"absolute.xml", EXDEV},
                 {"loop.xml", ELOOP},  {"root/etc", EXDEV}, {"magic/etc", EXDEV},
                 {"dots.xml", EXDEV}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(beneath_open(top, cases[i].path, O_RDONLY), -1);
        assert_int_equal(errno, cases[i].error);
        assert_int_equal(beneath_open_by_steps(top, cases[i].path, O_RDONLY), -1);
        assert_int_equal(beneath_open_by_steps(top, cases[i].path, O_PATH), -1);
        assert_true(errno == ELOOP || errno == ENOTDIR);
    }
    close_open(beneath_open_file(top, "in/b.xml", &st));
    close_open(beneath_open_file(top, "a/up/b.xml", &st));
    close_open(beneath_open_file(top, "in.xml", &st));
    assert_int_equal(beneath_open_by_steps(top, "in/b.xml", O_RDONLY), -1);
    assert_int_equal(beneath_open_by_steps(top, "in.xml", O_RDONLY), -1);
    close(top);
}

static void only_regular_files_and_no_waiting(void **state)
{
    struct temp_folder *f = *state;
    int top = beneath_open_top(f->path);
    struct stat st;
    folder_do(f, "mkfifo fifo.xml; mkdir folder.xml; echo x > file.xml");
    assert_int_equal(beneath_open_file(top, "fifo.xml", &st), -1);
    assert_int_equal(errno, ENXIO);
    assert_int_equal(beneath_open_file(top, "folder.xml", &st), -1);
    assert_int_equal(errno, ENXIO);
    close_open(beneath_open_file(top, "file.xml", &st));
    assert_int_equal(st.st_size, 2);
    close(top);
}

struct swapping {
    const struct temp_folder *folder;
    atomic_bool stop;
};

/* A file becomes a symlink to the outside and back, and so does the folder above another. */
static void *swap(void *context)
{
    struct swapping *s = context;
    char secret[128], a[128], link[128], file[128], dir[128], out[128], put[128];
    const char *path = s->folder->path;
    snprintf(secret, sizeof secret, "%s/x.xml", s->folder->outside);
    snprintf(a, sizeof a, "%s/a.xml", path);
    snprintf(link, sizeof link, "%s/link", path);
    snprintf(file, sizeof file, "%s/file", path);
    snprintf(dir, sizeof dir, "%s/d", path);
    snprintf(out, sizeof out, "%s/outlink", path);
    snprintf(put, sizeof put, "%s/kept", path);
    while (!atomic_load(&s->stop)) {
        unlink(link);
        assert_int_equal(symlink(secret, link), 0);
        assert_int_equal(rename(link, a), 0);
        FILE *plain = fopen(file, "w");
        fputs("plain", plain);
        fclose(plain);
        assert_int_equal(rename(file, a), 0);
        assert_int_equal(rename(dir, put), 0);
        assert_int_equal(symlink(s->folder->outside, dir), 0);
        assert_int_equal(unlink(dir), 0);
        assert_int_equal(rename(put, dir), 0);
    }
    (void)out;
    return NULL;
}

static void a_swap_between_check_and_open_gains_nothing(void **state)
{
    struct swapping s = {.folder = *state};
    pthread_t thread;
    folder_do(s.folder, "echo secret > $OUT/x.xml; echo plain > a.xml; mkdir d;"
                        "echo plain > d/x.xml");
    int top = beneath_open_top(s.folder->path);
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    unsigned opened = 0, refused = 0;
    for (int i = 0; i < 40000; i++) {
        const char *path = i % 2 ? "d/x.xml" : "a.xml";
        char text[16] = "";
        struct stat st;
        int fd = i % 8 < 4 ? beneath_open_file(top, path, &st)
                           : beneath_open_by_steps(top, path, O_RDONLY);
        if (fd < 0) {
            refused++;
            continue;
        }
        opened++;
        assert_true(read(fd, text, sizeof text - 1) >= 0);
        close(fd);
        assert_memory_not_equal(text, "secret", 6);
    }
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    print_message("%u opened, %u refused\n", opened, refused);
    assert_true(opened > 0);
    close(top);
}

static void a_file_that_does_not_hold_still_is_reported(void **state)
{
    struct temp_folder *f = *state;
    int top = beneath_open_top(f->path);
    struct sitemap_file file;
    const struct sitemap_expect expect = {.now = time(NULL)};
    struct stat st;
    folder_sitemap(f, "a.xml", "a", "", 100);
    assert_int_equal(folder_read_file(top, "a.xml", &expect, NULL, &st, &file), READ_DONE);
    assert_int_equal(file.kind, SITEMAP_FILE_URLSET);
    assert_int_equal(folder_read_file(top, "b.xml", &expect, NULL, &st, &file), READ_GONE);
    atomic_bool stop = true;
    assert_int_equal(folder_read_file(top, "a.xml", &expect, &stop, &st, &file), READ_STOPPED);
    close(top);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_do_not_lead_out),
        TEST(symlinks_do_not_lead_out),
        TEST(only_regular_files_and_no_waiting),
        TEST(a_swap_between_check_and_open_gains_nothing),
        TEST(a_file_that_does_not_hold_still_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
