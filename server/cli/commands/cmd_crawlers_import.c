/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `crawlers import`: imports crawlers' visits from the access log of a CDN or proxy into the
 * ledger.
 *
 * A request of a crawler for a page, a registered sitemap or robots.txt counts for the sums of its
 * day. That a crawler *holds* the current version of a page is recorded only if it is certain: a
 * cache returns versions of at most --max-age, so a GET with 200 or 304 that is later than the
 * page's last change by more than that returned the current one. Other requests count only as
 * visits.
 *
 * A log is read as a stream into a bounded number of sums. They are written as one change together
 * with the log's length and hash, so that a second run counts nothing twice, and continues after
 * the old end of a log that has grown. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/base/map.h"
#include "server/cli/backend/file_crawlers.h"
#include "server/cli/commands/commands.h"
#include "server/cli/commands/crawler_log.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/crawlers/crawlers.h"
#include "server/rules/grant.h"
#include "server/rules/lastmod.h"
#include "server/rules/scope.h"

#define VISITS_MAX   20000u /* sums of one import, which is one change */
#define CHILDREN_MAX 10000u /* sums beyond which single sitemaps get no sums of their own */
#define CLOCKS_MAY_S 300    /* how far a log's clock may be ahead */

struct known_page {
    int64_t site_id, index_id;
    uint32_t number;
    uint64_t revision, stamp;
    int64_t changed_at;
    char *path; /* owned */
};

struct counted {
    uint64_t lines, visits, impostors, elsewhere, nobodys, old, unreadable;
    uint64_t unreadable_line; /* the first */
    uint64_t homeless_line;   /* the first line without a host, if one is needed; 0: none */
    const char *why;
};

struct importing {
    struct cli *cli;
    const char *name; /* of the log */
    struct catalogue *catalogue;
    const struct registry *registry;
    const struct registry_site *site; /* for lines without a host; NULL: none */
    struct crawlers *crawlers;
    int64_t now, max_age_s;
    size_t page_count, page_room;
    struct known_page *pages;
    struct map by_path;
    size_t visit_count;
    struct crawler_visits *visits;
    struct map by_key;
    uint64_t line; /* of the file */
    struct counted counted;
    /* Logs that were read before, the shortest first. */
    size_t log_count, log_at;
    struct crawler_log *logs;
    const struct crawler_log *read_before; /* the longest of them that this log begins with */
};

/* ---- pages --------------------------------------------------------------------------------- */

static uint32_t hash_bytes(uint32_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 16777619u;
    return hash;
}

static uint32_t hash_path(int64_t site_id, const char *path, size_t len)
{
    return hash_bytes(hash_bytes(2166136261u, &site_id, sizeof site_id), path, len);
}

static bool add_path(struct importing *i, struct known_page *page, bool gz)
{
    char path[PAGE_PATH_SIZE + 3];

    snprintf(path, sizeof path, "%s%s", page->path, gz ? ".gz" : "");
    return map_add(&i->by_path, hash_path(page->site_id, path, strlen(path)),
                   (uint32_t)(page - i->pages) * 2 + gz);
}

