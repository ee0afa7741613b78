/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Without this macro, sqlite3.h does not declare sqlite3_preupdate_hook. */
#define SQLITE_ENABLE_PREUPDATE_HOOK 1
#include "db/history/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/history.h"
#include "db/history/rows.h"
#include "db/read/row.h"
#include "db/tx/tx.h"

/* Columns of `sitemap`. */
enum column {
    COLUMN_SITE = 1,
    COLUMN_LOC,
    COLUMN_LASTMOD,
    COLUMN_DIGEST,
    COLUMN_SOURCE,
    COLUMN_SERIAL,
    COLUMN_REGISTERED,
    COLUMN_CHANGED,
    COLUMN_EXTENSIONS,
};

/* Counts of a change in one index. */
struct tally {
    int64_t site, index;
    uint64_t created, updated, removed;
};

struct recorder {
    sqlite3 *db;
    bool listens; /* recorder_listen has set the hook */
    bool active;
    bool first_only; /* a dry run */
    bool is_undo;
    bool writing;
    const struct recorder_row *reported; /* borrowed; NULL: none */
    enum catalogue_status status;        /* of the current change: an error while recording */
    struct history_part part;
    uint32_t parts;
    uint64_t rows, bytes, files;
    struct tally *tallies; /* owned */
    size_t tally_count, tally_capacity;
    int64_t urlset, urlset_site; /* looked up last; a list's site never changes */
    struct str packed, filter;
};

bool recorder_is_supported(void)
{
    return sqlite3_compileoption_used("ENABLE_PREUPDATE_HOOK") != 0;
}

/* ---- listening */

typedef int read_value(sqlite3 *db, int column, sqlite3_value **value);

static sqlite3_value *value_of(struct recorder *r, read_value *read, enum column column)
{
    sqlite3_value *value = NULL;
    if (read(r->db, (int)column, &value) != SQLITE_OK)
        r->status = CATALOGUE_NO_MEMORY;
    return value;
}

static int64_t number_of(struct recorder *r, read_value *read, enum column column)
{
    sqlite3_value *value = value_of(r, read, column);
    return value != NULL ? sqlite3_value_int64(value) : 0;
}

/* As a blob: SQLite would copy a text to end it with a NUL. */
static const char *text_of(struct recorder *r, read_value *read, enum column column, size_t *len)
{
    sqlite3_value *value = value_of(r, read, column);
    *len = 0;
    if (value == NULL || sqlite3_value_type(value) == SQLITE_NULL)
        return NULL;
    const char *text = sqlite3_value_blob(value);
    *len = (size_t)sqlite3_value_bytes(value);
    return text != NULL ? text : "";
}

static struct history_text keep_text(struct recorder *r, read_value *read, enum column column)
{
    size_t len;
    const char *text = text_of(r, read, column, &len);
    return history_part_keep(&r->part, text, len);
}

static struct history_image read_image(struct recorder *r, read_value *read, int64_t address)
{
    return (struct history_image){
        .address = address < 0 ? -address : address,
        .source = number_of(r, read, COLUMN_SOURCE),
        .serial = number_of(r, read, COLUMN_SERIAL),
        .registered_at = number_of(r, read, COLUMN_REGISTERED),
        .changed_at = number_of(r, read, COLUMN_CHANGED),
        .lastmod = keep_text(r, read, COLUMN_LASTMOD),
        .digest = keep_text(r, read, COLUMN_DIGEST),
        .extensions = keep_text(r, read, COLUMN_EXTENSIONS),
    };
}

/* Except in an undo, an UPDATE changes only these columns and the address. */
static struct history_image read_updated(struct recorder *r, const struct history_image *before,
                                         int64_t address)
{
    if (r->is_undo)
        return read_image(r, sqlite3_preupdate_new, address);
    struct history_image after = *before;
    after.address = address;
    after.changed_at = number_of(r, sqlite3_preupdate_new, COLUMN_CHANGED);
    after.lastmod = keep_text(r, sqlite3_preupdate_new, COLUMN_LASTMOD);
    after.digest = keep_text(r, sqlite3_preupdate_new, COLUMN_DIGEST);
    after.extensions = keep_text(r, sqlite3_preupdate_new, COLUMN_EXTENSIONS);
    return after;
}

