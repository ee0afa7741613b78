#include "server/rules/url.h"

#include <idn2.h>
#include <string.h>

#include "server/rules/ascii.h"
#include "server/rules/url_parts.h"

#define PORT_HTTP  80
#define PORT_HTTPS 443

#define IDN_HOST_MAX_BYTES 1024 /* of UTF-8; its punycode has HOST_MAX_CHARS at most */

/* What stands before the path, read and judged. */
struct front {
    struct url_authority authority;
    bool https;
    size_t rest_at; /* where path and query begin in the input */
};

static bool is_scheme_char(char c)
{
    return ascii_is_alnum(c) || c == '+' || c == '-' || c == '.';
}

/* RFC 3986 3.1 and 4.2. `*at` becomes the place behind "://". */
static enum rule_code read_scheme(const char *text, size_t len, bool *https, size_t *at)
{
    size_t end = 0;

    while (end < len && is_scheme_char(text[end]))
        end++;
    if (end == len || text[end] != ':' || !ascii_is_alpha(text[0])) {
        /* A relative reference has no colon in its first segment. */
        while (end < len && strchr(":/?#", text[end]) == NULL)
            end++;
        return end < len && text[end] == ':' ? RULE_LOC_MALFORMED : RULE_LOC_RELATIVE;
    }
    *https = ascii_equals(text, end, "https");
    if (!*https && !ascii_equals(text, end, "http"))
        return RULE_LOC_SCHEME;
    if (len - end < 3 || memcmp(text + end, "://", 3) != 0)
        return RULE_LOC_MALFORMED;
    *at = end + 3;
    return RULE_OK;
}

static size_t authority_len(const char *text, size_t len)
{
    size_t end = 0;

    while (end < len && text[end] != '/' && text[end] != '?' && text[end] != '#')
        end++;
    return end;
}

static enum rule_code read_front(const char *text, size_t len, struct front *out)
{
    enum rule_code code;
    size_t at, host_port_len;

    if (len == 0)
        return RULE_LOC_MISSING;
    if (len > URL_WORK_SIZE)
        return RULE_LOC_TOO_LONG;
    code = url_check_bytes(text, len);
    if (code == RULE_OK)
        code = read_scheme(text, len, &out->https, &at);
    if (code != RULE_OK)
        return code;
    if (memchr(text + at, '#', len - at) != NULL)
        return RULE_LOC_FRAGMENT;
    host_port_len = authority_len(text + at, len - at);
    out->rest_at = at + host_port_len;
    return url_read_authority(text + at, host_port_len, false, &out->authority);
}

/* Without leading zeros; five digits at most. Returns the end. */
static char *write_port(char *out, uint16_t port)
{
    char digits[5];
    size_t at = sizeof digits;

    do {
        digits[--at] = (char)('0' + port % 10);
        port = (uint16_t)(port / 10);
    } while (port > 0);
    memcpy(out, digits + at, sizeof digits - at);
    return out + (sizeof digits - at);
}

static size_t origin_len(const struct front *f)
{
    uint16_t standard = f->https ? PORT_HTTPS : PORT_HTTP;
    size_t len = (f->https ? 8 : 7) + f->authority.host_len;
    char port[5];

    if (f->authority.port != 0 && f->authority.port != standard)
        len += 1 + (size_t)(write_port(port, f->authority.port) - port);
    return len;
}

/* Fills all of `*out` but what the path decides. */
static void write_origin(const struct front *f, struct url *out)
{
    uint16_t standard = f->https ? PORT_HTTPS : PORT_HTTP;
    uint16_t written = f->authority.port == standard ? 0 : f->authority.port;
    size_t scheme_len = f->https ? 8 : 7;
    char *at = out->text;

    memcpy(at, f->https ? "https://" : "http://", scheme_len);
    at += scheme_len;
    memcpy(at, f->authority.host, f->authority.host_len);
    at += f->authority.host_len;
    if (written != 0) {
        *at++ = ':';
        at = write_port(at, written);
    }
    *at = '\0';
    out->https = f->https;
    out->host_at = (uint16_t)scheme_len;
    out->host_len = (uint16_t)f->authority.host_len;
    out->port = written != 0 ? written : standard;
    out->origin_len = (uint16_t)(at - out->text);
    out->len = out->origin_len;
    out->path_len = 0;
}

enum rule_code url_parse(const char *text, size_t len, struct url *out, rule_set *remarks)
{
    char rest[URL_WORK_SIZE];
    size_t path_len, rest_len;
    struct front front;
    enum rule_code code = read_front(text, len, &front);

    if (code != RULE_OK)
        return code;
    code = url_write_path(text + front.rest_at, len - front.rest_at, rest, sizeof rest, &path_len,
                          &rest_len);
    if (code != RULE_OK)
        return code;
    if (origin_len(&front) + rest_len < LOC_MIN_CHARS)
        return RULE_LOC_TOO_SHORT;
    if (origin_len(&front) + rest_len > LOC_MAX_CHARS)
        return RULE_LOC_TOO_LONG;

