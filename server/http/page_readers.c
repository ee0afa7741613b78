#include "server/http/page_readers.h"

#include <sys/socket.h>

void page_readers_init(struct page_readers *r)
{
    pthread_mutex_init(&r->lock, NULL);
    r->first = NULL;
    r->last = NULL;
    r->ending_bytes = 0;
    r->cut = 0;
}

void page_readers_done(struct page_readers *r)
{
    pthread_mutex_destroy(&r->lock);
}

void page_readers_enter(struct page_readers *r, struct page_reader *reader, struct page_held *held,
                        int fd)
{
    *reader = (struct page_reader){.of = r, .held = held, .fd = fd};
    pthread_mutex_lock(&r->lock);
    reader->previous = r->last;
    if (r->last != NULL)
        r->last->next = reader;
    else
        r->first = reader;
    r->last = reader;
    held->readers++;
    pthread_mutex_unlock(&r->lock);
}

uint64_t page_readers_leave(struct page_reader *reader)
{
    struct page_readers *r = reader->of;
    uint64_t ended = 0;

    if (r == NULL)
        return 0;
    struct page_held *held = reader->held;
    pthread_mutex_lock(&r->lock);
    if (reader->previous != NULL)
        reader->previous->next = reader->next;
    else
        r->first = reader->next;
    if (reader->next != NULL)
        reader->next->previous = reader->previous;
    else
        r->last = reader->previous;
    if (--held->readers == 0 && held->ending) {
        held->ending = false;
        ended = held->snapshot->gzip_len;
    }
    pthread_mutex_unlock(&r->lock);
    reader->of = NULL;
    return ended;
}

void page_readers_freed(struct page_readers *r, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    r->ending_bytes -= bytes;
    pthread_mutex_unlock(&r->lock);
}

void page_readers_cut(struct page_readers *r, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    for (struct page_reader *reader = r->first; reader != NULL; reader = reader->next) {
        struct page_held *held = reader->held;
        if (!atomic_load_explicit(&held->snapshot->retired, memory_order_relaxed))
            continue; /* somebody else would ask for it again: nothing is won */
        if (!held->ending && r->ending_bytes < bytes) {
            held->ending = true;
            r->ending_bytes += held->snapshot->gzip_len;
        }
        if (held->ending && !reader->cut) {
            reader->cut = true;
            r->cut++;
            shutdown(reader->fd, SHUT_RDWR);
        }
    }
    pthread_mutex_unlock(&r->lock);
}

uint64_t page_readers_count_cut(struct page_readers *r)
{
    pthread_mutex_lock(&r->lock);
    uint64_t cut = r->cut;
    pthread_mutex_unlock(&r->lock);
    return cut;
}
