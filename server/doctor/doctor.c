#include "server/doctor/doctor.h"

#include <stdio.h>
#include <string.h>

#include "server/doctor/robots_txt.h"
#include "server/doctor/visit.h"

#define DEFAULT_PATH "/sitemap_index.xml"

/* A site was named, not an index: the first that its robots.txt names, else the usual path. */
static void find_index(struct visit *v)
{
    const char *at, *value;
    char text[LOC_MAX_CHARS + 32];
    size_t len;

    visit_fetch_robots(v, &v->url, &v->robots);
    at = str_text(&v->robots.text);
    len = robots_txt_next_sitemap(&at, &value);
    if (len > 0 && url_parse(value, len, &v->url, NULL) == RULE_OK) {
        /* The index may be on another origin, whose robots.txt is to be judged. */
        if (strncmp(v->robots.origin, v->url.text, v->url.origin_len) != 0 ||
            v->robots.origin[v->url.origin_len] != '\0') {
            str_done(&v->robots.text);
            v->robots = (struct visit_robots){.text = STR_INIT};
        }
        return;
    }
    snprintf(text, sizeof text, "%s" DEFAULT_PATH, v->robots.origin);
    url_parse(text, strlen(text), &v->url, NULL);
}

bool doctor_run(const struct doctor_options *options, doctor_report *report, void *context,
                unsigned counts[3])
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

    memset(counts, 0, 3 * sizeof *counts);
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
