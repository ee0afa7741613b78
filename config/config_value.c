#include "config/config_value.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PORT_MAX 65535u
#define HOST_MAX 253u

bool value_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"yes", "on", "true"};
    static const char *const no[] = {"no", "off", "false"};

    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        bool is_yes = strcasecmp(text, yes[i]) == 0;

        if (is_yes || strcasecmp(text, no[i]) == 0) {
            *out = is_yes;
            return true;
        }
    }
    return false;
}

/* Reads digits from `*at` on and moves it behind them. False where there are none, or too many. */
static bool read_digits(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = *at;

    for (; *p >= '0' && *p <= '9'; p++) {
        unsigned digit = (unsigned)(*p - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *out = value;
    return true;
}

static bool multiply(uint64_t value, uint64_t factor, uint64_t *out)
{
    if (value > UINT64_MAX / factor)
        return false;
    *out = value * factor;
    return true;
}

bool value_count(const char *text, uint64_t *out)
{
    uint64_t value;

    if (!read_digits(&text, &value) || *text != '\0')
        return false;
    *out = value;
    return true;
}

bool value_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    uint64_t value, factor = 1;

    if (!read_digits(&text, &value))
        return false;
    if (*text != '\0') {
        const char *unit = strchr(units, toupper((unsigned char)*text));

        if (unit == NULL || text[1] != '\0')
            return false;
        for (const char *u = units; u <= unit; u++)
            factor *= 1024;
    }
    return multiply(value, factor, out);
}

bool value_duration(const char *text, uint64_t *out)
{
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    uint64_t value;

    if (!read_digits(&text, &value))
        return false;
    if (value == 0 && *text == '\0') {
        *out = 0;
        return true;
    }
    /* A bare number is refused: seconds or milliseconds is what half of all readers get wrong. */
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(text, units[i].unit) == 0)
            return multiply(value, units[i].ms, out);
    return false;
}

static bool is_visible(const char *text, bool blanks)
{
    for (const char *p = text; *p != '\0'; p++)
        if (*p > '~' || *p < ' ' || (*p == ' ' && !blanks))
            return false;
    return *text != '\0';
}

bool value_is_word(const char *text)
{
    return is_visible(text, false);
}

bool value_is_header(const char *text)
{
    return is_visible(text, true);
}

/* Clears what is behind the prefix. True where anything was set there. */
static bool clear_host_bits(uint8_t *bytes, size_t size, uint64_t bits)
{
    bool any = false;

    for (size_t i = 0; i < size; i++) {
        uint64_t kept = bits > i * 8 ? bits - i * 8 : 0;
        uint8_t mask = (uint8_t)(kept >= 8 ? 0xffu : 0xff00u >> kept);

        any = any || (bytes[i] & ~mask) != 0;
        bytes[i] &= mask;
    }
    return any;
}

enum value_range value_ip_range(const char *text, char whole[VALUE_RANGE_SIZE])
{
    char address[INET6_ADDRSTRLEN];
    uint8_t bytes[sizeof(struct in6_addr)];
    size_t len = strcspn(text, "/"), size = sizeof(struct in_addr);
    int family = AF_INET;
    uint64_t bits;

    if (len >= sizeof address)
        return VALUE_RANGE_MALFORMED;
    memcpy(address, text, len);
    address[len] = '\0';
    if (inet_pton(AF_INET, address, bytes) != 1) {
        family = AF_INET6;
        size = sizeof bytes;
        if (inet_pton(AF_INET6, address, bytes) != 1)
            return VALUE_RANGE_MALFORMED;
    }
    if (text[len] == '\0')
        return VALUE_RANGE_GOOD;
    /* A leading zero would be octal to some. */
    if (!value_count(text + len + 1, &bits) || (text[len + 1] == '0' && text[len + 2] != '\0'))
        return VALUE_RANGE_MALFORMED;
    if (bits > size * 8)
        return family == AF_INET ? VALUE_RANGE_TOO_LONG_4 : VALUE_RANGE_TOO_LONG_6;
    if (!clear_host_bits(bytes, size, bits))
        return VALUE_RANGE_GOOD;
    inet_ntop(family, bytes, address, sizeof address);
    snprintf(whole, VALUE_RANGE_SIZE, "%s/%u", address, (unsigned)bits);
    return VALUE_RANGE_HOST_BITS;
}

