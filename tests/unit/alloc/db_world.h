/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue in a folder of its own, in calls that may run out of memory. */
#pragma once

#include "db/catalogue.h"
#include "tests/unit/alloc/alloc.h"
#include "tests/unit/lib/catalogue_fixture.h"
#include "tests/unit/lib/scratch.h"

#define ORIGIN "https://www.example.com"
#define INDEX  ORIGIN "/sitemap_index.xml"

struct world {
    char folder[64], path[96];
    struct catalogue *c;
    unsigned number; /* makes each loc another one */
    int64_t site;
};

static inline enum catalogue_status open_world(struct world *w, bool server)
{
    char why[256] = "untouched";
    struct catalogue_options options = fixture_options(w->path);
    options.server = server;
    options.history_keep_ms = 3600000;
    options.history_max_bytes = 1 << 20;
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
static inline bool fine(enum catalogue_status status)
{
    if (status != CATALOGUE_OK && status != CATALOGUE_NO_MEMORY)
        fail_msg("%s", catalogue_status_word(status));
    return status == CATALOGUE_OK;
}

static inline uint64_t entries(struct world *w)
{
    return fixture_revisions(w->c).entries;
}

static inline bool apply(struct world *w, const struct change *change)
{
    struct change_result result;
    enum catalogue_status status = catalogue_apply(w->c, change, &result);
    change_result_done(&result);
    if (status == CATALOGUE_UNAVAILABLE)
        print_error("%s\n", result.detail);
    return fine(status);
}

static inline void report_problem(void *context, const char *sentence)
{
    (void)context;
    print_error("%s\n", sentence);
}

static inline struct world *world_make(void)
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

static inline void world_remove(struct world *w)
{
    scratch_remove(w->folder);
}

static inline void fill(struct world *w)
{
    struct change site = {.kind = CHANGE_SITE_ADD, .site_add = {.origin = ORIGIN}};
    struct change index = {.kind = CHANGE_INDEX_ADD, .index_add = {.url = INDEX}};
    struct change entry = {.kind = CHANGE_ENTRY_PUT,
                           .source = "tests",
                           .entry = {.loc = ORIGIN "/kept.xml", .position = POSITION_NONE}};
    assert_int_equal(open_world(w, true), CATALOGUE_OK);
    assert_true(apply(w, &site) && apply(w, &index) && apply(w, &entry));
}
