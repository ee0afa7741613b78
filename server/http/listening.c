/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A listener: workers, each a thread that accepts connections and serves them with a daemon of
 * libmicrohttpd of its own, and the thread of the deadlines (connection.c).
 *
 *   kernel's queue --> worker whose accept4 is first --> MHD_add_connection --> connection_notify
 *
 * A worker waits for the listening socket and for the library's epoll set, in one set of its own.
 * With all the connections that it may have it leaves new ones to the others; if all are full, the
 * deadlines' thread makes room (listener_look). A start: copies the options, opens the socket,
 * starts deadlines and workers. A stop: each worker accepts what is in the queue and then no more
 * (listener_quiesce); open requests are answered (wait_quiet); other connections are cut; daemons,
 * deadlines and memory are freed in that order (listener_free). */
#include "server/http/listener.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/crypto/tls.h"
#include "server/http/headers.h"
#include "server/http/internal.h"

/* Path and query stay as they came. */
static size_t unescape_nothing(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

/* Versions that know the newer name accept either. */
#if MHD_VERSION >= 0x00097701
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT
#endif

/* Starts the daemon of a worker (its limit is never reached), by the options of its listener; false
 * with errno. */
static bool daemon_start(struct worker *w)
{
    struct listener *l = w->listener;
    /* The daemon neither listens nor has threads. Its own listening would stop forever if
     * descriptors ran out while it has no connection, and in 0.9.75 a connection that
     * MHD_add_connection passes to a thread of a full daemon leaves a lock locked. TURBO: it reads
     * a new connection at once, and closes one without shutdown(2). */
    unsigned flags =
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    size_t memory = (size_t)l->options.max_header_bytes + POOL_BESIDE_HEADER;

    struct MHD_OptionItem more[5];
    unsigned count = 0;

    more[count++] = (struct MHD_OptionItem){MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL};
    if (l->options.tls) {
        flags |= MHD_USE_TLS;
        more[count++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
            (void *)(intptr_t)tls_certificate_callback(l->options.tls_side)};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                                (void *)(intptr_t)TLS_PRIORITIES};
    } else {
        flags |= MHD_USE_TURBO; /* with TLS it would omit the alert that ends a session */
    }
    /* Not MHD_OPTION_STRICT_FOR_CLIENT in 0.9.75: all it adds there is a check of Host and of
     * spaces in the target, answered with a header sent twice or not at all. headers.c does both.
     */
    if (parser_is_strict())
        more[count++] = (struct MHD_OptionItem){STRICTNESS, 1, NULL};
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    w->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_handle, l, MHD_OPTION_EXTERNAL_LOGGER, exchange_read_log,
        NULL, MHD_OPTION_URI_LOG_CALLBACK, exchange_target, l, MHD_OPTION_UNESCAPE_CALLBACK,
        unescape_nothing, NULL, MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notify, w, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)w->limit + 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory, MHD_OPTION_ARRAY, more,
        MHD_OPTION_END);
    return w->daemon != NULL;
}

