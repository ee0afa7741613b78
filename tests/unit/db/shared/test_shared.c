/* A catalogue that three nodes share, on a log in memory: whatever is written on whichever node,
 * refused, unknown or broken off, all files hold the same rows in the end, and nothing acknowledged
 * is missing. The seed is printed, and SITEMAPD_SEED sets it. */
#include <fcntl.h>
#include <time.h>

#include "tests/unit/db/write/write_stream.h"

#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/shared/join.h"
#include "db/shared/member.h"
#include "db/shared/migration.h"
#include "db/write/writer.h"
#include "tests/unit/db/shared/memory_log.h"
#include "tests/unit/db/shared/shared_dump.h"

#define NODES 3
#define LOCS  60
#define EPOCH "0123456789abcdef0123456789abcdef"

/* Bounds a hang. */
#define PATIENCE_MS 60000

static const char *const names[NODES] = {"one", "two", "three"};
static const char *const index_paths[] = {ORIGIN "/index.xml", ORIGIN "/m/index.xml",
                                          ORIGIN "/m/n/index.xml"};

struct node {
    struct write_fixture f;
    const char *name;
};

struct cluster {
    struct node nodes[NODES];
    uint64_t random;
    int64_t site, indexes[3];
};

/* ---- nodes */

static void node_open(struct node *n, const char *name)
{
    memset(n, 0, sizeof *n);
    n->name = name;
    scratch_name(n->f.folder, "sitemapd-shared");
    assert_non_null(mkdtemp(n->f.folder));
    snprintf(n->f.path, sizeof n->f.path, "%s/c.db", n->f.folder);
    n->f.options = (struct catalogue_options){
        .path = n->f.path,
        .server = true,
        .write_timeout_ms = 20000,
        .shrink_percent = 30,
        .history_keep_ms = 3600000,
        .history_max_bytes = 200000,
        .clock = fixture_now,
        .default_max_pages = LIMIT_SITE_PAGES,
        .shared = {.database = "memory", .node = name, .release = "test"}};
}

static void node_start(struct node *n)
{
    fixture_reopen(&n->f);
    assert_int_equal(sqlite3_open(n->f.path, &n->f.db), SQLITE_OK);
    sqlite3_busy_timeout(n->f.db, 10000);
}

static void node_stop(struct node *n)
{
    sqlite3_close(n->f.db);
    catalogue_close(n->f.c);
    n->f.db = NULL;
    n->f.c = NULL;
}

static struct shared_state state_of(struct node *n)
{
    struct shared_state state;
    assert_true(catalogue_shared_state(n->f.c, &state));
    return state;
}

#define await(condition, what)                                                                     \
    do {                                                                                           \
        int64_t until_ms = clock_now_ms() + PATIENCE_MS;                                           \
        while (!(condition)) {                                                                     \
            if (clock_now_ms() > until_ms)                                                         \
                fail_msg("%s: never", what);                                                       \
            usleep(500);                                                                           \
        }                                                                                          \
    } while (0)

static void await_joined(struct node *n)
{
    await(state_of(n).phase == SHARED_JOINED, "joined");
}

static uint64_t head(void)
{
    pthread_mutex_lock(&memory.lock);
    uint64_t head = memory.count - 1;
    pthread_mutex_unlock(&memory.lock);
    return head;
}

static void await_head(struct node *n)
{
    await(state_of(n).applied == head() || state_of(n).phase != SHARED_JOINED, "at the head");
    if (state_of(n).phase != SHARED_JOINED)
        fail_msg("%s: %s", n->name, state_of(n).trouble);
}

/* A copy of the node's file becomes the log's newest snapshot, as the presence of a node sends it.
 */
