/* What the listeners count. */
#include <stdio.h>

#include "server/http/listener.h"
#include "server/http/page_readers.h"
#include "server/routes/exposition.h"
#include "server/routes/metrics_parts.h"

/* A listener that is up, with what it counts: read once, so that the families agree. */
struct one {
    const char *name;
    const struct listener *listener;
    struct listener_totals totals;
    uint32_t connections, suspended;
    uint64_t over_budget; /* connections ended for the memory of the pages that they read */
};

struct all {
    struct str *out;
    size_t count;
    struct one each[2];
    const char *at; /* the name of the one that a callback is called for */
};

static void collect(struct all *all, const char *name, const struct listener *l)
{
    struct one *one = &all->each[all->count];

    if (l == NULL)
        return;
    all->count++;
    one->name = name;
    one->listener = l;
    listener_totals(l, &one->totals);
    listener_load(l, &one->connections, &one->suspended);
}

static void append_requests(void *context, const char *route, unsigned status, uint64_t count)
{
    const struct all *all = context;
    char text[12];

    snprintf(text, sizeof text, "%u", status);
    metric_sample(all->out, "sitemapd_http_requests_total",
                  LABELS("listener", all->at, "route", route, "status", text), count);
}

static void append_times(void *context, const char *route, const struct histogram_values *took)
{
    const struct all *all = context;

    metric_histogram(all->out, "sitemapd_http_request_duration_seconds",
                     LABELS("listener", all->at, "route", route), &histogram_times, took);
}

static void append_by_route(struct all *all)
{
    metric_family(all->out, "sitemapd_http_requests_total", "counter",
                  "Requests answered, by listener, route, status.");
    for (size_t i = 0; i < all->count; i++) {
        all->at = all->each[i].name;
        listener_counts(all->each[i].listener, append_requests, all);
    }
    metric_family(all->out, "sitemapd_http_request_duration_seconds", "histogram",
                  "From the end of a request's header until its reply was handed to the kernel.");
    for (size_t i = 0; i < all->count; i++) {
        all->at = all->each[i].name;
        listener_times(all->each[i].listener, append_times, all);
    }
}

static void append_by_encoding(const struct all *all)
{
    static const char *const names[COUNTS_ENCODINGS] = {"none", "identity", "gzip"};

    metric_family(all->out, "sitemapd_http_responses_total", "counter",
                  "Replies by the content coding of their body; none: without a body.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t e = 0; e < COUNTS_ENCODINGS; e++)
            metric_sample(all->out, "sitemapd_http_responses_total",
                          LABELS("listener", all->each[i].name, "encoding", names[e]),
                          all->each[i].totals.sums.answers[e]);
    metric_family(all->out, "sitemapd_http_response_bytes_total", "counter",
                  "Bytes of bodies in replies, as encoded, without headers.");
    for (size_t i = 0; i < all->count; i++)
        for (size_t e = COUNTS_NONE + 1; e < COUNTS_ENCODINGS; e++)
            metric_sample(all->out, "sitemapd_http_response_bytes_total",
                          LABELS("listener", all->each[i].name, "encoding", names[e]),
                          all->each[i].totals.sums.bytes[e]);
}

/* One value of each listener. */
static void family(const struct all *all, const char *name, const char *type, const char *help,
                   uint64_t (*value)(const struct one *one))
{
    metric_family(all->out, name, type, help);
    for (size_t i = 0; i < all->count; i++)
        metric_sample(all->out, name, LABELS("listener", all->each[i].name), value(&all->each[i]));
}

static uint64_t received_of(const struct one *one)
{
    return one->totals.sums.received;
}

static uint64_t aborted_of(const struct one *one)
{
    return one->totals.aborted;
}

static uint64_t connections_of(const struct one *one)
{
    return one->connections;
}

static uint64_t max_connections_of(const struct one *one)
{
    return one->totals.max_connections;
}

static uint64_t suspended_of(const struct one *one)
{
    return one->suspended;
}

static uint64_t max_suspended_of(const struct one *one)
{
    return one->totals.max_suspended;
}

static uint64_t accepted_of(const struct one *one)
{
    return one->totals.accepted;
}

static uint64_t failed_of(const struct one *one)
{
    return one->totals.failed;
}

static uint64_t full_of(const struct one *one)
{
    return one->totals.full;
}

static void append_cut(const struct all *all)
{
    metric_family(all->out, "sitemapd_http_connections_cut_total", "counter",
                  "Connections that the server ended, by reason.");
    for (size_t i = 0; i < all->count; i++) {
        const struct listener_totals *totals = &all->each[i].totals;
        const struct {
            const char *reason;
            uint64_t count;
        } cut[] = {
            {"address-limit", totals->over_limit},
            {"make-room", totals->evicted},
            {"header-timeout", totals->late[LISTENER_WAIT_HEADER]},
            {"body-timeout", totals->late[LISTENER_WAIT_BODY]},
            {"reply-timeout", totals->late[LISTENER_WAIT_REPLY]},
            {"snapshot-budget", all->each[i].over_budget},
        };
        for (size_t r = 0; r < sizeof cut / sizeof cut[0]; r++)
            metric_sample(all->out, "sitemapd_http_connections_cut_total",
                          LABELS("listener", all->each[i].name, "reason", cut[r].reason),
                          cut[r].count);
    }
}

void metrics_append_listeners(struct str *out, const struct app_context *app)
{
    struct all all = {.out = out};

    collect(&all, "public", app->public_listener);
    if (all.count > 0 && app->page_readers != NULL)
        all.each[0].over_budget = page_readers_count_cut(app->page_readers);
    collect(&all, "admin", app->admin_listener);
    append_by_route(&all);
    append_by_encoding(&all);
    family(&all, "sitemapd_http_request_body_bytes_total", "counter",
           "Bytes of bodies in answered requests.", received_of);
    family(&all, "sitemapd_http_requests_aborted_total", "counter",
           "Requests that ended before their reply was out: the client left or was cut.",
           aborted_of);
    family(&all, "sitemapd_http_connections", "gauge", "Connections now open.", connections_of);
    family(&all, "sitemapd_http_connections_limit", "gauge", "Connections that may be open.",
           max_connections_of);
    family(&all, "sitemapd_http_suspended", "gauge", "Requests now waiting for an answer.",
           suspended_of);
    family(&all, "sitemapd_http_suspended_limit", "gauge", "Requests that may wait.",
           max_suspended_of);
    family(&all, "sitemapd_http_connections_accepted_total", "counter", "Connections accepted.",
           accepted_of);
    family(&all, "sitemapd_http_accept_failures_total", "counter",
           "Connections that could not be taken in, for want of descriptors or memory.", failed_of);
    family(&all, "sitemapd_http_full_total", "counter",
           "Times that who came had to wait, since every place was taken.", full_of);
    append_cut(&all);
}
