/* The publisher on a real catalogue: an acknowledged write is in the next read, whatever races it
 * (publisher.h, invariants 1 to 5), and what is served equals a plain render. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "server/publish/publisher.h"
#include "server/rules/str.h"

#define ORIGIN "https://www.example.com"

struct fixture {
    char folder[64], path[96];
    struct catalogue *catalogue;
    struct publisher *publisher;
    /* The gate: while it is closed, build N stops between its read and its installation until N
     * are let through. */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool closed;
    int arrived, let_through;
    atomic_int builds;
    /* What readers were to give back. */
    atomic_int cuts;
    atomic_uint_fast64_t cut_bytes;
};

static void pause_build(void *context, int64_t index_id, uint32_t page, uint64_t revision)
{
    struct fixture *f = context;
    (void)index_id;
    (void)page;
    (void)revision;
    atomic_fetch_add(&f->builds, 1);
    pthread_mutex_lock(&f->lock);
    int mine = ++f->arrived;
    pthread_cond_broadcast(&f->moved);
    while (f->closed && f->let_through < mine)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static void cut_readers(void *context, uint64_t bytes)
{
    struct fixture *f = context;
    atomic_fetch_add(&f->cuts, 1);
    atomic_store(&f->cut_bytes, bytes);
}

static void close_gate(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = true;
    f->arrived = f->let_through = 0;
    pthread_mutex_unlock(&f->lock);
}

static void wait_arrived(struct fixture *f, int builds)
{
    pthread_mutex_lock(&f->lock);
    while (f->arrived < builds)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static void let_through(struct fixture *f, int builds)
{
    pthread_mutex_lock(&f->lock);
    f->let_through = builds;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

static void open_gate(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    f->closed = false;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

static struct catalogue *open_catalogue(const char *path, bool server)
{
    struct catalogue *c;
    char why[256];
    struct catalogue_options options = {
        .path = path,
        .server = server,
        .write_timeout_ms = 5000,
        .max_queued = 1000,
        .shrink_percent = 30,
        .default_max_pages = LIMIT_SITE_PAGES,
    };
    if (catalogue_open(&options, &c, why, sizeof why) != CATALOGUE_OK)
        fail_msg("%s", why);
    return c;
}

static uint64_t apply(struct catalogue *c, const struct change *change)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(c, change, &result);
    if (status != CATALOGUE_OK)
        fail_msg("%s: %s: %s", catalogue_status_word(status), rule_code_word(result.code),
                 result.detail);
    entry_record_done(&result.entry);
    return result.revision;
}

static uint64_t put(struct catalogue *c, const char *name, const char *lastmod)
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
    return apply(c, &change);
}

static uint64_t drop(struct catalogue *c, const char *name)
{
    char loc[160];
    snprintf(loc, sizeof loc, ORIGIN "/%s.xml", name);
    struct change change = {.kind = CHANGE_ENTRY_REMOVE, .loc = loc};
    return apply(c, &change);
}

static void start_publisher(struct fixture *f, uint64_t budget)
{
    struct publisher_options options = {
        .catalogue = f->catalogue,
        .compression_level = 6,
        .snapshot_budget_bytes = budget,
        .build_threads = 2,
        .build_pause = pause_build,
        .build_pause_context = f,
        .cut_slow_readers = cut_readers,
        .cut_context = f,
    };
    assert_int_equal(publisher_start(&options, &f->publisher), CATALOGUE_OK);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->folder, "/tmp/test_publisher.XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->path, sizeof f->path, "%s/catalogue.db", f->folder);
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    f->catalogue = open_catalogue(f->path, true);
    apply(f->catalogue, &(struct change){.kind = CHANGE_SITE_ADD, .site = {.origin = ORIGIN}});
    apply(f->catalogue,
          &(struct change){.kind = CHANGE_INDEX_ADD, .index_url = ORIGIN "/sitemap_index.xml"});
    start_publisher(f, 1u << 30);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    publisher_stop(f->publisher);
    catalogue_close(f->catalogue);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

/* ---- waiting for callbacks ---- */

struct heard {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int calls;
    enum await_result result;
    struct snapshot *snapshot;
};

static void heard_init(struct heard *h)
{
    memset(h, 0, sizeof *h);
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->moved, NULL);
}

static void hear_page(void *context, enum await_result result, struct snapshot *snapshot)
{
    struct heard *h = context;
    pthread_mutex_lock(&h->lock);
    h->calls++;
    h->result = result;
    h->snapshot = snapshot;
    pthread_cond_broadcast(&h->moved);
    pthread_mutex_unlock(&h->lock);
}

static void hear_revision(void *context, enum await_result result)
{
    hear_page(context, result, NULL);
}

static void wait_heard(struct heard *h)
{
    pthread_mutex_lock(&h->lock);
    while (h->calls == 0)
        pthread_cond_wait(&h->moved, &h->lock);
    pthread_mutex_unlock(&h->lock);
}

static void await_revision(struct fixture *f, uint64_t revision)
{
    struct heard h;
    heard_init(&h);
    publisher_await_revision(f->publisher, revision, hear_revision, &h);
    wait_heard(&h);
    assert_int_equal(h.result, AWAIT_DONE);
}

/* ---- reading as a crawler does ---- */

static struct snapshot *get(struct fixture *f, const char *path)
{
    struct route_found found;
    const struct routing *routing = publisher_routing(f->publisher);
    struct snapshot *snapshot = NULL;
    routing_find(routing, "anything", path, &found);
    if (found.kind == ROUTE_PAGE) {
        snapshot = slot_snapshot(found.slot);
        if (snapshot == NULL) {
            struct heard h;
            heard_init(&h);
            publisher_await_page(f->publisher, found.slot, hear_page, &h);
            wait_heard(&h);
            assert_int_equal(h.result, AWAIT_DONE);
            snapshot = h.snapshot;
        }
    }
    publisher_routing_done(routing);
    return snapshot;
}

static char *text_of(const struct snapshot *s)
{
    z_stream z = {0};
    char *out = malloc(s->raw_len + 1);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = (z_const Bytef *)s->gzip;
    z.avail_in = (uInt)s->gzip_len;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)s->raw_len;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, s->raw_len);
    out[z.total_out] = '\0';
    inflateEnd(&z);
    return out;
}

