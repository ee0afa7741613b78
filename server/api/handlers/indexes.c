/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* /v1/indexes and /v1/urlsets: a sitemap index of a site, or a urlset that is a sitemap of it, with
 * its pages. They differ by the call's noun, and by the additional members of a urlset. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api/call.h"
#include "server/api/copy.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/rules/page/extension.h"
#include "server/rules/scope.h"
#include "server/rules/url.h"

/* Whether the call is about indexes, not urlsets. */
static bool is_index(const struct call *call)
{
    return call_noun(call)->kind == LIST_INDEX;
}

/* A list, and the data for its members. */
struct shown_list {
    struct call *call;
    const struct registry_site *site;
    const struct registry_index *list;
    const struct page_record *pages;
    size_t page_count;
};

/* A token with a prefix does not see totals. */
static uint64_t shown_count(const struct call *call, uint64_t count)
{
    return grant_has_whole(&call->request->grant) ? count : JSON_NONE;
}

static void write_pages(struct str *out, const void *context)
{
    const struct shown_list *of = context;
    struct publisher *publisher = of->call->app->publisher;

    for (size_t i = 0; i < of->page_count; i++) {
        const struct page_record *page = &of->pages[i];
        char path[PAGE_PATH_SIZE], url[LOC_MAX_CHARS + 1];
        char etag[RESOURCE_ETAG_SIZE], etag_gz[RESOURCE_ETAG_SIZE];
        bool hot = publisher_page_etag(publisher, page->index_id, page->number, false, etag);
        bool hot_gz = publisher_page_etag(publisher, page->index_id, page->number, true, etag_gz);
        struct json_page shown = {.number = page->number,
                                  .url = url,
                                  .entries = shown_count(of->call, page->entries),
                                  .bytes = shown_count(of->call, page->bytes),
                                  .changed_at = page->changed_at,
                                  .etag = hot ? etag : NULL,
                                  .etag_gz = hot_gz ? etag_gz : NULL};

        scope_page_path(of->list->path, of->list->page_pattern, page->number, false, path);
        snprintf(url, sizeof url, "%s%s", of->site->origin, path);
        if (i > 0)
            str_append_char(out, ',');
        json_append_object(out, &json_page, &shown);
    }
}

#define TEXT_NUMBER(name)
#define TEXT_AGE(name)                char name[24];
#define TEXT(kind, bit, c, name, ...) TEXT_##kind(name)
#define SHOW_NUMBER(c, name)          shown.name = urlset->c;
#define SHOW_AGE(c, name)                                                                          \
    grant_write_span(urlset->c, texts->name);                                                      \
    shown.name = urlset->c > 0 ? texts->name : NULL;
#define SHOW(kind, bit, c, name, ...) SHOW_##kind(c, name)
#define OMIT_NUMBER(name)             .name = JSON_NONE,
#define OMIT_AGE(name)
#define OMIT(kind, bit, c, name, ...) OMIT_##kind(name)

/* The data for the members that only a urlset has. */
struct urlset_texts {
    char index[LOC_MAX_CHARS + 1];
    const char *with[EXTENSION_COUNT];
    URLSET_SETTINGS(TEXT)
};

static struct json_urlset_state shown_urlset(const struct registry *registry,
                                             const struct registry_site *site,
                                             const struct registry_index *urlset,
                                             struct urlset_texts *texts)
{
    const struct registry_index *index = registry_index_by_id(registry, urlset->of_index);
    struct json_urlset_state shown = {.index = index != NULL ? texts->index : NULL,
                                      .with = {.at = texts->with}};

    if (index != NULL)
        snprintf(texts->index, sizeof texts->index, "%s%s", site->origin, index->path);
    for (size_t i = 0; i < EXTENSION_COUNT; i++)
        if ((urlset->with & extensions[i].bit) != 0)
            texts->with[shown.with.count++] = extensions[i].word;
    URLSET_SETTINGS(SHOW)
    return shown;
}

/* Reads the records of the pages, and puts their sums into `tail`. */
static enum catalogue_status read_pages(struct catalogue_view *view,
                                        const struct registry_index *index,
                                        struct page_record *pages, struct json_list_tail *tail)
{
    enum catalogue_status status = CATALOGUE_OK;

