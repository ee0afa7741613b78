/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads an upstream's index, and submits its members as a scan. */
#include "server/sources/remote/upstream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/str.h"
#include "server/input/reader.h"
#include "server/rules/lastmod.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/host.h"
#include "server/sources/split.h"

#define LIST_MAX_BYTES (50u << 20) /* decoded */
#define LIST_MAX       50000u
#define LIST_MAX_RATIO 500u

struct upstream {
    struct reader *reader;
    bool may_be_single; /* it may be a sitemap itself, at `url` after the host map */
    bool single;        /* it is a sitemap itself */
    struct url url;
    bool out_of_memory;
    struct record_list members; /* path, and claim or problem and detail */
    size_t good, dated, bytes;
    /* For the scan. */
    const struct upstream_scan *scan;
    struct record_list dropped; /* path, state */
    struct record_list split;   /* path, urls, bytes, hash of members that were split */
    bool claims_are_now;
    const char **claimed; /* owned; points to texts of `members` */
    size_t claimed_count, claimed_capacity;
};

/* ---- reading ------------------------------------------------------------------------------ */

static bool add_member(struct upstream *u, struct record *member)
{
    bool failed = false;
    struct source_file *file = &member->file;
    u->bytes += sizeof *member + strlen(file->path);
    file->path = record_keep(&u->members, file->path, &failed);
    file->claim = record_keep(&u->members, file->claim, &failed);
    file->problem = record_keep(&u->members, file->problem, &failed);
    file->detail = record_keep(&u->members, file->detail, &failed);
    u->out_of_memory = failed || record_add(&u->members, member) == NULL;
    return !u->out_of_memory;
}

static bool on_entry(void *context, const struct entry *entry)
{
    struct upstream *u = context;
    struct record member = {.file = {.path = entry->loc, .claim = entry->lastmod}};
    u->good++;
    u->dated += entry->lastmod != NULL;
    return add_member(u, &member);
}

/* A member without a loc is named by its line. */
static bool on_rejected(void *context, const struct rejection *rejection)
{
    struct upstream *u = context;
    char named[64];
    snprintf(named, sizeof named, "line %llu", (unsigned long long)rejection->line);
    struct record member = {
        .file = {.path = rejection->loc != NULL && *rejection->loc ? rejection->loc : named,
                 .problem = rule_code_word(rejection->code),
                 .detail = rejection->detail,
                 .line = rejection->line},
        .nowhere = true};
    return add_member(u, &member);
}

struct upstream *upstream_new(int64_t now, const struct url *url, const struct host_map *map)
{
    const struct reader_options options = {.format = READER_XML,
                                           .lenient = true,
                                           .allow_gzip = true,
                                           .max_bytes = LIST_MAX_BYTES,
                                           .max_entries = LIST_MAX,
                                           .max_ratio = LIST_MAX_RATIO,
                                           .now = now,
                                           .map = map};
    struct upstream *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->may_be_single = url != NULL;
    if (url != NULL)
        host_map_url(map, url, &u->url);
    const struct reader_sink sink = {.context = u, .entry = on_entry, .reject = on_rejected};
    u->reader = reader_new(&options, &sink);
    if (u->reader == NULL) {
        free(u);
        return NULL;
    }
    return u;
}

void upstream_content_encoding(struct upstream *u, const char *value)
{
    reader_content_encoding(u->reader, value);
}

bool upstream_feed(struct upstream *u, const char *bytes, size_t len)
{
    return reader_feed(u->reader, bytes, len) == READER_OK;
}

static const char is_urlset[] = "urlset-not-index";

const char *upstream_finish(struct upstream *u, char *why, size_t why_size)
{
    if (reader_finish(u->reader) != READER_OK && u->may_be_single && !u->single &&
        strcmp(reader_error(u->reader)->code, is_urlset) == 0) {
        const struct entry itself = {.loc = u->url.text};
        u->single = true;
        on_entry(u, &itself);
    }
    if (!u->single && reader_finish(u->reader) != READER_OK && !u->out_of_memory) {
        const struct reader_error *error = reader_error(u->reader);
        snprintf(why, why_size, "%s", error->detail);
        return error->code;
    }
    if (u->out_of_memory) {
        snprintf(why, why_size, "out of memory");
        return "no-memory";
    }
    if (u->good > 0)
        return NULL;
    snprintf(why, why_size, "it lists no sitemap");
    return "empty";
}

