/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The scan of a list that was read, on a thread of its own: it waits for its turn among the writes,
 * which others' lists may keep it from, and polls wait for neither. One at a time, in the order in
 * which they came, so that one list's rows are in memory. The poll, and what it points to, is the
 * thread's to read until the scan is over; the thread of polls begins it, is woken at the end, and
 * releases a poll that it gave up only then. */
#include <stdio.h>
#include <stdlib.h>

#include "server/base/thread.h"
#include "server/sources/remote/run.h"

struct list_scan {
    struct list_scan *next;
    struct poll *poll;
    struct fetch_loop *wake; /* of the thread of polls */
    struct thread thread;
    bool has_dry, has_scan;
    atomic_bool over;
    struct upstream_scan dry, scan;
    struct list_found found;
};

/* ---- on its thread -------------------------------------------------------------------------- */

static void list_scan_run(void *context)
{
    struct list_scan *l = context;
    struct upstream *u = l->poll->upstream;
    bool ignored;
    if (l->has_dry)
        upstream_apply(u, &l->dry, &l->found.dry, &ignored);
    if (l->has_scan)
        upstream_apply(u, &l->scan, &l->found.out, &l->found.claims_are_now);
    atomic_store(&l->over, true);
    fetch_loop_wake(l->wake);
}

/* ---- on the thread of polls ----------------------------------------------------------------- */

static void start(struct list_scan *l)
{
    static const char failure[] = "a thread cannot be started";
    if (thread_start(&l->thread, "list scan", list_scan_run, l))
        return;
    snprintf(l->found.out.failure, sizeof l->found.out.failure, "%s", failure);
    snprintf(l->found.dry.failure, sizeof l->found.dry.failure, "%s", failure);
    atomic_store(&l->over, true);
}

bool list_scan_begin(struct poll *p, const struct child_verdict *verdict, struct fetch_reply *reply)
{
    struct remote *r = p->remote;
    struct list_scan *l = calloc(1, sizeof *l), **end = &r->scans;
    if (l == NULL)
        return false;
    l->poll = p;
    l->wake = r->loop;
    l->found.verdict = *verdict;
    l->found.reply = *reply;
    l->found.answered = list_answered(p, reply);
    *reply = (struct fetch_reply){.status = 0};
    r->plan->held++; /* it has the settings, which may be another plan's than the poll's */
    remote_plan_free(p->plan);
    p->plan = r->plan;
    l->scan = (struct upstream_scan){.catalogue = r->catalogue,
                                     .settings = p->source->settings,
                                     .answered_before = p->source->answered,
                                     .answered = l->found.answered,
                                     .max_removed = list_most_removed(p->asks),
                                     .stop = &l->thread.stops};
    l->dry = l->scan;
    l->dry.dry_run = true;
    l->dry.max_removed = list_most_removed(p->dry_asks);
    l->has_dry = p->dry_asks != NULL;
    l->has_scan = !p->dry_run;
    p->host = NULL; /* which may be forgotten */
    p->scans = true;
    while (*end != NULL)
        end = &(*end)->next;
    *end = l;
    if (r->scans == l)
        start(l);
    return true;
}

static void scan_free(struct list_scan *l)
{
    fetch_reply_done(&l->found.reply);
    change_result_done(&l->found.dry.result);
    free(l);
}

/* Takes the first, waits for it, and lets the next begin. */
static struct list_scan *collect(struct remote *r)
{
    struct list_scan *l = r->scans;
    thread_join(&l->thread);
    r->scans = l->next;
    return l;
}

void list_scan_step(struct remote *r)
{
    while (r->scans != NULL && atomic_load(&r->scans->over)) {
        struct list_scan *l = collect(r);
        if (r->scans != NULL)
            start(r->scans);
        if (!thread_stops(&l->thread))
            list_scanned(l->poll, &l->found);
        poll_free(l->poll);
        scan_free(l);
    }
}

bool list_scan_drop(struct poll *p)
{
    struct list_scan **at = &p->remote->scans, *l;
    while (*at != NULL && (*at)->poll != p)
        at = &(*at)->next;
    l = *at;
    if (l != NULL && thread_runs(&l->thread)) {
        thread_end(&l->thread);
        p->source->polling = NULL;
        p->source = NULL; /* who may be gone by then */
        return true;
    }
    if (l != NULL) {
        *at = l->next;
        scan_free(l);
    }
    return false;
}

void list_scan_stop(struct remote *r)
{
    while (r->scans != NULL) {
        thread_end(&r->scans->thread);
        struct list_scan *l = collect(r);
        poll_free(l->poll);
        scan_free(l);
    }
}