static bool page_holds(struct fixture *f, const char *what)
{
    struct snapshot *s = get(f, "/sitemap_index.xml");
    if (s == NULL)
        return false;
    char *text = text_of(s);
    bool holds = strstr(text, what) != NULL;
    free(text);
    snapshot_unref(s);
    return holds;
}

static void assert_equals_plain_render(struct fixture *f)
{
    struct catalogue_view *v;
    struct registry *registry;
    struct str plain = STR_INIT;
    assert_int_equal(catalogue_view_begin(f->catalogue, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_registry(v, &registry), CATALOGUE_OK);
    enum catalogue_status status =
        publish_render_page(v, registry->sites[0].indexes[0].id, 1, &plain);
    registry_unref(registry);
    catalogue_view_end(v);
    struct snapshot *s = get(f, "/sitemap_index.xml");
    if (status == CATALOGUE_NOT_FOUND) {
        assert_null(s);
    } else {
        assert_non_null(s);
        char *text = text_of(s);
        assert_string_equal(text, str_text(&plain));
        free(text);
    }
    snapshot_unref(s);
    str_done(&plain);
}

static struct publisher_stats stats(struct fixture *f)
{
    struct publisher_stats s;
    publisher_stats_get(f->publisher, &s);
    return s;
}

/* ---- tests ---- */

static void an_index_never_filled_is_not_there(void **state)
{
    struct fixture *f = *state;
    assert_null(get(f, "/sitemap_index.xml"));
}

static void an_acknowledged_write_is_in_the_next_read(void **state)
{
    struct fixture *f = *state;
    char name[32];
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "child-%d", i);
        await_revision(f, put(f->catalogue, name, "2026-01-02"));
        assert_true(page_holds(f, name));
    }
    assert_equals_plain_render(f);
}

static void one_change_renders_one_segment(void **state)
{
    struct fixture *f = *state;
    char name[32];
    uint64_t revision = 0;
    for (int i = 0; i < 1200; i++) {
        snprintf(name, sizeof name, "child-%d", i);
        revision = put(f->catalogue, name, NULL);
    }
    await_revision(f, revision);
    struct snapshot *before = get(f, "/sitemap_index.xml");
    uint64_t rendered = stats(f).segments_rendered;
    await_revision(f, put(f->catalogue, "child-600", "2026-01-02"));
    assert_int_equal(stats(f).segments_rendered, rendered + 1);
    assert_true(page_holds(f, "2026-01-02"));
    struct snapshot *after = get(f, "/sitemap_index.xml");
    assert_string_not_equal(before->etag_gzip, after->etag_gzip);
    assert_memory_equal(&before->segments[0].hash, &after->segments[0].hash, 16);
    assert_memory_equal(&before->segments[3].hash, &after->segments[3].hash, 16);
    snapshot_unref(before);
    snapshot_unref(after);
    assert_equals_plain_render(f);
}

