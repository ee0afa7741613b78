/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A request that is forwarded gets another route: that of the API's table, with the hooks below
 * instead of the call's. A small body stays in memory; a worker writes a larger one to a nameless
 * file beside the catalogue, which counts against the room of spools. The table in the header lists
 * the outcomes.
 *
 * A write that is finally applied here becomes a second request (`direct`) with the same content
 * and without a listener. It passes through the hooks of the call's own route, which may answer
 * later and then resume it from any thread. Two threads advance it:
 *
 *     the thread that called a hook      the thread that resumes
 *     the hook answers HANDLE_LATER
 *     DIRECT_RUNS -> DIRECT_WAITS        any -> DIRECT_RESUMED
 *       was it RESUMED? goes on            was it WAITS? goes on */
#include "server/api/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/api/auth.h"
#include "server/api/call.h"
#include "server/api/copy.h"
#include "server/api/errors.h"
#include "server/api/handlers/handlers.h"
#include "server/crypto/token.h"

#define INLINE_BYTES 65536u
#define ROOM_STEP    ((uint64_t)1 << 20)
#define MOST_WAITS   1u
#define CUT_OFF_MS                                                                                 \
    2000 /* longest wait for the revision of a forwarded write before it is answered */
#define MOST_NAMES 1000u /* bytes of Sitemapd-Forwarded-By */
#define MARK_CHARS 22u   /* 128 bits at random */

struct forward {
    struct app_context *app; /* borrowed */
    char node[SHARED_NODE_NAME_SIZE];
    char passed[SHARED_NODE_NAME_SIZE + 1 +
                MARK_CHARS]; /* "node;mark", which it adds to the header */
    struct route *routes;    /* owned; like routes_admin, for forwarded requests */
    forward_send *send;
    void *sender;
    struct forward_counts counts;
    /* The other node does not accept the token of this node's environment (SITEMAPD_TOKEN). */
    atomic_bool knows_no_environment;
    atomic_int why; /* copy of the target's reason, for reads without the lock */
    pthread_mutex_t lock;
    struct forward_target target; /* under it */
};

/* ---- the target ---------------------------------------------------------------------------- */

void forward_aim(struct forward *f, const struct forward_target *to)
{
    pthread_mutex_lock(&f->lock);
    if (strcmp(f->target.origin, to->origin) != 0)
        atomic_store(&f->knows_no_environment, false);
    f->target = *to;
    atomic_store(&f->why, (int)to->why);
    pthread_mutex_unlock(&f->lock);
}

void forward_target_get(struct forward *f, struct forward_target *out)
{
    *out = (struct forward_target){FORWARD_NOT, "", ""};
    if (f == NULL || atomic_load(&f->why) == FORWARD_NOT)
        return;
    pthread_mutex_lock(&f->lock);
    *out = f->target;
    pthread_mutex_unlock(&f->lock);
}

const struct forward_counts *forward_counts_get(const struct forward *f)
{
    return &f->counts;
}

/* ---- which requests ------------------------------------------------------------------------ */

/* Whether the list of Sitemapd-Forwarded-By names this node, with any mark or with this one. */
static bool names_node(const char *list, const char *node)
{
    size_t len = strlen(node);

    while (list != NULL && *list != '\0') {
        list += strspn(list, ", \t");
        size_t part = strcspn(list, ", \t");
        if (part >= len && strncmp(list, node, len) == 0 && (part == len || list[len] == ';'))
            return true;
        list += part;
    }
    return false;
}

/* Whether a call is never forwarded: it acts on this node's own folders and polls, or its body is
 * as large as a catalogue. */
static bool is_local(const struct route *route)
{
    return route->finish == source_scan || route->finish == check_poll ||
           route->finish == site_import_finish;
}

static bool is_forwarded(struct forward *f, const struct request *request)
{
    const char *by = request_header(request, HEADER_SITEMAPD_FORWARDED_BY);
    int why = f != NULL ? atomic_load(&f->why) : FORWARD_NOT;

    if (why == FORWARD_NOT || (request->method & (HTTP_GET | HTTP_HEAD)) != 0)
        return false;
    if (why == FORWARD_FOLLOWS || names_node(by, f->node))
        return true;
    return by == NULL && !is_local(request->route) &&
           (request->token_id != 0 || !atomic_load(&f->knows_no_environment));
}

bool forward_authorise(void *context, struct request *request)
{
    const struct app_context *app = context;

    if (!routes_authorise(context, request))
        return false;
    if (is_forwarded(app->forward, request))
        request->route = &app->forward->routes[request->route - routes_admin];
    return true;
}

/* ---- the body ------------------------------------------------------------------------------ */

