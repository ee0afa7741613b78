/* Files of another version: an older one is brought forward with all it holds, a newer one is
 * refused and left as it is. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include "db/file/schema.h"
#include "tests/unit/db/read/read_fixture.h"
#include "tests/unit/own_program.h"
#include "tests/unit/scratch.h"

#define ORIGIN "https://www.example.com"

extern char **environ;

static int make_folder(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    scratch_name(f.folder, "sitemapd-migrate");
    assert_non_null(mkdtemp(f.folder));
    snprintf(f.path, sizeof f.path, "%s/c.db", f.folder);
    *state = &f;
    return 0;
}

static int drop_folder(void **state)
{
    fixture_close(*state);
    return 0;
}

/* A catalogue as version 1 left it, with three entries in one index. */
static void make_version_1(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    fixture_sql(db, "PRAGMA journal_mode=WAL");
    fixture_sql(db, "BEGIN");
    fixture_sql(db, "%s", schema_step(0));
    fixture_sql(db,
                "INSERT INTO catalogue VALUES(1, '0123456789abcdef0123456789abcdef', 0, 0, 0, 0);"
                "PRAGMA application_id = 0x534d4150; PRAGMA user_version = 1; COMMIT");
    fixture_site(db, 1, ORIGIN);
    fixture_index(db, 1, 1, "/sitemap_index.xml");
    fixture_entry(db, 1, 0, ORIGIN "/a.xml", "2026-01-01");
    fixture_entry(db, 1, 1, ORIGIN "/b.xml", NULL);
    fixture_entry(db, 1, 777, ORIGIN "/c.xml", "2026-01-03");
    fixture_sql(db, "UPDATE catalogue SET registry_revision = 1");
    /* Its segments were of 500 positions. */
    fixture_sql(db, "DELETE FROM segment; INSERT INTO segment SELECT 1,"
                    " (address & 0xffffffff) / 500, count(*), max(serial) FROM sitemap GROUP BY 2");
    fixture_sql(db, "INSERT INTO token VALUES(1, 'deploy', zeroblob(32), NULL, 5)");
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

static struct catalogue_options options_for(const char *path)
{
    return (struct catalogue_options){.path = path,
                                      .write_timeout_ms = 60000,
                                      .shrink_percent = 30,
                                      .default_max_pages = LIMIT_SITE_PAGES};
}

static struct catalogue *open_catalogue(const char *path)
{
    struct catalogue_options options = options_for(path);
    struct catalogue *c;
    char why[256];
    if (catalogue_open(&options, &c, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    return c;
}

static void tell(void *context, const char *sentence)
{
    (void)context;
    print_message("check: %s\n", sentence);
}

static void assert_sound(struct catalogue *c)
{
    uint64_t problems = 1;
    assert_int_equal(catalogue_check(c, tell, NULL, &problems), CATALOGUE_OK);
    assert_int_equal(problems, 0);
}

static bool append(void *context, uint32_t position, const char *loc, size_t loc_len,
                   const char *lastmod, const char *extensions, size_t extensions_len)
{
    char *text = context;
    size_t len = strlen(text);
    assert_true(extensions == NULL && extensions_len == 0);
    snprintf(text + len, 512 - len, "%u %.*s %s\n", position, (int)loc_len, loc,
             lastmod ? lastmod : "-");
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
    assert_int_equal(catalogue_view_positions(v, 1, 0, 1000, append, text), CATALOGUE_OK);
    assert_string_equal(text, "0 " ORIGIN "/a.xml 2026-01-01\n"
                              "1 " ORIGIN "/b.xml -\n"
                              "777 " ORIGIN "/c.xml 2026-01-03\n");
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
    assert_sound(c);
    struct change change = {.kind = CHANGE_ENTRY_REMOVE, .loc = ORIGIN "/b.xml"};
    struct change_result r;
    assert_int_equal(catalogue_apply(c, &change, &r), CATALOGUE_OK);
    entry_record_done(&r.entry);
    assert_sound(c);
    catalogue_close(c);
    assert_int_equal(version_of(f->path, "PRAGMA user_version"), SCHEMA_VERSION);
    assert_int_equal(version_of(f->path, "PRAGMA application_id"), SCHEMA_APPLICATION_ID);
    assert_int_equal(version_of(f->path, "SELECT count(*) FROM page"), 1);
    assert_int_equal(version_of(f->path, "SELECT count(*) FROM page WHERE stamp = 0"), 0);
}

/* What was migrated and what was made anew are one and the same. */
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

/* Version 4 halves the segments: 0 to 499 become two, 500 to 999 two more. */
static void segments_are_halved(void **state)
{
    struct fixture *f = *state;
    make_version_1(f->path);
    catalogue_close(open_catalogue(f->path));
    static const int entries[] = {2, 0, 0, 1}, revision[] = {2, 2, 3, 3};
    sqlite3 *db;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(fixture_number(db, "SELECT count(*) FROM segment"), 4);
    for (int i = 0; i < 4; i++) {
        char what[96];
        snprintf(what, sizeof what, "SELECT entries FROM segment WHERE number = %d", i);
        assert_int_equal(fixture_number(db, what), entries[i]);
        snprintf(what, sizeof what, "SELECT revision FROM segment WHERE number = %d", i);
        assert_int_equal(fixture_number(db, what), revision[i]);
    }
    sqlite3_close(db);
}

/* Version 11 has what polls and sources know alike of a sitemap in one row. */
static void what_polls_know_is_told_once(void **state)
{
    static const char fetched[] =
        "INSERT INTO fetch(site, source, list, loc, state, status, marks, next_at, interval_s,"
        " failures, checked_at, good_at, changed_at, full_at, since, hash, dateless, urls, bytes,"
        " one_lastmod, line) VALUES(%s, %d, %d, '" ORIGIN "%s', 1, 200, 0, 9, 60, 0, 8, 8, 0, 8, 8,"
        " zeroblob(16), %s, 3, 500, 0, 0)";
    static const char known[] =
        "INSERT INTO source_file(source, path, site, loc, state, refused, device, inode, size,"
        " mtime_ns, hash, lastmod, urls, bytes, one_lastmod, future, line, \"column\","
        " problem_since, claim) VALUES(2, '" ORIGIN "%s', 1, '" ORIGIN "%s', 0, 0, 0, 0, 0, 0,"
        " zeroblob(16), %s, %d, 500, 0, 0, 0, 0, 0, '2026-01-01')";
    struct fixture *f = *state;
    make_version_1(f->path);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    for (int i = 1; i < 10; i++)
        fixture_sql(f->db, "%s", schema_step(i));
    fixture_sql(f->db, "PRAGMA user_version = 10; INSERT INTO source VALUES(2, 'shop');"
                       "INSERT INTO source_state(source, scanned_at, good_at, held, files, listed,"
                       " quarantined) VALUES(2, 1, 1, 0, 3, 3, 0)");
    fixture_sql(f->db, known, "/a.xml", "/a.xml", "'2026-01-01'", 3);
    fixture_sql(f->db, known, "/b.xml", "/b.xml", "NULL", 3);
    fixture_sql(f->db, known, "/c.xml", "/c.xml", "'2026-01-03'", 4); /* not as polls say */
    fixture_sql(f->db, fetched, "1", 2, 0, "/a.xml", "zeroblob(16)");
    fixture_sql(f->db, fetched, "1", 2, 0, "/b.xml", "NULL");
    fixture_sql(f->db, fetched, "1", 2, 0, "/c.xml", "x'000102030405060708090a0b0c0d0e0f'");
    fixture_sql(f->db, fetched, "1", 0, 0, "/d.xml", "zeroblob(16)");
    fixture_sql(f->db, fetched, "0", 2, 1, "/list.xml", "NULL");
    fixture_sql(f->db, "CREATE TABLE was AS SELECT * FROM source_file");
    struct catalogue *c = open_catalogue(f->path);
    assert_sound(c);
    catalogue_close(c);
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM source_file_row"), 1);
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM fetch WHERE listed = 1"), 2);
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM fetch WHERE loc = '" ORIGIN
                                           "/list.xml' OR loc IN ('/a.xml', '/b.xml', '/c.xml',"
                                           " '/d.xml')"),
                     5);
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM (SELECT source, path, site, loc,"
                                           " hash, lastmod, urls, bytes, claim FROM was INTERSECT"
                                           " SELECT source, path, site, loc, hash, lastmod, urls,"
                                           " bytes, claim FROM source_file)"),
                     3);
}

