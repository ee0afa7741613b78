/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Output of commands: colours, progress, tables, notes and errors. */
#include "server/cli/output.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/base/clock.h"

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
/* No bar is drawn before this time: short work needs none. */
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

void output_json(const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER);

    struct str shown = STR_INIT;

    if (text != NULL)
        str_append_json_shown(&shown, text);
    if (text != NULL && !shown.failed)
        puts(str_text(&shown));
    str_done(&shown);
    free(text);
}

int output_table(struct cli *cli, const json_t *objects, const char *heading, const char *none,
                 output_row *append, void *context)
{
    bool json = arguments_has(&cli->arguments, "--json");
    const char *name = cli->arguments.command->name;
    struct str out = STR_INIT;
    const json_t *object;
    int status = EXIT_DONE;
    size_t i;

    if (objects == NULL)
        return EXIT_COULD_NOT;
    json_array_foreach(objects, i, object)
    {
        if (json)
            output_json(object);
        else
            append(&out, object, context);
    }
    if (out.failed)
        status = cli_fail(name, "out of memory");
    else if (json_array_size(objects) == 0 && !json)
        cli_warn(name, "%s", none);
    else if (heading != NULL && !json)
        printf("%s%s%s\n", ink_on(stdout, INK_HEADING), heading, ink_off(stdout));
    if (status == EXIT_DONE)
        fputs(str_text(&out), stdout);
    str_done(&out);
    return status;
}

json_t *output_json_count(uint64_t count, bool is_unknown)
{
    return is_unknown ? json_null() : json_integer((json_int_t)count);
}

void output_count(char out[24], const json_t *object, const char *name)
{
    if (json_is_null(json_object_get(object, name)))
        strcpy(out, "-");
    else
        snprintf(out, 24, "%" PRIu64, member_number(object, name));
}

void text_warn(const char *what, rule_set remarks)
{
    for (int code = RULE_OK + 1; code < RULE_CODE_COUNT; code++)
        if ((remarks & RULE_BIT(code)) != 0)
            cli_warn(what, "warning: %s (%s)", rule_code_remark((enum rule_code)code),
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

/* Prints the fields that differ; if none does, only the position differs. */
static void print_difference(const struct entry_shown *before, const struct entry_shown *after)
{
    bool printed = print_field("lastmod", before->lastmod, after->lastmod);

    printed = print_field("digest", before->digest, after->digest) || printed;
    printed = print_field("source", before->source, after->source) || printed;
    printed = print_field("index", before->path, after->path) || printed;
    if (!printed)
        fputs("  its position or its times", stdout);
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
    uint64_t count = result->preview_count < most ? result->preview_count : most;

    for (uint64_t i = 0; i < count; i++) {
        const struct entry_record *records[] = {&result->preview[i].before,
                                                &result->preview[i].after};
        struct entry_shown shown[2];

        for (size_t k = 0; k < 2; k++) /* without the index, which is unknown */
            shown[k] = (struct entry_shown){.loc = records[k]->loc,
                                            .lastmod = records[k]->lastmod,
                                            .digest = records[k]->digest,
                                            .source = records[k]->source};
        output_print_change(shown[0].loc != NULL ? &shown[0] : NULL,
                            shown[1].loc != NULL ? &shown[1] : NULL);
    }
    return count;
}

uint64_t output_print_answer_rows(const json_t *rows, uint64_t most)
{
    static const char *const members[] = {"before", "after"};
    uint64_t count = 0;

    for (; count < most && count < json_array_size(rows); count++) {
        struct entry_shown shown[2];

        for (size_t k = 0; k < 2; k++) {
            const json_t *entry = json_object_get(json_array_get(rows, count), members[k]);

            shown[k] = (struct entry_shown){.loc = member_text_or_null(entry, "loc"),
                                            .lastmod = member_text_or_null(entry, "lastmod"),
                                            .digest = member_text_or_null(entry, "digest"),
                                            .source = member_text_or_null(entry, "source")};
        }
        if (shown[0].loc != NULL || shown[1].loc != NULL)
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
