#include "server/sources/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/sources/beneath.h"
#include "server/sources/source.h"

/* The places of the sources, never changed once it is published: a reload makes another, in which
 * every source keeps its place, those that have ended too. Whoever reads needs no lock. */
struct source_list {
    struct source_list *previous; /* still read perhaps; freed at the end */
    size_t count;
    struct source *at[];
};

struct sources {
    struct sources_options options; /* its settings are not used after the start */
    _Atomic(struct source_list *) list;
};

static struct source_list *list_of(const struct sources *s)
{
    return atomic_load_explicit(&s->list, memory_order_acquire);
}

/* The list with room for `more`. */
static struct source_list *list_grow(struct source_list *previous, size_t more)
{
    size_t count = previous == NULL ? 0 : previous->count;
    struct source_list *list = calloc(1, sizeof *list + (count + more) * sizeof list->at[0]);
    if (list == NULL)
        return NULL;
    list->previous = previous;
    list->count = count;
    for (size_t i = 0; i < count; i++)
        list->at[i] = previous->at[i];
    return list;
}

static bool add(struct sources *s, struct source_list *list, const struct source_settings *settings,
                char *why, size_t why_size)
{
    char reason[320];
    struct source *source = source_new(settings, &s->options, reason, sizeof reason);
    if (source == NULL) {
        snprintf(why, why_size, "source \"%.64s\": %s", settings->name, reason);
        return false;
    }
    source->place = list->count;
    source->on_scanned = s->options.scanned;
    source->on_scanned_context = s->options.scanned_context;
    list->at[list->count++] = source;
    return true;
}

static void signal_end(struct source *source)
{
    atomic_store(&source->stop, true);
    source_wake(source);
}

static void join(struct source *source)
{
    if (source->started)
        pthread_join(source->thread, NULL);
    source->started = false;
    source_answer_requests(source);
}

/* What it held of the kernel goes back; its place, name and last report stay. */
static void join_for_good(struct source *source)
{
    join(source);
    source_release(source);
}

/* Starts the threads from `first` on; those that cannot start have ended. */
static bool start_threads(struct source_list *list, size_t first, char *why, size_t why_size)
{
    bool started = true;
    for (size_t i = first; i < list->count; i++) {
        struct source *source = list->at[i];
        int error = pthread_create(&source->thread, NULL, source_run, source);
        source->started = error == 0;
        if (error != 0) {
            snprintf(why, why_size, "source \"%.64s\": no thread: %s", source->settings.name,
                     strerrordesc_np(error));
            atomic_store(&source->stop, true);
            atomic_store(&source->gone, true);
            started = false;
        }
    }
    return started;
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
    atomic_init(&s->list, NULL);
    if (!sources_reconfigure(s, options->count, options->settings, why, why_size)) {
        sources_stop(s);
        return false;
    }
    *out = s;
    return true;
}

/* Its place in `settings`; `count` where it is to end. */
static size_t same_in(const struct source *source, size_t count,
                      const struct source_settings *settings)
{
    size_t i = 0;
    while (i < count && !source_settings_equal(&source->settings, &settings[i]))
        i++;
    return i;
}

bool sources_reconfigure(struct sources *s, size_t count, const struct source_settings *settings,
                         char *why, size_t why_size)
{
    struct source_list *old = list_of(s);
    size_t old_count = old == NULL ? 0 : old->count;
    struct source_list *list = list_grow(old, count);
    bool *kept = calloc(count + 1, sizeof *kept);
    if (list == NULL || kept == NULL) {
        snprintf(why, why_size, "out of memory");
        goto failed;
    }
    for (size_t i = 0; i < old_count; i++) /* the last element is nobody's */
        if (!atomic_load(&old->at[i]->gone))
            kept[same_in(old->at[i], count, settings)] = true;
    for (size_t i = 0; i < count; i++)
        if (!kept[i] && !add(s, list, &settings[i], why, why_size))
            goto failed;
    free(kept);
    for (size_t i = 0; i < old_count; i++) {
        if (same_in(old->at[i], count, settings) == count) {
            atomic_store(&old->at[i]->gone, true);
            signal_end(old->at[i]);
        }
    }
    for (size_t i = 0; i < old_count; i++)
        if (atomic_load(&old->at[i]->gone))
            join_for_good(old->at[i]);
    atomic_store_explicit(&s->list, list, memory_order_release);
    return start_threads(list, old_count, why, why_size);

failed:
    for (size_t i = old_count; list != NULL && i < list->count; i++)
        source_free(list->at[i]);
    free(list);
    free(kept);
    return false;
}

