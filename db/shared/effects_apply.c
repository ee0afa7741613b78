#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/file/schema.h"
#include "db/shared/effects.h"
#include "db/shared/effects_stream.h"
#include "db/shared/tables.h"
#include "server/base/str.h"

/* What one operation may take: no row is nearly as large. */
#define OPERATION_MAX (256u << 20)
/* Statements kept: of a table an INSERT, a DELETE, and an UPDATE for each set of columns. */
#define STATEMENTS_MAX 96

struct statement_kept {
    const struct table *table;
    enum stream_operation operation;
    uint64_t columns;
    sqlite3_stmt *statement;
};

struct effects_applier {
    sqlite3 *db;
    struct tables tables;
    const struct table *named[TABLES_MAX]; /* in this stream */
    size_t named_count;
    struct statement_kept kept[STATEMENTS_MAX];
    size_t kept_count;
    struct str raw; /* not applied yet */
    bool is_migration;
    char why[256];
};

/* ---- reading an operation */

/* A cursor over what came. `short_of`: the operation is not all there yet. */
struct cursor {
    const uint8_t *at, *end;
    bool short_of;
};

static const uint8_t *take(struct cursor *c, uint64_t len)
{
    if (c->short_of || (uint64_t)(c->end - c->at) < len) {
        c->short_of = true;
        return NULL;
    }
    const uint8_t *bytes = c->at;
    c->at += len;
    return bytes;
}

static uint64_t take_number(struct cursor *c)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const uint8_t *byte = take(c, 1);
        if (!byte)
            return 0;
        n |= (uint64_t)(*byte & 0x7f) << shift;
        if (*byte < 0x80)
            return n;
    }
    return n;
}

/* ---- statements */

static enum catalogue_status diverge(struct effects_applier *a, const char *table, const char *what)
{
    snprintf(a->why, sizeof a->why, "%s%s%s", table, *table ? ": " : "", what);
    return CATALOGUE_CORRUPT;
}

static void forget_statements(struct effects_applier *a)
{
    for (size_t i = 0; i < a->kept_count; i++)
        sqlite3_finalize(a->kept[i].statement);
    a->kept_count = 0;
}

static void write_where(struct str *sql, const struct table *t, int parameter)
{
    if (t->has_rowid)
        str_append_format(sql, " WHERE rowid=?%d", parameter);
    const char *joint = " WHERE ";
    for (int i = 0; !t->has_rowid && i < t->count; i++) {
        if ((t->key >> i & 1) == 0)
            continue;
        str_append_format(sql, "%s\"%s\"=?%d", joint, t->columns[i], parameter++);
        joint = " AND ";
    }
}

static void write_insert(struct str *sql, const struct table *t)
{
    bool bare = t->has_rowid && t->alias < 0;
    str_append_format(sql, "INSERT INTO main.\"%s\"(%s", t->name, bare ? "rowid" : "");
    for (int i = 0; i < t->count; i++)
        str_append_format(sql, "%s\"%s\"", i > 0 || bare ? "," : "", t->columns[i]);
    str_append_text(sql, ") VALUES (?1");
    for (int i = 1; i < t->count + bare; i++)
        str_append_format(sql, ",?%d", i + 1);
    str_append_char(sql, ')');
}

static void write_update(struct str *sql, const struct table *t, uint64_t columns)
{
    int parameter = 1;
    str_append_format(sql, "UPDATE main.\"%s\" SET ", t->name);
    for (int i = 0; i < t->count; i++) {
        if ((columns >> i & 1) == 0)
            continue;
        str_append_format(sql, "%s\"%s\"=?%d", parameter > 1 ? "," : "", t->columns[i], parameter);
        parameter++;
    }
    write_where(sql, t, parameter);
}

static enum catalogue_status statement_for(struct effects_applier *a, const struct table *t,
                                           enum stream_operation operation, uint64_t columns,
                                           sqlite3_stmt **out)
{
    for (size_t i = a->kept_count; i-- > 0;) {
        const struct statement_kept *k = &a->kept[i];
        if (k->table == t && k->operation == operation && k->columns == columns) {
            *out = k->statement;
            return CATALOGUE_OK;
        }
    }
    struct str sql = STR_INIT;
    if (operation == STREAM_INSERT)
        write_insert(&sql, t);
    else if (operation == STREAM_UPDATE)
        write_update(&sql, t, columns);
    else
        str_append_format(&sql, "DELETE FROM main.\"%s\"", t->name);
    if (operation == STREAM_DELETE)
        write_where(&sql, t, 1);
    bool failed = sql.failed;
    *out = failed ? NULL : connection_prepare(a->db, str_text(&sql));
    str_done(&sql);
    if (!*out)
        return failed ? CATALOGUE_NO_MEMORY : connection_status(sqlite3_extended_errcode(a->db));
    if (a->kept_count == STATEMENTS_MAX)
        forget_statements(a);
    a->kept[a->kept_count++] = (struct statement_kept){t, operation, columns, *out};
    return CATALOGUE_OK;
}

