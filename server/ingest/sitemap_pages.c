#include "server/ingest/sitemap_pages.h"

#include <string.h>

#include "server/rules/ascii.h"
#include "server/rules/url.h"

bool sitemap_work_add_page(struct sitemap_work *w, uint64_t line, uint64_t column)
{
    if (w->pages.urls == SITEMAP_FILE_MAX_URLS)
        return core_fail(&w->core, READER_TOO_LARGE, "too-many-urls", line, column,
                         "there are more than %u URLs", SITEMAP_FILE_MAX_URLS);
    w->pages.urls++;
    return true;
}

bool sitemap_work_other(struct sitemap_work *w, enum sitemap_file_kind kind)
{
    w->kind = kind;
    return core_fail(&w->core, READER_WRONG_KIND, "not-a-sitemap", 0, 0, "is not a sitemap");
}

bool sitemap_pages_is_url(const char *text, size_t len)
{
    return (len > 7 && ascii_equals(text, 7, "http://")) ||
           (len > 8 && ascii_equals(text, 8, "https://"));
}

void sitemap_pages_loc(struct sitemap_pages *p, const char *text, size_t len)
{
    struct url url;
    if (url_parse(text, len, &url, NULL) != RULE_OK)
        p->bad_urls++;
}

/* The digits behind the point of a stored lastmod. */
static size_t fraction(const char *text, const char **digits)
{
    const char *point = strchr(text, '.');
    *digits = point ? point + 1 : "";
    return strspn(*digits, "0123456789");
}

/* Within one second the fractions decide: 0.5 is later than 0.25, and no later than 0.50. */
static bool is_later(const struct lastmod *a, const struct lastmod *b)
{
    if (a->unix_seconds != b->unix_seconds)
        return a->unix_seconds > b->unix_seconds;
    const char *x, *y;
    size_t x_len = fraction(a->text, &x), y_len = fraction(b->text, &y);
    for (size_t i = 0; i < LASTMOD_FRACTION_DIGITS; i++) {
        char c = i < x_len ? x[i] : '0', d = i < y_len ? y[i] : '0';
        if (c != d)
            return c > d;
    }
    return false;
}

static void read_lastmod(struct sitemap_pages *p, const char *text, size_t len)
{
    struct lastmod found;
    p->one_valid = lastmod_parse(text, len, p->now, &found, NULL) == RULE_OK;
    if (!p->one_valid)
        return;
    if (p->dated > 0 && strcmp(found.text, p->one.text) != 0)
        p->lastmods_differ = true;
    if (p->dated == 0 || is_later(&found, &p->newest))
        p->newest = found;
    p->one = found;
}

void sitemap_pages_lastmod(struct sitemap_pages *p, const char *text, size_t len)
{
    bool same = len > 0 && len == p->given_len && memcmp(text, p->given, len) == 0;
    if (!same) {
        read_lastmod(p, text, len);
        p->given_len = len <= sizeof p->given ? len : 0;
        if (p->given_len > 0)
            memcpy(p->given, text, len);
    }
    if (p->one_valid)
        p->dated++;
}

bool sitemap_pages_one_lastmod(const struct sitemap_pages *p)
{
    return p->urls > 1 && p->dated == p->urls && !p->lastmods_differ;
}
