/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Imports a site of another catalogue from a file that catalogue_site_copy made and
 * catalogue_site_copy_check accepted (db/catalogue.h). The import has steps, between which others
 * write. Until the last step the site is hidden like a removed one; the last step shows it with all
 * its pages. If a step fails, the rows are purged like those of a removed site.
 *
 * The site is frozen from the first step on: both catalogues serve the same bytes until the proxies
 * have the new map, and neither changes them. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/file/bind.h"
#include "db/file/connection.h"
#include "db/file/site_rows.h"
#include "db/write/apply/apply.h"

/* An id of the file, and the new id; ordered by the first. */
struct pair {
    int64_t from, to;
};

/* Hidden rows are purged after this many seconds, unless another step follows within half of them.
 */
#define LEFTOVER_S 600

static const char COLLIDES[] =
    "conflict: this catalogue already uses a name or position of the copied site";

struct import {
    struct tx *tx;
    sqlite3 *file;
    int64_t site_from, site_to;
    struct pair *lists, *sources; /* owned */
    size_t list_count, source_count;
    enum catalogue_status status; /* why the copy was stopped */
    struct site_rows rows;
    int64_t hidden_at; /* when the purge was last postponed */
    uint64_t done;     /* rows of this step */
    bool yields;       /* the step ends here */
    bool collides;     /* a row conflicts with one of this catalogue */
    bool shown;        /* the last step, which does not yield */
};

/* ---- checking -------------------------------------------------------------------------- */

/* Runs a query on the file and calls `each` for each row until it declines one. */
static enum catalogue_status
for_rows(struct import *i, const char *sql, struct change_result *result,
         void (*each)(struct import *i, sqlite3_stmt *row, const struct registry *r,
                      struct change_result *result),
         const struct registry *r)
{
    sqlite3_stmt *row = NULL;
    int rc = sqlite3_prepare_v2(i->file, sql, -1, &row, NULL);

    while (result->status == CATALOGUE_OK && sql_next(row, &rc))
        each(i, row, r, result);
    sqlite3_finalize(row);
    return connection_status(rc);
}

static const char *text_of(sqlite3_stmt *row, int column)
{
    const char *text = (const char *)sqlite3_column_text(row, column);

    return text ? text : "";
}

static void check_site(struct import *i, sqlite3_stmt *row, const struct registry *r,
                       struct change_result *result)
{
    const char *text = text_of(row, 1);
    size_t robots = (size_t)sqlite3_column_bytes(row, 3);
    struct url origin;

    i->site_from = sqlite3_column_int64(row, 0);
    if (url_parse_origin(text, strlen(text), &origin) != RULE_OK ||
        strcmp(origin.text, text) != 0) {
        result_refuse(result, RULE_ORIGIN, NULL);
        return;
    }
    const struct registry_site *existing = registry_site_by_origin(r, text);
    if (existing) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "conflict: a site with this origin already exists");
        result->id = existing->id;
        return;
    }
    if (site_refuse_second_scheme(r, &origin, result))
        return;
    if (sqlite3_column_int(row, 2)) {
        result_decline(result, CATALOGUE_CONFLICT,
                       "the configuration of the server that it comes from declares the site: "
                       "remove its section there first");
        return;
    }
    for (size_t n = 0; n < r->site_count; n++)
        robots += r->sites[n].robots_len;
    if (robots > SITE_ROBOTS_TOTAL_BYTES)
        result_decline(result, CATALOGUE_FULL,
                       "limit exceeded: the robots.txt of all sites together would exceed 16 MiB");
}

static void check_alias(struct import *i, sqlite3_stmt *row, const struct registry *r,
                        struct change_result *result)
{
    const char *host = text_of(row, 0);

    (void)i;
    bool is_alias = registry_site_of_alias(r, host, NULL) != NULL;
    if (!is_alias && !registry_site_of_host(r, host, NULL))
        return;
    result_decline(result, CATALOGUE_CONFLICT, "");
    snprintf(result->detail, sizeof result->detail,
             "conflict: %.200s is the %s of another site here", host,
             is_alias ? "host alias" : "host");
}

