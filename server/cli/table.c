/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The table of commands, of the rows of commands.def. */
#include "server/cli/arguments.h"

#include <limits.h>

#include "db/urlset.h"
#include "server/cli/commands/commands.h"

/* Where two commands share an option, they share its line. */
#define OPTION_INDEX                                                                               \
    {                                                                                              \
        "--index", "URL", "only this index: its URL, or its path with one site"                    \
    }
#define OPTION_URLSET                                                                              \
    {                                                                                              \
        "--urlset", "URL", "the urlset: its URL, or its path with one site"                        \
    }
#define OPTION_ONLY_URLSET                                                                         \
    {                                                                                              \
        "--urlset", "URL", "only this urlset: its URL, or its path with one site"                  \
    }
#define OPTION_MAX_REMOVED                                                                         \
    {                                                                                              \
        "--max-removed", "N", "allow up to N removals (shrink guard)"                              \
    }
#define OPTIONS_SOURCE                                                                             \
    {"--directory", "DIR", "absolute path of the folder on the server"},                           \
        {"--url", "URL", "URL of the folder; ends with a slash"},                                  \
        {"--upstream", "URL", "URL of a remote sitemap index, in place of a folder"},              \
        {"--map", "PAIR",                                                                          \
         "\"FROM TO\", origins: what it lists at FROM is served at TO; repeatable"},               \
        {"--index", "URL", "index that lists it (default: the deepest whose directory holds it)"}, \
        {"--pattern", "NAME", "files of the folder to read; repeatable"},                          \
        {"--exclude", "NAME", "files of the folder to ignore; repeatable"},                        \
        {"--watch", NULL, "notice changes of the folder at once (the default)"},                   \
        {"--no-watch", NULL, "rely on rescans"},                                                   \
        {"--serve", NULL, "serve the files of the folder"},                                        \
        {"--no-serve", NULL, "do not (the default)"},                                              \
        {"--check", NULL, "poll the sitemaps that the upstream lists (the default)"},              \
        {"--no-check", NULL, "list them with the upstream's dates"},                               \
        {"--rescan", "SPAN", "interval between scans of the folder (1h)"},                         \
        {"--settle", "SPAN", "how long the folder must be quiet (10s)"},                           \
        {"--poll", "SPAN", "interval between reads of the upstream (15m)"},                        \
    {                                                                                              \
        "--drop-after", "SPAN", "drop a sitemap that has been invalid this long (3d); 0: never"    \
    }
#define OPTION_SCHEMA                                                                              \
    {                                                                                              \
        "--schema", "NAME", "schema in PostgreSQL ($SITEMAPD_SHARED_SCHEMA; default: sitemapd)"    \
    }
#define OPTION_JSON                                                                                \
    {                                                                                              \
        "--json", NULL, "print JSON, one object for each line"                                     \
    }
#define OPTION_CROSS_HOST                                                                          \
    {                                                                                              \
        "--cross-host", "HOST", "another host whose sitemaps may be listed; repeatable"            \
    }
#define OPTION_HOST_ALIAS                                                                          \
    {                                                                                              \
        "--host-alias", "HOST", "another host name of requests; repeatable"                        \
    }
#define OPTION_MAX_INDEXES                                                                         \
    {                                                                                              \
        "--max-indexes", "N", "most index files of the site (default: 500)"                        \
    }

#define OPTION_ROBOTS                                                                              \
    {                                                                                              \
        "--robots", "FILE", "the site's own robots.txt; the Sitemap lines are appended"            \
    }

/* Of db/urlset.h. */
#define VALUE_NUMBER "N"
#define VALUE_AGE    "SPAN"
#define OPTION_TO_ADD(kind, bit, c, name, option, least, most, counts, note, more, add, set)       \
    {option, VALUE_##kind, add},
#define OPTION_TO_SET(kind, bit, c, name, option, least, most, counts, note, more, add, set)       \
    {option, VALUE_##kind, set},

#define COMMAND(run_, ...) {__VA_ARGS__, .run = run_},
const struct cli_command cli_commands[] = {
#include "server/cli/commands.def"
    {0},
};
