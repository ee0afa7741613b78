/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Checks the index itself: how it is reached, its type, encoding, entries and dates. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/text.h"
#include "server/doctor/visit.h"
#include "server/input/reader.h"
#include "server/rules/lastmod.h"
#include "server/rules/scope.h"

/* The response to a GET with Accept-Encoding: gzip, as crawlers send it. */

#define GZIP_HEADERS     "Accept-Encoding: gzip\r\nAccept: */*\r\n"
#define SOON_ENDS_S      (14 * 86400)
#define WORTH_COMPRESSED 1400u /* bytes; less fits one packet without compression */

static void report_unreachable(struct visit *v, enum fetch_status status)
{
    if (status != FETCH_NO_MEMORY)
        visit_report_plain(v, DOCTOR_WRONG, "reach", visit_fetch_todo(status),
                           "%s cannot be fetched: %s", v->url.text, v->page.why);
}

static void report_reached(struct visit *v)
{
    int64_t left = v->page.certificate_ends - v->options->now;

    if (!v->url.https)
        visit_report_plain(v, DOCTOR_OK, "reach", NULL, "%s answers", v->url.text);
    else if (left < SOON_ENDS_S)
        visit_report_plain(v, DOCTOR_WARNING, "reach", "renew the certificate",
                           "%s answers, but its certificate expires in %" PRId64 " %s", v->url.text,
                           left / 86400, plural((uint64_t)(left / 86400), "day", "days"));
    else
        visit_report_plain(v, DOCTOR_OK, "reach", NULL,
                           "%s answers over %s; its certificate is valid for %" PRId64 " days",
                           v->url.text, v->page.protocol, left / 86400);
}

static void check_redirects(struct visit *v, unsigned hops)
{
    if (hops == 0)
        visit_report_plain(v, DOCTOR_OK, "redirect", NULL, "none");
    else if (hops == VISIT_MAX_HOPS && v->page.status / 100 == 3)
        visit_report_plain(v, DOCTOR_WRONG, "redirect",
                           "end the redirect loop; crawlers give up after a few",
                           "more than %u redirects", VISIT_MAX_HOPS);
    else if (!url_same_host(&v->url, v->options->url))
        visit_report_plain(
            v, DOCTOR_WARNING, "redirect",
            "give crawlers the last URL in robots.txt, or forward the path without a redirect",
            "it redirects to another host: %s", v->url.text);
    else
        visit_report_plain(v, DOCTOR_WARNING, "redirect",
                           "use the last URL in robots.txt and search consoles",
                           "%u on the way to %s", hops, v->url.text);
}

static const char *todo_of_status(unsigned status)
{
    switch (status) {
    case 401:
        return "remove the password from this path: crawlers have none";
    case 403:
        return "allow crawlers: check the firewall's or CDN's rules against bots";
    case 404:
    case 410:
        return "check that the proxy forwards this path (sitemap_index.xml and its further pages), "
               "and that the index has entries: `sitemapd index list`";
    case 421:
        return "pass the Host header on unchanged (nginx: proxy_set_header Host $host), or add the "
               "name as host alias of the site; if `sitemapd site list` shows no site, create it: "
               "`sitemapd site add ORIGIN`";
    case 429:
        return "raise the rate limit for crawlers";
    case 502:
    case 504:
        return "check that sitemapd is running, and that the proxy forwards to its address and "
               "port";
    case 503:
        return "run `sitemapd healthcheck`; if it is ok, the proxy itself sent this response";
    default:
        return status / 100 == 3 ? "give the redirect a Location that crawlers can follow"
                                 : "check the logs of the web server and of sitemapd";
    }
}

static bool evaluate_status(struct visit *v)
{
    if (v->page.status == 200) {
        visit_report_plain(v, DOCTOR_OK, "status", NULL, "200");
        return true;
    }
    visit_report_plain(v, DOCTOR_WRONG, "status", todo_of_status(v->page.status),
                       "%u instead of 200", v->page.status);
    return false;
}

