/* /v1/sources: how the directory sources stand, and a scan on demand. */
#include <stdlib.h>
#include <string.h>

#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers.h"
#include "server/api/json.h"
#include "server/sources/sources.h"

/* A scan, and what came of it until it is published. */
struct scan_call {
    struct call call; /* first */
    size_t number;    /* of the source */
};
const size_t scan_call_size = sizeof(struct scan_call);

static const char *const watching_words[] = {"inotify", "rescans-only", "watch-limit-reached"};

/* ---- GET /v1/sources --------------------------------------------------------------------- */

static void append_number(struct str *out, const char *name, uint64_t value)
{
    str_append_char(out, '"');
    str_append_text(out, name);
    str_append_text(out, "\":");
    str_append_u64(out, value);
    str_append_char(out, ',');
}

static void append_text(struct str *out, const char *name, const char *value)
{
    str_append_char(out, '"');
    str_append_text(out, name);
    str_append_text(out, "\":");
    str_append_json_text(out, value);
    str_append_char(out, ',');
}

/* 0 is no time: null. */
static void append_time(struct str *out, const char *name, int64_t value)
{
    str_append_char(out, '"');
    str_append_text(out, name);
    str_append_text(out, "\":");
    if (value == 0)
        str_append_text(out, "null");
    else
        entry_json_append_time(out, value);
    str_append_char(out, ',');
}

static void append_finding(struct str *out, const char *path, const char *code, const char *detail,
                           uint64_t line, uint64_t column)
{
    append_text(out, "path", path);
    append_text(out, "code", code);
    append_text(out, "detail", detail);
    append_number(out, "line", line);
    append_number(out, "column", column);
}

static void append_problem(struct str *out, const struct source_problem *problem)
{
    str_append_char(out, '{');
    append_finding(out, problem->path, problem->code, problem->detail, problem->line,
                   problem->column);
    append_time(out, "since", problem->since);
    str_append_text(out, "\"listed\":");
    str_append_text(out, problem->has_entry ? "true}" : "false}");
}

static void append_remark(struct str *out, const struct source_remark *remark)
{
    str_append_char(out, '{');
    append_finding(out, remark->path, remark->code, remark->detail, remark->line, remark->column);
    str_append_text(out, "\"count\":");
    str_append_u64(out, remark->count);
    str_append_char(out, '}');
}

static void append_source(struct str *out, const struct source_report *report)
{
    const struct source_state *state = &report->state;
    str_append_char(out, '{');
    append_text(out, "name", report->name);
    append_text(out, "directory", report->directory);
    append_text(out, "url", report->url);
    append_text(out, "index", report->index);
    str_append_text(out, report->serve ? "\"serve\":true," : "\"serve\":false,");
    append_text(out, "watching", watching_words[report->watching]);
    str_append_text(out, report->scanning ? "\"scanning\":true," : "\"scanning\":false,");
    append_time(out, "last_scan_at", state->scanned_at);
    append_time(out, "last_good_scan_at", state->good_at);
    append_time(out, "failed_at", report->failed_at);
    append_text(out, "failure", report->failed_at == 0 ? NULL : report->failure);
    append_number(out, "files", state->files);
    append_number(out, "listed", state->listed);
    append_number(out, "quarantined", state->quarantined);
    append_number(out, "held_removals", state->held);
    append_number(out, "problems_total", state->quarantined);
    str_append_text(out, "\"problems\":[");
    for (size_t i = 0; i < report->problems_listed; i++) {
        if (i > 0)
            str_append_char(out, ',');
        append_problem(out, &report->problems[i]);
    }
    str_append_text(out, "],");
    append_number(out, "remarked", state->remarked);
    str_append_text(out, "\"remarks\":[");
    for (size_t i = 0; i < report->remarks_listed; i++) {
        if (i > 0)
            str_append_char(out, ',');
        append_remark(out, &report->remarks[i]);
    }
    str_append_text(out, "]}");
}

/* A token of one site sees the sources of that site: whose folder is there, and which list into no
 * other site's index. Of a token with a prefix, the whole folder lies under it. */
static bool may_see(const struct call *call, const char *source_url, const char *index_name)
{
    const struct grant *grant = &call->request->grant;
    if (grant->site_id == 0)
        return true;
    const struct site_map *routing = publisher_site_map(call->app->publisher);
    const struct registry *registry = site_map_registry(routing);
    const struct registry_site *site = registry_site_by_id(registry, grant->site_id);
    const struct registry_index *index =
        index_name != NULL ? registry_index_by_name(registry, index_name, NULL) : NULL;
    struct url url;
    bool may = site != NULL && url_parse(source_url, strlen(source_url), &url, NULL) == RULE_OK &&
               url_same_origin(&url, &site->origin_url) && grant_has_loc(grant, url.text) &&
               (index == NULL || grant_has_site(grant, index->site_id));
    publisher_site_map_done(routing);
    return may;
}

/* To a token of one site as of another's source, so that it does not learn which there are. */
static void answer_missing(struct request *request)
{
    if (request->grant.site_id != 0)
        errors_reply_scope(&request->reply);
    else
        errors_reply_not_found(&request->reply, "source");
}

