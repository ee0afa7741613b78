/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses the text of a value into the field of its setting: the grammars; the table of the kinds,
 * with functions that read, compare and free a value; and the messages for mistakes. */
#include "config/settings.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

#define PORT_MAX 65535u

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

/* Reads the digits at `*at` and moves it past them. False: no digits, or too many. */
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

/* A decimal, digits only. */
static bool value_count(const char *text, uint64_t *out)
{
    uint64_t value;

    if (!read_digits(&text, &value) || *text != '\0')
        return false;
    *out = value;
    return true;
}

/* Bytes: a decimal, perhaps followed by K, M, G or T (powers of 1,024). */
static bool value_size(const char *text, uint64_t *out)
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
    /* A bare number is rejected: it could be seconds or milliseconds. */
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

/* Visible ASCII without spaces, at least one. */
static bool value_is_word(const char *text)
{
    return is_visible(text, false);
}

/* The same with spaces. */
static bool value_is_header(const char *text)
{
    return is_visible(text, true);
}

/* Clears the bits after the prefix. True if any of them was set. */
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

enum value_range {
    VALUE_RANGE_GOOD,
    VALUE_RANGE_MALFORMED,
    VALUE_RANGE_TOO_LONG_4, /* more than 32 bits */
    VALUE_RANGE_TOO_LONG_6, /* more than 128 */
    VALUE_RANGE_HOST_BITS,  /* bits after its prefix are set */
};

#define VALUE_RANGE_SIZE 50 /* of the longest range, with its NUL */

/* An IPv4 address or an IPv6 address without brackets, perhaps followed by `/bits`. With HOST_BITS,
 * `whole` gets the range that the address lies in. */
static enum value_range value_ip_range(const char *text, char whole[VALUE_RANGE_SIZE])
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
    /* Some programs read a leading zero as octal. */
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

/* The length of the `[v6]` that `text` begins with; 0: it does not. */
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

/* `1.2.3.4:80` or `[::1]:80`; port 0 to 65535. */
static bool value_is_address(const char *text)
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

/* `host` or `host:port`: letters, digits, hyphens and dots, or a bracketed IPv6 address. */
static bool value_is_host(const char *text)
{
    char normal[HOST_MAX_CHARS + 7];

    return url_parse_host(text, strlen(text), normal) == RULE_OK;
}

/* `http://host[:port]` or https, with or without a slash at the end. */
static bool value_is_origin(const char *text)
{
    struct url origin;

    return url_parse_origin(text, strlen(text), &origin) == RULE_OK;
}

/* Begins with a slash and has neither blanks nor `?` nor `#`. */
static bool value_is_url_path(const char *text)
{
    if (text[0] != '/')
        return false;
    for (const char *p = text; *p != '\0'; p++)
        if (*p <= ' ' || *p > '~' || *p == '?' || *p == '#')
            return false;
    return true;
}

/* A file in the folder must have a loc. */
static bool value_is_folder_url(const char *text)
{
    char loc[LOC_MAX_CHARS + 2];
    size_t len = strlen(text);
    struct url url;

    if (len == 0 || text[len - 1] != '/' || strchr(text, '?') != NULL ||
        (size_t)snprintf(loc, sizeof loc, "%ssitemap.xml", text) >= sizeof loc)
        return false;
    return url_parse(loc, strlen(loc), &url, NULL) == RULE_OK;
}

static bool value_is_url(const char *text)
{
    struct url url;

    return url_parse(text, strlen(text), &url, NULL) == RULE_OK;
}

/* A path that ends in .xml. */
static bool value_is_index_path(const char *text)
{
    return scope_check_index_path(text) == RULE_OK;
}

/* A path that ends in .xml, or an http(s) URL with such a path. */
static bool value_is_index_name(const char *text)
{
    struct url url;

    if (text[0] == '/')
        return value_is_index_path(text);
    return url_parse(text, strlen(text), &url, NULL) == RULE_OK &&
           value_is_index_path(url.text + url.origin_len);
}

