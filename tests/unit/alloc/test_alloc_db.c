/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The catalogue: where memory runs out, within SQLite too, a write is answered NO_MEMORY and
 * nothing of it is there, and the file stays whole. Reads: test_alloc_db_read.c. */
#include "server/rules/page/extension.h"
#include "tests/unit/alloc/db_world.h"

#include <sqlite3.h>

#include "tests/unit/lib/scratch.h"

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

static bool put_list(struct world *w, enum change_kind kind, unsigned count)
{
    enum spool_status spooled = SPOOL_OK;
    struct change change = {.kind = kind,
                            .source = "tests",
                            .rows = catalogue_spool(w->c, UINT64_MAX),
                            .index_name = INDEX,
                            .max_removed = 1000};
    if (kind == CHANGE_REPLACE)
        change.replace = (struct change_replace){.prefix = ORIGIN "/list-"};
    for (unsigned i = 0; change.rows && spooled == SPOOL_OK && i < count; i++) {
        char loc[120];
        snprintf(loc, sizeof loc, ORIGIN "/list-%u.xml", i);
        spooled = spool_add(change.rows,
                            &(struct entry){.loc = loc, .position = POSITION_NONE, .line = i + 1});
    }
    if (change.rows && spooled == SPOOL_OK)
        return apply(w, &change);
    spool_free(change.rows);
    return false;
}

/* A list that comes and goes: 0 or 40 entries of it are there, whatever happens in between. */
static bool put_and_take_list(void *context)
{
    struct world *w = context;
    return put_list(w, CHANGE_BULK, 40) && put_list(w, CHANGE_REPLACE, 0);
}

/* Dry runs return all their rows or are answered NO_MEMORY, and write nothing. */
static bool try_to_remove(void *context)
{
    struct world *w = context;
    struct change removal = {.kind = CHANGE_INDEX_REMOVE,
                             .index_remove = {.index_id = 1},
                             .max_removed = 1000000,
                             .dry_run = true,
                             .wants_preview = true};
    struct change list = {.kind = CHANGE_BULK,
                          .source = "tests",
                          .rows = catalogue_spool(w->c, UINT64_MAX),
                          .index_name = INDEX,
                          .dry_run = true,
                          .wants_preview = true};
    struct entry entry = {.loc = ORIGIN "/tried.xml", .position = POSITION_NONE, .line = 1};
    struct change_result result;
    bool spooled = list.rows && spool_add(list.rows, &entry) == SPOOL_OK;
    enum catalogue_status status = CATALOGUE_NO_MEMORY;
    if (spooled) {
        status = catalogue_apply(w->c, &list, &result);
        assert_true(status != CATALOGUE_OK ||
                    (result.preview_count == 1 && result.preview->after.loc));
        change_result_done(&result);
    } else {
        spool_free(list.rows);
    }
    if (!fine(status))
        return false;
    status = catalogue_apply(w->c, &removal, &result);
    assert_true(status != CATALOGUE_OK ||
                result.preview_count ==
                    (result.removed < CHANGE_PREVIEW_ROWS ? result.removed : CHANGE_PREVIEW_ROWS));
    change_result_done(&result);
    return fine(status);
}

static bool site_comes_and_goes(void *context)
{
    struct world *w = context;
    static const char *const cross[] = {"cdn.example.net", NULL};
    struct change add = {.kind = CHANGE_SITE_ADD,
                         .site_add = {.fields = {.set = SITE_SET_CROSS_HOSTS, .cross_hosts = cross},
                                      .origin = "https://other.example"}};
    struct change_result result;
    enum catalogue_status status = catalogue_apply(w->c, &add, &result);
    if (status == CATALOGUE_OK)
        w->site = result.id;
    else if (status != CATALOGUE_CONFLICT && !fine(status)) /* its removal was not applied */
        return false;
    struct change index = {.kind = CHANGE_INDEX_ADD,
                           .index_add = {.url = "https://other.example/a.xml"}};
    status = catalogue_apply(w->c, &index, &result);
    if (status != CATALOGUE_CONFLICT && !fine(status))
        return false;
    struct change update = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = w->site, .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 7}}};
    if (!apply(w, &update))
        return false;
    struct change gone = {
        .kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = w->site}, .max_removed = 10};
    return apply(w, &gone);
}

