/* A server through its API, in the words of db/. Changes, the registry and the history have files
 * of their own (server_parts.h); here stands what is read besides, and how the server is opened. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli/backend/backend.h"
#include "server/cli/backend/server_parts.h"

struct server_backend {
    struct backend base; /* first */
    struct server server;
    json_t *indexes; /* as told last: an array; NULL: not asked yet */
    struct str url;  /* of the index that an entry was put into */
    struct str name; /* the token's; empty: not asked yet */
};

static struct server_backend *of(struct backend *b)
{
    return (struct server_backend *)b;
}

static enum catalogue_status apply(struct backend *b, const struct change *change,
                                   backend_progress *progress, void *context,
                                   struct change_result *result)
{
    (void)progress, (void)context;
    return server_apply(&of(b)->server, change, &of(b)->url, result);
}

static struct spool *make_spool(struct backend *b, uint64_t max_bytes)
{
    const char *folder = getenv("TMPDIR");

    (void)b;
    return spool_new(folder != NULL && *folder != '\0' ? folder : "/tmp", max_bytes);
}

static struct registry *read_registry(struct backend *b, unsigned want)
{
    struct server_backend *s = of(b);

    json_decref(s->indexes);
    return server_registry(&s->server, (want & REGISTRY_ROBOTS) != 0, &s->indexes);
}

static int read_page(struct backend *b, const struct registry_index *index, uint32_t number,
                     struct backend_page *out)
{
    const struct server_backend *s = of(b);
    json_t *each, *page;
    size_t i, k;

    *out = (struct backend_page){0};
    json_array_foreach(s->indexes, i, each)
    {
        if (strtoll(member_text(each, "id"), NULL, 10) != index->id)
            continue;
        json_array_foreach(json_object_get(each, "pages"), k,
                           page) if (member_number(page, "number") == number) *out =
            (struct backend_page){member_number(page, "entries"), member_number(page, "bytes"),
                                  member_time(page, "changed_at"),
                                  json_is_null(json_object_get(page, "entries"))};
    }
    return EXIT_DONE;
}

static int read_state(struct backend *b, const struct registry_index *index,
                      char out[INDEX_STATE_SIZE])
{
    const struct server_backend *s = of(b);
    json_t *each;
    size_t i;

    out[0] = '\0';
    json_array_foreach(s->indexes, i, each)
    {
        if (strtoll(member_text(each, "id"), NULL, 10) == index->id)
            snprintf(out, INDEX_STATE_SIZE, "%s", member_text(each, "state"));
    }
    return EXIT_DONE;
}

/* ---- streams --------------------------------------------------------------------------- */

/* As the server told it with the registry. */
static const char *url_of(const struct server_backend *s, const struct registry_index *index)
{
    json_t *each;
    size_t i;

    json_array_foreach(s->indexes, i, each)
    {
        if (strtoll(member_text(each, "id"), NULL, 10) == index->id)
            return member_text(each, "url");
    }
    return "";
}

static bool take_text(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    struct str *out = context;

    (void)reply;
    str_append(out, bytes, len);
    return !out->failed;
}

static int render(struct backend *b, const struct registry_index *index, uint32_t number,
                  bool *found, struct str *out)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    char page[16];
    json_t *answer = NULL;

    snprintf(page, sizeof page, "%" PRIu32, number);
    str_append_text(&target, "/v1/render");
    target_add(&target, index->kind == LIST_URLSET ? "urlset" : "index", url_of(s, index));
    target_add(&target, "page", page);
    *found =
        server_stream(&s->server, str_text(&target), "application/xml", take_text, out, &answer) &&
        server_is_good(&s->server);
    str_done(&target);
    if (!*found && strcmp(member_text(answer, "code"), "page-empty") != 0)
        return server_report(&s->server, answer);
    json_decref(answer);
    return EXIT_DONE;
}

/* The receiver of a list. */
struct listed {
    backend_entry *each;
    void *context;
};

static enum line_verdict report_line(void *context, const json_t *line)
{
    const struct listed *l = context;
    struct shown_entry kept;
    struct entry_shown entry;
    enum line_verdict verdict = LINE_BROKEN;

    if (member_entry(line, &entry, &kept))
        verdict = l->each(l->context, &entry) ? LINE_TAKEN : LINE_ENOUGH;
    shown_entry_done(&kept);
    return verdict;
}

