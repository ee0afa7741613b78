/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads rows of entries: single ones, by id or by loc, and their ETags. */
#include "db/read/row.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/rules/limits.h"

bool entry_row_borrow(sqlite3_stmt *row, struct entry_record *out)
{
    int64_t address = sqlite3_column_int64(row, 0);

    memset(out, 0, sizeof *out);
    out->index_id = id_address_index(address);
    out->position = id_address_position(address);
    out->page = out->position / LIMIT_PAGE_ENTRIES + 1;
    out->site_id = sqlite3_column_int64(row, 1);
    /* The members are not const since other users of the struct own the strings; here they are
     * borrowed and not written to. */
    out->loc = (char *)(uintptr_t)sqlite3_column_text(row, 2);
    out->lastmod = (char *)(uintptr_t)sqlite3_column_text(row, 3);
    out->digest = (char *)(uintptr_t)sqlite3_column_text(row, 4);
    out->source = (char *)(uintptr_t)sqlite3_column_text(row, 5);
    out->registered_at = sqlite3_column_int64(row, 7);
    out->changed_at = sqlite3_column_int64(row, 8);
    out->extensions = (char *)(uintptr_t)sqlite3_column_text(row, 9);
    id_format(out->index_id, out->position, sqlite3_column_int64(row, 6), out->id);
    return out->loc != NULL && out->source != NULL;
}

static bool copy_text(char *const from, char **to)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

static bool copy_record(const struct entry_record *from, struct entry_record *out)
{
    bool copied;

    *out = *from;
    copied = copy_text(from->loc, &out->loc);
    copied = copy_text(from->lastmod, &out->lastmod) && copied;
    copied = copy_text(from->digest, &out->digest) && copied;
    copied = copy_text(from->source, &out->source) && copied;
    copied = copy_text(from->extensions, &out->extensions) && copied;
    if (!copied)
        entry_record_done(out);
    return copied;
}

void entry_record_done(struct entry_record *record)
{
    if (record == NULL)
        return;
    free(record->loc);
    free(record->lastmod);
    free(record->digest);
    free(record->source);
    free(record->extensions);
    record->loc = record->lastmod = record->digest = record->source = NULL;
    record->extensions = NULL;
}

/* Steps to the only row of a bound statement and copies it. */
static enum catalogue_status load_entry(struct catalogue_view *v, sqlite3_stmt *row, int rc,
                                        struct entry_record *out)
{
    enum catalogue_status status;
    struct entry_record record;

    if (!sql_next(row, &rc))
        status = rc == SQLITE_DONE ? CATALOGUE_NOT_FOUND : view_status(v, rc);
    else if (!entry_row_borrow(row, &record))
        status = sqlite3_errcode(v->db) == SQLITE_NOMEM ? CATALOGUE_NO_MEMORY : CATALOGUE_CORRUPT;
    else
        status = copy_record(&record, out) ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
    sqlite3_reset(row);
    return status;
}

enum catalogue_status catalogue_view_entry_by_id(struct catalogue_view *v, const char *id,
                                                 struct entry_record *out)
{
    int64_t index, serial;
    uint32_t position;
    sqlite3_stmt *row;
    int rc;

    if (!id_parse(id, &index, &position, &serial))
        return CATALOGUE_NOT_FOUND;
    row = view_statement(v, "SELECT " ENTRY_ROW_COLUMNS " FROM sitemap AS e"
                            " WHERE e.address = ?1 AND e.serial = ?2 AND " ENTRY_ROW_LIVE);
    rc = sql_bind(row, id_address(index, position), serial);
    return load_entry(v, row, rc, out);
}

enum catalogue_status catalogue_view_entry_by_loc(struct catalogue_view *v, int64_t site_id,
                                                  const char *loc, struct entry_record *out)
{
    sqlite3_stmt *row = view_statement(v, "SELECT " ENTRY_ROW_COLUMNS " FROM sitemap AS e"
                                          " WHERE e.site = ?1 AND e.loc = ?2 AND " ENTRY_ROW_LIVE);

    int rc = sql_bind(row, site_id, loc);
    return load_entry(v, row, rc, out);
}

enum catalogue_status catalogue_view_row_by_loc(struct catalogue_view *v, int64_t urlset_id,
                                                const char *loc, struct entry_record *out)
{
    return catalogue_view_entry_by_loc(v, -urlset_id, loc, out);
}

/* FNV-1a with 128 bits: not cryptographic, and needs no library. */
typedef unsigned __int128 etag_hash;

static etag_hash hash_bytes(etag_hash hash, const void *bytes, size_t len)
{
    const etag_hash prime = ((etag_hash)1 << 88) + 0x13b;
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * prime;
    return hash;
}

/* Hashes a mark before the text and its NUL after it, so that NULL differs from "" and bytes cannot
 * move between neighbouring texts. */
static etag_hash hash_text(etag_hash hash, const char *text)
{
    hash = hash_bytes(hash, text != NULL ? "+" : "-", 1);
    return text != NULL ? hash_bytes(hash, text, strlen(text) + 1) : hash;
}

static etag_hash hash_number(etag_hash hash, int64_t number)
{
    unsigned char bytes[8]; /* in the same order on every machine */

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)((uint64_t)number >> 8 * i);
    return hash_bytes(hash, bytes, sizeof bytes);
}

void catalogue_entry_etag(const struct entry_record *record, char out[40])
{
    etag_hash hash = (etag_hash)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;

    hash = hash_text(hash, record->id); /* index, position, serial */
    hash = hash_text(hash, record->loc);
    hash = hash_text(hash, record->lastmod);
    hash = hash_text(hash, record->digest);
    hash = hash_text(hash, record->source);
    hash = hash_number(hash, record->site_id);
    hash = hash_number(hash, record->index_id);
    hash = hash_number(hash, record->position);
    hash = hash_number(hash, record->registered_at);
    hash = hash_number(hash, record->changed_at);
    if (record->extensions != NULL)
        hash = hash_text(hash, record->extensions);
    snprintf(out, 40, "\"%016llx%016llx\"", (unsigned long long)(hash >> 64),
             (unsigned long long)hash);
}

void index_state_format(const char *epoch, uint64_t revision, int64_t stamp,
                        char out[INDEX_STATE_SIZE])
{
    snprintf(out, INDEX_STATE_SIZE, "%.32s-%" PRIu64 "-%" PRIx64, epoch, revision, (uint64_t)stamp);
}

void row_hash(sqlite3_stmt *row, int column, uint64_t hash[2])
{
    const unsigned char *bytes = sqlite3_column_blob(row, column);
    hash[0] = hash[1] = 0;
    if (bytes == NULL || sqlite3_column_bytes(row, column) != 16)
        return;
    for (size_t i = 0; i < 16; i++)
        hash[i / 8] = hash[i / 8] << 8 | bytes[i];
}
