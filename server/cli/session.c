#include "server/cli/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/suggest.h"
#include "server/base/str.h"
#include "server/cli/output.h"
#include "server/rules/limits.h"
#include "server/rules/query.h"

/* Ends `name: what; ` with the nearest name, or else with where all of them are shown. */
static int tell_unknown(const char *name, const char *what, const char *near, const char *shown_by)
{
    if (near != NULL && *near != '\0')
        return cli_fail(name, "%s; did you mean %s?", what, near);
    return cli_fail(name, "%s; `sitemapd %s` shows them", what, shown_by);
}

int names_site(const struct registry *registry, const char *origin,
               const struct registry_site **out)
{
    struct suggestion near = {0};
    struct url url;
    enum rule_code code = url_parse_origin(origin, strlen(origin), &url);

    *out = NULL;
    if (code != RULE_OK && strstr(origin, "://") == NULL) {
        for (size_t i = 0; i < registry->site_count; i++)
            if (strcmp(strstr(registry->sites[i].origin, "://") + 3, origin) == 0)
                return cli_fail(origin, "%s (%s); did you mean %s?", rule_code_sentence(code),
                                rule_code_word(code), registry->sites[i].origin);
    }
    if (code != RULE_OK)
        return cli_fail(origin, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    *out = registry_site_by_origin(registry, url.text);
    if (*out != NULL)
        return EXIT_DONE;
    for (size_t i = 0; i < registry->site_count; i++)
        suggest_consider(&near, url.text, registry->sites[i].origin);
    return tell_unknown(url.text, "no site of this catalogue", near.word, "site list");
}

/* The index whose URL, or path where `name` is one, is nearest; "" where none is near. */
static void nearest_index(const struct registry *registry, const char *name, struct str *out)
{
    struct str url = STR_INIT;
    size_t nearest = SIZE_MAX;

    for (size_t i = 0; i < registry->site_count; i++)
        for (size_t j = 0; j < registry->sites[i].index_count; j++) {
            const struct registry_index *index = &registry->sites[i].indexes[j];

            str_clear(&url);
            if (name[0] == '/')
                str_append_text(&url, index->path);
            else
                text_append_index_url(&url, &registry->sites[i], index);
            if (!suggest_is_close(name, str_text(&url)) ||
                suggest_distance(name, str_text(&url)) >= nearest)
                continue;
            nearest = suggest_distance(name, str_text(&url));
            str_clear(out);
            str_append_text(out, str_text(&url));
        }
    str_done(&url);
}

int names_index(const struct registry *registry, const char *name,
                const struct registry_index **out)
{
    struct str near = STR_INIT;
    int status;

    *out = registry_index_by_name(registry, name, NULL);
    if (*out != NULL)
        return EXIT_DONE;
    if (name[0] == '/' && registry->site_count > 1)
        return cli_fail(name, "a path names an index only where there is one site; give its URL");
    nearest_index(registry, name, &near);
    status = tell_unknown(name, "no index of this catalogue", str_text(&near), "index list");
    str_done(&near);
    return status;
}

int names_index_option(const struct cli *cli, const struct registry *registry,
                       const struct registry_index **out)
{
    const char *name = arguments_value(&cli->arguments, "--index");

    *out = NULL;
    return name == NULL ? EXIT_DONE : names_index(registry, name, out);
}

int names_no_page(const struct registry_site *site, const char *name, const char *path)
{
    struct suggestion near = {0};

    for (size_t i = 0; i < site->index_count; i++)
        suggest_consider(&near, path, site->indexes[i].path);
    return tell_unknown(name, "no page of an index", near.word, "index list");
}

int names_no_token(const struct registry *registry, const char *name)
{
    struct suggestion near = {0};

    for (size_t i = 0; i < registry->token_count; i++)
        suggest_consider(&near, name, registry->tokens[i].name);
    return tell_unknown(name, "no token of this catalogue", near.word, "token list");
}

#define WHY_SIZE 512

/* ---- telling --------------------------------------------------------------------------- */

void cli_print_escaped(FILE *to, const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t step = utf8_char_len(text, left), len = step == 0 ? 1 : step;
        /* A byte that is no UTF-8 may be a control of its own where the terminal is an old one. */
        bool shown = step > 0 && !utf8_is_control(text, step);

        for (size_t i = 0; i < len; i++)
            fprintf(to, shown ? "%c" : "\\x%02x", (unsigned char)text[i]);
        text += len;
        left -= len;
    }
}

