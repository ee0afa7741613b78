/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* All followers wait in one list, and one thread answers them: if this node has newer records than
 * a follower, the thread reads the log (of PostgreSQL, or of the node that this one follows) into a
 * nameless file, which is then sent. Followers at the same record get the same file. So a
 * listener's thread never waits, a slow follower only holds a file, and each record is read from
 * PostgreSQL once. The number of waiting requests and of files being sent is bounded, and so is an
 * answer: one record, or as many as fit into max. */
#include "server/api/peer_log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/api/auth.h"
#include "server/api/errors.h"
#include "server/base/clock.h"
#include "server/base/thread.h"
#include "server/rules/http/query.h"

#define WAITING_MOST 64u
#define SENT_MOST    64u
#define MAX_BYTES    ((uint64_t)16 << 20)
#define WAIT_MOST_MS 20000u
#define IDLE_MS      10000

struct waiting {
    struct waiting *next;
    struct request *request;
    struct peer_log *log;
    bool has_from, tried; /* the log was read and had nothing newer */
    bool away;            /* the log could not be read; it is not read again for this request */
    struct shared_place from;
    char epoch[64]; /* "": any */
    uint64_t max_bytes;
    int64_t until_ms;
    bool sends; /* its file counts against the limit of files being sent */
};

struct peer_log {
    const struct app_context *app; /* borrowed */
    struct shared_reader *reader;  /* only for the thread */
    struct thread thread;

    pthread_mutex_t lock; /* guards the members below */
    struct waiting *first;
    unsigned waiting, sending;

    /* Only for the thread: the last answer, for other followers at the same record. -1: none. */
    int fd;
    uint64_t bytes, max_bytes;
    struct shared_place fd_from;
};

/* ---- the request --------------------------------------------------------------------------- */

enum handled peer_log_begin(void *context, struct request *request)
{
    (void)context;
    request->state = NULL;
    return HANDLE_CONTINUE;
}

static void refuse(struct request *request, unsigned status, const char *code, const char *detail)
{
    reply_problem(&request->reply, status, code, NULL, detail);
    if (status == 503)
        reply_header(&request->reply, "Retry-After", "1");
}

static bool read_number(const struct query *q, const char *name, uint64_t most, uint64_t *out)
{
    const char *text = query_value(q, name);
    return text == NULL || query_number(text, most, out);
}

static bool read_query(const struct query *q, struct waiting *w)
{
    const char *chain = query_value(q, "chain"), *epoch = query_value(q, "epoch");
    uint64_t wait_ms = 0;
    w->has_from = query_value(q, "from") != NULL;
    w->max_bytes = MAX_BYTES;
    if (w->has_from != (chain != NULL) || (chain != NULL && strlen(chain) != SHARED_CHAIN_CHARS) ||
        (epoch != NULL && strlen(epoch) >= sizeof w->epoch) ||
        !read_number(q, "from", INT64_MAX, &w->from.record) ||
        !read_number(q, "max", UINT32_MAX, &w->max_bytes) ||
        !read_number(q, "wait", UINT32_MAX, &wait_ms))
        return false;
    snprintf(w->from.chain, sizeof w->from.chain, "%s", chain != NULL ? chain : "");
    snprintf(w->epoch, sizeof w->epoch, "%s", epoch != NULL ? epoch : "");
    if (w->max_bytes > MAX_BYTES)
        w->max_bytes = MAX_BYTES;
    w->until_ms = clock_now_ms() + (int64_t)(wait_ms < WAIT_MOST_MS ? wait_ms : WAIT_MOST_MS);
    return true;
}

/* False: the request is answered. */
static bool parse(struct request *request, struct waiting *w)
{
    struct query q;
    enum query_status status = query_parse(request->query, &q);
    bool good = status == QUERY_OK && read_query(&q, w);
    if (status == QUERY_OK)
        query_done(&q);
    if (status == QUERY_NO_MEMORY)
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
    else if (!good)
        refuse(request, 400, "malformed-parameter",
               "from, chain, epoch, max and wait are accepted");
    return good;
}

