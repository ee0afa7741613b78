/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Compares what a source has with what the catalogue keeps, and submits the difference. */
#include "server/sources/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "server/base/str.h"
#include "server/rules/url.h"

/* A scan in order:
 *
 *   load   the stored records of the source's files, and the registry, from one view
 *   find   the kind names each existing file; an unchanged file needs no further step
 *   gone   add the stored files that were not seen
 *   apply  submit all differences as one change; the catalogue may refuse single files and, by the
 *          shrink guard, all removals together
 *   report the result, file by file
 *
 * The view is closed before the kind begins: a scan may take minutes, and an open view holds back
 * the catalogue's maintenance. */

#define AGAIN_LEAST_MS 500

/* ---- lists of records --------------------------------------------------------------------- */

#define BLOCK_BYTES (64u << 10)

struct record_block {
    struct record_block *next;
    size_t used, size;
    char text[];
};

struct record *record_add(struct record_list *list, const struct record *record)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity + list->capacity / 2 : 64;
        struct record *at = realloc(list->at, capacity * sizeof at[0]);
        if (at == NULL)
            return NULL;
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->count] = *record;
    return &list->at[list->count++];
}

const char *record_keep(struct record_list *list, const char *text, bool *failed)
{
    if (text == NULL)
        return NULL;
    size_t size = strlen(text) + 1;
    struct record_block *block = list->blocks;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = malloc(sizeof *block + room);
        if (block == NULL) {
            *failed = true;
            return NULL;
        }
        *block = (struct record_block){.next = list->blocks, .size = room};
        list->blocks = block;
    }
    char *copy = block->text + block->used;
    memcpy(copy, text, size);
    block->used += size;
    return copy;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->file.path, ((const struct record *)b)->file.path);
}

void record_sort(struct record_list *list)
{
    bool sorted = true;
    for (size_t i = 1; i < list->count && sorted; i++)
        sorted = compare(&list->at[i - 1], &list->at[i]) <= 0;
    if (!sorted)
        qsort(list->at, list->count, sizeof list->at[0], compare);
}

/* Removes duplicate paths from a sorted list. (The shown form of a name that is invalid or too long
 * may be the same for two files.) */
static void record_unique(struct record_list *list)
{
    size_t left = 0;
    for (size_t i = 0; i < list->count; i++)
        if (left == 0 || compare(&list->at[left - 1], &list->at[i]) != 0)
            list->at[left++] = list->at[i];
    list->count = left;
}

