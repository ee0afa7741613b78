/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Keeps account of readers and places, and chooses which readers to cut off. */
#include "server/http/slow_readers.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "server/base/clock.h"

/* The memory that the requests of a site keep. */
struct site_own {
    struct site_row row;
    uint64_t bytes;
};

void readers_init(struct readers *r, uint32_t places)
{
    *r = (struct readers){.places = places, .own_most = READERS_OWN_MOST};
    pthread_mutex_init(&r->lock, NULL);
}

void readers_done(struct readers *r)
{
    pthread_mutex_destroy(&r->lock);
}

static bool read_address(const char *text, struct sockaddr_storage *out)
{
    struct sockaddr_in *in = (struct sockaddr_in *)out;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

    *out = (struct sockaddr_storage){0};
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        out->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        out->ss_family = AF_INET6;
    return out->ss_family != 0;
}

static void release_own(struct readers *r, struct reader *reader)
{
    r->own_bytes -= reader->own;
    if (reader->own_of != NULL && (reader->own_of->bytes -= reader->own) == 0)
        site_table_remove(&r->own_of, reader->own_of);
    reader->own_of = NULL;
    reader->own = 0;
}

/* False: out of memory. */
static bool set_own(struct readers *r, struct reader *reader, int64_t site_id, uint64_t own)
{
    struct site_own *of = own > 0 ? site_table_add(&r->own_of, site_id, sizeof *of) : NULL;

    if (of != NULL)
        of->bytes += own;
    release_own(r, reader);
    if (of == NULL)
        return own == 0;
    r->own_bytes += own;
    reader->own_of = of;
    reader->own = own;
    return true;
}

/* From now on the reader counts for no place, no address and no own bytes. */
static void give_up(struct readers *r, struct reader *reader)
{
    peers_leave(&r->peers, reader->peer);
    peers_leave(&r->keepers, reader->keeper);
    reader->peer = reader->keeper = NULL;
    if (reader->place)
        r->taken--;
    reader->place = false;
    release_own(r, reader);
}

static void cut(struct readers *r, struct reader *reader, uint64_t *count)
{
    reader->cut = true;
    ++*count;
    give_up(r, reader);
    shutdown(reader->fd, SHUT_RDWR);
}

static bool is_slow(const struct reader *reader, int64_t now_ms)
{
    return now_ms - reader->since_ms >= READERS_SLOW_MS;
}

/* The longest reader of `peer`, or of `keeper`; NULL if it is not slow. Readers are in order, so
 * that only slow ones are looked at. */
static struct reader *slowest_of(const struct readers *r, const struct peer *peer,
                                 const struct peer *keeper, int64_t now_ms)
{
    for (struct reader *e = r->first; e != NULL && is_slow(e, now_ms); e = e->next)
        if ((peer != NULL && e->peer == peer) || (keeper != NULL && e->keeper == keeper))
            return e;
    return NULL;
}

/* Of the readers with a place: one of the address that has most places, and the one that has had
 * its place longest. */
static void look_at_places(const struct readers *r, struct reader **most, struct reader **longest)
{
    *most = *longest = NULL;
    for (struct reader *e = r->first; e != NULL; e = e->next) {
        if (!e->place)
            continue;
        if (*longest == NULL)
            *longest = e;
        if (e->keeper != NULL &&
            (*most == NULL || peer_count(e->keeper) > peer_count((*most)->keeper)))
            *most = e;
    }
}

/* The reader that must give its place to another; NULL: none. `own`: places that the other's
 * address has. */
static struct reader *reader_to_cut(const struct readers *r, uint32_t own, int64_t now_ms)
{
    struct reader *most, *longest;

    look_at_places(r, &most, &longest);
    if (most != NULL && peer_count(most->keeper) > own + 1)
        return most;
    return longest != NULL && is_slow(longest, now_ms) ? longest : NULL;
}

/* Rule 2. */
static bool enter(struct readers *r, struct reader *reader, const struct sockaddr_storage *address,
                  int64_t now_ms)
{
    /* Counts the new place first. */
    struct peer *keeper =
        address == NULL ? NULL
                        : peers_enter(&r->keepers, (const struct sockaddr *)address, UINT32_MAX);
    uint32_t own = keeper == NULL ? 0 : peer_count(keeper) - 1;
    bool its_half = keeper != NULL && own >= (r->places + 1) / 2 && r->places > 1;
    /* Beyond its half, an address must give up a slow reader. */
    struct reader *victim = its_half ? slowest_of(r, NULL, keeper, now_ms) : NULL;

    if (victim == NULL && r->taken >= r->places) {
        victim = reader_to_cut(r, own, now_ms);
        if (victim == NULL) {
            peers_leave(&r->keepers, keeper);
            return false;
        }
    }
    if (victim != NULL)
        cut(r, victim, &r->cut_for_others);
    r->taken++;
    reader->place = true;
    reader->keeper = keeper;
    return true;
}

