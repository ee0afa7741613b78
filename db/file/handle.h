/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The parts of a catalogue handle. Internal to db/: the writer (writer.c) and the readers
 * (view_pool.c, watch.c) share only this struct and these functions.
 *
 * Lifetimes: catalogue_open makes writer, then views, then watch; catalogue_close frees them in
 * reverse order, so that the writer's connection closes last. All fields but the atomics are
 * constant once catalogue_open has returned. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "db/catalogue.h"
#include "db/file/filesystem.h"

struct member;    /* db/shared/member.h: a node's part in a shared catalogue */
struct presence;  /* db/shared/presence.h: leads jobs and reports to other nodes */
struct writer;    /* db/write/writer.h: the thread, its queue and its connection */
struct view_pool; /* CATALOGUE_VIEWS read connections, lent out one by one */
struct watch;     /* data_version and stat of the path, for catalogue_wait */

struct catalogue {
    char *path;                        /* owned */
    struct catalogue_options options;  /* options.path is `path` */
    struct member *member;             /* NULL: it is not shared */
    struct presence *_Atomic presence; /* NULL: not shared, or a command; made after the writer */
    struct writer *writer;
    struct view_pool *views;
    struct watch *watch;
    /* Set by the watch when the path names no file or another file: writes are answered
     * UNAVAILABLE. Cleared by the writer once it has reopened the path. */
    atomic_bool lost;
    /* A snapshot replaced the file's content: the next catalogue_wait returns REOPENED. */
    atomic_bool replaced;
    atomic_uint_fast64_t files; /* counted by the writer, before it commits to another file */
    atomic_uint_fast64_t news;  /* as catalogue_news; counted by the writer and the watch */
    /* The file's schema before this handle migrated it (0: not migrated), and after. */
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

/* The writer opens a new file first, migrates it and gives it another epoch; only then readers open
 * it, so that nobody reads it under its old epoch.
 *
 * Notifies the writer that the path names a catalogue again, perhaps another one: between two
 * transactions the writer closes its connection, reopens the path and clears `lost`. Returns at
 * once. If the reopening fails, `lost` stays set and the watch calls this again. Thread safe. */
void writer_reopen(struct catalogue *c);
/* Whether readers may open this file: the writer has adopted it, or cannot adopt it because the
 * disk is read-only or full. Thread safe. */
bool writer_has_followed(struct catalogue *c, const struct file_identity *file);

/* Whether small changes are queued. Thread safe. */
bool writer_has_small(struct catalogue *c);
/* Wakes the writer for what its member (db/shared) or the watch found. Thread safe. */
void writer_poke(struct catalogue *c);

/* The writer calls catalogue_wake() after each commit that made a revision, and once it has
 * reopened the path. */
