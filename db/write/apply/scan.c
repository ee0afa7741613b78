/* SPDX-License-Identifier: LicenseRef-Undeclared */
/* Applies a scan of a source to the catalogue. Internal to db/; the writer's thread.
 *
 * The files are read up to four times: to count what would be removed, to count what would be
 * added, to remove, and to write the rest. What is removed makes room for what is added, and the
 * shrink guard checks the result of both before the first write.
 *
 * A scan may have any number of files, so it yields: if other writes wait, it commits the files so
 * far and continues after those writes, at the next file of the same pass (result->steps keeps its
 * state). Each step that changed entries has a revision of its own; together they are one group of
 * the history. An interrupted scan leaves a smaller difference for the next one. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/read/row.h"
#include "db/source.h"
#include "db/write/apply/apply.h"
#include "db/write/apply/entry.h"
#include "db/write/guard.h"
#include "server/rules/lastmod.h"

#define SCAN_PROBLEM_SIZE 64

/* The stored row of a file: the columns that a scan needs. */
struct scan_kept {
    bool found;
    enum source_file_state state;
    int64_t site; /* 0: none */
    bool has_loc;
    char loc[LOC_MAX_CHARS + 1];
    char problem[SCAN_PROBLEM_SIZE]; /* "": none */
    int64_t problem_since;
    struct source_file content; /* the last good one, and its date; its texts: */
    char lastmod[LASTMOD_MAX_CHARS + 1], newest_lastmod[LASTMOD_MAX_CHARS + 1];
    char *remarks; /* owned */
};

/* The effect of a scan on one index. */
struct scan_index {
    int64_t id;       /* of the index */
    uint64_t removed; /* entries that are removed, or move to the source's own index */
    int64_t change;   /* of the number of entries */
    uint64_t before, peak;
};

/* A pass over all files. */
enum scan_phase { SCAN_COUNT_LOSSES, SCAN_COUNT_GAINS, SCAN_TAKE_OUT, SCAN_SETTLE, SCAN_END };

struct scan {
    /* The current step. */
    struct tx *tx;
    const struct change *change;
    const struct change_scan *scan;
    struct change_result *result;
    int64_t owner;                      /* the source */
    const struct registry *registry;    /* borrowed: a scan changes none of it */
    const struct registry_index *index; /* NULL: by scope */

    enum scan_phase phase;
    bool committed; /* an earlier step has written */

    /* For the shrink guard. */
    struct scan_index *indexes; /* owned */
    size_t index_count, index_capacity;
    uint64_t removals; /* entries that are removed or move to the source's own index */
    uint64_t moves;    /* how many of `removals` move */
    bool single; /* one move is the only change: not a set of changes, as for a registration */
    bool hold;   /* the removals are held back */

    /* The current file. */
    const struct source_file *file;
    uint64_t row; /* its number, from 1 */
    struct scan_kept kept;
    struct put put;
    struct entry entry;

    int64_t files, listed, quarantined; /* changes of the counts */
};

int64_t apply_step_ms = APPLY_STEP_MS;

typedef enum catalogue_status scan_pass(struct scan *s);

static enum catalogue_status scan_find_loss(struct scan *s, struct put_row *row);
static enum catalogue_status scan_place(struct scan *s, bool *foreign);
static enum catalogue_status scan_find_move(struct scan *s, const struct registry_index **from);

/* enum source_file_state is stored as numbers. */
_Static_assert(SOURCE_FILE_LISTED == 0 && SOURCE_FILE_EMPTY == 1 && SOURCE_FILE_IGNORED == 2 &&
                   SOURCE_FILE_QUARANTINED == 3,
               "as released files say");

static void copy_text(char *to, size_t size, const char *from)
{
    size_t len = from ? strnlen(from, size - 1) : 0;
    memcpy(to, from ? from : "", len);
    to[len] = '\0';
}

/* ---- rows */

static const char *copy_date(char to[LASTMOD_MAX_CHARS + 1], const char *from)
{
    copy_text(to, LASTMOD_MAX_CHARS + 1, from);
    return from ? to : NULL;
}

