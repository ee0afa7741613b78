/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A second request for a sitemap that a poll by `connect` found good: at its public address, as
 * crawlers request it. If a proxy rule is too wide, the web server sends crawlers elsewhere, and
 * polls by `connect` never notice. Some sitemaps of each source are checked like this once a day;
 * those that differed, with each poll.
 *
 * Only a response without a sitemap counts: this machine may be unable to reach the public address,
 * or locked out, while crawlers are not. The sitemap then becomes CHECK_UNREACHABLE with the
 * problem "public-differs": it is reported like any other that crawlers cannot use, but never
 * dropped from the index, since it exists. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/sources/remote/run.h"

#define EVERY_S 86400
#define SAMPLE  10u /* sitemaps of a source each time */

struct public_look {
    /* The result of the poll before. */
    struct child_verdict verdict;
    struct fetch_reply reply;
    struct sitemap_file file;
    bool has_file, conditional;
    unsigned hops;
    /* The result of this request. */
    bool differs;
    char detail[256];
};

static const char problem[] = "public-differs";

static bool differed(const struct poll *p)
{
    return p->record.problem != NULL && strcmp(p->record.problem, problem) == 0;
}

/* Samples the sitemaps of a source. Registered sitemaps, which have no source, are due with each
 * poll. */
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
    poll_release_host(p, HOST_DROPPED, 0, -1); /* another server: it must not slow the polls down */
    if (interval_is_none(v->state)) {
        l->differs = true;
        snprintf(l->detail, sizeof l->detail, "at its public address it %s%.120s; %.60s serves it",
                 strncmp(v->detail, "answers", 7) == 0 ? "" : "is not usable: ", v->detail,
                 connect != NULL ? connect : "its web server");
    } else if (v->state != CHECK_GOOD && differed(p)) { /* inconclusive: unchanged */
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
