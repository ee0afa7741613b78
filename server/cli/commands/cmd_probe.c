/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* `probe`: prints one poll of a remote source: redirects, response, and verdict. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "server/base/text.h"
#include "server/cli/backend/reach.h"
#include "server/cli/commands/commands.h"
#include "server/cli/output.h"
#include "server/rules/http/freshness.h"
#include "server/sources/remote/upstream.h"

#define LABEL "%-10s"

static void print_text(const char *label, const char *text)
{
    printf(LABEL, label);
    cli_print_escaped(stdout, text);
    putchar('\n');
}

static void print_answer(void *context, const struct url *url, enum fetch_status status,
                         const struct fetch_reply *r, enum hop_verdict verdict)
{
    (void)context;
    print_text("url", url->text);
    if (r->address[0] != '\0')
        print_text("address", r->address);
    if (status != FETCH_OK) {
        print_text("answer", r->why);
        return;
    }
    printf(LABEL "%u%s%s, %" PRIu64 " bytes, %.1f s\n", "answer", r->status,
           r->protocol[0] != '\0' ? ", " : "", r->protocol, r->got_bytes, r->took_ms / 1000.0);
    if (verdict != HOP_END)
        print_text("redirect", str_text(&r->redirect));
}

/* Prints the headers that a poll reads. */
static void print_head(const struct fetch_reply *r)
{
    static const char *const read[] = {
        "Content-Type",
        "Content-Encoding",
        "Content-Length",
        "ETag",
        "Last-Modified",
        "Cache-Control",
        "Age",
        "Date",
        "Retry-After",
        "X-Robots-Tag",
    };

    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        const char *value = fetch_header(r, read[i]);

        if (value == NULL)
            continue;
        printf(LABEL "%s: ", "head", read[i]);
        cli_print_escaped(stdout, value);
        putchar('\n');
    }
}

/* Prints the headers about freshness and Retry-After. */
static void print_pace(const struct fetch_reply *r)
{
    int64_t seconds = fetch_retry_after(r, (int64_t)time(NULL));
    int64_t fresh = freshness_remaining(fetch_header(r, "Cache-Control"), fetch_header(r, "Age"));

    if (fresh > 0)
        printf(LABEL "it stays fresh for another %" PRId64 " s\n", "pace", fresh);
    if (seconds >= 0)
        printf(LABEL "it asks clients to wait for %" PRId64 " s\n", "pace", seconds);
    if (r->status == 200 && fetch_header(r, "ETag") == NULL &&
        fetch_header(r, "Last-Modified") == NULL)
        printf(LABEL "no ETag and no Last-Modified: each poll downloads the whole file\n", "pace");
}

/* ---- the list -------------------------------------------------------------------------- */

/* Prints a sitemap's URL at the upstream, and its served URL. */
static void print_mapped(const struct reach *reach, const char *loc)
{
    struct url url, asked;

    if (url_split(loc, strlen(loc), &url) &&
        host_map_reverse(reach->map, &reach->url, &url, &asked))
        printf(LABEL "%s is served as %s\n", "mapped", asked.text, url.text);
    else
        printf(LABEL "the first sitemap, %s, is on no host of the map\n", "mapped", loc);
}

/* Prints the list of a source, and whether a poll would accept it. Returns an exit status. */
static int print_list(const struct reach *reach, const struct reach_answer *a)
{
    struct upstream *list = upstream_new((int64_t)time(NULL), NULL, reach->map);
    struct upstream_counts counts;
    const char *code;
    char why[256], codings[CODINGS_TEXT];

    if (list == NULL)
        return cli_fail(a->way.last.text, "out of memory");
    upstream_content_encoding(
        list, fetch_header_joined(&a->reply, "Content-Encoding", codings, sizeof codings));
    upstream_feed(list, a->reply.body.data, a->reply.body.len);
    code = upstream_finish(list, why, sizeof why);
    counts = upstream_count(list);
    if (code == NULL && reach->map != NULL)
        print_mapped(reach, upstream_first(list));
    upstream_free(list);
    if (code != NULL) {
        printf(LABEL "broken as an upstream: ", "verdict");
        cli_print_escaped(stdout, why);
        printf(" (%s)\n", code);
        return EXIT_COULD_NOT;
    }
    printf(LABEL "good as an upstream: a sitemap index of %zu %s, %zu with a date", "verdict",
           counts.good, plural(counts.good, "sitemap", "sitemaps"), counts.dated);
    if (counts.members > counts.good)
        printf(", %zu that cannot be listed", counts.members - counts.good);
    putchar('\n');
    return EXIT_DONE;
}