/* With a row that has an extension, and the entry of its page. */
static bool urlset_comes_and_goes(void *context)
{
    struct world *w = context;
    static const char urlset[] = ORIGIN "/pages.xml";
    struct change_result result;
    struct change add = {.kind = CHANGE_URLSET_ADD,
                         .urlset_add = {.url = urlset, .fields = {.with = EXTENSION_IMAGES}}};
    enum catalogue_status status = catalogue_apply(w->c, &add, &result);
    if (status == CATALOGUE_OK)
        w->site = result.id;
    change_result_done(&result);
    if (status != CATALOGUE_CONFLICT && !fine(status))
        return false;
    struct change row = {.kind = CHANGE_ENTRY_PUT,
                         .list = LIST_URLSET,
                         .source = "tests",
                         .entry = {.loc = ORIGIN "/page",
                                   .index = urlset,
                                   .extensions_state = FIELD_SET,
                                   .extensions = "<image:image><image:loc>" ORIGIN
                                                 "/a.png</image:loc></image:image>",
                                   .position = POSITION_NONE}};
    if (!apply(w, &row))
        return false;
    struct change gone = {.kind = CHANGE_INDEX_REMOVE,
                          .list = LIST_URLSET,
                          .index_remove = {.index_id = w->site},
                          .max_removed = 10};
    return apply(w, &gone);
}

static bool token_comes_and_goes(void *context)
{
    struct world *w = context;
    static const uint8_t sha256[32] = {1};
    struct change_result result;
    struct change add = {
        .kind = CHANGE_TOKEN_ADD,
        .token_add = {.grant = {.name = "ci", .role = GRANT_ADMIN}, .sha256 = sha256}};
    struct change revoke = {.kind = CHANGE_TOKEN_REVOKE, .token_revoke = {.name = "ci"}};
    enum catalogue_status status = catalogue_apply(w->c, &add, &result);
    if (status != CATALOGUE_CONFLICT && !fine(status))
        return false;
    return apply(w, &revoke);
}

static bool spool_many(void *context)
{
    (void)context;
    struct spool *s = spool_new(scratch_folder(), 1 << 24);
    if (s == NULL)
        return false;
    uint64_t added = 0;
    enum spool_status status = SPOOL_OK;
    char loc[200];
    for (int i = 0; i < 2000 && status == SPOOL_OK; i++) { /* more than memory takes */
        snprintf(loc, sizeof loc, "https://www.example.com/%0120d.xml", i);
        struct entry entry = {.loc = loc, .line = (uint64_t)i + 1};
        status = spool_add(s, &entry);
        added += status == SPOOL_OK;
    }
    assert_int_equal(spool_count(s), added);
    if (status == SPOOL_OK) {
        struct entry entry;
        uint64_t read = 0;
        while (spool_next(s, &entry) == 1)
            assert_int_equal(entry.line, ++read);
        assert_int_equal(read, 2000);
    } else {
        assert_int_equal(status, SPOOL_NO_MEMORY);
    }
    spool_free(s);
    return status == SPOOL_OK;
}

static void test_spool(void **state)
{
    alloc_sweep("spool", spool_many, NULL);
}

static void test_open(void **state)
{
    struct world *w = world_make();
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
        {"dry run", try_to_remove},
        {"site", site_comes_and_goes},
        {"urlset", urlset_comes_and_goes},
        {"token", token_comes_and_goes},
    };
    struct world *w = world_make();
    fill(w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        alloc_sweep(rows[i].what, rows[i].run, w);
        fixture_assert_sound(w->c);
    }
    assert_true(put_list(w, CHANGE_REPLACE, 0));
    uint64_t before = entries(w);
    catalogue_close(w->c);
    /* Half a list is never there, nor without its line in the history. What records it grows with a
     * writer's first changes: each of these has a new one. */
    uint64_t failed = 1;
    for (uint64_t at = 1; failed > 0; at += 3) {
        assert_int_equal(open_world(w, true), CATALOGUE_OK);
        alloc_arm(at, false);
        bool good = put_list(w, CHANGE_BULK, 40);
        failed = alloc_disarm();
        assert_int_equal(entries(w), good ? before + 40 : before);
        assert_true(put_list(w, CHANGE_REPLACE, 0));
        catalogue_close(w->c);
    }
    world_remove(w);
}

int main(void)
{
    /* Each of the engine's allocations may fail, not only those too large for a connection's own.
     */
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_spool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
