/* SPDX-License-Identifier: LicenseRef-Undeclared */
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/clock.h"

/* sqlite_insert FILE bulk|single COUNT FIRST TUNING: inserts COUNT entries into a catalogue that
 * sitemapd made, with SQLite's API and nothing else: no rule, no lookup, no server. `bulk` writes
 * entries, segments and pages in one transaction; `single` commits each entry by itself. Prints
 * the time as JSON. What it leaves is not a catalogue to serve from.
 *
 * TUNING is one of those below. All are as durable as the catalogue's own connections, and the log
 * never goes back into the file while the clock runs. */

#define PAGE_ENTRIES    50000
#define SEGMENT_ENTRIES 250
#define INDEX_ID        1
#define ENTRY_BYTES     160 /* any number does: nobody serves this file */

struct row {
    int64_t address;
    char loc[72], lastmod[24];
};

/* `before` runs ahead of WAL: the size of a page is set by then or never. */
static const struct tuning {
    const char *name, *before, *pragmas;
} tunings[] = {
    {"cache", "", "PRAGMA cache_size=-65536"}, /* the writer's own for a bulk */
    {"exclusive", "", "PRAGMA cache_size=-1048576; PRAGMA locking_mode=EXCLUSIVE"},
    {"pages-of-8k", "PRAGMA journal_mode=DELETE; PRAGMA page_size=8192; VACUUM",
     "PRAGMA cache_size=-1048576"},
};

static sqlite3 *db;
static struct row *rows;

static void check(int rc)
{
    if (rc == SQLITE_OK || rc == SQLITE_DONE)
        return;
    fprintf(stderr, "sqlite_insert: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static void run(const char *sql)
{
    check(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement = NULL;
    check(sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL));
    return statement;
}

static void step(sqlite3_stmt *statement)
{
    check(sqlite3_step(statement));
    check(sqlite3_reset(statement));
}

/* The rows are made before the clock runs. The same as harness.py's. */
static void make_rows(uint32_t first, uint32_t count)
{
    rows = calloc(count, sizeof *rows);
    if (rows == NULL)
        exit(1);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = first + i;
        time_t at = 1789000000 + (time_t)(uint32_t)(number * 2654435761u) % 5184000;
        struct tm utc;
        rows[i].address = (int64_t)INDEX_ID << 32 | number;
        snprintf(rows[i].loc, sizeof rows[i].loc,
                 "https://www.example.com/sitemaps/catalogue/part-%08u.xml.gz", number);
        strftime(rows[i].lastmod, sizeof rows[i].lastmod, "%Y-%m-%dT%H:%M:%SZ",
                 gmtime_r(&at, &utc));
    }
}

static void insert_entry(sqlite3_stmt *entry, const struct row *row)
{
    sqlite3_bind_int64(entry, 1, row->address);
    sqlite3_bind_text(entry, 2, row->loc, -1, SQLITE_STATIC);
    sqlite3_bind_text(entry, 3, row->lastmod, -1, SQLITE_STATIC);
    sqlite3_bind_int64(entry, 4, row->address);
    step(entry);
}

static void insert_parts(const char *sql, uint32_t count, uint32_t each)
{
    sqlite3_stmt *part = prepare(sql);

    for (uint32_t number = 0; number * each < count; number++) {
        uint32_t rest = count - number * each;
        sqlite3_bind_int64(part, 1, number);
        sqlite3_bind_int64(part, 2, rest < each ? rest : each);
        sqlite3_bind_int64(part, 3, (sqlite3_int64)each * ENTRY_BYTES);
        step(part);
    }
    sqlite3_finalize(part);
}

static void insert_bulk(sqlite3_stmt *entry, uint32_t count)
{
    run("BEGIN IMMEDIATE");
    for (uint32_t i = 0; i < count; i++)
        insert_entry(entry, &rows[i]);
    insert_parts("INSERT INTO segment(index_id, number, entries, revision) VALUES(1, ?1, ?2, 9)",
                 count, SEGMENT_ENTRIES);
    insert_parts("INSERT INTO page(index_id, number, entries, bytes, changed_at, same_second, "
                 "revision) VALUES(1, ?1 + 1, ?2, ?3, 0, 0, 9)",
                 count, PAGE_ENTRIES);
    run("UPDATE catalogue SET revision = 9");
    run("COMMIT");
}

/* Each statement is a transaction of its own: nothing is parsed or begun for it. */
static void insert_singles(sqlite3_stmt *entry, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        insert_entry(entry, &rows[i]);
}

static const struct tuning *find_tuning(const char *name)
{
    for (size_t i = 0; i < sizeof tunings / sizeof *tunings; i++)
        if (strcmp(tunings[i].name, name) == 0)
            return &tunings[i];
    return NULL;
}

int main(int argc, char **argv)
{
    bool bulk = argc == 6 && strcmp(argv[2], "bulk") == 0;
    const struct tuning *tuning = argc == 6 ? find_tuning(argv[5]) : NULL;

    if (tuning == NULL || (!bulk && strcmp(argv[2], "single") != 0)) {
        fprintf(stderr, "usage: sqlite_insert FILE bulk|single COUNT FIRST TUNING\n");
        return 2;
    }
    uint32_t count = (uint32_t)strtoul(argv[3], NULL, 10);
    uint32_t first = (uint32_t)strtoul(argv[4], NULL, 10);
    check(sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL));
    run(tuning->before);
    run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        "PRAGMA mmap_size=0");
    run(tuning->pragmas);
    sqlite3_wal_autocheckpoint(db, 0);
    sqlite3_stmt *entry = prepare(
        "INSERT INTO sitemap(address, site, loc, lastmod, digest, source, serial, registered_at, "
        "changed_at) VALUES(?1, 1, ?2, ?3, NULL, 1, ?4, 1790000000, 1790000000)");

    make_rows(first, count);
    double wall = clock_ms(CLOCK_MONOTONIC);
    double cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    if (bulk)
        insert_bulk(entry, count);
    else
        insert_singles(entry, count);
    wall = clock_ms(CLOCK_MONOTONIC) - wall;
    printf("{\"ms\": %.3f, \"cpu_ms\": %.3f, \"rows\": %u}\n", wall,
           clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu, count);
    sqlite3_finalize(entry);
    sqlite3_close(db);
    free(rows);
    return 0;
}
