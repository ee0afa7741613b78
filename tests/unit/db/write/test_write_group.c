/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Many writers at once, deadlines, and an orderly stop. Other processes: test_write_foreign.c. */
#include <stdatomic.h>
#include <sys/resource.h>

#include "db/write/writer.h"
#include "server/base/clock.h"
#include "tests/unit/db/write/write_answers.h"

/* ---- many threads */

#define THREADS 16
#define EACH    60

struct client {
    struct write_fixture *f;
    int number;
    bool failed;
};

/* What is acknowledged is in the next view, at its revision. */
static void *register_and_look(void *context)
{
    struct client *client = context;
    for (int i = 0; i < EACH; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/%d/%d.xml", client->number, i);
        struct change_result r = put(client->f, loc, NULL);
        struct catalogue_view *view;
        struct entry_record record = {0};
        struct catalogue_revisions revisions = {0};
        if (r.status != CATALOGUE_OK || r.created != 1 ||
            catalogue_view_begin(client->f->c, &view) != CATALOGUE_OK) {
            client->failed = true;
            return NULL;
        }
        if (catalogue_view_revisions(view, &revisions) != CATALOGUE_OK ||
            revisions.revision < r.revision ||
            catalogue_view_entry_by_id(view, r.entry.id, &record) != CATALOGUE_OK ||
            strcmp(record.loc, loc) != 0)
            client->failed = true;
        catalogue_view_end(view);
        entry_record_done(&record);
        entry_record_done(&r.entry);
    }
    return NULL;
}

static void threads_share_commits(void **state)
{
    struct write_fixture *f = *state;
    pthread_t threads[THREADS];
    struct client clients[THREADS];
    for (int i = 0; i < THREADS; i++) {
        clients[i] = (struct client){f, i, false};
        assert_int_equal(pthread_create(&threads[i], NULL, register_and_look, &clients[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(clients[i].failed);
    }
    struct catalogue_stats stats;
    catalogue_stats_get(f->c, &stats);
    assert_int_equal(stats.batched_changes, THREADS * EACH + 2);
    assert_true(stats.commits < stats.batched_changes);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), THREADS * EACH);
    assert_int_equal(number_of(f, "SELECT max(address & 4294967295) FROM sitemap"),
                     THREADS * EACH - 1);
}

static void a_refusal_leaves_its_neighbours(void **state)
{
    struct write_fixture *f = *state;
    static char locs[200][64];
    static struct change changes[200];
    struct answers answers;
    answers_init(&answers);
    for (int i = 0; i < 200; i++) {
        snprintf(locs[i], sizeof locs[i], "%s/%d.xml",
                 i % 4 == 3 ? "https://other.example" : ORIGIN, i);
        changes[i] = put_change(locs[i], NULL);
        changes[i].context = &answers;
        catalogue_submit(f->c, &changes[i], count_answer);
    }
    answers_wait(&answers, 200);
    assert_int_equal(answers.ok, 150);
    assert_int_equal(answers.refused, 50);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 150);
    answers_done(&answers);
}

/* ---- numbers */

struct numbered {
    struct answers *answers;
    uint64_t revision;
    bool changed;
};

static void record_number(void *context, struct change_result *result)
{
    struct numbered *noted = context;
    noted->revision = result->revision;
    noted->changed = result->changed;
    count_answer(noted->answers, result);
}

/* Submits all while another holds the lock, so that they are one transaction. */
static void apply_together(struct write_fixture *f, struct change *changes, struct numbered *noted,
                           size_t count)
{
    struct answers answers;
    answers_init(&answers);
    run_sql(f, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < count; i++) {
        noted[i] = (struct numbered){.answers = &answers};
        changes[i].context = &noted[i];
        catalogue_submit(f->c, &changes[i], record_number);
    }
    run_sql(f, "ROLLBACK");
    answers_wait(&answers, count);
    answers_done(&answers);
}

/* Each change that wrote something has a revision of its own, though all share one commit; what
 * wrote nothing has that of what it found. */
