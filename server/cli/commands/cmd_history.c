/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `history`, `diff` and `undo`. Rows are printed as they arrive: a change may have a million. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config/suggest.h"
#include "server/base/text.h"
#include "server/cli/commands/commands.h"
#include "server/cli/names.h"
#include "server/cli/output.h"
#include "server/rules/http/query.h"
#include "server/rules/lastmod.h"
#include "server/rules/url.h"

#define DEFAULT_LIMIT   100u
#define PAGE            1000u /* the API's limit */
#define PAGES_MAX       1000u /* of one list */
#define CONFLICTS_KEPT  1000u /* the API's limit */
#define CONFLICTS_SHOWN 20u   /* printed as text */

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

/* Parses a time or an age. `last`: a date means the end of that day. */
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

/* Adds the named site, index or urlset to the query. */
static int add_scope(struct cli *cli, struct str *target)
{
    const char *origin = arguments_value(&cli->arguments, "--site");
    const char *option = list_option(cli);
    const json_t *site = NULL, *list = NULL;
    int status = EXIT_DONE;

    if (origin != NULL)
        status = names_site(cli, origin, &site);
    if (status == EXIT_DONE)
        status = names_list_option(cli, &list);
    if (status == EXIT_DONE && site != NULL && list != NULL &&
        strcmp(member_text(list, "site"), member_text(site, "origin")) != 0)
        status = cli_misuse(option, "belongs to another site than --site");
    target_add(target, "site", list == NULL ? member_text_or_null(site, "id") : NULL);
    target_add(target, "index", member_text_or_null(list, "id"));
    return status;
}

static void add_time(struct str *target, const char *name, int64_t time)
{
    char text[21];

    if (time != 0)
        lastmod_format_utc(time, text);
    target_add(target, name, time != 0 ? text : NULL);
}

/* Reports an error; if the history does not have the revision, the message names the revision. */
static int report_of(struct backend *b, uint64_t revision, json_t *answer)
{
    const char *word = member_text(answer, "code"), *detail = member_text(answer, "detail");
    char what[40];

    if (!(strcmp(word, "not-found") == 0 && strncmp(detail, "the history ", 12) == 0) &&
        strcmp(word, "diff-too-large") != 0)
        return api_report(b, answer);
    snprintf(what, sizeof what, "revision %" PRIu64, revision);
    cli_fail(what, "%s", detail);
    json_decref(answer);
    return EXIT_COULD_NOT;
}

/* ---- changes --------------------------------------------------------------------------- */

struct reporting {
    bool json;
    uint64_t changes, rows;
    uint64_t limit; /* of changes or rows; 0: none */
    size_t known;   /* rows that were printed already */
    bool cut;       /* there are more rows than the limit */
    uint64_t created, updated, removed;
};

/* Prints a text of a server with control characters escaped. */
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

/* Prints the index or urlset of a change, else its first entry and how many more there are, else
 * its site. */
static void print_what(const json_t *change, uint64_t all)
{
    const char *list = member_text(change, "list");
    const char *loc = *list == '\0' ? member_text_or_null(change, "loc") : NULL;
    const char *what = loc != NULL ? loc : member_text_or_null(change, "site");

    if (what == NULL)
        return;
    fputs("  ", stdout);
    cli_print_escaped(stdout, what);
    cli_print_escaped(stdout, list);
    if (loc != NULL && all > 1)
        printf(" and %" PRIu64 " more", all - 1);
}

static void print_revision(const char *format, const json_t *change, const char *name)
{
    uint64_t revision = member_number(change, name);

    if (revision != 0)
        printf("  %s%" PRIu64 "%s", format, revision, *format == '(' ? ")" : "");
}

static void print_change(const json_t *change)
{
    uint64_t created = member_number(change, "created"), updated = member_number(change, "updated");
    uint64_t removed = member_number(change, "removed");
    const char *by = member_text(change, "by"), *note = member_text_or_null(change, "note");

    printf("%8" PRIu64 "  %-20s  ", member_number(change, "revision"), member_text(change, "at"));
    print_column(member_text(change, "kind"), 13);
    print_column(*by != '\0' ? by : "-", 16);
    print_column(member_text(change, "via"), 6);
    print_counts(created, updated, removed);
    print_what(change, created + updated + removed);
    print_revision("of ", change, "undoes");
    print_revision("back to ", change, "restores");
    print_revision("(undone by ", change, "undone_by");
    if (note != NULL) {
        fputs("  ", stdout);
        cli_print_escaped(stdout, note);
    }
    putchar('\n');
}

