/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files of address ranges, as an operator's site may hand them out when it is broken or worse. */
#include "tests/fuzz/require.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "server/crawlers/names.h"

#define MOST 300u

/* As text, IPv4 in its own form. */
static const char *text_of(const uint8_t bytes[16], char out[INET6_ADDRSTRLEN])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool four = memcmp(bytes, mapped, sizeof mapped) == 0;

    return inet_ntop(four ? AF_INET : AF_INET6, four ? bytes + 12 : bytes, out, INET6_ADDRSTRLEN);
}

static void require_sealed(const struct ranges *r)
{
    char text[INET6_ADDRSTRLEN];

    for (size_t i = 0; i < r->count; i++) {
        REQUIRE(memcmp(r->of[i].first, r->of[i].last, 16) <= 0);
        REQUIRE(i == 0 || memcmp(r->of[i - 1].last, r->of[i].first, 16) < 0);
        REQUIRE(ranges_hold(r, text_of(r->of[i].first, text)));
        REQUIRE(ranges_hold(r, text_of(r->of[i].last, text)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ranges r = {0};
    char why[128] = "";
    char *address = copy_text(data, size);

    if (ranges_parse(&r, (const char *)data, size, MOST, why, sizeof why)) {
        REQUIRE(r.count > 0 && r.count <= MOST);
        ranges_seal(&r);
        require_sealed(&r);
        ranges_hold(&r, address);
    } else {
        REQUIRE(*why != '\0');
    }
    ranges_done(&r);
    free(address);
    return 0;
}
