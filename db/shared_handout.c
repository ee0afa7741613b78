/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Sends the log to followers. A node reads it on a connection of its own: from PostgreSQL, or, if
 * it is a follower itself, from the answer that it received last or from the node that it follows.
 * So it stores no records for its followers, which can get every record that PostgreSQL still has.
 * While a node is cut off, it sends no new records. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/handle.h"
#include "db/shared.h"
#include "db/shared/followed.h"
#include "db/shared/member.h"
#include "db/shared/relay.h"
#include "server/base/clock.h"
#include "server/base/text.h"

#define CALL_MS 5000

struct shared_reader {
    struct catalogue *catalogue; /* borrowed */
    pthread_mutex_t lock;        /* guards the members below while they are set */
    struct shared_log *log;
    bool interrupted;
    struct followed *followed;   /* its own; NULL: the log is PostgreSQL's */
    struct shared_log *received; /* for a follower: the answers that it received itself */
};

void catalogue_shared_on_move(struct catalogue *c, void (*moved)(void *context), void *context)
{
    if (c->member != NULL)
        standing_on_move(member_standing(c->member), moved, context);
}

bool catalogue_shared_place(struct catalogue *c, struct shared_place *out)
{
    if (c->member == NULL)
        return false;
    struct standing_now now = standing_now(member_standing(c->member));
    out->record = now.at.seq;
    hex_write(out->chain, now.at.chain, SHARED_CHAIN_BYTES);
    return now.phase != SHARED_JOINING;
}

struct shared_reader *catalogue_log_reader(struct catalogue *c)
{
    struct shared_reader *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->catalogue = c;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void catalogue_log_reader_free(struct shared_reader *r)
{
    if (r == NULL)
        return;
    if (r->log != NULL)
        r->log->calls->free(r->log);
    if (r->received != NULL)
        r->received->calls->free(r->received);
    followed_free(r->followed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void catalogue_log_interrupt(struct shared_reader *r)
{
    pthread_mutex_lock(&r->lock);
    r->interrupted = true;
    if (r->log != NULL)
        r->log->calls->interrupt(r->log);
    pthread_mutex_unlock(&r->lock);
}

/* Opens the log once its epoch is known. NULL: out of memory. */
static struct shared_log *open_log(struct shared_reader *r, const struct shared_state *state)
{
    const struct catalogue_shared *shared = &r->catalogue->options.shared;
    char why[256];
    const struct shared_log_options options = {.database = shared->database,
                                               .schema = shared->schema,
                                               .epoch = state->epoch,
                                               .node = state->node};
    pthread_mutex_lock(&r->lock);
    if (r->followed == NULL && shared->follows)
        r->followed = followed_new(shared->followed, r->catalogue->path);
    if (r->log == NULL && !r->interrupted)
        r->log = !shared->follows      ? member_open_log(&options, why, sizeof why)
                 : r->followed != NULL ? followed_open_log(r->followed, FOLLOWED_FETCHES)
                                       : NULL;
    if (r->received == NULL && shared->follows)
        r->received = followed_open_log(member_followed(r->catalogue->member), FOLLOWED_HANDS_ON);
    pthread_mutex_unlock(&r->lock);
    return r->log;
}

static bool read_place(const struct shared_place *place, struct shared_position *out)
{
    out->seq = place->record;
    return hex_read(out->chain, place->chain, SHARED_CHAIN_BYTES);
}

static enum shared_handout handout_of(enum shared_outcome outcome)
{
    switch (outcome) {
    case SHARED_TRIMMED:
        return SHARED_HAND_TRIMMED;
    case SHARED_DIVERGED:
        return SHARED_HAND_ALIEN;
    default:
        return SHARED_HAND_AWAY;
    }
}

/* Writes the records after `at`, if possible without asking another machine. */
static enum shared_outcome read_records(struct shared_reader *r, const struct shared_position *at,
                                        uint64_t max_bytes, struct relay_writer *w, uint64_t *head)
{
    const struct shared_take take = relay_take(w);
    const int64_t deadline_ms = clock_now_ms() + CALL_MS;
    if (r->received != NULL) {
        r->received->calls->tail(r->received, at, max_bytes, &take, head, deadline_ms);
        if (w->records > 0)
            return SHARED_YES;
        w->bytes = w->whole;
    }
    return r->log->calls->tail(r->log, at, max_bytes, &take, head, deadline_ms);
}

enum shared_handout catalogue_log_hand(struct shared_reader *r, const struct shared_place *from,
                                       uint64_t max_bytes, int fd, uint64_t *bytes,
                                       uint64_t *records)
{
    struct shared_state state;
    struct shared_position at;
    struct relay_writer w;
    enum shared_outcome outcome = SHARED_YES;
    catalogue_shared_state(r->catalogue, &state);
    struct relay_head head = {.head = state.head > state.applied ? state.head : state.applied,
                              .away_ms = state.away_ms,
                              .refused_ms = state.refused_ms > 0 ? state.refused_ms
                                            : state.waiting_ms > SHARED_WAITING_MS
                                                ? state.waiting_ms
                                                : 0,
                              .hops = member_hops(r->catalogue->member)};
    if (state.phase != SHARED_JOINED && head.away_ms == 0)
        head.away_ms = 1; /* it is copying a file, or too old to follow */
    relay_begin(&w, fd, state.epoch);
    if (from != NULL) {
        uint64_t seen = 0;
        if (open_log(r, &state) == NULL)
            return SHARED_HAND_AWAY;
        if (!read_place(from, &at))
            return SHARED_HAND_ALIEN;
        outcome = read_records(r, &at, max_bytes, &w, &seen);
        if (seen > head.head)
            head.head = seen;
    }
    if (outcome != SHARED_YES && w.records == 0)
        return w.failed ? SHARED_HAND_AWAY : handout_of(outcome);
    if (from != NULL && head.head < from->record + w.records)
        head.head = from->record + w.records;
    *records = w.records;
    bool good = relay_end(&w, &head);
    *bytes = w.bytes;
    return good ? SHARED_HANDED : SHARED_HAND_AWAY;
}
