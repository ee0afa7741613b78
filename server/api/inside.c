/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A request is filled in and goes through the hooks of its route, one after the other; if one
 * answers later, the calling thread waits. The handlers get the parts of a server that they need: a
 * publisher, which keeps no page in memory since nobody requests one, and one worker, since there
 * is one request at a time. */
#include "server/api/inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/api/routes.h"
#include "server/crawlers/crawlers.h"
#include "server/http/headers.h"
#include "server/log/log.h"

#define BODY_MAX_BYTES (64u << 20) /* the operator's robots.txt has a bound of its own */

struct inside {
    struct inside_options options;
    struct app_context app;
    struct sources_at_rest at_rest;
    struct cache *cache;
    bool started;
    char via[96]; /* from the header that a command sends through a server */
};

/* ---- what the handlers use ------------------------------------------------------------------ */

static bool attach_nothing(void *context, struct resource *s)
{
    (void)context;
    (void)s;
    return true;
}

static void free_policies(struct publish_policies *policies)
{
    free(policies);
}

static void inside_stop(struct inside *inside)
{
    struct app_context *app = &inside->app;

    workers_free(app->readers);
    publisher_stop(app->publisher);
    cache_free(inside->cache);
    app->readers = app->searchers = app->copiers = NULL;
    app->publisher = NULL;
    inside->cache = NULL;
}

static bool inside_start(struct inside *inside)
{
    struct app_context *app = &inside->app;
    struct publish_policies *policies = NULL;
    struct publisher_options publisher = {.catalogue = app->catalogue,
                                          .compression_level = 1,
                                          .build_threads = 1,
                                          .attach = attach_nothing};

    if (inside->started)
        return true;
    policies = calloc(1, sizeof *policies);
    if (policies != NULL) {
        policies->page_style = inside->options.page_style;
        policies->free = free_policies;
    }
    publisher.policies = policies;
    inside->cache = policies != NULL ? cache_new(&(struct cache_options){.budget_bytes = 0}) : NULL;
    publisher.cache = inside->cache;
    if (inside->cache == NULL)
        free(policies);
    else if (publisher_start(&publisher, &app->publisher) == CATALOGUE_OK)
        inside->started = true;
    app->readers = app->searchers = app->copiers = workers_new(1, 1);
    if (inside->started && app->readers != NULL)
        return true;
    inside_stop(inside);
    inside->started = false;
    return false;
}

/* The operator's own folders need no configuration to open them. */
static bool may_read_any(void *set, const char *origin, bool all_sites, const char *directory)
{
    (void)set, (void)origin, (void)all_sites, (void)directory;
    return true;
}

struct inside *inside_new(const struct inside_options *options)
{
    struct inside *inside = calloc(1, sizeof *inside);

    if (inside == NULL)
        return NULL;
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT); /* the command reports what was done */
    inside->options = *options;
    snprintf(inside->via, sizeof inside->via, "cli; user=%s", options->user);
    inside->app.catalogue = options->catalogue;
    inside->app.database = options->database;
    inside->app.max_body_bytes = BODY_MAX_BYTES;
    inside->app.max_bulk_bytes = BODY_MAX_BYTES;
    inside->app.max_bulk_entries = UINT32_MAX;
    inside->app.spool_room.max_bytes = INT64_MAX;
    inside->at_rest = (struct sources_at_rest){options->sources, options->source_count};
    inside->app.at_rest = &inside->at_rest;
    inside->app.sources_may_read = may_read_any;
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        inside->app.engines[i].configured = (options->engines >> i & 1) != 0;
    return inside;
}

void inside_free(struct inside *inside)
{
    if (inside == NULL)
        return;
    if (inside->started)
        inside_stop(inside);
    crawlers_free(inside->app.crawlers);
    free(inside);
}

/* ---- requests ----------------------------------------------------------------------------- */

struct inside_exchange {
    struct request request; /* first */
    struct header_scan header;
    pthread_mutex_t lock;
    pthread_cond_t resumed_cond;
    bool resumed;
};

static void resumed(struct request *request)
{
    struct inside_exchange *x = (struct inside_exchange *)request;

    pthread_mutex_lock(&x->lock);
    x->resumed = true;
    pthread_cond_signal(&x->resumed_cond);
    pthread_mutex_unlock(&x->lock);
}

static enum handled wait_if_later(struct inside_exchange *x, enum handled handled)
{
    if (handled != HANDLE_LATER)
        return handled;
    pthread_mutex_lock(&x->lock);
    while (!x->resumed)
        pthread_cond_wait(&x->resumed_cond, &x->lock);
    x->resumed = false;
    pthread_mutex_unlock(&x->lock);
    return HANDLE_CONTINUE;
}

