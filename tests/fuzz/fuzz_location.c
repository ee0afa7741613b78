/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The path of a request for a served file: whatever it is, the result is a name below the
 * folder, and the one URL of that name. */
#include "tests/fuzz/require.h"

#include "server/base/str.h"
#include "server/sources/folder/walk.h"
#include "server/sources/sources.h"

#define ORIGIN "https://www.example.com"

/* It can be shown and registered: UTF-8 without control characters. */
static bool is_clean(const char *path, size_t len)
{
    for (size_t at = 0, step; at < len; at += step) {
        step = utf8_char_len(path + at, len - at);
        if (step == 0 || utf8_is_control(path + at, step))
            return false;
    }
    return true;
}

/* No part of it is empty, "." or "..". */
static bool is_below(const char *path)
{
    size_t len = strlen(path), at = 0;

    while (at <= len) {
        size_t step = strcspn(path + at, "/");
        if (step == 0 || (step == 1 && path[at] == '.') ||
            (step == 2 && path[at] == '.' && path[at + 1] == '.'))
            return false;
        at += step + 1;
    }
    return len <= SOURCE_MAX_PATH_BYTES && is_clean(path, len);
}

static void try_path(const struct location *l, const char *url_path)
{
    char path[SOURCE_MAX_PATH_BYTES + 1];
    struct url url;

    if (!location_path(l, ORIGIN, url_path, path))
        return;
    REQUIRE(is_below(path));
    REQUIRE(location_loc(l, path, &url) == RULE_OK);
    REQUIRE(strcmp(url.text + url.origin_len, url_path) == 0);
}

/* The other way: a name that is found in a folder has a URL, and no other name has it. */
static void try_name(const struct location *l, const char *name)
{
    char path[SOURCE_MAX_PATH_BYTES + 1];
    struct url url;

    if (is_below(name) && location_loc(l, name, &url) == RULE_OK &&
        location_path(l, ORIGIN, url.text + url.origin_len, path))
        REQUIRE(strcmp(path, name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const patterns[] = {"*.xml", "drafts/*.gz", "[a-c]?.txt", NULL};
    static const char *const excludes[] = {"tmp/*", ".x", NULL};
    static struct location top, deep;
    char why[200];

    if (top.base_len == 0)
        REQUIRE(location_init(&top, ORIGIN "/", why, sizeof why) &&
                location_init(&deep, ORIGIN "/maps/de%20u/", why, sizeof why));
    char *text = copy_text(data, size);
    const struct match all = {NULL, NULL}, some = {patterns, excludes};
    try_path(&top, text);
    try_path(&deep, text);
    try_name(&top, text);
    try_name(&deep, text);
    (void)match_whole(&all, text);
    REQUIRE(!match_whole(&some, text) || match_file(&some, text));
    free(text);
    return 0;
}
