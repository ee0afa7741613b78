/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/sources: the state of folder and remote sources, and a scan or poll on demand. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "db/catalogue.h"
#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/rules/host_map.h"
#include "server/rules/limits.h"
#include "server/sources/remote/remote.h"
#include "server/sources/roster.h"
#include "server/sources/sources.h"

/* JSON of a source's settings. */

static const struct registry_site *site_of_origin(const struct registry *registry, const char *text,
                                                  struct url *url)
{
    char origin[LOC_MAX_CHARS + 1];
    if (text == NULL || url_parse(text, strlen(text), url, NULL) != RULE_OK)
        return NULL;
    snprintf(origin, sizeof origin, "%.*s", (int)url->origin_len, url->text);
    return registry_site_by_origin(registry, origin);
}

/* The site of a folder's URL. For an upstream: the site to which its settings bind it, else that of
 * its index, else the one with its host. NULL: none. */
static const struct registry_site *source_site_of_folder(const struct registry *registry,
                                                         const struct source_settings *settings)
{
    struct url url;
    if (settings->site_id != 0)
        return registry_site_by_id(registry, settings->site_id);
    return site_of_origin(registry, settings->url, &url);
}

static const struct registry_site *source_site_of_remote(const struct registry *registry,
                                                         const struct source_settings *settings)
{
    struct url url;
    const struct registry_site *site = NULL;
    if (settings->site_id != 0)
        return registry_site_by_id(registry, settings->site_id);
    if (settings->index != NULL && registry_index_by_name(registry, settings->index, &site) != NULL)
        return site;
    site = site_of_origin(registry, settings->upstream, &url);
    if (site != NULL ||
        url_parse(settings->upstream, strlen(settings->upstream), &url, NULL) != RULE_OK)
        return site;
    /* A site's own token can give it any cross host, but not to a site of the configuration. */
    do
        site = registry_next_cross_site(registry, &url, 0, site);
    while (site != NULL && !site->managed);
    return site;
}

/* Writes each pair of origins. */
static void write_map(struct str *out, const void *text)
{
    char why[128];
    struct host_map *map = host_map_new(text, why, sizeof why);

    out->failed = out->failed || map == NULL;
    str_append_char(out, '[');
    for (size_t i = 0; map != NULL && i < map->count; i++) /* origins need no escapes */
        str_append_format(out, "%s\"%s %s\"", i > 0 ? "," : "", map->pairs[i].from,
                          map->pairs[i].to);
    str_append_char(out, ']');
    host_map_free(map);
}

#define SHOW_path(value)   value
#define SHOW_url(value)    value
#define SHOW_option(value) value
#define SHOW_lines(value)  json_texts_of(value)
#define SHOW_pairs(value)                                                                          \
    {                                                                                              \
        (value) != NULL ? write_map : NULL, (value)                                                \
    }
#define SHOW_yes_no(value)              value
#define SHOW_span(value)                (value) / 1000
#define SHOW(bit, kind, c, member, ...) .member = SHOW_##kind(s->c),

/* The settings as the API shows them; texts are borrowed from `settings`. */
static struct json_folder_settings source_shown_folder(const struct source_settings *s,
                                                       const struct registry *registry)
{
    const struct registry_site *site = source_site_of_folder(registry, s);

    return (struct json_folder_settings){
        .source_head = {s->name, "folder", s->managed, site != NULL ? site->origin : NULL},
        SOURCE_SETTINGS_OF_FOLDER(SHOW) SOURCE_INDEX(SHOW) SOURCE_SERVE(SHOW).split = s->splits};
}

static struct json_remote_settings source_shown_remote(const struct source_settings *s,
                                                       const struct registry *registry)
{
    const struct registry_site *site = source_site_of_remote(registry, s);

    return (struct json_remote_settings){
        .source_head = {s->name, "remote", s->managed, site != NULL ? site->origin : NULL},
        SOURCE_SETTINGS_OF_UPSTREAM(SHOW) SOURCE_INDEX(SHOW) SOURCE_SERVE(SHOW).connect =
            s->connect,
        .split = json_texts_of(s->split)};
}

void source_json_append_made(struct str *out, const struct source_settings *made,
                             const struct registry *registry)
{
    if (made->directory == NULL) {
        struct json_remote_settings shown = source_shown_remote(made, registry);
        json_append_object(out, &json_remote_settings, &shown);
    } else {
        struct json_folder_settings shown = source_shown_folder(made, registry);
        json_append_object(out, &json_folder_settings, &shown);
    }
}

