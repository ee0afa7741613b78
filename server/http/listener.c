#include "server/http/listener.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "server/http/internal.h"
#include "server/http/slice.h"

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
            snprintf(why, why_size, "trusted proxy %s: neither an address nor a range",
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
    deadline_end(l);
    pthread_cond_destroy(&l->deadline_wake);
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
    pthread_condattr_t attributes;

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
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&l->deadline_wake, &attributes);
    pthread_condattr_destroy(&attributes);
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
    atomic_store(&l->quiesced_ms, deadline_now_ms());
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
    int64_t now = deadline_now_ms(), end = now + timeout_ms;
    int64_t idle_end = atomic_load(&l->quiesced_ms) + STOP_IDLE_MS;

    for (;; now = deadline_now_ms()) {
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
        /* The library aborts the process where a connection is suspended: whoever breaks the
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
    return deadline_now_ms() - atomic_load(&l->scanned_ms);
}

void listener_load(const struct listener *l, uint32_t *connections, uint32_t *suspended)
{
    struct listener *unconst = (struct listener *)l;

    pthread_mutex_lock(&unconst->connections_lock);
    *connections = l->connection_count;
    pthread_mutex_unlock(&unconst->connections_lock);
    *suspended = atomic_load(&l->waiting);
}
