/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The results of polls of watched sitemaps, in the writer's transaction: rows, and the dates of
 * entries by compare and set. A date that somebody registered since the poll began is theirs and
 * stays; so does that of an entry with a digest, which says itself when it changed. Internal to
 * db/; the writer's thread.
 *
 * The state of a sitemap as a file of its source is mostly the same as the result of its polls.
 * Then the poll's row describes the file, too (listed), and the file has no row of its own. Code
 * that writes other values gives the file a row first; once both are equal again, the poll's row
 * describes it again. */
#include "db/check.h"

#include <stdio.h>
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"

struct checked {
    struct tx *tx;
    const struct change *change;
    struct change_result *result;
    const struct check_write *write;
    /* The stored row. */
    int64_t site, source, state, marks, full_at;
    bool list, listed;
    char loc[LOC_MAX_CHARS + 1];
    bool has_date; /* the row is `listed` and has a date */
    char date[LASTMOD_MAX_CHARS + 1];
};

/* ---- files that rows of polls describe */

enum catalogue_status check_file_expand(struct tx *tx, int64_t source, const char *path,
                                        int64_t revision, int64_t site)
{
    struct sql_value of = sql_not_0(revision), in = sql_not_0(site);
    enum catalogue_status status = tx_run(tx, ST_FILE_EXPAND, source, path, of, in);
    return status == CATALOGUE_OK ? tx_run(tx, ST_FILE_DETACH, source, path, of, in) : status;
}

enum catalogue_status check_file_drop(struct tx *tx, int64_t source, const char *path)
{
    return tx_run(tx, ST_FILE_DETACH, source, path, sql_not_0(0), sql_not_0(0));
}

/* Makes the poll's row describe the file, if both are equal. */
static enum catalogue_status attach_file(struct tx *tx, int64_t source, const char *path)
{
    enum catalogue_status status = tx_run(tx, ST_FILE_ATTACH, source, path);
    return status == CATALOGUE_OK && sqlite3_changes64(tx->db) > 0
               ? tx_run(tx, ST_FILE_DELETE, source, path)
               : status;
}

/* ---- rows */

/* A sitemap that the API registered, and that a source lists now, keeps its row. */
static enum catalogue_status adopt_registered(struct checked *c, int64_t source)
{
    return tx_run(c->tx, ST_CHECK_TAKE, c->write->record.site_id, source, c->write->record.loc);
}

static enum catalogue_status add(struct checked *c)
{
    const struct check_record *r = &c->write->record;
    int64_t source = 0;
    enum catalogue_status status = CATALOGUE_OK;
    if (r->source && r->source[0] != '\0')
        status = tx_source(c->tx, r->source, true, &source);
    if (status == CATALOGUE_OK && source != 0 && !r->list)
        status = adopt_registered(c, source);
    if (status == CATALOGUE_OK)
        status = tx_run(c->tx, ST_CHECK_ADD, r->site_id, source, r->list, r->loc, r->next_at,
                        r->interval_s, c->tx->now);
    return status == CATALOGUE_OK && source != 0 && !r->list ? attach_file(c->tx, source, r->loc)
                                                             : status;
}

static enum catalogue_status read_row(struct checked *c, bool *found)
{
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(c->tx, ST_CHECK_READ, &row, c->write->record.id);
    *found = row != NULL;
    if (row != NULL) {
        const char *loc = (const char *)sqlite3_column_text(row, 3);
        size_t len = loc ? strnlen(loc, LOC_MAX_CHARS) : 0;
        c->site = sqlite3_column_int64(row, 0);
        c->source = sqlite3_column_int64(row, 1);
        c->list = sqlite3_column_int(row, 2) != 0;
        c->state = sqlite3_column_int64(row, 4);
        c->marks = sqlite3_column_int64(row, 5);
        c->listed = sqlite3_column_int(row, 6) != 0;
        const char *date = (const char *)sqlite3_column_text(row, 7);
        c->has_date = date != NULL;
        c->full_at = sqlite3_column_int64(row, 8);
        snprintf(c->date, sizeof c->date, "%s", date ? date : "");
        memcpy(c->loc, loc ? loc : "", len);
        c->loc[len] = '\0';
    }
    sqlite3_reset(row);
    return status;
}

/* Columns of SQL indexes are written only if they changed: a poll without news writes one row and
 * no index. */
static enum catalogue_status write_place(struct checked *c)
{
    const struct check_record *r = &c->write->record;
    const char *loc = c->list ? r->loc : c->loc;
    if (c->state == r->state && c->marks == r->marks && strcmp(loc, c->loc) == 0)
        return CATALOGUE_OK;
    return tx_run(c->tx, ST_CHECK_PLACE, r->id, c->list ? loc : NULL, r->state, r->marks);
}

/* `forget`: the next poll treats the content as new; full_at stays what an undo has set it to
 * (FETCH_FORGET), so that a list is still recognised as undone. */
