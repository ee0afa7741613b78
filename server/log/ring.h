/* A bounded ring of lines: any number of threads put lines in without waiting for anybody, one
 * thread takes them out. Where there is no room a line is refused: whoever puts never waits.
 *
 * Invariants:
 * 1. `taken` <= `put` <= `taken` + RING_BYTES; only the taker moves `taken`.
 * 2. A line lies behind a word that holds its length + 1. The word is 0 from the reservation to
 *    the moment when the line is whole; so every byte outside of lines is 0.
 * 3. A line's place belongs to who reserved it until the word is set, then to the taker. */
#ifndef SITEMAPD_LOG_RING_H
#define SITEMAPD_LOG_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_BYTES    (1024u * 1024)
#define RING_MAX_LINE 4096u

struct ring {
    _Alignas(64) atomic_uint_least64_t put; /* bytes reserved since ever */
    _Alignas(64) atomic_uint_least64_t taken;
    _Alignas(64) unsigned char bytes[RING_BYTES];
};

/* Puts a line of 1 to RING_MAX_LINE bytes in; false where there is no room. Any thread, no lock.
 * Sequentially consistent: who puts a line and then sees the taker asleep is seen by a taker who
 * says that it sleeps and then looks here. */
bool ring_put(struct ring *r, const char *line, size_t len);
/* Takes whole lines out, as many as `room` bytes hold; the bytes taken. 0 also where the next line
 * is not whole yet. One thread at a time. */
size_t ring_take(struct ring *r, char *out, size_t room);
/* Bytes that are reserved and not taken; any thread. */
size_t ring_used(const struct ring *r);

#endif
