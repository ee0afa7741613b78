/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Without this macro, sqlite3.h does not declare sqlite3_preupdate_hook. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "db/shared/effects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/file/schema.h"
#include "db/history/recorder.h"
#include "db/shared/digest.h"
#include "server/base/str.h"

/* ---- the stream */

enum stream_operation {
    STREAM_TABLE = 1,
    STREAM_INSERT,
    STREAM_UPDATE,
    STREAM_DELETE,
    STREAM_SQL,
    STREAM_SCHEMA
};
enum stream_type { STREAM_NULL, STREAM_INTEGER, STREAM_REAL, STREAM_TEXT, STREAM_BLOB };

#define STREAM_NUMBER_MAX 10

/* Writes `n` and returns its length. */
static size_t stream_number(uint8_t out[STREAM_NUMBER_MAX], uint64_t n)
{
    size_t len = 0;
    for (; n >= 0x80; n >>= 7)
        out[len++] = (uint8_t)(n | 0x80);
    out[len++] = (uint8_t)n;
    return len;
}

static uint64_t stream_zigzag(int64_t n)
{
    return (uint64_t)n << 1 ^ (uint64_t)(n >> 63);
}

static int64_t stream_unzigzag(uint64_t n)
{
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

/* ---- recording */

/* Bytes that go to the sink at once. */
#define RAW_BYTES (64u << 10)

struct effects {
    sqlite3 *db;
    struct recorder *const *recorder; /* see effects_new */
    struct tables tables;
    bool listening, any;
    enum catalogue_status status;
    const struct table *last; /* of the row before; rows of one table come together */
    int places[TABLES_MAX];   /* numbers of tables in this stream; -1: not named yet */
    int named;
    struct str raw;
    effects_sink *sink;
    void *context;
};

/* ---- writing */

void effects_fail(struct effects *e, enum catalogue_status status)
{
    if (e->status == CATALOGUE_OK)
        e->status = status;
}

static void hand_over(struct effects *e)
{
    if (e->raw.failed)
        effects_fail(e, CATALOGUE_NO_MEMORY);
    if (e->status == CATALOGUE_OK && e->raw.len > 0)
        effects_fail(e, e->sink(e->context, e->raw.data, e->raw.len));
    str_clear(&e->raw);
}

static void put_number(struct effects *e, uint64_t n)
{
    uint8_t bytes[STREAM_NUMBER_MAX];
    str_append(&e->raw, bytes, stream_number(bytes, n));
}

static void put_bytes(struct effects *e, const void *bytes, size_t len)
{
    put_number(e, len);
    str_append(&e->raw, bytes, len);
}

static void put_value(struct effects *e, sqlite3_value *value)
{
    int type = value != NULL ? sqlite3_value_type(value) : SQLITE_NULL;
    double real;
    switch (type) {
    case SQLITE_INTEGER:
        str_append_char(&e->raw, STREAM_INTEGER);
        put_number(e, stream_zigzag(sqlite3_value_int64(value)));
        break;
    case SQLITE_FLOAT:
        str_append_char(&e->raw, STREAM_REAL);
        real = sqlite3_value_double(value);
        str_append(&e->raw, &real, sizeof real);
        break;
    case SQLITE_TEXT:
    case SQLITE_BLOB: {
        /* A text as a blob, too: SQLite would copy it to end it with a NUL. */
        const void *bytes = sqlite3_value_blob(value);
        str_append_char(&e->raw, type == SQLITE_TEXT ? STREAM_TEXT : STREAM_BLOB);
        put_bytes(e, bytes != NULL ? bytes : "", (size_t)sqlite3_value_bytes(value));
        break;
    }
    default:
        str_append_char(&e->raw, STREAM_NULL);
    }
}

/* ---- listening */

static sqlite3_value *old_value(struct effects *e, int column)
{
    sqlite3_value *value = NULL;
    if (sqlite3_preupdate_old(e->db, column, &value) != SQLITE_OK)
        effects_fail(e, CATALOGUE_NO_MEMORY);
    return value;
}

static sqlite3_value *new_value(struct effects *e, int column)
{
    sqlite3_value *value = NULL;
    if (sqlite3_preupdate_new(e->db, column, &value) != SQLITE_OK)
        effects_fail(e, CATALOGUE_NO_MEMORY);
    return value;
}

static bool is_equal(sqlite3_value *a, sqlite3_value *b)
{
    int type = a != NULL ? sqlite3_value_type(a) : SQLITE_NULL;
    if (type != (b != NULL ? sqlite3_value_type(b) : SQLITE_NULL))
        return false;
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER)
        return sqlite3_value_int64(a) == sqlite3_value_int64(b);
    if (type == SQLITE_FLOAT)
        return false; /* no column has a real: count it as different */
    int len = sqlite3_value_bytes(a);
    if (len != sqlite3_value_bytes(b))
        return false;
    const void *left = sqlite3_value_blob(a), *right = sqlite3_value_blob(b);
    return len == 0 || (left != NULL && right != NULL && memcmp(left, right, (size_t)len) == 0);
}

