/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A listener: workers, each a daemon of libmicrohttpd with a thread that accepts connections and
 * serves them, and the thread of the deadlines (connection.c).
 *
 *   kernel's queue --> worker whose accept4 is first --> connection_notify
 *
 * All workers have the same listening socket in their epoll sets. A worker with all the connections
 * that it may have leaves new ones to the others; if all are full, the deadlines' thread makes room
 * (listener_look). A start: copies the options, opens the socket, starts deadlines and workers. A
 * stop: the workers no longer accept, and the connections in the queue are handed to them
 * (listener_quiesce); open requests are answered (wait_quiet); other connections are cut; daemons,
 * deadlines and memory are freed in that order (listener_free). */
#include "server/http/listener.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The library's accept policy: admits and counts all connections. */
static enum MHD_Result count_accepted(void *cls, const struct sockaddr *peer, socklen_t size)
{
    struct listener *l = cls;

    (void)size;
    if (peer->sa_family != AF_UNIX) /* a worker's control connection */
        atomic_fetch_add_explicit(&l->accepted, 1, memory_order_relaxed);
    return MHD_YES;
}

/* Starts the daemon of a worker, by the options of its listener; false with errno. */
static bool daemon_start(struct worker *w)
{
    struct listener *l = w->listener;
    /* One daemon for each thread: the library's own pool cannot be stopped as below. TURBO: the
     * library reads a new connection at once, and closes one without shutdown(2). */
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    size_t memory = (size_t)l->options.max_header_bytes + POOL_BESIDE_HEADER;

    struct MHD_OptionItem more[5];
    unsigned count = 0;

    /* The library closes it when it stops. */
    int listen_fd = fcntl(l->listen_fd, F_DUPFD_CLOEXEC, 0);
    if (listen_fd < 0)
        return false;
    more[count++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, listen_fd, NULL};
    if (l->options.tls) {
        flags |= MHD_USE_TLS;
        more[count++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
            (void *)(intptr_t)tls_certificate_callback(l->options.tls_side)};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                                (void *)(intptr_t)TLS_PRIORITIES};
    } else {
        flags |= MHD_USE_TURBO; /* with TLS it would leave out the alert that ends a session */
    }
    /* Not MHD_OPTION_STRICT_FOR_CLIENT in 0.9.75: all it adds there is a check of Host and of
     * spaces in the target, answered with a header sent twice or not at all. headers.c does both.
     */
    if (parser_is_strict())
        more[count++] = (struct MHD_OptionItem){STRICTNESS, 1, NULL};
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    w->listen_fd = listen_fd;
    w->daemon = MHD_start_daemon(
        flags, 0, count_accepted, l, exchange_handle, l, MHD_OPTION_EXTERNAL_LOGGER,
        exchange_read_log, NULL, MHD_OPTION_URI_LOG_CALLBACK, exchange_target, l,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, NULL, MHD_OPTION_NOTIFY_COMPLETED,
        exchange_completed, l, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, w,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)w->limit + 1, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        memory, MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    return w->daemon != NULL;
}

/* The daemon's control connection is a pair of sockets, of which the listener has one end. When
 * that end is shut, the worker's own thread calls MHD_quiesce_daemon (control_notify in
 * connection.c): called by another thread it can abort the process, because both take the listening
 * socket out of the epoll set, and the second one finds it gone. */

/* True where the worker has sent its byte; it closes the connection where it has no memory for it.
 */
static bool control_started(const struct worker *w)
{
    struct pollfd end = {.fd = w->control_fd, .events = POLLIN};
    char byte;

    while (poll(&end, 1, -1) < 0)
        continue; /* EINTR */
    return recv(w->control_fd, &byte, 1, 0) == 1;
}

static bool control_open(struct worker *w)
{
    const struct sockaddr control = {.sa_family = AF_UNIX};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return false;
    w->control_fd = ends[0];
    if (MHD_add_connection(w->daemon, ends[1], &control, sizeof control) == MHD_YES &&
        control_started(w))
        return true;
    errno = ENOMEM;
    return false;
}

static bool worker_start(struct worker *w)
{
    w->control_fd = -1;
    return daemon_start(w) && control_open(w);
}

/* Makes the worker accept no more connections; it goes on serving those that it has. */
static void worker_quiesce(struct worker *w)
{
    shutdown(w->control_fd, SHUT_WR);
    while (sem_wait(&w->listener->quiesced) != 0)
        continue; /* EINTR */
    close(w->control_fd);
    w->control_fd = -1;
    close(w->listen_fd);
}