/* Invariants 1 and 3: a build that read before the commit must not be installed after it. */
static void a_commit_during_a_cold_build_is_not_hidden(void **state)
{
    struct fixture *f = *state;
    await_revision(f, put(f->catalogue, "old", NULL));

    const struct routing *routing = publisher_routing(f->publisher);
    struct route_found found;
    struct heard early;
    heard_init(&early);
    routing_find(routing, NULL, "/sitemap_index.xml", &found);
    assert_int_equal(found.kind, ROUTE_PAGE);
    close_gate(f);
    publisher_await_page(f->publisher, found.slot, hear_page, &early);
    wait_arrived(f, 1); /* the build has read the page without "new" */

    await_revision(f, put(f->catalogue, "new", NULL)); /* acknowledged */
    let_through(f, 1);
    wait_arrived(f, 2); /* overtaken, it builds again: what it had must not have been installed */
    assert_null(slot_snapshot(found.slot));
    open_gate(f);
    wait_heard(&early);
    assert_int_equal(early.result, AWAIT_DONE);
    snapshot_unref(early.snapshot);
    assert_true(page_holds(f, "new"));
    assert_true(page_holds(f, "old"));
    publisher_routing_done(routing);
}

/* A reader who asks after the acknowledgement, while the old build is still at it. */
static void a_reader_after_the_acknowledgement_gets_the_new_page(void **state)
{
    struct fixture *f = *state;
    await_revision(f, put(f->catalogue, "old", NULL));
    const struct routing *routing = publisher_routing(f->publisher);
    struct route_found found;
    struct heard early, late;
    heard_init(&early);
    heard_init(&late);
    routing_find(routing, NULL, "/sitemap_index.xml", &found);
    close_gate(f);
    publisher_await_page(f->publisher, found.slot, hear_page, &early);
    wait_arrived(f, 1);
    await_revision(f, put(f->catalogue, "new", NULL));
    publisher_await_page(f->publisher, found.slot, hear_page, &late);
    open_gate(f);
    wait_heard(&early);
    wait_heard(&late);
    assert_ptr_equal(early.snapshot, late.snapshot); /* invariant 5 */
    char *text = text_of(late.snapshot);
    assert_non_null(strstr(text, "/new.xml"));
    free(text);
    snapshot_unref(early.snapshot);
    snapshot_unref(late.snapshot);
    publisher_routing_done(routing);
}

/* The same race on a hot page: the pass is paused, and a second commit arrives meanwhile. */
static void a_commit_during_a_pass_is_not_hidden(void **state)
{
    struct fixture *f = *state;
    await_revision(f, put(f->catalogue, "one", NULL));
    snapshot_unref(get(f, "/sitemap_index.xml"));
    close_gate(f);
    uint64_t second = put(f->catalogue, "two", NULL);
    wait_arrived(f, 1);
    uint64_t third = put(f->catalogue, "three", NULL);
    open_gate(f);
    await_revision(f, second);
    assert_true(page_holds(f, "two"));
    await_revision(f, third);
    assert_true(page_holds(f, "three"));
    assert_equals_plain_render(f);
}

/* Commits that overtake every attempt: the last one holds passes off and ends. */
static void a_cold_build_ends_under_a_stream_of_commits(void **state)
{
    struct fixture *f = *state;
    await_revision(f, put(f->catalogue, "old", NULL));
    const struct routing *routing = publisher_routing(f->publisher);
    struct route_found found;
    struct heard early;
    char name[32];
    heard_init(&early);
    routing_find(routing, NULL, "/sitemap_index.xml", &found);
    close_gate(f);
    publisher_await_page(f->publisher, found.slot, hear_page, &early);
    for (int attempt = 1; attempt <= 3; attempt++) {
        wait_arrived(f, attempt);
        snprintf(name, sizeof name, "new-%d", attempt);
        await_revision(f, put(f->catalogue, name, NULL));
        let_through(f, attempt);
    }
    wait_arrived(f, 4);
    uint64_t last = put(f->catalogue, "new-4", NULL);
    open_gate(f);
    wait_heard(&early);
    char *text = text_of(early.snapshot);
    assert_non_null(strstr(text, "/new-3.xml"));
    free(text);
    snapshot_unref(early.snapshot);
    await_revision(f, last);
    assert_true(page_holds(f, "new-4"));
    assert_equals_plain_render(f);
    publisher_routing_done(routing);
}