static enum catalogue_status add_page(struct importing *i, struct catalogue_view *view,
                                      const struct registry_index *list, uint32_t number)
{
    struct page_record record;
    char path[PAGE_PATH_SIZE];
    enum catalogue_status status = catalogue_view_page(view, list->id, number, &record);

    if (status != CATALOGUE_OK || record.removed)
        return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
    scope_page_path(list->path, list->page_pattern, number, false, path);
    struct known_page *page = &i->pages[i->page_count];
    *page = (struct known_page){list->site_id, list->id,          number,      record.revision,
                                record.stamp,  record.changed_at, strdup(path)};
    if (page->path == NULL)
        return CATALOGUE_NO_MEMORY;
    i->page_count++;
    return add_path(i, page, false) && add_path(i, page, true) ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

static enum catalogue_status read_pages(struct importing *i, struct catalogue_view *view)
{
    const struct registry *r = i->registry;
    const struct registry_index *list;
    enum catalogue_status status = CATALOGUE_OK;

    for (size_t s = 0; s < r->site_count; s++)
        for (size_t k = 0; (list = registry_site_list(&r->sites[s], k)) != NULL; k++)
            i->page_room += list->page_count;
    i->pages = calloc(i->page_room + 1, sizeof *i->pages);
    if (i->pages == NULL)
        return CATALOGUE_NO_MEMORY;
    for (size_t s = 0; s < r->site_count; s++)
        for (size_t k = 0; (list = registry_site_list(&r->sites[s], k)) != NULL; k++)
            for (size_t p = 0; p < list->page_count && status == CATALOGUE_OK; p++)
                status = add_page(i, view, list, list->pages[p]);
    return status;
}

static const struct known_page *find_page(const struct importing *i, int64_t site_id,
                                          const char *path, size_t len)
{
    uint32_t number;

    for (struct map_probe p = map_probe(&i->by_path, hash_path(site_id, path, len));
         map_next(&p, &number);) {
        const struct known_page *page = &i->pages[number / 2];
        size_t own = strlen(page->path);
        bool gz = number % 2 == 1;
        if (page->site_id == site_id && len == own + (gz ? 3 : 0) &&
            strncmp(page->path, path, own) == 0 && (!gz || strncmp(path + own, ".gz", 3) == 0))
            return page;
    }
    return NULL;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Finds the site and the path without query. */
static const struct registry_site *place(struct importing *i, const struct log_fetch *fetch,
                                         const char **path, size_t *len)
{
    const char *host = fetch->host, *authority = strstr(fetch->target, "://");
    char name[256];

    *path = fetch->target;
    if (authority != NULL && authority < fetch->target + strcspn(fetch->target, "/?")) {
        host = authority + 3;
        *path = host + strcspn(host, "/?");
    }
    *len = strcspn(*path, "?#");
    if (host == NULL || strcmp(host, "-") == 0) {
        if (i->site == NULL && i->counted.homeless_line == 0)
            i->counted.homeless_line = i->line;
        return i->site;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(host, "/?"), host);
    return registry_site_by_host(i->registry, name);
}

/* NULL: too many sums, or out of memory. */
static struct crawler_visits *visits_of(struct importing *i, const struct crawler_visits *key)
{
    uint32_t hash = hash_bytes(2166136261u, key->crawler, strlen(key->crawler)), number;

    hash = hash_bytes(hash, &key->site_id, sizeof key->site_id);
    hash = hash_bytes(hash, &key->index_id, sizeof key->index_id);
    hash = hash_bytes(hash, &key->day, sizeof key->day);
    hash = hash_bytes(hash, &key->page, sizeof key->page);
    hash = hash_bytes(hash, &key->child, sizeof key->child);
    for (struct map_probe p = map_probe(&i->by_key, hash); map_next(&p, &number);) {
        struct crawler_visits *v = &i->visits[number];
        if (strcmp(v->crawler, key->crawler) == 0 && v->site_id == key->site_id &&
            v->index_id == key->index_id && v->day == key->day && v->page == key->page &&
            v->child == key->child)
            return v;
    }
    if (i->visit_count >= (key->child != 0 ? CHILDREN_MAX : VISITS_MAX) ||
        !map_add(&i->by_key, hash, (uint32_t)i->visit_count))
        return NULL;
    i->visits[i->visit_count] = *key;
    return &i->visits[i->visit_count++];
}

static void add_visit(struct importing *i, struct crawler_visits *v, const struct log_fetch *fetch)
{
    bool get = fetch->method == NULL || strcasecmp(fetch->method, "GET") == 0;
    bool ok = get && fetch->status == 200, same = get && fetch->status == 304;

    i->counted.visits++;
    v->ok += ok;
    v->not_modified += same;
    v->other += !ok && !same;
    v->bytes += fetch->bytes;
    if (fetch->at >= v->fetched_at) {
        v->fetched_at = fetch->at;
        v->status = (uint16_t)fetch->status;
    }
    if ((ok || same) && v->index_id != 0 && fetch->at - i->max_age_s > v->changed_at &&
        (v->held_at == 0 || fetch->at < v->held_at))
        v->held_at = fetch->at;
    if ((ok || same) && v->child != 0 && fetch->at - i->max_age_s > v->held_at)
        v->held_at = fetch->at - i->max_age_s;
}

/* The entry of the site with this loc; 0: not found. */
static uint64_t find_child(const struct importing *i, const struct registry_site *site,
                           const char *target)
{
    char loc[LOC_MAX_CHARS + 1];
    struct catalogue_view *view;
    struct entry_record record;
    struct url url;
    size_t origin = strlen(site->origin);
    int len = snprintf(loc, sizeof loc, "%s%.*s", site->origin, (int)strcspn(target, "#"), target);

    if (len < 0 || (size_t)len >= sizeof loc ||
        url_parse(loc, (size_t)len, &url, NULL) != RULE_OK ||
        catalogue_view_begin(i->catalogue, &view) != CATALOGUE_OK)
        return 0;
    enum catalogue_status status = catalogue_view_entry_by_loc(view, site->id, url.text, &record);
    catalogue_view_end(view);
    if (status != CATALOGUE_OK)
        return 0;
    entry_record_done(&record);
    return crawlers_child_of(url.text + origin, NULL);
}

/* False: too many sums. */
static bool count_fetch(struct importing *i, const struct log_fetch *fetch)
{
    struct crawler_visits key = {.day = (int32_t)(fetch->at / DAY_SECONDS)};
    const struct registry_site *site;
    const struct known_page *page;
    const char *path;
    size_t len;
    bool real;
    size_t crawler = crawlers_who(i->crawlers, fetch->user_agent, fetch->address, &real);

    if (crawler == 0) {
        i->counted.nobodys++;
        return true;
    }
    site = place(i, fetch, &path, &len);
    page = site != NULL ? find_page(i, site->id, path, len) : NULL;
    bool robots = len == 11 && strncmp(path, "/robots.txt", len) == 0;
    if (site != NULL && page == NULL && !robots)
        key.child = find_child(i, site, path);
    if (site == NULL || (page == NULL && key.child == 0 && !robots)) {
        i->counted.elsewhere++;
        return true;
    }
    if (key.day <= (int32_t)(i->now / DAY_SECONDS) - DAYS_KEPT) {
        i->counted.old++;
        return true;
    }
    snprintf(key.crawler, sizeof key.crawler, "%s", crawlers_name(i->crawlers, crawler));
    key.site_id = site->id;
    if (page != NULL && real) {
        key.index_id = page->index_id;
        key.page = page->number;
        key.revision = page->revision;
        key.stamp = page->stamp;
        key.changed_at = page->changed_at;
    }
    if (!real)
        key.child = 0;
    struct crawler_visits *visits = visits_of(i, &key);
    if (visits == NULL && key.child != 0) { /* too many sitemaps: count only for the site */
        key.child = 0;
        visits = visits_of(i, &key);
    }
    if (visits == NULL)
        return false;
    if (real) {
        add_visit(i, visits, fetch);
    } else {
        visits->impostors++;
        i->counted.impostors++;
    }
    return true;
}

static void count_unreadable(struct importing *i, const char *why)
{
    if (i->counted.unreadable++ > 0)
        return;
    i->counted.unreadable_line = i->line;
    i->counted.why = why;
}

static bool count_line(struct importing *i, struct log_reader *reader, char *line, size_t len)
{
    struct log_fetch fetch;
    const char *why;

    switch (log_reader_line(reader, line, len, &fetch, &why)) {
    case LOG_LINE_NOTHING:
        return true;
    case LOG_LINE_UNREADABLE:
        break;
    case LOG_LINE_FETCH:
        if (fetch.at <= i->now + CLOCKS_MAY_S) {
            i->counted.lines++;
            return count_fetch(i, &fetch);
        }
        why = "has a time in the future";
        break;
    }
    count_unreadable(i, why);
    return true;
}

/* If the bytes so far are a log that was read before, discards the sums so far. */
static void compare_with_logs(struct importing *i, const struct log_file *file)
{
    uint64_t at = log_file_bytes(file);
    uint8_t hash[CRAWLER_LOG_HASH];

    while (i->log_at < i->log_count && i->logs[i->log_at].bytes < at)
        i->log_at++;
    for (; i->log_at < i->log_count && i->logs[i->log_at].bytes == at; i->log_at++) {
        const struct crawler_log *log = &i->logs[i->log_at];
        log_file_hash(file, hash);
        if (memcmp(hash, log->hash, sizeof hash) != 0)
            continue;
        i->read_before = log;
        i->counted = (struct counted){0};
        i->visit_count = 0;
        map_done(&i->by_key);
    }
}

static int fail_at(const struct importing *i, const char *why)
{
    return cli_fail(i->name, "line %" PRIu64 " %s; nothing was imported", i->line, why);
}

static int read_log(struct importing *i, struct log_file *file, struct log_reader *reader)
{
    char *line;
    size_t len;
    bool rest;

    for (;; compare_with_logs(i, file)) {
        i->line++;
        switch (log_file_next(file, &line, &len, &rest)) {
        case LOG_NEXT_LINE:
            if (!count_line(i, reader, line, len))
                return fail_at(i, "exceeds the limit of one import (20000 combinations of crawler, "
                                  "day and page): split the log");
            break;
        case LOG_NEXT_TOO_LONG:
            count_unreadable(i, "is longer than 64 KiB");
            break;
        case LOG_NEXT_DAMAGED:
            return fail_at(
                i, "cannot be read: the file or its gzip data is truncated or corrupt there");
        case LOG_NEXT_END:
            if (rest)
                cli_warn(i->name,
                         "line %" PRIu64
                         " is incomplete (it has no line end yet); the next import will read it",
                         i->line);
            return EXIT_DONE;
        }
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void set_log(void *context, const struct crawler_log *log)
{
    struct importing *i = context;

    if (i->log_count < CRAWLER_LOGS_MAX)
        i->logs[i->log_count++] = *log;
}

static void print_result(const struct importing *i)
{
    const struct counted *c = &i->counted;
    uint64_t held = 0;
    char at[21];

    for (size_t v = 0; v < i->visit_count; v++)
        held += i->visits[v].held_at != 0 && i->visits[v].child == 0;
    if (i->read_before != NULL) {
        lastmod_format_utc(i->read_before->at, at);
        cli_warn(i->name, "its first %" PRIu64 " bytes were imported on %s and are skipped",
                 i->read_before->bytes, at);
    }
    if (c->unreadable > 0)
        cli_warn(i->name, "line %" PRIu64 " %s", c->unreadable_line, c->why);
    if (c->lines == 0 && c->unreadable == 0) {
        printf("%s: nothing new\n", i->name);
        return;
    }
    printf("%s: %" PRIu64 " requests: %" PRIu64 " visits of crawlers, %" PRIu64
           " of impostors; skipped: %" PRIu64 " of other clients, %" PRIu64
           " for other paths, %" PRIu64 " too old; %" PRIu64 " unreadable lines\n",
           i->name, c->lines, c->visits, c->impostors, c->nobodys, c->elsewhere, c->old,
           c->unreadable);
    if (held > 0)
        printf("%s: %" PRIu64 " deliveries of the current version of a page to a crawler\n",
               i->name, held);
}

static int apply(struct importing *i, const struct log_file *file, const char *epoch)
{
    struct crawler_log log = {.bytes = log_file_bytes(file), .at = i->now};
    struct change change = {.kind = CHANGE_CRAWLERS,
                            .crawlers = {.epoch = epoch,
                                         .since = i->now,
                                         .visit_count = i->visit_count,
                                         .visits = i->visits,
                                         .log = &log,
                                         .log_count = 1}};
    struct change_result result;

    log_file_hash(file, log.hash);
    int status = api_apply(i->cli->backend, &change, NULL, NULL, &result) == CATALOGUE_OK
                     ? EXIT_DONE
                     : session_report(i->cli, NULL, i->name, &result);
    change_result_done(&result);
    return status;
}

static int import_log(struct importing *i, const char *epoch, bool dry_run)
{
    struct log_reader *reader = log_reader_new();
    struct log_file *file = log_file_open(i->name);
    int status;

    if (file == NULL || reader == NULL)
        status = cli_fail(i->name, "%s", strerror(file == NULL ? errno : ENOMEM));
    else
        status = read_log(i, file, reader);
    if (status == EXIT_DONE && i->counted.lines == 0 && i->counted.unreadable > 0)
        status = cli_fail(i->name, "malformed: no line is a request; line %" PRIu64 " %s",
                          i->counted.unreadable_line, i->counted.why);
    if (status == EXIT_DONE && i->counted.homeless_line > 0)
        status = cli_fail(i->name,
                          "line %" PRIu64 " has no host, and there is more than one site: name it "
                          "with --site ORIGIN; nothing was imported",
                          i->counted.homeless_line);
    /* A log without any visit is not recorded as read: it may be read again with another --site. */
    if (status == EXIT_DONE && !dry_run && i->visit_count > 0)
        status = apply(i, file, epoch);
    if (status == EXIT_DONE)
        print_result(i);
    log_file_close(file);
    log_reader_free(reader);
    return status;
}

/* Reads all that is needed from the catalogue. Fills `epoch`. */
static enum catalogue_status prepare(struct importing *i, struct catalogue *catalogue,
                                     struct catalogue_revisions *revisions,
                                     struct registry **registry)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(catalogue, &view);

    i->catalogue = catalogue;
    if (status != CATALOGUE_OK)
        return status;
    status = catalogue_view_revisions(view, revisions);
    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, registry);
    i->registry = *registry;
    if (status == CATALOGUE_OK)
        status = read_pages(i, view);
    i->logs = calloc(CRAWLER_LOGS_MAX, sizeof *i->logs);
    i->visits = calloc(VISITS_MAX, sizeof *i->visits);
    if (i->logs == NULL || i->visits == NULL)
        status = CATALOGUE_NO_MEMORY;
    if (status == CATALOGUE_OK)
        status = catalogue_view_crawler_logs(view, set_log, i);
    catalogue_view_end(view);
    return status;
}

static int read_options(struct importing *i)
{
    const char *age = arguments_value(&i->cli->arguments, "--max-age");

    i->max_age_s = 3600;
    if (age != NULL && !grant_read_span(age, &i->max_age_s))
        return cli_misuse("--max-age", "must be a duration: 10m, 2h, 7d");
    return EXIT_DONE;
}

int command_crawlers_import(struct cli *cli)
{
    const struct arguments *a = &cli->arguments;
    const char *origin = arguments_value(a, "--site");
    struct importing i = {.cli = cli, .name = a->words[0], .now = (int64_t)time(NULL)};
    struct catalogue_revisions revisions;
    struct registry *registry = NULL;
    const json_t *named = NULL;
    int status = read_options(&i);

    if (status == EXIT_DONE)
        status = session_needs_machine(cli);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    enum catalogue_status read = prepare(&i, cli->backend->catalogue, &revisions, &registry);
    if (read != CATALOGUE_OK)
        status = cli_fail(i.name, "%s", catalogue_status_row(read)->sentence);
    if (status == EXIT_DONE && origin != NULL)
        status = names_site(cli, origin, &named);
    if (status == EXIT_DONE && named != NULL)
        i.site = registry_site_by_origin(registry, member_text(named, "origin"));
    else if (status == EXIT_DONE && registry->site_count == 1)
        i.site = &registry->sites[0];
    if (status == EXIT_DONE && (i.crawlers = file_crawlers_new(cli->config, NULL, NULL)) == NULL)
        status = EXIT_COULD_NOT; /* the error was reported */
    if (status == EXIT_DONE)
        status = import_log(&i, revisions.epoch, arguments_has(a, "--dry-run"));
    crawlers_free(i.crawlers);
    map_done(&i.by_path);
    map_done(&i.by_key);
    for (size_t p = 0; p < i.page_count; p++)
        free(i.pages[p].path);
    free(i.pages);
    free(i.logs);
    free(i.visits);
    registry_unref(registry);
    return status;
}
