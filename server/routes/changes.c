/* /v1/changes: the pages changed after a revision, held until there is one: what a CDN purge needs.
 *
 * A change is told only once it is published, or the purged copy would be replaced by the same old
 * one. So: read what changed up to the view's revision (a worker); nothing: wait for a newer one
 * and look again; something: wait until that revision is published, then take the etags and reply.
 * Between the steps no thread is held. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "server/routes/auth.h"
#include "server/routes/changes_list.h"
#include "server/routes/errors.h"
#include "server/routes/handlers.h"

#define MAX_WAIT_SECONDS    60u
#define RETRY_AFTER_SECONDS "5"

static int64_t monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Polls have a share of the places for waiting requests, so that however many come, writes find
 * one: they need theirs for milliseconds, a poll for a minute. */
static bool take_place(struct changes *self)
{
    struct app_context *app = self->call.app;

    if (self->waits || app->max_polls == 0)
        return true;
    if (atomic_fetch_add(&app->polls, 1) < app->max_polls) {
        self->waits = true;
        return true;
    }
    atomic_fetch_sub(&app->polls, 1);
    return false;
}

static void changes_cleanup(struct call *call)
{
    struct changes *self = (struct changes *)call;

    if (self->waits)
        atomic_fetch_sub(&call->app->polls, 1);
    changes_list_done(self);
}

/* ---- the token: EPOCH-REVISION-REGISTRY ------------------------------------------------------ */

/* `next` also bears the registry's revision: it alone tells whether the set of pages changed, and
 * with it robots.txt. A token without it is taken too; robots.txt is then told to be safe. A bare
 * number has no epoch, so that nobody knows what it counts: 410, as for an epoch that is gone. */
static bool read_since(struct changes *self, const char *text)
{
    char registry[24] = "", revision[24] = "";
    size_t len;
    int parts;

    if (text == NULL || strcmp(text, "0") == 0)
        return true;
    if (query_number(text, UINT64_MAX, &self->since)) {
        strcpy(self->epoch, "-");
        return true;
    }
    parts = sscanf(text, "%32[0-9a-f]-%20[0-9]-%20[0-9]", self->epoch, revision, registry);
    len = strlen(self->epoch) + 1 + strlen(revision) + (parts == 3 ? 1 + strlen(registry) : 0);
    self->since_registry = UINT64_MAX;
    return parts >= 2 && strlen(text) == len && query_number(revision, UINT64_MAX, &self->since) &&
           (parts == 2 || query_number(registry, UINT64_MAX, &self->since_registry));
}

enum handled changes_begin(void *context, struct request *request)
{
    static const char *const known[] = {"since", "wait", NULL};
    struct changes *self = call_new(context, request, sizeof *self, known);
    uint64_t wait_seconds;

    if (self == NULL)
        return HANDLED;
    self->call.cleanup = changes_cleanup;
    if (!call_number(&self->call, "wait", 0, MAX_WAIT_SECONDS, 0, &wait_seconds))
        return HANDLED;
    if (!read_since(self, query_value(&self->call.query, "since"))) {
        reply_problem(&request->reply, 400, "malformed-parameter", "since",
                      "must be 0 or the `next` of an earlier reply");
        return HANDLED;
    }
    self->deadline_ms = monotonic_ms() + (int64_t)wait_seconds * 1000;
    return HANDLE_CONTINUE;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static void run_look(void *context);

static void reply_list(struct changes *self)
{
    changes_list_append(self, &self->call.request->reply.body);
    reply_json(&self->call.request->reply, 200);
}

static void run_reply(void *context)
{
    struct changes *self = context;

    reply_list(self);
    request_resume(self->call.request);
}

static void on_published(void *context, enum await_result result)
{
    struct changes *self = context;
    struct request *request = self->call.request;

    if (result == AWAIT_DONE && workers_run(self->call.app->readers, run_reply, self))
        return;
    errors_reply_status(&request->reply,
                        result == AWAIT_DONE ? CATALOGUE_BUSY : CATALOGUE_UNAVAILABLE);
    request_resume(request);
}

static void on_newer(void *context, enum await_result result)
{
    struct changes *self = context;
    struct request *request = self->call.request;

    if (result == AWAIT_DONE && workers_run(self->call.app->readers, run_look, self))
        return;
    /* Stopping, or thousands woke at once: to have nothing to tell yet is an honest answer, and the
     * client comes again with the same `next`. */
    reply_list(self);
    request_resume(request);
}

/* Not an empty list: a client that has it asks again at once. */
static void reply_crowded(struct reply *reply)
{
    reply_problem(reply, 503, "too-many-waiting", NULL,
                  "nothing has changed, and too many long polls are waiting for it already");
    reply_header(reply, "Retry-After", RETRY_AFTER_SECONDS);
}

static void wait_for_more(struct changes *self, uint32_t left_ms)
{
    struct request *request = self->call.request;

    if (take_place(self)) {
        publisher_await_newer(self->call.app->publisher, self->now.revision, left_ms, on_newer,
                              self);
        return;
    }
    reply_crowded(&request->reply);
    request_resume(request);
}

static void run_look(void *context)
{
    struct changes *self = context;
    struct request *request = self->call.request;
    struct catalogue_view *view;
    enum catalogue_status status = catalogue_view_begin(self->call.app->catalogue, &view);
    int64_t left_ms = self->deadline_ms - monotonic_ms();
    bool told = false;

    if (status == CATALOGUE_OK) {
        /* A long poll may outlast its token. */
        told = auth_still_holds(self->call.app, request) && changes_list_read(self, view);
        catalogue_view_end(view);
    } else {
        errors_reply_status(&request->reply, status);
    }
    if (!told)
        request_resume(request);
    else if (self->page_count == 0 && left_ms > 0)
        wait_for_more(self, (uint32_t)left_ms);
    else if (self->page_count == 0)
        run_reply(self);
    else
        publisher_await_revision(self->call.app->publisher, self->now.revision, on_published, self);
}

enum handled changes_get(void *context, struct request *request)
{
    struct app_context *app = context;

    if (workers_run(app->readers, run_look, request->state))
        return HANDLE_LATER;
    errors_reply_status(&request->reply, CATALOGUE_BUSY);
    return HANDLED;
}
