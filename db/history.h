/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The history of changes, read from a view: who made each change, and its effect. Part of
 * db/catalogue.h, whose rules hold. Changes before catalogue_view_history_from are missing or
 * incomplete. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/entry.h"
#include "db/status.h"

struct catalogue_view;

/* All words for `kind`, NULL-terminated. Static. */
extern const char *const history_kinds[];
#define HISTORY_KIND_ALL "all" /* in a query: every kind */

/* One change. Strings are valid for the call that receives it. */
struct history_change {
    uint64_t revision;
    int64_t at;
    const char *by, *kind, *via;
    const char *request_id, *note; /* NULL: none */
    uint64_t undoes;               /* for an undo: the change that it undid; else 0 */
    uint64_t restores;             /* for a restore: the change whose state it restored; else 0 */
    uint64_t undone_by;            /* the latest undo of it that is not undone itself; 0: none */
    const char *site; /* origin of the one site that it touched; NULL: several, none or unknown */
    const char
        *list; /* path of the index or urlset that was created, changed or removed; NULL: none */
    const char *loc; /* one of the entries that it touched, if they are few; else NULL */
    uint64_t created, updated, removed;
    uint64_t unchanged; /* valid if `whole` */
    bool whole; /* the counts are of the whole change: all that it touched matches the query */
};

/* The revision from which on the history of a site (0: of all sites) is complete. The site whose
 * history takes most space loses changes sooner: see below. */
enum catalogue_status catalogue_view_history_from(struct catalogue_view *v, int64_t site_id,
                                                  uint64_t *from);
/* Writes the sentence that there is no such change, and that the history begins at `from`. */
#define HISTORY_GONE_SIZE 128u
void history_report_dropped(char out[HISTORY_GONE_SIZE], uint64_t from);
/* The sites whose history begins later than that of all, because changes were dropped for space
 * (site 0: changes of several sites, or of none). The latest beginning first, HISTORY_SHORTENED_MAX
 * at most. */
#define HISTORY_SHORTENED_MAX 100u
typedef void history_each_shortened(void *context, int64_t site_id, uint64_t from);
enum catalogue_status catalogue_view_history_shortened(struct catalogue_view *v,
                                                       history_each_shortened *each, void *context);

typedef void history_each_change(void *context, const struct history_change *change);

/* A query for changes, newest first. With a site or index, the counts are of that alone. */
struct history_query {
    int64_t site_id;  /* 0: any */
    int64_t index_id; /* 0: any; else an index of site_id */
    /* NULL: any. `kind`: NULL leaves out "check" unless there is a loc; "all" includes it. `loc`:
     * only changes that touched this entry */
    const char *by, *kind, *loc;
    int64_t since, until; /* Unix time, both included; 0: any */
    uint64_t after;       /* only before this revision; 0: from the newest */
    size_t limit;
};
/* Most changes and parts of changes that one call reads: about ten milliseconds. */
#define HISTORY_LOOK_MAX 2000u
/* Calls `each` for each change found. Ends at the limit, or after HISTORY_LOOK_MAX: then `*next` is
 * the `after` of the next call, else 0. */
enum catalogue_status catalogue_view_history(struct catalogue_view *v,
                                             const struct history_query *query,
                                             history_each_change *each, void *context,
                                             uint64_t *looked_at, uint64_t *next);

/* The effect of a change on one entry; NULL: the entry did not exist. Valid for the call. */
typedef void history_each_row(void *context, const struct entry_record *before,
                              const struct entry_record *after);

/* One change; NOT_FOUND if the history does not have it, or if it touched nothing of the site (0:
 * any). */
enum catalogue_status catalogue_view_history_change(struct catalogue_view *v, uint64_t revision,
                                                    int64_t site_id, history_each_change *each,
                                                    void *context);
/* The rows of one part of a change, of the site (0: any): about a thousand, in the order in which
 * they were written. `number` counts parts from 1; `*more`: there is another part. An entry that
 * the change touched again much later is reported again. */
enum catalogue_status catalogue_view_history_rows(struct catalogue_view *v, uint64_t revision,
                                                  int64_t site_id, uint64_t number,
                                                  history_each_row *each, void *context,
                                                  bool *more);

/* The difference of an index between two revisions, entry by entry in no order, by the changes
 * after `from` up to `to`. */
struct history_difference {
    int64_t site_id, index_id;
    uint64_t from, to;
    history_each_row *each;
    /* Called before bytes are written to a temporary file beside the catalogue, with their number;
     * false: CANCELLED. NULL: not called. */
    bool (*goes_on)(void *context, size_t bytes);
    void *context;
};
/* NOT_FOUND if the history does not reach that far. Uses about 50 MB of memory, then temporary
 * files, about twice as large as the rows in the history. FULL if even these do not suffice,
 * because too many locs share a hash on purpose. */
enum catalogue_status catalogue_view_history_diff(struct catalogue_view *v,
                                                  const struct history_difference *wanted);
