/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Videos of a page URL: each field in one form, or refused by name. */
#include "tests/unit/rules/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/rules/page/fragment.h"

#define NEEDED                                                                                     \
    "<video:thumbnail_loc>https://a.example/t.jpg</video:thumbnail_loc><video:title>T</"           \
    "video:title>"                                                                                 \
    "<video:description>D</video:description><video:content_loc>https://a.example/v.mp4"           \
    "</video:content_loc>"
#define NEEDED_JSON                                                                                \
    "{\"thumbnail_loc\":\"https://a.example/t.jpg\",\"title\":\"T\",\"description\":\"D\","        \
    "\"content_loc\":\"https://a.example/v.mp4\""

static struct fragment f;

static enum rule_code add(const char *name, const char *attribute, const char *text)
{
    enum video_field field = video_field_named(name);
    assert_true(field < VIDEO_FIELD_COUNT);
    return fragment_add_video(&f, field, attribute, text, strlen(text));
}

static void begin_needed(bool lenient)
{
    fragment_begin(&f, lenient);
    fragment_begin_video(&f);
    assert_int_equal(add("description", "", "D"), RULE_OK);
    assert_int_equal(add("title", "", "T"), RULE_OK);
    assert_int_equal(add("content_loc", "", "https://A.example/v.mp4"), RULE_OK);
    assert_int_equal(add("thumbnail_loc", "", "https://a.example/t.jpg"), RULE_OK);
}

static void check_json(const char *want)
{
    struct str json = STR_INIT;
    fragment_append_json(&json, str_text(&f.text));
    assert_string_equal(str_text(&json), want);
    str_done(&json);
}

/* A field as it is given, as it stands, and as JSON says it. */
static void test_fields(void **state)
{
    static const struct {
        const char *name, *attribute, *given, *element, *json;
    } rows[] = {
        {"player_loc", "", "https://a.example/p?a=1&b=2",
         "<video:player_loc>https://a.example/p?a=1&amp;b=2</video:player_loc>",
         "\"https://a.example/p?a=1&b=2\""},
        {"duration", "", "28800", "<video:duration>28800</video:duration>", "28800"},
        {"duration", "", "0061.9", "<video:duration>61</video:duration>", "61"},
        {"expiration_date", "", "2099-01-01T10:00Z",
         "<video:expiration_date>2099-01-01T10:00:00Z</video:expiration_date>",
         "\"2099-01-01T10:00:00Z\""},
        {"rating", "", "5.000", "<video:rating>5</video:rating>", "5"},
        {"rating", "", "4.259", "<video:rating>4.25</video:rating>", "4.25"},
        {"rating", "", "0.50", "<video:rating>0.5</video:rating>", "0.5"},
        {"view_count", "", "0", "<video:view_count>0</video:view_count>", "0"},
        {"publication_date", "", "2026-01-31",
         "<video:publication_date>2026-01-31</video:publication_date>", "\"2026-01-31\""},
        {"family_friendly", "", "No", "<video:family_friendly>no</video:family_friendly>", "false"},
        {"requires_subscription", "", "TRUE",
         "<video:requires_subscription>yes</video:requires_subscription>", "true"},
        {"live", "", "yes", "<video:live>yes</video:live>", "true"},
        {"restriction", "ALLOW", " de\n AT,ch ",
         "<video:restriction relationship=\"allow\">DE AT CH</video:restriction>",
         "{\"allow\":[\"DE\",\"AT\",\"CH\"]}"},
        {"platform", "deny", "TV", "<video:platform relationship=\"deny\">tv</video:platform>",
         "{\"deny\":[\"tv\"]}"},
        {"uploader", "", " A & \n B ", "<video:uploader>A &amp; B</video:uploader>",
         "{\"name\":\"A & B\"}"},
        {"uploader", "HTTPS://a.example/?a&b", "A",
         "<video:uploader info=\"https://a.example/?a&amp;b\">A</video:uploader>",
         "{\"name\":\"A\",\"info\":\"https://a.example/?a&b\"}"},
        {"tag", "", "<b>", "<video:tag>&lt;b&gt;</video:tag>", "[\"<b>\"]"},
    };
    char want[1024];
    for (size_t i = 0; i < ROWS(rows); i++) {
        begin_needed(false);
        check_code(rows[i].given, add(rows[i].name, rows[i].attribute, rows[i].given), RULE_OK);
        assert_int_equal(fragment_end_video(&f), RULE_OK);
        assert_int_equal(fragment_end(&f), RULE_OK);
        snprintf(want, sizeof want, "<video:video>" NEEDED "%s</video:video>", rows[i].element);
        assert_string_equal(str_text(&f.text), want);
        assert_int_equal(extensions_of(want), EXTENSION_VIDEOS);
        snprintf(want, sizeof want, ",\"videos\":[" NEEDED_JSON ",\"%s\":%s}]", rows[i].name,
                 rows[i].json);
        check_json(want);
    }
}