static const struct route *own_route(const struct forwarded *w)
{
    return &routes_admin[w->request->route - w->forward->routes];
}

/* The largest body of a list. For other calls the listener bounds it, and ignores a small body
 * where none belongs. */
static uint64_t most_bytes(const struct forwarded *w)
{
    bool is_list = w->route->max_body_bytes == UINT64_MAX && w->route->finish != site_import_finish;
    return is_list ? w->forward->app->max_bulk_bytes : UINT64_MAX;
}

static enum handled refuse_large(struct request *request)
{
    reply_done(&request->reply);
    reply_problem(&request->reply, 413, "body-too-large", NULL,
                  "the body is larger than max_bulk in [limits] allows");
    return HANDLED;
}

static enum handled forward_begin(void *context, struct request *request)
{
    struct app_context *app = context;
    const char *by = request_header(request, HEADER_SITEMAPD_FORWARDED_BY);
    const char *length = request_header(request, HEADER_CONTENT_LENGTH);
    struct traceparent from;
    uint64_t bytes;

    if (names_node(by, app->forward->node) || (by != NULL && strlen(by) > MOST_NAMES)) {
        if (names_node(by, app->forward->passed)) /* not a client's header */
            atomic_fetch_add(&app->forward->counts.loops, 1);
        reply_problem(&request->reply, 508, "forwarding-loop", NULL,
                      "loop: this node has already forwarded this request; check forward in "
                      "[shared] on all nodes; nothing was applied");
        return HANDLED;
    }
    if (catalogue_disk_is_full(app->catalogue)) {
        errors_reply_status(&request->reply, CATALOGUE_NO_SPACE);
        return HANDLED;
    }
    struct forwarded *w = calloc(1, sizeof *w);
    if (w == NULL) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return HANDLED;
    }
    request->state = w;
    w->forward = app->forward;
    w->request = request;
    w->route = own_route(w);
    w->method = method_name(request->method);
    w->fd = -1;
    forward_target_get(w->forward, &w->to);
    request_traceparent(request, &from);
    trace_begin(app->trace, &from, &w->span);
    if (length != NULL && (!query_number(length, UINT64_MAX, &bytes) || bytes > most_bytes(w)))
        return refuse_large(request);
    return HANDLE_CONTINUE;
}

static void give_up(struct forwarded *w, enum spool_status why)
{
    if (!w->over)
        errors_reply_spool(&w->request->reply, why);
    w->over = true;
}

/* Reserves room for the body, of that of all lists and of those of the token's site. */
static bool take_room(struct forwarded *w)
{
    while (w->taken < w->bytes) {
        if (!spool_room_take(&w->forward->app->spool_room, w->request->grant.site_id, ROOM_STEP))
            return false;
        w->taken += ROOM_STEP;
    }
    return true;
}

static enum spool_status write_held(struct forwarded *w)
{
    uint64_t at = w->bytes - w->held.len;