/* The first record whose path is not less. */
static size_t lower_bound(const struct record_list *list, const char *path)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(list->at[middle].file.path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct record *record_find(const struct record_list *list, const char *path)
{
    size_t at = lower_bound(list, path);
    return at < list->count && strcmp(list->at[at].file.path, path) == 0 ? &list->at[at] : NULL;
}

void record_see_below(struct record_list *list, const char *folder)
{
    size_t len = strlen(folder);
    /* "a.xml" sorts between "a" and "a/b". */
    for (size_t i = lower_bound(list, folder);
         i < list->count && strncmp(list->at[i].file.path, folder, len) == 0; i++)
        if (list->at[i].file.path[len] == '/')
            list->at[i].seen = true;
}

/* Copies the texts of a file into the list, except `loc`, which follows from the path. */
static bool keep_texts(struct record_list *list, struct source_file *file)
{
    bool failed = false;
    file->path = record_keep(list, file->path, &failed);
    file->loc = NULL;
    file->lastmod = record_keep(list, file->lastmod, &failed);
    file->newest_lastmod = record_keep(list, file->newest_lastmod, &failed);
    file->remarks = record_keep(list, file->remarks, &failed);
    file->problem = record_keep(list, file->problem, &failed);
    file->detail = record_keep(list, file->detail, &failed);
    file->claim = record_keep(list, file->claim, &failed);
    return !failed;
}

/* Whether all stored fields are equal. */
static bool record_equal(const struct record *a, const struct record *b)
{
    return a->file.state == b->file.state && a->file.device == b->file.device &&
           a->file.inode == b->file.inode && a->file.size == b->file.size &&
           a->file.mtime_ns == b->file.mtime_ns && a->file.ctime_ns == b->file.ctime_ns &&
           a->file.hash[0] == b->file.hash[0] && a->file.hash[1] == b->file.hash[1] &&
           a->file.urls == b->file.urls && a->file.bytes == b->file.bytes &&
           a->file.one_lastmod == b->file.one_lastmod && a->file.future == b->file.future &&
           a->file.line == b->file.line && a->file.column == b->file.column &&
           text_equal(a->file.lastmod, b->file.lastmod) &&
           text_equal(a->file.newest_lastmod, b->file.newest_lastmod) &&
           text_equal(a->file.remarks, b->file.remarks) &&
           text_equal(a->file.problem, b->file.problem) &&
           text_equal(a->file.detail, b->file.detail) && text_equal(a->file.claim, b->file.claim);
}

void record_list_done(struct record_list *list)
{
    while (list->blocks != NULL) {
        struct record_block *next = list->blocks->next;
        free(list->blocks);
        list->blocks = next;
    }
    free(list->at);
    *list = (struct record_list){0};
}

/* ---- what a kind finds -------------------------------------------------------------------- */

static enum rule_code pass_loc(const struct scan_pass *pass, const char *path, struct url *out)
{
    return pass->options->kind->loc(pass->options->place, path, out);
}

struct record *scan_meet(struct scan_pass *pass, const char *path)
{
    struct record *kept = record_find(&pass->kept, path);
    const struct scan_progress *progress = pass->options->progress;
    struct scan_counts *counts = &pass->out->counts;
    if (kept != NULL)
        kept->seen = true;
    counts->files++;
    if (progress != NULL && progress->progress != NULL)
        progress->progress(progress->context, counts->files, counts->read);
    return kept;
}

struct sitemap_expect scan_expect(const struct scan_pass *pass, const char *path,
                                  const struct url *loc)
{
    return (struct sitemap_expect){
        .now = pass->now,
        .url = loc,
        .hosts = pass->hosts,
        .host_count = pass->host_count,
        .packing = sitemap_packing_of(path, strlen(path)),
    };
}

/* Whether there are new or other remarks than before. */
static bool is_remarked(const struct record *kept, const struct record *now)
{
    return now->file.remarks != NULL &&
           !(kept->file.remarks != NULL && strcmp(kept->file.remarks, now->file.remarks) == 0);
}

/* Whether the file was split into a urlset again. */
static bool is_split(const struct record *kept, const struct record *now)
{
    return now->file.urls > 0 &&
           (kept == NULL || memcmp(kept->file.hash, now->file.hash, sizeof now->file.hash) != 0);
}

/* The word that the file is reported with; NULL: not reported. */
static const char *report_word(const struct record *kept, const struct record *now)
{
    bool was_bad = kept != NULL && kept->file.state == SOURCE_FILE_QUARANTINED;
    bool was_listed = kept != NULL && kept->file.has_entry;
    switch (now->file.state) {
    case SOURCE_FILE_QUARANTINED:
        return was_bad && strcmp(kept->file.problem != NULL ? kept->file.problem : "",
                                 now->file.problem) == 0
                   ? NULL
                   : "problem";
    case SOURCE_FILE_LISTED:
        return was_bad                  ? "recovered"
               : !was_listed            ? "new"
               : now->moved             ? "changed"
               : is_remarked(kept, now) ? "remarked"
                                        : NULL;
    case SOURCE_FILE_EMPTY:
        return kept != NULL && kept->file.state == SOURCE_FILE_EMPTY ? NULL : "empty";
    case SOURCE_FILE_IGNORED:
        return was_bad ? "recovered" : is_split(kept, now) ? "split" : NULL;
    case SOURCE_FILE_GONE:
        return "gone";
    }
    return NULL;
}

bool scan_compare(struct scan_pass *pass, const struct record *kept, struct record *now)
{
    bool missing = now->file.state == SOURCE_FILE_LISTED && kept != NULL && !kept->file.has_entry;
    if (kept != NULL && record_equal(kept, now) && !missing && !kept->moved && !pass->resubmit)
        return true;
    now->named = report_word(kept, now);
    pass->out_of_memory =
        !keep_texts(&pass->found, &now->file) || record_add(&pass->found, now) == NULL;
    return !pass->out_of_memory;
}

#define FROZEN_AGAIN_MS 10000u

void scan_again(struct scan_pass *pass, uint32_t ms)
{
    ms = ms < AGAIN_LEAST_MS ? AGAIN_LEAST_MS : ms;
    if (pass->out->again_ms == 0 || pass->out->again_ms > ms)
        pass->out->again_ms = ms;
}

struct record scan_from_kept(const struct record *kept, const char *path)
{
    struct record now = kept != NULL ? *kept : (struct record){0};
    now.file.path = path;
    now.file.remarks = now.file.problem = now.file.detail = NULL;
    now.file.line = now.file.column = 0;
    now.moved = now.nowhere = false;
    return now;
}

bool scan_quarantine(struct scan_pass *pass, const struct record *kept, struct record *now,
                     const char *code, const char *detail)
{
    now->file.state = SOURCE_FILE_QUARANTINED;
    now->file.problem = code;
    now->file.detail = detail;
    return scan_compare(pass, kept, now);
}

bool scan_problem(struct scan_pass *pass, const char *path, const char *code, const char *detail,
                  bool folder)
{
    struct record *kept = record_find(&pass->kept, path);
    if (kept != NULL)
        kept->seen = true;
    struct record now = scan_from_kept(kept, path);
    now.nowhere = folder || strcmp(code, "unreadable") != 0;
    return scan_quarantine(pass, kept, &now, code, detail);
}

/* ---- the change --------------------------------------------------------------------------- */

/* Adds the stored files that were not seen to `found`, as removed. False: out of memory. */
static bool scan_add_removed(struct scan_pass *pass)
{
    for (size_t i = 0; i < pass->kept.count; i++) {
        const struct record *kept = &pass->kept.at[i];
        bool failed = false;
        if (kept->seen)
            continue;
        struct record gone = *kept;
        gone.file.state = SOURCE_FILE_GONE;
        gone.file.path = record_keep(&pass->found, kept->file.path, &failed);
        gone.file.lastmod = gone.file.newest_lastmod = gone.file.problem = gone.file.detail = NULL;
        gone.file.claim = gone.file.remarks = NULL;
        gone.named =
            kept->file.has_entry || kept->file.state != SOURCE_FILE_IGNORED ? "gone" : NULL;
        if (failed || record_add(&pass->found, &gone) == NULL)
            return false;
    }
    return true;
}

/* The file of a record with its URL, which is valid until the next call. */
static struct source_file file_of(struct scan_pass *pass, const struct record *record)
{
    struct source_file file = record->file;
    if (!record->nowhere && pass_loc(pass, record->file.path, &pass->loc) == RULE_OK)
        file.loc = pass->loc.text;
    return file;
}

/* Writes `found` to a spool for the change. */
static enum spool_status make_rows(struct scan_pass *pass, struct spool **rows)
{
    enum spool_status status = SPOOL_OK;
    *rows = catalogue_spool(pass->options->catalogue, UINT64_MAX);
    if (*rows != NULL)
        spool_share(*rows, NULL, pass->options->site_id);
    for (size_t i = 0; *rows != NULL && status == SPOOL_OK && i < pass->found.count; i++) {
        struct source_file file = file_of(pass, &pass->found.at[i]);
        status = spool_add_file(*rows, &file);
    }
    return *rows != NULL ? status : SPOOL_NO_MEMORY;
}

static bool was_refused(const struct scan_pass *pass, const struct record *found)
{
    const struct record *kept = record_find(&pass->kept, found->file.path);
    return kept != NULL && kept->file.refused && found->file.state == SOURCE_FILE_LISTED;
}

/* Files that the catalogue refused are reported as problems, unless they were refused before for
 * the same reason. */
static void merge_refused(struct scan_pass *pass)
{
    const struct findings *findings = &pass->out->result.findings;
    bool failed; /* if out of memory, it is reported without its sentence */
    for (uint32_t i = 0; i < findings->count; i++) {
        const struct finding *item = &findings->items[i];
        struct record *found = &pass->found.at[item->line - 1];
        if (item->code == RULE_OK)
            continue;
        found->named = item->detail != NULL ? "problem" : NULL;
        if (found->named == NULL)
            continue;
        found->file.state = SOURCE_FILE_QUARANTINED;
        found->file.problem = rule_code_word(item->code);
        found->file.detail = record_keep(&pass->found, item->detail, &failed);
    }
}

/* Removals that the shrink guard held back did not happen: they are reported in one line, not file
 * by file in each scan. A single scan (`alone`) shows the files. */
static void merge_held(struct scan_pass *pass)
{
    if (pass->out->result.would_remove == 0 || pass->options->alone)
        return;
    for (size_t i = 0; i < pass->found.count; i++) {
        struct record *found = &pass->found.at[i];
        const struct record *kept = record_find(&pass->kept, found->file.path);
        bool loses = found->file.state == SOURCE_FILE_GONE ||
                     found->file.state == SOURCE_FILE_EMPTY ||
                     found->file.state == SOURCE_FILE_IGNORED || (kept != NULL && kept->moved);
        if (kept != NULL && kept->file.has_entry && loses)
            found->named = NULL;
    }
}

/* ---- reporting ---------------------------------------------------------------------------- */

/* The counter for this word; NULL: none exists. */
static uint64_t *count_of(struct scan_counts *counts, const char *named)
{
    const struct {
        const char *name;
        uint64_t *count;
    } all[] = {
        {"new", &counts->added},           {"changed", &counts->changed},
        {"gone", &counts->gone},           {"problem", &counts->problems},
        {"recovered", &counts->recovered}, {"empty", &counts->empty},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, named) == 0)
            return all[i].count;
    return NULL;
}