static void a_cold_page_is_built_once(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 40 };
    struct heard heard[MANY];
    await_revision(f, put(f->catalogue, "one", NULL));
    const struct routing *routing = publisher_routing(f->publisher);
    struct route_found found;
    routing_find(routing, NULL, "/sitemap_index.xml", &found);
    atomic_store(&f->builds, 0);
    close_gate(f);
    for (int i = 0; i < MANY; i++) {
        heard_init(&heard[i]);
        publisher_await_page(f->publisher, found.slot, hear_page, &heard[i]);
    }
    wait_arrived(f, 1);
    open_gate(f);
    for (int i = 0; i < MANY; i++) {
        wait_heard(&heard[i]);
        assert_int_equal(heard[i].calls, 1);
        assert_ptr_equal(heard[i].snapshot, heard[0].snapshot);
    }
    for (int i = 0; i < MANY; i++)
        snapshot_unref(heard[i].snapshot);
    assert_int_equal(atomic_load(&f->builds), 1);
    publisher_routing_done(routing);
}

static void another_handle_is_seen(void **state)
{
    struct fixture *f = *state;
    await_revision(f, put(f->catalogue, "mine", NULL));
    assert_true(page_holds(f, "mine"));
    struct catalogue *other = open_catalogue(f->path, false);
    uint64_t revision = put(other, "theirs", NULL);
    await_revision(f, revision);
    assert_true(page_holds(f, "theirs"));
    catalogue_close(other);
}

static void an_emptied_page_is_gone_and_an_undone_change_has_its_tag_back(void **state)
{
    struct fixture *f = *state;
    await_revision(f, put(f->catalogue, "one", "2026-01-02"));
    struct snapshot *first = get(f, "/sitemap_index.xml");
    await_revision(f, put(f->catalogue, "one", "2026-01-03"));
    struct snapshot *changed = get(f, "/sitemap_index.xml");
    assert_string_not_equal(first->etag_identity, changed->etag_identity);
    await_revision(f, drop(f->catalogue, "one"));
    assert_null(get(f, "/sitemap_index.xml"));
    assert_equals_plain_render(f);
    await_revision(f, put(f->catalogue, "one", "2026-01-02"));
    struct snapshot *again = get(f, "/sitemap_index.xml");
    assert_string_equal(first->etag_identity, again->etag_identity);
    assert_string_equal(first->etag_gzip, again->etag_gzip);
    snapshot_unref(first);
    snapshot_unref(changed);
    snapshot_unref(again);
}

/* A stream of `count` entries named child-0, child-1, … */
struct numbers {
    int next, count;
    char loc[80];
};

static int numbers_next(void *context, struct entry *out)
{
    struct numbers *n = context;
    if (n->next == n->count)
        return 0;
    snprintf(n->loc, sizeof n->loc, ORIGIN "/child-%d.xml", n->next++);
    *out = (struct entry){.loc = n->loc, .position = POSITION_NONE};
    return 1;
}

static bool numbers_rewind(void *context)
{
    ((struct numbers *)context)->next = 0;
    return true;
}

/* Rule 5: what is too much for a pass is dropped, and the next reader builds it. */
static void a_bulk_drops_the_page(void **state)
{
    struct fixture *f = *state;
    struct numbers numbers = {.count = 80 * (int)SEGMENT_POSITIONS};
    struct entry_stream stream = {&numbers, numbers_next, numbers_rewind, (uint64_t)numbers.count};
    await_revision(f, put(f->catalogue, "one", NULL));
    snapshot_unref(get(f, "/sitemap_index.xml"));
    uint64_t published = stats(f).pages_published;
    await_revision(
        f, apply(f->catalogue,
                 &(struct change){.kind = CHANGE_BULK, .source = "test", .stream = &stream}));
    assert_int_equal(stats(f).pages_published, published);
    assert_int_equal(stats(f).snapshots, 0);
    assert_true(page_holds(f, "child-19999.xml"));
    assert_equals_plain_render(f);
}

