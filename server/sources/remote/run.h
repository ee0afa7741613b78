/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The state of the polling thread, shared by the files of server/sources/remote/. Internal to it.
 *
 * Invariants:
 * 1. All members that `lock` does not guard are the thread's own.
 * 2. A watched sitemap is in exactly one place: in its host's heap, in a poll under way, or in the
 *    change under way (its row may be older in the catalogue until that has landed; it is not
 *    polled before).
 * 3. The catalogue has one change at a time; results of polls are collected meanwhile, and no poll
 *    begins without room to collect its result. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "server/base/map.h"
#include "server/base/site_table.h"
#include "server/base/thread.h"
#include "server/client/loop.h"
#include "server/input/sitemap_file.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/remote.h"
#include "server/sources/remote/upstream.h"
#include "server/sources/share.h"
#include "server/trace/trace.h"

#define RUN_TRANSFERS 32u /* polls at once */
/* Polls of lists at once: slow hosts must leave room for sitemaps. */
#define RUN_SHARE (RUN_TRANSFERS / 2)
/* Limits of one poll. */
#define POLL_TIMEOUT_MS      120000u
#define POLL_STALL_S         30u
#define POLL_STALL_BYTES     100u
#define POLL_BODY_MAX_BYTES  (51u << 20) /* as sent */
#define POLL_OTHER_MAX_BYTES 4096u       /* of a response that is not 2xx */

/* A copy of the settings, with references: of the thread, and of polls under way. */
struct remote_plan {
    unsigned held;
    struct remote_bounds bounds;
    struct remote_site *sites;  /* owned; used by `bounds` */
    struct address_guard guard; /* see remote_guard */
    size_t count;
    struct source_settings *settings;
};

struct remote_ask {
    struct remote_ask *next;
    char *name; /* of a source; NULL: the request is for a sitemap */
    int64_t max_removed;
    bool dry_run;
    struct traceparent cause;
    remote_scanned *scanned;
    int64_t site_id;
    char *loc;
    int64_t check_id; /* once it was polled: the row that is the answer */
    remote_polled *polled;
    void (*copied)(void *context); /* instead of `polled`: only a copy is requested, */
    int64_t until_ms;              /* and waited for until then (monotonic) */
    void *context;
};

/* The sitemaps on a host of one site (0: of lists for several sites). */
struct host_part {
    struct site_row row;
    uint64_t turn; /* its last turn on the host */
    struct due_heap heap;
    struct host_pace pace; /* by responses to this site alone: its owner chooses URLs */
    double spread_at;      /* Unix seconds: for the next first poll */
    size_t listed_in;      /* the last round of begin_lists with a list of the site on the host */
};

/* A host. Several sites may have sitemaps on one, such as a CDN: they take turns, so that a site
 * with very many sitemaps neither delays the polls of others nor stretches their intervals. */
struct remote_host {
    char *origin;
    struct host_pace pace;   /* of all parts together: `rate` and `per_host` alone */
    struct site_table parts; /* struct host_part */
    uint64_t turns;          /* of its parts */
    size_t sweep_at;         /* number of parts at which those of removed sites are forgotten */
    bool has_list;           /* a source has its list here: keep its state */
    unsigned apart; /* concurrent polls that do not count for per_host: splits may take long */
};

struct poll;

/* What the log, metrics and notifications show of a result once it is stored. */
struct check_report {
    struct check_report *next;
    struct check_record record;
    struct record_list texts; /* of the record, and of these */
    const char *site;         /* its origin */
    const char *split;        /* what was split; NULL: nothing new */
    enum check_state before;
    bool was_stale;
};

struct remote_source {
    const struct source_settings *settings; /* of the plan */
    struct url upstream;
    int64_t list_id; /* of its row; 0: not made yet */
    int64_t site_id; /* of its index; 0: not made yet, or it lists in several sites */
    int64_t next_at, answered, full_at, good_at, since;
    int64_t full_from;  /* full_at of its row when the poll began */
    uint64_t digest[2]; /* of the host map, and of the settings to read the list with */
    int64_t mapped_at;  /* Unix seconds: when the map changed; 0: never, INT64_MAX: not known yet */
    uint32_t failures;
    char *etag, *modified, *problem; /* owned; NULL: none */
    bool claims_are_now;
    int64_t public_at;       /* when to check some sitemaps at the public address, */
    unsigned public_left;    /* and how many more */
    bool fresh;              /* its sitemaps are not in memory yet */
    bool whole;              /* the next poll is unconditional */
    uint64_t registry_seen;  /* the revision for which what was rejected is tried again; 0: none */
    bool frozen;             /* a freeze held some of what the last one found */
    bool news;               /* a result of its sitemaps requires a poll of the list: */
    uint64_t news_in;        /* after this batch is written */
    int64_t split_removed;   /* page URLs that each of its splits may remove, */
    bool *split_let;         /* for those where this is set; owned; NULL: none */
    struct remote_ask *asks; /* requests of scans, for the next poll */
    struct remote_ask *dry_asks;
    struct poll *polling;
    struct remote_status status; /* only the thread writes it; others read it under `lock` */
};

