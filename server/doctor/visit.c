/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Requests, findings, and the checks of caching: ETag, Vary, conditional requests. */
#include "server/doctor/visit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "server/input/frame.h"
#include "server/rules/http/negotiate.h"

static enum fetch_status visit_request(struct visit *v, const char *method, const struct url *url,
                                       const char *headers, uint64_t max_bytes,
                                       struct fetch_reply *reply);

/* Headers that caches and later visits depend on: Vary, validators, Cache-Control, conditional
 * requests. */

#define PASS_ETAG                                                                                  \
    "have the proxy pass ETag on (nginx: gzip off for this path; Apache: DeflateAlterETag "        \
    "NoChange "                                                                                    \
    "and no FileETag None; a CDN: strong ETags, no rewriting of bodies)"

void visit_coding(const struct fetch_reply *r, struct content_coding *out)
{
    char codings[CODINGS_TEXT];

    content_coding_read(fetch_header_joined(r, "Content-Encoding", codings, sizeof codings), out);
}

static bool compressed(const struct fetch_reply *r)
{
    struct content_coding coding;

    visit_coding(r, &coding);
    return coding.gzip > 0 || coding.unreadable;
}

static void check_vary(struct visit *v)
{
    if (fetch_header_lists(&v->page, "Vary", "Accept-Encoding"))
        visit_report_plain(v, DOCTOR_OK, "vary", NULL, "Accept-Encoding");
    else if (fetch_header_lists(&v->page, "Vary", "*"))
        visit_report_plain(v, DOCTOR_WARNING, "vary", "send only Vary: Accept-Encoding",
                           "Vary: * prevents all caching");
    else if (compressed(&v->page))
        visit_report_plain(
            v, DOCTOR_WRONG, "vary", "have the proxy pass on Vary (nginx: gzip_vary on)",
            "there is no Vary: Accept-Encoding: a cache may give gzip to clients that cannot "
            "read it");
    else if (fetch_header_lists(&v->page, "Content-Type", "application/gzip"))
        visit_report_plain(v, DOCTOR_OK, "vary", NULL, "not needed: there is only one form");
    else
        visit_report_plain(v, DOCTOR_WARNING, "vary",
                           "have the proxy pass on Vary (nginx: gzip_vary on)",
                           "Vary: Accept-Encoding is missing");
}

static void check_etag(struct visit *v)
{
    const char *etag = fetch_header(&v->page, "ETag");

    if (etag == NULL && fetch_header(&v->page, "Last-Modified") == NULL)
        visit_report_plain(
            v, DOCTOR_WRONG, "etag", PASS_ETAG,
            "ETag and Last-Modified are missing: each visit downloads the whole file again");
    else if (etag == NULL)
        visit_report_plain(v, DOCTOR_WARNING, "etag", PASS_ETAG,
                           "ETag is missing; there is only Last-Modified");
    else if (strncmp(etag, "W/", 2) == 0)
        visit_report_plain(v, DOCTOR_WARNING, "etag", PASS_ETAG,
                           "it is weak (%s): a proxy compresses or rewrites the response", etag);
    else
        visit_report_plain(v, DOCTOR_OK, "etag", NULL, "%s", etag);
}

static void check_caching(struct visit *v)
{
    const char *control = fetch_header(&v->page, "Cache-Control");

    if (fetch_header(&v->page, "Set-Cookie") != NULL)
        visit_report_plain(v, DOCTOR_WARNING, "cache", "set no cookies on this path",
                           "Set-Cookie is present: caches do not store such a response");
    else if (fetch_header_lists(&v->page, "Cache-Control", "no-store") ||
             fetch_header_lists(&v->page, "Cache-Control", "private"))
        visit_report_plain(v, DOCTOR_WARNING, "cache",
                           "pass on the server's Cache-Control, and set none in the proxy",
                           "Cache-Control: %s prevents CDNs from caching it", control);
    else
        visit_report_plain(v, DOCTOR_OK, "cache", NULL, "%s",
                           control != NULL ? control : "no Cache-Control: caches guess");
}

void visit_headers(struct visit *v)
{
    check_vary(v);
    check_etag(v);
    check_caching(v);
}

/* ---- further requests ------------------------------------------------------------------ */

