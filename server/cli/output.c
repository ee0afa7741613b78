#include "server/cli/output.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/cli/session.h"
#include "server/rules/lastmod.h"

#define PLAIN_WIDTH 80
#define WIDTH_MIN   60
#define WIDTH_MAX   100

static bool shows_colours(FILE *to)
{
    const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

    return term != NULL && *term != '\0' && strcmp(term, "dumb") != 0 &&
           (none == NULL || *none == '\0') && isatty(fileno(to));
}

const char *ink_on(FILE *to, enum ink ink)
{
    static const char *const codes[] = {
        [INK_HEADING] = "\x1b[1m",  [INK_CODE] = "\x1b[36m",    [INK_GOOD] = "\x1b[32m",
        [INK_WARNING] = "\x1b[33m", [INK_WRONG] = "\x1b[1;31m", [INK_FAINT] = "\x1b[2m",
    };

    return shows_colours(to) ? codes[ink] : "";
}

const char *ink_off(FILE *to)
{
    return shows_colours(to) ? "\x1b[0m" : "";
}

int ink_width(FILE *to)
{
    struct winsize size;

    if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return PLAIN_WIDTH;
    return size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}

#define BAR_WIDTH   30
#define INTERVAL_MS 100
/* Short work needs no bar: nothing is drawn before this. */
#define PATIENCE_MS 300

static bool is_capable(void)
{
    const char *term = getenv("TERM");

    return isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

void progress_start(struct progress *p, const char *label, const char *unit, uint64_t total)
{
    *p = (struct progress){
        .shown = is_capable(),
        .label = label,
        .unit = unit,
        .total = total,
        .drawn_at = clock_now_ms() + PATIENCE_MS - INTERVAL_MS,
    };
}

void progress_update(struct progress *p, uint64_t done)
{
    int64_t now;

    if (!p->shown)
        return;
    now = clock_now_ms();
    if (now - p->drawn_at < INTERVAL_MS)
        return;
    p->drawn_at = now;
    if (p->total > 0) {
        uint64_t shown = done < p->total ? done : p->total;
        int filled = (int)((double)shown / (double)p->total * BAR_WIDTH);

        fprintf(stderr, "\r\x1b[K%s [%.*s%*s] %3d%%  %" PRIu64 " %s", p->label, filled,
                "##############################", BAR_WIDTH - filled, "",
                (int)((double)shown / (double)p->total * 100), done, p->unit);
    } else {
        fprintf(stderr, "\r\x1b[K%s  %" PRIu64 " %s", p->label, done, p->unit);
    }
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fputs("\r\x1b[K", stderr);
    p->shown = false;
}

static int print(const struct cli *cli, const struct listing *l, enum catalogue_status read,
                 const char *heading, const char *none)
{
    if (read != CATALOGUE_OK)
        return session_unreadable(cli, read);
    if (l->out.failed)
        return cli_fail(cli->arguments.command->name, "out of memory");
    if (l->out.len == 0 && !l->json) {
        cli_note(cli->arguments.command->name, "%s", none);
        return EXIT_DONE;
    }
    if (heading != NULL && !l->json)
        printf("%s%s%s\n", ink_on(stdout, INK_HEADING), heading, ink_off(stdout));
    fputs(str_text(&l->out), stdout);
    return EXIT_DONE;
}

int listing_print(struct cli *cli, const char *heading, const char *none, listing_append *append)
{
    struct listing l = {.json = arguments_has(&cli->arguments, "--json"), .out = STR_INIT};
    struct registry *registry;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    l.view = session_view(cli, &registry);
    if (l.view == NULL)
        return EXIT_COULD_NOT;
    l.registry = registry;
    status = print(cli, &l, append(&l), heading, none);
    str_done(&l.out);
    registry_unref(registry);
    catalogue_view_end(l.view);
    return status;
}

void text_append_index_url(struct str *out, const struct registry_site *site,
                           const struct registry_index *index)
{
    if (site == NULL || index == NULL)
        return;
    str_append_text(out, site->origin);
    str_append_text(out, index->path);
}

static void append_time(struct str *out, const char *name, int64_t unix_seconds)
{
    char text[21];

    lastmod_format_utc(unix_seconds, text);
    str_append_json_member(out, name, text);
}

static void append_index(struct str *out, const struct registry *registry, int64_t index_id)
{
    const struct registry_index *index = registry_index_by_id(registry, index_id);
    const struct registry_site *site =
        index != NULL ? registry_site_by_id(registry, index->site_id) : NULL;
    struct str url = STR_INIT;

    text_append_index_url(&url, site, index);
    str_append_json_member(out, "index", url.len > 0 ? str_text(&url) : NULL);
    out->failed = out->failed || url.failed;
    str_done(&url);
}

void text_append_entry(struct str *out, const struct entry_record *record,
                       const struct registry *registry, rule_set remarks)
{
    const struct registry_site *site = registry_site_by_id(registry, record->site_id);

    if (site != NULL)
        remarks |= entry_lint(record->loc, record->lastmod, site->origin);
    str_append_text(out, "{\"id\":");
    str_append_json_text(out, record->id);
    str_append_json_member(out, "loc", record->loc);
    str_append_json_member(out, "lastmod", record->lastmod);
    str_append_json_member(out, "digest", record->digest);
    str_append_json_member(out, "source", record->source);
    append_index(out, registry, record->index_id);
    str_append_format(out, ",\"page\":%u", record->page);
    append_time(out, "registered_at", record->registered_at);
    append_time(out, "changed_at", record->changed_at);
    str_append_text(out, ",\"warnings\":");
    rule_set_append_json(out, remarks);
    str_append_text(out, "}\n");
}

void text_append_export(struct str *out, const struct entry_record *record,
                        const struct registry *registry)
{
    str_append_text(out, "{\"loc\":");
    str_append_json_text(out, record->loc);
    str_append_json_member(out, "lastmod", record->lastmod);
    str_append_json_member(out, "digest", record->digest);
    str_append_json_member(out, "source", record->source);
    append_index(out, registry, record->index_id);
    str_append_format(out, ",\"position\":%u}\n", record->position);
}

void text_warn(const char *what, rule_set remarks)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if ((remarks & RULE_BIT(code)) != 0)
            cli_note(what, "warning: %s (%s)", rule_code_remark((enum rule_code)code),
                     rule_code_word((enum rule_code)code));
}
