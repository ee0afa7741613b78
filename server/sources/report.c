#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/sources/source.h"

static char *copy(const char *text, bool *failed)
{
    char *own = strdup(text ? text : "");
    *failed |= own == NULL;
    return own;
}

struct gathering {
    struct source_report *report;
    bool failed;
};

static bool gather(void *context, const struct source_file *file)
{
    struct gathering *g = context;
    struct source_report *report = g->report;
    if (file->state != SOURCE_FILE_QUARANTINED)
        return true;
    report->problem_count++;
    if (report->problems_listed == SOURCE_MAX_PROBLEMS)
        return true;
    report->problems[report->problems_listed++] = (struct source_problem){
        .path = copy(file->path, &g->failed),
        .code = copy(file->problem, &g->failed),
        .detail = copy(file->detail, &g->failed),
        .line = file->line,
        .column = file->column,
        .since = file->problem_since,
        .has_entry = file->has_entry,
    };
    return !g->failed;
}

static bool read_catalogue(struct catalogue *c, struct source_report *out)
{
    struct catalogue_view *view;
    struct catalogue_revisions revisions;
    struct gathering g = {out, false};
    if (catalogue_view_begin(c, &view) != CATALOGUE_OK)
        return false;
    bool ok = catalogue_view_revisions(view, &revisions) == CATALOGUE_OK &&
              catalogue_view_source_state(view, out->name, &out->state) == CATALOGUE_OK &&
              (out->state.quarantined == 0 ||
               catalogue_view_source_files(view, out->name, gather, &g) == CATALOGUE_OK);
    catalogue_view_end(view);
    out->revision = revisions.revision;
    return ok && !g.failed;
}

void source_fill_health(struct source *s, struct source_health *out)
{
    pthread_mutex_lock(&s->lock);
    *out = (struct source_health){
        .name = s->settings.name,
        .state = s->state,
        .scanning = s->scanning,
        .failing = s->failed_at != 0,
        .watching = s->watching,
        .scans = s->scans,
        .files_read = s->files_read,
    };
    memcpy(out->failure, s->failure, sizeof out->failure);
    pthread_mutex_unlock(&s->lock);
}

bool source_fill_report(struct source *s, struct source_report *out)
{
    *out = (struct source_report){
        .name = s->settings.name,
        .directory = s->settings.directory,
        .url = s->location.base,
        .index = s->settings.index,
        .serve = s->settings.serve,
    };
    pthread_mutex_lock(&s->lock);
    out->watching = s->watching;
    out->scanning = s->scanning;
    out->failed_at = s->failed_at;
    memcpy(out->failure, s->failure, sizeof out->failure);
    pthread_mutex_unlock(&s->lock);
    if (read_catalogue(s->catalogue, out))
        return true;
    source_report_done(out);
    return false;
}

void source_report_done(struct source_report *report)
{
    for (size_t i = 0; i < report->problems_listed; i++) {
        free(report->problems[i].path);
        free(report->problems[i].code);
        free(report->problems[i].detail);
    }
    report->problems_listed = 0;
}
