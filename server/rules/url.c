/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses a URL in one pass and writes its normal form. */
#include "server/rules/url.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "server/base/scan.h"
#include "server/base/str.h"
#include "server/base/text.h"
#include "server/rules/code.h"
#include "server/rules/limits.h"

/* The table of Unicode 15: characters beyond ASCII with the property White_Space or the category Cf
 * (format). */

#define HIDDEN(name)                                                                               \
    "has the character " name " in it, which is invisible; remove it, or percent-encode it"

static const struct hidden {
    uint32_t first, last;
    const char *sentence;
} hidden[] = {
    {0x0085, 0x0085, HIDDEN("U+0085 next line")},
    {0x00a0, 0x00a0, HIDDEN("U+00A0 no-break space")},
    {0x00ad, 0x00ad, HIDDEN("U+00AD soft hyphen")},
    {0x0600, 0x0605, HIDDEN("an Arabic or Syriac format character (U+0600 to U+0605)")},
    {0x061c, 0x061c, HIDDEN("an Arabic or Syriac format character (U+061C)")},
    {0x06dd, 0x06dd, HIDDEN("an Arabic or Syriac format character (U+06DD)")},
    {0x070f, 0x070f, HIDDEN("an Arabic or Syriac format character (U+070F)")},
    {0x0890, 0x0891, HIDDEN("an Arabic or Syriac format character (U+0890 to U+0891)")},
    {0x08e2, 0x08e2, HIDDEN("an Arabic or Syriac format character (U+08E2)")},
    {0x1680, 0x1680, HIDDEN("U+1680 ogham space mark")},
    {0x180e, 0x180e, HIDDEN("U+180E mongolian vowel separator")},
    {0x2000, 0x2000, HIDDEN("U+2000 en quad")},
    {0x2001, 0x2001, HIDDEN("U+2001 em quad")},
    {0x2002, 0x2002, HIDDEN("U+2002 en space")},
    {0x2003, 0x2003, HIDDEN("U+2003 em space")},
    {0x2004, 0x2004, HIDDEN("U+2004 three-per-em space")},
    {0x2005, 0x2005, HIDDEN("U+2005 four-per-em space")},
    {0x2006, 0x2006, HIDDEN("U+2006 six-per-em space")},
    {0x2007, 0x2007, HIDDEN("U+2007 figure space")},
    {0x2008, 0x2008, HIDDEN("U+2008 punctuation space")},
    {0x2009, 0x2009, HIDDEN("U+2009 thin space")},
    {0x200a, 0x200a, HIDDEN("U+200A hair space")},
    {0x200b, 0x200b, HIDDEN("U+200B zero width space")},
    {0x200c, 0x200c, HIDDEN("U+200C zero width non-joiner")},
    {0x200d, 0x200d, HIDDEN("U+200D zero width joiner")},
    {0x200e, 0x200e, HIDDEN("U+200E left-to-right mark")},
    {0x200f, 0x200f, HIDDEN("U+200F right-to-left mark")},
    {0x2028, 0x2028, HIDDEN("U+2028 line separator")},
    {0x2029, 0x2029, HIDDEN("U+2029 paragraph separator")},
    {0x202a, 0x202a, HIDDEN("U+202A left-to-right embedding")},
    {0x202b, 0x202b, HIDDEN("U+202B right-to-left embedding")},
    {0x202c, 0x202c, HIDDEN("U+202C pop directional formatting")},
    {0x202d, 0x202d, HIDDEN("U+202D left-to-right override")},
    {0x202e, 0x202e, HIDDEN("U+202E right-to-left override")},
    {0x202f, 0x202f, HIDDEN("U+202F narrow no-break space")},
    {0x205f, 0x205f, HIDDEN("U+205F medium mathematical space")},
    {0x2060, 0x2060, HIDDEN("U+2060 word joiner")},
    {0x2061, 0x2061, HIDDEN("U+2061 function application")},
    {0x2062, 0x2062, HIDDEN("U+2062 invisible times")},
    {0x2063, 0x2063, HIDDEN("U+2063 invisible separator")},
    {0x2064, 0x2064, HIDDEN("U+2064 invisible plus")},
    {0x2066, 0x2066, HIDDEN("U+2066 left-to-right isolate")},
    {0x2067, 0x2067, HIDDEN("U+2067 right-to-left isolate")},
    {0x2068, 0x2068, HIDDEN("U+2068 first strong isolate")},
    {0x2069, 0x2069, HIDDEN("U+2069 pop directional isolate")},
    {0x206a, 0x206a, HIDDEN("U+206A inhibit symmetric swapping")},
    {0x206b, 0x206b, HIDDEN("U+206B activate symmetric swapping")},
    {0x206c, 0x206c, HIDDEN("U+206C inhibit Arabic form shaping")},
    {0x206d, 0x206d, HIDDEN("U+206D activate Arabic form shaping")},
    {0x206e, 0x206e, HIDDEN("U+206E national digit shapes")},
    {0x206f, 0x206f, HIDDEN("U+206F nominal digit shapes")},
    {0x3000, 0x3000, HIDDEN("U+3000 ideographic space")},
    {0xfeff, 0xfeff, HIDDEN("U+FEFF zero width no-break space")},
    {0xfff9, 0xfffb, HIDDEN("an interlinear annotation character (U+FFF9 to U+FFFB)")},
    {0x110bd, 0x110bd, HIDDEN("a Kaithi number sign (U+110BD)")},
    {0x110cd, 0x110cd, HIDDEN("a Kaithi number sign (U+110CD)")},
    {0x13430, 0x1343f, HIDDEN("a hieroglyph format control (U+13430 to U+1343F)")},
    {0x1bca0, 0x1bca3, HIDDEN("a shorthand format control (U+1BCA0 to U+1BCA3)")},
    {0x1d173, 0x1d17a, HIDDEN("a musical format character (U+1D173 to U+1D17A)")},
    {0xe0001, 0xe0001, HIDDEN("a tag character (U+E0001)")},
    {0xe0020, 0xe007f, HIDDEN("a tag character (U+E0020 to U+E007F)")},
};
#define HIDDEN_COUNT (sizeof hidden / sizeof *hidden)