static enum catalogue_status read_content(struct scan_kept *kept, sqlite3_stmt *row)
{
    struct source_file *content = &kept->content;
    const char *remarks = (const char *)sqlite3_column_text(row, 11);
    row_hash(row, 5, content->hash);
    content->lastmod = copy_date(kept->lastmod, (const char *)sqlite3_column_text(row, 6));
    content->newest_lastmod =
        copy_date(kept->newest_lastmod, (const char *)sqlite3_column_text(row, 7));
    content->urls = (uint64_t)sqlite3_column_int64(row, 8);
    content->bytes = (uint64_t)sqlite3_column_int64(row, 9);
    content->one_lastmod = sqlite3_column_int(row, 10) != 0;
    free(kept->remarks);
    content->remarks = kept->remarks = remarks ? strdup(remarks) : NULL;
    return remarks && !kept->remarks ? CATALOGUE_NO_MEMORY : CATALOGUE_OK;
}

/* Reads the stored row of s->file into s->kept. */
static enum catalogue_status scan_row_read(struct scan *s)
{
    struct scan_kept *kept = &s->kept;
    sqlite3_stmt *row;
    enum catalogue_status status = tx_first(s->tx, ST_FILE_READ, &row, s->owner, s->file->path);
    kept->found = row != NULL;
    if (row != NULL) {
        kept->state = (enum source_file_state)sqlite3_column_int(row, 0);
        kept->site = sqlite3_column_int64(row, 1);
        kept->has_loc = sqlite3_column_type(row, 2) != SQLITE_NULL;
        copy_text(kept->loc, sizeof kept->loc, (const char *)sqlite3_column_text(row, 2));
        copy_text(kept->problem, sizeof kept->problem, (const char *)sqlite3_column_text(row, 3));
        kept->problem_since = sqlite3_column_int64(row, 4);
        if (status == CATALOGUE_OK)
            status = read_content(kept, row);
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

/* A problem with the same word as before keeps its age. */
static int64_t since(const struct scan *s, const char *problem)
{
    bool same = s->kept.found && s->kept.state == SOURCE_FILE_QUARANTINED && problem &&
                strncmp(s->kept.problem, problem, SCAN_PROBLEM_SIZE - 1) == 0;
    return same ? s->kept.problem_since : s->tx->now;
}

/* Parameters that both ways to write a file's row share. */
#define STAT_VALUES(file)                                                                          \
    (file)->device, (file)->inode, (file)->size, (file)->mtime_ns, (file)->ctime_ns
#define PROBLEM_VALUES(p) (p).code, (p).detail, (p).line, (p).column, (p).since

struct problem {
    const char *code, *detail; /* NULL: none */
    uint64_t line, column;
    int64_t since;
};

static struct problem problem_of(const struct scan *s, const struct source_file *file)
{
    if (file->state != SOURCE_FILE_QUARANTINED)
        return (struct problem){.code = NULL};
    const char *code = file->problem ? file->problem : "";
    return (struct problem){code, file->detail, file->line, file->column, since(s, code)};
}

/* Stores the file's old state in the history before its row changes, so that an undo can compare
 * the file with it. */
static enum catalogue_status keep_known(struct scan *s, const struct source_file *file)
{
    static const uint64_t none[2];
    if (!s->kept.found || s->kept.site == 0)
        return CATALOGUE_OK;
    return recorder_keep_file(s->tx->recorder, s->tx, s->owner, file->path,
                              file->state == SOURCE_FILE_LISTED ? file->hash : none);
}

/* Whether a poll's row may describe the file (check.c). */
static bool is_elsewhere(const struct scan *s)
{
    return s->kept.found && strstr(s->file->path, "://") != NULL;
}

/* Keeps the content and the date that a poll has stored since the scan read the stored files: a
 * scan of an upstream reads no content. */
static void keep_newer(const struct scan *s, struct source_file *file)
{
    const struct source_file *content = &s->kept.content;
    if (file->state != SOURCE_FILE_LISTED || !is_elsewhere(s) ||
        s->kept.state != SOURCE_FILE_LISTED || (content->hash[0] | content->hash[1]) == 0 ||
        memcmp(file->hash, content->hash, sizeof file->hash) == 0)
        return;
    memcpy(file->hash, content->hash, sizeof file->hash);
    file->lastmod = content->lastmod;
    file->newest_lastmod = content->newest_lastmod;
    file->urls = content->urls;
    file->bytes = content->bytes;
    file->one_lastmod = content->one_lastmod;
    file->remarks = content->remarks;
}

static enum catalogue_status scan_row_run(struct scan *s, enum statement which,
                                          const struct source_file *file, int64_t site,
                                          bool refused)
{
    struct problem problem = problem_of(s, file);
    /* A file that is rejected for its place may be sent again without being read. */
    bool kept = refused || file->state == SOURCE_FILE_LISTED;
    return tx_run(s->tx, which, s->owner, file->path, sql_not_0(site), file->loc, file->state,
                  refused, STAT_VALUES(file), file->hash, file->lastmod, file->urls, file->bytes,
                  file->newest_lastmod, file->one_lastmod, file->future, PROBLEM_VALUES(problem),
                  kept ? file->remarks : NULL, file->claim);
}

/* Writes the whole row of `file`, whose entry is in `site` (0: none). `refused`: a rule rejected
 * its place. */
static enum catalogue_status scan_row_write(struct scan *s, const struct source_file *file,
                                            int64_t site, bool refused)
{
    bool elsewhere = is_elsewhere(s);
    enum catalogue_status status = keep_known(s, file);
    if (status == CATALOGUE_OK && elsewhere) {
        status = scan_row_run(s, ST_FILE_CLAIM, file, site, refused);
        elsewhere = status == CATALOGUE_OK && sqlite3_changes64(s->tx->db) > 0;
        if (status == CATALOGUE_OK && !elsewhere)
            status = check_file_drop(s->tx, s->owner, file->path);
    }
    if (status == CATALOGUE_OK && !elsewhere)
        status = scan_row_run(s, ST_FILE_WRITE, file, site, refused);
    count_change(s, file->state);
    return status;
}

/* Writes the state and the problem of s->file; the row keeps the last good content and the entry.
 */
static enum catalogue_status scan_row_quarantine(struct scan *s)
{
    enum catalogue_status status =
        is_elsewhere(s) ? check_file_expand(s->tx, s->owner, s->file->path, 0, 0) : CATALOGUE_OK;
    if (status != CATALOGUE_OK)
        return status;
    struct problem problem = problem_of(s, s->file);
    count_change(s, SOURCE_FILE_QUARANTINED);
    return tx_run(s->tx, ST_FILE_QUARANTINE, s->owner, s->file->path, STAT_VALUES(s->file),
                  PROBLEM_VALUES(problem), SOURCE_FILE_QUARANTINED, s->file->loc);
}

static enum catalogue_status scan_row_delete(struct scan *s)
{
    enum catalogue_status status = keep_known(s, s->file);
    if (status == CATALOGUE_OK && is_elsewhere(s))
        status = check_file_drop(s->tx, s->owner, s->file->path);
    if (status != CATALOGUE_OK)
        return status;
    count_change(s, SOURCE_FILE_GONE);
    return tx_run(s->tx, ST_FILE_DELETE, s->owner, s->file->path);
}

/* Whether the source has stored files. */
static enum catalogue_status scan_state_has_files(struct scan *s, bool *has)
{
    int64_t number = 0;
    *has = false;
    enum catalogue_status status = tx_number(s->tx, ST_FILES_ANY, 0, &number, s->owner);
    *has = number != 0;
    return status;
}

/* Writes the state of the source after this scan, or after this step of it. */
static enum catalogue_status scan_state_write(struct scan *s)
{
    enum catalogue_status status = tx_run(s->tx, ST_STATE_WRITE, s->owner, s->tx->now,
                                          s->hold ? (sqlite3_int64)s->removals : 0, s->files,
                                          s->listed, s->quarantined, s->scan->hosts);
    s->files = s->listed = s->quarantined = 0;
    return status;
}

/* The tally of an index; NULL: out of memory. Files of one index are mostly neighbours. */
static struct scan_index *tally_of(struct scan *s, const struct registry_index *index)
{
    for (size_t i = s->index_count; i-- > 0;)
        if (s->indexes[i].id == index->id)
            return &s->indexes[i];
    if (s->index_count == s->index_capacity) {
        size_t capacity = s->index_capacity ? s->index_capacity * 2 : 4;
        struct scan_index *indexes = realloc(s->indexes, capacity * sizeof *indexes);
        if (!indexes)
            return NULL;
        s->indexes = indexes;
        s->index_capacity = capacity;
    }
    s->indexes[s->index_count] = (struct scan_index){.id = index->id};
    return &s->indexes[s->index_count++];
}

/* A frozen list keeps its entries, and their files keep their rows, so that each scan finds the
 * same difference until the thaw. */
static bool is_frozen(const struct scan *s, const struct put_row *row)
{
    return row->found &&
           registry_is_frozen(s->registry,
                              registry_index_by_id(s->registry, id_address_index(row->address)));
}

static enum catalogue_status tally_loss(struct scan *s, const struct registry_index *index)
{
    struct scan_index *tally = tally_of(s, index);
    if (!tally)
        return CATALOGUE_NO_MEMORY;
    tally->removed++;
    tally->change--;
    s->removals++;
    return CATALOGUE_OK;
}

/* A move to another index counts as a loss. */
static enum catalogue_status count_loss(struct scan *s)
{
    struct put_row row;
    const struct registry_index *from;
    enum catalogue_status status = scan_find_loss(s, &row);
    if (status == CATALOGUE_OK && row.found && !is_frozen(s, &row))
        status = tally_loss(s, registry_index_by_id(s->registry, id_address_index(row.address)));
    if (status == CATALOGUE_OK)
        status = scan_find_move(s, &from);
    if (status != CATALOGUE_OK || !from)
        return status;
    s->moves++;
    return tally_loss(s, from);
}

/* Counts gains as if the site had room for them. If it has not, scan_guard_settle sees the result.
 */
static enum catalogue_status count_gain(struct scan *s)
{
    bool foreign;
    if (s->file->state != SOURCE_FILE_LISTED)
        return CATALOGUE_OK;
    enum catalogue_status status = scan_place(s, &foreign);
    if (status != CATALOGUE_OK || s->put.code != RULE_OK || foreign || s->put.from == s->put.index)
        return status;
    struct scan_index *to = tally_of(s, s->put.index);
    if (!to)
        return CATALOGUE_NO_MEMORY;
    to->change++;
    return CATALOGUE_OK;
}

/* `*out` is NULL if the index was removed since an earlier step. */
static enum catalogue_status occupancy_of(struct scan *s, const struct scan_index *tally,
                                          struct occupancy_index **out)
{
    const struct registry_index *index = registry_index_by_id(s->registry, tally->id);
    *out = NULL;
    return index ? occupancy_index(s->tx, index->site_id, index->id, out) : CATALOGUE_OK;
}

/* Measures the index before the first write. */
static enum catalogue_status measure(struct scan *s)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; status == CATALOGUE_OK && i < s->index_count; i++) {
        struct scan_index *tally = &s->indexes[i];
        struct occupancy_index *occupancy;
        status = occupancy_of(s, tally, &occupancy);
        if (status != CATALOGUE_OK || !occupancy)
            continue;
        tally->before = occupancy->entries;
        status = occupancy_peak(s->tx, occupancy, &tally->peak);
    }
    return status;
}