    tail->entries = tail->bytes = 0;
    for (size_t i = 0; i < index->page_count && status == CATALOGUE_OK; i++) {
        status = catalogue_view_page(view, index->id, index->pages[i], &pages[i]);
        if (status != CATALOGUE_OK)
            break;
        tail->entries += pages[i].entries;
        tail->bytes += pages[i].bytes;
        if (pages[i].changed_at > tail->changed_at)
            tail->changed_at = pages[i].changed_at;
    }
    return status;
}

/* Appends the object to the reply's body. `view` NULL: an index just made, which has no pages. On a
 * status that is not OK the body is not to be used. */
static enum catalogue_status index_json_append(struct call *call, struct catalogue_view *view,
                                               const struct registry *registry,
                                               const struct registry_site *site,
                                               const struct registry_index *index)
{
    struct str *out = &call->request->reply.body;
    size_t page_count = view != NULL ? index->page_count : 0;
    struct page_record *pages = calloc(page_count + 1, sizeof *pages);
    struct shown_list of = {call, site, index, pages, page_count};
    enum freeze frozen = registry_freeze(registry, index);
    char id[24], url[LOC_MAX_CHARS + 1], state[INDEX_STATE_SIZE];
    enum catalogue_status status = pages != NULL ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
    struct json_list_tail tail = {.frozen = frozen != 0,
                                  .frozen_by = freeze_word(frozen),
                                  .state = view != NULL ? state : NULL,
                                  .pages = {write_pages, &of}};
    struct json_list_head head = {id, url, site->origin, index->page_pattern};

    snprintf(id, sizeof id, "%" PRId64, index->id);
    snprintf(url, sizeof url, "%s%s", site->origin, index->path);
    if (status == CATALOGUE_OK && view != NULL)
        status = catalogue_view_index_state(view, index->id, state);
    if (status == CATALOGUE_OK && view != NULL)
        status = read_pages(view, index, pages, &tail);
    tail.entries = shown_count(call, tail.entries);
    tail.bytes = shown_count(call, tail.bytes);
    if (status == CATALOGUE_OK && index->kind == LIST_URLSET) {
        struct urlset_texts texts;
        struct json_urlset shown = {head, shown_urlset(registry, site, index, &texts), tail};
        json_append_object(out, &json_urlset, &shown);
    } else if (status == CATALOGUE_OK) {
        struct json_index shown = {head, tail};
        json_append_object(out, &json_index, &shown);
    }
    free(pages);
    return status;
}

/* ---- GET --------------------------------------------------------------------------------- */

/* Whether the index comes after `after`, by origin, then path: the order of the registry. */
static bool is_behind(const struct url *after, const struct registry_site *site,
                      const struct registry_index *index)
{
    int order;

    if (after->len == 0)
        return true;
    order = strncmp(site->origin, after->text, after->origin_len);
    if (order == 0 && site->origin[after->origin_len] != '\0')
        order = 1;
    return order > 0 || (order == 0 && strcmp(index->path, after->text + after->origin_len) > 0);
}

/* Appends the lists after `after`, the URL of the last one listed before; text "": from the first.
 */
static enum catalogue_status append_list(struct call *call, struct catalogue_view *view,
                                         const struct registry *registry,
                                         const struct registry_site *only, const struct url *after,
                                         uint64_t limit)
{
    struct str *out = &call->request->reply.body;
    bool urlsets = call_noun(call)->kind == LIST_URLSET;
    const struct registry_site *last_site = NULL;
    const struct registry_index *last = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    uint64_t count = 0;
    bool more = false;

    str_append_format(out, "{\"%s\":[", call_noun(call)->lists);
    for (size_t i = 0; i < registry->site_count && !more; i++) {
        const struct registry_site *site = &registry->sites[i];
        const struct registry_index *lists = urlsets ? site->urlsets : site->indexes;
        size_t list_count = urlsets ? site->urlset_count : site->index_count;

        if (only != NULL && site != only)
            continue;
        for (size_t j = 0; j < list_count && status == CATALOGUE_OK; j++) {
            if (!is_behind(after, site, &lists[j]))
                continue;
            if (count == limit) {
                more = true;
                break;
            }
            if (count++ > 0)
                str_append_char(out, ',');
            last_site = site;
            last = &lists[j];
            status = index_json_append(call, view, registry, site, last);
        }
    }
    str_append_text(out, "],\"next\":");
    assert(!more || last_site != NULL); /* a limit is 1 at least */
    if (more)
        json_append_url(out, last_site->origin, last->path);
    else
        str_append_text(out, "null");
    str_append_text(out, "}\n");
    return status;
}

