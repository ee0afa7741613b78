/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* robots.txt of another's server: lines cover the text, what is taken out of one lies within it,
 * and a line that crawlers can use means what its author meant. */
#include "tests/fuzz/require.h"

#include "server/rules/robots.h"

static void try_lines(const char *text, size_t len)
{
    struct robots_line line = {0};
    const char *at = text;

    while (robots_next_line(text, len, &line)) {
        const char *end = line.text + line.len;

        REQUIRE(line.text == at && line.len > 0 && end <= text + len);
        REQUIRE(line.key >= line.text && line.key + line.key_len <= end);
        REQUIRE(line.value >= line.text && line.value + line.value_len <= end);
        at = end;
    }
    REQUIRE(at == text + len);
}

static void try_sitemaps(const char *text, size_t len)
{
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;
    struct url base, url, meant;
    const char *code, *why;
    uint64_t line = 0;

    REQUIRE(url_parse("https://www.example.com/robots.txt", 34, &base, NULL) == RULE_OK);
    while (robots_next_sitemap(text, len, &at, &sitemap)) {
        REQUIRE(sitemap.url >= text && sitemap.url + sitemap.url_len <= text + len);
        REQUIRE(sitemap.line >= line);
        line = sitemap.line;
        if (robots_sitemap_url(&sitemap, &url, &code, &why))
            REQUIRE(robots_sitemap_guess(&sitemap, &base, &meant) &&
                    strcmp(url.text, meant.text) == 0);
        else
            (void)robots_sitemap_guess(&sitemap, &base, &meant);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    const char *fault = robots_fault(text, size);

    try_lines(text, size);
    try_sitemaps(text, size);
    (void)robots_allows(text, size, "googlebot", "/sitemap.xml?page=1");
    robots_repair_comments(text, size);
    REQUIRE(fault != NULL || robots_fault(text, size) == NULL);
    free(text);
    return 0;
}