/* The state of sources that do not run in this process: what the catalogue has, and what any
 * process can see. No server is asked. */

bool sources_at_rest_has(const struct sources_at_rest *rest, const char *name)
{
    for (size_t i = 0; rest != NULL && i < rest->count; i++)
        if (strcmp(rest->configured[i].name, name) == 0)
            return true;
    return false;
}

/* The catalogue does not remember that a folder cannot be read. Any process can see that it does
 * not exist; whether it may be read depends on the server's user. */
static void find_missing(const char *directory, char *why, size_t size)
{
    struct stat st;
    if (directory == NULL)
        return;
    bool found = stat(directory, &st) == 0;
    int error = found ? ENOTDIR : errno;
    if ((found && S_ISDIR(st.st_mode)) || (error != ENOENT && error != ENOTDIR))
        return;
    snprintf(why, size, "%s: %s", directory, strerror(error));
}

static enum catalogue_status find_state(struct catalogue_view *view, struct source_at_rest *source)
{
    struct check_record list = {.id = 0};
    enum catalogue_status status = catalogue_view_source_state(view, source->name, &source->state);
    if (status != CATALOGUE_OK || !source->remote) {
        find_missing(source->made != NULL ? source->made->directory : NULL, source->failure,
                     sizeof source->failure);
        return status;
    }
    status = catalogue_view_check_bad_counts(view, source->name, source->states);
    if (status == CATALOGUE_OK)
        status = catalogue_view_check_list(view, source->name, &list);
    if (status == CATALOGUE_OK && list.problem != NULL)
        snprintf(source->failure, sizeof source->failure, "%s",
                 list.detail != NULL ? list.detail : list.problem);
    return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
}

/* The callback, and the sources it gets. */
struct at_rest_pass {
    const struct sources_at_rest *rest;
    struct catalogue_view *view;
    const struct registry *registry;
    source_at_rest_each *each;
    void *context;
};

static enum catalogue_status pass_source(const struct at_rest_pass *t, const char *name,
                                         const struct source_settings *made, bool remote,
                                         bool managed)
{
    struct source_at_rest source = {
        .name = name, .made = made, .remote = remote, .managed = managed};
    enum catalogue_status status = find_state(t->view, &source);
    if (status == CATALOGUE_OK && !t->each(t->context, &source))
        return CATALOGUE_NO_MEMORY;
    return status;
}

/* Names of undeclared sources whose scans are in the catalogue: of a server with --source or
 * another configuration, or a folder that a command scanned. They are copied, since a view answers
 * one query at a time. */
struct undeclared {
    const struct at_rest_pass *pass;
    struct {
        char *name;
        bool remote;
    } * items;
    size_t count;
    bool failed;
};

static bool keep_undeclared(void *context, const char *name, bool remote, const char *list)
{
    struct undeclared *u = context;
    (void)list;
    if (sources_at_rest_has(u->pass->rest, name) ||
        registry_source(u->pass->registry, name) != NULL)
        return true;
    void *grown = reallocarray(u->items, u->count + 1, sizeof *u->items);
    if (grown != NULL) {
        u->items = grown;
        u->items[u->count].remote = remote;
        u->items[u->count].name = strdup(name);
    }
    u->failed = grown == NULL || u->items[u->count].name == NULL;
    u->count += !u->failed;
    return !u->failed;
}

static enum catalogue_status pass_undeclared(const struct at_rest_pass *t)
{
    struct undeclared u = {.pass = t};
    enum catalogue_status status = catalogue_view_sources_scanned(t->view, keep_undeclared, &u);
    if (u.failed)
        status = CATALOGUE_NO_MEMORY;
    for (size_t i = 0; i < u.count; i++) {
        if (status == CATALOGUE_OK)
            status = pass_source(t, u.items[i].name, NULL, u.items[i].remote, false);
        free(u.items[i].name);
    }
    free(u.items);
    return status;
}

enum catalogue_status sources_at_rest_each(const struct sources_at_rest *rest,
                                           struct catalogue_view *view,
                                           const struct registry *registry,
                                           source_at_rest_each *each, void *context)
{
    const struct at_rest_pass t = {rest, view, registry, each, context};
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; i < rest->count && status == CATALOGUE_OK; i++)
        status = pass_source(&t, rest->configured[i].name, &rest->configured[i],
                             rest->configured[i].upstream != NULL, true);
    for (size_t i = 0; i < registry->source_count && status == CATALOGUE_OK; i++) {
        const struct source_settings *made = &registry->sources[i];
        if (!sources_at_rest_has(rest, made->name))
            status = pass_source(&t, made->name, made, made->upstream != NULL, false);
    }
    return status == CATALOGUE_OK ? pass_undeclared(&t) : status;
}

