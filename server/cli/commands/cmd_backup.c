/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `backup`, `restore` and `check`. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/backend/api.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"

/* ---- backup: a stream, whose rows pass through no JSON ------------------------------------- */

static bool show_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *p = context;

    p->total = total;
    progress_update(p, done);
    return true;
}

static int copy_into(struct backend *b, const char *file)
{
    enum catalogue_status copied;
    struct progress progress;
    char why[512] = "";

    progress_start(&progress, "copying", "pages", 0);
    copied = catalogue_backup(b->catalogue, file, show_progress, &progress, why, sizeof why);
    progress_end(&progress);
    if (copied != CATALOGUE_OK)
        return cli_fail_file(file, why[0] != '\0' ? why : catalogue_status_word(copied));
    return EXIT_DONE;
}

static int print_file(const char *name)
{
    FILE *file = fopen(name, "re");
    char piece[65536];
    size_t n = 1;

    while (file != NULL && n > 0 && !ferror(stdout)) {
        n = fread(piece, 1, sizeof piece, file);
        fwrite(piece, 1, n, stdout);
    }
    n = file != NULL && ferror(file) == 0;
    if (file != NULL)
        fclose(file);
    return n != 0 ? EXIT_DONE : cli_fail(name, "cannot be read back");
}

/* A copy is complete before any of it is written: for stdout it goes to a file beside the catalogue
 * first. */
static int backup_file(struct backend *b, const char *file)
{
    struct str part = STR_INIT;
    int status;

    if (strcmp(file, "-") != 0)
        return copy_into(b, file);
    str_append_format(&part, "%s.copy-%ld", b->name, (long)getpid());
    status = part.failed ? cli_fail(b->name, "out of memory") : copy_into(b, str_text(&part));
    if (status == EXIT_DONE)
        status = print_file(str_text(&part));
    if (!part.failed)
        unlink(str_text(&part));
    str_done(&part);
    return status;
}

static bool write_copy(void *context, const char *bytes, size_t len)
{
    return fwrite(bytes, 1, len, context) == len;
}

/* Readable only for the owner: it has the hashes of tokens. */
static FILE *open_part(char *name)
{
    int fd = mkostemp(name, O_CLOEXEC);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && file == NULL) {
        close(fd);
        unlink(name);
    }
    return file;
}

/* Writes to a file of another name first, so that no incomplete backup is left. */
static int backup_server(struct backend *b, const char *file)
{
    bool to_stdout = strcmp(file, "-") == 0, whole;
    struct str part = STR_INIT;
    json_t *answer = NULL;
    FILE *out;
    int status = EXIT_DONE;

    str_append_format(&part, "%s.XXXXXX", file);
    out = to_stdout ? stdout : part.failed ? NULL : open_part(part.data);
    if (out == NULL) {
        status = cli_fail(file, "%s", strerror(errno));
        str_done(&part);
        return status;
    }
    whole = api_stream(b, "/v1/backup", "application/octet-stream", write_copy, out, &answer) &&
            api_is_good(b);
    if (!whole && b->status == 0 && ferror(out))
        status = cli_fail(file, "write failed: the output is incomplete (no space left?)");
    else if (!whole)
        status = api_report(b, answer);
    if (to_stdout) {
        whole = fflush(out) == 0 && whole;
    } else {
        whole = fflush(out) == 0 && fsync(fileno(out)) == 0 && whole;
        whole = fclose(out) == 0 && whole;
        if (whole)
            whole = rename(str_text(&part), file) == 0;
        else
            unlink(str_text(&part));
    }
    if (!whole && status == EXIT_DONE)
        status = cli_fail(file, "write failed: the output is incomplete (no space left?)");
    str_done(&part);
    return status;
}

int command_backup(struct cli *cli)
{
    const char *file = cli->arguments.words[0];
    bool to_stdout = strcmp(file, "-") == 0;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    if (to_stdout && isatty(STDOUT_FILENO))
        return cli_misuse(
            "backup",
            "- is standard output, which is a terminal; redirect it into a file or a pipe");
    if (!to_stdout && access(file, F_OK) == 0)
        return cli_fail(file, "already exists; give the backup a new file");
    status = (cli->backend->catalogue != NULL ? backup_file : backup_server)(cli->backend, file);
    if (status == EXIT_DONE && !to_stdout)
        printf("%s: a copy of %s\n", file, cli->backend->name);
    return status;
}

static void print_problem(void *context, const char *sentence)
{
    const struct cli *cli = context;

    cli_fail(cli->config->database, "%s", sentence);
}

static void print_fault(void *context, const char *sentence)
{
    cli_fail(context, "%s", sentence);
}

/* `why` is `file: sentence`, of the backup or of the catalogue. */
static int report_failure(const char *why)
{
    cli_misuse_sentence(why);
    return EXIT_COULD_NOT;
}

int command_restore(struct cli *cli)
{
    char *file = (char *)cli->arguments.words[0];
    const struct catalogue_restore_options options = {
        .replace = arguments_has(&cli->arguments, "--replace"),
        .problem = print_fault,
        .context = file,
    };
    enum catalogue_status restored;
    char why[512];
    int status = session_needs_machine(cli);

    if (status == EXIT_DONE)
        status = session_read_config(cli, NULL, NULL);
    if (status != EXIT_DONE)
        return status;
    restored = catalogue_restore(file, cli->config->database, &options, why, sizeof why);
    if (restored == CATALOGUE_CONFLICT)
        return cli_fail_file(cli->config->database,
                             "already exists; --replace replaces it by the backup");
    if (restored != CATALOGUE_OK)
        return report_failure(why);
    printf("%s: restored from %s\n", cli->config->database, file);
    return EXIT_DONE;
}

int command_check(struct cli *cli)
{
    enum catalogue_status checked;
    uint64_t count = 0;
    int status = session_needs_machine(cli);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status != EXIT_DONE)
        return status;
    checked = catalogue_check(cli->backend->catalogue, print_problem, cli, &count);
    if (checked != CATALOGUE_OK)
        return cli_fail(cli->backend->name, "%s", catalogue_status_row(checked)->sentence);
    if (count > 0)
        return cli_fail(cli->config->database, "problems found: %" PRIu64, count);
    struct shared_state shared;
    bool pends = catalogue_shared_state(cli->backend->catalogue, &shared) && shared.upgrade_pending;
    printf("%s: intact and consistent%s\n", cli->config->database,
           pends ? "; upgrade pending: it has the schema of the previous release" : "");
    return EXIT_DONE;
}
