/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The grammars of values, through the door that every value takes: setting_assign. */
#include "tests/unit/config/fixture.h"

/* Puts `text` into a field at `base` of a setting of this kind. True where nothing is reported. */
static bool assign(enum setting_kind kind, void *base, size_t width, const char *text,
                   struct mistake_list *mistakes)
{
    const struct setting s = {.key = "key", .kind = kind, .width = width, .max = UINT64_MAX};
    struct mistakes m = {.report = report_mistake, .context = mistakes};

    memset(mistakes, 0, sizeof *mistakes);
    setting_assign(&s, base, text, &m);
    assert_int_equal(m.count, mistakes->count);
    return m.count == 0;
}

struct number_row {
    const char *text;
    bool good;
    uint64_t value;
};

static void check_numbers(const struct number_row *rows, size_t count, enum setting_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;
        struct mistake_list mistakes;
        bool good = assign(kind, &value, sizeof value, rows[i].text, &mistakes);

        if (good != rows[i].good || value != (good ? rows[i].value : 77))
            fail_msg("\"%s\": got %d, %llu", rows[i].text, good, (unsigned long long)value);
    }
}

static void test_counts(void **state)
{
    static const struct number_row rows[] = {
        {"0", true, 0},
        {"10000", true, 10000},
        {"007", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.5", false, 0},
        {"0x10", false, 0},
        {"1e3", false, 0},
        {"10K", false, 0},
    };

    check_numbers(rows, ROWS(rows), SETTING_COUNT);
}

static void test_sizes(void **state)
{
    static const struct number_row rows[] = {
        {"0", true, 0},
        {"512", true, 512},
        {"16K", true, 16384},
        {"16k", true, 16384},
        {"64M", true, 67108864},
        {"1G", true, 1073741824},
        {"2T", true, 2199023255552},
        {"16777215T", true, 16777215ull << 40},
        {"16777216T", false, 0},
        {"M", false, 0},
        {"1.5G", false, 0},
        {"64MB", false, 0},
        {"64 M", false, 0},
        {"64X", false, 0},
        {"-1K", false, 0},
        {"", false, 0},
    };

    check_numbers(rows, ROWS(rows), SETTING_SIZE);
}

static void test_durations(void **state)
{
    static const struct number_row rows[] = {
        {"0", true, 0},
        {"500ms", true, 500},
        {"30s", true, 30000},
        {"5m", true, 300000},
        {"1h", true, 3600000},
        {"1d", true, 86400000},
        {"30", false, 0},
        {"30S", false, 0},
        {"30 s", false, 0},
        {"s", false, 0},
        {"1h30m", false, 0},
        {"-5s", false, 0},
        {"18446744073709551615d", false, 0},
        {"", false, 0},
    };

    check_numbers(rows, ROWS(rows), SETTING_DURATION);
}

static void test_booleans(void **state)
{
    static const struct {
        const char *text;
        int value; /* -1: none */
    } rows[] = {
        {"yes", 1}, {"on", 1},  {"true", 1},  {"YES", 1},   {"True", 1},
        {"no", 0},  {"off", 0}, {"false", 0}, {"Off", 0},   {"1", -1},
        {"0", -1},  {"y", -1},  {"", -1},     {"yes ", -1}, {"maybe", -1},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        bool value = rows[i].value != 1;
        bool good = value_bool(rows[i].text, &value);

        if (good != (rows[i].value >= 0) || (good && value != (rows[i].value == 1)))
            fail_msg("\"%s\"", rows[i].text);
    }
}

struct text_row {
    const char *text;
    bool good;
};

static void check_texts(const struct text_row *rows, size_t count, enum setting_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        char *text = NULL;
        struct mistake_list mistakes;

        if (assign(kind, &text, sizeof text, rows[i].text, &mistakes) != rows[i].good)
            fail_msg("\"%s\" was %s", rows[i].text, rows[i].good ? "refused" : "taken");
        assert_int_equal(text != NULL, rows[i].good);
        free(text);
    }
}