static void check_token(struct import *i, sqlite3_stmt *row, const struct registry *r,
                        struct change_result *result)
{
    (void)i;
    for (size_t n = 0; n < r->token_count; n++) {
        if (strcmp(r->tokens[n].grant.name, text_of(row, 0)) != 0)
            continue;
        result_decline(result, CATALOGUE_CONFLICT, "");
        snprintf(result->detail, sizeof result->detail,
                 "conflict: both catalogues have a token with the name %.64s: revoke one of them",
                 text_of(row, 0));
    }
}

static void check_source(struct import *i, sqlite3_stmt *row, const struct registry *r,
                         struct change_result *result)
{
    const char *name = text_of(row, 0);
    int64_t id = 0, known = 0;

    i->status = tx_source(i->tx, name, false, &id);
    if (i->status == CATALOGUE_OK && id != 0)
        i->status = tx_number(i->tx, ST_SOURCE_IS_KNOWN, 0, &known, id);
    if (!registry_source(r, name) && known == 0)
        return;
    result_decline(result, CATALOGUE_CONFLICT, "");
    snprintf(result->detail, sizeof result->detail,
             "conflict: both catalogues have a source with the name %.64s: remove one of them",
             name);
}

static enum catalogue_status check(struct import *i, struct change_result *result)
{
    static const struct {
        const char *sql;
        void (*each)(struct import *i, sqlite3_stmt *row, const struct registry *r,
                     struct change_result *result);
    } parts[] = {
        {"SELECT id, origin, managed, robots FROM site", check_site},
        {"SELECT host FROM site_host WHERE kind = 'alias'", check_alias},
        {"SELECT name FROM token", check_token},
        {"SELECT name FROM source_made", check_source},
    };
    const struct registry *r;
    enum catalogue_status status = tx_registry(i->tx, &r);

    for (size_t n = 0; n < sizeof parts / sizeof *parts && status == CATALOGUE_OK &&
                       result->status == CATALOGUE_OK;
         n++) {
        status = for_rows(i, parts[n].sql, result, parts[n].each, r);
        if (status == CATALOGUE_OK)
            status = i->status;
    }
    return status;
}

/* ---- ids ------------------------------------------------------------------------------- */

/* Maps the ids that the query returns to the ids after `last`; for sources (`last` -1) to 0: not
 * known yet. */
static enum catalogue_status number_ids(struct import *i, const char *sql, int64_t last,
                                        struct pair **out, size_t *count)
{
    sqlite3_stmt *row = NULL;
    size_t capacity = 0;
    int rc = sqlite3_prepare_v2(i->file, sql, -1, &row, NULL);

    while (sql_next(row, &rc)) {
        if (*count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 64;
            struct pair *grown = realloc(*out, capacity * sizeof *grown);
            if (!grown) {
                rc = SQLITE_NOMEM;
                break;
            }
            *out = grown;
        }
        (*out)[*count] =
            (struct pair){sqlite3_column_int64(row, 0), last >= 0 ? last + (int64_t)*count + 1 : 0};
        ++*count;
    }
    sqlite3_finalize(row);
    return rc == SQLITE_DONE ? CATALOGUE_OK : connection_status(rc);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

static struct pair *find_pair(struct pair *pairs, size_t count, int64_t from)
{
    const struct pair key = {.from = from};

