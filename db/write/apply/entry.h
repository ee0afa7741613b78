/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Registers one entry, in steps: its place, the stored entry, room for it, the write. Used by
 * single registrations, bulks and replaces. Internal to db/; the writer's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/read/row.h"
#include "db/tx/tx.h"
#include "db/write/occupancy.h"
#include "server/rules/grant.h"

enum put_outcome {
    PUT_UNCHANGED,
    PUT_CREATED,
    PUT_UPDATED,
    PUT_MOVED,
    PUT_KNOWN, /* the entry exists although expect_new: nothing was written, begin again without it
                */
};

struct put {
    /* Input. */
    const struct entry *entry;
    enum list_kind list;    /* LIST_URLSET: it is a page URL */
    const char *index_name; /* NULL: by scope, or where it is registered */
    int64_t owner;          /* of the entry of a page of a urlset; 0: by the names below */
    const char *source;     /* owner of a new entry that names none */
    int64_t takes_over;     /* the entry's new owner; 0: the owner stays */
    struct grant grant;     /* the caller's rights */
    bool pass_frozen;       /* see struct change */
    bool normalised;        /* the loc is in normal form already, and only split */
    bool of_set;            /* guard_moves will check its move out of another index */
    bool expect_new; /* skip the lookup, since the insert shows whether it exists (bulk, for speed)
                      */

    /* Found by entry_locate: RULE_OK or why not. */
    enum rule_code code;
    bool forbidden;
    const char *field;
    const struct registry *registry; /* owns the pointers below */
    struct url url;
    const struct registry_site *site;
    const struct registry_index *index; /* its index from now on */
    const struct registry_index *from;  /* the existing index that has it now; NULL: none */
    struct put_row row;                 /* found: registered, maybe in a removed index */

    /* Found by put_room, for an entry that is new in `index`. */
    struct occupancy_index *occupancy;
    uint32_t weight;
    uint32_t position;
    bool relocates; /* it moves within its list, since its page has no room for the larger row */

    /* Done by put_write: `row` is then the entry as stored. */
    enum put_outcome outcome;
    rule_set remarks; /* on differences to the stored entry */
};

/* The same, into `out`; if another source owns the entry, with the source's name and the index. */
enum catalogue_status put_explain(struct tx *tx, const struct put *put, char *out, size_t size);

/* Validates and looks up; reads only. OK also if a rule rejects it: see `code`. */
enum catalogue_status entry_locate(struct tx *tx, struct put *put);
/* For a single entry or a bulk's, after entry_locate: rejects with OUTSIDE_TOKEN an entry that a
 * token for its own entries does not own, or would create for another owner. */
enum catalogue_status put_check_owner(struct tx *tx, struct put *put);
/* Finds a position if one is needed; reads only. RULE_SITE_FULL or RULE_POSITION: none exists. */
enum catalogue_status put_room(struct tx *tx, struct put *put);
/* Whether the upsert would change the entry or move it to another list. */
bool put_changes(const struct tx *tx, const struct put *put);
/* Computes lastmod, digest and extensions of the row after this upsert. */
void put_merge(const struct tx *tx, const struct put *put, struct put_row *out);
/* Writes. Only after entry_locate and put_room have set RULE_OK. */
enum catalogue_status put_write(struct tx *tx, struct put *put);
/* Called when the entry was written: prepares the next one in the same `put`, for put_write.
 * `*more` false: no other follows. */
typedef enum catalogue_status put_next(void *context, bool *more);
/* put_write, then `next`, and so on while the entries are new: up to some number of them are
 * inserted by one statement (put_run.c), within which `next` is called. `*more`: `next` has
 * prepared an entry that is not written yet. With PUT_KNOWN, `next` was not called. */
enum catalogue_status put_write_run(struct tx *tx, struct put *put, put_next *next, void *context,
                                    bool *more);
/* On the writer's connection, before put_write_run. `tx` stays where it is. */
enum catalogue_status put_run_init(struct tx *tx);