/* A scan changes what the source owns. */
static bool may_scan(struct call *call, const struct source_list *list, size_t at)
{
    struct reply *reply = &call->request->reply;
    if (!may_see(call, sources_url(list, at), sources_index(list, at)))
        errors_reply_scope(reply);
    else if (!grant_has_source(&call->request->grant, call->request->path_tail))
        errors_reply_rule(reply, RULE_OUTSIDE_TOKEN, NULL, NULL);
    else
        return true;
    return false;
}

static void list_visible(void *context, enum await_result result)
{
    struct call *call = context;

    (void)result;
    auth_still_holds(call->app, call->request); /* else it is the reply, in place of the list */
    request_resume(call->request);
}

/* Reports and scans have views of their own: this one is for the token alone. On a worker. */
static bool still_authorised(struct call *call)
{
    call_look(call, NULL);
    return call->request->reply.status == 0;
}

/* On a worker: a report reads the catalogue with a view of its own. Who reads that a scan is over
 * finds what it changed in the index: it is answered when that is published. */
static void list_sources(void *context)
{
    struct call *call = context;
    struct request *request = call->request;
    struct sources *sources = call->app->sources;
    if (!still_authorised(call)) {
        request_resume(request);
        return;
    }
    struct source_list *list = sources == NULL ? NULL : sources_hold(sources);
    struct str *out = &request->reply.body;
    struct source_report *report = malloc(sizeof *report);
    bool good = report != NULL;
    size_t listed = 0;
    uint64_t revision = 0;

    str_append_text(out, "{\"sources\":[");
    for (size_t at = 0; good && list != NULL && at < sources_count(list); at++) {
        good = sources_report(list, at, report);
        if (!good)
            break;
        if (revision < report->revision)
            revision = report->revision;
        if (may_see(call, report->url, sources_index(list, at))) {
            if (listed++ > 0)
                str_append_char(out, ',');
            append_source(out, report);
        }
        source_report_done(report);
    }
    str_append_text(out, "],\"next\":null}\n");
    sources_let_go(list);
    free(report);
    if (!good) {
        errors_reply_status(&request->reply, CATALOGUE_UNAVAILABLE);
        request_resume(request);
        return;
    }
    call_reply_tagged(call, NULL);
    publisher_await_revision(call->app->publisher, revision, list_visible, call);
}

enum handled sources_list(void *context, struct request *request)
{
    (void)context;
    return call_run(request->state, list_sources);
}

/* ---- POST /v1/sources/{name}/scan -------------------------------------------------------- */

static void scan_visible(void *context, enum await_result result)
{
    struct scan_call *scan = context;
    struct request *request = scan->call.request;
    const struct change_result *applied = &scan->call.result;
    struct str *out = &request->reply.body;

    (void)result;
    if (!auth_still_holds(scan->call.app, request)) {
        request_resume(request);
        return;
    }
    str_append_char(out, '{');
    append_number(out, "created", applied->created);
    append_number(out, "updated", applied->updated);
    append_number(out, "unchanged", applied->unchanged);
    append_number(out, "removed", applied->removed);
    append_number(out, "held_removals", applied->would_remove);
    str_append_text(out, "\"revision\":");
    str_append_u64(out, applied->revision);
    str_append_text(out, "}\n");
    reply_json(&request->reply, 200);
    call_audit(&scan->call, "source-scan", request->path_tail);
    request_resume(request);
}

static void scanned(void *context, const struct change_result *result, const char *failure)
{
    struct scan_call *scan = context;
    struct request *request = scan->call.request;

    if (result == NULL) {
        reply_problem(&request->reply, 503, "scan-failed", NULL, failure);
        reply_header(&request->reply, "Retry-After", "5");
        request_resume(request);
        return;
    }
    scan->call.result = *result;
    memset(&scan->call.result.entry, 0, sizeof scan->call.result.entry);
    if (result->status != CATALOGUE_OK) {
        errors_reply_result(&request->reply, result);
        request_resume(request);
        return;
    }
    publisher_await_revision(scan->call.app->publisher, result->revision, scan_visible, scan);
}

static void run_scan(void *context)
{
    struct scan_call *scan = context;

    if (still_authorised(&scan->call))
        sources_scan(scan->call.app->sources, scan->number, scan->call.change.max_removed,
                     scan->call.change.dry_run, scanned, scan);
    else
        request_resume(scan->call.request);
}

enum handled source_scan(void *context, struct request *request)
{
    struct app_context *app = context;
    struct scan_call *scan = request->state;

    if (!call_set_options(&scan->call) || !repeat_refuse(&scan->call))
        return HANDLED;
    struct source_list *list = app->sources == NULL ? NULL : sources_hold(app->sources);
    size_t at = list == NULL ? SIZE_MAX : sources_find(list, request->path_tail);
    bool may = at != SIZE_MAX && may_scan(&scan->call, list, at);
    scan->number = at == SIZE_MAX ? 0 : sources_number(list, at);
    sources_let_go(list);
    if (at == SIZE_MAX)
        answer_missing(request);
    return may ? call_run(&scan->call, run_scan) : HANDLED;
}