static void each_change_has_its_number(void **state)
{
    struct write_fixture *f = *state;
    put_plain(f, ORIGIN "/old.xml", NULL);
    struct catalogue_stats before, after;
    catalogue_stats_get(f->c, &before);
    uint64_t found = (uint64_t)revision_of(f);
    static const char sha256[32] = "of a token";
    struct change changes[] = {
        put_change(ORIGIN "/old.xml", NULL),
        put_change(ORIGIN "/a.xml", NULL),
        put_change("https://other.example/b.xml", NULL),
        {.kind = CHANGE_TOKEN_ADD,
         .token_add = {.grant = {.name = "t", .role = GRANT_ADMIN},
                       .sha256 = (const uint8_t *)sha256}},
        put_change(ORIGIN "/a.xml", NULL),
        {.kind = CHANGE_ENTRY_REMOVE, .entry_remove = {.loc = ORIGIN "/old.xml"}},
    };
    static const struct {
        uint64_t step;
        bool changed;
    } expected[] = {{0, false}, {1, true}, {1, false}, {2, true}, {2, false}, {3, true}};
    enum { COUNT = sizeof expected / sizeof *expected };
    struct numbered noted[COUNT];
    apply_together(f, changes, noted, COUNT);
    catalogue_stats_get(f->c, &after);
    assert_int_equal(after.commits - before.commits, 1);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(noted[i].revision, found + expected[i].step);
        assert_int_equal(noted[i].changed, expected[i].changed);
    }
    assert_int_equal(revision_of(f), found + 3);
    assert_int_equal(after.revision, found + 3);
    /* A reader at the revision before finds the page and its segment changed, one at that of the
     * transaction's end does not. */
    assert_int_equal(number_of(f, "SELECT revision FROM page"), found + 3);
    assert_int_equal(number_of(f, "SELECT revision FROM segment"), found + 3);
    /* What the next transaction makes of it: numbers go on, and none is used twice. */
    assert_int_equal(put_plain(f, ORIGIN "/c.xml", NULL).revision, found + 4);
    assert_int_equal(put_plain(f, ORIGIN "/c.xml", NULL).revision, found + 4);
    struct change robots = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site,
                        .fields = {.set = SITE_SET_ROBOTS, .robots = "User-agent: *\n"}}};
    assert_int_equal(apply_plain(f, &robots).revision, found + 5);
    assert_int_equal(number_of(f, "SELECT robots_revision FROM site"), found + 5);
}

/* What is rolled back has had no number. */
static void a_number_is_given_once(void **state)
{
    struct write_fixture *f = *state;
    uint64_t found = (uint64_t)revision_of(f);
    struct test_stream s = {.make = make_numbered, .context = (void *)"s", .count = 10};
    struct change bulk = {.kind = CHANGE_BULK, .rows = rows_of(&s), .dry_run = true};
    struct change_result result = apply_plain(f, &bulk);
    assert_int_equal(result.status, CATALOGUE_OK);
    assert_int_equal(result.created, 10);
    assert_int_equal(result.revision, found);
    assert_int_equal(put_plain(f, ORIGIN "/a.xml", NULL).revision, found + 1);
    assert_int_equal(revision_of(f), found + 1);
}

static void closing_finishes_what_is_queued(void **state)
{
    struct write_fixture *f = *state;
    static char locs[100][64];
    static struct change changes[100];
    struct answers answers;
    answers_init(&answers);
    for (int i = 0; i < 100; i++) {
        snprintf(locs[i], sizeof locs[i], ORIGIN "/%d.xml", i);
        changes[i] = put_change(locs[i], NULL);
        changes[i].context = &answers;
        catalogue_submit(f->c, &changes[i], count_answer);
    }
    fixture_reopen(f);
    assert_int_equal(answers.ok, 100);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 100);
    answers_done(&answers);
}

