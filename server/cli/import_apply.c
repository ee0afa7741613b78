#include <string.h>

#include "server/cli/commands.h"
#include "server/cli/import.h"
#include "server/rules/plural.h"

/* Called on the writer's thread, while ours waits for it. */
static void take_rejection(void *context, const struct rejection *rejection)
{
    struct import *import = context;

    import_report_refuse(&import->findings, rejection);
}

static void take_progress(void *context, uint64_t entries_done)
{
    struct import *import = context;

    progress_update(&import->progress, import->applied + entries_done);
}

/* A change of many refuses as a whole because of single entries, which on_reject has told of, or
 * for a reason of its own (the guard, an unknown index), which is told here. */
static int apply_group(struct import *import, struct import_group *group, bool dry_run)
{
    struct entry_stream stream = spool_stream(group->spool);
    struct change change = {
        .kind = import->replace ? CHANGE_REPLACE : CHANGE_BULK,
        .source = import->source != NULL ? import->source : COMMAND_SOURCE,
        .stream = &stream,
        .skip = import->skip,
        .dry_run = dry_run,
        .index_name = group->index_url != NULL ? group->index_url : import->index,
        .max_removed = import->max_removed,
        .on_reject = take_rejection,
        .on_progress = take_progress,
        .context = import,
    };
    uint64_t refused_before = import->findings.refused;
    struct change_result result;
    const char *what = change.index_name != NULL ? change.index_name : import->file;
    enum catalogue_status status = catalogue_apply(import->cli->catalogue, &change, &result);

    entry_record_done(&result.entry);
    if (status == CATALOGUE_OK) {
        import->created += result.created;
        import->updated += result.updated;
        import->unchanged += result.unchanged;
        import->removed += result.removed;
        for (int code = RULE_OK + 1; result.remarks >> code != 0; code++)
            if ((result.remarks & RULE_BIT(code)) != 0)
                import_report_remark(&import->findings, (enum rule_code)code, 0);
        if (result.revision > import->revision)
            import->revision = result.revision;
        return EXIT_DONE;
    }
    if (status == CATALOGUE_REFUSED && !import->skip && result.code != RULE_SHRINK_GUARD &&
        import->findings.refused > refused_before)
        return EXIT_DONE;
    return session_tell(&change, what, &result);
}

int import_apply(struct import *import, bool dry_run)
{
    int status = EXIT_DONE;
    size_t done = 0;

    import->created = import->updated = import->unchanged = import->removed = 0;
    import->applied = 0;
    progress_start(&import->progress, dry_run ? "checking" : "applying", "entries",
                   import_count(import));
    for (size_t i = 0; status == EXIT_DONE && i < import->group_count; i++) {
        status = apply_group(import, &import->groups[i], dry_run);
        import->applied += spool_count(import->groups[i].spool);
        done += status == EXIT_DONE;
    }
    progress_end(&import->progress);
    if (status != EXIT_DONE && !dry_run && done > 0)
        cli_fail(import->file, "%zu of %zu indexes %s replaced before that", done,
                 import->group_count, plural(done, "was", "were"));
    return status;
}
