/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Reference counting of a resource and its budget. */
#include "server/pages/resource.h"

#include <stdlib.h>

struct resource *resource_new(enum held_kind kind)
{
    struct resource *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->held.kind = kind;
    r->content_type = "application/xml; charset=utf-8";
    atomic_init(&r->same_second, false);
    atomic_init(&r->held.retired, false);
    atomic_init(&r->references, 1);
    return r;
}

void resource_count(struct resource *r, void (*released)(void *context, size_t bytes),
                    void *context)
{
    r->held.bytes = (r->bytes == NULL ? 0 : r->raw_len) + r->gzip_len;
    r->released = released;
    r->released_context = context;
}

void resource_ref(struct resource *r)
{
    /* No ordering is needed, since the caller already holds a reference, or the owner's lock. */
    atomic_fetch_add_explicit(&r->references, 1, memory_order_relaxed);
}

void resource_unref(struct resource *r)
{
    if (r == NULL)
        return;
    /* Acquire and release: what other threads read of the buffers happens before their end. */
    if (atomic_fetch_sub_explicit(&r->references, 1, memory_order_acq_rel) != 1)
        return;
    if (r->attachment_free != NULL)
        r->attachment_free(r->attachment);
    void (*released)(void *, size_t) = r->released;
    void *context = r->released_context;
    size_t bytes = r->held.bytes;
    free((void *)r->bytes);
    free((void *)r->gzip);
    free(r->segments);
    free(r);
    if (released != NULL)
        released(context, bytes);
}
