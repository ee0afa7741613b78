/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Derives the state of a sitemap from a response. */
#include "server/sources/remote/child.h"

#include <stdio.h>
#include <string.h>

#include "server/rules/lastmod.h"

/* Decides the date of a sitemap after a poll. */

#define NOW_SECONDS 60

/* Parses a date; false if it is invalid or in the future. */
static bool begins(const char *date, int64_t now, struct lastmod *out)
{
    if (date == NULL || *date == '\0' ||
        lastmod_parse(date, strlen(date), now, out, NULL) != RULE_OK)
        return false;
    return out->unix_seconds <= now + NOW_SECONDS;
}

static bool is_same(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

static bool is_stamp(const struct claim_content *a, const struct claim_content *b)
{
    return a->one_lastmod && b->one_lastmod && is_same(a->dateless, b->dateless);
}

/* Writes the first acceptable date to out->lastmod. */
static void choose(const struct claim_content *content, const struct claim_dates *dates,
                   int64_t now, struct claim_verdict *out)
{
    char modified[21] = "";
    struct lastmod served, date;
    bool dated = dates->served != NULL &&
                 lastmod_parse(dates->served, strlen(dates->served), now, &served, NULL) == RULE_OK;
    if (dates->modified_at > 0)
        lastmod_format_utc(dates->modified_at, modified);
    const char *const all[] = {dates->claim, content->stamp ? NULL : dates->newest, modified};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (begins(all[i], now, &date) && (!dated || date.unix_seconds > served.unix_seconds)) {
            memcpy(out->lastmod, date.text, sizeof out->lastmod);
            return;
        } else if (out->first && i == 0 && begins(all[i], now, &date)) {
            return; /* the claim is served already, and outranks a page's date */
        }
    /* A date never goes back, not even to the current time. */
    if (!out->first && !(dated && served.unix_seconds >= now))
        lastmod_format_utc(now, out->lastmod);
}

void claim_check(const struct claim_content *before, const struct claim_content *now_content,
                 const struct claim_dates *dates, int64_t now, struct claim_verdict *out)
{
    memset(out, 0, sizeof *out);
    out->first = before->hash[0] == 0 && before->hash[1] == 0;
    if (!out->first && (is_same(before->hash, now_content->hash) || is_stamp(before, now_content)))
        return;
    out->changed = !out->first;
    choose(now_content, dates, now, out);
}

static bool is_near(const char *claim, int64_t answered)
{
    struct lastmod date;
    if (claim == NULL || answered == 0 ||
        lastmod_parse(claim, strlen(claim), answered + CALENDAR_SECONDS_PER_DAY, &date, NULL) !=
            RULE_OK)
        return false;
    int64_t apart = date.unix_seconds - answered;
    return strchr(claim, 'T') != NULL && apart >= -NOW_SECONDS && apart <= NOW_SECONDS;
}

bool claim_is_now(const char *before, int64_t answered_before, const char *claim, int64_t answered)
{
    return is_near(before, answered_before) && is_near(claim, answered) &&
           strcmp(before, claim) != 0;
}

static void report_child(struct child_verdict *out, enum check_state state, const char *problem,
                         const char *detail)
{
    out->state = state;
    out->problem = problem;
    snprintf(out->detail, sizeof out->detail, "%s", detail);
}

/* Names the foreign host: if the site moved there, `upstream` is to name it. */
static void report_redirect(const struct child_answer *a, struct child_verdict *out)
{
    char detail[sizeof out->detail];
    const char *to = str_text(&a->reply->redirect);
    struct url url;

    if (a->hop == HOP_FOREIGN && url_parse(to, strlen(to), &url, NULL) == RULE_OK)
        snprintf(detail, sizeof detail, "%s: %.*s", hop_sentence(a->hop),
                 url.origin_len < 300 ? url.origin_len : 300, url.text);
    else
        snprintf(detail, sizeof detail, "%s", hop_sentence(a->hop));
    report_child(out, CHECK_UNREACHABLE, "redirect", detail);
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

static void check_failure(const struct child_answer *a, struct child_verdict *out)
{
    if (a->fetch == FETCH_STOPPED) { /* exceeds the size of any sitemap */
        report_child(out, CHECK_BROKEN, "file-too-large", "is larger than 50 MiB");
        out->host = HOST_ANSWERED;
        return;
    }
    report_child(out, CHECK_UNREACHABLE, fetch_word(a->fetch), a->reply->why);
    out->host = a->fetch == FETCH_PROTOCOL                                 ? HOST_ANSWERED
                : a->fetch == FETCH_NO_MEMORY || a->fetch == FETCH_ADDRESS ? HOST_DROPPED
                                                                           : HOST_FAILED;
}

/* For this long, an HTML page or another file instead of a sitemap counts as an accident: an error
 * page with status 200, a login, a deployment. */
#define PAGE_STAYS_S (14 * 86400)

static bool is_accident(const struct child_answer *a)
{
    const struct check_record *before = a->before;
    if (before == NULL || before->good_at == 0 || before->state == CHECK_NOT_A_SITEMAP)
        return false;
    bool bad = before->state == CHECK_BROKEN || before->state == CHECK_REFUSED;
    return !bad || a->now - before->since < PAGE_STAYS_S;
}

static void report_refused(const struct fetch_reply *reply, const char *problem, const char *what,
                           struct child_verdict *out)
{
    char detail[256];
    snprintf(detail, sizeof detail,
             "answers %u%s%.120s to this server; crawlers may get another response", reply->status,
             *what != '\0' ? " with " : "", what);
    report_child(out, CHECK_REFUSED, problem, detail);
}

static void check_file(const struct child_answer *a, struct child_verdict *out)
{
    const struct sitemap_file *file = a->file;
    char detail[256];
    out->line = file->line;
    switch (file->kind) {
    case SITEMAP_FILE_URLSET:
    case SITEMAP_FILE_TEXT:
    case SITEMAP_FILE_FEED:
        out->state = CHECK_GOOD;
        return;
    case SITEMAP_FILE_EMPTY:
        report_child(out, CHECK_EMPTY, file->code, file->detail);
        return;
    case SITEMAP_FILE_INDEX:
        report_child(out, CHECK_NOT_A_SITEMAP, file->code, file->detail);
        return;
    case SITEMAP_FILE_PAGE:
    case SITEMAP_FILE_OTHER:
        snprintf(detail, sizeof detail, "%s%s", file->detail,
                 is_accident(a) ? ", where a sitemap was" : "");
        report_child(out, is_accident(a) ? CHECK_BROKEN : CHECK_NOT_A_SITEMAP, file->code, detail);
        return;
    case SITEMAP_FILE_WALL:
        report_refused(a->reply, file->code, file->detail, out);
        return;
    case SITEMAP_FILE_BROKEN:
        report_child(out, CHECK_BROKEN, file->code, file->detail);
        return;
    }
}

static void evaluate_status(const struct child_answer *a, struct child_verdict *out)
{
    char detail[64];
    unsigned status = a->reply->status;
    snprintf(detail, sizeof detail, "answers %u", status);
    if (status == 404 || status == 410)
        report_child(out, CHECK_GONE, "gone", detail);
    else if (status == 401 || status == 403 || status == 429 || status == 451)
        report_refused(a->reply, "refused", "", out);
    else if (status == 202) /* a challenge (AWS WAF); no server accepts a GET for later */
        report_refused(a->reply, "bot-wall", "", out);
    else if (status >= 500)
        report_child(out, CHECK_UNREACHABLE, "server-error", detail);
    else
        report_child(out, CHECK_UNREACHABLE, "unexpected-status", detail);
}

static void record_host(const struct child_answer *a, struct child_verdict *out)
{
    unsigned status = a->reply->status;
    out->host = HOST_ANSWERED;
    if (status != 429 && status != 503)
        return;
    out->host = HOST_LIMITED;
    out->retry_after_s = fetch_retry_after(a->reply, a->now);
}

void child_check(const struct child_answer *a, struct child_verdict *out)
{
    memset(out, 0, sizeof *out);
    out->retry_after_s = -1;
    if (a->fetch != FETCH_OK && !(a->decided && a->fetch == FETCH_STOPPED)) {
        check_failure(a, out);
        return;
    }
    record_host(a, out);
    if (fetch_is_wall(a->reply)) {
        report_refused(a->reply, "bot-wall", "", out);
    } else if (a->hop != HOP_END) {
        report_redirect(a, out);
    } else if (a->reply->status == 304 && a->conditional) {
        out->state = CHECK_GOOD;
        out->same = true;
    } else if (a->reply->status == 200 && a->file != NULL) {
        check_file(a, out);
    } else if (a->reply->status == 200) {
        out->state = CHECK_GOOD;
    } else {
        evaluate_status(a, out);
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
