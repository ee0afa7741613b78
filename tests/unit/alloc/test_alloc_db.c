/* The catalogue: where memory runs out, within SQLite too, a write is answered NO_MEMORY and
 * nothing of it is there, a read says so, and the file stays whole. */
#include "tests/unit/alloc/alloc.h"

#include "db/catalogue.h"

#define ORIGIN "https://www.example.com"
#define INDEX  ORIGIN "/sitemap_index.xml"

struct world {
    char folder[64], path[96];
    struct catalogue *c;
    unsigned number; /* makes each loc another one */
    int64_t site;
};

static enum catalogue_status open_world(struct world *w, bool server)
{
    char why[256] = "untouched";
    struct catalogue_options options = {.path = w->path,
                                        .server = server,
                                        .write_timeout_ms = 5000,
                                        .max_queued = 100,
                                        .shrink_percent = 30,
                                        .default_max_pages = LIMIT_SITE_PAGES};
    enum catalogue_status status = catalogue_open(&options, &w->c, why, sizeof why);
    if (status != CATALOGUE_OK) {
        assert_null(w->c);
        assert_string_not_equal(why, "untouched");
        if (status != CATALOGUE_NO_MEMORY)
            print_error("%s\n", why);
    }
    return status;
}

/* What memory may do to a call: nothing, or this. */
static bool fine(enum catalogue_status status)
{
    if (status != CATALOGUE_OK && status != CATALOGUE_NO_MEMORY)
        fail_msg("%s", catalogue_status_word(status));
    return status == CATALOGUE_OK;
}

static uint64_t entries(struct world *w)
{
    struct catalogue_view *v;
    struct catalogue_revisions now = {.entries = 0};
    assert_int_equal(catalogue_view_begin(w->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_revisions(v, &now), CATALOGUE_OK);
    catalogue_view_end(v);
    return now.entries;
}

static bool apply(struct world *w, const struct change *change)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(w->c, change, &result);
    entry_record_done(&result.entry);
    if (status == CATALOGUE_UNAVAILABLE)
        print_error("%s\n", result.detail);
    return fine(status);
}

static void tell_problem(void *context, const char *sentence)
{
    (void)context;
    print_error("%s\n", sentence);
}

static void assert_whole(struct world *w)
{
    uint64_t count = 1;
    assert_int_equal(catalogue_check(w->c, tell_problem, NULL, &count), CATALOGUE_OK);
    assert_int_equal(count, 0);
}

/* ---- open */

static bool open_and_close(void *context)
{
    struct world *w = context;
    if (!fine(open_world(w, true)))
        return false;
    catalogue_close(w->c);
    return true;
}

static bool make_and_close(void *context)
{
    struct world *w = context;
    char name[128];
    static const char *const tails[] = {"", "-wal", "-shm"};
    bool good = open_and_close(w);
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", w->path, tails[i]);
        unlink(name);
    }
    return good;
}

/* ---- writes: each asserts that it is there whole or not at all */

static bool put_one(void *context)
{
    struct world *w = context;
    char loc[120];
    snprintf(loc, sizeof loc, ORIGIN "/one-%u.xml", ++w->number);
    struct change change = {.kind = CHANGE_ENTRY_PUT,
                            .source = "tests",
                            .entry = {.loc = loc,
                                      .lastmod = "2026-01-01",
                                      .lastmod_state = FIELD_SET,
                                      .position = POSITION_NONE}};
    return apply(w, &change);
}

struct list {
    unsigned at, count;
    char loc[120];
};

static int list_next(void *context, struct entry *out)
{
    struct list *l = context;
    if (l->at == l->count)
        return 0;
    snprintf(l->loc, sizeof l->loc, ORIGIN "/list-%u.xml", l->at);
    *out = (struct entry){.loc = l->loc, .position = POSITION_NONE, .line = ++l->at};
    return 1;
}

static bool list_rewind(void *context)
{
    ((struct list *)context)->at = 0;
    return true;
}

static bool put_list(struct world *w, enum change_kind kind, unsigned count)
{
    struct list list = {.count = count};
    struct entry_stream stream = {&list, list_next, list_rewind, count};
    struct change change = {.kind = kind,
                            .source = "tests",
                            .stream = &stream,
                            .index_name = INDEX,
                            .replace_prefix = ORIGIN "/list-",
                            .max_removed = 1000};
    return apply(w, &change);
}

/* A list that comes and goes: 0 or 40 entries of it are there, whatever happens in between. */
static bool put_and_take_list(void *context)
{
    struct world *w = context;
    return put_list(w, CHANGE_BULK, 40) && put_list(w, CHANGE_REPLACE, 0);
}

static bool site_comes_and_goes(void *context)
{
    struct world *w = context;
    static const char *const cross[] = {"cdn.example.net", NULL};
    struct change add = {.kind = CHANGE_SITE_ADD,
                         .site = {.set = SITE_SET_CROSS_HOSTS,
                                  .origin = "https://other.example",
                                  .cross_hosts = cross}};
    struct change_result result;
    enum catalogue_status status = catalogue_apply(w->c, &add, &result);
    if (status == CATALOGUE_OK)
        w->site = result.id;
    else if (status != CATALOGUE_CONFLICT && !fine(status)) /* its removal was not applied */
        return false;
    struct change index = {.kind = CHANGE_INDEX_ADD, .index_url = "https://other.example/a.xml"};
    status = catalogue_apply(w->c, &index, &result);
    if (status != CATALOGUE_CONFLICT && !fine(status))
        return false;
    struct change update = {.kind = CHANGE_SITE_UPDATE,
                            .site_id = w->site,
                            .site = {.set = SITE_SET_MAX_PAGES, .max_pages = 7}};
    if (!apply(w, &update))
        return false;
    struct change gone = {.kind = CHANGE_SITE_REMOVE, .site_id = w->site, .max_removed = 10};
    return apply(w, &gone);
}

