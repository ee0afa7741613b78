#include "server/sources/match.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "server/sources/sources.h"

static const char *const usual_patterns[] = {"*.xml", "*.xml.gz", "*.txt", "*.txt.gz", NULL};

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The slashes at a pattern's ends only say what it is compared with. */
static bool matches(const char *pattern, const char *path, int flags)
{
    char bare[SOURCE_MAX_PATH_BYTES + 1];
    bool anchored = *pattern == '/';
    size_t len = strlen(pattern += anchored);
    if (len > 0 && pattern[len - 1] == '/')
        len--;
    if (len >= sizeof bare)
        return false;
    memcpy(bare, pattern, len);
    bare[len] = '\0';
    if (!anchored && strchr(bare, '/') == NULL)
        path = name_of(path);
    return fnmatch(bare, path, FNM_PATHNAME | flags) == 0;
}

static bool matches_any(const char *const *patterns, const char *path, int flags)
{
    for (; patterns && *patterns; patterns++)
        if (matches(*patterns, path, flags))
            return true;
    return false;
}

bool match_file(const struct match *m, const char *path)
{
    return matches_any(m->patterns ? m->patterns : usual_patterns, path, FNM_PERIOD) &&
           !matches_any(m->excludes, path, 0);
}

bool match_folder(const struct match *m, const char *path)
{
    const char *name = name_of(path);
    /* Every ext4 file system has this one at its top, readable to root alone. */
    return *name != '.' && strcmp(path, "lost+found") != 0 && !matches_any(m->excludes, path, 0);
}

bool match_whole(const struct match *m, const char *path)
{
    char folder[SOURCE_MAX_PATH_BYTES + 1];
    int len = snprintf(folder, sizeof folder, "%s", path);
    if (len < 0 || (size_t)len >= sizeof folder)
        return false;
    unsigned depth = 0;
    for (char *slash = strchr(folder, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (++depth > SOURCE_MAX_DEPTH || !match_folder(m, folder))
            return false;
        *slash = '/';
    }
    return match_file(m, path);
}
