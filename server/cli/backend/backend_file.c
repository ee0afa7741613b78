/* The catalogue file, also while a server works on it. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/shared.h"
#include "server/cli/backend/backend.h"
#include "server/cli/backend/file_crawlers.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/engines/report/engine_report.h"
#include "server/pages/publisher.h"
#include "server/rules/lastmod.h"
#include "server/rules/limits.h"
#include "server/sources/reasons.h"

#define WHY_SIZE 512

struct file_backend {
    struct backend base;          /* first */
    struct catalogue_view *view;  /* held for what is read next; NULL: none */
    struct str url;               /* of the index told last */
    char user[SESSION_USER_SIZE]; /* who runs the command, for the history */
};

static struct file_backend *of(struct backend *b)
{
    return (struct file_backend *)b;
}

static int unreadable(struct backend *b, enum catalogue_status status)
{
    return status == CATALOGUE_OK ? EXIT_DONE
                                  : cli_fail(b->name, "%s", catalogue_status_row(status)->sentence);
}

/* ---- views ----------------------------------------------------------------------------- */

static void let_go(struct file_backend *f)
{
    if (f->view != NULL)
        catalogue_view_end(f->view);
    f->view = NULL;
}

/* The view that is held, or one for this call; give_back is due. */
static enum catalogue_status take(struct file_backend *f, struct catalogue_view **out)
{
    *out = f->view;
    return *out != NULL ? CATALOGUE_OK : catalogue_view_begin(f->base.catalogue, out);
}

static void give_back(struct file_backend *f, struct catalogue_view *view)
{
    if (view != NULL && view != f->view)
        catalogue_view_end(view);
}

static struct registry *read_registry(struct backend *b, unsigned want)
{
    struct file_backend *f = of(b);
    struct catalogue_view *view = NULL;
    struct registry *registry = NULL;
    enum catalogue_status status;

    let_go(f);
    status = catalogue_view_begin(f->base.catalogue, &view);
    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    if (status == CATALOGUE_OK && (want & REGISTRY_HELD) != 0)
        f->view = view;
    else if (view != NULL)
        catalogue_view_end(view);
    unreadable(b, status);
    return status == CATALOGUE_OK ? registry : NULL;
}

static int read_page(struct backend *b, const struct registry_index *index, uint32_t number,
                     struct backend_page *out)
{
    struct catalogue_view *view;
    struct page_record page;
    enum catalogue_status status = take(of(b), &view);

    *out = (struct backend_page){0};
    if (status == CATALOGUE_OK)
        status = catalogue_view_page(view, index->id, number, &page);
    give_back(of(b), view);
    if (status == CATALOGUE_OK && !page.removed)
        *out = (struct backend_page){page.entries, page.bytes, page.changed_at, false};
    return unreadable(b, status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status);
}

static int read_state(struct backend *b, const struct registry_index *index,
                      char out[INDEX_STATE_SIZE])
{
    struct catalogue_view *view;
    enum catalogue_status status = take(of(b), &view);

    out[0] = '\0';
    if (status == CATALOGUE_OK)
        status = catalogue_view_index_state(view, index->id, out);
    give_back(of(b), view);
    return unreadable(b, status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status);
}

static int render(struct backend *b, const struct registry_index *index, uint32_t number,
                  bool *found, struct str *out)
{
    struct catalogue_view *view;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK)
        status = publish_render_page(view, index->id, number, b->cli->config->page_style, out);
    give_back(of(b), view);
    *found = status == CATALOGUE_OK;
    return unreadable(b, status == CATALOGUE_NOT_FOUND ? CATALOGUE_OK : status);
}

/* ---- entries --------------------------------------------------------------------------- */

struct telling {
    const struct registry *registry;
    const struct entry_filter *filter;
    backend_entry *each;
    void *context;
};

static bool report_entry(void *context, const struct entry_record *record)
{
    const struct telling *t = context;
    const struct entry_shown shown = registry_describe_entry(t->registry, record);

    return !entry_filter_holds(t->filter, shown.loc, shown.lastmod, shown.origin) ||
           t->each(t->context, &shown);
}

