/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Files of another version: an older one is migrated with all it holds, a newer one and a
 * development build's are refused and left as they are. Built as the next release would be
 * (db_next), so that there is a step to take. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "db/file/schema.h"
#include "tests/unit/db/read/read_fixture.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN "https://www.example.com"

extern char **environ;

static int make_folder(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    scratch_make(f.folder, "sitemapd-migrate");
    snprintf(f.path, sizeof f.path, "%s/c.db", f.folder);
    *state = &f;
    return 0;
}

static int drop_folder(void **state)
{
    fixture_close(*state);
    return 0;
}

/* A catalogue of version 1 with three entries in one index, one of them past empty segments. */
static void make_version_1(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    fixture_sql(db, "PRAGMA journal_mode=WAL");
    fixture_sql(db, "BEGIN");
    assert_int_equal(schema_make(db, 1), SQLITE_OK);
    fixture_sql(db,
                "INSERT INTO catalogue(one, epoch, revision, registry_revision, serial, changed_at)"
                " VALUES(1, '0123456789abcdef0123456789abcdef', 0, 0, 0, 0);"
                "PRAGMA application_id = %d; PRAGMA user_version = 1; COMMIT",
                SCHEMA_APPLICATION_ID);
    fixture_site(db, 1, ORIGIN);
    fixture_index(db, 1, 1, "/sitemap_index.xml");
    fixture_entry(db, 1, 0, ORIGIN "/a.xml", "2026-01-01");
    fixture_entry(db, 1, 1, ORIGIN "/b.xml", NULL);
    fixture_entry(db, 1, 777, ORIGIN "/c.xml", "2026-01-03");
    fixture_sql(db, "UPDATE catalogue SET registry_revision = 1;"
                    "INSERT INTO segment VALUES(1, 1, 0, 2), (1, 2, 0, 2);"
                    "INSERT INTO token(id, name, sha256, created_at)"
                    " VALUES(1, 'deploy', zeroblob(32), 5)");
    sqlite3_close(db);
}

static int64_t version_of(const char *path, const char *what)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    int64_t number = fixture_number(db, what);
    sqlite3_close(db);
    return number;
}

static struct catalogue *open_catalogue(const char *path)
{
    struct catalogue_options options = fixture_options(path);
    return fixture_catalogue(&options);
}

static bool append(void *context, const char *loc, size_t loc_len, const char *lastmod,
                   const char *extensions, size_t extensions_len)
{
    char *text = context;
    size_t len = strlen(text);
    assert_true(extensions == NULL && extensions_len == 0);
    snprintf(text + len, 512 - len, "%.*s %s\n", (int)loc_len, loc, lastmod ? lastmod : "-");
    return true;
}

static void assert_serves(struct catalogue *c)
{
    struct catalogue_view *v;
    struct catalogue_revisions revisions;
    struct source_state source;
    struct registry *registry;
    char text[512] = "";
    assert_int_equal(catalogue_view_begin(c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_revisions(v, &revisions), CATALOGUE_OK);
    assert_string_equal(revisions.epoch, "0123456789abcdef0123456789abcdef");
    assert_int_equal(revisions.revision, 3);
    assert_int_equal(revisions.entries, 3);
    assert_int_equal(catalogue_view_registry(v, &registry), CATALOGUE_OK);
    assert_int_equal(registry->token_count, 1);
    registry_unref(registry);
    assert_int_equal(catalogue_view_positions(v, LIST_INDEX, 1, 0, 1000, append, text),
                     CATALOGUE_OK);
    assert_string_equal(text, ORIGIN "/a.xml 2026-01-01\n" ORIGIN "/b.xml -\n" ORIGIN
                                     "/c.xml 2026-01-03\n");
    assert_int_equal(catalogue_view_source_state(v, "tests", &source), CATALOGUE_OK);
    assert_int_equal(source.files, 0);
    catalogue_view_end(v);
}

static void an_older_file_is_brought_forward(void **state)
{
    struct fixture *f = *state;
    make_version_1(f->path);
    assert_int_equal(version_of(f->path, "PRAGMA user_version"), 1);
    struct catalogue *c = open_catalogue(f->path);
    assert_serves(c);
    fixture_assert_sound(c);
    struct change change = {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = ORIGIN "/b.xml"}};
    struct change_result r;
    assert_int_equal(catalogue_apply(c, &change, &r), CATALOGUE_OK);
    entry_record_done(&r.entry);
    fixture_assert_sound(c);
    catalogue_close(c);
    assert_int_equal(version_of(f->path, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(version_of(f->path, "PRAGMA application_id"), SCHEMA_APPLICATION_ID);
    assert_int_equal(version_of(f->path, "SELECT next FROM site"), 7);
    assert_int_equal(version_of(f->path, "SELECT count(*) FROM next"), 1);
}

/* What was migrated and what was made again are one and the same. */
static void both_ways_lead_to_the_same_tables(void **state)
{
    static const char tables[] = "SELECT count(*) FROM sqlite_schema WHERE sql IS NOT NULL";
    struct fixture *f = *state;
    char fresh[128];
    snprintf(fresh, sizeof fresh, "%s/fresh.db", f->folder);
    make_version_1(f->path);
    catalogue_close(open_catalogue(f->path));
    catalogue_close(open_catalogue(fresh));
    assert_int_equal(version_of(f->path, tables), version_of(fresh, tables));
    sqlite3 *db;
    assert_int_equal(sqlite3_open(fresh, &db), SQLITE_OK);
    fixture_sql(db, "ATTACH %Q AS migrated", f->path);
    assert_int_equal(fixture_number(db, "SELECT count(*) FROM main.sqlite_schema AS a JOIN"
                                        " migrated.sqlite_schema AS b USING (name, sql)"),
                     version_of(fresh, tables));
    sqlite3_close(db);
}

static void a_newer_file_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    struct catalogue_options options = fixture_options(f->path);
    struct catalogue *c;
    char why[256];
    make_version_1(f->path);
    f->db = NULL;
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    fixture_sql(f->db, "PRAGMA user_version = %d", SCHEMA_VERSION + 1);
    assert_int_equal(catalogue_open(&options, &c, why, sizeof why), CATALOGUE_NEWER);
    assert_null(c);
    assert_non_null(strstr(why, "newer version of sitemapd"));
    assert_int_equal(fixture_number(f->db, "PRAGMA user_version"), SCHEMA_VERSION + 1);
    assert_int_equal(
        fixture_number(f->db, "SELECT count(*) FROM sqlite_schema WHERE name = 'next'"), 0);
}

static void a_development_file_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    struct catalogue_options options = fixture_options(f->path);
    struct catalogue *c;
    char why[512];
    make_version_1(f->path);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    fixture_sql(f->db, "PRAGMA application_id = %d; PRAGMA user_version = 12",
                SCHEMA_DEVELOPMENT_ID);
    assert_int_equal(catalogue_open(&options, &c, why, sizeof why), CATALOGUE_UNAVAILABLE);
    assert_null(c);
    assert_non_null(strstr(why, "development build of sitemapd (schema 12)"));
    assert_non_null(strstr(why, "sitemapd export"));
    assert_int_equal(fixture_number(f->db, "PRAGMA user_version"), 12);
}

