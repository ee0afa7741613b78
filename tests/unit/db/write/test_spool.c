/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "db/spool.h"
#include "tests/unit/lib/scratch.h"

#define FOLDER scratch_folder()

struct made {
    struct entry entry;
    char loc[LOC_MAX_CHARS + 1], lastmod[64], digest[DIGEST_MAX_BYTES + 1], index[64];
    char extensions[EXTENSIONS_MAX_BYTES + 1];
};

/* Entry `n`: every combination of fields, and now and then one as long as may be. */
static const struct entry *make(struct made *m, uint64_t n)
{
    snprintf(m->loc, sizeof m->loc, "https://example.com/%llu.xml", (unsigned long long)n);
    if (n % 100 == 99) {
        memset(m->loc + strlen(m->loc), 'x', LOC_MAX_CHARS - strlen(m->loc));
        m->loc[LOC_MAX_CHARS] = '\0';
    }
    snprintf(m->lastmod, sizeof m->lastmod, "2026-01-%02u", (unsigned)(n % 28 + 1));
    memset(m->digest, 'd', sizeof m->digest - 1);
    m->digest[n % DIGEST_MAX_BYTES + 1] = '\0';
    snprintf(m->index, sizeof m->index, "/i%u.xml", (unsigned)(n % 7));
    m->entry = (struct entry){
        .loc = m->loc,
        .lastmod_state = (enum field_state)(n % 3),
        .digest_state = (enum field_state)(n / 3 % 3),
        .index = n % 2 ? m->index : NULL,
        .position = n % 5 ? (uint32_t)n : POSITION_NONE,
        .line = n + 1,
        .remarks = n * 0x9e3779b97f4a7c15u,
    };
    m->entry.lastmod = m->entry.lastmod_state == FIELD_SET ? m->lastmod : NULL;
    m->entry.digest = m->entry.digest_state == FIELD_SET ? m->digest : NULL;
    if (n % 20000 == 19999) { /* more than SPOOL_MEMORY_BYTES */
        memset(m->extensions, 'e', EXTENSIONS_MAX_BYTES);
        m->extensions[EXTENSIONS_MAX_BYTES] = '\0';
        m->entry.extensions = m->extensions;
    }
    return &m->entry;
}

static void assert_text(const char *a, const char *b)
{
    assert_true((a == NULL) == (b == NULL));
    if (a && b)
        assert_string_equal(a, b);
}

static void assert_entry(const struct entry *a, const struct entry *b)
{
    assert_text(a->loc, b->loc);
    assert_text(a->lastmod, b->lastmod);
    assert_text(a->digest, b->digest);
    assert_text(a->index, b->index);
    assert_text(a->extensions, b->extensions);
    assert_int_equal(a->lastmod_state, b->lastmod_state);
    assert_int_equal(a->digest_state, b->digest_state);
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->line, b->line);
    assert_true(a->remarks == b->remarks);
}

static void read_all(struct spool *s, uint64_t count)
{
    struct made m;
    struct entry e;
    assert_int_equal(spool_count(s), count);
    for (uint64_t n = 0; n < count; n++) {
        assert_int_equal(spool_next(s, &e), 1);
        assert_entry(&e, make(&m, n));
    }
    assert_int_equal(spool_next(s, &e), 0);
    assert_int_equal(spool_next(s, &e), 0);
}

static void check_round_trip(uint64_t count)
{
    struct made m;
    struct entry e;
    struct spool *s = spool_new(FOLDER, UINT64_MAX / 2);
    assert_non_null(s);
    for (uint64_t n = 0; n < count; n++)
        assert_int_equal(spool_add(s, make(&m, n)), SPOOL_OK);
    assert_int_equal(spool_count(s), count);
    spool_rewind(s);
    read_all(s, count);
    spool_rewind(s);
    read_all(s, count);
    spool_rewind(s);
    for (uint64_t n = 0; n < count / 2; n++)
        assert_int_equal(spool_next(s, &e), 1);
    spool_rewind(s);
    read_all(s, count);
    spool_free(s);
}