/* {stem}, {n}, {suffix}: each once, in this order, with text between the first two, no slash. */
static bool value_is_pattern(const char *text)
{
    return scope_check_pattern(text) == RULE_OK;
}

/* libpq checks the rest. */
static bool value_is_postgres(const char *text)
{
    const char *rest = strncmp(text, "postgresql://", 13) == 0 ? text + 13
                       : strncmp(text, "postgres://", 11) == 0 ? text + 11
                                                               : "";

    return *rest != '\0' && value_is_word(text);
}

/* An identifier that means the same with and without quotes, is not PostgreSQL's own or the public
 * schema, and is not truncated (NAMEDATALEN). */
static bool value_is_identifier(const char *text)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    size_t len = strspn(text, characters);

    return len > 0 && len < 64 && text[len] == '\0' && !ascii_is_digit(text[0]) &&
           strncmp(text, "pg_", 3) != 0 && strcmp(text, "public") != 0 &&
           strcmp(text, "information_schema") != 0;
}

static bool is_any(const char *text)
{
    return *text != '\0';
}

/* A Windows path is rejected: it would be a file name in the folder that the server was started in.
 */
static bool value_is_path(const char *text)
{
    bool drive = ascii_is_alpha(text[0]) && text[1] == ':' && (text[2] == '\\' || text[2] == '/');

    return is_any(text) && !drive && strncmp(text, "\\\\", 2) != 0;
}

enum setting_storage {
    STORED_PLAIN, /* `width` bytes, which own nothing */
    STORED_TEXT,  /* a char *, owned; NULL: none */
    STORED_ALIAS, /* a struct config_alias, whose texts are owned (list only) */
};

/* By kind. */
static const struct setting_trait {
    enum setting_storage storage;
    bool (*holds)(
        const char *text); /* STORED_TEXT, but for choices and ranges: whether `text` is valid */
    const char *must;      /* the message for an invalid text */
} setting_traits[] = {
    [SETTING_WORD] = {STORED_TEXT, value_is_word,
                      "must be visible ASCII characters without spaces"},
    [SETTING_PATH] = {STORED_TEXT, value_is_path,
                      "must be a path such as /srv/sitemaps, not empty and not a Windows path"},
    [SETTING_OFF_OR_PATH] = {STORED_TEXT, is_any, "must not be empty"},
    [SETTING_ADDRESS] = {STORED_TEXT, value_is_address,
                         "must be an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080"},
    [SETTING_IP_RANGE] =
        {STORED_TEXT, NULL,
         "must be an IP address or range, such as 10.0.0.1, 10.0.0.0/8 or fd00::/8"},
    [SETTING_ORIGIN] =
        {STORED_TEXT, value_is_origin,
         "must be a scheme and a host and nothing more, such as https://www.example.com"},
    [SETTING_HOST] = {STORED_TEXT, value_is_host, "must be a host, such as cdn.example.com"},
    [SETTING_INDEX_PATH] = {STORED_TEXT, value_is_index_path,
                            "must be a path that ends in .xml, such as /sitemap_index.xml"},
    [SETTING_PATTERN] =
        {STORED_TEXT, value_is_pattern,
         "must contain {stem} first, then {n}, then {suffix} last, such as {stem}-{n}{suffix}"},
    [SETTING_ALIAS] = {STORED_ALIAS, NULL,
                       "must be two paths, such as /sitemap.xml -> /sitemap_index.xml"},
    [SETTING_WORDS] = {STORED_TEXT, is_any, "must not be empty"},
    [SETTING_FOLDER_URL] =
        {STORED_TEXT, value_is_folder_url,
         "must be a URL that ends in a slash, such as https://www.example.com/sitemaps/"},
    [SETTING_URL] = {STORED_TEXT, value_is_url,
                     "must be a URL, such as https://www.example.com/sitemap_index.xml"},
    [SETTING_INDEX_NAME] = {STORED_TEXT, value_is_index_name,
                            "must be the path or URL of an index, such as /sitemap_index.xml"},
    [SETTING_SECRET] = {STORED_TEXT, value_is_word,
                        "must be visible ASCII characters without spaces"},
    [SETTING_POSTGRES] = {STORED_TEXT, value_is_postgres,
                          "must be a URL of PostgreSQL, such as "
                          "postgresql://sitemapd@db1.internal,db2.internal/sitemapd"},
    [SETTING_IDENTIFIER] = {STORED_TEXT, value_is_identifier,
                            "must be made of a-z, 0-9 and _, begin with a letter or _, have at "
                            "most 63 characters and not begin with pg_ or be public"},
    [SETTING_HEADER] = {STORED_TEXT, value_is_header,
                        "must be visible ASCII characters and spaces"},
    [SETTING_CHOICE] = {STORED_TEXT, NULL, "must be one of: "},
    [SETTING_BOOL] = {STORED_PLAIN, NULL, "must be yes or no (also on, off, true, false)"},
    [SETTING_COUNT] = {STORED_PLAIN, NULL, "must be a number, digits only"},
    [SETTING_PERCENT] = {STORED_PLAIN, NULL, "must be a percentage, such as 30%"},
    [SETTING_SIZE] = {STORED_PLAIN, NULL, "must be a size, such as 512K, 64M or 1G"},
    [SETTING_DURATION] = {STORED_PLAIN, NULL, "must be a duration, such as 500ms, 30s, 5m or 1h"},
};

