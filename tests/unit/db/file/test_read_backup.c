/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* catalogue_backup: one revision, whatever is written meanwhile. */
#include "tests/unit/db/read/read_handle.h"

#include <pthread.h>
#include <sys/stat.h>

#define S1 "https://www.example.com"

struct writing {
    struct fixture *f;
    atomic_bool stop;
    atomic_uint written;
};

static void *write_on(void *context)
{
    struct writing *w = context;
    sqlite3 *db;
    char why[256];

    assert_int_equal(connection_open(w->f->path, CONNECTION_WRITE, &db, why, sizeof why),
                     CATALOGUE_OK);
    for (uint32_t i = 0; !atomic_load(&w->stop); i++) {
        char loc[64];
        snprintf(loc, sizeof loc, S1 "/w/%u", i);
        fixture_entry(db, 1, 100000 + i, loc, NULL);
        atomic_fetch_add(&w->written, 1);
    }
    connection_close(db);
    return NULL;
}

struct progress {
    uint64_t calls, done, total;
    struct writing *writing; /* NULL: none */
};

static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *p = context;

    assert_true(done >= p->done && done <= total);
    p->done = done;
    p->total = total;
    p->calls++;
    /* So that commits do fall between the steps. */
    for (unsigned before = atomic_load(&p->writing->written);
         atomic_load(&p->writing->written) < before + 2;)
        usleep(500);
    return true;
}

static void open_all(struct fixture *f, struct catalogue *c)
{
    fixture_open(f);
    fixture_site(f->db, 1, S1);
    fixture_index(f->db, 1, 1, "/sitemap_index.xml");
    /* 60,000 rows: several steps. */
    fixture_sql(f->db,
                "BEGIN; INSERT INTO source VALUES(1, 'tests');"
                "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 59999)"
                " INSERT INTO sitemap(" FIXTURE_COLUMNS ") SELECT 1 << 32 | i, 1, '" S1
                "/products/sitemap-' || i ||"
                " '.xml.gz', '2026-01-01', NULL, 1, i + 1, 1000, 1000 FROM n;"
                "INSERT INTO segment SELECT 1, (address & 0xffffffff) / %u, count(*), 1"
                " FROM sitemap GROUP BY 2;"
                "INSERT INTO page SELECT 1, (address & 0xffffffff) / 50000 + 1, count(*),"
                " %u + sum(length(loc) + %u), 1000, 0, 1, 7 FROM sitemap GROUP BY 2;"
                "UPDATE catalogue SET serial = 60000, revision = 1, changed_at = 1000; COMMIT",
                SEGMENT_POSITIONS, render_frame_bytes(), render_entry_bytes(S1 "/", 24) - 24);
    handle_open(c, f);
}

static void close_all(struct fixture *f, struct catalogue *c)
{
    handle_close(c);
    fixture_close(f);
}

/* Opens the copy as a catalogue and lets it be checked. */
static uint64_t check_copy(struct fixture *f, const char *path)
{
    struct catalogue_revisions revisions;
    struct fixture copied = *f;
    struct catalogue c;
    uint64_t count = 1;

    snprintf(copied.path, sizeof copied.path, "%s", path);
    handle_open(&c, &copied);
    assert_int_equal(catalogue_check(&c, NULL, NULL, &count), CATALOGUE_OK);
    assert_int_equal(count, 0);
    struct catalogue_view *v = begin(&c);
    assert_int_equal(catalogue_view_revisions(v, &revisions), CATALOGUE_OK);
    assert_int_equal(revisions.entries, 60000 + revisions.revision - 1);
    catalogue_view_end(v);
    handle_close(&c);
    return revisions.revision;
}

static void a_copy_made_beside_a_writer_is_of_one_revision(void **state)
{
    struct writing writing = {0};
    struct progress progress = {.writing = &writing};
    struct catalogue c;
    struct fixture f;
    struct stat st;
    pthread_t thread;
    char path[96], why[256];

    open_all(&f, &c);
    writing.f = &f;
    snprintf(path, sizeof path, "%s/copy.db", f.folder);
    assert_int_equal(pthread_create(&thread, NULL, write_on, &writing), 0);
    while (atomic_load(&writing.written) < 3)
        usleep(1000);
    assert_int_equal(catalogue_backup(&c, path, on_progress, &progress, why, sizeof why),
                     CATALOGUE_OK);
    unsigned written = atomic_load(&writing.written);
    atomic_store(&writing.stop, true);
    pthread_join(thread, NULL);

    assert_true(progress.calls > 2);
    assert_int_equal(progress.done, progress.total);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    uint64_t revision = check_copy(&f, path);
    assert_in_range(revision, 4, written - 2);
    close_all(&f, &c);
}

/* Nothing but the catalogue itself is left in the folder. */
static unsigned files_in(const char *folder)
{
    char command[160];
    unsigned count = 0;
    snprintf(command, sizeof command, "ls '%s' | grep -vc '^c[.]db'", folder);
    FILE *pipe = popen(command, "r");

    assert_int_equal(fscanf(pipe, "%u", &count), 1);
    pclose(pipe);
    return count;
}

static bool stop_copy(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    return done >= total;
}

static void refusals_leave_nothing_behind(void **state)
{
    struct catalogue c;
    struct fixture f;
    char path[128], why[256];

    open_all(&f, &c);
    assert_int_equal(catalogue_backup(&c, f.path, NULL, NULL, why, sizeof why), CATALOGUE_CONFLICT);
    assert_non_null(strstr(why, "File exists"));
    snprintf(path, sizeof path, "%s/nowhere/copy.db", f.folder);
    assert_int_equal(catalogue_backup(&c, path, NULL, NULL, why, sizeof why),
                     CATALOGUE_UNAVAILABLE);
    assert_non_null(strstr(why, "No such file"));
    assert_int_equal(files_in(f.folder), 0);

    snprintf(path, sizeof path, "%s/copy.db", f.folder);
    char hidden[128];
    snprintf(hidden, sizeof hidden, "%s.old", f.path);
    assert_int_equal(rename(f.path, hidden), 0);
    assert_int_equal(catalogue_backup(&c, path, NULL, NULL, why, sizeof why),
                     CATALOGUE_UNAVAILABLE);
    assert_int_equal(rename(hidden, f.path), 0);
    assert_int_equal(files_in(f.folder), 0);
    assert_int_equal(catalogue_backup(&c, path, stop_copy, NULL, why, sizeof why),
                     CATALOGUE_CANCELLED);
    assert_int_equal(files_in(f.folder), 0);
    assert_int_equal(catalogue_backup(&c, path, NULL, NULL, why, sizeof why), CATALOGUE_OK);
    assert_string_equal(why, "");
    assert_int_equal(files_in(f.folder), 1);
    assert_int_equal(check_copy(&f, path), 1);
    close_all(&f, &c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_made_beside_a_writer_is_of_one_revision),
        cmocka_unit_test(refusals_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
