/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Urlsets: made, changed, removed; their rows; and the entry that each of their pages is. That each
 * page with rows is an entry of its index with the date of its last change holds at every close
 * (write_fixture.h). */
#include "tests/unit/db/write/write_fixture.h"

#include "server/rules/page/extension.h"

#define URLSET ORIGIN "/shop/products.xml"
#define IMAGE  "<image:image><image:loc>" ORIGIN "/a.png</image:loc></image:image>"

static struct change_result make(struct write_fixture *f, const char *url, unsigned with)
{
    struct change change = {.kind = CHANGE_URLSET_ADD,
                            .urlset_add = {.url = url, .fields = {.with = with}}};
    return apply_plain(f, &change);
}

static struct change row_change(const char *loc, const char *lastmod)
{
    struct change change = put_change(loc, lastmod);
    change.list = LIST_URLSET;
    change.entry.index = URLSET;
    return change;
}

static struct change_result put_row(struct write_fixture *f, const char *loc, const char *lastmod)
{
    struct change change = row_change(loc, lastmod);
    return apply_plain(f, &change);
}

static struct change_result drop_row(struct write_fixture *f, const char *loc)
{
    struct change change = {.kind = CHANGE_ENTRY_REMOVE,
                            .list = LIST_URLSET,
                            .entry_remove = {.loc = loc},
                            .index_name = URLSET};
    return apply_plain(f, &change);
}

static int64_t derived(struct write_fixture *f)
{
    return number_of(f, "SELECT count(*) FROM sitemap WHERE source < 0");
}

/* What lastmod the page's entry has, as Unix time. */
static int64_t date_of(struct write_fixture *f, const char *loc)
{
    return number_of(f,
                     "SELECT coalesce((SELECT strftime('%%s', lastmod) FROM sitemap"
                     " WHERE site > 0 AND loc = %Q), 0)",
                     loc);
}

static void a_page_comes_and_goes_with_its_rows(void **state)
{
    struct write_fixture *f = *state;
    assert_int_equal(make(f, URLSET, 0).status, CATALOGUE_OK);
    assert_int_equal(derived(f), 0);
    fixture_clock = 1789000000;
    struct change_result made = put_row(f, ORIGIN "/shop/a", "2026-01-01");
    assert_int_equal(made.status, CATALOGUE_OK);
    assert_int_equal(made.created, 1);
    assert_int_equal(derived(f), 1);
    assert_int_equal(date_of(f, URLSET), 1789000000);

    fixture_clock = 1789000100; /* the same again changes nothing */
    assert_int_equal(put_row(f, ORIGIN "/shop/a", "2026-01-01").unchanged, 1);
    assert_int_equal(date_of(f, URLSET), 1789000000);
    assert_int_equal(put_row(f, ORIGIN "/shop/a", "2026-01-02").updated, 1);
    assert_int_equal(date_of(f, URLSET), 1789000100);

    assert_int_equal(put_row(f, ORIGIN "/shop/b", NULL).created, 1);
    assert_int_equal(drop_row(f, ORIGIN "/shop/a").removed, 1);
    assert_int_equal(derived(f), 1);
    assert_int_equal(drop_row(f, ORIGIN "/shop/b").removed, 1);
    assert_int_equal(derived(f), 0);
    assert_int_equal(drop_row(f, ORIGIN "/shop/b").status, CATALOGUE_NOT_FOUND);
}

