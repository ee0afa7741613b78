/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Parses robots.txt: groups, rules with wildcards, Sitemap lines. */
#include "server/rules/robots.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/base/str.h"
#include "server/base/text.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_end(char c)
{
    return c == '\r' || c == '\n';
}

/* ---- what may be served ------------------------------------------------------------------ */

bool robots_is_page(const char *text, size_t len)
{
    size_t first = 0;

    if (len >= strlen(BYTE_ORDER_MARK) &&
        memcmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        first = strlen(BYTE_ORDER_MARK);
    while (first < len && (is_blank(text[first]) || is_end(text[first])))
        first++;
    return first < len && text[first] == '<';
}

const char *robots_fault(const char *text, size_t len)
{
    if (len > ROBOTS_MAX_BYTES)
        return "is longer than 500 KiB, and crawlers read no further";
    if (robots_is_page(text, len))
        return "begins with \"<\": that is a page of HTML or XML, not a robots.txt";
    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        if (step == 0)
            return "is not text in UTF-8 (RFC 9309 2.3)";
        if (utf8_is_control(text + i, step) && !is_blank(text[i]) && !is_end(text[i]))
            return "has a control character: it is not a text";
        i += step;
    }
    return NULL;
}

void robots_repair_comments(char *text, size_t len)
{
    bool comment = false;

    for (size_t i = 0; i < len;) {
        size_t step = utf8_char_len(text + i, len - i);

        comment = text[i] == '#' || (comment && !is_end(text[i]));
        if (step == 0 && comment)
            text[i] = '?';
        i += step == 0 ? 1 : step;
    }
}

/* ---- lines ------------------------------------------------------------------------------- */

static size_t trimmed(const char *text, size_t len)
{
    while (len > 0 && is_blank(text[len - 1]))
        len--;
    return len;
}

static void split_line(struct robots_line *line, size_t used)
{
    const char *text = line->text, *end = text + used, *colon;

    line->key = line->value = text;
    line->key_len = line->value_len = 0;
    if (line->number == 1 && used >= strlen(BYTE_ORDER_MARK) &&
        memcmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
        text += strlen(BYTE_ORDER_MARK); /* as some editors write it */
    if (memchr(text, '#', (size_t)(end - text)) != NULL)
        end = memchr(text, '#', (size_t)(end - text));
    colon = memchr(text, ':', (size_t)(end - text));
    if (colon == NULL)
        return;
    while (text < colon && is_blank(*text))
        text++;
    line->key = text;
    line->key_len = trimmed(text, (size_t)(colon - text));
    for (text = colon + 1; text < end && is_blank(*text);)
        text++;
    line->value = text;
    line->value_len = trimmed(text, (size_t)(end - text));
}

bool robots_next_line(const char *text, size_t len, struct robots_line *line)
{
    const char *end = text + len, *at = line->text == NULL ? text : line->text + line->len;
    size_t used = 0;

    if (at >= end)
        return false;
    while (at + used < end && !is_end(at[used]))
        used++;
    line->text = at;
    line->len = used;
    if (at + line->len < end)
        line->len += at[used] == '\r' && at + used + 1 < end && at[used + 1] == '\n' ? 2 : 1;
    line->number++;
    split_line(line, used);
    return true;
}

bool robots_has_key(const struct robots_line *line, const char *key)
{
    return line->key_len == strlen(key) && strncasecmp(line->key, key, line->key_len) == 0;
}

/* ---- rules ------------------------------------------------------------------------------- */

/* The longest pattern in normal form that is compared; no path is longer. */
#define PATTERN_MAX (4u * LOC_MAX_CHARS)

static bool is_unreserved(char c)
{
    return ascii_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static size_t append_byte(char *out, unsigned char byte)
{
    static const char hex[] = "0123456789ABCDEF";

    out[0] = '%';
    out[1] = hex[byte >> 4];
    out[2] = hex[byte & 15];
    return 3;
}

/* Normalises a pattern like a path of url_parse (RFC 9309 2.2.2): bytes beyond ASCII are
 * percent-encoded, unreserved characters are not. Returns its length; 0: it is too long. */
static size_t normalise_pattern(const char *pattern, size_t len, char out[PATTERN_MAX + 3])
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int high = pattern[i] == '%' && i + 2 < len ? ascii_hex_value(pattern[i + 1]) : -1;
        int low = high >= 0 ? ascii_hex_value(pattern[i + 2]) : -1;
        char byte = low >= 0 ? (char)(high * 16 + low) : pattern[i];

        if (n >= PATTERN_MAX)
            return 0;
        if (low >= 0 ? !is_unreserved(byte) : ascii_is_high(byte))
            n += append_byte(out + n, (unsigned char)byte);
        else
            out[n++] = byte;
        i += low >= 0 ? 2 : 0;
    }
    return n;
}

