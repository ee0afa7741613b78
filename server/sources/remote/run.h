/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The thread of remote sources: what its parts share. Internal to server/sources/remote/.
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
#include "server/base/site_group.h"
#include "server/base/thread.h"
#include "server/client/loop.h"
#include "server/input/sitemap_file.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/remote.h"
#include "server/sources/remote/share.h"
#include "server/sources/remote/upstream.h"
#include "server/trace/trace.h"

#define RUN_TRANSFERS 32u /* polls at once */
/* At most for lists, and for sitemaps of one site: slow hosts leave room for others. */
#define RUN_SHARE (RUN_TRANSFERS / 2)
/* Of one poll. */
#define POLL_TIMEOUT_MS      120000u
#define POLL_STALL_S         30u
#define POLL_STALL_BYTES     100u
#define POLL_BODY_MAX_BYTES  (51u << 20) /* as sent */
#define POLL_OTHER_MAX_BYTES 4096u       /* of what is no 2xx */

/* Settings, copied. Freed by the last who holds it: the thread, and what is under way by it. */
struct remote_plan {
    unsigned held;
    struct remote_bounds bounds;
    struct remote_site *sites;  /* owned; those of `bounds` */
    struct address_guard guard; /* remote_guard says for whom */
    size_t count;
    struct source_settings *settings;
};

struct remote_ask {
    struct remote_ask *next;
    char *name; /* of a source; NULL: a sitemap is asked for */
    int64_t max_removed;
    bool dry_run;
    struct traceparent cause;
    remote_scanned *scanned;
    int64_t site_id;
    char *loc;
    int64_t check_id; /* once it was polled: whose row is the answer */
    remote_polled *polled;
    void (*copied)(void *context); /* in place of `polled`: a copy is asked for, */
    int64_t until_ms;              /* and waited for until then (monotonic) */
    void *context;
};

/* What sites of one group (server/base/site_group.h) have on a host. */
struct host_part {
    int group;
    struct due_heap heap;
    double spread_at; /* Unix seconds: when the next first poll is due */
};

/* Several sites may have sitemaps on it, such as a CDN's: they take turns, so that one with very
 * many does not put off the others' polls, nor make their intervals longer. */
struct remote_host {
    char *origin;
    struct host_pace pace;
    struct host_part *parts; /* owned; moved when there is one more */
    size_t part_count, part_turn;
    bool has_list;  /* of a source; what is known of it is kept */
    unsigned apart; /* polls beside those at once: what is split may take long */
};

struct poll;

struct remote_source {
    const struct source_settings *settings; /* of the plan */
    struct url upstream;
    int64_t list_id; /* of its row; 0: not made yet */
    int64_t next_at, answered, full_at, good_at, since;
    int64_t full_from;  /* full_at of its row when its poll began */
    uint64_t digest[2]; /* of its host map, and of the settings by which the list is read */
    int64_t mapped_at;  /* Unix seconds: since when it is this; 0: ever, INT64_MAX: not known yet */
    uint32_t failures;
    char *etag, *modified, *problem; /* owned; NULL: none */
    bool claims_are_now;
    int64_t public_at;       /* when some are looked at by their public address, */
    unsigned public_left;    /* and how many are left of them */
    bool fresh;              /* its sitemaps are not in memory yet */
    bool whole;              /* the next one is read whatever validators say */
    bool frozen;             /* a freeze held some of what the last one found */
    bool news;               /* of its sitemaps, which the list is to be read for: */
    uint64_t news_in;        /* once this batch has landed */
    int64_t split_removed;   /* how many page URLs may go of each of its splits, */
    bool *split_let;         /* of which that is so; owned; NULL: of none */
    struct remote_ask *asks; /* of scans, for the next poll */
    struct remote_ask *dry_asks;
    struct poll *polling;
    struct remote_status status; /* `lock`, for who reads; only the thread writes */
};

