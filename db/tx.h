/* A write transaction, and what the writer remembers between two of them: the file's revision,
 * its registry and the fill cache. Internal to db/; one thread, the writer's.
 *
 * Functions here and in the apply_ files return CATALOGUE_OK or a failure of the engine (or of
 * memory), after which the whole transaction is rolled back. What a rule refuses is no failure: it
 * is written into the change's result, and nothing into the file.
 *
 * Invariant: between tx_begin and tx_commit every change of an entry goes through the fill cache,
 * so that pages, segments and peaks are written once, last before COMMIT, with the revision. */
#ifndef SITEMAPD_DB_TX_H
#define SITEMAPD_DB_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "db/catalogue.h"
#include "db/registry.h"
#include "db/statements.h"

/* Names come judged (entry_check_name), but an empty one stands for "none". */
#define TX_SOURCE_CACHE 128

struct fill;

struct tx {
    const struct catalogue_options *options;
    sqlite3 *db;
    struct statements statements;
    struct fill *fill;

    /* As the file says at tx_begin; after tx_commit as we wrote it. */
    char epoch[33];
    uint64_t revision;
    uint64_t registry_revision;
    int64_t serial;     /* steps with each entry made */
    int64_t changed_at; /* of the last transaction */

    /* Of this transaction. */
    int64_t now;           /* never before changed_at */
    int64_t first_serial;  /* entries with a greater one were made in this transaction */
    bool changed;          /* something was written: there will be a revision */
    bool registry_changed; /* sites, hosts, indexes or tokens */

    /* Valid while `registry_of` is the file's registry revision and nothing changed it since. */
    struct registry *registry;
    uint64_t registry_of;
    bool registry_stale;

    /* Lets the writer see to its queue during a long transaction; may be NULL. */
    void (*breathe)(void *context);
    void *breathe_context;
    /* What the engine said when a transaction was rolled back for its sake. */
    char why[160];

    /* The last source name resolved. */
    char source_name[TX_SOURCE_CACHE];
    int64_t source_id; /* 0: none cached */
};

/* Takes the connection (not its ownership). False when out of memory. */
bool tx_init(struct tx *tx, const struct catalogue_options *options, sqlite3 *db);
void tx_done(struct tx *tx);

/* BEGIN IMMEDIATE, and forgets what another process's revision has made untrue. */
enum catalogue_status tx_begin(struct tx *tx);
/* Stamps what changed and commits. Where nothing changed there is no revision. On failure the
 * transaction is gone. */
enum catalogue_status tx_commit(struct tx *tx);
/* Undoes everything. */
void tx_rollback(struct tx *tx);

/* The statement, ready to bind. NULL: return tx_failure(). */
sqlite3_stmt *tx_statement(struct tx *tx, enum statement which);
/* The connection's last error; never OK. */
enum catalogue_status tx_failure(struct tx *tx);

/* The registry as this transaction sees it, borrowed until the next change of it. */
enum catalogue_status tx_registry(struct tx *tx, const struct registry **out);
/* Something of the registry was written. */
void tx_registry_touch(struct tx *tx);

/* The id of a source's name, 0 where there is none and `make` is false. */
enum catalogue_status tx_source(struct tx *tx, const char *name, bool make, int64_t *id);

#endif