bool robots_matches(const char *pattern, size_t len, const char *path)
{
    bool to_end = len > 0 && pattern[len - 1] == '$';
    size_t p = 0, star = SIZE_MAX;
    const char *from = path, *s = path;

    if (to_end)
        len--;
    for (;;) {
        if (p < len && pattern[p] == '*') {
            star = ++p;
            from = s;
        } else if (p < len && *s != '\0' && pattern[p] == *s) {
            p++;
            s++;
        } else if (p == len && (!to_end || *s == '\0')) {
            return true;
        } else if (star != SIZE_MAX && *from != '\0') {
            p = star;
            s = ++from;
        } else {
            return false;
        }
    }
}

/* The verdict of the groups of one agent on a path. */
struct verdict {
    bool named; /* the agent has a group */
    bool allowed;
    size_t longest; /* length of the deciding rule */
};

static void weigh(struct verdict *v, const struct robots_line *line, const char *path)
{
    bool allow = robots_has_key(line, "allow");
    char pattern[PATTERN_MAX + 3];
    size_t len = normalise_pattern(line->value, line->value_len, pattern);

    if (len == 0 || !robots_matches(pattern, len, path))
        return;
    if (len > v->longest || (len == v->longest && allow)) {
        v->longest = len;
        v->allowed = allow;
    }
}

/* A product token is letters, "_" and "-" (2.2.1): it ends before the version of "Googlebot/2.1",
 * and before the star of "Googlebot*". A star alone is every crawler. */
static bool names_agent(const struct robots_line *line, const char *agent)
{
    size_t len = 0;

    while (len < line->value_len &&
           (ascii_is_alpha(line->value[len]) || line->value[len] == '_' || line->value[len] == '-'))
        len++;
    if (*agent == '*')
        return line->value_len > 0 && *line->value == '*' &&
               (line->value_len == 1 || is_blank(line->value[1]));
    return len == strlen(agent) && strncasecmp(line->value, agent, len) == 0;
}

static struct verdict match_rules(const char *text, size_t len, const char *agent, const char *path)
{
    struct verdict v = {.allowed = true};
    bool naming = false, mine = false;
    struct robots_line line = {0};

    while (robots_next_line(text, len, &line)) {
        if (robots_has_key(&line, "user-agent")) {
            mine = (naming && mine) || names_agent(&line, agent);
            v.named = v.named || mine;
            naming = true;
        } else if (robots_has_key(&line, "allow") || robots_has_key(&line, "disallow")) {
            naming = false;
            if (mine)
                weigh(&v, &line, path);
        }
    }
    return v;
}

bool robots_allows(const char *text, size_t len, const char *agent, const char *path)
{
    struct verdict v = match_rules(text, len, agent, path);

    return v.named ? v.allowed : match_rules(text, len, "*", path).allowed;
}

/* ---- sitemaps ---------------------------------------------------------------------------- */

static bool is_quote(char c)
{
    return c == '"' || c == '\'' || c == '<' || c == '>';
}

static bool separates(char c)
{
    return is_blank(c) || c == ',';
}

/* The length of a second key, as in "https://a/1.xml Sitemap: https://a/2.xml", which is not part
 * of a URL. */
static size_t second_key_len(const char *text, size_t len)
{
    static const char key[] = "sitemap:";

    return len >= strlen(key) && strncasecmp(text, key, strlen(key)) == 0 ? strlen(key) : 0;
}