static enum catalogue_status list_work(struct call *call, struct catalogue_view *view,
                                       const struct registry *registry)
{
    const char *text = call_parameter(call, "after");
    const struct registry_site *only;
    struct url after = {.len = 0};
    enum catalogue_status status;

    if (text != NULL && url_parse(text, strlen(text), &after, NULL) != RULE_OK) {
        reply_problem(&call->request->reply, 400, "malformed-cursor", "after",
                      "is not the `next` of an earlier list");
        return CATALOGUE_OK;
    }
    if (!call_site(call, registry, &only))
        return CATALOGUE_OK;
    status = append_list(call, view, registry, only, &after, call_number(call, "limit"));
    if (status == CATALOGUE_OK)
        call_reply_tagged(call, NULL);
    return status;
}

enum handled indexes_list(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, list_work);
}

static enum catalogue_status get_work(struct call *call, struct catalogue_view *view,
                                      const struct registry *registry)
{
    struct request *request = call->request;
    const struct noun *noun = call_noun(call);
    const struct registry_index *index = registry_list_by_id(registry, call_id(request->path_tail));
    char state[INDEX_STATE_SIZE];
    enum catalogue_status status;

    if (index == NULL || index->kind != noun->kind ||
        !grant_has_site(&request->grant, index->site_id)) {
        errors_reply_not_found(&request->reply, noun->list);
        return CATALOGUE_OK;
    }
    status = index_json_append(call, view, registry, registry_site_by_id(registry, index->site_id),
                               index);
    str_append_char(&request->reply.body, '\n');
    if (status == CATALOGUE_OK)
        status = catalogue_view_index_state(view, index->id, state);
    if (status == CATALOGUE_OK)
        call_reply_tagged(call, state);
    return status;
}

enum handled index_get(void *context, struct request *request)
{
    (void)context;
    return call_read(request->state, get_work);
}

/* ---- GET: a page ------------------------------------------------------------------------- */

/* GET /v1/render: the page's XML as it would be served. */
static enum catalogue_status render_work(struct call *call, struct catalogue_view *view,
                                         const struct registry *registry)
{
    struct request *request = call->request;
    const char *urlset = call_parameter(call, "urlset");
    const struct registry_index *index =
        registry_list_by_name(registry, urlset != NULL ? urlset : call_parameter(call, "index"),
                              urlset != NULL ? LIST_URLSET : LIST_INDEX, NULL);
    struct str xml = STR_INIT;
    enum catalogue_status status;
    uint32_t number = (uint32_t)call_number(call, "page");

    if (index == NULL || !grant_has_site(&request->grant, index->site_id)) {
        enum rule_code unknown = urlset != NULL ? RULE_URLSET_UNKNOWN : RULE_INDEX_UNKNOWN;
        reply_problem(&request->reply, 404, rule_code_word(unknown),
                      urlset != NULL ? "urlset" : "index", rule_code_sentence(unknown));
        return CATALOGUE_OK;
    }
    /* A page shows all locs of its index, so a prefix would not limit it. */
    if (!grant_has_whole(&request->grant)) {
        reply_problem(&request->reply, 403, "needs-token-of-whole-site", NULL,
                      "permission denied: a page needs a token for a whole site, not limited to a "
                      "prefix");
        return CATALOGUE_OK;
    }
    status = publish_render_page(view, index->id, number,
                                 publisher_page_style(call->app->publisher), &xml);
    if (status == CATALOGUE_NOT_FOUND) {
        reply_problem(&request->reply, 404, "page-empty", NULL, "the page has no entries");
        status = CATALOGUE_OK;
    } else if (status == CATALOGUE_OK &&
               !copy_write((struct copy *)call, str_text(&xml), xml.len)) {
        status = CATALOGUE_UNAVAILABLE;
    }
    str_done(&xml);
    return status;
}

