#include "server/sources/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/sources/beneath.h"
#include "server/sources/scan_pass.h"

/* ---- what the catalogue keeps ------------------------------------------------------------- */

static bool keep_row(void *context, const struct source_file *file)
{
    struct scan_pass *pass = context;
    struct url loc;
    if (!record_from_file(&pass->kept, file)) {
        pass->out_of_memory = true;
        return false;
    }
    pass->kept.at[pass->kept.count - 1].moved =
        file->loc && (location_loc(pass->options->location, file->path, &loc) != RULE_OK ||
                      strcmp(loc.text, file->loc) != 0);
    return true;
}

static bool fail(struct scan_pass *pass, enum catalogue_status status, const char *what,
                 const char *why)
{
    pass->out->status = status;
    snprintf(pass->out->failure, sizeof pass->out->failure, "%.120s: %.120s", what, why);
    return false;
}

static bool fail_status(struct scan_pass *pass, enum catalogue_status status)
{
    return fail(pass, status, "the catalogue cannot be read", catalogue_status_word(status));
}

/* What would refuse every single file is told before any is read. */
static bool check_place(struct scan_pass *pass, const struct registry *registry,
                        struct placement *place)
{
    const struct source_settings *settings = pass->options->settings;
    struct url loc;
    enum rule_code code = location_loc(pass->options->location, "sitemap.xml", &loc);
    if (code == RULE_OK)
        code = registry_place(registry, &loc, settings->index, place);
    switch (code) {
    case RULE_SITE_UNKNOWN:
    case RULE_INDEX_NEEDED:
        return fail(pass, CATALOGUE_REFUSED, pass->options->location->base,
                    rule_code_sentence(code));
    case RULE_INDEX_UNKNOWN:
        if (settings->index)
            return fail(pass, CATALOGUE_REFUSED, settings->index, rule_code_sentence(code));
        return true;
    default:
        return true;
    }
}

/* All entries of a source are in one index where one is named: the first that is listed tells of
 * all. (What is quarantined moves when it is good again.) */
static bool is_elsewhere(struct scan_pass *pass, struct catalogue_view *view,
                         const struct placement *place)
{
    struct entry_record entry;
    struct url loc;
    bool elsewhere = false;
    if (pass->options->settings->index == NULL || place->index == NULL)
        return false;
    for (size_t i = 0; i < pass->kept.count; i++) {
        const struct record *kept = &pass->kept.at[i];
        if (!kept->has_entry || kept->moved || kept->state != SOURCE_FILE_LISTED ||
            location_loc(pass->options->location, kept->path, &loc) != RULE_OK)
            continue;
        if (catalogue_view_entry_by_loc(view, place->site->id, loc.text, &entry) != CATALOGUE_OK)
            return false;
        elsewhere = entry.index_id != place->index->id;
        entry_record_done(&entry);
        return elsewhere;
    }
    return false;
}

static bool load_view(struct scan_pass *pass, struct catalogue_view *view)
{
    struct registry *registry;
    struct placement place = {0};
    enum catalogue_status status = catalogue_view_registry(view, &registry);
    if (status != CATALOGUE_OK)
        return fail_status(pass, status);
    bool ok = check_place(pass, registry, &place);
    if (ok) {
        status = catalogue_view_source_files(view, pass->options->settings->name, keep_row, pass);
        ok = (status == CATALOGUE_OK || fail_status(pass, status)) && !pass->out_of_memory;
    }
    if (ok) {
        record_sort(&pass->kept);
        pass->resubmit = is_elsewhere(pass, view, &place);
    }
    registry_unref(registry);
    return ok;
}

/* The view is closed before any file is read: that may take minutes, and a view holds back the
 * catalogue's upkeep. */
static bool load(struct scan_pass *pass)
{
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(pass->options->catalogue, &view);
    if (status != CATALOGUE_OK)
        return fail_status(pass, status);
    bool ok = load_view(pass, view);
    catalogue_view_end(view);
    return ok;
}

/* ---- the walk ----------------------------------------------------------------------------- */

static bool is_stopped(const struct scan_pass *pass)
{
    return pass->options->stop && atomic_load_explicit(pass->options->stop, memory_order_relaxed);
}

static bool visit_folder(void *context, int fd, const char *path)
{
    struct scan_pass *pass = context;
    struct tree_watch **watch = pass->options->watch;
    if (watch && *watch && !tree_watch_folder(*watch, fd, path)) {
        /* Half a tree watched would look like a whole one. */
        tree_watch_free(*watch);
        *watch = NULL;
        pass->out->watch_limit = true;
    }
    return !is_stopped(pass);
}