static const void *field_of(const struct setting *s, const void *base)
{
    return (const char *)base + s->offset;
}

static size_t count_of(const struct setting *s, const void *base)
{
    return *(const size_t *)(const void *)((const char *)base + s->count_offset);
}

/* The field in `base`, a struct config or a section; for a list, the pointer to its elements. */
static void *setting_field(const struct setting *s, void *base)
{
    return (char *)base + s->offset;
}

/* How many elements a list has. */
static size_t *setting_count(const struct setting *s, void *base)
{
    return (size_t *)(void *)((char *)base + s->count_offset);
}

/* Adds a zeroed element of `size` bytes. A zeroed element always follows the last one: lists of
 * texts end with NULL. NULL when out of memory. */
static void *setting_list_grow(const struct setting *s, void *base, size_t size)
{
    void **array = setting_field(s, base);
    size_t *count = setting_count(s, base);
    char *grown = reallocarray(*array, *count + 2, size);

    if (grown == NULL)
        return NULL;
    *array = grown;
    memset(grown + *count * size, 0, 2 * size);
    return grown + (*count)++ * size;
}

/* ---- one value of a storage ------------------------------------------------------------ */

static void value_free(enum setting_storage storage, void *value)
{
    struct config_alias *alias = value;

    switch (storage) {
    case STORED_TEXT:
        free(*(char **)value);
        break;
    case STORED_ALIAS:
        free(alias->from);
        free(alias->to);
        break;
    case STORED_PLAIN:
        break;
    }
}

/* ---- the field, or each element of a list ---------------------------------------------- */

static size_t element_size(enum setting_storage storage)
{
    return storage == STORED_ALIAS ? sizeof(struct config_alias) : sizeof(char *);
}

/* Whether both, a struct config each or sections of one kind, have the same value. Compares lists,
 * which are of texts, element by element. */
static bool setting_equal(const struct setting *s, const void *a, const void *b)
{
    const void *x = field_of(s, a), *y = field_of(s, b);

    if (s->count_offset == 0)
        return setting_traits[s->kind].storage == STORED_TEXT
                   ? text_equal(*(char *const *)x, *(char *const *)y)
                   : memcmp(x, y, s->width) == 0;
    if (count_of(s, a) != count_of(s, b))
        return false;
    for (size_t i = 0; i < count_of(s, a); i++)
        if (!text_equal((*(char **const *)x)[i], (*(char **const *)y)[i]))
            return false;
    return true;
}

