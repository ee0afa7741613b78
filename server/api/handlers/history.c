/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/history, /v1/diff, /v1/restore: what changed, who changed it, and undoing it. A token for one
 * site sees and restores what belongs to that site, and nothing of other sites, not even in a
 * count. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/api/call.h"
#include "server/api/copy.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/rules/lastmod.h"
#include "server/rules/url.h"

/* ---- parameters ------------------------------------------------------------------------------ */

/* Reads a required revision, from the query or the path's segment. False: the reply is filled. */
static bool read_revision(struct call *call, const char *name, const char *text, uint64_t *out)
{
    if (text != NULL && query_number(text, INT64_MAX - 1, out))
        return true;
    reply_problem(&call->request->reply, 400,
                  text == NULL ? "missing-parameter" : "malformed-parameter", name,
                  "must be a revision, a decimal number");
    return false;
}

/* `last`: a date means the end of that day, since both ends of a range are included. */
static bool read_time(struct call *call, const char *name, bool last, int64_t *out)
{
    const char *text = call_parameter(call, name);
    struct lastmod time;

    if (text == NULL)
        return true;
    if (lastmod_parse(text, strlen(text), INT64_MAX / 2, &time, NULL) == RULE_OK) {
        *out = last ? lastmod_last_second(&time) : time.unix_seconds;
        return true;
    }
    reply_problem(&call->request->reply, 400, "malformed-parameter", name,
                  "must be a time such as 2026-11-21T08:30:00Z, or a date");
    return false;
}

static bool read_kind(struct call *call, const char **out)
{
    const char *kind = call_parameter(call, "kind");

    *out = kind;
    if (kind == NULL || strcmp(kind, HISTORY_KIND_ALL) == 0)
        return true;
    for (size_t i = 0; history_kinds[i] != NULL; i++)
        if (strcmp(kind, history_kinds[i]) == 0)
            return true;
    reply_problem(&call->request->reply, 400, "malformed-parameter", "kind",
                  "must be a kind of change, such as list, replace, scan or undo, or all");
    return false;
}

/* Whether the token is for less than a site. Changes are reported as a whole: a token with a
 * prefix, or for its own entries alone, has no history. True: the reply is filled. */
static bool is_of_part(struct call *call)
{
    const struct grant *grant = &call->request->grant;

    if (grant_has_whole(grant) && !grant->own)
        return false;
    reply_problem(&call->request->reply, 403, "needs-token-of-whole-site", NULL,
                  "permission denied: the history needs a token for a whole site, not limited to a "
                  "prefix or its own entries");
    return true;
}

/* Finds the index or urlset of a name. Their paths are never the same. */
static const struct registry_index *find_list(const struct registry *registry, const char *name)
{
    const struct registry_index *list = registry_index_by_name(registry, name, NULL);

    return list != NULL ? list : registry_list_by_name(registry, name, LIST_URLSET, NULL);
}

/* Finds the index or urlset that the query names, if the token may see it. False: the reply is
 * filled. */
static bool find_index(struct call *call, const struct registry *registry,
                       const struct registry_index **out)
{
    const char *name = call_parameter(call, "index");
    int64_t only = call->request->grant.site_id;

    *out = name != NULL ? find_list(registry, name) : NULL;
    if (*out == NULL && name != NULL)
        *out = registry_list_by_id(registry, call_id(name));
    if (*out != NULL && (only == 0 || only == (*out)->site_id))
        return true;
    reply_problem(&call->request->reply, name == NULL ? 400 : 404,
                  name == NULL ? "missing-parameter" : rule_code_word(RULE_INDEX_UNKNOWN), "index",
                  "must name an index or urlset of this catalogue, by URL, path or id");
    return false;
}

static bool read_site(struct call *call, const struct registry *registry, int64_t *site_id)
{
    const struct registry_site *site;

    *site_id = call->request->grant.site_id;
    if (call_parameter(call, "site") == NULL)
        return true;
    if (!call_site(call, registry, &site))
        return false;
    *site_id = site->id;
    return true;
}