static void put_key(struct effects *e, const struct table *t, int64_t rowid)
{
    if (t->has_rowid)
        put_number(e, stream_zigzag(rowid));
    for (int i = 0; !t->has_rowid && i < t->count; i++)
        if (t->key >> i & 1)
            put_value(e, old_value(e, i));
}

static void name_table(struct effects *e, const struct table *t)
{
    int *place = &e->places[t - e->tables.list];
    if (*place >= 0)
        return;
    *place = e->named++;
    str_append_char(&e->raw, STREAM_TABLE);
    put_bytes(e, t->name, strlen(t->name));
    put_number(e, (uint64_t)t->count);
}

static void put_head(struct effects *e, enum stream_operation operation, const struct table *t)
{
    name_table(e, t);
    str_append_char(&e->raw, (char)operation);
    put_number(e, (uint64_t)e->places[t - e->tables.list]);
}

static void record_insert(struct effects *e, const struct table *t, int64_t rowid)
{
    put_head(e, STREAM_INSERT, t);
    if (t->has_rowid && t->alias < 0)
        put_number(e, stream_zigzag(rowid));
    for (int i = 0; i < t->count; i++)
        put_value(e, new_value(e, i));
}

static void record_update(struct effects *e, const struct table *t, int64_t from)
{
    uint64_t differ = 0;
    for (int i = 0; i < t->count; i++)
        if (!is_equal(old_value(e, i), new_value(e, i)))
            differ |= UINT64_C(1) << i;
    if (differ == 0)
        return;
    put_head(e, STREAM_UPDATE, t);
    put_key(e, t, from);
    put_number(e, differ);
    for (int i = 0; i < t->count; i++)
        if (differ >> i & 1)
            put_value(e, new_value(e, i));
}

static void record_row(struct effects *e, int operation, const char *name, int64_t from, int64_t to)
{
    const struct table *t = e->last;
    if (t == NULL || strcmp(t->name, name) != 0)
        t = tables_find(&e->tables, name, strlen(name));
    e->last = t;
    /* The table is new or has more columns; or the rowid changed, which only a column can do. */
    if (t == NULL || sqlite3_preupdate_count(e->db) != t->count ||
        (operation == SQLITE_UPDATE && t->has_rowid && t->alias < 0 && from != to)) {
        effects_fail(e, CATALOGUE_UNAVAILABLE);
        return;
    }
    e->any = true;
    if (operation == SQLITE_INSERT) {
        record_insert(e, t, to);
    } else if (operation == SQLITE_UPDATE) {
        record_update(e, t, from);
    } else {
        put_head(e, STREAM_DELETE, t);
        put_key(e, t, from);
    }
    if (e->raw.failed || e->raw.len >= RAW_BYTES)
        hand_over(e);
}

static void on_row(void *context, sqlite3 *db, int operation, char const *database,
                   char const *table, sqlite3_int64 from, sqlite3_int64 to)
{
    struct effects *e = context;
    if (e->listening && e->status == CATALOGUE_OK && strcmp(database, "main") == 0 &&
        table_is_common(table))
        record_row(e, operation, table, from, to);
    if (e->recorder != NULL && *e->recorder != NULL)
        recorder_on_row(*e->recorder, db, operation, database, table, from, to);
}

