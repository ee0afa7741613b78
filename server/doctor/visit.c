#include "server/doctor/visit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define AGENT "Mozilla/5.0 (compatible; sitemapd-doctor/" SITEMAPD_VERSION ")"

void visit_say(struct visit *v, enum doctor_level level, const char *check, const char *todo,
               const char *format, ...)
{
    char what[4096];
    struct doctor_finding finding = {.level = level, .check = check, .what = what, .todo = todo};
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    v->counts[level]++;
    v->report(v->context, &finding);
}

enum fetch_status visit_ask(struct visit *v, const char *method, const struct url *url,
                            const char *headers, uint64_t max_bytes, struct fetch_reply *reply)
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

/* Where a Location of any form leads from `url` (RFC 3986 5.2). */
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
    enum fetch_status status = visit_ask(v, "GET", url, headers, max_bytes, reply);

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
        status = visit_ask(v, "GET", url, headers, max_bytes, reply);
    }
    return status;
}

/* ---- encodings ------------------------------------------------------------------------- */

static bool begins_gzip(const struct str *s)
{
    return s->len >= 2 && memcmp(s->data, "\x1f\x8b", 2) == 0;
}

static bool gunzip(struct visit *v, const char *check, const char *what, const struct str *in,
                   struct str *out)
{
    switch (fetch_gunzip(in->data, in->len, VISIT_MAX_PAGE, out)) {
    case FETCH_GUNZIP_OK:
        return true;
    case FETCH_GUNZIP_TOO_LARGE:
        visit_say(v, DOCTOR_WRONG, check, "split it: 50 MiB is the limit",
                  "%s is larger than 52,428,800 bytes decoded", what);
        return false;
    case FETCH_GUNZIP_MALFORMED:
        visit_say(v, DOCTOR_WRONG, check,
                  "look for a proxy that cuts or changes compressed answers, or that says gzip of "
                  "what is none",
                  "%s says Content-Encoding: gzip and cannot be decoded", what);
        return false;
    case FETCH_GUNZIP_NO_MEMORY:
        break;
    }
    v->no_memory = true;
    return false;
}

bool visit_decode(struct visit *v, const char *check, const char *what,
                  const struct fetch_reply *reply, struct str *out)
{
    const char *encoding = fetch_header(reply, "Content-Encoding");
    bool gzip = encoding != NULL &&
                (strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "x-gzip") == 0);

    str_clear(out);
    if (encoding != NULL && !gzip && strcasecmp(encoding, "identity") != 0) {
        visit_say(v, DOCTOR_WRONG, check,
                  "make the proxy encode only what Accept-Encoding names, and once",
                  "%s comes with Content-Encoding: %s, which was not asked for", what, encoding);
        return false;
    }
    if (!gzip) {
        str_append(out, reply->body.data, reply->body.len);
        v->no_memory = v->no_memory || out->failed;
        return !out->failed;
    }
    if (!gunzip(v, check, what, &reply->body, out))
        return false;
    if (!begins_gzip(out) || fetch_header_lists(reply, "Content-Type", "application/gzip") ||
        fetch_header_lists(reply, "Content-Type", "application/x-gzip"))
        return true;
    visit_say(v, DOCTOR_WRONG, check,
              "turn compression off in the proxy for this path: the server compresses already",
              "%s is compressed twice", what);
    return false;
}
