#include "db/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/id.h"

/* ---- reading the stream */

enum catalogue_status scan_read(struct scan *s, scan_pass *each, bool last)
{
    const struct source_file_stream *stream = s->change->files;
    struct source_file file;
    uint64_t done = 0;
    if (!stream->rewind(stream->context)) {
        reject_stream(s->result);
        return CATALOGUE_OK;
    }
    for (;;) {
        int more = stream->next(stream->context, &file);
        if (more < 0)
            reject_stream(s->result);
        if (more != 1)
            return CATALOGUE_OK;
        s->file = &file;
        enum catalogue_status status = scan_row_read(s);
        if (status == CATALOGUE_OK)
            status = each(s);
        if (status != CATALOGUE_OK)
            return status;
        done++;
        if (last)
            breathe(s->tx, s->change, done);
        else if (done % APPLY_BREATH == 0 && s->tx->breathe)
            s->tx->breathe(s->tx->breathe_context);
    }
}

/* ---- judging the file at hand */

static bool same_loc(const char *given, const char *kept)
{
    struct url url;
    return strcmp(given, kept) == 0 ||
           (url_parse(given, strlen(given), &url, NULL) == RULE_OK && strcmp(url.text, kept) == 0);
}

/* True where the URL of the folder, or the site of its index, is not what it was. */
static bool is_relocated(const struct scan *s)
{
    if (!s->file->loc)
        return false;
    return (s->index && s->index->site_id != s->kept.site) || !same_loc(s->file->loc, s->kept.loc);
}

enum catalogue_status scan_find_loss(struct scan *s, struct put_row *row)
{
    row->found = false;
    if (!s->kept.found || s->kept.site == 0 || !s->kept.has_loc ||
        s->file->state == SOURCE_FILE_QUARANTINED ||
        (s->file->state == SOURCE_FILE_LISTED && !is_relocated(s)))
        return CATALOGUE_OK;
    enum catalogue_status status = put_find(s->tx, s->kept.site, s->kept.loc, row);
    if (row->found && (row->source != s->owner ||
                       !registry_index_by_id(s->registry, id_address_index(row->address))))
        row->found = false;
    return status;
}

enum catalogue_status scan_place(struct scan *s, bool *foreign)
{
    const struct source_file *file = s->file;
    struct put *put = &s->put;
    *foreign = false;
    s->entry = (struct entry){.loc = file->loc,
                              .lastmod = file->lastmod,
                              .lastmod_state = file->lastmod ? FIELD_SET : FIELD_NULL,
                              .position = POSITION_NONE};
    put->entry = &s->entry;
    put->index_name = s->change->index_name;
    put->source = s->change->source;
    if (!file->loc) {
        put->code = RULE_LOC_MISSING;
        put->field = "loc";
        return CATALOGUE_OK;
    }
    enum catalogue_status status = put_place(s->tx, put);
    *foreign = put->code == RULE_OK && put->from && put->row.source != s->owner;
    return status;
}

/* ---- what goes */

static enum catalogue_status take_out(struct scan *s)
{
    struct put_row row;
    enum catalogue_status status = scan_find_loss(s, &row);
    if (status != CATALOGUE_OK || !row.found)
        return status;
    const struct registry_index *index =
        registry_index_by_id(s->registry, id_address_index(row.address));
    s->result->removed++;
    return put_release(s->tx, index, row.address, s->kept.loc, strlen(s->kept.loc));
}

/* ---- what is there */

/* "is registered by …", with the name that the owner goes by. */
static enum catalogue_status explain(struct scan *s, char *out, size_t size)
{
    snprintf(out, size, "%s", rule_code_sentence(s->put.code));
    if (s->put.code != RULE_OWNED_BY_ANOTHER)
        return CATALOGUE_OK;
    sqlite3_stmt *name = tx_statement(s->tx, ST_SOURCE_NAME);
    if (!name)
        return tx_failure(s->tx);
    sqlite3_bind_int64(name, 1, s->put.row.source);
    bool found;
    enum catalogue_status status = statement_first(name, &found);
    const char *text = found ? (const char *)sqlite3_column_text(name, 0) : NULL;
    if (text && text[0] != '\0')
        snprintf(out, size, "is registered by \"%s\"; it stays theirs", text);
    sqlite3_reset(name);
    return status;
}

/* A good file without a place. Its row says what it holds, so that it can be tried again without
 * being read; told once, not with every try. */
