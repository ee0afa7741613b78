/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The queue of writes: two lines, bounds and turns of sites, deadlines. */
#include "db/write/queue.h"

#include <time.h>

#include "db/write/apply/apply.h"
#include "server/base/clock.h"

static void line_init(struct request_line *line)
{
    line->first = NULL;
    line->last = &line->first;
}

static void line_append(struct request_line *line, struct write_request *request)
{
    request->next = NULL;
    *line->last = request;
    line->last = &request->next;
    line->last_round = request->round;
}

/* Inserts the requests of `list`, which are in the order of their rounds, into a line that is, too:
 * each before (`front`) or behind the others of its round. */
static void line_insert(struct request_line *line, struct write_request *list, bool front)
{
    struct write_request **at = &line->first;
    while (list != NULL) {
        struct write_request *request = list;
        list = request->next;
        if (line->first != NULL && line->last_round < request->round + !front)
            at = line->last; /* mostly */
        while (*at != NULL && (*at)->round < request->round + !front)
            at = &(*at)->next;
        request->next = *at;
        *at = request;
        at = &request->next;
        if (*at == NULL) {
            line->last = at;
            line->last_round = request->round;
        }
    }
}

void queue_init(struct queue *q, size_t max)
{
    line_init(&q->small);
    line_init(&q->alone);
    q->depth = 0;
    q->turns = 1;
    q->round = 0;
    q->last_site = QUEUE_NO_SITE;
    q->all_sites = (struct queue_site){.waiting = 0};
    q->sites = (struct site_table){0};
    q->max = max ? max : QUEUE_MAX_DEFAULT;
    q->closed = false;
    q->poked = false;
    q->over = false;
    pthread_cond_init(&q->arrived, NULL);
    pthread_cond_init(&q->dated, NULL);
    pthread_mutex_init(&q->lock, NULL);
}

void queue_done(struct queue *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->arrived);
    pthread_cond_destroy(&q->dated);
    site_table_done(&q->sites);
}

static struct queue_site *site_of(struct queue *q, int64_t site_id)
{
    return site_id == 0 ? &q->all_sites : site_table_find(&q->sites, site_id);
}

static bool has_place(struct queue *q, const struct write_request *request)
{
    int64_t site_id = request->change.grant.site_id;
    const struct queue_site *site = site_id != 0 ? site_of(q, site_id) : NULL;
    return site_has_room(site != NULL ? site->waiting : 0, q->depth, 1, q->max);
}

/* Counts the write for its site. A site without waiting writes is forgotten, so one that returns
 * gets a turn before all later ones, unless it had the last turn itself. False: out of memory. */
static bool record_pushed(struct queue *q, struct write_request *request)
{
    int64_t site_id = request->change.grant.site_id;
    struct queue_site *site =
        site_id == 0 ? &q->all_sites : site_table_add(&q->sites, site_id, sizeof *site);
    if (site != NULL && site->waiting++ == 0)
        site->turn = site_id == q->last_site ? q->turns : q->turns - 1;
    request->of_site = site;
    return site != NULL;
}

static void record_popped(struct queue *q, struct write_request *request)
{
    struct queue_site *site = request->of_site;
    q->depth--;
    if (site != NULL && --site->waiting == 0) {
        site->round = 0;
        if (site != &q->all_sites)
            site_table_remove(&q->sites, site);
    }
    request->of_site = NULL;
}

/* Queues a small change in the round after that of its site's last one that waits, else in the
 * current one. So it waits for one change of each other site, however many that site has queued. */
static void push_small(struct queue *q, struct write_request *request)
{
    struct queue_site *site = request->of_site;
    request->round = site->round > q->round ? site->round : q->round;
    site->round = request->round + 1;
    request->next = NULL;
    line_insert(&q->small, request, false);
}

static void record_turn(struct queue *q, int64_t site_id, struct queue_site *site)
{
    q->turns++;
    q->last_site = site_id;
    if (site != NULL)
        site->turn = q->turns;
}

/* A request without a site row (out of memory) comes first. */
static uint64_t turn_of(const struct write_request *request)
{
    return request->of_site != NULL ? request->of_site->turn : 0;
}

