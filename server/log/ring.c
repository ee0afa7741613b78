#include "server/log/ring.h"

#include <assert.h>
#include <string.h>

#define WORD sizeof(uint64_t)

/* All places are multiples of a word, so none is cut by the end of the ring. */
static atomic_uint_least64_t *word_at(struct ring *r, uint64_t at)
{
    return (atomic_uint_least64_t *)(void *)(r->bytes + at % RING_BYTES);
}

static size_t place_of(size_t len)
{
    return WORD + (len + WORD - 1) / WORD * WORD;
}

/* How much of `len` bytes at `at` comes before the ring's end. */
static size_t before_end(uint64_t at, size_t len)
{
    size_t room = RING_BYTES - at % RING_BYTES;
    return len < room ? len : room;
}

bool ring_put(struct ring *r, const char *line, size_t len)
{
    size_t place = place_of(len);
    uint64_t at = atomic_load_explicit(&r->put, memory_order_relaxed);

    assert(len > 0 && len <= RING_MAX_LINE);
    do {
        uint64_t taken = atomic_load_explicit(&r->taken, memory_order_acquire);
        /* `at` may be older than `taken`; then the exchange fails. */
        if (at >= taken && at + place - taken > RING_BYTES)
            return false;
    } while (!atomic_compare_exchange_weak(&r->put, &at, at + place));
    size_t first = before_end(at + WORD, len);
    memcpy(r->bytes + (at + WORD) % RING_BYTES, line, first);
    memcpy(r->bytes, line + first, len - first);
    atomic_store(word_at(r, at), len + 1);
    return true;
}

/* The bytes are a later line's word to be, so they go back to 0 (invariant 2). */
static void take(struct ring *r, uint64_t at, char *out, size_t len)
{
    size_t first = before_end(at + WORD, len);
    unsigned char *from = r->bytes + (at + WORD) % RING_BYTES;

    memcpy(out, from, first);
    memset(from, 0, first);
    memcpy(out + first, r->bytes, len - first);
    memset(r->bytes, 0, len - first);
    atomic_store_explicit(word_at(r, at), 0, memory_order_relaxed);
}

size_t ring_take(struct ring *r, char *out, size_t room)
{
    uint64_t at = atomic_load_explicit(&r->taken, memory_order_relaxed);
    uint64_t put = atomic_load(&r->put);
    size_t filled = 0;

    while (at < put) {
        uint64_t word = atomic_load(word_at(r, at));
        if (word == 0 || word - 1 > room - filled)
            break;
        take(r, at, out + filled, (size_t)word - 1);
        filled += (size_t)word - 1;
        at += place_of((size_t)word - 1);
    }
    atomic_store_explicit(&r->taken, at, memory_order_release);
    return filled;
}

size_t ring_used(const struct ring *r)
{
    uint64_t taken = atomic_load(&r->taken);
    uint64_t put = atomic_load(&r->put);

    return put > taken ? (size_t)(put - taken) : 0;
}