/* A change on its way. Its callback may come when the thread is long gone. */
struct flight {
    pthread_mutex_t lock;
    bool landed, orphan;
    enum catalogue_status status;
    uint64_t revision;       /* that it made; 0: none */
    struct fetch_loop *loop; /* to wake; NULL: no longer */
};

struct remote {
    struct catalogue *catalogue;
    struct remote_options options;
    struct thread thread;
    atomic_bool look_soon;

    pthread_mutex_t lock;
    struct fetch_loop *loop;    /* to wake it; NULL: not there */
    struct remote_plan *wanted; /* to be taken; NULL: none */
    struct remote_ask *asks, **asks_end;
    struct remote_counts counts; /* but durations */
    struct histogram durations;
    size_t status_count;
    struct remote_source *sources; /* resized under the lock */

    /* The thread's. */
    struct remote_plan *plan;
    struct registry *registry; /* as of the last view */
    struct remote_host **hosts;
    size_t host_count, host_capacity, turn, list_turn;
    size_t sweep_at; /* hosts: then those that are idle are forgotten */
    struct map host_map;
    struct poll *polls; /* under way */
    size_t polling;
    uint64_t rests_until_ns[SITE_GROUPS]; /* whose polls took long to read: others go first */
    struct split_fetch *split;            /* under way; NULL: none */
    struct list_scan *scans;              /* the first is under way; NULL: none */
    struct shares shares;                 /* of its place */
    uint64_t states[CHECK_STATES];
    int64_t max_id;       /* of the rows in memory */
    bool leads, followed; /* a shared catalogue's one node that polls; this one, or not until now */
    bool load;            /* memory is to be rebuilt */
    int64_t count_at_ms;  /* on a node that does not poll: not before */
    bool logged_not_kept; /* and nothing was kept since */
    bool fresh;           /* there are sources that are not in memory yet */
    int64_t fresh_at_ms;  /* nor are they put there before it */
    int64_t load_at_ms;   /* not before */
    int64_t clock_offset; /* Unix ms less monotonic ms; 0: not seen yet */
    uint32_t chance;

    /* What is gathered, and what is with the catalogue. */
    struct check_write batch[CHECK_WRITES_MAX];
    size_t batch_count;
    uint64_t batch_number;
    int64_t batch_at_ms; /* of the first */
    bool batch_is_news;  /* some of it is news: a state, a content, a date */
    struct record_list texts;
    struct remote_ask *waiting, *landing; /* polls asked for: of the batch, of the flight */
    struct flight *flight;
    int64_t flying[CHECK_WRITES_MAX]; /* whose rows it has */
    size_t flying_count;

    /* Looking for what is to be watched. */
    struct {
        enum look_phase { LOOK_REST, LOOK_SOURCES, LOOK_SITES, LOOK_LEFT } phase;
        size_t at;
        char after[LOC_MAX_CHARS + 1];
        int64_t after_id;
        int64_t next_ms, took_ms;
        int64_t rests_ms; /* until then, also where it is known that something changed */
        uint64_t revision;
        bool removed, again;
    } look;
};