/* A scan, and the result until it is published. */
struct scan_call {
    struct call call; /* first */
    size_t number;    /* of a folder */
    bool remote;
};
const size_t scan_call_size = sizeof(struct scan_call);

static const char *const watching_words[] = {"inotify", "rescans-only", "watch-limit-reached"};

/* ---- GET /v1/sources --------------------------------------------------------------------- */

static void write_split_files(struct str *out, const void *context)
{
    const struct source_report *report = context;

    for (size_t i = 0; i < report->splits_listed; i++) {
        struct json_split_file shown = {report->splits[i].path, report->splits[i].urls};

        str_append_text(out, i > 0 ? "," : "");
        json_append_object(out, &json_split_file, &shown);
    }
}

static void write_problems(struct str *out, const void *context)
{
    const struct source_report *report = context;

    for (size_t i = 0; i < report->problems_listed; i++) {
        const struct source_problem *problem = &report->problems[i];
        struct json_source_problem shown = {.path = problem->path,
                                            .code = problem->code,
                                            .detail = problem->detail,
                                            .line = problem->line,
                                            .column = problem->column,
                                            .since = problem->since,
                                            .listed = problem->has_entry};

        str_append_text(out, i > 0 ? "," : "");
        json_append_object(out, &json_source_problem, &shown);
    }
}

static void write_remarks(struct str *out, const void *context)
{
    const struct source_report *report = context;

    for (size_t i = 0; i < report->remarks_listed; i++) {
        const struct source_remark *remark = &report->remarks[i];
        struct json_source_remark shown = {
            remark->path,
            {remark->code, remark->detail, remark->line, remark->column, remark->count}};

        str_append_text(out, i > 0 ? "," : "");
        json_append_object(out, &json_source_remark, &shown);
    }
}

/* The stored state of a source of either kind. */
static struct json_source_state shown_state(const struct source_report *report)
{
    const struct source_state *state = &report->state;

    return (struct json_source_state){.last_scan_at = state->scanned_at,
                                      .last_good_scan_at = state->good_at,
                                      .failed_at = report->failed_at,
                                      .failure = report->failed_at == 0 ? NULL : report->failure,
                                      .files = state->files,
                                      .listed = state->listed,
                                      .quarantined = state->quarantined,
                                      .split_files = {write_split_files, report},
                                      .held_removals = state->held,
                                      .problems_total = state->quarantined,
                                      .problems = {write_problems, report},
                                      .remarked = state->remarked,
                                      .remarks = {write_remarks, report}};
}

static void append_folder(struct str *out, const struct source_report *report,
                          const struct registry *registry)
{
    struct json_folder shown = {.folder_settings = source_shown_folder(report->settings, registry),
                                .watching = watching_words[report->watching],
                                .scanning = report->scanning,
                                .source_state = shown_state(report)};

    json_append_object(out, &json_folder, &shown);
}

static void write_checks(struct str *out, const void *context)
{
    const uint64_t *states = context;

    str_append_char(out, '{');
    for (unsigned i = 0; i < CHECK_STATES; i++) {
        str_append_format(out, "%s\"%s\":", i > 0 ? "," : "", check_state_word(i));
        str_append_u64(out, states[i]);
    }
    str_append_char(out, '}');
}

/* A source that has just started has no report yet. */
static void append_remote(struct str *out, struct call *call,
                          const struct source_settings *settings, struct source_report *report,
                          const struct registry *registry)
{
    struct remote_status status = {.polling = false};
    remote_status(call->app->remote, settings->name, &status);
    report->failed_at = status.failing ? status.failed_at : 0;
    memcpy(report->failure, status.failure, sizeof report->failure);
    struct json_remote shown = {.remote_settings = source_shown_remote(settings, registry),
                                .scanning = status.polling,
                                .last_poll_at = status.polled_at,
                                .next_poll_at = status.next_poll_at,
                                .status = json_or_none(status.http_status),
                                .failure_code = status.failing ? status.failure_code : NULL,
                                .members = status.members,
                                .checks = {write_checks, status.states},
                                .source_state = shown_state(report)};

    json_append_object(out, &json_remote, &shown);
}