/* Rule 1. */
static void count(struct readers *r, struct reader *reader, const struct sockaddr_storage *address,
                  int64_t now_ms)
{
    struct peer *peer = peers_enter(&r->peers, (const struct sockaddr *)address, UINT32_MAX);

    reader->peer = peer;
    if (peer == NULL || peer_count(peer) <= READERS_PER_ADDRESS)
        return;
    struct reader *slowest = slowest_of(r, peer, NULL, now_ms);
    if (slowest != NULL)
        cut(r, slowest, &r->cut_for_others);
}

static void append(struct readers *r, struct reader *reader)
{
    reader->of = r;
    reader->previous = r->last;
    *(r->last != NULL ? &r->last->next : &r->first) = reader;
    r->last = reader;
}

bool readers_enter(struct readers *r, struct reader *reader, const struct reading *what)
{
    struct sockaddr_storage address;
    bool counted = what->address != NULL && read_address(what->address, &address);

    *reader = (struct reader){.held = what->held, .fd = what->fd, .since_ms = what->now_ms};
    pthread_mutex_lock(&r->lock);
    bool entered = !what->place || enter(r, reader, counted ? &address : NULL, what->now_ms);
    if (entered) {
        if (counted)
            count(r, reader, &address, what->now_ms);
        append(r, reader);
        what->held->readers++;
    }
    pthread_mutex_unlock(&r->lock);
    return entered;
}

/* The longest reader of the site that keeps the most; NULL: there is only `but`. */
static struct reader *keeper_to_cut(const struct readers *r, const struct reader *but)
{
    const struct site_own *most = NULL, *of = NULL;

    while ((of = site_table_next(&r->own_of, of)) != NULL)
        if (most == NULL || of->bytes > most->bytes)
            most = of;
    for (struct reader *e = r->first; e != NULL; e = e->next)
        if (e->own_of != NULL && e->own_of == most && e != but)
            return e;
    return NULL;
}

void readers_keep(struct readers *r, struct reader *reader, int fd, int64_t site_id, uint64_t own)
{
    struct reader *victim;

    pthread_mutex_lock(&r->lock);
    if (reader->of == NULL) {
        *reader = (struct reader){.fd = fd, .since_ms = clock_coarse_ms()};
        append(r, reader);
    }
    if (!reader->cut && !set_own(r, reader, site_id, own))
        cut(r, reader, &r->cut_for_own);
    while (r->own_bytes > r->own_most && (victim = keeper_to_cut(r, reader)) != NULL)
        cut(r, victim, &r->cut_for_own);
    pthread_mutex_unlock(&r->lock);
}

uint64_t readers_leave(struct reader *reader)
{
    struct readers *r = reader->of;
    uint64_t ended = 0;

    if (r == NULL)
        return 0;
    struct held *held = reader->held;
    pthread_mutex_lock(&r->lock);
    give_up(r, reader);
    *(reader->previous != NULL ? &reader->previous->next : &r->first) = reader->next;
    *(reader->next != NULL ? &reader->next->previous : &r->last) = reader->previous;
    if (held != NULL && --held->readers == 0 && held->ending) {
        held->ending = false;
        ended = held->bytes;
    }
    pthread_mutex_unlock(&r->lock);
    reader->of = NULL;
    return ended;
}

void readers_freed(struct readers *r, enum held_kind kind, uint64_t bytes)
{
    pthread_mutex_lock(&r->lock);
    r->ending_bytes[kind] -= bytes;
    pthread_mutex_unlock(&r->lock);
}

/* Readers of a current page are not cut: others would ask for it again, and no memory would become
 * free. A file is evicted when nobody reads it. */
static bool may_be_cut(const struct reader *reader, int64_t now_ms)
{
    const struct held *held = reader->held;

    if (held->kind == HELD_PAGE)
        return atomic_load_explicit(&held->retired, memory_order_relaxed);
    return is_slow(reader, now_ms);
}

void readers_cut(struct readers *r, enum held_kind kind, uint64_t bytes, int64_t now_ms)
{
    pthread_mutex_lock(&r->lock);
    for (struct reader *reader = r->first; reader != NULL; reader = reader->next) {
        struct held *held = reader->held;
        if (held == NULL || held->kind != kind || (!held->ending && !may_be_cut(reader, now_ms)))
            continue;
        if (!held->ending && r->ending_bytes[kind] < bytes) {
            held->ending = true;
            r->ending_bytes[kind] += held->bytes;
        }
        if (held->ending && !reader->cut)
            cut(r, reader, &r->cut_for_memory);
    }
    pthread_mutex_unlock(&r->lock);
}

void readers_count_cut(struct readers *r, uint64_t *for_memory, uint64_t *for_others,
                       uint64_t *for_own)
{
    pthread_mutex_lock(&r->lock);
    *for_memory = r->cut_for_memory;
    *for_others = r->cut_for_others;
    *for_own = r->cut_for_own;
    pthread_mutex_unlock(&r->lock);
}