static void put_snapshot(struct node *n)
{
    char copy[128];
    sqlite3 *from, *db;
    struct shared_snapshot snapshot = {.schema = SCHEMA_VERSION};
    snprintf(copy, sizeof copy, "%s/copy.db", n->f.folder);
    assert_int_equal(sqlite3_open(n->f.path, &from), SQLITE_OK);
    sqlite3_busy_timeout(from, 10000);
    assert_int_equal(sqlite3_open(copy, &db), SQLITE_OK);
    /* Not VACUUM INTO, which gives rows without an address of their own another one. */
    sqlite3_backup *backup = sqlite3_backup_init(db, "main", from, "main");
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    sqlite3_backup_finish(backup);
    sqlite3_close(from);
    assert_int_equal(join_position(db, &snapshot.position), CATALOGUE_OK);
    sqlite3_close(db);
    const struct shared_log_options options = {.node = "snapshots"};
    struct shared_log *log = memory_open(&options, NULL, 0);
    int fd = open(copy, O_RDONLY);
    assert_int_equal(memory_snapshot_put(log, &snapshot, fd, 0), SHARED_YES);
    close(fd);
    memory_free(log);
    unlink(copy);
}

/* The first node's file, made and founded; nobody has it open. */
static void found(struct cluster *k)
{
    struct node *n = &k->nodes[0];
    struct shared_position start = {0};
    const struct join_node self = {.name = n->name, .epoch = EPOCH};
    const char *database = n->f.options.shared.database;
    n->f.options.shared.database = NULL;
    node_start(n);
    k->site = add_site(&n->f, ORIGIN, LIMIT_SITE_PAGES);
    for (int i = 0; i < 3; i++)
        k->indexes[i] = add_index(&n->f, index_paths[i]);
    node_stop(n);
    n->f.options.shared.database = database;
    sqlite3 *db;
    assert_int_equal(sqlite3_open(n->f.path, &db), SQLITE_OK);
    assert_int_equal(join_found(db, &self, &start), CATALOGUE_OK);
    sqlite3_close(db);
    put_snapshot(n);
}

static void cluster_open(struct cluster *k)
{
    memset(k, 0, sizeof *k);
    memory_clear();
    member_open_log = memory_open;
    for (int i = 0; i < NODES; i++)
        node_open(&k->nodes[i], names[i]);
    found(k);
    for (int i = 0; i < NODES; i++)
        node_start(&k->nodes[i]);
    for (int i = 0; i < NODES; i++)
        await_joined(&k->nodes[i]);
}

static void all_agree(struct cluster *k)
{
    for (int i = 0; i < NODES; i++)
        await_head(&k->nodes[i]);
    for (int i = 1; i < NODES; i++)
        assert_equal_dumps(k->nodes[0].f.db, k->nodes[i].f.db);
    for (int i = 0; i < NODES; i++)
        assert_consistent(&k->nodes[i].f);
}

static void cluster_close(struct cluster *k)
{
    all_agree(k);
    for (int i = 0; i < NODES; i++) {
        char command[128];
        node_stop(&k->nodes[i]);
        snprintf(command, sizeof command, "rm -rf '%s'", k->nodes[i].f.folder);
        assert_int_equal(system(command), 0);
    }
    memory_clear();
}

/* ---- what each outcome leaves */

static bool holds(struct node *n, const char *loc)
{
    return number_of(&n->f, "SELECT count(*) FROM sitemap WHERE loc = %Q", loc) == 1;
}

static void what_one_writes_all_have(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    for (int i = 0; i < NODES; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/m/%d.xml", i);
        assert_int_equal(put_plain(&k.nodes[i].f, loc, "2026-01-01").status, CATALOGUE_OK);
        assert_true(holds(&k.nodes[i], loc));
        for (int j = 0; j < NODES; j++)
            await(holds(&k.nodes[j], loc), loc);
    }
    /* What is refused, dry, or changes nothing is no record; nor what is the node's own. */
    uint64_t before = head();
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/0.xml", "2026-01-01").status,
                     CATALOGUE_OK);
    assert_int_equal(put_plain(&k.nodes[1].f, "https://other.example.com/x.xml", NULL).status,
                     CATALOGUE_REFUSED);
    struct change used = {.kind = CHANGE_TOKEN_USED, .token_id = 1};
    assert_int_equal(apply_plain(&k.nodes[1].f, &used).status, CATALOGUE_OK);
    assert_int_equal(head(), before);
    cluster_close(&k);
}