static void record_row(struct recorder *r, int operation, int64_t from, int64_t to)
{
    read_value *read = operation == SQLITE_INSERT ? sqlite3_preupdate_new : sqlite3_preupdate_old;
    bool fresh;
    size_t len;
    int64_t site = number_of(r, read, COLUMN_SITE);
    const char *loc = text_of(r, read, COLUMN_LOC, &len);
    struct history_row *row =
        loc != NULL ? history_part_row(&r->part, site, loc, len, &fresh) : NULL;
    if (row == NULL) {
        r->status = CATALOGUE_NO_MEMORY;
        return;
    }
    struct history_image before = {0};
    if (operation != SQLITE_INSERT && (fresh || operation == SQLITE_UPDATE))
        before = read_image(r, sqlite3_preupdate_old, from);
    if (fresh) {
        row->has_before = operation != SQLITE_INSERT;
        row->before = before;
    }
    row->has_after = operation != SQLITE_DELETE;
    if (operation == SQLITE_INSERT)
        row->after = read_image(r, sqlite3_preupdate_new, to);
    else if (operation == SQLITE_UPDATE)
        row->after = read_updated(r, &before, to);
    if (r->part.failed)
        r->status = CATALOGUE_NO_MEMORY;
}

static struct history_text keep_reported(struct recorder *r, bool has, const char *text)
{
    return history_part_keep(&r->part, has ? text : NULL, has ? strlen(text) : 0);
}

static struct history_image reported_image(struct recorder *r, const struct put_row *row)
{
    return (struct history_image){
        .address = row->address,
        .source = row->source,
        .serial = row->serial,
        .registered_at = row->registered_at,
        .changed_at = row->changed_at,
        .lastmod = keep_reported(r, row->has_lastmod, row->lastmod),
        .digest = keep_reported(r, row->has_digest, row->digest),
        .extensions = keep_reported(r, row->extensions != NULL, row->extensions),
    };
}

static void copy_text(const struct history_part *part, struct history_text from, bool *has,
                      char *out, size_t size)
{
    const char *text = history_text_of(part, from);
    size_t len = text != NULL ? strnlen(text, size - 1) : 0;
    *has = text != NULL;
    memcpy(out, text != NULL ? text : "", len);
    out[len] = '\0';
}

struct put_row recorder_row_of(const struct history_part *part, const struct history_image *image)
{
    struct put_row row = {.found = true,
                          .address = image->address,
                          .source = image->source,
                          .serial = image->serial,
                          .registered_at = image->registered_at,
                          .changed_at = image->changed_at};
    copy_text(part, image->lastmod, &row.has_lastmod, row.lastmod, sizeof row.lastmod);
    copy_text(part, image->digest, &row.has_digest, row.digest, sizeof row.digest);
    row.extensions = history_text_of(part, image->extensions);
    row.extensions_len = image->extensions.len;
    return row;
}

static bool is_recorded(const struct recorder *r, int operation, int64_t from, int64_t to)
{
    const struct recorder_row *reported = r->reported;
    if (reported == NULL || reported->after->address != to)
        return false;
    if (reported->before == NULL)
        return operation == SQLITE_INSERT;
    return operation == SQLITE_UPDATE && reported->before->address == from;
}

static void record_reported(struct recorder *r)
{
    const struct recorder_row *reported = r->reported;
    bool fresh;
    struct history_row *row =
        history_part_row(&r->part, reported->site, reported->loc, reported->loc_len, &fresh);
    if (row != NULL && fresh && reported->before != NULL) {
        row->has_before = true;
        row->before = reported_image(r, reported->before);
    }
    if (row != NULL) {
        row->has_after = true;
        row->after = reported_image(r, reported->after);
    }
    if (row == NULL || r->part.failed)
        r->status = CATALOGUE_NO_MEMORY;
}

