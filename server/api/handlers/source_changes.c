/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* POST, PATCH and DELETE of sources: the writer validates their settings; this file checks what the
 * configuration permits. Only the configuration says where to connect, which certificates to trust
 * and what credentials to use: a token must not turn the server against its own network or disk. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/sources/remote/remote.h"
#include "server/sources/roster.h"
#include "server/sources/sources.h"

struct source_write {
    struct call call; /* first */
    struct str name, pairs;
};
const size_t source_write_size = sizeof(struct source_write);

static void clean_up(struct call *call)
{
    struct source_write *self = (struct source_write *)call;

    str_done(&self->name);
    str_done(&self->pairs);
}

/* ---- answering ----------------------------------------------------------------------------- */

/* Answers with the source as published; if it cannot be read any more, with what is known: the
 * write was applied. */
static void answer_source(struct call *call, unsigned status)
{
    struct str *out = &call->request->reply.body;
    const struct registry *registry = call_registry(call);
    const char *name = change_subject(&call->change);
    const struct source_settings *made = registry_source(registry, name);

    if (made != NULL) {
        source_json_append_made(out, made, registry);
    } else {
        struct json_source_removed shown = {name};
        json_append_object(out, &json_source_removed, &shown);
    }
    str_append_char(out, '\n');
    reply_json(&call->request->reply, status);
}

static void answer_made(struct call *call)
{
    char location[NAME_MAX_BYTES + 20];

    answer_source(call, 201);
    snprintf(location, sizeof location, "/v1/sources/%s", change_subject(&call->change));
    reply_header(&call->request->reply, "Location", location);
    call_audit(call, "source-add", change_subject(&call->change));
}

static void answer_changed(struct call *call)
{
    answer_source(call, 200);
    call_audit(call, "source-update", change_subject(&call->change));
}

static void answer_removed(struct call *call)
{
    call->request->reply.status = 204;
    reply_header(&call->request->reply, "Cache-Control", "no-store");
    call_audit(call, "source-remove", change_subject(&call->change));
}

static void refuse_made(struct call *call)
{
    const struct change_result *result = &call->result;

    if (result->status == CATALOGUE_CONFLICT)
        reply_problem(&call->request->reply, 409, "source-exists", "name", result->detail);
    else
        errors_reply_result(&call->request->reply, result);
}

static void refuse_named(struct call *call)
{
    if (call->result.status == CATALOGUE_NOT_FOUND)
        errors_reply_not_found(&call->request->reply, "source");
    else
        errors_reply_result(&call->request->reply, &call->result);
}

/* ---- the request --------------------------------------------------------------------- */

enum field {
    FIELD_CONNECT = SOURCE_SETTINGS_COUNT,
    FIELD_CA_FILE,
    FIELD_CREDENTIALS_FILE,
    FIELD_NAME, /* this field and the next ones: only for POST */
    FIELD_SITE,
    FIELDS
};

#define as_text                          .type = JSON_FIELD_TEXT
#define as_path                          as_text
#define as_url                           as_text
#define as_option                        .type = JSON_FIELD_TEXT, .nullable = true
#define as_lines                         .type = JSON_FIELD_TEXTS
#define as_pairs                         as_lines
#define as_yes_no                        .type = JSON_FIELD_BOOL
#define as_span                          .type = JSON_FIELD_SECONDS, .max = UINT32_MAX / 1000
#define FIELD(bit, kind, c, member, ...) [SOURCE_IS_##bit] = {.name = #member, as_##kind},

static const struct json_field all_fields[FIELDS] = {
    SOURCE_SETTINGS(FIELD)[FIELD_CONNECT] = {.name = "connect", as_text},
    [FIELD_CA_FILE] = {.name = "ca_file", as_text},
    [FIELD_CREDENTIALS_FILE] = {.name = "credentials_file", as_text},
    [FIELD_NAME] = {.name = "name", as_text, .required = true},
    [FIELD_SITE] = {.name = "site", as_text},
};

/* Returns the list; NULL: empty. `*failed`, with the reply filled: a text is invalid. */
static const char *const *check_lines(struct call *call, const struct json_field *field,
                                      bool *failed)
{
    for (const char *const *at = field->texts; *at != NULL; at++)
        *failed |= **at == '\0' || strchr(*at, '\n') != NULL;
    if (*failed)
        errors_reply_rule(&call->request->reply, RULE_SOURCE, field->name,
                          "must be strings without line breaks, and not empty");
    return *field->texts != NULL ? field->texts : NULL;
}