/* The guard checks each index, but max_removed approves the removals of the whole scan. */
static struct guard_case case_of(const struct scan *s, const struct scan_index *tally,
                                 uint64_t after)
{
    return (struct guard_case){.peak = tally->peak,
                               .before = tally->before,
                               .after = after,
                               .removed = s->removals,
                               .max_removed = s->change->max_removed};
}

static bool passes(struct scan *s, struct change_result *verdict)
{
    for (size_t i = 0; i < s->index_count; i++) {
        const struct scan_index *tally = &s->indexes[i];
        int64_t after = (int64_t)tally->before + tally->change;
        struct guard_case guard = case_of(s, tally, after > 0 ? (uint64_t)after : 0);
        if (tally->removed > 0 && !guard_check(s->tx, &guard, verdict))
            return false;
    }
    return true;
}

/* ---- the shrink guard */

/* Called once the losses, or the gains too, are counted: sets s->hold and the next pass. */
static enum catalogue_status scan_guard_check(struct scan *s)
{
    struct change_result verdict = {.status = CATALOGUE_OK};
    if (s->phase == SCAN_COUNT_LOSSES) {
        s->single = s->moves == 1 && s->removals == 1;
        if (s->single) {
            s->removals = 0;
            s->index_count = 0;
        }
    }
    if (s->removals == 0) {
        s->phase = SCAN_SETTLE;
        return CATALOGUE_OK;
    }
    enum catalogue_status status = measure(s);
    if (status != CATALOGUE_OK)
        return status;
    if (passes(s, &verdict)) {
        s->phase = SCAN_TAKE_OUT;
    } else if (s->phase == SCAN_COUNT_LOSSES) {
        s->phase = SCAN_COUNT_GAINS; /* perhaps as many are added as removed: renamed files */
    } else {
        s->hold = true;
        s->result->would_remove = s->removals;
        snprintf(s->result->detail, sizeof s->result->detail, "%s", verdict.detail);
        s->phase = SCAN_SETTLE;
    }
    return CATALOGUE_OK;
}

