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
#define FULL_MS    10   /* how soon to look again when there is no room */
#define FAILED_MS  100  /* after an error that time alone can mend: descriptors, memory */
#define PENDING_MS 5000 /* no thread takes so long: whom it did not report, the library dropped */
#define ROOM_PART  64   /* a full listener frees one place in so many at a time */

static uint32_t load_of(const struct worker *w)
{
    int pending = atomic_load(&w->pending);
    return atomic_load(&w->connections) + (pending > 0 ? (uint32_t)pending : 0);
}

/* The worker with the fewest connections; NULL: all are full. */
static struct worker *pick(struct listener *l)
{
    struct worker *best = NULL;
    int64_t now = deadline_now_ms();

    for (unsigned i = 0; i < l->worker_count; i++) {
        struct worker *w = &l->workers[(l->next_worker + i) % l->worker_count];
        if (w->handed_ms + PENDING_MS < now)
            atomic_store(&w->pending, 0);
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
    atomic_fetch_add(&w->pending, 1);
    /* A refusal closes the descriptor. */
    if (MHD_add_connection(w->daemon, fd, (const struct sockaddr *)peer, size) != MHD_YES)
        atomic_fetch_sub(&w->pending, 1);
}

/* Milliseconds until it is worth trying again; -1: when somebody comes. */
static int accept_all(struct listener *l)
{
    for (;;) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        struct worker *w = pick(l);
        if (w == NULL) {
            connections_make_room(l, 1 + l->options.max_connections / ROOM_PART);
            return FULL_MS;
        }
        int fd =
            accept4(l->listen_fd, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            hand_over(w, fd, &peer, size);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            return -1;
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            return FAILED_MS;
        /* Anything else is the end of that one connection (accept(2)). */
    }
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
        wait_ms = accept_all(l);
    }
    accept_all(l); /* who has come before the stop is still served */
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
    if (l->listen_fd >= 0)
        close(l->listen_fd);
    l->accept_wake = l->listen_fd = -1;
}
