/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The node's state under one lock: what the writer and the lookout saw, for any thread that asks.
 */
#include "db/shared/standing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/clock.h"

void standing_init(struct standing *s, const char *node)
{
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wakes, NULL);
    snprintf(s->state.node, sizeof s->state.node, "%s", node != NULL ? node : "");
}

void standing_done(struct standing *s)
{
    pthread_cond_destroy(&s->wakes);
    pthread_mutex_destroy(&s->lock);
}

/* ---- queries */

struct standing_now standing_now(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    struct standing_now now = {
        .phase = s->state.phase,
        .at = s->at,
        .behind_ms = s->behind_since_ms != 0 ? clock_now_ms() - s->behind_since_ms : 0,
        .replacements = s->replacements,
        .has_fetched = s->has_fetched,
        .has_lost = s->has_lost,
        .has_differed = s->has_differed,
        .ended = s->ended,
    };
    pthread_mutex_unlock(&s->lock);
    return now;
}

void standing_state(struct standing *s, struct shared_state *out)
{
    int64_t now_ms = clock_now_ms();
    pthread_mutex_lock(&s->lock);
    *out = s->state;
    out->behind_ms = s->behind_since_ms != 0 ? now_ms - s->behind_since_ms : 0;
    int64_t refused_since_ms = s->refused_since_ms;
    if (s->lacks_since_ms != 0) {
        if (refused_since_ms == 0 || s->lacks_since_ms < refused_since_ms)
            refused_since_ms = s->lacks_since_ms;
        snprintf(out->refused_trouble, sizeof out->refused_trouble,
                 "permission denied: this node's role lacks permissions: %s", s->lacks);
        snprintf(out->refused_said, sizeof out->refused_said,
                 "permission denied for %s; grant it to this node's role", s->lacks);
    }
    if (refused_since_ms != 0)
        out->refused_ms = now_ms - refused_since_ms + 1;
    pthread_mutex_unlock(&s->lock);
    out->away_ms = standing_away_ms(s);
}

void standing_record_trip(struct standing *s, int64_t us)
{
    pthread_mutex_lock(&s->lock);
    s->trips_us[s->trip_count++ % STANDING_TRIPS] = us;
    for (size_t i = 0; i < STANDING_TRIPS; i++)
        us = i < s->trip_count && s->trips_us[i] < us ? s->trips_us[i] : us;
    if (s->trip_count > STANDING_TRIPS / 2) /* the first ones are slow */
        s->state.trip_us = us;
    pthread_mutex_unlock(&s->lock);
}

int64_t standing_away_ms(const struct standing *s)
{
    int64_t since_ms = 0;
    for (size_t i = 0; i < STANDING_LINES; i++) {
        int64_t line_ms = atomic_load(&s->lines[i].away_since_ms);
        if (line_ms != 0 && (since_ms == 0 || line_ms < since_ms))
            since_ms = line_ms;
    }
    return since_ms != 0 ? clock_now_ms() - since_ms + 1 : 0;
}

void standing_on_move(struct standing *s, void (*moved)(void *context), void *context)
{
    pthread_mutex_lock(&s->lock);
    s->moved = moved;
    s->moved_context = context;
    pthread_mutex_unlock(&s->lock);
}

bool standing_digest(struct standing *s, uint64_t *seq, uint8_t digest[DIGEST_BYTES])
{
    pthread_mutex_lock(&s->lock);
    *seq = s->digests.last.seq;
    memcpy(digest, s->digests.last.bytes, DIGEST_BYTES);
    pthread_mutex_unlock(&s->lock);
    return *seq != 0;
}

int standing_compare_digest(struct standing *s, uint64_t seq, const uint8_t digest[DIGEST_BYTES])
{
    pthread_mutex_lock(&s->lock);
    int same = digests_compare(&s->digests, seq, digest, &s->state.digest_mismatches);
    pthread_mutex_unlock(&s->lock);
    return same;
}

/* ---- settings */

void standing_pause(struct standing *s, int64_t ms)
{
    struct timespec until = clock_after_ms(ms);
    pthread_mutex_lock(&s->lock);
    if (!s->ended)
        pthread_cond_clockwait(&s->wakes, &s->lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&s->lock);
}

void standing_end(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    pthread_cond_broadcast(&s->wakes);
    pthread_mutex_unlock(&s->lock);
}

void standing_know(struct standing *s, const char *node, const char *epoch)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.node, sizeof s->state.node, "%s", node);
    snprintf(s->state.epoch, sizeof s->state.epoch, "%s", epoch);
    pthread_mutex_unlock(&s->lock);
}

void standing_set_phase(struct standing *s, enum shared_phase phase, const char *trouble)
{
    pthread_mutex_lock(&s->lock);
    s->state.phase = phase;
    if (phase == SHARED_JOINING)
        s->state.joined_ns = 0;
    else if (s->state.joined_ns == 0)
        s->state.joined_ns = clock_now_ns();
    snprintf(s->state.trouble, sizeof s->state.trouble, "%s", trouble);
    if (phase == SHARED_LEFT) {
        memcpy(s->state.diverged, s->state.trouble, sizeof s->state.diverged);
        s->state.kept[0] = '\0';
    }
    s->state.said[0] = '\0';
    pthread_cond_signal(&s->wakes);
    pthread_mutex_unlock(&s->lock);
}