/* ---- the recorder */

/* Numbers of tables are valid within a stream: names all tables again. */
static void forget_places(struct effects *e)
{
    e->last = NULL;
    e->named = 0;
    for (size_t i = 0; i < TABLES_MAX; i++)
        e->places[i] = -1;
}

enum catalogue_status effects_reload(struct effects *e)
{
    struct tables fresh = {0};
    enum catalogue_status status = tables_load(&fresh, e->db);
    if (status != CATALOGUE_OK)
        return status;
    forget_places(e);
    tables_done(&e->tables);
    e->tables = fresh;
    return CATALOGUE_OK;
}

struct effects *effects_new(sqlite3 *db, struct recorder *const *recorder, effects_sink *sink,
                            void *context)
{
    struct effects *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    *e = (struct effects){.db = db, .recorder = recorder, .sink = sink, .context = context};
    sqlite3_preupdate_hook(db, on_row, e);
    if (effects_reload(e) == CATALOGUE_OK)
        return e;
    effects_free(e);
    return NULL;
}

void effects_free(struct effects *e)
{
    if (e == NULL)
        return;
    sqlite3_preupdate_hook(e->db, NULL, NULL);
    tables_done(&e->tables);
    str_done(&e->raw);
    free(e);
}

const struct tables *effects_tables(const struct effects *e)
{
    return &e->tables;
}

void effects_begin(struct effects *e)
{
    str_clear(&e->raw);
    forget_places(e);
    e->any = false;
    e->status = CATALOGUE_OK;
    e->listening = true;
}

void effects_stop(struct effects *e)
{
    e->listening = false;
    e->status = CATALOGUE_OK;
}

enum catalogue_status effects_add_sql(struct effects *e, const char *sql)
{
    e->any = true;
    str_append_char(&e->raw, STREAM_SQL);
    put_bytes(e, sql, strlen(sql));
    effects_fail(e, effects_reload(e));
    return e->status;
}

/* Records that the following operations migrate the file to this version. */
static enum catalogue_status effects_add_schema(struct effects *e, int version)
{
    e->any = true;
    str_append_char(&e->raw, STREAM_SCHEMA);
    put_number(e, (uint64_t)version);
    return e->status;
}

bool effects_are_any(const struct effects *e)
{
    return e->any;
}

enum catalogue_status effects_status(const struct effects *e)
{
    return e != NULL ? e->status : CATALOGUE_OK;
}

enum catalogue_status effects_end(struct effects *e)
{
    e->listening = false;
    hand_over(e);
    return e->status;
}

/* ---- a migration */

const char *(*migration_step)(int version) = schema_step;

static bool is_everyones(const char *sql)
{
    static const char *const makes[] = {"CREATE", "ALTER", "DROP", "PRAGMA"};
    sql += strspn(sql, " \n;");
    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        if (strncmp(sql, makes[i], strlen(makes[i])) == 0)
            return true;
    return strstr(sql, " local_") != NULL;
}

static enum catalogue_status run_all(sqlite3 *db, struct effects *effects, const char *sql)
{
    enum catalogue_status status = CATALOGUE_OK;
    while (status == CATALOGUE_OK && sql[strspn(sql, " \n;")] != '\0') {
        sqlite3_stmt *statement = NULL;
        const char *rest = sql;
        int rc = sqlite3_prepare_v2(db, sql, -1, &statement, &rest);
        if (rc == SQLITE_OK && statement != NULL)
            rc = sqlite3_step(statement);
        sqlite3_finalize(statement);
        if (rc != SQLITE_DONE && rc != SQLITE_ROW && rc != SQLITE_OK)
            return connection_status(rc);
        char *text = strndup(sql, (size_t)(rest - sql));
        if (text == NULL)
            return CATALOGUE_NO_MEMORY;
        if (is_everyones(text))
            status = effects_add_sql(effects, text);
        free(text);
        sql = rest;
    }
    return status;
}