static void check_type(struct visit *v)
{
    static const char todo[] = "have the proxy pass on the server's Content-Type";
    const char *type = fetch_header(&v->page, "Content-Type");
    size_t len = strlen(v->url.text);
    bool gz = len > 3 && strcmp(v->url.text + len - 3, ".gz") == 0;

    if (type == NULL)
        visit_report_plain(v, DOCTOR_WARNING, "type", todo, "Content-Type is missing");
    else if (fetch_header_lists(&v->page, "Content-Type",
                                gz ? "application/gzip" : "application/xml") ||
             fetch_header_lists(&v->page, "Content-Type", gz ? "application/x-gzip" : "text/xml"))
        visit_report_plain(v, DOCTOR_OK, "type", NULL, "%s", type);
    else if (fetch_header_lists(&v->page, "Content-Type", "text/html"))
        visit_report_plain(
            v, DOCTOR_WRONG, "type",
            "find out what answers here: an HTML page, or a proxy that changes types",
            "%s instead of XML", type);
    else
        visit_report_plain(v, DOCTOR_WARNING, "type", todo, "%s instead of %s", type,
                           gz ? "application/gzip" : "application/xml");
}

static void report_encoding(struct visit *v)
{
    struct content_coding coding;

    visit_coding(&v->page, &coding);
    if (coding.gzip > 0)
        visit_report_plain(v, DOCTOR_OK, "gzip", NULL, "%zu bytes, %zu decoded", v->page.body.len,
                           v->body.len);
    else if (fetch_header_lists(&v->page, "Content-Type", "application/gzip") ||
             v->body.len < WORTH_COMPRESSED)
        visit_report_plain(v, DOCTOR_OK, "gzip", NULL, "%zu bytes, not compressed",
                           v->page.body.len);
    else
        visit_report_plain(
            v, DOCTOR_WARNING, "gzip",
            "have the proxy pass Accept-Encoding on (nginx keeps it, a CDN may remove it), "
            "or the response unchanged",
            "%zu bytes are sent uncompressed although the request accepts gzip", v->page.body.len);
}

bool visit_page(struct visit *v)
{
    unsigned hops;
    enum fetch_status status =
        visit_follow(v, &v->url, GZIP_HEADERS, VISIT_MAX_PAGE, &v->page, &hops);

    if (status != FETCH_OK) {
        report_unreachable(v, status);
        return false;
    }
    report_reached(v);
    check_redirects(v, hops);
    if (!evaluate_status(v))
        return false;
    check_type(v);
    if (v->page.cut) {
        visit_report_plain(v, DOCTOR_WRONG, "gzip", "split it: 50 MiB is the limit",
                           "it is larger than 52,428,800 bytes");
        return false;
    }
    if (!visit_decode(v, &v->page, &v->body))
        return false;
    report_encoding(v);
    return true;
}

/* The index itself: well-formed, within the limits, and each loc a URL that it may list. */

#define MAX_ENTRIES 50000u

struct found {
    struct visit *visit;
    struct str locs; /* each followed by its lastmod, both NUL-terminated */
    size_t *at;      /* owned; their offsets */
    size_t count, capacity;
    uint64_t refused, undated, bad_dates, outside;
    char first_refused[512], first_bad_date[512], first_outside[LOC_MAX_CHARS + 1];
    uint64_t refused_line, bad_date_line, outside_line;
    enum rule_code refused_code, bad_date_code;
};

static const char *loc_of(const struct found *f, size_t i)
{
    return f->locs.data + f->at[i];
}

/* ---- reading --------------------------------------------------------------------------- */

static void record_place(struct found *f, const char *loc, uint64_t line)
{
    char path[LOC_MAX_CHARS + 1];
    const struct url *index = &f->visit->url;
    struct url url;

    snprintf(path, sizeof path, "%.*s", index->path_len, index->text + index->origin_len);
    if (url_parse(loc, strlen(loc), &url, NULL) != RULE_OK || !url_same_host(&url, index) ||
        scope_holds(path, &url))
        return;
    if (f->outside++ > 0)
        return;
    snprintf(f->first_outside, sizeof f->first_outside, "%s", loc);
    f->outside_line = line;
}

