#include "server/sources/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static char *copy_text(const char *text, bool *failed)
{
    char *copy = text ? strdup(text) : NULL;
    *failed |= text && copy == NULL;
    return copy;
}

static const char *const *copy_list(const char *const *list, bool *failed)
{
    size_t count = 0;
    if (list == NULL)
        return NULL;
    while (list[count])
        count++;
    const char **copy = calloc(count + 1, sizeof copy[0]);
    for (size_t i = 0; copy && i < count; i++)
        copy[i] = copy_text(list[i], failed);
    *failed |= copy == NULL;
    return copy;
}

static void free_list(const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        free((char *)list[i]);
    free((void *)list);
}

struct source *source_new(const struct source_settings *settings,
                          const struct sources_options *options, char *why, size_t why_size)
{
    bool failed = false;
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    atomic_init(&s->references, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->wake_fd = -1;
    s->settings = *settings;
    s->settings.name = copy_text(settings->name, &failed);
    s->settings.directory = copy_text(settings->directory, &failed);
    s->settings.url = copy_text(settings->url, &failed);
    s->settings.index = copy_text(settings->index, &failed);
    s->settings.patterns = copy_list(settings->patterns, &failed);
    s->settings.excludes = copy_list(settings->excludes, &failed);
    s->match = (struct match){s->settings.patterns, s->settings.excludes};
    s->catalogue = options->catalogue;
    s->event = options->event;
    s->event_context = options->event_context;
    s->watching = SOURCE_RESCANS_ONLY;
    if (failed) {
        snprintf(why, why_size, "out of memory");
        goto fail;
    }
    if (!location_init(&s->location, settings->url, why, why_size))
        goto fail;
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake_fd < 0) {
        snprintf(why, why_size, "eventfd: %s", strerrordesc_np(errno));
        goto fail;
    }
    return s;
fail:
    source_unref(s);
    return NULL;
}

bool source_settings_check(const struct source_settings *settings, char *why, size_t why_size)
{
    struct location location;
    return location_init(&location, settings->url, why, why_size);
}

static bool texts_equal(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool lists_equal(const char *const *a, const char *const *b)
{
    static const char *const none[] = {NULL};
    if (a == NULL)
        a = none;
    if (b == NULL)
        b = none;
    while (*a != NULL && texts_equal(*a, *b)) {
        a++;
        b++;
    }
    return *a == NULL && *b == NULL;
}

bool source_settings_equal(const struct source_settings *a, const struct source_settings *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->directory, b->directory) == 0 &&
           strcmp(a->url, b->url) == 0 && texts_equal(a->index, b->index) &&
           lists_equal(a->patterns, b->patterns) && lists_equal(a->excludes, b->excludes) &&
           a->watch == b->watch && a->rescan_ms == b->rescan_ms && a->settle_ms == b->settle_ms &&
           a->serve == b->serve;
}

void source_refuse_request(struct scan_request *request)
{
    request->done(request->context, NULL, "the source is ending");
    free(request);
}

void source_answer_requests(struct source *s)
{
    struct scan_request *request;
    while ((request = source_take_request(s)) != NULL)
        source_refuse_request(request);
}

void source_release(struct source *s)
{
    tree_watch_free(s->watch);
    s->watch = NULL;
    scan_memory_done(&s->memory);
    pthread_mutex_lock(&s->lock);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    s->wake_fd = -1;
    pthread_mutex_unlock(&s->lock);
}

void source_ref(struct source *s)
{
    atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
}

void source_unref(struct source *s)
{
    if (s == NULL || atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
        return;
    source_answer_requests(s);
    source_release(s);
    free((char *)s->settings.name);
    free((char *)s->settings.directory);
    free((char *)s->settings.url);
    free((char *)s->settings.index);
    free_list(s->settings.patterns);
    free_list(s->settings.excludes);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void source_wake(struct source *s)
{
    uint64_t one = 1;
    if (s->wake_fd < 0)
        return;
    /* A full counter wakes just as well. */
    ssize_t written = write(s->wake_fd, &one, sizeof one);
    (void)written;
}

void source_request(struct source *s, struct scan_request *request)
{
    request->next = NULL;
    pthread_mutex_lock(&s->lock);
    /* Under the lock: who sees no stop is found by source_answer_requests, which comes after it. */
    bool stopping = atomic_load(&s->stop);
    struct scan_request **end = &s->requests;
    while (*end)
        end = &(*end)->next;
    if (!stopping) {
        *end = request;
        source_wake(s); /* under the lock too, which source_release takes */
    }
    pthread_mutex_unlock(&s->lock);
    if (stopping)
        source_refuse_request(request);
}

struct scan_request *source_take_request(struct source *s)
{
    pthread_mutex_lock(&s->lock);
    struct scan_request *first = s->requests;
    if (first)
        s->requests = first->next;
    pthread_mutex_unlock(&s->lock);
    return first;
}
