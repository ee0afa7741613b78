/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log that the nodes of a shared catalogue have in common, as one of them sees it: the lock
 * that reaches over all machines, the order, durability. Internal to db/. On PostgreSQL:
 * db/shared/pg/pg_log.c; of another node, to be read only: db/shared/followed.c; unit tests put a
 * log in memory in their place (struct shared_log_calls).
 *
 * A handle is one connection, made at the first call that needs it and again after it was lost; one
 * thread at a time, but for `interrupt`. A node has several: the writer's, the follower's, one for
 * what is held as long as the node lives.
 *
 * Time: every call has a deadline (clock_now_ms) and comes back soon after it whatever the other
 * side does; a connection that missed one is dropped. What a callback takes does not count, and
 * what is asked for behind one has a few seconds of its own. Out of time, out of reach and lost are
 * SHARED_AWAY.
 *
 * A write:
 *     begin(at)             the lock, and what is newer than `at`, which is applied in `take`
 *     add(bytes) ...        what was done, as it is done; not one second without it or `keep`
 *     commit(record)        YES: it is durable there, `at` is now record's position, commit here
 *                           NO: it is not and never will be; roll back here
 *                           UNKNOWN: roll back here, then `settle(id)` before anything else is
 * written or rollback instead of commit. After anything but YES of `begin` no transaction is open
 * there.
 *
 * What the log says is believed only where it goes on from what the caller has: its first record
 * must be `at` itself, by its chain. A primary that crashed while it waited for its standby shows,
 * once it is back, a record which is gone after the next failover: without this nobody would
 * notice. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/base/site_group.h"

#define SHARED_ID_SIZE      37 /* a UUID in text, and its end */
#define SHARED_CHAIN_BYTES  32
#define SHARED_NODE_SIZE    129
#define SHARED_EPOCH_SIZE   33
#define SHARED_FIRST_SCHEMA 1 /* of a file that can be shared */

/* Sites have turns for what has the writer for itself (a "list"), on a node and among all nodes:
 * `site_group` (site_group.h) in the writer's queue (queue.h), at `begin` and in the line of all
 * nodes. */

enum shared_outcome {
    SHARED_YES,     /* done */
    SHARED_NO,      /* not done, and never will be; the server or another node said so */
    SHARED_UNKNOWN, /* commit, settle: it may be there or not */
    SHARED_AWAY,    /* out of reach or lost, or the deadline passed: of a write nothing is there */
    SHARED_BUSY,    /* another node kept the lock until the deadline, or a list of it goes first */
    SHARED_ELSEWHERE, /* begin: a list of the same site group has its turn, or waits for it,
                         elsewhere */
    SHARED_BEHIND,    /* begin: there is more than `max_bytes` newer; follow first */
    SHARED_DIVERGED,  /* `at` is not in the log, or what follows it is damaged: my past is not its
                         past */
    SHARED_TRIMMED,   /* the log begins behind `at`: only a snapshot helps */
    SHARED_FOREIGN,   /* no log is there, or one of another epoch, or of a newer layout */
    SHARED_STOPPED,   /* a callback returned false, or `interrupt` */
    SHARED_NO_MEMORY,
};
/* A stable word: "yes", "no", "unknown", "away", … Static. */
const char *shared_outcome_word(enum shared_outcome outcome);

/* Where a node is: the last record it applied. The log of a new cluster begins with record 0. */
struct shared_position {
    uint64_t seq;
    uint8_t chain[SHARED_CHAIN_BYTES];
};

struct shared_record {
    char id[SHARED_ID_SIZE];         /* made by who writes: shared_make_id */
    char node[SHARED_NODE_SIZE];     /* who wrote it */
    int schema;                      /* of the file that it was made on, before it */
    uint64_t revision;               /* that it follows */
    int64_t serial;                  /* that it follows */
    int64_t at;                      /* Unix milliseconds, of its node's clock */
    struct shared_position position; /* its own: filled in by commit; given by tail */
};

/* Takes records as they arrive, in order, each begun, given its body in pieces of any size (the
 * bytes that `add` was given), and ended. Only at `end` is it known that the body is whole and that
 * the chain holds: nothing of it may be committed before. Borrowed for the time of the call. False
 * stops (SHARED_STOPPED); a record that was begun and not ended is to be rolled back, whatever the
 * outcome. */
struct shared_take {
    bool (*begin)(void *context, const struct shared_record *record);
    /* The body as it is in the log, packed (record.h), and unpacked; either may be NULL. */
    bool (*part)(void *context, const void *part, size_t size);
    bool (*bytes)(void *context, const void *bytes, size_t size);
    bool (*end)(void *context, const struct shared_record *record);
    /* Asked while a record is applied for long: whether what is not a list waits here for the end
     * of it. Other nodes' lists then stay out until `pass`. NULL: nothing does. */
    bool (*writes_wait)(void *context);
    void *context;
};

/* What a node says of itself to the others, for people: nothing is decided by it. Texts are at most
 * 127 bytes, `state` 64 KiB of JSON or "". */