void standing_set_differs(struct standing *s, const char *nodes)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.differs, sizeof s->state.differs, "%s", nodes);
    pthread_mutex_unlock(&s->lock);
}

void standing_differs(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    bool again = s->has_differed || s->state.phase != SHARED_JOINED;
    s->has_differed = true;
    memset(&s->digests, 0, sizeof s->digests);
    pthread_mutex_unlock(&s->lock);
    if (!again)
        standing_set_phase(s, SHARED_LEFT,
                           "rows of this node's catalogue differ from those of the other nodes, "
                           "which agree with each other");
}

void standing_set_trouble(struct standing *s, const char *trouble)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.trouble, sizeof s->state.trouble, "%s", trouble);
    pthread_mutex_unlock(&s->lock);
}

void standing_set_kept(struct standing *s, const char *kept)
{
    pthread_mutex_lock(&s->lock);
    snprintf(s->state.kept, sizeof s->state.kept, "%s", kept);
    pthread_mutex_unlock(&s->lock);
}

void standing_clear_trouble(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->state.phase == SHARED_JOINED)
        s->state.trouble[0] = s->state.said[0] = '\0';
    pthread_mutex_unlock(&s->lock);
}

void standing_count(struct standing *s, uint64_t *counter)
{
    pthread_mutex_lock(&s->lock);
    ++*counter;
    pthread_mutex_unlock(&s->lock);
}

/* ---- positions */

/* The lock is held. */
static bool note_head(struct standing *s, uint64_t head)
{
    if (head > s->state.head)
        s->state.head = head;
    bool behind = s->state.head > s->at.seq;
    if (!behind)
        s->behind_since_ms = 0;
    else if (s->behind_since_ms == 0)
        s->behind_since_ms = clock_now_ms();
    return behind;
}

bool standing_record_head(struct standing *s, uint64_t head)
{
    pthread_mutex_lock(&s->lock);
    bool behind = note_head(s, head);
    pthread_mutex_unlock(&s->lock);
    return behind;
}

void standing_set_at(struct standing *s, const struct shared_position *at)
{
    pthread_mutex_lock(&s->lock);
    s->at = *at;
    s->state.applied = at->seq;
    note_head(s, at->seq);
    if (s->moved != NULL)
        s->moved(s->moved_context);
    pthread_mutex_unlock(&s->lock);
}

void standing_record_file(struct standing *s, const struct shared_position *at, int schema,
                          bool is_older)
{
    if (at != NULL)
        standing_set_at(s, at);
    pthread_mutex_lock(&s->lock);
    if (s->state.schema != 0 && s->state.schema != schema)
        s->state.schema_before = s->state.schema;
    s->state.schema = at != NULL ? schema : 0;
    s->state.upgrade_pending = at != NULL && is_older;
    pthread_mutex_unlock(&s->lock);
    standing_set_phase(s, at != NULL ? SHARED_JOINED : SHARED_JOINING,
                       at != NULL ? "" : "this node has not copied the shared catalogue yet");
}

void standing_keep_digest(struct standing *s, const struct digest_of *taken)
{
    pthread_mutex_lock(&s->lock);
    digests_keep(&s->digests, taken);
    pthread_mutex_unlock(&s->lock);
}

/* ---- outcomes of the log's calls */

/* The lock is held. */
static void record_sentence(struct standing *s, const struct shared_log *log)
{
    snprintf(s->state.trouble, sizeof s->state.trouble, "%s", log->calls->gist(log));
    snprintf(s->state.said, sizeof s->state.said, "%s", log->calls->why(log));
}

void standing_record_away(struct standing *s, const struct shared_log *log)
{
    int64_t none = 0;
    size_t at = 0;
    pthread_mutex_lock(&s->lock);
    while (at + 1 < STANDING_LINES && s->lines[at].log != NULL && s->lines[at].log != log)
        at++;
    atomic_store(&s->lines[at].log, log);
    atomic_compare_exchange_strong(&s->lines[at].away_since_ms, &none, clock_now_ms());
    record_sentence(s, log);
    pthread_mutex_unlock(&s->lock);
}

void standing_record_there(struct standing *s, const struct shared_log *log)
{
    bool was_away = false;
    for (size_t i = 0; i < STANDING_LINES; i++)
        if (atomic_load(&s->lines[i].log) == log)
            was_away = atomic_exchange(&s->lines[i].away_since_ms, 0) != 0;
    if (was_away && standing_away_ms(s) == 0)
        standing_clear_trouble(s);
}

void standing_record_accepted(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    s->refused_since_ms = 0;
    pthread_mutex_unlock(&s->lock);
}