__attribute__((format(printf, 3, 0))) static void tell(enum ink ink, const char *what,
                                                       const char *format, va_list args)
{
    char why[4096];

    vsnprintf(why, sizeof why, format, args);
    flockfile(stderr);
    fprintf(stderr, "%ssitemapd:%s ", ink_on(stderr, ink), ink_off(stderr));
    cli_print_escaped(stderr, what);
    fputs(": ", stderr);
    cli_print_escaped(stderr, why);
    putc('\n', stderr);
    funlockfile(stderr);
}

int cli_fail(const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tell(INK_WRONG, what, format, args);
    va_end(args);
    return EXIT_COULD_NOT;
}

int cli_misuse(const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tell(INK_WRONG, what, format, args);
    va_end(args);
    return EXIT_USAGE;
}

void cli_note(const char *what, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tell(INK_WARNING, what, format, args);
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

/* ---- configuration --------------------------------------------------------------------- */

static void tell_mistake(void *context, const char *file, unsigned line, const char *message)
{
    char what[WHY_SIZE];

    (void)context;
    if (file == NULL) { /* begins with the variable's name */
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

int session_read_config(struct cli *cli, config_report *report, void *context)
{
    const char *file = config_file(cli);
    const char *database = arguments_value(&cli->arguments, "--database");
    bool good;

    if (report == NULL)
        report = tell_mistake;
    cli->config = config_new();
    if (cli->config == NULL)
        return cli_fail("configuration", "out of memory");
    cli->config->again = cli->again;
    good = file == NULL || config_read_file(cli->config, file, report, context);
    good = config_read_environment(cli->config, report, context) && good;
    if (database != NULL &&
        !config_set(cli->config, "catalogue.database", database, report, context))
        return EXIT_USAGE;
    return good ? EXIT_DONE : EXIT_COULD_NOT;
}

/* ---- the catalogue --------------------------------------------------------------------- */

int session_open(struct cli *cli, bool create)
{
    int status = session_read_config(cli, NULL, NULL);
    char why[WHY_SIZE];

    if (status != EXIT_DONE)
        return status;
    const struct config *config = cli->config;
    struct catalogue_options options = {
        .path = config->database,
        .must_exist = !create,
        .write_timeout_ms = config->write_timeout_ms,
        .max_queued = config->max_queued_writes,
        .shrink_percent = config->shrink_guard_percent,
        .default_max_pages = LIMIT_SITE_PAGES,
    };
    if (!create && access(config->database, F_OK) != 0 && errno == ENOENT)
        return cli_fail(config->database, "no catalogue there; make one with `sitemapd site add "
                                          "ORIGIN`, or name another with --database");
    if (catalogue_open(&options, &cli->catalogue, why, sizeof why) != CATALOGUE_OK)
        return cli_fail_file(config->database, why);
    return EXIT_DONE;
}

struct catalogue_view *session_view(struct cli *cli, struct registry **registry)
{
    struct catalogue_view *view = NULL;
    enum catalogue_status status = catalogue_view_begin(cli->catalogue, &view);

    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, registry);
    if (status == CATALOGUE_OK)
        return view;
    session_unreadable(cli, status);
    if (view != NULL)
        catalogue_view_end(view);
    return NULL;
}

struct registry *session_registry(struct cli *cli)
{
    struct registry *registry;
    struct catalogue_view *view = session_view(cli, &registry);

    if (view == NULL)
        return NULL;
    catalogue_view_end(view);
    return registry;
}

bool session_has_sites(struct cli *cli)
{
    struct registry *registry = session_registry(cli);
    bool has = registry == NULL || registry->site_count > 0;

    registry_unref(registry);
    return has;
}

void session_done(struct cli *cli)
{
    if (cli->catalogue != NULL)
        catalogue_close(cli->catalogue);
    config_unref(cli->config);
    arguments_done(&cli->arguments);
}

/* ---- results --------------------------------------------------------------------------- */

static const char *status_sentence(enum catalogue_status status)
{
    switch (status) {
    case CATALOGUE_OK:
    case CATALOGUE_REFUSED:
        return "refused";
    case CATALOGUE_NOT_FOUND:
        return "not found";
    case CATALOGUE_CONFLICT:
        return "exists already";
    case CATALOGUE_FULL:
        return "a limit of the catalogue is reached";
    case CATALOGUE_BUSY:
        return "another process is writing to the catalogue; try again";
    case CATALOGUE_UNAVAILABLE:
        return "the catalogue cannot be read or written";
    case CATALOGUE_NEWER:
        return "the catalogue was made by a newer version of sitemapd";
    case CATALOGUE_NO_SPACE:
        return "no space left for the catalogue";
    case CATALOGUE_CORRUPT:
        return "the catalogue is damaged; `sitemapd check` tells more";
    case CATALOGUE_NO_MEMORY:
        return "out of memory";
    case CATALOGUE_CANCELLED:
        return "cancelled";
    }
    return "failed";
}

int session_unreadable(const struct cli *cli, enum catalogue_status status)
{
    return cli_fail(cli->config->database, "%s", status_sentence(status));
}

/* What the user may do about a refusal; "" where there is nothing to add. */
static void write_hint(struct cli *cli, const struct change *change,
                       const struct change_result *result, char *out, size_t size)
{
    const char *loc = change->entry.loc;
    struct url url;

    *out = '\0';
    switch (result->code) {
    case RULE_SITE_UNKNOWN:
        if (loc == NULL || url_parse(loc, strlen(loc), &url, NULL) != RULE_OK)
            snprintf(out, size, "; make it with `sitemapd site add ORIGIN`");
        else if (!session_has_sites(cli))
            snprintf(out, size, ": `sitemapd site add %.*s`", (int)url.origin_len, url.text);
        else
            snprintf(out, size,
                     ": `sitemapd site update ORIGIN --add-cross-host %.*s`, then --index URL; "
                     "another site is made with `sitemapd site add %.*s`",
                     (int)url.host_len, url.text + url.host_at, (int)url.origin_len, url.text);
        break;
    case RULE_INDEX_UNKNOWN:
        snprintf(out, size, "; make it with `sitemapd index add URL`");
        break;
    case RULE_INDEX_NEEDED:
        snprintf(out, size, "; name it with --index URL");
        break;
    default:
        break;
    }
}

/* The catalogue's sentence ends with how the API approves; here it is an option. */
static int tell_guarded(const char *what, const struct change_result *result)
{
    const char *api = strstr(result->detail, "; max_removed");
    int len = api != NULL ? (int)(api - result->detail) : (int)strlen(result->detail);

    return cli_fail(what, "%.*s (%s); if that is meant, --max-removed %" PRIu64 " approves it", len,
                    result->detail, rule_code_word(result->code), result->would_remove);
}

int session_tell(struct cli *cli, const struct change *change, const char *what,
                 const struct change_result *result)
{
    const char *detail = result->detail[0] != '\0' ? result->detail : NULL;
    char hint[2 * LOC_MAX_CHARS + 128];

    if (result->status == CATALOGUE_REFUSED && result->code == RULE_SHRINK_GUARD)
        return tell_guarded(what, result);
    if (result->status == CATALOGUE_REFUSED) {
        write_hint(cli, change, result, hint, sizeof hint);
        return cli_fail(what, "%s (%s)%s",
                        detail != NULL ? detail : rule_code_sentence(result->code),
                        rule_code_word(result->code), hint);
    }
    if (result->managed)
        return cli_fail(what, "belongs to the configuration file, which alone can change it");
    return cli_fail(what, "%s", detail != NULL ? detail : status_sentence(result->status));
}

int session_apply(struct cli *cli, const struct change *change, const char *what,
                  struct change_result *result)
{
    if (catalogue_apply(cli->catalogue, change, result) == CATALOGUE_OK)
        return EXIT_DONE;
    return session_tell(cli, change, what, result);
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