/* The same as one text, a line for each item. */
static const char *join(struct source_write *self, const struct json_field *field, bool *failed)
{
    const char *const *at = check_lines(&self->call, field, failed);

    for (; !*failed && at != NULL && *at != NULL; at++)
        str_append_format(&self->pairs, "%s%s", self->pairs.len > 0 ? "\n" : "", *at);
    if (self->pairs.failed)
        errors_reply_status(&self->call.request->reply, CATALOGUE_NO_MEMORY);
    *failed |= self->pairs.failed;
    return self->pairs.len > 0 ? str_text(&self->pairs) : NULL;
}

#define value_path(at)   fields[at].text
#define value_url(at)    fields[at].text
#define value_option(at) fields[at].text
#define value_lines(at)  check_lines(&self->call, &fields[at], &failed)
#define value_pairs(at)  join(self, &fields[at], &failed)
#define value_yes_no(at) fields[at].on
#define value_span(at)   (uint32_t) fields[at].number * 1000

/* False, with the reply filled, where a name in a list is invalid. */
static bool set_made(struct source_write *self, const struct json_field *fields)
{
    struct source_settings *made = &self->call.change.source_put.made;
    bool failed = false;

#define X(bit, kind, c, ...)                                                                       \
    if (!failed && fields[SOURCE_IS_##bit].present) {                                              \
        self->call.change.source_put.set |= SOURCE_SET_##bit;                                      \
        made->c = value_##kind(SOURCE_IS_##bit);                                                   \
    }
    SOURCE_SETTINGS(X)
#undef X
    return !failed;
}

/* False, with the reply filled, for a field that the API cannot set. */
static bool is_open(struct call *call, const struct json_field *fields)
{
    for (unsigned i = FIELD_CONNECT; i <= FIELD_CREDENTIALS_FILE; i++) {
        if (!fields[i].present)
            continue;
        reply_problem(&call->request->reply, 403, "only-by-configuration", fields[i].name,
                      "only the configuration file can set this");
        return false;
    }
    return true;
}

/* Whether the configuration allows this token to make sources of this folder for the site of `url`.
 * False, with the reply filled. */
static bool may_read(struct call *call, const char *directory, const char *url)
{
    const struct app_context *app = call->app;
    struct url parsed;
    char origin[LOC_MAX_CHARS + 1] = "";

    if (directory == NULL)
        return true;
    if (url != NULL && url_parse(url, strlen(url), &parsed, NULL) == RULE_OK)
        snprintf(origin, sizeof origin, "%.*s", (int)parsed.origin_len, parsed.text);
    if (app->sources_may_read != NULL &&
        app->sources_may_read(app->source_set, origin, call->request->grant.site_id == 0,
                              directory))
        return true;
    reply_problem(&call->request->reply, 403, "folder-not-opened", "directory",
                  "the configuration does not allow this folder: it is below no source_root of the "
                  "site's section or, for tokens for all sites, of [fetch]");
    return false;
}

/* Whether the configuration has a source of this name. */
static bool is_managed(const struct app_context *app, const char *name)
{
    struct source_list *list = app->sources == NULL ? NULL : sources_hold(app->sources);
    struct roster *roster = app->remotes == NULL ? NULL : roster_hold(app->remotes);
    size_t at = list == NULL ? SIZE_MAX : sources_find(list, name);
    const struct source_settings *remote = roster_find(roster, name);
    bool managed = (at != SIZE_MAX && sources_settings(list, at)->managed) ||
                   (remote != NULL && remote->managed) || sources_at_rest_has(app->at_rest, name);
    roster_release(roster);
    sources_release(list);
    return managed;
}

/* Finds the site that the request names. False, with the reply filled, if none exists. */
static bool find_site(struct call *call, const char *text)
{
    struct url origin;
    enum rule_code code = url_parse_origin(text, strlen(text), &origin);
    const struct page_map *map;
    const struct registry_site *site;

    if (code != RULE_OK) {
        errors_reply_rule(&call->request->reply, code, "site", NULL);
        return false;
    }
    map = publisher_page_map(call->app->publisher);
    site = registry_site_by_origin(page_map_registry(map), origin.text);
    if (site != NULL && grant_has_site(&call->request->grant, site->id))
        call->change.source_put.made.site_id = site->id;
    publisher_page_map_done(map);
    if (call->change.source_put.made.site_id == 0)
        errors_reply_rule(&call->request->reply, RULE_SITE_UNKNOWN, "site", NULL);
    return call->change.source_put.made.site_id != 0;
}

enum handled sources_post(void *context, struct request *request)
{
    struct app_context *app = context;
    struct source_write *self = request->state;
    struct json_field fields[FIELDS];

    memcpy(fields, all_fields, sizeof fields);
    self->call.cleanup = clean_up;
    if (!call_fields(&self->call, fields, FIELDS) || !is_open(&self->call, fields) ||
        !set_made(self, fields) ||
        !may_read(&self->call, fields[SOURCE_IS_DIRECTORY].text, fields[SOURCE_IS_URL].text) ||
        (fields[FIELD_SITE].present && !find_site(&self->call, fields[FIELD_SITE].text)))
        return HANDLED;
    self->call.change.kind = CHANGE_SOURCE_ADD;
    self->call.change.source_put.made.name = fields[FIELD_NAME].text;
    if (is_managed(app, fields[FIELD_NAME].text)) {
        reply_problem(&request->reply, 409, "source-exists", "name",
                      "the configuration file has a source of this name");
        return HANDLED;
    }
    /* Its entries would be those of the token. */
    if (!auth_may_own(app, request, "name", fields[FIELD_NAME].text))
        return HANDLED;
    self->call.settles_sources = true;
    self->call.refuse = refuse_made;
    return call_write(&self->call, answer_made);
}

/* Reads the name of the source from the path. False, with the reply filled, if it is the
 * configuration's; a token that may not see it gets the answer for a source that does not exist. */
static bool name_source(struct source_write *self)
{
    struct request *request = self->call.request;

    self->call.cleanup = clean_up;
    str_append_text(&self->name, request->path_tail);
    self->call.settles_sources = true;
    self->call.refuse = refuse_named;
    if (self->name.failed) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return false;
    }
    if (!is_managed(self->call.app, request->path_tail))
        return true;
    if (request->grant.site_id != 0)
        errors_reply_not_found(&request->reply, "source");
    else
        reply_problem(
            &request->reply, 409, "managed-by-config", NULL,
            "is read-only here: it is managed by the configuration file; change it there");
    return false;
}

