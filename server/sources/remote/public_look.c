/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A second look at a sitemap that a poll found good past the web server (`connect`): by its public
 * address, as crawlers get it. After a switch that is too wide the web server leads it elsewhere,
 * and polls alone would never see that. Of each source some sitemaps are looked at so once a day,
 * and those that differed with each poll.
 *
 * Only an answer that says that there is no sitemap counts: this machine may be locked out of the
 * public address, or unable to reach it, where crawlers are not. What counts makes the sitemap
 * CHECK_UNREACHABLE, with the problem "public-differs": it is reported as any other that crawlers
 * cannot use, and never dropped from the index, since it exists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/sources/remote/run.h"

#define EVERY_S 86400
#define SAMPLE  10u /* of a source each time */

struct public_look {
    /* What the poll before it came to. */
    struct child_verdict verdict;
    struct fetch_reply reply;
    struct sitemap_file file;
    bool has_file, conditional;
    unsigned hops;
    /* What this one does. */
    bool differs;
    char detail[256];
};

static const char problem[] = "public-differs";

static bool differed(const struct poll *p)
{
    return p->record.problem != NULL && strcmp(p->record.problem, problem) == 0;
}

/* Registered sitemaps, which no source samples, with each poll. */
static bool is_due(struct poll *p)
{
    struct remote_source *s = p->source;
    if (s == NULL || (p->ask != NULL && p->ask->copied == NULL) || differed(p))
        return true;
    if (p->now >= s->public_at || s->public_at > p->now + EVERY_S) {
        s->public_at = p->now + EVERY_S;
        s->public_left = SAMPLE;
    }
    if (s->public_left == 0)
        return false;
    s->public_left--;
    return true;
}

bool public_check_begin(struct poll *p, const struct child_verdict *v, struct fetch_reply *reply,
                        const struct sitemap_file *found)
{
    struct public_look *l;
    struct url url;
    bool looks;
    if (p->list || p->splits || p->look != NULL || v->state != CHECK_GOOD ||
        !url_split(p->record.loc, strlen(p->record.loc), &url) ||
        poll_connect(p, &url, &looks) == NULL || !looks || !is_due(p) ||
        (l = calloc(1, sizeof *l)) == NULL)
        return false;
    l->verdict = *v;
    l->reply = *reply;
    l->has_file = found != NULL;
    if (found != NULL)
        l->file = *found;
    l->conditional = p->conditional;
    l->hops = p->hops;
    *reply = (struct fetch_reply){.status = 0};
    p->look = l;
    p->url = url;
    p->hops = 0;
    poll_headers(p, NULL, NULL);
    poll_enter_host(p);
    if (!poll_request(p)) {
        const struct child_verdict nothing = {.state = CHECK_UNREACHABLE};
        public_check_end(p, &nothing);
    }
    return true;
}

void public_check_end(struct poll *p, const struct child_verdict *v)
{
    struct public_look *l = p->look;
    struct url url;
    bool looks;
    url_split(p->record.loc, strlen(p->record.loc), &url);
    const char *connect = poll_connect(p, &url, &looks);
    poll_release_host(p, HOST_DROPPED, 0, -1); /* another server: it does not slow what polls ask */
    if (interval_is_none(v->state)) {
        l->differs = true;
        snprintf(l->detail, sizeof l->detail, "by its public address it %s%.120s; %.60s has it",
                 strncmp(v->detail, "answers", 7) == 0 ? "" : "is not usable: ", v->detail,
                 connect != NULL ? connect : "its web server");
    } else if (v->state != CHECK_GOOD && differed(p)) { /* it does not say: it is as it was */
        l->differs = true;
        snprintf(l->detail, sizeof l->detail, "%s",
                 p->record.detail != NULL ? p->record.detail : "");
    }
    p->conditional = l->conditional;
    p->hops = l->hops;
    check_settle(p, &l->verdict, &l->reply, l->has_file ? &l->file : NULL);
    poll_free(p);
}

bool public_check_differs(const struct poll *p, struct check_record *record)
{
    if (p->look == NULL || !p->look->differs)
        return false;
    record->state = CHECK_UNREACHABLE;
    record->failures = differed(p) ? p->record.failures + 1 : 1;
    record->problem = problem;
    record->detail = p->look->detail;
    return true;
}

void public_check_free(struct public_look *l)
{
    if (l != NULL)
        fetch_reply_done(&l->reply);
    free(l);
}
