/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Bing Webmaster Tools, the JSON of IWebmasterApi: GetFeeds, GetFeedDetails, SubmitFeed. The key is
 * part of each request target, so targets are never logged. */
#include <stdlib.h>
#include <string.h>

#include "server/engines/engine.h"

/* Errors have status 400 and a word in the message. */
static enum engine_state classify_error(struct engine *e, enum engine_state state)
{
    if (e->reply.status != 400)
        return state;
    json_t *answer = engine_answer(e);
    const char *message = engine_text(answer, "Message");
    if (strstr(message, "InvalidApiKey") != NULL || strstr(message, "UserBlocked") != NULL)
        state = engine_fail(e, ENGINE_REFUSED, "Bing rejects the API key");
    else if (strstr(message, "Throttle") != NULL)
        state = engine_fail(e, ENGINE_BUSY, "the rate limit of Bing is exceeded");
    else if (strstr(message, "NotAuthorized") != NULL || strstr(message, "NotAllowed") != NULL ||
             strstr(message, "NotFound") != NULL)
        state = engine_fail(e, ENGINE_FORBIDDEN,
                            "the account of the API key does not have the site; add and verify it "
                            "in Bing Webmaster Tools");
    else
        state = engine_fail(e, ENGINE_FAILED, "Bing answers 400, error %d",
                            (int)engine_number(json_object_get(answer, "ErrorCode")));
    json_decref(answer);
    return state;
}

/* Calls the API. NULL for `site`, `feed` or `body`: not sent. */
static enum engine_state call_api(struct engine *e, const char *call, const char *site,
                                  const char *feed, const char *body)
{
    struct str target = STR_INIT;
    char why[256];
    char *key = config_engine_secret(e->config, why);
    if (key == NULL)
        return engine_fail(e, ENGINE_REFUSED, "%s", why);
    str_append_format(&target, "/webmaster/api.svc/json/%s?apikey=", call);
    engine_append_escaped(&target, key);
    str_append_text(&target, site != NULL ? "&siteUrl=" : "");
    engine_append_escaped(&target, site != NULL ? site : "");
    str_append_text(&target, feed != NULL ? "&feedUrl=" : "");
    engine_append_escaped(&target, feed != NULL ? feed : "");
    explicit_bzero(key, strlen(key));
    free(key);
    const struct engine_request request = {.method = body != NULL ? "POST" : "GET",
                                           .target = str_text(&target),
                                           .type = body != NULL ? "application/json" : NULL,
                                           .body = body};
    enum engine_state state = classify_error(e, engine_send(e, &request));
    if (target.data != NULL)
        explicit_bzero(target.data, target.len);
    str_done(&target);
    return state;
}

static void add_sitemap(struct engine_list *out, const char *parent, const json_t *row)
{
    const char *status = engine_text(row, "Status");
    bool pending = strstr(status, "ending") != NULL || *status == '\0';
    const struct engine_sitemap sitemap = {
        .loc = engine_text(row, "Url"),
        .parent = parent != NULL ? parent : "",
        .listed = true,
        .pending = pending,
        .submitted_at = engine_bing_time(json_object_get(row, "Submitted")),
        .read_at = engine_bing_time(json_object_get(row, "LastCrawled")),
        .errors = !pending && strcmp(status, "Success") != 0,
        .urls = engine_number(json_object_get(row, "UrlCount")),
    };
    engine_list_add(out, &sitemap);
}

static enum engine_state list_sitemaps(struct engine *e, const char *property, const char *parent,
                                       struct engine_list *out)
{
    size_t i;
    const json_t *row;
    enum engine_state state =
        call_api(e, parent != NULL ? "GetFeedDetails" : "GetFeeds", property, parent, NULL);
    json_t *answer = state == ENGINE_OK ? engine_answer(e) : NULL;
    if (state == ENGINE_OK && answer == NULL)
        return ENGINE_FAILED;
    json_array_foreach(json_object_get(answer, "d"), i, row)
    {
        /* The details of an index begin with the index itself. */
        if (parent == NULL || strcmp(engine_text(row, "Url"), parent) != 0)
            add_sitemap(out, parent, row);
    }
    json_decref(answer);
    return state;
}

static enum engine_state submit_sitemap(struct engine *e, const char *property, const char *loc)
{
    struct str body = STR_INIT;
    str_append_text(&body, "{\"siteUrl\":");
    str_append_json_text(&body, property);
    str_append_json_member(&body, "feedUrl", loc);
    str_append_char(&body, '}');
    enum engine_state state = call_api(e, "SubmitFeed", NULL, NULL, str_text(&body));
    str_done(&body);
    return state;
}

const struct engine_kind engine_bing = {
    .base = "https://ssl.bing.com/", .list = list_sitemaps, .submit = submit_sitemap};
