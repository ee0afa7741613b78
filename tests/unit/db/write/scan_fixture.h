/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Scans of a directory source for tests: files as rows of a literal table, made into a stream. */
#pragma once

#include "tests/unit/db/write/write_stream.h"

#define SOURCE "products"
#define ROOT   ORIGIN "/s/"

struct scan_files {
    const struct source_file *files; /* loc NULL: made of the path */
    uint64_t count;
};

static inline struct spool *files_rows(const struct scan_files *s)
{
    struct spool *rows = spool_new(scratch_folder(), UINT64_MAX);
    for (uint64_t i = 0; i < s->count; i++) {
        struct source_file file = s->files[i];
        char loc[LOC_MAX_CHARS + 1];
        snprintf(loc, sizeof loc, ROOT "%s", file.path);
        if (!file.loc)
            file.loc = loc;
        assert_int_equal(spool_add_file(rows, &file), SPOOL_OK);
    }
    return rows;
}

static const struct change scan_change = {
    .kind = CHANGE_SCAN, .source = SOURCE, .index_name = INDEX, .max_removed = MAX_REMOVED_GUARDED};

static inline struct change_result apply_files(struct write_fixture *f, struct change change,
                                               const struct scan_files *s)
{
    change.rows = files_rows(s);
    return apply(f, &change);
}

static inline struct change_result scan(struct write_fixture *f, const struct source_file *files,
                                        size_t count)
{
    return apply_files(f, scan_change, &(struct scan_files){.files = files, .count = count});
}

#define FILES(files) (files), sizeof(files) / sizeof *(files)
/* One file, as a scan of its own. */
#define SCAN_ONE(f, ...) scan((f), &(const struct source_file){__VA_ARGS__}, 1)

/* What is reported of one scan. */
struct scan_report {
    uint32_t rejections;
    uint64_t row;
    enum rule_code code;
    char detail[256];
};

static inline struct change_result scan_reporting(struct write_fixture *f, struct change change,
                                                  const struct source_file *files, size_t count,
                                                  struct scan_report *report)
{
    memset(report, 0, sizeof *report);
    change.max_findings = UINT32_MAX;
    struct change_result r =
        apply_files(f, change, &(struct scan_files){.files = files, .count = count});
    for (uint32_t i = 0; i < r.findings.count; i++) {
        const struct finding *item = &r.findings.items[i];
        if (item->code == RULE_OK || !item->detail)
            continue;
        report->rejections++;
        report->row = item->line;
        report->code = item->code;
        snprintf(report->detail, sizeof report->detail, "%s", item->detail);
    }
    change_result_done(&r);
    return r;
}

/* `count` good files, "<folder>/<n>.xml" from `first` on; freed with free_files. */
static inline struct source_file *make_files(const char *folder, size_t first, size_t count)
{
    struct source_file *files = calloc(count, sizeof *files);
    assert_non_null(files);
    for (size_t i = 0; i < count; i++) {
        char *path = NULL;
        assert_true(asprintf(&path, "%s/%zu.xml", folder, first + i) > 0);
        files[i] = (struct source_file){.path = path,
                                        .inode = first + i + 1,
                                        .size = 1000,
                                        .mtime_ns = 1700000000000000000,
                                        .hash = {first + i + 1, 7},
                                        .lastmod = "2026-01-01T00:00:00Z",
                                        .urls = 10,
                                        .bytes = 900};
    }
    return files;
}

static inline void free_files(struct source_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)files[i].path);
    free(files);
}

static inline void set_state(struct source_file *files, size_t count, enum source_file_state state)
{
    for (size_t i = 0; i < count; i++)
        files[i].state = state;
}

static inline struct source_state state_of(struct write_fixture *f)
{
    struct catalogue_view *v;
    struct source_state state;
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_source_state(v, SOURCE, &state), CATALOGUE_OK);
    catalogue_view_end(v);
    return state;
}

/* A kept file, its strings copied. */
struct kept_file {
    bool found;
    struct source_file file; /* its strings are not to be used */
    char loc[256], lastmod[64], newest[64], problem[64], detail[256];
};

static inline void keep_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "-");
}

static inline struct kept_file kept(struct write_fixture *f, const char *path)
{
    struct catalogue_view *v;
    struct kept_file k = {0};
    assert_int_equal(catalogue_view_begin(f->c, &v), CATALOGUE_OK);
    assert_int_equal(catalogue_view_source_file(v, SOURCE, path, &k.file, &k.found), CATALOGUE_OK);
    if (k.found) {
        assert_string_equal(k.file.path, path);
        keep_text(k.loc, sizeof k.loc, k.file.loc);
        keep_text(k.lastmod, sizeof k.lastmod, k.file.lastmod);
        keep_text(k.newest, sizeof k.newest, k.file.newest_lastmod);
        keep_text(k.problem, sizeof k.problem, k.file.problem);
        keep_text(k.detail, sizeof k.detail, k.file.detail);
    }
    catalogue_view_end(v);
    return k;
}

/* How many live entries there are. */
static inline int64_t entry_count(struct write_fixture *f)
{
    return number_of(f, "SELECT count(*) FROM sitemap AS e JOIN sitemap_index AS i"
                        " ON i.id = e.address >> 32 AND i.removed = 0");
}

/* The lastmod of an entry equals `lastmod` (NULL: it has none). */
static inline void assert_lastmod(struct write_fixture *f, const char *loc, const char *lastmod)
{
    if (number_of(f, "SELECT count(*) FROM sitemap WHERE loc = %Q AND lastmod IS %Q", loc,
                  lastmod) != 1)
        fail_msg("%s: is not there, or not of %s", loc, lastmod ? lastmod : "no date");
}

/* ---- each test on a catalogue of its own */

static inline int open_it(void **state)
{
    static struct write_fixture f;
    fixture_open(&f);
    *state = &f;
    return 0;
}

static inline int close_it(void **state)
{
    fixture_close(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_it, close_it)