static bool is_page_of_index(const struct registry *registry, const struct url *url)
{
    struct placement place;
    return registry_place(registry, url, NULL, &place) == RULE_LOC_IS_PAGE;
}

const char *upstream_check_single(const struct upstream *u, struct catalogue *c, const char *source,
                                  int64_t max_removed, char *why, size_t why_size)
{
    struct catalogue_view *view;
    struct source_state state = {0};
    struct registry *registry = NULL;
    if (!u->single || catalogue_view_begin(c, &view) != CATALOGUE_OK)
        return NULL;
    bool known = catalogue_view_source_state(view, source, &state) == CATALOGUE_OK;
    bool is_page = catalogue_view_registry(view, &registry) == CATALOGUE_OK &&
                   is_page_of_index(registry, &u->url);
    registry_unref(registry);
    catalogue_view_end(view);
    if (is_page) {
        snprintf(why, why_size,
                 "is a sitemap (urlset) at the URL of an index here, which cannot list itself: add "
                 "an index at another path, set it as the index of the source, and pass %.*s to "
                 "the old server again",
                 u->url.path_len, u->url.text + u->url.origin_len);
        return is_urlset;
    }
    /* The only known file may be the upstream itself, at its present or former URL. */
    if (known && (state.files <= 1 || max_removed >= (int64_t)state.files))
        return NULL;
    snprintf(why, why_size,
             "is a sitemap (urlset); it was a sitemap index before; if that is intended, scan the "
             "source with max_removed=%" PRIu64 ", which removes the index's sitemaps",
             state.files);
    return is_urlset;
}

struct upstream_counts upstream_count(const struct upstream *u)
{
    return (struct upstream_counts){u->members.count, u->good, u->dated, u->bytes};
}

const char *upstream_first(const struct upstream *u)
{
    for (size_t i = 0; i < u->members.count; i++)
        if (u->members.at[i].file.problem == NULL)
            return u->members.at[i].file.path;
    return NULL;
}

void upstream_free(struct upstream *u)
{
    if (u == NULL)
        return;
    reader_free(u->reader);
    record_list_done(&u->members);
    record_list_done(&u->dropped);
    record_list_done(&u->split);
    free(u->claimed);
    free(u);
}

/* ---- the scan ----------------------------------------------------------------------------- */

static void keep_dropped(void *context, const struct check_record *record)
{
    struct upstream *u = context;
    bool failed = false;
    struct record dropped = {
        .file = {.path = record_keep(&u->dropped, record->loc, &failed),
                 .state = record->state == CHECK_EMPTY ? SOURCE_FILE_EMPTY : SOURCE_FILE_IGNORED}};
    if (failed || record_add(&u->dropped, &dropped) == NULL)
        u->out_of_memory = true;
}

static const char unreadable[] = "the catalogue cannot be read";

/* Reads the result of its polls. */
static enum catalogue_status read_check(struct upstream *u, struct catalogue_view *view,
                                        struct source_file *file)
{
    struct check_record k;
    enum catalogue_status status =
        catalogue_view_check_of(view, u->scan->settings->name, file->path, &k);
    if (status == CATALOGUE_OK && (k.marks & CHECK_SPLIT)) {
        file->urls = k.urls;
        file->bytes = k.bytes;
        memcpy(file->hash, k.hash, sizeof file->hash);
    }
    return status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status;
}

