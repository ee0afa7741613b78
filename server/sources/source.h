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

void source_ref(struct source *s);
/* Accepts NULL. The last unref answers requests that are left and frees the source: its thread must
 * have been joined. */
void source_unref(struct source *s);
/* Answers requests that are left, after thread_end. */
void source_answer_requests(struct source *s);
/* Answers and frees one request: its source has ended, or is about to. */
void source_refuse_request(struct scan_request *request);
/* Takes the request over; after thread_end it is answered at once. */
void source_request(struct source *s, struct scan_request *request);
/* Wakes the thread; does nothing after source_release. Call it under the lock, or on the thread
 * that calls source_release. */
void source_wake(struct source *s);
/* Frees what only the thread, which must have been joined, needed: mainly descriptors. */
void source_release(struct source *s);

/* Before the thread starts: loads the state of the last scan from the catalogue, so that a problem
 * is still reported between a restart and the next scan. */
void source_recall(struct source *s);
/* The thread: until thread_end. */
void source_run(void *source);

/* The running sources as an immutable snapshot: a reload makes another. A reader holds one, and
 * with it every source in it: one that has ended is freed with the last list that has it. Thread
 * safe unless said otherwise. */

struct source_list {
    atomic_uint references;
    size_t count;
    struct source *at[]; /* a reference to each */
};
