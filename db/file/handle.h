/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What a catalogue handle is made of. Internal to db/: the writer (writer.c) and the readers
 * (view_pool.c, watch.c) share only what stands here.
 *
 * Lifetimes: catalogue_open makes writer, then views, then watch; catalogue_close frees them in
 * reverse, so that the writer's connection is the last one of this handle. Every field but the
 * atomics is constant from the return of catalogue_open on. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "db/catalogue.h"
#include "db/file/filesystem.h"

struct member;    /* db/shared/member.h: its part in a catalogue that several machines share */
struct presence;  /* db/shared/presence.h: what it is for the others */
struct writer;    /* db/write/writer.h: the thread, its queue and its connection */
struct view_pool; /* CATALOGUE_VIEWS read connections, lent out one by one */
struct watch;     /* data_version and stat of the path, for catalogue_wait */

struct catalogue {
    char *path;                        /* owned */
    struct catalogue_options options;  /* options.path is `path` */
    struct member *member;             /* NULL: it is not shared */
    struct presence *_Atomic presence; /* NULL, and of a command; made behind the writer's thread */
    struct writer *writer;
    struct view_pool *views;
    struct watch *watch;
    /* Set by the watch when the path names no file or another one than its own: writes are answered
     * UNAVAILABLE. Cleared by the writer once writer_reopen succeeded. */
    atomic_bool lost;
    /* All that the file holds was replaced beneath its readers: the next catalogue_wait is
     * REOPENED.
     */
    atomic_bool replaced;
    atomic_uint_fast64_t files; /* counted by the writer, before it commits to another file */
    /* The schema of the file before this handle changed it (0: it is as it was), and since. */
    atomic_int upgraded_from, upgraded_to;
    struct space space;
};

/* The read side. Each makes its part of the handle; `why` gets a sentence on failure, and the
 * frees take NULL. Called with `path` and `options` set and the file migrated. */
enum catalogue_status view_pool_new(struct catalogue *c, struct view_pool **out, char *why,
                                    size_t why_size);
void view_pool_free(struct view_pool *pool);
enum catalogue_status watch_new(struct catalogue *c, struct watch **out, char *why,
                                size_t why_size);
void watch_free(struct watch *watch);

/* A file that replaced another is opened by the writer first, which migrates it and gives it
 * another epoch, and only then by readers: nobody ever reads it under its old epoch.
 *
 * Notifies the writer that the path names a catalogue again, maybe another one: between two
 * transactions it closes its connection, reopens the path and clears `lost`. Returns at once; where
 * the reopening fails `lost` stays set and the watch asks again. Thread safe. */
void writer_reopen(struct catalogue *c);
/* Whether the writer has come to this file: it has made it its own, or found that it cannot for
 * good (a disk that takes no writes), and then what is there may be read all the same. Thread safe.
 */
bool writer_has_followed(struct catalogue *c, const struct file_identity *file);

/* Whether small changes wait for the writer. Thread safe. */
bool writer_has_small(struct catalogue *c);
/* Wakes the writer for what its member (db/shared) found. Thread safe. */
void writer_poke(struct catalogue *c);

/* The writer calls catalogue_wake() after each commit that made a revision, and when it has
 * followed. */
