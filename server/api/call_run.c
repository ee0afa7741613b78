/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A call from its request to its reply: its query and body, a read on a worker, a write by the
 * writer. */
#include "server/api/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/api/auth.h"
#include "server/api/description.h"
#include "server/api/errors.h"
#include "server/api/forward.h"
#include "server/api/json.h"
#include "server/base/text.h"
#include "server/crypto/token.h"
#include "server/log/log.h"
#include "server/rules/http/negotiate.h"
#include "server/rules/url.h"

static const struct member *find_parameter(const struct operation *operation, const char *name)
{
    const struct member *at = operation->parameters;

    while (at != NULL && at->name != NULL && strcmp(at->name, name) != 0)
        at++;
    return at != NULL && at->name != NULL ? at : NULL;
}

static bool is_word(const char *words, const char *value)
{
    size_t len = strlen(value);

    for (size_t part; len > 0 && *words != '\0'; words += part + (words[part] == '|')) {
        part = strcspn(words, "|");
        if (part == len && memcmp(words, value, len) == 0)
            return true;
    }
    return false;
}

/* Writes "must be fail or skip" from words that `|` separates. */
static void describe_words(const char *words, char *out, size_t size)
{
    size_t len = (size_t)snprintf(out, size, "must be ");

    for (const char *at = words; *at != '\0' && len < size;) {
        size_t part = strcspn(at, "|");
        const char *next = at + part + (at[part] == '|');
        bool next_is_last = *next != '\0' && strchr(next, '|') == NULL;

        len += (size_t)snprintf(out + len, size - len, "%.*s%s", (int)part, at,
                                *next == '\0'  ? ""
                                : next_is_last ? " or "
                                               : ", ");
        at = next;
    }
}

/* Whether the parameter may have this value; `detail` says what it must be. */
static bool validate_value(const struct member *parameter, const char *value, char *detail,
                           size_t size)
{
    uint64_t number, max = parameter->max != 0 ? parameter->max : INT64_MAX;

    switch (parameter->type) {
    case MEMBER_BIT:
        snprintf(detail, size, "must be 0 or 1");
        return query_number(value, 1, &number);
    case MEMBER_INTEGER:
        snprintf(detail, size, "must be a number from %" PRIu64 " to %" PRIu64, parameter->min,
                 max);
        return query_number(value, max, &number) && number >= parameter->min;
    case MEMBER_WORD:
        describe_words(parameter->of, detail, size);
        return is_word(parameter->of, value);
    default:
        return true;
    }
}

/* False, with the reply filled, if the query does not match the call's row. */
static bool validate_query(struct reply *reply, const struct query *query,
                           const struct operation *operation)
{
    char detail[192];

    for (size_t i = 0; i < query->count; i++) {
        const char *name = query->pair[i].name;
        const struct member *parameter = find_parameter(operation, name);

        if (parameter == NULL) {
            reply_problem(reply, 400, "unknown-parameter", name, "unknown query parameter");
            return false;
        }
        if (!validate_value(parameter, query->pair[i].value, detail, sizeof detail)) {
            reply_problem(reply, 400, "malformed-parameter", name, detail);
            return false;
        }
    }
    for (const struct member *at = operation->parameters; at != NULL && at->name != NULL; at++) {
        const char *value = query_value(query, at->name);

        if ((at->is & NEEDED) == 0 || (value != NULL && *value != '\0'))
            continue;
        snprintf(detail, sizeof detail, "the query parameter %s is missing", at->name);
        reply_problem(reply, 400, "missing-parameter", at->name, detail);
        return false;
    }
    return true;
}