static bool on_entry(void *context, const struct entry *entry)
{
    const rule_set bad = RULE_LASTMOD_DROPS;
    struct found *f = context;

    if (f->count == f->capacity) {
        size_t capacity = f->capacity > 0 ? f->capacity * 2 : 256;
        size_t *grown = realloc(f->at, capacity * sizeof *grown);

        if (grown == NULL)
            return false;
        f->at = grown;
        f->capacity = capacity;
    }
    f->at[f->count++] = f->locs.len;
    str_append(&f->locs, entry->loc, strlen(entry->loc) + 1);
    str_append_text(&f->locs, entry->lastmod != NULL ? entry->lastmod : "");
    str_append(&f->locs, "", 1);
    record_place(f, entry->loc, entry->line);
    if ((entry->remarks & bad) != 0 && f->bad_dates++ == 0) {
        snprintf(f->first_bad_date, sizeof f->first_bad_date, "%.400s", entry->loc);
        f->bad_date_line = entry->line;
        f->bad_date_code = entry->remarks & RULE_BIT(RULE_LASTMOD_FUTURE)    ? RULE_LASTMOD_FUTURE
                           : entry->remarks & RULE_BIT(RULE_LASTMOD_OLD)     ? RULE_LASTMOD_OLD
                           : entry->remarks & RULE_BIT(RULE_LASTMOD_NO_ZONE) ? RULE_LASTMOD_NO_ZONE
                                                                             : RULE_LASTMOD_INVALID;
    }
    if (entry->lastmod == NULL && (entry->remarks & bad) == 0)
        f->undated++;
    return !f->locs.failed;
}

static bool on_rejection(void *context, const struct rejection *rejection)
{
    struct found *f = context;

    if (f->refused++ > 0)
        return true;
    f->refused_line = rejection->line;
    f->refused_code = rejection->code;
    snprintf(f->first_refused, sizeof f->first_refused, "line %" PRIu64 ", %.300s: %.120s",
             rejection->line, rejection->loc != NULL ? rejection->loc : "no loc",
             rejection->detail);
    return true;
}

static const char *todo_of(const struct reader_error *error)
{
    if (strcmp(error->code, "html-not-index") == 0)
        return "find out what answers here with an HTML page: a login, an error page with status "
               "200, or a web server that does not forward the path";
    if (strcmp(error->code, "urlset-not-index") == 0)
        return "give the URL of the index; this is a valid sitemap, but not an index";
    if (strcmp(error->code, "bot-wall") == 0 || strcmp(error->code, "maintenance-page") == 0)
        return child_todo(error->code);
    return "serve the index as sitemapd renders it (`sitemapd render`), and find out what changes "
           "it on the way";
}

static void report_broken(struct visit *v, const struct reader_error *error)
{
    char place[64] = "";

    if (error->column > 0 && strncmp(error->detail, "line ", 5) != 0)
        snprintf(place, sizeof place, "line %" PRIu64 ", column %" PRIu64 ": ", error->line,
                 error->column);
    visit_report(v, DOCTOR_WRONG, "index",
                 &(struct visit_about){error->code, NULL, error->line, error->column, 0},
                 todo_of(error), "%s%s (%s)", place, error->detail, error->code);
}

/* Reads the index; reports it if it is invalid. */
static bool read_index(struct visit *v, struct found *f)
{
    const struct reader_options options = {
        .format = READER_XML,
        .lenient = true,
        .allow_gzip = true,
        .max_bytes = VISIT_MAX_PAGE,
        .max_entries = MAX_ENTRIES,
        .now = v->options->now,
    };
    const struct reader_sink sink = {.context = f, .entry = on_entry, .reject = on_rejection};
    struct reader *reader = reader_new(&options, &sink);
    const struct reader_error *error;
    bool good;

    if (reader == NULL) {
        v->no_memory = true;
        return false;
    }
    reader_feed(reader, v->body.data, v->body.len);
    good = reader_finish(reader) == READER_OK;
    error = reader_error(reader);
    v->no_memory =
        v->no_memory || error->status == READER_NO_MEMORY || error->status == READER_STOPPED;
    if (!good && !v->no_memory)
        report_broken(v, error);
    reader_free(reader);
    return good;
}

