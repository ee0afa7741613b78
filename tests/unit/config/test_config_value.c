#include "tests/unit/config/fixture.h"

#include "config/value.h"

struct number_row {
    const char *text;
    bool good;
    uint64_t value;
};

static void check_numbers(const struct number_row *rows, size_t count,
                          bool (*read)(const char *, uint64_t *))
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 77;
        bool good = read(rows[i].text, &value);

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

    (void)state;
    check_numbers(rows, ROWS(rows), value_count);
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

    (void)state;
    check_numbers(rows, ROWS(rows), value_size);
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

    (void)state;
    check_numbers(rows, ROWS(rows), value_duration);
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

    (void)state;
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

static void check_texts(const struct text_row *rows, size_t count, bool (*is)(const char *))
{
    for (size_t i = 0; i < count; i++)
        if (is(rows[i].text) != rows[i].good)
            fail_msg("\"%s\" was %s", rows[i].text, rows[i].good ? "refused" : "taken");
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

    (void)state;
    check_texts(rows, ROWS(rows), value_is_address);
}

static void test_ip_ranges(void **state)
{
    static const struct {
        const char *text;
        enum value_range judged;
        const char *whole; /* HOST_BITS: the range that it lies in */
    } rows[] = {
        {"10.0.0.1", VALUE_RANGE_GOOD, ""},
        {"fd00::1", VALUE_RANGE_GOOD, ""},
        {"10.0.0.0/8", VALUE_RANGE_GOOD, ""},
        {"10.0.0.128/25", VALUE_RANGE_GOOD, ""},
        {"10.0.0.1/32", VALUE_RANGE_GOOD, ""},
        {"0.0.0.0/0", VALUE_RANGE_GOOD, ""},
        {"fd00::/8", VALUE_RANGE_GOOD, ""},
        {"fe80::/10", VALUE_RANGE_GOOD, ""},
        {"fd00::1/128", VALUE_RANGE_GOOD, ""},
        {"::/0", VALUE_RANGE_GOOD, ""},
        {"::ffff:10.0.0.0/104", VALUE_RANGE_GOOD, ""},
        {"10.0.0.0/33", VALUE_RANGE_TOO_LONG_4, ""},
        {"10.0.0.0/128", VALUE_RANGE_TOO_LONG_4, ""},
        {"10.0.0.0/18446744073709551615", VALUE_RANGE_TOO_LONG_4, ""},
        {"fd00::/129", VALUE_RANGE_TOO_LONG_6, ""},
        {"10.1.2.3/8", VALUE_RANGE_HOST_BITS, "10.0.0.0/8"},
        {"10.0.0.129/25", VALUE_RANGE_HOST_BITS, "10.0.0.128/25"},
        {"172.18.0.1/16", VALUE_RANGE_HOST_BITS, "172.18.0.0/16"},
        {"0.0.0.1/0", VALUE_RANGE_HOST_BITS, "0.0.0.0/0"},
        {"255.255.255.255/31", VALUE_RANGE_HOST_BITS, "255.255.255.254/31"},
        {"fd00::1/8", VALUE_RANGE_HOST_BITS, "fd00::/8"},
        {"fec0::/9", VALUE_RANGE_HOST_BITS, "fe80::/9"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/127", VALUE_RANGE_HOST_BITS,
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127"},
        {"", VALUE_RANGE_MALFORMED, ""},
        {"proxy", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0", VALUE_RANGE_MALFORMED, ""},
        {"10/8", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.1:80", VALUE_RANGE_MALFORMED, ""},
        {"[fd00::1]", VALUE_RANGE_MALFORMED, ""},
        {"[fd00::]/8", VALUE_RANGE_MALFORMED, ""},
        {"fe80::1%lo", VALUE_RANGE_MALFORMED, ""},
        {"/8", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/08", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/-1", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/+8", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/8x", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/8/8", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/255.0.0.0", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0 /8", VALUE_RANGE_MALFORMED, ""},
        {"10.0.0.0/99999999999999999999", VALUE_RANGE_MALFORMED, ""},
        {"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111", VALUE_RANGE_MALFORMED, ""},
    };

    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        char whole[VALUE_RANGE_SIZE] = "";

        if (value_ip_range(rows[i].text, whole) != rows[i].judged)
            fail_msg("%s: judged otherwise", rows[i].text);
        assert_string_equal(whole, rows[i].whole);
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
        {"example.com:", true} /* an empty port is none: RFC 3986 6.2.3 */,
        {"example.com:99999", false},
        {"-example.com", false},
        {".example.com", false},
        {"exa mple.com", false},
        {"m\xc3\xbcnchen.de", false},
        {"user@example.com", false},
    };

    (void)state;
    check_texts(rows, ROWS(rows), value_is_host);
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

    (void)state;
    check_texts(rows, ROWS(rows), value_is_origin);
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

    (void)state;
    check_texts(paths, ROWS(paths), value_is_url_path);
    check_texts(patterns, ROWS(patterns), value_is_pattern);
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
