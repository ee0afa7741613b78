/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `doctor`: prints the findings of server/doctor, and the reasons of a server's /readyz. */
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/base/str.h"
#include "server/base/text.h"
#include "server/cli/backend/api.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/doctor/doctor.h"
#include "server/rules/http/query.h"
#include "server/rules/loc.h"

#define DEFAULT_SAMPLE    5u
#define MAX_SAMPLE        1000u
#define DEFAULT_TIMEOUT_S 20u
#define MAX_TIMEOUT_S     600u

static const struct {
    const char *word;
    enum ink ink;
} levels[] = {
    [DOCTOR_OK] = {"ok", INK_GOOD},
    [DOCTOR_NOTE] = {"note", INK_HEADING},
    [DOCTOR_WARNING] = {"warning", INK_WARNING},
    [DOCTOR_WRONG] = {"wrong", INK_WRONG},
};

static void print_finding(void *context, const struct doctor_finding *f)
{
    (void)context;
    printf("%s%-7s%s  %-12s  ", ink_on(stdout, levels[f->level].ink), levels[f->level].word,
           ink_off(stdout), f->check);
    cli_print_escaped(stdout, f->what);
    if (f->todo != NULL)
        printf("%s%s->%s %s", isatty(STDOUT_FILENO) ? "\n         " : " ",
               ink_on(stdout, INK_HEADING), ink_off(stdout), f->todo);
    putchar('\n');
    fflush(stdout);
}

static void print_json(void *context, const struct doctor_finding *f)
{
    struct str out = STR_INIT;

    (void)context;
    str_append_format(&out, "{\"level\":\"%s\",\"check\":\"%s\",\"code\":\"%s\",\"what\":",
                      levels[f->level].word, f->check, f->code);
    str_append_json_text(&out, f->what);
    str_append_text(&out, ",\"todo\":");
    str_append_json_text(&out, f->todo);
    str_append_text(&out, ",\"url\":");
    str_append_json_text(&out, f->url);
    str_append_format(&out, ",\"line\":%" PRIu64 ",\"column\":%" PRIu64 ",\"count\":%" PRIu64 "}\n",
                      f->line, f->column, f->count);
    fputs(str_text(&out), stdout);
    fflush(stdout);
    str_done(&out);
}

static int read_number(const struct cli *cli, const char *option, uint64_t min, uint64_t max,
                       uint64_t *out)
{
    const char *text = arguments_value(&cli->arguments, option);

    if (text == NULL || (query_number(text, max, out) && *out >= min))
        return EXIT_DONE;
    return cli_misuse(option, "\"%s\" must be a number from %llu to %llu", text,
                      (unsigned long long)min, (unsigned long long)max);
}

static int read_options(const struct cli *cli, struct url *url, struct doctor_options *out)
{
    const char *text = cli->arguments.words[0];
    const char *connect = arguments_value(&cli->arguments, "--connect");
    const char *port = connect != NULL ? strrchr(connect, ':') : NULL;
    uint64_t sample = DEFAULT_SAMPLE, timeout = DEFAULT_TIMEOUT_S;
    enum rule_code code = url_parse(text, strlen(text), url, NULL);
    int status;

    if ((code == RULE_LOC_RELATIVE || code == RULE_LOC_MALFORMED) && explain_may_lack_scheme(text))
        return cli_misuse(text, "%s; did you mean https://%s?", rule_code_sentence(code), text);
    if (code == RULE_LOC_TOO_SHORT) /* http://a.b */
        code = url_parse_origin(text, strlen(text), url);
    if (code != RULE_OK)
        return cli_misuse(text, "%s (%s)", rule_code_sentence(code), rule_code_word(code));
    if (connect != NULL && (port == NULL || port == connect || strlen(port) < 2 ||
                            strspn(port + 1, "0123456789") != strlen(port + 1)))
        return cli_misuse("--connect", "\"%s\" must be host:port, such as 192.0.2.1:443", connect);
    status = read_number(cli, "--sample", 0, MAX_SAMPLE, &sample);
    if (status == EXIT_DONE)
        status = read_number(cli, "--timeout", 1, MAX_TIMEOUT_S, &timeout);
    *out = (struct doctor_options){
        .url = url,
        .connect = connect,
        .ca_file = session_ca_file(cli),
        .timeout_ms = (uint32_t)timeout * 1000,
        .sample = (unsigned)sample,
        .now = (int64_t)time(NULL),
    };
    return status;
}

static void print_sum(const unsigned counts[DOCTOR_LEVELS])
{
    printf("%s%u wrong, %u %s, ", ink_on(stdout, INK_HEADING), counts[DOCTOR_WRONG],
           counts[DOCTOR_WARNING], plural(counts[DOCTOR_WARNING], "warning", "warnings"));
    if (counts[DOCTOR_NOTE] > 0)
        printf("%u %s, ", counts[DOCTOR_NOTE], plural(counts[DOCTOR_NOTE], "note", "notes"));
    printf("%u ok%s\n", counts[DOCTOR_OK], ink_off(stdout));
}

/* Gets the reasons of the server's /readyz before any other request: crawlers cannot see, for
 * example, that one of several nodes lacks a folder. */
static int fetch_reasons(struct cli *cli, json_t **reasons)
{
    const char *state;
    int status = session_open(cli, false);

    if (status == EXIT_DONE && (*reasons = status_reasons(cli->backend, &state)) == NULL)
        status = EXIT_COULD_NOT;
    return status;
}

static void report_server(const json_t *reasons, doctor_report *report,
                          unsigned counts[DOCTOR_LEVELS])
{
    struct doctor_finding found = {DOCTOR_OK, .check = "server", .code = "server"};
    char what[1024] = "the server reports no problem";
    const json_t *reason;
    size_t i;

    found.what = what;
    json_array_foreach(reasons, i, reason)
    {
        found.level = DOCTOR_WARNING;
        found.todo = "`sitemapd status --server` shows more";
        snprintf(what, sizeof what, "the server reports: %s (%s)", member_text(reason, "detail"),
                 member_text(reason, "code"));
        report(NULL, &found);
        counts[found.level]++;
    }
    if (json_array_size(reasons) > 0)
        return;
    report(NULL, &found);
    counts[found.level]++;
}

int command_doctor(struct cli *cli)
{
    doctor_report *report = arguments_has(&cli->arguments, "--json") ? print_json : print_finding;
    bool asks = arguments_has(&cli->arguments, "--server");
    json_t *reasons = NULL;
    unsigned counts[DOCTOR_LEVELS];
    struct doctor_options options;
    struct url url;
    int status = read_options(cli, &url, &options);

    if (status == EXIT_DONE && asks)
        status = fetch_reasons(cli, &reasons);
    if (status == EXIT_DONE && !doctor_run(&options, report, NULL, counts))
        status = cli_fail(url.text, "out of memory");
    if (status == EXIT_DONE && asks)
        report_server(reasons, report, counts);
    json_decref(reasons);
    if (status != EXIT_DONE)
        return status;
    if (report == print_finding)
        print_sum(counts);
    return counts[DOCTOR_WRONG] > 0 ? EXIT_COULD_NOT : EXIT_DONE;
}