/* A submitted change. Its callback may come long after the thread has ended. */
struct flight {
    pthread_mutex_t lock;
    bool landed, orphan;
    enum catalogue_status status;
    uint64_t revision;       /* of the change; 0: none */
    struct fetch_loop *loop; /* to wake; NULL: no longer */
};

/* A part of a pass that looks for sitemaps to watch: that of a site (0: of lists for several
 * sites), or, by this number, what is no longer wanted of all. */
#define LOOK_LEFT_PART (-1)
struct look_part {
    struct site_row row;
    uint64_t took_ns; /* of this pass */
    int64_t rests_ms; /* passes that begin before then skip it */
};

/* A site whose polls took long: they pause until then. */
struct site_rest {
    struct site_row row;
    uint64_t until_ns;
};

/* Registered sitemaps of a site in bad states. A site that had some keeps its row. */
struct site_bad {
    struct site_row row;
    uint64_t bad;
};

struct remote {
    struct catalogue *catalogue;
    struct remote_options options;
    struct thread thread;
    atomic_bool look_soon;

    pthread_mutex_t lock;
    struct fetch_loop *loop;    /* to wake it; NULL: not running */
    struct remote_plan *wanted; /* to be applied; NULL: none */
    struct remote_ask *asks, **asks_end;
    struct remote_counts counts; /* except durations */
    struct site_table bad;       /* struct site_bad */
    struct histogram durations;
    size_t status_count;
    struct remote_source *sources; /* replaced under the lock */

    /* Only for the thread. */
    struct remote_plan *plan;
    struct registry *registry; /* as of the last view */
    struct remote_host **hosts;
    size_t host_count, host_capacity, turn, list_turn;
    size_t sweep_at; /* number of hosts at which idle ones are forgotten */
    struct map host_map;
    struct poll *polls; /* under way */
    size_t polling;
    struct site_table rests;   /* struct site_rest */
    struct split_fetch *split; /* under way; NULL: none */
    struct list_scan *scans;   /* the first is under way; NULL: none */
    struct shares shares;      /* of the place for a split */
    uint64_t states[CHECK_STATES];
    int64_t max_id;       /* of the rows in memory */
    bool leads, followed; /* this node polls by schedule; `followed`: another node did until now */
    bool load;            /* load everything again */
    int64_t count_at_ms;  /* on a node that does not poll: the next count */
    bool logged_not_kept; /* reported that results cannot be written; nothing was written since */
    bool fresh;           /* there are sources that are not in memory yet */
    int64_t fresh_at_ms;  /* not before this time */
    int64_t load_at_ms;   /* not before */
    int64_t clock_offset; /* Unix ms minus monotonic ms; 0: not known yet */
    uint32_t chance;

    /* Collected results, and the submitted change. */
    struct check_write batch[CHECK_WRITES_MAX];
    size_t batch_count;
    uint64_t batch_number;
    int64_t batch_at_ms; /* of the first */
    bool batch_is_news;  /* some state, content or date has changed */
    struct record_list texts;
    struct remote_ask *waiting, *landing; /* requested polls in the batch, in the flight */
    struct check_report *reports, *landing_reports; /* the same */
    unsigned failed_writes;                         /* in a row */
    struct flight *flight;
    int64_t flying[CHECK_WRITES_MAX]; /* the rows in the flight */
    size_t flying_count;

    /* The pass that looks for sitemaps to watch. */
    struct {
        enum look_phase { LOOK_REST, LOOK_SOURCES, LOOK_SITES, LOOK_LEFT } phase;
        size_t at;
        char after[LOC_MAX_CHARS + 1];
        int64_t after_id;
        int64_t began_ms, next_ms, took_ms;
        int64_t rests_ms; /* pause until then, even if something changed */
        int64_t due_ms;   /* when a part that the pass skipped is to be looked at; 0: none */
        uint64_t revision;
        uint64_t news; /* catalogue_news before the last look at the revision */
        bool removed;
        struct site_table parts; /* struct look_part: of the last pass, and those that rest */
    } look;
};

