/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Remote sources. One thread polls the lists (upstream sitemap indexes) of all remote sources and
 * submits their members to the catalogue as a scan. It also polls the sitemaps themselves, at the
 * pace that each host allows, so that the served index has true dates and lists nothing broken. For
 * sites with `check` it also polls the sitemaps that the API registered.
 *
 * The state is kept in the catalogue (db/check.h), so that a restart polls nothing too early. The
 * thread never logs: it reports events. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/check.h"
#include "server/base/histogram.h"
#include "server/rules/source_settings.h"

/* Whether `split` names the sitemap at this normalised URL. */
bool remote_splits(const struct source_settings *settings, const char *loc);

/* The lease of the node that polls in a shared catalogue (catalogue_leads). */
#define REMOTE_LEAD "remote"

/* A site whose sitemaps are requested from another address than its host name's. */
struct remote_site {
    const char *origin;
    const char *connect; /* "host:port" to connect to for it */
    /* also request registered sitemaps at the public address, as crawlers do */
    bool public_check;
};

/* The limits of all polls, [fetch]. Strings are borrowed; the callee copies them. */
struct remote_bounds {
    const char *agent; /* User-Agent, whole: "sitemapd/VERSION (+contact)" */
    uint32_t rate;     /* requests a second to one host */
    uint32_t per_host; /* concurrent requests to one host */
    uint32_t min_interval_s, max_interval_s;
    /* NULL-terminated CIDRs that are allowed besides public addresses, for `managed` sources and
     * sites of the configuration; may be NULL */
    const char *const *allow_addresses;
    size_t site_count;
    const struct remote_site *sites; /* the sites with `connect` */
};

/* A change of a sitemap's state, or of whether its date is stale. Valid for the call. */
struct remote_moved {
    const struct check_record *record; /* the new record */
    const char *site;                  /* its origin */
    enum check_state before;
    bool was_stale; /* CHECK_DATE_STALE, before */
};

struct child_store;
struct remote;

struct remote_options {
    struct catalogue *catalogue;
    struct remote_bounds bounds;
    size_t count;
    const struct source_settings *settings;
    struct child_store *store; /* for sources with `serve`; NULL: none. Borrowed */
    /* Something to log; on the thread. `level`: 0 error, 1 warning, 2 info. `source` may be NULL.
     */
    void (*event)(void *context, int level, const char *event, const char *source,
                  const char *detail);
    void *event_context;
    /* On the thread; must not wait. May be NULL. */
    void (*moved)(void *context, const struct remote_moved *moved);
    void *moved_context;
    /* Whether another node of a shared catalogue has a remote source of this name that this node
     * does not have; its sitemaps stay watched. On the thread; must not wait. */
    bool (*wanted_elsewhere)(struct catalogue *c, const char *source);
    struct trace *trace; /* gets a span for each poll; borrowed. May be NULL */
};

/* Validates the settings without any I/O. False: `why` gets a sentence. */
bool remote_settings_check(const struct source_settings *settings, char *why, size_t why_size);

/* Starts the thread, also without a source (sites with `check` may come). `why` gets a sentence. */
struct trace;
struct traceparent;
bool remote_start(const struct remote_options *options, struct remote **out, char *why,
                  size_t why_size);
/* Replaces sources and limits at runtime, at once. Polls under way of a removed source are
 * discarded; its entries stay. False with `why`: out of memory, and nothing has changed. */
bool remote_reconfigure(struct remote *r, const struct remote_bounds *bounds, size_t count,
                        const struct source_settings *settings, char *why, size_t why_size);
/* Ends the thread within a second, whatever the network does; writes collected results first if the
 * catalogue accepts them. Answers waiting callers. Accepts NULL. */
void remote_end(struct remote *r);
/* The same, and frees all. Accepts NULL. */
void remote_stop(struct remote *r);

/* ---- polls on request (any thread, never waits); `cause` (NULL: none) is the trace of the request
 * ------------------------------------------- */