static bool is_port(const char *text)
{
    uint64_t port;

    return strlen(text) <= 5 && value_count(text, &port) && port <= PORT_MAX;
}

/* The length of a `[v6]` that `text` begins with, 0 where it does not. */
static size_t bracketed_len(const char *text)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    const char *end = *text == '[' ? strchr(text, ']') : NULL;
    size_t len;

    if (end == NULL)
        return 0;
    len = (size_t)(end - text) - 1;
    if (len >= sizeof address)
        return 0;
    memcpy(address, text + 1, len);
    address[len] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1 ? len + 2 : 0;
}

bool value_is_address(const char *text)
{
    char host[64];
    size_t len = bracketed_len(text);

    if (len == 0) {
        struct in_addr parsed;

        len = strcspn(text, ":");
        if (len >= sizeof host)
            return false;
        memcpy(host, text, len);
        host[len] = '\0';
        if (inet_pton(AF_INET, host, &parsed) != 1)
            return false;
    }
    return text[len] == ':' && is_port(text + len + 1);
}

bool value_is_host(const char *text)
{
    size_t len = bracketed_len(text);

    if (len == 0) {
        while (isalnum((unsigned char)text[len]) || (text[len] != '\0' && strchr("-._", text[len])))
            len++;
        if (len == 0 || len > HOST_MAX || text[0] == '.' || text[0] == '-')
            return false;
    }
    return text[len] == '\0' || (text[len] == ':' && is_port(text + len + 1));
}

bool value_is_origin(const char *text)
{
    char host[HOST_MAX + 8];
    size_t len;

    if (strncasecmp(text, "https://", 8) == 0)
        text += 8;
    else if (strncasecmp(text, "http://", 7) == 0)
        text += 7;
    else
        return false;
    len = strlen(text);
    if (len > 0 && text[len - 1] == '/')
        len--;
    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    return value_is_host(host);
}

bool value_is_url_path(const char *text)
{
    if (text[0] != '/')
        return false;
    for (const char *p = text; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~' || *p == '?' || *p == '#')
            return false;
    return true;
}

bool value_is_index_path(const char *text)
{
    size_t len = strlen(text);

    return value_is_url_path(text) && len >= 5 && strcmp(text + len - 4, ".xml") == 0;
}

bool value_is_pattern(const char *text)
{
    static const char stem[] = "{stem}", number[] = "{n}", suffix[] = "{suffix}";
    const char *n = strstr(text, number);
    size_t braces = 0;

    for (const char *p = text; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~' || strchr("/?#", *p) != NULL)
            return false;
        braces += *p == '{' || *p == '}';
    }
    return braces == 6 && n != NULL && strncmp(text, stem, sizeof stem - 1) == 0 &&
           n > text + sizeof stem - 1 && strlen(n) >= sizeof suffix - 1 &&
           strcmp(text + strlen(text) - (sizeof suffix - 1), suffix) == 0;
}

/* The path of an http(s) URL with a good host; NULL where it is none. */
static const char *url_path(const char *text)
{
    char origin[512];
    const char *host = strstr(text, "://"), *path = host != NULL ? strchr(host + 3, '/') : NULL;

    if (path == NULL || (size_t)(path - text) >= sizeof origin)
        return NULL;
    memcpy(origin, text, (size_t)(path - text));
    origin[path - text] = '\0';
    return value_is_origin(origin) && value_is_url_path(path) ? path : NULL;
}

bool value_is_folder_url(const char *text)
{
    const char *path = url_path(text);

    return path != NULL && path[strlen(path) - 1] == '/';
}

bool value_is_index_name(const char *text)
{
    const char *path = text[0] == '/' && value_is_url_path(text) ? text : url_path(text);
    size_t len = path != NULL ? strlen(path) : 0;

    return len >= 5 && strcmp(path + len - 4, ".xml") == 0;
}