static void report_one_still(struct scan_pass *pass, const struct record *record)
{
    const struct scan_progress *progress = pass->options->progress;
    struct source_file file = file_of(pass, record);
    progress->still(progress->context, &file);
}

static bool is_noteworthy(const struct record *record)
{
    return record->file.state == SOURCE_FILE_QUARANTINED ||
           (record->file.state == SOURCE_FILE_LISTED && record->file.remarks != NULL);
}

/* Reports the problems and remarks that have not changed. */
static void report_still(struct scan_pass *pass)
{
    for (size_t i = 0; i < pass->found.count; i++) {
        const struct record *found = &pass->found.at[i];
        struct record *kept = record_find(&pass->kept, found->file.path);
        if (kept == NULL || (found->named == NULL && was_refused(pass, found)))
            continue;
        kept->seen = false; /* it differs from the stored record */
        if (found->named == NULL && is_noteworthy(found))
            report_one_still(pass, found);
    }
    for (size_t i = 0; i < pass->kept.count; i++)
        if (pass->kept.at[i].seen && is_noteworthy(&pass->kept.at[i]))
            report_one_still(pass, &pass->kept.at[i]);
}

static void report_findings(struct scan_pass *pass)
{
    const struct scan_progress *progress = pass->options->progress;
    struct scan_counts *counts = &pass->out->counts;
    for (size_t i = 0; i < pass->found.count; i++) {
        const struct record *record = &pass->found.at[i];
        if (record->named == NULL)
            continue;
        uint64_t *count = count_of(counts, record->named);
        if (count != NULL)
            ++*count;
        if (record->file.state == SOURCE_FILE_LISTED) {
            counts->remarked += record->file.remarks != NULL;
            counts->future += record->file.future;
            counts->one_lastmod += record->file.one_lastmod;
        }
        if (progress != NULL && progress->change != NULL) {
            struct source_file file = file_of(pass, record);
            progress->change(progress->context, record->named, &file);
        }
    }
    if (progress != NULL && progress->still != NULL)
        report_still(pass);
}

