#include "db/write/apply.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "db/history/recorder.h"
#include "db/read/row.h"

static void reject(const struct change *change, struct change_result *result,
                   const struct entry *entry, enum rule_code code, const char *field,
                   const char *why)
{
    struct rejection rejection = {
        .line = entry->line, .loc = entry->loc, .code = code, .field = field};
    result->rejected++;
    if (!change->skip && result->status == CATALOGUE_OK)
        result_refuse(result, code, field);
    if (change->max_told == 0)
        return;
    snprintf(rejection.detail, sizeof rejection.detail, "%s", why);
    findings_refuse(&result->findings, &rejection);
}

void count_put(const struct change *change, struct change_result *result, const struct put *put)
{
    if (put->outcome == PUT_CREATED)
        result->created++;
    else if (put->outcome == PUT_UNCHANGED)
        result->unchanged++;
    else
        result->updated++;
    if (put->outcome == PUT_MOVED)
        result->moved++;
    if (change->max_told > 0)
        findings_remark(&result->findings, put->entry->line, put->entry->loc, put->remarks);
}

void reject_entry(const struct change *change, struct change_result *result,
                  const struct entry *entry, enum rule_code code, const char *field)
{
    reject(change, result, entry, code, field, rule_code_sentence(code));
}

void reject_put(const struct change *change, struct change_result *result, const struct put *put)
{
    reject(change, result, put->entry, put->code, put->field, put_why(put));
}

void reject_stream(struct change_result *result)
{
    result->status = errno == ENOMEM ? CATALOGUE_NO_MEMORY : CATALOGUE_UNAVAILABLE;
    snprintf(result->detail, sizeof result->detail, "the list cannot be read: %s", strerror(errno));
}

void tell_progress(const struct change *change, uint64_t done)
{
    if (done % APPLY_PROGRESS == 0 && change->rows_done)
        atomic_store(change->rows_done, done);
}

bool list_ends(struct tx *tx, const struct change *change, struct change_result *result)
{
    if (change->token_site_id == 0 || !tx->is_pressed ||
        !tx->is_pressed(tx->pressed_context, change->token_site_id))
        return false;
    result_refuse(result, RULE_LIST_TOO_LONG, NULL);
    return true;
}

/* Who registers in lists must hear of it, too: theirs are the sites with many pages. */
static void remark_fullness(struct tx *tx, struct change_result *result)
{
    const struct registry *r;
    if (tx_registry(tx, &r) != CATALOGUE_OK)
        return;
    for (const struct occupancy_index *i = tx->occupancy->dirty; i; i = i->next_dirty) {
        const struct registry_index *index = registry_index_by_id(r, i->id);
        const struct registry_site *site = index ? registry_site_by_id(r, index->site_id) : NULL;
        if (site && occupancy_nearly_full(i->site, site->max_pages))
            result->remarks |= RULE_BIT(RULE_SITE_NEARLY_FULL);
    }
}

void finish_set(struct tx *tx, const struct change *change, struct change_result *result,
                bool *keep)
{
    *keep = result->status == CATALOGUE_OK && !change->dry_run;
    if (result->status == CATALOGUE_OK) {
        remark_fullness(tx, result);
        return;
    }
    result->created = result->updated = result->unchanged = result->removed = result->moved = 0;
    result->changed = false;
}

static enum catalogue_status find_token(struct tx *tx, const char *name, int64_t *id)
{
    sqlite3_stmt *row = tx_statement(tx, ST_TOKEN_FIND);
    if (!row)
        return tx_failure(tx);
    statement_bind_text(row, 1, name);
    return statement_number(row, 0, id);
}