/* At the end, if the removals were allowed: checks the result with the guard. Committed steps
 * cannot be rejected any more. */
static enum catalogue_status scan_guard_settle(struct scan *s)
{
    enum catalogue_status status = CATALOGUE_OK;
    for (size_t i = 0; !s->hold && status == CATALOGUE_OK && i < s->index_count; i++) {
        const struct scan_index *tally = &s->indexes[i];
        struct occupancy_index *occupancy;
        if (tally->removed == 0)
            continue;
        status = occupancy_of(s, tally, &occupancy);
        if (status != CATALOGUE_OK || !occupancy)
            continue;
        struct guard_case guard = case_of(s, tally, occupancy->entries);
        /* Some additions found no room, so the result is not the one that the guard checked. */
        if (!s->committed && !guard_check(s->tx, &guard, s->result))
            break;
        if (guard_approved(s->tx, &guard)) {
            occupancy_index_dirty(s->tx, occupancy);
            occupancy->peak_reset = true;
        }
    }
    return status;
}

/* ---- checking the current file */

static bool same_loc(const char *given, const char *kept)
{
    struct url url;
    return strcmp(given, kept) == 0 ||
           (url_parse(given, strlen(given), &url, NULL) == RULE_OK && strcmp(url.text, kept) == 0);
}

