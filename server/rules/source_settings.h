/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The settings of a source of any kind, for the configuration, the API, the command line, the
 * catalogue and server/sources. Each has one row here. config/settings.c parses those of the
 * configuration in place. Copies and comparisons follow from the rows; for settings that API and
 * command line also set, so do columns, JSON, options and documents. Absent: NULL, 0 or false. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(bit, kind, member), or of those that API and command line set, X(bit of SOURCE_SET_…, kind,
 * member in C, member in JSON, option, column, default, least, most, message for a value outside of
 * these, sentence, addition for requests, help, help of its `--no-` form). Kinds: path, url, option
 * (may be null) and text are texts; pairs a text of a pair of origins a line (host_map.h); lines a
 * NULL-terminated list; yes_no; span, milliseconds, in JSON seconds from least to most. */
#define SOURCE_PLACES_OF_FOLDER(X)                                                                 \
    X(DIRECTORY, path, directory, directory, "directory", "directory", NULL, , , ,                 \
      "Of a folder: its absolute path.", " It is below a `source_root` of the configuration.",     \
      "absolute path of the folder on the server", )                                               \
    X(URL, url, url, url, "url", "url", NULL, , , , "Of a folder: its URL.", " Ends in a slash.",  \
      "URL of the folder; ends with a slash", )
#define SOURCE_PLACES_OF_UPSTREAM(X)                                                               \
    X(UPSTREAM, url, upstream, upstream, "upstream", "upstream", NULL, , , ,                       \
      "Of a remote source: the sitemap index that it mirrors.", "",                                \
      "URL of a remote sitemap index, instead of a folder", )                                      \
    X(MAP, pairs, map, map, "map", "host_map", NULL, , , ,                                         \
      "Of a remote source: pairs of origins, `FROM TO`: what it lists at the first is listed and " \
      "served at the second; empty or null: none.",                                                \
      "",                                                                                          \
      "\"FROM TO\", two origins: URLs that the upstream has at FROM are listed at TO; "            \
      "repeatable", )
#define SOURCE_INDEX(X)                                                                            \
    X(INDEX, option, index, index, "index", "index_url", NULL, , , ,                               \
      "The index of its entries; null: the deepest that contains them.", "",                       \
      "index that lists it (default: the deepest whose directory holds it)", )
#define SOURCE_READING_OF_FOLDER(X)                                                                \
    X(PATTERNS, lines, patterns, patterns, "pattern", "patterns", NULL, , , ,                      \
      "Of a folder: patterns of names that are read; empty or null: *.xml, *.xml.gz, *.txt, "      \
      "*.txt.gz.",                                                                                 \
      "", "files of the folder to read; repeatable", )                                             \
    X(EXCLUDES, lines, excludes, excludes, "exclude", "excludes", NULL, , , ,                      \
      "Of a folder: patterns of names that are ignored.", "",                                      \
      "files of the folder to ignore; repeatable", )                                               \
    X(WATCH, yes_no, watch, watch, "watch", "watch", true, , , ,                                   \
      "Of a folder: changes are noticed at once.", "",                                             \
      "notice changes of the folder at once (the default)", "notice changes only by rescans")      \
    X(RESCAN, span, rescan_ms, rescan, "rescan", "rescan_ms", 3600000, 60, 2592000,                \
      "must be from 1m to 30d", "Of a folder: seconds between complete scans.", "",                \
      "interval between scans of the folder (default: 1h)", )                                      \
    X(SETTLE, span, settle_ms, settle, "settle", "settle_ms", 10000, 0, 86400,                     \
      "must be at most 24h",                                                                       \
      "Of a folder: seconds during which nothing may change before a scan.", "",                   \
      "how long nothing may change before changes are published (default: 10s)", )
#define SOURCE_READING_OF_UPSTREAM(X)                                                              \
    X(POLL, span, poll_ms, poll, "poll", "poll_ms", 900000, 60, 86400, "must be from 1m to 24h",   \
      "Of a remote source: seconds between polls of the upstream.", "",                            \
      "interval between reads of the upstream (default: 15m)", )                                   \
    X(CHECK, yes_no, check, check, "check", "checked", true, , , ,                                 \
      "Of a remote source: the sitemaps that it lists are polled, too.", "",                       \
      "poll the sitemaps that the upstream lists (the default)",                                   \
      "do not poll them; list them with the upstream's dates")                                     \
    X(DROP_AFTER, span, drop_after_ms, drop_after, "drop-after", "drop_after_ms", 259200000, 0,    \
      2592000, "must be at most 30d",                                                              \
      "Of a remote source: seconds that a sitemap may be invalid before it is removed; 0: never.", \
      "", "remove a sitemap that has been invalid this long (default: 3d); 0: never", )