static enum catalogue_status insert_token(struct tx *tx, const struct change *change,
                                          struct change_result *result)
{
    sqlite3_stmt *row = tx_statement(tx, ST_TOKEN_ADD);
    if (!row)
        return tx_failure(tx);
    statement_bind_text(row, 1, change->token_name);
    sqlite3_bind_blob(row, 2, change->token_sha256, 32, SQLITE_STATIC);
    if (change->site_id != 0)
        sqlite3_bind_int64(row, 3, change->site_id);
    else
        sqlite3_bind_null(row, 3);
    sqlite3_bind_int64(row, 4, tx->now);
    enum catalogue_status status = statement_run(row);
    if (status != CATALOGUE_OK)
        return status;
    result->id = sqlite3_last_insert_rowid(tx->db);
    result->created = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return CATALOGUE_OK;
}

static enum catalogue_status apply_token_add(struct tx *tx, const struct change *change,
                                             struct change_result *result)
{
    const char *name = change->token_name ? change->token_name : "";
    if (change->token_site_id != 0) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (entry_check_name(name, strlen(name)) != RULE_OK) {
        result_refuse(result, RULE_NAME, "name");
        return CATALOGUE_OK;
    }
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    if (change->site_id != 0 && !registry_site_by_id(r, change->site_id)) {
        result_decline(result, CATALOGUE_NOT_FOUND, "there is no such site");
        return CATALOGUE_OK;
    }
    int64_t existing = 0;
    status = find_token(tx, name, &existing);
    if (status != CATALOGUE_OK)
        return status;
    if (existing != 0) {
        result_decline(result, CATALOGUE_CONFLICT, "there is a token of this name");
        result->id = existing;
        return CATALOGUE_OK;
    }
    return insert_token(tx, change, result);
}

static enum catalogue_status apply_token_revoke(struct tx *tx, const struct change *change,
                                                struct change_result *result)
{
    if (change->token_site_id != 0) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    int64_t id = 0;
    enum catalogue_status status =
        find_token(tx, change->token_name ? change->token_name : "", &id);
    if (status != CATALOGUE_OK)
        return status;
    if (id == 0) {
        result_decline(result, CATALOGUE_NOT_FOUND, "there is no token of this name");
        return CATALOGUE_OK;
    }
    status = tx_run(tx, ST_TOKEN_DROP, id);
    result->id = id;
    result->removed = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}

/* Whether the token that the change came with is still there; else `result` says so. */
static enum catalogue_status apply_token_judge(struct tx *tx, const struct change *change,
                                               struct change_result *result, bool *holds)
{
    *holds = true;
    if (change->bearer_id == 0)
        return CATALOGUE_OK;
    sqlite3_stmt *row = tx_statement(tx, ST_TOKEN_HOLDS);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, change->bearer_id);
    sqlite3_bind_blob(row, 2, change->bearer_sha256, 32, SQLITE_STATIC);
    sqlite3_bind_int64(row, 3, change->token_site_id);
    int64_t found = 0;
    enum catalogue_status status = statement_number(row, 0, &found);
    *holds = found != 0;
    if (status != CATALOGUE_OK || *holds)
        return status;
    result_decline(result, CATALOGUE_CONFLICT, "the token was revoked");
    result->revoked = true;
    return CATALOGUE_OK;
}

/* Nothing of it is left but its row and those of its pages, which /v1/changes goes on telling. */
static enum catalogue_status finish(struct tx *tx, int64_t index_id)
{
    enum catalogue_status status = tx_run(tx, ST_PURGE_SEGMENTS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_PEAKS, index_id);
    if (status == CATALOGUE_OK)
        status = tx_run(tx, ST_PURGE_DONE, index_id);
    return status;
}

enum catalogue_status apply_purge(struct tx *tx, struct change_result *result, bool *more)
{
    *more = false;
    sqlite3_stmt *find = tx_statement(tx, ST_PURGE_FIND);
    if (!find)
        return tx_failure(tx);
    int64_t index_id, last;
    enum catalogue_status status = statement_number(find, 0, &index_id);
    if (status != CATALOGUE_OK || index_id == 0)
        return status;
    *more = true;
    int64_t first = id_address(index_id, 0);
    status = tx_number(tx, ST_PURGE_LAST, -1, &last, first, id_address(index_id, UINT32_MAX),
                       PURGE_ROWS);
    if (status != CATALOGUE_OK)
        return status;
    if (last < 0)
        return finish(tx, index_id);

