/* sqlite3_preupdate_hook is declared only where it is asked for. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "db/shared/effects.h"

#include <stdlib.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/shared/effects_stream.h"
#include "db/shared/tables.h"
#include "server/base/str.h"

/* So many bytes go to the sink at once. */
#define RAW_BYTES (64u << 10)

struct effects {
    sqlite3 *db;
    struct recorder *recorder; /* borrowed; NULL: none */
    struct tables tables;
    bool listening, any;
    enum catalogue_status status;
    const struct table *last; /* of the row before; rows of one table come together */
    int places[TABLES_MAX];   /* in this stream; -1: not named yet */
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
    int type = value ? sqlite3_value_type(value) : SQLITE_NULL;
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
        /* A text as a blob, too: the engine would copy it to end it with a NUL. */
        const void *bytes = sqlite3_value_blob(value);
        str_append_char(&e->raw, type == SQLITE_TEXT ? STREAM_TEXT : STREAM_BLOB);
        put_bytes(e, bytes ? bytes : "", (size_t)sqlite3_value_bytes(value));
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
    int type = a ? sqlite3_value_type(a) : SQLITE_NULL;
    if (type != (b ? sqlite3_value_type(b) : SQLITE_NULL))
        return false;
    if (type == SQLITE_NULL)
        return true;
    if (type == SQLITE_INTEGER)
        return sqlite3_value_int64(a) == sqlite3_value_int64(b);
    if (type == SQLITE_FLOAT)
        return false; /* there is none; it is told, whatever it was */
    int len = sqlite3_value_bytes(a);
    if (len != sqlite3_value_bytes(b))
        return false;
    const void *left = sqlite3_value_blob(a), *right = sqlite3_value_blob(b);
    return len == 0 || (left && right && memcmp(left, right, (size_t)len) == 0);
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

static void note_insert(struct effects *e, const struct table *t, int64_t rowid)
{
    put_head(e, STREAM_INSERT, t);
    if (t->has_rowid && t->alias < 0)
        put_number(e, stream_zigzag(rowid));
    for (int i = 0; i < t->count; i++)
        put_value(e, new_value(e, i));
}

static void note_update(struct effects *e, const struct table *t, int64_t from)
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

static void note_row(struct effects *e, int operation, const char *name, int64_t from, int64_t to)
{
    const struct table *t = e->last;
    if (!t || strcmp(t->name, name) != 0)
        t = tables_find(&e->tables, name, strlen(name));
    e->last = t;
    /* A table that came since, or has columns more; or a rowid that moved, which none does that no
     * column shows. */
    if (!t || sqlite3_preupdate_count(e->db) != t->count ||
        (operation == SQLITE_UPDATE && t->has_rowid && t->alias < 0 && from != to)) {
        effects_fail(e, CATALOGUE_UNAVAILABLE);
        return;
    }
    e->any = true;
    if (operation == SQLITE_INSERT) {
        note_insert(e, t, to);
    } else if (operation == SQLITE_UPDATE) {
        note_update(e, t, from);
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
        note_row(e, operation, table, from, to);
    if (e->recorder)
        recorder_on_row(e->recorder, db, operation, database, table, from, to);
}

/* ---- the recorder */

struct effects *effects_new(sqlite3 *db, struct recorder *recorder, effects_sink *sink,
                            void *context)
{
    struct effects *e = calloc(1, sizeof *e);
    if (!e)
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
    if (!e)
        return;
    sqlite3_preupdate_hook(e->db, NULL, NULL);
    tables_done(&e->tables);
    str_done(&e->raw);
    free(e);
}

/* Places of tables hold within a stream: what was named so far is named anew. */
static void forget_places(struct effects *e)
{
    e->last = NULL;
    e->named = 0;
    for (size_t i = 0; i < TABLES_MAX; i++)
        e->places[i] = -1;
}

enum catalogue_status effects_reload(struct effects *e)
{
    forget_places(e);
    return tables_load(&e->tables, e->db);
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

enum catalogue_status effects_add_schema(struct effects *e, int version)
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
    return e ? e->status : CATALOGUE_OK;
}

enum catalogue_status effects_end(struct effects *e)
{
    e->listening = false;
    hand_over(e);
    return e->status;
}
