/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What only the whole shows. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/config/fixture.h"

#define SITE_A "[site \"a\"]\norigin = https://a.example\n"

static void test_wholes(void **state)
{
    static const struct {
        const char *text, *mistakes;
    } rows[] = {
        {"", ""},
        {SITE_A, ""},
        {"[server]\nlisten = 127.0.0.1:80\n[admin]\nlisten = 127.0.0.1:81\n", ""},
        {"[server]\nlisten = 127.0.0.1:0\n[admin]\nlisten = 127.0.0.1:0\n", ""},
        {"[server]\nlisten = 127.0.0.1:80\n[admin]\nlisten = 127.0.0.2:80\n", ""},
        {"[server]\nlisten = 127.0.0.1:80\n[admin]\nlisten = 127.0.0.1:80\n",
         "4: conflict: the admin listener (127.0.0.1:80) and the public listener (127.0.0.1:80) "
         "use the same address\n"},
        {"[admin]\nlisten = 127.0.0.1:8080\n",
         "2: conflict: the admin listener (127.0.0.1:8080) and the public listener (0.0.0.0:8080) "
         "use the same address\n"},
        {"[limits]\nmax_body = 1M\nmax_bulk = 512K\n", "2: max_body is larger than max_bulk\n"},
        {"[site \"a\"]\n",
         "1: [site \"a\"] needs an origin, such as origin = https://www.example.com\n"},
        {"[source \"a\"]\n",
         "1: [source \"a\"] needs a directory, such as directory = /srv/sitemaps, or an upstream, "
         "such as upstream = https://www.example.com/sitemap_index.xml\n"},
        {"[source \"a\"]\ndirectory = /not/there/yet\n",
         "1: [source \"a\"] needs a url, such as url = https://www.example.com/sitemaps/\n"},
        {"[source \"a\"]\ndirectory = /srv\nupstream = https://a/i.xml\n",
         "1: [source \"a\"] has both a directory and an upstream; remove one\n"},
        {"[source \"a\"]\nupstream = https://a/i.xml\nsplit = yes https://a/b.xml https://a/c.xml\n"
         "split = https://a/b.txt.gz https://a/c.xml https://a/b.txt.xml\n",
         "1: [source \"a\"]: split must be the URL of a sitemap that the upstream lists, such as "
         "https://www.example.com/products.xml, not \"yes\"\n1: [source \"a\"]: split names "
         "\"https://a/b.xml\" and \"https://a/b.txt.gz\", which would be the same urlset; remove "
         "one of "
         "them\n"},
        {"[source \"a\"]\nupstream = https://a/i.xml\nsplit = https://a/b.xml https://a/c.xml\n"
         "[source \"b\"]\nupstream = https://a/j.xml\nsplit = https://a/c.xml.gz https://a/d.xml\n"
         "[source \"c\"]\nupstream = https://a/k.xml\nsplit = https://a/d.xml\n",
         "4: [source \"b\"]: split names \"https://a/c.xml.gz\" and [source \"a\"] "
         "\"https://a/c.xml\", which would be the same urlset; remove one of them\n"
         "7: [source \"c\"]: split names \"https://a/d.xml\" and [source \"b\"] "
         "\"https://a/d.xml\", which would be the same urlset; remove one of them\n"},
        {"[source \"a\"]\ndirectory = /srv\nurl = https://a/\nsplit = yes\n"
         "[source \"b\"]\ndirectory = /opt\nurl = https://b/\nsplit = yes\n",
         ""},
        {"[source \"a\"]\nupstream = https://a/i.xml\nserve = yes\ncheck = no\n",
         "1: [source \"a\"]: serve cannot be combined with check = no: only polls fetch the copies "
         "that are served\n"},
        {"[source \"a\"]\nupstream = https://a/i.xml\nwatch = no\nsettle = 1s\nserve = yes\n",
         "1: [source \"a\"]: watch can only be used with a directory\n"
         "1: [source \"a\"]: settle can only be used with a directory\n"},
        {"[source \"a\"]\ndirectory = /srv\nurl = https://a/\nconnect = 10.0.0.1:80\n",
         "1: [source \"a\"]: connect can only be used with an upstream\n"},
        {"[source \"a\"]\nupstream = https://a/i.xml\npoll = 1h\nconnect = [::1]:443\n", ""},
        {"[source \"a\"]\nupstream = http://a/i.xml\ncredentials_file = /dev/null\n",
         "1: credentials_file: credentials are only sent over https\n"},
        {"[source \"a\"]\nupstream = https://a/i.xml\ncredentials_file = /dev/null\n",
         "1: credentials_file /dev/null is not a file\n"},
        {"[source \"a\"]\nupstream = https://a/i.xml\nca_file = /tmp\n",
         "1: ca_file /tmp is not a file\n"},
        {"[shared]\nca_file = /tmp\n", "2: ca_file /tmp is not a file\n"},
        {"[shared]\nca_file = /proc/nowhere\n",
         "2: ca_file /proc/nowhere cannot be read: No such file or directory\n"},
        {"[shared]\ndatabase = postgresql://x@a,b/c?passfile=/d\nnode = a-1\n", ""},
        {"[shared]\nnode = a/b\n", "2: node a/b: a name may have only A-Z a-z 0-9 . _ -\n"},
        {"[fetch]\nmax_interval = 1h\nmin_interval = 2h\n",
         "3: min_interval is longer than max_interval\n"},
        {"[fetch]\nsource_root = srv\n", "2: source_root srv must be an absolute path\n"},
        {SITE_A "source_root = srv\n", "1: source_root srv must be an absolute path\n"},
        {"\n[source \"a/b\"]\ndirectory = /dev/null\nurl = https://a/\n",
         "2: [source \"a/b\"]: a name may have only A-Z a-z 0-9 . _ -\n2: directory /dev/null is "
         "not a folder\n"},
        {"[source \"a\"]\ndirectory = /not/there/yet\nurl = https://a/\n", ""},
        {SITE_A "[site \"b\"]\norigin = https://b.example\n", ""},
        {SITE_A "[site \"b\"]\norigin = HTTPS://A.example:443/\n",
         "3: origin https://a.example is already that of [site \"a\"]\n"},
        {SITE_A "[site \"b\"]\norigin = http://a.example\n",
         "3: host a.example already answers for [site \"a\"]\n"},
        {SITE_A "host_alias = b.example\n[site \"b\"]\norigin = https://b.example\n",
         "4: host b.example already answers for [site \"a\"]\n"},
        {SITE_A "[site \"b\"]\norigin = https://b.example\nhost_alias = a.example\n",
         "3: host_alias a.example already answers for [site \"a\"]\n"},
        {SITE_A "index = /a.xml\nindex = /a.xml\n", "1: index /a.xml occurs twice\n"},
        {SITE_A "cross_host = a.b\ncross_host = A.b\n", "1: cross_host a.b occurs twice\n"},
        {SITE_A "alias = /sitemap_index.xml -> /b.xml\n",
         "1: alias /sitemap_index.xml is the path of an index\n"},
        {SITE_A "index = /i.xml\nalias = /sitemap_index.xml -> /i.xml\n", ""},
        {SITE_A "alias = /a.xml -> /a.xml\n", "1: alias /a.xml redirects to itself\n"},
        {SITE_A "alias = /a -> /b\nalias = /b -> /a\n",
         "1: alias /a redirects to itself through /b\n"},
        {SITE_A "alias = /in -> /c\nalias = /a -> /b\nalias = /c -> /a\nalias = /b -> /c\n",
         "1: alias /a redirects to itself through /b\n"},
        {SITE_A "alias = /a -> /b\nalias = /b -> /c\nalias = /c -> /sitemap_index.xml\n", ""},
        {SITE_A "alias = /robots.txt -> /a.xml\n",
         "1: alias /robots.txt: set robots = no to leave that path to another server\n"},
        {SITE_A "alias = /a -> /b\nalias = /a -> /c\n", "1: alias /a occurs twice\n"},
        {SITE_A "robots_file = /proc/nowhere\n",
         "1: robots_file /proc/nowhere cannot be read: No such file or directory\n"},
        {SITE_A "robots_file = /tmp\n", "1: robots_file /tmp is not a file\n"},
        {SITE_A "robots_file = /proc/self/exe\n",
         "1: robots_file /proc/self/exe is longer than 500 KiB, and crawlers read no further\n"},
        {SITE_A "robots_file = /proc/self/auxv\n",
         "1: robots_file /proc/self/auxv has a control character: it is not a text\n"},
        {SITE_A "robots = no\nrobots_file = /etc/passwd\n",
         "1: robots_file cannot be combined with robots = no\n"},
        {SITE_A "max_indexes = 1\nindex = /a.xml\nindex = /b.xml\n",
         "1: has more indexes than max_indexes allows\n"},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        struct config *c;
        struct mistake_list mistakes;

        assert_non_null(c = config_new());
        read_text(c, rows[i].text, &mistakes);
        check_mistakes(rows[i].text, &mistakes, "");
        assert_int_equal(config_validate(c, report_mistake, &mistakes), *rows[i].mistakes == '\0');
        check_mistakes(rows[i].text, &mistakes, rows[i].mistakes);
        config_unref(c);
    }
}