/* In the order of the schema whatever the order given; several videos stay in theirs. */
static void test_order(void **state)
{
    begin_needed(false);
    assert_int_equal(add("live", "", "no"), RULE_OK);
    assert_int_equal(add("tag", "", "one"), RULE_OK);
    assert_int_equal(add("duration", "", ""), RULE_OK); /* empty: absent */
    assert_int_equal(add("tag", "", "two"), RULE_OK);
    assert_int_equal(fragment_end_video(&f), RULE_OK);
    fragment_begin_video(&f);
    assert_int_equal(add("player_loc", "", "https://a.example/p"), RULE_OK);
    assert_int_equal(add("title", "", "U"), RULE_OK);
    assert_int_equal(add("description", "", "E"), RULE_OK);
    assert_int_equal(add("thumbnail_loc", "", "https://a.example/u.jpg"), RULE_OK);
    assert_int_equal(fragment_end_video(&f), RULE_OK);
    assert_int_equal(fragment_add_alternate(&f, "de", 2, "https://a.example/", 18), RULE_OK);
    assert_int_equal(fragment_add_image(&f, "https://a.example/i", 19), RULE_OK);
    assert_int_equal(fragment_end(&f), RULE_OK);
    static const char videos[] =
        "<video:video>" NEEDED
        "<video:tag>one</video:tag><video:tag>two</video:tag><video:live>no</video:live>"
        "</video:video><video:video><video:thumbnail_loc>https://a.example/u.jpg"
        "</video:thumbnail_loc><video:title>U</video:title><video:description>E"
        "</video:description><video:player_loc>https://a.example/p</video:player_loc>"
        "</video:video>";
    char want[2048];
    snprintf(want, sizeof want,
             "<image:image><image:loc>https://a.example/i</image:loc></image:image>%s"
             "<xhtml:link rel=\"alternate\" hreflang=\"de\" href=\"https://a.example/\"/>",
             videos);
    assert_string_equal(str_text(&f.text), want);
    struct str part = STR_INIT;
    fragment_append_part(&part, want, EXTENSION_VIDEOS);
    assert_string_equal(str_text(&part), videos);
    str_done(&part);
    check_json(",\"images\":[\"https://a.example/i\"],\"videos\":[" NEEDED_JSON
               ",\"tag\":[\"one\",\"two\"],\"live\":false},"
               "{\"thumbnail_loc\":\"https://a.example/u.jpg\",\"title\":\"U\","
               "\"description\":\"E\",\"player_loc\":\"https://a.example/p\"}],"
               "\"alternates\":{\"de\":\"https://a.example/\"}");
}