/* Whatever becomes of it once it was submitted. */
static void what_is_submitted_is_a_copy(void **state)
{
    struct write_fixture *f = *state;
    char origin[] = "https://copied.example", host[] = "cdn.example.net", robots[] = "# ours\n";
    char index[] = "https://copied.example/i.xml", loc[] = ORIGIN "/copied.xml", name[] = "copier";
    char lastmod[] = "2026-01-01", digest[] = "d1", path[] = "/j.xml",
         pattern[] = "{stem}_p{n}{suffix}";
    const char *hosts[] = {host, NULL}, *paths[] = {path, NULL};
    struct site_declaration declared = {
        .origin = origin, .index_paths = paths, .page_pattern = pattern};
    struct change changes[] = {
        {.kind = CHANGE_SITE_ADD,
         .site_add = {.index_url = index,
                      .fields = {.set = SITE_SET_CROSS_HOSTS | SITE_SET_ROBOTS,
                                 .cross_hosts = hosts,
                                 .robots = robots},
                      .origin = origin}},
        {.kind = CHANGE_CONFIGURE, .configure = {.sites = &declared, .site_count = 1}},
        {.kind = CHANGE_ENTRY_PUT,
         .source = name,
         .entry = {.loc = loc,
                   .lastmod = lastmod,
                   .lastmod_state = FIELD_SET,
                   .digest = digest,
                   .digest_state = FIELD_SET,
                   .position = POSITION_NONE}},
    };
    struct answers answers;
    answers_init(&answers);
    run_sql(f, "BEGIN IMMEDIATE"); /* none is looked at yet */
    for (size_t i = 0; i < 3; i++) {
        changes[i].context = &answers;
        catalogue_submit(f->c, &changes[i], count_answer);
    }
    char *const texts[] = {origin, host, robots, index, loc, name, lastmod, digest, path, pattern};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        memset(texts[i], '?', strlen(texts[i]));
    hosts[0] = paths[0] = NULL;
    memset(changes, 0xff, sizeof changes);
    memset(&declared, 0xff, sizeof declared);
    run_sql(f, "COMMIT");
    answers_wait(&answers, 3);
    assert_int_equal(answers.ok, 3);
    assert_int_equal(number_of(f, "SELECT count(*) FROM site JOIN site_host ON site_host.site ="
                                  " site.id WHERE origin = 'https://copied.example'"
                                  " AND host = 'cdn.example.net' AND robots = '# ours\n'"),
                     1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap_index WHERE path = '/i.xml'"
                                  " OR (path = '/j.xml' AND page_pattern = '{stem}_p{n}{suffix}')"),
                     2);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap JOIN source ON source.id = source"
                                  " WHERE loc = '" ORIGIN "/copied.xml' AND digest = 'd1'"
                                  " AND lastmod = '2026-01-01' AND name = 'copier'"),
                     1);
    answers_done(&answers);
}

/* Who is answered in what order. */
struct turn {
    struct answers answers;
    atomic_uint *clock;
    unsigned at;
};

static void record_turn(void *context, struct change_result *result)
{
    struct turn *turn = context;
    turn->at = atomic_fetch_add(turn->clock, 1);
    count_answer(&turn->answers, result);
}

/* False: the machine was so busy that the bulk itself had no turn in time, or that it was through
 * before the thread that reports the timeout had one. */
static bool bulk_before(struct write_fixture *f, const char *loc)
{
    struct test_stream s = {.make = make_numbered, .context = (void *)"s", .count = 150000};
    atomic_uint clock = 0;
    struct turn bulk = {.clock = &clock}, single = {.clock = &clock};
    answers_init(&bulk.answers);
    answers_init(&single.answers);
    struct change change = {.kind = CHANGE_BULK, .rows = rows_of(&s), .context = &bulk};
    catalogue_submit(f->c, &change, record_turn);
    usleep(30000);
    struct change small = put_change(loc, NULL);
    small.context = &single;
    int64_t before = clock_now_ms();
    catalogue_submit(f->c, &small, record_turn);
    answers_wait(&single.answers, 1);
    int64_t took = clock_now_ms() - before;
    answers_wait(&bulk.answers, 1);
    bool had_turn = bulk.answers.ok == 1;
    assert_int_equal(bulk.answers.busy, !had_turn);
    /* A fast machine may have been through with the bulk. */
    if (single.answers.ok == 0 && bulk.at < single.at)
        had_turn = false;
    if (had_turn)
        assert_true(single.answers.ok == 1 || took >= 90);
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM sitemap WHERE loc = '%s'", loc);
    assert_int_equal(number_of(f, sql), (int64_t)single.answers.ok);
    answers_done(&bulk.answers);
    answers_done(&single.answers);
    return had_turn;
}