static void what_is_refused(void **state)
{
    struct write_fixture *f = *state;
    static const struct {
        const char *loc, *urlset;
        enum rule_code code;
    } rows[] = {
        {ORIGIN "/shop/a", NULL, RULE_URLSET_NEEDED},
        {ORIGIN "/shop/a", ORIGIN "/no.xml", RULE_URLSET_UNKNOWN},
        {ORIGIN "/shop/a", ORIGIN INDEX, RULE_URLSET_UNKNOWN},
        {ORIGIN "/elsewhere/a", URLSET, RULE_OUTSIDE_DIRECTORY},
        {"https://other.example/shop/a", URLSET, RULE_OUTSIDE_SITE},
        {URLSET, URLSET, RULE_OF_URLSET},
        {ORIGIN "/shop/products-7.xml.gz", URLSET, RULE_OF_URLSET},
    };
    assert_int_equal(make(f, URLSET, EXTENSION_IMAGES).status, CATALOGUE_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct change change = row_change(rows[i].loc, NULL);
        change.entry.index = rows[i].urlset;
        struct change_result result = apply_plain(f, &change);
        assert_int_equal(result.status, CATALOGUE_REFUSED);
        assert_int_equal(result.code, rows[i].code);
    }
    struct change change = row_change(ORIGIN "/shop/a", NULL);
    change.entry.extensions_state = FIELD_SET;
    change.entry.extensions = "<news:news></news:news>";
    struct change_result result = apply_plain(f, &change);
    assert_int_equal(result.code, RULE_EXTENSION_FOREIGN);
    change.entry.extensions = IMAGE;
    assert_int_equal(apply_plain(f, &change).created, 1);

    /* The page's entry is nobody else's. */
    assert_int_equal(put_plain(f, URLSET, NULL).code, RULE_OF_URLSET);
    assert_int_equal(drop(f, URLSET).code, RULE_OF_URLSET);
    assert_int_equal(make(f, URLSET, 0).status, CATALOGUE_CONFLICT);
    assert_int_equal(make(f, ORIGIN "/shop/products-2.xml", 0).code, RULE_INDEX_COVERS_INDEX);
    assert_int_equal(make(f, ORIGIN INDEX, 0).status, CATALOGUE_CONFLICT);
    change = (struct change){
        .kind = CHANGE_INDEX_REMOVE, .index_remove = {.index_id = f->index}, .max_removed = 9};
    result = apply_plain(f, &change);
    assert_int_equal(result.status, CATALOGUE_CONFLICT);
    assert_string_equal(result.conflict, "has-urlsets");
}

/* So many rows of one page weigh as much as it may. */
static void a_page_is_no_longer_than_it_may_be(void **state)
{
    struct write_fixture *f = *state;
    static const char begin[] = "<image:image><image:loc>https://a/",
                      end[] = "</image:loc></image:image>";
    char long_text[16384 + 1];
    memset(long_text, 'x', sizeof long_text);
    memcpy(long_text, begin, sizeof begin - 1);
    memcpy(long_text + sizeof long_text - sizeof end, end, sizeof end);
    assert_int_equal(make(f, URLSET, EXTENSION_IMAGES).status, CATALOGUE_OK);
    struct spool *rows = catalogue_spool(f->c, UINT64_MAX);
    enum { ROWS = 3300 };
    for (int i = 0; i < ROWS; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/shop/%d", i);
        struct entry entry = {.loc = loc,
                              .extensions = long_text,
                              .extensions_state = i < 100 ? FIELD_ABSENT : FIELD_SET,
                              .position = POSITION_NONE};
        if (i < 100)
            entry.extensions = NULL;
        assert_int_equal(spool_add(rows, &entry), SPOOL_OK);
    }
    struct change change = {.kind = CHANGE_BULK,
                            .list = LIST_URLSET,
                            .index_name = URLSET,
                            .source = "tests",
                            .rows = rows};
    struct change_result result = apply_plain(f, &change);
    assert_int_equal(result.created, ROWS);
    assert_int_equal(derived(f), 2);
    assert_true(number_of(f, "SELECT bytes FROM page WHERE index_id = 2 AND number = 1") <=
                LIMIT_PAGE_BYTES);
    /* One that grows where there is no room goes to the next page, and is the same page URL. */
    struct change grown = row_change(ORIGIN "/shop/5", NULL);
    grown.entry.extensions_state = FIELD_SET;
    grown.entry.extensions = long_text;
    assert_int_equal(position_of(f, ORIGIN "/shop/5"), 5);
    assert_int_equal(apply_plain(f, &grown).updated, 1);
    assert_true(position_of(f, ORIGIN "/shop/5") >= 50000);
    assert_int_equal(apply_plain(f, &grown).unchanged, 1);
    /* And one that shrinks stays. */
    grown.entry.extensions_state = FIELD_NULL;
    grown.entry.extensions = NULL;
    assert_int_equal(apply_plain(f, &grown).updated, 1);
}