static bool wait_for(struct worker *w, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

#define ROUND     10   /* accepted in a row, then earlier connections are served */
#define LAST_MOST 4096 /* accepted at most by a stop: later ones arrived after it */
#define ROOM_PART 64   /* a full listener frees this fraction of the places at a time */
#define PAUSE_MS  100  /* pause until descriptors or memory may be free again */

static bool is_full(const struct worker *w)
{
    return atomic_load(&w->load) >= w->limit;
}

static void pause_accepting(struct worker *w)
{
    w->paused_until_ms = clock_coarse_ms() + PAUSE_MS;
}

/* For the worker's own thread. */
static bool has_place(const struct worker *w)
{
    return atomic_load(&w->load) + w->added < w->limit;
}

/* Accepts up to `most` connections, as far as there are places. */
static void accept_some(struct worker *w, int most)
{
    struct listener *l = w->listener;

    for (int count = 0; count < most && has_place(w); count++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        int fd =
            accept4(w->listen_fd, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            atomic_fetch_add_explicit(&l->accepted, 1, memory_order_relaxed);
            w->added++;
            /* If it fails (out of memory), it closes the descriptor. */
            if (MHD_add_connection(w->daemon, fd, (const struct sockaddr *)&peer, size) !=
                MHD_YES) {
                w->added--;
                atomic_fetch_add(&l->failed, 1);
            }
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            atomic_fetch_add(&l->failed, 1);
            pause_accepting(w);
            atomic_store(&l->starved, true);
            thread_wake(&l->deadline_thread); /* listener_look */
            return;
        } /* anything else is the end of that one connection (accept(2)) */
    }
}

/* Waits for the listening socket only if there is a place for another connection; otherwise a ready
 * socket would keep the thread from sleeping. */
static void listen_or_not(struct worker *w)
{
    if (w->paused_until_ms != 0 && clock_coarse_ms() >= w->paused_until_ms)
        w->paused_until_ms = 0;
    bool wanted = !w->quiesced && w->paused_until_ms == 0 && has_place(w);

    if (wanted && !w->listens) {
        w->listens = wait_for(w, w->listen_fd);
        if (!w->listens)
            pause_accepting(w);
    } else if (!wanted && w->listens) {
        w->listens = epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, w->listen_fd, NULL) != 0;
    }
}

/* How long to wait for the next event, for epoll_wait. */
static int patience_of(const struct worker *w)
{
    MHD_UNSIGNED_LONG_LONG ms;
    int most = w->paused_until_ms != 0 ? PAUSE_MS : -1;

    if (MHD_get_timeout(w->daemon, &ms) != MHD_YES || (most >= 0 && ms > (unsigned)most))
        return most;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void serve(struct worker *w)
{
    MHD_run(w->daemon);
    w->added = 0; /* any that did not start has failed */
}

/* Clients that came before the stop are still served; LAST_MOST bounds a flood. Those in the queue
 * of a given socket are left to the next process. */
static void accept_last(struct worker *w)
{
    struct listener *l = w->listener;

    if (!l->given)
        accept_some(w, LAST_MOST);
    w->quiesced = true;
    listen_or_not(w);
    serve(w); /* from here on the listener has its connections */
    sem_post(&l->quiesced);
}

/* As the library's own threads do: it relies on that (MHD_OPTION_SIGPIPE_HANDLED_BY_APP). */
static void block_sigpipe(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void worker_run(void *context)
{
    struct worker *w = context;
    struct epoll_event events[3];
    eventfd_t woken;

    block_sigpipe();
    while (!thread_stops(&w->thread)) {
        listen_or_not(w);
        int count = epoll_wait(w->epoll_fd, events, 3, patience_of(w));
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd == w->wake_fd)
                eventfd_read(w->wake_fd, &woken);
            else if (events[i].data.fd == w->listen_fd)
                accept_some(w, ROUND);
        }
        if (atomic_load(&w->listener->quiescing) && !w->quiesced)
            accept_last(w);
        serve(w);
    }
    MHD_stop_daemon(w->daemon); /* cuts the remaining connections; none may be suspended */
    w->daemon = NULL;
}

static bool worker_start(struct worker *w)
{
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->wake_fd < 0 || w->epoll_fd < 0 || !daemon_start(w))
        return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(w->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info != NULL && wait_for(w, info->epoll_fd) && wait_for(w, w->wake_fd) &&
           thread_start(&w->thread, "http", worker_run, w);
}

void worker_wake(struct worker *w)
{
    eventfd_write(w->wake_fd, 1);
}

static void worker_stop(struct worker *w)
{
    int error = errno;

    thread_end(&w->thread);
    worker_wake(w);
    thread_join(&w->thread);
    if (w->daemon != NULL)
        MHD_stop_daemon(w->daemon);
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    errno = error;
}

