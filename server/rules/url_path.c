#include <string.h>

#include "server/rules/ascii.h"
#include "server/rules/url_parts.h"
#include "server/rules/utf8.h"

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

/* 'u' and 'p', which differ in two bits, and no other class. */
static inline bool is_plain(char c)
{
    return (class_of(c) & ~('u' ^ 'p')) == ('u' & 'p');
}

/* How many characters from here on stand for themselves in path and query alike. Nearly all of a
 * loc is one such run, or two: what comes to each of a million locs is decided by this loop. */
static size_t plain_run(const char *text, size_t len)
{
    size_t run = 0;

    while (run < len && is_plain(text[run]))
        run++;
    return run;
}

/* The same within one segment of a path. */
static size_t segment_run(const char *text, size_t len)
{
    size_t run = 0;

    while (run < len && text[run] != '/' && text[run] != '?' && is_plain(text[run]))
        run++;
    return run;
}

enum rule_code url_check_bytes(const char *text, size_t len)
{
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
            break;
        default:
            break;
        }
        i += step;
    }
    return RULE_OK;
}

struct writer {
    char *data; /* begins with the path's first slash */
    size_t size;
    size_t len;
    size_t segment; /* where the segment being written begins: behind a slash */
    bool full;
};

static inline void put(struct writer *w, char c)
{
    if (w->len < w->size)
        w->data[w->len++] = c;
    else
        w->full = true;
}

static inline void put_all(struct writer *w, const char *text, size_t len)
{
    if (len > w->size - w->len) {
        len = w->size - w->len;
        w->full = true;
    }
    memcpy(w->data + w->len, text, len);
    w->len += len;
}

static void put_encoded(struct writer *w, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";

    put(w, '%');
    put(w, hex[byte >> 4]);
    put(w, hex[byte & 15]);
}

/* RFC 3986 5.2.4 at the end of a segment: "." goes, ".." takes the one before it along. True
 * where the segment was one of these; the text then ends with the slash before it. */
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

/* Encodings of unreserved characters are undone, so that one resource has one form; all others,
 * the slash's too, stay, in upper case (RFC 3986 6.2.2.1, 6.2.2.2). */
static bool put_percent(struct writer *w, const char *text, size_t left)
{
    int high = left > 2 ? ascii_hex_value(text[1]) : -1;
    int low = left > 2 ? ascii_hex_value(text[2]) : -1;
    char c;

    if (high < 0 || low < 0)
        return false;
    c = (char)(high << 4 | low);
    if (class_of(c) == 'u')
        put(w, c);
    else
        put_encoded(w, (unsigned char)c);
    return true;
}

/* Path or query alike: one character of the input. Sets `*step` to the bytes that it took. */
static enum rule_code put_next(struct writer *w, const char *text, size_t left, size_t *step)
{
    *step = 1;
    switch (class_of(*text)) {
    case 'u':
    case 'p':
        put(w, *text);
        return RULE_OK;
    case 'h': /* an IRI's, as in RFC 3987 3.1 */
        put_encoded(w, (unsigned char)*text);
        return RULE_OK;
    case '%':
        *step = 3;
        return put_percent(w, text, left) ? RULE_OK : RULE_LOC_PERCENT;
    default: /* brackets: RFC 3986 allows them in the host alone */
        return RULE_LOC_MALFORMED;
    }
}

enum rule_code url_write_path(const char *text, size_t len, char *out, size_t size,
                              size_t *path_len, size_t *total_len)
{
    struct writer w = {.data = out, .size = size};
    size_t i = len > 0 && text[0] == '/' ? 1 : 0;
    size_t step;

    put(&w, '/');
    w.segment = w.len;
    for (; i < len && text[i] != '?' && !w.full; i += step) {
        enum rule_code code = RULE_OK;

        step = segment_run(text + i, len - i);
        if (step > 0) {
            put_all(&w, text + i, step);
            continue;
        }
        step = 1;
        if (text[i] != '/') {
            code = put_next(&w, text + i, len - i, &step);
        } else if (!remove_dot_segment(&w)) {
            put(&w, '/');
            w.segment = w.len;
        }
        if (code != RULE_OK)
            return code;
    }
    if (!w.full)
        (void)remove_dot_segment(&w);
    *path_len = w.len;

    for (; i < len && !w.full; i += step) {
        enum rule_code code = put_next(&w, text + i, len - i, &step);

        if (code != RULE_OK)
            return code;
    }
    *total_len = w.len;
    return w.full ? RULE_LOC_TOO_LONG : RULE_OK;
}
