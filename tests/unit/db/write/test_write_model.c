/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Random changes, against a model so simple that it is evidently right: after each the catalogue
 * must hold the same entries at the same positions. The seed is printed, and SITEMAPD_SEED sets
 * it. */
#include <time.h>

#include "tests/unit/db/write/write_stream.h"

#define INDEXES 3
#define LOCS    60
#define STEPS   3000
#define NOWHERE UINT32_MAX

struct model_entry {
    int index; /* -1: not registered */
    uint32_t position;
    int lastmod; /* day of month, 0: none */
    int digest;  /* 0: none */
    int source;
};

struct model {
    struct model_entry entries[LOCS];
    uint64_t random;
};

static const char *const index_paths[INDEXES] = {ORIGIN "/index.xml", ORIGIN "/m/index.xml",
                                                 ORIGIN "/m/n/index.xml"};
static const char *const sources[] = {"one", "two"};
static char locs[LOCS][64];
static char lastmods[32][16], digests[8][8];

static uint32_t roll(struct model *m, uint32_t sides)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 20) % sides);
}

static uint32_t lowest_free(const struct model *m, int index)
{
    for (uint32_t position = 0;; position++) {
        bool taken = false;
        for (int i = 0; i < LOCS; i++)
            taken |= m->entries[i].index == index && m->entries[i].position == position;
        if (!taken)
            return position;
    }
}

static bool is_free(const struct model *m, int index, uint32_t position)
{
    for (int i = 0; i < LOCS; i++)
        if (m->entries[i].index == index && m->entries[i].position == position)
            return false;
    return true;
}

/* One upsert, as the rules say it. 0 unchanged, 1 updated (or moved), 2 created. */
static int model_put(struct model *m, int loc, int index, enum field_state lastmod_state,
                     int lastmod, enum field_state digest_state, int digest, int source,
                     uint32_t wanted)
{
    struct model_entry *e = &m->entries[loc], old = *e;
    bool is_new = e->index < 0,
         same_digest = digest_state == FIELD_SET && digest == e->digest && e->lastmod != 0;
    if (is_new)
        *e = (struct model_entry){.index = -1, .source = source};
    if (is_new)
        same_digest = false;
    if (digest_state != FIELD_ABSENT)
        e->digest = digest_state == FIELD_SET ? digest : 0;
    if (lastmod_state != FIELD_ABSENT && !same_digest)
        e->lastmod = lastmod_state == FIELD_SET ? lastmod : 0;
    if (!is_new && (index < 0 || index == e->index))
        return e->lastmod != old.lastmod || e->digest != old.digest;
    e->index = -1;
    if (index < 0)
        index = 2; /* the deepest: every loc lies in /m/n/ */
    bool honoured = wanted != NOWHERE && is_free(m, index, wanted);
    e->position = honoured ? wanted : lowest_free(m, index);
    e->index = index;
    return is_new ? 2 : 1;
}

struct random_line {
    int loc, index;
    enum field_state lastmod_state, digest_state;
    int lastmod, digest;
    uint32_t wanted;
};

static struct random_line random_line(struct model *m)
{
    struct random_line line = {.loc = (int)roll(m, LOCS),
                               .index = (int)roll(m, INDEXES + 3) - 3,
                               .lastmod_state = (enum field_state)roll(m, 3),
                               .digest_state = (enum field_state)roll(m, 3),
                               .lastmod = (int)roll(m, 28) + 1,
                               .digest = (int)roll(m, 3) + 1,
                               .wanted = roll(m, 4) == 0 ? roll(m, 80) : NOWHERE};
    if (line.index < 0)
        line.index = -1;
    return line;
}

static void line_entry(const struct random_line *line, struct entry *out)
{
    out->loc = locs[line->loc];
    out->index = line->index >= 0 ? index_paths[line->index] : NULL;
    out->lastmod_state = line->lastmod_state;
    out->lastmod = line->lastmod_state == FIELD_SET ? lastmods[line->lastmod] : NULL;
    out->digest_state = line->digest_state;
    out->digest = line->digest_state == FIELD_SET ? digests[line->digest] : NULL;
    out->position = line->wanted;
}

static int model_line(struct model *m, const struct random_line *line, int source)
{
    return model_put(m, line->loc, line->index, line->lastmod_state, line->lastmod,
                     line->digest_state, line->digest, source, line->wanted);
}