static bool give_body(struct inside *inside, struct inside_exchange *x, const char *body)
{
    const struct route *route = x->request.route;

    if (body == NULL)
        return true;
    if (route->body != NULL)
        return wait_if_later(x, route->body(&inside->app, &x->request, body, strlen(body))) !=
               HANDLED;
    str_append_text(&x->request.body, body);
    if (x->request.body.failed)
        x->request.reply.body.failed = true;
    return !x->request.body.failed;
}

static void run_route(struct inside *inside, struct inside_exchange *x, const char *body)
{
    const struct route *route = x->request.route;
    bool goes_on = true;

    if (route->begin != NULL)
        goes_on = route->begin(&inside->app, &x->request) == HANDLE_CONTINUE;
    if (goes_on && give_body(inside, x, body))
        wait_if_later(x, route->finish(&inside->app, &x->request));
    if (route->done != NULL)
        route->done(&inside->app, &x->request);
}

/* The body as it is sent: of the file, or of memory. */
static void copy_body(struct reply *reply, const struct inside_call *q, struct str *out)
{
    bool streams = q->take != NULL && reply->status / 100 == 2;
    char piece[65536];
    off_t at = 0;
    ssize_t n;

    if (!reply->from_file && streams) {
        q->take(q->context, str_text(&reply->body), reply->body.len);
    } else if (!reply->from_file) {
        *out = reply->body;
        reply->body = (struct str)STR_INIT;
    }
    while (reply->from_file && (n = pread(reply->file, piece, sizeof piece, at)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            reply->status = 0;
        if (n < 0 || (streams && !q->take(q->context, piece, (size_t)n)))
            break;
        if (!streams)
            str_append(out, piece, (size_t)n);
        at += n;
    }
}

static void fill_request(struct inside *inside, struct inside_exchange *x,
                         const struct inside_call *q, char *path, struct str *tail)
{
    const char *user = inside->options.user;
    struct route_match match;
    char *query = strchr(path, '?');

    if (query != NULL)
        *query++ = '\0';
    route_match(routes_admin, routes_admin_count, NULL, path, method_parse(q->method), &match);
    if (match.tail != NULL && !check_decode_segment(match.tail, match.tail_len, tail))
        match.route = NULL;
    x->header.value[HEADER_SITEMAPD_VIA] = inside->via;
    x->header.value[HEADER_ACCEPT] = q->accept;
    x->header.value[HEADER_CONTENT_TYPE] = q->body != NULL ? "application/json" : NULL;
    x->request = (struct request){.method = method_parse(q->method),
                                  .path = path,
                                  .query = query,
                                  .header = &x->header,
                                  .now = time(NULL),
                                  .route = match.route,
                                  .path_tail = match.tail != NULL ? str_text(tail) : NULL,
                                  .token_name = user,
                                  .grant = {.role = GRANT_ADMIN, .name = user},
                                  .resume = resumed};
    reply_init(&x->request.reply);
}

static bool make_ledger(struct inside *inside, const char *target)
{
    if (inside->app.crawlers != NULL || inside->options.ledger == NULL ||
        strncmp(target, "/v1/crawlers", strlen("/v1/crawlers")) != 0)
        return true;
    inside->app.crawlers = inside->options.ledger(inside->options.context);
    return inside->app.crawlers != NULL;
}

unsigned inside_request(struct inside *inside, const struct inside_call *question, struct str *body)
{
    struct inside_exchange *x = calloc(1, sizeof *x);
    char *path = strdup(question->target);
    struct str tail = STR_INIT;
    unsigned status = 0;

    *body = (struct str)STR_INIT;
    if (x != NULL && path != NULL && inside_start(inside) &&
        make_ledger(inside, question->target)) {
        pthread_mutex_init(&x->lock, NULL);
        pthread_cond_init(&x->resumed_cond, NULL);
        fill_request(inside, x, question, path, &tail);
        if (x->request.route == NULL)
            reply_problem(&x->request.reply, 404, "not-found", NULL,
                          "not found: there is nothing at this path");
        else
            run_route(inside, x, question->body);
        if (!x->request.reply.body.failed) {
            copy_body(&x->request.reply, question, body);
            status = x->request.reply.status;
        }
        reply_done(&x->request.reply);
        str_done(&x->request.body);
        pthread_cond_destroy(&x->resumed_cond);
        pthread_mutex_destroy(&x->lock);
    }
    str_done(&tail);
    free(path);
    free(x);
    return body->failed ? 0 : status;
}