static bool begins_url(const char *text, size_t len)
{
    while (len > 0 && is_quote(*text)) {
        text++;
        len--;
    }
    return second_key_len(text, len) > 0 || (len > 0 && *text == '/') ||
           (len > 7 &&
            (strncasecmp(text, "http:/", 6) == 0 || strncasecmp(text, "https:/", 7) == 0));
}

/* Finds the next URL of the value from `*done` on, and moves `*done` past it. It ends if another
 * one begins after a blank or comma. */
static size_t next_url(const struct robots_line *line, size_t *done, const char **url)
{
    const char *value = line->value;
    size_t len = line->value_len, begin = *done, end;

    while (begin < len &&
           (separates(value[begin]) || second_key_len(value + begin, len - begin) > 0))
        begin += separates(value[begin]) ? 1 : second_key_len(value + begin, len - begin);
    for (end = begin; end < len; end++) {
        size_t next = end;

        while (next < len && separates(value[next]))
            next++;
        if (next == end)
            continue;
        if (next == len || begins_url(value + next, len - next))
            break;
        end = next - 1; /* each separator is read once */
    }
    *url = value + begin;
    *done = end;
    return end - begin;
}

/* Whether another URL follows the first one of the line, which ends at `done`. */
static bool has_another(const struct robots_line *line, size_t done)
{
    const char *url;

    return next_url(line, &done, &url) > 0;
}

bool robots_next_sitemap(const char *text, size_t len, struct robots_cursor *at,
                         struct robots_sitemap *out)
{
    do {
        const char *url;
        bool is_first = at->done == 0;
        size_t url_len = at->line.text != NULL && robots_has_key(&at->line, "sitemap")
                             ? next_url(&at->line, &at->done, &url)
                             : 0;

        if (url_len > 0) {
            at->shared = is_first ? has_another(&at->line, at->done) : at->shared;
            *out = (struct robots_sitemap){
                .url = url,
                .url_len = url_len,
                .line = at->line.number,
                .shared = at->shared,
            };
            for (; out->url_len > 0 && is_quote(*out->url); out->url++, out->url_len--)
                out->quoted = true;
            for (; out->url_len > 0 && is_quote(out->url[out->url_len - 1]); out->url_len--)
                out->quoted = true;
            return true;
        }
        at->done = 0;
    } while (robots_next_line(text, len, &at->line));
    return false;
}

bool robots_sitemap_url(const struct robots_sitemap *sitemap, struct url *out, const char **code,
                        const char **why)
{
    enum rule_code refused = url_parse(sitemap->url, sitemap->url_len, out, NULL);

    if (sitemap->quoted) {
        *code = "sitemap-line-quoted";
        *why = "is in quotes, which crawlers read as part of the URL";
    } else if (sitemap->shared) {
        *code = "sitemap-line-shared";
        *why = "is one of several in its line, which crawlers read as one URL";
    } else {
        *code = rule_code_word(refused);
        *why = rule_code_sentence(refused);
    }
    return !sitemap->quoted && !sitemap->shared && refused == RULE_OK;
}

bool robots_sitemap_guess(const struct robots_sitemap *sitemap, const struct url *base,
                          struct url *out)
{
    const char *url = sitemap->url;
    int len = sitemap->url_len <= LOC_MAX_CHARS ? (int)sitemap->url_len : 0;
    const char *host = base->text + base->host_at;
    char text[2 * LOC_MAX_CHARS + 16];

    if (url_parse(url, sitemap->url_len, out, NULL) == RULE_OK)
        return true;
    if (len == 0 || memchr(url, ':', (size_t)len) != NULL)
        return false;
    if (len > 2 && url[0] == '/' && url[1] == '/')
        snprintf(text, sizeof text, "%s:%.*s", base->https ? "https" : "http", len, url);
    else if (len > base->host_len && strncasecmp(url, host, base->host_len) == 0)
        snprintf(text, sizeof text, "%s://%.*s", base->https ? "https" : "http", len, url);
    else
        snprintf(text, sizeof text, "%.*s%s%.*s", base->origin_len, base->text,
                 *url == '/' ? "" : "/", len, url);
    return url_parse(text, strlen(text), out, NULL) == RULE_OK;
}
