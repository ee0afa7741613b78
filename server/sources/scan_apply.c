#include <stdio.h>
#include <string.h>

#include "server/sources/scan_pass.h"

bool scan_add_gone(struct scan_pass *pass)
{
    for (size_t i = 0; i < pass->kept.count; i++) {
        const struct record *kept = &pass->kept.at[i];
        bool failed = false;
        if (kept->seen)
            continue;
        struct record gone = *kept;
        gone.state = SOURCE_FILE_GONE;
        gone.path = record_keep(&pass->found, kept->path, &failed);
        gone.lastmod = gone.newest_lastmod = gone.problem = gone.detail = NULL;
        gone.named = kept->has_entry || kept->state != SOURCE_FILE_IGNORED ? "gone" : NULL;
        if (failed || record_add(&pass->found, &gone) == NULL)
            return false;
    }
    return true;
}

/* ---- the stream -------------------------------------------------------------------------- */

static const char *loc_of(struct scan_pass *pass, const struct record *record)
{
    if (record->nowhere ||
        location_loc(pass->options->location, record->path, &pass->loc) != RULE_OK)
        return NULL;
    return pass->loc.text;
}

static int stream_next(void *context, struct source_file *out)
{
    struct scan_pass *pass = context;
    if (pass->next == pass->found.count)
        return 0;
    const struct record *record = &pass->found.at[pass->next++];
    record_to_file(record, loc_of(pass, record), out);
    return 1;
}

static bool stream_rewind(void *context)
{
    struct scan_pass *pass = context;
    pass->next = 0;
    return true;
}

static bool bears(struct scan_pass *pass, const struct record *record, const char *loc)
{
    struct url own;
    return !record->nowhere && record->state == SOURCE_FILE_LISTED &&
           location_loc(pass->options->location, record->path, &own) == RULE_OK &&
           strcmp(own.text, loc) == 0;
}

/* Refusals come in the stream's order: each search begins where the last one ended. What is refused
 * stays in the stream as it is, since the catalogue may read that again. */
static void on_reject(void *context, const struct rejection *rejection)
{
    struct scan_pass *pass = context;
    struct record_list *list = &pass->rejected;
    size_t count = pass->found.count;
    bool failed = false;
    for (size_t i = 0; rejection->loc && i < count; i++) {
        size_t at = (pass->reject_at + i) % count;
        if (!bears(pass, &pass->found.at[at], rejection->loc))
            continue;
        struct record record = pass->found.at[at];
        record.state = SOURCE_FILE_QUARANTINED;
        record.problem = rule_code_word(rejection->code);
        record.detail = record_keep(list, rejection->detail, &failed);
        record.size = at;
        record_add(list, &record); /* out of memory, it is only not told */
        pass->reject_at = at + 1;
        return;
    }
}

/* What the catalogue made a problem of is told as one. */
static void merge_rejected(struct scan_pass *pass)
{
    for (size_t i = 0; i < pass->rejected.count; i++) {
        const struct record *rejected = &pass->rejected.at[i];
        struct record *found = &pass->found.at[rejected->size];
        found->state = SOURCE_FILE_QUARANTINED;
        found->problem = rejected->problem;
        found->detail = rejected->detail;
        found->named = "problem";
    }
}

static bool was_refused(const struct scan_pass *pass, const struct record *found)
{
    const struct record *kept = record_find(&pass->kept, found->path);
    return kept && kept->refused && found->state == SOURCE_FILE_LISTED;
}

static bool is_listed(struct scan_pass *pass, struct catalogue_view *view, const char *path)
{
    struct source_file file;
    bool found;
    return catalogue_view_source_file(view, pass->options->settings->name, path, &file, &found) ==
               CATALOGUE_OK &&
           found && file.state == SOURCE_FILE_LISTED;
}

/* What was refused before, and is again for the same reason, is no news, and the catalogue does not
 * report it: which of them did recover is seen by their rows. */
static void merge_refused(struct scan_pass *pass)
{
    struct catalogue_view *view = NULL;
    uint64_t again = pass->out->result.rejected - pass->rejected.count;
    if (again > 0 && !pass->options->dry_run)
        catalogue_view_begin(pass->options->catalogue, &view);
    for (size_t i = 0; again > 0 && i < pass->found.count; i++) {
        struct record *found = &pass->found.at[i];
        if (was_refused(pass, found) && !(view && is_listed(pass, view, found->path)))
            found->named = NULL;
    }
    if (view)
        catalogue_view_end(view);
}

