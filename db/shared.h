/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A catalogue that several machines share: the interface. Part of db/catalogue.h; the
 * implementation is in db/shared/. Each node keeps the whole catalogue in a file of its own;
 * PostgreSQL provides the lock, the order and durability. For a catalogue that is not shared these
 * functions return false, empty results and OK. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/status.h"

struct catalogue;

#define SHARED_NODE_NAME_SIZE 129

/* Functions by which a node that joins copies the catalogue from another node instead of
 * PostgreSQL's snapshot. The catalogue checks the file. One thread of the catalogue calls these
 * functions, which may wait, except `offers`; borrowed until the catalogue is closed. */
struct shared_member;
struct shared_peers {
    void *context;
    /* Whether a node, perhaps this one, gives its file to others. Any thread, never waits. */
    bool (*offers)(void *context, const struct shared_member *member);
    /* Writes the file of `from`, a node of the shared catalogue `epoch`, to `fd` from its start.
     * False: the file is incomplete; `why` has the reason, which was logged. Ends soon once `stops`
     * is true. */
    bool (*fetch)(void *context, const struct shared_member *from, const char *epoch, int fd,
                  bool (*stops)(void *stops_context), void *stops_context, char *why,
                  size_t why_size);
    /* Logs that the file fetched last is not used; it is not fetched again. */
    void (*reject)(void *context, const struct shared_member *from, const char *why);
};

/* Requests of a follower to the node that it follows, over HTTP. The catalogue checks the answers.
 */
struct shared_followed_request {
    const char *target;  /* "/peer/log?…" */
    int fd;              /* where the body of a 200 is written, from its start */
    uint32_t timeout_ms; /* until the answer begins; after that a minimum speed applies */
    bool (*stops)(void *context);
    void *stops_context;
};
struct shared_followed_reply {
    unsigned status; /* 0: no whole answer; `detail` says why */
    uint64_t bytes;  /* of a 200 */
    char code[48], detail[160];
};
struct shared_followed {
    void *context;
    const char *origin; /* https://node:8081 */
    /* A connection for one thread; NULL: out of memory. `close` does not wait. */
    void *(*open)(void *context);
    void (*close)(void *link);
    void (*get)(void *link, const struct shared_followed_request *request,
                struct shared_followed_reply *reply);
};

/* How a catalogue is shared; in struct catalogue_options. */
struct catalogue_shared {
    const char *database; /* postgresql://…; NULL: not shared by PostgreSQL */
    bool follows;         /* instead of `database`: the log is another node's; read-only */
    const struct shared_followed *followed; /* if `follows`; NULL: a command, which only reads */
    const char *schema;   /* of PostgreSQL, a-z 0-9 _: one catalogue; NULL: sitemapd */
    const char *node;     /* NULL: the host's name and 8 random hex digits, kept in the file */
    const char *release;  /* this program's, for people */
    bool upgrade_by_hand; /* only catalogue_share_upgrade migrates */
    bool of_shared_file;  /* all of this counts only if the file is a shared catalogue's */
    const struct shared_peers *peers; /* NULL: only PostgreSQL has snapshots */
    /* A secret of the nodes, SHARED_KEY_BYTES, copied. With it a node puts small changes into its
     * notifications; NULL: the other nodes fetch each change. */
    const uint8_t *key;
};
#define SHARED_KEY_BYTES 32

/* `trouble` of a node that cannot use PostgreSQL for this reason. */
#define SHARED_IS_LOCKED                                                                           \
    "a table of the shared catalogue is locked by another session: see pg_locks and "              \
    "pg_blocking_pids()"

/* A failure of a node's background work. */
struct shared_failing {
    int64_t ms;        /* how long it has failed; 0: it does not fail */
    char trouble[256]; /* as in struct shared_state */
    char said[256];
};
/* A failure shorter than this is not reported: the node retries. */
#define SHARED_FAILING_MS 12000