enum queue_answer queue_push(struct queue *q, struct write_request *request)
{
    enum queue_answer answer = QUEUE_ACCEPTED;
    pthread_mutex_lock(&q->lock);
    if (q->closed) {
        answer = QUEUE_CLOSED;
    } else if (!has_place(q, request)) {
        answer = QUEUE_FULL;
    } else if (!record_pushed(q, request)) {
        answer = QUEUE_NO_MEMORY;
    } else {
        if (apply_alone(request->change.kind))
            line_append(&q->alone, request);
        else
            push_small(q, request);
        if (q->depth++ == 0)
            pthread_cond_signal(&q->dated);
        pthread_cond_signal(&q->arrived);
    }
    pthread_mutex_unlock(&q->lock);
    return answer;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_signal(&q->arrived);
    pthread_mutex_unlock(&q->lock);
}

void queue_poke(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->poked = true;
    pthread_cond_signal(&q->arrived);
    pthread_mutex_unlock(&q->lock);
}

void queue_wait(struct queue *q, int timeout_ms)
{
    struct timespec until = clock_after_ms(timeout_ms);
    pthread_mutex_lock(&q->lock);
    while (q->depth == 0 && !q->poked && !q->closed &&
           pthread_cond_clockwait(&q->arrived, &q->lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    q->poked = false;
    pthread_mutex_unlock(&q->lock);
}

void queue_wait_small(struct queue *q, int timeout_ms)
{
    struct timespec until = clock_after_ms(timeout_ms);
    pthread_mutex_lock(&q->lock);
    while (q->small.first == NULL && !q->poked &&
           pthread_cond_clockwait(&q->arrived, &q->lock, CLOCK_MONOTONIC, &until) == 0)
        continue;
    q->poked = false;
    pthread_mutex_unlock(&q->lock);
}

bool queue_is_closed(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool closed = q->closed;
    pthread_mutex_unlock(&q->lock);
    return closed;
}

size_t queue_depth(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t depth = q->depth;
    pthread_mutex_unlock(&q->lock);
    return depth;
}

bool queue_has(struct queue *q, bool alone)
{
    pthread_mutex_lock(&q->lock);
    bool has = (alone ? q->alone.first : q->small.first) != NULL;
    pthread_mutex_unlock(&q->lock);
    return has;
}

/* Finds the first request to be applied alone, of the site that has waited longest for a turn. */
static struct write_request **find_next(struct queue *q, bool dry)
{
    struct write_request **best = NULL, **at = &q->alone.first;
    for (; *at != NULL; at = &(*at)->next)
        if ((!dry || (*at)->change.dry_run) && (best == NULL || turn_of(*at) < turn_of(*best)))
            best = at;
    return best != NULL ? best : at;
}

static bool move_to_front(struct queue *q, bool dry)
{
    struct request_line *line = &q->alone;
    struct write_request **best = find_next(q, dry), *request = *best;
    if (request == NULL || best == &line->first)
        return request != NULL;
    *best = request->next;
    if (*best == NULL)
        line->last = best;
    request->next = line->first;
    line->first = request;
    return true;
}

struct write_request *queue_pop(struct queue *q, enum queue_turn turn)
{
    struct request_line *line = turn == QUEUE_SMALL ? &q->small : &q->alone;
    struct write_request *first, **end;
    size_t count = 0, max = QUEUE_BATCH_MAX;
    pthread_mutex_lock(&q->lock);
    if (turn != QUEUE_SMALL) {
        max = move_to_front(q, turn == QUEUE_DRY) ? 1 : 0;
        if (max > 0)
            record_turn(q, line->first->change.grant.site_id, line->first->of_site);
    } else if (line->first != NULL && line->first->round >= q->round) {
        q->round = line->first->round + 1;
    }
    first = line->first;
    end = &line->first;
    while (*end != NULL && count < max) {
        record_popped(q, *end);
        end = &(*end)->next;
        count++;
    }
    line->first = *end;
    if (line->first == NULL)
        line->last = &line->first;
    if (count > 0)
        *end = NULL;
    pthread_mutex_unlock(&q->lock);
    return count > 0 ? first : NULL;
}

struct write_request *queue_pop_own(struct queue *q)
{
    struct write_request *found, **at;
    pthread_mutex_lock(&q->lock);
    at = &q->alone.first;
    while (*at != NULL && !apply_is_own((*at)->change.kind))
        at = &(*at)->next;
    found = *at;
    if (found != NULL) {
        record_popped(q, found);
        *at = found->next;
        if (*at == NULL)
            q->alone.last = at;
        found->next = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return found;
}

bool queue_next_is_dry(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    const struct write_request *next = *find_next(q, false);
    bool dry = next != NULL && next->change.dry_run;
    pthread_mutex_unlock(&q->lock);
    return dry;
}

int64_t queue_next_site(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    const struct write_request *next = *find_next(q, false);
    int64_t site_id = next != NULL ? next->change.grant.site_id : QUEUE_NO_SITE;
    pthread_mutex_unlock(&q->lock);
    return site_id;
}

void queue_skip_site(struct queue *q, int64_t site_id)
{
    pthread_mutex_lock(&q->lock);
    record_turn(q, site_id, site_of(q, site_id));
    pthread_mutex_unlock(&q->lock);
}

static void unlink_expired(struct queue *q, struct request_line *line, int64_t now_ms,
                           struct request_line *out)
{
    struct write_request *request = line->first;
    line_init(line);
    while (request != NULL) {
        struct write_request *next = request->next;
        if (request->deadline_ms <= now_ms && !request->begun) {
            line_append(out, request);
            record_popped(q, request);
        } else {
            line_append(line, request);
        }
        request = next;
    }
}

struct write_request *queue_pop_expired(struct queue *q, int64_t now_ms)
{
    struct request_line expired;
    line_init(&expired);
    pthread_mutex_lock(&q->lock);
    if (q->depth > 0) {
        unlink_expired(q, &q->small, now_ms, &expired);
        unlink_expired(q, &q->alone, now_ms, &expired);
    }
    pthread_mutex_unlock(&q->lock);
    return expired.first;
}

void queue_return(struct queue *q, bool alone, struct write_request *list)
{
    struct request_line *line = alone ? &q->alone : &q->small;
    if (list == NULL)
        return;
    pthread_mutex_lock(&q->lock);
    for (struct write_request *r = list; r != NULL; r = r->next) {
        q->depth++;
        if (record_pushed(q, r) && r->of_site->round <= r->round)
            r->of_site->round = r->round + 1;
    }
    line_insert(line, list, true);
    pthread_cond_signal(
        &q->dated); /* their deadlines are earlier than the one that is waited for */
    pthread_mutex_unlock(&q->lock);
}

void queue_requeue(struct queue *q, struct write_request *request)
{
    request->begun = true;
    request->next = NULL;
    pthread_mutex_lock(&q->lock);
    line_append(&q->alone, request);
    record_pushed(q, request);
    q->depth++;
    pthread_mutex_unlock(&q->lock);
}

/* Requests that have begun have no deadline. */
static int64_t earliest_of(const struct request_line *line)
{
    int64_t earliest_ms = INT64_MAX;
    for (const struct write_request *r = line->first; r != NULL; r = r->next)
        if (!r->begun && r->deadline_ms < earliest_ms)
            earliest_ms = r->deadline_ms;
    return earliest_ms;
}

static int64_t earliest(const struct queue *q)
{
    int64_t small = earliest_of(&q->small), alone = earliest_of(&q->alone);
    return small < alone ? small : alone;
}

static bool line_presses(const struct request_line *line, int64_t site_id, int64_t until_ms)
{
    for (const struct write_request *r = line->first; r != NULL; r = r->next)
        if (r->deadline_ms <= until_ms && !r->begun && r->change.grant.site_id != site_id)
            return true;
    return false;
}

bool queue_presses(struct queue *q, int64_t site_id, int64_t until_ms)
{
    pthread_mutex_lock(&q->lock);
    bool presses =
        line_presses(&q->small, site_id, until_ms) || line_presses(&q->alone, site_id, until_ms);
    pthread_mutex_unlock(&q->lock);
    return presses;
}

bool queue_wait_expired(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->over) {
        int64_t due_ms = earliest(q);
        if (due_ms <= clock_now_ms())
            break;
        struct timespec until = {due_ms / 1000, (long)(due_ms % 1000) * 1000000L};
        if (due_ms == INT64_MAX)
            pthread_cond_wait(&q->dated, &q->lock);
        else
            pthread_cond_clockwait(&q->dated, &q->lock, CLOCK_MONOTONIC, &until);
    }
    bool goes_on = !q->over;
    pthread_mutex_unlock(&q->lock);
    return goes_on;
}

void queue_end_expiry(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->over = true;
    pthread_cond_signal(&q->dated);
    pthread_mutex_unlock(&q->lock);
}
