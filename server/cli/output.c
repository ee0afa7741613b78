#include "server/cli/output.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/cli/backend/backend.h"
#include "server/cli/backend/session.h"

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

static int print(const struct cli *cli, const struct listing *l, const char *heading,
                 const char *none)
{
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

int listing_print(struct cli *cli, unsigned want, const char *heading, const char *none,
                  listing_append *append)
{
    struct listing l = {.json = arguments_has(&cli->arguments, "--json"), .out = STR_INIT};
    struct registry *registry;
    int status = session_open(cli, false);

    if (status != EXIT_DONE)
        return status;
    l.backend = cli->backend;
    registry = session_registry(cli, want | REGISTRY_HELD);
    l.registry = registry;
    if (registry == NULL)
        return EXIT_COULD_NOT;
    status = append(&l);
    if (status == EXIT_DONE)
        status = print(cli, &l, heading, none);
    str_done(&l.out);
    registry_unref(registry);
    return status;
}

void output_count(char out[24], uint64_t count, bool untold)
{
    if (untold)
        strcpy(out, "-");
    else
        snprintf(out, 24, "%" PRIu64, count);
}

void output_append_json_count(struct str *out, const char *name, uint64_t count, bool untold)
{
    char text[24];

    output_count(text, count, untold);
    str_append_format(out, ",\"%s\":%s", name, untold ? "null" : text);
}

void text_append_index_url(struct str *out, const struct registry_site *site,
                           const struct registry_index *index)
{
    if (site == NULL || index == NULL)
        return;
    str_append_text(out, site->origin);
    str_append_text(out, index->path);
}

void text_warn(const char *what, rule_set remarks)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if ((remarks & RULE_BIT(code)) != 0)
            cli_note(what, "warning: %s (%s)", rule_code_remark((enum rule_code)code),
                     rule_code_word((enum rule_code)code));
}

/* ---- what a change does to an entry ------------------------------------------------------ */

static bool print_field(const char *name, const char *before, const char *after)
{
    before = before != NULL ? before : "none";
    after = after != NULL ? after : "none";
    if (strcmp(before, after) == 0)
        return false;
    printf("  %s ", name);
    cli_print_escaped(stdout, before);
    fputs(" -> ", stdout);
    cli_print_escaped(stdout, after);
    return true;
}

/* What differs, of what people set; else it is only at another place. */
static void print_difference(const struct entry_shown *before, const struct entry_shown *after)
{
    bool told = print_field("lastmod", before->lastmod, after->lastmod);

    told = print_field("digest", before->digest, after->digest) || told;
    told = print_field("source", before->source, after->source) || told;
    told = print_field("index", before->path, after->path) || told;
    if (!told)
        fputs("  its place or its times", stdout);
}

void output_print_change(const struct entry_shown *before, const struct entry_shown *after)
{
    const struct entry_shown *entry = after != NULL ? after : before;
    enum ink ink = before == NULL ? INK_GOOD : after == NULL ? INK_WRONG : INK_WARNING;

    printf("%s%c%s ", ink_on(stdout, ink),
           before == NULL  ? '+'
           : after == NULL ? '-'
                           : '~',
           ink_off(stdout));
    cli_print_escaped(stdout, entry->loc);
    if (before != NULL && after != NULL) {
        print_difference(before, after);
    } else if (entry->lastmod != NULL) {
        fputs("  lastmod ", stdout);
        cli_print_escaped(stdout, entry->lastmod);
    }
    putchar('\n');
}

uint64_t output_print_rows(const struct change_result *result, uint64_t most)
{
    uint64_t count = result->told_count < most ? result->told_count : most;

    for (uint64_t i = 0; i < count; i++) {
        const struct entry_record *records[] = {&result->told[i].before, &result->told[i].after};
        struct entry_shown shown[2];

        for (size_t k = 0; k < 2; k++) /* without its index: where it lies is not told */
            shown[k] = (struct entry_shown){.loc = records[k]->loc,
                                            .lastmod = records[k]->lastmod,
                                            .digest = records[k]->digest,
                                            .source = records[k]->source};
        output_print_change(shown[0].loc != NULL ? &shown[0] : NULL,
                            shown[1].loc != NULL ? &shown[1] : NULL);
    }
    return count;
}

void output_print_more(uint64_t all, uint64_t shown)
{
    if (shown > 0 && all > shown)
        printf("... and %" PRIu64 " more\n", all - shown);
}