static void undo(struct write_fixture *f, int64_t revision)
{
    struct change change = {
        .kind = CHANGE_UNDO, .undo = {.revision = (uint64_t)revision}, .max_removed = 99};
    struct change_result result = apply_plain(f, &change);
    if (result.status != CATALOGUE_OK)
        fail_msg("undo of %" PRId64 ": %s", revision, result.detail);
    assert_int_equal(result.rejected, 0);
}

static void undone_rows_leave_an_honest_date(void **state)
{
    struct write_fixture *f = *state;
    f->options.history_keep_ms = 1u << 30;
    f->options.history_max_bytes = 1u << 30;
    fixture_reopen(f);
    assert_int_equal(make(f, URLSET, EXTENSION_IMAGES).status, CATALOGUE_OK);
    fixture_clock = 1789000000;
    struct change change = row_change(ORIGIN "/shop/a", "2026-01-01");
    change.entry.extensions_state = FIELD_SET;
    change.entry.extensions = IMAGE;
    assert_int_equal(apply_plain(f, &change).created, 1);
    int64_t first = revision_of(f);
    fixture_clock = 1789000100;
    change.entry.extensions_state = FIELD_NULL;
    change.entry.extensions = NULL;
    assert_int_equal(apply_plain(f, &change).updated, 1);
    int64_t second = revision_of(f);

    fixture_clock = 1789000200;
    undo(f, second);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE extensions = %Q", IMAGE), 1);
    assert_int_equal(date_of(f, URLSET), 1789000200); /* it changed again, just now */
    fixture_clock = 1789000300;
    undo(f, revision_of(f));
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE extensions = %Q", IMAGE), 0);
    fixture_clock = 1789000400;
    undo(f, revision_of(f));
    undo(f, first);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap"), 0);
    fixture_clock = 1789000500;
    undo(f, revision_of(f));
    assert_int_equal(derived(f), 1);
    assert_int_equal(date_of(f, URLSET), 1789000500);
}

static void a_removed_one_comes_back(void **state)
{
    struct write_fixture *f = *state;
    f->options.history_keep_ms = 1u << 30;
    f->options.history_max_bytes = 1u << 30;
    fixture_reopen(f);
    int64_t id = make(f, URLSET, 0).id;
    assert_int_equal(put_row(f, ORIGIN "/shop/a", NULL).created, 1);
    struct change remove = {.kind = CHANGE_INDEX_REMOVE,
                            .list = LIST_URLSET,
                            .index_remove = {.index_id = id},
                            .max_removed = -1};
    assert_int_equal(apply_plain(f, &remove).code, RULE_SHRINK_GUARD);
    remove.list = LIST_INDEX; /* it is not an index */
    remove.max_removed = 1;
    assert_int_equal(apply_plain(f, &remove).status, CATALOGUE_NOT_FOUND);
    remove.list = LIST_URLSET;
    assert_int_equal(apply_plain(f, &remove).removed, 1);
    assert_int_equal(derived(f), 0);
    assert_int_equal(put_row(f, ORIGIN "/shop/b", NULL).code, RULE_URLSET_UNKNOWN);
    int64_t removal = revision_of(f);
    fixture_clock = fixture_now() + 100; /* the fixture holds the entry's date to its page's */
    undo(f, removal);
    assert_int_equal(derived(f), 1);
    assert_int_equal(put_row(f, ORIGIN "/shop/b", NULL).created, 1);

    /* With its site all of it goes and comes, entries of pages as they were. */
    struct change site = {
        .kind = CHANGE_SITE_REMOVE, .site_remove = {.site_id = f->site}, .max_removed = 9};
    assert_int_equal(apply_plain(f, &site).status, CATALOGUE_OK);
    undo(f, revision_of(f));
    assert_int_equal(put_row(f, ORIGIN "/shop/c", NULL).created, 1);
    assert_int_equal(derived(f), 1);
}

