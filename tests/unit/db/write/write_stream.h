/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lists for tests of bulk and replace: from an array, or made by a function. */
#pragma once

#include <dirent.h>

#include "tests/unit/db/write/write_fixture.h"

struct test_stream {
    /* Fills entry `n` (from 0); `text` is room for its loc. */
    void (*make)(void *context, uint64_t n, struct entry *out, char *text);
    void *context;
    uint64_t count;
};

static inline struct spool *rows_of(const struct test_stream *s)
{
    struct spool *rows = spool_new(scratch_folder(), UINT64_MAX);
    char text[LOC_MAX_CHARS + 1];
    for (uint64_t n = 0; n < s->count; n++) {
        struct entry entry = {.position = POSITION_NONE, .line = n + 1};
        s->make(s->context, n, &entry, text);
        assert_int_equal(spool_add(rows, &entry), SPOOL_OK);
    }
    return rows;
}

/* Cuts the nameless files that are open: what follows cannot be read. */
static inline void cut_spools(off_t bytes)
{
    DIR *all = opendir("/proc/self/fd");
    unsigned cut = 0;
    for (const struct dirent *each; (each = readdir(all)) != NULL;) {
        char name[300], link[300] = "";
        snprintf(name, sizeof name, "/proc/self/fd/%s", each->d_name);
        if (readlink(name, link, sizeof link - 1) > 0 && strstr(link, scratch_folder()) == link &&
            strstr(link, "(deleted)") != NULL)
            cut += ftruncate(atoi(each->d_name), bytes) == 0;
    }
    closedir(all);
    assert_int_equal(cut, 1);
}

/* Called on the writer's thread for each entry that it makes from now on, counted from 0, until
 * another one is set or the catalogue is opened again. */
static void (*on_row)(void *context, uint64_t n);
static void *on_row_context;
static uint64_t on_row_count;

static inline void record_row(void *context, int what, const char *database, const char *table,
                              sqlite3_int64 address)
{
    (void)context, (void)database, (void)address;
    if (what == SQLITE_INSERT && strcmp(table, "sitemap") == 0 && on_row)
        on_row(on_row_context, on_row_count++);
}

static inline int watch_connection(sqlite3 *db, char **error, const void *api)
{
    (void)error, (void)api;
    sqlite3_update_hook(db, record_row, NULL);
    return SQLITE_OK;
}

/* The catalogue's connections are opened again for it. */
static inline void watch_rows(struct write_fixture *f, void (*hook)(void *, uint64_t),
                              void *context)
{
    on_row = NULL;
    sqlite3_auto_extension((void (*)(void))watch_connection);
    fixture_reopen(f);
    sqlite3_cancel_auto_extension((void (*)(void))watch_connection);
    on_row_count = 0;
    on_row_context = context;
    on_row = hook;
}

/* One line of a literal list; a zero position means none, since literals leave it out: use `at`. */
struct line {
    const char *loc, *lastmod;
    uint32_t at; /* position + 1; 0: none */
    const char *index;
};

static inline void make_line(void *context, uint64_t n, struct entry *out, char *text)
{
    const struct line *line = &((const struct line *)context)[n];
    (void)text;
    out->loc = line->loc;
    out->lastmod = line->lastmod;
    out->lastmod_state = line->lastmod ? FIELD_SET : FIELD_ABSENT;
    out->index = line->index;
    if (line->at > 0)
        out->position = line->at - 1;
}

/* ORIGIN/<context>/<n>.xml */
static inline void make_numbered(void *context, uint64_t n, struct entry *out, char *text)
{
    snprintf(text, LOC_MAX_CHARS + 1, ORIGIN "/%s/%" PRIu64 ".xml", (const char *)context, n);
    out->loc = text;
}

static inline struct change_result apply_stream(struct write_fixture *f, struct change change,
                                                struct test_stream *s)
{
    change.rows = rows_of(s);
    if (!change.source)
        change.source = "tests";
    return apply(f, &change);
}

static inline struct change_result apply_lines(struct write_fixture *f, struct change change,
                                               const struct line *lines, size_t count)
{
    struct test_stream s = {.make = make_line, .context = (void *)lines, .count = count};
    return apply_stream(f, change, &s);
}

#define LINES(lines) (lines), sizeof(lines) / sizeof *(lines)

static inline struct change_result bulk_numbered(struct write_fixture *f, const char *folder,
                                                 uint64_t count)
{
    struct test_stream s = {.make = make_numbered, .context = (void *)folder, .count = count};
    return apply_stream(f, (struct change){.kind = CHANGE_BULK}, &s);
}
