/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Chooses the backend of a command, the file or a server, and checks which options it supports. */
#include "server/cli/backend/session.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/base/str.h"
#include "server/cli/backend/api.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"

#define WHY_SIZE 512

/* ---- output ---------------------------------------------------------------------------- */

void cli_print_escaped(FILE *to, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t plain = 0;
        while (text[plain] >= ' ' && text[plain] < 0x7f)
            plain++;
        fwrite(text, 1, plain, to);
        text += plain;
        left -= plain;
        if (left == 0)
            break;
        size_t step = utf8_char_len(text, left), len = step == 0 ? 1 : step;
        /* On an old terminal, a byte that is not UTF-8 may be a control. */
        bool shown = step > 0 && !utf8_is_unprintable(text, step);

        for (size_t i = 0; i < len; i++)
            fprintf(to, shown ? "%c" : "\\x%02x", (unsigned char)text[i]);
        text += len;
        left -= len;
    }
}

__attribute__((format(printf, 3, 0))) static void print_message(enum ink ink, const char *what,
                                                                const char *format, va_list args)
{
    char why[4096];

    vsnprintf(why, sizeof why, format, args);
    flockfile(stderr);
    fprintf(stderr, "%ssitemapd:%s ", ink_on(stderr, ink), ink_off(stderr));
    cli_print_escaped(stderr, *what != '\0' ? what : "\"\"");
    fputs(": ", stderr);
    cli_print_escaped(stderr, why);
    putc('\n', stderr);
    funlockfile(stderr);
}

int cli_fail(const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(INK_WRONG, what, format, args);
    va_end(args);
    return EXIT_COULD_NOT;
}

int cli_misuse(const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(INK_WRONG, what, format, args);
    va_end(args);
    return EXIT_USAGE;
}

void cli_warn(const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_message(INK_WARNING, what, format, args);
    va_end(args);
}

int cli_misuse_sentence(const char *sentence)
{
    const char *why = strstr(sentence, ": ");
    char what[WHY_SIZE];

    if (why == NULL)
        return cli_misuse("usage", "%s", sentence);
    snprintf(what, sizeof what, "%.*s", (int)(why - sentence), sentence);
    return cli_misuse(what, "%s", why + 2);
}

int cli_fail_file(const char *file, const char *why)
{
    size_t len = strlen(file);

    if (strncmp(why, file, len) == 0 && strncmp(why + len, ": ", 2) == 0)
        why += len + 2;
    return cli_fail(file, "%s", why);
}

void session_user(char *out, size_t size)
{
    struct passwd entry, *found = NULL;
    char strings[4096];

    if (getpwuid_r(getuid(), &entry, strings, sizeof strings, &found) == 0 && found != NULL &&
        entry_check_name(found->pw_name, strlen(found->pw_name)) == RULE_OK)
        snprintf(out, size, "%s", found->pw_name);
    else
        snprintf(out, size, "%lu", (unsigned long)getuid());
}

/* ---- configuration --------------------------------------------------------------------- */

static void report_mistake(void *context, const char *file, unsigned line, const char *message)
{
    char what[WHY_SIZE];

    (void)context;
    if (file == NULL) { /* the message begins with the variable's name */
        cli_misuse_sentence(message);
        return;
    }
    if (line == 0)
        snprintf(what, sizeof what, "%s", file);
    else
        snprintf(what, sizeof what, "%s:%u", file, line);
    cli_fail(what, "%s", message);
}

/* The configuration file to read; NULL: none. */
static const char *config_file(const struct cli *cli)
{
    const char *file = arguments_value(&cli->arguments, "--config");

    if (file == NULL)
        file = getenv("SITEMAPD_CONFIG");
    if (file != NULL && *file != '\0')
        return file;
    return access(SESSION_DEFAULT_CONFIG, F_OK) == 0 ? SESSION_DEFAULT_CONFIG : NULL;
}

/* Whether --database names another file than the configuration does. */
static bool names_other_file(const struct cli *cli)
{
    const char *file = arguments_value(&cli->arguments, "--database");
    struct stat own, other;

    if (file == NULL || strcmp(file, cli->config->database) == 0)
        return false;
    return stat(file, &other) != 0 || stat(cli->config->database, &own) != 0 ||
           own.st_dev != other.st_dev || own.st_ino != other.st_ino;
}

