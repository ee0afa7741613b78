/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/rules/entry.h"
#include "server/rules/lastmod.h"
#include "server/rules/loc.h"
#include "tests/unit/rules/check.h"

#define ORIGIN "https://www.example.com"
#define NONE   RULE_BIT(RULE_LOC_NO_SITEMAP)
#define AMP    RULE_BIT(RULE_LOC_AMP)

static void test_locs(void **state)
{
    static const struct {
        const char *loc;
        rule_set remarks;
    } rows[] = {
        {ORIGIN "/a.xml", 0},
        {ORIGIN "/a.xml.gz", 0},
        {ORIGIN "/a.txt", 0},
        {ORIGIN "/feed", 0},
        {ORIGIN "/sitemap.php", 0},
        {ORIGIN "/a.xml?x=1&y=2", 0},
        {ORIGIN "/?sitemap=1", 0},
        {ORIGIN "/index.html?sitemap=1", 0},
        {ORIGIN "/sub/robots.txt", 0},
        {ORIGIN "/page.html/a", 0},
        {ORIGIN "/html", 0},
        {ORIGIN "/a,b.xml", 0},
        {ORIGIN "/a.xmlx", 0},
        {ORIGIN "/a.xml,2025-01-01", NONE},
        {ORIGIN "/a.xml;2025", NONE},
        {ORIGIN "/a.xml.gz,", NONE},
        {ORIGIN "/robots.txt", NONE},
        {ORIGIN "/page.html", NONE},
        {ORIGIN "/Page.HTM", NONE},
        {ORIGIN "/image.jpeg", NONE},
        {ORIGIN "/film.mp4", NONE},
        {ORIGIN "/folder/", NONE},
        {ORIGIN "/", NONE},
        {ORIGIN "/a.xml?x=1&amp;y=2", AMP},
        {ORIGIN "/a&amp;b.xml", AMP},
        {ORIGIN "/a&amp;b/", AMP | NONE},
        {ORIGIN "/a.xml?amp;x=1&ampy=2", 0},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        rule_set remarks = loc_lint(rows[i].loc, strlen(rows[i].loc), strlen(ORIGIN));

        check_number(rows[i].loc, (long long)remarks, (long long)rows[i].remarks);
        check_number(rows[i].loc, (long long)entry_lint(rows[i].loc, NULL, ORIGIN),
                     (long long)rows[i].remarks);
    }
}

static void test_dates(void **state)
{
    static const struct {
        const char *from, *to;
        bool set_back;
    } rows[] = {
        {"2026-01-31", "2026-01-31", false},
        {"2025-01-31", "2026-01-31", false},
        {"2026-01-31", "2026-01-01", false},
        {"2026-01-31", "2025-12-31", false},
        {"2026-06-30", "2025-06-30", false},
        {"2026-06-30", "2025-06-28", true},
        {"2026-06-30T10:00:00Z", "2020", true},
        {"2026-06-30T10:00:00.5+02:00", "1999-12-31T23:59:59-14:00", true},
        {"9999-12-31", "0001-01-01", true},
    };

    for (size_t i = 0; i < ROWS(rows); i++)
        check_number(rows[i].to, lastmod_is_set_back(rows[i].from, rows[i].to), rows[i].set_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locs),
        cmocka_unit_test(test_dates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