/* ---- checking --------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The number of locs that occur more than once; `*which` gets the first. */
static size_t count_doubles(struct found *f, const char **which)
{
    const char **sorted = calloc(f->count + 1, sizeof *sorted);
    size_t doubles = 0;

    if (sorted == NULL) {
        f->visit->no_memory = true;
        return 0;
    }
    for (size_t i = 0; i < f->count; i++)
        sorted[i] = loc_of(f, i);
    qsort(sorted, f->count, sizeof *sorted, compare_texts);
    for (size_t i = 1; i < f->count; i++)
        if (strcmp(sorted[i - 1], sorted[i]) == 0 && doubles++ == 0)
            *which = sorted[i];
    free(sorted);
    return doubles;
}

static void check_entries(struct visit *v, struct found *f)
{
    const char *twice = "";
    size_t doubles = count_doubles(f, &twice);

    if (f->refused > 0)
        visit_report(v, DOCTOR_WRONG, "index",
                     &(struct visit_about){rule_code_word(f->refused_code), NULL, f->refused_line,
                                           0, f->refused},
                     "correct these locs at their source", "%" PRIu64 " of its locs %s invalid: %s",
                     f->refused, plural(f->refused, "is", "are"), f->first_refused);
    if (f->outside > 0)
        visit_report(v, DOCTOR_WARNING, "index",
                     &(struct visit_about){rule_code_word(RULE_OUTSIDE_DIRECTORY), f->first_outside,
                                           f->outside_line, 0, f->outside},
                     "put them into an index at the top of the site: an index may list only its "
                     "own directory and below",
                     "%" PRIu64 " %s outside its directory, %s first (line %" PRIu64 ")",
                     f->outside, plural(f->outside, "loc lies", "locs lie"), f->first_outside,
                     f->outside_line);
    if (f->bad_dates > 0)
        visit_report(v, DOCTOR_WARNING, "index",
                     &(struct visit_about){rule_code_word(f->bad_date_code), f->first_bad_date,
                                           f->bad_date_line, 0, f->bad_dates},
                     "use W3C dates with time and time zone, not in the future",
                     "%" PRIu64 " lastmod %s invalid, of %s first (line %" PRIu64 ", %s)",
                     f->bad_dates, plural(f->bad_dates, "is", "are"), f->first_bad_date,
                     f->bad_date_line, rule_code_word(f->bad_date_code));
    if (doubles > 0)
        visit_report(v, DOCTOR_WARNING, "index",
                     &(struct visit_about){
                         .code = rule_code_word(RULE_DUPLICATE), .url = twice, .count = doubles},
                     "list each sitemap once", "%zu %s listed more than once, %s first", doubles,
                     plural(doubles, "loc is", "locs are"), twice);
    if (f->count == 0 && f->refused == 0)
        visit_report(v, DOCTOR_WARNING, "index", &(struct visit_about){.code = "empty-index"},
                     "register the sitemaps of the site", "it has no entries");
    else if (f->count > 0 && f->refused == 0)
        visit_report_plain(v, DOCTOR_OK, "index", NULL,
                           "valid; %zu %s, %" PRIu64 " without lastmod; %zu checked (--sample)",
                           f->count, plural(f->count, "sitemap", "sitemaps"), f->undated,
                           v->options->sample < f->count ? v->options->sample : f->count);
}

/* ---- hosts and children ---------------------------------------------------------------- */

static bool parse_loc(const struct visit *v, const char *loc, struct url *out)
{
    bool good = url_parse(loc, strlen(loc), out, NULL) == RULE_OK;

    if (good)
        visit_own(v, out);
    return good;
}

static bool is_address(const struct url *url)
{
    const char *host = url->text + url->host_at;

    return *host == '[' || strspn(host, "0123456789.") >= url->host_len ||
           (url->host_len == 9 && memcmp(host, "localhost", 9) == 0);
}

/* Notes that the server was requested by its address, without DNS: later checks concern the site,
 * which may be on another server, or not exist yet. */