struct poll {
    struct poll *next;
    struct remote *remote;
    struct remote_source *source; /* NULL: of a site */
    struct remote_host *host;
    struct fetch_transfer *transfer;
    struct fetch_request request;
    struct remote_plan *plan; /* whose texts the request has; held */
    struct url url;           /* that is asked */
    struct url served_at;     /* the same, as it is served here */
    unsigned hops;
    bool conditional, list, decided;
    bool headed; /* its reader knows the answer's head */
    int64_t began_ms, now;
    struct registry *registry; /* a reference */
    const struct registry_site *site;
    char headers[1024];
    struct trace_span span;
    struct trace_end end; /* what its span says once it is over */
    /* Of a list. */
    struct upstream *upstream;
    int64_t large_at_ms, waits_since_ms; /* see poll.c; 0: it is not large, never waited */
    bool dry_run;                        /* dry runs alone asked for it: nothing comes of it */
    bool scans;                          /* it was read, and its scan waits or is under way */
    uint32_t failures;                   /* its source's, before */
    struct remote_ask *asks, *dry_asks;  /* that it is the answer for, once it was read */
    /* Of a sitemap. */
    struct check_record record;
    struct record_list texts; /* of the record, and these */
    const char *claim, *served;
    bool entry_read; /* these are known: */
    bool has_digest;
    bool held; /* what is found does not move its date: a digest, frozen, another's entry */
    int64_t entry_changed_at;
    struct sitemap_verifier *verifier;
    const char **hosts; /* owned, of the registry */
    struct remote_ask *ask;
    /* Of one that may be split. */
    bool splits;
    struct url split_url;
    struct split_end *ended; /* owned; NULL: nothing came of it yet */
    char detail[512];        /* of the result, where it has more than the verdict's */
    struct child_copy *copy; /* owned; NULL: its source does not serve, or nothing came yet */
    /* It was good, and is asked for by its public address now. Owned; NULL: it is not. */
    struct public_look *look;
};

/* ---- plan.c and start.c */
__attribute__((format(printf, 5, 6))) void remote_report(struct remote *r, int level,
                                                         const char *event, const char *source,
                                                         const char *format, ...);
struct remote_plan *remote_plan_new(const struct remote_bounds *bounds, size_t count,
                                    const struct source_settings *settings, char *why,
                                    size_t why_size);
void remote_plan_free(struct remote_plan *plan); /* takes NULL; releases it */
bool remote_plan_equal(const struct remote_plan *a, const struct remote_plan *b);
/* All but the sources. */
bool remote_plan_same_bounds(const struct remote_plan *a, const struct remote_plan *b);
/* Which addresses may be asked for a source (NULL: an entry of a site with `check`) and the site
 * that it lists in (NULL: none, or any): what the plan allows beside the public internet counts
 * where the configuration named the source or the site, and with them the hosts. Hosts that tokens
 * may name, and whose names may lead anywhere, are asked at public addresses alone. The plan's. */
const struct address_guard *remote_guard(const struct remote_plan *plan,
                                         const struct source_settings *source,
                                         const struct registry_site *site);
/* Whether some of what the source lists may be frozen: a list of the site that it is for, or, where
 * that may be any, of any. */
bool remote_is_frozen(const struct registry *registry, const struct source_settings *source);
/* Whether a redirect to this URL is followed: to a host of the upstream (NULL: none) or of the site
 * of the polled sitemap (`site`; NULL: the list of `source` is polled, of the site that it is for).
 */
bool remote_may_request(const struct registry *registry, const struct registry_site *site,
                        const struct source_settings *source, const struct url *upstream,
                        const struct url *to);
void remote_request_free(struct remote_ask *ask);
/* Answers it with a failure and frees it. */
void remote_request_fail(struct remote_ask *ask, const char *failure);
/* The same of a poll, with the row that it came to (NULL: `failure` says why there is none). */
void remote_request_answer(struct remote_ask *ask, const struct check_record *record,
                           const char *failure);
/* The thread. */
void remote_run(void *remote);

/* ---- run.c */
struct remote_host *run_host(struct remote *r, const struct url *url); /* NULL: no memory */
/* Forgets hosts of which nothing is polled any more, now and then: a list that names others with
 * each answer would let them grow without end. Called where nobody holds one. */