static int list(struct backend *b, const struct backend_list *wanted, backend_entry *each,
                void *context)
{
    struct telling t = {.filter = &wanted->filter, .each = each, .context = context};
    const struct entry_list list = {
        .index_id = wanted->index != NULL ? wanted->index->id : 0,
        .prefix = wanted->prefix,
    };
    struct registry *registry = NULL;
    struct catalogue_view *view;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    t.registry = registry;
    if (status == CATALOGUE_OK)
        status = catalogue_view_list(view, &list, report_entry, &t);
    registry_unref(registry);
    give_back(of(b), view);
    return unreadable(b, status);
}

static const char *owner(struct backend *b)
{
    (void)b;
    return COMMAND_SOURCE;
}

static const char *index_url(struct backend *b, const struct change_result *result)
{
    struct file_backend *f = of(b);
    struct registry *registry = read_registry(b, 0);
    const struct registry_index *index =
        registry != NULL ? registry_list_by_id(registry, result->entry.index_id) : NULL;

    str_clear(&f->url);
    if (index != NULL)
        text_append_index_url(&f->url, registry_site_by_id(registry, index->site_id), index);
    registry_unref(registry);
    return str_text(&f->url);
}

/* ---- the history ----------------------------------------------------------------------- */

/* What is read of the history goes to. */
struct retelling {
    const struct registry *registry;
    backend_change *each;
    backend_row *each_row;
    void *context;
    uint64_t told;
    bool ended; /* the caller wants no more */
};

static void report_change(void *context, const struct history_change *change)
{
    struct retelling *t = context;

    t->told++;
    t->each(t->context, change);
}

static void report_row(void *context, const struct entry_record *before,
                       const struct entry_record *after)
{
    struct retelling *t = context;
    struct entry_shown shown[2];

    if (t->ended)
        return;
    if (before != NULL)
        shown[0] = registry_describe_entry(t->registry, before);
    if (after != NULL)
        shown[1] = registry_describe_entry(t->registry, after);
    t->ended = !t->each_row(t->context, before != NULL ? &shown[0] : NULL,
                            after != NULL ? &shown[1] : NULL);
}

static int history(struct backend *b, const struct history_query *query, backend_change *each,
                   void *context, struct backend_reach *reach)
{
    struct retelling t = {.each = each, .context = context};
    struct history_query ask = *query;
    struct catalogue_view *view;
    uint64_t looked_at;
    enum catalogue_status status = take(of(b), &view);

    *reach = (struct backend_reach){0};
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_from(view, query->site_id, &reach->from);
    do { /* a call looks at a bounded number */
        ask.limit = query->limit - (size_t)t.told;
        if (status == CATALOGUE_OK)
            status = catalogue_view_history(view, &ask, report_change, &t, &looked_at, &ask.after);
    } while (status == CATALOGUE_OK && ask.after != 0 && t.told < query->limit);
    reach->more = status == CATALOGUE_OK && ask.after != 0;
    give_back(of(b), view);
    return unreadable(b, status);
}

static int report_gone(struct backend *b, uint64_t revision, uint64_t from,
                       enum catalogue_status status)
{
    char what[40], gone[HISTORY_GONE_SIZE];

    snprintf(what, sizeof what, "revision %" PRIu64, revision);
    if (status == CATALOGUE_NOT_FOUND) {
        history_report_dropped(gone, from);
        return cli_fail(what, "%s", gone);
    }
    if (status == CATALOGUE_FULL)
        return cli_fail(what, "too many changed entries for one response; give fewer revisions");
    return unreadable(b, status);
}

static int change_of(struct backend *b, uint64_t revision, backend_change *each,
                     backend_row *each_row, void *context)
{
    struct retelling t = {.each = each, .each_row = each_row, .context = context};
    struct registry *registry = NULL;
    struct catalogue_view *view;
    uint64_t from = 0;
    bool more = true;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    t.registry = registry;
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_from(view, 0, &from);
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_change(view, revision, 0, report_change, &t);
    for (uint64_t part = 1; status == CATALOGUE_OK && more && !t.ended; part++)
        status = catalogue_view_history_rows(view, revision, 0, part, report_row, &t, &more);
    registry_unref(registry);
    give_back(of(b), view);
    return report_gone(b, revision, from, status);
}