/* Polls the list of a source now. `done` is called once, on the thread (or at once if there is no
 * such source, or the thread ends): `result` is that of the scan, or NULL with the reason in
 * `failure`. `max_removed` and `dry_run` as in struct change. A dry run changes nothing, neither
 * the state of the list nor its next poll. */
typedef void remote_scanned(void *context, const struct change_result *result, const char *failure);
void remote_scan(struct remote *r, const char *name, int64_t max_removed, bool dry_run,
                 const struct traceparent *cause, remote_scanned *done, void *context);
/* Polls one watched sitemap now, within its host's rate. `done` is called once, on the thread:
 * `record` is its new row, already in the catalogue, or NULL with the reason in `failure` if it was
 * not polled (not watched, the host rests, the thread ends, busy). */
typedef void remote_polled(void *context, const struct check_record *record, const char *failure);
void remote_poll(struct remote *r, int64_t site_id, const char *loc,
                 const struct traceparent *cause, remote_polled *done, void *context);
/* Polls a sitemap of a source with `serve` completely if its copy is missing or old, within its
 * host's rate. `done` is called once, on the thread or at once: when that is over, successful or
 * not, or after COPY_WAIT_MS. */
#define COPY_WAIT_MS 10000
void remote_fetch_copy(struct remote *r, int64_t site_id, const char *loc,
                       void (*done)(void *context), void *context);
/* Something was registered, or a site's `check` changed: looks for sitemaps to watch within
 * seconds. */
void remote_wake(struct remote *r);

/* One poll of a list on the caller's thread, for `sitemapd scan`. */
struct scan_once;
enum catalogue_status remote_scan_once(const struct source_settings *settings,
                                       const struct remote_bounds *bounds, struct scan_once *once);

/* ---- status (from memory, any thread, never waits for I/O) -------------------------- */

struct remote_status {
    bool polling;                  /* its list is being polled */
    bool failing;                  /* the last poll of it failed */
    int64_t failed_at;             /* since when it fails; 0: it works */
    int64_t polled_at;             /* the last poll, successful or not; 0: never */
    int64_t next_poll_at;          /* Unix seconds */
    unsigned http_status;          /* of the last response; 0: none */
    uint64_t polls;                /* since the start */
    uint64_t members;              /* of the list at the last poll */
    uint64_t held;                 /* removals that the shrink guard holds back */
    uint64_t refused;              /* members of the list that were refused */
    uint64_t states[CHECK_STATES]; /* of its children */
    char failure_code[40];         /* a stable word; "" */
    char failure[256];             /* a sentence; "" */
};
/* False: source not found. */
bool remote_status(struct remote *r, const char *name, struct remote_status *out);

enum remote_result {
    REMOTE_CHANGED,      /* 200 with changed content */
    REMOTE_SAME,         /* 200 with the same content */
    REMOTE_NOT_MODIFIED, /* 304 */
    REMOTE_BAD,          /* the response is not a good sitemap or list */
    REMOTE_REFUSED,
    REMOTE_UNREACHABLE,
    REMOTE_RESULTS
};
/* "changed", "same", "not_modified", "bad", "refused", "unreachable". Static. */
const char *remote_result_word(enum remote_result result);

struct remote_counts {
    uint64_t states[CHECK_STATES];     /* of all children */
    uint64_t registered[CHECK_STATES]; /* of those that the API registered */
    uint64_t results[REMOTE_RESULTS];
    uint64_t bytes;                      /* of bodies, as sent */
    struct histogram_values duration_ns; /* of polls, by histogram_times */
    uint32_t hosts_resting;
    double pressure;     /* the highest host_pressure of all hosts */
    uint32_t lateness_s; /* how long the most overdue sitemap has been due */
};
void remote_counts_get(struct remote *r, struct remote_counts *out);
/* Calls `each` for each site that has or had registered sitemaps in bad states, with their number.
 * It must not wait or call a function of this file. */
void remote_bad_sites(struct remote *r, check_each_site *each, void *context);
