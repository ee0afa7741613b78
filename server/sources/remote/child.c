#include "server/sources/remote/child.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static void say(struct child_verdict *out, enum check_state state, const char *problem,
                const char *detail)
{
    out->state = state;
    out->problem = problem;
    snprintf(out->detail, sizeof out->detail, "%s", detail);
}

static const char *fetch_word(enum fetch_status status)
{
    switch (status) {
    case FETCH_RESOLVE:
        return "no-address";
    case FETCH_ADDRESS:
        return "address-not-allowed";
    case FETCH_TLS:
        return "tls";
    case FETCH_TIMEOUT:
        return "timeout";
    case FETCH_PROTOCOL:
        return "broken-answer";
    case FETCH_NO_MEMORY:
        return "no-memory";
    default:
        return "connect";
    }
}

static void judge_failure(const struct child_answer *a, struct child_verdict *out)
{
    if (a->fetch == FETCH_STOPPED) { /* more bytes than any sitemap may have */
        say(out, CHECK_BROKEN, "file-too-large", "is larger than 50 MiB");
        out->host = HOST_ANSWERED;
        return;
    }
    say(out, CHECK_UNREACHABLE, fetch_word(a->fetch), a->reply->why);
    out->host = a->fetch == FETCH_PROTOCOL                                 ? HOST_ANSWERED
                : a->fetch == FETCH_NO_MEMORY || a->fetch == FETCH_ADDRESS ? HOST_DROPPED
                                                                           : HOST_FAILED;
}

static void judge_file(const struct sitemap_file *file, struct child_verdict *out)
{
    switch (file->kind) {
    case SITEMAP_FILE_URLSET:
    case SITEMAP_FILE_TEXT:
        out->state = CHECK_GOOD;
        return;
    case SITEMAP_FILE_EMPTY:
        say(out, CHECK_EMPTY, "empty", "a sitemap without URLs");
        return;
    case SITEMAP_FILE_INDEX:
        say(out, CHECK_NOT_A_SITEMAP, "nested-index",
            "a sitemap index, which an index may not list");
        return;
    case SITEMAP_FILE_OTHER:
        say(out, CHECK_NOT_A_SITEMAP, "not-a-sitemap",
            "no sitemap: a page, a feed or another file");
        return;
    case SITEMAP_FILE_BROKEN:
        say(out, CHECK_BROKEN, file->code, file->detail);
        out->line = file->line;
        return;
    }
}

/* A page that asks whether one is a human, whatever its status. */
static bool is_wall(const struct fetch_reply *reply)
{
    const char *mitigated = fetch_header(reply, "cf-mitigated");
    return mitigated && strcasecmp(mitigated, "challenge") == 0;
}

static void judge_refusal(const struct fetch_reply *reply, struct child_verdict *out)
{
    char detail[160];
    snprintf(detail, sizeof detail,
             "answers %u to us; that says nothing about what crawlers are answered", reply->status);
    say(out, CHECK_REFUSED, is_wall(reply) ? "bot-wall" : "refused", detail);
}

static void judge_status(const struct child_answer *a, struct child_verdict *out)
{
    char detail[64];
    unsigned status = a->reply->status;
    snprintf(detail, sizeof detail, "answers %u", status);
    if (status == 404 || status == 410)
        say(out, CHECK_GONE, "gone", detail);
    else if (status == 401 || status == 403 || status == 429 || status == 451)
        judge_refusal(a->reply, out);
    else if (status >= 500)
        say(out, CHECK_UNREACHABLE, "server-error", detail);
    else
        say(out, CHECK_UNREACHABLE, "unexpected-status", detail);
}

static void note_host(const struct child_answer *a, struct child_verdict *out)
{
    unsigned status = a->reply->status;
    out->host = HOST_ANSWERED;
    if (status != 429 && status != 503)
        return;
    out->host = HOST_LIMITED;
    out->retry_after_s = fetch_retry_after(a->reply, a->now);
}

void child_judge(const struct child_answer *a, struct child_verdict *out)
{
    memset(out, 0, sizeof *out);
    out->retry_after_s = -1;
    if (a->fetch != FETCH_OK && !(a->decided && a->fetch == FETCH_STOPPED)) {
        judge_failure(a, out);
        return;
    }
    note_host(a, out);
    if (is_wall(a->reply)) {
        judge_refusal(a->reply, out);
    } else if (a->hop != HOP_END) {
        say(out, CHECK_UNREACHABLE, "redirect", hop_sentence(a->hop));
    } else if (a->reply->status == 304 && a->conditional) {
        out->state = CHECK_GOOD;
        out->same = true;
    } else if (a->reply->status == 200 && a->file) {
        judge_file(a->file, out);
    } else if (a->reply->status == 200) {
        out->state = CHECK_GOOD;
    } else {
        judge_status(a, out);
    }
}

enum remote_result child_result(const struct child_verdict *verdict, bool changed)
{
    switch (verdict->state) {
    case CHECK_GOOD:
        return verdict->same ? REMOTE_NOT_MODIFIED : changed ? REMOTE_CHANGED : REMOTE_SAME;
    case CHECK_REFUSED:
        return REMOTE_REFUSED;
    case CHECK_UNREACHABLE:
        return REMOTE_UNREACHABLE;
    default:
        return REMOTE_BAD;
    }
}
