/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reads the log of another node, one answer at a time. */
#include "db/shared/followed.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/shared/record.h"
#include "server/base/clock.h"
#include "server/base/file.h"
#include "server/base/text.h"

/* Most bytes of an answer, beyond its first record. */
#define ANSWER_BYTES (4u << 20)
#define ANSWER_MS    5000 /* until it begins, in addition to the time of a long poll */
#define WAIT_STEP_MS 100

struct answer {
    int fd;           /* -1: not made yet */
    bool filled;      /* the file has an answer */
    unsigned readers; /* the file does not change while there are any */
    uint64_t bytes;
    struct shared_position from, to;
};

struct followed {
    const struct shared_followed *calls; /* borrowed, or NULL */
    char *folder;
    pthread_mutex_t lock; /* guards the members below */
    pthread_cond_t moved;
    struct answer answers[2]; /* the last one, and the one before it that had records */
    unsigned last;
    bool read; /* this node has read the last one to its end */
    struct relay_head head;
};

struct followed_log {
    struct shared_log log; /* first */
    struct followed *u;
    enum followed_use use;
    void *link;
    atomic_bool interrupted;
    char expected[SHARED_EPOCH_SIZE]; /* "": any */
    struct shared_unpacker *unpacker;
    char why[256];
    bool asked; /* `overview` had an answer */
};

static struct followed_log *log_of(struct shared_log *log)
{
    return (struct followed_log *)log;
}

static bool same_position(const struct shared_position *a, const struct shared_position *b)
{
    return a->seq == b->seq && memcmp(a->chain, b->chain, SHARED_CHAIN_BYTES) == 0;
}

static bool is_interrupted(void *context)
{
    return atomic_load(&((struct followed_log *)context)->interrupted);
}

/* ---- an answer */

static enum shared_outcome fail(struct followed_log *l, enum shared_outcome outcome,
                                const char *gist, const char *what)
{
    snprintf(l->why, sizeof l->why, "%s%s%s", gist, *what != '\0' ? ": " : "", what);
    return outcome;
}

static enum shared_outcome classify(struct followed_log *l,
                                    const struct shared_followed_reply *reply)
{
    if (reply->status == 409 && strcmp(reply->code, "other-catalogue") == 0)
        return fail(l, SHARED_TRIMMED,
                    "the followed node has another catalogue than this node's file", "");
    if (reply->status == 409 && strcmp(reply->code, "diverged") == 0)
        return fail(l, SHARED_DIVERGED, "the log does not have the records that this node has",
                    reply->detail);
    if (reply->status == 410)
        return fail(l, SHARED_TRIMMED, "the log no longer has the records that this node lacks",
                    "");
    if (reply->status == 401)
        return fail(l, SHARED_AWAY, "the followed node rejects the secret (peer_token_file)", "");
    if (reply->status == 421)
        return fail(l, SHARED_AWAY,
                    "the followed node rejects the host name in `follow`: add it to allowed_hosts "
                    "in [admin] there",
                    "");
    if (reply->status == 404)
        return fail(l, SHARED_AWAY,
                    "the followed node does not serve its log: it needs peer_token_file and a "
                    "shared catalogue, and `follow` must be its admin listener",
                    "");
    return fail(l, SHARED_AWAY, "the followed node cannot serve its log now", reply->detail);
}

/* The caller alone uses the file. */
static enum shared_outcome take_answer(struct followed_log *l, const struct shared_position *from,
                                       uint64_t bytes)
{
    struct followed *u = l->u;
    struct relay_head head;
    struct shared_position to;
    char why[128] = "";
    struct answer *a = &u->answers[u->last];
    if (!relay_scan(a->fd, bytes, from, &head, &to, why, sizeof why))
        return fail(l, SHARED_AWAY, "the answer of the followed node is invalid", why);
    if (l->expected[0] != '\0' && strcmp(l->expected, head.epoch) != 0)
        return fail(l, SHARED_TRIMMED, "the followed node has another catalogue", "");
    if (head.hops >= RELAY_HOPS_MOST)
        return fail(l, SHARED_AWAY, "loop: the followed nodes follow each other", "");
    pthread_mutex_lock(&u->lock);
    a->bytes = bytes;
    a->from = *from;
    a->to = to;
    a->filled = true;
    u->head = head;
    u->read = false;
    pthread_mutex_unlock(&u->lock);
    if (to.seq == from->seq && head.away_ms > 0)
        return fail(l, SHARED_AWAY,
                    "the followed node itself cannot reach PostgreSQL or the node that it follows",
                    "");
    return SHARED_YES;
}

