/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Lends read connections to views, and reopens them after the file was replaced. */
#include "db/read/view_pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/connection.h"
#include "db/file/handle.h"

/* ---- connections ----------------------------------------------------------------------- */

sqlite3_stmt *view_statement(struct catalogue_view *v, const char *sql)
{
    size_t at = (size_t)((uintptr_t)sql / 16 % VIEW_STATEMENTS), tried = 0;

    for (; v->statements[at].sql != NULL && v->statements[at].sql != sql; tried++) {
        if (tried == VIEW_STATEMENTS)
            return NULL; /* more texts than VIEW_STATEMENTS: a programmer's mistake */
        at = (at + 1) % VIEW_STATEMENTS;
    }
    if (v->statements[at].prepared != NULL) {
        sqlite3_reset(v->statements[at].prepared);
        sqlite3_clear_bindings(v->statements[at].prepared);
        return v->statements[at].prepared;
    }
    v->statements[at].sql = sql;
    v->statements[at].prepared = connection_prepare(v->db, sql);
    return v->statements[at].prepared;
}

enum catalogue_status view_number(struct catalogue_view *v, sqlite3_stmt *row, int rc, int64_t *out)
{
    *out = sql_next(row, &rc) ? sqlite3_column_int64(row, 0) : 0;
    return view_end_statement(v, row, rc);
}

enum catalogue_status view_status(struct catalogue_view *v, int sqlite_result)
{
    int result = sqlite_result;

    if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE)
        return CATALOGUE_OK;
    if (result == SQLITE_ERROR && sqlite3_errcode(v->db) != SQLITE_OK)
        result = sqlite3_extended_errcode(v->db);
    v->broken = (result & 0xff) != SQLITE_BUSY;
    return connection_status(result);
}

enum catalogue_status view_end_statement(struct catalogue_view *v, sqlite3_stmt *row, int rc)
{
    if (row != NULL) {
        sqlite3_reset(row);
        sqlite3_clear_bindings(row);
    }
    return view_status(v, rc);
}

static void close_view(struct catalogue_view *v)
{
    for (size_t i = 0; i < VIEW_STATEMENTS; i++)
        sqlite3_finalize(v->statements[i].prepared);
    memset(v->statements, 0, sizeof v->statements);
    connection_close(v->db);
    v->db = NULL;
    v->broken = false;
}

static int run_sql(struct catalogue_view *v, const char *sql)
{
    sqlite3_stmt *statement = view_statement(v, sql);
    int rc = statement != NULL ? sqlite3_step(statement) : sqlite3_extended_errcode(v->db);

    if (statement != NULL)
        sqlite3_reset(statement);
    return rc;
}

/* BEGIN alone reads nothing: the first read fixes the snapshot. */
static enum catalogue_status begin_read(struct catalogue_view *v)
{
    enum catalogue_status status = view_status(v, run_sql(v, "BEGIN"));

    if (status != CATALOGUE_OK)
        return status;
    sqlite3_stmt *row =
        view_statement(v, "SELECT epoch, revision, registry_revision FROM catalogue WHERE one = 1");
    int rc = sql_bind(row);
    if (sql_next(row, &rc)) {
        const char *epoch = (const char *)sqlite3_column_text(row, 0);
        snprintf(v->epoch, sizeof v->epoch, "%s", epoch != NULL ? epoch : "");
        v->revision = (uint64_t)sqlite3_column_int64(row, 1);
        v->registry_revision = (uint64_t)sqlite3_column_int64(row, 2);
        sqlite3_reset(row);
        return CATALOGUE_OK;
    }
    status = rc == SQLITE_DONE ? CATALOGUE_CORRUPT : view_status(v, rc);
    v->broken = v->broken || status == CATALOGUE_CORRUPT;
    return status;
}

/* Opens the path if it names `identity` (invariant 3). */
static enum catalogue_status connect(const char *path, const struct file_identity *identity,
                                     sqlite3 **out, char *why, size_t why_size)
{
    *out = NULL;
    if (file_identity_holds(path, identity))
        return connection_open(path, CONNECTION_READ, out, why, why_size);
    snprintf(why, why_size, "%s: is gone or was replaced", path);
    return CATALOGUE_UNAVAILABLE;
}