static bool add(struct peer_log *p, struct waiting *w)
{
    pthread_mutex_lock(&p->lock);
    bool fits = p->waiting < WAITING_MOST && !atomic_load(&p->app->stopping);
    if (fits) {
        p->waiting++;
        w->next = p->first;
        p->first = w;
    }
    pthread_mutex_unlock(&p->lock);
    thread_wake(&p->thread);
    return fits;
}

enum handled peer_log_get(void *context, struct request *request)
{
    const struct app_context *app = context;
    struct peer_log *p = app->peer_log;
    if (p == NULL) {
        errors_reply_not_found(&request->reply, "resource");
        return HANDLED;
    }
    if (!auth_is_peer(app, request))
        return HANDLED;
    struct waiting *w = calloc(1, sizeof *w);
    if (w == NULL) {
        errors_reply_status(&request->reply, CATALOGUE_NO_MEMORY);
        return HANDLED;
    }
    w->request = request;
    w->log = p;
    request->state = w; /* freed by peer_log_done */
    if (!parse(request, w))
        return HANDLED;
    if (add(p, w))
        return HANDLE_LATER;
    refuse(request, 503, "too-many-waiting",
           "too many followers are waiting, or the server is stopping");
    return HANDLED;
}

void peer_log_done(void *context, struct request *request)
{
    struct waiting *w = request->state;
    (void)context;
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->log->lock);
    w->log->sending -= w->sends;
    pthread_mutex_unlock(&w->log->lock);
    free(w);
}

/* ---- the thread ---------------------------------------------------------------------------- */

static bool same_place(const struct shared_place *a, const struct shared_place *b)
{
    return a->record == b->record && strcmp(a->chain, b->chain) == 0;
}

static void send_file(struct peer_log *p, struct waiting *w, int fd, uint64_t bytes)
{
    struct reply *reply = &w->request->reply;
    pthread_mutex_lock(&p->lock);
    w->sends = p->sending < SENT_MOST;
    p->sending += w->sends;
    pthread_mutex_unlock(&p->lock);
    int own = w->sends ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (own < 0) {
        refuse(w->request, 503, "too-many-copies", "too many answers are being sent");
        return;
    }
    reply->status = 200;
    reply->content_type = "application/octet-stream";
    reply_file(reply, own, bytes);
    reply_header(reply, "Cache-Control", "no-store");
}

static void refuse_handout(struct request *request, enum shared_handout handout)
{
    if (handout == SHARED_HAND_TRIMMED)
        refuse(request, 410, "log-trimmed",
               "the log no longer has the records after this one: copy the file");
    else if (handout == SHARED_HAND_ALIEN)
        refuse(request, 409, "diverged", "the log does not have this record: copy the file");
    else
        refuse(request, 503, "shared-unavailable", "the log cannot be read now");
}

/* Reads the log for a request, unless the last answer fits. True: the request is answered. */
static bool answer_from_log(struct peer_log *p, struct waiting *w)
{
    uint64_t bytes = 0, records = 0;
    if (w->has_from && p->fd >= 0 && p->max_bytes == w->max_bytes &&
        same_place(&p->fd_from, &w->from)) {
        send_file(p, w, p->fd, p->bytes);
        return true;
    }
    int fd = catalogue_scratch(p->app->catalogue);
    if (fd < 0) {
        refuse(w->request, 503, "no-space", "no file can be created for the answer");
        return true;
    }
    enum shared_handout handout = catalogue_log_hand(p->reader, w->has_from ? &w->from : NULL,
                                                     w->max_bytes, fd, &bytes, &records);
    bool waits =
        handout == SHARED_HANDED && w->has_from && records == 0 && clock_now_ms() < w->until_ms;
    w->tried = true;
    w->away = w->has_from && handout == SHARED_HAND_AWAY;
    if (w->away)
        waits = true; /* the answer then reports that this node is cut off, which is not an error of
                         this node */
    else if (handout != SHARED_HANDED)
        refuse_handout(w->request, handout);
    else if (!waits)
        send_file(p, w, fd, bytes);
    if (handout == SHARED_HANDED && records > 0) {
        if (p->fd >= 0)
            close(p->fd);
        p->fd = fd;
        p->bytes = bytes;
        p->max_bytes = w->max_bytes;
        p->fd_from = w->from;
    } else {
        close(fd);
    }
    return !waits;
}