static bool token_comes_and_goes(void *context)
{
    struct world *w = context;
    static const uint8_t sha256[32] = {1};
    struct change_result result;
    struct change add = {.kind = CHANGE_TOKEN_ADD, .token_name = "ci", .token_sha256 = sha256};
    struct change revoke = {.kind = CHANGE_TOKEN_REVOKE, .token_name = "ci"};
    enum catalogue_status status = catalogue_apply(w->c, &add, &result);
    if (status != CATALOGUE_CONFLICT && !fine(status))
        return false;
    return apply(w, &revoke);
}

/* ---- reads */

static bool count_page(void *context, const struct page_record *page, const char *url)
{
    (void)page;
    *(unsigned *)context += strcmp(url, INDEX) == 0;
    return true;
}

static bool count_entry(void *context, const struct entry_record *record)
{
    assert_non_null(record->loc);
    ++*(unsigned *)context;
    return true;
}

static bool read_all(void *context)
{
    struct world *w = context;
    struct catalogue_view *v;
    struct catalogue_revisions revisions;
    struct registry *registry = NULL;
    struct entry_record record;
    unsigned count = 0, pages = 0;
    if (!fine(catalogue_view_begin(w->c, &v)))
        return false;
    bool good = fine(catalogue_view_revisions(v, &revisions)) &&
                fine(catalogue_view_registry(v, &registry));
    registry_unref(registry);
    good = good && fine(catalogue_view_pages_since(v, 0, 0, count_page, &pages));
    struct entry_list list = {.prefix = ORIGIN};
    good = good && fine(catalogue_view_list(v, &list, count_entry, &count));
    list = (struct entry_list){.index_id = 1};
    good = good && fine(catalogue_view_list(v, &list, count_entry, &count));
    memset(&record, 0, sizeof record);
    if (good) {
        assert_int_equal(pages, 1);
        assert_int_equal(count, 2 * revisions.entries);
        good = fine(catalogue_view_entry_by_loc(v, 1, ORIGIN "/kept.xml", &record));
        if (good)
            assert_string_equal(record.loc, ORIGIN "/kept.xml");
        if (good)
            entry_record_done(&record);
    }
    catalogue_view_end(v);
    return good;
}

static bool check_all(void *context)
{
    struct world *w = context;
    uint64_t count = 0;
    bool good = fine(catalogue_check(w->c, tell_problem, NULL, &count));
    assert_int_equal(count, 0);
    return good;
}

static bool back_up(void *context)
{
    struct world *w = context;
    char path[128], why[256] = "";
    snprintf(path, sizeof path, "%s/copy.db", w->folder);
    bool good = fine(catalogue_backup(w->c, path, NULL, NULL, why, sizeof why));
    assert_int_equal(access(path, F_OK) == 0, good);
    unlink(path);
    return good;
}

/* ---- the sweeps */

static struct world *world_make(void)
{
    static struct world w;
    memset(&w, 0, sizeof w);
    /* Thousands of commits: in memory where there is such a folder. */
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(w.folder, sizeof w.folder, "%s/sitemapd-alloc-XXXXXX", base);
    assert_non_null(mkdtemp(w.folder));
    snprintf(w.path, sizeof w.path, "%s/c.db", w.folder);
    return &w;
}

static void world_remove(struct world *w)
{
    char command[96];
    snprintf(command, sizeof command, "rm -rf '%s'", w->folder);
    assert_int_equal(system(command), 0);
}

static void test_open(void **state)
{
    struct world *w = world_make();
    (void)state;
    alloc_sweep("make", make_and_close, w);
    assert_int_equal(open_world(w, true), CATALOGUE_OK);
    catalogue_close(w->c);
    alloc_sweep("open", open_and_close, w);
    world_remove(w);
}

static void fill(struct world *w)
{
    struct change site = {.kind = CHANGE_SITE_ADD, .site = {.origin = ORIGIN}};
    struct change index = {.kind = CHANGE_INDEX_ADD, .index_url = INDEX};
    struct change entry = {.kind = CHANGE_ENTRY_PUT,
                           .source = "tests",
                           .entry = {.loc = ORIGIN "/kept.xml", .position = POSITION_NONE}};
    assert_int_equal(open_world(w, true), CATALOGUE_OK);
    assert_true(apply(w, &site) && apply(w, &index) && apply(w, &entry));
}

static void test_writes(void **state)
{
    static const struct {
        const char *what;
        bool (*run)(void *context);
    } rows[] = {
        {"put", put_one},
        {"list", put_and_take_list},
        {"site", site_comes_and_goes},
        {"token", token_comes_and_goes},
    };
    struct world *w = world_make();
    (void)state;
    fill(w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        alloc_sweep(rows[i].what, rows[i].run, w);
        assert_whole(w);
    }
    assert_true(put_list(w, CHANGE_REPLACE, 0));
    uint64_t before = entries(w);
    for (uint64_t at = 1; at < 400; at += 3) { /* half a list is never there */
        alloc_arm(at, false);
        bool good = put_list(w, CHANGE_BULK, 40);
        alloc_disarm();
        assert_int_equal(entries(w), good ? before + 40 : before);
        assert_true(put_list(w, CHANGE_REPLACE, 0));
    }
    catalogue_close(w->c);
    world_remove(w);
}

static void test_reads(void **state)
{
    struct world *w = world_make();
    (void)state;
    fill(w);
    alloc_sweep("views", read_all, w);
    alloc_sweep("check", check_all, w);
    alloc_sweep("backup", back_up, w);
    catalogue_close(w->c);
    world_remove(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