static int print_verdict(const struct reach *reach, const struct reach_answer *a,
                         const struct reach_verdict *v)
{
    if (v->list)
        return print_list(reach, a);
    if (v->state != CHECK_GOOD) {
        printf(LABEL "%s: ", "verdict", check_state_word(v->state));
        if (v->line > 0)
            printf("line %" PRIu64 ": ", v->line);
        cli_print_escaped(stdout, v->detail);
        printf(" (%s)\n", v->code);
        return EXIT_COULD_NOT;
    }
    printf(LABEL "good: a %s of %" PRIu64 " %s, %" PRIu64 " bytes", "verdict",
           v->file.feed ? "feed" : "sitemap", v->file.urls, plural(v->file.urls, "URL", "URLs"),
           v->file.bytes);
    if (v->file.newest_lastmod[0] != '\0')
        printf(", the newest page of %s%s", v->file.newest_lastmod,
               v->file.stamp ? ", like all others" : "");
    putchar('\n');
    for (size_t i = 0; i < v->file.remarks.count; i++) {
        char sentence[SITEMAP_REMARK_SENTENCE];

        sitemap_remark_report(&v->file.remarks.at[i], sentence);
        printf(LABEL, "remark");
        if (v->file.remarks.at[i].lines[0] > 0)
            printf("line %" PRIu64 ": ", v->file.remarks.at[i].lines[0]);
        cli_print_escaped(stdout, sentence);
        printf(" (%s)\n", rule_code_word(v->file.remarks.at[i].code));
    }
    return EXIT_DONE;
}

int command_probe(struct cli *cli)
{
    const char *text = cli->arguments.words[0];
    struct reach reach = {0};
    struct reach_answer answer;
    struct reach_verdict verdict;
    int status = session_refuse_server(cli);

    if (status != EXIT_DONE)
        return status;
    status = reach_init(cli, text, true, &reach);
    if (status == EXIT_DONE) {
        const char *end = reach.url.text + reach.url.origin_len + reach.url.path_len;
        bool gz = reach.url.path_len > 3 && memcmp(end - 3, ".gz", 3) == 0;

        if (reach.source != NULL)
            printf(LABEL "%s%s\n", "source", reach.source->named.name, reach.source_by);
        if (reach.site != NULL)
            print_text("site", reach.site->origin);
        if (reach.connect != NULL)
            print_text("connect", reach.connect);
        for (size_t i = 0; reach.map != NULL && i < reach.map->count; i++)
            printf(LABEL "%s -> %s\n", "map", reach.map->pairs[i].from, reach.map->pairs[i].to);
        if (reach.secret[0] != '\0')
            print_text("secret", "is sent, to the host of the first URL");
        reach_fetch(&reach, NULL,
                    gz ? "Accept-Encoding: identity\r\n" : "Accept-Encoding: gzip\r\n",
                    print_answer, &answer);
        if (answer.status == FETCH_OK)
            print_head(&answer.reply);
        if (answer.status == FETCH_OK)
            print_pace(&answer.reply);
        if (reach_check(&answer, NULL, 0, reach.map, &verdict))
            status = print_verdict(&reach, &answer, &verdict);
        else
            status = cli_fail(text, "out of memory");
        reach_answer_done(&answer);
    }
    reach_done(&reach);
    return status;
}