static void it_moves_to_another_index(void **state)
{
    struct write_fixture *f = *state;
    int64_t other = add_index(f, ORIGIN "/shop/index.xml");
    struct change change = {.kind = CHANGE_URLSET_ADD,
                            .urlset_add = {.url = URLSET, .fields = {.index = ORIGIN INDEX}}};
    int64_t id = apply_plain(f, &change).id;
    assert_int_equal(put_row(f, ORIGIN "/shop/a", NULL).created, 1);
    fixture_clock = fixture_now() + 100; /* the page does not change with its move */
    change = (struct change){
        .kind = CHANGE_URLSET_UPDATE,
        .urlset_update = {.index_id = id,
                          .fields = {.set = URLSET_SET_INDEX, .index = ORIGIN "/shop/index.xml"}}};
    assert_int_equal(apply_plain(f, &change).updated, 1);
    assert_int_equal(number_of(f, "SELECT address >> 32 FROM sitemap WHERE source < 0"), other);
    assert_int_equal(apply_plain(f, &change).unchanged, 1);
    /* What is frozen there is frozen here. */
    struct change freeze = {.kind = CHANGE_INDEX_FREEZE,
                            .index_freeze = {.index_id = other, .frozen = true}};
    assert_int_equal(apply_plain(f, &freeze).updated, 1);
    assert_int_equal(put_row(f, ORIGIN "/shop/b", NULL).code, RULE_FROZEN);
}

static void a_full_index_takes_no_row(void **state)
{
    struct write_fixture *f = *state;
    struct change site = {
        .kind = CHANGE_SITE_UPDATE,
        .site_update = {.site_id = f->site, .fields = {.set = SITE_SET_MAX_PAGES, .max_pages = 1}}};
    assert_int_equal(apply_plain(f, &site).status, CATALOGUE_OK);
    assert_int_equal(make(f, URLSET, 0).status, CATALOGUE_OK);
    int64_t second = make(f, ORIGIN "/shop/more.xml", 0).id;
    assert_true(second > 0);
    assert_int_equal(put_row(f, ORIGIN "/shop/a", NULL).created, 1);
    run_sql(f, "UPDATE page SET entries = 50000; UPDATE segment SET entries = 250;"
               "UPDATE catalogue SET revision = revision + 1");
    struct change change = row_change(ORIGIN "/shop/a", NULL);
    change.entry.index = ORIGIN "/shop/more.xml";
    struct change_result result = apply_plain(f, &change);
    assert_int_equal(result.code, RULE_SITE_FULL);
    run_sql(f, "UPDATE page SET entries = 1; UPDATE segment SET entries = 1;"
               "UPDATE catalogue SET revision = revision + 1");
    assert_int_equal(apply_plain(f, &change).created, 1);
}

static void a_registered_sitemap_becomes_one(void **state)
{
    struct write_fixture *f = *state;
    assert_int_equal(put_plain(f, ORIGIN "/shop/other.xml", NULL).created, 1);
    assert_int_equal(put_plain(f, URLSET, "2026-01-01").created, 1);
    assert_int_equal(make(f, URLSET, 0).status, CATALOGUE_OK);
    assert_int_equal(derived(f), 0);
    assert_int_equal(put_row(f, ORIGIN "/shop/a", NULL).created, 1);
    assert_int_equal(derived(f), 1);
    assert_int_equal(number_of(f, "SELECT count(*) FROM sitemap WHERE site > 0"), 2);
    assert_int_equal(position_of(f, URLSET), 1);
}

