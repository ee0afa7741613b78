/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Requests that wait for a revision: acknowledgements of writes, and long polls. Internal to
 * pages/. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/pages/publisher.h"

enum await_kind {
    AWAIT_REVISION = 1,  /* resumed once everything up to `revision` is published */
    AWAIT_NEWER = 2,     /* resumed once something newer than `revision` is */
    AWAIT_FORWARDED = 4, /* as AWAIT_REVISION, of a write that another node applied */
};

struct await {
    struct await *next;
    enum await_kind kind;
    uint64_t file, revision;
    int64_t deadline_ms; /* CLOCK_MONOTONIC; 0: none */
    await_revision_done *done;
    await_is_gone *is_gone; /* NULL: only `deadline_ms` ends it */
    void *context;
};

struct await_list {
    pthread_mutex_t lock;
    struct await *first;
    uint64_t file, published; /* everything in the file (catalogue_files) up to this revision */
    bool quiet;               /* only acknowledgements of this node's own writes still wait */
    bool stopping;            /* no request may wait any more */
    int64_t looked_ms;        /* when `is_gone` was last called */
};

void await_list_init(struct await_list *l);
/* Calls `done` at once if there is nothing to wait for, or out of memory (UNAVAILABLE). `file`: the
 * file to which `revision` belongs; not used for polls. */
void await_list_add(struct await_list *l, enum await_kind kind, uint64_t file, uint64_t revision,
                    uint32_t timeout_ms, await_revision_done *done, await_is_gone *is_gone,
                    void *context);
/* Everything of `file` up to `revision` is published: resumes the requests that this satisfies,
 * and, with REPLACED, those that wait for an earlier file. */
void await_list_publish(struct await_list *l, uint64_t file, uint64_t revision);
/* Another catalogue is at the path: revisions of the previous one will not come any more. `file`:
 * its number, which may have been published already; 0: it has none of its own. */
void await_list_reset(struct await_list *l, uint64_t file);
/* Resumes the acknowledgements with REPLACED: the published file is gone. Those of a newer file,
 * and polls, continue to wait. */
void await_list_fail(struct await_list *l);
#define AWAIT_LOOK_MS 1000 /* interval between calls of is_gone */
/* Resumes requests whose deadline has passed: polls with DONE, acknowledgements with UNAVAILABLE;
 * and, with STOPPING, requests for which is_gone is true. */
void await_list_expire(struct await_list *l, int64_t now_ms);
/* No request may wait any more when it is called. */
bool await_list_is_empty(struct await_list *l);
/* Resumes long polls and waits for another node's writes with STOPPING, and later ones at once;
 * acknowledgements of this node's writes still come. */
void await_list_quiesce(struct await_list *l);
/* Resumes all with STOPPING, and later ones at once. */
void await_list_stop(struct await_list *l);
void await_list_done(struct await_list *l);