enum shared_phase {
    SHARED_ALONE,   /* not shared */
    SHARED_JOINING, /* the file is still empty: nothing is served, writes are rejected */
    SHARED_JOINED,  /* the node follows the log, and writes if PostgreSQL can be reached */
    SHARED_LEFT,    /* the file has diverged from the log, or lacks dropped records: the node serves
                       the file, rejects writes, and is fetching a snapshot */
    SHARED_TOO_OLD, /* this release does not know the schema of the others: the node serves the file
                       and rejects writes until it is upgraded */
};

/* The node's state, a second or so old. */
struct shared_state {
    enum shared_phase phase;
    const char *followed; /* the node from which this one gets the log; NULL: PostgreSQL */
    char node[SHARED_NODE_NAME_SIZE];
    char epoch[33];
    uint64_t joined_ns;     /* monotonic: when the file stopped being empty; 0: it is */
    uint64_t applied, head; /* records applied here; the log's last known record */
    int64_t behind_ms;      /* how long it has been behind the head; 0: it is not */
    int64_t away_ms;   /* how long PostgreSQL, or the followed node, has not answered; 0: it does */
    uint64_t fetched;  /* while a fetched copy catches up: its record; else 0 */
    int schema;        /* of the file; 0: it is empty */
    int schema_before; /* an earlier schema of the file since the start; 0: none */
    bool upgrade_pending; /* a migration waits for older releases, or for `share upgrade` */
    bool asked;           /* PostgreSQL has answered, so that `synchronous` is known */
    bool synchronous;     /* a standby of PostgreSQL also has every acknowledged write */
    int64_t refused_ms;   /* how long the log has rejected writes; 0: it does not */
    int64_t waiting_ms;   /* how long a commit in PostgreSQL has waited for a synchronous standby */
    int64_t trip_us;     /* the shortest of the last round trips to PostgreSQL, since a busy machine
                            makes some longer; a write needs at least two; 0: not known yet */
    int64_t namesake_ms; /* how long a node of the same name has been connected; 0: none is */
    /* Sentences that say what is wrong; "": nothing. */
    char trouble[256]; /* public: without names and addresses of PostgreSQL */
    char said[512];    /* PostgreSQL's own words, for the log */
    char refused_trouble[256], refused_said[256]; /* the same for refused_ms */
    struct shared_failing
        report; /* reports to the others; while they fail it leads nothing, such as polls */
    struct shared_failing snapshot; /* sending a snapshot, or trimming the log */
    char diverged[256];             /* why it last diverged, even if it has joined again */
    char kept[512];                 /* what became of the replaced file after that; "": nothing */
    char differs[256]; /* the nodes whose rows differ from this node's; "": none are known */
    /* Counters since the start. */
    uint64_t notified; /* records applied that came with their notification */
    uint64_t appended, applied_records, refused, unknown, settled, replaced, snapshots;
    uint64_t digest_mismatches;
};
/* Thread safe, never waits. False if the catalogue is not shared (phase is SHARED_ALONE then). */
bool catalogue_shared_state(struct catalogue *c, struct shared_state *out);

/* A commit that waits longer than this for a standby shows that the standby is away. */
#define SHARED_WAITING_MS 5000
/* The longest time that PostgreSQL keeps a connection of a lost machine (pg_statements.def). */
#define SHARED_NAMESAKE_MS 30000

/* The report of a node that has been silent for this long is out of date: nodes report every ten
 * seconds. */
#define SHARED_SILENT_MS 60000
/* A node as it reported itself; for people. */
struct shared_member {
    const char *name, *release;
    int schema;
    uint64_t applied;
    int64_t silent_ms;
    const char *state; /* of catalogue_shared_say: JSON, or "" */
};
typedef void shared_member_each(void *context, const struct shared_member *member);
/* Calls `each` for every node, this one included, by name. Borrowed for the call. Never waits. */
void catalogue_shared_members(struct catalogue *c, shared_member_each *each, void *context);
/* Sets the state that this node reports to the others from now on: JSON, copied, at most 64 KiB.
 * Thread safe, never waits. */
void catalogue_shared_say(struct catalogue *c, const char *state);
/* Reports this node's state, then reads those of the others, and waits for it: afterwards
 * catalogue_shared_members has all that nodes reported before the call. False: timeout. Thread
 * safe; true at once if the catalogue is not shared. */
bool catalogue_shared_exchange(struct catalogue *c, int64_t timeout_ms);