static void the_budget_evicts(void **state)
{
    struct fixture *f = *state;
    publisher_stop(f->publisher);
    char url[128], loc[100];
    uint64_t revision = 0;
    for (int i = 0; i < 20; i++) {
        snprintf(url, sizeof url, ORIGIN "/d%d/sitemap_index.xml", i);
        apply(f->catalogue, &(struct change){.kind = CHANGE_INDEX_ADD, .index_url = url});
        snprintf(loc, sizeof loc, "d%d/child", i);
        revision = put(f->catalogue, loc, NULL);
    }
    start_publisher(f, 2000);
    await_revision(f, revision);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 20; i++) {
            char path[64];
            snprintf(path, sizeof path, "/d%d/sitemap_index.xml", i);
            struct snapshot *s = get(f, path);
            assert_non_null(s);
            snapshot_unref(s);
        }
    assert_true(stats(f).evictions > 0);
    /* The last build's eviction may still be under way. */
    for (int i = 0; stats(f).snapshot_bytes > 2000 && i < 100; i++)
        usleep(10000);
    assert_in_range(stats(f).snapshot_bytes, 1, 2000);
}

/* Every other page goes before a reader is cut off, and as much is asked for as is too much. */
static void slow_readers_are_cut_last(void **state)
{
    enum { READERS = 6 };
    struct fixture *f = *state;
    struct snapshot *held[READERS];
    publisher_stop(f->publisher);
    apply(f->catalogue,
          &(struct change){.kind = CHANGE_INDEX_ADD, .index_url = ORIGIN "/d/sitemap_index.xml"});
    put(f->catalogue, "d/child", NULL);
    uint64_t revision = put(f->catalogue, "child-0", NULL);
    start_publisher(f, 1000); /* some two or three pages */
    await_revision(f, revision);
    struct snapshot *other = get(f, "/d/sitemap_index.xml");
    snapshot_unref(other);
    for (int i = 0; i < READERS; i++) {
        char name[16];
        held[i] = get(f, "/sitemap_index.xml");
        assert_non_null(held[i]);
        if (atomic_load(&f->cuts) > 0)
            assert_true(stats(f).evictions > 0);
        snprintf(name, sizeof name, "child-%d", i + 1);
        await_revision(f, put(f->catalogue, name, NULL));
        assert_true(atomic_load(&held[i]->retired));
    }
    assert_true(stats(f).evictions > 0);
    assert_true(atomic_load(&f->cuts) > 0);
    assert_int_equal(atomic_load(&f->cut_bytes), stats(f).snapshot_bytes - 1000);
    for (int i = 0; i < READERS; i++)
        snapshot_unref(held[i]);
    await_revision(f, put(f->catalogue, "child-0", "2026-01-01"));
    assert_in_range(stats(f).snapshot_bytes, 1, 1000);
}

static void random_changes_equal_a_plain_render(void **state)
{
    struct fixture *f = *state;
    struct catalogue *other = open_catalogue(f->path, false);
    unsigned seed = 20261121;
    char name[32], lastmod[32];
    for (int i = 0; i < 400; i++) {
        struct catalogue *c = rand_r(&seed) % 3 == 0 ? other : f->catalogue;
        snprintf(name, sizeof name, "child-%d", rand_r(&seed) % 60);
        snprintf(lastmod, sizeof lastmod, "2026-01-%02d", 1 + rand_r(&seed) % 28);
        if (rand_r(&seed) % 4 == 0) {
            char loc[160];
            struct change_result result;
            snprintf(loc, sizeof loc, ORIGIN "/%s.xml", name);
            catalogue_apply(c, &(struct change){.kind = CHANGE_ENTRY_REMOVE, .loc = loc}, &result);
            entry_record_done(&result.entry);
            await_revision(f, result.revision);
        } else {
            await_revision(f, put(c, name, lastmod));
        }
        if (i % 5 == 0)
            assert_equals_plain_render(f);
    }
    assert_equals_plain_render(f);
    catalogue_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_index_never_filled_is_not_there),
        TEST(an_acknowledged_write_is_in_the_next_read),
        TEST(one_change_renders_one_segment),
        TEST(a_commit_during_a_cold_build_is_not_hidden),
        TEST(a_reader_after_the_acknowledgement_gets_the_new_page),
        TEST(a_commit_during_a_pass_is_not_hidden),
        TEST(a_cold_build_ends_under_a_stream_of_commits),
        TEST(a_cold_page_is_built_once),
        TEST(another_handle_is_seen),
        TEST(an_emptied_page_is_gone_and_an_undone_change_has_its_tag_back),
        TEST(a_bulk_drops_the_page),
        TEST(the_budget_evicts),
        TEST(slow_readers_are_cut_last),
        TEST(random_changes_equal_a_plain_render),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
