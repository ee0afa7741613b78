/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Records that come with their notification: sealed, opened, and taken where they go on from what
 * is here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* cmocka.h needs the first four. */
#include <cmocka.h>

#include "db/shared/pg/pg_news.h"
#include "db/shared/record.h"

static const uint8_t key[32] = {1, 2, 3}, other_key[32] = {1, 2, 4};
static const char body[] = "what was done";

/* The record behind position 41 of a log, with `body`. */
static const struct shared_position before = {.seq = 41, .chain = {7}};

struct made {
    struct shared_packer *packer;
    struct shared_record record;
    const void *packed; /* the packer's */
    size_t size;
    char text[PG_NEWS_SIZE]; /* the notification */
};

static void make(struct made *m)
{
    uint8_t hash[SHARED_CHAIN_BYTES];

    *m = (struct made){.packer = shared_packer_new(),
                       .record = {.id = "0f0e0d0c-0b0a-4908-8706-050403020100",
                                  .node = "web1",
                                  .schema = 3,
                                  .revision = 4,
                                  .serial = 5,
                                  .at = -6,
                                  .position.seq = 42}};
    shared_packer_begin(m->packer);
    assert_int_equal(shared_packer_add(m->packer, body, sizeof body, NULL, NULL), SHARED_YES);
    assert_int_equal(shared_packer_end(m->packer, NULL, NULL, &m->packed, &m->size), SHARED_YES);
    shared_packer_hash(m->packer, hash);
    shared_chain(before.chain, m->record.id, hash, m->record.position.chain);
    pg_news_write(m->text, "sitemapd", m->record.node, &m->record, m->packed, m->size, key);
}

static void test_what_is_sealed_opens_for_the_key_alone(void **state)
{
    struct made m;
    char *text = m.text;

    make(&m);
    assert_int_equal(strncmp(text, "web1 42 ", 8), 0);
    assert_true(pg_news_is_other(text, "web") && pg_news_is_other(text, "web11"));
    assert_true(pg_news_is_other(text, NULL) && !pg_news_is_other(text, "web1"));
    struct shared_news *news = pg_news_read(text, "sitemapd", key);
    assert_non_null(news);
    assert_memory_equal(&news->record, &m.record, sizeof m.record);
    assert_int_equal(news->size, m.size);
    assert_memory_equal(news->body, m.packed, m.size);
    shared_news_free(news);
    assert_null(pg_news_read(text, "sitemapd", other_key));
    assert_null(pg_news_read(text, "sitemapd", NULL));
    assert_null(pg_news_read(text, "other", key));
    for (size_t i = 0; text[i] != '\0'; i++) { /* each character counts, also node and number */
        char was = text[i];
        text[i] = was == '1' ? '2' : '1';
        assert_null(pg_news_read(text, "sitemapd", key));
        text[i] = was;
    }
    for (size_t len = strlen(text); len-- > 0;) {
        text[len] = '\0';
        assert_null(pg_news_read(text, "sitemapd", key));
    }
    shared_packer_free(m.packer);
}

static void test_without_a_key_or_too_large_it_is_named_alone(void **state)
{
    static uint8_t large[PG_NEWS_SIZE];
    struct shared_record record = {.node = "web1", .position.seq = 42};
    char text[PG_NEWS_SIZE];
    size_t size = 0;

    pg_news_write(text, "sitemapd", record.node, &record, "x", 1, NULL);
    assert_string_equal(text, "web1 42");
    pg_news_write(text, "sitemapd", "web2", &record, "x", 1, key); /* not its own */
    assert_string_equal(text, "web2 42");
    assert_null(pg_news_read(text, "sitemapd", key));
    assert_null(pg_news_read("", "sitemapd", key));
    assert_null(pg_news_read("web1", "sitemapd", key));
    do { /* the largest that fits, with the longest name, is less than PostgreSQL takes */
        memset(record.node, 'n', sizeof record.node - 1);
        record.position.seq = UINT64_MAX;
        pg_news_write(text, "sitemapd", record.node, &record, large, ++size, key);
        assert_true(strlen(text) < PG_NEWS_SIZE);
    } while (strlen(text) > 200);
    assert_true(size > 3000);
}

struct taken {
    unsigned begun, ended;
    char bytes[64];
    size_t size;
};

static bool take_begin(void *context, const struct shared_record *record)
{
    (void)record;
    ((struct taken *)context)->begun++;
    return true;
}

static bool take_bytes(void *context, const void *bytes, size_t size)
{
    struct taken *t = context;

    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    return true;
}

static bool take_end(void *context, const struct shared_record *record)
{
    (void)record;
    ((struct taken *)context)->ended++;
    return true;
}

static void test_only_what_goes_on_from_here_is_taken(void **state)
{
    struct made m;
    struct shared_unpacker *unpacker = shared_unpacker_new();
    struct taken taken = {0};
    const struct shared_take take = {
        .begin = take_begin, .bytes = take_bytes, .end = take_end, .context = &taken};

    make(&m);
    struct shared_news *news = pg_news_read(m.text, "sitemapd", key);
    struct shared_position at = before;
    at.seq = 40; /* a gap; then one that is here already; then another past */
    assert_int_equal(shared_news_take(unpacker, news, &at, &take), SHARED_NO);
    at.seq = 42;
    assert_int_equal(shared_news_take(unpacker, news, &at, &take), SHARED_NO);
    at = before;
    at.chain[31] ^= 1;
    assert_int_equal(shared_news_take(unpacker, news, &at, &take), SHARED_NO);
    news->body[news->size - 1] ^= 1;
    assert_int_equal(shared_news_take(unpacker, news, &before, &take), SHARED_NO);
    news->body[news->size - 1] ^= 1;
    assert_int_equal(taken.begun, 0);
    assert_int_equal(shared_news_take(unpacker, news, &before, &take), SHARED_YES);
    assert_int_equal(taken.begun, 1);
    assert_int_equal(taken.ended, 1);
    assert_memory_equal(taken.bytes, body, sizeof body);
    shared_news_free(news);
    shared_unpacker_free(unpacker);
    shared_packer_free(m.packer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_sealed_opens_for_the_key_alone),
        cmocka_unit_test(test_without_a_key_or_too_large_it_is_named_alone),
        cmocka_unit_test(test_only_what_goes_on_from_here_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