static void test_addresses(void **state)
{
    static const struct text_row rows[] = {
        {"0.0.0.0:8080", true},
        {"127.0.0.1:0", true},
        {"127.0.0.1:65535", true},
        {"[::]:8080", true},
        {"[2001:db8::1]:80", true},
        {"127.0.0.1:65536", false},
        {"127.0.0.1:000080", false},
        {"127.0.0.1:-1", false},
        {"127.0.0.1:", false},
        {"127.0.0.1", false},
        {":8080", false},
        {"8080", false},
        {"*:8080", false},
        {"localhost:8080", false},
        {"::1:8080", false},
        {"[::1]", false},
        {"[::1]8080", false},
        {"[127.0.0.1]:80", false},
        {"[::g]:80", false},
        {"256.0.0.1:80", false},
        {"127.1:80", false},
        {"127.0.0.1:80 ", false},
        {"http://127.0.0.1:80", false},
        {"", false},
    };

    check_texts(rows, ROWS(rows), SETTING_ADDRESS);
}

#define MALFORMED "must be an IP address or range, such as 10.0.0.1, 10.0.0.0/8 or fd00::/8"

#define TOO_LONG(bits) "must have a prefix of at most " bits " bits"
#define HOST_BITS(range)                                                                           \
    "has bits set after its prefix; write " range " for the range, or the address alone"

static void test_ip_ranges(void **state)
{
    static const struct {
        const char *text;
        const char *mistakes; /* behind the text; "": nothing */
    } rows[] = {
        {"10.0.0.1", ""},
        {"fd00::1", ""},
        {"10.0.0.0/8", ""},
        {"10.0.0.128/25", ""},
        {"10.0.0.1/32", ""},
        {"0.0.0.0/0", ""},
        {"fd00::/8", ""},
        {"fe80::/10", ""},
        {"fd00::1/128", ""},
        {"::/0", ""},
        {"::ffff:10.0.0.0/104", ""},
        {"10.0.0.0/33", TOO_LONG("32")},
        {"10.0.0.0/128", TOO_LONG("32")},
        {"10.0.0.0/18446744073709551615", TOO_LONG("32")},
        {"fd00::/129", TOO_LONG("128")},
        {"10.1.2.3/8", HOST_BITS("10.0.0.0/8")},
        {"10.0.0.129/25", HOST_BITS("10.0.0.128/25")},
        {"172.18.0.1/16", HOST_BITS("172.18.0.0/16")},
        {"0.0.0.1/0", HOST_BITS("0.0.0.0/0")},
        {"255.255.255.255/31", HOST_BITS("255.255.255.254/31")},
        {"fd00::1/8", HOST_BITS("fd00::/8")},
        {"fec0::/9", HOST_BITS("fe80::/9")},
        {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/127",
         HOST_BITS("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127")},
        {"", MALFORMED},
        {"proxy", MALFORMED},
        {"10.0.0", MALFORMED},
        {"10/8", MALFORMED},
        {"10.0.0.1:80", MALFORMED},
        {"[fd00::1]", MALFORMED},
        {"[fd00::]/8", MALFORMED},
        {"fe80::1%lo", MALFORMED},
        {"/8", MALFORMED},
        {"10.0.0.0/", MALFORMED},
        {"10.0.0.0/08", MALFORMED},
        {"10.0.0.0/-1", MALFORMED},
        {"10.0.0.0/+8", MALFORMED},
        {"10.0.0.0/8x", MALFORMED},
        {"10.0.0.0/8/8", MALFORMED},
        {"10.0.0.0/255.0.0.0", MALFORMED},
        {"10.0.0.0 /8", MALFORMED},
        {"10.0.0.0/99999999999999999999", MALFORMED},
        {"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111", MALFORMED},
    };

    for (size_t i = 0; i < ROWS(rows); i++) {
        bool good = *rows[i].mistakes == '\0';
        char *text = NULL, want[256] = "";
        struct mistake_list mistakes;

        if (!good)
            snprintf(want, sizeof want, "- key: \"%s\" %s\n", rows[i].text, rows[i].mistakes);
        assert_int_equal(assign(SETTING_IP_RANGE, &text, sizeof text, rows[i].text, &mistakes),
                         good);
        check_mistakes(rows[i].text, &mistakes, want);
        assert_int_equal(text != NULL, good);
        free(text);
    }
}