struct shared_node {
    const char *name;
    const char *release;
    int schema; /* of its file */
    uint64_t applied;
    uint64_t digest_seq; /* the digest of all rows, and the record behind which it was taken */
    uint8_t digest[SHARED_CHAIN_BYTES];
    const char *state; /* the rest, as JSON */
    int64_t silent_ms; /* node_list: since it last reported, by the log's clock */
};

/* A record that arrived with its notification: whole, and as it lies in the log. */
struct shared_news {
    struct shared_news *next;
    struct shared_record record;
    size_t size; /* of the body, packed */
    uint8_t body[];
};

struct shared_snapshot {
    struct shared_position position;
    int schema;
    uint64_t bytes; /* of the file */
};

/* The log as a whole. */
struct shared_overview {
    char epoch[SHARED_EPOCH_SIZE];
    char server[64];    /* the engine's name and version */
    bool synchronous;   /* what is acknowledged is on another machine too */
    bool durable;       /* it waits for its own disk: fsync and full_page_writes */
    uint64_t waiting;   /* sessions of this role whose commit waits for a synchronous standby */
    int64_t waiting_ms; /* the longest of them */
    uint64_t first_seq; /* the oldest that is kept */
    struct shared_position head;
    uint64_t bytes; /* of the bodies that are kept, packed */
    bool has_snapshot;
    struct shared_snapshot snapshot; /* the newest */
    int64_t snapshot_age_ms;
    uint64_t bytes_since_snapshot;
};

struct shared_log;

struct shared_log_calls {
    /* Takes NULL. Never waits; what was open is rolled back there, what was held is given up. */
    void (*free)(struct shared_log *log);
    /* Why the last call had its outcome, in one line without secrets; "" where nothing is to be
     * said. Borrowed until the next call. */
    const char *(*why)(const struct shared_log *log);
    /* What the server said then, for anybody: no name, address or setting of PostgreSQL's. "": it
     * said nothing. Borrowed likewise. */
    const char *(*gist)(const struct shared_log *log);
    /* Any thread, also from a signal's: the call under way, and each later one, ends with
     * SHARED_STOPPED at once, a `commit` and a `settle` with UNKNOWN. For good. */
    void (*interrupt)(struct shared_log *log);
    /* Of which epoch the log is to be from now on, "": any; NULL: it stays what it was opened with.
     */
    void (*expect)(struct shared_log *log, const char *epoch);

    /* --- writing --- */
    /* A list (`site_group`: whose; NO_SITE_GROUP: not a list) never waits behind another node's,
     * nor while one of them takes over what the last list wrote: BUSY at once, and those may see
     * that it waits (`awaited_ms`). It then has its group's place in the line, which it keeps until
     * it was its turn or `pass` gives it up: a group has one among all nodes, so it waits for one
     * list of each other group. ELSEWHERE: it is had by another node. From its `begin` on, and from
     * BEHIND of what is not a list, other nodes' lists stay out until `pass`. */
    enum shared_outcome (*begin)(struct shared_log *log, const struct shared_position *at,
                                 uint64_t max_bytes, int site_group, const struct shared_take *take,
                                 int64_t deadline_ms);
    /* Other nodes' lists may go on; to be called once what waited here behind a list was written.
     * `waits`: a list of this node goes on waiting. Asks nobody where there is nothing to pass.
     * True where there was, and a list waits elsewhere. */
    bool (*pass)(struct shared_log *log, bool waits, int64_t deadline_ms);
    /* So many bytes more of the record under way; they are packed, and sent a MiB at a time. */
    enum shared_outcome (*add)(struct shared_log *log, const void *bytes, size_t size,
                               int64_t deadline_ms);
    /* The transaction there ends by itself after two seconds without a word. Cheap: asks only where
     * half a second has passed. `begin` does it between records, `add` for itself. */
    enum shared_outcome (*keep)(struct shared_log *log, int64_t deadline_ms);
    /* For how long another node has been seen to wait for the end of the transaction, be it with a
     * list, 0: none. `keep` looks; who once waits, waits on. */
    int64_t (*awaited_ms)(const struct shared_log *log);
    /* What the log's own clock says now, Unix milliseconds, by what it said at `begin`; within
     * begin and commit. */
    int64_t (*unix_ms)(const struct shared_log *log);
    /* YES where no node with a release older than this schema has a lease; none gets one until the
     * transaction ends. NO: one has. Within begin and commit. */
    enum shared_outcome (*older_are_gone)(struct shared_log *log, int schema, int64_t deadline_ms);
    /* YES, NO, UNKNOWN and nothing else. Fills in record->position. */
    enum shared_outcome (*commit)(struct shared_log *log, struct shared_record *record,
                                  int64_t deadline_ms);
    void (*rollback)(struct shared_log *log); /* waits a second at most */
    /* After UNKNOWN, on another connection and behind the lock: YES (it is there, and as durable as
     * anything acknowledged), NO (it never will be) or UNKNOWN (ask again). */
    enum shared_outcome (*settle)(struct shared_log *log, const char *id, int64_t deadline_ms);
    /* Whether a record of some size would be accepted now: writes one and rolls it back, without
     * the lock. NO: it would be refused. NULL: nothing ever is. */
    enum shared_outcome (*probe)(struct shared_log *log, int64_t deadline_ms);

