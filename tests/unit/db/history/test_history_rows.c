/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The packed rows of the history: what goes in comes out, what is damaged is refused, and a filter
 * misses none of its locs. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* cmocka.h needs the first four. */
#include <cmocka.h>

#include "db/history/rows.h"

static struct history_image image(struct history_part *part, int64_t number, const char *lastmod)
{
    return (struct history_image){
        .address = (int64_t)7 << 32 | number,
        .source = number % 3,
        .serial = 1000000 - number,
        .registered_at = 1789000000,
        .changed_at = 1789000000 + number,
        .lastmod = history_part_keep(part, lastmod, lastmod ? strlen(lastmod) : 0),
        .digest = history_part_keep(part, number % 2 ? "odd" : NULL, 3),
        .extensions = history_part_keep(part, number % 5 ? NULL : "<image:image/>", 14),
    };
}

static void add(struct history_part *part, int64_t number, bool before, bool after)
{
    char loc[80];
    bool fresh;
    int len = snprintf(loc, sizeof loc, "https://www.example.com/s/%05" PRId64 ".xml", number);
    struct history_row *row = history_part_row(part, 1 + number % 2, loc, (size_t)len, &fresh);
    assert_non_null(row);
    row->has_before = before;
    row->has_after = after;
    if (before)
        row->before = image(part, number, "2026-01-01");
    if (after)
        row->after = image(part, number + 5, number % 4 ? "2026-01-02T10:00:00Z" : NULL);
}

static void fill(struct history_part *part, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        add(part, i, i % 3 != 0, i % 3 != 1);
}

static void comes_out(int64_t count)
{
    struct history_part in = {.rows = NULL}, out = {.rows = NULL};
    struct str packed = STR_INIT;
    fill(&in, count);
    assert_true(history_part_pack(&in, &packed));
    assert_true(history_part_unpack(&out, str_text(&packed), packed.len));
    assert_int_equal(out.count, in.count);
    for (uint32_t i = 0; i < in.count; i++) {
        const struct history_row *a = &in.rows[i], *b = &out.rows[i];
        assert_int_equal(a->site, b->site);
        assert_string_equal(history_text_of(&in, a->loc), history_text_of(&out, b->loc));
        assert_int_equal(a->has_before, b->has_before);
        assert_int_equal(a->has_after, b->has_after);
        assert_true(!a->has_before || (a->before.address == b->before.address &&
                                       a->before.serial == b->before.serial &&
                                       a->before.changed_at == b->before.changed_at));
        if (a->has_after && a->after.lastmod.at != UINT32_MAX)
            assert_string_equal(history_text_of(&in, a->after.lastmod),
                                history_text_of(&out, b->after.lastmod));
        else
            assert_true(!a->has_after || b->after.lastmod.at == UINT32_MAX);
        assert_int_equal(a->before.digest.at == UINT32_MAX, b->before.digest.at == UINT32_MAX);
    }
    str_done(&packed);
    history_part_done(&in);
    history_part_done(&out);
}

static void what_goes_in_comes_out(void **state)
{
    comes_out(0);
    comes_out(1);
    comes_out(HISTORY_INLINE_ROWS);
    comes_out(HISTORY_INLINE_ROWS + 1);
    comes_out(1250);
}

static void add_dated(struct history_part *part, const char *loc, const char *lastmod)
{
    bool fresh;
    struct history_row *row = history_part_row(part, 1, loc, strlen(loc), &fresh);
    assert_non_null(row);
    row->has_after = true;
    row->after = (struct history_image){
        .address = 5,
        .lastmod = history_part_keep(part, lastmod, strlen(lastmod)),
        .digest = HISTORY_NO_TEXT,
        .extensions = HISTORY_NO_TEXT,
    };
}

/* Names that go on as they began are packed to next to nothing. */
static void regular_names_are_small(void **state)
{
    struct history_part in = {.rows = NULL}, out = {.rows = NULL};
    struct str packed = STR_INIT;
    char loc[48];
    for (unsigned i = 0; i < HISTORY_PART_ROWS; i++) {
        snprintf(loc, sizeof loc, "https://a.example/sitemap-%06u.xml", i);
        add_dated(&in, loc, "2026-11-21T08:30:00Z");
    }
    assert_true(history_part_pack(&in, &packed));
    assert_true(packed.len < 2 * HISTORY_PART_ROWS);
    assert_true(history_part_unpack(&out, packed.data, packed.len));
    assert_int_equal(out.count, HISTORY_PART_ROWS);
    assert_string_equal(history_text_of(&out, out.rows[HISTORY_PART_ROWS - 1].loc), loc);
    str_done(&packed);
    history_part_done(&in);
    history_part_done(&out);
}