static void outcomes_are_told_as_they_are(void **state)
{
    static const struct {
        enum memory_fault fault;
        enum catalogue_status status;
        bool is_there;
    } rows[] = {
        {MEMORY_NO, CATALOGUE_SHARED_AWAY, false},
        {MEMORY_LOST, CATALOGUE_SHARED_AWAY, false},
        {MEMORY_BROKEN, CATALOGUE_SHARED_AWAY, false},
        {MEMORY_UNKNOWN, CATALOGUE_OK, true},
        {MEMORY_NEVER_KNOWN, CATALOGUE_OUTCOME_UNKNOWN, true},
    };
    struct cluster k;
    (void)state;
    cluster_open(&k);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct node *n = &k.nodes[1];
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/m/%zu.xml", i);
        n->f.options.write_timeout_ms = 300;
        if (rows[i].fault == MEMORY_NEVER_KNOWN) {
            node_stop(n);
            node_start(n);
        }
        memory_fault(n->name, rows[i].fault);
        struct change_result result = put_plain(&n->f, loc, NULL);
        memory_fault(n->name, MEMORY_GOOD);
        if (result.status != rows[i].status)
            fail_msg("%zu: %s", i, catalogue_status_word(result.status));
        assert_int_equal(strstr(result.detail, "record ") != NULL,
                         rows[i].status == CATALOGUE_OUTCOME_UNKNOWN);
        if (rows[i].is_there) {
            for (int j = 0; j < NODES; j++)
                await(holds(&k.nodes[j], loc), loc);
        }
        assert_int_equal(holds(n, loc), rows[i].is_there);
        all_agree(&k);
    }
    cluster_close(&k);
}

static void nothing_is_written_while_the_log_is_away(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    struct node *n = &k.nodes[2];
    memory_fault(n->name, MEMORY_AWAY);
    await(state_of(n).away_ms > 0, "away");
    n->f.options.write_timeout_ms = 20000;
    struct change_result result = put_plain(&n->f, ORIGIN "/m/away.xml", NULL);
    assert_int_equal(result.status, CATALOGUE_SHARED_AWAY);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/there.xml", NULL).status, CATALOGUE_OK);
    node_stop(n); /* a restart needs no log */
    node_start(n);
    assert_false(holds(n, ORIGIN "/m/there.xml"));
    memory_fault(n->name, MEMORY_GOOD);
    await(holds(n, ORIGIN "/m/there.xml"), "followed");
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/away.xml", NULL).status, CATALOGUE_OK);
    assert_int_equal(state_of(n).away_ms, 0);
    cluster_close(&k);
}

/* Once. */
static int refuse_commit(void *context)
{
    sqlite3_commit_hook(context, NULL, NULL);
    return 1;
}

static void refuse_local_commit(void *context, const char *name)
{
    struct node *n = context;
    if (strcmp(n->name, name) != 0)
        return;
    memory.between = NULL;
    sqlite3_commit_hook(n->f.c->writer->db, refuse_commit, n->f.c->writer->db);
}

/* As a full disk does: what stands in the log was applied, whatever the own file lacks. */
static void what_is_in_the_log_is_not_refused(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    memory.context = &k.nodes[1];
    memory.between = refuse_local_commit;
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    assert_null(memory.between);
    for (int i = 0; i < NODES; i++)
        await(holds(&k.nodes[i], ORIGIN "/m/a.xml"), "from the log");
    cluster_close(&k);
}

/* ---- killed between the two commits */

static void copy_file(const char *from, const char *to)
{
    char command[300];
    snprintf(command, sizeof command, "cp '%s' '%s' 2>/dev/null", from, to);
    (void)!system(command);
}

/* Keeps the files as they are at that moment: what a process that is killed then leaves. */
static void keep_files(void *context, const char *name)
{
    struct node *n = context;
    char from[128], to[128];
    if (strcmp(n->name, name) != 0)
        return;
    copy_file(n->f.path, (snprintf(to, sizeof to, "%s/kept", n->f.folder), to));
    snprintf(from, sizeof from, "%s-wal", n->f.path);
    copy_file(from, (snprintf(to, sizeof to, "%s/kept-wal", n->f.folder), to));
    memory.between = NULL;
}

