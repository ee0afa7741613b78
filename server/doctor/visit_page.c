/* The answer to a plain GET with Accept-Encoding: gzip, as crawlers send it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/doctor/visit.h"
#include "server/rules/plural.h"

#define GZIP_HEADERS     "Accept-Encoding: gzip\r\nAccept: */*\r\n"
#define SOON_ENDS_S      (14 * 86400)
#define WORTH_COMPRESSED 1400u /* bytes: less is one packet either way */

static void say_unreachable(struct visit *v, enum fetch_status status)
{
    static const char *const todos[] = {
        [FETCH_RESOLVE] = "check the name in the URL and its DNS records",
        [FETCH_CONNECT] = "check that the web server runs, listens there, and that no firewall is "
                          "between",
        [FETCH_TLS] =
            "give the web server a certificate for this host, with its whole chain; ask a "
            "listener without TLS by http://",
        [FETCH_TIMEOUT] = "check firewall and load: crawlers give up as well",
        [FETCH_PROTOCOL] = "check what listens there, and the proxies between",
    };

    if (status != FETCH_NO_MEMORY)
        visit_say(v, DOCTOR_WRONG, "reach", todos[status], "%s cannot be fetched: %s", v->url.text,
                  v->page.why);
}

static void say_reached(struct visit *v)
{
    int64_t left = v->page.certificate_ends - v->options->now;

    if (!v->url.https)
        visit_say(v, DOCTOR_OK, "reach", NULL, "%s answers", v->url.text);
    else if (left < SOON_ENDS_S)
        visit_say(v, DOCTOR_WARNING, "reach", "renew the certificate",
                  "%s answers, but its certificate ends in %" PRId64 " %s", v->url.text,
                  left / 86400, plural((uint64_t)(left / 86400), "day", "days"));
    else
        visit_say(v, DOCTOR_OK, "reach", NULL,
                  "%s answers by %s; its certificate is good for %" PRId64 " days", v->url.text,
                  v->page.protocol, left / 86400);
}

static void judge_redirects(struct visit *v, unsigned hops)
{
    if (hops == 0)
        visit_say(v, DOCTOR_OK, "redirect", NULL, "none");
    else if (hops == VISIT_MAX_HOPS && v->page.status / 100 == 3)
        visit_say(v, DOCTOR_WRONG, "redirect", "end the loop; crawlers give up after a few",
                  "more than %u redirects", VISIT_MAX_HOPS);
    else if (!url_same_host(&v->url, v->options->url))
        visit_say(
            v, DOCTOR_WARNING, "redirect",
            "give crawlers the last URL in robots.txt, or pass the path on without a redirect",
            "it leads to another host: %s", v->url.text);
    else
        visit_say(v, DOCTOR_WARNING, "redirect", "name the last URL in robots.txt and to crawlers",
                  "%u on the way to %s", hops, v->url.text);
}

static const char *todo_of_status(unsigned status)
{
    switch (status) {
    case 401:
        return "take the password off this path: crawlers have none";
    case 403:
        return "let crawlers in: check the firewall's or CDN's rules against bots";
    case 404:
    case 410:
        return "check that the proxy passes this path on (sitemap_index.xml and its further "
               "pages), "
               "and that the index has entries: `sitemapd index list`";
    case 421:
        return "pass the Host header on as it came (nginx: proxy_set_header Host $host), or add "
               "the "
               "name as host alias of the site";
    case 429:
        return "raise the rate limit for crawlers";
    case 502:
    case 504:
        return "check that sitemapd runs and where the proxy looks for it";
    case 503:
        return "ask `sitemapd healthcheck` what is the matter; else it is the proxy's own answer";
    default:
        return status / 100 == 3 ? "give the redirect a Location that crawlers can follow"
                                 : "look into the logs of the web server and of sitemapd";
    }
}

static bool judge_status(struct visit *v)
{
    if (v->page.status == 200) {
        visit_say(v, DOCTOR_OK, "status", NULL, "200");
        return true;
    }
    visit_say(v, DOCTOR_WRONG, "status", todo_of_status(v->page.status), "%u where 200 is due",
              v->page.status);
    return false;
}

static void judge_type(struct visit *v)
{
    static const char todo[] = "let the proxy pass Content-Type on as the server sends it";
    const char *type = fetch_header(&v->page, "Content-Type");
    size_t len = strlen(v->url.text);
    bool gz = len > 3 && strcmp(v->url.text + len - 3, ".gz") == 0;

    if (type == NULL)
        visit_say(v, DOCTOR_WARNING, "type", todo, "there is no Content-Type");
    else if (fetch_header_lists(&v->page, "Content-Type",
                                gz ? "application/gzip" : "application/xml") ||
             fetch_header_lists(&v->page, "Content-Type", gz ? "application/x-gzip" : "text/xml"))
        visit_say(v, DOCTOR_OK, "type", NULL, "%s", type);
    else if (fetch_header_lists(&v->page, "Content-Type", "text/html"))
        visit_say(
            v, DOCTOR_WRONG, "type",
            "find out who answers here: it is a page for people, or a proxy that changes types",
            "%s where XML is due", type);
    else
        visit_say(v, DOCTOR_WARNING, "type", todo, "%s where %s is due", type,
                  gz ? "application/gzip" : "application/xml");
}

static void say_encoding(struct visit *v)
{
    bool encoded = fetch_header(&v->page, "Content-Encoding") != NULL;

    if (encoded)
        visit_say(v, DOCTOR_OK, "gzip", NULL, "%zu bytes, %zu decoded", v->page.body.len,
                  v->body.len);
    else if (fetch_header_lists(&v->page, "Content-Type", "application/gzip") ||
             v->body.len < WORTH_COMPRESSED)
        visit_say(v, DOCTOR_OK, "gzip", NULL, "%zu bytes, as they are", v->page.body.len);
    else
        visit_say(
            v, DOCTOR_WARNING, "gzip",
            "let the proxy pass Accept-Encoding on (nginx takes none away; a CDN may), or the "
            "answer as it is",
            "%zu bytes come uncompressed, though gzip was asked for", v->page.body.len);
}

bool visit_page(struct visit *v)
{
    unsigned hops;
    enum fetch_status status =
        visit_follow(v, &v->url, GZIP_HEADERS, VISIT_MAX_PAGE, &v->page, &hops);

    if (status != FETCH_OK) {
        say_unreachable(v, status);
        return false;
    }
    say_reached(v);
    judge_redirects(v, hops);
    if (!judge_status(v))
        return false;
    judge_type(v);
    if (v->page.cut) {
        visit_say(v, DOCTOR_WRONG, "gzip", "split it: 50 MiB is the limit",
                  "there are more than 52,428,800 bytes");
        return false;
    }
    if (!visit_decode(v, "gzip", "the answer", &v->page, &v->body))
        return false;
    say_encoding(v);
    return true;
}