static bool has_records(const struct answer *a)
{
    return a->filled && a->to.seq > a->from.seq;
}

/* Makes an empty file for the next answer: replaces the last answer if that had no records, else
 * the one before it. Waits for its readers. False: errno. */
static bool make_file(struct followed *u)
{
    pthread_mutex_lock(&u->lock);
    if (has_records(&u->answers[u->last]))
        u->last ^= 1;
    struct answer *a = &u->answers[u->last];
    a->filled = false;
    while (a->readers > 0)
        pthread_cond_wait(&u->moved, &u->lock);
    pthread_mutex_unlock(&u->lock);
    if (a->fd < 0)
        a->fd = file_open_nameless(u->folder);
    return a->fd >= 0 && ftruncate(a->fd, 0) == 0;
}

static enum shared_outcome ask(struct followed_log *l, const char *target, uint32_t timeout_ms,
                               uint64_t *bytes)
{
    struct followed *u = l->u;
    struct shared_followed_reply reply = {0};
    if (u->calls == NULL)
        return fail(l, SHARED_AWAY,
                    "only a running server (`sitemapd serve`) can follow another node", "");
    if (l->link == NULL && (l->link = u->calls->open(u->calls->context)) == NULL)
        return SHARED_NO_MEMORY;
    if (!make_file(u))
        return fail(l, SHARED_AWAY, "the answer of the followed node cannot be stored",
                    strerror(errno));
    const struct shared_followed_request request = {.target = target,
                                                    .fd = u->answers[u->last].fd,
                                                    .timeout_ms = timeout_ms,
                                                    .stops = is_interrupted,
                                                    .stops_context = l};
    u->calls->get(l->link, &request, &reply);
    if (is_interrupted(l))
        return SHARED_STOPPED;
    if (reply.status == 0)
        return fail(l, SHARED_AWAY, "the followed node does not respond", reply.detail);
    *bytes = reply.bytes;
    return reply.status == 200 ? SHARED_YES : classify(l, &reply);
}

static enum shared_outcome fetch(struct followed_log *l, const struct shared_position *from,
                                 int64_t wait_ms)
{
    char target[256], chain[2 * SHARED_CHAIN_BYTES + 1];
    uint64_t bytes = 0;
    hex_write(chain, from->chain, SHARED_CHAIN_BYTES);
    int len =
        snprintf(target, sizeof target, "/peer/log?from=%" PRIu64 "&chain=%s&max=%u&wait=%" PRId64,
                 from->seq, chain, ANSWER_BYTES, wait_ms > 0 ? wait_ms : 0);
    if (l->expected[0] != '\0')
        snprintf(target + len, sizeof target - (size_t)len, "&epoch=%s", l->expected);
    enum shared_outcome outcome =
        ask(l, target, (uint32_t)(ANSWER_MS + (wait_ms > 0 ? wait_ms : 0)), &bytes);
    return outcome == SHARED_YES ? take_answer(l, from, bytes) : outcome;
}

/* ---- calls */

static void free_log(struct shared_log *log)
{
    struct followed_log *l = log_of(log);
    if (l == NULL)
        return;
    if (l->link != NULL)
        l->u->calls->close(l->link);
    shared_unpacker_free(l->unpacker);
    free(l);
}

static const char *why(const struct shared_log *log)
{
    return ((const struct followed_log *)log)->why;
}

static void interrupt(struct shared_log *log)
{
    atomic_store(&log_of(log)->interrupted, true);
}