/* True if the URL of the folder, or the site of its index, has changed. */
static bool is_relocated(const struct scan *s)
{
    if (!s->file->loc)
        return false;
    return (s->index && s->index->site_id != s->kept.site) || !same_loc(s->file->loc, s->kept.loc);
}

/* ---- the current file */

/* Finds the entry that s->file removes because the file is gone, empty, not a sitemap, or at
 * another URL. `row->found` is false if the file removes no entry. */
static enum catalogue_status scan_find_loss(struct scan *s, struct put_row *row)
{
    row->found = false;
    if (!s->kept.found || s->kept.site == 0 || !s->kept.has_loc ||
        s->file->state == SOURCE_FILE_QUARANTINED ||
        (s->file->state == SOURCE_FILE_LISTED && !is_relocated(s)))
        return CATALOGUE_OK;
    enum catalogue_status status = put_find(s->tx, s->kept.site, s->kept.loc, row);
    if (row->found && (row->source != s->owner ||
                       !registry_index_by_id(s->registry, id_address_index(row->address))))
        row->found = false;
    return status;
}

/* Takes over the entry of a removed source. Its date stays if the content is the one that the other
 * source had, and never moves back. */
static enum catalogue_status take_over(struct scan *s)
{
    struct put *put = &s->put;
    uint64_t hash[2] = {0, 0};
    sqlite3_stmt *row;
    enum catalogue_status status =
        tx_first(s->tx, ST_FILE_READ, &row, put->row.source, s->file->path);
    if (row != NULL)
        row_hash(row, 5, hash);
    sqlite3_reset(row);
    bool same = (hash[0] | hash[1]) != 0 && memcmp(hash, s->file->hash, sizeof hash) == 0;
    put->takes_over = s->owner;
    if (put->row.has_lastmod &&
        (same || !s->file->lastmod || lastmod_is_later(put->row.lastmod, s->file->lastmod)))
        s->entry.lastmod_state = FIELD_ABSENT;
    return status;
}

