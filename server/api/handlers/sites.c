/* /v1/sites: what a site is like, and what the catalogue may change of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "db/registry.h"
#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/base/str.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

static void write_robots(struct str *out, const void *context)
{
    const struct registry_site *site = context;

    if (site->robots_off)
        str_append_text(out, "false");
    else
        str_append_json_text(out, site->robots);
}

/* Appends the object; `whole`: with the text of its robots.txt, which a list of many leaves out.
 * Out of memory shows in `out->failed`. */
static void site_json_append(struct str *out, const struct registry_site *site, bool whole)
{
    char id[24];
    struct json_site shown = {
        .listed_site = {.id = id,
                        .origin = site->origin,
                        .cross_hosts = {site->cross_hosts, site->cross_host_count},
                        .host_aliases = {site->alias_hosts, site->alias_host_count},
                        .max_indexes = site->max_pages,
                        .managed = site->managed,
                        .frozen = site->frozen,
                        .frozen_by = freeze_word(site->frozen),
                        .check = site->check,
                        .indexes = site->index_count},
        .robots = {write_robots, site}};

    snprintf(id, sizeof id, "%" PRId64, site->id);
    if (whole)
        json_append_object(out, &json_site, &shown);
    else
        json_append_object(out, &json_listed_site, &shown.listed_site);
}

/* ---- GET --------------------------------------------------------------------------------- */

/* The cursor is the origin of the last site told: the list goes by origin. */
static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    struct str *out = &call->request->reply.body;
    const char *after = call_parameter(call, "after"), *last = NULL;
    const struct grant *grant = &call->request->grant;
    uint64_t count = 0, limit = call_number(call, "limit");
    bool more = false;

    (void)view;
    str_append_text(out, "{\"sites\":[");
    for (size_t i = 0; i < registry->site_count && !more; i++) {
        const struct registry_site *site = &registry->sites[i];

        if (!grant_has_site(grant, site->id) || (after != NULL && strcmp(site->origin, after) <= 0))
            continue;
        if (count == limit) {
            more = true;
            continue;
        }
        if (count++ > 0)
            str_append_char(out, ',');
        site_json_append(out, site, false);
        last = site->origin;
    }
    str_append_text(out, "],\"next\":");
    str_append_json_text(out, more ? last : NULL);
    str_append_text(out, "}\n");
    call_reply_tagged(call, NULL);
    return CATALOGUE_OK;
}

enum handled sites_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

static enum catalogue_status get_work(struct call *call, struct catalogue_view *view,
                                      const struct registry *registry)
{
    struct request *request = call->request;
    int64_t id = call_id(request->path_tail);
    const struct registry_site *site = registry_site_by_id(registry, id);

    (void)view;
    if (site == NULL || !grant_has_site(&request->grant, id)) {
        errors_reply_not_found(&request->reply, "site");
        return CATALOGUE_OK;
    }
    site_json_append(&request->reply.body, site, true);
    str_append_char(&request->reply.body, '\n');
    call_reply_tagged(call, NULL);
    return CATALOGUE_OK;
}

enum handled site_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}

/* ---- POST, PATCH ------------------------------------------------------------------------- */

struct site_write {
    struct call call; /* first */
    int64_t site_id;
    struct url origin;
    char index_url[LOC_MAX_CHARS + 1]; /* of the index that is made with it */
    size_t index_count;                /* of a site that is removed */
};
const size_t site_write_size = sizeof(struct site_write);

/* The site as it is published now; where it cannot be seen (the catalogue went away meanwhile),
 * what is known of it: the write was applied and is not to be denied. */
static void answer_site(struct call *call, unsigned status)
{
    struct site_write *self = (struct site_write *)call;
    struct reply *reply = &call->request->reply;
    const struct registry_site *site = registry_site_by_id(call_registry(call), self->site_id);

    if (site != NULL && !call->repeat.brief)
        site_json_append(&reply->body, site, true);
    else
        str_append_format(&reply->body, "{\"id\":\"%" PRId64 "\"}", self->site_id);
    str_append_char(&reply->body, '\n');
    reply_json(reply, status);
}

static void answer_made(struct call *call)
{
    struct site_write *self = (struct site_write *)call;
    char location[40];

    self->site_id = call->result.id;
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
                      result->detail[0] != '\0' ? result->detail
                                                : "there is a site with this origin already");
    else
        refuse_changed(call);
}

/* What is wrong with the path the catalogue tells. */
static bool choose_index(struct site_write *self, const struct json_field *field)
{
    const char *path = field->text != NULL ? field->text : INDEX_PATH_DEFAULT;

    if (field->off)
        return true;
    if ((size_t)snprintf(self->index_url, sizeof self->index_url, "%s%s", self->origin.text,
                         path) >= sizeof self->index_url) {
        errors_reply_rule(&self->call.request->reply, RULE_INDEX_PATH, "index", NULL);
        return false;
    }
    self->call.change.index_url = self->index_url;
    return true;
}

static void set_fields(struct change *change, const struct json_field *cross,
                       const struct json_field *aliases, const struct json_field *max,
                       const struct json_field *robots)
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
    if (robots->present) {
        change->site.set |= SITE_SET_ROBOTS;
        change->site.robots = robots->text;
        change->site.robots_off = robots->off;
    }
}

/* What is polled follows at once, and not only when it is looked next. */
static void set_check(struct call *call, const struct json_field *check)
{
    if (!check->present)
        return;
    call->change.site.set |= SITE_SET_CHECK;
    call->change.site.check = check->on;
    call->settles_sources = true;
}