/* Submits `found` as a change and reports the result. */
static void scan_apply(struct scan_pass *pass)
{
    struct scan_outcome *out = pass->out;
    struct spool *rows;
    enum spool_status spooled = make_rows(pass, &rows);
    if (spooled != SPOOL_OK) {
        bool full = spooled == SPOOL_NO_SPACE;
        scan_fail(pass, full ? CATALOGUE_NO_SPACE : CATALOGUE_UNAVAILABLE,
                  "the result of the scan cannot be stored", strerror(errno));
        pass->out_of_memory = spooled == SPOOL_NO_MEMORY;
        spool_free(rows);
        return;
    }
    struct change change = {
        .kind = CHANGE_SCAN,
        .source = pass->options->settings->name,
        .index_name = pass->options->settings->index,
        .grant = {.site_id = pass->options->site_id},
        .rows = rows,
        .scan = {.hosts = pass->hosts_digest},
        .dry_run = pass->options->dry_run,
        .wants_preview = pass->options->dry_run,
        .max_removed = pass->options->max_removed,
        .max_findings = UINT32_MAX, /* as many as there are rows */
    };
    out->status = catalogue_apply(pass->options->catalogue, &change, &out->result);
    out->applied = out->status == CATALOGUE_OK;
    out->result.splits = pass->splits;
    if (out->applied) {
        merge_refused(pass);
        merge_held(pass);
        if (out->result.frozen > 0) /* nothing reports a thaw, so try again */
            scan_again(pass, FROZEN_AGAIN_MS);
        report_findings(pass);
    }
    struct change_row *preview = out->result.preview;
    size_t preview_count = out->result.preview_count;
    out->result.preview = NULL; /* the caller owns the rows of a dry run */
    out->result.preview_count = 0;
    change_result_done(&out->result);
    out->result.preview = preview;
    out->result.preview_count = preview_count;
    if (out->applied)
        return;
    const char *detail = out->result.detail;
    snprintf(out->failure, sizeof out->failure, "the catalogue rejected the scan (%s)%s%.180s",
             catalogue_status_word(out->status), *detail ? ": " : "", detail);
}

