/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* One thread with a loop of requests. Limits:
 *
 *     MOST         requests at once, a share for one site's tokens (site_table.h); the rest wait in
 *                  order, as many as the listener allows (admin.max_suspended)
 *     LISTS_MOST   of these: lists, which take long; a share for one site's tokens
 *     TIMEOUT_MS   for a request: a list of a million lines takes minutes
 *     ANSWER_MOST  bytes of a response; the rows of a dry run are the longest
 *     STOP_MS      for requests that are under way when the server stops
 *
 * A node that is down or hangs does not report that. So while requests are under way, /healthz is
 * requested as well; after MISSES_MOST failures in a row all requests fail, and nothing is sent to
 * the node until it answers again.
 *
 * A request is sent only once: if it breaks after some of it was sent, its outcome is unknown. */
#include "server/forwarder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/api/forward.h"
#include "server/base/clock.h"
#include "server/base/site_table.h"
#include "server/base/thread.h"
#include "server/client/loop.h"
#include "server/log/log.h"

#define MOST         256u
#define LISTS_MOST   128u
#define TIMEOUT_MS   (30u * 60 * 1000)
#define ANSWER_MOST  ((uint64_t)64 << 20)
#define POLL_MS      500
#define PROBE_MS     5000 /* between two health requests, and the timeout of one */
#define MISSES_MOST  2u
#define STOP_MS      5000
#define SAY_AGAIN_MS 60000

/* A request under way. */
struct sending {
    struct sending *next, **self;
    struct forwarder *forwarder;
    struct forwarded *w;
    struct fetch_transfer *transfer;
    struct url url;
    uint64_t given;
};

struct forwarder {
    struct forward *forward; /* borrowed */
    const atomic_bool *stopping;
    const char *ca_file;
    struct fetch_loop *loop;
    struct thread thread;
    /* Only for the thread. */
    struct sending *under_way;
    struct site_uses places, lists; /* of requests under way, and of lists among them */
    int64_t stopping_since_ms, said_at;
    struct url url; /* of the node that gets the writes */
    bool probing, is_away;
    unsigned misses;
    int64_t probe_at;

    pthread_mutex_t lock; /* guards the members below */
    struct forwarded *waiting, **last;
    bool closed;
};

/* ---- an answer ----------------------------------------------------------------------------- */

/* The response headers that are passed on to the client; struct reply can keep their names. */
static const char *const passed[] = {"ETag",
                                     "Location",
                                     "Retry-After",
                                     "Cache-Control",
                                     "Accept-Encoding",
                                     "WWW-Authenticate",
                                     "Allow",
                                     "Idempotency-Replayed"};

static const char *const types[] = {"application/json", "application/problem+json",
                                    "application/x-ndjson", "text/plain; charset=utf-8"};

static const char *static_type(const char *type)
{
    for (size_t i = 0; type != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i]) == 0)
            return types[i];
    return type != NULL ? "application/octet-stream" : NULL;
}

static void fill_reply(struct reply *reply, struct fetch_reply *answer)
{
    reply->status = answer->status;
    reply->content_type = static_type(fetch_header(answer, "Content-Type"));
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        const char *value = fetch_header(answer, passed[i]);
        if (value != NULL)
            reply_header(reply, passed[i], value);
    }
    reply->body = answer->body;
    answer->body = (struct str)STR_INIT;
}

