/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The interface to the log that the nodes of a shared catalogue have in common. It provides the
 * lock of all nodes, the order of changes, and durability. Internal to db/. Implementations:
 * PostgreSQL (db/shared/pg/pg_log.c); another node, read-only (db/shared/followed.c); in unit
 * tests, memory (struct shared_log_calls).
 *
 * A handle is one connection, made at the first call that needs it and again after it was lost; one
 * thread at a time, except `interrupt`. A node has several: the writer's, the lookout's, and one
 * for names and leases that the node holds.
 *
 * Time: every call has a deadline (clock_now_ms) and returns soon after it whatever the other side
 * does; a connection that missed a deadline is dropped. The time of callbacks does not count, and a
 * query after a callback has a few seconds of its own. A missed deadline, an unreachable server and
 * a lost connection are SHARED_AWAY.
 *
 * A write:
 *     begin(at)             takes the lock; records newer than `at` go to `take`
 *     add(bytes) ...        the effects as they occur; call it or `keep` every second
 *     commit(record)        YES: durable in the log, `at` is now record's position; commit the file
 *                           NO: it is not and never will be; roll the file back
 *                           UNKNOWN: roll the file back, then call `settle(id)` before the next
 *                           write
 *     rollback              instead of commit
 *
 * After anything but YES of `begin` no transaction is open in the log.
 *
 * Records are accepted only if they continue the caller's own: the first record of each answer must
 * be `at` itself, by its chain. A primary that crashed while it waited for its standby has, once it
 * is back, a record that is lost at the next failover: only the chain shows that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARED_ID_SIZE      37 /* a UUID in text, and its end */
#define SHARED_CHAIN_BYTES  32
#define SHARED_NODE_SIZE    129
#define SHARED_EPOCH_SIZE   33
#define SHARED_FIRST_SCHEMA 1 /* of a file that can be shared */

/* A "list" is a change that is alone in its transaction. Sites take turns with lists, in the
 * writer's queue (queue.h) and in the line of all nodes. That has places for groups of sites: those
 * whose ids differ by a multiple of SITE_GROUPS share a turn there. */
#define SITE_GROUPS   256
#define NO_SITE_GROUP (-1) /* not a list */

/* Tokens for all sites (site id 0) belong to group 0. */
static inline int site_group_of(int64_t site_id)
{
    return (int)((uint64_t)site_id % SITE_GROUPS);
}

enum shared_outcome {
    SHARED_YES,       /* done */
    SHARED_NO,        /* not done, and never will be, by an answer of the server or another node */
    SHARED_UNKNOWN,   /* commit, settle: it may be there or not */
    SHARED_AWAY,      /* unreachable, lost, or the deadline passed: a write was not applied */
    SHARED_BUSY,      /* another node kept the lock until the deadline, or its list comes first */
    SHARED_ELSEWHERE, /* begin: a list of the same site group has its turn, or waits for it,
                         elsewhere */
    SHARED_BEHIND,    /* begin: more than `max_bytes` of newer records; follow first */
    SHARED_DIVERGED,  /* `at` is not in the log, or the next records are damaged */
    SHARED_TRIMMED,   /* the log begins after `at`: only a snapshot helps */
    SHARED_FOREIGN,   /* no log, or one of another epoch, or of a newer layout */
    SHARED_STOPPED,   /* a callback returned false, or `interrupt` */
    SHARED_NO_MEMORY,
};
/* A stable word: "yes", "no", "unknown", "away", … Static. */
const char *shared_outcome_word(enum shared_outcome outcome);

/* A node's position: the last record that it applied. The log of a new cluster begins with record
 * 0. */
struct shared_position {
    uint64_t seq;
    uint8_t chain[SHARED_CHAIN_BYTES];
};

struct shared_record {
    char id[SHARED_ID_SIZE];         /* made by the writing node: shared_make_id */
    char node[SHARED_NODE_SIZE];     /* the writing node */
    int schema;                      /* of the file before the record */
    uint64_t revision;               /* before the record */
    int64_t serial;                  /* before the record */
    int64_t at;                      /* Unix milliseconds, of its node's clock */
    struct shared_position position; /* its own: filled in by commit; given by tail */
};

/* Callbacks that receive records in order: the begin of each, its body in pieces of any size (the
 * bytes given to `add`), and its end. Only `end` shows that the body is complete and the chain
 * valid: nothing may be committed before. Data is borrowed for the call. False stops
 * (SHARED_STOPPED); a record without its end must be rolled back, whatever the outcome. */
struct shared_take {
    bool (*begin)(void *context, const struct shared_record *record);
    /* The body, packed as in the log (record.h), and unpacked; either may be NULL. */
    bool (*part)(void *context, const void *part, size_t size);
    bool (*bytes)(void *context, const void *bytes, size_t size);
    bool (*end)(void *context, const struct shared_record *record);
    /* Called while a record is applied for a long time: whether small writes wait here for its end.
     * Other nodes' lists then wait until `pass`. NULL: none wait. */
    bool (*writes_wait)(void *context);
    void *context;
};