/* Reads the present directory and URL of the source's folder; "" if it has none that the token
 * sees. */
static void read_folder(struct call *call, struct str *directory, struct str *url)
{
    const struct page_map *map = publisher_page_map(call->app->publisher);
    const struct source_settings *made =
        registry_source(page_map_registry(map), call->request->path_tail);

    if (made != NULL && made->directory != NULL &&
        grant_has_site(&call->request->grant, made->site_id)) {
        str_append_text(directory, made->directory);
        str_append_text(url, made->url);
    }
    publisher_page_map_done(map);
}

/* Whether the configuration allows this token to read the source's folder after the change. A token
 * for all sites may change a source whose folder is no longer allowed, except the folder itself.
 * False, with the reply filled. */
static bool may_change(struct call *call, const struct json_field *fields)
{
    const struct json_field *directory = &fields[SOURCE_IS_DIRECTORY],
                            *url = &fields[SOURCE_IS_URL];
    struct str old_directory = STR_INIT, old_url = STR_INIT;
    bool may;

    if (!directory->present && call->request->grant.site_id == 0)
        return true;
    read_folder(call, &old_directory, &old_url);
    may = !old_directory.failed && !old_url.failed;
    if (!may)
        errors_reply_status(&call->request->reply, CATALOGUE_NO_MEMORY);
    else if (directory->present || old_directory.len > 0)
        may = may_read(call, directory->present ? directory->text : str_text(&old_directory),
                       url->present ? url->text : str_text(&old_url));
    str_done(&old_directory);
    str_done(&old_url);
    return may;
}

enum handled source_patch(void *context, struct request *request)
{
    struct source_write *self = request->state;
    struct json_field fields[FIELDS];

    (void)context;
    memcpy(fields, all_fields, sizeof fields);
    if (!name_source(self) || !call_fields(&self->call, fields, FIELD_NAME) ||
        !is_open(&self->call, fields) || !set_made(self, fields) ||
        !may_change(&self->call, fields))
        return HANDLED;
    self->call.change.kind = CHANGE_SOURCE_UPDATE;
    self->call.change.source_put.made.name = str_text(&self->name);
    return call_write(&self->call, answer_changed);
}

enum handled source_delete(void *context, struct request *request)
{
    struct source_write *self = request->state;

    (void)context;
    if (!name_source(self))
        return HANDLED;
    self->call.change.kind = CHANGE_SOURCE_REMOVE;
    self->call.change.source_remove.name = str_text(&self->name);
    return call_write(&self->call, answer_removed);
}
