/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Undoing a change, and restoring an index: entries are restored as they were before. The writer's
 * thread.
 *
 * First the rows of the change, or of all changes of the index since a revision, are collected from
 * the last one to the first in a temporary table, so that the oldest state of each entry remains.
 * Entries that are in that state already are not touched. Each other one is changed where it is, or
 * released; only then are the released ones placed, with their id, serial and dates. So each
 * position that they need is free again, in whatever order entries changed places, unless an entry
 * that stays has it: then they get the lowest free position, after all others have theirs.
 *
 * Entries that a registration would be rejected for now are not restored. Entries that were changed
 * since stay, unless the undo overwrites.
 *
 * Memory: one part of the history, one entry. Time: limited like that of a list (list_ends). */
#include <stdio.h>
#include <string.h>

#include "db/history.h"
#include "db/history/recorder.h"
#include "db/history/rows.h"
#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/guard.h"

struct undo {
    struct tx *tx;
    const struct change *change;
    const struct change_undo *undo;
    struct change_result *result;
    const struct registry *registry;   /* borrowed: an undo of entries changes none of it */
    const struct registry_index *only; /* a restore's; NULL: any */
    int64_t revision;                  /* of the current change */
    bool of_source;                    /* a source made it */
    bool of_split;                     /* a split made it: its rows are not files */
    int64_t split_by;                  /* the source of the split */
    int64_t group;                     /* of a change in steps; 0: a single step */
    bool later;                        /* a step was undone before this one */
    bool has_files;                    /* the history has states of its files */
    bool any_files;                    /* of one of the changes */
    uint64_t done;
    struct history_part part; /* the current part */
    /* What is done with each of its rows. */
    enum catalogue_status (*each)(struct undo *u, const struct history_row *old);

    /* The current entry of the table. */
    int64_t site;
    char loc[LOC_MAX_CHARS + 1];
    struct put_row wanted;           /* found: it is to be there */
    struct str extensions;           /* of `wanted` */
    const struct registry_index *to; /* the list of `wanted`; NULL: it is to be gone */
    bool since;                      /* it was changed since */
    bool sourced;                    /* a source made one of the changes */
    bool anywhere;                   /* entries whose position is taken get another one */
    int64_t touched, touched_site;   /* the last source that was touched; mostly one */
};

static bool is_to_end(const struct undo *u)
{
    return u->result->status != CATALOGUE_OK;
}

/* ---- one row */

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static const char *lastmod_of(const struct put_row *row)
{
    return row->has_lastmod ? row->lastmod : NULL;
}

static const char *digest_of(const struct put_row *row)
{
    return row->has_digest ? row->digest : NULL;
}

/* True if both are the same entry, at any position of their index. */
static bool is_same(const struct put_row *a, const struct put_row *b)
{
    if (!a->found || !b->found)
        return a->found == b->found;
    return id_address_index(a->address) == id_address_index(b->address) && a->source == b->source &&
           a->serial == b->serial && a->registered_at == b->registered_at &&
           a->changed_at == b->changed_at && same_text(lastmod_of(a), lastmod_of(b)) &&
           same_text(digest_of(a), digest_of(b)) && same_text(a->extensions, b->extensions);
}

/* ---- the table */

/* Leaves the entry as it is. */
static enum catalogue_status drop_entry(struct undo *u)
{
    return tx_run(u->tx, ST_UNDONE_DROP, u->site, u->loc);
}

static void read_entry(struct undo *u, sqlite3_stmt *row)
{
    const char *loc = row_text(row, 2);
    u->site = sqlite3_column_int64(row, 1);
    snprintf(u->loc, sizeof u->loc, "%s", loc ? loc : "");
    put_row_read(u->tx, row, &u->wanted);
    str_clear(&u->extensions);
    if (u->wanted.extensions) {
        str_append(&u->extensions, u->wanted.extensions, u->wanted.extensions_len);
        u->wanted.extensions = str_text(&u->extensions);
    }
    u->since = sqlite3_column_int(row, 10) != 0;
    u->sourced = sqlite3_column_int(row, 11) != 0;
    /* An entry of a removed index cannot be restored. */
    u->to = u->wanted.address != 0
                ? registry_list_by_id(u->registry, id_address_index(u->wanted.address))
                : NULL;
    u->wanted.found = u->to != NULL;
}

