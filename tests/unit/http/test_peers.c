/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "server/http/address.h"

static struct sockaddr_storage address_of(const char *text)
{
    struct sockaddr_storage out;
    struct sockaddr_in *in = (struct sockaddr_in *)&out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out;

    memset(&out, 0, sizeof out);
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        in->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        in6->sin6_family = AF_INET6;
    else
        out.ss_family = AF_UNIX;
    /* The port is not part of who it is. */
    static uint16_t port;
    if (out.ss_family != AF_UNIX)
        in->sin_port = htons(++port);
    return out;
}

static void test_who_is_who(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"192.0.2.1", "192.0.2.1", true},
        {"192.0.2.1", "192.0.2.2", false},
        {"192.0.2.1", "::ffff:192.0.2.1", true}, /* as a socket of both families reports it */
        {"192.0.2.1", "::ffff:192.0.2.2", false},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false},        /* one /64, yet two clients */
        {"2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true}, /* one /64 */
        {"2001:db8::1", "2001:db8:0:1::1", false},
        {"2001:db8::1", "2001:db8:0:1::", false},
        {"::1", "::2", true},
        {"::1", "192.0.2.1", false},
        {"unix", "unix", true},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct peers peers = {NULL};
        struct sockaddr_storage a = address_of(rows[i].a), b = address_of(rows[i].b);
        struct peer *one = peers_enter(&peers, (struct sockaddr *)&a, 1);
        assert_non_null(one);
        struct peer *two = peers_enter(&peers, (struct sockaddr *)&b, 1);
        if ((two == NULL) != rows[i].same)
            fail_msg("%s, %s", rows[i].a, rows[i].b);
        assert_int_equal(peer_count(one), 1);
        peers_leave(&peers, two);
        peers_leave(&peers, one);
        assert_null(peers.tree);
    }
}

static void test_the_limit_is_exact(void **state)
{
    struct peers peers = {NULL};
    struct sockaddr_storage address = address_of("192.0.2.1");
    const struct sockaddr *a = (struct sockaddr *)&address;
    struct peer *held[3];

    assert_null(peers_enter(&peers, a, 0));
    for (unsigned i = 0; i < 3; i++) {
        held[i] = peers_enter(&peers, a, 3);
        assert_non_null(held[i]);
        assert_int_equal(peer_count(held[i]), i + 1);
    }
    for (int i = 0; i < 5; i++)
        assert_null(peers_enter(&peers, a, 3));
    assert_int_equal(peer_count(held[0]), 3);
    peers_leave(&peers, held[0]);
    held[0] = peers_enter(&peers, a, 3);
    assert_non_null(held[0]);
    peers_leave(&peers, NULL);
    for (unsigned i = 0; i < 3; i++)
        peers_leave(&peers, held[i]);
    assert_null(peers.tree);
}

/* No address at all counts as one of its own. */
static void test_without_address(void **state)
{
    struct peers peers = {NULL};
    struct peer *one = peers_enter(&peers, NULL, 1);

    assert_non_null(one);
    assert_null(peers_enter(&peers, NULL, 1));
    peers_leave(&peers, one);
    assert_null(peers.tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_who),
        cmocka_unit_test(test_the_limit_is_exact),
        cmocka_unit_test(test_without_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
