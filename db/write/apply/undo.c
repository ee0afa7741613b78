/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Undoing a change, and restoring an index: rows are restored as they were before. The writer's
 * thread.
 *
 * An undo reads the rows of a change from the last one to the first and restores each alone: it
 * removes added entries and restores removed ones, with their id, serial and dates. So each
 * position that it needs is free again. The exception is the undo of a restore, which may have
 * moved an entry several times and has one row for it: that entry may get another position. Entries
 * that a registration would be rejected for now are not restored. Entries that were changed since
 * stay, unless the undo overwrites. A restore does the same for all changes of an index since a
 * revision, newest first, so that the oldest state of an entry remains.
 *
 * Memory: one part of the history. Time: limited like that of a list (list_ends). */
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
    const struct registry *registry; /* borrowed: an undo of entries changes none of it */
    int64_t only_index;              /* 0: any */
    int64_t revision;                /* of the current change */
    bool of_source;                  /* a source made it */
    bool of_split;                   /* a split made it: its rows are not files */
    int64_t split_by;                /* the source of the split */
    int64_t group;                   /* of a change in steps; 0: a single step */
    bool later;                      /* a step was undone before this one */
    bool has_files;                  /* the history has states of its files */
    uint64_t done;
    struct history_part part; /* the current part */
};

static bool is_to_end(const struct undo *u)
{
    return u->result->status != CATALOGUE_OK;
}

/* ---- one row */

static bool same_text(const char *a, bool has_b, const char *b)
{
    return (a != NULL) == has_b && (!a || strcmp(a, b) == 0);
}

/* True if the entry equals the image, at any position of its index; `image` NULL: if it does not
 * exist. */
static bool is_as(const struct undo *u, const struct put_row *row,
                  const struct history_image *image)
{
    if (!image || !row->found)
        return !image && !row->found;
    return id_address_index(row->address) == id_address_index(image->address) &&
           row->source == image->source && row->serial == image->serial &&
           row->registered_at == image->registered_at && row->changed_at == image->changed_at &&
           same_text(history_text_of(&u->part, image->lastmod), row->has_lastmod, row->lastmod) &&
           same_text(history_text_of(&u->part, image->digest), row->has_digest, row->digest) &&
           same_text(history_text_of(&u->part, image->extensions), row->extensions != NULL,
                     row->extensions);
}

static void report_conflict(struct undo *u, const char *loc, enum rule_code code)
{
    struct rejection rejection = {.line = u->done, .loc = loc, .code = code, .field = "loc"};
    snprintf(rejection.detail, sizeof rejection.detail, "%s", rule_code_sentence(code));
    u->result->rejected++;
    findings_refuse(&u->result->findings, &rejection);
}

static void bind_image(const struct undo *u, sqlite3_stmt *row, int64_t address,
                       const struct history_image *image)
{
    sqlite3_bind_int64(row, 1, address);
    statement_bind_text(row, 2, history_text_of(&u->part, image->lastmod));
    statement_bind_text(row, 3, history_text_of(&u->part, image->digest));
    sqlite3_bind_int64(row, 4, image->source);
    sqlite3_bind_int64(row, 5, image->serial);
    sqlite3_bind_int64(row, 6, image->registered_at);
    sqlite3_bind_int64(row, 7, image->changed_at);
    statement_bind_text(row, 8, history_text_of(&u->part, image->extensions));
}

/* The restored row: the members from which its age counts. */
static struct put_row row_as(const struct undo *u, int64_t address,
                             const struct history_image *image)
{
    const char *lastmod = history_text_of(&u->part, image->lastmod);
    struct put_row row = {.found = true,
                          .address = address,
                          .registered_at = image->registered_at,
                          .has_lastmod = lastmod != NULL,
                          .extensions = history_text_of(&u->part, image->extensions),
                          .extensions_len = image->extensions.len};
    snprintf(row.lastmod, sizeof row.lastmod, "%s", lastmod ? lastmod : "");
    return row;
}

static uint32_t weight_of(const struct registry_index *list, const struct history_row *old,
                          const char *loc)
{
    return occupancy_weight(list->kind, loc, old->loc.len, old->before.extensions.len);
}