/* Cuts the remaining connections of the worker; none may be suspended. */
static void worker_stop(struct worker *w)
{
    if (w->daemon != NULL)
        MHD_stop_daemon(w->daemon);
    w->daemon = NULL;
    if (w->control_fd >= 0)
        close(w->control_fd);
}

#define ROUND     256  /* accepted in a row */
#define LAST_MOST 4096 /* accepted by a stop at most: later ones came after it */
#define ROOM_PART 64   /* a full listener frees one place in so many at a time */

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
static struct worker *least_loaded(struct listener *l)
{
    struct worker *best = NULL;

    for (unsigned i = 0; i < l->worker_count; i++) {
        struct worker *w = &l->workers[i];
        if (load_of(w) < w->limit && (best == NULL || load_of(w) < load_of(best)))
            best = w;
    }
    return best;
}

#define PLACE_WAIT_MS 100

/* The library counts a connection for a moment longer than `load`: it reports the end before it
 * lowers its own count, and closes a connection that is added in between. Waits until that moment
 * is over, which takes long only if the worker does not get to run; false: it is not over. */
static bool library_has_place(const struct worker *w)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int tries = 0; tries <= PLACE_WAIT_MS; tries++) {
        const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(w->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

        if (info == NULL || info->num_connections <= w->limit) /* and the control connection */
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Takes over `fd`. */
static void hand_over(struct worker *w, int fd, const struct sockaddr_storage *peer, socklen_t size)
{
    atomic_fetch_add(&w->load, 1);
    /* A refusal closes the descriptor. */
    if (MHD_add_connection(w->daemon, fd, (const struct sockaddr *)peer, size) != MHD_YES) {
        one_pending_less(w);
        atomic_fetch_add(&w->listener->failed, 1);
    }
}

/* Accepts up to `most` connections for the workers. Returns how many; -1: the process has no
 * descriptor or memory for more. */
static int accept_for_workers(struct listener *l, int most)
{
    int count = 0;

    for (struct worker *w; count < most && (w = least_loaded(l)) != NULL && library_has_place(w);
         count++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        int fd =
            accept4(l->listen_fd, (struct sockaddr *)&peer, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            hand_over(w, fd, &peer, size);
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            return -1;
        /* anything else is the end of that one connection (accept(2)) */
    }
    return count;
}

/* Under accept_lock. */
static bool look(struct listener *l)
{
    struct pollfd anyone = {.fd = l->listen_fd, .events = POLLIN};
    uint32_t room = 1 + l->options.max_connections / ROOM_PART;
    bool waited = l->waited, was_full = l->was_full;

    if (!l->accepting)
        return false;
    /* In this order: a client that is accepted meanwhile is not the one that has to make room. */
    int64_t now = clock_coarse_ms();
    bool full = least_loaded(l) == NULL;

    l->waited = poll(&anyone, 1, 0) == 1;
    l->was_full = l->waited && full;
    if (l->was_full) {
        if (!was_full)
            atomic_fetch_add(&l->full, 1);
        connections_make_room(l, room, now);
    } else if (l->waited && waited && accept_for_workers(l, 1) < 0) {
        atomic_fetch_add(&l->failed, 1);
        connections_make_room(l, room, now);
    }
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
#define STOP_GRACE_MS 10000 /* after the sockets are cut: for what is still suspended */

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
        l->worker_count++; /* also a worker of which only the daemon started must be stopped */
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

static void listener_free(struct listener *l)
{
    for (unsigned i = 0; i < l->worker_count; i++)
        worker_stop(&l->workers[i]);
    thread_stop(&l->deadline_thread); /* before what it looks at */
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
    int silent_s = 1;   /* a client that says nothing is accepted after about that */
    if (l->options.tls) /* see is_plain; without it, plain HTTP is closed in silence */
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
        worker_quiesce(&l->workers[i]);
    pthread_mutex_lock(&l->accept_lock);
    l->accepting = false;
    /* Clients that came before the stop are still served; LAST_MOST bounds a flood. Those in the
     * queue of a given socket are left to the next process. */
    for (int taken = 0; !l->given && taken < LAST_MOST; taken += ROUND)
        if (accept_for_workers(l, ROUND) < ROUND)
            break;
    /* Never shut down: a socket handed over goes on listening for its other holders. */
    close(l->listen_fd);
    l->listen_fd = -1;
    pthread_mutex_unlock(&l->accept_lock);
}

bool listener_refuses(const struct listener *l)
{
    int64_t since = atomic_load(&l->quiesced_ms);

    return since != 0 && clock_coarse_ms() - since >= STOP_IDLE_MS;
}

/* True where no request is active and nobody is about to resume one. */
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
        /* The library aborts the process if a connection is suspended. If code broke its promise to
         * resume one, the listener is rather never freed. */
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