static uint32_t decode_utf8(const char *text, size_t len)
{
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = (unsigned char)text[0] & first_bits[len];

    for (size_t i = 1; i < len; i++)
        c = c << 6 | ((unsigned char)text[i] & 0x3f);
    return c;
}

const char *hidden_sentence(const char *text, size_t char_len)
{
    size_t low = 0, high = HIDDEN_COUNT;
    uint32_t c;

    if (char_len < 2 || char_len > 4)
        return NULL;
    c = decode_utf8(text, char_len);
    while (low < high) {
        size_t middle = (low + high) / 2;

        if (c > hidden[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < HIDDEN_COUNT && c >= hidden[low].first ? hidden[low].sentence : NULL;
}

size_t hidden_front(const char *text, size_t len)
{
    size_t step = len > 0 ? utf8_char_len(text, len) : 0;

    return hidden_sentence(text, step) != NULL ? step : 0;
}

size_t hidden_back(const char *text, size_t len)
{
    size_t step = 1;

    while (step < 4 && step < len && ((unsigned char)text[len - step] & 0xc0) == 0x80)
        step++;
    return step <= len && utf8_char_len(text + len - step, step) == step
               ? (hidden_sentence(text + len - step, step) != NULL ? step : 0)
               : 0;
}

/* The normal form may be shorter than the input (`%41` becomes `A`, dot segments vanish). This
 * buffer is large enough for any loc of LOC_MAX_CHARS when fully encoded; a longer input is
 * RULE_LOC_TOO_LONG at once. */
#define URL_WORK_SIZE 8192

struct url_authority {
    char host[HOST_MAX_CHARS + 1]; /* normalised, NUL-terminated, brackets included */
    size_t host_len;
    uint16_t port; /* 0: none is written */
};

#define LABEL_MAX_CHARS 63
#define PORT_MAX        65535u

/* Only digits; leading zeros do not count. An empty port means none (RFC 3986 3.2.3). */
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

/* RFC 1123 2.1 and RFC 1035 2.3.4, plus the underscore, which occurs in real host names. */
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

/* Whether browsers and crawlers parse the last label as a number, and therefore the host as an IPv4
 * address, in forms that RFC 3986 does not have (WHATWG URL, "ends in a number checker"). */
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

/* "[" IPv6address "]"; zones and IPvFuture never mean public hosts. An address has many spellings;
 * libc writes that of RFC 5952 4. */
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

/* Reads `host[:port]`. `rooted` allows a dot at the end of the host name, and drops it. RULE_OK,
 * RULE_LOC_CREDENTIALS, RULE_LOC_HOST, RULE_LOC_HOST_IDN or RULE_LOC_PORT; then `*out` is
 * undefined. */
static enum rule_code url_read_authority(const char *text, size_t len, bool rooted,
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

/* What each byte is in a URL (RFC 3986 2, 3.3, 3.4):
 *   u unreserved      p other characters of path and query      % percent-encoding
 *   # fragment        b brackets, of IPv6 hosts only
 *   c control         s space          x in no URL: it must be percent-encoded   h not ASCII */
#define CONTROLS_32 "cccccccccccccccccccccccccccccccc"
#define LETTERS_26  "uuuuuuuuuuuuuuuuuuuuuuuuuu"
#define HIGH_64     "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"
static const char char_classes[] = CONTROLS_32
    /*  !"#$%&'()*+,-./0123456789:;<=>? */
    "spx#p%pppppppuupuuuuuuuuuuppxpxp"
    /* @A-Z[\]^_ */
    "p" LETTERS_26 "bxbxu"
    /* `a-z{|}~ and DEL */
    "x" LETTERS_26 "xxxuc" HIGH_64 HIGH_64;
_Static_assert(sizeof char_classes == 256 + 1, "one class for each byte");

static inline char class_of(char c)
{
    return char_classes[(unsigned char)c];
}

/* The classes 'u' and 'p', which differ in two bits. */
static inline bool is_plain(char c)
{
    return (class_of(c) & ~('u' ^ 'p')) == ('u' & 'p');
}

/* The number of characters from here on that need no change in a path or query. A loc is mostly one
 * or two such runs: this loop determines the cost of each of a million locs. */
static size_t plain_run(const char *text, size_t len)
{
    size_t run = 0;

    while (run < len && is_plain(text[run]))
        run++;
    return run;
}

/* The same within one path segment. */
static size_t segment_run(const char *text, size_t len)
{
    size_t run = 0;

    while (run < len && text[run] != '/' && text[run] != '?' && is_plain(text[run]))
        run++;
    return run;
}

/* Checks each byte of a URL reference: RULE_OK, or the first fault: RULE_LOC_CONTROL,
 * RULE_LOC_SPACE, RULE_LOC_UTF8 or RULE_LOC_MALFORMED. */
static enum rule_code url_check_bytes(const char *text, size_t len)
{
    size_t front = 0; /* length of leading invisible characters */

    for (size_t i = plain_run(text, len); i < len; i += plain_run(text + i, len - i)) {
        size_t step = 1;

        switch (class_of(text[i])) {
        case 'c':
            return RULE_LOC_CONTROL;
        case 's':
            return RULE_LOC_SPACE;
        case 'x':
            return RULE_LOC_MALFORMED;
        case 'h':
            step = utf8_char_len(text + i, len - i);
            if (step == 0)
                return RULE_LOC_UTF8;
            if (utf8_is_control(text + i, step))
                return RULE_LOC_CONTROL;
            if (i == front && hidden_sentence(text + i, step) != NULL)
                front += step; /* no scheme can follow: RULE_LOC_MALFORMED */
            else if (hidden_sentence(text + i, step) != NULL)
                return RULE_LOC_SPACE;
            break;
        default:
            break;
        }
        i += step;
    }
    return RULE_OK;
}

struct writer {
    char *data; /* begins with the first slash of the path */
    size_t size;
    size_t len;
    size_t segment; /* the beginning of the current segment, after a slash */
    bool full;
};

static inline void append_char(struct writer *w, char c)
{
    if (w->len < w->size)
        w->data[w->len++] = c;
    else
        w->full = true;
}

static inline void append_all(struct writer *w, const char *text, size_t len)
{
    if (len > w->size - w->len) {
        len = w->size - w->len;
        w->full = true;
    }
    memcpy(w->data + w->len, text, len);
    w->len += len;
}

static void append_encoded(struct writer *w, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";

    append_char(w, '%');
    append_char(w, hex[byte >> 4]);
    append_char(w, hex[byte & 15]);
}

/* RFC 3986 5.2.4 at the end of a segment: removes ".", and ".." with the segment before it. True if
 * it was one of these; the text then ends with the slash before it. */
static bool remove_dot_segment(struct writer *w)
{
    const char *segment = w->data + w->segment;
    size_t len = w->len - w->segment;

    if (len < 1 || len > 2 || segment[0] != '.' || segment[len - 1] != '.')
        return false;
    w->len = w->segment;
    if (len == 2 && w->len > 1) {
        do
            w->len--;
        while (w->data[w->len - 1] != '/');
        w->segment = w->len;
    }
    return true;
}

/* Decodes unreserved characters, so that a resource has one form; all others, also the slash, stay
 * encoded, in upper case (RFC 3986 6.2.2.1, 6.2.2.2). */
static bool append_percent(struct writer *w, const char *text, size_t left)
{
    int high = left > 2 ? ascii_hex_value(text[1]) : -1;
    int low = left > 2 ? ascii_hex_value(text[2]) : -1;
    char c;

    if (high < 0 || low < 0)
        return false;
    c = (char)(high << 4 | low);
    if (class_of(c) == 'u')
        append_char(w, c);
    else
        append_encoded(w, (unsigned char)c);
    return true;
}

/* Appends one character of the path or query. Sets `*step` to its bytes. */
static enum rule_code append_next(struct writer *w, const char *text, size_t left, size_t *step)
{
    *step = 1;
    switch (class_of(*text)) {
    case 'u':
    case 'p':
        append_char(w, *text);
        return RULE_OK;
    case 'h': /* of an IRI, as in RFC 3987 3.1 */
        append_encoded(w, (unsigned char)*text);
        return RULE_OK;
    case '%':
        *step = 3;
        return append_percent(w, text, left) ? RULE_OK : RULE_LOC_PERCENT;
    default: /* brackets: RFC 3986 allows them in the host alone */
        return RULE_LOC_MALFORMED;
    }
}

/* Writes path and query in normal form to `out`, `size` bytes, without a NUL: the path begins with
 * a slash even if the input does not. `text` has passed url_check_bytes and has no fragment.
 * RULE_OK, RULE_LOC_PERCENT, RULE_LOC_MALFORMED or RULE_LOC_TOO_LONG (`out` is full). */
static enum rule_code url_write_path(const char *text, size_t len, char *out, size_t size,
                                     size_t *path_len, size_t *total_len)
{
    struct writer w = {.data = out, .size = size};
    size_t i = len > 0 && text[0] == '/' ? 1 : 0;
    size_t step;

    append_char(&w, '/');
    w.segment = w.len;
    for (; i < len && text[i] != '?' && !w.full; i += step) {
        enum rule_code code = RULE_OK;

        step = segment_run(text + i, len - i);
        if (step > 0) {
            append_all(&w, text + i, step);
            continue;
        }
        step = 1;
        if (text[i] != '/') {
            code = append_next(&w, text + i, len - i, &step);
        } else if (!remove_dot_segment(&w)) {
            append_char(&w, '/');
            w.segment = w.len;
        }
        if (code != RULE_OK)
            return code;
    }
    if (!w.full)
        (void)remove_dot_segment(&w);
    *path_len = w.len;

    for (; i < len && !w.full; i += step) {
        enum rule_code code = append_next(&w, text + i, len - i, &step);

        if (code != RULE_OK)
            return code;
    }
    *total_len = w.len;
    return w.full ? RULE_LOC_TOO_LONG : RULE_OK;
}

#define PORT_HTTP  80
#define PORT_HTTPS 443

#define IDN_HOST_MAX_BYTES 1024 /* of UTF-8; its punycode has HOST_MAX_CHARS at most */

/* The parsed part before the path. */
struct front {
    struct url_authority authority;
    bool https;
    size_t rest_at; /* the offset of path and query in the input */
};

static bool is_scheme_char(char c)
{
    return ascii_is_alnum(c) || c == '+' || c == '-' || c == '.';
}

/* RFC 3986 3.1 and 4.2. `*at` becomes the offset after "://". */
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

/* Writes it without leading zeros, at most five digits. Returns the end. */
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

/* Fills `*out` except the members of the path. */
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

    /* A Host field may have the root's dot; it means the same site. */
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

/* Finds the host in a refused loc: after "//" and any user name, before any port. A text without
 * "//" counts as a host. */
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
    /* Give no hint that would be rejected, too. */
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

static bool same_name(const struct url *a, const struct url *b)
{
    return a->host_len == b->host_len &&
           memcmp(a->text + a->host_at, b->text + b->host_at, a->host_len) == 0;
}

bool url_same_host(const struct url *a, const struct url *b)
{
    return a->port == b->port && same_name(a, b);
}

bool url_same_server(const struct url *a, const struct url *b)
{
    bool usual = a->port == (a->https ? 443 : 80) && b->port == (b->https ? 443 : 80);
    return (usual || a->port == b->port) && same_name(a, b);
}
