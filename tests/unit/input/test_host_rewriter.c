/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include "server/input/host_rewriter.h"

#include <strings.h>

#include "server/base/str.h"
#include "tests/unit/input/check.h"

#define MAP                                                                                        \
    "https://cms.example.com https://www.example.com\nhttp://cms.example.com "                     \
    "https://www.example.com\nhttps://cms.example.com:8443 https://a.example"

static bool take(void *context, const char *bytes, size_t len)
{
    str_append(context, bytes, len);
    return true;
}

/* Fed in pieces of each length up to 9, and whole. */
static void check(const char *in, const char *expect)
{
    char why[128];
    struct host_map *map = host_map_new(MAP, why, sizeof why);
    assert_non_null(map);
    size_t len = strlen(in);
    for (size_t piece = 1; piece <= 10; piece++) {
        struct str out = STR_INIT;
        struct host_rewriter *w = host_rewriter_new(map, take, &out);
        size_t step = piece == 10 ? len : piece;
        for (size_t at = 0; at < len; at += step)
            assert_true(host_rewriter_feed(w, in + at, at + step < len ? step : len - at));
        assert_true(host_rewriter_finish(w));
        assert_string_equal(str_text(&out), expect);
        str_done(&out);
        host_rewriter_free(w);
    }
    host_map_free(map);
}

static void same(const char *in)
{
    check(in, in);
}

static void test_elements(void **state)
{
    check("<urlset><url><loc>https://cms.example.com/a</loc></url></urlset>",
          "<urlset><url><loc>https://www.example.com/a</loc></url></urlset>");
    check("<loc>\n  HTTPS://CMS.Example.com/a</loc>", "<loc>\n  https://www.example.com/a</loc>");
    check("<loc>http://cms.example.com</loc>", "<loc>https://www.example.com</loc>");
    check("<loc>https://cms.example.com?p=1</loc>", "<loc>https://www.example.com?p=1</loc>");
    check("<loc><![CDATA[ https://cms.example.com/a ]]></loc>",
          "<loc><![CDATA[ https://www.example.com/a ]]></loc>");
    check("<loc><![CDATA[https://cms.example.com]]></loc>",
          "<loc><![CDATA[https://www.example.com]]></loc>");
    check("<loc><!-- > --><?x > ?>https://cms.example.com/a</loc>",
          "<loc><!-- > --><?x > ?>https://www.example.com/a</loc>");
    check("<s:loc a='>'>https://cms.example.com/a</s:loc>",
          "<s:loc a='>'>https://www.example.com/a</s:loc>");
    check("<image:loc >https://cms.example.com/a.png</image:loc>",
          "<image:loc >https://www.example.com/a.png</image:loc>");
    check("<video:thumbnail_loc>https://cms.example.com/t</video:thumbnail_loc>"
          "<video:player_loc autoplay=\"x\">https://cms.example.com/p</video:player_loc>",
          "<video:thumbnail_loc>https://www.example.com/t</video:thumbnail_loc>"
          "<video:player_loc autoplay=\"x\">https://www.example.com/p</video:player_loc>");
    check("<loc>https://cms.example.com:8443/a</loc>", "<loc>https://a.example/a</loc>");
}

static void test_attributes(void **state)
{
    check("<xhtml:link rel=\"alternate\" hreflang='de' href=\"https://cms.example.com/de\"/>",
          "<xhtml:link rel=\"alternate\" hreflang='de' href=\"https://www.example.com/de\"/>");
    check("<link href = ' https://cms.example.com' />",
          "<link href = ' https://www.example.com' />");
    check("<link>https://cms.example.com/post</link>", "<link>https://www.example.com/post</link>");
    same("<a href=\"https://cms.example.com/\"/>");
    same("<link title=\"https://cms.example.com/\"/>");
    same("<link title='href=\"' x=\"https://cms.example.com/\"/>");
}

static void test_what_stays(void **state)
{
    same("<loc>https://cms.example.community/a</loc>");
    same("<loc>https://cms.example.com.evil.example/a</loc>");
    same("<loc>https://cms.example.com@evil.example/a</loc>");
    same("<loc>https://cms.example.com:444/a</loc>");
    same("<loc>https://www.example.com/?u=https://cms.example.com/</loc>");
    same("<loc> x https://cms.example.com/</loc>");
    same("<loc/>https://cms.example.com/");
    same("<loc></loc>https://cms.example.com/");
    same("<location>https://cms.example.com/</location>");
    same("<image:title>https://cms.example.com/</image:title>");
    same("<!-- <loc>https://cms.example.com/</loc> -->");
    same("<!DOCTYPE x><loc");
    same("<loc>https://cms.exam");
    same("<![CDATA[<loc>https://cms.example.com/]]>");
    same("");
}

static void test_lists(void **state)
{
    check("https://cms.example.com/a\n\n https://cms.example.com/b\r\nhttps://x.example/"
          "https://cms.example.com/\nhttps://cms.example.com",
          "https://www.example.com/a\n\n https://www.example.com/b\r\nhttps://x.example/"
          "https://cms.example.com/\nhttps://www.example.com");
    check("\xef\xbb\xbfhttps://cms.example.com/a", "\xef\xbb\xbfhttps://www.example.com/a");
}