enum handled render_get(void *context, struct request *request)
{
    struct copy *copy = request->state;

    (void)context;
    if ((call_parameter(&copy->call, "index") != NULL) !=
        (call_parameter(&copy->call, "urlset") != NULL))
        return copy_run(copy, "application/xml", render_work);
    reply_problem(&request->reply, 400, "missing-parameter", "index",
                  "name the index of the page with ?index=URL, or its urlset with ?urlset=URL");
    return HANDLED;
}

/* ---- POST -------------------------------------------------------------------------------- */

struct index_write {
    struct call call;            /* first */
    char url[LOC_MAX_CHARS + 1]; /* "": not known */
};
const size_t index_write_size = sizeof(struct index_write);

static void answer_made(struct call *call)
{
    struct index_write *self = (struct index_write *)call;
    struct reply *reply = &call->request->reply;
    const struct registry *registry = call_registry(call);
    const struct registry_index *index = registry_list_by_id(registry, call->result.id);
    char location[40];

    if (index != NULL)
        index_json_append(call, NULL, registry, registry_site_by_id(registry, index->site_id),
                          index);
    else
        str_append_format(&reply->body, "{\"id\":\"%" PRId64 "\"}", call->result.id);
    str_append_char(&reply->body, '\n');
    reply_json(reply, 201);
    snprintf(location, sizeof location, "%s%" PRId64, call_noun(call)->lists_path, call->result.id);
    reply_header(reply, "Location", location);
    call_audit(call, is_index(call) ? "index-add" : "urlset-add", self->url);
}

static void refuse_made(struct call *call)
{
    struct reply *reply = &call->request->reply;
    const struct change_result *result = &call->result;

    if (result->status == CATALOGUE_CONFLICT && !result->managed)
        reply_problem(reply, 409, is_index(call) ? "index-exists" : "urlset-exists", "url",
                      result->detail[0] != '\0'
                          ? result->detail
                          : "conflict: an index or urlset with this URL already exists");
    else
        errors_reply_result(reply, result);
}

/* A path is enough while there is one site. Which one is looked up in the published registry; the
 * catalogue then validates the URL. */
static bool read_url(struct index_write *self, const char *text)
{
    const struct page_map *routing;
    const struct registry *registry;
    bool one;

    if (text[0] != '/') {
        snprintf(self->url, sizeof self->url, "%s", text);
        return true;
    }
    routing = publisher_page_map(self->call.app->publisher);
    registry = page_map_registry(routing);
    one = registry->site_count == 1;
    if (one)
        snprintf(self->url, sizeof self->url, "%s%s", registry->sites[0].origin, text);
    publisher_page_map_done(routing);
    if (!one)
        errors_reply_rule(&self->call.request->reply, RULE_SITE_UNKNOWN, "url",
                          "a path is only valid with exactly one site; give the full URL");
    return one;
}

/* False, with the reply filled, where an extension is unknown. */
static bool read_with(struct call *call, const struct json_field *with, unsigned *set)
{
    for (size_t i = 0; with->present && with->texts[i] != NULL; i++) {
        unsigned bit = extension_named(with->texts[i]);

        if (bit == 0) {
            errors_reply_rule(&call->request->reply, RULE_EXTENSION_UNKNOWN, "with", NULL);
            return false;
        }
        *set |= bit;
    }
    return true;
}

/* Reads a duration. False, with the reply filled, if it is invalid. */
static bool read_age(struct call *call, const struct json_field *field, const char *name,
                     int64_t *out)
{
    if (field->text == NULL || grant_read_span(field->text, out))
        return true;
    errors_reply_rule(&call->request->reply, RULE_FIELD_TYPE, name,
                      "must be a duration such as 2d, 12h or 90m, or null");
    return false;
}