/* Finds the place of the entry of s->file. Sets s->put.code; `*foreign` if another source, which
 * was not removed, owns the loc. */
static enum catalogue_status scan_place(struct scan *s, bool *foreign)
{
    const struct source_file *file = s->file;
    struct put *put = &s->put;
    *foreign = false;
    s->entry = (struct entry){.line = s->row,
                              .loc = file->loc,
                              .lastmod = file->lastmod,
                              .lastmod_state = file->lastmod ? FIELD_SET : FIELD_NULL,
                              .position = POSITION_NONE};
    put->entry = &s->entry;
    put->grant = s->change->grant;
    put->index_name = s->change->index_name;
    put->source = s->change->source;
    put->takes_over = 0;
    put->of_set = !s->single;
    if (!file->loc) {
        put->code = RULE_LOC_MISSING;
        put->field = "loc";
        return CATALOGUE_OK;
    }
    enum catalogue_status status = entry_locate(s->tx, put);
    *foreign = put->code == RULE_OK && put->from && put->row.source != s->owner;
    if (status == CATALOGUE_OK && *foreign) {
        int64_t removed = 0;
        status =
            tx_number(s->tx, ST_SOURCE_IS_REMOVED, 0, &removed, put->row.source, put->site->id);
        *foreign = removed == 0;
        if (status == CATALOGUE_OK && !*foreign)
            status = take_over(s);
    }
    return status;
}

/* The index that the entry of s->file leaves, since the source now names another one; NULL: none.
 */
static enum catalogue_status scan_find_move(struct scan *s, const struct registry_index **from)
{
    bool foreign;
    *from = NULL;
    if (!s->index || s->file->state != SOURCE_FILE_LISTED)
        return CATALOGUE_OK;
    enum catalogue_status status = scan_place(s, &foreign);
    if (status == CATALOGUE_OK && s->put.code == RULE_OK && !foreign && s->put.from != s->put.index)
        *from = s->put.from;
    return status;
}

/* ---- removals */

static enum catalogue_status remove_file_entry(struct scan *s)
{
    struct put_row row;
    enum catalogue_status status = scan_find_loss(s, &row);
    if (status != CATALOGUE_OK || !row.found || is_frozen(s, &row))
        return status;
    const struct registry_index *index =
        registry_index_by_id(s->registry, id_address_index(row.address));
    s->result->removed++;
    return put_release(s->tx, index, &row, s->kept.loc);
}

/* ---- additions and updates */

/* Rejects a good file without a place. Its row keeps the content, so that it can be tried again
 * without being read; reported once, not with every try. */
static enum catalogue_status refuse(struct scan *s)
{
    struct rejection rejection = {
        .line = s->row, .loc = s->file->loc, .code = s->put.code, .field = s->put.field};
    enum catalogue_status status =
        put_explain(s->tx, &s->put, rejection.detail, sizeof rejection.detail);
    if (status != CATALOGUE_OK)
        return status;
    if (s->put.code == RULE_OWNED_BY_ANOTHER) {
        size_t len = strlen(rejection.detail);
        snprintf(rejection.detail + len, sizeof rejection.detail - len,
                 "; if that is an old name of this source, run `sitemapd source remove` for it");
    }
    struct source_file file = *s->file;
    file.state = SOURCE_FILE_QUARANTINED;
    file.problem = rule_code_word(s->put.code);
    file.detail = rejection.detail;
    file.line = file.column = 0;
    bool known = s->kept.found && strcmp(s->kept.problem, file.problem) == 0;
    bool same = s->kept.found && s->kept.has_loc && file.loc && same_loc(file.loc, s->kept.loc);
    s->result->rejected++;
    status = scan_row_write(s, &file, same ? s->kept.site : 0, true);
    if (known)
        rejection.detail[0] = '\0';
    if (s->change->max_findings > 0)
        findings_refuse(&s->result->findings, &rejection);
    return status;
}