/* Answers with the position of the log alone, which this node knows without reading the log. */
static void answer_empty(struct peer_log *p, struct waiting *w)
{
    w->has_from = false;
    answer_from_log(p, w);
}

/* True if its client has disconnected: the request is answered, although nobody reads the
 * answer. */
static bool is_gone(struct waiting *w)
{
    if (!request_is_gone(w->request))
        return false;
    w->request->reply.status = 200;
    return true;
}

/* True: the request is answered. */
static bool answer(struct peer_log *p, struct waiting *w)
{
    struct shared_state state;
    struct shared_place here;
    if (atomic_load(&p->app->stopping)) {
        refuse(w->request, 503, "stopping", "the server is stopping");
        return true;
    }
    catalogue_shared_state(p->app->catalogue, &state);
    if (!catalogue_shared_place(p->app->catalogue, &here)) {
        refuse(w->request, 503, "joining", "this node has not joined");
        return true;
    }
    if (w->epoch[0] != '\0' && strcmp(w->epoch, state.epoch) != 0) {
        refuse(w->request, 409, "other-catalogue", "this node has another shared catalogue");
        return true;
    }
    if (!w->has_from)
        return answer_from_log(p, w);
    bool is_over = clock_now_ms() >= w->until_ms;
    if (w->away || same_place(&w->from, &here)) {
        if (is_over)
            answer_empty(p, w);
        return is_over || is_gone(w);
    }
    /* A follower that is ahead of this node found nothing newer: it waits for this node. */
    if (w->tried && !is_over && here.record <= w->from.record)
        return is_gone(w);
    return answer_from_log(p, w);
}

/* Answers all requests that can be answered. Returns how long the thread may sleep unless a record
 * or a follower arrives. Followers that arrived meanwhile have woken the thread. */
static int64_t answer_all(struct peer_log *p)
{
    int64_t now_ms = clock_now_ms(), next_ms = now_ms + IDLE_MS;
    pthread_mutex_lock(&p->lock);
    struct waiting *list = p->first, *kept = NULL, *next;
    p->first = NULL;
    pthread_mutex_unlock(&p->lock);
    for (struct waiting *w = list; w != NULL; w = next) {
        next = w->next;
        struct request *request = w->request;
        if (!answer(p, w)) {
            if (w->until_ms < next_ms)
                next_ms = w->until_ms;
            w->next = kept;
            kept = w;
            continue;
        }
        pthread_mutex_lock(&p->lock);
        p->waiting--;
        pthread_mutex_unlock(&p->lock);
        request_resume(request); /* `w` is freed */
    }
    pthread_mutex_lock(&p->lock);
    while (kept != NULL) {
        next = kept->next;
        kept->next = p->first;
        p->first = kept;
        kept = next;
    }
    pthread_mutex_unlock(&p->lock);
    return next_ms > now_ms ? next_ms - now_ms : 0;
}

static void answer_followers(void *context)
{
    struct peer_log *p = context;
    int64_t wait_ms;
    do {
        wait_ms = answer_all(p);
        if (wait_ms >= IDLE_MS && p->fd >= 0) { /* no request is waiting */
            close(p->fd);
            p->fd = -1;
        }
    } while (thread_wait(&p->thread, wait_ms));
}

static void wake(void *context)
{
    thread_wake(&((struct peer_log *)context)->thread);
}

/* ---- beginning and end --------------------------------------------------------------------- */

struct peer_log *peer_log_new(const struct app_context *app)
{
    struct peer_log *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->app = app;
    p->fd = -1;
    p->reader = catalogue_log_reader(app->catalogue);
    pthread_mutex_init(&p->lock, NULL);
    if (p->reader != NULL && thread_start(&p->thread, "peer log", answer_followers, p)) {
        catalogue_shared_on_move(app->catalogue, wake, p);
        return p;
    }
    peer_log_free(p);
    return NULL;
}

void peer_log_quiesce(struct peer_log *p)
{
    if (p == NULL)
        return;
    catalogue_log_interrupt(p->reader);
    wake(p);
}

void peer_log_free(struct peer_log *p)
{
    if (p == NULL)
        return;
    catalogue_shared_on_move(p->app->catalogue, NULL, NULL);
    thread_stop(&p->thread);
    if (p->fd >= 0)
        close(p->fd);
    catalogue_log_reader_free(p->reader);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