static int64_t rows_of(struct write_fixture *f)
{
    return number_of(f, "SELECT count(*) FROM sitemap WHERE site < 0");
}

static void put_news(struct write_fixture *f, const char *loc, const char *date)
{
    char text[256];
    snprintf(text, sizeof text,
             "<news:news><news:publication_date>%s</news:publication_date></news:news>", date);
    struct change change = row_change(loc, "2026-09-09");
    change.entry.extensions = text;
    change.entry.extensions_state = FIELD_SET;
    struct change_result result = apply_plain(f, &change);
    assert_int_equal(result.status, CATALOGUE_OK);
}

static void old_news_leave(void **state)
{
    struct write_fixture *f = *state;
    fixture_clock = 1789000000; /* 2026-09-10T00:26:40Z */
    struct change_result made = make(f, URLSET, EXTENSION_NEWS);
    assert_int_equal(
        number_of(f, "SELECT expires_s FROM sitemap_index WHERE id = %d", (int)made.id), 2 * 86400);
    assert_int_equal(put_row(f, ORIGIN "/shop/old", "2026-09-07").code, RULE_EXPIRED);
    put_news(f, ORIGIN "/shop/first", "2026-09-09T00:00:00Z");
    put_news(f, ORIGIN "/shop/second", "2026-09-10T00:00:00Z");
    assert_int_equal(put_row(f, ORIGIN "/shop/undated", NULL).created, 1);

    struct change expire = {.kind = CHANGE_EXPIRE};
    assert_false(apply_plain(f, &expire).changed);
    assert_int_equal(rows_of(f), 3);
    fixture_clock = 1789000000 + 86400;
    assert_int_equal(apply_plain(f, &expire).removed, 1);
    assert_int_equal(date_of(f, URLSET), fixture_clock);
    put_news(f, ORIGIN "/shop/second", "2026-09-11T00:00:00Z"); /* sent again, it stays */
    fixture_clock = 1789000000 + 2 * 86400;
    assert_int_equal(apply_plain(f, &expire).removed, 1);
    assert_int_equal(rows_of(f), 1);
    fixture_clock = 1789000000 + 3 * 86400;
    assert_int_equal(apply_plain(f, &expire).removed, 1);
    assert_int_equal(derived(f), 0);
    assert_int_equal(number_of(f, "SELECT count(*) FROM urlset_age"), 0);

    /* Only an empty one can be set to expire. */
    int64_t other = make(f, ORIGIN "/shop/other.xml", 0).id;
    struct change change = row_change(ORIGIN "/shop/a", NULL);
    change.entry.index = ORIGIN "/shop/other.xml";
    assert_int_equal(apply_plain(f, &change).created, 1);
    change =
        (struct change){.kind = CHANGE_URLSET_UPDATE,
                        .urlset_update = {.index_id = other,
                                          .fields = {.set = URLSET_SET_EXPIRES, .expires_s = 60}}};
    assert_int_equal(apply_plain(f, &change).status, CATALOGUE_CONFLICT);
}

/* As many rows, all of one date, as a site's urlset that expires them after an hour has. */
static int64_t put_to_expire(struct write_fixture *f, const char *origin, int count)
{
    char url[64], loc[64];
    snprintf(url, sizeof url, "%s/expires.xml", origin);
    struct change change = {
        .kind = CHANGE_URLSET_ADD,
        .urlset_add = {.url = url, .fields = {.set = URLSET_SET_EXPIRES, .expires_s = 3600}}};
    int64_t id = apply_plain(f, &change).id;
    struct spool *rows = catalogue_spool(f->c, UINT64_MAX);
    for (int i = 0; i < count; i++) {
        snprintf(loc, sizeof loc, "%s/%d", origin, i);
        struct entry entry = {
            .loc = loc, .lastmod = "2026-09-10T00:26:40Z", .position = POSITION_NONE};
        assert_int_equal(spool_add(rows, &entry), SPOOL_OK);
    }
    change = (struct change){.kind = CHANGE_BULK,
                             .list = LIST_URLSET,
                             .index_name = url,
                             .source = "tests",
                             .rows = rows};
    assert_int_equal(apply_plain(f, &change).created, count);
    return id;
}

