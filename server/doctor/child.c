/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Checks the sitemaps that an index lists: a sample of them, and the robots.txt of other hosts. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/base/text.h"
#include "server/doctor/visit.h"
#include "server/input/sitemap_file.h"
#include "server/rules/lastmod.h"

/* The remarks of the sitemap verifier, with what to do about each. */

static enum doctor_level level_of(enum rule_code code)
{
    /* It does no harm if the site is verified in a search console, or the crawlers are not strict.
     */
    return code == RULE_OUTSIDE_DIRECTORY ? DOCTOR_NOTE : DOCTOR_WARNING;
}

static const char *todo_of(enum rule_code code)
{
    switch (code) {
    case RULE_OUTSIDE_SITE:
        return "list the pages of each host in a sitemap of that host; or name the index in that "
               "host's robots.txt, or verify both hosts in the search consoles";
    case RULE_OUTSIDE_DIRECTORY:
        return "put the sitemap at the top of the site, or verify the site in the search consoles: "
               "otherwise crawlers accept only URLs of its own directory";
    case RULE_SCHEME_DIFFERS:
        return "list the URLs that the pages have, with the sitemap's own scheme";
    case RULE_LASTMOD_INVALID:
    case RULE_LASTMOD_NO_ZONE:
    case RULE_LASTMOD_FUTURE:
    case RULE_LASTMOD_OLD:
        return "use W3C dates with time and time zone, not in the future; crawlers ignore other "
               "dates";
    case RULE_ONE_LASTMOD:
        return "date each page by its own last change; crawlers learn to ignore build dates";
    case RULE_NAMESPACE:
        return "set xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" on the urlset, exactly";
    case RULE_ENCODING_ODD:
        return "remove this Content-Encoding: it names the compression of the body, such as gzip";
    case RULE_GZIP_UNMARKED:
        return "name it .gz, or send Content-Type: application/gzip: some crawlers read it as "
               "damaged text";
    default:
        return "correct the program that writes the sitemap; crawlers skip such pages";
    }
}

/* Reports the verifier's remarks on a sitemap. True if any is more than a note. */
static bool visit_remarks(struct visit *v, const char *loc, const struct sitemap_remarks *remarks)
{
    bool serious = false;

    for (size_t i = 0; i < remarks->count; i++) {
        const struct sitemap_remark *r = &remarks->at[i];
        enum doctor_level level = level_of(r->code);
        const struct visit_about about = {
            .code = rule_code_word(r->code),
            .url = loc,
            .line = r->lines[0],
            .column = r->column,
            .count = r->count,
        };
        char sentence[SITEMAP_REMARK_SENTENCE], place[64] = "";

        if (r->lines[0] > 0)
            snprintf(place, sizeof place, "line %" PRIu64 ", column %" PRIu64 ": ", r->lines[0],
                     r->column);
        sitemap_remark_report(r, sentence);
        visit_report(v, level, "child", &about, todo_of(r->code), "%s: %s%s (%s)", loc, place,
                     sentence, about.code);
        serious = serious || level != DOCTOR_NOTE;
    }
    return serious;
}

/* Sitemaps on hosts other than the index's: whether crawlers may fetch and will accept them. */

static bool is_origin(const char *origin, const struct url *loc)
{
    return strncmp(origin, loc->text, loc->origin_len) == 0 && origin[loc->origin_len] == '\0';
}

/* SIZE_MAX: it is not one of them. */
static size_t find_host(const struct visit_hosts *hosts, const struct url *loc)
{
    for (size_t i = 0; i < hosts->count; i++)
        if (url_same_origin(&hosts->first[i], loc))
            return i;
    return SIZE_MAX;
}

void visit_hosts_add(const struct visit *v, struct visit_hosts *hosts, const struct url *loc)
{
    size_t at = find_host(hosts, loc);

    if (is_origin(v->robots.origin, loc) || (at == SIZE_MAX && hosts->count == VISIT_MAX_HOSTS))
        return;
    if (at == SIZE_MAX) {
        at = hosts->count++;
        hosts->first[at] = *loc;
    }
    hosts->locs[at]++;
}