static void make_random(void *context, uint64_t n, struct entry *out, char *text)
{
    (void)text;
    line_entry(&((const struct random_line *)context)[n], out);
}

/* ---- the changes */

static void step_put(struct write_fixture *f, struct model *m)
{
    struct random_line line = random_line(m);
    int source = (int)roll(m, 2);
    struct change change = put_change(NULL, NULL);
    change.source = sources[source];
    line_entry(&line, &change.entry);
    struct change_result r = apply_plain(f, &change);
    assert_int_equal(r.status, CATALOGUE_OK);
    int outcome = model_line(m, &line, source);
    assert_int_equal(r.created, outcome == 2);
    assert_int_equal(r.updated, outcome == 1);
    assert_int_equal(r.unchanged, outcome == 0);
    assert_int_equal(r.changed, outcome != 0);
}

static void step_remove(struct write_fixture *f, struct model *m)
{
    int loc = (int)roll(m, LOCS);
    bool there = m->entries[loc].index >= 0;
    assert_int_equal(drop(f, locs[loc]).status, there ? CATALOGUE_OK : CATALOGUE_NOT_FOUND);
    m->entries[loc].index = -1;
}

static void step_bulk(struct write_fixture *f, struct model *m)
{
    struct random_line lines[40];
    int source = (int)roll(m, 2);
    uint64_t counts[3] = {0};
    struct test_stream s = {.make = make_random, .context = lines, .count = roll(m, 40)};
    /* What the guard makes of moves: test_write_moves.c. */
    struct change change = {
        .kind = CHANGE_BULK, .source = sources[source], .max_removed = INT64_MAX};
    struct model before = *m;
    change.dry_run = roll(m, 4) == 0;
    for (uint64_t i = 0; i < s.count; i++)
        lines[i] = random_line(m);
    for (uint64_t i = 0; i < s.count; i++)
        counts[model_line(m, &lines[i], source)]++;
    struct change_result r = apply_stream(f, change, &s);
    assert_int_equal(r.status, CATALOGUE_OK);
    assert_int_equal(r.unchanged, counts[0]);
    assert_int_equal(r.updated, counts[1]);
    assert_int_equal(r.created, counts[2]);
    if (change.dry_run) {
        uint64_t random = m->random;
        *m = before;
        m->random = random;
    }
}

/* No wanted positions here: their model would be the code again. */
static void step_replace(struct write_fixture *f, struct model *m)
{
    struct random_line lines[LOCS];
    bool named[LOCS] = {false};
    int index = (int)roll(m, INDEXES), source = (int)roll(m, 2);
    bool by_source = roll(m, 2) == 0;
    struct test_stream s = {.make = make_random, .context = lines};
    for (int loc = 0; loc < LOCS; loc++) {
        if (roll(m, 2) == 0)
            continue;
        lines[s.count] = random_line(m);
        lines[s.count].loc = loc;
        lines[s.count].wanted = NOWHERE;
        lines[s.count++].index = -1;
        named[loc] = true;
    }
    struct change change = {.kind = CHANGE_REPLACE,
                            .index_name = index_paths[index],
                            .source = sources[source],
                            .replace = {.source = by_source ? sources[source] : NULL},
                            .skip = true,
                            .max_removed = LOCS};
    struct change_result r = apply_stream(f, change, &s);
    assert_int_equal(r.status, CATALOGUE_OK);
    uint64_t removed = 0, rejected = 0, counts[3] = {0};
    for (int loc = 0; loc < LOCS; loc++) {
        struct model_entry *e = &m->entries[loc];
        if (named[loc] || e->index != index || (by_source && e->source != source))
            continue;
        e->index = -1;
        removed++;
    }
    for (uint64_t i = 0; i < s.count; i++) {
        struct model_entry *e = &m->entries[lines[i].loc], old = *e;
        lines[i].index = index;
        if (by_source && e->index >= 0 && e->source != source) {
            bool same = model_line(m, &lines[i], source) == 0 && old.index == index;
            *e = old;
            counts[0] += same;
            rejected += !same;
            continue;
        }
        counts[model_line(m, &lines[i], source)]++;
    }
    assert_int_equal(r.removed, removed);
    assert_int_equal(r.rejected, rejected);
    assert_int_equal(r.unchanged, counts[0]);
    assert_int_equal(r.updated, counts[1]);
    assert_int_equal(r.created, counts[2]);
}

