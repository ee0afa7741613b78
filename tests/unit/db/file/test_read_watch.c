/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* catalogue_wait: own commits, other processes, and a file that goes and comes back. The handle has
 * no writer: writer_reopen, writer_has_followed and writer_poke are this test's. */
#include "server/base/clock.h"
#include "tests/unit/db/read/read_handle.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

#include "db/catalogue.h"
#include "db/file/watch.h"

#define S1 "https://www.example.com"

static atomic_uint reopened;

/* As the writer does it, but at once. First `busy` of them find another process's lock, then
 * `refuse` fail for good. */
static unsigned busy, refuse;
static struct file_identity followed;
void writer_reopen(struct catalogue *c)
{
    atomic_fetch_add(&reopened, 1);
    if (busy > 0) {
        busy--;
        return;
    }
    assert_true(file_identity_read(c->path, &followed));
    if (refuse > 0)
        refuse--;
    else
        atomic_store(&c->lost, false);
}

bool writer_has_followed(struct catalogue *c, const struct file_identity *file)
{
    (void)c;
    return file_identity_equal(&followed, file);
}

static unsigned poked;

void writer_poke(struct catalogue *c)
{
    (void)c;
    poked++;
}

static void open_all(struct fixture *f, struct catalogue *c)
{
    char why[256] = "";

    fixture_open(f);
    fixture_site(f->db, 1, S1);
    fixture_index(f->db, 1, 1, "/sitemap_index.xml");
    fixture_entry(f->db, 1, 0, S1 "/a", NULL);
    handle_open(c, f);
    assert_int_equal(watch_new(c, &c->watch, why, sizeof why), CATALOGUE_OK);
    assert_true(file_identity_read(f->path, &followed));
    atomic_store(&reopened, 0);
    poked = 0;
}

static void close_all(struct fixture *f, struct catalogue *c)
{
    watch_free(c->watch);
    handle_close(c);
    fixture_close(f);
}

/* Asked again where it took longer: whatever else a machine does, it does not do it each time. */
#define TRIES 20

static uint64_t revision_now(struct catalogue *c)
{
    struct catalogue_revisions revisions;
    struct catalogue_view *v = begin(c);

    assert_int_equal(catalogue_view_revisions(v, &revisions), CATALOGUE_OK);
    catalogue_view_end(v);
    return revisions.revision;
}

static void nothing_new_times_out(void **state)
{
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    for (uint32_t wait_ms = 0; wait_ms <= 250; wait_ms += 250) {
        int64_t took = INT64_MAX;
        for (int i = 0; i < TRIES && took >= wait_ms + 100; i++) {
            int64_t began = clock_now_ms();
            assert_int_equal(catalogue_wait(&c, wait_ms), CATALOGUE_WAIT_TIMEOUT);
            took = clock_now_ms() - began;
            assert_true(took + 5 >= wait_ms);
        }
        assert_true(took < wait_ms + 100);
    }
    close_all(&f, &c);
}

struct waker {
    struct catalogue *catalogue;
    int64_t woke_ms;
};

static void *wake_soon(void *context)
{
    struct waker *waker = context;

    usleep(30000);
    waker->woke_ms = clock_now_ms();
    catalogue_wake(waker->catalogue);
    return NULL;
}

static void a_nudge_ends_the_wait(void **state)
{
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    int64_t began = clock_now_ms();
    catalogue_nudge(&c);
    assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_TIMEOUT);
    assert_true(clock_now_ms() - began < 30000);
    catalogue_nudge(&c); /* beside a wake it counts for nothing */
    catalogue_wake(&c);
    assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_CHANGED);
    began = clock_now_ms();
    assert_int_equal(catalogue_wait(&c, 150), CATALOGUE_WAIT_TIMEOUT);
    assert_true(clock_now_ms() - began >= 145);
    close_all(&f, &c);
}

