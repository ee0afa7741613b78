/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/checks: the results of polls of sitemaps, and a poll on demand. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/input/sitemap_file.h"
#include "server/sources/remote/remote.h"

/* ---- the object ---------------------------------------------------------------------------- */

/* Writes the remarks about the pages of a sitemap, by rule. */
static void write_page_remarks(struct str *out, const void *text)
{
    struct sitemap_remarks remarks;
    char detail[SITEMAP_REMARK_SENTENCE];

    sitemap_remarks_read(text != NULL ? text : "", &remarks);
    for (size_t i = 0; i < remarks.count; i++) {
        const struct sitemap_remark *remark = &remarks.at[i];
        struct json_page_remark shown = {{.code = rule_code_word(remark->code),
                                          .detail = detail,
                                          .line = remark->lines[0],
                                          .column = remark->column,
                                          .count = remark->count}};

        sitemap_remark_report(remark, detail);
        if (i > 0)
            str_append_char(out, ',');
        json_append_object(out, &json_page_remark, &shown);
    }
}

void check_json_append(struct str *out, const struct check_record *record)
{
    const char *marks[8]; /* one for each bit below CHECK_REMARKS_END */
    bool was_good = record->hash[0] != 0 || record->hash[1] != 0;
    struct json_check shown = {
        .state = check_state_word(record->state),
        .status = json_or_none(record->status),
        .code = record->problem,
        .detail = record->detail,
        .line = json_or_none(record->line),
        .checked_at = record->checked_at,
        .good_at = record->good_at,
        .changed_at = record->changed_at,
        .since = record->since,
        .next_at = record->next_at,
        .urls = record->urls,
        .bytes = record->bytes,
        .kind = !was_good                    ? NULL
                : record->marks & CHECK_FEED ? "feed"
                                             : "sitemap",
        .remarks = {.at = marks},
        .page_remarks = {write_page_remarks, record->remarks},
    };

    for (unsigned mark = 1; mark < CHECK_REMARKS_END; mark <<= 1)
        if (record->marks & mark)
            marks[shown.remarks.count++] = check_remark_word(mark);
    json_append_object(out, &json_check, &shown);
}

/* ---- GET /v1/checks ------------------------------------------------------------------------ */

struct listing {
    struct call *call;
    struct check_filter filter;
    uint64_t count;
};

static void write_check(struct str *out, const void *record)
{
    check_json_append(out, record);
}

static void append_check(void *context, const struct check_record *record)
{
    struct listing *l = context;
    struct str *out = &l->call->request->reply.body;
    struct json_check_of shown = {
        record->loc, *record->source != '\0' ? record->source : NULL, {write_check, record}};

    if (l->count++ > 0)
        str_append_char(out, ',');
    json_append_object(out, &json_check_of, &shown);
}

static void read_state(struct listing *l)
{
    const char *word = call_parameter(l->call, "state");
    enum check_state state;

    l->filter.state = -1;
    if (word != NULL)
        l->filter.state = check_state_read(word, &state) ? (int)state : CHECK_ANY_BAD;
}

/* Sets the filter to the token's site, or to the site that the query names by its origin. */
static bool read_site(struct listing *l, const struct registry *registry)
{
    const char *text = call_parameter(l->call, "site");
    struct reply *reply = &l->call->request->reply;
    const struct registry_site *site;
    struct url origin;
    enum rule_code code;

    l->filter.site_id = l->call->request->grant.site_id;
    if (text == NULL)
        return true;
    code = url_parse_origin(text, strlen(text), &origin);
    if (code != RULE_OK) {
        errors_reply_rule(reply, code, "site", NULL);
        return false;
    }
    site = registry_site_by_origin(registry, origin.text);
    if (site == NULL || !grant_has_site(&l->call->request->grant, site->id)) {
        errors_reply_not_found(reply, "site");
        return false;
    }
    l->filter.site_id = site->id;
    return true;
}

