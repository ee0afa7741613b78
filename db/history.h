/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The history: what each change did, by whom, read from a view. Part of db/catalogue.h, whose rules
 * hold. What is older than catalogue_view_history_from reports is not there, or not whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/entry.h"
#include "db/status.h"

struct catalogue_view;

/* The words for `kind`, NULL-terminated. Static. */
extern const char *const history_kinds[];
#define HISTORY_KIND_ALL "all" /* in a query: every kind */

/* One change. Strings are valid for the call that receives it. */
struct history_change {
    uint64_t revision;
    int64_t at;
    const char *by, *kind, *via;
    const char *request_id, *note; /* NULL: none */
    uint64_t undoes;               /* an undo: of this change; else 0 */
    uint64_t restores;             /* a restore: to the state after this change; else 0 */
    uint64_t undone_by;            /* the latest undo of it that is not undone itself; 0: none */
    const char *site; /* origin of the one site that it touched; NULL: several, none or unknown */
    const char *list; /* path of the index or urlset that it is about itself; NULL: none */
    const char *loc;  /* an entry that it touched, where they are few; else NULL */
    uint64_t created, updated, removed;
    uint64_t unchanged; /* where `whole` */
    bool whole;         /* it touched nothing but what was asked for */
};

/* The first revision from which on the history of a site (0: of any) is complete. Changes of a site
 * that needs the most space may be dropped sooner: see below. */
enum catalogue_status catalogue_view_history_from(struct catalogue_view *v, int64_t site_id,
                                                  uint64_t *from);
/* Writes a sentence: there is no such change, and the history begins at `from`. */
#define HISTORY_GONE_SIZE 128u
void history_report_dropped(char out[HISTORY_GONE_SIZE], uint64_t from);
/* The sites whose history begins later, because changes were dropped for space (site 0: changes of
 * several sites, or of none). The latest beginning first, HISTORY_SHORTENED_MAX at most. */
#define HISTORY_SHORTENED_MAX 100u
typedef void history_each_shortened(void *context, int64_t site_id, uint64_t from);
enum catalogue_status catalogue_view_history_shortened(struct catalogue_view *v,
                                                       history_each_shortened *each, void *context);

typedef void history_each_change(void *context, const struct history_change *change);

/* Changes, the newest first. With a site or index, the counts are of that alone. */
struct history_query {
    int64_t site_id;  /* 0: any */
    int64_t index_id; /* 0: any; else of site_id */
    /* NULL: any, but "check" only with a loc; kind "all": any, with "check"; with a loc, those that
     * touched that entry */
    const char *by, *kind, *loc;
    int64_t since, until; /* Unix time, both included; 0: any */
    uint64_t after;       /* only before this revision; 0: from the newest */
    size_t limit;
};
/* How many changes and parts of changes one call reads at most: about ten milliseconds. */
#define HISTORY_LOOK_MAX 2000u
/* Calls `each` for what is found. It ends at the limit, or where it has looked at HISTORY_LOOK_MAX:
 * then `*next` is where to go on (`after`), else 0. */
enum catalogue_status catalogue_view_history(struct catalogue_view *v,
                                             const struct history_query *query,
                                             history_each_change *each, void *context,
                                             uint64_t *looked_at, uint64_t *next);

/* What a change did to one entry; NULL: it was not there. Valid for the call. */
typedef void history_each_row(void *context, const struct entry_record *before,
                              const struct entry_record *after);

/* One change; NOT_FOUND where the history does not have it, or it touched nothing of the site (0:
 * any). */
enum catalogue_status catalogue_view_history_change(struct catalogue_view *v, uint64_t revision,
                                                    int64_t site_id, history_each_change *each,
                                                    void *context);
/* Its rows of the site (0: any) in one part, about a thousand, in the order in which they were
 * written; parts count from 1. `*more` where there is another part. An entry that was touched again
 * much later in the change is reported again. */
enum catalogue_status catalogue_view_history_rows(struct catalogue_view *v, uint64_t revision,
                                                  int64_t site_id, uint64_t number,
                                                  history_each_row *each, void *context,
                                                  bool *more);

/* What differs in an index between two revisions, entry by entry in no order, as far as the changes
 * after `from` up to `to` show. */
struct history_difference {
    int64_t site_id, index_id;
    uint64_t from, to;
    history_each_row *each;
    /* Called repeatedly with the number of bytes that go to a file beside the catalogue next, which
     * is gone in the end; false: CANCELLED. NULL: it goes on. */
    bool (*goes_on)(void *context, size_t bytes);
    void *context;
};
/* NOT_FOUND where the history does not reach that far. What does not fit into some 50 MB of memory
 * goes to files, about twice what the history has of it. FULL where that is of no use, because too
 * many locs were made to share their hash. */
enum catalogue_status catalogue_view_history_diff(struct catalogue_view *v,
                                                  const struct history_difference *wanted);
