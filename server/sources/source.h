/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One directory source: its settings, its thread, and what is known of it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/base/thread.h"
#include "server/sources/folder/folder.h"
#include "server/sources/scan.h"

struct scan_request {
    struct scan_request *next;
    int64_t max_removed;
    bool dry_run;
    source_scanned *done;
    void *context;
};

struct source {
    atomic_uint references;
    struct source_settings settings; /* owned, with what it points to */
    struct catalogue *catalogue;
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *event_context;
    void (*on_scanned)(void *context, size_t at);
    void *on_scanned_context;
    size_t number; /* its own since the start: no later source gets it */

    struct thread thread;
    int wake_fd; /* eventfd: a request, or the end; -1: released */

    pthread_mutex_t lock; /* for the rest of this part */
    struct scan_request *requests;
    bool scanning;
    enum source_watching watching;
    int64_t failed_at;
    char failure[256];
    struct source_state state; /* after the last scan, also of an earlier run */
    uint64_t scans, files_read;

    /* The thread's own. */
    struct folder folder; /* its location and match are constant: anybody's */
    uint64_t outside, held, frozen;
    unsigned failures; /* in a row */
    bool scanned;      /* at least once since the start */
    int64_t rescan_at, settle_at, settle_bound, retry_at, again_at, look_at; /* ms; 0: not due */
};

/* Copies the settings; a reference for the caller. NULL with `why`. */
struct source *source_new(const struct source_settings *settings,
                          const struct sources_options *options, char *why, size_t why_size);
/* The same name, and all else. */
void source_ref(struct source *s);
/* Takes NULL. The last one answers requests that are left and frees it: its thread was joined. */
void source_unref(struct source *s);
/* Answers requests that are left, after thread_end. */
void source_answer_requests(struct source *s);
/* Answers one, which was taken over: its source has ended, or is about to. */
void source_refuse_request(struct scan_request *request);
/* Takes the request over; after thread_end it is answered at once. */
void source_request(struct source *s, struct scan_request *request);
/* Wakes the thread; nothing after source_release. Under the lock, or where that is called. */
void source_wake(struct source *s);
/* Gives back what only the thread, which was joined, needed: descriptors above all. */
void source_release(struct source *s);

/* Before the thread starts: how the source stands is what the catalogue knows of its last scan, so
 * that what was wrong before a restart is not well until the next one. */
void source_recall(struct source *s);
/* The thread: until thread_end. */
void source_run(void *source);

/* The sources that run, as a picture that is never changed: a reload makes another. A thread that
 * reads holds one, and with it every source in it: one that has ended is freed with the last
 * picture that shows it. Thread safe where nothing else is said. */

struct source_list {
    atomic_uint references;
    size_t count;
    struct source *at[]; /* a reference to each */
};