/* A file with a secret counts only where nobody else can read it, and its form is known. */
static void test_credentials(void **state)
{
    static const struct {
        const char *text;
        unsigned mode;
        const char *why; /* "": it is good */
    } rows[] = {
        {"basic shop:secret\n", 0600, ""},
        {"Bearer abc\r\n", 0640, ""},
        {"basic shop:secret\n", 0644,
         "permissions are too open: other users can read it; run chmod o= on it"},
        {"basic secret\n", 0600, "must be one line, basic USER:PASSWORD or bearer TOKEN"},
        {"bearer a\nX-Header: b\n", 0600, "must be one line, basic USER:PASSWORD or bearer TOKEN"},
        {"", 0600, "must be one line, basic USER:PASSWORD or bearer TOKEN"},
    };
    char path[SCRATCH_MAX_BYTES], secret[CONFIG_CREDENTIALS_SIZE], why[256];

    int fd = scratch_file(path, "sitemapd-secret");
    struct config_source source = {.credentials_file = path};
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(ftruncate(fd, 0), 0);
        assert_int_equal(pwrite(fd, rows[i].text, strlen(rows[i].text), 0), strlen(rows[i].text));
        assert_int_equal(fchmod(fd, rows[i].mode), 0);
        const char *fault = config_source_credentials(&source, secret, why);
        assert_int_equal(fault == NULL, *rows[i].why == '\0');
        assert_true(fault == NULL || strstr(fault, rows[i].why) != NULL);
        assert_true(fault == NULL || strstr(fault, "secret\n") == NULL);
    }
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wholes),
        cmocka_unit_test(test_credentials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
