/* /v1/indexes. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/routes/call.h"
#include "server/routes/errors.h"
#include "server/routes/handlers.h"
#include "server/routes/index_json.h"
#include "server/routes/json_body.h"
#include "server/rules/url.h"

#define LIST_DEFAULT 100u
#define LIST_MAX     1000u

struct index_call {
    struct call call; /* first */
    uint64_t limit;
    int64_t index_id;
    struct url after;            /* cursor: the URL of the last index told; text "": none */
    struct json_fields *body;    /* POST */
    char url[LOC_MAX_CHARS + 1]; /* POST, DELETE; "": not known */
};

static void index_cleanup(struct call *call)
{
    json_fields_free(((struct index_call *)call)->body);
}

static struct index_call *new_call(void *context, struct request *request, const char *const *known)
{
    struct index_call *self = call_new(context, request, sizeof *self, known);

    if (self != NULL)
        self->call.cleanup = index_cleanup;
    return self;
}

/* ---- GET --------------------------------------------------------------------------------- */

enum handled indexes_list_begin(void *context, struct request *request)
{
    static const char *const known[] = {"site", "after", "limit", NULL};
    struct index_call *self = new_call(context, request, known);
    const char *after;

    if (self == NULL || !call_number(&self->call, "limit", 1, LIST_MAX, LIST_DEFAULT, &self->limit))
        return HANDLED;
    after = call_parameter(&self->call, "after");
    if (after != NULL && url_parse(after, strlen(after), &self->after, NULL) != RULE_OK) {
        reply_problem(&request->reply, 400, "malformed-cursor", "after",
                      "is not the `next` of an earlier list");
        return HANDLED;
    }
    return HANDLE_CONTINUE;
}

/* By origin, then path: the order of the registry. */
static bool is_behind(const struct index_call *self, const struct registry_site *site,
                      const struct registry_index *index)
{
    const struct url *after = &self->after;
    int order;

    if (after->len == 0)
        return true;
    order = strncmp(site->origin, after->text, after->origin_len);
    if (order == 0 && site->origin[after->origin_len] != '\0')
        order = 1;
    return order > 0 || (order == 0 && strcmp(index->path, after->text + after->origin_len) > 0);
}

static enum catalogue_status append_list(struct index_call *self, struct catalogue_view *view,
                                         const struct registry *registry,
                                         const struct registry_site *only)
{
    struct str *out = &self->call.request->reply.body;
    const struct registry_site *last_site = NULL;
    const struct registry_index *last = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    uint64_t count = 0;
    bool more = false;

    str_append_text(out, "{\"indexes\":[");
    for (size_t i = 0; i < registry->site_count && !more; i++) {
        const struct registry_site *site = &registry->sites[i];

        if (only != NULL && site != only)
            continue;
        for (size_t j = 0; j < site->index_count && status == CATALOGUE_OK; j++) {
            if (!is_behind(self, site, &site->indexes[j]))
                continue;
            if (count == self->limit) {
                more = true;
                break;
            }
            if (count++ > 0)
                str_append_char(out, ',');
            last_site = site;
            last = &site->indexes[j];
            status = index_json_append(&self->call, view, site, last);
        }
    }
    str_append_text(out, "],\"next\":");
    assert(!more || last_site != NULL); /* a limit is 1 at least */
    if (more)
        index_json_append_url(out, last_site->origin, last->path);
    else
        str_append_text(out, "null");
    str_append_text(out, "}\n");
    return status;
}

/* The site that the query names, by origin or id, or that the token is for; NULL: every site.
 * False, with the reply filled, where there is none. */
static bool find_site(struct call *call, const struct registry *registry,
                      const struct registry_site **out)
{
    const char *name = call_parameter(call, "site");
    int64_t only = call->request->token_site_id;
    struct url origin;

    *out = only != 0 ? registry_site_by_id(registry, only) : NULL;
    if (name != NULL) {
        if (url_parse_origin(name, strlen(name), &origin) == RULE_OK)
            *out = registry_site_by_origin(registry, origin.text);
        else
            *out = registry_site_by_id(registry, call_id(name));
    }
    if ((name == NULL && only == 0) || (*out != NULL && (only == 0 || (*out)->id == only)))
        return true;
    reply_problem(&call->request->reply, 404, rule_code_word(RULE_SITE_UNKNOWN), "site",
                  "is not a site of this catalogue");
    return false;
}

static void list_work(struct call *call, struct catalogue_view *view)
{
    const struct registry_site *only;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(&call->request->reply, status);
        return;
    }
    if (find_site(call, registry, &only)) {
        status = append_list((struct index_call *)call, view, registry, only);
        if (status == CATALOGUE_OK)
            call_reply_tagged(call);
        else
            errors_reply_status(&call->request->reply, status);
    }
    registry_unref(registry);
}

enum handled indexes_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

enum handled index_get_begin(void *context, struct request *request)
{
    struct index_call *self = new_call(context, request, NULL);

