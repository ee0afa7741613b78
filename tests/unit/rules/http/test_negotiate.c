/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/http/negotiate.h"

static void test_gzip(void **state)
{
    static const struct {
        const char *field;
        bool gzip;
    } rows[] = {
        {NULL, false},
        {"", false},
        {" ", false},
        {",", false},
        /* what crawlers and browsers send */
        {"gzip", true},
        {"gzip, deflate, br", true},
        {"gzip,deflate", true},
        {"gzip, deflate, br, zstd", true},
        {"br", false},
        {"deflate, br", false},
        {"identity", false},
        {"x-gzip", true},
        {"X-GZIP", true},
        {"GZip", true},
        {"gzipped", false},
        {"*", true},
        {"identity, *", true},
        /* weights: the higher wins, a tie goes to gzip */
        {"gzip;q=1", true},
        {"gzip;q=0", false},
        {"gzip;q=0.0", false},
        {"gzip;q=0.000", false},
        {"gzip;q=0.001", true},
        {"gzip;q=1.000", true},
        {"gzip;q=1.", true},
        {"gzip;q=0.", false},
        {"gzip;Q=0.5", true},
        {"gzip ; q=0.5", true},
        {"gzip\t;\tq=0.5", true},
        {"gzip;q=0.5, identity;q=0.5", true},
        {"gzip;q=0.5, identity;q=0.501", false},
        {"identity, gzip;q=0.999", false},
        {"identity;q=0, gzip;q=0.001", true},
        {"identity;q=0, gzip;q=0", false},
        {"identity;q=0", false},
        {"x-gzip;q=0.5, identity;q=0.4", true},
        /* the star means what is not named */
        {"*;q=0", false},
        {"gzip, *;q=0", true},
        {"gzip;q=0, *", false},
        {"gzip;q=0, *;q=1", false},
        {"identity, *;q=0.5", false},
        {"identity;q=0.5, *", true},
        {"br, *;q=0.1", true},
        {"gzip;q=0.5, *;q=0.8", false},
        {"gzip;q=0.8, *;q=0.5", true},
        {"*;q=0.5, identity;q=0.5", true},
        /* empty elements are ignored (RFC 9110 5.6.1.2) */
        {",gzip", true},
        {"gzip,", true},
        {"br, , gzip", true},
        /* malformed anywhere: identity */
        {"gzip;q=2", false},
        {"gzip;q=1.001", false},
        {"gzip;q=0.1234", false},
        {"gzip;q=.5", false},
        {"gzip;q=-1", false},
        {"gzip;q=", false},
        {"gzip;q", false},
        {"gzip;", false},
        {"gzip;q =1", false},
        {"gzip;q= 1", false},
        {"gzip;q=\"1\"", false},
        {"gzip;level=9", false},
        {"gzip;q=1;level=9", false},
        {"gzip;q=1 deflate", false},
        {"gzip deflate", false},
        {"gzip, ;q=1", false},
        {"gzip, br/1", false},
        {"gzip, \xC3\xA9", false},
        {"gzip, \"br\"", false},
    };

    enum coding best;

    for (size_t i = 0; i < ROWS(rows); i++) {
        if (negotiate_coding(rows[i].field, &best) != rows[i].gzip)
            fail_msg("Accept-Encoding: %s: want %s", rows[i].field ? rows[i].field : "(absent)",
                     rows[i].gzip ? "gzip" : "identity");
    }
}

