#include "db/fill.h"
#include "db/guard.h"
#include "db/tx.h"

static enum catalogue_status write_segments(struct tx *tx, const struct fill_index *index,
                                            const struct fill_page *page, uint64_t revision)
{
    const struct fill_segments *segments = page->segments;
    enum catalogue_status status = CATALOGUE_OK;
    for (uint32_t s = 0; status == CATALOGUE_OK && s < PAGE_SEGMENTS; s++) {
        if (!fill_bit(segments->dirty, s))
            continue;
        sqlite3_stmt *row = tx_statement(tx, ST_SEGMENT_WRITE);
        if (!row)
            return tx_failure(tx);
        sqlite3_bind_int64(row, 1, index->id);
        sqlite3_bind_int64(row, 2, (sqlite3_int64)(page->number - 1) * PAGE_SEGMENTS + s);
        sqlite3_bind_int(row, 3, segments->entries[s]);
        sqlite3_bind_int64(row, 4, (sqlite3_int64)revision);
        status = statement_run(row);
    }
    return status;
}

static enum catalogue_status write_page(struct tx *tx, const struct fill_index *index,
                                        struct fill_page *page, uint64_t revision,
                                        int64_t changed_at)
{
    /* A second version within one second: a date alone cannot tell the two apart, so that
     * If-Modified-Since must not be answered with 304. */
    page->same_second = page->changed_at == changed_at && (page->had_content || page->same_second);
    page->changed_at = changed_at;
    sqlite3_stmt *row = tx_statement(tx, ST_PAGE_WRITE);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, index->id);
    sqlite3_bind_int64(row, 2, page->number);
    sqlite3_bind_int64(row, 3, page->entries);
    sqlite3_bind_int64(row, 4, (sqlite3_int64)page->bytes);
    sqlite3_bind_int64(row, 5, changed_at);
    sqlite3_bind_int(row, 6, page->same_second);
    sqlite3_bind_int64(row, 7, (sqlite3_int64)revision);
    enum catalogue_status status = statement_run(row);
    if (status == CATALOGUE_OK && page->segments && !index->buried)
        status = write_segments(tx, index, page, revision);
    return status;
}

enum catalogue_status fill_write(struct tx *tx, uint64_t revision, int64_t changed_at,
                                 bool *pages_differ)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (struct fill_index *index = tx->fill->dirty; index; index = index->next_dirty) {
        for (struct fill_page *page = index->dirty_pages; page; page = page->next_dirty) {
            if (index->buried || page->had_content != (page->entries > 0))
                *pages_differ = true;
            status = write_page(tx, index, page, revision, changed_at);
            if (status != CATALOGUE_OK)
                return status;
        }
        if (!index->buried)
            status = guard_write_peak(tx, index, changed_at);
        if (status != CATALOGUE_OK)
            return status;
    }
    return CATALOGUE_OK;
}
