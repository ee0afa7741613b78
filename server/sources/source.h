/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One directory source: its settings, its thread and its state. */
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
    struct source_settings settings; /* owned, with its texts */
    struct catalogue *catalogue;
    void (*event)(void *context, int level, const char *event, const char *detail);
    void *event_context;
    void (*on_scanned)(void *context, size_t at);
    void *on_scanned_context;
    size_t number; /* unique since the start of the server */

    struct thread thread;
    int wake_fd; /* eventfd that wakes the thread; -1: released */

    pthread_mutex_t lock; /* guards this part */
    struct scan_request *requests;
    bool scanning;
    enum source_watching watching;
    int64_t failed_at;
    char failure[256];
    struct source_state state; /* after the last scan, maybe of an earlier run */
    uint64_t scans, files_read;

    struct source *next_scanning; /* guarded in source.c */

    /* Only for the thread. */
    struct folder folder; /* any thread may read its location and match, which are constant */
    uint64_t outside, held, frozen;
    uint64_t touched;       /* of source_state, as last looked at */
    uint64_t registry_seen; /* the revision of sites and sources, as last looked at */
    unsigned failures;      /* in a row */
    unsigned log_lines;     /* since `log_began` (ms), at most a minute ago */
    int64_t log_began;
    bool scanned; /* at least once since the start */
    int64_t rescan_at, settle_at, settle_bound, retry_at, again_at, look_at; /* ms; 0: not due */
    int64_t scanned_at, scan_took; /* ms; of the last scan */
};

/* Copies the settings and returns a reference for the caller. NULL, with the reason in `why`, if it
 * fails. */
struct source *source_new(const struct source_settings *settings,
                          const struct sources_options *options, char *why, size_t why_size);

void source_ref(struct source *s);
/* Releases a reference. The last one answers the remaining requests and frees the source; its
 * thread must have been joined. Accepts NULL. */
void source_unref(struct source *s);
/* Answers the remaining requests. Call it after thread_end. */
void source_answer_requests(struct source *s);
/* Answers that the source has ended or is about to, and frees the request. */
void source_refuse_request(struct scan_request *request);
/* Queues a request and takes it over; after thread_end it is answered at once. */
void source_request(struct source *s, struct scan_request *request);
/* Wakes the thread; does nothing after source_release. Call it under the lock, or on the thread
 * that calls source_release. */
void source_wake(struct source *s);
/* Frees what only the thread needed, mainly descriptors. The thread must have been joined. */
void source_release(struct source *s);

/* Loads the state of the last scan from the catalogue, so that a problem is still reported between
 * a restart and the next scan. Call it before the thread starts. */
void source_recall(struct source *s);
/* Takes the turn to scan for the source's site, which source_end_turn gives back. False: another
 * folder of the site has it. A source of the configuration need not wait. Any thread. */
bool source_try_turn(struct source *s);
void source_end_turn(struct source *s);
/* The thread's function; runs until thread_end. */
void source_run(void *source);

/* The running sources as an immutable snapshot with references; a reload makes a new one. A list
 * keeps its sources alive: a source that has ended is freed with the last list that has it. Thread
 * safe unless said otherwise. */

struct source_list {
    atomic_uint references;
    size_t count;
    struct source *at[]; /* a reference to each */
};
