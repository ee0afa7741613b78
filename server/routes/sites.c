/* /v1/sites. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/log/log.h"
#include "server/routes/call.h"
#include "server/routes/entry_json.h"
#include "server/routes/errors.h"
#include "server/routes/handlers.h"
#include "server/routes/json_body.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

#define LIST_DEFAULT  100u
#define LIST_MAX      1000u
#define DEFAULT_INDEX "/sitemap_index.xml"              /* what `serve --site` makes, too */
#define MAX_INDEXES   (UINT32_MAX / LIMIT_PAGE_ENTRIES) /* what positions can number */

struct site_call {
    struct call call; /* first */
    uint64_t limit;
    int64_t site_id;
    /* writes */
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
    json_fields_free(((struct site_call *)call)->body);
}

static struct site_call *new_call(void *context, struct request *request, const char *const *known)
{
    struct site_call *site = call_new(context, request, sizeof *site, known);

    if (site != NULL)
        site->call.cleanup = site_cleanup;
    return site;
}

/* ---- the object -------------------------------------------------------------------------- */

static void append_texts(struct str *out, const char *name, size_t count, const char *const *texts)
{
    str_append_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            str_append_char(out, ',');
        entry_json_append_text(out, texts[i]);
    }
    str_append_char(out, ']');
}

static void append_site(struct str *out, const struct registry_site *site)
{
    str_append_format(out, "{\"id\":\"%" PRId64 "\",\"origin\":", site->id);
    entry_json_append_text(out, site->origin);
    append_texts(out, "cross_hosts", site->cross_host_count, site->cross_hosts);
    append_texts(out, "host_aliases", site->alias_host_count, site->alias_hosts);
    str_append_format(out, ",\"max_indexes\":%" PRIu32 ",\"managed\":%s,\"indexes\":%zu}",
                      site->max_pages, site->managed ? "true" : "false", site->index_count);
}

/* ---- GET --------------------------------------------------------------------------------- */

enum handled sites_list_begin(void *context, struct request *request)
{
    static const char *const known[] = {"after", "limit", NULL};
    struct site_call *site = new_call(context, request, known);

    if (site == NULL || !call_number(&site->call, "limit", 1, LIST_MAX, LIST_DEFAULT, &site->limit))
        return HANDLED;
    return HANDLE_CONTINUE;
}

/* The cursor is the origin of the last site told: the list goes by origin. */
static void append_list(struct site_call *call, const struct registry *registry)
{
    struct str *out = &call->call.request->reply.body;
    const char *after = call_parameter(&call->call, "after"), *last = NULL;
    int64_t only = call->call.request->token_site_id;
    uint64_t count = 0;
    bool more = false;

    str_append_text(out, "{\"sites\":[");
    for (size_t i = 0; i < registry->site_count && !more; i++) {
        const struct registry_site *site = &registry->sites[i];

        if ((only != 0 && site->id != only) || (after != NULL && strcmp(site->origin, after) <= 0))
            continue;
        if (count == call->limit) {
            more = true;
            continue;
        }
        if (count++ > 0)
            str_append_char(out, ',');
        append_site(out, site);
        last = site->origin;
    }
    str_append_text(out, "],\"next\":");
    entry_json_append_text(out, more ? last : NULL);
    str_append_text(out, "}\n");
}

static void list_work(struct call *call, struct catalogue_view *view)
{
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(&call->request->reply, status);
        return;
    }
    append_list((struct site_call *)call, registry);
    registry_unref(registry);
    call_reply_tagged(call);
}

enum handled sites_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

enum handled site_get_begin(void *context, struct request *request)
{
    struct site_call *site = new_call(context, request, NULL);

    if (site == NULL)
        return HANDLED;
    site->site_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

static void get_work(struct call *call, struct catalogue_view *view)
{
    struct request *request = call->request;
    int64_t id = ((struct site_call *)call)->site_id;
    const struct registry_site *site;
    struct registry *registry;
    enum catalogue_status status = catalogue_view_registry(view, &registry);

    if (status != CATALOGUE_OK) {
        errors_reply_status(&request->reply, status);
        return;
    }
    site = registry_site_by_id(registry, id);
    if (site == NULL || (request->token_site_id != 0 && request->token_site_id != id)) {
        errors_reply_not_found(&request->reply, "site");
    } else {
        append_site(&request->reply.body, site);
        str_append_char(&request->reply.body, '\n');
        call_reply_tagged(call);
    }
    registry_unref(registry);
}

enum handled site_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}

/* ---- POST, PATCH ------------------------------------------------------------------------- */

/* The site as it is published now; where it cannot be seen (the catalogue went away meanwhile),
 * what is known of it: the write was applied and is not to be denied. */
static void answer_site(struct call *call, unsigned status)
{
    struct site_call *self = (struct site_call *)call;
    struct reply *reply = &call->request->reply;
    const struct routing *routing = publisher_routing(call->app->publisher);
    const struct registry_site *site =
        registry_site_by_id(routing_registry(routing), self->site_id);

    if (site != NULL)
        append_site(&reply->body, site);
    else
        str_append_format(&reply->body, "{\"id\":\"%" PRId64 "\"}", self->site_id);
    publisher_routing_done(routing);
    str_append_char(&reply->body, '\n');
    reply_json(reply, status);
}

static void answer_made(struct call *call)
{
    struct site_call *self = (struct site_call *)call;
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
    struct site_call *self = (struct site_call *)call;

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

static bool choose_index(struct site_call *self, const struct json_field *field)
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
    struct site_call *self = request->state;
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
    return site_get_begin(context, request);
}

static void answer_changed(struct call *call)
{
    answer_site(call, 200);
    call_audit(call, "site-update", call->request->path_tail);
}

enum handled site_patch(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct site_call *self = request->state;
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
    return call_write(&self->call, answer_changed);
}

/* ---- DELETE ------------------------------------------------------------------------------ */

enum handled site_delete_begin(void *context, struct request *request)
{
    static const char *const known[] = {"max_removed", NULL};
    struct site_call *self = new_call(context, request, known);

    if (self == NULL || !call_max_removed(&self->call))
        return HANDLED;
    self->site_id = call_id(request->path_tail);
    return HANDLE_CONTINUE;
}

static void answer_removed(struct call *call)
{
    const struct site_call *self = (const struct site_call *)call;
    struct reply *reply = &call->request->reply;

    str_append_format(&reply->body,
                      "{\"removed\":%" PRIu64 ",\"indexes\":%zu,\"revision\":%" PRIu64 "}\n",
                      call->result.removed, self->index_count, call->result.revision);
    reply_json(reply, 200);
    call_audit(call, "site-remove", call->request->path_tail);
}

enum handled site_delete(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct site_call *self = request->state;
    const struct routing *routing = publisher_routing(app->publisher);
    const struct registry_site *site =
        registry_site_by_id(routing_registry(routing), self->site_id);

    self->index_count = site != NULL ? site->index_count : 0;
    publisher_routing_done(routing);
    self->call.change.kind = CHANGE_SITE_REMOVE;
    self->call.change.site_id = self->site_id;
    return call_write(&self->call, answer_removed);
}
