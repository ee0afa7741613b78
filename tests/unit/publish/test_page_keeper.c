/* The publisher with pages on disk: a restart serves the same bytes without rendering, and nothing
 * but the very state that the catalogue has now is ever served. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/publish/publisher.h"

#define ORIGIN "https://www.example.com"
#define PAGE   "/sitemap_index.xml"

/* In the place of libc's: the catalogue's clock stands still, so that no date tells two states of a
 * page apart. */
time_t time(time_t *out)
{
    if (out != NULL)
        *out = 1767225600;
    return 1767225600;
}

struct fixture {
    char folder[64], path[96], pages[112];
    struct catalogue *catalogue;
    struct publisher *publisher;
    int level;
    uint64_t store_bytes, budget;
    uint32_t settle_ms, least_ms; /* an hour: only a stop stores */
    uint64_t last;                /* revision written */
};

static void open_catalogue(struct fixture *f, bool server)
{
    char why[256];
    struct catalogue_options options = {
        .path = f->path,
        .server = server,
        .write_timeout_ms = 5000,
        .max_queued = 1000,
        .default_max_pages = LIMIT_SITE_PAGES,
    };
    if (catalogue_open(&options, &f->catalogue, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
}

static uint64_t apply(struct fixture *f, const struct change *change)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(f->catalogue, change, &result);
    if (status != CATALOGUE_OK)
        fail_msg("%s: %s", catalogue_status_word(status), result.detail);
    entry_record_done(&result.entry);
    return result.revision;
}

static uint64_t put(struct fixture *f, const char *name, const char *lastmod)
{
    char loc[160];
    snprintf(loc, sizeof loc, ORIGIN "/%s.xml", name);
    struct change change = {
        .kind = CHANGE_ENTRY_PUT,
        .source = "test",
        .entry = {.loc = loc,
                  .lastmod = lastmod,
                  .lastmod_state = lastmod == NULL ? FIELD_ABSENT : FIELD_SET,
                  .position = POSITION_NONE},
    };
    f->last = apply(f, &change);
    return f->last;
}

/* Seen where a test fails. */
static void tell(void *context, const char *event, const char *detail)
{
    (void)context;
    print_message("%s: %s\n", event, detail);
}

static void start(struct fixture *f)
{
    open_catalogue(f, true);
    struct publisher_options options = {
        .catalogue = f->catalogue,
        .compression_level = f->level,
        .snapshot_budget_bytes = f->budget,
        .page_store_folder = f->pages,
        .page_store_bytes = f->store_bytes,
        .page_store_settle_ms = f->settle_ms,
        .page_store_least_ms = f->least_ms,
        .build_threads = 1,
        .event = tell,
    };
    assert_int_equal(publisher_start(&options, &f->publisher), CATALOGUE_OK);
}

static void stop(struct fixture *f)
{
    publisher_stop(f->publisher);
    catalogue_close(f->catalogue);
    f->publisher = NULL;
    f->catalogue = NULL;
}

static void restart(struct fixture *f)
{
    stop(f);
    start(f);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/test_page_keeper.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/catalogue.db", f->folder);
    snprintf(f->pages, sizeof f->pages, "%s.pages", f->path);
    f->level = 6;
    f->store_bytes = 1 << 20;
    f->budget = 1 << 20;
    f->settle_ms = f->least_ms = 3600000;
    start(f);
    apply(f, &(struct change){.kind = CHANGE_SITE_ADD, .site = {.origin = ORIGIN}});
    apply(f, &(struct change){.kind = CHANGE_INDEX_ADD, .index_url = ORIGIN PAGE});
    put(f, "one", "2026-01-01");
    *state = f;
    return 0;
}

static void shell(const char *command)
{
    assert_int_equal(system(command), 0);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    stop(f);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    shell(command);
    free(f);
    return 0;
}

/* ---- reading as a crawler does ---- */

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool called;
    enum await_result result;
    struct snapshot *snapshot;
};

static void hear(void *context, enum await_result result, struct snapshot *snapshot)
{
    struct heard *h = context;
    pthread_mutex_lock(&h->lock);
    h->called = true;
    h->result = result;
    h->snapshot = snapshot;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static void hear_revision(void *context, enum await_result result)
{
    hear(context, result, NULL);
}

static struct snapshot *wait_heard(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    while (!h->called)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
    assert_int_equal(h->result, AWAIT_DONE);
    return h->snapshot;
}

#define HEARD                                                                                      \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER                       \
    }

static void await_revision(struct fixture *f, uint64_t revision)
{
    struct heard h = HEARD;
    publisher_await_revision(f->publisher, revision, hear_revision, &h);
    wait_heard(&h);
}