void setting_clear(const struct setting *s, void *base)
{
    enum setting_storage storage = setting_traits[s->kind].storage;
    void *field = setting_field(s, base);

    if (s->count_offset == 0) {
        value_free(storage, field);
    } else {
        char *array = *(char **)field;

        for (size_t i = 0; i < count_of(s, base); i++)
            value_free(storage, array + i * element_size(storage));
        free(array);
        *setting_count(s, base) = 0;
    }
    memset(field, 0, s->width);
}

/* From text to field: parses a value by the kind of its setting and stores it. */

#define MESSAGE_SIZE 512
#define ALIAS_ARROW  "->"

void mistakes_add(struct mistakes *m, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    int at = 0;
    va_list args;

    m->count++;
    if (m->report == NULL)
        return;
    if (m->name != NULL)
        at = snprintf(message, sizeof message, "%s: ", m->name);
    if (at < 0 || (size_t)at >= sizeof message)
        at = 0;
    va_start(args, format);
    vsnprintf(message + at, sizeof message - (size_t)at, format, args);
    va_end(args);
    m->report(m->context, m->file, m->line, message);
}

/* ---- text ------------------------------------------------------------------------------ */

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    for (const char *p = choices; *p != '\0'; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");

        if (n == len && strncmp(p, text, n) == 0)
            return true;
        p += n;
    }
    return false;
}

/* The message for an invalid `text`: what it must be. NULL: it is valid. */
static const char *evaluate_text(const struct setting *s, const char *text)
{
    const struct setting_trait *trait = &setting_traits[s->kind];

    if (s->kind == SETTING_CHOICE)
        return is_choice(s->choices, text) ? NULL : trait->must;
    return trait->holds(text) ? NULL : trait->must;
}

/* Reports that `text` is invalid and shows it unless it is a secret. The report of a variable or
 * flag already names it. */
static void complain(const struct setting *s, const char *text, const char *must,
                     struct mistakes *m)
{
    const char *more = s->kind == SETTING_CHOICE ? s->choices : "";
    const char *key = m->name == NULL ? s->key : "", *colon = m->name == NULL ? ": " : "";

    if (s->kind == SETTING_SECRET || s->kind == SETTING_POSTGRES)
        mistakes_add(m, "%s%s%s", key, colon, must);
    else
        mistakes_add(m, "%s%s\"%.100s\" %s%s", key, colon, text, must, more);
}

/* ---- lists ----------------------------------------------------------------------------- */

static void assign_alias(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char from[PATH_MAX];
    const char *arrow = strstr(text, ALIAS_ARROW), *to;
    size_t len = arrow != NULL ? (size_t)(arrow - text) : 0;
    struct config_alias *alias;

    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    to = arrow != NULL ? arrow + strlen(ALIAS_ARROW) + strspn(arrow + strlen(ALIAS_ARROW), " \t")
                       : "";
    if (len >= sizeof from)
        len = 0;
    memcpy(from, text, len);
    from[len] = '\0';
    if (!value_is_url_path(from) || !value_is_url_path(to)) {
        complain(s, text, setting_traits[s->kind].must, m);
        return;
    }
    alias = setting_list_grow(s, base, sizeof *alias);
    if (alias != NULL) {
        alias->from = strdup(from);
        alias->to = strdup(to);
    }
    if (alias == NULL || alias->from == NULL || alias->to == NULL)
        mistakes_add(m, "out of memory");
}

/* True for a range. A range with host bits is rejected, since it could trust a network instead of a
 * machine; the message suggests the range that may be intended. */
static bool check_range(const struct setting *s, const char *text, struct mistakes *m)
{
    char whole[VALUE_RANGE_SIZE], must[sizeof whole + 128];

    switch (value_ip_range(text, whole)) {
    case VALUE_RANGE_GOOD:
        return true;
    case VALUE_RANGE_MALFORMED:
        complain(s, text, setting_traits[s->kind].must, m);
        break;
    case VALUE_RANGE_TOO_LONG_4:
        complain(s, text, "must have a prefix of at most 32 bits", m);
        break;
    case VALUE_RANGE_TOO_LONG_6:
        complain(s, text, "must have a prefix of at most 128 bits", m);
        break;
    case VALUE_RANGE_HOST_BITS:
        snprintf(must, sizeof must,
                 "has bits set after its prefix; write %s for the range, or the address alone",
                 whole);
        complain(s, text, must, m);
        break;
    }
    return false;
}

