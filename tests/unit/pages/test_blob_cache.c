/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The cache of served files: loaded once however many ask, looked at again, replaced. */
#include "tests/unit/pages/blob_world.h"

#include "server/base/clock.h"
#include "tests/unit/pages/gunzip.h"

/* As files are dated: time() is behind by up to a tick, and so in the second before for a while. */
static int64_t now_s(void)
{
    return clock_unix_ns() / CLOCK_SECOND_NS;
}

static void test_loaded_once(void **state)
{
    struct world *w = *state;
    struct waiting x = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

    put_text(w, "a.xml", "<urlset/>", 100);
    start(w, 1 << 20, 60000);
    assert_null(served_files_get(w->files, 0, "a.xml"));
    pthread_mutex_lock(&w->gate);
    for (int i = 0; i < 100; i++)
        served_files_await(w->files, 0, "a.xml", 1, arrived, &x);
    assert_int_equal(x.answers, 0);
    pthread_mutex_unlock(&w->gate);
    wait_for(&x, 100);
    assert_int_equal(x.result, AWAIT_DONE);
    assert_int_equal(atomic_load(&w->opened), 1);

    struct resource *again = served_files_get(w->files, 0, "a.xml");
    assert_ptr_equal(again, x.blob);
    resource_unref(again);
    resource_unref(x.blob);
    assert_null(served_files_get(w->files, 1, "a.xml")); /* another source's */
    assert_int_equal(stats_of(w).loads, 1);
    assert_int_equal(stats_of(w).bytes, strlen("<urlset/>"));
}

static void test_representations(void **state)
{
    struct world *w = *state;
    char *list = text_of(5000, 0), *text = text_of(5000, 0);
    text[0] = '<';
    uint8_t *noise = noise_of(5000, 1);
    static const struct {
        const char *path, *type;
        bool gzip, list;
    } rows[] = {
        {"a.xml", "application/xml; charset=utf-8", true, false},
        {"list.xml", "text/plain; charset=utf-8", true, true},
        {"a.TXT", "text/plain; charset=utf-8", true, false},
        {"a.xml.gz", "application/octet-stream", false, false}, /* by its content it is not gzip */
        {"a", "application/xml; charset=utf-8", true, false},
    };

    start(w, 1 << 20, 60000);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t begun = now_s();
        put_text(w, rows[i].path, rows[i].list ? list : text, 100);
        struct resource *b = get(w, rows[i].path);
        assert_string_equal(b->content_type, rows[i].type);
        assert_int_equal(b->gzip != NULL, rows[i].gzip);
        assert_in_range(b->changed_at, begun - 101, now_s() - 99);
        assert_false(atomic_load(&b->same_second));
        if (b->gzip != NULL) {
            char *back = gunzip(b);
            assert_int_equal(b->raw_len, 5000);
            assert_memory_equal(back, rows[i].list ? list : text, 5000);
            free(back);
            assert_int_equal(strlen(b->etag_gzip), 34);
            assert_string_not_equal(b->etag_gzip, b->etag_identity);
        }
        assert_int_equal(strlen(b->etag_identity), 34);
        resource_unref(b);
    }
    /* What gzip would not make smaller by a tenth, what is small, what is gzip whatever its name.
     */
    put(w, "noise.xml", noise, 5000, 100);
    put_text(w, "small.xml", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 100);
    put(w, "empty.xml", "", 0, 100);
    put(w, "zipped.xml", "\x1f\x8b\x08 and more", 12, 100);
    struct resource *b = get(w, "noise.xml");
    assert_null(b->gzip);
    resource_unref(b);
    b = get(w, "small.xml");
    assert_null(b->gzip);
    resource_unref(b);
    b = get(w, "empty.xml");
    assert_int_equal(b->raw_len, 0);
    resource_unref(b);
    b = get(w, "zipped.xml");
    assert_string_equal(b->content_type, "application/gzip");
    resource_unref(b);
    free(list);
    free(text);
    free(noise);
}

