/* The thread of remote sources: what its parts share. Internal to server/sources/remote/.
 *
 * Invariants:
 * 1. All but what stands under `lock` is the thread's own.
 * 2. A watched sitemap is in exactly one place: in its host's heap, in a poll under way, or in the
 *    change under way (its row may be older in the catalogue until that has landed; it is not
 *    polled before).
 * 3. One change at a time is with the catalogue; what polls come to meanwhile is gathered, and no
 *    poll begins where there is no room to gather it. */
#ifndef SITEMAPD_SOURCES_REMOTE_RUN_H
#define SITEMAPD_SOURCES_REMOTE_RUN_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/base/map.h"
#include "server/client/loop.h"
#include "server/input/sitemap_file.h"
#include "server/sources/remote/child.h"
#include "server/sources/remote/due.h"
#include "server/sources/remote/interval.h"
#include "server/sources/remote/remote.h"
#include "server/sources/remote/upstream.h"

#define RUN_TRANSFERS 32u /* polls at once */
/* Of them lists, and sitemaps of one site: whose hosts keep one waiting leaves room for others. */
#define RUN_SHARE (RUN_TRANSFERS / 2)

/* Settings, copied. Freed by the last who holds it: the thread, and what is under way by it. */
struct remote_plan {
    unsigned held;
    struct remote_bounds bounds;
    struct address_range *allow; /* owned */
    struct address_guard guard;
    size_t count;
    struct remote_settings *settings;
};

struct remote_ask {
    struct remote_ask *next;
    char *name; /* of a source; NULL: a sitemap is asked for */
    int64_t max_removed;
    bool dry_run;
    remote_scanned *scanned;
    int64_t site_id;
    char *loc;
    remote_polled *polled;
    void *context;
};

struct remote_host {
    char *origin;
    struct host_pace pace;
    struct due_heap heap;
    bool has_list;    /* of a source; what is known of it is kept */
    double spread_at; /* Unix seconds: when the next first poll is due */
};

struct poll;

struct remote_source {
    const struct remote_settings *settings; /* of the plan */
    struct url upstream;
    int64_t list_id; /* of its row; 0: not made yet */
    int64_t next_at, answered, full_at, good_at, since;
    uint64_t hash_members; /* of the last list */
    uint32_t failures;
    char *etag, *modified, *problem; /* owned; NULL: none */
    bool claims_are_now;
    bool fresh;              /* its sitemaps are not in memory yet */
    bool whole;              /* the next one is read whatever validators say */
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
    pthread_t thread;
    bool started;
    atomic_bool stop, look_soon;

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
    uint64_t states[CHECK_STATES];
    int64_t max_id;       /* of the rows in memory */
    bool leads, followed; /* a shared catalogue's one node that polls; this one, or not until now */
    bool load;            /* memory is to be made anew */
    bool fresh;           /* there are sources that are not in memory yet */
    int64_t load_at_ms;   /* not before */
    int64_t clock_offset; /* Unix ms less monotonic ms; 0: not seen yet */
    uint32_t chance;

    /* What is gathered, and what is with the catalogue. */
    struct check_write batch[CHECK_WRITES_MAX];
    size_t batch_count;
    int64_t batch_at_ms; /* of the first */
    bool batch_tells;    /* some of it is news: a state, a content, a date */
    struct record_list texts;
    struct remote_ask *waiting, *landing; /* polls asked for: of the batch, of the flight */
    struct flight *flight;

    /* Looking for what is to be watched. */
    struct {
        enum look_phase { LOOK_REST, LOOK_SOURCES, LOOK_SITES, LOOK_LEFT } phase;
        size_t at;
        char after[LOC_MAX_CHARS + 1];
        int64_t after_id;
        int64_t next_ms, took_ms;
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
    struct url url;
    unsigned hops;
    bool conditional, list, decided;
    int64_t began_ms, now;
    struct registry *registry; /* a reference */
    const struct registry_site *site;
    char headers[1024];
    /* Of a list. */
    struct upstream *upstream;
    bool dry_run; /* it was asked for by dry runs alone: nothing comes of it */
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
};

/* ---- remote.c */
__attribute__((format(printf, 5, 6))) void remote_tell(struct remote *r, int level,
                                                       const char *event, const char *source,
                                                       const char *format, ...);
struct remote_plan *remote_plan_new(const struct remote_bounds *bounds, size_t count,
                                    const struct remote_settings *settings, char *why,
                                    size_t why_size);
void remote_plan_free(struct remote_plan *plan); /* takes NULL; lets go of it */
bool remote_plan_equal(const struct remote_plan *a, const struct remote_plan *b);
/* All but the sources. */
bool remote_plan_same_bounds(const struct remote_plan *a, const struct remote_plan *b);
bool remote_settings_equal(const struct remote_settings *a, const struct remote_settings *b);
void remote_ask_free(struct remote_ask *ask);
/* Answers it with a failure and frees it. */
void remote_ask_fail(struct remote_ask *ask, const char *failure);
/* The thread. */
void *remote_run(void *remote);

/* ---- run.c */
struct remote_host *run_host(struct remote *r, const struct url *url); /* NULL: no memory */
/* Forgets hosts of which nothing is polled any more, now and then: a list that names others with
 * each answer would let them grow without end. Called where nobody holds one. */
void run_sweep_hosts(struct remote *r);
struct remote_source *run_source(struct remote *r, const char *name); /* NULL: none */
int64_t run_now(void);
uint32_t run_chance(struct remote *r);
/* Puts a sitemap back into its host's heap. */
void run_put(struct remote *r, struct remote_host *host, struct due due);
/* By how much intervals of the host count longer: 1 or more. */
double run_stretch(const struct remote *r, const struct remote_host *host);
/* Adds a row to the batch; its texts are copied. False: no memory, or no room. */
bool run_write(struct remote *r, const struct check_write *write);
/* Hands the batch over now, where nothing is under way. */
void run_flush(struct remote *r);

/* ---- poll.c */
/* Begins to poll the list. False where it could not: the asks are answered. */
bool poll_list(struct remote *r, struct remote_source *source);
/* Begins to poll what is due. False: it is watched no more, or cannot be read now (`*later`). */
bool poll_child(struct remote *r, struct remote_host *host, struct due due, struct remote_ask *ask,
                bool *later);
/* Drops it; a sitemap goes back into its heap. */
void poll_cancel(struct poll *p, const char *failure);

/* ---- watch.c */
/* One step of looking, where nothing is under way. */
void watch_step(struct remote *r, int64_t now_ms);
/* Takes into memory what was added behind max_id; false: the catalogue cannot be read. */
bool watch_load(struct remote *r);
/* Takes into memory what there is of sources that are `fresh`; false: the catalogue cannot be read.
 */
bool watch_load_fresh(struct remote *r);
/* Counts states anew. */
void watch_count(struct remote *r);

#endif