static int list(struct backend *b, const struct backend_list *wanted, backend_entry *each,
                void *context)
{
    struct server_backend *s = of(b);
    struct listed listed = {.each = each, .context = context};
    struct str target = STR_INIT;
    json_t *answer = NULL;
    int status = EXIT_DONE;

    bool pages = wanted->index != NULL && wanted->index->kind == LIST_URLSET;

    str_append_text(&target, pages ? "/v1/urls" : "/v1/sitemaps");
    target_add(&target, pages ? "urlset" : "index",
               wanted->index != NULL ? url_of(s, wanted->index) : NULL);
    target_add(&target, "prefix", wanted->prefix);
    target_add(&target, "contains", wanted->filter.contains);
    target_add(&target, "warned", wanted->filter.warned ? "1" : NULL);
    if (!server_lines(&s->server, str_text(&target), report_line, &listed, &answer))
        status = server_report(&s->server, answer);
    else
        json_decref(answer);
    str_done(&target);
    return status;
}

static const char *owner(struct backend *b)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;

    if (s->name.len > 0)
        return str_text(&s->name);
    if (!server_ask(&s->server, "GET", "/v1/token", NULL, &answer) || !server_is_good(&s->server)) {
        server_report(&s->server, answer);
        return NULL;
    }
    str_append_text(&s->name, member_text(answer, "name"));
    json_decref(answer);
    return str_text(&s->name);
}

/* ---- the history ----------------------------------------------------------------------- */

/* What the history does not have is reported as with a file. */
static int report_of(struct server_backend *s, const char *what, json_t *answer)
{
    const char *word = member_text(answer, "code"), *detail = member_text(answer, "detail");

    if (!(strcmp(word, "not-found") == 0 && strncmp(detail, "the history ", 12) == 0) &&
        strcmp(word, "diff-too-large") != 0)
        return server_report(&s->server, answer);
    cli_fail(what, "%s", detail);
    json_decref(answer);
    return EXIT_COULD_NOT;
}

static int history(struct backend *b, const struct history_query *query, backend_change *each,
                   void *context, struct backend_reach *reach)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;

    if (server_history(&s->server, query, each, context, reach, &answer))
        return EXIT_DONE;
    return report_of(s, b->name, answer);
}

static int change_of(struct backend *b, uint64_t revision, backend_change *each,
                     backend_row *each_row, void *context)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;
    char what[40];

    snprintf(what, sizeof what, "revision %" PRIu64, revision);
    if (server_change(&s->server, revision, each, each_row, context, &answer))
        return EXIT_DONE;
    return report_of(s, what, answer);
}

static int diff(struct backend *b, const struct backend_diff *wanted, backend_row *each,
                void *context)
{
    struct server_backend *s = of(b);
    json_t *answer = NULL;
    char what[40];

    snprintf(what, sizeof what, "revision %" PRIu64, wanted->from);
    if (server_diff(&s->server, wanted, each, context, &answer))
        return EXIT_DONE;
    return report_of(s, what, answer);
}

static struct backend_crawler read_crawler(const json_t *crawler)
{
    const json_t *lag = json_object_get(crawler, "lag"), *day;
    struct backend_crawler told = {
        .name = member_text(crawler, "name"),
        .verified = json_is_true(json_object_get(crawler, "verified")),
        .last_fetch_at = member_time(crawler, "last_fetch_at"),
        .seen_up_to = member_time(crawler, "seen_up_to"),
        .stale_since = member_time(crawler, "stale_since"),
        .pages = member_number(crawler, "pages"),
        .current = member_number(crawler, "current"),
        .stale = member_number(crawler, "stale"),
        .never = member_number(crawler, "never"),
        .lagged = member_number(lag, "changes"),
        .lag_p50 = member_number(lag, "p50_s"),
        .lag_p90 = member_number(lag, "p90_s"),
        .lag_max = member_number(lag, "max_s"),
    };
    size_t i;

    json_array_foreach(json_object_get(crawler, "days"), i, day)
    {
        told.ok += member_number(day, "ok");
        told.not_modified += member_number(day, "not_modified");
        told.other += member_number(day, "other");
        told.impostors += member_number(day, "impostors");
    }
    return told;
}

