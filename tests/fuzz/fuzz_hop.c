/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Locations as any server may send them: none leads past what is allowed. */
#include "tests/fuzz/require.h"

#include "server/client/client.h"

static const char origin[] = "https://www.example.com";

static bool allow(void *context, const struct url *to)
{
    (void)context;
    return to->origin_len == sizeof origin - 1 && memcmp(to->text, origin, sizeof origin - 1) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct url from, to = {.text = "untouched"};
    unsigned status = 300 + (size > 0 ? data[0] % 10 : 1), hops = size > 1 ? data[1] % 6 : 0;
    enum hop_verdict verdict;

    REQUIRE(url_parse("https://www.example.com/a", 25, &from, NULL) == RULE_OK);
    verdict = hop_next(status, size > 2 ? text + (strlen(text) > 2 ? 2 : 0) : text, &from, hops,
                       allow, NULL, &to);
    REQUIRE((hop_sentence(verdict)[0] == '\0') == (verdict == HOP_END || verdict == HOP_FOLLOW));
    if (verdict != HOP_FOLLOW) {
        REQUIRE(strcmp(to.text, "untouched") == 0);
    } else {
        REQUIRE(to.https && url_same_origin(&to, &from) && hops < HOP_MAX);
        REQUIRE(strncmp(to.text, "https://www.example.com/", 24) == 0 &&
                strchr(to.text, '#') == NULL);
    }
    free(text);
    return 0;
}
