/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/sites: sites and their settings. */
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

/* The cursor is the origin of the last site listed: the list is in the order of origins. */
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
    size_t index_count;                /* copied, for a site that is removed */
};
const size_t site_write_size = sizeof(struct site_write);

/* Answers with the site as it is published now. If it cannot be read (the catalogue became
 * unavailable meanwhile), with what is known: the write was applied, so the answer must not be an
 * error. */
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

    /* The name that the API has for the field. */
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
                      result->detail[0] != '\0'
                          ? result->detail
                          : "conflict: a site with this origin already exists");
    else
        refuse_changed(call);
}

/* The catalogue reports what is wrong with the path. */
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
    self->call.change.site_add.index_url = self->index_url;
    return true;
}

static void set_fields(struct call *call, struct site_fields *site,
                       const struct body_site_settings *body)
{
    site->set |= (body->cross_hosts.present ? SITE_SET_CROSS_HOSTS : 0) |
                 (body->host_aliases.present ? SITE_SET_ALIAS_HOSTS : 0) |
                 (body->max_indexes.present ? SITE_SET_MAX_PAGES : 0) |
                 (body->robots.present ? SITE_SET_ROBOTS : 0) |
                 (body->check.present ? SITE_SET_CHECK : 0);
    site->cross_hosts = body->cross_hosts.texts;
    site->alias_hosts = body->host_aliases.texts;
    site->max_pages = (uint32_t)body->max_indexes.number;
    site->robots = body->robots.text;
    site->robots_off = body->robots.off;
    site->check = body->check.on;
    call->settles_sources = body->check.present; /* the set of polled sitemaps changes at once */
}

enum handled sites_post(void *context, struct request *request)
{
    struct site_write *self = request->state;
    struct body_new_site body;
    enum rule_code code;

    (void)context;
    if (request->grant.site_id != 0) {
        errors_reply_scope(&request->reply);
        return HANDLED;
    }
    if (!call_body(&self->call, &body_new_site, &body))
        return HANDLED;
    code = url_parse_origin(body.origin.text, strlen(body.origin.text), &self->origin);
    if (code != RULE_OK) {
        errors_reply_rule(&request->reply, code, "origin", NULL);
        return HANDLED;
    }
    if (!choose_index(self, &body.index))
        return HANDLED;
    self->call.change.kind = CHANGE_SITE_ADD;
    self->call.change.site_add.origin = self->origin.text;
    set_fields(&self->call, &self->call.change.site_add.fields, &body.site_settings);
    self->call.refuse = refuse_made;
    return call_write(&self->call, answer_made);
}

/* Reads the site that the path names, and keeps what the answer needs: a removed site no longer
 * exists when the answer is made. */
static void name_site(struct site_write *self)
{
    const struct page_map *routing = publisher_page_map(self->call.app->publisher);
    const struct registry_site *site;

    self->site_id = call_id(self->call.request->path_tail);
    site = registry_site_by_id(page_map_registry(routing), self->site_id);
    if (site != NULL) {
        self->index_count = site->index_count;
        self->origin = site->origin_url;
    }
    publisher_page_map_done(routing);
}

static void audit_site(struct site_write *self, const char *action)
{
    call_audit(&self->call, action,
               self->origin.len > 0 ? self->origin.text : self->call.request->path_tail);
}

static void answer_changed(struct call *call)
{
    const struct site_fields *site = &call->change.site_update.fields;

    answer_site(call, 200);
    audit_site((struct site_write *)call, site->set != SITE_SET_FROZEN ? "site-update"
                                          : site->frozen               ? "site-freeze"
                                                                       : "site-thaw");
}

/* A request replaces a whole list, or adds to it and removes from it. Both at once would be
 * ambiguous. */
static bool edits_alone(struct call *call, const struct json_field *whole,
                        const struct json_field *add, const struct json_field *remove)
{
    const struct json_field *edit = add->present ? add : remove;

    if (!whole->present || !edit->present)
        return true;
    reply_problem(&call->request->reply, 422, "conflicting-fields", edit->name,
                  "cannot be combined with the field that replaces the whole list");
    return false;
}

static bool freezes_once(struct call *call, const struct body_site_change *body)
{
    if (!body->frozen.present || !body->leaving.present)
        return true;
    reply_problem(&call->request->reply, 422, "conflicting-fields", "leaving",
                  "cannot be combined with frozen, which it also sets");
    return false;
}

enum handled site_patch(void *context, struct request *request)
{
    struct site_write *self = request->state;
    struct body_site_change body;
    struct site_fields *site = &self->call.change.site_update.fields;

    (void)context;
    if (!call_body(&self->call, &body_site_change, &body) || !freezes_once(&self->call, &body) ||
        !edits_alone(&self->call, &body.site_settings.cross_hosts, &body.add_cross_hosts,
                     &body.remove_cross_hosts) ||
        !edits_alone(&self->call, &body.site_settings.host_aliases, &body.add_host_aliases,
                     &body.remove_host_aliases))
        return HANDLED;
    name_site(self);
    self->call.change.kind = CHANGE_SITE_UPDATE;
    self->call.change.site_update.site_id = self->site_id;
    site->set |= body.frozen.present || body.leaving.present ? SITE_SET_FROZEN : 0;
    site->leaves = body.leaving.on;
    site->frozen = body.frozen.on || body.leaving.on;
    site->cross_added = body.add_cross_hosts.texts;
    site->cross_removed = body.remove_cross_hosts.texts;
    site->alias_added = body.add_host_aliases.texts;
    site->alias_removed = body.remove_host_aliases.texts;
    set_fields(&self->call, site, &body.site_settings);
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
    self->call.settles_sources = true; /* sources of a site that moved are removed, too */
    self->call.change.site_remove.site_id = self->site_id;
    return call_write(&self->call, answer_removed);
}