/* For a dry run: records the first rows only, so that memory and time are bounded. */
static void record_first(struct recorder *r, int operation, int64_t from)
{
    read_value *read = operation == SQLITE_INSERT ? sqlite3_preupdate_new : sqlite3_preupdate_old;
    bool fresh;
    size_t len;
    if (r->part.count >= CHANGE_PREVIEW_ROWS || r->part.text.len >= CHANGE_PREVIEW_BYTES)
        return;
    int64_t site = number_of(r, read, COLUMN_SITE);
    const char *loc = text_of(r, read, COLUMN_LOC, &len);
    struct history_row *row =
        loc != NULL ? history_part_row(&r->part, site, loc, len, &fresh) : NULL;
    if (row != NULL && fresh && operation != SQLITE_INSERT) {
        row->has_before = true;
        row->before = read_image(r, sqlite3_preupdate_old, from);
    }
    if (row == NULL || r->part.failed)
        r->status = CATALOGUE_NO_MEMORY;
}

void recorder_on_row(void *context, sqlite3 *db, int operation, char const *database,
                     char const *table, sqlite3_int64 from, sqlite3_int64 to)
{
    struct recorder *r = context;
    (void)db;
    if (!(r->active || r->first_only) || r->status != CATALOGUE_OK ||
        strcmp(table, "sitemap") != 0 || strcmp(database, "main") != 0)
        return;
    if (operation != SQLITE_DELETE && to < 0)
        return; /* a parked entry */
    if (r->first_only)
        record_first(r, operation, from);
    else if (is_recorded(r, operation, from, to))
        record_reported(r);
    else
        record_row(r, operation, from, to);
}

void recorder_report(struct recorder *r, const struct recorder_row *row)
{
    if (r != NULL)
        r->reported = row;
}

void recorder_reported(struct recorder *r)
{
    if (r != NULL)
        r->reported = NULL;
}

struct recorder *recorder_new(sqlite3 *db)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->db = db;
    return r;
}

void recorder_listen(struct recorder *r)
{
    r->listens = true;
    sqlite3_preupdate_hook(r->db, recorder_on_row, r);
}

void recorder_free(struct recorder *r)
{
    if (r == NULL)
        return;
    if (r->listens)
        sqlite3_preupdate_hook(r->db, NULL, NULL);
    history_part_done(&r->part);
    free(r->tallies);
    str_done(&r->packed);
    str_done(&r->filter);
    free(r);
}

void recorder_drop(struct recorder *r)
{
    if (r == NULL)
        return;
    r->active = r->first_only = false;
    r->status = CATALOGUE_OK;
    history_part_clear(&r->part);
    r->parts = 0;
    r->rows = r->bytes = r->files = 0;
    r->tally_count = 0;
}

void recorder_begin(struct recorder *r, const struct change *change)
{
    if (r == NULL)
        return;
    recorder_drop(r);
    r->is_undo = change->kind == CHANGE_UNDO || change->kind == CHANGE_RESTORE;
    r->active = !change->dry_run && change->kind != CHANGE_PURGE;
    r->first_only = change->dry_run;
}

enum catalogue_status recorder_first_rows(const struct recorder *r, const struct history_part **out)
{
    *out = r != NULL ? &r->part : NULL;
    return r != NULL ? r->status : CATALOGUE_OK;
}

/* ---- counting */

/* Rows of one index are mostly neighbours. NULL: out of memory. */
static struct tally *tally_of(struct recorder *r, int64_t site, int64_t index)
{
    for (size_t i = r->tally_count; i-- > 0;)
        if (r->tallies[i].index == index && r->tallies[i].site == site)
            return &r->tallies[i];
    if (r->tally_count == r->tally_capacity) {
        size_t capacity = r->tally_capacity ? r->tally_capacity * 2 : 4;
        struct tally *tallies = reallocarray(r->tallies, capacity, sizeof *tallies);
        if (tallies == NULL)
            return NULL;
        r->tallies = tallies;
        r->tally_capacity = capacity;
    }
    r->tallies[r->tally_count] = (struct tally){.site = site, .index = index};
    return &r->tallies[r->tally_count++];
}

