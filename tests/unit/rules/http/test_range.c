/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Range and If-Range: what is sent of how many bytes (RFC 9110 13.1.5, 14.1.2, 14.2). */
#include "tests/unit/rules/check.h"

#include "server/rules/http/negotiate.h"

#define MODIFIED 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define AT       "Sun, 06 Nov 1994 08:49:37 GMT"
#define LATER    (MODIFIED + 86400)

static void test_parse(void **state)
{
    static const struct {
        const char *range;
        uint64_t size;
        enum range_kind kind;
        uint64_t first, len;
    } rows[] = {
        {NULL, 100, RANGE_WHOLE, 0, 100},
        {"", 100, RANGE_WHOLE, 0, 100},
        {"bytes=0-0", 100, RANGE_PART, 0, 1},
        {"bytes=0-99", 100, RANGE_PART, 0, 100},
        {"bytes=10-19", 100, RANGE_PART, 10, 10},
        {"BYTES=10-19", 100, RANGE_PART, 10, 10},
        {"bytes=10-", 100, RANGE_PART, 10, 90},
        {"bytes=0-", 100, RANGE_PART, 0, 100},
        {"bytes=99-", 100, RANGE_PART, 99, 1},
        {"bytes=90-1000", 100, RANGE_PART, 90, 10},
        {"bytes=90-99999999999999999999999999", 100, RANGE_PART, 90, 10},
        {"bytes=00000000000000000000000000005-6", 100, RANGE_PART, 5, 2},
        {"bytes=-1", 100, RANGE_PART, 99, 1},
        {"bytes=-100", 100, RANGE_PART, 0, 100},
        {"bytes=-101", 100, RANGE_PART, 0, 100},
        {"bytes=-99999999999999999999999999", 100, RANGE_PART, 0, 100},
        {"bytes=100-", 100, RANGE_UNSATISFIABLE, 0, 100},
        {"bytes=100-200", 100, RANGE_UNSATISFIABLE, 0, 100},
        {"bytes=18446744073709551615-", 100, RANGE_UNSATISFIABLE, 0, 100},
        {"bytes=99999999999999999999999999-", 100, RANGE_UNSATISFIABLE, 0, 100},
        {"bytes=-0", 100, RANGE_UNSATISFIABLE, 0, 100},
        /* nothing has a first byte; its last bytes are all of it */
        {"bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0},
        {"bytes=-5", 0, RANGE_WHOLE, 0, 0},
        {"bytes=-0", 0, RANGE_WHOLE, 0, 0},
        {"bytes=0-18446744073709551614", UINT64_MAX, RANGE_PART, 0, UINT64_MAX},
        {"bytes=-18446744073709551615", UINT64_MAX, RANGE_PART, 0, UINT64_MAX},
        /* a list of one */
        {"bytes=1-2,", 100, RANGE_PART, 1, 2},
        {"bytes=, ,1-2 , ,", 100, RANGE_PART, 1, 2},
        {"bytes=1-2 ", 100, RANGE_PART, 1, 2},
        /* several, overlapping or beyond the end too */
        {"bytes=1-2,5-6", 100, RANGE_WHOLE, 0, 100},
        {"bytes=1-2, -1", 100, RANGE_WHOLE, 0, 100},
        {"bytes=200-,1-2", 100, RANGE_WHOLE, 0, 100},
        {"bytes=1-2,x", 100, RANGE_WHOLE, 0, 100},
        /* malformed */
        {"bytes", 100, RANGE_WHOLE, 0, 100},
        {"bytes=", 100, RANGE_WHOLE, 0, 100},
        {"bytes=,", 100, RANGE_WHOLE, 0, 100},
        {"bytes=-", 100, RANGE_WHOLE, 0, 100},
        {"bytes=5", 100, RANGE_WHOLE, 0, 100},
        {"bytes=5-4", 100, RANGE_WHOLE, 0, 100},
        {"bytes=200-100", 100, RANGE_WHOLE, 0, 100},
        {"bytes=--5", 100, RANGE_WHOLE, 0, 100},
        {"bytes=+1-2", 100, RANGE_WHOLE, 0, 100},
        {"bytes=1 -2", 100, RANGE_WHOLE, 0, 100},
        {"bytes=1- 2", 100, RANGE_WHOLE, 0, 100},
        {"bytes=0x1-2", 100, RANGE_WHOLE, 0, 100},
        {"bytes=1-2-3", 100, RANGE_WHOLE, 0, 100},
        {"bytes=1-2;", 100, RANGE_WHOLE, 0, 100},
        {"bytes =1-2", 100, RANGE_WHOLE, 0, 100},
        {"bytes:1-2", 100, RANGE_WHOLE, 0, 100},
        {"1-2", 100, RANGE_WHOLE, 0, 100},
        {"lines=1-2", 100, RANGE_WHOLE, 0, 100},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *name = rows[i].range == NULL ? "absent" : rows[i].range;
        uint64_t first, len;

        check_number(name, range_parse(rows[i].range, rows[i].size, &first, &len), rows[i].kind);
        if (first != rows[i].first || len != rows[i].len)
            fail_msg("%s: got %llu+%llu", name, (unsigned long long)first, (unsigned long long)len);
    }
}

static void test_applies(void **state)
{
    static const struct {
        const char *name, *if_range;
        int64_t modified_at;
        bool shared_date;
        int64_t now;
        bool applies;
    } rows[] = {
        {"absent", NULL, MODIFIED, false, LATER, true},
        {"tag", "\"abc\"", MODIFIED, false, LATER, true},
        {"tag knows no seconds", "\"abc\"", MODIFIED, true, MODIFIED, true},
        {"another tag", "\"abd\"", MODIFIED, false, LATER, false},
        {"weak tag", "W/\"abc\"", MODIFIED, false, LATER, false},
        {"tag that a proxy made", "\"abc-gzip\"", MODIFIED, false, LATER, false},
        {"list", "\"abc\", \"x\"", MODIFIED, false, LATER, false},
        {"star", "*", MODIFIED, false, LATER, false},
        {"no quotes", "abc", MODIFIED, false, LATER, false},
        {"empty", "", MODIFIED, false, LATER, false},
        {"date", AT, MODIFIED, false, LATER, true},
        {"older date", "Sun, 06 Nov 1994 08:49:36 GMT", MODIFIED, false, LATER, false},
        {"newer date", "Sun, 06 Nov 1994 08:49:38 GMT", MODIFIED, false, LATER, false},
        {"two versions in that second", AT, MODIFIED, true, LATER, false},
        {"that second is not over", AT, MODIFIED, false, MODIFIED, false},
        {"no date", "Thu, 01 Jan 1970 00:00:00 GMT", 0, false, LATER, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(
            rows[i].name,
            range_applies(rows[i].if_range,
                          &(struct validators){"\"abc\"", rows[i].modified_at, rows[i].shared_date},
                          rows[i].now),
            rows[i].applies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_applies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