static void report_failed(struct visit *v, const char *check, const struct fetch_reply *r)
{
    if (!v->no_memory)
        visit_report_plain(v, DOCTOR_WRONG, check,
                           "check the proxies in between: the first request was answered",
                           "the request failed: %s", r->why);
}

/* Until the second of the date is over, another version may get the same date, and careful servers
 * return no 304 (RFC 9110 8.8.2.2). */
static void wait_for_second(const char *date)
{
    int64_t now = (int64_t)time(NULL), at;

    if (http_date_parse(date, now, &at) && at >= now - 1 && at <= now + 1)
        sleep(2);
}

static void check_not_modified(struct visit *v)
{
    const char *etag = fetch_header(&v->page, "ETag");
    const char *date = fetch_header(&v->page, "Last-Modified");
    char headers[1024];
    struct fetch_reply r;

    if (etag == NULL && date == NULL)
        return;
    if (etag == NULL)
        wait_for_second(date);
    snprintf(headers, sizeof headers, "Accept-Encoding: gzip\r\n%s: %.800s\r\n",
             etag != NULL ? "If-None-Match" : "If-Modified-Since", etag != NULL ? etag : date);
    if (visit_request(v, "GET", &v->url, headers, VISIT_MAX_PAGE, &r) != FETCH_OK)
        report_failed(v, "not-modified", &r);
    else if (r.status == 304)
        visit_report_plain(v, DOCTOR_OK, "not-modified", NULL, "304 to %s",
                           etag != NULL ? "its own ETag" : "its own Last-Modified");
    else if (r.status != 200)
        visit_report_plain(v, DOCTOR_WRONG, "not-modified", PASS_ETAG, "%u for %s, instead of 304",
                           r.status, etag != NULL ? "its own ETag" : "its own Last-Modified");
    else if (etag != NULL && fetch_header(&r, "ETag") != NULL &&
             strcmp(etag, fetch_header(&r, "ETag")) != 0)
        visit_report_plain(
            v, DOCTOR_WARNING, "not-modified",
            "run it again; if the result is the same, two servers with different content answer",
            "its ETag changed between two requests");
    else
        visit_report_plain(
            v, DOCTOR_WRONG, "not-modified",
            "have the proxy pass If-None-Match and ETag on as they are (Apache's mod_deflate adds "
            "-gzip to the tag and then does not recognise it: DeflateAlterETag NoChange)",
            "200 with all %zu bytes for %s, instead of 304", r.body.len,
            etag != NULL ? "its own ETag" : "its own Last-Modified");
    fetch_reply_done(&r);
}

/* A client without gzip must get the same text. */
static void compare_identity(struct visit *v, const struct fetch_reply *r)
{
    const char *etag = fetch_header(&v->page, "ETag"), *plain = fetch_header(r, "ETag");

    if (compressed(r))
        visit_report_plain(v, DOCTOR_WRONG, "identity",
                           "keep the two forms apart in the cache: Vary: Accept-Encoding",
                           "clients that accept no compression get Content-Encoding: %s",
                           fetch_header(r, "Content-Encoding"));
    else if (r->body.len != v->body.len ||
             (v->body.len > 0 && memcmp(r->body.data, v->body.data, v->body.len) != 0))
        visit_report_plain(
            v, DOCTOR_WARNING, "identity",
            "run it again; if the result is the same, a cache holds two versions: purge it",
            "the content differs without compression");
    else if (compressed(&v->page) && etag != NULL && plain != NULL && etag[0] == '"' &&
             strcmp(etag, plain) == 0)
        visit_report_plain(v, DOCTOR_WARNING, "identity",
                           "pass on the server's own tags: each form has its own (RFC 9110 8.8.3)",
                           "the compressed and uncompressed forms have the same strong ETag");
    else
        visit_report_plain(v, DOCTOR_OK, "identity", NULL, "the same content without compression");
}

static void check_identity(struct visit *v)
{
    struct fetch_reply r;

    if (visit_request(v, "GET", &v->url, "Accept-Encoding: identity\r\n", VISIT_MAX_PAGE, &r) !=
        FETCH_OK)
        report_failed(v, "identity", &r);
    else if (r.status != 200)
        visit_report_plain(v, DOCTOR_WRONG, "identity",
                           "also answer clients that do not accept gzip",
                           "%u for requests that do not accept compression", r.status);
    else
        compare_identity(v, &r);
    fetch_reply_done(&r);
}