/* Restores an entry that is still at its position. */
static enum catalogue_status put_back_here(struct undo *u, const struct registry_index *index,
                                           const struct history_row *old, const char *loc,
                                           const struct put_row *now)
{
    const struct history_image *image = &old->before;
    struct tx *tx = u->tx;
    const char *lastmod = history_text_of(&u->part, image->lastmod);
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_PUT_BACK);
    if (!row)
        return tx_failure(tx);
    bind_image(u, row, image->address, image);
    enum catalogue_status status = statement_run(row);
    tx->changed = true;
    struct occupancy_index *occupancy;
    if (status == CATALOGUE_OK)
        status = occupancy_index(tx, index->site_id, index->id, &occupancy);
    if (status != CATALOGUE_OK)
        return status;
    if (same_text(lastmod, now->has_lastmod, now->lastmod) &&
        same_text(history_text_of(&u->part, image->extensions), now->extensions != NULL,
                  now->extensions))
        occupancy_touch_unseen(tx, occupancy);
    else
        status = occupancy_reweigh(tx, occupancy, id_address_position(image->address),
                                   put_row_weight(index, now, loc), weight_of(index, old, loc));
    if (status != CATALOGUE_OK)
        return status;
    const struct put_row is = row_as(u, image->address, image);
    return urlset_record_age(tx, index, &is);
}

/* Restores a removed entry to its index, at its position if that is free. */
static enum catalogue_status restore_entry(struct undo *u, const struct registry_index *index,
                                           const struct history_row *old, const char *loc)
{
    struct tx *tx = u->tx;
    struct occupancy_index *occupancy;
    struct occupancy_room room = {.weight = weight_of(index, old, loc),
                                  .max_pages = registry_max_pages(u->registry, index),
                                  .wanted = id_address_position(old->before.address)};
    uint32_t position;
    enum rule_code code = RULE_OK;
    enum catalogue_status status = occupancy_index(tx, index->site_id, index->id, &occupancy);
    if (status == CATALOGUE_OK)
        status = urlset_find(tx, index, occupancy, &room, &position, &code);
    if (status != CATALOGUE_OK)
        return status;
    if (code != RULE_OK) {
        result_refuse(u->result, code, "loc");
        return CATALOGUE_OK;
    }
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_BRING_BACK);
    if (!row)
        return tx_failure(tx);
    bind_image(u, row, id_address(index->id, position), &old->before);
    sqlite3_bind_int64(row, 9, old->site);
    statement_bind_text(row, 10, loc);
    status = statement_run(row);
    tx->changed = true;
    if (status == CATALOGUE_OK)
        status = urlset_reserve(tx, index, occupancy, position, room.weight);
    if (status != CATALOGUE_OK)
        return status;
    const struct put_row is = row_as(u, id_address(index->id, position), &old->before);
    return urlset_record_age(tx, index, &is);
}

static enum catalogue_status remove_row(struct undo *u, const struct put_row *now,
                                        const struct registry_index *index, const char *loc)
{
    u->tx->changed = true;
    if (!index) /* a row of a removed index */
        return put_drop_remains(u->tx, now->address, loc);
    return put_release(u->tx, index, now, loc);
}

static void count(struct undo *u, bool was, bool is, uint64_t by)
{
    if (was && is)
        u->result->updated += by;
    else if (is)
        u->result->created += by;
    else if (was)
        u->result->removed += by;
}

/* `from`, `to`: whether the entry exists before and after a step. A restore counts the result of
 * all steps: corrects the count of an entry that an earlier step restored. */
static enum catalogue_status count_step(struct undo *u, const char *loc, bool from, bool to)
{
    bool was = from;
    if (u->change->kind == CHANGE_RESTORE) {
        sqlite3_stmt *row = tx_statement(u->tx, ST_UNDONE_ADD);
        if (!row)
            return tx_failure(u->tx);
        statement_bind_text(row, 1, loc);
        sqlite3_bind_int(row, 2, from);
        enum catalogue_status status = statement_run(row);
        if (status != CATALOGUE_OK)
            return status;
        if (sqlite3_changes64(u->tx->db) == 0) {
            int64_t first = from;
            row = tx_statement(u->tx, ST_UNDONE_FIND);
            if (!row)
                return tx_failure(u->tx);
            statement_bind_text(row, 1, loc);
            status = statement_number(row, from, &first);
            if (status != CATALOGUE_OK)
                return status;
            was = first != 0;
            count(u, was, from, UINT64_MAX); /* one less */
        }
    }
    count(u, was, to, 1);
    return CATALOGUE_OK;
}