/* The state that a node reports to the others, for people: nothing is decided by it. Texts are at
 * most 127 bytes, `state` 64 KiB of JSON or "". */
struct shared_node {
    const char *name;
    const char *release;
    int schema; /* of its file */
    uint64_t applied;
    uint64_t digest_seq; /* the digest of all rows, and the record after which it was taken */
    uint8_t digest[SHARED_CHAIN_BYTES];
    const char *state; /* further members, as JSON */
    int64_t silent_ms; /* node_list: since it last reported, by the log's clock */
};

/* A record that arrived with its notification: complete, and as in the log. */
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
    char server[64];    /* the database server's name and version */
    bool synchronous;   /* acknowledged writes are on another machine, too */
    bool durable;       /* it waits for its own disk: fsync and full_page_writes */
    uint64_t waiting;   /* sessions of this role whose commit waits for a synchronous standby */
    int64_t waiting_ms; /* the longest of them */
    char lacks[160];    /* privileges that this role's writes need and it lacks, as "table log
                           (INSERT)"; "": none */
    uint64_t first_seq; /* the oldest record in the log */
    struct shared_position head;
    uint64_t bytes; /* of all packed bodies in the log */
    bool has_snapshot;
    struct shared_snapshot snapshot; /* the newest */
    int64_t snapshot_age_ms;
    uint64_t bytes_since_snapshot;
};

struct shared_log;

struct shared_log_calls {
    /* Accepts NULL. Never waits; the server rolls back an open transaction and releases held names.
     */
    void (*free)(struct shared_log *log);
    /* The reason for the last outcome, in one line without secrets; or "". Borrowed until the next
     * call. */
    const char *(*why)(const struct shared_log *log);
    /* The same for the public: without names, addresses and settings of PostgreSQL; or "". Borrowed
     * likewise. */
    const char *(*gist)(const struct shared_log *log);
    /* Any thread, also from a signal handler: the current call, and each later one, ends with
     * SHARED_STOPPED at once, a `commit` and a `settle` with UNKNOWN. Permanent. */
    void (*interrupt)(struct shared_log *log);
    /* The epoch that the log must have from now on; "": any. NULL: the epoch given at opening
     * stays. */
    void (*expect)(struct shared_log *log, const char *epoch);

    /* --- writing --- */
    /* `site_group`: of a list; NO_SITE_GROUP: not a list. A list never waits for another node's
     * list, nor while another node applies the last list: BUSY at once, and other nodes may see
     * that it waits (`awaited_ms`). It then has its group's place in the line until its turn, or
     * until `pass` gives the place up. A group has one place among all nodes, so a list waits for
     * one list of each other group. ELSEWHERE: another node has the group's place. After the
     * `begin` of a list, and after a BEHIND without a list, other nodes' lists wait until `pass`.
     */
    enum shared_outcome (*begin)(struct shared_log *log, const struct shared_position *at,
                                 uint64_t max_bytes, int site_group, const struct shared_take *take,
                                 int64_t deadline_ms);
    /* Lets other nodes' lists begin; call it once the writes that waited here for a list were
     * applied. `waits`: a list of this node still waits. Sends no query if nothing was held up.
     * True if something was, and a list of another node waits. */
    bool (*pass)(struct shared_log *log, bool waits, int64_t deadline_ms);
    /* Appends bytes to the current record; they are packed, and sent a MiB at a time. */
    enum shared_outcome (*add)(struct shared_log *log, const void *bytes, size_t size,
                               int64_t deadline_ms);
    /* Keeps the transaction alive: PostgreSQL ends it after two seconds without a query. Cheap:
     * sends a query only after half a second. `begin` and `add` do it themselves. */
    enum shared_outcome (*keep)(struct shared_log *log, int64_t deadline_ms);
    /* How long another node has been waiting for the end of the transaction, perhaps with a list;
     * 0: none. Updated by `keep`; a node that was seen waiting counts until the end. */
    int64_t (*awaited_ms)(const struct shared_log *log);
    /* The log's clock, Unix milliseconds, computed from its time at `begin`. Between begin and
     * commit. */
    int64_t (*unix_ms)(const struct shared_log *log);
    /* YES: no node with a release older than this schema has a lease, and none gets one until the
     * transaction ends. NO: a node has one. Between begin and commit. */
    enum shared_outcome (*older_are_gone)(struct shared_log *log, int schema, int64_t deadline_ms);
    /* YES, NO, UNKNOWN and nothing else. Fills in record->position. */
    enum shared_outcome (*commit)(struct shared_log *log, struct shared_record *record,
                                  int64_t deadline_ms);
    /* Instead of `commit`, for writes that append nothing: ends the transaction. YES: all records
     * are as durable as an appended one, so what they show may be acknowledged. One may be visible
     * without that: after a restart of PostgreSQL, or if a wait for a standby was cut short. */
    enum shared_outcome (*confirm)(struct shared_log *log, int64_t deadline_ms);
    void (*rollback)(struct shared_log *log); /* waits a second at most */
    /* Finds the outcome after UNKNOWN, on another connection and with the lock: YES (committed and
     * durable), NO (it never will be) or UNKNOWN (try again). */
    enum shared_outcome (*settle)(struct shared_log *log, const char *id, int64_t deadline_ms);
    /* Whether a record of some size would be accepted now: writes one and rolls it back, without
     * the lock. NO: it would be rejected. NULL: records are never rejected. */
    enum shared_outcome (*probe)(struct shared_log *log, int64_t deadline_ms);