void sources_end(struct sources *s)
{
    struct source_list *list = s == NULL ? NULL : list_of(s);
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
    struct source_list *list = list_of(s);
    for (size_t i = 0; list != NULL && i < list->count; i++)
        source_free(list->at[i]);
    while (list != NULL) {
        struct source_list *previous = list->previous;
        free(list);
        list = previous;
    }
    free(s);
}

size_t sources_count(const struct sources *s)
{
    return list_of(s)->count;
}

bool sources_has(const struct sources *s, size_t at)
{
    return !atomic_load(&list_of(s)->at[at]->gone);
}

size_t sources_find(const struct sources *s, const char *name)
{
    const struct source_list *list = list_of(s);
    size_t at = 0;
    while (at < list->count &&
           (atomic_load(&list->at[at]->gone) || strcmp(list->at[at]->settings.name, name) != 0))
        at++;
    return at == list->count ? SIZE_MAX : at;
}

const char *sources_url(const struct sources *s, size_t at)
{
    return list_of(s)->at[at]->location.base;
}

bool sources_report(struct sources *s, size_t at, struct source_report *out)
{
    return source_fill_report(list_of(s)->at[at], out);
}

void sources_health(struct sources *s, size_t at, struct source_health *out)
{
    source_fill_health(list_of(s)->at[at], out);
}

void sources_scan(struct sources *s, size_t at, int64_t max_removed, source_scanned *done,
                  void *context)
{
    struct scan_request *request = malloc(sizeof *request);
    if (request == NULL) {
        done(context, NULL, "out of memory");
        return;
    }
    *request = (struct scan_request){NULL, max_removed, done, context};
    source_request(list_of(s)->at[at], request);
}

enum catalogue_status source_scan_once(struct catalogue *c, const struct source_settings *settings,
                                       int64_t max_removed, bool dry_run,
                                       const struct scan_progress *progress,
                                       struct change_result *result, char *why, size_t why_size)
{
    struct location location;
    struct scan_outcome outcome;
    memset(result, 0, sizeof *result);
    if (!location_init(&location, settings->url, why, why_size)) {
        result->status = CATALOGUE_REFUSED;
        return result->status;
    }
    struct scan_options options = {
        .catalogue = c,
        .settings = settings,
        .location = &location,
        .max_removed = max_removed,
        .dry_run = dry_run,
        .progress = progress,
    };
    scan_run(&options, &outcome);
    *result = outcome.result;
    result->status = outcome.status;
    snprintf(why, why_size, "%s", outcome.failure);
    return outcome.status;
}

/* ---- serving ------------------------------------------------------------------------------ */

/* The folder is opened anew: it may have been replaced (a mount, a symlink of releases). */
int sources_open_file(struct sources *s, size_t at, const char *path)
{
    struct stat st;
    int top = beneath_open_top(list_of(s)->at[at]->settings.directory);
    if (top < 0)
        return -1;
    int fd = beneath_open_file(top, path, &st);
    int error = errno;
    close(top);
    errno = error;
    return fd;
}

bool sources_match(const struct sources *s, const char *origin, const char *url_path, size_t *at,
                   char *path)
{
    size_t best = 0;
    char found[SOURCE_MAX_PATH_BYTES + 1];
    const struct source_list *list = list_of(s);
    for (size_t i = 0; i < list->count; i++) {
        const struct source *source = list->at[i];
        /* Of folders that lie in each other on the web, the deeper one has the file. */
        if (!source->settings.serve || atomic_load(&source->gone) ||
            source->location.base_len <= best ||
            !location_path(&source->location, origin, url_path, found) ||
            !match_whole(&source->match, found))
            continue;
        best = source->location.base_len;
        *at = i;
        memcpy(path, found, strlen(found) + 1);
    }
    return best > 0;
}
