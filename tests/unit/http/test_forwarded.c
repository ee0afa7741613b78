/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "server/http/headers.h"

static void test_the_client_of_a_list(void **state)
{
    static const char *const ranges[] = {"10.0.0.0/8", "fd00::/8"};
    static const struct {
        const char *list, *client; /* NULL: none */
    } all[] = {
        {"192.0.2.1", "192.0.2.1"},
        {" 192.0.2.1\t", "192.0.2.1"},
        {"192.0.2.1, 10.0.0.1", "192.0.2.1"},
        {"192.0.2.1,10.0.0.1,fd00::1", "192.0.2.1"},
        {"198.51.100.9, 192.0.2.1", "192.0.2.1"}, /* what a client wrote itself comes first */
        {"198.51.100.9, 192.0.2.1, 10.0.0.1", "192.0.2.1"},
        {"10.0.0.9, 10.0.0.1", "10.0.0.9"}, /* all are proxies: the first asked */
        {"2001:DB8:0::1", "2001:db8::1"},
        {"[2001:db8::1]", "2001:db8::1"},
        {"[2001:db8::1]:443, [fd00::1]:80", "2001:db8::1"},
        {"192.0.2.1:5555, 10.0.0.1:80", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"::ffff:10.0.0.1", "10.0.0.1"},
        {", 192.0.2.1, ,10.0.0.1,,", "192.0.2.1"},
        {"192.0.2.1, unknown, 10.0.0.1", "10.0.0.1"},
        {"192.0.2.1, 10.0.0.1x, 10.0.0.2", "10.0.0.2"},
        {"192.0.2.1, [fd00::1, 10.0.0.2", "10.0.0.2"},
        {"192.0.2.1, [fd00::1]x, 10.0.0.2", "10.0.0.2"},
        {"", NULL},
        {" , ,", NULL},
        {"unknown", NULL},
        {"192.0.2.1 198.51.100.1", NULL},
        {"[", NULL},
        {"]", NULL},
        {":", NULL},
        {"[]", NULL},
        {"192.0.2.256", NULL},
        {"192.0.2.1\" evil", NULL},
        {"0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", NULL},
    };
    struct address_range trusted[2];

    for (size_t i = 0; i < 2; i++)
        assert_true(address_range_parse(ranges[i], &trusted[i]));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char client[INET6_ADDRSTRLEN] = "untouched";
        bool found = forwarded_client(all[i].list, trusted, 2, client);
        if (found != (all[i].client != NULL) ||
            strcmp(client, found ? all[i].client : "untouched") != 0)
            fail_msg("%s: %s", all[i].list, client);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_client_of_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
