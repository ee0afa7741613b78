/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A folder, a catalogue with a site and an index, and a source between them. */
#pragma once

#include "tests/unit/sources/folder.h"

#include "server/rules/lastmod.h"
#include "server/sources/folder/folder.h"
#include "tests/unit/lib/catalogue_fixture.h"

#define ORIGIN "https://www.example.com"
#define INDEX  "/sitemap_index.xml"
#define DAY    86400

struct world {
    struct temp_folder folder;
    char database[128];
    struct catalogue *c;
    struct source_settings settings;
    struct folder place;
    bool alone; /* as the command line */
    bool dry_run;
    uint64_t max_files, max_names; /* 0: no bound */
    int64_t site_id;               /* of the token that made the source; 0: the configuration did */
    int64_t max_removed;
    struct scan_outcome out; /* of the last scan */
    char told[8192];         /* "what path\n" for each */
    char still[8192];        /* "path problem\n" for each */
};

static inline void world_open(struct world *w, uint32_t shrink_percent)
{
    memset(w, 0, sizeof *w);
    folder_make(&w->folder);
    snprintf(w->database, sizeof w->database, "%s/c.db", w->folder.outside);
    struct catalogue_options options = fixture_options(w->database);
    options.shrink_percent = shrink_percent;
    w->c = fixture_catalogue(&options);
    fixture_add_site(w->c, ORIGIN, INDEX);
    w->max_removed = MAX_REMOVED_GUARDED;
    w->settings = (struct source_settings){
        .name = "products",
        .directory = w->folder.path,
        .url = ORIGIN "/s/",
        .index = INDEX,
        .settle_ms = 1000,
    };
}

static inline void world_close(struct world *w)
{
    catalogue_close(w->c);
    folder_done(&w->place);
    folder_remove(&w->folder);
}

/* A test's, whose state it is. */
static inline int world_setup(void **state)
{
    *state = malloc(sizeof(struct world));
    world_open(*state, 30);
    return 0;
}

static inline int world_teardown(void **state)
{
    world_close(*state);
    free(*state);
    return 0;
}

static inline void world_report(void *context, const char *what, const struct source_file *file)
{
    struct world *w = context;
    size_t len = strlen(w->told);
    snprintf(w->told + len, sizeof w->told - len, "%s %s%s%s\n", what, file->path,
             strcmp(what, "problem") == 0 ? " " : "",
             strcmp(what, "problem") == 0 ? file->problem : "");
}

static inline void world_still(void *context, const struct source_file *file)
{
    struct world *w = context;
    if (file->problem == NULL) /* remarks of a good file */
        return;
    size_t len = strlen(w->still);
    snprintf(w->still + len, sizeof w->still - len, "%s %s\n", file->path, file->problem);
}

static inline void world_try(struct world *w)
{
    char why[256];
    assert_true(folder_init(&w->place, &w->settings, why, sizeof why));
    struct scan_progress progress = {.change = world_report, .still = world_still, .context = w};
    struct scan_options options = {.catalogue = w->c,
                                   .settings = &w->settings,
                                   .kind = &folder_kind,
                                   .place = &w->place,
                                   .max_removed = w->max_removed,
                                   .dry_run = w->dry_run,
                                   .site_id = w->site_id,
                                   .max_files = w->max_files,
                                   .max_names = w->max_names,
                                   .alone = w->alone,
                                   .progress = &progress};
    w->told[0] = w->still[0] = '\0';
    /* Another change would have another ctime, so that files are not read again for it. */
    nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
    scan_run(&options, &w->out);
}

static inline unsigned world_problems(const struct world *w)
{
    unsigned count = 0;
    for (const char *at = w->still; *at != '\0'; at++)
        count += *at == '\n';
    for (const char *at = w->told; (at = strstr(at, "problem ")) != NULL; at++)
        count++;
    return count;
}

