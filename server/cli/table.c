/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The commands, each with its options and examples: what help, completion, the manual page and
 * the parser know of them. The examples are as people type them; a test runs those that a machine
 * can. */
#include "server/cli/arguments.h"

#include <limits.h>

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

const struct cli_command cli_commands[] = {
    {"serve", "", "serve index pages to crawlers and the API to you",
     "Serve until SIGTERM: index pages and robots.txt on the public listener, the API, metrics and "
     "health on the admin listener. When the server is ready, it prints one line on stdout:\n\n  "
     "sitemapd: ready public=http://127.0.0.1:8080 admin=http://127.0.0.1:8081",
     (const struct cli_option[]){
         {"--listen", "A:P", "address and port for crawlers (default: 0.0.0.0:8080)"},
         {"--admin-listen", "A:P", "address and port of the API (default: 127.0.0.1:8081)"},
         {"--site", "ORIGIN", "create this site if it is missing; repeatable"},
         {"--source", "DIR[=URL]",
          "watch this folder of sitemap files, and serve them; repeatable"},
         {"--user", "NAME", "user to switch to when started as root, once the sockets are bound"},
         {0},
     },
     0, 0, command_serve,
     .examples =
         (const struct cli_example[]){
             {"Serve a folder of sitemap files; no other set-up is needed:",
              "sitemapd serve --site https://www.example.com --source /srv/sitemaps"},
             {"Behind a reverse proxy on this machine:",
              "sitemapd serve --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:8081"},
             {"With a configuration file:", "sitemapd serve --config /etc/sitemapd/sitemapd.conf"},
             {0},
         },
     .topic = "Serving"},
    {"check-config", "[FILE]", "find every mistake in the configuration",
     "Read the configuration and print each mistake as file:line: message.",
     (const struct cli_option[]){
         {"--defaults", NULL, "print every setting with its default, as a template"},
         {0},
     },
     0, 1, command_check_config,
     .examples =
         (const struct cli_example[]){
             {"The file that serve would read:", "sitemapd check-config"},
             {"Another file, before you install it:", "sitemapd check-config ./sitemapd.conf"},
             {"A template:", "sitemapd check-config --defaults >sitemapd.conf"},
             {0},
         }},
    {"site add", "ORIGIN", "create a site, with an index at /sitemap_index.xml",
     "Create a site: the origin whose sitemaps are listed. Sitemaps on another host (a CDN) may be "
     "listed once that host is a cross host.",
     (const struct cli_option[]){
         OPTION_CROSS_HOST,
         OPTION_HOST_ALIAS,
         OPTION_MAX_INDEXES,
         OPTION_ROBOTS,
         {"--no-index", NULL, "do not create an index at /sitemap_index.xml"},
         {0},
     },
     1, 1, command_site_add,
     .examples =
         (const struct cli_example[]){
             {"A site with its index:", "sitemapd site add https://www.example.com"},
             {"Its sitemap files are on a CDN:",
              "sitemapd site add https://www.example.com --cross-host cdn.example.com"},
             {"An index with another name:",
              "sitemapd site add https://www.example.com --no-index\n"
              "sitemapd index add https://www.example.com/sitemaps.xml"},
             {0},
         },
     .topic = "Sites and indexes"},
    {"site update", "ORIGIN", "change a site's hosts, limit or robots.txt",
     "Change what the options name, and show the old and the new values.",
     (const struct cli_option[]){
         {"--add-host-alias", "HOST", "add a host name of requests; repeatable"},
         {"--remove-host-alias", "HOST", "remove this host alias; repeatable"},
         {"--host-alias", "HOST", "replace all host aliases; repeatable"},
         {"--no-host-aliases", NULL, "remove all host aliases"},
         {"--add-cross-host", "HOST", "add a host whose sitemaps may be listed; repeatable"},
         {"--remove-cross-host", "HOST", "remove this cross host; repeatable"},
         {"--cross-host", "HOST", "replace all cross hosts; repeatable"},
         {"--no-cross-hosts", NULL, "remove all cross hosts"},
         OPTION_MAX_INDEXES,
         OPTION_ROBOTS,
         {"--no-robots", NULL, "serve a robots.txt with the Sitemap lines only"},
         {"--robots-off", NULL, "answer 404 for /robots.txt, which another server serves"},
         {"--check", NULL, "poll the registered sitemaps, and report those that are broken"},
         {"--no-check", NULL, "do not (the default)"},
         {0},
     },
     1, 1, command_site_update,
     .examples =
         (const struct cli_example[]){
             {"Also answer requests for the bare name:",
              "sitemapd site update https://www.example.com --add-host-alias example.com"},
             {"Remove all cross hosts:",
              "sitemapd site update https://www.example.com --no-cross-hosts"},
             {"Keep the robots.txt of another program:",
              "curl -sf https://www.example.com/robots.txt |\n"
              "    sitemapd site update https://www.example.com --robots -"},
             {0},
         },
     .names = CLI_NAMES_SITE},
    {"site list", "", "show the sites", "Show each site with its hosts, indexes and pages.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_site_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd site list"},
             {"For scripts, one origin a line:", "sitemapd site list --json | jq -r .origin"},
             {0},
         }},
    {"site remove", "ORIGIN", "remove a site with all its entries",
     "Remove a site, its indexes and their entries. The shrink guard holds it back unless "
     "--max-removed allows as many removals as it has entries.",
     (const struct cli_option[]){OPTION_MAX_REMOVED, {0}}, 1, 1, command_site_remove,
     .examples =
         (const struct cli_example[]){
             {"A site whose indexes are empty:", "sitemapd site remove https://www.example.com"},
             {"A site with 120 entries:",
              "sitemapd site remove https://www.example.com --max-removed 120"},
             {0},
         },
     .names = CLI_NAMES_SITE},
    {"index add", "URL", "create an index",
     "Create an index. It lists sitemaps of its own directory and below, so an index at "
     "/shop/sitemap_index.xml lists only what is under /shop/. With one site its path is enough.",
     (const struct cli_option[]){
         {"--pattern", "P", "names of further pages (default: {stem}-{n}{suffix})"},
         {0},
     },
     1, 1, command_index_add,
     .examples =
         (const struct cli_example[]){
             {"An index for a part of the site:",
              "sitemapd index add https://www.example.com/shop/sitemap_index.xml"},
             {"Further pages as index_2.xml, index_3.xml:",
              "sitemapd index add https://www.example.com/index.xml --pattern "
              "'{stem}_{n}{suffix}'"},
             {0},
         }},
    {"index list", "", "show the indexes", "Show each index with its entries, pages and size.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_index_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd index list"},
             {"Which index has the most entries:",
              "sitemapd index list --json | jq -s 'max_by(.entries).url'"},
             {0},
         }},
    {"index remove", "URL", "remove an index with all its entries",
     "Remove an index and its entries. The shrink guard holds it back unless --max-removed allows "
     "as many removals as it has entries.",
     (const struct cli_option[]){OPTION_MAX_REMOVED, {0}}, 1, 1, command_index_remove,
     .examples =
         (const struct cli_example[]){
             {"An empty index:",
              "sitemapd index remove https://www.example.com/shop/sitemap_index.xml"},
             {"An index with 40 entries; with one site its path is enough:",
              "sitemapd index remove /shop/sitemap_index.xml --max-removed 40"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"freeze", "ORIGIN|URL", "reject every change of a site, an index or a urlset",
     "Reject writes to a site, an index or a urlset until it is thawed. Sources hold their changes "
     "back, and crawlers are served. It also works on sites of the configuration, and no reload "
     "undoes it.",
     NULL, 1, 1, command_freeze,
     .examples =
         (const struct cli_example[]){
             {"An index, while you find out what went wrong:",
              "sitemapd freeze https://www.example.com/sitemap_index.xml"},
             {"All indexes of a site:", "sitemapd freeze https://www.example.com"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"thaw", "ORIGIN|URL", "end a freeze",
     "Accept writes again; sources publish the changes that they held back.", NULL, 1, 1,
     command_thaw,
     .examples =
         (const struct cli_example[]){
             {"The index again:", "sitemapd thaw https://www.example.com/sitemap_index.xml"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"urlset add", "URL", "create a sitemap that is made of page URLs",
     "Create a urlset: a sitemap, of as many pages as needed, whose page URLs are registered one "
     "by one or in lists (url, import --urlset). Each of its pages is an entry of its index. Its "
     "page URLs are in its directory and below. With one site its path is enough. The age of a "
     "page URL counts from its news date, else its lastmod, else its registration. A urlset with "
     "news is for articles only, since all its page URLs expire.",
     (const struct cli_option[]){
         {"--index", "URL", "index that lists its pages (default: the deepest that holds it)"},
         {"--with", "WORDS",
          "extensions of its page URLs: images,videos,alternates,news; cannot be changed"},
         {"--pattern", "P", "names of further pages (default: {stem}-{n}{suffix})"},
         {"--max-pages", "N", "most pages (default: 1000)"},
         {"--max-page-urls", "N",
          "most page URLs of a page, from 1000 (default: 50000, of news 1000)"},
         {"--max-page-bytes", "N", "most bytes of a page, from 1048576 (default: 52428800)"},
         {"--expires", "SPAN",
          "remove page URLs that are older: 12h, never (default: with news 2d, else never)"},
         {0},
     },
     1, 1, command_urlset_add,
     .examples =
         (const struct cli_example[]){
             {"Products with their images:",
              "sitemapd urlset add https://www.example.com/products.xml --with images"},
             {"News, which expire after two days:",
              "sitemapd urlset add https://www.example.com/news.xml --with news"},
             {0},
         },
     .topic = "Page URLs", .pages = true},
    {"urlset set", "URL", "change a urlset",
     "Change what the options name. A shorter --expires removes older page URLs at once, under the "
     "shrink guard. A urlset without expiry gets one only while it is empty.",
     (const struct cli_option[]){
         {"--index", "URL", "another index, of the same site"},
         {"--max-pages", "N", "most pages"},
         {"--max-page-urls", "N", "most page URLs of a page; one that has more keeps them"},
         {"--max-page-bytes", "N", "most bytes of a page; the same"},
         {"--expires", "SPAN", "remove page URLs that are older: 2d, 12h, never"},
         OPTION_MAX_REMOVED,
         {0},
     },
     1, 1, command_urlset_set,
     .examples =
         (const struct cli_example[]){
             {"At most twenty pages:", "sitemapd urlset set /products.xml --max-pages 20"},
             {0},
         },
     .names = CLI_NAMES_URLSET, .pages = true},
    {"urlset list", "", "show the urlsets", "Show each urlset with its page URLs, pages and size.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_index_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd urlset list"},
             {0},
         },
     .pages = true},
    {"urlset remove", "URL", "remove a urlset with all its page URLs",
     "Remove a urlset, its page URLs, and its pages from their index. The shrink guard holds it "
     "back unless --max-removed allows as many removals as it has page URLs.",
     (const struct cli_option[]){OPTION_MAX_REMOVED, {0}}, 1, 1, command_index_remove,
     .examples =
         (const struct cli_example[]){
             {"A urlset with 40 page URLs; with one site its path is enough:",
              "sitemapd urlset remove /products.xml --max-removed 40"},
             {0},
         },
     .names = CLI_NAMES_URLSET, .pages = true},
    {"url add", "LOC", "register a page URL, or update it",
     "Register the page at LOC in a urlset, or update it. Values that you do not give stay "
     "unchanged. Images, videos, alternates and news are replaced together: if you give one of "
     "them, give all. Videos come by import only, and these options remove them.",
     (const struct cli_option[]){
         OPTION_URLSET,
         {"--lastmod", "T", "when the page changed: 2026-11-21 or 2026-11-21T08:30:00Z"},
         {"--digest", "D", "a hash of the page: lastmod changes only with it"},
         {"--image", "URL", "an image on the page; repeatable"},
         {"--alternate", "LANG=URL", "the page in another language; repeatable"},
         {"--news-name", "TEXT", "name of the publication; needs the three options below"},
         {"--news-language", "LANG", "language of the publication: en, zh-cn"},
         {"--news-date", "T", "when the article was published"},
         {"--news-title", "TEXT", "the article's title"},
         {"--source", "NAME",
          "owner of a new page URL (default: cli; on a server the token's name)"},
         OPTION_JSON,
         {0},
     },
     1, 1, command_add,
     .examples =
         (const struct cli_example[]){
             {"A page that is new, or has changed:",
              "sitemapd url add https://www.example.com/shoes/1 --urlset /products.xml \\\n"
              "    --lastmod 2026-11-21T08:30:00Z"},
             {"An article:",
              "sitemapd url add https://www.example.com/news/1 --urlset /news.xml \\\n"
              "    --news-name 'The Example Times' --news-language en \\\n"
              "    --news-date 2026-11-21T08:30:00Z --news-title 'Shoes are back'"},
             {0},
         },
     .pages = true},
    {"url remove", "LOC", "remove a page URL from its urlset",
     "Remove the page at LOC from a urlset.", (const struct cli_option[]){OPTION_URLSET, {0}}, 1, 1,
     command_remove,
     .examples =
         (const struct cli_example[]){
             {"One page:",
              "sitemapd url remove https://www.example.com/shoes/1 --urlset /products.xml"},
             {0},
         },
     .pages = true},
    {"url list", "", "show the page URLs of a urlset",
     "Show page URLs in the order in which pages list them.",
     (const struct cli_option[]){
         OPTION_URLSET,
         {"--prefix", "URL", "only locs that begin with this"},
         {"--contains", "TEXT", "only locs that contain this (3 to 200 bytes)"},
         {"--warned", NULL, "only those that have warnings"},
         OPTION_JSON,
         {0},
     },
     0, 0, command_list,
     .examples =
         (const struct cli_example[]){
             {"All of them:", "sitemapd url list --urlset /products.xml"},
             {0},
         },
     .pages = true},
    {"url export", "", "write page URLs as NDJSON, for import",
     "Write each page URL of a urlset as one line of JSON, with its position and extensions. "
     "Imported into an empty urlset, or with --replace --source '*', the copy serves identical "
     "bytes.",
     (const struct cli_option[]){OPTION_URLSET, {0}}, 0, 0, command_export,
     .examples =
         (const struct cli_example[]){
             {"All of a urlset:", "sitemapd url export --urlset /products.xml > products.ndjson"},
             {0},
         },
     .pages = true},
    {"add", "LOC", "register a sitemap, or update it",
     "Register the sitemap file at LOC, or update it. Values that you do not give stay unchanged. "
     "The site follows from LOC, the index is the deepest one whose directory holds it.",
     (const struct cli_option[]){
         {"--lastmod", "T", "when the sitemap file changed: 2026-11-21 or 2026-11-21T08:30:00Z"},
         {"--digest", "D", "a hash or ETag of the file: lastmod changes only with it"},
         {"--index", "URL", "index that lists it (default: the deepest that holds it)"},
         {"--source", "NAME", "owner of a new entry (default: cli; on a server the token's name)"},
         OPTION_JSON,
         {0},
     },
     1, 1, command_add,
     .examples =
         (const struct cli_example[]){
             {"A new file, or one that has changed:",
              "sitemapd add https://www.example.com/sitemap-news.xml --lastmod "
              "2026-11-21T08:30:00Z"},
             {"The date is now, but only if the content changed:",
              "sitemapd add https://www.example.com/sitemap-news.xml \\\n"
              "    --lastmod \"$(date -u +%FT%TZ)\" --digest \"$(sha256sum <news.xml | cut "
              "-c1-64)\""},
             {0},
         },
     .topic = "Sitemaps"},
    {"remove", "LOC", "remove a sitemap from its index",
     "Remove the sitemap at LOC from its index. The file itself is not touched.", NULL, 1, 1,
     command_remove,
     .examples =
         (const struct cli_example[]){
             {"One sitemap:", "sitemapd remove https://www.example.com/sitemap-news.xml"},
             {0},
         }},
    {"list", "", "show the registered sitemaps",
     "Show entries in the order in which pages list them.",
     (const struct cli_option[]){
         OPTION_INDEX,
         {"--prefix", "URL", "only locs that begin with this"},
         {"--contains", "TEXT", "only locs that contain this (3 to 200 bytes)"},
         {"--warned", NULL, "only entries that have warnings"},
         OPTION_JSON,
         {0},
     },
     0, 0, command_list,
     .examples =
         (const struct cli_example[]){
             {"All of them:", "sitemapd list"},
             {"Entries below a folder:", "sitemapd list --prefix https://www.example.com/shop/"},
             {"Entries with warnings:",
              "sitemapd list --warned --json | jq -r '[.loc, .warnings[]] | @tsv'"},
             {"Entries without a date:",
              "sitemapd list --json | jq -r 'select(.lastmod == null) | .loc'"},
             {0},
         }},
    {"import", "FILE|URL|-", "register many: index XML, NDJSON, or a list of URLs",
     "Read a sitemap index (XML), NDJSON (as export writes it) or a plain list of URLs, each also "
     "gzipped, recognised by content; - is standard input. A URL is fetched once, if [fetch] of "
     "the configuration allows its address. All or nothing: if an entry is rejected, nothing is "
     "applied, unless --skip-invalid is given. With --replace, each index that the list names, or "
     "that its locs belong to, becomes exactly the list, in one step: entries of the same source "
     "that are not in the list are removed, those of other sources stay; --source '*' replaces all "
     "of them. With --urlset the list is of page URLs: a sitemap (XML with its images, videos, "
     "alternates and news, or text), NDJSON or a plain list.",
     (const struct cli_option[]){
         {"--index", "URL",
          "the index for entries that name none (default: the deepest that holds it)"},
         {"--urlset", "URL", "read page URLs into this urlset: its URL, or its path with one site"},
         {"--replace", NULL, "make what --source owns of each index named exactly this list"},
         {"--skip-invalid", NULL, "apply the valid entries even if others are rejected"},
         {"--dry-run", NULL, "show what would change, write nothing"},
         {"--drop-lastmod", NULL, "ignore the dates of the list"},
         {"--drop-extensions", NULL, "leave out extensions that the urlset does not have"},
         {"--connect", "H:P", "connect to this host and port for the URL, whatever DNS says"},
         OPTION_MAX_REMOVED,
         {"--if-match", "STATE",
          "only if the index or urlset is unchanged: its \"state\" of `index list --json`"},
         {"--source", "NAME",
          "owner of the entries (default: cli, on a server the token's name, or as an export "
          "says); '*': all"},
         {0},
     },
     1, 1, command_import,
     .examples =
         (const struct cli_example[]){
             {"Take over an index that another program built:",
              "sitemapd import old/sitemap_index.xml.gz"},
             {"Show first what would change:",
              "sitemapd import --dry-run https://www.example.com/sitemap_index.xml"},
             {"Replace what imports have registered in an index:",
              "sitemapd import --replace --index /sitemap_index.xml list.txt"},
             {"Also replace entries of other owners:",
              "sitemapd import --replace --source '*' --index /sitemap_index.xml list.txt"},
             {"Replace page URLs by those of a sitemap of a plug-in:",
              "sitemapd import --replace --urlset /products.xml product-sitemap.xml"},
             {0},
         }},
    {"export", "", "write entries as NDJSON, for import",
     "Write each entry as one line of JSON, with its position, by index and position. Imported "
     "into an empty index or with --replace --source '*', the copy serves identical bytes.",
     (const struct cli_option[]){OPTION_INDEX, {0}}, 0, 0, command_export,
     .examples =
         (const struct cli_example[]){
             {"All entries:", "sitemapd export > entries.ndjson"},
             {"Into another catalogue, which then serves identical bytes:",
              "sitemapd export | sitemapd import --replace --source '*' --database copy.db -"},
             {0},
         }},
    {"scan", "NAME|DIR", "scan a folder, or read an upstream's list, once",
     "Validate each file that is new or has changed since the last scan, register the valid ones "
     "in one step, and print what changed, what was rejected, and why. NAME is a source of the "
     "configuration or the catalogue; a folder needs its URL. Of a source with an upstream the "
     "list is read once; the server polls its sitemaps. With --server the source is scanned there.",
     (const struct cli_option[]){
         {"--url", "URL", "URL of the folder; ends with a slash"},
         {"--index", "URL", "index that lists the files (default: the deepest that holds them)"},
         {"--source", "NAME", "owner of the entries of a folder (default: folder)"},
         {"--dry-run", NULL, "show what would change, write nothing"},
         OPTION_MAX_REMOVED,
         {0},
     },
     1, 1, command_scan,
     .examples =
         (const struct cli_example[]){
             {"What a source of the configuration would change:",
              "sitemapd scan products --dry-run"},
             {"A folder, once, without a server:",
              "sitemapd scan /srv/sitemaps --url https://www.example.com/sitemaps/"},
             {"Twelve files were removed on purpose:", "sitemapd scan products --max-removed 12"},
             {0},
         }},
    {"render", "URL", "print the page that the server would serve",
     "Print the page of an index or a urlset at URL as the server would serve it. With one site a "
     "path is enough.",
     NULL, 1, 1, command_render,
     .examples =
         (const struct cli_example[]){
             {"Look at a page:", "sitemapd render https://www.example.com/sitemap_index.xml"},
             {"Check it with another tool; with one site the path is enough:",
              "sitemapd render /sitemap_index.xml | xmllint --noout -"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"crawlers", "[NAME]", "show which crawlers have seen all changes",
     "Show each crawler: its last fetch, the time up to which it has seen all changes, and of how "
     "many pages it has the current version, an earlier one (stale) or none. With NAME, show the "
     "pages of the indexes and urlsets that it reads. A running server writes this to the "
     "catalogue once a minute; --server shows the current state. On several machines it covers all "
     "of them.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "only this site's pages"},
         {"--stale", NULL, "only pages whose current version it lacks"},
         OPTION_JSON,
         {0},
     },
     0, 1, command_crawlers,
     .examples =
         (const struct cli_example[]){
             {"Which crawlers have visited, and what they lack:", "sitemapd crawlers"},
             {"The pages that Google has in an earlier version:",
              "sitemapd crawlers googlebot --stale"},
             {"The start of each lag, for a script:",
              "sitemapd crawlers --stale --json | jq -r '[.name, .stale_since] | @tsv'"},
             {0},
         }},
    {"crawlers import", "LOG|-", "import a CDN's access log",
     "Read an access log in the combined format or with one JSON object a line (CloudFront, "
     "Cloudflare, Fastly and others), gzipped or not; - is standard input. Add the requests of "
     "crawlers for pages and robots.txt to the sums of their days. A crawler counts as having the "
     "current version of a page only if it was requested more than --max-age after the page's "
     "change, because a cache may have answered with an older one. A log that was read before is "
     "skipped, one that has grown is read from there; requests that the server answered itself "
     "would count twice. A running server shows it within a minute. Run it on the machine of the "
     "catalogue.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "site of lines without a host"},
         {"--max-age", "SPAN", "how long the CDN keeps a page (default: 1h)"},
         {"--dry-run", NULL, "count only"},
         {0},
     },
     1, 1, command_crawlers_import,
     .examples =
         (const struct cli_example[]){
             {"A log of nginx in front of two sites:",
              "sitemapd crawlers import --site https://www.example.com "
              "/var/log/nginx/access.log.1"},
             {"A log that a CDN wrote to a bucket; it keeps pages for ten minutes:",
              "aws s3 cp s3://logs/2026-11-22.json.gz - | sitemapd crawlers import --max-age 10m "
              "-"},
             {0},
         }},
    {"history", "[REVISION]", "show what was changed, when, by whom",
     "Show the changes, the newest first: revision, time, kind, who made it and how, how many "
     "entries it added (+), changed (~) and removed (-), and of which URL or site. With REVISION, "
     "show that change and its entries. WHEN is a time, a date (UTC; --until includes the whole "
     "day), or how long ago: 2h, 7d. [history] sets how long changes are kept.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "only changes of this site"},
         OPTION_INDEX,
         OPTION_ONLY_URLSET,
         {"--by", "NAME", "only changes by this token, source or user"},
         {"--loc", "LOC", "only changes of this sitemap or page URL"},
         {"--since", "WHEN", "only changes at this time or later"},
         {"--until", "WHEN", "only changes at this time or earlier"},
         {"--kind", "KIND",
          "registration, removal, list, scan, check, undo, ...; all: also dates "
          "moved by polls (check)"},
         {"--limit", "N", "most changes, or entries of REVISION, to show (default: 100)"},
         OPTION_JSON,
         {0},
     },
     0, 1, command_history,
     .examples =
         (const struct cli_example[]){
             {"What happened tonight:", "sitemapd history --since 12h"},
             {"The life of one sitemap:",
              "sitemapd history --loc https://www.example.com/sitemap-news.xml"},
             {"The lists that removed something:",
              "sitemapd history --kind replace --json | jq 'select(.removed > 0)'"},
             {0},
         },
     .topic = "Changes"},
    {"diff", "", "show what differs between two revisions",
     "Show what was added (+), removed (-) and changed (~), entry by entry, in all indexes and "
     "urlsets or in one.",
     (const struct cli_option[]){
         {"--from", "REVISION", "state after this revision"},
         {"--to", "REVISION", "state after this one (default: now)"},
         OPTION_INDEX,
         OPTION_ONLY_URLSET,
         OPTION_JSON,
         {0},
     },
     0, 0, command_diff,
     .examples =
         (const struct cli_example[]){
             {"All changes since the last good revision:", "sitemapd diff --from 120"},
             {"What was removed from an index in between:",
              "sitemapd diff --from 120 --to 124 --index /sitemap_index.xml --json |\n"
              "    jq -r 'select(.after == null) | .loc'"},
             {0},
         }},
    {"undo", "[REVISION]", "undo a change, or restore an index",
     "Undo the change of REVISION; or, with --index or --urlset and --to, restore that list to its "
     "state after a revision. Entries return with their ids, dates and positions, pages with their "
     "bytes and tags. Entries that have changed since are listed and stay unchanged. An undo is a "
     "change of its own, and can be undone. A change by a source can be undone while its index is "
     "frozen; after the thaw the source reads its files again, so restore those before.",
     (const struct cli_option[]){
         {"--index", "URL", "restore this index: its URL, or its path with one site"},
         {"--urlset", "URL", "restore this urlset: its URL, or its path with one site"},
         {"--to", "REVISION", "state after this revision"},
         {"--dry-run", NULL, "show what it would do, write nothing"},
         {"--overwrite", NULL, "also undo entries that have changed since"},
         OPTION_MAX_REMOVED,
         OPTION_JSON,
         {0},
     },
     0, 1, command_undo,
     .examples =
         (const struct cli_example[]){
             {"Preview, then undo:", "sitemapd undo 124 --dry-run\nsitemapd undo 124"},
             {"Restore an index to an earlier revision:",
              "sitemapd undo --index /sitemap_index.xml --to 120"},
             {"Preview the restore of a urlset:",
              "sitemapd undo --urlset /products.xml --to 120 --dry-run"},
             {0},
         }},
    {"source add", "NAME", "add a folder or an upstream index as a source",
     "Add a source to the catalogue: a folder of sitemap files (--directory, --url), or a remote "
     "sitemap index to follow (--upstream). Its name owns the entries. A folder must be below a "
     "source_root of the configuration, and addresses outside the public internet must be allowed "
     "by [fetch]. Where to connect to, certificates and credentials can be set in the "
     "configuration only.",
     (const struct cli_option[]){
         OPTIONS_SOURCE, {"--site", "ORIGIN", "its site, if no site has the upstream's host"}, {0}},
     1, 1, command_source_add,
     .examples =
         (const struct cli_example[]){
             {"A folder:", "sitemapd source add shop --directory /srv/sitemaps/shop --url "
                           "https://www.example.com/shop/"},
             {"An index on another server:",
              "sitemapd source add old --upstream https://www.example.com/sitemap.xml"},
             {0},
         },
     .topic = "Sources"},
    {"source set", "NAME", "change a source",
     "Change what the options name. An empty value resets a setting: --map \"\".",
     (const struct cli_option[]){OPTIONS_SOURCE, {0}}, 1, 1, command_source_set,
     .examples =
         (const struct cli_example[]){
             {"Poll once a day:", "sitemapd source set old --poll 24h"},
             {0},
         }},
    {"source list", "", "show the sources",
     "Show the sources of the configuration and of the catalogue. `sitemapd status` shows their "
     "state.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_source_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd source list"},
             {0},
         }},
    {"source remove", "NAME", "remove a source (its entries stay)",
     "Remove a source of the catalogue. Its entries stay; remove or replace them if they are not "
     "wanted.",
     NULL, 1, 1, command_source_remove,
     .examples =
         (const struct cli_example[]){
             {"The old server is gone:", "sitemapd source remove old"},
             {0},
         }},
    {"token add", "NAME", "create an API token",
     "Create a token for the API and print it; it cannot be shown again. Only its hash is stored. "
     "Each role includes the one before: read reads, write also registers and removes entries, "
     "admin also creates, changes and removes sites, indexes and tokens of its scope.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "valid for this site only"},
         {"--prefix", "URL", "only locs that begin with this; ends with a slash, or with - _ or ."},
         {"--role", "ROLE", "read, write (default) or admin"},
         {"--own", NULL, "let it change only what it registered itself"},
         {"--expires", "WHEN", "expiry: 90d, 12h, or a date; the token is rejected after it"},
         {0},
     },
     1, 1, command_token_add,
     .examples =
         (const struct cli_example[]){
             {"For a deployment of one site:",
              "TOKEN=$(sitemapd token add deploy --site https://www.example.com)"},
             {"For a team with a part of a site, with an expiry date:",
              "sitemapd token add blog --prefix https://www.example.com/blog/ --expires "
              "2099-12-31"},
             {"For a dashboard, read-only:", "sitemapd token add dashboard --role read"},
             {0},
         },
     .topic = "Tokens of the API"},
    {"token list", "", "show the tokens' names",
     "Show the tokens by name; the tokens themselves cannot be shown again.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_token_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd token list"},
             {"For scripts:", "sitemapd token list --json"},
             {0},
         }},
    {"token revoke", "NAME", "revoke a token",
     "Revoke a token: a running server rejects it at once.", NULL, 1, 1, command_token_revoke,
     .examples =
         (const struct cli_example[]){
             {"A token that leaked:", "sitemapd token revoke deploy"},
             {0},
         }},
    {"share init", "", "share the catalogue with other machines",
     "Share the catalogue of this machine through PostgreSQL: create the log of its changes there, "
     "with a first snapshot from which other machines join. This fails while a server uses the "
     "catalogue, and if a shared catalogue already exists.",
     (const struct cli_option[]){
         {"--if-absent", NULL, "do nothing if a shared catalogue already exists"},
         {"--grant-to", "ROLE", "role of the nodes, if this one only creates the tables"},
         OPTION_SCHEMA,
         {0},
     },
     0, 0, command_share_init,
     .examples =
         (const struct cli_example[]){
             {"On the one machine that has the catalogue:",
              "sitemapd share init --shared postgresql://sitemapd@db.internal/sitemapd"},
             {"As the role that may create tables, for the role of the nodes:",
              "sitemapd share init --grant-to sitemapd --shared "
              "postgresql://owner@db.internal/sitemapd"},
             {0},
         },
     .topic = "Several machines"},
    {"share status", "", "show the shared catalogue and its nodes",
     "Show the head of the log, whether a standby is synchronous, and the nodes.",
     (const struct cli_option[]){OPTION_JSON, OPTION_SCHEMA, {0}}, 0, 0, command_share_status,
     .examples =
         (const struct cli_example[]){
             {"By the configuration of this machine:", "sitemapd share status"},
             {"Which nodes are behind:", "sitemapd share status --json | jq -c 'select(.node)'"},
             {0},
         }},
    {"share upgrade", "", "upgrade the shared catalogue to this release",
     "Migrate the catalogue of all nodes where [shared] upgrade is manual, once none of them runs "
     "an older release.",
     (const struct cli_option[]){OPTION_SCHEMA, {0}}, 0, 0, command_share_upgrade,
     .examples =
         (const struct cli_example[]){
             {"When the last node is upgraded:", "sitemapd share upgrade"},
             {0},
         }},
    {"shard map", "[FILE]", "print which host is on which shard",
     "Get the sites of each server, and print the map from host to shard that a proxy in front of "
     "them reads (docs/scale.md). Fails if two shards have the same host. Each --server is "
     "NAME=URL, or a URL whose host is the name; give --token-file once, or once for each server.",
     (const struct cli_option[]){
         {"--format", "FORMAT", "haproxy (the default), nginx, envoy or httproute"},
         {"--gateway", "NAME", "gateway of the routes, with --format httproute (sitemapd)"},
         {"--check", NULL, "compare with the deployed map FILE, and fail if it is wrong"},
         {0},
     },
     0, 1, command_shard_map,
     .examples =
         (const struct cli_example[]){
             {"For HAProxy:", "sitemapd shard map --server a=http://10.0.0.1:8081 --server "
                              "b=http://10.0.0.2:8081 >shards.map"},
             {"Whether the deployed map is still right:",
              "sitemapd shard map --server a=http://10.0.0.1:8081 --server b=http://10.0.0.2:8081 "
              "--check /etc/haproxy/shards.map"},
             {0},
         },
     .topic = "Several catalogues"},
    {"site move", "ORIGIN", "move a site to another server's catalogue",
     "Moves a site with its entries, positions, robots.txt, tokens and sources from --server to "
     "--to "
     "while crawlers read it. The site is frozen meanwhile, and both servers serve the same pages. "
     "Without --switch the command stops when the site is copied, so that you deploy the new map; "
     "repeat it with --finish. A run that was interrupted can be repeated. Both tokens must be for "
     "all sites; give --token-file once for both servers, or once for each.",
     (const struct cli_option[]){
         {"--to", "URL", "the server that gets the site"},
         {"--switch", "COMMAND", "command for the shell that deploys the new map"},
         {"--finish", NULL, "the new map is deployed: remove the site from --server"},
         {"--undo", NULL, "leave the site where it is, and remove the copy"},
         {0},
     },
     1, 1, command_site_move,
     .examples =
         (const struct cli_example[]){
             {"In two steps:",
              "sitemapd site move https://www.example.com --server http://10.0.0.1:8081 --to "
              "http://10.0.0.2:8081\n"
              "sitemapd site move https://www.example.com --server http://10.0.0.1:8081 --to "
              "http://10.0.0.2:8081 --finish"},
             {"In one, with a command that deploys the map:",
              "sitemapd site move https://www.example.com --server http://10.0.0.1:8081 --to "
              "http://10.0.0.2:8081 --switch /usr/local/bin/deploy-map"},
             {0},
         }},
    {"status", "", "show status and health",
     "Show the number of sites, indexes and entries, the health, and the state of each source. "
     "Exit status 1 if something is wrong. Without --server it reads the file only, and does not "
     "show what a running server knows (reasons, failing sources). Several --server are summed up.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_status,
     .examples =
         (const struct cli_example[]){
             {"The catalogue of this machine:", "sitemapd status"},
             {"A server, from elsewhere:",
              "sitemapd status --server https://admin.example.com --token-file ~/.sitemapd-token"},
             {0},
         },
     .topic = "Maintenance"},
    {"healthcheck", "[URL]", "check the health of a running server",
     "Request /readyz. Exit status 0 if the response is 200, else 1: for a container's health "
     "check. Without URL it uses the admin listener of the configuration, whatever SITEMAPD_SERVER "
     "says.",
     NULL, 0, 1, command_healthcheck,
     .examples =
         (const struct cli_example[]){
             {"The server of this configuration:", "sitemapd healthcheck"},
             {"Another one:", "sitemapd healthcheck http://127.0.0.1:8081"},
             {0},
         }},
    {"engines", "[NAME]", "show what search engines report about the sitemaps",
     "Show each search engine of the configuration: whether it answers, and how many errors and "
     "warnings it found. With NAME (google, bing), show each sitemap that it lists: when it was "
     "submitted and read, with how many errors; of an index with errors, the sitemaps that have "
     "them. The server queries them four times a day. Of several machines one node does, and only "
     "that node shows the results.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "only this site"},
         OPTION_JSON,
         {0},
     },
     0, 1, command_engines,
     .examples =
         (const struct cli_example[]){
             {"Whether Google and Bing found errors:", "sitemapd engines"},
             {"Which sitemaps Google cannot use:", "sitemapd engines google"},
             {0},
         }},
    {"doctor", "URL", "check the public address as crawlers see it",
     "Fetch an index through its proxies and check status, type, compression, Vary, ETag, "
     "conditional requests, robots.txt, the index itself, the robots.txt of other hosts that it "
     "lists, and a sample of its sitemaps. Each check is reported as ok, note (it may be "
     "intended), warning or wrong, with URL, line and remedy. With --json each is an object: "
     "level, check, code (stable words), what, todo, url, line, column, count. With --server it "
     "adds what the server reports and no crawler can see, such as a node without a folder. Exit "
     "status 1 if something is wrong.",
     (const struct cli_option[]){
         {"--sample", "N", "sitemaps of the index to fetch (default: 5)"},
         {"--connect", "H:P",
          "connect to this host and port, whatever DNS says: the server behind a CDN"},
         {"--timeout", "S", "seconds for each request (default: 20)"},
         OPTION_JSON,
         {0},
     },
     1, 1, command_doctor,
     .examples =
         (const struct cli_example[]){
             {"As crawlers see it:", "sitemapd doctor https://www.example.com/sitemap_index.xml"},
             {"The index that the site's robots.txt names, with 50 of its sitemaps:",
              "sitemapd doctor https://www.example.com --sample 50"},
             {"The server itself, past CDN and DNS:",
              "sitemapd doctor http://www.example.com/sitemap_index.xml --connect 127.0.0.1:8080"},
             {"What is wrong, for a script:",
              "sitemapd doctor https://www.example.com --json | jq -r "
              "'select(.level == \"wrong\") | .what'"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"probe", "URL|NAME", "poll a remote sitemap once, and show each step",
     "Request a URL, or the upstream of the [source] NAME, as the server would, and show each "
     "step, the header, and what a source would do with the response. Nothing is written. Exit "
     "status 0 if it is a good sitemap, or an index that can be an upstream; else 1.",
     (const struct cli_option[]){
         {"--connect", "H:P", "connect to this host and port, whatever DNS says"},
         {"--timeout", "S", "seconds for each request (default: 120)"},
         {0},
     },
     1, 1, command_probe,
     .examples =
         (const struct cli_example[]){
             {"An upstream, before you add it:",
              "sitemapd probe https://www.example.com/sitemap_index.xml"},
             {"The old server, once its name points to another one:",
              "sitemapd probe https://www.example.com/sitemap_index.xml --connect 192.0.2.7:443"},
             {0},
         }},
    {"migrate", "ORIGIN", "print the configuration that takes over a site",
     "Read robots.txt and the indexes that it names (or the one at a usual address), check a "
     "sample of their sitemaps, and print sections for the configuration: the site, and a source "
     "for each index, which mirrors it. Comments say what will change, and give web server rules "
     "that pass on exactly these paths. With --commands, print commands instead, which import the "
     "entries once. Of www and bare host it chooses the one that has the sitemaps. Nothing is "
     "written.",
     (const struct cli_option[]){
         {"--commands", NULL, "print commands instead of a configuration"},
         {"--serve", NULL, "serve the sitemaps here, too, from copies"},
         {"--proxy", "NAME", "print only the rules of a web server: nginx, caddy or haproxy"},
         {"--sample", "N", "sitemaps of each index to check (default: 5)"},
         {"--connect", "H:P", "connect to this host and port, whatever DNS says"},
         {"--timeout", "S", "seconds for each request (default: 120)"},
         {0},
     },
     1, 1, command_migrate,
     .examples =
         (const struct cli_example[]){
             {"Into the configuration:",
              "sitemapd migrate https://www.example.com >> /etc/sitemapd/sitemapd.conf"},
             {"As commands, to review before you run them:",
              "sitemapd migrate https://www.example.com --commands > take-over.sh"},
             {"The locations of nginx that pass on the index and robots.txt:",
              "sitemapd migrate https://www.example.com --proxy nginx"},
             {0},
         }},
    {"backup", "FILE|-", "copy the catalogue, also while it is served",
     "Write a consistent copy of the catalogue into a new file, also while a server works on it; - "
     "is standard output. With --server the server makes the copy; this needs a token for all "
     "sites.",
     NULL, 1, 1, command_backup,
     .examples =
         (const struct cli_example[]){
             {"From another machine, compressed:",
              "sitemapd backup - --server https://admin.example.com | gzip > catalogue.db.gz"},
             {"Once a day, from cron:",
              "sitemapd backup \"/var/backups/catalogue-$(date +%F).db\""},
             {0},
         }},
    {"restore", "FILE", "restore the catalogue from a backup",
     "Check a backup, of this version or an earlier one, and make it the catalogue, completely or "
     "not at all. This fails while a server or another command uses the catalogue, and if a "
     "catalogue exists, unless --replace is given. Readers of /v1/changes get 410 once and start "
     "again.",
     (const struct cli_option[]){
         {"--replace", NULL, "replace the existing catalogue, which is lost"},
         {0},
     },
     1, 1, command_restore,
     .examples =
         (const struct cli_example[]){
             {"On a new machine:", "sitemapd restore catalogue-2026-11-21.db"},
             {"Back to yesterday's state, with a backup of today's:",
              "systemctl stop sitemapd\n"
              "sitemapd backup before.db\n"
              "sitemapd restore catalogue-2026-11-21.db --replace\n"
              "systemctl start sitemapd"},
             {0},
         }},
    {"check", "", "check the catalogue's integrity",
     "Check that the file is intact, and that counts and pages agree with the entries. Exit status "
     "1 if something is wrong.",
     NULL, 0, 0, command_check,
     .examples =
         (const struct cli_example[]){
             {"The catalogue of this configuration:", "sitemapd check"},
             {"A backup:", "sitemapd check --database /var/backups/catalogue-2026-11-21.db"},
             {0},
         }},
    {"completion", "SHELL", "print completions for bash, zsh or fish",
     "Print a script with which the shell completes sitemapd's commands and options, and the sites "
     "and indexes of the catalogue.",
     NULL, 1, 1, command_completion,
     .examples =
         (const struct cli_example[]){
             {"bash, for this shell; the package installs it for all:",
              "source <(sitemapd completion bash)"},
             {"zsh:", "sitemapd completion zsh > \"${fpath[1]}/_sitemapd\""},
             {"fish:", "sitemapd completion fish > ~/.config/fish/completions/sitemapd.fish"},
             {0},
         }},
    {"complete", "WORD...", "print completions, for those scripts",
     "Print what the last WORD, which may be empty, can become: a line each, with its meaning "
     "after a tab, or :file or :folder.",
     NULL, 0, UINT_MAX, command_complete,
     .examples =
         (const struct cli_example[]){
             {"The commands of a group:", "sitemapd complete -- site ''"},
             {0},
         }},
    {0},
};
