/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One blocking request. */
#include "server/client/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/client/transfer.h"
#include "server/rules/http/freshness.h"
#include "server/rules/http/negotiate.h"

struct fetch_session {
    CURL *easy; /* keeps its connections when it is reset */
};

struct fetch_session *fetch_session_new(void)
{
    struct fetch_session *session = calloc(1, sizeof *session);

    if (session != NULL)
        session->easy = transfer_library() ? curl_easy_init() : NULL;
    if (session != NULL && session->easy == NULL) {
        free(session);
        session = NULL;
    }
    return session;
}

void fetch_session_free(struct fetch_session *session)
{
    if (session == NULL)
        return;
    curl_easy_cleanup(session->easy);
    free(session);
}

static CURLcode perform_transfer(CURL *easy)
{
    struct transfer_quiet quiet;
    CURLcode code;

    transfer_quiet_begin(&quiet);
    code = curl_easy_perform(easy);
    transfer_quiet_end(&quiet);
    return code;
}

enum fetch_status fetch(const struct fetch_request *request, struct fetch_reply *reply)
{
    struct transfer transfer;
    enum fetch_status status;
    CURL *easy;

    memset(reply, 0, sizeof *reply);
    if (request->session != NULL)
        easy = request->session->easy;
    else
        easy = transfer_library() ? curl_easy_init() : NULL;
    if (easy == NULL) {
        snprintf(reply->why, sizeof reply->why, "out of memory");
        return FETCH_NO_MEMORY;
    }
    status = transfer_end(&transfer, transfer_begin(&transfer, easy, request, reply)
                                         ? perform_transfer(easy)
                                         : CURLE_OUT_OF_MEMORY);
    if (request->session == NULL)
        curl_easy_cleanup(easy);
    return status;
}

void fetch_reply_done(struct fetch_reply *reply)
{
    str_done(&reply->head);
    str_done(&reply->body);
    str_done(&reply->redirect);
}

const char *fetch_header(const struct fetch_reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->header_count; i++)
        if (strcasecmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    return NULL;
}

const char *fetch_header_joined(const struct fetch_reply *reply, const char *name, char *out,
                                size_t size)
{
    size_t used = 0;
    bool any = false;

    out[0] = '\0';
    for (size_t i = 0; i < reply->header_count; i++) {
        if (strcasecmp(reply->headers[i].name, name) != 0)
            continue;
        if (used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", any ? ", " : "",
                                     reply->headers[i].value);
        any = true;
    }
    return any ? out : NULL;
}

bool fetch_is_wall(const struct fetch_reply *reply)
{
    static const struct {
        const char *name, *value;
    } marks[] = {
        {"cf-mitigated", "challenge"},    {"x-vercel-mitigated", "challenge"},
        {"x-vercel-mitigated", "deny"},   {"x-amzn-waf-action", "challenge"},
        {"x-amzn-waf-action", "captcha"}, {"sg-captcha", "challenge"},
    };

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        const char *value = fetch_header(reply, marks[i].name);

        if (value != NULL && strcasecmp(value, marks[i].value) == 0)
            return true;
    }
    return false;
}

int64_t fetch_retry_after(const struct fetch_reply *reply, int64_t now)
{
    const char *date = fetch_header(reply, "Date");
    int64_t from = now, seconds = -1;

    if (date != NULL)
        http_date_parse(date, now, &from);
    freshness_retry_after(fetch_header(reply, "Retry-After"), from, &seconds);
    return seconds;
}

bool fetch_header_lists(const struct fetch_reply *reply, const char *name, const char *word)
{
    for (size_t i = 0; i < reply->header_count; i++) {
        const char *s = reply->headers[i].value;

        while (strcasecmp(reply->headers[i].name, name) == 0 && *s != '\0') {
            size_t len;

            s += strspn(s, " \t,");
            len = strcspn(s, " \t,;");
            if (len == strlen(word) && strncasecmp(s, word, len) == 0)
                return true;
            s += len;
            s += strcspn(s, ",");
        }
    }
    return false;
}

/* Growing intervals between retries, or Retry-After. */

#define HOUR_MS 3600000
#define DAY_MS  86400000

static int64_t between(int64_t least, int64_t value, int64_t most)
{
    return value > most ? most : value < least ? least : value;
}

int64_t again_wait_ms(unsigned tries, int64_t first_ms, const struct fetch_reply *reply,
                      int64_t now)
{
    int64_t asked_s = fetch_retry_after(reply, now);

    if (asked_s >= 0)
        return between(first_ms, asked_s * 1000, DAY_MS);
    return tries < 7 ? between(0, first_ms << tries, HOUR_MS) : HOUR_MS;
}

/* Follows redirects, each checked like the first request. */

static bool redirects(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

enum hop_verdict hop_next(unsigned status, const char *location, const struct url *from,
                          unsigned hops, hop_allowed *allowed, void *context, struct url *to)
{
    struct url next;

    if (!redirects(status))
        return HOP_END;
    if (hops >= HOP_MAX)
        return HOP_TOO_MANY;
    if (location == NULL || url_parse(location, strcspn(location, "#"), &next, NULL) != RULE_OK)
        return HOP_NOWHERE;
    if (from->https && !next.https)
        return HOP_PLAIN;
    if (!allowed(context, &next))
        return HOP_FOREIGN;
    *to = next;
    return HOP_FOLLOW;
}

const char *hop_sentence(enum hop_verdict verdict)
{
    switch (verdict) {
    case HOP_TOO_MANY:
        return "too many redirects: more than three";
    case HOP_NOWHERE:
        return "it redirects to something that is not an http or https URL";
    case HOP_PLAIN:
        return "it redirects from https to http";
    case HOP_FOREIGN:
        return "it redirects to a host that does not belong to the site";
    case HOP_END:
    case HOP_FOLLOW:
        break;
    }
    return "";
}

enum fetch_status fetch_follow(struct follow *f, struct fetch_reply *reply)
{
    struct fetch_request request = *f->request;

    f->last = *f->request->url;
    request.url = &f->last;
    for (f->hops = 0;; f->hops++) {
        enum fetch_status status = fetch(&request, reply);
        struct url next = f->last;

        f->verdict = status != FETCH_OK
                         ? HOP_END
                         : hop_next(reply->status, str_text(&reply->redirect), &f->last, f->hops,
                                    f->allowed, f->context, &next);
        if (f->each != NULL)
            f->each(f->context, &f->last, status, reply, f->verdict);
        if (f->verdict != HOP_FOLLOW)
            return status;
        fetch_reply_done(reply);
        f->last = next;
        if (!url_same_origin(&f->last, f->request->url))
            request.credentials = request.connect = NULL;
        if (!url_same_server(&f->last, f->request->url))
            request.ca_more = NULL;
    }
}