static void put_kept_back(struct node *n)
{
    char from[128], to[128];
    snprintf(from, sizeof from, "%s/kept", n->f.folder);
    assert_int_equal(rename(from, n->f.path), 0);
    snprintf(from, sizeof from, "%s/kept-wal", n->f.folder);
    snprintf(to, sizeof to, "%s-wal", n->f.path);
    if (rename(from, to) != 0)
        unlink(to);
    snprintf(to, sizeof to, "%s-shm", n->f.path);
    unlink(to);
}

static void crash_between(struct cluster *k, int which, const char *loc)
{
    struct node *n = &k->nodes[which];
    memory.context = n;
    memory.between = keep_files;
    put_plain(&n->f, loc, "2026-02-02");
    bool was_kept = memory.between == NULL; /* not where the log refused it */
    memory.between = NULL;
    node_stop(n);
    if (was_kept)
        put_kept_back(n);
    node_start(n);
    await_joined(n);
}

static void who_is_killed_between_the_commits_has_it_from_the_log(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    await_head(&k.nodes[1]);
    crash_between(&k, 1, ORIGIN "/m/b.xml");
    await(holds(&k.nodes[1], ORIGIN "/m/b.xml"), "from the log");
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/c.xml", NULL).status, CATALOGUE_OK);
    cluster_close(&k);
}

/* ---- a past that is not the log's */

static void who_is_ahead_of_the_log_replaces_itself(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    for (int i = 0; i < NODES; i++)
        await_head(&k.nodes[i]);
    put_snapshot(&k.nodes[0]);
    node_stop(&k.nodes[0]); /* these two never saw what is lost */
    node_stop(&k.nodes[2]);
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/lost.xml", NULL).status, CATALOGUE_OK);
    memory_lose(1);
    node_start(&k.nodes[0]);
    node_start(&k.nodes[2]);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/other.xml", NULL).status, CATALOGUE_OK);
    await(state_of(&k.nodes[1]).replaced == 1, "replaced");
    await(holds(&k.nodes[1], ORIGIN "/m/other.xml"), "the others' state");
    assert_false(holds(&k.nodes[1], ORIGIN "/m/lost.xml"));
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/again.xml", NULL).status, CATALOGUE_OK);
    enum catalogue_wait_result result = CATALOGUE_WAIT_TIMEOUT; /* who reads is told */
    for (int i = 0; i < 100 && result != CATALOGUE_WAIT_REOPENED; i++)
        result = catalogue_wait(k.nodes[1].f.c, 100);
    assert_int_equal(result, CATALOGUE_WAIT_REOPENED);
    cluster_close(&k);
}

static void a_row_that_differs_is_found_by_what_touches_it(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", "2026-01-01").status,
                     CATALOGUE_OK);
    await_head(&k.nodes[2]);
    run_sql(&k.nodes[2].f, "DELETE FROM sitemap");
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", "2026-01-02").status,
                     CATALOGUE_OK);
    await(state_of(&k.nodes[2]).replaced == 1, "replaced");
    await(holds(&k.nodes[2], ORIGIN "/m/a.xml"), "the others' state");
    cluster_close(&k);
}

static void rows_that_differ_are_found_by_their_digest(void **state)
{
    struct cluster k;
    uint8_t digests[NODES][DIGEST_BYTES];
    uint64_t seq;
    (void)state;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    await_head(&k.nodes[2]);
    run_sql(&k.nodes[2].f, "UPDATE sitemap SET digest = 'other'");
    for (int i = 0; head() < DIGEST_EACH; i++)
        assert_int_equal(
            put_plain(&k.nodes[i % 2].f, ORIGIN "/m/b.xml", i % 2 ? "2026-01-01" : "2026-01-02")
                .status,
            CATALOGUE_OK);
    for (int i = 0; i < NODES; i++) {
        await_head(&k.nodes[i]);
        assert_true(member_digest(k.nodes[i].f.c->member, &seq, digests[i]));
        assert_int_equal(seq, DIGEST_EACH);
    }
    assert_int_equal(member_compare_digest(k.nodes[0].f.c->member, seq, digests[1]), 1);
    assert_int_equal(member_compare_digest(k.nodes[0].f.c->member, seq + DIGEST_EACH, digests[1]),
                     0);
    assert_int_equal(member_compare_digest(k.nodes[2].f.c->member, seq, digests[1]), -1);
    assert_int_equal(state_of(&k.nodes[2]).digest_mismatches, 1);
    member_differs(k.nodes[2].f.c->member);
    await(state_of(&k.nodes[2]).replaced == 1, "replaced");
    cluster_close(&k);
}