static void test_best_coding(void **state)
{
    static const struct {
        const char *field;
        enum coding best;
        bool gzip;
    } rows[] = {
        {NULL, CODING_IDENTITY, false},
        {"", CODING_IDENTITY, false},
        {"gzip", CODING_GZIP, true},
        {"*", CODING_GZIP, true},
        {"gzip, deflate, br", CODING_BR, true},
        {"gzip, deflate, br, zstd", CODING_BR, true},
        {"zstd, gzip", CODING_ZSTD, true},
        {"BR", CODING_BR, false},
        {"br;q=0.1, gzip", CODING_BR, true},
        {"br;q=0, gzip", CODING_GZIP, true},
        {"br;q=0.5, identity", CODING_IDENTITY, false},
        {"br, identity;q=0.5", CODING_BR, false},
        {"br;q=0.5, *", CODING_GZIP, true},
        {"deflate", CODING_IDENTITY, false},
        {"br, gzip;q=9", CODING_IDENTITY, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        enum coding best;

        if (negotiate_coding(rows[i].field, &best) != rows[i].gzip || best != rows[i].best)
            fail_msg("Accept-Encoding: %s: %d", rows[i].field ? rows[i].field : "(absent)",
                     (int)best);
    }
}

/* What If-Match says of a state: the tag up to its dot, by strong comparison. */
static void test_states(void **state)
{
    static const struct {
        const char *field;
        bool match;
    } rows[] = {
        {NULL, false},
        {"", false},
        {"*", true},
        {"\"e-7\"", true},
        {"\"e-7.0a1b\"", true},
        {"\"e-7.\"", true},
        {"\"x\", \"e-7.0a1b\"", true},
        {"W/\"e-7\"", false},
        {"W/\"e-7.0a1b\"", false},
        {"\"e-70\"", false},
        {"\"e-70.0a1b\"", false},
        {"\"e-\"", false},
        {"\"e-7-gzip\"", false},
        {"\".e-7\"", false},
        {"\"\"", false},
        {"e-7", false},
        {"\"e-7\", x", false},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        if (negotiate_match_state(rows[i].field, "e-7") != rows[i].match)
            fail_msg("If-Match: %s", rows[i].field ? rows[i].field : "(absent)");
}

/* How a field compares with "abc": by If-Match, If-None-Match, and the latter as proxies bend it.
 */
static void test_tags(void **state)
{
    static const struct {
        const char *field;
        bool strong, weak, tolerant;
    } rows[] = {
        {NULL, false, false, false},
        {"", false, false, false},
        {"*", true, true, true},
        {" * ", true, true, true},
        {"\"abc\"", true, true, true},
        {" \"abc\" ", true, true, true},
        {"W/\"abc\"", false, true, true},
        {"\"abc-gzip\"", false, false, true},
        {"W/\"abc-gzip\"", false, false, true},
        {"\"abc-gzip-gzip\"", false, false, false},
        {"\"-gzip\"", false, false, false},
        {"\"abc-br\"", false, false, false},
        {"\"abcd\"", false, false, false},
        {"\"ab\"", false, false, false},
        {"\"ABC\"", false, false, false},
        {"\"\"", false, false, false},
        {"\"x\", \"abc\"", true, true, true},
        {"\"x\",\"abc\"", true, true, true},
        {"\"x\"\t,\t\"abc\"", true, true, true},
        {"\"abc\", W/\"x\"", true, true, true},
        {", ,\"abc\",", true, true, true},
        {"\"a,b\", \"abc\"", true, true, true},
        {"\"x,\", \"abc\", \",\"", true, true, true},
        {"\"x, \"abc\"", false, false, false}, /* a space within quotes */
        {"\"\xC3\xA9\", \"abc\"", true, true, true},
        {"\"\\\", \"abc\"", true, true, true}, /* a backslash escapes nothing */
        /* malformed anywhere: nothing is named */
        {"abc", false, false, false},
        {"'abc'", false, false, false},
        {"\"abc", false, false, false},
        {"abc\"", false, false, false},
        {"w/\"abc\"", false, false, false},
        {"W\"abc\"", false, false, false},
        {"W/ \"abc\"", false, false, false},
        {"W/abc", false, false, false},
        {"W/*", false, false, false},
        {"\"abc\" \"x\"", false, false, false},
        {"\"abc\";x", false, false, false},
        {"\"abc\", x", false, false, false},
        {"\"abc\", *", false, false, false},
        {"*, \"abc\"", false, false, false},
        {"**", false, false, false},
        {"\"a\tc\", \"abc\"", false, false, false},
        {"\"a\x7F\", \"abc\"", false, false, false},
        {"\"abc\"-gzip", false, false, false},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        const char *name = rows[i].field ? rows[i].field : "(absent)";

        check_number(name, negotiate_match(rows[i].field, "\"abc\""), rows[i].strong);
        check_number(name, negotiate_none_match(rows[i].field, "\"abc\"", false), rows[i].weak);
        check_number(name, negotiate_none_match(rows[i].field, "\"abc\"", true), rows[i].tolerant);
    }
}

static void test_own_weak_tag(void **state)
{
    assert_true(negotiate_none_match("\"abc\"", "W/\"abc\"", false));
    assert_true(negotiate_none_match("W/\"abc\"", "W/\"abc\"", false));
    assert_false(negotiate_match("\"abc\"", "W/\"abc\""));
    assert_false(negotiate_match("W/\"abc\"", "W/\"abc\""));
    assert_true(negotiate_none_match("\"abc-gzip\"", "\"abc-gzip\"", true));
}

#define CHANGED  784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define LATER    (CHANGED + 3600)
#define AT       "Sun, 06 Nov 1994 08:49:37 GMT"
#define BEFORE   "Sun, 06 Nov 1994 08:49:36 GMT"
#define AFTER    "Sun, 06 Nov 1994 08:49:38 GMT"
#define IN_A_DAY "Mon, 07 Nov 1994 08:49:37 GMT"

enum { SEND = CONDITION_NONE, SAME = CONDITION_NOT_MODIFIED, FAILED = CONDITION_FAILED };

/* Of a page with the tag "abc", changed at AT, that If-None-Match or If-Modified-Since asks for. */
static void test_not_modified(void **state)
{
    static const struct {
        const char *name, *if_none_match, *if_modified_since;
        bool shared_date;
        int64_t now;
        int verdict;
    } rows[] = {
        {"unconditional", NULL, NULL, false, LATER, SEND},
        {"tag", "\"abc\"", NULL, false, LATER, SAME},
        {"weakened tag", "W/\"abc\"", NULL, false, LATER, SAME},
        {"suffixed tag", "\"abc-gzip\"", NULL, false, LATER, SAME},
        {"other tag", "\"x\"", NULL, false, LATER, SEND},
        {"star", "*", NULL, false, LATER, SAME},
        {"tag decides against the date", "\"x\"", AT, false, LATER, SEND},
        {"tag decides without the date", "\"abc\"", BEFORE, false, LATER, SAME},
        {"malformed tag decides too", "abc", AT, false, LATER, SEND},
        {"empty tag field decides too", "", AT, false, LATER, SEND},
        {"tag knows no seconds", "\"abc\"", NULL, true, CHANGED, SAME},
        {"tag of a page ahead of the clock", "\"abc\"", NULL, false, CHANGED - 60, SAME},
        {"date", NULL, AT, false, LATER, SAME},
        {"date, RFC 850", NULL, "Sunday, 06-Nov-94 08:49:37 GMT", false, LATER, SAME},
        {"date, asctime", NULL, "Sun Nov  6 08:49:37 1994", false, LATER, SAME},
        {"date, a second on", NULL, AT, false, CHANGED + 1, SAME},
        {"older date", NULL, BEFORE, false, LATER, SEND},
        {"newer date, of a version that is gone", NULL, AFTER, false, LATER, SEND},
        {"two versions in that second", NULL, AT, true, LATER, SEND},
        {"two versions, newer date", NULL, AFTER, true, LATER, SEND},
        {"date ahead of the clock", NULL, IN_A_DAY, false, LATER, SEND},
        {"invalid date", NULL, "yesterday", false, LATER, SEND},
        {"empty date", NULL, "", false, LATER, SEND},
        {"page of this second", NULL, AT, false, CHANGED, SEND},
        {"page ahead of the clock", NULL, AT, false, CHANGED - 1, SEND},
        {"page ahead, date of the clock", NULL, BEFORE, false, CHANGED - 1, SEND},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct conditions conditions = {.if_none_match = rows[i].if_none_match,
                                        .if_modified_since = rows[i].if_modified_since};
        struct validators own = {"\"abc\"", CHANGED, rows[i].shared_date};

        check_number(rows[i].name, negotiate_conditions(&conditions, &own, rows[i].now),
                     rows[i].verdict);
    }
}

/* RFC 9110 13.2.2: If-Match, or without it If-Unmodified-Since, then the others. */
static void test_conditions(void **state)
{
    static const struct {
        const char *name;
        struct conditions asked; /* If-Match, If-Unmodified-Since, -None-Match, -Modified-Since */
        int verdict, undated;    /* `undated`: of what has no date, as robots.txt */
    } rows[] = {
        {"this one", {"\"abc\"", NULL, NULL, NULL}, SEND, SEND},
        {"any", {"*", NULL, NULL, NULL}, SEND, SEND},
        {"one of a list", {"\"x\", \"abc\"", NULL, NULL, NULL}, SEND, SEND},
        {"another", {"\"x\"", NULL, NULL, NULL}, FAILED, FAILED},
        {"weak", {"W/\"abc\"", NULL, NULL, NULL}, FAILED, FAILED},
        {"suffixed by a proxy", {"\"abc-gzip\"", NULL, NULL, NULL}, FAILED, FAILED},
        {"malformed", {"abc", NULL, NULL, NULL}, FAILED, FAILED},
        {"empty", {"", NULL, NULL, NULL}, FAILED, FAILED},
        {"unmodified since then", {NULL, AT, NULL, NULL}, SEND, SEND},
        {"unmodified since later", {NULL, IN_A_DAY, NULL, NULL}, SEND, SEND},
        {"modified since", {NULL, BEFORE, NULL, NULL}, FAILED, SEND},
        {"no date", {NULL, "yesterday", NULL, NULL}, SEND, SEND},
        {"two dates", {NULL, BEFORE ", " BEFORE, NULL, NULL}, SEND, SEND},
        {"the tag decides, not the date", {"\"abc\"", BEFORE, NULL, NULL}, SEND, SEND},
        {"the tag decides against the date", {"\"x\"", AT, NULL, NULL}, FAILED, FAILED},
        {"right, then not modified", {"\"abc\"", NULL, "\"abc\"", NULL}, SAME, SAME},
        {"right, then by date", {"*", NULL, NULL, AT}, SAME, SEND},
        {"right, then modified", {"*", NULL, "\"x\"", AT}, SEND, SEND},
        {"wrong comes first", {"\"x\"", NULL, "\"abc\"", AT}, FAILED, FAILED},
        {"dates: right, then not modified", {NULL, AT, NULL, AT}, SAME, SEND},
        {"dates: wrong comes first", {NULL, BEFORE, "*", AT}, FAILED, SAME},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct validators own = {"\"abc\"", CHANGED, false}, undated = {"\"abc\"", 0, false};

        check_number(rows[i].name, negotiate_conditions(&rows[i].asked, &own, LATER),
                     rows[i].verdict);
        check_number(rows[i].name, negotiate_conditions(&rows[i].asked, &undated, LATER),
                     rows[i].undated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gzip),         cmocka_unit_test(test_tags),
        cmocka_unit_test(test_best_coding),  cmocka_unit_test(test_states),
        cmocka_unit_test(test_own_weak_tag), cmocka_unit_test(test_not_modified),
        cmocka_unit_test(test_conditions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
