/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* The log in PostgreSQL (tables: pg_cluster.c): declarations that its files share. A transaction is
 * open from a `begin` that returned YES to its `commit` or `rollback`; it holds the advisory lock
 * "write", and each record is the row after the last one.
 *
 * PostgreSQL grants "write" in order of arrival, but a list keeps it for seconds, so at most one of
 * the waiting transactions may be a list. A list therefore first takes the lock "list", without
 * waiting, and tries again later if it is taken. Sessions share "list" while they apply a list of
 * another node and the small writes that waited for it: otherwise these writes could wait for a
 * second list, too.
 *
 * Sites take turns with lists: each has one place in a line, even if many nodes have lists of it.
 */
#pragma once

#include "db/shared.h"
#include "db/shared/log.h"
#include "db/shared/pg/pg_session.h"
#include "db/shared/record.h"

struct pg_place {
    int site_group; /* NO_SITE_GROUP: no place */
    int64_t number; /* the lowest comes first */
};

struct pg_log {
    struct shared_log log; /* first */
    struct pg_session session;
    char *node;                   /* or NULL */
    struct shared_packer *packer; /* for the current record; made for the first one */
    struct shared_unpacker *unpacker;

    bool has_key;
    uint8_t key[SHARED_KEY_BYTES]; /* of notifications, without the salt */
    struct shared_news *news;      /* received, in order; owned */
    struct shared_news **last_news;
    size_t news_count;

    bool is_open;
    struct shared_position head; /* the record before the current one */
    uint64_t total;              /* packed bytes up to it */
    int64_t parts;               /* of the current one, sent */
    /* Up to this record the connection `durable_number` knows the log to be durable. */
    uint64_t durable, durable_number;
    int64_t clock_offset_ms;  /* from this node's monotonic clock to the server's Unix time */
    int64_t asked_ms;         /* when the transaction last got a query */
    int64_t stay_ms;          /* during a tail: when to send the next query */
    int64_t awaited_since_ms; /* since when another node waits for the lock; 0: none */
    int64_t deadline_ms;      /* of the current call */

    /* Locks that the connection `lists_number` shares. */
    uint64_t lists_number;
    bool keeps_lists_out; /* the lock "list" */
    struct pg_place place;
    bool had_turn; /* its list has begun */

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

/* The key of an advisory lock, which is valid in the whole database: a hash of schema, kind and
 * name. */
int64_t pg_lock_key(const struct pg_log *l, const char *kind, const char *name);
/* Connects if needed and runs the batch (pg_session_run). */
enum shared_outcome pg_log_run(struct pg_log *l, struct pg_results *out, int64_t deadline_ms);
/* Keeps `why` as the reason of the outcome, and returns it. */
enum shared_outcome pg_log_said(struct pg_log *l, enum shared_outcome outcome, const char *why);

/* Idle timeout of a session that keeps others' lists out. */
#define PG_IDLE_MS "10000"
/* Idle timeout of a session that holds names. */
#define PG_HELD_MS "30000"

/* The queue of nodes that wait to write a list. */
/* The key of the line, to which site group and number are added. */
int64_t pg_line_key(const struct pg_log *l);
/* Joins the queue with a list of the group, or stays in it. YES: it is its turn. BUSY: not yet.
 * ELSEWHERE: another node has the group's place. Else AWAY. */
enum shared_outcome pg_line_wait(struct pg_log *l, int site_group, int64_t deadline_ms);
/* Adds to the current batch that the place is given up. */
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