/* Under accept_lock. */
static bool look(struct listener *l)
{
    struct pollfd anyone = {.fd = l->listen_fd, .events = POLLIN};
    uint32_t room = 1 + l->options.max_connections / ROOM_PART;
    bool full = true, was_full = l->was_full;

    if (!l->accepting)
        return false;
    /* In this order, so that a client accepted meanwhile is not the one that must make room. */
    int64_t now = clock_coarse_ms();
    for (unsigned i = 0; i < l->worker_count; i++)
        full = full && is_full(&l->workers[i]);
    l->was_full = full && poll(&anyone, 1, 0) == 1;
    if (l->was_full && !was_full)
        atomic_fetch_add(&l->full, 1);
    if (atomic_exchange(&l->starved, false) || l->was_full)
        connections_make_room(l, room, now);
    return l->was_full;
}

bool listener_look(struct listener *l)
{
    pthread_mutex_lock(&l->accept_lock);
    bool again = look(l);
    pthread_mutex_unlock(&l->accept_lock);
    return again;
}

#define STOP_POLL_MS  2
#define STOP_IDLE_MS  1500  /* for connections without a request to end by themselves */
#define STOP_GRACE_MS 10000 /* after the sockets are cut: time for suspended requests */

static unsigned thread_count(const struct listener_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->threads > 0)
        return options->threads;
    return cores > 0 ? (unsigned)cores : 1;
}

static bool start_workers(struct listener *l)
{
    unsigned threads = thread_count(&l->options);
    uint32_t most = l->options.max_connections;

    if (threads > most)
        threads = most; /* each has a place for at least one */
    assert(threads > 0);
    l->workers = calloc(threads, sizeof *l->workers);
    if (l->workers == NULL)
        return false;
    for (unsigned i = 0; i < threads; i++) {
        struct worker *w = &l->workers[i];
        w->listener = l;
        w->limit = most / threads + (i < most % threads);
        atomic_init(&w->load, 0);
        w->listen_fd = l->listen_fd;
        w->epoll_fd = w->wake_fd = -1;
        l->worker_count++; /* also a worker of which only a part started must be stopped */
        if (!worker_start(w))
            return false;
    }
    return true;
}

const char *listener_row_label(const struct listener *l, size_t row)
{
    if (row < l->options.route_count)
        return l->options.routes[row].label;
    if (row == l->options.route_count && l->options.fallback != NULL)
        return l->options.fallback->label;
    return "none";
}

void listener_retune(struct listener *l, const struct listener_options *options)
{
    atomic_store(&l->header_timeout_ms, options->header_timeout_ms);
    atomic_store(&l->body_timeout_ms, options->body_timeout_ms);
    atomic_store(&l->reply_timeout_ms, options->reply_timeout_ms);
    atomic_store(&l->idle_timeout_ms, options->idle_timeout_ms);
    atomic_store(&l->max_connections_per_address, options->max_connections_per_address);
}

static void share_rows(struct listener *l)
{
    for (size_t i = 0; i < l->options.route_count + 2; i++) {
        size_t first = 0;
        while (strcmp(listener_row_label(l, first), listener_row_label(l, i)) != 0)
            first++;
        l->rows[i] = first;
    }
}

