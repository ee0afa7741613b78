/* `history`, `diff` and `undo`: what was changed, by whom, and back again. Rows are printed as they
 * come: a change may have touched a million entries. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "config/suggest.h"
#include "server/base/text.h"
#include "server/cli/backend/backend.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"
#include "server/rules/lastmod.h"
#include "server/rules/url.h"

#define DEFAULT_LIMIT   100u
#define CONFLICTS_KEPT  1000u /* as the API tells them */
#define CONFLICTS_SHOWN 20u   /* to people */

/* ---- what was given -------------------------------------------------------------------- */

static int read_number(const char *what, const char *text, uint64_t min, uint64_t *out)
{
    if (query_number(text, INT64_MAX - 1, out) && *out >= min)
        return EXIT_DONE;
    return cli_misuse(what, "\"%s\" must be a number%s", text, min > 0 ? " of 1 or more" : "");
}

static int read_number_option(const struct cli *cli, const char *name, uint64_t min, uint64_t *out)
{
    const char *text = arguments_value(&cli->arguments, name);

    return text == NULL ? EXIT_DONE : read_number(name, text, min, out);
}

/* A time, or how long ago. `last`: of a date the end of that day. */
static int read_when(const struct cli *cli, const char *name, bool last, int64_t *out)
{
    const char *text = arguments_value(&cli->arguments, name);
    int64_t now = (int64_t)time(NULL), span;
    struct lastmod when;

    if (text == NULL)
        return EXIT_DONE;
    if (grant_read_span(text, &span)) {
        *out = now > span ? now - span : 1;
        return EXIT_DONE;
    }
    if (lastmod_parse(text, strlen(text), INT64_MAX / 2, &when, NULL) != RULE_OK)
        return cli_misuse(name,
                          "\"%s\" must be a time (2026-11-21T08:30:00Z), a date, or how long "
                          "ago (2h, 7d)",
                          text);
    *out = last ? lastmod_last_second(&when) : when.unix_seconds;
    return EXIT_DONE;
}