const struct visit_robots *
visit_hosts_robots(const struct visit *v, const struct visit_hosts *hosts, const struct url *loc)
{
    size_t at = find_host(hosts, loc);

    if (is_origin(v->robots.origin, loc))
        return &v->robots;
    return at == SIZE_MAX ? NULL : &hosts->robots[at];
}

/* The host of the listed pages must prove its consent by a robots.txt that names the index. For
 * pages of the index's host, its own robots.txt does that. */
static void check_proof(struct visit *v, const struct visit_robots *r, const struct url *first,
                        uint64_t locs)
{
    struct visit_about about = {.code = "cross-host", .url = first->text, .count = locs};
    char todo[LOC_MAX_CHARS * 2 + 128];

    if (visit_names_index(v, r)) {
        about.code = "cross-host-proved";
        visit_report(v, DOCTOR_NOTE, "cross-host", &about,
                     "nothing to do if this is intended; Yandex ignores sitemaps on another host",
                     "%" PRIu64 " %s on %s, %s first; its robots.txt names the index", locs,
                     plural(locs, "sitemap is", "sitemaps are"), r->origin, first->text);
        return;
    }
    snprintf(
        todo, sizeof todo,
        "nothing to do if they list only pages of %s; otherwise name the index in %s/robots.txt, "
        "or verify both hosts in the search consoles",
        v->robots.origin, r->origin);
    visit_report(v, DOCTOR_WARNING, "cross-host", &about, todo,
                 "%" PRIu64 " %s on another host, %s, %s first: crawlers may fetch %s, but accept "
                 "no pages of that host from %s",
                 locs, plural(locs, "sitemap is", "sitemaps are"), r->origin, first->text,
                 plural(locs, "it", "them"), plural(locs, "it", "them"));
}

static void check_robots(struct visit *v, const struct visit_robots *r, const struct url *first,
                         uint64_t locs)
{
    const char *forbidden = visit_forbidden(r, first);
    struct visit_about about = {.url = first->text, .count = locs};

    if (r->status == 0 || r->status >= 500 || r->status == 429) {
        about.code = "robots-unreachable";
        visit_report(v, DOCTOR_WRONG, "cross-host", &about,
                     "repair its robots.txt, or answer 404: while it fails, crawlers fetch nothing "
                     "from that host",
                     "%s/robots.txt does not answer", r->origin);
    } else if (forbidden != NULL) {
        about.code = "robots-forbids";
        visit_report(v, DOCTOR_WRONG, "cross-host", &about, "remove the Disallow there",
                     "%s/robots.txt disallows %s for %s", r->origin, first->text, forbidden);
    } else {
        check_proof(v, r, first, locs);
    }
}

void visit_hosts_check(struct visit *v, struct visit_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count && !v->no_memory; i++) {
        visit_fetch_robots(v, &hosts->first[i], &hosts->robots[i]);
        check_robots(v, &hosts->robots[i], &hosts->first[i], hosts->locs[i]);
    }
}

void visit_hosts_done(struct visit_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++)
        str_done(&hosts->robots[i].text);
}

/* One sitemap that an index lists. */

static bool is_diverted(const struct visit *v, const struct url *loc)
{
    const struct url *own = v->options->url;

    return v->options->connect != NULL && loc->host_len == own->host_len &&
           memcmp(loc->text + loc->host_at, own->text + own->host_at, loc->host_len) == 0;
}

/* Whether it is the 404 of this server's public listener (server/http/reply.c). */
static bool is_own_404(const struct fetch_reply *r)
{
    static const char body[] = "Not Found\n";
    const char *type = fetch_header(r, "Content-Type");
    const char *sniff = fetch_header(r, "X-Content-Type-Options");
    const char *cache = fetch_header(r, "Cache-Control");

    return r->status == 404 && r->body.len == strlen(body) &&
           memcmp(r->body.data, body, strlen(body)) == 0 && type != NULL &&
           strcasecmp(type, "text/plain; charset=utf-8") == 0 && sniff != NULL &&
           strcasecmp(sniff, "nosniff") == 0 && cache != NULL && strcasecmp(cache, "no-store") == 0;
}

