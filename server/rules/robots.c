#include "server/rules/robots.h"

#include <string.h>
#include <strings.h>

#include "server/base/str.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static size_t skip_mark(const char *text, size_t len)
{
    size_t mark = strlen(BYTE_ORDER_MARK);

    return len >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0 ? mark : 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *robots_fault(const char *text, size_t len)
{
    size_t first = skip_mark(text, len);

    if (len > ROBOTS_MAX_BYTES)
        return "is longer than 500 KiB, and crawlers read no further";
    while (first < len && is_blank(text[first]))
        first++;
    /* What a site without a robots.txt answered, saved as if it were one. */
    if (first < len && text[first] == '<')
        return "begins with \"<\": that is a page of HTML or XML, not a robots.txt";
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        if (step == 0)
            return "is not text in UTF-8 (RFC 9309 2.3)";
        if (utf8_is_control(text + i, step) && !is_blank(text[i]))
            return "has a control character: it is not a text";
        i += step;
    }
    return NULL;
}

bool robots_sitemap_line(const char *text, size_t len, const char **url, size_t *url_len)
{
    static const char key[] = "sitemap";
    const char *end = memchr(text, '\n', len);
    const char *at = text + skip_mark(text, len);

    if (end == NULL)
        end = text + len;
    while (at < end && is_blank(*at))
        at++;
    if ((size_t)(end - at) < strlen(key) || strncasecmp(at, key, strlen(key)) != 0)
        return false;
    at += strlen(key);
    while (at < end && is_blank(*at))
        at++;
    if (at == end || *at != ':')
        return false;
    at++;
    if (memchr(at, '#', (size_t)(end - at)) != NULL)
        end = memchr(at, '#', (size_t)(end - at));
    while (at < end && is_blank(*at))
        at++;
    while (end > at && is_blank(end[-1]))
        end--;
    *url = at;
    *url_len = (size_t)(end - at);
    return true;
}