/* Does this with each entry of the table; after `restore_entry` only with those that it released.
 */
static enum catalogue_status each_entry(struct undo *u, bool released,
                                        enum catalogue_status (*restore)(struct undo *u))
{
    enum statement which = released ? ST_UNDONE_NEXT_RELEASED : ST_UNDONE_NEXT;
    u->site = INT64_MIN;
    u->loc[0] = '\0';
    for (;;) {
        sqlite3_stmt *row;
        enum catalogue_status status = tx_first(u->tx, which, &row, u->site, u->loc);
        if (row != NULL)
            read_entry(u, row);
        bool skips = row != NULL && released && sqlite3_column_int(row, 12) == 0;
        sqlite3_reset(row);
        if (status != CATALOGUE_OK || row == NULL)
            return status;
        if (u->extensions.failed)
            status = CATALOGUE_NO_MEMORY;
        else if (!skips)
            status = restore(u);
        if (status != CATALOGUE_OK || is_to_end(u))
            return status;
        if (++u->done % APPLY_LOOK == 0 && list_ends(u->tx, u->change, u->result))
            return CATALOGUE_OK;
    }
}

/* ---- one entry */

/* Restores an entry that is still at its position. */
static enum catalogue_status put_back_here(struct undo *u, const struct put_row *now)
{
    struct tx *tx = u->tx;
    struct occupancy_index *occupancy;
    enum catalogue_status status =
        tx_run(tx, ST_ENTRY_PUT_BACK, ENTRY_VALUES(u->site, u->loc, &u->wanted));
    tx->changed = true;
    if (status == CATALOGUE_OK)
        status = occupancy_index(tx, u->to->site_id, u->to->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    if (same_text(lastmod_of(now), lastmod_of(&u->wanted)) &&
        same_text(now->extensions, u->wanted.extensions))
        occupancy_touch_unseen(tx, occupancy);
    else
        status = occupancy_reweigh(tx, occupancy, id_address_position(now->address),
                                   put_row_weight(u->to, now, u->loc),
                                   put_row_weight(u->to, &u->wanted, u->loc));
    return status == CATALOGUE_OK ? urlset_record_age(tx, u->to, &u->wanted) : status;
}

/* Places an entry that has none, at its position if that is free. */
static enum catalogue_status place(struct undo *u)
{
    struct tx *tx = u->tx;
    struct occupancy_index *occupancy;
    uint32_t position;
    enum rule_code code = RULE_OK;
    if (!u->to)
        return CATALOGUE_OK;
    struct occupancy_room room = {.weight = put_row_weight(u->to, &u->wanted, u->loc),
                                  .max_pages = registry_max_pages(u->registry, u->to),
                                  .wanted = id_address_position(u->wanted.address)};
    enum catalogue_status status = occupancy_index(tx, u->to->site_id, u->to->id, &occupancy);
    if (status == CATALOGUE_OK)
        status = urlset_find(tx, u->to, occupancy, &room, &position, &code);
    if (status != CATALOGUE_OK || (!u->anywhere && (code != RULE_OK || position != room.wanted)))
        return status;
    if (code != RULE_OK) {
        result_refuse(u->result, code, "loc");
        return CATALOGUE_OK;
    }
    u->wanted.address = id_address(u->to->id, position);
    status = tx_run(tx, ST_ENTRY_BRING_BACK, ENTRY_VALUES(u->site, u->loc, &u->wanted));
    tx->changed = true;
    if (status == CATALOGUE_OK)
        status = urlset_reserve(tx, u->to, occupancy, position, room.weight);
    return status == CATALOGUE_OK ? urlset_record_age(tx, u->to, &u->wanted) : status;
}

static enum catalogue_status remove_row(struct undo *u, const struct put_row *now,
                                        const struct registry_index *index)
{
    u->tx->changed = true;
    if (!index) /* a row of a removed index */
        return put_drop_remains(u->tx, now->address, u->loc);
    return put_release(u->tx, index, now, u->loc);
}

static enum catalogue_status touch(struct undo *u, const struct put_row *row)
{
    if (!row->found || (row->source == u->touched && u->site == u->touched_site))
        return CATALOGUE_OK;
    u->touched = row->source;
    u->touched_site = u->site;
    return source_touch(u->tx, u->site, row->source);
}

static void count(struct undo *u, bool was, bool is)
{
    if (was && is)
        u->result->updated++;
    else if (is)
        u->result->created++;
    else if (was)
        u->result->removed++;
}

static void refuse(struct undo *u, const char *word, const char *sentence)
{
    result_decline(u->result, CATALOGUE_CONFLICT, sentence);
    u->result->conflict = word;
}

/* Whether the entry must be left to its source: the next scan would restore it, except in a frozen
 * list. */
static bool is_for_source(struct undo *u, const struct registry_index *from)
{
    if (!u->sourced || ((!from || registry_is_frozen(u->registry, from)) &&
                        (!u->to || registry_is_frozen(u->registry, u->to))))
        return false;
    refuse(
        u, "source-decides",
        "a source made this change, and its next scan would repeat it; restore the source's files, "
        "or freeze the index or urlset first: once it is thawed, the source is read again");
    return true;
}

/* Whether its page has room for the old row. */
static bool stays_in_page(const struct undo *u, const struct put_row *now)
{
    struct occupancy_index *occupancy;
    return u->to->kind == LIST_INDEX ||
           (occupancy_index(u->tx, u->to->site_id, u->to->id, &occupancy) == CATALOGUE_OK &&
            occupancy_may_grow(occupancy, id_address_position(now->address),
                               put_row_weight(u->to, now, u->loc),
                               put_row_weight(u->to, &u->wanted, u->loc)));
}

/* The code that a registration would get now: the site may have lost a host, or got a page with
 * that URL. */
static enum rule_code evaluate_place(const struct undo *u)
{
    struct url url;
    if (!url_split(u->loc, strlen(u->loc), &url))
        return RULE_LOC_MALFORMED;
    return registry_place_in(u->registry, &url, u->to);
}

/* Whether the entry to be restored is of a folder's file that does not exist any more, as after an
 * API removal that the folder followed: no scan would ever remove it again, and crawlers would get
 * 404. The undo of a scan restores the file's row with the entry. */
static enum catalogue_status lacks_file(struct undo *u, bool is_new, bool *lacks)
{
    int64_t found = 0;
    *lacks = false;
    if (!is_new || u->change->kind != CHANGE_UNDO || u->of_source || u->has_files || !u->to ||
        u->to->kind != LIST_INDEX || u->wanted.source <= 0)
        return CATALOGUE_OK;
    enum catalogue_status status =
        tx_number(u->tx, ST_FOLDER_LACKS_FILE, 0, &found, u->site, u->loc, u->wanted.source);
    *lacks = found != 0;
    return status;
}

/* Restores the entry where it is, or releases it for `place`. An entry that stays as it is is
 * dropped from the table; so is one that differs only in its position, if an entry that stays has
 * that position. */
static enum catalogue_status restore_entry(struct undo *u)
{
    struct put_row now;
    enum catalogue_status status = put_find(u->tx, u->site, u->loc, &now);
    if (status != CATALOGUE_OK)
        return status;
    const struct registry_index *from =
        now.found ? registry_list_by_id(u->registry, id_address_index(now.address)) : NULL;
    bool same = is_same(&now, &u->wanted);
    bool stays = now.found && u->to && now.address == u->wanted.address;
    bool elsewhere = u->only && from != u->only && u->to != u->only;
    int64_t taken = 0;
    if (same && now.found && !stays)
        status = tx_number(u->tx, ST_UNDONE_TAKEN, 0, &taken, u->wanted.address);
    if (status != CATALOGUE_OK)
        return status;
    if (elsewhere || (same && (stays || !now.found || taken != 0))) {
        u->result->unchanged++;
        return drop_entry(u);
    }
    enum rule_code code = u->to && !stays ? evaluate_place(u) : RULE_OK;
    bool left = code != RULE_OK, lacks;
    status = lacks_file(u, !now.found, &lacks);
    if (status != CATALOGUE_OK)
        return status;
    if (!left && (lacks || (!same && u->since))) {
        code = RULE_CHANGED_SINCE;
        left = lacks || !u->undo->overwrite;
    }
    if (code != RULE_OK)
        result_conflict(u->result, u->done, u->loc, code);
    if (left)
        return drop_entry(u);
    if (is_for_source(u, from) ||
        result_frozen(u->result, u->change, registry_freeze(u->registry, from)) ||
        result_frozen(u->result, u->change, registry_freeze(u->registry, u->to)))
        return CATALOGUE_OK;
    count(u, from != NULL, u->to != NULL);
    status = touch(u, &now);
    if (status == CATALOGUE_OK)
        status = touch(u, &u->wanted);
    if (status != CATALOGUE_OK)
        return status;
    if (stays && stays_in_page(u, &now))
        return put_back_here(u, &now);
    return now.found ? remove_row(u, &now, from) : CATALOGUE_OK;
}

/* ---- the files of a source */

/* Restores the old state of the file of a restored entry; the next scan that may write reads the
 * file again and compares. A file whose entry the change created is forgotten. */
static enum catalogue_status put_file_back(struct undo *u, const struct history_row *old)
{
    const char *loc = history_text_of(&u->part, old->loc);
    int64_t source = old->has_after ? old->after.source : old->before.source;
    struct tx *tx = u->tx;
    int64_t restored = 0;
    enum catalogue_status status = tx_number(tx, ST_UNDONE_FIND, 0, &restored, old->site, loc);
    if (restored == 0)
        return status;
    if (status == CATALOGUE_OK)
        status = check_file_expand(tx, source, loc, u->revision, old->site);
    if (status == CATALOGUE_OK)
        status = recorder_keep_file_of(tx->recorder, tx, source, old->site, loc);
    if (status == CATALOGUE_OK && u->has_files)
        status = tx_run(tx, ST_FILE_COUNT_BACK, u->revision, old->site, loc);
    if (status == CATALOGUE_OK && u->has_files)
        status = tx_run(tx, ST_FILE_BRING_BACK, u->revision, old->site, loc);
    bool made = u->of_source && !old->has_before;
    if (status == CATALOGUE_OK && made)
        status = tx_run(tx, ST_FILE_COUNT_OUT, old->site, loc, source);
    if (status == CATALOGUE_OK && made)
        status = tx_run(tx, ST_FILE_TAKE_OUT, old->site, loc, source);
    if (status == CATALOGUE_OK && u->of_source)
        status = tx_run(tx, ST_FETCH_AGAIN, old->site, loc, source);
    return status;
}

/* ---- the rows of a change */

/* Whether it is the entry of a urlset's page, which follows from the rows of that page. */
static bool follows(const struct history_row *row)
{
    return (row->has_before && row->before.source < 0) || (row->has_after && row->after.source < 0);
}

/* Whether the caller undoes this row. */
static bool is_meant(const struct undo *u, const struct history_row *old)
{
    int64_t only_site = u->change->grant.site_id;
    const struct registry_index *urlset =
        old->site < 0 ? registry_list_by_id(u->registry, -old->site) : NULL;
    int64_t site = urlset ? urlset->site_id : old->site;
    return !follows(old) && (only_site == 0 || site == only_site) &&
           (!u->only || history_row_touches(old, u->only->id));
}

/* Collects the old state of the entry; compares its present state with the newest row. */
static enum catalogue_status collect(struct undo *u, const struct history_row *old)
{
    const char *loc = history_text_of(&u->part, old->loc);
    struct put_row now, before = {.found = false}, after = {.found = false};
    if (old->site < 0 && !registry_list_by_id(u->registry, -old->site)) {
        result_conflict(u->result, u->done, loc, RULE_URLSET_UNKNOWN);
        return CATALOGUE_OK;
    }
    if (old->has_before)
        before = recorder_row_of(&u->part, &old->before);
    if (old->has_after)
        after = recorder_row_of(&u->part, &old->after);
    enum catalogue_status status = put_find(u->tx, old->site, loc, &now);
    if (status != CATALOGUE_OK)
        return status;
    return tx_run(u->tx, ST_UNDONE_ADD, ENTRY_VALUES(old->site, loc, &before),
                  !is_same(&now, &after), u->of_source);
}

static enum catalogue_status read_part(struct undo *u, const void *bytes, size_t len)
{
    history_part_clear(&u->part);
    if (!history_part_unpack(&u->part, bytes, len))
        return u->part.failed ? CATALOGUE_NO_MEMORY : CATALOGUE_CORRUPT;
    enum catalogue_status status = CATALOGUE_OK;
    if (u->of_split && u->part.count > 0)
        u->split_by = u->part.rows[0].has_after ? u->part.rows[0].after.source
                                                : u->part.rows[0].before.source;
    for (uint32_t i = u->part.count; i-- > 0 && status == CATALOGUE_OK && !is_to_end(u);) {
        if (is_meant(u, &u->part.rows[i]))
            status = u->each(u, &u->part.rows[i]);
        if (++u->done % APPLY_LOOK == 0 && list_ends(u->tx, u->change, u->result))
            break;
    }
    return status;
}

/* Reads the rows in the blob of the first column, which stays valid meanwhile. */
static enum catalogue_status read_blob(struct undo *u, enum catalogue_status status,
                                       sqlite3_stmt *row)
{
    const void *bytes = row != NULL ? sqlite3_column_blob(row, 0) : NULL;
    size_t len = row != NULL ? (size_t)sqlite3_column_bytes(row, 0) : 0;
    if (status == CATALOGUE_OK && len > 0)
        status = read_part(u, bytes, len);
    sqlite3_reset(row);
    return status;
}

/* A row of `history`. */
struct line {
    bool found;
    bool is_scan, is_split, has_rows;
    bool removes_index, removes_site;
    int64_t parts;
};

static enum catalogue_status read_line(struct undo *u, int64_t revision, struct line *out)
{
    static const char *const of_entries[] = {"registration", "removal", "list",
                                             "replace",      "undo",    "restore"};
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(u->tx, ST_HISTORY_FIND, &row, revision);
    out->found = row != NULL;
    const char *kind = out->found ? (const char *)sqlite3_column_text(row, 0) : NULL;
    if (out->found && !kind)
        status = CATALOGUE_NO_MEMORY;
    out->is_split = kind && strcmp(kind, "split") == 0;
    out->is_scan =
        kind && (strcmp(kind, "scan") == 0 || strcmp(kind, "check") == 0 || out->is_split);
    out->has_rows = out->is_scan;
    for (size_t i = 0; kind && i < sizeof of_entries / sizeof *of_entries; i++)
        out->has_rows |= strcmp(kind, of_entries[i]) == 0;
    out->removes_index =
        kind && (strcmp(kind, "index-remove") == 0 || strcmp(kind, "urlset-remove") == 0);
    out->removes_site = kind && strcmp(kind, "site-remove") == 0;
    out->parts = out->found ? sqlite3_column_int64(row, 1) : 0;
    /* The undo of a removal: it restored no rows. */
    if (kind && strcmp(kind, "undo") == 0 && sqlite3_column_int64(row, 2) == 0)
        out->has_rows = false;
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status read_rows(struct undo *u, int64_t revision, const struct line *line)
{
    int64_t files = 0;
    enum catalogue_status status = tx_number(u->tx, ST_HISTORY_FILES_ANY, 0, &files, revision);
    if (status != CATALOGUE_OK)
        return status;
    u->revision = revision;
    u->of_source = line->is_scan;
    u->of_split = line->is_split;
    u->has_files = files != 0;
    bool of_files = (u->of_source || u->has_files) && !u->of_split;
    u->any_files = u->any_files || of_files;
    if (u->each == put_file_back && !of_files)
        return CATALOGUE_OK;
    sqlite3_stmt *row;
    if (line->parts == 0) {
        status = tx_first(u->tx, ST_HISTORY_FEW, &row, revision);
        return read_blob(u, status, row);
    }
    for (int64_t part = line->parts; part > 0 && status == CATALOGUE_OK && !is_to_end(u); part--) {
        status = tx_first(u->tx, ST_HISTORY_PART, &row, revision, part);
        status = read_blob(u, status, row);
    }
    return status;
}

/* All changes of the index after the revision, the newest first. */
static enum catalogue_status read_all(struct undo *u)
{
    int64_t to = (int64_t)u->undo->revision, revision = INT64_MAX;
    enum catalogue_status status = CATALOGUE_OK;
    while (!is_to_end(u)) {
        struct line line;
        status = tx_number(u->tx, ST_HISTORY_LAST_OF, 0, &revision, u->only->site_id, to, revision,
                           u->only->id);
        if (status != CATALOGUE_OK || revision == 0)
            return status;
        status = read_line(u, revision, &line);
        if (status == CATALOGUE_OK && !line.found)
            status = CATALOGUE_CORRUPT;
        /* A change without rows was, for example, the creation of the index. */
        if (status == CATALOGUE_OK && line.has_rows)
            status = read_rows(u, revision, &line);
        if (status != CATALOGUE_OK)
            return status;
        if (list_ends(u->tx, u->change, u->result))
            break;
    }
    return status;
}

/* The rows that are undone, the newest first: of the change or, for a restore, of all. */
static enum catalogue_status read_undone(struct undo *u, int64_t revision, const struct line *line)
{
    return u->only ? read_all(u) : read_rows(u, revision, line);
}

static enum catalogue_status put_back(struct undo *u, int64_t revision, const struct line *line)
{
    enum catalogue_status status = tx_run(u->tx, ST_UNDONE_CLEAR);
    u->each = collect;
    if (status == CATALOGUE_OK)
        status = read_undone(u, revision, line);
    if (status == CATALOGUE_OK && !is_to_end(u))
        status = each_entry(u, false, restore_entry);
    for (int pass = 0; status == CATALOGUE_OK && !is_to_end(u) && pass < 2; pass++) {
        u->anywhere = pass > 0;
        status = each_entry(u, true, place);
    }
    u->each = put_file_back;
    if (status == CATALOGUE_OK && !is_to_end(u) && u->any_files)
        status = read_undone(u, revision, line);
    return status;
}

static bool is_for_undo(struct undo *u, const struct line *line)
{
    if (!line->has_rows)
        refuse(u, "not-undoable",
               "only changes of entries and removals of indexes, urlsets and sites can be undone");
    return u->result->status == CATALOGUE_OK;
}

/* The revision from which on the history of the site is complete. */
static enum catalogue_status kept_since(struct undo *u, int64_t site_id, uint64_t *from)
{
    int64_t since = 0;
    enum catalogue_status status = tx_number(u->tx, ST_HISTORY_SINCE_READ, 0, &since, site_id);
    *from = (uint64_t)since > u->tx->history_from ? (uint64_t)since : u->tx->history_from;
    return status;
}

static void report_dropped(struct undo *u, uint64_t from)
{
    char sentence[HISTORY_GONE_SIZE];
    history_report_dropped(sentence, from);
    result_decline(u->result, CATALOGUE_NOT_FOUND, sentence);
}

/* Whether a token of one site may see the change, and the site's history reaches that far. */
static enum catalogue_status is_known(struct undo *u, int64_t revision, bool *known, uint64_t *from)
{
    int64_t found = 1, site_id = u->change->grant.site_id;
    enum catalogue_status status = kept_since(u, site_id, from);
    if (status == CATALOGUE_OK && site_id != 0)
        status = tx_number(u->tx, ST_HISTORY_IN_SITE, 0, &found, site_id, revision);
    *known = found != 0 && (uint64_t)revision >= (site_id != 0 ? *from : u->tx->history_from);
    return status;
}

/* ---- steps */

/* Undoes the last step of a group that is left. */
static enum catalogue_status undo_step(struct undo *u)
{
    struct change_result *result = u->result;
    int64_t before = result->step_at != 0 ? (int64_t)result->step_at : INT64_MAX, at = 0;
    struct line line;
    enum catalogue_status status =
        tx_number(u->tx, ST_HISTORY_STEP_BEFORE, 0, &at, u->group, before);
    if (status == CATALOGUE_OK)
        status = read_line(u, at, &line);
    if (status != CATALOGUE_OK)
        return status;
    if (!line.found) {
        refuse(u, "not-undoable", "the history no longer has all steps of this change");
        return CATALOGUE_OK;
    }
    status = put_back(u, at, &line);
    result->step_at = (uint64_t)at;
    if (status == CATALOGUE_OK)
        status = tx_number(u->tx, ST_HISTORY_STEP_BEFORE, 0, &before, u->group, at);
    result->more = before != 0 && status == CATALOGUE_OK && !is_to_end(u);
    return status;
}

/* Records the step in the history, as part of the undo. */
static enum catalogue_status record_step(struct undo *u)
{
    if (u->group == 0 || !u->tx->changed || u->change->dry_run ||
        (!u->result->more && u->result->group == 0))
        return CATALOGUE_OK;
    return tx_record_step(u->tx, &u->result->group);
}

/* The first step checks the whole group with the guard. After the last step the source reads its
 * split files again. */
static enum catalogue_status check_group(struct undo *u, struct occupancy_index *i)
{
    int64_t net = 0;
    struct guard_case guard = {.before = i->high,
                               .max_removed = u->change->max_removed,
                               .of_urlset = i->kind == LIST_URLSET};
    enum catalogue_status status = CATALOGUE_OK;
    if (u->group != 0)
        status = tx_number(u->tx, ST_HISTORY_STEPS_SUM, 0, &net, u->group);
    else
        net = (int64_t)u->result->removed - (int64_t)u->result->created;
    if (status == CATALOGUE_OK && net > 0 && !u->later) {
        guard.removed = (uint64_t)net;
        guard.after = guard.before > guard.removed ? guard.before - guard.removed : 0;
        status = occupancy_peak(u->tx, i, &guard.peak);
        if (status == CATALOGUE_OK && guard_check(u->tx, &guard, u->result))
            i->peak_reset = i->peak_reset || guard_approved(u->tx, &guard);
    }
    if (status == CATALOGUE_OK && u->of_split && !u->result->more)
        status = tx_run(u->tx, ST_FILES_READ_AGAIN, u->split_by);
    if (status == CATALOGUE_OK && u->of_split && !u->result->more)
        status = tx_run(u->tx, ST_SPLIT_FETCH_AGAIN, u->split_by);
    if (status == CATALOGUE_OK && u->of_split && !u->result->more)
        status = source_touch(u->tx, i->site->id, u->split_by);
    return status;
}

static enum catalogue_status undo_one(struct undo *u)
{
    int64_t revision = (int64_t)u->undo->revision;
    struct line line;
    bool known;
    uint64_t from;
    enum catalogue_status status = read_line(u, revision, &line);
    if (status == CATALOGUE_OK)
        status = is_known(u, revision, &known, &from);
    if (status != CATALOGUE_OK)
        return status;
    if (!line.found || !known)
        report_dropped(u, from);
    else if (line.removes_index || line.removes_site)
        return apply_unremove(u->tx, u->change, revision, u->result, line.removes_site);
    else if (is_for_undo(u, &line)) {
        status = tx_number(u->tx, ST_HISTORY_PART_OF, 0, &u->group, revision);
        if (status == CATALOGUE_OK)
            return u->group != 0 ? undo_step(u) : put_back(u, revision, &line);
    }
    return status;
}

static enum catalogue_status restore(struct undo *u)
{
    const char *name = u->change->index_name;
    int64_t only = u->change->grant.site_id;
    const struct registry_index *index =
        name ? registry_list_by_name(u->registry, name, u->change->list, NULL) : NULL;
    if (index ? !grant_has_site(&u->change->grant, index->site_id)
              : only != 0 && !(name && registry_is_name_of(u->registry, name, only))) {
        result_forbid(u->result);
        return CATALOGUE_OK;
    }
    if (!index) {
        if (u->change->list == LIST_URLSET)
            result_refuse(u->result, RULE_URLSET_UNKNOWN, "urlset");
        else
            result_refuse(u->result, RULE_INDEX_UNKNOWN, "index");
        return CATALOGUE_OK;
    }
    uint64_t from;
    enum catalogue_status status = kept_since(u, index->site_id, &from);
    if (status != CATALOGUE_OK)
        return status;
    if (u->undo->revision + 1 < from || u->undo->revision > u->tx->revision) {
        report_dropped(u, from);
        return CATALOGUE_OK;
    }
    u->only = index;
    return put_back(u, 0, NULL);
}

static bool is_urlset(const struct undo *u, int64_t id)
{
    const struct registry_index *list = registry_list_by_id(u->registry, id);
    return list && list->kind == LIST_URLSET;
}

/* Whether the group changed urlsets: then its other rows are the entries of their pages. */
static bool touches_urlsets(const struct undo *u)
{
    for (const struct occupancy_index *i = u->tx->occupancy->dirty; i; i = i->next_dirty)
        if (is_urlset(u, i->id))
            return true;
    return false;
}

/* Checks each index that lost entries with the guard. */
static enum catalogue_status hold_to_guard(struct undo *u)
{
    bool urlsets = u->of_split || (u->group != 0 && touches_urlsets(u));
    enum catalogue_status status = CATALOGUE_OK;
    for (struct occupancy_index *i = u->tx->occupancy->dirty;
         i && status == CATALOGUE_OK && !is_to_end(u); i = i->next_dirty) {
        struct guard_case guard = {.before = i->high,
                                   .after = i->entries,
                                   .removed = u->result->removed,
                                   .max_removed = u->change->max_removed,
                                   .of_urlset = i->kind == LIST_URLSET};
        if ((u->of_split || u->group != 0) && (is_urlset(u, i->id) || !urlsets)) {
            status = check_group(u, i);
            continue;
        }
        if (u->later)
            continue;
        if (u->result->removed == 1 && i->entries < i->high)
            occupancy_single_removal(i);
        else
            status = occupancy_peak(u->tx, i, &guard.peak);
        if (u->result->removed > 1 && status == CATALOGUE_OK &&
            guard_check(u->tx, &guard, u->result))
            i->peak_reset = i->peak_reset || guard_approved(u->tx, &guard);
    }
    return status;
}

enum catalogue_status apply_undo(struct tx *tx, const struct change *change,
                                 const struct change_undo *undo, struct change_result *result,
                                 bool *keep)
{
    struct undo u = {
        .tx = tx, .change = change, .undo = undo, .result = result, .later = result->step_at != 0};
    enum catalogue_status status = tx_registry(tx, &u.registry);
    result->more = false;
    if (status == CATALOGUE_OK)
        status = change->kind == CHANGE_UNDO ? undo_one(&u) : restore(&u);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = hold_to_guard(&u);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = record_step(&u);
    history_part_done(&u.part);
    str_done(&u.extensions);
    if (status != CATALOGUE_OK)
        return status;
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