/* Collects the members named by `split` that have a urlset, which is listed in their place. */
static bool keep_split(struct upstream *u, struct scan_pass *pass)
{
    struct catalogue_view *view;
    record_list_done(&u->split);
    if (u->scan->settings->split == NULL)
        return true;
    enum catalogue_status status = catalogue_view_begin(pass->options->catalogue, &view);
    if (status != CATALOGUE_OK)
        return scan_fail(pass, status, unreadable, catalogue_status_word(status));
    for (const char *const *at = u->scan->settings->split; at != NULL && *at != NULL; at++) {
        struct url url;
        bool failed = false;
        if (url_parse(*at, strlen(*at), &url, NULL) != RULE_OK ||
            split_urlset(pass->registry, &url) == NULL)
            continue;
        struct record split = {.file.path = record_keep(&u->split, url.text, &failed)};
        if (!failed)
            status = read_check(u, view, &split.file);
        u->out_of_memory = failed || record_add(&u->split, &split) == NULL;
        if (status != CATALOGUE_OK || u->out_of_memory)
            break;
    }
    catalogue_view_end(view);
    record_sort(&u->split);
    pass->out_of_memory = u->out_of_memory;
    return !u->out_of_memory &&
           (status == CATALOGUE_OK ||
            scan_fail(pass, status, unreadable, catalogue_status_word(status)));
}

/* Collects the members that polls have not found to be sitemaps for `drop_after`. */
static bool begin(void *place, struct scan_pass *pass)
{
    struct upstream *u = place;
    struct catalogue_view *view;
    struct check_filter filter = {.dropped = true, .source = u->scan->settings->name};
    int64_t next;
    enum catalogue_status status = CATALOGUE_OK;
    record_list_done(&u->dropped);
    u->claimed_count = 0;
    if (!u->scan->settings->check || u->scan->settings->drop_after_ms == 0)
        return true;
    status = catalogue_view_begin(pass->options->catalogue, &view);
    if (status == CATALOGUE_OK) {
        status = catalogue_view_checks(view, &filter, keep_dropped, u, &next);
        catalogue_view_end(view);
    }
    pass->out_of_memory = u->out_of_memory;
    record_sort(&u->dropped);
    return (status == CATALOGUE_OK && !u->out_of_memory) ||
           scan_fail(pass, status, unreadable, catalogue_status_word(status));
}

static void end(void *place)
{
    (void)place;
}

static enum rule_code loc(const void *place, const char *path, struct url *out)
{
    (void)place;
    return url_parse(path, strlen(path), out, NULL);
}

static void check_claims(struct upstream *u, struct scan_pass *pass)
{
    for (size_t i = 0; i < u->members.count && !u->claims_are_now; i++) {
        const struct source_file *file = &u->members.at[i].file;
        const struct record *kept = record_find(&pass->kept, file->path);
        u->claims_are_now = kept != NULL && claim_is_now(kept->file.claim, u->scan->answered_before,
                                                         file->claim, u->scan->answered);
    }
}

static void record_claimed(struct upstream *u, const char *path)
{
    if (u->claimed_count == u->claimed_capacity) {
        size_t capacity = u->claimed_capacity ? u->claimed_capacity * 2 : 64;
        const char **claimed = realloc(u->claimed, capacity * sizeof *claimed);
        if (claimed == NULL)
            return; /* out of memory: they are polled on schedule */
        u->claimed = claimed;
        u->claimed_capacity = capacity;
    }
    u->claimed[u->claimed_count++] = path;
}

static bool on_member(struct upstream *u, struct scan_pass *pass, const struct source_file *file)
{
    struct record *kept = scan_meet(pass, file->path);
    struct record *dropped = record_find(&u->dropped, file->path);
    struct record now = scan_from_kept(kept, file->path);
    const char *claim = u->claims_are_now ? NULL : file->claim;
    bool read = kept != NULL && (kept->file.hash[0] | kept->file.hash[1]);
    now.file.claim = file->claim;
    now.file.state = dropped != NULL ? dropped->file.state : SOURCE_FILE_LISTED;
    now.file.remarks = kept != NULL ? kept->file.remarks : NULL;
    /* Polls date what they have read; without them the date that they found never moves back. */
    if (!read || (!u->scan->settings->check && lastmod_is_later(claim, now.file.lastmod)))
        now.file.lastmod = claim;
    now.moved = kept != NULL && !text_equal(kept->file.lastmod, now.file.lastmod);
    if (kept != NULL && claim != NULL && !text_equal(kept->file.claim, claim))
        record_claimed(u, file->path);
    return scan_compare(pass, kept, &now);
}