static bool visit_file(void *context, const char *path, const struct stat *st)
{
    return !is_stopped(context) && scan_file(context, path, st);
}

static bool visit_problem(void *context, const char *path, const char *code, const char *detail,
                          bool folder)
{
    struct scan_pass *pass = context;
    if (folder)
        record_see_below(&pass->kept, path);
    return scan_problem(pass, path, code, detail, folder);
}

/* An unmounted folder leaves an empty one behind. Entries are kept unless someone says otherwise:
 * the shrink guard, which would hold them too, may be off. */
static bool is_unmounted(const struct scan_pass *pass, const struct stat *top)
{
    if (pass->out->counts.files > 0 || pass->options->max_removed != MAX_REMOVED_GUARDED)
        return false;
    bool any = false;
    for (size_t i = 0; i < pass->kept.count; i++) {
        const struct record *kept = &pass->kept.at[i];
        any |= kept->has_entry;
        if (kept->device == top->st_dev)
            return false;
    }
    return any;
}

static bool check_top(struct scan_pass *pass)
{
    const char *directory = pass->options->settings->directory;
    struct stat opened, named;
    if (stat(directory, &named) != 0)
        return fail(pass, CATALOGUE_UNAVAILABLE, directory, strerrordesc_np(errno));
    if (fstat(pass->top, &opened) != 0 || opened.st_ino != named.st_ino ||
        opened.st_dev != named.st_dev)
        return fail(pass, CATALOGUE_UNAVAILABLE, directory, "was replaced while it was read");
    if (is_unmounted(pass, &opened))
        return fail(pass, CATALOGUE_UNAVAILABLE, directory,
                    "is empty, and on another file system than its files were: is it mounted?");
    return true;
}

static bool walk(struct scan_pass *pass)
{
    struct walk_result result;
    const struct source_settings *settings = pass->options->settings;
    struct match match = {settings->patterns, settings->excludes};
    struct walk_visit visit = {visit_folder, visit_file, visit_problem, pass};
    struct tree_watch **watch = pass->options->watch;
    if (watch && *watch)
        tree_watch_walk_begins(*watch);
    enum walk_status status = walk_folder(pass->top, "", &match, &visit, &result);
    pass->out->links = result.links > 0;
    pass->out->outside = result.outside;
    snprintf(pass->out->outside_path, sizeof pass->out->outside_path, "%s", result.outside_path);
    if (status == WALK_UNREADABLE || status == WALK_FAILED)
        return fail(pass, CATALOGUE_UNAVAILABLE, settings->directory,
                    strerrordesc_np(result.error));
    if (status != WALK_DONE)
        return false;
    if (watch && *watch)
        tree_watch_walk_ends(*watch);
    return true;
}

static bool open_top(struct scan_pass *pass)
{
    const char *directory = pass->options->settings->directory;
    pass->top = beneath_open_top(directory);
    return pass->top >= 0 || fail(pass, CATALOGUE_UNAVAILABLE, directory, strerrordesc_np(errno));
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void remember(struct scan_pass *pass)
{
    struct scan_memory *memory = pass->options->memory;
    if (memory == NULL)
        return;
    record_sort(&pass->unsettled);
    struct record_list old = memory->unsettled;
    memory->unsettled = pass->unsettled;
    pass->unsettled = old;
}

void scan_run(const struct scan_options *options, struct scan_outcome *out)
{
    struct scan_pass pass = {.options = options, .out = out, .top = -1, .now = time(NULL)};
    *out = (struct scan_outcome){.status = CATALOGUE_CANCELLED};
    if (open_top(&pass) && load(&pass) && walk(&pass) && scan_changing(&pass) && check_top(&pass) &&
        !is_stopped(&pass)) {
        if (scan_add_gone(&pass)) {
            record_sort(&pass.found);
            record_unique(&pass.found);
            remember(&pass);
            scan_apply(&pass);
        } else {
            pass.out_of_memory = true;
        }
    }
    if (pass.out_of_memory)
        fail(&pass, CATALOGUE_NO_MEMORY, options->settings->directory,
             "out of memory or descriptors");
    else if (!out->applied && *out->failure == '\0')
        snprintf(out->failure, sizeof out->failure, "stopped");
    if (pass.top >= 0)
        close(pass.top);
    record_list_done(&pass.kept);
    record_list_done(&pass.found);
    record_list_done(&pass.changing);
    record_list_done(&pass.unsettled);
    record_list_done(&pass.rejected);
}

void scan_memory_done(struct scan_memory *memory)
{
    record_list_done(&memory->unsettled);
}