/* Each as it came; what is nearly of the usual form is a text. */
static void every_date_comes_out(void **state)
{
    static const char *const dates[] = {
        "2026-11-21T08:30:00Z",    "2026-11-21T08:30:59Z", "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:60Z",    "2026-11-21",           "2026-11-21T08:30:00+01:00",
        "2026-11-21T08:30:00z",    "2026-99-21T08:30:00Z", "2026-11-21T08:30:99Z",
        "2026-11-2\xffT08:30:00Z", "2026-11-21T08:30:00Z",
    };
    size_t count = sizeof dates / sizeof *dates;
    struct history_part in = {.rows = NULL}, out = {.rows = NULL};
    struct str packed = STR_INIT;
    char loc[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(loc, sizeof loc, "https://a.example/%zu", i);
        add_dated(&in, loc, dates[i]);
    }
    assert_true(history_part_pack(&in, &packed));
    assert_true(history_part_unpack(&out, str_text(&packed), packed.len));
    assert_int_equal(out.count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_string_equal(history_text_of(&out, out.rows[i].after.lastmod), dates[i]);
    str_done(&packed);
    history_part_done(&in);
    history_part_done(&out);
}

/* A catalogue keeps what earlier versions packed: the same row with its date as a text. */
static void the_bytes_are_these(void **state)
{
    static const char now[] = "\0\x02\x02\x0e\0https://a.ex/\x81\x0a\x80\x9e\xd4\xae\xf5\x07";
    static const char once[] = "\0\x02\x02\x0e\0https://a.ex/\x21\x0a\x15\0"
                               "2026-11-21T08:30:00Z";
    struct history_part in = {.rows = NULL}, out = {.rows = NULL};
    struct str packed = STR_INIT;
    add_dated(&in, "https://a.ex/", "2026-11-21T08:30:00Z");
    assert_true(history_part_pack(&in, &packed));
    assert_int_equal(packed.len, sizeof now - 1);
    assert_memory_equal(packed.data, now, sizeof now - 1);
    assert_true(history_part_unpack(&out, once, sizeof once - 1));
    assert_int_equal(out.count, 1);
    assert_string_equal(history_text_of(&out, out.rows[0].loc), "https://a.ex/");
    assert_string_equal(history_text_of(&out, out.rows[0].after.lastmod), "2026-11-21T08:30:00Z");
    str_done(&packed);
    history_part_done(&in);
    history_part_done(&out);
}

/* Few rows of short texts as they are, long ones deflated: both come out. */
static void long_texts_are_deflated(void **state)
{
    struct history_part in = {.rows = NULL}, out = {.rows = NULL};
    struct str packed = STR_INIT;
    char loc[300];
    for (int i = 0; i < 100; i++) {
        snprintf(loc, sizeof loc, "https://a.example/%d/%0200d", i * 7919 % 100, 0);
        add_dated(&in, loc, "2026-11-21T08:30:00Z");
    }
    assert_true(history_part_pack(&in, &packed));
    assert_int_equal(packed.data[0], 1);
    assert_true(packed.len < 3000);
    assert_true(history_part_unpack(&out, str_text(&packed), packed.len));
    assert_int_equal(out.count, 100);
    assert_string_equal(history_text_of(&out, out.rows[99].loc), loc);
    str_done(&packed);
    history_part_done(&in);
    history_part_done(&out);
}

static void an_entry_has_one_row(void **state)
{
    struct history_part part = {.rows = NULL};
    bool fresh;
    fill(&part, 40);
    struct history_row *row =
        history_part_row(&part, 2, "https://www.example.com/s/00003.xml", 35, &fresh);
    assert_false(fresh);
    assert_ptr_equal(row, &part.rows[3]);
    history_part_row(&part, 1, "https://www.example.com/s/00003.xml", 35, &fresh);
    assert_true(fresh); /* of another site */
    history_part_done(&part);
}

static void damage_is_refused(void **state)
{
    struct history_part in = {.rows = NULL};
    struct str packed = STR_INIT;
    fill(&in, 5);
    assert_true(history_part_pack(&in, &packed));
    for (size_t len = 0; len < packed.len; len++) {
        struct history_part out = {.rows = NULL};
        if (history_part_unpack(&out, packed.data, len))
            assert_true(out.count < in.count); /* it ends between two rows */
        history_part_done(&out);
    }
    for (size_t at = 0; at < packed.len; at++) {
        struct history_part out = {.rows = NULL};
        packed.data[at] = (char)~packed.data[at];
        history_part_unpack(&out, packed.data, packed.len); /* whatever it says, within bounds */
        packed.data[at] = (char)~packed.data[at];
        history_part_done(&out);
    }
    str_done(&packed);
    history_part_done(&in);
}

static void a_filter_misses_none(void **state)
{
    struct history_part part = {.rows = NULL};
    struct str filter = STR_INIT;
    unsigned wrong = 0;
    char loc[80];
    fill(&part, 1000);
    assert_true(history_part_filter(&part, &filter));
    for (int i = 0; i < 11000; i++) {
        int len = snprintf(loc, sizeof loc, "https://www.example.com/s/%05d.xml", i);
        bool has = history_filter_has(str_text(&filter), filter.len, loc, (size_t)len);
        assert_true(has || i >= 1000);
        wrong += has && i >= 1000;
    }
    assert_true(wrong < 100); /* of 10,000; ten or so are to be expected */
    str_done(&filter);
    history_part_done(&part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),  cmocka_unit_test(regular_names_are_small),
        cmocka_unit_test(every_date_comes_out),    cmocka_unit_test(the_bytes_are_these),
        cmocka_unit_test(long_texts_are_deflated), cmocka_unit_test(an_entry_has_one_row),
        cmocka_unit_test(damage_is_refused),       cmocka_unit_test(a_filter_misses_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
