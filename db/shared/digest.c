/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Chooses rows by the record's number and hashes them. */
#include "db/shared/digest.h"

#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"

/* Lists the tables of the schema that are shared, with their columns, from the schema itself. */

bool table_is_common(const char *name)
{
    return strncmp(name, "local_", 6) != 0 && strncmp(name, "sqlite_", 7) != 0;
}

static void table_done(struct table *t)
{
    for (int i = 0; i < t->count; i++)
        free(t->columns[i]);
    free(t->columns);
    free(t->name);
}

void tables_done(struct tables *t)
{
    for (size_t i = 0; i < t->count; i++)
        table_done(&t->list[i]);
    free(t->list);
    *t = (struct tables){0};
}

static bool add_column(struct table *t, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    bool is_integer = sqlite3_column_int(row, 2);
    int in_key = sqlite3_column_int(row, 1);
    t->columns[t->count] = name != NULL ? strdup(name) : NULL;
    if (t->columns[t->count] == NULL)
        return false;
    if (in_key)
        t->key |= UINT64_C(1) << t->count;
    if (in_key && is_integer)
        t->alias = t->alias == -1 ? t->count : -2;
    else if (in_key)
        t->alias = -2; /* a key of several columns, or of a text, is not the rowid */
    t->count++;
    return true;
}

/* A result code of SQLite. */
static int read_columns(struct table *t, sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT name, pk, upper(type) = 'INTEGER'"
                                " FROM pragma_table_info(?1) ORDER BY cid",
                                -1, &row, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_text(row, 1, t->name, -1, SQLITE_STATIC);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        rc = t->count == TABLE_COLUMNS_MAX ? SQLITE_TOOBIG
             : add_column(t, row)          ? SQLITE_OK
                                           : SQLITE_NOMEM;
    sqlite3_finalize(row);
    if (!t->has_rowid || t->alias < 0)
        t->alias = -1;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A result code of SQLite. */
static int add_table(struct tables *t, sqlite3 *db, sqlite3_stmt *row)
{
    const char *name = (const char *)sqlite3_column_text(row, 0);
    if (name == NULL)
        return SQLITE_NOMEM;
    if (!table_is_common(name))
        return SQLITE_OK;
    if (t->count == TABLES_MAX)
        return SQLITE_TOOBIG;
    struct table *table = &t->list[t->count];
    *table = (struct table){.name = strdup(name), .alias = -1};
    table->has_rowid = !sqlite3_column_int(row, 1);
    table->columns = calloc(TABLE_COLUMNS_MAX, sizeof *table->columns);
    t->count++;
    return table->name != NULL && table->columns != NULL ? read_columns(table, db) : SQLITE_NOMEM;
}

enum catalogue_status tables_load(struct tables *t, sqlite3 *db)
{
    sqlite3_stmt *row = NULL;
    tables_done(t);
    t->list = calloc(TABLES_MAX, sizeof *t->list);
    if (t->list == NULL)
        return CATALOGUE_NO_MEMORY;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT name, wr FROM pragma_table_list"
                                " WHERE schema = 'main' AND type = 'table' ORDER BY name",
                                -1, &row, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW)
        rc = add_table(t, db, row);
    sqlite3_finalize(row);
    if (rc == SQLITE_DONE)
        return CATALOGUE_OK;
    tables_done(t);
    enum catalogue_status status = connection_status(rc);
    return status == CATALOGUE_OK ? CATALOGUE_UNAVAILABLE : status;
}

const struct table *tables_find(const struct tables *t, const char *name, size_t len)
{
    for (size_t i = 0; i < t->count; i++)
        if (strlen(t->list[i].name) == len && memcmp(t->list[i].name, name, len) == 0)
            return &t->list[i];
    return NULL;
}

struct digest {
    sqlite3 *db;
    gnutls_hash_hd_t hash;
    uint64_t chance; /* random number, derived from the record's number */
    int left;        /* rows and KiB of the table still to hash */
};

static void add_value(struct digest *d, sqlite3_stmt *row, int column)
{
    int type = sqlite3_column_type(row, column);
    int64_t number = type == SQLITE_INTEGER ? sqlite3_column_int64(row, column) : 0;
    const void *bytes = NULL;
    int32_t head[2] = {type, 0};
    if (type == SQLITE_TEXT || type == SQLITE_BLOB || type == SQLITE_FLOAT) {
        bytes = sqlite3_column_blob(row, column);
        head[1] = sqlite3_column_bytes(row, column);
    }
    gnutls_hash(d->hash, head, sizeof head);
    gnutls_hash(d->hash, &number, sizeof number);
    if (bytes != NULL)
        gnutls_hash(d->hash, bytes, (size_t)head[1]);
    d->left -= head[1] / 1024;
}

