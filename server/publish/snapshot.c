#include "server/publish/snapshot.h"

#include <stdlib.h>

struct snapshot *snapshot_new(void)
{
    struct snapshot *s = calloc(1, sizeof *s);
    if (s != NULL)
        atomic_init(&s->references, 1);
    return s;
}

void snapshot_ref(struct snapshot *s)
{
    /* Whoever takes a reference already holds one, or the slot's lock: no ordering is needed. */
    atomic_fetch_add_explicit(&s->references, 1, memory_order_relaxed);
}

void snapshot_unref(struct snapshot *s)
{
    if (s == NULL)
        return;
    /* Acquire and release: what other threads read of the buffer happens before its end. */
    if (atomic_fetch_sub_explicit(&s->references, 1, memory_order_acq_rel) != 1)
        return;
    if (s->attachment_free != NULL)
        s->attachment_free(s->attachment);
    void (*released)(void *, size_t) = s->released;
    void *context = s->released_context;
    size_t bytes = s->gzip_len;
    free((void *)s->gzip);
    free(s->segments);
    free(s);
    if (released != NULL)
        released(context, bytes);
}