static void test_hosts(void **state)
{
    static const struct text_row rows[] = {
        {"example.com", true},
        {"www.EXAMPLE.com:8443", true},
        {"a", true},
        {"origin.internal:8080", true},
        {"[::1]:80", true},
        {"xn--mnchen-3ya.de", true},
        {"", false},
        {"https://example.com", false},
        {"example.com/", false},
        {"example.com:", true} /* an empty port counts as absent: RFC 3986 6.2.3 */,
        {"example.com:99999", false},
        {"-example.com", false},
        {".example.com", false},
        {"exa mple.com", false},
        {"m\xc3\xbcnchen.de", false},
        {"user@example.com", false},
    };

    check_texts(rows, ROWS(rows), SETTING_HOST);
}

static void test_origins(void **state)
{
    static const struct text_row rows[] = {
        {"https://www.example.com", true},
        {"https://www.example.com/", true},
        {"HTTP://Example.com:8080", true},
        {"https://[::1]:8443", true},
        {"https://", false},
        {"https:///", false},
        {"www.example.com", false},
        {"ftp://example.com", false},
        {"https://example.com/x", false},
        {"https://example.com//", false},
        {"https://example.com?x", false},
        {"https://u:p@example.com", false},
        {"https://example.com:0x50", false},
        {"", false},
    };

    check_texts(rows, ROWS(rows), SETTING_ORIGIN);
}

static void check_alias(const char *from, const char *to, bool good)
{
    const struct setting s = {.kind = SETTING_ALIAS,
                              .offset = offsetof(struct config_site, aliases),
                              .width = sizeof(struct config_alias *),
                              .count_offset = offsetof(struct config_site, alias_count)};
    struct config_site site = {.alias_count = 0};
    struct mistakes m = {.count = 0};
    char text[64];

    snprintf(text, sizeof text, "%s -> %s", from, to);
    setting_assign(&s, &site, text, &m);
    if ((m.count == 0) != good)
        fail_msg("\"%s\" was %s", text, good ? "refused" : "taken");
    assert_int_equal(site.alias_count, good);
    if (good) {
        assert_string_equal(site.aliases[0].from, from);
        assert_string_equal(site.aliases[0].to, to);
    }
    setting_clear(&s, &site);
}

static void test_paths_and_patterns(void **state)
{
    static const struct text_row paths[] = {
        {"/", true},          {"/sitemap.xml", true}, {"/a/b%20c", true}, {"a", false},
        {"", false},          {"/a b", false},        {"/a?b", false},    {"/a#b", false},
        {"/\xc3\xa9", false},
    };
    static const struct text_row patterns[] = {
        {"{stem}-{n}{suffix}", true},
        {"{stem}.{n}.page{suffix}", true},
        {"{stem}{n}{suffix}", false},
        {"{stem}-{n}", false},
        {"{n}-{stem}{suffix}", false},
        {"x{stem}-{n}{suffix}", false},
        {"{stem}-{n}{suffix}x", false},
        {"{stem}-{n}-{n}{suffix}", false},
        {"{stem}/{n}{suffix}", false},
        {"{stem}-{m}{suffix}", false},
        {"{stem}?{n}{suffix}", false},
        {"{stem}{suffix}-{n}", false},
        {"", false},
    };

    for (size_t i = 0; i < ROWS(paths); i++) {
        check_alias(paths[i].text, "/to", paths[i].good);
        check_alias("/from", paths[i].text, paths[i].good);
    }
    check_texts(patterns, ROWS(patterns), SETTING_PATTERN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_booleans),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_ip_ranges),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_origins),
        cmocka_unit_test(test_paths_and_patterns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