    if (self == NULL)
        return HANDLED;
    self->index_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

static void get_work(struct call *call, struct catalogue_view *view)
{
    struct request *request = call->request;
    const struct registry_index *index;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(&request->reply, status);
        return;
    }
    index = registry_index_by_id(registry, ((struct index_call *)call)->index_id);
    if (index == NULL ||
        (request->token_site_id != 0 && request->token_site_id != index->site_id)) {
        errors_reply_not_found(&request->reply, "index");
    } else {
        status =
            index_json_append(call, view, registry_site_by_id(registry, index->site_id), index);
        str_append_char(&request->reply.body, '\n');
        if (status == CATALOGUE_OK)
            call_reply_tagged(call);
        else
            errors_reply_status(&request->reply, status);
    }
    registry_unref(registry);
}

enum handled index_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}

/* ---- POST -------------------------------------------------------------------------------- */

enum handled indexes_post_begin(void *context, struct request *request)
{
    return new_call(context, request, NULL) == NULL ? HANDLED : HANDLE_CONTINUE;
}

static void answer_made(struct call *call)
{
    struct index_call *self = (struct index_call *)call;
    struct reply *reply = &call->request->reply;
    const struct routing *routing = publisher_routing(call->app->publisher);
    const struct registry *registry = routing_registry(routing);
    const struct registry_index *index = registry_index_by_id(registry, call->result.id);
    char location[40];

    if (index != NULL)
        index_json_append(call, NULL, registry_site_by_id(registry, index->site_id), index);
    else
        str_append_format(&reply->body, "{\"id\":\"%" PRId64 "\"}", call->result.id);
    publisher_routing_done(routing);
    str_append_char(&reply->body, '\n');
    reply_json(reply, 201);
    snprintf(location, sizeof location, "/v1/indexes/%" PRId64, call->result.id);
    reply_header(reply, "Location", location);
    call_audit(call, "index-add", self->url);
}

static void refuse_made(struct call *call)
{
    struct reply *reply = &call->request->reply;
    const struct change_result *result = &call->result;

    if (result->status == CATALOGUE_CONFLICT && !result->managed)
        reply_problem(reply, 409, "index-exists", "url", "there is an index with this URL already");
    else
        errors_reply_result(reply, result);
}

/* A path serves while there is one site. Which one is asked of the published registry; the
 * catalogue then judges the URL. */
static bool read_url(struct index_call *self, const char *text)
{
    const struct routing *routing;
    const struct registry *registry;
    bool one;

    if (text[0] != '/') {
        snprintf(self->url, sizeof self->url, "%s", text);
        return true;
    }
    routing = publisher_routing(self->call.app->publisher);
    registry = routing_registry(routing);
    one = registry->site_count == 1;
    if (one)
        snprintf(self->url, sizeof self->url, "%s%s", registry->sites[0].origin, text);
    publisher_routing_done(routing);
    if (!one)
        errors_reply_rule(&self->call.request->reply, RULE_SITE_UNKNOWN, "url",
                          "a path names an index only while there is exactly one site");
    return one;
}

enum handled indexes_post(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct index_call *self = request->state;
    struct json_field fields[] = {
        {.name = "url", .type = JSON_FIELD_TEXT, .required = true},
        {.name = "page_pattern", .type = JSON_FIELD_TEXT},
    };

    self->body = json_body_read(request, app->max_body_bytes, fields, 2);
    if (self->body == NULL)
        return HANDLED;
    if (strlen(fields[0].text) > INDEX_PATH_MAX_CHARS + HOST_MAX_CHARS + 16) {
        errors_reply_rule(&request->reply, RULE_INDEX_PATH, "url", "is too long for an index");
        return HANDLED;
    }
    if (!read_url(self, fields[0].text))
        return HANDLED;
    self->call.change.kind = CHANGE_INDEX_ADD;
    self->call.change.index_url = self->url;
    self->call.change.page_pattern = fields[1].text;
    self->call.refuse = refuse_made;
    return call_write(&self->call, answer_made);
}

/* ---- DELETE ------------------------------------------------------------------------------ */

enum handled index_delete_begin(void *context, struct request *request)
{
    static const char *const known[] = {"max_removed", NULL};
    struct index_call *self = new_call(context, request, known);

    if (self == NULL || !call_max_removed(&self->call))
        return HANDLED;
    self->index_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

static void answer_removed(struct call *call)
{
    const struct index_call *self = (const struct index_call *)call;
    struct reply *reply = &call->request->reply;

    str_append_format(&reply->body,
                      "{\"removed\":%" PRIu64 ",\"indexes\":1,\"revision\":%" PRIu64 "}\n",
                      call->result.removed, call->result.revision);
    reply_json(reply, 200);
    call_audit(call, "index-remove", self->url[0] != '\0' ? self->url : call->request->path_tail);
}

/* The URL is for the log: when the answer comes the index is gone. */
static void note_url(struct index_call *self, const struct app_context *app)
{
    const struct routing *routing = publisher_routing(app->publisher);
    const struct registry *registry = routing_registry(routing);
    const struct registry_index *index = registry_index_by_id(registry, self->index_id);

    if (index != NULL)
        snprintf(self->url, sizeof self->url, "%s%s",
                 registry_site_by_id(registry, index->site_id)->origin, index->path);
    publisher_routing_done(routing);
}

enum handled index_delete(void *context, struct request *request)
{
    struct index_call *self = request->state;

    note_url(self, context);
    self->call.change.kind = CHANGE_INDEX_REMOVE;
    self->call.change.index_id = self->index_id;
    return call_write(&self->call, answer_removed);
}
