/* What polls of watched sitemaps came to, in the writer's transaction: rows, and the dates of
 * entries by compare and set. A date that somebody registered since the poll began is theirs and
 * stays; so does that of an entry with a digest, which says itself when it changed. Internal to
 * db/; the writer's thread. */
#include "db/check.h"

#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"

struct checked {
    struct tx *tx;
    const struct change *change;
    struct change_result *result;
    const struct check_write *write;
    /* The row as it is kept. */
    int64_t site, source, state, marks;
    bool list;
    char loc[LOC_MAX_CHARS + 1];
};

static enum catalogue_status add(struct checked *c)
{
    const struct check_record *r = &c->write->record;
    int64_t source = 0;
    enum catalogue_status status = CATALOGUE_OK;
    if (r->source && r->source[0] != '\0')
        status = tx_source(c->tx, r->source, true, &source);
    sqlite3_stmt *row = status == CATALOGUE_OK ? tx_statement(c->tx, ST_CHECK_ADD) : NULL;
    if (!row)
        return status == CATALOGUE_OK ? tx_failure(c->tx) : status;
    sqlite3_bind_int64(row, 1, r->site_id);
    sqlite3_bind_int64(row, 2, source);
    sqlite3_bind_int(row, 3, r->list);
    statement_bind_text(row, 4, r->loc);
    sqlite3_bind_int64(row, 5, r->next_at);
    sqlite3_bind_int64(row, 6, r->interval_s);
    sqlite3_bind_int64(row, 7, c->tx->now);
    return statement_run(row);
}

static enum catalogue_status read_row(struct checked *c, bool *found)
{
    sqlite3_stmt *row = tx_statement(c->tx, ST_CHECK_READ);
    if (!row)
        return tx_failure(c->tx);
    sqlite3_bind_int64(row, 1, c->write->record.id);
    enum catalogue_status status = statement_first(row, found);
    if (*found) {
        const char *loc = (const char *)sqlite3_column_text(row, 3);
        size_t len = loc ? strnlen(loc, LOC_MAX_CHARS) : 0;
        c->site = sqlite3_column_int64(row, 0);
        c->source = sqlite3_column_int64(row, 1);
        c->list = sqlite3_column_int(row, 2) != 0;
        c->state = sqlite3_column_int64(row, 4);
        c->marks = sqlite3_column_int64(row, 5);
        memcpy(c->loc, loc ? loc : "", len);
        c->loc[len] = '\0';
    }
    sqlite3_reset(row);
    return status;
}

/* What indexes go by is written only where it moved: a poll that finds all as it was writes one row
 * and no index. */
static enum catalogue_status write_place(struct checked *c)
{
    const struct check_record *r = &c->write->record;
    const char *loc = c->list ? r->loc : c->loc;
    if (c->state == r->state && c->marks == r->marks && strcmp(loc, c->loc) == 0)
        return CATALOGUE_OK;
    sqlite3_stmt *row = tx_statement(c->tx, ST_CHECK_PLACE);
    if (!row)
        return tx_failure(c->tx);
    sqlite3_bind_int64(row, 1, r->id);
    statement_bind_text(row, 2, loc);
    sqlite3_bind_int64(row, 3, r->state);
    sqlite3_bind_int64(row, 4, r->marks);
    return statement_run(row);
}

/* `forget`: what it holds is to be found again as if it were new. */
static enum catalogue_status write_row(struct checked *c, bool forget)
{
    static const uint64_t none[2];
    const struct check_record *r = &c->write->record;
    const int64_t numbers[] = {r->status,       r->next_at,       r->interval_s,     r->failures,
                               r->checked_at,   r->good_at,       r->changed_at,     r->full_at,
                               r->since,        (int64_t)r->urls, (int64_t)r->bytes, r->one_lastmod,
                               (int64_t)r->line};
    const int count = sizeof numbers / sizeof *numbers;
    enum catalogue_status status = write_place(c);
    sqlite3_stmt *row = status == CATALOGUE_OK ? tx_statement(c->tx, ST_CHECK_WRITE) : NULL;
    if (!row)
        return status == CATALOGUE_OK ? tx_failure(c->tx) : status;
    sqlite3_bind_int64(row, 1, r->id);
    for (int i = 0; i < count; i++)
        sqlite3_bind_int64(row, 2 + i, numbers[i]);
    statement_bind_text(row, 2 + count, forget ? NULL : r->etag);
    statement_bind_text(row, 3 + count, forget ? NULL : r->last_modified);
    statement_bind_hash(row, 4 + count, forget ? none : r->hash);
    statement_bind_hash(row, 5 + count, forget ? none : r->dateless);
    statement_bind_text(row, 6 + count, r->newest_lastmod);
    statement_bind_text(row, 7 + count, r->remarks);
    statement_bind_text(row, 8 + count, r->problem);
    statement_bind_text(row, 9 + count, r->detail);
    return statement_run(row);
}

static bool same_text(bool has, const char *a, const char *b)
{
    return b ? has && strcmp(a, b) == 0 : !has;
}

/* Moves the entry's date, where it is still as it was read. `*frozen`: it may not move now. */
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

/* What its source keeps of it, so that a scan goes on from there. */
static enum catalogue_status write_file(struct checked *c, const struct put_row *entry)
{
    const struct check_record *r = &c->write->record;
    sqlite3_stmt *row = tx_statement(c->tx, ST_FILE_CHECKED);
    if (!row)
        return tx_failure(c->tx);
    sqlite3_bind_int64(row, 1, c->source);
    statement_bind_text(row, 2, c->loc);
    statement_bind_text(row, 3, entry->has_lastmod ? entry->lastmod : NULL);
    statement_bind_hash(row, 4, r->hash);
    sqlite3_bind_int64(row, 5, (sqlite3_int64)r->urls);
    sqlite3_bind_int64(row, 6, (sqlite3_int64)r->bytes);
    statement_bind_text(row, 7, r->newest_lastmod);
    sqlite3_bind_int(row, 8, r->one_lastmod);
    statement_bind_text(row, 9, r->remarks);
    return statement_run(row);
}

static enum catalogue_status take_result(struct checked *c, const struct registry *registry)
{
    bool found = false, frozen = false;
    struct put_row entry = {.found = false};
    enum catalogue_status status = read_row(c, &found);
    if (status != CATALOGUE_OK || !found) /* it is watched no more */
        return status;
    if (!c->list)
        status = put_find(c->tx, c->site, c->loc, &entry);
    if (status == CATALOGUE_OK && entry.found && c->write->lastmod_to)
        status = set_date(c, registry, &entry, &frozen);
    if (status == CATALOGUE_OK && entry.found && c->source != 0 && entry.source == c->source &&
        c->write->record.state == CHECK_GOOD && !frozen)
        status = write_file(c, &entry);
    return status == CATALOGUE_OK ? write_row(c, frozen) : status;
}

enum catalogue_status apply_check(struct tx *tx, const struct change *change,
                                  struct change_result *result)
{
    const struct registry *registry;
    struct checked c = {.tx = tx, .change = change, .result = result};
    enum catalogue_status status = tx_registry(tx, &registry);
    for (size_t i = 0; i < change->check_count && status == CATALOGUE_OK; i++) {
        c.write = &change->checks[i];
        switch (c.write->kind) {
        case CHECK_ADD:
            status = add(&c);
            break;
        case CHECK_RESULT:
            status = take_result(&c, registry);
            break;
        case CHECK_REMOVE:
            status = tx_run(tx, ST_CHECK_DROP, c.write->record.id);
            break;
        }
    }
    result->changed = tx->changed;
    return status;
}