    if (!take_room(w))
        return SPOOL_CROWDED;
    if (w->fd < 0) {
        char *name = copy_make_file(w->forward->app);
        w->fd = name != NULL ? open(name, O_RDWR | O_CLOEXEC) : -1;
        if (name != NULL)
            copy_remove_file(name);
        free(name);
    }
    for (size_t done = 0; w->fd >= 0 && done < w->held.len;) {
        ssize_t n = pwrite(w->fd, w->held.data + done, w->held.len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return errno == ENOSPC || errno == EDQUOT ? SPOOL_NO_SPACE : SPOOL_FAILED;
        done += (size_t)n;
    }
    str_done(&w->held);
    return w->fd >= 0 ? SPOOL_OK : SPOOL_FAILED;
}

static void run_piece(void *context)
{
    struct forwarded *w = context;
    enum spool_status status = write_held(w);

    if (status != SPOOL_OK)
        give_up(w, status);
    request_resume(w->request);
}

static enum handled forward_body(void *context, struct request *request, const void *bytes,
                                 size_t len)
{
    struct forwarded *w = request->state;
    struct app_context *app = context;

    w->bytes += len;
    if (w->bytes > most_bytes(w))
        return refuse_large(request);
    if (w->over)
        return HANDLE_CONTINUE;
    str_append(&w->held, bytes, len);
    if (w->held.failed) {
        give_up(w, SPOOL_NO_MEMORY);
        return HANDLED;
    }
    if (w->fd < 0 && w->bytes <= INLINE_BYTES)
        return HANDLE_CONTINUE;
    if (workers_run(app->readers, request->grant.site_id, run_piece, w))
        return HANDLE_LATER;
    errors_reply_status(&request->reply, CATALOGUE_BUSY);
    return HANDLED;
}

static void forward_done(void *context, struct request *request)
{
    struct forwarded *w = request->state;
    struct app_context *app = context;

    if (w == NULL)
        return;
    request->state = NULL;
    if (w->fd >= 0)
        close(w->fd);
    spool_room_give(&app->spool_room, request->grant.site_id, w->taken);
    str_done(&w->held);
    str_done(&w->target);
    str_done(&w->headers);
    free(w);
}

/* ---- what is sent -------------------------------------------------------------------------- */

/* A line break would begin another header line, or another request on the shared connection. */
static bool is_line(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' && *text != '\t')
            return false;
    return true;
}

static bool add_header(struct forwarded *w, const char *name, const char *value)
{
    if (value == NULL)
        return true;
    str_append_format(&w->headers, "%s: %s\r\n", name, value);
    return is_line(value);
}

/* Adds all headers that the call reads, and those that identify the client and the forwarding
 * nodes. */
static bool add_headers(struct forwarded *w)
{
    static const struct {
        enum known_header header;
        const char *name;
    } passed[] = {{HEADER_AUTHORIZATION, "Authorization"},
                  {HEADER_CONTENT_TYPE, "Content-Type"},
                  {HEADER_CONTENT_ENCODING, "Content-Encoding"},
                  {HEADER_ACCEPT, "Accept"},
                  {HEADER_IF_MATCH, "If-Match"},
                  {HEADER_IF_NONE_MATCH, "If-None-Match"},
                  {HEADER_IF_UNMODIFIED_SINCE, "If-Unmodified-Since"},
                  {HEADER_SITEMAPD_VIA, "Sitemapd-Via"}};
    const struct request *request = w->request;
    const char *by = request_header(request, HEADER_SITEMAPD_FORWARDED_BY);
    const char *key = request_header(request, HEADER_IDEMPOTENCY_KEY);
    bool good = true;

    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        good = good && add_header(w, passed[i].name, request_header(request, passed[i].header));
    /* Several keys are sent as an invalid one: the other node rejects them as this one would. */
    if (key != NULL && request->header->lines[HEADER_IDEMPOTENCY_KEY] > 1)
        key = "several keys";
    good =
        good && add_header(w, "Idempotency-Key", key) && add_header(w, "X-Request-Id", request->id);
    if (traceparent_is_set(&w->span.context))
        add_header(w, "Traceparent", w->span.context.text);
    str_append_format(&w->headers, "Sitemapd-Forwarded-By: %s%s%s\r\n", by != NULL ? by : "",
                      by != NULL ? ", " : "", w->forward->passed);
    return good && (by == NULL || is_line(by));
}

static bool make_message(struct forwarded *w)
{
    const struct request *request = w->request;

    str_append_text(&w->target, request->path);
    if (request->query != NULL)
        str_append_format(&w->target, "?%s", request->query);
    if (!add_headers(w) || strpbrk(str_text(&w->target), " \t") != NULL ||
        !is_line(str_text(&w->target))) {
        reply_problem(&w->request->reply, 400, "malformed-request", NULL,
                      "a header or the target has control characters");
        return false;
    }
    if (!w->target.failed && !w->headers.failed)
        return true;
    errors_reply_status(&w->request->reply, CATALOGUE_NO_MEMORY);
    return false;
}

static enum handled forward_finish(void *context, struct request *request)
{
    struct forwarded *w = request->state;

