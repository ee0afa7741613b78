#include <arpa/inet.h>
#include <string.h>

#include "server/rules/ascii.h"
#include "server/rules/scan.h"
#include "server/rules/url_parts.h"

#define LABEL_MAX_CHARS 63
#define PORT_MAX        65535u

/* Digits and nothing else; leading zeros do not count. Empty is no port (RFC 3986 3.2.3). */
static bool read_port(const char *text, size_t len, uint16_t *out)
{
    unsigned port = 0;

    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_digit(text[i]))
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
        if (port > PORT_MAX)
            return false;
    }
    if (len > 0 && port == 0)
        return false;
    *out = (uint16_t)port;
    return true;
}

/* RFC 1123 2.1 and RFC 1035 2.3.4, with the underscore that real host names have. */
static bool is_label(const char *text, size_t len)
{
    if (len < 1 || len > LABEL_MAX_CHARS || text[0] == '-' || text[len - 1] == '-')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!ascii_is_alnum(text[i]) && text[i] != '-' && text[i] != '_')
            return false;
    }
    return true;
}

/* A last label that browsers and crawlers take for a number: the whole is then an IPv4 address
 * to them, in forms that RFC 3986 does not know (WHATWG URL, "ends in a number checker"). */
static bool is_number_label(const char *text, size_t len)
{
    bool hex = len >= 2 && text[0] == '0' && ascii_lower(text[1]) == 'x';

    for (size_t i = hex ? 2 : 0; i < len; i++) {
        if (hex ? ascii_hex_value(text[i]) < 0 : !ascii_is_digit(text[i]))
            return false;
    }
    return true;
}

/* RFC 3986 3.2.2 IPv4address: four decimals to 255 without leading zeros. */
static bool is_ipv4(const char *text, size_t len)
{
    struct scan s = {text, text + len};

    for (unsigned part = 0; part < 4; part++) {
        const char *digits;
        unsigned value = 0;

        if (part > 0 && !scan_char(&s, '.'))
            return false;
        digits = s.at;
        while (s.at < s.end && ascii_is_digit(*s.at) && value <= 255)
            value = value * 10 + (unsigned)(*s.at++ - '0');
        if (s.at == digits || value > 255 || (*digits == '0' && s.at - digits > 1))
            return false;
    }
    return s.at == s.end;
}

static enum rule_code read_name(const char *text, size_t len, struct url_authority *out)
{
    size_t label = 0;

    for (size_t i = 0; i < len; i++) {
        if (ascii_is_high(text[i]))
            return RULE_LOC_HOST_IDN;
    }
    if (len > HOST_MAX_CHARS)
        return RULE_LOC_HOST;
    for (size_t i = 0; i <= len; i++) {
        if (i < len && text[i] != '.')
            continue;
        if (!is_label(text + label, i - label))
            return RULE_LOC_HOST;
        if (i < len)
            label = i + 1;
    }
    if (is_number_label(text + label, len - label) && !is_ipv4(text, len))
        return RULE_LOC_HOST;
    for (size_t i = 0; i < len; i++)
        out->host[i] = ascii_lower(text[i]);
    out->host[len] = '\0';
    out->host_len = len;
    return RULE_OK;
}

/* "[" IPv6address "]"; neither a zone nor an IPvFuture names a public host. One address has many
 * spellings; libc's is that of RFC 5952 4. */
static enum rule_code read_ipv6(const char *text, size_t len, struct url_authority *out)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr binary;
    size_t inner = len - 2;

    if (len < 4 || inner >= sizeof address || memchr(text, '\0', len) != NULL)
        return RULE_LOC_HOST;
    memcpy(address, text + 1, inner);
    address[inner] = '\0';
    if (inet_pton(AF_INET6, address, &binary) != 1 ||
        inet_ntop(AF_INET6, &binary, out->host + 1, INET6_ADDRSTRLEN) == NULL)
        return RULE_LOC_HOST;
    out->host[0] = '[';
    out->host_len = strlen(out->host);
    out->host[out->host_len++] = ']';
    out->host[out->host_len] = '\0';
    return RULE_OK;
}

enum rule_code url_read_authority(const char *text, size_t len, bool rooted,
                                  struct url_authority *out)
{
    const char *end = text + len;
    const char *host_end;
    enum rule_code code;

    if (memchr(text, '@', len) != NULL)
        return RULE_LOC_CREDENTIALS;

    if (len > 0 && text[0] == '[') {
        host_end = memchr(text, ']', len);
        if (host_end == NULL || (++host_end < end && *host_end != ':'))
            return RULE_LOC_HOST;
        code = read_ipv6(text, (size_t)(host_end - text), out);
    } else {
        size_t name_len;

        host_end = memchr(text, ':', len);
        if (host_end == NULL)
            host_end = end;
        name_len = (size_t)(host_end - text);
        if (rooted && name_len > 0 && text[name_len - 1] == '.')
            name_len--;
        code = read_name(text, name_len, out);
    }
    if (code != RULE_OK)
        return code;

    if (host_end < end)
        host_end++; /* the colon */
    return read_port(host_end, (size_t)(end - host_end), &out->port) ? RULE_OK : RULE_LOC_PORT;
}
