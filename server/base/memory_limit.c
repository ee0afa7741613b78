/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A line of the list is "0::/path" (v2) or "N:controllers:/path" (v1; only the controller "memory"
 * counts). In a container the path is relative to its own namespace or to the host's. Paths that do
 * not exist below the mount are skipped; the mount itself is the container's group. */
#include "server/base/memory_limit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LIMIT   (UINT64_MAX / 4) /* v1 reports almost 2^63 if there is no limit */
#define PATH_BYTES 4096

static void read_limit(const char *folder, const char *name, uint64_t *least)
{
    char path[PATH_BYTES + 32], text[32] = "", *end = text;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    char *got = fgets(text, sizeof text, file);
    fclose(file);
    errno = 0;
    unsigned long long limit = got != NULL ? strtoull(text, &end, 10) : 0;
    if (end != text && errno == 0 && limit > 0 && limit < NO_LIMIT &&
        limit < *least) /* not "max" */
        *least = limit;
}

/* Reads the limits of the group and of all groups above it, up to the mount. */
static void read_groups(const char *mount, const char *group, bool second, uint64_t *least)
{
    char folder[PATH_BYTES];
    size_t top = strlen(mount);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", mount, group) >= sizeof folder)
        return;
    for (;;) {
        read_limit(folder, second ? "memory.max" : "memory.limit_in_bytes", least);
        if (second)
            read_limit(folder, "memory.high", least);
        char *slash = strrchr(folder + top, '/');
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

uint64_t memory_limit(const char *groups, const char *root)
{
    char line[PATH_BYTES], mount[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    FILE *file = fopen(groups, "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL)
            continue;
        controllers++;
        *group++ = '\0';
        bool second = *controllers == '\0';
        if (!second && strcmp(controllers, "memory") != 0)
            continue;
        snprintf(mount, sizeof mount, "%s%s", root, second ? "" : "/memory");
        read_groups(mount, group, second, &least);
    }
    fclose(file);
    return least != UINT64_MAX ? least : 0;
}
