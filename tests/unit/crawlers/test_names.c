/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Who a User-Agent is: fields as crawlers, browsers and tools send them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/crawlers/names.h"

#define CHROME "AppleWebKit/537.36 (KHTML, like Gecko"
#define PHONE                                                                                      \
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) AppleWebKit/537.36 (KHTML, like "   \
    "Gecko) Chrome/126.0.6478.126 Mobile Safari/537.36 "

static const struct {
    const char *name, *field;
} fields[] = {
    {"googlebot", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
    {"googlebot", "Googlebot/2.1 (+http://www.google.com/bot.html)"},
    {"googlebot", PHONE "(compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
    {"googlebot", "Mozilla/5.0 " CHROME "; compatible; Googlebot/2.1; "
                  "+http://www.google.com/bot.html) Chrome/126.0.0.0 Safari/537.36"},
    {"googlebot", "Googlebot-Image/1.0"},
    {"googlebot", "Googlebot-Video/1.0"},
    {"googlebot", "Googlebot-News"},
    {"googlebot", "Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)"},
    {"googlebot", PHONE "(compatible; Google-InspectionTool/1.0;)"},
    {"bingbot", "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
    {"bingbot", "Mozilla/5.0 " CHROME "; compatible; bingbot/2.0; "
                "+http://www.bing.com/bingbot.htm) Chrome/116.0.1938.76 Safari/537.36"},
    {"bingbot", PHONE " (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)"},
    {"yandexbot", "Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)"},
    {"yandexbot",
     "Mozilla/5.0 (compatible; YandexBot/3.0; MirrorDetector; +http://yandex.com/bots)"},
    {"baiduspider",
     "Mozilla/5.0 (compatible; Baiduspider/2.0; +http://www.baidu.com/search/spider.html)"},
    {"baiduspider", "Mozilla/5.0 (compatible; Baiduspider-render/2.0; "
                    "+http://www.baidu.com/search/spider.html)"},
    {"duckduckbot", "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)"},
    {"duckduckbot",
     "Mozilla/5.0 (compatible; DuckDuckBot-Https/1.1; https://duckduckgo.com/duckduckbot)"},
    {"applebot",
     "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like "
     "Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; "
     "+http://www.apple.com/go/applebot)"},
    {"seznambot", "Mozilla/5.0 (compatible; SeznamBot/4.0; "
                  "+https://o-seznam.cz/napoveda/vyhledavani/en/seznambot-crawler/)"},
    {"yeti", "Mozilla/5.0 (compatible; Yeti/1.1; +https://naver.me/spd)"},
    {"petalbot",
     "Mozilla/5.0 (compatible;PetalBot;+https://webmaster.petalsearch.com/site/petalbot)"},
    {"petalbot", "Mozilla/5.0 (Linux; Android 7.0;) " CHROME ") Mobile Safari/537.36 "
                 "(compatible;PetalBot;+https://webmaster.petalsearch.com/site/petalbot)"},
    {"gptbot", "Mozilla/5.0 " CHROME "; compatible; GPTBot/1.2; +https://openai.com/gptbot)"},
    {"oai-searchbot", "Mozilla/5.0 " CHROME "; compatible; OAI-SearchBot/1.0; "
                      "+https://openai.com/searchbot)"},
    {"claudebot", "Mozilla/5.0 " CHROME "; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)"},
    {"claude-searchbot", "Mozilla/5.0 " CHROME "; compatible; Claude-SearchBot/1.0; "
                         "+https://www.anthropic.com)"},
    {"claude-user",
     "Mozilla/5.0 " CHROME "; compatible; Claude-User/1.0; +Claude-User@anthropic.com)"},
    {"chatgpt-user",
     "Mozilla/5.0 " CHROME "; compatible; ChatGPT-User/1.0; +https://openai.com/bot"},
    {"googleother", "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) " CHROME
                    ") Mobile Safari/537.36 (compatible; GoogleOther)"},
    {"googleother", "GoogleOther-Image/1.0"},
    {"google-cloudvertexbot", "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) " CHROME
                              ") Mobile Safari/537.36 (compatible; Google-CloudVertexBot; "
                              "+https://cloud.google.com/enterprise-search)"},
    {"adsbot-google", "AdsBot-Google (+http://www.google.com/adsbot.html)"},
    {"adsbot-google", "Mediapartners-Google"},
    {"feedfetcher-google", "FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)"},
    {"google-agent", "Mozilla/5.0 " CHROME "; compatible; Google-Agent)"},
    {"duckassistbot", "DuckAssistBot/1.2; (+http://duckduckgo.com/duckassistbot.html)"},
    {"mistralai-user", "Mozilla/5.0 " CHROME "; compatible; MistralAI-User/1.0; "
                       "+https://docs.mistral.ai/robots)"},
    {"perplexity-user", "Mozilla/5.0 " CHROME "; compatible; Perplexity-User/1.0; "
                        "+https://perplexity.ai/perplexity-user)"},
    {"perplexitybot", "Mozilla/5.0 " CHROME "; compatible; PerplexityBot/1.0; "
                      "+https://perplexity.ai/perplexitybot)"},
    {"amazonbot",
     "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_10_1) AppleWebKit/600.2.5 (KHTML, like "
     "Gecko) Version/8.0.2 Safari/600.2.5 (Amazonbot/0.1; "
     "+https://developer.amazon.com/support/amazonbot)"},
    {"meta-externalagent",
     "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)"},
    {"ccbot", "CCBot/2.0 (https://commoncrawl.org/faq/)"},
    {"bytespider", "Mozilla/5.0 (Linux; Android 5.0) " CHROME ") Mobile Safari/537.36 (compatible; "
                   "Bytespider; spider-feedback@bytedance.com)"},
    {"ahrefsbot", "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"},
    {"semrushbot", "Mozilla/5.0 (compatible; SemrushBot/7~bl; +http://www.semrush.com/bot.html)"},
    {"semrushbot", "SemrushBot-SI/0.97"},
    {"cache", "Amazon CloudFront"},
    {"cache", "Mozilla/5.0 (compatible; Cloudflare-AlwaysOnline/1.0; "
              "+https://www.cloudflare.com/always-online) AppleWebKit/534.34"},
    /* In any case; the first of two; the token's end. */
    {"googlebot", "GOOGLEBOT"},
    {"bingbot", "bingbot and Googlebot"},
    {"bingbot", "x,bingbot"},
    {"googlebot", "(Googlebot)"},
    /* Nobody that is named. */
    {"other", ""},
    {"other", "-"},
    {"other", "curl/8.5.0"},
    {"other", "Wget/1.21.3"},
    {"other", "python-requests/2.31.0"},
    {"other", "Go-http-client/2.0"},
    {"other",
     "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " CHROME ") Chrome/126.0.0.0 Safari/537.36"},
    {"other", "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0"},
    {"other", "Mozilla/5.0 (compatible; YandexImages/3.0; +http://yandex.com/bots)"},
    {"other", "Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)"},
    {"other", "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"},
    {"other", "Scrapy/2.11 (+https://scrapy.org)"},
    {"other", "Twitterbot/1.0"},
    {"other", "NotGooglebot/1.0"},
    {"other", "my-Googlebot/1.0"},
    {"other", "Googlebots/1.0"},
    {"other", "see http://www.example.com/googlebot.html"},
    {"other", "robot@googlebot.example.com/googlebot"},
    {"other", "Googlebo"},
    {"other", "Yetis of the mountains"},
};

static struct crawler_names *make(const struct crawler_rule *rules, size_t count)
{
    const char *which;
    char why[512];
    struct crawler_names *names = crawler_names_new(rules, count, &which, why, sizeof why);
    if (names == NULL)
        fail_msg("%s: %s", which, why);
    return names;
}

static const char *name_of(struct crawler_names *names, const char *field)
{
    return names_at(names, names_classify(names, field))->text;
}

static void test_fields(void **state)
{
    struct crawler_names *names = make(NULL, 0);
    /* Twice: read, and remembered. */
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            if (strcmp(name_of(names, fields[i].field), fields[i].name) != 0)
                fail_msg("%s is %s", fields[i].field, name_of(names, fields[i].field));
    assert_int_equal(names_classify(names, NULL), 0);
    crawler_names_free(names);
}

/* More fields than the cache has places: none is taken for another. */
static void test_more_fields_than_the_cache_has_places(void **state)
{
    struct crawler_names *names = make(NULL, 0);
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < 5000; i++) {
            char field[64];
            snprintf(field, sizeof field, i % 2 ? "Googlebot/2.%d" : "browser/2.%d", i);
            assert_string_equal(name_of(names, field), i % 2 ? "googlebot" : "other");
        }
    crawler_names_free(names);
}

static void test_a_long_field_is_read_to_its_limit(void **state)
{
    struct crawler_names *names = make(NULL, 0);
    static char field[9000];
    memset(field, ' ', sizeof field - 1);
    memcpy(field + 1000, "Googlebot", 9);
    assert_string_equal(name_of(names, field), "googlebot");
    memset(field, ' ', sizeof field - 1);
    memcpy(field + 1020, "Googlebot", 9);
    assert_string_equal(name_of(names, field), "other");
    crawler_names_free(names);
}

static void test_the_configuration_adds_and_replaces(void **state)
{
    static const char *const ours[] = {"Ourbot", "Our-Checker"},
                             *const images[] = {"Googlebot-Image"}, *const only[] = {"Yandex"};
    const struct crawler_rule rules[] = {{.name = "ours", .match_count = 2, .match = ours},
                                         {.name = "images", .match_count = 1, .match = images},
                                         {.name = "yandexbot", .match_count = 1, .match = only},
                                         {.name = "bingbot"}};
    struct crawler_names *names = make(rules, 4);
    assert_string_equal(name_of(names, "ourbot/1"), "ours");
    assert_string_equal(name_of(names, "x our-checker"), "ours");
    assert_string_equal(name_of(names, "Googlebot-Image/1.0"), "images");
    assert_string_equal(name_of(names, "Googlebot/2.1"), "googlebot");
    assert_string_equal(name_of(names, "Yandex/1"), "yandexbot");
    assert_string_equal(name_of(names, "YandexBot/3.0"), "other");
    assert_string_equal(name_of(names, "bingbot/2.0"), "bingbot");
    crawler_names_free(names);
}

static void refused(const struct crawler_rule *rules, size_t count, const char *wanted)
{
    const char *which;
    char why[512];
    assert_null(crawler_names_new(rules, count, &which, why, sizeof why));
    if (strstr(why, wanted) == NULL)
        fail_msg("%s, and not: %s", why, wanted);
}

static void test_what_is_refused(void **state)
{
    static const char *const one[] = {"x"}, *const good[] = {"good"}, *const file[] = {"/nowhere"};
    struct crawler_rule rule = {.name = "mine"}, many[CRAWLERS_MAX + 1];
    char texts[CRAWLERS_MAX + 1][8];
    refused(&rule, 1, "match is missing");
    rule = (struct crawler_rule){.name = "mine", .match_count = 1, .match = one};
    refused(&rule, 1, "2 characters");
    rule = (struct crawler_rule){.name = "other", .match_count = 1, .match = good};
    refused(&rule, 1, "is reserved");
    rule = (struct crawler_rule){.name = "googlebot", .range_file_count = 1, .range_files = file};
    refused(&rule, 1, "/nowhere: cannot be read");
    for (size_t i = 0; i <= CRAWLERS_MAX; i++) {
        snprintf(texts[i], sizeof texts[i], "n%zu", i);
        many[i] = (struct crawler_rule){.name = texts[i], .match_count = 1, .match = good};
    }
    refused(many, CRAWLERS_MAX + 1, "too many crawlers");
    refused(many, 50, "too many crawlers");
    crawler_names_free(make(many, 40)); /* what the configuration may have */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_more_fields_than_the_cache_has_places),
        cmocka_unit_test(test_a_long_field_is_read_to_its_limit),
        cmocka_unit_test(test_the_configuration_adds_and_replaces),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