/* ---- applying an operation */

/* The value is borrowed until the statement has run. */
static void bind_value(struct cursor *c, sqlite3_stmt *statement, int parameter)
{
    const uint8_t *type = take(c, 1);
    double real;
    if (!type)
        return;
    if (*type == STREAM_INTEGER) {
        sqlite3_bind_int64(statement, parameter, stream_unzigzag(take_number(c)));
    } else if (*type == STREAM_REAL) {
        const uint8_t *bytes = take(c, sizeof real);
        if (bytes)
            memcpy(&real, bytes, sizeof real);
        if (bytes)
            sqlite3_bind_double(statement, parameter, real);
    } else if (*type == STREAM_TEXT || *type == STREAM_BLOB) {
        uint64_t len = take_number(c);
        const uint8_t *bytes = take(c, len);
        if (bytes && *type == STREAM_TEXT)
            sqlite3_bind_text64(statement, parameter, (const char *)bytes, len, SQLITE_STATIC,
                                SQLITE_UTF8);
        else if (bytes)
            sqlite3_bind_blob64(statement, parameter, bytes, len, SQLITE_STATIC);
    }
}

static void bind_key(struct cursor *c, const struct table *t, sqlite3_stmt *statement,
                     int parameter, uint64_t rowid, const uint8_t *key)
{
    struct cursor k = {.at = key, .end = c->end};
    if (t->has_rowid)
        sqlite3_bind_int64(statement, parameter, stream_unzigzag(rowid));
    for (int i = 0; !t->has_rowid && i < t->count; i++)
        if (t->key >> i & 1)
            bind_value(&k, statement, parameter++);
}

static void skip_value(struct cursor *c)
{
    const uint8_t *type = take(c, 1);
    if (!type || *type == STREAM_NULL)
        return;
    uint64_t n = *type == STREAM_REAL ? sizeof(double) : take_number(c);
    if (*type != STREAM_INTEGER)
        take(c, n);
}

/* Past the key: its rowid, or where its values stand. */
static uint64_t take_key(struct cursor *c, const struct table *t, const uint8_t **key)
{
    *key = c->at;
    if (t->has_rowid)
        return take_number(c);
    for (int i = 0; i < t->count; i++)
        if (t->key >> i & 1)
            skip_value(c);
    return 0;
}

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* Runs it where the operation was all there, and sees that it touched its one row. */
static enum catalogue_status run(struct effects_applier *a, const struct table *t,
                                 sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    enum catalogue_status status = CATALOGUE_OK;
    if (rc != SQLITE_DONE) {
        status = connection_status(sqlite3_extended_errcode(a->db));
        snprintf(a->why, sizeof a->why, "%s: %s", t->name, sqlite3_errmsg(a->db));
        if (status == CATALOGUE_OK)
            status = CATALOGUE_UNAVAILABLE;
    } else if (sqlite3_changes64(a->db) != 1) {
        status = diverge(a, t->name, "a row that a record touches is not there");
    }
    return status;
}

