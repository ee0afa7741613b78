/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* What was recorded on one file and applied to another makes them equal, whatever the statements
 * were; what does not fit is divergence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* cmocka.h needs the first four. */
#include <cmocka.h>

#include "db/file/schema.h"
#include "db/shared/effects.h"
#include "tests/unit/db/shared/shared_dump.h"

static const char tables[] =
    "CREATE TABLE entry(address INTEGER PRIMARY KEY, site INTEGER NOT NULL, loc TEXT NOT NULL,"
    " note TEXT, hash BLOB) STRICT;"
    "CREATE UNIQUE INDEX entry_loc ON entry(site, loc);"
    "CREATE TABLE page(i INTEGER NOT NULL, n INTEGER NOT NULL, entries INTEGER NOT NULL,"
    " PRIMARY KEY (n, i)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE name(name TEXT PRIMARY KEY, used INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE part(revision INTEGER NOT NULL, part INTEGER NOT NULL, rows BLOB NOT NULL,"
    " PRIMARY KEY (revision, part)) STRICT;"
    "CREATE TABLE token(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,"
    " share REAL NOT NULL DEFAULT 0.5) STRICT;"
    "CREATE TABLE child(id INTEGER PRIMARY KEY, token INTEGER NOT NULL REFERENCES token(id))"
    " STRICT;"
    "CREATE TABLE local_own(one INTEGER PRIMARY KEY, n INTEGER NOT NULL) STRICT;";

struct pair {
    sqlite3 *from, *to;
    struct effects *effects;
    struct effects_applier *applier;
    struct str stream;
    size_t piece;
};

static enum catalogue_status keep(void *context, const void *bytes, size_t len)
{
    str_append(context, bytes, len);
    return CATALOGUE_OK;
}

static void run(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error) != SQLITE_OK)
        fail_msg("%s: %s", sql, error);
}

static sqlite3 *make(void)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    run(db, "PRAGMA foreign_keys=ON");
    run(db, tables);
    return db;
}

static void pair_open(struct pair *p)
{
    *p = (struct pair){.from = make(), .to = make(), .piece = 1};
    p->effects = effects_new(p->from, NULL, keep, &p->stream);
    p->applier = effects_applier_new(p->to);
    assert_non_null(p->effects);
    assert_non_null(p->applier);
}

static void pair_close(struct pair *p)
{
    effects_free(p->effects);
    effects_applier_free(p->applier);
    str_done(&p->stream);
    sqlite3_close(p->from);
    sqlite3_close(p->to);
}

static void record(struct pair *p, const char *sql)
{
    str_clear(&p->stream);
    run(p->from, "BEGIN");
    effects_begin(p->effects);
    run(p->from, sql);
    assert_int_equal(effects_end(p->effects), CATALOGUE_OK);
    run(p->from, "COMMIT");
}

static enum catalogue_status apply(struct pair *p)
{
    enum catalogue_status status = CATALOGUE_OK;
    run(p->to, "BEGIN");
    effects_apply_begin(p->applier);
    for (size_t at = 0; status == CATALOGUE_OK && at < p->stream.len; at += p->piece) {
        size_t left = p->stream.len - at;
        status = effects_apply(p->applier, p->stream.data + at, left < p->piece ? left : p->piece);
    }
    if (status == CATALOGUE_OK)
        status = effects_apply_end(p->applier);
    run(p->to, status == CATALOGUE_OK ? "COMMIT" : "ROLLBACK");
    return status;
}

static void follows(struct pair *p, const char *sql)
{
    record(p, sql);
    if (apply(p) != CATALOGUE_OK)
        fail_msg("%s: %s", sql, effects_apply_why(p->applier));
    assert_equal_dumps(p->from, p->to);
}