/* ---- the files of a source */

static sqlite3_stmt *of_entry(struct undo *u, enum statement which, int64_t first, int64_t site,
                              const char *loc)
{
    sqlite3_stmt *row = tx_statement(u->tx, which);
    int at = 1;
    if (!row)
        return NULL;
    if (first >= 0)
        sqlite3_bind_int64(row, at++, first);
    sqlite3_bind_int64(row, at++, site);
    statement_bind_text(row, at, loc);
    return row;
}

static enum catalogue_status run_of_entry(struct undo *u, enum statement which, int64_t first,
                                          const struct history_row *old, const char *loc)
{
    sqlite3_stmt *row = of_entry(u, which, first, old->site, loc);
    return row ? statement_run(row) : tx_failure(u->tx);
}

static enum catalogue_status run_of_source(struct undo *u, enum statement which,
                                           const struct history_row *old, const char *loc)
{
    sqlite3_stmt *row = of_entry(u, which, -1, old->site, loc);
    if (!row)
        return tx_failure(u->tx);
    sqlite3_bind_int64(row, 3, old->has_after ? old->after.source : old->before.source);
    return statement_run(row);
}

/* Restores the old state of the file; the next scan that may write reads the file again and
 * compares. A file whose entry the change created is forgotten. */
static enum catalogue_status put_file_back(struct undo *u, const struct history_row *old,
                                           const char *loc)
{
    if ((!u->of_source && !u->has_files) || u->of_split)
        return CATALOGUE_OK;
    int64_t source = old->has_after ? old->after.source : old->before.source;
    enum catalogue_status status = check_file_expand(u->tx, source, loc, u->revision, old->site);
    if (status == CATALOGUE_OK)
        status = recorder_keep_file_of(u->tx->recorder, u->tx, source, old->site, loc);
    if (status == CATALOGUE_OK && u->has_files)
        status = run_of_entry(u, ST_FILE_COUNT_BACK, u->revision, old, loc);
    if (status == CATALOGUE_OK && u->has_files)
        status = run_of_entry(u, ST_FILE_BRING_BACK, u->revision, old, loc);
    bool made = u->of_source && !old->has_before;
    if (status == CATALOGUE_OK && made)
        status = run_of_source(u, ST_FILE_COUNT_OUT, old, loc);
    if (status == CATALOGUE_OK && made)
        status = run_of_source(u, ST_FILE_TAKE_OUT, old, loc);
    if (status == CATALOGUE_OK && u->of_source)
        status = run_of_source(u, ST_FETCH_AGAIN, old, loc);
    return status;
}

static void refuse(struct undo *u, const char *word, const char *sentence)
{
    result_decline(u->result, CATALOGUE_CONFLICT, sentence);
    u->result->conflict = word;
}

/* Whether the row must be left to its source: the next scan would restore it, except in a frozen
 * list. */
static bool is_for_source(struct undo *u, const struct registry_index *from,
                          const struct registry_index *to)
{
    if (!u->of_source || ((!from || registry_is_frozen(u->registry, from)) &&
                          (!to || registry_is_frozen(u->registry, to))))
        return false;
    refuse(u, "source-decides",
           "a source made this change, and its next scan would make it again; put its files back, "
           "or freeze the index or urlset first: after the thaw they are read again");
    return true;
}

/* Whether its page has room for the old row. (Its list is loaded: a row of it was read before.) */
static bool stays_in_page(const struct undo *u, const struct registry_index *list,
                          const struct history_row *old, const char *loc, const struct put_row *now)
{
    struct occupancy_index *occupancy;
    return list->kind == LIST_INDEX ||
           (occupancy_index(u->tx, list->site_id, list->id, &occupancy) == CATALOGUE_OK &&
            occupancy_may_grow(occupancy, id_address_position(now->address),
                               put_row_weight(list, now, loc), weight_of(list, old, loc)));
}