/* Version 12 keeps what polls know in fewer bytes: all of it is as it was. */
static void what_polls_know_is_kept_shorter(void **state)
{
    static const char *const dates[][2] = {
        /* lastmod, claim */
        {"''", "'2026-10-01T08:09:10Z'"},
        {"'2026-10-02T08:09:10+00:00'", "'2026-10-01T08:09:10+00:00'"},
        {"'2026-10-02'", "'2026-10-01T08:09:10+02:00'"},
        {"'2026-10-02T08:09:10.5Z'", "'2026-02-31T08:09:10Z'"},
        {"'1970-01-01T00:00:00Z'", "'1969-12-31T23:59:59Z'"},
        {"'9999-12-31T23:59:59Z'", "'0001-01-01T00:00:00+00:00'"},
        {"NULL", "NULL"},
        {"''", "NULL"},
    };
    const int count = sizeof dates / sizeof *dates;
    struct fixture *f = *state;
    make_version_1(f->path);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    for (int i = 1; i < 11; i++)
        fixture_sql(f->db, "%s", schema_step(i));
    fixture_sql(f->db,
                "PRAGMA user_version = 11; INSERT INTO source VALUES(2, 'shop');"
                "INSERT INTO source_state(source, scanned_at, good_at, held, files, listed,"
                " quarantined) VALUES(2, 1, 1, 0, %d, %d, 0)",
                count, count);
    for (int i = 0; i < count; i++)
        fixture_sql(f->db,
                    "INSERT INTO fetch(site, source, list, loc, state, status, marks, next_at,"
                    " interval_s, failures, checked_at, good_at, changed_at, full_at, since, urls,"
                    " bytes, one_lastmod, line, listed, lastmod, claim) VALUES(1, 2, 0, '/%d.xml',"
                    " %d, 200, 0, 9, 60, 0, 900, 800, 700, 600, 1000, 3, 500, 0, 0, 1, %s, %s)",
                    i, i % 4, dates[i][0], dates[i][1]);
    fixture_sql(f->db, "CREATE TABLE was AS SELECT * FROM source_file");
    struct catalogue *c = open_catalogue(f->path);
    assert_sound(c);
    catalogue_close(c);
    assert_int_equal(fixture_number(f->db,
                                    "SELECT count(*) FROM (SELECT path, lastmod, claim FROM"
                                    " was INTERSECT SELECT path, lastmod, claim FROM source_file)"),
                     count);
    assert_int_equal(fixture_number(f->db, "SELECT group_concat(typeof(claim) = 'integer', '')"
                                           " = '11000000' AND group_concat(typeof(lastmod) ="
                                           " 'integer', '') = '01000100' FROM fetch"),
                     1);
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM fetch WHERE (good_ago, full_ago,"
                                           " since_ago, changed_at) = (100, 300, -100, 700)"),
                     count);
}