enum catalogue_status recorder_count(struct recorder *r, int64_t site, int64_t index,
                                     uint64_t created)
{
    struct tally *tally = r != NULL && r->active ? tally_of(r, site, index) : NULL;
    if (tally != NULL)
        tally->created += created;
    return tally != NULL || r == NULL || !r->active ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

/* The site of a row; for a page URL, of its urlset. */
static enum catalogue_status site_of_row(struct recorder *r, struct tx *tx, int64_t site,
                                         int64_t *out)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (site < 0 && r->urlset != -site) {
        status = tx_number(tx, ST_INDEX_SITE, 0, &r->urlset_site, -site);
        r->urlset = -site;
    }
    *out = site < 0 ? r->urlset_site : site;
    return status;
}

static enum catalogue_status count_row(struct recorder *r, struct tx *tx,
                                       const struct history_row *row)
{
    int64_t site;
    enum catalogue_status status = site_of_row(r, tx, row->site, &site);
    if (status != CATALOGUE_OK)
        return status;
    int64_t from = row->has_before ? id_address_index(row->before.address) : 0;
    int64_t to = row->has_after ? id_address_index(row->after.address) : from;
    if (from != 0 && from != to && tally_of(r, site, from) == NULL)
        return CATALOGUE_NO_MEMORY;
    struct tally *tally = tally_of(r, site, to);
    if (tally == NULL)
        return CATALOGUE_NO_MEMORY;
    if (!row->has_before)
        tally->created++;
    else if (!row->has_after)
        tally->removed++;
    else
        tally->updated++;
    r->rows++;
    return CATALOGUE_OK;
}

static enum catalogue_status count_part(struct recorder *r, struct tx *tx)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (uint32_t i = 0; status == CATALOGUE_OK && i < r->part.count; i++)
        if (!history_row_is_idle(&r->part, &r->part.rows[i]))
            status = count_row(r, tx, &r->part.rows[i]);
    return status;
}

/* ---- writing */

static int64_t revision_of(const struct tx *tx)
{
    return (int64_t)tx->revision + 1;
}

static enum catalogue_status write_part(struct recorder *r, struct tx *tx)
{
    str_clear(&r->packed);
    str_clear(&r->filter);
    if (!history_part_pack(&r->part, &r->packed) || !history_part_filter(&r->part, &r->filter))
        return CATALOGUE_NO_MEMORY;
    r->bytes += r->filter.len + r->packed.len;
    r->parts++;
    return tx_run(tx, ST_HISTORY_PART_ADD, revision_of(tx), r->parts,
                  sql_bytes(str_text(&r->filter), r->filter.len),
                  sql_bytes(str_text(&r->packed), r->packed.len));
}

bool recorder_is_full(const struct recorder *r)
{
    return r != NULL && r->active && !r->writing &&
           (r->part.count >= HISTORY_PART_ROWS || r->part.text.len >= HISTORY_PART_TEXT ||
            r->status != CATALOGUE_OK);
}

enum catalogue_status recorder_status(const struct recorder *r)
{
    return r != NULL ? r->status : CATALOGUE_OK;
}

enum catalogue_status recorder_relieve(struct recorder *r, struct tx *tx)
{
    r->writing = true;
    enum catalogue_status status = r->status;
    if (status == CATALOGUE_OK)
        status = count_part(r, tx);
    if (status == CATALOGUE_OK)
        status = write_part(r, tx);
    if (status == CATALOGUE_OK)
        history_part_clear(&r->part);
    r->writing = false;
    r->status = status;
    return status;
}

void history_report_dropped(char out[HISTORY_GONE_SIZE], uint64_t from)
{
    if (from <= 1)
        snprintf(out, HISTORY_GONE_SIZE, "the history does not have this change");
    else
        snprintf(out, HISTORY_GONE_SIZE,
                 "the history does not have this change, or no longer has it; it begins with "
                 "revision %" PRIu64,
                 from);
}

#define LISTED(kind, name, ...)   __VA_ARGS__ __VA_OPT__(, )
#define LISTED_OF_NONE(kind, ...) __VA_ARGS__ __VA_OPT__(, )
#define WORD(kind, name, ...)     [CHANGE_##kind] = "" __VA_ARGS__,
#define WORD_OF_NONE(kind, ...)   [CHANGE_##kind] = "" __VA_ARGS__,

