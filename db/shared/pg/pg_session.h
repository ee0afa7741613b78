/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A session with PostgreSQL in which every step has a deadline (clock_now_ms): connecting, sending
 * and waiting use poll(2) on libpq's socket. A session that missed a deadline is dropped, since its
 * answer may come later. A stopped server still acknowledges TCP, so only the deadline detects it.
 * Host names are looked up on a thread (pg_lookup), since libpq has no deadline for that.
 *
 * Statements are sent in batches, one round trip each (libpq's pipeline mode), prepared at their
 * first use. One thread, but for pg_session_interrupt. */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/shared/log.h"
#include "server/base/sql_values.h"
#include "server/base/str.h"

#define PG_LAYOUT     1 /* of the tables (pg_cluster.c) */
#define PG_SALT_BYTES 32
#define PG_BATCH_MAX  16
#define PG_WHY_SIZE   512
#define PG_LOCKED     "55P03" /* the SQLSTATE of lock_timeout */
/* Longest wait for a table that another session has locked: shorter than the deadlines of calls
 * (COMMIT has five seconds), so that PostgreSQL reports the lock. Longer than its deadlock_timeout,
 * after which a lock of autovacuum is released. */
#define PG_TABLE_MS 4000

/* By their names in pg_statements.def. */
enum pg_statement {
#define X(name, sql) PG_##name,
#include "db/shared/pg/pg_statements.def"
#undef X
    PG_STATEMENT_COUNT,
    PG_TEXT = PG_STATEMENT_COUNT, /* not prepared, with its own text (pg_send_text) */
};

struct pg_lookup;

struct pg_session {
    char *epoch;       /* or NULL */
    char *schema;      /* of the log's tables; also the channel of its notifications */
    char *application; /* name of the session in the server's views */
    PQconninfoOption *options;
    size_t hosts;                /* number of hosts in the options; 1 if none exist */
    size_t host;                 /* the last one that worked */
    uint64_t silent;             /* hosts that did not answer lately, one bit each */
    int64_t silent_until_ms;     /* of these bits */
    struct pg_lookup *lookup;    /* of a host's name, or NULL */
    PGconn *conn;                /* or NULL */
    uint8_t salt[PG_SALT_BYTES]; /* of the catalogue, once connected */
    uint64_t number; /* of the connection, one more with each: locks of earlier ones are lost */
    bool is_prepared[PG_STATEMENT_COUNT];
    bool is_founding;    /* the log may not exist yet, and is not checked */
    const char *foreign; /* why the log there is not this catalogue's; public, static; NULL */
    const char *unfit;   /* why this server cannot be used; public, static; NULL */

    struct pg_queued { /* sent and not answered */
        enum pg_statement statement;
        bool prepares; /* after its preparation */
    } queue[PG_BATCH_MAX];
    size_t queued;
    bool queue_failed;

    /* Of the last batch. */
    bool warned; /* the server said WARNING */
    bool fatal;  /* the server said FATAL: the session has ended, the batch may have been applied */
    char sqlstate[6]; /* of the first error, or of a rejected connection; "": none */
    char why[PG_WHY_SIZE];

    int interrupt_fd; /* eventfd: readable for good once interrupted */
    bool is_listening;
};

/* False: see `s->why`; pg_session_done must be called in any case. */
bool pg_session_init(struct pg_session *s, const struct shared_log_options *options);
void pg_session_done(struct pg_session *s);
/* Ends the current and every later call with STOPPED. Any thread. */
void pg_session_interrupt(struct pg_session *s);

/* Connects, unless connected, to the host that last worked or the next one that accepts writes, and
 * checks the epoch of its log. YES, AWAY, FOREIGN or STOPPED. */
enum shared_outcome pg_session_connect(struct pg_session *s, int64_t deadline_ms);
/* Asks the other hosts whether one accepts writes to the same catalogue, too: a standby that was
 * promoted by mistake, or an old primary that runs again. AWAY, and the session is dropped: one
 * does. A connection is not made either while two do. */
enum shared_outcome pg_session_find_rival(struct pg_session *s, int64_t deadline_ms);
void pg_session_drop(struct pg_session *s);
/* As `gist` of struct shared_log_calls. */
const char *pg_session_gist(const struct pg_session *s);

/* Adds a statement with its parameters (numbers, texts and bytes, none NULL) to the current batch.
 * pg_session_run reports failures. */
#define pg_send(s, statement, ...) pg_send_values((s), (statement), SQL_VALUES(__VA_ARGS__))
void pg_send_values(struct pg_session *s, enum pg_statement statement,
                    const struct sql_value *values);
/* Appends a statement's text; the schema replaces each "@". */
void pg_append_sql(const struct pg_session *s, const char *sql, struct str *out);
/* As pg_send, for a statement without parameters and with its own text. */
void pg_send_text(struct pg_session *s, const char *sql);

/* The results of a batch, in order; NULL for statements that were not run. */
struct pg_results {
    PGresult *at[PG_BATCH_MAX];
};
/* Sends the batch and reads its answers. YES: all succeeded. NO: the server rejected a statement,
 * and did not run the ones after it. AWAY: the session was lost and dropped, the outcome of the
 * batch is unknown. STOPPED: interrupted, and dropped. `out` may be NULL; else it must be cleared
 * in any case. */
enum shared_outcome pg_session_run(struct pg_session *s, struct pg_results *out,
                                   int64_t deadline_ms);
void pg_results_clear(struct pg_results *results);

/* Receives the text of a notification; returns whether it counts. */
struct pg_heard {
    bool (*note)(void *context, const char *text);
    void *context;
};
/* Waits for a notification that counts (YES; reads all that have arrived), the deadline (YES), an
 * interrupt, or the loss of the session. */
enum shared_outcome pg_session_wait(struct pg_session *s, const struct pg_heard *heard,
                                    int64_t deadline_ms);

/* A field of a result: an integer or boolean of any size (0 for NULL), bytes, text into `out`. */
int64_t pg_get_integer(const PGresult *r, int row, int column);
const void *pg_get_bytes(const PGresult *r, int row, int column, size_t *size);
void pg_get_text(const PGresult *r, int row, int column, char *out, size_t out_size);
