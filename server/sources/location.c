#include "server/sources/location.h"

#include <stdio.h>
#include <string.h>

#include "server/rules/ascii.h"
#include "server/rules/utf8.h"
#include "server/sources/sources.h"

bool location_init(struct location *l, const char *url, char *why, size_t why_size)
{
    /* A short origin is no loc yet, but the files below it are: judged with a file. */
    static const char file[] = "sitemap.xml";
    char text[LOC_MAX_CHARS + sizeof file];
    struct url parsed;
    size_t len = strlen(url);
    if (len == 0 || url[len - 1] != '/' || strpbrk(url, "?#")) {
        snprintf(why, why_size, "url must end in a slash, without query: %.200s", url);
        return false;
    }
    if (len > LOC_MAX_CHARS) {
        snprintf(why, why_size, "url is longer than %u characters", LOC_MAX_CHARS);
        return false;
    }
    snprintf(text, sizeof text, "%s%s", url, file);
    enum rule_code code = url_parse(text, strlen(text), &parsed, NULL);
    if (code != RULE_OK) {
        snprintf(why, why_size, "url %s: %.200s", rule_code_sentence(code), url);
        return false;
    }
    l->base_len = (size_t)parsed.len - (sizeof file - 1);
    l->origin_len = parsed.origin_len;
    memcpy(l->base, parsed.text, l->base_len);
    l->base[l->base_len] = '\0';
    return true;
}

/* Stays as it is in a path (RFC 3986 3.3: pchar and the slash). */
static bool is_plain(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("-._~!$&'()*+,;=:@/", c) != NULL);
}

enum rule_code location_loc(const struct location *l, const char *path, struct url *out)
{
    static const char hex[] = "0123456789ABCDEF";
    char text[LOC_MAX_CHARS + 4];
    size_t len = l->base_len;
    memcpy(text, l->base, len);
    for (; *path != '\0'; path++) {
        if (len > LOC_MAX_CHARS)
            return RULE_LOC_TOO_LONG;
        if (is_plain(*path)) {
            text[len++] = *path;
            continue;
        }
        text[len++] = '%';
        text[len++] = hex[(unsigned char)*path >> 4];
        text[len++] = hex[(unsigned char)*path & 15];
    }
    return url_parse(text, len, out, NULL);
}

bool location_is_clean(const char *path, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(path + i, len - i);
        if (step == 0 || utf8_is_control(path + i, step))
            return false;
        i += step;
    }
    return true;
}

static bool decode(const char *text, char *out)
{
    size_t len = 0;
    for (; *text != '\0'; text++) {
        if (len == SOURCE_MAX_PATH_BYTES)
            return false;
        char c = *text;
        if (c == '%') {
            int high = ascii_hex_value(text[1]);
            int low = high < 0 ? -1 : ascii_hex_value(text[2]);
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            if (c == '/')
                return false;
            text += 2;
        }
        out[len++] = c;
    }
    out[len] = '\0';
    return location_is_clean(out, len); /* and holds no NUL, which is a control */
}

/* No name is empty, "." or "..". */
static bool is_normal(const char *path)
{
    for (;;) {
        size_t len = strcspn(path, "/");
        if (len <= 2 && memcmp(path, "..", len) == 0)
            return false;
        if (path[len] == '\0')
            return true;
        path += len + 1;
    }
}

bool location_path(const struct location *l, const char *origin, const char *url_path, char *out)
{
    size_t folder_len = l->base_len - l->origin_len;
    struct url url;
    if (strlen(origin) != l->origin_len || memcmp(origin, l->base, l->origin_len) != 0 ||
        strncmp(url_path, l->base + l->origin_len, folder_len) != 0)
        return false;
    /* One resource, one URL: only the form that is registered is served. */
    return decode(url_path + folder_len, out) && is_normal(out) &&
           location_loc(l, out, &url) == RULE_OK &&
           strcmp(url.text + url.origin_len, url_path) == 0;
}