static void report_change(struct reporting *t, const json_t *change)
{
    if (!t->json && t->changes == 0)
        print_heading();
    t->changes++;
    (t->json ? output_json : print_change)(change);
}

/* ---- rows ------------------------------------------------------------------------------ */

/* A row without an entry before or after is malformed. */
static enum line_verdict report_row(void *context, const json_t *row)
{
    static const char *const members[] = {"before", "after"};
    struct reporting *t = context;
    struct shown_entry kept[2];
    struct entry_shown shown[2];
    bool has[2];

    if (t->known > 0) {
        t->known--;
        return LINE_ACCEPTED;
    }
    t->cut = t->limit != 0 && t->rows == t->limit;
    if (t->cut)
        return LINE_ENOUGH;
    for (size_t i = 0; i < 2; i++)
        has[i] = member_entry(json_object_get(row, members[i]), &shown[i], &kept[i]);
    t->rows++;
    t->created += !has[0];
    t->removed += !has[1];
    t->updated += has[0] && has[1];
    if (t->json)
        output_json(row);
    else if (has[0] || has[1])
        output_print_change(has[0] ? &shown[0] : NULL, has[1] ? &shown[1] : NULL);
    shown_entry_done(&kept[0]);
    shown_entry_done(&kept[1]);
    return has[0] || has[1] ? LINE_ACCEPTED : LINE_BROKEN;
}

/* ---- history --------------------------------------------------------------------------- */

/* The first page has the change and mostly all its rows; otherwise all rows come in one stream, in
 * the same order. */
static int show_change(struct backend *b, uint64_t revision, struct reporting *t)
{
    struct str target = STR_INIT;
    json_t *change = NULL, *answer = NULL, *rows;
    enum line_verdict last = LINE_ACCEPTED;
    int status = EXIT_DONE;

    str_append_format(&target, "/v1/history/%" PRIu64, revision);
    if (!api_call(b, "GET", str_text(&target), NULL, &change) || !api_is_good(b)) {
        str_done(&target);
        return report_of(b, revision, change);
    }
    rows = json_incref(json_object_get(change, "rows"));
    if (!json_is_array(rows))
        last = LINE_BROKEN;
    json_object_del(change, "rows");
    bool more = member_text_or_null(change, "next") != NULL;
    json_object_del(change, "next");
    if (last == LINE_ACCEPTED)
        report_change(t, change);
    for (size_t i = 0; i < json_array_size(rows) && last == LINE_ACCEPTED; i++)
        last = report_row(t, json_array_get(rows, i));
    t->known = json_array_size(rows);
    if (last == LINE_BROKEN)
        status = cli_fail(b->name, "the server sent a malformed row");
    else if (last == LINE_ACCEPTED && more &&
             !api_lines(b, str_text(&target), report_row, t, &answer))
        status = report_of(b, revision, answer);
    else
        json_decref(answer);
    json_decref(rows);
    json_decref(change);
    str_done(&target);
    return status;
}

static int show_one(struct cli *cli, struct reporting *t)
{
    uint64_t revision;
    int status = read_number("REVISION", cli->arguments.words[0], 1, &revision);

    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = show_change(cli->backend, revision, t);
    if (status == EXIT_DONE && t->cut && !t->json)
        cli_warn("history", "only the first %" PRIu64 " rows are shown; --limit N shows more",
                 t->limit);
    return status;
}

static void report_end(const struct reporting *t, uint64_t from, bool more)
{
    if (t->json)
        return;
    if (t->changes == 0)
        cli_warn("history", "no change matches; the history begins with revision %" PRIu64, from);
    else if (more)
        cli_warn("history", "there are more changes; --limit N or --until WHEN shows them");
}

/* Lists changes page by page, up to the limit: `query` is the target without limit and cursor. Each
 * page goes further back, and may be empty, since it reads a bounded number of changes. */
static int list_changes(struct backend *b, const struct str *query, struct reporting *t)
{
    uint64_t after = 0, from = 0, before;
    size_t pages = 0;

    do {
        uint64_t left = t->limit - t->changes;
        struct str target = STR_INIT;
        json_t *answer, *changes, *change;
        size_t i;

        str_append_text(&target, str_text(query));
        target_add_number(&target, "limit", (int64_t)(left < PAGE ? left : PAGE));
        if (after != 0)
            target_add_number(&target, "after", (int64_t)after);
        answer = api_get(b, &target);
        if (answer == NULL)
            return EXIT_COULD_NOT;
        changes = json_object_get(answer, "changes");
        bool good = json_is_array(changes);
        json_array_foreach(changes, i, change) report_change(t, change);
        from = member_number(answer, "from_revision");
        before = after;
        after = strtoull(member_text(answer, "next"), NULL, 10);
        json_decref(answer);
        if (!good)
            return cli_fail(b->name, "unexpected response: not from the API of sitemapd");
        if (++pages == PAGES_MAX || (after != 0 && before != 0 && after >= before))
            return cli_fail(b->name, "the server sent a malformed list: a page is repeated, or "
                                     "there are too many");
    } while (after != 0 && t->changes < t->limit);
    report_end(t, from, after != 0);
    return EXIT_DONE;
}