#define SOURCE_SERVE(X)                                                                            \
    X(SERVE, yes_no, serve, serve, "serve", "serve", false, , , ,                                  \
      "The public listener serves its files, or copies of the sitemaps that its upstream lists.",  \
      "", "serve the files of the folder, or copies of the sitemaps that the upstream lists",      \
      "do not (the default)")

#define SOURCE_SETTINGS_OF_FOLDER(X)   SOURCE_PLACES_OF_FOLDER(X) SOURCE_READING_OF_FOLDER(X)
#define SOURCE_SETTINGS_OF_UPSTREAM(X) SOURCE_PLACES_OF_UPSTREAM(X) SOURCE_READING_OF_UPSTREAM(X)
#define SOURCE_SETTINGS(X)                                                                         \
    SOURCE_SETTINGS_OF_FOLDER(X) SOURCE_SETTINGS_OF_UPSTREAM(X) SOURCE_INDEX(X) SOURCE_SERVE(X)

/* Settings that only the configuration or the server sets. */
#define SOURCE_SETTINGS_CONFIGURED(X)                                                              \
    X(, text, name)                                                                                \
    X(, lines, split)       /* of a folder yes or no; of an upstream URLs of sitemaps to split */  \
    X(, bytes, split_bytes) /* that a split may take of the disk; 0: no bound */                   \
    X(, yes_no, managed)    /* from the configuration; else created by API or command line */      \
    X(, id, site_id)        /* the only site that it may list in; 0: any */                        \
    X(, yes_no, splits)  /* `split` of a folder is yes: a file over the limits becomes a urlset */ \
    X(, yes_no, by_site) /* a token for one site created it, or was the last to change it */       \
    X(, text, root)      /* it reads only below this folder, also by symlinks; NULL: anywhere */   \
    X(, yes_no, closed)  /* no folder is allowed: it reads nothing, and reports that */            \
    X(, text, connect)   /* "host:port" to connect to for its origin; NULL: from DNS */            \
    X(, text, ca_file)   /* PEM; NULL: the system's trust */                                       \
    X(, text, credentials)    /* "basic USER:PASS" or "bearer TOKEN", only for its origin */       \
    X(, yes_no, public_check) /* also check some at their public address */
#define SOURCE_SETTINGS_ALL(X) SOURCE_SETTINGS_CONFIGURED(X) SOURCE_SETTINGS(X)

#define SOURCE_TYPE_text                 const char *
#define SOURCE_TYPE_path                 const char *
#define SOURCE_TYPE_url                  const char *
#define SOURCE_TYPE_option               const char *
#define SOURCE_TYPE_pairs                const char *
#define SOURCE_TYPE_lines                const char *const *
#define SOURCE_TYPE_yes_no               bool
#define SOURCE_TYPE_span                 uint32_t
#define SOURCE_TYPE_bytes                uint64_t
#define SOURCE_TYPE_id                   int64_t
#define SOURCE_MEMBER(bit, kind, c, ...) SOURCE_TYPE_##kind c;

struct host_map;
/* Owns the entries of a folder that a command registers without a source. */
#define SOURCE_OF_NO_SECTION "folder"

struct source_settings {
    SOURCE_SETTINGS_ALL(SOURCE_MEMBER)
    struct host_map *host_map; /* the parsed `map`; only in copies, which own it */
};

#define SOURCE_SETTING_NUMBER(bit, ...) SOURCE_IS_##bit,
#define SOURCE_SETTING_BIT(bit, ...)    SOURCE_SET_##bit = 1u << SOURCE_IS_##bit,
#define SOURCE_SETTING_OR(bit, ...)     | SOURCE_SET_##bit
enum { SOURCE_SETTINGS(SOURCE_SETTING_NUMBER) SOURCE_SETTINGS_COUNT };
enum { SOURCE_SETTINGS(SOURCE_SETTING_BIT) };
#define SOURCE_SET_OF_FOLDER   (0u SOURCE_SETTINGS_OF_FOLDER(SOURCE_SETTING_OR))
#define SOURCE_SET_OF_UPSTREAM (0u SOURCE_SETTINGS_OF_UPSTREAM(SOURCE_SETTING_OR))

/* Copies settings and their texts; URLs of `split` get their normal form. False when out of memory.
 * Free the copy with source_settings_done in any case. */
bool source_settings_copy(const struct source_settings *from, struct source_settings *to);
void source_settings_done(struct source_settings *settings);
bool source_settings_equal(const struct source_settings *a, const struct source_settings *b);