/* Whether this node leads the job with this name, such as a source or a purge. One node at a time
 * leads it, by a lock that lives as long as the node's connection; a former leader that works on is
 * harmless, since writes have a lock of their own. The first call requests the lead: the node tries
 * to get it each second until catalogue_lead_end. Never waits. Always true if the catalogue is not
 * shared. Thread safe. */
bool catalogue_leads(struct catalogue *c, const char *name);
void catalogue_lead_end(struct catalogue *c, const char *name);
/* With `leaves`, this node leaves the job to other nodes, which can do it better, and does not try
 * to lead it. Thread safe, never waits. */
void catalogue_lead_leave(struct catalogue *c, const char *name, bool leaves);

/* ---- the log, sent to followers: for one thread, which may wait. It is read from PostgreSQL or
 * from the node that this one follows. */

#define SHARED_CHAIN_CHARS 64

/* A node's position in the log. */
struct shared_place {
    uint64_t record;
    char chain[SHARED_CHAIN_CHARS + 1];
};
/* Calls `moved`, which must not wait nor call the catalogue, whenever the node's position changes.
 * NULL: `moved` is not called any more once this has returned. */
void catalogue_shared_on_move(struct catalogue *c, void (*moved)(void *context), void *context);
/* False: the node has no position yet. Thread safe, never waits. */
bool catalogue_shared_place(struct catalogue *c, struct shared_place *out);

enum shared_handout {
    SHARED_HANDED,       /* written; without a record if nothing is newer */
    SHARED_HAND_AWAY,    /* the log cannot be reached, or memory or disk ran out */
    SHARED_HAND_TRIMMED, /* the log begins after `from` */
    SHARED_HAND_ALIEN,   /* `from` is not in the log */
};
struct shared_reader;
/* Does not connect yet. NULL: out of memory. */
struct shared_reader *catalogue_log_reader(struct catalogue *c);
void catalogue_log_reader_free(struct shared_reader *r); /* accepts NULL */
/* Ends a current call soon, and each later one at once. Any thread. */
void catalogue_log_interrupt(struct shared_reader *r);
/* Writes the records newer than `from` to `fd`, from its start: at least one if there is one, then
 * until `max_bytes`. `from` NULL: no record, only the position of the log. */
enum shared_handout catalogue_log_hand(struct shared_reader *r, const struct shared_place *from,
                                       uint64_t max_bytes, int fd, uint64_t *bytes,
                                       uint64_t *records);

/* ---- commands, without an open catalogue; of `shared` they need `database` and `schema` */

/* Makes the file at `path`, which no other process uses, a shared catalogue: creates the log in
 * `database`, whose user may create tables there, and the first snapshot. `grant_to`: the role of
 * the nodes; NULL: the same user. CONFLICT if the file is shared already, or the database has a
 * shared catalogue. */
enum catalogue_status catalogue_share_init(const char *path, const struct catalogue_shared *shared,
                                           const char *grant_to, char *why, size_t why_size);
/* Grants `role` the rights of a node on an existing shared catalogue. For the user who created its
 * tables. */
enum catalogue_status catalogue_share_grant(const struct catalogue_shared *shared, const char *role,
                                            char *why, size_t why_size);
/* Appends the migration to this release's schema, as the node whose file is at `path`. BUSY if a
 * node with an older release stays connected for as long as a write may wait. */
enum catalogue_status catalogue_share_upgrade(const char *path,
                                              const struct catalogue_shared *shared, char *why,
                                              size_t why_size);

/* The state of the log in PostgreSQL, for `share status`. */
struct share_status {
    char epoch[33], server[64];
    bool synchronous, durable;
    uint64_t waiting; /* sessions whose commit waits for a synchronous standby */
    char lacks[160];  /* privileges that writes of this role need and it lacks; "": none */
    uint64_t first, head, log_bytes;
    bool has_snapshot;
    uint64_t snapshot_at, snapshot_bytes;
    int64_t snapshot_age_ms;
};
enum catalogue_status catalogue_share_status(const struct catalogue_shared *shared,
                                             struct share_status *out, shared_member_each *each,
                                             void *context, char *why, size_t why_size);
