/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Locs, origins, hosts, index paths, page patterns: whatever is accepted is in its normal form, and
 * is that form's only spelling. */
#include "tests/fuzz/require.h"

#include "server/rules/entry.h"
#include "server/rules/loc.h"
#include "server/rules/page/render.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* No control, space or non-ASCII; nothing that would need escaping but `&` and `'`. */
static void require_plain(const char *text, size_t len)
{
    REQUIRE(strlen(text) == len);
    for (size_t i = 0; i < len; i++) {
        REQUIRE(text[i] > 0x20 && text[i] < 0x7F);
        REQUIRE(strchr("\"<>\\^`{|}#", text[i]) == NULL);
    }
}

static void require_no_dot_segments(const char *path, size_t len)
{
    size_t segment = 1;

    REQUIRE(path[0] == '/');
    for (size_t i = 1; i <= len; i++) {
        size_t segment_len = i - segment;

        if (i < len && path[i] != '/')
            continue;
        REQUIRE(!(segment_len == 1 && path[segment] == '.'));
        REQUIRE(!(segment_len == 2 && path[segment] == '.' && path[segment + 1] == '.'));
        segment = i + 1;
    }
}

static void require_same(const struct url *url, const struct url *again)
{
    REQUIRE(strcmp(again->text, url->text) == 0);
    REQUIRE(again->len == url->len && again->host_at == url->host_at);
    REQUIRE(again->host_len == url->host_len && again->port == url->port);
    REQUIRE(again->origin_len == url->origin_len && again->path_len == url->path_len);
    REQUIRE(again->https == url->https);
    REQUIRE(url_same_origin(url, again) && url_same_host(url, again));
}

static void require_idempotent(const struct url *url)
{
    struct url again;
    rule_set remarks = 0;

    REQUIRE(url_parse(url->text, url->len, &again, &remarks) == RULE_OK);
    REQUIRE((remarks & RULE_BIT(RULE_LOC_NORMALISED)) == 0);
    require_same(url, &again);
    REQUIRE(url_split(url->text, url->len, &again));
    require_same(url, &again);
}

/* What is not a normal form comes apart somehow, or not at all: within its bounds. */
static void split_anything(const char *text, size_t len)
{
    struct url url;

    if (url_split(text, len, &url)) {
        REQUIRE(url.len == len && (size_t)url.origin_len + url.path_len <= len);
        REQUIRE((size_t)url.host_at + url.host_len <= url.origin_len);
    }
}

static void require_origin(const struct url *url)
{
    struct url origin;
    char host[HOST_MAX_CHARS + 7];

    REQUIRE(url_parse_origin(url->text, url->origin_len, &origin) == RULE_OK);
    REQUIRE(origin.len == url->origin_len && url_same_origin(url, &origin));
    REQUIRE(url_parse_host(url->text + url->host_at, url->host_len, host) == RULE_OK);
    REQUIRE(strlen(host) == url->host_len);
    REQUIRE(memcmp(host, url->text + url->host_at, url->host_len) == 0);
    /* Nothing but what is said of the loc alone: it is on no other host than its own. */
    REQUIRE(entry_lint(url->text, NULL, origin.text) ==
            loc_lint(url->text, url->len, url->origin_len));
}

static void require_renders(const struct url *url)
{
    struct str out = STR_INIT;

    render_entry(&out, url->text, url->len, "2026-01-01T00:00:00.123456789+14:00");
    REQUIRE(!out.failed && out.len == render_entry_bytes(url->text, url->len));
    str_done(&out);
}

static void try_loc(const char *text, size_t len)
{
    struct url url;
    rule_set remarks = 0;
    enum rule_code code = url_parse(text, len, &url, &remarks);
    char hint[HOST_MAX_CHARS + 1];
    char host[HOST_MAX_CHARS + 7];

    if (url_punycode_hint(text, len, hint, sizeof hint)) {
        require_plain(hint, strlen(hint));
        REQUIRE(url_parse_host(hint, strlen(hint), host) == RULE_OK);
        REQUIRE(strcmp(hint, host) == 0);
    }
    if (code != RULE_OK)
        return;
    REQUIRE(url.len >= LOC_MIN_CHARS && url.len <= LOC_MAX_CHARS);
    REQUIRE(url.origin_len + url.path_len <= url.len && url.path_len > 0);
    require_plain(url.text, url.len);
    require_no_dot_segments(url.text + url.origin_len, url.path_len);
    require_idempotent(&url);
    require_origin(&url);
    require_renders(&url);
    REQUIRE(scope_holds("/x.xml", &url));
    REQUIRE(((remarks & RULE_BIT(RULE_LOC_NORMALISED)) == 0) ==
            (url.len == len && memcmp(url.text, text, len) == 0));
}

static void try_origin(const char *text, size_t len)
{
    struct url origin, again;

    if (url_parse_origin(text, len, &origin) != RULE_OK)
        return;
    require_plain(origin.text, origin.len);
    REQUIRE(url_parse_origin(origin.text, origin.len, &again) == RULE_OK);
    REQUIRE(strcmp(origin.text, again.text) == 0);
    REQUIRE(origin.text[origin.len - 1] != '/' && origin.path_len == 0);
}

static void try_host(const char *text, size_t len)
{
    char host[HOST_MAX_CHARS + 7], again[HOST_MAX_CHARS + 7];

    if (url_parse_host(text, len, host) != RULE_OK)
        return;
    require_plain(host, strlen(host));
    REQUIRE(url_parse_host(host, strlen(host), again) == RULE_OK);
    REQUIRE(strcmp(host, again) == 0);
}

/* A page's path names that page, and is itself a normalised path. */
static void require_inverse(const char *index_path, const char *pattern)
{
    static const uint32_t numbers[] = {1, 2, 10, 499, 500, UINT32_MAX};
    char path[PAGE_PATH_SIZE];

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        scope_page_path(index_path, pattern, numbers[i], i % 2 == 1, path);
        REQUIRE(scope_page_number(index_path, pattern, UINT32_MAX, path, strlen(path)) ==
                numbers[i]);
        scope_page_path(index_path, pattern, numbers[i], false, path);
        REQUIRE(strlen(path) > INDEX_PATH_MAX_CHARS || scope_check_index_path(path) == RULE_OK);
    }
}

/* What names a page is that page's path, to the byte. */
static void try_page_name(const char *index_path, const char *pattern, const char *text, size_t len)
{
    uint32_t number = scope_page_number(index_path, pattern, UINT32_MAX, text, len);
    char path[PAGE_PATH_SIZE];
    bool gz = len > 3 && memcmp(text + len - 3, ".gz", 3) == 0;

    if (number == 0)
        return;
    scope_page_path(index_path, pattern, number, gz, path);
    REQUIRE(strlen(path) == len && memcmp(path, text, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    char *text = copy_text(data, size);

    split_anything(bytes, size);
    try_loc(bytes, size);
    try_origin(bytes, size);
    try_host(bytes, size);
    try_page_name("/x.xml", PAGE_PATTERN_DEFAULT, bytes, size);
    try_page_name("/x.xml", "{stem}1{n}0{suffix}", bytes, size);
    if (scope_check_index_path(text) == RULE_OK)
        require_inverse(text, PAGE_PATTERN_DEFAULT);
    if (scope_check_pattern(text) == RULE_OK)
        require_inverse("/shop/x-2.xml", text);
    free(text);
    return 0;
}