static void test_replaced(void **state)
{
    struct world *w = *state;
    struct resource *b;

    start(w, 1 << 20, 0); /* looked at for each request */
    put_text(w, "r.xml", "<one/>", 100);
    expect_text(w, "r.xml", "<one/>");
    put_text(w, "r.xml", "<two/>", 50); /* as long as the first */
    expect_text(w, "r.xml", "<two/>");
    forget(w, "r.xml");
    assert_int_equal(ask(w, "r.xml", &b), AWAIT_NONE);
    assert_int_equal(stats_of(w).files, 0);
    assert_int_equal(stats_of(w).bytes, 0);
    put_text(w, "r.xml", "<three/>", 10);
    expect_text(w, "r.xml", "<three/>");
}

/* Between two looks memory is served; an invalidated source is looked at before. */
static void test_fresh_and_invalidated(void **state)
{
    struct world *w = *state;

    start(w, 1 << 20, 60000);
    put_text(w, "f.xml", "<one/>", 100);
    expect_text(w, "f.xml", "<one/>");
    put_text(w, "f.xml", "<two/>", 100);
    expect_text(w, "f.xml", "<one/>");
    served_files_invalidate(w->files, 1);
    expect_text(w, "f.xml", "<one/>");
    served_files_invalidate(w->files, 0);
    assert_null(served_files_get(w->files, 0, "f.xml"));
    expect_text(w, "f.xml", "<two/>");
}

static void test_invalidated_while_loading(void **state)
{
    struct world *w = *state;
    struct waiting x = {.lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER};

    start(w, 1 << 20, 60000);
    put_text(w, "i.xml", "<one/>", 100);
    pthread_mutex_lock(&w->gate);
    served_files_await(w->files, 0, "i.xml", 1, arrived, &x);
    served_files_invalidate(w->files, 0);
    pthread_mutex_unlock(&w->gate);
    wait_for(&x, 1);
    resource_unref(x.blob);
    assert_in_range(atomic_load(&w->opened), 1, 2); /* the worker may begin behind it */
    expect_text(w, "i.xml", "<one/>");
}

/* An unchanged file is looked at, not read; one that was touched is read, and keeps its date. */
static void test_unchanged(void **state)
{
    struct world *w = *state;
    struct timespec wait = {.tv_sec = 2, .tv_nsec = 200000000};

    start(w, 1 << 20, 0);
    char *text = text_of(5000, 0);
    put_text(w, "u.xml", text, 1000);
    struct resource *first = get(w, "u.xml");
    /* It was changed this very second: another change might not show yet. */
    struct resource *second = get(w, "u.xml");
    assert_int_equal(stats_of(w).loads, 2);
    assert_ptr_equal(first, second);
    nanosleep(&wait, NULL);
    resource_unref(second);
    second = get(w, "u.xml");
    uint64_t loads = stats_of(w).loads;
    for (int i = 0; i < 5; i++) {
        resource_unref(second);
        second = get(w, "u.xml");
        assert_ptr_equal(first, second);
    }
    assert_int_equal(stats_of(w).loads, loads);
    assert_int_equal(stats_of(w).checks, loads + 5);

    int64_t modified_at = first->changed_at;
    put_text(w, "u.xml", text, 500);
    resource_unref(second);
    second = get(w, "u.xml");
    assert_ptr_equal(first, second);
    assert_int_equal(second->changed_at, modified_at);
    resource_unref(first);
    resource_unref(second);
    free(text);
}

/* The date of other content is a later one, whatever the file says; and where it cannot be, it is
 * known that two bear it. */
