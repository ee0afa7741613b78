#include "server/cli/table.h"

#include "server/cli/commands.h"
#include "server/cli/table_parts.h"

const struct cli_command cli_commands[] = {
    {"serve", "", "serve index pages to crawlers and the API to you",
     "Serves until SIGTERM: index pages and robots.txt on the public listener, the API, metrics "
     "and health on the admin listener. When it is ready it prints one line on stdout:\n\n"
     "  sitemapd: ready public=http://127.0.0.1:8080 admin=http://127.0.0.1:8081",
     table_serve_options, 0, 0, command_serve, .examples = table_serve_examples,
     .topic = "Serving"},
    {"check-config", "[FILE]", "find every mistake in the configuration",
     "Reads the configuration and prints each mistake as file:line: message.", NULL, 0, 1,
     command_check_config, .examples = table_check_config_examples},
    {"site add", "ORIGIN", "make a site, with an index at /sitemap_index.xml",
     "Makes a site: the origin whose sitemaps are listed. Sitemaps on another host (a CDN) may be "
     "listed once that host is a cross host.",
     table_site_add_options, 1, 1, command_site_add, .examples = table_site_add_examples,
     .topic = "Sites and indexes"},
    {"site update", "ORIGIN", "change a site's hosts or limit",
     "Replaces the lists that are named; what is not named stays.", table_site_update_options, 1, 1,
     command_site_update, .examples = table_site_update_examples, .names = CLI_NAMES_SITE},
    {"site list", "", "show the sites", "Shows each site with its hosts, indexes and pages.",
     table_json_options, 0, 0, command_site_list, .examples = table_site_list_examples},
    {"site remove", "ORIGIN", "remove a site with all its entries",
     "Removes a site, its indexes and their entries. Held by the shrink guard unless "
     "--max-removed approves as many entries as it has.",
     table_remove_set_options, 1, 1, command_site_remove, .examples = table_site_remove_examples,
     .names = CLI_NAMES_SITE},
    {"index add", "URL", "make an index",
     "Makes an index. It lists sitemaps of its own directory and below, so an index at "
     "/shop/sitemap_index.xml lists only what is under /shop/.",
     table_index_add_options, 1, 1, command_index_add, .examples = table_index_add_examples},
    {"index list", "", "show the indexes", "Shows each index with its entries, pages and size.",
     table_json_options, 0, 0, command_index_list, .examples = table_index_list_examples},
    {"index remove", "URL", "remove an index with all its entries",
     "Removes an index and its entries. Held by the shrink guard unless --max-removed approves as "
     "many entries as it has.",
     table_remove_set_options, 1, 1, command_index_remove, .examples = table_index_remove_examples,
     .names = CLI_NAMES_INDEX},
    {"add", "LOC", "register a sitemap, or update it",
     "Registers the sitemap file at LOC, or updates it. What is not given stays as it is. The "
     "site follows from LOC, the index is the deepest one whose directory holds it.",
     table_add_options, 1, 1, command_add, .examples = table_add_examples, .topic = "Sitemaps"},
    {"remove", "LOC", "take a sitemap out of its index",
     "Takes the sitemap at LOC out of its index. The file itself is not touched.", NULL, 1, 1,
     command_remove, .examples = table_remove_examples},
    {"list", "", "show the registered sitemaps",
     "Shows entries in the order in which pages list them.", table_list_options, 0, 0, command_list,
     .examples = table_list_examples},
    {"import", "FILE|-", "register many: index XML, NDJSON, or a list of URLs",
     "Reads a sitemap index (XML), NDJSON (as export writes it) or a plain list of URLs, each also "
     "gzipped, told apart by content; - is standard input. All or nothing: where an entry is "
     "refused nothing is applied, unless --skip-invalid. With --replace the indexes that the list "
     "names, or its locs belong to, become exactly the list: each in one step of its own.",
     table_import_options, 1, 1, command_import, .examples = table_import_examples},
    {"export", "", "write entries as NDJSON, for import",
     "Writes each entry as one line of JSON, with its position, by index and position. Imported "
     "into an empty index or with --replace, the copy serves identical bytes.",
     table_export_options, 0, 0, command_export, .examples = table_export_examples},
    {"scan", "NAME|DIR", "look through a folder of sitemap files once",
     "Verifies each file that is new or has changed since the last scan, and registers what is "
     "good in one step; prints what changed and what was refused, and why. NAME is a [source] of "
     "the configuration; a folder needs its URL.",
     table_scan_options, 1, 1, command_scan, .examples = table_scan_examples},
    {"render", "URL", "print the page that the server would serve",
     "Prints the index page at URL as the server would serve it; with one site a path will do.",
     NULL, 1, 1, command_render, .examples = table_render_examples, .names = CLI_NAMES_INDEX},
    {"token add", "NAME", "make an API token",
     "Makes a token for the API and prints it, this once. Only its hash is kept.",
     table_token_add_options, 1, 1, command_token_add, .examples = table_token_add_examples,
     .topic = "Tokens of the API"},
    {"token list", "", "show the tokens' names",
     "Shows the tokens by name; what they are cannot be shown again.", table_json_options, 0, 0,
     command_token_list, .examples = table_token_list_examples},
    {"token revoke", "NAME", "end a token", "Ends a token: a running server refuses it at once.",
     NULL, 1, 1, command_token_revoke, .examples = table_token_revoke_examples},
    {"healthcheck", "[URL]", "ask a running server whether it is well",
     "Asks the server's /readyz. Exit 0 where it answers 200, else 1: for a container's health "
     "check. Without URL the admin listener of the configuration is asked.",
     NULL, 0, 1, command_healthcheck, .examples = table_healthcheck_examples, .topic = "Care"},
    {"doctor", "URL", "look at the public address as crawlers do",
     "Fetches an index, through whatever proxies stand before it, and checks status, type, "
     "compression, Vary, ETag, conditional requests, robots.txt, the index itself, the robots.txt "
     "of the other hosts that it lists, and a sample of its sitemaps. Prints one line for each "
     "check, with what to do where something is wrong. Exit 1 where something is wrong, 0 "
     "otherwise.",
     table_doctor_options, 1, 1, command_doctor, .examples = table_doctor_examples,
     .names = CLI_NAMES_INDEX},
    {"backup", "FILE", "copy the catalogue, also while it is served",
     "Writes a consistent copy of the catalogue into a new file, also while a server works on it.",
     NULL, 1, 1, command_backup, .examples = table_backup_examples},
    {"restore", "FILE", "put a backup in the catalogue's place",
     "Checks a backup, of this version or an earlier one, and puts it where the catalogue is, "
     "whole "
     "or not at all. Refused while a server or another command works on the catalogue, and where "
     "there is one already, unless --replace. Readers of /v1/changes get 410 once and begin anew.",
     table_restore_options, 1, 1, command_restore, .examples = table_restore_examples},
    {"check", "", "check the catalogue's integrity",
     "Checks that the file is whole, and that counts and pages agree with the entries. Exit 1 "
     "where something is wrong.",
     NULL, 0, 0, command_check, .examples = table_check_examples},
    {"completion", "SHELL", "print completions for bash, zsh or fish",
     "Prints a script by which the shell completes sitemapd's commands and options.", NULL, 1, 1,
     command_completion, .examples = table_completion_examples},
    {0},
};