enum catalogue_status migration_run(sqlite3 *db, struct effects *effects, int from)
{
    char version[64];
    enum catalogue_status status = effects_add_schema(effects, SCHEMA_VERSION);
    for (int step = from; status == CATALOGUE_OK && step < SCHEMA_VERSION; step++)
        status = run_all(db, effects, migration_step(step));
    snprintf(version, sizeof version, "PRAGMA user_version=%d", SCHEMA_SHARED + SCHEMA_VERSION);
    return status == CATALOGUE_OK ? run_all(db, effects, version) : status;
}

/* ---- applying */

/* Most bytes of an operation: far more than any row. */
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
    struct str raw; /* bytes that are not applied yet */
    bool is_migration;
    char why[256];
};

/* ---- reading an operation */

/* A cursor over the received bytes. `short_of`: the operation is incomplete. */
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
        if (byte == NULL)
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
    if (*out == NULL)
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
    if (type == NULL)
        return;
    if (*type == STREAM_INTEGER) {
        sqlite3_bind_int64(statement, parameter, stream_unzigzag(take_number(c)));
    } else if (*type == STREAM_REAL) {
        const uint8_t *bytes = take(c, sizeof real);
        if (bytes != NULL)
            memcpy(&real, bytes, sizeof real);
        if (bytes != NULL)
            sqlite3_bind_double(statement, parameter, real);
    } else if (*type == STREAM_TEXT || *type == STREAM_BLOB) {
        uint64_t len = take_number(c);
        const uint8_t *bytes = take(c, len);
        if (bytes != NULL && *type == STREAM_TEXT)
            sqlite3_bind_text64(statement, parameter, (const char *)bytes, len, SQLITE_STATIC,
                                SQLITE_UTF8);
        else if (bytes != NULL)
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
    if (type == NULL || *type == STREAM_NULL)
        return;
    uint64_t n = *type == STREAM_REAL ? sizeof(double) : take_number(c);
    if (*type != STREAM_INTEGER)
        take(c, n);
}

/* Reads the key: returns the rowid, or sets `*key` to the values. */
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

/* Runs the statement if the operation was complete, and checks that it changed exactly one row. */
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
        status = diverge(a, t->name, "a row that a record changes does not exist");
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
        return diverge(a, t->name, "a record names columns that do not exist");
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
    if (t == NULL || (uint64_t)t->count != columns || a->named_count == TABLES_MAX)
        return diverge(
            a, t != NULL ? t->name : "",
            "a record names a table that does not exist here or is not the expected one");
    a->named[a->named_count++] = t;
    return CATALOGUE_OK;
}

/* The statement may change the tables: the stream names them again after it. */
static enum catalogue_status apply_sql(struct effects_applier *a, struct cursor *c)
{
    uint64_t len = take_number(c);
    const uint8_t *text = take(c, len);
    if (c->short_of)
        return CATALOGUE_OK;
    char *sql = strndup((const char *)text, (size_t)len);
    if (sql == NULL)
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
    if (operation == NULL)
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
        return diverge(a, "", "a record holds an unknown operation");
    }
}

/* Applies all complete operations; the rest of the last one stays in the buffer. */
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
        return diverge(a, "", "a record holds an unterminated row");
    memmove(a->raw.data, done, left);
    a->raw.len = left;
    return status;
}

/* ---- the applier */

struct effects_applier *effects_applier_new(sqlite3 *db)
{
    struct effects_applier *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->db = db;
    if (tables_load(&a->tables, db) == CATALOGUE_OK)
        return a;
    effects_applier_free(a);
    return NULL;
}

void effects_applier_free(struct effects_applier *a)
{
    if (a == NULL)
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
    return a->raw.len == 0 ? CATALOGUE_OK : diverge(a, "", "a record is truncated");
}

bool effects_apply_migrated(const struct effects_applier *a)
{
    return a->is_migration;
}

const char *effects_apply_why(const struct effects_applier *a)
{
    return a->why;
}
