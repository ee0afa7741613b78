/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A log on PostgreSQL (its tables: pg_cluster.c): what the files behind db/shared/log.h share. A
 * transaction there is open from a `begin` that said yes to its `commit` or `rollback`; it holds
 * the advisory lock "write", and every record is the row behind the last.
 *
 * PostgreSQL gives "write" to those who wait for it in their order, but a list keeps it for
 * seconds: so of all that wait for it, one at most is a list. For that a list takes "list" first,
 * without waiting, and tries again later where it is taken. Sessions share it while they take over
 * what a list wrote and write what waited for its end: were a second list to begin meanwhile, small
 * writes would wait for both.
 *
 * Which list is the next one, sites have turns for: each has a place in a line, be it
 * that many nodes have lists of it. */
#pragma once

#include "db/shared.h"
#include "db/shared/log.h"
#include "db/shared/pg/pg_session.h"
#include "db/shared/record.h"

struct pg_place {
    int site_group; /* NO_SITE_GROUP: none is had */
    int64_t number; /* the least goes first */
};

struct pg_log {
    struct shared_log log; /* first */
    struct pg_session session;
    char *node;                   /* or NULL */
    struct shared_packer *packer; /* of the record under way; made by the first */
    struct shared_unpacker *unpacker;

    bool has_key;
    uint8_t key[SHARED_KEY_BYTES]; /* of notifications */
    struct shared_news *news;      /* that came, in order; owned */
    struct shared_news **last_news;
    size_t news_count;

    bool is_open;
    struct shared_position head; /* the record before the one under way */
    uint64_t total;              /* packed bytes up to it */
    int64_t parts;               /* of the one under way, sent */
    int64_t clock_offset_ms;     /* of the server's Unix time from our monotonic one */
    int64_t asked_ms;            /* when the transaction last heard a question of us */
    int64_t stay_ms;             /* of a tail: when the server is to hear of us again */
    int64_t awaited_since_ms;    /* since when another is known to wait for its lock; 0: none is */
    int64_t deadline_ms;         /* of the call under way */

    /* What the connection `lists_number` shares. */
    uint64_t lists_number;
    bool keeps_lists_out; /* "list" */
    struct pg_place place;
    bool had_turn; /* a list that had it began */

    struct pg_held {
        char *name;
        int64_t key;
    } * held; /* by the connection `held_number` */
    size_t held_count;
    int64_t leased; /* a schema, or 0 */
    uint64_t held_number;
};

static inline struct pg_log *pg_log_of(struct shared_log *log)
{
    return (struct pg_log *)log;
}

/* Advisory locks are numbers of the whole database; schema, kind and name make one. */
int64_t pg_lock_key(const struct pg_log *l, const char *kind, const char *name);
/* A batch: makes sure of a connection; then what is sent is run by pg_session_run. */
enum shared_outcome pg_log_run(struct pg_log *l, struct pg_results *out, int64_t deadline_ms);

/* A node that stops while others' lists wait for it loses its session after so long. */
#define PG_IDLE_MS "10000"
/* One that holds names and is silent: a node that stops leaves them to others. */
#define PG_HELD_MS "30000"

/* The queue of nodes that wait to write a list. */
/* What those who are in the line share is this, with site group and number behind it. */
int64_t pg_line_key(const struct pg_log *l);
/* Joins the queue with a list of the group, or stays in it. YES: it is its turn. BUSY: not yet.
 * ELSEWHERE: another node has the group's place. Else AWAY. */
enum shared_outcome pg_line_wait(struct pg_log *l, int site_group, int64_t deadline_ms);
/* Puts it into the batch under way that the place is given up. */
void pg_line_leave(struct pg_log *l);

/* pg_presence.c */
enum shared_outcome pg_log_hold(struct shared_log *log, const char *name, int64_t deadline_ms);
bool pg_log_is_held(const struct shared_log *log, const char *name);
void pg_log_let_go(struct shared_log *log, const char *name, int64_t deadline_ms);
enum shared_outcome pg_log_lease(struct shared_log *log, int schema, int64_t deadline_ms);
enum shared_outcome pg_log_report(struct shared_log *log, const struct shared_node *node,
                                  int64_t deadline_ms);
enum shared_outcome pg_log_list(struct shared_log *log,
                                bool (*take)(void *context, const struct shared_node *node),
                                void *context, int64_t deadline_ms);
enum shared_outcome pg_log_forget(struct shared_log *log, const char *name, int64_t deadline_ms);
void pg_log_forget_held(struct pg_log *l); /* the list alone */

/* pg_snapshot.c */
enum shared_outcome pg_log_snapshot_put(struct shared_log *log,
                                        const struct shared_snapshot *snapshot, int kept, int fd,
                                        int64_t part_timeout_ms);
enum shared_outcome pg_log_snapshot_get(struct shared_log *log, int fd,
                                        struct shared_snapshot *snapshot, int64_t part_timeout_ms);
enum shared_outcome pg_log_trim(struct shared_log *log, int kept, bool *more, int64_t deadline_ms);

/* pg_cluster.c */
enum shared_outcome pg_log_overview(struct shared_log *log, struct shared_overview *out,
                                    int64_t deadline_ms);
enum shared_outcome pg_log_grant(struct shared_log *log, const char *role, int64_t deadline_ms);
enum shared_outcome pg_log_found(struct shared_log *log, const char *epoch, const char *grant_to,
                                 struct shared_position *start, int64_t deadline_ms);