static void test_dates_never_go_back(void **state)
{
    struct world *w = *state;

    start(w, 1 << 20, 0);
    put_text(w, "d.xml", "<one/>", 1000);
    struct resource *b = get(w, "d.xml");
    int64_t first = b->changed_at;
    assert_false(atomic_load(&b->same_second));
    resource_unref(b);
    put_text(w, "d.xml", "<rollback/>", 5000);
    b = get(w, "d.xml");
    int64_t second = b->changed_at;
    assert_true(second > first && second >= now_s() - 600);
    assert_true(atomic_load(&b->same_second) || second < now_s());
    resource_unref(b);
    put_text(w, "d.xml", "<again/>", 9000);
    b = get(w, "d.xml");
    assert_true(b->changed_at >= second);
    assert_true(b->changed_at > second || atomic_load(&b->same_second));
    resource_unref(b);
    /* Nor where the file was gone meanwhile. */
    put_text(w, "d.xml", "<fourth/>", 1000);
    b = get(w, "d.xml");
    int64_t fourth = b->changed_at;
    resource_unref(b);
    forget(w, "d.xml");
    assert_int_equal(ask(w, "d.xml", &b), AWAIT_NONE);
    put_text(w, "d.xml", "<fifth/>", 1000);
    b = get(w, "d.xml");
    assert_true(b->changed_at > fourth || atomic_load(&b->same_second));
    assert_true(b->changed_at >= fourth);
    resource_unref(b);
    /* A date ahead of the clock. */
    put_text(w, "e.xml", "<future/>", 0);
    char name[200];
    struct timespec ahead[2] = {{.tv_sec = now_s() + 9999}, {.tv_sec = now_s() + 9999}};
    snprintf(name, sizeof name, "%s/0-e.xml", w->folder);
    assert_int_equal(utimensat(AT_FDCWD, name, ahead, 0), 0);
    b = get(w, "e.xml");
    assert_in_range(b->changed_at, now_s() - 600, now_s());
    resource_unref(b);
    /* The very date of the content before, as after rsync -t. */
    const struct timespec fixed[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    snprintf(name, sizeof name, "%s/0-same.xml", w->folder);
    for (int i = 0; i < 2; i++) {
        put_text(w, "same.xml", i == 0 ? "<one/>" : "<two/>", 0);
        assert_int_equal(utimensat(AT_FDCWD, name, fixed, 0), 0);
        b = get(w, "same.xml");
        if (i == 0)
            assert_int_equal(b->changed_at, fixed[0].tv_sec);
        else
            assert_in_range(b->changed_at, now_s() - 600, now_s());
        resource_unref(b);
    }
}

static void test_what_is_none(void **state)
{
    struct world *w = *state;
    char name[200];
    struct resource *b;

    start(w, 1 << 20, 0);
    assert_int_equal(ask(w, "absent.xml", &b), AWAIT_NONE);
    snprintf(name, sizeof name, "%s/0-folder.xml", w->folder);
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(ask(w, "folder.xml", &b), AWAIT_NONE);
    snprintf(name, sizeof name, "%s/0-pipe.xml", w->folder);
    assert_int_equal(mkfifo(name, 0700), 0);
    assert_int_equal(ask(w, "pipe.xml", &b), AWAIT_NONE);
    put_text(w, "large.xml", "<x/>", 100);
    snprintf(name, sizeof name, "%s/0-large.xml", w->folder);
    assert_int_equal(truncate(name, 52428801), 0);
    assert_int_equal(ask(w, "large.xml", &b), AWAIT_NONE);
    assert_int_equal(stats_of(w).bytes, 0);

    /* Trouble that passes: what was read last is served on. */
    put_text(w, "t.xml", "<one/>", 100);
    w->error = EIO;
    assert_int_equal(ask(w, "t.xml", &b), AWAIT_UNAVAILABLE);
    w->error = 0;
    expect_text(w, "t.xml", "<one/>");
    put_text(w, "t.xml", "<two/>", 100);
    w->error = EMFILE;
    expect_text(w, "t.xml", "<one/>");
    w->error = 0;
    expect_text(w, "t.xml", "<two/>");
    assert_int_equal(stats_of(w).failures, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loaded_once),
        cmocka_unit_test(test_representations),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_fresh_and_invalidated),
        cmocka_unit_test(test_invalidated_while_loading),
        cmocka_unit_test(test_unchanged),
        cmocka_unit_test(test_dates_never_go_back),
        cmocka_unit_test(test_what_is_none),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
