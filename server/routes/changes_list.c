#include "server/routes/changes_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/routes/entry_json.h"
#include "server/routes/errors.h"

static void forget(struct changes *self)
{
    for (size_t i = 0; i < self->page_count; i++)
        free(self->pages[i].url);
    for (size_t i = 0; i < self->site_count; i++)
        free(self->sites[i].origin);
    free(self->only_origin);
    self->only_origin = NULL;
    self->page_count = self->site_count = 0;
    if (self->site_bucket_count > 0)
        memset(self->site_buckets, 0, self->site_bucket_count * sizeof *self->site_buckets);
    self->more = false;
}

void changes_list_done(struct changes *self)
{
    forget(self);
    free(self->pages);
    free(self->sites);
    free(self->site_buckets);
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

static bool is_of(const char *origin, const char *url)
{
    size_t len = strlen(origin);

    return strncmp(origin, url, len) == 0 && (url[len] == '/' || url[len] == '\0');
}

/* FNV-1a. Nobody gains by origins that meet: only tokens for all sites make sites. */
static size_t hash_of(const char *text, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

/* The bucket of the site with this origin, or the free one that would be its. */
static uint32_t *bucket_of(struct changes *self, const char *origin, size_t len)
{
    size_t mask = self->site_bucket_count - 1;

    for (size_t i = hash_of(origin, len) & mask;; i = (i + 1) & mask) {
        uint32_t *bucket = &self->site_buckets[i];
        if (*bucket == 0 || (strncmp(self->sites[*bucket - 1].origin, origin, len) == 0 &&
                             self->sites[*bucket - 1].origin[len] == '\0'))
            return bucket;
    }
}

/* Room for one more site, half of the buckets free. */
static bool grow_sites(struct changes *self)
{
    uint32_t *fresh;

    if (!grow((void **)&self->sites, self->site_count, &self->site_capacity, sizeof *self->sites))
        return false;
    if (self->site_count * 2 < self->site_bucket_count)
        return true;
    fresh = calloc(self->site_capacity * 4, sizeof *fresh);
    if (fresh == NULL)
        return false;
    free(self->site_buckets);
    self->site_buckets = fresh;
    self->site_bucket_count = self->site_capacity * 4;
    for (size_t i = 0; i < self->site_count; i++)
        *bucket_of(self, self->sites[i].origin, strlen(self->sites[i].origin)) = (uint32_t)i + 1;
    return true;
}

static void note_site(struct changes *self, const char *url, const struct page_record *page)
{
    const char *host = strstr(url, "://");
    size_t len = host == NULL ? strlen(url) : (size_t)(host + 3 - url) + strcspn(host + 3, "/");
    struct changed_site *site;
    uint32_t *bucket;

    if (!grow_sites(self)) {
        self->failed = true;
        return;
    }
    bucket = bucket_of(self, url, len);
    if (*bucket == 0) {
        site = &self->sites[self->site_count];
        *site = (struct changed_site){strndup(url, len), page->changed_at};
        if (site->origin == NULL) {
            self->failed = true;
            return;
        }
        *bucket = (uint32_t)++self->site_count;
    }
    site = &self->sites[*bucket - 1];
    if (page->changed_at > site->changed_at)
        site->changed_at = page->changed_at;
}

static void note_page(struct changes *self, const char *url, const struct page_record *page)
{
    char *copy;

    /* Pages come by revision: enough of them, and a new revision begins. */
    if (self->more || (self->page_count >= CHANGES_MAX_PAGES && page->revision != self->next)) {
        self->more = true;
        return;
    }
    copy = strdup(url);
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

    if (self->only_origin != NULL && !is_of(self->only_origin, url))
        return true;
    /* All of them count for robots.txt, also those past this reply: the registry's revision in
     * `next` says that they were. */
    if (self->now.registry_revision != self->since_registry)
        note_site(self, url, page);
    note_page(self, url, page);
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

/* An index that was removed leaves its pages' rows behind, and another may have come to its URL
 * since: a URL is told once, as it is now. */
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

static enum catalogue_status find_only(struct changes *self, struct catalogue_view *view)
{
    int64_t id = self->call.request->token_site_id;
    const struct registry_site *site;
    struct registry *registry;
    enum catalogue_status status;

    if (id == 0)
        return CATALOGUE_OK;
    status = catalogue_view_registry(view, &registry);
    if (status != CATALOGUE_OK)
        return status;
    site = registry_site_by_id(registry, id);
    self->only_origin = strdup(site != NULL ? site->origin : "removed:");
    registry_unref(registry);
    return self->only_origin != NULL ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

bool changes_list_read(struct changes *self, struct catalogue_view *view)
{
    struct reply *reply = &self->call.request->reply;
    enum catalogue_status status;

    forget(self);
    status = catalogue_view_revisions(view, &self->now);
    if (status == CATALOGUE_OK && self->epoch[0] != '\0' &&
        (strcmp(self->epoch, self->now.epoch) != 0 || self->since > self->now.revision)) {
        reply_problem(reply, 410, "revision-unknown", "since",
                      "this catalogue knows no such revision (it was restored or replaced); purge "
                      "everything and begin with 0");
        return false;
    }
    if (status == CATALOGUE_OK)
        status = find_only(self, view);
    if (status == CATALOGUE_OK) {
        self->next = self->since;
        status = catalogue_view_pages_since(view, self->since, 0, each_page, self);
    }
    if (status == CATALOGUE_OK && self->failed)
        status = CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK)
        status = mark_outdated(self);
    if (status != CATALOGUE_OK) {
        errors_reply_status(reply, status);
        return false;
    }
    if (!self->more)
        self->next = self->now.revision;
    return true;
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
    struct str *out = l->out;
    struct str whole = STR_INIT;

    str_append_text(out, l->count++ > 0 ? ",{\"url\":" : "{\"url\":");
    str_append_text(&whole, url);
    str_append_text(&whole, suffix);
    entry_json_append_text(out, str_text(&whole));
    if (whole.failed)
        out->failed = true;
    str_done(&whole);
    str_append_text(out, ",\"etag\":");
    entry_json_append_text(out, etag);
    str_append_text(out, ",\"changed_at\":");
    entry_json_append_time(out, changed_at);
    str_append_format(out, ",\"revision\":%" PRIu64 ",\"removed\":%s}", revision,
                      removed ? "true" : "false");
}

static void append_page(struct listing *l, const struct changed_page *changed)
{
    const struct page_record *page = &changed->page;

    for (int gz = 0; gz <= 1; gz++) {
        char etag[SNAPSHOT_ETAG_SIZE];
        bool hot =
            !page->removed && publisher_page_etag(l->changes->call.app->publisher, page->index_id,
                                                  page->number, gz == 1, etag);

        append_item(l, changed->url, gz == 1 ? ".gz" : "", hot ? etag : NULL, page->changed_at,
                    page->revision, page->removed);
    }
}

static void append_robots(struct listing *l, const struct routing *routing,
                          const struct changed_site *site)
{
    bool exists = registry_site_by_origin(routing_registry(routing), site->origin) != NULL;
    const char *host = strstr(site->origin, "://");
    struct route_found found = {.kind = ROUTE_NONE};

    if (exists && host != NULL)
        routing_find(routing, host + 3, "/robots.txt", &found);
    /* A site whose robots.txt is left to others has none of ours to purge. */
    if (exists && found.kind != ROUTE_ROBOTS)
        return;
    append_item(l, site->origin, "/robots.txt", exists ? found.robots_etag : NULL, site->changed_at,
                l->changes->next, !exists);
}

void changes_list_append(struct changes *self, struct str *out)
{
    struct listing l = {.changes = self, .out = out};
    const struct routing *routing = publisher_routing(self->call.app->publisher);

    str_append_format(
        out, "{\"revision\":%" PRIu64 ",\"next\":\"%s-%" PRIu64 "-%" PRIu64 "\",\"pages\":[",
        self->next, self->now.epoch, self->next, self->now.registry_revision);
    for (size_t i = 0; i < self->page_count; i++)
        if (!self->pages[i].outdated)
            append_page(&l, &self->pages[i]);
    for (size_t i = 0; i < self->site_count; i++)
        append_robots(&l, routing, &self->sites[i]);
    publisher_routing_done(routing);
    str_append_text(out, "]}\n");
}
