/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Collects the rows of a dry run before it is rolled back. */
#include "db/write/preview.h"

#include <stdlib.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/history/rows.h"
#include "db/read/row.h"
#include "db/write/apply/entry.h"

static bool removes_whole(const struct change *change)
{
    return change->kind == CHANGE_INDEX_REMOVE || change->kind == CHANGE_SITE_REMOVE;
}

enum catalogue_status preview_begin(struct preview *p, struct tx *tx, const struct change *change)
{
    const struct registry *registry;
    *p = (struct preview){.own = NULL};
    if (!change->dry_run || !change->wants_preview || !apply_alone(change->kind))
        return CATALOGUE_OK;
    enum catalogue_status status = tx_registry(tx, &registry);
    if (status != CATALOGUE_OK)
        return status;
    p->registry = registry_ref(registry);
    if (tx->recorder != NULL || removes_whole(change) || !recorder_is_supported())
        return CATALOGUE_OK;
    p->own = tx->recorder = recorder_new(tx->db);
    if (p->own == NULL)
        return CATALOGUE_NO_MEMORY;
    if (tx->log == NULL) /* otherwise the log's effects have the hook, and pass rows on */
        recorder_listen(p->own);
    return CATALOGUE_OK;
}

void preview_done(struct preview *p, struct tx *tx)
{
    registry_unref(p->registry);
    if (p->own == NULL)
        return;
    recorder_free(p->own);
    tx->recorder = NULL;
}

/* ---- one row */

/* Room for one more row, which the caller counts once it is filled; NULL: out of memory. */
static struct change_row *next_row(struct change_result *result)
{
    if (result->preview == NULL)
        result->preview = calloc(CHANGE_PREVIEW_ROWS, sizeof *result->preview);
    return result->preview != NULL ? &result->preview[result->preview_count] : NULL;
}

static size_t extension_bytes(const struct entry_record *record)
{
    return record->loc != NULL && record->extensions != NULL ? strlen(record->extensions) : 0;
}

static void count_row(struct change_result *result)
{
    const struct change_row *row = &result->preview[result->preview_count++];
    result->preview_bytes += extension_bytes(&row->before) + extension_bytes(&row->after);
}

static bool has_room(const struct change_result *result)
{
    return result->preview_count < CHANGE_PREVIEW_ROWS &&
           result->preview_bytes < CHANGE_PREVIEW_BYTES;
}

/* `scope`: the column `site` of a row. */
static bool is_visible(const struct preview *p, const struct change *change, int64_t scope,
                       const char *loc)
{
    const struct registry_index *urlset =
        scope < 0 ? registry_list_by_id(p->registry, -scope) : NULL;
    int64_t site = urlset != NULL ? urlset->site_id : scope;
    return grant_has_site(&change->grant, site) && grant_has_loc(&change->grant, loc);
}

static bool is_same(const struct entry_record *a, const struct entry_record *b)
{
    char etags[2][40];
    if (a->loc == NULL || b->loc == NULL)
        return a->loc == NULL && b->loc == NULL;
    catalogue_entry_etag(a, etags[0]);
    catalogue_entry_etag(b, etags[1]);
    return strcmp(etags[0], etags[1]) == 0;
}

/* A row of a removed index counts as missing. */
static enum catalogue_status make_record(const struct preview *p, struct tx *tx, const char *loc,
                                         const struct put_row *row, struct entry_record *out)
{
    const struct registry_index *list =
        row->found ? registry_list_by_id(p->registry, id_address_index(row->address)) : NULL;
    return list != NULL ? put_record(tx, list->site_id, loc, row, out) : CATALOGUE_OK;
}

