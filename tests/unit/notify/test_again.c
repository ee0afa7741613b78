/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* When it is notified again: as the answer asks, else later and later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/client/client.h"

#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */

static void test_wait(void **state)
{
    static const struct {
        const char *retry_after, *date;
        unsigned tries;
        int64_t wait_ms;
    } rows[] = {
        {NULL, NULL, 0, 30000},
        {NULL, NULL, 1, 60000},
        {NULL, NULL, 6, 1920000},
        {NULL, NULL, 7, 3600000},
        {NULL, NULL, 4000000000, 3600000},
        {"", NULL, 1, 60000},
        {"soon", NULL, 1, 60000},
        {"-1", NULL, 1, 60000},
        {"120", NULL, 0, 120000},
        {"120", NULL, 9, 120000},
        {"120", "Sun, 06 Nov 1994 00:00:00 GMT", 0, 120000},
        {"0", NULL, 9, 30000},
        {"86400", NULL, 0, 86400000},
        {"86401", NULL, 0, 86400000},
        {"99999999999999999999", NULL, 0, 86400000},
        {"Sun, 06 Nov 1994 08:54:37 GMT", NULL, 9, 300000},
        {"Sun, 06 Nov 1994 08:54:37 GMT", "no date", 0, 300000},
        {"Sun, 06 Nov 1994 08:54:37 GMT", "Sun, 06 Nov 1994 08:44:37 GMT", 0, 600000},
        {"Sun, 06 Nov 1994 08:49:00 GMT", NULL, 0, 30000},
        {"Mon, 07 Nov 1994 09:00:00 GMT", NULL, 0, 86400000},
        {"Sunday, 06-Nov-94 08:54:37 GMT", NULL, 0, 300000},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fetch_reply reply = {.status = 503};
        if (rows[i].retry_after != NULL)
            reply.headers[reply.header_count++] =
                (struct fetch_header){"retry-after", rows[i].retry_after};
        if (rows[i].date != NULL)
            reply.headers[reply.header_count++] = (struct fetch_header){"Date", rows[i].date};
        int64_t wait_ms = again_wait_ms(rows[i].tries, 30000, &reply, NOW);
        if (wait_ms != rows[i].wait_ms)
            fail_msg("row %zu: %jd ms, not %jd", i, (intmax_t)wait_ms, (intmax_t)rows[i].wait_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_wait)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