/* Copies what the listener needs of the options later. */
static bool copy_options(struct listener *l, const struct listener_options *options, char *why,
                         size_t why_size)
{
    size_t count = options->trusted_proxy_count;

    l->options = *options;
    listener_retune(l, options);
    l->options.address = l->address;
    l->options.socket = NULL;
    l->options.trusted_proxies = NULL;
    l->options.name = l->name = strdup(options->name);
    l->trusted = calloc(count > 0 ? count : 1, sizeof *l->trusted);
    l->counts = counts_new(options->route_count + 2); /* each route, the fallback, none */
    l->rows = calloc(options->route_count + 2, sizeof *l->rows);
    if (l->name == NULL || l->trusted == NULL || l->counts == NULL || l->rows == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    share_rows(l);
    for (size_t i = 0; i < count; i++) {
        if (!address_range_parse(options->trusted_proxies[i], &l->trusted[i])) {
            snprintf(why, why_size, "trusted proxy %s: not a valid address or range",
                     options->trusted_proxies[i]);
            return false;
        }
    }
    return true;
}

static void stop_workers(struct listener *l)
{
    for (unsigned i = 0; i < l->worker_count; i++)
        worker_stop(&l->workers[i]);
    l->worker_count = 0;
}

static void listener_free(struct listener *l)
{
    stop_workers(l);
    thread_stop(&l->deadline_thread); /* before the objects that it uses */
    if (l->listen_fd >= 0)
        close(l->listen_fd);
    free(l->workers);
    sem_destroy(&l->quiesced);
    pthread_mutex_destroy(&l->accept_lock);
    pthread_mutex_destroy(&l->connections_lock);
    free(l->rows);
    counts_free(l->counts);
    free(l->trusted);
    free(l->name);
    free(l);
}

static struct listener *listener_new(void)
{
    struct listener *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->listen_fd = -1;
    atomic_init(&l->quiescing, false);
    atomic_init(&l->starved, false);
    atomic_init(&l->quiesced_ms, 0);
    atomic_init(&l->resuming, 0);
    atomic_init(&l->aborted, 0);
    atomic_init(&l->accepted, 0);
    atomic_init(&l->failed, 0);
    atomic_init(&l->full, 0);
    pthread_mutex_init(&l->connections_lock, NULL);
    sem_init(&l->quiesced, 0, 0);
    pthread_mutex_init(&l->accept_lock, NULL);
    return l;
}

static bool open_socket(struct listener *l, const struct listener_options *options, char *why,
                        size_t why_size)
{
    if (options->socket == NULL) {
        l->listen_fd = address_listen(options->address, l->address, why, why_size);
        return l->listen_fd >= 0;
    }
    l->given = options->socket->given;
    l->listen_fd = options->socket->fd;
    address_describe(l->listen_fd, l->address);
    if (l->given || address_listen_on(l->listen_fd))
        return true;
    snprintf(why, why_size, "%s: %s%s", l->address, strerror(errno), address_advice(errno));
    l->listen_fd = -1; /* the caller's still */
    return false;
}

/* Starts the workers. Their threads inherit short time slices, if configured. */
static bool start_answering(struct listener *l)
{
    int silent_s = 1;   /* a silent client is accepted after about this time */
    if (l->options.tls) /* see is_plain; otherwise plain HTTP would be closed without an answer */
        setsockopt(l->listen_fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent_s, sizeof silent_s);
    bool shortened = l->options.short_slices && slice_shorten();
    bool started = start_workers(l);
    int error = errno;

    if (shortened)
        slice_restore();
    errno = error;
    return started;
}

bool listener_start(const struct listener_options *options, struct listener **out, char *why,
                    size_t why_size)
{
    struct listener *l = listener_new();

    *out = NULL;
    if (l == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    if (!copy_options(l, options, why, why_size))
        goto fail;
    if (!open_socket(l, options, why, why_size))
        goto fail;
    if (!deadline_start(l)) {
        snprintf(why, why_size, "%s: cannot start a thread", l->address);
        goto fail;
    }
    if (!start_answering(l)) {
        bool files = errno == EMFILE || errno == ENFILE;
        snprintf(
            why, why_size, "%s: libmicrohttpd does not start: %s%s", l->address, strerror(errno),
            files ? "; raise the limit of open files (ulimit -n, LimitNOFILE in a systemd unit)"
                  : "");
        goto fail;
    }
    pthread_mutex_lock(&l->accept_lock);
    l->accepting = true;
    pthread_mutex_unlock(&l->accept_lock);
    *out = l;
    return true;

fail:
    stop_workers(l);
    if (options->socket != NULL)
        l->listen_fd = -1; /* the caller's still */
    listener_free(l);
    return false;
}

const char *listener_address(const struct listener *l)
{
    return l->address;
}

void listener_quiesce(struct listener *l)
{
    if (atomic_exchange(&l->quiescing, true))
        return;
    atomic_store(&l->quiesced_ms, clock_coarse_ms());
    for (unsigned i = 0; i < l->worker_count; i++)
        worker_wake(&l->workers[i]);
    for (unsigned i = 0; i < l->worker_count; i++)
        while (sem_wait(&l->quiesced) != 0)
            continue; /* EINTR */
    pthread_mutex_lock(&l->accept_lock);
    l->accepting = false;
    /* Not shut down: a socket that was passed continues to listen for its other holders. */
    close(l->listen_fd);
    l->listen_fd = -1;
    pthread_mutex_unlock(&l->accept_lock);
}

bool listener_refuses(const struct listener *l)
{
    int64_t since = atomic_load(&l->quiesced_ms);

    return since != 0 && clock_coarse_ms() - since >= STOP_IDLE_MS;
}

/* True if no request is active and no thread is about to resume one. */
static bool is_quiet(struct listener *l)
{
    return counts_active(l->counts) == 0 && atomic_load(&l->resuming) == 0;
}

static bool wait_quiet(struct listener *l, uint32_t timeout_ms)
{
    struct timespec pause = {.tv_nsec = STOP_POLL_MS * 1000000L};
    int64_t now = clock_coarse_ms(), end = now + timeout_ms;
    int64_t idle_end = atomic_load(&l->quiesced_ms) + STOP_IDLE_MS;

    for (;; now = clock_coarse_ms()) {
        bool none = connections_end_idle(l); /* first, so that no request begins in between */
        if (is_quiet(l) && (none || now >= idle_end))
            return true;
        if (now >= end)
            return false;
        nanosleep(&pause, NULL);
    }
}

void listener_stop(struct listener *l, uint32_t timeout_ms)
{
    if (l == NULL)
        return;
    listener_quiesce(l);
    if (!wait_quiet(l, timeout_ms)) {
        deadline_cut_all(l);
        /* The library aborts the process if a connection is still suspended. If a request was never
         * resumed (a bug), do not free the listener. */
        if (!wait_quiet(l, STOP_GRACE_MS) && site_uses_taken(&l->waiting) > 0)
            return;
    }
    listener_free(l);
}

void listener_counts(const struct listener *l,
                     void (*each)(void *context, const char *route, unsigned status,
                                  uint64_t count),
                     void *context)
{
    for (size_t row = 0; row < l->options.route_count + 2; row++) {
        for (unsigned status = 100; status < 600; status++) {
            uint64_t count = counts_get(l->counts, row, status);
            if (count > 0)
                each(context, listener_row_label(l, row), status, count);
        }
    }
}

void listener_times(const struct listener *l,
                    void (*each)(void *context, const char *route,
                                 const struct histogram_values *took),
                    void *context)
{
    for (size_t row = 0; row < l->options.route_count + 2; row++) {
        struct histogram_values took;
        counts_times(l->counts, row, &took);
        if (histogram_count(&took) > 0)
            each(context, listener_row_label(l, row), &took);
    }
}

void listener_totals(const struct listener *l, struct listener_totals *out)
{
    struct listener *unconst = (struct listener *)l;

    memset(out, 0, sizeof *out);
    counts_sum(l->counts, &out->sums);
    out->aborted = atomic_load(&l->aborted);
    out->accepted = atomic_load(&l->accepted);
    out->failed = atomic_load(&l->failed);
    out->full = atomic_load(&l->full);
    out->max_connections = l->options.max_connections;
    out->max_suspended = l->options.max_suspended;
    pthread_mutex_lock(&unconst->connections_lock);
    out->over_limit = l->over_limit;
    out->evicted = l->evicted;
    memcpy(out->late, l->late, sizeof out->late);
    pthread_mutex_unlock(&unconst->connections_lock);
}

int64_t listener_stale_ms(const struct listener *l)
{
    int64_t scanned_ms = atomic_load(&l->scanned_ms);

    return scanned_ms == 0 ? 0 : clock_coarse_ms() - scanned_ms;
}

void listener_load(const struct listener *l, uint32_t *connections, uint32_t *suspended)
{
    struct listener *unconst = (struct listener *)l;

    pthread_mutex_lock(&unconst->connections_lock);
    *connections = l->connection_count;
    pthread_mutex_unlock(&unconst->connections_lock);
    *suspended = (uint32_t)site_uses_taken(&unconst->waiting);
}