static const char *todo_of_status(const struct visit *v, const struct url *loc,
                                  const struct fetch_reply *r)
{
    unsigned status = r->status;

    if (is_own_404(r) && is_diverted(v, loc))
        return "if --connect names sitemapd itself, --sample 0 skips its sitemaps; if it names a "
               "web server, have that forward only the paths of the index and robots.txt "
               "(`sitemapd migrate ORIGIN --proxy nginx` prints the rules): this path reaches "
               "sitemapd, which does not have the file";
    if (is_own_404(r))
        return "have the web server forward only the paths of the index and robots.txt (`sitemapd "
               "migrate ORIGIN --proxy nginx` prints the rules): this path reaches sitemapd, which "
               "does not have the file; or remove the entry (`sitemapd remove`)";
    if ((status == 404 || status == 410) && is_diverted(v, loc))
        return "put the file back; if it is not on the server that --connect names, --sample 0 "
               "skips it";
    if ((status == 404 || status == 410) && url_same_host(loc, &v->url))
        return "if sitemapd serves this file (`serve = yes`, --source, a urlset), have the web "
               "server forward its path to sitemapd; otherwise put the file back, or remove the "
               "entry (`sitemapd remove`)";
    if (status == 404 || status == 410)
        return "remove the entry (`sitemapd remove`), or put the file back";
    if (status == 304)
        return "have the web server answer 200: 304 is for requests with If-None-Match or "
               "If-Modified-Since, and this one had neither";
    if (status / 100 == 3)
        return "list the URL that it redirects to";
    if (status == 401 || status == 403)
        return "allow crawlers: no password, no rule against bots";
    return "check the logs of the server that has it";
}

static void report_child(struct visit *v, enum doctor_level level, const char *loc,
                         const char *code, const char *todo, const char *what)
{
    visit_report(v, level, "child", &(struct visit_about){.code = code, .url = loc}, todo, "%s: %s",
                 loc, what);
}

