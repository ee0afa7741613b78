/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One entry on its way into the catalogue: where it goes, what is there, room for it, the write.
 * A single registration, a bulk and a replace all go this way. Internal to db/; the writer's
 * thread. */
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
    PUT_KNOWN, /* expect_new was wrong; nothing was written: begin again without it */
};

struct put {
    /* Given. */
    const struct entry *entry;
    enum list_kind list;    /* LIST_URLSET: it is a page URL */
    const char *index_name; /* NULL: by scope, or where it is registered */
    int64_t owner;          /* of the entry of a page of a urlset; 0: by the names below */
    const char *source;     /* owner of a new entry that names none */
    int64_t takes_over;     /* the entry's owner from now on; 0: who has it */
    struct grant grant;     /* what the caller may touch */
    bool pass_frozen;       /* see struct change */
    bool normalised;        /* the loc is url_parse's own text (a stream's): only taken apart */
    bool of_set;            /* guard_moves checks what it moves out of another index */
    bool expect_new;        /* do not look it up: the insert will show (bulk, for speed) */

    /* Found by entry_locate: RULE_OK or why not. */
    enum rule_code code;
    bool forbidden;
    const char *field;
    const struct registry *registry; /* which the three below are of */
    struct url url;
    const struct registry_site *site;
    const struct registry_index *index; /* where it goes, or stays */
    const struct registry_index *from;  /* the live index that holds it now; NULL: none */
    struct put_row row;                 /* found: registered, maybe in a removed index */

    /* Found by put_room, for an entry that is new in `index`. */
    struct occupancy_index *occupancy;
    uint32_t weight;
    uint32_t position;
    bool relocates; /* it stays in its list, at another place: it has grown out of its page */

    /* Done by put_write: `row` is then the entry as stored. */
    enum put_outcome outcome;
    rule_set remarks; /* on how it differs from what was stored */
};

/* The message for a `code` that is not RULE_OK. Static. */
const char *put_why(const struct put *put);
/* The same, into `out`, and where another source owns the entry with its name and the index. */
enum catalogue_status put_explain(struct tx *tx, const struct put *put, char *out, size_t size);

/* Validates and looks up; reads only. OK also where a rule refuses: see `code`. */
enum catalogue_status entry_locate(struct tx *tx, struct put *put);
/* Of a single entry or a bulk's, behind entry_locate: refuses with OUTSIDE_TOKEN what a token for
 * its own entries did not make, or would make as another's. */
enum catalogue_status put_check_owner(struct tx *tx, struct put *put);
/* Finds a position where one is needed; reads only. RULE_SITE_FULL or RULE_POSITION otherwise. */
enum catalogue_status put_room(struct tx *tx, struct put *put);
/* Whether the upsert would leave the entry other than it is, or elsewhere in another list. */
bool put_changes(const struct tx *tx, const struct put *put);
/* What the row is to be after this upsert, as far as it follows from lastmod and extensions. */
void put_merge(const struct tx *tx, const struct put *put, struct put_row *out);
/* Writes. Only after both of the above said RULE_OK. */
enum catalogue_status put_write(struct tx *tx, struct put *put);
/* Looks a loc up in a site or urlset (list_scope). */
enum catalogue_status put_find(struct tx *tx, int64_t scope, const char *loc, struct put_row *row);
/* Reads the row of a statement of ENTRY_COLUMNS that stands on one. */
void put_row_read(struct tx *tx, sqlite3_stmt *statement, struct put_row *row);
/* Copies a row into a record that owns its strings. On failure the record owns nothing. */
enum catalogue_status put_record(struct tx *tx, int64_t site_id, const char *loc,
                                 const struct put_row *row, struct entry_record *out);
/* Takes a row out of a live list; as one of a set, or (put_remove) as a single removal, for which
 * the shrink guard's peak is lowered. */
enum catalogue_status put_release(struct tx *tx, const struct registry_index *list,
                                  const struct put_row *row, const char *loc);
enum catalogue_status put_remove(struct tx *tx, const struct registry_index *list,
                                 const struct put_row *row, const char *loc);
/* What a stored row weighs in its list. */
uint32_t put_row_weight(const struct registry_index *list, const struct put_row *row,
                        const char *loc);
/* Drops the row that a removed index left of a loc that is registered elsewhere now. */
enum catalogue_status put_drop_remains(struct tx *tx, int64_t address, const char *loc);

/* ---- pages of urlsets as entries (page_entry.c)
 *
 * Each page that has rows is an entry of the urlset's index, in the same transaction, so that no
 * view shows one without the other. It is made with the first row of the page: where the index has
 * no room for it, the row has none either, and that is known before anything is written. Its
 * lastmod is set, and an entry whose page is empty goes, at the end of the change (urlset_settle):
 * once for each page, however many of its rows the change touched, and what a replace empties and
 * fills again keeps its entry. An undo puts no such entry back: what it did to the rows decides. */

/* occupancy_find for a list of either kind; `*code` is OK, RULE_SITE_FULL or RULE_URLSET_FULL.
 * Of a urlset a page that has no row yet is taken only where its entry has a place. */
enum catalogue_status urlset_find(struct tx *tx, const struct registry_index *list,
                                  struct occupancy_index *occupancy,
                                  const struct occupancy_room *room, uint32_t *position,
                                  enum rule_code *code);
/* occupancy_reserve, behind urlset_find; makes the entry of a page that had no row. */
enum catalogue_status urlset_reserve(struct tx *tx, const struct registry_index *list,
                                     struct occupancy_index *occupancy, uint32_t position,
                                     uint32_t weight);
/* The end of a change that is kept: the entries of the pages that it touched are as these are. */
enum catalogue_status urlset_settle(struct tx *tx);
/* The urlset is removed: the entries of its pages go, or the result is refused, as with a list that
 * takes too long. */
enum catalogue_status urlset_leave(struct tx *tx, const struct registry_index *urlset,
                                   const struct change *change, struct change_result *result);
/* Its removal is undone: they come back, or the result is refused. */
enum catalogue_status urlset_return(struct tx *tx, const struct registry_index *urlset,
                                    const struct change *change, struct change_result *result);

/* Reads a date as Unix seconds; false for a malformed one. Pure. */
bool urlset_read_time(const char *text, size_t len, int64_t *out);
/* Age, of urlsets with expires_s: it counts from the date of a row's news, else from its
 * lastmod, else from when it was registered. */
bool urlset_is_expired(const struct tx *tx, const struct put *put);
/* The row was written at its address. */
enum catalogue_status urlset_record_age(struct tx *tx, const struct registry_index *list,
                                        const struct put_row *row);
