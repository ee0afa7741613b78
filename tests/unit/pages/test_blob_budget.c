/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The cache of served files within its budget, and with many asking while the files change. */
#include "tests/unit/pages/blob_world.h"

static void test_eviction_and_budget(void **state)
{
    struct world *w = *state;
    uint8_t *noise = noise_of(100000, 3);
    char path[20];
    struct resource *held[3], *b;

    for (int i = 0; i < 10; i++) {
        noise[0] = (uint8_t)i;
        snprintf(path, sizeof path, "%d.xml.gz", i);
        put(w, path, noise, 100000, 100);
    }
    start(w, 450000, 60000); /* a load may take 200,000 */
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%d.xml.gz", i);
        resource_unref(get(w, path));
        b = served_files_get(w->files, 0, "0.xml.gz"); /* the first stays in use */
        assert_non_null(b);
        resource_unref(b);
        assert_true(stats_of(w).bytes <= 450000);
    }
    assert_true(stats_of(w).evictions > 0);
    assert_null(served_files_get(w->files, 0, "1.xml.gz"));
    /* Those that are read stay, since nothing is won by their going: nothing more is loaded. */
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%d.xml.gz", i + 5);
        held[i] = get(w, path);
    }
    assert_int_equal(ask(w, "9.xml.gz", &b), AWAIT_UNAVAILABLE);
    assert_int_equal(stats_of(w).files, 3);
    assert_int_equal(stats_of(w).bytes, 300000);
    assert_int_equal(held[0]->raw_len, 100000);
    resource_unref(held[1]);
    resource_unref(get(w, "9.xml.gz"));
    assert_null(served_files_get(w->files, 0, "6.xml.gz")); /* it gave way */
    resource_unref(held[0]);
    resource_unref(held[2]);
    resource_unref(get(w, "6.xml.gz"));
    free(noise);
}

struct cutting {
    struct resource *held[4];
    uint64_t asked;
    unsigned calls;
};

/* The first call gives nothing back, as where nobody is slow yet. */
static void cut(void *context, enum held_kind kind, uint64_t bytes)
{
    struct cutting *c = context;

    assert_int_equal(kind, HELD_FILE);
    c->asked = bytes;
    if (++c->calls < 2)
        return;
    resource_unref(c->held[0]);
    c->held[0] = NULL;
}

/* Who reads slowly is cut for who waits, which is not told that all is busy. */
static void test_slow_readers_give_way(void **state)
{
    struct world *w = *state;
    uint8_t *noise = noise_of(100000, 3);
    struct cutting c = {.calls = 0};
    char path[20];

    for (int i = 0; i < 5; i++) {
        noise[0] = (uint8_t)i;
        snprintf(path, sizeof path, "%d.xml.gz", i);
        put(w, path, noise, 100000, 100);
    }
    w->cut = cut;
    w->cut_context = &c;
    start(w, 450000, 60000);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%d.xml.gz", i);
        c.held[i] = get(w, path);
    }
    assert_int_equal(c.calls, 0);
    resource_unref(get(w, "4.xml.gz"));
    assert_int_equal(c.calls, 2);
    assert_int_equal(c.asked, 50000);
    assert_int_equal(stats_of(w).files, 3);
    assert_null(served_files_get(w->files, 0, "0.xml.gz"));
    for (int i = 1; i < 3; i++)
        resource_unref(c.held[i]);
    free(noise);
}

/* However small the budget: one file, and the next version of it. */
static void test_larger_than_the_budget(void **state)
{
    struct world *w = *state;
    char *one = text_of(100000, 1), *two = text_of(100000, 2);

    start(w, 1000, 0);
    put_text(w, "l.xml", one, 100);
    expect_text(w, "l.xml", one);
    put_text(w, "l.xml", two, 50);
    expect_text(w, "l.xml", two);
    put_text(w, "m.xml", one, 100);
    expect_text(w, "m.xml", one);
    assert_int_equal(stats_of(w).files, 1);
    free(one);
    free(two);
}

static void *crowd(void *context)
{
    struct world *w = context;
    char path[20];
    for (unsigned i = 0; i < 300; i++) {
        struct resource *b;
        snprintf(path, sizeof path, "c%u.xml", i * 7 % 5);
        if (i % 50 == 0)
            served_files_invalidate(w->files, 0);
        b = served_files_get(w->files, 0, path);
        if (b == NULL && ask(w, path, &b) != AWAIT_DONE)
            continue;
        /* Whole, and one version of it alone. */
        for (size_t k = 1; k < b->raw_len; k++)
            if (b->bytes[k] != b->bytes[0])
                return "torn";
        resource_unref(b);
    }
    return NULL;
}

static void test_crowd(void **state)
{
    struct world *w = *state;
    pthread_t threads[4];
    char bytes[20000], path[20];

    start(w, 60000, 1);
    for (int round = 0; round < 40; round++) {
        for (int i = 0; i < 5; i++) {
            snprintf(path, sizeof path, "c%d.xml", i);
            memset(bytes, 'a' + (round + i) % 26, sizeof bytes);
            put(w, path, bytes, sizeof bytes - (size_t)(round % 3), -1);
        }
        if (round == 0)
            for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, crowd, w), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    memset(bytes, 'z', sizeof bytes);
    put(w, "c0.xml", bytes, sizeof bytes, -1);
    served_files_invalidate(w->files, 0);
    struct resource *b = get(w, "c0.xml");
    assert_int_equal(b->bytes[0], 'z');
    resource_unref(b);
    served_files_stop(w->files);
    served_files_invalidate(w->files, 0);
    assert_true(stats_of(w).bytes <= 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eviction_and_budget),
        cmocka_unit_test(test_slow_readers_give_way),
        cmocka_unit_test(test_larger_than_the_budget),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