const char *child_todo(const char *code)
{
    static const struct {
        const char *code, *todo;
    } all[] = {
        {"empty", "remove it from the index until it has a URL"},
        {"nested-index", "list its sitemaps directly: an index may not list an index"},
        {"not-a-sitemap", "put the sitemap back, or remove it from the index: this may be an error "
                          "page with status 200"},
        {"bot-wall", "exempt sitemaps and verified crawlers from the bot protection: a crawler "
                     "that gets this page reads no sitemap"},
        {"maintenance-page", "answer 503 with Retry-After during maintenance: with 200 crawlers "
                             "read the page as the sitemap"},
        {"not-gzip",
         "compress it, or remove .gz from its name: Google reports a compression error"},
        {"packed-twice", "turn compression off in the proxy for this path, or compress the file "
                         "once: it is compressed twice"},
        {"encoding", "make the server encode only what Accept-Encoding names, and declare what it "
                     "sends"},
        {"wrong-namespace",
         "set xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" on the urlset, exactly"},
        {"no-usable-url",
         "write absolute URLs, in a text file one per line: no crawler can use this sitemap"},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(code, all[i].code) == 0)
            return all[i].todo;
    return "correct the program that writes the file";
}

static void report_file(struct visit *v, enum doctor_level level, const char *loc,
                        const struct sitemap_file *file)
{
    char place[64] = "";

    if (file->line > 0)
        snprintf(place, sizeof place, "line %" PRIu64 ", column %" PRIu64 ": ", file->line,
                 file->column);
    visit_report(v, level, "child",
                 &(struct visit_about){file->code, loc, file->line, file->column, 0},
                 child_todo(file->code), "%s: %s%s (%s)", loc, place, file->detail, file->code);
}

#define STALE_SECONDS 86400 /* a date without a time covers a day */

/* Crawlers that follow the dates of the index miss a page that is newer than the date of its
 * sitemap. If all pages have the same date, that is the time of a build and does not count. */
static bool check_date(struct visit *v, const char *loc, const char *lastmod,
                       const struct sitemap_file *file)
{
    struct lastmod claimed, newest;

    if (file->stamp ||
        lastmod_parse(lastmod, strlen(lastmod), v->options->now, &claimed, NULL) != RULE_OK ||
        lastmod_parse(file->newest_lastmod, strlen(file->newest_lastmod), v->options->now, &newest,
                      NULL) != RULE_OK ||
        newest.unix_seconds - claimed.unix_seconds <= STALE_SECONDS)
        return false;
    visit_report(v, DOCTOR_WARNING, "child",
                 &(struct visit_about){.code = "stale-date", .url = loc},
                 "register it whenever it changes, or have it polled (`check = yes`): crawlers "
                 "that rely on dates miss its changes",
                 "%s: the index says %s, but its newest page is dated %s", loc, lastmod,
                 file->newest_lastmod);
    return true;
}

/* The size that Google's crawlers fetch of any file, unless documented otherwise. */
#define LARGE_BYTES 15000000u

static bool check_size(struct visit *v, const char *loc, const struct sitemap_file *file)
{
    if (file->bytes <= LARGE_BYTES)
        return false;
    visit_report(v, DOCTOR_NOTE, "child", &(struct visit_about){.code = "large", .url = loc},
                 "consider smaller sitemaps (of a urlset: max_page_bytes): the protocol allows 50 "
                 "MiB, and some crawlers stop at 15 MB",
                 "%s: %" PRIu64 " MB uncompressed", loc, file->bytes / 1000000);
    return true;
}

static void check_file(struct visit *v, const char *loc, const char *lastmod,
                       const struct sitemap_file *file)
{
    bool stale, large;

    if (file->kind == SITEMAP_FILE_EMPTY) {
        report_file(v, DOCTOR_WARNING, loc, file);
    } else if (!sitemap_file_is_good(file->kind)) {
        report_file(v, DOCTOR_WRONG, loc, file);
    } else {
        stale = check_date(v, loc, lastmod, file);
        large = check_size(v, loc, file);
        if (!visit_remarks(v, loc, &file->remarks) && !stale && !large)
            visit_report(v, DOCTOR_OK, "child", &(struct visit_about){.url = loc}, NULL,
                         "%s: %s%" PRIu64 " %s", loc, file->feed ? "a feed of " : "", file->urls,
                         plural(file->urls, "URL", "URLs"));
    }
}

/* A sitemap on another host may list pages of the index's host: the robots.txt that names the index
 * covers them. */
static void verify_child(struct visit *v, const struct url *loc, const char *lastmod,
                         const struct fetch_reply *r)
{
    char host[LOC_MAX_CHARS + 1], codings[CODINGS_TEXT];
    const char *hosts[] = {host};
    struct sitemap_expect expect = {
        .now = v->options->now,
        .url = loc,
        .hosts = hosts,
        .host_count = 1,
        .packing = sitemap_packing_of(loc->text, (size_t)loc->origin_len + loc->path_len),
    };
    struct sitemap_verifier *verifier;
    struct sitemap_file file;

    snprintf(host, sizeof host, "%.*s", v->url.origin_len - v->url.host_at,
             v->url.text + v->url.host_at);
    verifier = sitemap_verifier_new(&expect);
    if (verifier != NULL) {
        sitemap_verifier_head(verifier,
                              fetch_header_joined(r, "Content-Encoding", codings, sizeof codings),
                              fetch_header(r, "Content-Type"));
        sitemap_verifier_feed(verifier, str_text(&r->body), r->body.len);
    }
    if (verifier == NULL || !sitemap_verifier_finish(verifier, &file))
        v->no_memory = true;
    else
        check_file(v, loc->text, lastmod, &file);
    sitemap_verifier_free(verifier);
}

/* The header keeps only the sitemap itself out of search results, not its pages, by Google's and
 * Bing's documentation. */
static void record_unindexed(struct visit *v, const char *loc, const struct fetch_reply *r)
{
    for (size_t i = 0; i < r->header_count; i++) {
        const struct fetch_header *header = &r->headers[i];

        if (strcasecmp(header->name, "X-Robots-Tag") != 0 ||
            (strcasestr(header->value, "noindex") == NULL &&
             strcasestr(header->value, "none") == NULL))
            continue;
        if (v->unindexed++ == 0)
            snprintf(v->first_unindexed, sizeof v->first_unindexed, "%s", loc);
        return;
    }
}

static void check_answer(struct visit *v, const struct url *loc, const char *lastmod,
                         const struct url *last, unsigned hops, const struct fetch_reply *r)
{
    struct visit_about about = {.url = loc->text};

    record_unindexed(v, loc->text, r);
    if (hops > 0 && r->status / 100 != 3) {
        about.code = "redirect";
        visit_report(v, DOCTOR_WARNING, "child", &about,
                     "list the URL that it redirects to: crawlers follow only a few redirects, and "
                     "validate a sitemap by its final URL",
                     "%s: is redirected to %s", loc->text, last->text);
    }
    about.code = fetch_is_wall(r) ? "bot-wall" : "status";
    if (fetch_is_wall(r))
        visit_report(v, DOCTOR_WRONG, "child", &about, child_todo(about.code),
                     "%s: answers %u with a bot protection challenge page (%s)", loc->text,
                     r->status, about.code);
    else if (r->status != 200)
        visit_report(v, DOCTOR_WRONG, "child", &about, todo_of_status(v, loc, r),
                     "%s: answers %u%s", loc->text, r->status,
                     hops == VISIT_MAX_HOPS ? ", after 5 redirects" : "");
    else if (r->cut)
        report_child(v, DOCTOR_WRONG, loc->text, "file-too-large", "split it: 50 MiB is the limit",
                     "is larger than 52,428,800 bytes");
    else
        verify_child(v, loc, lastmod, r);
}

void visit_child(struct visit *v, const char *text, const char *lastmod,
                 const struct visit_robots *robots)
{
    const char *forbidden;
    enum fetch_status status;
    struct fetch_reply r;
    struct url loc, url;
    unsigned hops;

    if (url_parse(text, strlen(text), &loc, NULL) != RULE_OK)
        return;
    url = loc;
    visit_own(v, &url);
    forbidden = robots != NULL ? visit_forbidden(robots, &url) : NULL;
    if (forbidden != NULL)
        visit_report(v, DOCTOR_WRONG, "child",
                     &(struct visit_about){.code = "robots-forbids", .url = loc.text},
                     "remove the Disallow, or add an Allow for it",
                     "%s: robots.txt disallows it for %s", loc.text, forbidden);
    status = visit_follow(v, &url, "Accept-Encoding: gzip\r\n", VISIT_MAX_PAGE, &r, &hops);
    if (status != FETCH_OK)
        visit_report(v, DOCTOR_WRONG, "child",
                     &(struct visit_about){.code = "reach", .url = loc.text},
                     visit_fetch_todo(status), "%s: cannot be fetched: %s", loc.text, r.why);
    else
        check_answer(v, &loc, lastmod, &url, hops, &r);
    fetch_reply_done(&r);
}

void visit_children_end(struct visit *v)
{
    const struct visit_about about = {
        .code = "noindex", .url = v->first_unindexed, .count = v->unindexed};

    if (v->unindexed > 0)
        visit_report(
            v, DOCTOR_NOTE, "child", &about,
            "nothing to do: Google and Bing read it and index its pages anyway",
            "%s%s: X-Robots-Tag: noindex, which keeps the file itself out of search results",
            v->first_unindexed, v->unindexed > 1 ? " and others" : "");
}