/* 2,000 go at a time: a site that has many to lose leaves the next turn to another. */
static void sites_have_turns_to_expire(void **state)
{
    struct write_fixture *f = *state;
    fixture_clock = 1789000000; /* 2026-09-10T00:26:40Z */
    int64_t many = put_to_expire(f, ORIGIN, 7000);
    add_site(f, "https://other.example", LIMIT_SITE_PAGES);
    add_index(f, "https://other.example" INDEX);
    int64_t few = put_to_expire(f, "https://other.example", 10);
    const char *left = "SELECT count(*) FROM sitemap WHERE site = %d";
    struct change expire = {.kind = CHANGE_EXPIRE};

    fixture_clock += 3600;
    assert_int_equal(apply_plain(f, &expire).removed, 2000);
    assert_int_equal(apply_plain(f, &expire).removed, 2000);
    assert_int_equal(number_of(f, left, -(int)few), 0);
    assert_int_equal(number_of(f, left, -(int)many), 3010);
    assert_int_equal(apply_plain(f, &expire).removed, 2000);
    assert_int_equal(apply_plain(f, &expire).removed, 1010);
}

static void a_page_of_news_has_a_thousand(void **state)
{
    struct write_fixture *f = *state;
    assert_int_equal(make(f, URLSET, EXTENSION_NEWS).status, CATALOGUE_OK);
    struct spool *rows = catalogue_spool(f->c, UINT64_MAX);
    for (int i = 0; i < 2500; i++) {
        char loc[64];
        snprintf(loc, sizeof loc, ORIGIN "/shop/%d", i);
        struct entry entry = {.loc = loc, .position = POSITION_NONE};
        assert_int_equal(spool_add(rows, &entry), SPOOL_OK);
    }
    struct change change = {.kind = CHANGE_BULK,
                            .list = LIST_URLSET,
                            .index_name = URLSET,
                            .source = "tests",
                            .rows = rows};
    assert_int_equal(apply_plain(f, &change).created, 2500);
    assert_int_equal(number_of(f, "SELECT max(entries) FROM page WHERE index_id = 2"), 1000);
    assert_int_equal(derived(f), 3);
}

/* Anything, against a naive model of the rows and of when each page changed last. */
#define MODEL_LOCS 40

struct model {
    bool there[MODEL_LOCS];
    char lastmod[MODEL_LOCS][16];
    int64_t changed_at; /* of the one page */
};

static void model_loc(char out[64], int n)
{
    snprintf(out, 64, ORIGIN "/shop/%02d", n);
}

static void model_day(char out[16], unsigned n)
{
    snprintf(out, 16, "2026-01-%02u", n % 4 + 1);
}

/* One list as a replace, or upserted; returns whether a row is another than before. */
static bool model_list(struct write_fixture *f, struct model *m, unsigned *seed, bool replace)
{
    struct spool *rows = catalogue_spool(f->c, UINT64_MAX);
    bool named[MODEL_LOCS] = {false}, differs = false;
    for (int i = 0; i < MODEL_LOCS; i++) {
        char loc[64], day[16];
        if (rand_r(seed) % 3 == 0)
            continue;
        model_loc(loc, i);
        model_day(day, (unsigned)rand_r(seed));
        struct entry entry = {
            .loc = loc, .lastmod = day, .lastmod_state = FIELD_SET, .position = POSITION_NONE};
        assert_int_equal(spool_add(rows, &entry), SPOOL_OK);
        differs |= !m->there[i] || strcmp(m->lastmod[i], day) != 0;
        named[i] = m->there[i] = true;
        snprintf(m->lastmod[i], sizeof m->lastmod[i], "%s", day);
    }
    for (int i = 0; replace && i < MODEL_LOCS; i++) {
        differs |= m->there[i] && !named[i];
        m->there[i] = m->there[i] && named[i];
    }
    struct change change = {.kind = replace ? CHANGE_REPLACE : CHANGE_BULK,
                            .list = LIST_URLSET,
                            .index_name = URLSET,
                            .source = "tests",
                            .max_removed = MODEL_LOCS,
                            .rows = rows};
    struct change_result result = apply_plain(f, &change);
    assert_int_equal(result.status, CATALOGUE_OK);
    assert_int_equal(result.changed, differs);
    return differs;
}