    return pairs ? bsearch(&key, pairs, count, sizeof *pairs, compare_pairs) : NULL;
}

/* The id of the source with that name here; created at its first use. */
static int64_t map_source(struct import *i, int64_t id)
{
    struct pair *pair = find_pair(i->sources, i->source_count, id);
    sqlite3_stmt *row = NULL;

    if (!pair || pair->to != 0)
        return pair ? pair->to : 0;
    int rc = sqlite3_prepare_v2(i->file, "SELECT name FROM source WHERE id = ?1", -1, &row, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(row, 1, id);
    if (rc == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
        i->status = tx_source(i->tx, text_of(row, 0), true, &pair->to);
    sqlite3_finalize(row);
    return i->status == CATALOGUE_OK ? pair->to : 0;
}

static int64_t map(void *context, char what, int64_t id)
{
    struct import *i = context;
    int64_t random;

    switch (what) {
    case 'S':
        return id == i->site_from ? i->site_to : 0;
    case 'L': {
        const struct pair *pair = find_pair(i->lists, i->list_count, id);
        return pair ? pair->to : 0;
    }
    case 'C':
        return map_source(i, id);
    case 'N':
        return ++i->tx->serial;
    case 'R':
        return (int64_t)i->tx->revision + 1;
    case 'X':
        sqlite3_randomness(sizeof random, &random);
        return random;
    case 'H':
        return 1;
    case 'P':
        return apply_purge_date(i->tx, LEFTOVER_S);
    default:
        return FREEZE_ARRIVING;
    }
}

/* The checks between two statements of a change (tx.c). */
static bool may_continue(void *context)
{
    struct import *i = context;
    struct tx_shared *shared = i->tx->shared;

    if (shared)
        atomic_fetch_add_explicit(&shared->statements, 1, memory_order_relaxed);
    if (shared && atomic_load_explicit(&shared->abandoned, memory_order_relaxed))
        i->status = CATALOGUE_CANCELLED;
    else
        i->status = i->tx->listeners->relieve(i->tx);
    i->yields = !i->shown && ++i->done % APPLY_LOOK == 0 &&
                (i->done >= SPLIT_STEP_ROWS || tx_should_yield(i->tx));
    return i->status == CATALOGUE_OK && !i->yields;
}

/* ---- the change ------------------------------------------------------------------------ */

static void import_free(void *context)
{
    struct import *i = context;

    if (i == NULL)
        return;
    site_rows_done(&i->rows);
    connection_close(i->file);
    free(i->lists);
    free(i->sources);
    free(i);
}

/* The first step: maps the ids. */
static enum catalogue_status begin(struct import *i)
{
    int64_t site = 0, list = 0;
    enum catalogue_status status = tx_number(i->tx, ST_ID_LAST, 0, &site, 0);

    if (status == CATALOGUE_OK)
        status = tx_number(i->tx, ST_ID_LAST, 0, &list, 1);
    i->site_to = site + 1;
    i->hidden_at = tx_clock(i->tx);
    if (status == CATALOGUE_OK)
        status = number_ids(i, "SELECT id FROM sitemap_index ORDER BY id", list, &i->lists,
                            &i->list_count);
    if (status == CATALOGUE_OK)
        status =
            number_ids(i, "SELECT id FROM source ORDER BY id", -1, &i->sources, &i->source_count);
    i->rows = (struct site_rows){
        .from = i->file, .site = i->site_from, .map = map, .each = may_continue, .context = i};
    return status;
}

/* A further step: postpones the purge. */
static enum catalogue_status stay_hidden(struct import *i)
{
    int64_t now = tx_clock(i->tx);

    if (now - i->hidden_at < LEFTOVER_S / 2)
        return CATALOGUE_OK;
    i->hidden_at = now;
    return tx_run(i->tx, ST_SITE_HIDE_UNTIL, i->site_to, apply_purge_date(i->tx, LEFTOVER_S));
}

/* `*ended`: the whole part was copied. */
static enum catalogue_status copy_part(struct import *i, enum site_part part, bool *ended)
{
    int rc;

    i->rows.to = i->tx->db;
    i->status = CATALOGUE_OK;
    i->yields = false;
    rc = site_rows_copy(&i->rows, part);
    *ended = rc == SQLITE_OK;
    if (rc == SQLITE_OK || i->status != CATALOGUE_OK)
        return i->status;
    if (rc == SQLITE_ABORT) /* or a row has an id that the file does not have */
        return i->yields ? CATALOGUE_OK : CATALOGUE_CORRUPT;
    i->collides = (rc & 0xff) == SQLITE_CONSTRAINT;
    if (i->collides) /* a row of the copy conflicts with one here: this catalogue is sound */
        return CATALOGUE_OK;
    return connection_status(rc) != CATALOGUE_OK ? connection_status(rc) : CATALOGUE_UNAVAILABLE;
}

/* Frees the names of removed sources, and of the sources that this site had when it was removed
 * here, with the results of polls of their lists. */
static void forget_removed(struct import *i, sqlite3_stmt *row, const struct registry *r,
                           struct change_result *result)
{
    (void)r;
    (void)result;
    i->status = tx_run(i->tx, ST_SOURCE_MADE_FORGET, text_of(row, 0), i->site_to);
    if (i->status == CATALOGUE_OK)
        i->status = tx_run(i->tx, ST_SOURCE_LIST_FORGET, text_of(row, 0));
}

/* The last step: checks names again, since others may use them now. */
static enum catalogue_status show(struct import *i, struct change_result *result)
{
    bool ended;
    enum catalogue_status status = check(i, result);

    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    i->shown = true;
    status = for_rows(i, "SELECT name FROM source_made", result, forget_removed, NULL);
    if (status == CATALOGUE_OK)
        status = i->status;
    if (status == CATALOGUE_OK)
        status = copy_part(i, SITE_ROWS_ALL, &ended);
    if (status == CATALOGUE_OK && i->collides)
        result_decline(result, CATALOGUE_CONFLICT, COLLIDES);
    if (status != CATALOGUE_OK || i->collides)
        return status;
    status = tx_run(i->tx, ST_SITE_SHOW_LISTS, i->site_to);
    if (status == CATALOGUE_OK)
        status = tx_run(i->tx, ST_SITE_UNREMOVE, i->site_to);
    tx_registry_touch(i->tx);
    return status;
}

static enum catalogue_status copy_rows(struct import *i, struct change_result *result)
{
    uint64_t before = i->rows.entries;
    bool ended = false;

    i->done = 0;
    i->tx->changed = true;
    result->id = 0; /* of an earlier step; a conflict in this one is not about an existing site */
    enum catalogue_status status = copy_part(i, SITE_ROWS_HIDDEN, &ended);
    if (status == CATALOGUE_OK && ended)
        status = show(i, result);
    else if (status == CATALOGUE_OK && i->collides)
        result_decline(result, CATALOGUE_CONFLICT, COLLIDES);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;
    result->id = i->site_to;
    result->created = i->rows.entries - before;
    result->changed = true;
    result->more = !ended;
    if (result->more || result->group != 0)
        status = tx_record_step(i->tx, &result->group);
    return status;
}

enum catalogue_status apply_site_import(struct tx *tx, const struct change *change,
                                        const struct change_site_import *import,
                                        struct change_result *result, bool *keep)
{
    bool first = !result->more;
    struct import *i = first ? calloc(1, sizeof *i) : result->steps;
    enum catalogue_status status = CATALOGUE_OK;
    char why[256];

    if (i == NULL)
        return CATALOGUE_NO_MEMORY;
    result->steps = i;
    result->steps_free = import_free;
    result->more = false;
    i->tx = tx;
    if (change->grant.site_id != 0)
        result_forbid(result);
    else if (first)
        status = connection_open(import->file, CONNECTION_READ, &i->file, why, sizeof why);
    else
        status = stay_hidden(i);
    if (first && status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = check(i, result);
    if (first && status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = begin(i);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = copy_rows(i, result);
    *keep = result->status == CATALOGUE_OK; /* a rejected last step shows nothing */
    if (status == CATALOGUE_OK && !result->more) {
        import_free(i);
        result->steps = NULL;
    }
    return status;
}
