/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* All folder sources of the server: starts, stops, scans on request, opens files. */
#include "server/sources/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/input/sitemap_file.h"
#include "server/rules/lastmod.h"
#include "server/sources/folder/beneath.h"
#include "server/sources/source.h"

/* An empty list with room for `capacity` sources; a reference for the caller. NULL: out of memory.
 */
static struct source_list *source_list_new(size_t capacity)
{
    struct source_list *list = calloc(1, sizeof *list + capacity * sizeof(struct source *));
    if (list != NULL)
        atomic_init(&list->references, 1);
    return list;
}

/* Adds a source and takes a reference to it. Only while nobody else has the list. */
static void source_list_add(struct source_list *list, struct source *source)
{
    source_ref(source);
    list->at[list->count++] = source;
}

void sources_release(struct source_list *list)
{
    if (list == NULL || atomic_fetch_sub_explicit(&list->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; i < list->count; i++)
        source_unref(list->at[i]);
    free(list);
}

/* The source with this number, borrowed; NULL: it is not in the list. */
static struct source *source_list_find(const struct source_list *list, size_t number)
{
    size_t i = 0;
    while (i < list->count && list->at[i]->number != number)
        i++;
    return i == list->count ? NULL : list->at[i];
}

static char *copy(const char *text, bool *failed)
{
    char *own = strdup(text != NULL ? text : "");
    *failed |= own == NULL;
    return own;
}

struct gathering {
    struct source_report *report;
    bool failed;
};

static bool gather_remarks(void *context, const struct source_file *file)
{
    struct gathering *g = context;
    struct source_report *report = g->report;
    struct sitemap_remarks remarks;
    char sentence[SITEMAP_REMARK_SENTENCE];
    sitemap_remarks_read(file->remarks, &remarks);
    for (size_t i = 0; i < remarks.count && report->remarks_listed < SOURCE_MAX_REMARKS; i++) {
        const struct sitemap_remark *remark = &remarks.at[i];
        sitemap_remark_report(remark, sentence);
        report->remarks[report->remarks_listed++] = (struct source_remark){
            .path = copy(file->path, &g->failed),
            .detail = copy(sentence, &g->failed),
            .code = rule_code_word(remark->code),
            .line = remark->lines[0],
            .column = remark->column,
            .count = remark->count,
        };
    }
    return !g->failed && report->remarks_listed < SOURCE_MAX_REMARKS;
}

static bool gather_problem(void *context, const struct source_file *file)
{
    struct gathering *g = context;
    struct source_report *report = g->report;
    report->problems[report->problems_listed++] = (struct source_problem){
        .path = copy(file->path, &g->failed),
        .code = copy(file->problem, &g->failed),
        .detail = copy(file->detail, &g->failed),
        .line = file->line,
        .column = file->column,
        .since = file->problem_since,
        .has_entry = file->has_entry,
    };
    return !g->failed && report->problems_listed < SOURCE_MAX_PROBLEMS;
}

static bool gather_split(void *context, const struct source_file *file)
{
    struct gathering *g = context;
    struct source_report *report = g->report;
    report->splits[report->splits_listed++] =
        (struct source_split){.path = copy(file->path, &g->failed), .urls = file->urls};
    return !g->failed && report->splits_listed < SOURCE_MAX_SPLITS;
}

void source_report_done(struct source_report *report)
{
    for (size_t i = 0; i < report->problems_listed; i++) {
        free(report->problems[i].path);
        free(report->problems[i].code);
        free(report->problems[i].detail);
    }
    for (size_t i = 0; i < report->remarks_listed; i++) {
        free(report->remarks[i].path);
        free(report->remarks[i].detail);
    }
    for (size_t i = 0; i < report->splits_listed; i++)
        free(report->splits[i].path);
    report->problems_listed = report->remarks_listed = report->splits_listed = 0;
}

/* Finds the splits of remote sitemaps in the results of the polls. */
static enum catalogue_status gather_watched(struct catalogue_view *view, const char *name,
                                            const char *const *urls, struct gathering *g)
{
    struct check_record k;
    bool more = true;
    for (; urls != NULL && *urls != NULL && more; urls++) {
        enum catalogue_status status = catalogue_view_check_of(view, name, *urls, &k);
        if (status == CATALOGUE_OK && (k.marks & CHECK_SPLIT))
            more = gather_split(g, &(struct source_file){.path = k.loc, .urls = k.urls});
        else if (status != CATALOGUE_OK && status != CATALOGUE_NOT_FOUND)
            return status;
    }
    return CATALOGUE_OK;
}

bool source_report_read(struct catalogue *c, const char *name, bool splits, const char *const *urls,
                        struct source_report *out)
{
    struct catalogue_view *view;
    struct catalogue_revisions revisions;
    struct gathering g = {.report = out};
    if (catalogue_view_begin(c, &view) != CATALOGUE_OK)
        return false;
    bool ok = catalogue_view_revisions(view, &revisions) == CATALOGUE_OK &&
              catalogue_view_source_state(view, name, &out->state) == CATALOGUE_OK &&
              (out->state.quarantined == 0 ||
               catalogue_view_source_files(view, name, SOURCE_FILES_REFUSED, gather_problem, &g) ==
                   CATALOGUE_OK) &&
              (out->state.remarked == 0 ||
               catalogue_view_source_files(view, name, SOURCE_FILES_REMARKED, gather_remarks, &g) ==
                   CATALOGUE_OK) &&
              (!splits || catalogue_view_source_files(view, name, SOURCE_FILES_SPLIT, gather_split,
                                                      &g) == CATALOGUE_OK) &&
              gather_watched(view, name, urls, &g) == CATALOGUE_OK;
    catalogue_view_end(view);
    out->revision = revisions.revision;
    if (ok && !g.failed)
        return true;
    source_report_done(out);
    return false;
}

struct sources {
    struct sources_options options; /* `settings` is not used after the start */
    size_t started;                 /* the number of the source that started last */
    pthread_mutex_t lock;           /* guards only the pointer; never held during I/O */
    struct source_list *list;       /* never NULL once started */
};

static void signal_end(struct source *source)
{
    thread_end(&source->thread);
    source_wake(source);
}

static void join(struct source *source)
{
    thread_join(&source->thread);
    source_answer_requests(source);
}

/* Frees the descriptors at once; the rest is freed with the last list that has the source. */
static void join_for_good(struct source *source)
{
    join(source);
    source_release(source);
}

static bool start_thread(struct source *source, char *why, size_t why_size)
{
    source_recall(source);
    if (thread_start(&source->thread, "folder", source_run, source))
        return true;
    snprintf(why, why_size, "source \"%.64s\": cannot start its thread: %s", source->settings.name,
             strerrordesc_np(errno));
    return false;
}

bool sources_start(const struct sources_options *options, struct sources **out, char *why,
                   size_t why_size)
{
    struct sources *s = calloc(1, sizeof *s);
    *out = NULL;
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    s->options = *options;
    if (options->max_watches != 0)
        tree_watch_share(options->max_watches);
    pthread_mutex_init(&s->lock, NULL);
    s->list = source_list_new(0);
    if (s->list == NULL)
        snprintf(why, why_size, "out of memory");
    if (s->list == NULL ||
        !sources_reconfigure(s, options->count, options->settings, why, why_size)) {
        sources_stop(s);
        return false;
    }
    *out = s;
    return true;
}

/* The source of `list` with these settings; NULL: none exists. */
static struct source *same_in(const struct source_list *list,
                              const struct source_settings *settings)
{
    for (size_t i = 0; i < list->count; i++)
        if (source_settings_equal(&list->at[i]->settings, settings))
            return list->at[i];
    return NULL;
}

/* A list of the sources in `settings`: unchanged ones of `old`, and new ones without a thread.
 * NULL, with the reason in `why`, if it fails. */
static struct source_list *list_for(struct sources *s, const struct source_list *old, size_t count,
                                    const struct source_settings *settings, char *why,
                                    size_t why_size)
{
    char reason[320];
    struct source_list *list = source_list_new(count);
    if (list == NULL)
        snprintf(why, why_size, "out of memory");
    for (size_t i = 0; list != NULL && i < count; i++) {
        struct source *source = same_in(old, &settings[i]);
        if (source != NULL) {
            source_list_add(list, source);
            continue;
        }
        source = source_new(&settings[i], &s->options, reason, sizeof reason);
        if (source == NULL) {
            snprintf(why, why_size, "source \"%.64s\": %s", settings[i].name, reason);
            sources_release(list);
            return NULL;
        }
        source->number = ++s->started;
        source->on_scanned = s->options.scanned;
        source->on_scanned_context = s->options.scanned_context;
        source_list_add(list, source);
        source_unref(source);
    }
    return list;
}

/* Starts the sources that have no thread yet, and removes those that cannot be started. */
static bool start_threads(struct source_list *list, char *why, size_t why_size)
{
    size_t started = 0, count = list->count;
    for (size_t i = 0; i < count; i++) {
        if (thread_runs(&list->at[i]->thread) || start_thread(list->at[i], why, why_size))
            list->at[started++] = list->at[i];
        else
            source_unref(list->at[i]);
    }
    list->count = started;
    return started == count;
}

bool sources_reconfigure(struct sources *s, size_t count, const struct source_settings *settings,
                         char *why, size_t why_size)
{
    struct source_list *old = s->list; /* only this function sets it */
    struct source_list *list = list_for(s, old, count, settings, why, why_size);
    if (list == NULL)
        return false;
    for (size_t i = 0; i < old->count; i++)
        if (source_list_find(list, old->at[i]->number) == NULL)
            signal_end(old->at[i]);
    for (size_t i = 0; i < old->count; i++)
        if (source_list_find(list, old->at[i]->number) == NULL)
            join_for_good(old->at[i]);
    bool all = start_threads(list, why, why_size);
    pthread_mutex_lock(&s->lock);
    s->list = list;
    pthread_mutex_unlock(&s->lock);
    sources_release(old);
    return all;
}

void sources_end(struct sources *s)
{
    struct source_list *list = s == NULL ? NULL : s->list;
    for (size_t i = 0; list != NULL && i < list->count; i++)
        signal_end(list->at[i]);
    for (size_t i = 0; list != NULL && i < list->count; i++)
        join(list->at[i]);
}

void sources_stop(struct sources *s)
{
    if (s == NULL)
        return;
    sources_end(s);
    sources_release(s->list);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

struct source_list *sources_hold(struct sources *s)
{
    pthread_mutex_lock(&s->lock);
    struct source_list *list = s->list;
    atomic_fetch_add_explicit(&list->references, 1, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    return list;
}

size_t sources_count(const struct source_list *list)
{
    return list->count;
}

size_t sources_find(const struct source_list *list, const char *name)
{
    size_t at = 0;
    while (at < list->count && strcmp(list->at[at]->settings.name, name) != 0)
        at++;
    return at == list->count ? SIZE_MAX : at;
}

size_t sources_number(const struct source_list *list, size_t at)
{
    return list->at[at]->number;
}

const struct source_settings *sources_settings(const struct source_list *list, size_t at)
{
    return &list->at[at]->settings;
}

const char *sources_url(const struct source_list *list, size_t at)
{
    const struct source *s = list->at[at];
    return s->folder.location.base_len > 0 ? s->folder.location.base : s->settings.url;
}

bool sources_report(const struct source_list *list, size_t at, struct source_report *out)
{
    struct source *s = list->at[at];
    *out = (struct source_report){
        .name = s->settings.name,
        .directory = s->settings.directory,
        .url = sources_url(list, at),
        .index = s->settings.index,
        .settings = &s->settings,
        .serve = s->settings.serve,
    };
    /* Read the catalogue before the thread's state: a report that has a scan's result then also
     * shows that the scan is over. */
    if (!source_report_read(s->catalogue, s->settings.name, s->settings.splits, NULL, out))
        return false;
    pthread_mutex_lock(&s->lock);
    out->watching = s->watching;
    out->scanning = s->scanning;
    out->failed_at = s->failed_at;
    memcpy(out->failure, s->failure, sizeof out->failure);
    pthread_mutex_unlock(&s->lock);
    return true;
}

void sources_health(const struct source_list *list, size_t at, struct source_health *out)
{
    struct source *s = list->at[at];
    pthread_mutex_lock(&s->lock);
    *out = (struct source_health){
        .name = s->settings.name,
        .serve = s->settings.serve,
        .state = s->state,
        .scanning = s->scanning,
        .failing = s->failed_at != 0,
        .watching = s->watching,
        .scans = s->scans,
        .files_read = s->files_read,
    };
    memcpy(out->failure, s->failure, sizeof out->failure);
    pthread_mutex_unlock(&s->lock);
}

void sources_scan(struct sources *s, size_t number, int64_t max_removed, bool dry_run,
                  source_scanned *done, void *context)
{
    struct scan_request *request = malloc(sizeof *request);
    if (request == NULL) {
        done(context, NULL, "out of memory");
        return;
    }
    *request = (struct scan_request){NULL, max_removed, dry_run, done, context};
    struct source_list *list = sources_hold(s);
    struct source *source = source_list_find(list, number);
    if (source != NULL)
        source_request(source, request);
    else
        source_refuse_request(request);
    sources_release(list);
}

enum catalogue_status source_scan_once(const struct source_settings *settings,
                                       struct scan_once *scan)
{
    struct folder folder = {0};
    struct scan_outcome outcome;
    scan->result = (struct change_result){.status = CATALOGUE_REFUSED};
    if (!folder_init(&folder, settings, scan->why, sizeof scan->why))
        return CATALOGUE_REFUSED;
    struct scan_options options = {
        .catalogue = scan->catalogue,
        .settings = settings,
        .kind = &folder_kind,
        .place = &folder,
        .max_removed = scan->max_removed,
        .dry_run = scan->dry_run,
        .alone = true,
        .progress = scan->progress,
    };
    scan_run(&options, &outcome);
    folder_done(&folder);
    scan->result = outcome.result;
    scan->result.status = outcome.status;
    snprintf(scan->why, sizeof scan->why, "%s", outcome.failure);
    return outcome.status;
}

/* ---- serving ------------------------------------------------------------------------------ */

/* Opens the folder again: it may have been replaced (a mount, a symlink to releases). If it is not
 * mounted or not readable, that says nothing about its files, which stay listed. */
static int open_beneath(const struct source_settings *settings, const char *path)
{
    struct stat st;
    int top = folder_open_top(settings);
    if (top < 0 && !settings->closed &&
        (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES))
        errno = EIO;
    if (top < 0)
        return -1;
    int fd = beneath_open_file(top, path, &st);
    int error = errno;
    close(top);
    errno = error;
    return fd;
}

int sources_open_file(struct sources *s, size_t number, const char *path)
{
    struct source_list *list = sources_hold(s);
    const struct source *source = source_list_find(list, number);
    errno = ENOENT;
    int fd = source == NULL ? -1 : open_beneath(&source->settings, path);
    int error = errno;
    sources_release(list);
    errno = error;
    return fd;
}

/* A folder that its source may not read any more has nothing to serve. */
static bool is_listed(const struct source *source, const char *path, int64_t *lastmod)
{
    struct catalogue_view *view;
    struct source_file file;
    struct lastmod date;
    bool found = false;
    if (source->settings.closed)
        return false;
    if (catalogue_view_begin(source->catalogue, &view) != CATALOGUE_OK)
        return true;
    bool listed = catalogue_view_source_file(view, source->settings.name, path, &file, &found) !=
                      CATALOGUE_OK ||
                  (found && file.has_entry);
    if (listed && found && file.lastmod != NULL &&
        lastmod_parse(file.lastmod, strlen(file.lastmod), clock_unix_ms() / 1000, &date, NULL) ==
            RULE_OK)
        *lastmod = date.unix_seconds;
    catalogue_view_end(view);
    return listed;
}

bool sources_list_file(struct sources *s, size_t number, const char *path, int64_t *lastmod)
{
    struct source_list *list = sources_hold(s);
    const struct source *source = source_list_find(list, number);
    *lastmod = 0;
    bool listed = source != NULL && is_listed(source, path, lastmod);
    sources_release(list);
    return listed;
}

bool sources_match(struct sources *s, const char *origin, const char *url_path, size_t *number,
                   char *path)
{
    size_t best = 0;
    char found[SOURCE_MAX_PATH_BYTES + 1];
    struct source_list *list = sources_hold(s);
    for (size_t i = 0; i < list->count; i++) {
        const struct source *source = list->at[i];
        /* If the URL of one folder is below that of another, the deeper one has the file. */
        if (!source->settings.serve || source->folder.location.base_len <= best ||
            !location_path(&source->folder.location, origin, url_path, found) ||
            !match_whole(&source->folder.match, found))
            continue;
        best = source->folder.location.base_len;
        *number = source->number;
        memcpy(path, found, strlen(found) + 1);
    }
    sources_release(list);
    return best > 0;
}