static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct str *out = &call->request->reply.body;
    struct listing l = {.call = call};
    uint64_t after;
    int64_t next;
    enum catalogue_status status;

    read_state(&l);
    if (!read_site(&l, registry) || !call_cursor(call, 0, INT64_MAX, &after))
        return CATALOGUE_OK;
    l.filter.source = query_value(&call->query, "source");
    l.filter.prefix = call->request->grant.prefix;
    l.filter.after = (int64_t)after;
    l.filter.limit = (size_t)call_number(call, "limit");
    str_append_text(out, "{\"checks\":[");
    status = catalogue_view_checks(view, &l.filter, append_check, &l, &next);
    if (status != CATALOGUE_OK)
        return status;
    str_append_text(out, "],\"next\":");
    if (next != 0)
        str_append_format(out, "\"%" PRId64 "\"", next);
    else
        str_append_text(out, "null");
    str_append_text(out, "}\n");
    call_reply_tagged(call, NULL);
    return CATALOGUE_OK;
}

enum handled checks_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

/* ---- POST /v1/checks?loc= ------------------------------------------------------------------ */

struct check_call {
    struct call call; /* first */
    struct url loc;
    int64_t site_id;
};
const size_t check_call_size = sizeof(struct check_call);

static void polled(void *context, const struct check_record *record, const char *failure)
{
    struct check_call *self = context;
    struct request *request = self->call.request;

    if (!auth_still_holds(self->call.app, request)) {
        request_resume(request);
        return;
    }
    if (record == NULL) {
        reply_problem(&request->reply, 503, "not-polled", NULL, failure);
        reply_header(&request->reply, "Retry-After", "60");
    } else {
        str_append_text(&request->reply.body, "{\"check\":");
        check_json_append(&request->reply.body, record);
        str_append_text(&request->reply.body, "}\n");
        reply_json(&request->reply, 200);
    }
    request_resume(request);
}

/* Finds the check and its site: a sitemap of a cross host may be watched by several sites. The
 * token's site, or the first. */
static enum catalogue_status find_check(struct call *call, struct catalogue_view *view,
                                        const struct registry *registry)
{
    struct check_call *self = (struct check_call *)call;
    const struct grant *grant = &call->request->grant;

    for (size_t i = 0; i < registry->site_count && self->site_id == 0; i++) {
        struct check_record record;
        enum catalogue_status status;

        if (!grant_has_site(grant, registry->sites[i].id) || !grant_has_loc(grant, self->loc.text))
            continue;
        status = catalogue_view_check_by_loc(view, registry->sites[i].id, self->loc.text, &record);
        if (status == CATALOGUE_OK)
            self->site_id = registry->sites[i].id;
        else if (status != CATALOGUE_NOT_FOUND)
            return status;
    }
    if (self->site_id == 0)
        reply_problem(
            &call->request->reply, 404, "not-found", "loc",
            "this URL is not polled: its source or site has check = no, or it is not registered");
    return CATALOGUE_OK;
}

static void run_poll(void *context)
{
    struct check_call *self = context;

    call_look(&self->call, find_check);
    if (self->call.request->reply.status != 0)
        request_resume(self->call.request);
    else
        remote_poll(self->call.app->remote, self->site_id, self->loc.text, &self->call.span.context,
                    polled, self);
}

enum handled check_poll(void *context, struct request *request)
{
    struct app_context *app = context;
    struct check_call *self = request->state;
    const char *loc = call_parameter(&self->call, "loc");

    if (!repeat_refuse(&self->call))
        return HANDLED;
    if (url_parse(loc, strlen(loc), &self->loc, NULL) != RULE_OK) {
        reply_problem(&request->reply, 400, "malformed-parameter", "loc", "must be a URL");
        return HANDLED;
    }
    if (app->remote == NULL) {
        errors_reply_status(&request->reply, CATALOGUE_UNAVAILABLE);
        return HANDLED;
    }
    return call_run(&self->call, run_poll);
}