void run_sweep_hosts(struct remote *r);
struct remote_source *run_source(struct remote *r, const char *name); /* NULL: none */
/* Where the sitemap at a loc is asked for; `source` may be NULL. False: it has no such outline. */
bool run_request_url(const struct remote_source *source, const char *loc, struct url *out);
/* Unix time, as the catalogue dates its changes. */
int64_t run_now(const struct remote *r);
uint32_t run_chance(struct remote *r);
/* A site's part of the host, which is made. NULL: no memory. */
struct host_part *run_part(struct remote_host *host, int64_t site_id);
/* Puts a sitemap of the site back into its host's heap. */
void run_enqueue(struct remote *r, struct remote_host *host, int64_t site_id, struct due due);
/* due_move in all heaps. */
void run_move_due(struct remote *r, const int64_t *ids, size_t count, uint32_t at);
/* By how much intervals of the site's sitemaps on the host count longer: 1 or more. */
double run_stretch(const struct remote *r, const struct remote_host *host, int64_t site_id);
struct interval_bounds run_bounds(const struct remote *r);
/* Adds a row to the batch; its texts are copied. False: no memory, or no room. */
bool run_write(struct remote *r, const struct check_write *write);
/* Hands the batch over now, where nothing is under way. */
void run_flush(struct remote *r);

/* ---- poll.c: a poll's life */
struct poll *poll_new(struct remote *r, struct remote_host *host); /* NULL: no memory */
void poll_free(struct poll *p);
/* Before its headers: its span begins. `cause`: an ask; NULL: none. */
void poll_begin_span(struct poll *p, const struct remote_ask *cause);
void poll_headers(struct poll *p, const char *etag, const char *modified);
bool poll_request(struct poll *p); /* false: no memory */
/* Where to connect to for the origin of `url`, past the web server that crawlers use; NULL: where
 * its name leads. `*looks`: and then to look at some by their public address (public_look.c). */
const char *poll_connect(const struct poll *p, const struct url *url, bool *looks);
/* Passes what the head says on to the reader of the body. Before each piece; the first call counts.
 */
void poll_read_head(struct poll *p, const struct fetch_reply *reply);
/* It is asked: from now on it counts for its host's pace. */
void poll_enter_host(struct poll *p);
/* Of its site (server/base/site_group.h). */
int poll_group(const struct poll *p);
/* It was answered, or given up. */
void poll_release_host(struct poll *p, enum host_outcome outcome, int64_t took_ms,
                       int64_t retry_after_s);
/* The answer is there: follows it, or settles and frees the poll. */
void poll_done(void *poll, enum fetch_status status, struct fetch_reply *reply);
/* Drops it; a sitemap goes back into its heap. */
void poll_cancel(struct poll *p, const char *failure);
void poll_count(struct remote *r, enum remote_result result, uint64_t bytes, int64_t took_ms);
/* NULL where there is none, or it is longer than is kept. */
const char *poll_kept_header(const struct fetch_reply *reply, const char *name, size_t most);

/* ---- check.c */
/* Begins to poll what is due. False: it is to be requeued, and `*why` it cannot be polled now; or
 * (NULL) it is watched no more, or was requeued already. */
bool check_begin(struct remote *r, struct remote_host *host, struct due due, struct remote_ask *ask,
                 const char **why);
/* Whether its source serves what it lists, from copies. */
bool check_serves(const struct poll *p);
/* The result is written, and it is due again. `file`: what a 200's body is; NULL: none. */
void check_settle(struct poll *p, const struct child_verdict *v, const struct fetch_reply *reply,
                  const struct sitemap_file *file);

/* ---- public_look.c */
/* Asks for a good sitemap by its public address, where that is due: true, and the poll settles
 * later. Takes over the reply. */
bool public_check_begin(struct poll *p, const struct child_verdict *v, struct fetch_reply *reply,
                        const struct sitemap_file *found);
/* It was answered: settles and frees the poll. */
void public_check_end(struct poll *p, const struct child_verdict *v);
/* True where the public address has no sitemap: then the record says so. */
bool public_check_differs(const struct poll *p, struct check_record *record);
void public_check_free(struct public_look *look); /* takes NULL */

/* ---- list.c */
void list_keep(char **to, const char *text); /* a copy, in place of what is there */
/* What is kept of the lists that are not in memory, into it. A list has its row before it is
 * polled, and that is of the upstream and the map of the poll: a scan may be the last thing that is
 * stored of it. */
