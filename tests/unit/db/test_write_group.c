/* Many writers at once, deadlines, and an orderly stop. Other processes: test_write_foreign.c. */
#include <stdatomic.h>

#include "tests/unit/db/write_answers.h"

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

/* Who is answered in what order. */
struct turn {
    struct answers answers;
    atomic_uint *clock;
    unsigned at;
};

static void note_turn(void *context, struct change_result *result)
{
    struct turn *turn = context;
    turn->at = atomic_fetch_add(turn->clock, 1);
    count_answer(&turn->answers, result);
}

static void a_long_bulk_lets_others_expire(void **state)
{
    struct write_fixture *f = *state;
    f->options.write_timeout_ms = 100;
    fixture_reopen(f);
    struct test_stream s = {.make = make_numbered, .context = (void *)"s", .count = 150000};
    atomic_uint clock = 0;
    struct turn bulk = {.clock = &clock}, single = {.clock = &clock};
    answers_init(&bulk.answers);
    answers_init(&single.answers);
    struct change change = {.kind = CHANGE_BULK, .stream = stream_open(&s), .context = &bulk};
    catalogue_submit(f->c, &change, note_turn);
    usleep(30000);
    struct change small = put_change(ORIGIN "/small.xml", NULL);
    small.context = &single;
    int64_t before = now_ms();
    catalogue_submit(f->c, &small, note_turn);
    answers_wait(&single.answers, 1);
    int64_t took = now_ms() - before;
    answers_wait(&bulk.answers, 1);
    assert_int_equal(bulk.answers.ok, 1);
    /* A fast machine may have been through with the bulk. */
    assert_true(single.answers.ok == 1 || (took >= 90 && single.at < bulk.at));
    assert_int_equal(
        number_of(f, "SELECT count(*) FROM sitemap WHERE loc = '" ORIGIN "/small.xml'"),
        (int64_t)single.answers.ok);
    answers_done(&bulk.answers);
    answers_done(&single.answers);
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
    assert_int_equal(taken.ok, WRITES);
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
    catalogue_finish(f->c); /* once more is nothing */
    answers_done(&taken);
    answers_done(&late);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(threads_share_commits),           TEST(a_refusal_leaves_its_neighbours),
        TEST(closing_finishes_what_is_queued), TEST(finished_before_closed),
        TEST(a_long_bulk_lets_others_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