static int diff(struct backend *b, const struct backend_diff *wanted, backend_row *each,
                void *context)
{
    struct retelling t = {.each_row = each, .context = context};
    struct registry *registry = NULL;
    struct catalogue_view *view;
    uint64_t from = 0;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    t.registry = registry;
    if (status == CATALOGUE_OK)
        status = catalogue_view_history_from(view, wanted->index->site_id, &from);
    if (status == CATALOGUE_OK)
        status =
            catalogue_view_history_diff(view, &(struct history_difference){
                                                  .site_id = wanted->index->site_id,
                                                  .index_id = wanted->index->id,
                                                  .from = wanted->from,
                                                  .to = wanted->to != 0 ? wanted->to : INT64_MAX,
                                                  .each = report_row,
                                                  .context = &t,
                                              });
    registry_unref(registry);
    give_back(of(b), view);
    return report_gone(b, wanted->from, from, status);
}

/* ---- crawlers -------------------------------------------------------------------------- */

static int crawlers(struct backend *b, const struct registry_site *site, backend_crawler_each *each,
                    void *context)
{
    struct catalogue_view *view;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK)
        status = file_crawlers(view, b->cli->config, site, each, context);
    give_back(of(b), view);
    return unreadable(b, status);
}

static int crawler_pages(struct backend *b, const char *name, bool stale,
                         backend_crawler_page_each *each, void *context)
{
    struct catalogue_view *view;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK)
        status = file_crawler_pages(view, b->cli->config, name, stale, each, context);
    give_back(of(b), view);
    return unreadable(b, status);
}

/* ---- search engines -------------------------------------------------------------------- */

static bool has_engine(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->engine_count; i++)
        if (strcmp(config->engines[i].named.name, name) == 0)
            return true;
    return false;
}

static enum catalogue_status read_engines(struct str *text, struct catalogue_view *view,
                                          const struct registry *registry,
                                          const struct config *config,
                                          const struct registry_site *site, const char *name)
{
    enum catalogue_status status = CATALOGUE_OK;

    if (name != NULL) {
        str_append_char(text, '{');
        status = engine_report_sites(text, view, registry, name, site, NULL, UINT64_MAX);
        str_append_char(text, '}');
        return status;
    }
    str_append_text(text, "{\"engines\":[");
    for (size_t i = 0; i < config->engine_count && status == CATALOGUE_OK; i++) {
        str_append_text(text, i > 0 ? "," : "");
        status = engine_report_append(text, view, config->engines[i].named.name, site);
    }
    str_append_text(text, "]}");
    return status;
}

static int engines(struct backend *b, const struct registry_site *site, const char *name,
                   struct json_t **out)
{
    struct str text = STR_INIT;
    struct registry *registry = NULL;
    struct catalogue_view *view;

    if (name != NULL && !has_engine(b->cli->config, name))
        return cli_fail(name, "no engine of this name is configured");
    enum catalogue_status status = take(of(b), &view);
    if (status == CATALOGUE_OK)
        status = catalogue_view_registry(view, &registry);
    if (status == CATALOGUE_OK)
        status = read_engines(&text, view, registry, b->cli->config, site, name);
    give_back(of(b), view);
    registry_unref(registry);
    if (status == CATALOGUE_OK) {
        json_t *answer = json_loads(str_text(&text), 0, NULL);
        *out = json_incref(json_object_get(answer, name != NULL ? "sites" : "engines"));
        json_decref(answer);
        status = *out == NULL ? CATALOGUE_NO_MEMORY : CATALOGUE_OK;
    }
    str_done(&text);
    return unreadable(b, status);
}

/* ---- changes and copies ---------------------------------------------------------------- */

static enum catalogue_status apply(struct backend *b, const struct change *change,
                                   backend_progress *tell, void *context,
                                   struct change_result *result)
{
    struct change mine = *change;

    mine.by = of(b)->user;
    mine.via = "cli";
    let_go(of(b));
    return catalogue_apply_telling(b->catalogue, &mine, tell, context, result);
}

static struct spool *make_spool(struct backend *b, uint64_t max_bytes)
{
    return catalogue_spool(b->catalogue, max_bytes);
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct progress *p = context;

    p->total = total;
    progress_update(p, done);
}