static enum catalogue_status apply_row(struct effects_applier *a, struct cursor *c,
                                       enum stream_operation operation)
{
    uint64_t place = take_number(c);
    if (c->short_of)
        return CATALOGUE_OK;
    if (place >= a->named_count)
        return diverge(a, "", "a record names no table");
    const struct table *t = a->named[place];
    const uint8_t *key = NULL;
    uint64_t rowid = 0, columns = 0;
    bool bare = operation == STREAM_INSERT && t->has_rowid && t->alias < 0;
    if (operation != STREAM_INSERT)
        rowid = take_key(c, t, &key);
    else if (bare)
        rowid = take_number(c);
    if (operation == STREAM_UPDATE)
        columns = take_number(c);
    if (c->short_of)
        return CATALOGUE_OK;
    if (columns >> t->count != 0 || (operation == STREAM_UPDATE && columns == 0))
        return diverge(a, t->name, "a record names columns that are not there");
    sqlite3_stmt *statement;
    enum catalogue_status status = statement_for(a, t, operation, columns, &statement);
    if (status != CATALOGUE_OK)
        return status;
    int values = operation == STREAM_INSERT ? t->count : count_bits(columns);
    if (bare)
        sqlite3_bind_int64(statement, 1, stream_unzigzag(rowid));
    for (int i = 1; i <= values; i++)
        bind_value(c, statement, i + bare);
    if (operation != STREAM_INSERT)
        bind_key(c, t, statement, values + 1, rowid, key);
    if (!c->short_of)
        status = run(a, t, statement);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static enum catalogue_status apply_table(struct effects_applier *a, struct cursor *c)
{
    uint64_t len = take_number(c);
    const uint8_t *name = take(c, len);
    uint64_t columns = take_number(c);
    if (c->short_of)
        return CATALOGUE_OK;
    const struct table *t = tables_find(&a->tables, (const char *)name, (size_t)len);
    if (!t || (uint64_t)t->count != columns || a->named_count == TABLES_MAX)
        return diverge(a, t ? t->name : "", "a record names a table that is not here, or another");
    a->named[a->named_count++] = t;
    return CATALOGUE_OK;
}

/* After it the tables may be other ones: a stream names them anew behind a statement. */
static enum catalogue_status apply_sql(struct effects_applier *a, struct cursor *c)
{
    uint64_t len = take_number(c);
    const uint8_t *text = take(c, len);
    if (c->short_of)
        return CATALOGUE_OK;
    char *sql = strndup((const char *)text, (size_t)len);
    if (!sql)
        return CATALOGUE_NO_MEMORY;
    forget_statements(a);
    int rc = sqlite3_exec(a->db, sql, NULL, NULL, NULL);
    free(sql);
    if (rc != SQLITE_OK) {
        snprintf(a->why, sizeof a->why, "a migration: %s", sqlite3_errmsg(a->db));
        enum catalogue_status status = connection_status(rc);
        return rc == SQLITE_ERROR ? CATALOGUE_CORRUPT : status;
    }
    a->named_count = 0;
    return tables_load(&a->tables, a->db);
}

static enum catalogue_status apply_one(struct effects_applier *a, struct cursor *c)
{
    const uint8_t *operation = take(c, 1);
    if (!operation)
        return CATALOGUE_OK;
    switch (*operation) {
    case STREAM_TABLE:
        return apply_table(a, c);
    case STREAM_INSERT:
    case STREAM_UPDATE:
    case STREAM_DELETE:
        return apply_row(a, c, (enum stream_operation) * operation);
    case STREAM_SQL:
        return apply_sql(a, c);
    case STREAM_SCHEMA:
        a->is_migration = true;
        return take_number(c) <= SCHEMA_VERSION || c->short_of ? CATALOGUE_OK : CATALOGUE_NEWER;
    default:
        return diverge(a, "", "a record holds an operation that is none");
    }
}

/* All operations that are there whole; what is left of the last one stays. */
static enum catalogue_status apply_whole(struct effects_applier *a)
{
    struct cursor c = {.at = (const uint8_t *)a->raw.data};
    c.end = c.at + a->raw.len;
    const uint8_t *done = c.at;
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && c.at < c.end) {
        status = apply_one(a, &c);
        if (c.short_of)
            break;
        done = c.at;
    }
    size_t left = (size_t)(c.end - done);
    if (left > OPERATION_MAX)
        return diverge(a, "", "a record holds a row without end");
    memmove(a->raw.data, done, left);
    a->raw.len = left;
    return status;
}

/* ---- the applier */

struct effects_applier *effects_applier_new(sqlite3 *db)
{
    struct effects_applier *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->db = db;
    if (tables_load(&a->tables, db) == CATALOGUE_OK)
        return a;
    effects_applier_free(a);
    return NULL;
}

void effects_applier_free(struct effects_applier *a)
{
    if (!a)
        return;
    forget_statements(a);
    tables_done(&a->tables);
    str_done(&a->raw);
    free(a);
}

void effects_apply_begin(struct effects_applier *a)
{
    a->why[0] = '\0';
    a->named_count = 0;
    a->is_migration = false;
    str_clear(&a->raw);
}

enum catalogue_status effects_apply(struct effects_applier *a, const void *bytes, size_t len)
{
    str_append(&a->raw, bytes, len);
    return a->raw.failed ? CATALOGUE_NO_MEMORY : apply_whole(a);
}

enum catalogue_status effects_apply_end(struct effects_applier *a)
{
    return a->raw.len == 0 ? CATALOGUE_OK : diverge(a, "", "a record ends too soon");
}

bool effects_apply_migrated(const struct effects_applier *a)
{
    return a->is_migration;
}

const char *effects_apply_why(const struct effects_applier *a)
{
    return a->why;
}