int session_read_config(struct cli *cli, config_report *report, void *context)
{
    const char *file = config_file(cli);
    static const char *const flags[][2] = {{"--database", "catalogue.database"},
                                           {"--shared", "shared.database"},
                                           {"--schema", "shared.schema"}};
    bool good;

    if (report == NULL)
        report = report_mistake;
    cli->config = config_new();
    if (cli->config == NULL)
        return cli_fail("configuration", "out of memory");
    cli->config->no_pipe = cli->no_pipe;
    good = file == NULL || config_read_file(cli->config, file, report, context);
    good = config_read_environment(cli->config, report, context) && good;
    cli->other_file = names_other_file(cli);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const char *value = arguments_value(&cli->arguments, flags[i][0]);

        if (value != NULL && !config_set(cli->config, flags[i][1], value, report, context))
            return EXIT_USAGE;
    }
    return good ? EXIT_DONE : EXIT_COULD_NOT;
}

/* ---- the catalogue --------------------------------------------------------------------- */

/* The server from the command line or the environment; NULL: none. Borrowed. */
static const char *server_named(const struct cli *cli)
{
    const char *url = arguments_value(&cli->arguments, "--server");

    if (url == NULL)
        url = getenv("SITEMAPD_SERVER");
    return url != NULL && *url != '\0' ? url : NULL;
}

const char *session_ca_file(const struct cli *cli)
{
    const char *file = arguments_value(&cli->arguments, "--ca-file");

    if (file == NULL)
        file = getenv("SITEMAPD_CA_FILE");
    return file != NULL && *file != '\0' ? file : NULL;
}

int session_needs_machine(const struct cli *cli)
{
    if (server_named(cli) == NULL)
        return EXIT_DONE;
    return cli_misuse(cli->arguments.command->name,
                      "cannot be combined with --server: it works on local files; run it on the "
                      "server's machine without --server and SITEMAPD_SERVER");
}

int session_refuse_server(const struct cli *cli)
{
    if (!arguments_has(&cli->arguments, "--server"))
        return EXIT_DONE;
    return cli_misuse("--server", "cannot be combined with %s, which does not use a server's API",
                      cli->arguments.command->name);
}

