/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The age of page URLs in urlsets with expires_s, and the batches in which those that are too old
 * go. */
#include <stdio.h>
#include <string.h>

#include "db/read/row.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "server/rules/lastmod.h"

#define NEWS_DATE "<news:publication_date>"

static int64_t dated_at(const struct put_row *row)
{
    const char *date = row->extensions ? strstr(row->extensions, NEWS_DATE) : NULL;
    int64_t at;
    if (date) {
        date += strlen(NEWS_DATE);
        if (urlset_read_time(date, strcspn(date, "<"), &at))
            return at;
    }
    if (row->has_lastmod && urlset_read_time(row->lastmod, strlen(row->lastmod), &at))
        return at;
    return row->registered_at;
}

bool urlset_is_expired(const struct tx *tx, const struct put *put)
{
    struct put_row then;
    if (put->index->expires_s == 0)
        return false;
    put_merge(tx, put, &then);
    return dated_at(&then) <= tx->now - put->index->expires_s;
}

enum catalogue_status urlset_record_age(struct tx *tx, const struct registry_index *list,
                                        const struct put_row *row)
{
    if (list->expires_s == 0)
        return CATALOGUE_OK;
    return tx_run(tx, ST_AGE_PUT, row->address, list->id, dated_at(row));
}

/* Few enough to let others have their turn: tens of milliseconds. */
#define EXPIRE_ROWS      2000u
#define EXPIRE_ROW_BYTES 16384u /* a row with more extensions counts as several */

/* What is noted of an address may be of a row that was removed, or written again since. */
static enum catalogue_status expire_row(struct tx *tx, const struct registry_index *urlset,
                                        int64_t address, size_t *bytes,
                                        struct change_result *result)
{
    struct put_row row;
    char loc[LOC_MAX_CHARS + 1];
    bool found;
    sqlite3_stmt *at = tx_statement(tx, ST_ENTRY_BY_ADDRESS);
    if (!at)
        return tx_failure(tx);
    sqlite3_bind_int64(at, 1, address);
    enum catalogue_status status = statement_first(at, &found);
    if (found) {
        const char *text = (const char *)sqlite3_column_text(at, 2);
        snprintf(loc, sizeof loc, "%s", text ? text : "");
        put_row_read(tx, at, &row);
    }
    *bytes = found ? row.extensions_len : 0;
    sqlite3_reset(at);
    if (status != CATALOGUE_OK)
        return status;
    if (found && dated_at(&row) > tx->now - urlset->expires_s)
        return urlset_record_age(tx, urlset, &row);
    if (found) {
        result->removed++;
        result->changed = true;
        status = put_take_out(tx, urlset, &row, loc);
    }
    return status == CATALOGUE_OK ? tx_run(tx, ST_AGE_DROP, address) : status;
}

enum catalogue_status apply_expire(struct tx *tx, struct change_result *result)
{
    const struct registry *r;
    const struct registry_index *urlset;
    uint32_t looked_at = 0;
    enum catalogue_status status = tx_registry(tx, &r);
    size_t first = tx->expire_turn;
    for (size_t s = 0; status == CATALOGUE_OK && s < r->site_count && looked_at < EXPIRE_ROWS;
         s++) {
        const struct registry_site *site = &r->sites[(first + s) % r->site_count];
        tx->expire_turn = (first + s) % r->site_count + 1; /* behind who has taken the last */
        for (size_t i = 0; status == CATALOGUE_OK && i < site->urlset_count; i++) {
            urlset = &site->urlsets[i];
            if (urlset->expires_s == 0 || registry_is_frozen(r, urlset))
                continue;
            while (status == CATALOGUE_OK && looked_at < EXPIRE_ROWS) {
                int64_t address = 0;
                size_t bytes = 0;
                status = tx_number(tx, ST_AGE_NEXT, 0, &address, urlset->id,
                                   tx->now - urlset->expires_s);
                if (status != CATALOGUE_OK || address == 0)
                    break;
                status = expire_row(tx, urlset, address, &bytes, result);
                looked_at += 1 + (uint32_t)(bytes / EXPIRE_ROW_BYTES);
            }
        }
    }
    return status;
}

bool urlset_expiry_is_due(struct tx *tx)
{
    int64_t due = 0;
    return tx_number(tx, ST_AGE_DUE, 0, &due, tx_clock(tx)) == CATALOGUE_OK && due != 0;
}
