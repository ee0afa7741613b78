/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What the file may hold, and that every mistake is reported with its line. */
#include "tests/unit/config/fixture.h"

#define MUST_RANGE   "must be an IP address or range, such as 10.0.0.1, 10.0.0.0/8 or fd00::/8"
#define MUST_ADDRESS "must be an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080"
#define MUST_SIZE    "must be a size, such as 512K, 64M or 1G"
#define MUST_TIME    "must be a duration, such as 500ms, 30s, 5m or 1h"
#define MUST_COUNT   "must be a number, digits only"
#define MUST_BOOL    "must be yes or no (also on, off, true, false)"
#define MUST_ORIGIN  "must be a scheme and a host and nothing more, such as https://www.example.com"
#define MUST_PATH    "must be a path such as /srv/sitemaps, not empty and not a Windows path"
#define MUST_HOST    "must be a host, such as cdn.example.com"
#define MUST_INDEX   "must be a path that ends in .xml, such as /sitemap_index.xml"
#define MUST_ALIAS   "must be two paths, such as /sitemap.xml -> /sitemap_index.xml"

static void test_unknown_words(void **state)
{
    static const struct file_row rows[] = {
        {"[sever]\nx = y\n", "1: unknown section [sever]; did you mean [server]?\n"},
        {"[]\n", "1: unknown section []\n"},
        {"[source products]\n", "1: a section [source] needs a name: write [source \"name\"]\n"},
        {"[sources \"a\"]\nx = y\n",
         "1: unknown section [sources \"a\"]; did you mean [source]?\n"},
        {"[source \"a\"]\nexlude = x\n",
         "2: unknown setting \"exlude\" in [source]; did you mean \"exclude\"?\n"},
        {"[source \"a\"]\n[site \"a\"]\n[source \"a\"]\n",
         "3: [source \"a\"] occurs twice; first in line 1\n"},
        {"[source \"a\"]\nurl = https://a/x\n",
         "2: url: \"https://a/x\" must be a URL that ends in a slash, such as "
         "https://www.example.com/sitemaps/\n"},
        {"[source \"a\"]\nurl = ftp://a/\nindex = x.xml\nsettle = 10\nserve = 1\n",
         "2: url: \"ftp://a/\" must be a URL that ends in a slash, such as "
         "https://www.example.com/sitemaps/\n3: index: \"x.xml\" must be the path or URL of an "
         "index, such as /sitemap_index.xml\n4: settle: \"10\" " MUST_TIME "\n"
         "5: serve: \"1\" " MUST_BOOL "\n"},
        {"[site]\norigin = x\n", "1: a section [site] needs a name: write [site \"name\"]\n"},
        {"[site main]\n", "1: a section [site] needs a name: write [site \"name\"]\n"},
        {"[site \"\"]\n", "1: a section [site] needs a name: write [site \"name\"]\n"},
        {"[site \"a b\"]\n", "1: a section [site] needs a name: write [site \"name\"]\n"},
        {"[site \"a\"]\n[site \"a\"]\norigin = x\n",
         "2: [site \"a\"] occurs twice; first in line 1\n"},
        {"[server]\nlisten_ = x\n",
         "2: unknown setting \"listen_\" in [server]; did you mean \"listen\"?\n"},
        {"[server]\nmax_body = 4M\n",
         "2: unknown setting \"max_body\" in [server]; it belongs in [limits]\n"},
        {"[server]\ndatabase = c.db\n",
         "2: unknown setting \"database\" in [server]; it belongs in [catalogue]\n"},
        {"[server]\nadmin_listen = 127.0.0.1:1\n",
         "2: unknown setting \"admin_listen\" in [server]; write \"listen\" in section [admin]\n"},
        {"[log]\nwhatever = 4M\n", "2: unknown setting \"whatever\" in [log]\n"},
        {"[site \"a\"]\norigins = https://a\n",
         "2: unknown setting \"origins\" in [site]; did you mean \"origin\"?\n"},
        {"[admin]\ntoken = verysecret\n",
         "2: token: a secret does not belong in this file; set SITEMAPD_TOKEN\n"},
        {"[server]\nsite = https://a\n", "2: site: write a section [site \"name\"]\n"},
    };

    check_rows(rows, ROWS(rows));
}