static enum catalogue_status write_row(struct checked *c, bool forget)
{
    static const uint64_t none[2];
    const struct check_record *r = &c->write->record;
    enum catalogue_status status = write_place(c);
    if (status != CATALOGUE_OK)
        return status;
    return tx_run(c->tx, ST_CHECK_WRITE, r->id, r->status, r->next_at, r->interval_s, r->failures,
                  r->checked_at, r->good_at, r->changed_at, forget ? c->full_at : r->full_at,
                  r->since, r->urls, r->bytes, r->one_lastmod, r->line, forget ? NULL : r->etag,
                  forget ? NULL : r->last_modified, forget ? none : r->hash,
                  forget ? none : r->dateless, r->newest_lastmod, r->remarks, r->problem,
                  r->detail);
}

static bool same_text(bool has, const char *a, const char *b)
{
    return b ? has && strcmp(a, b) == 0 : !has;
}

/* Moves the entry's date, if nobody has changed it meanwhile. `*frozen`: its list is frozen. */
static enum catalogue_status set_date(struct checked *c, const struct registry *registry,
                                      struct put_row *found, bool *frozen)
{
    const struct check_write *w = c->write;
    const struct registry_index *index =
        registry_index_by_id(registry, id_address_index(found->address));
    struct entry entry = {.loc = c->loc,
                          .lastmod = w->lastmod_to,
                          .lastmod_state = FIELD_SET,
                          .position = POSITION_NONE};
    struct put put = {.entry = &entry, .index = index, .from = index, .row = *found};
    if (index == NULL || found->source < 0 || found->has_digest ||
        (c->source != 0 && found->source != c->source) ||
        !same_text(found->has_lastmod, found->lastmod, w->lastmod_from) ||
        !url_split(c->loc, strlen(c->loc), &put.url)) /* its text goes into the history */
        return CATALOGUE_OK;
    *frozen = registry_is_frozen(registry, index);
    if (*frozen) {
        c->result->frozen++;
        return CATALOGUE_OK;
    }
    enum catalogue_status status = put_write(c->tx, &put);
    if (status != CATALOGUE_OK)
        return status;
    count_put(c->change, c->result, &put);
    *found = put.row;
    return CATALOGUE_OK;
}

/* Stores the entry's date as the date that its source knows. */
static enum catalogue_status write_date(struct checked *c, const struct put_row *entry)
{
    const char *date = entry->has_lastmod ? entry->lastmod : NULL;
    if (same_text(c->has_date, c->date, date))
        return CATALOGUE_OK;
    return tx_run(c->tx, ST_CHECK_DATE, c->write->record.id, date);
}

/* Updates the file of its source, so that the next scan compares with the new state. */
static enum catalogue_status write_file(struct checked *c, const struct put_row *entry)
{
    const struct check_record *r = &c->write->record;
    if (c->listed)
        return write_date(c, entry);
    return tx_run(c->tx, ST_FILE_CHECKED, c->source, c->loc,
                  entry->has_lastmod ? entry->lastmod : NULL, r->hash, r->urls, r->bytes,
                  r->newest_lastmod, r->one_lastmod, r->remarks);
}

static enum catalogue_status apply_result(struct checked *c, const struct registry *registry)
{
    bool found = false;
    struct put_row entry = {.found = false};
    enum catalogue_status status = read_row(c, &found);
    if (status != CATALOGUE_OK || !found) /* it is watched no more */
        return status;
    bool again = c->full_at != c->write->full_from;
    if (!c->list)
        status = put_find(c->tx, c->site, c->loc, &entry);
    bool owned = c->source != 0 && entry.found && entry.source == c->source;
    if (owned && c->write->lastmod_from && !entry.has_lastmod && !entry.has_digest)
        again = true;
    if (status == CATALOGUE_OK && entry.found && c->write->lastmod_to && !again)
        status = set_date(c, registry, &entry, &again);
    bool good = c->source != 0 && !c->list && c->write->record.state == CHECK_GOOD;
    bool of_file = good && owned && !again;
    if (status == CATALOGUE_OK && of_file)
        status = write_file(c, &entry);
    else if (status == CATALOGUE_OK && good && c->listed)
        status = check_file_expand(c->tx, c->source, c->loc, 0, 0);
    if (status == CATALOGUE_OK)
        status = write_row(c, again);
    return status == CATALOGUE_OK && of_file && !c->listed ? attach_file(c->tx, c->source, c->loc)
                                                           : status;
}

static enum catalogue_status drop(struct checked *c)
{
    bool found = false;
    enum catalogue_status status = read_row(c, &found);
    if (status == CATALOGUE_OK && found && c->listed)
        status = check_file_expand(c->tx, c->source, c->loc, 0, 0);
    return status == CATALOGUE_OK ? tx_run(c->tx, ST_CHECK_DROP, c->write->record.id) : status;
}

enum catalogue_status apply_check(struct tx *tx, const struct change *change,
                                  const struct change_check *check, struct change_result *result)
{
    const struct registry *registry;
    struct checked c = {.tx = tx, .change = change, .result = result};
    enum catalogue_status status = tx_registry(tx, &registry);
    for (size_t i = 0; i < check->count && status == CATALOGUE_OK; i++) {
        c.write = &check->writes[i];
        switch (c.write->kind) {
        case CHECK_ADD:
            status = add(&c);
            break;
        case CHECK_RESULT:
            status = apply_result(&c, registry);
            break;
        case CHECK_REMOVE:
            status = drop(&c);
            break;
        }
    }
    result->changed = tx->changed;
    return status;
}
