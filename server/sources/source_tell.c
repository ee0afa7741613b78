#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/rules/plural.h"
#include "server/sources/source.h"

enum { LEVEL_ERROR, LEVEL_WARNING, LEVEL_INFO };

void source_tell(const struct source *s, int level, const char *event, const char *format, ...)
{
    char detail[1600];
    va_list arguments;
    if (s->event == NULL)
        return;
    int len = snprintf(detail, sizeof detail, "%.64s: ", s->settings.name);
    va_start(arguments, format);
    vsnprintf(detail + len, sizeof detail - (size_t)len, format, arguments);
    va_end(arguments);
    s->event(s->event_context, level, event, detail);
}

bool source_tell_change(const struct source *s, const char *what, const struct source_file *file)
{
    char place[64] = "";
    if (strcmp(what, "recovered") == 0) {
        source_tell(s, LEVEL_INFO, "source-file-recovered", "%s is good again", file->path);
        return true;
    }
    if (strcmp(what, "problem") != 0)
        return false;
    if (file->line > 0)
        snprintf(place, sizeof place, ", line %" PRIu64 " column %" PRIu64, file->line,
                 file->column);
    source_tell(s, LEVEL_WARNING, "source-file-problem", "%s: %s%s: %.200s%s", file->path,
                file->problem, place, file->detail ? file->detail : "",
                file->has_entry ? " (its last good entry stays)" : "");
    return true;
}

static void tell_failure(struct source *s, const struct scan_outcome *outcome)
{
    pthread_mutex_lock(&s->lock);
    bool news = strcmp(s->failure, outcome->failure) != 0;
    pthread_mutex_unlock(&s->lock);
    if (news)
        source_tell(s, LEVEL_WARNING, "source-scan-failed", "%s", outcome->failure);
}

void source_tell_outcome(struct source *s, const struct scan_outcome *outcome)
{
    const struct scan_counts *c = &outcome->counts;
    uint64_t held = outcome->result.would_remove;
    if (outcome->watch_limit)
        source_tell(s, LEVEL_WARNING, "source-watch-limit",
                    "the system's limit of inotify is reached (fs.inotify.max_user_watches, "
                    "max_user_instances): changes are found by rescans alone");
    if (!outcome->applied) {
        tell_failure(s, outcome);
        return;
    }
    if (outcome->outside > 0 && s->outside != outcome->outside)
        source_tell(s, LEVEL_INFO, "source-link-outside", "%" PRIu64 " %s left aside: %s%s",
                    outcome->outside,
                    plural(outcome->outside, "symlink leads out of the folder and is",
                           "symlinks lead out of the folder and are"),
                    outcome->outside_path, plural(outcome->outside, "", ", ..."));
    if (held > 0 && s->held != held)
        source_tell(s, LEVEL_WARNING, "source-removals-held",
                    "%" PRIu64 " %s kept by the shrink guard; scan with max_removed to let %s go",
                    held,
                    plural(held, "entry whose file is gone is", "entries whose files are gone are"),
                    plural(held, "it", "them"));
    if (s->failures > 0)
        source_tell(s, LEVEL_INFO, "source-scan-works", "the folder is scanned again");
    if (s->scanned && !outcome->result.changed &&
        c->added + c->changed + c->gone + c->problems + c->recovered + c->empty == 0)
        return;
    source_tell(s, LEVEL_INFO, "source-scanned",
                "%" PRIu64 " %s, %" PRIu64 " read: %" PRIu64 " new, %" PRIu64 " changed, %" PRIu64
                " gone, %" PRIu64 " with a problem, %" PRIu64 " recovered, %" PRIu64
                " empty; remarks: %" PRIu64 " dated in the future, %" PRIu64
                " with one lastmod on all pages",
                c->files, plural(c->files, "file", "files"), c->read, c->added, c->changed, c->gone,
                c->problems, c->recovered, c->empty, c->future, c->one_lastmod);
}