enum handled sites_post(void *context, struct request *request)
{
    struct site_write *self = request->state;
    struct json_field fields[] = {
        {.name = "origin", .type = JSON_FIELD_TEXT, .required = true},
        {.name = "cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "host_aliases", .type = JSON_FIELD_TEXTS},
        {.name = "max_indexes", .type = JSON_FIELD_NUMBER, .max = LIMIT_SITE_PAGES_MAX},
        {.name = "robots", .type = JSON_FIELD_OPTION},
        {.name = "index", .type = JSON_FIELD_SWITCH},
        {.name = "check", .type = JSON_FIELD_BOOL},
    };
    enum rule_code code;

    (void)context;
    if (request->grant.site_id != 0) {
        errors_reply_scope(&request->reply);
        return HANDLED;
    }
    if (!call_body(&self->call, fields, 7))
        return HANDLED;
    code = url_parse_origin(fields[0].text, strlen(fields[0].text), &self->origin);
    if (code != RULE_OK) {
        errors_reply_rule(&request->reply, code, "origin", NULL);
        return HANDLED;
    }
    if (!choose_index(self, &fields[5]))
        return HANDLED;
    self->call.change.kind = CHANGE_SITE_ADD;
    self->call.change.site.origin = self->origin.text;
    set_fields(&self->call.change, &fields[1], &fields[2], &fields[3], &fields[4]);
    set_check(&self->call, &fields[6]);
    self->call.refuse = refuse_made;
    return call_write(&self->call, answer_made);
}

/* The site that the path names, and what is reported of it: a removed one is gone when the answer
 * comes. */
static void name_site(struct site_write *self)
{
    const struct site_map *routing = publisher_site_map(self->call.app->publisher);
    const struct registry_site *site;

    self->site_id = call_id(self->call.request->path_tail);
    self->call.change.site_id = self->site_id;
    site = registry_site_by_id(site_map_registry(routing), self->site_id);
    if (site != NULL) {
        self->index_count = site->index_count;
        self->origin = site->origin_url;
    }
    publisher_site_map_done(routing);
}

static void audit_site(struct site_write *self, const char *action)
{
    call_audit(&self->call, action,
               self->origin.len > 0 ? self->origin.text : self->call.request->path_tail);
}

static void answer_changed(struct call *call)
{
    const struct site_fields *site = &call->change.site;

    answer_site(call, 200);
    audit_site((struct site_write *)call, site->set != SITE_SET_FROZEN ? "site-update"
                                          : site->frozen               ? "site-freeze"
                                                                       : "site-thaw");
}

/* A whole list, or what is added to it and taken from it: both at once could mean anything. */
static bool edits_alone(struct call *call, const struct json_field *fields)
{
    for (size_t whole = 0; whole < 2; whole++)
        for (size_t edit = 5 + 2 * whole; edit < 7 + 2 * whole; edit++) {
            if (!fields[whole].present || !fields[edit].present)
                continue;
            reply_problem(&call->request->reply, 422, "conflicting-fields", fields[edit].name,
                          "cannot be combined with the field that replaces the whole list");
            return false;
        }
    return true;
}

enum handled site_patch(void *context, struct request *request)
{
    struct site_write *self = request->state;
    struct json_field fields[] = {
        {.name = "cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "host_aliases", .type = JSON_FIELD_TEXTS},
        {.name = "max_indexes", .type = JSON_FIELD_NUMBER, .max = LIMIT_SITE_PAGES_MAX},
        {.name = "robots", .type = JSON_FIELD_OPTION},
        {.name = "frozen", .type = JSON_FIELD_BOOL},
        {.name = "add_cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "remove_cross_hosts", .type = JSON_FIELD_TEXTS},
        {.name = "add_host_aliases", .type = JSON_FIELD_TEXTS},
        {.name = "remove_host_aliases", .type = JSON_FIELD_TEXTS},
        {.name = "check", .type = JSON_FIELD_BOOL},
    };

    (void)context;
    if (!call_body(&self->call, fields, sizeof fields / sizeof *fields) ||
        !edits_alone(&self->call, fields))
        return HANDLED;
    name_site(self);
    if (fields[4].present) {
        self->call.change.site.set |= SITE_SET_FROZEN;
        self->call.change.site.frozen = fields[4].on;
    }
    self->call.change.kind = CHANGE_SITE_UPDATE;
    self->call.change.site.cross_added = fields[5].texts;
    self->call.change.site.cross_removed = fields[6].texts;
    self->call.change.site.alias_added = fields[7].texts;
    self->call.change.site.alias_removed = fields[8].texts;
    set_fields(&self->call.change, &fields[0], &fields[1], &fields[2], &fields[3]);
    set_check(&self->call, &fields[9]);
    self->call.refuse = refuse_changed;
    return call_write(&self->call, answer_changed);
}

/* ---- DELETE ------------------------------------------------------------------------------ */

static void answer_removed(struct call *call)
{
    struct site_write *self = (struct site_write *)call;
    struct reply *reply = &call->request->reply;

    struct json_removed shown = {
        call->result.removed, self->index_count, call->result.revision, {.rows_total = JSON_NONE}};

    json_open_object(&reply->body, &json_removed, &shown);
    call_append_rows(call);
    str_append_text(&reply->body, "}\n");
    reply_json(reply, 200);
    audit_site(self, "site-remove");
}

enum handled site_delete(void *context, struct request *request)
{
    struct site_write *self = request->state;

    (void)context;
    call_set_options(&self->call);
    name_site(self);
    self->call.change.kind = CHANGE_SITE_REMOVE;
    return call_write(&self->call, answer_removed);
}
