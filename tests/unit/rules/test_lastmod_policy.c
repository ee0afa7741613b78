/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The date of an entry: a table. */
#include "tests/unit/rules/check.h"

#include "server/rules/lastmod.h"

#define NOW   1790000000 /* 2026-09-21T14:13:20Z */
#define DAY   86400
#define D1980 315532800

static const struct {
    const char *name;
    uint64_t stored, found; /* hashes; 0: none */
    int64_t served;         /* 0: never */
    int64_t mtime;
    int64_t want;
    bool moved, future;
} cases[] = {
    {"first, dated by the file", 0, 7, 0, NOW - 5 * DAY, NOW - 5 * DAY, true, false},
    {"first, dated now", 0, 7, 0, NOW, NOW, true, false},
    {"first, an image's 1980", 0, 7, 0, D1980, NOW, true, false},
    {"first, the epoch", 0, 7, 0, 0, NOW, true, false},
    {"first, before the epoch", 0, 7, 0, -5, NOW, true, false},
    {"first, the last second of 1989", 0, 7, 0, 631151999, NOW, true, false},
    {"first, 1990", 0, 7, 0, 631152000, 631152000, true, false},
    {"first, ahead", 0, 7, 0, NOW + 1, NOW, true, true},
    {"first, far ahead", 0, 7, 0, NOW + 9999 * (int64_t)DAY, NOW, true, true},
    {"touched", 7, 7, NOW - 9 * DAY, NOW - DAY, NOW - 9 * DAY, false, false},
    {"touched back", 7, 7, NOW - 9 * DAY, NOW - 99 * DAY, NOW - 9 * DAY, false, false},
    {"touched ahead", 7, 7, NOW - 9 * DAY, NOW + DAY, NOW - 9 * DAY, false, true},
    {"changed", 7, 8, NOW - 9 * DAY, NOW - DAY, NOW - DAY, true, false},
    {"changed, dated a second later", 7, 8, NOW - 9, NOW - 8, NOW - 8, true, false},
    {"changed, same date", 7, 8, NOW - DAY, NOW - DAY, NOW, true, false},
    {"changed, rolled back", 7, 8, NOW - DAY, NOW - 9 * DAY, NOW, true, false},
    {"changed, 1980", 7, 8, NOW - DAY, D1980, NOW, true, false},
    {"changed, later than 1980", 7, 8, D1980, D1980 + 5, D1980 + 5, true, false},
    {"changed, ahead", 7, 8, NOW - DAY, NOW + DAY, NOW, true, true},
    {"changed twice within a second", 7, 8, NOW, NOW, NOW, true, false},
    {"changed, the clock was set back", 7, 8, NOW + DAY, NOW, NOW + DAY, true, false},
    {"changed, clock back, file ahead", 7, 8, NOW + DAY, NOW + 2 * DAY, NOW + DAY, true, true},
    {"changed, served from the future", 7, 8, NOW + DAY + 1, NOW - DAY, NOW - DAY, true, false},
    {"changed, all from the future", 7, 8, NOW + 9 * DAY, NOW + 9 * DAY, NOW, true, true},
    {"touched, served from the future", 7, 7, NOW + 9 * DAY, NOW - DAY, NOW - DAY, false, false},
    {"same, never served", 7, 7, 0, NOW - DAY, NOW - DAY, false, false},
};

static void dates_move_with_content_alone(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t stored[2] = {cases[i].stored, 0}, found[2] = {0, 0};
        char served[21], want[21];
        struct lastmod_verdict verdict;
        found[0] = cases[i].found;
        lastmod_format_utc(cases[i].served, served);
        lastmod_format_utc(cases[i].want, want);
        lastmod_policy(stored, found, cases[i].served ? served : NULL, cases[i].mtime, NOW,
                       &verdict);
        if (strcmp(verdict.lastmod, want) != 0 || verdict.moved != cases[i].moved ||
            verdict.future != cases[i].future)
            fail_msg("%s: %s (want %s), moved %d, future %d", cases[i].name, verdict.lastmod, want,
                     verdict.moved, verdict.future);
    }
}

static void what_was_served_is_kept_as_it_was_written(void **state)
{
    const uint64_t hash[2] = {0, 5};
    struct lastmod_verdict verdict;
    lastmod_policy(hash, hash, "2026-09-01", NOW - DAY, NOW, &verdict);
    assert_string_equal(verdict.lastmod, "2026-09-01");
    const uint64_t other[2] = {5, 0};
    lastmod_policy(hash, other, "2026-09-01T00:00:00+02:00", 1788213600, NOW, &verdict);
    assert_string_equal(verdict.lastmod, "2026-09-21T14:13:20Z"); /* the same instant: not later */
    lastmod_policy(hash, other, "nonsense", NOW - DAY, NOW, &verdict);
    assert_string_equal(verdict.lastmod, "2026-09-20T14:13:20Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_move_with_content_alone),
        cmocka_unit_test(what_was_served_is_kept_as_it_was_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
