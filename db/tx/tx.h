/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* A write transaction, and the state that the writer keeps between transactions: the file's
 * revision, its registry and the occupancy. Internal to db/; one thread, the writer's.
 *
 * Functions here and those named apply_ return CATALOGUE_OK or a failure of SQLite (or of memory),
 * after which the whole transaction is rolled back. A rejection by a rule is not a failure: the
 * change's result reports it, and nothing is written. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/registry.h"
#include "db/tx/statements.h"

/* Longest source name that is cached. Names were checked (entry_check_name); "" means none. */
#define TX_SOURCE_CACHE 128

/* Stamps that the lineage (the file's last transactions) keeps: the catalogue's row then still fits
 * on its page of 4 KiB. */
#define TX_LINEAGE 200

/* How a long change is applied: see rehearsal.c. */
enum tx_turn {
    TX_FIRST_TRY, /* in the writer, which stops it if others wait and it has not written yet */
    TX_REHEARSAL, /* on a private connection; ends at the first write, unless it is a dry run */
    TX_DECIDED,   /* in the writer: the change writes nothing; its answer is stored or confirmed */
    TX_FINAL,     /* in the writer, to its end */
};

struct effects;
struct occupancy;
struct put_run;
struct recorder;
struct tx;

/* Of a shared catalogue (db/shared/member.h): publishes a transaction to other nodes. */
struct tx_log {
    struct effects *effects; /* record from tx_begin on; borrowed */
    /* Between the stamp and COMMIT: publishes the effects to the other nodes. */
    enum catalogue_status (*append)(void *context, struct tx *tx);
    /* The transaction was rolled back. */
    void (*drop)(void *context);
    /* The log's clock, Unix seconds; 0: not known in this transaction. */
    int64_t (*clock)(void *context);
    void *context;
};

/* The recorders of the rows that a transaction writes (history, effects). `relieve` is called
 * before a statement and may write recorded rows to the file; a failure fails the transaction. */
struct tx_listeners {
    enum catalogue_status (*relieve)(struct tx *tx);
    enum catalogue_status (*status)(const struct tx *tx);
};

/* Members that other threads read and set. */
struct tx_shared {
    /* Number of statements run: the cost of changes, independent of time. */
    atomic_uint_fast64_t statements;
    /* Only COMMIT and ROLLBACK may begin: a change under way fails and is rolled back. */
    atomic_bool abandoned;
};

struct tx {
    const struct catalogue_options *options;
    sqlite3 *db;
    struct statements statements;
    struct occupancy *occupancy;
    struct recorder *recorder;            /* NULL: no history is kept */
    const struct tx_listeners *listeners; /* static */
    const struct tx_log *log;             /* borrowed; NULL: the catalogue is not shared */

    /* As read at tx_begin, and as written at tx_commit. */
    char epoch[33];
    uint64_t revision; /* one more with each change that wrote something, see tx_end_change */
    uint64_t registry_revision;
    int64_t serial;        /* one more with each new entry */
    int64_t changed_at;    /* of the last transaction, as its clock said */
    char stamp[17];        /* the newest of the lineage, "": none */
    uint64_t history_from; /* the history begins at this revision */
    int64_t history_bytes; /* approximate size of the history */

    /* Of this transaction. */
    bool open;               /* it began, and was neither committed nor rolled back */
    uint64_t found_revision; /* of the file, when it began */
    int64_t drawn;           /* random: its stamp, and that of the pages that it writes */
    int64_t now;             /* of tx_clock, which may have been set back since changed_at */
    int64_t first_serial;    /* entries with a greater one were made in this transaction */
    int64_t stamped_at;      /* the date of its changes (tx_date); 0: not drawn yet */
    bool changed;            /* the change under way wrote something: it gets a revision */
    bool registry_changed;   /* sites, hosts, indexes or tokens were written */

    /* Valid while `registry_of` is the file's registry revision and the registry was not changed.
     */
    struct registry *registry;
    uint64_t registry_of;
    bool registry_stale;

    struct tx_shared *shared; /* borrowed; may be NULL */
    /* True if changes of this site's tokens must end, since others wait; NULL: never. */
    bool (*is_pressed)(void *context, int64_t token_site_id);
    /* True if the current step of a change must end, since others wait; NULL: never. */
    bool (*gives_way)(void *context);
    /* True if the disk has no room for what a site's token adds; NULL: never. */
    bool (*is_short)(void *context);
    void *pressed_context; /* of all three */
    /* SQLite's message, if its failure rolled the transaction back. */
    char why[160];

    /* Extensions of the row that was read last (put_row_read). */
    char extensions[EXTENSIONS_MAX_BYTES + 1];

    int64_t clock_offset; /* seconds from this node's clock to the log's, as last measured */

    enum tx_turn rehearsal; /* of the change under way */
    struct put_run *run;    /* the statement of put_run.c under way; NULL: none */

    size_t expire_turn; /* place in registry.sites of the site that expiry begins with next */

    /* The last source name resolved. */
    char source_name[TX_SOURCE_CACHE];
    int64_t source_id; /* 0: none cached */
};

/* Whether a change in steps should end the current step, so that other writes have their turn. */
bool tx_should_yield(const struct tx *tx);
/* Adds the revision that the current step will get to the change's group. `*group` is 0 for the
 * first step, which sets it. */
enum catalogue_status tx_record_step(struct tx *tx, uint64_t *group);
/* The catalogue's clock, Unix seconds: in a shared catalogue the log's, since nodes compare each
 * other's dates (idempotency keys, history, page URLs that expire). */
int64_t tx_clock(const struct tx *tx);
/* Measures clock_offset at the beginning of a transaction. */
void tx_check_clock(struct tx *tx);
/* The date of all pages that the transaction changes: the clock at the first call, which comes as
 * late as possible. */
int64_t tx_date(struct tx *tx);
/* Run a statement with these parameters (db/file/bind.h): to its end; to its first row, which the
 * caller resets (`*row` NULL: none); or to write the first column of its only row, or `missing`. */
#define tx_run(tx, which, ...)        tx_run_values((tx), (which), SQL_VALUES(__VA_ARGS__))
#define tx_first(tx, which, row, ...) tx_first_values((tx), (which), (row), SQL_VALUES(__VA_ARGS__))
#define tx_number(tx, which, missing, out, ...)                                                    \
    tx_number_values((tx), (which), (missing), (out), SQL_VALUES(__VA_ARGS__))
enum catalogue_status tx_run_values(struct tx *tx, enum statement which,
                                    const struct sql_value *values);
enum catalogue_status tx_first_values(struct tx *tx, enum statement which, sqlite3_stmt **row,
                                      const struct sql_value *values);
enum catalogue_status tx_number_values(struct tx *tx, enum statement which, int64_t missing,
                                       int64_t *out, const struct sql_value *values);
/* The statement with these parameters, for statement_first. NULL: return tx_failure(). */
#define tx_bind(tx, which, ...) tx_bind_values((tx), (which), SQL_VALUES(__VA_ARGS__))
sqlite3_stmt *tx_bind_values(struct tx *tx, enum statement which, const struct sql_value *values);
/* The recorder's failure, else the connection's last error; never OK. */
enum catalogue_status tx_failure(struct tx *tx);

/* The registry as this transaction sees it, borrowed until the registry is changed. */
enum catalogue_status tx_registry(struct tx *tx, const struct registry **out);
/* Call it after a write to the registry. */
void tx_registry_touch(struct tx *tx);

/* The id of a source's name; 0: unknown, and `make` is false. */
enum catalogue_status tx_source(struct tx *tx, const char *name, bool make, int64_t *id);