static int crawlers(struct backend *b, const struct registry_site *site, backend_crawler_each *each,
                    void *context)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    json_t *answer = NULL, *crawlers, *crawler;
    size_t i;

    str_append_text(&target, "/v1/crawlers");
    target_add(&target, "site", site != NULL ? site->origin : NULL);
    if (!server_get(&s->server, &target, &answer) ||
        (crawlers = server_array(&s->server, &answer, "crawlers")) == NULL)
        return server_report(&s->server, answer);
    json_array_foreach(crawlers, i, crawler)
    {
        const struct backend_crawler told = read_crawler(crawler);

        each(context, &told);
    }
    json_decref(answer);
    return EXIT_DONE;
}

static int engines(struct backend *b, const struct registry_site *site, const char *name,
                   json_t **out)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    json_t *answer = NULL;

    str_append_text(&target, "/v1/engines");
    if (name != NULL)
        target_segment(&target, name);
    str_append_text(&target, name != NULL ? "/sitemaps" : "");
    target_add(&target, "site", site != NULL ? site->origin : NULL);
    if (name != NULL) {
        *out = server_get_all(&s->server, str_text(&target), "sites");
        str_done(&target);
        return *out != NULL ? EXIT_DONE : EXIT_COULD_NOT;
    }
    if (!server_get(&s->server, &target, &answer) ||
        (*out = server_array(&s->server, &answer, "engines")) == NULL)
        return server_report(&s->server, answer);
    json_incref(*out);
    json_decref(answer);
    return EXIT_DONE;
}

