#include "server/publish/await.h"

#include <stdlib.h>
#include <time.h>

int64_t await_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void await_list_init(struct await_list *l)
{
    pthread_mutex_init(&l->lock, NULL);
    l->first = NULL;
    l->published = 0;
    l->quiet = false;
    l->stopping = false;
}

static bool satisfied(const struct await *a, uint64_t published)
{
    return a->kind == AWAIT_REVISION ? a->revision <= published : a->revision < published;
}

void await_list_add(struct await_list *l, enum await_kind kind, uint64_t revision,
                    uint32_t timeout_ms, await_revision_done *done, void *context)
{
    struct await *a = malloc(sizeof *a);
    if (a == NULL) {
        done(context, AWAIT_UNAVAILABLE);
        return;
    }
    *a = (struct await){
        .kind = kind,
        .revision = revision,
        .deadline_ms = timeout_ms == 0 ? 0 : await_now_ms() + timeout_ms,
        .done = done,
        .context = context,
    };
    pthread_mutex_lock(&l->lock);
    bool now = satisfied(a, l->published);
    bool stopping = l->stopping || (l->quiet && kind == AWAIT_NEWER);
    if (!now && !stopping) {
        a->next = l->first;
        l->first = a;
    }
    pthread_mutex_unlock(&l->lock);
    if (now || stopping) {
        free(a);
        done(context, now ? AWAIT_DONE : AWAIT_STOPPING);
    }
}

/* Unlinks whom `test` names; callbacks run outside the lock, since they resume connections. */
typedef bool await_test(const struct await *a, int64_t value);

static void resume(struct await_list *l, await_test *test, int64_t value, enum await_result result)
{
    struct await *taken = NULL;
    pthread_mutex_lock(&l->lock);
    for (struct await **at = &l->first; *at != NULL;) {
        struct await *a = *at;
        if (!test(a, value)) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        a->next = taken;
        taken = a;
    }
    pthread_mutex_unlock(&l->lock);
    while (taken != NULL) {
        struct await *a = taken;
        taken = a->next;
        a->done(a->context, result);
        free(a);
    }
}

static bool is_satisfied(const struct await *a, int64_t published)
{
    return satisfied(a, (uint64_t)published);
}

static bool is_acknowledgement(const struct await *a, int64_t unused)
{
    (void)unused;
    return a->kind == AWAIT_REVISION;
}

static bool is_over(const struct await *a, int64_t now_ms)
{
    return a->deadline_ms != 0 && a->deadline_ms <= now_ms;
}

static bool is_any(const struct await *a, int64_t unused)
{
    (void)a;
    (void)unused;
    return true;
}

void await_list_publish(struct await_list *l, uint64_t revision)
{
    pthread_mutex_lock(&l->lock);
    l->published = revision;
    pthread_mutex_unlock(&l->lock);
    resume(l, is_satisfied, (int64_t)revision, AWAIT_DONE);
}

void await_list_reset(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    l->published = 0;
    pthread_mutex_unlock(&l->lock);
    resume(l, is_acknowledgement, 0, AWAIT_UNAVAILABLE);
    /* Long polls look again, and learn that their catalogue is another one. */
    resume(l, is_any, 0, AWAIT_DONE);
}

void await_list_fail(struct await_list *l)
{
    resume(l, is_acknowledgement, 0, AWAIT_UNAVAILABLE);
}

void await_list_expire(struct await_list *l, int64_t now_ms)
{
    resume(l, is_over, now_ms, AWAIT_DONE);
}

static bool is_poll(const struct await *a, int64_t unused)
{
    (void)unused;
    return a->kind == AWAIT_NEWER;
}

void await_list_quiesce(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    l->quiet = true;
    pthread_mutex_unlock(&l->lock);
    resume(l, is_poll, 0, AWAIT_STOPPING);
}

void await_list_stop(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_mutex_unlock(&l->lock);
    resume(l, is_any, 0, AWAIT_STOPPING);
}

void await_list_done(struct await_list *l)
{
    await_list_stop(l);
    pthread_mutex_destroy(&l->lock);
}
