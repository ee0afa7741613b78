/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Decides which addresses may be connected to: public ones, and those that the operator allows. */
#include "server/client/address.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), multicast, and the reserved
 * 240.0.0.0/4. */
static const struct {
    uint8_t bits, first[16];
} special[] = {
    {96 + 8, {[10] = 0xff, 0xff, 0}},        /* this network */
    {96 + 8, {[10] = 0xff, 0xff, 10}},       /* private */
    {96 + 10, {[10] = 0xff, 0xff, 100, 64}}, /* carriers' NAT */
    {96 + 8, {[10] = 0xff, 0xff, 127}},      /* loopback */
    {96 + 16,
     {[10] = 0xff, 0xff, 169, 254}}, /* link-local; clouds serve metadata with secrets there */
    {96 + 12, {[10] = 0xff, 0xff, 172, 16}},      /* private */
    {96 + 24, {[10] = 0xff, 0xff, 192, 0, 0}},    /* protocols */
    {96 + 24, {[10] = 0xff, 0xff, 192, 0, 2}},    /* documentation */
    {96 + 24, {[10] = 0xff, 0xff, 192, 88, 99}},  /* 6to4 relays */
    {96 + 16, {[10] = 0xff, 0xff, 192, 168}},     /* private */
    {96 + 15, {[10] = 0xff, 0xff, 198, 18}},      /* measurements */
    {96 + 24, {[10] = 0xff, 0xff, 198, 51, 100}}, /* documentation */
    {96 + 24, {[10] = 0xff, 0xff, 203, 0, 113}},  /* documentation */
    {96 + 4, {[10] = 0xff, 0xff, 224}},           /* multicast */
    {96 + 4, {[10] = 0xff, 0xff, 240}},           /* reserved, broadcast */
    {23, {0x20, 0x01, 0x00}},                     /* protocols: Teredo, ORCHID, measurements */
    {32, {0x20, 0x01, 0x0d, 0xb8}},               /* documentation */
    {20, {0x3f, 0xff, 0x00}},                     /* documentation */
};

static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};

static void map_ipv4(uint8_t out[16], const uint8_t v4[4])
{
    memset(out, 0, 10);
    memset(out + 10, 0xff, 2);
    memcpy(out + 12, v4, 4);
}

/* The IPv4 address, mapped, that an IPv6 address contains; for others the address itself. */
static void find_inner(const uint8_t bytes[16], uint8_t inner[16])
{
    if (memcmp(bytes, nat64, sizeof nat64) == 0)
        map_ipv4(inner, bytes + 12);
    else if (bytes[0] == 0x20 && bytes[1] == 0x02)
        map_ipv4(inner, bytes + 2);
    else
        memcpy(inner, bytes, 16);
}

bool address_is_public(const uint8_t bytes[16])
{
    uint8_t inner[16];

    find_inner(bytes, inner);
    if (!address_bytes_are_v4(inner) && (inner[0] & 0xe0) != 0x20)
        return false;
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        struct address_range range = {.bits = special[i].bits};

        memcpy(range.bytes, special[i].first, sizeof range.bytes);
        if (address_range_holds(&range, inner))
            return false;
    }
    return true;
}

static bool copy_address(const struct sockaddr *address, uint8_t out[16])
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, address, sizeof in);
        map_ipv4(out, (const uint8_t *)&in.sin_addr);
        return true;
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, address, sizeof in6);
        memcpy(out, &in6.sin6_addr, 16);
        return true;
    }
    return false;
}

static bool is_literal(const char *text, size_t len, const uint8_t bytes[16])
{
    char copy[INET6_ADDRSTRLEN];
    uint8_t named[16];

    if (text != NULL && len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (text == NULL || len >= sizeof copy)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return address_bytes(copy, named) && memcmp(named, bytes, sizeof named) == 0;
}

bool address_guard_init(struct address_guard *guard, const char *const *allow)
{
    struct address_range *ranges;
    size_t count = 0;

    while (allow != NULL && allow[count] != NULL)
        count++;
    *guard = (struct address_guard){.allow = ranges = calloc(count + 1, sizeof *ranges)};
    for (size_t i = 0; ranges != NULL && i < count; i++)
        guard->allow_count += address_range_parse(allow[i], &ranges[guard->allow_count]);
    return ranges != NULL;
}

void address_guard_done(struct address_guard *guard)
{
    free((void *)guard->allow);
    *guard = (struct address_guard){0};
}

bool address_allowed(const struct address_guard *guard, const char *literal, size_t literal_len,
                     const struct sockaddr *address)
{
    uint8_t bytes[16], inner[16];

    if (!copy_address(address, bytes))
        return false;
    if (address_is_public(bytes) || is_literal(literal, literal_len, bytes))
        return true;
    find_inner(bytes, inner);
    for (size_t i = 0; i < guard->allow_count; i++)
        if (address_range_holds(&guard->allow[i], bytes) ||
            address_range_holds(&guard->allow[i], inner))
            return true;
    return false;
}