    write_origin(&front, out);
    memcpy(out->text + out->origin_len, rest, rest_len);
    out->path_len = (uint16_t)path_len;
    out->len = (uint16_t)(out->origin_len + rest_len);
    out->text[out->len] = '\0';
    if (remarks != NULL && (out->len != len || memcmp(out->text, text, len) != 0))
        *remarks |= RULE_BIT(RULE_LOC_NORMALISED);
    if (remarks != NULL && out->len > LOC_LINT_CHARS)
        *remarks |= RULE_BIT(RULE_LOC_LONG);
    return RULE_OK;
}

bool url_split(const char *text, size_t len, struct url *out)
{
    const char *path, *host, *host_end, *query;
    unsigned port = 0;

    if (len < LOC_MIN_CHARS || len > LOC_MAX_CHARS || memcmp(text, "http", 4) != 0)
        return false;
    out->https = text[4] == 's';
    out->host_at = out->https ? 8 : 7;
    host = text + out->host_at;
    path = memchr(host, '/', len - out->host_at);
    if (memcmp(host - 3, "://", 3) != 0 || path == NULL)
        return false;
    host_end = *host == '[' ? memchr(host, ']', (size_t)(path - host)) : host;
    if (host_end == NULL)
        return false;
    host_end = memchr(host_end, ':', (size_t)(path - host_end));
    if (host_end == NULL)
        host_end = path;
    for (const char *digit = host_end + 1; digit < path; digit++)
        port = port * 10 + (unsigned)(*digit - '0');
    query = memchr(path, '?', (size_t)(text + len - path));
    out->port = port != 0 ? (uint16_t)port : out->https ? PORT_HTTPS : PORT_HTTP;
    out->host_len = (uint16_t)(host_end - host);
    out->origin_len = (uint16_t)(path - text);
    out->path_len = (uint16_t)((query != NULL ? query : text + len) - path);
    out->len = (uint16_t)len;
    memcpy(out->text, text, len);
    out->text[len] = '\0';
    return true;
}

enum rule_code url_parse_origin(const char *text, size_t len, struct url *out)
{
    struct front front;
    enum rule_code code = read_front(text, len, &front);
    size_t rest_len;

    if (code != RULE_OK)
        return code;
    rest_len = len - front.rest_at;
    if (rest_len > 1 || (rest_len == 1 && text[front.rest_at] != '/'))
        return RULE_ORIGIN;
    write_origin(&front, out);
    return RULE_OK;
}

enum rule_code url_parse_host(const char *text, size_t len, char *out)
{
    struct url_authority authority;
    char *at = out;

    /* The root's dot may stand in a Host field: a resolver is asked so, but it is no other site. */
    if (url_read_authority(text, len, true, &authority) != RULE_OK)
        return RULE_HOST;
    memcpy(at, authority.host, authority.host_len);
    at += authority.host_len;
    if (authority.port != 0) {
        *at++ = ':';
        at = write_port(at, authority.port);
    }
    *at = '\0';
    return RULE_OK;
}

/* The host as it stands in a loc that was refused: behind "//" and any user name, before any
 * port. A text without "//" is taken for a host. */
static void find_host(const char **text, size_t *len)
{
    const char *slashes = memmem(*text, *len, "//", 2);
    const char *behind;

    if (slashes != NULL) {
        *len -= (size_t)(slashes + 2 - *text);
        *text = slashes + 2;
    }
    *len = authority_len(*text, *len);
    behind = memrchr(*text, '@', *len);
    if (behind != NULL) {
        *len -= (size_t)(behind + 1 - *text);
        *text = behind + 1;
    }
    behind = memchr(*text, ':', *len);
    if (behind != NULL)
        *len = (size_t)(behind - *text);
}

bool url_punycode_hint(const char *text, size_t len, char *out, size_t size)
{
    struct url_authority authority;
    char host[IDN_HOST_MAX_BYTES + 1];
    char *ascii = NULL;
    bool found;

    if (size > 0)
        out[0] = '\0';
    find_host(&text, &len);
    if (len == 0 || len > IDN_HOST_MAX_BYTES || memchr(text, '\0', len) != NULL)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    /* Non-transitional, as browsers and crawlers map names now (UTS #46). */
    if (idn2_to_ascii_8z(host, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL) != IDN2_OK)
        return false;
    /* A hint that would be refused in its turn is none. */
    found = url_read_authority(ascii, strlen(ascii), false, &authority) == RULE_OK &&
            authority.host_len < size;
    if (found)
        memcpy(out, authority.host, authority.host_len + 1);
    idn2_free(ascii);
    return found;
}

bool url_same_origin(const struct url *a, const struct url *b)
{
    return a->origin_len == b->origin_len && memcmp(a->text, b->text, a->origin_len) == 0;
}

bool url_same_host(const struct url *a, const struct url *b)
{
    return a->port == b->port && a->host_len == b->host_len &&
           memcmp(a->text + a->host_at, b->text + b->host_at, a->host_len) == 0;
}