static int read_loc(const struct cli *cli, struct url *url, const char **out)
{
    const char *text = arguments_value(&cli->arguments, "--loc");
    enum rule_code code = text != NULL ? url_parse(text, strlen(text), url, NULL) : RULE_OK;

    if (code != RULE_OK)
        return cli_fail(text, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    *out = text != NULL ? url->text : NULL;
    return EXIT_DONE;
}

/* "--index" or "--urlset", whichever is given; NULL: neither. */
static const char *list_option(const struct cli *cli)
{
    return arguments_has(&cli->arguments, "--urlset")  ? "--urlset"
           : arguments_has(&cli->arguments, "--index") ? "--index"
                                                       : NULL;
}

/* At most one list is named. */
static int check_lists(const struct cli *cli)
{
    return arguments_has(&cli->arguments, "--urlset") && arguments_has(&cli->arguments, "--index")
               ? cli_misuse("--urlset", "cannot be combined with --index")
               : EXIT_DONE;
}

/* The site and the index or urlset that are named; both 0 without. */
static int read_scope(struct cli *cli, struct history_query *query)
{
    const char *origin = arguments_value(&cli->arguments, "--site");
    const char *option = list_option(cli);
    struct registry *registry;
    const struct registry_site *site = NULL;
    const struct registry_index *index = NULL;
    int status = EXIT_DONE;

    if (origin == NULL && option == NULL)
        return EXIT_DONE;
    registry = session_registry(cli, 0);
    if (registry == NULL)
        return EXIT_COULD_NOT;
    if (origin != NULL)
        status = names_site(registry, origin, &site);
    if (status == EXIT_DONE)
        status = names_index_option(cli, registry, &index);
    if (status == EXIT_DONE && site != NULL && index != NULL && index->site_id != site->id)
        status = cli_misuse(option, "belongs to another site than --site");
    query->site_id = site != NULL ? site->id : index != NULL ? index->site_id : 0;
    query->index_id = index != NULL ? index->id : 0;
    registry_unref(registry);
    return status;
}

/* ---- changes --------------------------------------------------------------------------- */

struct telling {
    bool json;
    uint64_t changes, rows;
    uint64_t limit; /* of rows; 0: none */
    bool cut;       /* there are more rows than that */
    uint64_t created, updated, removed;
};

/* Texts of another machine are shown without their control characters. */
static void print_column(const char *text, int width)
{
    cli_print_escaped(stdout, text);
    printf("%*s", width > (int)strlen(text) ? width - (int)strlen(text) + 2 : 2, "");
}

static void print_counts(uint64_t created, uint64_t updated, uint64_t removed)
{
    printf("+%" PRIu64 " ~%" PRIu64 " -%" PRIu64, created, updated, removed);
}

static void print_heading(void)
{
    printf("%s%8s  %-20s  %-13s  %-16s  %-6s  %s%s\n", ink_on(stdout, INK_HEADING), "REVISION",
           "WHEN", "CHANGE", "BY", "VIA", "ENTRIES AND URL OR SITE", ink_off(stdout));
}

/* Its entry, where they are few, else its site. */
static void print_what(const struct history_change *change)
{
    const char *what = change->loc != NULL ? change->loc : change->site;
    uint64_t all = change->created + change->updated + change->removed;

    if (what == NULL)
        return;
    fputs("  ", stdout);
    cli_print_escaped(stdout, what);
    if (change->loc != NULL && all > 1)
        printf(" and %" PRIu64 " more", all - 1);
}

static void print_change(const struct history_change *change)
{
    char at[21];

    lastmod_format_utc(change->at, at);
    printf("%8" PRIu64 "  %-20s  ", change->revision, at);
    print_column(change->kind, 13);
    print_column(*change->by != '\0' ? change->by : "-", 16);
    print_column(change->via, 6);
    print_counts(change->created, change->updated, change->removed);
    print_what(change);
    if (change->undoes != 0)
        printf("  of %" PRIu64, change->undoes);
    if (change->restores != 0)
        printf("  back to %" PRIu64, change->restores);
    if (change->undone_by != 0)
        printf("  (undone by %" PRIu64 ")", change->undone_by);
    if (change->note != NULL) {
        fputs("  ", stdout);
        cli_print_escaped(stdout, change->note);
    }
    putchar('\n');
}

static void append_number(struct str *out, const char *name, bool known, uint64_t value)
{
    str_append_format(out, ",\"%s\":", name);
    if (known)
        str_append_u64(out, value);
    else
        str_append_text(out, "null");
}

/* As the API tells it. */
static void print_change_json(const struct history_change *change)
{
    struct str out = STR_INIT;
    char at[21];

    lastmod_format_utc(change->at, at);
    str_append_format(&out, "{\"revision\":%" PRIu64, change->revision);
    str_append_json_member(&out, "at", at);
    str_append_json_member(&out, "by", change->by);
    str_append_json_member(&out, "kind", change->kind);
    str_append_json_member(&out, "via", change->via);
    str_append_json_member(&out, "request_id", change->request_id);
    append_number(&out, "created", true, change->created);
    append_number(&out, "updated", true, change->updated);
    append_number(&out, "removed", true, change->removed);
    append_number(&out, "unchanged", change->whole, change->unchanged);
    append_number(&out, "undoes", change->undoes != 0, change->undoes);
    append_number(&out, "restores", change->restores != 0, change->restores);
    append_number(&out, "undone_by", change->undone_by != 0, change->undone_by);
    str_append_json_member(&out, "site", change->site);
    str_append_json_member(&out, "loc", change->loc);
    str_append_json_member(&out, "note", change->note);
    str_append_text(&out, "}\n");
    fputs(str_text(&out), stdout);
    str_done(&out);
}

static void report_change(void *context, const struct history_change *change)
{
    struct telling *t = context;

    if (!t->json && t->changes == 0)
        print_heading();
    t->changes++;
    (t->json ? print_change_json : print_change)(change);
}

/* ---- rows ------------------------------------------------------------------------------ */

static void print_row_json(const struct entry_shown *before, const struct entry_shown *after)
{
    struct str out = STR_INIT;
    const struct entry_shown *both[] = {before, after};

    str_append_text(&out, "{\"loc\":");
    str_append_json_text(&out, (before != NULL ? before : after)->loc);
    for (size_t i = 0; i < 2; i++) {
        str_append_text(&out, i == 0 ? ",\"before\":" : ",\"after\":");
        if (both[i] != NULL)
            entry_append_json(&out, both[i]);
        else
            str_append_text(&out, "null");
    }
    str_append_text(&out, "}\n");
    fputs(str_text(&out), stdout);
    str_done(&out);
}

static bool report_row(void *context, const struct entry_shown *before,
                       const struct entry_shown *after)
{
    struct telling *t = context;

    if (before == NULL && after == NULL)
        return true;
    t->cut = t->limit != 0 && t->rows == t->limit;
    if (t->cut)
        return false;
    t->rows++;
    t->created += before == NULL;
    t->removed += after == NULL;
    t->updated += before != NULL && after != NULL;
    (t->json ? print_row_json : output_print_change)(before, after);
    return true;
}

/* ---- history --------------------------------------------------------------------------- */

static int show_one(struct cli *cli, struct telling *t)
{
    uint64_t revision;
    int status = read_number("REVISION", cli->arguments.words[0], 1, &revision);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status =
            cli->backend->calls->change_of(cli->backend, revision, report_change, report_row, t);
    if (status == EXIT_DONE && t->cut && !t->json)
        cli_note("history", "only the first %" PRIu64 " are shown; --limit N shows more", t->limit);
    return status;
}

static void report_end(const struct telling *t, const struct backend_reach *reach)
{
    if (t->json)
        return;
    if (t->changes == 0)
        cli_note("history", "no change matches; the history begins with revision %" PRIu64,
                 reach->from);
    else if (reach->more)
        cli_note("history", "there are more changes; --limit N or --until WHEN shows them");
}

/* What it may be is known here, so that a slip does not look like a history without such. */
static int check_kind(const char *kind)
{
    struct suggestion near = {0};

    if (kind != NULL && strcmp(kind, HISTORY_KIND_ALL) == 0)
        return EXIT_DONE;
    for (size_t i = 0; kind != NULL && history_kinds[i] != NULL; i++) {
        if (strcmp(kind, history_kinds[i]) == 0)
            return EXIT_DONE;
        suggest_consider(&near, kind, history_kinds[i]);
    }
    if (kind == NULL)
        return EXIT_DONE;
    if (near.word != NULL)
        return cli_misuse("--kind", "\"%s\" unknown kind of change; did you mean %s?", kind,
                          near.word);
    return cli_misuse("--kind",
                      "\"%s\" unknown kind of change; use list, replace, scan or undo, for example",
                      kind);
}

static int show_many(struct cli *cli, struct telling *t)
{
    struct history_query query = {
        .by = arguments_value(&cli->arguments, "--by"),
        .kind = arguments_value(&cli->arguments, "--kind"),
        .limit = (size_t)t->limit,
    };
    struct backend_reach reach = {0};
    struct url loc;
    int status = check_kind(query.kind);

    if (status == EXIT_DONE)
        status = read_loc(cli, &loc, &query.loc);
    if (status == EXIT_DONE)
        status = read_when(cli, "--since", false, &query.since);
    if (status == EXIT_DONE)
        status = read_when(cli, "--until", true, &query.until);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = read_scope(cli, &query);
    if (status == EXIT_DONE)
        status = cli->backend->calls->history(cli->backend, &query, report_change, t, &reach);
    if (status == EXIT_DONE)
        report_end(t, &reach);
    return status;
}

int command_history(struct cli *cli)
{
    static const char *const filters[] = {"--site", "--index", "--urlset", "--by",
                                          "--loc",  "--since", "--until",  "--kind"};
    struct telling t = {.json = arguments_has(&cli->arguments, "--json"), .limit = DEFAULT_LIMIT};
    int status = check_lists(cli);

    if (status == EXIT_DONE)
        status = read_number_option(cli, "--limit", 1, &t.limit);
    if (status != EXIT_DONE)
        return status;
    if (cli->arguments.word_count == 0)
        return show_many(cli, &t);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (arguments_has(&cli->arguments, filters[i]))
            return cli_misuse(filters[i], "cannot be combined with a revision");
    return show_one(cli, &t);
}

/* ---- diff ------------------------------------------------------------------------------ */

static int diff_index(struct cli *cli, const struct backend_diff *wanted, struct telling *t)
{
    return cli->backend->calls->diff(cli->backend, wanted, report_row, t);
}

/* The list that is named, else each. */
static int diff_all(struct cli *cli, struct backend_diff *wanted, struct telling *t)
{
    struct registry *registry = session_registry(cli, REGISTRY_HELD);
    int status =
        registry == NULL ? EXIT_COULD_NOT : names_index_option(cli, registry, &wanted->index);

    if (status == EXIT_DONE && wanted->index != NULL)
        status = diff_index(cli, wanted, t);
    else
        for (size_t i = 0; status == EXIT_DONE && i < registry->site_count; i++)
            for (size_t k = 0; status == EXIT_DONE &&
                               (wanted->index = registry_site_list(&registry->sites[i], k)) != NULL;
                 k++)
                status = diff_index(cli, wanted, t);
    registry_unref(registry);
    return status;
}

int command_diff(struct cli *cli)
{
    struct telling t = {.json = arguments_has(&cli->arguments, "--json")};
    struct backend_diff wanted = {0};
    int status;

    if (!arguments_has(&cli->arguments, "--from"))
        return cli_misuse("diff", "needs --from REVISION; `sitemapd history` shows the revisions");
    status = check_lists(cli);
    if (status == EXIT_DONE)
        status = read_number_option(cli, "--from", 0, &wanted.from);
    if (status == EXIT_DONE)
        status = read_number_option(cli, "--to", 1, &wanted.to);
    if (status == EXIT_DONE && wanted.to != 0 && wanted.to < wanted.from)
        return cli_misuse("--to", "is before --from");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = diff_all(cli, &wanted, &t);
    if (status == EXIT_DONE && !t.json) {
        print_counts(t.created, t.updated, t.removed);
        printf(" since revision %" PRIu64 "\n", wanted.from);
    }
    return status;
}

/* ---- undo ------------------------------------------------------------------------------ */

/* The list that is named, and its URL. */
static int read_list(struct cli *cli, struct change *change, struct str *url)
{
    struct registry *registry = session_registry(cli, 0);
    const struct registry_index *index = NULL;
    int status = registry == NULL ? EXIT_COULD_NOT : names_index_option(cli, registry, &index);

    if (status == EXIT_DONE) {
        text_append_index_url(url, registry_site_by_id(registry, index->site_id), index);
        change->list = index->kind;
    }
    if (status == EXIT_DONE && url->failed)
        status = cli_fail("undo", "out of memory");
    registry_unref(registry);
    return status;
}

static void print_undone_json(const struct change *change, const struct change_result *result)
{
    const struct findings *f = &result->findings;
    struct str out = STR_INIT;

    str_append_format(&out,
                      "{\"created\":%" PRIu64 ",\"updated\":%" PRIu64 ",\"unchanged\":%" PRIu64
                      ",\"removed\":%" PRIu64 ",\"revision\":%" PRIu64
                      ",\"dry_run\":%s,\"conflicts\":[",
                      result->created, result->updated, result->unchanged, result->removed,
                      result->revision, change->dry_run ? "true" : "false");
    for (uint32_t i = 0; i < f->count; i++) {
        str_append_text(&out, i > 0 ? ",{\"loc\":" : "{\"loc\":");
        str_append_json_text(&out, f->items[i].loc);
        str_append_json_member(&out, "code", rule_code_word(f->items[i].code));
        str_append_char(&out, '}');
    }
    str_append_format(&out, "],\"conflicts_total\":%" PRIu64 "}\n", f->refused);
    fputs(str_text(&out), stdout);
    str_done(&out);
}

/* What somebody changed since, and what to do about it. */
static void print_conflicts(const struct change *change, const struct findings *f)
{
    uint32_t shown = f->count < CONFLICTS_SHOWN ? f->count : CONFLICTS_SHOWN;

    if (f->refused == 0)
        return;
    printf("%" PRIu64 " %s changed since (%s), and %s:\n", f->refused,
           plural(f->refused, "entry was", "entries were"), rule_code_word(RULE_CHANGED_SINCE),
           change->overwrite ? plural(f->refused, "is restored anyway", "are restored anyway")
                             : plural(f->refused, "stays as it is", "stay as they are"));
    for (uint32_t i = 0; i < shown; i++) {
        fputs("  ", stdout);
        cli_print_escaped(stdout, f->items[i].loc != NULL ? f->items[i].loc : "");
        putchar('\n');
    }
    if (f->refused > shown)
        printf("  and %" PRIu64 " more%s\n", f->refused - shown,
               f->refused <= CONFLICTS_KEPT ? "; --json lists all" : "");
    if (!change->overwrite)
        printf("`sitemapd history --loc LOC` shows who changed it; --overwrite restores it, too\n");
}

static void print_undone(const char *what, const struct change *change,
                         const struct change_result *result)
{
    uint64_t all = result->created + result->updated + result->removed;

    output_print_more(all, output_print_rows(result, ROWS_SHOWN));
    printf("%s: ", what);
    if (all == 0) {
        printf("nothing to restore\n");
    } else {
        printf("%s ", change->dry_run ? "would restore" : "restored");
        print_counts(result->created, result->updated, result->removed);
        if (change->dry_run)
            printf("; nothing is written\n");
        else
            printf("; `sitemapd undo %" PRIu64 "` undoes that\n", result->revision);
    }
    print_conflicts(change, &result->findings);
}

static int apply(struct cli *cli, const struct change *change, const char *what)
{
    struct change_result result;
    int status = session_apply(cli, change, what, &result);

    if (status == EXIT_DONE && arguments_has(&cli->arguments, "--json"))
        print_undone_json(change, &result);
    else if (status == EXIT_DONE)
        print_undone(what, change, &result);
    change_result_done(&result);
    return status;
}

/* A revision is undone; an index or urlset goes back to one. */
static int read_target(struct cli *cli, struct change *change)
{
    const struct arguments *a = &cli->arguments;
    bool list = list_option(cli) != NULL, to = arguments_has(a, "--to");

    if (check_lists(cli) != EXIT_DONE)
        return EXIT_USAGE;
    if (list != to || list == (a->word_count > 0))
        return cli_misuse("undo", "REVISION is missing: undo one change (undo REVISION), or "
                                  "restore an index or urlset (undo --index URL --to REVISION)");
    if (!list)
        return read_number("REVISION", a->words[0], 1, &change->revision);
    change->kind = CHANGE_RESTORE;
    return read_number_option(cli, "--to", 0, &change->revision);
}

int command_undo(struct cli *cli)
{
    struct change change = {
        .kind = CHANGE_UNDO,
        .overwrite = arguments_has(&cli->arguments, "--overwrite"),
        .dry_run = arguments_has(&cli->arguments, "--dry-run"),
        .tells_rows = arguments_has(&cli->arguments, "--dry-run"),
        .pass_frozen = true,
        .max_told = CONFLICTS_KEPT,
    };
    struct str url = STR_INIT, what = STR_INIT;
    int status = read_target(cli, &change);

    if (status == EXIT_DONE)
        status = session_max_removed(cli, &change.max_removed);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE && change.kind == CHANGE_RESTORE)
        status = read_list(cli, &change, &url);
    if (status == EXIT_DONE) {
        change.index_name = change.kind == CHANGE_RESTORE ? str_text(&url) : NULL;
        str_append_format(&what, "%s%srevision %" PRIu64, str_text(&url), url.len > 0 ? " to " : "",
                          change.revision);
        status = apply(cli, &change, str_text(&what));
    }
    str_done(&url);
    str_done(&what);
    return status;
}