    if (w->over || !auth_still_holds(context, request) || !make_message(w))
        return HANDLED;
    atomic_fetch_add(&w->forward->counts.under_way, 1);
    w->forward->send(w->forward->sender, w);
    return HANDLE_LATER;
}

/* ---- applied here after all ---------------------------------------------------------------- */

enum direct_wait { DIRECT_RUNS, DIRECT_WAITS, DIRECT_RESUMED };
enum direct_stage { DIRECT_BEGIN, DIRECT_BODY, DIRECT_FINISH, DIRECT_END };

static void end_forwarding(struct forwarded *w)
{
    atomic_fetch_sub(&w->forward->counts.under_way, 1);
    request_resume(w->request);
}

static void direct_end(struct forwarded *w)
{
    struct request *direct = &w->direct;

    if (w->route->done != NULL)
        w->route->done(w->forward->app, direct);
    str_done(&direct->body);
    reply_move(&w->request->reply, &direct->reply);
    end_forwarding(w);
}

/* Reads the next piece of the body into `held`; false if it cannot be read. */
static bool direct_piece(struct forwarded *w, size_t *len)
{
    *len =
        (size_t)(w->bytes - w->direct_at < INLINE_BYTES ? w->bytes - w->direct_at : INLINE_BYTES);
    w->direct_at += *len;
    if (w->fd < 0)
        return true;
    str_clear(&w->held);
    if (!str_reserve(&w->held, INLINE_BYTES))
        return false;
    for (size_t got = 0; got < *len;) {
        ssize_t n =
            pread(w->fd, w->held.data + got, *len - got, (off_t)(w->direct_at - *len + got));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

static enum handled direct_give(struct forwarded *w)
{
    struct request *direct = &w->direct;
    size_t len;

    if (!direct_piece(w, &len)) {
        errors_reply_status(&direct->reply, CATALOGUE_UNAVAILABLE);
        return HANDLED;
    }
    if (w->route->body != NULL)
        return w->route->body(w->forward->app, direct, w->held.data, len);
    str_append(&direct->body, w->held.data, len);
    if (!direct->body.failed)
        return HANDLE_CONTINUE;
    errors_reply_status(&direct->reply, CATALOGUE_NO_MEMORY);
    return HANDLED;
}

/* Calls the next hook. */
static enum handled direct_step(struct forwarded *w)
{
    struct app_context *app = w->forward->app;
    struct request *direct = &w->direct;
    enum handled handled = HANDLE_CONTINUE;

    switch ((enum direct_stage)atomic_load(&w->direct_stage)) {
    case DIRECT_BEGIN:
        atomic_store(&w->direct_stage, DIRECT_BODY);
        return w->route->begin != NULL ? w->route->begin(app, direct) : HANDLE_CONTINUE;
    case DIRECT_BODY:
        if (w->direct_at < w->bytes)
            return direct_give(w);
        atomic_store(&w->direct_stage, DIRECT_FINISH);
        return HANDLE_CONTINUE;
    case DIRECT_FINISH:
        atomic_store(&w->direct_stage, DIRECT_END);
        handled = w->route->finish(app, direct);
        if (handled == HANDLED && direct->answer != NULL)
            direct->answer(direct);
        return handled;
    case DIRECT_END:
        break;
    }
    return HANDLED;
}

/* One thread at a time; it does not touch `w` any more once the resuming thread may continue. */
static void direct_run(void *context)
{
    struct forwarded *w = context;

    enum handled handled = HANDLE_CONTINUE;

    while (handled != HANDLED && w->direct.reply.status == 0) {
        atomic_store(&w->direct_wait, DIRECT_RUNS);
        handled = direct_step(w);
        int expected = DIRECT_RUNS;
        if (handled == HANDLE_LATER &&
            atomic_compare_exchange_strong(&w->direct_wait, &expected, DIRECT_WAITS))
            return;
    }
    direct_end(w);
}

static void direct_resumed(struct request *direct)
{
    struct forwarded *w =
        (struct forwarded *)(void *)((char *)direct - offsetof(struct forwarded, direct));

    if (atomic_exchange(&w->direct_wait, DIRECT_RESUMED) == DIRECT_WAITS)
        direct_run(w);
}

static void apply_directly(struct forwarded *w)
{
    struct app_context *app = w->forward->app;
    const struct request *request = w->request;

    atomic_fetch_add(&w->forward->counts.direct, 1);
    w->direct = *request; /* it borrows its texts from the request, which stays */
    w->direct.route = w->route;
    w->direct.exchange = NULL;
    w->direct.resume = direct_resumed;
    w->direct.state = NULL;
    w->direct.body = (struct str)STR_INIT;
    reply_init(&w->direct.reply);
    if (workers_run(app->readers, request->grant.site_id, direct_run, w))
        return;
    errors_reply_status(&w->request->reply, CATALOGUE_BUSY);
    end_forwarding(w);
}

/* ---- the outcome --------------------------------------------------------------------------- */

static void end_span(struct forwarded *w)
{
    const struct reply *reply = &w->request->reply;

    if (w->span.recorded)
        trace_end(w->forward->app->trace, &w->span,
                  &(struct trace_end){.method = w->method,
                                      .name = w->route->path,
                                      .site_id = w->request->grant.site_id,
                                      .status = reply->status,
                                      .failed = reply->status >= 500});
}

void forward_add_revision(const struct app_context *app, struct request *request)
{
    char revision[24];

    if (request_header(request, HEADER_SITEMAPD_FORWARDED_BY) == NULL)
        return;
    snprintf(revision, sizeof revision, "%" PRIu64, publisher_revision(app->publisher));
    reply_header(&request->reply, FORWARD_REVISION, revision);
}

/* Whether writes of other nodes have not arrived for a while: the log cannot be reached, or this
 * node's disk is full. */
static bool is_cut_off(void *context)
{
    const struct forwarded *w = context;
    struct shared_state state;

    return catalogue_shared_state(w->forward->app->catalogue, &state) &&
           (state.away_ms > CUT_OFF_MS ||
            (state.trouble[0] != '\0' && state.behind_ms > CUT_OFF_MS));
}

/* All nodes count revisions alike: if this node's file is replaced by another copy meanwhile, the
 * wait continues in that copy. */
static void revision_seen(void *context, enum await_result result)
{
    struct forwarded *w = context;

    if (result == AWAIT_REPLACED && w->waits++ < MOST_WAITS) {
        publisher_await_forwarded(w->forward->app->publisher, w->revision, revision_seen,
                                  is_cut_off, w);
        return;
    }
    if (result != AWAIT_DONE)
        atomic_fetch_add(&w->forward->counts.unseen, 1);
    forward_add_revision(w->forward->app, w->request);
    end_span(w);
    end_forwarding(w);
}

/* Whether the answer means that nothing was applied, for a reason that concerns only the other
 * node. */
static bool is_theirs(const struct forwarded *w)
{
    static const char *const codes[] = {
        "stopping",    "cancelled", "shared-unavailable", "upgrade-pending",   "diverged",
        "unavailable", "newer",     "unauthorized",       "too-many-failures", "host-not-allowed",
        "no-space"};
    const struct reply *reply = &w->request->reply;
    char member[48];

    if (reply->status < 400)
        return false;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        snprintf(member, sizeof member, "\"code\":\"%s\"", codes[i]);
        if (strstr(str_text(&reply->body), member) != NULL)
            return true;
    }
    return false;
}

void forward_answered(struct forwarded *w, uint64_t revision)
{
    struct forward *f = w->forward;
    struct reply *reply = &w->request->reply;

    if (w->to.why != FORWARD_FOLLOWS && is_theirs(w)) {
        if (reply->status == 401 && w->request->token_id == 0)
            atomic_store(&f->knows_no_environment, true);
        reply_done(reply);
        apply_directly(w);
        return;
    }
    atomic_fetch_add(&f->counts.answered, 1);
    w->revision = revision;
    if (revision == 0)
        revision_seen(w, AWAIT_DONE);
    else
        publisher_await_forwarded(f->app->publisher, revision, revision_seen, is_cut_off, w);
}

void forward_failed(struct forwarded *w, bool sent)
{
    struct forward *f = w->forward;
    struct reply *reply = &w->request->reply;
    bool has_key = request_header(w->request, HEADER_IDEMPOTENCY_KEY) != NULL;

    reply_done(reply);
    if (w->to.why != FORWARD_FOLLOWS && (!sent || has_key)) {
        apply_directly(w);
        return;
    }
    if (sent) {
        atomic_fetch_add(&f->counts.unknown, 1);
        reply_problem(reply, 504, catalogue_status_word(CATALOGUE_OUTCOME_UNKNOWN), NULL,
                      "the node that this one forwards writes to did not answer; the change may "
                      "have been applied; retry with the same Idempotency-Key, or check first");
    } else {
        atomic_fetch_add(&f->counts.failed, 1);
        reply_problem(reply, 503, "forward-failed", NULL,
                      "the node that this one forwards writes to cannot be reached; nothing was "
                      "applied, retry");
    }
    reply_header(reply, "Retry-After", sent ? "5" : "2");
    end_span(w);
    end_forwarding(w);
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct forward *forward_new(struct app_context *app, const char *node)
{
    struct forward *f = calloc(1, sizeof *f);
    char random[TOKEN_TEXT_SIZE];

    if (f != NULL && token_make(random))
        f->routes = calloc(routes_api_count, sizeof *f->routes);
    if (f == NULL || f->routes == NULL) {
        free(f);
        return NULL;
    }
    f->app = app;
    snprintf(f->node, sizeof f->node, "%s", node);
    snprintf(f->passed, sizeof f->passed, "%s;%.*s", node, (int)MARK_CHARS, random + 4);
    pthread_mutex_init(&f->lock, NULL);
    for (size_t i = 0; i < routes_api_count; i++) {
        f->routes[i] = routes_admin[i];
        f->routes[i].begin = forward_begin;
        f->routes[i].body = forward_body;
        f->routes[i].finish = forward_finish;
        f->routes[i].done = forward_done;
    }
    return f;
}

void forward_use(struct forward *f, forward_send *send, void *sender)
{
    f->send = send;
    f->sender = sender;
}

void forward_free(struct forward *f)
{
    if (f == NULL)
        return;
    pthread_mutex_destroy(&f->lock);
    free(f->routes);
    free(f);
}
