/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Splits a file that exceeds the limits of a sitemap: its page URLs become the rows of a urlset at
 * the file's own URL, and only differences to the last time are written. The file is read as a
 * stream, sometimes twice, and validated as a whole before anything is applied. Memory and disk
 * space are bounded. Never logs. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/url.h"

#define SPLIT_MAX_URLS  25000000u
#define SPLIT_TEXT      256u         /* bytes of a sentence */
#define SPLIT_MAX_BYTES (5ull << 30) /* decoded */

struct split_file {
    struct catalogue *catalogue;
    int fd; /* of a regular file; read from its beginning, not closed */
    const struct url *url;
    const char *source;           /* owns the rows */
    const char *content_encoding; /* of the response; NULL: none */
    const char *index;            /* that lists the urlset; NULL: the deepest index that may */
    int64_t site_id;              /* the only site that it may register for; 0: any */
    int64_t now;                  /* Unix seconds */
    const struct host_map *map;   /* applied to the file; `url` is mapped already. NULL: none */
    int64_t max_removed;
    bool dry_run;
    /* Limit for temporary files beside the catalogue; 0: none. Another quarter of it is allowed for
     * the rows that are put aside. */
    uint64_t max_disk;
    const atomic_bool *stop; /* may be NULL */
};

enum split_status {
    SPLIT_DONE,
    SPLIT_REFUSED,  /* see `code`; nothing, or only earlier steps, were applied */
    SPLIT_CHANGING, /* the file was written to meanwhile: read it again */
    SPLIT_BUSY,     /* another file is being split, or the urlset is frozen: later */
    SPLIT_STOPPED,
    SPLIT_NO_MEMORY,
};

struct split_result {
    const char *code; /* REFUSED: a stable word, static */
    char detail[256];
    uint64_t line, column;
    uint64_t urls, bytes; /* of the file: valid rows, and its size */
    uint64_t hash[2];     /* of these rows */
    /* What it did to the urlset, or would do. `repeated`: rows whose loc occurred before; `bad`:
     * rows that were refused. */
    uint64_t created, updated, unchanged, removed, repeated, bad;
    uint64_t extra;         /* elements that are not kept, and invalid dates */
    char extra_element[48]; /* the first unknown element, and its line; "": none exists */
    uint64_t extra_line;
    uint64_t revision;
    bool changed;
};

/* The urlset that a file at the URL is split into; NULL: none exists. */
const struct registry_index *split_urlset(const struct registry *r, const struct url *url);

/* For people: what it did to the urlset, or would do; and what of the file is not in the urlset
 * ("": nothing). */
void split_report_done(const struct split_result *split, char *out, size_t size);
void split_report_dropped(const struct split_result *split, char *out, size_t size);

/* Splits a file; blocks until it is done. One file at a time in a process: BUSY also while it is
 * the turn of another site that used less (share.h) and asked within the last minute. */
enum split_status split_run(const struct split_file *file, struct split_result *out);
