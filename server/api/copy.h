/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Answers that are too long for memory: made on the disk first, at its speed, and then sent, so
 * that a slow client holds neither a reader of the catalogue nor its log. Only a few at a time, on
 * their own threads, so that other calls do not wait for them. Internal to server/api/. */
#pragma once

#include <stdio.h>

#include "server/api/call.h"

/* The first member of what such a route keeps; route.call_size is copy_size. */
struct copy {
    struct call call; /* first */
    FILE *file;       /* owned: nameless, in the database's folder; NULL: not yet */
    bool placed;      /* it has a place, until the file is complete */
    bool one_site;    /* the token is for one site */
    bool whole;       /* a copy of the catalogue, not a list of entries */
    bool has_file;    /* it counts as one of the few files, until that is sent */
    bool crowded;     /* it needs more than max_spool allows */
    bool full;        /* the free space that is left is reserved: not for tokens for one site */
    bool gone;        /* its client left */
    uint64_t bytes;   /* written */
    uint64_t taken;   /* bytes reserved in the room of spools */
    int64_t site_id;  /* `whole`: of this site alone; 0: of all */
    uint64_t rows;    /* of that site, copied so far */
    call_work *make;  /* fills the file by copy_write */
    const char *content_type;
};
extern const size_t copy_size;

/* Runs `make` with a view on a thread of its own, then answers with the file that it wrote, as
 * `content_type` (static). The request waits for its turn; 503 if the token's site has another one
 * in progress, or too many wait. A client that leaves ends it. */
enum handled copy_run(struct copy *copy, const char *content_type, call_work *make);
/* Whether the client requests NDJSON from a call that can also return a page of JSON. */
bool copy_wants_lines(const struct request *request);
/* The same as NDJSON, which is the whole list: parameters of pages are rejected. */
enum handled copy_lines(struct copy *copy, call_work *make);
/* False if no client waits for the answer any more, or the server is about to stop: for a `make`
 * that works long before it writes. */
bool copy_goes_on(struct copy *copy);
/* Reserves room for a file that is written in addition to the answer, until that is sent. False as
 * for copy_write. */
bool copy_room(struct copy *copy, size_t bytes);
/* Reserves one of the few copies of whole catalogues that may exist at once. The caller releases it
 * by a decrement of app->backups_open. */
bool copy_reserve_whole(struct app_context *app);
/* Whether the disk has room for a copy of the whole catalogue. */
bool copy_has_space(const struct app_context *app);
/* Creates an empty file beside the database; the caller owns its name. NULL with errno.
 * copy_remove_file removes it, and the files that SQLite created beside it. */
char *copy_make_file(const struct app_context *app);
void copy_remove_file(const char *name);
/* Appends to the answer. False: there is no room, or the server is about to stop; `make` then ends,
 * and the reply shows the error. */
bool copy_write(struct copy *copy, const char *bytes, size_t len);
