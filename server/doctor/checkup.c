/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The order of the checks: robots.txt, the index, its pages, its sitemaps. */
#include "server/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

#include "server/doctor/visit.h"
#include "server/rules/robots.h"
#include "server/rules/scope.h"

/* Chooses the index among those in robots.txt: the one at the usual path, else the last one of the
 * same origin, else the first. The last, because sitemapd's lines follow those of robots_file,
 * which may be about older sitemaps. */
static bool choose_index(const struct visit *v, struct url *out)
{
    const struct visit_robots *robots = &v->robots;
    struct robots_cursor at = {0};
    struct robots_sitemap sitemap;
    size_t origin_len = strlen(robots->origin);
    struct url url, base;
    bool found = false;

    if (url_parse_origin(robots->origin, origin_len, &base) != RULE_OK)
        return false;
    while (robots_next_sitemap(str_text(&robots->text), robots->text.len, &at, &sitemap)) {
        if (!robots_sitemap_guess(&sitemap, &base, &url))
            continue;
        visit_own(v, &url);
        bool own =
            url.origin_len == origin_len && memcmp(url.text, robots->origin, origin_len) == 0;

        if (!found || own)
            *out = url;
        found = true;
        if (own && strcmp(url.text + origin_len, INDEX_PATH_DEFAULT) == 0)
            break;
    }
    return found;
}

/* The user named a site, not an index: take one from its robots.txt, else the usual path. */
static void find_index(struct visit *v)
{
    char text[LOC_MAX_CHARS + 32];

    visit_fetch_robots(v, &v->url, &v->robots);
    if (choose_index(v, &v->url)) {
        /* If the index is on another origin, the robots.txt there counts. */
        if (strncmp(v->robots.origin, v->url.text, v->url.origin_len) != 0 ||
            v->robots.origin[v->url.origin_len] != '\0') {
            str_done(&v->robots.text);
            v->robots = (struct visit_robots){.text = STR_INIT};
        }
        return;
    }
    snprintf(text, sizeof text, "%s" INDEX_PATH_DEFAULT, v->robots.origin);
    url_parse(text, strlen(text), &v->url, NULL);
}

bool doctor_run(const struct doctor_options *options, doctor_report *report, void *context,
                unsigned counts[DOCTOR_LEVELS])
{
    struct visit v = {
        .options = options,
        .report = report,
        .context = context,
        .counts = counts,
        .url = *options->url,
        .body = STR_INIT,
        .robots = {.text = STR_INIT},
    };

    memset(counts, 0, DOCTOR_LEVELS * sizeof *counts);
    if (strcmp(v.url.text + v.url.origin_len, "/") == 0)
        find_index(&v);
    if (visit_page(&v)) {
        visit_headers(&v);
        visit_conditional(&v);
        visit_robots(&v);
        visit_index(&v);
    } else if (v.page.status != 0 && !v.no_memory) {
        visit_robots(&v);
    }
    fetch_reply_done(&v.page);
    str_done(&v.body);
    str_done(&v.robots.text);
    return !v.no_memory;
}
