/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "server/client/address.h"

/* As libcurl hands it over: what the name or the spelling in the URL came to. */
static const struct sockaddr *address_of(const char *text)
{
    static struct sockaddr_storage room;
    struct sockaddr_in in = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

    memset(&room, 0, sizeof room);
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
        memcpy(&room, &in, sizeof in);
    else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
        memcpy(&room, &in6, sizeof in6);
    else
        fail_msg("%s", text);
    return (const struct sockaddr *)&room;
}

static void test_public(void **state)
{
    static const struct {
        const char *address;
        bool is_public;
    } rows[] = {
        {"1.1.1.1", true},
        {"93.184.216.34", true},
        {"0.0.0.0", false},
        {"0.1.2.3", false},
        {"1.0.0.0", true},
        {"9.255.255.255", true},
        {"10.0.0.0", false},
        {"10.255.255.255", false},
        {"11.0.0.0", true},
        {"100.63.255.255", true},
        {"100.64.0.0", false},
        {"100.127.255.255", false},
        {"100.128.0.0", true},
        {"126.255.255.255", true},
        {"127.0.0.1", false},
        {"127.255.255.255", false},
        {"128.0.0.0", true},
        {"169.253.255.255", true},
        {"169.254.169.254", false},
        {"169.255.0.0", true},
        {"172.15.255.255", true},
        {"172.16.0.0", false},
        {"172.31.255.255", false},
        {"172.32.0.0", true},
        {"192.0.0.192", false},
        {"192.0.1.0", true},
        {"192.0.2.1", false},
        {"192.88.99.1", false},
        {"192.167.255.255", true},
        {"192.168.0.1", false},
        {"192.169.0.0", true},
        {"198.17.255.255", true},
        {"198.18.0.0", false},
        {"198.19.255.255", false},
        {"198.20.0.0", true},
        {"198.51.100.7", false},
        {"203.0.113.7", false},
        {"223.255.255.255", true},
        {"224.0.0.1", false},
        {"239.255.255.255", false},
        {"240.0.0.0", false},
        {"255.255.255.255", false},
        {"2606:4700:4700::1111", true},
        {"2a00:1450:4001:830::200e", true},
        {"1fff::1", false},
        {"2000::1", true},
        {"3ffe::1", true},
        {"3fff::1", false},
        {"3fff:fff::1", false},
        {"3fff:1000::1", true},
        {"4000::1", false},
        {"::", false},
        {"::1", false},
        {"2001::1", false},
        {"2001:10::1", false},
        {"2001:1ff:ffff::1", false},
        {"2001:200::1", true},
        {"2001:db8::1", false},
        {"2001:db9::1", true},
        {"fc00::1", false},
        {"fd12:3456:789a::1", false},
        {"fe80::1", false},
        {"fec0::1", false},
        {"ff02::1", false},
        {"100::1", false},
        {"5f00::1", false},
        /* by the IPv4 address inside */
        {"::ffff:127.0.0.1", false},
        {"::ffff:10.0.0.1", false},
        {"::ffff:1.1.1.1", true},
        {"64:ff9b::7f00:1", false},
        {"64:ff9b::10.0.0.1", false},
        {"64:ff9b::169.254.169.254", false},
        {"64:ff9b::1.1.1.1", true},
        {"64:ff9b::1:1.1.1.1", false}, /* no longer the prefix */
        {"64:ff9b:1::1.1.1.1", false}, /* a network's own */
        {"2002:7f00:1::1", false},
        {"2002:a00:1::1", false},
        {"2002:c0a8:1::1", false},
        {"2002:101:101::1", true},
        /* forms without a meaning any more */
        {"::1.1.1.1", false},
        {"::ffff:0:1.1.1.1", false},
    };
    static const struct address_guard guard;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[16];

        assert_true(address_bytes(rows[i].address, bytes));
        if (address_is_public(bytes) != rows[i].is_public ||
            address_allowed(&guard, NULL, 0, address_of(rows[i].address)) != rows[i].is_public)
            fail_msg("%s", rows[i].address);
    }
}

static void test_allowed(void **state)
{
    static const struct {
        const char *address, *literal;
        bool allowed;
    } rows[] = {
        {"10.1.2.3", NULL, true},
        {"11.1.2.3", NULL, true},
        {"127.0.0.1", NULL, false},
        {"::ffff:10.1.2.3", NULL, true},
        {"64:ff9b::10.1.2.3", NULL, true},
        {"fd00::7", NULL, true},
        {"fd01::7", NULL, false},
        {"127.0.0.1", "127.0.0.1", true},
        {"::ffff:127.0.0.1", "127.0.0.1", true},
        {"127.0.0.2", "127.0.0.1", false},
        {"127.0.0.1", "old.example", false},
        {"127.0.0.1", "127.1", false},
        {"127.0.0.1", "2130706433", false},
        {"127.0.0.1", "", false},
        {"fd01::7", "[fd01::7]", true},
        {"fd01::7", "fd01:0::7", true},
        {"fd01::8", "[fd01::7]", false},
        {"127.0.0.1", "[", false},
        {"127.0.0.1", "an.address.that.is.longer.than.any.of.them.can.be.written.to.be", false},
    };
    struct address_range ranges[2];
    struct address_guard guard = {ranges, 2};
    struct sockaddr local = {.sa_family = AF_UNIX};

    assert_true(address_range_parse("10.0.0.0/8", &ranges[0]));
    assert_true(address_range_parse("fd00::/16", &ranges[1]));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (address_allowed(&guard, rows[i].literal,
                            rows[i].literal != NULL ? strlen(rows[i].literal) : 0,
                            address_of(rows[i].address)) != rows[i].allowed)
            fail_msg("%s, %s", rows[i].address, rows[i].literal);
    assert_false(address_allowed(&guard, NULL, 0, &local));
    assert_true(address_range_parse("::/0", &ranges[0])); /* holds no IPv4 address */
    assert_false(address_allowed(&guard, NULL, 0, address_of("127.0.0.1")));
    assert_true(address_allowed(&guard, NULL, 0, address_of("fe80::1")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_public),
        cmocka_unit_test(test_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