const char *const history_kinds[] = {CHANGE_KINDS(LISTED, LISTED, LISTED_OF_NONE) "site-freeze",
                                     "site-thaw",
                                     "index-thaw",
                                     "urlset-remove",
                                     "urlset-freeze",
                                     "urlset-thaw",
                                     NULL};

static const char *const words[] = {CHANGE_KINDS(WORD, WORD, WORD_OF_NONE)};

static const char *kind_word(const struct change *change)
{
    bool urlset = change->list == LIST_URLSET;
    if (change->kind == CHANGE_SITE_UPDATE && change->site_update.fields.set == SITE_SET_FROZEN)
        return change->site_update.fields.frozen ? "site-freeze" : "site-thaw";
    if (change->kind == CHANGE_INDEX_FREEZE && !change->index_freeze.frozen)
        return urlset ? "urlset-thaw" : "index-thaw";
    if (change->kind == CHANGE_INDEX_FREEZE && urlset)
        return "urlset-freeze";
    if (change->kind == CHANGE_INDEX_REMOVE && urlset)
        return "urlset-remove";
    return *words[change->kind] != '\0' ? words[change->kind] : "other";
}

/* A source's change within a command counts as the command's, like its scans. */
static const char *via_of(const struct tx *tx, const struct change *change)
{
    if (!tx->options->server)
        return "cli";
    if (change->via != NULL)
        return change->via;
    if (change->kind == CHANGE_SCAN || change->kind == CHANGE_SPLIT || change->kind == CHANGE_CHECK)
        return "source";
    return change->kind == CHANGE_CONFIGURE || change->override_managed ? "config" : "api";
}

static const char *who_of(const struct change *change)
{
    return change->by != NULL ? change->by : change->source != NULL ? change->source : "";
}

/* The index or urlset that the change creates, changes or removes; 0: none. */
static int64_t list_of(const struct change *change, const struct change_result *result)
{
    switch (change->kind) {
    case CHANGE_INDEX_ADD:
    case CHANGE_INDEX_REMOVE:
    case CHANGE_INDEX_FREEZE:
    case CHANGE_URLSET_ADD:
    case CHANGE_URLSET_UPDATE:
        return result->id;
    default:
        return 0;
    }
}

/* Counts a change of an index or a site itself, which may have touched no entry. */
static enum catalogue_status tally_subject(struct recorder *r, struct tx *tx,
                                           const struct change *change,
                                           const struct change_result *result)
{
    int64_t site = 0, index = 0;
    enum catalogue_status status = CATALOGUE_OK;
    switch (change->kind) {
    case CHANGE_INDEX_ADD:
    case CHANGE_INDEX_REMOVE:
    case CHANGE_URLSET_ADD:
    case CHANGE_URLSET_UPDATE:
        index = result->id;
        status = tx_number(tx, ST_INDEX_SITE, 0, &site, index);
        break;
    case CHANGE_INDEX_FREEZE: /* listed for the site: an index lists changes of its entries */
        status = tx_number(tx, ST_INDEX_SITE, 0, &site, result->id);
        break;
    case CHANGE_SITE_ADD:
    case CHANGE_SITE_REMOVE:
    case CHANGE_SITE_IMPORT:
        site = result->id;
        break;
    case CHANGE_SITE_UPDATE:
        site = change->site_update.site_id;
        break;
    case CHANGE_SOURCE_ADD:
    case CHANGE_SOURCE_UPDATE:
    case CHANGE_SOURCE_REMOVE:
        site = result->id;
        break;
    default:
        break;
    }
    if (status != CATALOGUE_OK || site == 0)
        return status;
    struct tally *tally = tally_of(r, site, index);
    if (tally == NULL)
        return CATALOGUE_NO_MEMORY;
    tally->removed += result->removed;
    return CATALOGUE_OK;
}

static enum catalogue_status write_tallies(struct recorder *r, struct tx *tx)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; status == CATALOGUE_OK && i < r->tally_count; i++) {
        const struct tally *t = &r->tallies[i];
        status = tx_run(tx, ST_HISTORY_INDEX_ADD, t->site, revision_of(tx), t->index,
                        (int64_t)t->created, (int64_t)t->updated, (int64_t)t->removed);
    }
    return status;
}