/* Restores the entry `now` to the state of `old` before the change; `to` NULL: removes it. */
static enum catalogue_status put_back(struct undo *u, const struct history_row *old,
                                      const char *loc, const struct put_row *now,
                                      const struct registry_index *to)
{
    const struct registry_index *from =
        now->found ? registry_list_by_id(u->registry, id_address_index(now->address)) : NULL;
    if (is_for_source(u, from, to) ||
        result_frozen(u->result, u->change, registry_freeze(u->registry, from)) ||
        result_frozen(u->result, u->change, registry_freeze(u->registry, to)))
        return CATALOGUE_OK;
    enum catalogue_status status = count_step(u, loc, from != NULL, to != NULL);
    if (status == CATALOGUE_OK && to && now->found && now->address == old->before.address &&
        stays_in_page(u, to, old, loc, now))
        return put_back_here(u, to, old, loc, now);
    if (status == CATALOGUE_OK && now->found)
        status = remove_row(u, now, from, loc);
    if (status == CATALOGUE_OK && to)
        status = restore_entry(u, to, old, loc);
    return status;
}

/* The code that a registration would get now: the site may have lost a host, or got a page with
 * that URL. */
static enum rule_code evaluate_place(const struct undo *u, const char *loc,
                                     const struct registry_index *to)
{
    struct url url;
    if (!url_split(loc, strlen(loc), &url))
        return RULE_LOC_MALFORMED;
    return registry_place_in(u->registry, &url, to);
}

static bool touches(const struct history_row *row, int64_t index)
{
    return (row->has_before && id_address_index(row->before.address) == index) ||
           (row->has_after && id_address_index(row->after.address) == index);
}

/* Whether it is the entry of a urlset's page, which follows from the rows of that page. */
static bool follows(const struct history_row *row)
{
    return (row->has_before && row->before.source < 0) || (row->has_after && row->after.source < 0);
}

static enum catalogue_status undo_row(struct undo *u, const struct history_row *old)
{
    const char *loc = history_text_of(&u->part, old->loc);
    int64_t only_site = u->change->grant.site_id;
    struct put_row now;
    const struct registry_index *urlset =
        old->site < 0 ? registry_list_by_id(u->registry, -old->site) : NULL;
    int64_t site = urlset ? urlset->site_id : old->site;
    if (follows(old) || (only_site != 0 && site != only_site) ||
        (u->only_index != 0 && !touches(old, u->only_index)))
        return CATALOGUE_OK;
    if (site < 0) {
        report_conflict(u, loc, RULE_URLSET_UNKNOWN);
        return CATALOGUE_OK;
    }
    enum catalogue_status status = put_find(u->tx, old->site, loc, &now);
    if (status != CATALOGUE_OK)
        return status;
    /* An entry of a removed index cannot be restored. */
    const struct registry_index *to =
        old->has_before ? registry_list_by_id(u->registry, id_address_index(old->before.address))
                        : NULL;
    bool stays = now.found && old->has_before && now.address == old->before.address;
    bool is_before = is_as(u, &now, old->has_before && to ? &old->before : NULL);
    if (is_before && (stays || !now.found)) {
        u->result->unchanged++;
        return CATALOGUE_OK;
    }
    enum rule_code code = to && !stays ? evaluate_place(u, loc, to) : RULE_OK;
    if (code != RULE_OK) {
        report_conflict(u, loc, code);
        return CATALOGUE_OK;
    }
    if (!is_before && !is_as(u, &now, old->has_after ? &old->after : NULL)) {
        report_conflict(u, loc, RULE_CHANGED_SINCE);
        if (!u->undo->overwrite)
            return CATALOGUE_OK;
    }
    status = put_back(u, old, loc, &now, to);
    return status == CATALOGUE_OK && !is_to_end(u) ? put_file_back(u, old, loc) : status;
}

/* ---- the rows of a change */