static enum catalogue_status report_row(const struct preview *p, struct tx *tx,
                                        const struct history_part *part,
                                        const struct history_row *old, struct change_result *result)
{
    struct change_row *row = next_row(result);
    struct put_row was = {.found = false}, is;
    const char *loc = history_text_of(part, old->loc);
    if (row == NULL)
        return CATALOGUE_NO_MEMORY;
    if (old->has_before)
        was = recorder_row_of(part, &old->before);
    enum catalogue_status status = put_find(tx, old->site, loc, &is);
    if (was.source < 0 || (is.found && is.source < 0))
        return status; /* the entry of a urlset's page, which the change does not name */
    if (status == CATALOGUE_OK)
        status = make_record(p, tx, loc, &was, &row->before);
    if (status == CATALOGUE_OK)
        status = make_record(p, tx, loc, &is, &row->after);
    if (status == CATALOGUE_OK && !is_same(&row->before, &row->after)) {
        count_row(result);
        return CATALOGUE_OK;
    }
    change_row_done(row);
    return status;
}

/* ---- the removal of an index or a site */

static enum catalogue_status report_removed(const struct preview *p, struct tx *tx,
                                            const struct change *change, sqlite3_stmt *at,
                                            struct change_result *result)
{
    struct change_row *row = next_row(result);
    struct put_row was;
    char loc[LOC_MAX_CHARS + 1];
    int64_t scope = sqlite3_column_int64(at, 1);
    const char *text = (const char *)sqlite3_column_text(at, 2);
    if (row == NULL || text == NULL)
        return CATALOGUE_NO_MEMORY;
    size_t len = strnlen(text, LOC_MAX_CHARS);
    memcpy(loc, text, len);
    loc[len] = '\0';
    if (!is_visible(p, change, scope, loc))
        return CATALOGUE_OK;
    put_row_read(tx, at, &was);
    enum catalogue_status status = make_record(p, tx, loc, &was, &row->before);
    if (status == CATALOGUE_OK)
        count_row(result);
    return status;
}

/* Most rows that are read: more than are reported, since the token may see only few of them. */
#define ROWS_LOOKED_AT (CHANGE_PREVIEW_ROWS * 10)

static enum catalogue_status report_index(const struct preview *p, struct tx *tx,
                                          const struct change *change, int64_t index,
                                          uint32_t *looked_at, struct change_result *result)
{
    sqlite3_stmt *rows =
        tx_bind(tx, ST_ENTRIES_OF_INDEX, id_address(index, 0), id_address(index, UINT32_MAX));
    if (rows == NULL)
        return tx_failure(tx);
    bool found;
    enum catalogue_status status = CATALOGUE_OK;
    while (has_room(result) && *looked_at < ROWS_LOOKED_AT &&
           (status = statement_first(rows, &found)) == CATALOGUE_OK && found) {
        ++*looked_at;
        status = report_removed(p, tx, change, rows, result);
        if (status != CATALOGUE_OK)
            break;
    }
    sqlite3_reset(rows);
    return status;
}

static enum catalogue_status report_removal(const struct preview *p, struct tx *tx,
                                            const struct change *change,
                                            struct change_result *result)
{
    uint32_t looked_at = 0;
    if (change->kind == CHANGE_INDEX_REMOVE)
        return report_index(p, tx, change, change->index_remove.index_id, &looked_at, result);
    const struct registry_site *site =
        registry_site_by_id(p->registry, change->site_remove.site_id);
    enum catalogue_status status = CATALOGUE_OK;
    const struct registry_index *list;
    for (size_t i = 0;
         site != NULL && status == CATALOGUE_OK && (list = registry_site_list(site, i)) != NULL;
         i++)
        status = report_index(p, tx, change, list->id, &looked_at, result);
    return status;
}

enum catalogue_status preview_report(struct preview *p, struct tx *tx, const struct change *change,
                                     struct change_result *result)
{
    if (p->registry == NULL || result->status != CATALOGUE_OK)
        return CATALOGUE_OK;
    if (removes_whole(change))
        return report_removal(p, tx, change, result);
    const struct history_part *part;
    enum catalogue_status status = recorder_first_rows(tx->recorder, &part);
    /* Earlier steps of the change have already reported rows. */
    for (uint32_t i = 0;
         status == CATALOGUE_OK && part != NULL && i < part->count && has_room(result); i++)
        if (is_visible(p, change, part->rows[i].site, history_text_of(part, part->rows[i].loc)))
            status = report_row(p, tx, part, &part->rows[i], result);
    return status;
}
