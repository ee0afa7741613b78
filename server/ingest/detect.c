#include "server/ingest/detect.h"

#include <string.h>

#include "server/rules/ascii.h"

void place_advance(struct place *place, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        place_step(place, bytes[i]);
}

size_t detect_bom(const char *head, size_t len)
{
    return len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

size_t detect_space(const char *head, size_t len)
{
    size_t at = 0;
    while (at < len &&
           (head[at] == ' ' || head[at] == '\t' || head[at] == '\r' || head[at] == '\n'))
        at++;
    return at;
}

bool detect_xml(const char *head, size_t len)
{
    if (len >= 2 && (memcmp(head, "\xff\xfe", 2) == 0 || memcmp(head, "\xfe\xff", 2) == 0))
        return true;
    return len >= 1 && head[0] == '<';
}

/* Skips up to and with `end`; to the end where there is none. */
static size_t skip_past(const char *head, size_t len, const char *end)
{
    const char *found = memmem(head, len, end, strlen(end));
    return found ? (size_t)(found - head) + strlen(end) : len;
}

static bool begins_with(const char *head, size_t len, const char *word)
{
    size_t size = strlen(word);
    return len >= size && ascii_equals(head, size, word) &&
           (len == size || (!ascii_is_alnum(head[size]) && head[size] != '-'));
}

bool detect_html(const char *head, size_t len)
{
    static const char *const words[] = {"<html", "<head", "<body", "<title", "<meta"};
    for (;;) {
        size_t skip = detect_space(head, len);
        if (skip == 0 && len >= 4 && memcmp(head, "<!--", 4) == 0)
            skip = skip_past(head, len, "-->");
        else if (skip == 0 && len >= 2 && memcmp(head, "<?", 2) == 0)
            skip = skip_past(head, len, "?>");
        if (skip == 0)
            break;
        head += skip;
        len -= skip;
    }
    if (begins_with(head, len, "<!doctype")) {
        size_t at = strlen("<!doctype");
        at += detect_space(head + at, len - at);
        return begins_with(head + at, len - at, "html");
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (begins_with(head, len, words[i]))
            return true;
    return false;
}

bool detect_object_feed(struct detect_object *d, char c, enum reader_format *format)
{
    if (c == '\n') {
        *format = detect_object_finish(d);
        return true;
    }
    if (d->string) {
        if (d->escape)
            d->escape = false;
        else if (c == '\\')
            d->escape = true;
        else if (c == '"')
            d->string = false;
    } else if (c == '"') {
        d->string = true;
    } else if (c == '{' || c == '[') {
        d->depth++;
    } else if ((c == '}' || c == ']') && d->depth > 0 && --d->depth == 0) {
        d->whole = true;
    }
    return false;
}

enum reader_format detect_object_finish(const struct detect_object *d)
{
    return d->whole ? READER_NDJSON : READER_JSON;
}
