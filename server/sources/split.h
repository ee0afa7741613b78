/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A file that is past the limits of a sitemap is split: its page URLs become the rows of a urlset
 * at the file's own URL, and what differs from night to night is what is written. It is read
 * as a stream, now and then twice, and checked as a whole before anything is applied; memory is
 * bounded, and so is what it takes of the disk. No log, no clock but the one for `stop`. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "server/rules/url.h"

#define SPLIT_MAX_URLS  25000000u
#define SPLIT_TEXT      256u         /* bytes of a sentence about it */
#define SPLIT_MAX_BYTES (5ull << 30) /* decoded */

struct split_file {
    struct catalogue *catalogue;
    int fd; /* of a regular file; read from its beginning, not closed */
    const struct url *url;
    const char *source;           /* owns the rows */
    const char *content_encoding; /* of the answer that it came with; NULL: none */
    const char *index;            /* that lists the urlset; NULL: the deepest that may */
    int64_t site_id;              /* the one that it may list in; 0: any */
    int64_t now;                  /* Unix seconds */
    const struct host_map *map;   /* that it is read through; `url` is mapped already. NULL: none */
    int64_t max_removed;
    bool dry_run;
    /* That it may take of the disk, beside the catalogue; 0: no bound. And a quarter of it more,
     * for rows that are seldom read again. */
    uint64_t max_disk;
    const atomic_bool *stop; /* may be NULL */
};

enum split_status {
    SPLIT_DONE,
    SPLIT_REFUSED,  /* see `code`; nothing, or what earlier steps did, is applied */
    SPLIT_CHANGING, /* it was written to meanwhile: read it again */
    SPLIT_BUSY,     /* another file is being split, or the urlset is frozen: later */
    SPLIT_STOPPED,
    SPLIT_NO_MEMORY,
};

struct split_result {
    const char *code; /* REFUSED: a stable word, static */
    char detail[256];
    uint64_t line, column;
    uint64_t urls, bytes; /* of the file; rows that the rules let through */
    uint64_t hash[2];     /* of these rows */
    /* What it did to the urlset, or would do. `repeated`: rows of a loc that stood before; `bad`:
     * rows that are refused. */
    uint64_t created, updated, unchanged, removed, repeated, bad;
    uint64_t extra;         /* elements that are not kept, and dates that are none */
    char extra_element[48]; /* the first such element that is unknown, and where; "": there is none
                             */
    uint64_t extra_line;
    uint64_t revision;
    bool changed;
};

/* The urlset that a file at the URL is split into; NULL: there is none. */
const struct registry_index *split_urlset(const struct registry *r, const struct url *url);

/* For people: what it did to the urlset, or would do; and what of the file is not in it, "" where
 * all is. */
void split_report_done(const struct split_result *split, char *out, size_t size);
void split_report_dropped(const struct split_result *split, char *out, size_t size);

/* Blocks for as long as it takes. One file at a time in a process. */
enum split_status split_run(const struct split_file *file, struct split_result *out);
