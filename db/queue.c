#include "db/queue.h"

#include <time.h>

#include "db/apply.h"

int64_t queue_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void line_init(struct request_line *line)
{
    line->first = NULL;
    line->last = &line->first;
}

static void line_append(struct request_line *line, struct request *request)
{
    request->next = NULL;
    *line->last = request;
    line->last = &request->next;
}

bool queue_init(struct queue *q, size_t max)
{
    pthread_condattr_t attributes;
    line_init(&q->small);
    line_init(&q->alone);
    q->depth = 0;
    q->max = max ? max : QUEUE_MAX_DEFAULT;
    q->closed = false;
    q->poked = false;
    if (pthread_condattr_init(&attributes) != 0)
        return false;
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_cond_init(&q->arrived, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (made && pthread_mutex_init(&q->lock, NULL) != 0) {
        pthread_cond_destroy(&q->arrived);
        made = false;
    }
    return made;
}

void queue_done(struct queue *q)
{
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->arrived);
}

enum queue_answer queue_push(struct queue *q, struct request *request)
{
    enum queue_answer answer = QUEUE_TAKEN;
    pthread_mutex_lock(&q->lock);
    if (q->closed) {
        answer = QUEUE_CLOSED;
    } else if (q->depth >= q->max) {
        answer = QUEUE_FULL;
    } else {
        line_append(apply_alone(request->change.kind) ? &q->alone : &q->small, request);
        q->depth++;
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
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    pthread_mutex_lock(&q->lock);
    while (q->depth == 0 && !q->poked && !q->closed &&
           pthread_cond_timedwait(&q->arrived, &q->lock, &until) == 0)
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

struct request *queue_take(struct queue *q, bool alone, size_t max)
{
    struct request_line *line = alone ? &q->alone : &q->small;
    struct request *first, **end;
    size_t count = 0;
    pthread_mutex_lock(&q->lock);
    first = line->first;
    end = &line->first;
    while (*end && count < (alone ? 1 : max)) {
        end = &(*end)->next;
        count++;
    }
    line->first = *end;
    if (!line->first)
        line->last = &line->first;
    if (count > 0)
        *end = NULL;
    q->depth -= count;
    pthread_mutex_unlock(&q->lock);
    return count > 0 ? first : NULL;
}

static void take_expired(struct request_line *line, int64_t now_ms, struct request_line *out,
                         size_t *depth)
{
    struct request *request = line->first;
    line_init(line);
    while (request) {
        struct request *next = request->next;
        if (request->deadline_ms <= now_ms) {
            line_append(out, request);
            (*depth)--;
        } else {
            line_append(line, request);
        }
        request = next;
    }
}

struct request *queue_take_expired(struct queue *q, int64_t now_ms)
{
    struct request_line expired;
    line_init(&expired);
    pthread_mutex_lock(&q->lock);
    if (q->depth > 0) {
        take_expired(&q->small, now_ms, &expired, &q->depth);
        take_expired(&q->alone, now_ms, &expired, &q->depth);
    }
    pthread_mutex_unlock(&q->lock);
    return expired.first;
}
