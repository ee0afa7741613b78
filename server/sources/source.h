/* One directory source: its settings, its thread, and what is known of it. */
#ifndef SITEMAPD_SOURCES_SOURCE_H
#define SITEMAPD_SOURCES_SOURCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "server/sources/scan.h"

struct scan_request {
    struct scan_request *next;
    int64_t max_removed;
    source_scanned *done;
    void *context;
};

struct source {
    atomic_uint references;
    struct source_settings settings; /* owned, with what it points to */
    struct location location;
    struct match match;
    struct catalogue *catalogue;
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *event_context;
    void (*on_scanned)(void *context, size_t at);
    void *on_scanned_context;
    size_t number; /* its own since the start: no later source gets it */

    pthread_t thread;
    bool started;
    int wake_fd; /* eventfd: a request, or the end; -1: released */
    atomic_bool stop;

    pthread_mutex_t lock; /* for the rest of this part */
    struct scan_request *requests;
    bool scanning;
    enum source_watching watching;
    int64_t failed_at;
    char failure[256];
    struct source_state state; /* after the last scan */
    uint64_t scans, files_read;

    /* The thread's own. */
    struct tree_watch *watch;
    struct scan_memory memory;
    bool links; /* the last scan followed symlinks: any name may matter */
    uint64_t outside, held;
    dev_t top_device; /* of the folder as last scanned */
    ino_t top_inode;
    unsigned failures; /* in a row */
    bool scanned;      /* at least once since the start */
    int64_t rescan_at, settle_at, settle_bound, retry_at, again_at, look_at; /* ms; 0: not due */
};

/* Copies the settings; a reference for the caller. NULL with `why`. */
struct source *source_new(const struct source_settings *settings,
                          const struct sources_options *options, char *why, size_t why_size);
/* The same name, and all else. */
bool source_settings_equal(const struct source_settings *a, const struct source_settings *b);
void source_ref(struct source *s);
/* Takes NULL. The last one answers requests that are left and frees it: its thread was joined. */
void source_unref(struct source *s);
/* Answers requests that are left, after `stop`. */
void source_answer_requests(struct source *s);
/* Answers one, which was taken over: its source has ended, or is about to. */
void source_refuse_request(struct scan_request *request);
/* Takes the request over; after `stop` it is answered at once. */
void source_request(struct source *s, struct scan_request *request);
/* The first request, now the caller's; NULL where there is none. */
struct scan_request *source_take_request(struct source *s);
/* Wakes the thread; nothing after source_release. Under the lock, or where that is called. */
void source_wake(struct source *s);
/* Gives back what only the thread, which was joined, needed: descriptors above all. */
void source_release(struct source *s);

/* What sources_health does. */
void source_fill_health(struct source *s, struct source_health *out);
/* What sources_report does. */
bool source_fill_report(struct source *s, struct source_report *out);

/* The thread: until `stop`. */
void *source_run(void *source);

/* ---- source_tell.c: events ---------------------------------------------------------------- */

void source_tell(const struct source *s, int level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* One file's change; true where it was worth a line. */
bool source_tell_change(const struct source *s, const char *what, const struct source_file *file);
/* What a scan came to, where it is worth a line. */
void source_tell_outcome(struct source *s, const struct scan_outcome *outcome);

#endif
