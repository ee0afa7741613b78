/* The cache of served files within its budget, and with many asking while the files change. */
#include "tests/unit/publish/blob_world.h"

static void test_eviction_and_budget(void **state)
{
    struct world *w = *state;
    uint8_t *noise = noise_of(100000, 3);
    char path[20];
    struct blob *held[3], *b;

    for (int i = 0; i < 10; i++) {
        noise[0] = (uint8_t)i;
        snprintf(path, sizeof path, "%d.xml.gz", i);
        put(w, path, noise, 100000, 100);
    }
    start(w, 450000, 60000); /* a load may take 200,000 */
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%d.xml.gz", i);
        blob_unref(get(w, path));
        b = blob_cache_get(w->cache, 0, "0.xml.gz"); /* the first stays in use */
        assert_non_null(b);
        blob_unref(b);
        assert_true(stats_of(w).bytes <= 450000);
    }
    assert_true(stats_of(w).evictions > 0);
    assert_null(blob_cache_get(w->cache, 0, "1.xml.gz"));
    /* Evicted ones that are still read count, until nobody does: nothing more is loaded. */
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%d.xml.gz", i + 5);
        held[i] = get(w, path);
    }
    assert_int_equal(ask(w, "9.xml.gz", &b), BLOB_BUSY);
    assert_int_equal(stats_of(w).files, 0);
    assert_int_equal(stats_of(w).bytes, 300000);
    assert_int_equal(held[0]->len, 100000);
    for (int i = 0; i < 3; i++)
        blob_unref(held[i]);
    assert_int_equal(stats_of(w).bytes, 0);
    blob_unref(get(w, "9.xml.gz"));
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
        struct blob *b;
        snprintf(path, sizeof path, "c%u.xml", i * 7 % 5);
        if (i % 50 == 0)
            blob_cache_invalidate(w->cache, 0);
        b = blob_cache_get(w->cache, 0, path);
        if (b == NULL && ask(w, path, &b) != BLOB_FOUND)
            continue;
        /* Whole, and one version of it alone. */
        for (size_t k = 1; k < b->len; k++)
            if (b->bytes[k] != b->bytes[0])
                return "torn";
        blob_unref(b);
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
    blob_cache_invalidate(w->cache, 0);
    struct blob *b = get(w, "c0.xml");
    assert_int_equal(b->bytes[0], 'z');
    blob_unref(b);
    blob_cache_stop(w->cache);
    blob_cache_invalidate(w->cache, 0);
    assert_true(stats_of(w).bytes <= 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eviction_and_budget),
        cmocka_unit_test(test_larger_than_the_budget),
        cmocka_unit_test(test_crowd),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
