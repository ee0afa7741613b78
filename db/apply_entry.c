#include <stdlib.h>
#include <string.h>

#include "db/apply.h"
#include "db/guard.h"
#include "db/id.h"
#include "server/rules/negotiate.h"
#include "server/rules/render.h"

/* Copies the row into a record that owns its strings. */
static enum catalogue_status make_record(struct tx *tx, int64_t site_id, const char *loc,
                                         const struct put_row *row, struct entry_record *out)
{
    sqlite3_stmt *name = tx_statement(tx, ST_SOURCE_NAME);
    if (!name)
        return tx_failure(tx);
    sqlite3_bind_int64(name, 1, row->source);
    bool found;
    enum catalogue_status status = statement_first(name, &found);
    memset(out, 0, sizeof *out);
    if (status == CATALOGUE_OK) {
        const char *source = found ? (const char *)sqlite3_column_text(name, 0) : NULL;
        out->source = strdup(source ? source : "");
        out->loc = strdup(loc);
        out->lastmod = row->has_lastmod ? strdup(row->lastmod) : NULL;
        out->digest = row->has_digest ? strdup(row->digest) : NULL;
        out->site_id = site_id;
        out->index_id = id_address_index(row->address);
        out->position = id_address_position(row->address);
        out->page = out->position / LIMIT_PAGE_ENTRIES + 1;
        out->registered_at = row->registered_at;
        out->changed_at = row->changed_at;
        id_format(out->index_id, out->position, row->serial, out->id);
        if (!out->source || !out->loc || (row->has_lastmod && !out->lastmod) ||
            (row->has_digest && !out->digest)) {
            entry_record_done(out);
            memset(out, 0, sizeof *out);
            status = CATALOGUE_NO_MEMORY;
        }
    }
    sqlite3_reset(name);
    return status;
}

/* Judges If-Match (RFC 9110 13.1.1) against the entry as it is; `record` NULL: there is none. */
static bool precondition_holds(const struct change *change, const struct entry_record *record,
                               struct change_result *result)
{
    if (!change->if_match)
        return true;
    if (record) {
        char etag[40];
        catalogue_entry_etag(record, etag);
        if (negotiate_match(change->if_match, etag))
            return true;
    }
    result_decline(result, CATALOGUE_CONFLICT, "the entry is not the one that If-Match names");
    result->precondition_failed = true;
    return false;
}

static enum catalogue_status check_precondition(struct tx *tx, const struct change *change,
                                                int64_t site_id, const char *loc,
                                                const struct put_row *row,
                                                struct change_result *result)
{
    if (!change->if_match)
        return CATALOGUE_OK;
    struct entry_record record = {0};
    if (row) {
        enum catalogue_status status = make_record(tx, site_id, loc, row, &record);
        if (status != CATALOGUE_OK)
            return status;
    }
    precondition_holds(change, row ? &record : NULL, result);
    entry_record_done(&record);
    return CATALOGUE_OK;
}

/* The warnings that the reply to a registration bears. */
static enum catalogue_status gather_remarks(struct tx *tx, const struct put *put,
                                            struct change_result *result)
{
    struct fill_index *fill;
    enum catalogue_status status = fill_index(tx, put->site->id, put->index->id, &fill);
    if (status != CATALOGUE_OK)
        return status;
    result->remarks |= put->entry->remarks;
    result->remarks |= entry_lint(put->url.text, put->row.has_lastmod ? put->row.lastmod : NULL,
                                  put->site->origin);
    if (fill_nearly_full(fill->site, put->site->max_pages))
        result->remarks |= RULE_BIT(RULE_SITE_NEARLY_FULL);
    return CATALOGUE_OK;
}

static void count_put(enum put_outcome outcome, struct change_result *result)
{
    result->changed = outcome != PUT_UNCHANGED;
    if (outcome == PUT_CREATED)
        result->created = 1;
    else if (outcome == PUT_UNCHANGED)
        result->unchanged = 1;
    else
        result->updated = 1;
}