static void expect(struct shared_log *log, const char *epoch)
{
    struct followed_log *l = log_of(log);
    snprintf(l->expected, sizeof l->expected, "%s", epoch);
}

static bool goes_on(const struct followed_log *l, const struct answer *a,
                    const struct shared_position *at)
{
    struct followed *u = l->u;
    bool is_last = a == &u->answers[u->last];
    if (!a->filled || !same_position(&a->from, at))
        return false;
    if (l->use == FOLLOWED_HANDS_ON)
        return has_records(a);
    /* An answer that was read to its end is out of date for a handle that can fetch. */
    return is_last && !(u->read && l->use == FOLLOWED_FETCHES);
}

/* The answer that continues at `at`, kept until `give_back`; or NULL. */
static struct answer *borrow(const struct followed_log *l, const struct shared_position *at,
                             uint64_t *head)
{
    struct followed *u = l->u;
    struct answer *found = NULL;
    pthread_mutex_lock(&u->lock);
    for (struct answer *a = u->answers; a < u->answers + 2 && found == NULL; a++)
        if (goes_on(l, a, at))
            found = a;
    if (found != NULL)
        found->readers++;
    *head = u->head.head;
    pthread_mutex_unlock(&u->lock);
    return found;
}

static void give_back(const struct followed_log *l, struct answer *a, bool read)
{
    struct followed *u = l->u;
    pthread_mutex_lock(&u->lock);
    a->readers--;
    u->read |= read && l->use != FOLLOWED_HANDS_ON;
    pthread_cond_broadcast(&u->moved);
    pthread_mutex_unlock(&u->lock);
}

static enum shared_outcome tail(struct shared_log *log, const struct shared_position *at,
                                uint64_t max_bytes, const struct shared_take *take, uint64_t *head,
                                int64_t deadline_ms)
{
    struct followed_log *l = log_of(log);
    enum shared_outcome outcome = SHARED_YES;
    (void)max_bytes;
    (void)deadline_ms; /* an answer has its own */
    l->why[0] = '\0';
    struct answer *a = borrow(l, at, head);
    if (a == NULL && l->use == FOLLOWED_FETCHES) {
        outcome = fetch(l, at, 0);
        a = outcome == SHARED_YES ? borrow(l, at, head) : NULL;
    }
    if (a == NULL)
        return outcome;
    if (l->unpacker == NULL)
        l->unpacker = shared_unpacker_new();
    outcome = l->unpacker == NULL
                  ? SHARED_NO_MEMORY
                  : relay_read(a->fd, a->bytes, at, l->unpacker, take, l->why, sizeof l->why);
    give_back(l, a, outcome == SHARED_YES);
    return outcome;
}

static enum shared_outcome wait_for_news(struct shared_log *log, int64_t deadline_ms)
{
    struct followed_log *l = log_of(log);
    struct followed *u = l->u;
    pthread_mutex_lock(&u->lock);
    const struct answer *a = &u->answers[u->last];
    bool has_more = has_records(a);
    while (has_more && !u->read && clock_now_ms() < deadline_ms && !is_interrupted(l)) {
        struct timespec until = clock_after_ms(WAIT_STEP_MS);
        pthread_cond_clockwait(&u->moved, &u->lock, CLOCK_MONOTONIC, &until);
    }
    bool asks = a->filled && (!has_more || u->read);
    const struct shared_position to = a->to;
    pthread_mutex_unlock(&u->lock);
    if (is_interrupted(l))
        return SHARED_STOPPED;
    return asks ? fetch(l, &to, deadline_ms - clock_now_ms()) : SHARED_YES;
}

static enum shared_outcome list(struct shared_log *log,
                                bool (*take)(void *context, const struct shared_node *node),
                                void *context, int64_t deadline_ms)
{
    const struct followed *u = log_of(log)->u;
    char state[400];
    (void)deadline_ms;
    if (u->calls == NULL)
        return SHARED_AWAY;
    snprintf(state, sizeof state, "{\"advertise\":\"%s\"}", u->calls->origin);
    const struct shared_node node = {.name = u->calls->origin, .release = "", .state = state};
    take(context, &node);
    return SHARED_YES;
}