static void check_head(struct visit *v)
{
    struct fetch_reply r;

    if (visit_request(v, "HEAD", &v->url, "Accept-Encoding: gzip\r\n", 0, &r) != FETCH_OK)
        report_failed(v, "head", &r);
    else if (r.status != 200)
        visit_report_plain(v, DOCTOR_WARNING, "head", "have the proxy pass on HEAD",
                           "HEAD returns %u; link checkers use it", r.status);
    else
        visit_report_plain(v, DOCTOR_OK, "head", NULL, "200");
    fetch_reply_done(&r);
}

void visit_conditional(struct visit *v)
{
    check_not_modified(v);
    check_identity(v);
    check_head(v);
}

#define AGENT "Mozilla/5.0 (compatible; sitemapd-doctor/" SITEMAPD_VERSION ")"

void visit_report(struct visit *v, enum doctor_level level, const char *check,
                  const struct visit_about *about, const char *todo, const char *format, ...)
{
    char what[4096];
    const struct doctor_finding finding = {
        .level = level,
        .check = check,
        .code = about->code != NULL ? about->code : check,
        .what = what,
        .todo = todo,
        .url = about->url,
        .line = about->line,
        .column = about->column,
        .count = about->count,
    };
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    v->counts[level]++;
    v->report(v->context, &finding);
}

/* Sends one request. `headers` as in struct fetch_request. */
static enum fetch_status visit_request(struct visit *v, const char *method, const struct url *url,
                                       const char *headers, uint64_t max_bytes,
                                       struct fetch_reply *reply)
{
    struct fetch_request request = {
        .url = url,
        .method = method,
        .agent = AGENT,
        .headers = headers,
        .timeout_ms = v->options->timeout_ms,
        .max_bytes = max_bytes,
        .connect = url_same_host(url, v->options->url) ? v->options->connect : NULL,
        .ca_file = v->options->ca_file,
    };
    enum fetch_status status = fetch(&request, reply);

    v->no_memory = v->no_memory || status == FETCH_NO_MEMORY;
    return status;
}

const char *visit_fetch_todo(enum fetch_status status)
{
    static const char *const todos[] = {
        [FETCH_RESOLVE] = "check the name in the URL and its DNS records",
        [FETCH_CONNECT] = "check that the web server is running and listening there, and that no "
                          "firewall blocks it",
        [FETCH_TLS] = "give the web server a certificate for this host, with its whole chain; use "
                      "http:// for a listener without TLS",
        [FETCH_TIMEOUT] = "check firewall and load: crawlers also give up",
        [FETCH_PROTOCOL] = "check which program listens there, and the proxies in between",
    };

    return (size_t)status < sizeof todos / sizeof todos[0] ? todos[status] : NULL;
}

void visit_own(const struct visit *v, struct url *url)
{
    const struct url *asked = v->options->url;
    struct url plain;
    char text[LOC_MAX_CHARS + 1];

    if (v->options->connect == NULL || asked->https || !url->https || asked->port != 80 ||
        url->port != 443 || asked->host_len != url->host_len ||
        memcmp(asked->text + asked->host_at, url->text + url->host_at, url->host_len) != 0)
        return;
    snprintf(text, sizeof text, "http%s", url->text + strlen("https"));
    if (url_parse(text, strlen(text), &plain, NULL) == RULE_OK)
        *url = plain;
}

/* Resolves a Location of any form against `url` (RFC 3986 5.2). */
static bool resolve(const struct url *url, const char *location, struct url *out)
{
    struct str text = STR_INIT;
    const char *slash = memrchr(url->text, '/', (size_t)url->origin_len + url->path_len);
    bool good;

    if (strncasecmp(location, "http://", 7) == 0 || strncasecmp(location, "https://", 8) == 0)
        str_append_text(&text, location);
    else if (location[0] == '/' && location[1] == '/')
        str_append_format(&text, "%s:%s", url->https ? "https" : "http", location);
    else if (location[0] == '/')
        str_append_format(&text, "%.*s%s", url->origin_len, url->text, location);
    else
        str_append_format(&text, "%.*s%s", (int)(slash + 1 - url->text), url->text, location);
    good = !text.failed &&
           url_parse(str_text(&text), strcspn(str_text(&text), "#"), out, NULL) == RULE_OK;
    str_done(&text);
    return good;
}