static void test_bad_values(void **state)
{
    static const struct file_row rows[] = {
        {"[server]\nlisten = 8080\n", "2: listen: \"8080\" " MUST_ADDRESS "\n"},
        {"[server]\nlisten =\n", "2: listen: \"\" " MUST_ADDRESS "\n"},
        {"[server]\nthreads = many\n", "2: threads: \"many\" " MUST_COUNT "\n"},
        {"[server]\nthreads = 257\n", "2: threads: \"257\" must be from 0 to 256\n"},
        {"[server]\nmax_connections = 0\n",
         "2: max_connections: \"0\" must be from 1 to 1000000\n"},
        {"[server]\nmax_connections = 4294967297\n",
         "2: max_connections: \"4294967297\" must be from 1 to 1000000\n"},
        {"[server]\nheader_timeout = 10\n", "2: header_timeout: \"10\" " MUST_TIME "\n"},
        {"[server]\nheader_timeout = 2d\n", "2: header_timeout: \"2d\" must be from 100ms to 1d\n"},
        {"[server]\nstrict_host = 1\n", "2: strict_host: \"1\" " MUST_BOOL "\n"},
        {"[server]\ncache_control = \xc3\xa9\n",
         "2: cache_control: \"\xc3\xa9\" must be visible ASCII characters and spaces\n"},
        {"[server]\ntrusted_proxies = 10.0.0.1 proxy\n",
         "2: trusted_proxies: \"proxy\" " MUST_RANGE "\n"},
        {"[server]\ntrusted_proxies =\n", "2: trusted_proxies: \"\" " MUST_RANGE "\n"},
        {"[server]\ntrusted_proxies = 10.0.0.0/8\ntrusted_proxies = fd00::/129 10.0.0.0/33\n",
         "3: trusted_proxies: \"fd00::/129\" must have a prefix of at most 128 bits\n"
         "3: trusted_proxies: \"10.0.0.0/33\" must have a prefix of at most 32 bits\n"},
        {"[server]\ntrusted_proxies = 172.18.0.1/16\n",
         "2: trusted_proxies: \"172.18.0.1/16\" has bits set after its prefix; write "
         "172.18.0.0/16 for the range, or the address alone\n"},
        {"[admin]\nallowed_hosts = a/b\n", "2: allowed_hosts: \"a/b\" " MUST_HOST "\n"},
        {"[catalogue]\ndatabase =\n", "2: database: \"\" " MUST_PATH "\n"},
        {"[catalogue]\ndatabase = C:\\maps\\c.db\n",
         "2: database: \"C:\\maps\\c.db\" " MUST_PATH "\n"},
        {"[catalogue]\ndatabase = d:/c.db\n", "2: database: \"d:/c.db\" " MUST_PATH "\n"},
        {"[catalogue]\ndatabase = \\\\nas\\maps\n",
         "2: database: \"\\\\nas\\maps\" " MUST_PATH "\n"},
        {"[catalogue]\ndatabase = c:d\n", ""},
        {"[catalogue]\nshrink_guard = 101%\n",
         "2: shrink_guard: \"101%\" must be from 0 to 100%\n"},
        {"[catalogue]\nshrink_guard = a%\n",
         "2: shrink_guard: \"a%\" must be a percentage, such as 30%\n"},
        {"[cache]\nsnapshot_budget = lots\n", "2: snapshot_budget: \"lots\" " MUST_SIZE "\n"},
        {"[cache]\nsnapshot_budget = 1K\n", "2: snapshot_budget: \"1K\" must be from 1M to 1T\n"},
        {"[cache]\npage_store = some\n", "2: page_store: \"some\" " MUST_SIZE "\n"},
        {"[cache]\npage_store = 0\n", ""},
        {"[cache]\ncompression_level = 0\n", "2: compression_level: \"0\" must be from 1 to 9\n"},
        {"[limits]\nmax_bulk = 99999999999999999999\n",
         "2: max_bulk: \"99999999999999999999\" " MUST_SIZE "\n"},
        {"[log]\nlevel = loud\n", "2: level: \"loud\" must be one of: error warning info debug\n"},
        {"[log]\nlevel = info debug\n",
         "2: level: \"info debug\" must be one of: error warning info debug\n"},
        {"[site \"a\"]\norigin = a.example\n", "2: origin: \"a.example\" " MUST_ORIGIN "\n"},
        {"[site \"a\"]\nindex = sitemap.xml\n", "2: index: \"sitemap.xml\" " MUST_INDEX "\n"},
        {"[site \"a\"]\nindex = /.xm\n", "2: index: \"/.xm\" " MUST_INDEX "\n"},
        {"[site \"a\"]\ncross_host = https://a\n", "2: cross_host: \"https://a\" " MUST_HOST "\n"},
        {"[site \"a\"]\nalias = /a /b\n", "2: alias: \"/a /b\" " MUST_ALIAS "\n"},
        {"[site \"a\"]\nalias = -> /b\n", "2: alias: \"-> /b\" " MUST_ALIAS "\n"},
        {"[site \"a\"]\nalias = /a ->\n", "2: alias: \"/a ->\" " MUST_ALIAS "\n"},
        {"[site \"a\"]\nmax_indexes = 0\n", "2: max_indexes: \"0\" must be from 1 to 85899\n"},
        {"[site \"a\"]\nmax_indexes = 85900\n",
         "2: max_indexes: \"85900\" must be from 1 to 85899\n"},
        {"[site \"a\"]\norigin = https://a\norigin = https://b\n",
         "3: origin is set twice; first in line 2\n"},
        {"[site \"a\"]\npage_pattern = {n}\n",
         "2: page_pattern: \"{n}\" must contain {stem} first, then {n}, then {suffix} last, such "
         "as {stem}-{n}{suffix}\n"},
    };

    check_rows(rows, ROWS(rows));
}