/* ---- GET /v1/history ------------------------------------------------------------------------- */

struct listing {
    struct str *out;
    const struct registry *registry;
    uint64_t count;
    bool whole; /* the token may see everything that the last listed change touched */
};

static struct json_change shown_change(const struct history_change *change)
{
    return (struct json_change){.revision = change->revision,
                                .at = change->at,
                                .by = change->by,
                                .kind = change->kind,
                                .via = change->via,
                                .request_id = change->request_id,
                                .created = change->created,
                                .updated = change->updated,
                                .removed = change->removed,
                                .unchanged = change->whole ? change->unchanged : JSON_NONE,
                                .undoes = json_or_none(change->undoes),
                                .restores = json_or_none(change->restores),
                                .undone_by = json_or_none(change->undone_by),
                                .site = change->site,
                                .list = change->list,
                                .loc = change->loc,
                                .note = change->note};
}

static void each_change(void *context, const struct history_change *change)
{
    struct json_change shown = shown_change(change);
    struct listing *l = context;

    if (l->count++ > 0)
        str_append_char(l->out, ',');
    json_append_object(l->out, &json_change, &shown);
}

static void append_next(struct str *out, uint64_t next)
{
    if (next != 0)
        str_append_format(out, ",\"next\":\"%" PRIu64 "\"", next);
    else
        str_append_text(out, ",\"next\":null");
}

static void each_shortened(void *context, int64_t site_id, uint64_t from)
{
    struct listing *l = context;
    const struct registry_site *site = registry_site_by_id(l->registry, site_id);

    if (site == NULL && site_id != 0) /* the site was removed */
        return;
    struct json_shortened_site shown = {site != NULL ? site->origin : NULL, from};

    if (l->count++ > 0)
        str_append_char(l->out, ',');
    json_append_object(l->out, &json_shortened_site, &shown);
}

/* Appends the sites whose old changes were dropped for lack of space. */
static enum catalogue_status append_shortened(struct listing *l, struct catalogue_view *view)
{
    enum catalogue_status status;

    l->count = 0;
    str_append_text(l->out, ",\"shortened\":[");
    status = catalogue_view_history_shortened(view, each_shortened, l);
    str_append_char(l->out, ']');
    return status;
}

static bool read_query(struct call *call, const struct registry *registry,
                       struct history_query *query, struct url *loc)
{
    const char *text = call_parameter(call, "loc");
    const struct registry_index *index;

    query->by = call_parameter(call, "by");
    if (!read_kind(call, &query->kind) || !call_cursor(call, 1, INT64_MAX, &query->after) ||
        !read_time(call, "since", false, &query->since) ||
        !read_time(call, "until", true, &query->until) ||
        !read_site(call, registry, &query->site_id) ||
        (text != NULL && !call_url(call, "loc", text, loc)))
        return false;
    query->loc = text != NULL ? loc->text : NULL;
    query->limit = (size_t)call_number(call, "limit");
    if (call_parameter(call, "index") == NULL)
        return true;
    if (!find_index(call, registry, &index))
        return false;
    query->index_id = index->id;
    query->site_id = index->site_id;
    return true;
}

static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct listing l = {.out = &call->request->reply.body, .registry = registry};
    struct history_query query = {.limit = 0};
    uint64_t from, looked_at = 0, next = 0;
    struct url loc;
    enum catalogue_status status;

    if (!read_query(call, registry, &query, &loc))
        return CATALOGUE_OK;
    status = catalogue_view_history_from(view, query.site_id, &from);
    str_append_text(l.out, "{\"changes\":[");
    if (status == CATALOGUE_OK)
        status = catalogue_view_history(view, &query, each_change, &l, &looked_at, &next);
    str_append_format(l.out, "],\"from_revision\":%" PRIu64 ",\"looked_at\":%" PRIu64, from,
                      looked_at);
    if (status == CATALOGUE_OK && query.site_id == 0)
        status = append_shortened(&l, view);
    append_next(l.out, next);
    str_append_text(l.out, "}\n");
    if (status == CATALOGUE_OK)
        call_reply_tagged(call, NULL);
    return status;
}

