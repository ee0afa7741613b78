/* POST, PATCH and DELETE of /v1/sites. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/log/log.h"
#include "server/routes/call.h"
#include "server/routes/errors.h"
#include "server/routes/handlers.h"
#include "server/routes/json_body.h"
#include "server/routes/site_json.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

#define DEFAULT_INDEX "/sitemap_index.xml"              /* what `serve --site` makes, too */
#define MAX_INDEXES   (UINT32_MAX / LIMIT_PAGE_ENTRIES) /* what positions can number */

struct site_write {
    struct call call; /* first */
    int64_t site_id;
    struct json_fields *body;
    struct url origin;
    char index_url[LOC_MAX_CHARS + INDEX_PATH_MAX_CHARS +
                   1];      /* to be made with the site; "": none */
    bool site_made;         /* the first of two changes is applied */
    uint64_t site_revision; /* of that */
    size_t index_count;     /* of a site that is removed */
};

static void site_cleanup(struct call *call)
{
    json_fields_free(((struct site_write *)call)->body);
}

static struct site_write *new_call(void *context, struct request *request, const char *const *known)
{
    struct site_write *self = call_new(context, request, sizeof *self, known);

    if (self != NULL)
        self->call.cleanup = site_cleanup;
    return self;
}

/* ---- POST, PATCH ------------------------------------------------------------------------- */

/* The site as it is published now; where it cannot be seen (the catalogue went away meanwhile),
 * what is known of it: the write was applied and is not to be denied. */
static void answer_site(struct call *call, unsigned status)
{
    struct site_write *self = (struct site_write *)call;
    struct reply *reply = &call->request->reply;
    const struct routing *routing = publisher_routing(call->app->publisher);
    const struct registry_site *site =
        registry_site_by_id(routing_registry(routing), self->site_id);

    if (site != NULL)
        site_json_append(&reply->body, site);
    else
        str_append_format(&reply->body, "{\"id\":\"%" PRId64 "\"}", self->site_id);
    publisher_routing_done(routing);
    str_append_char(&reply->body, '\n');
    reply_json(reply, status);
}

static void answer_made(struct call *call)
{
    struct site_write *self = (struct site_write *)call;
    char location[40];

    answer_site(call, 201);
    snprintf(location, sizeof location, "/v1/sites/%" PRId64, self->site_id);
    reply_header(&call->request->reply, "Location", location);
    call_audit(call, "site-add", self->origin.text);
}

static void refuse_changed(struct call *call)
{
    struct change_result *result = &call->result;

    /* The API's word for them. */
    if (result->field != NULL && strcmp(result->field, "alias_hosts") == 0)
        result->field = "host_aliases";
    errors_reply_result(&call->request->reply, result);
}

static void refuse_made(struct call *call)
{
    struct reply *reply = &call->request->reply;
    const struct change_result *result = &call->result;

    if (result->status == CATALOGUE_CONFLICT && !result->managed && result->field == NULL)
        reply_problem(reply, 409, "site-exists", "origin",
                      "there is a site with this origin already");
    else
        refuse_changed(call);
}

/* The site, then its index: two changes. Where the second fails, the first stands and is told; the
 * reply's count of indexes shows the rest. */
static bool make_index_too(struct call *call)
{
    struct site_write *self = (struct site_write *)call;

    if (!self->site_made) {
        if (call->result.status != CATALOGUE_OK)
            return false;
        self->site_made = true;
        self->site_id = call->result.id;
        self->site_revision = call->result.revision;
        if (self->index_url[0] == '\0')
            return false;
        call->change.kind = CHANGE_INDEX_ADD;
        call->change.index_url = self->index_url;
        call_write_more(call);
        return true;
    }
    if (call->result.status != CATALOGUE_OK) {
        log_request(LOG_LEVEL_WARNING, "index-not-made", call->request->id,
                    "%s: %s; the site stands without it. POST /v1/indexes makes it",
                    self->index_url, catalogue_status_word(call->result.status));
        call->result.status = CATALOGUE_OK;
        call->result.revision = self->site_revision;
        call->result.changed = true;
    }
    return false;
}

static bool choose_index(struct site_write *self, const struct json_field *field)
{
    const char *path = field->text != NULL ? field->text : DEFAULT_INDEX;

    if (field->off)
        return true;
    /* Judged before the site is made, so that a bad path makes neither. */
    if (scope_check_index_path(path) != RULE_OK) {
        errors_reply_rule(&self->call.request->reply, RULE_INDEX_PATH, "index", NULL);
        return false;
    }
    snprintf(self->index_url, sizeof self->index_url, "%s%.*s", self->origin.text,
             (int)INDEX_PATH_MAX_CHARS, path);
    return true;
}

