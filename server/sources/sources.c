#include "server/sources/sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/sources/beneath.h"
#include "server/sources/source.h"

struct sources {
    size_t count;
    struct source *at[];
};

bool sources_start(const struct sources_options *options, struct sources **out, char *why,
                   size_t why_size)
{
    struct sources *s = calloc(1, sizeof *s + options->count * sizeof s->at[0]);
    *out = NULL;
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    for (; s->count < options->count; s->count++) {
        char reason[320];
        const struct source_settings *settings = &options->settings[s->count];
        s->at[s->count] = source_new(settings, options, reason, sizeof reason);
        if (s->at[s->count] == NULL) {
            snprintf(why, why_size, "source \"%.64s\": %s", settings->name, reason);
            sources_stop(s);
            return false;
        }
    }
    for (size_t i = 0; i < s->count; i++) {
        s->at[i]->place = i;
        s->at[i]->on_scanned = options->scanned;
        s->at[i]->on_scanned_context = options->scanned_context;
        int error = pthread_create(&s->at[i]->thread, NULL, source_run, s->at[i]);
        s->at[i]->started = error == 0;
        if (error != 0) {
            snprintf(why, why_size, "source \"%.64s\": no thread: %s", s->at[i]->settings.name,
                     strerrordesc_np(error));
            sources_stop(s);
            return false;
        }
    }
    *out = s;
    return true;
}

void sources_end(struct sources *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->count; i++) {
        atomic_store(&s->at[i]->stop, true);
        source_wake(s->at[i]);
    }
    for (size_t i = 0; i < s->count; i++) {
        if (s->at[i]->started)
            pthread_join(s->at[i]->thread, NULL);
        s->at[i]->started = false;
        source_answer_requests(s->at[i]);
    }
}

void sources_stop(struct sources *s)
{
    if (s == NULL)
        return;
    sources_end(s);
    for (size_t i = 0; i < s->count; i++)
        source_free(s->at[i]);
    free(s);
}

size_t sources_count(const struct sources *s)
{
    return s->count;
}

size_t sources_find(const struct sources *s, const char *name)
{
    size_t at = 0;
    while (at < s->count && strcmp(s->at[at]->settings.name, name) != 0)
        at++;
    return at;
}

const char *sources_url(const struct sources *s, size_t at)
{
    return s->at[at]->location.base;
}

bool sources_report(struct sources *s, size_t at, struct source_report *out)
{
    return source_fill_report(s->at[at], out);
}

void sources_health(struct sources *s, size_t at, struct source_health *out)
{
    source_fill_health(s->at[at], out);
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
    source_request(s->at[at], request);
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
    int top = beneath_open_top(s->at[at]->settings.directory);
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
    for (size_t i = 0; i < s->count; i++) {
        const struct source *source = s->at[i];
        /* Of folders that lie in each other on the web, the deeper one has the file. */
        if (!source->settings.serve || source->location.base_len <= best ||
            !location_path(&source->location, origin, url_path, found) ||
            !match_whole(&source->match, found))
            continue;
        best = source->location.base_len;
        *at = i;
        memcpy(path, found, strlen(found) + 1);
    }
    return best > 0;
}
