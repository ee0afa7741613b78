/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Builds the table of commands from commands.def. */
#include "server/cli/arguments.h"

#include <limits.h>

#include "db/urlset.h"
#include "server/cli/commands/commands.h"
#include "server/rules/source_settings.h"

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
        "--host-alias", "HOST", "another host name that the site answers to; repeatable"           \
    }
#define OPTION_MAX_INDEXES                                                                         \
    {                                                                                              \
        "--max-indexes", "N", "maximum number of index files of the site (default: 500)"           \
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

/* Of rules/source_settings.h. */
#define OPTION_path(option, help, off)   {"--" option, "DIR", help},
#define OPTION_url(option, help, off)    {"--" option, "URL", help},
#define OPTION_option(option, help, off) {"--" option, "URL", help},
#define OPTION_pairs(option, help, off)  {"--" option, "PAIR", help},
#define OPTION_lines(option, help, off)  {"--" option, "NAME", help},
#define OPTION_span(option, help, off)   {"--" option, "SPAN", help},
#define OPTION_yes_no(option, help, off) {"--" option, NULL, help}, {"--no-" option, NULL, off},
#define OPTION_OF_SOURCE(bit, kind, c, member, option, column, usual, least, most, wrong, note,    \
                         more, help, off)                                                          \
    OPTION_##kind(option, help, off)

#define COMMAND(run_, ...) {__VA_ARGS__, .run = run_},
const struct cli_command cli_commands[] = {
#include "server/cli/commands.def"
    {0},
};
