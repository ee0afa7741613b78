/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "tests/unit/rules/check.h"

#include "server/rules/page/fragment.h"

/* RFC 5646: appendix A, 2.1.1, 2.2.x; NULL: no tag. */
static const struct {
    const char *given, *tag;
} rows[] = {
    {"en", "en"},
    {"DE", "de"},
    {"en-us", "en-US"},
    {"EN-gb", "en-GB"},
    {"es-419", "es-419"},
    {"zh-hant", "zh-Hant"},
    {"ZH-HANT-tw", "zh-Hant-TW"},
    {"zh-cmn-Hans-CN", "zh-cmn-Hans-CN"},
    {"sr-latn-rs", "sr-Latn-RS"},
    {"sl-rozaj-biske", "sl-rozaj-biske"},
    {"de-CH-1901", "de-CH-1901"},
    {"de-1996", "de-1996"},
    {"en-US-u-islamcal", "en-US-u-islamcal"},
    {"az-Arab-x-AZE-derbend", "az-Arab-x-aze-derbend"},
    {"en-a-BBB-x-ab", "en-a-bbb-x-ab"},
    {"aaaaaaaa", "aaaaaaaa"},
    {"", NULL},
    {"e", NULL},
    {"x-default", NULL},
    {"x-klingon", NULL},
    {"i-klingon", NULL},
    {"en_US", NULL},
    {"en-", NULL},
    {"-en", NULL},
    {"en--US", NULL},
    {"en US", NULL},
    {"419", NULL},
    {"e1", NULL},
    {"aaaaaaaaa", NULL},
    {"de-419-DE", NULL}, /* two regions */
    {"en-US-en", NULL},
    {"de-DE-1901-1901", NULL},      /* a variant twice */
    {"ar-a-aaa-b-bbb-a-ccc", NULL}, /* an extension twice */
    {"en-a", NULL},
    {"en-x", NULL},
    {"d\xc3\xa9", NULL},
    {"en\"><script>", NULL},
    {"en-aaaaaaaa-bbbbbbbb-cccccccc-dddddd", NULL}, /* 36 bytes */
};

static void test_tags(void **state)
{
    for (size_t i = 0; i < ROWS(rows); i++) {
        char tag[LANGUAGE_MAX_BYTES + 1];
        bool read = language_parse(rows[i].given, strlen(rows[i].given), tag);

        if (read != (rows[i].tag != NULL))
            fail_msg("%s: %s", rows[i].given, read ? "taken" : "refused");
        if (read)
            check_text(rows[i].given, tag, rows[i].tag);
    }
    char tag[LANGUAGE_MAX_BYTES + 1];
    assert_false(language_parse(BYTES("en\0"), tag));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tags)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
