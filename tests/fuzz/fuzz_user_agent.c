/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The classifier of User-Agent fields: its cache says what it said, and who names
 * no product of a crawler at the start of a word is nobody. */
#include "tests/fuzz/require.h"

#include "server/crawlers/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const tokens[] = {"Ourbot", "Our-Checker"};
    static const struct crawler_rule rule = {.name = "ours", .match_count = 2, .match = tokens};
    static struct crawler_names *names;
    const char *which;
    char why[128];
    char *field = copy_text(data, size);

    if (names == NULL)
        names = crawler_names_new(&rule, 1, &which, why, sizeof why);
    REQUIRE(names != NULL);
    size_t at = names_classify(names, field);
    REQUIRE(at < names_count(names));
    REQUIRE(names_classify(names, field) == at); /* by the cache */
    if (strpbrk(field, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL)
        REQUIRE(at == 0);
    free(field);
    return 0;
}