static bool has_prefix_of(const struct grant *grant, const char *text)
{
    struct url url;
    return grant->prefix == NULL ||
           (url_parse(text, strlen(text), &url, NULL) == RULE_OK && grant_has_loc(grant, url.text));
}

/* A token for one site sees the folders with a URL of that site that do not list into another
 * site's index. For a token with a prefix, the whole folder must be under the prefix; it sees no
 * upstream, which may list any URL. */
static bool may_see_folder(const struct grant *grant, const struct registry *registry,
                           const struct source_settings *settings)
{
    const struct registry_site *site = source_site_of_folder(registry, settings);
    const struct registry_index *index =
        settings->index != NULL ? registry_index_by_name(registry, settings->index, NULL) : NULL;
    return grant->site_id == 0 ||
           (site != NULL && site->id == grant->site_id && has_prefix_of(grant, settings->url) &&
            (index == NULL || grant_has_site(grant, index->site_id)));
}

static bool may_see_remote(const struct grant *grant, const struct registry *registry,
                           const struct source_settings *settings)
{
    const struct registry_site *site = source_site_of_remote(registry, settings);
    return grant->site_id == 0 ||
           (site != NULL && site->id == grant->site_id && grant->prefix == NULL);
}

/* A token for one site gets the same answer as for a source of another site, so that it does not
 * learn which exist. */
static void answer_missing(struct request *request)
{
    if (request->grant.site_id != 0)
        errors_reply_scope(&request->reply);
    else
        errors_reply_not_found(&request->reply, "source");
}

static void list_visible(void *context, enum await_result result)
{
    struct call *call = context;

    (void)result;
    auth_still_holds(call->app, call->request); /* if not, the reply is 401 instead of the list */
    request_resume(call->request);
}

/* Checks the token with a view of its own, since reports and scans have their own views. On a
 * worker. */
static bool still_authorised(struct call *call)
{
    call_look(call, NULL);
    return call->request->reply.status == 0;
}

struct listing {
    struct call *call;
    const struct registry *registry;
    const char *only; /* the requested one; NULL: all */
    struct source_report *report;
    size_t listed;
    uint64_t revision;
};

static void begin_item(struct listing *l)
{
    if (l->only == NULL && l->listed > 0)
        str_append_char(&l->call->request->reply.body, ',');
    l->listed++;
    if (l->revision < l->report->revision)
        l->revision = l->report->revision;
}

static bool is_wanted(const struct listing *l, const char *name)
{
    return l->only == NULL || strcmp(l->only, name) == 0;
}

static bool list_folders(struct listing *l)
{
    struct app_context *app = l->call->app;
    struct source_list *list = app->sources == NULL ? NULL : sources_hold(app->sources);
    bool good = true;
    for (size_t at = 0; good && list != NULL && at < sources_count(list); at++) {
        const struct source_settings *settings = sources_settings(list, at);
        if (!is_wanted(l, settings->name) ||
            !may_see_folder(&l->call->request->grant, l->registry, settings))
            continue;
        good = sources_report(list, at, l->report);
        if (!good)
            break;
        begin_item(l);
        append_folder(&l->call->request->reply.body, l->report, l->registry);
        source_report_done(l->report);
    }
    sources_release(list);
    return good;
}

static bool list_remotes(struct listing *l)
{
    struct app_context *app = l->call->app;
    struct roster *roster = app->remotes == NULL ? NULL : roster_hold(app->remotes);
    bool good = true;
    for (size_t at = 0; good && at < roster_count(roster); at++) {
        const struct source_settings *settings = roster_at(roster, at);
        if (!is_wanted(l, settings->name) ||
            !may_see_remote(&l->call->request->grant, l->registry, settings))
            continue;
        memset(l->report, 0, sizeof *l->report);
        good =
            source_report_read(app->catalogue, settings->name, false, settings->split, l->report);
        if (!good)
            break;
        begin_item(l);
        append_remote(&l->call->request->reply.body, l->call, settings, l->report, l->registry);
        source_report_done(l->report);
    }
    roster_release(roster);
    return good;
}

/* For an undeclared source only the name is known. */
static bool append_folder_at_rest(struct listing *l, const struct source_at_rest *source)
{
    struct source_settings settings =
        source->made != NULL ? *source->made : (struct source_settings){.name = source->name};
    settings.managed = source->managed;
    struct json_folder shown = {.folder_settings = source_shown_folder(&settings, l->registry),
                                .source_state = shown_state(l->report)};
    json_append_object(&l->call->request->reply.body, &json_folder, &shown);
    return true;
}