struct poll {
    struct poll *next;
    struct remote *remote;
    struct remote_source *source; /* NULL: a registered sitemap */
    struct remote_host *host;
    struct fetch_transfer *transfer;
    struct fetch_request request;
    struct remote_plan *plan; /* a reference; owns the texts of the request */
    struct url url;           /* of the request */
    struct url served_at;     /* the same, after the host map */
    unsigned hops;
    bool conditional, list, decided;
    bool headed; /* the head was passed to its reader */
    int64_t began_ms, now;
    struct registry *registry; /* a reference */
    const struct registry_site *site;
    char headers[1024];
    struct trace_span span;
    struct trace_end end; /* for its span */
    /* For a list. */
    struct upstream *upstream;
    int64_t large_at_ms, waits_since_ms; /* see poll.c; 0: not large, never waited */
    bool dry_run;                        /* only dry runs requested it: it changes nothing */
    bool scans;                          /* its scan waits or is under way */
    uint32_t failures;                   /* of its source, before */
    struct remote_ask *asks, *dry_asks;  /* the requests that it answers */
    /* For a sitemap. */
    struct check_record record;
    struct record_list texts; /* of the record, and of these */
    const char *claim, *served;
    bool entry_read; /* the members below are set */
    bool has_digest;
    bool held; /* its date must not change: a digest, frozen, or another owner's entry */
    int64_t entry_changed_at;
    struct sitemap_verifier *verifier;
    const char **hosts; /* owned array; texts of the registry */
    struct remote_ask *ask;
    /* For one that may be split. */
    bool splits;
    struct url split_url;
    struct split_end *ended; /* owned; NULL: no result yet */
    char detail[512];        /* of the result, if it is longer than the verdict's */
    /* owned; NULL: its source does not serve, or nothing was received yet */
    struct child_copy *copy;
    bool copy_begun; /* also if that failed */
    /* The check at the public address. Owned; NULL: none is under way. */
    struct public_look *look;
};

/* ---- plan.c and start.c */
__attribute__((format(printf, 5, 6))) void remote_report(struct remote *r, int level,
                                                         const char *event, const char *source,
                                                         const char *format, ...);
struct remote_plan *remote_plan_new(const struct remote_bounds *bounds, size_t count,
                                    const struct source_settings *settings, char *why,
                                    size_t why_size);
void remote_plan_free(struct remote_plan *plan); /* accepts NULL; releases it */
bool remote_plan_equal(const struct remote_plan *a, const struct remote_plan *b);
/* Compares everything except the sources. */
bool remote_plan_same_bounds(const struct remote_plan *a, const struct remote_plan *b);
/* The addresses that may be requested for a source (NULL: an entry of a site with `check`) and its
 * site (NULL: none, or any). The additional addresses of the plan count only if the configuration
 * names the source or the site, and thereby the hosts. Hosts that tokens may name could resolve to
 * any address, so only public ones are allowed. Borrowed from the plan. */
const struct address_guard *remote_guard(const struct remote_plan *plan,
                                         const struct source_settings *source,
                                         const struct registry_site *site);
/* Whether some of what the source lists may be frozen: a list of the site that it is for, or, where
 * that may be any, of any. */
bool remote_is_frozen(const struct registry *registry, const struct source_settings *source);
/* The site of the source's index; NULL: it may list in several. */
const struct registry_site *remote_site_of(const struct registry *registry,
                                           const struct source_settings *source);
/* Whether to follow a redirect to this URL: only to a host of the upstream (NULL: none), or of the
 * site of the polled sitemap (`site`; NULL: the list of `source` is polled, and the site is that of
 * the source). */
bool remote_may_request(const struct registry *registry, const struct registry_site *site,
                        const struct source_settings *source, const struct url *upstream,
                        const struct url *to);
void remote_request_free(struct remote_ask *ask);
/* Answers a request with a failure and frees it. */
void remote_request_fail(struct remote_ask *ask, const char *failure);
/* Answers a requested poll with its row (NULL: `failure` has the reason) and frees it. */
void remote_request_answer(struct remote_ask *ask, const struct check_record *record,
                           const char *failure);
/* The thread's function. */
void remote_run(void *remote);