static uint64_t read_revision(const struct fetch_reply *answer)
{
    const char *text = fetch_header(answer, FORWARD_REVISION);
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static void say_failed(struct forwarder *f, const struct forwarded *w, const char *why)
{
    int64_t now = clock_now_ms();

    if (f->said_at != 0 && now - f->said_at < SAY_AGAIN_MS)
        return;
    f->said_at = now;
    log_event(LOG_LEVEL_WARNING, "forward-failed",
              "a write could not be forwarded to %s: %s. This is logged once a minute at most",
              w->to.origin, why);
}

static bool is_list(const struct forwarded *w)
{
    return w->fd >= 0;
}

static bool take_place(struct forwarder *f, const struct forwarded *w)
{
    int64_t site_id = w->request->grant.site_id;

    if (!site_uses_take(&f->places, site_id, 1, MOST))
        return false;
    if (!is_list(w) || site_uses_take(&f->lists, site_id, 1, LISTS_MOST))
        return true;
    site_uses_give(&f->places, site_id, 1);
    return false;
}

static void give_place(struct forwarder *f, const struct forwarded *w)
{
    site_uses_give(&f->places, w->request->grant.site_id, 1);
    if (is_list(w))
        site_uses_give(&f->lists, w->request->grant.site_id, 1);
}

static struct forwarded *end_sending(struct sending *s)
{
    struct forwarder *f = s->forwarder;
    struct forwarded *w = s->w;

    *s->self = s->next;
    if (s->next != NULL)
        s->next->self = s->self;
    give_place(f, w);
    free(s);
    return w;
}

static void on_done(void *context, enum fetch_status status, struct fetch_reply *answer)
{
    struct sending *s = context;
    struct forwarder *f = s->forwarder;
    struct forwarded *w = end_sending(s);

    if (status == FETCH_OK && !answer->cut) {
        fill_reply(&w->request->reply, answer);
        forward_answered(w, read_revision(answer));
        return;
    }
    say_failed(f, w, status != FETCH_OK ? answer->why : "its answer is too large");
    forward_failed(w, answer->sent);
}

/* ---- a request ----------------------------------------------------------------------------- */

static ssize_t give(void *context, char *bytes, size_t size)
{
    struct sending *s = context;
    ssize_t n = pread(s->w->fd, bytes, size, (off_t)s->given);

    s->given += n > 0 ? (uint64_t)n : 0;
    return n > 0 || s->given == s->w->bytes ? n : -1;
}

/* For a node other than the last one, forgets what was known. */
static void know_node(struct forwarder *f, const struct url *url)
{
    if (strcmp(f->url.text, url->text) == 0)
        return;
    f->url = *url;
    f->is_away = false;
    f->misses = 0;
    f->probe_at = clock_now_ms() + PROBE_MS;
}

/* False: nothing was sent. */
static bool start_sending(struct forwarder *f, struct forwarded *w)
{
    struct sending *s = calloc(1, sizeof *s);
    bool has_body = w->route->max_body_bytes > 0 &&
                    (w->request->method & (HTTP_POST | HTTP_PUT | HTTP_PATCH)) != 0;

    if (s == NULL || url_parse_origin(w->to.origin, strlen(w->to.origin), &s->url) != RULE_OK) {
        free(s);
        return false;
    }
    know_node(f, &s->url);
    if (f->is_away) {
        free(s);
        return false;
    }
    const struct fetch_request request = {.url = &s->url,
                                          .target = str_text(&w->target),
                                          .method = w->method,
                                          .agent = "sitemapd",
                                          .headers = str_text(&w->headers),
                                          .timeout_ms = TIMEOUT_MS,
                                          .max_bytes = ANSWER_MOST,
                                          .ca_more = f->ca_file,
                                          .once = true,
                                          .body = has_body ? str_text(&w->held) : NULL,
                                          .give = has_body && w->fd >= 0 ? give : NULL,
                                          .give_bytes = w->bytes,
                                          .context = s};
    s->forwarder = f;
    s->w = w;
    s->transfer = fetch_loop_add(f->loop, &request, on_done);
    if (s->transfer == NULL) {
        free(s);
        return false;
    }
    s->next = f->under_way;
    s->self = &f->under_way;
    if (s->next != NULL)
        s->next->self = &s->next;
    f->under_way = s;
    return true;
}

/* Removes the first waiting request that may start from the list and returns it, with a place. */
static struct forwarded *take_waiting(struct forwarder *f)
{
    struct forwarded **at, *w = NULL;

    pthread_mutex_lock(&f->lock);
    for (at = &f->waiting; *at != NULL && w == NULL;) {
        if (take_place(f, *at))
            w = *at;
        else
            at = &(*at)->next;
    }
    if (w != NULL) {
        *at = w->next;
        if (*at == NULL)
            f->last = at;
    }
    pthread_mutex_unlock(&f->lock);
    return w;
}

static void forwarder_send(void *context, struct forwarded *w)
{
    struct forwarder *f = context;

    w->next = NULL;
    pthread_mutex_lock(&f->lock);
    bool closed = f->closed;
    if (!closed) {
        *f->last = w;
        f->last = &w->next;
        fetch_loop_wake(f->loop);
    }
    pthread_mutex_unlock(&f->lock);
    if (closed)
        forward_failed(w, false);
}

/* ---- health of the node -------------------------------------------------------------------- */

static void fail_under_way(struct forwarder *f)
{
    while (f->under_way != NULL) {
        struct sending *s = f->under_way;
        fetch_loop_remove(f->loop, s->transfer);
        forward_failed(end_sending(s), true);
    }
}

static void on_probed(void *context, enum fetch_status status, struct fetch_reply *answer)
{
    struct forwarder *f = context;

    f->probing = false;
    f->probe_at = clock_now_ms() + (status == FETCH_OK ? PROBE_MS : POLL_MS);
    f->misses = status == FETCH_OK ? 0 : f->misses + 1;
    f->is_away = f->misses >= MISSES_MOST;
    if (!f->is_away || f->under_way == NULL)
        return;
    say_failed(f, f->under_way->w, answer->why);
    fail_under_way(f);
}

static void probe(struct forwarder *f)
{
    const struct fetch_request request = {.url = &f->url,
                                          .target = "/healthz",
                                          .method = "GET",
                                          .agent = "sitemapd",
                                          .timeout_ms = PROBE_MS,
                                          .max_bytes = 4096,
                                          .ca_more = f->ca_file,
                                          .context = f};

    if (f->probing || (f->under_way == NULL && !f->is_away) || clock_now_ms() < f->probe_at)
        return;
    f->probing = fetch_loop_add(f->loop, &request, on_probed) != NULL;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static bool has_time(struct forwarder *f)
{
    int64_t now = clock_now_ms();

    if (!atomic_load(f->stopping))
        return !thread_stops(&f->thread);
    if (f->stopping_since_ms == 0)
        f->stopping_since_ms = now;
    return !thread_stops(&f->thread) && now - f->stopping_since_ms < STOP_MS;
}

static void fail_all(struct forwarder *f)
{
    struct forwarded *waiting;

    pthread_mutex_lock(&f->lock);
    f->closed = true;
    waiting = f->waiting;
    f->waiting = NULL;
    f->last = &f->waiting;
    pthread_mutex_unlock(&f->lock);
    while (waiting != NULL) {
        struct forwarded *w = waiting;
        waiting = w->next;
        forward_failed(w, false);
    }
    fail_under_way(f);
}

static void forwarder_run(void *context)
{
    struct forwarder *f = context;
    struct forwarded *w;

    while (has_time(f)) {
        while ((w = take_waiting(f)) != NULL)
            if (!start_sending(f, w)) {
                give_place(f, w);
                forward_failed(w, false);
            }
        probe(f);
        if (!fetch_loop_poll(f->loop, POLL_MS))
            thread_wait(&f->thread, 100);
    }
    fail_all(f);
}

struct forwarder *forwarder_new(struct forward *forward, const char *ca_file,
                                const atomic_bool *stopping)
{
    struct forwarder *f = calloc(1, sizeof *f);

    if (f == NULL)
        return NULL;
    f->forward = forward;
    f->stopping = stopping;
    f->ca_file = ca_file;
    f->last = &f->waiting;
    pthread_mutex_init(&f->lock, NULL);
    f->loop = fetch_loop_new();
    if (f->loop != NULL)
        fetch_loop_keep(f->loop, MOST);
    forward_use(forward, forwarder_send, f);
    if (f->loop != NULL && thread_start(&f->thread, "forwarder", forwarder_run, f))
        return f;
    forwarder_free(f);
    return NULL;
}

void forwarder_free(struct forwarder *f)
{
    if (f == NULL)
        return;
    thread_end(&f->thread);
    if (f->loop != NULL)
        fetch_loop_wake(f->loop);
    thread_join(&f->thread);
    fetch_loop_free(f->loop);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