/* Approximate size of a row without its blobs. */
#define ROW_BYTES 100u

/* The one site that the change touched; 0: none, or several. */
static int64_t site_of(const struct recorder *r)
{
    for (size_t i = 1; i < r->tally_count; i++)
        if (r->tallies[i].site != r->tallies[0].site)
            return 0;
    return r->tally_count > 0 ? r->tallies[0].site : 0;
}

static enum catalogue_status write_line(struct recorder *r, struct tx *tx,
                                        const struct change *change,
                                        const struct change_result *result)
{
    uint64_t bytes = r->bytes + r->packed.len + ROW_BYTES + r->tally_count * (ROW_BYTES / 2);
    bool undoes = change->kind == CHANGE_UNDO || change->kind == CHANGE_RESTORE;
    enum catalogue_status status = tx_run(
        tx, ST_HISTORY_ADD, revision_of(tx), tx->now, who_of(change), kind_word(change),
        via_of(tx, change), change->request_id, result->created, result->updated, result->unchanged,
        result->removed, sql_not_0(undoes ? (int64_t)change->undo.revision : 0),
        change->note != NULL ? change->note : change_subject(change), r->rows, r->parts, bytes,
        sql_bytes(r->packed.len > 0 ? str_text(&r->packed) : NULL, r->packed.len), site_of(r),
        result->group, list_of(change, result));
    if (status != CATALOGUE_OK)
        return status;
    tx->history_bytes += (int64_t)bytes;
    return tx_run(tx, ST_HISTORY_SITE_ADD, site_of(r), (int64_t)bytes);
}

/* Writes the rows that are left: those of a small change into its row of `history`, others as the
 * last part. */
static enum catalogue_status write_rest(struct recorder *r, struct tx *tx)
{
    enum catalogue_status status = r->status;
    if (status == CATALOGUE_OK)
        status = count_part(r, tx);
    if (status != CATALOGUE_OK || r->part.count == 0)
        return status;
    if (r->parts > 0 || r->part.count > HISTORY_INLINE_ROWS) {
        status = write_part(r, tx);
        str_clear(&r->packed);
        return status;
    }
    return history_part_pack(&r->part, &r->packed) ? CATALOGUE_OK : CATALOGUE_NO_MEMORY;
}

/* Approximate size of a file's row without its texts. */
#define FILE_BYTES 250u

/* After the statement that keeps it. */
static enum catalogue_status count_file(struct recorder *r, struct tx *tx,
                                        enum catalogue_status status)
{
    uint64_t kept = status == CATALOGUE_OK ? (uint64_t)sqlite3_changes64(tx->db) : 0;
    r->files += kept;
    r->bytes += kept * FILE_BYTES;
    return status;
}

enum catalogue_status recorder_keep_file(struct recorder *r, struct tx *tx, int64_t source,
                                         const char *path, const uint64_t hash[2])
{
    if (r == NULL || !r->active)
        return CATALOGUE_OK;
    return count_file(r, tx, tx_run(tx, ST_HISTORY_FILE_ADD, revision_of(tx), source, path, hash));
}

enum catalogue_status recorder_keep_file_of(struct recorder *r, struct tx *tx, int64_t source,
                                            int64_t site, const char *loc)
{
    if (r == NULL || !r->active)
        return CATALOGUE_OK;
    return count_file(r, tx,
                      tx_run(tx, ST_HISTORY_FILE_ADD_OF, revision_of(tx), site, loc, source));
}

static enum catalogue_status write_all(struct recorder *r, struct tx *tx,
                                       const struct change *change,
                                       const struct change_result *result)
{
    str_clear(&r->packed);
    enum catalogue_status status = write_rest(r, tx);
    if (status == CATALOGUE_OK)
        status = tally_subject(r, tx, change, result);
    if (status == CATALOGUE_OK)
        status = write_tallies(r, tx);
    return status == CATALOGUE_OK ? write_line(r, tx, change, result) : status;
}

