/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Cache-Control, Age, Retry-After and dates as any server may send them. */
#include "tests/fuzz/require.h"

#include "server/rules/http/freshness.h"

#define NOW_2026 1767225600

static char *with(const char *text, const char *behind)
{
    char *out = malloc(strlen(text) + strlen(behind) + 1);

    if (out == NULL)
        abort();
    return strcat(strcpy(out, text), behind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size), *longer = with(text, ",max-age=5"),
         *stored = with(text, ",no-store");
    int64_t left = freshness_remaining(text, NULL), seconds = -7, later = -7, at = -7;

    REQUIRE(left >= 0 && left <= FRESHNESS_MAX_SECONDS);
    REQUIRE(freshness_remaining(NULL, text) == 0);
    REQUIRE(freshness_remaining(text, "1") == (left > 0 ? left - 1 : 0));
    REQUIRE(freshness_remaining("max-age=10", text) <= 10);
    /* Of several the least counts, and nothing outweighs no-store. */
    REQUIRE(freshness_remaining(longer, NULL) <= 5);
    REQUIRE(freshness_remaining(stored, NULL) == 0);
    if (freshness_retry_after(text, NOW_2026, &seconds)) {
        REQUIRE(seconds >= 0 && seconds <= FRESHNESS_MAX_SECONDS);
        REQUIRE(freshness_retry_after(text, NOW_2026 + 1, &later));
    } else {
        REQUIRE(seconds == -7);
    }
    /* Any clock. */
    (void)freshness_retry_after(text, INT64_MIN / 2, &later);
    (void)freshness_retry_after(text, INT64_MAX / 2, &later);
    if (!freshness_modified_at(text, "Thu, 01 Jan 2026 00:00:00 GMT", NOW_2026, &at))
        REQUIRE(at == -7);
    else
        REQUIRE(at <= NOW_2026 - 60);
    REQUIRE(!freshness_modified_at(text, text, NOW_2026, &at));
    free(text);
    free(longer);
    free(stored);
    return 0;
}
