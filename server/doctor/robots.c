/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Checks robots.txt: whether it exists, names the index, and allows crawlers. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/doctor/visit.h"
#include "server/input/frame.h"
#include "server/rules/robots.h"

void visit_fetch_robots(struct visit *v, const struct url *of, struct visit_robots *out)
{
    char text[LOC_MAX_CHARS + 32];
    struct fetch_reply r;
    struct url url;
    unsigned hops;

    *out = (struct visit_robots){.text = STR_INIT};
    snprintf(out->origin, sizeof out->origin, "%.*s", of->origin_len, of->text);
    snprintf(text, sizeof text, "%s/robots.txt", out->origin);
    if (url_parse(text, strlen(text), &url, NULL) != RULE_OK)
        return;
    if (visit_follow(v, &url, "Accept-Encoding: identity\r\n", VISIT_MAX_PAGE, &r, &hops) ==
        FETCH_OK)
        out->status = r.status;
    out->long_text = r.body.len > ROBOTS_MAX_BYTES;
    if (out->status == 200)
        str_append(&out->text, r.body.data,
                   r.body.len < ROBOTS_MAX_BYTES ? r.body.len : ROBOTS_MAX_BYTES);
    v->no_memory = v->no_memory || out->text.failed;
    fetch_reply_done(&r);
}

static bool is_forbidden(const struct visit_robots *robots, const char *agent, const char *path)
{
    return !robots_allows(str_text(&robots->text), robots->text.len, agent, path);
}

const char *visit_forbidden(const struct visit_robots *robots, const struct url *url)
{
    const char *path = url->text + url->origin_len;
    bool google = is_forbidden(robots, "googlebot", path);
    bool bing = is_forbidden(robots, "bingbot", path);
    bool others = is_forbidden(robots, "*", path);

    if (google && bing)
        return others ? "all crawlers" : "Googlebot and Bingbot";
    if (google || bing)
        return google ? "Googlebot" : "Bingbot";
    return others ? "crawlers without a group of their own" : NULL;
}

/* Whether it is the same page, or its .gz form: robots.txt may name either. */
static bool is_same_page(const char *named, const char *asked)
{
    size_t len = strlen(named);

    return strncmp(named, asked, len) == 0 &&
           (asked[len] == '\0' || strcmp(asked + len, ".gz") == 0);
}

/* The text to compare. Behind a proxy that terminates TLS (--connect) the index is requested by
 * http, but named, like its site, by https. */
static const char *compared(const struct visit *v, const struct url *url)
{
    return v->options->connect != NULL ? url->text + strcspn(url->text, ":") : url->text;
}

bool visit_names_index(const struct visit *v, const struct visit_robots *robots)
{
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;
    const char *code, *why;
    struct url url;

    while (robots_next_sitemap(str_text(&robots->text), robots->text.len, &at, &sitemap))
        if (robots_sitemap_url(&sitemap, &url, &code, &why) &&
            (is_same_page(compared(v, &url), compared(v, &v->url)) ||
             is_same_page(compared(v, &url), compared(v, v->options->url))))
            return true;
    return false;
}

/* ---- its Sitemap lines ------------------------------------------------------------------- */

static int compare_sitemaps(const void *a, const void *b)
{
    const struct robots_sitemap *x = a, *y = b;
    int order = memcmp(x->url, y->url, x->url_len < y->url_len ? x->url_len : y->url_len);

    if (order == 0)
        order = (x->url_len > y->url_len) - (x->url_len < y->url_len);
    return order != 0 ? order : (x->url > y->url) - (x->url < y->url);
}

static void report_line(struct visit *v, const char *code, const struct robots_sitemap *sitemap,
                        uint64_t count, const char *todo, const char *why)
{
    char url[LOC_MAX_CHARS + 32], times[48] = "";
    const struct visit_about about = {
        .code = code,
        .url = url,
        .line = sitemap->line,
        .count = count,
    };

    snprintf(url, sizeof url, "%s/robots.txt", v->robots.origin);
    if (count > 1)
        snprintf(times, sizeof times, "; %" PRIu64 " such lines in all", count);
    visit_report(v, DOCTOR_WARNING, "robots", &about, todo,
                 "%s: line %" PRIu64 ": Sitemap: %.*s %s%s", url, about.line,
                 sitemap->url_len < 500 ? (int)sitemap->url_len : 500, sitemap->url, why, times);
}

/* Reports repeated lines. `all` is sorted and has `count` elements. The reported line is that of
 * the second occurrence. */
static void check_doubles(struct visit *v, const struct robots_sitemap *all, size_t count)
{
    const struct robots_sitemap *first = NULL;
    uint64_t doubles = 0;

    for (size_t i = 1; i < count; i++)
        if (all[i].url_len == all[i - 1].url_len &&
            memcmp(all[i].url, all[i - 1].url, all[i].url_len) == 0) {
            doubles++;
            if (first == NULL)
                first = &all[i];
        }
    if (first != NULL)
        report_line(v, "sitemap-line-doubled", first, doubles,
                    "name each index once: /robots.txt may combine two files that both name it",
                    "is also on an earlier line");
}