/* An address is written in its normal form, which may be longer than what it was given as. */
static void test_origins_that_become_longer(void **state)
{
    char text[4096] = "", why[128];
    size_t len = 0;
    for (int i = 0; i < 32; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "http://[::ffff:1:%x] http://[::1:%x] ", i + 1, i + 1);
    struct host_map *map = host_map_new(text, why, sizeof why);
    assert_non_null(map);
    assert_int_equal(map->count, 32);
    for (size_t i = 0; i < map->count; i++) {
        assert_int_equal(strlen(map->pairs[i].from), map->pairs[i].from_len);
        assert_int_equal(strlen(map->pairs[i].to), map->pairs[i].to_len);
    }
    assert_true(map->pairs[0].to_len > strlen("http://[::1:1]"));
    host_map_free(map);
}

/* Of pieces drawn at random the output is the same however they are cut, and the map's first
 * origins aside it is the input. */
static void test_any_pieces(void **state)
{
    static const char *const pieces[] = {
        "<",
        ">",
        "</",
        "/>",
        "<loc>",
        "</loc>",
        "<link ",
        "href=",
        "\"",
        "'",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?",
        "?>",
        " ",
        "\n",
        ":",
        "/",
        "x",
        "loc",
        "_loc",
        "https://",
        "https://cms.example.com",
        "https://cms.example.com:8443",
        "http://cms.exa",
        "mple.com",
        "&amp;",
        "\xef\xbb\xbf",
        "]",
        "=",
        "!",
        "HTTPS://CMS.EXAMPLE.COM",
        "<!DOCTYPE",
        "a",
        "-",
    };
    char why[128];
    struct host_map *map = host_map_new(MAP, why, sizeof why);
    uint64_t seed = 88172645463325252u;
    for (size_t round = 0; round < 20000; round++) {
        struct str in = STR_INIT, whole = STR_INIT, cut = STR_INIT;
        for (size_t i = 0; i < 24; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            str_append_text(&in, pieces[seed % (sizeof pieces / sizeof *pieces)]);
        }
        struct host_rewriter *w = host_rewriter_new(map, take, &whole);
        assert_true(host_rewriter_feed(w, in.data, in.len) && host_rewriter_finish(w));
        host_rewriter_free(w);
        w = host_rewriter_new(map, take, &cut);
        for (size_t at = 0, step; at < in.len; at += step) {
            step = 1 + (seed >> 20) % 5;
            step = at + step < in.len ? step : in.len - at;
            assert_true(host_rewriter_feed(w, in.data + at, step));
        }
        assert_true(host_rewriter_finish(w));
        host_rewriter_free(w);
        if (strcmp(str_text(&whole), str_text(&cut)) != 0)
            fail_msg("in:    %s\nwhole: %s\ncut:   %s", in.data, str_text(&whole), str_text(&cut));
        size_t a = 0, b = 0;
        while (a < in.len && b < whole.len) {
            static const char *const changes[][2] = {
                {"https://cms.example.com:8443", "https://a.example"},
                {"https://cms.example.com", "https://www.example.com"},
                {"http://cms.example.com", "https://www.example.com"}};
            if (in.data[a] == whole.data[b] && strncasecmp(in.data + a, "http", 4) != 0) {
                a++, b++;
                continue;
            }
            size_t i = 0;
            for (; i < 3; i++)
                if (strncasecmp(in.data + a, changes[i][0], strlen(changes[i][0])) == 0 &&
                    strncmp(whole.data + b, changes[i][1], strlen(changes[i][1])) == 0)
                    break;
            if (i == 3 && in.data[a] != whole.data[b])
                fail_msg("in: %s\nout: %s", in.data, whole.data);
            a += i < 3 ? strlen(changes[i][0]) : 1;
            b += i < 3 ? strlen(changes[i][1]) : 1;
        }
        assert_true(a == in.len && b == whole.len);
        str_done(&in);
        str_done(&whole);
        str_done(&cut);
    }
    host_map_free(map);
}

static void test_maps(void **state)
{
    static const char *const wrong[] = {
        "https://a.example",
        "https://a.example https://a.example",
        "https://a.example/x https://b.example",
        "https://a.example https://b.example https://a.example https://c.example",
        "ftp://a.example https://b.example",
    };
    char why[128], many[4096] = "";
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(host_map_new(wrong[i], why, sizeof why));
    for (size_t i = 0; i < HOST_MAP_MAX + 1; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many),
                 "https://a%zu.example https://b.example ", i);
    assert_null(host_map_new(many, why, sizeof why));
    assert_string_equal(why, "names more than 32 pairs of origins");
    *strrchr(many, 'a') = '\0';
    *strstr(many, "https://a32") = '\0';
    struct host_map *map = host_map_new(many, why, sizeof why);
    assert_int_equal(map->count, HOST_MAP_MAX);
    host_map_free(map);

    struct url url, upstream, out;
    map = host_map_new(MAP, why, sizeof why);
    assert_int_equal(url_parse("http://cms.example.com/a?b", 26, &url, NULL), RULE_OK);
    assert_int_equal(url_parse("https://cms.example.com/list.xml", 32, &upstream, NULL), RULE_OK);
    assert_true(host_map_url(map, &url, &out));
    assert_string_equal(out.text, "https://www.example.com/a?b");
    url = out;
    assert_true(host_map_reverse(map, &upstream, &url, &out));
    assert_string_equal(out.text, "https://cms.example.com/a?b");
    assert_false(host_map_url(map, &url, &out));
    assert_false(host_map_url(NULL, &url, &out));
    assert_string_equal(out.text, url.text);
    host_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),   cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_what_stays), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_maps),       cmocka_unit_test(test_origins_that_become_longer),
        cmocka_unit_test(test_any_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
