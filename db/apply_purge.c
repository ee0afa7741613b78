#include "db/apply.h"
#include "db/id.h"

static enum catalogue_status run_on_index(struct tx *tx, enum statement which, int64_t index_id)
{
    sqlite3_stmt *row = tx_statement(tx, which);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, index_id);
    return statement_run(row);
}

/* Nothing of it is left but its row and those of its pages, which /v1/changes goes on telling. */
static enum catalogue_status finish(struct tx *tx, int64_t index_id)
{
    enum catalogue_status status = run_on_index(tx, ST_PURGE_SEGMENTS, index_id);
    if (status == CATALOGUE_OK)
        status = run_on_index(tx, ST_PURGE_PEAKS, index_id);
    if (status == CATALOGUE_OK)
        status = run_on_index(tx, ST_PURGE_DONE, index_id);
    return status;
}

enum catalogue_status apply_purge(struct tx *tx, struct change_result *result, bool *more)
{
    *more = false;
    sqlite3_stmt *find = tx_statement(tx, ST_PURGE_FIND);
    if (!find)
        return tx_failure(tx);
    int64_t index_id, last;
    enum catalogue_status status = statement_number(find, 0, &index_id);
    if (status != CATALOGUE_OK || index_id == 0)
        return status;
    *more = true;
    int64_t first = id_address(index_id, 0);
    sqlite3_stmt *rows = tx_statement(tx, ST_PURGE_LAST);
    if (!rows)
        return tx_failure(tx);
    sqlite3_bind_int64(rows, 1, first);
    sqlite3_bind_int64(rows, 2, id_address(index_id, UINT32_MAX));
    sqlite3_bind_int64(rows, 3, PURGE_ROWS);
    status = statement_number(rows, -1, &last);
    if (status != CATALOGUE_OK)
        return status;
    if (last < 0)
        return finish(tx, index_id);

    sqlite3_stmt *drop = tx_statement(tx, ST_PURGE_ENTRIES);
    if (!drop)
        return tx_failure(tx);
    sqlite3_bind_int64(drop, 1, first);
    sqlite3_bind_int64(drop, 2, last);
    status = statement_run(drop);
    result->removed = (uint64_t)sqlite3_changes64(tx->db);
    return status;
}