/* Refused by code and field; leniently, an invalid field that is not needed costs itself alone. */
static void test_refused(void **state)
{
    static char long_text[2 * 2048 + 3], long_name[257];
    memset(long_name, 'x', 256);
    for (size_t i = 0; i < 2049; i++) /* of two bytes each */
        memcpy(long_text + 2 * i, "\xc3\xa9", 2);
    const struct {
        const char *name, *attribute, *given;
        enum rule_code code;
    } rows[] = {
        {"player_loc", "", "/p", RULE_LOC_RELATIVE},
        {"duration", "", "0", RULE_VIDEO},
        {"duration", "", "28801", RULE_VIDEO},
        {"duration", "", "1:30", RULE_VIDEO},
        {"duration", "", "99999999999999999999", RULE_VIDEO},
        {"view_count", "", "-1", RULE_VIDEO},
        {"view_count", "", "1.", RULE_VIDEO},
        {"rating", "", "5.01", RULE_VIDEO},
        {"rating", "", "10", RULE_VIDEO},
        {"rating", "", "4,5", RULE_VIDEO},
        {"expiration_date", "", "tomorrow", RULE_LASTMOD_INVALID},
        {"publication_date", "", "2026-01", RULE_LASTMOD_INVALID},
        {"publication_date", "", "2026-01-31T10:20", RULE_LASTMOD_NO_ZONE},
        {"family_friendly", "", "maybe", RULE_VIDEO},
        {"restriction", "", "DE", RULE_VIDEO},
        {"restriction", "allow", "DEU", RULE_VIDEO},
        {"restriction", "allow", "D\xc3", RULE_VIDEO},
        {"restriction", "allow", " , ", RULE_VIDEO},
        {"platform", "deny", "watch", RULE_VIDEO},
        {"uploader", "javascript:x", "A", RULE_VIDEO},
        {"uploader", "", long_name, RULE_VIDEO},
        {"tag", "", "a\x01", RULE_VIDEO},
    };
    char field[64];
    for (size_t i = 0; i < ROWS(rows); i++) {
        snprintf(field, sizeof field, "videos[0].%s", rows[i].name);
        begin_needed(false);
        check_code(rows[i].given, add(rows[i].name, rows[i].attribute, rows[i].given),
                   rows[i].code);
        assert_string_equal(f.field, field);
        assert_true(strlen(f.why) > strlen(field) + 5);
        begin_needed(true);
        check_code(rows[i].given, add(rows[i].name, rows[i].attribute, rows[i].given), RULE_OK);
        assert_int_equal(fragment_end_video(&f), RULE_OK);
        if (!video_field_is_droppable(video_field_named(rows[i].name))) {
            assert_int_equal(fragment_end(&f), RULE_OK);
            assert_string_equal(str_text(&f.text), ""); /* it would be shown where it may not */
            continue;
        }
        assert_int_equal(fragment_end(&f), RULE_OK);
        check_set(rows[i].given, f.remarks, RULE_BIT(RULE_EXTENSION_DROPPED));
        assert_string_equal(str_text(&f.text), "<video:video>" NEEDED "</video:video>");
        assert_int_equal(f.loss.lost[2], 0);
        assert_true(f.loss.reasons[0].field_only);
        assert_string_equal(f.loss.reasons[0].field, field);
    }
    fragment_begin(&f, true); /* what is needed costs the video */
    fragment_begin_video(&f);
    assert_int_equal(add("description", "", long_text), RULE_OK);
    assert_int_equal(fragment_end_video(&f), RULE_OK);
    assert_int_equal(fragment_end(&f), RULE_OK);
    assert_string_equal(str_text(&f.text), "");
    assert_int_equal(f.loss.lost[2], 1);
    long_text[2 * 2048] = '\0';
    fragment_begin(&f, false);
    fragment_begin_video(&f);
    assert_int_equal(add("description", "", long_text), RULE_OK);
    assert_int_equal(add("description", "", "D"), RULE_DUPLICATE);
}

