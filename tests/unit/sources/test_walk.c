/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a folder's listing finds, and what it keeps out of. */
#include "tests/unit/sources/folder.h"

#include <sys/resource.h>

#include "server/sources/folder/beneath.h"
#include "server/sources/folder/walk.h"
#include "server/sources/sources.h"

struct seen {
    char text[65536]; /* "path\n" for each file, "!code path\n" for each problem */
    size_t len, files, folders;
    size_t stop_after; /* files; 0: never */
};

static void note(struct seen *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(s->text + s->len, sizeof s->text - s->len, format, arguments);
    va_end(arguments);
    if (s->len + (size_t)len < sizeof s->text)
        s->len += (size_t)len;
}

static bool on_folder(void *context, int fd, const char *path)
{
    struct seen *s = context;
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_not_equal(path[0], '/');
    s->folders++;
    return true;
}

static bool on_file(void *context, const char *path, const struct stat *st)
{
    struct seen *s = context;
    assert_true(S_ISREG(st->st_mode));
    note(s, "%s\n", path);
    return ++s->files != s->stop_after;
}

static bool on_problem(void *context, const char *path, const char *code, const char *detail,
                       bool folder)
{
    assert_true(strlen(detail) > 5);
    assert_true(strlen(path) <= SOURCE_MAX_PATH_BYTES);
    note(context, "!%s%s %s\n", code, folder ? "/" : "", path);
    return true;
}

static struct seen seen;
static unsigned looks, looks_left;

static bool on_look(void *context)
{
    (void)context;
    return ++looks <= looks_left;
}

static struct walk_result walk(const struct temp_folder *f, const char *const *excludes,
                               enum walk_status want)
{
    struct match match = {NULL, excludes};
    struct walk_visit visit = {on_folder, on_file, on_problem, NULL, &seen, 0};
    struct walk_result result;
    size_t stop_after = seen.stop_after;
    int top = beneath_open_top(f->path);
    seen.len = seen.files = seen.folders = 0;
    seen.text[0] = '\0';
    seen.stop_after = stop_after;
    assert_int_equal(walk_folder(top, "", &match, &visit, &result), want);
    close(top);
    return result;
}

static void paths_come_in_byte_order(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "mkdir -p a a-b a0 z/y; touch a.xml a/x.xml a/b.xml a-b/x.xml a0/x.xml b.txt"
                 " z/y/q.xml.gz z.xml robots.txt x.html Z.xml");
    walk(f, NULL, WALK_DONE);
    assert_string_equal(seen.text, "Z.xml\na-b/x.xml\na.xml\na/b.xml\na/x.xml\na0/x.xml\nb.txt\n"
                                   "robots.txt\nz.xml\nz/y/q.xml.gz\n");
    assert_int_equal(seen.folders, 6);
}

/* Names that match nothing call none of the other functions. */
static void a_walk_can_be_stopped_among_names_that_do_not_match(void **state)
{
    static const char *const patterns[] = {"nothing", NULL};
    struct temp_folder *f = *state;
    struct match match = {patterns, NULL};
    struct walk_visit visit = {on_folder, on_file, on_problem, on_look, &seen, 0};
    struct walk_result result;
    const unsigned in_all = 2 * 2; /* while they are read, and while they are compared */
    folder_do(f, "for i in $(seq %u); do : >$i; done", 2 * WALK_LOOK_NAMES);
    for (looks_left = 0; looks_left <= in_all; looks_left++) {
        looks = 0;
        int top = beneath_open_top(f->path);
        assert_int_equal(walk_folder(top, "", &match, &visit, &result),
                         looks_left < in_all ? WALK_STOPPED : WALK_DONE);
        assert_int_equal(looks, looks_left < in_all ? looks_left + 1 : in_all);
        close(top);
    }
}

static void excluded_and_hidden_folders_are_not_entered(void **state)
{
    static const char *const excludes[] = {"drafts/*", "*-old.xml", NULL};
    struct temp_folder *f = *state;
    folder_do(f, "mkdir -p drafts/deep .git k; touch drafts/a.xml drafts/deep/a.xml .git/a.xml"
                 " k/a.xml k/a-old.xml .b.xml");
    walk(f, excludes, WALK_DONE);
    assert_string_equal(seen.text, "k/a.xml\n");
}