#define READ_NUMBER(c, name) urlset->c = (uint32_t)body->name.number;
#define READ_AGE(c, name)                                                                          \
    if (!read_age(call, &body->name, #name, &urlset->c))                                           \
        return false;
#define READ(kind, bit, c, name, ...)                                                              \
    READ_##kind(c, name) urlset->set |= body->name.present ? URLSET_SET_##bit : 0;
#define NAMED(kind, bit, c, name, ...) ", " #name

/* Reads the settings of a urlset. False, with the reply filled, if one is invalid. */
static bool read_urlset(struct call *call, const struct body_urlset_settings *body,
                        struct urlset_fields *urlset)
{
    urlset->index = body->index.text;
    urlset->set = body->index.present ? URLSET_SET_INDEX : 0;
    URLSET_SETTINGS(READ)
    return true;
}

enum handled indexes_post(void *context, struct request *request)
{
    struct index_write *self = request->state;
    bool index = is_index(&self->call);
    struct change *change = &self->call.change;
    struct body_new_urlset body = {.new_index = {.url = {.text = NULL}}};
    struct urlset_fields urlset = {.set = 0};
    const char *url, *pattern;

    (void)context;
    if (!(index ? call_body(&self->call, &body_new_index, &body.new_index)
                : call_body(&self->call, &body_new_urlset, &body)))
        return HANDLED;
    url = body.new_index.url.text;
    pattern = body.new_index.page_pattern.text;
    if (strlen(url) > INDEX_PATH_MAX_CHARS + HOST_MAX_CHARS + 16) {
        errors_reply_rule(&request->reply, RULE_INDEX_PATH, "url", "is too long for an index");
        return HANDLED;
    }
    if (!read_url(self, url) ||
        (!index && (!read_with(&self->call, &body.with, &urlset.with) ||
                    !read_urlset(&self->call, &body.urlset_settings, &urlset))))
        return HANDLED;
    change->kind = index ? CHANGE_INDEX_ADD : CHANGE_URLSET_ADD;
    if (index)
        change->index_add = (struct change_index_add){self->url, pattern};
    else
        change->urlset_add = (struct change_urlset_add){self->url, pattern, urlset};
    self->call.refuse = refuse_made;
    return call_write(&self->call, answer_made);
}

/* The id in the path. Also keeps the URL for the log: when the answer is made, the list may have
 * been removed. */
static int64_t name_index(struct index_write *self)
{
    const struct page_map *routing = publisher_page_map(self->call.app->publisher);
    const struct registry *registry = page_map_registry(routing);
    int64_t id = call_id(self->call.request->path_tail);
    const struct registry_index *index = registry_list_by_id(registry, id);

    if (index != NULL)
        snprintf(self->url, sizeof self->url, "%s%s",
                 registry_site_by_id(registry, index->site_id)->origin, index->path);
    publisher_page_map_done(routing);
    return id;
}

/* ---- PATCH ------------------------------------------------------------------------------- */

static void answer_changed(struct call *call)
{
    struct index_write *self = (struct index_write *)call;
    const struct registry *registry = call_registry(call);
    int64_t number = call->change.index_freeze.index_id;
    const struct registry_index *index = registry_list_by_id(registry, number);

    char id[24];
    struct json_index_state shown = {id, registry_is_frozen(registry, index)};

    snprintf(id, sizeof id, "%" PRId64, number);
    json_append_object(&call->request->reply.body, &json_index_state, &shown);
    str_append_char(&call->request->reply.body, '\n');
    reply_json(&call->request->reply, 200);
    call_audit(call, call->change.index_freeze.frozen ? "index-freeze" : "index-thaw",
               self->url[0] != '\0' ? self->url : call->request->path_tail);
}

static void answer_urlset_changed(struct call *call)
{
    struct index_write *self = (struct index_write *)call;
    const struct registry *registry = call_registry(call);
    const struct change *change = &call->change;
    bool updated = change->kind == CHANGE_URLSET_UPDATE;
    int64_t number = updated ? change->urlset_update.index_id : change->index_freeze.index_id;
    const struct registry_index *urlset = registry_list_by_id(registry, number);
    struct str *out = &call->request->reply.body;
    struct urlset_texts texts;
    char id[24];
    struct json_urlset_changed shown = {.id = id,
                                        .urlset_state = {URLSET_SETTINGS(OMIT)},
                                        .removed = call->result.removed,
                                        .revision = call->result.revision,
                                        .dry_run_rows = {.rows_total = JSON_NONE}};

    snprintf(id, sizeof id, "%" PRId64, number);
    if (urlset != NULL) { /* else the urlset has been removed meanwhile */
        const struct registry_site *site = registry_site_by_id(registry, urlset->site_id);

        shown.frozen = registry_is_frozen(registry, urlset);
        shown.urlset_state = shown_urlset(registry, site, urlset, &texts);
    }
    json_open_object(out, &json_urlset_changed, &shown);
    call_append_rows(call);
    str_append_text(out, "}\n");
    reply_json(&call->request->reply, 200);
    call_audit(call,
               updated                       ? "urlset-change"
               : change->index_freeze.frozen ? "urlset-freeze"
                                             : "urlset-thaw",
               self->url[0] != '\0' ? self->url : call->request->path_tail);
}

/* PATCH of a urlset: `frozen` alone, or its settings. */
static enum handled patch_urlset(struct index_write *self)
{
    struct call *call = &self->call;
    struct body_urlset_change body;
    const struct json_field *frozen = &body.frozen;
    struct urlset_fields urlset = {.set = 0};
    int64_t id;

    call_set_options(call);
    if (!call_body(call, &body_urlset_change, &body) ||
        !read_urlset(call, &body.urlset_settings, &urlset))
        return HANDLED;
    if (frozen->present == (urlset.set != 0)) {
        errors_reply_rule(
            &call->request->reply, RULE_FIELD_MISSING, NULL,
            "nothing to change: give frozen alone, or any of index" URLSET_SETTINGS(NAMED));
        return HANDLED;
    }
    id = name_index(self);
    if (frozen->present && call->change.dry_run) {
        errors_reply_rule(&call->request->reply, RULE_FIELD_UNKNOWN, "frozen",
                          "cannot be combined with dry_run");
        return HANDLED;
    }
    call->change.kind = frozen->present ? CHANGE_INDEX_FREEZE : CHANGE_URLSET_UPDATE;
    if (frozen->present)
        call->change.index_freeze = (struct change_index_freeze){id, frozen->on};
    else
        call->change.urlset_update = (struct change_urlset_update){id, urlset};
    return call_write(call, answer_urlset_changed);
}

enum handled index_patch(void *context, struct request *request)
{
    struct index_write *self = request->state;
    struct body_index_change body;

    (void)context;
    if (!is_index(&self->call))
        return patch_urlset(self);
    if (!call_body(&self->call, &body_index_change, &body))
        return HANDLED;
    self->call.change.kind = CHANGE_INDEX_FREEZE;
    self->call.change.index_freeze = (struct change_index_freeze){name_index(self), body.frozen.on};
    return call_write(&self->call, answer_changed);
}

/* ---- DELETE ------------------------------------------------------------------------------ */

static void answer_removed(struct call *call)
{
    const struct index_write *self = (const struct index_write *)call;
    struct reply *reply = &call->request->reply;

    const struct change_result *result = &call->result;
    struct json_removed entries = {result->removed, 1, result->revision, {.rows_total = JSON_NONE}};
    struct json_removed_urlset rows = {result->removed, 1, result->revision, entries.dry_run_rows};

    if (is_index(call))
        json_open_object(&reply->body, &json_removed, &entries);
    else
        json_open_object(&reply->body, &json_removed_urlset, &rows);
    call_append_rows(call);
    str_append_text(&reply->body, "}\n");
    reply_json(reply, 200);
    call_audit(call, is_index(call) ? "index-remove" : "urlset-remove",
               self->url[0] != '\0' ? self->url : call->request->path_tail);
}

enum handled index_delete(void *context, struct request *request)
{
    struct index_write *self = request->state;

    (void)context;
    call_set_options(&self->call);
    self->call.change.kind = CHANGE_INDEX_REMOVE;
    self->call.change.index_remove.index_id = name_index(self);
    return call_write(&self->call, answer_removed);
}