    status = tx_run(tx, ST_PURGE_ENTRIES, first, last);
    result->removed = (uint64_t)sqlite3_changes64(tx->db);
    return status;
}

bool apply_alone(enum change_kind kind)
{
    switch (kind) {
    case CHANGE_ENTRY_PUT:
    case CHANGE_ENTRY_REMOVE:
    case CHANGE_TOKEN_ADD:
    case CHANGE_TOKEN_REVOKE:
        return false;
    default:
        return true;
    }
}

static enum catalogue_status dispatch(struct tx *tx, const struct change *change,
                                      struct change_result *result, bool *keep)
{
    bool holds;
    result->findings.max = change->max_told;
    result->findings.examples = FINDINGS_EXAMPLES;
    enum catalogue_status status = apply_token_judge(tx, change, result, &holds);
    if (status != CATALOGUE_OK || !holds)
        return status;
    switch (change->kind) {
    case CHANGE_ENTRY_PUT:
        return apply_entry_put(tx, change, result);
    case CHANGE_ENTRY_REMOVE:
        return apply_entry_remove(tx, change, result);
    case CHANGE_BULK:
        return apply_bulk(tx, change, result, keep);
    case CHANGE_REPLACE:
        return apply_replace(tx, change, result, keep);
    case CHANGE_SITE_ADD:
        return apply_site_add(tx, change, result);
    case CHANGE_SITE_UPDATE:
        return apply_site_update(tx, change, result);
    case CHANGE_SITE_REMOVE:
        return apply_site_remove(tx, change, result);
    case CHANGE_INDEX_ADD:
        return apply_index_add(tx, change, result);
    case CHANGE_INDEX_REMOVE:
        return apply_index_remove(tx, change, result);
    case CHANGE_TOKEN_ADD:
        return apply_token_add(tx, change, result);
    case CHANGE_TOKEN_REVOKE:
        return apply_token_revoke(tx, change, result);
    case CHANGE_CONFIGURE:
        return apply_configure(tx, change, result, keep);
    case CHANGE_SCAN:
        return apply_scan(tx, change, result, keep);
    case CHANGE_PURGE: {
        bool more;
        return apply_purge(tx, result, &more);
    }
    }
    result_decline(result, CATALOGUE_NOT_FOUND, "there is no such kind of change");
    return CATALOGUE_OK;
}

void change_result_done(struct change_result *result)
{
    entry_record_done(&result->entry);
    memset(&result->entry, 0, sizeof result->entry);
    findings_done(&result->findings);
    spool_free(result->rows);
    result->rows = NULL;
}

enum catalogue_status apply_change(struct tx *tx, const struct change *change,
                                   struct change_result *result, bool *keep)
{
    *keep = !(change->dry_run && apply_alone(change->kind));
    recorder_begin(tx->recorder, change);
    enum catalogue_status status = dispatch(tx, change, result, keep);
    if (status == CATALOGUE_OK && *keep)
        status = recorder_end(tx->recorder, tx, change, result);
    else
        recorder_drop(tx->recorder);
    return status;
}

void result_refuse(struct change_result *result, enum rule_code code, const char *field)
{
    result->status = CATALOGUE_REFUSED;
    result->code = code;
    result->field = field;
    snprintf(result->detail, sizeof result->detail, "%s", rule_code_sentence(code));
}

void result_forbid(struct change_result *result)
{
    result_refuse(result, RULE_SITE_UNKNOWN, NULL);
    result->forbidden = true;
    snprintf(result->detail, sizeof result->detail, "the token is for another site");
}

void result_decline(struct change_result *result, enum catalogue_status status,
                    const char *sentence)
{
    result->status = status;
    snprintf(result->detail, sizeof result->detail, "%s", sentence);
}

bool result_managed(struct change_result *result, const struct change *change,
                    const struct registry_site *site)
{
    if (!site->managed || change->override_managed)
        return false;
    result_decline(result, CATALOGUE_CONFLICT, "the configuration file manages this site");
    result->managed = true;
    return true;
}