/* Checks the kind here, so that a typing error does not look like an empty history. */
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
        return cli_misuse("--kind", "unknown kind of change \"%s\"; did you mean %s?", kind,
                          near.word);
    return cli_misuse("--kind",
                      "unknown kind of change \"%s\"; use list, replace, scan or undo, for example",
                      kind);
}

static int show_many(struct cli *cli, struct reporting *t)
{
    const char *kind = arguments_value(&cli->arguments, "--kind"), *loc = NULL;
    struct str target = STR_INIT;
    int64_t since = 0, until = 0;
    struct url url;
    int status = check_kind(kind);

    if (status == EXIT_DONE)
        status = read_loc(cli, &url, &loc);
    if (status == EXIT_DONE)
        status = read_when(cli, "--since", false, &since);
    if (status == EXIT_DONE)
        status = read_when(cli, "--until", true, &until);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    str_append_text(&target, "/v1/history");
    if (status == EXIT_DONE)
        status = add_scope(cli, &target);
    target_add(&target, "by", arguments_value(&cli->arguments, "--by"));
    target_add(&target, "kind", kind);
    target_add(&target, "loc", loc);
    add_time(&target, "since", since);
    add_time(&target, "until", until);
    if (status == EXIT_DONE)
        status = list_changes(cli->backend, &target, t);
    str_done(&target);
    return status;
}

