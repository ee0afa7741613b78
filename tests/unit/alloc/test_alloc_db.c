/* The catalogue: where memory runs out, within SQLite too, a write is answered NO_MEMORY and
 * nothing of it is there, and the file stays whole. Reads: test_alloc_db_read.c. */
#include "tests/unit/alloc/db_world.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