/* Held back by the shrink guard: it did not happen, and is told in one line rather than each
 * time. Who looks at one scan alone is to see what it is about. */
static void merge_held(struct scan_pass *pass)
{
    if (pass->out->result.would_remove == 0 || pass->options->memory == NULL)
        return;
    for (size_t i = 0; i < pass->found.count; i++) {
        struct record *found = &pass->found.at[i];
        const struct record *kept = record_find(&pass->kept, found->path);
        bool loses = found->state == SOURCE_FILE_GONE || found->state == SOURCE_FILE_EMPTY ||
                     found->state == SOURCE_FILE_IGNORED || (kept && kept->moved);
        if (kept && kept->has_entry && loses)
            found->named = NULL;
    }
}

/* ---- telling ------------------------------------------------------------------------------ */

static uint64_t *count_of(struct scan_counts *counts, const char *named)
{
    const struct {
        const char *name;
        uint64_t *count;
    } all[] = {
        {"new", &counts->added},           {"changed", &counts->changed},
        {"gone", &counts->gone},           {"problem", &counts->problems},
        {"recovered", &counts->recovered}, {"empty", &counts->empty},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, named) == 0)
            return all[i].count;
    return &counts->changed;
}

static void tell_one_still(struct scan_pass *pass, const struct record *record)
{
    const struct scan_progress *progress = pass->options->progress;
    struct source_file file;
    record_to_file(record, loc_of(pass, record), &file);
    progress->still(progress->context, &file);
}

/* The problems that were known and have not moved. */
static void tell_still(struct scan_pass *pass)
{
    for (size_t i = 0; i < pass->found.count; i++) {
        const struct record *found = &pass->found.at[i];
        struct record *kept = record_find(&pass->kept, found->path);
        if (kept == NULL || (found->named == NULL && was_refused(pass, found)))
            continue;
        kept->seen = false; /* it is not just as it is kept */
        if (found->named == NULL && found->state == SOURCE_FILE_QUARANTINED)
            tell_one_still(pass, found);
    }
    for (size_t i = 0; i < pass->kept.count; i++)
        if (pass->kept.at[i].seen && pass->kept.at[i].state == SOURCE_FILE_QUARANTINED)
            tell_one_still(pass, &pass->kept.at[i]);
}

static void tell(struct scan_pass *pass)
{
    const struct scan_progress *progress = pass->options->progress;
    struct scan_counts *counts = &pass->out->counts;
    for (size_t i = 0; i < pass->found.count; i++) {
        const struct record *record = &pass->found.at[i];
        struct source_file file;
        if (record->named == NULL)
            continue;
        ++*count_of(counts, record->named);
        if (record->state == SOURCE_FILE_LISTED) {
            counts->future += record->future;
            counts->one_lastmod += record->one_lastmod;
        }
        if (progress && progress->change) {
            record_to_file(record, loc_of(pass, record), &file);
            progress->change(progress->context, record->named, &file);
        }
    }
    if (progress && progress->still)
        tell_still(pass);
}

void scan_apply(struct scan_pass *pass)
{
    struct scan_outcome *out = pass->out;
    struct source_file_stream stream = {
        .context = pass,
        .next = stream_next,
        .rewind = stream_rewind,
        .count = pass->found.count,
    };
    struct change change = {
        .kind = CHANGE_SCAN,
        .source = pass->options->settings->name,
        .index_name = pass->options->settings->index,
        .files = &stream,
        .dry_run = pass->options->dry_run,
        .max_removed = pass->options->max_removed,
        .on_reject = on_reject,
        .context = pass,
    };
    out->status = catalogue_apply(pass->options->catalogue, &change, &out->result);
    entry_record_done(&out->result.entry);
    memset(&out->result.entry, 0, sizeof out->result.entry);
    out->applied = out->status == CATALOGUE_OK;
    if (out->applied) {
        merge_rejected(pass);
        merge_refused(pass);
        merge_held(pass);
        tell(pass);
        return;
    }
    const char *detail = out->result.detail;
    snprintf(out->failure, sizeof out->failure, "the catalogue did not take it (%s)%s%.180s",
             catalogue_status_word(out->status), *detail ? ": " : "", detail);
}