/* One step or none: what is half way in is undone. */
static void a_migration_that_fails_leaves_the_file_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct catalogue_options options = fixture_options(f->path);
    struct catalogue *c;
    char why[256];
    make_version_1(f->path);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    fixture_sql(f->db, "CREATE TABLE next(mine)");
    assert_int_not_equal(catalogue_open(&options, &c, why, sizeof why), CATALOGUE_OK);
    assert_non_null(strstr(why, "next"));
    assert_int_equal(fixture_number(f->db, "PRAGMA user_version"), 1);
    assert_int_equal(
        fixture_number(f->db, "SELECT count(*) FROM pragma_table_info('site') WHERE name = 'next'"),
        0);
    fixture_sql(f->db, "DROP TABLE next");
    c = open_catalogue(f->path);
    assert_serves(c);
    catalogue_close(c);
}

/* ---- at once --------------------------------------------------------------------------- */

enum { PROCESSES = 4, ROUNDS = 5 };

/* Another program that waits for the signal (its input ends), then opens the catalogue. */
static int open_main(const char *path)
{
    struct catalogue_options options = fixture_options(path);
    struct catalogue *c;
    char why[256], byte;
    if (read(0, &byte, 1) != 0)
        return 2;
    if (catalogue_open(&options, &c, why, sizeof why) != CATALOGUE_OK) {
        fprintf(stderr, "%s\n", why);
        return 3;
    }
    catalogue_close(c);
    return 0;
}

static pid_t start_opening(const char *path, int start)
{
    posix_spawn_file_actions_t actions;
    char *arguments[] = {(char *)"test_migrate", (char *)"--open", (char *)(uintptr_t)path, NULL};
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, start, 0);
    assert_int_equal(posix_spawn(&child, own_program(), &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
}

static void processes_at_once_migrate_once(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < ROUNDS; round++) {
        char path[128];
        pid_t children[PROCESSES];
        int start[2];
        snprintf(path, sizeof path, "%s/%d.db", f->folder, round);
        make_version_1(path);
        assert_int_equal(pipe2(start, O_CLOEXEC), 0);
        for (int i = 0; i < PROCESSES; i++)
            children[i] = start_opening(path, start[0]);
        close(start[0]);
        close(start[1]); /* now */
        for (int i = 0; i < PROCESSES; i++) {
            int how;
            assert_int_equal(waitpid(children[i], &how, 0), children[i]);
            assert_int_equal(how, 0);
        }
        struct catalogue *c = open_catalogue(path);
        assert_serves(c);
        fixture_assert_sound(c);
        catalogue_close(c);
    }
}

/* An older backup put in the place of a file that is served. */
static void a_backup_of_version_1_is_migrated_when_it_takes_the_place(void **state)
{
    struct fixture *f = *state;
    char backup[128];
    snprintf(backup, sizeof backup, "%s/backup.db", f->folder);
    struct catalogue *c = open_catalogue(f->path);
    make_version_1(backup);
    assert_int_equal(rename(backup, f->path), 0);
    enum catalogue_wait_result result = CATALOGUE_WAIT_TIMEOUT;
    for (int i = 0; i < 100 && result != CATALOGUE_WAIT_REOPENED; i++)
        result = catalogue_wait(c, 1000);
    assert_int_equal(result, CATALOGUE_WAIT_REOPENED);
    assert_serves(c);
    fixture_assert_sound(c);
    catalogue_close(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(an_older_file_is_brought_forward),
        TEST(both_ways_lead_to_the_same_tables),
        TEST(a_newer_file_is_refused_and_left_alone),
        TEST(a_development_file_is_refused_and_left_alone),
        TEST(a_migration_that_fails_leaves_the_file_as_it_was),
        TEST(processes_at_once_migrate_once),
        TEST(a_backup_of_version_1_is_migrated_when_it_takes_the_place),
    };
    if (argc == 3 && strcmp(argv[1], "--open") == 0)
        return open_main(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