static bool model_single(struct write_fixture *f, struct model *m, unsigned *seed)
{
    int n = (int)(rand_r(seed) % MODEL_LOCS);
    char loc[64], day[16];
    model_loc(loc, n);
    model_day(day, (unsigned)rand_r(seed));
    bool there = m->there[n], same = there && strcmp(m->lastmod[n], day) == 0;
    if (rand_r(seed) % 3 == 0) {
        assert_int_equal(drop_row(f, loc).status, there ? CATALOGUE_OK : CATALOGUE_NOT_FOUND);
        m->there[n] = false;
        return there;
    }
    assert_int_equal(put_row(f, loc, day).changed, !same);
    m->there[n] = true;
    snprintf(m->lastmod[n], sizeof m->lastmod[n], "%s", day);
    return !same;
}

static void model_compare(struct write_fixture *f, const struct model *m)
{
    int64_t count = 0;
    for (int i = 0; i < MODEL_LOCS; i++) {
        char loc[64];
        model_loc(loc, i);
        count += m->there[i];
        assert_int_equal(number_of(f,
                                   "SELECT count(*) FROM sitemap WHERE site < 0 AND loc = %Q"
                                   " AND lastmod = %Q",
                                   loc, m->lastmod[i]),
                         m->there[i]);
    }
    assert_int_equal(rows_of(f), count);
    assert_int_equal(derived(f), count > 0);
    assert_int_equal(date_of(f, URLSET), count > 0 ? m->changed_at : 0);
}

static void whatever_is_done_the_entry_is_honest(void **state)
{
    struct write_fixture *f = *state;
    struct model now = {.changed_at = 0}, before;
    unsigned seed = 20260910;
    f->options.history_keep_ms = 1u << 30;
    f->options.history_max_bytes = 1u << 30;
    fixture_reopen(f);
    assert_int_equal(make(f, URLSET, 0).status, CATALOGUE_OK);
    fixture_clock = 1789000000;
    for (int step = 0; step < 150; step++) {
        before = now;
        fixture_clock += 10;
        unsigned what = (unsigned)rand_r(&seed) % 10;
        bool differs = what < 6   ? model_single(f, &now, &seed)
                       : what < 8 ? model_list(f, &now, &seed, false)
                                  : model_list(f, &now, &seed, true);
        now.changed_at = differs ? fixture_clock : before.changed_at;
        model_compare(f, &now);
        if (!differs || rand_r(&seed) % 4 != 0)
            continue;
        fixture_clock += 10;
        undo(f, revision_of(f));
        now = before;
        now.changed_at = fixture_clock;
        model_compare(f, &now);
    }
    assert_consistent(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
        TEST(a_page_comes_and_goes_with_its_rows),
        TEST(what_is_refused),
        TEST(a_page_is_no_longer_than_it_may_be),
        TEST(undone_rows_leave_an_honest_date),
        TEST(a_removed_one_comes_back),
        TEST(it_moves_to_another_index),
        TEST(a_full_index_takes_no_row),
        TEST(a_registered_sitemap_becomes_one),
        TEST(old_news_leave),
        TEST(sites_have_turns_to_expire),
        TEST(a_page_of_news_has_a_thousand),
        TEST(whatever_is_done_the_entry_is_honest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