enum catalogue_status recorder_end(struct recorder *r, struct tx *tx, const struct change *change,
                                   struct change_result *result)
{
    enum catalogue_status status = CATALOGUE_OK;
    if (r == NULL || !r->active)
        return CATALOGUE_OK;
    r->writing = true;
    if (tx->changed)
        status = write_all(r, tx, change, result);
    else if (r->files > 0) /* a scan that changed no entry: the revision is another change's */
        status = tx_run(tx, ST_HISTORY_FILES_DROP, revision_of(tx), INT64_MAX);
    r->writing = false;
    result->site_id = site_of(r);
    recorder_drop(r);
    return status;
}

/* ---- retention
 *
 * Changes that are too old are dropped. If the history is too large, the site whose changes take
 * most space loses its oldest ones, so that the many lists of one site do not drop what others
 * could undo. All changes of several sites together count as one more site (0). A site always keeps
 * its newest changes: once one of its changes was dropped, or one of several sites that touched it,
 * earlier ones are not reported any more. */

/* Most changes of a batch: about ten milliseconds. */
#define TRIM_CHANGES 500
#define TRIM_PARTS   200
#define TRIM_FILES   2000
/* A change of several sites costs one part of the budget for this many sites. */
#define TRIM_SITES 50

struct oldest {
    bool found;
    int64_t revision, at, parts, bytes, site;
};

struct trim {
    struct tx *tx;
    int64_t budget; /* parts */
    uint64_t dropped;
};

static bool is_too_old(const struct tx *tx, const struct oldest *o, int64_t now)
{
    return o->found && (tx->options->history_keep_ms == 0 ||
                        o->at < now - (int64_t)(tx->options->history_keep_ms / 1000));
}

static bool is_crowded(const struct tx *tx)
{
    return tx->history_bytes > (int64_t)tx->options->history_max_bytes;
}

/* Only HISTORY_OLDEST_OF uses `site`. */
static enum catalogue_status find_oldest(struct tx *tx, enum statement which, int64_t site,
                                         struct oldest *out)
{
    sqlite3_stmt *row;
    enum catalogue_status status =
        which == ST_HISTORY_OLDEST_OF ? tx_first(tx, which, &row, site) : tx_first(tx, which, &row);
    out->found = row != NULL;
    if (row != NULL) {
        out->revision = sqlite3_column_int64(row, 0);
        out->at = sqlite3_column_int64(row, 1);
        out->parts = sqlite3_column_int64(row, 2);
        out->bytes = sqlite3_column_int64(row, 3);
        out->site = sqlite3_column_int64(row, 4);
    }
    sqlite3_reset(row);
    return status;
}

bool recorder_trim_is_due(struct tx *tx)
{
    struct oldest o;
    return is_crowded(tx) || (find_oldest(tx, ST_HISTORY_OLDEST, 0, &o) == CATALOGUE_OK &&
                              is_too_old(tx, &o, tx_clock(tx)));
}

/* Drops the change part by part, from the last one on. It was marked as dropped before, so that
 * nobody reads a change that lacks rows. */
static enum catalogue_status drop_oldest(struct trim *t, const struct oldest *o)
{
    struct tx *tx = t->tx;
    enum catalogue_status status = tx_run(tx, ST_HISTORY_FILES_DROP, o->revision, TRIM_FILES);
    if (status == CATALOGUE_OK && sqlite3_changes64(tx->db) == TRIM_FILES)
        t->budget = 0;
    if (status != CATALOGUE_OK || t->budget == 0)
        return status;
    status = tx_run(tx, ST_HISTORY_PARTS_DROP, o->revision, o->parts - t->budget);
    t->budget -= o->parts;
    if (status != CATALOGUE_OK)
        return status;
    if (t->budget < 0)
        return tx_run(tx, ST_HISTORY_PARTS_LEFT, o->revision, -t->budget);
    status = tx_run(tx, ST_HISTORY_DROP, o->revision);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_HISTORY_SITE_ADD, o->site, -o->bytes);
    tx->history_bytes -= o->bytes;
    t->dropped++;
    return status;
}

static enum catalogue_status drop_too_old(struct trim *t, bool *more)
{
    enum catalogue_status status = CATALOGUE_OK;
    struct oldest o;
    for (int i = 0; status == CATALOGUE_OK && i < TRIM_CHANGES && t->budget > 0; i++) {
        status = find_oldest(t->tx, ST_HISTORY_OLDEST, 0, &o);
        if (status != CATALOGUE_OK || !is_too_old(t->tx, &o, t->tx->now)) {
            *more = false;
            return status;
        }
        t->tx->history_from = (uint64_t)o.revision + 1;
        status = drop_oldest(t, &o);
    }
    return status;
}

