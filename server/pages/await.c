/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lists of waiting requests, resumed when a revision is published or their deadline has passed. */
#include "server/pages/await.h"

#include <stdlib.h>

#include "server/base/clock.h"

void await_list_init(struct await_list *l)
{
    pthread_mutex_init(&l->lock, NULL);
    l->first = NULL;
    l->file = l->published = 0;
    l->quiet = false;
    l->stopping = false;
    l->looked_ms = 0;
}

static bool satisfied(const struct await *a, const struct await_list *l)
{
    return a->kind == AWAIT_NEWER ? a->revision < l->published
                                  : a->file == l->file && a->revision <= l->published;
}

void await_list_add(struct await_list *l, enum await_kind kind, uint64_t file, uint64_t revision,
                    uint32_t timeout_ms, await_revision_done *done, await_is_gone *is_gone,
                    void *context)
{
    struct await *a = malloc(sizeof *a);
    if (a == NULL) {
        done(context, AWAIT_UNAVAILABLE);
        return;
    }
    *a = (struct await){
        .kind = kind,
        .file = file,
        .revision = revision,
        .deadline_ms = timeout_ms == 0 ? 0 : clock_now_ms() + timeout_ms,
        .done = done,
        .is_gone = is_gone,
        .context = context,
    };
    pthread_mutex_lock(&l->lock);
    bool now = satisfied(a, l);
    bool stopping = l->stopping || (l->quiet && kind != AWAIT_REVISION);
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

/* Which requests to resume: those of these kinds, and only those for which every condition that is
 * set holds: satisfied, client gone, deadline passed. */
struct who {
    unsigned kinds; /* enum await_kind, or'ed */
    bool satisfied;
    bool gone;
    uint64_t before; /* only those that wait for an earlier file; 0: any file */
    int64_t over_ms; /* 0: whatever the time */
};

#define WRITES    (AWAIT_REVISION | AWAIT_FORWARDED)
#define EVERYBODY (WRITES | AWAIT_NEWER)

static bool is_selected(const struct await *a, const struct who *who, const struct await_list *l)
{
    return (who->kinds & a->kind) != 0 && (!who->satisfied || satisfied(a, l)) &&
           (who->before == 0 || a->file < who->before) &&
           (!who->gone || (a->is_gone != NULL && a->is_gone(a->context))) &&
           (who->over_ms == 0 || (a->deadline_ms != 0 && a->deadline_ms <= who->over_ms));
}

/* Called with the lock, and unlocks before it calls `done`, which resumes connections. */
static void resume_and_unlock(struct await_list *l, struct who who, enum await_result result)
{
    struct await *taken = NULL;
    for (struct await **at = &l->first; *at != NULL;) {
        struct await *a = *at;
        if (!is_selected(a, &who, l)) {
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

void await_list_publish(struct await_list *l, uint64_t file, uint64_t revision)
{
    pthread_mutex_lock(&l->lock);
    l->file = file;
    l->published = revision;
    resume_and_unlock(l, (struct who){.kinds = EVERYBODY, .satisfied = true}, AWAIT_DONE);
    if (file == 0)
        return;
    pthread_mutex_lock(&l->lock);
    resume_and_unlock(l, (struct who){.kinds = WRITES, .before = file}, AWAIT_REPLACED);
}

void await_list_reset(struct await_list *l, uint64_t file)
{
    pthread_mutex_lock(&l->lock);
    l->published = 0;
    resume_and_unlock(l, (struct who){.kinds = WRITES, .before = file != 0 ? file : l->file + 1},
                      AWAIT_REPLACED);
    /* Long polls read the catalogue again, and notice that it is another one. */
    pthread_mutex_lock(&l->lock);
    resume_and_unlock(l, (struct who){.kinds = AWAIT_NEWER}, AWAIT_DONE);
}

void await_list_fail(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    resume_and_unlock(l, (struct who){.kinds = WRITES, .before = l->file + 1}, AWAIT_REPLACED);
}

void await_list_expire(struct await_list *l, int64_t now_ms)
{
    pthread_mutex_lock(&l->lock);
    resume_and_unlock(l, (struct who){.kinds = AWAIT_NEWER, .over_ms = now_ms}, AWAIT_DONE);
    pthread_mutex_lock(&l->lock);
    resume_and_unlock(l, (struct who){.kinds = WRITES, .over_ms = now_ms}, AWAIT_UNAVAILABLE);
    if (now_ms < l->looked_ms + AWAIT_LOOK_MS)
        return;
    l->looked_ms = now_ms;
    pthread_mutex_lock(&l->lock);
    resume_and_unlock(l, (struct who){.kinds = EVERYBODY, .gone = true}, AWAIT_STOPPING);
}

bool await_list_is_empty(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    bool empty = l->first == NULL;
    pthread_mutex_unlock(&l->lock);
    return empty;
}

void await_list_quiesce(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    l->quiet = true;
    resume_and_unlock(l, (struct who){.kinds = AWAIT_NEWER | AWAIT_FORWARDED}, AWAIT_STOPPING);
}

void await_list_stop(struct await_list *l)
{
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    resume_and_unlock(l, (struct who){.kinds = EVERYBODY}, AWAIT_STOPPING);
}

void await_list_done(struct await_list *l)
{
    await_list_stop(l);
    pthread_mutex_destroy(&l->lock);
}