/* The overview of the other node's log, of any epoch. */
static enum shared_outcome overview(struct shared_log *log, struct shared_overview *out,
                                    int64_t deadline_ms)
{
    struct followed_log *l = log_of(log);
    const struct shared_position nowhere = {0};
    struct shared_position last;
    struct relay_head head;
    uint64_t bytes = 0;
    char what[128];
    (void)deadline_ms;
    l->asked = false;
    enum shared_outcome outcome = ask(l, "/peer/log", ANSWER_MS, &bytes);
    if (outcome != SHARED_YES)
        return outcome;
    if (!relay_scan(l->u->answers[l->u->last].fd, bytes, &nowhere, &head, &last, what, sizeof what))
        return fail(l, SHARED_AWAY, "the answer of the followed node is invalid", what);
    *out = (struct shared_overview){.head = {.seq = head.head}};
    memcpy(out->epoch, head.epoch, sizeof out->epoch);
    l->asked = true;
    return SHARED_YES;
}

/* A follower has no snapshots: join_fetch copies the other node's file. */
static enum shared_outcome snapshot_get(struct shared_log *log, int fd,
                                        struct shared_snapshot *snapshot, int64_t part_timeout_ms)
{
    struct followed_log *l = log_of(log);
    (void)fd;
    (void)snapshot;
    (void)part_timeout_ms;
    return l->asked ? fail(l, SHARED_NO, "the file of the followed node could not be copied", "")
                    : SHARED_AWAY;
}

/* ---- calls that only a writable log has */

static enum shared_outcome begin(struct shared_log *log, const struct shared_position *at,
                                 uint64_t max_bytes, int site_group, const struct shared_take *take,
                                 int64_t deadline_ms)
{
    (void)at;
    (void)max_bytes;
    (void)site_group;
    (void)take;
    (void)deadline_ms;
    return fail(log_of(log), SHARED_AWAY, "read-only: this node is a follower", "");
}

static bool pass(struct shared_log *log, bool waits, int64_t deadline_ms)
{
    (void)log;
    (void)waits;
    (void)deadline_ms;
    return false;
}

static int64_t awaited_ms(const struct shared_log *log)
{
    (void)log;
    return 0;
}

static void rollback(struct shared_log *log)
{
    (void)log;
}

static const struct shared_log_calls calls = {
    .free = free_log,
    .why = why,
    .gist = why,
    .interrupt = interrupt,
    .expect = expect,
    .begin = begin,
    .pass = pass,
    .awaited_ms = awaited_ms,
    .rollback = rollback,
    .tail = tail,
    .wait = wait_for_news,
    .snapshot_get = snapshot_get,
    .list = list,
    .overview = overview,
};

/* ---- beginning and end */

struct followed *followed_new(const struct shared_followed *followed_calls, const char *path)
{
    struct followed *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    if (u->folder == NULL) {
        free(u);
        return NULL;
    }
    u->calls = followed_calls;
    u->answers[0].fd = u->answers[1].fd = -1;
    pthread_mutex_init(&u->lock, NULL);
    pthread_cond_init(&u->moved, NULL);
    return u;
}

void followed_free(struct followed *u)
{
    if (u == NULL)
        return;
    for (size_t i = 0; i < 2; i++)
        if (u->answers[i].fd >= 0)
            close(u->answers[i].fd);
    pthread_cond_destroy(&u->moved);
    pthread_mutex_destroy(&u->lock);
    free(u->folder);
    free(u);
}

struct shared_log *followed_open_log(struct followed *u, enum followed_use use)
{
    struct followed_log *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->log.calls = &calls;
    l->u = u;
    l->use = use;
    return &l->log;
}

void followed_head(struct followed *u, struct relay_head *out)
{
    pthread_mutex_lock(&u->lock);
    *out = u->head;
    pthread_mutex_unlock(&u->lock);
}