void list_load_all(struct remote *r);
/* The result of a list that was read. */
struct list_found {
    struct child_verdict verdict;
    struct fetch_reply reply;
    int64_t answered;             /* the Date of the reply */
    struct scan_outcome out, dry; /* unless the poll is dry runs' alone; for its dry_asks */
    bool claims_are_now;
};
/* Begins to poll the list. False where it could not: the asks are answered. */
bool list_begin(struct remote *r, struct remote_source *source);
/* It is due, and its host rests: one that was never read is failing. */
void list_wait(struct remote *r, struct remote_source *source, int64_t now);
/* True: its scan has begun, and list_scanned comes. False: it is settled. */
bool list_settle(struct poll *p, const struct child_verdict *v, struct fetch_reply *reply);
void list_scanned(struct poll *p, const struct list_found *found);
/* Those who ask for a scan of the list, also for the next one. */
void list_fail_requests(struct poll *p, const char *failure);
int64_t list_most_removed(const struct remote_ask *asks);
int64_t list_answered(const struct poll *p, const struct fetch_reply *reply);

/* Takes over the reply. False: no memory. */
bool list_scan_begin(struct poll *p, const struct child_verdict *verdict,
                     struct fetch_reply *reply);
/* Gives it up. True: it is under way, and the poll is freed later. */
bool list_scan_drop(struct poll *p);
/* Settles what is over. */
void list_scan_step(struct remote *r);
/* Ends and frees what is under way. */
void list_scan_stop(struct remote *r);

/* ---- split_fetch.c */
struct split_end;
/* Whether its source names it to be split, and it lies where it can be. */
bool split_can(const struct poll *p);
/* Whether it has its urlset as it had when it was read last: else it is read whole. */
bool split_is_as_kept(const struct poll *p);
/* Why it does not begin now (another one is under way, or has its turn; its site had more than its
 * share; its urlset is frozen), and it is requeued, unless `asked`. NULL: it may begin. */
const char *split_requeue(struct poll *p, bool asked);
/* A scan may remove so many: of what it splits, too, which is polled for that. */
void split_admit(struct remote *r, struct remote_source *s, int64_t now, int64_t max_removed);
/* In place of fetch_loop_add. False: no memory, no thread. */
bool split_begin(struct poll *p);
/* Gives it up, where it is under way: true, and it is freed later. */
bool split_drop(struct poll *p);
/* Settles what is over. */
void split_step(struct remote *r);
/* Ends and frees what is under way. */
void split_stop(struct remote *r);
void split_end_free(struct split_end *e); /* takes NULL */
/* The result: whether it was split; what of it is in no urlset (NULL: nothing); what it was
 * found to be (false: nothing was); whether nothing came of it, so that it was requeued. */
bool split_was(const struct poll *p);
const char *split_describe_dropped(const struct poll *p);
/* Of one that was: what it did to its urlset. */
const char *split_did(const struct poll *p);
bool split_found(const struct poll *p, struct sitemap_file *out);
bool split_postpone(struct poll *p, uint64_t got_bytes);
/* Corrects what an answer says alone. */
void split_check(const struct poll *p, struct child_verdict *v);
/* How long it waits at least, by what it fetched. */
uint32_t split_wait(const struct poll *p, uint64_t got_bytes, uint32_t wait);

/* ---- watch.c */
/* One step of looking, where nothing is under way. */
void watch_step(struct remote *r, int64_t now_ms);
/* Takes into memory what was added behind max_id; false: the catalogue cannot be read. */
bool watch_load(struct remote *r);
/* Takes into memory what there is of sources that are `fresh`; false: the catalogue cannot be read.
 */
bool watch_load_fresh(struct remote *r);
/* Recounts states. */
void watch_count(struct remote *r);
/* A child of the source (NULL: one that the API registered) is in another state; `from` -1: it is
 * new. */
void watch_count_moved(struct remote *r, struct remote_source *source, int from,
                       enum check_state to);
/* On a node that does not poll: counts now and then what the others found to be bad. */
void watch_follow(struct remote *r, int64_t now_ms);