static int crawler_pages(struct backend *b, const char *name, bool stale,
                         backend_crawler_page_each *each, void *context)
{
    struct str target = STR_INIT;
    json_t *all, *page;
    size_t i;

    str_append_text(&target, "/v1/crawlers");
    target_segment(&target, name);
    str_append_text(&target, "/pages");
    target_add(&target, "stale", stale ? "1" : NULL);
    all = server_get_all(&of(b)->server, str_text(&target), "pages");
    str_done(&target);
    if (all == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(all, i, page)
    {
        const struct backend_crawler_page told = {
            .url = member_text(page, "url"),
            .status = (unsigned)member_number(page, "status"),
            .fetched_at = member_time(page, "fetched_at"),
            .held_changed_at = member_time(page, "held_changed_at"),
            .changed_at = member_time(page, "changed_at"),
            .stale_since = member_time(page, "stale_since"),
        };

        each(context, &told);
    }
    json_decref(all);
    return EXIT_DONE;
}

static const char *index_url(struct backend *b, const struct change_result *result)
{
    (void)result;
    return str_text(&of(b)->url);
}

static bool take_copy(void *context, const struct fetch_reply *reply, const char *bytes, size_t len)
{
    (void)reply;
    return fwrite(bytes, 1, len, context) == len;
}

/* For the owner alone: it has the hashes of tokens. */
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

/* Into a file of another name first, so that none is left that is not whole. */
static int backup(struct backend *b, const char *file)
{
    struct server_backend *s = of(b);
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
    whole = server_stream(&s->server, "/v1/backup", "application/octet-stream", take_copy, out,
                          &answer) &&
            server_is_good(&s->server);
    if (!whole && s->server.status == 0 && ferror(out))
        status = cli_fail(file, "write failed: the output is incomplete (no space left?)");
    else if (!whole)
        status = server_report(&s->server, answer);
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

/* ---- tokens, sources, status ----------------------------------------------------------- */

static int tokens(struct backend *b, backend_token_each *each, void *context)
{
    json_t *all = server_get_all(&of(b)->server, "/v1/tokens", "tokens"), *token;
    size_t i;

    if (all == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(all, i, token)
    {
        const struct backend_token shown = {
            .name = member_text(token, "name"),
            .site = member_text_or_null(token, "site"),
            .all_sites = member_text_or_null(token, "site") == NULL,
            .prefix = member_text_or_null(token, "prefix"),
            .role = member_text(token, "role"),
            .own = json_is_true(json_object_get(token, "own")),
            .managed = json_is_true(json_object_get(token, "managed")),
            .created_at = member_text(token, "created_at"),
            .expires_at = member_text_or_null(token, "expires_at"),
            .last_used_at = member_text_or_null(token, "last_used_at"),
        };

        each(context, &shown);
    }
    json_decref(all);
    return EXIT_DONE;
}

/* The sources as the server tells them; NULL, and told, where it does not. */
static json_t *read_sources(struct server_backend *s)
{
    json_t *answer = NULL, *sources;

    if (!server_ask(&s->server, "GET", "/v1/sources", NULL, &answer) ||
        !server_is_good(&s->server) ||
        (sources = server_array(&s->server, &answer, "sources")) == NULL) {
        server_report(&s->server, answer);
        return NULL;
    }
    json_incref(sources);
    json_decref(answer);
    return sources;
}

static int sources(struct backend *b, backend_source_each *each, void *context)
{
    json_t *all = read_sources(of(b)), *source;
    size_t i;

    json_array_foreach(all, i, source)
    {
        const struct backend_source_made shown = {
            .name = member_text(source, "name"),
            .site = member_text_or_null(source, "site"),
            .upstream = member_text_or_null(source, "upstream"),
            .directory = member_text_or_null(source, "directory"),
            .url = member_text_or_null(source, "url"),
            .index = member_text_or_null(source, "index"),
            .managed = json_is_true(json_object_get(source, "managed")),
        };

        each(context, &shown);
    }
    json_decref(all);
    return all != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

/* What is wrong with single files, as a scan on the machine tells it. */
static void report_files(const json_t *source, const char *member, const char *what)
{
    json_t *file;
    size_t i;

    json_array_foreach(json_object_get(source, member), i, file)
    {
        printf("%-9s ", what);
        cli_print_escaped(stdout, member_text(file, "path"));
        if (member_number(file, "line") > 0)
            printf(":%" PRIu64 ":%" PRIu64, member_number(file, "line"),
                   member_number(file, "column"));
        printf(": %s", member_text(file, "code"));
        if (*member_text(file, "detail") != '\0') {
            printf(": ");
            cli_print_escaped(stdout, member_text(file, "detail"));
        }
        putchar('\n');
    }
}

static void take_splits(const json_t *splits, struct split_sums *out)
{
    out->files = member_number(splits, "files");
    out->created = member_number(splits, "created");
    out->updated = member_number(splits, "updated");
    out->removed = member_number(splits, "removed");
}

static int scan(struct backend *b, const char *name, int64_t max_removed, bool dry_run,
                struct change_result *result, struct backend_scanned *out)
{
    struct server_backend *s = of(b);
    struct str target = STR_INIT;
    json_t *answer = NULL, *sources, *source;
    char number[24];
    bool scanned;
    size_t i;

    snprintf(number, sizeof number, "%" PRId64, max_removed);
    str_append_text(&target, "/v1/sources");
    target_segment(&target, name);
    str_append_text(&target, "/scan");
    target_add(&target, "max_removed", max_removed >= 0 ? number : NULL);
    target_add(&target, "dry_run", dry_run ? "1" : NULL);
    scanned = server_ask(&s->server, "POST", str_text(&target), NULL, &answer) &&
              server_is_good(&s->server);
    str_done(&target);
    if (!scanned && strcmp(member_text(answer, "code"), "not-found") == 0) {
        json_decref(answer);
        return cli_misuse("scan", "source not found on the server: \"%s\"", name);
    }
    if (!scanned)
        return server_report(&s->server, answer);
    server_counts(answer, result);
    result->would_remove = member_number(answer, "held_removals");
    take_splits(json_object_get(answer, "splits"), &result->splits);
    json_decref(answer);
    sources = read_sources(s);
    json_array_foreach(sources, i, source)
    {
        if (strcmp(member_text(source, "name"), name) != 0)
            continue;
        out->problems = member_number(source, "problems_total");
        out->remarked = member_number(source, "remarked");
        out->of_list = member_text_or_null(source, "upstream") != NULL;
        report_files(source, "problems", "problem");
        report_files(source, "remarks", "remark");
    }
    json_decref(sources);
    return sources != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

static void take_reasons(const json_t *ready, struct str *out)
{
    json_t *reason;
    size_t i;

    json_array_foreach(json_object_get(ready, "reasons"), i, reason)
    {
        str_append_format(out, "%s (%s)\n", member_text(reason, "detail"),
                          member_text(reason, "code"));
    }
}

static uint64_t count_bad(const json_t *checks)
{
    uint64_t counts[CHECK_STATES];

    for (unsigned i = 0; i < CHECK_STATES; i++)
        counts[i] = member_number(checks, check_state_word((enum check_state)i));
    return check_count_bad(counts);
}

static int status(struct backend *b, struct backend_status *out)
{
    struct server_backend *s = of(b);
    json_t *ready = NULL, *api = NULL, *sources, *source;
    size_t i;

    if (!server_ask(&s->server, "GET", "/readyz", NULL, &ready))
        return server_report(&s->server, ready);
    out->healthy = s->server.status == 200 && strcmp(member_text(ready, "status"), "ok") == 0;
    take_reasons(ready, &out->reasons);
    json_decref(ready);
    if (!server_ask(&s->server, "GET", "/openapi.json", NULL, &api) || !server_is_good(&s->server))
        return server_report(&s->server, api);
    snprintf(out->version, sizeof out->version, "%s",
             member_text(json_object_get(api, "info"), "version"));
    json_decref(api);
    sources = read_sources(s);
    json_array_foreach(sources, i, source)
    {
        const json_t *checks = json_object_get(source, "checks");
        const struct backend_source told = {
            .name = member_text(source, "name"),
            .of_list = strcmp(member_text(source, "kind"), "remote") == 0,
            .good_at = member_time(source, "last_good_scan_at"),
            .files = member_number(source, "files"),
            .listed = member_number(source, "listed"),
            .quarantined = member_number(source, "quarantined"),
            .held = member_number(source, "held_removals"),
            .remarked = member_number(source, "remarked"),
            .bad = count_bad(checks),
            .failure = member_text_or_null(source, "failure"),
        };

        out->source(out->context, &told);
    }
    json_decref(sources);
    return sources != NULL ? EXIT_DONE : EXIT_COULD_NOT;
}

/* ---- opening --------------------------------------------------------------------------- */

static void close_server(struct backend *b)
{
    struct server_backend *s = of(b);

    json_decref(s->indexes);
    server_done(&s->server);
    str_done(&s->url);
    str_done(&s->name);
    free(s);
}

/* The first line of the file. */
static int read_token_file(const char *name, char out[SERVER_TOKEN_SIZE])
{
    FILE *file = fopen(name, "re");

    if (file == NULL)
        return cli_fail(name, "cannot be read");
    if (fgets(out, SERVER_TOKEN_SIZE, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    fclose(file);
    return out[0] != '\0'
               ? EXIT_DONE
               : cli_fail(name,
                          "the token is missing: the first line of the file must be the token");
}

int server_read_token(const char *file, const char *url, char out[SERVER_TOKEN_SIZE])
{
    const char *token = getenv("SITEMAPD_TOKEN");

    if (file != NULL)
        return read_token_file(file, out);
    if (token == NULL || *token == '\0')
        return cli_fail(url, "the token is missing: set SITEMAPD_TOKEN or --token-file FILE");
    if (strlen(token) >= SERVER_TOKEN_SIZE)
        return cli_fail("SITEMAPD_TOKEN", "is invalid: too long for a token");
    strcpy(out, token);
    return EXIT_DONE;
}

int backend_open_server(struct cli *cli, const char *url, struct backend **out)
{
    static const struct backend_calls calls = {
        .apply = apply,
        .spool = make_spool,
        .registry = read_registry,
        .page = read_page,
        .state = read_state,
        .list = list,
        .history = history,
        .change_of = change_of,
        .diff = diff,
        .render = render,
        .backup = backup,
        .tokens = tokens,
        .sources = sources,
        .scan = scan,
        .crawlers = crawlers,
        .engines = engines,
        .crawler_pages = crawler_pages,
        .status = status,
        .index_url = index_url,
        .owner = owner,
        .close = close_server,
    };
    char token[SERVER_TOKEN_SIZE];
    struct server_backend *s;
    int status = server_read_token(arguments_value(&cli->arguments, "--token-file"), url, token);

    if (status != EXIT_DONE)
        return status;
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return cli_fail(url, "out of memory");
    if (!server_init(&s->server, url, token, session_ca_file(cli))) {
        cli_fail(url, "%s", s->server.why);
        explicit_bzero(token, sizeof token);
        server_done(&s->server);
        free(s);
        return EXIT_COULD_NOT;
    }
    explicit_bzero(token, sizeof token);
    s->base = (struct backend){.calls = &calls, .cli = cli, .name = s->server.origin.text};
    *out = &s->base;
    return EXIT_DONE;
}
