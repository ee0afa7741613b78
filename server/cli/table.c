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
        "--max-removed", "N", "approve that up to N entries go (shrink guard)"                     \
    }
#define OPTIONS_SOURCE                                                                             \
    {"--directory", "DIR", "the folder, absolute as the server sees it"},                          \
        {"--url", "URL", "what the folder's top is on the web, ends in a slash"},                  \
        {"--upstream", "URL", "in place of a folder, a sitemap index elsewhere"},                  \
        {"--index", "URL", "the index that lists it; by default the deepest that may"},            \
        {"--pattern", "NAME", "files of the folder to read; repeatable"},                          \
        {"--exclude", "NAME", "files of the folder to leave alone; repeatable"},                   \
        {"--watch", NULL, "notice changes of the folder at once (the default)"},                   \
        {"--no-watch", NULL, "leave that to the rescans"},                                         \
        {"--serve", NULL, "serve the folder's files themselves"},                                  \
        {"--no-serve", NULL, "do not (the default)"},                                              \
        {"--check", NULL, "read the sitemaps that the upstream names, too (the default)"},         \
        {"--no-check", NULL, "only list them, as the upstream dates them"},                        \
        {"--rescan", "SPAN", "how often the folder is looked through (1h)"},                       \
        {"--settle", "SPAN", "how long the folder must be quiet (10s)"},                           \
        {"--poll", "SPAN", "how often the upstream is read (15m)"},                                \
    {                                                                                              \
        "--drop-after", "SPAN", "a sitemap that is none for so long leaves (3d); 0: never"         \
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

#define OPTION_ROBOTS                                                                              \
    {                                                                                              \
        "--robots", "FILE", "the site's own robots.txt; the Sitemap lines come behind it"          \
    }

const struct cli_command cli_commands[] = {
    {"serve", "", "serve index pages to crawlers and the API to you",
     "Serves until SIGTERM: index pages and robots.txt on the public listener, the API, metrics "
     "and health on the admin listener. When it is ready it prints one line on stdout:\n\n"
     "  sitemapd: ready public=http://127.0.0.1:8080 admin=http://127.0.0.1:8081",
     (const struct cli_option[]){
         {"--listen", "A:P", "address and port for crawlers (default: 0.0.0.0:8080)"},
         {"--admin-listen", "A:P", "address and port of the API (default: 127.0.0.1:8081)"},
         {"--site", "ORIGIN", "make sure that this site exists; repeatable"},
         {"--source", "DIR[=URL]",
          "watch this folder of sitemap files, and serve them; repeatable"},
         {"--user", "NAME", "become this user, where started as root, once the sockets are bound"},
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
     "Reads the configuration and prints each mistake as file:line: message.",
     (const struct cli_option[]){
         {"--defaults", NULL, "print every setting with its default, as a file to begin with"},
         {0},
     },
     0, 1, command_check_config,
     .examples =
         (const struct cli_example[]){
             {"The file that serve would read:", "sitemapd check-config"},
             {"Another one, before it is put in place:", "sitemapd check-config ./sitemapd.conf"},
             {"A file to begin with:", "sitemapd check-config --defaults >sitemapd.conf"},
             {0},
         }},
    {"site add", "ORIGIN", "make a site, with an index at /sitemap_index.xml",
     "Makes a site: the origin whose sitemaps are listed. Sitemaps on another host (a CDN) may be "
     "listed once that host is a cross host.",
     (const struct cli_option[]){
         OPTION_CROSS_HOST,
         OPTION_HOST_ALIAS,
         OPTION_MAX_INDEXES,
         OPTION_ROBOTS,
         {"--no-index", NULL, "do not make an index at /sitemap_index.xml"},
         {0},
     },
     1, 1, command_site_add,
     .examples =
         (const struct cli_example[]){
             {"A site with its index:", "sitemapd site add https://www.example.com"},
             {"Its sitemap files lie on a CDN:",
              "sitemapd site add https://www.example.com --cross-host cdn.example.com"},
             {"An index of another name:",
              "sitemapd site add https://www.example.com --no-index\n"
              "sitemapd index add https://www.example.com/sitemaps.xml"},
             {0},
         },
     .topic = "Sites and indexes"},
    {"site update", "ORIGIN", "change a site's hosts, limit or robots.txt",
     "Changes what is named, and shows what it was and is now; what is not named stays.",
     (const struct cli_option[]){
         {"--add-host-alias", "HOST", "one more name that requests come under; repeatable"},
         {"--remove-host-alias", "HOST", "take this host alias away; repeatable"},
         {"--host-alias", "HOST", "the only host aliases from now on; repeatable"},
         {"--no-host-aliases", NULL, "take all host aliases away"},
         {"--add-cross-host", "HOST", "one more host whose sitemaps may be listed; repeatable"},
         {"--remove-cross-host", "HOST", "take this cross host away; repeatable"},
         {"--cross-host", "HOST", "the only cross hosts from now on; repeatable"},
         {"--no-cross-hosts", NULL, "take all cross hosts away"},
         OPTION_MAX_INDEXES,
         OPTION_ROBOTS,
         {"--no-robots", NULL, "robots.txt has the Sitemap lines alone"},
         {"--robots-off", NULL, "leave /robots.txt (404) to whoever serves the site"},
         {"--check", NULL, "read what is registered where it is, and tell what is broken"},
         {"--no-check", NULL, "do not"},
         {0},
     },
     1, 1, command_site_update,
     .examples =
         (const struct cli_example[]){
             {"Requests also come under the bare name:",
              "sitemapd site update https://www.example.com --add-host-alias example.com"},
             {"No cross hosts any more:",
              "sitemapd site update https://www.example.com --no-cross-hosts"},
             {"The robots.txt that another program made until now:",
              "curl -sf https://www.example.com/robots.txt |\n"
              "    sitemapd site update https://www.example.com --robots -"},
             {0},
         },
     .names = CLI_NAMES_SITE},
    {"site list", "", "show the sites", "Shows each site with its hosts, indexes and pages.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_site_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd site list"},
             {"For scripts, one origin a line:", "sitemapd site list --json | jq -r .origin"},
             {0},
         }},
    {"site remove", "ORIGIN", "remove a site with all its entries",
     "Removes a site, its indexes and their entries. Held by the shrink guard unless "
     "--max-removed approves as many entries as it has.",
     (const struct cli_option[]){OPTION_MAX_REMOVED, {0}}, 1, 1, command_site_remove,
     .examples =
         (const struct cli_example[]){
             {"A site whose indexes are empty:", "sitemapd site remove https://www.example.com"},
             {"A site with 120 entries:",
              "sitemapd site remove https://www.example.com --max-removed 120"},
             {0},
         },
     .names = CLI_NAMES_SITE},
    {"index add", "URL", "make an index",
     "Makes an index. It lists sitemaps of its own directory and below, so an index at "
     "/shop/sitemap_index.xml lists only what is under /shop/. With one site its path will do.",
     (const struct cli_option[]){
         {"--pattern", "P", "how further pages are named (default: {stem}-{n}{suffix})"},
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
    {"index list", "", "show the indexes", "Shows each index with its entries, pages and size.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_index_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd index list"},
             {"Which index has the most entries:",
              "sitemapd index list --json | jq -s 'max_by(.entries).url'"},
             {0},
         }},
    {"index remove", "URL", "remove an index with all its entries",
     "Removes an index and its entries. Held by the shrink guard unless --max-removed approves as "
     "many entries as it has.",
     (const struct cli_option[]){OPTION_MAX_REMOVED, {0}}, 1, 1, command_index_remove,
     .examples =
         (const struct cli_example[]){
             {"An empty index:",
              "sitemapd index remove https://www.example.com/shop/sitemap_index.xml"},
             {"An index with 40 entries; with one site its path will do:",
              "sitemapd index remove /shop/sitemap_index.xml --max-removed 40"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"freeze", "ORIGIN|URL", "let nothing change in a site, an index or a urlset",
     "Writes to a frozen site, index or urlset are refused, sources hold what they found, and "
     "crawlers are "
     "served. It is no setting: allowed on sites of the configuration too, and no reload undoes "
     "it.",
     NULL, 1, 1, command_freeze,
     .examples =
         (const struct cli_example[]){
             {"An index, while what went wrong is looked at:",
              "sitemapd freeze https://www.example.com/sitemap_index.xml"},
             {"All indexes of a site:", "sitemapd freeze https://www.example.com"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"thaw", "ORIGIN|URL", "end a freeze",
     "Writes are taken again, and sources publish what they held.", NULL, 1, 1, command_thaw,
     .examples =
         (const struct cli_example[]){
             {"The index again:", "sitemapd thaw https://www.example.com/sitemap_index.xml"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"urlset add", "URL", "make a sitemap that is kept from page URLs",
     "Makes a urlset: a sitemap, of as many pages as it takes, whose page URLs are registered one "
     "by one or in lists (url, import --urlset). Each of its pages is an entry of its index. Its "
     "page URLs lie in its directory and below. With one site its path will do. How old one is, "
     "its news tell, else its lastmod, "
     "else when it was registered; what is made with news is for news alone, since all page URLs "
     "leave.",
     (const struct cli_option[]){
         {"--index", "URL", "whose entries its pages are (default: the deepest that holds it)"},
         {"--with", "WORDS", "what its page URLs may have: images,alternates,news; it stays"},
         {"--pattern", "P", "how further pages are named (default: {stem}-{n}{suffix})"},
         {"--max-pages", "N", "how many pages it may have (default: 1000)"},
         {"--expires", "SPAN",
          "page URLs that are older leave: 12h, never (default: of news 2d, else never)"},
         {0},
     },
     1, 1, command_urlset_add,
     .examples =
         (const struct cli_example[]){
             {"Products with their images:",
              "sitemapd urlset add https://www.example.com/products.xml --with images"},
             {"News, which leave after two days:",
              "sitemapd urlset add https://www.example.com/news.xml --with news"},
             {0},
         },
     .topic = "Page URLs", .pages = true},
    {"urlset set", "URL", "change a urlset",
     "Changes what is named. With a shorter --expires older page URLs leave at once: held by the "
     "shrink guard. A urlset that keeps its page URLs for good is given an --expires only while it "
     "is empty.",
     (const struct cli_option[]){
         {"--index", "URL", "another index, of the same site"},
         {"--max-pages", "N", "how many pages it may have"},
         {"--expires", "SPAN", "page URLs that are older leave: 2d, 12h; never: none does"},
         OPTION_MAX_REMOVED,
         {0},
     },
     1, 1, command_urlset_set,
     .examples =
         (const struct cli_example[]){
             {"No more than twenty pages:", "sitemapd urlset set /products.xml --max-pages 20"},
             {0},
         },
     .names = CLI_NAMES_URLSET, .pages = true},
    {"urlset list", "", "show the urlsets", "Shows each urlset with its page URLs, pages and size.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_index_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd urlset list"},
             {0},
         },
     .pages = true},
    {"urlset remove", "URL", "remove a urlset with all its page URLs",
     "Removes a urlset, its page URLs, and its pages from their index. Held by the shrink guard "
     "unless --max-removed approves as many page URLs as it has.",
     (const struct cli_option[]){OPTION_MAX_REMOVED, {0}}, 1, 1, command_index_remove,
     .examples =
         (const struct cli_example[]){
             {"A urlset with 40 page URLs; with one site its path will do:",
              "sitemapd urlset remove /products.xml --max-removed 40"},
             {0},
         },
     .names = CLI_NAMES_URLSET, .pages = true},
    {"url add", "LOC", "register a page URL, or update it",
     "Registers the page at LOC in a urlset, or updates it. What is not given stays as it is; "
     "images, alternates and news go together: where one of them is given, those given are all.",
     (const struct cli_option[]){
         OPTION_URLSET,
         {"--lastmod", "T", "when the page changed: 2026-11-21 or 2026-11-21T08:30:00Z"},
         {"--digest", "D", "a hash of the page: lastmod moves only with it"},
         {"--image", "URL", "an image on the page; repeatable"},
         {"--alternate", "LANG=URL", "the page in another language; repeatable"},
         {"--news-name", "TEXT", "of news the publication, which needs the three below, too"},
         {"--news-language", "LANG", "its language: en, zh-cn"},
         {"--news-date", "T", "when the article was published"},
         {"--news-title", "TEXT", "the article's title"},
         {"--source", "NAME",
          "who owns it, where it is new (default: cli; on a server the token's name)"},
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
    {"url remove", "LOC", "take a page URL out of its urlset",
     "Takes the page at LOC out of a urlset.", (const struct cli_option[]){OPTION_URLSET, {0}}, 1,
     1, command_remove,
     .examples =
         (const struct cli_example[]){
             {"One page:",
              "sitemapd url remove https://www.example.com/shoes/1 --urlset /products.xml"},
             {0},
         },
     .pages = true},
    {"url list", "", "show the page URLs of a urlset",
     "Shows page URLs in the order in which pages list them.",
     (const struct cli_option[]){
         OPTION_URLSET,
         {"--prefix", "URL", "only locs that begin with this"},
         {"--contains", "TEXT", "only locs that have this in them (3 to 200 bytes)"},
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
     "Writes each page URL of a urlset as one line of JSON, with its position and all that it has. "
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
     "Registers the sitemap file at LOC, or updates it. What is not given stays as it is. The "
     "site follows from LOC, the index is the deepest one whose directory holds it.",
     (const struct cli_option[]){
         {"--lastmod", "T", "when the sitemap file changed: 2026-11-21 or 2026-11-21T08:30:00Z"},
         {"--digest", "D", "a hash or ETag of the file: lastmod moves only with it"},
         {"--index", "URL", "the index to put it in (default: the deepest that holds it)"},
         {"--source", "NAME",
          "who owns the entry, where it is new (default: cli; on a server the token's name)"},
         OPTION_JSON,
         {0},
     },
     1, 1, command_add,
     .examples =
         (const struct cli_example[]){
             {"A new file, or one that has changed:",
              "sitemapd add https://www.example.com/sitemap-news.xml --lastmod "
              "2026-11-21T08:30:00Z"},
             {"The date is now, but only where the content is another:",
              "sitemapd add https://www.example.com/sitemap-news.xml \\\n"
              "    --lastmod \"$(date -u +%FT%TZ)\" --digest \"$(sha256sum <news.xml | cut "
              "-c1-64)\""},
             {0},
         },
     .topic = "Sitemaps"},
    {"remove", "LOC", "take a sitemap out of its index",
     "Takes the sitemap at LOC out of its index. The file itself is not touched.", NULL, 1, 1,
     command_remove,
     .examples =
         (const struct cli_example[]){
             {"One sitemap:", "sitemapd remove https://www.example.com/sitemap-news.xml"},
             {0},
         }},
    {"list", "", "show the registered sitemaps",
     "Shows entries in the order in which pages list them.",
     (const struct cli_option[]){
         OPTION_INDEX,
         {"--prefix", "URL", "only locs that begin with this"},
         {"--contains", "TEXT", "only locs that have this in them (3 to 200 bytes)"},
         {"--warned", NULL, "only entries that have warnings"},
         OPTION_JSON,
         {0},
     },
     0, 0, command_list,
     .examples =
         (const struct cli_example[]){
             {"All of them:", "sitemapd list"},
             {"Those below one folder:", "sitemapd list --prefix https://www.example.com/shop/"},
             {"What is odd about those of which something is:",
              "sitemapd list --warned --json | jq -r '[.loc, .warnings[]] | @tsv'"},
             {"Those without a date:",
              "sitemapd list --json | jq -r 'select(.lastmod == null) | .loc'"},
             {0},
         }},
    {"import", "FILE|URL|-", "register many: index XML, NDJSON, or a list of URLs",
     "Reads a sitemap index (XML), NDJSON (as export writes it) or a plain list of URLs, each also "
     "gzipped, told apart by content; - is standard input. A URL is fetched once, as a source with "
     "an upstream would ([fetch] of the configuration says which addresses may be asked). All or "
     "nothing: where an entry is "
     "refused nothing is applied, unless --skip-invalid. With --replace the indexes that the list "
     "names, or its locs belong to, become exactly the list, each in one step of its own: what "
     "the same source made before and the list has no more goes, what other sources own stays. "
     "--source '*' replaces whoever's entries there are. With --urlset the list is of page URLs: a "
     "sitemap (XML with its images, alternates and news, or text), NDJSON or a plain list.",
     (const struct cli_option[]){
         {"--index", "URL",
          "the index for entries that name none (default: the deepest that holds it)"},
         {"--urlset", "URL", "read page URLs into this urlset: its URL, or its path with one site"},
         {"--replace", NULL, "make what --source owns of each index named exactly this list"},
         {"--skip-invalid", NULL, "apply the good entries, though some are refused"},
         {"--dry-run", NULL, "show what would change, write nothing"},
         {"--drop-lastmod", NULL, "take no lastmod from the list: its dates would freeze"},
         {"--drop-extensions", NULL,
          "leave out images, alternates and news that the urlset was not made for"},
         {"--connect", "H:P", "ask this host and port for the URL, whatever DNS says"},
         OPTION_MAX_REMOVED,
         {"--if-match", "STATE",
          "only while the index or urlset is as it was: its \"state\" of `index list --json`"},
         {"--source", "NAME",
          "who owns the entries (default: cli, on a server the token's name, or as an export "
          "says); '*': anybody"},
         {0},
     },
     1, 1, command_import,
     .examples =
         (const struct cli_example[]){
             {"Take over an index that was built by something else:",
              "sitemapd import old/sitemap_index.xml.gz"},
             {"See first what would come of it:",
              "sitemapd import --dry-run https://www.example.com/sitemap_index.xml"},
             {"Make what imports put into an index exactly this list:",
              "sitemapd import --replace --index /sitemap_index.xml list.txt"},
             {"Exactly this list, whoever registered what is there:",
              "sitemapd import --replace --source '*' --index /sitemap_index.xml list.txt"},
             {"Exactly the page URLs of a sitemap that a plug-in wrote:",
              "sitemapd import --replace --urlset /products.xml product-sitemap.xml"},
             {0},
         }},
    {"export", "", "write entries as NDJSON, for import",
     "Writes each entry as one line of JSON, with its position, by index and position. Imported "
     "into an empty index or with --replace --source '*', the copy serves identical bytes.",
     (const struct cli_option[]){OPTION_INDEX, {0}}, 0, 0, command_export,
     .examples =
         (const struct cli_example[]){
             {"All entries:", "sitemapd export > entries.ndjson"},
             {"Into another catalogue, which then serves identical bytes:",
              "sitemapd export | sitemapd import --replace --source '*' --database copy.db -"},
             {0},
         }},
    {"scan", "NAME|DIR", "read a folder, or an upstream's list, once",
     "Verifies each file that is new or has changed since the last scan, and registers what is "
     "good in one step; prints what changed and what was refused, and why. NAME is a source of "
     "the configuration or the catalogue; a folder needs its URL. Of a source with an upstream the "
     "list is read once, and its sitemaps by the server. With --server that source is scanned "
     "there.",
     (const struct cli_option[]){
         {"--url", "URL", "what the folder's top is, ends in a slash"},
         {"--index", "URL", "the index that lists the files (default: the deepest that may)"},
         {"--source", "NAME", "who owns the entries of a folder (default: folder)"},
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
     "Prints the page of an index or a urlset at URL as the server would serve it; with one site a "
     "path will do.",
     NULL, 1, 1, command_render,
     .examples =
         (const struct cli_example[]){
             {"Look at a page:", "sitemapd render https://www.example.com/sitemap_index.xml"},
             {"Check it against another tool; with one site the path will do:",
              "sitemapd render /sitemap_index.xml | xmllint --noout -"},
             {0},
         },
     .names = CLI_NAMES_INDEX},
    {"crawlers", "[NAME]", "show which crawlers have seen all changes",
     "Shows each crawler that came: its last fetch, up to when it has seen all changes, and of how "
     "many pages it holds the present version, an earlier one (stale) or none. With NAME the pages "
     "of the indexes and urlsets that it reads. A running server writes it to the catalogue once a "
     "minute; "
     "--server asks it for what it knows now. Of several machines it is what all of them saw.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "only this site's pages"},
         {"--stale", NULL, "only what lacks the present version"},
         OPTION_JSON,
         {0},
     },
     0, 1, command_crawlers,
     .examples =
         (const struct cli_example[]){
             {"Who came, and what they lack:", "sitemapd crawlers"},
             {"The pages that Google has in an earlier version:",
              "sitemapd crawlers googlebot --stale"},
             {"Since when, for a script:",
              "sitemapd crawlers --stale --json | jq -r '[.name, .stale_since] | @tsv'"},
             {0},
         }},
    {"crawlers import", "LOG|-", "take in what a CDN's access log tells of crawlers",
     "Reads an access log in the combined format or of one JSON object a line (CloudFront, "
     "Cloudflare, Fastly and the like), gzipped or not; - is standard input. Requests of crawlers "
     "for pages and robots.txt are added to the sums of their days. That a crawler holds the "
     "present version of a page is taken from a line only where its time is more than --max-age "
     "behind the page's change: a cache answers with what is as old. A log that was read before is "
     "passed over, one that has grown is read from where it ended; a log that the server wrote "
     "itself, or whose requests it answered, would count twice. A running server takes it in "
     "within a minute. On the machine of the catalogue only.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "the site of lines that tell no host"},
         {"--max-age", "SPAN", "how old what the CDN answers with may be (default: 1h)"},
         {"--dry-run", NULL, "count, and take nothing in"},
         {0},
     },
     1, 1, command_crawlers_import,
     .examples =
         (const struct cli_example[]){
             {"A log of nginx in front of two sites:",
              "sitemapd crawlers import --site https://www.example.com "
              "/var/log/nginx/access.log.1"},
             {"What a CDN laid into a bucket; its copies are ten minutes old at most:",
              "aws s3 cp s3://logs/2026-11-22.json.gz - | sitemapd crawlers import --max-age 10m "
              "-"},
             {0},
         }},
    {"history", "[REVISION]", "show what was changed, when, by whom",
     "Shows the changes, the newest first: revision, time, kind, who made it and how, how many "
     "entries it added (+), changed (~) and removed (-), and of which URL or site. With REVISION "
     "shows that change and its entries. WHEN is a time, a date (UTC; --until includes the whole "
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
     .topic = "What was changed"},
    {"diff", "", "show what differs between two revisions",
     "Shows what came (+), went (-) and differs (~), entry by entry, in all indexes and urlsets or "
     "one.",
     (const struct cli_option[]){
         {"--from", "REVISION", "as after this revision"},
         {"--to", "REVISION", "until after this one (default: now)"},
         OPTION_INDEX,
         OPTION_ONLY_URLSET,
         OPTION_JSON,
         {0},
     },
     0, 0, command_diff,
     .examples =
         (const struct cli_example[]){
             {"All since the last good revision:", "sitemapd diff --from 120"},
             {"What went from one index meanwhile:",
              "sitemapd diff --from 120 --to 124 --index /sitemap_index.xml --json |\n"
              "    jq -r 'select(.after == null) | .loc'"},
             {0},
         }},
    {"undo", "[REVISION]", "take a change back, or bring an index back",
     "Puts back what the change of REVISION changed; or, with --index or --urlset and --to, that "
     "list as it was after a revision, whatever was changed since. Entries come back with their "
     "ids, dates and "
     "places, pages with their bytes and tags. What somebody changed since is listed and stays. It "
     "is a change of its own, and is undone by undoing it. What a source found is undone while its "
     "index is frozen; at the thaw the source judges its files anew, so put those back before.",
     (const struct cli_option[]){
         {"--index", "URL", "bring this index back: its URL, or its path with one site"},
         {"--urlset", "URL", "bring this urlset back, likewise"},
         {"--to", "REVISION", "to what it was after this one"},
         {"--dry-run", NULL, "tell what it would do, write nothing"},
         {"--overwrite", NULL, "put back also what somebody changed since"},
         OPTION_MAX_REMOVED,
         OPTION_JSON,
         {0},
     },
     0, 1, command_undo,
     .examples =
         (const struct cli_example[]){
             {"See first, then do it:", "sitemapd undo 124 --dry-run\nsitemapd undo 124"},
             {"An index as it was before the bad night:",
              "sitemapd undo --index /sitemap_index.xml --to 120"},
             {"A urlset likewise, seen first:",
              "sitemapd undo --urlset /products.xml --to 120 --dry-run"},
             {0},
         }},
    {"source add", "NAME", "have a folder or an upstream read",
     "Makes a source, which the catalogue keeps: a folder of sitemap files (--directory, --url), "
     "or a "
     "sitemap index elsewhere that is kept in step with (--upstream). Its name owns the entries. A "
     "folder is read only beneath a source_root of the configuration, and addresses outside the "
     "public internet only where [fetch] allows them; where to connect to, certificates and "
     "credentials are set in the configuration alone.",
     (const struct cli_option[]){OPTIONS_SOURCE,
                                 {"--site", "ORIGIN",
                                  "whose it is, where the upstream's host is no "
                                  "site's"},
                                 {0}},
     1, 1, command_source_add,
     .examples =
         (const struct cli_example[]){
             {"A folder:", "sitemapd source add shop --directory /srv/sitemaps/shop --url "
                           "https://www.example.com/shop/"},
             {"An index that another server makes:",
              "sitemapd source add old --upstream https://www.example.com/sitemap.xml"},
             {0},
         },
     .topic = "Sources"},
    {"source set", "NAME", "change a source", "Changes what is named; what is not named stays.",
     (const struct cli_option[]){OPTIONS_SOURCE, {0}}, 1, 1, command_source_set,
     .examples =
         (const struct cli_example[]){
             {"Look once a day:", "sitemapd source set old --poll 24h"},
             {0},
         }},
    {"source list", "", "show the sources",
     "Shows the sources of the configuration and of the catalogue. status tells how they stand.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_source_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd source list"},
             {0},
         }},
    {"source remove", "NAME", "read a source no more",
     "Removes a source of the catalogue. Its entries stay; remove or replace them where they "
     "should "
     "not.",
     NULL, 1, 1, command_source_remove,
     .examples =
         (const struct cli_example[]){
             {"The old server is gone:", "sitemapd source remove old"},
             {0},
         }},
    {"token add", "NAME", "make an API token",
     "Makes a token for the API and prints it, this once. Only its hash is kept. A role holds "
     "those "
     "before it: read reads, write also registers and removes entries, admin also makes, changes "
     "and removes sites, indexes and tokens of its scope.",
     (const struct cli_option[]){
         {"--site", "ORIGIN", "good for this site only"},
         {"--prefix", "URL", "only for locs that begin so; ends with a slash, or with - _ or ."},
         {"--role", "ROLE", "read, write (default) or admin"},
         {"--own", NULL, "it changes only what it registered itself"},
         {"--expires", "WHEN", "from then on it is nothing: 90d, 12h, or a date"},
         {0},
     },
     1, 1, command_token_add,
     .examples =
         (const struct cli_example[]){
             {"For a deployment, good for one site:",
              "TOKEN=$(sitemapd token add deploy --site https://www.example.com)"},
             {"For a team that has a part of a site, until the end of the year:",
              "sitemapd token add blog --prefix https://www.example.com/blog/ --expires "
              "2099-12-31"},
             {"For a dashboard, which changes nothing:",
              "sitemapd token add dashboard --role read"},
             {0},
         },
     .topic = "Tokens of the API"},
    {"token list", "", "show the tokens' names",
     "Shows the tokens by name; what they are cannot be shown again.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_token_list,
     .examples =
         (const struct cli_example[]){
             {"For people:", "sitemapd token list"},
             {"For scripts:", "sitemapd token list --json"},
             {0},
         }},
    {"token revoke", "NAME", "end a token", "Ends a token: a running server refuses it at once.",
     NULL, 1, 1, command_token_revoke,
     .examples =
         (const struct cli_example[]){
             {"A token that leaked:", "sitemapd token revoke deploy"},
             {0},
         }},
    {"share init", "", "make the catalogue one of several machines",
     "Makes the catalogue of this machine one that several share by a PostgreSQL: the log of its "
     "changes is made there, with a first snapshot that others join by. Refused while a server "
     "works on it, and where there is a shared catalogue already.",
     (const struct cli_option[]){
         {"--if-absent", NULL, "no log is made where there is a shared catalogue already"},
         {"--grant-to", "ROLE",
          "the role that nodes come as, where this one makes the tables only"},
         {0},
     },
     0, 0, command_share_init,
     .examples =
         (const struct cli_example[]){
             {"On the one machine that has the catalogue:",
              "sitemapd share init --shared postgresql://sitemapd@db.internal/sitemapd"},
             {"By the role that may make tables, for the one that nodes come as:",
              "sitemapd share init --grant-to sitemapd --shared "
              "postgresql://owner@db.internal/sitemapd"},
             {0},
         },
     .topic = "Several machines"},
    {"share status", "", "show the shared catalogue and its nodes",
     "Asks PostgreSQL how far the log is, whether a standby is synchronous, and which nodes there "
     "are.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_share_status,
     .examples =
         (const struct cli_example[]){
             {"By the configuration of this machine:", "sitemapd share status"},
             {"Who is behind:", "sitemapd share status --json | jq -c 'select(.node)'"},
             {0},
         }},
    {"share upgrade", "", "give the shared catalogue this release's form",
     "Where [shared] upgrade is manual: migrates the catalogue of all nodes, once none of them "
     "runs an older release.",
     NULL, 0, 0, command_share_upgrade,
     .examples =
         (const struct cli_example[]){
             {"When the last node is upgraded:", "sitemapd share upgrade"},
             {0},
         }},
    {"status", "", "show what is served and how it stands",
     "Shows the sites, indexes and entries in sum, whether all is well, and how each source "
     "stands. "
     "Exit 1 where something is not well. On a file no server is asked: what it knows of itself "
     "(reasons, failing sources) is shown with --server.",
     (const struct cli_option[]){OPTION_JSON, {0}}, 0, 0, command_status,
     .examples =
         (const struct cli_example[]){
             {"The catalogue of this machine:", "sitemapd status"},
             {"A server, from elsewhere:",
              "sitemapd status --server https://admin.example.com --token-file ~/.sitemapd-token"},
             {0},
         },
     .topic = "Care"},
    {"healthcheck", "[URL]", "ask a running server whether it is well",
     "Asks the server's /readyz. Exit 0 where it answers 200, else 1: for a container's health "
     "check. Without URL the admin listener of the configuration is asked, whatever "
     "SITEMAPD_SERVER says.",
     NULL, 0, 1, command_healthcheck,
     .examples =
         (const struct cli_example[]){
             {"The server of this configuration:", "sitemapd healthcheck"},
             {"Another one:", "sitemapd healthcheck http://127.0.0.1:8081"},
             {0},
         }},
    {"doctor", "URL", "look at the public address as crawlers do",
     "Fetches an index, through whatever proxies stand before it, and checks status, type, "
     "compression, Vary, ETag, conditional requests, robots.txt, the index itself, the robots.txt "
     "of the other hosts that it lists, and a sample of its sitemaps, by the same rules as those "
     "of a source. Tells each check as ok, note (it may be meant so), warning or wrong, with URL, "
     "line and what to do. With --json each is an object: level, check, code (stable words), what, "
     "todo, url, line, column, count. With --server it also tells what that server says of itself, "
     "which no crawler sees: of several machines, which of them lacks a folder. Exit 1 where "
     "something is wrong, 0 otherwise.",
     (const struct cli_option[]){
         {"--sample", "N", "sitemaps of the index to fetch (default: 5)"},
         {"--connect", "H:P", "ask this host and port, whatever DNS says: the server behind a CDN"},
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
    {"probe", "URL|NAME", "poll a sitemap elsewhere once, and show all of it",
     "Asks a URL, or the upstream of the [source] NAME, as the server would: under the guard of "
     "addresses, with redirects followed by hand, and shows each step, what the head says, and "
     "what "
     "a source would make of it. Nothing is written. Exit 0 where it is a good sitemap, or an "
     "index "
     "that can be an upstream; else 1.",
     (const struct cli_option[]){
         {"--connect", "H:P", "ask this host and port, whatever DNS says"},
         {"--timeout", "S", "seconds for each request (default: 120)"},
         {0},
     },
     1, 1, command_probe,
     .examples =
         (const struct cli_example[]){
             {"An upstream, before it becomes one:",
              "sitemapd probe https://www.example.com/sitemap_index.xml"},
             {"The old server, once its name leads elsewhere:",
              "sitemapd probe https://www.example.com/sitemap_index.xml --connect 192.0.2.7:443"},
             {0},
         }},
    {"migrate", "ORIGIN", "look at a site and print what takes its index over",
     "Reads robots.txt and the indexes that it names (or the one at a usual address), looks into "
     "a sample of their sitemaps, and prints sections for the configuration: the site, and a "
     "source for each index, which mirrors it. Comments say what will be different, and give the "
     "rules of a web server that pass on exactly what moves. With --commands it prints commands "
     "instead, which import the entries once. Of www and bare host it chooses the one that has "
     "the sitemaps. Nothing is written.",
     (const struct cli_option[]){
         {"--commands", NULL, "print commands instead of a configuration"},
         {"--proxy", "NAME", "print the rules of a web server alone: nginx, caddy or haproxy"},
         {"--sample", "N", "sitemaps of each index to look into (default: 5)"},
         {"--connect", "H:P", "ask this host and port, whatever DNS says"},
         {"--timeout", "S", "seconds for each request (default: 120)"},
         {0},
     },
     1, 1, command_migrate,
     .examples =
         (const struct cli_example[]){
             {"Into the configuration:",
              "sitemapd migrate https://www.example.com >> /etc/sitemapd/sitemapd.conf"},
             {"As commands, to be read before they are run:",
              "sitemapd migrate https://www.example.com --commands > take-over.sh"},
             {"The locations of nginx that pass on the index and robots.txt:",
              "sitemapd migrate https://www.example.com --proxy nginx"},
             {0},
         }},
    {"backup", "FILE|-", "copy the catalogue, also while it is served",
     "Writes a consistent copy of the catalogue into a new file, also while a server works on it; "
     "- "
     "is standard output. With --server the copy is made there and comes here: for a token of all "
     "sites alone.",
     NULL, 1, 1, command_backup,
     .examples =
         (const struct cli_example[]){
             {"From another machine, packed:",
              "sitemapd backup - --server https://admin.example.com | gzip > catalogue.db.gz"},
             {"Once a day, from cron:",
              "sitemapd backup \"/var/backups/catalogue-$(date +%F).db\""},
             {0},
         }},
    {"restore", "FILE", "put a backup in the catalogue's place",
     "Checks a backup, of this version or an earlier one, and puts it where the catalogue is, "
     "whole "
     "or not at all. Refused while a server or another command works on the catalogue, and where "
     "there is one already, unless --replace. Readers of /v1/changes get 410 once and begin anew.",
     (const struct cli_option[]){
         {"--replace", NULL, "put it in the place of the catalogue that is there, which is lost"},
         {0},
     },
     1, 1, command_restore,
     .examples =
         (const struct cli_example[]){
             {"On a new machine:", "sitemapd restore catalogue-2026-11-21.db"},
             {"Back to yesterday's state, keeping today's aside:",
              "systemctl stop sitemapd\n"
              "sitemapd backup before.db\n"
              "sitemapd restore catalogue-2026-11-21.db --replace\n"
              "systemctl start sitemapd"},
             {0},
         }},
    {"check", "", "check the catalogue's integrity",
     "Checks that the file is whole, and that counts and pages agree with the entries. Exit 1 "
     "where something is wrong.",
     NULL, 0, 0, command_check,
     .examples =
         (const struct cli_example[]){
             {"The catalogue of this configuration:", "sitemapd check"},
             {"A backup:", "sitemapd check --database /var/backups/catalogue-2026-11-21.db"},
             {0},
         }},
    {"completion", "SHELL", "print completions for bash, zsh or fish",
     "Prints a script by which the shell completes sitemapd's commands and options, and the sites "
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
    {"complete", "WORD...", "what may stand next, for those scripts",
     "Prints what the last WORD, which may be empty, can become: a line each, with what it means "
     "behind a tab, or :file or :folder.",
     NULL, 0, UINT_MAX, command_complete,
     .examples =
         (const struct cli_example[]){
             {"The commands of a group:", "sitemapd complete -- site ''"},
             {0},
         }},
    {0},
};
