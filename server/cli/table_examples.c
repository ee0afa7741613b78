/* Commands as people type them, each with what it is for. A test runs those that a machine can. */
#include "server/cli/table_parts.h"

const struct cli_example table_serve_examples[] = {
    {"Serve a folder of sitemap files; no other set-up is needed:",
     "sitemapd serve --site https://www.example.com --source /srv/sitemaps"},
    {"Behind a reverse proxy on this machine:",
     "sitemapd serve --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:8081"},
    {"With a configuration file:", "sitemapd serve --config /etc/sitemapd/sitemapd.conf"},
    {0},
};

const struct cli_example table_check_config_examples[] = {
    {"The file that serve would read:", "sitemapd check-config"},
    {"Another one, before it is put in place:", "sitemapd check-config ./sitemapd.conf"},
    {0},
};

const struct cli_example table_site_add_examples[] = {
    {"A site with its index:", "sitemapd site add https://www.example.com"},
    {"Its sitemap files lie on a CDN:",
     "sitemapd site add https://www.example.com --cross-host cdn.example.com"},
    {"An index of another name:", "sitemapd site add https://www.example.com --no-index\n"
                                  "sitemapd index add https://www.example.com/sitemaps.xml"},
    {0},
};

const struct cli_example table_site_update_examples[] = {
    {"Requests also come under the bare name:",
     "sitemapd site update https://www.example.com --host-alias example.com"},
    {"No cross hosts any more:", "sitemapd site update https://www.example.com --no-cross-hosts"},
    {0},
};

const struct cli_example table_site_list_examples[] = {
    {"For people:", "sitemapd site list"},
    {"For scripts, one origin a line:", "sitemapd site list --json | jq -r .origin"},
    {0},
};

const struct cli_example table_site_remove_examples[] = {
    {"A site whose indexes are empty:", "sitemapd site remove https://www.example.com"},
    {"A site with 120 entries:", "sitemapd site remove https://www.example.com --max-removed 120"},
    {0},
};

const struct cli_example table_index_add_examples[] = {
    {"An index for a part of the site:",
     "sitemapd index add https://www.example.com/shop/sitemap_index.xml"},
    {"Further pages as index_2.xml, index_3.xml:",
     "sitemapd index add https://www.example.com/index.xml --pattern '{stem}_{n}{suffix}'"},
    {0},
};

const struct cli_example table_index_list_examples[] = {
    {"For people:", "sitemapd index list"},
    {"Which index has the most entries:",
     "sitemapd index list --json | jq -s 'max_by(.entries).url'"},
    {0},
};

const struct cli_example table_index_remove_examples[] = {
    {"An empty index:", "sitemapd index remove https://www.example.com/shop/sitemap_index.xml"},
    {"An index with 40 entries; with one site its path will do:",
     "sitemapd index remove /shop/sitemap_index.xml --max-removed 40"},
    {0},
};

const struct cli_example table_add_examples[] = {
    {"A new file, or one that has changed:",
     "sitemapd add https://www.example.com/sitemap-news.xml --lastmod 2026-11-21T08:30:00Z"},
    {"The date is now, but only where the content is another:",
     "sitemapd add https://www.example.com/sitemap-news.xml \\\n"
     "    --lastmod \"$(date -u +%FT%TZ)\" --digest \"$(sha256sum <news.xml | cut -c1-64)\""},
    {0},
};

const struct cli_example table_remove_examples[] = {
    {"One sitemap:", "sitemapd remove https://www.example.com/sitemap-news.xml"},
    {0},
};

const struct cli_example table_list_examples[] = {
    {"All of them:", "sitemapd list"},
    {"Those below one folder:", "sitemapd list --prefix https://www.example.com/shop/"},
    {"Those without a date:", "sitemapd list --json | jq -r 'select(.lastmod == null) | .loc'"},
    {0},
};

const struct cli_example table_import_examples[] = {
    {"Take over an index that was built by something else:",
     "sitemapd import old/sitemap_index.xml.gz"},
    {"See first what would come of it:",
     "curl -s https://www.example.com/sitemap_index.xml | sitemapd import --dry-run -"},
    {"Make an index exactly this list:",
     "sitemapd import --replace --index /sitemap_index.xml list.txt"},
    {0},
};

const struct cli_example table_export_examples[] = {
    {"All entries:", "sitemapd export > entries.ndjson"},
    {"Into another catalogue, which then serves identical bytes:",
     "sitemapd export | sitemapd import --replace --database copy.db -"},
    {0},
};

const struct cli_example table_scan_examples[] = {
    {"What a source of the configuration would change:", "sitemapd scan products --dry-run"},
    {"A folder, once, without a server:",
     "sitemapd scan /srv/sitemaps --url https://www.example.com/sitemaps/"},
    {"Twelve files were removed on purpose:", "sitemapd scan products --max-removed 12"},
    {0},
};

const struct cli_example table_render_examples[] = {
    {"Look at a page:", "sitemapd render https://www.example.com/sitemap_index.xml"},
    {"Check it against another tool; with one site the path will do:",
     "sitemapd render /sitemap_index.xml | xmllint --noout -"},
    {0},
};

const struct cli_example table_token_add_examples[] = {
    {"For a deployment, good for one site:",
     "TOKEN=$(sitemapd token add deploy --site https://www.example.com)"},
    {0},
};

const struct cli_example table_token_list_examples[] = {
    {"For people:", "sitemapd token list"},
    {"For scripts:", "sitemapd token list --json"},
    {0},
};

const struct cli_example table_token_revoke_examples[] = {
    {"A token that leaked:", "sitemapd token revoke deploy"},
    {0},
};

const struct cli_example table_healthcheck_examples[] = {
    {"The server of this configuration:", "sitemapd healthcheck"},
    {"Another one:", "sitemapd healthcheck http://127.0.0.1:8081"},
    {0},
};

const struct cli_example table_doctor_examples[] = {
    {"As crawlers see it:", "sitemapd doctor https://www.example.com/sitemap_index.xml"},
    {"The index that the site's robots.txt names, with 50 of its sitemaps:",
     "sitemapd doctor https://www.example.com --sample 50"},
    {"The server itself, past CDN and DNS:",
     "sitemapd doctor http://www.example.com/sitemap_index.xml --connect 127.0.0.1:8080"},
    {"What is wrong, for a script:", "sitemapd doctor https://www.example.com --json | jq -r "
                                     "'select(.level == \"wrong\") | .what'"},
    {0},
};

const struct cli_example table_backup_examples[] = {
    {"Once a day, from cron:", "sitemapd backup \"/var/backups/catalogue-$(date +%F).db\""},
    {0},
};

const struct cli_example table_restore_examples[] = {
    {"On a new machine:", "sitemapd restore catalogue-2026-11-21.db"},
    {"Back to yesterday's state, keeping today's aside:",
     "systemctl stop sitemapd\n"
     "sitemapd backup before.db\n"
     "sitemapd restore catalogue-2026-11-21.db --replace\n"
     "systemctl start sitemapd"},
    {0},
};

const struct cli_example table_check_examples[] = {
    {"The catalogue of this configuration:", "sitemapd check"},
    {"A backup:", "sitemapd check --database /var/backups/catalogue-2026-11-21.db"},
    {0},
};

const struct cli_example table_completion_examples[] = {
    {"bash, for this shell; the package installs it for all:",
     "source <(sitemapd completion bash)"},
    {"zsh:", "sitemapd completion zsh > \"${fpath[1]}/_sitemapd\""},
    {"fish:", "sitemapd completion fish > ~/.config/fish/completions/sitemapd.fish"},
    {0},
};
