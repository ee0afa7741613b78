/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Remote sources: sitemaps that lie elsewhere. One thread polls the lists (upstream sitemap
 * indexes) of all remote sources, hands what they name to the catalogue as a scan, and polls the
 * sitemaps themselves, at a pace that each host bears, so that the index served has true dates and
 * lists nothing broken. Sites with `check` have what the API registered polled too.
 *
 * What is known is kept in the catalogue (db/check.h), so that a restart polls nothing before its
 * time. The thread never logs: it reports events. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/check.h"
#include "server/base/histogram.h"
#include "server/rules/source_settings.h"

/* Whether the child at this normalised URL is named to be split. */
bool remote_splits(const struct source_settings *settings, const char *loc);

/* What the node that polls of a shared catalogue leads (catalogue_leads). */
#define REMOTE_LEAD "remote"

/* A site whose name leads to this server, or whose sitemaps are asked for elsewhere. */
struct remote_site {
    const char *origin;
    const char *connect; /* "host:port" to connect to for it */
    bool public_check;   /* and look past it, as crawlers get its registered sitemaps */
};

/* The bounds of all polls, [fetch]. Strings borrowed; copied. */
struct remote_bounds {
    const char *agent; /* User-Agent, whole: "sitemapd/VERSION (+contact)" */
    uint32_t rate;     /* requests a second to one host */
    uint32_t per_host; /* at once */
    uint32_t min_interval_s, max_interval_s;
    /* NULL-terminated CIDRs beside the public internet, for sources that are `managed` and for
     * sites of the configuration; NULL */
    const char *const *allow_addresses;
    size_t site_count;
    const struct remote_site *sites; /* those with `connect` */
};

/* A sitemap's state, or whether its date is stale, is another now. Valid for the call. */
struct remote_moved {
    const struct check_record *record; /* as it is to be kept */
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
    struct child_store *store; /* of sources with `serve`; NULL: none serves. Borrowed */
    /* Something to log; on the thread. `level`: 0 error, 1 warning, 2 info. `source` may be NULL.
     */
    void (*event)(void *context, int level, const char *event, const char *source,
                  const char *detail);
    void *event_context;
    /* On the thread; must not wait. May be NULL. */
    void (*moved)(void *context, const struct remote_moved *moved);
    void *moved_context;
    /* Whether another node of a shared catalogue has a remote source of this name, which this one
     * has not: what is watched of it stays. On the thread; must not wait. */
    bool (*wanted_elsewhere)(struct catalogue *c, const char *source);
    struct trace *trace; /* that gets a span of each poll; borrowed. May be NULL */
};

/* What the settings show to be wrong, alone; `why` gets a sentence. Reads nothing. */
bool remote_settings_check(const struct source_settings *settings, char *why, size_t why_size);

/* Starts the thread, also without a source (sites with `check` may come). `why` gets a sentence. */
struct trace;
struct traceparent;
bool remote_start(const struct remote_options *options, struct remote **out, char *why,
                  size_t why_size);
/* Makes sources and bounds these while it runs: taken at once, a poll under way of a source that is
 * gone is thrown away. Entries of a source that is gone stay. False with `why`: out of memory, and
 * nothing has changed. */
bool remote_reconfigure(struct remote *r, const struct remote_bounds *bounds, size_t count,
                        const struct source_settings *settings, char *why, size_t why_size);
/* Ends the thread within a second whatever the network does; what was learnt is handed over first,
 * where the catalogue takes it. Who waits is answered. Takes NULL. */
void remote_end(struct remote *r);
/* The same, and frees all. Takes NULL. */
void remote_stop(struct remote *r);

/* ---- asking for a poll (any thread, never waits); `cause` (NULL: none) is the trace it belongs to
 * ------------------------------------------- */

/* Polls the list of a source now. `done` is called once, on the thread (or at once where there is
 * no such source, or it ends): `result` as of the scan, NULL where none was made: then `failure`
 * says why. `max_removed` and `dry_run` as in struct change: a dry run changes nothing, neither
 * what is known of the list nor when it is polled next. */
typedef void remote_scanned(void *context, const struct change_result *result, const char *failure);
void remote_scan(struct remote *r, const char *name, int64_t max_removed, bool dry_run,
                 const struct traceparent *cause, remote_scanned *done, void *context);
/* Polls one watched sitemap now, within its host's rate. `done` is called once, on the thread: the
 * row as it is then, which is kept in the catalogue by then; NULL with `failure` where it was not
 * polled (not watched, the host rests, it ends, busy). */
typedef void remote_polled(void *context, const struct check_record *record, const char *failure);
void remote_poll(struct remote *r, int64_t site_id, const char *loc,
                 const struct traceparent *cause, remote_polled *done, void *context);
/* Has a sitemap of a source with `serve` read whole where its copy is missing or old, within its
 * host's rate. `done` is called once, on the thread or at once, when that is over, however it went,
 * or COPY_WAIT_MS later. */
#define COPY_WAIT_MS 10000
void remote_fetch_copy(struct remote *r, int64_t site_id, const char *loc,
                       void (*done)(void *context), void *context);
/* Something was registered or a site's `check` is another: looks for what is to be watched within
 * seconds rather than a minute. */
void remote_wake(struct remote *r);

/* One poll of a list for the command line, without a thread: what `sitemapd scan` does. */
struct scan_once;
enum catalogue_status remote_scan_once(const struct source_settings *settings,
                                       const struct remote_bounds *bounds, struct scan_once *once);

/* ---- how it stands (from memory, any thread, never waits for I/O) -------------------------- */

struct remote_status {
    bool polling;                  /* its list is being read */
    bool failing;                  /* the last poll of it could not be taken */
    int64_t failed_at;             /* since when it fails; 0: it does not */
    int64_t polled_at;             /* the last poll, however it went; 0: never */
    int64_t next_poll_at;          /* Unix seconds */
    unsigned http_status;          /* of the last answer; 0: none */
    uint64_t polls;                /* since the start */
    uint64_t members;              /* that the list named last */
    uint64_t held;                 /* removals that the shrink guard holds back */
    uint64_t refused;              /* members of the list that are not taken */
    uint64_t states[CHECK_STATES]; /* of its children */
    char failure_code[40];         /* a stable word; "" */
    char failure[256];             /* a sentence; "" */
};
/* False where source not found. */
bool remote_status(struct remote *r, const char *name, struct remote_status *out);

enum remote_result {
    REMOTE_CHANGED,      /* 200 with another content */
    REMOTE_SAME,         /* 200 with the content that was known */
    REMOTE_NOT_MODIFIED, /* 304 */
    REMOTE_BAD,          /* an answer that is not a good sitemap or list */
    REMOTE_REFUSED,
    REMOTE_UNREACHABLE,
    REMOTE_RESULTS
};
/* "changed", "same", "not_modified", "bad", "refused", "unreachable". Static. */
const char *remote_result_word(enum remote_result result);

struct remote_counts {
    uint64_t states[CHECK_STATES];     /* of all children */
    uint64_t registered[CHECK_STATES]; /* of them those that the API registered */
    uint64_t results[REMOTE_RESULTS];
    uint64_t bytes;                      /* of bodies, as sent */
    struct histogram_values duration_ns; /* of polls, by histogram_times */
    uint32_t hosts_resting;
    double pressure;     /* the highest of all hosts: what is asked of it to what it bears */
    uint32_t lateness_s; /* how long the child that waits longest is due */
};
void remote_counts_get(struct remote *r, struct remote_counts *out);