static void a_long_bulk_lets_others_expire(void **state)
{
    struct write_fixture *f = *state;
    char loc[64];
    unsigned tries = 0;
    f->options.write_timeout_ms = 100;
    fixture_reopen(f);
    do {
        assert_true(tries < 40);
        snprintf(loc, sizeof loc, ORIGIN "/small-%u.xml", tries++);
    } while (!bulk_before(f, loc));
}

/* An orderly stop: what was taken is answered before it returns, nothing is taken afterwards, and
 * views still show it all. */
static void finished_before_closed(void **state)
{
    enum { WRITES = 40 };
    struct write_fixture *f = *state;
    struct answers taken, late;
    answers_init(&taken);
    answers_init(&late);
    char locs[WRITES][64];
    for (int i = 0; i < WRITES; i++) {
        snprintf(locs[i], sizeof locs[i], ORIGIN "/%d.xml", i);
        struct change change = put_change(locs[i], NULL);
        change.context = &taken;
        catalogue_submit(f->c, &change, count_answer);
    }
    catalogue_finish(f->c);
    if (taken.ok != WRITES)
        fail_msg("%zu answers: %zu ok, %zu refused, %zu busy, %zu unavailable, %zu cancelled",
                 taken.count, taken.ok, taken.refused, taken.busy, taken.unavailable,
                 taken.cancelled);
    struct change change = put_change(ORIGIN "/late.xml", NULL);
    change.context = &late;
    catalogue_submit(f->c, &change, count_answer);
    assert_int_equal(late.cancelled, 1);
    struct catalogue_view *view;
    struct catalogue_revisions revisions;
    assert_int_equal(catalogue_view_begin(f->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_revisions(view, &revisions), CATALOGUE_OK);
    assert_int_equal(revisions.entries, WRITES);
    catalogue_view_end(view);
    catalogue_finish(f->c); /* a second time does nothing */
    answers_done(&taken);
    answers_done(&late);
}

/* ---- who gives way */

struct nice_answer {
    struct answers answers;
    int nice;
};

static void record_nice(void *context, struct change_result *result)
{
    struct nice_answer *noted = context;
    noted->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    count_answer(&noted->answers, result);
}

static int nice_of_writer(struct write_fixture *f, const char *loc)
{
    struct nice_answer noted = {.nice = -100};
    answers_init(&noted.answers);
    struct change change = put_change(loc, NULL);
    change.context = &noted;
    catalogue_submit(f->c, &change, record_nice);
    answers_wait(&noted.answers, 1);
    answers_done(&noted.answers);
    return noted.nice;
}

/* To the threads that answer crawlers, which a command does not have. */
static void the_writer_of_a_server_gives_way(void **state)
{
    struct write_fixture *f = *state;
    int own = getpriority(PRIO_PROCESS, 0);
    assert_int_equal(nice_of_writer(f, ORIGIN "/command.xml"), own);
    f->options.server = true;
    fixture_reopen(f);
    assert_int_equal(nice_of_writer(f, ORIGIN "/server.xml"),
                     own > WRITER_NICE ? own : WRITER_NICE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(threads_share_commits),
        TEST(a_refusal_leaves_its_neighbours),
        TEST(closing_finishes_what_is_queued),
        TEST(finished_before_closed),
        TEST(what_is_submitted_is_a_copy),
        TEST(a_long_bulk_lets_others_expire),
        TEST(the_writer_of_a_server_gives_way),
        TEST(each_change_has_its_number),
        TEST(a_number_is_given_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