static int copy_into(struct backend *b, const char *file)
{
    enum catalogue_status copied;
    struct progress progress;
    char why[WHY_SIZE] = "";

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

/* A copy is whole before any of it is shown: to stdout it goes by way of a file beside the
 * catalogue, where there is room for the one if there was for the other. */
static int backup(struct backend *b, const char *file)
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

/* ---- tokens, sources, status ----------------------------------------------------------- */

static const char *format_time(int64_t time, char out[21])
{
    if (time == 0)
        return NULL;
    lastmod_format_utc(time, out);
    return out;
}

static int64_t read_used(struct backend *b, int64_t token_id)
{
    struct file_backend *f = of(b);
    struct catalogue_view *view;
    int64_t used = 0;

    if (take(f, &view) != CATALOGUE_OK)
        return 0;
    catalogue_view_token_used(view, token_id, &used);
    give_back(f, view);
    return used;
}

static void report_token(struct backend *b, const struct registry *registry,
                         const struct registry_token *token, backend_token_each *each,
                         void *context)
{
    const struct grant *grant = &token->grant;
    const struct registry_site *site = registry_site_by_id(registry, grant->site_id);
    char created[21], expires[21], used[21];
    const struct backend_token shown = {
        .name = grant->name,
        .site = site != NULL ? site->origin : NULL,
        .all_sites = grant->site_id == 0,
        .prefix = grant->prefix,
        .role = grant_role_word(grant->role),
        .own = grant->own,
        .managed = token->managed,
        .created_at = created,
        .expires_at = format_time(grant->expires_at, expires),
        .last_used_at = format_time(read_used(b, token->id), used),
    };

    lastmod_format_utc(token->created_at, created);
    each(context, &shown);
}

static int tokens(struct backend *b, backend_token_each *each, void *context)
{
    struct registry *registry = read_registry(b, 0);

    if (registry == NULL)
        return EXIT_COULD_NOT;
    for (size_t i = 0; i < registry->token_count; i++)
        report_token(b, registry, &registry->tokens[i], each, context);
    registry_unref(registry);
    return EXIT_DONE;
}

/* Of what was made by API or command line: whether the configuration's source of this name is read
 * in its place. */
static bool is_put_aside(const struct config *config, const struct source_made *made)
{
    for (size_t i = 0; i < config->source_count; i++)
        if (strcmp(config->sources[i].named.name, made->name) == 0)
            return true;
    return false;
}

/* The names of sources that were read into the catalogue and that neither the configuration given
 * here nor the catalogue declares: a server's with --source or another configuration, or a folder
 * that a command scanned. Copied, for a view has one question at a time. */
struct undeclared {
    const struct config *config;
    const struct registry *registry;
    struct {
        char *name;
        bool remote;
    } * items;
    size_t count;
    bool failed;
};

static bool is_declared(const struct undeclared *u, const char *name)
{
    for (size_t i = 0; i < u->config->source_count; i++)
        if (strcmp(u->config->sources[i].named.name, name) == 0)
            return true;
    for (size_t i = 0; i < u->registry->source_count; i++)
        if (strcmp(u->registry->sources[i].name, name) == 0)
            return true;
    return false;
}

static bool keep_undeclared(void *context, const char *name, bool remote)
{
    struct undeclared *u = context;
    void *grown;

    if (is_declared(u, name))
        return true;
    grown = reallocarray(u->items, u->count + 1, sizeof *u->items);
    if (grown != NULL) {
        u->items = grown;
        u->items[u->count].remote = remote;
        u->items[u->count].name = strdup(name);
    }
    u->failed = grown == NULL || u->items[u->count].name == NULL;
    u->count += !u->failed;
    return !u->failed;
}

static void undeclared_done(struct undeclared *u)
{
    for (size_t i = 0; i < u->count; i++)
        free(u->items[i].name);
    free(u->items);
}

static enum catalogue_status find_undeclared(struct undeclared *u, struct catalogue_view *view)
{
    enum catalogue_status status = catalogue_view_sources_scanned(view, keep_undeclared, u);

    return u->failed ? CATALOGUE_NO_MEMORY : status;
}

static int report_undeclared(struct backend *b, const struct registry *registry,
                             backend_source_each *each, void *context)
{
    struct undeclared u = {.config = b->cli->config, .registry = registry};
    struct catalogue_view *view;
    enum catalogue_status status = take(of(b), &view);

    if (status == CATALOGUE_OK) {
        status = find_undeclared(&u, view);
        give_back(of(b), view);
    }
    for (size_t i = 0; status == CATALOGUE_OK && i < u.count; i++)
        each(context, &(struct backend_source_made){.name = u.items[i].name,
                                                    .remote = u.items[i].remote,
                                                    .undeclared = true});
    undeclared_done(&u);
    return unreadable(b, status);
}

/* Those of the configuration, then those of the catalogue that have no name of these, then what
 * else was read into it. */
static int sources(struct backend *b, backend_source_each *each, void *context)
{
    const struct config *config = b->cli->config;
    struct registry *registry = read_registry(b, 0);
    int told;

    if (registry == NULL)
        return EXIT_COULD_NOT;
    for (size_t i = 0; i < config->source_count; i++) {
        const struct config_source *from = &config->sources[i];
        const struct backend_source_made shown = {.name = from->named.name,
                                                  .upstream = from->upstream,
                                                  .directory = from->directory,
                                                  .url = from->url,
                                                  .index = from->index,
                                                  .managed = true};

        each(context, &shown);
    }
    for (size_t i = 0; i < registry->source_count; i++) {
        const struct source_made *made = &registry->sources[i];
        const struct registry_site *site = registry_site_by_id(registry, made->site_id);
        const struct backend_source_made shown = {.name = made->name,
                                                  .site = site != NULL ? site->origin : NULL,
                                                  .upstream = made->upstream,
                                                  .directory = made->directory,
                                                  .url = made->url,
                                                  .index = made->index};

        if (!is_put_aside(config, made))
            each(context, &shown);
    }
    told = report_undeclared(b, registry, each, context);
    registry_unref(registry);
    return told;
}

/* In the words of /readyz. */
static void report_registry(struct backend *b, struct str *out)
{
    struct registry *registry = read_registry(b, 0);

    if (registry != NULL && registry->site_count == 0)
        str_append_text(out, "there is no site yet, and crawlers get 421: create one with "
                             "`sitemapd site add ORIGIN` (no-site)\n");
    for (size_t i = 0; registry != NULL && i < registry->site_count; i++) {
        const struct registry_site *site = &registry->sites[i];

        for (size_t k = 0; k < site->index_count; k++) {
            if (!registry_is_frozen(registry, &site->indexes[k]))
                continue;
            text_append_index_url(out, site, &site->indexes[k]);
            str_append_text(out, " is frozen (read-only) until it is thawed (frozen)\n");
        }
    }
    registry_unref(registry);
}

static void add_reason(void *context, const char *code, const char *detail)
{
    str_append_format(context, "%s (%s)\n", detail, code);
}

/* `directory`: of a folder, where it is known here; NULL: it is not. The catalogue does not
 * remember that a folder cannot be read. Any process can see that it does not exist; whether it may
 * be read depends on the server's user. */
static bool is_missing(const char *directory, char *why, size_t size)
{
    struct stat st;
    if (directory == NULL)
        return false;
    bool found = stat(directory, &st) == 0;
    int error = found ? ENOTDIR : errno;
    if ((found && S_ISDIR(st.st_mode)) || (error != ENOENT && error != ENOTDIR))
        return false;
    snprintf(why, size, "%s: %s", directory, strerror(error));
    return true;
}

/* `remote`: its list is polled, and its sitemaps may be. */
static enum catalogue_status report_source(struct catalogue_view *view, const char *name,
                                           bool remote, const char *directory,
                                           struct backend_status *out)
{
    char missing[512];
    struct backend_source source = {.name = name, .of_list = remote};
    uint64_t states[CHECK_STATES] = {0};
    struct check_record list = {.id = 0};
    struct source_state state;
    enum catalogue_status read = catalogue_view_source_state(view, name, &state);

    if (read == CATALOGUE_OK && remote)
        read = catalogue_view_check_bad_counts(view, name, states);
    if (read == CATALOGUE_OK && remote &&
        (read = catalogue_view_check_list(view, name, &list)) == CATALOGUE_NOT_FOUND)
        read = CATALOGUE_OK;
    if (read != CATALOGUE_OK)
        return read;
    source.good_at = state.good_at;
    source.files = state.files;
    source.listed = state.listed;
    source.quarantined = state.quarantined;
    source.held = state.held;
    source.remarked = state.remarked;
    source.bad = check_count_bad(states);
    if (list.problem != NULL)
        source.failure = list.detail != NULL ? list.detail : list.problem;
    else if (is_missing(directory, missing, sizeof missing))
        source.failure = missing;
    out->source(out->context, &source);
    if (!reasons_of(&(struct standing){.name = name,
                                       .failure = source.failure,
                                       .held = state.held,
                                       .refused = state.quarantined,
                                       .states = states},
                    add_reason, &out->reasons))
        return CATALOGUE_NO_MEMORY;
    return read;
}

/* What the API registered, of sites with `check`. */
static enum catalogue_status report_registered(struct catalogue_view *view, struct str *out)
{
    uint64_t states[CHECK_STATES] = {0};
    enum catalogue_status read = catalogue_view_check_bad_counts(view, "", states);

    if (read == CATALOGUE_OK && !reasons_of(&(struct standing){.states = states}, add_reason, out))
        return CATALOGUE_NO_MEMORY;
    return read;
}

/* Whether PostgreSQL answers, of a catalogue that several machines share. */
static void check_shared(const struct config *config, struct str *out)
{
    char why[512] = "";
    struct shared_told overview;

    if (config->shared_database == NULL)
        return;
    const struct catalogue_shared shared = {.database = config->shared_database,
                                            .schema = config->shared_schema};
    if (catalogue_share_status(&shared, &overview, NULL, NULL, why, sizeof why) != CATALOGUE_OK)
        add_reason(out, "shared-unavailable", why[0] != '\0' ? why : "PostgreSQL does not answer");
}

/* How sources and watched sitemaps are doing, as the catalogue remembers it: no server is asked. */
static int status(struct backend *b, struct backend_status *out)
{
    const struct config *config = b->cli->config;
    struct registry *registry = NULL;
    struct catalogue_view *view;
    enum catalogue_status read = take(of(b), &view);

    snprintf(out->version, sizeof out->version, "%s", SITEMAPD_VERSION);
    if (read == CATALOGUE_OK)
        read = catalogue_view_registry(view, &registry);
    for (size_t i = 0; read == CATALOGUE_OK && i < config->source_count; i++)
        read =
            report_source(view, config->sources[i].named.name, config->sources[i].upstream != NULL,
                          config->sources[i].directory, out);
    for (size_t i = 0; read == CATALOGUE_OK && i < registry->source_count; i++)
        if (!is_put_aside(config, &registry->sources[i]))
            read = report_source(view, registry->sources[i].name,
                                 registry->sources[i].upstream != NULL,
                                 registry->sources[i].directory, out);
    struct undeclared u = {.config = config, .registry = registry};
    if (read == CATALOGUE_OK)
        read = find_undeclared(&u, view);
    for (size_t i = 0; read == CATALOGUE_OK && i < u.count; i++)
        read = report_source(view, u.items[i].name, u.items[i].remote, NULL, out);
    undeclared_done(&u);
    if (read == CATALOGUE_OK)
        read = report_registered(view, &out->reasons);
    registry_unref(registry);
    give_back(of(b), view);
    if (read == CATALOGUE_OK)
        report_registry(b, &out->reasons);
    if (read == CATALOGUE_OK)
        check_shared(config, &out->reasons);
    out->healthy = read == CATALOGUE_OK && out->reasons.len == 0;
    return unreadable(b, read);
}

static void close_file(struct backend *b)
{
    struct file_backend *f = of(b);

    let_go(f);
    catalogue_close(f->base.catalogue);
    str_done(&f->url);
    free(f);
}

int backend_open_file(struct cli *cli, bool create, struct backend **out)
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
        .crawlers = crawlers,
        .engines = engines,
        .crawler_pages = crawler_pages,
        .status = status,
        .index_url = index_url,
        .owner = owner,
        .close = close_file,
    };
    const struct config *config = cli->config;
    const struct catalogue_options options = {
        .path = config->database,
        .must_exist = !create,
        .write_timeout_ms = config_write_timeout_ms(config),
        .max_queued = config->max_queued_writes,
        .shrink_percent = config->shrink_guard_percent,
        .default_max_pages = LIMIT_SITE_PAGES,
        .history_keep_ms = config->history_keep_ms,
        .history_max_bytes = config->history_max_bytes,
        .shared = {.database = config->shared_database,
                   .schema = config->shared_schema,
                   .node = config->shared_node,
                   .release = SITEMAPD_VERSION,
                   .upgrade_by_hand = true},
    };
    struct file_backend *f = calloc(1, sizeof *f);
    char why[WHY_SIZE];

    if (f == NULL)
        return cli_fail(config->database, "out of memory");
    f->base = (struct backend){.calls = &calls, .cli = cli, .name = config->database};
    session_user(f->user, sizeof f->user);
    if (catalogue_open(&options, &f->base.catalogue, why, sizeof why) != CATALOGUE_OK) {
        free(f);
        return cli_fail_file(config->database, why);
    }
    *out = &f->base;
    return EXIT_DONE;
}