/* Before a change is dropped: the history of all sites that it touched begins after it. */
static enum catalogue_status mark_shared_dropped(struct trim *t, int64_t revision)
{
    int64_t sites = 0;
    enum catalogue_status status = tx_number(t->tx, ST_HISTORY_SITES, 0, &sites, 0);
    t->budget -= sites / TRIM_SITES;
    if (t->budget < 1)
        t->budget = 1; /* so that each batch makes progress */
    if (status == CATALOGUE_OK)
        status = tx_run(t->tx, ST_HISTORY_SINCE_TOUCHED, revision);
    return status == CATALOGUE_OK ? tx_run(t->tx, ST_HISTORY_INDEX_DROP_ONE, revision) : status;
}

/* Drops the oldest changes of the site, or (0) of several sites, until the history fits. */
static enum catalogue_status drop_of(struct trim *t, int64_t site)
{
    struct tx *tx = t->tx;
    struct oldest o;
    enum catalogue_status status = CATALOGUE_OK;
    for (int i = 0; i < TRIM_CHANGES && t->budget > 0 && is_crowded(tx); i++) {
        status =
            find_oldest(tx, site == 0 ? ST_HISTORY_OLDEST_SHARED : ST_HISTORY_OLDEST_OF, site, &o);
        if (status == CATALOGUE_OK && !o.found)
            return tx_run(tx, ST_HISTORY_SITE_EMPTY, site);
        if (status == CATALOGUE_OK)
            status = tx_run(tx, ST_HISTORY_SINCE, site, o.revision + 1);
        if (status == CATALOGUE_OK && site == 0)
            status = mark_shared_dropped(t, o.revision);
        bool own = o.site == site;
        uint64_t before = t->dropped;
        if (status == CATALOGUE_OK && own)
            status = drop_oldest(t, &o);
        /* A change of several sites stays, but is hidden from this site. The row by which a change
         * of the site alone is found stays until all of the change was dropped. */
        if (status == CATALOGUE_OK && site != 0 && (!own || t->dropped > before))
            status = tx_run(tx, ST_HISTORY_INDEX_DROP_OF, site, o.revision + 1);
        if (status != CATALOGUE_OK)
            return status;
    }
    return status;
}

static enum catalogue_status drop_of_largest(struct trim *t)
{
    int64_t site;
    enum catalogue_status status = tx_number(t->tx, ST_HISTORY_LARGEST, -1, &site, 0);
    if (status != CATALOGUE_OK)
        return status;
    if (site < 0) { /* no site has a history */
        t->tx->history_bytes = 0;
        return CATALOGUE_OK;
    }
    return drop_of(t, site);
}

/* Records the oldest change that is left as the beginning of the history. */
static enum catalogue_status record_from(struct trim *t)
{
    struct tx *tx = t->tx;
    struct oldest o;
    enum catalogue_status status = find_oldest(tx, ST_HISTORY_OLDEST, 0, &o);
    uint64_t from = o.found ? (uint64_t)o.revision : tx->revision + 1;
    if (from > tx->history_from)
        tx->history_from = from;
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_HISTORY_INDEX_DROP, (int64_t)tx->history_from);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_HISTORY_SITES_TIDY, (int64_t)tx->history_from);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_HISTORY_KEPT, (int64_t)tx->history_from, tx->history_bytes);
    return status;
}

enum catalogue_status recorder_trim(struct tx *tx, bool *more, uint64_t *dropped)
{
    struct trim t = {.tx = tx, .budget = TRIM_PARTS};
    *more = true;
    enum catalogue_status status = drop_too_old(&t, more);
    if (status == CATALOGUE_OK && !*more && is_crowded(tx)) {
        status = drop_of_largest(&t);
        *more = is_crowded(tx);
    }
    *dropped = t.dropped;
    return status == CATALOGUE_OK ? record_from(&t) : status;
}