static struct snapshot *get_path(struct fixture *f, const char *path)
{
    struct route_found found;
    await_revision(f, f->last);
    const struct routing *routing = publisher_routing(f->publisher);
    routing_find(routing, "any", path, &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    struct snapshot *snapshot = slot_snapshot(found.slot);
    if (snapshot == NULL) {
        struct heard h = HEARD;
        publisher_await_page(f->publisher, found.slot, hear, &h);
        snapshot = wait_heard(&h);
    }
    publisher_routing_done(routing);
    assert_non_null(snapshot);
    return snapshot;
}

static struct snapshot *get(struct fixture *f)
{
    return get_path(f, PAGE);
}

static struct publisher_stats stats(struct fixture *f)
{
    struct publisher_stats s;
    publisher_stats_get(f->publisher, &s);
    return s;
}

/* What a publisher that stores nothing makes of the same catalogue. */
static void assert_as_rendered(struct fixture *f, const struct snapshot *served)
{
    struct fixture plain = *f;
    open_catalogue(&plain, false);
    struct publisher_options options = {
        .catalogue = plain.catalogue,
        .compression_level = f->level,
        .snapshot_budget_bytes = 1 << 20,
        .build_threads = 1,
        .event = tell,
    };
    assert_int_equal(publisher_start(&options, &plain.publisher), CATALOGUE_OK);
    struct snapshot *expected = get(&plain);
    assert_int_equal(served->gzip_len, expected->gzip_len);
    assert_memory_equal(served->gzip, expected->gzip, served->gzip_len);
    assert_string_equal(served->etag_gzip, expected->etag_gzip);
    assert_string_equal(served->etag_identity, expected->etag_identity);
    assert_string_equal(served->etag_file, expected->etag_file);
    assert_int_equal(served->raw_len, expected->raw_len);
    assert_int_equal(served->entries, expected->entries);
    assert_int_equal(served->revision, expected->revision);
    assert_int_equal(served->changed_at, expected->changed_at);
    assert_int_equal(served->same_second, expected->same_second);
    assert_int_equal(served->segment_count, expected->segment_count);
    snapshot_unref(expected);
    stop(&plain);
}

/* Serves the page, compares, and tells whether it was loaded. */
static bool loads(struct fixture *f)
{
    struct publisher_stats before = stats(f);
    struct snapshot *s = get(f);
    struct publisher_stats after = stats(f);
    assert_as_rendered(f, s);
    snapshot_unref(s);
    bool loaded = after.pages_loaded > before.pages_loaded;
    assert_int_equal(after.segments_rendered > before.segments_rendered, !loaded);
    assert_int_equal(after.pages_built_cold > before.pages_built_cold, !loaded);
    return loaded;
}

static bool is_stored(struct fixture *f, const char *name)
{
    char path[160];
    struct stat found;
    snprintf(path, sizeof path, "%s/%s", f->pages, name);
    return stat(path, &found) == 0;
}

static void sleep_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

/* Without end: a test that hangs is ended by its runner. */
static void wait_stored(struct fixture *f, const char *name, bool there)
{
    while (is_stored(f, name) != there)
        sleep_ms(5);
}

/* ---- tests ---- */

static void a_restart_renders_nothing(void **state)
{
    struct fixture *f = *state;
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
    assert_true(stats(f).page_store_bytes > 0 || !is_stored(f, "1-1.page"));
    /* What was loaded is spliced as what was built is. */
    put(f, "two", NULL);
    await_revision(f, f->last);
    assert_int_equal(stats(f).segments_rendered, 1);
    struct snapshot *s = get(f);
    assert_as_rendered(f, s);
    snapshot_unref(s);
    restart(f);
    assert_true(loads(f));
}

static void a_page_that_changed_meanwhile_is_built(void **state)
{
    struct fixture *f = *state;
    assert_false(loads(f));
    stop(f);
    open_catalogue(f, false); /* as a command does */
    put(f, "one", "2026-01-02");
    catalogue_close(f->catalogue);
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
}

/* The file goes back to an older state, and then, within the same second, through as many revisions
 * as before, with as many entries and bytes: nothing but the stamp tells. */
static void an_older_copy_with_another_future_is_not_taken_for_the_first(void **state)
{
    struct fixture *f = *state;
    char command[512];
    stop(f);
    snprintf(command, sizeof command, "cp %s %s.backup", f->path, f->path);
    shell(command);
    start(f);
    uint64_t revision = put(f, "one", "2026-01-02");
    await_revision(f, revision);
    struct snapshot *s = get(f);
    struct {
        uint64_t page_revision;
        int64_t changed_at;
        bool same_second;
        uint32_t entries;
        char etag_gzip[SNAPSHOT_ETAG_SIZE];
    } first = {s->page_revision, s->changed_at, s->same_second, s->entries, ""};
    strcpy(first.etag_gzip, s->etag_gzip);
    snapshot_unref(s);
    stop(f);
    assert_true(is_stored(f, "1-1.page"));
    snprintf(command, sizeof command, "rm -f %s-*; cp %s.backup %s", f->path, f->path, f->path);
    shell(command);
    start(f);
    assert_int_equal(put(f, "one", "2026-01-03"), revision);
    await_revision(f, revision);
    assert_false(loads(f));
    struct snapshot *second = get(f);
    assert_int_equal(second->page_revision, first.page_revision);
    assert_int_equal(second->changed_at, first.changed_at);
    assert_int_equal(second->same_second, first.same_second);
    assert_int_equal(second->entries, first.entries);
    assert_string_not_equal(second->etag_gzip, first.etag_gzip);
    snapshot_unref(second);
    restart(f);
    assert_true(loads(f));
}

/* Put back, and nothing written since: the older state's page is not in the store any more. */
static void an_older_copy_is_served_as_it_is(void **state)
{
    struct fixture *f = *state;
    char command[512];
    assert_false(loads(f));
    stop(f);
    snprintf(command, sizeof command, "cp %s %s.backup", f->path, f->path);
    shell(command);
    start(f);
    await_revision(f, put(f, "two", "2026-01-02"));
    assert_false(loads(f));
    stop(f);
    snprintf(command, sizeof command, "rm -f %s-*; cp %s.backup %s", f->path, f->path, f->path);
    shell(command);
    f->last = 0;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
}

static void another_level_builds_anew(void **state)
{
    struct fixture *f = *state;
    assert_false(loads(f));
    stop(f);
    f->level = 1;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_true(loads(f));
}

static void a_torn_file_is_built_anew(void **state)
{
    struct fixture *f = *state;
    char path[160];
    snprintf(path, sizeof path, "%s/1-1.page", f->pages);
    assert_false(loads(f));
    static const off_t lens[] = {0, 1, 100, 150, 200};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        stop(f);
        assert_int_equal(truncate(path, lens[i]), 0);
        start(f);
        assert_false(loads(f));
    }
    restart(f); /* each was replaced */
    assert_true(loads(f));
}

