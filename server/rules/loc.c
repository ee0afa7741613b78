/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Explains what is wrong with the text of a loc. */
#include "server/rules/loc.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/rules/limits.h"
#include "server/rules/url.h"

/* Endings that are hardly ever sitemaps. Not .txt, which may be a list of URLs, nor .php and
 * similar, which may generate a sitemap. */
static const char *const other_files[] = {".html", ".htm", ".xhtml", ".shtml", ".css", ".js",
                                          ".json", ".pdf", ".jpg",   ".jpeg",  ".png", ".gif",
                                          ".webp", ".svg", ".ico",   ".mp4",   ".zip"};

static bool is_other_file(const char *path, size_t len)
{
    const char *dot = memrchr(path, '.', len);
    size_t dot_len = dot != NULL ? len - (size_t)(dot - path) : 0;

    /* Nearly all locs have one of these. */
    if (dot == NULL || strcmp(dot, ".xml") == 0 || strcmp(dot, ".gz") == 0)
        return false;
    /* A row of a table, not a loc: "/a.xml,2025-01-01". */
    if (strncasecmp(dot, ".xml", 4) == 0 || strncasecmp(dot, ".gz", 3) == 0)
        return memchr(dot, ',', dot_len) != NULL || memchr(dot, ';', dot_len) != NULL;
    for (size_t i = 0; i < sizeof other_files / sizeof *other_files; i++)
        if (strlen(other_files[i]) == dot_len && strncasecmp(dot, other_files[i], dot_len) == 0)
            return true;
    return false;
}

static bool is_no_sitemap(const char *path, size_t len, bool has_query)
{
    /* A program may generate one by a query: /?sitemap=1, /index.html?sitemap. */
    if (len == 0 || has_query)
        return false;
    return path[len - 1] == '/' || (len == 11 && memcmp(path, "/robots.txt", 11) == 0) ||
           is_other_file(path, len);
}

rule_set loc_lint(const char *loc, size_t len, size_t path_at)
{
    const char *query = memchr(loc + path_at, '?', len - path_at);
    size_t path_len = (query != NULL ? (size_t)(query - loc) : len) - path_at;
    rule_set remarks = 0;

    if (len > LOC_LINT_CHARS)
        remarks |= RULE_BIT(RULE_LOC_LONG);
    if (is_no_sitemap(loc + path_at, path_len, query != NULL))
        remarks |= RULE_BIT(RULE_LOC_NO_SITEMAP);
    if (memmem(loc + path_at, len - path_at, "&amp;", 5) != NULL)
        remarks |= RULE_BIT(RULE_LOC_AMP);
    return remarks;
}

size_t explain_blank_front(const char *text, size_t len)
{
    size_t at = 0, step;

    while (at < len) {
        step = ascii_is_space(text[at]) ? 1 : hidden_front(text + at, len - at);
        if (step == 0)
            break;
        at += step;
    }
    return at;
}

size_t explain_blank_back(const char *text, size_t len)
{
    size_t left = len, step;

    while (left > 0) {
        step = ascii_is_space(text[left - 1]) ? 1 : hidden_back(text, left);
        if (step == 0)
            break;
        left -= step;
    }
    return len - left;
}

static bool is_robots_line(const char *text, size_t len)
{
    static const char key[] = "sitemap";
    size_t at = explain_blank_front(text, len) + strlen(key);

    if (at >= len || strncasecmp(text + at - strlen(key), key, strlen(key)) != 0)
        return false;
    at += explain_blank_front(text + at, len - at);
    return at < len && text[at] == ':' && !(at + 2 < len && memcmp(text + at, "://", 3) == 0);
}

bool explain_may_lack_scheme(const char *text)
{
    static const char *const endings[] = {".xml", ".gz",   ".txt", ".csv",  ".ndjson", ".php",
                                          ".asp", ".aspx", ".jsp", ".conf", ".db"};
    size_t host_len = strcspn(text, "/?#");
    const char *dot = memrchr(text, '.', host_len);

    if (strstr(text, "://") != NULL || dot == NULL || dot == text)
        return false;
    size_t len = host_len - (size_t)(dot - text);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (strlen(endings[i]) == len && strncasecmp(dot, endings[i], len) == 0)
            return false;
    return !is_other_file(text, host_len);
}

/* The sentence for the first invisible character. */
static const char *explain_hidden(enum rule_code code, const char *text, size_t len)
{
    size_t step;

    for (size_t at = 0; code == RULE_LOC_SPACE && at < len && text[at] != ' '; at += step) {
        const char *sentence;

        step = utf8_char_len(text + at, len - at);
        sentence = step > 0 ? hidden_sentence(text + at, step) : NULL;
        if (sentence != NULL)
            return sentence;
        step = step > 0 ? step : 1;
    }
    return rule_code_sentence(code);
}

/* "https://www.example.com./x.xml": DNS allows it, and browsers send it as Host. */
static bool host_ends_in_dot(const char *text, size_t len)
{
    const char *host = memmem(text, len, "://", 3);

    if (host == NULL)
        return false;
    host += 3;
    const char *end = host;
    while (end < text + len && strchr("/?#:", *end) == NULL)
        end++;
    return end - host > 1 && end[-1] == '.' && end[-2] != '.';
}

const char *explain_loc(enum rule_code code, const char *text, size_t len)
{
    bool form = code == RULE_LOC_SPACE || code == RULE_LOC_MALFORMED || code == RULE_LOC_RELATIVE ||
                code == RULE_LOC_SCHEME;

    if (code == RULE_LOC_HOST && text != NULL && host_ends_in_dot(text, len))
        return "has a dot after its host; remove the dot";
    if (!form || text == NULL)
        return rule_code_sentence(code);
    if (is_robots_line(text, len))
        return "is a line of a robots.txt; give its URL alone, without \"Sitemap:\"";
    if (explain_blank_front(text, len) + explain_blank_back(text, len) > 0)
        return "has white space around it, maybe invisible (U+00A0); remove it";
    if (memchr(text, ' ', len) != NULL && memmem(text, len, "://", 3) == NULL)
        return "is text, not a URL; it must be an absolute URL (https://host/path)";
    return explain_hidden(code, text, len);
}