static void every_kind_of_statement_is_followed(void **state)
{
    static const char *const statements[] = {
        "INSERT INTO entry VALUES (1, 1, 'a', NULL, x'00ff'), (2, 1, 'b', '', NULL),"
        " (9223372036854775807, -1, 'c\xc3\xa9', 'n', x'')",
        "UPDATE entry SET note = 'x' WHERE address = 1",
        "UPDATE entry SET note = note", /* nothing differs */
        /* A swap of what is unique, by way of a place of its own. */
        "UPDATE entry SET address = -1 WHERE address = 1; UPDATE entry SET loc = 'a2', address = 1"
        " WHERE address = 2; UPDATE entry SET loc = 'b', address = 2 WHERE address = -1;"
        "UPDATE entry SET loc = 'a' WHERE address = 1",
        "REPLACE INTO entry VALUES (2, 1, 'a', 'over two rows', NULL)",
        "INSERT INTO entry VALUES (2, 1, 'z', 'by address', NULL)"
        " ON CONFLICT DO UPDATE SET note = excluded.note",
        "INSERT OR IGNORE INTO entry VALUES (2, 1, 'q', NULL, NULL)",
        "INSERT INTO page VALUES (1, 1, 5), (1, 2, 6), (2, 1, 7)",
        "REPLACE INTO page VALUES (1, 2, 60)",
        "UPDATE page SET entries = entries + 1 WHERE i = 1",
        "UPDATE page SET n = n + 10", /* keys */
        "INSERT INTO name VALUES ('', 1), ('b', 2), ('c''', 3)",
        "INSERT INTO name VALUES ('b', 9) ON CONFLICT DO UPDATE SET used = used + excluded.used",
        "DELETE FROM name WHERE name > 'b'",
        "INSERT INTO part VALUES (1, 1, zeroblob(300000)), (1, 2, x'01'), (7, 1, randomblob(5000))",
        "DELETE FROM part WHERE revision = 1 AND part = 1",
        "INSERT INTO part SELECT 8, part, rows FROM part",
        "INSERT INTO token(name) VALUES ('one'), ('two'); INSERT INTO child(token) SELECT id FROM "
        "token",
        "DELETE FROM child WHERE id = 2; DELETE FROM token WHERE name = 'two'",
        "INSERT INTO token(name, share) VALUES ('three', 2.0)",
        "INSERT INTO local_own VALUES (1, 1); UPDATE local_own SET n = 2",
        "DELETE FROM part", /* without WHERE: row by row all the same */
        "DELETE FROM entry; DELETE FROM page; DELETE FROM name",
    };
    struct pair p;
    pair_open(&p);
    for (size_t piece = 1; piece <= 100000; piece *= 100) {
        p.piece = piece;
        for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
            follows(&p, statements[i]);
        run(p.from, "DELETE FROM local_own");
        follows(&p, "DELETE FROM child; DELETE FROM token");
    }
    sqlite3_stmt *own = NULL; /* a node's own is nobody else's */
    assert_int_equal(sqlite3_prepare_v2(p.to, "SELECT 1 FROM local_own", -1, &own, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(own), SQLITE_DONE);
    sqlite3_finalize(own);
    pair_close(&p);
}

static void nothing_recorded_is_nothing(void **state)
{
    struct pair p;
    pair_open(&p);
    record(&p, "INSERT INTO local_own VALUES (1, 1); SELECT 1; DELETE FROM entry");
    assert_false(effects_are_any(p.effects));
    assert_int_equal(p.stream.len, 0);
    record(&p, "INSERT INTO name VALUES ('a', 1)");
    assert_true(effects_are_any(p.effects));
    record(&p, "SELECT 1"); /* each transaction by itself */
    assert_false(effects_are_any(p.effects));
    pair_close(&p);
}

/* Tables that a statement makes or changes are known behind it on both sides. */
static void statements_that_every_node_runs_are_followed(void **state)
{
    static const char *const steps[] = {
        "ALTER TABLE name ADD COLUMN more TEXT",
        "CREATE TABLE later(id INTEGER PRIMARY KEY, t TEXT) STRICT"};
    struct pair p;
    pair_open(&p);
    follows(&p, "INSERT INTO name VALUES ('a', 1), ('b', 2)");
    run(p.from, "BEGIN");
    str_clear(&p.stream);
    effects_begin(p.effects);
    run(p.from, "UPDATE name SET used = 3");
    for (size_t i = 0; i < 2; i++) {
        run(p.from, steps[i]);
        assert_int_equal(effects_add_sql(p.effects, steps[i]), CATALOGUE_OK);
    }
    run(p.from, "UPDATE name SET more = 'x', used = 4 WHERE name = 'a';"
                "INSERT INTO later(t) VALUES (hex(randomblob(8)))");
    assert_int_equal(effects_end(p.effects), CATALOGUE_OK);
    run(p.from, "COMMIT");
    assert_int_equal(apply(&p), CATALOGUE_OK);
    assert_equal_dumps(p.from, p.to);
    follows(&p, "INSERT INTO later(t) VALUES ('after it')");
    pair_close(&p);
}

/* A file of this version with some rows. */
static void make_version(sqlite3 *db, int version)
{
    assert_int_equal(schema_make(db, version), SQLITE_OK);
    run(db,
        "INSERT INTO site(id, origin, managed, max_pages) VALUES (1, 'https://a.example', 0, 9);"
        "INSERT INTO source VALUES (2, 'shop')");
}

/* Each step of the schema, taken by one node and followed by another. */
static void steps_of_the_schema_are_followed(void **state)
{
    for (int version = 1; version < SCHEMA_VERSION; version++) {
        struct pair p = {.piece = 100000};
        assert_int_equal(sqlite3_open(":memory:", &p.from), SQLITE_OK);
        assert_int_equal(sqlite3_open(":memory:", &p.to), SQLITE_OK);
        make_version(p.from, version);
        make_version(p.to, version);
        p.effects = effects_new(p.from, NULL, keep, &p.stream);
        p.applier = effects_applier_new(p.to);
        run(p.from, "BEGIN");
        effects_begin(p.effects);
        assert_int_equal(migration_run(p.from, p.effects, version), CATALOGUE_OK);
        assert_int_equal(effects_end(p.effects), CATALOGUE_OK);
        run(p.from, "COMMIT");
        if (apply(&p) != CATALOGUE_OK)
            fail_msg("from %d: %s", version, effects_apply_why(p.applier));
        assert_true(effects_apply_migrated(p.applier));
        assert_equal_dumps(p.from, p.to);
        pair_close(&p);
    }
}

static void what_does_not_fit_is_divergence(void **state)
{
    static const struct {
        const char *there, *statement;
    } rows[] = {
        {"INSERT INTO name VALUES ('a', 1)", "INSERT INTO name VALUES ('a', 2)"},
        {"DELETE FROM entry", "UPDATE entry SET note = 'x' WHERE address = 1"},
        {"DELETE FROM entry", "DELETE FROM entry WHERE address = 1"},
        {"DELETE FROM page", "DELETE FROM page WHERE n = 1"},
        {"UPDATE entry SET loc = 'other'", "INSERT INTO entry VALUES (2, 1, 'other', NULL, NULL)"},
        {"DELETE FROM token", "INSERT INTO child(token) VALUES (1)"},
        {"DROP TABLE name", "INSERT INTO name VALUES ('q', 2)"},
        {"ALTER TABLE name ADD COLUMN more TEXT", "INSERT INTO name VALUES ('q', 2)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pair p;
        pair_open(&p);
        follows(&p, "INSERT INTO entry VALUES (1, 1, 'a', NULL, NULL);"
                    "INSERT INTO page VALUES (1, 1, 1); INSERT INTO token(name) VALUES ('t')");
        run(p.to, rows[i].there);
        effects_applier_free(p.applier);
        p.applier = effects_applier_new(p.to);
        record(&p, rows[i].statement);
        if (apply(&p) != CATALOGUE_CORRUPT || *effects_apply_why(p.applier) == '\0')
            fail_msg("%s, behind %s", rows[i].statement, rows[i].there);
        pair_close(&p);
    }
}

/* Whatever the bytes are: they are checked, and nothing is read beyond them. */
static void damaged_streams_are_refused(void **state)
{
    struct pair p;
    struct str whole = STR_INIT;
    pair_open(&p);
    record(&p, "INSERT INTO entry VALUES (1, 1, 'a', 'n', x'0102'), (2, 1, 'b', NULL, NULL);"
               "INSERT INTO page VALUES (1, 1, 1); UPDATE entry SET note = 'm'; DELETE FROM page");
    str_append(&whole, p.stream.data, p.stream.len);
    for (size_t len = 1; len < whole.len; len++) { /* cut short: at most a whole operation fewer */
        str_clear(&p.stream);
        str_append(&p.stream, whole.data, len);
        apply(&p);
        run(p.to, "DELETE FROM entry; DELETE FROM page");
    }
    for (size_t at = 0; at < whole.len; at++) {
        for (int bit = 0; bit < 8; bit++) {
            str_clear(&p.stream);
            str_append(&p.stream, whole.data, whole.len);
            p.stream.data[at] = (char)(p.stream.data[at] ^ 1 << bit);
            apply(&p);
            run(p.to, "DELETE FROM entry; DELETE FROM page");
        }
    }
    str_done(&whole);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_statement_is_followed),
        cmocka_unit_test(nothing_recorded_is_nothing),
        cmocka_unit_test(statements_that_every_node_runs_are_followed),
        cmocka_unit_test(steps_of_the_schema_are_followed),
        cmocka_unit_test(what_does_not_fit_is_divergence),
        cmocka_unit_test(damaged_streams_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
