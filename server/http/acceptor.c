#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/http/internal.h"

/* The library's daemons have no listening socket: taken away from them while their threads run
 * (MHD_quiesce_daemon), it can abort the process, because thread and caller both take it out of the
 * thread's epoll set, and who comes second finds it gone. So one thread accepts for all workers.
 * It also knows what the library does not: whom to turn away, and who has to make room. */
#define FULL_MS    5    /* how soon to look again when there is no room */
#define ROUND      256  /* accepted in a row: then a stop is looked for, and they are let in */
#define LAST_MOST  4096 /* taken in by a stop at most: those behind them came after it */
#define FAILED_MS  100  /* after an error that time alone can mend: descriptors, memory */
#define PENDING_MS 5000 /* no thread takes so long: whom it did not report, the library dropped */
#define ROOM_PART  64   /* a full listener frees one place in so many at a time */

static uint64_t load_of(const struct worker *w)
{
    uint64_t load = atomic_load(&w->load);
    return load / LOAD_STARTED + (load & LOAD_PENDING);
}

static void one_pending_less(struct worker *w)
{
    uint64_t load = atomic_load(&w->load);

    while ((load & LOAD_PENDING) != 0 && !atomic_compare_exchange_weak(&w->load, &load, load - 1))
        ;
}

/* The worker with the fewest connections; NULL: all are full. */
static struct worker *pick(struct listener *l)
{
    struct worker *best = NULL;
    int64_t now = deadline_now_ms();

    for (unsigned i = 0; i < l->worker_count; i++) {
        struct worker *w = &l->workers[(l->next_worker + i) % l->worker_count];
        if (w->handed_ms + PENDING_MS < now)
            atomic_fetch_and(&w->load, ~LOAD_PENDING);
        if (load_of(w) < w->limit && (best == NULL || load_of(w) < load_of(best)))
            best = w;
    }
    l->next_worker++;
    return best;
}

/* Takes over `fd`. */
static void hand_over(struct worker *w, int fd, const struct sockaddr_storage *peer, socklen_t size)
{
    w->handed_ms = deadline_now_ms();
    atomic_fetch_add(&w->load, 1);
    /* A refusal closes the descriptor. */
    if (MHD_add_connection(w->daemon, fd, (const struct sockaddr *)peer, size) != MHD_YES) {
        one_pending_less(w);
        atomic_fetch_add(&w->listener->failed, 1);
    }
}

/* Whom the worker would count one too many is not worth waking it for. It is the worker's count
 * that is exact. */
static bool is_one_too_many(struct listener *l, const struct sockaddr_storage *peer)
{
    uint32_t most = l->max_connections_per_address;
    char text[INET6_ADDRSTRLEN];

    if (most == 0)
        return false;
    pthread_mutex_lock(&l->connections_lock);
    bool full = peers_count(&l->peers, (const struct sockaddr *)peer) >= most;
    pthread_mutex_unlock(&l->connections_lock);
    if (!full)
        return false;
    address_peer((const struct sockaddr *)peer, text);
    return !connection_is_trusted(l, text);
}

static bool turn_away(struct listener *l, const struct sockaddr_storage *peer)
{
    if (!is_one_too_many(l, peer))
        return false;
    pthread_mutex_lock(&l->connections_lock);
    l->over_limit++;
    pthread_mutex_unlock(&l->connections_lock);
    return true;
}

/* One place in ROOM_PART is kept free where newcomers take it: who finds none waits in the kernel's
 * queue, behind a whole crowd perhaps, for the threads to end others. */
static void keep_reserve(struct listener *l)
{
    uint64_t wanted = l->options.max_connections / ROOM_PART;
    uint64_t load = 0, most = l->options.max_connections - wanted;
    int64_t now = deadline_now_ms();

    for (unsigned i = 0; i < l->worker_count; i++)
        load += load_of(&l->workers[i]);
    if (load <= most || l->room_ms + FULL_MS > now)
        return;
    l->room_ms = now;
    connections_make_room(l, (uint32_t)(load - most));
}

/* Milliseconds until it is worth trying again; -1: when somebody comes; 0: at once. */
static int accept_round(struct listener *l)
{
    for (unsigned i = 0; i < ROUND; i++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        struct worker *w = pick(l);
        if (w == NULL) {
            struct pollfd anyone = {.fd = l->listen_fd, .events = POLLIN};
            if (poll(&anyone, 1, 0) == 0)
                return -1;
            connections_make_room(l, 1 + l->options.max_connections / ROOM_PART);
            return FULL_MS;
        }
        int fd =
            accept4(l->listen_fd, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK)
                return -1;
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                atomic_fetch_add(&l->failed, 1);
                connections_make_room(l, 1 + l->options.max_connections / ROOM_PART);
                return FAILED_MS;
            }
            continue; /* anything else is the end of that one connection (accept(2)) */
        }
        atomic_fetch_add(&l->accepted, 1);
        if (turn_away(l, &peer))
            close(fd);
        else
            hand_over(w, fd, &peer, size);
        keep_reserve(l);
    }
    return 0;
}

static void *run(void *context)
{
    struct listener *l = context;
    struct pollfd fds[2] = {{.fd = l->accept_wake, .events = POLLIN},
                            {.fd = l->listen_fd, .events = POLLIN}};
    int wait_ms = -1;

    for (;;) {
        /* With no room, who comes is left to the kernel's queue: not looked at until then. */
        int ready = poll(fds, wait_ms < 0 ? 2 : 1, wait_ms);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0 && fds[0].revents != 0)
            break;
        int before_ms = wait_ms;
        wait_ms = accept_round(l);
        if (wait_ms == FULL_MS && before_ms != FULL_MS)
            atomic_fetch_add(&l->full, 1);
    }
    /* Who has come before the stop is still served; a flood does not keep it from its end. Those in
     * the queue of a given socket are the next process's. */
    for (unsigned taken = 0; !l->given && taken < LAST_MOST && accept_round(l) == 0; taken += ROUND)
        ;
    return NULL;
}

bool acceptor_start(struct listener *l)
{
    l->accept_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->accept_wake < 0)
        return false;
    l->accepting = pthread_create(&l->accept_thread, NULL, run, l) == 0;
    return l->accepting;
}

void acceptor_end(struct listener *l)
{
    if (l->accepting) {
        eventfd_write(l->accept_wake, 1);
        pthread_join(l->accept_thread, NULL);
        l->accepting = false;
    }
    if (l->accept_wake >= 0)
        close(l->accept_wake);
    /* Never shut down: a given socket goes on listening for whoever holds it besides. */
    if (l->listen_fd >= 0)
        close(l->listen_fd);
    l->accept_wake = l->listen_fd = -1;
}
