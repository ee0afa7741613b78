/* What caches and later visits depend on: Vary, validators, Cache-Control, conditional requests. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/doctor/visit.h"

#define PASS_ETAG                                                                                  \
    "let the proxy pass ETag on (nginx: gzip off for this path; Apache: DeflateAlterETag "         \
    "NoChange "                                                                                    \
    "and no FileETag None; a CDN: strong ETags, no rewriting of bodies)"

static bool compressed(const struct fetch_reply *r)
{
    return fetch_header(r, "Content-Encoding") != NULL;
}

static void judge_vary(struct visit *v)
{
    if (fetch_header_lists(&v->page, "Vary", "Accept-Encoding"))
        visit_say(v, DOCTOR_OK, "vary", NULL, "Accept-Encoding");
    else if (fetch_header_lists(&v->page, "Vary", "*"))
        visit_say(v, DOCTOR_WARNING, "vary", "say Vary: Accept-Encoding alone",
                  "Vary: * keeps caches from keeping anything");
    else if (compressed(&v->page))
        visit_say(v, DOCTOR_WRONG, "vary", "let the proxy pass Vary on (nginx: gzip_vary on)",
                  "there is no Vary: Accept-Encoding: a cache may give gzip to who cannot read it");
    else if (fetch_header_lists(&v->page, "Content-Type", "application/gzip"))
        visit_say(v, DOCTOR_OK, "vary", NULL, "one form alone: nothing to tell apart");
    else
        visit_say(v, DOCTOR_WARNING, "vary", "let the proxy pass Vary on (nginx: gzip_vary on)",
                  "there is no Vary: Accept-Encoding");
}

static void judge_etag(struct visit *v)
{
    const char *etag = fetch_header(&v->page, "ETag");

    if (etag == NULL && fetch_header(&v->page, "Last-Modified") == NULL)
        visit_say(v, DOCTOR_WRONG, "etag", PASS_ETAG,
                  "there is neither ETag nor Last-Modified: each visit fetches all of it again");
    else if (etag == NULL)
        visit_say(v, DOCTOR_WARNING, "etag", PASS_ETAG, "there is no ETag, Last-Modified alone");
    else if (strncmp(etag, "W/", 2) == 0)
        visit_say(v, DOCTOR_WARNING, "etag", PASS_ETAG,
                  "it is weak (%s): somebody on the way compresses or rewrites", etag);
    else
        visit_say(v, DOCTOR_OK, "etag", NULL, "%s", etag);
}

static void judge_caching(struct visit *v)
{
    const char *control = fetch_header(&v->page, "Cache-Control");

    if (fetch_header(&v->page, "Set-Cookie") != NULL)
        visit_say(v, DOCTOR_WARNING, "cache", "set no cookies on this path",
                  "there is a Set-Cookie: caches keep no such answer");
    else if (fetch_header_lists(&v->page, "Cache-Control", "no-store") ||
             fetch_header_lists(&v->page, "Cache-Control", "private"))
        visit_say(v, DOCTOR_WARNING, "cache",
                  "let the server's Cache-Control through, and set none in the proxy",
                  "Cache-Control: %s keeps CDNs from keeping it", control);
    else
        visit_say(v, DOCTOR_OK, "cache", NULL, "%s",
                  control != NULL ? control : "no Cache-Control: caches guess");
}

void visit_headers(struct visit *v)
{
    judge_vary(v);
    judge_etag(v);
    judge_caching(v);
}

/* ---- further requests ------------------------------------------------------------------ */

static void say_failed(struct visit *v, const char *check, const struct fetch_reply *r)
{
    if (!v->no_memory)
        visit_say(v, DOCTOR_WRONG, check,
                  "check the proxies between: the first request was answered",
                  "the request fails: %s", r->why);
}