enum fetch_status visit_follow(struct visit *v, struct url *url, const char *headers,
                               uint64_t max_bytes, struct fetch_reply *reply, unsigned *hops)
{
    enum fetch_status status = visit_request(v, "GET", url, headers, max_bytes, reply);

    *hops = 0;
    while (status == FETCH_OK && *hops < VISIT_MAX_HOPS) {
        const char *location = fetch_header(reply, "Location");
        bool moved = (reply->status >= 301 && reply->status <= 303) || reply->status == 307 ||
                     reply->status == 308;
        struct url next;

        if (!moved || location == NULL || !resolve(url, location, &next))
            break;
        fetch_reply_done(reply);
        *url = next;
        ++*hops;
        status = visit_request(v, "GET", url, headers, max_bytes, reply);
    }
    return status;
}

/* ---- encodings ------------------------------------------------------------------------- */

static bool begins_gzip(const struct str *s)
{
    return s->len >= 2 && memcmp(s->data, "\x1f\x8b", 2) == 0;
}

static bool on_decoded(void *context, const char *bytes, size_t len)
{
    struct str *out = context;
    str_append(out, bytes, len);
    return !out->failed && out->len <= VISIT_MAX_PAGE;
}

static bool gunzip(struct visit *v, const struct str *in, struct str *out)
{
    struct reader_error error = {.status = READER_OK};
    struct gunzip *gz = gunzip_new(&error, 0, on_decoded, out);
    bool whole = gz != NULL && gunzip_feed(gz, in->data, in->len) && gunzip_finish(gz);

    gunzip_free(gz);
    if (gz == NULL || out->failed || error.status == READER_NO_MEMORY)
        v->no_memory = true;
    else if (out->len > VISIT_MAX_PAGE)
        visit_report_plain(v, DOCTOR_WRONG, "gzip", "split it: 50 MiB is the limit",
                           "the answer is larger than 52,428,800 bytes decoded");
    else if (!whole)
        visit_report_plain(
            v, DOCTOR_WRONG, "gzip",
            "look for a proxy that truncates or changes compressed responses, or declares "
            "gzip for files that are not",
            "the answer says Content-Encoding: gzip and cannot be decoded");
    return whole && !v->no_memory;
}

static void report_coding(struct visit *v, enum doctor_level level, const char *code,
                          const struct content_coding *coding, const char *what)
{
    visit_report(v, level, "gzip", &(struct visit_about){.code = code},
                 "make the proxy encode only what Accept-Encoding names, and once",
                 "the response has Content-Encoding: %s, which %s", coding->word, what);
}

bool visit_decode(struct visit *v, const struct fetch_reply *reply, struct str *out)
{
    struct content_coding coding;
    struct str packed = STR_INIT;
    bool good = true;

    visit_coding(reply, &coding);
    str_clear(out);
    str_append(out, reply->body.data, reply->body.len);
    if (coding.unreadable) {
        report_coding(v, DOCTOR_WRONG, "encoding", &coding, "was not requested");
        return false;
    }
    if (coding.odd)
        report_coding(v, DOCTOR_WARNING, "encoding-odd", &coding, "is not a content coding");
    for (unsigned i = 0; i < coding.gzip && good; i++) {
        struct str part = *out;

        *out = packed;
        packed = part;
        str_clear(out);
        good = gunzip(v, &packed, out);
    }
    str_done(&packed);
    v->no_memory = v->no_memory || out->failed;
    if (!good || out->failed)
        return false;
    if (coding.gzip == 0 || !begins_gzip(out) ||
        fetch_header_lists(reply, "Content-Type", "application/gzip") ||
        fetch_header_lists(reply, "Content-Type", "application/x-gzip"))
        return true;
    visit_report(v, DOCTOR_WRONG, "gzip", &(struct visit_about){.code = "packed-twice"},
                 "turn compression off in the proxy for this path: the server compresses already",
                 "the answer is compressed twice");
    return false;
}
