/* A listener: an acceptor's thread, workers, each a daemon of libmicrohttpd with a thread and
 * connections of its own, and the thread of the deadlines (connection.c).
 *
 *   kernel's queue --accept_round--> worker with most room --MHD_add_connection-->
 * connection_notify
 *
 * A start goes: options copied, socket, deadlines, workers, acceptor. A stop: the acceptor takes in
 * who has come (listener_quiesce), requests that are open are answered (wait_quiet), what is left
 * is cut, and daemons, deadlines and memory go in that order (listener_free). */
#include "server/http/listener.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/crypto/tls.h"
#include "server/http/headers.h"
#include "server/http/internal.h"

/* The library forgets a connection a little after it told us of its end: until then it must not
 * turn away whom the acceptor gives the place to. */
#define LIMIT_SLACK 16u

/* Path and query stay as they came. */
static size_t unescape_nothing(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls;
    (void)mhd;
    return strlen(text);
}

/* Both are understood by who knows the newer, as the same. */
#if MHD_VERSION >= 0x00097701
#define STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL
#else
#define STRICTNESS MHD_OPTION_STRICT_FOR_CLIENT
#endif

/* The daemon of `w->listener`'s options; false with errno. */
static bool worker_start(struct worker *w)
{
    struct listener *l = w->listener;
    /* One daemon for each thread: the library's own pool needs a listening socket. */
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG;
    size_t memory = (size_t)l->options.max_header_bytes + POOL_BESIDE_HEADER;

    struct MHD_OptionItem more[4];
    unsigned count = 0;

    if (l->options.tls) {
        flags |= MHD_USE_TLS;
        more[count++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_CERT_CALLBACK, 0,
            (void *)(intptr_t)tls_certificate_callback(l->options.tls_side)};
        more[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0,
                                                (void *)(intptr_t)TLS_PRIORITIES};
    }
    /* Not MHD_OPTION_STRICT_FOR_CLIENT in 0.9.75: all it adds there is a check of Host and of
     * spaces in the target, answered with a header sent twice or not at all. headers.c does both.
     */
    if (parser_is_strict())
        more[count++] = (struct MHD_OptionItem){STRICTNESS, 1, NULL};
    more[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    w->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, exchange_handle, l, MHD_OPTION_EXTERNAL_LOGGER, exchange_heed_log,
        NULL, MHD_OPTION_URI_LOG_CALLBACK, exchange_target, l, MHD_OPTION_UNESCAPE_CALLBACK,
        unescape_nothing, NULL, MHD_OPTION_NOTIFY_COMPLETED, exchange_completed, l,
        MHD_OPTION_NOTIFY_CONNECTION, connection_notify, w, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)w->limit + LIMIT_SLACK, MHD_OPTION_CONNECTION_MEMORY_LIMIT, memory,
        MHD_OPTION_ARRAY, more, MHD_OPTION_END);
    return w->daemon != NULL;
}

/* Cuts what is left of its connections; none may be suspended. */
static void worker_stop(struct worker *w)
{
    if (w->daemon != NULL)
        MHD_stop_daemon(w->daemon);
    w->daemon = NULL;
}

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
    int64_t now = clock_coarse_ms();

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
    w->handed_ms = clock_coarse_ms();
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

/* A TLS listener gets a connection once its first bytes are there (TCP_DEFER_ACCEPT): a handshake
 * does not begin with a letter, a request of plain HTTP does. */
static bool turn_away_plain(struct listener *l, int fd, const struct sockaddr_storage *peer)
{
    char first, rest[4096], text[INET6_ADDRSTRLEN];

    if (!l->options.tls || recv(fd, &first, 1, MSG_PEEK) != 1 || first < 'A' || first > 'Z')
        return false;
    /* What is unread when a socket is closed takes the answer with it. */
    for (int i = 0; i < 4 && recv(fd, rest, sizeof rest, 0) == sizeof rest; i++)
        continue;
    listener_say(l, fd, 400, "plain-http", "this port speaks https: begin the URL with https://");
    address_peer((const struct sockaddr *)peer, text);
    if (l->options.spoke_plain != NULL)
        l->options.spoke_plain(l->options.context, text);
    return true;
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
    int64_t now = clock_coarse_ms();

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
        if (turn_away(l, &peer) || turn_away_plain(l, fd, &peer))
            close(fd);
        else
            hand_over(w, fd, &peer, size);
        keep_reserve(l);
    }
    return 0;
}

static void acceptor_run(void *context)
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
}

/* Takes connections in and gives them to the workers; false with errno. */
static bool acceptor_start(struct listener *l)
{
    l->accept_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return l->accept_wake >= 0 && thread_start(&l->accept_thread, "accept", acceptor_run, l);
}

/* Takes who has come already, then closes the socket. Takes one that was never started. */
static void acceptor_end(struct listener *l)
{
    if (l->accept_wake >= 0) {
        eventfd_write(l->accept_wake, 1);
        thread_join(&l->accept_thread);
        close(l->accept_wake);
    }
    /* Never shut down: a socket handed over goes on listening for its other holders. */
    if (l->listen_fd >= 0)
        close(l->listen_fd);
    l->accept_wake = l->listen_fd = -1;
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
        if (!worker_start(w))
            return false;
        l->worker_count++;
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
    acceptor_end(l);
    for (unsigned i = 0; i < l->worker_count; i++)
        worker_stop(&l->workers[i]);
    free(l->workers);
    thread_stop(&l->deadline_thread);
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
    l->listen_fd = l->accept_wake = -1;
    atomic_init(&l->quiescing, false);
    atomic_init(&l->quiesced_ms, 0);
    atomic_init(&l->waiting, 0);
    atomic_init(&l->resuming, 0);
    atomic_init(&l->aborted, 0);
    atomic_init(&l->accepted, 0);
    atomic_init(&l->failed, 0);
    atomic_init(&l->full, 0);
    pthread_mutex_init(&l->connections_lock, NULL);
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

/* Who answers and who accepts: these threads inherit short slices, where they are wanted. */
static bool start_answering(struct listener *l)
{
    int silent_s = 1;   /* a client that says nothing is accepted after about that */
    if (l->options.tls) /* see turn_away_plain; without it, plain HTTP is closed in silence */
        setsockopt(l->listen_fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silent_s, sizeof silent_s);
    bool shortened = l->options.short_slices && slice_shorten();
    bool started = start_workers(l) && acceptor_start(l);
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
    acceptor_end(l); /* refuses from here on */
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
        bool none = connections_end_idle(l); /* first: no request begins behind its back */
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
        /* The library aborts the process where a connection is suspended: code that breaks the
         * promise to resume it gets a listener that is never freed rather than that. */
        if (!wait_quiet(l, STOP_GRACE_MS) && atomic_load(&l->waiting) > 0)
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
    return clock_coarse_ms() - atomic_load(&l->scanned_ms);
}

void listener_load(const struct listener *l, uint32_t *connections, uint32_t *suspended)
{
    struct listener *unconst = (struct listener *)l;

    pthread_mutex_lock(&unconst->connections_lock);
    *connections = l->connection_count;
    pthread_mutex_unlock(&unconst->connections_lock);
    *suspended = atomic_load(&l->waiting);
}