static int open_server(struct cli *cli, const char *url)
{
    static const char *const others[] = {"--config", "--database", "--shared"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (arguments_has(&cli->arguments, others[i]))
            return cli_misuse(others[i], "cannot be combined with --server (%s)", url);
    cli->config = config_new();
    if (cli->config == NULL)
        return cli_fail("configuration", "out of memory");
    return backend_open_server(cli, url, arguments_value(&cli->arguments, "--token-file"),
                               &cli->backend);
}

int session_open(struct cli *cli, bool create)
{
    const char *url = server_named(cli);
    int status;

    if (url != NULL)
        return open_server(cli, url);
    if (arguments_has(&cli->arguments, "--token-file"))
        return cli_misuse("--token-file", "can only be used with --server");
    if (arguments_has(&cli->arguments, "--ca-file"))
        return cli_misuse("--ca-file", "can only be used with --server");
    status = session_read_config(cli, NULL, NULL);
    if (status != EXIT_DONE)
        return status;
    if (!create && access(cli->config->database, F_OK) != 0 && errno == ENOENT)
        return cli_fail(
            cli->config->database,
            "catalogue not found; create one with `sitemapd site add ORIGIN`, or set --database");
    return backend_open_file(cli, create, &cli->backend);
}

bool session_has_sites(struct cli *cli)
{
    const json_t *sites = api_sites(cli->backend);

    return sites == NULL || json_array_size(sites) > 0;
}

void session_done(struct cli *cli)
{
    backend_close(cli->backend);
    config_unref(cli->config);
    arguments_done(&cli->arguments);
}

/* ---- results --------------------------------------------------------------------------- */

/* Whether the option names a list by a path, although there are several sites. */
static bool is_path_of_several(struct cli *cli, const char *option)
{
    const char *name = arguments_value(&cli->arguments, option);

    return name != NULL && name[0] == '/' && json_array_size(api_sites(cli->backend)) > 1;
}

/* Writes what the user can do about a refusal; "": nothing to add. */
static void write_hint(struct cli *cli, const char *loc, const struct change_result *result,
                       char *out, size_t size)
{
    static const char path_of_one[] = "a path is only valid with exactly one site; give the URL";
    struct url url;

    *out = '\0';
    switch (result->code) {
    case RULE_SITE_UNKNOWN:
        if (loc == NULL || url_parse(loc, strlen(loc), &url, NULL) != RULE_OK)
            snprintf(out, size, "; create it with `sitemapd site add ORIGIN`");
        else if (!session_has_sites(cli))
            snprintf(out, size, ": `sitemapd site add %.*s`", (int)url.origin_len, url.text);
        else
            snprintf(out, size,
                     ": `sitemapd site update ORIGIN --add-cross-host %.*s`, then --index URL; "
                     "create another site with `sitemapd site add %.*s`",
                     (int)url.host_len, url.text + url.host_at, (int)url.origin_len, url.text);
        break;
    case RULE_INDEX_UNKNOWN:
        snprintf(out, size, "; %s",
                 is_path_of_several(cli, "--index") ? path_of_one
                                                    : "create it with `sitemapd index add URL`");
        break;
    case RULE_INDEX_NEEDED:
        snprintf(out, size, "; name it with --index URL");
        break;
    case RULE_URLSET_UNKNOWN:
        snprintf(out, size, "; %s",
                 is_path_of_several(cli, "--urlset") ? path_of_one
                                                     : "`sitemapd urlset list` shows them");
        break;
    case RULE_EXTENSION_FOREIGN:
        snprintf(out, size, "; `sitemapd urlset add --with` sets them when it is created");
        break;
    default:
        break;
    }
}

/* The catalogue's sentence ends with the API's way to confirm; the command line has an option. */
static int report_guarded(const char *what, const struct change_result *result)
{
    const char *api = strstr(result->detail, "; max_removed");
    int len = api != NULL ? (int)(api - result->detail) : (int)strlen(result->detail);

    return cli_fail(what, "%.*s (%s); if that is intended, --max-removed %" PRIu64 " allows it",
                    len, result->detail, rule_code_word(result->code), result->would_remove);
}

int session_report(struct cli *cli, const char *loc, const char *what,
                   const struct change_result *result)
{
    const char *detail = result->detail[0] != '\0' ? result->detail : NULL;
    char hint[2 * LOC_MAX_CHARS + 128];

    if (result->status == CATALOGUE_REFUSED && result->code == RULE_SHRINK_GUARD)
        return report_guarded(what, result);
    if (result->status == CATALOGUE_REFUSED) {
        write_hint(cli, loc, result, hint, sizeof hint);
        return cli_fail(what, "%s (%s)%s",
                        detail != NULL ? detail : rule_code_sentence(result->code),
                        rule_code_word(result->code), hint);
    }
    if (result->precondition_failed)
        return cli_fail(what, "conflict: has changed since the state given to --if-match "
                              "(precondition-failed); "
                              "nothing was applied; `sitemapd index list --json` shows its state");
    if (result->conflict != NULL)
        return cli_fail(what, "%s (%s)", result->detail, result->conflict);
    if (result->managed)
        return cli_fail(
            what, "is read-only here: it is managed by the configuration file; change it there");
    return cli_fail(what, "%s",
                    detail != NULL ? detail : catalogue_status_row(result->status)->sentence);
}

int session_do(struct cli *cli, const char *method, struct str *target, json_t *body,
               const char *what, const char *done)
{
    int status = api_write(cli->backend, method, target, body, what, NULL);

    if (status == EXIT_DONE)
        printf("%s: %s\n", what, done);
    return status;
}

/* ---- options that several commands take ------------------------------------------------ */

int session_max_removed(const struct cli *cli, int64_t *out)
{
    const char *text = arguments_value(&cli->arguments, "--max-removed");
    uint64_t value;

    *out = MAX_REMOVED_GUARDED;
    if (text == NULL)
        return EXIT_DONE;
    if (!query_number(text, INT64_MAX, &value))
        return cli_misuse("--max-removed", "\"%s\" must be a number", text);
    *out = (int64_t)value;
    return EXIT_DONE;
}

int session_add_set_options(const struct cli *cli, struct str *target)
{
    int64_t max_removed;
    int status = session_max_removed(cli, &max_removed);

    if (status == EXIT_DONE && max_removed >= 0)
        target_add_number(target, "max_removed", max_removed);
    if (arguments_has(&cli->arguments, "--dry-run"))
        target_add(target, "dry_run", "1");
    return status;
}