static void off_stores_nothing(void **state)
{
    struct fixture *f = *state;
    struct stat found;
    char command[160];
    stop(f);
    snprintf(command, sizeof command, "rm -r %s", f->pages);
    shell(command);
    f->store_bytes = 0;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_false(loads(f));
    assert_int_equal(stat(f->pages, &found), -1);
}

static void a_store_without_room_serves_on(void **state)
{
    struct fixture *f = *state;
    stop(f);
    f->store_bytes = 100;
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_false(loads(f));
    assert_int_equal(stats(f).page_store_bytes, 0);
}

static void a_folder_that_cannot_be_made_serves_on(void **state)
{
    struct fixture *f = *state;
    char command[256];
    stop(f);
    snprintf(command, sizeof command, "rm -rf %s; touch %s", f->pages, f->pages);
    shell(command);
    start(f);
    assert_false(loads(f));
    restart(f);
    assert_false(loads(f));
}

static void a_page_that_stood_is_stored(void **state)
{
    struct fixture *f = *state;
    stop(f);
    f->settle_ms = f->least_ms = 20;
    start(f);
    assert_false(loads(f));
    wait_stored(f, "1-1.page", true);
    while (stats(f).page_store_bytes == 0)
        sleep_ms(5);

    /* A page that goes takes its file with it. */
    struct change change = {.kind = CHANGE_INDEX_REMOVE, .index_id = 1, .max_removed = 1};
    await_revision(f, apply(f, &change));
    wait_stored(f, "1-1.page", false);
    while (stats(f).page_store_bytes > 0)
        sleep_ms(5);
}

static void an_evicted_page_comes_back_from_the_store(void **state)
{
    struct fixture *f = *state;
    apply(f, &(struct change){.kind = CHANGE_INDEX_ADD, .index_url = ORIGIN "/b/b.xml"});
    put(f, "b/two", NULL);
    stop(f);
    f->settle_ms = f->least_ms = 20;
    f->budget = 1; /* one page at a time */
    start(f);
    snapshot_unref(get(f));
    wait_stored(f, "1-1.page", true);
    snapshot_unref(get_path(f, "/b/b.xml"));
    while (stats(f).evictions == 0) /* after the reply */
        sleep_ms(5);
    wait_stored(f, "2-1.page", true);
    assert_int_equal(stats(f).pages_built_cold, 2);
    assert_true(loads(f));
    assert_int_equal(stats(f).segments_rendered, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_restart_renders_nothing),
        TEST(a_page_that_changed_meanwhile_is_built),
        TEST(an_older_copy_with_another_future_is_not_taken_for_the_first),
        TEST(an_older_copy_is_served_as_it_is),
        TEST(another_level_builds_anew),
        TEST(a_torn_file_is_built_anew),
        TEST(off_stores_nothing),
        TEST(a_store_without_room_serves_on),
        TEST(a_folder_that_cannot_be_made_serves_on),
        TEST(a_page_that_stood_is_stored),
        TEST(an_evicted_page_comes_back_from_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