enum catalogue_status apply_entry_put(struct tx *tx, const struct change *change,
                                      struct change_result *result)
{
    struct put put = {.entry = &change->entry,
                      .index_name = change->entry.index,
                      .source = change->source,
                      .token_site_id = change->token_site_id};
    if (!change->entry.loc) {
        result_refuse(result, RULE_LOC_MISSING, "loc");
        return CATALOGUE_OK;
    }
    enum catalogue_status status = put_place(tx, &put);
    if (status == CATALOGUE_OK)
        status = put_room(tx, &put);
    if (status != CATALOGUE_OK)
        return status;
    if (put.forbidden) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    if (put.code != RULE_OK) {
        result_refuse(result, put.code, put.field);
        return CATALOGUE_OK;
    }
    status = check_precondition(tx, change, put.site->id, put.url.text, put.from ? &put.row : NULL,
                                result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;

    status = put_write(tx, &put);
    if (status == CATALOGUE_OK)
        status = make_record(tx, put.site->id, put.url.text, &put.row, &result->entry);
    if (status == CATALOGUE_OK)
        status = gather_remarks(tx, &put, result);
    if (status == CATALOGUE_OK)
        count_put(put.outcome, result);
    return status;
}

/* ---- removal */

struct found {
    const struct registry_index *index; /* NULL: not found */
    char loc[LOC_MAX_CHARS + 1];
    struct put_row row;
};

static enum catalogue_status find_by_id(struct tx *tx, const struct registry *r, const char *id,
                                        struct found *out)
{
    int64_t index_id, serial;
    uint32_t position;
    out->index = NULL;
    if (!id_parse(id, &index_id, &position, &serial))
        return CATALOGUE_OK;
    const struct registry_index *index = registry_index_by_id(r, index_id);
    if (!index)
        return CATALOGUE_OK;
    sqlite3_stmt *row = tx_statement(tx, ST_ENTRY_BY_ADDRESS);
    if (!row)
        return tx_failure(tx);
    sqlite3_bind_int64(row, 1, id_address(index_id, position));
    bool found;
    enum catalogue_status status = statement_first(row, &found);
    if (found && sqlite3_column_int64(row, 6) == serial) {
        const char *loc = (const char *)sqlite3_column_text(row, 2);
        size_t len = loc ? strnlen(loc, LOC_MAX_CHARS) : 0;
        memcpy(out->loc, loc ? loc : "", len);
        out->loc[len] = '\0';
        put_row_read(row, &out->row);
        out->index = index;
    }
    sqlite3_reset(row);
    return status;
}

static enum catalogue_status find_in_site(struct tx *tx, const struct registry *r,
                                          const struct registry_site *site, struct found *out)
{
    enum catalogue_status status = put_find(tx, site->id, out->loc, &out->row);
    if (status == CATALOGUE_OK && out->row.found)
        out->index = registry_index_by_id(r, id_address_index(out->row.address));
    return status;
}

/* The loc's own site first, then whoever has it as a cross host's; a token sees only its site. */
static enum catalogue_status find_by_loc(struct tx *tx, const struct registry *r,
                                         const struct change *change, const struct url *url,
                                         struct found *out)
{
    char origin[LOC_MAX_CHARS + 1];
    memcpy(origin, url->text, url->origin_len);
    origin[url->origin_len] = '\0';
    memcpy(out->loc, url->text, (size_t)url->len + 1);
    out->index = NULL;
    enum catalogue_status status = CATALOGUE_OK;
    if (change->token_site_id != 0) {
        const struct registry_site *only = registry_site_by_id(r, change->token_site_id);
        return only ? find_in_site(tx, r, only, out) : CATALOGUE_OK;
    }
    const struct registry_site *own = registry_site_by_origin(r, origin);
    if (own)
        status = find_in_site(tx, r, own, out);
    for (size_t i = 0; status == CATALOGUE_OK && !out->index && i < r->site_count; i++)
        status = find_in_site(tx, r, &r->sites[i], out);
    return status;
}

enum catalogue_status apply_entry_remove(struct tx *tx, const struct change *change,
                                         struct change_result *result)
{
    const struct registry *r;
    enum catalogue_status status = tx_registry(tx, &r);
    if (status != CATALOGUE_OK)
        return status;
    struct found found = {.index = NULL};
    if (change->entry_id) {
        status = find_by_id(tx, r, change->entry_id, &found);
    } else {
        struct url url;
        const char *loc = change->loc ? change->loc : "";
        enum rule_code code = url_parse(loc, strlen(loc), &url, NULL);
        if (code != RULE_OK) {
            result_refuse(result, code, "loc");
            return CATALOGUE_OK;
        }
        status = find_by_loc(tx, r, change, &url, &found);
    }
    if (status != CATALOGUE_OK)
        return status;
    if (!found.index) {
        result_decline(result, CATALOGUE_NOT_FOUND, "there is no such entry");
        return CATALOGUE_OK;
    }
    int64_t site_id = found.index->site_id;
    if (change->token_site_id != 0 && change->token_site_id != site_id) {
        result_forbid(result);
        return CATALOGUE_OK;
    }
    status = check_precondition(tx, change, site_id, found.loc, &found.row, result);
    if (status != CATALOGUE_OK || result->status != CATALOGUE_OK)
        return status;

    status = put_take_out(tx, found.index, found.row.address, found.loc, strlen(found.loc));
    if (status == CATALOGUE_OK)
        status = make_record(tx, site_id, found.loc, &found.row, &result->entry);
    result->removed = 1;
    result->changed = true;
    return status;
}
