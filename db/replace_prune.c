#include <string.h>

#include "db/id.h"
#include "db/replace.h"
#include "server/rules/render.h"

/* One segment at a time: the engine holds what RETURNING yields in memory. */
static enum catalogue_status prune_segment(struct replace *r, uint32_t first)
{
    struct tx *tx = r->tx;
    sqlite3_stmt *gone = tx_statement(tx, ST_SEGMENT_PRUNE);
    if (!gone)
        return tx_failure(tx);
    sqlite3_bind_int64(gone, 1, id_address(r->index->id, first));
    sqlite3_bind_int64(gone, 2, id_address(r->index->id, first + SEGMENT_POSITIONS - 1));
    if (r->owner != 0)
        sqlite3_bind_int64(gone, 3, r->owner);
    else
        sqlite3_bind_null(gone, 3);
    statement_bind_text(gone, 4, r->change->replace_prefix);
    bool found;
    enum catalogue_status status;
    while ((status = statement_first(gone, &found)) == CATALOGUE_OK && found) {
        const char *loc = (const char *)sqlite3_column_text(gone, 1);
        size_t len = (size_t)sqlite3_column_bytes(gone, 1);
        if (!loc)
            status = CATALOGUE_NO_MEMORY;
        else
            status = fill_release(tx, r->fill, id_address_position(sqlite3_column_int64(gone, 0)),
                                  render_entry_bytes(loc, len));
        if (status != CATALOGUE_OK)
            break;
        r->result->removed++;
    }
    sqlite3_reset(gone);
    return status;
}

enum catalogue_status replace_prune(struct replace *r)
{
    uint64_t looked_at = 0;
    for (uint32_t number = 1; number <= r->fill->page_count; number++) {
        struct fill_page *page = r->fill->pages[number - 1];
        if (page->entries == 0)
            continue;
        enum catalogue_status status = fill_load_segments(r->tx, r->fill, page);
        for (uint32_t s = 0; status == CATALOGUE_OK && s < PAGE_SEGMENTS; s++) {
            if (page->segments->entries[s] == 0)
                continue;
            status = prune_segment(r, (number - 1) * LIMIT_PAGE_ENTRIES + s * SEGMENT_POSITIONS);
            if (++looked_at % 16 == 0 && r->tx->breathe)
                r->tx->breathe(r->tx->breathe_context);
        }
        if (status != CATALOGUE_OK)
            return status;
    }
    return CATALOGUE_OK;
}

static enum catalogue_status readdress(struct tx *tx, int64_t from, int64_t to)
{
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_READDRESS);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, from);
    sqlite3_bind_int64(row, 2, to);
    return statement_run(row);
}

static enum catalogue_status park_one(struct replace *r, int64_t address)
{
    struct tx *tx = r->tx;
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_BY_ADDRESS);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, address);
    bool found;
    enum catalogue_status status = statement_first(row, &found);
    uint32_t weight = 0;
    if (found)
        weight = render_entry_bytes((const char *)sqlite3_column_text(row, 2),
                                    (size_t)sqlite3_column_bytes(row, 2));
    sqlite3_reset(row);
    if (status != CATALOGUE_OK || !found)
        return status;
    status = readdress(tx, address, -address);
    if (status == CATALOGUE_OK)
        status = fill_release(tx, r->fill, id_address_position(address), weight);
    return status;
}

enum catalogue_status replace_park(struct replace *r)
{
    int64_t address = 0;
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK) {
        sqlite3_stmt *next = tx_statement(r->tx, ST_KEEP_WANTED);
        if (!next)
            return tx_failure(r->tx);
        sqlite3_bind_int64(next, 1, address);
        status = statement_number(next, 0, &address);
        if (status != CATALOGUE_OK || address == 0)
            break;
        status = park_one(r, address);
    }
    return status;
}

enum catalogue_status replace_unpark(struct replace *r, bool *back)
{
    struct tx *tx = r->tx;
    struct put *put = &r->put;
    int64_t parked = put->row.address;
    struct fill_room room = {.weight = render_entry_bytes(put->url.text, put->url.len),
                             .max_pages = put->site->max_pages,
                             .wanted = put->entry->position};
    uint32_t position;
    enum catalogue_status status = fill_find(tx, r->fill, &room, &position);
    if (status != CATALOGUE_OK)
        return status;
    *back = position != POSITION_NONE;
    if (!*back) {
        sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_DELETE);
        if (!row)
            return tx_failure(tx);
        sqlite3_bind_int64(row, 1, parked);
        return statement_run(row);
    }
    put->row.address = id_address(r->index->id, position);
    put->from = put->index;
    status = readdress(tx, parked, put->row.address);
    if (status == CATALOGUE_OK)
        status = fill_take(tx, r->fill, position, room.weight);
    return status;
}