static void set_fields(struct change *change, const struct json_field *cross,
                       const struct json_field *aliases, const struct json_field *max)
{
    if (cross->present) {
        change->site.set |= SITE_SET_CROSS_HOSTS;
        change->site.cross_hosts = cross->texts;
    }
    if (aliases->present) {
        change->site.set |= SITE_SET_ALIAS_HOSTS;
        change->site.alias_hosts = aliases->texts;
    }
    if (max->present) {
        change->site.set |= SITE_SET_MAX_PAGES;
        change->site.max_pages = (uint32_t)max->number;
    }
}

enum handled sites_post_begin(void *context, struct request *request)
{
    if (request->token_site_id != 0) {
        errors_reply_scope(&request->reply);
        return HANDLED;
    }
    return new_call(context, request, NULL) == NULL ? HANDLED : HANDLE_CONTINUE;
}

enum handled sites_post(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct site_write *self = request->state;
    struct json_field fields[] = {
        {.name = "origin", .type = JSON_FIELD_TEXT, .required = true},
        {.name = "cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "host_aliases", .type = JSON_FIELD_TEXTS},
        {.name = "max_indexes", .type = JSON_FIELD_NUMBER, .max = MAX_INDEXES},
        {.name = "index", .type = JSON_FIELD_SWITCH},
    };
    enum rule_code code;

    self->body = json_body_read(request, app->max_body_bytes, fields, 5);
    if (self->body == NULL)
        return HANDLED;
    code = url_parse_origin(fields[0].text, strlen(fields[0].text), &self->origin);
    if (code != RULE_OK) {
        errors_reply_rule(&request->reply, code, "origin", NULL);
        return HANDLED;
    }
    if (!choose_index(self, &fields[4]))
        return HANDLED;
    self->call.change.kind = CHANGE_SITE_ADD;
    self->call.change.site.origin = self->origin.text;
    set_fields(&self->call.change, &fields[1], &fields[2], &fields[3]);
    self->call.judge = make_index_too;
    self->call.refuse = refuse_made;
    return call_write(&self->call, answer_made);
}

enum handled site_patch_begin(void *context, struct request *request)
{
    struct site_write *self = new_call(context, request, NULL);

    if (self == NULL)
        return HANDLED;
    self->site_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

/* What is told of the site that the path names: a removed one is gone when the answer comes. */
static void note_site(struct site_write *self, const struct app_context *app)
{
    const struct routing *routing = publisher_routing(app->publisher);
    const struct registry_site *site =
        registry_site_by_id(routing_registry(routing), self->site_id);

    if (site != NULL) {
        self->index_count = site->index_count;
        self->origin = site->origin_url;
    }
    publisher_routing_done(routing);
}

static void audit_site(struct site_write *self, const char *action)
{
    call_audit(&self->call, action,
               self->origin.len > 0 ? self->origin.text : self->call.request->path_tail);
}

static void answer_changed(struct call *call)
{
    answer_site(call, 200);
    audit_site((struct site_write *)call, "site-update");
}

enum handled site_patch(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct site_write *self = request->state;
    struct json_field fields[] = {
        {.name = "cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "host_aliases", .type = JSON_FIELD_TEXTS},
        {.name = "max_indexes", .type = JSON_FIELD_NUMBER, .max = MAX_INDEXES},
    };

    self->body = json_body_read(request, app->max_body_bytes, fields, 3);
    if (self->body == NULL)
        return HANDLED;
    self->call.change.kind = CHANGE_SITE_UPDATE;
    self->call.change.site_id = self->site_id;
    set_fields(&self->call.change, &fields[0], &fields[1], &fields[2]);
    self->call.refuse = refuse_changed;
    note_site(self, app);
    return call_write(&self->call, answer_changed);
}

/* ---- DELETE ------------------------------------------------------------------------------ */

enum handled site_delete_begin(void *context, struct request *request)
{
    static const char *const known[] = {"max_removed", NULL};
    struct site_write *self = new_call(context, request, known);

    if (self == NULL || !call_max_removed(&self->call))
        return HANDLED;
    self->site_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

static void answer_removed(struct call *call)
{
    struct site_write *self = (struct site_write *)call;
    struct reply *reply = &call->request->reply;

    str_append_format(&reply->body,
                      "{\"removed\":%" PRIu64 ",\"indexes\":%zu,\"revision\":%" PRIu64 "}\n",
                      call->result.removed, self->index_count, call->result.revision);
    reply_json(reply, 200);
    audit_site(self, "site-remove");
}

enum handled site_delete(void *context, struct request *request)
{
    struct site_write *self = request->state;

    note_site(self, context);
    self->call.change.kind = CHANGE_SITE_REMOVE;
    self->call.change.site_id = self->site_id;
    return call_write(&self->call, answer_removed);
}
