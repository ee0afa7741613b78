#include <string.h>

#include "db/scan.h"

/* The words of enum source_file_state are numbers in the file. */
_Static_assert(SOURCE_FILE_LISTED == 0 && SOURCE_FILE_EMPTY == 1 && SOURCE_FILE_IGNORED == 2 &&
                   SOURCE_FILE_QUARANTINED == 3,
               "as released files say");

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = from ? strnlen(from, size - 1) : 0;
    memcpy(to, from ? from : "", len);
    to[len] = '\0';
}

enum catalogue_status scan_row_read(struct scan *s)
{
    struct scan_kept *kept = &s->kept;
    kept->found = false;
    sqlite3_stmt *row = tx_statement(s->tx, ST_FILE_READ);
    if (!row)
        return tx_failure(s->tx);
    sqlite3_bind_int64(row, 1, s->owner);
    statement_bind_text(row, 2, s->file->path);
    enum catalogue_status status = statement_first(row, &kept->found);
    if (kept->found) {
        kept->state = (enum source_file_state)sqlite3_column_int(row, 0);
        kept->site = sqlite3_column_int64(row, 1);
        kept->has_loc = sqlite3_column_type(row, 2) != SQLITE_NULL;
        copy_text(kept->loc, sizeof kept->loc, (const char *)sqlite3_column_text(row, 2));
        copy_text(kept->problem, sizeof kept->problem, (const char *)sqlite3_column_text(row, 3));
        kept->problem_since = sqlite3_column_int64(row, 4);
    }
    sqlite3_reset(row);
    return status;
}

static void count_state(struct scan *s, enum source_file_state state, int64_t by)
{
    s->files += by;
    if (state == SOURCE_FILE_LISTED)
        s->listed += by;
    else if (state == SOURCE_FILE_QUARANTINED)
        s->quarantined += by;
}

static void count_change(struct scan *s, enum source_file_state state)
{
    if (s->kept.found)
        count_state(s, s->kept.state, -1);
    if (state != SOURCE_FILE_GONE)
        count_state(s, state, 1);
}

/* A problem is as old as its word. */
static int64_t since(const struct scan *s, const char *problem)
{
    bool same = s->kept.found && s->kept.state == SOURCE_FILE_QUARANTINED && problem &&
                strncmp(s->kept.problem, problem, SCAN_PROBLEM_SIZE - 1) == 0;
    return same ? s->kept.problem_since : s->tx->now;
}

/* What the file system says, from parameter `at` on. */
static void bind_stat(sqlite3_stmt *row, int at, const struct source_file *file)
{
    sqlite3_bind_int64(row, at, (sqlite3_int64)file->device);
    sqlite3_bind_int64(row, at + 1, (sqlite3_int64)file->inode);
    sqlite3_bind_int64(row, at + 2, (sqlite3_int64)file->size);
    sqlite3_bind_int64(row, at + 3, file->mtime_ns);
}

static void bind_problem(sqlite3_stmt *row, int at, const struct scan *s,
                         const struct source_file *file)
{
    bool has = file->state == SOURCE_FILE_QUARANTINED;
    const char *problem = file->problem ? file->problem : "";
    statement_bind_text(row, at, has ? problem : NULL);
    statement_bind_text(row, at + 1, has ? file->detail : NULL);
    sqlite3_bind_int64(row, at + 2, has ? (sqlite3_int64)file->line : 0);
    sqlite3_bind_int64(row, at + 3, has ? (sqlite3_int64)file->column : 0);
    sqlite3_bind_int64(row, at + 4, has ? since(s, problem) : 0);
}

static void bind_hash(sqlite3_stmt *row, int at, const uint64_t hash[2])
{
    unsigned char bytes[16]; /* of one order on every machine */
    if (hash[0] == 0 && hash[1] == 0) {
        sqlite3_bind_null(row, at);
        return;
    }
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(hash[i / 8] >> (56 - i % 8 * 8));
    sqlite3_bind_blob(row, at, bytes, sizeof bytes, SQLITE_TRANSIENT);
}

enum catalogue_status scan_row_write(struct scan *s, const struct source_file *file, int64_t site,
                                     bool refused)
{
    sqlite3_stmt *row = tx_statement(s->tx, ST_FILE_WRITE);
    if (!row)
        return tx_failure(s->tx);
    sqlite3_bind_int64(row, 1, s->owner);
    statement_bind_text(row, 2, file->path);
    if (site != 0)
        sqlite3_bind_int64(row, 3, site);
    else
        sqlite3_bind_null(row, 3);
    statement_bind_text(row, 4, file->loc);
    sqlite3_bind_int(row, 5, (int)file->state);
    sqlite3_bind_int(row, 6, refused);
    bind_stat(row, 7, file);
    bind_hash(row, 11, file->hash);
    statement_bind_text(row, 12, file->lastmod);
    sqlite3_bind_int64(row, 13, (sqlite3_int64)file->urls);
    sqlite3_bind_int64(row, 14, (sqlite3_int64)file->bytes);
    statement_bind_text(row, 15, file->newest_lastmod);
    sqlite3_bind_int(row, 16, file->one_lastmod);
    sqlite3_bind_int(row, 17, file->future);
    bind_problem(row, 18, s, file);
    count_change(s, file->state);
    return statement_run(row);
}

enum catalogue_status scan_row_quarantine(struct scan *s)
{
    sqlite3_stmt *row = tx_statement(s->tx, ST_FILE_QUARANTINE);
    if (!row)
        return tx_failure(s->tx);
    sqlite3_bind_int64(row, 1, s->owner);
    statement_bind_text(row, 2, s->file->path);
    bind_stat(row, 3, s->file);
    bind_problem(row, 7, s, s->file);
    sqlite3_bind_int(row, 12, SOURCE_FILE_QUARANTINED);
    statement_bind_text(row, 13, s->file->loc);
    count_change(s, SOURCE_FILE_QUARANTINED);
    return statement_run(row);
}

enum catalogue_status scan_row_delete(struct scan *s)
{
    sqlite3_stmt *row = tx_statement(s->tx, ST_FILE_DELETE);
    if (!row)
        return tx_failure(s->tx);
    sqlite3_bind_int64(row, 1, s->owner);
    statement_bind_text(row, 2, s->file->path);
    count_change(s, SOURCE_FILE_GONE);
    return statement_run(row);
}

enum catalogue_status scan_state_has_files(struct scan *s, bool *has)
{
    int64_t number = 0;
    *has = false;
    sqlite3_stmt *row = tx_statement(s->tx, ST_FILES_ANY);
    if (!row)
        return tx_failure(s->tx);
    sqlite3_bind_int64(row, 1, s->owner);
    enum catalogue_status status = statement_number(row, 0, &number);
    *has = number != 0;
    return status;
}

enum catalogue_status scan_state_write(struct scan *s)
{
    sqlite3_stmt *row = tx_statement(s->tx, ST_STATE_WRITE);
    if (!row)
        return tx_failure(s->tx);
    sqlite3_bind_int64(row, 1, s->owner);
    sqlite3_bind_int64(row, 2, s->tx->now);
    sqlite3_bind_int64(row, 3, s->hold ? (sqlite3_int64)s->removals : 0);
    sqlite3_bind_int64(row, 4, s->files);
    sqlite3_bind_int64(row, 5, s->listed);
    sqlite3_bind_int64(row, 6, s->quarantined);
    return statement_run(row);
}
