#include "server/cli/table_parts.h"

/* Where two commands share an option, they share its line. */
#define OPTION_INDEX                                                                               \
    {                                                                                              \
        "--index", "URL", "only this index: its URL, or its path with one site"                    \
    }
#define OPTION_MAX_REMOVED                                                                         \
    {                                                                                              \
        "--max-removed", "N", "approve that up to N entries go (shrink guard)"                     \
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
        "--host-alias", "HOST", "another name that requests come under; repeatable"                \
    }
#define OPTION_MAX_INDEXES                                                                         \
    {                                                                                              \
        "--max-indexes", "N", "index files that the site may have (default: 500)"                  \
    }

const struct cli_option table_serve_options[] = {
    {"--listen", "A:P", "address and port for crawlers (default: 0.0.0.0:8080)"},
    {"--admin-listen", "A:P", "address and port of the API (default: 127.0.0.1:8081)"},
    {"--site", "ORIGIN", "make sure that this site exists; repeatable"},
    {"--source", "DIR[=URL]", "watch this folder of sitemap files, and serve them; repeatable"},
    {"--user", "NAME", "become this user, where started as root, once the sockets are bound"},
    {0},
};

const struct cli_option table_site_add_options[] = {
    OPTION_CROSS_HOST,
    OPTION_HOST_ALIAS,
    OPTION_MAX_INDEXES,
    {"--no-index", NULL, "do not make an index at /sitemap_index.xml"},
    {0},
};

const struct cli_option table_site_update_options[] = {
    OPTION_CROSS_HOST,  {"--no-cross-hosts", NULL, "take all cross hosts away"},
    OPTION_HOST_ALIAS,  {"--no-host-aliases", NULL, "take all host aliases away"},
    OPTION_MAX_INDEXES, {0},
};

const struct cli_option table_json_options[] = {OPTION_JSON, {0}};
const struct cli_option table_remove_set_options[] = {OPTION_MAX_REMOVED, {0}};

const struct cli_option table_index_add_options[] = {
    {"--pattern", "P", "how further pages are named (default: {stem}-{n}{suffix})"},
    {0},
};

const struct cli_option table_add_options[] = {
    {"--lastmod", "T", "when the sitemap file changed: 2026-11-21 or 2026-11-21T08:30:00Z"},
    {"--digest", "D", "a hash or ETag of the file: lastmod moves only with it"},
    {"--index", "URL", "the index to put it in (default: the deepest that holds it)"},
    {"--source", "NAME", "who owns the entry, where it is new (default: cli)"},
    OPTION_JSON,
    {0},
};

const struct cli_option table_list_options[] = {
    OPTION_INDEX,
    {"--prefix", "URL", "only locs that begin with this"},
    OPTION_JSON,
    {0},
};

const struct cli_option table_import_options[] = {
    {"--index", "URL", "the index for entries that name none (default: the deepest that holds it)"},
    {"--replace", NULL, "make each index named exactly this list; others stay as they are"},
    {"--skip-invalid", NULL, "apply the good entries, though some are refused"},
    {"--dry-run", NULL, "check and count, write nothing"},
    {"--drop-lastmod", NULL, "take no lastmod from the list: its dates would freeze"},
    OPTION_MAX_REMOVED,
    {"--source", "NAME", "who owns the entries made (default: as an export says, else cli)"},
    {0},
};

const struct cli_option table_scan_options[] = {
    {"--url", "URL", "what the folder's top is, ends in a slash"},
    {"--index", "URL", "the index that lists the files (default: the deepest that may)"},
    {"--source", "NAME", "who owns the entries of a folder (default: folder)"},
    {"--dry-run", NULL, "show what would change, write nothing"},
    OPTION_MAX_REMOVED,
    {0},
};

const struct cli_option table_export_options[] = {OPTION_INDEX, {0}};

const struct cli_option table_token_add_options[] = {
    {"--site", "ORIGIN", "good for this site only"},
    {0},
};

const struct cli_option table_restore_options[] = {
    {"--replace", NULL, "put it in the place of the catalogue that is there, which is lost"},
    {0},
};

const struct cli_option table_doctor_options[] = {
    {"--sample", "N", "sitemaps of the index to fetch (default: 5)"},
    {"--connect", "H:P", "ask this host and port, whatever DNS says: the server behind a CDN"},
    {"--ca-file", "FILE", "trust these certificates (PEM), not the system's"},
    {"--timeout", "S", "seconds for each request (default: 20)"},
    OPTION_JSON,
    {0},
};