static bool check_word(const struct setting *s, const char *text, struct mistakes *m)
{
    const char *must;

    if (s->kind == SETTING_IP_RANGE)
        return check_range(s, text, m);
    must = evaluate_text(s, text);
    if (must != NULL)
        complain(s, text, must, m);
    return must == NULL;
}

/* Origins and hosts are kept in their normal form, so that they can be compared byte by byte. NULL
 * when out of memory. */
static char *copy_normal(const struct setting *s, const char *text)
{
    struct url origin;
    char host[HOST_MAX_CHARS + 7];

    if (s->kind == SETTING_ORIGIN && url_parse_origin(text, strlen(text), &origin) == RULE_OK)
        return strdup(origin.text);
    if (s->kind == SETTING_URL && url_parse(text, strlen(text), &origin, NULL) == RULE_OK)
        return strdup(origin.text);
    if (s->kind == SETTING_HOST && url_parse_host(text, strlen(text), host) == RULE_OK)
        return strdup(host);
    return strdup(text);
}

static void assign_text(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char *copy, **slot;

    if (!check_word(s, text, m))
        return;
    if (s->kind == SETTING_OFF_OR_PATH && strcmp(text, "off") == 0) {
        setting_clear(s, base);
        return;
    }
    copy = copy_normal(s, text);
    slot = s->count_offset != 0 ? setting_list_grow(s, base, sizeof *slot) : setting_field(s, base);
    if (copy == NULL || slot == NULL) {
        free(copy);
        if (slot != NULL && s->count_offset != 0)
            --*setting_count(s, base);
        mistakes_add(m, "out of memory");
        return;
    }
    free(*slot);
    *slot = copy;
}

/* ---- numbers --------------------------------------------------------------------------- */

static bool read_number(const struct setting *s, const char *text, uint64_t *out)
{
    char digits[24];
    size_t len = strlen(text);

    switch (s->kind) {
    case SETTING_SIZE:
        return value_size(text, out);
    case SETTING_DURATION:
        return value_duration(text, out);
    case SETTING_PERCENT:
        if (len > 0 && text[len - 1] == '%')
            len--;
        if (len >= sizeof digits)
            return false;
        memcpy(digits, text, len);
        digits[len] = '\0';
        return value_count(digits, out);
    default:
        return value_count(text, out);
    }
}

/* Writes a bound as in the file. */
static void write_number(enum setting_kind kind, uint64_t value, char *out, size_t size)
{
    static const struct {
        enum setting_kind kind;
        uint64_t factor;
        const char *unit;
    } units[] = {
        {SETTING_SIZE, 1ull << 40, "T"},   {SETTING_SIZE, 1ull << 30, "G"},
        {SETTING_SIZE, 1ull << 20, "M"},   {SETTING_SIZE, 1ull << 10, "K"},
        {SETTING_DURATION, 86400000, "d"}, {SETTING_DURATION, 3600000, "h"},
        {SETTING_DURATION, 60000, "m"},    {SETTING_DURATION, 1000, "s"},
        {SETTING_DURATION, 1, "ms"},       {SETTING_PERCENT, 1, "%"},
    };

    for (size_t i = 0; value > 0 && i < sizeof units / sizeof *units; i++) {
        if (units[i].kind == kind && value % units[i].factor == 0) {
            snprintf(out, size, "%llu%s", (unsigned long long)(value / units[i].factor),
                     units[i].unit);
            return;
        }
    }
    snprintf(out, size, "%llu", (unsigned long long)value);
}

