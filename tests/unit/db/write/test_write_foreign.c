/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Writers of other processes and handles, and a file that takes no writes. */
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "db/file/handle.h"
#include "db/write/writer.h"
#include "server/base/clock.h"
#include "tests/unit/db/write/write_answers.h"
#include "tests/unit/lib/scratch.h"

/* A child that holds the lock until it is stopped. */
static pid_t hold_lock(const char *path, int *end)
{
    const char *program = own_program();
    int to_child[2], from_child[2];
    assert_int_equal(pipe2(to_child, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from_child, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* Another program: a forked connection must not be used (sqlite.org/howtocorrupt). */
        dup2(to_child[0], 0);
        dup2(from_child[1], 1);
        execl(program, "test_write_foreign", "--hold", path, (char *)NULL);
        _exit(1);
    }
    close(to_child[0]);
    close(from_child[1]);
    char ready;
    assert_int_equal(read(from_child[0], &ready, 1), 1);
    close(from_child[0]);
    *end = to_child[1];
    return child;
}

static int hold_main(const char *path)
{
    sqlite3 *db;
    char byte = 'r';
    if (sqlite3_open(path, &db) != SQLITE_OK ||
        sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        write(1, &byte, 1) != 1)
        return 1;
    while (read(0, &byte, 1) > 0)
        continue;
    sqlite3_close(db);
    return 0;
}

static void let_go(pid_t child, int end)
{
    int status;
    close(end);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_foreign_lock_is_waited_for_so_long(void **state)
{
    struct write_fixture *f = *state;
    f->options.write_timeout_ms = 300;
    fixture_reopen(f);
    int end;
    pid_t child = hold_lock(f->path, &end);
    int64_t before = clock_now_ms();
    struct change_result r = put(f, ORIGIN "/a.xml", NULL);
    int64_t took = clock_now_ms() - before;
    assert_int_equal(r.status, CATALOGUE_BUSY);
    assert_true(took >= 250 && took < 60000);
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    assert_int_equal(stats.queue_depth, 0);
    let_go(child, end);
    /* BUSY means: not applied, also not later. */
    assert_int_equal(put_plain(f, ORIGIN "/b.xml", NULL).created, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 1);
    catalogue_stats_get(f->c, &stats);
    assert_true(stats.writable);
}

static void a_lock_let_go_in_time_costs_nothing_but_time(void **state)
{
    struct write_fixture *f = *state;
    int end;
    pid_t child = hold_lock(f->path, &end);
    struct answers answers;
    answers_init(&answers);
    struct change change = put_change(ORIGIN "/a.xml", NULL);
    change.context = &answers;
    catalogue_submit(f->c, &change, count_answer);
    usleep(100000);
    let_go(child, end);
    answers_wait(&answers, 1);
    assert_int_equal(answers.ok, 1);
    answers_done(&answers);
}

static void a_full_queue_says_so_at_once(void **state)
{
    struct write_fixture *f = *state;
    f->options.max_queued = 3;
    f->options.write_timeout_ms = 600000;
    fixture_reopen(f);
    int end;
    pid_t child = hold_lock(f->path, &end);
    struct answers answers;
    answers_init(&answers);
    struct change change = put_change(ORIGIN "/a.xml", NULL);
    change.context = &answers;
    for (int i = 0; i < 5; i++)
        catalogue_submit(f->c, &change, count_answer);
    pthread_mutex_lock(&answers.lock);
    assert_int_equal(answers.count, 2);
    assert_int_equal(answers.busy, 2);
    pthread_mutex_unlock(&answers.lock);
    let_go(child, end);
    answers_wait(&answers, 5);
    assert_int_equal(answers.ok, 3);
    answers_done(&answers);
}

static void two_handles_write_by_turns(void **state)
{
    struct write_fixture *f = *state;
    struct write_fixture other = *f;
    other.c = NULL;
    fixture_reopen(&other);
    for (int i = 0; i < 300; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/%d.xml", i);
        struct change_result r = put(i % 2 ? f : &other, loc, NULL);
        assert_int_equal(r.entry.position, i);
        entry_record_done(&r.entry);
        if (i % 7 == 6) {
            /* A place made free by one is found by the other. */
            snprintf(loc, sizeof loc, ORIGIN "/%d.xml", i - 3);
            assert_int_equal(drop(i % 2 ? &other : f, loc).removed, 1);
            r = put(i % 2 ? f : &other, loc, NULL);
            assert_int_equal(r.entry.position, i - 3);
            entry_record_done(&r.entry);
        }
    }
    /* So are its sites. */
    add_site(&other, "https://second.example", 5);
    add_index(f, "https://second.example/i.xml");
    assert_int_equal(put_plain(&other, "https://second.example/1.xml", NULL).created, 1);
    catalogue_close(other.c);
}

/* What a server reports about other processes: each line, with a '\n'. */
struct told {
    pthread_mutex_t lock;
    char text[4096];
};

static void record_reported(void *context, const char *event, const char *detail)
{
    struct told *told = context;
    pthread_mutex_lock(&told->lock);
    size_t len = strlen(told->text);
    snprintf(told->text + len, sizeof told->text - len, "%s: %s\n", event, detail);
    pthread_mutex_unlock(&told->lock);
}

static void expect_reported(struct told *told, const char *text)
{
    for (int i = 0; i < 6000; i++) {
        pthread_mutex_lock(&told->lock);
        bool same = strcmp(told->text, text) == 0;
        pthread_mutex_unlock(&told->lock);
        if (same)
            return;
        usleep(20000);
    }
    assert_string_equal(told->text, text);
}

/* Of other processes: behind the first `from` bytes, in so many lines. */
static unsigned reported_revisions(struct told *told, size_t from, unsigned *lines)
{
    unsigned revisions = 0;
    *lines = 0;
    pthread_mutex_lock(&told->lock);
    for (char *line = told->text + from; *line; line = strchr(line, '\n') + 1) {
        unsigned n = 1;
        sscanf(line, "catalogue-changed: another process wrote %u revisions", &n);
        revisions += n;
        ++*lines;
    }
    pthread_mutex_unlock(&told->lock);
    return revisions;
}

static void what_others_write_is_reported(void **state)
{
    struct write_fixture *f = *state;
    static struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* until the file is closed */
    struct write_fixture other = *f;
    char expected[4096];
    f->options.server = true;
    f->options.event = record_reported;
    f->options.event_context = &told;
    fixture_reopen(f);
    other.c = NULL;
    fixture_reopen(&other);
    put_plain(f, ORIGIN "/own.xml", NULL); /* its own is not told; from here on it knows */

    /* Whether it is idle or writes at once. */
    put_plain(&other, ORIGIN "/a.xml", NULL);
    int len = snprintf(expected, sizeof expected,
                       "catalogue-changed: another process wrote revision %" PRId64
                       ": pages of " ORIGIN INDEX "\n",
                       revision_of(f));
    expect_reported(&told, expected);
    put_plain(f, ORIGIN "/own2.xml", NULL);
    add_site(&other, "https://second.example", 5);
    int64_t theirs = revision_of(f);
    put_plain(f, ORIGIN "/own3.xml", NULL);
    len += snprintf(expected + len, sizeof expected - (size_t)len,
                    "catalogue-changed: another process wrote revision %" PRId64
                    ": no page changed, only a site, an index or a token\n",
                    theirs);
    expect_reported(&told, expected);

    /* Many in a short time are one line or two, and what is theirs is distinguished from what is
     * own.
     */
    for (int i = 0; i < 20; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/%d.xml", i);
        put_plain(i % 2 ? f : &other, loc, NULL);
    }
    unsigned lines = 0;
    for (int i = 0; i < 6000 && reported_revisions(&told, (size_t)len, &lines) < 10; i++)
        usleep(20000);
    usleep(3 * WRITER_IDLE_MS * 1000); /* and no more come */
    assert_int_equal(reported_revisions(&told, (size_t)len, &lines), 10);
    assert_true(lines >= 1 && lines <= 10);
    assert_memory_equal(told.text, expected, (size_t)len);
    catalogue_close(other.c);
}

static void a_file_taken_away_is_not_written(void **state)
{
    struct write_fixture *f = *state;
    char elsewhere[128];
    snprintf(elsewhere, sizeof elsewhere, "%s.away", f->path);
    put_plain(f, ORIGIN "/a.xml", NULL);
    assert_int_equal(rename(f->path, elsewhere), 0);
    struct change_result r = put(f, ORIGIN "/b.xml", NULL);
    assert_int_equal(r.status, CATALOGUE_UNAVAILABLE);
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    assert_false(stats.writable);
    assert_true(stats.trouble[0] != '\0');
    assert_int_equal(rename(elsewhere, f->path), 0);
    assert_int_equal(put_plain(f, ORIGIN "/c.xml", NULL).created, 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 2);

    /* The watch says that the file is lost, and asks for it to be opened again. */
    atomic_store(&f->c->lost, true);
    assert_int_equal(put(f, ORIGIN "/d.xml", NULL).status, CATALOGUE_UNAVAILABLE);
    writer_reopen(f->c);
    for (int i = 0; i < 6000 && atomic_load(&f->c->lost); i++)
        usleep(20000);
    assert_int_equal(put_plain(f, ORIGIN "/d.xml", NULL).created, 1);
}

/* A disk that takes no more: here a limit on the size of files. */
static void a_failed_write_fails_whole(void **state)
{
    struct write_fixture *f = *state;
    f->options.server = true;
    fixture_reopen(f);
    put_plain(f, ORIGIN "/a.xml", NULL);
    static const char shared[] = "SELECT revision + serial + changed_at FROM catalogue";
    int64_t revision = revision_of(f), before = number_of(f, shared);
    assert_int_equal(number_of(f, "SELECT count(*) FROM local_probe"), 0);
    struct test_stream list = {.make = make_numbered, .context = "s", .count = 50000};
    struct change bulk = {.kind = CHANGE_BULK, .source = "tests", .rows = rows_of(&list)};
    struct rlimit unlimited, limited;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
    limited = unlimited;
    limited.rlim_cur = 1 << 20;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
    struct change_result r = apply(f, &bulk);
    limited.rlim_cur = 1 << 12;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
    struct change_result small = put(f, ORIGIN "/b.xml", NULL);
    usleep(3 * WRITER_IDLE_MS * 1000); /* it has looked whether it is over, and it is not */
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
    assert_true(r.status == CATALOGUE_NO_SPACE || r.status == CATALOGUE_UNAVAILABLE);
    assert_int_equal(r.created, 0);
    assert_true(r.detail[0] != '\0');
    assert_int_equal(small.status, r.status);
    assert_null(small.entry.loc);
    assert_false(stats.writable);
    /* It finds out by itself that the trouble is over. */
    for (int i = 0; i < 2400 && !stats.writable; i++) {
        usleep(50000);
        catalogue_stats_get(f->c, &stats);
    }
    assert_true(stats.writable);
    assert_int_equal(revision_of(f), revision);
    /* What it tried with is this node's alone. */
    assert_int_equal(number_of(f, shared), before);
    assert_true(number_of(f, "SELECT steps FROM local_probe") > 0);
    assert_int_equal(put_plain(f, ORIGIN "/c.xml", NULL).created, 1);
    assert_int_equal(position_of(f, ORIGIN "/c.xml"), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 2);
}

static void only_the_server_checkpoints(void **state)
{
    struct write_fixture *f = *state;
    struct catalogue_stats stats;
    bulk_numbered(f, "a", 60000);
    put_plain(f, ORIGIN "/1.xml", NULL);
    catalogue_stats_get(f->c, &stats);
    assert_int_equal(stats.checkpoints, 0);
    f->options.server = true;
    fixture_reopen(f);
    bulk_numbered(f, "b", 60000);
    put_plain(f, ORIGIN "/2.xml", NULL);
    put_plain(f, ORIGIN "/3.xml", NULL);
    catalogue_stats_get(f->c, &stats);
    assert_true(stats.checkpoints >= 1);
    assert_true(stats.wal_bytes < 1000000); /* the log began again */
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--hold") == 0)
        return hold_main(argv[2]);
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(a_foreign_lock_is_waited_for_so_long),
        TEST(a_lock_let_go_in_time_costs_nothing_but_time),
        TEST(a_full_queue_says_so_at_once),
        TEST(two_handles_write_by_turns),
        TEST(what_others_write_is_reported),
        TEST(a_file_taken_away_is_not_written),
        TEST(a_failed_write_fails_whole),
        TEST(only_the_server_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
