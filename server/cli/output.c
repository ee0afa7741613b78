#include "server/cli/output.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/cli/backend.h"
#include "server/cli/session.h"

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
    registry = backend_registry(cli->backend, want | REGISTRY_HELD);
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
