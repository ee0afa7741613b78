/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* An RSS or Atom feed, which a sitemap index may list like a sitemap (sitemaps.org, "Other Sitemap
 * formats"): its entries are its pages. sitemap_urlset.c passes the elements on to it. The hash of
 * a feed covers only the link and the date of each entry, not titles or the date of the build. */
#include <string.h>

#include "server/base/scan.h"
#include "server/input/sitemap_parts.h"
#include "server/input/xml.h"

static const char *find_attribute(const char **attributes, const char *name)
{
    for (size_t i = 0; attributes[i] != NULL; i += 2)
        if (strcmp(attributes[i], name) == 0)
            return attributes[i + 1];
    return NULL;
}

bool sitemap_feed_begin(struct sitemap_feed *f, const char *root)
{
    static const struct {
        const char *root;
        enum sitemap_feed_form form;
        unsigned depth;
    } forms[] = {{"rss", FEED_RSS, 3}, {"RDF", FEED_RSS, 2}, {"feed", FEED_ATOM, 2}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(root, forms[i].root) == 0) {
            *f = (struct sitemap_feed){.form = forms[i].form, .entry_depth = forms[i].depth};
            return true;
        }
    return false;
}

/* ---- dates ---- */

static bool read_month(struct scan *s, unsigned *out)
{
    static const char months[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    for (unsigned i = 0; i < 12 && scan_left(s) >= 3; i++) {
        char month[4] = {months[3 * i], months[3 * i + 1], months[3 * i + 2], '\0'};
        if (!ascii_equals(s->at, 3, month))
            continue;
        s->at += 3;
        *out = i + 1;
        return true;
    }
    return false;
}

/* Parses a zone to seconds east of UTC; false: it is invalid. */
static bool read_zone(struct scan *s, int64_t *out)
{
    static const struct {
        const char *name;
        int hours;
    } zones[] = {{"GMT", 0},  {"UTC", 0},  {"UT", 0},   {"Z", 0},    {"EST", -5}, {"EDT", -4},
                 {"CST", -6}, {"CDT", -5}, {"MST", -7}, {"MDT", -6}, {"PST", -8}, {"PDT", -7}};
    unsigned hours, minutes;
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++)
        if (scan_text(s, zones[i].name)) {
            *out = zones[i].hours * 3600;
            return true;
        }
    bool west = scan_char(s, '-');
    if ((!west && !scan_char(s, '+')) || !scan_digits(s, 2, &hours))
        return false;
    scan_char(s, ':');
    if (!scan_digits(s, 2, &minutes) || hours > 14 || minutes > 59)
        return false;
    *out = (west ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
    return true;
}

/* RFC 822 5 with the four-digit years of RSS 2.0: "Sat, 07 Sep 2002 00:00:01 GMT". */
static bool read_rfc822(const char *text, size_t len, int64_t *out)
{
    struct scan s = {text, text + len};
    struct calendar_time t = {0};
    unsigned year, day;
    int64_t east;
    const char *comma = memchr(text, ',', len);
    if (comma != NULL)
        s.at = comma + 1;
    scan_skip_blanks(&s);
    if (!scan_digits(&s, 2, &day) && !scan_digits(&s, 1, &day))
        return false;
    scan_skip_blanks(&s);
    if (!read_month(&s, &t.month))
        return false;
    scan_skip_blanks(&s);
    if (!scan_digits(&s, 4, &year)) {
        if (!scan_digits(&s, 2, &year))
            return false;
        year += year < 70 ? 2000 : 1900;
    }
    t.year = year;
    t.day = day;
    scan_skip_blanks(&s);
    if (!scan_digits(&s, 2, &t.hour) || !scan_char(&s, ':') || !scan_digits(&s, 2, &t.minute))
        return false;
    if (scan_char(&s, ':') && !scan_digits(&s, 2, &t.second))
        return false;
    scan_skip_blanks(&s);
    if (day < 1 || day > calendar_days_in_month(t.year, t.month) || t.hour > 23 || t.minute > 59 ||
        t.second > 59 || !read_zone(&s, &east) || s.at != s.end)
        return false;
    *out = calendar_to_unix(&t) - east;
    return true;
}

/* ---- entries ---- */

bool sitemap_feed_start(struct sitemap_feed *f, struct sitemap_work *work, unsigned depth,
                        const char *local, const char **attributes, struct place at)
{
    f->field = FEED_NO_FIELD;
    if (depth == f->entry_depth && strcmp(local, f->form == FEED_ATOM ? "entry" : "item") == 0) {
        f->open = true;
        f->date_len = 0;
        f->updated = false;
        sitemap_hash_field(work->hash, HASH_LINE, "", 0);
        return sitemap_work_add_page(work, at.line, at.column);
    }
    if (!f->open || depth != f->entry_depth + 1)
        return true;
    f->field_at = at;
    if (strcmp(local, "link") == 0 && f->form == FEED_ATOM) {
        const char *rel = find_attribute(attributes, "rel"),
                   *href = find_attribute(attributes, "href");
        if (href != NULL && (rel == NULL || strcmp(rel, "alternate") == 0))
            sitemap_feed_link(work, at, href, strlen(href));
    } else if (strcmp(local, "link") == 0) {
        f->field = FEED_LINK;
    } else if (strcmp(local, "pubDate") == 0 || strcmp(local, "date") == 0 ||
               strcmp(local, "published") == 0 || strcmp(local, "issued") == 0) {
        f->field = FEED_PUBLISHED;
    } else if (strcmp(local, "updated") == 0 || strcmp(local, "modified") == 0) {
        f->field = FEED_UPDATED;
    }
    return true;
}

void sitemap_feed_link(struct sitemap_work *work, struct place at, const char *text, size_t len)
{
    sitemap_hash_field(work->hash, HASH_TEXT, text, len);
    /* Feed readers resolve relative URLs (RFC 4287 2); absolute ones are checked like the pages of
     * a sitemap. */
    if (sitemap_pages_is_url(text, len))
        sitemap_pages_count(&work->pages, sitemap_pages_loc(&work->pages, at, text, len));
}

static void parse_date(struct sitemap_feed *f, const char *text, size_t len)
{
    bool better = f->field == FEED_UPDATED || !f->updated;
    int64_t at;
    if (len == 0 || len >= sizeof f->date || !better)
        return;
    f->updated = f->field == FEED_UPDATED;
    f->date_at = f->field_at;
    f->date_len = len;
    memcpy(f->date, text, len);
    if (read_rfc822(text, len, &at)) {
        lastmod_format_utc(at, f->date);
        f->date_len = strlen(f->date);
    }
}

void sitemap_feed_end(struct sitemap_feed *f, struct sitemap_work *work, unsigned depth,
                      const char *text, size_t len)
{
    if (f->open && depth == f->entry_depth + 1 && f->field == FEED_LINK)
        sitemap_feed_link(work, f->field_at, text, len);
    else if (f->open && depth == f->entry_depth + 1 && f->field != FEED_NO_FIELD)
        parse_date(f, text, len);
    if (f->open && depth == f->entry_depth) {
        f->open = false;
        sitemap_hash_date(work->hash, f->date, f->date_len);
        if (f->date_len > 0)
            sitemap_pages_lastmod(&work->pages, f->date_at, f->date, f->date_len);
    }
    f->field = FEED_NO_FIELD;
}