static void symlinks_are_followed_beneath_alone(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "mkdir a; touch a/x.xml $OUT/secret.xml; ln -s a in; ln -s $OUT out;"
                 "ln -s $OUT/secret.xml s.xml; ln -s a/x.xml l.xml; ln -s nowhere.xml d.xml;"
                 "ln -s self.xml self.xml; ln -s ../a a/up; ln -s .. a/top; ln -s / a/root");
    struct walk_result result = walk(f, NULL, WALK_DONE);
    assert_string_equal(seen.text, "a/x.xml\nin/x.xml\nl.xml\n!unreadable s.xml\n"
                                   "!unreadable self.xml\n");
    assert_int_equal(result.links, 2);
    assert_int_equal(result.outside, 3); /* out, a/root, in/root */
    assert_string_equal(result.outside_path, "a/root");
}

/* Each of ten folders links to all others: ways without a loop are a million. */
static void links_do_not_multiply(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "for i in 0 1 2 3 4 5 6 7 8 9; do mkdir d$i; for j in 0 1 2 3 4 5 6 7 8 9; do"
                 " ln -s ../d$j d$i/l$j; done; done; touch a.xml");
    walk(f, NULL, WALK_DONE);
    assert_true(seen.folders <= WALK_MAX_LINKED_FOLDERS + 11);
    assert_non_null(strstr(seen.text, "!too-deep/"));
}

static void what_is_no_file_is_a_problem(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "mkfifo p.xml; mkfifo pipe; mkdir d.xml; touch d.xml/a.xml");
    walk(f, NULL, WALK_DONE);
    assert_string_equal(seen.text, "d.xml/a.xml\n!unreadable p.xml\n");
}

static void odd_names(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "touch \"$(printf 'a\\377.xml')\" \"$(printf 'b\\nc.xml')\" 'd e.xml'"
                 " \"$(printf '\\303\\274.xml')\" \"$(printf 'n\\302\\205.xml')\" ./-f.xml"
                 " \"$(printf 'q\\377.html')\" 'back\\slash.xml';"
                 "mkdir \"$(printf 'm\\001')\"; touch \"$(printf 'm\\001/a.xml')\"");
    walk(f, NULL, WALK_DONE);
    assert_string_equal(seen.text, "-f.xml\n!bad-name a\\xFF.xml\n!bad-name b\\x0Ac.xml\n"
                                   "back\\slash.xml\nd e.xml\n!bad-name m\\x01/a.xml\n"
                                   "!bad-name n\\xC2\\x85.xml\n\xc3\xbc.xml\n");
}

static void too_deep_and_too_long(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "p=; for i in $(seq 33); do p=${p}d/; mkdir $p; touch ${p}a.xml; done");
    walk(f, NULL, WALK_DONE);
    assert_int_equal(seen.files, 32);
    assert_non_null(strstr(seen.text, "!too-deep/ d/d/d/"));
    folder_do(f, "rm -r d; n=$(printf '%%0250d' 0); mkdir -p $n/$n/$n/$n; touch $n/$n/$n/a.xml;"
                 "cd $n/$n/$n/$n; touch a.xml 0123456789012345.xml 01234567890123456789.xml");
    walk(f, NULL, WALK_DONE);
    assert_int_equal(seen.files, 3); /* 1,003 + 1 + 20 bytes fit; 24 do not */
    assert_non_null(strstr(seen.text, "!path-too-long "));
}

/* Not a word about the folder: its files are neither gone nor unreadable. */
static void a_lack_of_descriptors_fails_the_walk(void **state)
{
    struct temp_folder *f = *state;
    struct rlimit before;
    folder_do(f, "mkdir -p a/b/c/d/e/f/g/h; touch a/b/c/d/e/f/g/h/x.xml");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    close(next);
    struct rlimit low = {.rlim_cur = (rlim_t)next + 6, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct walk_result result = walk(f, NULL, WALK_FAILED);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(result.error, EMFILE);
    assert_string_equal(seen.text, "");
}

static void a_walk_ends_when_stopped(void **state)
{
    struct temp_folder *f = *state;
    folder_do(f, "mkdir a; touch a/1.xml a/2.xml b.xml c.xml");
    seen.stop_after = 2;
    walk(f, NULL, WALK_STOPPED);
    seen.stop_after = 0;
    assert_string_equal(seen.text, "a/1.xml\na/2.xml\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_setup, folder_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(paths_come_in_byte_order),
        TEST(excluded_and_hidden_folders_are_not_entered),
        TEST(symlinks_are_followed_beneath_alone),
        TEST(links_do_not_multiply),
        TEST(what_is_no_file_is_a_problem),
        TEST(odd_names),
        TEST(too_deep_and_too_long),
        TEST(a_lack_of_descriptors_fails_the_walk),
        TEST(a_walk_ends_when_stopped),
        TEST(a_walk_can_be_stopped_among_names_that_do_not_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