/* ---- stored records ----------------------------------------------------------------------- */

static bool keep_row(void *context, const struct source_file *file)
{
    struct scan_pass *pass = context;
    struct record record = {.file = *file, .nowhere = file->loc == NULL};
    struct url loc;
    record.moved = file->loc != NULL && (pass_loc(pass, file->path, &loc) != RULE_OK ||
                                         strcmp(loc.text, file->loc) != 0);
    if (!keep_texts(&pass->kept, &record.file) || record_add(&pass->kept, &record) == NULL) {
        pass->out_of_memory = true;
        return false;
    }
    return true;
}

bool scan_fail(struct scan_pass *pass, enum catalogue_status status, const char *what,
               const char *why)
{
    pass->out->status = status;
    snprintf(pass->out->failure, sizeof pass->out->failure, "%.120s: %.120s", what, why);
    return false;
}

static bool fail_status(struct scan_pass *pass, enum catalogue_status status)
{
    return scan_fail(pass, status, "the catalogue cannot be read", catalogue_status_word(status));
}

/* A fault that would refuse every single file is reported before any file is read. */
static bool check_place(struct scan_pass *pass, const struct registry *registry,
                        struct placement *place)
{
    const struct source_settings *settings = pass->options->settings;
    struct url loc;
    if (pass->options->kind->sample == NULL)
        return true;
    enum rule_code code = pass_loc(pass, pass->options->kind->sample, &loc);
    if (code == RULE_OK)
        code = registry_place(registry, &loc, settings->index, place);
    switch (code) {
    case RULE_SITE_UNKNOWN:
    case RULE_INDEX_NEEDED:
        return scan_fail(pass, CATALOGUE_REFUSED, settings->url, rule_code_sentence(code));
    case RULE_INDEX_UNKNOWN:
        if (settings->index != NULL)
            return scan_fail(pass, CATALOGUE_REFUSED, settings->index, rule_code_sentence(code));
        return true;
    default:
        return true;
    }
}

/* Whether the entries are in another index than the configured one. All entries of a source with
 * `index` are in one index, so the first listed one shows it, unless the shrink guard held some
 * back. (A quarantined file moves when it is good again.) */
static bool is_elsewhere(struct scan_pass *pass, struct catalogue_view *view,
                         const struct placement *place)
{
    struct entry_record entry;
    struct source_state state;
    struct url loc;
    bool elsewhere = false;
    if (pass->options->settings->index == NULL || place->index == NULL ||
        catalogue_view_source_state(view, pass->options->settings->name, &state) != CATALOGUE_OK)
        return false;
    for (size_t i = 0; i < pass->kept.count && !elsewhere; i++) {
        const struct record *kept = &pass->kept.at[i];
        if (!kept->file.has_entry || kept->moved || kept->file.state != SOURCE_FILE_LISTED ||
            pass_loc(pass, kept->file.path, &loc) != RULE_OK)
            continue;
        if (catalogue_view_entry_by_loc(view, place->site->id, loc.text, &entry) != CATALOGUE_OK)
            return false;
        elsewhere = entry.index_id != place->index->id;
        entry_record_done(&entry);
        if (state.held == 0)
            break;
    }
    return elsewhere;
}