/* The steps of an insert, for put_run.c: makes the row; then either completes the entry or, if
 * (site, loc) exists, sets PUT_KNOWN. */
enum catalogue_status put_make_row(struct tx *tx, struct put *put);
enum catalogue_status put_inserted(struct tx *tx, struct put *put);
enum catalogue_status put_is_known(struct tx *tx, struct put *put);
/* Looks a loc up in a site or urlset (list_scope). */
enum catalogue_status put_find(struct tx *tx, int64_t scope, const char *loc, struct put_row *row);
/* Reads the current row of a statement with ENTRY_COLUMNS. */
void put_row_read(struct tx *tx, sqlite3_stmt *statement, struct put_row *row);
/* Copies a row into a record that owns its strings. On failure the record owns nothing. */
enum catalogue_status put_record(struct tx *tx, int64_t site_id, const char *loc,
                                 const struct put_row *row, struct entry_record *out);
/* Removes a row from an existing list: as one of a set of changes, or (put_remove) as a single
 * removal, which lowers the shrink guard's peak. */
enum catalogue_status put_release(struct tx *tx, const struct registry_index *list,
                                  const struct put_row *row, const char *loc);
enum catalogue_status put_remove(struct tx *tx, const struct registry_index *list,
                                 const struct put_row *row, const char *loc);
/* The bytes of a stored row in a page of its list. */
uint32_t put_row_weight(const struct registry_index *list, const struct put_row *row,
                        const char *loc);
/* Drops a removed index's row of a loc that is now registered in another list. */
enum catalogue_status put_drop_remains(struct tx *tx, int64_t address, const char *loc);

/* ---- pages of urlsets as entries (page_entry.c)
 *
 * Each page with rows is an entry of the urlset's index, in the same transaction, so that no view
 * shows one without the other. The entry is made with the first row of the page: if the index has
 * no room for it, the row is rejected before anything is written. At the end of the change
 * urlset_settle sets the entry's lastmod, or removes the entry of an empty page: once for each
 * page, however many of its rows changed, so that a page that a replace empties and fills again
 * keeps its entry. An undo does not restore such entries: they follow from the rows that it
 * restores. */

/* occupancy_find for a list of either kind; `*code` is OK, RULE_SITE_FULL or RULE_URLSET_FULL. A
 * urlset gets a new page only if the index has a place for its entry. */
enum catalogue_status urlset_find(struct tx *tx, const struct registry_index *list,
                                  struct occupancy_index *occupancy,
                                  const struct occupancy_room *room, uint32_t *position,
                                  enum rule_code *code);
/* occupancy_reserve, after urlset_find; makes the entry of a new page. */
enum catalogue_status urlset_reserve(struct tx *tx, const struct registry_index *list,
                                     struct occupancy_index *occupancy, uint32_t position,
                                     uint32_t weight);
/* The end of a change that is kept: updates the entries of the pages that it touched. */
enum catalogue_status urlset_settle(struct tx *tx);
/* The urlset is removed: removes the entries of its pages. May reject the change, like a list that
 * takes too long. */
enum catalogue_status urlset_leave(struct tx *tx, const struct registry_index *urlset,
                                   const struct change *change, struct change_result *result);
/* Its removal is undone: restores these entries, or rejects the change. */
enum catalogue_status urlset_return(struct tx *tx, const struct registry_index *urlset,
                                    const struct change *change, struct change_result *result);

/* Reads a date as Unix seconds; false for a malformed one. Pure. */
bool urlset_read_time(const char *text, size_t len, int64_t *out);
/* Whether a row of a urlset with expires_s is too old. The age counts from the date of the row's
 * news, else from its lastmod, else from its registration. */
bool urlset_is_expired(const struct tx *tx, const struct put *put);
/* Records the age of a row that was written. */
enum catalogue_status urlset_record_age(struct tx *tx, const struct registry_index *list,
                                        const struct put_row *row);