static enum catalogue_status open_view(struct catalogue_view *v, uint64_t generation,
                                       const struct file_identity *identity)
{
    char why[256];

    if (v->db != NULL && v->generation == generation)
        return CATALOGUE_OK;
    close_view(v);
    v->generation = generation;
    return connect(v->pool->catalogue->path, identity, &v->db, why, sizeof why);
}

/* ---- the pool -------------------------------------------------------------------------- */

enum catalogue_status view_pool_new(struct catalogue *c, struct view_pool **out, char *why,
                                    size_t why_size)
{
    struct view_pool *pool = calloc(1, sizeof *pool);

    *out = NULL;
    if (pool == NULL)
        return CATALOGUE_NO_MEMORY;
    pool->catalogue = c;
    pool->generation = 1;
    if (!file_identity_read(c->path, &pool->identity)) {
        snprintf(why, why_size, "%s: is gone", c->path);
        free(pool);
        return CATALOGUE_UNAVAILABLE;
    }
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->freed, NULL);
    for (size_t i = 0; i < CATALOGUE_VIEWS; i++)
        pool->views[i].pool = pool;
    *out = pool;
    return CATALOGUE_OK;
}

void view_pool_free(struct view_pool *pool)
{
    if (pool == NULL)
        return;
    for (size_t i = 0; i < CATALOGUE_VIEWS; i++)
        close_view(&pool->views[i]);
    registry_unref(pool->registry);
    pthread_cond_destroy(&pool->freed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

void view_pool_lose(struct view_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->lost = true;
    pthread_cond_broadcast(&pool->freed); /* waiting callers fail at once */
    pthread_mutex_unlock(&pool->lock);
}

void view_pool_renew(struct view_pool *pool, const struct file_identity *identity)
{
    struct registry *stale;

    pthread_mutex_lock(&pool->lock);
    pool->identity = *identity;
    pool->generation++;
    pool->lost = false;
    pool->entries_known = false;
    stale = pool->registry;
    pool->registry = NULL;
    pthread_mutex_unlock(&pool->lock);
    registry_unref(stale);
}

enum catalogue_status view_pool_connect(struct view_pool *pool, sqlite3 **out, char *why,
                                        size_t why_size)
{
    struct file_identity identity;

    pthread_mutex_lock(&pool->lock);
    identity = pool->identity;
    pthread_mutex_unlock(&pool->lock);
    return connect(pool->catalogue->path, &identity, out, why, why_size);
}

/* The first free view, so that a small load opens few connections. */
static struct catalogue_view *free_view(struct view_pool *pool)
{
    for (size_t i = 0; i < CATALOGUE_VIEWS; i++) {
        if (!pool->views[i].lent)
            return &pool->views[i];
    }
    return NULL;
}

enum catalogue_status catalogue_view_begin(struct catalogue *c, struct catalogue_view **out)
{
    struct view_pool *pool = c->views;
    struct catalogue_view *v = NULL;
    struct file_identity identity;
    enum catalogue_status status;
    uint64_t generation;

    *out = NULL;
    pthread_mutex_lock(&pool->lock);
    while (!pool->lost && (v = free_view(pool)) == NULL)
        pthread_cond_wait(&pool->freed, &pool->lock);
    if (pool->lost) {
        pthread_mutex_unlock(&pool->lock);
        return CATALOGUE_UNAVAILABLE;
    }
    v->lent = true;
    generation = pool->generation;
    identity = pool->identity;
    pthread_mutex_unlock(&pool->lock);

    status = open_view(v, generation, &identity);
    if (status == CATALOGUE_OK)
        status = begin_read(v);
    if (status != CATALOGUE_OK) {
        catalogue_view_end(v);
        return status;
    }
    *out = v;
    return CATALOGUE_OK;
}

void catalogue_view_end(struct catalogue_view *v)
{
    struct view_pool *pool;

    if (v == NULL)
        return;
    pool = v->pool;
    /* A statement that is not reset would keep the transaction open, and the log could not restart.
     */
    for (size_t i = 0; i < VIEW_STATEMENTS; i++)
        sqlite3_reset(v->statements[i].prepared);
    if (v->db != NULL && !v->broken && !sqlite3_get_autocommit(v->db))
        view_status(v, run_sql(v, "COMMIT"));
    if (v->broken || (v->db != NULL && !sqlite3_get_autocommit(v->db)))
        close_view(v);
    pthread_mutex_lock(&pool->lock);
    v->lent = false;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}
