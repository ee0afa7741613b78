#include "server/cli/table.h"

#include "server/cli/commands.h"

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
#define OPTION_SOURCE                                                                              \
    {                                                                                              \
        "--source", "NAME", "who owns the entries made (default: as an export says, else cli)"     \
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

static const struct cli_option serve_options[] = {
    {"--listen", "A:P", "address and port for crawlers (default: 0.0.0.0:8080)"},
    {"--admin-listen", "A:P", "address and port of the API (default: 127.0.0.1:8081)"},
    {"--site", "ORIGIN", "make sure that this site exists; repeatable"},
    {"--source", "DIR[=URL]", "watch this folder of sitemap files, and serve them; repeatable"},
    {0},
};

static const struct cli_option site_add_options[] = {
    OPTION_CROSS_HOST,
    OPTION_HOST_ALIAS,
    OPTION_MAX_INDEXES,
    {"--no-index", NULL, "do not make an index at /sitemap_index.xml"},
    {0},
};

static const struct cli_option site_update_options[] = {
    OPTION_CROSS_HOST,  {"--no-cross-hosts", NULL, "take all cross hosts away"},
    OPTION_HOST_ALIAS,  {"--no-host-aliases", NULL, "take all host aliases away"},
    OPTION_MAX_INDEXES, {0},
};

static const struct cli_option json_options[] = {OPTION_JSON, {0}};
static const struct cli_option remove_set_options[] = {OPTION_MAX_REMOVED, {0}};

static const struct cli_option index_add_options[] = {
    {"--pattern", "P", "how further pages are named (default: {stem}-{n}{suffix})"},
    {0},
};

static const struct cli_option add_options[] = {
    {"--lastmod", "T", "when the sitemap file changed: 2026-11-21 or 2026-11-21T08:30:00Z"},
    {"--digest", "D", "a hash or ETag of the file: lastmod moves only with it"},
    {"--index", "URL", "the index to put it in (default: the deepest that holds it)"},
    OPTION_SOURCE,
    OPTION_JSON,
    {0},
};

static const struct cli_option list_options[] = {
    OPTION_INDEX,
    {"--prefix", "URL", "only locs that begin with this"},
    OPTION_JSON,
    {0},
};

static const struct cli_option import_options[] = {
    {"--index", "URL", "the index for entries that name none (default: the deepest that holds it)"},
    {"--replace", NULL, "make each index named exactly this list; others stay as they are"},
    {"--skip-invalid", NULL, "apply the good entries, though some are refused"},
    {"--dry-run", NULL, "check and count, write nothing"},
    {"--drop-lastmod", NULL, "take no lastmod from the list: its dates would freeze"},
    OPTION_MAX_REMOVED,
    OPTION_SOURCE,
    {0},
};

static const struct cli_option scan_options[] = {
    {"--url", "URL", "what the folder's top is, ends in a slash"},
    {"--index", "URL", "the index that lists the files (default: the deepest that may)"},
    {"--source", "NAME", "who owns the entries of a folder (default: folder)"},
    {"--dry-run", NULL, "show what would change, write nothing"},
    OPTION_MAX_REMOVED,
    {0},
};

static const struct cli_option export_options[] = {OPTION_INDEX, {0}};

static const struct cli_option token_add_options[] = {
    {"--site", "ORIGIN", "good for this site only"},
    {0},
};

const struct cli_command cli_commands[] = {
    {"serve", "", "serve index pages to crawlers and the API to you",
     "Serves until SIGTERM: index pages and robots.txt on the public listener, the API, metrics "
     "and\n"
     "health on the admin listener. When it is ready it prints one line on stdout:\n\n"
     "  sitemapd: ready public=http://127.0.0.1:8080 admin=http://127.0.0.1:8081\n\n"
     "example:\n"
     "  sitemapd serve --site https://www.example.com --listen 127.0.0.1:8080",
     serve_options, 0, 0, command_serve},
    {"check-config", "[FILE]", "find every mistake in the configuration",
     "Reads the configuration and prints each mistake as file:line: message.\n\n"
     "example:\n"
     "  sitemapd check-config --config /etc/sitemapd/sitemapd.conf",
     NULL, 0, 1, command_check_config},
    {"site add", "ORIGIN", "make a site, with an index at /sitemap_index.xml",
     "Makes a site: the origin whose sitemaps are listed. Sitemaps on another host (a CDN) may be\n"
     "listed once that host is a cross host.\n\n"
     "example:\n"
     "  sitemapd site add https://www.example.com --cross-host cdn.example.com",
     site_add_options, 1, 1, command_site_add},
    {"site update", "ORIGIN", "change a site's hosts or limit",
     "Replaces the lists that are named; what is not named stays.\n\n"
     "example:\n"
     "  sitemapd site update https://www.example.com --cross-host cdn.example.com",
     site_update_options, 1, 1, command_site_update},
    {"site list", "", "show the sites",
     "Shows each site with its hosts, indexes and pages.\n\n"
     "example:\n"
     "  sitemapd site list",
     json_options, 0, 0, command_site_list},
    {"site remove", "ORIGIN", "remove a site with all its entries",
     "Removes a site, its indexes and their entries. Held by the shrink guard unless "
     "--max-removed\n"
     "approves as many entries as it has.\n\n"
     "example:\n"
     "  sitemapd site remove https://www.example.com --max-removed 120",
     remove_set_options, 1, 1, command_site_remove},
    {"index add", "URL", "make an index",
     "Makes an index. It lists sitemaps of its own directory and below, so an index at\n"
     "/shop/sitemap_index.xml lists only /shop/...\n\n"
     "example:\n"
     "  sitemapd index add https://www.example.com/shop/sitemap_index.xml",
     index_add_options, 1, 1, command_index_add},
    {"index list", "", "show the indexes",
     "Shows each index with its entries, pages and size.\n\n"
     "example:\n"
     "  sitemapd index list",
     json_options, 0, 0, command_index_list},
    {"index remove", "URL", "remove an index with all its entries",
     "Removes an index and its entries. Held by the shrink guard unless --max-removed approves as\n"
     "many entries as it has.\n\n"
     "example:\n"
     "  sitemapd index remove https://www.example.com/shop/sitemap_index.xml --max-removed 40",
     remove_set_options, 1, 1, command_index_remove},
    {"add", "LOC", "register a sitemap, or update it",
     "Registers the sitemap file at LOC, or updates it. What is not given stays as it is. The "
     "site\n"
     "follows from LOC, the index is the deepest one whose directory holds it.\n\n"
     "example:\n"
     "  sitemapd add https://www.example.com/sitemap-news.xml --lastmod 2026-11-21T08:30:00Z",
     add_options, 1, 1, command_add},
    {"remove", "LOC", "take a sitemap out of its index",
     "Takes the sitemap at LOC out of its index. The file itself is not touched.\n\n"
     "example:\n"
     "  sitemapd remove https://www.example.com/sitemap-news.xml",
     NULL, 1, 1, command_remove},
    {"list", "", "show the registered sitemaps",
     "Shows entries in the order in which pages list them.\n\n"
     "example:\n"
     "  sitemapd list --index https://www.example.com/sitemap_index.xml --json",
     list_options, 0, 0, command_list},
    {"import", "FILE|-", "register many: index XML, NDJSON, or a list of URLs",
     "Reads a sitemap index (XML), NDJSON (as export writes it) or a plain list of URLs, each "
     "also\n"
     "gzipped, told apart by content; - is standard input. All or nothing: where an entry is\n"
     "refused nothing is applied, unless --skip-invalid. With --replace the indexes that the list\n"
     "names, or its locs belong to, become exactly the list: each in one step of its own.\n\n"
     "examples:\n"
     "  sitemapd import old/sitemap_index.xml.gz\n"
     "  curl -s https://www.example.com/sitemap_index.xml | sitemapd import --dry-run -\n"
     "  sitemapd import --replace --index /sitemap_index.xml list.txt",
     import_options, 1, 1, command_import},
    {"export", "", "write entries as NDJSON, for import",
     "Writes each entry as one line of JSON, with its position, by index and position. Imported "
     "into\n"
     "an empty index or with --replace, the copy serves identical bytes.\n\n"
     "example:\n"
     "  sitemapd export > entries.ndjson",
     export_options, 0, 0, command_export},
    {"scan", "NAME|DIR", "look through a folder of sitemap files once",
     "Verifies each file that is new or has changed since the last scan, and registers what is "
     "good\n"
     "in one step; prints what changed and what was refused, and why. NAME is a [source] of the\n"
     "configuration; a folder needs its URL.\n\n"
     "examples:\n"
     "  sitemapd scan products --dry-run\n"
     "  sitemapd scan /srv/sitemaps --url https://www.example.com/sitemaps/",
     scan_options, 1, 1, command_scan},
    {"render", "URL", "print the page that the server would serve",
     "Prints the index page at URL as the server would serve it; with one site a path will do.\n\n"
     "example:\n"
     "  sitemapd render https://www.example.com/sitemap_index.xml | xmllint --noout -",
     NULL, 1, 1, command_render},
    {"token add", "NAME", "make an API token",
     "Makes a token for the API and prints it, this once. Only its hash is kept.\n\n"
     "example:\n"
     "  TOKEN=$(sitemapd token add deploy --site https://www.example.com)",
     token_add_options, 1, 1, command_token_add},
    {"token list", "", "show the tokens' names",
     "Shows the tokens by name; what they are cannot be shown again.\n\n"
     "example:\n"
     "  sitemapd token list",
     json_options, 0, 0, command_token_list},
    {"token revoke", "NAME", "end a token",
     "Ends a token: a running server refuses it at once.\n\n"
     "example:\n"
     "  sitemapd token revoke deploy",
     NULL, 1, 1, command_token_revoke},
    {"healthcheck", "[URL]", "ask a running server whether it is well",
     "Asks the server's /readyz. Exit 0 where it answers 200, else 1: for a container's health\n"
     "check. Without URL the admin listener of the configuration is asked.\n\n"
     "example:\n"
     "  sitemapd healthcheck http://127.0.0.1:8081",
     NULL, 0, 1, command_healthcheck},
    {"backup", "FILE", "copy the catalogue, also while it is served",
     "Writes a consistent copy of the catalogue into a new file, also while a server works on "
     "it.\n\n"
     "example:\n"
     "  sitemapd backup /var/backups/catalogue-$(date +%F).db",
     NULL, 1, 1, command_backup},
    {"check", "", "check the catalogue's integrity",
     "Checks that the file is whole, and that counts and pages agree with the entries. Exit 1 "
     "where\n"
     "something is wrong.\n\n"
     "example:\n"
     "  sitemapd check",
     NULL, 0, 0, command_check},
    {0},
};
