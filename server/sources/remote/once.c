/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One poll of a list on the caller's thread, for the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/client/client.h"
#include "server/rules/http/negotiate.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/run.h"

struct once {
    struct registry *registry;
    const struct source_settings *settings;
    char headers[128];
    struct url upstream;
    struct upstream *list;
    bool headed, decided;
    int64_t now;
};

static bool may_request(void *context, const struct url *to)
{
    const struct once *o = context;
    return remote_may_request(o->registry, NULL, o->settings, &o->upstream, to);
}

static bool feed_body(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct once *o = context;
    char codings[CODINGS_TEXT];
    if (reply->status == 200 && !o->headed) {
        o->headed = true;
        upstream_content_encoding(
            o->list, fetch_header_joined(reply, "Content-Encoding", codings, sizeof codings));
    }
    if (reply->status == 200 && !upstream_feed(o->list, bytes, len))
        o->decided = true;
    return !o->decided;
}

/* Why the response is not a list. */
static const char *reply_problem(struct once *o, enum fetch_status status,
                                 const struct fetch_reply *reply, enum hop_verdict hop, char *why,
                                 size_t why_size)
{
    struct child_verdict verdict;
    const struct child_answer answer = {
        .fetch = status, .reply = reply, .hop = hop, .decided = o->decided, .now = o->now};
    child_check(&answer, &verdict);
    if (reply->status == 508) {
        snprintf(why, why_size,
                 "loop: the upstream's host name resolves to this server itself; set connect to "
                 "the upstream's address");
        return "upstream-is-this-server";
    }
    if (verdict.state == CHECK_GOOD)
        return upstream_finish(o->list, why, why_size);
    snprintf(why, why_size, "%s", verdict.detail);
    return verdict.problem;
}

/* With this header, the server of this same catalogue recognises its own request. */
static enum catalogue_status make_headers(struct once *o, struct catalogue *c)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(c, &view);
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_registry(view, &o->registry);
    catalogue_view_end(view);
    if (status == CATALOGUE_OK)
        snprintf(o->headers, sizeof o->headers,
                 "Accept-Encoding: gzip\r\nCDN-Loop: sitemapd-%s\r\n", o->registry->epoch);
    return status;
}

static enum catalogue_status poll_once(const struct remote_plan *plan, struct once *o,
                                       struct upstream_scan *scan, struct scan_outcome *outcome,
                                       char *why, size_t why_size)
{
    const struct source_settings *settings = o->settings = plan->settings;
    struct fetch_reply reply;
    bool claims;
    char said[256];
    const struct fetch_request request = {
        .url = &o->upstream,
        .method = "GET",
        .agent = plan->bounds.agent,
        .headers = o->headers,
        .timeout_ms = POLL_TIMEOUT_MS,
        .stall_s = POLL_STALL_S,
        .stall_bytes = POLL_STALL_BYTES,
        .max_bytes = POLL_OTHER_MAX_BYTES,
        .connect = settings->connect,
        .guard = remote_guard(plan, settings, registry_site_by_id(o->registry, settings->site_id)),
        .ca_more = settings->ca_file,
        .credentials = settings->credentials,
        .take = feed_body,
        .take_bytes = POLL_BODY_MAX_BYTES,
        .context = o,
    };
    struct follow follow = {.request = &request, .allowed = may_request, .context = o};
    enum fetch_status status = fetch_follow(&follow, &reply);
    if (o->decided && status == FETCH_STOPPED)
        reply.status = 200; /* incomplete, but enough was read */
    const char *code = reply_problem(o, status, &reply, follow.verdict, said, sizeof said);
    const char *date = fetch_header(&reply, "Date");
    scan->answered = o->now;
    if (date != NULL)
        http_date_parse(date, scan->answered, &scan->answered);
    fetch_reply_done(&reply);
    if (code == NULL)
        code = upstream_check_single(o->list, scan->catalogue, settings->name, scan->max_removed,
                                     said, sizeof said);
    if (code != NULL) {
        snprintf(why, why_size, "%s: %s", code, said);
        return CATALOGUE_REFUSED;
    }
    upstream_apply(o->list, scan, outcome, &claims);
    snprintf(why, why_size, "%s", outcome->failure);
    return outcome->status;
}

enum catalogue_status remote_scan_once(const struct source_settings *settings,
                                       const struct remote_bounds *bounds, struct scan_once *once)
{
    struct once o = {.now = catalogue_now(once->catalogue)};
    struct scan_outcome outcome = {.status = CATALOGUE_REFUSED};
    struct remote_plan *plan = remote_plan_new(bounds, 1, settings, once->why, sizeof once->why);
    enum catalogue_status status = CATALOGUE_REFUSED;
    once->result = (struct change_result){0};
    url_parse(settings->upstream, strlen(settings->upstream), &o.upstream, NULL);
    o.list = upstream_new(o.now, &o.upstream, plan != NULL ? plan->settings->host_map : NULL);
    if (o.list == NULL)
        status = CATALOGUE_NO_MEMORY;
    if (plan != NULL && o.list != NULL &&
        (status = make_headers(&o, once->catalogue)) == CATALOGUE_OK) {
        struct upstream_scan scan = {.catalogue = once->catalogue,
                                     .settings = plan->settings,
                                     .max_removed = once->max_removed,
                                     .dry_run = once->dry_run,
                                     .progress = once->progress};
        status = poll_once(plan, &o, &scan, &outcome, once->why, sizeof once->why);
        once->result = outcome.result;
    }
    once->result.status = status;
    remote_plan_free(plan);
    registry_unref(o.registry);
    upstream_free(o.list);
    return status;
}