/* ---- run.c */
struct remote_host *run_host(struct remote *r, const struct url *url); /* NULL: no memory */
/* Forgets hosts without polls, and parts of removed sites, now and then: a list that names other
 * hosts in each response would let them grow without end. Call it when no pointer to a host or part
 * is held. */
void run_sweep_hosts(struct remote *r);
struct remote_source *run_source(struct remote *r, const char *name); /* NULL: none */
/* The URL to request for the sitemap at a loc; `source` may be NULL. False: it is not a URL. */
bool run_request_url(const struct remote_source *source, const char *loc, struct url *out);
/* Unix time by the catalogue's clock. */
int64_t run_now(const struct remote *r);
uint32_t run_chance(struct remote *r);
/* The part of the site of the host, created if necessary. NULL: out of memory. */
struct host_part *run_part(struct remote_host *host, int64_t site_id);
/* Adds a sitemap of the site to its host's heap. */
void run_enqueue(struct remote *r, struct remote_host *host, int64_t site_id, struct due due);
/* due_move in all heaps. */
void run_move_due(struct remote *r, const int64_t *ids, size_t count, uint32_t at);
/* The factor by which the intervals of the site's sitemaps on the host are stretched, at least 1.
 */
double run_stretch(const struct remote *r, const struct remote_host *host, int64_t site_id);
struct interval_bounds run_bounds(const struct remote *r);
/* Adds a row to the batch and copies its texts. False: out of memory, or no room. */
bool run_write(struct remote *r, const struct check_write *write);
/* Submits the batch now, unless a change is under way. */
void run_flush(struct remote *r);

/* ---- poll.c: a poll's life */
struct poll *poll_new(struct remote *r, struct remote_host *host); /* NULL: no memory */
void poll_free(struct poll *p);
/* Begins its span; call it before poll_headers. `cause` (may be NULL): the request for the poll. */
void poll_begin_span(struct poll *p, const struct remote_ask *cause);
void poll_headers(struct poll *p, const char *etag, const char *modified);
bool poll_request(struct poll *p); /* false: no memory */
/* The address to connect to for the origin of `url`, past the web server that crawlers use; NULL:
 * that of its host name. `*looks`: check some sitemaps at the public address as well
 * (public_look.c). */
const char *poll_connect(const struct poll *p, const struct url *url, bool *looks);
/* Passes the head to the reader of the body. Called before each piece; only the first call has an
 * effect. */
void poll_read_head(struct poll *p, const struct fetch_reply *reply);
/* The request begins: it counts for its host's pace. */
void poll_enter_host(struct poll *p);
/* Its site; 0: of a list for several sites, or of a site that is not made yet. */
int64_t poll_site_id(const struct poll *p);
/* The request has ended. */
void poll_release_host(struct poll *p, enum host_outcome outcome, int64_t took_ms,
                       int64_t retry_after_s);
/* The response is complete: follows a redirect, or settles and frees the poll. */
void poll_done(void *poll, enum fetch_status status, struct fetch_reply *reply);
/* Cancels and frees the poll; a sitemap returns to its heap. */
void poll_cancel(struct poll *p, const char *failure);
void poll_count(struct remote *r, enum remote_result result, uint64_t bytes, int64_t took_ms);
/* A header's value; NULL if none exists, or it is too long to store. */
const char *poll_kept_header(const struct fetch_reply *reply, const char *name, size_t most);

/* ---- check.c */
extern const char check_site_removed[];
/* Begins to poll a due sitemap. False: with the reason in `*why` (which may be check_site_removed),
 * requeue it; `*why` NULL: it is no longer watched, or was requeued already. */
bool check_begin(struct remote *r, struct remote_host *host, struct due due, struct remote_ask *ask,
                 const char **why);
/* Whether its source serves its sitemaps from copies. */
bool check_serves(const struct poll *p);
/* Writes the result and schedules the next poll. `file`: the verdict on the body of a 200; NULL:
 * none. */
void check_settle(struct poll *p, const struct child_verdict *v, const struct fetch_reply *reply,
                  const struct sitemap_file *file);

/* Shows the results if they were stored, and frees the list. */
void check_report_all(struct remote *r, struct check_report **reports, bool stored);

/* ---- public_look.c */
/* Requests a good sitemap at its public address, if that is due: true, the poll settles later, and
 * the reply is taken over. */
bool public_check_begin(struct poll *p, const struct child_verdict *v, struct fetch_reply *reply,
                        const struct sitemap_file *found);