static void judge_not_modified(struct visit *v)
{
    const char *etag = fetch_header(&v->page, "ETag");
    const char *date = fetch_header(&v->page, "Last-Modified");
    char headers[1024];
    struct fetch_reply r;

    if (etag == NULL && date == NULL)
        return;
    snprintf(headers, sizeof headers, "Accept-Encoding: gzip\r\n%s: %.800s\r\n",
             etag != NULL ? "If-None-Match" : "If-Modified-Since", etag != NULL ? etag : date);
    if (visit_ask(v, "GET", &v->url, headers, VISIT_MAX_PAGE, &r) != FETCH_OK)
        say_failed(v, "not-modified", &r);
    else if (r.status == 304)
        visit_say(v, DOCTOR_OK, "not-modified", NULL, "304 to %s",
                  etag != NULL ? "its own ETag" : "its own Last-Modified");
    else if (r.status != 200)
        visit_say(v, DOCTOR_WRONG, "not-modified", PASS_ETAG, "%u to %s, where 304 is due",
                  r.status, etag != NULL ? "its own ETag" : "its own Last-Modified");
    else if (etag != NULL && fetch_header(&r, "ETag") != NULL &&
             strcmp(etag, fetch_header(&r, "ETag")) != 0)
        visit_say(v, DOCTOR_WARNING, "not-modified",
                  "run it again; if it stays so, two servers answer that do not agree",
                  "its ETag changed between two requests");
    else
        visit_say(
            v, DOCTOR_WRONG, "not-modified",
            "let the proxy pass If-None-Match and ETag on as they are (Apache's mod_deflate adds "
            "-gzip to the tag and then does not know it: DeflateAlterETag NoChange)",
            "200 and all of %zu bytes to %s, where 304 is due", r.body.len,
            etag != NULL ? "its own ETag" : "its own Last-Modified");
    fetch_reply_done(&r);
}

/* What a client without gzip gets must be the same text. */
static void compare_identity(struct visit *v, const struct fetch_reply *r)
{
    const char *etag = fetch_header(&v->page, "ETag"), *plain = fetch_header(r, "ETag");

    if (compressed(r) && strcasecmp(fetch_header(r, "Content-Encoding"), "identity") != 0)
        visit_say(v, DOCTOR_WRONG, "identity",
                  "keep the two forms apart in the cache: Vary: Accept-Encoding",
                  "who asks for no compression gets Content-Encoding: %s",
                  fetch_header(r, "Content-Encoding"));
    else if (r->body.len != v->body.len ||
             (v->body.len > 0 && memcmp(r->body.data, v->body.data, v->body.len) != 0))
        visit_say(v, DOCTOR_WARNING, "identity",
                  "run it again; if it stays so, a cache holds two versions: purge it",
                  "without compression the text is another");
    else if (compressed(&v->page) && etag != NULL && plain != NULL && etag[0] == '"' &&
             strcmp(etag, plain) == 0)
        visit_say(v, DOCTOR_WARNING, "identity",
                  "let the server's own tags through: each form has its own (RFC 9110 8.8.3)",
                  "both forms bear the same strong ETag");
    else
        visit_say(v, DOCTOR_OK, "identity", NULL, "the same text without compression");
}

static void judge_identity(struct visit *v)
{
    struct fetch_reply r;

    if (visit_ask(v, "GET", &v->url, "Accept-Encoding: identity\r\n", VISIT_MAX_PAGE, &r) !=
        FETCH_OK)
        say_failed(v, "identity", &r);
    else if (r.status != 200)
        visit_say(v, DOCTOR_WRONG, "identity", "answer clients that do not take gzip as well",
                  "%u where compression is not asked for", r.status);
    else
        compare_identity(v, &r);
    fetch_reply_done(&r);
}

static void judge_head(struct visit *v)
{
    struct fetch_reply r;

    if (visit_ask(v, "HEAD", &v->url, "Accept-Encoding: gzip\r\n", 0, &r) != FETCH_OK)
        say_failed(v, "head", &r);
    else if (r.status != 200)
        visit_say(v, DOCTOR_WARNING, "head", "let the proxy pass HEAD on",
                  "HEAD is answered %u; tools that check links use it", r.status);
    else
        visit_say(v, DOCTOR_OK, "head", NULL, "200");
    fetch_reply_done(&r);
}

void visit_conditional(struct visit *v)
{
    judge_not_modified(v);
    judge_identity(v);
    judge_head(v);
}