    /* --- following --- */
    /* Reads the records newer than `at`, without the lock: at least one if there is one, then up to
     * `max_bytes` (packed). `*head` is the log's head, also if a callback stopped. YES also if
     * nothing is new. */
    enum shared_outcome (*tail)(struct shared_log *log, const struct shared_position *at,
                                uint64_t max_bytes, const struct shared_take *take, uint64_t *head,
                                int64_t deadline_ms);
    /* Waits until a node reports a new record, or the deadline: YES in both cases. Connecting first
     * may take some seconds more. */
    enum shared_outcome (*wait)(struct shared_log *log, int64_t deadline_ms);
    /* Records that arrived with the notifications that `wait` has seen, in their order; the
     * caller's (shared_news_free). NULL: none did. NULL itself: none ever do. */
    struct shared_news *(*news)(struct shared_log *log);

    /* --- snapshots: files, in parts; `deadline` is of each part, `interrupt` ends the whole --- */
    /* Sends the file as the newest snapshot. The caller holds SHARED_SNAPSHOT_NAME. Drops parts of
     * interrupted uploads, and all snapshots but the last `kept`. */
    enum shared_outcome (*snapshot_put)(struct shared_log *log,
                                        const struct shared_snapshot *snapshot, int kept, int fd,
                                        int64_t part_timeout_ms);
    /* The newest one, written to the file from its beginning. NO: none exists. */
    enum shared_outcome (*snapshot_get)(struct shared_log *log, int fd,
                                        struct shared_snapshot *snapshot, int64_t part_timeout_ms);
    /* Drops records that are older than the oldest of the last `kept` snapshots, and that are older
     * than a day or are followed by a GiB of records (a node that lacks them takes a snapshot), a
     * bounded number at a time; `*more`: there are more. Forgets nodes that were silent for a
     * week. */
    enum shared_outcome (*trim)(struct shared_log *log, int kept, bool *more, int64_t deadline_ms);

    /* --- what lives as long as the connection --- */
    /* Leadership: YES if the name is this connection's now (also if it was already; then without a
     * query), NO if another has it. Held until the connection is lost, which happens after half a
     * minute without a query: `report` shows whether it was. */
    enum shared_outcome (*hold)(struct shared_log *log, const char *name, int64_t deadline_ms);
    bool (*is_held)(const struct shared_log *log, const char *name); /* as far as known; no wait */
    /* A connection without a name and a lease may then be silent, also if another had the name. */
    void (*let_go)(struct shared_log *log, const char *name, int64_t deadline_ms);
    /* Takes a lease for this release, which knows schemas up to `schema`: no migration beyond it
     * begins while the lease is held. NO: a migration is running. Sends no query if it is held
     * already. */
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
    /* Creates the log of a new cluster, with record 0; `grant_to` (a role, or NULL) gets the rights
     * of a node. A log without records, snapshots and nodes was left by a founder that was killed:
     * it is created again, and the connection then holds SHARED_SNAPSHOT_NAME. NO: there is a log
     * already, or the rights are missing. `*start`: the position of the founding node. */
    enum shared_outcome (*found)(struct shared_log *log, const char *epoch, const char *grant_to,
                                 struct shared_position *start, int64_t deadline_ms);
    /* Grants a role the rights of a node on an existing log. NO: not permitted. */
    enum shared_outcome (*grant)(struct shared_log *log, const char *role, int64_t deadline_ms);
};

struct shared_log {
    const struct shared_log_calls *calls;
};

#define SHARED_DEFAULT_SCHEMA "sitemapd"

/* The name that a node holds while it sends a snapshot. */
#define SHARED_SNAPSHOT_NAME "snapshot"

struct shared_log_options {
    const char *database; /* postgresql://… or "host=… dbname=…"; several hosts are tried in turn */
    const char *schema; /* of its tables: a-z 0-9 _; NULL: SHARED_DEFAULT_SCHEMA */
    const char *epoch;  /* NULL: whatever is there */
    const char *node;   /* shown in the server's list of sessions; NULL: a command */
    const uint8_t *key; /* of notifications with records, 32 bytes, copied; NULL: they have none */
};

/* Does not connect yet. NULL: the options are invalid; `why` gets a sentence. */
struct shared_log *shared_log_open_postgresql(const struct shared_log_options *options, char *why,
                                              size_t why_size);

/* A random UUID. */
void shared_make_id(char out[SHARED_ID_SIZE]);