/* That request has ended: settles and frees the poll. */
void public_check_end(struct poll *p, const struct child_verdict *v);
/* True if there is no sitemap at the public address, which is set in `record`. */
bool public_check_differs(const struct poll *p, struct check_record *record);
void public_check_free(struct public_look *look); /* accepts NULL */

/* ---- list.c */
/* Loads the stored state of lists that are not in memory. A list has a row, with its current
 * upstream and host map, before it is polled: its scan may be the last thing that is stored. */
void list_load_all(struct remote *r);
/* Shows the stored state of all lists, on a node that does not poll. */
void list_show_all(struct remote *r);
/* The result of a poll of a list. */
struct list_found {
    struct child_verdict verdict;
    struct fetch_reply reply;
    int64_t answered; /* the Date of the reply */
    /* `out` is not set if the poll is only for dry runs; `dry` is for its dry_asks */
    struct scan_outcome out, dry;
    bool claims_are_now;
};
/* Begins to poll the list. False: it failed, and the requests were answered. */
bool list_begin(struct remote *r, struct remote_source *source);
/* The list is due but its host rests: a list that was never read counts as failing. */
void list_wait(struct remote *r, struct remote_source *source, int64_t now);
/* Settles the poll (false), or begins its scan (true). */
bool list_settle(struct poll *p, const struct child_verdict *v, struct fetch_reply *reply);
/* Fails all requests for a scan of the list, also those for the next poll. */
void list_fail_requests(struct poll *p, const char *failure);

/* Begins the scan and takes over the reply. False: out of memory. */
bool list_scan_begin(struct poll *p, const struct child_verdict *verdict,
                     struct fetch_reply *reply);
/* Cancels the scan. True: it is under way, and the poll is freed later. */
bool list_scan_drop(struct poll *p);
/* Settles finished scans. */
void list_scan_step(struct remote *r);
/* Ends and frees scans in progress. */
void list_scan_stop(struct remote *r);

/* ---- split_fetch.c */
struct split_end;
/* Whether `split` of its source names it, and its URL allows a split. */
bool split_can(const struct poll *p);
/* Whether it has a urlset exactly if it had one at the last poll; if not, it is read completely. */
bool split_is_as_kept(const struct poll *p);
/* Returns why the split cannot begin now (another one is under way or first in turn, its site has
 * used its share, its urlset is frozen), and requeues it unless `asked`. NULL: it may begin. */
const char *split_requeue(struct poll *p, bool asked);
/* Applies the `max_removed` of a scan to the splits of the source, and polls them for that. */
void split_admit(struct remote *r, struct remote_source *s, int64_t now, int64_t max_removed);
/* Begins the request, in place of fetch_loop_add. False: out of memory, or no thread. */
bool split_begin(struct poll *p);
/* Cancels a split that is under way: true, and the poll is freed later. */
bool split_drop(struct poll *p);
/* Settles finished splits. */
void split_step(struct remote *r);
/* Ends and frees a split in progress. */
void split_stop(struct remote *r);
void split_end_free(struct split_end *e); /* accepts NULL */
/* The result: whether it was split; what of it is not in the urlset (NULL: nothing); the verdict on
 * the file (false: none); whether it was requeued without a result. */
bool split_was(const struct poll *p);
const char *split_describe_dropped(const struct poll *p);
/* For one that was split: what that did to its urlset. */
const char *split_did(const struct poll *p);
bool split_found(const struct poll *p, struct sitemap_file *out);
bool split_postpone(struct poll *p, uint64_t got_bytes);
/* Corrects the verdict that is derived from the response alone. */
void split_check(const struct poll *p, struct child_verdict *v);
/* The wait until its next poll, at least as long as the fetched bytes require. */
uint32_t split_wait(const struct poll *p, uint64_t got_bytes, uint32_t wait);

/* ---- watch.c */
/* One step of the pass, if no change is under way. */
void watch_step(struct remote *r, int64_t now_ms);
/* Loads rows that were added after max_id; false: the catalogue cannot be read. */
bool watch_load(struct remote *r);
/* Loads the rows of `fresh` sources; false: the catalogue cannot be read. */
bool watch_load_fresh(struct remote *r);
/* Recounts states. */
void watch_count(struct remote *r);
/* Counts a change of state of a sitemap of the source (NULL: one registered in the site); `from`
 * -1: it is new. */
void watch_count_moved(struct remote *r, struct remote_source *source, int64_t site_id, int from,
                       enum check_state to);
/* On a node that does not poll: recounts the states now and then. */
void watch_follow(struct remote *r, int64_t now_ms);
