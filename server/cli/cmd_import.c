/* `import`: read, check, apply, tell. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/commands.h"
#include "server/cli/import.h"
#include "server/rules/plural.h"

static int read_options(struct cli *cli, struct import *import)
{
    const struct arguments *a = &cli->arguments;

    import->file = strcmp(a->words[0], "-") == 0 ? "standard input" : a->words[0];
    import->index = arguments_value(a, "--index");
    import->source = arguments_value(a, "--source");
    import->replace = arguments_has(a, "--replace");
    import->skip = arguments_has(a, "--skip-invalid");
    import->dry_run = arguments_has(a, "--dry-run");
    import->drop_lastmod = arguments_has(a, "--drop-lastmod");
    if (import->source != NULL &&
        entry_check_name(import->source, strlen(import->source)) != RULE_OK)
        return cli_misuse("--source", "%s", rule_code_sentence(RULE_NAME));
    if (arguments_has(a, "--max-removed") && !import->replace)
        return cli_misuse("--max-removed", "an import removes nothing without --replace");
    return session_max_removed(cli, &import->max_removed);
}

/* What reading needs: the spools' folder, the indexes there are. */
static int prepare(struct cli *cli, struct import *import)
{
    char *copy = strdup(cli->config.database);
    struct catalogue_view *view;

    import->folder = copy != NULL ? strdup(dirname(copy)) : NULL;
    free(copy);
    if (import->folder == NULL ||
        !import_report_init(&import->findings, cli->config.max_rejections))
        return cli_fail("import", "out of memory");
    view = session_view(cli, &import->registry);
    if (view == NULL)
        return EXIT_COULD_NOT;
    catalogue_view_end(view);
    if (import->index != NULL &&
        registry_index_by_name(import->registry, import->index, NULL) == NULL)
        return cli_fail(import->index, "no index of this catalogue; `sitemapd index list` shows "
                                       "them, `sitemapd index add URL` makes one");
    return EXIT_DONE;
}

static int read_list(const struct cli *cli, struct import *import)
{
    const char *name = cli->arguments.words[0];
    bool is_stdin = strcmp(name, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC), status;

    if (fd < 0)
        return cli_fail(name, "cannot be read: %s", strerror(errno));
    status = import_read(import, fd);
    if (!is_stdin)
        close(fd);
    return status;
}

/* All or nothing. Several indexes are several changes, so all are checked before the first is
 * applied; and where something is refused already, the rest is checked to tell all of it at
 * once. */
static int check_first(struct import *import, bool *good)
{
    int status = EXIT_DONE;

    if (import->group_count > 1 || (import->findings.refused > 0 && !import->skip)) {
        struct import_report *f = &import->findings;
        uint64_t refused = f->refused;
        uint32_t kept = f->kept;

        status = import_apply(import, true);
        *good = f->refused == 0 || import->skip;
        if (*good && status == EXIT_DONE) { /* the second pass tells them again */
            while (f->kept > kept) {
                f->kept--;
                free(f->items[f->kept].loc);
                free(f->items[f->kept].detail);
            }
            f->refused = refused;
        }
    }
    return status;
}

static void print_summary(const struct import *import, uint64_t read)
{
    printf("%s: read %" PRIu64 ": %s%" PRIu64 " created, %" PRIu64 " updated, %" PRIu64
           " unchanged, %" PRIu64 " removed, %" PRIu64 " refused",
           import->file, read, import->dry_run ? "a dry run, nothing applied: " : "",
           import->created, import->updated, import->unchanged, import->removed,
           import->findings.refused);
    if (!import->dry_run && import->revision > 0)
        printf(" (revision %" PRIu64 ")", import->revision);
    putchar('\n');
}

static int apply_list(struct import *import)
{
    uint64_t read_refused = import->findings.refused, read = import_count(import) + read_refused;
    bool good = true;
    int status = check_first(import, &good);

    if (status == EXIT_DONE && good)
        status = import_apply(import, import->dry_run);
    import_report_tell(&import->findings, import->file);
    if (status != EXIT_DONE)
        return status;
    if (import->findings.refused > 0 && !import->skip)
        return cli_fail(
            import->file, "%" PRIu64 " of %" PRIu64 " %s refused, nothing was applied%s",
            import->findings.refused, read, plural(read, "entry", "entries"),
            import->findings.refused < read ? "; --skip-invalid applies the good ones" : "");
    print_summary(import, read);
    return EXIT_DONE;
}

static void import_done(struct import *import)
{
    for (size_t i = 0; i < import->group_count; i++) {
        spool_free(import->groups[i].spool);
        free(import->groups[i].index_url);
    }
    free(import->groups);
    free(import->folder);
    registry_unref(import->registry);
    if (import->findings.items != NULL)
        import_report_done(&import->findings);
}

int command_import(struct cli *cli)
{
    struct import import = {.cli = cli};
    int status = read_options(cli, &import);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = prepare(cli, &import);
    if (status == EXIT_DONE)
        status = read_list(cli, &import);
    if (status == EXIT_DONE)
        status = apply_list(&import);
    else if (import.findings.items != NULL)
        import_report_tell(&import.findings, import.file);
    import_done(&import);
    return status;
}