enum handled history_list(void *context, struct request *request)
{
    (void)context;
    if (is_of_part(request->state))
        return HANDLED;
    return call_read(request->state, list_work);
}

/* ---- GET /v1/history/{revision} -------------------------------------------------------------- */

static void each_row(void *context, const struct entry_record *before,
                     const struct entry_record *after)
{
    struct listing *l = context;

    if (l->count++ > 0)
        str_append_char(l->out, ',');
    entry_json_append_change(l->out, before, after, l->registry);
}

/* Lines being written into the answer's file. */
struct lines {
    struct copy *copy;
    const struct registry *registry;
    struct str line;
    bool failed;
};

static void each_line(void *context, const struct entry_record *before,
                      const struct entry_record *after)
{
    struct lines *l = context;

    if (l->failed)
        return;
    str_clear(&l->line);
    entry_json_append_change(&l->line, before, after, l->registry);
    str_append_char(&l->line, '\n');
    l->failed = l->line.failed || !copy_write(l->copy, str_text(&l->line), l->line.len);
}

static void only_change(void *context, const struct history_change *change)
{
    struct json_change shown = shown_change(change);
    struct listing *l = context;

    json_open_object(l->out, &json_change, &shown);
    l->whole = change->whole;
}

/* Rows of a change that also touched other sites: a token for one site pages through its own rows
 * by their number. The parts in which the rows are stored would reveal how many others there are. A
 * call looks at OWN_PARTS of them, about a hundredth of a second: the cursor has the number of such
 * groups before, in the upper half, and of the site's rows before in this one. */
#define OWN_ROWS  1000u
#define OWN_BYTES (8u << 20) /* a few page URLs may be large */
#define OWN_PARTS 20u
struct own_rows {
    struct listing *l;
    uint64_t skip, seen;
    bool more;
};

static void each_own_row(void *context, const struct entry_record *before,
                         const struct entry_record *after)
{
    struct own_rows *own = context;

    if (own->seen++ < own->skip)
        return;
    own->more = own->l->count >= OWN_ROWS || own->l->out->len >= OWN_BYTES;
    if (!own->more)
        each_row(own->l, before, after);
}

/* `*next`: the cursor for the next rows, 0: there are no more. */
static enum catalogue_status own_rows(struct catalogue_view *view, uint64_t revision, int64_t site,
                                      struct listing *l, uint64_t after, uint64_t *next)
{
    uint64_t group = after >> 32, first = group * OWN_PARTS + 1;
    struct own_rows own = {.l = l, .skip = (uint32_t)after};
    enum catalogue_status status = CATALOGUE_OK;
    bool more = true;

    for (uint64_t part = first;
         status == CATALOGUE_OK && more && !own.more && part < first + OWN_PARTS; part++)
        status = catalogue_view_history_rows(view, revision, site, part, each_own_row, &own, &more);
    *next = own.more ? after + l->count : more ? (group + 1) << 32 : 0;
    return status;
}

static void reply_gone(struct call *call, uint64_t from)
{
    char detail[HISTORY_GONE_SIZE];

    history_report_dropped(detail, from);
    reply_problem(&call->request->reply, 404, "not-found", NULL, detail);
}

