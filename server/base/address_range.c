/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses and matches ranges of addresses. */
#include "server/base/address_range.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

bool address_bytes(const char *text, uint8_t out[16])
{
    if (inet_pton(AF_INET, text, out + 12) == 1) {
        memcpy(out, mapped_prefix, sizeof mapped_prefix);
        return true;
    }
    return inet_pton(AF_INET6, text, out) == 1;
}

bool address_bytes_are_v4(const uint8_t bytes[16])
{
    return memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0;
}

bool address_range_parse(const char *text, struct address_range *out)
{
    char host[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "/");

    if (len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    if (!address_bytes(host, out->bytes))
        return false;
    bool v4 = strchr(host, ':') == NULL;
    unsigned most = v4 ? 32 : 128;
    out->bits = most;
    if (text[len] == '/') {
        const char *bits = text + len + 1;
        size_t digits = strspn(bits, "0123456789");
        if (digits == 0 || digits > 3 || bits[digits] != '\0')
            return false;
        out->bits = (unsigned)strtoul(bits, NULL, 10);
        if (out->bits > most)
            return false;
    }
    if (v4)
        out->bits += 96;
    return true;
}

bool address_range_holds(const struct address_range *range, const uint8_t bytes[16])
{
    if (range->bits < 96 && address_bytes_are_v4(bytes))
        return false;
    size_t whole = range->bits / 8;
    if (memcmp(bytes, range->bytes, whole) != 0)
        return false;
    unsigned rest = range->bits % 8;
    return rest == 0 || ((bytes[whole] ^ range->bytes[whole]) >> (8 - rest)) == 0;
}

bool address_ranges_hold(const struct address_range *ranges, size_t count, const char *peer)
{
    uint8_t bytes[16];

    if (count == 0 || !address_bytes(peer, bytes))
        return false;
    for (size_t i = 0; i < count; i++)
        if (address_range_holds(&ranges[i], bytes))
            return true;
    return false;
}