static void a_newer_file_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    struct catalogue_options options = options_for(f->path);
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
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM sqlite_schema"
                                           " WHERE name = 'source_file'"),
                     0);
}

/* One step or none: what is half way in is undone. */
static void a_migration_that_fails_leaves_the_file_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct catalogue_options options = options_for(f->path);
    struct catalogue *c;
    char why[256];
    make_version_1(f->path);
    assert_int_equal(sqlite3_open(f->path, &f->db), SQLITE_OK);
    fixture_sql(f->db, "CREATE TABLE source_state(mine)");
    assert_int_not_equal(catalogue_open(&options, &c, why, sizeof why), CATALOGUE_OK);
    assert_non_null(strstr(why, "source_state"));
    assert_int_equal(fixture_number(f->db, "PRAGMA user_version"), 1);
    assert_int_equal(fixture_number(f->db, "SELECT count(*) FROM sqlite_schema"
                                           " WHERE name = 'source_file'"),
                     0);
    fixture_sql(f->db, "DROP TABLE source_state");
    c = open_catalogue(f->path);
    assert_serves(c);
    catalogue_close(c);
}

/* ---- at once --------------------------------------------------------------------------- */

enum { PROCESSES = 4, ROUNDS = 5 };

/* Another program that waits for the signal (its input ends), then opens the catalogue. */
static int open_main(const char *path)
{
    struct catalogue_options options = options_for(path);
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
        assert_sound(c);
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
    assert_sound(c);
    catalogue_close(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, drop_folder)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(an_older_file_is_brought_forward),
        TEST(both_ways_lead_to_the_same_tables),
        TEST(segments_are_halved),
        TEST(what_polls_know_is_told_once),
        TEST(what_polls_know_is_kept_shorter),
        TEST(a_newer_file_is_refused_and_left_alone),
        TEST(a_migration_that_fails_leaves_the_file_as_it_was),
        TEST(processes_at_once_migrate_once),
        TEST(a_backup_of_version_1_is_migrated_when_it_takes_the_place),
    };
    if (argc == 3 && strcmp(argv[1], "--open") == 0)
        return open_main(argv[2]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