static void test_round_trips(void **state)
{
    static const uint64_t counts[] = {0, 1, 10, 300, 400, 500, 1000, 50000};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        check_round_trip(counts[i]);
    spool_free(NULL);
}

static void test_grows_after_reading(void **state)
{
    struct made m;
    struct spool *s = spool_new(FOLDER, 1u << 30);
    uint64_t n = 0;
    for (uint64_t until = 1; until <= 4096; until *= 4) {
        for (; n < until; n++)
            assert_int_equal(spool_add(s, make(&m, n)), SPOOL_OK);
        spool_rewind(s);
        read_all(s, until);
    }
    spool_free(s);
}

static void test_full(void **state)
{
    static const uint64_t sizes[] = {0, 1, 1000, SPOOL_MEMORY_BYTES, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct made m;
        struct spool *s = spool_new(FOLDER, sizes[i]);
        uint64_t n = 0;
        enum spool_status status;
        while ((status = spool_add(s, make(&m, n))) == SPOOL_OK)
            n++;
        assert_int_equal(status, SPOOL_FULL);
        assert_int_equal(spool_count(s), n);
        spool_rewind(s); /* what went in is still there */
        read_all(s, n);
        spool_free(s);
    }
}

static enum spool_status fill(struct spool *s, uint64_t count)
{
    struct made m;
    enum spool_status status = SPOOL_OK;
    for (uint64_t n = 0; n < count && status == SPOOL_OK; n++)
        status = spool_add(s, make(&m, n));
    return status;
}

static void test_room(void **state)
{
    struct spool_room room = {.max_bytes = 1u << 20};
    struct spool *one = spool_new(FOLDER, 1u << 30), *two = spool_new(FOLDER, 1u << 30);
    spool_share(one, &room, 0);
    spool_share(two, &room, 0);
    assert_int_equal(fill(one, 3000), SPOOL_OK);
    uint64_t used = site_uses_taken(&room.used);
    assert_in_range(used, 1, room.max_bytes);
    assert_int_equal(fill(two, 100000), SPOOL_CROWDED);
    assert_in_range(site_uses_taken(&room.used), used + 1, room.max_bytes);
    spool_free(one); /* gives its part back */
    assert_int_equal(fill(two, 1000), SPOOL_OK);
    assert_int_equal(fill(two, 100000), SPOOL_FULL); /* alone it is too large */
    spool_free(two);
    assert_int_equal(site_uses_taken(&room.used), 0);
}

/* A site that keeps lists open, however many, leaves half of the free room to others. */
static void test_room_of_a_site(void **state)
{
    struct spool_room room = {.max_bytes = 1u << 20};
    struct spool *s[4];
    for (int i = 0; i < 4; i++) {
        s[i] = spool_new(FOLDER, 1u << 30);
        spool_share(s[i], &room, i < 3 ? 7 : 7 + 256);
    }
    assert_int_equal(fill(s[0], 1500), SPOOL_OK);
    assert_int_equal(fill(s[1], 100000), SPOOL_CROWDED);
    assert_int_equal(fill(s[2], 100000), SPOOL_CROWDED);
    assert_in_range(site_uses_taken(&room.used), 1, room.max_bytes / 2);
    assert_int_equal(fill(s[3], 1500), SPOOL_OK);
    assert_int_equal(fill(s[3], 100000), SPOOL_CROWDED);
    assert_in_range(site_uses_taken(&room.used), 1, room.max_bytes * 3 / 4);
    for (int i = 0; i < 3; i++)
        spool_free(s[i]);
    assert_int_equal(fill(s[3], 100000), SPOOL_FULL); /* larger than its share can be */
    spool_free(s[3]);
    assert_int_equal(site_uses_taken(&room.used), 0);
    assert_int_equal(room.used.by_site.count, 0);
}

