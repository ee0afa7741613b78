#include "server/publish/blob.h"

#include <stdlib.h>

struct blob *blob_new(void)
{
    struct blob *b = calloc(1, sizeof *b);
    if (b != NULL) {
        atomic_init(&b->same_second, false);
        atomic_init(&b->references, 1);
    }
    return b;
}

void blob_ref(struct blob *b)
{
    /* Whoever takes a reference already holds one, or the cache's lock: no ordering is needed. */
    atomic_fetch_add_explicit(&b->references, 1, memory_order_relaxed);
}

void blob_unref(struct blob *b)
{
    if (b == NULL)
        return;
    /* Acquire and release: what other threads read of the bytes happens before their end. */
    if (atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) != 1)
        return;
    void (*released)(void *, size_t) = b->released;
    void *context = b->released_context;
    size_t bytes = b->len + b->gzip_len;
    free(b->bytes);
    free(b->gzip);
    free(b);
    if (released != NULL)
        released(context, bytes);
}