/* Copies the hosts whose pages the files may list. */
static bool copy_hosts(struct scan_pass *pass, const struct registry_site *site)
{
    if (site == NULL)
        return true;
    size_t count = 1 + site->alias_host_count + site->cross_host_count;
    pass->hosts = malloc(count * sizeof *pass->hosts);
    if (pass->hosts == NULL) {
        pass->out_of_memory = true;
        return false;
    }
    pass->hosts[pass->host_count++] = site->origin + site->origin_url.host_at;
    for (size_t i = 0; i < site->alias_host_count; i++)
        pass->hosts[pass->host_count++] = site->alias_hosts[i];
    for (size_t i = 0; i < site->cross_host_count; i++)
        pass->hosts[pass->host_count++] = site->cross_hosts[i];
    return true;
}

/* FNV-1a, 64 bits, over the hosts with their NULs. Never 0, which means that there was no scan. */
static int64_t digest_hosts(const struct scan_pass *pass)
{
    uint64_t digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < pass->host_count; i++)
        for (const char *c = pass->hosts[i];; c++) {
            digest = (digest ^ (unsigned char)*c) * 0x100000001b3u;
            if (*c == '\0')
                break;
        }
    return (int64_t)(digest | 1);
}

static bool load_view(struct scan_pass *pass, struct catalogue_view *view)
{
    struct placement place = {0};
    enum catalogue_status status = catalogue_view_registry(view, &pass->registry);
    if (status != CATALOGUE_OK)
        return fail_status(pass, status);
    bool ok = check_place(pass, pass->registry, &place) && copy_hosts(pass, place.site);
    if (ok) {
        status = catalogue_view_source_files(view, pass->options->settings->name, SOURCE_FILES_ALL,
                                             keep_row, pass);
        ok = (status == CATALOGUE_OK || fail_status(pass, status)) && !pass->out_of_memory;
    }
    struct source_state state;
    if (ok) {
        status = catalogue_view_source_state(view, pass->options->settings->name, &state);
        ok = status == CATALOGUE_OK || fail_status(pass, status);
    }
    if (ok) {
        pass->hosts_digest = digest_hosts(pass);
        pass->hosts_moved = pass->hosts_digest != state.hosts;
        record_sort(&pass->kept);
        pass->resubmit = is_elsewhere(pass, view, &place);
    }
    return ok;
}

static bool load(struct scan_pass *pass)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(pass->options->catalogue, &view);
    if (status != CATALOGUE_OK)
        return fail_status(pass, status);
    bool ok = load_view(pass, view);
    catalogue_view_end(view);
    return ok;
}

bool scan_is_stopped(const struct scan_pass *pass)
{
    return pass->options->stop != NULL &&
           atomic_load_explicit(pass->options->stop, memory_order_relaxed);
}

/* ---- all of it ---------------------------------------------------------------------------- */

void scan_run(const struct scan_options *options, struct scan_outcome *out)
{
    struct scan_pass pass = {
        .options = options, .out = out, .now = catalogue_now(options->catalogue)};
    const struct source_kind *kind = options->kind;
    *out = (struct scan_outcome){.status = CATALOGUE_CANCELLED};
    if (kind->begin(options->place, &pass)) {
        if (load(&pass) && kind->find(options->place, &pass) && !scan_is_stopped(&pass)) {
            if (scan_add_removed(&pass)) {
                record_sort(&pass.found);
                record_unique(&pass.found);
                scan_apply(&pass);
            } else {
                pass.out_of_memory = true;
            }
        }
        kind->end(options->place);
    }
    if (pass.out_of_memory)
        scan_fail(&pass, CATALOGUE_NO_MEMORY, options->settings->url,
                  "out of memory or file descriptors");
    else if (!out->applied && *out->failure == '\0')
        snprintf(out->failure, sizeof out->failure, "stopped");
    record_list_done(&pass.kept);
    record_list_done(&pass.found);
    free(pass.hosts);
    registry_unref(pass.registry);
}
