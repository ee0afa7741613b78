/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A session with PostgreSQL whose every step has an end: connecting, asking and waiting are poll(2)
 * on libpq's socket until a deadline (clock_now_ms), and a session that missed one is dropped,
 * since what it was asked may come yet. A stopped server still acknowledges TCP; only the own clock
 * says so. (What libpq has no step for is the look-up of a host's name: the resolver's own limits
 * hold.)
 *
 * Statements are sent in batches, one round trip each (libpq's pipeline mode), prepared at their
 * first use. One thread, but for pg_session_interrupt. */
#pragma once

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/shared/log.h"
#include "server/base/str.h"

/* Host names to addresses, with an end: the resolver's own is many seconds where a name server is
 * silent, and libpq would wait for it. One thread for one look-up. */

#define PG_LOOKUP_MOST 8 /* addresses of a name that are tried */
#define PG_NAME_SIZE   256

/* The one under way, or NULL; pg_lookup_free takes that too. One that was not waited for goes on by
 * itself, and its answer serves the next call for the name. */
struct pg_lookup;

/* True where `host` is a name that somebody has to be asked for: no address, no socket's path. */
bool pg_lookup_is_needed(const char *host);
/* Makes of a name two lists that libpq takes, equally long: its addresses, and the name as often.
 * Ends soon once `stop_fd` is readable.
 * Static text that says why not, or NULL: done. */
const char *pg_lookup(struct pg_lookup **lookup, const char *name, int64_t deadline_ms, int stop_fd,
                      char addresses[PG_LOOKUP_MOST * 64],
                      char names[PG_LOOKUP_MOST * PG_NAME_SIZE]);
void pg_lookup_free(struct pg_lookup *lookup);

#define PG_LAYOUT    1 /* of the tables (pg_cluster.c) */
#define PG_BATCH_MAX 16
#define PG_WHY_SIZE  512

/* By their names in pg_statements.def. */
enum pg_statement {
#define X(name, sql) PG_##name,
#include "db/shared/pg/pg_statements.def"
#undef X
    PG_STATEMENT_COUNT,
    PG_TEXT = PG_STATEMENT_COUNT, /* one of its own text, not prepared (pg_send_text) */
};

struct pg_lookup;

struct pg_session {
    char *epoch;       /* or NULL */
    char *schema;      /* of the log's tables; also the channel of its notifications */
    char *application; /* how the server's views call the session */
    PQconninfoOption *options;
    size_t hosts;             /* that the options name; 1 where it names none */
    size_t host;              /* the last that was good */
    struct pg_lookup *lookup; /* of a host's name, or NULL */
    PGconn *conn;             /* or NULL */
    uint64_t
        number; /* of the connection, one more with each: what it held went with the last one */
    bool is_prepared[PG_STATEMENT_COUNT];
    bool is_founding;    /* there may be no log yet: it is not looked at */
    const char *foreign; /* why the log there is not this catalogue's, for anybody; static; NULL */
    const char *unfit;   /* why this server cannot be used, for anybody; static; NULL */

    struct pg_queued { /* sent and not answered */
        enum pg_statement statement;
        bool prepares; /* and its preparing before it */
    } queue[PG_BATCH_MAX];
    size_t queued;
    bool queue_failed;

    /* Of the last batch. */
    bool warned;      /* the server said WARNING */
    bool fatal;       /* and FATAL: the session is over, and what it was about may have happened */
    char sqlstate[6]; /* of the first error, or of a server that does not let in; "" none */
    char why[PG_WHY_SIZE];

    int interrupt_fd; /* eventfd: readable for good once interrupted */
    bool is_listening;
};

/* False: `s->why` says why; pg_session_done is to be called all the same. */
bool pg_session_init(struct pg_session *s, const struct shared_log_options *options);
void pg_session_done(struct pg_session *s);
/* Every call under way or later ends with STOPPED. Any thread. */
void pg_session_interrupt(struct pg_session *s);

/* Makes sure of a connection: to the host that was last good, or the next that takes writes; the
 * log there is this epoch's. AWAY, FOREIGN, NO_MEMORY. Waits only where there is none. */
enum shared_outcome pg_session_connect(struct pg_session *s, int64_t deadline_ms);
void pg_session_drop(struct pg_session *s);
/* As `gist` of struct shared_log_calls. */
const char *pg_session_gist(const struct pg_session *s);

/* A parameter in binary. */
struct pg_value {
    const void *bytes;
    int size;
    char integer[8];
};
struct pg_value pg_integer(int64_t value);
struct pg_value pg_text(const char *text); /* borrowed */
struct pg_value pg_bytes(const void *bytes, size_t size);

/* Puts a statement into the batch under way. What goes wrong shows in pg_session_run. */
void pg_send(struct pg_session *s, enum pg_statement statement, const struct pg_value *values,
             int count);
/* Appends a statement's text, with the schema in place of each "@". */
void pg_append_sql(const struct pg_session *s, const char *sql, struct str *out);
/* As pg_send for a statement without parameters whose text is made. */
void pg_send_text(struct pg_session *s, const char *sql);

/* The results of a batch by their place in it; NULL where it did not come to that. */
struct pg_results {
    PGresult *at[PG_BATCH_MAX];
};
/* Sends the batch and takes its answers. YES: all went well. NO: the server refused one, and
 * whatever came after it was not looked at. AWAY: the session is gone (dropped), the result of the
 * batch is not known. STOPPED: interrupted, and dropped. `out` may be NULL; else it is to be
 * cleared in any case. */
enum shared_outcome pg_session_run(struct pg_session *s, struct pg_results *out,
                                   int64_t deadline_ms);
void pg_results_clear(struct pg_results *results);

/* Takes the text of a notification: whether it counts. */
struct pg_heard {
    bool (*note)(void *context, const char *text);
    void *context;
};
/* Until a notification that counts is there (YES; all that are there are taken), the deadline
 * (YES), an interrupt, or the session is lost. */
enum shared_outcome pg_session_wait(struct pg_session *s, const struct pg_heard *heard,
                                    int64_t deadline_ms);

/* A field of a result: an integer or boolean of any size (0 for NULL), bytes, text into `out`. */
int64_t pg_get_integer(const PGresult *r, int row, int column);
const void *pg_get_bytes(const PGresult *r, int row, int column, size_t *size);
void pg_get_text(const PGresult *r, int row, int column, char *out, size_t out_size);