/* A text has no NUL behind it. */
static void test_ends(void **state)
{
    static const char given[] = "5.000";
    for (unsigned field = 0; field < VIDEO_FIELD_COUNT; field++)
        for (size_t len = 1; len < sizeof given; len++) {
            char *text = malloc(len);
            memcpy(text, given, len);
            begin_needed(true);
            assert_int_equal(fragment_add_video(&f, (enum video_field)field, "allow", text, len),
                             RULE_OK);
            free(text);
        }
}

static void test_needed(void **state)
{
    static const char *const names[] = {"thumbnail_loc", "title", "description", "content_loc"};
    char field[64];
    for (size_t i = 0; i < ROWS(names); i++) {
        fragment_begin(&f, false);
        fragment_begin_video(&f);
        for (size_t k = 0; k < ROWS(names); k++)
            if (k != i)
                assert_int_equal(add(names[k], "", "https://a.example/"), RULE_OK);
        assert_int_equal(fragment_end_video(&f), RULE_FIELD_MISSING);
        snprintf(field, sizeof field, "videos[0].%s", names[i]);
        assert_string_equal(f.field, field);
    }
}

/* Of too many tags the first stay; of too many videos those that have room. */
static void test_bounds(void **state)
{
    char text[2049], tag[16];
    begin_needed(true);
    for (unsigned i = 0; i < 33; i++) {
        snprintf(tag, sizeof tag, "t%u", i);
        assert_int_equal(add("tag", "", tag), RULE_OK);
    }
    assert_int_equal(fragment_end_video(&f), RULE_OK);
    assert_int_equal(fragment_end(&f), RULE_OK);
    assert_non_null(strstr(str_text(&f.text), "<video:tag>t31</video:tag></video:video>"));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (unsigned lenient = 0; lenient < 2; lenient++) {
        fragment_begin(&f, lenient);
        for (unsigned i = 0; i < 200; i++) {
            fragment_begin_video(&f);
            assert_int_equal(add("title", "", "T"), RULE_OK);
            assert_int_equal(add("description", "", text), RULE_OK);
            assert_int_equal(add("content_loc", "", "https://a.example/v"), RULE_OK);
            assert_int_equal(add("thumbnail_loc", "", "https://a.example/t"), RULE_OK);
            assert_int_equal(fragment_end_video(&f), RULE_OK);
        }
        assert_int_equal(fragment_add_alternate(&f, "de", 2, "https://a.example/", 18), RULE_OK);
        check_code("bound", fragment_end(&f), lenient ? RULE_OK : RULE_EXTENSIONS_LONG);
        assert_string_equal(f.field, "videos");
    }
    assert_in_range(f.text.len, EXTENSIONS_MAX_BYTES - 4096, EXTENSIONS_MAX_BYTES);
    assert_in_range(f.loss.lost[2], 80, 100);
    assert_non_null(strstr(str_text(&f.text), "</video:video><xhtml:link"));
}

/* What is not a video ends where it ceases to be one. */
static void test_no_video(void **state)
{
    static const char *const texts[] = {
        "<video:video>", "<video:video><video:title>T</video:title>",
        "<video:video><video:live>yes</video:live><video:title>T</video:title></video:video>",
        "<video:video><video:tag>a</video:tag><video:tag></video:video>",
        "<video:video><video:uploader info=\">A</video:uploader></video:video>"};
    for (size_t i = 0; i < ROWS(texts); i++) {
        struct str json = STR_INIT;
        fragment_append_json(&json, texts[i]);
        check_text(texts[i], str_text(&json), "");
        str_done(&json);
    }
    struct str json = STR_INIT;
    fragment_append_json(&json, "<video:video><video:duration>07</video:duration><video:platform>tv"
                                "</video:platform></video:video>");
    assert_string_equal(str_text(&json),
                        ",\"videos\":[{\"duration\":\"07\",\"platform\":{\"\":[\"tv\"]}}]");
    str_done(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_needed),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_ends),
        cmocka_unit_test(test_no_video),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fragment_done(&f);
    return failed;
}