/* Every mistake is reported, each with its own line; what is right beside them counts. */
static void test_all_mistakes_are_reported(void **state)
{
    struct config *c;
    struct mistake_list mistakes;

    assert_non_null(c = config_new());
    read_text(c,
              "[server]\n"
              "listen = nowhere\n"
              "threads = 3\n"
              "\n"
              "[nothing]\n"
              "threads = nine\n"
              "; a comment\n"
              "[log]\n"
              "level = loud\n"
              "format = json\n",
              &mistakes);
    check_mistakes("all", &mistakes,
                   "2: listen: \"nowhere\" " MUST_ADDRESS "\n"
                   "5: unknown section [nothing]\n"
                   "9: level: \"loud\" must be one of: error warning info debug\n");
    assert_int_equal(c->threads, 3);
    assert_string_equal(c->listen, "0.0.0.0:8080");
    assert_string_equal(c->log_format, "json");
    config_unref(c);
}

static void test_files_that_cannot_be_read(void **state)
{
    struct config *c;
    struct mistake_list mistakes = {0};

    assert_non_null(c = config_new());
    assert_false(config_read_file(c, "/proc/nowhere/sitemapd.conf", report_mistake, &mistakes));
    check_mistakes("absent", &mistakes, "0: cannot be read: No such file or directory\n");
    memset(&mistakes, 0, sizeof mistakes);
    assert_false(config_read_file(c, "/tmp", report_mistake, &mistakes));
    check_mistakes("a folder", &mistakes, "0: cannot be read: Is a directory\n");
    memset(&mistakes, 0, sizeof mistakes);
    assert_false(config_read_file(c, "/dev/zero", report_mistake, &mistakes));
    check_mistakes("endless", &mistakes, "1: the file is larger than 1048576 bytes\n");
    config_unref(c);
}

