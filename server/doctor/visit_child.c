/* One sitemap that an index lists. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/doctor/visit.h"
#include "server/ingest/sitemap_file.h"
#include "server/rules/plural.h"

static const char *todo_of_status(unsigned status)
{
    if (status == 404 || status == 410)
        return "take it out of the index (`sitemapd remove`), or put the file back";
    if (status / 100 == 3)
        return "list the URL that it leads to";
    if (status == 401 || status == 403)
        return "let crawlers in: no password, no rule against bots";
    return "look into the logs of the server that it lies on";
}

static void judge_file(struct visit *v, const char *loc, const struct sitemap_file *file)
{
    char place[64] = "";

    switch (file->kind) {
    case SITEMAP_FILE_URLSET:
    case SITEMAP_FILE_TEXT:
        if (file->one_lastmod)
            visit_say(v, DOCTOR_WARNING, "child",
                      "date each page by its own change; crawlers learn to ignore build stamps",
                      "%s: all of its %" PRIu64 " pages bear the same lastmod", loc, file->urls);
        else if (file->bad_urls > 0)
            visit_say(v, DOCTOR_WARNING, "child", "correct them where the sitemap is made",
                      "%s: %" PRIu64 " of its %" PRIu64 " %s %s no good", loc, file->bad_urls,
                      file->urls, plural(file->urls, "URL", "URLs"),
                      plural(file->bad_urls, "is", "are"));
        else
            visit_say(v, DOCTOR_OK, "child", NULL, "%s: %" PRIu64 " %s", loc, file->urls,
                      plural(file->urls, "URL", "URLs"));
        break;
    case SITEMAP_FILE_EMPTY:
        visit_say(v, DOCTOR_WARNING, "child", "leave it out of the index until it has one",
                  "%s: has no URL", loc);
        break;
    case SITEMAP_FILE_INDEX:
        visit_say(v, DOCTOR_WRONG, "child",
                  "list its sitemaps themselves: an index may hold no index",
                  "%s: is an index itself", loc);
        break;
    case SITEMAP_FILE_OTHER:
        visit_say(
            v, DOCTOR_WRONG, "child",
            "put the sitemap back, or take it out of the index: this may be an error page with "
            "200",
            "%s: is no sitemap", loc);
        break;
    case SITEMAP_FILE_BROKEN:
        if (file->line > 0)
            snprintf(place, sizeof place, "line %" PRIu64 ", column %" PRIu64 ": ", file->line,
                     file->column);
        visit_say(v, DOCTOR_WRONG, "child", "correct the file where it is made", "%s: %s%s (%s)",
                  loc, place, file->detail, file->code);
        break;
    }
}

static void verify(struct visit *v, const char *loc, const struct str *body)
{
    struct sitemap_verifier *verifier = sitemap_verifier_new(v->options->now);
    struct sitemap_file file;

    if (verifier != NULL)
        sitemap_verifier_feed(verifier, str_text(body), body->len);
    if (verifier == NULL || !sitemap_verifier_finish(verifier, &file))
        v->no_memory = true;
    else
        judge_file(v, loc, &file);
    sitemap_verifier_free(verifier);
}

static void judge_answer(struct visit *v, const char *loc, const struct fetch_reply *r)
{
    struct str body = STR_INIT;

    if (r->status != 200)
        visit_say(v, DOCTOR_WRONG, "child", todo_of_status(r->status), "%s: answers %u", loc,
                  r->status);
    else if (r->cut)
        visit_say(v, DOCTOR_WRONG, "child", "split it: 50 MiB is the limit",
                  "%s: is larger than 52,428,800 bytes", loc);
    else if (visit_decode(v, "child", loc, r, &body))
        verify(v, loc, &body);
    str_done(&body);
}

void visit_child(struct visit *v, const char *loc, const struct visit_robots *robots)
{
    const char *forbidden;
    struct fetch_reply r;
    struct url url;
    unsigned hops;

    if (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK)
        return;
    visit_own(v, &url);
    forbidden = robots != NULL ? visit_forbidden(robots, &url) : NULL;
    if (forbidden != NULL)
        visit_say(v, DOCTOR_WRONG, "child", "take the Disallow off, or add an Allow for it",
                  "%s: robots.txt forbids it to %s", loc, forbidden);
    if (visit_follow(v, &url, "Accept-Encoding: gzip\r\n", VISIT_MAX_PAGE, &r, &hops) != FETCH_OK)
        visit_say(v, DOCTOR_WRONG, "child", "check the name, the server and its certificate",
                  "%s: cannot be fetched: %s", loc, r.why);
    else
        judge_answer(v, loc, &r);
    fetch_reply_done(&r);
}
