/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* GET /v1/changes: the pages that changed since a revision, with long polls. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/shared.h"
#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/api/json.h"
#include "server/api/objects.h"
#include "server/base/clock.h"
#include "server/base/map.h"

/* The changes since a revision, read from a view: pages, and sites whose robots.txt may have
 * changed with them. */

#define CHANGES_MAX_PAGES                                                                          \
    1000u /* pages of a reply; may be exceeded, since a revision is never split */

struct changed_page {
    struct page_record page;
    char *url;     /* owned */
    bool outdated; /* a later page of the list has the same URL */
};

struct changed_site {
    char *origin;       /* owned */
    int64_t changed_at; /* of its newest page change in the list */
};

struct changes {
    struct call call; /* first */
    /* the revision that the client has seen; epoch "": none */
    char epoch[33];
    uint64_t since, since_registry;
    int64_t deadline_ms; /* monotonic */
    bool waits;          /* the request has one of the places for long polls */
    /* the newest revision */
    struct catalogue_revisions now;
    uint64_t next, next_registry; /* changes are listed up to here */
    bool more;                    /* there are pages after it */
    size_t page_count, page_capacity;
    struct changed_page *pages;
    size_t site_count, site_capacity;
    struct changed_site *sites; /* whose set of pages may have changed: their robots.txt */
    struct map by_origin;       /* places in `sites` */
    bool failed;                /* out of memory */
};
const size_t changes_size = sizeof(struct changes);

static void forget(struct changes *self)
{
    for (size_t i = 0; i < self->page_count; i++)
        free(self->pages[i].url);
    for (size_t i = 0; i < self->site_count; i++)
        free(self->sites[i].origin);
    self->page_count = self->site_count = 0;
    map_done(&self->by_origin);
    self->more = false;
}