/* Rows on one side of the pivot. */
static int add_rows(struct digest *d, const struct table *t, const char *by, const char *side,
                    int64_t pivot)
{
    sqlite3_stmt *row = NULL;
    char *sql =
        by != NULL ? sqlite3_mprintf("SELECT %s, * FROM \"%w\" WHERE %s %s ?1 ORDER BY %s LIMIT %d",
                                     by, t->name, by, side, by, d->left)
                   : sqlite3_mprintf("SELECT * FROM \"%w\" LIMIT %d", t->name, d->left);
    int rc = sql != NULL ? sqlite3_prepare_v2(d->db, sql, -1, &row, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    if (rc == SQLITE_OK && by != NULL)
        rc = sqlite3_bind_int64(row, 1, pivot);
    while (rc == SQLITE_OK && d->left > 0 && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++)
            add_value(d, row, i);
        d->left--;
        rc = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Chooses a rowid anywhere between the first and the last one. */
static int choose(struct digest *d, const struct table *t, const char *by, int64_t *pivot)
{
    sqlite3_stmt *row = NULL;
    char *sql = sqlite3_mprintf("SELECT (SELECT min(%s) FROM \"%w\"), (SELECT max(%s) FROM \"%w\")",
                                by, t->name, by, t->name);
    int rc = sql != NULL ? sqlite3_prepare_v2(d->db, sql, -1, &row, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    *pivot = 0;
    if (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
        uint64_t first = (uint64_t)sqlite3_column_int64(row, 0);
        uint64_t span = (uint64_t)sqlite3_column_int64(row, 1) - first;
        *pivot = (int64_t)(first + (span == UINT64_MAX ? d->chance : d->chance % (span + 1)));
        rc = SQLITE_OK;
    }
    sqlite3_finalize(row);
    return rc;
}

static int digest_table(struct digest *d, const struct table *t)
{
    const char *by = t->has_rowid ? "rowid" : NULL; /* NULL: the first rows, in its order */
    int64_t pivot = 0;
    int rc = by != NULL ? choose(d, t, by, &pivot) : SQLITE_OK;
    d->left = DIGEST_ROWS;
    gnutls_hash(d->hash, t->name, strlen(t->name) + 1);
    if (rc == SQLITE_OK)
        rc = add_rows(d, t, by, ">=", pivot);
    if (rc == SQLITE_OK && by != NULL && d->left > 0)
        rc = add_rows(d, t, by, "<", pivot);
    return rc;
}

/* Spreads the numbers of records, which are near each other, over all of them. */
static uint64_t spread(uint64_t n)
{
    n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
    return n ^ n >> 31;
}

enum catalogue_status digest_take(sqlite3 *db, const struct tables *tables, uint64_t seq,
                                  uint8_t out[DIGEST_BYTES])
{
    struct digest d = {.db = db, .chance = spread(seq)};
    if (gnutls_hash_init(&d.hash, GNUTLS_DIG_SHA256) != 0)
        return CATALOGUE_NO_MEMORY;
    int rc = SQLITE_OK;
    for (size_t i = 0; rc == SQLITE_OK && i < tables->count; i++)
        rc = digest_table(&d, &tables->list[i]);
    gnutls_hash_deinit(d.hash, out);
    return connection_status(rc);
}

void digests_keep(struct digests *d, const struct digest_of *taken)
{
    d->kept[taken->seq / DIGEST_EACH % DIGESTS_KEPT] = d->last = *taken;
}

int digests_compare(struct digests *d, uint64_t seq, const uint8_t digest[DIGEST_BYTES],
                    uint64_t *mismatches)
{
    const struct digest_of *own = &d->kept[seq / DIGEST_EACH % DIGESTS_KEPT];
    if (seq == 0 || own->seq != seq)
        return 0;
    if (memcmp(own->bytes, digest, DIGEST_BYTES) == 0)
        return 1;
    if (d->mismatch_seq != seq) {
        d->mismatch_seq = seq;
        ++*mismatches;
    }
    return -1;
}
