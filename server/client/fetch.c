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
    CURL *easy; /* its connections outlive a reset */
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