static enum catalogue_status undo_part(struct undo *u, const void *bytes, size_t len)
{
    history_part_clear(&u->part);
    if (!history_part_unpack(&u->part, bytes, len))
        return u->part.failed ? CATALOGUE_NO_MEMORY : CATALOGUE_CORRUPT;
    enum catalogue_status status = CATALOGUE_OK;
    if (u->of_split && u->part.count > 0)
        u->split_by = u->part.rows[0].has_after ? u->part.rows[0].after.source
                                                : u->part.rows[0].before.source;
    for (uint32_t i = u->part.count; i-- > 0 && status == CATALOGUE_OK && !is_to_end(u);) {
        status = undo_row(u, &u->part.rows[i]);
        if (++u->done % APPLY_LOOK == 0 && list_ends(u->tx, u->change, u->result))
            break;
    }
    return status;
}

/* Undoes the rows in the blob of the first column, which stays valid meanwhile. */
static enum catalogue_status undo_blob(struct undo *u, sqlite3_stmt *row)
{
    bool found;
    enum catalogue_status status = statement_first(row, &found);
    const void *bytes = found ? sqlite3_column_blob(row, 0) : NULL;
    size_t len = found ? (size_t)sqlite3_column_bytes(row, 0) : 0;
    if (status == CATALOGUE_OK && len > 0)
        status = undo_part(u, bytes, len);
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
    sqlite3_stmt *row = tx_statement(u->tx, ST_HISTORY_FIND);
    if (!row)
        return tx_failure(u->tx);
    sqlite3_bind_int64(row, 1, revision);
    enum catalogue_status status = statement_first(row, &out->found);
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

static enum catalogue_status undo_rows(struct undo *u, int64_t revision, const struct line *line)
{
    int64_t files = 0;
    enum catalogue_status status = tx_number(u->tx, ST_HISTORY_FILES_ANY, 0, &files, revision);
    if (status != CATALOGUE_OK)
        return status;
    u->revision = revision;
    u->of_source = line->is_scan;
    u->of_split = line->is_split;
    u->has_files = files != 0;
    if (line->parts == 0) {
        sqlite3_stmt *row = tx_statement(u->tx, ST_HISTORY_FEW);
        if (!row)
            return tx_failure(u->tx);
        sqlite3_bind_int64(row, 1, revision);
        return undo_blob(u, row);
    }
    for (int64_t part = line->parts; part > 0 && status == CATALOGUE_OK && !is_to_end(u); part--) {
        sqlite3_stmt *row = tx_statement(u->tx, ST_HISTORY_PART);
        if (!row)
            return tx_failure(u->tx);
        sqlite3_bind_int64(row, 1, revision);
        sqlite3_bind_int64(row, 2, part);
        status = undo_blob(u, row);
    }
    return status;
}

static bool is_for_undo(struct undo *u, const struct line *line)
{
    if (!line->has_rows)
        refuse(u, "not-undoable",
               "only changes of entries and removals of indexes and sites can be undone");
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
        refuse(u, "not-undoable", "the history no longer has all of its steps");
        return CATALOGUE_OK;
    }
    status = undo_rows(u, at, &line);
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
            return u->group != 0 ? undo_step(u) : undo_rows(u, revision, &line);
    }
    return status;
}

/* All changes of the index after the revision, the newest first. */
static enum catalogue_status restore_all(struct undo *u, const struct registry_index *index)
{
    int64_t to = (int64_t)u->undo->revision, revision = INT64_MAX;
    enum catalogue_status status = CATALOGUE_OK;
    while (!is_to_end(u)) {
        struct line line;
        status = tx_number(u->tx, ST_HISTORY_LAST_OF, 0, &revision, index->site_id, to, revision,
                           index->id);
        if (status != CATALOGUE_OK || revision == 0)
            return status;
        status = read_line(u, revision, &line);
        if (status == CATALOGUE_OK && !line.found)
            status = CATALOGUE_CORRUPT;
        /* A change without rows was, for example, the creation of the index. */
        if (status == CATALOGUE_OK && line.has_rows)
            status = undo_rows(u, revision, &line);
        if (status != CATALOGUE_OK)
            return status;
        if (list_ends(u->tx, u->change, u->result))
            break;
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
    u->only_index = index->id;
    sqlite3_stmt *clear = tx_statement(u->tx, ST_UNDONE_CLEAR);
    status = clear ? statement_run(clear) : tx_failure(u->tx);
    return status == CATALOGUE_OK ? restore_all(u, index) : status;
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
    if (status != CATALOGUE_OK)
        return status;
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
