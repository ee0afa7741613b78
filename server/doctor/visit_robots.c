/* robots.txt: whether it is there, names the index, and lets crawlers in. */
#include <stdio.h>
#include <string.h>

#include "server/doctor/robots_txt.h"
#include "server/doctor/visit.h"

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
    if (visit_follow(v, &url, "Accept-Encoding: identity\r\n", VISIT_MAX_ROBOTS, &r, &hops) ==
        FETCH_OK)
        out->status = r.status;
    if (out->status == 200)
        str_append(&out->text, r.body.data, r.body.len);
    v->no_memory = v->no_memory || out->text.failed;
    fetch_reply_done(&r);
}

const char *visit_forbidden(const struct visit_robots *robots, const struct url *url)
{
    static const struct {
        const char *agent, *name;
    } crawlers[] = {{"*", "all crawlers"}, {"googlebot", "Googlebot"}, {"bingbot", "Bingbot"}};
    const char *path = url->text + url->origin_len;

    for (size_t i = 0; i < sizeof crawlers / sizeof *crawlers; i++)
        if (!robots_txt_allows(str_text(&robots->text), crawlers[i].agent, path))
            return crawlers[i].name;
    return NULL;
}

/* The same page, its .gz form included: robots.txt names one of the two. */
static bool is_same_page(const char *named, const char *asked)
{
    size_t len = strlen(named);

    return strncmp(named, asked, len) == 0 &&
           (asked[len] == '\0' || strcmp(asked + len, ".gz") == 0);
}

/* What is compared: behind a proxy that ends TLS (--connect) the index is asked for by http and is
 * named, as its site is, by https. */
static const char *compared(const struct visit *v, const struct url *url)
{
    return v->options->connect != NULL ? url->text + strcspn(url->text, ":") : url->text;
}

static bool names_index(const struct visit *v)
{
    const char *at = str_text(&v->robots.text), *value;
    size_t len;
    struct url url;

    while ((len = robots_txt_next_sitemap(&at, &value)) > 0)
        if (url_parse(value, len, &url, NULL) == RULE_OK &&
            (is_same_page(compared(v, &url), compared(v, &v->url)) ||
             is_same_page(compared(v, &url), compared(v, v->options->url))))
            return true;
    return false;
}

void visit_robots(struct visit *v)
{
    const char *forbidden;
    unsigned status;

    if (v->robots.origin[0] == '\0')
        visit_fetch_robots(v, &v->url, &v->robots);
    status = v->robots.status;
    if (status == 0 || status >= 500 || status == 429) {
        visit_say(v, DOCTOR_WRONG, "robots",
                  "make /robots.txt answer: while it fails, crawlers stay away from the whole site",
                  "%s/robots.txt %s", v->robots.origin,
                  status == 0 ? "cannot be fetched" : "answers with an error");
        return;
    }
    if (status != 200) {
        visit_say(v, DOCTOR_WARNING, "robots",
                  "pass /robots.txt on to sitemapd, or write the Sitemap line into your own",
                  "%s/robots.txt answers %u: crawlers are not told of the index", v->robots.origin,
                  status);
        return;
    }
    forbidden = visit_forbidden(&v->robots, &v->url);
    if (forbidden != NULL)
        visit_say(v, DOCTOR_WRONG, "robots", "take the Disallow off, or add an Allow for this path",
                  "it forbids the index to %s", forbidden);
    if (!names_index(v))
        visit_say(v, DOCTOR_WARNING, "robots",
                  "add a line to it: Sitemap: and the URL of the index",
                  "%s/robots.txt does not name %s", v->robots.origin, v->url.text);
    else if (forbidden == NULL)
        visit_say(v, DOCTOR_OK, "robots", NULL, "names the index, and lets crawlers in");
}