/* The log can be read, but has rejected a write; the next write, or the lookout's probe, shows
 * whether it accepts writes again. */
static void record_refused(struct standing *s, const struct shared_log *log)
{
    if (*log->calls->gist(log) == '\0')
        return;
    pthread_mutex_lock(&s->lock);
    if (s->refused_since_ms == 0)
        s->refused_since_ms = clock_now_ms();
    snprintf(s->state.refused_trouble, sizeof s->state.refused_trouble, "%s",
             log->calls->gist(log));
    snprintf(s->state.refused_said, sizeof s->state.refused_said, "%s", log->calls->why(log));
    pthread_mutex_unlock(&s->lock);
}

void standing_set_lacks(struct standing *s, const char *lacks)
{
    pthread_mutex_lock(&s->lock);
    if (lacks[0] == '\0')
        s->lacks_since_ms = 0;
    else if (s->lacks_since_ms == 0)
        s->lacks_since_ms = clock_now_ms();
    snprintf(s->lacks, sizeof s->lacks, "%s", lacks);
    pthread_mutex_unlock(&s->lock);
}

static void leave(struct standing *s, bool has_lost, const char *why)
{
    pthread_mutex_lock(&s->lock);
    s->has_lost = has_lost;
    pthread_mutex_unlock(&s->lock);
    standing_set_phase(s, SHARED_LEFT, why);
}

bool standing_record_found(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    bool found = s->state.phase == SHARED_LEFT && s->has_lost && !s->has_differed;
    if (found) {
        s->has_lost = false;
        s->state.phase = SHARED_JOINED;
        s->state.trouble[0] = s->state.said[0] = '\0';
        pthread_cond_signal(&s->wakes);
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

enum catalogue_status standing_record_outcome(struct standing *s, const struct shared_log *log,
                                              enum shared_outcome outcome)
{
    switch (outcome) {
    case SHARED_YES:
        standing_record_there(s, log);
        return CATALOGUE_OK;
    case SHARED_BUSY:
    case SHARED_ELSEWHERE:
    case SHARED_BEHIND:
        standing_record_there(s, log);
        return CATALOGUE_BUSY;
    case SHARED_DIVERGED:
    case SHARED_TRIMMED:
        standing_record_there(s, log);
        if (standing_now(s).phase == SHARED_JOINED)
            leave(s, outcome == SHARED_DIVERGED, log->calls->why(log));
        return CATALOGUE_DIVERGED;
    case SHARED_NO_MEMORY:
        return CATALOGUE_NO_MEMORY;
    case SHARED_NO:
        record_refused(s, log);
        return CATALOGUE_SHARED_AWAY;
    case SHARED_STOPPED:
        return CATALOGUE_SHARED_AWAY;
    default:
        standing_record_away(s, log);
        return CATALOGUE_SHARED_AWAY;
    }
}

enum catalogue_status standing_record_commit(struct standing *s, const struct shared_log *log,
                                             enum shared_outcome outcome)
{
    switch (outcome) {
    case SHARED_YES:
        standing_record_there(s, log);
        standing_record_accepted(s);
        standing_count(s, &s->state.appended);
        return CATALOGUE_OK;
    case SHARED_UNKNOWN:
        standing_record_away(s, log);
        standing_count(s, &s->state.unknown);
        return CATALOGUE_OUTCOME_UNKNOWN;
    default:
        record_refused(s, log);
        standing_count(s, &s->state.refused);
        return outcome == SHARED_NO_MEMORY ? CATALOGUE_NO_MEMORY : CATALOGUE_SHARED_AWAY;
    }
}

/* ---- a snapshot */

void standing_record_copy(struct standing *s, uint64_t seq, uint64_t head)
{
    pthread_mutex_lock(&s->lock);
    s->state.fetched = seq;
    s->state.head = head;
    pthread_mutex_unlock(&s->lock);
}

void standing_record_fetched(struct standing *s, bool fetched, const char *why)
{
    pthread_mutex_lock(&s->lock);
    s->has_fetched = fetched;
    if (why != NULL)
        snprintf(s->state.trouble, sizeof s->state.trouble, "%s", why);
    pthread_mutex_unlock(&s->lock);
}

void standing_forget_head(struct standing *s)
{
    pthread_mutex_lock(&s->lock);
    s->state.head = 0; /* a restored log may end before the head known so far */
    s->behind_since_ms = 0;
    pthread_mutex_unlock(&s->lock);
}

void standing_record_replaced(struct standing *s, bool joined, const char *why)
{
    pthread_mutex_lock(&s->lock);
    s->has_fetched = false;
    s->state.fetched = 0;
    if (why == NULL) {
        s->has_lost = false;
        memset(&s->digests, 0, sizeof s->digests); /* their rows were replaced */
    }
    s->state.replaced += why == NULL && !joined;
    s->replacements += why == NULL;
    if (why != NULL)
        snprintf(s->state.trouble, sizeof s->state.trouble, "%s", why);
    pthread_mutex_unlock(&s->lock);
}