static enum catalogue_status refuse(struct scan *s)
{
    struct rejection rejection = {.loc = s->file->loc, .code = s->put.code, .field = s->put.field};
    enum catalogue_status status = explain(s, rejection.detail, sizeof rejection.detail);
    if (status != CATALOGUE_OK)
        return status;
    struct source_file file = *s->file;
    file.state = SOURCE_FILE_QUARANTINED;
    file.problem = rule_code_word(s->put.code);
    file.detail = rejection.detail;
    file.line = file.column = 0;
    bool known = s->kept.found && strcmp(s->kept.problem, file.problem) == 0;
    bool same = s->kept.found && s->kept.has_loc && file.loc && same_loc(file.loc, s->kept.loc);
    s->result->rejected++;
    if (!known && s->change->on_reject)
        s->change->on_reject(s->change->context, &rejection);
    return scan_row_write(s, &file, same ? s->kept.site : 0, true);
}

static void count_put(struct scan *s)
{
    if (s->put.outcome == PUT_CREATED)
        s->result->created++;
    else if (s->put.outcome == PUT_UNCHANGED)
        s->result->unchanged++;
    else
        s->result->updated++;
}

static enum catalogue_status list_file(struct scan *s)
{
    struct put *put = &s->put;
    bool foreign;
    enum catalogue_status status = scan_place(s, &foreign);
    if (foreign) {
        put->code = RULE_OWNED_BY_ANOTHER;
        put->field = "loc";
    }
    if (status == CATALOGUE_OK)
        status = put_room(s->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    if (put->code != RULE_OK)
        return refuse(s);
    status = put_write(s->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    count_put(s);
    struct source_file file = *s->file;
    file.loc = put->url.text;
    return scan_row_write(s, &file, put->site->id, false);
}

static enum catalogue_status settle_file(struct scan *s)
{
    if (s->hold) {
        struct put_row row;
        enum catalogue_status status = scan_find_loss(s, &row);
        /* Its row stays as it is, so that the next scan finds the same difference. */
        if (status != CATALOGUE_OK || row.found)
            return status;
    }
    switch (s->file->state) {
    case SOURCE_FILE_LISTED:
        return list_file(s);
    case SOURCE_FILE_QUARANTINED:
        return s->kept.found ? scan_row_quarantine(s) : scan_row_write(s, s->file, 0, false);
    case SOURCE_FILE_GONE:
        return s->kept.found ? scan_row_delete(s) : CATALOGUE_OK;
    case SOURCE_FILE_EMPTY:
    case SOURCE_FILE_IGNORED:
        break;
    }
    return scan_row_write(s, s->file, 0, false);
}

/* ---- the whole */

/* Finds the index and the source's own id. A refusal is written into the result. */
static enum catalogue_status prepare(struct scan *s)
{
    const char *source = s->change->source, *name = s->change->index_name;
    enum catalogue_status status = tx_registry(s->tx, &s->registry);
    if (status != CATALOGUE_OK)
        return status;
    if (!source || entry_check_name(source, strlen(source)) != RULE_OK) {
        result_refuse(s->result, RULE_NAME, "source");
        return CATALOGUE_OK;
    }
    /* Rather than a refusal of every file: the index may be about to be made. */
    s->index = name ? registry_index_by_name(s->registry, name, NULL) : NULL;
    if (name && !s->index) {
        result_refuse(s->result, RULE_INDEX_UNKNOWN, "index");
        return CATALOGUE_OK;
    }
    return tx_source(s->tx, source, true, &s->owner);
}

static enum catalogue_status run_passes(struct scan *s)
{
    bool has_files;
    enum catalogue_status status = scan_state_has_files(s, &has_files);
    if (status == CATALOGUE_OK && has_files) /* else nothing can go */
        status = scan_guard_ask(s);
    if (status == CATALOGUE_OK && s->result->status == CATALOGUE_OK && s->removals > 0 && !s->hold)
        status = scan_read(s, take_out, false);
    if (status == CATALOGUE_OK && s->result->status == CATALOGUE_OK)
        status = scan_read(s, settle_file, true);
    if (status == CATALOGUE_OK && s->result->status == CATALOGUE_OK)
        status = scan_guard_settle(s);
    if (status == CATALOGUE_OK && s->result->status == CATALOGUE_OK)
        status = scan_state_write(s);
    return status;
}

enum catalogue_status apply_scan(struct tx *tx, const struct change *change,
                                 struct change_result *result, bool *keep)
{
    struct scan s = {.tx = tx, .change = change, .result = result};
    enum catalogue_status status = prepare(&s);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = run_passes(&s);
    free(s.indexes);
    if (status != CATALOGUE_OK)
        return status;
    result->changed = tx->changed;
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