static enum catalogue_status get_work(struct call *call, struct catalogue_view *view,
                                      const struct registry *registry)
{
    struct listing l = {.out = &call->request->reply.body, .registry = registry};
    int64_t site = call->request->grant.site_id;
    uint64_t revision, after, next = 0, from = 0;
    bool more = false;
    enum catalogue_status status;

    if (!read_revision(call, "revision", call->request->path_tail, &revision) ||
        !call_cursor(call, 0, INT64_MAX, &after))
        return CATALOGUE_OK;
    status = catalogue_view_history_from(view, site, &from);
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_change(view, revision, site, only_change, &l);
    if (status == CATALOGUE_NOT_FOUND) {
        reply_gone(call, from);
        return CATALOGUE_OK;
    }
    str_append_text(l.out, ",\"rows\":[");
    if (status == CATALOGUE_OK && l.whole)
        status = catalogue_view_history_rows(view, revision, site, after + 1, each_row, &l, &more);
    else if (status == CATALOGUE_OK)
        status = own_rows(view, revision, site, &l, after, &next);
    str_append_char(l.out, ']');
    append_next(l.out, more ? after + 1 : next);
    str_append_text(l.out, "}\n");
    if (status == CATALOGUE_OK)
        call_reply_tagged(call, NULL);
    return status;
}

static void no_change(void *context, const struct history_change *change)
{
    (void)context;
    (void)change;
}

/* Writes all rows, each as a line. */
static enum catalogue_status rows_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct lines l = {.copy = (struct copy *)call, .registry = registry};
    int64_t site = call->request->grant.site_id;
    uint64_t revision, from = 0;
    bool more = true;
    enum catalogue_status status;

    if (!read_revision(call, "revision", call->request->path_tail, &revision))
        return CATALOGUE_OK;
    status = catalogue_view_history_from(view, site, &from);
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_change(view, revision, site, no_change, NULL);
    if (status == CATALOGUE_NOT_FOUND) {
        reply_gone(call, from);
        return CATALOGUE_OK;
    }
    for (uint64_t part = 1; status == CATALOGUE_OK && more && !l.failed; part++) {
        l.failed = !copy_goes_on(l.copy);
        status = catalogue_view_history_rows(view, revision, site, part, each_line, &l, &more);
    }
    str_done(&l.line);
    return status == CATALOGUE_OK && l.failed ? CATALOGUE_NO_MEMORY : status;
}

enum handled history_get(void *context, struct request *request)
{
    (void)context;
    if (is_of_part(request->state))
        return HANDLED;
    if (copy_wants_lines(request))
        return copy_lines(request->state, rows_work);
    return call_read(request->state, get_work);
}

/* ---- GET /v1/diff ---------------------------------------------------------------------------- */

static bool diff_goes_on(void *context, size_t bytes)
{
    struct lines *l = context;

    return !l->failed && copy_goes_on(l->copy) && copy_room(l->copy, bytes);
}

static enum catalogue_status diff_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct reply *reply = &call->request->reply;
    struct lines l = {.copy = (struct copy *)call, .registry = registry};
    const struct registry_index *index;
    struct history_difference wanted = {.each = each_line, .goes_on = diff_goes_on, .context = &l};
    uint64_t first = 0;
    enum catalogue_status status;

    if (!find_index(call, registry, &index))
        return CATALOGUE_OK;
    wanted.from = call_number(call, "from");
    wanted.to = call_parameter(call, "to") != NULL ? call_number(call, "to") : INT64_MAX;
    wanted.site_id = index->site_id;
    wanted.index_id = index->id;
    status = catalogue_view_history_from(view, index->site_id, &first);
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_diff(view, &wanted);
    str_done(&l.line);
    if (status == CATALOGUE_NOT_FOUND) {
        reply_gone(call, first);
        return CATALOGUE_OK;
    }
    if (status == CATALOGUE_FULL) {
        reply_problem(reply, 400, "diff-too-large", "from",
                      "too many changed entries for one response; request fewer revisions");
        return CATALOGUE_OK;
    }
    return status == CATALOGUE_OK && l.failed ? CATALOGUE_NO_MEMORY : status;
}