/* ---- migrations */

static const char *next_step(int version)
{
    assert_int_equal(version, SCHEMA_VERSION - 1);
    return "CREATE TABLE later(id INTEGER PRIMARY KEY, chance BLOB NOT NULL) STRICT;"
           "INSERT INTO later SELECT address, randomblob(8) FROM sitemap;"
           "ALTER TABLE source ADD COLUMN later TEXT;"
           "UPDATE source SET later = hex(randomblob(4)), name = name || '2';"
           "CREATE TABLE local_later(n INTEGER) STRICT; INSERT INTO local_later VALUES (7);"
           "DROP TABLE removed_loc";
}

/* All files are of the version before, as far as they say. */
static void make_older(struct cluster *k)
{
    for (int i = 0; i < NODES; i++) {
        sqlite3 *db;
        char sql[64];
        node_stop(&k->nodes[i]);
        snprintf(sql, sizeof sql, "PRAGMA user_version=%d", SCHEMA_SHARED + SCHEMA_VERSION - 1);
        assert_int_equal(sqlite3_open(k->nodes[i].f.path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
    }
}

static void a_migration_is_a_record(void **state)
{
    struct cluster k;
    (void)state;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    all_agree(&k);
    make_older(&k);
    migration_step = next_step;
    memory.older_are_there = true;
    for (int i = 0; i < NODES; i++)
        node_start(&k.nodes[i]);
    /* An older release is there yet: what is here is served, and stays as it is. */
    assert_true(state_of(&k.nodes[1]).upgrade_pending);
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/b.xml", NULL).status,
                     CATALOGUE_UPGRADE_PENDING);
    assert_true(holds(&k.nodes[1], ORIGIN "/m/a.xml"));
    uint64_t before = head();
    memory.older_are_there = false;
    for (int i = 0; i < NODES; i++)
        await(!state_of(&k.nodes[i]).upgrade_pending, "upgraded");
    assert_int_equal(head(), before + 1); /* by one of them */
    for (int i = 0; i < NODES; i++) {
        await_head(&k.nodes[i]);
        assert_int_equal(number_of(&k.nodes[i].f, "SELECT n FROM local_later"), 7);
        assert_int_equal(number_of(&k.nodes[i].f, "PRAGMA user_version"),
                         SCHEMA_SHARED + SCHEMA_VERSION);
        run_sql(&k.nodes[i].f, "CREATE TABLE removed_loc(address INTEGER PRIMARY KEY,"
                               " loc TEXT NOT NULL) STRICT"); /* what the writer needs */
    }
    for (int i = 1; i < NODES; i++)
        assert_equal_dumps(k.nodes[0].f.db, k.nodes[i].f.db);
    assert_int_equal(put_plain(&k.nodes[2].f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
    migration_step = schema_step;
    cluster_close(&k);
}

/* ---- copies */

static void told_problem(void *context, const char *sentence)
{
    (void)context;
    fail_msg("%s", sentence);
}

static void a_copy_put_elsewhere_is_a_catalogue_of_its_own(void **state)
{
    struct cluster k;
    char backup[128], path[128], why[256];
    const struct catalogue_restore_options options = {.problem = told_problem};
    struct write_fixture own = {0};
    (void)state;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    snprintf(backup, sizeof backup, "%s/backup", k.nodes[0].f.folder);
    snprintf(path, sizeof path, "%s/own.db", k.nodes[0].f.folder);
    assert_int_equal(catalogue_backup(k.nodes[0].f.c, backup, NULL, NULL, why, sizeof why),
                     CATALOGUE_OK);
    own.options = (struct catalogue_options){.path = backup, .must_exist = true};
    assert_int_equal(catalogue_open(&own.options, &own.c, why, sizeof why), CATALOGUE_UNAVAILABLE);
    assert_non_null(strstr(why, "--shared"));
    if (catalogue_restore(backup, path, &options, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    own.options.path = path;
    own.options.write_timeout_ms = 20000;
    own.options.default_max_pages = LIMIT_SITE_PAGES;
    fixture_reopen(&own);
    assert_int_equal(sqlite3_open(path, &own.db), SQLITE_OK);
    assert_int_equal(number_of(&own, "SELECT count(*) FROM local_shared"), 0);
    assert_int_equal(put_plain(&own, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
    sqlite3_close(own.db);
    catalogue_close(own.c);
    own.options.shared.database = "memory"; /* and no node's */
    assert_int_equal(catalogue_open(&own.options, &own.c, why, sizeof why), CATALOGUE_UNAVAILABLE);
    assert_non_null(strstr(why, "share init"));
    cluster_close(&k);
}

/* ---- anything at all */

static uint32_t roll(struct cluster *k, uint32_t sides)
{
    k->random ^= k->random << 13;
    k->random ^= k->random >> 7;
    k->random ^= k->random << 17;
    return (uint32_t)((k->random >> 20) % sides);
}

struct random_line {
    char loc[64], lastmod[16];
    const char *index;
    uint32_t wanted;
};

static void draw_line(struct cluster *k, struct random_line *line)
{
    snprintf(line->loc, sizeof line->loc, ORIGIN "/m/n/%u.xml", roll(k, LOCS));
    snprintf(line->lastmod, sizeof line->lastmod, "2026-01-%02u", roll(k, 28) + 1);
    line->index = roll(k, 2) == 0 ? NULL : index_paths[roll(k, 3)];
    line->wanted = roll(k, 4) == 0 ? roll(k, 80) : POSITION_NONE;
}

static void line_entry(void *context, uint64_t n, struct entry *out, char *text)
{
    struct random_line *line = &((struct random_line *)context)[n];
    (void)text;
    *out = (struct entry){.loc = line->loc,
                          .index = line->index,
                          .lastmod = line->lastmod,
                          .lastmod_state = FIELD_SET,
                          .position = line->wanted};
}

static void step_put(struct cluster *k, struct write_fixture *f)
{
    struct random_line line;
    char text[8];
    struct change change = put_change(NULL, NULL);
    draw_line(k, &line);
    change.source = roll(k, 2) == 0 ? "a" : "b";
    line_entry(&line, 0, &change.entry, text);
    apply_plain(f, &change);
}

static void step_list(struct cluster *k, struct write_fixture *f)
{
    struct random_line lines[40];
    struct test_stream s = {.make = line_entry, .context = lines, .count = roll(k, 40)};
    bool replaces = roll(k, 2) == 0;
    struct change change = {.kind = replaces ? CHANGE_REPLACE : CHANGE_BULK,
                            .source = roll(k, 2) == 0 ? "a" : "b",
                            .skip = true,
                            .index_name = replaces ? index_paths[roll(k, 3)] : NULL,
                            .replace_source = replaces && roll(k, 2) == 0 ? "a" : NULL,
                            .dry_run = roll(k, 6) == 0,
                            .max_removed = INT64_MAX};
    for (uint64_t i = 0; i < s.count; i++)
        draw_line(k, &lines[i]);
    struct change_result result = apply_stream(f, change, &s);
    change_result_done(&result);
}

static void step_remove(struct cluster *k, struct write_fixture *f)
{
    char loc[64];
    snprintf(loc, sizeof loc, ORIGIN "/m/n/%u.xml", roll(k, LOCS));
    drop(f, loc);
}

static void step_undo(struct cluster *k, struct write_fixture *f)
{
    int64_t newest = revision_of(f);
    struct change change = {.kind = CHANGE_UNDO,
                            .revision = (uint64_t)(newest - roll(k, 6)),
                            .overwrite = roll(k, 2) == 0,
                            .max_removed = INT64_MAX};
    apply_plain(f, &change);
}

/* Removes an index and makes it again; its rows are purged by whichever node comes to it. */
static void step_index(struct cluster *k, struct write_fixture *f)
{
    const char *url = index_paths[roll(k, 2)];
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE,
        .index_id = number_of(f,
                              "SELECT coalesce(max(id), 0) FROM sitemap_index WHERE removed = 0"
                              " AND '" ORIGIN "' || path = %Q",
                              url),
        .max_removed = INT64_MAX};
    apply_plain(f, &change);
    change = (struct change){.kind = CHANGE_INDEX_ADD, .index_url = url};
    apply_plain(f, &change);
}

static void step_registry(struct cluster *k, struct write_fixture *f)
{
    char name[16];
    uint8_t hash[32];
    snprintf(name, sizeof name, "t%u", roll(k, 5));
    memset(hash, (int)roll(k, 256), sizeof hash);
    struct change change = {.kind = roll(k, 2) == 0 ? CHANGE_TOKEN_ADD : CHANGE_TOKEN_REVOKE,
                            .token = {.name = name, .role = GRANT_ADMIN},
                            .token_sha256 = hash};
    if (roll(k, 3) == 0)
        change = (struct change){.kind = CHANGE_SITE_UPDATE,
                                 .site_id = k->site,
                                 .site = {.set = SITE_SET_FROZEN, .frozen = roll(k, 8) == 0}};
    apply_plain(f, &change);
}

static void step_trouble(struct cluster *k, int which)
{
    static const enum memory_fault faults[] = {MEMORY_NO, MEMORY_LOST, MEMORY_UNKNOWN,
                                               MEMORY_BROKEN};
    struct node *n = &k->nodes[which];
    char loc[64];
    snprintf(loc, sizeof loc, ORIGIN "/m/n/%u.xml", roll(k, LOCS));
    switch (roll(k, 4)) {
    case 0:
        node_stop(n);
        node_start(n);
        await_joined(n);
        break;
    case 1:
        crash_between(k, which, loc);
        break;
    default:
        memory_fault(n->name, faults[roll(k, 4)]);
    }
}

static void step(struct cluster *k)
{
    int which = (int)roll(k, NODES);
    struct write_fixture *f = &k->nodes[which].f;
    uint32_t die = roll(k, 100);
    if (die < 50)
        step_put(k, f);
    else if (die < 66)
        step_remove(k, f);
    else if (die < 80)
        step_list(k, f);
    else if (die < 85)
        step_undo(k, f);
    else if (die < 89)
        step_index(k, f);
    else if (die < 94)
        step_registry(k, f);
    else
        step_trouble(k, which);
}

static void files_agree_whatever_happens(void **state)
{
    const char *seed = getenv("SITEMAPD_SEED"), *steps = getenv("SITEMAPD_STEPS");
    struct cluster k;
    (void)state;
    cluster_open(&k);
    k.random = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("SITEMAPD_SEED=%" PRIu64 "\n", k.random);
    for (int i = 0, count = steps ? atoi(steps) : 600; i < count; i++) {
        step(&k);
        if (i % 100 == 99)
            all_agree(&k);
    }
    cluster_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_writes_all_have),
        cmocka_unit_test(outcomes_are_told_as_they_are),
        cmocka_unit_test(what_is_in_the_log_is_not_refused),
        cmocka_unit_test(nothing_is_written_while_the_log_is_away),
        cmocka_unit_test(who_is_killed_between_the_commits_has_it_from_the_log),
        cmocka_unit_test(who_is_ahead_of_the_log_replaces_itself),
        cmocka_unit_test(a_row_that_differs_is_found_by_what_touches_it),
        cmocka_unit_test(rows_that_differ_are_found_by_their_digest),
        cmocka_unit_test(a_migration_is_a_record),
        cmocka_unit_test(a_copy_put_elsewhere_is_a_catalogue_of_its_own),
        cmocka_unit_test(files_agree_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