static void test_a_site(void **state)
{
    struct config *c;
    struct mistake_list mistakes;
    const struct config_site *site;

    assert_non_null(c = config_new());
    read_text(c,
              "[site \"main\"]\n"
              "origin = https://www.example.com\n"
              "index = /sitemap_index.xml\n"
              "index = /shop/sitemap_index.xml\n"
              "page_pattern = {stem}.{n}{suffix}\n"
              "cross_host = cdn.example.com\n"
              "cross_host = img.example.com:8443\n"
              "host_alias = example.com\n"
              "alias = /sitemap.xml -> /sitemap_index.xml\n"
              "alias = /old.xml->/new.xml\n"
              "robots = off\n"
              "robots_file = /etc/robots.txt\n"
              "max_indexes = 20\n"
              "[site \"other\"]\n"
              "origin = http://other.example:8080\n",
              &mistakes);
    check_mistakes("site", &mistakes, "");
    assert_int_equal(c->site_count, 2);
    site = &c->sites[0];
    assert_string_equal(site->named.name, "main");
    assert_string_equal(site->origin, "https://www.example.com");
    assert_int_equal(site->named.line, 1);
    assert_int_equal(site->index_count, 2);
    assert_string_equal(site->indexes[1], "/shop/sitemap_index.xml");
    assert_string_equal(site->page_pattern, "{stem}.{n}{suffix}");
    assert_int_equal(site->cross_host_count, 2);
    assert_string_equal(site->cross_hosts[1], "img.example.com:8443");
    assert_int_equal(site->host_alias_count, 1);
    assert_int_equal(site->alias_count, 2);
    assert_string_equal(site->aliases[0].from, "/sitemap.xml");
    assert_string_equal(site->aliases[0].to, "/sitemap_index.xml");
    assert_string_equal(site->aliases[1].from, "/old.xml");
    assert_string_equal(site->aliases[1].to, "/new.xml");
    assert_false(site->robots);
    assert_string_equal(site->robots_file, "/etc/robots.txt");
    assert_int_equal(site->max_indexes, 20);
    site = &c->sites[1];
    assert_int_equal(site->index_count, 0);
    assert_true(site->robots);
    assert_null(site->robots_file);
    assert_null(site->page_pattern);
    assert_int_equal(site->max_indexes, 500);
    config_unref(c);
}

static void test_sources(void **state)
{
    struct config *c;
    struct mistake_list mistakes;
    const struct config_source *source;

    assert_non_null(c = config_new());
    read_text(c,
              "[source \"products\"]\n"
              "directory = /srv/sitemaps\n"
              "url = https://www.example.com/sitemaps/\n"
              "index = /sitemap_index.xml\n"
              "pattern = *.xml *.xml.gz\n"
              "pattern = news/*.txt\n"
              "exclude = drafts/*\n"
              "watch = no\n"
              "rescan = 5m\n"
              "settle = 0\n"
              "serve = yes\n"
              "[source \"plain\"]\n"
              "directory = x\n"
              "url = http://a.example/\n",
              &mistakes);
    check_mistakes("source", &mistakes, "");
    assert_int_equal(c->source_count, 2);
    source = &c->sources[0];
    assert_string_equal(source->named.name, "products");
    assert_string_equal(source->is.directory, "/srv/sitemaps");
    assert_string_equal(source->is.url, "https://www.example.com/sitemaps/");
    assert_string_equal(source->is.index, "/sitemap_index.xml");
    assert_int_equal(source->pattern_count, 3);
    assert_string_equal(source->is.patterns[1], "*.xml.gz");
    assert_string_equal(source->is.patterns[2], "news/*.txt");
    assert_int_equal(source->exclude_count, 1);
    assert_false(source->is.watch);
    assert_int_equal(source->is.rescan_ms, 300000);
    assert_int_equal(source->is.settle_ms, 0);
    assert_true(source->is.serve);
    source = &c->sources[1];
    assert_int_equal(source->pattern_count, 0);
    assert_null(source->is.index);
    assert_true(source->is.watch);
    assert_int_equal(source->is.rescan_ms, 3600000);
    assert_int_equal(source->is.settle_ms, 10000);
    assert_false(source->is.serve);
    config_unref(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_words),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_all_mistakes_are_reported),
        cmocka_unit_test(test_files_that_cannot_be_read),
        cmocka_unit_test(test_a_site),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