static bool append_remote_at_rest(struct listing *l, const struct source_at_rest *source)
{
    struct source_settings settings =
        source->made != NULL ? *source->made : (struct source_settings){.name = source->name};
    settings.managed = source->managed;
    struct json_remote_settings shown_settings = {.source_head = {.name = source->name}};
    if (source->made != NULL)
        shown_settings = source_shown_remote(&settings, l->registry);
    shown_settings.source_head.kind = "remote";
    struct json_remote shown = {.remote_settings = shown_settings,
                                .status = JSON_NONE,
                                .checks = {write_checks, source->states},
                                .source_state = shown_state(l->report)};
    json_append_object(&l->call->request->reply.body, &json_remote, &shown);
    return true;
}

static bool list_at_rest(void *context, const struct source_at_rest *source)
{
    struct listing *l = context;
    bool good = true;
    if (!is_wanted(l, source->name))
        return true;
    memset(l->report, 0, sizeof *l->report);
    if (!source_report_read(l->call->app->catalogue, source->name, !source->remote, NULL,
                            l->report))
        return false;
    begin_item(l);
    l->report->failed_at = source->failure[0] != '\0' ? l->call->request->now : 0;
    snprintf(l->report->failure, sizeof l->report->failure, "%.255s", source->failure);
    if (source->remote)
        good = append_remote_at_rest(l, source);
    else
        good = append_folder_at_rest(l, source);
    source_report_done(l->report);
    return good;
}

static enum catalogue_status at_rest_work(struct call *call, struct catalogue_view *view,
                                          const struct registry *registry)
{
    const char *name = call->request->path_tail;
    struct listing l = {
        .call = call, .registry = registry, .only = name, .report = calloc(1, sizeof *l.report)};
    struct str *out = &call->request->reply.body;
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    str_append_text(out, name == NULL ? "{\"sources\":[" : "");
    if (l.report != NULL)
        status = sources_at_rest_each(call->app->at_rest, view, registry, list_at_rest, &l);
    free(l.report);
    str_append_text(out, name == NULL ? "],\"next\":null}\n" : "\n");
    if (status == CATALOGUE_OK && name != NULL && l.listed == 0)
        errors_reply_not_found(&call->request->reply, "source");
    else if (status == CATALOGUE_OK)
        call_reply_tagged(call, NULL);
    return status;
}

/* On a worker: a report reads the catalogue with a view of its own. The answer is sent once the
 * results are published: a client that reads that a scan has ended finds its changes in the index.
 */
static void list_sources(void *context)
{
    struct call *call = context;
    struct request *request = call->request;
    struct str *out = &request->reply.body;
    if (!still_authorised(call)) {
        request_resume(request);
        return;
    }
    const struct page_map *map = publisher_page_map(call->app->publisher);
    const char *name = request->path_tail;
    struct listing l = {.call = call,
                        .registry = page_map_registry(map),
                        .only = name != NULL && *name != '\0' ? name : NULL,
                        .report = calloc(1, sizeof *l.report)};
    if (l.only == NULL)
        str_append_text(out, "{\"sources\":[");
    bool good = l.report != NULL && list_folders(&l) && list_remotes(&l);
    str_append_text(out, l.only == NULL ? "],\"next\":null}\n" : "\n");
    publisher_page_map_done(map);
    free(l.report);
    if (!good)
        errors_reply_status(&request->reply, CATALOGUE_UNAVAILABLE);
    else if (l.only != NULL && l.listed == 0)
        errors_reply_not_found(&request->reply, "source");
    if (request->reply.status != 0) {
        request_resume(request);
        return;
    }
    call_reply_tagged(call, NULL);
    publisher_await_revision(call->app->publisher, l.revision, list_visible, call);
}

enum handled sources_list(void *context, struct request *request)
{
    const struct app_context *app = context;

    return app->at_rest != NULL ? call_read(request->state, at_rest_work)
                                : call_run(request->state, list_sources);
}

/* ---- POST /v1/sources/{name}/scan -------------------------------------------------------- */

static void write_splits(struct str *out, const void *context)
{
    const struct change_result *applied = context;
    struct json_splits shown = {applied->splits.files, applied->splits.created,
                                applied->splits.updated, applied->splits.removed};

    json_append_object(out, &json_splits, &shown);
}