static void test_no_space(void **state)
{
    struct rlimit old, small;
    struct made m;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 200000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    struct spool *s = spool_new(FOLDER, 1u << 30);
    uint64_t n = 0;
    enum spool_status status;
    while ((status = spool_add(s, make(&m, n))) == SPOOL_OK)
        n++;
    enum spool_status again = spool_add(s, make(&m, n));
    setrlimit(RLIMIT_FSIZE, &old);
    assert_int_equal(status, SPOOL_NO_SPACE);
    assert_int_equal(again, SPOOL_NO_SPACE);
    /* Nothing is lost or half there, and once there is room it goes on. */
    spool_rewind(s);
    read_all(s, n);
    for (uint64_t until = n + 1000; n < until; n++)
        assert_int_equal(spool_add(s, make(&m, n)), SPOOL_OK);
    spool_rewind(s);
    read_all(s, n);
    spool_free(s);
}

/* Rows of a scan: each string there or not, in memory and in the file. */
static void test_files(void **state)
{
    struct spool *s = spool_new(FOLDER, 1u << 30);
    struct source_file made = {.state = SOURCE_FILE_QUARANTINED,
                               .device = 1,
                               .inode = 2,
                               .size = 3,
                               .mtime_ns = -4,
                               .ctime_ns = -11,
                               .hash = {5, 6},
                               .urls = 7,
                               .bytes = 8,
                               .line = 9,
                               .column = 10,
                               .one_lastmod = true,
                               .future = true};
    const char **texts[] = {&made.path,    &made.loc,     &made.lastmod, &made.newest_lastmod,
                            &made.remarks, &made.problem, &made.detail};
    enum { COUNT = 2000 };
    for (int pass = 0; pass < 2; pass++) {
        spool_rewind(s);
        for (unsigned n = 0; n < COUNT; n++) {
            char text[7][40];
            struct source_file file;
            for (unsigned i = 0; i < 7; i++) {
                snprintf(text[i], sizeof text[i], "%u of row %u", i, n);
                *texts[i] = n >> i & 1 ? text[i] : NULL;
            }
            made.inode = n;
            if (pass == 0) {
                assert_int_equal(spool_add_file(s, &made), SPOOL_OK);
                continue;
            }
            assert_int_equal(spool_next_file(s, &file), 1);
            const char *const read[] = {file.path,           file.loc,     file.lastmod,
                                        file.newest_lastmod, file.remarks, file.problem,
                                        file.detail};
            for (unsigned i = 0; i < 7; i++)
                assert_text(read[i], *texts[i]);
            assert_memory_equal(&file.state, &made.state,
                                sizeof made - offsetof(struct source_file, state));
        }
    }
    struct source_file none;
    assert_int_equal(spool_next_file(s, &none), 0);
    assert_int_equal(spool_next_file(NULL, &none), 0);
    assert_int_equal(spool_count(NULL), 0);
    spool_free(s);
}

static void test_bad_folder(void **state)
{
    struct made m;
    struct spool *s = spool_new("/proc/nowhere/folder", 1u << 30);
    enum spool_status status;
    uint64_t n = 0;
    while ((status = spool_add(s, make(&m, n))) == SPOOL_OK)
        n++;
    assert_int_equal(status, SPOOL_FAILED);
    assert_int_equal(errno, ENOENT);
    assert_true(n > 100); /* a short list needs no folder */
    spool_rewind(s);
    read_all(s, n);
    spool_free(s);
}

static void test_too_long(void **state)
{
    static char loc[LOC_MAX_CHARS + 2];
    memset(loc, 'x', sizeof loc - 1);
    struct entry e = {.loc = loc};
    struct spool *s = spool_new(FOLDER, 1u << 30);
    assert_int_equal(spool_add(s, &e), SPOOL_FAILED);
    assert_int_equal(spool_count(s), 0);
    spool_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),    cmocka_unit_test(test_grows_after_reading),
        cmocka_unit_test(test_full),           cmocka_unit_test(test_room),
        cmocka_unit_test(test_room_of_a_site), cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_bad_folder),     cmocka_unit_test(test_files),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
