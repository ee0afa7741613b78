/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Which index may hold which loc: an index path, a line's end, and a loc. What is held lies below
 * the index's directory, byte for byte, and nothing of it leads out again. */
#include "tests/fuzz/require.h"

#include "server/rules/scope.h"

static void require_below(const char *index_path, const struct url *loc)
{
    size_t len = scope_directory_len(index_path, strlen(index_path));
    const char *path = loc->text + loc->origin_len;

    REQUIRE(len >= 1 && index_path[len - 1] == '/');
    REQUIRE(loc->path_len >= len && memcmp(path, index_path, len) == 0);
    for (size_t i = 0; i + 1 < loc->path_len; i++)
        REQUIRE(!(path[i] == '/' && path[i + 1] == '.' &&
                  (i + 2 == loc->path_len || path[i + 2] == '/' ||
                   (path[i + 2] == '.' && (i + 3 == loc->path_len || path[i + 3] == '/')))));
}

/* What holds a loc is held by whatever is above it. */
static void require_upwards(const char *index_path, const struct url *loc)
{
    char above[INDEX_PATH_MAX_CHARS + 8];
    size_t len = scope_directory_len(index_path, strlen(index_path));

    while (len > 1) {
        len = scope_directory_len(index_path, len - 1);
        snprintf(above, sizeof above, "%.*sx.xml", (int)len, index_path);
        REQUIRE(scope_holds(above, loc));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *index_path = copy_text(data, size);
    char *line_end = memchr(index_path, '\n', size);
    struct url loc;

    if (line_end != NULL) {
        *line_end = '\0';
        const char *text = line_end + 1;
        size_t len = size - (size_t)(text - index_path);
        if (strlen(index_path) == (size_t)(line_end - index_path) &&
            scope_check_index_path(index_path) == RULE_OK &&
            url_parse(text, len, &loc, NULL) == RULE_OK && scope_holds(index_path, &loc)) {
            require_below(index_path, &loc);
            require_upwards(index_path, &loc);
        }
    }
    free(index_path);
    return 0;
}