static void check_address(struct visit *v, const struct found *f)
{
    char todo[LOC_MAX_CHARS * 3];
    struct url first;

    if (!is_address(&v->url) || v->options->connect != NULL || f->count == 0 ||
        !parse_loc(v, loc_of(f, 0), &first) || is_address(&first))
        return;
    snprintf(todo, sizeof todo,
             "to check this server: sitemapd doctor %s://%.*s%s --connect %.*s:%u",
             v->url.https ? "https" : "http", first.host_len, first.text + first.host_at,
             v->url.text + v->url.origin_len, v->url.host_len, v->url.text + v->url.host_at,
             v->url.port);
    visit_report_plain(
        v, DOCTOR_WARNING, "index", todo,
        "the URL has an IP address, but the index lists sitemaps of %.*s, which are fetched "
        "from the address of that name",
        first.origin_len, first.text);
}

/* Checks every host, then sitemaps spread evenly over the index, including the first and the last.
 */
static void visit_children(struct visit *v, struct found *f)
{
    struct visit_hosts hosts = {0};
    size_t sample = v->options->sample < f->count ? v->options->sample : f->count;
    struct url url;

    for (size_t i = 0; i < f->count && !v->no_memory; i++)
        if (parse_loc(v, loc_of(f, i), &url))
            visit_hosts_add(v, &hosts, &url);
    visit_hosts_check(v, &hosts);
    for (size_t i = 0; i < sample && !v->no_memory; i++) {
        const char *loc = loc_of(f, sample == 1 ? 0 : i * (f->count - 1) / (sample - 1));

        if (parse_loc(v, loc, &url))
            visit_child(v, loc, loc + strlen(loc) + 1, visit_hosts_robots(v, &hosts, &url));
    }
    visit_children_end(v);
    visit_hosts_done(&hosts);
}

#define NOW_SECONDS 60

static const char *lastmod_of(const struct found *f, size_t i)
{
    const char *loc = loc_of(f, i);
    return loc + strlen(loc) + 1;
}

/* Whether there are several entries and all have the minute of the response as their date. */
static bool is_dated_now(const struct found *f)
{
    struct lastmod date;

    for (size_t i = 0; i < f->count; i++)
        if (strchr(lastmod_of(f, i), 'T') == NULL ||
            lastmod_parse(lastmod_of(f, i), strlen(lastmod_of(f, i)), f->visit->options->now, &date,
                          NULL) != RULE_OK ||
            llabs(f->visit->options->now - date.unix_seconds) > NOW_SECONDS)
            return false;
    return f->count > 1;
}

/* Whether all dates differ from those of the response before. */
static bool all_moved(const struct found *f, const struct found *before)
{
    if (f->count != before->count)
        return false;
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(loc_of(f, i), loc_of(before, i)) != 0 ||
            strcmp(lastmod_of(f, i), lastmod_of(before, i)) == 0)
            return false;
    return true;
}

/* All of a site may have changed in the last minute, so request the index again, a second later. */
static void check_now(struct visit *v, const struct found *f)
{
    const struct timespec second = {1, 100000000};
    struct found again = {.visit = v, .locs = STR_INIT};
    struct str before = v->body;
    struct fetch_reply r;
    struct url url = v->url;
    unsigned hops;

    if (!is_dated_now(f))
        return;
    nanosleep(&second, NULL);
    v->body = (struct str)STR_INIT;
    if (visit_follow(v, &url, GZIP_HEADERS, VISIT_MAX_PAGE, &r, &hops) == FETCH_OK &&
        r.status == 200 && visit_decode(v, &r, &v->body) && read_index(v, &again) &&
        all_moved(&again, f))
        visit_report(v, DOCTOR_WARNING, "index", &(struct visit_about){.code = "claims-are-now"},
                     "give the date of each sitemap's last change; `sitemapd migrate` shows how to "
                     "mirror this index with true ones",
                     "all its dates are the time of the request, which is useless to crawlers");
    fetch_reply_done(&r);
    str_done(&again.locs);
    free(again.at);
    str_done(&v->body);
    v->body = before;
}

void visit_index(struct visit *v)
{
    struct found f = {.visit = v, .locs = STR_INIT};

    if (read_index(v, &f)) {
        check_entries(v, &f);
        check_now(v, &f);
        check_address(v, &f);
        visit_children(v, &f);
    }
    str_done(&f.locs);
    free(f.at);
}