static void a_wake_ends_the_wait(void **state)
{
    pthread_t thread;
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    catalogue_wake(&c); /* before the wait */
    assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_CHANGED);
    assert_int_equal(catalogue_wait(&c, 0), CATALOGUE_WAIT_TIMEOUT);

    /* Long quiet, so that the next look is far away. */
    struct waker waker = {.catalogue = &c};
    int64_t took = INT64_MAX;
    for (int i = 0; i < TRIES && took >= 900; i++) {
        c.watch->moved_ms -= 60000;
        assert_int_equal(pthread_create(&thread, NULL, wake_soon, &waker), 0);
        assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_CHANGED);
        took = clock_now_ms();
        pthread_join(thread, NULL);
        took -= waker.woke_ms;
    }
    assert_true(took < 900);

    /* A commit with its wake is one change, not two, and the writer's own. */
    fixture_entry(f.db, 1, 1, S1 "/b", NULL);
    catalogue_wake(&c);
    assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_CHANGED);
    assert_int_equal(catalogue_wait(&c, 150), CATALOGUE_WAIT_TIMEOUT);
    assert_int_equal(poked, 0);
    close_all(&f, &c);
}

/* How long it took to be seen, milliseconds. */
static int64_t foreign_commit(struct fixture *f, struct catalogue *c)
{
    int done[2], status;
    int64_t committed;
    assert_int_equal(pipe(done), 0);
    uint64_t before = revision_now(c);
    pid_t child = fork();
    if (child == 0) {
        /* The child has a connection of its own and never touches ours. */
        sqlite3 *db;
        char why[256], sql[200];
        usleep(50000);
        snprintf(sql, sizeof sql, "UPDATE catalogue SET revision = revision + 1");
        if (connection_open(f->path, CONNECTION_WRITE, &db, why, sizeof why) != CATALOGUE_OK ||
            sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
            _exit(1);
        committed = clock_now_ms();
        _exit(write(done[1], &committed, sizeof committed) != (ssize_t)sizeof committed);
    }
    assert_true(child > 0);
    assert_int_equal(catalogue_wait(c, 60000), CATALOGUE_WAIT_CHANGED);
    int64_t seen = clock_now_ms();
    assert_int_equal(read(done[0], &committed, sizeof committed), sizeof committed);
    assert_int_equal(revision_now(c), before + 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(done[0]);
    close(done[1]);
    return seen - committed;
}

static void a_foreign_commit_shows_within_200_ms(void **state)
{
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    for (int round = 0; round < 4; round++) {
        int64_t took = INT64_MAX;
        for (int i = 0; i < TRIES && took >= 200; i++) {
            /* After three seconds of quiet it is looked at once a second, unless the kernel reports
             * it.
             */
            if (round == 3)
                assert_int_equal(catalogue_wait(&c, 3300), CATALOGUE_WAIT_TIMEOUT);
            took = foreign_commit(&f, &c);
        }
        assert_true(took < 200);
    }
    close_all(&f, &c);
}

static void news_count_what_may_have_changed(void **state)
{
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    uint64_t before = catalogue_news(&c);
    assert_int_equal(catalogue_wait(&c, 0), CATALOGUE_WAIT_TIMEOUT);
    catalogue_nudge(&c);
    assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_TIMEOUT);
    assert_int_equal(catalogue_news(&c), before);
    catalogue_wake(&c); /* a commit of this handle counts before anybody waits */
    assert_true(catalogue_news(&c) > before);
    assert_int_equal(catalogue_wait(&c, 60000), CATALOGUE_WAIT_CHANGED);
    before = catalogue_news(&c);
    foreign_commit(&f, &c);
    assert_true(catalogue_news(&c) > before);
    assert_int_equal(poked, 1); /* the writer learns of it at once */
    close_all(&f, &c);
}

/* A whole catalogue of one site, without a log beside it. */
static void make_backup(struct fixture *f, char *path, size_t size)
{
    snprintf(path, size, "%s/backup.db", f->folder);
    sqlite3 *db = fixture_make_file(path);
    fixture_site(db, 1, "https://restored.example");
    fixture_index(db, 1, 1, "/sitemap_index.xml");
    fixture_sql(db, "UPDATE catalogue SET revision = 7, registry_revision = 7");
    connection_close(db);
}

static void is_lost(struct catalogue *c)
{
    struct catalogue_view *v;

    assert_int_equal(catalogue_wait(c, 10000), CATALOGUE_WAIT_LOST);
    assert_true(atomic_load(&c->lost));
    assert_int_equal(catalogue_view_begin(c, &v), CATALOGUE_UNAVAILABLE);
}

static void a_replaced_file_is_reopened_without_the_old_log(void **state)
{
    char backup[128], path[128];
    struct registry *registry;
    struct catalogue c;
    struct fixture f;

    open_all(&f, &c);
    assert_int_equal(revision_now(&c), 1);
    make_backup(&f, backup, sizeof backup);
    snprintf(path, sizeof path, "%s/moved.db", f.folder);
    assert_int_equal(link(f.path, path), 0); /* somebody keeps the old file */
    assert_int_equal(rename(backup, f.path), 0);
    is_lost(&c);
    busy = 3;
    assert_int_equal(catalogue_wait(&c, 0), CATALOGUE_WAIT_TIMEOUT); /* it is the writer's first */
    refuse = 2;
    assert_int_equal(catalogue_wait(&c, 10000), CATALOGUE_WAIT_REOPENED);
    assert_true(atomic_load(&c.lost)); /* the writer could not, and is asked again */
    assert_int_equal(revision_now(&c), 7);
    assert_int_equal(catalogue_wait(&c, 300), CATALOGUE_WAIT_TIMEOUT);
    assert_false(atomic_load(&c.lost));
    assert_int_equal(atomic_load(&reopened), 3 + 3); /* 3 busy, 2 refused, 1 done */

    struct catalogue_view *v = begin(&c);
    assert_int_equal(catalogue_view_registry(v, &registry), CATALOGUE_OK);
    assert_string_equal(registry->sites[0].origin, "https://restored.example");
    registry_unref(registry);
    catalogue_view_end(v);

    /* The old file got what its log held, and is whole. */
    connection_close(f.db);
    char why[256];
    assert_int_equal(connection_open(path, CONNECTION_WRITE, &f.db, why, sizeof why), CATALOGUE_OK);
    assert_int_equal(fixture_number(f.db, "SELECT revision FROM catalogue"), 1);
    connection_close(f.db);

    /* The new one lives on: its commits are seen. */
    assert_int_equal(connection_open(f.path, CONNECTION_WRITE, &f.db, why, sizeof why),
                     CATALOGUE_OK);
    fixture_entry(f.db, 1, 0, "https://restored.example/x", NULL);
    assert_int_equal(catalogue_wait(&c, 10000), CATALOGUE_WAIT_CHANGED);
    assert_int_equal(revision_now(&c), 8);
    close_all(&f, &c);
}

static void a_deleted_file_comes_back(void **state)
{
    char backup[128], away[128];
    struct catalogue c;
    struct fixture f;
    FILE *file;

    open_all(&f, &c);
    make_backup(&f, backup, sizeof backup);
    snprintf(away, sizeof away, "%s/away.db", f.folder);

    /* Moved away and back: the same file, and nothing of its log is lost. */
    fixture_entry(f.db, 1, 1, S1 "/b", NULL);
    assert_int_equal(rename(f.path, away), 0);
    is_lost(&c);
    assert_int_equal(catalogue_wait(&c, 250), CATALOGUE_WAIT_TIMEOUT);
    catalogue_wake(&c);
    assert_int_equal(catalogue_wait(&c, 10000), CATALOGUE_WAIT_CHANGED);
    assert_int_equal(rename(away, f.path), 0);
    assert_int_equal(catalogue_wait(&c, 10000), CATALOGUE_WAIT_REOPENED);
    assert_int_equal(revision_now(&c), 2);

    /* Gone for good; what then is there is not ours until it is a catalogue. */
    assert_int_equal(unlink(f.path), 0);
    is_lost(&c);
    file = fopen(f.path, "w");
    assert_int_equal(catalogue_wait(&c, 250), CATALOGUE_WAIT_TIMEOUT);
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0); /* nothing was written into it */
    fputs("this is not a database, nor will it be one, however long one looks at it; "
          "it has more than a hundred bytes",
          file);
    fclose(file);
    assert_int_equal(catalogue_wait(&c, 250), CATALOGUE_WAIT_TIMEOUT);
    assert_int_equal(rename(backup, f.path), 0);
    assert_int_equal(catalogue_wait(&c, 10000), CATALOGUE_WAIT_REOPENED);
    assert_int_equal(revision_now(&c), 7);
    close_all(&f, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_new_times_out),
        cmocka_unit_test(a_nudge_ends_the_wait),
        cmocka_unit_test(a_wake_ends_the_wait),
        cmocka_unit_test(a_foreign_commit_shows_within_200_ms),
        cmocka_unit_test(news_count_what_may_have_changed),
        cmocka_unit_test(a_replaced_file_is_reopened_without_the_old_log),
        cmocka_unit_test(a_deleted_file_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