static void assign_number(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char must[128], min[32], max[32];
    uint64_t value;

    if (!read_number(s, text, &value)) {
        complain(s, text, setting_traits[s->kind].must, m);
        return;
    }
    if (value < s->min || value > s->max) {
        write_number(s->kind, s->min, min, sizeof min);
        write_number(s->kind, s->max, max, sizeof max);
        snprintf(must, sizeof must, "must be from %s to %s", min, max);
        complain(s, text, must, m);
        return;
    }
    if (s->width == sizeof(uint64_t))
        *(uint64_t *)setting_field(s, base) = value;
    else
        *(uint32_t *)setting_field(s, base) = (uint32_t)value; /* a test checks that max fits */
}

static void assign_words(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    char *copy = strdup(text), *rest, *word;

    if (copy == NULL) {
        mistakes_add(m, "out of memory");
        return;
    }
    word = strtok_r(copy, " \t\r\n", &rest);
    if (word == NULL)
        assign_text(s, base, "", m); /* reports that the value is missing */
    for (; word != NULL; word = strtok_r(NULL, " \t\r\n", &rest))
        assign_text(s, base, word, m);
    free(copy);
}

void setting_assign(const struct setting *s, void *base, const char *text, struct mistakes *m)
{
    switch (s->kind) {
    case SETTING_BOOL:
        if (!value_bool(text, setting_field(s, base)))
            complain(s, text, setting_traits[s->kind].must, m);
        return;
    case SETTING_COUNT:
    case SETTING_PERCENT:
    case SETTING_SIZE:
    case SETTING_DURATION:
        assign_number(s, base, text, m);
        return;
    case SETTING_ALIAS:
        assign_alias(s, base, text, m);
        return;
    case SETTING_WORDS:
        assign_words(s, base, text, m);
        return;
    default:
        assign_text(s, base, text, m);
    }
}

/* Starts at *at and moves it past what it finds, so lists in the same order cost one step each. */
static const struct config_named *find_named(const struct config *c, const struct section_table *t,
                                             const char *name, size_t *at)
{
    size_t count = section_count(c, t);

    for (size_t i = 0; i < count; i++) {
        const struct config_named *one = section_at(c, t, (*at + i) % count);
        if (strcmp(one->name, name) == 0) {
            *at = (*at + i + 1) % count;
            return one;
        }
    }
    return NULL;
}

/* Reports the sections of `a` that `b` lacks (as `missing`) and, with `each_setting`, the settings
 * that differ in sections of both. A reload may change all of them. */
static void compare_sections(const struct config *a, const struct config *b,
                             const struct section_table *t, const char *missing, bool each_setting,
                             config_difference *each, void *context)
{
    size_t at = 0;

    for (size_t i = 0; i < section_count(a, t); i++) {
        const struct config_named *x = section_at(a, t, i), *y = find_named(b, t, x->name, &at);
        char title[128];

        snprintf(title, sizeof title, "%s \"%s\"", t->section, x->name);
        if (y == NULL)
            each(context, title, missing, true);
        for (size_t k = 0; y != NULL && each_setting && k < t->setting_count; k++)
            if (!setting_equal(&t->settings[k], x, y))
                each(context, title, t->settings[k].key, true);
    }
}

void config_compare(const struct config *a, const struct config *b, config_difference *each,
                    void *context)
{
    for (size_t i = 0; i < config_settings_count; i++) {
        const struct setting *s = &config_settings[i];
        /* Two defaults are equal, though they may depend on the environment: the database's default
         * differs once root has switched to another user. */
        if (a->set_by[i].level == LEVEL_DEFAULT && b->set_by[i].level == LEVEL_DEFAULT)
            continue;
        /* A secret is read once and wiped: there is nothing to compare. */
        if (s->kind != SETTING_SECRET && !setting_equal(s, a, b))
            each(context, s->section, s->key, s->live);
    }
    for (size_t i = 0; i < config_sections_count; i++) {
        compare_sections(a, b, &config_sections[i], "(removed)", true, each, context);
        compare_sections(b, a, &config_sections[i], "(added)", false, each, context);
    }
}
