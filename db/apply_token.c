#include <string.h>

#include "db/apply.h"

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

enum catalogue_status apply_token_add(struct tx *tx, const struct change *change,
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

enum catalogue_status apply_token_revoke(struct tx *tx, const struct change *change,
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
    sqlite3_stmt *row = tx_statement(tx, ST_TOKEN_DROP);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, id);
    status = statement_run(row);
    result->id = id;
    result->removed = 1;
    result->changed = true;
    tx_registry_touch(tx);
    return status;
}