static void changes_list_done(struct changes *self)
{
    forget(self);
    free(self->pages);
    free(self->sites);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool grow(void **items, size_t count, size_t *capacity, size_t size)
{
    size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *grown;

    if (count < *capacity)
        return true;
    grown = reallocarray(*items, wanted, size);
    if (grown == NULL)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

static void record_site(struct changes *self, const char *url, int64_t changed_at)
{
    const char *host = strstr(url, "://");
    size_t len = host == NULL ? strlen(url) : (size_t)(host + 3 - url) + strcspn(host + 3, "/");
    /* Equal hashes of origins need no defence: only tokens for all sites create sites. */
    uint32_t hash = map_hash(MAP_HASH_BASIS, url, len), at;
    char *origin;

    for (struct map_probe p = map_probe(&self->by_origin, hash); map_next(&p, &at);) {
        struct changed_site *site = &self->sites[at];
        if (strncmp(site->origin, url, len) != 0 || site->origin[len] != '\0')
            continue;
        if (changed_at > site->changed_at)
            site->changed_at = changed_at;
        return;
    }
    origin = strndup(url, len);
    if (origin == NULL ||
        !grow((void **)&self->sites, self->site_count, &self->site_capacity, sizeof *self->sites) ||
        !map_add(&self->by_origin, hash, (uint32_t)self->site_count)) {
        free(origin);
        self->failed = true;
        return;
    }
    self->sites[self->site_count++] = (struct changed_site){origin, changed_at};
}

static void record_page(struct changes *self, const char *url, const struct page_record *page)
{
    char *copy = strdup(url);

    if (copy == NULL ||
        !grow((void **)&self->pages, self->page_count, &self->page_capacity, sizeof *self->pages)) {
        free(copy);
        self->failed = true;
        return;
    }
    self->pages[self->page_count++] = (struct changed_page){.page = *page, .url = copy};
    self->next = page->revision;
}

static bool each_page(void *context, const struct page_record *page, const char *url)
{
    struct changes *self = context;

    /* Pages are ordered by revision: stop where a new revision begins and there are enough
     * pages. */
    self->more = self->page_count >= CHANGES_MAX_PAGES && page->revision != self->next;
    if (self->more)
        return false;
    if (self->now.registry_revision != self->since_registry)
        record_site(self, url, page->changed_at);
    record_page(self, url, page);
    return !self->failed;
}

static int compare_pages(const void *a, const void *b)
{
    const struct changed_page *x = *(struct changed_page *const *)a;
    const struct changed_page *y = *(struct changed_page *const *)b;
    int order = strcmp(x->url, y->url);

    if (order == 0)
        order = (x->page.revision > y->page.revision) - (x->page.revision < y->page.revision);
    return order != 0 ? order : (int)y->page.removed - (int)x->page.removed;
}

/* A removed index leaves the rows of its pages, and a new index may have the same URL: each URL is
 * reported once, with its present state. */
static enum catalogue_status mark_outdated(struct changes *self)
{
    struct changed_page **sorted;

    if (self->page_count < 2)
        return CATALOGUE_OK;
    sorted = calloc(self->page_count, sizeof *sorted);
    if (sorted == NULL)
        return CATALOGUE_NO_MEMORY;
    for (size_t i = 0; i < self->page_count; i++)
        sorted[i] = &self->pages[i];
    qsort(sorted, self->page_count, sizeof *sorted, compare_pages);
    for (size_t i = 1; i < self->page_count; i++)
        sorted[i - 1]->outdated = strcmp(sorted[i - 1]->url, sorted[i]->url) == 0;
    free(sorted);
    return CATALOGUE_OK;
}

/* Records sites whose own robots.txt was set since, though no page changed. */
static void record_robots(struct changes *self, const struct registry *registry)
{
    if (self->now.registry_revision == self->since_registry)
        return;
    for (size_t i = 0; i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];

        if (site->robots_revision > self->since &&
            grant_has_site(&self->call.request->grant, site->id))
            record_site(self, site->origin, site->robots_changed_at);
    }
}

static bool is_shared(struct catalogue *c)
{
    struct shared_state state;

    return catalogue_shared_state(c, &state);
}

/* Reads the changes up to now, and forgets those of an earlier call. Fills the reply (410) if the
 * client knows a revision that the catalogue does not have. In a shared catalogue it knows that
 * from another node, and this node has nothing newer yet. */
static enum catalogue_status read_changes(struct call *call, struct catalogue_view *view,
                                          const struct registry *registry)
{
    struct changes *self = (struct changes *)call;
    enum catalogue_status status;

    forget(self);
    status = catalogue_view_revisions(view, &self->now);
    if (status != CATALOGUE_OK)
        return status;
    bool knows = self->epoch[0] != '\0', is_ahead = knows && self->since > self->now.revision;
    if ((knows && strcmp(self->epoch, self->now.epoch) != 0) ||
        (is_ahead && !is_shared(call->app->catalogue))) {
        reply_problem(&call->request->reply, 410, "revision-unknown", "since",
                      "unknown revision (the catalogue was restored or replaced); purge everything "
                      "and start with since=0");
        return CATALOGUE_OK;
    }
    self->next = self->since;
    self->next_registry = is_ahead ? self->since_registry : self->now.registry_revision;
    if (is_ahead)
        return CATALOGUE_OK;
    status = catalogue_view_pages_since(view, self->since, call->request->grant.site_id, each_page,
                                        self);
    if (status != CATALOGUE_OK)
        return status;
    record_robots(self, registry);
    if (self->failed)
        return CATALOGUE_NO_MEMORY;
    if (!self->more)
        self->next = self->now.revision;
    else
        self->next_registry = self->since_registry; /* robots.txt is due for later pages, too */
    return mark_outdated(self);
}

/* ---- replying -------------------------------------------------------------------------------- */

struct listing {
    struct changes *changes;
    struct str *out;
    size_t count;
};

static void append_item(struct listing *l, const char *url, const char *suffix, const char *etag,
                        int64_t changed_at, uint64_t revision, bool removed)
{
    char text[LOC_MAX_CHARS + 1];
    struct json_changed_page shown = {text, etag, changed_at, revision, removed};

    snprintf(text, sizeof text, "%s%s", url, suffix);
    if (l->count++ > 0)
        str_append_char(l->out, ',');
    json_append_object(l->out, &json_changed_page, &shown);
}

static void append_page(struct listing *l, const struct changed_page *changed)
{
    const struct page_record *page = &changed->page;

    for (int gz = 0; gz <= 1; gz++) {
        char etag[RESOURCE_ETAG_SIZE];
        bool hot =
            !page->removed && publisher_page_etag(l->changes->call.app->publisher, page->index_id,
                                                  page->number, gz == 1, etag);

        append_item(l, changed->url, gz == 1 ? ".gz" : "", hot ? etag : NULL, page->changed_at,
                    page->revision, page->removed);
    }
}

static void append_robots(struct listing *l, const struct page_map *routing,
                          const struct changed_site *site)
{
    bool exists = registry_site_by_origin(page_map_registry(routing), site->origin) != NULL;
    const char *host = strstr(site->origin, "://");
    struct site_target found = {.kind = ROUTE_NONE};

    if (exists && host != NULL)
        page_map_find(routing, host + 3, "/robots.txt", &found);
    /* A robots.txt that this server does not serve is not purged. */
    if (exists && found.kind != ROUTE_ROBOTS)
        return;
    append_item(l, site->origin, "/robots.txt", exists ? found.robots->etag_identity : NULL,
                site->changed_at, l->changes->next, !exists);
}

/* Appends the reply's body, with the etags of the pages that are in memory now. */
static void changes_list_append(struct changes *self, struct str *out)
{
    struct listing l = {.changes = self, .out = out};
    const struct page_map *routing = publisher_page_map(self->call.app->publisher);

    str_append_format(
        out, "{\"revision\":%" PRIu64 ",\"next\":\"%s-%" PRIu64 "-%" PRIu64 "\",\"pages\":[",
        self->next, self->now.epoch, self->next, self->next_registry);
    for (size_t i = 0; i < self->page_count; i++)
        if (!self->pages[i].outdated)
            append_page(&l, &self->pages[i]);
    for (size_t i = 0; i < self->site_count; i++)
        append_robots(&l, routing, &self->sites[i]);
    publisher_page_map_done(routing);
    str_append_text(out, "]}\n");
}

/* The steps of a request. A change is reported only once it is published, or a CDN that purges the
 * page would fetch the old one again. So a worker reads the changes up to the view's revision.
 * Without a change, the request waits for a newer revision and reads again. Otherwise it waits
 * until that revision is published, takes the etags and replies. No thread waits between the
 * steps. */

#define RETRY_AFTER_SECONDS "5"

/* Long polls may use only a part of the places for waiting requests, so that writes always find
 * one: a write needs its place for milliseconds, a poll for a minute. */
static bool reserve_place(struct changes *self)
{
    struct app_context *app = self->call.app;

    if (self->waits || app->max_polls == 0)
        return true;
    self->waits = site_uses_take(&app->polls, self->call.request->grant.site_id, 1, app->max_polls);
    return self->waits;
}

static void changes_cleanup(struct call *call)
{
    struct changes *self = (struct changes *)call;

    if (self->waits)
        site_uses_give(&call->app->polls, call->request->grant.site_id, 1);
    changes_list_done(self);
}

/* ---- the token: EPOCH-REVISION-REGISTRY ------------------------------------------------------ */

/* `next` also contains the registry's revision: it shows whether the set of pages changed, and with
 * it robots.txt. A token without it is accepted too; robots.txt is then listed to be safe. A bare
 * number has no epoch, so its meaning is unknown: 410, as for a former epoch. */
static bool read_since(struct changes *self, const char *text)
{
    char registry[24] = "", revision[24] = "";
    size_t len;
    int parts;

    if (text == NULL || strcmp(text, "0") == 0)
        return true;
    if (query_number(text, UINT64_MAX, &self->since)) {
        strcpy(self->epoch, "-");
        return true;
    }
    parts = sscanf(text, "%32[0-9a-f]-%20[0-9]-%20[0-9]", self->epoch, revision, registry);
    len = strlen(self->epoch) + 1 + strlen(revision) + (parts == 3 ? 1 + strlen(registry) : 0);
    self->since_registry = UINT64_MAX;
    return parts >= 2 && strlen(text) == len && query_number(revision, UINT64_MAX, &self->since) &&
           (parts == 2 || query_number(registry, UINT64_MAX, &self->since_registry));
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void run_look(void *context);

static void reply_list(struct changes *self)
{
    changes_list_append(self, &self->call.request->reply.body);
    reply_json(&self->call.request->reply, 200);
}

static void run_reply(void *context)
{
    struct changes *self = context;

    if (auth_still_holds(self->call.app, self->call.request))
        reply_list(self);
    request_resume(self->call.request);
}

static void on_published(void *context, enum await_result result)
{
    struct changes *self = context;
    struct request *request = self->call.request;

    if (result == AWAIT_DONE &&
        workers_run(self->call.app->readers, request->grant.site_id, run_reply, self))
        return;
    errors_reply_status(&request->reply,
                        result == AWAIT_DONE ? CATALOGUE_BUSY : CATALOGUE_UNAVAILABLE);
    request_resume(request);
}

static void on_newer(void *context, enum await_result result)
{
    struct changes *self = context;
    struct request *request = self->call.request;

    if (result == AWAIT_DONE &&
        workers_run(self->call.app->readers, request->grant.site_id, run_look, self))
        return;
    /* The server is stopping, the client has disconnected, or no worker was free because thousands
     * woke at once. An answer without changes is valid: the client repeats the request with the
     * same `next`. */
    reply_list(self);
    request_resume(request);
}

/* 503, since after an empty list a client would repeat the request at once. */
static void reply_crowded(struct reply *reply)
{
    reply_problem(reply, 503, "too-many-waiting", NULL,
                  "busy: too many long polls are waiting; retry later");
    reply_header(reply, "Retry-After", RETRY_AFTER_SECONDS);
}

static bool has_left(void *context)
{
    const struct changes *self = context;

    return request_is_gone(self->call.request);
}

static void wait_for_more(struct changes *self, uint32_t left_ms)
{
    struct request *request = self->call.request;

    if (reserve_place(self)) {
        publisher_await_newer(self->call.app->publisher, self->now.revision, left_ms, on_newer,
                              has_left, self);
        return;
    }
    reply_crowded(&request->reply);
    request_resume(request);
}

static void run_look(void *context)
{
    struct changes *self = context;
    struct request *request = self->call.request;
    int64_t left_ms = self->deadline_ms - clock_now_ms();
    bool found;

    call_look(&self->call, read_changes); /* the token may expire during a long poll */
    found = self->page_count > 0 || self->site_count > 0;
    if (request->reply.status != 0)
        request_resume(request);
    else if (!found && left_ms > 0)
        wait_for_more(self, (uint32_t)left_ms);
    else if (!found)
        run_reply(self);
    else
        publisher_await_revision(self->call.app->publisher, self->now.revision, on_published, self);
}

enum handled changes_get(void *context, struct request *request)
{
    struct changes *self = request->state;
    (void)context;
    self->call.cleanup = changes_cleanup;
    if (!read_since(self, query_value(&self->call.query, "since"))) {
        reply_problem(&request->reply, 400, "malformed-parameter", "since",
                      "must be 0 or the `next` of an earlier reply");
        return HANDLED;
    }
    self->deadline_ms = clock_now_ms() + (int64_t)call_number(&self->call, "wait") * 1000;
    return call_run(&self->call, run_look);
}