/* False if one of the lines is not usable. */
static bool check_lines(struct visit *v)
{
    const char *text = str_text(&v->robots.text), *first_code = NULL, *first_why = NULL;
    struct robots_sitemap sitemap, first_bad = {0}, *all;
    size_t count = 0, room = 1;
    uint64_t bad = 0;
    unsigned warnings = v->counts[DOCTOR_WARNING];

    for (struct robots_cursor at = {0};
         robots_next_sitemap(text, v->robots.text.len, &at, &sitemap);)
        room++;
    all = calloc(room, sizeof *all);
    if (all == NULL) {
        v->no_memory = true;
        return false;
    }
    for (struct robots_cursor at = {0};
         robots_next_sitemap(text, v->robots.text.len, &at, &sitemap);) {
        const char *code, *why;
        struct url url;

        all[count++] = sitemap;
        if (!robots_sitemap_url(&sitemap, &url, &code, &why) && bad++ == 0) {
            first_bad = sitemap;
            first_code = code;
            first_why = why;
        }
    }
    qsort(all, count, sizeof *all, compare_sitemaps);
    if (bad > 0)
        report_line(v, first_code, &first_bad, bad,
                    "write the absolute URL of one index on each line, without quotes", first_why);
    check_doubles(v, all, count);
    free(all);
    return v->counts[DOCTOR_WARNING] == warnings;
}

/* Enough to recognise an HTML page, whatever the size of the file. */
#define LINE_MAX_BYTES 65536u

static void report_lost_line(struct visit *v, const struct url *url, const char *code,
                             const char *todo, const char *what)
{
    visit_report(v, DOCTOR_WRONG, "robots", &(struct visit_about){.code = code, .url = url->text},
                 todo, "%s/robots.txt names %s, which %s", v->robots.origin, url->text, what);
}

static void check_named(struct visit *v, const struct url *named)
{
    struct fetch_reply r;
    struct url url = *named;
    unsigned hops;
    char what[64];
    enum fetch_status status =
        visit_follow(v, &url, "Accept-Encoding: identity\r\n", LINE_MAX_BYTES, &r, &hops);

    if (status == FETCH_NO_MEMORY) {
        v->no_memory = true;
    } else if (status != FETCH_OK) {
        report_lost_line(v, named, "reach", visit_fetch_todo(status), "cannot be fetched");
    } else if (r.status != 200) {
        snprintf(what, sizeof what, "answers %u", r.status);
        report_lost_line(v, named, "status",
                         "if it is a page of an index, have the web server forward all pages to "
                         "sitemapd, not only the first (`sitemapd migrate ORIGIN --proxy nginx` "
                         "prints the rules); otherwise put the file back, or remove the line",
                         what);
    } else if (detect_html(str_text(&r.body), r.body.len)) {
        report_lost_line(
            v, named, "not-a-sitemap",
            "if it is a page of an index, have the web server forward all pages to sitemapd, not "
            "only the first; otherwise put the file back, or remove the line",
            "is an HTML page");
    }
    fetch_reply_done(&r);
}

/* Checks that the other Sitemap lines of this host lead to something, at most as many as sitemaps:
 * further pages of the index, which a web server may not pass on, and other indexes. */
static void check_other_lines(struct visit *v)
{
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;
    const char *code, *why;
    size_t left = v->options->sample;
    struct url url;

    while (left > 0 && !v->no_memory &&
           robots_next_sitemap(str_text(&v->robots.text), v->robots.text.len, &at, &sitemap)) {
        if (!robots_sitemap_url(&sitemap, &url, &code, &why))
            continue;
        visit_own(v, &url);
        if (!url_same_host(&url, &v->url) || is_same_page(url.text, v->url.text) ||
            is_same_page(url.text, v->options->url->text))
            continue;
        check_named(v, &url);
        left--;
    }
}

void visit_robots(struct visit *v)
{
    const char *forbidden;
    bool good;
    unsigned status;

    if (v->robots.origin[0] == '\0')
        visit_fetch_robots(v, &v->url, &v->robots);
    status = v->robots.status;
    if (status == 0 || status >= 500 || status == 429) {
        visit_report(v, DOCTOR_WRONG, "robots", &(struct visit_about){.code = "robots-unreachable"},
                     "repair /robots.txt: while it fails, crawlers stay away from the whole site",
                     "%s/robots.txt %s", v->robots.origin,
                     status == 0 ? "cannot be fetched" : "answers with an error");
        return;
    }
    if (status != 200) {
        visit_report(v, DOCTOR_WARNING, "robots", &(struct visit_about){.code = "robots-missing"},
                     "forward /robots.txt to sitemapd, or write the Sitemap line into your own",
                     "%s/robots.txt answers %u: crawlers do not find the index", v->robots.origin,
                     status);
        return;
    }
    if (detect_html(str_text(&v->robots.text), v->robots.text.len)) {
        visit_report(v, DOCTOR_WARNING, "robots", &(struct visit_about){.code = "robots-not-text"},
                     "forward /robots.txt to sitemapd, or have the web server answer with a text "
                     "file that has the Sitemap line",
                     "%s/robots.txt is an HTML page: crawlers do not find the index",
                     v->robots.origin);
        return;
    }
    forbidden = visit_forbidden(&v->robots, &v->url);
    if (forbidden != NULL)
        visit_report(v, DOCTOR_WRONG, "robots", &(struct visit_about){.code = "robots-forbids"},
                     "remove the Disallow, or add an Allow for this path",
                     "it disallows the index for %s", forbidden);
    if (v->robots.long_text)
        visit_report(v, DOCTOR_WARNING, "robots", &(struct visit_about){.code = "robots-too-long"},
                     "shorten it: put the Sitemap lines and the rules that matter first",
                     "%s/robots.txt is longer than 500 KiB: Google ignores the rest",
                     v->robots.origin);
    good = check_lines(v);
    check_other_lines(v);
    if (!visit_names_index(v, &v->robots))
        visit_report(v, DOCTOR_WARNING, "robots", &(struct visit_about){.code = "index-not-named"},
                     "add a line to it: Sitemap: and the URL of the index",
                     "%s/robots.txt does not name %s", v->robots.origin, v->url.text);
    else if (forbidden == NULL && good)
        visit_report_plain(v, DOCTOR_OK, "robots", NULL, "names the index and allows crawlers");
}