static bool read_query(struct request *request, struct query *query)
{
    switch (query_parse(request->query, query)) {
    case QUERY_OK:
        break;
    case QUERY_MALFORMED:
        reply_problem(&request->reply, 400, "malformed-query", NULL,
                      "the query is not valid percent-encoded UTF-8");
        return false;
    case QUERY_TOO_MANY:
        reply_problem(&request->reply, 400, "malformed-query", NULL,
                      "the query has too many parameters");
        return false;
    case QUERY_REPEATED:
        reply_problem(&request->reply, 400, "repeated-parameter", query->repeated,
                      "a query parameter occurs twice");
        return false;
    case QUERY_NO_MEMORY:
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    if (validate_query(&request->reply, query, request->route->operation))
        return true;
    query_done(query);
    return false;
}

/* A client that sends a condition relies on it: if it were ignored, an update could be lost. On
 * reads, all except If-Match may be ignored (RFC 9110 13.1.4: there are no dates here). */
static bool refuse_condition(struct request *request)
{
    static const struct {
        enum known_header header;
        const char *name;
    } conditions[] = {{HEADER_IF_MATCH, "If-Match"},
                      {HEADER_IF_NONE_MATCH, "If-None-Match"},
                      {HEADER_IF_UNMODIFIED_SINCE, "If-Unmodified-Since"}};
    bool heeds = request->route->operation->if_match != NULL;
    bool reads = (request->method & (HTTP_GET | HTTP_HEAD)) != 0;
    char detail[128];

    for (size_t i = heeds ? 1 : 0; i < (reads ? 1 : sizeof conditions / sizeof *conditions); i++) {
        if (request_header(request, conditions[i].header) == NULL)
            continue;
        snprintf(detail, sizeof detail,
                 "%s is not supported here; nothing was applied; retry without it",
                 conditions[i].name);
        reply_problem(&request->reply, 400, "precondition-not-supported", conditions[i].name,
                      detail);
        return true;
    }
    return false;
}

const struct noun *call_noun(const struct call *call)
{
    static const struct noun entries = {
        LIST_INDEX,    "sitemap",      "sitemaps",      "/v1/sitemaps/",
        "index",       "indexes",      "/v1/indexes/",  RULE_INDEX_UNKNOWN,
        "sitemap-put", "sitemaps-put", "index-replace", "sitemap-remove"};
    static const struct noun rows = {LIST_URLSET, "url",      "urls",           "/v1/urls/",
                                     "urlset",    "urlsets",  "/v1/urlsets/",   RULE_URLSET_UNKNOWN,
                                     "url-put",   "urls-put", "urlset-replace", "url-remove"};

    return call->request->route->pages ? &rows : &entries;
}

/* Spans of reads are not recorded, since there are many and they change nothing. */
static void begin_span(struct call *call)
{
    struct traceparent from;

    if ((call->request->method & (HTTP_GET | HTTP_HEAD)) != 0)
        return;
    request_traceparent(call->request, &from);
    trace_begin(call->app->trace, &from, &call->span);
}

static void end_span(struct call *call)
{
    const struct request *request = call->request;
    const struct change_result *result = &call->result;
    bool wrote = result->status == CATALOGUE_OK && result->changed;
    int64_t site_id = request->grant.site_id != 0 ? request->grant.site_id : result->site_id;
    const struct page_map *map;
    const struct registry_site *site;

    if (!call->span.recorded)
        return;
    map = publisher_page_map(call->app->publisher);
    site = registry_site_by_id(page_map_registry(map), site_id);
    trace_end(
        call->app->trace, &call->span,
        &(struct trace_end){.method = method_name(request->method),
                            .name = request->route->path,
                            .site = site != NULL ? site->origin : NULL,
                            .problem = request->reply.problem,
                            .revision = wrote ? result->revision : 0,
                            .site_id = site_id,
                            .status = request->reply.status,
                            .failed = request->reply.status == 0 || request->reply.status >= 500});
    publisher_page_map_done(map);
}

enum handled call_begin(void *context, struct request *request)
{
    struct query query;
    struct call *call;

    if (refuse_condition(request) || !read_query(request, &query))
        return HANDLED;
    call = calloc(1, *request->route->call_size);
    if (call == NULL) {
        query_done(&query);
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return HANDLED;
    }
    call->app = context;
    call->request = request;
    call->query = query;
    call->change.max_removed = MAX_REMOVED_GUARDED;
    call->change.list = call_noun(call)->kind;
    request->state = call;
    begin_span(call);
    return repeat_begin(call) ? HANDLE_CONTINUE : HANDLED;
}

/* The `done` hook of every route that made a call. */
void call_done(void *context, struct request *request)
{
    struct call *call = request->state;

    (void)context;
    if (call == NULL)
        return;
    request->state = NULL;
    end_span(call);
    if (call->cleanup != NULL)
        call->cleanup(call);
    json_fields_free(call->body);
    change_result_done(&call->result);
    repeat_done(call);
    query_done(&call->query);
    free(call);
}

/* ---- reads ------------------------------------------------------------------------------- */

void call_look(struct call *call, call_work *work)
{
    struct reply *reply = &call->request->reply;
    struct catalogue_view *view;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_begin(call->app->catalogue, &view);

    if (status != CATALOGUE_OK) {
        errors_reply_status(reply, status);
        return;
    }
    status = catalogue_view_registry(view, &registry);
    if (status == CATALOGUE_OK) {
        if (auth_holds(registry, call->request, time(NULL)) && work != NULL)
            status = work(call, view, registry);
        registry_unref(registry);
    }
    catalogue_view_end(view);
    if (status != CATALOGUE_OK)
        errors_reply_status(reply, status);
}

static void run_read(void *context)
{
    struct call *call = context;

    if (atomic_load(&call->app->stopping)) /* the stop does not wait for all jobs in the queue */
        errors_reply_status(&call->request->reply, CATALOGUE_CANCELLED);
    else
        call_look(call, call->work);
    request_resume(call->request);
}

static enum handled run_on(struct workers *workers, struct call *call, void (*job)(void *call))
{
    if (workers_run(workers, call->request->grant.site_id, job, call))
        return HANDLE_LATER;
    errors_reply_status(&call->request->reply, CATALOGUE_BUSY);
    return HANDLED;
}

enum handled call_run(struct call *call, void (*job)(void *call))
{
    return run_on(call->app->readers, call, job);
}

enum handled call_read(struct call *call, call_work *work)
{
    call->work = work;
    return call_run(call, run_read);
}

enum handled call_search(struct call *call, call_work *work)
{
    call->work = work;
    return run_on(call->app->searchers, call, run_read);
}

/* ---- writes ------------------------------------------------------------------------------ */

static void let_go_of_registry(struct call *call)
{
    if (call->routing != NULL)
        publisher_page_map_done(call->routing);
    call->routing = NULL;
}

static void fill_answer(struct call *call)
{
    if (repeat_answer(call))
        return;
    if (call->result.status == CATALOGUE_OK)
        call->answer(call);
    else if (call->refuse != NULL && !call->result.revoked)
        call->refuse(call);
    else
        errors_reply_result(&call->request->reply, &call->result);
    let_go_of_registry(call);
}

/* The answer has the revision for a node that forwarded the write, also if it was rejected: that
 * node waits for it, so that the reason of a rejection is visible there, too. */
static void answer_write(struct request *request)
{
    struct call *call = request->state;

    fill_answer(call);
    forward_add_revision(call->app, request);
}

static void write_settled(void *context)
{
    struct call *call = context;

    call->request->answer = answer_write;
    request_resume(call->request);
}

/* On the publisher's thread. Whatever the result of the wait, the write is durable in its file: 503
 * would mean "not applied". A node of a shared catalogue replaces its file itself, and the log has
 * the write. */
static void write_visible(void *context, enum await_result result)
{
    struct call *call = context;
    struct shared_state shared;

    if (result == AWAIT_REPLACED && call->result.changed &&
        !catalogue_shared_state(call->app->catalogue, &shared)) {
        call->result.status = CATALOGUE_OUTCOME_UNKNOWN;
        snprintf(call->result.detail, sizeof call->result.detail,
                 "the catalogue's file was replaced before the change was visible; check whether "
                 "the new file has it");
    }
    if (call->settles_sources && call->app->sources_settle != NULL &&
        call->result.status == CATALOGUE_OK)
        call->app->sources_settle(call->app->source_set, write_settled, call);
    else
        write_settled(call);
}

/* On the writer's thread. */
static void write_done(void *context, struct change_result *result)
{
    struct call *call = context;

    change_result_done(&call->result);
    call->result = *result;
    memset(result, 0, sizeof *result);
    /* The shrink guard's sentence says how many entries the index has. */
    if (call->result.code == RULE_SHRINK_GUARD && !grant_has_whole(&call->change.grant))
        call->result.detail[0] = '\0';

    if (call->result.status == CATALOGUE_OK && call->result.changed)
        trace_link(call->app->trace, call->result.site_id, call->result.revision,
                   &call->span.context);
    if (call->result.status == CATALOGUE_OK)
        publisher_await_revision(call->app->publisher, call->result.revision, write_visible, call);
    else
        write_visible(call, AWAIT_DONE);
}

const struct registry *call_registry(struct call *call)
{
    if (call->repeat.registry != NULL)
        return call->repeat.registry;
    if (call->routing == NULL)
        call->routing = publisher_page_map(call->app->publisher);
    return page_map_registry(call->routing);
}

/* Reads "cli; user=NAME", which the command line sends about itself. It is only a note: the caller
 * is the token, with the token's rights. Any other text is ignored. */
static void read_via(struct call *call)
{
    static const char before[] = "cli; user=";
    const char *via = request_header(call->request, HEADER_SITEMAPD_VIA);
    const char *user = via != NULL && strncmp(via, before, sizeof before - 1) == 0
                           ? via + sizeof before - 1
                           : NULL;

    if (user == NULL || entry_check_name(user, strlen(user)) != RULE_OK)
        return;
    call->change.via = "cli";
    /* If the caller is the user, as for a command on a file, a note adds nothing. */
    if (change_subject(&call->change) == NULL && strcmp(user, call->request->token_name) != 0)
        call->change.note = user;
}

enum handled call_write(struct call *call, void (*answer)(struct call *))
{
    read_via(call);
    call->answer = answer;
    call->change.context = call;
    repeat_submit(call);
    if (call->change.source == NULL)
        call->change.source = call->request->token_name;
    call->change.by = call->request->token_name;
    call->change.request_id = call->request->id;
    call->change.grant = call->request->grant;
    call->change.bearer_id = call->request->token_id;
    call->change.bearer_sha256 = call->request->token_sha256;
    catalogue_submit(call->app->catalogue, &call->change, write_done);
    return HANDLE_LATER;
}

/* ---- body and parameters ----------------------------------------------------------------- */

bool call_fields(struct call *call, struct json_field *fields, size_t count)
{
    const struct request *request = call->request;
    struct reply *reply = &call->request->reply;
    struct json_fields_error error;

    if (!auth_still_holds(call->app, call->request))
        return false;
    if (request->body.len > call->app->max_body_bytes) {
        reply_problem(reply, 413, "body-too-large", NULL,
                      "the body is larger than max_body in [limits] allows");
        return false;
    }
    switch (json_fields_read(str_text(&request->body), request->body.len, fields, count,
                             &call->body, &error)) {
    case JSON_FIELDS_OK:
        return true;
    case JSON_FIELDS_MALFORMED:
        errors_reply_rule(reply, RULE_JSON, error.field[0] != '\0' ? error.field : NULL,
                          error.detail);
        break;
    case JSON_FIELDS_UNKNOWN:
        errors_reply_rule(reply, RULE_FIELD_UNKNOWN, error.field, NULL);
        break;
    case JSON_FIELDS_WRONG_TYPE:
        errors_reply_rule(reply, RULE_FIELD_TYPE, error.field, error.detail);
        break;
    case JSON_FIELDS_MISSING:
        reply_problem(reply, 422, "missing-field", error.field, "this field is required");
        break;
    case JSON_FIELDS_NO_MEMORY:
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
        break;
    }
    return false;
}

static enum json_field_type field_type(enum member_type type)
{
    switch (type) {
    case MEMBER_INTEGER:
        return JSON_FIELD_NUMBER;
    case MEMBER_FLAG:
        return JSON_FIELD_BOOL;
    case MEMBER_TEXTS:
        return JSON_FIELD_TEXTS;
    case MEMBER_SWITCH:
        return JSON_FIELD_SWITCH;
    case MEMBER_OPTION:
        return JSON_FIELD_OPTION;
    default:
        return JSON_FIELD_TEXT;
    }
}

/* Fills in the names and types of the fields: the struct of a body is an array of them. Returns how
 * many there are. */
static size_t describe_fields(const struct object *object, struct json_field *fields)
{
    size_t count = 0;

    for (const struct member *m = object->members(); m->name != NULL; m++) {
        if (m->type == MEMBER_ALL) {
            count += describe_fields(m->all, &fields[count]);
            continue;
        }
        fields[count++] = (struct json_field){.name = m->name,
                                              .type = field_type(m->type),
                                              .required = (m->is & NEEDED) != 0,
                                              .nullable = (m->is & NULLABLE) != 0,
                                              .min = m->min,
                                              .max = m->max};
    }
    return count;
}

bool call_body(struct call *call, const struct object *object, void *body)
{
    return call_fields(call, body, describe_fields(object, body));
}

const char *call_parameter(const struct call *call, const char *name)
{
    const char *value = query_value(&call->query, name);

    return value != NULL && *value != '\0' ? value : NULL;
}

uint64_t call_number(const struct call *call, const char *name)
{
    const struct member *parameter = find_parameter(call->request->route->operation, name);
    const char *text = query_value(&call->query, name);
    uint64_t number = 0;

    if (parameter == NULL || text == NULL)
        return parameter != NULL ? parameter->usual : 0;
    query_number(text, UINT64_MAX, &number); /* call_begin has validated it */
    return number;
}

bool call_word_is(const struct call *call, const char *name, const char *word)
{
    const char *text = query_value(&call->query, name);

    return text != NULL && strcmp(text, word) == 0;
}

bool call_cursor(struct call *call, uint64_t min, uint64_t max, uint64_t *out)
{
    const char *text = query_value(&call->query, "after");

    *out = 0;
    if (text == NULL || (query_number(text, max, out) && *out >= min))
        return true;
    reply_problem(&call->request->reply, 400, "malformed-parameter", "after",
                  "must be the `next` of an earlier response");
    return false;
}

void call_set_options(struct call *call)
{
    call->change.dry_run = call->change.wants_preview = call_number(call, "dry_run") == 1;
    if (query_value(&call->query, "max_removed") != NULL)
        call->change.max_removed = (int64_t)call_number(call, "max_removed");
}

bool call_url(struct call *call, const char *name, const char *text, struct url *out)
{
    enum rule_code code = url_parse(text, strlen(text), out, NULL);

    if (code == RULE_OK)
        return true;
    errors_reply_rule(&call->request->reply, code, name, NULL);
    return false;
}

int64_t call_id(const char *text)
{
    uint64_t id;

    /* Each id has only one spelling, as for entries: no leading zero. */
    if (text == NULL || *text == '0' || !query_number(text, INT64_MAX, &id))
        return 0;
    return (int64_t)id;
}

bool call_site(struct call *call, const struct registry *registry, const struct registry_site **out)
{
    const char *name = call_parameter(call, "site");
    const struct grant *grant = &call->request->grant;
    struct url origin;

    *out = grant->site_id != 0 ? registry_site_by_id(registry, grant->site_id) : NULL;
    if (name != NULL) {
        if (url_parse_origin(name, strlen(name), &origin) == RULE_OK)
            *out = registry_site_by_origin(registry, origin.text);
        else
            *out = registry_site_by_id(registry, call_id(name));
    }
    if ((name == NULL && grant->site_id == 0) ||
        (*out != NULL && grant_has_site(grant, (*out)->id)))
        return true;
    reply_problem(&call->request->reply, 404, rule_code_word(RULE_SITE_UNKNOWN), "site",
                  "is not a site of this catalogue");
    return false;
}

/* ---- replies ----------------------------------------------------------------------------- */

void call_reply_with_tag(struct call *call, const char *etag)
{
    struct reply *reply = &call->request->reply;

    if (negotiate_none_match(request_header(call->request, HEADER_IF_NONE_MATCH), etag, false)) {
        str_clear(&reply->body);
        reply->status = 304;
        reply_header(reply, "Cache-Control", "no-store");
    } else {
        reply_json(reply, 200);
    }
    reply_header(reply, "ETag", etag);
}

/* The tag covers the body itself: two tokens see different lists at one URL, and an index's pages
 * have etags only while they are in memory, so a tag made of revisions alone would lie (RFC 9110
 * 8.8.3). The part that If-Match compares for an index is before the dot. */
void call_reply_tagged(struct call *call, const char *state)
{
    struct reply *reply = &call->request->reply;
    uint8_t hash[32];
    char etag[INDEX_STATE_SIZE + 40];
    int at;

    if (reply->body.failed || !token_sha256(str_text(&reply->body), reply->body.len, hash)) {
        errors_reply_status(reply, CATALOGUE_NO_MEMORY);
        return;
    }
    at =
        snprintf(etag, sizeof etag, "\"%s%s", state != NULL ? state : "", state != NULL ? "." : "");
    hex_write(etag + at, hash, 16);
    memcpy(etag + at + 32, "\"", 2);
    call_reply_with_tag(call, etag);
}

void call_append_rows(struct call *call)
{
    const struct change_result *result = &call->result;
    struct str *out = &call->request->reply.body;
    const struct grant *grant = &call->request->grant;
    const struct page_map *routing;
    const char *comma = "";

    if (!call->change.dry_run)
        return;
    routing = publisher_page_map(call->app->publisher);
    str_append_text(out, ",\"rows\":[");
    for (size_t i = 0; i < result->preview_count; i++) {
        const struct change_row *row = &result->preview[i];
        const struct entry_record *one = row->before.loc != NULL ? &row->before : &row->after;

        /* Rows of a scan may belong to another site. */
        if (!grant_has_site(grant, one->site_id) || !grant_has_loc(grant, one->loc))
            continue;
        str_append_text(out, comma);
        comma = ",";
        entry_json_append_change(out, row->before.loc != NULL ? &row->before : NULL,
                                 row->after.loc != NULL ? &row->after : NULL,
                                 page_map_registry(routing));
    }
    bool counts_itself = call->change.kind == CHANGE_URLSET_UPDATE; /* and the change has no row */
    str_append_format(out, "],\"rows_total\":%" PRIu64,
                      result->created + result->removed + (counts_itself ? 0 : result->updated));
    publisher_page_map_done(routing);
}

void call_audit(struct call *call, const char *action, const char *subject)
{
    const struct change_result *result = &call->result;
    const struct request *request = call->request;

    if (!result->changed || repeat_notes_audit(call, action, subject))
        return;
    log_request(LOG_LEVEL_INFO, action,
                &(struct log_ids){request->id, traceparent_trace_id(&call->span.context)},
                "%.1200s by token %s: %" PRIu64 " created, %" PRIu64 " updated, %" PRIu64
                " removed, revision %" PRIu64,
                subject, request->token_name != NULL ? request->token_name : "-", result->created,
                result->updated, result->removed, result->revision);
}
