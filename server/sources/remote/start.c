/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Starting, reconfiguring and stopping the thread that polls, and what others ask of it. */
#include "server/sources/remote/remote.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "db/source.h"
#include "server/base/clock.h"
#include "server/base/str.h"
#include "server/rules/url.h"
#include "server/sources/remote/run.h"

static void wake(struct remote *r)
{
    if (r->loop != NULL)
        fetch_loop_wake(r->loop);
}

bool remote_start(const struct remote_options *options, struct remote **out, char *why,
                  size_t why_size)
{
    struct remote *r = calloc(1, sizeof *r);
    *out = NULL;
    if (r == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    pthread_mutex_init(&r->lock, NULL);
    r->asks_end = &r->asks;
    r->catalogue = options->catalogue;
    r->options = *options;
    r->wanted = remote_plan_new(&options->bounds, options->count, options->settings, why, why_size);
    if (r->wanted != NULL && thread_start(&r->thread, "polls", remote_run, r)) {
        *out = r;
        return true;
    }
    if (r->wanted != NULL)
        snprintf(why, why_size, "cannot start the polling thread");
    remote_stop(r);
    return false;
}

bool remote_reconfigure(struct remote *r, const struct remote_bounds *bounds, size_t count,
                        const struct source_settings *settings, char *why, size_t why_size)
{
    struct remote_plan *plan = remote_plan_new(bounds, count, settings, why, why_size);
    if (plan == NULL)
        return false;
    pthread_mutex_lock(&r->lock);
    struct remote_plan *passed = r->wanted;
    r->wanted = plan;
    wake(r);
    pthread_mutex_unlock(&r->lock);
    remote_plan_free(passed);
    return true;
}

void remote_end(struct remote *r)
{
    if (r == NULL || !thread_runs(&r->thread))
        return;
    thread_end(&r->thread);
    pthread_mutex_lock(&r->lock);
    wake(r);
    pthread_mutex_unlock(&r->lock);
    thread_join(&r->thread);
}

void remote_stop(struct remote *r)
{
    if (r == NULL)
        return;
    remote_end(r);
    remote_plan_free(r->wanted);
    remote_plan_free(r->plan);
    free(r->sources);
    site_table_done(&r->bad);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- asking --------------------------------------------------------------------------------- */

void remote_request_free(struct remote_ask *ask)
{
    free(ask->name);
    free(ask->loc);
    free(ask);
}

void remote_request_answer(struct remote_ask *ask, const struct check_record *record,
                           const char *failure)
{
    if (ask->copied != NULL)
        ask->copied(ask->context);
    else
        ask->polled(ask->context, record, failure);
    remote_request_free(ask);
}

void remote_request_fail(struct remote_ask *ask, const char *failure)
{
    if (ask->scanned == NULL) {
        remote_request_answer(ask, NULL, failure);
        return;
    }
    ask->scanned(ask->context, NULL, failure);
    remote_request_free(ask);
}

/* Takes over `ask`, even if it is incomplete. */
static void submit(struct remote *r, struct remote_ask *ask, const struct traceparent *cause,
                   bool whole)
{
    if (cause != NULL)
        ask->cause = *cause;
    if (!whole) {
        remote_request_fail(ask, "out of memory");
        return;
    }
    pthread_mutex_lock(&r->lock);
    bool stopped = thread_stops(&r->thread);
    if (!stopped) {
        *r->asks_end = ask;
        r->asks_end = &ask->next;
        wake(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (stopped)
        remote_request_fail(ask, "the server is stopping");
}

void remote_scan(struct remote *r, const char *name, int64_t max_removed, bool dry_run,
                 const struct traceparent *cause, remote_scanned *done, void *context)
{
    struct remote_ask *ask = calloc(1, sizeof *ask);
    if (ask == NULL) {
        done(context, NULL, "out of memory");
        return;
    }
    *ask = (struct remote_ask){.name = strdup(name),
                               .max_removed = max_removed,
                               .dry_run = dry_run,
                               .scanned = done,
                               .context = context};
    submit(r, ask, cause, ask->name != NULL);
}

void remote_poll(struct remote *r, int64_t site_id, const char *loc,
                 const struct traceparent *cause, remote_polled *done, void *context)
{
    struct remote_ask *ask = calloc(1, sizeof *ask);
    if (ask == NULL) {
        done(context, NULL, "out of memory");
        return;
    }
    *ask = (struct remote_ask){
        .site_id = site_id, .loc = strdup(loc), .polled = done, .context = context};
    submit(r, ask, cause, ask->loc != NULL);
}

void remote_fetch_copy(struct remote *r, int64_t site_id, const char *loc,
                       void (*done)(void *context), void *context)
{
    struct remote_ask *ask = calloc(1, sizeof *ask);
    if (ask == NULL) {
        done(context);
        return;
    }
    *ask = (struct remote_ask){.site_id = site_id,
                               .loc = strdup(loc),
                               .copied = done,
                               .until_ms = clock_now_ms() + COPY_WAIT_MS,
                               .context = context};
    submit(r, ask, NULL, ask->loc != NULL);
}

void remote_wake(struct remote *r)
{
    atomic_store(&r->look_soon, true);
    pthread_mutex_lock(&r->lock);
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

/* ---- status --------------------------------------------------------------------------------- */

bool remote_status(struct remote *r, const char *name, struct remote_status *out)
{
    bool found = false;
    pthread_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->status_count && !found; i++) {
        found = strcmp(r->sources[i].settings->name, name) == 0;
        if (found)
            *out = r->sources[i].status;
    }
    pthread_mutex_unlock(&r->lock);
    return found;
}

void remote_bad_sites(struct remote *r, check_each_site *each, void *context)
{
    pthread_mutex_lock(&r->lock);
    for (struct site_bad *row = NULL; (row = site_table_next(&r->bad, row)) != NULL;)
        each(context, row->row.site_id, row->bad);
    pthread_mutex_unlock(&r->lock);
}

void remote_counts_get(struct remote *r, struct remote_counts *out)
{
    pthread_mutex_lock(&r->lock);
    *out = r->counts;
    pthread_mutex_unlock(&r->lock);
    memset(&out->duration_ns, 0, sizeof out->duration_ns);
    histogram_collect(&r->durations, &out->duration_ns);
}