static void reply_scanned(struct scan_call *scan)
{
    struct request *request = scan->call.request;
    const struct change_result *applied = &scan->call.result;
    struct str *out = &request->reply.body;
    struct json_scanned shown = {.created = applied->created,
                                 .updated = applied->updated,
                                 .unchanged = applied->unchanged,
                                 .removed = applied->removed,
                                 .held_removals = applied->would_remove,
                                 .splits = {write_splits, applied},
                                 .revision = applied->revision,
                                 .dry_run_rows = {.rows_total = JSON_NONE}};

    json_open_object(out, &json_scanned, &shown);
    call_append_rows(&scan->call);
    str_append_text(out, "}\n");
    reply_json(&request->reply, 200);
    if (!scan->call.change.dry_run)
        call_audit(&scan->call, "source-scan", request->path_tail);
}

static void scan_visible(void *context, enum await_result result)
{
    struct scan_call *scan = context;

    (void)result;
    if (auth_still_holds(scan->call.app, scan->call.request))
        reply_scanned(scan);
    request_resume(scan->call.request);
}

static void scanned(void *context, const struct change_result *result, const char *failure)
{
    struct scan_call *scan = context;
    struct request *request = scan->call.request;

    if (result == NULL) {
        char detail[512];
        snprintf(detail, sizeof detail, "%s: %s", request->path_tail, failure);
        reply_problem(&request->reply, 503, "scan-failed", NULL, detail);
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
    if (scan->call.change.dry_run) { /* nothing is to be published, and its rows are borrowed */
        if (auth_still_holds(scan->call.app, request))
            reply_scanned(scan);
        scan->call.result.preview = NULL;
        scan->call.result.preview_count = 0;
        request_resume(request);
        return;
    }
    publisher_await_revision(scan->call.app->publisher, result->revision, scan_visible, scan);
}

static void run_scan(void *context)
{
    struct scan_call *scan = context;
    struct app_context *app = scan->call.app;
    int64_t max_removed = scan->call.change.max_removed;

    if (!still_authorised(&scan->call))
        request_resume(scan->call.request);
    else if (scan->remote)
        remote_scan(app->remote, scan->call.request->path_tail, max_removed,
                    scan->call.change.dry_run, &scan->call.span.context, scanned, scan);
    else
        sources_scan(app->sources, scan->number, max_removed, scan->call.change.dry_run, scanned,
                     scan);
}

enum found { FOUND_NONE, FOUND_SEEN, FOUND_HIDDEN };

/* Finds the source that the path names. */
static enum found find_source(struct scan_call *scan, const struct registry *registry)
{
    struct app_context *app = scan->call.app;
    const struct request *request = scan->call.request;
    struct source_list *list = app->sources == NULL ? NULL : sources_hold(app->sources);
    struct roster *roster = app->remotes == NULL ? NULL : roster_hold(app->remotes);
    size_t at = list == NULL ? SIZE_MAX : sources_find(list, request->path_tail);
    const struct source_settings *remote = roster_find(roster, request->path_tail);
    bool sees = false;
    if (at != SIZE_MAX) {
        scan->number = sources_number(list, at);
        sees = may_see_folder(&request->grant, registry, sources_settings(list, at));
    } else if (remote != NULL) {
        scan->remote = true;
        sees = may_see_remote(&request->grant, registry, remote);
    }
    roster_release(roster);
    sources_release(list);
    return at == SIZE_MAX && !scan->remote ? FOUND_NONE : sees ? FOUND_SEEN : FOUND_HIDDEN;
}

/* A scan changes what the source owns. */
enum handled source_scan(void *context, struct request *request)
{
    struct app_context *app = context;
    struct scan_call *scan = request->state;

    call_set_options(&scan->call);
    if (!repeat_refuse(&scan->call))
        return HANDLED;
    const struct page_map *map = publisher_page_map(app->publisher);
    enum found found = find_source(scan, page_map_registry(map));
    publisher_page_map_done(map);
    if (found == FOUND_NONE)
        answer_missing(request);
    else if (found == FOUND_HIDDEN)
        errors_reply_scope(&request->reply);
    else if (!grant_has_source(&request->grant, request->path_tail))
        errors_reply_rule(&request->reply, RULE_OUTSIDE_TOKEN, NULL, NULL);
    else
        return call_run(&scan->call, run_scan);
    return HANDLED;
}