int command_history(struct cli *cli)
{
    static const char *const filters[] = {"--site", "--index", "--urlset", "--by",
                                          "--loc",  "--since", "--until",  "--kind"};
    struct reporting t = {.json = arguments_has(&cli->arguments, "--json"), .limit = DEFAULT_LIMIT};
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

static int diff_list(struct backend *b, const json_t *list, uint64_t from, uint64_t to,
                     struct reporting *t)
{
    struct str target = STR_INIT;
    json_t *answer = NULL;
    int status = EXIT_DONE;

    str_append_format(&target, "/v1/diff?from=%" PRIu64, from);
    target_add(&target, "index", member_text(list, "id"));
    if (to != 0)
        target_add_number(&target, "to", (int64_t)to);
    if (api_lines(b, str_text(&target), report_row, t, &answer))
        json_decref(answer);
    else
        status = report_of(b, from, answer);
    str_done(&target);
    return status;
}

/* By origin, the indexes of a site before its urlsets. */
static int diff_all(struct backend *b, uint64_t from, uint64_t to, struct reporting *t)
{
    const json_t *lists[] = {api_lists(b, LIST_INDEX), api_lists(b, LIST_URLSET)};
    const json_t *sites = api_sites(b), *site, *list;
    int status = sites != NULL && lists[0] != NULL && lists[1] != NULL ? EXIT_DONE : EXIT_COULD_NOT;
    size_t at[2] = {0}, i;

    json_array_foreach(sites, i, site)
    {
        for (size_t kind = 0; kind < 2; kind++)
            for (; status == EXIT_DONE && (list = json_array_get(lists[kind], at[kind])) != NULL &&
                   strcmp(member_text(list, "site"), member_text(site, "origin")) == 0;
                 at[kind]++)
                status = diff_list(b, list, from, to, t);
    }
    return status;
}

int command_diff(struct cli *cli)
{
    struct reporting t = {.json = arguments_has(&cli->arguments, "--json")};
    const json_t *list = NULL;
    uint64_t from = 0, to = 0;
    int status;

    if (!arguments_has(&cli->arguments, "--from"))
        return cli_misuse("diff", "needs --from REVISION; `sitemapd history` shows the revisions");
    status = check_lists(cli);
    if (status == EXIT_DONE)
        status = read_number_option(cli, "--from", 0, &from);
    if (status == EXIT_DONE)
        status = read_number_option(cli, "--to", 1, &to);
    if (status == EXIT_DONE && to != 0 && to < from)
        return cli_misuse("--to", "is before --from");
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = names_list_option(cli, &list);
    if (status == EXIT_DONE)
        status = list != NULL ? diff_list(cli->backend, list, from, to, &t)
                              : diff_all(cli->backend, from, to, &t);
    if (status == EXIT_DONE && !t.json) {
        print_counts(t.created, t.updated, t.removed);
        printf(" since revision %" PRIu64 "\n", from);
    }
    return status;
}

/* ---- undo ------------------------------------------------------------------------------ */

/* Prints later changes of others, and what to do about them. */
static void print_conflicts(bool overwrite, const json_t *answer)
{
    const json_t *conflicts = json_object_get(answer, "conflicts"), *conflict;
    uint64_t all = member_number(answer, "conflicts_total"), shown = 0;
    size_t i;

    if (all == 0)
        return;
    printf("%" PRIu64 " %s changed since (%s), and %s:\n", all,
           plural(all, "entry was", "entries were"), rule_code_word(RULE_CHANGED_SINCE),
           overwrite ? plural(all, "is restored anyway", "are restored anyway")
                     : plural(all, "stays as it is", "stay as they are"));
    json_array_foreach(conflicts, i, conflict)
    {
        if (shown == CONFLICTS_SHOWN)
            break;
        shown++;
        fputs("  ", stdout);
        cli_print_escaped(stdout, member_text(conflict, "loc"));
        putchar('\n');
    }
    if (all > shown)
        printf("  and %" PRIu64 " more%s\n", all - shown,
               all <= CONFLICTS_KEPT ? "; --json lists all" : "");
    if (!overwrite)
        printf("`sitemapd history --loc LOC` shows who changed it; --overwrite restores it, too\n");
}

static void print_undone(const char *what, const json_t *answer)
{
    uint64_t created = member_number(answer, "created"), updated = member_number(answer, "updated");
    uint64_t removed = member_number(answer, "removed"), all = created + updated + removed;
    bool dry_run = member_is(answer, "dry_run");

    output_print_more(all, output_print_answer_rows(json_object_get(answer, "rows"), ROWS_SHOWN));
    printf("%s: ", what);
    if (all == 0) {
        printf("nothing to restore\n");
        return;
    }
    printf("%s ", dry_run ? "would restore" : "restored");
    print_counts(created, updated, removed);
    if (dry_run)
        printf("; nothing is written\n");
    else
        printf("; `sitemapd undo %" PRIu64 "` undoes that\n", member_number(answer, "revision"));
}

/* Reads the revision to undo, or to restore an index or urlset to. */
static int read_target(struct cli *cli, uint64_t *revision)
{
    const struct arguments *a = &cli->arguments;
    bool list = list_option(cli) != NULL, to = arguments_has(a, "--to");

    if (check_lists(cli) != EXIT_DONE)
        return EXIT_USAGE;
    if (list != to || list == (a->word_count > 0))
        return cli_misuse("undo", "REVISION is missing: undo one change (undo REVISION), or "
                                  "restore an index or urlset (undo --index URL --to REVISION)");
    if (!list)
        return read_number("REVISION", a->words[0], 1, revision);
    return read_number_option(cli, "--to", 0, revision);
}

/* Makes the request and its name for messages. */
static int make_request(struct cli *cli, uint64_t revision, struct str *target, struct str *what)
{
    const json_t *list = NULL;
    int status = names_list_option(cli, &list);

    if (list != NULL) {
        str_append_text(target, "/v1/restore");
        target_add(target, "index", member_text(list, "url"));
        target_add_number(target, "to", (int64_t)revision);
        str_append_format(what, "%s to ", member_text(list, "url"));
    } else {
        str_append_format(target, "/v1/history/%" PRIu64 "/undo", revision);
    }
    str_append_format(what, "revision %" PRIu64, revision);
    if (arguments_has(&cli->arguments, "--overwrite"))
        target_add(target, "on_conflict", "overwrite");
    return status == EXIT_DONE ? session_add_set_options(cli, target) : status;
}

int command_undo(struct cli *cli)
{
    struct str target = STR_INIT, what = STR_INIT;
    json_t *answer = NULL;
    int64_t max_removed;
    uint64_t revision = 0;
    int status = read_target(cli, &revision);

    if (status == EXIT_DONE)
        status = session_max_removed(cli, &max_removed);
    if (status == EXIT_DONE)
        status = session_open(cli, false);
    if (status == EXIT_DONE)
        status = make_request(cli, revision, &target, &what);
    if (status == EXIT_DONE)
        status = api_write(cli->backend, "POST", &target, NULL, str_text(&what), &answer);
    if (status == EXIT_DONE && arguments_has(&cli->arguments, "--json")) {
        output_json(answer);
    } else if (status == EXIT_DONE) {
        print_undone(str_text(&what), answer);
        print_conflicts(arguments_has(&cli->arguments, "--overwrite"), answer);
    }
    json_decref(answer);
    str_done(&target);
    str_done(&what);
    return status;
}