static enum catalogue_status list_file(struct scan *s)
{
    struct put *put = &s->put;
    bool foreign;
    enum catalogue_status status = scan_place(s, &foreign);
    if (foreign) {
        put->code = RULE_OWNED_BY_ANOTHER;
        put->field = "loc";
    }
    if (status == CATALOGUE_OK)
        status = put_room(s->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    if (put->code == RULE_FROZEN) {
        s->result->frozen++;
        return CATALOGUE_OK;
    }
    if (put->code != RULE_OK)
        return refuse(s);
    status = put_write(s->tx, put);
    if (status != CATALOGUE_OK)
        return status;
    count_put(s->change, s->result, put);
    struct source_file file = *s->file;
    file.loc = put->url.text;
    if (put->takes_over != 0 && put->row.has_lastmod)
        file.lastmod = put->row.lastmod;
    return scan_row_write(s, &file, put->site->id, false);
}

static enum catalogue_status settle_file(struct scan *s)
{
    struct put_row row;
    const struct registry_index *from = NULL;
    enum catalogue_status status = scan_find_loss(s, &row);
    bool frozen = is_frozen(s, &row);
    if (status == CATALOGUE_OK && s->hold && !row.found)
        status = scan_find_move(s, &from);
    /* Its row stays as it is, so that the next scan finds the same difference. */
    if (status != CATALOGUE_OK || frozen || (s->hold && (row.found || from))) {
        s->result->frozen += frozen;
        return status;
    }
    switch (s->file->state) {
    case SOURCE_FILE_LISTED:
        return list_file(s);
    case SOURCE_FILE_QUARANTINED:
        return s->kept.found ? scan_row_quarantine(s) : scan_row_write(s, s->file, 0, false);
    case SOURCE_FILE_GONE:
        return s->kept.found ? scan_row_delete(s) : CATALOGUE_OK;
    case SOURCE_FILE_EMPTY:
    case SOURCE_FILE_IGNORED:
        break;
    }
    return scan_row_write(s, s->file, 0, false);
}

/* ---- the whole */

/* Finds the index and the source's id. A rejection is written into the result. */
static enum catalogue_status prepare(struct scan *s)
{
    const char *source = s->change->source, *name = s->change->index_name;
    enum catalogue_status status = tx_registry(s->tx, &s->registry);
    if (status != CATALOGUE_OK)
        return status;
    if (!source || entry_check_name(source, strlen(source)) != RULE_OK) {
        result_refuse(s->result, RULE_NAME, "source");
        return CATALOGUE_OK;
    }
    /* Removed during the scan, or with its site: what is written now would keep its name in use. */
    int64_t site_id = s->change->grant.site_id;
    const struct source_settings *made = registry_source(s->registry, source);
    if (site_id != 0 && (made == NULL || made->site_id != site_id)) {
        result_decline(s->result, CATALOGUE_NOT_FOUND, "source not found");
        return CATALOGUE_OK;
    }
    /* Rejects the scan, not every file: the index may be about to be created. */
    s->index = name ? registry_index_by_name(s->registry, name, NULL) : NULL;
    if (name && !s->index) {
        result_refuse(s->result, RULE_INDEX_UNKNOWN, "index");
        return CATALOGUE_OK;
    }
    status = tx_source(s->tx, source, true, &s->owner);
    if (status == CATALOGUE_OK && s->change->grant.site_id == 0)
        status = tx_run(s->tx, ST_SOURCE_RETURNS, s->owner);
    return status;
}

/* Whether the step ends here, to yield to others. A dry run has no steps: it is rehearsed. */
static bool must_yield(const struct scan *s)
{
    if (s->change->dry_run)
        return s->row % APPLY_LOOK == 0 && list_ends(s->tx, s->change, s->result);
    return s->row % APPLY_PROGRESS == 0 && tx_should_yield(s->tx);
}

/* Calls `each` for the rest of the pass's files. `*whole` is false if the step ends before the
 * pass. If a row cannot be read the scan is rejected: see result->status. */
static enum catalogue_status scan_read(struct scan *s, scan_pass *each, bool *whole)
{
    struct source_file file;
    *whole = true;
    if (s->row == 0)
        spool_rewind(s->change->rows);
    for (;;) {
        int more = spool_next_file(s->change->rows, &file);
        if (more < 0)
            reject_stream(s->result);
        if (more != 1)
            break;
        s->file = &file;
        s->row++;
        enum catalogue_status status = scan_row_read(s);
        keep_newer(s, &file);
        if (status == CATALOGUE_OK)
            status = each(s);
        if (status != CATALOGUE_OK)
            return status;
        if (must_yield(s)) {
            *whole = false;
            return CATALOGUE_OK;
        }
    }
    s->row = 0;
    return CATALOGUE_OK;
}

/* Ends the current pass and sets the next one. */
static enum catalogue_status end_pass(struct scan *s)
{
    switch (s->phase) {
    case SCAN_COUNT_LOSSES:
    case SCAN_COUNT_GAINS:
        return scan_guard_check(s);
    case SCAN_TAKE_OUT:
        s->phase = SCAN_SETTLE;
        return CATALOGUE_OK;
    case SCAN_SETTLE:
    case SCAN_END:
        break;
    }
    s->phase = SCAN_END;
    return scan_guard_settle(s);
}

static enum catalogue_status run_passes(struct scan *s)
{
    static scan_pass *const passes_of[] = {[SCAN_COUNT_LOSSES] = count_loss,
                                           [SCAN_COUNT_GAINS] = count_gain,
                                           [SCAN_TAKE_OUT] = remove_file_entry,
                                           [SCAN_SETTLE] = settle_file};
    enum catalogue_status status = CATALOGUE_OK;
    bool whole = true;
    while (status == CATALOGUE_OK && s->result->status == CATALOGUE_OK && whole &&
           s->phase != SCAN_END) {
        status = scan_read(s, passes_of[s->phase], &whole);
        if (status == CATALOGUE_OK && s->result->status == CATALOGUE_OK && whole)
            status = end_pass(s);
    }
    if (status != CATALOGUE_OK || s->result->status != CATALOGUE_OK)
        return status;
    s->result->more = !whole;
    return s->phase >= SCAN_TAKE_OUT ? scan_state_write(s) : CATALOGUE_OK;
}

/* Records the step in the history if the scan has several. */
static enum catalogue_status record_step(struct scan *s)
{
    struct change_result *result = s->result;
    s->committed = s->committed || s->phase >= SCAN_TAKE_OUT;
    if (!s->tx->changed || (!result->more && result->group == 0))
        return CATALOGUE_OK;
    return tx_record_step(s->tx, &result->group);
}

static enum catalogue_status begin(struct scan *s)
{
    bool has_files;
    enum catalogue_status status = scan_state_has_files(s, &has_files);
    s->phase = status == CATALOGUE_OK && has_files ? SCAN_COUNT_LOSSES : SCAN_SETTLE;
    return status;
}

static void scan_free(void *context)
{
    struct scan *s = context;
    if (!s)
        return;
    free(s->indexes);
    free(s->kept.remarks);
    free(s);
}

enum catalogue_status apply_scan(struct tx *tx, const struct change *change,
                                 const struct change_scan *scan, struct change_result *result,
                                 bool *keep)
{
    bool first = !result->more;
    struct scan *s = first ? calloc(1, sizeof *s) : result->steps;
    if (!s)
        return CATALOGUE_NO_MEMORY;
    result->steps = s;
    result->steps_free = scan_free;
    result->more = false;
    s->tx = tx;
    s->change = change;
    s->scan = scan;
    s->result = result;
    enum catalogue_status status = prepare(s);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && first)
        status = begin(s);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK)
        status = run_passes(s);
    if (status == CATALOGUE_OK && result->status == CATALOGUE_OK && !change->dry_run)
        status = record_step(s);
    if (status != CATALOGUE_OK)
        return status;
    if (!result->more) {
        scan_free(s);
        result->steps = NULL;
    }
    finish_set(tx, change, result, keep);
    return CATALOGUE_OK;
}