static void step_index(struct write_fixture *f, struct model *m)
{
    int index = (int)roll(m, INDEXES - 1); /* the deepest stays: the model places there */
    struct change change = {
        .kind = CHANGE_INDEX_REMOVE,
        .index_remove = {.index_id = number_of(f,
                                               "SELECT id FROM sitemap_index WHERE removed = 0"
                                               " AND '" ORIGIN "' || path = %Q",
                                               index_paths[index])},
        .max_removed = LOCS};
    assert_int_equal(apply_plain(f, &change).status, CATALOGUE_OK);
    for (int loc = 0; loc < LOCS; loc++)
        if (m->entries[loc].index == index)
            m->entries[loc].index = -1;
    add_index(f, index_paths[index]);
    if (roll(m, 2) == 0) {
        struct change purge = {.kind = CHANGE_PURGE};
        apply_plain(f, &purge);
    }
}

static void compare(struct write_fixture *f, const struct model *m, int step)
{
    sqlite3_stmt *row = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(f->db,
                           "SELECT '" ORIGIN "' || i.path, e.address & 4294967295,"
                           " coalesce(e.lastmod, ''), coalesce(e.digest, ''), s.name FROM sitemap"
                           " AS e JOIN sitemap_index AS i ON i.id = e.address >> 32 AND"
                           " i.removed = 0 JOIN source AS s ON s.id = e.source WHERE e.loc = ?1",
                           -1, &row, NULL),
        SQLITE_OK);
    for (int loc = 0; loc < LOCS; loc++) {
        const struct model_entry *e = &m->entries[loc];
        sqlite3_bind_text(row, 1, locs[loc], -1, SQLITE_STATIC);
        bool found = sqlite3_step(row) == SQLITE_ROW;
        bool same = found == (e->index >= 0);
        if (same && found)
            same = strcmp((const char *)sqlite3_column_text(row, 0), index_paths[e->index]) == 0 &&
                   sqlite3_column_int64(row, 1) == e->position &&
                   strcmp((const char *)sqlite3_column_text(row, 2),
                          e->lastmod ? lastmods[e->lastmod] : "") == 0 &&
                   strcmp((const char *)sqlite3_column_text(row, 3),
                          e->digest ? digests[e->digest] : "") == 0 &&
                   strcmp((const char *)sqlite3_column_text(row, 4), sources[e->source]) == 0;
        if (!same)
            fail_msg("step %d: %s differs", step, locs[loc]);
        sqlite3_reset(row);
    }
    sqlite3_finalize(row);
}

static void agrees_with_the_model(void **state)
{
    struct write_fixture f;
    struct model m;
    const char *seed = getenv("SITEMAPD_SEED");
    memset(&m, 0, sizeof m);
    m.random = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) * 2654435761u + 1;
    print_message("SITEMAPD_SEED=%" PRIu64 "\n", m.random);
    for (int i = 0; i < LOCS; i++) {
        snprintf(locs[i], sizeof locs[i], ORIGIN "/m/n/%d.xml", i);
        m.entries[i].index = -1;
    }
    for (int i = 1; i < 32; i++)
        snprintf(lastmods[i], sizeof lastmods[i], "2026-01-%02d", i);
    for (int i = 1; i < 8; i++)
        snprintf(digests[i], sizeof digests[i], "d%d", i);

    fixture_open_bare(&f);
    add_site(&f, ORIGIN, LIMIT_SITE_PAGES);
    for (int i = 0; i < INDEXES; i++)
        add_index(&f, index_paths[i]);
    run_sql(&f, "PRAGMA synchronous=OFF");
    for (int step = 0; step < STEPS; step++) {
        uint32_t die = roll(&m, 100);
        int64_t revision = revision_of(&f);
        if (die < 55)
            step_put(&f, &m);
        else if (die < 80)
            step_remove(&f, &m);
        else if (die < 89)
            step_bulk(&f, &m);
        else if (die < 96)
            step_replace(&f, &m);
        else if (die < 98)
            step_index(&f, &m);
        else
            fixture_reopen(&f);
        compare(&f, &m, step);
        assert_true(revision_of(&f) <= revision + 2);
        if (step % 200 == 199)
            assert_consistent(&f);
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_model)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