/* Adds a member that was split: its urlset is listed instead. */
static bool add_split_member(struct scan_pass *pass, const struct source_file *file,
                             const struct source_file *split)
{
    struct record *kept = scan_meet(pass, file->path);
    struct record now = scan_from_kept(kept, file->path);
    now.file.claim = file->claim;
    now.file.state = SOURCE_FILE_IGNORED;
    now.file.lastmod = now.file.newest_lastmod = NULL;
    now.file.urls = split->urls;
    now.file.bytes = split->bytes;
    memcpy(now.file.hash, split->hash, sizeof now.file.hash);
    return scan_compare(pass, kept, &now);
}

static bool add_problem(struct scan_pass *pass, const struct record *member)
{
    struct record *kept = scan_meet(pass, member->file.path);
    struct record now = scan_from_kept(kept, member->file.path);
    now.nowhere = true;
    now.file.line = member->file.line;
    return scan_quarantine(pass, kept, &now, member->file.problem, member->file.detail);
}

static bool find(void *place, struct scan_pass *pass)
{
    struct upstream *u = place;
    if (!keep_split(u, pass))
        return false;
    check_claims(u, pass);
    for (size_t i = 0; i < u->members.count; i++) {
        const struct record *member = &u->members.at[i];
        const struct record *split = record_find(&u->split, member->file.path);
        if (scan_is_stopped(pass) ||
            !(member->file.problem != NULL ? add_problem(pass, member)
              : split != NULL              ? add_split_member(pass, &member->file, &split->file)
                                           : on_member(u, pass, &member->file)))
            return false;
    }
    return true;
}

/* A member that the index can hold; if none exists, the first, so that the scan reports the
 * reason. */
static const char *sample_of(struct upstream *u, struct catalogue *catalogue, const char *index)
{
    struct registry *registry;
    struct placement place;
    struct url url;
    const char *first = NULL, *sample = NULL;
    if (catalogue_registry(catalogue, &registry) != CATALOGUE_OK)
        return NULL;
    for (size_t i = 0; i < u->members.count && sample == NULL; i++) {
        const char *path = u->members.at[i].file.path;
        if (u->members.at[i].file.problem != NULL ||
            url_parse(path, strlen(path), &url, NULL) != RULE_OK)
            continue;
        first = first != NULL ? first : path;
        if (registry_place(registry, &url, index, &place) == RULE_OK)
            sample = path;
    }
    registry_unref(registry);
    return sample != NULL ? sample : first;
}

void upstream_apply(struct upstream *u, const struct upstream_scan *scan, struct scan_outcome *out,
                    bool *claims_are_now)
{
    const struct source_kind kind = {
        .begin = begin,
        .find = find,
        .end = end,
        .loc = loc,
        .sample = sample_of(u, scan->catalogue, scan->settings->index),
    };
    const struct source_settings settings = {.name = scan->settings->name,
                                             .url = scan->settings->upstream,
                                             .index = scan->settings->index};
    const struct scan_options options = {.catalogue = scan->catalogue,
                                         .settings = &settings,
                                         .kind = &kind,
                                         .place = u,
                                         .site_id = scan->settings->site_id,
                                         .max_removed = scan->max_removed,
                                         .dry_run = scan->dry_run,
                                         .alone = scan->dry_run,
                                         .progress = scan->progress,
                                         .stop = scan->stop};
    u->scan = scan;
    scan_run(&options, out);
    *claims_are_now = u->claims_are_now;
}

const char *const *upstream_claimed(const struct upstream *u, size_t *count)
{
    *count = u->claimed_count;
    return u->claimed;
}