static inline uint64_t world_quarantined(struct world *w)
{
    struct catalogue_view *view;
    struct source_state state;
    assert_int_equal(catalogue_view_begin(w->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_source_state(view, w->settings.name, &state), CATALOGUE_OK);
    catalogue_view_end(view);
    return state.quarantined;
}

/* Scans; what is reported must be `told`, and each problem that there is be reported as new or as
 * known. */
static inline void world_scan(struct world *w, const char *told)
{
    world_try(w);
    if (!w->out.applied)
        fail_msg("%s", w->out.failure);
    if (strcmp(w->told, told) != 0)
        fail_msg("told:\n%swant:\n%s", w->told, told);
    if (!w->dry_run && world_problems(w) != world_quarantined(w))
        fail_msg("%" PRIu64 " problems; told:\n%sstill:\n%s", world_quarantined(w), w->told,
                 w->still);
}

static inline uint64_t world_revision(struct world *w)
{
    return fixture_revisions(w->c).revision;
}

struct world_listing {
    char *text;
    size_t size;
    uint64_t count;
};

static inline bool world_list_one(void *context, const struct entry_record *record)
{
    struct world_listing *l = context;
    size_t len = strlen(l->text);
    if (l->size > 1)
        snprintf(l->text + len, l->size - len, "%s\n", record->loc + strlen(ORIGIN));
    l->count++;
    return true;
}

/* The locs of all entries, by loc, without the origin. */
static inline uint64_t world_list(struct world *w, char *text, size_t size)
{
    struct catalogue_view *view;
    struct world_listing l = {text, size, 0};
    struct entry_list list = {.prefix = ORIGIN};
    text[0] = '\0';
    assert_int_equal(catalogue_view_begin(w->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_list(view, &list, world_list_one, &l), CATALOGUE_OK);
    catalogue_view_end(view);
    return l.count;
}

static inline void assert_entries(struct world *w, const char *want)
{
    char text[8192];
    world_list(w, text, sizeof text);
    assert_string_equal(text, want);
}

struct world_date {
    const char *loc;
    char lastmod[LASTMOD_MAX_CHARS + 1];
    bool found;
};

static inline bool world_date_one(void *context, const struct entry_record *record)
{
    struct world_date *d = context;
    if (strcmp(record->loc, d->loc) == 0) {
        snprintf(d->lastmod, sizeof d->lastmod, "%s", record->lastmod ? record->lastmod : "");
        d->found = true;
    }
    return true;
}

/* The lastmod of an entry's age in seconds; it must be within `want` and a little more (a slow
 * machine). */
static inline void assert_age(struct world *w, const char *path, int64_t want)
{
    char loc[2048];
    struct catalogue_view *view;
    struct lastmod lastmod;
    snprintf(loc, sizeof loc, ORIGIN "/s/%s", path);
    struct world_date d = {.loc = loc};
    struct entry_list list = {.prefix = loc};
    assert_int_equal(catalogue_view_begin(w->c, &view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_list(view, &list, world_date_one, &d), CATALOGUE_OK);
    catalogue_view_end(view);
    assert_true(d.found);
    /* Not time(2): it lags behind the clock that the scan reads by up to a tick. */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    assert_int_equal(lastmod_parse(d.lastmod, strlen(d.lastmod), now.tv_sec, &lastmod, NULL),
                     RULE_OK);
    int64_t age = (int64_t)now.tv_sec - lastmod.unix_seconds;
    if (age < want || age > want + 60)
        fail_msg("%s: %" PRId64 " old, not %" PRId64, path, age, want);
}

static inline void world_file(struct world *w, const char *path, struct source_file *out,
                              struct catalogue_view **view)
{
    bool found;
    assert_int_equal(catalogue_view_begin(w->c, view), CATALOGUE_OK);
    assert_int_equal(catalogue_view_source_file(*view, w->settings.name, path, out, &found),
                     CATALOGUE_OK);
    assert_true(found);
}

/* `problem` NULL: the file has none. */
static inline void assert_problem(struct world *w, const char *path, const char *problem,
                                  bool has_entry)
{
    struct catalogue_view *view;
    struct source_file file;
    world_file(w, path, &file, &view);
    if (problem == NULL)
        assert_int_not_equal(file.state, SOURCE_FILE_QUARANTINED);
    else
        assert_string_equal(file.problem ? file.problem : "none", problem);
    assert_int_equal(file.has_entry, has_entry);
    catalogue_view_end(view);
}
