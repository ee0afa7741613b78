/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue that three nodes share, on a log in memory: whatever is written on whichever node,
 * refused, unknown or broken off, all files hold the same rows in the end, and nothing acknowledged
 * is missing. The seed is printed, and SITEMAPD_SEED sets it. */
/* sqlite3_preupdate_hook is declared only where it is asked for. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include <fcntl.h>
#include <time.h>

#include "tests/unit/db/log_readers.h"
#include "tests/unit/db/write/write_stream.h"

#include "db/file/handle.h"
#include "db/file/schema.h"
#include "db/shared/effects.h"
#include "db/shared/join.h"
#include "db/shared/member.h"
#include "db/write/apply/apply.h"
#include "db/write/writer.h"
#include "tests/unit/db/shared/memory_log.h"
#include "tests/unit/db/shared/shared_dump.h"

#define NODES 3
#define LOCS  60

#define URLSET     ORIGIN "/m/n/urls.xml"
#define FOR_EVER_S (INT64_C(100) * 366 * 86400)
#define EPOCH      "0123456789abcdef0123456789abcdef"

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
    int groups_undone;
};

/* ---- nodes */

static void node_open(struct node *n, const char *name)
{
    memset(n, 0, sizeof *n);
    n->name = name;
    scratch_make(n->f.folder, "sitemapd-shared");
    snprintf(n->f.path, sizeof n->f.path, "%s/c.db", n->f.folder);
    n->f.options = fixture_options(n->f.path);
    n->f.options.server = true;
    n->f.options.history_keep_ms = 3600000;
    n->f.options.history_max_bytes = 200000;
    n->f.options.clock = fixture_now;
    n->f.options.shared =
        (struct catalogue_shared){.database = "memory", .node = name, .release = "test"};
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

static struct standing *standing_of(struct node *n)
{
    return member_standing(n->f.c->member);
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
    assert_int_equal(memory_snapshot_put(log, &snapshot, 1, fd, 0), SHARED_YES);
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

/* A writer that is idle prunes the history, whenever it comes to it: what differs is looked at
 * again until that has come to all. What diverged stays so. */
static void all_agree(struct cluster *k)
{
    int64_t until_ms = clock_now_ms() + PATIENCE_MS;
    for (int i = 0; i < NODES; i++)
        await_head(&k->nodes[i]);
    for (int i = 1; i < NODES; i++) {
        bool equal = false;
        while (!(equal = are_equal_dumps(k->nodes[0].f.db, k->nodes[i].f.db)) &&
               clock_now_ms() < until_ms)
            usleep(10000);
        if (!equal)
            assert_equal_dumps(k->nodes[0].f.db, k->nodes[i].f.db);
    }
    for (int i = 0; i < NODES; i++)
        assert_consistent(&k->nodes[i].f);
}

static void cluster_close(struct cluster *k)
{
    all_agree(k);
    for (int i = 0; i < NODES; i++) {
        node_stop(&k->nodes[i]);
        scratch_remove(k->nodes[i].f.folder);
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
    cluster_open(&k);
    for (int i = 0; i < NODES; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/m/%d.xml", i);
        assert_int_equal(put_plain(&k.nodes[i].f, loc, "2026-01-01").status, CATALOGUE_OK);
        assert_true(holds(&k.nodes[i], loc));
        for (int j = 0; j < NODES; j++)
            await(holds(&k.nodes[j], loc), loc);
    }
    /* What is refused, dry, or changes nothing is not a record; nor what is the node's own. */
    uint64_t before = head();
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/0.xml", "2026-01-01").status,
                     CATALOGUE_OK);
    assert_int_equal(put_plain(&k.nodes[1].f, "https://other.example.com/x.xml", NULL).status,
                     CATALOGUE_REFUSED);
    struct change used = {.kind = CHANGE_TOKEN_USED, .token_used = {.token_id = 1}};
    assert_int_equal(apply_plain(&k.nodes[1].f, &used).status, CATALOGUE_OK);
    assert_int_equal(head(), before);
    cluster_close(&k);
}

/* What it repeats may be a record that a failover loses. */
static void what_changes_nothing_is_confirmed(void **state)
{
    static const enum memory_fault faults[] = {MEMORY_NO, MEMORY_LOST, MEMORY_UNKNOWN};
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[1];
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/0.xml", "2026-01-01").status, CATALOGUE_OK);
    uint64_t before = head();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        memory_fault(n->name, faults[i]);
        assert_int_equal(put_plain(&n->f, ORIGIN "/m/0.xml", "2026-01-01").status,
                         CATALOGUE_SHARED_AWAY);
        memory_fault(n->name, MEMORY_GOOD);
        assert_int_equal(put_plain(&n->f, ORIGIN "/m/0.xml", "2026-01-01").status, CATALOGUE_OK);
    }
    assert_int_equal(head(), before);
    cluster_close(&k);
}

static void outcomes_are_reported_as_they_are(void **state)
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
    cluster_open(&k);
    struct node *n = &k.nodes[2];
    memory_fault(n->name, MEMORY_AWAY);
    await(state_of(n).away_ms > 0, "away");
    n->f.options.write_timeout_ms = 300000;
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

/* ---- clocks */

static int64_t a_day_behind(void)
{
    return fixture_now() - 25 * 3600;
}

static bool keep_outcome(void *context, struct change_result *result,
                         const struct registry *registry, struct str *out)
{
    (void)context;
    (void)result;
    (void)registry;
    str_append_text(out, "as it was");
    return true;
}

static bool is_repeated(struct node *n, const char *key, const char *lastmod)
{
    static const uint8_t hash[32] = {1};
    struct change change = put_change(ORIGIN "/m/keyed.xml", lastmod);
    struct change_result result;
    change.key = key;
    change.key_sha256 = hash;
    change.outcome = keep_outcome;
    assert_int_equal(catalogue_apply(n->f.c, &change, &result), CATALOGUE_OK);
    bool repeated = result.repeated;
    change_result_done(&result);
    return repeated;
}

/* What one node dates another checks by its age: the clock is the one that they have in common. */
static void a_clock_that_is_wrong_voids_no_key(void **state)
{
    struct cluster k;
    int64_t now = fixture_now();
    cluster_open(&k);
    memory.unix_ms = now * 1000;
    struct node *late = &k.nodes[1];
    node_stop(late);
    late->f.options.clock = a_day_behind;
    node_start(late);
    assert_false(is_repeated(late, "k", "2026-01-01"));
    assert_true(is_repeated(&k.nodes[0], "k", "2026-01-01"));
    assert_false(is_repeated(&k.nodes[0], "l", "2026-01-02"));
    assert_true(is_repeated(late, "l", "2026-01-02"));
    assert_in_range(number_of(&k.nodes[0].f, "SELECT min(at) FROM idempotency"), now, now + 3600);
    assert_in_range(number_of(&k.nodes[0].f, "SELECT min(changed_at) FROM page"), now, now + 3600);
    assert_in_range(catalogue_now(late->f.c), now - 60, now + 3600);
    memory.unix_ms = (now + 86401) * 1000; /* it is the log's day that counts */
    assert_false(is_repeated(&k.nodes[0], "k", "2026-01-01"));
    cluster_close(&k);
}

/* ---- what crawlers fetched */

static void read_epoch(struct node *n, char out[33])
{
    sqlite3_stmt *row;
    assert_int_equal(sqlite3_prepare_v2(n->f.db, "SELECT epoch FROM catalogue", -1, &row, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    snprintf(out, 33, "%s", sqlite3_column_text(row, 0));
    sqlite3_finalize(row);
}

static enum catalogue_status keep_crawlers_of(struct node *n, uint32_t page, uint64_t version,
                                              int64_t held_changed_at, int64_t fetched_at,
                                              uint32_t ok)
{
    char epoch[33];
    read_epoch(n, epoch);
    const struct crawler_page_kept row = {.crawler = "googlebot",
                                          .is = {.row = {.held = held_changed_at != 0,
                                                         .status = 200,
                                                         .held_changed_at = held_changed_at,
                                                         .fetched_at = fetched_at},
                                                 .page = page,
                                                 .index_id = 1,
                                                 .held_stamp = version}};
    const struct crawler_day_kept day = {
        .crawler = "googlebot", .is = {.day = 20000, .site_id = 1, .ok = ok, .bytes = 10 * ok}};
    const struct change change = {.kind = CHANGE_CRAWLERS,
                                  .crawlers = {.epoch = epoch,
                                               .node = n->name,
                                               .since = 1000,
                                               .page_count = 1,
                                               .day_count = 1,
                                               .pages = &row,
                                               .days = &day}};
    struct change_result result;
    enum catalogue_status status = catalogue_apply(n->f.c, &change, &result);
    change_result_done(&result);
    return status;
}

static enum catalogue_status keep_crawlers(struct node *n, uint32_t page, int64_t held_changed_at,
                                           int64_t fetched_at, uint32_t ok)
{
    return keep_crawlers_of(n, page, (uint64_t)held_changed_at, held_changed_at, fetched_at, ok);
}

static enum catalogue_status report_crawlers(struct node *n)
{
    char epoch[33];
    read_epoch(n, epoch);
    const struct change change = {
        .kind = CHANGE_CRAWLERS_REPORT,
        .crawlers = {.epoch = epoch, .node = n->name, .since = 1000, .tidy_before_day = 19990}};
    struct change_result result;
    enum catalogue_status status = catalogue_apply(n->f.c, &change, &result);
    change_result_done(&result);
    return status;
}

static int64_t reported_of(struct node *n, const char *what)
{
    return number_of(&n->f, "SELECT coalesce(sum(%s), 0) FROM crawler_%s", what,
                     strcmp(what, "ok") == 0 ? "day" : "page");
}

static void what_crawlers_fetched_is_reported(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *a = &k.nodes[0], *b = &k.nodes[1];
    assert_int_equal(put_plain(&a->f, ORIGIN "/one.xml", NULL).status, CATALOGUE_OK);
    int64_t revision = number_of(&a->f, "SELECT revision FROM catalogue");
    /* Kept without the log, told with it. */
    memory_fault(b->name, MEMORY_AWAY);
    await(state_of(b).away_ms > 0, "away");
    assert_int_equal(keep_crawlers(b, 1, 500, 600, 3), CATALOGUE_OK);
    b->f.options.write_timeout_ms = 300000;
    assert_int_equal(report_crawlers(b), CATALOGUE_SHARED_AWAY);
    memory_fault(b->name, MEMORY_GOOD);
    await(state_of(b).away_ms == 0, "back");
    assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    await_head(a);
    assert_int_equal(reported_of(a, "ok"), 3);
    assert_int_equal(reported_of(a, "held_changed_at"), 500);
    uint64_t told = head();
    for (int i = 0; i < 2; i++) /* nothing is new */
        assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    assert_int_equal(head(), told);
    /* Sums of nodes are added; of a page the newest counts. */
    assert_int_equal(keep_crawlers(a, 1, 400, 700, 4), CATALOGUE_OK);
    assert_int_equal(head(), told);
    assert_int_equal(report_crawlers(a), CATALOGUE_OK);
    assert_int_equal(reported_of(a, "ok"), 7);
    assert_int_equal(reported_of(a, "held_changed_at"), 500);
    assert_int_equal(reported_of(a, "fetched_at"), 700);
    /* An older file of the same node takes nothing back. */
    await_head(b);
    assert_int_equal(keep_crawlers(b, 1, 0, 100, 2), CATALOGUE_OK);
    assert_int_equal(number_of(&b->f, "SELECT ok FROM local_crawler_day"), 3);
    assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    assert_int_equal(reported_of(b, "ok"), 7);
    assert_int_equal(reported_of(b, "held_changed_at"), 500);
    assert_int_equal(reported_of(b, "fetched_at"), 700);
    /* Two versions of one second: the node that reports another later holds the later one. */
    assert_int_equal(keep_crawlers_of(b, 1, 501, 500, 700, 4), CATALOGUE_OK);
    assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    assert_int_equal(reported_of(b, "held_stamp"), 501);
    /* A page that is gone goes from what is reported, as from what is kept; nothing is a revision.
     */
    assert_int_equal(keep_crawlers(b, 9, 500, 600, 5), CATALOGUE_OK);
    assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    assert_int_equal(reported_of(b, "page"), 1 + 9);
    assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    assert_int_equal(reported_of(b, "page"), 1);
    assert_int_equal(number_of(&b->f, "SELECT revision FROM catalogue"), revision);
    /* A file that another node left: its rows are not this one's. */
    b->name = "renamed";
    assert_int_equal(keep_crawlers(b, 1, 500, 600, 1), CATALOGUE_OK);
    assert_int_equal(report_crawlers(b), CATALOGUE_OK);
    assert_int_equal(reported_of(b, "ok"), 4 + 5 + 1);
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

/* As a full disk does: what is in the log was applied, whatever the own file lacks. */
static void what_is_in_the_log_is_not_refused(void **state)
{
    struct cluster k;
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
    pthread_mutex_lock(&memory.lock); /* other nodes write, too */
    memory.context = n;
    memory.between = keep_files;
    pthread_mutex_unlock(&memory.lock);
    put_plain(&n->f, loc, "2026-02-02");
    pthread_mutex_lock(&memory.lock);
    bool was_kept = memory.between == NULL; /* not where the log refused it */
    memory.between = NULL;
    pthread_mutex_unlock(&memory.lock);
    node_stop(n);
    if (was_kept)
        put_kept_back(n);
    node_start(n);
    await_joined(n);
}

static void who_is_killed_between_the_commits_has_it_from_the_log(void **state)
{
    struct cluster k;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    await_head(&k.nodes[1]);
    crash_between(&k, 1, ORIGIN "/m/b.xml");
    await(holds(&k.nodes[1], ORIGIN "/m/b.xml"), "from the log");
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/c.xml", NULL).status, CATALOGUE_OK);
    cluster_close(&k);
}

#define MANY 15000

static void many_entries(void *context, uint64_t n, struct entry *out, char *text)
{
    const unsigned *times = context;
    snprintf(text, 128, ORIGIN "/m/n/%06u-%" PRIu64 ".xml", *times, n);
    *out = (struct entry){.loc = text, .position = POSITION_NONE};
}

struct much {
    struct node *writer;
    _Atomic unsigned times; /* a node's care asks as well as its writes */
};

/* More than who has the lock applies; each time that another asks for it. */
static void write_much(void *context, const char *name, bool is_list)
{
    (void)is_list;
    struct much *m = context;
    if (strcmp(name, m->writer->name) == 0)
        return;
    unsigned times = ++m->times;
    struct test_stream s = {.make = many_entries, .context = &times, .count = MANY};
    struct change_result result = apply_stream(
        &m->writer->f, (struct change){.kind = CHANGE_BULK, .source = "much", .skip = true}, &s);
    assert_int_equal(result.created, MANY);
    change_result_done(&result);
    assert_true(memory.records[head()].body.len > 1 << 20);
}

static void who_writes_little_has_its_turn_beside_who_writes_much(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct much much = {.writer = &k.nodes[0]};
    node_stop(&k.nodes[2]); /* the next caller is the second */
    memory_before(write_much, &much);
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/little.xml", NULL).status, CATALOGUE_OK);
    assert_in_range(much.times, 2, 5);
    memory_before(NULL, NULL);
    node_start(&k.nodes[2]);
    cluster_close(&k);
}

/* Callers wait for the lock while another node has it: a list, then a small write; who gets it? */
struct asked {
    const char *node;
    _Atomic int step;
    bool is_list;
};

static void record_asked(void *context, const char *name, bool is_list)
{
    struct asked *a = context;
    int step = a->step;
    if (strcmp(name, a->node) != 0 || step == 3 || (step < 2 && is_list != (step == 0)))
        return;
    a->is_list = is_list;
    a->step = step + 1;
}

static void answered(void *context, struct change_result *result)
{
    _Atomic int *left = context;
    assert_int_equal(result->status, CATALOGUE_OK);
    atomic_fetch_sub(left, 1);
}

static void a_small_write_that_waited_for_a_list_goes_before_the_next(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[1];
    struct asked asked = {.node = n->name};
    unsigned times = 0;
    _Atomic int left = 2;
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/first.xml", NULL).status, CATALOGUE_OK);
    for (int i = 0; i < NODES; i++)
        await_head(&k.nodes[i]);

    const struct shared_log_options options = {.node = "elsewhere"};
    struct shared_log *log = memory_open(&options, NULL, 0);
    pthread_mutex_lock(&memory.lock);
    memory.writer = memory_of(log);
    pthread_mutex_unlock(&memory.lock);
    memory_before(record_asked, &asked);
    struct test_stream s = {.make = many_entries, .context = &times, .count = 10};
    struct change list = {.kind = CHANGE_BULK, .source = "lists", .rows = rows_of(&s)};
    struct change small = put_change(ORIGIN "/m/small.xml", NULL);
    list.context = small.context = &left;
    catalogue_submit(n->f.c, &list, answered);
    await(asked.step > 0, "the list was tried");
    catalogue_submit(n->f.c, &small, answered);
    await(asked.step == 3, "the small one was tried, and then one of them");
    memory_free(log);
    await(left == 0, "both are written");
    assert_false(asked.is_list);
    memory_before(NULL, NULL);
    cluster_close(&k);
}

/* One write behind the other: before one is answered the next one waits. */
struct flood {
    struct node *node;
    unsigned first, last; /* how often lists were let by */
    _Atomic int left;
};

static void write_again(void *context, struct change_result *result)
{
    struct flood *f = context;
    assert_int_equal(result->status, CATALOGUE_NO_MEMORY);
    if (f->left == 10)
        f->first = memory.passed;
    f->last = memory.passed;
    if (f->left > 1) {
        struct change next = put_change(ORIGIN "/m/flood.xml", NULL);
        next.context = f;
        catalogue_submit(f->node->f.c, &next, write_again);
    }
    f->left--;
}

static void a_flood_that_cannot_be_written_keeps_no_list_out(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct flood flood = {.node = &k.nodes[1], .left = 10};
    memory_fault(flood.node->name, MEMORY_NO_BEGIN);
    struct change first = put_change(ORIGIN "/m/flood.xml", NULL);
    first.context = &flood;
    for (int i = 0; i < NODES; i++)
        if (&k.nodes[i] != flood.node)
            node_stop(&k.nodes[i]); /* what they let by is not counted */
    catalogue_submit(flood.node->f.c, &first, write_again);
    await(flood.left == 0, "all are answered");
    assert_int_equal(flood.last - flood.first, 9);
    memory_fault(flood.node->name, MEMORY_GOOD);
    for (int i = 0; i < NODES; i++)
        if (&k.nodes[i] != flood.node)
            node_start(&k.nodes[i]);
    cluster_close(&k);
}

struct tries {
    const char *node;
    _Atomic unsigned count;
};

static void count_tries(void *context, const char *name, bool is_list)
{
    struct tries *t = context;
    if (strcmp(name, t->node) == 0 && !is_list)
        t->count++;
}

static bool is_writable(struct node *n)
{
    struct catalogue_stats stats;
    catalogue_stats_get(n->f.c, &stats);
    return stats.writable;
}

/* Before its time is nearly over. */
static void who_waits_for_another_node_is_in_no_trouble(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[1];
    struct tries tries = {.node = n->name};
    _Atomic int left = 1;
    const struct shared_log_options options = {.node = "elsewhere"};
    struct shared_log *log = memory_open(&options, NULL, 0);
    n->f.options.write_timeout_ms = 3600000;
    node_stop(n);
    node_start(n);
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/first.xml", NULL).status, CATALOGUE_OK);
    pthread_mutex_lock(&memory.lock);
    memory.writer = memory_of(log);
    pthread_mutex_unlock(&memory.lock);
    memory_before(count_tries, &tries);
    struct change small = put_change(ORIGIN "/m/small.xml", NULL);
    small.context = &left;
    catalogue_submit(n->f.c, &small, answered);
    await(tries.count > 3, "it was tried");
    assert_true(is_writable(n));
    memory_free(log);
    await(left == 0, "it is written");
    memory_before(NULL, NULL);
    cluster_close(&k);
}

/* A dry run reports nothing, however long it is; what others wrote before, it sees. */
static void a_dry_run_waits_for_nobodys_lock(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[1];
    unsigned times = 0;
    struct test_stream few = {.make = many_entries, .context = &times, .count = 10};
    struct test_stream many = {.make = many_entries, .context = &times, .count = MANY};
    const struct change list = {.kind = CHANGE_BULK, .source = "lists"};
    struct change dry = list;
    dry.dry_run = true;
    struct change_result result = apply_stream(&k.nodes[0].f, list, &few);
    assert_int_equal(result.created, 10);
    change_result_done(&result);

    uint64_t before = head();
    const struct shared_log_options options = {.node = "elsewhere"};
    struct shared_log *log = memory_open(&options, NULL, 0);
    pthread_mutex_lock(&memory.lock);
    memory.writer = memory_of(log);
    pthread_mutex_unlock(&memory.lock);
    for (int i = 0; i < 2; i++) {
        result = apply_stream(&n->f, dry, &many);
        assert_int_equal(result.status, CATALOGUE_OK);
        assert_int_equal(result.unchanged, 10);
        assert_int_equal(result.created, MANY - 10);
        change_result_done(&result);
    }
    assert_int_equal(head(), before);
    memory_free(log);
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/then.xml", NULL).status, CATALOGUE_OK);
    assert_int_equal(number_of(&n->f, "SELECT count(*) FROM sitemap"), 11);
    cluster_close(&k);
}

/* Also where no history is kept, and the dry run has a recorder of its own. */
static void what_is_written_after_a_dry_run_all_have(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[1];
    node_stop(n);
    n->f.options.history_keep_ms = 0;
    node_start(n);
    unsigned times = 0;
    const uint64_t counts[] = {10, MANY};
    for (int i = 0; i < 2; i++) {
        char loc[64];
        struct test_stream stream = {.make = many_entries, .context = &times, .count = counts[i]};
        const struct change dry = {
            .kind = CHANGE_BULK, .source = "lists", .dry_run = true, .wants_preview = true};
        struct change_result result = apply_stream(&n->f, dry, &stream);
        assert_int_equal(result.status, CATALOGUE_OK);
        assert_int_equal(result.created, counts[i]);
        assert_in_range(result.preview_count, 10, CHANGE_PREVIEW_ROWS);
        change_result_done(&result);
        snprintf(loc, sizeof loc, ORIGIN "/m/then-%d.xml", i);
        assert_int_equal(put_plain(&n->f, loc, NULL).status, CATALOGUE_OK);
        for (int j = 0; j < NODES; j++)
            await(holds(&k.nodes[j], loc), loc);
    }
    all_agree(&k);
    cluster_close(&k);
}

/* As after another owner took the connection's hook. */
static void lose_hook(void *context, struct change_result *result)
{
    struct node *n = ((void **)context)[0];
    atomic_bool *done = ((void **)context)[1];
    (void)result;
    sqlite3_preupdate_hook(n->f.c->writer->db, NULL, NULL);
    atomic_store(done, true);
}

static void a_write_whose_rows_were_not_recorded_fails(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[1];
    atomic_bool done = false;
    void *context[] = {n, &done};
    struct change first = put_change(ORIGIN "/m/a.xml", NULL);
    first.context = context;
    catalogue_submit(n->f.c, &first, lose_hook);
    await(atomic_load(&done), "the hook is gone");
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_UNAVAILABLE);
    assert_false(holds(n, ORIGIN "/m/b.xml"));
    node_stop(n);
    node_start(n);
    assert_int_equal(put_plain(&n->f, ORIGIN "/m/c.xml", NULL).status, CATALOGUE_OK);
    all_agree(&k);
    cluster_close(&k);
}

/* However much there is to follow, and however much it is read meanwhile: a disk that holds the
 * catalogue holds what that takes. */
static void who_follows_far_keeps_its_own_log_short(void **state)
{
    struct cluster k;
    struct log_readers readers;
    cluster_open(&k);
    node_stop(&k.nodes[2]);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(
            put_plain(&k.nodes[0].f, ORIGIN "/m/b.xml", i % 2 ? "2026-01-01" : "2026-01-02").status,
            CATALOGUE_OK);
    node_start(&k.nodes[2]);
    log_readers_start(&readers, &k.nodes[2].f);
    await_head(&k.nodes[2]);
    log_readers_stop(&readers);
    cluster_close(&k);
}

/* ---- coming */

static void lose_file(struct node *n)
{
    char command[128];
    snprintf(command, sizeof command, "rm '%s'/c.db*", n->f.folder);
    assert_int_equal(system(command), 0);
}

static void who_came_has_joined_at_the_head(void **state)
{
    struct cluster k;
    cluster_open(&k);
    struct node *n = &k.nodes[2];
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    await_head(n);
    node_stop(n);
    memory_fault(n->name, MEMORY_NO_TAIL); /* it had joined: it serves at once */
    node_start(n);
    assert_int_equal(state_of(n).phase, SHARED_JOINED);
    node_stop(n);
    lose_file(n);
    node_start(n); /* a snapshot can be had, and what is newer cannot */
    await(state_of(n).away_ms > 0, "it tried");
    assert_int_equal(state_of(n).phase, SHARED_JOINING);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
    memory_fault(n->name, MEMORY_GOOD);
    await_joined(n);
    assert_true(holds(n, ORIGIN "/m/b.xml"));
    assert_int_equal(state_of(n).applied, head());
    cluster_close(&k);
}

/* ---- a past that is not the log's */

/* The nodes are at the head and the oldest snapshot, of an empty catalogue, is the newest. */
static void write_many(struct cluster *k, int count)
{
    for (int i = 0; i < count; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/m/%d.xml", i);
        assert_int_equal(put_plain(&k->nodes[0].f, loc, NULL).status, CATALOGUE_OK);
    }
    for (int i = 0; i < NODES; i++)
        await_head(&k->nodes[i]);
}

static void none_of_the_states_in_between_is_served(void **state)
{
    struct cluster k;
    cluster_open(&k);
    write_many(&k, 300);
    memory_lose(2);
    for (int i = 0; i < NODES; i++)
        for (bool replaced = false; !replaced;) {
            replaced = state_of(&k.nodes[i]).replaced == 1;
            assert_in_range(number_of(&k.nodes[i].f, "SELECT count(*) FROM sitemap"), 298, 300);
        }
    for (int i = 0; i < NODES; i++)
        await_head(&k.nodes[i]);
    cluster_close(&k);
}

static void who_lacks_what_the_log_dropped_replaces_itself(void **state)
{
    struct cluster k;
    char before[33], after[33];
    cluster_open(&k);
    struct node *n = &k.nodes[2];
    node_stop(n);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    await_head(&k.nodes[1]);
    put_snapshot(&k.nodes[1]);
    uint64_t first = head(); /* takes the lock itself */
    pthread_mutex_lock(&memory.lock);
    memory.first = first;
    pthread_mutex_unlock(&memory.lock);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
    read_epoch(&k.nodes[0], before);
    node_start(n);
    await(state_of(n).replaced == 1, "replaced");
    assert_true(holds(n, ORIGIN "/m/b.xml"));
    await_head(n);
    read_epoch(n, after);
    assert_string_equal(after, before); /* nothing was lost: cursors count on */
    cluster_close(&k);
}

static void who_is_ahead_of_the_log_replaces_itself(void **state)
{
    struct cluster k;
    char before[33], after[33];
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    for (int i = 0; i < NODES; i++)
        await_head(&k.nodes[i]);
    put_snapshot(&k.nodes[0]);
    read_epoch(&k.nodes[0], before);
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
    for (int i = 0; i < NODES; i++) {
        await_head(&k.nodes[i]);
        read_epoch(&k.nodes[i], after);
        assert_string_not_equal(after, before);
    }
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/again.xml", NULL).status, CATALOGUE_OK);
    enum catalogue_wait_result result = CATALOGUE_WAIT_TIMEOUT; /* the reader is woken */
    for (int i = 0; i < 100 && result != CATALOGUE_WAIT_REOPENED; i++)
        result = catalogue_wait(k.nodes[1].f.c, 100);
    assert_int_equal(result, CATALOGUE_WAIT_REOPENED);
    cluster_close(&k);
}

/* It goes on with the copy that it has, and appends the epoch once. */
static void an_epoch_that_is_refused_or_in_doubt_is_appended_once(void **state)
{
    static const enum memory_fault faults[] = {MEMORY_NO, MEMORY_LOST, MEMORY_UNKNOWN};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct cluster k;
        char before[33], after[33];
        cluster_open(&k);
        assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
        await_head(&k.nodes[2]);
        node_stop(&k.nodes[0]);
        node_stop(&k.nodes[1]);
        read_epoch(&k.nodes[2], before);
        assert_int_equal(put_plain(&k.nodes[2].f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
        memory_fault(k.nodes[2].name, faults[i]);
        uint64_t was = head();
        memory_lose(1);
        await(state_of(&k.nodes[2]).replaced == 1, "replaced");
        assert_int_equal(head(), was);
        read_epoch(&k.nodes[2], after);
        assert_string_not_equal(after, before);
        node_start(&k.nodes[0]);
        node_start(&k.nodes[1]);
        cluster_close(&k);
    }
}

static void of_a_log_that_was_restored_only_what_it_has_is_awaited(void **state)
{
    struct cluster k;
    char before[33], first[33], after[33];
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    for (int i = 0; i < NODES; i++)
        await_head(&k.nodes[i]);
    put_snapshot(&k.nodes[0]);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/c.xml", NULL).status, CATALOGUE_OK);
    for (int i = 0; i < NODES; i++)
        await_head(&k.nodes[i]);
    read_epoch(&k.nodes[0], before);
    uint64_t was = head();
    memory_lose(2);
    for (int i = 0; i < NODES; i++) {
        await(state_of(&k.nodes[i]).replaced == 1, "replaced");
        await(state_of(&k.nodes[i]).head == head(), "what is known of is what there is");
    }
    assert_int_equal(head(), was - 2 + 1); /* one of them gave it another epoch, for all */
    read_epoch(&k.nodes[0], first);
    assert_string_not_equal(first, before);
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/d.xml", NULL).status, CATALOGUE_OK);
    await(holds(&k.nodes[2], ORIGIN "/m/d.xml"), "followed");
    read_epoch(&k.nodes[2], after);
    assert_string_equal(after, first);
    cluster_close(&k);
}

static void a_row_that_differs_is_found_by_what_touches_it(void **state)
{
    struct cluster k;
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
        assert_true(standing_digest(standing_of(&k.nodes[i]), &seq, digests[i]));
        assert_int_equal(seq, DIGEST_EACH);
    }
    assert_int_equal(standing_compare_digest(standing_of(&k.nodes[0]), seq, digests[1]), 1);
    assert_int_equal(
        standing_compare_digest(standing_of(&k.nodes[0]), seq + DIGEST_EACH, digests[1]), 0);
    assert_int_equal(standing_compare_digest(standing_of(&k.nodes[2]), seq, digests[1]), -1);
    assert_int_equal(state_of(&k.nodes[2]).digest_mismatches, 1);
    standing_differs(standing_of(&k.nodes[2]));
    await(state_of(&k.nodes[2]).replaced == 1, "replaced");
    cluster_close(&k);
}

/* ---- memory that runs out */

/* Refuses to list the tables once, after `skips` times. */
struct refusal {
    struct node *node;
    int skips, times;
    atomic_bool set;
};

static int refuse_tables(void *context, int action, const char *what, const char *b, const char *c,
                         const char *d)
{
    struct refusal *r = context;
    (void)b, (void)c, (void)d;
    if (action != SQLITE_PRAGMA || strcmp(what, "table_list") != 0)
        return SQLITE_OK;
    return r->times++ == r->skips ? SQLITE_DENY : SQLITE_OK;
}

static void set_refusal(void *context, struct change_result *result)
{
    struct refusal *r = context;
    (void)result;
    sqlite3_set_authorizer(r->node->f.c->writer->db, refuse_tables, r);
    atomic_store(&r->set, true);
}

/* The parts that depend on the file's schema stay until others can replace them: under ASan a use
 * of a freed one ends the test. */
static void parts_that_cannot_be_replaced_stay(void **state)
{
    for (int skips = 0; skips < 2; skips++) {
        struct cluster k;
        cluster_open(&k);
        struct node *n = &k.nodes[2];
        struct refusal refusal = {.node = n, .skips = skips};
        struct change first = put_change(ORIGIN "/m/a.xml", NULL);
        first.context = &refusal;
        catalogue_submit(n->f.c, &first, set_refusal);
        await(atomic_load(&refusal.set), "it is set");
        await_head(n);
        standing_differs(standing_of(n));
        await(state_of(n).replaced == 2, "replaced again");
        await_joined(n);
        assert_int_equal(put_plain(&n->f, ORIGIN "/m/b.xml", NULL).status, CATALOGUE_OK);
        all_agree(&k);
        cluster_close(&k);
    }
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

/* All files are of the version before, as far as they say; nodes with it are there yet. */
/* The program is the next release's here (SCHEMA_OF_NEXT): its step is taken back. */
static void make_older(struct cluster *k)
{
    memory.older_are_there = true;
    for (int i = 0; i < NODES; i++) {
        sqlite3 *db;
        char sql[256];
        node_stop(&k->nodes[i]);
        snprintf(sql, sizeof sql,
                 "DROP TABLE next; ALTER TABLE site DROP COLUMN next; PRAGMA user_version=%d",
                 SCHEMA_SHARED + SCHEMA_VERSION - 1);
        assert_int_equal(sqlite3_open(k->nodes[i].f.path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
    }
}

static void await_upgraded(struct cluster *k)
{
    memory.older_are_there = false;
    for (int i = 0; i < NODES; i++)
        await(!state_of(&k->nodes[i]).upgrade_pending, "upgraded");
}

static void a_migration_is_a_record(void **state)
{
    struct cluster k;
    cluster_open(&k);
    assert_int_equal(put_plain(&k.nodes[0].f, ORIGIN "/m/a.xml", NULL).status, CATALOGUE_OK);
    all_agree(&k);
    make_older(&k);
    migration_step = next_step;
    for (int i = 0; i < NODES; i++)
        node_start(&k.nodes[i]);
    /* An older release is there yet: what is here is served, and stays as it is. */
    assert_true(state_of(&k.nodes[1]).upgrade_pending);
    assert_int_equal(put_plain(&k.nodes[1].f, ORIGIN "/m/b.xml", NULL).status,
                     CATALOGUE_UPGRADE_PENDING);
    assert_true(holds(&k.nodes[1], ORIGIN "/m/a.xml"));
    uint64_t before = head();
    await_upgraded(&k);
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

static void reported_problem(void *context, const char *sentence)
{
    (void)context;
    fail_msg("%s", sentence);
}

static void a_copy_put_elsewhere_is_a_catalogue_of_its_own(void **state)
{
    struct cluster k;
    char backup[128], path[128], why[256];
    const struct catalogue_restore_options options = {.problem = reported_problem};
    struct write_fixture own = {0};
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
    own.options.write_timeout_ms = 300000;
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
    bool is_gone;
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
                            .dry_run = roll(k, 6) == 0,
                            .max_removed = INT64_MAX};
    if (replaces)
        change.replace = (struct change_replace){.source = roll(k, 2) == 0 ? "a" : NULL};
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

static void undo(struct cluster *k, struct write_fixture *f, uint64_t revision)
{
    struct change change = {.kind = CHANGE_UNDO,
                            .undo = {.revision = revision, .overwrite = roll(k, 2) == 0},
                            .pass_frozen = true,
                            .max_removed = INT64_MAX};
    struct change_result result = apply_plain(f, &change);
    k->groups_undone += result.status == CATALOGUE_OK && result.group != 0;
}

static void step_undo(struct cluster *k, struct write_fixture *f)
{
    undo(k, f, (uint64_t)(revision_of(f) - roll(k, 6)));
}

/* Removes an index and makes it again; its rows are purged by whichever node comes to it. */
static void step_index(struct cluster *k, struct write_fixture *f)
{
    const char *url = index_paths[roll(k, 2)];
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE,
        .index_remove = {.index_id = number_of(
                             f,
                             "SELECT coalesce(max(id), 0) FROM sitemap_index WHERE removed = 0"
                             " AND '" ORIGIN "' || path = %Q",
                             url)},
        .max_removed = INT64_MAX};
    apply_plain(f, &change);
    change = (struct change){.kind = CHANGE_INDEX_ADD, .index_add = {.url = url}};
    apply_plain(f, &change);
}

/* ---- page URLs */

static int64_t urlset_of(struct write_fixture *f)
{
    return number_of(f, "SELECT coalesce(max(id), 0) FROM sitemap_index WHERE removed = 0 AND"
                        " path = '/m/n/urls.xml'");
}

static void urlset_expires(struct write_fixture *f, int64_t after_s)
{
    struct change change = {
        .kind = CHANGE_URLSET_UPDATE,
        .urlset_update = {.index_id = urlset_of(f),
                          .fields = {.set = URLSET_SET_EXPIRES, .expires_s = after_s}}};
    apply_plain(f, &change);
}

static void urlset_freeze(struct write_fixture *f, bool frozen)
{
    apply_plain(f, &(struct change){.kind = CHANGE_INDEX_FREEZE,
                                    .list = LIST_URLSET,
                                    .index_freeze = {.index_id = urlset_of(f), .frozen = frozen}});
}

/* It is made, kept for a day only, which its rows are all past, or removed with them. */
static void step_urlset(struct cluster *k, struct write_fixture *f)
{
    struct change change = {.kind = CHANGE_INDEX_REMOVE,
                            .list = LIST_URLSET,
                            .index_remove = {.index_id = urlset_of(f)},
                            .max_removed = INT64_MAX};
    if (roll(k, 3) == 0)
        apply_plain(f, &change);
    else if (roll(k, 3) == 0)
        urlset_expires(f, 86400);
    change = (struct change){.kind = CHANGE_URLSET_ADD,
                             .urlset_add = {.url = URLSET, .fields = {.expires_s = FOR_EVER_S}}};
    apply_plain(f, &change);
}

/* Of a split each loc comes once. */
static void url_line(void *context, uint64_t n, struct entry *out, char *text)
{
    struct random_line *line = &((struct random_line *)context)[n];
    snprintf(line->loc, sizeof line->loc, ORIGIN "/m/n/p/%" PRIu64, line->wanted % 80 + n);
    line->index = URLSET;
    line_entry(context, n, out, text);
    out->gone = line->is_gone;
    out->position = POSITION_NONE;
}

static void step_url(struct cluster *k, struct write_fixture *f)
{
    char loc[64];
    snprintf(loc, sizeof loc, ORIGIN "/m/n/p/%u", roll(k, 120));
    struct change change = put_change(loc, roll(k, 2) == 0 ? "2026-01-01" : "2026-01-02");
    if (roll(k, 3) == 0)
        change = (struct change){
            .kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = loc}, .index_name = URLSET};
    change.list = LIST_URLSET;
    change.entry.index = URLSET;
    apply_plain(f, &change);
}

static void step_urls(struct cluster *k, struct write_fixture *f)
{
    static const enum change_kind kinds[] = {CHANGE_BULK, CHANGE_REPLACE, CHANGE_SPLIT};
    struct random_line lines[40];
    struct test_stream s = {.make = url_line, .context = lines, .count = roll(k, 40) + 1};
    struct change change = {.kind = kinds[roll(k, 3)],
                            .list = LIST_URLSET,
                            .source = roll(k, 2) == 0 ? "a" : "b",
                            .skip = true,
                            .index_name = URLSET,
                            .max_removed = INT64_MAX};
    uint32_t first = roll(k, 80);
    uint64_t goes = 0;
    for (uint64_t i = 0; i < s.count; i++) {
        draw_line(k, &lines[i]);
        lines[i].wanted = first;
        lines[i].is_gone = change.kind == CHANGE_SPLIT && roll(k, 3) == 0;
        goes += lines[i].is_gone;
    }
    if (change.kind == CHANGE_SPLIT)
        change.split = (struct change_split){.comes = s.count - goes, .goes = goes};
    else if (change.kind == CHANGE_REPLACE)
        change.replace = (struct change_replace){.source = NULL};
    struct change_result result = apply_stream(f, change, &s);
    change_result_done(&result);
    if (result.group == 0 || roll(k, 2) == 0)
        return;
    /* Of several steps; what a source split is frozen for it. */
    f = &k->nodes[roll(k, NODES)].f;
    urlset_freeze(f, true);
    undo(k, f, result.group);
    urlset_freeze(f, false);
}

/* ---- reads and reports on other nodes */

static void step_scan(struct cluster *k, struct write_fixture *f)
{
    struct spool *rows = spool_new(scratch_folder(), UINT64_MAX);
    for (uint32_t i = 0, n = roll(k, 10); i < 8; i++, n += roll(k, 4) + 1) {
        char path[32], loc[64];
        snprintf(path, sizeof path, "%u.xml", n);
        snprintf(loc, sizeof loc, ORIGIN "/m/n/%u.xml", n);
        struct source_file file = {.path = path,
                                   .loc = loc,
                                   .state = roll(k, 4) == 0 ? SOURCE_FILE_GONE : SOURCE_FILE_LISTED,
                                   .hash = {roll(k, 5) + 1, 7},
                                   .lastmod = "2026-01-01T00:00:00Z",
                                   .urls = 10};
        assert_int_equal(spool_add_file(rows, &file), SPOOL_OK);
    }
    struct change change = {.kind = CHANGE_SCAN,
                            .source = "files",
                            .index_name = index_paths[1],
                            .rows = rows,
                            .max_removed = INT64_MAX};
    struct change_result result = apply(f, &change);
    change_result_done(&result);
}

static void step_check(struct cluster *k, struct write_fixture *f)
{
    static const enum check_write_kind kinds[] = {CHECK_ADD, CHECK_RESULT, CHECK_REMOVE};
    char loc[64];
    snprintf(loc, sizeof loc, ORIGIN "/m/n/%u.xml", roll(k, LOCS));
    struct check_write write = {
        .kind = kinds[roll(k, 3)],
        .record = {.loc = loc, .source = "", .site_id = k->site, .next_at = 500, .interval_s = 600},
        .lastmod_to = "2026-02-01"};
    if (write.kind != CHECK_ADD) {
        write.record.id = number_of(f, "SELECT coalesce(max(id), 0) FROM fetch");
        write.record.status = 200;
        write.record.hash[0] = write.record.hash[1] = roll(k, 5) + 1;
    }
    apply_plain(f, &(struct change){.kind = CHANGE_CHECK, .check = {.writes = &write, .count = 1}});
}

static void step_indexnow(struct cluster *k, struct write_fixture *f)
{
    const char *sql = "SELECT coalesce(max(revision), 0) FROM indexnow WHERE site = %lld";
    struct change_indexnow write = {.site_id = k->site};
    write.from.revision = (uint64_t)number_of(f, sql, (long long)k->site);
    write.to.revision = (uint64_t)revision_of(f);
    apply_plain(f, &(struct change){.kind = CHANGE_INDEXNOW, .indexnow = write});
}

static void step_source(struct cluster *k, struct write_fixture *f)
{
    static const enum change_kind kinds[] = {CHANGE_SOURCE_ADD, CHANGE_SOURCE_UPDATE,
                                             CHANGE_SOURCE_REMOVE};
    char name[16];
    snprintf(name, sizeof name, "s%u", roll(k, 3));
    struct change change = {.kind = kinds[roll(k, 3)]};
    if (change.kind == CHANGE_SOURCE_REMOVE)
        change.source_remove = (struct change_source_remove){.name = name};
    else
        change.source_put = (struct change_source_put){
            .made = {.name = name,
                     .site_id = k->site,
                     .upstream = ORIGIN "/m/index.xml",
                     .poll_ms = (roll(k, 10) + 1) * 60000},
            .set = SOURCE_SET_POLL | (change.kind == CHANGE_SOURCE_ADD ? SOURCE_SET_UPSTREAM : 0)};
    apply_plain(f, &change);
}

static void step_registry(struct cluster *k, struct write_fixture *f)
{
    char name[16];
    uint8_t hash[32];
    snprintf(name, sizeof name, "t%u", roll(k, 5));
    memset(hash, (int)roll(k, 256), sizeof hash);
    struct change change = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = name, .role = GRANT_ADMIN}, .sha256 = hash}};
    if (roll(k, 2) == 0)
        change = (struct change){.kind = CHANGE_TOKEN_REVOKE, .token_revoke = {.name = name}};
    if (roll(k, 3) == 0)
        change = (struct change){
            .kind = CHANGE_SITE_UPDATE,
            .site_update = {.site_id = k->site,
                            .fields = {.set = SITE_SET_FROZEN, .frozen = roll(k, 8) == 0}}};
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
    static const struct {
        uint32_t below; /* of 100 */
        void (*take)(struct cluster *k, struct write_fixture *f);
    } steps[] = {{25, step_put},   {35, step_remove},   {45, step_list},   {51, step_undo},
                 {55, step_index}, {60, step_registry}, {64, step_urlset}, {74, step_url},
                 {82, step_urls},  {86, step_scan},     {90, step_check},  {92, step_indexnow},
                 {94, step_source}};
    int which = (int)roll(k, NODES);
    uint32_t die = roll(k, 100);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (die < steps[i].below) {
            steps[i].take(k, &k->nodes[which].f);
            return;
        }
    }
    step_trouble(k, which);
}

/* Nodes with a newer release come upon a file that older ones still use, and migrate it once they
 * are gone, whatever else happens. */
static void upgrade(struct cluster *k)
{
    all_agree(k);
    make_older(k);
    for (int i = 0; i < NODES; i++)
        node_start(&k->nodes[i]);
    for (int i = 0; i < 10; i++)
        step(k);
    memory.older_are_there = false;
    for (int i = 0; i < 10; i++)
        step(k);
    await_upgraded(k);
}

static void files_agree_whatever_happens(void **state)
{
    const char *seed = getenv("SITEMAPD_SEED"), *steps = getenv("SITEMAPD_STEPS");
    struct cluster k;
    cluster_open(&k);
    k.random = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("SITEMAPD_SEED=%" PRIu64 "\n", k.random);
    apply_split_rows = 8; /* so that there are groups */
    for (int i = 0, count = steps ? atoi(steps) : 600; i < count; i++) {
        step(&k);
        if (i % 200 == 149)
            upgrade(&k);
        if (i % 100 == 99 || i == count - 1) {
            urlset_expires(&k.nodes[0].f, FOR_EVER_S); /* nothing leaves while it is compared */
            all_agree(&k);
        }
    }
    print_message("%d undone of several steps\n", k.groups_undone);
    apply_split_rows = SPLIT_STEP_ROWS;
    cluster_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_writes_all_have),
        cmocka_unit_test(what_changes_nothing_is_confirmed),
        cmocka_unit_test(outcomes_are_reported_as_they_are),
        cmocka_unit_test(what_is_in_the_log_is_not_refused),
        cmocka_unit_test(nothing_is_written_while_the_log_is_away),
        cmocka_unit_test(a_clock_that_is_wrong_voids_no_key),
        cmocka_unit_test(what_crawlers_fetched_is_reported),
        cmocka_unit_test(who_is_killed_between_the_commits_has_it_from_the_log),
        cmocka_unit_test(who_writes_little_has_its_turn_beside_who_writes_much),
        cmocka_unit_test(a_small_write_that_waited_for_a_list_goes_before_the_next),
        cmocka_unit_test(a_flood_that_cannot_be_written_keeps_no_list_out),
        cmocka_unit_test(who_waits_for_another_node_is_in_no_trouble),
        cmocka_unit_test(a_dry_run_waits_for_nobodys_lock),
        cmocka_unit_test(what_is_written_after_a_dry_run_all_have),
        cmocka_unit_test(a_write_whose_rows_were_not_recorded_fails),
        cmocka_unit_test(who_follows_far_keeps_its_own_log_short),
        cmocka_unit_test(who_came_has_joined_at_the_head),
        cmocka_unit_test(none_of_the_states_in_between_is_served),
        cmocka_unit_test(who_lacks_what_the_log_dropped_replaces_itself),
        cmocka_unit_test(who_is_ahead_of_the_log_replaces_itself),
        cmocka_unit_test(an_epoch_that_is_refused_or_in_doubt_is_appended_once),
        cmocka_unit_test(of_a_log_that_was_restored_only_what_it_has_is_awaited),
        cmocka_unit_test(a_row_that_differs_is_found_by_what_touches_it),
        cmocka_unit_test(rows_that_differ_are_found_by_their_digest),
        cmocka_unit_test(parts_that_cannot_be_replaced_stay),
        cmocka_unit_test(a_migration_is_a_record),
        cmocka_unit_test(a_copy_put_elsewhere_is_a_catalogue_of_its_own),
        cmocka_unit_test(files_agree_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