enum handled diff_get(void *context, struct request *request)
{
    (void)context;
    if (is_of_part(request->state))
        return HANDLED;
    return copy_run(request->state, "application/x-ndjson", diff_work);
}

/* ---- POST …/undo, /v1/restore ---------------------------------------------------------------- */

/* Conflicting rows that are listed at most. */
#define CONFLICTS_MAX 1000u

static void append_conflicts(struct str *out, const struct findings *f, bool brief)
{
    str_append_text(out, ",\"conflicts\":[");
    for (uint32_t i = 0; i < (brief ? 0 : f->count); i++) {
        str_append_text(out, i > 0 ? ",{\"loc\":" : "{\"loc\":");
        str_append_json_text(out, f->items[i].loc);
        str_append_json_member(out, "code", rule_code_word(f->items[i].code));
        str_append_char(out, '}');
    }
    str_append_format(out, "],\"conflicts_total\":%" PRIu64, f->refused);
    out->failed = out->failed || f->failed;
}

static void answer_undone(struct call *call)
{
    struct reply *reply = &call->request->reply;
    const struct change_result *r = &call->result;
    struct str *out = &reply->body;
    char subject[64];

    str_append_format(out,
                      "{\"created\":%" PRIu64 ",\"updated\":%" PRIu64 ",\"unchanged\":%" PRIu64
                      ",\"removed\":%" PRIu64 ",\"revision\":%" PRIu64 ",\"dry_run\":%s",
                      r->created, r->updated, r->unchanged, r->removed, r->revision,
                      call->change.dry_run ? "true" : "false");
    append_conflicts(out, &r->findings, call->repeat.brief);
    call_append_rows(call);
    str_append_text(out, "}\n");
    reply_json(reply, 200);
    snprintf(subject, sizeof subject, "revision %" PRIu64, call->change.undo.revision);
    call_audit(call, call->change.kind == CHANGE_UNDO ? "undo" : "restore", subject);
}

static void refuse_undone(struct call *call)
{
    const struct change_result *result = &call->result;

    if (result->status == CATALOGUE_REFUSED && result->code == RULE_INDEX_UNKNOWN)
        reply_problem(&call->request->reply, 404, rule_code_word(result->code), "index",
                      result->detail);
    else if (result->conflict != NULL)
        reply_problem(&call->request->reply, 409, result->conflict, NULL, result->detail);
    else
        errors_reply_result(&call->request->reply, result);
}

/* Sets the kind of a restore: whether the name is now that of an index or of a urlset. */
static void find_kind(struct call *call)
{
    const struct page_map *routing = publisher_page_map(call->app->publisher);
    const struct registry_index *list =
        find_list(page_map_registry(routing), call->change.index_name);

    call->change.list = list != NULL ? list->kind : LIST_INDEX;
    publisher_page_map_done(routing);
}

static enum handled put_back(struct call *call, enum change_kind kind, const char *name,
                             const char *revision)
{
    struct change *change = &call->change;

    if (is_of_part(call))
        return HANDLED;

    if (!read_revision(call, name, revision, &change->undo.revision))
        return HANDLED;
    call_set_options(call);
    change->undo.overwrite = call_word_is(call, "on_conflict", "overwrite");
    change->kind = kind;
    change->pass_frozen = grant_may(&call->request->grant, GRANT_ADMIN);
    change->max_findings = CONFLICTS_MAX;
    change->index_name = call_parameter(call, "index");
    if (kind == CHANGE_RESTORE)
        find_kind(call);
    call->refuse = refuse_undone;
    return call_write(call, answer_undone);
}

enum handled history_undo(void *context, struct request *request)
{
    (void)context;
    return put_back(request->state, CHANGE_UNDO, "revision", request->path_tail);
}

enum handled restore_post(void *context, struct request *request)
{
    struct call *call = request->state;

    (void)context;
    return put_back(call, CHANGE_RESTORE, "to", call_parameter(call, "to"));
}