    /* --- following --- */
    /* What is newer than `at` without the lock: at least one record where there is one, then as
     * long as no more than `max_bytes` (packed) have come. `*head` is the log's head, also where
     * a callback stopped. YES also where there is nothing new. */
    enum shared_outcome (*tail)(struct shared_log *log, const struct shared_position *at,
                                uint64_t max_bytes, const struct shared_take *take, uint64_t *head,
                                int64_t deadline_ms);
    /* Until a node reports a new record (YES), or the deadline (YES too: look anyway). */
    enum shared_outcome (*wait)(struct shared_log *log, int64_t deadline_ms);
    /* Records that arrived with the notifications that `wait` has seen, in their order; the
     * caller's (shared_news_free). NULL: none did. NULL itself: none ever do. */
    struct shared_news *(*news)(struct shared_log *log);

    /* --- snapshots: files, in parts; `deadline` is of each part, `interrupt` ends the whole --- */
    /* Sends what lies in the file from its beginning. Who does so holds a name for it. Drops what
     * was left by one that broke off, and all but the last `kept`. */
    enum shared_outcome (*snapshot_put)(struct shared_log *log,
                                        const struct shared_snapshot *snapshot, int kept, int fd,
                                        int64_t part_timeout_ms);
    /* The newest one, written to the file from its beginning. NO: there is none. */
    enum shared_outcome (*snapshot_get)(struct shared_log *log, int fd,
                                        struct shared_snapshot *snapshot, int64_t part_timeout_ms);
    /* Drops records that are older than the oldest of the last `kept` snapshots, and than a day or
     * have a GiB behind them (a node that lacks them takes a snapshot), some at a time; `*more`
     * where there are more. Nodes that were silent for a week are forgotten. */
    enum shared_outcome (*trim)(struct shared_log *log, int kept, bool *more, int64_t deadline_ms);

    /* --- what lives as long as the connection --- */
    /* Leadership: YES if the name is this connection's now (also if it was already; then without a
     * query), NO if another has it. Held until the connection is lost, which happens after half a
     * minute without a query: `report` shows whether it was. */
    enum shared_outcome (*hold)(struct shared_log *log, const char *name, int64_t deadline_ms);
    bool (*is_held)(const struct shared_log *log, const char *name); /* as far as known; no wait */
    /* A connection without a name and a lease may then be silent, also if another had the name. */
    void (*let_go)(struct shared_log *log, const char *name, int64_t deadline_ms);
    /* A lease of this release, that knows schemas up to `schema`: no migration beyond it begins
     * while it is held. NO: a migration is under way. Asks nobody where it is held. */
    enum shared_outcome (*lease)(struct shared_log *log, int schema, int64_t deadline_ms);
    enum shared_outcome (*report)(struct shared_log *log, const struct shared_node *node,
                                  int64_t deadline_ms);
    /* All nodes that ever reported, by name. `take` false: stops. Borrowed. */
    enum shared_outcome (*list)(struct shared_log *log,
                                bool (*take)(void *context, const struct shared_node *node),
                                void *context, int64_t deadline_ms);
    enum shared_outcome (*forget)(struct shared_log *log, const char *name, int64_t deadline_ms);

    /* --- the cluster --- */
    enum shared_outcome (*overview)(struct shared_log *log, struct shared_overview *out,
                                    int64_t deadline_ms);
    /* Makes the log of a new cluster, with record 0; `grant_to` (a role, or NULL) gets what a node
     * needs and no more. One that has no record, no snapshot and no node was left by a founder that
     * was killed: it is rebuilt, and the connection then holds SHARED_SNAPSHOT_NAME. NO: there is
     * one already, or it may not be made. `*start` is where the founding node is then. */
    enum shared_outcome (*found)(struct shared_log *log, const char *epoch, const char *grant_to,
                                 struct shared_position *start, int64_t deadline_ms);
    /* Gives a role what a node needs, of a log that is there. NO: the caller may not. */
    enum shared_outcome (*grant)(struct shared_log *log, const char *role, int64_t deadline_ms);
};

struct shared_log {
    const struct shared_log_calls *calls;
};

#define SHARED_DEFAULT_SCHEMA "sitemapd"

/* Who sends a snapshot holds this name. */
#define SHARED_SNAPSHOT_NAME "snapshot"

struct shared_log_options {
    const char *database; /* postgresql://… or "host=… dbname=…"; several hosts are tried in turn */
    const char *schema; /* of its tables: a-z 0-9 _; NULL: SHARED_DEFAULT_SCHEMA */
    const char *epoch;  /* NULL: whatever is there */
    const char *node;   /* for who looks at the server's sessions; NULL: a command */
    const uint8_t *key; /* of notifications with records, 32 bytes, copied; NULL: they have none */
};

/* Connects to nobody yet. NULL: `why` (of `why_size`) says what is wrong with the options. */
struct shared_log *shared_log_open_postgresql(const struct shared_log_options *options, char *why,
                                              size_t why_size);

/* A random UUID. */
void shared_make_id(char out[SHARED_ID_SIZE]);
